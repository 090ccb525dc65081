/* The tactic of convolutions, by schedule primitives: the steps of a plan. */
#include "lower/tactics/windows.h"

#include "lower/tactics/windows_plan.h"
#include "lower/internal.h"

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum {
    MAX_LOOPS = UIR_CONTRACTION_MAX_LOOPS,
    MAX_PARALLEL = 4,
};

static uint32_t loop_along(const uir_windows *w, uint32_t block, uint32_t under, const uint32_t *axes, uint32_t axis) {
    for (uint32_t i = 0; axis != NONE && i < STATEMENT(w->p.f, block)->iter_count; i++)
        if (axes[i] == axis) return uir_contraction_loop_below(&w->t, block, under, i);
    return NONE;
}

static uir_status split_span(uir_windows *w, uir_windows_span *s) {
    const uir_contraction_block *anchor = &w->p.c.after[0];
    s->inner = loop_along(w, anchor->id, NONE, anchor->axes, s->axis);
    if (s->inner == NONE || !s->split) return UIR_STATUS_OK;
    return uir_schedule_split(w->t.s, s->inner, s->tile, &s->outer, &s->inner);
}

/* What is not tiled, then columns, lines and pixels by tiles; then the tile. */
static uir_status tile_anchor(uir_windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    const uir_contraction_block *anchor = &c->after[0];
    uir_windows_span *spans[] = {w->made ? &w->lines : &w->columns, w->made ? &w->pixels : &w->lines,
                                 w->made ? &w->columns : &w->pixels};
    uint32_t all[MAX_LOOPS + 8], count = 0;
    uint32_t inner_loops[UIR_LOOP_MAX_ITERS], inner_count = 0;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class == UIR_CONTRACTION_K || a == w->columns.axis || a == w->lines.axis || a == w->pixels.axis)
            continue;
        uint32_t loop = loop_along(w, anchor->id, NONE, anchor->axes, a);
        if (loop == NONE) continue;
        /* Where rows are made, batches are made of the same elements: they are near for all of them. */
        if (w->made && c->axes[a].class == UIR_CONTRACTION_BATCH)
            inner_loops[inner_count++] = loop;
        else
            t->outer[t->outer_count++] = loop;
    }
    for (uint32_t i = 0; i < 3; i++) {
        UIR_TRY(split_span(w, spans[i]));
        for (uint32_t k = 0; spans[i] == &w->columns && k < inner_count; k++)
            t->outer[t->outer_count++] = inner_loops[k];
        if (spans[i]->outer != NONE) t->outer[t->outer_count++] = spans[i]->outer;
    }
    if (!t->outer_count) {
        uint32_t loops[MAX_LOOPS];
        if (!uir_schedule_loops(t->s, anchor->id, loops, MAX_LOOPS))
            return uir_contraction_refuse(c, "no axis is tiled");
        UIR_TRY(uir_schedule_add_unit_loop(t->s, loops[0], &t->outer[t->outer_count++]));
    }
    for (uint32_t i = 0; i < t->outer_count; i++) all[count++] = t->outer[i];
    t->unit = t->inside = all[count - 1];
    uir_windows_span *inner[] = {&w->lines, &w->pixels, &w->columns};
    for (uint32_t i = 0; i < 3; i++)
        if (inner[i]->inner != NONE) all[count++] = inner[i]->inner;
    t->row = w->lines.inner == NONE ? t->unit : w->lines.inner;
    uint32_t shared = t->outer_count - (w->made && w->columns.outer != NONE);
    w->made_at = shared ? t->outer[shared - 1] : t->unit;
    t->parallel = shared < MAX_PARALLEL ? shared : MAX_PARALLEL;
    return uir_contraction_order(t, all, count);
}

/* mma over pixels, of all lines of a tile where they are joined, columns and all that is summed over. */
static uir_status place_sums(uir_windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], order[UIR_LOOP_MAX_ITERS], count = 0, ordered = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    if (EXPRESSION(w->p.f, STATEMENT(w->p.f, c->sum)->values[0])->arguments[0] != c->factors[0])
        UIR_TRY(uir_schedule_exchange(t->s, c->update));
    t->inside = w->joined ? t->unit : t->row;
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->inside));
    if (w->joined) order[ordered++] = w->lines.axis;
    order[ordered++] = w->pixels.axis;
    order[ordered++] = w->columns.axis;
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axes[a].class == UIR_CONTRACTION_K) order[ordered++] = a;
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t loop = loop_along(w, c->update, t->inside, axes, order[i]);
        if (loop != NONE) loops[count++] = loop;
    }
    return uir_contraction_order(t, loops, count);
}

