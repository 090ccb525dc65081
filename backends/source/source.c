/* Names, expressions and conditions in the words of C. Names come from hostile files: only letters, digits and '_'
 * pass, under a prefix that nothing else has. */
#include "backends/source/source.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

const char *uir_c_format(uir_c_writer *w, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : uir_arena_allocate(&w->arena, (size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    if (!text) w->failed = true;
    return text ? text : "0";
}

static void indent(uir_c_writer *w) {
    for (int i = 0; i < w->indent; i++) uir_text_append(w->text, "    ", 4);
}

static void line(uir_c_writer *w, const char *format, va_list arguments, const char *end) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : uir_arena_allocate(&w->arena, (size_t)length + 1);
    if (!text) {
        w->failed = true;
        return;
    }
    vsnprintf(text, (size_t)length + 1, format, arguments);
    indent(w);
    uir_text_append(w->text, text, (size_t)length);
    uir_text_append_string(w->text, end);
}

void uir_c_line(uir_c_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line(w, format, arguments, "\n");
    va_end(arguments);
}

void uir_c_open(uir_c_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line(w, format, arguments, strcmp(format, "%s") == 0 ? "{\n" : " {\n");
    va_end(arguments);
    w->indent++;
}

void uir_c_close(uir_c_writer *w) {
    w->indent--;
    uir_c_line(w, "}");
}

const char *uir_c_name(uir_c_writer *w, const char *prefix, const char *name, size_t id) {
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
    if (changed || strstr(clean, "__")) return uir_c_format(w, "%s_%s__%zu", prefix, clean, id);
    return uir_c_format(w, "%s_%s", prefix, clean);
}

const char *uir_c_sum(uir_c_writer *w, const char *a, const char *b) {
    if (strcmp(a, "0") == 0) return b;
    if (strcmp(b, "0") == 0) return a;
    return uir_c_format(w, "%s + %s", a, b);
}

static bool is_atom(const char *text) {
    return strpbrk(text, " ?") == NULL || (text[0] == '(' && strchr(text, ')') == text + strlen(text) - 1);
}

const char *uir_c_product(uir_c_writer *w, const char *a, const char *b) {
    if (strcmp(a, "0") == 0 || strcmp(b, "0") == 0) return "0";
    if (strcmp(a, "1") == 0) return b;
    if (strcmp(b, "1") == 0) return a;
    return uir_c_format(w, is_atom(a) ? "%s * %s" : "(%s) * %s", a, is_atom(b) ? b : uir_c_format(w, "(%s)", b));
}

const char *uir_c_quotient(uir_c_writer *w, const char *a, const char *b) {
    return strcmp(a, "0") == 0 ? a : uir_c_format(w, "(%s) / (%s)", a, b);
}

const char *uir_c_remainder(uir_c_writer *w, const char *a, const char *b) {
    return strcmp(a, "0") == 0 ? a : uir_c_format(w, "(%s) %% (%s)", a, b);
}

const char *uir_c_parenthesised(uir_c_writer *w, const char *a) {
    return strcmp(a, "0") == 0 ? a : uir_c_format(w, "(%s)", a);
}

bool uir_c_dim_is(uir_c_writer *w, uir_dim dim, int64_t value) {
    int64_t constant;
    return uir_dim_is_const(w->igraph->dims, dim, &constant) && constant == value;
}

bool uir_c_dim_at_least(uir_c_writer *w, uir_dim dim, int64_t value) {
    int64_t low, high;
    uir_dim_bounds(w->igraph->dims, dim, &low, &high);
    return low >= value;
}

bool uir_c_dim_multiple_of(uir_c_writer *w, uir_dim dim, int64_t divisor) {
    return uir_dim_multiple(w->igraph->dims, dim) % divisor == 0;
}

const char *uir_c_integer(uir_c_writer *w, int64_t value) {
    if (value == INT64_MIN) return "(-9223372036854775807 - 1)";
    return uir_c_format(w, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

const char *uir_c_real(uir_c_writer *w, double value) {
    char text[UIR_NUMBER_TEXT_SIZE];
    if (value != value) return "NAN";
    if (value - value != 0) return value < 0 ? "-INFINITY" : "INFINITY";
    uir_double_to_text(value, text);
    return uir_c_format(w, "%s", text);
}

void uir_c_symbol(const uir_igraph *igraph, uint32_t index, char out[UIR_C_SYMBOL_SIZE]) {
    int used = snprintf(out, UIR_C_SYMBOL_SIZE, "k%u_", index);
    for (const char *c = igraph->name ? igraph->name : ""; *c && used < UIR_C_SYMBOL_SIZE - 16; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        out[used++] = plain ? *c : '_';
    }
    out[used] = 0;
}

static const char *operand(uir_c_writer *w, uir_dim dim) {
    const char *text = uir_c_dim(w, dim);
    return is_atom(text) ? text : uir_c_format(w, "(%s)", text);
}

const char *uir_c_dim(uir_c_writer *w, uir_dim dim) {
    static const char *const calls[] = {[UIR_DIM_FLOORDIV] = "uir_floordiv",
                                        [UIR_DIM_CEILDIV] = "uir_ceildiv",
                                        [UIR_DIM_MOD] = "uir_mod",
                                        [UIR_DIM_MIN] = "uir_min",
                                        [UIR_DIM_MAX] = "uir_max"};
    if (!dim.id) {
        w->failed = true;
        return "0";
    }
    const uir_dim_node *node = uir_dim_get(w->igraph->dims, dim);
    uir_dim_kind kind = node->kind;
    if (kind == UIR_DIM_CONST) return uir_c_integer(w, node->value);
    if (kind == UIR_DIM_SYMBOL) return w->symbols[node->value];
    uint32_t count = node->count;
    const uir_dim *operands = uir_arena_copy(&w->arena, node->operands, count * sizeof *operands);
    if (!operands) {
        w->failed = true;
        return "0";
    }
    if (kind == UIR_DIM_ADD || kind == UIR_DIM_MUL) {
        const char *text = kind == UIR_DIM_ADD ? uir_c_dim(w, operands[0]) : operand(w, operands[0]);
        for (uint32_t i = 1; i < count; i++)
            text = uir_c_format(w, "%s %c %s", text, kind == UIR_DIM_ADD ? '+' : '*', operand(w, operands[i]));
        return text;
    }
    if (kind != UIR_DIM_MIN && kind != UIR_DIM_MAX) {
        /* C's own operators where the sign is known. */
        if (uir_c_dim_at_least(w, operands[0], 0) && uir_c_dim_at_least(w, operands[1], 1)) {
            const char *a = operand(w, operands[0]), *b = operand(w, operands[1]);
            if (kind == UIR_DIM_FLOORDIV) return uir_c_format(w, "(%s / %s)", a, b);
            if (kind == UIR_DIM_MOD) return uir_c_format(w, "(%s %% %s)", a, b);
        }
        return uir_c_format(w, "%s(%s, %s)", calls[kind], uir_c_dim(w, operands[0]), uir_c_dim(w, operands[1]));
    }
    const char *text = uir_c_dim(w, operands[0]);
    for (uint32_t i = 1; i < count; i++)
        text = uir_c_format(w, "%s(%s, %s)", calls[kind], text, uir_c_dim(w, operands[i]));
    return text;
}

const char *uir_c_condition(uir_c_writer *w, const uir_iguard *guard) {
    const char *text = NULL;
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        const char *part;
        if (atom->kind == UIR_IATOM_RELATION) {
            part = uir_c_format(w, "%s %s %s", uir_c_dim(w, atom->condition.left),
                                uir_relation_text(atom->condition.relation), uir_c_dim(w, atom->condition.right));
        } else {
            const char *loop = w->symbols[atom->loop];
            part = atom->kind == UIR_IATOM_FIRST
                       ? uir_c_format(w, "%s %s 0", loop, atom->negated ? "!=" : "==")
                       : uir_c_format(w, "%s %s %s_trips - 1", loop, atom->negated ? "!=" : "==", loop);
        }
        text = text ? uir_c_format(w, "%s && %s", text, part) : part;
    }
    return text;
}

/* ---- sizes, indices ---- */
uir_status uir_c_begin(uir_c_writer *w) {
    const uir_igraph *g = w->igraph;
    UIR_TRY_ALLOCATE(w->symbols, uir_arena_allocate_array(&w->arena, g->symbols.count + 1, sizeof *w->symbols));
    UIR_TRY_ALLOCATE(w->may_miss, uir_arena_allocate_array(&w->arena, g->symbols.count + 1, sizeof *w->may_miss));
    for (uint32_t i = 0; i < g->symbols.count; i++)
        w->symbols[i] =
            uir_c_name(w, g->symbols.data[i].kind <= UIR_ISYMBOL_DEVICE ? "n" : "i", g->symbols.data[i].name, i);
    return UIR_STATUS_OK;
}

bool uir_c_is_header_let(const uir_igraph *igraph, uint32_t symbol) {
    for (uint32_t i = 0; i < igraph->items.count; i++)
        if (igraph->items.data[i].kind == UIR_IITEM_LET && igraph->items.data[i].symbol == symbol) return false;
    return igraph->symbols.data[symbol].kind == UIR_ISYMBOL_LET;
}

void uir_c_sizes(uir_c_writer *w, const char *array) {
    const uir_igraph *g = w->igraph;
    uint32_t dims = 0, tiles = uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM);
    for (uint32_t i = 0; i < g->symbols.count; i++) {
        const uir_isymbol *s = &g->symbols.data[i];
        if (s->kind == UIR_ISYMBOL_DIM)
            uir_c_line(w, "UIR_LET %s = %s[%u];", w->symbols[i], array, dims++);
        else if (s->kind == UIR_ISYMBOL_TILE)
            uir_c_line(w, "UIR_LET %s = %s[%u];", w->symbols[i], array, tiles++);
        else if (s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE || uir_c_is_header_let(g, i))
            uir_c_line(w, "UIR_LET %s = %s;", w->symbols[i], uir_c_dim(w, s->definition));
    }
}

void uir_c_index(uir_c_writer *w, const uir_iitem *item, const char *read) {
    const char *i = w->symbols[item->symbol], *limit = uir_c_dim(w, item->index.limit);
    uir_c_line(w, "int64_t %s = (int64_t)%s;", i, read);
    uir_c_line(w, "const int64_t %s_limit = %s;", i, limit);
    bool positive = uir_c_dim_at_least(w, item->index.limit, 1), skip = item->index.mode == UIR_INDEX_SKIP;
    w->may_miss[item->symbol] = !positive || skip;
    if (w->may_miss[item->symbol])
        uir_c_line(w, skip ? "const int %s_ok = %s >= 0 && %s < %s_limit;" : "const int %s_ok = %s_limit > 0;", i, i, i,
                   i);
    if (item->index.mode == UIR_INDEX_CLAMP)
        uir_c_line(w, "%s = %s < 0 || %s_limit <= 0 ? 0 : uir_min(%s, %s_limit - 1);", i, i, i, i, i);
    else if (item->index.mode == UIR_INDEX_WRAP)
        uir_c_line(w, "%s = uir_mod(%s, %s_limit);", i, i, i);
    else
        uir_c_line(w, "if (!%s_ok) %s = 0;", i, i);
}

typedef struct index_search {
    uir_c_writer *w;
    const char *condition;
    uint32_t depth;
} index_search;

/* Whether a conjunction has a term; each ends with the " && " before the next one. */
static bool has_term(const char *condition, const char *term) {
    size_t length = strlen(term);
    for (const char *at = condition; at; at = strchr(at, ' ') ? strchr(at, ' ') + strlen(" && ") : NULL)
        if (strcspn(at, " ") == length && !memcmp(at, term, length)) return true;
    return false;
}

/* Symbols read from data put their slices outside, also through the names of expressions. */
static void find_index(void *user, uir_symbol symbol) {
    index_search *s = user;
    uir_c_writer *w = s->w;
    const uir_isymbol *named = &w->igraph->symbols.data[symbol.id];
    if (named->kind == UIR_ISYMBOL_LET && s->depth < 32) {
        s->depth++;
        uir_dim_visit_symbols(w->igraph->dims, named->definition, find_index, s);
        s->depth--;
    }
    if (named->kind != UIR_ISYMBOL_INDEX || !w->may_miss[symbol.id]) return;
    const char *ok = uir_c_format(w, "%s_ok", w->symbols[symbol.id]);
    if (!s->condition)
        s->condition = ok;
    else if (!has_term(s->condition, ok))
        s->condition = uir_c_format(w, "%s && %s", s->condition, ok);
}

const char *uir_c_missing(uir_c_writer *w, const uir_islice *slice) {
    index_search search = {w, NULL, 0};
    for (uint32_t d = 0; d < w->igraph->pointers.data[slice->pointer].rank; d++)
        uir_dim_visit_symbols(w->igraph->dims, slice->starts[d], find_index, &search);
    return search.condition;
}
