/* Finding a contraction in a naive loop function: its factors, the classes of its axes, the blocks before it (inlined)
 * and after it (whose iteration variables are traced to its axes). */
#include "lower/tactics/products/contraction_internal.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])

/* Whether a block is never executed, whatever the sizes. */
static bool find_empty(const uir_loop_function *f, uint32_t id) {
    for (; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        int64_t extent;
        for (uint32_t i = 0; s->kind == UIR_LOOP_STATEMENT_BLOCK && i < s->iter_count; i++)
            if (!s->iters[i].data && uir_dim_is_const(f->dims, s->iters[i].extent, &extent) && extent == 0) return true;
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK && find_empty(f, s->first_child)) return true;
    }
    return false;
}

/* Nothing of nothing has no tiles: that is loops like any. */
bool uir_contraction_matches(const uir_loop_function *function) {
    return uir_loop_count_used_as(function, function->first, UIR_LOOP_USE_CONTRACTION) &&
           !find_empty(function, function->first);
}

uir_status uir_contraction_refuse(const uir_contraction *c, const char *why) {
    return uir_error(c->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "@%s: %s", c->f->name, why);
}

bool uir_contraction_is_constant(const uir_contraction *c, uint32_t tensor) {
    const uir_loop_tensor *t = &c->f->tensors.data[tensor];
    for (uint32_t i = 0; i < c->f->tensors.count; i++) { /* an argument read in two ways stays as it is */
        const uir_loop_tensor *other = &c->f->tensors.data[i];
        if (i != tensor && other->role == t->role && other->index == t->index) return false;
    }
    return t->constant;
}

/* ---- blocks in the order of the text ---- */
typedef struct block_list {
    uint32_t ids[UIR_CONTRACTION_MAX_BLOCKS];
    uint32_t count;
} block_list;

static bool collect(const uir_loop_function *f, uint32_t id, block_list *out) {
    for (; id != UIR_LOOP_NONE; id = STATEMENT(f, id)->next) {
        if (STATEMENT(f, id)->kind != UIR_LOOP_STATEMENT_BLOCK) {
            if (STATEMENT(f, id)->kind == UIR_LOOP_STATEMENT_IF || !collect(f, STATEMENT(f, id)->first_child, out))
                return false;
        } else if (out->count == UIR_CONTRACTION_MAX_BLOCKS) {
            return false;
        } else {
            out->ids[out->count++] = id;
        }
    }
    return true;
}

static uint32_t only_statement(const uir_loop_function *f, uint32_t block) {
    uint32_t id = STATEMENT(f, block)->first_child;
    return id != UIR_LOOP_NONE && STATEMENT(f, id)->next == UIR_LOOP_NONE ? id : UIR_LOOP_NONE;
}

/* Puts what `block` stores into the blocks after it. */
static uir_status inline_block(uir_contraction *c, const block_list *blocks, uint32_t at) {
    uir_loop_function *f = c->f;
    uint32_t store = only_statement(f, blocks->ids[at]);
    const uir_loop_statement *s = STATEMENT(f, store);
    uint32_t tensor = s->targets[0].tensor;
    for (uint32_t i = at + 1; i < blocks->count; i++) {
        if (!uir_loop_block_reads(f, blocks->ids[i], tensor)) continue;
        for (uint32_t id = STATEMENT(f, blocks->ids[i])->first_child; id != UIR_LOOP_NONE;
             id = STATEMENT(f, id)->next) {
            for (uint32_t v = 0; v < STATEMENT(f, id)->value_count; v++) {
                uint32_t value;
                uir_status status = uir_loop_inline(f, STATEMENT(f, id)->values[v], tensor, s->values[0],
                                                    s->targets[0].indices, &value);
                if (status == UIR_STATUS_UNSUPPORTED)
                    return uir_contraction_refuse(c, "the prologue of the contraction cannot be inlined");
                UIR_TRY(status);
                STATEMENT(f, id)->values[v] = value;
            }
        }
    }
    return UIR_STATUS_OK;
}

/* ---- classes ---- */
typedef struct use_search {
    const uir_loop_function *f;
    const uir_loop_statement *block;
    bool used[UIR_LOOP_MAX_ITERS];
} use_search;

static void note_use(void *user, uir_symbol symbol) {
    use_search *s = user;
    for (uint32_t i = 0; i < s->block->iter_count; i++)
        if (s->block->iters[i].symbol.id == symbol.id) s->used[i] = true;
}

