/* Loops, blocks and tensors on chip added by hand. */
#include "lower/contraction_plan.h"
#include "lower/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

/* ---- small pieces ---- */
static bool name_taken(const uir_loop_function *f, const char *name) {
    for (uint32_t i = 0; i < f->sizes.count; i++)
        if (!strcmp(f->sizes.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->tiles.count; i++)
        if (!strcmp(f->tiles.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->tensors.count; i++)
        if (!strcmp(f->tensors.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = STATEMENT(f, i);
        if (s->name && !strcmp(s->name, name)) return true;
        for (uint32_t k = 0; s->kind == UIR_LOOP_STATEMENT_BLOCK && k < s->iter_count; k++)
            if (!strcmp(s->iters[k].name, name)) return true;
    }
    return false;
}

uir_status uir_contraction_plan_fresh_name(uir_loop_function *f, const char *base, const char **out) {
    char name[128];
    snprintf(name, sizeof name, "%.100s", base);
    for (uint32_t i = 2; name_taken(f, name); i++) snprintf(name, sizeof name, "%.100s_%u", base, i);
    UIR_TRY_ALLOCATE(*out, uir_arena_copy_string(&f->arena, name, strlen(name)));
    return UIR_STATUS_OK;
}

uir_status uir_contraction_plan_add_statement(uir_loop_function *f, const uir_loop_statement *s, uint32_t *out) {
    *out = f->statements.count;
    return uir_vector_push(&f->arena, &f->statements, *s);
}

void uir_contraction_plan_append(uir_loop_function *f, uint32_t under, uint32_t id) {
    uint32_t *slot = under == NONE ? &f->first : &STATEMENT(f, under)->first_child;
    while (*slot != NONE) slot = &STATEMENT(f, *slot)->next;
    *slot = id;
    STATEMENT(f, id)->next = NONE;
}

/* A loop 0..extent-1 at the end of a list. */
uir_status uir_contraction_plan_add_loop(uir_loop_function *f, const char *name, uir_loop_kind kind, uir_dim extent,
                                         uint32_t under, uint32_t *out, uir_dim *out_value) {
    uir_loop_statement s = {.kind = UIR_LOOP_STATEMENT_FOR,
                            .first_child = NONE,
                            .next = NONE,
                            .name = name,
                            .loop_kind = kind,
                            .min = uir_dim_const(f->dims, 0),
                            .extent = extent};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (!extent.id || !s.min.id) return UIR_STATUS_OUT_OF_MEMORY;
    UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &s.symbol));
    *out_value = uir_dim_symbol(f->dims, s.symbol);
    UIR_TRY(uir_contraction_plan_add_statement(f, &s, out));
    uir_contraction_plan_append(f, under, *out);
    return out_value->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

uir_status uir_contraction_plan_add_tensor(uir_contraction_plan *p, uint32_t role, const char *base, uir_dtype dtype,
                                           const uir_dim *extents, uint32_t rank, uint32_t *out) {
    uir_loop_function *f = p->f;
    uir_loop_tensor t = {.dtype = dtype, .rank = rank, .role = UIR_LOOP_ROLE_TEMP};
    t.space = uir_lower_space(p->device, role);
    if (!t.space) return uir_contraction_refuse(&p->c, "the device has no space for what a tile keeps on the chip");
    UIR_TRY(uir_contraction_plan_fresh_name(f, base, &t.name));
    for (uint32_t d = 0; d < rank; d++) t.extents[d] = extents[d];
    *out = f->tensors.count;
    return uir_vector_push(&f->arena, &f->tensors, t);
}

uir_status uir_contraction_plan_add_iter(uir_loop_function *f, uir_loop_statement *block, const char *name,
                                         uir_dim extent, bool reduce, uir_dim value, uir_dim *out) {
    uir_loop_iter iter = {.name = name, .reduce = reduce, .extent = extent, .value = value};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (block->iter_count == UIR_LOOP_MAX_ITERS) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &iter.symbol));
    block->iters[block->iter_count++] = iter;
    *out = uir_dim_symbol(f->dims, iter.symbol);
    return out->id && value.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(p->f->dims, dim, out);
}

uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value) {
    return uir_dim_const(p->f->dims, value);
}

/* ---- a block's place ---- */
uir_status uir_contraction_plan_add_bound(uir_loop_function *f, uir_loop_statement *block, uir_dim at, uir_dim extent) {
    uir_condition *conditions;
    UIR_TRY_ALLOCATE(conditions, uir_arena_allocate_array(&f->arena, block->condition_count + 1, sizeof *conditions));
    for (uint32_t i = 0; i < block->condition_count; i++) conditions[i] = block->conditions[i];
    conditions[block->condition_count++] = (uir_condition){UIR_RELATION_LT, at, extent};
    block->conditions = conditions;
    return UIR_STATUS_OK;
}

uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block) {
    return STATEMENT(f, block)->first_child;
}

/* ---- the whole ---- */
/* Tensors that nothing uses any more are gone. */
static void note_tensors(const uir_loop_function *f, uint32_t expression, bool *used) {
    const uir_loop_expression *e = EXPRESSION(f, expression);
    if (e->kind == UIR_LOOP_LOAD) used[e->load.tensor] = true;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) note_tensors(f, e->arguments[i], used);
}

static void note_list(const uir_loop_function *f, uint32_t id, bool *used) {
    for (; id != NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        for (uint32_t i = 0; i < s->target_count; i++) used[s->targets[i].tensor] = true;
        for (uint32_t i = 0; i < s->value_count; i++) note_tensors(f, s->values[i], used);
        if (uir_loop_statement_get_row(s->kind)->children) note_list(f, s->first_child, used);
    }
}

uir_status uir_contraction_plan_drop_tensors(uir_contraction_plan *p) {
    uir_loop_function *f = p->f;
    bool *used;
    uint32_t *moved, count = 0;
    UIR_TRY_ALLOCATE(used, uir_arena_allocate_array(p->c.arena, f->tensors.count + 1, sizeof *used));
    UIR_TRY_ALLOCATE(moved, uir_arena_allocate_array(p->c.arena, f->tensors.count + 1, sizeof *moved));
    note_list(f, f->first, used);
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        moved[i] = count;
        if (used[i] || f->tensors.data[i].role != UIR_LOOP_ROLE_TEMP) f->tensors.data[count++] = f->tensors.data[i];
    }
    f->tensors.count = count;
    for (uint32_t i = 0; i < f->expressions.count; i++)
        if (f->expressions.data[i].kind == UIR_LOOP_LOAD)
            f->expressions.data[i].load.tensor = moved[f->expressions.data[i].load.tensor];
    for (uint32_t i = 0; i < f->statements.count; i++)
        for (uint32_t t = 0; t < f->statements.data[i].target_count; t++)
            f->statements.data[i].targets[t].tensor = moved[f->statements.data[i].targets[t].tensor];
    return UIR_STATUS_OK;
}
