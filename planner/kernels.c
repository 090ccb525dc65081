/* Kernels: each variant's symbols, tiling function, pointers and phases as tables, its bytecode, its packed constants.
 */
#include "planner/internal.h"

#include "ir/kernel/igraph_slack.h"

#include <string.h>

/* ---- a variant's tables ---- */
/* Whether the dim uses none but numbered symbols: a let of a body uses an axis and is left out. */
typedef struct search {
    const uir_pl_scope *scope;
    bool missing;
} search;

static void look_up(void *user, uir_symbol symbol) {
    search *s = user;
    s->missing |= symbol.id >= s->scope->symbol_count || !s->scope->symbols[symbol.id];
}

static bool is_in_scope(const uir_pl_scope *scope, uir_dim dim) {
    search s = {scope, false};
    uir_dim_visit_symbols(scope->dims, dim, look_up, &s);
    return !s.missing;
}

static uir_status add_symbols(planner *p, uir_pl_scope *scope, const uir_igraph *g, uir_plan_variant *v) {
    v->first_symbol = p->kernel_symbols.count;
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        const uir_isymbol *s = &g->symbols.data[i];
        uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, s->symbol);
        uir_plan_kernel_symbol out = {UIR_PLAN_VALUE, facts.min, facts.max, facts.multiple_of, UIR_PLAN_NONE};
        if (s->kind == UIR_ISYMBOL_DIM)
            out.kind = UIR_PLAN_DIM;
        else if (s->kind == UIR_ISYMBOL_TILE)
            out.kind = UIR_PLAN_TILE;
        else if ((s->kind != UIR_ISYMBOL_CONSTANT && s->kind != UIR_ISYMBOL_DEVICE && s->kind != UIR_ISYMBOL_LET) ||
                 !is_in_scope(scope, s->definition))
            continue;
        if (out.kind == UIR_PLAN_VALUE) UIR_TRY(uir_pl_add_expression(p, scope, s->definition, &out.definition));
        UIR_TRY(uir_vector_push(&p->arena, &p->kernel_symbols, out));
        scope->symbols[s->symbol.id] = ++v->symbol_count;
    }
    return UIR_STATUS_OK;
}

static uir_status add_condition(planner *p, uir_pl_scope *scope, const uir_condition *c) {
    uir_plan_condition out = {(uint32_t)c->relation, 0, 0};
    UIR_TRY(uir_pl_add_expression(p, scope, c->left, &out.left));
    UIR_TRY(uir_pl_add_expression(p, scope, c->right, &out.right));
    return uir_vector_push(&p->arena, &p->conditions, out);
}

static uir_status add_tiling(planner *p, uir_pl_scope *scope, const uir_igraph *g, uir_plan_variant *v) {
    uint32_t tiles = uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE);
    v->first_require = p->conditions.count;
    v->require_count = g->requires_.count;
    for (uint32_t i = 0; i < g->requires_.count; i++) UIR_TRY(add_condition(p, scope, &g->requires_.data[i]));
    if (tiles && !g->candidates.count)
        return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "kernel @%s has tiles, but no candidate sets their values", g->name);
    v->first_candidate = p->candidates.count;
    v->candidate_count = g->candidates.count;
    for (uint32_t i = 0; i < g->candidates.count; i++) {
        const uir_icandidate *c = &g->candidates.data[i];
        uir_plan_candidate out = {p->conditions.count, c->guard.count, {0, 0}, UIR_PLAN_NONE, UIR_PLAN_NONE};
        for (uint32_t k = 0; k < c->guard.count; k++) {
            if (c->guard.atoms[k].kind != UIR_IATOM_RELATION)
                return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                                 "kernel @%s: a candidate's guard uses the first or last iteration of a loop", g->name);
            UIR_TRY(add_condition(p, scope, &c->guard.atoms[k].condition));
        }
        UIR_TRY(uir_pl_add_expressions(p, scope, c->tiles, tiles, &out.tiles));
        UIR_TRY(uir_pl_add_expression(p, scope, c->cost, &out.cost));
        UIR_TRY(uir_pl_add_expression(p, scope, c->units, &out.units));
        UIR_TRY(uir_vector_push(&p->arena, &p->candidates, out));
    }
    return UIR_STATUS_OK;
}

