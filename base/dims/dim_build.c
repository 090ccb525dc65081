/* The builders: every rule by which an expression is simplified when it is made.
 *
 * A rule applies only where it is exact for every binding that the facts allow. A divisor that may be below 1 leaves
 * the division as it stands, so that evaluation can report it; a term that cancels (x - x, 0*x) or a division that an
 * operand of min or max makes irrelevant takes no part, but a bound on a possibly undefined value is never used. */
#include "base/dims/dim_internal.h"

/* Work allowed to a comparison inside a builder. */
enum { BUILD_STEPS = 24, SIMPLIFY_ROUNDS = 32 };

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* c*floordiv(x, d) is (c/d)*x where d divides x and c. */
static bool cancel_exact_division(uir_dims *dims, polynomial *p, bool *out_changed) {
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t j = 0; j < p->terms[i].degree; j++) {
            const uir_dim_node *node = &dim_at(dims, p->terms[i].atoms[j])->node;
            int64_t divisor;
            if (node->kind != UIR_DIM_FLOORDIV || !uir_dim_is_const(dims, node->operands[1], &divisor)) continue;
            if (divisor < 1 || p->terms[i].coefficient % divisor || uir_dim_multiple(dims, node->operands[0]) % divisor)
                continue;
            polynomial old = {&p->terms[i], 1}, inside;
            term rest;
            if (!uir_term_without(dims, p->terms[i], p->terms[i].atoms[j], &rest)) return false;
            rest.coefficient /= divisor;
            *out_changed = true;
            return uir_polynomial_from_dim(dims, node->operands[0], &inside) &&
                   uir_polynomial_multiply_term(dims, inside, rest, &inside) &&
                   uir_polynomial_add_scaled(dims, *p, old, -1, p) && uir_polynomial_add_scaled(dims, *p, inside, 1, p);
        }
    }
    return true;
}

static uint32_t count_without_constant(polynomial p) {
    return p.count - (polynomial_constant(p) != 0);
}

/* b*floordiv(x, b) + mod(x, b) is x. Tried for each mod atom, kept when the sum gets shorter. */
static bool join_quotient_and_rest(uir_dims *dims, polynomial *p, bool *out_changed) {
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t j = 0; j < p->terms[i].degree; j++) {
            const uir_dim_node *node = &dim_at(dims, p->terms[i].atoms[j])->node;
            if (node->kind != UIR_DIM_MOD || uir_dim_interval(dims, node->operands[1]).min < 1) continue;
            uir_dim quotient = uir_dim_floordiv(dims, node->operands[0], node->operands[1]);
            polynomial q, b, x, candidate, old = {&p->terms[i], 1};
            term rest;
            if (!quotient.id || !uir_polynomial_from_dim(dims, quotient, &q) ||
                !uir_polynomial_from_dim(dims, node->operands[1], &b) ||
                !uir_polynomial_from_dim(dims, node->operands[0], &x) ||
                !uir_term_without(dims, p->terms[i], p->terms[i].atoms[j], &rest))
                return false;
            /* x - b*floordiv(x, b) in place of mod(x, b); what overflows here is merely not simplified. */
            if (!uir_polynomial_multiply(dims, q, b, &q) || !uir_polynomial_add_scaled(dims, x, q, -1, &x) ||
                !uir_polynomial_multiply_term(dims, x, rest, &x) ||
                !uir_polynomial_add_scaled(dims, *p, old, -1, &candidate) ||
                !uir_polynomial_add_scaled(dims, candidate, x, 1, &candidate)) {
                if (dims->out_of_memory) return false;
                continue;
            }
            if (count_without_constant(candidate) < count_without_constant(*p)) {
                *p = candidate;
                *out_changed = true;
                return true;
            }
        }
    }
    return true;
}

static uir_dim finish_sum(uir_dims *dims, polynomial p) {
    bool changed = true;
    for (int round = 0; changed && round < SIMPLIFY_ROUNDS; round++) {
        changed = false;
        if (!cancel_exact_division(dims, &p, &changed)) return UIR_DIM_NONE;
        if (!changed && !join_quotient_and_rest(dims, &p, &changed)) return UIR_DIM_NONE;
    }
    return uir_polynomial_to_dim(dims, p);
}

