/* A package: the bytes around a plan.
 *
 * In: sections, in memory or as they are made. Out: their bytes, and from bytes the sections again, checked. Header:
 * UIR_PACKAGE_MAGIC, u32 version, u32 section count, u64 size of the whole, u32 version of the uir that made it, u32
 * zero, u64 hash of all that precedes and of the table; then per section: u32 kind, u32 index, u64 offset, u64 size, u64
 * hash. Between sections are zeros. */
#ifndef UIR_PACKAGE_PACKAGE_H
#define UIR_PACKAGE_PACKAGE_H

#include "base/text.h"

#define UIR_PACKAGE_VERSION 10
enum {
    UIR_PACKAGE_HEADER_SIZE = 40,
    UIR_PACKAGE_HASHED_SIZE = 32, /* of the header */
    UIR_PACKAGE_MAKER_AT = 24,    /* and since version 10 it stays there, so that each uir can say who made another's */
    UIR_PACKAGE_MAKER_SINCE = 10,
    UIR_PACKAGE_SECTION_SIZE = 32,
    UIR_PACKAGE_PAGE = 4096,
    UIR_PACKAGE_CONSTANT_ALIGN = 64,
    UIR_PACKAGE_MAX_SECTIONS = 64
};
/* Sections with their alignment. */
#define UIR_PACKAGE_SECTIONS(UIR_PACKAGE_SECTION)                                                                      \
    UIR_PACKAGE_SECTION(PLAN, "plan", 8)                                                                               \
    UIR_PACKAGE_SECTION(CODE, "code", 8)      /* bytecode of all variants */                                           \
    UIR_PACKAGE_SECTION(NATIVE, "native", 64) /* a shared object; index: which */                                      \
    UIR_PACKAGE_SECTION(WEIGHTS, "weights", UIR_PACKAGE_PAGE)
typedef enum uir_package_section_kind {
#define UIR_PACKAGE_SECTION_ENUM(constant, name, alignment) UIR_PACKAGE_##constant,
    UIR_PACKAGE_SECTIONS(UIR_PACKAGE_SECTION_ENUM)
#undef UIR_PACKAGE_SECTION_ENUM
        UIR_PACKAGE_SECTION_KIND_COUNT
} uir_package_section_kind;

typedef struct uir_package_section {
    uint32_t kind, index;
    uint64_t offset, size, hash;
    const unsigned char *data;
} uir_package_section;

/* Where the bytes of a package go, one after the other. */
typedef struct uir_package_sink {
    uir_status (*append)(void *user, const void *data, size_t size);
    uir_status (*patch)(void *user, const void *data, size_t size); /* over the first bytes; at most a page */
    bool (*equals)(void *user, uint64_t offset, const void *data, size_t size); /* to what was appended there */
    void *user;
} uir_package_sink;
uir_package_sink uir_package_sink_to_text(uir_text *bytes);

/* A package as it is written: sections in any order, each either whole or begun and added to. */
typedef struct uir_package_writer {
    const uir_package_sink *sink;
    uint32_t count, done; /* sections: announced, begun */
    uint64_t at;          /* bytes so far */
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
} uir_package_writer;
uir_status uir_package_writer_begin(uir_package_writer *writer, const uir_package_sink *sink, uint32_t count);
uir_status uir_package_writer_put(uir_package_writer *writer,
                                  const uir_package_section *section); /* kind, index, data, size */
uir_status uir_package_writer_begin_weights(uir_package_writer *writer);
/* Aligned as constants are; `out_offset` in the weights. */
uir_status uir_package_writer_add_constant(uir_package_writer *writer, const void *data, uint64_t size,
                                           uint64_t *out_offset);
uir_status uir_package_writer_end(uir_package_writer *writer); /* the header, once all sections are there */

/* Appends a whole package made of the sections (kind, index, data and size are read). */
uir_status uir_package_write(const uir_package_section *sections, uint32_t count, uir_text *bytes);
/* "uir 0.1.0", which made it, of the bytes of a package that were read, or of one of a later version; "an older
 * uir" where it does not say. */
const char *uir_package_describe_maker(const void *bytes, char *buffer, size_t capacity);
/* Checks the header, the table, what lies between sections and the hash of every section but the weights, whose parts
 * have hashes of their own in the plan. BAD_FILE with a message otherwise. `out_sections` has MAX_SECTIONS entries. */
uir_status uir_package_read(const void *bytes, size_t size, uir_diagnostics *diagnostics,
                            uir_package_section *out_sections, uint32_t *out_count);
/* A signature may follow a package in its file (api/trust.h): this word, a public key, the signature by it. */
#define UIR_SIGNATURE_MAGIC "UIRSIGN1"
enum { UIR_SIGNATURE_KEY_AT = 8, UIR_SIGNATURE_KEY_SIZE = 32, UIR_SIGNATURE_AT = 40, UIR_SIGNATURE_SIZE = 104 };
/* The size of the package in the bytes of its file: without the signature, if there is one. */
size_t uir_package_skip_signature(const void *bytes, size_t size);

/* What hashes of packages are: xxh3, 64 bits. They find damage; whoever makes a package makes them too, so nothing is
 * believed for them. */
uint64_t uir_package_hash(const void *data, size_t size);

#endif
