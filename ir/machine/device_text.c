/* Reads and prints descriptions of devices. What a number or a word is called is a row of device.def. */
#include "ir/machine/device_text.h"

#include "base/intern.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum number_type { COUNT, BYTES, RATE } number_type;

typedef struct number_row {
    const char *word;
    number_type type;
    size_t offset;
    double least, most;
} number_row;

typedef struct word_row {
    const char *word;
    uint32_t bits;
} word_row;

static const number_row device_numbers[] = {
#define UIR_MACHINE_NUMBER(word, type, member, least, most) {#word, type, offsetof(uir_machine, member), least, most},
#include "ir/machine/device.def"
};
static const number_row space_numbers[] = {
#define UIR_SPACE_NUMBER(word, type, member, least, most) {#word, type, offsetof(uir_space, member), least, most},
#include "ir/machine/device.def"
};
static const number_row legal_numbers[] = {
#define UIR_LEGAL_NUMBER(word, type, member, least, most) {#word, type, offsetof(uir_legal_row, member), least, most},
#include "ir/machine/device.def"
};
static const word_row roles[] = {
#define UIR_SPACE_ROLE(word, constant) {#word, constant},
#include "ir/machine/device.def"
};
static const word_row scopes[] = {
#define UIR_SPACE_SCOPE(word, constant) {#word, constant},
#include "ir/machine/device.def"
};
static const word_row block_orders[] = {
#define UIR_SPACE_BLOCKS(word, constant) {#word, constant},
#include "ir/machine/device.def"
};
static const word_row constraints[] = {
#define UIR_LEGAL_CONSTRAINT(word, constant) {#word, constant},
#include "ir/machine/device.def"
};
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

/* Words that mean something in a kernel's text, where a name of the device may stand. */
static const char *const reserved[] = {"group", "device", "unit", "row", "col",     "acc",   "cores",
                                       "first", "last",   "min",  "max", "ceildiv", "align", "mod",
                                       "and",   "or",     "not",  "if",  "when",    "on",    "fill"};

typedef struct named_mask {
    const char *name;
    uint32_t mask;
} named_mask;

typedef struct named_form {
    const char *name;
    uir_legal_row row; /* where and how; the instruction and its dtypes are not of it */
} named_form;

typedef struct device_parser {
    uir_tokenizer *tokens;
    uir_arena *arena;
    uir_machine *machine;
    uir_names source_names, dtype_names, form_names; /* those of all chips are the common parser's */
    uir_vector(named_mask) dtypes;
    uir_vector(named_form) forms;
    uir_vector(uir_legal_row) legal, own; /* `own`: of this chip alone, which stand before those of all chips */
    const struct device_parser *common;   /* of a chip; else NULL */
} device_parser;

/* ---- names ---- */
static bool token_is(const uir_token *token, const char *name) {
    return strlen(name) == token->length && memcmp(token->text, name, token->length) == 0;
}

/* Of the chip, or of all chips. */
static uint32_t find_name(const uir_names *own, const uir_names *common, const uir_token *token) {
    uint32_t place = uir_names_get(own, token->text, token->length);
    return place == UIR_NAMES_NONE && common ? uir_names_get(common, token->text, token->length) : place;
}

static uir_status put_name(device_parser *p, uir_names *names, const char *name, uint32_t place) {
    return uir_names_put(names, p->arena, name, strlen(name), place);
}

static bool is_reserved(const uir_token *token) {
    uir_dtype dtype;
    if (uir_dtype_from_name(token->text, token->length, &dtype)) return true;
    for (uint32_t i = 0; i < LENGTH(reserved); i++)
        if (token_is(token, reserved[i])) return true;
    return false;
}

static uir_status expect_new_name(device_parser *p, const char *what, const char **out_name) {
    const uir_token *token = &p->tokens->current;
    if (token->kind != UIR_TOKEN_NAME) return uir_tokenizer_error(p->tokens, "expected the name of %s", what);
    if (token->length > UIR_MACHINE_MAX_NAME)
        return uir_tokenizer_error(p->tokens, "names have at most %d characters", UIR_MACHINE_MAX_NAME);
    if (is_reserved(token))
        return uir_tokenizer_error(p->tokens, "'%.*s' is a reserved word of kernel texts: %s needs another name",
                                   (int)token->length, token->text, what);
    return uir_tokenizer_expect_name(p->tokens, what, out_name);
}

