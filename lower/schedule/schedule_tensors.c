/* Tensors: caches, spaces, shrinking to what is alive; annotations. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

static uir_status copy_text(uir_schedule *s, const char *text, const char **out) {
    UIR_TRY_ALLOCATE(*out, uir_arena_copy_string(&s->function->arena, text, strlen(text)));
    return UIR_STATUS_OK;
}

static uir_status need_tensor(uir_schedule *s, uint32_t tensor) {
    return tensor < s->function->tensors.count ? UIR_STATUS_OK : uir_step_refuse(s, "unknown tensor %u", tensor);
}

/* ---- annotations and spaces ---- */
static uir_status annotate(uir_schedule *s, uint32_t block, const char *mark) {
    const char **list, *copy;
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    UIR_TRY(copy_text(s, mark, &copy));
    UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(&s->function->arena, b->annotation_count + 1, sizeof *list));
    for (uint32_t i = 0; i < b->annotation_count; i++) list[i] = b->annotations[i];
    list[b->annotation_count] = copy;
    b->annotations = list;
    b->annotation_count++;
    uir_text quoted;
    uir_text_init(&quoted, &s->allocator);
    uir_text_append_quoted(&quoted, mark, strlen(mark));
    uir_status status = uir_text_status(&quoted);
    if (status == UIR_STATUS_OK) uir_step_say(s, "annotate %s with %s", b->name, quoted.data);
    uir_text_deinit(&quoted);
    return status;
}

uir_status uir_schedule_annotate(uir_schedule *schedule, uint32_t block, const char *mark) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, annotate(schedule, block, mark));
}

static uir_status set_scope(uir_schedule *s, uint32_t tensor, const char *space) {
    UIR_TRY(need_tensor(s, tensor));
    uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    if (t->role != UIR_LOOP_ROLE_TEMP) return uir_step_refuse(s, "%s belongs to the caller", t->name);
    UIR_TRY(copy_text(s, space, &t->space));
    uir_step_moved(s, tensor);
    uir_step_say(s, "set scope of %s to %s", t->name, space);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_set_scope(uir_schedule *schedule, uint32_t tensor, const char *space) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, set_scope(schedule, tensor, space));
}

/* ---- caches ---- */
typedef struct redirection {
    uir_schedule *s;
    uint32_t from, to;
} redirection;

static uir_status redirect_expression(const redirection *r, uint32_t id, uint32_t *out_id) {
    uir_loop_function *f = r->s->function;
    uir_loop_expression e = f->expressions.data[id];
    bool changed = e.kind == UIR_LOOP_LOAD && e.load.tensor == r->from;
    if (changed) e.load.tensor = r->to;
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument;
        UIR_TRY(redirect_expression(r, e.arguments[i], &argument));
        changed |= argument != e.arguments[i];
        e.arguments[i] = argument;
    }
    *out_id = id;
    if (!changed) return UIR_STATUS_OK;
    *out_id = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

static uir_status redirect_block(const redirection *r, uint32_t block, bool writes) {
    uir_schedule *s = r->s;
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (!b->iters[i].data || b->iters[i].from->tensor != r->from) continue;
        uir_loop_access from = *b->iters[i].from;
        from.tensor = r->to;
        UIR_TRY_ALLOCATE(b->iters[i].from, uir_arena_copy(&s->function->arena, &from, sizeof from));
    }
    for (uint32_t id = b->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        uir_loop_statement *st = UIR_SCHEDULE_AT(s, id);
        for (uint32_t i = 0; i < st->value_count; i++) UIR_TRY(redirect_expression(r, st->values[i], &st->values[i]));
        for (uint32_t i = 0; writes && i < st->target_count; i++)
            if (st->targets[i].tensor == r->from) st->targets[i].tensor = r->to;
    }
    return UIR_STATUS_OK;
}

uir_status uir_block_redirect(uir_schedule *s, uint32_t block, uint32_t from, uint32_t to) {
    redirection r = {s, from, to};
    return redirect_block(&r, block, false);
}

/* A TEMP like the tensor, named after it and the space. */
static uir_status add_like(uir_schedule *s, uint32_t tensor, const char *space, uint32_t *out_tensor) {
    uir_loop_tensor t = *UIR_SCHEDULE_TENSOR(s, tensor);
    char base[200];
    snprintf(base, sizeof base, "%.120s_%.60s", t.name, space);
    UIR_TRY(uir_tree_tensor_name(s, base, &t.name));
    UIR_TRY(copy_text(s, space, &t.space));
    t.role = UIR_LOOP_ROLE_TEMP;
    t.constant = false;
    t.layout = NULL;
    *out_tensor = s->function->tensors.count;
    return uir_vector_push(&s->function->arena, &s->function->tensors, t);
}

