#include "frontend/tensor_proto.h"

#include <stdio.h>
#include <string.h>

/* A sparse tensor's dense form is as large as its dims say, whatever the file holds. */
#define MAX_DENSE_BYTES ((size_t)1 << 30)

typedef struct reading {
    const uir_tensor_source *source;
    const uir_location *place;
    const UirOnnx__TensorProto *proto;
    uir_bytes name;
    uir_dtype dtype;
    uint32_t rank;
    int64_t shape[UIR_MAX_RANK];
    uint64_t count;
    size_t size;
} reading;

static uir_status tensor_error(const reading *reading, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);

static uir_status tensor_error(const reading *reading, uir_status status, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(reading->source->diagnostics, status, reading->place, "tensor '%.*s': %s",
                     UIR_BYTES_FORMAT(reading->name), message);
}

/* Dtype, shape, element count and byte size. */
static uir_status read_header(reading *reading, int32_t data_type, size_t dim_count, const int64_t *dims) {
    if (!uir_dtype_is_valid(data_type)) {
        return tensor_error(reading, data_type == 0 ? UIR_STATUS_BAD_FILE : UIR_STATUS_UNSUPPORTED,
                            "the element type number %d is unknown", (int)data_type);
    }
    reading->dtype = (uir_dtype)data_type;
    if (dim_count > UIR_MAX_RANK) {
        return tensor_error(reading, UIR_STATUS_UNSUPPORTED, "%zu dims; at most %d are supported", dim_count,
                            UIR_MAX_RANK);
    }
    reading->rank = (uint32_t)dim_count;
    if (dim_count) memcpy(reading->shape, dims, dim_count * sizeof *dims);
    if (!uir_shape_element_count(reading->shape, reading->rank, &reading->count) ||
        !uir_dtype_storage_size(reading->dtype, reading->count, &reading->size)) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "the dims are negative or their product is too large");
    }
    return UIR_STATUS_OK;
}

/* Whether the bytes mean what they say as they lie. */
static bool is_clean(const reading *reading, const uint8_t *data) {
    uint32_t bits = uir_dtype_bits(reading->dtype);
    if (reading->dtype == UIR_DTYPE_BOOL) {
        for (size_t i = 0; i < reading->size; i++) {
            if (data[i] > 1) return false;
        }
    }
    if (bits < 8 && reading->size) {
        uint32_t used = (uint32_t)(reading->count * bits % 8);
        if (used && data[reading->size - 1] >> used) return false;
    }
    return true;
}

static void make_clean(const reading *reading, uint8_t *data) {
    uint32_t bits = uir_dtype_bits(reading->dtype);
    if (reading->dtype == UIR_DTYPE_BOOL) {
        for (size_t i = 0; i < reading->size; i++) data[i] = data[i] != 0;
    }
    if (bits < 8 && reading->size) {
        uint32_t used = (uint32_t)(reading->count * bits % 8);
        if (used) data[reading->size - 1] &= (uint8_t)((1u << used) - 1);
    }
}

static size_t element_alignment(uir_dtype dtype) {
    uint32_t bytes = uir_dtype_bits(dtype) / 8;
    return bytes > 8 ? 8 : bytes ? bytes : 1;
}

/* A tensor from `reading->size` bytes of little-endian elements. */
static uir_status from_bytes(const reading *reading, const uint8_t *data, bool may_borrow, uir_tensor **out_tensor) {
    const uir_allocator *allocator = reading->source->allocator;
    bool aligned = (uintptr_t)data % element_alignment(reading->dtype) == 0;
    if (may_borrow && aligned && is_clean(reading, data)) {
        return uir_tensor_create_borrowed(allocator, reading->dtype, reading->rank, reading->shape, data, out_tensor);
    }
    UIR_TRY(uir_tensor_create(allocator, reading->dtype, reading->rank, reading->shape, out_tensor));
    if (reading->size) memcpy((*out_tensor)->data, data, reading->size);
    make_clean(reading, (*out_tensor)->data);
    return UIR_STATUS_OK;
}

