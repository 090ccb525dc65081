/* Bytes to a plan. Every index, list and expression is checked here once, as hostile input. */
#include "package/plan.h"
#include "base/reader.h"

#include <string.h>

#define W(field) (field) = (uint32_t)uir_reader_take(in, 4);
#define Q(field) (field) = (__typeof__(field))uir_reader_take(in, 8);

static uir_status read_tables(uir_reader *in, uir_arena *arena, uir_plan *p) {
    p->characters_count = (uint32_t)uir_reader_take(in, 4);
    if (in->short_of || p->characters_count > (size_t)(in->end - in->at)) return UIR_STATUS_BAD_FILE;
    UIR_TRY_ALLOCATE(p->characters, uir_arena_copy_string(arena, (const char *)in->at, p->characters_count));
    in->at += p->characters_count;
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    p->field##_count = (uint32_t)uir_reader_take(in, 4);                                                               \
    if (in->short_of || p->field##_count > UIR_PLAN_MAX_RECORDS || p->field##_count > (size_t)(in->end - in->at) / 4)  \
        return UIR_STATUS_BAD_FILE;                                                                                    \
    UIR_TRY_ALLOCATE(p->field, uir_arena_allocate_array(arena, (size_t)p->field##_count + 1, sizeof *p->field));       \
    for (uint32_t i = 0; i < p->field##_count; i++) {                                                                  \
        type *r = &p->field[i];                                                                                        \
        type##_fields(W, Q, r)                                                                                         \
    }
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    if (in->short_of || in->at == in->end) return in->short_of ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK;
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
    if (!p->devices_count) return UIR_STATUS_BAD_FILE;
#undef UIR_PLAN_TABLE
    return in->short_of || in->at != in->end ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK;
}

/* ---- validation: each function answers whether a record is in order ---- */
typedef struct checker {
    const uir_plan *plan;
    uint64_t code_size, weights_size;
    uint32_t native_count;
    uint32_t *symbol_end; /* per expression: one past the greatest symbol it uses */
    uint32_t *root;       /* per tensor: what it is an alias of in the end */
    bool *block_used;
    uint32_t *needed_by;            /* per operand: the last kernel of which a variant needs it, + 1 */
    uint32_t *written_by;           /* per result: the last variant that writes it, counted from 1 */
    uint32_t *launches, *next_step; /* per kernel its last launch, per step the one before: + 1 */
    uint64_t left;                  /* entries that may still be looked at */
    uint64_t operations_left;       /* the same of the expressions that records name, each as often as it is named */
    uint32_t variant;
    bool exhausted; /* more than these were to be */
} checker;

/* Records may share lists and expressions, but not so that they hold more together than the plan has bytes for: the
 * given models' have a third of an entry and a tenth of an operation for a byte. */
enum { ENTRIES_PER_BYTE = 4, OPERATIONS_PER_BYTE = 16 };

static bool is_range(checker *c, uint32_t first, uint32_t count, uint32_t total) {
    if (first > total || count > total - first) return false;
    if (count > c->left) return c->exhausted = true, false;
    c->left -= count;
    return true;
}
static bool is_list(checker *c, uir_plan_list list) {
    return is_range(c, list.first, list.count, c->plan->words_count);
}
static uint32_t at(const uir_plan *p, uir_plan_list list, uint32_t i) {
    return uir_plan_get_word(p, list, i);
}
static bool is_text(const uir_plan *p, uint32_t text) {
    return text < p->texts_count;
}
/* Over `symbols` symbols of its scope. */
static bool is_expression(checker *c, uint32_t expression, uint32_t symbols) {
    if (expression >= c->plan->expressions_count || c->symbol_end[expression] > symbols) return false;
    if (c->plan->expressions[expression].count > c->operations_left) return c->exhausted = true, false;
    c->operations_left -= c->plan->expressions[expression].count;
    return true;
}
static bool is_expression_list(checker *c, uir_plan_list list, uint32_t symbols) {
    if (!is_list(c, list)) return false;
    for (uint32_t i = 0; i < list.count; i++) {
        if (!is_expression(c, at(c->plan, list, i), symbols)) return false;
    }
    return true;
}
/* Tensors; NONE among them where `absent` allows. */
static bool is_tensor_list(checker *c, uir_plan_list list, bool absent) {
    const uir_plan *p = c->plan;
    if (!is_list(c, list)) return false;
    for (uint32_t i = 0; i < list.count; i++) {
        uint32_t t = at(p, list, i);
        if (t >= p->tensors_count && !(absent && t == UIR_PLAN_NONE)) return false;
    }
    return true;
}

static bool check_text(checker *c, const uir_plan_text *t) {
    const uir_plan *p = c->plan;
    return is_range(c, t->first, t->count, p->characters_count) && t->first + t->count < p->characters_count &&
           p->characters[t->first + t->count] == 0 && !memchr(p->characters + t->first, 0, t->count);
}

static bool check_expression(checker *c, uint32_t index) {
    const uir_plan *p = c->plan;
    const uir_plan_expression *e = &p->expressions[index];
    uint32_t depth = 0;
    if (e->count == 0 || !is_range(c, e->first, e->count, p->operations_count)) return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const uir_plan_operation *o = &p->operations[e->first + i];
        if (o->kind > UIR_DIM_MAX) return false;
        if (o->kind == UIR_DIM_CONST || o->kind == UIR_DIM_SYMBOL) {
            if (o->kind == UIR_DIM_SYMBOL) {
                if (o->value < 0 || o->value >= UIR_PLAN_MAX_RECORDS) return false;
                if (o->value >= c->symbol_end[index]) c->symbol_end[index] = (uint32_t)o->value + 1;
            }
            if (++depth > UIR_PLAN_MAX_STACK) return false;
        } else {
            if (depth < 2) return false;
            depth--;
        }
    }
    return depth == 1;
}

static bool check_symbol(checker *c, const uir_plan_symbol *s) {
    return is_text(c->plan, s->name) && s->multiple_of >= 1;
}

static bool check_constant(checker *c, const uir_plan_constant *k) {
    return k->offset % 64 == 0 && k->offset <= c->weights_size && k->size <= c->weights_size - k->offset;
}

static bool has_same_domain(const uir_plan *p, uint32_t a, uint32_t b) {
    return uir_plan_get_domain(p, a) == uir_plan_get_domain(p, b);
}

static bool check_tensor(checker *c, uint32_t index) {
    const uir_plan *p = c->plan;
    const uir_plan_tensor *t = &p->tensors[index];
    c->root[index] = index;
    if (t->storage == UIR_PLAN_STORAGE_ALIAS && t->index < index && !has_same_domain(p, index, t->index)) return false;
    if (!uir_dtype_is_valid((int)t->dtype) || t->dtype == UIR_DTYPE_STRING || t->dtype == UIR_DTYPE_NONE) return false;
    if (t->extents.count > UIR_PLAN_MAX_RANK || !is_expression_list(c, t->extents, p->symbols_count)) return false;
    switch ((uir_plan_storage)t->storage) {
    case UIR_PLAN_STORAGE_INPUT:
        return t->index < p->inputs_count;
    case UIR_PLAN_STORAGE_OUTPUT:
        return t->index < p->outputs_count;
    case UIR_PLAN_STORAGE_CONSTANT:
        return t->index < p->constants_count;
    case UIR_PLAN_STORAGE_ALIAS:
        if (t->index >= index) return false;
        c->root[index] = c->root[t->index];
        return p->tensors[c->root[index]].storage != UIR_PLAN_STORAGE_LAID_OUT;
    case UIR_PLAN_STORAGE_LAID_OUT:
        return is_expression(c, t->index, p->symbols_count);
    case UIR_PLAN_STORAGE_ARENA:
    case UIR_PLAN_STORAGE_OWN:
    case UIR_PLAN_STORAGE_PORT:
        return t->index == 0;
    case UIR_PLAN_STORAGE_COUNT:
        break;
    }
    return false;
}

/* On the device it has the same type and extents. */
static bool check_port_tensor(checker *c, const uir_plan_port *port, uint32_t index, uir_plan_storage storage) {
    const uir_plan *p = c->plan;
    uint32_t other = uir_plan_get_port_tensor(p, storage == UIR_PLAN_STORAGE_OUTPUT, index);
    if (uir_plan_get_domain(p, port->tensor) != UIR_PLAN_ON_HOST) return false;
    if (other == UIR_PLAN_NONE) return true;
    if (other >= p->tensors_count || uir_plan_get_domain(p, other) != UIR_PLAN_ON_DEVICE) return false;
    const uir_plan_tensor *a = &p->tensors[port->tensor], *b = &p->tensors[other];
    return a->storage == b->storage && a->index == b->index && a->dtype == b->dtype &&
           a->extents.first == b->extents.first && a->extents.count == b->extents.count;
}

static bool check_port(checker *c, const uir_plan_port *port, uint32_t index, uir_plan_storage storage) {
    const uir_plan *p = c->plan;
    if (!is_text(p, port->name) || port->tensor >= p->tensors_count || !is_list(c, port->dim_names)) return false;
    const uir_plan_tensor *t = &p->tensors[port->tensor];
    if (t->storage != (uint32_t)storage || t->index != index || port->dim_names.count != t->extents.count ||
        !check_port_tensor(c, port, index, storage))
        return false;
    for (uint32_t i = 0; i < port->dim_names.count; i++) {
        if (!is_text(p, at(p, port->dim_names, i))) return false;
    }
    return port->slack == UIR_PLAN_NONE ||
           (port->slack < p->symbols_count && uir_dtype_bits((uir_dtype)t->dtype) >= 8 &&
            (port->slack_axis < t->extents.count || port->slack_axis == UIR_PLAN_NONE));
}

static bool check_attribute(checker *c, const uir_plan_attribute *a) {
    const uir_plan *p = c->plan;
    if (!is_text(p, a->name)) return false;
    switch ((uir_plan_attribute_kind)a->kind) {
    case UIR_PLAN_INTEGERS:
    case UIR_PLAN_REALS:
        return is_range(c, a->first, a->count, p->integers_count);
    case UIR_PLAN_TEXT:
        return is_text(p, a->first) && a->count == 1;
    case UIR_PLAN_SIZES:
        return is_expression_list(c, (uir_plan_list){a->first, a->count}, p->symbols_count);
    case UIR_PLAN_ATTRIBUTE_KIND_COUNT:
        break;
    }
    return false;
}

/* ---- kernels ---- */
static bool check_conditions(checker *c, uint32_t first, uint32_t count, uint32_t symbols) {
    const uir_plan *p = c->plan;
    if (!is_range(c, first, count, p->conditions_count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const uir_plan_condition *k = &p->conditions[first + i];
        if (k->relation > UIR_RELATION_GE || !is_expression(c, k->left, symbols) ||
            !is_expression(c, k->right, symbols))
            return false;
    }
    return true;
}

static bool check_pointer(checker *c, const uir_plan_kernel *k, const uir_plan_pointer *p, uint32_t symbols) {
    if (p->role >= UIR_PLAN_ROLE_COUNT || !uir_dtype_is_valid((int)p->dtype) || p->dtype == UIR_DTYPE_STRING ||
        !is_expression(c, p->span, symbols))
        return false;
    if (p->role == UIR_PLAN_IN && p->index >= k->input_count) return false;
    if (p->role == UIR_PLAN_OUT && p->index >= k->output_count) return false;
    return p->tied == UIR_PLAN_NONE || (p->role == UIR_PLAN_OUT && p->tied < k->input_count);
}

/* The first axis has two indices: that halves its indices is checked when they are known. */
static bool check_copies(checker *c, const uir_plan_variant *v, const uir_plan_phase *phase) {
    const uir_plan *p = c->plan;
    if (!is_list(c, phase->copies) || phase->copies.count % 2) return false;
    for (uint32_t i = 0; i < phase->copies.count; i++) {
        uint32_t pointer = at(p, phase->copies, i);
        if (pointer >= v->pointer_count ||
            p->pointers[v->first_pointer + pointer].role != (i % 2 ? UIR_PLAN_OUT : UIR_PLAN_IN))
            return false;
    }
    return check_conditions(c, phase->first_same, phase->same_count, v->symbol_count);
}

static bool check_variant(checker *c, const uir_plan_kernel *k, const uir_plan_variant *v) {
    const uir_plan *p = c->plan;
    uint32_t dims = 0, tiles = 0;
    if (v->code_offset > c->code_size || v->code_size > c->code_size - v->code_offset || v->symbol_count > 4096 ||
        !is_range(c, v->first_symbol, v->symbol_count, p->kernel_symbols_count) ||
        !check_conditions(c, v->first_require, v->require_count, v->symbol_count) ||
        !is_range(c, v->first_candidate, v->candidate_count, p->candidates_count) ||
        v->pointer_count > UIR_PLAN_MAX_POINTERS ||
        !is_range(c, v->first_pointer, v->pointer_count, p->pointers_count) || v->phase_count > 4096 ||
        !is_range(c, v->first_phase, v->phase_count, p->phases_count))
        return false;
    for (uint32_t i = 0; i < v->symbol_count; i++) {
        const uir_plan_kernel_symbol *s = &p->kernel_symbols[v->first_symbol + i];
        if (s->kind > UIR_PLAN_VALUE || s->multiple_of < 1) return false;
        dims += s->kind == UIR_PLAN_DIM;
        tiles += s->kind == UIR_PLAN_TILE;
        if (s->kind == UIR_PLAN_VALUE && !is_expression(c, s->definition, i)) return false;
    }
    if (dims != k->dim_count) return false;
    for (uint32_t i = 0; i < v->candidate_count; i++) {
        const uir_plan_candidate *d = &p->candidates[v->first_candidate + i];
        if (!check_conditions(c, d->first_condition, d->condition_count, v->symbol_count) || d->tiles.count != tiles ||
            !is_expression_list(c, d->tiles, v->symbol_count))
            return false;
        if (d->cost != UIR_PLAN_NONE && !is_expression(c, d->cost, v->symbol_count)) return false;
        if (d->units != UIR_PLAN_NONE && !is_expression(c, d->units, v->symbol_count)) return false;
    }
    for (uint32_t i = 0; i < v->pointer_count; i++) {
        if (!check_pointer(c, k, &p->pointers[v->first_pointer + i], v->symbol_count)) return false;
    }
    for (uint32_t i = 0; i < v->phase_count; i++) {
        uir_plan_list extents = p->phases[v->first_phase + i].extents;
        if (extents.count > 4 || !is_expression_list(c, extents, v->symbol_count)) return false;
        if (!check_copies(c, v, &p->phases[v->first_phase + i])) return false;
    }
    if (!is_list(c, v->native_names) || v->native_names.count != p->natives_count) return false;
    for (uint32_t i = 0; i < v->native_names.count; i++) {
        uint32_t name = at(p, v->native_names, i);
        if (name != UIR_PLAN_NONE && (!is_text(p, name) || v->scratch == UIR_PLAN_NONE)) return false;
    }
    return v->scratch == UIR_PLAN_NONE || is_expression(c, v->scratch, v->symbol_count);
}

static bool check_kernel(checker *c, const uir_plan_kernel *k) {
    const uir_plan *p = c->plan;
    if (!is_text(p, k->name) || k->variant_count == 0 || k->variant_count > 4096 ||
        !is_range(c, k->first_variant, k->variant_count, p->variants_count) || k->dim_count > 4096)
        return false;
    for (uint32_t i = 0; i < k->variant_count; i++) {
        if (!check_variant(c, k, &p->variants[k->first_variant + i])) return false;
    }
    return true;
}

static bool check_native(checker *c, const uir_plan_native *n) {
    return is_text(c->plan, n->isa) && (n->section == UIR_PLAN_NONE || n->section < c->native_count);
}

static bool check_check(checker *c, const uir_plan_check *k) {
    const uint32_t texts[] = {k->node, k->op, k->primitive, k->left_name, k->left_dims, k->right_name, k->right_dims};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!is_text(c->plan, texts[i])) return false;
    return k->relation <= UIR_RELATION_GE && k->or_one <= 1 && k->block < c->plan->blocks_count &&
           is_expression(c, k->left, c->plan->symbols_count) && is_expression(c, k->right, c->plan->symbols_count);
}

/* Whole names are made of it: they hold no more than lists may. */
static bool check_node(checker *c, const uir_plan_node *n) {
    const uir_plan *p = c->plan;
    if (!is_text(p, n->place) || !is_text(p, n->name) || !is_text(p, n->op)) return false;
    const uir_plan_text *place = &p->texts[n->place], *name = &p->texts[n->name];
    return is_range(c, place->first, place->count, p->characters_count) &&
           is_range(c, name->first, name->count, p->characters_count) && n->became % UIR_PLAN_FATES < UIR_FATE_COUNT &&
           n->became / UIR_PLAN_FATES <= p->nodes_count;
}

static bool is_node_list(checker *c, uir_plan_list list) {
    if (!is_list(c, list)) return false;
    for (uint32_t i = 0; i < list.count; i++) {
        if (at(c->plan, list, i) / 2 >= c->plan->nodes_count) return false;
    }
    return true;
}

/* ---- steps ---- */
/* What the variants of a kernel ask of a step that launches it. */
typedef struct kernel_needs {
    uint32_t kernel, inputs, outputs, constants; /* how many: one past the last that a pointer names */
    bool whole;                                  /* every variant writes each of the outputs */
} kernel_needs;

static void need_input(checker *c, kernel_needs *needs, uint32_t input) {
    if (needs->inputs <= input) needs->inputs = input + 1;
    if (input < c->plan->words_count) c->needed_by[input] = needs->kernel + 1;
}

static kernel_needs find_needs(checker *c, uint32_t kernel) {
    const uir_plan *p = c->plan;
    const uir_plan_kernel *k = &p->kernels[kernel];
    kernel_needs needs = {.kernel = kernel, .whole = true};
    for (uint32_t v = 0; v < k->variant_count; v++) {
        const uir_plan_variant *variant = &p->variants[k->first_variant + v];
        uint32_t written = 0, end = 0;
        c->variant++;
        for (uint32_t i = 0; i < variant->pointer_count; i++) {
            const uir_plan_pointer *pointer = &p->pointers[variant->first_pointer + i];
            needs.constants += pointer->role == UIR_PLAN_CONST;
            if (pointer->role == UIR_PLAN_IN) need_input(c, &needs, pointer->index);
            if (pointer->tied != UIR_PLAN_NONE) need_input(c, &needs, pointer->tied);
            if (pointer->role != UIR_PLAN_OUT) continue;
            if (pointer->index >= p->words_count) return needs.whole = false, needs; /* no step has so many */
            written += c->written_by[pointer->index] != c->variant;
            c->written_by[pointer->index] = c->variant;
            if (end <= pointer->index) end = pointer->index + 1;
        }
        needs.whole &= written == end && (v == 0 || end == needs.outputs);
        needs.outputs = end;
    }
    return needs;
}

static bool check_launch(checker *c, const uir_plan_step *s, const kernel_needs *needs) {
    const uir_plan *p = c->plan;
    if (s->inputs.count < needs->inputs || s->outputs.count != needs->outputs || !needs->whole ||
        s->constants.count != needs->constants || s->values.count != p->kernels[needs->kernel].dim_count)
        return false;
    for (uint32_t i = 0; i < s->inputs.count; i++) /* one that is absent is no pointer of any variant */
        if (at(p, s->inputs, i) == UIR_PLAN_NONE && c->needed_by[i] == needs->kernel + 1) return false;
    for (uint32_t i = 0; i < s->constants.count; i++)
        if (at(p, s->constants, i) >= p->constants_count) return false;
    return true;
}

/* Kernel by kernel, so that each of them is looked through once. */
static bool check_launches(checker *c) {
    const uir_plan *p = c->plan;
    for (uint32_t i = 0; i < p->steps_count; i++) {
        if (uir_plan_get_step_row(p->steps[i].kind)->target != UIR_PLAN_OF_KERNEL) continue;
        c->next_step[i] = c->launches[p->steps[i].target];
        c->launches[p->steps[i].target] = i + 1;
    }
    for (uint32_t k = 0; k < p->kernels_count; k++) {
        if (!c->launches[k]) continue;
        kernel_needs needs = find_needs(c, k);
        for (uint32_t i = c->launches[k]; i; i = c->next_step[i - 1])
            if (!check_launch(c, &p->steps[i - 1], &needs)) return false;
    }
    return true;
}

static bool is_integer_tensor(const uir_plan *p, uint32_t tensor) {
    return uir_dtype_is_integer((uir_dtype)p->tensors[tensor].dtype) && p->tensors[tensor].extents.count <= 1;
}

static bool is_bool_tensor(const uir_plan *p, uint32_t tensor) {
    return p->tensors[tensor].dtype == UIR_DTYPE_BOOL;
}

static bool use_block(checker *c, uint32_t block) {
    if (block == 0 || block >= c->plan->blocks_count || c->block_used[block]) return false;
    c->block_used[block] = true;
    return true;
}

static bool same_kind(const uir_plan *p, uint32_t a, uint32_t b) {
    return p->tensors[a].dtype == p->tensors[b].dtype;
}

static bool check_loop(checker *c, const uir_plan_step *s) {
    const uir_plan *p = c->plan;
    const uir_plan_block *b = &p->blocks[s->target];
    if (b->inputs.count != s->inputs.count || b->outputs.count != s->outputs.count + 1 ||
        s->outputs.count < s->inputs.count - 2)
        return false;
    uint32_t trips = at(p, s->inputs, 0), condition = at(p, s->inputs, 1);
    if (trips != UIR_PLAN_NONE && !is_integer_tensor(p, trips)) return false;
    if (condition != UIR_PLAN_NONE && !is_bool_tensor(p, condition)) return false;
    if (p->tensors[at(p, b->inputs, 0)].dtype != UIR_DTYPE_I64 || !is_bool_tensor(p, at(p, b->inputs, 1)) ||
        !is_bool_tensor(p, at(p, b->outputs, 0)))
        return false;
    for (uint32_t i = 0; i < b->inputs.count; i++) {
        if (p->tensors[at(p, b->inputs, i)].storage != UIR_PLAN_STORAGE_PORT) return false;
    }
    for (uint32_t i = 2; i < s->inputs.count; i++) {
        if (at(p, s->inputs, i) == UIR_PLAN_NONE || !same_kind(p, at(p, s->inputs, i), at(p, b->inputs, i)))
            return false;
    }
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t inner = at(p, b->outputs, i + 1), outer = at(p, s->outputs, i);
        bool carried = i + 2 < s->inputs.count;
        uint32_t extra = carried ? 0 : 1;
        if (!same_kind(p, inner, outer) || p->tensors[outer].storage != UIR_PLAN_STORAGE_OWN ||
            uir_dtype_bits((uir_dtype)p->tensors[outer].dtype) < 8 ||
            p->tensors[inner].extents.count + extra != p->tensors[outer].extents.count)
            return false;
        if (carried && (!same_kind(p, inner, at(p, b->inputs, i + 2)) ||
                        p->tensors[inner].extents.count != p->tensors[at(p, b->inputs, i + 2)].extents.count ||
                        p->tensors[inner].extents.count != p->tensors[at(p, s->inputs, i + 2)].extents.count))
            return false;
    }
    return true;
}

static bool check_branch(checker *c, const uir_plan_step *s, uint32_t block) {
    const uir_plan *p = c->plan;
    const uir_plan_block *b = &p->blocks[block];
    if (b->inputs.count || b->outputs.count != s->outputs.count) return false;
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        uint32_t inner = at(p, b->outputs, i), outer = at(p, s->outputs, i);
        if (!same_kind(p, inner, outer) || p->tensors[outer].storage != UIR_PLAN_STORAGE_OWN ||
            p->tensors[inner].extents.count != p->tensors[outer].extents.count)
            return false;
    }
    return true;
}

