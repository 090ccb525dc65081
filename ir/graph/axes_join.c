/* Numbers the axes of an analysis: neighbours in every value that has one of them are joined to one axis. */
#include "ir/graph/axes_internal.h"

typedef struct neighbours {
    uint32_t *next, *previous; /* per leaf: the one that always follows or precedes; NONE: ends or differs */
    uint8_t *seen;
} neighbours;

static void note_neighbour(uint32_t *slot, bool first, uint32_t other) {
    if (first)
        *slot = other;
    else if (*slot != other)
        *slot = UIR_AXES_NONE;
}

/* Each instance's leaves; an axis twice in one value cannot be told apart. */
static uir_status list_leaves(uir_axes_table *t, uir_axes_atoms *lists) {
    for (uint32_t i = 0; i < t->instances.count; i++) {
        uir_axes_instance *of = &t->instances.data[i];
        for (uint32_t d = 0; d < of->rank; d++) UIR_TRY(uir_axes_push_dim(t, of, of->order[d], &lists[i]));
        for (uint32_t k = 0; k < lists[i].count; k++)
            for (uint32_t j = 0; j < k; j++)
                if (lists[i].data[j] == lists[i].data[k]) return UIR_AXES_UNRELATED;
    }
    return UIR_STATUS_OK;
}

static uir_status find_neighbours(uir_axes_table *t, const uir_axes_atoms *lists, neighbours *out) {
    uint32_t count = t->atoms.count + 1;
    UIR_TRY_ALLOCATE(out->next, uir_arena_allocate_array(t->arena, count, sizeof *out->next));
    UIR_TRY_ALLOCATE(out->previous, uir_arena_allocate_array(t->arena, count, sizeof *out->previous));
    UIR_TRY_ALLOCATE(out->seen, uir_arena_allocate_array(t->arena, count, 1));
    for (uint32_t i = 0; i < t->instances.count; i++) {
        const uir_axes_atoms *list = &lists[i];
        for (uint32_t k = 0; k < list->count; k++) {
            uint32_t a = list->data[k];
            note_neighbour(&out->next[a], !out->seen[a], k + 1 < list->count ? list->data[k + 1] : UIR_AXES_NONE);
            note_neighbour(&out->previous[a], !out->seen[a], k ? list->data[k - 1] : UIR_AXES_NONE);
            out->seen[a] = 1;
        }
    }
    return UIR_STATUS_OK;
}

static bool joins_next(const uir_axes_table *t, const neighbours *n, uint32_t a) {
    uint32_t next = n->next[a];
    return next != UIR_AXES_NONE && n->previous[next] == a && !t->atoms.data[a].unsplittable &&
           !t->atoms.data[next].unsplittable;
}

/* Numbers the axes in the order in which values first show them; axis_of[leaf]. */
static uir_status number_axes(uir_axes_table *t, const uir_axes_atoms *lists, const neighbours *n, uint32_t *axis_of,
                              uir_axes *out_axes) {
    uir_axis_info *axes;
    UIR_TRY_ALLOCATE(axes, uir_arena_allocate_array(t->arena, t->atoms.count + 1, sizeof *axes));
    for (uint32_t a = 0; a <= t->atoms.count; a++) axis_of[a] = UIR_AXES_NONE;
    for (uint32_t i = 0; i < t->instances.count; i++) {
        for (uint32_t k = 0; k < lists[i].count; k++) {
            uint32_t a = lists[i].data[k];
            if (axis_of[a] != UIR_AXES_NONE) continue;
            uir_dim extent = t->atoms.data[a].extent;
            axis_of[a] = out_axes->count;
            for (uint32_t b = a; joins_next(t, n, b);) {
                b = n->next[b];
                axis_of[b] = out_axes->count;
                extent = uir_dim_mul(t->module->dims, extent, t->atoms.data[b].extent);
            }
            if (!extent.id) return UIR_STATUS_OUT_OF_MEMORY;
            axes[out_axes->count++] = (uir_axis_info){extent, t->atoms.data[a].unsplittable};
        }
    }
    out_axes->axes = axes;
    return UIR_STATUS_OK;
}

uir_status uir_axes_finish(uir_axes_table *t, uir_axes *out_axes) {
    uir_axes_atoms *lists;
    uint32_t *axis_of;
    neighbours n = {0};
    UIR_TRY_ALLOCATE(lists, uir_arena_allocate_array(t->arena, t->instances.count + 1, sizeof *lists));
    UIR_TRY_ALLOCATE(axis_of, uir_arena_allocate_array(t->arena, t->atoms.count + 1, sizeof *axis_of));
    UIR_TRY(list_leaves(t, lists));
    UIR_TRY(find_neighbours(t, lists, &n));
    UIR_TRY(number_axes(t, lists, &n, axis_of, out_axes));
    for (uint32_t i = 0; i < t->instances.count; i++) {
        uir_axes_instance *of = &t->instances.data[i];
        uint32_t *axes, count = 0;
        UIR_TRY_ALLOCATE(axes, uir_arena_allocate_array(t->arena, lists[i].count + 1, sizeof *axes));
        for (uint32_t k = 0; k < lists[i].count; k++) {
            uint32_t axis = axis_of[lists[i].data[k]];
            if (!count || axes[count - 1] != axis) axes[count++] = axis;
        }
        of->list = (uir_axis_list){axes, count};
        UIR_TRY_ALLOCATE(of->dim_axes, uir_arena_allocate_array(t->arena, of->rank + 1, sizeof *of->dim_axes));
        for (uint32_t d = 0; d < of->rank; d++) {
            uir_axes_atoms leaves = {0};
            UIR_TRY(uir_axes_push_dim(t, of, d, &leaves));
            of->dim_axes[d] = UIR_AXES_NONE;
            if (leaves.count == 1 && !joins_next(t, &n, leaves.data[0]) &&
                (n.previous[leaves.data[0]] == UIR_AXES_NONE || !joins_next(t, &n, n.previous[leaves.data[0]])))
                of->dim_axes[d] = axis_of[leaves.data[0]];
        }
    }
    return UIR_STATUS_OK;
}
