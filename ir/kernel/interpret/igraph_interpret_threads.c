/* Threads of a unit: which of them computes an element, and what another one may not have touched since they met. */
#include "ir/kernel/igraph_threads.h"
#include "ir/kernel/interpret/igraph_machine.h"

#define NONE UINT32_MAX

bool uir_imachine_has_threads(const imachine *machine) {
    return machine->interleaving && machine->igraph->synchronised && uir_ithreads_count(machine->igraph) > 1;
}

/* ---- whose element it is ---- */
/* How a pointer's elements are numbered for their owners: in registers by its layout, elsewhere row-major. */
static uir_status number_elements(imachine *machine, const iunit *unit, uint32_t pointer, uir_bound_layout *out) {
    const uir_ipointer *p = &machine->igraph->pointers.data[pointer];
    bool registers = machine->igraph->machine->spaces[p->space].roles & UIR_SPACE_REGISTERS;
    int64_t step = 1, extent;
    *out = (uir_bound_layout){.rank = p->rank};
    for (uint32_t d = p->rank; d-- > 0;) {
        out->mode_count[d] = registers ? p->layout.mode_count[d] : 1;
        out->strides[d][0] = step;
        for (uint32_t m = 0; registers && m < out->mode_count[d]; m++) {
            UIR_TRY(uir_imachine_evaluate(machine, unit, p->layout.modes[d][m].size, &out->sizes[d][m]));
            UIR_TRY(uir_imachine_evaluate(machine, unit, p->layout.modes[d][m].stride, &out->strides[d][m]));
        }
        UIR_TRY(uir_imachine_evaluate(machine, unit, p->extents[d], &extent));
        step *= extent;
    }
    return UIR_STATUS_OK;
}

