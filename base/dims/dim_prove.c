/* Comparison of dims: is a - b >= 0, whatever the symbols are?
 *
 * The difference is a polynomial p over atoms. A proof replaces one atom after another by something that makes p no
 * larger, until an interval shows p >= 0. An atom is replaced only when it stands in no other atom, so that every
 * occurrence is seen:
 *   a symbol       by an end of its range: its least value or, where it has a symbolic bound E, by E - 1
 *   min, max       by each operand in turn (any one of them where that side suffices)
 *   floordiv(x, b) by b*q <= x and b*q >= x - b + 1, which may cost a factor b; ceildiv likewise
 *   mod(x, b)      by 0, b - 1, or x where x >= 0
 * Before each step a factor known to be >= 0 that all terms share is divided out, and where g divides every term but a
 * constant k, k is raised to the next g*n - 1: between two multiples of g nothing else lies.
 * An assumption s >= 0 is used by proving p - k*s >= 0 for a k >= 0 that cancels a term. Every step is sound by itself;
 * a failed search says nothing. Bindings for which either side cannot be evaluated do not count. */
#include "base/dims/dim_internal.h"

enum {
    PROVE_DEPTH = 24,
    PROVE_TERMS = 48,
    ASSUMPTION_MAX = 32, /* conditions looked at; further ones are not used */
    ASSUMPTION_USES = 2, /* on one path */
    SIGN_STEPS = 12,     /* work to find a coefficient's sign */
    CASES_MAX = 6        /* operands of a min or max told apart */
};

typedef struct prover {
    uir_dims *dims;
    uint32_t steps;
    polynomial slacks[ASSUMPTION_MAX]; /* each is >= 0 */
    uint32_t slack_count;
} prover;

static bool prove(prover *p, polynomial goal, uint32_t uses, uint32_t depth);

static bool add_constant(uir_dims *dims, polynomial p, int64_t value, polynomial *out) {
    polynomial c;
    return uir_polynomial_from_const(dims, value, &c) && uir_polynomial_add_scaled(dims, p, c, 1, out);
}

static bool negate(uir_dims *dims, polynomial p, polynomial *out) {
    return uir_polynomial_add_scaled(dims, (polynomial){NULL, 0}, p, -1, out);
}

/* p = coefficient * atom + rest, where neither holds the atom as a factor; false when it occurs squared. */
static bool split(uir_dims *dims, polynomial p, uir_dim atom, polynomial *out_coefficient, polynomial *out_rest) {
    *out_coefficient = (polynomial){NULL, 0};
    polynomial rest = {uir_dim_scratch(dims, p.count, sizeof *rest.terms), 0};
    if (!rest.terms) return false;
    for (uint32_t i = 0; i < p.count; i++) {
        term without, again;
        if (!uir_term_without(dims, p.terms[i], atom, &without)) {
            rest.terms[rest.count++] = p.terms[i];
            continue;
        }
        if (uir_term_without(dims, without, atom, &again)) return false;
        if (!uir_polynomial_add_scaled(dims, *out_coefficient, (polynomial){&without, 1}, 1, out_coefficient))
            return false;
    }
    *out_rest = rest;
    return !dims->out_of_memory;
}

/* -1 when p <= 0, 1 when p >= 0, 0 when unknown. */
static int sign_of(prover *p, polynomial c, uint32_t depth) {
    interval range = uir_polynomial_interval(p->dims, c);
    if (range.min >= 0) return 1;
    if (range.max <= 0) return -1;
    polynomial negative;
    uint32_t kept = p->steps, budget = kept < SIGN_STEPS ? kept : SIGN_STEPS;
    int sign = 0;
    p->steps = budget;
    if (prove(p, c, 0, depth + PROVE_DEPTH / 2))
        sign = 1;
    else if (negate(p->dims, c, &negative) && prove(p, negative, 0, depth + PROVE_DEPTH / 2))
        sign = -1;
    p->steps = kept - (budget - p->steps);
    return sign;
}

/* An elimination under way: goal = coefficient * atom + rest. */
typedef struct elimination {
    prover *prover;
    polynomial coefficient, rest;
    uint32_t uses, depth;
} elimination;

