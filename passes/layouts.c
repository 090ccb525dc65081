/* Where images lie: what convolutions read and write has its channels innermost, which are what a device's vectors run
 * along: as a layout of the value, its dims stay what they are.
 *
 * A convolution of many channels wants that of its image and of its result, and what works element by element (or
 * along some dims, for each of the others) wants for each of its values what one of them has; so the order spreads
 * from convolution to convolution until a value that must be row-major (the model's own, what else than kernels reads
 * or writes), or an operation that takes dims apart. There it is converted: by a reshape to the dims that it has. */
#include "passes/layouts.h"
#include "passes/tools.h"

#include "ir/graph/axes.h"
#include "ir/graph/demands.h"
#include "ir/machine/device.h"

#include <string.h>

enum {
    LEAST_CHANNELS = 8, /* fewer are read as they lie */
    LEAST_RANK = 3,     /* batch, channels, pixels */
    MOST_RANK = 5,
};

/* How an operation's values lie together: what has the result's dims, in their order, is best in its layout. */
typedef enum relation {
    NOTHING, /* it reads and writes any layout: dims are taken apart or moved */
    FIRST,   /* its first operand and its result go together */
    ALL      /* all its operands that are tensors of the same rank, and its result */
} relation;

static const struct {
    uir_op op;
    relation relation;
    uir_layout_rule rule;
} relations[] = {
    {UIR_OP_CONV, FIRST, UIR_LAYOUT_IMAGES},           {UIR_OP_WINDOW_SUM, FIRST, UIR_LAYOUT_POOLS},
    {UIR_OP_WINDOW_MAX, FIRST, UIR_LAYOUT_POOLS},      {UIR_OP_PAD, FIRST, UIR_LAYOUT_PADS},
    {UIR_OP_SLICE, FIRST, UIR_LAYOUT_SLICES},          {UIR_OP_GATHER, FIRST, UIR_LAYOUT_SLICES},
    {UIR_OP_CONCAT, ALL, UIR_LAYOUT_CONCATS},          {UIR_OP_BROADCAST, FIRST, UIR_LAYOUT_BROADCASTS},
    {UIR_OP_REDUCE_SUM, FIRST, UIR_LAYOUT_REDUCTIONS}, {UIR_OP_REDUCE_PROD, FIRST, UIR_LAYOUT_REDUCTIONS},
    {UIR_OP_REDUCE_MAX, FIRST, UIR_LAYOUT_REDUCTIONS}, {UIR_OP_REDUCE_MIN, FIRST, UIR_LAYOUT_REDUCTIONS},
    {UIR_OP_RESHAPE, NOTHING, UIR_LAYOUT_RESHAPES},    {UIR_OP_TRANSPOSE, NOTHING, UIR_LAYOUT_RESHAPES},
    {UIR_OP_MATMUL, NOTHING, UIR_LAYOUT_RESHAPES},
};

static const char *const rules[] = {
#define UIR_LAYOUT_RULE(constant, name, purpose) name,
#include "passes/layout_rules.def"
};

const char *uir_layout_rule_name(uir_layout_rule rule) {
    return rule < UIR_LAYOUT_RULE_COUNT ? rules[rule] : NULL;
}

typedef struct layouts {
    uir_module *module;
    uint32_t left_out; /* bit per rule */
    bool *can;         /* by value: kernels alone make it and read it */
    bool *wants;       /* by value */
    bool changed;
} layouts;

static bool follows(const layouts *l, uir_layout_rule rule) {
    return !(l->left_out >> rule & 1);
}

static bool find_relation(const layouts *l, uir_op op, relation *out_relation) {
    *out_relation = ALL;
    if (uir_op_get_row(op)->traits & UIR_TRAIT_ELEMENTWISE) return follows(l, UIR_LAYOUT_ELEMENTS);
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        if (relations[i].op != op) continue;
        *out_relation = relations[i].relation;
        return follows(l, relations[i].rule);
    }
    return false;
}

static bool has_layout(const layouts *l, uir_value_id value) {
    return value.id && uir_value_info_get(l->module, value)->layout;
}

static bool are_same_dims(const layouts *l, uir_value_id a, uir_value_id b) {
    const uir_type *s = uir_value_type(l->module, a), *t = uir_value_type(l->module, b);
    bool same = s->rank == t->rank;
    for (uint32_t d = 0; d < s->rank && same; d++) same = uir_dim_equal(s->dims[d], t->dims[d]);
    return same;
}

