/* The devices of this build: whether each is there, why not, and its chips. */
#include "api/internal.h"
#include "backends/devices/devices.h"

#include <string.h>

uir_status uir_device_list_add(uir_device_list *list, const char *name, const char *why) {
    uir_device_entry entry = {.name = uir_arena_copy_string(&list->arena, name, strlen(name)),
                              .why = uir_arena_copy_string(&list->arena, why, strlen(why))};
    if (!entry.name || !entry.why) return UIR_STATUS_OUT_OF_MEMORY;
    return uir_vector_push(&list->arena, &list->entries, entry);
}

uir_status uir_device_list_add_chip(uir_device_list *list, uint32_t entry, const char *chip) {
    const char *copy;
    UIR_TRY_ALLOCATE(copy, uir_arena_copy_string(&list->arena, chip, strlen(chip)));
    return uir_vector_push(&list->arena, &list->entries.data[entry].chips, copy);
}

/* The first problem that a driver tells of. */
static uir_status ask_driver(const uir_device_row *row, const uir_allocator *allocator, uir_text *why) {
    const uir_driver_options options = {
        .allocator = allocator, .formats = row->formats, .format_count = uir_device_count_formats(row)};
    uir_diagnostics said;
    uint32_t count = 0;
    uir_diagnostics_init(&said, allocator);
    uir_status status = row->driver->count(&options, &said, &count);
    if (status != UIR_STATUS_OK)
        uir_text_append_format(why, "%s", said.first ? said.first->message : uir_status_text(status));
    else if (!count)
        uir_text_append_format(why, "its driver finds no device");
    uir_diagnostics_deinit(&said);
    return status == UIR_STATUS_OUT_OF_MEMORY ? status : uir_text_status(why);
}

uir_status uir_device_list_add_row(uir_device_list *list, const uir_device_row *row) {
    uir_status status = UIR_STATUS_OK;
    uir_text why;
    uir_text_init(&why, &list->allocator);
    if (uir_device_has_driver(row)) status = ask_driver(row, &list->allocator, &why);
    if (status == UIR_STATUS_OK) status = uir_device_list_add(list, row->name, why.data ? why.data : "");
    uir_text_deinit(&why);
    return status;
}

static uir_status fill(uir_call *call, uir_device_list *list) {
    const char *name;
    for (size_t i = 0; (name = uir_device_name(i)) != NULL; i++) {
        const uir_device_row *row = uir_device_find(name, NULL);
        UIR_TRY(row ? uir_device_list_add_row(list, row) : uir_device_list_add(list, name, ""));
    }
    return uir_device_list_add_machines(call, list);
}

uir_status uir_device_list_create(uir_context *context, uir_device_list **out_list) {
    uir_call call;
    uir_device_list *list;
    *out_list = NULL;
    uir_call_begin(&call, context);
    list = uir_allocate_zeroed(&context->allocator, sizeof *list);
    uir_status status = list ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    if (list) {
        list->allocator = context->allocator;
        uir_arena_init(&list->arena, &list->allocator);
        status = fill(&call, list);
    }
    if (status == UIR_STATUS_OK)
        *out_list = list;
    else
        uir_device_list_destroy(list);
    return uir_call_end(&call, status, "listing devices");
}

void uir_device_list_destroy(uir_device_list *list) {
    if (!list) return;
    const uir_allocator allocator = list->allocator;
    uir_arena_deinit(&list->arena);
    uir_release(&allocator, list, sizeof *list);
}

uir_status uir_device_list_get(const uir_device_list *list, size_t index, uir_device_report *out_report) {
    if (index >= list->entries.count) return UIR_STATUS_INVALID_ARGUMENT;
    const uir_device_entry *entry = &list->entries.data[index];
    const uir_device_report known = {.name = entry->name,
                                     .is_there = !*entry->why,
                                     .why = entry->why,
                                     .chips = entry->chips.data,
                                     .chip_count = entry->chips.count};
    return UIR_STRUCT_GIVE(NULL, uir_device_report, &known, out_report);
}

/* ---- a mistyped name ---- */
static const char *get_device_name(void *user, size_t index) {
    (void)user;
    return uir_device_name(index);
}

const char *uir_api_guess_device(const char *name) {
    char word[65];
    size_t length = strcspn(name, ":");
    if (length >= sizeof word) return NULL;
    memcpy(word, name, length);
    word[length] = 0;
    return uir_find_nearest(word, get_device_name, NULL);
}
