/* Reads one instruction of an iGraph: mnemonic, slices, numbers and options. */
#include "ir/kernel/igraph_parse.h"

#include <string.h>

/* ---- slices ---- */
static const char *pointer_name(const void *user, uint32_t index) {
    return ((const uir_iparser *)user)->igraph->pointers.data[index].name;
}

uir_status uir_iparse_pointer(uir_iparser *p, uint32_t *out_pointer) {
    const uir_token *token = &p->tokens->current;
    const uir_igraph *g = p->igraph;
    if (token->kind != UIR_TOKEN_PERCENT) return uir_tokenizer_error(p->tokens, "expected a pointer, %%name");
    *out_pointer = uir_names_get(&p->pointers, token->text, token->length);
    if (*out_pointer != UIR_NAMES_NONE) {
        uir_tokenizer_advance(p->tokens);
        return UIR_STATUS_OK;
    }
    int length = (int)(token->length > 64 ? 64 : token->length);
    const char *near = uir_iparse_nearest(token, pointer_name, p, g->pointers.count);
    if (near)
        return uir_tokenizer_error(p->tokens, "unknown pointer %%%.*s; did you mean %%%s?", length, token->text, near);
    return uir_tokenizer_error(p->tokens, "unknown pointer %%%.*s; declare it with ptr", length, token->text);
}

/* Moves a copy of the tokenizer to the ';' of a window slice; false for a box. */
static bool find_semicolon(const uir_tokenizer *tokens, uir_tokenizer *out_ahead) {
    *out_ahead = *tokens;
    out_ahead->diagnostics = NULL;
    for (uint32_t steps = 0; steps < 4096; steps++) {
        const uir_token *token = &out_ahead->current;
        if (token->kind == UIR_TOKEN_END || token->kind == UIR_TOKEN_ERROR || token->kind == UIR_TOKEN_PERCENT ||
            uir_tokenizer_is(out_ahead, "]") || uir_tokenizer_is(out_ahead, "{") || uir_tokenizer_is(out_ahead, "}"))
            return false;
        if (uir_tokenizer_is(out_ahead, ";")) return true;
        uir_tokenizer_advance(out_ahead);
    }
    return false;
}

static uir_status parse_axis(uir_iparser *p, uir_islice *slice) {
    if (slice->axis_count == UIR_IGRAPH_MAX_RANK)
        return uir_tokenizer_error(p->tokens, "a slice has at most %d axes", UIR_IGRAPH_MAX_RANK);
    uir_islice_axis *axis = &slice->axes[slice->axis_count];
    uir_token name = p->tokens->current;
    if (name.kind != UIR_TOKEN_NAME) return uir_tokenizer_error(p->tokens, "expected the name of an axis");
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        const char *other = p->igraph->symbols.data[slice->axes[a].symbol].name;
        if (uir_iparse_token_is(&name, other, strlen(other)))
            return uir_tokenizer_error(p->tokens, "axis '%s' is given twice", other);
    }
    uir_tokenizer_advance(p->tokens);
    UIR_TRY(uir_tokenizer_expect(p->tokens, "<"));
    UIR_TRY(uir_iparse_dim(p, &axis->extent));
    axis->dim = slice->rank;
    slice->axis_count++;
    return uir_igraph_add_symbol(p->igraph, name.text, name.length, UIR_ISYMBOL_AXIS, NULL, axis->extent,
                                 &axis->symbol);
}

