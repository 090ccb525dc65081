/* numpy's .npy files.
 *
 * In: format 1, 2 or 3, either byte order, C or Fortran order; booleans, integers, floats, complex numbers, byte
 * strings and unicode strings (which become UTF-8). Out: format 1 or 2, little endian, C order. Format:
 * numpy.lib.format's own description. */
#include "io/io.h"

#include <string.h>

enum { MAGIC_SIZE = 6, MAX_HEADER = 65536 };
static const uint8_t magic[MAGIC_SIZE] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* numpy's type letter and size for each dtype that both have. */
typedef struct npy_type {
    char letter;
    uint32_t bytes;
    uir_dtype dtype;
} npy_type;

static const npy_type npy_types[] = {{'b', 1, UIR_DTYPE_BOOL}, {'i', 1, UIR_DTYPE_I8},   {'i', 2, UIR_DTYPE_I16},
                                     {'i', 4, UIR_DTYPE_I32},  {'i', 8, UIR_DTYPE_I64},  {'u', 1, UIR_DTYPE_U8},
                                     {'u', 2, UIR_DTYPE_U16},  {'u', 4, UIR_DTYPE_U32},  {'u', 8, UIR_DTYPE_U64},
                                     {'f', 2, UIR_DTYPE_F16},  {'f', 4, UIR_DTYPE_F32},  {'f', 8, UIR_DTYPE_F64},
                                     {'c', 8, UIR_DTYPE_C64},  {'c', 16, UIR_DTYPE_C128}};
enum { NPY_TYPE_COUNT = sizeof npy_types / sizeof *npy_types };

typedef struct npy {
    uir_diagnostics *diagnostics;
    const char *file;
    char order, letter; /* of the descr: "<f4" */
    uint64_t item;      /* bytes, of a unicode string code points */
    bool fortran;
    uint32_t rank;
    int64_t shape[UIR_MAX_RANK];
    const uint8_t *data;
    size_t size;
} npy;

static uir_status bad(const npy *npy, uir_status status, const char *what) {
    return uir_error(npy->diagnostics, status, &(uir_location){.file = npy->file}, "%s", what);
}

/* ---- the header: a Python dict literal ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static bool accept(cursor *c, const char *text) {
    size_t length = strlen(text);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) return false;
    c->at += length;
    return true;
}

static bool read_quoted(cursor *c, const char **out_text, size_t *out_length) {
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close) return false;
    *out_text = c->at;
    *out_length = (size_t)(close - c->at);
    c->at = close + 1;
    return true;
}

static bool read_number(cursor *c, int64_t *out_value) {
    int64_t value = 0;
    skip_space(c);
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (*c->at++ - '0');
    }
    *out_value = value;
    return c->at > start;
}

static bool read_descr(cursor *c, npy *npy) {
    const char *text;
    size_t length;
    int64_t item;
    if (!read_quoted(c, &text, &length) || length < 3) return false;
    cursor number = {text + 2, text + length};
    npy->order = text[0];
    npy->letter = text[1];
    if (!read_number(&number, &item) || number.at != number.end) return false;
    npy->item = (uint64_t)item;
    return true;
}

static bool read_shape(cursor *c, npy *npy) {
    if (!accept(c, "(")) return false;
    while (!accept(c, ")")) {
        if (npy->rank == UIR_MAX_RANK || !read_number(c, &npy->shape[npy->rank])) return false;
        npy->rank++;
        accept(c, "L"); /* Python 2 wrote long integers so */
        if (!accept(c, ",") && !(c->at < c->end && *c->at == ')')) return false;
    }
    return true;
}

static bool read_dict(cursor *c, npy *npy) {
    bool descr = false, order = false, shape = false;
    if (!accept(c, "{")) return false;
    while (!accept(c, "}")) {
        const char *key;
        size_t length;
        if (!read_quoted(c, &key, &length) || !accept(c, ":")) return false;
        if (length == 5 && !memcmp(key, "descr", 5)) {
            descr = read_descr(c, npy);
            if (!descr) return false;
        } else if (length == 13 && !memcmp(key, "fortran_order", 13)) {
            npy->fortran = accept(c, "True");
            order = npy->fortran || accept(c, "False");
            if (!order) return false;
        } else if (length == 5 && !memcmp(key, "shape", 5)) {
            shape = !shape && read_shape(c, npy);
            if (!shape) return false;
        } else {
            return false;
        }
        accept(c, ",");
    }
    return descr && order && shape;
}

