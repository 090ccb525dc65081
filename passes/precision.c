/* Factors in a half type: what a product of f32 multiplies is rounded to what the machine's `mma` takes:
 *
 *   matmul(a, b)  ->  matmul(cast f32 (cast f16 a), cast f32 (cast f16 b))
 *
 * which mma reads as f16, so that no sum and no result is rounded. A machine whose mma takes a half as its second
 * factor alone has weights so, and its first factors stay. Constants are rounded here, and are of the half type from
 * then on. Whatever is asked for, a half beside a constant that is one in all its numbers is multiplied as a half: the
 * model's own halves, whose constants the clean-up has widened. */
#include "passes/precision.h"
#include "passes/tools.h"

#include "ir/machine/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEW = 8 }; /* channels or filters, of which there is little to multiply: such sums are no matrix products */

typedef struct precision_row {
    const char *name;
    uir_dtype types[2];
    bool where_faster;
} precision_row;

enum { HALVES = 2 };
static const uir_dtype half_types[HALVES] = {UIR_DTYPE_F16, UIR_DTYPE_BF16};

static const precision_row rows[UIR_PRECISION_COUNT] = {
#define UIR_PRECISION(constant, name, first, second, where_faster, purpose)                                            \
    {name, {UIR_DTYPE_##first, UIR_DTYPE_##second}, where_faster},
#include "passes/precisions.def"
};

const char *uir_precision_name(uir_precision precision) {
    return rows[precision].name;
}

uir_status uir_precision_find(const char *name, uir_diagnostics *diagnostics, uir_precision *out_precision) {
    char names[80] = "";
    *out_precision = UIR_PRECISION_F32;
    if (!name) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < UIR_PRECISION_COUNT; i++) {
        size_t used = strlen(names);
        *out_precision = (uir_precision)i;
        if (!strcmp(rows[i].name, name)) return UIR_STATUS_OK;
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", rows[i].name);
    }
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "precision '%s' is unknown; use one of %s", name,
                     names);
}

/* ---- what the machine multiplies ---- */
typedef enum halves { NEITHER, WEIGHTS, BOTH } halves;

static const uir_legal_row *find_f32(const uir_machine *machine) {
    return uir_machine_find_pair(machine, UIR_DTYPE_F32, UIR_DTYPE_F32, UIR_DTYPE_F32);
}

static halves multiplied_halves(const uir_machine *machine, uir_dtype half) {
    if (half == UIR_DTYPE_NONE) return NEITHER;
    if (uir_machine_multiplies_pair(machine, UIR_DTYPE_F32, half, half)) return BOTH;
    return uir_machine_multiplies_pair(machine, UIR_DTYPE_F32, UIR_DTYPE_F32, half) ? WEIGHTS : NEITHER;
}

/* Where the description does not say what they cost they cost the same. */
static bool is_faster(const uir_machine *machine, uir_dtype half, halves which) {
    const uir_legal_row *wide = find_f32(machine),
                        *row =
                            uir_machine_find_pair(machine, UIR_DTYPE_F32, which == BOTH ? half : UIR_DTYPE_F32, half);
    return !wide || (row->cycles && wide->cycles && row->cycles < wide->cycles);
}

/* Of which factors the row asks for this half type on the device. */
static halves wanted_halves(const precision_row *row, uint32_t which, const uir_machine *machine) {
    halves halves = multiplied_halves(machine, row->types[which]);
    return halves != NEITHER && row->where_faster && !is_faster(machine, row->types[which], halves) ? NEITHER : halves;
}

/* ---- products ---- */
static uir_dtype dtype_of(const uir_module *module, uir_value_id value) {
    return uir_value_type(module, value)->dtype;
}

static bool is_product(const uir_module *module, const uir_node_info *node) {
    return (node->op == UIR_OP_MATMUL || node->op == UIR_OP_CONV) &&
           dtype_of(module, node->inputs[0]) == UIR_DTYPE_F32 && dtype_of(module, node->inputs[1]) == UIR_DTYPE_F32 &&
           dtype_of(module, node->outputs[0]) == UIR_DTYPE_F32;
}

static int64_t most_of(const uir_module *module, uir_dim dim) {
    int64_t low, high;
    uir_dim_bounds(module->dims, dim, &low, &high);
    return high;
}

/* Are these matrices? A convolution's are its filters, along the channels or the longest axis of a window. */
static bool has_matrices(const uir_module *module, const uir_node_info *node) {
    const uir_type *w = uir_value_type(module, node->inputs[1]);
    int64_t depth = 0;
    if (node->op != UIR_OP_CONV) return true;
    for (uint32_t d = 1; d < w->rank; d++)
        if (most_of(module, w->dims[d]) > depth) depth = most_of(module, w->dims[d]);
    return depth >= FEW && most_of(module, w->dims[0]) / uir_node_int(module, node, "groups", 1) >= FEW;
}

