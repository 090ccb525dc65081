/* Arithmetic on canonical sums of products. Everything lives in the context's scratch arena. */
#include "base/dims/dim_internal.h"

#include <string.h>

bool uir_term_same_monomial(term a, term b) {
    if (a.degree != b.degree) return false;
    for (uint32_t i = 0; i < a.degree; i++)
        if (a.atoms[i].id != b.atoms[i].id) return false;
    return true;
}

/* Higher degree first, so that the constant comes last. */
static int monomial_order(const uir_dims *dims, term a, term b) {
    if (a.degree != b.degree) return a.degree > b.degree ? -1 : 1;
    for (uint32_t i = 0; i < a.degree; i++) {
        int order = uir_dim_order(dims, a.atoms[i], b.atoms[i]);
        if (order) return order;
    }
    return 0;
}

/* One interned addend as a term; its atoms are the node's own operands. */
static term term_from_dim(const uir_dims *dims, uir_dim dim) {
    const dim_node *node = dim_at(dims, dim);
    if (node->node.kind == UIR_DIM_CONST) return (term){node->node.value, 0, NULL};
    if (node->node.kind != UIR_DIM_MUL) return (term){1, 1, &node->self};
    term t = {1, node->node.count, node->node.operands};
    if (uir_dim_is_const(dims, t.atoms[t.degree - 1], &t.coefficient)) t.degree--;
    return t;
}

bool uir_polynomial_from_dim(uir_dims *dims, uir_dim dim, polynomial *out) {
    const uir_dim_node *node = &dim_at(dims, dim)->node;
    uint32_t count = node->kind == UIR_DIM_ADD ? node->count : 1;
    *out = (polynomial){uir_dim_scratch(dims, count, sizeof *out->terms), 0};
    if (!out->terms) return false;
    for (uint32_t i = 0; i < count; i++) {
        term t = term_from_dim(dims, node->kind == UIR_DIM_ADD ? node->operands[i] : dim);
        if (t.coefficient) out->terms[out->count++] = t;
    }
    return true;
}

bool uir_polynomial_from_const(uir_dims *dims, int64_t value, polynomial *out) {
    *out = (polynomial){uir_dim_scratch(dims, 1, sizeof *out->terms), value != 0};
    if (!out->terms) return false;
    if (value) out->terms[0] = (term){value, 0, NULL};
    return true;
}

bool uir_polynomial_add_scaled(uir_dims *dims, polynomial a, polynomial b, int64_t factor, polynomial *out) {
    *out = (polynomial){uir_dim_scratch(dims, (size_t)a.count + b.count + 1, sizeof *out->terms), 0};
    if (!out->terms) return false;
    uint32_t i = 0, j = 0;
    while (i < a.count || j < b.count) {
        int order = i == a.count ? 1 : j == b.count ? -1 : monomial_order(dims, a.terms[i], b.terms[j]);
        term t = order <= 0 ? a.terms[i] : b.terms[j];
        if (order > 0) t.coefficient = 0;
        if (order >= 0) {
            int64_t scaled;
            if (__builtin_mul_overflow(b.terms[j].coefficient, factor, &scaled) ||
                __builtin_add_overflow(t.coefficient, scaled, &t.coefficient))
                return false;
        }
        i += order <= 0;
        j += order >= 0;
        if (t.coefficient) out->terms[out->count++] = t;
    }
    return out->count <= DIM_TERMS_MAX;
}

static bool term_multiply(uir_dims *dims, term a, term b, term *out) {
    if (__builtin_mul_overflow(a.coefficient, b.coefficient, &out->coefficient)) return false;
    out->degree = a.degree + b.degree;
    if (out->degree > DIM_DEGREE_MAX) return false;
    if (a.degree == 0 || b.degree == 0) {
        out->atoms = a.degree ? a.atoms : b.atoms;
        return true;
    }
    uir_dim *atoms = uir_dim_scratch(dims, out->degree, sizeof *atoms);
    if (!atoms) return false;
    for (uint32_t i = 0, j = 0; i + j < out->degree;) {
        bool left = j == b.degree || (i < a.degree && uir_dim_order(dims, a.atoms[i], b.atoms[j]) <= 0);
        atoms[i + j] = left ? a.atoms[i] : b.atoms[j];
        if (left)
            i++;
        else
            j++;
    }
    out->atoms = atoms;
    return true;
}

