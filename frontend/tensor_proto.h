/* Converts TensorProto and SparseTensorProto to tensors.
 *
 * In: an unpacked proto, the file's bytes, the storage for external data. Out: a tensor that borrows the mapped bytes
 * if they can be used in place, else owns a copy. Copied are: data in memory that the caller may free; elements not
 * aligned to their size (raw_data in a protobuf file is aligned only by chance); booleans other than 0 and 1, which are
 * normalised; 2 and 4-bit tensors with nonzero unused bits, which are cleared. */
#ifndef UIR_FRONTEND_TENSOR_PROTO_H
#define UIR_FRONTEND_TENSOR_PROTO_H

#include "base/tensor.h"
#include "frontend/proto.h"
#include "frontend/storage.h"

typedef struct uir_tensor_source {
    const uir_allocator *allocator; /* for the tensors; outlives them */
    uir_diagnostics *diagnostics;
    const uint8_t *data; /* the file that raw spans refer to */
    uint64_t size;
    bool borrow;          /* `data` lives as long as the tensors */
    uir_storage *storage; /* of external data; NULL: refused */
} uir_tensor_source;

/* `place` is the location in messages, with the tensor's own name. */
uir_status uir_tensor_from_proto(const uir_tensor_source *source, const uir_location *place,
                                 const UirOnnx__TensorProto *proto, uir_tensor **out_tensor);
/* The result is dense. */
uir_status uir_tensor_from_sparse_proto(const uir_tensor_source *source, const uir_location *place,
                                        const UirOnnx__SparseTensorProto *proto, uir_tensor **out_tensor);

/* Arguments for "%.*s": a name from a file, cut to a readable length. */
#define UIR_BYTES_FORMAT(bytes) (int)((bytes).length > 200 ? 200 : (bytes).length), (bytes).data

#endif
