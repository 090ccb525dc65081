/* The VM's routines: operations on contiguous elements, compiled once per instruction set.
 *
 * In: pointers to `count` elements of the instruction's dtype (an operand may be the result itself, element for
 * element). Out: the same bits from every instruction set. routines.inc is their source; routines_*.c compile it with
 * different flags. */
#ifndef UIR_BACKENDS_VM_ROUTINES_H
#define UIR_BACKENDS_VM_ROUTINES_H

#include "base/dtype.h"
#include "ir/machine/iops.h"

typedef void vm_elementwise(void *result, const void *a, const void *b, const void *c, int64_t count);
/* Reduces a row into 32 lanes, element j into lane j mod 32. */
typedef void vm_reduce(void *lanes, const void *row, int64_t count);
typedef void vm_scan(void *result, const void *row, void *carry, int64_t count, bool exclusive);
/* c[m,n] += a[m,k] * b[k,n], k ascending, one fma each (integers wrap). Strides in elements: rows of c, rows and
 * columns of a, rows of b. Columns of b and c are contiguous. */
typedef void vm_product(void *c, int64_t ldc, const void *a, int64_t lda, int64_t step, const void *b, int64_t ldb,
                        int64_t m, int64_t n, int64_t k);
/* Stores one element `count` times. */
typedef void vm_splat(void *result, const void *element, int64_t count);

typedef struct vm_routines {
    const char *isa;
    bool (*is_available)(void);
    vm_elementwise *elementwise[UIR_IOP_COUNT][UIR_DTYPE_COUNT]; /* NULL: undefined */
    vm_reduce *reduce[UIR_IOP_COUNT][UIR_DTYPE_COUNT];
    vm_scan *scan[UIR_IOP_COUNT][UIR_DTYPE_COUNT];
    vm_product *product[UIR_DTYPE_COUNT];
    vm_splat *splat[9]; /* by the bytes of an element */
} vm_routines;

/* Best first; the last is always available. */
const vm_routines *uir_vm_routines_get(size_t index);
/* `isa` NULL: the best available. Returns NULL if the instruction set is unavailable. */
const vm_routines *uir_vm_routines_find(const char *isa);

#endif
