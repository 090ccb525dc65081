/* Products of few rows and columns that sum over much: too little to do side by side, so the summed axis is cut into
 * parts that are products of their own, and what they give is added up:
 *
 *   matmul(a [.., M, K], b [.., K, N])  ->  reduce_sum(matmul(a [P, .., M, K/P], b [P, .., K/P, N]) [P, .., M, N], 0)
 *
 * How many parts there are depends on sizes alone: the order of adding is the model's on every machine. */
#include "passes/tools.h"

#include <string.h>

enum {
    PART = 1 << 16, /* elements of both factors that a part reads, at least: long beside what it takes to begin one */
    AGAIN = 8,      /* and times as many as it writes */
    TILE = 32,      /* rows and columns of what is computed side by side in any case */
    ENOUGH = 8,     /* of those, and there are no parts */
    FEWEST = 4,     /* parts */
    MOST = 64,
};

typedef struct product {
    const uir_module *module;
    uir_dim batch[UIR_MAX_RANK];
    uint32_t axes; /* of the batch */
    uir_dim rows, depth, columns;
} product;

static bool read_product(const uir_module *module, const uir_node_info *node, product *out) {
    const uir_type *a = uir_value_type(module, node->inputs[0]), *b = uir_value_type(module, node->inputs[1]);
    if (a->rank < 2 || a->rank != b->rank || a->rank == UIR_MAX_RANK) return false;
    *out = (product){.module = module, .axes = a->rank - 2};
    for (uint32_t d = 0; d < out->axes; d++) out->batch[d] = a->dims[d];
    out->rows = a->dims[a->rank - 2], out->depth = a->dims[a->rank - 1], out->columns = b->dims[b->rank - 1];
    return true;
}

/* Parts of the summed axis: the most that are worth it, of one length; 1: none are. */
static int64_t count_parts(const product *p) {
    uir_dims *dims = p->module->dims;
    int64_t rows, depth, columns, batch = 1, value;
    if (!uir_dim_is_const(dims, p->rows, &rows) || !uir_dim_is_const(dims, p->depth, &depth) ||
        !uir_dim_is_const(dims, p->columns, &columns) || rows < 1 || columns < 1 || rows > ENOUGH * TILE ||
        columns > ENOUGH * TILE)
        return 1;
    for (uint32_t d = 0; d < p->axes; d++) {
        if (!uir_dim_is_const(dims, p->batch[d], &value) || value < 1 || value >= ENOUGH) return 1;
        batch *= value;
    }
    if (batch * ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE) >= ENOUGH) return 1;
    int64_t read = rows + columns, written = AGAIN * rows * columns;
    int64_t length = ((written > PART ? written : PART) + read - 1) / read;
    int64_t parts = depth / length < MOST ? depth / length : MOST;
    while (parts >= FEWEST && depth % parts != 0) parts--;
    return parts >= FEWEST ? parts : 1;
}

/* A factor whose summed axis, of those after the batch's, is the first or the second: with the parts as its first axis.
 */
static uir_value_id cut_factor(uir_builder *b, const product *p, uir_value_id factor, bool second, int64_t parts,
                               uir_dim length) {
    uir_dims *dims = p->module->dims;
    uir_dim shape[UIR_MAX_RANK];
    int64_t perm[UIR_MAX_RANK];
    uint32_t n = 0, at = p->axes + second; /* of the axis of parts, before it is moved */
    for (uint32_t d = 0; d < p->axes; d++) shape[n++] = p->batch[d];
    if (second) shape[n++] = p->rows;
    shape[n++] = uir_dim_const(dims, parts);
    shape[n++] = length;
    if (!second) shape[n++] = p->columns;
    perm[0] = at;
    for (uint32_t d = 0; d < n; d++)
        if (d != at) perm[1 + d - (d > at)] = d;
    factor = uir_build_reshape(b, factor, shape, n);
    return at ? uir_build_transpose(b, factor, perm) : factor;
}

static uir_value_id split_product(void *user, uir_builder *b, const uir_node_info *node) {
    uir_module *module = user;
    product p;
    int64_t first = 0, parts;
    uir_value_id none = {0};
    if (node->op != UIR_OP_MATMUL || !read_product(module, node, &p) || (parts = count_parts(&p)) == 1) return none;
    uir_dtype to = uir_value_type(module, node->outputs[0])->dtype, sum = to;
    if (uir_dtype_is_float(to) && uir_dtype_bits(to) < 32) sum = UIR_DTYPE_F32; /* rounded once, as before */
    uir_dim length = uir_dim_floordiv(module->dims, p.depth, uir_dim_const(module->dims, parts));
    uir_value_id a = cut_factor(b, &p, node->inputs[0], true, parts, length);
    uir_value_id w = cut_factor(b, &p, node->inputs[1], false, parts, length);
    uir_value_id sums = uir_build_reduce(b, UIR_OP_REDUCE_SUM, uir_build_matmul(b, a, w, sum), &first, 1, false);
    return uir_build_cast(b, sums, to);
}

uir_status uir_cleanup_split_sums(uir_module *module, uir_pass_context *context) {
    uir_rewriter rewriter = {.rewrite = split_product, .user = module};
    return uir_rewrite_nodes(module, context, &rewriter);
}
