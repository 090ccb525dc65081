/* The stages' texts, both ways.
 *
 * A text is the module's, then what the stage made: `func @k3_softmax {...}` or `igraph @k3_softmax on cpu {...}`, the
 * variants of a kernel one after the other under one name. */
#include "compile/kernel.h"
#include "compile/stages.h"

#include <string.h>

/* ---- printing ---- */
static void print_steps(const uir_text *steps, uir_text *text) {
    const char *at = steps->data;
    size_t left = at ? steps->length : 0;
    while (left) {
        const char *end = memchr(at, '\n', left);
        size_t length = end ? (size_t)(end - at) : left;
        uir_text_append_string(text, "# ");
        uir_text_append(text, at, length);
        uir_text_append_string(text, "\n");
        left -= length + (end ? 1 : 0);
        at += length + 1;
    }
}

static void print_kernel(uir_stage stage, const uir_lowered *l, uir_text *text) {
    if (stage == UIR_STAGE_LOOP) uir_loop_print(l->naive, text);
    if (stage == UIR_STAGE_SCHEDULE) print_steps(&l->steps, text);
    for (uint32_t i = 0; stage == UIR_STAGE_SCHEDULE && i < l->scheduled.count; i++)
        uir_loop_print(l->scheduled.variants[i].function, text);
    for (uint32_t i = 0; stage > UIR_STAGE_SCHEDULE && i < l->igraphs.count; i++)
        uir_igraph_print(l->igraphs.igraphs[i], text);
}

uir_status uir_compile_print_onnx(const uir_compile *c, uir_stage stage, const uir_print_options *options,
                                  uir_text *text, uir_diagnostics *diagnostics) {
    (void)stage, (void)diagnostics;
    return uir_module_print_with(c->onnx, options, text);
}

uir_status uir_compile_print_primitives(const uir_compile *c, uir_stage stage, const uir_print_options *options,
                                        uir_text *text, uir_diagnostics *diagnostics) {
    (void)stage, (void)diagnostics;
    return uir_module_print_with(c->primitives, options, text);
}

uir_status uir_compile_print_kernels(const uir_compile *c, uir_stage stage, const uir_print_options *options,
                                     uir_text *text, uir_diagnostics *diagnostics) {
    UIR_TRY(uir_compile_print_primitives(c, stage, options, text, diagnostics));
    for (uint32_t i = 0; i < c->lowering.kernels.count; i++) {
        uir_text_append_string(text, "\n");
        print_kernel(stage, &c->lowering.kernels.data[i].lowered, text);
    }
    return uir_text_status(text);
}

/* `count`: kernels of the text so far. */
static uir_status print_source(const uir_compile *c, const uir_igraph_list *variants, uint32_t *count, uir_text *text,
                               uir_diagnostics *diagnostics) {
    for (uint32_t v = 0; v < variants->count; v++)
        UIR_TRY(uir_compile_emit_kernel(variants->igraphs[v], c->options.emitter, (*count)++, text, diagnostics));
    return uir_text_status(text);
}

uir_status uir_compile_print_sources(const uir_compile *c, uir_stage stage, const uir_print_options *options,
                                     uir_text *text, uir_diagnostics *diagnostics) {
    uint32_t count = 0;
    (void)stage, (void)options;
    for (uint32_t k = 0; k < c->lowering.kernels.count; k++)
        UIR_TRY(print_source(c, &c->lowering.kernels.data[k].lowered.igraphs, &count, text, diagnostics));
    return UIR_STATUS_OK;
}

uir_status uir_compile_print_kernel(const uir_compile *c, uir_stage stage, const char *name, uir_text *text,
                                    uir_diagnostics *diagnostics) {
    const uir_lowering_kernel *kernel = uir_lowering_find_kernel(&c->lowering, name);
    uint32_t count = 0;
    if (!kernel) return UIR_STATUS_NOT_FOUND;
    if (stage == UIR_STAGE_EMIT) return print_source(c, &kernel->lowered.igraphs, &count, text, diagnostics);
    print_kernel(stage, &kernel->lowered, text);
    return uir_text_status(text);
}

