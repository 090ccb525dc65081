#include "compile/lower.h"

#include "fusion/fusion.h"
#include "compile/slack.h"

#include <stdio.h>
#include <string.h>

static const char *const stage_names[UIR_MIDDLE_COUNT] = {"fusion", "loop", "schedule", "igraph", "runs"};

const char *uir_middle_stage_name(uint32_t stage) {
    return stage < UIR_MIDDLE_COUNT ? stage_names[stage] : NULL;
}

bool uir_middle_stage_find(const char *name, uir_middle_stage *out_stage) {
    for (uint32_t i = 0; i < UIR_MIDDLE_COUNT; i++) {
        if (strcmp(stage_names[i], name) != 0) continue;
        *out_stage = (uir_middle_stage)i;
        return true;
    }
    return false;
}

static void init(uir_middle *middle, uir_module *module, const uir_middle_options *options,
                 const uir_allocator *allocator) {
    *middle = (uir_middle){.allocator = *allocator, .module = module, .device = options->device};
    uir_arena_init(&middle->arena, allocator);
}

void uir_middle_deinit(uir_middle *middle) {
    for (uint32_t i = 0; i < middle->kernels.count; i++) uir_lowered_deinit(&middle->kernels.data[i].lowered);
    if (middle->allocator.resize) uir_arena_deinit(&middle->arena);
    *middle = (uir_middle){0};
}

bool uir_middle_is_refusal(uir_status status) {
    return status == UIR_STATUS_UNSUPPORTED || status == UIR_STATUS_LIMIT;
}

/* What ends the compile: what the compiler made and does not accept itself is its own fault, whatever the part of it
 * that noticed calls it. */
static uir_status tell(uir_diagnostics *diagnostics, uir_status status, const char *name, const char *stage,
                       const uir_diagnostics *said) {
    const char *why = said->first ? said->first->message : uir_status_text(status);
    if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED)
        return uir_error(diagnostics, status, NULL, "kernel %s, %s: %s", name, stage, why);
    return uir_error_hint(diagnostics, UIR_STATUS_INTERNAL, NULL,
                          "this is a fault of the compiler, please report it; on the device 'interpreter' the model runs",
                          "kernel %s, %s: %s", name, stage, why);
}

/* ---- groups to kernels ---- */
typedef struct work {
    uir_middle *middle;
    const uir_middle_options *options;
    uir_diagnostics *diagnostics;
    uint32_t first_node;            /* groups before it are done */
    uir_strings texts;              /* naive loop ASTs of the kernels that are built here, without a name */
    uir_vector(const char *) built; /* by text: the kernel's name */
    uir_strings names;              /* of all kernels */
} work;

/* What the stages take of the whole, by where they end. */
static const double stage_ends[UIR_MIDDLE_COUNT] = {
    [UIR_MIDDLE_FUSION] = 0.1,  [UIR_MIDDLE_LOOP] = 0.15, [UIR_MIDDLE_SCHEDULE] = 0.75,
    [UIR_MIDDLE_IGRAPH] = 0.95, [UIR_MIDDLE_RUNS] = 1,
};
static uir_status advance(const uir_middle_options *options, uir_middle_stage stage, double fraction) {
    double begin = stage ? stage_ends[stage - 1] : 0;
    return uir_progress_tell(uir_progress_part(options->progress, begin, stage_ends[stage]), stage_names[stage],
                             fraction);
}

/* What the group is mostly about: a contraction, else a reduction, else its last primitive. */
static const char *describe_group(const uir_module *module, const uir_node_info *group) {
    static const uint32_t weights[] = {UIR_TRAIT_CONTRACTION, UIR_TRAIT_REDUCTION};
    uir_graph_id body = uir_node_find_attribute(module, group, "body")->value.graph;
    const uir_graph_info *graph = uir_graph_get(module, body);
    const char *name = "nothing";
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            uir_op op = uir_node_get(module, graph->nodes.data[n])->op;
            if (uir_op_get_row(op)->traits & weights[w]) return uir_op_name(op);
            name = uir_op_name(op);
        }
    return name;
}

