/* The verifier: what it accepts runs clean in the poisoning interpreter at every size that its facts and requires
 * allow.
 *
 * Everything is proved for all sizes at once, over terms (igraph_term.h); what cannot be proved is rejected with its
 * place. */
#include "ir/kernel/verify/igraph_verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_ERRORS 50

void uir_iverify_report(uir_iverifier *v, uint32_t line, const char *format, ...) {
    char message[640];
    va_list arguments;
    if (v->errors.count >= MAX_ERRORS) {
        v->dropped_errors++;
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    for (uint32_t i = 0; i < v->errors.count; i++)
        if (v->errors.data[i].line == line && strcmp(v->errors.data[i].message, message) == 0) return;
    char *copy = uir_arena_copy_string(v->arena, message, strlen(message));
    if (!copy || uir_vector_push(v->arena, &v->errors, ((uir_iverify_error){line, copy})) != UIR_STATUS_OK)
        v->failed = true;
}

const char *uir_iverify_slice_text(uir_iverifier *v, const uir_islice *slice) {
    const uir_ipointer *p = uir_iverify_pointer(v, slice->pointer);
    uir_text text;
    uir_text_init(&text, &v->g->allocator);
    uir_text_append_format(&text, "%%%s", p->name);
    if (!slice->whole) {
        uir_text_append_string(&text, "[");
        for (uint32_t d = 0; d < p->rank; d++) {
            int64_t one;
            if (d) uir_text_append_string(&text, ", ");
            uir_dim_print(v->g->dims, slice->starts[d], &text);
            if (slice->window || (uir_dim_is_const(v->g->dims, slice->counts[d], &one) && one == 1)) continue;
            uir_text_append_string(&text, ":");
            uir_dim_print(v->g->dims, slice->counts[d], &text);
        }
        uir_text_append_string(&text, slice->window ? " ; ...]" : "]");
    }
    size_t length = text.length > 120 ? 120 : text.length;
    const char *copy = text.data ? uir_arena_copy_string(v->arena, text.data, length) : NULL;
    uir_text_deinit(&text);
    return copy ? copy : p->name;
}

/* Every instruction by itself, in the kind of unit that runs it. */
static void check_items(uir_iverifier *v, uint32_t first, uint32_t unit_kind) {
    uir_igraph *g = v->g;
    for (uint32_t at = first; at != UINT32_MAX; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        if (item->kind == UIR_IITEM_INSTRUCTION)
            uir_iverify_instruction(v, &g->instructions.data[item->instruction], unit_kind, item->line);
        else if (item->kind == UIR_IITEM_INDEX)
            uir_iverify_index(v, item);
        check_items(v, item->first_child, unit_kind);
    }
}

static bool is_elementwise(uir_iop_family family) {
    return family < UIR_IOP_FAMILY_REDUCE;
}

static bool same_place(uir_iverifier *v, const uir_islice *a, const uir_islice *b) {
    uint32_t rank = uir_iverify_pointer(v, a->pointer)->rank;
    if (a->window || b->window) return false;
    for (uint32_t d = 0; d < rank; d++)
        if (uir_term_of_dim(&v->terms, a->starts[d]) != uir_term_of_dim(&v->terms, b->starts[d]) ||
            uir_term_of_dim(&v->terms, a->counts[d]) != uir_term_of_dim(&v->terms, b->counts[d]))
            return false;
    return true;
}

/* A run's instructions are elementwise over one shape; what one of them writes, the others read by the same slice. */
static void check_run(uir_iverifier *v, const uir_iitem *run) {
    uir_igraph *g = v->g;
    for (uint32_t at = run->first_child; at != UINT32_MAX; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        if (item->kind != UIR_IITEM_INSTRUCTION || item->guard.count) {
            uir_iverify_report(v, item->line, "a run holds instructions without conditions and nothing else");
            return;
        }
        const uir_iinstruction *i = &g->instructions.data[item->instruction];
        uir_iop_family family = uir_iop_get_row(i->code)->family;
        if (!is_elementwise(family) && family != UIR_IOP_FAMILY_REDUCE) {
            uir_iverify_report(v, item->line, "a run holds elementwise instructions and reductions, not %s",
                               uir_iop_get_row(i->code)->name);
            continue;
        }
        for (uint32_t k = 1; k < i->slice_count; k++) {
            for (uint32_t before = run->first_child; before != at; before = g->items.data[before].next) {
                const uir_iinstruction *w = &g->instructions.data[g->items.data[before].instruction];
                if (w->slice_count && w->slices[0].pointer == i->slices[k].pointer &&
                    !same_place(v, &w->slices[0], &i->slices[k]))
                    uir_iverify_report(v, item->line, "in a run %s must be read by the slice it was written by",
                                       uir_iverify_slice_text(v, &i->slices[k]));
            }
        }
    }
}

static void assume_requires(uir_iverifier *v) {
    uir_igraph *g = v->g;
    uir_iatom atom = {.kind = UIR_IATOM_RELATION};
    for (uint32_t i = 0; i < g->requires_.count; i++) {
        uir_term terms[2];
        uint32_t count;
        atom.condition = g->requires_.data[i];
        uir_iverify_guard_terms(v, &(uir_iguard){&atom, 1}, terms, &count);
        for (uint32_t k = 0; k < count; k++) uir_term_assume(&v->terms, terms[k]);
    }
    v->base_assumptions = v->terms.assumptions.count;
}

static uir_status run_checks(uir_iverifier *v) {
    uir_igraph *g = v->g;
    UIR_TRY_ALLOCATE(v->previous, uir_arena_allocate_array(v->arena, g->symbols.count + 1, sizeof *v->previous));
    UIR_TRY_ALLOCATE(v->index_safe, uir_arena_allocate_array(v->arena, g->symbols.count + 1, sizeof *v->index_safe));
    UIR_TRY_ALLOCATE(v->seen, uir_arena_allocate_array(v->arena, g->instructions.count + 1, sizeof *v->seen));
    memset(v->previous, 0xff, (g->symbols.count + 1) * sizeof *v->previous);
    assume_requires(v);
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++)
            check_items(v, g->phases.data[p].bodies[b].first_item, g->phases.data[p].bodies[b].unit_kind);
    for (uint32_t i = 0; i < g->items.count; i++)
        if (g->items.data[i].kind == UIR_IITEM_RUN) check_run(v, &g->items.data[i]);
    bool sound = v->errors.count == 0; /* instructions that make no sense are not followed */
    uir_iverify_header(v);
    if (sound && !v->failed) uir_iverify_phases(v);
    if (sound && !v->failed && !v->terms.exhausted) uir_iverify_races(v);
    if (!v->failed) uir_iverify_syncs(v);
    for (uint32_t i = 0; i < g->instructions.count; i++)
        if (!v->seen[i]) g->instructions.data[i].unguarded = 0;
    return UIR_STATUS_OK;
}

