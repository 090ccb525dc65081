/* Inside the iGraph's verifier: the state that its files share.
 *
 * igraph_verify.c drives the others; igraph_verify_header.c checks the header (layouts, capacity, divisors);
 * igraph_verify_iop.c one instruction in isolation (dtypes, shapes, the device's table); igraph_verify_flow.c is the
 * dataflow analysis of defined elements, with igraph_verify_instruction.c for one instruction; igraph_verify_cover.c
 * proves that facts cover a region; igraph_verify_race.c compares accesses of different units; igraph_verify_sync.c
 * checks the syncs of a synchronised kernel. */
#ifndef UIR_IR_IGRAPH_VERIFY_H
#define UIR_IR_IGRAPH_VERIFY_H

#include "ir/kernel/verify/igraph_term.h"

#define UIR_IFACT_MAX_VARIABLES  10
#define UIR_IFACT_MAX_CONDITIONS 10
#define UIR_IFACT_MAX            96

/* For all values of `variables` in their ranges for which every condition is >= 0: each element of the box low <= x <
 * high of the pointer, if inside the extents, is defined. */
typedef struct uir_ifact {
    uint32_t id;    /* changes when the fact gets weaker */
    uint32_t birth; /* when it was first known: facts younger than an enclosing condition are qualified by it */
    uint32_t pointer;
    uint32_t variables[UIR_IFACT_MAX_VARIABLES], variable_count;
    uir_term conditions[UIR_IFACT_MAX_CONDITIONS];
    uint32_t condition_count;
    uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK];
} uir_ifact;

typedef struct uir_ifacts {
    uir_ifact *data;
    uint32_t count, capacity;
} uir_ifacts;

/* One slice of one instruction, with the assumptions at that point. */
typedef struct uir_iaccess {
    uint32_t pointer, phase, body, position, line;
    bool write;
    uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK];
    const uir_term *conditions; /* assumptions at that point */
    uint32_t condition_count;
    const uint32_t *variables; /* parallel axes, loops, indices and axes around it */
    uint32_t variable_count;
} uir_iaccess;

typedef struct uir_iverify_error {
    uint32_t line;
    const char *message;
} uir_iverify_error;

/* The unknown coordinate of a point in a range along one dim. */
typedef struct uir_ipoint {
    uir_term low, high, extent;
    uint32_t dim, variable;
} uir_ipoint;

typedef struct uir_iverifier {
    uir_igraph *g;
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uir_terms terms;
    uir_vector(uir_iverify_error) errors;
    uint32_t dropped_errors;
    uir_ifacts facts; /* the state of the analysis */
    uint32_t next_fact;
    uir_vector(uint32_t) active;       /* variables in scope: parallel axes, loops, indices */
    uir_vector(uint32_t) active_loops; /* symbols */
    uir_vector(uir_iaccess) accesses;
    uir_vector(uir_ipoint) points;
    uint32_t *previous;        /* by loop symbol: the variable of an earlier iteration */
    uint32_t phase_mark;       /* facts from this birth on are of the current phase */
    bool *index_safe;          /* by symbol: an index that is always in range */
    uint32_t base_assumptions; /* those of the header */
    uint32_t phase, body, line;
    const uir_term *guard;      /* of the innermost condition, if it is one term; else NULL */
    uint32_t guard_mark;        /* facts from this birth on were made under it */
    bool patient;               /* more cases are tried in a proof: for a kernel's outputs, once each */
    bool recording;             /* accesses are collected: the pass covers every iteration */
    bool *seen;                 /* by instruction */
    struct uir_iorder **orders; /* by body, of all phases: data of igraph_verify_sync.c */
    bool failed;
} uir_iverifier;