bool uir_polynomial_multiply_term(uir_dims *dims, polynomial a, term factor, polynomial *out) {
    *out = (polynomial){uir_dim_scratch(dims, (size_t)a.count + 1, sizeof *out->terms), 0};
    if (!out->terms) return false;
    if (factor.coefficient == 0) return true;
    for (uint32_t i = 0; i < a.count; i++)
        if (!term_multiply(dims, a.terms[i], factor, &out->terms[i])) return false;
    out->count = a.count;
    /* Merging the same atoms into every monomial keeps degrees in order but may change ties: insertion sort. */
    for (uint32_t i = 1; i < out->count; i++) {
        term t = out->terms[i];
        uint32_t j = i;
        for (; j > 0 && monomial_order(dims, out->terms[j - 1], t) > 0; j--) out->terms[j] = out->terms[j - 1];
        out->terms[j] = t;
    }
    return true;
}

bool uir_polynomial_multiply(uir_dims *dims, polynomial a, polynomial b, polynomial *out) {
    if (a.count < b.count) return uir_polynomial_multiply(dims, b, a, out);
    *out = (polynomial){NULL, 0};
    for (uint32_t i = 0; i < b.count; i++) {
        polynomial part;
        if (!uir_polynomial_multiply_term(dims, a, b.terms[i], &part) ||
            !uir_polynomial_add_scaled(dims, *out, part, 1, out))
            return false;
    }
    return out->terms || uir_polynomial_from_const(dims, 0, out);
}

bool uir_term_without(uir_dims *dims, term a, uir_dim atom, term *out) {
    for (uint32_t i = 0; i < a.degree; i++) {
        if (a.atoms[i].id != atom.id) continue;
        uir_dim *atoms = uir_dim_scratch(dims, a.degree, sizeof *atoms);
        if (!atoms) return false;
        memcpy(atoms, a.atoms, i * sizeof *atoms);
        memcpy(atoms + i, a.atoms + i + 1, (a.degree - i - 1) * sizeof *atoms);
        *out = (term){a.coefficient, a.degree - 1, atoms};
        return true;
    }
    return false;
}

bool uir_term_divide(uir_dims *dims, term a, term b, term *out) {
    if (b.coefficient == 0 || (b.coefficient == -1 && a.coefficient == INT64_MIN)) return false;
    if (a.coefficient % b.coefficient) return false;
    *out = (term){a.coefficient / b.coefficient, a.degree, a.atoms};
    for (uint32_t i = 0; i < b.degree; i++)
        if (!uir_term_without(dims, *out, b.atoms[i], out)) return false;
    return true;
}

static uir_dim term_to_dim(uir_dims *dims, term t) {
    if (t.degree == 0) return uir_dim_const(dims, t.coefficient);
    if (t.degree == 1 && t.coefficient == 1) return t.atoms[0];
    uir_dim operands[DIM_DEGREE_MAX + 1];
    if (t.degree > DIM_DEGREE_MAX) return UIR_DIM_NONE;
    memcpy(operands, t.atoms, t.degree * sizeof *operands);
    if (t.coefficient == 1) return uir_dim_intern(dims, UIR_DIM_MUL, 0, operands, t.degree);
    operands[t.degree] = uir_dim_const(dims, t.coefficient);
    if (!operands[t.degree].id) return UIR_DIM_NONE;
    return uir_dim_intern(dims, UIR_DIM_MUL, 0, operands, t.degree + 1);
}

uir_dim uir_polynomial_to_dim(uir_dims *dims, polynomial p) {
    if (p.count == 0) return uir_dim_const(dims, 0);
    if (p.count == 1) return term_to_dim(dims, p.terms[0]);
    if (p.count > DIM_TERMS_MAX) return UIR_DIM_NONE;
    uir_dim *operands = uir_dim_scratch(dims, p.count, sizeof *operands);
    if (!operands) return UIR_DIM_NONE;
    for (uint32_t i = 0; i < p.count; i++) {
        operands[i] = term_to_dim(dims, p.terms[i]);
        if (!operands[i].id) return UIR_DIM_NONE;
    }
    return uir_dim_intern(dims, UIR_DIM_ADD, 0, operands, p.count);
}
