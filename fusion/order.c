/* Which cluster leads to which, kept true while clusters are joined and places copied.
 *
 * Clusters as they came in, or were joined since, are knots, numbered so that paths lead to greater numbers only.
 * Whether knots may become one is searched from both ends at a time: it is known where either has no way on between
 * their numbers. When they do, what leads to them from between and what they lead to share their numbers out anew
 * (Pearce and Kelly, A dynamic topological sort algorithm for directed acyclic graphs, 2006). A copy adds no path: what
 * it reads led to its readers before. A place that has left its home stays a knot, through which paths lead, but it is
 * no cluster any more. */
#include "fusion/clusters.h"

#include <stdlib.h>

/* Edges that a search looks at from either end. What takes more counts as a cycle, so that a step costs no more in a
 * greater graph. */
enum { MOST_STEPS = 1 << 14 };

typedef struct numbered {
    uint32_t number, knot;
} numbered;

/* A knot is met at most twice: by a path through no cluster, and by one through some. */
typedef struct search {
    bool forward;
    uint32_t *met;           /* by knot: twice the turn that met it, and one where through a cluster */
    uint32_t *stack, height; /* knots to look at: twice the knot, and one where through a cluster */
    uint32_t place, edge;    /* of the knot that is looked at: where the search is */
    bool through;            /* of that knot */
    numbered *found;         /* each knot once */
    uint32_t found_count;
} search;

struct uir_cluster_order {
    uint32_t *leads;       /* by place: towards its knot, which leads to itself */
    uint32_t *next, *last; /* the places of a knot, of which it is the first: by place, by knot */
    uint32_t *number;      /* by knot */
    uint32_t *member;      /* by knot: the turn in which it is to be joined */
    uint32_t *pool;        /* numbers that are shared out */
    uint32_t turn, low, high;
    search after, before;
};
typedef struct uir_cluster_order order;

static uint32_t knot_of(order *o, uint32_t place) {
    while (o->leads[place] != place) place = o->leads[place] = o->leads[o->leads[place]];
    return place;
}

static uir_status init_search(uir_clusters *c, search *s, bool forward) {
    s->forward = forward;
    UIR_TRY_ALLOCATE(s->met, uir_arena_allocate_array(c->arena, c->count + 1u, sizeof *s->met));
    UIR_TRY_ALLOCATE(s->stack, uir_arena_allocate_array(c->arena, c->count + 1u, 2 * sizeof *s->stack));
    UIR_TRY_ALLOCATE(s->found, uir_arena_allocate_array(c->arena, c->count + 1u, sizeof *s->found));
    return UIR_STATUS_OK;
}

uir_status uir_clusters_init_order(uir_clusters *c) {
    order *o;
    UIR_TRY_ALLOCATE(o, uir_arena_allocate(c->arena, sizeof *o));
    uint32_t **const arrays[] = {&o->leads, &o->next, &o->last, &o->number, &o->member, &o->pool};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        UIR_TRY_ALLOCATE(*arrays[i], uir_arena_allocate_array(c->arena, c->count + 1u, sizeof(uint32_t)));
    UIR_TRY(init_search(c, &o->after, true));
    UIR_TRY(init_search(c, &o->before, false));
    for (uint32_t p = 0; p < c->count; p++) {
        o->leads[p] = o->last[p] = o->number[p] = p;
        o->next[p] = UIR_FUSION_NONE;
    }
    c->order = o;
    return UIR_STATUS_OK;
}

/* ---- searches ---- */
static void begin(search *s) {
    s->place = UIR_FUSION_NONE;
    s->height = s->found_count = 0;
}

static void add_member(order *o, uint32_t knot) {
    if (o->member[knot] == o->turn) return;
    o->member[knot] = o->turn;
    if (o->number[knot] < o->low) o->low = o->number[knot];
    if (o->number[knot] > o->high) o->high = o->number[knot];
    o->after.stack[o->after.height++] = o->before.stack[o->before.height++] = 2 * knot;
}

