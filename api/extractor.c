/* Subgraphs as models of their own: what the frontend takes apart, with the values of one run. */
#include "frontend/extractor.h"
#include "api/internal.h"
#include "frontend/storage.h"
#include "compile/compile.h"

#include <stdio.h>
#include <string.h>

struct uir_extractor {
    uir_context *context;
    uir_storage *storage; /* of the file */
    uir_onnx_extractor parts;
    uir_datum **results;        /* by parts.recorded; owned */
    const uir_datum **expected; /* by value; NULL: what the run gave */
    uir_text types;             /* of the values */
    uir_onnx_cut cut;           /* written last */
};

/* ---- the run ---- */

/* The types of the recorded values, one after the other; they move until all are there. */
static uir_status keep_types(uir_extractor *p, const uir_module *module) {
    const uir_graph_info *main = uir_graph_get(module, module->main);
    size_t *ends;
    UIR_TRY_ALLOCATE(ends, uir_arena_allocate_array(&p->parts.arena, main->outputs.count + 1, sizeof *ends));
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        UIR_TRY(uir_onnx_print_type(module, uir_value_type(module, main->outputs.data[i]), &p->types));
        ends[i + 1] = p->types.length;
    }
    for (uint32_t i = 0; i < p->parts.recorded.count; i++)
        p->parts.values.data[p->parts.recorded.data[i]].type =
            (uir_onnx_bytes){(const uint8_t *)p->types.data + ends[i], ends[i + 1] - ends[i]};
    return UIR_STATUS_OK;
}

static uir_status interpret(uir_call *call, uir_extractor *p, const uir_module *module, uir_value *const *inputs,
                            const volatile bool *cancel) {
    uint32_t count = p->parts.recorded.count, input_count = p->parts.inputs.count;
    uir_interpreter_options options = {.cancel = cancel, .threads = uir_core_count()};
    uir_datum **datums;
    UIR_TRY_ALLOCATE(datums, uir_arena_allocate_array(&p->parts.arena, (size_t)input_count + 1, sizeof *datums));
    UIR_TRY_ALLOCATE(p->results, uir_arena_allocate_array(&p->parts.arena, (size_t)count + 1, sizeof *p->results));
    for (uint32_t i = 0; i < input_count; i++) {
        UIR_TRY(uir_value_check_on_host(call, inputs[i], "a value of an input"));
        datums[i] = inputs[i]->datum;
        p->parts.values.data[p->parts.inputs.data[i]].datum = datums[i];
    }
    UIR_TRY(uir_module_interpret(module, &p->context->allocator, &call->diagnostics, &options, datums, input_count,
                                 p->results, count, NULL));
    for (uint32_t i = 0; i < count; i++) p->parts.values.data[p->parts.recorded.data[i]].datum = p->results[i];
    return keep_types(p, module);
}

static uir_status record(uir_call *call, uir_extractor *p, const char *path, uir_value *const *inputs,
                         size_t input_count, const char *external_data, const volatile bool *cancel) {
    uir_file file;
    uir_text all;
    uir_compile compile;
    uir_onnx_source source = {.path = path, .external_data = external_data};
    uir_operation operation = {.cancel = cancel};
    const uir_compile_call read = {.diagnostics = &call->diagnostics, .progress = uir_operation_whole(&operation)};
    const uir_allocator *allocator = &p->context->allocator;
    UIR_TRY(uir_storage_create(allocator, false, &p->storage));
    UIR_TRY(uir_storage_map_path(p->storage, &call->diagnostics, path, &file));
    UIR_TRY(uir_onnx_extractor_init(file.data, file.size, path, allocator, &call->diagnostics, &p->parts));
    if (p->parts.inputs.count != input_count)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, &(uir_location){.file = path},
                         "the model has %u inputs, and %zu values are given", p->parts.inputs.count, input_count);
    UIR_TRY_ALLOCATE(p->expected,
                     uir_arena_allocate_array(&p->parts.arena, p->parts.values.count, sizeof *p->expected));
    uir_text_init(&all, allocator);
    uir_status status = uir_onnx_extractor_print_all(&p->parts, &all);
    source.data = all.data;
    source.size = all.length;
    uir_compile_init(&compile, &source, NULL, allocator, &p->parts.arena);
    if (status == UIR_STATUS_OK) status = uir_compile_run(&compile, UIR_STAGE_PRIMITIVES, &read);
    uir_text_deinit(&all);
    if (status == UIR_STATUS_OK) status = interpret(call, p, compile.primitives, inputs, cancel);
    uir_compile_deinit(&compile);
    return status;
}

