/* A group through all of lowering. */
#include "lower/internal.h"

#include "lower/contraction.h"

uir_status uir_loop_list_add(uir_loop_list *list, uir_loop_function *function, const uir_text *trace) {
    uir_loop_variant variant = {.function = function};
    uir_text_init(&variant.trace, &list->allocator);
    if (trace && trace->data) uir_text_append(&variant.trace, trace->data, trace->length);
    uir_status status = uir_text_status(&variant.trace);
    if (status == UIR_STATUS_OK && list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        uir_loop_variant *grown =
            uir_reallocate(&list->allocator, list->variants, list->capacity * sizeof *grown, capacity * sizeof *grown);
        if (grown) {
            list->variants = grown;
            list->capacity = capacity;
        } else {
            status = UIR_STATUS_OUT_OF_MEMORY;
        }
    }
    if (status != UIR_STATUS_OK) {
        uir_text_deinit(&variant.trace);
        uir_loop_function_destroy(function);
        return status;
    }
    list->variants[list->count++] = variant;
    return UIR_STATUS_OK;
}

/* Destroys what was added after the first `count`. */
static void truncate_list(uir_loop_list *list, uint32_t count) {
    while (list->count > count) {
        uir_loop_variant *last = &list->variants[--list->count];
        uir_text_deinit(&last->trace);
        uir_loop_function_destroy(last->function);
    }
}

void uir_loop_list_deinit(uir_loop_list *list) {
    truncate_list(list, 0);
    if (list->variants) uir_release(&list->allocator, list->variants, list->capacity * sizeof *list->variants);
    *list = (uir_loop_list){.allocator = list->allocator};
}

void uir_lowered_deinit(uir_lowered *lowered) {
    uir_loop_function_destroy(lowered->naive);
    uir_loop_list_deinit(&lowered->scheduled);
    uir_igraph_list_deinit(&lowered->igraphs);
    uir_text_deinit(&lowered->steps);
    lowered->naive = NULL;
}

/* As a contraction that was not said to be one; UNSUPPORTED: it is not of the tactic's form. */
static uir_status try_contraction(const uir_loop_function *f, const uir_device *device, uir_parameter_choice *choice,
                                  uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_diagnostics said;
    size_t mark = steps ? steps->length : 0;
    uint32_t before = out->count;
    uir_diagnostics_init(&said, &f->allocator);
    uir_status status = uir_contraction_schedule(f, device, choice, steps, &said, out);
    if (status == UIR_STATUS_INVALID_ARGUMENT && said.first)
        uir_error(diagnostics, status, NULL, "%s", said.first->message);
    uir_diagnostics_deinit(&said);
    if (status == UIR_STATUS_OK) return status;
    truncate_list(out, before);
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

static uir_status schedule(const uir_loop_function *function, const uir_device *device, uir_parameter_choice *choice,
                           uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_loop_function *f;
    uint32_t found, first = out->count;
    UIR_TRY(uir_loop_clone(function, &f));
    uir_status status = uir_contraction_classify(f, device, &found);
    bool rows = status == UIR_STATUS_OK && !uir_contraction_matches(f);
    if (status == UIR_STATUS_OK && !rows && !found)
        status = uir_contraction_schedule(f, device, choice, steps, diagnostics, out);
    else if (status == UIR_STATUS_OK && !rows)
        rows = (status = try_contraction(f, device, choice, steps, diagnostics, out)) == UIR_STATUS_UNSUPPORTED;
    uir_loop_function_destroy(f);
    if (status == UIR_STATUS_OK && !rows) status = say_classified(out, first);
    return rows ? uir_nest_schedule(function, device, diagnostics, out) : status;
}

/* The traces of the variants from `first` on. */
static uir_status say_traces(const uir_loop_list *list, uint32_t first, uir_text *steps) {
    for (uint32_t i = first; i < list->count; i++) {
        const uir_text *trace = &list->variants[i].trace;
        if (!trace->length) continue;
        if (list->count > first + 1) uir_text_append_format(steps, "variant %u:\n", i - first + 1);
        uir_text_append(steps, trace->data, trace->length);
    }
    return uir_text_status(steps);
}

uir_status uir_lower_schedule(const uir_loop_function *function, const uir_device *device, uir_parameter_choice *choice,
                              uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uint32_t first = out->count;
    if (choice) choice->chosen = (uir_parameters){0};
    UIR_TRY(schedule(function, device, choice, steps, diagnostics, out));
    if (steps) UIR_TRY(say_traces(out, first, steps));
    if (choice && !choice->chosen.tile_count && (choice->given.depth || choice->given.tile_count))
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "@%s: its record of parameters: there is nothing to choose in this kernel", function->name);
    return UIR_STATUS_OK;
}
