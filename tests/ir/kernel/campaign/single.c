/* See single.h. */
#include "single.h"

#include <stdio.h>
#include <string.h>

/* ---- the list ---- */
static bool is_legal(const uir_machine *machine, const uir_iop_row *row, uir_dtype dtype, uir_dtype other) {
    uir_dtype_class class = uir_dtype_get_class(dtype);
    char letter = class == UIR_DTYPE_CLASS_BOOL ? 'B' : uir_dtype_is_float(dtype) ? 'F' : 'I';
    return strchr(row->classes, letter) && uir_machine_find_legal(machine, row->name, dtype, other, 0, 1, 0, 0) >= 0;
}

typedef struct list {
    single *out;
    uint32_t most, count;
} list;

static void push(list *l, single s) {
    if (l->count < l->most) l->out[l->count] = s;
    l->count++;
}

/* The pairs and triples of dtypes. */
static void list_others(list *l, const uir_machine *machine, const uir_iop_row *row, single s) {
    for (int b = 1; b < 64; b++) {
        if (!uir_dtype_is_valid(b) || !is_legal(machine, row, s.dtype, (uir_dtype)b)) continue;
        s.dtype_b = (uir_dtype)b;
        for (int c = 1; c < 64 && row->family == UIR_IOP_FAMILY_MMA; c++) {
            if (!uir_dtype_is_valid(c) || !is_legal(machine, row, s.dtype, (uir_dtype)c)) continue;
            s.dtype_c = (uir_dtype)c;
            push(l, s);
        }
        bool bits = s.code == UIR_IOP_BITS;
        if (bits && uir_dtype_bits(s.dtype) != uir_dtype_bits(s.dtype_b)) continue;
        for (int saturate = 0; saturate < 2 - bits && row->family == UIR_IOP_FAMILY_CAST && s.dtype != s.dtype_b;
             saturate++) {
            s.saturate = saturate;
            push(l, s);
        }
    }
}

uint32_t single_list(const uir_machine *machine, single *out, uint32_t most) {
    list l = {out, most, 0};
    for (uint32_t code = 0; code < UIR_IOP_COUNT; code++) {
        const uir_iop_row *row = uir_iop_get_row((uir_iop_code)code);
        for (int d = 1; d < 64 && row->family != UIR_IOP_FAMILY_SYNC; d++) {
            single s = {.code = (uir_iop_code)code, .dtype = (uir_dtype)d};
            if (!uir_dtype_is_valid(d)) continue;
            if (row->family == UIR_IOP_FAMILY_CAST || row->family == UIR_IOP_FAMILY_MMA) {
                list_others(&l, machine, row, s);
                continue;
            }
            if (!is_legal(machine, row, s.dtype, UIR_DTYPE_NONE)) continue;
            bool both = row->family == UIR_IOP_FAMILY_IOTA || row->family == UIR_IOP_FAMILY_BROADCAST ||
                        row->family == UIR_IOP_FAMILY_REDUCE;
            bool reduces = row->family == UIR_IOP_FAMILY_REDUCE, scans = row->family == UIR_IOP_FAMILY_SCAN;
            for (int axis = both || scans ? UIR_IAXIS_ROW : UIR_IAXIS_NONE; axis <= (both    ? (int)UIR_IAXIS_COL
                                                                                     : scans ? (int)UIR_IAXIS_ROW
                                                                                             : (int)UIR_IAXIS_NONE);
                 axis++) {
                for (int option = 0; option <= (reduces || scans); option++) {
                    s.axis = (uir_iaxis)axis;
                    s.accumulate = reduces && option;
                    s.exclusive = scans && option;
                    push(&l, s);
                }
            }
        }
    }
    return l.count;
}

static void mnemonic(const single *s, char *buffer, size_t size) {
    const uir_iop_row *row = uir_iop_get_row(s->code);
    const char *scope = row->family == UIR_IOP_FAMILY_BROADCAST || row->family == UIR_IOP_FAMILY_REDUCE ||
                                row->family == UIR_IOP_FAMILY_SCAN
                            ? ".unit"
                            : "";
    size_t used = (size_t)snprintf(buffer, size, "%s%s%s.%s", row->name,
                                   s->axis == UIR_IAXIS_ROW   ? ".row"
                                   : s->axis == UIR_IAXIS_COL ? ".col"
                                                              : "",
                                   scope, uir_dtype_name(s->dtype));
    if (s->dtype_b && used < size)
        used += (size_t)snprintf(buffer + used, size - used, ".%s", uir_dtype_name(s->dtype_b));
    if (s->dtype_c && used < size) snprintf(buffer + used, size - used, ".%s", uir_dtype_name(s->dtype_c));
}

