/* Where operands and results lie: a value's layout, over its dims, as that of the tensors that see it by axes. */
#include "lower/internal.h"

#include <string.h>

/* What the tensors' dims have not taken yet of a layout, from the innermost dim on. */
typedef struct taking {
    uir_dims *dims;
    uir_layout layout; /* over the function's sizes */
    uir_dim extents[UIR_LAYOUT_MAX_RANK];
    uint32_t rank; /* dims that are left; the last one is being taken */
    uint32_t mode; /* of it */
    uir_dim left;  /* elements of it that are left */
    uir_mode now;  /* what is left of the mode */
} taking;

/* The dim as a number times others. */
typedef struct product {
    int64_t number;
    uir_dim factors[UIR_LAYOUT_MAX_RANK * UIR_LAYOUT_MAX_MODES];
    uint32_t count;
} product;

static bool find_factors(const uir_dims *dims, uir_dim dim, product *out) {
    const uir_dim_node *node = uir_dim_get(dims, dim);
    bool several = node->kind == UIR_DIM_MUL;
    *out = (product){.number = 1};
    for (uint32_t i = 0; i < (several ? node->count : 1); i++) {
        uir_dim factor = several ? node->operands[i] : dim;
        if (uir_dim_is_const(dims, factor, &out->number)) continue;
        if (out->count == sizeof out->factors / sizeof *out->factors) return false;
        out->factors[out->count++] = factor;
    }
    return true;
}

/* a / b, where the factors of b are among those of a; NONE: they are not. */
static uir_dim divide(uir_dims *dims, uir_dim a, uir_dim b) {
    product from, by;
    if (!a.id || !b.id || !find_factors(dims, a, &from) || !find_factors(dims, b, &by)) return UIR_DIM_NONE;
    if (by.number <= 0 || from.number % by.number) return UIR_DIM_NONE;
    for (uint32_t i = 0; i < by.count; i++) {
        uint32_t at = 0;
        while (at < from.count && !uir_dim_equal(from.factors[at], by.factors[i])) at++;
        if (at == from.count) return UIR_DIM_NONE;
        from.factors[at] = from.factors[--from.count];
    }
    uir_dim quotient = uir_dim_const(dims, from.number / by.number);
    for (uint32_t i = 0; i < from.count; i++) quotient = uir_dim_mul(dims, quotient, from.factors[i]);
    return quotient;
}

static bool is_one(const uir_dims *dims, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(dims, dim, &value) && value == 1;
}

/* On to the next dim that has more than one element. */
static void open_dim(taking *t) {
    while (t->rank && is_one(t->dims, t->extents[t->rank - 1])) t->rank--;
    t->mode = 0;
    if (!t->rank) return;
    t->left = t->extents[t->rank - 1];
    t->now = t->layout.modes[t->rank - 1][0];
}

static bool is_last_mode(const taking *t) {
    return t->mode + 1 == t->layout.mode_count[t->rank - 1];
}

/* Behind the modes that the tensor's dim has already, with which it joins where they lie in one row. */
static bool put_mode(taking *t, uir_mode mode, uir_layout *out, uint32_t d) {
    uint32_t count = out->mode_count[d];
    uir_mode *before = &out->modes[d][count ? count - 1 : 0];
    if (count && uir_dim_equal(mode.stride, uir_dim_mul(t->dims, before->stride, before->size))) {
        before->size = uir_dim_mul(t->dims, before->size, mode.size);
        return before->size.id != 0;
    }
    if (count == UIR_LAYOUT_MAX_MODES || !mode.size.id || !mode.stride.id) return false;
    out->modes[d][out->mode_count[d]++] = mode;
    return true;
}

/* All that is left of the dim; `exact`: and no more than that, since elements of the next one follow. */
static bool take_dim(taking *t, bool exact, uir_layout *out, uint32_t d) {
    uir_dim product = uir_dim_const(t->dims, 1);
    for (;; t->now = t->layout.modes[t->rank - 1][++t->mode]) {
        product = uir_dim_mul(t->dims, product, t->now.size);
        if (!put_mode(t, t->now, out, d)) return false;
        if (is_last_mode(t)) break;
    }
    if (exact && !uir_dim_equal(product, t->left)) return false;
    t->rank--;
    open_dim(t);
    return true;
}

