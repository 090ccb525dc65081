/* Kernels as C with GNU vector extensions: the prelude, the frame of a phase, and what C has of its own. */
#include "backends/cpu/target/cpu.h"
#include "backends/source/vector/emit.h"

#include <string.h>

#define PAGE_BYTES 4096

/* The local pointers; a vector's width of slack, since an address one past a row's end is formed; and a page, as they
 * begin where declare_local says. */
uir_dim uir_cpu_scratch_bytes(const uir_igraph *igraph) {
    return uir_dim_add(igraph->dims, uir_vector_local_bytes(igraph), uir_dim_const(igraph->dims, 64 + PAGE_BYTES));
}

uir_status uir_cpu_scratch_size(const uir_igraph *igraph, const int64_t *values, size_t *out_size) {
    int64_t size;
    uint32_t count = uir_dims_symbol_count(igraph->dims);
    uir_dim bytes = uir_cpu_scratch_bytes(igraph);
    if (!bytes.id) return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    uir_dim_result result = uir_dim_evaluate(igraph->dims, bytes, values, NULL, count, &size);
    if (result == UIR_DIM_OVERFLOW) return UIR_STATUS_LIMIT;
    if (result != UIR_DIM_EVALUATED) return UIR_STATUS_INVALID_ARGUMENT;
    *out_size = (size_t)size;
    return UIR_STATUS_OK;
}

/* ---- the frame of a phase ---- */
static void open_phase(emitter *e, const char *symbol, uint32_t index) {
    const char *head = uir_c_format(&e->c,
                                    "void %s_phase%u(const int64_t *symbols, void *const *pointers, void *scratch, "
                                    "int64_t begin, int64_t end, const volatile _Bool *cancel)",
                                    symbol, index);
    uir_c_line(&e->c, "%s;", head);
    uir_c_open(&e->c, "%s", head);
    uir_c_line(&e->c, "UIR_ALIGN_STACK;");
    uir_c_line(&e->c, "(void)symbols, (void)pointers, (void)scratch, (void)cancel;");
}

/* Half a page from where the first tensor begins: a load that agrees with an earlier store in the bits of a page waits
 * for it, and rows of whole pages would agree all along. */
static void declare_local(emitter *e) {
    const uir_igraph *g = e->c.igraph;
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) arguments += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    uir_c_line(&e->c, "char *const on_chip __attribute__((unused)) = (char *)scratch + %s;",
               arguments ? uir_c_format(&e->c, "(((uintptr_t)pointers[0] + %u - (uintptr_t)scratch) & %u)",
                                        PAGE_BYTES / 2u, PAGE_BYTES - 64u)
                         : "0");
}

static const char *argument(emitter *e, uint32_t number) {
    return uir_c_format(&e->c, "pointers[%u]", number);
}

static const uir_vector_dialect dialect = {.memory = "",
                                           .lanes = "",
                                           .has_one_memory = true,
                                           .has_streams = true,
                                           .has_cancel = true,
                                           .casts_bits = true,
                                           .open_phase = open_phase,
                                           .declare_local = declare_local,
                                           .argument = argument};

/* ---- kernels ---- */
uir_status uir_cpu_emit_prelude(uir_text *text) {
    for (uint32_t i = 0; i < uir_cpu_prelude_count; i++)
        uir_text_append(text, uir_cpu_prelude_parts[i], uir_cpu_prelude_sizes[i]);
    uir_text_append_string(text, "\n#define UIR_LET const int64_t __attribute__((unused))\n\n");
    return uir_text_status(text);
}

uir_status uir_cpu_emit_kernel(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    if (strcmp(igraph->machine->name, "cpu") != 0)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "kernel @%s is for the device %s, not for a cpu", igraph->name, igraph->machine->name);
    return uir_vector_emit(igraph, &dialect, index, text, diagnostics);
}

uir_status uir_cpu_emit(const uir_igraph *const *igraphs, uint32_t count, uir_text *text,
                        uir_diagnostics *diagnostics) {
    uir_text_append_string(text,
                           "/* Kernels for a CPU, written by uir. The first part is the same in every file. */\n");
    UIR_TRY(uir_cpu_emit_prelude(text));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_cpu_emit_kernel(igraphs[i], i, text, diagnostics));
    return uir_text_status(text);
}