static const char *options(const single *s) {
    return s->accumulate ? " acc" : s->exclusive ? " exclusive" : s->saturate ? " saturate" : "";
}

void single_describe(const single *s, char *buffer, size_t size) {
    char name[80];
    mnemonic(s, name, sizeof name);
    snprintf(buffer, size, "%s%s", name, options(s));
}

/* ---- text ---- */
void single_begin(single_kernel *k, const uir_allocator *allocator) {
    memset(k, 0, sizeof *k);
    uir_text_init(&k->pointers, allocator);
    uir_text_init(&k->body, allocator);
}

static uint32_t add_input(single_kernel *k, uir_dtype dtype, const char *extents) {
    uir_text_append_format(&k->pointers, "  ptr %%x%u : dram %s %s in %u\n", k->inputs, uir_dtype_name(dtype), extents,
                           k->inputs);
    k->pointer_count++;
    return k->inputs++;
}

static uint32_t add_output(single_kernel *k, uir_dtype dtype, const char *extents) {
    uir_text_append_format(&k->pointers, "  ptr %%y%u : dram %s %s out %u\n", k->outputs, uir_dtype_name(dtype),
                           extents, k->outputs);
    k->pointer_count++;
    return k->outputs++;
}

static void add_local(single_kernel *k, uint32_t id, uir_dtype dtype, const char *extents) {
    uir_text_append_format(&k->pointers, "  ptr %%t%u : sram %s %s\n", id, uir_dtype_name(dtype), extents);
}

#define LINE(k, ...) (uir_text_append_string(&(k)->body, "    "), uir_text_append_format(&(k)->body, __VA_ARGS__))

/* A number that every dtype has. */
static const char *number(uir_dtype dtype, uint32_t which) {
    static const char *const numbers[] = {"3", "7", "1", "2"};
    return uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_BOOL ? which % 2 ? "1" : "0"
           : uir_dtype_is_float(dtype) && which % 3 == 0      ? "-0.75"
                                                              : numbers[which % 4];
}

static bool add_elementwise(single_kernel *k, const single *s, single_form form, const char *name) {
    const uir_iop_row *row = uir_iop_get_row(s->code);
    bool compares = row->family == UIR_IOP_FAMILY_COMPARE, casts = row->family == UIR_IOP_FAMILY_CAST;
    bool numbers = row->family == UIR_IOP_FAMILY_BINARY || compares || row->family == UIR_IOP_FAMILY_TERNARY;
    uir_dtype result = compares ? UIR_DTYPE_BOOL : casts ? s->dtype_b : s->dtype;
    uir_dtype first = uir_iop_operand_dtype(s->code, s->dtype, 0);
    char operands[3][40] = {"", "", ""};
    if (form == SINGLE_IN_PLACE && (first != result || row->operands == 0)) return false;
    if ((form == SINGLE_LAST || form == SINGLE_FIRST) && !numbers) return false;
    if (form == SINGLE_BROADCAST && row->operands == 0) return false;
    for (uint32_t i = 0; i < row->operands; i++) {
        uir_dtype dtype = i == 0 ? first : s->dtype;
        if ((form == SINGLE_FIRST && i == 0) || (form == SINGLE_LAST && i + 1 == row->operands))
            snprintf(operands[i], sizeof operands[i], "%s", number(dtype, s->code + i));
        else
            snprintf(operands[i], sizeof operands[i], "%%x%u",
                     add_input(k, dtype, form == SINGLE_BROADCAST && i + 1 == row->operands ? "[M, 1]" : "[M, N]"));
    }
    uint32_t y = add_output(k, result, "[M, N]");
    if (form == SINGLE_IN_PLACE) {
        add_local(k, y, result, "[M, N]");
        LINE(k, "move %%t%u, %s\n", y, operands[0]);
        LINE(k, "%s %%t%u, %%t%u", name, y, y);
    } else {
        LINE(k, "%s %%y%u", name, y);
    }
    for (uint32_t i = form == SINGLE_IN_PLACE; i < row->operands; i++)
        uir_text_append_format(&k->body, ", %s", operands[i]);
    if (row->family == UIR_IOP_FAMILY_FILL) uir_text_append_format(&k->body, ", %s", number(s->dtype, 1));
    if (row->family == UIR_IOP_FAMILY_IOTA) uir_text_append_string(&k->body, ", N - 5");
    uir_text_append_format(&k->body, "%s\n", options(s));
    if (form == SINGLE_IN_PLACE) LINE(k, "move %%y%u, %%t%u\n", y, y);
    return true;
}