static bool check_if(checker *c, const uir_plan_step *s) {
    return is_bool_tensor(c->plan, at(c->plan, s->inputs, 0)) && check_branch(c, s, s->target) &&
           check_branch(c, s, s->other);
}

static bool check_copy(checker *c, const uir_plan_step *s) {
    const uir_plan *p = c->plan;
    uint32_t from = at(p, s->inputs, 0), to = at(p, s->outputs, 0);
    return same_kind(p, from, to) && p->tensors[from].extents.count == p->tensors[to].extents.count;
}

static bool check_bind(checker *c, const uir_plan_step *s) {
    return is_integer_tensor(c->plan, at(c->plan, s->inputs, 0)) && s->symbols.count > 0;
}

static bool check_dims(checker *c, const uir_plan_step *s) {
    const uir_plan *p = c->plan;
    uint32_t to = at(p, s->outputs, 0);
    return is_integer_tensor(p, to) && (p->tensors[to].extents.count == 1 || s->values.count == 1);
}

static bool check_indices(checker *c, const uir_plan_step *s) {
    const uir_plan *p = c->plan;
    return s->other <= 1 && s->values.count && s->values.count % 2 == 0 && s->values.count <= 2 * UIR_PLAN_MAX_RANK &&
           uir_dtype_is_integer((uir_dtype)p->tensors[at(p, s->inputs, 0)].dtype);
}