/* ---- which values may ---- */
static bool is_image(const layouts *l, uir_value_id value) {
    if (!value.id) return false;
    const uir_value_info *info = uir_value_info_get(l->module, value);
    return info->type.kind == UIR_VALUE_TENSOR && info->type.rank_known && info->type.rank >= LEAST_RANK &&
           info->type.rank <= MOST_RANK && !info->constant && uir_dtype_bits(info->type.dtype) >= 8;
}

static void keep_row_major(layouts *l, const uir_value_id *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) l->can[values[i].id] = false;
}

/* Has the node by itself axes in common, along which a kernel can read one order and write another? */
static uir_status has_axes(const layouts *l, uir_node_id id, uir_arena *scratch, bool *out_has) {
    uir_axes axes;
    const uir_node_info *node = uir_node_get(l->module, id);
    *out_has = true;
    /* What the run decides of these goes along their dims as they lie. */
    if (node->op == UIR_OP_BROADCAST || node->op == UIR_OP_CONCAT) return UIR_STATUS_OK;
    if (uir_op_get_row(node->op)->traits & UIR_TRAIT_ELEMENTWISE) return UIR_STATUS_OK;
    uir_status status = uir_axes_analyse(l->module, &id, 1, scratch, &axes, NULL);
    *out_has = status == UIR_STATUS_OK;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

static uir_status find_able(layouts *l, uir_arena *scratch) {
    uir_module *module = l->module;
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = uir_graph_get(module, (uir_graph_id){g});
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            for (uint32_t i = 0; i < node->output_count; i++)
                l->can[node->outputs[i].id] = is_image(l, node->outputs[i]);
        }
    }
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = uir_graph_get(module, (uir_graph_id){g});
        keep_row_major(l, graph->inputs.data, graph->inputs.count);
        keep_row_major(l, graph->outputs.data, graph->outputs.count);
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            relation r;
            bool related = find_relation(l, node->op, &r);
            if (related) UIR_TRY(has_axes(l, graph->nodes.data[n], scratch, &related));
            if (related) continue;
            node = uir_node_get(module, graph->nodes.data[n]);
            keep_row_major(l, node->inputs, node->input_count);
            keep_row_major(l, node->outputs, node->output_count);
        }
    }
    l->can[0] = false;
    return UIR_STATUS_OK;
}

/* ---- which want to ---- */
static void want(layouts *l, uir_value_id value) {
    if (!l->can[value.id] || l->wants[value.id]) return;
    l->wants[value.id] = l->changed = true;
}

static bool has_many_channels(const layouts *l, uir_value_id value) {
    int64_t channels;
    const uir_type *type = uir_value_type(l->module, value);
    if (!is_image(l, value)) return false;
    return !uir_dim_is_const(l->module->dims, type->dims[1], &channels) || channels >= LEAST_CHANNELS;
}

/* A result of few channels, each the sum of many: pixels are rows of its product, too; but what follows has them as the
 * dims are, along which vectors go. */
static bool makes_few_of_many(const layouts *l, const uir_node_info *node) {
    int64_t channels;
    return follows(l, UIR_LAYOUT_FEW) && !has_many_channels(l, node->outputs[0]) && is_image(l, node->outputs[0]) &&
           uir_dim_is_const(l->module->dims, uir_value_type(l->module, node->outputs[0])->dims[1], &channels) &&
           channels > 1 && uir_node_int(l->module, node, "groups", 1) == 1 && has_many_channels(l, node->inputs[0]);
}

/* Does the operand lie as the result does, where it is in the result's relation? */
static bool goes_with(const layouts *l, const uir_node_info *node, uint32_t operand, relation r) {
    if (r == NOTHING || (r == FIRST && operand)) return false;
    uir_value_id value = node->inputs[operand];
    return value.id && is_image(l, value) &&
           uir_value_type(l->module, value)->rank == uir_value_type(l->module, node->outputs[0])->rank;
}

