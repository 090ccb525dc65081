/* The contract, read off the bodies. */
#include "tests/fusion/contract.h"
#include "ir/graph/axes.h"

#include <math.h>
#include <string.h>

typedef struct looking {
    const contract *c;
    const uir_module *module;
    const uir_node_info *group;
    const uir_graph_info *body;
    uir_arena arena;
    uir_axes axes;
    uint32_t products, reductions, opaque;
} looking;

static const uir_node_info *node(const looking *l, uint32_t i) {
    return uir_node_get(l->module, l->body->nodes.data[i]);
}

static bool is_reduction(uir_op op) {
    return uir_op_get_row(op)->traits & UIR_TRAIT_REDUCTION && op != UIR_OP_WINDOW_SUM && op != UIR_OP_WINDOW_MAX;
}
static bool is_product(uir_op op) {
    return uir_op_get_row(op)->traits & UIR_TRAIT_CONTRACTION;
}
static bool is_opaque(uir_op op) {
    return op == UIR_OP_SCAN_SUM || op == UIR_OP_SCAN_PROD || op == UIR_OP_SCATTER_ELEMENTS ||
           op == UIR_OP_SCATTER_ND || op == UIR_OP_WINDOW_SUM || op == UIR_OP_WINDOW_MAX;
}
static bool is_gather(uir_op op) {
    return op == UIR_OP_GATHER || op == UIR_OP_GATHER_ELEMENTS || op == UIR_OP_GATHER_ND;
}

static int index_of_maker(const looking *l, uir_value_id value) {
    for (uint32_t i = 0; i < l->body->nodes.count; i++)
        if (node(l, i)->outputs[0].id == value.id) return (int)i;
    return -1;
}
static bool is_output(const looking *l, uint32_t i) {
    for (uint32_t k = 0; k < l->body->outputs.count; k++)
        if (l->body->outputs.data[k].id == node(l, i)->outputs[0].id) return true;
    return false;
}

/* Whether the node or one that it is computed from is of the kind. */
static bool comes_from(const looking *l, int i, bool (*kind)(uir_op op)) {
    if (i < 0) return false;
    if (kind(node(l, (uint32_t)i)->op)) return true;
    for (uint32_t k = 0; k < node(l, (uint32_t)i)->input_count; k++)
        if (comes_from(l, index_of_maker(l, node(l, (uint32_t)i)->inputs[k]), kind)) return true;
    return false;
}
static bool is_concat(uir_op op) {
    return op == UIR_OP_CONCAT;
}

/* ---- sets of axes: bits, for at most 64 of them ---- */
static uint64_t set_of(uir_axis_list list) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < list.count; i++) bits |= (uint64_t)1 << (list.axes[i] & 63);
    return bits;
}
static uint64_t axes_of(const looking *l, uint32_t i) {
    return set_of(uir_axes_of_value(&l->axes, node(l, i)->outputs[0]));
}

static const char *check_nodes(looking *l) {
    bool only_reshapes = true;
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        uir_op op = node(l, i)->op;
        l->products += is_product(op);
        l->reductions += is_reduction(op);
        l->opaque += is_opaque(op);
        only_reshapes = only_reshapes && op == UIR_OP_RESHAPE;
        int first = node(l, i)->input_count ? index_of_maker(l, node(l, i)->inputs[0]) : -1;
        if ((is_gather(op) || op == UIR_OP_PAD) && first >= 0) return "data of a gather or pad is computed";
        if (is_gather(op) && comes_from(l, index_of_maker(l, node(l, i)->inputs[1]), is_concat))
            return "indices of a gather are pieces";
        if (op == UIR_OP_WINDOWS && first >= 0) return "windows of what is computed";
        if (op == UIR_OP_SLICE && comes_from(l, first, is_concat)) return "a slice of a concat";
        if (op == UIR_OP_SLICE && (comes_from(l, first, is_reduction) || comes_from(l, first, is_product)))
            return "a slice of what is reduced";
        for (uint32_t k = 0; op == UIR_OP_CONCAT && k < node(l, i)->input_count; k++)
            if (comes_from(l, index_of_maker(l, node(l, i)->inputs[k]), is_concat)) return "a concat of a concat";
    }
    if (only_reshapes) return "nothing but reshapes";
    if (l->opaque && l->body->nodes.count > 1) return "an opaque node is not alone";
    if (l->products == 1 && l->reductions) return "a product and a reduction";
    if (l->products > 2 && l->reductions) return "three products and a reduction";
    for (uint32_t i = 0; i < l->body->nodes.count && l->body->nodes.count > 1; i++) {
        uir_op op = node(l, i)->op;
        bool apart = is_gather(op) || op == UIR_OP_PAD || op == UIR_OP_CONCAT;
        if (apart && (l->products || l->reductions)) return "a gather, pad or concat beside a product or reduction";
    }
    return NULL;
}