/* The half that this f32 is the widening of; none. */
static uir_value_id before_widening(const uir_module *module, uir_value_id value) {
    const uir_node_info *cast = uir_value_made_by(module, value, UIR_OP_CAST);
    if (!cast) return (uir_value_id){0};
    uir_dtype from = dtype_of(module, cast->inputs[0]);
    return from == UIR_DTYPE_F16 || from == UIR_DTYPE_BF16 ? cast->inputs[0] : (uir_value_id){0};
}

static bool is_half(const uir_module *module, uir_value_id factor, uir_dtype half) {
    uir_value_id from = before_widening(module, factor);
    return from.id && dtype_of(module, from) == half;
}

static bool has_halves(const uir_module *module, const uir_node_info *node, uir_dtype half, halves which) {
    return which != NEITHER && is_half(module, node->inputs[1], half) &&
           (which == WEIGHTS || is_half(module, node->inputs[0], half));
}

bool uir_precision_keeps(const uir_module *module, const uir_node_info *node, uir_precision precision,
                         const uir_machine *machine) {
    const precision_row *row = &rows[precision];
    if (!is_product(module, node)) return false;
    for (uint32_t i = 0; i < HALVES; i++)
        if (multiplied_halves(machine, half_types[i]) == BOTH && is_faster(machine, half_types[i], BOTH) &&
            has_halves(module, node, half_types[i], BOTH))
            return true;
    for (uint32_t i = 0; i < 2; i++) {
        halves halves = wanted_halves(row, i, machine);
        if (halves == WEIGHTS && find_f32(machine)) continue;
        if (has_halves(module, node, row->types[i], halves)) return true;
    }
    return false;
}

/* ---- factors ---- */
typedef struct chooser {
    uir_module *module;
    uir_pass_context *context;
    const precision_row *row;
    uir_precision_counts counts;
    uir_value_id *constants[HALVES]; /* by value, of each half type: what a constant was rounded to */
    uir_value_id *made[HALVES];      /* likewise: what stands for it where a product reads it */
    uir_graph_id *where;             /* by value: the graph that these are in */
} chooser;

/* The constant that a factor is, stored as a half or not; NULL. */
static const uir_tensor *constant_of(const uir_module *module, uir_value_id factor) {
    uir_value_id stored = before_widening(module, factor);
    return uir_value_info_get(module, stored.id ? stored : factor)->constant;
}

/* Does the greatest of a constant's numbers keep its first digits? */
static bool is_in_range(const uir_tensor *constant, uir_dtype half) {
    double most = 0, rounded;
    uint32_t stored;
    for (uint64_t i = 0; i < constant->element_count; i++) {
        double x = fabs(uir_dtype_load_double(constant->dtype, constant->data, i));
        if (isfinite(x) && x > most) most = x;
    }
    uir_dtype_store_double(half, &stored, 0, most, UIR_ROUND_NEAREST_EVEN);
    rounded = uir_dtype_load_double(half, &stored, 0);
    return isfinite(rounded) && fabs(rounded - most) <= most / 256;
}

static bool are_in_range(const uir_module *module, const uir_node_info *node, uir_dtype half) {
    for (uint32_t i = 0; i < 2; i++) {
        const uir_tensor *constant = constant_of(module, node->inputs[i]);
        if (constant && !is_in_range(constant, half)) return false;
    }
    return true;
}

static uir_status round_constant(chooser *c, uir_value_id factor, uint32_t which, uir_value_id *out) {
    const uir_tensor *constant = constant_of(c->module, factor);
    uir_dtype half = half_types[which];
    uir_tensor *tensor;
    *out = c->constants[which][factor.id];
    if (out->id) return UIR_STATUS_OK;
    UIR_TRY(uir_tensor_create(c->module->allocator, half, constant->rank, constant->shape, &tensor));
    uir_status status = uir_dtype_convert(constant->dtype, constant->data, half, tensor->data, constant->element_count,
                                          UIR_ROUND_NEAREST_EVEN);
    if (status == UIR_STATUS_OK) status = uir_module_add_constant(c->module, "", tensor, out);
    if (status != UIR_STATUS_OK)
        uir_tensor_release(tensor);
    else
        c->constants[which][factor.id] = *out;
    return status;
}

/* The factor as a half that is widened again: once in each graph. */
static uir_status round_factor(chooser *c, uir_builder *b, uir_value_id factor, uint32_t which, uir_value_id *out) {
    uir_module *module = c->module;
    uir_dtype half = half_types[which];
    uir_value_id rounded;
    *out = factor;
    if (is_half(module, factor, half)) return UIR_STATUS_OK;
    if (c->where[factor.id].id == b->graph.id && c->made[which][factor.id].id) {
        *out = c->made[which][factor.id];
        return UIR_STATUS_OK;
    }
    if (constant_of(module, factor))
        UIR_TRY(round_constant(c, factor, which, &rounded));
    else
        rounded = uir_build_cast(b, factor, half);
    *out = uir_build_cast(b, rounded, UIR_DTYPE_F32);
    UIR_TRY(b->status);
    if (c->where[factor.id].id != b->graph.id) c->made[0][factor.id] = c->made[1][factor.id] = (uir_value_id){0};
    c->where[factor.id] = b->graph;
    c->made[which][factor.id] = *out;
    return UIR_STATUS_OK;
}

