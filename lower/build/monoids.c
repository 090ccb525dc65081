/* The monoids of reductions: identity, update by an element, combination of two states, finish. */
#include "lower/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A small language for their expressions: reverse, by calls. */
typedef struct writer {
    uir_loop_function *f;
    uir_status status;
} writer;

static uint32_t number(writer *w, uir_dtype dtype, double real, int64_t integer) {
    uint32_t id = 0;
    if (w->status == UIR_STATUS_OK) w->status = uir_loop_add_number(w->f, dtype, real, integer, &id);
    return id;
}

static uint32_t parameter(writer *w, uir_dtype dtype, uint32_t at) {
    uint32_t id = 0;
    uir_loop_expression e = {.kind = UIR_LOOP_PARAMETER, .dtype = dtype, .integer = at};
    if (w->status == UIR_STATUS_OK) w->status = uir_loop_add_expression(w->f, e, &id);
    return id;
}

static uint32_t call(writer *w, uir_op op, uir_dtype dtype, uint32_t a, uint32_t b) {
    uint32_t id = 0, arguments[2] = {a, b};
    if (w->status == UIR_STATUS_OK) w->status = uir_loop_add_call(w->f, op, dtype, arguments, 2, &id);
    return id;
}

static uint32_t test(writer *w, uir_op op, uint32_t a, uint32_t b) {
    return call(w, op, UIR_DTYPE_BOOL, a, b);
}

static uint32_t choose(writer *w, uir_dtype dtype, uint32_t condition, uint32_t a, uint32_t b) {
    uint32_t id = 0, arguments[3] = {condition, a, b};
    if (w->status == UIR_STATUS_OK) w->status = uir_loop_add_call(w->f, UIR_OP_SELECT, dtype, arguments, 3, &id);
    return id;
}

/* The least or greatest value of a dtype: nothing is below or above it. */
static uint32_t extreme(writer *w, uir_dtype dtype, bool least) {
    if (uir_dtype_is_float(dtype)) return number(w, dtype, least ? -INFINITY : INFINITY, 0);
    if (dtype == UIR_DTYPE_BOOL) return number(w, dtype, 0, least ? 0 : 1);
    return number(w, dtype, 0, least ? uir_dtype_integer_min(dtype) : (int64_t)uir_dtype_integer_max(dtype));
}

typedef struct simple_row {
    uir_op reduction, op, bool_op;
    const char *name;
    int identity; /* 0, 1: the number; -1: the least, 2: the greatest */
} simple_row;

static const simple_row simple_rows[] = {
    {UIR_OP_REDUCE_SUM, UIR_OP_ADD, UIR_OP_NONE, "sum", 0}, {UIR_OP_REDUCE_PROD, UIR_OP_MUL, UIR_OP_NONE, "prod", 1},
    {UIR_OP_REDUCE_MAX, UIR_OP_MAX, UIR_OP_OR, "max", -1},  {UIR_OP_REDUCE_MIN, UIR_OP_MIN, UIR_OP_AND, "min", 2},
    {UIR_OP_WINDOW_SUM, UIR_OP_ADD, UIR_OP_NONE, "sum", 0}, {UIR_OP_WINDOW_MAX, UIR_OP_MAX, UIR_OP_OR, "max", -1},
};

/* Half types are summed in f32 and rounded at the end. */
static uir_dtype state_dtype(uir_dtype dtype) {
    return uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) < 32 ? UIR_DTYPE_F32 : dtype;
}

static void make_simple(writer *w, const simple_row *row, uir_dtype dtype, uir_loop_monoid *m) {
    uir_dtype state = state_dtype(dtype);
    uir_op op = state == UIR_DTYPE_BOOL ? row->bool_op : row->op;
    m->commutative = true;
    m->state_count = m->element_count = m->finish_count = 1;
    m->state_dtypes[0] = m->element_dtypes[0] = state;
    m->state_names[0] = "a", m->element_names[0] = "x", m->other_names[0] = "b";
    m->identity[0] = row->identity == -1  ? extreme(w, state, true)
                     : row->identity == 2 ? extreme(w, state, false)
                                          : number(w, state, row->identity, row->identity);
    m->update[0] = call(w, op, state, parameter(w, state, 0), parameter(w, state, 1));
    m->combine[0] = call(w, op, state, parameter(w, state, 0), parameter(w, state, 1));
    m->finish[0] = parameter(w, state, 0);
    if (state != dtype && w->status == UIR_STATUS_OK)
        w->status = uir_loop_add_cast(w->f, m->finish[0], dtype, &m->finish[0]);
}