/* One step towards `want` elements, of which it leaves what is still wanted. */
static bool take_some(taking *t, uir_dim *want, uir_layout *out, uint32_t d) {
    uir_dims *dims = t->dims;
    uir_dim part, one = uir_dim_const(dims, 1);
    if (uir_dim_equal(*want, t->left)) {
        *want = one;
        return take_dim(t, false, out, d);
    }
    if ((part = divide(dims, *want, t->left)).id) {
        *want = part;
        return take_dim(t, true, out, d);
    }
    if (!is_last_mode(t) && (part = divide(dims, *want, t->now.size)).id) {
        *want = part;
        t->left = divide(dims, t->left, t->now.size);
        if (!put_mode(t, t->now, out, d)) return false;
        t->now = t->layout.modes[t->rank - 1][++t->mode];
        return t->left.id != 0;
    }
    part = divide(dims, is_last_mode(t) ? t->left : t->now.size, *want);
    if (!part.id || !put_mode(t, (uir_mode){*want, t->now.stride}, out, d)) return false;
    t->left = divide(dims, t->left, *want);
    t->now = (uir_mode){part, uir_dim_mul(dims, t->now.stride, *want)};
    *want = one;
    return t->left.id != 0;
}

static bool take_tensor(taking *t, const uir_loop_tensor *tensor, uir_layout *out) {
    uir_dim one = uir_dim_const(t->dims, 1);
    *out = (uir_layout){.given = true, .swizzle = t->layout.swizzle};
    open_dim(t);
    for (uint32_t d = tensor->rank; d-- > 0;) {
        for (uir_dim want = tensor->extents[d]; !is_one(t->dims, want);)
            if (!t->rank || !take_some(t, &want, out, d)) return false;
        if (!out->mode_count[d]) put_mode(t, (uir_mode){one, one}, out, d);
        out->split |= out->mode_count[d] > 1 || !uir_dim_equal(out->modes[d][0].size, tensor->extents[d]);
    }
    return !t->rank;
}

/* ---- dims of the module ---- */
typedef struct translation {
    uir_lower_builder *b;
    uir_dim *by; /* per symbol of the module */
    uint32_t count;
    bool split; /* products of sizes stay products, whether or not one is a size of the function */
    uir_status status;
} translation;

static void translate_symbol(void *user, uir_symbol symbol) {
    translation *t = user;
    if (t->status != UIR_STATUS_OK || t->by[symbol.id].id) return;
    t->status = uir_lower_dim(t->b, uir_dim_symbol(t->b->module->dims, symbol), &t->by[symbol.id]);
}

/* A dim of a layout stays what it is over sizes, so that it can be proved to hold what it holds; a product of which a
 * part is a size of the function is one with that. */
static uir_dim translate(void *user, uir_dim dim) {
    translation *t = user;
    uir_dims *from = t->b->module->dims, *to = t->b->f->dims;
    uir_symbol symbol;
    for (uint32_t i = 0; i < t->b->sizes.count && !t->split; i++) {
        uir_lower_size size = t->b->sizes.data[i];
        if (!size.outside.id || uir_dim_is_const(from, size.outside, NULL) ||
            uir_dim_is_symbol(from, size.outside, &symbol))
            continue;
        uir_dim rest = divide(from, dim, size.outside);
        if (rest.id) return uir_dim_mul(to, translate(t, rest), size.inside);
    }
    uir_dim_visit_symbols(from, dim, translate_symbol, t);
    return t->status == UIR_STATUS_OK ? uir_dim_copy(from, dim, to, t->by, t->count) : UIR_DIM_NONE;
}

static bool is_proved(void *user, uir_dim left, uir_relation relation, uir_dim right) {
    return uir_dim_compare(user, left, relation, right) == UIR_TRUE;
}