/* scale * goal with scale * atom replaced by `value`; the goal, an integer, is >= 0 when scale * goal >= 1 - scale. */
static bool prove_scaled(elimination *e, polynomial value, polynomial scale) {
    uir_dims *dims = e->prover->dims;
    polynomial goal, rest;
    return uir_polynomial_multiply(dims, e->coefficient, value, &goal) &&
           uir_polynomial_multiply(dims, e->rest, scale, &rest) &&
           uir_polynomial_add_scaled(dims, goal, rest, 1, &goal) &&
           uir_polynomial_add_scaled(dims, goal, scale, 1, &goal) && add_constant(dims, goal, -1, &goal) &&
           prove(e->prover, goal, e->uses, e->depth + 1);
}

static bool prove_replaced(elimination *e, polynomial value) {
    polynomial goal;
    return uir_polynomial_multiply(e->prover->dims, e->coefficient, value, &goal) &&
           uir_polynomial_add_scaled(e->prover->dims, goal, e->rest, 1, &goal) &&
           prove(e->prover, goal, e->uses, e->depth + 1);
}

static bool prove_at_constant(elimination *e, int64_t value) {
    polynomial constant;
    return uir_polynomial_from_const(e->prover->dims, value, &constant) && prove_replaced(e, constant);
}

/* Some upper bound of the atom suffices. */
static bool prove_at_most(elimination *e, uir_dim atom) {
    uir_dims *dims = e->prover->dims;
    const uir_dim_node *node = &dim_at(dims, atom)->node;
    interval range = uir_dim_interval(dims, atom);
    polynomial value;
    uir_dim exclusive = UIR_DIM_NONE;
    if (node->kind == UIR_DIM_SYMBOL) exclusive = dims->symbols.data[node->value].facts.bound;
    if (node->kind == UIR_DIM_MOD) exclusive = node->operands[1];
    if (exclusive.id && uir_polynomial_from_dim(dims, exclusive, &value) && add_constant(dims, value, -1, &value) &&
        prove_replaced(e, value))
        return true;
    if (node->kind == UIR_DIM_MOD && uir_dim_interval(dims, node->operands[0]).min >= 0 &&
        uir_polynomial_from_dim(dims, node->operands[0], &value) && prove_replaced(e, value))
        return true;
    return range.max != INT64_MAX && prove_at_constant(e, range.max);
}

static bool prove_at_least(elimination *e, uir_dim atom) {
    interval range = uir_dim_interval(e->prover->dims, atom);
    return range.min != INT64_MIN && prove_at_constant(e, range.min);
}

/* Symbols and mods: p is linear in the atom, so its least value lies at an end of the range. */
static bool eliminate_by_range(elimination *e, uir_dim atom, int sign) {
    if (sign > 0) return prove_at_least(e, atom);
    if (sign < 0) return prove_at_most(e, atom);
    return prove_at_least(e, atom) && prove_at_most(e, atom);
}

/* quotient with p = quotient * divisor exactly. */
static bool divide_exactly(uir_dims *dims, polynomial p, polynomial divisor, polynomial *out_quotient) {
    *out_quotient = (polynomial){NULL, 0};
    for (uint32_t round = 0; p.count && round < 16; round++) {
        term quotient;
        polynomial product;
        if (!uir_term_divide(dims, p.terms[0], divisor.terms[0], &quotient) ||
            !uir_polynomial_multiply_term(dims, divisor, quotient, &product) ||
            !uir_polynomial_add_scaled(dims, p, product, -1, &p) ||
            !uir_polynomial_add_scaled(dims, *out_quotient, (polynomial){&quotient, 1}, 1, out_quotient))
            return false;
    }
    return p.count == 0;
}

static bool eliminate_division(elimination *e, uir_dim atom, int sign) {
    uir_dims *dims = e->prover->dims;
    const uir_dim_node *node = &dim_at(dims, atom)->node;
    polynomial x, b, value, quotient;
    if (sign == 0 || !uir_polynomial_from_dim(dims, node->operands[0], &x) ||
        !uir_polynomial_from_dim(dims, node->operands[1], &b) || b.count == 0)
        return eliminate_by_range(e, atom, sign);
    /* b * atom lies within [x - b + 1, x] for floordiv, [x, x + b - 1] for ceildiv. */
    value = x;
    bool fits = true;
    if (node->kind == UIR_DIM_FLOORDIV && sign > 0)
        fits = uir_polynomial_add_scaled(dims, x, b, -1, &value) && add_constant(dims, value, 1, &value);
    if (node->kind == UIR_DIM_CEILDIV && sign < 0)
        fits = uir_polynomial_add_scaled(dims, x, b, 1, &value) && add_constant(dims, value, -1, &value);
    if (fits) {
        polynomial one;
        elimination whole = *e;
        if (divide_exactly(dims, e->coefficient, b, &quotient)) {
            whole.coefficient = quotient;
            if (prove_replaced(&whole, value)) return true;
        } else if (uir_polynomial_from_const(dims, 1, &one) && prove_scaled(e, value, b)) {
            return true;
        }
    }
    return eliminate_by_range(e, atom, sign);
}

