/* What a scheduled contraction says beyond other functions: layouts of its factors, and mma. */
#include "lower/select/contraction_kernel.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])

/* ---- finding the blocks ---- */
static void find_mma(const uir_loop_function *f, uint32_t id, uint32_t *blocks, uint32_t *count) {
    for (; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK)
            find_mma(f, s->first_child, blocks, count);
        else if (uir_loop_is_used_as(f, id, UIR_LOOP_USE_MMA) && *count < UIR_CONTRACTION_MAX_PRODUCTS)
            blocks[(*count)++] = id;
    }
}

/* mma adds products to sums of two dims or more, and nothing else: what is marked so must say the same. */
static bool is_sum_of_products(const uir_loop_function *f, uint32_t block) {
    const uir_loop_statement *sum = STATEMENT(f, STATEMENT(f, block)->first_child);
    if (STATEMENT(f, block)->first_child == UIR_LOOP_NONE || sum->next != UIR_LOOP_NONE ||
        sum->kind != UIR_LOOP_STATEMENT_UPDATE || sum->target_count != 1 || sum->value_count != 1 ||
        f->tensors.data[sum->targets[0].tensor].rank < 2)
        return false;
    return uir_loop_monoid_get_op(f, &f->monoids.data[sum->monoid]) == UIR_OP_ADD;
}

/* A factor as mma reads it: the load in it, under the cast that mma makes itself. */
static const uir_loop_expression *factor_of(const uir_loop_function *f, uint32_t block, uint32_t which) {
    const uir_loop_statement *sum = STATEMENT(f, STATEMENT(f, block)->first_child);
    const uir_loop_expression *mul = EXPRESSION(f, sum->values[0]);
    if (mul->kind != UIR_LOOP_CALL || mul->op != UIR_OP_MUL) return NULL;
    const uir_loop_expression *e = EXPRESSION(f, mul->arguments[which]);
    if (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST) e = EXPRESSION(f, e->arguments[0]);
    return e->kind == UIR_LOOP_LOAD ? e : NULL;
}

/* ---- the order of a pointer's dims: that of the loops which are vectorised around its access ---- */
typedef struct order {
    uir_kernel *k;
    const uir_loop_statement *loops[UIR_LOOP_MAX_ITERS]; /* vectorised, outermost first */
    uint32_t loop_count;
    const uir_loop_statement *block;
    bool *done; /* per tensor */
} order;

enum { SEVERAL = 1000 };
/* Which of `count` loops an index of the block runs along: NONE when none does, SEVERAL when more do. */
static uint32_t loop_of(const order *o, uir_dim index, const uir_loop_statement *const *loops, uint32_t count) {
    uint32_t found = UIR_LOOP_NONE, hits = 0;
    for (uint32_t i = 0; i < o->block->iter_count; i++) {
        const uir_loop_iter *iter = &o->block->iters[i];
        if (iter->data || !uir_dim_mentions(o->k->f->dims, index, iter->symbol)) continue;
        for (uint32_t l = 0; l < count; l++) {
            if (!loops[l] || !uir_dim_mentions(o->k->f->dims, iter->value, loops[l]->symbol)) continue;
            found = l;
            hits++;
        }
    }
    return hits > 1 ? SEVERAL : found;
}

/* Dims that run along no loop, then a dim for each of the loops; one element where a loop has none. */
static void set_order(order *o, const uir_loop_access *access, const uir_loop_statement *const *loops, uint32_t count) {
    uir_kernel *k = o->k;
    const uir_loop_tensor *t = &k->f->tensors.data[access->tensor];
    uir_kernel_pointer *p = &k->pointers[access->tensor];
    int32_t dims[UIR_LOOP_MAX_RANK], of_loop[UIR_LOOP_MAX_ITERS];
    uint32_t rank = 0;
    for (uint32_t l = 0; l < count; l++) of_loop[l] = -1;
    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t l = loop_of(o, access->indices[d], loops, count);
        if (l == UIR_LOOP_NONE)
            dims[rank++] = (int32_t)d;
        else if (l == SEVERAL || of_loop[l] >= 0)
            return; /* a window */
        else
            of_loop[l] = (int32_t)d;
    }
    bool any = false;
    for (uint32_t l = 0; l < count; l++) {
        if (!loops[l] && !any && rank) continue;
        any |= of_loop[l] >= 0;
        if (!any && l + 2 < count) continue;
        if (rank == UIR_LOOP_MAX_RANK) return;
        dims[rank++] = of_loop[l];
    }
    while (rank < 2) {
        for (uint32_t d = rank; d > 0; d--) dims[d] = dims[d - 1];
        dims[0] = -1;
        rank++;
    }
    memcpy(p->dims, dims, sizeof dims);
    p->rank = rank;
}

