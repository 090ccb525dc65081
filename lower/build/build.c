/* A group's body as a naive loop AST: a nest per value that is computed. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

const uir_node_info *uir_lower_node_info(const uir_lower_builder *b, uint32_t node) {
    return uir_node_get(b->module, uir_graph_get(b->module, b->body)->nodes.data[node]);
}

static uint32_t lower_node_count(const uir_lower_builder *b) {
    return uir_graph_get(b->module, b->body)->nodes.count;
}

static uint32_t index_in(const uir_value_id *values, uint32_t count, uir_value_id value) {
    for (uint32_t i = 0; i < count; i++)
        if (values[i].id == value.id) return i;
    return UIR_LOWER_NONE;
}

static uint32_t lower_output_index(const uir_lower_builder *b, uir_value_id value) {
    const uir_graph_info *body = uir_graph_get(b->module, b->body);
    return index_in(body->outputs.data, body->outputs.count, value);
}

uint32_t uir_lower_input_index(const uir_lower_builder *b, uir_value_id value) {
    const uir_graph_info *body = uir_graph_get(b->module, b->body);
    return index_in(body->inputs.data, body->inputs.count, value);
}

uir_status uir_lower_refuse(uir_lower_builder *b, uint32_t node, const char *format, ...) {
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const uir_node_info *of = node == UIR_LOWER_NONE ? uir_node_get(b->module, b->group) : uir_lower_node_info(b, node);
    uir_location location = uir_node_location(b->module, of);
    location.op = uir_op_name(of->op);
    return uir_error(b->diagnostics, UIR_STATUS_UNSUPPORTED, &location, "%s", message);
}

/* ---- dims ---- */
static uir_status new_size(uir_lower_builder *b, uir_dim outside, int64_t least, int64_t most, uir_dim *out_dim) {
    char name[16];
    uir_loop_size size;
    uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, uir_dim_multiple(b->module->dims, outside), {0}};
    if (!outside.id) return UIR_STATUS_OUT_OF_MEMORY;
    int64_t low, high;
    uir_dim_bounds(b->module->dims, outside, &low, &high);
    if (low > facts.min) facts.min = low;
    if (high > most) high = most;
    if (high != INT64_MAX) facts.max = high < facts.min ? facts.min : high;
    if (facts.multiple_of < 1) facts.multiple_of = 1;
    snprintf(name, sizeof name, "n%u", b->f->sizes.count);
    UIR_TRY_ALLOCATE(size.name, uir_arena_copy_string(&b->f->arena, name, strlen(name)));
    UIR_TRY(uir_dims_add_symbol(b->f->dims, size.name, strlen(size.name), facts, &size.symbol));
    UIR_TRY(uir_vector_push(&b->f->arena, &b->f->sizes, size));
    UIR_TRY(uir_vector_push(b->arena, &b->kernel_sizes, outside));
    *out_dim = uir_dim_symbol(b->f->dims, size.symbol);
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* What may be negative is the difference of two sizes, of which one is 0. */
static uir_status new_number(uir_lower_builder *b, uir_dim outside, uir_dim *out_dim) {
    uir_dims *from = b->module->dims;
    uir_dim zero = uir_dim_const(from, 0), below;
    int64_t low, high;
    uir_dim_bounds(from, outside, &low, &high);
    if (low >= 0) return new_size(b, outside, 0, INT64_MAX, out_dim);
    UIR_TRY(new_size(b, uir_dim_max(from, outside, zero), 0, INT64_MAX, out_dim));
    UIR_TRY(new_size(b, uir_dim_max(from, uir_dim_sub(from, zero, outside), zero), 0, INT64_MAX, &below));
    *out_dim = uir_dim_sub(b->f->dims, *out_dim, below);
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* Constants up to here are written into the kernel; proofs with greater ones are badly conditioned, and they are sizes
 * like any that a run tells. */
enum { MOST_WRITTEN = 1 << 30 };

/* The number that a product is multiplied by, and the rest. */
static int64_t split_number(uir_dims *dims, uir_dim dim, uir_dim *out_rest) {
    int64_t number = 1;
    const uir_dim_node *node = uir_dim_get(dims, dim);
    *out_rest = dim;
    if (node->kind != UIR_DIM_MUL) return 1;
    uint32_t count = node->count;
    uir_dim rest = uir_dim_const(dims, 1);
    for (uint32_t i = 0; i < count; i++) {
        int64_t value;
        uir_dim factor = uir_dim_get(dims, dim)->operands[i];
        if (uir_dim_is_const(dims, factor, &value))
            number *= value;
        else
            rest = uir_dim_mul(dims, rest, factor);
    }
    *out_rest = rest;
    return number;
}

static uir_status add_size(uir_lower_builder *b, uir_dim outside, uir_dim inside) {
    return uir_vector_push(b->arena, &b->sizes, (uir_lower_size){outside, inside});
}

uir_status uir_lower_dim(uir_lower_builder *b, uir_dim dim, uir_dim *out_dim) {
    uir_dims *from = b->module->dims, *to = b->f->dims;
    int64_t value;
    if (!dim.id) return UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < b->sizes.count; i++) {
        if (!uir_dim_equal(b->sizes.data[i].outside, dim)) continue;
        *out_dim = b->sizes.data[i].inside;
        return UIR_STATUS_OK;
    }
    if (uir_dim_is_const(from, dim, &value) && value <= MOST_WRITTEN) {
        *out_dim = uir_dim_const(to, value);
    } else if (uir_dim_is_const(from, dim, NULL)) {
        UIR_TRY(new_size(b, dim, 0, INT64_MAX, out_dim));
    } else if (uir_dim_get(from, dim)->kind == UIR_DIM_ADD) {
        uint32_t count = uir_dim_get(from, dim)->count;
        *out_dim = uir_dim_const(to, 0);
        for (uint32_t i = 0; i < count; i++) {
            uir_dim term;
            UIR_TRY(uir_lower_dim(b, uir_dim_get(from, dim)->operands[i], &term));
            *out_dim = uir_dim_add(to, *out_dim, term);
        }
    } else {
        uir_dim rest;
        int64_t number = split_number(from, dim, &rest);
        if (!rest.id) return UIR_STATUS_OUT_OF_MEMORY;
        if (number != 1) {
            UIR_TRY(uir_lower_dim(b, rest, out_dim));
            *out_dim = uir_dim_mul(to, *out_dim, uir_dim_const(to, number));
        } else {
            UIR_TRY(new_number(b, dim, out_dim));
        }
    }
    if (!out_dim->id) return UIR_STATUS_OUT_OF_MEMORY;
    return add_size(b, dim, *out_dim);
}