/* for all elements: to = from; a nest that stands nowhere yet. */
static uir_status add_copy(uir_schedule *s, uint32_t from, uint32_t to, uint32_t place, uint32_t *out_top,
                           uint32_t *out_block) {
    uir_loop_function *f = s->function;
    uir_loop_tensor t = *UIR_SCHEDULE_TENSOR(s, to);
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS];
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
    uir_loop_statement store = {.kind = UIR_LOOP_STATEMENT_STORE, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = t.dtype};
    UIR_TRY(uir_tree_block_name(s, t.name, &block.name));
    for (uint32_t d = 0; d < t.rank; d++) {
        uir_loop_iter *iter = &block.iters[d];
        char name[16];
        snprintf(name, sizeof name, "c%u", d);
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, t.extents[d]};
        UIR_TRY(copy_text(s, name, &iter->name));
        UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &iter->symbol));
        iter->extent = extent[d] = t.extents[d];
        iter->value = low[d] = uir_dim_const(f->dims, 0);
        store.targets[0].indices[d] = load.load.indices[d] = uir_dim_symbol(f->dims, iter->symbol);
    }
    block.iter_count = t.rank;
    store.targets[0].tensor = to;
    load.load.tensor = from;
    store.target_count = store.value_count = 1;
    store.values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    UIR_TRY(uir_tree_add(s, &store, &block.first_child));
    UIR_TRY(uir_tree_add(s, &block, out_block));
    UIR_TRY(uir_move_build_nest(s, *out_block, place, low, extent, out_top));
    s->full.data[*out_block] = true;
    return UIR_STATUS_OK;
}

static bool writes_under(uir_schedule *s, uint32_t root, uint32_t tensor) {
    uint32_t count = uir_schedule_writers(s, tensor, NULL, 0), blocks[16];
    if (count > 16) return true;
    uir_schedule_writers(s, tensor, blocks, 16);
    for (uint32_t i = 0; i < count; i++)
        if (s->places.data[blocks[i]] >= s->places.data[root] || uir_tree_holds(s, root, blocks[i])) return true;
    return false;
}

static bool reads(uir_schedule *s, uint32_t block, uint32_t tensor) {
    uint32_t count = uir_schedule_readers(s, tensor, NULL, 0);
    uint32_t *blocks = uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks);
    if (!blocks) return false;
    uir_schedule_readers(s, tensor, blocks, count);
    for (uint32_t i = 0; i < count; i++)
        if (blocks[i] == block) return true;
    return false;
}

/* A copy reads every element: each must be written, by a block that has them all. */
static uir_status is_whole(uir_schedule *s, uint32_t tensor, bool *out) {
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    uint32_t count = uir_schedule_writers(s, tensor, NULL, 0), *blocks;
    bool whole = t->role != UIR_LOOP_ROLE_TEMP;
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks));
    uir_schedule_writers(s, tensor, blocks, count);
    for (uint32_t i = 0; i < count && !whole; i++) {
        uint32_t statement = uir_block_only_statement(s, blocks[i]), iters[UIR_LOOP_MAX_RANK];
        const uir_loop_statement *b = UIR_SCHEDULE_AT(s, blocks[i]);
        if (statement == UIR_LOOP_NONE || !s->full.data[blocks[i]]) continue;
        const uir_loop_statement *st = UIR_SCHEDULE_AT(s, statement);
        bool reduces = st->kind == UIR_LOOP_STATEMENT_UPDATE || st->kind == UIR_LOOP_STATEMENT_COMBINE;
        uint32_t of = 0; /* of the statement's targets, this one */
        while (of + 1 < st->target_count && st->targets[of].tensor != tensor) of++;
        bool plain = !reduces && st->targets[of].tensor == tensor &&
                     uir_access_is_plain(s, b, &st->targets[of], iters) && b->iter_count == t->rank;
        for (uint32_t d = 0; plain && d < b->iter_count; d++)
            plain = uir_dim_compare(s->function->dims, b->iters[iters[d]].extent, UIR_RELATION_EQ, t->extents[d]) ==
                    UIR_TRUE;
        whole = plain;
    }
    *out = whole;
    return UIR_STATUS_OK;
}

