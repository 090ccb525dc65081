/* Values of dims for bound symbols, and replacement of symbols by dims. */
#include "base/dims/dim_internal.h"

#include <string.h>

/* Intermediate sums may leave 64 bits where the result does not: a product that was multiplied out, say. */
__extension__ typedef __int128 wide;

enum { MEMO_SIZE = 128, MEMO_TREE_MIN = 8 };

typedef struct evaluation {
    const uir_dims *dims;
    const int64_t *values;
    const bool *bound;
    uint32_t count;
    /* The latest values of larger nodes: an expression is a graph, and shared parts are not worked out twice. */
    uint32_t memo_ids[MEMO_SIZE];
    wide memo_values[MEMO_SIZE];
} evaluation;

static uir_dim_result evaluate(evaluation *e, uir_dim dim, wide *out_value);

static uir_dim_result evaluate_division(uir_dim_kind kind, wide a, wide b, wide *out_value) {
    if (b <= 0) return UIR_DIM_DIVISION;
    wide quotient = a / b, rest = a % b;
    if (kind == UIR_DIM_CEILDIV)
        *out_value = quotient + (rest > 0);
    else if (kind == UIR_DIM_FLOORDIV)
        *out_value = quotient - (rest < 0);
    else
        *out_value = rest < 0 ? rest + b : rest;
    return UIR_DIM_EVALUATED;
}

static uir_dim_result combine(uir_dim_kind kind, wide a, wide b, wide *out_value) {
    bool overflow = false;
    switch (kind) {
    case UIR_DIM_ADD:
        overflow = __builtin_add_overflow(a, b, out_value);
        break;
    case UIR_DIM_MUL:
        overflow = __builtin_mul_overflow(a, b, out_value);
        break;
    case UIR_DIM_MIN:
        *out_value = a < b ? a : b;
        break;
    case UIR_DIM_MAX:
        *out_value = a > b ? a : b;
        break;
    default:
        return evaluate_division(kind, a, b, out_value);
    }
    return overflow ? UIR_DIM_OVERFLOW : UIR_DIM_EVALUATED;
}

static uir_dim_result evaluate_node(evaluation *e, const uir_dim_node *node, wide *out_value) {
    if (node->kind == UIR_DIM_CONST) {
        *out_value = node->value;
        return UIR_DIM_EVALUATED;
    }
    if (node->kind == UIR_DIM_SYMBOL) {
        if (node->value >= e->count || (e->bound && !e->bound[node->value])) return UIR_DIM_UNBOUND;
        *out_value = e->values[node->value];
        return UIR_DIM_EVALUATED;
    }
    wide total = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        wide operand;
        uir_dim_result result = evaluate(e, node->operands[i], &operand);
        if (result == UIR_DIM_EVALUATED && i) result = combine(node->kind, total, operand, &operand);
        if (result != UIR_DIM_EVALUATED) return result;
        total = operand;
    }
    *out_value = total;
    return UIR_DIM_EVALUATED;
}

static uir_dim_result evaluate(evaluation *e, uir_dim dim, wide *out_value) {
    const dim_node *node = dim_at(e->dims, dim);
    uint32_t slot = dim.id % MEMO_SIZE;
    bool remembered = node->tree_size >= MEMO_TREE_MIN;
    if (remembered && e->memo_ids[slot] == dim.id) {
        *out_value = e->memo_values[slot];
        return UIR_DIM_EVALUATED;
    }
    uir_dim_result result = evaluate_node(e, &node->node, out_value);
    if (remembered && result == UIR_DIM_EVALUATED) {
        e->memo_ids[slot] = dim.id;
        e->memo_values[slot] = *out_value;
    }
    return result;
}