uir_status uir_lower_extent(uir_lower_builder *b, uir_dim dim, uir_dim *out_dim) {
    int64_t low, high;
    UIR_TRY(uir_lower_dim(b, dim, out_dim));
    uir_dim_bounds(b->f->dims, *out_dim, &low, &high);
    if (low >= 0) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < b->sizes.count; i++)
        if (uir_dim_equal(b->sizes.data[i].outside, dim)) b->sizes.data[i].outside = UIR_DIM_NONE;
    UIR_TRY(new_size(b, dim, 0, INT64_MAX, out_dim));
    return add_size(b, dim, *out_dim);
}

uir_status uir_lower_demand_zero(uir_lower_builder *b, uir_dim dim) {
    uir_dims *dims = b->module->dims;
    uir_dim zero = uir_dim_const(dims, 0), size;
    return new_size(b, uir_dim_max(dims, dim, uir_dim_sub(dims, zero, dim)), 0, 0, &size);
}

/* ---- begin and end ---- */
static bool is_small_float(const uir_lower_builder *b, uir_value_id value) {
    uir_dtype dtype = value.id ? uir_value_type(b->module, value)->dtype : UIR_DTYPE_F32;
    return uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) <= 8;
}

/* Floats of 8 bits and less are converted and moved. Some have no infinity: what is reduced, or out of range, would
 * have to be said for each of them. */
static uir_status check_small_floats(uir_lower_builder *b) {
    for (uint32_t n = 0; n < lower_node_count(b); n++) {
        const uir_node_info *node = uir_lower_node_info(b, n);
        bool small = false;
        for (uint32_t i = 0; i < node->input_count; i++) small = small || is_small_float(b, node->inputs[i]);
        for (uint32_t i = 0; i < node->output_count; i++) small = small || is_small_float(b, node->outputs[i]);
        if (small && !(uir_op_get_row(node->op)->traits & UIR_TRAIT_MOVEMENT) && node->op != UIR_OP_CAST &&
            node->op != UIR_OP_BIT_CAST)
            return uir_lower_refuse(b, n, "kernels only convert and move floats of 8 bits");
    }
    return UIR_STATUS_OK;
}

