/* Where a tensor's elements lie: the order of its dims, and its layout. What is computed stays the same. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- arrange ---- */
typedef struct arrangement {
    uir_schedule *s;
    uint32_t tensor;
    const uint32_t *dims;
    uint32_t count;
} arrangement;

static void arrange_access(const arrangement *a, uir_loop_access *access) {
    uir_loop_access before = *access;
    if (access->tensor != a->tensor) return;
    memset(access->indices, 0, sizeof access->indices);
    for (uint32_t d = 0; d < a->count; d++)
        access->indices[d] =
            a->dims[d] == UIR_LOOP_NONE ? uir_dim_const(a->s->function->dims, 0) : before.indices[a->dims[d]];
}

static uir_status arrange_expression(const arrangement *a, uint32_t id, uint32_t *out_id) {
    uir_loop_function *f = a->s->function;
    uir_loop_expression e = f->expressions.data[id];
    bool changed = e.kind == UIR_LOOP_LOAD && e.load.tensor == a->tensor;
    if (changed) {
        if (e.has_fill)
            return uir_step_refuse(a->s, "%s is read out of bounds", UIR_SCHEDULE_TENSOR(a->s, a->tensor)->name);
        arrange_access(a, &e.load);
    }
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument;
        UIR_TRY(arrange_expression(a, e.arguments[i], &argument));
        changed |= argument != e.arguments[i];
        e.arguments[i] = argument;
    }
    *out_id = id;
    if (!changed) return UIR_STATUS_OK;
    *out_id = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

static uir_status arrange_block(const arrangement *a, uint32_t block) {
    uir_schedule *s = a->s;
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (!b->iters[i].data) continue;
        uir_loop_access from = *b->iters[i].from;
        arrange_access(a, &from);
        UIR_TRY_ALLOCATE(b->iters[i].from, uir_arena_copy(&s->function->arena, &from, sizeof from));
    }
    for (uint32_t id = b->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->value_count; i++)
            UIR_TRY(arrange_expression(a, UIR_SCHEDULE_AT(s, id)->values[i], &UIR_SCHEDULE_AT(s, id)->values[i]));
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            arrange_access(a, &UIR_SCHEDULE_AT(s, id)->targets[i]);
    }
    return UIR_STATUS_OK;
}

/* Each dim at most once; those that are left out have one element. */
static uir_status check_dims(uir_schedule *s, const uir_loop_tensor *t, const uint32_t *dims, uint32_t count) {
    bool used[UIR_LOOP_MAX_RANK] = {false};
    if (count > UIR_LOOP_MAX_RANK) return uir_step_refuse(s, "%s would have too many dims", t->name);
    for (uint32_t i = 0; i < count; i++) {
        if (dims[i] == UIR_LOOP_NONE) continue;
        if (dims[i] >= t->rank || used[dims[i]])
            return uir_step_refuse(s, "%s has %u dims; name each once", t->name, t->rank);
        used[dims[i]] = true;
    }
    for (uint32_t d = 0; d < t->rank; d++)
        if (!used[d] && !uir_dim_equal(t->extents[d], uir_dim_const(s->function->dims, 1)))
            return uir_step_refuse(s, "dim %u of %s has more than one element", d, t->name);
    return UIR_STATUS_OK;
}

static uir_status arrange(uir_schedule *s, uint32_t tensor, const uint32_t *dims, uint32_t count) {
    uint32_t block_count = uir_schedule_blocks(s, UIR_LOOP_NONE, NULL, 0), *blocks;
    arrangement a = {s, tensor, dims, count};
    char list[80] = "";
    if (tensor >= s->function->tensors.count) return uir_step_refuse(s, "unknown tensor %u", tensor);
    uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor), before = *t;
    if (t->role != UIR_LOOP_ROLE_TEMP) return uir_step_refuse(s, "%s belongs to the caller", t->name);
    if (t->layout) return uir_step_refuse(s, "%s already has a layout", t->name);
    UIR_TRY(check_dims(s, t, dims, count));
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, block_count + 1, sizeof *blocks));
    uir_schedule_blocks(s, UIR_LOOP_NONE, blocks, block_count);
    for (uint32_t i = 0; i < block_count; i++) UIR_TRY(arrange_block(&a, blocks[i]));
    memset(t->extents, 0, sizeof t->extents);
    t->rank = count;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(list);
        const char *comma = i ? ", " : "";
        t->extents[i] = dims[i] == UIR_LOOP_NONE ? uir_dim_const(s->function->dims, 1) : before.extents[dims[i]];
        if (dims[i] == UIR_LOOP_NONE)
            snprintf(list + length, sizeof list - length, "%sone", comma);
        else
            snprintf(list + length, sizeof list - length, "%s%u", comma, dims[i]);
    }
    uir_step_say(s, "arrange %s by %s", t->name, count ? list : "nothing");
    return UIR_STATUS_OK;
}