/* After ';': the slice's dims, each an axis or a group of axes. */
static uir_status parse_axes(uir_iparser *p, uir_islice *slice) {
    do {
        bool group = uir_tokenizer_accept(p->tokens, "(");
        if (slice->rank == UIR_IGRAPH_MAX_RANK)
            return uir_tokenizer_error(p->tokens, "a slice has at most %d dims", UIR_IGRAPH_MAX_RANK);
        uir_dim count = uir_dim_const(p->igraph->dims, 1);
        do {
            UIR_TRY(parse_axis(p, slice));
            count = uir_dim_mul(p->igraph->dims, count, slice->axes[slice->axis_count - 1].extent);
        } while (group && uir_tokenizer_accept(p->tokens, ","));
        if (group) UIR_TRY(uir_tokenizer_expect(p->tokens, ")"));
        if (!count.id) return uir_tokenizer_error(p->tokens, "the axes before this overflow 64 bits");
        slice->counts[slice->rank++] = count;
    } while (uir_tokenizer_accept(p->tokens, ","));
    return UIR_STATUS_OK;
}

/* The coordinates use the axes, which stand after them: the axes are read first. */
static uir_status parse_window(uir_iparser *p, uir_islice *slice, uir_tokenizer *axes_at, uint32_t rank) {
    uir_tokenizer coordinates_at = *p->tokens;
    slice->window = true;
    UIR_TRY_ALLOCATE(slice->axes,
                     uir_arena_allocate_array(&p->igraph->arena, UIR_IGRAPH_MAX_RANK, sizeof *slice->axes));
    *p->tokens = *axes_at;
    p->tokens->diagnostics = p->diagnostics;
    UIR_TRY(uir_tokenizer_expect(p->tokens, ";"));
    UIR_TRY(parse_axes(p, slice));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "]"));
    uir_tokenizer after = *p->tokens;

    *p->tokens = coordinates_at;
    uint32_t visible = p->visible.count;
    for (uint32_t a = 0; a < slice->axis_count; a++) UIR_TRY(uir_iparse_show(p, slice->axes[a].symbol));
    for (uint32_t d = 0; d < rank; d++) {
        if (d) UIR_TRY(uir_tokenizer_expect(p->tokens, ","));
        UIR_TRY(uir_iparse_dim(p, &slice->starts[d]));
    }
    if (!uir_tokenizer_is(p->tokens, ";"))
        return uir_tokenizer_error(p->tokens, "%%%s has %u dims: expected ';' after as many coordinates",
                                   p->igraph->pointers.data[slice->pointer].name, rank);
    uir_iparse_hide(p, visible);
    *p->tokens = after;
    return UIR_STATUS_OK;
}

static uir_status parse_box(uir_iparser *p, uir_islice *slice, uint32_t rank) {
    slice->rank = rank;
    bool good = true;
    for (uint32_t d = 0; d < rank && good; d++) {
        good = d == 0 || uir_tokenizer_accept(p->tokens, ",");
        if (!good) break;
        UIR_TRY(uir_iparse_dim(p, &slice->starts[d]));
        slice->counts[d] = uir_dim_const(p->igraph->dims, 1);
        if (uir_tokenizer_accept(p->tokens, ":")) UIR_TRY(uir_iparse_dim(p, &slice->counts[d]));
    }
    if (good && uir_tokenizer_accept(p->tokens, "]")) return UIR_STATUS_OK;
    return uir_tokenizer_error(p->tokens, "%%%s has %u dims: expected as many ranges and ']'",
                               p->igraph->pointers.data[slice->pointer].name, rank);
}

/* An option's word, not the first of the next mnemonic on the line: `fill 0` against `fill.f32`. */
static bool accept_option(uir_iparser *p, const char *word) {
    if (!uir_tokenizer_is(p->tokens, word)) return false;
    if (p->tokens->at < p->tokens->end && *p->tokens->at == '.') return false;
    uir_tokenizer_advance(p->tokens);
    return true;
}

uir_status uir_iparse_slice(uir_iparser *p, uir_islice *slice) {
    uint32_t pointer;
    UIR_TRY(uir_iparse_pointer(p, &pointer));
    uir_igraph_whole_slice(p->igraph, pointer, slice);
    if (uir_tokenizer_accept(p->tokens, "[")) {
        uint32_t rank = slice->rank;
        uir_tokenizer axes_at;
        *slice = (uir_islice){.pointer = pointer};
        if (find_semicolon(p->tokens, &axes_at))
            UIR_TRY(parse_window(p, slice, &axes_at, rank));
        else
            UIR_TRY(parse_box(p, slice, rank));
    }
    slice->block = accept_option(p, "block");
    slice->has_fill = accept_option(p, "fill");
    return slice->has_fill ? uir_tokenizer_expect_double(p->tokens, &slice->fill) : UIR_STATUS_OK;
}