/* The name is the first line's; the rest is what the kernel is. */
static uir_status print_nameless(work *w, const uir_loop_function *function, uir_string *out_text) {
    uir_text text;
    uir_text_init(&text, &w->middle->allocator);
    uir_loop_print(function, &text);
    uir_status status = uir_text_status(&text);
    const char *line = text.data ? strchr(text.data, '\n') : NULL;
    if (status == UIR_STATUS_OK && line)
        status = uir_strings_intern(&w->texts, line, text.length - (size_t)(line - text.data), out_text);
    uir_text_deinit(&text);
    return status;
}

static uir_status begin_work(work *w) {
    uir_string name;
    UIR_TRY(uir_strings_init(&w->texts, &w->middle->arena));
    UIR_TRY(uir_strings_init(&w->names, &w->middle->arena));
    UIR_TRY(uir_vector_push(&w->middle->arena, &w->built, NULL)); /* of the empty text */
    for (uint32_t i = 0; i < w->middle->kernels.count; i++) {
        const char *text = w->middle->kernels.data[i].name;
        UIR_TRY(uir_strings_intern(&w->names, text, strlen(text), &name));
    }
    return UIR_STATUS_OK;
}

static uir_status name_kernel(work *w, uir_node_id group, const char *name) {
    uir_attribute attribute = {.kind = UIR_ATTRIBUTE_STRING};
    uir_module *module = w->middle->module;
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &attribute.value.string));
    return uir_node_set_attribute(module, group, "kernel", &attribute);
}

/* Takes the function over. */
static uir_status add_kernel(work *w, uir_node_id group, uir_loop_function *function) {
    uir_string text = {0}, named;
    uir_status status = print_nameless(w, function, &text);
    if (status == UIR_STATUS_OK && text.id < w->built.count) {
        uir_loop_function_destroy(function);
        return name_kernel(w, group, w->built.data[text.id]);
    }
    char name[80];
    uir_middle_kernel kernel = {0};
    uir_budget *budget = w->middle->arena.budget;
    if (status == UIR_STATUS_OK && w->middle->kernels.count >= uir_budget_get_limit(budget, UIR_LIMIT_KERNELS))
        status = uir_budget_refuse(budget, UIR_LIMIT_KERNELS, 0, w->diagnostics, NULL);
    uint32_t number = w->middle->kernels.count;
    do /* of kernels that were dropped, numbers are free again */
        snprintf(name, sizeof name, "k%u_%s", number++,
                 describe_group(w->middle->module, uir_node_get(w->middle->module, group)));
    while (uir_strings_find(&w->names, name, strlen(name), &named));
    if (status == UIR_STATUS_OK) {
        kernel.name = uir_arena_copy_string(&w->middle->arena, name, strlen(name));
        function->name = uir_arena_copy_string(&function->arena, name, strlen(name));
        if (!kernel.name || !function->name) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (status == UIR_STATUS_OK) status = uir_strings_intern(&w->names, name, strlen(name), &named);
    if (status == UIR_STATUS_OK) status = uir_vector_push(&w->middle->arena, &w->built, kernel.name);
    kernel.lowered.naive = function;
    uir_text_init(&kernel.lowered.steps, &w->middle->allocator);
    if (status == UIR_STATUS_OK) status = uir_vector_push(&w->middle->arena, &w->middle->kernels, kernel);
    if (status != UIR_STATUS_OK) {
        uir_lowered_deinit(&kernel.lowered);
        return status;
    }
    return name_kernel(w, group, kernel.name);
}

static uir_status refuse(uir_middle *middle, uir_node_id group, const uir_diagnostics *said) {
    const char *why = said->first ? said->first->message : "it has no kernel";
    uir_middle_refusal refusal = {.group = group};
    uir_node_remove_attribute(middle->module, group, "kernel");
    uir_node_remove_attribute(middle->module, group, "sizes");
    uir_node_remove_attribute(middle->module, group, "slack");
    UIR_TRY_ALLOCATE(refusal.why, uir_arena_copy_string(&middle->arena, why, strlen(why)));
    return uir_vector_push(&middle->arena, &middle->refusals, refusal);
}

static uir_status build_group(work *w, uir_node_id group) {
    uir_loop_function *function = NULL;
    uir_diagnostics said;
    uir_diagnostics_init(&said, &w->middle->allocator);
    uir_status status = uir_lower_build(w->middle->module, group, "kernel", &w->middle->allocator, &said, &function);
    if (status == UIR_STATUS_OK)
        status = add_kernel(w, group, function);
    else if (uir_middle_is_refusal(status))
        status = refuse(w->middle, group, &said);
    else
        status = tell(w->diagnostics, status, describe_group(w->middle->module, uir_node_get(w->middle->module, group)),
                      stage_names[UIR_MIDDLE_LOOP], &said);
    uir_diagnostics_deinit(&said);
    return status;
}

/* In the order of the text, so that the kernels of a module that was read back have the same names. */
static uir_status build_groups(work *w, uir_graph_id graph, uint32_t *seen) {
    uir_module *module = w->middle->module;
    uint32_t count = uir_graph_get(module, graph)->nodes.count;
    for (uint32_t n = 0; n < count; n++) {
        uir_node_id id = uir_graph_get(module, graph)->nodes.data[n];
        uint32_t attributes = uir_node_get(module, id)->attribute_count;
        UIR_TRY(advance(w->options, UIR_MIDDLE_LOOP, (double)(*seen)++ / module->nodes.count));
        if (uir_node_get(module, id)->op == UIR_OP_GROUP) {
            if (id.id >= w->first_node) UIR_TRY(build_group(w, id));
            continue;
        }
        for (uint32_t a = 0; a < attributes; a++) {
            const uir_attribute *attribute = &uir_node_get(module, id)->attributes[a];
            if (attribute->kind == UIR_ATTRIBUTE_GRAPH) UIR_TRY(build_groups(w, attribute->value.graph, seen));
        }
    }
    return UIR_STATUS_OK;
}

/* ---- kernels onwards ---- */
static uir_status form_runs(uir_igraph_list *list, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < list->count; i++) UIR_TRY(uir_igraph_form_runs(list->igraphs[i], diagnostics));
    return UIR_STATUS_OK;
}

