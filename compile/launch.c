#include "compile/launch.h"

#include <stdio.h>
#include <string.h>

/* Runners of one kernel, made when it is first launched. */
typedef struct kept_runner {
    const uir_igraph *igraph;
    const char *name;
    uir_kernel_runner *runner;
} kept_runner;

struct uir_launcher {
    uir_allocator allocator;
    const uir_lowering *lowering;
    const uir_kernel_code *code; /* NULL: none */
    const volatile bool *cancel;
    uint32_t threads;
    uir_arena arena;
    uir_vector(kept_runner) runners;
};

uir_status uir_launcher_create(const uir_lowering *lowering, const volatile bool *cancel, uint32_t threads,
                               const uir_allocator *allocator, uir_launcher **out_launcher) {
    uir_launcher *launcher;
    UIR_TRY_ALLOCATE(launcher, uir_allocate_zeroed(allocator, sizeof *launcher));
    launcher->allocator = *allocator;
    launcher->lowering = lowering;
    launcher->cancel = cancel;
    launcher->threads = threads;
    uir_arena_init(&launcher->arena, allocator);
    *out_launcher = launcher;
    return UIR_STATUS_OK;
}

void uir_launcher_destroy(uir_launcher *launcher) {
    if (!launcher) return;
    uir_allocator allocator = launcher->allocator;
    for (uint32_t i = 0; i < launcher->runners.count; i++) uir_kernel_runner_destroy(launcher->runners.data[i].runner);
    uir_arena_deinit(&launcher->arena);
    uir_release(&allocator, launcher, sizeof *launcher);
}

void uir_launcher_use(uir_launcher *launcher, const uir_kernel_code *code) {
    launcher->code = code;
}

/* ---- finding ---- */
bool uir_launch_find(uir_launcher *launcher, const uir_node_values *values, uir_launch *out) {
    const uir_module *module = values->module;
    const uir_node_info *node = uir_node_get(module, values->node);
    if (node->op != UIR_OP_GROUP) return false;
    *out = (uir_launch){.launcher = launcher, .values = values, .node = node};
    const uir_dim *sizes = uir_node_dims(module, node, "sizes", &out->size_count);
    uint32_t slack;
    (void)uir_node_ints(module, node, "slack", &slack); /* two numbers each */
    out->slack_count = slack / 2;
    out->kernel = uir_lowering_get_kernel(launcher->lowering, node);
    out->name = uir_string_text(&module->strings, node->name);
    if (!out->kernel || out->size_count + out->slack_count > UIR_LAUNCH_MAX_SIZES) return false;
    for (uint32_t i = 0; i < out->size_count; i++)
        if (uir_dim_evaluate(module->dims, sizes[i], values->symbol_values, values->symbol_bound, values->symbol_count,
                             &out->sizes[i]) != UIR_DIM_EVALUATED)
            return false;
    return true;
}

/* "(1, 3, 96)": the sizes, for messages. */
static void sizes_text(const uir_launch *l, char *text, size_t capacity) {
    size_t used = (size_t)snprintf(text, capacity, "(");
    for (uint32_t i = 0; i < l->size_count && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%lld", i ? ", " : "", (long long)l->sizes[i]);
    if (used < capacity) snprintf(text + used, capacity - used, ")");
}

static uir_status no_variant(const uir_launch *l, uir_diagnostics *diagnostics) {
    char sizes[256];
    sizes_text(l, sizes, sizeof sizes);
    return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "no variant of the kernel @%s fits the sizes %s",
                     l->kernel->name, sizes);
}

static uir_status misfit(const uir_launch *l, const char *file, uint32_t line, uir_diagnostics *diagnostics,
                         const char *what, const char *name) {
    return uir_error(diagnostics, UIR_STATUS_BAD_DATA, &(uir_location){.file = file, .line = line},
                     "the kernel @%s does not fit the group of '%s': %s%s", l->kernel->name, l->name, what, name);
}

static uir_status choose_function(const uir_launch *l, uir_diagnostics *diagnostics, uint32_t *out_variant) {
    const uir_loop_list *list = &l->kernel->lowered.scheduled;
    for (uint32_t v = 0; v < list->count; v++) {
        const uir_loop_function *f = list->variants[v].function;
        int64_t tiles[UIR_LAUNCH_MAX_SIZES];
        uir_diagnostics said;
        if (f->sizes.count != l->size_count)
            return misfit(l, f->file, 0, diagnostics, "the number of dims differs", "");
        if (f->tiles.count > UIR_LAUNCH_MAX_SIZES) continue;
        uir_diagnostics_init(&said, &l->launcher->allocator);
        uir_status status = uir_loop_choose_tiles(f, l->sizes, tiles, &said);
        uir_diagnostics_deinit(&said);
        if (status != UIR_STATUS_OK) continue;
        *out_variant = v;
        return UIR_STATUS_OK;
    }
    return no_variant(l, diagnostics);
}