/* Index of the word in a table with a name at the beginning of each row; reports it when there is none. */
static uir_status find_word(device_parser *p, const char *what, const void *rows, uint32_t count, size_t stride,
                            uint32_t *out_index) {
    const uir_token *token = &p->tokens->current;
    char known[512] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)rows + i * stride, sizeof name);
        if (token->kind == UIR_TOKEN_NAME && token_is(token, name)) {
            *out_index = i;
            uir_tokenizer_advance(p->tokens);
            return UIR_STATUS_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", name);
    }
    return uir_tokenizer_error(p->tokens, "expected %s: %s", what, count ? known : "none is declared yet");
}

/* Names out of a table, with commas between them: a bit each. */
static uir_status parse_mask(device_parser *p, const char *what, const void *rows, uint32_t count, size_t stride,
                             uint32_t *out_mask) {
    uint32_t mask = 0;
    do {
        uint32_t index;
        UIR_TRY(find_word(p, what, rows, count, stride, &index));
        mask |= 1u << index;
    } while (uir_tokenizer_accept(p->tokens, ","));
    *out_mask = mask;
    return UIR_STATUS_OK;
}

static uir_status parse_words(device_parser *p, const char *what, const word_row *rows, uint32_t count,
                              uint32_t *out_bits) {
    uint32_t mask;
    UIR_TRY(parse_mask(p, what, rows, count, sizeof *rows, &mask));
    *out_bits = 0;
    for (uint32_t i = 0; i < count; i++)
        if (mask >> i & 1) *out_bits |= rows[i].bits;
    return UIR_STATUS_OK;
}

static uir_status parse_kinds(device_parser *p, uint32_t *out_mask) {
    return parse_mask(p, "a kind of unit", p->machine->unit_kinds, p->machine->unit_kind_count,
                      sizeof *p->machine->unit_kinds, out_mask);
}

static uir_status parse_spaces(device_parser *p, uint32_t *out_mask) {
    return parse_mask(p, "a space", p->machine->spaces, p->machine->space_count, sizeof *p->machine->spaces, out_mask);
}

/* ---- numbers ---- */
/* What stands behind every number: where it is from. */
static uir_status parse_source(device_parser *p) {
    const uir_token *token = &p->tokens->current;
    if (token->kind != UIR_TOKEN_AT)
        return uir_tokenizer_error(p->tokens,
                                   "a number needs its source: @NAME, as in `source NAME \"where it is from\"`");
    if (find_name(&p->source_names, p->common ? &p->common->source_names : NULL, token) != UIR_NAMES_NONE) {
        uir_tokenizer_advance(p->tokens);
        return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(p->tokens, "unknown source '%.*s': declare it before its use",
                               (int)(token->length > UIR_MACHINE_MAX_NAME ? UIR_MACHINE_MAX_NAME : token->length),
                               token->text);
}

/* If the text goes on with a number of the table, reads it. */
static uir_status parse_number(device_parser *p, const number_row *rows, uint32_t count, void *object,
                               bool *out_found) {
    *out_found = false;
    for (uint32_t i = 0; i < count && !*out_found; i++) {
        const number_row *row = &rows[i];
        if (!uir_tokenizer_accept(p->tokens, row->word)) continue;
        uir_token at = p->tokens->current;
        double value;
        int64_t integer = 0;
        *out_found = true;
        if (row->type == RATE) {
            UIR_TRY(uir_tokenizer_expect_double(p->tokens, &value));
        } else {
            UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &integer));
            value = (double)integer;
        }
        if (!(value >= row->least && value <= row->most))
            return uir_tokenizer_error_at(p->tokens, &at, "%s must be from %.0f to %.0f", row->word, row->least,
                                          row->most);
        void *member = (char *)object + row->offset;
        if (row->type == COUNT) memcpy(member, &(uint32_t){(uint32_t)integer}, sizeof(uint32_t));
        if (row->type == BYTES) memcpy(member, &(uint64_t){(uint64_t)integer}, sizeof(uint64_t));
        if (row->type == RATE) memcpy(member, &value, sizeof value);
        UIR_TRY(parse_source(p));
    }
    return UIR_STATUS_OK;
}

static void set_least(const number_row *rows, uint32_t count, void *object) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t least = (uint32_t)rows[i].least;
        if (least && rows[i].type == COUNT) memcpy((char *)object + rows[i].offset, &least, sizeof least);
    }
}