/* Small expressions in 64 bits. False: something is out of the ordinary, and is worked out with care. */
static bool evaluate_narrow(const evaluation *e, uir_dim dim, int64_t *out_value) {
    const uir_dim_node *node = &dim_at(e->dims, dim)->node;
    if (node->kind == UIR_DIM_CONST || node->kind == UIR_DIM_SYMBOL) {
        bool known = node->kind == UIR_DIM_CONST || (node->value < e->count && (!e->bound || e->bound[node->value]));
        if (known) *out_value = node->kind == UIR_DIM_CONST ? node->value : e->values[node->value];
        return known;
    }
    int64_t total = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        int64_t operand;
        bool overflow = false;
        if (!evaluate_narrow(e, node->operands[i], &operand)) return false;
        if (i == 0)
            total = operand;
        else if (node->kind == UIR_DIM_ADD)
            overflow = __builtin_add_overflow(total, operand, &total);
        else if (node->kind == UIR_DIM_MUL)
            overflow = __builtin_mul_overflow(total, operand, &total);
        else if (node->kind == UIR_DIM_MIN)
            total = total < operand ? total : operand;
        else if (node->kind == UIR_DIM_MAX)
            total = total > operand ? total : operand;
        else
            overflow = true; /* divisions */
        if (overflow) return false;
    }
    *out_value = total;
    return true;
}

uir_dim_result uir_dim_evaluate(const uir_dims *dims, uir_dim dim, const int64_t *values, const bool *bound,
                                uint32_t count, int64_t *out_value) {
    if (!dim.id) return UIR_DIM_UNBOUND;
    const dim_node *node = dim_at(dims, dim);
    evaluation e;
    e.dims = dims;
    e.values = values;
    e.bound = bound;
    e.count = count;
    if (node->tree_size < MEMO_TREE_MIN && evaluate_narrow(&e, dim, out_value)) return UIR_DIM_EVALUATED;
    if (node->tree_size >= MEMO_TREE_MIN) memset(e.memo_ids, 0, sizeof e.memo_ids);
    wide value;
    uir_dim_result result = evaluate(&e, dim, &value);
    if (result != UIR_DIM_EVALUATED) return result;
    if (value < INT64_MIN || value > INT64_MAX) return UIR_DIM_OVERFLOW;
    *out_value = (int64_t)value;
    return UIR_DIM_EVALUATED;
}

bool uir_relation_holds(uir_relation relation, int64_t a, int64_t b) {
    switch (relation) {
    case UIR_RELATION_EQ:
        return a == b;
    case UIR_RELATION_NE:
        return a != b;
    case UIR_RELATION_LT:
        return a < b;
    case UIR_RELATION_LE:
        return a <= b;
    case UIR_RELATION_GT:
        return a > b;
    case UIR_RELATION_GE:
        return a >= b;
    }
    return false;
}

bool uir_dim_operate(uir_dim_kind kind, int64_t a, int64_t b, int64_t *out_value) {
    wide result;
    if (kind == UIR_DIM_CONST || kind == UIR_DIM_SYMBOL || combine(kind, a, b, &result) != UIR_DIM_EVALUATED ||
        result < INT64_MIN || result > INT64_MAX)
        return false;
    *out_value = (int64_t)result;
    return true;
}

int64_t uir_shared_cost(int64_t cost, int64_t units, int64_t workers) {
    if (workers < 1) workers = 1;
    int64_t turns = units / workers + (units % workers > 0), result;
    if (turns <= 0) return 0;
    return __builtin_mul_overflow(cost, turns, &result) ? INT64_MAX : result;
}

/* ---- substitution ------------------------------------------------------------------------------------------------ */

typedef struct substitution {
    const uir_dims *from;
    uir_dims *dims; /* of the results */
    const uir_dim *by_symbol; /* one of the two; the other is NULL */
    const uir_dim_replacement *listed;
    uint32_t count;
    uint32_t memo_ids[MEMO_SIZE];
    uir_dim memo_results[MEMO_SIZE];
} substitution;