static bool has_dims(const uir_launch *l, const uir_igraph *g) {
    return uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM) == l->size_count + l->slack_count;
}

static uir_status choose_igraph(const uir_launch *l, uir_diagnostics *diagnostics, uint32_t *out_variant) {
    const uir_igraph_list *list = &l->kernel->lowered.igraphs;
    for (uint32_t v = 0; v < list->count; v++) {
        int64_t tiles[UIR_LAUNCH_MAX_SIZES];
        const uir_igraph *g = list->igraphs[v];
        if (!has_dims(l, g)) return misfit(l, g->file, 0, diagnostics, "the number of dims differs", "");
        if (uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE) > UIR_LAUNCH_MAX_SIZES ||
            uir_igraph_choose_tiles(g, l->sizes, l->launcher->threads, tiles, NULL) != UIR_STATUS_OK)
            continue;
        *out_variant = v;
        return UIR_STATUS_OK;
    }
    return no_variant(l, diagnostics);
}

/* ---- operands and results ---- */
/* What a kernel calls its argument, against what the group has there. */
typedef struct argument {
    const char *name, *file;
    uint32_t line, index;
    bool result;
    uir_dtype dtype;
    uint64_t elements;
} argument;

static uir_status check_argument(const uir_launch *l, const argument *a, uir_diagnostics *diagnostics) {
    uir_datum *const *datums = a->result ? l->values->outputs : l->values->inputs;
    uint32_t count = a->result ? l->node->output_count : l->node->input_count;
    if (a->index >= count || !datums[a->index] || datums[a->index]->kind != UIR_VALUE_TENSOR)
        return misfit(l, a->file, a->line, diagnostics, "the group has no argument at the index of ", a->name);
    const uir_tensor *tensor = datums[a->index]->tensor;
    /* Elements of less than a byte are a kernel's by the bytes that they share. */
    bool shared = uir_dtype_bits(tensor->dtype) < 8 && a->dtype == UIR_DTYPE_U8;
    if (tensor->dtype != a->dtype && !shared)
        return misfit(l, a->file, a->line, diagnostics, "the element type does not match for ", a->name);
    if ((shared ? tensor->byte_size : tensor->element_count) != a->elements)
        return misfit(l, a->file, a->line, diagnostics, "the number of elements does not match for ", a->name);
    return UIR_STATUS_OK;
}

/* The row-major elements of `rank` extents; UINT64_MAX where that is no number. */
static uint64_t count_elements(const uir_dims *dims, const uir_dim *extents, uint32_t rank, const int64_t *values,
                               const bool *bound) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t extent;
        if (uir_dim_evaluate(dims, extents[d], values, bound, uir_dims_symbol_count(dims), &extent) !=
                UIR_DIM_EVALUATED ||
            __builtin_mul_overflow(count, (uint64_t)(extent < 0 ? 0 : extent), &count))
            return UINT64_MAX;
    }
    return count;
}

/* ---- memory ---- */
/* Where a value's elements lie now: false when it has no layout. */
static bool bind_layout(const uir_launch *l, const uir_value_info *info, uir_bound_layout *out_layout) {
    const uir_node_values *v = l->values;
    return info->layout &&
           uir_layout_bind(info->layout, info->type.dims, info->type.rank, v->module->dims, v->symbol_values,
                           v->symbol_bound, v->symbol_count, out_layout) == UIR_STATUS_OK;
}

/* Room for a value in its layout; an operand's elements, row-major, are copied there, a result's (NULL) are not yet. */
static uir_status place_in_layout(const uir_launch *l, const uir_bound_layout *layout, uir_dtype dtype,
                                  const void *row_major, uir_arena *arena, void **out_memory) {
    size_t size;
    if (!uir_dtype_storage_size(dtype, layout->span > 0 ? (uint64_t)layout->span : 0, &size)) return UIR_STATUS_LIMIT;
    UIR_TRY_ALLOCATE(*out_memory, uir_arena_allocate(arena, size + 64));
    return row_major ? uir_layout_pack(layout, dtype, &l->launcher->allocator, row_major, *out_memory) : UIR_STATUS_OK;
}

