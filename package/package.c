/* Header, section table, hashes; written and read by the same few lists. */
#include "package/package.h"

#include "base/intern.h"

#include <stdio.h>
#include <string.h>

typedef struct section_row {
    const char *name;
    uint64_t alignment;
} section_row;

static const section_row section_rows[] = {
#define UIR_PACKAGE_SECTION(constant, name, alignment) {name, alignment},
    UIR_PACKAGE_SECTIONS(UIR_PACKAGE_SECTION)
#undef UIR_PACKAGE_SECTION
};

uint64_t uir_package_hash(const void *data, size_t size) {
    return uir_hash(data, size, 0);
}

/* ---- integers ---- */
static void put(unsigned char *to, uint64_t value, int size) {
    for (int i = 0; i < size; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* Of the header up to the hash and of the table. */
static uint64_t hash_head(const unsigned char *header, const unsigned char *table, uint32_t count) {
    unsigned char bytes[UIR_PACKAGE_HASHED_SIZE + UIR_PACKAGE_MAX_SECTIONS * UIR_PACKAGE_SECTION_SIZE];
    memcpy(bytes, header, UIR_PACKAGE_HASHED_SIZE);
    memcpy(bytes + UIR_PACKAGE_HASHED_SIZE, table, (size_t)count * UIR_PACKAGE_SECTION_SIZE);
    return uir_package_hash(bytes, UIR_PACKAGE_HASHED_SIZE + (size_t)count * UIR_PACKAGE_SECTION_SIZE);
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- writing ---- */
static uir_status append_text(void *user, const void *data, size_t size) {
    uir_text *bytes = user;
    if (size) uir_text_append(bytes, data, size);
    return uir_text_status(bytes);
}

static uir_status patch_text(void *user, const void *data, size_t size) {
    uir_text *bytes = user;
    memcpy(bytes->data, data, size);
    return UIR_STATUS_OK;
}

static bool text_equals(void *user, uint64_t offset, const void *data, size_t size) {
    uir_text *bytes = user;
    return !size || memcmp(bytes->data + offset, data, size) == 0;
}

uir_package_sink uir_package_sink_to_text(uir_text *bytes) {
    return (uir_package_sink){append_text, patch_text, text_equals, bytes};
}

static uir_status append(uir_package_writer *w, const void *data, uint64_t size) {
    if (size > SIZE_MAX || w->at > UINT64_MAX - size) return UIR_STATUS_LIMIT;
    w->at += size;
    return size ? w->sink->append(w->sink->user, data, (size_t)size) : UIR_STATUS_OK;
}

static uir_status pad_to(uir_package_writer *w, uint64_t at) {
    static const char zeros[UIR_PACKAGE_PAGE] = {0};
    while (w->at < at) UIR_TRY(append(w, zeros, at - w->at < sizeof zeros ? at - w->at : sizeof zeros));
    return UIR_STATUS_OK;
}

uir_status uir_package_writer_begin(uir_package_writer *w, const uir_package_sink *sink, uint32_t count) {
    memset(w, 0, sizeof *w);
    w->sink = sink;
    w->version = UIR_PACKAGE_VERSION_HOST;
    w->count = count;
    if (count > UIR_PACKAGE_MAX_SECTIONS) return UIR_STATUS_LIMIT;
    return pad_to(w, UIR_PACKAGE_HEADER_SIZE + (uint64_t)count * UIR_PACKAGE_SECTION_SIZE);
}

static uir_status begin_section(uir_package_writer *w, const uir_package_section *s, uint64_t hash) {
    if (w->done >= w->count) return UIR_STATUS_INTERNAL;
    UIR_TRY(pad_to(w, align_up(w->at, section_rows[s->kind].alignment)));
    w->sections[w->done++] = (uir_package_section){s->kind, s->index, w->at, s->size, hash, NULL};
    return UIR_STATUS_OK;
}

uir_status uir_package_writer_put(uir_package_writer *w, const uir_package_section *s) {
    uint64_t hash =
        s->kind == UIR_PACKAGE_WEIGHTS ? 0 : uir_package_hash(s->size ? s->data : (const void *)"", (size_t)s->size);
    UIR_TRY(begin_section(w, s, hash));
    return append(w, s->data, s->size);
}

uir_status uir_package_writer_begin_weights(uir_package_writer *w) {
    return begin_section(w, &(uir_package_section){.kind = UIR_PACKAGE_WEIGHTS}, 0);
}

uir_status uir_package_writer_add_constant(uir_package_writer *w, const void *data, uint64_t size,
                                           uint64_t *out_offset) {
    uir_package_section *weights = &w->sections[w->done - 1];
    uint64_t offset = align_up(w->at - weights->offset, UIR_PACKAGE_CONSTANT_ALIGN);
    UIR_TRY(pad_to(w, weights->offset + offset));
    *out_offset = offset;
    weights->size = offset + size;
    return append(w, data, size);
}

uir_status uir_package_writer_end(uir_package_writer *w) {
    unsigned char head[UIR_PACKAGE_HEADER_SIZE + UIR_PACKAGE_MAX_SECTIONS * UIR_PACKAGE_SECTION_SIZE] = {0};
    unsigned char *table = head + UIR_PACKAGE_HEADER_SIZE;
    if (w->done != w->count) return UIR_STATUS_INTERNAL;
    for (uint32_t i = 0; i < w->count; i++) {
        const uir_package_section *s = &w->sections[i];
        unsigned char *row = table + (size_t)i * UIR_PACKAGE_SECTION_SIZE;
        put(row, s->kind, 4);
        put(row + 4, s->index, 4);
        put(row + 8, s->offset, 8);
        put(row + 16, s->size, 8);
        put(row + 24, s->hash, 8);
    }
    memcpy(head, UIR_PACKAGE_MAGIC, 8);
    put(head + 8, w->version, 4);
    put(head + 12, w->count, 4);
    put(head + 16, w->at, 8);
    put(head + UIR_PACKAGE_MAKER_AT, UIR_VERSION_NUMBER, 4);
    put(head + UIR_PACKAGE_HASHED_SIZE, hash_head(head, table, w->count), 8);
    return w->sink->patch(w->sink->user, head, UIR_PACKAGE_HEADER_SIZE + (size_t)w->count * UIR_PACKAGE_SECTION_SIZE);
}

uir_status uir_package_write(const uir_package_section *sections, uint32_t count, uir_text *bytes) {
    uir_package_writer w;
    uir_package_sink sink = uir_package_sink_to_text(bytes);
    UIR_TRY(uir_package_writer_begin(&w, &sink, count));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_package_writer_put(&w, &sections[i]));
    return uir_package_writer_end(&w);
}

/* ---- reading ---- */
static uir_status refuse(uir_diagnostics *diagnostics, const char *what) {
    return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "compile the model again",
                          "the package is damaged: %s", what);
}

static bool all_zero(const unsigned char *from, const unsigned char *to) {
    for (; from < to; from++) {
        if (*from) return false;
    }
    return true;
}

/* Sections follow one another, each as soon as its alignment allows, with zeros between. */
static uir_status read_section(const unsigned char *base, size_t size, const unsigned char *row, uint64_t *at,
                               uir_diagnostics *diagnostics, uir_package_section *out) {
    *out = (uir_package_section){(uint32_t)get(row, 4), (uint32_t)get(row + 4, 4), get(row + 8, 8),
                                 get(row + 16, 8),      get(row + 24, 8),          NULL};
    if (out->kind >= UIR_PACKAGE_SECTION_KIND_COUNT) return refuse(diagnostics, "a section of an unknown kind");
    if (out->offset != align_up(*at, section_rows[out->kind].alignment) || out->offset > size ||
        out->size > size - out->offset)
        return refuse(diagnostics, "a section is at the wrong offset");
    if (!all_zero(base + *at, base + out->offset)) return refuse(diagnostics, "bytes between sections");
    out->data = base + out->offset;
    uint64_t hash = out->kind == UIR_PACKAGE_WEIGHTS ? 0 : uir_package_hash(out->data, (size_t)out->size);
    if (hash != out->hash)
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "compile the model again",
                              "the package is damaged: the hash of its %s section does not match",
                              section_rows[out->kind].name);
    *at = out->offset + out->size;
    return UIR_STATUS_OK;
}