/* What may be written: not inputs, constants or ports, nor what stands for one. */
static bool is_writable(const checker *c, uint32_t tensor) {
    if (tensor == UIR_PLAN_NONE) return true;
    uint32_t storage = c->plan->tensors[c->root[tensor]].storage;
    return storage == UIR_PLAN_STORAGE_ARENA || storage == UIR_PLAN_STORAGE_OUTPUT || storage == UIR_PLAN_STORAGE_OWN ||
           storage == UIR_PLAN_STORAGE_LAID_OUT;
}

/* ---- devices ---- */
/* That the tables for a device are whole: before any other check, since the accessors read them. */
static bool check_device_tables(checker *c) {
    const uir_plan *p = c->plan;
    if (!p->devices_count) return true;
    if (p->devices_count != 1 || p->domains_count != p->tensors_count || p->schedules_count != p->steps_count ||
        p->homes_count != p->variants_count || p->port_tensors_count != p->inputs_count + (uint64_t)p->outputs_count)
        return false;
    for (uint32_t i = 0; i < p->homes_count; i++)
        if (!p->homes[i].value || p->homes[i].value >> UIR_PLAN_DOMAIN_COUNT) return false;
    for (uint32_t i = 0; i < p->domains_count; i++)
        if (p->domains[i].value >= UIR_PLAN_DOMAIN_COUNT) return false;
    for (uint32_t i = 0; i < p->schedules_count; i++) {
        if (p->schedules[i].queue >= UIR_PLAN_QUEUE_COUNT ||
            (p->schedules[i].why != UIR_PLAN_NONE && p->schedules[i].why >= p->texts_count) ||
            !is_list(c, p->schedules[i].waits))
            return false;
        for (uint32_t k = 0; k < p->schedules[i].waits.count; k++)
            if (at(p, p->schedules[i].waits, k) >= p->steps_count) return false;
    }
    return true;
}