/* ---- reading ---- */
/* A text on its way to kernels. */
typedef struct reading {
    uir_compile *c;
    uir_stage stage;
    const uir_compile_text *text;
    uir_diagnostics *diagnostics;
} reading;

/* Where the next function or iGraph begins, at the start of a line; the end when there is none. */
static const char *find_part(const char *at, const char *end) {
    static const char *const words[] = {"func @", "igraph @"};
    for (const char *line = at; line < end;) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t length = strlen(words[i]);
            if ((size_t)(end - line) > length && !memcmp(line, words[i], length)) return line;
        }
        const char *next = memchr(line, '\n', (size_t)(end - line));
        line = next ? next + 1 : end;
    }
    return end;
}

static uir_status find_kernel(reading *r, const char *name, uir_lowering_kernel **out_kernel) {
    *out_kernel = uir_lowering_find_kernel(&r->c->lowering, name);
    return *out_kernel ? UIR_STATUS_OK : uir_lowering_add_kernel(&r->c->lowering, name, out_kernel);
}

/* Takes the function over. */
static uir_status keep_function(reading *r, uir_loop_function *function, uint32_t line) {
    uir_lowering_kernel *kernel = NULL;
    uir_status status = find_kernel(r, function->name, &kernel);
    if (status == UIR_STATUS_OK && r->stage == UIR_STAGE_SCHEDULE)
        return uir_loop_list_add(&kernel->lowered.scheduled, function, NULL);
    if (status == UIR_STATUS_OK && kernel->lowered.naive)
        status = uir_error(r->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = r->text->file, .line = line},
                           "two functions are called @%s", function->name);
    if (status != UIR_STATUS_OK)
        uir_loop_function_destroy(function);
    else
        kernel->lowered.naive = function;
    return status;
}

static uir_status keep_igraphs(reading *r, uir_igraph_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        uir_lowering_kernel *kernel;
        UIR_TRY(uir_igraph_verify(list->igraphs[i], r->diagnostics));
        UIR_TRY(find_kernel(r, list->igraphs[i]->name, &kernel));
        uir_igraph *igraph = list->igraphs[i];
        list->igraphs[i] = NULL;
        UIR_TRY(uir_igraph_list_add(&kernel->lowered.igraphs, igraph));
    }
    return UIR_STATUS_OK;
}

static uir_status read_function(reading *r, const char *part, size_t length, uint32_t line) {
    uir_loop_function *function;
    UIR_TRY(uir_loop_parse_part(&r->c->allocator, part, length, line, r->text->file, r->diagnostics, &function));
    uir_status status = uir_loop_verify(function, r->diagnostics);
    if (status == UIR_STATUS_OK) return keep_function(r, function, line);
    uir_loop_function_destroy(function);
    return status;
}

static uir_status read_igraph(reading *r, const char *part, size_t length, uint32_t line) {
    uir_igraph_list list = {.allocator = r->c->allocator};
    const uir_machine_list devices = {&r->c->lowering.machine, 1};
    uir_status status =
        uir_igraph_parse_part(&r->c->allocator, &devices, part, length, line, r->text->file, r->diagnostics, &list);
    if (status == UIR_STATUS_OK) status = keep_igraphs(r, &list);
    uir_igraph_list_deinit(&list);
    return status;
}

static uir_status read_part(reading *r, const char *part, size_t length, uint32_t line) {
    bool loops = r->stage <= UIR_STAGE_SCHEDULE;
    if (loops != (part[0] == 'f') || r->stage == UIR_STAGE_FUSION)
        return uir_error(r->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = r->text->file, .line = line},
                         "the text is not one that stage '%s' prints", uir_stage_get(r->stage)->name);
    return loops ? read_function(r, part, length, line) : read_igraph(r, part, length, line);
}