uir_status uir_schedule_arrange(uir_schedule *schedule, uint32_t tensor, const uint32_t *dims, uint32_t count) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, arrange(schedule, tensor, dims, count));
}

/* ---- pad ---- */
static uir_status pad(uir_schedule *s, uint32_t tensor, uint32_t dim, uir_dim extent) {
    uir_conditions given = {0};
    uir_sites sites = {0};
    if (tensor >= s->function->tensors.count) return uir_step_refuse(s, "unknown tensor %u", tensor);
    uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    if (t->role != UIR_LOOP_ROLE_TEMP) return uir_step_refuse(s, "%s belongs to the caller", t->name);
    if (t->layout) return uir_step_refuse(s, "%s already has a layout", t->name);
    if (dim >= t->rank) return uir_step_refuse(s, "%s has %u dims", t->name, t->rank);
    if (!extent.id || !uir_dim_is_of_sizes(s, extent))
        return uir_step_refuse(s, "an extent must be made of sizes only");
    for (uint32_t i = 0; i < s->function->requires_.count; i++)
        UIR_TRY(uir_vector_push(&s->scratch, &given, s->function->requires_.data[i]));
    if (!uir_order_proved(s, &given, extent, UIR_RELATION_GE, t->extents[dim]))
        return uir_step_refuse(s, "%s is not proved to hold dim %u of %s", uir_step_dim_text(s, extent), dim, t->name);
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    UIR_SITES_OF_TENSOR(&sites, tensor, i)
    if (sites.data[i].filled) return uir_step_refuse(s, "%s is read out of bounds", t->name);
    t->extents[dim] = extent;
    uir_step_say(s, "pad dim %u of %s to %s", dim, t->name, uir_step_dim_text(s, extent));
    return UIR_STATUS_OK;
}

uir_status uir_schedule_pad(uir_schedule *schedule, uint32_t tensor, uint32_t dim, uir_dim extent) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, pad(schedule, tensor, dim, extent));
}

/* ---- layouts ---- */
typedef struct proving {
    uir_schedule *schedule;
    uir_conditions given;
} proving;

static bool is_proved(void *user, uir_dim left, uir_relation relation, uir_dim right) {
    proving *p = user;
    return uir_order_proved(p->schedule, &p->given, left, relation, right);
}

static uir_status set_layout(uir_schedule *s, uint32_t tensor, const uir_layout *layout) {
    uir_layout *copy;
    uir_text text;
    if (tensor >= s->function->tensors.count) return uir_step_refuse(s, "unknown tensor %u", tensor);
    uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    if (t->role != UIR_LOOP_ROLE_TEMP && !t->constant)
        return uir_step_refuse(s, "the layout of %s is the caller's", t->name);
    UIR_TRY_ALLOCATE(copy, uir_arena_copy(&s->function->arena, layout, sizeof *layout));
    if (!uir_layout_finish(copy, t->extents, t->rank, s->function->dims).id)
        return uir_step_refuse(s, "the layout of %s overflows 64 bits", t->name);
    proving p = {.schedule = s};
    if (!uir_layout_is_injective(copy, t->rank, s->function->dims, is_proved, &p))
        return uir_step_refuse(s, "elements of %s cannot be proved to have different addresses", t->name);
    t->layout = copy;
    uir_text_init(&text, &s->allocator);
    uir_layout_print(copy, t->rank, s->function->dims, &text);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) uir_step_say(s, "set layout of %s to %s", t->name, text.data ? text.data : "");
    uir_text_deinit(&text);
    return status;
}

uir_status uir_schedule_set_layout(uir_schedule *schedule, uint32_t tensor, const uir_layout *layout) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, set_layout(schedule, tensor, layout));
}