/* ---- spaces ---- */
static uir_status parse_space(device_parser *p) {
    uir_machine *d = p->machine;
    int known = uir_machine_find_space(d, p->tokens->current.text, p->tokens->current.length);
    if (known >= 0 && !p->common) return uir_tokenizer_error(p->tokens, "this space is described already");
    if (known < 0) {
        if (d->space_count == UIR_MACHINE_MAX_SPACES)
            return uir_tokenizer_error(p->tokens, "a device has at most %d spaces", UIR_MACHINE_MAX_SPACES);
        uir_space space = {.scope = UIR_SCOPE_UNIT};
        set_least(space_numbers, LENGTH(space_numbers), &space);
        UIR_TRY(expect_new_name(p, "a space", &space.name));
        known = (int)d->space_count;
        d->spaces[d->space_count++] = space;
    } else {
        uir_tokenizer_advance(p->tokens);
    }
    uir_space *space = &d->spaces[known];
    UIR_TRY(uir_tokenizer_expect(p->tokens, "{"));
    while (!uir_tokenizer_accept(p->tokens, "}")) {
        bool found;
        UIR_TRY(parse_number(p, space_numbers, LENGTH(space_numbers), space, &found));
        if (found) continue;
        if (uir_tokenizer_accept(p->tokens, "cache")) {
            space->is_cache = true;
        } else if (uir_tokenizer_accept(p->tokens, "roles")) {
            UIR_TRY(parse_words(p, "a role", roles, LENGTH(roles), &space->roles));
        } else if (uir_tokenizer_accept(p->tokens, "of")) {
            uint32_t scope;
            UIR_TRY(find_word(p, "a scope", scopes, LENGTH(scopes), sizeof *scopes, &scope));
            space->scope = (uir_scope)scopes[scope].bits;
        } else if (uir_tokenizer_accept(p->tokens, "blocks")) {
            uint32_t order;
            UIR_TRY(
                find_word(p, "an order of blocks", block_orders, LENGTH(block_orders), sizeof *block_orders, &order));
            space->blocks = (uir_space_blocks)block_orders[order].bits;
        } else if (uir_tokenizer_accept(p->tokens, "reached_by")) {
            UIR_TRY(parse_kinds(p, &space->unit_kinds));
        } else {
            return uir_tokenizer_error(
                p->tokens,
                "expected a property of a space: roles, of, reached_by, cache, blocks, a number (capacity ...) or '}'");
        }
    }
    return UIR_STATUS_OK;
}

/* ---- legal instructions ---- */
/* Dtypes and sets of them: those after a '-' are taken away. */
static uir_status parse_dtypes(device_parser *p, uint32_t *out_mask) {
    uint32_t mask = 0;
    bool takes = false;
    for (;;) {
        const uir_token *token = &p->tokens->current;
        uir_dtype dtype;
        uint32_t bits = 0;
        if (token->kind == UIR_TOKEN_NAME && uir_dtype_from_name(token->text, token->length, &dtype)) {
            bits = 1u << dtype;
        } else {
            /* The last that was given the name. */
            uint32_t place = token->kind == UIR_TOKEN_NAME
                                 ? find_name(&p->dtype_names, p->common ? &p->common->dtype_names : NULL, token)
                                 : UIR_NAMES_NONE;
            if (place != UIR_NAMES_NONE) bits = p->dtypes.data[place].mask;
            if (!bits)
                return uir_tokenizer_error(p->tokens, "expected a dtype, or the name of a set declared by `dtypes`");
        }
        uir_tokenizer_advance(p->tokens);
        mask = takes ? mask & ~bits : mask | bits;
        takes = uir_tokenizer_accept(p->tokens, "-");
        if (!takes && !uir_tokenizer_accept(p->tokens, ",")) break;
    }
    if (!mask) return uir_tokenizer_error_at(p->tokens, &p->tokens->previous, "no dtype is left");
    *out_mask = mask;
    return UIR_STATUS_OK;
}

/* An instruction, a family of them (`unary.*`) or all (`*`). */
static uir_status parse_iop(device_parser *p, const char **out_name) {
    uir_token at = p->tokens->current;
    uir_text name;
    bool is_known = false, is_family = false;
    uir_text_init(&name, &p->arena->allocator);
    do {
        const uir_token *token = &p->tokens->current;
        is_family = uir_tokenizer_is(p->tokens, "*");
        if (token->kind != UIR_TOKEN_NAME && !is_family) break;
        uir_text_append_format(&name, "%s%.*s", name.length ? "." : "", (int)token->length, token->text);
        uir_tokenizer_advance(p->tokens);
    } while (!is_family && uir_tokenizer_accept(p->tokens, "."));
    for (int i = 0; i < UIR_IOP_COUNT && name.data && !is_known; i++)
        is_known = uir_legal_name_matches(name.data, uir_iop_get_row((uir_iop_code)i)->name);
    uir_status status = uir_text_status(&name);
    if (status == UIR_STATUS_OK && !is_known)
        status = uir_tokenizer_error_at(p->tokens, &at, "unknown instruction; iops.def lists them");
    *out_name = is_known ? uir_arena_copy_string(p->arena, name.data, name.length) : NULL;
    uir_text_deinit(&name);
    return status == UIR_STATUS_OK && !*out_name ? UIR_STATUS_OUT_OF_MEMORY : status;
}