/* All lines of a tile are rows of one product. */
static uir_status place_made(uir_windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], iters[UIR_LOOP_MAX_ITERS], count = 0, made = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    if (EXPRESSION(w->p.f, STATEMENT(w->p.f, c->sum)->values[0])->arguments[0] != c->factors[0])
        UIR_TRY(uir_schedule_exchange(t->s, c->update));
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->unit));
    uint32_t order[UIR_LOOP_MAX_ITERS] = {w->lines.axis, w->pixels.axis, w->columns.axis};
    uint32_t ordered = 3;
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axes[a].class == UIR_CONTRACTION_K) order[ordered++] = a;
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t loop = loop_along(w, c->update, t->unit, axes, order[i]);
        if (loop != NONE) loops[count++] = loop;
        if (order[i] != w->columns.axis) iters[made++] = order[i];
    }
    t->inside = t->unit;
    UIR_TRY(uir_contraction_order(t, loops, count));
    const uir_schedule_operand operand = {.name = "rows"};
    const char *space = uir_lower_space(w->p.machine, UIR_SPACE_LEFT);
    if (!space) return uir_contraction_refuse(c, "the device has no on-chip space for a tile");
    t->places[0] = w->made_at;
    UIR_TRY(uir_schedule_cache_operand(t->s, c->update, &operand, iters, made, w->made_at, space, &w->p.copies[0],
                                       &t->copies[0]));
    UIR_TRY(uir_contraction_keep_alive(t, w->p.copies[0], space));
    if (uir_dim_equal(w->p.f->tensors.data[w->p.copies[0]].extents[0], w->lines.tile)) return UIR_STATUS_OK;
    return uir_schedule_pad(t->s, w->p.copies[0], 0, w->lines.tile);
}

/* A tensor on chip of these spans, as many elements as their tiles. */
static uir_status fit(uir_windows *w, uint32_t tensor, const uir_windows_span *const *spans, const uint32_t *dims,
                      uint32_t count) {
    uir_schedule *s = w->t.s;
    bool same = count == w->p.f->tensors.data[tensor].rank;
    for (uint32_t i = 0; i < count; i++) same = same && dims[i] == i;
    if (!same) UIR_TRY(uir_schedule_arrange(s, tensor, dims, count));
    for (uint32_t i = 0; i < count; i++)
        if (dims[i] != NONE && !uir_dim_equal(w->p.f->tensors.data[tensor].extents[i], spans[i]->tile))
            UIR_TRY(uir_schedule_pad(s, tensor, i, spans[i]->tile));
    return UIR_STATUS_OK;
}

static uir_status keep_sums(uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    const uir_windows_span *spans[] = {&w->lines, &w->pixels, &w->columns};
    uint32_t dims[3] = {NONE, NONE, NONE};
    for (uint32_t d = 0; d < w->p.f->tensors.data[c->tensor].rank; d++)
        for (uint32_t i = 0; i < 3; i++)
            if (spans[i]->axis != NONE && c->tensor_axes[d] == spans[i]->axis) dims[i] = d;
    UIR_TRY(uir_contraction_keep_alive(&w->t, c->tensor, uir_lower_space(w->p.machine, UIR_SPACE_ACCUMULATORS)));
    bool line = w->lines.axis == NONE || w->apart || !(w->joined || w->made); /* without lines */
    return fit(w, c->tensor, spans + line, dims + line, 3 - line);
}

/* What is computed after the sums: a line, or what it has of it. */
static uir_status keep_values(uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    uir_loop_function *f = w->p.f;
    for (uint32_t i = 0; i < c->after_count; i++) {
        const uir_contraction_block *b = &c->after[i];
        const uir_loop_statement *block = STATEMENT(f, b->id);
        const uir_loop_access target = STATEMENT(f, uir_contraction_plan_statement_of(f, b->id))->targets[0];
        const uir_windows_span *all[] = {&w->pixels, &w->columns}, *spans[2];
        uint32_t dims[2], count = 0, tensor = target.tensor;
        if (f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP) continue;
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t d = 0; d < f->tensors.data[tensor].rank; d++)
                for (uint32_t iter = 0; iter < block->iter_count; iter++)
                    if (b->axes[iter] == all[k]->axis &&
                        uir_dim_mentions(f->dims, target.indices[d], block->iters[iter].symbol)) {
                        spans[count] = all[k];
                        dims[count++] = d;
                    }
        UIR_TRY(uir_contraction_keep_alive(&w->t, tensor, uir_lower_space(w->p.machine, UIR_SPACE_SCRATCH)));
        UIR_TRY(fit(w, tensor, spans, dims, count));
    }
    return UIR_STATUS_OK;
}