/* ---- mnemonics ---- */
#define MAX_SEGMENTS 8
typedef struct mnemonic {
    uir_token segments[MAX_SEGMENTS];
    uint32_t count;
    const uir_iop_row *row;
    uir_dtype dtypes[3];
    uint32_t dtype_count;
    int spaces[2];
    uint32_t space_count;
} mnemonic;

static uir_status read_segments(uir_iparser *p, mnemonic *m) {
    if (p->tokens->current.kind != UIR_TOKEN_NAME)
        return uir_tokenizer_error(p->tokens, "expected an instruction, loop, if, let, index, run or '}'");
    m->segments[m->count++] = p->tokens->current;
    uir_tokenizer_advance(p->tokens);
    while (uir_tokenizer_is(p->tokens, ".") && !p->tokens->current.space_before) {
        uir_tokenizer_advance(p->tokens);
        if (p->tokens->current.kind != UIR_TOKEN_NAME)
            return uir_tokenizer_error(p->tokens, "expected a name after '.'");
        if (m->count == MAX_SEGMENTS)
            return uir_tokenizer_error(p->tokens, "too many parts in this instruction's name");
        m->segments[m->count++] = p->tokens->current;
        uir_tokenizer_advance(p->tokens);
    }
    return UIR_STATUS_OK;
}

static const char *iop_name(const void *user, uint32_t index) {
    (void)user;
    return uir_iop_get_row((uir_iop_code)index)->name;
}

/* The nearest name, and all that could stand there: the members of the family that the first segment names, or the
 * families. */
static uir_status no_instruction(uir_iparser *p, const mnemonic *m, const uir_token *whole) {
    const char *near = uir_iparse_nearest(whole, iop_name, NULL, UIR_IOP_COUNT);
    uir_text members, families;
    uir_text_init(&members, &p->scratch->allocator);
    uir_text_init(&families, &p->scratch->allocator);
    size_t before_length = 0;
    for (uint32_t code = 0; code < UIR_IOP_COUNT; code++) {
        const char *name = iop_name(NULL, code), *dot = strchr(name, '.');
        size_t length = dot ? (size_t)(dot - name) : strlen(name);
        if (dot && uir_iparse_token_is(&m->segments[0], name, length)) {
            uir_text_append_string(&members, members.length ? ", " : "");
            uir_text_append_string(&members, dot + 1);
        }
        bool again = length == before_length && !memcmp(name, iop_name(NULL, code - 1), length);
        before_length = length;
        if (again) continue;
        uir_text_append_string(&families, families.length ? ", " : "");
        uir_text_append(&families, name, length);
    }
    int length = (int)(whole->length > 64 ? 64 : whole->length),
        first = (int)(m->segments[0].length > 64 ? 64 : m->segments[0].length);
    uir_status status = uir_tokenizer_error_at(
        p->tokens, &m->segments[0], "unknown instruction '%.*s'%s%s%s; known %s%.*s%s%s", length, whole->text,
        near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
        members.length ? "in '" : "are: ", members.length ? first : 0, m->segments[0].text, members.length ? "': " : "",
        members.data    ? members.data
        : families.data ? families.data
                        : "");
    uir_text_deinit(&members);
    uir_text_deinit(&families);
    return status;
}

