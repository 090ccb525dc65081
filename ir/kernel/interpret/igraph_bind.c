/* The sizes of a kernel: binding its symbols, its tiling function, and copying tensors into and out of a layout. */
#include "ir/kernel/igraph.h"

#include <string.h>

typedef struct environment {
    const uir_igraph *igraph;
    int64_t *values;
    bool *bound;
    uint32_t count;
} environment;

static const char *result_text(uir_dim_result result) {
    return result == UIR_DIM_UNBOUND    ? "uses a name that has no value here"
           : result == UIR_DIM_OVERFLOW ? "overflows 64 bits"
                                        : "divides by a value that is not positive";
}

static uir_status evaluate(const environment *e, uir_dim dim, const char *what, uir_diagnostics *diagnostics,
                           int64_t *out_value) {
    uir_dim_result result = uir_dim_evaluate(e->igraph->dims, dim, e->values, e->bound, e->count, out_value);
    if (result == UIR_DIM_EVALUATED) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "kernel @%s: %s %s", e->igraph->name, what,
                     result_text(result));
}

static uir_status check_facts(const uir_igraph *igraph, const uir_isymbol *symbol, int64_t value,
                              uir_diagnostics *diagnostics) {
    uir_symbol_facts facts = uir_dims_symbol_facts(igraph->dims, symbol->symbol);
    if (value < facts.min || value > facts.max)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "kernel @%s: %s = %lld is outside its range %lld..%lld", igraph->name, symbol->name,
                         (long long)value, (long long)facts.min, (long long)facts.max);
    if (facts.multiple_of > 1 && value % facts.multiple_of != 0)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "kernel @%s: %s = %lld is not a multiple of %lld", igraph->name, symbol->name,
                         (long long)value, (long long)facts.multiple_of);
    return UIR_STATUS_OK;
}

/* Lets of the header come after what they use; a let of a body uses an axis and stays unbound. */
static uir_status bind_symbols(environment *e, const int64_t *dim_values, const int64_t *tile_values,
                               uir_diagnostics *diagnostics) {
    const uir_igraph *igraph = e->igraph;
    uint32_t dim = 0, tile = 0;
    for (uint32_t i = 0; i < e->count; i++) e->bound[i] = false;
    for (uint32_t i = 0; i < igraph->symbols.count; i++) {
        const uir_isymbol *symbol = &igraph->symbols.data[i];
        uint32_t id = symbol->symbol.id;
        int64_t value;
        switch (symbol->kind) {
        case UIR_ISYMBOL_DIM:
            value = dim_values[dim++];
            UIR_TRY(check_facts(igraph, symbol, value, diagnostics));
            break;
        case UIR_ISYMBOL_TILE:
            if (!tile_values) continue;
            value = tile_values[tile++];
            UIR_TRY(check_facts(igraph, symbol, value, diagnostics));
            break;
        case UIR_ISYMBOL_CONSTANT:
        case UIR_ISYMBOL_DEVICE:
        case UIR_ISYMBOL_LET: {
            uir_dim_result result =
                uir_dim_evaluate(igraph->dims, symbol->definition, e->values, e->bound, e->count, &value);
            if (result == UIR_DIM_UNBOUND) continue;
            if (result != UIR_DIM_EVALUATED)
                return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "kernel @%s: %s %s", igraph->name,
                                 symbol->name, result_text(result));
            break;
        }
        default:
            continue;
        }
        e->values[id] = value;
        e->bound[id] = true;
    }
    return UIR_STATUS_OK;
}

static uir_status holds(const environment *e, const uir_condition *condition, const char *what,
                        uir_diagnostics *diagnostics, bool *out_holds) {
    int64_t left, right;
    UIR_TRY(evaluate(e, condition->left, what, diagnostics, &left));
    UIR_TRY(evaluate(e, condition->right, what, diagnostics, &right));
    *out_holds = uir_relation_holds(condition->relation, left, right);
    return UIR_STATUS_OK;
}

static uir_status check_requires(const environment *e, uir_diagnostics *diagnostics) {
    const uir_igraph *igraph = e->igraph;
    for (uint32_t i = 0; i < igraph->requires_.count; i++) {
        const uir_condition *condition = &igraph->requires_.data[i];
        bool held;
        UIR_TRY(holds(e, condition, "a require", diagnostics, &held));
        if (held) continue;
        if (!diagnostics) return UIR_STATUS_INVALID_ARGUMENT;
        uir_text text;
        uir_text_init(&text, &igraph->allocator);
        uir_dim_print(igraph->dims, condition->left, &text);
        uir_text_append_format(&text, " %s ", uir_relation_text(condition->relation));
        uir_dim_print(igraph->dims, condition->right, &text);
        uir_status status = uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                      "kernel @%s: require %s does not hold", igraph->name, text.data ? text.data : "");
        uir_text_deinit(&text);
        return status;
    }
    return UIR_STATUS_OK;
}

uir_status uir_igraph_bind(const uir_igraph *igraph, const int64_t *dim_values, const int64_t *tile_values,
                           int64_t *values, bool *bound, uir_diagnostics *diagnostics) {
    environment e = {igraph, values, bound, uir_dims_symbol_count(igraph->dims)};
    static const int64_t none = 0;
    UIR_TRY(bind_symbols(&e, dim_values ? dim_values : &none, tile_values ? tile_values : &none, diagnostics));
    return check_requires(&e, diagnostics);
}