/* The order of a loop tensor's elements, where its dims do not stand as the value's do: by the layout that the value
 * has in the group's body. */
static bool find_loop_order(const uir_launch *l, const uir_loop_tensor *t, uir_bound_layout *out_layout) {
    const uir_module *module = l->values->module;
    const uir_attribute *attribute = uir_node_find_attribute(module, l->node, "body");
    const uir_graph_info *body = uir_graph_get(module, attribute->value.graph);
    const uir_value_info *info =
        uir_value_info_get(module, (t->role == UIR_LOOP_ROLE_OUT ? body->outputs.data : body->inputs.data)[t->index]);
    uint32_t order[UIR_LAYOUT_MAX_RANK];
    return info->layout && uir_layout_find_order(info->layout, info->type.dims, info->type.rank, module->dims, order) &&
           bind_layout(l, info, out_layout);
}

/* A tensor's memory, in its own order. */
static uir_status place_tensor(const uir_launch *l, const uir_loop_tensor *t, void *const *outputs, uir_arena *arena,
                               void **out_memory) {
    bool result = t->role == UIR_LOOP_ROLE_OUT;
    uir_bound_layout layout;
    *out_memory = result ? outputs[t->index] : l->values->inputs[t->index]->tensor->data;
    if (!find_loop_order(l, t, &layout)) return UIR_STATUS_OK;
    return place_in_layout(l, &layout, t->dtype, result ? NULL : *out_memory, arena, out_memory);
}

/* Results out of their orders. */
static uir_status take_tensors(const uir_launch *l, const uir_loop_function *f, void *const *tensors,
                               void *const *outputs) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        uir_bound_layout layout;
        if (t->role == UIR_LOOP_ROLE_TEMP) continue;
        if (t->role == UIR_LOOP_ROLE_OUT && find_loop_order(l, t, &layout))
            UIR_TRY(uir_layout_unpack(&layout, t->dtype, &l->launcher->allocator, tensors[count], outputs[t->index]));
        count++;
    }
    return UIR_STATUS_OK;
}

static uir_status run_function(const uir_launch *l, const uir_loop_function *f, void *const *outputs, uir_arena *arena,
                               uir_diagnostics *diagnostics) {
    void **tensors;
    int64_t *values;
    bool *bound;
    size_t symbols = (size_t)uir_dims_symbol_count(f->dims) + 1;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(tensors, uir_arena_allocate_array(arena, (size_t)f->tensors.count + 1, sizeof *tensors));
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(arena, symbols, sizeof *values));
    UIR_TRY_ALLOCATE(bound, uir_arena_allocate_array(arena, symbols, sizeof *bound));
    if (f->sizes.count != l->size_count) return misfit(l, f->file, 0, diagnostics, "the number of dims differs", "");
    for (uint32_t i = 0; i < f->sizes.count; i++) {
        values[f->sizes.data[i].symbol.id] = l->sizes[i];
        bound[f->sizes.data[i].symbol.id] = true;
    }
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        if (t->role == UIR_LOOP_ROLE_TEMP) continue;
        argument a = {t->name,
                      f->file,
                      0,
                      t->index,
                      t->role == UIR_LOOP_ROLE_OUT,
                      t->dtype,
                      count_elements(f->dims, t->extents, t->rank, values, bound)};
        UIR_TRY(check_argument(l, &a, diagnostics));
        UIR_TRY(place_tensor(l, t, outputs, arena, &tensors[count++]));
    }
    UIR_TRY(uir_loop_interpret(f, l->sizes, tensors, l->launcher->cancel, diagnostics));
    return take_tensors(l, f, tensors, outputs);
}

static uir_status launch_function(const uir_launch *l, const uir_loop_function *f, void *const *outputs,
                                  uir_diagnostics *diagnostics) {
    uir_arena arena;
    uir_arena_init(&arena, &l->launcher->allocator);
    uir_status status = run_function(l, f, outputs, &arena, diagnostics);
    uir_arena_deinit(&arena);
    return status;
}

uir_status uir_launch_naive(const uir_launch *l, void *const *outputs, uir_diagnostics *diagnostics) {
    return launch_function(l, l->kernel->lowered.naive, outputs, diagnostics);
}

uir_status uir_launch_scheduled(const uir_launch *l, void *const *outputs, uir_diagnostics *diagnostics) {
    uint32_t variant;
    UIR_TRY(choose_function(l, diagnostics, &variant));
    return launch_function(l, l->kernel->lowered.scheduled.variants[variant].function, outputs, diagnostics);
}