/* Analyses the group and makes the empty function. */
static uir_status lower_begin(uir_lower_builder *b, uir_module *module, uir_node_id group, const char *name,
                              const uir_allocator *allocator, uir_arena *arena, uir_diagnostics *diagnostics) {
    *b = (uir_lower_builder){.module = module, .group = group, .arena = arena, .diagnostics = diagnostics};
    const uir_node_info *node = uir_node_get(module, group);
    const uir_attribute *body = uir_node_find_attribute(module, node, "body");
    if (node->op != UIR_OP_GROUP || !body || body->kind != UIR_ATTRIBUTE_GRAPH) return UIR_STATUS_INVALID_ARGUMENT;
    b->body = body->value.graph;
    UIR_TRY(check_small_floats(b));
    const uir_graph_info *graph = uir_graph_get(module, b->body);
    uint32_t bad = 0;
    uir_status status = uir_axes_analyse(module, graph->nodes.data, graph->nodes.count, arena, &b->axes, &bad);
    if (graph->nodes.count == 1 && (status == UIR_STATUS_OK || status == UIR_STATUS_UNSUPPORTED))
        b->alone = uir_lower_find_alone(module, uir_node_get(module, graph->nodes.data[0]), status == UIR_STATUS_OK);
    if (b->alone && !uir_lower_is_ordered_alone(b->alone)) { /* by dims as they stand */
        for (uint32_t i = 0; i < graph->inputs.count; i++)
            UIR_TRY(uir_module_set_layout(module, graph->inputs.data[i], NULL));
        const uir_node_info *only = uir_node_get(module, graph->nodes.data[0]);
        for (uint32_t i = 0; i < only->output_count; i++)
            UIR_TRY(uir_module_set_layout(module, only->outputs[i], NULL));
    }
    if (b->alone) {
        b->axes = (uir_axes){0};
        status = UIR_STATUS_OK;
    }
    if (status == UIR_STATUS_UNSUPPORTED)
        return uir_lower_refuse(b, bad < graph->nodes.count ? bad : UIR_LOWER_NONE, "the dims have no axes in common");
    UIR_TRY(status);
    uint32_t count = b->axes.count + 1;
    UIR_TRY_ALLOCATE(b->extents, uir_arena_allocate_array(arena, count, sizeof *b->extents));
    UIR_TRY_ALLOCATE(b->coord, uir_arena_allocate_array(arena, count, sizeof *b->coord));
    UIR_TRY_ALLOCATE(b->local, uir_arena_allocate_array(arena, count, sizeof *b->local));
    UIR_TRY(uir_loop_function_create(allocator, name, &b->f));
    for (uint32_t a = 0; a < b->axes.count; a++) {
        status = uir_lower_extent(b, b->axes.axes[a].extent, &b->extents[a]);
        if (status == UIR_STATUS_OK) continue;
        uir_loop_function_destroy(b->f);
        b->f = NULL;
        return status;
    }
    return UIR_STATUS_OK;
}

/* Sets the node's attributes; the function is the caller's then. */
static uir_status lower_end(uir_lower_builder *b, uir_loop_function **out_function) {
    uir_attribute kernel = {.kind = UIR_ATTRIBUTE_STRING};
    UIR_TRY(uir_lower_give_layouts(b));
    uir_attribute sizes = {.kind = UIR_ATTRIBUTE_DIMS, .count = b->kernel_sizes.count};
    sizes.value.dims = b->kernel_sizes.data;
    UIR_TRY(uir_node_set_attribute(b->module, b->group, "sizes", &sizes));
    UIR_TRY(uir_strings_intern(&b->module->strings, b->f->name, strlen(b->f->name), &kernel.value.string));
    UIR_TRY(uir_node_set_attribute(b->module, b->group, "kernel", &kernel));
    *out_function = b->f;
    b->f = NULL;
    return UIR_STATUS_OK;
}

/* ---- values ---- */
const uir_lower_value *uir_lower_find_value(const uir_lower_builder *b, uir_value_id value) {
    for (uint32_t i = 0; i < b->values.count; i++)
        if (b->values.data[i].value.id == value.id) return &b->values.data[i];
    return NULL;
}

static bool is_read_inside(const uir_lower_builder *b, uir_value_id value) {
    for (uint32_t n = 0; n < lower_node_count(b); n++) {
        const uir_node_info *node = uir_lower_node_info(b, n);
        if (index_in(node->inputs, node->input_count, value) != UIR_LOWER_NONE) return true;
    }
    return false;
}

/* What the coordinates along a list of axes are; those of a piece where the tensor is a piece's own. */
static uir_status take_indices(uir_lower_builder *b, const uint32_t *axes, uint32_t count, uint32_t cut_axis,
                               uir_dim *out_indices) {
    if (count > UIR_LOOP_MAX_RANK) return UIR_STATUS_UNSUPPORTED;
    for (uint32_t i = 0; i < count; i++) {
        out_indices[i] = axes[i] == cut_axis ? b->local[axes[i]] : b->coord[axes[i]];
        if (!out_indices[i].id) return UIR_STATUS_UNSUPPORTED; /* an axis that the block does not run over */
    }
    return UIR_STATUS_OK;
}

static uir_status add_named_tensor(uir_lower_builder *b, const char *name, uir_dtype dtype, uir_loop_role role,
                                   uint32_t index, uir_axis_list list, uint32_t axis, uir_dim extent,
                                   uint32_t *out_tensor) {
    uir_dim extents[UIR_LOOP_MAX_RANK];
    if (list.count > UIR_LOOP_MAX_RANK) return UIR_STATUS_UNSUPPORTED;
    for (uint32_t i = 0; i < list.count; i++) extents[i] = list.axes[i] == axis ? extent : b->extents[list.axes[i]];
    return uir_loop_add_tensor(b->f, name, dtype, role, index, extents, list.count, out_tensor);
}

