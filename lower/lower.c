/* A group through all of lowering. */
#include "lower/internal.h"

#include "lower/contraction.h"

uir_status uir_loop_list_add(uir_loop_list *list, uir_loop_function *function) {
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        uir_loop_function **grown =
            uir_reallocate(&list->allocator, list->functions, list->capacity * sizeof *grown, capacity * sizeof *grown);
        if (!grown) {
            uir_loop_function_destroy(function);
            return UIR_STATUS_OUT_OF_MEMORY;
        }
        list->functions = grown;
        list->capacity = capacity;
    }
    list->functions[list->count++] = function;
    return UIR_STATUS_OK;
}

void uir_loop_list_deinit(uir_loop_list *list) {
    for (uint32_t i = 0; i < list->count; i++) uir_loop_function_destroy(list->functions[i]);
    if (list->functions) uir_release(&list->allocator, list->functions, list->capacity * sizeof *list->functions);
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
    while (out->count > before) uir_loop_function_destroy(out->functions[--out->count]);
    if (steps && steps->data) {
        steps->length = mark;
        steps->data[mark] = 0;
    }
    return status;
}

static uir_status schedule(const uir_loop_function *function, const uir_device *device, uir_parameter_choice *choice,
                           uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_loop_function *f;
    uint32_t found;
    UIR_TRY(uir_loop_clone(function, &f));
    uir_status status = uir_contraction_classify(f, device, &found);
    bool rows = status == UIR_STATUS_OK && !uir_contraction_matches(f);
    if (status == UIR_STATUS_OK && !rows && !found)
        status = uir_contraction_schedule(f, device, choice, steps, diagnostics, out);
    else if (status == UIR_STATUS_OK && !rows)
        rows = (status = try_contraction(f, device, choice, steps, diagnostics, out)) == UIR_STATUS_UNSUPPORTED;
    uir_loop_function_destroy(f);
    return rows ? uir_nest_schedule(function, device, steps, diagnostics, out) : status;
}

uir_status uir_lower_schedule(const uir_loop_function *function, const uir_device *device, uir_parameter_choice *choice,
                              uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    if (choice) choice->chosen = (uir_parameters){0};
    UIR_TRY(schedule(function, device, choice, steps, diagnostics, out));
    if (choice && !choice->chosen.tile_count && (choice->given.depth || choice->given.tile_count))
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "@%s: its record of parameters: there is nothing to choose in this kernel", function->name);
    return UIR_STATUS_OK;
}