static uir_status add_pointers(planner *p, uir_pl_scope *scope, const uir_igraph *g, uir_plan_kernel *k,
                               uir_plan_variant *v) {
    static const uir_plan_role roles[] = {
        [UIR_IPOINTER_IN] = UIR_PLAN_IN,
        [UIR_IPOINTER_OUT] = UIR_PLAN_OUT,
        [UIR_IPOINTER_CONST] = UIR_PLAN_CONST,
        [UIR_IPOINTER_WORK] = UIR_PLAN_WORK,
    };
    v->first_pointer = p->pointers.count;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        const uir_ipointer *in = &g->pointers.data[i];
        if (in->role == UIR_IPOINTER_LOCAL) continue;
        uir_plan_pointer out = {(uint32_t)roles[in->role], 0, (uint32_t)in->dtype, 0, UIR_PLAN_NONE};
        if (in->role != UIR_IPOINTER_WORK) out.index = in->role_index;
        if (in->role == UIR_IPOINTER_OUT && k->output_count <= in->role_index) k->output_count = in->role_index + 1;
        if ((in->role == UIR_IPOINTER_IN || in->role == UIR_IPOINTER_CONST) && k->input_count <= in->role_index)
            k->input_count = in->role_index + 1;
        if (in->tied != UINT32_MAX) out.tied = g->pointers.data[in->tied].role_index;
        UIR_TRY(uir_pl_add_expression(p, scope, in->element_span, &out.span));
        UIR_TRY(uir_vector_push(&p->arena, &p->pointers, out));
        v->pointer_count++;
    }
    if (v->pointer_count > UIR_PLAN_MAX_POINTERS)
        return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "kernel @%s has %u pointers, at most %d fit a plan", g->name, v->pointer_count,
                         UIR_PLAN_MAX_POINTERS);
    return UIR_STATUS_OK;
}

/* Pointers in device memory have numbers of their own. */
static uint32_t number_pointer(const uir_igraph *g, uint32_t pointer) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < pointer; i++) number += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    return number;
}

