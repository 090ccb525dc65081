#include "compile/beside.h"
#include "compile/compile.h"
#include "compile/slack.h"
#include "compile/stages.h"
#include "fusion/fusion.h"
#include "passes/layouts.h"
#include "passes/legalise.h"

#include <stdio.h>
#include <string.h>

void uir_lowering_init(uir_lowering *lowering, uir_module *module, const uir_machine *machine,
                       const uir_allocator *allocator) {
    *lowering = (uir_lowering){.allocator = *allocator, .module = module, .machine = machine};
    uir_arena_init(&lowering->arena, allocator);
}

void uir_lowering_deinit(uir_lowering *lowering) {
    for (uint32_t i = 0; i < lowering->kernels.count; i++) uir_lowered_deinit(&lowering->kernels.data[i].lowered);
    if (lowering->allocator.resize) uir_arena_deinit(&lowering->arena);
    *lowering = (uir_lowering){0};
}

uir_lowering_kernel *uir_lowering_get_kernel(const uir_lowering *lowering, const uir_node_info *node) {
    return node->kernel ? &lowering->kernels.data[node->kernel - 1] : NULL;
}

uir_lowering_kernel *uir_lowering_find_kernel(const uir_lowering *lowering, const char *name) {
    for (uint32_t i = 0; i < lowering->kernels.count; i++)
        if (!strcmp(lowering->kernels.data[i].name, name)) return &lowering->kernels.data[i];
    return NULL;
}

uir_status uir_lowering_add_kernel(uir_lowering *lowering, const char *name, uir_lowering_kernel **out_kernel) {
    uir_lowering_kernel kernel = {0};
    UIR_TRY_ALLOCATE(kernel.name, uir_arena_copy_string(&lowering->arena, name, strlen(name)));
    uir_text_init(&kernel.lowered.steps, &lowering->allocator);
    kernel.lowered.scheduled.allocator = kernel.lowered.igraphs.allocator = lowering->allocator;
    UIR_TRY(uir_vector_push(&lowering->arena, &lowering->kernels, kernel));
    *out_kernel = &lowering->kernels.data[lowering->kernels.count - 1];
    return UIR_STATUS_OK;
}

bool uir_lowering_is_refusal(uir_status status) {
    return status == UIR_STATUS_UNSUPPORTED || status == UIR_STATUS_LIMIT;
}

bool uir_lowering_is_fault(uir_status status) {
    return status != UIR_STATUS_OK && !uir_lowering_is_refusal(status) && status != UIR_STATUS_OUT_OF_MEMORY &&
           status != UIR_STATUS_CANCELLED;
}

static const char fault_hint[] = "report this fault of the compiler; run the model on the device 'interpreter'";

/* What ends the compile. A fault is INTERNAL, whatever the part of the compiler that noticed calls it. */
static uir_status tell(uir_diagnostics *diagnostics, uir_status status, const char *name, const char *stage,
                       const uir_diagnostics *said) {
    const char *why = said->first ? said->first->message : uir_status_text(status);
    if (!uir_lowering_is_fault(status))
        return uir_error(diagnostics, status, NULL, "kernel %s, %s: %s", name, stage, why);
    return uir_error_hint(diagnostics, UIR_STATUS_INTERNAL, NULL, fault_hint, "kernel %s, %s: %s", name, stage, why);
}

/* The same of a stage of the whole module. */
static uir_status tell_whole(uir_diagnostics *diagnostics, uir_status status, uir_stage stage) {
    if (!uir_lowering_is_fault(status) || status == UIR_STATUS_INVALID_ARGUMENT)
        return status; /* the caller's options */
    const char *why = diagnostics && diagnostics->last ? diagnostics->last->message : uir_status_text(status);
    return uir_error_hint(diagnostics, UIR_STATUS_INTERNAL, NULL, fault_hint, "%s: %s", uir_stage_get(stage)->name,
                          why);
}

