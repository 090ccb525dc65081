/* C text: names, expressions, literals. Names come from hostile files: only letters, digits and '_' pass, under a
 * prefix that no name of the prelude has. */
#include "backends/cpu/target/emit.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *uir_c_format(emitter *e, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : uir_arena_allocate(&e->arena, (size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    if (!text) e->failed = true;
    return text ? text : "0";
}

static void indent(emitter *e) {
    for (int i = 0; i < e->indent; i++) uir_text_append(e->text, "    ", 4);
}

static void line(emitter *e, const char *format, va_list arguments, const char *end) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : uir_arena_allocate(&e->arena, (size_t)length + 1);
    if (!text) {
        e->failed = true;
        return;
    }
    vsnprintf(text, (size_t)length + 1, format, arguments);
    indent(e);
    uir_text_append(e->text, text, (size_t)length);
    uir_text_append_string(e->text, end);
}

void uir_c_line(emitter *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line(e, format, arguments, "\n");
    va_end(arguments);
}

void uir_c_open(emitter *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line(e, format, arguments, strcmp(format, "%s") == 0 ? "{\n" : " {\n");
    va_end(arguments);
    e->indent++;
}

void uir_c_close(emitter *e) {
    e->indent--;
    uir_c_line(e, "}");
}

const char *uir_c_name(emitter *e, const char *prefix, const char *name, size_t id) {
    char clean[33];
    size_t length = strlen(name), used = 0;
    bool changed = length >= sizeof clean;
    for (size_t i = 0; i < length && used + 1 < sizeof clean; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        clean[used++] = plain ? c : '_';
        changed |= !plain;
    }
    clean[used] = 0;
    /* A name that was changed might now be another's. No name ends in "__" and a number by itself but these. */
    if (changed || strstr(clean, "__")) return uir_c_format(e, "%s_%s__%zu", prefix, clean, id);
    return uir_c_format(e, "%s_%s", prefix, clean);
}

const char *uir_c_sum(emitter *e, const char *a, const char *b) {
    if (strcmp(a, "0") == 0) return b;
    if (strcmp(b, "0") == 0) return a;
    return uir_c_format(e, "%s + %s", a, b);
}

static bool is_atom(const char *text) {
    return strpbrk(text, " ?") == NULL || (text[0] == '(' && strchr(text, ')') == text + strlen(text) - 1);
}

const char *uir_c_product(emitter *e, const char *a, const char *b) {
    if (strcmp(a, "0") == 0 || strcmp(b, "0") == 0) return "0";
    if (strcmp(a, "1") == 0) return b;
    if (strcmp(b, "1") == 0) return a;
    return uir_c_format(e, is_atom(a) ? "%s * %s" : "(%s) * %s", a, is_atom(b) ? b : uir_c_format(e, "(%s)", b));
}

bool uir_c_dim_is(emitter *e, uir_dim dim, int64_t value) {
    int64_t constant;
    return uir_dim_is_const(e->igraph->dims, dim, &constant) && constant == value;
}

bool uir_c_dim_at_least(emitter *e, uir_dim dim, int64_t value) {
    int64_t low, high;
    uir_dim_bounds(e->igraph->dims, dim, &low, &high);
    return low >= value;
}

bool uir_c_dim_multiple_of(emitter *e, uir_dim dim, int64_t divisor) {
    return uir_dim_multiple(e->igraph->dims, dim) % divisor == 0;
}