static uir_status refuse_part(uir_schedule *s, uint32_t tensor) {
    return uir_step_refuse(s, "not every element of %s is proved to be written", UIR_SCHEDULE_TENSOR(s, tensor)->name);
}

/* The same of a copy that stands in its place: what it reads may be covered by what is written before it. */
static uir_status need_covered(uir_schedule *s, uint32_t tensor, uint32_t copy) {
    uir_sites sites = {0};
    bool whole;
    UIR_TRY(is_whole(s, tensor, &whole));
    if (whole) return UIR_STATUS_OK;
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    UIR_SITES_OF_TENSOR(&sites, tensor, r)
    UIR_SITES_OF_TENSOR(&sites, tensor, w) {
        if (sites.data[r].block != copy || sites.data[r].write || !sites.data[w].write || sites.data[w].reduction)
            continue;
        if (!whole) UIR_TRY(uir_region_covers(s, &sites.data[w], &sites.data[r], &whole));
    }
    return whole ? UIR_STATUS_OK : refuse_part(s, tensor);
}

/* What the block reads of a tensor that is complete before it, it reads of the copy. */
static uir_status read_copy(uir_schedule *s, uint32_t block, uint32_t tensor, uint32_t copy) {
    const char *name = UIR_SCHEDULE_TENSOR(s, tensor)->name, *block_name = UIR_SCHEDULE_AT(s, block)->name;
    redirection r = {s, tensor, copy};
    if (!reads(s, block, tensor)) return uir_step_refuse(s, "%s does not read %s", block_name, name);
    if (writes_under(s, uir_tree_root(s, block), tensor))
        return uir_step_refuse(s, "%s is not complete before %s", name, block_name);
    for (uint32_t id = UIR_SCHEDULE_AT(s, block)->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next)
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            if (UIR_SCHEDULE_AT(s, id)->targets[i].tensor == tensor)
                return uir_step_refuse(s, "%s also writes %s", block_name, name);
    return redirect_block(&r, block, false);
}

static uir_status cache_read(uir_schedule *s, uint32_t tensor, uint32_t block, const char *space, uint32_t *out_tensor,
                             uint32_t *out_copy) {
    uint32_t top, one = block, *blocks = &one, block_count = 1;
    UIR_TRY(need_tensor(s, tensor));
    const char *name = UIR_SCHEDULE_TENSOR(s, tensor)->name;
    if (block == UIR_LOOP_NONE) {
        block_count = uir_schedule_readers(s, tensor, NULL, 0);
        if (!block_count) return uir_step_refuse(s, "nothing reads %s", name);
        UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, block_count, sizeof *blocks));
        uir_schedule_readers(s, tensor, blocks, block_count);
    }
    if (!uir_tree_reachable(s, blocks[0], UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", blocks[0]);
    uint32_t root = uir_tree_root(s, blocks[0]);
    UIR_TRY(add_like(s, tensor, space, out_tensor));
    for (uint32_t n = 0; n < block_count; n++) UIR_TRY(read_copy(s, blocks[n], tensor, *out_tensor));
    UIR_TRY(add_copy(s, tensor, *out_tensor, root, &top, out_copy));
    uir_tree_insert_before(s, root, top);
    UIR_TRY(need_covered(s, tensor, *out_copy));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "cache read of %s for %s in %s: %s", name,
                 block == UIR_LOOP_NONE ? "*" : UIR_SCHEDULE_AT(s, block)->name, space,
                 UIR_SCHEDULE_TENSOR(s, *out_tensor)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_cache_read(uir_schedule *schedule, uint32_t tensor, uint32_t block, const char *space,
                                   uint32_t *out_tensor, uint32_t *out_copy) {
    uint32_t made = UIR_LOOP_NONE, copy = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, cache_read(schedule, tensor, block, space, &made, &copy)));
    uir_step_give(schedule, out_tensor, made);
    uir_step_give(schedule, out_copy, copy);
    return UIR_STATUS_OK;
}