static uir_status note_fault(uir_lowering *lowering, uir_status status, const char *name, const char *stage,
                             const uir_diagnostics *said) {
    const char *why = said->first ? said->first->message : uir_status_text(status), *fault = NULL;
    uir_text text;
    uir_text_init(&text, &lowering->allocator);
    uir_text_append_format(&text, "kernel %s, %s: %s", name, stage, why);
    if (uir_text_status(&text) == UIR_STATUS_OK)
        fault = uir_arena_copy_string(&lowering->arena, text.data, text.length);
    uir_text_deinit(&text);
    return fault ? uir_vector_push(&lowering->arena, &lowering->faults, fault) : UIR_STATUS_OUT_OF_MEMORY;
}

/* A stage has not made a kernel. OK: that costs the kernel's groups alone; else what the compile ends with. */
static uir_status judge(uir_lowering *lowering, uir_status status, const char *name, uir_stage stage,
                        const uir_diagnostics *said, uir_diagnostics *diagnostics) {
    if (uir_lowering_is_refusal(status)) return UIR_STATUS_OK;
    if (lowering->isolates_faults && uir_lowering_is_fault(status))
        return note_fault(lowering, status, name, uir_stage_get(stage)->name, said);
    return tell(diagnostics, status, name, uir_stage_get(stage)->name, said);
}

/* ---- groups to kernels ---- */
typedef struct work {
    uir_lowering *lowering;
    const uir_compile_call *call;
    const uir_fusion_options *fusion;
    bool is_of_host;            /* builds for the host's machine; else only groups of dtypes that the device lacks */
    uint32_t first_node;        /* groups before it are done */
    uir_strings texts;          /* naive loop ASTs of the kernels that are built here, without a name */
    uir_vector(uint32_t) built; /* by text: the kernel's index */
    uir_strings names;          /* of all kernels */
} work;

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
    uir_text_init(&text, &w->lowering->allocator);
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
    UIR_TRY(uir_strings_init(&w->texts, &w->lowering->arena));
    UIR_TRY(uir_strings_init(&w->names, &w->lowering->arena));
    UIR_TRY(uir_vector_push(&w->lowering->arena, &w->built, 0)); /* of the empty text */
    for (uint32_t i = 0; i < w->lowering->kernels.count; i++) {
        const char *text = w->lowering->kernels.data[i].name;
        UIR_TRY(uir_strings_intern(&w->names, text, strlen(text), &name));
    }
    return UIR_STATUS_OK;
}

static uir_status set_kernel(work *w, uir_node_id group, uint32_t index) {
    uir_attribute attribute = {.kind = UIR_ATTRIBUTE_STRING};
    uir_module *module = w->lowering->module;
    const char *name = w->lowering->kernels.data[index].name;
    uir_node_get(module, group)->kernel = index + 1;
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &attribute.value.string));
    return uir_node_set_attribute(module, group, "kernel", &attribute);
}

