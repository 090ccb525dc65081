/* The tactic of contractions: tile m, n and k; keep a block of sums on chip; copy the factors' blocks; do what follows
 * row by row on the finished block. */
#include "lower/tactics/attention.h"
#include "lower/tactics/products/contraction_plan.h"
#include "lower/tactics/windows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

void uir_contraction_plan_say(uir_contraction_plan *p, const char *format, ...) {
    char text[256];
    va_list arguments;
    if (!p->steps) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uir_text_append_format(p->steps, "%s\n", text);
}

/* What is decided before there are tiles. */
uir_status uir_contraction_plan_choose(uir_contraction_plan *p, uint32_t number, const bool *left_out, uir_arena *arena,
                                       uir_diagnostics *diagnostics) {
    static const char *const names[] = {NULL, "tm", "tn", "tk"};
    UIR_TRY(uir_contraction_find(p->f, number, left_out, arena, diagnostics, &p->c));
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++)
        p->sides[class].tile_name = names[class];
    uir_contraction_plan_choose_sides(p);
    uir_contraction_plan_choose_axes(p);
    return uir_contraction_plan_choose_dtypes(p);
}

/* The one with the most columns. */
static uint32_t find_leader(uir_contraction_plans *all) {
    uint32_t leader = 0;
    int64_t most = -1, columns;
    for (uint32_t i = 0; i < all->count; i++) {
        bool known =
            uir_contraction_plan_is_const(&all->plans[i], all->plans[i].sides[UIR_CONTRACTION_N].extent, &columns);
        if (!known || columns <= most) continue;
        most = columns;
        leader = i;
    }
    return leader;
}

/* Is a contraction's first factor that of another, element by element: the same place of the same tensor at the same
 * rows and depth? Those that are tiled run together, whatever they run along: of x times itself across, either axis is
 * the rows. Others are the same when they run along one axis and have one class. */
static bool shares_first_factor(const uir_contraction_plan *p, const uir_contraction_plan *with) {
    uir_loop_function *f = p->f;
    const uir_loop_statement *update = STATEMENT(f, p->c.update), *other = STATEMENT(f, with->c.update);
    const uir_loop_expression *own = EXPRESSION(f, p->raw[0]), *left = EXPRESSION(f, with->raw[0]);
    uint32_t count = uir_dims_symbol_count(f->dims);
    uir_dim *replacements;
    if (own->kind != UIR_LOOP_LOAD || left->kind != UIR_LOOP_LOAD || own->load.tensor != left->load.tensor ||
        own->has_fill != left->has_fill || own->fill != left->fill ||
        !(replacements = uir_arena_allocate_array(p->c.arena, count + 1, sizeof *replacements)))
        return false;
    for (uint32_t a = 0; a < p->c.axis_count; a++)
        for (uint32_t b = 0; b < with->c.axis_count; b++)
            if (p->c.axes[a].class == with->c.axes[b].class &&
                uir_loop_iter_is_same(&update->iters[a], &other->iters[b]))
                replacements[update->iters[a].symbol.id] = uir_dim_symbol(f->dims, other->iters[b].symbol);
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class += 2) {
        uint32_t axis = p->sides[class].axis, like = with->sides[class].axis;
        if (axis != NONE && like != NONE)
            replacements[update->iters[axis].symbol.id] = uir_dim_symbol(f->dims, other->iters[like].symbol);
    }
    for (uint32_t d = 0; d < f->tensors.data[own->load.tensor].rank; d++) {
        uir_dim index = uir_dim_substitute(f->dims, own->load.indices[d], replacements, count);
        if (!uir_dim_equal(index, left->load.indices[d])) return false;
    }
    return true;
}

/* Side by side: one first factor, columns of known number. */
static uir_status check_siblings(const uir_contraction_plans *all) {
    const uir_contraction_plan *leader = &all->plans[all->leader];
    for (uint32_t i = 0; i < all->count && all->count > 1; i++) {
        uir_contraction_plan *p = &all->plans[i];
        int64_t columns;
        bool same = shares_first_factor(p, leader);
        bool known = p->sides[UIR_CONTRACTION_N].axis != NONE;
        for (uint32_t a = 0; a < p->c.axis_count; a++) {
            known &= p->c.axes[a].class != UIR_CONTRACTION_BATCH;
            known &= p->c.axes[a].class != UIR_CONTRACTION_N ||
                     uir_contraction_plan_is_const(p, p->c.axes[a].extent, &columns);
        }
        for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class += 2)
            same &= uir_dim_equal(p->sides[class].extent, leader->sides[class].extent);
        if (!same || !known)
            return uir_contraction_refuse(
                &p->c, "several products that do not share operand A, or have an unknown number of columns");
    }
    return UIR_STATUS_OK;
}