static bool eliminate_extreme(elimination *e, uir_dim atom, int sign) {
    prover *p = e->prover;
    uir_dims *dims = p->dims;
    const uir_dim_node *node = &dim_at(dims, atom)->node;
    int smaller_side = node->kind == UIR_DIM_MIN ? -1 : 1;
    polynomial operands[CASES_MAX];
    for (uint32_t i = 0; i < node->count && sign == smaller_side; i++) {
        polynomial value;
        if (uir_polynomial_from_dim(dims, node->operands[i], &value) && prove_replaced(e, value)) return true;
    }
    if (node->count > CASES_MAX) return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!uir_polynomial_from_dim(dims, node->operands[i], &operands[i])) return false;
    /* In case i the atom is operand i, which is on the right side of all others. */
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t kept = p->slack_count;
        for (uint32_t j = 0; j < node->count && p->slack_count < ASSUMPTION_MAX; j++) {
            if (i == j) continue;
            polynomial slack;
            bool minimum = node->kind == UIR_DIM_MIN;
            if (!uir_polynomial_add_scaled(dims, operands[minimum ? j : i], operands[minimum ? i : j], -1, &slack))
                continue;
            p->slacks[p->slack_count++] = slack;
        }
        elimination one = *e;
        if (one.uses == 0) one.uses = 1;
        bool proved = prove_replaced(&one, operands[i]);
        p->slack_count = kept;
        if (!proved) return false;
    }
    return true;
}

/* ---- the choice of an atom --------------------------------------------------------------------------------------- */

/* What can be replaced without loss first: an axis index by its bounds, min and max by cases; then mod, before a
 * division that would take away the multiples its constant is rounded by; sizes, which the others' bounds mention,
 * last. */
static int rank_of(const uir_dims *dims, uir_dim atom) {
    const uir_dim_node *node = &dim_at(dims, atom)->node;
    switch (node->kind) {
    case UIR_DIM_SYMBOL:
        return dims->symbols.data[node->value].facts.bound.id ? 5 : 1;
    case UIR_DIM_MIN:
    case UIR_DIM_MAX:
        return 4;
    case UIR_DIM_MOD:
        return 3;
    default:
        return 2;
    }
}

/* Of one rank the larger expression, the later symbol: never by the order in which expressions were made. */
static bool comes_before(const uir_dims *dims, uir_dim a, uir_dim b) {
    const dim_node *x = dim_at(dims, a), *y = dim_at(dims, b);
    if (x->node.kind == UIR_DIM_SYMBOL && y->node.kind == UIR_DIM_SYMBOL) return x->node.value > y->node.value;
    if (x->tree_size != y->tree_size) return x->tree_size > y->tree_size;
    return uir_dim_order(dims, a, b) < 0;
}

static bool contains(const uir_dims *dims, uir_dim whole, uir_dim part) {
    if (whole.id == part.id) return true;
    const dim_node *node = dim_at(dims, whole), *inner = dim_at(dims, part);
    if (inner->node.kind == UIR_DIM_SYMBOL) return uir_dim_has_symbol(node, (uint32_t)inner->node.value);
    if (node->tree_size <= inner->tree_size) return false;
    for (uint32_t i = 0; i < node->node.count; i++)
        if (contains(dims, node->node.operands[i], part)) return true;
    return false;
}

/* A bound may mention the symbol itself only by a caller's mistake; replacing would then not end. */
static bool is_eliminable(const uir_dims *dims, polynomial p, uir_dim atom) {
    for (uint32_t i = 0; i < p.count; i++) {
        for (uint32_t j = 0; j < p.terms[i].degree; j++) {
            uir_dim other = p.terms[i].atoms[j];
            if (other.id != atom.id && dim_at(dims, other)->node.kind != UIR_DIM_SYMBOL && contains(dims, other, atom))
                return false;
            if (other.id == atom.id && j + 1 < p.terms[i].degree && p.terms[i].atoms[j + 1].id == atom.id) return false;
        }
    }
    return true;
}

