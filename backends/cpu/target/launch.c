/* Runs a loaded kernel: binds its sizes, gives every thread a unit's scratch, splits each phase's flat indices. */
#include "backends/cpu/target/compile.h"
#include "backends/source/source.h"

#include <pthread.h>
#include <string.h>

typedef struct bound_phase {
    uir_cpu_phase_function function;
    int64_t indices;
} bound_phase;

struct uir_cpu_launch {
    uir_arena arena;
    bound_phase *phases;
    uint32_t phase_count;
    int64_t *symbols; /* DIM values, then TILE values */
    void **pointers;
    char *scratch; /* of the caller's thread */
    size_t scratch_size;
    bool never; /* set: what runs here is not stopped */
};

static uir_status copy_symbols(uir_cpu_launch *l, const uir_igraph *igraph, const uir_kernel_arguments *arguments) {
    uint32_t dims = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_DIM),
             tiles = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_TILE);
    UIR_TRY_ALLOCATE(l->symbols, uir_arena_allocate_array(&l->arena, dims + tiles + 1, sizeof *l->symbols));
    if (dims) memcpy(l->symbols, arguments->dim_values, dims * sizeof *l->symbols);
    if (tiles) memcpy(l->symbols + dims, arguments->tile_values, tiles * sizeof *l->symbols);
    return UIR_STATUS_OK;
}

static uir_status copy_pointers(uir_cpu_launch *l, const uir_igraph *igraph, const uir_kernel_arguments *arguments) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < igraph->pointers.count; i++) count += igraph->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    UIR_TRY_ALLOCATE(l->pointers, uir_arena_allocate_array(&l->arena, count + 1, sizeof *l->pointers));
    if (count) memcpy(l->pointers, arguments->pointers, count * sizeof *l->pointers);
    return UIR_STATUS_OK;
}

static uir_status bind_phases(uir_cpu_launch *l, const uir_cpu_module *module, const uir_igraph *igraph, uint32_t index,
                              const int64_t *values, const bool *bound, uir_diagnostics *diagnostics) {
    char symbol[UIR_C_SYMBOL_SIZE];
    uir_c_symbol(igraph, index, symbol);
    l->phase_count = igraph->phases.count;
    UIR_TRY_ALLOCATE(l->phases, uir_arena_allocate_array(&l->arena, l->phase_count + 1, sizeof *l->phases));
    for (uint32_t p = 0; p < l->phase_count; p++) {
        const uir_iphase *phase = &igraph->phases.data[p];
        int64_t total = 1;
        for (uint32_t a = 0; a < phase->parallel_count; a++) {
            int64_t extent;
            if (uir_dim_evaluate(igraph->dims, phase->parallel[a].extent, values, bound,
                                 uir_dims_symbol_count(igraph->dims), &extent) != UIR_DIM_EVALUATED ||
                __builtin_mul_overflow(total, extent < 0 ? 0 : extent, &total))
                return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                 "kernel @%s: the parallel extents of phase %u cannot be evaluated for these sizes",
                                 igraph->name, p);
        }
        l->phases[p].indices = total;
        l->phases[p].function = uir_cpu_module_find(module, symbol, p);
        if (!l->phases[p].function)
            return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "the compiled kernels have no %s_phase%u",
                             symbol, p);
    }
    return UIR_STATUS_OK;
}

static uir_status prepare(uir_cpu_launch *l, const uir_cpu_module *module, const uir_igraph *igraph, uint32_t index,
                          const uir_kernel_arguments *arguments, uir_diagnostics *diagnostics) {
    uint32_t count = uir_dims_symbol_count(igraph->dims);
    int64_t *values;
    bool *bound;
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(&l->arena, count + 1, sizeof *values));
    UIR_TRY_ALLOCATE(bound, uir_arena_allocate_array(&l->arena, count + 1, sizeof *bound));
    UIR_TRY(uir_igraph_bind(igraph, arguments->dim_values, arguments->tile_values, values, bound, diagnostics));
    UIR_TRY(copy_symbols(l, igraph, arguments));
    UIR_TRY(copy_pointers(l, igraph, arguments));
    UIR_TRY(bind_phases(l, module, igraph, index, values, bound, diagnostics));
    uir_status status = uir_cpu_scratch_size(igraph, values, &l->scratch_size);
    if (status != UIR_STATUS_OK)
        return uir_error(diagnostics, status, NULL, "kernel @%s: its on-chip pointers have no size for these sizes",
                         igraph->name);
    UIR_TRY_ALLOCATE(l->scratch, uir_arena_allocate(&l->arena, l->scratch_size));
    return UIR_STATUS_OK;
}

