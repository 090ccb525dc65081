/* The rewrites that join clusters, in the order of the table, each over the whole graph.
 *
 * Reductions and contractions grow first, each taking the trivial nodes after it as far as they go; then, from the end
 * of the graph to its beginning, each trivial node left goes to its consumer, or is computed by each of them when it is
 * cheap; last, reshapes at the edges of groups are put outside, where they move nothing. */
#include "fusion/clusters.h"

#include <stdio.h>
#include <string.h>

static bool runs(const uir_clusters *c, uir_fusion_rewrite rewrite) {
    return c->rewrites >> rewrite & 1;
}
static void fire(const uir_clusters *c, uir_fusion_rewrite rewrite) {
    if (c->options->fired) c->options->fired[rewrite]++;
}

/* "mul (node_scale)". */
static void describe(const uir_clusters *c, uint32_t place, char *text, size_t capacity) {
    const uir_node_info *node = uir_clusters_node(c, place);
    const char *name = uir_string_text(&c->module->strings, node->name);
    snprintf(text, capacity, "%s%s%.80s%s", uir_op_name(node->op), *name ? " (" : "", name, *name ? ")" : "");
}

static uir_status say(uir_clusters *c, uir_fusion_rewrite rewrite, uint32_t what, const char *where, uint32_t target,
                      const char **out_line) {
    char first[128], second[128], line[320];
    describe(c, what, first, sizeof first);
    describe(c, target, second, sizeof second);
    snprintf(line, sizeof line, "%s: %s %s %s", uir_fusion_rewrite_name(rewrite), first, where, second);
    UIR_TRY_ALLOCATE(*out_line, uir_arena_copy_string(c->arena, line, strlen(line)));
    return UIR_STATUS_OK;
}

static bool has_class(const uir_clusters *c, uint32_t cluster, uir_fusion_class class) {
    const uir_node_set *places = &c->clusters.data[cluster].places;
    for (uint32_t i = 0; i < places->count; i++)
        if (c->items[places->data[i]].class == class) return true;
    return false;
}

/* A reshape by itself moves nothing: no kernel is made of it. */
static bool only_reshapes(const uir_clusters *c, uint32_t cluster) {
    const uir_node_set *places = &c->clusters.data[cluster].places;
    for (uint32_t i = 0; i < places->count; i++)
        if (c->items[places->data[i]].class != UIR_FUSION_CLASS_RESHAPE) return false;
    return true;
}

/* What speaks for a cluster in a trace: its reduction or contraction, else its last node. */
static uint32_t seed_of(const uir_clusters *c, uint32_t cluster) {
    const uir_node_set *places = &c->clusters.data[cluster].places;
    for (uint32_t i = 0; i < places->count; i++)
        if (!uir_fusion_is_trivial(c->items[places->data[i]].class)) return places->data[i];
    return places->data[places->count - 1];
}

/* The clusters that read the place's result without computing it; `out_plain`: something else does. */
static uir_status find_readers(uir_clusters *c, uint32_t place, uir_node_set *out_readers, bool *out_plain) {
    const uir_fusion_item *item = &c->items[place];
    const uir_node_info *node = uir_clusters_node(c, place);
    *out_plain = c->is_result[node->outputs[0].id];
    for (uint32_t i = 0; i < item->users.count; i++) {
        const uir_node_set *where = &c->items[item->users.data[i]].where;
        for (uint32_t k = 0; k < where->count; k++) {
            const uir_cluster *reader = &c->clusters.data[where->data[k]];
            if (uir_node_set_has(&reader->places, place)) continue;
            if (reader->is_plain)
                *out_plain = true;
            else
                UIR_TRY(uir_node_set_add(c->arena, out_readers, where->data[k]));
        }
    }
    return UIR_STATUS_OK;
}

/* ---- tails: what comes after a reduction, contraction, gather, pad or concat ---- */
typedef struct tail {
    uir_clusters *c;
    uir_fusion_rewrite rewrite;
    bool takes_reduces;
    uir_candidate candidate;
    uir_node_set added; /* clusters */
} tail;

static bool may_join(const tail *t, uint32_t cluster) {
    if (t->c->clusters.data[cluster].is_plain) return false;
    if (uir_clusters_is_trivial(t->c, cluster)) return true;
    return t->takes_reduces && has_class(t->c, cluster, UIR_FUSION_CLASS_REDUCE);
}