const char *uir_package_describe_maker(const void *bytes, char *buffer, size_t capacity) {
    const unsigned char *base = bytes;
    uint64_t maker = get(base + UIR_PACKAGE_MAKER_AT, 4);
    if (get(base + 8, 4) < UIR_PACKAGE_MAKER_SINCE)
        snprintf(buffer, capacity, "an older uir");
    else
        snprintf(buffer, capacity, "uir %u.%u.%u", (unsigned)(maker / 1000000), (unsigned)(maker / 1000 % 1000),
                 (unsigned)(maker % 1000));
    return buffer;
}

uint32_t uir_package_get_version(const void *bytes) {
    return (uint32_t)get((const unsigned char *)bytes + 8, 4);
}

uir_status uir_package_read(const void *bytes, size_t size, uir_diagnostics *diagnostics,
                            uir_package_section *out_sections, uint32_t *out_count) {
    const unsigned char *base = bytes;
    char maker[40];
    if (size < UIR_PACKAGE_HEADER_SIZE || memcmp(base, UIR_PACKAGE_MAGIC, 8))
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "these bytes are not a package");
    uint64_t version = get(base + 8, 4), count = get(base + 12, 4), total = get(base + 16, 8);
    if (version < UIR_PACKAGE_VERSION_HOST || version > UIR_PACKAGE_VERSION)
        return uir_error_hint(
            diagnostics, UIR_STATUS_BAD_FILE, NULL,
            "pack the model again with this uir, or run the package with the one that made it",
            "a package of version %u, made by %s; this is uir %d.%d.%d, which reads versions %d and %d",
            (unsigned)version, uir_package_describe_maker(base, maker, sizeof maker), UIR_VERSION_MAJOR,
            UIR_VERSION_MINOR, UIR_VERSION_PATCH, UIR_PACKAGE_VERSION_HOST, UIR_PACKAGE_VERSION);
    if (total != size) return refuse(diagnostics, "its size is not the one in its header");
    if (count > UIR_PACKAGE_MAX_SECTIONS || UIR_PACKAGE_HEADER_SIZE + count * UIR_PACKAGE_SECTION_SIZE > size)
        return refuse(diagnostics, "its table of sections is cut off");
    const unsigned char *table = base + UIR_PACKAGE_HEADER_SIZE;
    if (hash_head(base, table, (uint32_t)count) != get(base + UIR_PACKAGE_HASHED_SIZE, 8))
        return refuse(diagnostics, "the hash of its table of sections does not match");
    uint64_t at = UIR_PACKAGE_HEADER_SIZE + count * UIR_PACKAGE_SECTION_SIZE;
    for (uint32_t i = 0; i < count; i++)
        UIR_TRY(
            read_section(base, size, table + (size_t)i * UIR_PACKAGE_SECTION_SIZE, &at, diagnostics, &out_sections[i]));
    if (at != size) return refuse(diagnostics, "bytes after its last section");
    *out_count = (uint32_t)count;
    return UIR_STATUS_OK;
}

size_t uir_package_skip_signature(const void *bytes, size_t size) {
    if (size < UIR_SIGNATURE_SIZE) return size;
    const char *end = (const char *)bytes + size - UIR_SIGNATURE_SIZE;
    return memcmp(end, UIR_SIGNATURE_MAGIC, UIR_SIGNATURE_KEY_AT) == 0 ? size - UIR_SIGNATURE_SIZE : size;
}