static uir_status read_raw(const reading *reading, uir_tensor **out_tensor) {
    uir_raw_span span = uir_proto_raw_span(reading->proto);
    if (reading->dtype == UIR_DTYPE_STRING) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "strings cannot be stored as raw data");
    }
    if (span.length != reading->size) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "%llu bytes of raw data where type and dims need %zu",
                            (unsigned long long)span.length, reading->size);
    }
    return from_bytes(reading, reading->source->data + span.offset, reading->source->borrow, out_tensor);
}

/* ---- external data ---- */

static bool parse_number(uir_bytes text, uint64_t *out_value) {
    uint64_t value = 0;
    if (text.length == 0 || text.length > 19) return false; /* 19 digits always fit */
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out_value = value;
    return true;
}

typedef enum external_key { KEY_LOCATION, KEY_OFFSET, KEY_LENGTH, KEY_CHECKSUM, KEY_COUNT } external_key;
static const char *const external_keys[KEY_COUNT] = {"location", "offset", "length", "checksum"};

static uir_status read_external(const reading *reading, uir_tensor **out_tensor) {
    uir_bytes values[KEY_COUNT] = {{0}};
    for (size_t i = 0; i < reading->proto->n_external_data; i++) {
        const UirOnnx__StringStringEntryProto *entry = reading->proto->external_data[i];
        uir_bytes key = UIR_PROTO_BYTES(entry, key);
        int which = 0;
        while (which < KEY_COUNT &&
               !uir_bytes_equal(key, (uir_bytes){external_keys[which], strlen(external_keys[which])})) {
            which++;
        }
        if (which == KEY_COUNT) {
            return tensor_error(reading, UIR_STATUS_BAD_FILE, "unknown key '%.*s' in external_data",
                                UIR_BYTES_FORMAT(key));
        }
        if (values[which].data) {
            return tensor_error(reading, UIR_STATUS_BAD_FILE, "key '%s' occurs twice in external_data",
                                external_keys[which]);
        }
        values[which] = UIR_PROTO_BYTES(entry, value);
    }
    if (!values[KEY_LOCATION].data) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "external data has no location");
    }
    uint64_t offset = 0, length = reading->size;
    if ((values[KEY_OFFSET].data && !parse_number(values[KEY_OFFSET], &offset)) ||
        (values[KEY_LENGTH].data && !parse_number(values[KEY_LENGTH], &length))) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "offset and length of external data must be whole numbers");
    }
    if (reading->dtype == UIR_DTYPE_STRING) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "strings cannot be external data");
    }
    if (length != reading->size) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "%llu bytes of external data where type and dims need %zu",
                            (unsigned long long)length, reading->size);
    }
    if (!reading->source->storage) {
        return tensor_error(reading, UIR_STATUS_BAD_FILE, "external data is not allowed here");
    }
    const uint8_t *data;
    char owner[256];
    int shown = reading->name.length < 200 ? (int)reading->name.length : 200; /* it ends in no zero */
    snprintf(owner, sizeof owner, "tensor '%.*s': ", shown, reading->name.data ? reading->name.data : "");
    UIR_TRY(uir_storage_map_below(reading->source->storage, reading->source->diagnostics, reading->place, owner,
                                  values[KEY_LOCATION].data, values[KEY_LOCATION].length, offset, length, &data));
    return from_bytes(reading, data, true, out_tensor);
}

/* ---- typed fields ---- */

/* The field that holds a dtype's elements: as the comments in onnx.proto say. */
typedef enum data_field {
    FIELD_NONE,
    FIELD_FLOAT,
    FIELD_INT32,
    FIELD_STRING,
    FIELD_INT64,
    FIELD_DOUBLE,
    FIELD_UINT64
} data_field;

