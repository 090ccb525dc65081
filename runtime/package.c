/* The bytes around a plan: header, section table, hashes; written and read by the same few lists. */
#include "runtime/plan.h"

#include <string.h>
#include <xxhash.h>

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
    return XXH3_64bits(data, size);
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
    unsigned char bytes[24 + UIR_PACKAGE_MAX_SECTIONS * UIR_PACKAGE_SECTION_SIZE];
    memcpy(bytes, header, 24);
    memcpy(bytes + 24, table, (size_t)count * UIR_PACKAGE_SECTION_SIZE);
    return uir_package_hash(bytes, 24 + (size_t)count * UIR_PACKAGE_SECTION_SIZE);
}

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- writing ---- */
/* One allocation for all that will be appended. */
static void reserve(uir_text *bytes, uint64_t size) {
    if (bytes->failed || size >= SIZE_MAX - 1 || size + 1 <= bytes->capacity) return;
    size_t capacity = (size_t)size + 1;
    char *data = bytes->data ? uir_reallocate(&bytes->allocator, bytes->data, bytes->capacity, capacity)
                             : uir_allocate(&bytes->allocator, capacity);
    if (!data) {
        bytes->failed = true;
        return;
    }
    bytes->data = data;
    bytes->capacity = capacity;
}

static void pad_to(uir_text *bytes, uint64_t size) {
    static const char zeros[4096] = {0};
    while (!bytes->failed && bytes->length < size) {
        uint64_t missing = size - bytes->length;
        uir_text_append(bytes, zeros, missing < sizeof zeros ? (size_t)missing : sizeof zeros);
    }
}

/* Offsets count from where the package begins, which is where `bytes` ended. */
uir_status uir_package_write(const uir_package_section *sections, uint32_t count, uir_text *bytes) {
    unsigned char header[UIR_PACKAGE_HEADER_SIZE] = {0};
    unsigned char table[UIR_PACKAGE_MAX_SECTIONS * UIR_PACKAGE_SECTION_SIZE];
    uint64_t offsets[UIR_PACKAGE_MAX_SECTIONS];
    uint64_t start = bytes->length, at = UIR_PACKAGE_HEADER_SIZE + (uint64_t)count * UIR_PACKAGE_SECTION_SIZE;
    if (count > UIR_PACKAGE_MAX_SECTIONS) return UIR_STATUS_LIMIT;
    for (uint32_t i = 0; i < count; i++) {
        const uir_package_section *s = &sections[i];
        unsigned char *row = table + (size_t)i * UIR_PACKAGE_SECTION_SIZE;
        offsets[i] = at = align_up(at, section_rows[s->kind].alignment);
        put(row, s->kind, 4);
        put(row + 4, s->index, 4);
        put(row + 8, at, 8);
        put(row + 16, s->size, 8);
        put(row + 24, s->kind == UIR_PACKAGE_WEIGHTS ? 0 : uir_package_hash(s->data, (size_t)s->size), 8);
        at += s->size;
    }
    reserve(bytes, start + at);
    memcpy(header, UIR_PACKAGE_MAGIC, 8);
    put(header + 8, UIR_PACKAGE_VERSION, 4);
    put(header + 12, count, 4);
    put(header + 16, at, 8);
    put(header + 24, hash_head(header, table, count), 8);
    uir_text_append(bytes, (const char *)header, sizeof header);
    uir_text_append(bytes, (const char *)table, (size_t)count * UIR_PACKAGE_SECTION_SIZE);
    for (uint32_t i = 0; i < count; i++) {
        pad_to(bytes, start + offsets[i]);
        if (sections[i].data)
            uir_text_append(bytes, (const char *)sections[i].data, (size_t)sections[i].size);
        else
            pad_to(bytes, start + offsets[i] + sections[i].size);
    }
    return uir_text_status(bytes);
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
        return refuse(diagnostics, "a section lies elsewhere than it should");
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

uir_status uir_package_read(const void *bytes, size_t size, uir_diagnostics *diagnostics,
                            uir_package_section *out_sections, uint32_t *out_count) {
    const unsigned char *base = bytes;
    if (size < UIR_PACKAGE_HEADER_SIZE || memcmp(base, UIR_PACKAGE_MAGIC, 8))
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "these bytes are no package");
    uint64_t version = get(base + 8, 4), count = get(base + 12, 4), total = get(base + 16, 8);
    if (version != UIR_PACKAGE_VERSION)
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "compile the model with this version",
                              "a package of version %u; this build reads version %d", (unsigned)version,
                              UIR_PACKAGE_VERSION);
    if (total != size) return refuse(diagnostics, "its size is not the one it states");
    if (count > UIR_PACKAGE_MAX_SECTIONS || UIR_PACKAGE_HEADER_SIZE + count * UIR_PACKAGE_SECTION_SIZE > size)
        return refuse(diagnostics, "its table of sections is cut off");
    const unsigned char *table = base + UIR_PACKAGE_HEADER_SIZE;
    if (hash_head(base, table, (uint32_t)count) != get(base + 24, 8))
        return refuse(diagnostics, "the hash of its table of sections does not match");
    uint64_t at = UIR_PACKAGE_HEADER_SIZE + count * UIR_PACKAGE_SECTION_SIZE;
    for (uint32_t i = 0; i < count; i++)
        UIR_TRY(
            read_section(base, size, table + (size_t)i * UIR_PACKAGE_SECTION_SIZE, &at, diagnostics, &out_sections[i]));
    if (at != size) return refuse(diagnostics, "bytes after its last section");
    *out_count = (uint32_t)count;
    return UIR_STATUS_OK;
}