/* One more stage for one kernel. */
static uir_status advance_kernel(uir_middle *middle, uir_middle_kernel *kernel, uir_middle_stage stage,
                                 uir_diagnostics *diagnostics) {
    uir_lowered *l = &kernel->lowered;
    switch (stage) {
    case UIR_MIDDLE_SCHEDULE:
        l->scheduled.allocator = middle->allocator;
        return uir_lower_schedule(l->naive, middle->device, &l->choice, &l->steps, diagnostics, &l->scheduled);
    case UIR_MIDDLE_IGRAPH:
        l->igraphs.allocator = middle->allocator;
        for (uint32_t i = 0; i < l->scheduled.count; i++)
            UIR_TRY(uir_lower_kernel(l->scheduled.functions[i], middle->device, &middle->allocator, diagnostics,
                                     &l->igraphs));
        return UIR_STATUS_OK;
    case UIR_MIDDLE_RUNS:
        return form_runs(&l->igraphs, diagnostics);
    default:
        return UIR_STATUS_OK;
    }
}

/* The groups that the kernel was to compute are the interpreter's. */
static uir_status drop_kernel(uir_middle *middle, uint32_t at, const uir_diagnostics *said) {
    uir_module *module = middle->module;
    const char *name = middle->kernels.data[at].name;
    for (uint32_t n = 1; n < module->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        const uir_attribute *kernel = node->op == UIR_OP_GROUP ? uir_node_find_attribute(module, node, "kernel") : NULL;
        if (kernel && !strcmp(uir_string_text(&module->strings, kernel->value.string), name))
            UIR_TRY(refuse(middle, (uir_node_id){n}, said));
    }
    uir_lowered_deinit(&middle->kernels.data[at].lowered);
    middle->kernels.count--;
    memmove(&middle->kernels.data[at], &middle->kernels.data[at + 1],
            (middle->kernels.count - at) * sizeof *middle->kernels.data);
    return UIR_STATUS_OK;
}