/* What keeps the tensor from lying so; NULL: nothing does. */
static const char *try_layout(translation *of, const uir_loop_tensor *tensor, const uir_value_info *value,
                              const uint32_t *order, uir_layout *out_layout) {
    taking t = {.dims = of->b->f->dims, .rank = value->type.rank};
    uir_layout layout = {.given = false};
    uint32_t dim;
    if (value->layout) layout = *value->layout;
    if (!uir_layout_finish(&layout, value->type.dims, t.rank, of->b->module->dims).id) return "the tensor is too large";
    layout.given = true;
    uir_layout_copy(&layout, t.rank, translate, of, &layout);
    t.layout = (uir_layout){.given = true, .split = layout.split, .swizzle = layout.swizzle};
    for (uint32_t d = 0; d < t.rank; d++) { /* as the tensor's dims stand */
        t.extents[d] = translate(of, value->type.dims[order[d]]);
        t.layout.mode_count[d] = layout.mode_count[order[d]];
        memcpy(t.layout.modes[d], layout.modes[order[d]], sizeof t.layout.modes[d]);
    }
    if (of->status != UIR_STATUS_OK || !take_tensor(&t, tensor, out_layout))
        return "the dims are split at other places than in the group";
    return uir_layout_find_fault(out_layout, tensor->extents, tensor->rank, t.dims, is_proved, t.dims, &dim);
}

static uir_status give_layout(uir_lower_builder *b, uint32_t index, const uir_value_info *value, const uint32_t *order,
                              const char *what) {
    translation of = {.b = b, .count = uir_dims_symbol_count(b->module->dims)};
    uir_layout *layout, plain = {0};
    UIR_TRY_ALLOCATE(of.by, uir_arena_allocate_array(b->arena, of.count + 1u, sizeof *of.by));
    UIR_TRY_ALLOCATE(layout, uir_arena_allocate(&b->f->arena, sizeof *layout));
    uir_loop_tensor *tensor = &b->f->tensors.data[index];
    const char *fault = try_layout(&of, tensor, value, order, layout);
    of.split = true;
    if (fault) fault = try_layout(&of, tensor, value, order, layout);
    UIR_TRY(of.status);
    if (fault) return uir_lower_refuse(b, UIR_LOWER_NONE, "the layout of %s %u: %s", what, tensor->index, fault);
    if (!uir_layout_finish(&plain, tensor->extents, tensor->rank, b->f->dims).id) return UIR_STATUS_OUT_OF_MEMORY;
    if (!uir_layout_is_same(layout, &plain, tensor->rank)) tensor->layout = layout;
    return UIR_STATUS_OK;
}

uir_status uir_lower_give_layouts(uir_lower_builder *b) {
    const uir_node_info *group = uir_node_get(b->module, b->group);
    const uir_graph_info *body = uir_graph_get(b->module, b->body);
    for (uint32_t i = 0; i < b->f->tensors.count; i++) {
        const uir_loop_tensor *tensor = &b->f->tensors.data[i];
        uint32_t order[UIR_MAX_RANK];
        if (tensor->role == UIR_LOOP_ROLE_TEMP) continue;
        bool in = tensor->role == UIR_LOOP_ROLE_IN;
        const uir_value_info *inside =
            uir_value_info_get(b->module, (in ? body->inputs.data : body->outputs.data)[tensor->index]);
        const uir_value_info *value =
            uir_value_info_get(b->module, (in ? group->inputs : group->outputs)[tensor->index]);
        if (!value->layout && !inside->layout) continue;
        /* What lies one element after the other, in the order of the tensor's dims, is row-major there. */
        if (value->layout && inside->layout && uir_layout_is_same(value->layout, inside->layout, value->type.rank) &&
            uir_layout_find_order(value->layout, value->type.dims, value->type.rank, b->module->dims, order))
            continue;
        uir_axes_order_dims(b->module, (in ? body->inputs.data : body->outputs.data)[tensor->index], order);
        UIR_TRY(give_layout(b, i, value, order, in ? "operand" : "result"));
    }
    return UIR_STATUS_OK;
}