static void add_reduce(single_kernel *k, const single *s, const char *name) {
    const char *small = s->axis == UIR_IAXIS_ROW ? "[M, 1]" : "[1, N]";
    uint32_t x = add_input(k, s->dtype, "[M, N]"), y = add_output(k, s->dtype, small);
    add_local(k, y, s->dtype, small);
    if (s->accumulate) LINE(k, "move %%t%u, %%x%u\n", y, add_input(k, s->dtype, small));
    LINE(k, "%s %%t%u, %%x%u%s\n", name, y, x, options(s));
    LINE(k, "move %%y%u, %%t%u\n", y, y);
}

static void add_scan(single_kernel *k, const single *s, single_form form, const char *name) {
    uint32_t x = add_input(k, s->dtype, "[M, N]"), start = add_input(k, s->dtype, "[M, 1]"),
             y = add_output(k, s->dtype, "[M, N]"), end = add_output(k, s->dtype, "[M, 1]");
    add_local(k, end, s->dtype, "[M, 1]");
    LINE(k, "move %%t%u, %%x%u\n", end, start);
    if (form == SINGLE_IN_PLACE) {
        add_local(k, y, s->dtype, "[M, N]");
        LINE(k, "move %%t%u, %%x%u\n", y, x);
        LINE(k, "%s %%t%u, %%t%u, %%t%u%s\n", name, y, y, end, options(s));
        LINE(k, "move %%y%u, %%t%u\n", y, y);
    } else {
        LINE(k, "%s %%y%u, %%x%u, %%t%u%s\n", name, y, x, end, options(s));
    }
    LINE(k, "move %%y%u, %%t%u\n", end, end);
}

static void add_mma(single_kernel *k, const single *s, const char *name) {
    uint32_t a = add_input(k, s->dtype_b, "[M, K]"), b = add_input(k, s->dtype_c, "[K, N]"),
             c = add_input(k, s->dtype, "[M, N]"), y = add_output(k, s->dtype, "[M, N]");
    add_local(k, y, s->dtype, "[M, N]");
    LINE(k, "move %%t%u, %%x%u\n", y, c);
    LINE(k, "%s %%t%u, %%x%u, %%x%u\n", name, y, a, b);
    LINE(k, "move %%y%u, %%t%u\n", y, y);
}

bool single_add(single_kernel *k, const single *s, single_form form) {
    char name[80];
    uir_iop_family family = uir_iop_get_row(s->code)->family;
    mnemonic(s, name, sizeof name);
    switch (family) {
    case UIR_IOP_FAMILY_REDUCE:
    case UIR_IOP_FAMILY_MMA:
        if (form != SINGLE_PLAIN) return false;
        family == UIR_IOP_FAMILY_MMA ? add_mma(k, s, name) : add_reduce(k, s, name);
        return true;
    case UIR_IOP_FAMILY_SCAN:
        if (form != SINGLE_PLAIN && form != SINGLE_IN_PLACE) return false;
        add_scan(k, s, form, name);
        return true;
    case UIR_IOP_FAMILY_BROADCAST: {
        if (form != SINGLE_PLAIN) return false;
        uint32_t x = add_input(k, s->dtype, s->axis == UIR_IAXIS_ROW ? "[M, 1]" : "[1, N]"),
                 y = add_output(k, s->dtype, "[M, N]");
        LINE(k, "%s %%y%u, %%x%u\n", name, y, x);
        return true;
    }
    default:
        return add_elementwise(k, s, form, name);
    }
}

void single_end(single_kernel *k, const char *name, uint32_t most_rows, uint32_t most_columns, uir_text *text) {
    uir_text_append_format(text, "igraph @%s on cpu {\n  dim M in 0..%u, N in 0..%u, K in 0..16\n", name, most_rows,
                           most_columns);
    uir_text_append(text, k->pointers.data, k->pointers.length);
    uir_text_append_string(text, "  phase {\n");
    uir_text_append(text, k->body.data, k->body.length);
    uir_text_append_string(text, "  }\n}\n");
    uir_text_deinit(&k->pointers);
    uir_text_deinit(&k->body);
}