static bool is_all_in(const uir_plan *p, uir_plan_list list, uint32_t first, uir_plan_domain domain) {
    for (uint32_t i = first; i < list.count; i++)
        if (at(p, list, i) != UIR_PLAN_NONE && uir_plan_get_domain(p, at(p, list, i)) != domain) return false;
    return true;
}

static bool has_device_steps(const uir_plan *p, uint32_t block) {
    const uir_plan_block *b = &p->blocks[block];
    for (uint32_t i = 0; i < b->step_count; i++)
        if (uir_plan_get_queue(p, b->first_step + i) != UIR_PLAN_QUEUE_HOST) return true;
    return false;
}

/* What a body takes and gives is where the step has it. */
static bool check_bodies(const uir_plan *p, const uir_plan_step *s, uir_plan_queue queue) {
    bool turns = uir_plan_turns(s);
    const uint32_t bodies[2] = {s->target, turns ? s->target : s->other};
    for (uint32_t i = 0; i < 2; i++) {
        const uir_plan_block *b = &p->blocks[bodies[i]];
        uint32_t fixed = turns ? 2 : 1;
        if (queue == UIR_PLAN_QUEUE_HOST &&
            (has_device_steps(p, bodies[i]) || !is_all_in(p, s->inputs, 0, UIR_PLAN_ON_HOST) ||
             !is_all_in(p, s->outputs, 0, UIR_PLAN_ON_HOST)))
            return false;
        for (uint32_t k = 0; k < fixed; k++)
            if (at(p, s->inputs, k) != UIR_PLAN_NONE && uir_plan_get_domain(p, at(p, s->inputs, k)) != UIR_PLAN_ON_HOST)
                return false;
        for (uint32_t k = 0; k < b->inputs.count; k++)
            if (k < 2 ? uir_plan_get_domain(p, at(p, b->inputs, k)) != UIR_PLAN_ON_HOST
                      : !has_same_domain(p, at(p, b->inputs, k), at(p, s->inputs, k)))
                return false;
        if (turns && uir_plan_get_domain(p, at(p, b->outputs, 0)) != UIR_PLAN_ON_HOST) return false;
        for (uint32_t k = 0; k < s->outputs.count; k++)
            if (!has_same_domain(p, at(p, b->outputs, k + turns), at(p, s->outputs, k))) return false;
        for (uint32_t k = 2; turns && k < s->inputs.count; k++)
            if (!has_same_domain(p, at(p, s->inputs, k), at(p, s->outputs, k - 2))) return false;
    }
    return true;
}