static uir_dim rebuild(uir_dims *dims, uir_dim_kind kind, const uir_dim *operands, uint32_t count) {
    uir_dim result = operands[0];
    switch (kind) {
    case UIR_DIM_ADD:
        for (uint32_t i = 1; i < count; i++) result = uir_dim_add(dims, result, operands[i]);
        return result;
    case UIR_DIM_MUL:
        for (uint32_t i = 1; i < count; i++) result = uir_dim_mul(dims, result, operands[i]);
        return result;
    case UIR_DIM_FLOORDIV:
        return uir_dim_floordiv(dims, operands[0], operands[1]);
    case UIR_DIM_CEILDIV:
        return uir_dim_ceildiv(dims, operands[0], operands[1]);
    case UIR_DIM_MOD:
        return uir_dim_mod(dims, operands[0], operands[1]);
    case UIR_DIM_MIN:
    case UIR_DIM_MAX:
        return uir_dim_extreme(dims, kind, operands, count);
    case UIR_DIM_CONST:
    case UIR_DIM_SYMBOL:
        break;
    }
    return UIR_DIM_NONE;
}

static uir_dim replacement_of(const substitution *s, uint32_t symbol) {
    if (s->by_symbol) return symbol < s->count ? s->by_symbol[symbol] : UIR_DIM_NONE;
    for (uint32_t i = s->count; i-- > 0;)
        if (s->listed[i].symbol.id == symbol) return s->listed[i].by;
    return UIR_DIM_NONE;
}

static uir_dim substitute(substitution *s, uir_dim dim) {
    const dim_node *node = dim_at(s->from, dim);
    bool touched = s->from != s->dims;
    for (uint32_t i = 0; i < node->symbol_count && !touched; i++) touched = replacement_of(s, node->symbols[i]).id != 0;
    if (!touched) return dim;
    if (node->node.kind == UIR_DIM_SYMBOL) return replacement_of(s, (uint32_t)node->node.value);
    if (node->node.kind == UIR_DIM_CONST) return uir_dim_const(s->dims, node->node.value);
    uint32_t slot = dim.id % MEMO_SIZE;
    if (s->memo_ids[slot] == dim.id) return s->memo_results[slot];
    uir_arena_mark mark = uir_arena_get_mark(&s->dims->scratch);
    uir_dim *operands = uir_dim_scratch(s->dims, node->node.count, sizeof *operands), result = UIR_DIM_NONE;
    bool complete = operands != NULL;
    for (uint32_t i = 0; i < node->node.count && complete; i++) {
        operands[i] = substitute(s, node->node.operands[i]);
        complete = operands[i].id != 0;
    }
    if (complete) result = rebuild(s->dims, node->node.kind, operands, node->node.count);
    uir_arena_return_to(&s->dims->scratch, mark);
    if (!result.id) return result;
    s->memo_ids[slot] = dim.id;
    s->memo_results[slot] = result;
    return result;
}

uir_dim uir_dim_substitute(uir_dims *dims, uir_dim dim, const uir_dim *replacements, uint32_t count) {
    if (!dim.id) return UIR_DIM_NONE;
    substitution s = {.from = dims, .dims = dims, .by_symbol = replacements, .count = count};
    return replacements ? substitute(&s, dim) : dim;
}

uir_dim uir_dim_copy(const uir_dims *from, uir_dim dim, uir_dims *to, const uir_dim *replacements, uint32_t count) {
    if (!dim.id) return UIR_DIM_NONE;
    substitution s = {.from = from, .dims = to, .by_symbol = replacements, .count = replacements ? count : 0};
    return substitute(&s, dim);
}

uir_dim uir_dim_replace(uir_dims *dims, uir_dim dim, const uir_dim_replacement *replacements, uint32_t count) {
    if (!dim.id) return UIR_DIM_NONE;
    substitution s = {.from = dims, .dims = dims, .listed = replacements, .count = count};
    return count ? substitute(&s, dim) : dim;
}