static bool is_member(const uir_candidate *candidate, uint32_t cluster) {
    for (uint32_t i = 0; i < candidate->members.count; i++)
        if (candidate->members.data[i] == cluster) return true;
    return false;
}

/* One more cluster, or two at once (NONE: one). */
static uir_status try_add(tail *t, uint32_t first, uint32_t second, bool *out_added) {
    uir_candidate more = {0};
    uir_clusters *c = t->c;
    for (uint32_t i = 0; i < t->candidate.members.count; i++)
        UIR_TRY(uir_candidate_add(c, &more, t->candidate.members.data[i]));
    UIR_TRY(uir_candidate_add(c, &more, first));
    if (second != UIR_FUSION_NONE) UIR_TRY(uir_candidate_add(c, &more, second));
    UIR_TRY(uir_candidate_is_legal(c, &more, out_added));
    if (!*out_added) return UIR_STATUS_OK;
    t->candidate = more;
    UIR_TRY(uir_vector_push(c->arena, &t->added, first));
    return second != UIR_FUSION_NONE ? uir_vector_push(c->arena, &t->added, second) : UIR_STATUS_OK;
}

static bool is_open(const tail *t, uint32_t cluster) {
    return cluster != UIR_FUSION_NONE && !is_member(&t->candidate, cluster) && may_join(t, cluster);
}

/* A broadcast's new axes are those of what reads it: only with a reader is it known whether they are the tail's. */
static uir_status try_with_reader(tail *t, uint32_t place, bool *out_added) {
    uir_clusters *c = t->c;
    *out_added = false;
    if (c->items[place].class != UIR_FUSION_CLASS_VIEW) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < c->items[place].users.count && !*out_added; i++) {
        uint32_t reader = c->items[c->items[place].users.data[i]].home;
        if (is_open(t, reader)) UIR_TRY(try_add(t, c->items[place].home, reader, out_added));
    }
    return UIR_STATUS_OK;
}

static uir_status grow_once(tail *t, bool *out_grew) {
    uir_clusters *c = t->c;
    uir_node_set users = {0};
    *out_grew = false;
    for (uint32_t i = 0; i < t->candidate.places.count; i++) {
        const uir_node_set *of = &c->items[t->candidate.places.data[i]].users;
        for (uint32_t k = 0; k < of->count; k++)
            if (is_open(t, c->items[of->data[k]].home)) UIR_TRY(uir_node_set_add(c->arena, &users, of->data[k]));
    }
    for (uint32_t i = 0; i < users.count; i++) {
        uint32_t home = c->items[users.data[i]].home;
        bool added = false;
        if (!is_open(t, home)) continue;
        UIR_TRY(try_add(t, home, UIR_FUSION_NONE, &added));
        if (!added) UIR_TRY(try_with_reader(t, users.data[i], &added));
        *out_grew |= added;
    }
    return UIR_STATUS_OK;
}

/* Whether those that read the place's result could as well compute it. */
static uir_status goes_elsewhere(tail *t, uint32_t place, bool *out_goes) {
    uir_clusters *c = t->c;
    *out_goes = !c->is_result[uir_clusters_node(c, place)->outputs[0].id];
    const uir_node_set *users = &c->items[place].users;
    for (uint32_t i = 0; i < users->count; i++) {
        uint32_t user = users->data[i];
        uir_fusion_class class = c->items[user].class;
        bool takes = uir_fusion_is_trivial(class) || class == UIR_FUSION_CLASS_REDUCE ||
                     (uir_clusters_node(c, user)->op == UIR_OP_MATMUL && !c->items[place].is_heavy) ||
                     (class == UIR_FUSION_CLASS_CONTRACTION && uir_clusters_widens_factor(c, place));
        if (!takes || (c->items[place].is_heavy && users->count > 1)) *out_goes = false;
    }
    return UIR_STATUS_OK;
}

