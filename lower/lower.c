/* What becomes of a group: lists of its variants. */
#include "lower/lower.h"

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

void uir_loop_list_truncate(uir_loop_list *list, uint32_t count) {
    while (list->count > count) {
        uir_loop_variant *last = &list->variants[--list->count];
        uir_text_deinit(&last->trace);
        uir_loop_function_destroy(last->function);
    }
}

void uir_loop_list_deinit(uir_loop_list *list) {
    uir_loop_list_truncate(list, 0);
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