/* Adds a message for a line of the text, unless it has an equal one. */
void uir_iverify_report(uir_iverifier *v, uint32_t line, const char *format, ...) UIR_PRINTF(3, 4);
static inline const uir_ipointer *uir_iverify_pointer(const uir_iverifier *v, uint32_t pointer) {
    return &v->g->pointers.data[pointer];
}
static inline const uir_space *uir_iverify_space(const uir_iverifier *v, uint32_t pointer) {
    return &v->g->machine->spaces[v->g->pointers.data[pointer].space];
}
static inline bool uir_iverify_is_dram(const uir_iverifier *v, uint32_t pointer) {
    return uir_iverify_space(v, pointer)->scope == UIR_SCOPE_DEVICE;
}
/* "%x[p*tr + r, 0:N]" into the arena, for messages. */
const char *uir_iverify_slice_text(uir_iverifier *v, const uir_islice *slice);

/* ---- header (igraph_verify_header.c) ---- */
void uir_iverify_header(uir_iverifier *v);
/* ---- one instruction (igraph_verify_iop.c); `item` for its line ---- */
void uir_iverify_instruction(uir_iverifier *v, uir_iinstruction *instruction, uint32_t unit_kind, uint32_t line);
void uir_iverify_index(uir_iverifier *v, const uir_iitem *item);

/* ---- cover ---- */
void uir_iverify_add_fact(uir_iverifier *v, const uir_ifact *fact);
/* Removes facts about a region in which undefined elements were written; NULL bounds: about all of the pointer. */
void uir_iverify_kill(uir_iverifier *v, uint32_t pointer, const uir_term *low, const uir_term *high);
/* Whether every element of the box that is inside the extents is defined. */
bool uir_iverify_covered(uir_iverifier *v, uint32_t pointer, const uir_term *low, const uir_term *high);
/* The unknown coordinate, along dim, of a point in a range and inside an extent (UNKNOWN: no extent); `low` itself for
 * a range of 1. */
uir_term uir_iverify_point(uir_iverifier *v, uir_term low, uir_term high, uir_term extent, uint32_t dim);
/* A copy of a variable with its axioms, in which variables `from` are replaced by terms `to`. */
uint32_t uir_iverify_copy_variable(uir_iverifier *v, uint32_t variable, const uint32_t *from, const uir_term *to,
                                   uint32_t count);
/* Replaces quantified variables that are active by copies. */
bool uir_iverify_rename_active(uir_iverifier *v, uir_ifact *fact);
bool uir_iverify_fact_mentions(const uir_iverifier *v, const uir_ifact *fact, uint32_t variable);
uir_status uir_iverify_facts_copy(uir_iverifier *v, const uir_ifacts *from, uir_ifacts *to);
/* Drops the weakest fact, of equals the oldest. Requires at least one fact; dropping facts is safe. */
void uir_iverify_forget(const uir_iverifier *v, uir_ifacts *facts);
uir_status uir_iverify_facts_push(uir_iverifier *v, uir_ifacts *facts, const uir_ifact *fact);

/* ---- walk ---- */
void uir_iverify_phases(uir_iverifier *v);
/* igraph_verify_instruction.c: analyses one instruction, one index. */
void uir_iverify_walk_instruction(uir_iverifier *v, const uir_iitem *item);
void uir_iverify_walk_index(uir_iverifier *v, const uir_iitem *item);
/* The trip count of a loop as a term. */
uir_term uir_iverify_loop_trips(uir_iverifier *v, uint32_t symbol);
/* Terms that are >= 0 if the guard holds; false if part of it has no such terms (the rest is in `terms`). */
bool uir_iverify_guard_terms(uir_iverifier *v, const uir_iguard *guard, uir_term *terms, uint32_t *out_count);

/* ---- races between units, syncs ---- */
/* Whether a parallel axis counts the units of a group. Without an axis of groups every index is a group of its own. */
bool uir_iverify_is_unit_axis(const uir_iphase *phase, uint32_t axis);
void uir_iverify_races(uir_iverifier *v);
void uir_iverify_syncs(uir_iverifier *v);
/* Whether the units of a group have a barrier between two instructions of a body. */
bool uir_iverify_units_meet(uir_iverifier *v, uint32_t phase, uint32_t body, uint32_t a, uint32_t b);
/* Whether different values of the slice's axes address different elements. */
bool uir_iverify_window_injective(uir_iverifier *v, const uir_islice *slice);

#endif