/* Whether the place is made of a result that is written anyway, by nodes that serve nothing else. */
static bool leads_back(const tail *t, uint32_t place) {
    const uir_node_info *node = uir_clusters_node(t->c, place);
    for (uint32_t k = 0; k < node->input_count; k++) {
        uint32_t maker = uir_clusters_maker(t->c, node->inputs[k]);
        if (maker == UIR_FUSION_NONE || !uir_node_set_has(&t->candidate.places, maker)) continue;
        if (uir_candidate_gives(t->c, &t->candidate, maker)) return true;
        const uir_fusion_item *item = &t->c->items[maker];
        bool serves_it = uir_fusion_is_trivial(item->class) && !item->is_heavy && item->users.count == 1;
        if (serves_it && leads_back(t, maker)) return true;
    }
    return false;
}

/* Whether the candidate would write no more without the place: then it writes a result that is there anyway, or what
 * the place is made of, which is smaller. */
static bool writes_more(const tail *t, uint32_t place) {
    const uir_node_info *node = uir_clusters_node(t->c, place);
    double without = 0;
    if (leads_back(t, place)) return true;
    for (uint32_t k = 0; k < node->input_count; k++) {
        uint32_t maker = uir_clusters_maker(t->c, node->inputs[k]);
        if (maker != UIR_FUSION_NONE && uir_node_set_has(&t->candidate.places, maker))
            without += uir_clusters_bytes(t->c, node->inputs[k]);
    }
    return without < uir_clusters_bytes(t->c, node->outputs[0]);
}

/* Nodes at the end that write what others could compute from a result that is written anyway are given back. */
static uir_status prune_once(tail *t, bool *out_pruned) {
    uir_clusters *c = t->c;
    *out_pruned = false;
    for (uint32_t i = t->added.count; i-- > 0;) {
        const uir_node_set *places = &c->clusters.data[t->added.data[i]].places;
        uint32_t place = places->data[places->count - 1];
        bool goes;
        if (places->count != 1 || !uir_fusion_is_trivial(c->items[place].class)) continue;
        if (!uir_candidate_gives(c, &t->candidate, place) || !writes_more(t, place)) continue;
        UIR_TRY(goes_elsewhere(t, place, &goes));
        if (!goes) continue;
        uir_candidate less = {0};
        for (uint32_t k = 0; k < t->candidate.members.count; k++)
            if (t->candidate.members.data[k] != t->added.data[i])
                UIR_TRY(uir_candidate_add(c, &less, t->candidate.members.data[k]));
        bool legal; /* without it there may be a way around, or a result that must not be one */
        UIR_TRY(uir_candidate_is_legal(c, &less, &legal));
        if (!legal) continue;
        t->candidate = less;
        for (uint32_t k = i; k + 1 < t->added.count; k++) t->added.data[k] = t->added.data[k + 1];
        t->added.count--;
        *out_pruned = true;
    }
    return UIR_STATUS_OK;
}

static uir_status grow_tail(uir_clusters *c, uint32_t cluster, uir_fusion_rewrite rewrite, bool takes_reduces) {
    tail t = {.c = c, .rewrite = rewrite, .takes_reduces = takes_reduces};
    bool again = true;
    UIR_TRY(uir_candidate_of(c, cluster, &t.candidate));
    while (again) UIR_TRY(grow_once(&t, &again));
    for (again = true; again;) UIR_TRY(prune_once(&t, &again));
    uint32_t seed = seed_of(c, cluster);
    for (uint32_t i = 0; i < t.added.count; i++) {
        const uir_node_set *places = &c->clusters.data[t.added.data[i]].places;
        const char *line;
        uint32_t pair[2] = {cluster, t.added.data[i]};
        UIR_TRY(say(c, rewrite, places->data[0], "after", seed, &line));
        UIR_TRY(uir_clusters_join(c, &(uir_node_set){pair, 2, 2}, line));
        fire(c, rewrite);
    }
    return UIR_STATUS_OK;
}

static uir_status grow_all(uir_clusters *c, uint32_t classes, uir_fusion_rewrite rewrite) {
    for (uint32_t p = 0; p < c->count && runs(c, rewrite); p++) {
        uint32_t home = c->items[p].home;
        if (!(1u << c->items[p].class & classes) || home == UIR_FUSION_NONE) continue;
        UIR_TRY(grow_tail(c, home, rewrite, rewrite == UIR_FUSION_GROW));
    }
    return UIR_STATUS_OK;
}

