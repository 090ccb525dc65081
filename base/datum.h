/* A run-time value of ONNX: a tensor, a sequence of values, or an optional value.
 *
 * A datum is reference counted, as are its tensors. In: tensors. Out: values of graph inputs, outputs and
 * interpreters. */
#ifndef UIR_BASE_DATUM_H
#define UIR_BASE_DATUM_H

#include "base/tensor.h"

typedef struct uir_datum {
    uir_value_kind kind;
    uint32_t references;
    const uir_allocator *allocator;
    uir_dtype dtype;             /* element dtype, also of an empty sequence or optional; may be NONE when unknown */
    uir_tensor *tensor;          /* TENSOR: owned reference */
    struct uir_datum **elements; /* SEQUENCE: count; OPTIONAL: 0 or 1; owned references */
    uint32_t count, capacity;
} uir_datum;

/* Takes over the caller's reference to `tensor` on success. */
uir_status uir_datum_create_tensor(const uir_allocator *allocator, uir_tensor *tensor, uir_datum **out_datum);
/* Creates an empty SEQUENCE or OPTIONAL. INVALID_ARGUMENT for a TENSOR. */
uir_status uir_datum_create_list(const uir_allocator *allocator, uir_value_kind kind, uir_dtype dtype,
                                 uir_datum **out_datum);
/* Takes over the caller's reference to `element` on success. INVALID_ARGUMENT if `list` is a TENSOR, or an OPTIONAL
 * with an element. */
uir_status uir_datum_append(uir_datum *list, uir_datum *element);
void uir_datum_retain(uir_datum *datum);
void uir_datum_release(uir_datum *datum); /* NULL is fine */

#endif