/* Both pointers address all coordinates alike: each stride is the same, or its mode has one element at most. */
static uir_status add_same(planner *p, uir_pl_scope *scope, const uir_igraph *g, const uir_icopy *copy,
                           uir_plan_phase *out, bool *out_fine) {
    const uir_ipointer *from = &g->pointers.data[copy->from], *to = &g->pointers.data[copy->to];
    uir_dims *dims = g->dims;
    *out_fine = from->rank == to->rank && !from->layout.swizzle.bits && !to->layout.swizzle.bits;
    for (uint32_t d = 0; d < from->rank && *out_fine; d++) {
        *out_fine = from->layout.mode_count[d] == to->layout.mode_count[d];
        for (uint32_t m = 0; m < from->layout.mode_count[d] && *out_fine; m++) {
            const uir_mode *a = &from->layout.modes[d][m], *b = &to->layout.modes[d][m];
            if (m + 1 < from->layout.mode_count[d]) *out_fine = uir_dim_equal(a->size, b->size);
            if (uir_dim_equal(a->stride, b->stride)) continue;
            uir_dim one = uir_dim_const(dims, 1),
                    several = uir_dim_min(dims, one, uir_dim_sub(dims, uir_dim_max(dims, a->size, one), one));
            UIR_TRY(add_condition(p, scope,
                                  &(uir_condition){UIR_RELATION_EQ, uir_dim_mul(dims, several, a->stride),
                                                   uir_dim_mul(dims, several, b->stride)}));
            out->same_count++;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status add_copies(planner *p, uir_pl_scope *scope, const uir_igraph *g, uint32_t phase,
                             uir_plan_phase *out) {
    uir_icopy copies[UIR_PLAN_MAX_POINTERS / 2];
    uint32_t pointers[UIR_PLAN_MAX_POINTERS];
    uint32_t count = uir_igraph_find_copies(g, phase, copies, UIR_PLAN_MAX_POINTERS / 2);
    bool fine = true;
    out->first_same = p->conditions.count;
    for (uint32_t i = 0; i < count && fine; i++) {
        pointers[2 * i] = number_pointer(g, copies[i].from);
        pointers[2 * i + 1] = number_pointer(g, copies[i].to);
        UIR_TRY(add_same(p, scope, g, &copies[i], out, &fine));
    }
    return fine ? uir_pl_add_list(p, pointers, 2 * count, &out->copies) : UIR_STATUS_OK;
}

static uir_status add_phases(planner *p, uir_pl_scope *scope, const uir_igraph *g, uir_plan_variant *v) {
    v->first_phase = p->phases.count;
    v->phase_count = g->phases.count;
    for (uint32_t i = 0; i < g->phases.count; i++) {
        const uir_iphase *phase = &g->phases.data[i];
        uir_dim extents[4];
        uir_plan_phase out = {{0, 0}, {0, 0}, 0, 0};
        for (uint32_t a = 0; a < phase->parallel_count; a++) extents[a] = phase->parallel[a].extent;
        UIR_TRY(uir_pl_add_expressions(p, scope, extents, phase->parallel_count, &out.extents));
        UIR_TRY(add_copies(p, scope, g, i, &out));
        UIR_TRY(uir_vector_push(&p->arena, &p->phases, out));
    }
    return UIR_STATUS_OK;
}

/* `index`: among all variants of all sources. A variant whose scratch has no expression is left to the bytecode. */
static uir_status add_native(planner *p, uir_pl_scope *scope, uint32_t index, uir_plan_variant *v) {
    uint32_t count = p->options->object_count, *names;
    v->scratch = UIR_PLAN_NONE;
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&p->arena, (size_t)count + 1, sizeof *names));
    if (count && p->options->scratch[index].id)
        UIR_TRY(uir_pl_add_expression(p, scope, p->options->scratch[index], &v->scratch));
    for (uint32_t i = 0; i < count; i++) {
        const char *const *symbols = p->options->objects[i].symbols, *symbol = symbols ? symbols[index] : NULL;
        names[i] = UIR_PLAN_NONE;
        if (symbol && v->scratch != UIR_PLAN_NONE) UIR_TRY(uir_pl_add_text(p, symbol, strlen(symbol), &names[i]));
    }
    return uir_pl_add_list(p, names, count, &v->native_names);
}

static bool has_native(const planner *p, uint32_t index) {
    for (uint32_t i = 0; i < p->options->object_count; i++) {
        if (p->options->scratch[index].id && p->options->objects[i].symbols && p->options->objects[i].symbols[index])
            return true;
    }
    return false;
}

/* Kernels of a device with memory of its own that an object has need no bytecode: the host runs none of them. */
static uir_status add_code(planner *p, const uir_igraph *g, uint32_t index, uir_plan_variant *v) {
    uir_text_append_until(&p->code, 0, 8, 0);
    v->code_offset = p->code.length;
    if (p->options->device && has_native(p, index)) return UIR_STATUS_OK;
    uir_status status = p->options->encode(g, has_native(p, index) ? NULL : p->diagnostics, &p->code);
    v->code_size = p->code.length - v->code_offset;
    return status == UIR_STATUS_UNSUPPORTED && has_native(p, index) ? UIR_STATUS_OK : status;
}

static uir_status add_variant(planner *p, const uir_igraph *g, uint32_t index, uir_plan_kernel *k) {
    uir_plan_variant v = {0};
    uir_pl_scope scope = {.dims = g->dims, .symbol_count = uir_dims_symbol_count(g->dims)};
    UIR_TRY_ALLOCATE(scope.symbols,
                     uir_arena_allocate_array(&p->arena, (size_t)scope.symbol_count + 1, sizeof *scope.symbols));
    UIR_TRY(add_symbols(p, &scope, g, &v));
    UIR_TRY(add_tiling(p, &scope, g, &v));
    UIR_TRY(add_pointers(p, &scope, g, k, &v));
    UIR_TRY(add_phases(p, &scope, g, &v));
    UIR_TRY(add_native(p, &scope, index, &v));
    UIR_TRY(add_code(p, g, index, &v));
    return uir_vector_push(&p->arena, &p->variants, v);
}

uir_status uir_pl_add_kernels(planner *p) {
    uint32_t index = 0;
    for (uint32_t i = 0; i < p->source_count; i++) {
        const uir_plan_source *s = &p->sources[i];
        uir_plan_kernel k = {0, p->variants.count, s->variants->count, 0, 0, 0};
        if (!k.variant_count)
            return uir_error(p->diagnostics, UIR_STATUS_INTERNAL, NULL, "kernel %s has no variant", s->name);
        UIR_TRY(uir_pl_add_text(p, s->name, strlen(s->name), &k.name));
        k.dim_count = uir_igraph_count_symbols(s->variants->igraphs[0], UIR_ISYMBOL_DIM);
        for (uint32_t v = 0; v < k.variant_count; v++) {
            const uir_igraph *g = s->variants->igraphs[v];
            if (uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM) != k.dim_count)
                return uir_error(p->diagnostics, UIR_STATUS_INTERNAL, NULL,
                                 "variants of kernel %s differ in their dims", s->name);
            UIR_TRY(add_variant(p, g, index++, &k));
        }
        UIR_TRY(uir_vector_push(&p->arena, &p->kernels, k));
    }
    for (uint32_t i = 0, section = 0; i < p->options->object_count; i++) {
        const uir_plan_object *o = &p->options->objects[i];
        uir_plan_native n = {0, o->bytes ? section++ : UIR_PLAN_NONE};
        UIR_TRY(uir_pl_add_text(p, o->isa, strlen(o->isa), &n.isa));
        UIR_TRY(uir_vector_push(&p->arena, &p->natives, n));
    }
    return UIR_STATUS_OK;
}