/* ---- heads: trivial nodes into what reads them ---- */
/* The two as one, beside each by itself. */
static bool moves_more(uir_clusters *c, const uir_candidate *both, uint32_t first, uint32_t second) {
    const uir_candidate a = {c->clusters.data[first].places, {&first, 1, 1}};
    const uir_candidate b = {c->clusters.data[second].places, {&second, 1, 1}};
    return uir_clusters_checks(c, UIR_FUSION_CLAUSE_TRAFFIC) &&
           uir_candidate_traffic(c, both) > uir_candidate_traffic(c, &a) + uir_candidate_traffic(c, &b);
}

static uir_status try_join(uir_clusters *c, uint32_t from, uint32_t into, uir_fusion_rewrite rewrite,
                           bool *out_joined) {
    uint32_t pair[2] = {into, from};
    uir_candidate candidate = {.members = {pair, 2, 2}};
    const char *line;
    *out_joined = false;
    if (!runs(c, rewrite)) return UIR_STATUS_OK;
    /* Most pairs of a large graph are refused by what is quick to see. */
    if (uir_clusters_checks(c, UIR_FUSION_CLAUSE_CYCLE) && uir_candidate_has_cycle(c, &candidate)) return UIR_STATUS_OK;
    uir_arena_mark mark = uir_arena_get_mark(c->arena);
    UIR_TRY(uir_candidate_of(c, into, &candidate));
    UIR_TRY(uir_candidate_add(c, &candidate, from));
    if (uir_candidate_fits(c, &candidate) && !moves_more(c, &candidate, into, from))
        UIR_TRY(uir_candidate_is_legal(c, &candidate, out_joined));
    if (!*out_joined) {
        uir_arena_return_to(c->arena, mark);
        return UIR_STATUS_OK;
    }
    UIR_TRY(say(c, rewrite, seed_of(c, from), "into", seed_of(c, into), &line));
    fire(c, rewrite);
    return uir_clusters_join(c, &candidate.members, line);
}

/* Work that a wider domain would repeat for each of its points. */
static bool repeats_heavy_work(uir_clusters *c, uint32_t from, uint32_t into) {
    const uir_node_set *places = &c->clusters.data[from].places;
    double most = 0, own = 0;
    bool heavy = false;
    if (has_class(c, into, UIR_FUSION_CLASS_REDUCE)) return false; /* computed once a row */
    for (uint32_t i = 0; i < places->count; i++) {
        heavy |= c->items[places->data[i]].is_heavy;
        own = uir_clusters_bytes(c, uir_clusters_node(c, places->data[i])->outputs[0]);
    }
    places = &c->clusters.data[into].places;
    for (uint32_t i = 0; i < places->count; i++) {
        double bytes = uir_clusters_bytes(c, uir_clusters_node(c, places->data[i])->outputs[0]);
        if (bytes > most) most = bytes;
    }
    return heavy && most > 1.5 * own;
}

static bool is_prologue(const uir_clusters *c, uint32_t from, uint32_t into) {
    const uir_node_set *places = &c->clusters.data[into].places;
    for (uint32_t i = 0; i < places->count; i++) {
        if (c->items[places->data[i]].class != UIR_FUSION_CLASS_CONTRACTION) continue;
        return c->clusters.data[from].places.data[0] < places->data[i];
    }
    return false;
}

/* The trivial nodes that only a reduction reads, so that what it reduces is known for what it is. */
static uir_status sink_into_reductions(uir_clusters *c) {
    for (uint32_t p = c->count; p-- > 0 && runs(c, UIR_FUSION_SINK);) {
        uir_node_set readers = {0};
        bool plain, joined;
        uint32_t home = c->items[p].home;
        if (c->items[p].class != UIR_FUSION_CLASS_ELEMENTWISE && c->items[p].class != UIR_FUSION_CLASS_VIEW) continue;
        UIR_TRY(find_readers(c, p, &readers, &plain));
        if (plain || readers.count != 1 || !has_class(c, readers.data[0], UIR_FUSION_CLASS_REDUCE)) continue;
        UIR_TRY(try_join(c, home, readers.data[0], UIR_FUSION_SINK, &joined));
    }
    return UIR_STATUS_OK;
}

/* ---- recompute ---- */
enum { MOST_COPIES = 3 };