/* `strides`: of the tensor's dims. */
static void set_strides(uir_kernel *k, uir_kernel_pointer *p, const uir_dim *strides) {
    uir_dim one = uir_dim_const(k->dims, 1), extents[UIR_LOOP_MAX_RANK], of_pointer[UIR_LOOP_MAX_RANK];
    for (uint32_t d = 0; d < p->rank; d++) {
        extents[d] = p->dims[d] < 0 ? one : p->extents[p->dims[d]];
        of_pointer[d] = p->dims[d] < 0 ? one : strides[p->dims[d]];
    }
    uir_layout_set_strides(&p->layout, extents, of_pointer, p->rank);
}

/* Strides of a pointer whose dims are not in the tensor's order, or whose tensor says them. */
static void write_strides(uir_kernel *k, uint32_t tensor) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    uir_kernel_pointer *p = &k->pointers[tensor];
    if (t->layout) {
        uir_kernel_take_layout(k, tensor);
        return;
    }
    uir_dim strides[UIR_LOOP_MAX_RANK], stride = uir_dim_const(k->dims, 1);
    bool rising = true;
    int32_t before = -1;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->dims[d] < 0) continue;
        rising &= p->dims[d] > before;
        before = p->dims[d];
    }
    p->layout = (uir_layout){0}; /* a product of the tensor by itself has given its dims another order before */
    if (rising || k->status != UIR_STATUS_OK) return;
    for (uint32_t d = t->rank; d > 0; d--) {
        strides[d - 1] = stride;
        stride = uir_dim_mul(k->dims, stride, p->extents[d - 1]);
    }
    set_strides(k, p, strides);
}

static void order_access(order *o, const uir_loop_access *access) {
    const uir_loop_tensor *t = &o->k->f->tensors.data[access->tensor];
    if (o->done[access->tensor] || t->role == UIR_LOOP_ROLE_TEMP) return;
    o->done[access->tensor] = true;
    set_order(o, access, o->loops, o->loop_count);
    write_strides(o->k, access->tensor);
}

static void order_expression(order *o, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(o->k->f, id);
    if (e->kind == UIR_LOOP_LOAD) order_access(o, &e->load);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) order_expression(o, e->arguments[i]);
}

static void order_list(order *o, uint32_t id) {
    const uir_loop_function *f = o->k->f;
    for (; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        if (s->kind == UIR_LOOP_STATEMENT_FOR) {
            bool lane = s->loop_kind == UIR_LOOP_VECTORISED && o->loop_count < UIR_LOOP_MAX_ITERS;
            if (lane) o->loops[o->loop_count++] = s;
            order_list(o, s->first_child);
            if (lane) o->loop_count--;
        } else if (s->kind == UIR_LOOP_STATEMENT_IF) {
            order_list(o, s->first_child);
        } else {
            o->block = s;
            for (uint32_t c = s->first_child; c != UIR_LOOP_NONE; c = STATEMENT(f, c)->next) {
                for (uint32_t i = 0; i < STATEMENT(f, c)->value_count; i++)
                    order_expression(o, STATEMENT(f, c)->values[i]);
                for (uint32_t i = 0; i < STATEMENT(f, c)->target_count; i++)
                    order_access(o, &STATEMENT(f, c)->targets[i]);
            }
        }
    }
}

/* ---- layouts ---- */
/* On chip all dims stand, as mma wants them; as many in front as what is copied has, so that both sides of the copy are
 * alike. */
static void keep_dims(uir_kernel *k, uint32_t tensor, uint32_t rank) {
    uir_kernel_pointer *p = &k->pointers[tensor];
    uint32_t own = k->f->tensors.data[tensor].rank;
    p->rank = rank > own ? rank : own;
    for (uint32_t d = 0; d < p->rank; d++) p->dims[d] = d + own < p->rank ? -1 : (int32_t)(d + own - p->rank);
}