/* Takes the function over. */
static uir_status add_kernel(work *w, uir_node_id group, const uir_machine *machine, uir_loop_function *function) {
    uir_string text = {0}, named;
    uir_status status = print_nameless(w, function, &text);
    if (status == UIR_STATUS_OK && text.id < w->built.count) {
        uir_loop_function_destroy(function);
        return set_kernel(w, group, w->built.data[text.id]);
    }
    char name[80];
    uir_lowering_kernel kernel = {0};
    uir_budget *budget = w->lowering->arena.budget;
    if (status == UIR_STATUS_OK && w->lowering->kernels.count >= uir_budget_get_limit(budget, UIR_LIMIT_KERNELS))
        status = uir_budget_refuse(budget, UIR_LIMIT_KERNELS, 0, w->call->diagnostics, NULL);
    uint32_t number = w->lowering->kernels.count;
    do /* of kernels that were dropped, numbers are free again */
        snprintf(name, sizeof name, "k%u_%s", number++,
                 describe_group(w->lowering->module, uir_node_get(w->lowering->module, group)));
    while (uir_strings_find(&w->names, name, strlen(name), &named));
    if (status == UIR_STATUS_OK) {
        kernel.name = uir_arena_copy_string(&w->lowering->arena, name, strlen(name));
        function->name = uir_arena_copy_string(&function->arena, name, strlen(name));
        if (!kernel.name || !function->name) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (status == UIR_STATUS_OK) status = uir_strings_intern(&w->names, name, strlen(name), &named);
    if (status == UIR_STATUS_OK) status = uir_vector_push(&w->lowering->arena, &w->built, w->lowering->kernels.count);
    if (status == UIR_STATUS_OK && w->call->records)
        status = uir_record_identify(machine, uir_string_text(&w->texts, text), uir_string_length(&w->texts, text),
                                     &w->lowering->allocator, &kernel.identity);
    kernel.lowered.naive = function;
    kernel.lowered.machine = machine;
    uir_text_init(&kernel.lowered.steps, &w->lowering->allocator);
    if (status == UIR_STATUS_OK) status = uir_vector_push(&w->lowering->arena, &w->lowering->kernels, kernel);
    if (status != UIR_STATUS_OK) {
        uir_lowered_deinit(&kernel.lowered);
        return status;
    }
    return set_kernel(w, group, w->lowering->kernels.count - 1);
}

static uir_status refuse(uir_lowering *lowering, uir_node_id group, bool is_of_host, const uir_diagnostics *said) {
    const char *why = said->first ? said->first->message : "it has no kernel";
    uir_lowering_refusal refusal = {.group = group, .is_of_host = is_of_host};
    refusal.is_whole =
        uir_node_find_attribute(lowering->module, uir_node_get(lowering->module, group), "slack") != NULL;
    uir_node_remove_attribute(lowering->module, group, "kernel");
    uir_node_get(lowering->module, group)->kernel = 0;
    uir_node_remove_attribute(lowering->module, group, "sizes");
    uir_node_remove_attribute(lowering->module, group, "slack");
    UIR_TRY_ALLOCATE(refusal.why, uir_arena_copy_string(&lowering->arena, why, strlen(why)));
    return uir_vector_push(&lowering->arena, &lowering->refusals, refusal);
}

/* The group is the host's, since the device cannot compute it. */
static uir_status note_placed(uir_lowering *lowering, uir_node_id group, const char *why) {
    uir_lowering_refusal placed = {.group = group};
    UIR_TRY_ALLOCATE(placed.why, uir_arena_copy_string(&lowering->arena, why, strlen(why)));
    return uir_vector_push(&lowering->arena, &lowering->placed, placed);
}

/* The machine that the group's kernel is made for. */
static uir_status choose_machine(work *w, uir_node_id group, const uir_machine **out_machine) {
    uir_lowering *lowering = w->lowering;
    const uir_module *module = lowering->module;
    uir_dtype dtype;
    *out_machine = w->is_of_host ? lowering->host : lowering->machine;
    if (w->is_of_host || !lowering->host) return UIR_STATUS_OK;
    const uir_attribute *body = uir_node_find_attribute(module, uir_node_get(module, group), "body");
    const uir_graph_info *graph = uir_graph_get(module, body->value.graph);
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        char why[120];
        if (!uir_fusion_is_for_host(module, uir_node_get(module, graph->nodes.data[n]), w->fusion, &dtype)) continue;
        *out_machine = lowering->host;
        snprintf(why, sizeof why, "the chip %s has no %s", lowering->machine->chip, uir_dtype_name(dtype));
        return note_placed(lowering, group, why);
    }
    return UIR_STATUS_OK;
}

static uir_status build_group(work *w, uir_node_id group) {
    uir_loop_function *function = NULL;
    const uir_machine *machine;
    uir_diagnostics said;
    UIR_TRY(choose_machine(w, group, &machine));
    uir_diagnostics_init(&said, &w->lowering->allocator);
    uir_status status =
        uir_lower_build(w->lowering->module, group, "kernel", &w->lowering->allocator, &said, &function);
    if (status == UIR_STATUS_OK) {
        status = add_kernel(w, group, machine, function);
    } else {
        const char *name = describe_group(w->lowering->module, uir_node_get(w->lowering->module, group));
        status = judge(w->lowering, status, name, UIR_STAGE_LOOP, &said, w->call->diagnostics);
        if (status == UIR_STATUS_OK) status = refuse(w->lowering, group, machine == w->lowering->host, &said);
    }
    uir_diagnostics_deinit(&said);
    return status;
}