static uir_dim add_scaled(uir_dims *dims, uir_dim a, uir_dim b, int64_t factor) {
    polynomial p, q;
    if (!a.id || !b.id) return UIR_DIM_NONE;
    dims->out_of_memory = false;
    uir_arena_mark mark = uir_arena_get_mark(&dims->scratch);
    uir_dim result = UIR_DIM_NONE;
    if (uir_polynomial_from_dim(dims, a, &p) && uir_polynomial_from_dim(dims, b, &q) &&
        uir_polynomial_add_scaled(dims, p, q, factor, &p))
        result = finish_sum(dims, p);
    uir_arena_return_to(&dims->scratch, mark);
    return result;
}

uir_dim uir_dim_add(uir_dims *dims, uir_dim a, uir_dim b) {
    return add_scaled(dims, a, b, 1);
}

uir_dim uir_dim_sub(uir_dims *dims, uir_dim a, uir_dim b) {
    return add_scaled(dims, a, b, -1);
}

uir_dim uir_dim_mul(uir_dims *dims, uir_dim a, uir_dim b) {
    polynomial p, q;
    if (!a.id || !b.id) return UIR_DIM_NONE;
    dims->out_of_memory = false;
    uir_arena_mark mark = uir_arena_get_mark(&dims->scratch);
    uir_dim result = UIR_DIM_NONE;
    if (uir_polynomial_from_dim(dims, a, &p) && uir_polynomial_from_dim(dims, b, &q) &&
        uir_polynomial_multiply(dims, p, q, &p))
        result = finish_sum(dims, p);
    uir_arena_return_to(&dims->scratch, mark);
    return result;
}

static uir_dim divide(uir_dims *dims, uir_dim_kind kind, uir_dim a, uir_dim b);

/* ---- division ---------------------------------------------------------------------------------------------------- */

/* a / b under way: result = quotient + kind(rest, divisor), the kind being floordiv or ceildiv; for mod only the rest
 * matters. */
typedef struct division {
    uir_dims *dims;
    uir_dim_kind kind;
    polynomial quotient, rest, divisor;
    int64_t value; /* of a constant divisor, else 0 */
} division;

static bool polynomial_undefined(uir_dims *dims, polynomial p) {
    for (uint32_t i = 0; i < p.count; i++)
        for (uint32_t j = 0; j < p.terms[i].degree; j++)
            if (dim_at(dims, p.terms[i].atoms[j])->divides_by_unknown) return true;
    return false;
}

/* p[i] is moved out of the rest as `part` times the divisor. */
static bool extract(division *d, term part) {
    polynomial single = {&part, 1}, product;
    return uir_polynomial_multiply_term(d->dims, d->divisor, part, &product) &&
           uir_polynomial_add_scaled(d->dims, d->rest, product, -1, &d->rest) &&
           uir_polynomial_add_scaled(d->dims, d->quotient, single, 1, &d->quotient);
}

/* Takes out of the rest what the divisor divides as polynomials. Coefficients are cut toward zero, which keeps signs.
 */
static bool extract_multiples(division *d) {
    term lead = d->divisor.terms[0];
    for (uint32_t i = 0; i < d->rest.count;) {
        term t = d->rest.terms[i], part = {t.coefficient, t.degree, t.atoms};
        bool fits = true;
        for (uint32_t j = 0; j < lead.degree && fits; j++) fits = uir_term_without(d->dims, part, lead.atoms[j], &part);
        if (d->dims->out_of_memory) return false;
        part.coefficient = lead.coefficient == -1 ? 0 : t.coefficient / lead.coefficient;
        if (!fits || part.coefficient == 0 || (d->divisor.count > 1 && t.coefficient % lead.coefficient)) {
            i++;
            continue;
        }
        uint32_t before = d->rest.count;
        division trial = *d;
        if (!extract(&trial, part)) {
            if (d->dims->out_of_memory) return false;
            i++;
        } else if (d->divisor.count > 1 && trial.rest.count >= before) {
            i++; /* no gain in dividing by a sum */
        } else {
            *d = trial;
            i = 0;
        }
    }
    return true;
}

/* Takes out of a rest of several terms those known, by facts, to be multiples of the constant divisor. */
static bool extract_known_multiples(division *d) {
    for (uint32_t i = 0; i < d->rest.count && d->rest.count > 1;) {
        term t = d->rest.terms[i];
        if (t.degree == 0 || uir_term_multiple(d->dims, t) % d->value) {
            i++;
            continue;
        }
        polynomial single = {&t, 1}, quotient;
        if (d->kind != UIR_DIM_MOD) {
            uir_dim part =
                uir_dim_floordiv(d->dims, uir_polynomial_to_dim(d->dims, single), uir_dim_const(d->dims, d->value));
            if (!part.id || !uir_polynomial_from_dim(d->dims, part, &quotient) ||
                !uir_polynomial_add_scaled(d->dims, d->quotient, quotient, 1, &d->quotient))
                return false;
        }
        if (!uir_polynomial_add_scaled(d->dims, d->rest, single, -1, &d->rest)) return false;
    }
    return true;
}