/* The group's operand as this list of axes addresses it. */
static uir_status find_view(uir_lower_builder *b, uint32_t input, uir_dtype dtype, uir_axis_list list,
                            uint32_t *out_tensor) {
    uint32_t same = 0;
    for (uint32_t i = 0; i < b->views.count; i++) {
        const uir_lower_view *view = &b->views.data[i];
        if (view->input != input) continue;
        same++;
        bool equal = view->count == list.count;
        for (uint32_t k = 0; equal && k < list.count; k++)
            equal = uir_dim_equal(b->extents[view->axes[k]], b->extents[list.axes[k]]);
        if (!equal) continue;
        *out_tensor = view->tensor;
        return UIR_STATUS_OK;
    }
    char name[40];
    snprintf(name, sizeof name, same ? "x%u_%u" : "x%u", input, same);
    UIR_TRY(add_named_tensor(b, name, dtype, UIR_LOOP_ROLE_IN, input, list, UIR_LOWER_NONE, UIR_DIM_NONE, out_tensor));
    const uir_node_info *group = uir_node_get(b->module, b->group);
    b->f->tensors.data[*out_tensor].constant = uir_value_info_get(b->module, group->inputs[input])->constant != NULL;
    return uir_vector_push(b->arena, &b->views, (uir_lower_view){input, *out_tensor, list.axes, list.count});
}

uir_status uir_lower_constant(uir_lower_builder *b, const uir_tensor *tensor, uint32_t *out_expression) {
    uir_dtype dtype = tensor->dtype;
    if (uir_dtype_is_float(dtype))
        return uir_loop_add_number(b->f, dtype, uir_dtype_load_double(dtype, tensor->data, 0), 0, out_expression);
    return uir_loop_add_number(b->f, dtype, 0, uir_dtype_load_integer(dtype, tensor->data, 0), out_expression);
}

uir_status uir_lower_operand(uir_lower_builder *b, uint32_t node, uint32_t index, uint32_t *out_expression) {
    uir_value_id id = uir_lower_node_info(b, node)->inputs[index];
    const uir_value_info *info = uir_value_info_get(b->module, id);
    uir_axis_list list = uir_axes_of_operand(&b->axes, node, index);
    uint32_t input = uir_lower_input_index(b, id), tensor;
    const uir_lower_value *value = uir_lower_find_value(b, id);
    uir_dim indices[UIR_LOOP_MAX_RANK];
    if (value && !value->tensors) return uir_lower_expression(b, value->node, out_expression);
    if (!value && input == UIR_LOWER_NONE) {
        if (info->constant && info->constant->element_count == 1)
            return uir_lower_constant(b, info->constant, out_expression);
        return uir_lower_refuse(b, node, "operand %u is neither an operand of the group nor computed in it", index);
    }
    uint32_t cut_axis = UIR_LOWER_NONE;
    if (value && value->cut != UIR_LOWER_NONE && !value->at_offset) {
        cut_axis = b->cuts.data[value->cut].axis;
        tensor = value->tensors[b->piece];
    } else if (value) {
        tensor = value->tensors[0];
    } else {
        UIR_TRY(find_view(b, input, info->type.dtype, list, &tensor));
    }
    if (take_indices(b, list.axes, list.count, cut_axis, indices) != UIR_STATUS_OK)
        return uir_lower_refuse(b, node, "operand %u has axes that the result does not have", index);
    UIR_TRY(uir_loop_add_load(b->f, tensor, indices, out_expression));
    return UIR_STATUS_OK;
}

/* ---- results ---- */
static const char *name_of(uir_lower_builder *b, const char *prefix, uint32_t number) {
    char name[40];
    snprintf(name, sizeof name, "%s%u", prefix, number);
    return uir_arena_copy_string(b->arena, name, strlen(name));
}

uir_status uir_lower_add_result(uir_lower_builder *b, uint32_t node, uint32_t result, uint32_t *out_tensor) {
    uir_value_id id = uir_lower_node_info(b, node)->outputs[result];
    uir_lower_value value = {id, node, UIR_LOWER_NONE, NULL, false};
    uint32_t output = lower_output_index(b, id);
    bool out = output != UIR_LOWER_NONE && !is_read_inside(b, id);
    const char *name;
    UIR_TRY_ALLOCATE(name, name_of(b, out ? "y" : "t", out ? output : b->names++));
    UIR_TRY(add_named_tensor(b, name, uir_value_type(b->module, id)->dtype,
                             out ? UIR_LOOP_ROLE_OUT : UIR_LOOP_ROLE_TEMP, output, uir_axes_of_value(&b->axes, id),
                             UIR_LOWER_NONE, UIR_DIM_NONE, out_tensor));
    UIR_TRY_ALLOCATE(value.tensors, uir_arena_copy(b->arena, out_tensor, sizeof *out_tensor));
    return uir_vector_push(b->arena, &b->values, value);
}

