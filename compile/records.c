/* Records of parameters as text, and what tells the kernels that they are for. */
#include "compile/records.h"

#include <string.h>

static uir_status read_record(uir_tokenizer *tokens, uir_arena *arena, uir_records *records) {
    uir_record record = {0};
    uir_token at = tokens->current;
    if (at.kind != UIR_TOKEN_STRING || !uir_digest_parse(at.text, at.length, &record.kernel))
        return uir_tokenizer_error(tokens, "expected a kernel's digest, %d digits in quotes", 2 * UIR_DIGEST_SIZE);
    uir_tokenizer_advance(tokens);
    if (uir_records_find(records, &record.kernel))
        return uir_tokenizer_error_at(tokens, &at, "two records for one kernel");
    if (records->items.count == UIR_RECORDS_MAX)
        return uir_tokenizer_error_at(tokens, &at, "more than %d records", UIR_RECORDS_MAX);
    UIR_TRY(uir_parameters_parse(tokens, &record.parameters));
    return uir_vector_push(arena, &records->items, record);
}

uir_status uir_records_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                             uir_diagnostics *diagnostics, uir_records *out) {
    uir_tokenizer tokens;
    int64_t version;
    *out = (uir_records){0};
    uir_tokenizer_init(&tokens, text, length, file, arena, diagnostics);
    UIR_TRY(uir_tokenizer_expect(&tokens, "records"));
    UIR_TRY(uir_tokenizer_expect_integer(&tokens, &version));
    if (version != UIR_RECORDS_VERSION)
        return uir_tokenizer_error_at(&tokens, &tokens.previous, "records of version %lld; this build knows version %d",
                                      (long long)version, UIR_RECORDS_VERSION);
    while (uir_tokenizer_accept(&tokens, "record")) UIR_TRY(read_record(&tokens, arena, out));
    if (tokens.current.kind != UIR_TOKEN_END) return uir_tokenizer_error(&tokens, "expected 'record'");
    return UIR_STATUS_OK;
}

void uir_records_print(const uir_records *records, uir_text *text) {
    uir_text_append_format(text, "records %d\n", UIR_RECORDS_VERSION);
    for (uint32_t i = 0; i < records->items.count; i++) {
        const uir_record *record = &records->items.data[i];
        char digits[UIR_DIGEST_TEXT_SIZE];
        uir_digest_print(&record->kernel, digits);
        if (record->name) uir_text_append_format(text, "# %s\n", record->name);
        uir_text_append_format(text, "record \"%s\" ", digits);
        uir_parameters_print(&record->parameters, text);
    }
}

const uir_parameters *uir_records_find(const uir_records *records, const uir_digest *kernel) {
    for (uint32_t i = 0; i < records->items.count; i++)
        if (!memcmp(&records->items.data[i].kernel, kernel, sizeof *kernel)) return &records->items.data[i].parameters;
    return NULL;
}

/* Of a device's numbers those that are no rates, which a processor measures of itself. */
#define APPEND_COUNT(value) uir_text_append_format(text, " %u", value);
#define APPEND_BYTES(value) uir_text_append_format(text, " %llu", (unsigned long long)(value));
#define APPEND_RATE(value)

static void describe_row(const uir_legal_row *r, uir_text *text) {
    uir_text_append_format(text, ", %s %x %x %x %x %x %x %d %x", r->iop, r->dtypes, r->dtypes_other, r->dtypes_right,
                           r->spaces_result, r->spaces_operand, r->unit_kinds, (int)r->pipe, r->constraints);
#define UIR_LEGAL_NUMBER(word, type, member, least, most) APPEND_##type(r->member)
#include "ir/machine/device.def"
}

static void describe_space(const uir_space *s, uir_text *text) {
    uir_text_append_format(text, ", space %x %d %d %x %d", s->roles, (int)s->scope, s->is_cache, s->unit_kinds,
                           (int)s->blocks);
#define UIR_SPACE_NUMBER(word, type, member, least, most) APPEND_##type(s->member)
#include "ir/machine/device.def"
}

/* What its tactics ask of a device. */
static void describe_device(const uir_machine *d, uir_text *text) {
    uir_text_append_format(text, "device %s %s, %u pipes, barrier %d,", d->name, d->chip, d->pipe_count,
                           d->has_device_barrier);
#define UIR_MACHINE_NUMBER(word, type, member, least, most) APPEND_##type(d->member)
#include "ir/machine/device.def"
    uir_text_append_string(text, ", caches");
    for (size_t i = 0; i < sizeof d->cache_bytes / sizeof *d->cache_bytes; i++) APPEND_BYTES(d->cache_bytes[i])
    for (uint32_t i = 0; i < d->space_count; i++) describe_space(&d->spaces[i], text);
    for (uint32_t i = 0; i < d->unit_kind_count; i++) uir_text_append_format(text, ", kind %u", d->unit_counts[i]);
    for (uint32_t i = 0; i < d->legal_count; i++) describe_row(&d->legal[i], text);
    uir_text_append_string(text, "\n");
}

uir_status uir_record_identify(const uir_machine *machine, const char *text, size_t length,
                               const uir_allocator *allocator, uir_digest *out_kernel) {
    uir_text all;
    uir_text_init(&all, allocator);
    uir_text_append_format(&all, "record %d\n", UIR_RECORDS_VERSION);
    describe_device(machine, &all);
    uir_text_append(&all, text, length);
    uir_status status = uir_text_status(&all);
    if (status == UIR_STATUS_OK) *out_kernel = uir_digest_make(all.data, all.length);
    uir_text_deinit(&all);
    return status;
}
