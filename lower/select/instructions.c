/* Expressions of a block as instructions over slices. */
#include "lower/select/kernel.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void uir_kernel_begin_block(uir_kernel *k) {
    k->values.count = 0;
    k->instructions.count = 0;
    k->memo = uir_arena_allocate_array(k->arena, k->f->expressions.count + 1, sizeof *k->memo);
    if (!k->memo && k->status == UIR_STATUS_OK) k->status = UIR_STATUS_OUT_OF_MEMORY;
}

uint32_t uir_kernel_add_value(uir_kernel *k, uir_kernel_value value) {
    if (k->status != UIR_STATUS_OK) return 0;
    k->status = uir_vector_push(k->arena, &k->values, value);
    return k->values.count - 1;
}

/* ---- slices ---- */
typedef struct slice_dim {
    uir_dim base;
    uint32_t lane; /* NONE: one element */
    int64_t coefficient;
} slice_dim;

/* Aligned at their ends, every dim is its lane's or of one element. */
static bool is_box(const uir_kernel *k, const slice_dim *dims, uint32_t rank) {
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d].lane == UIR_LOWER_NONE) continue;
        if (dims[d].coefficient != 1 || rank - d != k->lane_count - dims[d].lane) return false;
    }
    return true;
}

static void make_box(uir_kernel *k, uir_islice *slice, const slice_dim *dims, uint32_t rank) {
    slice->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        slice->starts[d] = dims[d].base;
        slice->counts[d] = dims[d].lane == UIR_LOWER_NONE ? uir_dim_const(k->dims, 1) : k->lanes[dims[d].lane].count;
    }
}

/* An axis at the end; `joined` to the dim before it. */
static void add_axis(uir_kernel *k, uir_islice *slice, uir_symbol symbol, uir_dim extent, bool joined) {
    if (slice->axis_count == UIR_IGRAPH_MAX_RANK || (!joined && slice->rank == UIR_IGRAPH_MAX_RANK)) {
        uir_kernel_refuse(k, "a slice has more than %d axes", UIR_IGRAPH_MAX_RANK);
        return;
    }
    if (!joined) slice->counts[slice->rank++] = uir_dim_const(k->dims, 1);
    uir_dim *count = &slice->counts[slice->rank - 1];
    slice->axes[slice->axis_count++] = (uir_islice_axis){symbol.id, extent, slice->rank - 1};
    *count = uir_dim_mul(k->dims, *count, extent);
    if (!count->id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
}

/* Coordinates over axes of the slice's own: permuted, strided, several lanes in one dim. */
static void make_window(uir_kernel *k, uir_islice *slice, const uir_dim *coordinates, uint32_t rank, uint32_t lanes) {
    uir_symbol symbols[UIR_KERNEL_MAX_LANES];
    uir_dim extents[UIR_KERNEL_MAX_LANES], one = uir_dim_const(k->dims, 1);
    uir_dim_replacement replacements[UIR_KERNEL_MAX_LANES];
    uint32_t first = 0;
    slice->window = true;
    slice->axes = uir_arena_allocate_array(k->arena, UIR_IGRAPH_MAX_RANK, sizeof *slice->axes);
    if (!slice->axes) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return;
    }
    while (!k->row_lanes && first < k->lane_count && !(lanes >> first & 1)) first++;
    for (uint32_t l = first; l < k->lane_count; l++) {
        extents[l] = lanes >> l & 1 ? k->lanes[l].count : one;
        symbols[l] = uir_kernel_new_symbol(k, "u", UIR_ISYMBOL_AXIS, extents[l]);
        if (k->status != UIR_STATUS_OK) return;
        replacements[l - first] = (uir_dim_replacement){k->lanes[l].symbol, uir_dim_symbol(k->dims, symbols[l])};
    }
    for (uint32_t d = 0; d < rank; d++) {
        slice->starts[d] = uir_dim_replace(k->dims, coordinates[d], replacements, k->lane_count - first);
        if (!slice->starts[d].id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    }
    if (k->lane_count - first < 2) /* a row of one line, as boxes are: what reduces a row keeps its dims */
        add_axis(k, slice, uir_kernel_new_symbol(k, "u", UIR_ISYMBOL_AXIS, one), one, false);
    for (uint32_t l = first; l < k->lane_count; l++)
        add_axis(k, slice, symbols[l], extents[l], k->row_lanes && l != 0 && l != k->row_lanes);
}

const uir_islice *uir_kernel_slice(uir_kernel *k, const uir_loop_access *access, bool has_fill, double fill,
                                   uint32_t *out_lanes) {
    static const uir_islice none;
    const uir_kernel_pointer *p = &k->pointers[access->tensor];
    slice_dim dims[UIR_LOOP_MAX_RANK];
    uir_dim coordinates[UIR_LOOP_MAX_RANK];
    bool simple = true;
    *out_lanes = 0;
    if (k->status != UIR_STATUS_OK) return &none;
    k->pointers[access->tensor].used = true;
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t coefficients[UIR_KERNEL_MAX_LANES];
        dims[d] = (slice_dim){uir_dim_const(k->dims, 0), UIR_LOWER_NONE, 0};
        coordinates[d] = dims[d].base;
        if (p->dims[d] < 0) continue;
        coordinates[d] = uir_kernel_substitute(k, access->indices[p->dims[d]]);
        if (k->status != UIR_STATUS_OK) return &none;
        if (!uir_kernel_split_lanes(k, coordinates[d], &dims[d].base, coefficients)) {
            uir_kernel_refuse(k, "an index of '%s' is not linear in the vectorised loops",
                              k->f->tensors.data[access->tensor].name);
            return &none;
        }
        for (uint32_t l = 0; l < k->lane_count; l++) {
            if (!coefficients[l]) continue;
            simple = simple && dims[d].lane == UIR_LOWER_NONE && !(*out_lanes >> l & 1);
            dims[d].lane = l;
            dims[d].coefficient = coefficients[l];
            *out_lanes |= 1u << l;
        }
    }
    uir_islice *slice = uir_arena_allocate(k->arena, sizeof *slice);
    if (!slice) {
        uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
        return &none;
    }
    *slice = (uir_islice){.pointer = access->tensor, .has_fill = has_fill, .fill = has_fill ? fill : 0};
    if (simple && (!k->row_lanes || k->lane_count == 2) && is_box(k, dims, p->rank))
        make_box(k, slice, dims, p->rank);
    else
        make_window(k, slice, coordinates, p->rank, *out_lanes);
    return slice;
}