/* Where an operand or result lies when its value has a layout: false when it has none. */
static bool find_layout(const uir_launch *l, const uir_ipointer *p, uir_bound_layout *out_layout) {
    const uir_value_info *info = uir_value_info_get(
        l->values->module, (p->role == UIR_IPOINTER_OUT ? l->node->outputs : l->node->inputs)[p->role_index]);
    return p->role != UIR_IPOINTER_CONST && bind_layout(l, info, out_layout);
}

/* What the memory of an operand or result has not. */
static uir_status check_span(const uir_launch *l, const uir_igraph *g, const uir_ipointer *p, const argument *a,
                             int64_t span, uir_diagnostics *diagnostics) {
    const uir_datum *datum = (a->result ? l->values->outputs : l->values->inputs)[a->index];
    uint64_t elements = datum->tensor->element_count;
    uir_bound_layout layout;
    if (find_layout(l, p, &layout) && layout.span > 0) elements = (uint64_t)layout.span;
    if (span > 0 && (uint64_t)span > elements)
        return misfit(l, g->file, p->line, diagnostics, "the group's tensor has fewer elements than the span of ",
                      a->name);
    return UIR_STATUS_OK;
}

/* The memory of an operand or result: as the caller has it, or room of its own where it has a layout. */
static uir_status place_argument(const uir_launch *l, const uir_ipointer *p, void *const *outputs, uir_arena *arena,
                                 void **out_pointer) {
    bool result = p->role == UIR_IPOINTER_OUT;
    uir_bound_layout layout;
    *out_pointer = result ? outputs[p->role_index] : l->values->inputs[p->role_index]->tensor->data;
    if (!find_layout(l, p, &layout)) return UIR_STATUS_OK;
    return place_in_layout(l, &layout, p->dtype, result ? NULL : *out_pointer, arena, out_pointer);
}

/* Results out of their layouts. */
static uir_status take_results(const uir_launch *l, const uir_igraph *g, void *const *pointers, void *const *outputs) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        uir_bound_layout layout;
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        if (p->role == UIR_IPOINTER_OUT && find_layout(l, p, &layout))
            UIR_TRY(
                uir_layout_unpack(&layout, p->dtype, &l->launcher->allocator, pointers[count], outputs[p->role_index]));
        count++;
    }
    return UIR_STATUS_OK;
}

/* Pointers in device memory at their sizes: operands and results as they lie, whose layouts say how their memory is
 * read; constants packed; scratch. */
static uir_status bind_pointers(const uir_launch *l, const uir_igraph *g, const int64_t *values, const bool *bound,
                                void *const *outputs, uir_arena *arena, void **pointers, size_t *bytes,
                                uir_diagnostics *diagnostics) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        int64_t span;
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        if (uir_dim_evaluate(g->dims, p->element_span, values, bound, uir_dims_symbol_count(g->dims), &span) !=
                UIR_DIM_EVALUATED ||
            !uir_dtype_storage_size(p->dtype, span < 0 ? 0 : (uint64_t)span, &bytes[count]))
            return misfit(l, g->file, p->line, diagnostics, "no size can be computed for %", p->name);
        if (p->role != UIR_IPOINTER_WORK) {
            char name[72];
            snprintf(name, sizeof name, "%%%s", p->name);
            argument a = {name,
                          g->file,
                          p->line,
                          p->role_index,
                          p->role == UIR_IPOINTER_OUT,
                          p->dtype,
                          count_elements(g->dims, p->extents, p->rank, values, bound)};
            UIR_TRY(check_argument(l, &a, diagnostics));
            if (p->role != UIR_IPOINTER_CONST) UIR_TRY(check_span(l, g, p, &a, span, diagnostics));
        }
        if (p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_OUT) {
            UIR_TRY(place_argument(l, p, outputs, arena, &pointers[count++]));
            continue;
        }
        UIR_TRY_ALLOCATE(pointers[count], uir_arena_allocate(arena, bytes[count] + 64));
        if (p->role == UIR_IPOINTER_CONST)
            UIR_TRY(uir_igraph_pack(g, i, values, l->values->inputs[p->role_index]->tensor->data, pointers[count]));
        count++;
    }
    return UIR_STATUS_OK;
}

/* The number among those in device memory. */
static uint32_t device_number(const uir_igraph *g, uint32_t pointer) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < pointer; i++) number += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    return number;
}