static uir_status map_axes(uir_windows *w) {
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    for (uint32_t a = 0; a < w->p.c.axis_count; a++) classes[a] = (uir_loop_class)(w->p.c.axes[a].class + 1);
    return uir_schedule_set_classes(w->t.s, w->p.c.update, classes);
}

/* A line at a time, tap after tap, each over pixels and channels, so that a run keeps the sums in registers. */
static uir_status place_taps(uir_windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], count = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->row));
    for (uint32_t a = 0; a < c->axis_count; a++) {
        uint32_t loop = c->axes[a].class == UIR_CONTRACTION_K ? loop_along(w, c->update, t->row, axes, a) : NONE;
        if (loop != NONE) loops[count++] = loop;
    }
    uint32_t taps = count;
    const uint32_t last[] = {w->pixels.axis, w->columns.axis};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t loop = loop_along(w, c->update, t->row, axes, last[i]);
        if (loop != NONE) loops[count++] = loop;
    }
    UIR_TRY(uir_contraction_order(t, loops, count));
    t->inside = taps ? loops[taps - 1] : t->row;
    /* As many as stay in one run; others are the turns of a loop. */
    int64_t unrolled = 1;
    for (uint32_t i = taps; i-- > 0;) {
        int64_t trips = 1;
        (void)uir_windows_known(w, STATEMENT(w->p.f, loops[i])->extent, &trips);
        unrolled *= trips;
        if (unrolled <= UIR_WINDOWS_MOST_TAPS) UIR_TRY(uir_schedule_set_kind(t->s, loops[i], UIR_LOOP_UNROLLED, NULL));
    }
    return UIR_STATUS_OK;
}

/* The weights of a tap lie together, where they are constant. */
static uir_status lay_out_taps(uir_windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = uir_windows_read_by(w, 1);
    if (!e || e->has_fill || !uir_contraction_is_constant(&w->p.c, e->load.tensor)) return UIR_STATUS_OK;
    const uir_loop_tensor *tensor = &f->tensors.data[e->load.tensor];
    uir_symbol channel = STATEMENT(f, w->p.c.update)->iters[w->columns.axis].symbol;
    uint32_t order[UIR_LOOP_MAX_RANK], count = 0, last = NONE;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (uir_dim_mentions(f->dims, e->load.indices[d], channel))
            last = d;
        else
            order[count++] = d;
    }
    if (last == NONE || last + 1 == tensor->rank || tensor->rank > UIR_LAYOUT_MAX_RANK) return UIR_STATUS_OK;
    order[count] = last;
    uir_layout layout;
    uir_layout_set_order(&layout, tensor->extents, order, tensor->rank, f->dims);
    return uir_schedule_set_layout(w->t.s, e->load.tensor, &layout);
}

/* One rounding for each product and sum, as mma has it, where the device has an instruction for that. */
static uir_status multiply_and_add(uir_windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_machine *d = w->p.machine;
    uir_dtype dtype = EXPRESSION(f, STATEMENT(f, w->p.c.sum)->values[0])->dtype;
    int space = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    if (!uir_iop_is_defined_for(UIR_IOP_FMA, dtype) || uir_dtype_bits(dtype) < 32 || space < 0 ||
        uir_machine_find_legal(d, uir_iop_get_row(UIR_IOP_FMA)->name, dtype, UIR_DTYPE_NONE, (uint32_t)space,
                               1u << space, 0, 0) < 0)
        return UIR_STATUS_OK;
    return uir_schedule_set_use(w->t.s, w->p.c.update, UIR_LOOP_USE_FMA);
}

static uir_status mark_taps(uir_windows *w) {
    uir_contraction_steps *t = &w->t;
    UIR_TRY(multiply_and_add(w));
    UIR_TRY(uir_contraction_vectorise(t, w->p.c.init, t->row));
    UIR_TRY(uir_contraction_vectorise(t, w->p.c.update, t->inside));
    for (uint32_t i = 0; i < w->p.c.after_count; i++) UIR_TRY(uir_contraction_vectorise(t, w->p.c.after[i].id, t->row));
    return UIR_STATUS_OK;
}

/* Taps that are outside for a whole line, along the outermost of the window's axes: were parts of two left out, weights
 * would not lie as one matrix. */