static uir_dim choose_atom(const uir_dims *dims, polynomial p) {
    uir_dim best = UIR_DIM_NONE;
    int best_rank = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        for (uint32_t j = 0; j < p.terms[i].degree; j++) {
            uir_dim atom = p.terms[i].atoms[j];
            int rank = rank_of(dims, atom);
            if (rank < best_rank || (rank == best_rank && !comes_before(dims, atom, best))) continue;
            if (!is_eliminable(dims, p, atom)) continue;
            best = atom;
            best_rank = rank;
        }
    }
    return best;
}

static bool eliminate(prover *p, polynomial goal, uint32_t uses, uint32_t depth) {
    uir_dim atom = choose_atom(p->dims, goal);
    elimination e = {.prover = p, .uses = uses, .depth = depth};
    if (!atom.id || !split(p->dims, goal, atom, &e.coefficient, &e.rest)) return false;
    int sign = sign_of(p, e.coefficient, depth);
    switch (dim_at(p->dims, atom)->node.kind) {
    case UIR_DIM_MIN:
    case UIR_DIM_MAX:
        return eliminate_extreme(&e, atom, sign);
    case UIR_DIM_FLOORDIV:
    case UIR_DIM_CEILDIV:
        return eliminate_division(&e, atom, sign);
    default:
        return eliminate_by_range(&e, atom, sign);
    }
}

/* ---- assumptions ------------------------------------------------------------------------------------------------- */

/* Proves scale*goal - factor*slack >= 0 where the two cancel a term of the goal against one of the slack, of one sign.
 * `nearer`: only where fewer terms are left of it; else only where not. */
static bool use_slack(prover *p, polynomial goal, polynomial slack, term ours, term theirs, bool nearer, uint32_t uses,
                      uint32_t depth) {
    uir_dims *dims = p->dims;
    if (ours.coefficient == INT64_MIN || theirs.coefficient == INT64_MIN) return false;
    int64_t gcd = uir_integer_gcd(ours.coefficient, theirs.coefficient);
    if (ours.coefficient < 0) gcd = -gcd;
    int64_t scale = theirs.coefficient / gcd;
    term factor;
    polynomial product, next;
    term ours_alone = {1, ours.degree, ours.atoms}, theirs_alone = {1, theirs.degree, theirs.atoms};
    if (!uir_term_divide(dims, ours_alone, theirs_alone, &factor)) return false;
    factor.coefficient = ours.coefficient / gcd;
    if (uir_term_interval(dims, factor).min < 0) return false;
    return uir_polynomial_multiply_term(dims, slack, factor, &product) &&
           uir_polynomial_add_scaled(dims, (polynomial){NULL, 0}, goal, scale, &next) &&
           uir_polynomial_add_scaled(dims, next, product, -1, &next) && (next.count < goal.count) == nearer &&
           prove(p, next, uses - 1, depth + 1);
}

static bool use_some(prover *p, polynomial goal, bool negative, bool nearer, uint32_t uses, uint32_t depth) {
    for (uint32_t s = 0; s < p->slack_count; s++) {
        for (uint32_t i = 0; i < goal.count; i++) {
            if (goal.terms[i].degree == 0 || (goal.terms[i].coefficient < 0) != negative) continue;
            for (uint32_t k = 0; k < p->slacks[s].count; k++) {
                term theirs = p->slacks[s].terms[k];
                if ((theirs.coefficient < 0) != negative) continue;
                if (use_slack(p, goal, p->slacks[s], goal.terms[i], theirs, nearer, uses, depth)) return true;
            }
        }
    }
    return false;
}

/* Negative terms first: those are what stands in a proof's way. Of these, what cancels several of them at once. */
static bool use_assumptions(prover *p, polynomial goal, uint32_t uses, uint32_t depth) {
    return use_some(p, goal, true, true, uses, depth) || use_some(p, goal, true, false, uses, depth) ||
           use_some(p, goal, false, true, uses, depth) || use_some(p, goal, false, false, uses, depth);
}