/* The row whose name is the first one or two segments; sets how many were used. */
static uir_status find_row(uir_iparser *p, const mnemonic *m, uir_iop_code *out_code, uint32_t *out_used) {
    char name[64];
    size_t first = m->segments[0].length, second = m->count > 1 ? m->segments[1].length : 0;
    uir_token whole = m->segments[0];
    if (first + second + 2 <= sizeof name) {
        memcpy(name, m->segments[0].text, first);
        name[first] = 0;
        for (uint32_t used = 1; used <= (second ? 2u : 1u); used++) {
            if (used == 2) {
                name[first] = '.';
                memcpy(name + first + 1, m->segments[1].text, second);
                name[first + 1 + second] = 0;
            }
            for (uint32_t code = 0; code < UIR_IOP_COUNT; code++) {
                if (strcmp(iop_name(NULL, code), name) != 0) continue;
                *out_code = (uir_iop_code)code;
                *out_used = used;
                return UIR_STATUS_OK;
            }
        }
        whole.text = name;
        whole.length = strlen(name);
    }
    return no_instruction(p, m, &whole);
}

static void append_names(uir_text *text, const char *what, const char *const *names, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uir_text_append_string(text, i ? ", " : what);
        uir_text_append_string(text, names[i]);
    }
}

static uir_status no_sync(uir_iparser *p, const mnemonic *m) {
    const uir_machine *machine = p->igraph->machine;
    uir_text text;
    uir_text_init(&text, &p->scratch->allocator);
    append_names(&text, "; pipes: ", machine->pipes, machine->pipe_count);
    append_names(&text, "; kinds: ", machine->unit_kinds, machine->unit_kind_count);
    uir_status status = uir_tokenizer_error_at(
        p->tokens, &m->segments[0], "expected sync.group, %sor sync.A.B of two pipes or two kinds of unit of %s%s",
        uir_machine_threads(machine) > 1 ? "sync.unit, " : "", machine->name, text.data ? text.data : "");
    uir_text_deinit(&text);
    return status;
}

static uir_status parse_sync(uir_iparser *p, const mnemonic *m, uir_iinstruction *out) {
    const uir_machine *machine = p->igraph->machine;
    const uir_token *a = &m->segments[1], *b = &m->segments[2];
    out->sync_pointer = UINT32_MAX;
    if (m->count == 2 && uir_iparse_token_is(a, "group", 5)) {
        out->sync_kind = UIR_SYNC_GROUP;
    } else if (m->count == 2 && uir_iparse_token_is(a, "device", 6)) {
        out->sync_kind = UIR_SYNC_DEVICE;
    } else if (m->count == 2 && uir_iparse_token_is(a, "unit", 4)) {
        out->sync_kind = UIR_SYNC_UNIT;
    } else {
        int from = -1, to = -1;
        if (m->count == 3) {
            out->sync_kind = UIR_SYNC_PIPES;
            from = uir_machine_find_pipe(machine, a->text, a->length);
            to = uir_machine_find_pipe(machine, b->text, b->length);
            if (from < 0 || to < 0) {
                out->sync_kind = UIR_SYNC_KINDS;
                from = uir_machine_find_unit_kind(machine, a->text, a->length);
                to = uir_machine_find_unit_kind(machine, b->text, b->length);
            }
        }
        if (from < 0 || to < 0) return no_sync(p, m);
        out->sync_from = (uint32_t)from;
        out->sync_to = (uint32_t)to;
    }
    if (p->tokens->current.kind == UIR_TOKEN_PERCENT) UIR_TRY(uir_iparse_pointer(p, &out->sync_pointer));
    if (!accept_option(p, "dist")) return UIR_STATUS_OK;
    int64_t distance;
    UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &distance));
    if (distance < 1 || distance > 64) return uir_tokenizer_error(p->tokens, "a distance is 1..64 iterations");
    out->sync_distance = (uint32_t)distance;
    return UIR_STATUS_OK;
}

