/* The plan's tables: texts, lists, expressions and constants, each kept once; and their bytes. */
#include "planner/internal.h"

#include <string.h>

enum { TEXT_BUCKETS = 4096, PIECE_BUCKETS = 4096 };

uir_status uir_pl_init(planner *p) {
    uir_arena_init(&p->arena, &p->allocator);
    uir_text_init(&p->characters, &p->allocator);
    uir_text_init(&p->code, &p->allocator);
    p->text_bucket_count = TEXT_BUCKETS;
    p->scope =
        (uir_pl_scope){.dims = p->module->dims, .symbol_count = uir_dims_symbol_count(p->module->dims), .grows = true};
    UIR_TRY_ALLOCATE(p->text_buckets, uir_arena_allocate_array(&p->arena, TEXT_BUCKETS, sizeof *p->text_buckets));
    UIR_TRY_ALLOCATE(p->piece_buckets, uir_arena_allocate_array(&p->arena, PIECE_BUCKETS, sizeof *p->piece_buckets));
    UIR_TRY_ALLOCATE(p->packing_buckets,
                     uir_arena_allocate_array(&p->arena, PIECE_BUCKETS, sizeof *p->packing_buckets));
    UIR_TRY_ALLOCATE(p->tensor_of,
                     uir_arena_allocate_array(&p->arena, (size_t)p->module->values.count + 1, sizeof *p->tensor_of));
    UIR_TRY_ALLOCATE(p->stands,
                     uir_arena_allocate_array(&p->arena, (size_t)p->module->origins.count + 1, sizeof *p->stands));
    UIR_TRY_ALLOCATE(p->listed_at,
                     uir_arena_allocate_array(&p->arena, (size_t)p->module->origins.count + 1, sizeof *p->listed_at));
    UIR_TRY_ALLOCATE(p->piece_of,
                     uir_arena_allocate_array(&p->arena, (size_t)p->module->values.count + 1, sizeof *p->piece_of));
    UIR_TRY_ALLOCATE(p->scope.symbols,
                     uir_arena_allocate_array(&p->arena, (size_t)p->scope.symbol_count + 1, sizeof *p->scope.symbols));
    return UIR_STATUS_OK;
}

void uir_pl_deinit(planner *p) {
    if (p->room) uir_release(&p->allocator, p->room, p->room_size);
    uir_text_deinit(&p->code);
    uir_text_deinit(&p->characters);
    uir_arena_deinit(&p->arena);
}

/* ---- texts and lists ---- */
/* A text ends at its first zero. */
uir_status uir_pl_add_text(planner *p, const char *text, size_t length, uint32_t *out_text) {
    const char *zero = length ? memchr(text, 0, length) : NULL;
    if (zero) length = (size_t)(zero - text);
    uint32_t *bucket = &p->text_buckets[uir_package_hash(length ? text : "", length) % p->text_bucket_count];
    for (uint32_t i = *bucket; i; i = p->text_next.data[i - 1]) {
        const uir_plan_text *t = &p->texts.data[i - 1];
        if (t->count == length && (!length || !memcmp(p->characters.data + t->first, text, length))) {
            *out_text = i - 1;
            return UIR_STATUS_OK;
        }
    }
    if (p->characters.length + length + 1 > INT32_MAX) return UIR_STATUS_LIMIT;
    *out_text = p->texts.count;
    UIR_TRY(uir_vector_push(&p->arena, &p->texts, ((uir_plan_text){(uint32_t)p->characters.length, (uint32_t)length})));
    UIR_TRY(uir_vector_push(&p->arena, &p->text_next, *bucket));
    *bucket = p->texts.count;
    if (length) uir_text_append(&p->characters, text, length);
    uir_text_append(&p->characters, "", 1);
    return uir_text_status(&p->characters);
}

uir_status uir_pl_add_list(planner *p, const uint32_t *values, uint32_t count, uir_plan_list *out_list) {
    *out_list = (uir_plan_list){count ? p->words.count : 0, count};
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_vector_push(&p->arena, &p->words, ((uir_plan_word){values[i]})));
    return UIR_STATUS_OK;
}

/* ---- expressions ---- */
uir_status uir_pl_add_symbol(planner *p, uir_symbol symbol, uint32_t *out_symbol) {
    uint32_t *number = &p->scope.symbols[symbol.id];
    if (!*number) {
        uir_symbol_facts facts = uir_dims_symbol_facts(p->module->dims, symbol);
        const char *name = uir_dims_symbol_name(p->module->dims, symbol);
        uir_plan_symbol s = {0, facts.min, facts.max, facts.multiple_of};
        UIR_TRY(uir_pl_add_text(p, name, strlen(name), &s.name));
        UIR_TRY(uir_vector_push(&p->arena, &p->symbols, s));
        *number = p->symbols.count;
    }
    *out_symbol = *number - 1;
    return UIR_STATUS_OK;
}