/* What a form says goes into a row; of numbers the one that is said last counts. */
static void take_form(uir_legal_row *row, const uir_legal_row *form) {
    row->spaces_result |= form->spaces_result;
    row->spaces_operand |= form->spaces_operand;
    row->unit_kinds |= form->unit_kinds;
    row->constraints |= form->constraints;
    if (form->pipe >= 0) row->pipe = form->pipe;
#define UIR_LEGAL_NUMBER(word, type, member, least, most)                                                              \
    if (form->member) row->member = form->member;
#include "ir/machine/device.def"
}

/* The first that was given the name. */
static uir_status find_form(device_parser *p, const named_form **out_form) {
    uint32_t place = p->common ? find_name(&p->common->form_names, &p->form_names, &p->tokens->current)
                               : find_name(&p->form_names, NULL, &p->tokens->current);
    if (p->tokens->current.kind == UIR_TOKEN_NAME && place != UIR_NAMES_NONE)
        uir_tokenizer_advance(p->tokens);
    else
        UIR_TRY(find_word(p, "a form", p->forms.data, p->forms.count, sizeof *p->forms.data, &place)); /* says it */
    *out_form = &p->forms.data[place];
    return UIR_STATUS_OK;
}

/* Where an instruction's operands are, whose it is, what it wants, and what it costs. */
static uir_status parse_form(device_parser *p, uir_legal_row *row) {
    const uir_machine *d = p->machine;
    for (;;) {
        bool is_number;
        UIR_TRY(parse_number(p, legal_numbers, LENGTH(legal_numbers), row, &is_number));
        if (is_number) continue;
        if (uir_tokenizer_accept(p->tokens, "as")) {
            const named_form *form;
            UIR_TRY(find_form(p, &form));
            take_form(row, &form->row);
        } else if (uir_tokenizer_accept(p->tokens, "into")) {
            UIR_TRY(parse_spaces(p, &row->spaces_result));
        } else if (uir_tokenizer_accept(p->tokens, "from")) {
            UIR_TRY(parse_spaces(p, &row->spaces_operand));
        } else if (uir_tokenizer_accept(p->tokens, "on")) {
            UIR_TRY(parse_kinds(p, &row->unit_kinds));
        } else if (uir_tokenizer_accept(p->tokens, "by")) {
            uint32_t pipe;
            UIR_TRY(find_word(p, "a pipe", d->pipes, d->pipe_count, sizeof *d->pipes, &pipe));
            row->pipe = (int32_t)pipe;
        } else if (uir_tokenizer_accept(p->tokens, "with")) {
            uint32_t wanted;
            UIR_TRY(parse_words(p, "a constraint", constraints, LENGTH(constraints), &wanted));
            row->constraints |= wanted; /* besides those of a form */
        } else {
            return UIR_STATUS_OK;
        }
    }
}

static uir_status add_legal(device_parser *p, uir_legal_row row) {
    if (p->legal.count + p->own.count == UIR_MACHINE_MAX_LEGAL)
        return uir_tokenizer_error_at(p->tokens, &p->tokens->previous, "more than %d legal instructions",
                                      UIR_MACHINE_MAX_LEGAL);
    return p->common ? uir_vector_push(p->arena, &p->own, row) : uir_vector_push(p->arena, &p->legal, row);
}

static uir_status parse_legal(device_parser *p) {
    uir_vector(const char *) names = {0};
    uir_token at = p->tokens->current;
    uir_legal_row row = {.pipe = -1};
    do {
        const char *name;
        UIR_TRY(parse_iop(p, &name));
        UIR_TRY(uir_vector_push(p->arena, &names, name));
    } while (uir_tokenizer_accept(p->tokens, ","));
    UIR_TRY(uir_tokenizer_expect(p->tokens, "of"));
    UIR_TRY(parse_dtypes(p, &row.dtypes));
    if (uir_tokenizer_accept(p->tokens, "to") || uir_tokenizer_accept(p->tokens, "left"))
        UIR_TRY(parse_dtypes(p, &row.dtypes_other));
    if (uir_tokenizer_accept(p->tokens, "right")) UIR_TRY(parse_dtypes(p, &row.dtypes_right));
    UIR_TRY(parse_form(p, &row));
    if (!row.spaces_result || !row.unit_kinds)
        return uir_tokenizer_error_at(
            p->tokens, &at,
            "a legal instruction needs the spaces of its result (into SPACES) and its kinds of unit (on KINDS)");
    if (row.pipe < 0 && p->machine->pipe_count)
        return uir_tokenizer_error_at(
            p->tokens, &at,
            "a device with pipes needs `by PIPE` on each legal instruction: without it nothing waits for its result");
    for (uint32_t i = 0; i < names.count; i++) {
        row.iop = names.data[i];
        UIR_TRY(add_legal(p, row));
    }
    return UIR_STATUS_OK;
}

