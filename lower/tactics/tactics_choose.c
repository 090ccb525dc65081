/* The tactic of a function, or its schedule as a text: its variants. */
#include "lower/tactics/products/contraction.h"
#include "lower/schedule/contraction_classify.h"
#include "lower/internal.h"
#include "lower/schedule/schedule.h"

#include <string.h>

/* As a contraction that may be none; UNSUPPORTED: it is not of the tactic's form, or no tile fits. */
static uir_status try_contraction(const uir_loop_function *f, const uir_machine *machine, uir_parameter_choice *choice,
                                  uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_diagnostics said;
    size_t mark = steps ? steps->length : 0;
    uint32_t before = out->count;
    uir_diagnostics_init(&said, &f->allocator);
    uir_status status = uir_contraction_schedule(f, machine, choice, steps, &said, out);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_UNSUPPORTED && said.first)
        uir_error(diagnostics, status, NULL, "%s", said.first->message);
    uir_diagnostics_deinit(&said);
    if (status == UIR_STATUS_OK) return status;
    uir_loop_list_truncate(out, before);
    if (steps && steps->data) {
        steps->length = mark;
        steps->data[mark] = 0;
    }
    return status;
}

/* The traces of the variants from `first` on begin with the classification. */
static uir_status say_classified(uir_loop_list *list, uint32_t first) {
    for (uint32_t i = first; i < list->count; i++) {
        uir_text *trace = &list->variants[i].trace, whole;
        if (!trace->length) continue;
        uir_text_init(&whole, &list->allocator);
        uir_text_append_format(&whole, "classify\n%s", trace->data);
        uir_text_deinit(trace);
        *trace = whole;
        UIR_TRY(uir_text_status(trace));
    }
    return UIR_STATUS_OK;
}

uint32_t uir_lower_count_updates(const uir_loop_function *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->statements.count; i++) count += f->statements.data[i].kind == UIR_LOOP_STATEMENT_UPDATE;
    return count;
}

/* A product that no smaller group could have, on a machine that works in a space of its own: where no tile of it fits,
 * its sums are sums like others. */
static bool stands_alone(const uir_loop_function *f, const uir_machine *machine) {
    return uir_machine_find_scratch(machine) >= 0 && uir_lower_count_updates(f) == 1;
}

static uir_status schedule(const uir_loop_function *function, const uir_machine *machine, uir_parameter_choice *choice,
                           uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_loop_function *f;
    uint32_t found, first = out->count;
    UIR_TRY(uir_loop_clone(function, &f));
    uir_status status = uir_contraction_classify(f, machine, &found);
    bool rows = status == UIR_STATUS_OK && !uir_contraction_matches(f);
    if (status == UIR_STATUS_OK && !rows && !found && !stands_alone(f, machine))
        status = uir_contraction_schedule(f, machine, choice, steps, diagnostics, out);
    else if (status == UIR_STATUS_OK && !rows)
        rows = (status = try_contraction(f, machine, choice, steps, diagnostics, out)) == UIR_STATUS_UNSUPPORTED;
    uir_loop_function_destroy(f);
    if (status == UIR_STATUS_OK && !rows) status = say_classified(out, first);
    return rows ? uir_nest_schedule(function, machine, choice, diagnostics, out) : status;
}

/* What a variant's steps begin with where there are several. */
static const char variant_word[] = "variant";

/* The traces of the variants from `first` on. */
static uir_status say_traces(const uir_loop_list *list, uint32_t first, uir_text *steps) {
    for (uint32_t i = first; i < list->count; i++) {
        const uir_text *trace = &list->variants[i].trace;
        if (!trace->length) continue;
        if (list->count > first + 1) uir_text_append_format(steps, "%s %u:\n", variant_word, i - first + 1);
        uir_text_append(steps, trace->data, trace->length);
    }
    return uir_text_status(steps);
}