static void spread_node(layouts *l, const uir_node_info *node) {
    relation r;
    bool wanted;
    if (!node->output_count || !find_relation(l, node->op, &r)) return;
    if (node->op == UIR_OP_CONV) {
        if (has_many_channels(l, node->inputs[0]) || uir_value_made_by(l->module, node->inputs[0], UIR_OP_PAD) ||
            uir_value_made_by(l->module, node->inputs[0], UIR_OP_RESHAPE))
            want(l, node->inputs[0]);
        if (has_many_channels(l, node->outputs[0]) || makes_few_of_many(l, node)) want(l, node->outputs[0]);
        return;
    }
    /* Few channels lie together for the convolution that reads them: before the copy of padding that it asked for,
     * vectors go along pixels. */
    if (node->op == UIR_OP_PAD && !has_many_channels(l, node->outputs[0])) return;
    wanted = l->wants[node->outputs[0].id];
    for (uint32_t i = 0; i < node->input_count; i++) wanted |= goes_with(l, node, i, r) && l->wants[node->inputs[i].id];
    if (!wanted) return;
    want(l, node->outputs[0]);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (goes_with(l, node, i, r)) want(l, node->inputs[i]);
}

static void spread(layouts *l) {
    uir_module *module = l->module;
    do {
        l->changed = false;
        for (uint32_t g = 1; g < module->graphs.count; g++) {
            const uir_graph_info *graph = uir_graph_get(module, (uir_graph_id){g});
            for (uint32_t n = 0; n < graph->nodes.count; n++)
                spread_node(l, uir_node_get(module, graph->nodes.data[n]));
            for (uint32_t n = graph->nodes.count; n-- > 0;) spread_node(l, uir_node_get(module, graph->nodes.data[n]));
        }
    } while (l->changed);
}

/* ---- what comes of it ---- */
/* In which order dims lie, from the outermost. */
static uir_status set_order(uir_module *module, uir_value_id value, const uint32_t *wanted, uint32_t *io_changes) {
    const uir_type *type = uir_value_type(module, value);
    uint32_t order[UIR_LAYOUT_MAX_RANK], rank = type->rank;
    uir_layout layout;
    memcpy(order, wanted, rank * sizeof *order);
    uir_layout_set_order(&layout, type->dims, order, rank, module->dims);
    if (uir_layout_find_order(&layout, type->dims, rank, module->dims, order)) {
        /* With one channel, or one pixel, nothing would change. */
        uir_layout row_major = {.given = false};
        bool same = uir_layout_finish(&row_major, type->dims, rank, module->dims).id != 0;
        for (uint32_t d = 0; d < rank && same; d++) {
            int64_t extent;
            same = (uir_dim_is_const(module->dims, type->dims[d], &extent) && extent == 1) ||
                   uir_dim_equal(row_major.modes[d][0].stride, layout.modes[d][0].stride);
        }
        if (same) return UIR_STATUS_OK;
    }
    const uir_layout *before = uir_value_info_get(module, value)->layout;
    if (before && uir_layout_is_same(before, &layout, rank)) return UIR_STATUS_OK;
    ++*io_changes;
    return uir_module_set_layout(module, value, &layout);
}

/* Batch, pixels, channels. */
static uir_status set_channels_last(uir_module *module, uir_value_id value, uint32_t *io_changes) {
    uint32_t order[UIR_LAYOUT_MAX_RANK] = {0}, rank = uir_value_type(module, value)->rank;
    for (uint32_t d = 2; d < rank; d++) order[d - 1] = d;
    order[rank - 1] = 1;
    return set_order(module, value, order, io_changes);
}