/* A tied result begins with what its operand holds. */
static void begin_tied(const uir_igraph *g, void *const *pointers, const size_t *bytes) {
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        uint32_t tied = g->pointers.data[i].tied;
        if (tied == UINT32_MAX) continue;
        uint32_t to = device_number(g, i), from = device_number(g, tied);
        size_t size = bytes[to] < bytes[from] ? bytes[to] : bytes[from];
        if (size) memcpy(pointers[to], pointers[from], size);
    }
}

static uir_status find_runner(uir_launcher *launcher, const uir_igraph *igraph, const char *name,
                              uir_diagnostics *diagnostics, uir_kernel_runner **out_runner) {
    for (uint32_t i = 0; i < launcher->runners.count; i++) {
        const kept_runner *kept = &launcher->runners.data[i];
        *out_runner = kept->runner;
        if (kept->igraph == igraph && !strcmp(kept->name, name)) return UIR_STATUS_OK;
    }
    kept_runner kept = {.igraph = igraph};
    UIR_TRY_ALLOCATE(kept.name, uir_arena_copy_string(&launcher->arena, name, strlen(name)));
    UIR_TRY(uir_kernel_runner_create(&launcher->allocator, name, igraph, launcher->code, launcher->cancel, diagnostics,
                                     &kept.runner));
    uir_status status = uir_vector_push(&launcher->arena, &launcher->runners, kept);
    if (status != UIR_STATUS_OK) uir_kernel_runner_destroy(kept.runner);
    *out_runner = kept.runner;
    return status;
}

static uir_status run_igraph(const uir_launch *l, const uir_igraph *g, const char *name, void *const *outputs,
                             uir_arena *arena, uir_diagnostics *diagnostics) {
    int64_t *tiles, *values;
    bool *bound;
    void **pointers;
    size_t *bytes, symbols = (size_t)uir_dims_symbol_count(g->dims) + 1;
    uir_kernel_runner *runner;
    UIR_TRY_ALLOCATE(tiles, uir_arena_allocate_array(arena, symbols, sizeof *tiles));
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(arena, symbols, sizeof *values));
    UIR_TRY_ALLOCATE(bound, uir_arena_allocate_array(arena, symbols, sizeof *bound));
    UIR_TRY_ALLOCATE(pointers, uir_arena_allocate_array(arena, (size_t)g->pointers.count + 1, sizeof *pointers));
    UIR_TRY_ALLOCATE(bytes, uir_arena_allocate_array(arena, (size_t)g->pointers.count + 1, sizeof *bytes));
    if (!has_dims(l, g)) return misfit(l, g->file, 0, diagnostics, "the number of dims differs", "");
    UIR_TRY(uir_igraph_choose_tiles(g, l->sizes, l->launcher->threads, tiles, diagnostics));
    UIR_TRY(uir_igraph_bind(g, l->sizes, tiles, values, bound, diagnostics));
    UIR_TRY(bind_pointers(l, g, values, bound, outputs, arena, pointers, bytes, diagnostics));
    UIR_TRY(find_runner(l->launcher, g, uir_kernel_runner_of(name, g), diagnostics, &runner));
    begin_tied(g, pointers, bytes);
    uir_kernel_arguments arguments = {l->sizes, tiles, pointers};
    UIR_TRY(uir_kernel_runner_run(runner, &arguments, bytes, l->launcher->threads, diagnostics));
    return take_results(l, g, pointers, outputs);
}

uir_status uir_launch_igraph(const uir_launch *l, const char *runner, void *const *outputs,
                             uir_diagnostics *diagnostics) {
    uint32_t variant = 0;
    uir_arena arena;
    UIR_TRY(choose_igraph(l, diagnostics, &variant));
    uir_arena_init(&arena, &l->launcher->allocator);
    uir_status status =
        run_igraph(l, l->kernel->lowered.igraphs.igraphs[variant], runner, outputs, &arena, diagnostics);
    uir_arena_deinit(&arena);
    return status;
}

uir_status uir_launch_estimate(const uir_launch *l, uir_diagnostics *diagnostics, const uir_machine **out_device,
                               uir_estimate *out_estimate) {
    int64_t tiles[UIR_LAUNCH_MAX_SIZES];
    uint32_t variant = 0;
    UIR_TRY(choose_igraph(l, diagnostics, &variant));
    const uir_igraph *g = l->kernel->lowered.igraphs.igraphs[variant];
    *out_device = g->machine;
    UIR_TRY(uir_igraph_choose_tiles(g, l->sizes, l->launcher->threads, tiles, diagnostics));
    return uir_igraph_estimate(g, l->sizes, tiles, l->launcher->cancel, diagnostics, out_estimate);
}