/* Whether a candidate may run for these dims, and what it costs. Fails only on faults in the kernel's own expressions.
 */
static uir_status try_candidate(environment *e, const uir_icandidate *candidate, const int64_t *dim_values,
                                int64_t workers, int64_t *tiles, bool *out_valid, int64_t *out_cost) {
    *out_valid = false;
    uint32_t tile_count = uir_igraph_count_symbols(e->igraph, UIR_ISYMBOL_TILE);
    UIR_TRY(bind_symbols(e, dim_values, NULL, NULL));
    for (uint32_t i = 0; i < candidate->guard.count; i++) {
        bool held;
        if (candidate->guard.atoms[i].kind != UIR_IATOM_RELATION) return UIR_STATUS_INVALID_ARGUMENT;
        UIR_TRY(holds(e, &candidate->guard.atoms[i].condition, "a candidate", NULL, &held));
        if (!held) return UIR_STATUS_OK;
    }
    for (uint32_t t = 0; t < tile_count; t++) UIR_TRY(evaluate(e, candidate->tiles[t], "a candidate", NULL, &tiles[t]));
    if (bind_symbols(e, dim_values, tiles, NULL) != UIR_STATUS_OK || check_requires(e, NULL) != UIR_STATUS_OK)
        return UIR_STATUS_OK;
    int64_t cost = 0, units = 1;
    if (candidate->cost.id) UIR_TRY(evaluate(e, candidate->cost, "a candidate", NULL, &cost));
    if (candidate->units.id) UIR_TRY(evaluate(e, candidate->units, "a candidate", NULL, &units));
    *out_cost = uir_shared_cost(cost, units, workers);
    *out_valid = true;
    return UIR_STATUS_OK;
}

uir_status uir_igraph_choose_tiles(const uir_igraph *igraph, const int64_t *dim_values, int64_t workers,
                                   int64_t *out_tiles, uir_diagnostics *diagnostics) {
    uint32_t count = uir_dims_symbol_count(igraph->dims),
             tile_count = uir_igraph_count_symbols(igraph, UIR_ISYMBOL_TILE);
    size_t words = (size_t)count + tile_count, size = words * sizeof(int64_t) + count;
    char *block;
    UIR_TRY_ALLOCATE(block, uir_allocate_zeroed(&igraph->allocator, size));
    int64_t *values = (int64_t *)(void *)block, *tiles = values + count, best = 0;
    environment e = {igraph, values, (bool *)(block + words * sizeof(int64_t)), count};
    static const int64_t none = 0;
    if (!dim_values) dim_values = &none;

    bool found = false;
    uir_status status = bind_symbols(&e, dim_values, NULL, diagnostics);
    if (status == UIR_STATUS_OK && tile_count == 0) {
        found = true;
        status = check_requires(&e, diagnostics);
    }
    for (uint32_t i = 0; status == UIR_STATUS_OK && tile_count > 0 && i < igraph->candidates.count; i++) {
        bool valid = false;
        int64_t cost = 0;
        /* A candidate whose expressions fail for these dims (a division by a dim of 0) is not valid for them. */
        if (try_candidate(&e, &igraph->candidates.data[i], dim_values, workers, tiles, &valid, &cost) != UIR_STATUS_OK)
            continue;
        if (!valid || (found && cost >= best)) continue;
        found = true;
        best = cost;
        memcpy(out_tiles, tiles, tile_count * sizeof *tiles);
    }
    if (status == UIR_STATUS_OK && !found)
        status = uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL,
                           "kernel @%s: no candidate of its tiling function is valid for these dims; give the tiles",
                           igraph->name);
    uir_release(&igraph->allocator, block, size);
    return status;
}

/* ---- layouts ---- */
static uir_status bind_layout(const uir_igraph *igraph, uint32_t pointer, const int64_t *values,
                              uir_bound_layout *out) {
    if (pointer >= igraph->pointers.count) return UIR_STATUS_INVALID_ARGUMENT;
    const uir_ipointer *p = &igraph->pointers.data[pointer];
    return uir_layout_bind(&p->layout, p->extents, p->rank, igraph->dims, values, NULL,
                           uir_dims_symbol_count(igraph->dims), out);
}

uir_status uir_igraph_pack(const uir_igraph *igraph, uint32_t pointer, const int64_t *values, const void *row_major,
                           void *packed) {
    uir_bound_layout l;
    UIR_TRY(bind_layout(igraph, pointer, values, &l));
    return uir_layout_pack(&l, igraph->pointers.data[pointer].dtype, &igraph->allocator, row_major, packed);
}

uir_status uir_igraph_unpack(const uir_igraph *igraph, uint32_t pointer, const int64_t *values, const void *packed,
                             void *row_major) {
    uir_bound_layout l;
    UIR_TRY(bind_layout(igraph, pointer, values, &l));
    return uir_layout_unpack(&l, igraph->pointers.data[pointer].dtype, &igraph->allocator, packed, row_major);
}