static bool is_cheap(const uir_clusters *c, uint32_t place, uint32_t readers) {
    switch (c->items[place].class) {
    case UIR_FUSION_CLASS_VIEW:
    case UIR_FUSION_CLASS_RESHAPE:
    case UIR_FUSION_CLASS_SLICE:
    case UIR_FUSION_CLASS_IOTA:
        return true;
    case UIR_FUSION_CLASS_ELEMENTWISE:
        return !c->items[place].is_heavy && (readers <= MOST_COPIES || uir_clusters_widens_factor(c, place));
    default:
        return false;
    }
}

/* Each reader computes the place if it may and does not read more bytes than before: whatever else the place could have
 * been joined with, that moves no more. */
static uir_status recompute(uir_clusters *c, uint32_t place, const uir_node_set *readers, bool plain) {
    uir_node_set takers = {0};
    for (uint32_t i = 0; i < readers->count; i++) {
        uir_candidate with;
        bool legal;
        UIR_TRY(uir_candidate_of(c, readers->data[i], &with));
        double before = uir_candidate_traffic(c, &with);
        UIR_TRY(uir_node_set_add(c->arena, &with.places, place));
        if (uir_clusters_checks(c, UIR_FUSION_CLAUSE_TRAFFIC) && uir_candidate_traffic(c, &with) > before) continue;
        UIR_TRY(uir_candidate_is_legal(c, &with, &legal));
        if (legal) UIR_TRY(uir_vector_push(c->arena, &takers, readers->data[i]));
    }
    /* One that stays is computed once more for nothing, unless it is no work. */
    bool all = takers.count == readers->count && !plain;
    if (!all && c->items[place].class == UIR_FUSION_CLASS_ELEMENTWISE) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < takers.count; i++) {
        const char *line;
        UIR_TRY(say(c, UIR_FUSION_RECOMPUTE, place, "in", seed_of(c, takers.data[i]), &line));
        UIR_TRY(uir_clusters_copy(c, takers.data[i], place, line));
        fire(c, UIR_FUSION_RECOMPUTE);
    }
    return UIR_STATUS_OK;
}

static uir_status place_trivial(uir_clusters *c, uint32_t place) {
    uint32_t home = c->items[place].home;
    uir_node_set readers = {0};
    bool plain, stays, joined = false; /* stays: what reads it is no kernel, so that it is written in any case */
    if (home == UIR_FUSION_NONE || !uir_clusters_is_trivial(c, home)) return UIR_STATUS_OK;
    UIR_TRY(find_readers(c, place, &readers, &plain));
    stays = plain;
    for (uint32_t i = 0; i < readers.count; i++) stays |= only_reshapes(c, readers.data[i]);
    for (uint32_t i = 0; i < readers.count;) /* itself is none */
        if (readers.data[i] == home || only_reshapes(c, readers.data[i]))
            memmove(&readers.data[i], &readers.data[i + 1], (--readers.count - i) * sizeof *readers.data);
        else
            i++;
    if (readers.count == 1 && !plain && !repeats_heavy_work(c, home, readers.data[0])) {
        uir_fusion_rewrite rewrite = is_prologue(c, home, readers.data[0]) ? UIR_FUSION_PROLOGUE : UIR_FUSION_SINK;
        UIR_TRY(try_join(c, home, readers.data[0], rewrite, &joined));
    }
    bool single = c->clusters.data[home].places.count == 1;
    if (joined || !readers.count || !single || !runs(c, UIR_FUSION_RECOMPUTE)) return UIR_STATUS_OK;
    if (readers.count + stays < 2 || !is_cheap(c, place, readers.count)) return UIR_STATUS_OK;
    return recompute(c, place, &readers, stays);
}

static uir_status place_trivials(uir_clusters *c) {
    for (uint32_t p = c->count; p-- > 0;) UIR_TRY(place_trivial(c, p));
    return UIR_STATUS_OK;
}

/* ---- horizontal ---- */
static bool is_alike(const uir_clusters *c, uint32_t a, uint32_t b) {
    if (c->clusters.data[a].is_plain || c->clusters.data[b].is_plain || only_reshapes(c, a) || only_reshapes(c, b))
        return false;
    return (uir_clusters_is_trivial(c, a) && uir_clusters_is_trivial(c, b)) ||
           (has_class(c, a, UIR_FUSION_CLASS_REDUCE) && has_class(c, b, UIR_FUSION_CLASS_REDUCE));
}