/* What follows the name: axis, scope, spaces, dtypes. */
static uir_status read_suffix(uir_iparser *p, mnemonic *m, uint32_t used, uir_iinstruction *out) {
    uir_iop_family family = m->row->family;
    bool has_scope =
        family == UIR_IOP_FAMILY_BROADCAST || family == UIR_IOP_FAMILY_REDUCE || family == UIR_IOP_FAMILY_SCAN;
    bool has_axis = has_scope || family == UIR_IOP_FAMILY_IOTA;
    uint32_t dtypes = family == UIR_IOP_FAMILY_MMA ? 3 : family == UIR_IOP_FAMILY_CAST ? 2 : 1;
    for (uint32_t i = used; i < m->count; i++) {
        const uir_token *s = &m->segments[i];
        uir_dtype dtype;
        int space = uir_machine_find_space(p->igraph->machine, s->text, s->length);
        if (has_axis && !out->axis && (uir_iparse_token_is(s, "row", 3) || uir_iparse_token_is(s, "col", 3))) {
            out->axis = s->text[0] == 'r' ? UIR_IAXIS_ROW : UIR_IAXIS_COL;
        } else if (has_scope && (uir_iparse_token_is(s, "unit", 4) || uir_iparse_token_is(s, "group", 5))) {
            out->scope = s->text[0] == 'u' ? UIR_SCOPE_UNIT : UIR_SCOPE_GROUP;
        } else if (family == UIR_IOP_FAMILY_MOVE && space >= 0 && m->space_count < 2 && m->dtype_count == 0) {
            m->spaces[m->space_count++] = space;
        } else if (uir_dtype_from_name(s->text, s->length, &dtype) && m->dtype_count < dtypes) {
            m->dtypes[m->dtype_count++] = dtype;
        } else {
            return uir_tokenizer_error_at(p->tokens, s, "'%.*s' does not belong in the name of %s",
                                          (int)(s->length > 64 ? 64 : s->length), s->text, m->row->name);
        }
    }
    if (has_axis && !out->axis)
        return uir_tokenizer_error_at(p->tokens, &m->segments[0], "%s needs .row or .col", m->row->name);
    if (m->dtype_count != 0 && m->dtype_count != dtypes)
        return uir_tokenizer_error_at(p->tokens, &m->segments[0], "%s expects %u dtypes or none", m->row->name, dtypes);
    if (m->space_count == 1)
        return uir_tokenizer_error_at(p->tokens, &m->segments[0], "move names both spaces, from and to, or none");
    return UIR_STATUS_OK;
}

/* dtypes that the text left out come from the pointers. */
static void infer_dtypes(const uir_iparser *p, const mnemonic *m, uir_iinstruction *out) {
    const uir_ipointer *pointers = p->igraph->pointers.data;
    uir_dtype result = pointers[out->slices[0].pointer].dtype;
    uir_dtype operand = out->slice_count > 1 ? pointers[out->slices[1].pointer].dtype : result;
    uir_iop_family family = m->row->family;
    if (m->dtype_count) {
        out->dtype = m->dtypes[0];
        out->dtype_b = m->dtypes[1];
        out->dtype_c = m->dtypes[2];
        return;
    }
    out->dtype = family == UIR_IOP_FAMILY_COMPARE || family == UIR_IOP_FAMILY_CAST ? operand : result;
    if (family == UIR_IOP_FAMILY_CAST) out->dtype_b = result;
    if (family == UIR_IOP_FAMILY_MMA) {
        out->dtype_b = operand;
        out->dtype_c = out->slice_count > 2 ? pointers[out->slices[2].pointer].dtype : operand;
    }
}