/* The rank of the tensor that a copy into `tensor` reads; 0: it is no plain copy. */
static uint32_t copied_rank(const uir_kernel *k, uint32_t tensor) {
    const uir_loop_function *f = k->f;
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = STATEMENT(f, i);
        if (s->kind != UIR_LOOP_STATEMENT_STORE || s->targets[0].tensor != tensor) continue;
        const uir_loop_expression *e = EXPRESSION(f, s->values[0]);
        if (e->kind == UIR_LOOP_LOAD && !e->has_fill) return k->pointers[e->load.tensor].rank;
    }
    return 0;
}

/* A tile that goes out across has as many dims as the output, so that both sides of the copy are alike. */
static void match_outputs(uir_kernel *k) {
    const uir_loop_function *f = k->f;
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = STATEMENT(f, i);
        if (s->kind != UIR_LOOP_STATEMENT_STORE || !k->pointers[s->targets[0].tensor].layout.given) continue;
        const uir_loop_expression *e = EXPRESSION(f, s->values[0]);
        if (e->kind == UIR_LOOP_LOAD && k->pointers[e->load.tensor].on_chip)
            keep_dims(k, e->load.tensor, k->pointers[s->targets[0].tensor].rank);
    }
}

/* The loops of m, n and k around a block: by what the sums are indexed with. */
typedef struct side_loops {
    const uir_loop_statement *loops[UIR_LOOP_MAX_ITERS];
    uint32_t count;
} side_loops;

/* What an iteration variable is to the two factors, as the index of a side; NONE: nothing is said of it. */
static uint32_t side_of_class(uir_loop_class class) {
    return class == UIR_LOOP_CLASS_M   ? 0
           : class == UIR_LOOP_CLASS_N ? 1
           : class == UIR_LOOP_CLASS_K ? 2
                                       : UIR_LOOP_NONE;
}

/* The side of a loop: of what the block's variables say that move with it. */
static uint32_t side_of_loop(const order *o, const uir_loop_statement *loop) {
    for (uint32_t i = 0; i < o->block->iter_count; i++) {
        const uir_loop_iter *iter = &o->block->iters[i];
        if (!iter->data && side_of_class(iter->part) != UIR_LOOP_NONE &&
            uir_dim_mentions(o->k->f->dims, iter->value, loop->symbol))
            return side_of_class(iter->part);
    }
    return UIR_LOOP_NONE;
}

static void find_sides(order *o, uint32_t id, side_loops *sides) {
    const uir_loop_function *f = o->k->f;
    const uir_loop_access *sums = &STATEMENT(f, o->block->first_child)->targets[0];
    uint32_t depths[3][UIR_LOOP_MAX_ITERS];
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = STATEMENT(f, i);
        if (s->kind != UIR_LOOP_STATEMENT_FOR || s->loop_kind != UIR_LOOP_VECTORISED) continue;
        uint32_t inside = s->first_child, which = 2, depth = 0;
        for (; inside != UIR_LOOP_NONE && STATEMENT(f, inside)->kind == UIR_LOOP_STATEMENT_FOR; depth++)
            inside = STATEMENT(f, inside)->first_child;
        if (inside != id) continue;
        const uir_loop_statement *one[] = {s};
        for (uint32_t d = f->tensors.data[sums->tensor].rank; d > 0; d--)
            if (loop_of(o, sums->indices[d - 1], one, 1) == 0) which = d > 1;
        if (side_of_loop(o, s) != UIR_LOOP_NONE) which = side_of_loop(o, s);
        side_loops *side = &sides[which];
        uint32_t at = side->count;
        if (at == UIR_LOOP_MAX_ITERS) continue;
        for (; at > 0 && depths[which][at - 1] < depth; at--) { /* outermost first */
            side->loops[at] = side->loops[at - 1];
            depths[which][at] = depths[which][at - 1];
        }
        side->loops[at] = s;
        depths[which][at] = depth;
        side->count++;
    }
}

