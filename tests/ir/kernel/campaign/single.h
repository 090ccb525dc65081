/* Kernels of single instructions: every instruction that a device's table allows, for every dtype, axis and option.
 *
 * In: a device. Out: the list, and the text of kernels that execute entries of it: alone, or many in one kernel. So
 * that no instruction goes unexercised, whatever the random kernels happen to draw. */
#ifndef UIR_TESTS_IGRAPH_SINGLE_H
#define UIR_TESTS_IGRAPH_SINGLE_H

#include "base/text.h"
#include "ir/kernel/igraph.h"

typedef struct single {
    uir_iop_code code;
    uir_dtype dtype, dtype_b, dtype_c; /* CAST: dtype_b is to; MMA: of c, a, b */
    uir_iaxis axis;
    bool accumulate, exclusive, saturate;
} single;

/* How the operands are given. An instruction has only the forms that make sense for it. */
typedef enum single_form {
    SINGLE_PLAIN,
    SINGLE_IN_PLACE,  /* the result is the first operand's slice */
    SINGLE_LAST,      /* the last operand is a number */
    SINGLE_FIRST,     /* the first operand is a number */
    SINGLE_BROADCAST, /* the last operand has one column */
    SINGLE_FORM_COUNT
} single_form;

/* Writes up to `most` entries and returns how many there are. */
uint32_t single_list(const uir_machine *machine, single *out, uint32_t most);

/* A kernel under construction: dims M, N and K, data [M, N]; inputs and outputs are numbered as they are added. */
typedef struct single_kernel {
    uir_text pointers, body;
    uint32_t inputs, outputs, pointer_count;
} single_kernel;

void single_begin(single_kernel *kernel, const uir_allocator *allocator);
/* False, and nothing added, when the instruction has no such form. */
bool single_add(single_kernel *kernel, const single *s, single_form form);
/* Appends the whole text and frees the parts. `most`: the bounds of M and N. */
void single_end(single_kernel *kernel, const char *name, uint32_t most_rows, uint32_t most_columns, uir_text *text);

/* "reduce.add.col.unit.f32 acc" */
void single_describe(const single *s, char *buffer, size_t size);

#endif
