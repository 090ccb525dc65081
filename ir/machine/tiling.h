/* The tiling function of a kernel: candidates for the sizes of its tiles, each with a guard and a cost. The loop AST
 * and the iGraph both carry it; docs/igraph.md defines the text. */
#ifndef UIR_IR_TILING_H
#define UIR_IR_TILING_H

#include "base/dims/dim.h"
#include "ir/machine/iops.h"

/* A guard: a conjunction of atoms. */
typedef struct uir_iatom {
    uir_iatom_kind kind;
    bool negated;            /* FIRST, LAST */
    uir_condition condition; /* RELATION */
    uint32_t loop;           /* FIRST, LAST: symbol index of the loop */
} uir_iatom;
typedef struct uir_iguard {
    const uir_iatom *atoms;
    uint32_t count; /* 0: always */
} uir_iguard;

/* A row of the tiling function: candidate tm = 96, tn = 64 when M >= 96 cost expr units expr. */
typedef struct uir_icandidate {
    uir_dim *tiles; /* per TILE symbol in declaration order */
    uir_iguard guard;
    uir_dim cost;  /* of a unit of work; none: 0 */
    uir_dim units; /* of work, which threads share; none: 1 */
    uint32_t line; /* of the source text, 0 when built */
} uir_icandidate;

#endif