/* ---- values ---- */
static uint32_t kernel_number(uir_kernel *k, uir_dtype dtype, double number) {
    for (uint32_t i = 0; i < k->values.count; i++) {
        const uir_kernel_value *v = &k->values.data[i];
        if (v->kind == UIR_KERNEL_NUMBER && v->dtype == dtype && !memcmp(&v->number, &number, sizeof number)) return i;
    }
    return uir_kernel_add_value(k, (uir_kernel_value){.kind = UIR_KERNEL_NUMBER, .dtype = dtype, .number = number});
}

/* Boxes of the same place; windows have axes of their own. */
static bool same_slice(const uir_islice *a, const uir_islice *b) {
    if (a == b) return true;
    if (a->window || b->window || a->pointer != b->pointer || a->has_fill != b->has_fill) return false;
    if (a->rank != b->rank || memcmp(&a->fill, &b->fill, sizeof a->fill)) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!uir_dim_equal(a->starts[d], b->starts[d]) || !uir_dim_equal(a->counts[d], b->counts[d])) return false;
    return true;
}

uint32_t uir_kernel_slice_value(uir_kernel *k, uir_dtype dtype, uint32_t lanes, const uir_islice *slice) {
    for (uint32_t i = 0; i < k->values.count; i++)
        if (k->values.data[i].kind == UIR_KERNEL_SLICE && same_slice(k->values.data[i].slice, slice)) return i;
    return uir_kernel_add_value(
        k, (uir_kernel_value){.kind = UIR_KERNEL_SLICE, .dtype = dtype, .lanes = lanes, .slice = slice});
}

void uir_kernel_add_instruction(uir_kernel *k, const uir_kernel_instruction *instruction) {
    if (k->status != UIR_STATUS_OK) return;
    for (uint32_t i = 0; i < instruction->operand_count; i++) k->values.data[instruction->operands[i]].uses++;
    k->status = uir_vector_push(k->arena, &k->instructions, *instruction);
}

static bool same_operation(const uir_kernel_operation *a, const uir_kernel_operation *b) {
    return a->code == b->code && a->dtype == b->dtype && a->dtype_b == b->dtype_b && a->dtype_c == b->dtype_c &&
           a->axis == b->axis && a->accumulate == b->accumulate && a->saturate == b->saturate &&
           uir_dim_equal(a->start, b->start);
}

uint32_t uir_kernel_instruct(uir_kernel *k, const uir_kernel_operation *operation, uir_dtype dtype, uint32_t lanes,
                             const uint32_t *operands, uint32_t count) {
    if (k->status != UIR_STATUS_OK) return 0;
    for (uint32_t i = 0; i < k->instructions.count; i++) {
        const uir_kernel_instruction *other = &k->instructions.data[i];
        if (other->result == UIR_LOWER_NONE || !same_operation(&other->operation, operation) ||
            other->operand_count != count || (count && memcmp(other->operands, operands, count * sizeof *operands)) ||
            k->values.data[other->result].lanes != lanes)
            continue;
        return other->result;
    }
    uir_kernel_instruction instruction = {.operation = *operation, .operand_count = count};
    for (uint32_t i = 0; i < count; i++) instruction.operands[i] = operands[i];
    instruction.result =
        uir_kernel_add_value(k, (uir_kernel_value){.kind = UIR_KERNEL_RESULT, .dtype = dtype, .lanes = lanes});
    uir_kernel_add_instruction(k, &instruction);
    return instruction.result;
}