static const char *check_product(const looking *l) {
    uint64_t domain = 0;
    for (uint32_t i = 0; i < l->body->nodes.count; i++)
        if (is_product(node(l, i)->op)) domain = axes_of(l, i);
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        bool after = comes_from(l, (int)i, is_product);
        if (after && axes_of(l, i) != domain) return "over other axes than the product";
        if (is_output(l, i) && !after) return "a result that is not the product's";
        if (after && (node(l, i)->op == UIR_OP_SLICE || node(l, i)->op == UIR_OP_WINDOWS))
            return "a slice of the product";
    }
    return NULL;
}

static bool reaches(const looking *l, uint32_t from, int to) {
    if (to < 0) return false;
    if ((uint32_t)to == from) return true;
    for (uint32_t k = 0; k < node(l, (uint32_t)to)->input_count; k++)
        if (reaches(l, from, index_of_maker(l, node(l, (uint32_t)to)->inputs[k]))) return true;
    return false;
}

/* Products of one left operand: what depends on one has its axes. */
static const char *check_siblings(const looking *l) {
    uir_value_id left = {0};
    for (uint32_t s = 0; s < l->body->nodes.count; s++) {
        if (!is_product(node(l, s)->op)) continue;
        if (left.id && left.id != node(l, s)->inputs[0].id) return "products of different left operands";
        left = node(l, s)->inputs[0];
        for (uint32_t i = 0; i < l->body->nodes.count; i++) {
            if (i == s || !reaches(l, s, (int)i)) continue;
            if (is_product(node(l, i)->op)) return "a product of a product";
            if (axes_of(l, i) != axes_of(l, s)) return "over other axes than a product it depends on";
        }
    }
    for (uint32_t i = 0; i < l->body->nodes.count; i++)
        if (is_output(l, i) && !comes_from(l, (int)i, is_product)) return "a result that is no product's";
    return NULL;
}

static bool is_chained(const looking *l) {
    for (uint32_t s = 0; s < l->body->nodes.count; s++)
        for (uint32_t i = s + 1; i < l->body->nodes.count; i++)
            if (is_product(node(l, s)->op) && is_product(node(l, i)->op) && reaches(l, s, (int)i)) return true;
    return false;
}

/* Rows and keys, reductions over the keys or none, and a product that sums over them. */
static const char *check_attention(const looking *l) {
    uint32_t first = UINT32_MAX, last = 0;
    uint64_t all = 0, kept = 0;
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        if (!is_product(node(l, i)->op)) continue;
        if (first == UINT32_MAX) first = i;
        last = i;
    }
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        bool after = reaches(l, last, (int)i), between = !after && reaches(l, first, (int)i);
        if (after && axes_of(l, i) != axes_of(l, last)) return "over other axes than the second product";
        if (is_output(l, i) && !after) return "a result from between two products";
        if (!is_reduction(node(l, i)->op)) continue;
        if (!between) return "a reduction that is not between the products";
        uint64_t own = set_of(uir_axes_of_operand(&l->axes, i, 0));
        if (all && (own != all || axes_of(l, i) != kept)) return "reductions over different axes";
        all = own, kept = axes_of(l, i);
    }
    if (!all) all = axes_of(l, first), kept = all & axes_of(l, last); /* nothing is reduced between */
    uint64_t summed = set_of(uir_axes_of_operand(&l->axes, last, 0)) & ~axes_of(l, last);
    if (set_of(uir_axes_of_operand(&l->axes, last, 0)) != all) return "the second product reads other axes";
    return summed == (all & ~kept) ? NULL : "the second product does not sum over the keys";
}

static const char *check_reduction(const looking *l) {
    uint64_t all = 0, kept = 0;
    bool first = true;
    double row = 4;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        if (!is_reduction(node(l, i)->op)) continue;
        uint64_t own = set_of(uir_axes_of_operand(&l->axes, i, 0)), left = axes_of(l, i);
        if (!first && (own != all || left != kept)) return "reductions over different axes";
        all = own, kept = left, first = false;
    }
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        uint64_t own = axes_of(l, i);
        if (own & ~all) return "axes that the reductions do not have";
        if (is_output(l, i) && own != all && own != kept) return "a result over some of the axes";
        uses += is_reduction(node(l, i)->op) || (is_output(l, i) && own == all && all != kept);
    }
    for (uint32_t a = 0; a < l->axes.count; a++) {
        int64_t extent;
        if (!((all & ~kept) >> a & 1)) continue;
        if (!uir_dim_is_const(l->module->dims, l->axes.axes[a].extent, &extent)) return NULL;
        row *= (double)extent;
    }
    return l->c->row_bytes && uses > 1 && row > (double)l->c->row_bytes ? "a row too long for the chip" : NULL;
}

static const char *check_trivial(const looking *l) {
    uint64_t domain = 0;
    bool first = true;
    for (uint32_t i = 0; i < l->body->nodes.count; i++) {
        if (!is_output(l, i)) continue;
        if (!first && axes_of(l, i) != domain) return "results over different axes";
        domain = axes_of(l, i), first = false;
    }
    return NULL;
}