static uir_status push_operations(planner *p, uir_pl_scope *scope, uir_dim dim, uint32_t depth) {
    const uir_dim_node *node = uir_dim_get(scope->dims, dim);
    if (depth >= UIR_PLAN_MAX_STACK)
        return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "a size is nested too deep for a plan");
    if (node->kind == UIR_DIM_CONST)
        return uir_vector_push(&p->arena, &p->operations, ((uir_plan_operation){UIR_DIM_CONST, node->value}));
    if (node->kind == UIR_DIM_SYMBOL) {
        uint32_t number = 0;
        uir_symbol symbol = {(uint32_t)node->value};
        if (scope->grows)
            UIR_TRY(uir_pl_add_symbol(p, symbol, &number));
        else if (symbol.id >= scope->symbol_count || !scope->symbols[symbol.id])
            return uir_error(p->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "a kernel's size depends on its own axis %s",
                             uir_dims_symbol_name(scope->dims, symbol));
        else
            number = scope->symbols[symbol.id] - 1;
        return uir_vector_push(&p->arena, &p->operations, ((uir_plan_operation){UIR_DIM_SYMBOL, number}));
    }
    uir_dim_node copy = *node; /* the node may move while symbols are added */
    for (uint32_t i = 0; i < copy.count; i++) {
        UIR_TRY(push_operations(p, scope, copy.operands[i], depth + 1));
        if (i) UIR_TRY(uir_vector_push(&p->arena, &p->operations, ((uir_plan_operation){(uint32_t)copy.kind, 0})));
    }
    return UIR_STATUS_OK;
}

uir_status uir_pl_add_expression(planner *p, uir_pl_scope *scope, uir_dim dim, uint32_t *out) {
    *out = UIR_PLAN_NONE;
    if (!dim.id) return UIR_STATUS_OK;
    if (dim.id >= scope->expression_capacity) {
        uint32_t grown = dim.id * 2 + 64, *table;
        UIR_TRY_ALLOCATE(table, uir_arena_allocate_array(&p->arena, grown, sizeof *table));
        if (scope->expression_capacity) memcpy(table, scope->expressions, scope->expression_capacity * sizeof *table);
        scope->expressions = table;
        scope->expression_capacity = grown;
    }
    if (!scope->expressions[dim.id]) {
        uir_plan_expression e = {p->operations.count, 0};
        UIR_TRY(push_operations(p, scope, dim, 1));
        e.count = p->operations.count - e.first;
        UIR_TRY(uir_vector_push(&p->arena, &p->expressions, e));
        scope->expressions[dim.id] = p->expressions.count;
    }
    *out = scope->expressions[dim.id] - 1;
    return UIR_STATUS_OK;
}

uir_status uir_pl_add_expressions(planner *p, uir_pl_scope *scope, const uir_dim *dims, uint32_t count,
                                  uir_plan_list *out_list) {
    uint32_t *values;
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(&p->arena, (size_t)count + 1, sizeof *values));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_pl_add_expression(p, scope, dims[i], &values[i]));
    return uir_pl_add_list(p, values, count, out_list);
}

uir_status uir_pl_add_fresh_dim(planner *p, uint32_t *out_expression) {
    uir_plan_symbol s = {0, 0, INT64_MAX, 1};
    UIR_TRY(uir_pl_add_text(p, "", 0, &s.name));
    UIR_TRY(uir_vector_push(&p->arena, &p->symbols, s));
    uir_plan_expression e = {p->operations.count, 1};
    UIR_TRY(uir_vector_push(&p->arena, &p->operations, ((uir_plan_operation){UIR_DIM_SYMBOL, p->symbols.count - 1})));
    *out_expression = p->expressions.count;
    return uir_vector_push(&p->arena, &p->expressions, e);
}

uir_status uir_pl_add_number(planner *p, int64_t value, uint32_t *out_expression) {
    uir_plan_expression e = {p->operations.count, 1};
    UIR_TRY(uir_vector_push(&p->arena, &p->operations, ((uir_plan_operation){UIR_DIM_CONST, value})));
    *out_expression = p->expressions.count;
    return uir_vector_push(&p->arena, &p->expressions, e);
}

/* ---- constants ---- */
/* Written at once: no more than one of them is ever held in memory. */
uir_status uir_pl_add_constant(planner *p, const void *data, uint64_t size, uint32_t *out_constant) {
    uint64_t hash = uir_package_hash(size ? data : "", (size_t)size), weights = p->writer.sections[0].offset;
    uint32_t *bucket = &p->piece_buckets[hash % PIECE_BUCKETS];
    for (uint32_t i = *bucket; i; i = p->pieces.data[i - 1].next) {
        const uir_pl_piece *piece = &p->pieces.data[i - 1];
        if (piece->hash != hash || piece->size != size ||
            !p->writer.sink->equals(p->writer.sink->user, weights + piece->offset, data, (size_t)size))
            continue;
        *out_constant = i - 1;
        return UIR_STATUS_OK;
    }
    uint64_t offset;
    UIR_TRY(uir_package_writer_add_constant(&p->writer, data, size, &offset));
    UIR_TRY(uir_vector_push(&p->arena, &p->pieces, ((uir_pl_piece){size, hash, offset, *bucket})));
    *bucket = p->pieces.count;
    *out_constant = p->pieces.count - 1;
    return uir_vector_push(&p->arena, &p->constants, ((uir_plan_constant){offset, size, hash}));
}