void uir_kernel_instruct_to(uir_kernel *k, const uir_kernel_operation *operation, const uir_islice *target,
                            uint32_t lanes, const uint32_t *operands, uint32_t count) {
    uir_kernel_instruction instruction = {.operation = *operation,
                                          .result = UIR_LOWER_NONE,
                                          .target = target,
                                          .target_lanes = lanes,
                                          .operand_count = count};
    if (k->status != UIR_STATUS_OK) return;
    for (uint32_t i = 0; i < count; i++) instruction.operands[i] = operands[i];
    uir_kernel_add_instruction(k, &instruction);
}

uint32_t uir_kernel_materialise(uir_kernel *k, uint32_t value, uint32_t lanes) {
    if (k->status != UIR_STATUS_OK) return 0;
    uir_kernel_value v = k->values.data[value];
    if (v.kind != UIR_KERNEL_NUMBER && v.lanes == lanes) return value;
    uir_kernel_operation copy = {v.kind == UIR_KERNEL_NUMBER ? UIR_IOP_FILL : UIR_IOP_MOVE, .dtype = v.dtype};
    return uir_kernel_instruct(k, &copy, v.dtype, lanes, &value, 1);
}

/* ---- primitives ---- */
typedef struct instruction_row {
    uir_op op;
    uir_iop_code code;
} instruction_row;

static const instruction_row instruction_rows[] = {
#define UIR_LOWER_INSTRUCTION(op, instruction) {UIR_OP_##op, UIR_IOP_##instruction},
#include "lower/select/elementwise.def"
};

enum { OF_ANY, OF_FLOATS, OF_INTEGERS, OF_DOUBLES };
static const struct {
    uir_op op;
    int of;
    const char *text;
} expansion_rows[] = {
#define UIR_LOWER_EXPANSION(op, text)         {UIR_OP_##op, OF_ANY, text},
#define UIR_LOWER_FLOAT_EXPANSION(op, text)   {UIR_OP_##op, OF_FLOATS, text},
#define UIR_LOWER_INTEGER_EXPANSION(op, text) {UIR_OP_##op, OF_INTEGERS, text},
#define UIR_LOWER_DOUBLE_EXPANSION(op, text)  {UIR_OP_##op, OF_DOUBLES, text},
#include "lower/select/elementwise.def"
};

/* What stands for an instruction that the device lacks. */
static const struct {
    uir_op op;
    const char *text;
} substitute_rows[] = {
#define UIR_LOWER_SUBSTITUTE(op, text) {UIR_OP_##op, text},
#include "lower/select/elementwise.def"
};

static const char *find_substitute(uir_op op) {
    for (size_t i = 0; i < sizeof substitute_rows / sizeof *substitute_rows; i++)
        if (substitute_rows[i].op == op) return substitute_rows[i].text;
    return NULL;
}

/* Does some unit of the kind at work have the instruction, wherever its operands lie? `other`: the dtype cast to. */
static bool has_instruction_to(const uir_kernel *k, uir_iop_code code, uir_dtype dtype, uir_dtype other) {
    for (uint32_t i = 0; i < k->machine->legal_count; i++) {
        const uir_legal_row *row = &k->machine->legal[i];
        uint32_t others = row->dtypes_other ? row->dtypes_other : row->dtypes;
        if (uir_legal_name_matches(row->iop, uir_iop_get_row(code)->name) && (row->dtypes >> dtype & 1) &&
            (other == UIR_DTYPE_NONE || others >> other & 1) && (row->unit_kinds >> k->unit_kind & 1))
            return true;
    }
    return false;
}

static bool has_instruction(const uir_kernel *k, uir_iop_code code, uir_dtype dtype) {
    return has_instruction_to(k, code, dtype, UIR_DTYPE_NONE);
}

static bool is_half(uir_dtype dtype) {
    return uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) < 32;
}

/* A float of a byte: only f32 is cast to it and from it. */
static bool is_small(uir_dtype dtype) {
    return uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) == 8;
}

/* Whether a signed integer dtype represents every value of another integer dtype. */
static bool holds_integers(uir_dtype way, uir_dtype from) {
    uint32_t bits = uir_dtype_bits(from), room = uir_dtype_bits(way);
    return uir_dtype_integer_min(from) < 0 ? bits <= room : bits < room;
}

/* The dtype that stands between the two of a cast that the device lacks; NONE: the device has the cast, or there is no
 * such dtype. It represents every value of `from`; an integer may also wrap in between if the result keeps no more of
 * its bits. A bool asks for all of them. */
static uir_dtype find_between(const uir_kernel *k, uir_dtype from, uir_dtype to) {
    static const uir_dtype ways[] = {UIR_DTYPE_F32, UIR_DTYPE_I32, UIR_DTYPE_F16, UIR_DTYPE_I64};
    if (has_instruction_to(k, UIR_IOP_CAST, from, to)) return UIR_DTYPE_NONE;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uir_dtype way = ways[i];
        uint32_t bits = uir_dtype_bits(from), digits = way == UIR_DTYPE_F32 ? 24 : way == UIR_DTYPE_F16 ? 11 : 0;
        bool whole = !uir_dtype_is_float(from);
        bool wraps = uir_dtype_is_integer(to) && uir_dtype_bits(to) <= uir_dtype_bits(way);
        bool holds = !digits ? whole && (wraps || holds_integers(way, from))
                     : whole ? bits <= digits
                             : bits < uir_dtype_bits(way);
        if (way == from || way == to || !holds) continue;
        if (has_instruction_to(k, UIR_IOP_CAST, from, way) && has_instruction_to(k, UIR_IOP_CAST, way, to)) return way;
    }
    return UIR_DTYPE_NONE;
}