/* Clusters of one kind that read the same value: at each value the readers are tried pairwise, in order. What of many
 * readers has become one cluster is tried once, and again only where it grew, which may make room for others. One that
 * so many in a row do not join is full, or leads to all that come after it. */
enum { MOST_MISSES = 16 };

static uir_status join_readers(uir_clusters *c, const uir_node_set *users) {
    uir_node_set done = {0};
    for (uint32_t i = 0; i < users->count; i++) {
        uint32_t a = c->items[users->data[i]].home;
        bool grew = false;
        if (a == UIR_FUSION_NONE || uir_node_set_has(&done, a)) continue;
        for (uint32_t k = i + 1, misses = 0; k < users->count && misses < MOST_MISSES; k++) {
            uint32_t b = c->items[users->data[k]].home;
            bool joined = false;
            if (b == UIR_FUSION_NONE || a == b) continue;
            if (is_alike(c, a, b)) UIR_TRY(try_join(c, b, a, UIR_FUSION_HORIZONTAL, &joined));
            misses = joined ? 0 : misses + 1;
            grew |= joined;
        }
        if (!grew) UIR_TRY(uir_node_set_add(c->arena, &done, a));
    }
    return UIR_STATUS_OK;
}

/* By value that is not made here: the places that read it, in order. */
static uir_status find_outside_readers(uir_clusters *c, uir_node_set **out_readers) {
    uir_node_set *readers;
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(c->arena, c->value_count + 1u, sizeof *readers));
    for (uint32_t p = 0; p < c->count; p++) {
        const uir_node_info *node = uir_clusters_node(c, p);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uir_node_set *of = &readers[node->inputs[k].id];
            bool is_new = !of->count || of->data[of->count - 1] != p;
            if (is_new && uir_clusters_maker(c, node->inputs[k]) == UIR_FUSION_NONE)
                UIR_TRY(uir_vector_push(c->arena, of, p));
        }
    }
    *out_readers = readers;
    return UIR_STATUS_OK;
}

static uir_status join_horizontal(uir_clusters *c) {
    const uir_graph_info *graph = uir_graph_get(c->module, c->graph);
    uir_node_set *readers;
    if (!runs(c, UIR_FUSION_HORIZONTAL)) return UIR_STATUS_OK;
    for (uint32_t p = 0; p < c->count; p++) UIR_TRY(join_readers(c, &c->items[p].users));
    UIR_TRY(find_outside_readers(c, &readers));
    for (uint32_t i = 0; i < graph->inputs.count; i++) UIR_TRY(join_readers(c, &readers[graph->inputs.data[i].id]));
    return UIR_STATUS_OK;
}

/* ---- several contractions in one group ---- */
static uir_status try_join_all(uir_clusters *c, const uir_node_set *members, uir_fusion_rewrite rewrite,
                               bool *out_joined) {
    uir_candidate candidate = {0};
    const char *line;
    for (uint32_t i = 0; i < members->count; i++) UIR_TRY(uir_candidate_add(c, &candidate, members->data[i]));
    UIR_TRY(uir_candidate_is_legal(c, &candidate, out_joined));
    if (!*out_joined) return UIR_STATUS_OK;
    UIR_TRY(
        say(c, rewrite, seed_of(c, members->data[0]), "with", seed_of(c, members->data[members->count - 1]), &line));
    fire(c, rewrite);
    return uir_clusters_join(c, &candidate.members, line);
}

/* The contractions whose results a cluster reads. */
static uir_status find_products_before(uir_clusters *c, uint32_t cluster, uir_node_set *out_clusters) {
    const uir_node_set *places = &c->clusters.data[cluster].places;
    for (uint32_t i = 0; i < places->count; i++) {
        const uir_node_info *node = uir_clusters_node(c, places->data[i]);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t maker = uir_clusters_maker(c, node->inputs[k]);
            uint32_t home = maker == UIR_FUSION_NONE ? UIR_FUSION_NONE : c->items[maker].home;
            if (home != UIR_FUSION_NONE && home != cluster && has_class(c, home, UIR_FUSION_CLASS_CONTRACTION))
                UIR_TRY(uir_node_set_add(c->arena, out_clusters, home));
        }
    }
    return UIR_STATUS_OK;
}