static data_field field_of(uir_dtype dtype) {
    uint32_t bits = uir_dtype_bits(dtype);
    switch (uir_dtype_get_class(dtype)) {
    case UIR_DTYPE_CLASS_STRING:
        return FIELD_STRING;
    case UIR_DTYPE_CLASS_COMPLEX:
        return bits == 64 ? FIELD_FLOAT : FIELD_DOUBLE;
    case UIR_DTYPE_CLASS_FLOAT:
        return bits == 64 ? FIELD_DOUBLE : bits == 32 ? FIELD_FLOAT : FIELD_INT32;
    case UIR_DTYPE_CLASS_UNSIGNED:
        return bits >= 32 ? FIELD_UINT64 : FIELD_INT32;
    case UIR_DTYPE_CLASS_SIGNED:
        return bits == 64 ? FIELD_INT64 : FIELD_INT32;
    case UIR_DTYPE_CLASS_BOOL:
        return FIELD_INT32;
    default:
        return FIELD_NONE;
    }
}

static uir_status count_error(const reading *reading, size_t found, uint64_t expected) {
    return tensor_error(reading, UIR_STATUS_BAD_FILE, "%zu stored elements where type and dims need %llu", found,
                        (unsigned long long)expected);
}

static uir_status read_strings(const reading *reading, uir_tensor **out_tensor) {
    const UirOnnx__TensorProto *proto = reading->proto;
    if (proto->n_string_data != reading->count) return count_error(reading, proto->n_string_data, reading->count);
    UIR_TRY(uir_tensor_create(reading->source->allocator, UIR_DTYPE_STRING, reading->rank, reading->shape, out_tensor));
    for (size_t i = 0; i < proto->n_string_data; i++) {
        uir_bytes text = uir_proto_bytes(true, proto->string_data[i]);
        uir_status status = uir_tensor_set_string(*out_tensor, i, text.data, text.length);
        if (status != UIR_STATUS_OK) {
            uir_tensor_release(*out_tensor);
            return status;
        }
    }
    return UIR_STATUS_OK;
}

/* Elements of up to 32 bits, one to an int32, several when they are packed: the low bits are what is stored. */
static uir_status read_int32(const reading *reading, uir_tensor **out_tensor) {
    const UirOnnx__TensorProto *proto = reading->proto;
    size_t width = element_alignment(reading->dtype);
    uint64_t units = reading->size / width;
    if (proto->n_int32_data != units) return count_error(reading, proto->n_int32_data, units);
    for (size_t i = 0; i < proto->n_int32_data; i++) {
        int32_t value = proto->int32_data[i];
        /* A type of N bits may have been written signed or as bits. */
        int64_t bits = (int64_t)width * 8;
        if (bits < 32 && (value < -((int64_t)1 << (bits - 1)) || value >= (int64_t)1 << bits)) {
            return tensor_error(reading, UIR_STATUS_BAD_FILE, "the stored element %d does not fit %s", (int)value,
                                uir_dtype_name(reading->dtype));
        }
    }
    UIR_TRY(uir_tensor_create(reading->source->allocator, reading->dtype, reading->rank, reading->shape, out_tensor));
    uint8_t *data = (*out_tensor)->data;
    for (size_t i = 0; i < proto->n_int32_data; i++) {
        uint32_t value = (uint32_t)proto->int32_data[i];
        for (size_t byte = 0; byte < width; byte++) data[i * width + byte] = (uint8_t)(value >> 8 * byte);
    }
    make_clean(reading, data);
    return UIR_STATUS_OK;
}