/* The same for a value that is computed by pieces: a tensor for each, or one that all store to. */
static uir_status add_cut_result(uir_lower_builder *b, uint32_t node, uint32_t cut) {
    uir_value_id id = uir_lower_node_info(b, node)->outputs[0];
    const uir_lower_cut *of = &b->cuts.data[cut];
    uir_lower_value value = {id, node, cut, NULL, false};
    uint32_t output = lower_output_index(b, id), tensor;
    if (output != UIR_LOWER_NONE && !is_read_inside(b, id)) {
        UIR_TRY(uir_lower_add_result(b, node, 0, &tensor));
        b->values.data[b->values.count - 1].cut = cut;
        b->values.data[b->values.count - 1].at_offset = true;
        return UIR_STATUS_OK;
    }
    UIR_TRY_ALLOCATE(value.tensors, uir_arena_allocate_array(b->arena, of->count, sizeof *value.tensors));
    for (uint32_t p = 0; p < of->count; p++) {
        const char *name;
        UIR_TRY_ALLOCATE(name, name_of(b, "t", b->names++));
        UIR_TRY(add_named_tensor(b, name, uir_value_type(b->module, id)->dtype, UIR_LOOP_ROLE_TEMP, 0,
                                 uir_axes_of_value(&b->axes, id), of->axis, of->pieces[p].extent, &value.tensors[p]));
    }
    return uir_vector_push(b->arena, &b->values, value);
}

uir_status uir_lower_target(uir_lower_builder *b, uir_value_id id, uir_loop_access *out_access) {
    const uir_lower_value *value = uir_lower_find_value(b, id);
    uir_axis_list list = uir_axes_of_value(&b->axes, id);
    bool piece = value->cut != UIR_LOWER_NONE && !value->at_offset;
    out_access->tensor = value->tensors[piece ? b->piece : 0];
    return take_indices(b, list.axes, list.count, piece ? b->cuts.data[value->cut].axis : UIR_LOWER_NONE,
                        out_access->indices);
}

uir_status uir_lower_iterate(uir_lower_builder *b, uir_axis_list axes, bool reduce) {
    for (uint32_t i = 0; i < axes.count; i++) {
        char name[24];
        snprintf(name, sizeof name, "%c%u", reduce ? 'r' : 'v', axes.axes[i]);
        UIR_TRY(uir_nest_add_iter(b->nest, name, axes.axes[i] + 1, b->extents[axes.axes[i]], reduce,
                                  &b->coord[axes.axes[i]]));
    }
    return UIR_STATUS_OK;
}

/* forgets coordinates */
static void lower_leave(uir_lower_builder *b) {
    for (uint32_t a = 0; a < b->axes.count; a++) b->coord[a] = b->local[a] = UIR_DIM_NONE;
    b->nest = NULL;
}

uir_status uir_lower_begin_nest(uir_lower_builder *b, uir_nest *nest, uint32_t number, const char *part,
                                uir_axis_list list) {
    char name[48];
    snprintf(name, sizeof name, "b%u%s", number, part);
    const char *copy;
    UIR_TRY_ALLOCATE(copy, uir_arena_copy_string(b->arena, name, strlen(name)));
    uir_nest_begin(nest, b->f, b->arena, copy);
    b->nest = nest;
    return uir_lower_iterate(b, list, false);
}

uir_status uir_lower_end_nest(uir_lower_builder *b, uir_nest *nest) {
    UIR_TRY(uir_nest_end(nest, UIR_LOOP_NONE, NULL));
    lower_leave(b);
    return UIR_STATUS_OK;
}

/* ---- nests of trivial nodes ---- */
/* Iteration over the axes of a value, along one of them in a piece only. */
static uir_status iterate_piece(uir_lower_builder *b, uir_axis_list list, uint32_t axis, const uir_lower_piece *piece) {
    for (uint32_t i = 0; i < list.count; i++) {
        uint32_t a = list.axes[i];
        char name[24];
        snprintf(name, sizeof name, "v%u", a);
        uir_dim *to = a == axis ? &b->local[a] : &b->coord[a];
        UIR_TRY(uir_nest_add_iter(b->nest, name, a + 1, a == axis ? piece->extent : b->extents[a], false, to));
        if (a != axis) continue;
        b->coord[a] = uir_dim_add(b->f->dims, piece->offset, b->local[a]);
        if (!b->coord[a].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return UIR_STATUS_OK;
}

/* One nest that stores an expression of the node: itself, or its operand (a copy, a piece of a concat). */
static uir_status store_nest(uir_lower_builder *b, uint32_t node, uir_value_id value, uint32_t cut, uint32_t piece,
                             uint32_t operand) {
    uir_nest nest;
    uir_loop_access target;
    uint32_t expression;
    const char *name;
    UIR_TRY_ALLOCATE(name, name_of(b, "b", b->names++));
    uir_nest_begin(&nest, b->f, b->arena, name);
    b->nest = &nest;
    b->piece = piece;
    uir_axis_list list = uir_axes_of_value(&b->axes, value);
    if (cut == UIR_LOWER_NONE)
        UIR_TRY(uir_lower_iterate(b, list, false));
    else
        UIR_TRY(iterate_piece(b, list, b->cuts.data[cut].axis, &b->cuts.data[cut].pieces[piece]));
    if (operand == UIR_LOWER_NONE) {
        UIR_TRY(uir_lower_expression(b, node, &expression));
    } else { /* a concat's: its own axis is the piece's */
        const uir_lower_cut *of = &b->cuts.data[cut];
        uint32_t dim = (uint32_t)uir_node_int(b->module, uir_lower_node_info(b, node), "axis", 0);
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, operand, dim);
        uir_dim local = b->local[of->axis];
        uint32_t from = of->pieces[piece].from;
        if (axis != UIR_AXES_NONE) {
            b->local[axis] = local;
            b->coord[axis] = local;
            const uir_lower_value *inner = uir_lower_find_value(b, uir_lower_node_info(b, node)->inputs[operand]);
            if (from != UIR_LOWER_NONE) {
                b->piece = from;
                b->coord[axis] = uir_dim_add(b->f->dims, local, b->cuts.data[inner->cut].pieces[from].offset);
            }
        }
        UIR_TRY(uir_lower_operand(b, node, operand, &expression));
        b->piece = piece;
    }
    UIR_TRY(uir_lower_target(b, value, &target));
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_STORE, 0, &target, 1, &expression, 1));
    UIR_TRY(uir_nest_end(&nest, UIR_LOOP_NONE, NULL));
    lower_leave(b);
    return UIR_STATUS_OK;
}