/* Small integers are widened wherever rows of them are read, which costs a machine no more than reading them: so that
 * they go together with what works on all the rows. */
static uint32_t lanes_of_cast(const uir_kernel *k, const uir_kernel_value *v, uir_dtype to) {
    bool widens = !uir_dtype_is_float(v->dtype) && !uir_dtype_is_float(to) && uir_dtype_bits(v->dtype) >= 8 &&
                  uir_dtype_bits(v->dtype) < uir_dtype_bits(to) && uir_dtype_bits(to) == 32;
    if (!widens || v->kind != UIR_KERNEL_SLICE || !k->lane_count || !(v->lanes >> (k->lane_count - 1) & 1))
        return v->lanes;
    return (1u << k->lane_count) - 1;
}

static uint32_t cast_to(uir_kernel *k, uint32_t value, uir_dtype to, bool overflows) {
    if (k->status != UIR_STATUS_OK) return 0;
    uir_kernel_value v = k->values.data[value];
    if (v.dtype == to) return value;
    if ((is_small(v.dtype) && to != UIR_DTYPE_F32) || (is_small(to) && v.dtype != UIR_DTYPE_F32)) {
        /* By way of f32, which has every value of halves and bytes. */
        if (is_small(to) && uir_dtype_bits(v.dtype) > 16) {
            uir_kernel_refuse(k, "%s to %s would round twice", uir_dtype_name(v.dtype), uir_dtype_name(to));
            return 0;
        }
        return cast_to(k, cast_to(k, value, UIR_DTYPE_F32, false), to, overflows);
    }
    if (v.kind == UIR_KERNEL_NUMBER && uir_dtype_is_float(to) && !is_half(to) && !is_half(v.dtype)) {
        double number = v.number;
        if (to == UIR_DTYPE_F32) number = (float)number;
        return kernel_number(k, to, number);
    }
    if (v.kind == UIR_KERNEL_NUMBER && to == UIR_DTYPE_BOOL) return kernel_number(k, to, v.number != 0);
    if (v.kind == UIR_KERNEL_NUMBER) value = uir_kernel_materialise(k, value, 0);
    uir_dtype between = find_between(k, v.dtype, to);
    if (between != UIR_DTYPE_NONE) return cast_to(k, cast_to(k, value, between, false), to, overflows);
    uir_kernel_operation cast = {.code = UIR_IOP_CAST, .dtype = v.dtype, .dtype_b = to};
    cast.saturate = is_small(to) && !overflows;
    return uir_kernel_instruct(k, &cast, to, lanes_of_cast(k, &v, to), &value, 1);
}

uint32_t uir_kernel_cast(uir_kernel *k, uint32_t value, uir_dtype to) {
    return cast_to(k, value, to, false);
}

static uint32_t lanes_of(const uir_kernel *k, const uint32_t *operands, uint32_t count) {
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < count; i++) lanes |= k->values.data[operands[i]].lanes;
    return lanes;
}

/* Small whole exponents are products. */
static bool power_of_number(uir_kernel *k, uint32_t base, double exponent, uint32_t *out_value) {
    uir_dtype dtype = k->values.data[base].dtype;
    if (exponent == 0.5 || exponent == -0.5) return false; /* of -inf and -0 a root says something else */
    if (exponent != trunc(exponent) || exponent > 8 || exponent < -4 || exponent == 0 || !uir_dtype_is_float(dtype))
        return false;
    uint32_t n = (uint32_t)fabs(exponent), power = base, result = UIR_LOWER_NONE;
    /* Inverted first: the power of the base may be too small or too large for an inverse. */
    if (exponent < 0) power = uir_kernel_call(k, UIR_OP_DIV, dtype, (uint32_t[]){kernel_number(k, dtype, 1), base}, 2);
    for (; n; n >>= 1) {
        if (n & 1)
            result = result == UIR_LOWER_NONE ? power
                                              : uir_kernel_call(k, UIR_OP_MUL, dtype, (uint32_t[]){result, power}, 2);
        if (n > 1) power = uir_kernel_call(k, UIR_OP_MUL, dtype, (uint32_t[]){power, power}, 2);
    }
    *out_value = result;
    return true;
}

/* An integer to the power of another, by squaring: a factor for each bit of the exponent. Of a negative one what is
 * left of 1/x: 1 and -1 are their own inverses, but for its sign; all else gives 0. */
