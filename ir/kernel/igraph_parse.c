/* Reads the text of iGraphs: the kernels of a text, each with its device. docs/igraph.md has the grammar. */
#include "ir/kernel/igraph_parse.h"

#include <stdio.h>
#include <string.h>

/* A device's name, and a chip's in quotes where it is not its first one. */
static uir_status parse_device(const uir_machine_list *devices, uir_tokenizer *tokens, const uir_machine **out_device) {
    char known[512] = "";
    size_t length = 0;
    uir_token name = tokens->current, chip;
    *out_device = NULL;
    for (uint32_t i = 0; i < devices->count; i++) {
        const uir_machine *d = devices->devices[i];
        if (!*out_device && uir_tokenizer_is(tokens, d->name)) *out_device = d;
        if (d->is_first_chip && length < sizeof known)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length ? ", " : "", d->name);
    }
    if (!*out_device) return uir_tokenizer_error(tokens, "unknown device; known are: %s", known);
    uir_tokenizer_advance(tokens);
    chip = tokens->current;
    if (chip.kind != UIR_TOKEN_STRING) return UIR_STATUS_OK;
    known[0] = 0, length = 0;
    for (uint32_t i = 0; i < devices->count; i++) {
        const uir_machine *d = devices->devices[i];
        if (strlen(d->name) != name.length || memcmp(d->name, name.text, name.length) != 0) continue;
        if (strlen(d->chip) == chip.length && memcmp(d->chip, chip.text, chip.length) == 0) {
            *out_device = d;
            uir_tokenizer_advance(tokens);
            return UIR_STATUS_OK;
        }
        if (length < sizeof known)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length ? ", " : "", d->chip);
    }
    return uir_tokenizer_error(tokens, "unknown chip; known are: %s", known);
}

static uir_status parse_kernel(const uir_allocator *allocator, const uir_machine_list *devices, uir_tokenizer *tokens,
                               uir_arena *scratch, uir_igraph **out_igraph) {
    UIR_TRY(uir_tokenizer_expect(tokens, "igraph"));
    if (tokens->current.kind != UIR_TOKEN_AT) return uir_tokenizer_error(tokens, "expected @name");
    const char *name;
    UIR_TRY_ALLOCATE(name, uir_arena_copy_string(scratch, tokens->current.text, tokens->current.length));
    uir_tokenizer_advance(tokens);
    UIR_TRY(uir_tokenizer_expect(tokens, "on"));
    const uir_machine *machine;
    UIR_TRY(parse_device(devices, tokens, &machine));
    uir_igraph *igraph;
    UIR_TRY(uir_igraph_create(allocator, name, machine, &igraph));
    igraph->synchronised = uir_tokenizer_accept(tokens, "synchronised");
    if (tokens->file) igraph->file = uir_arena_copy_string(&igraph->arena, tokens->file, strlen(tokens->file));
    uir_iparser parser = {.igraph = igraph, .tokens = tokens, .diagnostics = tokens->diagnostics, .scratch = scratch};
    uir_status status = uir_iparse_kernel_body(&parser);
    if (status != UIR_STATUS_OK) {
        uir_igraph_destroy(igraph);
        return status;
    }
    *out_igraph = igraph;
    return UIR_STATUS_OK;
}

uir_status uir_igraph_parse_list(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                                 size_t length, const char *file, uir_diagnostics *diagnostics,
                                 uir_igraph_list *out_list) {
    return uir_igraph_parse_part(allocator, devices, text, length, 1, file, diagnostics, out_list);
}

uir_status uir_igraph_parse_part(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                                 size_t length, uint32_t line, const char *file, uir_diagnostics *diagnostics,
                                 uir_igraph_list *out_list) {
    *out_list = (uir_igraph_list){.allocator = *allocator};
    uir_arena scratch;
    uir_tokenizer tokens;
    uir_arena_init(&scratch, allocator);
    uir_tokenizer_init_part(&tokens, text, length, line, file, &scratch, diagnostics);
    uir_status status = UIR_STATUS_OK;
    do {
        uir_igraph *igraph = NULL;
        status = parse_kernel(allocator, devices, &tokens, &scratch, &igraph);
        if (status == UIR_STATUS_OK) status = uir_igraph_list_add(out_list, igraph);
    } while (status == UIR_STATUS_OK && tokens.current.kind != UIR_TOKEN_END);
    uir_arena_deinit(&scratch);
    if (status != UIR_STATUS_OK) uir_igraph_list_deinit(out_list);
    return status;
}

uir_status uir_igraph_parse(const uir_allocator *allocator, const uir_machine_list *devices, const char *text,
                            size_t length, const char *file, uir_diagnostics *diagnostics, uir_igraph **out_igraph) {
    uir_igraph_list list;
    *out_igraph = NULL;
    UIR_TRY(uir_igraph_parse_list(allocator, devices, text, length, file, diagnostics, &list));
    uir_status status = UIR_STATUS_OK;
    if (list.count != 1) {
        uir_location location = {.file = file};
        status = uir_error(diagnostics, UIR_STATUS_BAD_FILE, &location,
                           "the text holds %u kernels; exactly one is expected", list.count);
    } else {
        *out_igraph = list.igraphs[0];
        list.count = 0;
    }
    uir_igraph_list_deinit(&list);
    return status;
}