uir_status uir_cpu_launch_create(const uir_cpu_module *module, const uir_igraph *igraph, uint32_t index,
                                 const uir_kernel_arguments *arguments, uir_diagnostics *diagnostics,
                                 uir_cpu_launch **out_launch) {
    uir_cpu_launch *l;
    UIR_TRY_ALLOCATE(l, uir_allocate_zeroed(&module->allocator, sizeof *l));
    uir_arena_init(&l->arena, &module->allocator);
    uir_status status = prepare(l, module, igraph, index, arguments, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_cpu_launch_destroy(l);
        return status;
    }
    *out_launch = l;
    return UIR_STATUS_OK;
}

void uir_cpu_launch_destroy(uir_cpu_launch *l) {
    if (!l) return;
    uir_allocator allocator = l->arena.allocator;
    uir_arena_deinit(&l->arena);
    uir_release(&allocator, l, sizeof *l);
}

void uir_cpu_launch_run(uir_cpu_launch *l) {
    for (uint32_t p = 0; p < l->phase_count; p++)
        l->phases[p].function(l->symbols, l->pointers, l->scratch, 0, l->phases[p].indices, &l->never);
}

typedef struct worker {
    pthread_t thread;
    bool started;
    const uir_cpu_launch *launch;
    uir_cpu_phase_function function;
    char *scratch;
    int64_t begin, end;
} worker;

static void *work(void *argument) {
    worker *w = argument;
    w->function(w->launch->symbols, w->launch->pointers, w->scratch, w->begin, w->end, &w->launch->never);
    return NULL;
}

/* Each thread takes one contiguous part; what no thread could be made for runs here. */
static void run_phase(const uir_cpu_launch *l, const bound_phase *phase, worker *workers, uint32_t threads) {
    for (uint32_t t = 0; t < threads; t++) {
        worker *w = &workers[t];
        w->launch = l;
        w->function = phase->function;
        w->begin = phase->indices / threads * t + (t < phase->indices % threads ? t : phase->indices % threads);
        w->end = w->begin + phase->indices / threads + (t < phase->indices % threads);
        w->started = t + 1 < threads && w->begin < w->end && pthread_create(&w->thread, NULL, work, w) == 0;
    }
    for (uint32_t t = threads; t-- > 0;) {
        if (!workers[t].started && workers[t].begin < workers[t].end) work(&workers[t]);
    }
    for (uint32_t t = 0; t < threads; t++) {
        if (workers[t].started) pthread_join(workers[t].thread, NULL);
    }
}

static uir_status run_threads(uir_cpu_launch *l, uint32_t threads) {
    worker *workers;
    UIR_TRY_ALLOCATE(workers, uir_arena_allocate_array(&l->arena, threads, sizeof *workers));
    for (uint32_t t = 0; t < threads; t++) {
        if (t == 0)
            workers[t].scratch = l->scratch;
        else
            UIR_TRY_ALLOCATE(workers[t].scratch, uir_arena_allocate(&l->arena, l->scratch_size));
    }
    for (uint32_t p = 0; p < l->phase_count; p++) run_phase(l, &l->phases[p], workers, threads);
    return UIR_STATUS_OK;
}

uir_status uir_cpu_run(const uir_cpu_module *module, const uir_igraph *igraph, uint32_t index,
                       const uir_kernel_arguments *arguments, uint32_t threads, uir_diagnostics *diagnostics) {
    uir_cpu_launch *l;
    UIR_TRY(uir_cpu_launch_create(module, igraph, index, arguments, diagnostics, &l));
    uir_status status = UIR_STATUS_OK;
    if (threads > 1)
        status = run_threads(l, threads);
    else
        uir_cpu_launch_run(l);
    uir_cpu_launch_destroy(l);
    return status;
}