/* Where a step's operands may be, by its queue. */
static bool check_queue(const uir_plan *p, uint32_t step) {
    const uir_plan_step *s = &p->steps[step];
    uir_plan_queue queue = uir_plan_get_queue(p, step);
    if (!p->devices_count) return true;
    if (uir_plan_has_bodies(s)) return queue <= UIR_PLAN_QUEUE_COMPUTE && check_bodies(p, s, queue);
    if (s->kind == UIR_PLAN_STEP_COPY) {
        uir_plan_domain from = uir_plan_get_domain(p, at(p, s->inputs, 0)),
                        to = uir_plan_get_domain(p, at(p, s->outputs, 0));
        return (from == UIR_PLAN_ON_HOST && to == UIR_PLAN_ON_HOST) == (queue == UIR_PLAN_QUEUE_HOST);
    }
    uir_plan_domain domain = queue == UIR_PLAN_QUEUE_HOST ? UIR_PLAN_ON_HOST : UIR_PLAN_ON_DEVICE;
    if (s->kind == UIR_PLAN_STEP_LAUNCH && !uir_plan_kernel_runs(p, s->target, domain)) return false;
    if (uir_plan_is_fallback(p, step) && queue != UIR_PLAN_QUEUE_HOST) return false;
    return (queue == UIR_PLAN_QUEUE_HOST || (queue == UIR_PLAN_QUEUE_COMPUTE && s->kind == UIR_PLAN_STEP_LAUNCH)) &&
           is_all_in(p, s->inputs, 0, domain) && is_all_in(p, s->outputs, 0, domain);
}

