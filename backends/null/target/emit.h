/* The emitter's state and what its two files share. Private to this folder. */
#ifndef UIR_BACKENDS_NULL_TARGET_EMIT_H
#define UIR_BACKENDS_NULL_TARGET_EMIT_H

#include "backends/null/target/null.h"
#include "backends/source/source.h"

typedef struct emitter {
    uir_c_writer c;
    const char **pointers; /* C name of each pointer */
    uint32_t lists, freed; /* of addresses: made so far, and freed */
} emitter;

/* emit.c */
const char *uir_null_number(emitter *e, double value);

/* operand.c: a slice as an operand of machine.h. Where no strides reach its elements, lines before the instruction make
 * a list of their addresses. `inside`: it is proved to lie inside its pointer's extents. */
const char *uir_null_operand(emitter *e, const uir_islice *slice, bool inside);

#endif