static uir_status round_factors(chooser *c, uir_builder *b, const uir_node_info *node, uint32_t which, halves halves) {
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_copy(&c->module->arena, node->inputs, 2 * sizeof *inputs));
    for (uint32_t i = halves == WEIGHTS ? 1 : 0; i < 2; i++)
        UIR_TRY(round_factor(c, b, node->inputs[i], which, &inputs[i]));
    uir_node_get(c->module, uir_value_info_get(c->module, node->outputs[0])->producer)->inputs = inputs;
    c->context->changes++;
    return UIR_STATUS_OK;
}

/* Is it a constant that loses nothing as a half? */
static bool is_exact(const uir_module *module, uir_value_id factor, uir_dtype half) {
    const uir_tensor *constant = uir_value_info_get(module, factor)->constant;
    uint32_t stored;
    for (uint64_t i = 0; constant && i < constant->element_count; i++) {
        double x = uir_dtype_load_double(constant->dtype, constant->data, i);
        uir_dtype_store_double(half, &stored, 0, x, UIR_ROUND_NEAREST_EVEN);
        if (uir_dtype_load_double(half, &stored, 0) != x) return false;
    }
    return constant != NULL;
}

/* A half that the model has itself, and a constant that may be one. */
static uir_status keep_halves(chooser *c, uir_builder *b, const uir_node_info *node) {
    for (uint32_t which = 0; which < HALVES; which++) {
        uir_dtype half = half_types[which];
        if (multiplied_halves(c->context->machine, half) != BOTH) continue;
        for (uint32_t k = 0; k < 2; k++)
            if (is_half(c->module, node->inputs[k], half) && is_exact(c->module, node->inputs[!k], half))
                return round_factors(c, b, node, which, BOTH);
    }
    return UIR_STATUS_OK;
}

static uir_status choose(chooser *c, uir_builder *b, const uir_node_info *node) {
    const uir_machine *machine = c->context->machine;
    bool out_of_range = false;
    c->counts.products++;
    if (!has_matrices(c->module, node)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < 2; i++) {
        halves halves = wanted_halves(c->row, i, machine);
        if (halves == NEITHER || (halves == WEIGHTS && !constant_of(c->module, node->inputs[1]))) continue;
        if (!are_in_range(c->module, node, c->row->types[i])) {
            out_of_range = true;
            continue;
        }
        uint32_t which = c->row->types[i] == half_types[1];
        *(which ? &c->counts.bf16 : &c->counts.f16) += 1;
        return round_factors(c, b, node, which, halves);
    }
    c->counts.out_of_range += out_of_range;
    return keep_halves(c, b, node);
}

/* Products keep their places and their results: what is built stands before them. */
static uir_value_id choose_node(void *user, uir_builder *builder, const uir_node_info *node) {
    chooser *c = user;
    if (is_product(c->module, node)) {
        uir_status status = choose(c, builder, node);
        if (builder->status == UIR_STATUS_OK) builder->status = status;
    }
    return (uir_value_id){0};
}

static uir_status check_device(const uir_pass_context *context, const precision_row *row) {
    const uir_machine *machine = context->machine;
    if (row->where_faster || row->types[0] == UIR_DTYPE_NONE || multiplied_halves(machine, row->types[0]) != NEITHER)
        return UIR_STATUS_OK;
    return uir_error_hint(context->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                          "use precision f32, or auto: f16 or bf16 if the device multiplies it faster than f32",
                          "precision %s: the description of device %s %s has no multiplication of %s", row->name,
                          machine->name, machine->chip, row->name);
}

uir_status uir_choose_precision(uir_module *module, uir_pass_context *context) {
    chooser c = {.module = module, .context = context, .row = &rows[context->precision]};
    size_t count = (size_t)module->values.count + 1;
    if (!context->machine) return UIR_STATUS_OK;
    UIR_TRY(check_device(context, c.row));
    for (uint32_t i = 0; i < HALVES; i++) {
        UIR_TRY_ALLOCATE(c.constants[i], uir_arena_allocate_array(context->scratch, count, sizeof **c.constants));
        UIR_TRY_ALLOCATE(c.made[i], uir_arena_allocate_array(context->scratch, count, sizeof **c.made));
    }
    UIR_TRY_ALLOCATE(c.where, uir_arena_allocate_array(context->scratch, count, sizeof *c.where));
    UIR_TRY(uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = choose_node, .user = &c}));
    if (context->precision_counts) *context->precision_counts = c.counts;
    return UIR_STATUS_OK;
}
