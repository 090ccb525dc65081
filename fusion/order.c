/* Which cluster leads to which, kept true while clusters are joined and places copied. A copy adds no path: what it
 * reads led to its readers before. */
#include "fusion/clusters.h"

#include <string.h>

enum { WORDS = UIR_FUSION_WINDOW / 64 };

/* Bits are over places of the window: a cluster is known by its own index, which is that of one of its first places. */
static uint64_t *row(uint64_t *table, uint32_t cluster) {
    return table + (size_t)cluster * WORDS;
}
static bool has(const uint64_t *bits, uint32_t cluster) {
    return bits[cluster % UIR_FUSION_WINDOW / 64] >> (cluster % 64) & 1;
}
static void put(uint64_t *bits, uint32_t cluster) {
    bits[cluster % UIR_FUSION_WINDOW / 64] |= (uint64_t)1 << (cluster % 64);
}
static void take(uint64_t *bits, uint32_t cluster) {
    bits[cluster % UIR_FUSION_WINDOW / 64] &= ~((uint64_t)1 << (cluster % 64));
}
static void unite(uint64_t *to, const uint64_t *from) {
    for (uint32_t w = 0; w < WORDS; w++) to[w] |= from[w];
}
static uint32_t window_of(uint32_t cluster) {
    return cluster / UIR_FUSION_WINDOW;
}

uir_status uir_clusters_init_order(uir_clusters *c) {
    UIR_TRY_ALLOCATE(c->after, uir_arena_allocate_array(c->arena, c->count + 1u, WORDS * sizeof *c->after));
    UIR_TRY_ALLOCATE(c->before, uir_arena_allocate_array(c->arena, c->count + 1u, WORDS * sizeof *c->before));
    for (uint32_t p = 0; p < c->count; p++) {
        const uir_places *uses = &c->items[p].uses;
        for (uint32_t i = 0; i < uses->count; i++) {
            uint32_t use = uses->data[i];
            if (window_of(use) != window_of(p)) continue;
            unite(row(c->before, p), row(c->before, use));
            put(row(c->before, p), use);
        }
        for (uint32_t q = window_of(p) * UIR_FUSION_WINDOW; q < p; q++)
            if (has(row(c->before, p), q)) put(row(c->after, q), p);
    }
    return UIR_STATUS_OK;
}

bool uir_candidate_has_cycle(const uir_clusters *c, const uir_candidate *candidate) {
    uint64_t after[WORDS] = {0}, before[WORDS] = {0};
    for (uint32_t i = 0; i < candidate->members.count; i++) {
        uint32_t m = candidate->members.data[i];
        if (window_of(m) != window_of(candidate->members.data[0])) return true; /* not told apart from one */
        unite(after, row(c->after, m));
        unite(before, row(c->before, m));
    }
    for (uint32_t i = 0; i < candidate->members.count; i++) take(after, candidate->members.data[i]);
    for (uint32_t w = 0; w < WORDS; w++)
        if (after[w] & before[w]) return true;
    return false;
}

uir_status uir_places_add(uir_arena *arena, uir_places *places, uint32_t place) {
    if (uir_places_has(places, place)) return UIR_STATUS_OK;
    UIR_TRY(uir_vector_push(arena, places, place));
    for (uint32_t i = places->count - 1; i && places->data[i - 1] > place; i--) {
        places->data[i] = places->data[i - 1];
        places->data[i - 1] = place;
    }
    return UIR_STATUS_OK;
}

static void places_remove(uir_places *places, uint32_t place) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->data[i] != place) places->data[kept++] = places->data[i];
    places->count = kept;
}