static uir_status leave_out(uir_windows *w) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *image = uir_windows_image_of(w);
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    if (w->apart || w->made || w->joined || !image->has_fill) return UIR_STATUS_OK;
    uir_symbol pixel = update->iters[w->pixels.axis].symbol;
    for (uint32_t d = 0; d < f->tensors.data[image->load.tensor].rank; d++) {
        bool along = false, across = false; /* a window's: a tap of a line */
        for (uint32_t k = 0; k < update->iter_count; k++) {
            if (!uir_dim_mentions(f->dims, image->load.indices[d], update->iters[k].symbol)) continue;
            *(update->iters[k].reduce ? &along : &across) = true;
        }
        if (along && across && !uir_dim_mentions(f->dims, image->load.indices[d], pixel))
            return uir_schedule_leave_out(w->t.s, w->p.c.update, 0, d);
    }
    return UIR_STATUS_OK;
}

static uir_status carry_out(uir_windows *w) {
    UIR_TRY(tile_anchor(w));
    UIR_TRY(w->made ? place_made(w) : w->apart ? place_taps(w) : place_sums(w));
    UIR_TRY(uir_contraction_place_after(&w->t));
    UIR_TRY(keep_sums(w));
    UIR_TRY(keep_values(w));
    UIR_TRY(w->apart ? lay_out_taps(w) : uir_contraction_lay_out(&w->t));
    UIR_TRY(uir_contraction_share_out(&w->t));
    UIR_TRY(leave_out(w));
    if (w->apart) return mark_taps(w);
    if (!w->joined && !w->made) w->t.unit = w->t.row; /* sums are a line's */
    return uir_contraction_mark(&w->t);
}

static uir_status shape(uir_windows *w, uir_schedule *s, uir_arena *arena, uir_diagnostics *diagnostics,
                        bool *out_taken, bool *out_unknown) {
    uir_contraction_plan *p = &w->p;
    uir_diagnostics said;
    uir_diagnostics_init(&said, &p->f->allocator);
    UIR_TRY(uir_contraction_inline(s));
    uir_status status = uir_contraction_find(p->f, 0, NULL, arena, &said, &p->c);
    *out_taken = status == UIR_STATUS_OK && p->c.after_count && uir_windows_recognise(w);
    uir_diagnostics_deinit(&said);
    p->c.diagnostics = diagnostics; /* from here on what goes wrong is said */
    if (status == UIR_STATUS_UNSUPPORTED || !*out_taken) return UIR_STATUS_OK;
    UIR_TRY(status);
    for (uint32_t class = 0; class < 4; class ++) p->sides[class].axis = NONE;
    p->sides[UIR_CONTRACTION_M].axis = w->pixels.axis;
    p->sides[UIR_CONTRACTION_N].axis = w->columns.axis;
    p->sides[UIR_CONTRACTION_K].axis = NONE;
    uir_contraction_steps_init(&w->t, p, p, s);
    if (!w->apart) UIR_TRY(map_axes(w));
    uir_contraction_plan_find_crossed(p);
    UIR_TRY(uir_windows_require_short(w, out_unknown));
    UIR_TRY(w->made ? uir_windows_choose_made_tiles(w) : uir_windows_choose_tiles(w));
    return carry_out(w);
}

uir_status uir_windows_schedule(const uir_loop_function *function, const uir_machine *machine, uir_text *steps,
                                uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken) {
    uir_arena arena;
    uir_windows w = {.p = {.machine = machine, .steps = steps, .products = 1, .sides = {{.axis = NONE}}}};
    uir_schedule *s = NULL;
    bool unknown = false;
    *out_taken = false;
    if (uir_loop_count_used_as(function, function->first, UIR_LOOP_USE_CONTRACTION) != 1) return UIR_STATUS_OK;
    UIR_TRY(uir_loop_clone(function, &w.p.f));
    uir_arena_init(&arena, &function->allocator);
    uir_status status = uir_schedule_create(w.p.f, machine, diagnostics, &s);
    if (status == UIR_STATUS_OK) status = shape(&w, s, &arena, diagnostics, out_taken, &unknown);
    if (status == UIR_STATUS_OK && *out_taken)
        status = uir_loop_list_add(out, w.p.f, uir_schedule_trace(s));
    else
        uir_loop_function_destroy(w.p.f);
    uir_schedule_destroy(s);
    uir_arena_deinit(&arena);
    *out_taken = *out_taken && !unknown; /* longer lines are products like any */
    return status;
}
