/* Every function of floats over special numbers, random ones and random bits of every float type, against MPFR.
 *
 *   uir-functions [--share N] [--folder DIR] [--jobs N] [--dtype NAME] [--table]
 *
 * A model per dtype has every function once, each with inputs of its own. It runs by the interpreter, which folds
 * constants too, by the VM and compiled: each within the ulp of ir/kernel/interpret/kernel_math.def, and the last two with the same
 * bits. f16 and bf16 are tried whole (10 million pairs), f32 at 10 million arguments, f64 at a million; --share N: an
 * N-th of what is not whole. Exact results are computed once and kept in the folder (build/functions). Out: with
 * --table the worst ulp seen of each function and dtype beside what is stated; `N passed, M failed`, a test being a
 * function, a dtype and an engine. */
#include "tests/functions/functions.h"

#include "base/dtype.h"
#include "tests/api/small.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 65536, ENGINES = 3 };
static const char *const engines[ENGINES] = {"interpreter", "vm", "cpu"};
static const uir_dtype dtypes[] = {UIR_DTYPE_F16, UIR_DTYPE_BF16, UIR_DTYPE_F32, UIR_DTYPE_F64};

typedef struct settings {
    uint64_t share;
    const char *folder, *dtype;
    uint32_t jobs;
    bool table;
} settings;

typedef struct outcome {
    double worst, first, second, got, expected; /* where */
    uint64_t different;                         /* bits unlike the VM's */
    double where_different;
} outcome;

/* ---- the model ---- */
static blob make_functions(uir_dtype dtype) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "functions");
    for (uint32_t i = 0; i < function_count; i++) {
        const function *f = &functions[i];
        char inputs[40], a[20], b[20], output[20];
        snprintf(a, sizeof a, "a%u", i);
        snprintf(b, sizeof b, "b%u", i);
        snprintf(output, sizeof output, "y%u", i);
        snprintf(inputs, sizeof inputs, f->binary ? "%s,%s" : "%s", a, b);
        put_message(&graph, GRAPH_INPUT, make_value(a, (int32_t)dtype, "n"));
        if (f->binary) put_message(&graph, GRAPH_INPUT, make_value(b, (int32_t)dtype, "n"));
        put_message(&graph, GRAPH_OUTPUT, make_value(output, (int32_t)dtype, "n"));
        blob node = make_node(f->op, output, inputs, output);
        if (f->attribute) put_message(&node, NODE_ATTRIBUTE, make_int_attribute(f->attribute, 1));
        put_message(&graph, GRAPH_NODE, node);
    }
    blob model = blob_new();
    put_int(&model, MODEL_IR_VERSION, 10);
    put_message(&model, MODEL_OPSET, make_opset("", 22));
    put_message(&model, MODEL_GRAPH, graph);
    return model;
}

/* ---- errors ---- */
typedef struct form {
    int digits, least, beyond; /* exponents: of the least normal number; of what no number reaches */
} form;

static form form_of(uir_dtype dtype) {
    switch (uir_dtype_bits(dtype)) {
    case 64:
        return (form){53, -1022, 1024};
    case 32:
        return (form){24, -126, 128};
    default:
        return dtype == UIR_DTYPE_F16 ? (form){11, -14, 16} : (form){8, -126, 128};
    }
}

/* In units of the exact result's last place. What no number reaches counts as the next one after the last. */
static double error_of(const form *form, double got, double high, double low, bool loose) {
    if (isnan(high) || isnan(got)) return isnan(high) && isnan(got) ? 0 : INFINITY;
    if (isinf(high)) return got == high ? 0 : INFINITY;
    if (!loose && got == 0 && !signbit(got) != !signbit(high)) return INFINITY;
    int exponent = high == 0 ? form->least : ilogb(high);
    if (exponent < form->least) exponent = form->least;
    if (exponent >= form->beyond) {
        exponent = form->beyond - 1;
        high = copysign(ldexp(1, form->beyond), high);
    }
    double unit = ldexp(1, exponent - form->digits + 1);
    if (isinf(got)) return fabs((copysign(ldexp(1, form->beyond - 1), got) - high / 2) / unit * 2 - low);
    return fabs((got - high) / unit - low);
}

static double stated(const function *f, uir_dtype dtype) {
    double ulp = functions_ulp(f, dtype == UIR_DTYPE_F64 ? dtype : UIR_DTYPE_F32);
    if (uir_dtype_bits(dtype) > 16) return ulp;
    return 0.5 + (ulp == 0.5 ? 0 : ldexp(ulp, form_of(dtype).digits - 24));
}

/* ---- runs ---- */
typedef struct engine {
    uir_model *model;
    uir_session *session;
} engine;