static uir_status advance_kernels(uir_middle *middle, const uir_middle_options *options, uir_middle_stage stage,
                                  uint32_t first, uir_diagnostics *diagnostics) {
    for (uint32_t i = first; i < middle->kernels.count;) {
        uir_diagnostics said;
        UIR_TRY(advance(options, stage, (double)i / middle->kernels.count));
        uir_diagnostics_init(&said, &middle->allocator);
        uir_status status = advance_kernel(middle, &middle->kernels.data[i], stage, &said);
        /* What a stage makes of one group, and another part of the compiler refuses, costs that group alone. */
        if (uir_middle_is_refusal(status))
            status = drop_kernel(middle, i, &said);
        else if (status != UIR_STATUS_OK)
            status = tell(diagnostics, status, middle->kernels.data[i].name, stage_names[stage], &said);
        else
            i++;
        uir_diagnostics_deinit(&said);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

/* ---- groups that no kernel computes ---- */
static uir_fusion_options fusion_options(const uir_middle_options *options, uint32_t rewrites_off) {
    return (uir_fusion_options){.device = options->device,
                                .within_nodes = options->within_nodes,
                                .rewrites_off = options->each_alone ? UINT32_MAX : rewrites_off};
}

static uint32_t count_contractions(const uir_module *module, uir_node_id group) {
    const uir_attribute *body = uir_node_find_attribute(module, uir_node_get(module, group), "body");
    const uir_graph_info *graph = uir_graph_get(module, body->value.graph);
    uint32_t count = 0;
    for (uint32_t n = 0; n < graph->nodes.count; n++)
        count += (uir_op_get_row(uir_node_get(module, graph->nodes.data[n])->op)->traits & UIR_TRAIT_CONTRACTION) != 0;
    return count;
}

/* Refused groups of several nodes, of several contractions if asked, become smaller ones. */
static uir_status take_apart(uir_middle *middle, const uir_middle_options *options, bool contractions,
                             uint32_t rewrites_off, uir_diagnostics *diagnostics, bool *out_any) {
    uir_module *module = middle->module;
    uir_node_id *groups;
    uint32_t count = 0, kept = 0;
    UIR_TRY_ALLOCATE(groups, uir_arena_allocate_array(&middle->arena, middle->refusals.count + 1u, sizeof *groups));
    for (uint32_t i = 0; i < middle->refusals.count; i++) {
        uir_middle_refusal refusal = middle->refusals.data[i];
        if (uir_fuse_is_apartable(module, refusal.group) &&
            (!contractions || count_contractions(module, refusal.group) > 1))
            groups[count++] = refusal.group;
        else
            middle->refusals.data[kept++] = refusal;
    }
    middle->refusals.count = kept;
    *out_any = count > 0;
    uir_fusion_options fusion = fusion_options(options, rewrites_off);
    return count ? uir_fuse_apart(module, groups, count, &fusion, diagnostics) : UIR_STATUS_OK;
}

/* As far as all others are. */
static uir_status catch_up(uir_middle *middle, const uir_middle_options *options, uir_middle_stage to,
                           uint32_t first_node, uir_diagnostics *diagnostics) {
    work w = {.middle = middle, .options = options, .diagnostics = diagnostics, .first_node = first_node};
    uint32_t seen = 0, first = middle->kernels.count;
    UIR_TRY(begin_work(&w));
    UIR_TRY(build_groups(&w, middle->module->main, &seen));
    for (uir_middle_stage next = UIR_MIDDLE_SCHEDULE; next <= to; next++)
        UIR_TRY(advance_kernels(middle, options, next, first, diagnostics));
    return UIR_STATUS_OK;
}

/* First products go apart, then everything. */
static uir_status retry_refused(uir_middle *middle, const uir_middle_options *options, uir_middle_stage stage,
                                uir_diagnostics *diagnostics) {
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t first_node = middle->module->nodes.count;
        bool any;
        UIR_TRY(take_apart(middle, options, !round,
                           round ? UINT32_MAX : 1u << UIR_FUSION_ATTENTION | 1u << UIR_FUSION_SIBLINGS, diagnostics,
                           &any));
        if (any) UIR_TRY(catch_up(middle, options, stage, first_node, diagnostics));
    }
    return UIR_STATUS_OK;
}

static uir_status go_on(uir_middle *middle, const uir_middle_options *options, uir_diagnostics *diagnostics) {
    while (middle->stage < options->last) {
        uir_middle_stage next = middle->stage + 1;
        work w = {.middle = middle, .options = options, .diagnostics = diagnostics};
        uint32_t seen = 0;
        UIR_TRY(begin_work(&w));
        UIR_TRY(next == UIR_MIDDLE_LOOP ? build_groups(&w, middle->module->main, &seen)
                                        : advance_kernels(middle, options, next, 0, diagnostics));
        if (next <= UIR_MIDDLE_IGRAPH) UIR_TRY(retry_refused(middle, options, next, diagnostics));
        if (next == UIR_MIDDLE_IGRAPH) UIR_TRY(uir_middle_add_slack(middle, diagnostics));
        middle->stage = next;
    }
    return UIR_STATUS_OK;
}

uir_status uir_middle_run(uir_module *module, const uir_middle_options *options, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics, uir_middle *out_middle) {
    uir_fusion_options fusion = fusion_options(options, 0);
    init(out_middle, module, options, allocator);
    UIR_TRY(advance(options, UIR_MIDDLE_FUSION, 0));
    UIR_TRY(uir_fuse(module, &fusion, diagnostics));
    UIR_TRY(uir_module_verify(module, diagnostics));
    return go_on(out_middle, options, diagnostics);
}

/* ---- text ---- */
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

static void print_kernel(const uir_middle *middle, const uir_lowered *l, uir_text *text) {
    switch (middle->stage) {
    case UIR_MIDDLE_LOOP:
        uir_loop_print(l->naive, text);
        break;
    case UIR_MIDDLE_SCHEDULE:
        print_steps(&l->steps, text);
        for (uint32_t i = 0; i < l->scheduled.count; i++) uir_loop_print(l->scheduled.functions[i], text);
        break;
    case UIR_MIDDLE_IGRAPH:
    case UIR_MIDDLE_RUNS:
        for (uint32_t i = 0; i < l->igraphs.count; i++) uir_igraph_print(l->igraphs.igraphs[i], text);
        break;
    default:
        break;
    }
}

uir_status uir_middle_print_kernel(const uir_middle *middle, const char *name, uir_text *text) {
    for (uint32_t i = 0; i < middle->kernels.count; i++) {
        if (strcmp(middle->kernels.data[i].name, name) != 0) continue;
        print_kernel(middle, &middle->kernels.data[i].lowered, text);
        return uir_text_status(text);
    }
    return UIR_STATUS_NOT_FOUND;
}

uir_status uir_middle_print(const uir_middle *middle, const uir_print_options *options, uir_text *text) {
    UIR_TRY(uir_module_print_with(middle->module, options, text));
    for (uint32_t i = 0; i < middle->kernels.count; i++) {
        uir_text_append_string(text, "\n");
        print_kernel(middle, &middle->kernels.data[i].lowered, text);
    }
    return uir_text_status(text);
}

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

static uir_status find_kernel(uir_middle *middle, const char *name, uir_middle_kernel **out_kernel) {
    for (uint32_t i = 0; i < middle->kernels.count; i++) {
        *out_kernel = &middle->kernels.data[i];
        if (!strcmp((*out_kernel)->name, name)) return UIR_STATUS_OK;
    }
    uir_middle_kernel kernel = {0};
    UIR_TRY_ALLOCATE(kernel.name, uir_arena_copy_string(&middle->arena, name, strlen(name)));
    uir_text_init(&kernel.lowered.steps, &middle->allocator);
    kernel.lowered.scheduled.allocator = kernel.lowered.igraphs.allocator = middle->allocator;
    UIR_TRY(uir_vector_push(&middle->arena, &middle->kernels, kernel));
    *out_kernel = &middle->kernels.data[middle->kernels.count - 1];
    return UIR_STATUS_OK;
}

/* Takes the function over. */
static uir_status keep_function(uir_middle *middle, uir_loop_function *function, uint32_t line, const char *file,
                                uir_diagnostics *diagnostics) {
    uir_middle_kernel *kernel = NULL;
    uir_status status = find_kernel(middle, function->name, &kernel);
    if (status == UIR_STATUS_OK && middle->stage == UIR_MIDDLE_SCHEDULE)
        return uir_loop_list_add(&kernel->lowered.scheduled, function);
    if (status == UIR_STATUS_OK && kernel->lowered.naive)
        status = uir_error(diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = file, .line = line},
                           "two functions are called @%s", function->name);
    if (status != UIR_STATUS_OK)
        uir_loop_function_destroy(function);
    else
        kernel->lowered.naive = function;
    return status;
}