uir_status uir_pl_find_packing(planner *p, const int64_t *key, uint32_t length, uir_pl_packing **out_packing) {
    uint32_t *bucket = &p->packing_buckets[uir_package_hash(key, length * sizeof *key) % PIECE_BUCKETS];
    for (uint32_t i = *bucket; i; i = p->packings.data[i - 1].next) {
        uir_pl_packing *packing = &p->packings.data[i - 1];
        if (packing->length != length || memcmp(packing->key, key, length * sizeof *key)) continue;
        *out_packing = packing;
        return UIR_STATUS_OK;
    }
    int64_t *kept;
    UIR_TRY_ALLOCATE(kept, uir_arena_allocate_array(&p->arena, length, sizeof *kept));
    memcpy(kept, key, length * sizeof *key);
    UIR_TRY(uir_vector_push(&p->arena, &p->packings, ((uir_pl_packing){kept, length, UIR_PLAN_NONE, *bucket})));
    *bucket = p->packings.count;
    *out_packing = &p->packings.data[p->packings.count - 1];
    return UIR_STATUS_OK;
}

uir_status uir_pl_make_room(planner *p, size_t size) {
    if (p->room && p->room_size >= size) return UIR_STATUS_OK;
    if (p->room) uir_release(&p->allocator, p->room, p->room_size);
    p->room_size = size;
    UIR_TRY_ALLOCATE(p->room, uir_allocate(&p->allocator, size));
    return UIR_STATUS_OK;
}

/* ---- bytes ---- */
uir_status uir_pl_flatten(planner *p) {
    for (uint32_t i = 0; i < p->bodies.count; i++) {
        const uir_pl_block *b = &p->bodies.data[i];
        uir_plan_block out = {p->steps.count, b->steps.count, {0, 0}, {0, 0}};
        UIR_TRY(uir_pl_add_list(p, b->inputs.data, b->inputs.count, &out.inputs));
        UIR_TRY(uir_pl_add_list(p, b->outputs.data, b->outputs.count, &out.outputs));
        UIR_TRY(uir_vector_push(&p->arena, &p->blocks, out));
        for (uint32_t s = 0; s < b->steps.count; s++) {
            UIR_TRY(uir_vector_push(&p->arena, &p->steps, b->steps.data[s]));
            if (!p->devices.count) continue;
            uir_plan_schedule schedule = {b->queues.data[s], b->whys.data[s], {0, 0}};
            uint32_t download = out.first_step + b->last_download;
            if (s == b->first_check) UIR_TRY(uir_pl_add_list(p, &download, 1, &schedule.waits));
            UIR_TRY(uir_vector_push(&p->arena, &p->schedules, schedule));
        }
    }
    return uir_pl_add_waits(p);
}

uir_status uir_pl_begin(planner *p, const uir_package_sink *sink) {
    uint32_t count = 3; /* weights, plan, code */
    for (uint32_t i = 0; i < p->options->object_count; i++) count += p->options->objects[i].bytes != NULL;
    UIR_TRY(uir_package_writer_begin(&p->writer, sink, count));
    return uir_package_writer_begin_weights(&p->writer);
}

static uir_status put_section(planner *p, uir_package_section_kind kind, uint32_t index, const void *data,
                              uint64_t size) {
    return uir_package_writer_put(&p->writer, &(uir_package_section){(uint32_t)kind, index, 0, size, 0, data});
}

uir_plan uir_pl_view(const planner *p) {
    uir_plan plan = {.characters = p->characters.data ? p->characters.data : "",
                     .characters_count = (uint32_t)p->characters.length};
#define UIR_PLAN_TABLE(type, field) plan.field = p->field.data, plan.field##_count = p->field.count;
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
    return plan;
}

static uir_status put_plan(planner *p) {
    uir_text bytes;
    uir_plan plan = uir_pl_view(p);
    if (plan.devices_count) p->writer.version = UIR_PACKAGE_VERSION;
    uir_text_init(&bytes, &p->allocator);
    uir_plan_write(&plan, &bytes);
    uir_status status = uir_text_status(&bytes);
    if (status == UIR_STATUS_OK) status = put_section(p, UIR_PACKAGE_PLAN, 0, bytes.data, bytes.length);
    uir_text_deinit(&bytes);
    return status;
}

uir_status uir_pl_write(planner *p) {
    uint32_t natives = 0;
    UIR_TRY(put_plan(p));
    UIR_TRY(put_section(p, UIR_PACKAGE_CODE, 0, p->code.data ? p->code.data : "", p->code.length));
    for (uint32_t i = 0; i < p->options->object_count; i++) {
        const uir_plan_object *o = &p->options->objects[i];
        if (o->bytes) UIR_TRY(put_section(p, UIR_PACKAGE_NATIVE, natives++, o->bytes, o->size));
    }
    return uir_package_writer_end(&p->writer);
}
