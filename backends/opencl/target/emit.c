/* Kernels as OpenCL C: the frame of a phase, and the words of OpenCL C for vectors. */
#include "backends/opencl/target/opencl.h"
#include "backends/source/threads/emit.h"

#include <string.h>

static bool is_for_groups(const uir_igraph *igraph) {
    return uir_machine_threads(igraph->machine) > 1;
}

static const uir_threads_dialect of_groups;

/* ---- the frame of a phase ---- */
static uint32_t count_arguments(const uir_igraph *g) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) count += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    return count;
}

static void open_phase(emitter *e, const char *symbol, uint32_t index) {
    const char *arguments = "";
    for (uint32_t i = 0; i < count_arguments(e->c.igraph); i++)
        arguments = uir_c_format(&e->c, "%s__global uchar *uir_p%u, ulong uir_o%u, ", arguments, i, i);
    uir_c_line(&e->c, "__kernel __attribute__((reqd_work_group_size(%u, 1, 1)))",
               uir_machine_threads(e->c.igraph->machine));
    uir_c_open(&e->c,
               "void %s_phase%u(%s__global const long *symbols, long uir_first, long uir_last, __global uchar "
               "*uir_scratch, ulong uir_scratch_size, __local uchar *uir_shared)",
               symbol, index, arguments);
    uir_c_line(&e->c, "UIR_LET uir_group = (long)get_group_id(0), uir_groups = (long)get_num_groups(0);");
    uir_c_line(&e->c, "UIR_LET begin = uir_first + (uir_last - uir_first) * uir_group / uir_groups;");
    uir_c_line(&e->c, "UIR_LET end = uir_first + (uir_last - uir_first) * (uir_group + 1) / uir_groups;");
    if (is_for_groups(e->c.igraph)) {
        uir_c_line(&e->c, "__local uchar *const uir_lanes = uir_shared;");
        uir_c_line(&e->c, "volatile __local int *const uir_zero = (volatile __local int *)(uir_shared + %u);",
                   uir_machine_threads(e->c.igraph->machine) * UIR_THREADS_REDUCTION_BYTES);
        uir_c_line(&e->c, "int uir_thread = (int)get_local_id(0);");
        uir_c_line(&e->c, "*uir_zero = 0;");
        uir_c_line(&e->c, "%s", of_groups.barrier);
    } else {
        uir_c_line(&e->c, "if (begin >= end) return;");
        uir_c_line(&e->c, "__global uchar *const arrays = uir_scratch + (ulong)uir_group * uir_scratch_size;");
    }
}

static void declare_local(emitter *e) {
    uir_c_line(&e->c, "__global uchar *const on_chip = arrays + %d;", UIR_VECTOR_ARRAY_BYTES);
}

static const char *argument(emitter *e, uint32_t number) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < e->c.igraph->pointers.count; i++) {
        const uir_ipointer *p = &e->c.igraph->pointers.data[i];
        if (p->role != UIR_IPOINTER_LOCAL && seen++ == number)
            return uir_c_format(&e->c, "(__global %s *)(uir_p%u + uir_o%u)", uir_c_type(p->dtype), number, number);
    }
    return "0";
}

#define WORDS                                                                                                          \
    {                                                                                                                  \
        .memory = "__global ", .lanes = "lanes_", .open_phase = open_phase, .declare_local = declare_local,            \
        .argument = argument                                                                                           \
    }
static const uir_vector_dialect of_items = WORDS;
/* The thread's number is computed anew behind each barrier, with a number from memory: a compiler that executes
 * work-items as a loop (PoCL 3.1) may take a condition on it that holds in each turn of a loop out of that loop, whose
 * barriers are then reached by some work-items only. */
static const uir_threads_dialect of_groups = {.vector = WORDS,
                                              .shared = "__local ",
                                              .thread = "uir_thread",
                                              .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); "
                                                         "uir_thread = (int)get_local_id(0) + *uir_zero;"};

/* ---- kernels ---- */
uir_dim uir_opencl_scratch_bytes(const uir_igraph *igraph) {
    if (is_for_groups(igraph)) return uir_threads_shared_bytes(igraph);
    return uir_dim_add(igraph->dims, uir_vector_local_bytes(igraph),
                       uir_dim_const(igraph->dims, UIR_VECTOR_ARRAY_BYTES + 64));
}

uir_status uir_opencl_emit_kernel(const uir_igraph *igraph, uint32_t index, uir_text *text,
                                  uir_diagnostics *diagnostics) {
    return is_for_groups(igraph) ? uir_threads_emit(igraph, &of_groups, index, text, diagnostics)
                                 : uir_vector_emit(igraph, &of_items, index, text, diagnostics);
}