/* In the order of the text, so that the kernels of a module that was read back have the same names. */
static uir_status build_groups(work *w, uir_graph_id graph, uint32_t *seen) {
    uir_module *module = w->lowering->module;
    uint32_t count = uir_graph_get(module, graph)->nodes.count;
    for (uint32_t n = 0; n < count; n++) {
        uir_node_id id = uir_graph_get(module, graph)->nodes.data[n];
        uint32_t attributes = uir_node_get(module, id)->attribute_count;
        UIR_TRY(uir_progress_tell(w->call->progress, uir_stage_get(UIR_STAGE_LOOP)->doing,
                                  (double)(*seen)++ / module->nodes.count));
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
static const uir_machine *machine_of(const uir_lowering *lowering, const uir_lowered *kernel) {
    return kernel->machine ? kernel->machine : lowering->machine;
}

uir_status uir_kernel_schedule(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics) {
    kernel->scheduled.allocator = lowering->allocator;
    if (kernel->given)
        return uir_lower_replay(kernel->naive, machine_of(lowering, kernel), kernel->given, &kernel->steps, diagnostics,
                                &kernel->scheduled);
    return uir_lower_schedule(kernel->naive, machine_of(lowering, kernel), &kernel->choice, &kernel->steps, diagnostics,
                              &kernel->scheduled);
}

uir_status uir_kernel_make_igraphs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics) {
    kernel->igraphs.allocator = lowering->allocator;
    for (uint32_t i = 0; i < kernel->scheduled.count; i++)
        UIR_TRY(uir_lower_kernel(kernel->scheduled.variants[i].function, machine_of(lowering, kernel),
                                 &lowering->allocator, diagnostics, &kernel->igraphs));
    return UIR_STATUS_OK;
}

uir_status uir_kernel_form_runs(const uir_lowering *lowering, uir_lowered *kernel, uir_diagnostics *diagnostics) {
    (void)lowering;
    for (uint32_t i = 0; i < kernel->igraphs.count; i++)
        UIR_TRY(uir_igraph_form_runs(kernel->igraphs.igraphs[i], diagnostics));
    return UIR_STATUS_OK;
}

/* The groups that the kernel was to compute are the interpreter's. */
static uir_status drop_kernel(uir_lowering *lowering, uint32_t at, const uir_diagnostics *said) {
    uir_module *module = lowering->module;
    bool is_of_host = uir_lowering_is_host_kernel(lowering, &lowering->kernels.data[at]);
    for (uint32_t n = 1; n < module->nodes.count; n++) {
        uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        if (node->kernel == at + 1)
            UIR_TRY(refuse(lowering, (uir_node_id){n}, is_of_host, said));
        else if (node->kernel > at + 1)
            node->kernel--;
    }
    uir_lowered_deinit(&lowering->kernels.data[at].lowered);
    lowering->kernels.count--;
    memmove(&lowering->kernels.data[at], &lowering->kernels.data[at + 1],
            (lowering->kernels.count - at) * sizeof *lowering->kernels.data);
    return UIR_STATUS_OK;
}

static bool has_record(const uir_lowered *kernel) {
    const uir_parameters *given = &kernel->choice.given;
    return given->depth || given->every || given->has_stationary || given->tile_count;
}

/* A schedule that is given is what was asked for: nothing takes its place, and what a later stage refuses of it is the
 * text's fault. */
static uir_status refuse_given(const uir_lowering_kernel *kernel, uir_stage stage, uir_status status,
                               const uir_diagnostics *said, uir_diagnostics *diagnostics) {
    if (status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED)
        return tell(diagnostics, status, kernel->name, uir_stage_get(stage)->name, said);
    const uir_location whole = {.file = kernel->lowered.given->file};
    const char *why = said->first ? said->first->message : uir_status_text(status);
    if (stage == UIR_STAGE_SCHEDULE && said->first)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, &said->first->location, "kernel %s: %s", kernel->name, why);
    return uir_error(diagnostics, UIR_STATUS_BAD_FILE, &whole, "kernel %s, %s: %s", kernel->name,
                     uir_stage_get(stage)->name, why);
}