static void begin_both(order *o) {
    o->turn++;
    o->low = UINT32_MAX, o->high = 0;
    begin(&o->after);
    begin(&o->before);
}

/* Whether that closes a cycle. */
static bool meet(const uir_clusters *c, search *s, uint32_t knot) {
    order *o = c->order;
    if (o->member[knot] == o->turn) return s->through;
    if (s->forward ? o->number[knot] > o->high : o->number[knot] < o->low) return false;
    bool through = s->through || c->clusters.data[knot].places.count;
    if (s->met[knot] < 2 * o->turn) s->found[s->found_count++] = (numbered){o->number[knot], knot};
    if (s->met[knot] >= 2 * o->turn + through) return false;
    s->met[knot] = 2 * o->turn + through;
    s->stack[s->height++] = 2 * knot + through;
    return false;
}

/* One more edge; false when there is none. */
static bool step(const uir_clusters *c, search *s, bool *out_cycle) {
    order *o = c->order;
    for (;;) {
        if (s->place == UIR_FUSION_NONE) {
            if (!s->height) return false;
            uint32_t top = s->stack[--s->height];
            s->place = top / 2, s->through = top % 2, s->edge = 0;
        }
        const uir_fusion_item *item = &c->items[s->place];
        const uir_node_set *edges = s->forward ? &item->users : &item->uses;
        if (s->edge < edges->count) {
            *out_cycle = meet(c, s, knot_of(o, edges->data[s->edge++]));
            return true;
        }
        s->place = o->next[s->place], s->edge = 0;
    }
}

bool uir_candidate_has_cycle(const uir_clusters *c, const uir_candidate *candidate) {
    order *o = c->order;
    bool cycle = false;
    if (candidate->members.count < 2) return false; /* there is none among clusters as they are */
    begin_both(o);
    for (uint32_t i = 0; i < candidate->members.count; i++) add_member(o, knot_of(o, candidate->members.data[i]));
    for (uint32_t steps = 0; steps < MOST_STEPS && !cycle; steps++)
        if (!step(c, &o->after, &cycle) || (!cycle && !step(c, &o->before, &cycle))) return cycle;
    return true;
}

uir_status uir_node_set_add(uir_arena *arena, uir_node_set *places, uint32_t place) {
    if (uir_node_set_has(places, place)) return UIR_STATUS_OK;
    UIR_TRY(uir_vector_push(arena, places, place));
    for (uint32_t i = places->count - 1; i && places->data[i - 1] > place; i--) {
        places->data[i] = places->data[i - 1];
        places->data[i - 1] = place;
    }
    return UIR_STATUS_OK;
}

static void places_remove(uir_node_set *places, uint32_t place) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->data[i] != place) places->data[kept++] = places->data[i];
    places->count = kept;
}

static int compare_numbered(const void *left, const void *right) {
    const numbered *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_numbers(const void *left, const void *right) {
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void unite(order *o, uint32_t into, uint32_t other) {
    o->next[o->last[into]] = other;
    o->last[into] = o->last[other];
    o->leads[other] = into;
}

/* What was found, less those that `others` found too; sorted. Their numbers go into the pool. */
static void sort_found(order *o, search *s, const search *others, uint32_t *pooled) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->found_count; i++) {
        numbered found = s->found[i];
        if (s->forward || others->met[found.knot] < 2 * o->turn) o->pool[(*pooled)++] = found.number;
        if (others->met[found.knot] < 2 * o->turn) s->found[kept++] = found;
    }
    s->found_count = kept;
    if (kept > 1) qsort(s->found, kept, sizeof *s->found, compare_numbered);
}

/* What leads to the two and comes from them as well is a place without a cluster, through which the one led to the
 * other: it becomes a part of their knot. */