static void find_uses(use_search *s, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(s->f, id);
    if (e->kind == UIR_LOOP_INDEX) uir_dim_visit_symbols(s->f->dims, e->index, note_use, s);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < s->f->tensors.data[e->load.tensor].rank; d++)
        uir_dim_visit_symbols(s->f->dims, e->load.indices[d], note_use, s);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) find_uses(s, e->arguments[i]);
}

static uint32_t iter_of(const uir_loop_function *f, const uir_loop_statement *block, uir_dim dim) {
    uir_symbol symbol;
    if (!uir_dim_is_symbol(f->dims, dim, &symbol)) return UIR_LOOP_NONE;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id) return i;
    return UIR_LOOP_NONE;
}

/* (A convolution's rows and columns are what its own tactic makes of them.) */
static void say_classes(uir_contraction *c) {
    uir_loop_statement *block = STATEMENT(c->f, c->update);
    if (block->uses >> UIR_LOOP_USE_CONVOLUTION & 1) return;
    for (uint32_t i = 0; i < c->axis_count; i++) block->iters[i].part = (uir_loop_class)(c->axes[i].class + 1);
}

void uir_contraction_exchange(uir_contraction *c) {
    uint32_t factor = c->factors[0];
    for (uint32_t i = 0; i < c->axis_count; i++) {
        uir_contraction_class class = c->axes[i].class;
        if (class == UIR_CONTRACTION_M) c->axes[i].class = UIR_CONTRACTION_N;
        if (class == UIR_CONTRACTION_N) c->axes[i].class = UIR_CONTRACTION_M;
    }
    c->factors[0] = c->factors[1];
    c->factors[1] = factor;
    say_classes(c);
}

static uir_status classify(uir_contraction *c) {
    uir_loop_function *f = c->f;
    const uir_loop_statement *block = STATEMENT(f, c->update), *sum = STATEMENT(f, c->sum);
    const uir_loop_expression *product = EXPRESSION(f, sum->values[0]);
    const uir_loop_monoid *monoid = &f->monoids.data[sum->monoid];
    const uir_loop_expression *step = EXPRESSION(f, monoid->update[0]);
    if (product->kind != UIR_LOOP_CALL || product->op != UIR_OP_MUL)
        return uir_contraction_refuse(c, "the contraction does not sum products of two values");
    if (monoid->state_count != 1 || step->kind != UIR_LOOP_CALL || step->op != UIR_OP_ADD)
        return uir_contraction_refuse(c, "the monoid of the contraction is not a sum");
    if (f->tensors.data[c->tensor].role != UIR_LOOP_ROLE_TEMP)
        return uir_contraction_refuse(c, "the accumulator of the contraction is itself a result");
    use_search uses[2] = {{f, block, {false}}, {f, block, {false}}};
    bool said = false;
    for (uint32_t k = 0; k < 2; k++) {
        c->factors[k] = product->arguments[k];
        find_uses(&uses[k], c->factors[k]);
    }
    c->axis_count = block->iter_count;
    for (uint32_t i = 0; i < block->iter_count; i++) said |= block->iters[i].part != UIR_LOOP_CLASS_NONE;
    for (uint32_t i = 0; i < block->iter_count; i++) {
        uir_contraction_axis *axis = &c->axes[i];
        if (block->iters[i].data) return uir_contraction_refuse(c, "an axis of the contraction is read from data");
        *axis = (uir_contraction_axis){
            .extent = block->iters[i].extent, .shared = uses[0].used[i] && uses[1].used[i], .place = -1};
        if (said && block->iters[i].part == UIR_LOOP_CLASS_NONE)
            return uir_contraction_refuse(c, "only some axes are mapped to batch, m, n or k");
        axis->class = said                                 ? (uir_contraction_class)(block->iters[i].part - 1)
                      : block->iters[i].reduce             ? UIR_CONTRACTION_K
                      : uses[0].used[i] == uses[1].used[i] ? UIR_CONTRACTION_BATCH
                      : uses[1].used[i]                    ? UIR_CONTRACTION_N
                                                           : UIR_CONTRACTION_M;
    }
    say_classes(c);
    for (uint32_t d = 0; d < f->tensors.data[c->tensor].rank; d++) {
        c->tensor_axes[d] = iter_of(f, block, sum->targets[0].indices[d]);
        if (c->tensor_axes[d] == UIR_LOOP_NONE)
            return uir_contraction_refuse(c, "the accumulator is not stored along axes of the contraction");
    }
    return UIR_STATUS_OK;
}