/* An input on the device is written by the copy of what the caller gave. */
static bool is_upload(const uir_plan *p, const uir_plan_step *s) {
    if (s->kind != UIR_PLAN_STEP_COPY) return false;
    const uir_plan_tensor *to = &p->tensors[at(p, s->outputs, 0)];
    return to->storage == UIR_PLAN_STORAGE_INPUT &&
           uir_plan_get_port_tensor(p, false, to->index) == at(p, s->outputs, 0) &&
           p->inputs[to->index].tensor == at(p, s->inputs, 0);
}

static bool is_reference(checker *c, uir_plan_reference what, uint32_t number) {
    switch (what) {
    case UIR_PLAN_OF_NOTHING:
        return true;
    case UIR_PLAN_OF_KERNEL:
        return number < c->plan->kernels_count;
    case UIR_PLAN_OF_TEXT:
        return is_text(c->plan, number);
    case UIR_PLAN_OF_BLOCK:
        return use_block(c, number);
    }
    return false;
}

static bool check_step(checker *c, uint32_t index) {
    const uir_plan_step *s = &c->plan->steps[index];
    /* What is particular to a kind; launches are looked at kernel by kernel. */
    static bool (*const checks[UIR_PLAN_STEP_KIND_COUNT])(checker *, const uir_plan_step *) = {
        [UIR_PLAN_STEP_COPY] = check_copy, [UIR_PLAN_STEP_BIND] = check_bind, [UIR_PLAN_STEP_DIMS] = check_dims,
        [UIR_PLAN_STEP_LOOP] = check_loop, [UIR_PLAN_STEP_IF] = check_if,     [UIR_PLAN_STEP_CHECK] = check_indices,
    };
    const uir_plan *p = c->plan;
    if (s->kind >= UIR_PLAN_STEP_KIND_COUNT) return false;
    const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
    if (!is_text(p, s->node) || !is_text(p, s->op) || !is_text(p, s->remark) ||
        !is_reference(c, row->target, s->target) || !is_reference(c, row->other, s->other) ||
        s->inputs.count < row->inputs.least || s->inputs.count > row->inputs.most ||
        s->outputs.count < row->outputs.least || s->outputs.count > row->outputs.most ||
        !is_tensor_list(c, s->inputs, row->traits & UIR_PLAN_ABSENT_INPUTS) ||
        !is_tensor_list(c, s->outputs, row->traits & UIR_PLAN_ABSENT_OUTPUTS) ||
        !is_expression_list(c, s->values, p->symbols_count) || !is_list(c, s->symbols) || !is_list(c, s->constants) ||
        !is_node_list(c, s->nodes) || !is_range(c, s->first_attribute, s->attribute_count, p->attributes_count))
        return false;
    for (uint32_t i = 0; i < s->symbols.count; i++) {
        if (at(p, s->symbols, i) >= p->symbols_count) return false;
    }
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        if (!is_writable(c, at(p, s->outputs, i)) && !is_upload(p, s)) return false;
    }
    return (!checks[s->kind] || checks[s->kind](c, s)) && check_queue(p, index);
}