static uir_status concat_node(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t dim = (uint32_t)uir_node_int(b->module, info, "axis", 0), count = 0;
    uir_lower_cut cut = {.axis = uir_axes_of_value_dim(&b->axes, info->outputs[0], dim)};
    uir_dim offset = uir_dim_const(b->f->dims, 0);
    uir_lower_piece *pieces;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const uir_lower_value *value = uir_lower_find_value(b, info->inputs[i]);
        count += value && value->cut != UIR_LOWER_NONE ? b->cuts.data[value->cut].count : 1;
    }
    if (cut.axis == UIR_AXES_NONE) return uir_lower_refuse(b, node, "the concatenated axis has one element");
    UIR_TRY_ALLOCATE(pieces, uir_arena_allocate_array(b->arena, count, sizeof *pieces));
    for (uint32_t i = 0; i < info->input_count; i++) {
        const uir_lower_value *value = uir_lower_find_value(b, info->inputs[i]);
        const uir_lower_cut *inner = value && value->cut != UIR_LOWER_NONE ? &b->cuts.data[value->cut] : NULL;
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, i, dim);
        if (inner && inner->axis != axis)
            return uir_lower_refuse(b, node, "operand %u is concatenated along another axis", i);
        uir_dim whole;
        UIR_TRY(uir_lower_extent(b, uir_value_type(b->module, info->inputs[i])->dims[dim], &whole));
        for (uint32_t p = 0; p < (inner ? inner->count : 1); p++) {
            uir_lower_piece piece = {i, inner ? p : UIR_LOWER_NONE, offset, inner ? inner->pieces[p].extent : whole};
            if (inner) piece.offset = uir_dim_add(b->f->dims, offset, inner->pieces[p].offset);
            if (!piece.offset.id) return UIR_STATUS_OUT_OF_MEMORY;
            pieces[cut.count++] = piece;
        }
        offset = uir_dim_add(b->f->dims, offset, whole);
    }
    cut.pieces = pieces;
    uint32_t id = b->cuts.count;
    UIR_TRY(uir_vector_push(b->arena, &b->cuts, cut));
    /* The result is as long as its pieces together, whatever its extent is called. */
    b->extents[cut.axis] = offset;
    UIR_TRY(add_cut_result(b, node, id));
    for (uint32_t p = 0; p < cut.count; p++) UIR_TRY(store_nest(b, node, info->outputs[0], id, p, pieces[p].operand));
    return UIR_STATUS_OK;
}

/* Cuts along one axis at the same places are one cut. */
static bool is_same_cut(const uir_lower_cut *a, const uir_lower_cut *b) {
    if (a->axis != b->axis || a->count != b->count) return false;
    for (uint32_t p = 0; p < a->count; p++)
        if (!uir_dim_equal(a->pieces[p].offset, b->pieces[p].offset)) return false;
    return true;
}

/* The axis along which a gather's coordinates lie: each is read by itself. */
static bool is_last_axis(const uir_lower_builder *b, uint32_t node, uint32_t axis) {
    uint32_t rank = uir_value_type(b->module, uir_lower_node_info(b, node)->inputs[1])->rank;
    return uir_axes_of_operand_dim(&b->axes, node, 1, rank - 1) == axis;
}

