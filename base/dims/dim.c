/* The context of symbolic dims: symbols, and the table of interned nodes. */
#include "base/dims/dim_internal.h"

#include <string.h>

enum { TABLE_MIN = 256 };

uir_status uir_dims_create(const uir_allocator *allocator, uir_dims **out_dims) {
    uir_dims *dims;
    *out_dims = NULL;
    UIR_TRY_ALLOCATE(dims, uir_allocate_zeroed(allocator, sizeof *dims));
    dims->allocator = *allocator;
    dims->facts_version = 1;
    uir_arena_init(&dims->arena, allocator);
    uir_arena_init(&dims->scratch, allocator);
    *out_dims = dims;
    return UIR_STATUS_OK;
}

void uir_dims_destroy(uir_dims *dims) {
    if (!dims) return;
    uir_arena_deinit(&dims->scratch);
    uir_arena_deinit(&dims->arena);
    uir_allocator allocator = dims->allocator;
    uir_release(&allocator, dims, sizeof *dims);
}

void *uir_dim_scratch(uir_dims *dims, size_t count, size_t size) {
    void *block = uir_arena_allocate_unset(&dims->scratch, count, size);
    if (!block) dims->out_of_memory = true;
    return block;
}

/* ---- symbols ---------------------------------------------------------------------------------------------------- */

static uir_symbol_facts valid_facts(uir_symbol_facts facts) {
    if (facts.multiple_of < 1) facts.multiple_of = 1;
    return facts;
}