/* Numbers the kernels that groups name; each is there. */
static uir_status number_kernels(const reading *r) {
    const uir_lowering *lowering = &r->c->lowering;
    const uir_module *module = r->c->primitives;
    for (uint32_t n = 1; n < module->nodes.count && r->stage > UIR_STAGE_FUSION; n++) {
        uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        const uir_attribute *attribute =
            node->op == UIR_OP_GROUP ? uir_node_find_attribute(module, node, "kernel") : NULL;
        if (!attribute) continue;
        const char *name = uir_string_text(&module->strings, attribute->value.string);
        const uir_lowering_kernel *kernel = uir_lowering_find_kernel(lowering, name);
        if (kernel)
            node->kernel = (uint32_t)(kernel - lowering->kernels.data) + 1;
        else
            return uir_error(r->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = r->text->file},
                             "a group names the kernel @%s, which is not in the file", name);
    }
    return UIR_STATUS_OK;
}

static uint32_t count_lines(const char *at, const char *end) {
    uint32_t lines = 0;
    for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) lines++;
    return lines;
}

/* The steps of a schedule stand as comments above its functions: kept, so that the text is itself again. */
static uir_status keep_steps(const uir_lowering *lowering, const char *text, const char *part, const char *end) {
    const char *begin = part, *name = part + strlen("func @");
    uir_lowering_kernel *kernel = NULL;
    size_t length = 0;
    while (name + length < end &&
           (name[length] == '_' || (name[length] >= '0' && name[length] <= '9') ||
            (name[length] >= 'a' && name[length] <= 'z') || (name[length] >= 'A' && name[length] <= 'Z')))
        length++;
    for (uint32_t i = 0; i < lowering->kernels.count; i++)
        if (strlen(lowering->kernels.data[i].name) == length && !memcmp(lowering->kernels.data[i].name, name, length))
            kernel = &lowering->kernels.data[i];
    while (begin > text) {
        const char *line = begin - 1;
        while (line > text && line[-1] != '\n') line--;
        if (line + 2 > begin || line[0] != '#' || line[1] != ' ') break;
        begin = line;
    }
    for (const char *line = begin; kernel && line < part;) {
        const char *next = (const char *)memchr(line, '\n', (size_t)(part - line)) + 1;
        uir_text_append(&kernel->lowered.steps, line + 2, (size_t)(next - line) - 2);
        line = next;
    }
    return kernel ? uir_text_status(&kernel->lowered.steps) : UIR_STATUS_OK;
}

static uir_status read_module(uir_compile *c, const uir_compile_text *text, size_t length, uir_diagnostics *diagnostics,
                              uir_module **out_module) {
    UIR_TRY(uir_module_parse(&c->allocator, diagnostics, text->data, length, text->file, text->constants, out_module));
    return uir_module_verify(*out_module, diagnostics);
}

uir_status uir_compile_read_onnx(uir_compile *c, uir_stage stage, const uir_compile_text *text,
                                 uir_diagnostics *diagnostics) {
    (void)stage;
    return read_module(c, text, text->length, diagnostics, &c->onnx);
}

uir_status uir_compile_read_primitives(uir_compile *c, uir_stage stage, const uir_compile_text *text,
                                       uir_diagnostics *diagnostics) {
    (void)stage;
    return read_module(c, text, text->length, diagnostics, &c->primitives);
}

uir_status uir_compile_read_kernels(uir_compile *c, uir_stage stage, const uir_compile_text *text,
                                    uir_diagnostics *diagnostics) {
    const char *end = text->data + text->length, *part = find_part(text->data, end);
    reading r = {c, stage, text, diagnostics};
    UIR_TRY(read_module(c, text, (size_t)(part - text->data), diagnostics, &c->primitives));
    UIR_TRY(uir_compile_begin_lowering(c, diagnostics));
    uint32_t line = 1 + count_lines(text->data, part);
    while (part < end) {
        const char *next = find_part(part + 1, end);
        UIR_TRY(read_part(&r, part, (size_t)(next - part), line));
        if (stage == UIR_STAGE_SCHEDULE) UIR_TRY(keep_steps(&c->lowering, text->data, part, end));
        line += count_lines(part, next);
        part = next;
    }
    return number_kernels(&r);
}
