#include "compile/beside.h"

/* ---- what holds for all sizes ---- */
static bool always_holds(uir_dims *dims, uir_relation relation, uir_dim left, uir_dim right) {
    int64_t low, high;
    uir_dim_bounds(dims, uir_dim_sub(dims, left, right), &low, &high);
    switch (relation) {
    case UIR_RELATION_LE:
        return high <= 0;
    case UIR_RELATION_LT:
        return high < 0;
    case UIR_RELATION_EQ:
        return low == 0 && high == 0;
    default:
        return false;
    }
}

/* Symbols of the header in terms of the kernel's dims, with the candidate's tiles; NULL: there are none. */
static uir_status express(const uir_igraph *g, const uir_icandidate *candidate, uir_arena *arena, uir_dim **out_by,
                          uint32_t *out_count) {
    uint32_t tile = 0, count = uir_dims_symbol_count(g->dims);
    UIR_TRY_ALLOCATE(*out_by, uir_arena_allocate_array(arena, (size_t)count + 1, sizeof **out_by));
    *out_count = count;
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        const uir_isymbol *s = &g->symbols.data[i];
        uir_dim by = {0};
        if (s->kind == UIR_ISYMBOL_TILE && candidate) by = candidate->tiles[tile++];
        if (s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE || s->kind == UIR_ISYMBOL_LET)
            by = s->definition;
        if (by.id) (*out_by)[s->symbol.id] = uir_dim_substitute(g->dims, by, *out_by, count);
    }
    return UIR_STATUS_OK;
}

static uir_status fits(const uir_igraph *g, const uir_icandidate *candidate, bool *out_fits) {
    uir_arena arena;
    uir_dim *by = NULL;
    uint32_t count = 0;
    uir_arena_init(&arena, &g->arena.allocator);
    uir_status status = express(g, candidate, &arena, &by, &count);
    *out_fits = status == UIR_STATUS_OK;
    for (uint32_t i = 0; i < g->requires_.count && *out_fits; i++) {
        const uir_condition *c = &g->requires_.data[i];
        *out_fits = always_holds(g->dims, c->relation, uir_dim_substitute(g->dims, c->left, by, count),
                                 uir_dim_substitute(g->dims, c->right, by, count));
    }
    uir_arena_deinit(&arena);
    return status;
}

/* Whether the variant is proved to fit all sizes that the facts allow, by one of its candidates. */
static uir_status fits_all(const uir_igraph *g, bool *out_fits) {
    *out_fits = !g->requires_.count;
    if (!*out_fits && !g->candidates.count) return fits(g, NULL, out_fits);
    for (uint32_t i = 0; i < g->candidates.count && !*out_fits; i++)
        if (!g->candidates.data[i].guard.count) UIR_TRY(fits(g, &g->candidates.data[i], out_fits));
    return UIR_STATUS_OK;
}

/* ---- the host's variants ---- */
static uir_status add_variants(const uir_lowering *lowering, uir_lowered *kernel) {
    uir_loop_list scheduled = {.allocator = lowering->allocator};
    uir_diagnostics unheard;
    uint32_t own = kernel->igraphs.count;
    uir_diagnostics_init(&unheard, &lowering->allocator);
    uir_status status = uir_lower_schedule(kernel->naive, lowering->host, NULL, NULL, &unheard, &scheduled);
    for (uint32_t i = 0; i < scheduled.count && status == UIR_STATUS_OK; i++)
        status = uir_lower_kernel(scheduled.variants[i].function, lowering->host, &lowering->allocator, &unheard,
                                  &kernel->igraphs);
    if (status == UIR_STATUS_OK)
        kernel->own_variants = own;
    else
        while (kernel->igraphs.count > own) uir_igraph_destroy(kernel->igraphs.igraphs[--kernel->igraphs.count]);
    uir_loop_list_deinit(&scheduled);
    uir_diagnostics_deinit(&unheard);
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ? status : UIR_STATUS_OK;
}

/* Whether the host has other spaces on its chip than the device: else its variants fit no further sizes. */
static bool has_other_spaces(const uir_machine *host, const uir_machine *machine) {
    bool differs = host->space_count != machine->space_count;
    for (uint32_t i = 0; i < machine->space_count && !differs; i++)
        differs = host->spaces[i].capacity != machine->spaces[i].capacity;
    return differs;
}

uir_status uir_lowering_add_host_variants(uir_lowering *lowering) {
    if (!lowering->host || !has_other_spaces(lowering->host, lowering->machine)) return UIR_STATUS_OK;
    for (uint32_t k = 0; k < lowering->kernels.count; k++) {
        uir_lowered *kernel = &lowering->kernels.data[k].lowered;
        bool fits = false;
        if (kernel->given || uir_lowering_is_host_kernel(lowering, &lowering->kernels.data[k])) continue;
        for (uint32_t v = 0; v < kernel->igraphs.count && !fits; v++)
            UIR_TRY(fits_all(kernel->igraphs.igraphs[v], &fits));
        if (!fits) UIR_TRY(add_variants(lowering, kernel));
    }
    return UIR_STATUS_OK;
}