/* ---- what comes after: iteration variables to axes, by the tensors whose axes are known ---- */
typedef struct tracer {
    uir_contraction *c;
    uint32_t (*known)[UIR_LOOP_MAX_RANK]; /* per tensor; [0] NONE: not known */
    uir_contraction_block *block;
    bool conflict;
} tracer;

static void trace(tracer *t, uint32_t id) {
    uir_loop_function *f = t->c->f;
    const uir_loop_expression *e = EXPRESSION(f, id);
    const uir_loop_statement *block = STATEMENT(f, t->block->id);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) trace(t, e->arguments[i]);
    if (e->kind != UIR_LOOP_LOAD || t->known[e->load.tensor][0] == UIR_LOOP_NONE - 1) return;
    for (uint32_t d = 0; d < f->tensors.data[e->load.tensor].rank; d++) {
        uint32_t iter = iter_of(f, block, e->load.indices[d]), axis = t->known[e->load.tensor][d];
        if (iter == UIR_LOOP_NONE || (t->block->axes[iter] != UIR_LOOP_NONE && t->block->axes[iter] != axis))
            t->conflict = true;
        else
            t->block->axes[iter] = axis;
    }
}

static uir_status trace_block(tracer *t, uint32_t id) {
    uir_contraction *c = t->c;
    uir_loop_function *f = c->f;
    const uir_loop_statement *block = STATEMENT(f, id);
    uint32_t store = only_statement(f, id);
    if (store == UIR_LOOP_NONE || c->after_count == UIR_CONTRACTION_MAX_BLOCKS)
        return uir_contraction_refuse(c, "a block after the contraction has more than one statement");
    const uir_loop_statement *s = STATEMENT(f, store);
    if (s->kind != UIR_LOOP_STATEMENT_STORE && (s->kind != UIR_LOOP_STATEMENT_FINISH || s->value_count != 1))
        return uir_contraction_refuse(c, "the epilogue of the contraction is not elementwise");
    uir_contraction_block *b = t->block = &c->after[c->after_count++];
    b->id = id;
    for (uint32_t i = 0; i < block->iter_count; i++) b->axes[i] = UIR_LOOP_NONE;
    trace(t, s->values[0]);
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (b->axes[i] == UIR_LOOP_NONE || block->iters[i].data) t->conflict = true;
    if (t->conflict || block->iter_count != f->tensors.data[c->tensor].rank)
        return uir_contraction_refuse(c, "the epilogue has other axes than the contraction");
    const uir_loop_access *target = &s->targets[0];
    const uir_loop_tensor *tensor = &f->tensors.data[target->tensor];
    for (uint32_t d = 0; d < tensor->rank; d++) {
        uint32_t iter = iter_of(f, block, target->indices[d]);
        if (iter == UIR_LOOP_NONE) {
            if (tensor->role == UIR_LOOP_ROLE_TEMP)
                return uir_contraction_refuse(c, "a value of the epilogue is not stored along axes of the contraction");
            continue;
        }
        t->known[target->tensor][d] = b->axes[iter];
        if (tensor->role == UIR_LOOP_ROLE_OUT) c->axes[b->axes[iter]].place = (int32_t)d;
    }
    if (!tensor->rank) t->known[target->tensor][0] = 0;
    return UIR_STATUS_OK;
}

/* The state that a block stores to, when it is one of the contractions' (their inits and updates); NONE. */
static uint32_t state_of(const uir_loop_function *f, const block_list *blocks, uint32_t block, bool *out_is_update) {
    uint32_t only = only_statement(f, block);
    *out_is_update = only != UIR_LOOP_NONE && STATEMENT(f, only)->kind == UIR_LOOP_STATEMENT_UPDATE &&
                     uir_loop_is_used_as(f, block, UIR_LOOP_USE_CONTRACTION);
    if (only == UIR_LOOP_NONE) return UIR_LOOP_NONE;
    const uir_loop_statement *s = STATEMENT(f, only);
    if (*out_is_update) return s->targets[0].tensor;
    for (uint32_t i = 0; s->kind == UIR_LOOP_STATEMENT_INIT && i < blocks->count; i++) {
        uint32_t update = only_statement(f, blocks->ids[i]);
        if (update != UIR_LOOP_NONE && uir_loop_is_used_as(f, blocks->ids[i], UIR_LOOP_USE_CONTRACTION) &&
            STATEMENT(f, update)->targets[0].tensor == s->targets[0].tensor)
            return s->targets[0].tensor;
    }
    return UIR_LOOP_NONE;
}