static void join_order(uir_clusters *c, uint32_t into, uint32_t other) {
    uint64_t *after = row(c->after, into), *before = row(c->before, into);
    unite(after, row(c->after, other));
    unite(before, row(c->before, other));
    take(after, into), take(after, other), take(before, into), take(before, other);
    uint32_t first = window_of(into) * UIR_FUSION_WINDOW;
    for (uint32_t q = first; q < c->count && q < first + UIR_FUSION_WINDOW; q++) {
        take(row(c->after, q), other), take(row(c->before, q), other);
        if (has(before, q)) {
            unite(row(c->after, q), after);
            put(row(c->after, q), into);
        }
        if (has(after, q)) {
            unite(row(c->before, q), before);
            put(row(c->before, q), into);
        }
    }
}

static uir_status join_two(uir_clusters *c, uint32_t into, uint32_t other) {
    uir_cluster *to = &c->clusters.data[into], *from = &c->clusters.data[other];
    for (uint32_t i = 0; i < from->places.count; i++) {
        uint32_t place = from->places.data[i];
        UIR_TRY(uir_places_add(c->arena, &to->places, place));
        places_remove(&c->items[place].where, other);
        UIR_TRY(uir_places_add(c->arena, &c->items[place].where, into));
        if (c->items[place].home == other) c->items[place].home = into;
    }
    for (uint32_t i = 0; i < from->trace.count; i++)
        UIR_TRY(uir_vector_push(c->arena, &to->trace, from->trace.data[i]));
    from->places.count = from->trace.count = 0;
    join_order(c, into, other);
    return UIR_STATUS_OK;
}

/* A place that all who read it compute themselves leaves its home. */
static void leave_home(uir_clusters *c, uint32_t place) {
    uint32_t home = c->items[place].home;
    if (home == UIR_FUSION_NONE || c->clusters.data[home].places.count != 1) return;
    const uir_candidate as_it_is = {c->clusters.data[home].places, {&home, 1, 1}};
    if (uir_candidate_gives(c, &as_it_is, place) || c->items[place].where.count < 2) return;
    places_remove(&c->items[place].where, home);
    c->clusters.data[home].places.count = 0;
    c->items[place].home = UIR_FUSION_NONE;
    uint32_t first = window_of(home) * UIR_FUSION_WINDOW;
    for (uint32_t q = first; q < c->count && q < first + UIR_FUSION_WINDOW; q++)
        take(row(c->after, q), home), take(row(c->before, q), home);
}

void uir_clusters_sweep(uir_clusters *c) {
    for (uint32_t p = c->count; p-- > 0;)
        if (c->items[p].home != UIR_FUSION_NONE && !c->clusters.data[c->items[p].home].is_plain) leave_home(c, p);
}

static uir_status note(uir_clusters *c, uint32_t cluster, const char *line) {
    if (!line) return UIR_STATUS_OK;
    return uir_vector_push(c->arena, &c->clusters.data[cluster].trace, line);
}

uir_status uir_clusters_join(uir_clusters *c, const uir_places *members, const char *line) {
    uint32_t into = members->data[0];
    for (uint32_t i = 1; i < members->count; i++) UIR_TRY(join_two(c, into, members->data[i]));
    return note(c, into, line);
}

uir_status uir_clusters_copy(uir_clusters *c, uint32_t cluster, uint32_t place, const char *line) {
    UIR_TRY(uir_places_add(c->arena, &c->clusters.data[cluster].places, place));
    UIR_TRY(uir_places_add(c->arena, &c->items[place].where, cluster));
    leave_home(c, place);
    return note(c, cluster, line);
}

uir_status uir_clusters_drop(uir_clusters *c, uint32_t cluster, uint32_t place) {
    places_remove(&c->clusters.data[cluster].places, place);
    places_remove(&c->items[place].where, cluster);
    if (c->items[place].home != cluster && c->items[place].home != UIR_FUSION_NONE) return UIR_STATUS_OK;
    uir_cluster alone = {0};
    UIR_TRY(uir_vector_push(c->arena, &alone.places, place));
    c->items[place].home = c->clusters.count;
    UIR_TRY(uir_places_add(c->arena, &c->items[place].where, c->clusters.count));
    return uir_vector_push(c->arena, &c->clusters, alone);
}