uir_status uir_extractor_create(uir_context *context, const char *path, uir_value *const *inputs, size_t input_count,
                                const char *external_data, const volatile bool *cancel, uir_extractor **out_parts) {
    uir_call call;
    uir_extractor *p = uir_allocate_zeroed(&context->allocator, sizeof *p);
    *out_parts = p;
    uir_call_begin(&call, context);
    uir_status status = p ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    if (p) {
        p->context = context;
        uir_text_init(&p->types, &context->allocator);
        status = record(&call, p, path, inputs, input_count, external_data, cancel);
    }
    if (status != UIR_STATUS_OK) {
        uir_extractor_destroy(p);
        *out_parts = NULL;
    }
    return uir_call_end(&call, status, "extracting parts of a model");
}

void uir_extractor_destroy(uir_extractor *p) {
    if (!p) return;
    for (uint32_t i = 0; p->results && i < p->parts.recorded.count; i++) uir_datum_release(p->results[i]);
    uir_text_deinit(&p->types);
    if (p->parts.arena.allocator.resize) uir_onnx_extractor_deinit(&p->parts);
    uir_storage_destroy(p->storage);
    uir_release(&p->context->allocator, p, sizeof *p);
}

/* ---- questions ---- */

size_t uir_extractor_node_count(const uir_extractor *p) {
    return p->parts.parts.count;
}

uir_status uir_extractor_get_node(const uir_extractor *p, size_t index, uir_extractor_node *out_node) {
    uir_extractor_node node = {.name = "", .op = ""};
    bool there = index < p->parts.parts.count;
    if (there) node.name = p->parts.parts.data[index].name, node.op = p->parts.parts.data[index].op;
    UIR_TRY(UIR_STRUCT_GIVE(NULL, uir_extractor_node, &node, out_node));
    return there ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT;
}

const char *uir_extractor_get_output_name(const uir_extractor *p, size_t index) {
    return index < p->cut.outputs.count ? uir_onnx_extractor_name(&p->parts, p->cut.outputs.data[index]) : NULL;
}

size_t uir_extractor_input_count(const uir_extractor *p) {
    return p->cut.inputs.count;
}

uir_status uir_extractor_set_expected(uir_extractor *p, size_t output, const uir_value *value) {
    if (output >= p->parts.outputs.count || uir_api_is_away(value->memory)) return UIR_STATUS_INVALID_ARGUMENT;
    p->expected[p->parts.outputs.data[output]] = value->datum;
    return UIR_STATUS_OK;
}

/* The value of that name that a kept part makes; 0: none. */
static uint32_t find_made(const uir_onnx_extractor *parts, const bool *kept, const char *name) {
    for (uint32_t value = 1; value < parts->values.count; value++) {
        uint32_t maker = parts->values.data[value].maker;
        if (maker && kept[maker - 1] && !strcmp(uir_onnx_extractor_name(parts, value), name)) return value;
    }
    return 0;
}

/* ---- what is needed ---- */

/* Nodes may lie in any order in the file: until nothing more is needed. */
static void spread(const uir_onnx_extractor *parts, const bool *kept, bool *needed) {
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = parts->parts.count; i-- > 0;) {
            const uir_onnx_part *part = &parts->parts.data[i];
            for (uint32_t k = 0; needed[i] && k < part->reads.count; k++) {
                uint32_t maker = parts->values.data[part->reads.data[k]].maker;
                if (!maker || !kept[maker - 1] || needed[maker - 1]) continue;
                needed[maker - 1] = more = true;
            }
        }
    }
}

static uir_status find_needed(uir_extractor *p, const char *output, const bool *kept, bool *needed) {
    const uir_onnx_extractor *parts = &p->parts;
    uint32_t only = output ? find_made(parts, kept, output) : 0;
    if (output && !only) return UIR_STATUS_INVALID_ARGUMENT;
    if (only) needed[parts->values.data[only].maker - 1] = true;
    for (uint32_t value = 1; value < parts->values.count && !only; value++) {
        const uir_onnx_part_value *v = &parts->values.data[value];
        if (v->is_output && v->maker && kept[v->maker - 1]) needed[v->maker - 1] = true;
    }
    for (uint32_t i = 0; i < parts->parts.count && !only; i++) {
        const uir_onnx_part *part = &parts->parts.data[i];
        for (uint32_t k = 0; !kept[i] && k < part->reads.count; k++) {
            uint32_t maker = parts->values.data[part->reads.data[k]].maker;
            if (maker && kept[maker - 1]) needed[maker - 1] = true;
        }
    }
    spread(parts, kept, needed);
    return UIR_STATUS_OK;
}