static bool is_product(const uir_clusters *c, uint32_t place) {
    return c->items[place].class == UIR_FUSION_CLASS_CONTRACTION && c->items[place].home != UIR_FUSION_NONE &&
           uir_clusters_node(c, place)->op == UIR_OP_MATMUL;
}

static uir_status join_attention(uir_clusters *c) {
    for (uint32_t p = 0; p < c->count && runs(c, UIR_FUSION_ATTENTION); p++) {
        uir_node_set firsts = {0};
        if (!is_product(c, p)) continue;
        uint32_t maker = uir_clusters_maker(c, uir_clusters_node(c, p)->inputs[0]), last = c->items[p].home;
        uint32_t middle = maker == UIR_FUSION_NONE ? UIR_FUSION_NONE : c->items[maker].home;
        if (middle == UIR_FUSION_NONE || middle == last) continue;
        if (has_class(c, middle, UIR_FUSION_CLASS_CONTRACTION)) { /* nothing is reduced between */
            bool joined;
            UIR_TRY(try_join_all(c, &(uir_node_set){(uint32_t[]){middle, last}, 2, 2}, UIR_FUSION_ATTENTION, &joined));
            continue;
        }
        if (!has_class(c, middle, UIR_FUSION_CLASS_REDUCE)) continue;
        UIR_TRY(find_products_before(c, middle, &firsts));
        for (uint32_t i = 0; i < firsts.count && c->items[p].home == last; i++) {
            uint32_t members[3] = {firsts.data[i], middle, last};
            bool joined;
            UIR_TRY(try_join_all(c, &(uir_node_set){members, 3, 3}, UIR_FUSION_ATTENTION, &joined));
        }
    }
    return UIR_STATUS_OK;
}

/* With those after it that have its left operand. */
static uir_status join_sibling(uir_clusters *c, uint32_t p, const uir_node_set *users) {
    for (uint32_t i = uir_node_set_find(users, p), misses = 0; i < users->count && misses < MOST_MISSES; i++) {
        uint32_t q = users->data[i], pair[2] = {c->items[p].home, c->items[q].home};
        bool joined, alike = is_product(c, q) && pair[0] != pair[1];
        if (!alike || uir_clusters_node(c, q)->inputs[0].id != uir_clusters_node(c, p)->inputs[0].id) continue;
        UIR_TRY(try_join_all(c, &(uir_node_set){pair, 2, 2}, UIR_FUSION_SIBLINGS, &joined));
        misses = joined ? 0 : misses + 1;
    }
    return UIR_STATUS_OK;
}

static uir_status join_siblings(uir_clusters *c) {
    uir_node_set *outside;
    UIR_TRY(find_outside_readers(c, &outside));
    for (uint32_t p = 0; p < c->count && runs(c, UIR_FUSION_SIBLINGS); p++) {
        if (!is_product(c, p)) continue;
        uir_value_id left = uir_clusters_node(c, p)->inputs[0];
        uint32_t maker = uir_clusters_maker(c, left);
        UIR_TRY(join_sibling(c, p, maker == UIR_FUSION_NONE ? &outside[left.id] : &c->items[maker].users));
    }
    return UIR_STATUS_OK;
}

/* ---- reshapes at the edges ---- */
/* At the end what it reads becomes the result instead: that must be this cluster's to give. */
static bool is_edge(const uir_clusters *c, uint32_t cluster, uint32_t place) {
    const uir_cluster *of = &c->clusters.data[cluster];
    uint32_t maker = uir_clusters_maker(c, uir_clusters_node(c, place)->inputs[0]);
    if (maker == UIR_FUSION_NONE || !uir_node_set_has(&of->places, maker)) return true;
    if (c->items[place].home != cluster) return false;
    if (c->items[maker].home != cluster && c->items[maker].home != UIR_FUSION_NONE) return false;
    const uir_node_set *users = &c->items[place].users;
    for (uint32_t i = 0; i < users->count; i++)
        if (uir_node_set_has(&of->places, users->data[i])) return false;
    return true;
}