static uir_status cache_write(uir_schedule *s, uint32_t tensor, const char *space, uint32_t *out_tensor,
                              uint32_t *out_copy) {
    uint32_t count, *blocks, top, last = UIR_LOOP_NONE;
    UIR_TRY(need_tensor(s, tensor));
    const char *name = UIR_SCHEDULE_TENSOR(s, tensor)->name;
    count = uir_schedule_writers(s, tensor, NULL, 0);
    if (!count || UIR_SCHEDULE_TENSOR(s, tensor)->role == UIR_LOOP_ROLE_IN)
        return uir_step_refuse(s, "nothing writes %s", name);
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks));
    uir_schedule_writers(s, tensor, blocks, count);
    last = uir_tree_root(s, blocks[count - 1]);
    bool whole;
    UIR_TRY(is_whole(s, tensor, &whole));
    if (!whole) return refuse_part(s, tensor);
    UIR_TRY(add_like(s, tensor, space, out_tensor));
    redirection r = {s, tensor, *out_tensor};
    uint32_t all = uir_schedule_blocks(s, UIR_LOOP_NONE, NULL, 0), *every;
    UIR_TRY_ALLOCATE(every, uir_arena_allocate_array(&s->scratch, all + 1, sizeof *every));
    uir_schedule_blocks(s, UIR_LOOP_NONE, every, all);
    for (uint32_t i = 0; i < all; i++) UIR_TRY(redirect_block(&r, every[i], true));
    UIR_TRY(add_copy(s, *out_tensor, tensor, last, &top, out_copy));
    uir_tree_insert_after(s, last, top);
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "cache write of %s in %s: %s", name, space, UIR_SCHEDULE_TENSOR(s, *out_tensor)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_cache_write(uir_schedule *schedule, uint32_t tensor, const char *space, uint32_t *out_tensor,
                                    uint32_t *out_copy) {
    uint32_t made = UIR_LOOP_NONE, copy = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, cache_write(schedule, tensor, space, &made, &copy)));
    uir_step_give(schedule, out_tensor, made);
    uir_step_give(schedule, out_copy, copy);
    return UIR_STATUS_OK;
}

/* ---- shrink ---- */
/* The innermost loop around all of the sites. */
static uint32_t find_common_loop(uir_schedule *s, const uir_sites *sites, uint32_t tensor) {
    uint32_t common[UIR_SCHEDULE_MAX_DEPTH], count = 0;
    bool first = true;
    UIR_SITES_OF_TENSOR(sites, tensor, i) {
        uint32_t path[UIR_SCHEDULE_MAX_DEPTH], n, k = 0;
        n = uir_tree_path(s, sites->data[i].block, path);
        if (first) {
            memcpy(common, path, n * sizeof *path);
            count = n;
        }
        while (k < count && k < n && common[k] == path[k]) k++;
        count = k;
        first = false;
    }
    while (count && UIR_SCHEDULE_AT(s, common[count - 1])->kind != UIR_LOOP_STATEMENT_FOR) count--;
    return count ? common[count - 1] : UIR_LOOP_NONE;
}

typedef struct shrinking {
    uir_schedule *s;
    uint32_t tensor;
    uir_dim low[UIR_LOOP_MAX_RANK], extent[UIR_LOOP_MAX_RANK];
    uint32_t block;
    uir_substitution values; /* the block's variables -> loops */
} shrinking;

/* The index as a variable of the block that counts from the region's start. */
static uir_status localise(shrinking *h, uint32_t d, uir_dim index, uir_dim *out_index) {
    uir_schedule *s = h->s;
    uir_dims *dims = s->function->dims;
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, h->block);
    uir_dim local = uir_dim_sub(dims, uir_substitute(s, &h->values, index), h->low[d]);
    bool reduce = false;
    if (!local.id) return UIR_STATUS_OUT_OF_MEMORY;
    *out_index = local;
    if (uir_dim_is_of_sizes(s, local)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (uir_dim_uses(s, index, b->iters[i].symbol)) {
            if (b->iters[i].data)
                return uir_step_refuse(s, "%s reads its index of %s from data", b->name,
                                       UIR_SCHEDULE_TENSOR(s, h->tensor)->name);
            reduce |= b->iters[i].reduce;
        }
    }
    uint32_t at = 0;
    while (at < b->iter_count && !b->iters[at].data &&
           (!uir_dim_equal(b->iters[at].value, local) || !uir_dim_equal(b->iters[at].extent, h->extent[d]) ||
            b->iters[at].reduce != reduce))
        at++;
    *out_index = at < b->iter_count && !b->iters[at].data ? uir_dim_symbol(dims, b->iters[at].symbol) : UIR_DIM_NONE;
    if (out_index->id) return UIR_STATUS_OK;
    if (b->iter_count == UIR_LOOP_MAX_ITERS) return uir_step_refuse(s, "%s cannot have more variables", b->name);
    uir_loop_iter iter = {.reduce = reduce, .extent = h->extent[d], .value = local};
    char name[64];
    for (uint32_t k = d;; k++) { /* a name that neither a variable nor a declaration has */
        bool taken = false;
        snprintf(name, sizeof name, "%.40s%u", "at", k);
        for (uint32_t i = 0; i < b->iter_count; i++) taken |= !strcmp(b->iters[i].name, name);
        for (uint32_t i = 0; i < s->function->sizes.count; i++) taken |= !strcmp(s->function->sizes.data[i].name, name);
        for (uint32_t i = 0; i < s->function->tiles.count; i++) taken |= !strcmp(s->function->tiles.data[i].name, name);
        if (!taken) break;
    }
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, h->extent[d]};
    UIR_TRY(copy_text(s, name, &iter.name));
    UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), facts, &iter.symbol));
    memmove(&b->iters[at + 1], &b->iters[at],
            (b->iter_count - at) * sizeof *b->iters); /* before what is read from data */
    b->iters[at] = iter;
    b->iter_count++;
    *out_index = uir_dim_symbol(dims, iter.symbol);
    return UIR_STATUS_OK;
}