/* Every block but the first is the body of one step of an earlier block, so that walking ends; steps are in one block
 * each, in the blocks' order. */
static bool check_blocks(checker *c) {
    const uir_plan *p = c->plan;
    uint32_t step = 0;
    if (p->blocks_count == 0) return false;
    for (uint32_t b = 0; b < p->blocks_count; b++) {
        const uir_plan_block *block = &p->blocks[b];
        if (block->first_step != step || !is_range(c, step, block->step_count, p->steps_count)) return false;
        if (!is_tensor_list(c, block->inputs, false) || !is_tensor_list(c, block->outputs, false)) return false;
        for (uint32_t i = 0; i < block->step_count; i++) {
            const uir_plan_step *s = &p->steps[step + i];
            if (s->kind >= UIR_PLAN_STEP_KIND_COUNT) return false;
            const uir_plan_step_row *row = uir_plan_get_step_row(s->kind);
            if (row->target == UIR_PLAN_OF_BLOCK && s->target <= b) return false;
            if (row->other == UIR_PLAN_OF_BLOCK && s->other <= b) return false;
        }
        step += block->step_count;
    }
    return step == p->steps_count && p->blocks[0].inputs.count == 0;
}

/* The first table that is out of order, or NULL. */
static const char *find_fault(checker *c) {
    const uir_plan *p = c->plan;
#define CHECK(field, what, call)                                                                                       \
    for (uint32_t i = 0; i < p->field##_count; i++) {                                                                  \
        if (!(call)) return what;                                                                                      \
    }
    if (!check_device_tables(c)) return "the tables for its device";
    CHECK(texts, "a text", check_text(c, &p->texts[i]))
    CHECK(devices, "its device", is_text(p, p->devices[i].name) && is_text(p, p->devices[i].chip))
    CHECK(expressions, "an expression", check_expression(c, i))
    CHECK(symbols, "a symbol", check_symbol(c, &p->symbols[i]))
    CHECK(constants, "a constant", check_constant(c, &p->constants[i]))
    CHECK(tensors, "a tensor", check_tensor(c, i))
    CHECK(inputs, "an input", check_port(c, &p->inputs[i], i, UIR_PLAN_STORAGE_INPUT))
    CHECK(outputs, "an output", check_port(c, &p->outputs[i], i, UIR_PLAN_STORAGE_OUTPUT))
    CHECK(attributes, "an attribute", check_attribute(c, &p->attributes[i]))
    CHECK(natives, "a native object", check_native(c, &p->natives[i]))
    CHECK(kernels, "a kernel", check_kernel(c, &p->kernels[i]))
    CHECK(checks, "a check", check_check(c, &p->checks[i]))
    CHECK(metadata, "the metadata", is_text(p, p->metadata[i].key) && is_text(p, p->metadata[i].value))
    CHECK(nodes, "a node", check_node(c, &p->nodes[i]))
    if (!check_blocks(c)) return "the order of the steps";
    CHECK(steps, "a step", check_step(c, i))
    if (!check_launches(c)) return "a launch";
    for (uint32_t b = 1; b < p->blocks_count; b++) {
        if (!c->block_used[b]) return "a body that no step runs";
    }
#undef CHECK
    return NULL;
}