static bool polynomial_of_sum(uir_dims *dims, polynomial p, int64_t constant, polynomial *out) {
    polynomial c;
    return uir_polynomial_from_const(dims, constant, &c) && uir_polynomial_add_scaled(dims, p, c, 1, out);
}

/* low <= rest < low + divisor with low = `periods` * divisor + offset? */
static bool rest_within(division *d, int64_t periods, int64_t offset) {
    polynomial low, high;
    uir_dims *dims = d->dims;
    return uir_polynomial_add_scaled(dims, d->rest, d->divisor, -periods, &low) &&
           polynomial_of_sum(dims, low, -offset, &low) && uir_prove_nonnegative(dims, low, BUILD_STEPS) &&
           uir_polynomial_add_scaled(dims, (polynomial){NULL, 0}, low, -1, &high) &&
           uir_polynomial_add_scaled(dims, high, d->divisor, 1, &high) && polynomial_of_sum(dims, high, -1, &high) &&
           uir_prove_nonnegative(dims, high, BUILD_STEPS);
}

/* When the rest provably lies within one period of the divisor, the quotient is known. */
static bool settle(division *d, bool *out_settled) {
    int64_t offset = d->kind == UIR_DIM_CEILDIV;
    *out_settled = d->rest.count == 0;
    if (*out_settled || polynomial_undefined(d->dims, d->rest) || polynomial_undefined(d->dims, d->divisor))
        return true;
    int64_t periods = 0;
    if (d->value) {
        interval range = uir_polynomial_interval(d->dims, d->rest);
        if (range.min != INT64_MIN) periods = uir_integer_floordiv(range.min, d->value);
    }
    for (int attempt = 0; attempt < 2 && !*out_settled; attempt++) {
        int64_t p = attempt == 0 ? periods : -1;
        if (attempt == 1 && (d->value || periods == -1)) break;
        if (!rest_within(d, p, offset)) {
            if (d->dims->out_of_memory) return false;
            continue;
        }
        int64_t quotient = p + offset;
        if (!polynomial_of_sum(d->dims, d->quotient, quotient, &d->quotient)) return false;
        if (!uir_polynomial_add_scaled(d->dims, d->rest, d->divisor, -p, &d->rest)) return false;
        *out_settled = true;
    }
    return true;
}

/* Divides rest and divisor by a common factor known to be at least 1: floordiv(s*x, s*y) = floordiv(x, y). The factor
 * comes back for mod, whose result has it outside. */
static bool cancel_common_factor(division *d, term *out_factor) {
    uir_dims *dims = d->dims;
    *out_factor = (term){1, 0, NULL};
    int64_t gcd = 0;
    for (uint32_t i = 0; i < d->rest.count; i++) gcd = uir_integer_gcd(gcd, d->rest.terms[i].coefficient);
    for (uint32_t i = 0; i < d->divisor.count; i++) gcd = uir_integer_gcd(gcd, d->divisor.terms[i].coefficient);
    if (gcd < 1) return true;
    term common = {gcd, 0, NULL};
    term lead = d->divisor.terms[0];
    for (uint32_t i = 0; i < lead.degree; i++) {
        uir_dim atom = lead.atoms[i];
        if (uir_dim_interval(dims, atom).min < 1 || dim_at(dims, atom)->divides_by_unknown) continue;
        polynomial single = {&(term){1, 1, &dim_at(dims, atom)->self}, 1}, product;
        if (!uir_polynomial_multiply_term(dims, single, common, &product)) return false;
        bool divides = true;
        term quotient;
        for (uint32_t k = 0; k < d->rest.count && divides; k++)
            divides = uir_term_divide(dims, d->rest.terms[k], product.terms[0], &quotient);
        for (uint32_t k = 0; k < d->divisor.count && divides; k++)
            divides = uir_term_divide(dims, d->divisor.terms[k], product.terms[0], &quotient);
        if (dims->out_of_memory) return false;
        if (divides) common = product.terms[0];
    }
    if (common.coefficient == 1 && common.degree == 0) return true;
    polynomial *parts[] = {&d->rest, &d->divisor};
    for (int p = 0; p < 2; p++) {
        polynomial old = *parts[p], divided = {NULL, 0};
        for (uint32_t k = 0; k < old.count; k++) {
            term quotient;
            if (!uir_term_divide(dims, old.terms[k], common, &quotient) ||
                !uir_polynomial_add_scaled(dims, divided, (polynomial){&quotient, 1}, 1, &divided))
                return false;
        }
        *parts[p] = divided;
    }
    d->value = polynomial_is_const(d->divisor) ? polynomial_constant(d->divisor) : 0;
    *out_factor = common;
    return true;
}

