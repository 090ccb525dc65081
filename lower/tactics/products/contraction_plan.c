/* What plans of contractions share. */
#include "lower/tactics/products/contraction_plan.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id) (&(f)->statements.data[id])
#define NONE             UIR_LOOP_NONE

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

bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(p->f->dims, dim, out);
}

uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value) {
    return uir_dim_const(p->f->dims, value);
}

uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block) {
    return STATEMENT(f, block)->first_child;
}
