/* Where what needs room for a while lies in one block of memory.
 *
 * The largest places, which decide how large the block is, go where they first fit, largest first: every pair of them
 * is looked at. What is left in a plan of very many is small: it is laid behind them in the order of time, in slots of
 * powers of two that are used again. So the work is proportional to the number of places but for a factor that is
 * bounded. */
#include "runtime/internal.h"

enum { FITTED = 4096, CLASSES = 64 };

typedef bool is_after(const uir_rt_place *a, const uir_rt_place *b);

static bool is_smaller(const uir_rt_place *a, const uir_rt_place *b) {
    return a->size != b->size ? a->size < b->size : a->first != b->first ? a->first > b->first : a > b;
}
static bool ends_earlier(const uir_rt_place *a, const uir_rt_place *b) {
    return a->end != b->end ? a->end < b->end : a < b;
}
static bool begins_later(const uir_rt_place *a, const uir_rt_place *b) {
    return a->begin != b->begin ? a->begin > b->begin : a > b;
}

/* Whether two places may not share bytes. What one queue alone accesses is accessed in the order of the plan. */
static bool live_together(const uir_rt_place *a, const uir_rt_place *b) {
    if (a->queues == b->queues && (a->queues & (a->queues - 1)) == 0) return a->first <= b->last && b->first <= a->last;
    return a->begin <= b->end && b->begin <= a->end;
}

/* A heap whose root comes after all others. */
static void sift(const uir_rt_place *places, uint32_t *heap, uint32_t at, uint32_t count, is_after *after) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && after(&places[heap[child + 1]], &places[heap[child]])) child++;
        if (!after(&places[heap[child]], &places[heap[at]])) return;
        uint32_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

/* Heap sort, which needs no memory. */
static void sort(const uir_rt_place *places, uint32_t *order, uint32_t count, is_after *after) {
    for (uint32_t i = count / 2; i-- > 0;) sift(places, order, i, count, after);
    for (uint32_t i = count; i-- > 1;) {
        uint32_t swap = order[0];
        order[0] = order[i];
        order[i] = swap;
        sift(places, order, 0, i, after);
    }
}

/* `order`: largest first. `placed` becomes the same by offset. */
static uint64_t fit(uir_rt_place *places, const uint32_t *order, uint32_t count, uint32_t *placed) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        uir_rt_place *p = &places[order[i]];
        uint64_t offset = 0;
        for (uint32_t k = 0; k < i; k++) {
            const uir_rt_place *other = &places[placed[k]];
            if (!live_together(other, p)) continue;
            if (other->offset >= offset + p->size) continue; /* fits before it, as far as this one goes */
            if (other->offset + other->size > offset) offset = other->offset + other->size;
        }
        /* By offset: the scan above passes gaps in order. */
        uint32_t at = i;
        while (at > 0 && places[placed[at - 1]].offset > offset) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = order[i];
        p->offset = offset;
        if (offset + p->size > total) total = offset + p->size;
    }
    return total;
}

/* The power of two that a slot is for it. */
static uint32_t class_of(uint64_t size) {
    return size <= 1 ? 0 : CLASSES - (uint32_t)__builtin_clzll(size - 1);
}

/* `order`: by their beginnings. `alive`: a heap whose root ends first; `next`: per place, the slot after its own among
 * the free ones of the class, + 1. */
static uint64_t pack(uir_rt_place *places, const uint32_t *order, uint32_t count, uint32_t *alive, uint32_t *next,
                     uint64_t total) {
    uint32_t free_slots[CLASSES + 1] = {0}, living = 0;
    for (uint32_t i = 0; i < count; i++) {
        uir_rt_place *p = &places[order[i]];
        uint32_t class = class_of(p->size);
        while (living && places[alive[0]].end < p->begin) {
            uint32_t done = alive[0], its = class_of(places[done].size);
            next[done] = free_slots[its];
            free_slots[its] = done + 1;
            alive[0] = alive[--living];
            sift(places, alive, 0, living, ends_earlier);
        }
        if (free_slots[class]) {
            p->offset = places[free_slots[class] - 1].offset;
            free_slots[class] = next[free_slots[class] - 1];
        } else {
            p->offset = total;
            if (p->size && (class >= CLASSES - 1 || __builtin_add_overflow(total, (uint64_t)1 << class, &total)))
                return UINT64_MAX;
        }
        uint32_t at = living++;
        alive[at] = order[i];
        for (; at > 0 && ends_earlier(&places[alive[at]], &places[alive[(at - 1) / 2]]); at = (at - 1) / 2) {
            uint32_t swap = alive[at];
            alive[at] = alive[(at - 1) / 2];
            alive[(at - 1) / 2] = swap;
        }
    }
    return total;
}

uint64_t uir_rt_assign_offsets(uir_rt_place *places, uint32_t all, uir_plan_domain domain, uint32_t *work) {
    uint32_t *order = work, *placed = work + all, count = 0;
    for (uint32_t i = 0; i < all; i++)
        if (places[i].domain == (uint32_t)domain) order[count++] = i;
    uint32_t fitted = count < FITTED ? count : FITTED;
    sort(places, order, count, is_smaller);
    uint64_t total = fit(places, order, fitted, placed);
    sort(places, order + fitted, count - fitted, begins_later);
    return pack(places, order + fitted, count - fitted, placed, work + 2 * (size_t)all, total);
}