static uir_status read_header(npy *npy, const uint8_t *data, size_t size) {
    if (size < MAGIC_SIZE + 4 || memcmp(data, magic, MAGIC_SIZE) != 0) {
        return bad(npy, UIR_STATUS_BAD_FILE, "not an .npy file");
    }
    uint32_t version = data[MAGIC_SIZE];
    size_t start = version == 1 ? 10 : 12;
    if (version < 1 || version > 3 || size < start)
        return bad(npy, UIR_STATUS_BAD_FILE, "not an .npy file of format 1 to 3");
    size_t length = (size_t)data[8] | (size_t)data[9] << 8;
    if (version > 1) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (length > MAX_HEADER || length > size - start) return bad(npy, UIR_STATUS_BAD_FILE, "the header is cut off");
    cursor c = {(const char *)data + start, (const char *)data + start + length};
    if (!read_dict(&c, npy)) {
        return bad(npy, UIR_STATUS_BAD_FILE, "the header is not understood (structured types are not supported)");
    }
    npy->data = data + start + length;
    npy->size = size - start - length;
    return UIR_STATUS_OK;
}

/* ---- elements ---- */

/* Where element `index` of the C order lies in the file's order. */
static uint64_t source_index(const npy *npy, uint64_t index) {
    if (!npy->fortran) return index;
    uint64_t position = 0, strides[UIR_MAX_RANK], stride = 1;
    for (uint32_t axis = 0; axis < npy->rank; axis++) {
        strides[axis] = stride;
        stride *= (uint64_t)npy->shape[axis];
    }
    for (uint32_t axis = npy->rank; axis-- > 0;) {
        position += index % (uint64_t)npy->shape[axis] * strides[axis];
        index /= (uint64_t)npy->shape[axis];
    }
    return position;
}

/* Copies one element, its `parts` numbers with their bytes in this machine's order. */
static void copy_element(const npy *npy, uint8_t *target, const uint8_t *source, uint32_t bytes, uint32_t parts) {
    uint32_t width = bytes / parts;
    if (npy->order != '>') {
        memcpy(target, source, bytes);
        return;
    }
    for (uint32_t part = 0; part < parts; part++) {
        for (uint32_t i = 0; i < width; i++) target[part * width + i] = source[part * width + width - 1 - i];
    }
}

static uir_status read_numbers(const npy *npy, const uir_allocator *allocator, const npy_type *type, uint64_t count,
                               uir_tensor **out_tensor) {
    if (count != npy->size / type->bytes || npy->size % type->bytes) {
        return bad(npy, UIR_STATUS_BAD_FILE, "the data's size does not match the shape");
    }
    UIR_TRY(uir_tensor_create(allocator, type->dtype, npy->rank, npy->shape, out_tensor));
    uint8_t *target = (*out_tensor)->data;
    uint32_t parts = uir_dtype_get_class(type->dtype) == UIR_DTYPE_CLASS_COMPLEX ? 2 : 1;
    if (!npy->fortran && npy->order != '>') {
        if (npy->size) memcpy(target, npy->data, npy->size);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            copy_element(npy, target + i * type->bytes, npy->data + source_index(npy, i) * type->bytes, type->bytes,
                         parts);
        }
    }
    if (type->dtype == UIR_DTYPE_BOOL) {
        for (uint64_t i = 0; i < count; i++) target[i] = target[i] != 0;
    }
    return UIR_STATUS_OK;
}

static size_t encode_utf8(uint32_t c, char *out) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18 & 7));
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* One string: its bytes, or its code points as UTF-8; zeros at its end are padding. */
static uir_status read_string(const npy *npy, const uint8_t *source, char *buffer, uir_tensor *tensor, uint64_t index) {
    uint64_t used = npy->item;
    if (npy->letter == 'S') {
        while (used && source[used - 1] == 0) used--;
        return uir_tensor_set_string(tensor, index, (const char *)source, (size_t)used);
    }
    uint32_t c;
    size_t length = 0, kept = 0;
    for (uint64_t i = 0; i < used; i++) {
        copy_element(npy, (uint8_t *)&c, source + 4 * i, 4, 1);
        length += encode_utf8(c, buffer + length);
        if (c) kept = length;
    }
    return uir_tensor_set_string(tensor, index, buffer, kept);
}