/* goal = atom * quotient for an atom that every term has and that is >= 0; false when there is none. */
static bool find_common_factor(uir_dims *dims, polynomial goal, uir_dim *out_atom, polynomial *out_quotient) {
    term first = goal.terms[0];
    if (goal.terms[goal.count - 1].degree == 0) return false;
    for (uint32_t i = 0; i < first.degree; i++) {
        *out_atom = first.atoms[i];
        *out_quotient = (polynomial){NULL, 0};
        bool shared = uir_dim_interval(dims, *out_atom).min >= 0;
        for (uint32_t k = 0; k < goal.count && shared; k++) {
            term without;
            shared = uir_term_without(dims, goal.terms[k], *out_atom, &without) &&
                     uir_polynomial_add_scaled(dims, *out_quotient, (polynomial){&without, 1}, 1, out_quotient);
        }
        if (shared) return true;
    }
    return false;
}

/* Where the factor is 0 the goal holds, so the quotient need only hold where it is at least 1. */
static bool prove_quotient(prover *p, uir_dim atom, polynomial quotient, uint32_t uses, uint32_t depth) {
    uint32_t kept = p->slack_count;
    polynomial slack;
    if (uir_dim_interval(p->dims, atom).min < 1 && p->slack_count < ASSUMPTION_MAX &&
        uir_polynomial_from_dim(p->dims, atom, &slack) && add_constant(p->dims, slack, -1, &slack)) {
        p->slacks[p->slack_count++] = slack;
        if (uses == 0) uses = 1;
    }
    bool proved = prove(p, quotient, uses, depth + 1);
    p->slack_count = kept;
    return proved;
}

static bool round_constant(uir_dims *dims, polynomial *goal) {
    int64_t gcd = 0, constant = polynomial_constant(*goal);
    for (uint32_t i = 0; i < goal->count && gcd != 1; i++)
        if (goal->terms[i].degree) gcd = uir_integer_gcd(gcd, uir_term_multiple(dims, goal->terms[i]));
    return gcd <= 1 || add_constant(dims, *goal, gcd - 1 - uir_integer_mod(constant, gcd), goal);
}

static bool prove(prover *p, polynomial goal, uint32_t uses, uint32_t depth) {
    if (polynomial_is_const(goal)) return polynomial_constant(goal) >= 0;
    /* A step on a long sum counts for more; growing ones are going nowhere. */
    uint32_t cost = 1 + goal.count / 8;
    if (p->steps < cost || depth > PROVE_DEPTH || goal.count > PROVE_TERMS) return false;
    p->steps -= cost;
    interval range = uir_polynomial_interval(p->dims, goal);
    if (range.min >= 0) return true;
    if (range.max < 0) return false;
    uir_arena_mark mark = uir_arena_get_mark(&p->dims->scratch);
    uir_dim factor;
    polynomial quotient;
    bool proved =
        find_common_factor(p->dims, goal, &factor, &quotient) && prove_quotient(p, factor, quotient, uses, depth);
    proved = proved || (round_constant(p->dims, &goal) &&
                        (uir_polynomial_interval(p->dims, goal).min >= 0 ||
                         (uses && use_assumptions(p, goal, uses, depth)) || eliminate(p, goal, uses, depth)));
    uir_arena_return_to(&p->dims->scratch, mark);
    return proved;
}