/* Takes dtypes, or an instruction (NULL: none), out of rows; how many are left. */
static uint32_t take_away(uir_legal_row *rows, uint32_t count, uint32_t dtypes, const char *iop) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uir_legal_row row = rows[i];
        bool had_other = row.dtypes_other, had_right = row.dtypes_right;
        row.dtypes &= ~dtypes;
        row.dtypes_other &= ~dtypes;
        row.dtypes_right &= ~dtypes;
        if (!row.dtypes || (had_other && !row.dtypes_other) || (had_right && !row.dtypes_right) ||
            (iop && strcmp(iop, row.iop) == 0))
            continue;
        rows[kept++] = row;
    }
    return kept;
}

/* Takes rows away that the chip has so far: an instruction, or a dtype of all. */
static uir_status parse_without(device_parser *p) {
    uint32_t dtypes = 0;
    const char *iop = NULL;
    if (uir_tokenizer_accept(p->tokens, "dtypes")) {
        UIR_TRY(parse_dtypes(p, &dtypes));
    } else {
        UIR_TRY(parse_iop(p, &iop));
    }
    p->own.count = take_away(p->own.data, p->own.count, dtypes, iop);
    p->legal.count = take_away(p->legal.data, p->legal.count, dtypes, iop);
    return UIR_STATUS_OK;
}

/* ---- the whole ---- */
/* `numbers`: a number may stand behind each name; NULL: none may. */
static uir_status parse_names(device_parser *p, const char *what, const char **names, uint32_t most, uint32_t *count,
                              uint32_t *numbers) {
    do {
        if (*count == most) return uir_tokenizer_error(p->tokens, "a device has at most %u of these", most);
        UIR_TRY(expect_new_name(p, what, &names[*count]));
        for (uint32_t i = 0; i < *count; i++)
            if (strcmp(names[i], names[*count]) == 0)
                return uir_tokenizer_error_at(p->tokens, &p->tokens->previous, "named twice");
        if (numbers && p->tokens->current.kind == UIR_TOKEN_INTEGER) {
            uir_token at = p->tokens->current;
            int64_t number;
            UIR_TRY(uir_tokenizer_expect_integer(p->tokens, &number));
            if (number < 1 || number > 1024)
                return uir_tokenizer_error_at(p->tokens, &at, "a group has 1 to 1024 units of a kind");
            UIR_TRY(parse_source(p));
            numbers[*count] = (uint32_t)number;
        }
        ++*count;
    } while (uir_tokenizer_accept(p->tokens, ","));
    return UIR_STATUS_OK;
}