/* Where the node must be cut because its operands are. */
static uir_status find_cut(uir_lower_builder *b, uint32_t node, uint32_t *out_cut) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_axis_list list = info->output_count ? uir_axes_of_value(&b->axes, info->outputs[0]) : (uir_axis_list){0};
    *out_cut = UIR_LOWER_NONE;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const uir_lower_value *value = uir_lower_find_value(b, info->inputs[i]);
        if (!value || value->cut == UIR_LOWER_NONE) continue;
        if (info->op == UIR_OP_GATHER_ND && i == 1 && is_last_axis(b, node, b->cuts.data[value->cut].axis)) continue;
        if (*out_cut == UIR_LOWER_NONE) *out_cut = value->cut;
        if (!is_same_cut(&b->cuts.data[*out_cut], &b->cuts.data[value->cut]))
            return uir_lower_refuse(b, node, "the operands are concatenated in different ways");
        bool has = false;
        for (uint32_t k = 0; k < list.count; k++) has = has || list.axes[k] == b->cuts.data[value->cut].axis;
        if (!has) return uir_lower_refuse(b, node, "the node crosses the pieces of a concatenation");
    }
    return UIR_STATUS_OK;
}

/* Is it a gather's indices, and no mere other way to look at memory? Those are read from memory. */
static bool names_positions(const uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    if (info->op == UIR_OP_RESHAPE || info->op == UIR_OP_TRANSPOSE || info->op == UIR_OP_BROADCAST) {
        const uir_lower_value *from = uir_lower_find_value(b, info->inputs[0]);
        if (!from || from->tensors) return false;
    }
    for (uint32_t n = node + 1; n < lower_node_count(b); n++) {
        const uir_node_info *reader = uir_lower_node_info(b, n);
        if (uir_lower_is_gather(reader->op) && reader->inputs[1].id == info->outputs[0].id) return true;
    }
    return false;
}

static uir_status trivial_node(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t cut, tensor;
    UIR_TRY(find_cut(b, node, &cut));
    if (uir_lower_is_movement(info->op) && lower_output_index(b, info->outputs[0]) == UIR_LOWER_NONE &&
        !names_positions(b, node)) {
        uir_lower_value value = {info->outputs[0], node, cut, NULL, false};
        return uir_vector_push(b->arena, &b->values, value);
    }
    if (cut == UIR_LOWER_NONE) {
        UIR_TRY(uir_lower_add_result(b, node, 0, &tensor));
        return store_nest(b, node, info->outputs[0], cut, 0, UIR_LOWER_NONE);
    }
    UIR_TRY(add_cut_result(b, node, cut));
    for (uint32_t p = 0; p < b->cuts.data[cut].count; p++)
        UIR_TRY(store_nest(b, node, info->outputs[0], cut, p, UIR_LOWER_NONE));
    return UIR_STATUS_OK;
}

static uir_status lower_copies(uir_lower_builder *b, uint32_t node);

/* The nests of one node, and the copies that make it an output. */
static uir_status lower_node(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t traits = uir_op_get_row(info->op)->traits;
    if (info->op == UIR_OP_CONCAT)
        UIR_TRY(concat_node(b, node));
    else if (uir_lower_is_movement(info->op) || traits & UIR_TRAIT_ELEMENTWISE)
        UIR_TRY(trivial_node(b, node));
    else if (traits & UIR_TRAIT_CONTRACTION)
        UIR_TRY(uir_lower_contraction(b, node));
    else
        UIR_TRY(uir_lower_reduction(b, node));
    return lower_copies(b, node);
}

/* ---- outputs that are more than one thing ---- */
/* Copies a tensor into an output, index by index; the extents are the tensor's. `axes`: of its dims; NULL: they are
 * along none of the group's. `cut`: the dim that the piece is one of. */
static uir_status copy_tensor(uir_lower_builder *b, uint32_t tensor, const uint32_t *axes, const uir_lower_piece *piece,
                              uint32_t cut, uint32_t to) {
    uir_nest nest;
    uir_dim from[UIR_LOOP_MAX_RANK];
    uir_loop_access target = {.tensor = to};
    uint32_t expression;
    const char *name;
    UIR_TRY_ALLOCATE(name, name_of(b, "b", b->names++));
    uir_nest_begin(&nest, b->f, b->arena, name);
    uir_loop_tensor t = b->f->tensors.data[tensor];
    for (uint32_t d = 0; d < t.rank; d++) {
        char iter[16];
        snprintf(iter, sizeof iter, "v%u", d);
        UIR_TRY(uir_nest_add_iter(&nest, iter, axes ? axes[d] + 1 : 0, t.extents[d], false, &from[d]));
        target.indices[d] = piece && d == cut ? uir_dim_add(b->f->dims, piece->offset, from[d]) : from[d];
    }
    UIR_TRY(uir_loop_add_load(b->f, tensor, from, &expression));
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_STORE, 0, &target, 1, &expression, 1));
    return uir_nest_end(&nest, UIR_LOOP_NONE, NULL);
}