static uir_status read_uint64(const reading *reading, uir_tensor **out_tensor) {
    const UirOnnx__TensorProto *proto = reading->proto;
    if (proto->n_uint64_data != reading->count) return count_error(reading, proto->n_uint64_data, reading->count);
    bool narrow = uir_dtype_bits(reading->dtype) == 32;
    for (size_t i = 0; narrow && i < proto->n_uint64_data; i++) {
        if (proto->uint64_data[i] > UINT32_MAX) {
            return tensor_error(reading, UIR_STATUS_BAD_FILE, "the stored element %llu does not fit %s",
                                (unsigned long long)proto->uint64_data[i], uir_dtype_name(reading->dtype));
        }
    }
    UIR_TRY(uir_tensor_create(reading->source->allocator, reading->dtype, reading->rank, reading->shape, out_tensor));
    for (size_t i = 0; i < proto->n_uint64_data; i++) {
        if (narrow) {
            ((uint32_t *)(*out_tensor)->data)[i] = (uint32_t)proto->uint64_data[i];
        } else {
            ((uint64_t *)(*out_tensor)->data)[i] = proto->uint64_data[i];
        }
    }
    return UIR_STATUS_OK;
}

/* Fields whose C elements are the tensor's bytes. */
static uir_status read_same(const reading *reading, const void *data, size_t count, size_t width,
                            uir_tensor **out_tensor) {
    if (count != reading->size / width) return count_error(reading, count, reading->size / width);
    return from_bytes(reading, data, false, out_tensor);
}

static uir_status read_typed(const reading *reading, uir_tensor **out_tensor) {
    const UirOnnx__TensorProto *p = reading->proto;
    switch (field_of(reading->dtype)) {
    case FIELD_FLOAT:
        return read_same(reading, p->float_data, p->n_float_data, sizeof(float), out_tensor);
    case FIELD_DOUBLE:
        return read_same(reading, p->double_data, p->n_double_data, sizeof(double), out_tensor);
    case FIELD_INT64:
        return read_same(reading, p->int64_data, p->n_int64_data, sizeof(int64_t), out_tensor);
    case FIELD_UINT64:
        return read_uint64(reading, out_tensor);
    case FIELD_INT32:
        return read_int32(reading, out_tensor);
    case FIELD_STRING:
        return read_strings(reading, out_tensor);
    default:
        return tensor_error(reading, UIR_STATUS_UNSUPPORTED, "the element type has no stored form");
    }
}

uir_status uir_tensor_from_proto(const uir_tensor_source *source, const uir_location *place,
                                 const UirOnnx__TensorProto *proto, uir_tensor **out_tensor) {
    reading reading = {.source = source, .place = place, .proto = proto, .name = UIR_PROTO_BYTES(proto, name)};
    UIR_TRY(read_header(&reading, proto->data_type, proto->n_dims, proto->dims));
    if (proto->segment) return tensor_error(&reading, UIR_STATUS_UNSUPPORTED, "tensors in segments are not supported");
    bool external = proto->has_data_location && proto->data_location == UIR_ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (proto->has_data_location && !external &&
        proto->data_location != UIR_ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT) {
        return tensor_error(&reading, UIR_STATUS_BAD_FILE, "the data location %d is unknown",
                            (int)proto->data_location);
    }
    size_t typed[] = {[FIELD_FLOAT] = proto->n_float_data,   [FIELD_INT32] = proto->n_int32_data,
                      [FIELD_STRING] = proto->n_string_data, [FIELD_INT64] = proto->n_int64_data,
                      [FIELD_DOUBLE] = proto->n_double_data, [FIELD_UINT64] = proto->n_uint64_data};
    uint32_t set = external;
    bool raw = proto->has_raw_data && uir_proto_raw_span(proto).length > 0;
    set += raw;
    for (size_t field = 1; field < sizeof typed / sizeof *typed; field++) {
        set += typed[field] > 0;
        if (typed[field] > 0 && field != (size_t)field_of(reading.dtype)) {
            return tensor_error(&reading, UIR_STATUS_BAD_FILE, "the data is in a field that %s does not use",
                                uir_dtype_name(reading.dtype));
        }
    }
    if (set > 1) return tensor_error(&reading, UIR_STATUS_BAD_FILE, "the data is given more than once");
    if (external) return read_external(&reading, out_tensor);
    return raw || (proto->has_raw_data && set == 0 && reading.dtype != UIR_DTYPE_STRING)
               ? read_raw(&reading, out_tensor)
               : read_typed(&reading, out_tensor);
}