static const char *number(emitter *e, int64_t value) {
    if (value == INT64_MIN) return "(-9223372036854775807 - 1)";
    return uir_c_format(e, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

static const char *operand(emitter *e, uir_dim dim) {
    const char *text = uir_c_dim(e, dim);
    return is_atom(text) ? text : uir_c_format(e, "(%s)", text);
}

const char *uir_c_dim(emitter *e, uir_dim dim) {
    static const char *const calls[] = {[UIR_DIM_FLOORDIV] = "uir_floordiv",
                                        [UIR_DIM_CEILDIV] = "uir_ceildiv",
                                        [UIR_DIM_MOD] = "uir_mod",
                                        [UIR_DIM_MIN] = "uir_min",
                                        [UIR_DIM_MAX] = "uir_max"};
    if (!dim.id) {
        e->failed = true;
        return "0";
    }
    const uir_dim_node *node = uir_dim_get(e->igraph->dims, dim);
    uir_dim_kind kind = node->kind;
    if (kind == UIR_DIM_CONST) return number(e, node->value);
    if (kind == UIR_DIM_SYMBOL) return e->symbols[node->value];
    uint32_t count = node->count;
    const uir_dim *operands = uir_arena_copy(&e->arena, node->operands, count * sizeof *operands);
    if (!operands) {
        e->failed = true;
        return "0";
    }
    if (kind == UIR_DIM_ADD || kind == UIR_DIM_MUL) {
        const char *text = kind == UIR_DIM_ADD ? uir_c_dim(e, operands[0]) : operand(e, operands[0]);
        for (uint32_t i = 1; i < count; i++)
            text = uir_c_format(e, "%s %c %s", text, kind == UIR_DIM_ADD ? '+' : '*', operand(e, operands[i]));
        return text;
    }
    if (kind != UIR_DIM_MIN && kind != UIR_DIM_MAX) {
        /* C's own operators where the sign is known. */
        if (uir_c_dim_at_least(e, operands[0], 0) && uir_c_dim_at_least(e, operands[1], 1)) {
            const char *a = operand(e, operands[0]), *b = operand(e, operands[1]);
            if (kind == UIR_DIM_FLOORDIV) return uir_c_format(e, "(%s / %s)", a, b);
            if (kind == UIR_DIM_MOD) return uir_c_format(e, "(%s %% %s)", a, b);
        }
        return uir_c_format(e, "%s(%s, %s)", calls[kind], uir_c_dim(e, operands[0]), uir_c_dim(e, operands[1]));
    }
    const char *text = uir_c_dim(e, operands[0]);
    for (uint32_t i = 1; i < count; i++)
        text = uir_c_format(e, "%s(%s, %s)", calls[kind], text, uir_c_dim(e, operands[i]));
    return text;
}

const char *uir_c_type(uir_dtype dtype) {
    /* Floats of 8 bits are bytes that only casts look into; `bool` is a keyword of newer C. */
    if (uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) == 8) return "u8";
    return dtype == UIR_DTYPE_BOOL ? "boolean" : uir_dtype_name(dtype);
}

const char *uir_c_literal(emitter *e, uir_dtype dtype, double value) {
    if (uir_dtype_is_float(dtype) && dtype != UIR_DTYPE_F32 && dtype != UIR_DTYPE_F64) {
        uint64_t bits = 0;
        uir_dtype_store_double(dtype, &bits, 0, (double)(float)value, UIR_ROUND_NEAREST_EVEN);
        return uir_c_format(e, "(%s)%u", uir_c_type(dtype), (unsigned)bits);
    }
    if (uir_dtype_is_float(dtype)) {
        if (isnan(value)) return uir_c_format(e, "(%s)UIR_NAN", uir_c_type(dtype));
        if (isinf(value) || (dtype == UIR_DTYPE_F32 && isinf((float)value)))
            return uir_c_format(e, "(%s)%sUIR_INFINITY", uir_c_type(dtype), value < 0 ? "-" : "");
        char text[UIR_NUMBER_TEXT_SIZE];
        bool single = dtype == UIR_DTYPE_F32;
        (void)(single ? uir_float_to_text((float)value, text) : uir_double_to_text(value, text));
        return uir_c_format(e, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
    }
    if (dtype == UIR_DTYPE_BOOL) return value != 0 ? "1" : "0";
    int64_t integer = value >= 9223372036854775807.0    ? INT64_MAX
                      : value <= -9223372036854775808.0 ? INT64_MIN
                                                        : (int64_t)value;
    return uir_c_format(e, "(%s)%s", uir_c_type(dtype), number(e, integer));
}

const char *uir_c_condition(emitter *e, const uir_iguard *guard) {
    const char *text = NULL;
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        const char *part;
        if (atom->kind == UIR_IATOM_RELATION) {
            part = uir_c_format(e, "%s %s %s", uir_c_dim(e, atom->condition.left),
                                uir_relation_text(atom->condition.relation), uir_c_dim(e, atom->condition.right));
        } else {
            const char *loop = e->symbols[atom->loop];
            part = atom->kind == UIR_IATOM_FIRST
                       ? uir_c_format(e, "%s %s 0", loop, atom->negated ? "!=" : "==")
                       : uir_c_format(e, "%s %s %s_trips - 1", loop, atom->negated ? "!=" : "==", loop);
        }
        text = text ? uir_c_format(e, "%s && %s", text, part) : part;
    }
    return text;
}