/* The copies of weights: elements of a filter as they are summed, filters. */
static uir_status set_filters_last(layouts *l, uint32_t *io_changes) {
    uir_module *module = l->module;
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = uir_graph_get(module, (uir_graph_id){g});
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            if (node->op != UIR_OP_CONV) continue;
            uint32_t order[MOST_RANK], rank = uir_value_type(module, node->inputs[1])->rank;
            const uir_node_info *copy = uir_value_made_by(module, node->inputs[1], UIR_OP_RESHAPE);
            if (!copy || !l->can[node->inputs[1].id] || !are_same_dims(l, copy->inputs[0], node->inputs[1])) continue;
            for (uint32_t d = 2; d < rank; d++) order[d - 2] = d;
            order[rank - 2] = 1, order[rank - 1] = 0;
            UIR_TRY(set_order(module, node->inputs[1], order, io_changes));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_lay_out_image(uir_module *module, uir_value_id value) {
    uint32_t changes = 0;
    return set_channels_last(module, value, &changes);
}

static uir_value_id convert(uir_builder *b, uir_value_id value) {
    const uir_type type = *uir_value_type(b->module, value);
    uir_attribute dims = uir_attribute_dims(b, "dims", type.dims, type.rank);
    uir_value_id result;
    uir_build_node(b, UIR_OP_RESHAPE, &value, 1, &dims, 1, &result, 1);
    return result;
}

/* Windows over an image of few channels: with its padding made and its channels innermost, a line of a window is one
 * run of elements, and nothing of it is outside. */
static bool has_padding(const layouts *l, const uir_node_info *node) {
    uint32_t count;
    const uir_dim *before = uir_node_dims(l->module, node, "low", &count),
                  *after = uir_node_dims(l->module, node, "high", &count);
    uir_dim zero = uir_dim_const(l->module->dims, 0);
    for (uint32_t d = 0; d < count; d++)
        if (!uir_dim_equal(before[d], zero) || !uir_dim_equal(after[d], zero)) return true;
    return false;
}

static bool wants_padding(const layouts *l, const uir_node_info *node) {
    int64_t channels, taps = 1, extent;
    const uir_type *image = uir_value_type(l->module, node->inputs[0]), *w = uir_value_type(l->module, node->inputs[1]);
    if (!follows(l, UIR_LAYOUT_PADDING) || !is_image(l, node->inputs[0]) ||
        !uir_dim_is_const(l->module->dims, image->dims[1], &channels) || channels >= LEAST_CHANNELS ||
        uir_node_int(l->module, node, "groups", 1) != 1 || !has_many_channels(l, node->outputs[0]) ||
        has_layout(l, node->inputs[0]) || (channels == 1 && !has_padding(l, node)))
        return false;
    for (uint32_t d = 2; d < w->rank; d++) {
        if (!uir_dim_is_const(l->module->dims, w->dims[d], &extent)) return false;
        taps *= extent;
    }
    return taps > 1;
}

static uir_value_id pad_image(const layouts *l, uir_builder *b, const uir_node_info *node) {
    const uir_type image = *uir_value_type(l->module, node->inputs[0]);
    uir_dim low[MOST_RANK], high[MOST_RANK], zero = uir_dim_const(l->module->dims, 0);
    int64_t interior[MOST_RANK] = {0};
    uint32_t count;
    if (!has_padding(l, node)) return convert(b, node->inputs[0]);
    const uir_dim *before = uir_node_dims(l->module, node, "low", &count),
                  *after = uir_node_dims(l->module, node, "high", &count);
    for (uint32_t d = 0; d < image.rank; d++) {
        low[d] = d < 2 ? zero : before[d - 2];
        high[d] = d < 2 ? zero : after[d - 2];
    }
    return uir_build_pad(b, node->inputs[0], uir_build_scalar(b, image.dtype, 0), low, high, interior);
}

/* The same convolution of an image whose padding is made. */
static uir_value_id convolve_padded(const layouts *l, uir_builder *b, const uir_node_info *node, uir_value_id image,
                                    uir_value_id weights) {
    uir_attribute attributes[16];
    uir_dim zeros[MOST_RANK];
    uir_value_id inputs[2] = {image, weights}, result = {0};
    uint32_t count = node->attribute_count, spatial;
    if (count > sizeof attributes / sizeof *attributes) return result;
    (void)uir_node_dims(l->module, node, "low", &spatial);
    for (uint32_t d = 0; d < spatial; d++) zeros[d] = uir_dim_const(l->module->dims, 0);
    uir_attribute low = uir_attribute_dims(b, "low", zeros, spatial),
                  high = uir_attribute_dims(b, "high", zeros, spatial);
    for (uint32_t i = 0; i < count; i++) {
        attributes[i] = node->attributes[i];
        if (attributes[i].name.id == low.name.id) attributes[i] = low;
        if (attributes[i].name.id == high.name.id) attributes[i] = high;
    }
    uir_build_node(b, UIR_OP_CONV, inputs, 2, attributes, count, &result, 1);
    return result;
}

/* Weights that the run computes: a copy is made in which filters are innermost. Constants are packed, halves that are
 * widened as they are read, too; few elements that are many weights are read as they are. */
static bool are_computed(const layouts *l, const uir_node_info *node) {
    int64_t filters, groups = uir_node_int(l->module, node, "groups", 1);
    uir_value_id weights = node->inputs[1];
    const uir_node_info *cast = uir_value_made_by(l->module, weights, UIR_OP_CAST);
    const uir_value_info *info = uir_value_info_get(l->module, cast ? cast->inputs[0] : weights);
    if (!follows(l, UIR_LAYOUT_WEIGHTS) || uir_value_made_by(l->module, weights, UIR_OP_BROADCAST) || info->constant ||
        !info->type.rank_known || info->type.rank < LEAST_RANK || info->type.rank > MOST_RANK ||
        has_layout(l, weights) || !has_many_channels(l, node->outputs[0]))
        return false;
    return !uir_dim_is_const(l->module->dims, info->type.dims[0], &filters) || filters / groups >= LEAST_CHANNELS;
}

/* A convolution's image that must be row-major is converted before it, and its result after it. */
static uir_value_id convert_around(void *user, uir_builder *b, const uir_node_info *node) {
    const layouts *l = user;
    uir_value_id inputs[2], none = {0}, result;
    if (node->op != UIR_OP_CONV || !follows(l, UIR_LAYOUT_IMAGES)) return none;
    bool before = !l->can[node->inputs[0].id] && has_many_channels(l, node->inputs[0]);
    bool after = l->can[node->outputs[0].id] ? makes_few_of_many(l, node) && !has_layout(l, node->outputs[0])
                                             : has_many_channels(l, node->outputs[0]) || makes_few_of_many(l, node);
    bool weights = are_computed(l, node);
    inputs[1] = weights ? convert(b, node->inputs[1]) : node->inputs[1];
    if (wants_padding(l, node)) {
        result = convolve_padded(l, b, node, pad_image(l, b, node), inputs[1]);
        return after ? convert(b, result) : result;
    }
    if (!before && !after && !weights) return none;
    inputs[0] = before ? convert(b, node->inputs[0]) : node->inputs[0];
    uir_build_node(b, UIR_OP_CONV, inputs, 2, node->attributes, node->attribute_count, &result, 1);
    return after ? convert(b, result) : result;
}

/* ---- images whose sizes are another's, by other names ---- */
typedef struct renaming {
    uir_module *module;
    uir_vector(const uir_node_info *) checks; /* what says that two sizes are one */
} renaming;

static bool is_said(const renaming *r, uir_dim a, uir_dim b) {
    uint32_t count;
    for (uint32_t i = 0; i < r->checks.count; i++) {
        uir_dim left = uir_node_dims(r->module, r->checks.data[i], "left", &count)[0],
                right = uir_node_dims(r->module, r->checks.data[i], "right", &count)[0];
        if ((uir_dim_equal(a, left) && uir_dim_equal(b, right)) || (uir_dim_equal(a, right) && uir_dim_equal(b, left)))
            return true;
    }
    return false;
}

/* The dims of an image as the reshape's operand has them: each of the result's is some of its operand's together, the
 * same or said to be. `*out_renames`: one is said to be. */
static bool find_own_dims(const renaming *r, const uir_type *from, const uir_type *to, uir_dim *out_dims,
                          bool *out_renames) {
    uir_dims *dims = r->module->dims;
    uint32_t at = 0;
    *out_renames = false;
    for (uint32_t d = 0; d < to->rank; d++) {
        uir_dim own = uir_dim_const(dims, 1);
        bool same = false, said = false;
        while (at < from->rank && !same && !said) {
            own = uir_dim_mul(dims, own, from->dims[at++]);
            same = own.id && uir_dim_compare(dims, own, UIR_RELATION_EQ, to->dims[d]) == UIR_TRUE;
            said = own.id && !same && d > 1 && is_said(r, own, to->dims[d]);
        }
        if (!same && !said) return false;
        *out_renames |= said;
        out_dims[d] = own;
    }
    return at == from->rank;
}

/* A reshape that gives an image another's dims, where a check says that these are the same, is all of its elements by
 * another name: as a slice it goes along dims, which a reshape to dims that are not proved equal does not. */
static uir_value_id rename_sizes(void *user, uir_builder *b, const uir_node_info *node) {
    const renaming *r = user;
    uir_value_id none = {0};
    uir_dim own[MOST_RANK], starts[MOST_RANK], sizes[MOST_RANK];
    int64_t steps[MOST_RANK];
    bool renames;
    if (node->op != UIR_OP_RESHAPE) return none;
    const uir_type *from = uir_value_type(r->module, node->inputs[0]),
                   *to = uir_value_type(r->module, node->outputs[0]);
    if (to->rank < LEAST_RANK || to->rank > MOST_RANK || !find_own_dims(r, from, to, own, &renames) || !renames)
        return none;
    uint32_t rank = to->rank;
    for (uint32_t d = 0; d < rank; d++) {
        starts[d] = uir_dim_const(r->module->dims, 0);
        sizes[d] = to->dims[d];
        steps[d] = 1;
    }
    return uir_build_slice(b, uir_build_reshape(b, node->inputs[0], own, rank), starts, sizes, steps);
}

static uir_status find_checks(renaming *r, uir_arena *scratch) {
    for (uint32_t g = 1; g < r->module->graphs.count; g++) {
        const uir_graph_info *graph = uir_graph_get(r->module, (uir_graph_id){g});
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(r->module, graph->nodes.data[n]);
            if (!uir_is_equality(r->module, node)) continue;
            const uir_node_info *copy; /* building moves the array */
            UIR_TRY_ALLOCATE(copy, uir_arena_copy(scratch, node, sizeof *node));
            UIR_TRY(uir_vector_push(scratch, &r->checks, copy));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status begin(layouts *l, uir_arena *scratch) {
    uint32_t count = l->module->values.count + 1;
    UIR_TRY_ALLOCATE(l->can, uir_arena_allocate_array(scratch, count, sizeof *l->can));
    UIR_TRY_ALLOCATE(l->wants, uir_arena_allocate_array(scratch, count, sizeof *l->wants));
    return find_able(l, scratch);
}

uir_status uir_lay_out_images(uir_module *module, uir_pass_context *context) {
    layouts l = {.module = module, .left_out = context->layouts_left_out};
    if (!context->machine || context->machine->mma_n < 2) return UIR_STATUS_OK;
    renaming r = {.module = module};
    UIR_TRY(find_checks(&r, context->scratch));
    uir_rewriter renames = {.rewrite = rename_sizes, .user = &r};
    if (r.checks.count && follows(&l, UIR_LAYOUT_SIZES)) UIR_TRY(uir_rewrite_nodes(module, context, &renames));
    UIR_TRY(begin(&l, context->scratch));
    uir_rewriter rewriter = {.rewrite = convert_around, .user = &l};
    UIR_TRY(uir_rewrite_nodes(module, context, &rewriter));
    UIR_TRY(begin(&l, context->scratch)); /* with what was built */
    spread(&l);
    for (uint32_t v = 1; v < module->values.count; v++)
        if (l.wants[v]) UIR_TRY(set_channels_last(module, (uir_value_id){v}, &context->changes));
    return set_filters_last(&l, &context->changes);
}

/* Does it read an image in one order and give it in another? What is summed over pixels has none of an image. */
static bool converts(const layouts *l, const uir_node_info *node) {
    relation r;
    if (!node->output_count || !find_relation(l, node->op, &r) || node->op == UIR_OP_CONV ||
        uir_op_get_row(node->op)->traits & UIR_TRAIT_REDUCTION)
        return false;
    bool to = has_layout(l, node->outputs[0]);
    if (node->op == UIR_OP_RESHAPE)
        return are_same_dims(l, node->inputs[0], node->outputs[0]) && has_layout(l, node->inputs[0]) != to;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (goes_with(l, node, i, r) && has_layout(l, node->inputs[i]) != to &&
            !uir_value_made_by(l->module, node->inputs[i], UIR_OP_BROADCAST))
            return true;
    return false;
}

/* Sums of windows, moved: the image of a convolution by Winograd's formula. */
static bool is_made_of_windows(const layouts *l, uir_value_id value) {
    static const uir_op steps[] = {UIR_OP_RESHAPE, UIR_OP_TRANSPOSE, UIR_OP_ADD, UIR_OP_ADD, UIR_OP_WINDOWS};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const uir_node_info *node = uir_value_made_by(l->module, value, steps[i]);
        if (!node) return false;
        value = node->inputs[0];
    }
    return true;
}

uir_layout_counts uir_count_layouts(const uir_module *module) {
    layouts l = {.module = (uir_module *)(uintptr_t)module};
    uir_layout_counts counts = {0};
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = uir_graph_get(module, (uir_graph_id){g});
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            for (uint32_t i = 0; i < node->output_count; i++) counts.values += has_layout(&l, node->outputs[i]);
            counts.conversions += converts(&l, node);
            counts.winograd += node->op == UIR_OP_MATMUL && is_made_of_windows(&l, node->inputs[0]);
        }
    }
    return counts;
}