static uir_status parse_item(device_parser *p) {
    bool found;
    UIR_TRY(parse_number(p, device_numbers, LENGTH(device_numbers), p->machine, &found));
    if (found) return UIR_STATUS_OK;
    if (uir_tokenizer_accept(p->tokens, "source")) {
        const char *name;
        UIR_TRY(uir_tokenizer_expect_name(p->tokens, "a source", &name));
        if (p->tokens->current.kind != UIR_TOKEN_STRING)
            return uir_tokenizer_error(p->tokens, "expected the origin of the numbers, in quotes");
        uir_tokenizer_advance(p->tokens);
        return put_name(p, &p->source_names, name, 0);
    }
    if (uir_tokenizer_accept(p->tokens, "kinds"))
        return parse_names(p, "a kind of unit", p->machine->unit_kinds, UIR_MACHINE_MAX_UNIT_KINDS,
                           &p->machine->unit_kind_count, p->machine->unit_counts);
    if (uir_tokenizer_accept(p->tokens, "pipes"))
        return parse_names(p, "a pipe", p->machine->pipes, UIR_MACHINE_MAX_PIPES, &p->machine->pipe_count, NULL);
    if (uir_tokenizer_accept(p->tokens, "device_barrier")) {
        p->machine->has_device_barrier = true;
        return UIR_STATUS_OK;
    }
    if (uir_tokenizer_accept(p->tokens, "dtypes")) {
        named_mask set;
        UIR_TRY(expect_new_name(p, "a set of dtypes", &set.name));
        UIR_TRY(uir_tokenizer_expect(p->tokens, "="));
        UIR_TRY(parse_dtypes(p, &set.mask));
        UIR_TRY(put_name(p, &p->dtype_names, set.name, p->dtypes.count));
        return uir_vector_push(p->arena, &p->dtypes, set);
    }
    if (uir_tokenizer_accept(p->tokens, "form")) {
        named_form form = {.row.pipe = -1};
        UIR_TRY(uir_tokenizer_expect_name(p->tokens, "a form", &form.name));
        UIR_TRY(uir_tokenizer_expect(p->tokens, "="));
        UIR_TRY(parse_form(p, &form.row));
        if (uir_names_get(&p->form_names, form.name, strlen(form.name)) == UIR_NAMES_NONE)
            UIR_TRY(put_name(p, &p->form_names, form.name, p->forms.count));
        return uir_vector_push(p->arena, &p->forms, form);
    }
    if (uir_tokenizer_accept(p->tokens, "space")) return parse_space(p);
    if (uir_tokenizer_accept(p->tokens, "legal")) return parse_legal(p);
    if (p->common && uir_tokenizer_accept(p->tokens, "without")) return parse_without(p);
    return uir_tokenizer_error(
        p->tokens,
        "expected an item of a device: source, kinds, pipes, dtypes, form, space, legal, device_barrier or a number%s",
        p->common ? ", without, or '}'" : ", or a chip");
}

/* What readers of a device may rely on. */
static uir_status check_device(device_parser *p, const uir_token *at) {
    const uir_machine *d = p->machine;
    uint32_t all_roles = 0;
    if (!d->unit_kind_count) return uir_tokenizer_error_at(p->tokens, at, "the device has no kind of unit");
    for (uint32_t i = 0; i < d->space_count; i++) {
        const uir_space *s = &d->spaces[i];
        all_roles |= s->roles;
        if (!s->unit_kinds)
            return uir_tokenizer_error_at(p->tokens, at, "no kind of unit reaches %s: add `reached_by KINDS`", s->name);
        if (!(s->roles & UIR_SPACE_MEMORY) && !s->capacity)
            return uir_tokenizer_error_at(p->tokens, at, "%s is on the chip and has no capacity", s->name);
        if ((s->roles & UIR_SPACE_MEMORY) && s->scope != UIR_SCOPE_DEVICE)
            return uir_tokenizer_error_at(p->tokens, at, "%s is the device's memory and not `of device`", s->name);
        if (s->alignment & (s->alignment - 1))
            return uir_tokenizer_error_at(p->tokens, at, "the alignment of %s is not a power of two", s->name);
        if (s->blocks ? !s->block_lines || !s->block_bytes == !s->block_elements
                      : s->block_lines || s->block_bytes || s->block_elements)
            return uir_tokenizer_error_at(
                p->tokens, at, "%s: blocks need `blocks ORDER`, block_lines and one of block_bytes and block_elements",
                s->name);
        if (s->block_bytes % 8)
            return uir_tokenizer_error_at(p->tokens, at, "%s: block_bytes must be a multiple of 8", s->name);
        if (s->working_set > s->capacity && s->capacity)
            return uir_tokenizer_error_at(p->tokens, at, "the working set of %s exceeds its capacity", s->name);
    }
    if (!(all_roles & UIR_SPACE_MEMORY))
        return uir_tokenizer_error_at(p->tokens, at, "no space is the device's memory: add `roles memory` to one");
    return UIR_STATUS_OK;
}