uir_status uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                              uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                              uir_loop_list *out) {
    uint32_t first = out->count;
    if (choice) choice->chosen = (uir_parameters){0};
    UIR_TRY(schedule(function, machine, choice, steps, diagnostics, out));
    if (steps) UIR_TRY(say_traces(out, first, steps));
    if (choice && !choice->chosen.tile_count &&
        (choice->given.depth || choice->given.has_stationary || choice->given.tile_count))
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "leave out the tuning record of this kernel",
                              "kernel @%s has a tuning record, but its tactic has no choices", function->name);
    return UIR_STATUS_OK;
}

/* ---- a schedule that is given as a text ---- */
/* The text of which every line keeps its columns, without the marks of comments that hold steps. */
static char *unmark(const uir_schedule_text *text, const uir_allocator *allocator) {
    char *plain = uir_allocate(allocator, text->length + 1);
    bool begins = true;
    if (!plain) return NULL;
    memcpy(plain, text->data, text->length);
    plain[text->length] = 0;
    for (size_t i = 0; i < text->length; i++) {
        if (begins && plain[i] == '#' && plain[i + 1] == ' ') plain[i] = ' ';
        begins = plain[i] == '\n';
    }
    return plain;
}

/* Takes a variant's steps. */
static uir_status replay_variant(const uir_loop_function *function, const uir_machine *machine, uir_tokenizer *tokens,
                                 uir_loop_list *out) {
    uir_loop_function *f = NULL;
    uir_schedule *s = NULL;
    uir_status status = uir_loop_clone(function, &f);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(f, machine, tokens->diagnostics, &s);
    if (status == UIR_STATUS_OK) status = uir_schedule_replay_text(s, tokens, variant_word);
    if (status == UIR_STATUS_OK) {
        status = uir_loop_list_add(out, f, uir_schedule_trace(s));
        f = NULL;
    }
    uir_schedule_destroy(s);
    uir_loop_function_destroy(f);
    return status;
}

/* `variant K:`, where the text has any, with the next number. */
static uir_status take_variant(uir_tokenizer *tokens, uint32_t number) {
    int64_t given;
    uir_token at;
    UIR_TRY(uir_tokenizer_expect(tokens, variant_word));
    at = tokens->current;
    UIR_TRY(uir_tokenizer_expect_integer(tokens, &given));
    if (given != number)
        return uir_tokenizer_error_at(tokens, &at, "expected variant %u: variants are numbered from 1", number);
    return uir_tokenizer_expect(tokens, ":");
}

uir_status uir_lower_replay(const uir_loop_function *function, const uir_machine *machine,
                            const uir_schedule_text *text, uir_text *steps, uir_diagnostics *diagnostics,
                            uir_loop_list *out) {
    uint32_t first = out->count, number = 1;
    uir_tokenizer tokens;
    uir_arena arena;
    char *plain = unmark(text, &out->allocator);
    if (!plain) return UIR_STATUS_OUT_OF_MEMORY;
    uir_arena_init(&arena, &out->allocator);
    uir_tokenizer_init(&tokens, plain, text->length, text->file, &arena, diagnostics);
    bool numbered = uir_tokenizer_is(&tokens, variant_word);
    uir_status status;
    do {
        status = numbered ? take_variant(&tokens, number++) : UIR_STATUS_OK;
        if (status == UIR_STATUS_OK) status = replay_variant(function, machine, &tokens, out);
    } while (status == UIR_STATUS_OK && numbered && tokens.current.kind != UIR_TOKEN_END);
    if (status == UIR_STATUS_OK && tokens.current.kind != UIR_TOKEN_END)
        status =
            uir_tokenizer_error(&tokens, "with several variants, the first must also begin with `%s 1:`", variant_word);
    uir_arena_deinit(&arena);
    uir_release(&out->allocator, plain, text->length + 1);
    return status == UIR_STATUS_OK && steps ? say_traces(out, first, steps) : status;
}
