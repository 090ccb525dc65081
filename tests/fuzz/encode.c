/* Bytecode to begin fuzzing with: `fuzz_encode FOLDER FILE.igraph...` writes the bytecode of every kernel that the VM
 * can run, with the sizes that fuzz_target_bytecode takes from an input's end. */
#include "tests/ir/kernel/campaign/generate.h"
#include "tests/ir/kernel/campaign/harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { GENERATED = 40 };

static const char *folder;
static uint32_t written;

static void encode(harness *h, const char *text, size_t length, const char *file) {
    static const char sizes[] = "\3\5\7\1\4\2\10\20" /* dims */ "\4\4\4\4\2\2\2\2" /* tiles */;
    uir_igraph *igraph = harness_read(h, text, length, file);
    uir_text bytes;
    char path[4096];
    uir_text_init(&bytes, &h->allocator);
    if (igraph && uir_vm_encode(igraph, &h->diagnostics, &bytes) == UIR_STATUS_OK) {
        uir_text_append(&bytes, sizes, sizeof sizes - 1);
        snprintf(path, sizeof path, "%s/%03u", folder, written++);
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(bytes.data, 1, bytes.length, out) != bytes.length || fclose(out) != 0) {
            fprintf(stderr, "%s: cannot be written\n", path);
            exit(1);
        }
    }
    uir_text_deinit(&bytes);
    uir_igraph_destroy(igraph);
    uir_diagnostics_clear(&h->diagnostics);
}

static void encode_file(harness *h, const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    uir_igraph_list list = {0};
    if (file) fclose(file);
    (void)!uir_igraph_parse_list(&h->allocator, uir_compile_machines_get(h->devices), text, length, path,
                                 &h->diagnostics, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        uir_text printed;
        uir_text_init(&printed, &h->allocator);
        uir_igraph_print(list.igraphs[i], &printed);
        encode(h, printed.data, printed.length, path);
        uir_text_deinit(&printed);
    }
    uir_igraph_list_deinit(&list);
}

int main(int count, char **arguments) {
    harness h;
    if (count < 2) return 2;
    folder = arguments[1];
    harness_init(&h, 1);
    for (int i = 2; i < count; i++) encode_file(&h, arguments[i]);
    for (uint64_t seed = 0; seed < GENERATED; seed++) {
        uir_text text;
        uir_text_init(&text, &h.allocator);
        if (generate_igraph(seed, false, &text)) encode(&h, text.data, text.length, "generated");
        uir_text_deinit(&text);
    }
    harness_deinit(&h);
    printf("%u kernels\n", written);
    return written ? 0 : 1;
}
