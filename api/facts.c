#include "api/facts.h"
#include "base/number.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_REAL } fact_kind;

typedef struct fact_row {
    const char *key;
    fact_kind kind;
    size_t offset; /* of the facts, or of an element */
} fact_row;

#define TEXT(type, field)                                                                                              \
    { #field, FACT_TEXT, offsetof(type, field) }
#define NUMBER(type, field)                                                                                            \
    { #field, FACT_NUMBER, offsetof(type, field) }
#define TOLERANCE(field)                                                                                               \
    { "tolerance." #field, FACT_REAL, offsetof(uir_facts, tolerance.field) }
static const fact_row single[] = {
    TEXT(uir_facts, producer),
    TEXT(uir_facts, producer_version),
    TEXT(uir_facts, domain),
    TEXT(uir_facts, graph),
    NUMBER(uir_facts, ir_version),
    NUMBER(uir_facts, model_version),
    NUMBER(uir_facts, opset),
    NUMBER(uir_facts, node_count),
    NUMBER(uir_facts, function_count),
    NUMBER(uir_facts, primitive_count),
    NUMBER(uir_facts, laid_out_count),
    NUMBER(uir_facts, conversion_count),
    NUMBER(uir_facts, winograd_count),
    TEXT(uir_facts, precision),
    NUMBER(uir_facts, product_count),
    NUMBER(uir_facts, f16_count),
    NUMBER(uir_facts, bf16_count),
    NUMBER(uir_facts, out_of_range_count),
    NUMBER(uir_facts, fault_count),
    TEXT(uir_facts, fault),
    NUMBER(uir_facts, parameter_count),
    NUMBER(uir_facts, weight_bytes),
    NUMBER(uir_facts, external_bytes),
    NUMBER(uir_facts, has_tolerance),
    TOLERANCE(rtol),
    TOLERANCE(atol),
    TOLERANCE(atol_relative_to_max),
    TOLERANCE(integers),
};
enum { SINGLE_COUNT = sizeof single / sizeof *single };

enum { MOST_FIELDS = 4 };
typedef struct list_row {
    const char *key;
    size_t data, count, size; /* offsets of the facts; bytes of an element */
    uint32_t field_count;
    fact_row fields[MOST_FIELDS];
} list_row;

#define LIST(name, type, field_total, ...)                                                                             \
    {                                                                                                                  \
#name, offsetof(uir_facts, name.data), offsetof(uir_facts, name.count), sizeof(type), field_total, {           \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
static const list_row lists[] = {
    LIST(opsets, uir_facts_opset, 2, TEXT(uir_facts_opset, domain), NUMBER(uir_facts_opset, version)),
    LIST(ops, uir_facts_op, 3, TEXT(uir_facts_op, domain), TEXT(uir_facts_op, name), NUMBER(uir_facts_op, count)),
    LIST(outputs, uir_facts_output, 4, TEXT(uir_facts_output, node), TEXT(uir_facts_output, op),
         NUMBER(uir_facts_output, place), NUMBER(uir_facts_output, is_kept)),
    LIST(defaults, uir_facts_default, 3, TEXT(uir_facts_default, name), NUMBER(uir_facts_default, place),
         NUMBER(uir_facts_default, is_overridden)),
    LIST(keys, uir_facts_key, 2, NUMBER(uir_facts_key, output), TEXT(uir_facts_key, key)),
};
enum { LIST_COUNT = sizeof lists / sizeof *lists };
static const char count_key[] = "uir/facts";

void uir_facts_init(uir_facts *facts) {
    *facts = (uir_facts){.producer = ""};
    for (size_t i = 0; i < SINGLE_COUNT; i++)
        if (single[i].kind == FACT_TEXT) *(const char **)(void *)((char *)facts + single[i].offset) = "";
    facts->precision = "f32";
}

/* ---- to metadata ---- */

typedef struct printing {
    uir_arena *arena;
    const char **list;
    uint32_t count; /* of texts */
} printing;

static uir_status add_number(printing *p, int64_t number) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    UIR_TRY_ALLOCATE(p->list[p->count], uir_arena_copy_string(p->arena, digits, (size_t)length));
    p->count++;
    return UIR_STATUS_OK;
}

static uir_status add_real(printing *p, double number) {
    char digits[UIR_NUMBER_TEXT_SIZE];
    UIR_TRY_ALLOCATE(p->list[p->count], uir_arena_copy_string(p->arena, digits, uir_double_to_text(number, digits)));
    p->count++;
    return UIR_STATUS_OK;
}

static uir_status add(printing *p, const char *key, const fact_row *row, const void *from) {
    const char *field = (const char *)from + row->offset;
    p->list[p->count++] = key;
    if (row->kind == FACT_REAL) return add_real(p, *(const double *)(const void *)field);
    if (row->kind == FACT_NUMBER) return add_number(p, *(const int64_t *)(const void *)field);
    p->list[p->count++] = *(const char *const *)(const void *)field;
    return UIR_STATUS_OK;
}

static uint32_t list_length(const uir_facts *facts, const list_row *row) {
    return *(const uint32_t *)(const void *)((const char *)facts + row->count);
}
static char *list_data(const uir_facts *facts, const list_row *row) {
    return *(char *const *)(const void *)((const char *)facts + row->data);
}

/* "ops.name" */
static uir_status make_key(uir_arena *arena, const list_row *row, const fact_row *field, const char **out_key) {
    char key[64];
    int length = snprintf(key, sizeof key, "%s.%s", row->key, field->key);
    UIR_TRY_ALLOCATE(*out_key, uir_arena_copy_string(arena, key, (size_t)length));
    return UIR_STATUS_OK;
}

static uir_status add_list(printing *p, const uir_facts *facts, const list_row *row) {
    const char *keys[MOST_FIELDS];
    for (uint32_t f = 0; f < row->field_count; f++) UIR_TRY(make_key(p->arena, row, &row->fields[f], &keys[f]));
    for (uint32_t i = 0; i < list_length(facts, row); i++)
        for (uint32_t f = 0; f < row->field_count; f++)
            UIR_TRY(add(p, keys[f], &row->fields[f], list_data(facts, row) + i * row->size));
    return UIR_STATUS_OK;
}

uir_status uir_facts_print(const uir_facts *facts, uir_arena *arena, const char *const **out_list,
                           uint32_t *out_count) {
    size_t pairs = SINGLE_COUNT, all;
    for (size_t i = 0; i < LIST_COUNT; i++) pairs += (size_t)list_length(facts, &lists[i]) * lists[i].field_count;
    all = 1 + pairs + facts->metadata.count;
    if (all > UINT32_MAX / 2) return UIR_STATUS_LIMIT;
    printing p = {.arena = arena};
    UIR_TRY_ALLOCATE(p.list, uir_arena_allocate_array(arena, 2 * all, sizeof *p.list));
    p.list[p.count++] = count_key;
    UIR_TRY(add_number(&p, (int64_t)pairs));
    for (size_t i = 0; i < SINGLE_COUNT; i++) UIR_TRY(add(&p, single[i].key, &single[i], facts));
    for (size_t i = 0; i < LIST_COUNT; i++) UIR_TRY(add_list(&p, facts, &lists[i]));
    for (uint32_t i = 0; i < facts->metadata.count; i++) {
        p.list[p.count++] = facts->metadata.data[i].key;
        p.list[p.count++] = facts->metadata.data[i].value;
    }
    *out_list = p.list;
    *out_count = p.count / 2;
    return UIR_STATUS_OK;
}

/* ---- from metadata ---- */

static void take(const fact_row *row, const char *value, void *to) {
    char *field = (char *)to + row->offset;
    if (row->kind == FACT_NUMBER)
        *(int64_t *)(void *)field = strtoll(value, NULL, 10);
    else if (row->kind == FACT_REAL)
        (void)uir_double_from_text(value, strlen(value), (double *)(void *)field);
    else
        *(const char **)(void *)field = value;
}

/* Which field of the list the key names; field_count: none. */
static uint32_t find_field(const list_row *row, const char *key) {
    size_t length = strlen(row->key);
    uint32_t f = 0;
    if (strncmp(key, row->key, length) != 0 || key[length] != '.') return row->field_count;
    while (f < row->field_count && strcmp(key + length + 1, row->fields[f].key) != 0) f++;
    return f;
}

/* An element begins with its first field; texts that are not there are "". */
static uir_status read_list(const uir_package *package, uint32_t count, const list_row *row, uir_arena *arena,
                            uir_facts *facts) {
    const char *key, *value;
    uint32_t elements = 0, at = 0;
    char *data;
    for (uint32_t i = 1; i <= count && uir_package_get_metadata_at(package, i, &key, &value); i++)
        elements += find_field(row, key) == 0;
    UIR_TRY_ALLOCATE(data, uir_arena_allocate_array(arena, (size_t)elements + 1, row->size));
    for (uint32_t i = 0; i < elements; i++)
        for (uint32_t f = 0; f < row->field_count; f++)
            if (row->fields[f].kind == FACT_TEXT) take(&row->fields[f], "", data + i * row->size);
    for (uint32_t i = 1; i <= count && uir_package_get_metadata_at(package, i, &key, &value); i++) {
        uint32_t f = find_field(row, key);
        at += f == 0;
        if (f < row->field_count && at) take(&row->fields[f], value, data + (at - 1) * row->size);
    }
    *(char **)(void *)((char *)facts + row->data) = data;
    *(uint32_t *)(void *)((char *)facts + row->count) = elements;
    return UIR_STATUS_OK;
}

uir_status uir_facts_read(const uir_package *package, uir_arena *arena, uir_facts *out_facts) {
    const char *key, *value;
    uint32_t total = 0, count = 0;
    uir_facts_init(out_facts);
    while (uir_package_get_metadata_at(package, total, &key, &value)) total++;
    bool has_facts = uir_package_get_metadata_at(package, 0, &key, &value) && !strcmp(key, count_key);
    if (has_facts) {
        long long stated = strtoll(value, NULL, 10);
        count = stated < 0 ? 0 : stated < total ? (uint32_t)stated : total - 1;
    }
    for (uint32_t i = 1; i <= count; i++) {
        uir_package_get_metadata_at(package, i, &key, &value);
        for (size_t s = 0; s < SINGLE_COUNT; s++)
            if (!strcmp(single[s].key, key)) take(&single[s], value, out_facts);
    }
    for (size_t i = 0; i < LIST_COUNT; i++) UIR_TRY(read_list(package, count, &lists[i], arena, out_facts));
    uint32_t first = has_facts ? count + 1 : 0;
    UIR_TRY_ALLOCATE(out_facts->metadata.data,
                     uir_arena_allocate_array(arena, (size_t)(total - first) + 1, sizeof *out_facts->metadata.data));
    for (; first < total; first++) {
        uir_facts_pair *pair = &out_facts->metadata.data[out_facts->metadata.count++];
        uir_package_get_metadata_at(package, first, &pair->key, &pair->value);
    }
    return UIR_STATUS_OK;
}

void uir_facts_tell_kernels(const uir_facts *facts, uir_model_info *info) {
    info->laid_out_count = (uint32_t)facts->laid_out_count;
    info->conversion_count = (uint32_t)facts->conversion_count;
    info->winograd_count = (uint32_t)facts->winograd_count;
    info->precision = facts->precision;
    info->product_count = (uint32_t)facts->product_count;
    info->f16_count = (uint32_t)facts->f16_count;
    info->bf16_count = (uint32_t)facts->bf16_count;
    info->out_of_range_count = (uint32_t)facts->out_of_range_count;
    info->fault_count = (uint32_t)facts->fault_count;
}

void uir_facts_warn_faults(const uir_facts *facts, uir_diagnostics *diagnostics) {
    if (facts->fault_count)
        uir_warning(diagnostics, NULL,
                    "%s; the compiler refused %lld of its own kernels, whose nodes smaller kernels or the interpreter "
                    "run; report this fault of the compiler",
                    facts->fault, (long long)facts->fault_count);
}