static uir_status lower_copies(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_graph_info *body = uir_graph_get(b->module, b->body);
    for (uint32_t r = 0; r < info->output_count; r++) {
        const uir_lower_value *value = uir_lower_find_value(b, info->outputs[r]);
        if (!value || !value->tensors) continue;
        uir_lower_value of = *value;
        uir_loop_tensor t = b->f->tensors.data[of.tensors[0]];
        uir_axis_list list = uir_axes_of_value(&b->axes, of.value);
        for (uint32_t k = 0; k < body->outputs.count; k++) {
            if (body->outputs.data[k].id != of.value.id || (t.role == UIR_LOOP_ROLE_OUT && t.index == k)) continue;
            uint32_t to, axis = 0;
            const char *name;
            UIR_TRY_ALLOCATE(name, name_of(b, "y", k));
            UIR_TRY(add_named_tensor(b, name, t.dtype, UIR_LOOP_ROLE_OUT, k, list, UIR_LOWER_NONE, UIR_DIM_NONE, &to));
            bool cut = of.cut != UIR_LOWER_NONE && !of.at_offset;
            for (uint32_t d = 0; cut && d < list.count; d++)
                if (list.axes[d] == b->cuts.data[of.cut].axis) axis = d;
            for (uint32_t p = 0; p < (cut ? b->cuts.data[of.cut].count : 1); p++)
                UIR_TRY(
                    copy_tensor(b, of.tensors[p], list.axes, cut ? &b->cuts.data[of.cut].pieces[p] : NULL, axis, to));
        }
    }
    return UIR_STATUS_OK;
}

/* An output that is an operand of the group: a copy, by its own dims. */
static uir_status copy_inputs(uir_lower_builder *b) {
    const uir_graph_info *body = uir_graph_get(b->module, b->body);
    for (uint32_t k = 0; k < body->outputs.count; k++) {
        uint32_t input = uir_lower_input_index(b, body->outputs.data[k]), from, to;
        char name[40];
        uir_dim extents[UIR_LOOP_MAX_RANK];
        if (input == UIR_LOWER_NONE) continue;
        const uir_type *type = uir_value_type(b->module, body->outputs.data[k]);
        uint32_t order[UIR_MAX_RANK];
        if (type->rank > UIR_LOOP_MAX_RANK) return uir_lower_refuse(b, UIR_LOWER_NONE, "more than 8 dims");
        uir_axes_order_dims(b->module, body->outputs.data[k], order);
        for (uint32_t d = 0; d < type->rank; d++) UIR_TRY(uir_lower_extent(b, type->dims[order[d]], &extents[d]));
        snprintf(name, sizeof name, "x%u_y%u", input, k);
        UIR_TRY(uir_loop_add_tensor(b->f, name, type->dtype, UIR_LOOP_ROLE_IN, input, extents, type->rank, &from));
        snprintf(name, sizeof name, "y%u", k);
        UIR_TRY(uir_loop_add_tensor(b->f, name, type->dtype, UIR_LOOP_ROLE_OUT, k, extents, type->rank, &to));
        UIR_TRY(copy_tensor(b, from, NULL, NULL, 0, to));
    }
    return UIR_STATUS_OK;
}

/* ---- what nothing reads ---- */
/* The first statement in a block under a top one. */
static const uir_loop_statement *innermost(const uir_loop_function *f, uint32_t id) {
    while (f->statements.data[id].first_child != UIR_LOOP_NONE) id = f->statements.data[id].first_child;
    return &f->statements.data[id];
}

/* Takes out nests that store what is not read: indices that turned out to be coordinates. */
static void drop_unread(uir_loop_function *f) {
    for (bool again = true; again;) {
        again = false;
        for (uint32_t *link = &f->first; *link != UIR_LOOP_NONE && !again;) {
            const uir_loop_statement *s = innermost(f, *link);
            uint32_t tensor = s->target_count ? s->targets[0].tensor : 0;
            bool read = s->kind != UIR_LOOP_STATEMENT_STORE || f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP ||
                        uir_loop_list_reads(f, f->first, tensor);
            if (read) {
                link = &f->statements.data[*link].next;
            } else {
                *link = f->statements.data[*link].next;
                again = true;
            }
        }
    }
}

uir_status uir_lower_build(uir_module *module, uir_node_id group, const char *name, const uir_allocator *allocator,
                           uir_diagnostics *diagnostics, uir_loop_function **out_function) {
    uir_arena arena;
    uir_lower_builder b;
    *out_function = NULL;
    uir_arena_init(&arena, allocator);
    uir_status status = lower_begin(&b, module, group, name, allocator, &arena, diagnostics);
    for (uint32_t n = 0; status == UIR_STATUS_OK && n < lower_node_count(&b); n++)
        status = b.alone ? b.alone(&b, n) : lower_node(&b, n);
    if (status == UIR_STATUS_OK) status = copy_inputs(&b);
    if (status == UIR_STATUS_OK) drop_unread(b.f);
    if (status == UIR_STATUS_OK) status = lower_end(&b, out_function);
    if (b.f) uir_loop_function_destroy(b.f);
    uir_arena_deinit(&arena);
    return status;
}