typedef struct trial {
    const settings *settings;
    uir_dtype dtype;
    uir_context *context;
    engine engines[ENGINES];
    uint64_t counts[2]; /* of one argument, of two */
    exact *exact;       /* by function */
    outcome *outcomes;  /* by function and engine */
    uir_value *inputs[128];
} trial;

static void say(const trial *t, const char *what) {
    fprintf(stderr, "uir-functions: %s of %s\n", what, uir_dtype_name(t->dtype));
    for (size_t i = 0; i < uir_context_message_count(t->context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(t->context, i));
}

static bool load(trial *t) {
    char cache[600];
    blob model = make_functions(t->dtype);
    bool fine = uir_context_create(NULL, &t->context) == UIR_STATUS_OK;
    snprintf(cache, sizeof cache, "%s/cache", t->settings->folder);
    for (int e = 0; e < ENGINES && fine; e++) {
        uir_model_options options = {.struct_size = sizeof options, .device = engines[e], .wait = true, .cache = cache};
        engine *engine = &t->engines[e];
        fine = uir_model_load_memory(t->context, model.data, model.length, NULL, &options, &engine->model) ==
                   UIR_STATUS_OK &&
               uir_session_create(engine->model, NULL, &engine->session) == UIR_STATUS_OK;
    }
    blob_free(&model);
    if (!fine) say(t, "no session");
    return fine;
}

/* Which of the block's elements a function has. */
static uint64_t block_end(const trial *t, const function *f, uint64_t start) {
    uint64_t count = t->counts[f->binary != NULL];
    return count < start + BLOCK ? count : start + BLOCK;
}

static bool set_inputs(trial *t, uint64_t start, uint64_t length) {
    uint32_t at = 0;
    int64_t shape[] = {(int64_t)length};
    for (uint32_t i = 0; i < function_count; i++) {
        for (int second = 0; second < (functions[i].binary ? 2 : 1); second++, at++) {
            uir_value_destroy(t->inputs[at]);
            t->inputs[at] = NULL;
            if (uir_value_create_tensor(t->context, t->dtype, 1, shape, &t->inputs[at]) != UIR_STATUS_OK) return false;
            void *data = uir_value_get_data(t->inputs[at]);
            memset(data, 0, (size_t)length * uir_dtype_bits(t->dtype) / 8);
            for (uint64_t k = start; k < block_end(t, &functions[i], start); k++)
                uir_dtype_store_double(t->dtype, data, k - start,
                                       functions_argument(&functions[i], t->dtype, k, second), UIR_ROUND_NEAREST_EVEN);
            bool fine = true;
            for (int e = 0; e < ENGINES && fine; e++)
                fine = uir_session_set_input(t->engines[e].session, at, t->inputs[at]) == UIR_STATUS_OK;
            if (!fine) return false;
        }
    }
    return true;
}

static void compare(trial *t, uint32_t i, uint64_t start, const void *const *results) {
    const function *f = &functions[i];
    form form = form_of(t->dtype);
    for (int e = 0; e < ENGINES; e++) {
        outcome *o = &t->outcomes[i * ENGINES + (uint32_t)e];
        for (uint64_t k = start; k < block_end(t, f, start); k++) {
            double got = uir_dtype_load_double(t->dtype, results[e], k - start), high = t->exact[i].high[k];
            double low = t->exact[i].low ? (double)t->exact[i].low[k] : 0;
            double error = error_of(&form, got, high, low, f->loose);
            if (error > o->worst) {
                o->worst = error;
                o->first = functions_argument(f, t->dtype, k, false);
                o->second = f->binary ? functions_argument(f, t->dtype, k, true) : 0;
                o->got = got;
                o->expected = high;
            }
            double vm = uir_dtype_load_double(t->dtype, results[1], k - start);
            if (e == 2 && memcmp(&got, &vm, sizeof vm) && !(isnan(got) && isnan(vm))) {
                o->different++;
                o->where_different = functions_argument(f, t->dtype, k, false);
            }
        }
    }
}

static bool run(trial *t) {
    uint64_t most = t->counts[0] > t->counts[1] ? t->counts[0] : t->counts[1];
    for (uint64_t start = 0; start < most; start += BLOCK) {
        bool fine = set_inputs(t, start, most - start < BLOCK ? most - start : BLOCK);
        for (int e = 0; e < ENGINES && fine; e++) fine = uir_session_run(t->engines[e].session) == UIR_STATUS_OK;
        for (uint32_t i = 0; i < function_count && fine; i++) {
            const void *results[ENGINES] = {NULL};
            for (int e = 0; e < ENGINES && fine; e++) {
                uir_value *value = NULL;
                fine = uir_session_get_output(t->engines[e].session, i, &value) == UIR_STATUS_OK;
                results[e] = fine ? uir_value_get_data(value) : NULL;
            }
            if (fine) compare(t, i, start, results);
        }
        if (!fine) {
            say(t, "no results");
            return false;
        }
    }
    return true;
}

/* ---- what came of it ---- */
static void report(const trial *t, uint32_t *passed, uint32_t *failed) {
    for (uint32_t i = 0; i < function_count; i++) {
        const function *f = &functions[i];
        const outcome *o = &t->outcomes[i * ENGINES];
        double most = stated(f, t->dtype);
        char name[40];
        snprintf(name, sizeof name, "%s%s%s", f->op, f->attribute ? " " : "", f->attribute ? f->attribute : "");
        for (int e = 0; e < ENGINES; e++) {
            bool fine = o[e].worst <= most && !o[e].different;
            *(fine ? passed : failed) += 1;
            if (o[e].worst > most)
                printf("FAIL %s of %s by %s: %.4g ulp, %.6g stated: of %.17g and %.17g it is %.17g, not %.17g\n", name,
                       uir_dtype_name(t->dtype), engines[e], o[e].worst, most, o[e].first, o[e].second, o[e].got,
                       o[e].expected);
            if (o[e].different)
                printf("FAIL %s of %s by %s: %llu results have other bits than the VM's, as that of %.17g\n", name,
                       uir_dtype_name(t->dtype), engines[e], (unsigned long long)o[e].different, o[e].where_different);
        }
        if (t->settings->table)
            printf("| %s | %s | %.4f | %.4f | %.4f | %.5g |\n", name, uir_dtype_name(t->dtype), o[0].worst, o[1].worst,
                   o[2].worst, most);
    }
}

static bool try_dtype(const settings *settings, uir_dtype dtype, uint32_t *passed, uint32_t *failed) {
    bool half = uir_dtype_bits(dtype) == 16;
    uint64_t many = (dtype == UIR_DTYPE_F64 ? 1000000 : 10000000) / settings->share;
    trial t = {.settings = settings, .dtype = dtype, .counts = {half ? 65536 : many, many}};
    t.exact = calloc(function_count, sizeof *t.exact);
    t.outcomes = calloc((size_t)function_count * ENGINES, sizeof *t.outcomes);
    bool fine =
        t.exact && t.outcomes && functions_prepare(settings->folder, dtype, t.counts[0], t.counts[1], settings->jobs);
    for (uint32_t i = 0; i < function_count && fine; i++)
        fine =
            functions_open(settings->folder, &functions[i], dtype, t.counts[functions[i].binary != NULL], &t.exact[i]);
    fine = fine && load(&t) && run(&t);
    if (fine) report(&t, passed, failed);
    for (int e = 0; e < ENGINES; e++) {
        uir_session_destroy(t.engines[e].session);
        uir_model_destroy(t.engines[e].model);
    }
    for (size_t i = 0; i < sizeof t.inputs / sizeof *t.inputs; i++) uir_value_destroy(t.inputs[i]);
    uir_context_destroy(t.context);
    free(t.outcomes);
    free(t.exact);
    return fine;
}

int main(int argc, char **argv) {
    settings settings = {.share = 1, .folder = "build/functions", .jobs = 2};
    uint32_t passed = 0, failed = 0;
    const char *missing = functions_missing();
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > 0) settings.jobs = (uint32_t)cores;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--table"))
            settings.table = true;
        else if (!strcmp(argv[i], "--share") && value && atoi(value) > 0)
            settings.share = (uint64_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--folder") && value)
            settings.folder = argv[++i];
        else if (!strcmp(argv[i], "--dtype") && value)
            settings.dtype = argv[++i];
        else if (!strcmp(argv[i], "--jobs") && value && atoi(value) > 0)
            settings.jobs = (uint32_t)atoi(argv[++i]);
        else {
            fprintf(stderr, "uir-functions: '%s' is no option, or lacks its value\n", argv[i]);
            return 2;
        }
    }
    mkdir("build", 0777);
    mkdir(settings.folder, 0777);
    if (missing) {
        printf("FAIL no function of tests/functions/functions.def is of the primitive %s\n", missing);
        failed++;
    }
    if (settings.table) printf("| function | dtype | interpreter | vm | cpu | stated |\n|---|---|---|---|---|---|\n");
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        if (settings.dtype && strcmp(settings.dtype, uir_dtype_name(dtypes[d])) != 0) continue;
        failed += !try_dtype(&settings, dtypes[d], &passed, &failed);
    }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