/* For a constant divisor c and g = gcd(c, coefficients but the constant): kind(g*x + k, c) with k = g*k1 + k2,
 * 0 <= k2 < g, is floordiv(x + k1, c/g), and for mod g*mod(x + k1, c/g) + k2. */
static bool reduce_by_gcd(division *d, int64_t *out_factor, int64_t *out_offset) {
    uir_dims *dims = d->dims;
    int64_t gcd = d->value, constant = polynomial_constant(d->rest);
    *out_factor = 1;
    *out_offset = 0;
    for (uint32_t i = 0; i < d->rest.count; i++)
        if (d->rest.terms[i].degree) gcd = uir_integer_gcd(gcd, d->rest.terms[i].coefficient);
    if (gcd <= 1) return true;
    int64_t k1 = uir_integer_floordiv(constant, gcd);
    polynomial reduced = {NULL, 0};
    for (uint32_t i = 0; i < d->rest.count; i++) {
        term t = d->rest.terms[i];
        if (t.degree == 0) continue;
        t.coefficient /= gcd;
        if (!uir_polynomial_add_scaled(dims, reduced, (polynomial){&t, 1}, 1, &reduced)) return false;
    }
    if (!polynomial_of_sum(dims, reduced, k1, &d->rest)) return false;
    *out_factor = gcd;
    *out_offset = uir_integer_mod(constant, gcd);
    d->value /= gcd;
    return uir_polynomial_from_const(dims, d->value, &d->divisor);
}

static uir_dim intern_division(division *d, uir_dim_kind kind, polynomial rest) {
    uir_dim operands[2] = {uir_polynomial_to_dim(d->dims, rest), uir_polynomial_to_dim(d->dims, d->divisor)};
    if (!operands[0].id || !operands[1].id) return UIR_DIM_NONE;
    return uir_dim_intern(d->dims, kind, 0, operands, 2);
}

/* kind(rest, divisor), unless the rest is one node of the same rounding plus a constant: kind(kind(x, b) + k, c) is
 * kind(x + k*b, b*c). */
static uir_dim intern_flat(division *d, uir_dim_kind kind, polynomial rest) {
    uir_dims *dims = d->dims;
    int64_t constant = polynomial_constant(rest);
    uint32_t terms = rest.count - (constant != 0);
    if (terms == 1 && rest.terms[0].coefficient == 1 && rest.terms[0].degree == 1) {
        const uir_dim_node *node = &dim_at(dims, rest.terms[0].atoms[0])->node;
        if (node->kind == kind && uir_dim_interval(dims, node->operands[1]).min >= 1) {
            uir_dim k = uir_dim_const(dims, constant), divisor = uir_polynomial_to_dim(dims, d->divisor);
            uir_dim x = uir_dim_add(dims, node->operands[0], uir_dim_mul(dims, k, node->operands[1]));
            uir_dim product = uir_dim_mul(dims, node->operands[1], divisor);
            /* An overflow leaves it nested. */
            if (x.id && product.id) return divide(dims, kind, x, product);
        }
    }
    return intern_division(d, kind, rest);
}

/* quotient + atom + constant. */
static uir_dim add_quotient(division *d, uir_dim atom, int64_t constant) {
    polynomial p;
    if (!atom.id || !uir_polynomial_from_dim(d->dims, atom, &p) ||
        !uir_polynomial_add_scaled(d->dims, p, d->quotient, 1, &p) || !polynomial_of_sum(d->dims, p, constant, &p))
        return UIR_DIM_NONE;
    return finish_sum(d->dims, p);
}

/* floordiv and ceildiv overlap (ceildiv(x, b) = floordiv(x - 1, b) + 1): one spelling for each value. With a constant
 * divisor c, ceildiv stands only for floordiv(x + c - 1, c); else for what would be floordiv(x - 1, b). */