static uir_status localise_access(shrinking *h, uir_loop_access *access) {
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(h->s, h->tensor)->rank; d++)
        UIR_TRY(localise(h, d, access->indices[d], &access->indices[d]));
    return UIR_STATUS_OK;
}

static uir_status localise_loads(shrinking *h, uint32_t id, uint32_t *out_id) {
    uir_loop_function *f = h->s->function;
    uir_loop_expression e = f->expressions.data[id];
    bool changed = e.kind == UIR_LOOP_LOAD && e.load.tensor == h->tensor;
    if (changed) {
        if (e.has_fill)
            return uir_step_refuse(h->s, "%s may read %s out of bounds", UIR_SCHEDULE_AT(h->s, h->block)->name,
                                   UIR_SCHEDULE_TENSOR(h->s, h->tensor)->name);
        UIR_TRY(localise_access(h, &e.load));
    }
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument;
        UIR_TRY(localise_loads(h, e.arguments[i], &argument));
        changed |= argument != e.arguments[i];
        e.arguments[i] = argument;
    }
    *out_id = id;
    if (!changed) return UIR_STATUS_OK;
    *out_id = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

/* Indices that the block reads from the tensor. */
static uir_status localise_indices(shrinking *h) {
    uir_schedule *s = h->s;
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, h->block)->iter_count; i++) {
        uir_symbol symbol = UIR_SCHEDULE_AT(s, h->block)->iters[i].symbol;
        if (!UIR_SCHEDULE_AT(s, h->block)->iters[i].data ||
            UIR_SCHEDULE_AT(s, h->block)->iters[i].from->tensor != h->tensor)
            continue;
        uir_loop_access from = *UIR_SCHEDULE_AT(s, h->block)->iters[i].from;
        UIR_TRY(localise_access(h, &from)); /* which may put a variable before it */
        while (UIR_SCHEDULE_AT(s, h->block)->iters[i].symbol.id != symbol.id) i++;
        UIR_TRY_ALLOCATE(UIR_SCHEDULE_AT(s, h->block)->iters[i].from,
                         uir_arena_copy(&s->function->arena, &from, sizeof from));
    }
    return UIR_STATUS_OK;
}

static uir_status localise_block(shrinking *h, uint32_t block) {
    h->s->full.data[block] = false; /* its instances share elements now: their order matters */
    uir_schedule *s = h->s;
    h->block = block;
    h->values = (uir_substitution){0};
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, block)->iter_count; i++) {
        const uir_loop_iter *iter = &UIR_SCHEDULE_AT(s, block)->iters[i];
        if (!iter->data) UIR_TRY(uir_substitution_set(s, &h->values, iter->symbol, iter->value));
    }
    UIR_TRY(localise_indices(h));
    for (uint32_t id = UIR_SCHEDULE_AT(s, block)->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->value_count; i++)
            UIR_TRY(localise_loads(h, UIR_SCHEDULE_AT(s, id)->values[i], &UIR_SCHEDULE_AT(s, id)->values[i]));
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            if (UIR_SCHEDULE_AT(s, id)->targets[i].tensor == h->tensor)
                UIR_TRY(localise_access(h, &UIR_SCHEDULE_AT(s, id)->targets[i]));
    }
    return UIR_STATUS_OK;
}