static uint32_t integer_power(uir_kernel *k, uir_dtype dtype, uint32_t base, uint32_t exponent) {
    uint32_t one = kernel_number(k, dtype, 1), none = kernel_number(k, dtype, 0), power = base;
    uint32_t result = uir_kernel_materialise(k, one, 0), bits = uir_dtype_bits(dtype), odd = 0;
    bool is_signed = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_SIGNED;
    for (uint32_t i = 0; i < bits - is_signed && k->status == UIR_STATUS_OK; i++) {
        uint32_t place = kernel_number(k, dtype, i);
        uint32_t bit = uir_kernel_call(k, UIR_OP_SHIFT_RIGHT, dtype, (uint32_t[]){exponent, place}, 2);
        bit = uir_kernel_call(k, UIR_OP_BIT_AND, dtype, (uint32_t[]){bit, one}, 2);
        bit = uir_kernel_call(k, UIR_OP_NE, UIR_DTYPE_BOOL, (uint32_t[]){bit, none}, 2);
        if (i == 0) odd = bit;
        uint32_t factor = uir_kernel_call(k, UIR_OP_SELECT, dtype, (uint32_t[]){bit, power, one}, 3);
        result = uir_kernel_call(k, UIR_OP_MUL, dtype, (uint32_t[]){result, factor}, 2);
        power = uir_kernel_call(k, UIR_OP_MUL, dtype, (uint32_t[]){power, power}, 2);
    }
    if (!is_signed) return result;
    uint32_t less = uir_kernel_call(k, UIR_OP_LT, UIR_DTYPE_BOOL, (uint32_t[]){exponent, none}, 2);
    uint32_t minus = kernel_number(k, dtype, -1);
    uint32_t is_minus = uir_kernel_call(k, UIR_OP_EQ, UIR_DTYPE_BOOL, (uint32_t[]){base, minus}, 2);
    uint32_t is_one = uir_kernel_call(k, UIR_OP_EQ, UIR_DTYPE_BOOL, (uint32_t[]){base, one}, 2);
    uint32_t sign = uir_kernel_call(k, UIR_OP_SELECT, dtype, (uint32_t[]){odd, minus, one}, 3);
    uint32_t inverse = uir_kernel_call(k, UIR_OP_SELECT, dtype, (uint32_t[]){is_minus, sign, none}, 3);
    inverse = uir_kernel_call(k, UIR_OP_SELECT, dtype, (uint32_t[]){is_one, one, inverse}, 3);
    return uir_kernel_call(k, UIR_OP_SELECT, dtype, (uint32_t[]){less, inverse, result}, 3);
}

/* ---- expansions: "mul(add(a, 1), b)" ---- */
typedef struct expansion {
    uir_kernel *k;
    const char *at;
    const uint32_t *operands;
    uint32_t count;
    uir_dtype dtype;    /* of numbers */
    uint32_t named[26]; /* by letter */
} expansion;

static uint32_t plain_call(uir_kernel *k, uir_iop_code code, uir_dtype result, uint32_t *operands, uint32_t count);

/* The same bits as another dtype of that width. */
static uint32_t bits_as(uir_kernel *k, uint32_t value, uir_dtype to) {
    if (k->status != UIR_STATUS_OK) return 0;
    if (k->values.data[value].kind == UIR_KERNEL_NUMBER) value = uir_kernel_materialise(k, value, 0);
    uir_kernel_value v = k->values.data[value];
    if (v.dtype == to || k->status != UIR_STATUS_OK) return value;
    uir_kernel_operation bits = {.code = UIR_IOP_BITS, .dtype = v.dtype, .dtype_b = to};
    return uir_kernel_instruct(k, &bits, to, v.lanes, &value, 1);
}

/* An instruction of one operand that no primitive is, by its name in iops.def. */
static uint32_t unary_call(uir_kernel *k, const char *name, size_t length, uint32_t operand) {
    uir_dtype dtype = k->values.data[operand].dtype;
    for (int code = 0; code < UIR_IOP_COUNT; code++) {
        const uir_iop_row *row = uir_iop_get_row((uir_iop_code)code);
        const char *own = strchr(row->name, '.');
        if (row->family == UIR_IOP_FAMILY_UNARY && own && strlen(own + 1) == length && !memcmp(own + 1, name, length))
            return plain_call(k, (uir_iop_code)code, dtype, &operand, 1);
    }
    uir_kernel_fail(k, UIR_STATUS_INTERNAL); /* a text of ours names what there is not */
    return 0;
}