uir_status uir_plan_read(uir_arena *arena, const void *bytes, size_t size, uint64_t code_size, uint64_t weights_size,
                         uint32_t native_count, uir_diagnostics *diagnostics, uir_plan *out_plan) {
    uir_reader in = {bytes, (const unsigned char *)bytes + size, false};
    checker c = {.plan = out_plan,
                 .code_size = code_size,
                 .weights_size = weights_size,
                 .native_count = native_count,
                 .left = (uint64_t)size * ENTRIES_PER_BYTE,
                 .operations_left = (uint64_t)size * OPERATIONS_PER_BYTE};
    memset(out_plan, 0, sizeof *out_plan);
    uir_status status = read_tables(&in, arena, out_plan);
    if (status == UIR_STATUS_BAD_FILE)
        return uir_error(diagnostics, status, NULL, "the package's plan is cut off or too long");
    UIR_TRY(status);
    out_plan->size = size;
#define MAKE(field, count)                                                                                             \
    UIR_TRY_ALLOCATE(c.field, uir_arena_allocate_array(arena, (size_t)out_plan->count##_count + 1, sizeof *c.field))
    MAKE(symbol_end, expressions);
    MAKE(root, tensors);
    MAKE(block_used, blocks);
    MAKE(needed_by, words);
    MAKE(written_by, words);
    MAKE(launches, kernels);
    MAKE(next_step, steps);
#undef MAKE
    const char *fault = find_fault(&c);
    if (fault && c.exhausted)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL,
                         "the package's plan: the lists overlap and hold more than the plan's %zu bytes", size);
    if (fault) return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package's plan: %s is invalid", fault);
    return UIR_STATUS_OK;
}