static void join_order(uir_clusters *c, uint32_t into, uint32_t other) {
    order *o = c->order;
    uint32_t a = knot_of(o, into), b = knot_of(o, other), pooled = 2;
    bool cycle;
    if (a == b) return;
    begin_both(o);
    add_member(o, a), add_member(o, b);
    while (step(c, &o->after, &cycle)) continue;
    while (step(c, &o->before, &cycle)) continue;
    o->pool[0] = o->low, o->pool[1] = o->high;
    unite(o, a, b);
    for (uint32_t i = 0; i < o->after.found_count; i++)
        if (o->before.met[o->after.found[i].knot] >= 2 * o->turn) unite(o, a, o->after.found[i].knot);
    sort_found(o, &o->after, &o->before, &pooled);
    sort_found(o, &o->before, &o->after, &pooled);
    qsort(o->pool, pooled, sizeof *o->pool, compare_numbers);
    for (uint32_t i = 0; i < o->before.found_count; i++) o->number[o->before.found[i].knot] = o->pool[i];
    o->number[a] = o->pool[o->before.found_count];
    uint32_t first = pooled - o->after.found_count;
    for (uint32_t i = 0; i < o->after.found_count; i++) o->number[o->after.found[i].knot] = o->pool[first + i];
}

static uir_status join_two(uir_clusters *c, uint32_t into, uint32_t other) {
    uir_cluster *to = &c->clusters.data[into], *from = &c->clusters.data[other];
    for (uint32_t i = 0; i < from->places.count; i++) {
        uint32_t place = from->places.data[i];
        UIR_TRY(uir_node_set_add(c->arena, &to->places, place));
        places_remove(&c->items[place].where, other);
        UIR_TRY(uir_node_set_add(c->arena, &c->items[place].where, into));
        if (c->items[place].home == other) c->items[place].home = into;
    }
    for (uint32_t i = 0; i < from->trace.count; i++)
        UIR_TRY(uir_vector_push(c->arena, &to->trace, from->trace.data[i]));
    from->places.count = from->trace.count = 0;
    join_order(c, into, other);
    return UIR_STATUS_OK;
}

/* A node recomputed by every reader needs no kernel of its own: drops its cluster. */
static void leave_home(uir_clusters *c, uint32_t place) {
    uint32_t home = c->items[place].home;
    if (home == UIR_FUSION_NONE || c->clusters.data[home].places.count != 1) return;
    const uir_candidate as_it_is = {c->clusters.data[home].places, {&home, 1, 1}};
    if (uir_candidate_gives(c, &as_it_is, place) || c->items[place].where.count < 2) return;
    places_remove(&c->items[place].where, home);
    c->clusters.data[home].places.count = 0;
    c->items[place].home = UIR_FUSION_NONE;
}

void uir_clusters_sweep(uir_clusters *c) {
    for (uint32_t p = c->count; p-- > 0;)
        if (c->items[p].home != UIR_FUSION_NONE && !c->clusters.data[c->items[p].home].is_plain) leave_home(c, p);
}

static uir_status note(uir_clusters *c, uint32_t cluster, const char *line) {
    if (!line) return UIR_STATUS_OK;
    return uir_vector_push(c->arena, &c->clusters.data[cluster].trace, line);
}

uir_status uir_clusters_join(uir_clusters *c, const uir_node_set *members, const char *line) {
    uint32_t into = members->data[0];
    for (uint32_t i = 1; i < members->count; i++) UIR_TRY(join_two(c, into, members->data[i]));
    return note(c, into, line);
}

uir_status uir_clusters_copy(uir_clusters *c, uint32_t cluster, uint32_t place, const char *line) {
    UIR_TRY(uir_node_set_add(c->arena, &c->clusters.data[cluster].places, place));
    UIR_TRY(uir_node_set_add(c->arena, &c->items[place].where, cluster));
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
    UIR_TRY(uir_node_set_add(c->arena, &c->items[place].where, c->clusters.count));
    return uir_vector_push(c->arena, &c->clusters, alone);
}