static uir_status keep_igraphs(uir_middle *middle, uir_igraph_list *list, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < list->count; i++) {
        uir_middle_kernel *kernel;
        UIR_TRY(uir_igraph_verify(list->igraphs[i], diagnostics));
        UIR_TRY(find_kernel(middle, list->igraphs[i]->name, &kernel));
        uir_igraph *igraph = list->igraphs[i];
        list->igraphs[i] = NULL;
        UIR_TRY(uir_igraph_list_add(&kernel->lowered.igraphs, igraph));
    }
    return UIR_STATUS_OK;
}

static uir_status parse_part(uir_middle *middle, const char *text, size_t length, uint32_t line, const char *file,
                             uir_diagnostics *diagnostics) {
    bool loops = middle->stage == UIR_MIDDLE_LOOP || middle->stage == UIR_MIDDLE_SCHEDULE;
    if (loops != (text[0] == 'f') || middle->stage == UIR_MIDDLE_FUSION)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = file, .line = line},
                         "the text is not what stage '%s' prints", stage_names[middle->stage]);
    if (loops) {
        uir_loop_function *function;
        UIR_TRY(uir_loop_parse_part(&middle->allocator, text, length, line, file, diagnostics, &function));
        uir_status status = uir_loop_verify(function, diagnostics);
        if (status == UIR_STATUS_OK) return keep_function(middle, function, line, file, diagnostics);
        uir_loop_function_destroy(function);
        return status;
    }
    uir_igraph_list list = {.allocator = middle->allocator};
    const uir_device_list devices = {&middle->device, 1};
    uir_status status =
        uir_igraph_parse_part(&middle->allocator, &devices, text, length, line, file, diagnostics, &list);
    if (status == UIR_STATUS_OK) status = keep_igraphs(middle, &list, diagnostics);
    uir_igraph_list_deinit(&list);
    return status;
}

