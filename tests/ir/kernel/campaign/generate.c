/* See generate.h. A row kernel is grown instruction by instruction from values that are defined already. */
#include "generate_internal.h"
#include "ir/kernel/igraph.h"

uint64_t random_next(uint64_t *state) {
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint32_t random_below(uint64_t *state, uint32_t count) {
    return (uint32_t)((random_next(state) >> 32) * count >> 32);
}

/* ---- rows: values are [1, width] or [1, 1] per row ---- */
typedef struct value {
    char slice[64]; /* as an operand */
    uir_dtype dtype;
    bool full;     /* [1, width]; else [1, 1] */
    bool constant; /* may not be written */
} value;

enum { MAX_VALUES = 40 };

typedef struct row_kernel {
    generator *g;
    const char *width;  /* count of a full slice: "N", or the clipped count of a column block */
    const char *column; /* start in the columns of dram: "0" or "l*tn" */
    const char *span;   /* extent of a full buffer: "N" or "tn" */
    const char *by;     /* " x2 by l" for buffers, or "" */
    bool blocked;       /* in column blocks: no value of one element that a block made outlives it */
    value values[MAX_VALUES];
    uint32_t count;
    uir_text declarations, body;
    uint32_t buffers;
    const char *indent;
} row_kernel;

static const uir_dtype arithmetic_dtypes[] = {UIR_DTYPE_F32, UIR_DTYPE_F32, UIR_DTYPE_F32, UIR_DTYPE_I32,
                                              UIR_DTYPE_I64, UIR_DTYPE_U8,  UIR_DTYPE_I8,  UIR_DTYPE_I16,
                                              UIR_DTYPE_U32, UIR_DTYPE_F64};

static value *add_buffer(row_kernel *k, uir_dtype dtype, bool full) {
    value *v = &k->values[k->count++];
    uint32_t id = k->buffers++;
    v->dtype = dtype;
    v->full = full;
    v->constant = false;
    if (full) {
        uir_text_append_format(&k->declarations, "  ptr %%t%u : sram %s [1, %s]%s\n", id, uir_dtype_name(dtype),
                               k->span, k->by);
        snprintf(v->slice, sizeof v->slice, "%%t%u[0:1, 0:%s]", id, k->width);
    } else {
        uir_text_append_format(&k->declarations, "  ptr %%t%u : %s %s [1, 1]\n", id, chance(k->g, 50) ? "reg" : "sram",
                               uir_dtype_name(dtype));
        snprintf(v->slice, sizeof v->slice, "%%t%u[0:1, 0:1]", id);
    }
    return v;
}

/* A defined value of the dtype (NONE: any), of one element only when `single`; NULL when there is none. */
static const value *find_value(row_kernel *k, uir_dtype dtype, bool single) {
    for (int tries = 0; tries < 12 && k->count; tries++) {
        const value *v = &k->values[below(k->g, k->count)];
        if ((dtype == UIR_DTYPE_NONE || v->dtype == dtype) && !(single && v->full)) return v;
    }
    return NULL;
}

/* Where a result goes: a new buffer, or an old one of the same kind. */
static value *find_target(row_kernel *k, uir_dtype dtype, bool full) {
    for (int tries = 0; tries < 3 && k->count && chance(k->g, 40); tries++) {
        value *v = &k->values[below(k->g, k->count)];
        if (v->dtype == dtype && v->full == full && !v->constant) return v;
    }
    return k->count < MAX_VALUES ? add_buffer(k, dtype, full) : NULL;
}

static void line(row_kernel *k, const char *format, ...) UIR_PRINTF(2, 3);
static void line(row_kernel *k, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uir_text_append_format(&k->body, "%s%s\n", k->indent, text);
}

/* An instruction of the family for the dtype; transcendentals are f32's, and some f64's. */
static const uir_iop_row *find_iop(row_kernel *k, uir_iop_family family, uir_dtype dtype) {
    char class = uir_dtype_is_float(dtype) ? 'F' : uir_dtype_is_integer(dtype) ? 'I' : 'B';
    for (int tries = 0; tries < 60; tries++) {
        const uir_iop_row *row = uir_iop_get_row((uir_iop_code)below(k->g, UIR_IOP_COUNT));
        static const char *const functions[] = {
#define UIR_KERNEL_MATH(constant, name, ulp) "unary." #name,
#include "ir/kernel/interpret/kernel_math.def"
        };
        static const char *const wide[] = {
#define UIR_KERNEL_MATH_LARGE_F64(constant, name, ulp) "unary." #name,
#include "ir/kernel/interpret/kernel_math.def"
        };
        bool skip = row->family != family || !strchr(row->classes, class), is_wide = false;
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            is_wide |= dtype == UIR_DTYPE_F64 && !strcmp(row->name, wide[i]);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            skip |= dtype != UIR_DTYPE_F32 && !is_wide && !strcmp(row->name, functions[i]);
        if (!skip) return row;
    }
    return NULL;
}

static void add_unary(row_kernel *k) {
    const value *a = find_value(k, UIR_DTYPE_NONE, false);
    const uir_iop_row *row = a ? find_iop(k, UIR_IOP_FAMILY_UNARY, a->dtype) : NULL;
    if (!row) return;
    value operand = *a, *to = find_target(k, a->dtype, a->full || chance(k->g, 20));
    if (to) line(k, "%s.%s %s, %s", row->name, uir_dtype_name(operand.dtype), to->slice, operand.slice);
}

/* A second operand: a value that fits, or a number. */
static void second_operand(row_kernel *k, uir_dtype dtype, bool *full, char *out, size_t size) {
    const value *b = chance(k->g, 20) ? NULL : find_value(k, dtype, false);
    if (b) {
        *full |= b->full;
        snprintf(out, size, "%s", b->slice);
    } else if (uir_dtype_is_float(dtype)) {
        snprintf(out, size, "%s", PICK(k->g, "0.5", "-1.25", "3", "0", "1e-3", "-0.75"));
    } else if (dtype == UIR_DTYPE_BOOL) {
        snprintf(out, size, "%s", PICK(k->g, "0", "1"));
    } else {
        snprintf(out, size, "%s", PICK(k->g, "0", "1", "2", "3", "7", "100"));
    }
}

static void add_binary(row_kernel *k, uir_iop_family family) {
    const value *a = find_value(k, UIR_DTYPE_NONE, false);
    const uir_iop_row *row = a ? find_iop(k, family, a->dtype) : NULL;
    if (!row) return;
    value operand = *a;
    bool full = a->full;
    char b[80];
    second_operand(k, operand.dtype, &full, b, sizeof b);
    value *to = find_target(k, family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL : operand.dtype, full);
    if (to) line(k, "%s.%s %s, %s, %s", row->name, uir_dtype_name(operand.dtype), to->slice, operand.slice, b);
}

static void add_ternary(row_kernel *k) {
    const value *condition = chance(k->g, 60) ? find_value(k, UIR_DTYPE_BOOL, false) : NULL,
                *a = find_value(k, UIR_DTYPE_NONE, false);
    bool fma = a && uir_dtype_is_float(a->dtype) && !condition;
    if (!a || (!condition && !fma)) return;
    value operand = *a;
    bool full = operand.full || (condition && condition->full);
    char b[80], c[80], first[80];
    snprintf(first, sizeof first, "%s", condition ? condition->slice : "");
    second_operand(k, operand.dtype, &full, b, sizeof b);
    second_operand(k, operand.dtype, &full, c, sizeof c);
    value *to = find_target(k, operand.dtype, full);
    if (!to) return;
    if (fma)
        line(k, "ternary.fma.%s %s, %s, %s, %s", uir_dtype_name(operand.dtype), to->slice, operand.slice, b, c);
    else
        line(k, "ternary.select.%s %s, %s, %s, %s", uir_dtype_name(operand.dtype), to->slice, first, operand.slice, b);
}

static void add_cast(row_kernel *k) {
    static const uir_dtype targets[] = {UIR_DTYPE_F32,  UIR_DTYPE_I32, UIR_DTYPE_I8,  UIR_DTYPE_U8,  UIR_DTYPE_F16,
                                        UIR_DTYPE_BF16, UIR_DTYPE_I64, UIR_DTYPE_F64, UIR_DTYPE_BOOL};
    const value *a = find_value(k, UIR_DTYPE_NONE, false);
    uir_dtype dtype = targets[below(k->g, sizeof targets / sizeof *targets)];
    if (!a || a->dtype == dtype) return;
    value operand = *a, *to = find_target(k, dtype, operand.full);
    if (to)
        line(k, "cast.%s.%s %s, %s%s", uir_dtype_name(operand.dtype), uir_dtype_name(dtype), to->slice, operand.slice,
             chance(k->g, 30) ? " saturate" : "");
}

static bool is_half(uir_dtype dtype) {
    return dtype == UIR_DTYPE_F16 || dtype == UIR_DTYPE_BF16;
}

static void add_reduce(row_kernel *k) {
    const value *a = find_value(k, UIR_DTYPE_NONE, false);
    if (!a || !a->full || is_half(a->dtype) || a->dtype == UIR_DTYPE_BOOL) return;
    value operand = *a;
    value *old = NULL;
    for (uint32_t i = 0; i < k->count; i++)
        old = k->values[i].dtype == operand.dtype && !k->values[i].full && !k->values[i].constant ? &k->values[i] : old;
    bool accumulate = old && chance(k->g, 30);
    value *to = accumulate ? old : find_target(k, operand.dtype, false);
    if (!to) return;
    line(k, "reduce.%s.row.unit.%s %s, %s%s", PICK(k->g, "add", "max", "min", "mul", "add"),
         uir_dtype_name(operand.dtype), to->slice, operand.slice, accumulate ? " acc" : "");
}

static void add_made(row_kernel *k) {
    uir_dtype dtype = arithmetic_dtypes[below(k->g, sizeof arithmetic_dtypes / sizeof *arithmetic_dtypes)];
    value *to = find_target(k, dtype, chance(k->g, 80));
    if (!to) return;
    if (chance(k->g, 50))
        line(k, "fill.%s %s, %s", uir_dtype_name(dtype), to->slice, PICK(k->g, "0", "1", "5"));
    else
        line(k, "iota.row.%s %s, %s", uir_dtype_name(dtype), to->slice, k->column);
}

static void add_scan(row_kernel *k) {
    const value *a = find_value(k, UIR_DTYPE_NONE, false);
    if (!a || !a->full || is_half(a->dtype) || a->dtype == UIR_DTYPE_BOOL) return;
    value operand = *a, *carry = find_target(k, operand.dtype, false),
          *to = carry ? find_target(k, operand.dtype, true) : NULL;
    if (!to) return;
    bool add = chance(k->g, 60);
    line(k, "fill.%s %s, %d", uir_dtype_name(operand.dtype), carry->slice, add ? 0 : 1);
    line(k, "scan.%s.row.unit.%s %s, %s, %s%s", add ? "add" : "mul", uir_dtype_name(operand.dtype), to->slice,
         operand.slice, carry->slice, chance(k->g, 30) ? " exclusive" : "");
}

static void add_instruction(row_kernel *k) {
    switch (below(k->g, 10)) {
    case 0:
    case 1:
        add_unary(k);
        break;
    case 2:
    case 3:
    case 4:
        add_binary(k, UIR_IOP_FAMILY_BINARY);
        break;
    case 5:
        add_binary(k, UIR_IOP_FAMILY_COMPARE);
        break;
    case 6:
        add_ternary(k);
        break;
    case 7:
        add_cast(k);
        break;
    case 8:
        chance(k->g, 70) ? add_reduce(k) : add_scan(k);
        break;
    default:
        add_made(k);
        break;
    }
}

/* Halves compute nothing: their only instructions are moves and casts, so they are hidden from the others. */
static void hide_halves(row_kernel *k) {
    for (uint32_t i = 0; i < k->count;) {
        if (is_half(k->values[i].dtype)) {
            line(k, "cast.%s.f32 %%h%u[0:1, 0:%s], %s", uir_dtype_name(k->values[i].dtype), i,
                 k->values[i].full ? k->width : "1", k->values[i].slice);
            uir_text_append_format(&k->declarations, "  ptr %%h%u : sram f32 [1, %s]%s\n", i,
                                   k->values[i].full ? k->span : "1", k->values[i].full ? k->by : "");
            snprintf(k->values[i].slice, sizeof k->values[i].slice, "%%h%u[0:1, 0:%s]", i,
                     k->values[i].full ? k->width : "1");
            k->values[i].dtype = UIR_DTYPE_F32;
        }
        i++;
    }
}

static void add_inputs(row_kernel *k, uint32_t *inputs) {
    uint32_t count = 1 + below(k->g, 3);
    for (uint32_t i = 0; i < count; i++) {
        value *v = &k->values[k->count++];
        uir_dtype dtype = i == 0 ? UIR_DTYPE_F32
                                 : arithmetic_dtypes[below(k->g, sizeof arithmetic_dtypes / sizeof *arithmetic_dtypes)];
        uint32_t shape = i == 0 ? 0 : below(k->g, 3);
        v->dtype = dtype;
        v->constant = true;
        v->full = shape != 2;
        static const char *const extents[] = {"[M, N]", "[1, N]", "[M, 1]"};
        PUT(k->g, "  ptr %%x%u : dram %s %s in %u\n", *inputs, uir_dtype_name(dtype), extents[shape], *inputs);
        if (shape == 2)
            snprintf(v->slice, sizeof v->slice, "%%x%u[p*tr+r:1, 0:1]", *inputs);
        else
            snprintf(v->slice, sizeof v->slice, "%%x%u[%s, %s:%s]", *inputs, shape == 0 ? "p*tr+r:1" : "0:1", k->column,
                     k->width);
        (*inputs)++;
    }
}

static void finish_row(row_kernel *k) {
    PUT(k->g, "%s", k->declarations.data ? k->declarations.data : "");
}

static void generate_rows(generator *g) {
    row_kernel k = {.g = g, .width = "N", .column = "0", .span = "N", .by = "", .indent = "      "};
    uir_allocator allocator = g->text->allocator;
    uint32_t inputs = 0;
    uir_text_init(&k.declarations, &allocator);
    uir_text_init(&k.body, &allocator);
    PUT(g, "  dim M in 0..40, N in 0..200\n  tile tr in 1..8\n  candidate tr = %u\n", 1 + below(g, 4));
    add_inputs(&k, &inputs);
    uint32_t steps = 3 + below(g, 12);
    for (uint32_t i = 0; i < steps; i++) {
        add_instruction(&k);
        hide_halves(&k);
    }
    value last = k.values[below(g, k.count)];
    uint32_t wide = below(g, k.count);
    finish_row(&k);
    PUT(g, "  ptr %%y : dram %s [M, N] out 0\n", uir_dtype_name(last.dtype));
    PUT(g, "  ptr %%z : dram %s [M, %s] out 1\n", uir_dtype_name(k.values[wide].dtype),
        k.values[wide].full ? "N" : "1");
    PUT(g, "  phase {\n    parallel p : ceildiv(M, tr) group\n    loop r : tr when p*tr+r < M {\n%s",
        k.body.data ? k.body.data : "");
    PUT(g, "      move %%y[p*tr+r:1, 0:N], %s\n", last.slice);
    PUT(g, "      move %%z[p*tr+r:1, 0:%s], %s\n    }\n  }\n", k.values[wide].full ? "N" : "1", k.values[wide].slice);
    uir_text_deinit(&k.declarations);
    uir_text_deinit(&k.body);
}

/* Column blocks: a row reduction goes on from block to block, its result is stored after the last. */
static void generate_blocks(generator *g) {
    row_kernel k = {.g = g,
                    .width = "nb",
                    .column = "l*tn",
                    .span = "tn",
                    .by = chance(g, 50) ? " x2 by l" : "",
                    .blocked = true,
                    .indent = "        "};
    uir_allocator allocator = g->text->allocator;
    uint32_t inputs = 0;
    const char *op = PICK(g, "add", "max", "min", "mul");
    uir_text_init(&k.declarations, &allocator);
    uir_text_init(&k.body, &allocator);
    PUT(g, "  dim M in 0..20, N in 0..150\n  tile tr in 1..8, tn in 1..64\n  candidate tr = %u, tn = %u\n",
        1 + below(g, 4), 1 + below(g, 40));
    add_inputs(&k, &inputs);
    uint32_t steps = 2 + below(g, 8);
    for (uint32_t i = 0; i < steps; i++) {
        add_instruction(&k);
        hide_halves(&k);
    }
    uint32_t at = 0;
    for (uint32_t tries = 0; tries < 30; tries++) {
        at = below(g, k.count);
        if (k.values[at].full && k.values[at].dtype != UIR_DTYPE_BOOL) break;
        at = 0;
    }
    value last = k.values[at];
    finish_row(&k);
    PUT(g, "  ptr %%sum : reg %s [1, 1]\n  ptr %%y : dram %s [M, N] out 0\n  ptr %%z : dram %s [M, 1] out 1\n",
        uir_dtype_name(last.dtype), uir_dtype_name(last.dtype), uir_dtype_name(last.dtype));
    PUT(g, "  phase {\n    parallel p : ceildiv(M, tr) group\n    loop r : tr when p*tr+r < M {\n      loop l : "
           "ceildiv(N, tn) {\n        let nb = min(tn, N-l*tn)\n");
    PUT(g, "%s", k.body.data ? k.body.data : "");
    PUT(g, "        fill.%s %%sum, %s when first(l)\n", uir_dtype_name(last.dtype), op[1] == 'u' ? "1" : "0");
    PUT(g, "        reduce.%s.row.unit.%s %%sum, %s acc\n", op, uir_dtype_name(last.dtype), last.slice);
    PUT(g,
        "        move %%y[p*tr+r:1, l*tn:nb], %s\n        move %%z[p*tr+r:1, 0:1], %%sum when last(l)\n      }\n    "
        "}\n  }\n",
        last.slice);
    uir_text_deinit(&k.declarations);
    uir_text_deinit(&k.body);
}

bool generate_igraph(uint64_t seed, bool in_place, uir_text *text) {
    generator g = {seed * 0x100000001B3u + 12345, text};
    static void (*const families[])(generator *) = {
        generate_rows,      generate_rows,    generate_rows,       generate_rows,     generate_blocks,
        generate_blocks,    generate_product, generate_product,    generate_window,   generate_gather,
        generate_transpose, generate_columns, generate_two_phases, generate_layout,   generate_nested,
        generate_scalar,    generate_stencil, generate_broadcast,  generate_shift,    generate_running,
        generate_running,   generate_running, generate_in_place,   generate_in_place, generate_in_place};
    enum { FAMILIES = sizeof families / sizeof *families, IN_PLACE = 7 /* the last ones */ };
    PUT(&g, "igraph @k%llu on cpu {\n", (unsigned long long)seed);
    uint32_t family = in_place ? FAMILIES - 1 - below(&g, IN_PLACE) : below(&g, FAMILIES);
    families[family](&g);
    PUT(&g, "}\n");
    return families[family] == generate_in_place;
}