/* Factors that lie in the device's memory. */
static void describe_factors(order *o, uint32_t id) {
    uir_kernel *k = o->k;
    const uir_loop_function *f = k->f;
    side_loops sides[3] = {{{NULL}, 0}}; /* m, n, k */
    o->block = STATEMENT(f, id);
    find_sides(o, id, sides);
    for (uint32_t which = 0; which < 2; which++) {
        const uir_loop_expression *factor = factor_of(f, id, which);
        uint32_t tensor = factor->load.tensor, count = 0;
        const uir_loop_statement *loops[2 * UIR_LOOP_MAX_ITERS] = {NULL};
        for (uint32_t side = 0; side < 2; side++) { /* rows, columns; none is a side all the same */
            const side_loops *of = &sides[which ? (side ? 1 : 2) : (side ? 2 : 0)];
            for (uint32_t l = 0; l < of->count; l++) loops[count + l] = of->loops[l];
            count += of->count ? of->count : 1;
        }
        if (f->tensors.data[tensor].role == UIR_LOOP_ROLE_TEMP) continue;
        o->done[tensor] = true;
        set_order(o, &factor->load, loops, count);
        uir_kernel_pointer *p = &k->pointers[tensor];
        const uir_layout *layout = f->tensors.data[tensor].layout;
        if (!layout || !f->tensors.data[tensor].constant) {
            write_strides(k, tensor);
            continue;
        }
        /* Packed from the tensor's own order: read through a window, unless its dims stand as the loops do. */
        int32_t before = -1;
        bool rising = layout->split;
        for (uint32_t d = 0; d < p->rank; d++) {
            rising &= p->dims[d] < 0 || p->dims[d] > before;
            if (p->dims[d] >= 0) before = p->dims[d];
        }
        if (!rising) keep_dims(k, tensor, 0);
        uir_kernel_take_layout(k, tensor);
    }
}

/* What is on chip. */
static void describe_tiles(uir_kernel *k, uint32_t id) {
    const uir_loop_function *f = k->f;
    const uir_loop_statement *sum = STATEMENT(f, STATEMENT(f, id)->first_child);
    keep_dims(k, sum->targets[0].tensor, 0);
    for (uint32_t which = 0; which < 2; which++) {
        const uir_loop_expression *factor = factor_of(f, id, which);
        uint32_t tensor = factor->load.tensor;
        if (f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP) continue;
        keep_dims(k, tensor, copied_rank(k, tensor));
        if (f->tensors.data[tensor].layout) uir_kernel_take_layout(k, tensor);
    }
}

void uir_contraction_describe(uir_kernel *k) {
    const uir_loop_function *f = k->f;
    uint32_t blocks[UIR_CONTRACTION_MAX_PRODUCTS], count = 0;
    find_mma(f, f->first, blocks, &count);
    if (!count || k->status != UIR_STATUS_OK) return;
    order o = {.k = k};
    o.done = uir_arena_allocate_array(k->arena, f->tensors.count + 1, sizeof *o.done);
    for (uint32_t i = 0; i < count; i++) {
        if (o.done && is_sum_of_products(f, blocks[i]) && factor_of(f, blocks[i], 0) && factor_of(f, blocks[i], 1))
            continue;
        uir_kernel_refuse(k, "mma requires a sum of products of two loads");
        return;
    }
    int memory = uir_machine_find_role(k->machine, UIR_SPACE_MEMORY);
    bool rows = memory >= 0 && uir_machine_wants_rows(k->machine, memory); /* dims of tensors stay in their order */
    for (uint32_t i = 0; i < count && !rows; i++) describe_factors(&o, blocks[i]);
    if (!rows) order_list(&o, f->first);
    if (!rows) match_outputs(k);
    for (uint32_t i = 0; i < count; i++) describe_tiles(k, blocks[i]);
    for (uint32_t i = 0; i < f->tensors.count; i++) { /* other tiles are matrices as they are, in their blocks */
        if (!f->tensors.data[i].layout || !k->pointers[i].on_chip || k->pointers[i].layout.given) continue;
        keep_dims(k, i, 0);
        uir_kernel_take_layout(k, i);
    }
}

bool uir_contraction_is_mma(const uir_kernel *k, uint32_t block) {
    return uir_loop_is_used_as(k->f, block, UIR_LOOP_USE_MMA);
}

/* ---- mma ---- */
/* The lanes of a side. */
typedef struct side_lanes {
    uint32_t lanes[UIR_KERNEL_MAX_LANES], count;
} side_lanes;