static uir_dim finish_division(division *d) {
    int64_t constant = polynomial_constant(d->rest), shift = 0, extra = 0;
    uir_dim_kind kind = d->kind;
    if (!polynomial_is_const(d->rest)) {
        if (kind == UIR_DIM_FLOORDIV && d->value > 1 && constant == d->value - 1) {
            kind = UIR_DIM_CEILDIV;
            shift = -constant;
        } else if (kind == UIR_DIM_FLOORDIV && !d->value && constant == -1) {
            kind = UIR_DIM_CEILDIV;
            shift = 1;
            extra = -1;
        } else if (kind == UIR_DIM_CEILDIV && !d->value && constant == 1) {
            kind = UIR_DIM_FLOORDIV;
            shift = -1;
            extra = 1;
        }
    }
    polynomial rest;
    if (!polynomial_of_sum(d->dims, d->rest, shift, &rest)) return UIR_DIM_NONE;
    /* Without its constant a rest may share a factor with a symbolic divisor: it is divided anew. */
    if (extra)
        return add_quotient(
            d, divide(d->dims, kind, uir_polynomial_to_dim(d->dims, rest), uir_polynomial_to_dim(d->dims, d->divisor)),
            extra);
    return add_quotient(d, intern_flat(d, kind, rest), 0);
}

/* Brings the constant of the rest into [0, c). */
static bool reduce_constant(division *d) {
    int64_t constant = polynomial_constant(d->rest), periods = uir_integer_floordiv(constant, d->value);
    polynomial others = {d->rest.terms, d->rest.count - (constant != 0)};
    return polynomial_of_sum(d->dims, others, uir_integer_mod(constant, d->value), &d->rest) &&
           polynomial_of_sum(d->dims, d->quotient, periods, &d->quotient);
}

static uir_dim divide_constant(division *d) {
    int64_t factor, offset;
    bool settled;
    if (!extract_multiples(d) || !reduce_constant(d) || !extract_known_multiples(d) ||
        !reduce_by_gcd(d, &factor, &offset) || !settle(d, &settled))
        return UIR_DIM_NONE;
    if (d->kind != UIR_DIM_MOD) return settled ? finish_sum(d->dims, d->quotient) : finish_division(d);
    uir_dim rest = UIR_DIM_NONE;
    if (settled) {
        rest = uir_polynomial_to_dim(d->dims, d->rest);
    } else {
        /* mod(mod(x, b), c) is mod(x, c) where c divides b. */
        const uir_dim_node *node =
            d->rest.count == 1 && d->rest.terms[0].degree == 1 && d->rest.terms[0].coefficient == 1
                ? &dim_at(d->dims, d->rest.terms[0].atoms[0])->node
                : NULL;
        if (node && node->kind == UIR_DIM_MOD && uir_dim_interval(d->dims, node->operands[1]).min >= 1 &&
            uir_dim_multiple(d->dims, node->operands[1]) % d->value == 0)
            rest = uir_dim_mod(d->dims, node->operands[0], uir_polynomial_to_dim(d->dims, d->divisor));
        else
            rest = intern_division(d, UIR_DIM_MOD, d->rest);
    }
    polynomial p, k;
    if (!rest.id || !uir_polynomial_from_dim(d->dims, rest, &p) || !uir_polynomial_from_const(d->dims, offset, &k) ||
        !uir_polynomial_add_scaled(d->dims, k, p, factor, &p))
        return UIR_DIM_NONE;
    return finish_sum(d->dims, p);
}

static uir_dim divide_symbolic(division *d) {
    term factor;
    bool settled;
    if (!extract_multiples(d) || !cancel_common_factor(d, &factor)) return UIR_DIM_NONE;
    if (d->value && d->kind != UIR_DIM_MOD) {
        /* The divisor was a constant times the common factor. */
        uir_dim rest = uir_polynomial_to_dim(d->dims, d->rest), divisor = uir_dim_const(d->dims, d->value);
        return add_quotient(d,
                            d->kind == UIR_DIM_FLOORDIV ? uir_dim_floordiv(d->dims, rest, divisor)
                                                        : uir_dim_ceildiv(d->dims, rest, divisor),
                            0);
    }
    if (!settle(d, &settled)) return UIR_DIM_NONE;
    if (d->kind != UIR_DIM_MOD) return settled ? finish_sum(d->dims, d->quotient) : finish_division(d);
    uir_dim rest;
    if (settled)
        rest = uir_polynomial_to_dim(d->dims, d->rest);
    else if (d->value)
        rest = uir_dim_mod(d->dims, uir_polynomial_to_dim(d->dims, d->rest), uir_dim_const(d->dims, d->value));
    else
        rest = intern_division(d, UIR_DIM_MOD, d->rest);
    polynomial p;
    if (!rest.id || !uir_polynomial_from_dim(d->dims, rest, &p) ||
        !uir_polynomial_multiply_term(d->dims, p, factor, &p))
        return UIR_DIM_NONE;
    return finish_sum(d->dims, p);
}