static uint32_t expand(expansion *x) {
    uir_kernel *k = x->k;
    const char *begin = x->at;
    while (*x->at == ' ') begin = ++x->at;
    if ((*begin >= '0' && *begin <= '9') || *begin == '-') {
        double number = 0;
        size_t length = 0;
        while (strchr("0123456789.-e", begin[length]) && begin[length]) length++;
        uir_double_from_text(begin, length, &number);
        x->at += length;
        return kernel_number(k, x->dtype, x->dtype == UIR_DTYPE_F32 ? (float)number : number);
    }
    while ((*x->at >= 'a' && *x->at <= 'z') || (*x->at >= '0' && *x->at <= '9') || *x->at == '_') x->at++;
    size_t length = (size_t)(x->at - begin);
    uint32_t letter = (uint32_t)(*begin - 'a');
    if (length == 1) return letter < x->count ? x->operands[letter] : x->named[letter];
    if (length == 3 && !memcmp(begin, "inf", 3)) return kernel_number(k, x->dtype, INFINITY);
    if (length == 3 && !memcmp(begin, "nan", 3)) return kernel_number(k, x->dtype, NAN);
    uir_op op = uir_op_find_primitive(begin, length);
    uint32_t operands[3], count = 0;
    if (*x->at == '(') x->at++;
    while (*x->at && *x->at != ')' && count < 3) {
        operands[count++] = expand(x);
        if (*x->at == ',') x->at++;
    }
    if (*x->at == ')') x->at++;
    if (k->status != UIR_STATUS_OK || count == 0) return 0;
    uir_dtype to;
    bool bits = length > 5 && !memcmp(begin, "bits_", 5);
    if (uir_dtype_from_name(begin + (bits ? 5 : 0), length - (bits ? 5 : 0), &to))
        return bits ? bits_as(k, operands[0], to) : uir_kernel_cast(k, operands[0], to);
    if (op == UIR_OP_NONE) return unary_call(k, begin, length, operands[0]);
    bool test = (uir_op_get_row(op)->traits & UIR_TRAIT_COMPARISON) != 0;
    uir_dtype dtype = test ? UIR_DTYPE_BOOL : k->values.data[operands[op == UIR_OP_SELECT ? 1 : 0]].dtype;
    return uir_kernel_call(k, op, dtype, operands, count);
}

static uint32_t expand_row(uir_kernel *k, const char *text, const uint32_t *operands, uint32_t count) {
    expansion x = {.k = k, .at = text, .operands = operands, .count = count};
    x.dtype = k->values.data[operands[0]].dtype;
    for (const char *end; (end = strchr(x.at, ';')) != NULL; x.at = end + 1) {
        while (*x.at == ' ') x.at++;
        uint32_t letter = (uint32_t)(*x.at - 'a');
        x.at += 4; /* "d = " */
        x.named[letter] = expand(&x);
    }
    return expand(&x);
}

/* Which of an instruction's operands has its dtype, whatever dtype a number among them was given. */
static uint32_t typed_operand(const uir_iop_row *row) {
    return row->family == UIR_IOP_FAMILY_TERNARY && row->operands == 3 ? 1 : 0;
}

/* The instruction itself, on operands whose dtype the machine computes in. */
static uint32_t plain_call(uir_kernel *k, uir_iop_code code, uir_dtype result, uint32_t *operands, uint32_t count) {
    bool immediates = true;
    uint32_t which = typed_operand(uir_iop_get_row(code));
    for (uint32_t i = 0; i < count; i++)
        immediates = immediates && k->values.data[operands[i]].kind == UIR_KERNEL_NUMBER;
    if (immediates) operands[count - 1] = uir_kernel_materialise(k, operands[count - 1], 0);
    if (k->status != UIR_STATUS_OK) return 0;
    uir_kernel_operation operation = {.code = code, .dtype = k->values.data[operands[which]].dtype};
    return uir_kernel_instruct(k, &operation, result, lanes_of(k, operands, count), operands, count);
}

uint32_t uir_kernel_call(uir_kernel *k, uir_op op, uir_dtype result, const uint32_t *operands, uint32_t count) {
    uint32_t args[3], value;
    if (k->status != UIR_STATUS_OK) return 0;
    for (uint32_t i = 0; i < count; i++) args[i] = operands[i];
    if (op == UIR_OP_CAST) return uir_kernel_cast(k, args[0], result);
    if (op == UIR_OP_BIT_CAST) return bits_as(k, args[0], result);
    uir_dtype dtype = k->values.data[args[count - 1]].dtype;
    for (size_t i = 0; i < sizeof expansion_rows / sizeof *expansion_rows; i++)
        if (expansion_rows[i].op == op && expansion_rows[i].of == OF_DOUBLES && dtype == UIR_DTYPE_F64)
            return expand_row(k, expansion_rows[i].text, args, count);
    if (is_half(dtype)) { /* computed in f32 and rounded once */
        for (uint32_t i = 0; i < count; i++)
            if (is_half(k->values.data[args[i]].dtype)) args[i] = uir_kernel_cast(k, args[i], UIR_DTYPE_F32);
        value = uir_kernel_call(k, op, is_half(result) ? UIR_DTYPE_F32 : result, args, count);
        return uir_kernel_cast(k, value, result);
    }
    if (op == UIR_OP_POW && k->values.data[args[1]].kind == UIR_KERNEL_NUMBER &&
        power_of_number(k, args[0], k->values.data[args[1]].number, &value))
        return value;
    if (op == UIR_OP_POW && uir_dtype_is_integer(dtype)) return integer_power(k, dtype, args[0], args[1]);
    for (size_t i = 0; i < sizeof instruction_rows / sizeof *instruction_rows; i++) {
        if (instruction_rows[i].op != op) continue;
        uir_iop_code code = instruction_rows[i].code;
        uir_dtype typed = k->values.data[args[typed_operand(uir_iop_get_row(code))]].dtype;
        if (!uir_iop_is_defined_for(code, typed)) continue;
        /* What stands for a function has the digits of f32. */
        const char *text = typed == UIR_DTYPE_F32 && !has_instruction(k, code, typed) ? find_substitute(op) : NULL;
        return text ? expand_row(k, text, args, count) : plain_call(k, code, result, args, count);
    }
    for (size_t i = 0; i < sizeof expansion_rows / sizeof *expansion_rows; i++) {
        if (expansion_rows[i].of == OF_DOUBLES) continue;
        bool fits = expansion_rows[i].of == OF_ANY || (expansion_rows[i].of == OF_FLOATS) == uir_dtype_is_float(dtype);
        if (expansion_rows[i].op == op && fits) return expand_row(k, expansion_rows[i].text, args, count);
    }
    uir_kernel_refuse(k, "no instruction for %s of %s", uir_op_get_row(op)->name, uir_dtype_name(dtype));
    return 0;
}