/* Where another cluster is the home of what this one computed for itself, that has to give it from now on. */
static uir_status may_give(uir_clusters *c, uint32_t place, uint32_t cluster, bool *out_may) {
    uint32_t home = c->items[place].home;
    uir_candidate giver = {0};
    *out_may = true;
    if (home == UIR_FUSION_NONE || home == cluster || c->clusters.data[home].is_plain) return UIR_STATUS_OK;
    UIR_TRY(uir_candidate_of(c, home, &giver));
    return uir_candidate_is_legal(c, &giver, out_may);
}

static uir_status cut_edge(uir_clusters *c, uint32_t cluster, uint32_t place, bool *out_cut) {
    uir_candidate rest = {0};
    *out_cut = false;
    for (uint32_t i = 0; i < c->clusters.data[cluster].places.count; i++) {
        uint32_t other = c->clusters.data[cluster].places.data[i];
        if (other != place) UIR_TRY(uir_node_set_add(c->arena, &rest.places, other));
    }
    if (!rest.places.count) return UIR_STATUS_OK;
    /* Dropped first, so that what it read or gave is seen as given and read; taken back when that is not right. */
    uir_fusion_item kept = c->items[place];
    uint32_t count = c->clusters.count;
    if (kept.where.count)
        UIR_TRY_ALLOCATE(kept.where.data,
                         uir_arena_copy(c->arena, kept.where.data, kept.where.count * sizeof *kept.where.data));
    uint32_t maker = uir_clusters_maker(c, uir_clusters_node(c, place)->inputs[0]);
    bool adopts = maker != UIR_FUSION_NONE && c->items[maker].home == UIR_FUSION_NONE;
    UIR_TRY(uir_clusters_drop(c, cluster, place));
    if (adopts) c->items[maker].home = cluster;
    UIR_TRY(uir_vector_push(c->arena, &rest.members, cluster));
    UIR_TRY(uir_candidate_is_legal(c, &rest, out_cut));
    if (*out_cut) UIR_TRY(may_give(c, place, cluster, out_cut));
    if (*out_cut) return UIR_STATUS_OK;
    if (adopts) c->items[maker].home = UIR_FUSION_NONE;
    c->items[place] = kept;
    c->clusters.count = count;
    return uir_node_set_add(c->arena, &c->clusters.data[cluster].places, place);
}

static uir_status cut_reshapes(uir_clusters *c) {
    uint32_t count = c->clusters.count;
    for (uint32_t i = 0; i < count; i++) {
        for (bool again = true; again;) {
            again = false;
            for (uint32_t k = 0; k < c->clusters.data[i].places.count && !again; k++) {
                uint32_t place = c->clusters.data[i].places.data[k];
                if (c->items[place].class == UIR_FUSION_CLASS_RESHAPE && is_edge(c, i, place))
                    UIR_TRY(cut_edge(c, i, place, &again));
            }
        }
    }
    return UIR_STATUS_OK;
}

static uir_status leave_reshapes(uir_clusters *c) {
    for (uint32_t i = 0; i < c->clusters.count; i++)
        if (only_reshapes(c, i)) c->clusters.data[i].is_plain = true;
    return UIR_STATUS_OK;
}

static uir_status sweep(uir_clusters *c) {
    uir_clusters_sweep(c);
    return UIR_STATUS_OK;
}

static uir_status grow_reductions(uir_clusters *c) {
    return grow_all(c, 1u << UIR_FUSION_CLASS_REDUCE, UIR_FUSION_GROW);
}

static uir_status grow_contractions(uir_clusters *c) {
    return grow_all(c, 1u << UIR_FUSION_CLASS_CONTRACTION, UIR_FUSION_EPILOGUE);
}

static uir_status grow_anchors(uir_clusters *c) {
    return grow_all(c, 1u << UIR_FUSION_CLASS_GATHER | 1u << UIR_FUSION_CLASS_PAD | 1u << UIR_FUSION_CLASS_CONCAT,
                    UIR_FUSION_LIFT);
}

uir_status uir_clusters_rewrite(uir_clusters *c) {
    static uir_status (*const steps[])(uir_clusters *) = {
#define UIR_FUSION_STEP(function, purpose) function,
#include "fusion/fusion.def"
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) UIR_TRY(steps[i](c));
    return UIR_STATUS_OK;
}