static uir_dim divide(uir_dims *dims, uir_dim_kind kind, uir_dim a, uir_dim b) {
    if (!a.id || !b.id) return UIR_DIM_NONE;
    uir_dim operands[2] = {a, b}, result = UIR_DIM_NONE;
    dims->out_of_memory = false;
    if (uir_dim_interval(dims, b).min < 1) return uir_dim_intern(dims, kind, 0, operands, 2);
    int64_t dividend, divisor;
    if (uir_dim_is_const(dims, b, &divisor)) {
        if (divisor == 1) return kind == UIR_DIM_MOD ? uir_dim_const(dims, 0) : a;
        if (uir_dim_is_const(dims, a, &dividend)) {
            int64_t quotient = kind == UIR_DIM_CEILDIV ? uir_integer_ceildiv(dividend, divisor)
                                                       : uir_integer_floordiv(dividend, divisor);
            return uir_dim_const(dims, kind == UIR_DIM_MOD ? uir_integer_mod(dividend, divisor) : quotient);
        }
    }
    uir_arena_mark mark = uir_arena_get_mark(&dims->scratch);
    division d = {.dims = dims, .kind = kind};
    uir_dim_is_const(dims, b, &d.value);
    if (uir_polynomial_from_dim(dims, a, &d.rest) && uir_polynomial_from_dim(dims, b, &d.divisor)) {
        if (d.value && kind == UIR_DIM_CEILDIV) {
            /* Where the sum overflows the node is kept as it is. */
            d.kind = UIR_DIM_FLOORDIV;
            if (polynomial_of_sum(dims, d.rest, d.value - 1, &d.rest))
                result = divide_constant(&d);
            else if (!dims->out_of_memory)
                result = uir_dim_intern(dims, kind, 0, operands, 2);
        } else {
            result = d.value ? divide_constant(&d) : divide_symbolic(&d);
        }
    }
    uir_arena_return_to(&dims->scratch, mark);
    return result;
}

uir_dim uir_dim_floordiv(uir_dims *dims, uir_dim a, uir_dim b) {
    return divide(dims, UIR_DIM_FLOORDIV, a, b);
}

uir_dim uir_dim_ceildiv(uir_dims *dims, uir_dim a, uir_dim b) {
    return divide(dims, UIR_DIM_CEILDIV, a, b);
}

uir_dim uir_dim_mod(uir_dims *dims, uir_dim a, uir_dim b) {
    return divide(dims, UIR_DIM_MOD, a, b);
}

/* ---- min and max ------------------------------------------------------------------------------------------------- */

typedef struct operand_list {
    polynomial items[DIM_OPERANDS_MAX];
    uint32_t count;
} operand_list;

static bool collect(uir_dims *dims, uir_dim_kind kind, uir_dim dim, operand_list *list) {
    const uir_dim_node *node = &dim_at(dims, dim)->node;
    if (node->kind == kind) {
        for (uint32_t i = 0; i < node->count; i++)
            if (!collect(dims, kind, node->operands[i], list)) return false;
        return true;
    }
    return list->count < DIM_OPERANDS_MAX && uir_polynomial_from_dim(dims, dim, &list->items[list->count++]);
}

/* Removes every operand that another one makes irrelevant. */
static bool drop_dominated(uir_dims *dims, uir_dim_kind kind, operand_list *list) {
    int64_t sign = kind == UIR_DIM_MIN ? 1 : -1;
    for (uint32_t i = 0; i < list->count; i++) {
        for (uint32_t j = 0; j < list->count;) {
            polynomial difference;
            bool dominated = false;
            if (i != j && uir_polynomial_add_scaled(dims, list->items[j], list->items[i], -1, &difference)) {
                dominated = difference.count == 0;
                if (!dominated && !polynomial_undefined(dims, difference))
                    dominated = uir_polynomial_add_scaled(dims, (polynomial){NULL, 0}, difference, sign, &difference) &&
                                uir_prove_nonnegative(dims, difference, BUILD_STEPS);
            }
            if (dims->out_of_memory) return false;
            if (!dominated) {
                j++;
                continue;
            }
            list->count--;
            for (uint32_t k = j; k < list->count; k++) list->items[k] = list->items[k + 1];
            if (j < i) i--;
        }
    }
    return true;
}