/* ---- expressions ---- */
/* start, start + 1, ... along the lane (NONE: start alone). */
static uint32_t count_from(uir_kernel *k, uir_dtype dtype, uir_dim start, uint32_t lane) {
    bool along = lane != UIR_LOWER_NONE;
    uir_kernel_operation iota = {.code = UIR_IOP_IOTA, .dtype = dtype, .start = start};
    iota.axis = along && lane + 1 != k->lane_count ? UIR_IAXIS_COL : UIR_IAXIS_ROW;
    if (!start.id) uir_kernel_fail(k, UIR_STATUS_OUT_OF_MEMORY);
    return uir_kernel_instruct(k, &iota, dtype, along ? 1u << lane : 0, NULL, 0);
}

static uint32_t index_value(uir_kernel *k, uir_dim index) {
    uir_dim base;
    int64_t coefficients[UIR_KERNEL_MAX_LANES], number;
    index = uir_kernel_substitute(k, index);
    if (k->status != UIR_STATUS_OK) return 0;
    if (!uir_kernel_split_lanes(k, index, &base, coefficients)) {
        uir_kernel_refuse(k, "an index used as a number is not linear in the vectorised loops");
        return 0;
    }
    uint32_t sum = UIR_LOWER_NONE;
    bool based = uir_dim_is_const(k->dims, base, &number) && number == 0;
    for (uint32_t l = 0; l < k->lane_count; l++) {
        if (!coefficients[l]) continue;
        if (l + 2 < k->lane_count) {
            uir_kernel_refuse(k, "an index used as a number runs along an outer dim of a slice");
            return 0;
        }
        bool whole = coefficients[l] == 1 && !based;
        uint32_t part = count_from(k, UIR_DTYPE_I64, whole ? base : uir_dim_const(k->dims, 0), l);
        if (whole) based = true;
        if (coefficients[l] != 1)
            part = uir_kernel_call(k, UIR_OP_MUL, UIR_DTYPE_I64,
                                   (uint32_t[]){part, kernel_number(k, UIR_DTYPE_I64, (double)coefficients[l])}, 2);
        sum = sum == UIR_LOWER_NONE ? part : uir_kernel_call(k, UIR_OP_ADD, UIR_DTYPE_I64, (uint32_t[]){sum, part}, 2);
    }
    if (based && sum != UIR_LOWER_NONE) return sum;
    uint32_t part = count_from(k, UIR_DTYPE_I64, base, UIR_LOWER_NONE);
    return sum == UIR_LOWER_NONE ? part : uir_kernel_call(k, UIR_OP_ADD, UIR_DTYPE_I64, (uint32_t[]){sum, part}, 2);
}

static uint32_t constant_value(uir_kernel *k, const uir_loop_expression *e) {
    double number = uir_dtype_is_float(e->dtype) ? e->real : (double)e->integer;
    int64_t most = (int64_t)1 << 53;
    if (uir_dtype_is_float(e->dtype) || (e->integer >= -most && e->integer <= most))
        return kernel_number(k, e->dtype, number);
    return count_from(k, e->dtype, uir_dim_const(k->dims, e->integer), UIR_LOWER_NONE);
}

/* Is it what a row of floats was reduced to by this operation? */
static bool is_reduced_by(const uir_kernel *k, uint32_t expression, uir_op op) {
    const uir_loop_function *f = k->f;
    const uir_loop_expression *e = &f->expressions.data[expression];
    if (e->kind != UIR_LOOP_LOAD || !uir_dtype_is_float(e->dtype)) return false;
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = &f->statements.data[i];
        if (s->kind != UIR_LOOP_STATEMENT_UPDATE || s->targets[0].tensor != e->load.tensor) continue;
        const uir_loop_expression *update = &f->expressions.data[f->monoids.data[s->monoid].update[0]];
        return update->kind == UIR_LOOP_CALL && update->op == op;
    }
    return false;
}