bool uir_prove_nonnegative(uir_dims *dims, polynomial p, uint32_t steps) {
    prover prover;
    prover.dims = dims;
    prover.steps = steps;
    prover.slack_count = 0;
    return prove(&prover, p, 0, 0);
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static void add_slack(prover *p, polynomial slack) {
    if (p->slack_count < ASSUMPTION_MAX && !polynomial_is_const(slack)) p->slacks[p->slack_count++] = slack;
}

/* What a condition says, as differences that are >= 0. */
static void add_assumption(prover *p, uir_condition condition) {
    polynomial left, right, up, down, strict;
    uir_dims *dims = p->dims;
    if (!condition.left.id || !condition.right.id || !uir_polynomial_from_dim(dims, condition.left, &left) ||
        !uir_polynomial_from_dim(dims, condition.right, &right) ||
        !uir_polynomial_add_scaled(dims, right, left, -1, &up) ||
        !uir_polynomial_add_scaled(dims, left, right, -1, &down))
        return;
    switch (condition.relation) {
    case UIR_RELATION_EQ:
        add_slack(p, up);
        add_slack(p, down);
        break;
    case UIR_RELATION_NE: /* of use where one side is known not to be the smaller */
        p->steps = SIGN_STEPS;
        if (prove(p, up, 0, 0)) {
            if (add_constant(dims, up, -1, &strict)) add_slack(p, strict);
        } else if (prove(p, down, 0, 0)) {
            if (add_constant(dims, down, -1, &strict)) add_slack(p, strict);
        }
        break;
    case UIR_RELATION_LT:
        if (add_constant(dims, up, -1, &strict)) add_slack(p, strict);
        break;
    case UIR_RELATION_LE:
        add_slack(p, up);
        break;
    case UIR_RELATION_GT:
        if (add_constant(dims, down, -1, &strict)) add_slack(p, strict);
        break;
    case UIR_RELATION_GE:
        add_slack(p, down);
        break;
    }
}

/* Proofs of what kernels ask take a few dozen steps at most; what is true and takes more is rare. */
static const uint32_t steps_by_uses[ASSUMPTION_USES + 1] = {96, 192, 128};

/* Is the goal at least the sum of two assumptions? A search may lose its steps on others before it meets these two. */
static bool is_sum_of_assumptions(prover *p, polynomial goal) {
    for (uint32_t i = 0; i < p->slack_count; i++) {
        polynomial rest, nothing;
        if (!uir_polynomial_add_scaled(p->dims, goal, p->slacks[i], -1, &rest)) continue;
        if (rest.count >= goal.count) continue; /* it says nothing of what stands in the way */
        for (uint32_t k = 0; k < p->slack_count; k++)
            if (uir_polynomial_add_scaled(p->dims, rest, p->slacks[k], -1, &nothing) &&
                uir_polynomial_interval(p->dims, nothing).min >= 0)
                return true;
    }
    return false;
}

/* difference + offset >= 0, with more and more uses of the assumptions. */
static bool proves(prover *p, polynomial difference, int64_t offset) {
    polynomial goal;
    if (!add_constant(p->dims, difference, offset, &goal)) return false;
    uint32_t most = p->slack_count ? ASSUMPTION_USES : 0;
    for (uint32_t uses = 0; uses <= most; uses++) {
        p->steps = steps_by_uses[uses];
        if (prove(p, goal, uses, 0)) return true;
    }
    return is_sum_of_assumptions(p, goal);
}

/* d = g*x + k where g does not divide k: never 0. */
static bool never_zero(uir_dims *dims, polynomial d) {
    int64_t gcd = 0;
    for (uint32_t i = 0; i < d.count; i++)
        if (d.terms[i].degree) gcd = uir_integer_gcd(gcd, uir_term_multiple(dims, d.terms[i]));
    return gcd > 0 ? polynomial_constant(d) % gcd != 0 : polynomial_constant(d) != 0;
}

/* a <= b + offset, where no point was seen that contradicts it. */
static bool proves_at_most(prover *p, polynomial b_minus_a, int64_t offset, bool contradicted) {
    return !contradicted && proves(p, b_minus_a, offset);
}

/* `seen`: of a and b, at some points. */
static uir_truth decide(prover *p, polynomial a_minus_b, uir_relation relation, uir_dim_signs seen) {
    uir_dims *dims = p->dims;
    polynomial b_minus_a;
    const uir_dim_signs swapped = {seen.greater, seen.equal, seen.less};
    if (!negate(dims, a_minus_b, &b_minus_a)) return UIR_UNKNOWN;
    switch (relation) {
    case UIR_RELATION_LE:
        if (proves_at_most(p, b_minus_a, 0, seen.greater)) return UIR_TRUE;
        return proves_at_most(p, a_minus_b, -1, seen.less || seen.equal) ? UIR_FALSE : UIR_UNKNOWN;
    case UIR_RELATION_LT:
        if (proves_at_most(p, b_minus_a, -1, seen.greater || seen.equal)) return UIR_TRUE;
        return proves_at_most(p, a_minus_b, 0, seen.less) ? UIR_FALSE : UIR_UNKNOWN;
    case UIR_RELATION_GE:
        return decide(p, b_minus_a, UIR_RELATION_LE, swapped);
    case UIR_RELATION_GT:
        return decide(p, b_minus_a, UIR_RELATION_LT, swapped);
    case UIR_RELATION_EQ: {
        if (a_minus_b.count == 0) return UIR_TRUE;
        if (never_zero(dims, a_minus_b)) return UIR_FALSE;
        bool not_less = proves_at_most(p, a_minus_b, 0, seen.less);
        bool not_greater = proves_at_most(p, b_minus_a, 0, seen.greater);
        if (not_less && not_greater) return UIR_TRUE;
        if (not_less && proves_at_most(p, a_minus_b, -1, seen.equal)) return UIR_FALSE;
        if (not_greater && proves_at_most(p, b_minus_a, -1, seen.equal)) return UIR_FALSE;
        return UIR_UNKNOWN;
    }
    case UIR_RELATION_NE: {
        uir_truth equal = decide(p, a_minus_b, UIR_RELATION_EQ, seen);
        return equal == UIR_TRUE ? UIR_FALSE : equal == UIR_FALSE ? UIR_TRUE : UIR_UNKNOWN;
    }
    }
    return UIR_UNKNOWN;
}

/* Two slacks x - c and c - x: x is the number c. */
static bool is_known(prover *p, polynomial above) {
    bool shape = above.terms[0].degree == 1 && above.terms[0].coefficient == 1 && above.count <= 2;
    if (!shape || (above.count == 2 && above.terms[1].degree != 0)) return false;
    for (uint32_t i = 0; i < p->slack_count; i++) {
        polynomial sum;
        if (p->slacks[i].count != above.count || p->slacks[i].terms[0].coefficient != -1) continue;
        if (uir_polynomial_add_scaled(p->dims, above, p->slacks[i], 1, &sum) && sum.count == 0) return true;
    }
    return false;
}

/* At the number: less every term of x by (x - c) times what is beside x there. As it was where that does not fit. */
static void substitute(uir_dims *dims, polynomial known, polynomial *in) {
    polynomial result = *in;
    for (uint32_t k = 0; k < result.count;) {
        term beside;
        polynomial product;
        if (!uir_term_without(dims, result.terms[k], known.terms[0].atoms[0], &beside)) {
            k++;
            continue;
        }
        if (!uir_polynomial_multiply_term(dims, known, beside, &product) ||
            !uir_polynomial_add_scaled(dims, result, product, -1, &result))
            return;
        k = 0;
    }
    *in = result;
}

/* The difference and the conditions with everything that is known taken there. */
static void substitute_known(prover *p, polynomial *difference) {
    for (uint32_t i = 0; i < p->slack_count; i++) {
        if (!is_known(p, p->slacks[i])) continue;
        substitute(p->dims, p->slacks[i], difference);
        for (uint32_t k = 0; k < p->slack_count; k++) {
            polynomial slack = p->slacks[k];
            substitute(p->dims, p->slacks[i], &slack);
            if (!polynomial_is_const(slack)) p->slacks[k] = slack;
        }
    }
}

uir_truth uir_dim_compare_given(uir_dims *dims, const uir_condition *assumptions, uint32_t assumption_count, uir_dim a,
                                uir_relation relation, uir_dim b) {
    if (!a.id || !b.id) return UIR_UNKNOWN;
    int64_t a_value, b_value;
    if (uir_dim_is_const(dims, a, &a_value) && uir_dim_is_const(dims, b, &b_value)) /* their difference may overflow */
        return uir_relation_holds(relation, a_value, b_value) ? UIR_TRUE : UIR_FALSE;
    dims->out_of_memory = false;
    uir_arena_mark mark = uir_arena_get_mark(&dims->scratch);
    prover prover;
    polynomial left, right, difference;
    uir_truth truth = UIR_UNKNOWN;
    prover.dims = dims;
    prover.slack_count = 0;
    if (uir_polynomial_from_dim(dims, a, &left) && uir_polynomial_from_dim(dims, b, &right) &&
        uir_polynomial_add_scaled(dims, left, right, -1, &difference)) {
        interval range = uir_polynomial_interval(dims, difference);
        uir_dim_signs seen = {false, false, false};
        for (uint32_t i = 0; i < assumption_count; i++) add_assumption(&prover, assumptions[i]);
        substitute_known(&prover, &difference);
        if (range.min < 0 && range.max > 0) seen = uir_dim_try_signs(dims, assumptions, assumption_count, a, b);
        truth = decide(&prover, difference, relation, seen);
    }
    uir_arena_return_to(&dims->scratch, mark);
    return truth;
}

uir_truth uir_dim_compare(uir_dims *dims, uir_dim a, uir_relation relation, uir_dim b) {
    return uir_dim_compare_given(dims, NULL, 0, a, relation, b);
}
