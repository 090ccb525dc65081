/* The package format: sections around a plan.
 *
 * In: sections, whole or in parts. Out: their bytes; and from bytes the sections again, checked. Header:
 * UIR_PACKAGE_MAGIC, u32 version, u32 section count, u64 size of the whole, u32 version of the uir that made it, u32
 * zero, u64 hash of all preceding bytes and of the table. Then per section: u32 kind, u32 index, u64 offset, u64 size,
 * u64 hash. Sections are padded with zeros. */
#ifndef UIR_PACKAGE_PACKAGE_H
#define UIR_PACKAGE_PACKAGE_H

#include "base/text.h"

/* Written for a plan with a device. A package without one has the older version, whose bytes are the same, so that
 * older runtimes read it. */
#define UIR_PACKAGE_VERSION      11
#define UIR_PACKAGE_VERSION_HOST 10
enum {
    UIR_PACKAGE_HEADER_SIZE = 40,
    UIR_PACKAGE_HASHED_SIZE = 32, /* of the header */
    UIR_PACKAGE_MAKER_AT = 24,    /* fixed since version 10, so that each uir can name the maker of any package */
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

/* Receives the bytes of a package, in order. */
typedef struct uir_package_sink {
    uir_status (*append)(void *user, const void *data, size_t size);
    uir_status (*patch)(void *user, const void *data, size_t size); /* overwrites the first bytes; at most a page */
    bool (*equals)(void *user, uint64_t offset, const void *data,
                   size_t size); /* compares with the bytes appended at `offset` */
    void *user;
} uir_package_sink;
uir_package_sink uir_package_sink_to_text(uir_text *bytes);

/* Writes a package: sections in any order, each either whole or in parts. */
typedef struct uir_package_writer {
    const uir_package_sink *sink;
    uint32_t version;     /* UIR_PACKAGE_VERSION_HOST, until the caller sets another */
    uint32_t count, done; /* sections: announced, begun */
    uint64_t at;          /* bytes so far */
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
} uir_package_writer;
uir_status uir_package_writer_begin(uir_package_writer *writer, const uir_package_sink *sink, uint32_t count);
uir_status uir_package_writer_put(uir_package_writer *writer,
                                  const uir_package_section *section); /* kind, index, data, size */
uir_status uir_package_writer_begin_weights(uir_package_writer *writer);
/* Aligned as constants; `out_offset` in the weights. */
uir_status uir_package_writer_add_constant(uir_package_writer *writer, const void *data, uint64_t size,
                                           uint64_t *out_offset);
uir_status uir_package_writer_end(uir_package_writer *writer); /* writes the header, after all sections */

/* Appends a whole package of the sections (kind, index, data and size are read). */
uir_status uir_package_write(const uir_package_section *sections, uint32_t count, uir_text *bytes);
/* Maker of a package, "uir 0.1.0", also for packages of later versions; "an older uir" if not recorded. */
const char *uir_package_describe_maker(const void *bytes, char *buffer, size_t capacity);
uint32_t uir_package_get_version(const void *bytes); /* of a package that was read */
/* Checks the header, the table, the padding and the hashes of all sections but the weights, whose constants have hashes
 * in the plan. BAD_FILE with a message otherwise. `out_sections` has MAX_SECTIONS entries. */
uir_status uir_package_read(const void *bytes, size_t size, uir_diagnostics *diagnostics,
                            uir_package_section *out_sections, uint32_t *out_count);
/* A signature may follow a package in its file (api/trust.h): this word, a public key, the signature by it. */
#define UIR_SIGNATURE_MAGIC "UIRSIGN1"
enum { UIR_SIGNATURE_KEY_AT = 8, UIR_SIGNATURE_KEY_SIZE = 32, UIR_SIGNATURE_AT = 40, UIR_SIGNATURE_SIZE = 104 };
/* Size of the package in the bytes of its file, without a signature. */
size_t uir_package_skip_signature(const void *bytes, size_t size);

/* The hash used in packages: xxh3, 64 bits. It finds damage; it proves nothing about the maker of a package. */
uint64_t uir_package_hash(const void *data, size_t size);

#endif