uir_status uir_dims_add_symbol(uir_dims *dims, const char *name, size_t length, uir_symbol_facts facts,
                               uir_symbol *out_symbol) {
    dim_symbol symbol = {.length = length, .facts = valid_facts(facts)};
    uint32_t id = dims->symbols.count;
    if (id == UINT32_MAX) return UIR_STATUS_LIMIT;
    UIR_TRY_ALLOCATE(symbol.name, uir_arena_copy_string(&dims->arena, name, length));
    UIR_TRY(uir_vector_push(&dims->arena, &dims->symbols, symbol));
    uir_dim dim = uir_dim_intern(dims, UIR_DIM_SYMBOL, id, NULL, 0);
    if (!dim.id) {
        dims->symbols.count--;
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    dims->symbols.data[id].dim = dim;
    out_symbol->id = id;
    return UIR_STATUS_OK;
}

uint32_t uir_dims_symbol_count(const uir_dims *dims) {
    return dims->symbols.count;
}

const char *uir_dims_symbol_name(const uir_dims *dims, uir_symbol symbol) {
    return dims->symbols.data[symbol.id].name;
}

uir_symbol_facts uir_dims_symbol_facts(const uir_dims *dims, uir_symbol symbol) {
    return dims->symbols.data[symbol.id].facts;
}

void uir_dims_set_symbol_facts(uir_dims *dims, uir_symbol symbol, uir_symbol_facts facts) {
    dims->symbols.data[symbol.id].facts = valid_facts(facts);
    dims->facts_version++; /* what was derived from the old facts is derived anew */
}

uint32_t uir_dims_facts_version(const uir_dims *dims) {
    return dims->facts_version;
}

uir_dim uir_dim_symbol(uir_dims *dims, uir_symbol symbol) {
    return symbol.id < dims->symbols.count ? dims->symbols.data[symbol.id].dim : UIR_DIM_NONE;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static bool same_node(const dim_node *a, uir_dim_kind kind, int64_t value, const uir_dim *operands, uint32_t count) {
    return a->node.kind == kind && a->node.value == value && a->node.count == count &&
           (count == 0 || memcmp(a->node.operands, operands, count * sizeof *operands) == 0);
}

static bool grow_table(uir_dims *dims) {
    if (dims->table_size > UINT32_MAX / 2) return false;
    uint32_t size = dims->table_size ? dims->table_size * 2 : TABLE_MIN;
    uint32_t *table = uir_arena_allocate_array(&dims->arena, size, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 0; i < dims->nodes.count; i++) {
        uint32_t slot = dims->nodes.data[i]->hash & (size - 1);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = i + 1;
    }
    dims->table = table;
    dims->table_size = size;
    return true;
}

/* The union of the operands' symbols; an operand's own list is shared when it holds all of them. */
static bool collect_symbols(uir_dims *dims, dim_node *node) {
    if (node->node.kind == UIR_DIM_SYMBOL) {
        uint32_t id = (uint32_t)node->node.value;
        node->symbols = uir_arena_copy(&dims->arena, &id, sizeof id);
        node->symbol_count = 1;
        return node->symbols != NULL;
    }
    for (uint32_t i = 0; i < node->node.count; i++) {
        const dim_node *operand = dim_at(dims, node->node.operands[i]);
        uint32_t missing = 0;
        for (uint32_t j = 0; j < operand->symbol_count; j++) missing += !uir_dim_has_symbol(node, operand->symbols[j]);
        if (missing == 0) continue;
        if (missing + node->symbol_count == operand->symbol_count) {
            node->symbols = operand->symbols;
            node->symbol_count = operand->symbol_count;
            continue;
        }
        uint32_t count = node->symbol_count + missing, a = 0, b = 0;
        uint32_t *merged = uir_arena_allocate_array(&dims->arena, count, sizeof *merged);
        if (!merged) return false;
        for (uint32_t j = 0; j < count; j++) {
            uint32_t left = a < node->symbol_count ? node->symbols[a] : UINT32_MAX;
            uint32_t right = b < operand->symbol_count ? operand->symbols[b] : UINT32_MAX;
            merged[j] = left < right ? left : right;
            a += left == merged[j];
            b += right == merged[j];
        }
        node->symbols = merged;
        node->symbol_count = count;
    }
    return true;
}

static bool is_division(uir_dim_kind kind) {
    return kind == UIR_DIM_FLOORDIV || kind == UIR_DIM_CEILDIV || kind == UIR_DIM_MOD;
}

static dim_node *make_node(uir_dims *dims, uir_dim_kind kind, int64_t value, const uir_dim *operands, uint32_t count) {
    uint32_t depth = 0;
    uint64_t tree_size = 1;
    bool divides_by_unknown = is_division(kind) && uir_dim_interval(dims, operands[1]).min < 1;
    for (uint32_t i = 0; i < count; i++) {
        const dim_node *operand = dim_at(dims, operands[i]);
        if (operand->depth > depth) depth = operand->depth;
        tree_size += operand->tree_size;
        divides_by_unknown = divides_by_unknown || operand->divides_by_unknown;
    }
    if (depth >= DIM_DEPTH_MAX || tree_size > DIM_TREE_MAX) return NULL;
    dim_node *node = uir_arena_allocate(&dims->arena, sizeof *node);
    dims->out_of_memory = true; /* until shown otherwise */
    if (!node) return NULL;
    node->node = (uir_dim_node){.kind = kind, .value = value, .count = count};
    if (count && !(node->node.operands = uir_arena_copy(&dims->arena, operands, count * sizeof *operands))) return NULL;
    node->depth = depth + 1;
    node->tree_size = (uint32_t)tree_size;
    node->divides_by_unknown = divides_by_unknown;
    if (!collect_symbols(dims, node)) return NULL;
    if (uir_vector_push(&dims->arena, &dims->nodes, node) != UIR_STATUS_OK) return NULL;
    node->self.id = dims->nodes.count;
    dims->out_of_memory = false;
    return node;
}

uir_dim uir_dim_intern(uir_dims *dims, uir_dim_kind kind, int64_t value, const uir_dim *operands, uint32_t count) {
    uint64_t seed = (uint64_t)value * 0x9e3779b97f4a7c15u + (uint64_t)kind;
    uint32_t hash = (uint32_t)uir_hash(operands, count * sizeof *operands, seed);
    if ((uint64_t)(dims->nodes.count + 1) * 3 > (uint64_t)dims->table_size * 2 && !grow_table(dims)) {
        dims->out_of_memory = true;
        return UIR_DIM_NONE;
    }
    uint32_t slot = hash & (dims->table_size - 1);
    for (; dims->table[slot]; slot = (slot + 1) & (dims->table_size - 1)) {
        const dim_node *node = dims->nodes.data[dims->table[slot] - 1];
        if (node->hash == hash && same_node(node, kind, value, operands, count)) return node->self;
    }
    dim_node *node = make_node(dims, kind, value, operands, count);
    if (!node) return UIR_DIM_NONE;
    node->hash = hash;
    dims->table[slot] = node->self.id;
    return node->self;
}

uir_dim uir_dim_const(uir_dims *dims, int64_t value) {
    return uir_dim_intern(dims, UIR_DIM_CONST, value, NULL, 0);
}

const uir_dim_node *uir_dim_get(const uir_dims *dims, uir_dim dim) {
    return dim.id ? &dim_at(dims, dim)->node : NULL;
}

bool uir_dim_is_const(const uir_dims *dims, uir_dim dim, int64_t *out_value) {
    if (!dim.id || dim_at(dims, dim)->node.kind != UIR_DIM_CONST) return false;
    if (out_value) *out_value = dim_at(dims, dim)->node.value;
    return true;
}

bool uir_dim_has_symbol(const dim_node *node, uint32_t symbol) {
    uint32_t low = 0, high = node->symbol_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (node->symbols[middle] == symbol) return true;
        if (node->symbols[middle] < symbol)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

void uir_dim_visit_symbols(const uir_dims *dims, uir_dim dim, void (*visit)(void *user, uir_symbol symbol),
                           void *user) {
    if (!dim.id) return;
    const dim_node *node = dim_at(dims, dim);
    for (uint32_t i = 0; i < node->symbol_count; i++) visit(user, (uir_symbol){node->symbols[i]});
}

bool uir_dim_mentions(const uir_dims *dims, uir_dim dim, uir_symbol symbol) {
    return dim.id && uir_dim_has_symbol(dim_at(dims, dim), symbol.id);
}

int uir_dim_order(const uir_dims *dims, uir_dim a, uir_dim b) {
    if (a.id == b.id) return 0;
    const uir_dim_node *x = &dim_at(dims, a)->node, *y = &dim_at(dims, b)->node;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->kind == UIR_DIM_SYMBOL) {
        const dim_symbol *s = &dims->symbols.data[x->value], *t = &dims->symbols.data[y->value];
        int order = memcmp(s->name, t->name, s->length < t->length ? s->length : t->length);
        if (order) return order < 0 ? -1 : 1;
        if (s->length != t->length) return s->length < t->length ? -1 : 1;
    }
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    for (uint32_t i = 0; i < x->count && i < y->count; i++) {
        int order = uir_dim_order(dims, x->operands[i], y->operands[i]);
        if (order) return order;
    }
    return x->count < y->count ? -1 : 1;
}

/* ---- clones ----------------------------------------------------------------------------------------------------- */

/* The node's symbols; an operand's own list is shared where it was. */
static bool clone_symbols(uir_dims *to, const dim_node *from, const uir_dims *dims, dim_node *node) {
    for (uint32_t i = 0; i < from->node.count; i++) {
        if (dim_at(dims, from->node.operands[i])->symbols != from->symbols) continue;
        node->symbols = dim_at(to, from->node.operands[i])->symbols;
        return true;
    }
    if (!from->symbol_count) return true;
    node->symbols = uir_arena_copy(&to->arena, from->symbols, from->symbol_count * sizeof *from->symbols);
    return node->symbols != NULL;
}

/* Operands come before the nodes that have them. */
static uir_status clone_node(uir_dims *to, const dim_node *from, const uir_dims *dims) {
    dim_node *node;
    UIR_TRY_ALLOCATE(node, uir_arena_copy(&to->arena, from, sizeof *from));
    if (from->node.count)
        UIR_TRY_ALLOCATE(node->node.operands, uir_arena_copy(&to->arena, from->node.operands,
                                                             from->node.count * sizeof *from->node.operands));
    if (!clone_symbols(to, from, dims, node)) return UIR_STATUS_OUT_OF_MEMORY;
    return uir_vector_push(&to->arena, &to->nodes, node);
}

static uir_status clone_parts(uir_dims *to, const uir_dims *dims) {
    for (uint32_t i = 0; i < dims->nodes.count; i++) UIR_TRY(clone_node(to, dims->nodes.data[i], dims));
    for (uint32_t i = 0; i < dims->symbols.count; i++) {
        dim_symbol symbol = dims->symbols.data[i];
        UIR_TRY_ALLOCATE(symbol.name, uir_arena_copy_string(&to->arena, symbol.name, symbol.length));
        UIR_TRY(uir_vector_push(&to->arena, &to->symbols, symbol));
    }
    to->facts_version = dims->facts_version;
    to->table_size = dims->table_size;
    if (!dims->table_size) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(to->table, uir_arena_copy(&to->arena, dims->table, dims->table_size * sizeof *dims->table));
    return UIR_STATUS_OK;
}

uir_status uir_dims_clone(const uir_dims *dims, const uir_allocator *allocator, uir_dims **out_clone) {
    uir_dims *clone;
    *out_clone = NULL;
    UIR_TRY(uir_dims_create(allocator, &clone));
    uir_status status = clone_parts(clone, dims);
    if (status == UIR_STATUS_OK)
        *out_clone = clone;
    else
        uir_dims_destroy(clone);
    return status;
}