/* The owners of the frame's elements, by their numbers. */
static uir_status find_owners(imachine *machine, const iunit *unit, const uir_islice *frame, const iview *result,
                              uint32_t *threads) {
    const uir_igraph *g = machine->igraph;
    const uir_ipointer *p = &g->pointers.data[frame->pointer];
    uint32_t dims[UIR_IGRAPH_MAX_RANK], count = uir_ithreads_count(g);
    int64_t starts[UIR_IGRAPH_MAX_RANK], along[UIR_IGRAPH_MAX_RANK], digits[UIR_IGRAPH_MAX_RANK] = {0};
    uir_bound_layout numbers;
    if (!uir_ithreads_find_dims(g, frame, dims))
        return uir_imachine_fail(machine, "%%%s: its elements have no owners", p->name);
    UIR_TRY(number_elements(machine, unit, frame->pointer, &numbers));
    for (uint32_t a = 0; a < frame->axis_count; a++) {
        unit->values[frame->axes[a].symbol] = 0;
        unit->bound[frame->axes[a].symbol] = true;
    }
    for (uint32_t d = 0; d < p->rank; d++) {
        UIR_TRY(uir_imachine_evaluate(machine, unit, frame->starts[d], &starts[d]));
        /* The slice has the result's shape but for leading dims of one element. */
        along[d] = dims[d] == NONE ? -1 : (int64_t)dims[d] + result->rank - frame->rank;
    }
    for (uint32_t a = 0; a < frame->axis_count; a++) unit->bound[frame->axes[a].symbol] = false;
    for (int64_t e = 0; e < result->total; e++) {
        int64_t number = 0;
        for (uint32_t d = 0; d < p->rank; d++)
            number += uir_layout_offset_along(&numbers, d, starts[d] + (along[d] < 0 ? 0 : digits[along[d]]));
        threads[e] = (uint32_t)(((number % count) + count) % count) + 1;
        for (uint32_t d = result->rank; d-- > 0;) {
            if (++digits[d] < result->counts[d]) break;
            digits[d] = 0;
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_imachine_find_threads(imachine *machine, const iunit *unit, const uir_iinstruction *in,
                                     const iview *result, const uint32_t **out_threads) {
    const uir_igraph *g = machine->igraph;
    *out_threads = NULL;
    if (!uir_imachine_has_threads(machine)) return UIR_STATUS_OK;
    /* A row has a thread for each of its lanes. */
    bool by_lanes = uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE && in->axis != UIR_IAXIS_COL;
    int64_t total = by_lanes ? result->total * UIR_REDUCE_LANES : result->total;
    uint32_t *threads, frame = uir_ithreads_find_frame(g, in), count = uir_ithreads_count(g);
    UIR_TRY_ALLOCATE(threads, uir_arena_allocate_array(&machine->scratch, (size_t)total + 1, sizeof *threads));
    bool all = !by_lanes && uir_ithreads_is_copied(g, in->slices[0].pointer);
    for (int64_t e = 0; e < total; e++) threads[e] = all ? UIR_ITHREAD_ALL : (uint32_t)(e % count) + 1;
    *out_threads = threads;
    return frame == UIR_ITHREADS_RESULT ? UIR_STATUS_OK
                                        : find_owners(machine, unit, &in->slices[frame], result, threads);
}

/* ---- meetings ---- */
static bool is_now(const imachine *machine, const iunit *unit, const imeeting *m) {
    return m->unit == unit->number && m->phase == machine->phase && m->meets == unit->meets;
}

static bool is_other(uint32_t thread, uint32_t other) {
    return thread && (thread != other || thread == UIR_ITHREAD_ALL);
}

/* Has another thread touched what another buffer has in these bytes? */
static bool has_other_in_place(const imachine *machine, const iunit *unit, const iview *view, int64_t offset) {
    const uir_igraph *g = machine->igraph;
    int64_t bytes = uir_dtype_bits(view->dtype) / 8, at = (view->shadow - view->storage->shadow + offset) * bytes;
    for (uint32_t p = 0; p < g->pointers.count; p++) {
        if (!uir_igraph_share_place(g, p, view->pointer)) continue;
        const istorage *other = &unit->storage[p];
        int64_t size = uir_dtype_bits(g->pointers.data[p].dtype) / 8, last = (at + bytes - 1) / size;
        for (int64_t e = at / size; e <= last && e < other->span * other->instances; e++) {
            const imeeting *m = &other->meetings[e];
            if (is_now(machine, unit, m) &&
                (is_other(m->writer, machine->thread) || is_other(m->reader, machine->thread)))
                return true;
        }
    }
    return false;
}

static uir_status tell(imachine *machine, const iview *view, const char *what, bool *out_alone) {
    *out_alone = false;
    if (machine->interleaving->elements_alone) return UIR_STATUS_OK;
    return uir_imachine_fail(machine, "%%%s: a thread %s with no sync.unit between",
                             machine->igraph->pointers.data[view->pointer].name, what);
}

uir_status uir_imachine_touch(imachine *machine, const iunit *unit, const iview *view, int64_t offset, bool writes,
                              bool *out_alone) {
    uint32_t thread = machine->thread;
    *out_alone = true;
    if (!thread || !view->meetings || uir_ithreads_is_copied(machine->igraph, view->pointer)) return UIR_STATUS_OK;
    imeeting *m = &view->meetings[offset];
    if (!is_now(machine, unit, m)) *m = (imeeting){unit->number, machine->phase, unit->meets, 0, 0};
    if (is_other(m->writer, thread))
        UIR_TRY(
            tell(machine, view, writes ? "writes what another one wrote" : "reads what another one wrote", out_alone));
    if (writes && is_other(m->reader, thread)) UIR_TRY(tell(machine, view, "writes what another one read", out_alone));
    if (writes && uir_ithreads_has_owners(machine->igraph, view->pointer) &&
        has_other_in_place(machine, unit, view, offset))
        UIR_TRY(tell(machine, view, "writes where another one used another buffer", out_alone));
    uint32_t *who = writes ? &m->writer : &m->reader;
    *who = !*who || *who == thread ? thread : UIR_ITHREAD_ALL;
    return UIR_STATUS_OK;
}