/* What no stage makes of a record, of which nothing is known but that it was given, costs the record alone. */
static uir_status leave_record(uir_lowering *lowering, uir_stage stage, uir_lowering_kernel *kernel,
                               uir_diagnostics *said, const uir_compile_call *call) {
    uir_lowered *l = &kernel->lowered;
    uir_warning(call->diagnostics, NULL, "the tuning record of kernel %s is ignored: %s", kernel->name,
                said->first ? said->first->message : "the record does not fit");
    uir_diagnostics_clear(said);
    uir_loop_list_deinit(&l->scheduled);
    uir_igraph_list_deinit(&l->igraphs);
    l->scheduled = (uir_loop_list){.allocator = lowering->allocator};
    l->igraphs = (uir_igraph_list){.allocator = lowering->allocator};
    l->steps.length = 0;
    l->choice.given = (uir_parameters){0};
    for (uir_stage s = UIR_STAGE_SCHEDULE; s <= stage; s++) UIR_TRY(uir_stage_get(s)->each(lowering, l, said));
    return UIR_STATUS_OK;
}

/* One kernel through a stage: by its record, where there is one that fits. */
static uir_status advance_kernel(uir_lowering *lowering, uir_stage stage, uir_lowering_kernel *kernel,
                                 uir_diagnostics *said, const uir_compile_call *call) {
    const uir_record_source *records = call->records;
    if (call->schedule && stage == UIR_STAGE_SCHEDULE && !strcmp(call->schedule->kernel, kernel->name))
        kernel->lowered.given = &call->schedule->text;
    if (records && stage == UIR_STAGE_SCHEDULE && !kernel->lowered.given) {
        uir_status found = records->find(records->user, &kernel->identity, kernel->name, call->diagnostics,
                                         &kernel->lowered.choice.given);
        if (found != UIR_STATUS_NOT_FOUND) UIR_TRY(found);
    }
    uir_status status = uir_stage_get(stage)->each(lowering, &kernel->lowered, said);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ||
        stage > UIR_STAGE_IGRAPH || !has_record(&kernel->lowered))
        return status;
    return leave_record(lowering, stage, kernel, said, call);
}