/* Errors are in `v`; they are told by tell_errors, after which the arena may go. */
static uir_status find_errors(uir_iverifier *v, bool thorough) {
    UIR_TRY(uir_terms_init(&v->terms, v->arena, v->g));
    v->terms.thorough = thorough;
    UIR_TRY(run_checks(v));
    return v->failed || v->terms.failed ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_OK;
}

static uir_status tell_errors(uir_iverifier *v) {
    if (v->terms.exhausted) uir_iverify_report(v, 0, "the proofs exceed their limit; split the kernel");
    uir_status found = v->terms.exhausted && v->errors.count == 1 ? UIR_STATUS_LIMIT : UIR_STATUS_BAD_FILE;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < v->errors.count && status != UIR_STATUS_OUT_OF_MEMORY; i++) {
        uir_location location = {.file = v->g->file, .line = v->errors.data[i].line};
        status = uir_error(v->diagnostics, found, &location, "@%s: %s", v->g->name, v->errors.data[i].message);
    }
    return status;
}

/* Most kernels are proved by few facts. What is not is tried again with all of them, which takes many times as long. */
uir_status uir_igraph_verify(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    uir_arena arena, again;
    uir_arena_init(&arena, &igraph->allocator);
    uir_iverifier v = {.g = igraph, .arena = &arena, .diagnostics = diagnostics};
    uir_status status = find_errors(&v, false);
    if (status == UIR_STATUS_OK && v.errors.count && !v.terms.exhausted) {
        uir_arena_init(&again, &igraph->allocator);
        uir_iverifier thorough = {.g = igraph, .arena = &again, .diagnostics = diagnostics};
        status = find_errors(&thorough, true);
        bool proved = status == UIR_STATUS_OK && !thorough.errors.count && !thorough.terms.exhausted;
        uir_arena_deinit(&again);
        if (proved) v.errors.count = 0;
    }
    if (status == UIR_STATUS_OK) status = tell_errors(&v);
    uir_arena_deinit(&arena);
    return status;
}