/* The terms that all operands share, moved outside: min(x + a, x + b) = x + min(a, b). */
static bool take_common(uir_dims *dims, operand_list *list, polynomial *out_common) {
    *out_common = (polynomial){NULL, 0};
    for (uint32_t t = 0; t < list->items[0].count; t++) {
        term candidate = list->items[0].terms[t];
        bool shared = true;
        for (uint32_t i = 1; i < list->count && shared; i++) {
            shared = false;
            for (uint32_t k = 0; k < list->items[i].count && !shared; k++)
                shared = list->items[i].terms[k].coefficient == candidate.coefficient &&
                         uir_term_same_monomial(list->items[i].terms[k], candidate);
        }
        if (shared && !uir_polynomial_add_scaled(dims, *out_common, (polynomial){&candidate, 1}, 1, out_common))
            return false;
    }
    for (uint32_t i = 0; i < list->count && out_common->count; i++)
        if (!uir_polynomial_add_scaled(dims, list->items[i], *out_common, -1, &list->items[i])) return false;
    return true;
}

/* ---- what is zero where ---- */
static bool term_has(term t, uir_dim atom) {
    for (uint32_t i = 0; i < t.degree; i++)
        if (uir_dim_equal(t.atoms[i], atom)) return true;
    return false;
}

static bool is_one(const uir_dims *dims, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(dims, dim, &value) && value == 1;
}

/* The one product of symbols that min(product, 1) asks of; false for other atoms. */
static bool asked_product(uir_dims *dims, uir_dim atom, term *out) {
    const uir_dim_node *node = &dim_at(dims, atom)->node;
    polynomial inside;
    if (node->kind != UIR_DIM_MIN || node->count != 2 || !is_one(dims, node->operands[1])) return false;
    if (!uir_polynomial_from_dim(dims, node->operands[0], &inside) || inside.count != 1) return false;
    *out = inside.terms[0];
    return out->coefficient > 0 && out->degree > 0;
}

/* The term's factors once each, min(x, 1) as x: zero where the term is. False where one of them may be negative. */
static bool support_of_term(uir_dims *dims, term t, term *out) {
    uir_dim *atoms = uir_dim_scratch(dims, DIM_DEGREE_MAX, sizeof *atoms);
    if (!atoms) return false;
    *out = (term){1, 0, atoms};
    for (uint32_t i = 0; i < t.degree; i++) {
        term inside = {1, 1, &t.atoms[i]}, other;
        if (asked_product(dims, t.atoms[i], &other)) inside = other;
        for (uint32_t j = 0; j < inside.degree; j++) {
            if (term_has(*out, inside.atoms[j])) continue;
            if (out->degree == DIM_DEGREE_MAX || uir_dim_interval(dims, inside.atoms[j]).min < 0) return false;
            atoms[out->degree++] = inside.atoms[j];
        }
    }
    return true;
}

static bool is_within(term inner, term outer) {
    for (uint32_t i = 0; i < inner.degree; i++)
        if (!term_has(outer, inner.atoms[i])) return false;
    return true;
}

/* min(p, 1) of terms that are never negative says only whether all of them are 0. That a term is, one of its factors
 * decides: coefficients and powers do not matter, and a term whose factors include all of another's adds nothing.
 * min(x + min(x, 1), 1) = min(x, 1). Leaves p alone where a term may be negative or undefined. */
static bool simplify_support(uir_dims *dims, polynomial *p) {
    polynomial result = {NULL, 0};
    term *terms = uir_dim_scratch(dims, p->count, sizeof *terms);
    if (!terms) return false;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->terms[i].coefficient < 0 || !support_of_term(dims, p->terms[i], &terms[i])) return !dims->out_of_memory;
    for (uint32_t i = 0; i < p->count; i++) {
        bool adds = true;
        for (uint32_t j = 0; j < p->count && adds; j++)
            adds = i == j || !is_within(terms[j], terms[i]) || (i < j && is_within(terms[i], terms[j]));
        uir_dim product = uir_dim_const(dims, 1);
        polynomial one;
        for (uint32_t j = 0; adds && j < terms[i].degree; j++) product = uir_dim_mul(dims, product, terms[i].atoms[j]);
        if (adds && (!product.id || !uir_polynomial_from_dim(dims, product, &one) ||
                     !uir_polynomial_add_scaled(dims, result, one, 1, &result)))
            return false;
    }
    *p = result;
    return true;
}