/* A chip: what all have, and what it says itself. */
static uir_status parse_chip(device_parser *common, uir_machine_vector *devices, uint32_t first) {
    device_parser chip = *common;
    uir_token at = common->tokens->current;
    uir_machine *machine;
    if (at.kind != UIR_TOKEN_STRING || !at.length || at.length > UIR_MACHINE_MAX_NAME || strlen(at.text) != at.length)
        return uir_tokenizer_error(common->tokens, "expected the chip's name, in quotes, of at most %d characters",
                                   UIR_MACHINE_MAX_NAME);
    for (uint32_t i = first; i < devices->count; i++)
        if (strcmp(devices->data[i]->chip, at.text) == 0)
            return uir_tokenizer_error(common->tokens, "this chip is described already");
    if (devices->count - first == UIR_MACHINE_MAX_CHIPS)
        return uir_tokenizer_error(common->tokens, "more than %d chips", UIR_MACHINE_MAX_CHIPS);
    uir_tokenizer_advance(common->tokens);
    UIR_TRY_ALLOCATE(machine, uir_arena_copy(common->arena, common->machine, sizeof *machine));
    const uir_machine *like = NULL;
    if (uir_tokenizer_accept(common->tokens, "like")) {
        const uir_token *token = &common->tokens->current;
        for (uint32_t i = first; i < devices->count && token->kind == UIR_TOKEN_STRING; i++)
            if (token_is(token, devices->data[i]->chip)) like = devices->data[i];
        if (!like) return uir_tokenizer_error(common->tokens, "expected the name of an earlier chip, in quotes");
        *machine = *like;
        uir_tokenizer_advance(common->tokens);
    }
    machine->chip = at.text;
    machine->is_first_chip = devices->count == first;
    chip.machine = machine;
    chip.common = common;
    chip.source_names = chip.dtype_names = chip.form_names = (uir_names){{0}, {0}};
    chip.legal.data = NULL;
    chip.legal.count = chip.legal.capacity = 0;
    const uir_legal_row *rows = like ? like->legal : common->legal.data;
    for (uint32_t i = 0; i < (like ? like->legal_count : common->legal.count); i++)
        UIR_TRY(uir_vector_push(chip.arena, &chip.legal, rows[i]));
    UIR_TRY(uir_tokenizer_expect(chip.tokens, "{"));
    while (!uir_tokenizer_accept(chip.tokens, "}")) UIR_TRY(parse_item(&chip));
    for (uint32_t i = 0; i < chip.legal.count; i++) UIR_TRY(uir_vector_push(chip.arena, &chip.own, chip.legal.data[i]));
    machine->legal = chip.own.data;
    machine->legal_count = chip.own.count;
    UIR_TRY(check_device(&chip, &at));
    return uir_vector_push(common->arena, devices, machine);
}

static uir_status parse_device(uir_tokenizer *tokens, uir_arena *arena, uir_names *names, uir_machine_vector *devices) {
    device_parser p = {.tokens = tokens, .arena = arena};
    uint32_t first = devices->count;
    UIR_TRY_ALLOCATE(p.machine, uir_arena_allocate(arena, sizeof *p.machine));
    set_least(device_numbers, LENGTH(device_numbers), p.machine);
    UIR_TRY(uir_tokenizer_expect(tokens, "device"));
    uir_token at = tokens->current;
    UIR_TRY(expect_new_name(&p, "a device", &p.machine->name));
    if (uir_names_get(names, p.machine->name, strlen(p.machine->name)) != UIR_NAMES_NONE)
        return uir_tokenizer_error_at(tokens, &at, "a device of this name is described already");
    UIR_TRY(uir_tokenizer_expect(tokens, "{"));
    while (!uir_tokenizer_is(tokens, "chip")) UIR_TRY(parse_item(&p));
    while (uir_tokenizer_accept(tokens, "chip")) UIR_TRY(parse_chip(&p, devices, first));
    if (devices->count > first) UIR_TRY(put_name(&p, names, p.machine->name, first));
    return uir_tokenizer_expect(tokens, "}");
}

uir_status uir_machine_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                             uir_diagnostics *diagnostics, uir_machine_vector *devices) {
    uir_tokenizer tokens;
    uir_location location = {.file = file};
    if (length > UIR_MACHINE_MAX_TEXT_BYTES)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, &location, "a description has at most %u bytes",
                         UIR_MACHINE_MAX_TEXT_BYTES);
    device_parser before = {.arena = arena};
    uir_names names = {{0}, {0}}; /* of devices */
    for (uint32_t i = 0; i < devices->count; i++) UIR_TRY(put_name(&before, &names, devices->data[i]->name, i));
    uir_tokenizer_init(&tokens, text, length, file, arena, diagnostics);
    do UIR_TRY(parse_device(&tokens, arena, &names, devices));
    while (tokens.current.kind != UIR_TOKEN_END);
    return UIR_STATUS_OK;
}

/* ---- printing ---- */
static void print_numbers(const number_row *rows, uint32_t count, const void *object, const char *before,
                          uir_text *text) {
    for (uint32_t i = 0; i < count; i++) {
        const char *member = (const char *)object + rows[i].offset;
        uint64_t integer = 0;
        uint32_t small;
        double rate = 0;
        if (rows[i].type == BYTES) memcpy(&integer, member, sizeof integer);
        if (rows[i].type == RATE) memcpy(&rate, member, sizeof rate);
        if (rows[i].type == COUNT) {
            memcpy(&small, member, sizeof small);
            integer = small;
        }
        if (rows[i].type == RATE ? rate == 0 : integer == (uint64_t)rows[i].least) continue;
        uir_text_append_format(text, "%s%s ", before, rows[i].word);
        if (rows[i].type == RATE) {
            uir_text_append_double(text, rate);
        } else {
            uir_text_append_format(text, "%llu", (unsigned long long)integer);
        }
        uir_text_append_string(text, " @given");
    }
}

