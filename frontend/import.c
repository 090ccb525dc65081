/* A whole model: see frontend.h. */
#include "frontend/import.h"

#include <string.h>

static uir_status check_ir_version(uir_importer *importer, const UirOnnx__ModelProto *model) {
    uir_location place = {.file = importer->file};
    if (!model->has_ir_version) {
        return uir_error_hint(importer->diagnostics, UIR_STATUS_BAD_FILE, &place,
                              "check that the file is an ONNX model", "the file has no IR version");
    }
    if (model->ir_version < UIR_ONNX_MIN_IR_VERSION || model->ir_version > UIR_ONNX_MAX_IR_VERSION) {
        return uir_error_hint(importer->diagnostics, UIR_STATUS_UNSUPPORTED, &place,
                              "export the model again with another version of the exporter",
                              "the file has IR version %lld; versions %d to %d are supported",
                              (long long)model->ir_version, UIR_ONNX_MIN_IR_VERSION, UIR_ONNX_MAX_IR_VERSION);
    }
    return UIR_STATUS_OK;
}

static uir_status read_metadata(uir_importer *importer, const UirOnnx__ModelProto *model, uir_arena *arena,
                                uir_onnx_info *info) {
    uir_onnx_pair *pairs;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(pairs, uir_arena_allocate_array(arena, model->n_metadata_props + 1, sizeof *pairs));
    uir_import_scope saved = uir_import_enter(importer, true); /* keys as names: tells those that occur twice */
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const UirOnnx__StringStringEntryProto *entry = model->metadata_props[i];
        uir_bytes key = UIR_PROTO_BYTES(entry, key);
        uir_name name;
        UIR_TRY(uir_import_name(importer, key, &name));
        if (uir_import_find(importer, name)) {
            uir_warning(importer->diagnostics, &(uir_location){.file = importer->file},
                        "the metadata key '%.*s' occurs twice; the first one counts", UIR_BYTES_FORMAT(key));
            continue;
        }
        UIR_TRY(uir_import_bind(importer, name, (uir_value_id){0}, NULL));
        UIR_TRY(uir_import_text(importer, key, arena, &pairs[count].key));
        UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(entry, value), arena, &pairs[count].value));
        count++;
    }
    uir_import_leave(importer, saved);
    info->metadata = pairs;
    info->metadata_count = count;
    return UIR_STATUS_OK;
}

static uir_status import_model(uir_importer *importer, const UirOnnx__ModelProto *model, uir_arena *arena,
                               uir_onnx_info *info) {
    UIR_TRY(check_ir_version(importer, model));
    if (!model->graph) {
        return uir_error_hint(importer->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = importer->file},
                              "check that the file is an ONNX model", "the file has no graph");
    }
    UIR_TRY(uir_import_read_opsets(importer, model->opset_import, model->n_opset_import, &importer->opsets));
    UIR_TRY(uir_import_read_functions(importer, model));
    UIR_TRY(read_metadata(importer, model, arena, info));
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(model, producer_name), arena, &info->producer));
    info->ir_version = model->ir_version;
    UIR_TRY(uir_import_inspect(importer, model, arena, info));
    importer->module->opset = (int)uir_import_opset_version(importer, (uir_name){0});

    const char *name;
    UIR_TRY(uir_import_text(importer, UIR_PROTO_BYTES(model->graph, name), &importer->scratch, &name));
    UIR_TRY(uir_module_add_graph(importer->module, (uir_graph_id){0}, name, &importer->module->main));
    UIR_TRY(uir_import_declare_dims(importer, model->graph));
    UIR_TRY(uir_import_graph(importer, importer->module->main, model->graph, arena, info));
    info->node_count = importer->node_count;
    return UIR_STATUS_OK;
}

/* Opens what the source names: the module's storage, the bytes, the folders. */
static uir_status open_source(uir_importer *importer, const uir_onnx_source *source) {
    uir_module *module = importer->module;
    uir_storage *storage;
    UIR_TRY(uir_storage_create(importer->allocator, source->no_map, &storage));
    module->storage = storage;
    module->release_storage = uir_storage_destroy;
    importer->tensors = (uir_tensor_source){.allocator = importer->allocator,
                                            .diagnostics = importer->diagnostics,
                                            .data = source->data,
                                            .size = source->size,
                                            .storage = storage};
    if (source->path && !source->data) {
        uir_file mapped;
        UIR_TRY(uir_storage_map_path(storage, importer->diagnostics, source->path, &mapped));
        importer->tensors.data = mapped.data;
        importer->tensors.size = mapped.size;
        importer->tensors.borrow = true;
    } else {
        (void)uir_budget_add_file(uir_budget_of(importer->allocator), source->size);
    }
    uir_folders_source folders = {source->external_data, source->folder, source->path};
    return uir_storage_open_folders(storage, importer->diagnostics, &folders);
}

static uir_status run(uir_importer *importer, const uir_onnx_source *source, uir_arena *arena, uir_onnx_info *info) {
    ProtobufCMessage *message;
    uir_name none;
    UIR_TRY(uir_strings_init(&importer->names, &importer->scratch));
    UIR_TRY(uir_strings_init(&importer->texts, &importer->scratch));
    UIR_TRY(uir_import_name(importer, (uir_bytes){"", 0}, &none));
    UIR_TRY(uir_module_create(importer->allocator, importer->diagnostics, &importer->module));
    UIR_TRY(open_source(importer, source));
    if (importer->tensors.size == 0) {
        return uir_error(importer->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = importer->file},
                         "the file is empty");
    }
    UIR_TRY(uir_proto_unpack(&uir_onnx__model_proto__descriptor, importer->tensors.data, importer->tensors.size,
                             importer->file, importer->allocator, importer->diagnostics, &importer->scratch, &message));
    uir_status status = import_model(importer, (const UirOnnx__ModelProto *)message, arena, info);
    uir_import_report_unsupported(importer);
    return status != UIR_STATUS_OK ? status : importer->worst;
}

uir_status uir_onnx_load(const uir_onnx_source *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_arena *arena, uir_onnx_info *out_info, uir_module **out_module) {
    uir_importer importer = {.source = source,
                             .file = source->path ? source->path : "<memory>",
                             .allocator = allocator,
                             .diagnostics = diagnostics};
    *out_info = (uir_onnx_info){.producer = "", .producer_version = "", .domain = "", .graph = ""};
    uir_arena_init(&importer.scratch, allocator);
    uir_status status = run(&importer, source, arena, out_info);
    uir_arena_deinit(&importer.scratch);
    if (status != UIR_STATUS_OK) {
        uir_module_destroy(importer.module);
        return status;
    }
    *out_module = importer.module;
    return UIR_STATUS_OK;
}

bool uir_onnx_get_file(const uir_module *module, uint32_t index, uir_onnx_file *out_file) {
    uir_file mapped;
    if (!module->storage || module->release_storage != uir_storage_destroy ||
        !uir_storage_get_file(module->storage, index, &out_file->name, &mapped))
        return false;
    out_file->data = mapped.data;
    out_file->size = mapped.size;
    out_file->device = mapped.device;
    out_file->inode = mapped.inode;
    return true;
}

uir_status uir_onnx_check_files(const uir_module *module, uir_diagnostics *diagnostics) {
    if (!module->storage || module->release_storage != uir_storage_destroy) return UIR_STATUS_OK;
    return uir_storage_check(module->storage, diagnostics);
}