static bool simplify_supports(uir_dims *dims, operand_list *list) {
    bool asks = false;
    for (uint32_t i = 0; i < list->count; i++)
        asks = asks || (polynomial_is_const(list->items[i]) && polynomial_constant(list->items[i]) == 1);
    for (uint32_t i = 0; asks && i < list->count; i++)
        if (!polynomial_is_const(list->items[i]) && !polynomial_undefined(dims, list->items[i]) &&
            !simplify_support(dims, &list->items[i]))
            return false;
    return true;
}

/* The constant last, as in sums. */
static int operand_order(const uir_dims *dims, uir_dim a, uir_dim b) {
    bool a_const = uir_dim_is_const(dims, a, NULL), b_const = uir_dim_is_const(dims, b, NULL);
    return a_const != b_const ? a_const - b_const : uir_dim_order(dims, a, b);
}

static uir_dim extreme(uir_dims *dims, uir_dim_kind kind, const uir_dim *from, uint32_t count) {
    operand_list list = {.count = 0};
    polynomial common;
    for (uint32_t i = 0; i < count; i++)
        if (!collect(dims, kind, from[i], &list)) return UIR_DIM_NONE;
    if (kind == UIR_DIM_MIN && !simplify_supports(dims, &list)) return UIR_DIM_NONE;
    if (!drop_dominated(dims, kind, &list)) return UIR_DIM_NONE;
    if (list.count == 1) return uir_polynomial_to_dim(dims, list.items[0]);
    if (!take_common(dims, &list, &common)) return UIR_DIM_NONE;
    uir_dim operands[DIM_OPERANDS_MAX];
    bool again = common.count > 0;
    for (uint32_t i = 0; i < list.count; i++) {
        operands[i] = uir_polynomial_to_dim(dims, list.items[i]);
        if (!operands[i].id) return UIR_DIM_NONE;
        again = again || dim_at(dims, operands[i])->node.kind == kind;
    }
    for (uint32_t i = 1; i < list.count; i++) {
        uir_dim moving = operands[i];
        uint32_t j = i;
        for (; j > 0 && operand_order(dims, operands[j - 1], moving) > 0; j--) operands[j] = operands[j - 1];
        operands[j] = moving;
    }
    /* Without the common terms an operand may be one of the same kind, min(min(a, b) + 5, 5), or simpler. */
    uir_dim node =
        again ? extreme(dims, kind, operands, list.count) : uir_dim_intern(dims, kind, 0, operands, list.count);
    if (!node.id || common.count == 0) return node;
    polynomial p;
    if (!uir_polynomial_from_dim(dims, node, &p) || !uir_polynomial_add_scaled(dims, p, common, 1, &p))
        return UIR_DIM_NONE;
    return finish_sum(dims, p);
}

uir_dim uir_dim_extreme(uir_dims *dims, uir_dim_kind kind, const uir_dim *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!operands[i].id) return UIR_DIM_NONE;
    dims->out_of_memory = false;
    uir_arena_mark mark = uir_arena_get_mark(&dims->scratch);
    uir_dim result = extreme(dims, kind, operands, count);
    uir_arena_return_to(&dims->scratch, mark);
    return result;
}

uir_dim uir_dim_min(uir_dims *dims, uir_dim a, uir_dim b) {
    return uir_dim_extreme(dims, UIR_DIM_MIN, (uir_dim[]){a, b}, 2);
}

uir_dim uir_dim_max(uir_dims *dims, uir_dim a, uir_dim b) {
    return uir_dim_extreme(dims, UIR_DIM_MAX, (uir_dim[]){a, b}, 2);
}

/* ---- compounds --------------------------------------------------------------------------------------------------- */

uir_dim uir_dim_align(uir_dims *dims, uir_dim a, uir_dim b) {
    return uir_dim_mul(dims, uir_dim_ceildiv(dims, a, b), b);
}

uir_dim uir_dim_broadcast(uir_dims *dims, uir_dim a, uir_dim b) {
    int64_t value;
    if (!a.id || !b.id) return UIR_DIM_NONE;
    if (uir_dim_equal(a, b)) return a;
    if (uir_dim_is_const(dims, a, &value)) return value == 1 ? b : a;
    if (uir_dim_is_const(dims, b, &value)) return value == 1 ? a : b;
    uir_dim one = uir_dim_const(dims, 1);
    return uir_dim_mul(dims, uir_dim_max(dims, a, b), uir_dim_min(dims, one, uir_dim_min(dims, a, b)));
}
