/* Kernels as a program that reads calls from its standard input, for machines that only an emulator runs here.
 *
 * A call is 64-bit words: 1, the kernel, its phases and each one's indices, the number of symbols and their values, the
 * bytes of scratch, the number of pointers and each one's bytes; then the pointers' contents. The answer is the
 * contents of all pointers after the kernel. A word 0 ends the program. */
#include "backends/cpu/target/cpu.h"
#include "backends/source/source.h"

#include <string.h>

static const char *const main_text =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "static int64_t word(void) {\n"
    "    int64_t value = 0;\n"
    "    if (fread(&value, sizeof value, 1, stdin) != 1) return 0;\n"
    "    return value;\n"
    "}\n"
    "static const volatile _Bool never;\n"
    "static void *rooms[257];\n"
    "static int room_count;\n"
    "static void *room(int64_t size) {\n" /* of just this size: a sanitizer sees an access beyond it */
    "    void *memory = NULL;\n"
    "    if (posix_memalign(&memory, 64, size > 0 ? (size_t)size : 1)) return NULL;\n"
    "    return rooms[room_count++] = memory;\n"
    "}\n"
    "int main(void) {\n"
    "    while (word() == 1) {\n"
    "        int64_t kernel = word(), phases = word(), indices[64], symbols[256], bytes[256];\n"
    "        void *pointers[256];\n"
    "        if (phases > 64) return 2;\n"
    "        for (int64_t i = 0; i < phases; i++) indices[i] = word();\n"
    "        int64_t count = word();\n"
    "        if (count > 256) return 2;\n"
    "        for (int64_t i = 0; i < count; i++) symbols[i] = word();\n"
    "        void *scratch = room(word());\n"
    "        if (!scratch) return 3;\n"
    "        int64_t arguments = word();\n"
    "        if (arguments > 256) return 2;\n"
    "        for (int64_t i = 0; i < arguments; i++) bytes[i] = word();\n"
    "        for (int64_t i = 0; i < arguments; i++) {\n"
    "            pointers[i] = room(bytes[i]);\n"
    "            if (!pointers[i]) return 3;\n"
    "            if (bytes[i] && fread(pointers[i], (size_t)bytes[i], 1, stdin) != 1) return 2;\n"
    "        }\n"
    "        for (int64_t i = 0; i < phases; i++) kernels[kernel][i](symbols, pointers, scratch, 0, indices[i], "
    "&never);\n"
    "        for (int64_t i = 0; i < arguments; i++) fwrite(pointers[i], (size_t)bytes[i], 1, stdout);\n"
    "        fflush(stdout);\n"
    "        while (room_count) free(rooms[--room_count]);\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

uir_status uir_cpu_emit_main(const uir_igraph *const *igraphs, uint32_t count, uir_text *text) {
    uint32_t most = 1;
    char symbol[UIR_C_SYMBOL_SIZE];
    for (uint32_t i = 0; i < count; i++) most = igraphs[i]->phases.count > most ? igraphs[i]->phases.count : most;
    uir_text_append_format(text,
                           "static void (*const kernels[][%u])(const int64_t *, void *const *, void *, int64_t, "
                           "int64_t, const volatile _Bool *) = {\n",
                           most);
    for (uint32_t i = 0; i < count; i++) {
        uir_c_symbol(igraphs[i], i, symbol);
        uir_text_append_string(text, "    {");
        for (uint32_t p = 0; p < igraphs[i]->phases.count; p++) uir_text_append_format(text, "%s_phase%u, ", symbol, p);
        uir_text_append_string(text, "},\n");
    }
    uir_text_append_string(text, "};\n");
    uir_text_append_string(text, main_text);
    return uir_text_status(text);
}

static void append_word(uir_text *text, int64_t value) {
    uir_text_append(text, (const char *)&value, sizeof value);
}

uir_status uir_cpu_write_call(const uir_igraph *igraph, uint32_t index, const uir_kernel_arguments *arguments,
                              uir_diagnostics *diagnostics, uir_text *call, size_t *out_answer_size) {
    uint32_t count = uir_dims_symbol_count(igraph->dims), pointers = 0;
    size_t scratch, size = count * (sizeof(int64_t) + sizeof(bool)) + 16, bytes;
    char *block;
    UIR_TRY_ALLOCATE(block, uir_allocate_zeroed(&igraph->allocator, size));
    int64_t *values = (int64_t *)(void *)block;
    bool *bound = (bool *)(block + count * sizeof(int64_t));
    uir_status status =
        uir_igraph_bind(igraph, arguments->dim_values, arguments->tile_values, values, bound, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_cpu_scratch_size(igraph, values, &scratch);
    if (status != UIR_STATUS_OK) goto done;
    append_word(call, 1);
    append_word(call, index);
    append_word(call, igraph->phases.count);
    for (uint32_t p = 0; p < igraph->phases.count; p++) {
        int64_t total = 1, extent = 0;
        for (uint32_t a = 0; a < igraph->phases.data[p].parallel_count; a++) {
            if (uir_dim_evaluate(igraph->dims, igraph->phases.data[p].parallel[a].extent, values, bound, count,
                                 &extent) != UIR_DIM_EVALUATED ||
                __builtin_mul_overflow(total, extent < 0 ? 0 : extent, &total)) {
                status = UIR_STATUS_INVALID_ARGUMENT;
                goto done;
            }
        }
        append_word(call, total);
    }
    uint32_t dims = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_DIM),
             tiles = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_TILE);
    append_word(call, dims + tiles);
    for (uint32_t i = 0; i < dims; i++) append_word(call, arguments->dim_values[i]);
    for (uint32_t i = 0; i < tiles; i++) append_word(call, arguments->tile_values[i]);
    append_word(call, (int64_t)scratch);
    for (uint32_t i = 0; i < igraph->pointers.count; i++)
        pointers += igraph->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    append_word(call, pointers);
    *out_answer_size = 0;
    for (uint32_t pass = 0, argument = 0; pass < 2; pass++, argument = 0) {
        for (uint32_t i = 0; i < igraph->pointers.count; i++) {
            const uir_ipointer *p = &igraph->pointers.data[i];
            int64_t span;
            if (p->role == UIR_IPOINTER_LOCAL) continue;
            if (uir_dim_evaluate(igraph->dims, p->element_span, values, bound, count, &span) != UIR_DIM_EVALUATED ||
                !uir_dtype_storage_size(p->dtype, span > 0 ? (uint64_t)span : 0, &bytes)) {
                status = UIR_STATUS_INVALID_ARGUMENT;
                goto done;
            }
            if (pass == 0) {
                append_word(call, (int64_t)bytes);
                *out_answer_size += bytes;
            } else {
                uir_text_append(call, arguments->pointers[argument++], bytes);
            }
        }
    }
    status = uir_text_status(call);
done:
    uir_release(&igraph->allocator, block, size);
    return status;
}