static uir_status parse_operands(uir_iparser *p, const mnemonic *m, uir_iinstruction *out) {
    const uir_iop_row *row = m->row;
    for (uint32_t k = 0; k < row->results + row->operands; k++) {
        if (k) {
            if (!uir_tokenizer_is(p->tokens, ","))
                return uir_tokenizer_error(p->tokens, "%s expects %u result%s and %u operand%s", row->name,
                                           row->results, row->results == 1 ? "" : "s", row->operands,
                                           row->operands == 1 ? "" : "s");
            uir_tokenizer_advance(p->tokens);
        }
        bool number = p->tokens->current.kind != UIR_TOKEN_PERCENT;
        bool may_be_number =
            k >= row->results && (row->family == UIR_IOP_FAMILY_BINARY || row->family == UIR_IOP_FAMILY_COMPARE ||
                                  row->family == UIR_IOP_FAMILY_TERNARY);
        if (number && may_be_number) {
            UIR_TRY(uir_tokenizer_expect_double(p->tokens, &out->immediates[k - row->results]));
            out->immediate_mask |= 1u << (k - row->results);
        } else {
            UIR_TRY(uir_iparse_slice(p, &out->slices[out->slice_count++]));
        }
    }
    if (row->operands > 0 && out->slice_count == row->results)
        return uir_tokenizer_error_at(p->tokens, &m->segments[0],
                                      "at least one operand must be a slice; use fill for a constant");
    if (row->family == UIR_IOP_FAMILY_FILL) {
        UIR_TRY(uir_tokenizer_expect(p->tokens, ","));
        return uir_tokenizer_expect_double(p->tokens, &out->immediate);
    }
    if (row->family == UIR_IOP_FAMILY_IOTA) {
        UIR_TRY(uir_tokenizer_expect(p->tokens, ","));
        return uir_iparse_dim(p, &out->start);
    }
    return UIR_STATUS_OK;
}

static uir_status parse_options(uir_iparser *p, const mnemonic *m, uir_iinstruction *out) {
    for (;;) {
        uir_iop_family family = m->row->family;
        if (family == UIR_IOP_FAMILY_REDUCE && accept_option(p, "acc")) {
            out->accumulate = true;
        } else if (family == UIR_IOP_FAMILY_SCAN && accept_option(p, "exclusive")) {
            out->exclusive = true;
        } else if (out->code == UIR_IOP_CAST && accept_option(p, "saturate")) {
            out->saturate = true;
        } else if (accept_option(p, "stream")) {
            out->stream = true;
        } else if (family == UIR_IOP_FAMILY_REDUCE && !out->has_scratch && accept_option(p, "scratch")) {
            out->has_scratch = true;
            UIR_TRY(uir_iparse_slice(p, &out->scratch));
        } else {
            return UIR_STATUS_OK;
        }
    }
}

static uir_status check_spaces(uir_iparser *p, const mnemonic *m, const uir_iinstruction *out) {
    if (m->space_count != 2) return UIR_STATUS_OK;
    const uir_ipointer *pointers = p->igraph->pointers.data;
    if (pointers[out->slices[1].pointer].space == (uint32_t)m->spaces[0] &&
        pointers[out->slices[0].pointer].space == (uint32_t)m->spaces[1])
        return UIR_STATUS_OK;
    return uir_tokenizer_error_at(p->tokens, &m->segments[0],
                                  "this move's operand is in %s and its result in %s; name these spaces",
                                  p->igraph->machine->spaces[pointers[out->slices[1].pointer].space].name,
                                  p->igraph->machine->spaces[pointers[out->slices[0].pointer].space].name);
}

uir_status uir_iparse_instruction(uir_iparser *p, uir_iinstruction *out) {
    mnemonic m = {.count = 0};
    uint32_t used = 0;
    *out = (uir_iinstruction){.sync_pointer = UINT32_MAX, .legal_row = UINT32_MAX};
    UIR_TRY(read_segments(p, &m));
    UIR_TRY(find_row(p, &m, &out->code, &used));
    m.row = uir_iop_get_row(out->code);
    if (m.row->family == UIR_IOP_FAMILY_SYNC) return parse_sync(p, &m, out);
    UIR_TRY(read_suffix(p, &m, used, out));
    UIR_TRY(parse_operands(p, &m, out));
    UIR_TRY(parse_options(p, &m, out));
    infer_dtypes(p, &m, out);
    return check_spaces(p, &m, out);
}