/* The kernels from `first` on, through a stage. */
static uir_status advance_kernels(uir_lowering *lowering, uir_stage stage, uint32_t first,
                                  const uir_compile_call *call) {
    const uir_stage_row *row = uir_stage_get(stage);
    for (uint32_t i = first; i < lowering->kernels.count;) {
        uir_diagnostics said;
        UIR_TRY(uir_progress_tell(call->progress, row->doing, (double)i / lowering->kernels.count));
        uir_diagnostics_init(&said, &lowering->allocator);
        uir_status status = advance_kernel(lowering, stage, &lowering->kernels.data[i], &said, call);
        const uir_lowering_kernel *kernel = &lowering->kernels.data[i];
        if (status == UIR_STATUS_OK) {
            i++;
        } else if (kernel->lowered.given) {
            status = refuse_given(kernel, stage, status, &said, call->diagnostics);
        } else {
            status = judge(lowering, status, kernel->name, stage, &said, call->diagnostics);
            if (status == UIR_STATUS_OK) status = drop_kernel(lowering, i, &said);
        }
        uir_diagnostics_deinit(&said);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

/* ---- groups that no kernel computes ---- */
static uir_fusion_options fusion_options(const uir_compile *c, uint32_t rewrites_off) {
    return (uir_fusion_options){.machine = c->lowering.machine,
                                .host = c->lowering.host,
                                .within_nodes = c->options.within_nodes,
                                .rewrites_off = c->options.unfused ? UINT32_MAX : rewrites_off};
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
static uir_status unfuse_refused(uir_compile *c, bool contractions, uint32_t rewrites_off, uir_diagnostics *diagnostics,
                                 bool *out_any) {
    uir_lowering *lowering = &c->lowering;
    uir_module *module = lowering->module;
    uir_node_id *groups;
    uint32_t count = 0, kept = 0;
    UIR_TRY_ALLOCATE(groups, uir_arena_allocate_array(&lowering->arena, lowering->refusals.count + 1u, sizeof *groups));
    for (uint32_t i = 0; i < lowering->refusals.count; i++) {
        uir_lowering_refusal refusal = lowering->refusals.data[i];
        if (!refusal.is_whole && uir_can_unfuse(module, refusal.group) &&
            (!contractions || count_contractions(module, refusal.group) > 1))
            groups[count++] = refusal.group;
        else
            lowering->refusals.data[kept++] = refusal;
    }
    lowering->refusals.count = kept;
    *out_any = count > 0;
    uir_fusion_options fusion = fusion_options(c, rewrites_off);
    return count ? uir_unfuse(module, groups, count, &fusion, diagnostics) : UIR_STATUS_OK;
}

static uir_status build_from(uir_compile *c, uint32_t first_node, const uir_compile_call *call) {
    const uir_fusion_options fusion = fusion_options(c, 0);
    work w = {.lowering = &c->lowering, .call = call, .fusion = &fusion, .first_node = first_node};
    uint32_t seen = 0;
    UIR_TRY(begin_work(&w));
    return build_groups(&w, c->lowering.module->main, &seen);
}

/* Refused groups of a device get kernels of the host. */
static uir_status place_refused(uir_compile *c, const uir_compile_call *call, bool *out_any) {
    uir_lowering *lowering = &c->lowering;
    work w = {.lowering = lowering, .call = call, .is_of_host = true};
    uir_lowering_refusal *refused;
    uint32_t count = 0, kept = 0;
    *out_any = false;
    if (!lowering->host || !lowering->refusals.count) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(refused, uir_arena_allocate_array(&lowering->arena, lowering->refusals.count, sizeof *refused));
    for (uint32_t i = 0; i < lowering->refusals.count; i++) {
        uir_lowering_refusal refusal = lowering->refusals.data[i];
        if (refusal.is_whole || refusal.is_of_host)
            lowering->refusals.data[kept++] = refusal;
        else
            refused[count++] = refusal;
    }
    lowering->refusals.count = kept;
    *out_any = count > 0;
    if (count) UIR_TRY(begin_work(&w));
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(note_placed(lowering, refused[i].group, refused[i].why));
        UIR_TRY(build_group(&w, refused[i].group));
    }
    return UIR_STATUS_OK;
}

static bool has_layouts(const uir_module *module, const uir_value_id *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uir_value_info *info = uir_value_info_get(module, values[i]);
        if (values[i].id && info->layout && !info->constant) return true;
    }
    return false;
}

/* Groups that stay without a kernel stand beside row-major values alone. */
static uir_status convert_around_refused(uir_compile *c, uir_diagnostics *diagnostics, bool *out_any) {
    uir_lowering *lowering = &c->lowering;
    uir_module *module = lowering->module;
    uir_node_id *groups;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(groups, uir_arena_allocate_array(&lowering->arena, lowering->refusals.count + 1u, sizeof *groups));
    for (uint32_t i = 0; i < lowering->refusals.count; i++) {
        uir_node_id group = lowering->refusals.data[i].group;
        const uir_node_info *node = uir_node_get(module, group);
        if (has_layouts(module, node->inputs, node->input_count) ||
            has_layouts(module, node->outputs, node->output_count))
            groups[count++] = group;
    }
    *out_any = count > 0;
    uir_fusion_options fusion = fusion_options(c, 0);
    return count ? uir_convert_around(module, groups, count, &fusion, diagnostics) : UIR_STATUS_OK;
}

enum { PRODUCTS, NODES, HOST, LAYOUTS, ROUNDS };

/* First products go apart, then everything, then the host's kernels compute it, then layouts end where no kernel is;
 * what comes of it goes as far as all others are. */
static uir_status retry_refused(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t first_node = c->lowering.module->nodes.count, first = c->lowering.kernels.count;
        uint32_t off = round ? UINT32_MAX : 1u << UIR_FUSION_ATTENTION | 1u << UIR_FUSION_SIBLINGS;
        bool any;
        UIR_TRY(round <= NODES  ? unfuse_refused(c, round == PRODUCTS, off, call->diagnostics, &any)
                : round == HOST ? place_refused(c, call, &any)
                                : convert_around_refused(c, call->diagnostics, &any));
        if (any && round != HOST) UIR_TRY(build_from(c, first_node, call));
        for (uir_stage s = UIR_STAGE_LOOP + 1; any && s <= stage; s++)
            UIR_TRY(advance_kernels(&c->lowering, s, first, call));
    }
    return UIR_STATUS_OK;
}