/* Each iteration of the loop writes what it reads, so that the next one may use the place again. */
static uir_status check_fresh(uir_schedule *s, const uir_sites *sites, uint32_t tensor) {
    UIR_SITES_OF_TENSOR(sites, tensor, i) {
        const uir_site *read = &sites->data[i];
        bool covered = false;
        if (read->write) continue;
        UIR_SITES_OF_TENSOR(sites, tensor, k) {
            const uir_site *write = &sites->data[k];
            if (!covered && write->write && !write->reduction) UIR_TRY(uir_region_covers(s, write, read, &covered));
        }
        if (!covered)
            return uir_step_refuse(s, "%s reads elements of %s that are not proved to be written in the same iteration",
                                   UIR_SCHEDULE_AT(s, read->block)->name, UIR_SCHEDULE_TENSOR(s, tensor)->name);
    }
    return UIR_STATUS_OK;
}

static uir_status shrink(uir_schedule *s, uint32_t tensor) {
    uir_dims *dims = s->function->dims;
    uir_sites sites = {0};
    uir_region region = {.empty = true};
    shrinking h = {.s = s, .tensor = tensor};
    bool smaller = false;
    UIR_TRY(need_tensor(s, tensor));
    const char *name = UIR_SCHEDULE_TENSOR(s, tensor)->name;
    if (UIR_SCHEDULE_TENSOR(s, tensor)->role != UIR_LOOP_ROLE_TEMP)
        return uir_step_refuse(s, "%s belongs to the caller", name);
    if (UIR_SCHEDULE_TENSOR(s, tensor)->layout) return uir_step_refuse(s, "%s already has a layout", name);
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    uint32_t loop = find_common_loop(s, &sites, tensor);
    if (loop == UIR_LOOP_NONE) return uir_step_refuse(s, "no loop is around all blocks that access %s", name);
    UIR_TRY(check_fresh(s, &sites, tensor));
    UIR_SITES_OF_TENSOR(&sites, tensor, i) UIR_TRY(uir_region_join(s, &sites.data[i], loop, &region));
    for (uint32_t d = 0; d < region.rank; d++) {
        h.low[d] = region.low[d];
        h.extent[d] = uir_dim_add(dims, uir_dim_sub(dims, region.high[d], region.low[d]), uir_dim_const(dims, 1));
        if (!h.extent[d].id) return UIR_STATUS_OUT_OF_MEMORY;
        bool whole =
            uir_dim_compare(dims, h.extent[d], UIR_RELATION_GE, UIR_SCHEDULE_TENSOR(s, tensor)->extents[d]) == UIR_TRUE;
        if (whole || !uir_dim_is_of_sizes(s, h.extent[d])) { /* all of the dim, or a region of changing size */
            h.low[d] = uir_dim_const(dims, 0);
            h.extent[d] = UIR_SCHEDULE_TENSOR(s, tensor)->extents[d];
        }
        smaller |= !uir_dim_equal(h.extent[d], UIR_SCHEDULE_TENSOR(s, tensor)->extents[d]);
        if (uir_dim_compare(dims, h.extent[d], UIR_RELATION_GE, uir_dim_const(dims, 0)) != UIR_TRUE)
            h.extent[d] = uir_dim_max(dims, h.extent[d], uir_dim_const(dims, 0));
    }
    if (!smaller) return uir_step_refuse(s, "%s cannot shrink: all of it is live at once", name);
    uint32_t *blocks, count = 0; /* that touch it; a block's sites stand together */
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, sites.count + 1, sizeof *blocks));
    UIR_SITES_OF_TENSOR(&sites, tensor, i)
    if (!count || blocks[count - 1] != sites.data[i].block) blocks[count++] = sites.data[i].block;
    for (uint32_t i = 0; i < count; i++) UIR_TRY(localise_block(&h, blocks[i]));
    memcpy(UIR_SCHEDULE_TENSOR(s, tensor)->extents, h.extent, sizeof h.extent);
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(uir_region_check_binds(s, blocks[i]));
        UIR_TRY(uir_region_check_accesses(s, blocks[i]));
    }
    uir_step_moved(s, tensor);
    uir_step_say(s, "shrink %s", name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_shrink(uir_schedule *schedule, uint32_t tensor) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, shrink(schedule, tensor));
}