/* The position in the dense tensor of stored element `index`; false when it lies outside. */
static bool sparse_position(const reading *dense, const uir_tensor *indices, uint64_t index, uint64_t *out_position) {
    const int64_t *data = indices->data;
    if (indices->rank == 1) {
        *out_position = (uint64_t)data[index];
        return data[index] >= 0 && *out_position < dense->count;
    }
    uint64_t position = 0;
    for (uint32_t axis = 0; axis < dense->rank; axis++) {
        int64_t at = data[index * dense->rank + axis];
        if (at < 0 || at >= dense->shape[axis]) return false;
        position = position * (uint64_t)dense->shape[axis] + (uint64_t)at;
    }
    *out_position = position;
    return true;
}

static uir_status scatter(const reading *dense, const uir_tensor *values, const uir_tensor *indices,
                          uir_tensor *target) {
    uint32_t width = uir_dtype_bits(dense->dtype) / 8;
    for (uint64_t i = 0; i < values->element_count; i++) {
        uint64_t position;
        if (!sparse_position(dense, indices, i, &position)) {
            return tensor_error(dense, UIR_STATUS_BAD_FILE, "index %llu of the sparse tensor is outside its dims",
                                (unsigned long long)i);
        }
        if (width) {
            memcpy((char *)target->data + position * width, (const char *)values->data + i * width, width);
        } else {
            uir_dtype_store_integer(dense->dtype, target->data, position,
                                    uir_dtype_load_integer(dense->dtype, values->data, i), false,
                                    UIR_ROUND_NEAREST_EVEN);
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_tensor_from_sparse_proto(const uir_tensor_source *source, const uir_location *place,
                                        const UirOnnx__SparseTensorProto *proto, uir_tensor **out_tensor) {
    reading dense = {.source = source, .place = place};
    if (!proto->values || !proto->indices) {
        return tensor_error(&dense, UIR_STATUS_BAD_FILE, "a sparse tensor has no values or indices");
    }
    dense.name = UIR_PROTO_BYTES(proto->values, name);
    UIR_TRY(read_header(&dense, proto->values->data_type, proto->n_dims, proto->dims));
    uint32_t bits = uir_dtype_bits(dense.dtype);
    if (dense.dtype == UIR_DTYPE_STRING || (bits < 8 && uir_dtype_is_float(dense.dtype))) {
        return tensor_error(&dense, UIR_STATUS_UNSUPPORTED, "sparse tensors of %s are not supported",
                            uir_dtype_name(dense.dtype));
    }
    if (dense.size > MAX_DENSE_BYTES) {
        return tensor_error(&dense, UIR_STATUS_LIMIT, "the sparse tensor takes %zu bytes when dense; the limit is %zu",
                            dense.size, MAX_DENSE_BYTES);
    }
    uir_tensor *values = NULL, *indices = NULL, *target = NULL;
    uir_status status = uir_tensor_from_proto(source, place, proto->values, &values);
    if (status == UIR_STATUS_OK) status = uir_tensor_from_proto(source, place, proto->indices, &indices);
    if (status == UIR_STATUS_OK) {
        bool fits = values->rank == 1 && indices->dtype == UIR_DTYPE_I64 && indices->rank >= 1 && indices->rank <= 2 &&
                    indices->shape[0] == values->shape[0] && (indices->rank == 1 || indices->shape[1] == dense.rank);
        if (!fits)
            status = tensor_error(&dense, UIR_STATUS_BAD_FILE, "the sparse tensor's indices do not fit its values");
    }
    if (status == UIR_STATUS_OK) {
        status = uir_tensor_create(source->allocator, dense.dtype, dense.rank, dense.shape, &target);
    }
    if (status == UIR_STATUS_OK) status = scatter(&dense, values, indices, target);
    uir_tensor_release(values);
    uir_tensor_release(indices);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(target);
        return status;
    }
    *out_tensor = target;
    return UIR_STATUS_OK;
}
