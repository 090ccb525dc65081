/* The functions that are tried: their arguments, drawn by a seed, and what MPFR says of them.
 *
 * In: a folder. Out: for a function and a dtype the exact results, computed once and kept in the folder.
 */
#ifndef UIR_TESTS_FUNCTIONS_H
#define UIR_TESTS_FUNCTIONS_H

#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uir/uir.h"

typedef int unary_reference(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
typedef int binary_reference(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

typedef struct function {
    const char *op, *attribute;
    unary_reference *unary;
    binary_reference *binary;
    int primitive;
    bool loose; /* the sign of a zero is left open */
} function;

extern const function functions[];
extern const uint32_t function_count;
/* Of f32 or f64, as ir/kernel/interpret/kernel_math.def states it. */
double functions_ulp(const function *f, uir_dtype dtype);
/* The primitive of ir/kernel/interpret/kernel_math.def that no function here is of; NULL: there is none. */
const char *functions_missing(void);

/* The exact result is high + low, a double and what its rounding left. */
typedef struct exact {
    const double *high;
    const float *low; /* NULL but for f64 */
} exact;

/* The argument number `index` of a function, `second` of two. Of one half each pattern of bits in turn. */
double functions_argument(const function *f, uir_dtype dtype, uint64_t index, bool second);
/* Computes what is not in the folder yet, in `jobs` processes; false: with a message on stderr. */
bool functions_prepare(const char *folder, uir_dtype dtype, uint64_t unary_count, uint64_t binary_count, uint32_t jobs);
bool functions_open(const char *folder, const function *f, uir_dtype dtype, uint64_t count, exact *out);
/* A number of the dtype from its bits, and its bits: of f16, bf16, f32 and f64. */
double functions_value(uir_dtype dtype, uint64_t bits);
uint64_t functions_bits(uir_dtype dtype, double value);

#endif