static uir_status map_axes(const uir_contraction_plan *p, uir_schedule *s) {
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    if (!p->c.axis_count) return UIR_STATUS_OK;
    for (uint32_t a = 0; a < p->c.axis_count; a++) classes[a] = (uir_loop_class)(p->c.axes[a].class + 1);
    return uir_schedule_set_classes(s, p->c.update, classes);
}

/* Decides all and carries it out; nothing is done where rows are never few. */
static uir_status shape(uir_contraction_plans *all, uir_schedule *s, uir_arena *arena, uir_diagnostics *diagnostics,
                        bool *out_always, bool *out_never) {
    int64_t rows, most = all->plans->machine->mma_m ? all->plans->machine->mma_m : 1;
    bool few = all->plans->few, copied[2] = {false, false};
    UIR_TRY(uir_contraction_inline(s));
    for (uint32_t i = 0; i < all->count; i++) {
        UIR_TRY(uir_contraction_plan_choose(&all->plans[i], i, NULL, arena, diagnostics));
        UIR_TRY(map_axes(&all->plans[i], s));
    }
    uir_contraction_plan *leader = &all->plans[all->leader = find_leader(all)];
    for (uint32_t i = 0; i < all->count; i++)
        if (i != all->leader) uir_contraction_plan_follow_axes(&all->plans[i], leader);
    UIR_TRY(check_siblings(all));
    uir_contraction_side *m = &leader->sides[UIR_CONTRACTION_M];
    bool known = uir_contraction_plan_is_const(leader, m->extent, &rows);
    *out_always = known && rows <= most;
    *out_never = few && known && rows > most;
    if (*out_never) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < all->count; i++) {
        uir_contraction_plan_find_crossed(&all->plans[i]);
        copied[0] |= !uir_contraction_plan_is_direct_a(&all->plans[i]);
        copied[1] |= !uir_contraction_plan_is_direct_b(&all->plans[i]);
    }
    for (uint32_t i = 0; i < all->count; i++) memcpy(all->plans[i].copied, copied, sizeof copied);
    UIR_TRY(uir_contraction_plan_choose_tiles(leader));
    for (uint32_t i = 0; i < all->count; i++)
        if (i != all->leader) uir_contraction_plan_follow_tiles(&all->plans[i], leader);
    if (few && !*out_always) {
        uir_condition condition = {UIR_RELATION_LE, m->extent, uir_dim_const(leader->f->dims, most)};
        UIR_TRY(uir_vector_push(&leader->f->arena, &leader->f->requires_, condition));
    }
    return uir_contraction_plans_apply(all, s);
}

static uir_status build(const uir_loop_function *naive, const uir_machine *machine, uir_parameter_choice *choice,
                        bool few, uir_text *steps, uir_arena *arena, uir_diagnostics *diagnostics, uir_loop_list *out,
                        bool *out_always) {
    uir_contraction_plans all = {.count = uir_loop_count_used_as(naive, naive->first, UIR_LOOP_USE_CONTRACTION)};
    uir_loop_function *f;
    uir_schedule *s = NULL;
    bool never = false;
    UIR_TRY_ALLOCATE(all.plans, uir_arena_allocate_array(arena, all.count + 1, sizeof *all.plans));
    UIR_TRY(uir_loop_clone(naive, &f));
    for (uint32_t i = 0; i < all.count; i++)
        all.plans[i] = (uir_contraction_plan){.f = f,
                                              .machine = machine,
                                              .steps = steps,
                                              .choice = choice,
                                              .few = few,
                                              .products = all.count,
                                              .sides = {{.axis = NONE}}};
    uir_status status = uir_schedule_create(f, machine, diagnostics, &s);
    if (status == UIR_STATUS_OK) status = shape(&all, s, arena, diagnostics, out_always, &never);
    if (status == UIR_STATUS_OK && !never)
        status = uir_loop_list_add(out, f, uir_schedule_trace(s));
    else
        uir_loop_function_destroy(f);
    uir_schedule_destroy(s);
    return status;
}

uir_status uir_contraction_schedule(const uir_loop_function *function, const uir_machine *machine,
                                    uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                    uir_loop_list *out) {
    uir_arena arena;
    bool always = false;
    if (uir_attention_matches(function)) return uir_attention_schedule(function, machine, choice, diagnostics, out);
    bool convolution;
    UIR_TRY(uir_windows_schedule(function, machine, steps, diagnostics, out, &convolution));
    if (convolution) return UIR_STATUS_OK;
    uir_arena_init(&arena, &function->allocator);
    uir_status status = build(function, machine, choice, true, steps, &arena, diagnostics, out, &always);
    if (status == UIR_STATUS_OK && !always)
        status = build(function, machine, choice, false, steps, &arena, diagnostics, out, &always);
    uir_arena_deinit(&arena);
    return status;
}