/* A row divided by its sum: one reciprocal, and products. */
static uint32_t divide_by_sum(uir_kernel *k, uint32_t row, uint32_t sum) {
    uir_dtype dtype = k->values.data[row].dtype;
    uir_kernel_operation reciprocal = {.code = UIR_IOP_RECIPROCAL, .dtype = dtype};
    uint32_t operands[2] = {row, uir_kernel_instruct(k, &reciprocal, dtype, 0, &sum, 1)};
    return uir_kernel_call(k, UIR_OP_MUL, dtype, operands, 2);
}

/* What a row's elements are less than its greatest. */
static bool is_below_greatest(const uir_kernel *k, uint32_t expression) {
    const uir_loop_expression *e = &k->f->expressions.data[expression];
    return e->kind == UIR_LOOP_CALL && e->op == UIR_OP_SUB && is_reduced_by(k, e->arguments[1], UIR_OP_MAX);
}

/* e^below as 2^(below log2 e), which is cheaper: what the product loses is what the difference lost before it. */
static uint32_t exponential_below(uir_kernel *k, uint32_t below) {
    uint32_t operands[2] = {below, kernel_number(k, UIR_DTYPE_F32, 1.4426950408889634)};
    uint32_t exponent = uir_kernel_call(k, UIR_OP_MUL, UIR_DTYPE_F32, operands, 2);
    if (k->status != UIR_STATUS_OK) return 0;
    uir_kernel_operation power = {.code = UIR_IOP_EXP2, .dtype = UIR_DTYPE_F32};
    return uir_kernel_instruct(k, &power, UIR_DTYPE_F32, k->values.data[exponent].lanes, &exponent, 1);
}

static uint32_t make_expression(uir_kernel *k, uint32_t expression, uint32_t depth) {
    const uir_loop_expression *e = &k->f->expressions.data[expression];
    uint32_t operands[3], lanes;
    const uir_islice *slice;
    if (k->status != UIR_STATUS_OK) return 0;
    if (k->memo[expression]) return k->memo[expression] - 1;
    if (depth > 4000) {
        uir_kernel_refuse(k, "an expression is nested too deep");
        return 0;
    }
    switch (e->kind) {
    case UIR_LOOP_CONSTANT:
        return constant_value(k, e);
    case UIR_LOOP_INDEX:
        return index_value(k, e->index);
    case UIR_LOOP_LOAD:
        slice = uir_kernel_slice(k, &e->load, e->has_fill, e->fill, &lanes);
        return uir_kernel_slice_value(k, e->dtype, lanes, slice);
    case UIR_LOOP_PARAMETER:
        if (k->parameters) return k->parameters[e->integer];
        uir_kernel_refuse(k, "a parameter outside a monoid");
        return 0;
    case UIR_LOOP_CALL:
        for (uint32_t i = 0; i < e->argument_count; i++) operands[i] = make_expression(k, e->arguments[i], depth + 1);
        if (k->status == UIR_STATUS_OK && e->op == UIR_OP_DIV && is_reduced_by(k, e->arguments[1], UIR_OP_ADD) &&
            k->values.data[operands[0]].lanes && !k->values.data[operands[1]].lanes)
            return divide_by_sum(k, operands[0], operands[1]);
        if (k->status == UIR_STATUS_OK && e->op == UIR_OP_EXP && e->dtype == UIR_DTYPE_F32 &&
            is_below_greatest(k, e->arguments[0]) && has_instruction(k, UIR_IOP_EXP2, UIR_DTYPE_F32))
            return exponential_below(k, operands[0]);
        if (e->overflows) return cast_to(k, operands[0], e->dtype, true);
        return uir_kernel_call(k, e->op, e->dtype, operands, e->argument_count);
    }
    return 0;
}

uint32_t uir_kernel_expression(uir_kernel *k, uint32_t expression) {
    uint32_t value = make_expression(k, expression, 0);
    /* The monoid's expressions mean something else at each statement. */
    if (k->status == UIR_STATUS_OK && !k->parameters) k->memo[expression] = value + 1;
    return value;
}

void uir_kernel_store(uir_kernel *k, const uir_islice *target, uint32_t target_lanes, uir_dtype dtype, uint32_t value) {
    if (k->status != UIR_STATUS_OK) return;
    uir_kernel_value *v = &k->values.data[value];
    if (v->kind == UIR_KERNEL_RESULT && v->lanes == target_lanes && !v->uses && k->instructions.count &&
        k->instructions.data[k->instructions.count - 1].result == value) {
        k->instructions.data[k->instructions.count - 1].result = UIR_LOWER_NONE;
        k->instructions.data[k->instructions.count - 1].target = target;
        k->instructions.data[k->instructions.count - 1].target_lanes = target_lanes;
        return;
    }
    uir_kernel_operation copy = {v->kind == UIR_KERNEL_NUMBER ? UIR_IOP_FILL : UIR_IOP_MOVE, .dtype = dtype};
    uir_kernel_instruct_to(k, &copy, target, target_lanes, &value, 1);
}