/* Every kernel that a group names is there. */
static uir_status check_kernels(const uir_middle *middle, const char *file, uir_diagnostics *diagnostics) {
    const uir_module *module = middle->module;
    for (uint32_t n = 1; n < module->nodes.count && middle->stage > UIR_MIDDLE_FUSION; n++) {
        const uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        const uir_attribute *kernel = node->op == UIR_OP_GROUP ? uir_node_find_attribute(module, node, "kernel") : NULL;
        if (!kernel) continue;
        const char *name = uir_string_text(&module->strings, kernel->value.string);
        uint32_t at = 0;
        while (at < middle->kernels.count && strcmp(middle->kernels.data[at].name, name) != 0) at++;
        if (at == middle->kernels.count)
            return uir_error(diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = file},
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
static uir_status keep_steps(uir_middle *middle, const char *text, const char *part, const char *end) {
    const char *begin = part, *name = part + strlen("func @");
    uir_middle_kernel *kernel = NULL;
    size_t length = 0;
    while (name + length < end &&
           (name[length] == '_' || (name[length] >= '0' && name[length] <= '9') ||
            (name[length] >= 'a' && name[length] <= 'z') || (name[length] >= 'A' && name[length] <= 'Z')))
        length++;
    for (uint32_t i = 0; i < middle->kernels.count; i++)
        if (strlen(middle->kernels.data[i].name) == length && !memcmp(middle->kernels.data[i].name, name, length))
            kernel = &middle->kernels.data[i];
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

static uir_status parse(const char *text, size_t length, const char *file, const uir_module *constants,
                        const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_module **out_module,
                        uir_middle *middle) {
    const char *end = text + length, *part = find_part(text, end);
    UIR_TRY(uir_module_parse(allocator, diagnostics, text, (size_t)(part - text), file, constants, out_module));
    middle->module = *out_module;
    UIR_TRY(uir_module_verify(*out_module, diagnostics));
    uint32_t line = 1 + count_lines(text, part);
    while (part < end) {
        const char *next = find_part(part + 1, end);
        UIR_TRY(parse_part(middle, part, (size_t)(next - part), line, file, diagnostics));
        if (middle->stage == UIR_MIDDLE_SCHEDULE) UIR_TRY(keep_steps(middle, text, part, end));
        line += count_lines(part, next);
        part = next;
    }
    return check_kernels(middle, file, diagnostics);
}

uir_status uir_middle_continue(const char *text, size_t length, const char *file, uir_middle_stage from,
                               const uir_module *constants, const uir_middle_options *options,
                               const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_module **out_module,
                               uir_middle *out_middle) {
    *out_module = NULL;
    init(out_middle, NULL, options, allocator);
    out_middle->stage = from;
    UIR_TRY(parse(text, length, file, constants, allocator, diagnostics, out_module, out_middle));
    return go_on(out_middle, options, diagnostics);
}