static uir_status read_strings(const npy *npy, const uir_allocator *allocator, uint64_t count,
                               uir_tensor **out_tensor) {
    uint64_t width = npy->letter == 'U' ? 4 : 1;
    if (npy->item > npy->size / width || (npy->item ? count != npy->size / (npy->item * width) : npy->size != 0) ||
        (npy->item && npy->size % (npy->item * width)) || count > (uint64_t)1 << 32) {
        if (!(count == 0 && npy->size == 0))
            return bad(npy, UIR_STATUS_BAD_FILE, "the data's size does not match the shape");
    }
    if (npy->item == 0 && count > 1 << 20) return bad(npy, UIR_STATUS_LIMIT, "too many empty strings");
    size_t buffer_size = (size_t)(npy->item > npy->size ? 0 : npy->item) * 4 + 1;
    char *buffer;
    UIR_TRY_ALLOCATE(buffer, uir_allocate(allocator, buffer_size));
    uir_status status = uir_tensor_create(allocator, UIR_DTYPE_STRING, npy->rank, npy->shape, out_tensor);
    for (uint64_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        status = read_string(npy, npy->data + source_index(npy, i) * npy->item * width, buffer, *out_tensor, i);
        if (status != UIR_STATUS_OK) uir_tensor_release(*out_tensor);
    }
    uir_release(allocator, buffer, buffer_size);
    return status;
}

uir_status uir_npy_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, uir_tensor **out_tensor) {
    npy npy = {.diagnostics = diagnostics, .file = file};
    uint64_t count;
    UIR_TRY(read_header(&npy, data, size));
    if (!uir_shape_element_count(npy.shape, npy.rank, &count))
        return bad(&npy, UIR_STATUS_BAD_FILE, "the shape is too large");
    if (npy.letter == 'S' || npy.letter == 'U') return read_strings(&npy, allocator, count, out_tensor);
    for (size_t i = 0; i < NPY_TYPE_COUNT; i++) {
        if (npy_types[i].letter == npy.letter && npy_types[i].bytes == npy.item) {
            return read_numbers(&npy, allocator, &npy_types[i], count, out_tensor);
        }
    }
    return uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = file},
                          "numbers, booleans and strings can be read; write other types to a .pb file",
                          "elements of numpy type '%c%llu' are not supported", npy.letter,
                          (unsigned long long)npy.item);
}

/* ---- writing ---- */

/* The numpy type that holds every value of the dtype: its own, or a wider one. */
static const npy_type *type_for(uir_dtype dtype) {
    uir_dtype wide = dtype;
    switch (uir_dtype_get_class(dtype)) {
    case UIR_DTYPE_CLASS_FLOAT:
        wide = UIR_DTYPE_F32;
        break;
    case UIR_DTYPE_CLASS_SIGNED:
        wide = UIR_DTYPE_I8;
        break;
    case UIR_DTYPE_CLASS_UNSIGNED:
        wide = UIR_DTYPE_U8;
        break;
    default:
        break;
    }
    const npy_type *widened = NULL;
    for (size_t i = 0; i < NPY_TYPE_COUNT; i++) {
        if (npy_types[i].dtype == dtype) return &npy_types[i];
        if (npy_types[i].dtype == wide) widened = &npy_types[i];
    }
    return widened;
}

uir_status uir_npy_write(const uir_tensor *tensor, uir_diagnostics *diagnostics, const char *file, uir_text *out) {
    const npy_type *type = type_for(tensor->dtype);
    if (!type) {
        return uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = file},
                              "write to a .pb file instead", "%s cannot be written to an .npy file",
                              uir_dtype_name(tensor->dtype));
    }
    uir_text header;
    uir_text_init(&header, &out->allocator);
    uir_text_append_format(&header, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                           type->bytes > 1 ? '<' : '|', type->letter, (unsigned)type->bytes);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uir_text_append_format(&header, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    }
    uir_text_append_string(&header, tensor->rank == 1 ? ",), }" : "), }");
    uir_text_append_until(&header, MAGIC_SIZE + 4 + 1, 64, ' ');
    uir_text_append(&header, "\n", 1);
    uir_status status = uir_text_status(&header);
    if (status == UIR_STATUS_OK) {
        char start[4] = {1, 0, (char)(header.length & 0xff), (char)(header.length >> 8)};
        uir_text_append(out, (const char *)magic, MAGIC_SIZE);
        uir_text_append(out, start, sizeof start);
        uir_text_append(out, header.data, header.length);
        if (type->dtype == tensor->dtype) {
            if (tensor->byte_size) uir_text_append(out, tensor->data, tensor->byte_size);
        } else {
            for (uint64_t i = 0; i < tensor->element_count; i++) {
                uint64_t element = 0;
                uir_dtype_store_double(type->dtype, &element, 0, uir_dtype_load_double(tensor->dtype, tensor->data, i),
                                       UIR_ROUND_NEAREST_EVEN);
                uir_text_append(out, (const char *)&element, type->bytes);
            }
        }
        status = uir_text_status(out);
    }
    uir_text_deinit(&header);
    return status;
}