/* ---- packed constants ---- */
typedef struct binding {
    int64_t *values;
    bool *bound;
    uint32_t count;
} binding;

/* What is known when the package is made: dims that are constant, and what follows from them. Dims without a size are
 * slack, which is known when it runs. */
static uir_status bind_known(planner *p, const uir_igraph *g, const uir_dim *sizes, uint32_t size_count, binding *b) {
    uint32_t dim = 0;
    b->count = uir_dims_symbol_count(g->dims);
    UIR_TRY_ALLOCATE(b->values, uir_arena_allocate_array(&p->arena, (size_t)b->count + 1, sizeof *b->values));
    UIR_TRY_ALLOCATE(b->bound, uir_arena_allocate_array(&p->arena, (size_t)b->count + 1, sizeof *b->bound));
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        const uir_isymbol *s = &g->symbols.data[i];
        uint32_t id = s->symbol.id;
        if (s->kind == UIR_ISYMBOL_DIM) {
            b->bound[id] = dim < size_count && uir_dim_is_const(p->module->dims, sizes[dim], &b->values[id]);
            dim++;
        }
        if (s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE || s->kind == UIR_ISYMBOL_LET)
            b->bound[id] = uir_dim_evaluate(g->dims, s->definition, b->values, b->bound, b->count, &b->values[id]) ==
                           UIR_DIM_EVALUATED;
    }
    return UIR_STATUS_OK;
}

static bool is_known(const uir_igraph *g, const binding *b, uir_dim dim, int64_t *out) {
    return uir_dim_evaluate(g->dims, dim, b->values, b->bound, b->count, out) == UIR_DIM_EVALUATED;
}

/* What tells a packed constant from others: whose elements they are and where each of them goes. False when some of
 * that is known only when it runs. */
enum { MAX_KEY = 5 + UIR_IGRAPH_MAX_RANK * (2 + 2 * UIR_IGRAPH_MAX_MODES) };
static bool make_packing_key(const uir_igraph *g, const uir_ipointer *in, const binding *b, uir_value_id value,
                             int64_t *key, uint32_t *out_length) {
    uint32_t n = 0;
    bool known = is_known(g, b, in->element_span, &key[n++]);
    key[n++] = value.id;
    key[n++] = (int64_t)in->dtype;
    key[n++] = (int64_t)in->rank;
    key[n++] = in->layout.swizzle.bits | in->layout.swizzle.base << 8 | in->layout.swizzle.shift << 16;
    for (uint32_t d = 0; d < in->rank && known; d++) {
        known = is_known(g, b, in->extents[d], &key[n++]);
        key[n++] = in->layout.mode_count[d];
        for (uint32_t m = 0; m < in->layout.mode_count[d] && known; m++) {
            known = is_known(g, b, in->layout.modes[d][m].size, &key[n]) &&
                    is_known(g, b, in->layout.modes[d][m].stride, &key[n + 1]);
            n += 2;
        }
    }
    *out_length = n;
    return known;
}

