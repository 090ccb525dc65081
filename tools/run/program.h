/* The name, texts and options of the program that these shared files are compiled for. */
#ifndef UIR_TOOLS_RUN_PROGRAM_H
#define UIR_TOOLS_RUN_PROGRAM_H

#if defined(PROGRAM_UIR_PACK)
#define PROGRAM       "uir-pack"
#define PROGRAM_USAGE "uir-pack MODEL.onnx -o PACKAGE.uir [OPTION...]"
#define PROGRAM_PURPOSE                                                                                                \
    "Compiles an ONNX model to a package, which uir-run opens and libuir_rt runs without a compiler."
#define PROGRAM_EXITS                                                                                                  \
    "Exit codes: 0 written, 2 usage, 3 bad model file, 4 unsupported, 5 compiler or machine failed, 130 and 143 "      \
    "interrupted."
#define PROGRAM_OPTIONS "../pack/options.def"
#elif defined(PROGRAM_UIR_TUNE)
#define PROGRAM       "uir-tune"
#define PROGRAM_USAGE "uir-tune MODEL.onnx [--seconds S] [OPTION...]"
#define PROGRAM_PURPOSE                                                                                                \
    "Measures tile sizes for the kernels that take most of a run, and stores the best in the cache, where uir-run "    \
    "and uir-pack --tune find them. No bit of a result changes."
#define PROGRAM_EXITS                                                                                                  \
    "Exit codes: 0 tuned, 2 usage, 3 bad model or data file, 4 no native code for the model, 5 compiler or machine "   \
    "failed, 130 and 143 interrupted."
#define PROGRAM_VALUE_FILES ".npy .npz .pb .raw .png .jpg .ppm .bmp; FILE.npz:MEMBER for one array of several"
#define PROGRAM_OPTIONS     "../tune/options.def"
#elif defined(PROGRAM_UIR_OPT)
#define PROGRAM         "uir-opt" /* has options of its own; shared code uses those of uir-run */
#define PROGRAM_OPTIONS "options.def"
#else
#define PROGRAM_COMPARES /* compares results with expected ones */
#if defined(PROGRAM_UIR_RUN_PACKAGE)
#define PROGRAM                "uir-run-package"
#define PROGRAM_USAGE          "uir-run-package PACKAGE.uir [OPTION...]"
#define PROGRAM_PURPOSE        "Runs a package on the runtime, without a compiler, and shows its outputs."
#define PROGRAM_VALUE_FILES    ".npy .pb .raw"
#define PROGRAM_ALSO_SECONDS   ""
#define PROGRAM_LACKS_COMPILER "it has neither the compiler nor the picture decoders"
#else
#define PROGRAM       "uir-run"
#define PROGRAM_USAGE "uir-run MODEL.onnx|PACKAGE.uir [OPTION...]"
#define PROGRAM_PURPOSE                                                                                                \
    "Runs an ONNX model, or a package of one, and shows its outputs. Inputs come from --data or --input; the rest "    \
    "are "                                                                                                             \
    "seeded random."
#define PROGRAM_VALUE_FILES  ".npy .npz .pb .raw .png .jpg .ppm .bmp; FILE.npz:MEMBER for one array of several"
#define PROGRAM_ALSO_SECONDS "; with --reduce: time to search (default 300)"
#endif
#define PROGRAM_EXITS                                                                                                  \
    "Exit codes: 0 ran (and agreed), 1 outputs differ, 2 usage, 3 bad model or data file, 4 unsupported, 5 device or " \
    "machine failed, 130 and 143 interrupted."
#define PROGRAM_OPTIONS "options.def"
#endif

/* Why options that need the compiler, or JSON, are refused; NULL: supported. */
#ifndef PROGRAM_LACKS_COMPILER
#define PROGRAM_LACKS_COMPILER NULL
#endif
#ifdef UIR_NO_JSON
#define PROGRAM_LACKS_JSON "it was built without cJSON"
#else
#define PROGRAM_LACKS_JSON NULL
#endif

#endif