/* ---- the stages ---- */
/* A pass that asks for the device. */
static uir_status run_pass(uir_compile *c, uir_stage stage, const uir_compile_call *call,
                           uir_status (*run)(uir_module *module, uir_pass_context *context)) {
    const uir_stage_row *row = uir_stage_get(stage);
    const uir_pass pass = {row->name, run, row->purpose};
    if (!c->lowering.machine) UIR_TRY(uir_compile_begin_lowering(c, call->diagnostics));
    uir_pass_options options = {.check_text = c->options.check_text,
                                .machine = c->lowering.machine,
                                .precision = c->options.precision,
                                .precision_counts = &c->precision,
                                .layouts_left_out = c->options.layouts_left_out};
    return tell_whole(call->diagnostics, uir_passes_run(c->primitives, &pass, 1, &options), stage);
}

uir_status uir_compile_choose_precision(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    return run_pass(c, stage, call, uir_choose_precision);
}

uir_status uir_compile_legalise(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    return run_pass(c, stage, call, uir_legalise);
}

uir_status uir_compile_lay_out(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    return run_pass(c, stage, call, uir_lay_out_images);
}

uir_status uir_compile_choose_winograd(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    return c->options.exact ? UIR_STATUS_OK : run_pass(c, stage, call, uir_choose_winograd);
}

uir_status uir_compile_fuse(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    if (!c->lowering.machine) UIR_TRY(uir_compile_begin_lowering(c, call->diagnostics));
    uir_fusion_options fusion = fusion_options(c, 0);
    c->layouts = uir_count_layouts(c->primitives);
    uir_status status = uir_fuse(c->primitives, &fusion, call->diagnostics);
    if (status == UIR_STATUS_OK) status = uir_module_verify(c->primitives, call->diagnostics);
    return tell_whole(call->diagnostics, status, stage);
}

uir_status uir_compile_build_loops(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    UIR_TRY(build_from(c, 0, call));
    return retry_refused(c, stage, call);
}

uir_status uir_compile_schedule(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    UIR_TRY(advance_kernels(&c->lowering, stage, 0, call));
    return retry_refused(c, stage, call);
}

uir_status uir_compile_make_igraphs(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    UIR_TRY(advance_kernels(&c->lowering, stage, 0, call));
    UIR_TRY(retry_refused(c, stage, call));
    UIR_TRY(uir_lowering_add_host_variants(&c->lowering));
    return uir_lowering_add_slack(&c->lowering, call->diagnostics);
}

uir_status uir_compile_form_runs(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    UIR_TRY(advance_kernels(&c->lowering, stage, 0, call));
    UIR_TRY(retry_refused(c, stage, call));
    return uir_compile_list_igraphs(c);
}