/* Does (x, j) take the place of (v, i)? A NaN is as far out as anything can be; of equal ones the first, or the last.
 */
static uint32_t takes(writer *w, uir_op beyond, uir_dtype dtype, bool last, bool ordered, uint32_t v, uint32_t i,
                      uint32_t x, uint32_t j) {
    uint32_t is_beyond = test(w, beyond, x, v);
    uint32_t is_equal = test(w, UIR_OP_EQ, x, v);
    if (uir_dtype_is_float(dtype)) {
        uint32_t x_is_nan = test(w, UIR_OP_NE, x, x), v_is_nan = test(w, UIR_OP_NE, v, v);
        uint32_t v_is_number = test(w, UIR_OP_EQ, v, v);
        is_beyond = test(w, UIR_OP_OR, is_beyond, test(w, UIR_OP_AND, x_is_nan, v_is_number));
        is_equal = test(w, UIR_OP_OR, is_equal, test(w, UIR_OP_AND, x_is_nan, v_is_nan));
    }
    if (!ordered) is_equal = test(w, UIR_OP_AND, is_equal, test(w, last ? UIR_OP_GT : UIR_OP_LT, j, i));
    if (ordered && !last) return is_beyond; /* elements come by rising index */
    return test(w, UIR_OP_OR, is_beyond, is_equal);
}

static void make_arg(writer *w, bool greatest, bool last, uir_dtype dtype, uir_loop_monoid *m) {
    uir_dtype value = dtype == UIR_DTYPE_BOOL ? UIR_DTYPE_U8 : state_dtype(dtype), index = UIR_DTYPE_I64;
    uir_op beyond = greatest ? UIR_OP_GT : UIR_OP_LT;
    m->commutative = true;
    m->state_count = m->element_count = 2;
    m->finish_count = 1;
    m->state_dtypes[0] = m->element_dtypes[0] = value;
    m->state_dtypes[1] = m->element_dtypes[1] = index;
    m->state_names[0] = "v", m->element_names[0] = "x", m->other_names[0] = "w";
    m->state_names[1] = "i", m->element_names[1] = "j", m->other_names[1] = "k";
    m->identity[0] = extreme(w, value, greatest);
    m->identity[1] = number(w, index, 0, 0);
    for (int combine = 0; combine < 2; combine++) {
        uint32_t v = parameter(w, value, 0), i = parameter(w, index, 1), x = parameter(w, value, 2),
                 j = parameter(w, index, 3);
        uint32_t condition = takes(w, beyond, value, last, false, v, i, x, j);
        uint32_t *to = combine ? m->combine : m->update;
        to[0] = choose(w, value, condition, x, v);
        to[1] = choose(w, index, condition, j, i);
    }
    m->finish[0] = parameter(w, index, 1);
}

uir_status uir_loop_get_monoid(uir_loop_function *f, uir_op op, bool last, uir_dtype dtype, uint32_t *out_monoid) {
    const simple_row *row = NULL;
    char name[64];
    for (size_t i = 0; i < sizeof simple_rows / sizeof *simple_rows; i++)
        if (simple_rows[i].reduction == op) row = &simple_rows[i];
    bool arg = op == UIR_OP_ARG_MAX || op == UIR_OP_ARG_MIN;
    if (!row && !arg) return UIR_STATUS_UNSUPPORTED;
    snprintf(name, sizeof name, "%s%s_%s", row ? row->name : uir_op_get_row(op)->name, last ? "_last" : "",
             uir_dtype_name(dtype));
    for (*out_monoid = 0; *out_monoid < f->monoids.count; ++*out_monoid)
        if (!strcmp(f->monoids.data[*out_monoid].name, name)) return UIR_STATUS_OK;
    uir_loop_monoid m = {0};
    UIR_TRY_ALLOCATE(m.name, uir_arena_copy_string(&f->arena, name, strlen(name)));
    writer w = {f, UIR_STATUS_OK};
    if (row)
        make_simple(&w, row, dtype, &m);
    else
        make_arg(&w, op == UIR_OP_ARG_MAX, last, dtype, &m);
    UIR_TRY(w.status);
    return uir_vector_push(&f->arena, &f->monoids, m);
}