static const uir_islice *slice_of(uir_kernel *k, const uir_loop_expression *factor, const uir_loop_access *access,
                                  const side_lanes *rows, const side_lanes *columns) {
    uir_kernel_lane all[UIR_KERNEL_MAX_LANES], chosen[UIR_KERNEL_MAX_LANES + 1];
    uint32_t count = k->lane_count, used = 0, lanes;
    uir_dim one = uir_dim_const(k->dims, 1);
    memcpy(all, k->lanes, sizeof all);
    for (uint32_t i = 0; i < rows->count; i++) chosen[used++] = all[rows->lanes[i]];
    for (uint32_t i = 0; i < columns->count; i++) chosen[used++] = all[columns->lanes[i]];
    /* A side without a loop is one element, in its place. */
    if (rows->count && !columns->count)
        chosen[used++] =
            (uir_kernel_lane){uir_kernel_new_symbol(k, "w", UIR_ISYMBOL_AXIS, one), one, one, UIR_DIM_NONE};
    if (used > UIR_KERNEL_MAX_LANES) {
        uir_kernel_refuse(k, "more than %d vectorised loops", UIR_KERNEL_MAX_LANES);
        used = count;
        memcpy(chosen, all, sizeof all);
    }
    memcpy(k->lanes, chosen, used * sizeof *chosen);
    k->lane_count = used;
    k->row_lanes = rows->count > 1 || columns->count > 1 ? rows->count : 0;
    if (columns->count > 1 && !rows->count) { /* a row of several lanes: written as a side of one element before it */
        memmove(k->lanes + 1, k->lanes, used * sizeof *k->lanes);
        k->lanes[0] = (uir_kernel_lane){uir_kernel_new_symbol(k, "w", UIR_ISYMBOL_AXIS, one), one, one, UIR_DIM_NONE};
        k->lane_count++;
        k->row_lanes = 1;
    }
    const uir_islice *slice =
        uir_kernel_slice(k, access, factor && factor->has_fill, factor ? factor->fill : 0, &lanes);
    memcpy(k->lanes, all, sizeof all);
    k->lane_count = count;
    k->row_lanes = 0;
    return slice;
}

void uir_contraction_emit(uir_kernel *k, uint32_t id) {
    const uir_loop_function *f = k->f;
    if (k->status == UIR_STATUS_OK && !is_sum_of_products(f, id))
        uir_kernel_refuse(k, "a block marked mma is not a sum of products");
    if (k->status != UIR_STATUS_OK) return;
    const uir_loop_statement *block = STATEMENT(f, id), *sum = STATEMENT(f, block->first_child);
    const uir_loop_expression *a = factor_of(f, id, 0), *b = factor_of(f, id, 1);
    side_lanes sides[3] = {{{0}, 0}}; /* m, n, k */
    if (k->status != UIR_STATUS_OK || !a || !b) return;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        uint32_t which = 2;
        for (uint32_t d = f->tensors.data[sum->targets[0].tensor].rank; d > 0; d--) {
            uir_dim index = uir_kernel_substitute(k, sum->targets[0].indices[d - 1]);
            if (index.id && uir_dim_mentions(k->dims, index, k->lanes[l].symbol)) which = d > 1;
        }
        for (uint32_t i = 0; i < block->iter_count; i++) {
            uir_dim value = block->iters[i].data ? UIR_DIM_NONE : uir_kernel_substitute(k, block->iters[i].value);
            if (side_of_class(block->iters[i].part) != UIR_LOOP_NONE && value.id &&
                uir_dim_mentions(k->dims, value, k->lanes[l].symbol))
                which = side_of_class(block->iters[i].part);
        }
        sides[which].lanes[sides[which].count++] = l;
    }
    const uir_islice *to = slice_of(k, NULL, &sum->targets[0], &sides[0], &sides[1]);
    const uir_islice *left = slice_of(k, a, &a->load, &sides[0], &sides[2]);
    const uir_islice *right = slice_of(k, b, &b->load, &sides[2], &sides[1]);
    const uir_loop_tensor *tensors = f->tensors.data;
    uir_iinstruction mma = {.code = UIR_IOP_MMA, .slice_count = 3, .slices = {*to, *left, *right}};
    mma.dtype = tensors[sum->targets[0].tensor].dtype;
    mma.dtype_b = tensors[a->load.tensor].dtype;
    mma.dtype_c = tensors[b->load.tensor].dtype;
    mma.sync_pointer = mma.legal_row = UINT32_MAX;
    uir_kernel_put(k, &mma);
}