static bool has_elements(const uir_igraph *g, const uir_ipointer *in, const binding *b, const uir_tensor *tensor) {
    int64_t extent, elements = 1;
    for (uint32_t d = 0; d < in->rank; d++) {
        if (!is_known(g, b, in->extents[d], &extent) || __builtin_mul_overflow(elements, extent, &elements))
            return false;
    }
    return in->dtype == tensor->dtype && (uint64_t)elements == tensor->element_count;
}

static uir_status pack(planner *p, const uir_node_info *node, const uir_igraph *g, uint32_t pointer, const binding *b,
                       uir_value_id value, uint32_t *out_constant) {
    const uir_ipointer *in = &g->pointers.data[pointer];
    const uir_tensor *tensor = uir_value_info_get(p->module, value)->constant;
    int64_t key[MAX_KEY];
    uint32_t length;
    if (!make_packing_key(g, in, b, value, key, &length))
        return uir_pl_fail(p, node, UIR_STATUS_UNSUPPORTED,
                           "the layout of %%%s in kernel @%s depends on values known only at run time", in->name,
                           g->name);
    if (!has_elements(g, in, b, tensor))
        return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "%%%s of kernel @%s does not match its constant", in->name,
                           g->name);
    uir_pl_packing *packing;
    size_t size;
    *out_constant = 0;
    if (!uir_dtype_storage_size(in->dtype, key[0] > 0 ? (uint64_t)key[0] : 0, &size)) return UIR_STATUS_LIMIT;
    UIR_TRY(uir_pl_find_packing(p, key, length, &packing));
    if (packing->constant == UIR_PLAN_NONE) {
        UIR_TRY(uir_pl_make_room(p, size));
        uir_status status = uir_igraph_pack(g, pointer, b->values, tensor->data, p->room);
        uir_tensor_rest(tensor);
        if (status != UIR_STATUS_OK)
            return uir_pl_fail(p, node, status, "%%%s of kernel @%s cannot be packed", in->name, g->name);
        UIR_TRY(uir_pl_add_constant(p, p->room, size, &packing->constant));
    }
    *out_constant = packing->constant;
    return UIR_STATUS_OK;
}

uir_status uir_pl_pack_constants(planner *p, const uir_node_info *node, uint32_t kernel, const uir_dim *sizes,
                                 uint32_t size_count, uir_plan_list *out_constants, bool *used) {
    const uir_igraph_list *variants = p->sources[kernel].variants;
    uir_vector(uint32_t) constants = {0};
    for (uint32_t v = 0; v < variants->count; v++) {
        const uir_igraph *g = variants->igraphs[v];
        binding b;
        UIR_TRY(bind_known(p, g, sizes, size_count, &b));
        for (uint32_t i = 0; i < g->pointers.count; i++) {
            const uir_ipointer *in = &g->pointers.data[i];
            if (in->role == UIR_IPOINTER_OUT) {
                if (in->role_index >= node->output_count)
                    return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "kernel @%s has an output that the group lacks",
                                       g->name);
            }
            if (in->role != UIR_IPOINTER_IN && in->role != UIR_IPOINTER_CONST) continue;
            if (in->role_index >= node->input_count)
                return uir_pl_fail(p, node, UIR_STATUS_INTERNAL, "kernel @%s has an input that the group lacks",
                                   g->name);
            uir_value_id value = node->inputs[in->role_index];
            if (in->role == UIR_IPOINTER_IN) {
                used[in->role_index] = true;
                continue;
            }
            uint32_t constant;
            if (!uir_value_info_get(p->module, value)->constant)
                return uir_pl_fail(p, node, UIR_STATUS_INTERNAL,
                                   "%%%s of kernel @%s is to be packed, but is not a constant", in->name, g->name);
            UIR_TRY(pack(p, node, g, i, &b, value, &constant));
            UIR_TRY(uir_vector_push(&p->arena, &constants, constant));
        }
    }
    return uir_pl_add_list(p, constants.data, constants.count, out_constants);
}