uir_status uir_extractor_prune(uir_extractor *p, const char *output, bool *kept) {
    const uir_allocator *allocator = &p->context->allocator;
    size_t size = p->parts.parts.count;
    bool *needed = uir_allocate_zeroed(allocator, size);
    if (!needed) return UIR_STATUS_OUT_OF_MEMORY;
    uir_status status = find_needed(p, output, kept, needed);
    for (size_t i = 0; i < size && status == UIR_STATUS_OK; i++) kept[i] = needed[i];
    uir_release(allocator, needed, size);
    return status;
}

/* ---- writing ---- */

static uir_status write_value(uir_call *call, uir_extractor *p, uint32_t value, bool expected, const char *folder,
                              uint32_t index) {
    const uir_datum *datum = p->parts.values.data[value].datum;
    uir_text path, bytes;
    if (expected && p->expected[value]) datum = p->expected[value];
    uir_text_init(&path, &p->context->allocator);
    uir_text_init(&bytes, &p->context->allocator);
    uir_text_append_format(&path, "%s/%s_%u.pb", folder, expected ? "output" : "input", (unsigned)index);
    uir_status status = uir_text_status(&path);
    if (status == UIR_STATUS_OK)
        status = uir_onnx_write_datum(datum, uir_onnx_extractor_name(&p->parts, value), &bytes);
    if (status == UIR_STATUS_OK)
        status = uir_io_write_file(path.data, bytes.data ? bytes.data : "", bytes.length, &call->diagnostics);
    uir_text_deinit(&bytes);
    uir_text_deinit(&path);
    return status;
}

static uir_status write_model(uir_call *call, uir_extractor *p, const char *path) {
    uir_text bytes;
    uir_text_init(&bytes, &p->context->allocator);
    uir_status status = uir_onnx_extractor_print(&p->parts, &p->cut, &bytes);
    if (status == UIR_STATUS_OK && !p->cut.outputs.count) status = UIR_STATUS_INVALID_ARGUMENT;
    if (status == UIR_STATUS_OK && bytes.length > INT32_MAX)
        status = uir_error(&call->diagnostics, UIR_STATUS_LIMIT, &(uir_location){.file = path},
                           "a model of %zu bytes is too large for an ONNX file", bytes.length);
    if (status == UIR_STATUS_OK) status = uir_io_write_file(path, bytes.data, bytes.length, &call->diagnostics);
    uir_text_deinit(&bytes);
    return status;
}

static uir_status write_cut(uir_call *call, uir_extractor *p, const uir_subgraph *given, const char *model_path,
                            const char *data_folder) {
    bool *left_out = NULL;
    uir_subgraph subgraph, *cut = &subgraph;
    UIR_TRY(UIR_STRUCT_TAKE(&call->diagnostics, uir_subgraph, given, cut));
    if (!cut->nodes)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "uir_subgraph.nodes is NULL");
    if (cut->output) { /* where no kept part makes it, nothing is left to go out, which is refused below */
        UIR_TRY_ALLOCATE(left_out, uir_arena_allocate_array(&p->parts.arena, p->parts.values.count, sizeof *left_out));
        memset(left_out, true, p->parts.values.count * sizeof *left_out);
        left_out[find_made(&p->parts, cut->nodes, cut->output)] = false;
    }
    p->cut.kept = cut->nodes;
    p->cut.left_out = left_out;
    p->cut.fixed = cut->static_shapes;
    UIR_TRY(write_model(call, p, model_path));
    for (uint32_t i = 0; i < p->cut.inputs.count; i++)
        UIR_TRY(write_value(call, p, p->cut.inputs.data[i], false, data_folder, i));
    for (uint32_t i = 0; i < p->cut.outputs.count; i++)
        UIR_TRY(write_value(call, p, p->cut.outputs.data[i], true, data_folder, i));
    return UIR_STATUS_OK;
}

uir_status uir_extractor_write(uir_extractor *p, const uir_subgraph *cut, const char *model_path,
                               const char *data_folder) {
    uir_call call;
    uir_call_begin(&call, p->context);
    uir_status status = write_cut(&call, p, cut, model_path, data_folder);
    p->cut.kept = p->cut.left_out = NULL;
    return uir_call_end(&call, status, "writing parts of a model");
}
