/* A model of one ONNX node for the tests of rules: built in C, decomposed, cleaned, verified, interpreted.
 *
 * In: the node's op, inputs with dims that may be symbols, attributes. Out: the outputs for given tensors; one
 * decomposition serves runs of several shapes. Every step's status is asserted, so a test only looks at numbers. */
#ifndef TESTS_DECOMPOSE_NETWORK_RIG_H
#define TESTS_DECOMPOSE_NETWORK_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decompose/decompose.h"
#include "passes/passes.h"
#include "ir/graph/build.h"

enum { RIG_MAX_VALUES = 8 };

typedef struct rig {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_module *source, *module; /* module: after rig_decompose */
    uir_builder maker;           /* of attributes */
    uir_value_id inputs[RIG_MAX_VALUES];
    uint32_t input_count, output_count;
    uir_attribute attributes[16];
    uint32_t attribute_count;
    uir_datum *given[RIG_MAX_VALUES], *results[RIG_MAX_VALUES];
} rig;

void rig_init(rig *r, int opset);
void rig_deinit(rig *r);

/* A graph input that is also the node's next input. `dims`: "2,H,W" (numbers and symbols; "" is rank 0). */
void rig_input(rig *r, uir_dtype dtype, const char *dims);
/* A constant as the node's next input; from_doubles converts. */
void rig_constant(rig *r, uir_dtype dtype, uint32_t rank, const int64_t *shape, const double *values);
void rig_absent(rig *r);

void rig_int(rig *r, const char *name, int64_t value);
void rig_float(rig *r, const char *name, double value);
void rig_text(rig *r, const char *name, const char *value);
void rig_ints(rig *r, const char *name, uint32_t count, const int64_t *values);
void rig_texts(rig *r, const char *name, uint32_t count, const char *const *values);

/* Adds the node and decomposes; `wanted` outputs. `domain` "" is ONNX's. */
uir_status rig_try(rig *r, const char *domain, const char *op, uint32_t wanted);
void rig_decompose(rig *r, const char *domain, const char *op,
                   uint32_t wanted); /* must succeed; verifies; runs the passes */
/* All messages of a failed decomposition in one text, for strstr. */
const char *rig_messages(rig *r);
/* How many nodes of the primitive the main graph has. */
uint32_t rig_count(const rig *r, uir_op op);

/* Inputs of the next run, in order of graph inputs. Values are converted to the dtype. */
void rig_give(rig *r, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape, const double *values);
void rig_run(rig *r);
/* Element of an output of the last run, as double. */
double rig_get(const rig *r, uint32_t output, uint64_t index);
void rig_expect_shape(const rig *r, uint32_t output, uint32_t rank, const int64_t *shape);
void rig_expect(const rig *r, uint32_t output, const double *values, uint64_t count, double tolerance);

/* A seeded stream of numbers in -1 .. 1. */
double rig_random(uint64_t *state);
void rig_fill(uint64_t *state, double *values, uint64_t count);

#endif