#define NO_OWNER UINT32_MAX
#define IS_PART  (UINT32_MAX - 1)

/* The init and update of the contraction; per block the last contraction that it depends on. */
static uir_status find_parts(uir_contraction *c, const block_list *blocks, uint32_t *owners) {
    uir_loop_function *f = c->f;
    uint32_t states[UIR_CONTRACTION_MAX_PRODUCTS], count = 0;
    bool is_update;
    c->init = c->update = UIR_LOOP_NONE;
    for (uint32_t i = 0; i < blocks->count; i++) {
        uint32_t state = state_of(f, blocks, blocks->ids[i], &is_update), only = only_statement(f, blocks->ids[i]);
        bool begins = only != UIR_LOOP_NONE && STATEMENT(f, only)->kind == UIR_LOOP_STATEMENT_INIT;
        owners[i] = state == UIR_LOOP_NONE && !begins ? NO_OWNER : IS_PART; /* an init goes with its update */
        if (!is_update) continue;
        if (count == UIR_CONTRACTION_MAX_PRODUCTS) return uir_contraction_refuse(c, "too many contractions");
        if (count == c->number) {
            c->update = blocks->ids[i];
            c->sum = only_statement(f, blocks->ids[i]);
            c->tensor = state;
        }
        states[count++] = state;
    }
    for (uint32_t i = 0; i < blocks->count; i++) {
        if (owners[i] == IS_PART) {
            if (c->update != UIR_LOOP_NONE && state_of(f, blocks, blocks->ids[i], &is_update) == c->tensor &&
                !is_update)
                c->init = blocks->ids[i];
            continue;
        }
        for (uint32_t k = 0; k < count; k++)
            if (uir_loop_block_reads(f, blocks->ids[i], states[k])) owners[i] = k;
        for (uint32_t j = 0; j < i; j++) {
            uint32_t earlier = only_statement(f, blocks->ids[j]);
            if (owners[j] >= IS_PART || earlier == UIR_LOOP_NONE) continue;
            if (!uir_loop_block_reads(f, blocks->ids[i], STATEMENT(f, earlier)->targets[0].tensor)) continue;
            if (owners[i] == NO_OWNER || owners[i] < owners[j]) owners[i] = owners[j];
        }
    }
    if (c->init == UIR_LOOP_NONE) return uir_contraction_refuse(c, "the function has no contraction");
    return UIR_STATUS_OK;
}

uir_status uir_contraction_find(uir_loop_function *f, uint32_t number, const bool *left_out, uir_arena *arena,
                                uir_diagnostics *diagnostics, uir_contraction *out) {
    uir_contraction *c = out;
    block_list blocks = {.count = 0};
    uint32_t owners[UIR_CONTRACTION_MAX_BLOCKS];
    *c = (uir_contraction){.f = f, .arena = arena, .diagnostics = diagnostics, .number = number};
    if (!collect(f, f->first, &blocks)) return uir_contraction_refuse(c, "too many blocks, or an if among them");
    UIR_TRY(find_parts(c, &blocks, owners));
    tracer t = {.c = c};
    UIR_TRY_ALLOCATE(t.known, uir_arena_allocate_array(arena, f->tensors.count + 1, sizeof *t.known));
    for (uint32_t i = 0; i < f->tensors.count; i++) t.known[i][0] = UIR_LOOP_NONE - 1;
    /* What does not read sums is computed where it is used. */
    for (uint32_t i = 0; i < blocks.count; i++) {
        uint32_t id = blocks.ids[i], store = only_statement(f, id);
        if (owners[i] != NO_OWNER) continue;
        if (store == UIR_LOOP_NONE || STATEMENT(f, store)->kind != UIR_LOOP_STATEMENT_STORE ||
            f->tensors.data[STATEMENT(f, store)->targets[0].tensor].role != UIR_LOOP_ROLE_TEMP)
            return uir_contraction_refuse(c, "a block is neither prologue nor epilogue of the contraction");
        UIR_TRY(inline_block(c, &blocks, i));
    }
    UIR_TRY(classify(c));
    for (uint32_t d = 0; d < f->tensors.data[c->tensor].rank; d++) t.known[c->tensor][d] = c->tensor_axes[d];
    if (!f->tensors.data[c->tensor].rank) t.known[c->tensor][0] = 0;
    for (uint32_t i = 0; i < blocks.count; i++)
        if (owners[i] == c->number && !(left_out && left_out[blocks.ids[i]])) UIR_TRY(trace_block(&t, blocks.ids[i]));
    return UIR_STATUS_OK;
}
