/* A dense tensor at run time: dtype, shape, bytes. Row-major, packed.
 *
 * In: storage owned by an allocator, or borrowed (a mapped file, a caller's buffer). Out: typed access helpers. */
#ifndef UIR_BASE_TENSOR_H
#define UIR_BASE_TENSOR_H

#include "base/dtype.h"

#define UIR_MAX_RANK 16

/* Reference counted: many graph values may share one buffer. */
typedef struct uir_tensor {
    uir_dtype dtype;
    uint32_t rank;
    int64_t shape[UIR_MAX_RANK];
    uint64_t element_count;
    size_t byte_size;
    void *data; /* 64-byte aligned when owned; NULL only when byte_size is 0 */
    bool owned;
    bool mapped; /* owned, in a file of its own: uir_tensor_move_to_file */
    uir_allocator allocator; /* its own copy: a tensor may outlive the module that it was made for */
    uint32_t references;
} uir_tensor;

/* Product of the dims; false for a negative dim, a product over `INT64_MAX` or too large a rank. */
bool uir_shape_element_count(const int64_t *shape, uint32_t rank, uint64_t *out_count);

/* Zeroed storage. Elements of STRING are uir_string_view; the tensor owns their bytes if set with
 * uir_tensor_set_string. */
uir_status uir_tensor_create(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                             uir_tensor **out_tensor);
/* Borrows `data`, which must outlive the tensor. */
uir_status uir_tensor_create_borrowed(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                                      const int64_t *shape, const void *data, uir_tensor **out_tensor);
void uir_tensor_retain(uir_tensor *tensor);
void uir_tensor_release(uir_tensor *tensor); /* NULL is fine */
/* Moves the elements to a mapped file without a name (in TMPDIR): they count as memory, and the system can evict them
 * while unused. False, without a change, for lack of space, for more than one reference, and for strings, empty,
 * borrowed or moved tensors. */
bool uir_tensor_move_to_file(uir_tensor *tensor);
/* As uir_tensor_create, in such a file. *out_tensor is NULL with status OK where there is no space for it. */
uir_status uir_tensor_create_in_file(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                                     const int64_t *shape, uir_tensor **out_tensor);
/* Tells the system that the elements are unused for a while. Does nothing for tensors not in a file; NULL is fine. */
void uir_tensor_rest(const uir_tensor *tensor);
void uir_tensor_unmap(uir_tensor *tensor); /* called by uir_tensor_release only */
uir_status uir_tensor_set_string(uir_tensor *tensor, uint64_t index, const char *text, size_t length);
/* "f32[2,3]" into a caller's buffer. */
void uir_tensor_describe(const uir_tensor *tensor, char *buffer, size_t capacity);

#endif