/* Names of a table's rows, which begin with their name, by the bits set. */
static void print_mask(uint32_t mask, const char *before, const void *rows, uint32_t count, size_t stride,
                       uir_text *text) {
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        if (!(mask >> i & 1)) continue;
        memcpy(&name, (const char *)rows + i * stride, sizeof name);
        uir_text_append_format(text, "%s%s", before, name);
        before = ", ";
    }
}

static void print_words(uint32_t bits, const char *before, const word_row *rows, uint32_t count, uir_text *text) {
    for (uint32_t i = 0; i < count; i++) {
        if (!(bits & rows[i].bits)) continue;
        uir_text_append_format(text, "%s%s", before, rows[i].word);
        before = ", ";
    }
}

static void print_dtypes(uint32_t mask, const char *before, uir_text *text) {
    for (uint32_t i = 0; i < 32; i++) {
        if (!(mask >> i & 1)) continue;
        uir_text_append_format(text, "%s%s", before, uir_dtype_name((uir_dtype)i));
        before = ", ";
    }
}

static void print_space(const uir_machine *d, const uir_space *s, uir_text *text) {
    uir_text_append_format(text, "  space %s {", s->name);
    print_words(s->roles, " roles ", roles, LENGTH(roles), text);
    for (uint32_t i = 0; i < LENGTH(scopes); i++)
        if (scopes[i].bits == (uint32_t)s->scope) uir_text_append_format(text, " of %s", scopes[i].word);
    print_mask(s->unit_kinds, " reached_by ", d->unit_kinds, d->unit_kind_count, sizeof *d->unit_kinds, text);
    if (s->is_cache) uir_text_append_string(text, " cache");
    if (s->blocks) uir_text_append_format(text, " blocks %s", uir_space_blocks_name(s->blocks));
    print_numbers(space_numbers, LENGTH(space_numbers), s, " ", text);
    uir_text_append_string(text, " }\n");
}

static void print_legal(const uir_machine *d, const uir_legal_row *row, uir_text *text) {
    uir_text_append_format(text, "  legal %s", row->iop);
    print_dtypes(row->dtypes, " of ", text);
    print_dtypes(row->dtypes_other, " to ", text);
    print_dtypes(row->dtypes_right, " right ", text);
    print_mask(row->spaces_result, " into ", d->spaces, d->space_count, sizeof *d->spaces, text);
    print_mask(row->spaces_operand, " from ", d->spaces, d->space_count, sizeof *d->spaces, text);
    print_mask(row->unit_kinds, " on ", d->unit_kinds, d->unit_kind_count, sizeof *d->unit_kinds, text);
    if (row->pipe >= 0) uir_text_append_format(text, " by %s", d->pipes[row->pipe]);
    print_words(row->constraints, " with ", constraints, LENGTH(constraints), text);
    print_numbers(legal_numbers, LENGTH(legal_numbers), row, " ", text);
    uir_text_append_string(text, "\n");
}

void uir_machine_print(const uir_machine *d, uir_text *text) {
    uir_text_append_format(text, "device %s {\n  source given \"the description that this was printed from\"\n",
                           d->name);
    for (uint32_t i = 0; i < d->unit_kind_count; i++) {
        uir_text_append_format(text, "%s%s", i ? ", " : "  kinds ", d->unit_kinds[i]);
        if (d->unit_counts[i]) uir_text_append_format(text, " %u @given", d->unit_counts[i]);
    }
    print_mask(UINT32_MAX, "\n  pipes ", d->pipes, d->pipe_count, sizeof *d->pipes, text);
    if (d->has_device_barrier) uir_text_append_string(text, "\n  device_barrier");
    print_numbers(device_numbers, LENGTH(device_numbers), d, "\n  ", text);
    uir_text_append_string(text, "\n");
    for (uint32_t i = 0; i < d->space_count; i++) print_space(d, &d->spaces[i], text);
    for (uint32_t i = 0; i < d->legal_count; i++) print_legal(d, &d->legal[i], text);
    uir_text_append_string(text, "  chip ");
    uir_text_append_quoted(text, d->chip, strlen(d->chip));
    uir_text_append_string(text, " {}\n}\n");
}