static const char *check_body(looking *l) {
    const char *wrong = check_nodes(l);
    if (wrong) return wrong;
    if (l->group->input_count + l->group->output_count > l->c->most_operands) return "too many operands and results";
    if (!l->group->output_count) return "no result";
    uir_status status =
        uir_axes_analyse(l->module, l->body->nodes.data, l->body->nodes.count, &l->arena, &l->axes, NULL);
    if (status == UIR_STATUS_UNSUPPORTED) return l->body->nodes.count > 1 ? "no common axes" : NULL;
    if (status != UIR_STATUS_OK || l->axes.count > 64) return NULL;
    if (l->body->nodes.count == 1) return NULL;
    if (l->products > 1) return l->reductions || is_chained(l) ? check_attention(l) : check_siblings(l);
    return l->products ? check_product(l) : l->reductions ? check_reduction(l) : check_trivial(l);
}

static const uir_graph_info *body_of(const uir_module *module, const uir_node_info *group) {
    return uir_graph_get(module, uir_node_find_attribute(module, group, "body")->value.graph);
}

const char *contract_broken(const contract *c) {
    const char *wrong = NULL;
    for (uint32_t g = 1; g < c->module->graphs.count; g++) {
        for (uint32_t n = 0; n < c->module->graphs.data[g].nodes.count && !wrong; n++) {
            looking l = {.c = c, .module = c->module};
            l.group = uir_node_get(c->module, c->module->graphs.data[g].nodes.data[n]);
            if (l.group->op != UIR_OP_GROUP) continue;
            l.body = body_of(c->module, l.group);
            uir_arena_init(&l.arena, c->module->allocator);
            wrong = check_body(&l);
            uir_arena_deinit(&l.arena);
        }
    }
    return wrong;
}

/* ---- bytes ---- */
static double bytes_of(const uir_module *module, uir_value_id value) {
    const uir_type *type = uir_value_type(module, value);
    int64_t values[256], extent;
    double bytes = uir_dtype_bits(type->dtype) / 8.0;
    for (int i = 0; i < 256; i++) values[i] = 64;
    for (uint32_t d = 0; d < type->rank; d++)
        if (uir_dim_evaluate(module->dims, type->dims[d], values, NULL, 256, &extent) == UIR_DIM_EVALUATED)
            bytes *= fmax((double)extent, 1);
    return bytes;
}

static double bytes_read(const uir_module *module, const uir_node_info *reader, uint32_t operand) {
    double all = bytes_of(module, reader->inputs[operand]);
    bool picks = reader->op == UIR_OP_SLICE || reader->op == UIR_OP_WINDOWS || (is_gather(reader->op) && !operand);
    return picks ? fmin(all, bytes_of(module, reader->outputs[0])) : all;
}

/* Each operand counts as often as parts of it are picked, once when it is read whole. */
static double group_bytes(const uir_module *module, const uir_node_info *group) {
    const uir_graph_info *body = body_of(module, group);
    double sum = 0;
    for (uint32_t i = 0; i < body->inputs.count; i++) {
        double whole = bytes_of(module, body->inputs.data[i]), read = 0;
        for (uint32_t n = 0; n < body->nodes.count; n++) {
            const uir_node_info *reader = uir_node_get(module, body->nodes.data[n]);
            for (uint32_t k = 0; k < reader->input_count; k++)
                if (reader->inputs[k].id == body->inputs.data[i].id) read += bytes_read(module, reader, k);
        }
        sum += fmin(whole, read);
    }
    for (uint32_t i = 0; i < group->output_count; i++) sum += bytes_of(module, group->outputs[i]);
    return sum;
}

double contract_bytes(const uir_module *module) {
    double sum = 0;
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const char *name = uir_string_text(&module->strings, module->graphs.data[g].name);
        if (!strncmp(name, "group_", 6)) continue;
        for (uint32_t n = 0; n < module->graphs.data[g].nodes.count; n++) {
            const uir_node_info *of = uir_node_get(module, module->graphs.data[g].nodes.data[n]);
            if (of->op == UIR_OP_GROUP) sum += group_bytes(module, of);
            uint32_t traits = uir_op_get_row(of->op)->traits;
            bool plan = traits & (UIR_TRAIT_EFFECT | UIR_TRAIT_CONTROL | UIR_TRAIT_HOST) ||
                        of->op == UIR_OP_DIM_VALUES || of->op == UIR_OP_RESHAPE;
            for (uint32_t i = 0; i < of->input_count && !plan; i++) {
                bool scalar =
                    uir_value_info_get(module, of->inputs[i])->constant && !uir_value_type(module, of->inputs[i])->rank;
                if (!scalar) sum += bytes_read(module, of, i);
            }
            for (uint32_t i = 0; i < of->output_count && !plan; i++) sum += bytes_of(module, of->outputs[i]);
        }
    }
    return sum;
}
