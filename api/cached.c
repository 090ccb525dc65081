/* Packages of models in the cache.
 *
 * Five kinds of entry. The package, by its configuration (device and its sizes, version and build of this library) and
 * the bytes of all files of the model. Two short cuts to that key: by the stamps of the files, which are not read then;
 * and by the bytes of the model's own file, which names the files of external data that the key needs. The key of
 * the native code that belongs to the package; and, until that is there, the sources that it is compiled from, so that
 * a start goes on where the one before was ended. What is missing or does not hold any more costs time, never the
 * truth.
 */
#include "api/compiled.h"
#include "backends/devices/devices.h"
#include "compile/identity.h"
#include "decompose/decompose.h"
#include "package/package.h"

#include <string.h>

static uir_cache_key make_key(const uir_model_cached *cached, const char *kind, const uir_text *first,
                              const uir_text *second, uir_status *status) {
    uir_text text;
    uir_cache_key key = {0};
    uir_text_init(&text, &cached->config.allocator);
    uir_text_append_format(&text, "%s\n", kind);
    uir_text_append(&text, cached->config.data, cached->config.length);
    uir_text_append(&text, first->data, first->length);
    if (second && second->length) uir_text_append(&text, second->data, second->length);
    if (uir_text_status(&text) == UIR_STATUS_OK)
        key = uir_cache_make_key(text.data, text.length);
    else
        *status = UIR_STATUS_OUT_OF_MEMORY;
    uir_text_deinit(&text);
    return key;
}

/* Whatever else is in the way, the cache is done without. */
static bool ends_load(uir_status status) {
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED;
}

/* Keeps `record` under the key of that kind and text; without memory it is as good as not there. */
static void store_record(const uir_model_code *code, const char *kind, const uir_text *first, const uir_text *record,
                         uir_diagnostics *diagnostics) {
    uir_status status = uir_text_status(record);
    uir_cache_key key = make_key(&code->cached, kind, first, NULL, &status);
    if (status == UIR_STATUS_OK) (void)!uir_cache_store(code->cache, key, record->data, record->length, diagnostics);
}

/* A key is a line of its own: as many characters as its text and the zero after it. */
enum { KEY_LINE = UIR_DIGEST_TEXT_SIZE };
#define SOURCES "sources"

static bool key_from_text(const char *text, size_t size, uir_cache_key *out_key) {
    return size >= KEY_LINE && text[KEY_LINE - 1] == '\n' && uir_digest_parse(text, KEY_LINE - 1, out_key);
}

static void append_key(uir_text *text, uir_cache_key key) {
    char digits[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(&key, digits);
    uir_text_append_format(text, "%s\n", digits);
}

/* Which package an entry of that key holds: other records of parameters make another. */
static void append_mark(uir_text *text, const uir_cache_entry *package) {
    append_key(text, uir_cache_make_key(package->bytes, UIR_PACKAGE_HEADER_SIZE));
}

static bool has_mark(const uir_cache_entry *entry, const uir_cache_entry *package) {
    uir_cache_key mark, wanted = uir_cache_make_key(package->bytes, UIR_PACKAGE_HEADER_SIZE);
    return entry->size >= 2 * KEY_LINE &&
           key_from_text((const char *)entry->bytes + KEY_LINE, entry->size - KEY_LINE, &mark) &&
           !memcmp(&mark, &wanted, sizeof mark);
}

/* The key of an entry that belongs to the package of that key. */
static uir_cache_key key_beside(const uir_model_cached *cached, const char *kind, uir_status *status) {
    uir_text package;
    uir_text_init(&package, &cached->config.allocator);
    append_key(&package, cached->key);
    if (uir_text_status(&package) != UIR_STATUS_OK) *status = UIR_STATUS_OUT_OF_MEMORY;
    uir_cache_key key = make_key(cached, kind, &package, NULL, status);
    uir_text_deinit(&package);
    return key;
}

/* ---- a model that is its package ---- */

/* The graph, read for those who want to interpret it after all. */
static uir_status read_graph(uir_call *call, uir_model *model) {
    uir_model_source *from = uir_model_get_source(model);
    uir_model_cached *cached = &from->code->cached;
    uir_identity identity;
    uir_text now;
    uir_text_init(&now, &model->allocator);
    uir_status status = uir_identity_init(&identity, &model->allocator, cached->path, cached->external_data);
    const uir_text *then = cached->stamp.length ? &cached->stamp : &cached->content;
    if (status == UIR_STATUS_OK)
        status = cached->stamp.length ? uir_identity_stamp(&identity, NULL, &now)
                                      : uir_identity_content(&identity, NULL, &now);
    bool same = status == UIR_STATUS_OK && now.length == then->length && !memcmp(now.data, then->data, now.length);
    uir_identity_deinit(&identity);
    uir_text_deinit(&now);
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    if (!same)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = cached->path},
                              "load the model again", "the file has changed since the model was loaded");
    const uir_onnx_source source = {.path = cached->path,
                                    .external_data = cached->external_data,
                                    .no_map = cached->no_map,
                                    .keep = &cached->keep,
                                    .overrides = &cached->overrides};
    const uir_compile_call read = {.diagnostics = &call->diagnostics};
    uir_compile_init(&from->compile, &source, NULL, &model->allocator, &model->arena);
    status = uir_compile_run(&from->compile, UIR_STAGE_CLEANED, &read);
    if (status != UIR_STATUS_OK) {
        uir_compile_deinit(&from->compile);
        return status;
    }
    uir_compile_drop_onnx(&from->compile);
    from->compile.primitives->diagnostics = NULL;
    model->node_count = from->compile.primitives->nodes.count;
    return UIR_STATUS_OK;
}

static uir_status prepare_interpreter(uir_call *call, uir_model *model) {
    uir_model_source *from = uir_model_get_source(model);
    pthread_mutex_lock(&from->code->mutex);
    uir_status status = from->compile.primitives ? UIR_STATUS_OK : read_graph(call, model);
    pthread_mutex_unlock(&from->code->mutex);
    return status;
}

static const uir_model_table cached_model = {
    .destroy = uir_model_destroy_source,
    .wait = uir_model_code_wait,
    .count_compiled = uir_model_code_count,
    .check_files = uir_model_check_files,
    .explain_vm = uir_model_code_explain_vm,
    .get_input_shape = uir_api_get_package_shape,
    .prepare_interpreter = prepare_interpreter,
    .interpret = uir_session_interpret,
    .get_node_statistics = uir_session_get_interpreted,
    .get_slice = uir_session_get_interpreted_slice,
    .get_estimate = uir_session_find_estimate,
    .get_space_estimate = uir_session_find_space_estimate,
};

/* ---- facts of the model, kept as metadata before its own ---- */

static uir_status take_facts(uir_model *model) {
    uir_facts *f = &model->facts;
    UIR_TRY(uir_facts_read(model->package, &model->arena, f));
    UIR_TRY(uir_api_take_keys(model));
    model->info = (uir_model_info){.producer = f->producer,
                                   .ir_version = f->ir_version,
                                   .opset = f->opset,
                                   .onnx_node_count = (uint32_t)f->node_count,
                                   .primitive_count = (uint32_t)f->primitive_count,
                                   .why = ""};
    uir_facts_tell_kernels(f, &model->info);
    return UIR_STATUS_OK;
}

/* ---- opening ---- */

/* Native code for all of the package's kernels. */
static uir_status attach_native(uir_call *call, uir_model *model, const uir_device_row *row) {
    uir_model_code *code = uir_model_get_source(model)->code;
    const char *variant;
    uir_target_machine machine;
    uir_cache_entry entry;
    uir_cache_key key;
    uir_status status = UIR_STATUS_OK;
    if (!uir_device_is_native(row) || !uir_package_get_facts(model->package).kernels) return UIR_STATUS_OK;
    uir_device_find(uir_model_get_source(model)->compile.options.device, &variant);
    UIR_TRY(uir_target_of(row)->describe(variant, &model->arena, &call->diagnostics, &machine));
    code->variant = machine.variant;
    key = key_beside(&code->cached, uir_stage_get(UIR_STAGE_NATIVE)->name, &status);
    UIR_TRY(status);
    UIR_TRY(uir_cache_load(code->cache, key, &call->diagnostics, &entry));
    bool good = key_from_text(entry.bytes, entry.size, &key) && has_mark(&entry, &code->cached.package);
    uir_cache_entry_release(&entry);
    if (!good) return UIR_STATUS_NOT_FOUND;
    UIR_TRY(uir_cache_load(code->cache, key, &call->diagnostics, &code->cached.native));
    code->status = uir_package_attach_native(model->package, machine.variant, code->cached.native.bytes,
                                             code->cached.native.size, NULL, &code->said);
    /* The object is sound, and another would fare no better: the VM runs the kernels, and why is asked of the code. */
    if (code->status == UIR_STATUS_DEVICE_FAILED) return UIR_STATUS_OK;
    status = code->status;
    code->status = UIR_STATUS_OK;
    return status;
}

/* Its sources, where there is no native code yet. */
static uir_status open_sources(uir_call *call, uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_status status = UIR_STATUS_OK;
    uir_cache_key key = key_beside(&code->cached, SOURCES, &status);
    UIR_TRY(status);
    UIR_TRY(uir_cache_load(code->cache, key, &call->diagnostics, &code->cached.sources));
    if (has_mark(&code->cached.sources, &code->cached.package)) return UIR_STATUS_OK;
    uir_cache_entry_release(&code->cached.sources);
    return UIR_STATUS_NOT_FOUND;
}

/* What it runs on: native code, or the VM while that is made of the sources. Another process may have finished it in
 * between, and removed these. */
static uir_status open_code(uir_call *call, uir_model *model, const uir_device_row *row) {
    uir_status status = attach_native(call, model, row);
    if (status != UIR_STATUS_NOT_FOUND) return status;
    status = open_sources(call, model);
    return status == UIR_STATUS_NOT_FOUND ? attach_native(call, model, row) : status;
}

static uir_status open_entry(uir_call *call, uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    const char *device = uir_model_get_source(model)->compile.options.device;
    const uir_device_row *row = uir_device_find(device, NULL);
    uir_package_options options = {
        .pictures = uir_api_pictures(), .trusted = true, .checked = true, .keeper = uir_model_cached_keeper(model)};
    /* The compile that follows a failure opens it again, and says what is wrong. */
    UIR_TRY(uir_api_open_device(model, row, device, NULL, &options));
    UIR_TRY(uir_cache_load(code->cache, code->cached.key, &call->diagnostics, &code->cached.package));
    UIR_TRY(uir_package_open(code->cached.package.bytes, code->cached.package.size, &options, &model->allocator, NULL,
                             &model->package));
    UIR_TRY(open_code(call, model, row));
    UIR_TRY(uir_api_take_package_ports(model));
    UIR_TRY(take_facts(model));
    uir_facts_warn_faults(&model->facts, &call->diagnostics);
    model->table = &cached_model;
    model->info.device = row->name;
    model->info.kernel_count = uir_package_get_facts(model->package).kernels;
    return UIR_STATUS_OK;
}

/* What does not open is as good as not there, and the way is free for another. */
static uir_status open_package(uir_call *call, uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_status status = open_entry(call, model);
    if (status == UIR_STATUS_OK) return status;
    uir_package_close(model->package);
    model->package = NULL;
    uir_cache_entry_release(&code->cached.package);
    uir_cache_entry_release(&code->cached.native);
    uir_cache_entry_release(&code->cached.sources);
    uir_cache_entry_release(&code->cached.built);
    return status == UIR_STATUS_OUT_OF_MEMORY ? status : UIR_STATUS_NOT_FOUND;
}

/* ---- the key ---- */

/* By the stamps: an entry of the package's key and the lines of the other files. */
static uir_status find_by_stamps(uir_call *call, uir_model *model, uir_identity *identity) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_cache_entry entry;
    uir_status status = UIR_STATUS_OK;
    if (!code->cached.stamp.length) return UIR_STATUS_NOT_FOUND;
    uir_cache_key key = make_key(&code->cached, "stamps", &code->cached.stamp, NULL, &status);
    UIR_TRY(status);
    UIR_TRY(uir_cache_load(code->cache, key, &call->diagnostics, &entry));
    code->cached.known =
        key_from_text(entry.bytes, entry.size, &code->cached.key) &&
        uir_identity_holds(identity, uir_identity_stamp, (const char *)entry.bytes + KEY_LINE, entry.size - KEY_LINE);
    uir_cache_entry_release(&entry);
    return code->cached.known ? UIR_STATUS_OK : UIR_STATUS_NOT_FOUND;
}

/* By the bytes: an entry of the lines of the other files; none is as one of no line. */
static uir_status find_by_content(uir_call *call, uir_model *model, uir_identity *identity, uir_text *files) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_cache_entry entry;
    uir_status status = UIR_STATUS_OK;
    UIR_TRY(uir_identity_content(identity, NULL, &code->cached.content));
    uir_cache_key key = make_key(&code->cached, "files", &code->cached.content, NULL, &status);
    UIR_TRY(status);
    bool holds = true;
    if (uir_cache_load(code->cache, key, &call->diagnostics, &entry) == UIR_STATUS_OK) {
        holds = uir_identity_holds(identity, uir_identity_content, entry.bytes, entry.size);
        uir_text_append(files, entry.bytes, entry.size);
        uir_cache_entry_release(&entry);
    }
    UIR_TRY(uir_text_status(files));
    if (!holds) return UIR_STATUS_NOT_FOUND;
    code->cached.key =
        make_key(&code->cached, uir_stage_get(UIR_STAGE_PACKAGE)->name, &code->cached.content, files, &status);
    code->cached.known = status == UIR_STATUS_OK;
    return status;
}

/* Notes the stamps under which the package was found. `lines`: of the other files, in whichever description. */
static void note_stamps(uir_model *model, uir_identity *identity, const uir_text *lines, uir_diagnostics *diagnostics) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_text record, name;
    uir_status status = code->cached.stamp.length ? UIR_STATUS_OK : UIR_STATUS_NOT_FOUND;
    uir_text_init(&record, &model->allocator);
    uir_text_init(&name, &model->allocator);
    append_key(&record, code->cached.key);
    for (const char *at = lines->data, *end = at ? at + lines->length : at; at < end && status == UIR_STATUS_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *from = strchr(strchr(at, ' ') + 1, ' ') + 1;
        name.length = 0;
        uir_text_append(&name, from, (size_t)(stop - from));
        status = uir_text_status(&name);
        if (status == UIR_STATUS_OK) status = uir_identity_stamp(identity, name.data, &record);
        at = stop + 1;
    }
    if (status == UIR_STATUS_OK) store_record(code, "stamps", &code->cached.stamp, &record, diagnostics);
    uir_text_deinit(&name);
    uir_text_deinit(&record);
}

/* `anew`: only what the package is called, so that another may take its place. */
static uir_status look_up(uir_call *call, uir_model *model, uir_identity *identity, bool anew, uir_text *files) {
    uir_model_cached *cached = &uir_model_get_source(model)->code->cached;
    UIR_TRY(uir_stage_get(UIR_STAGE_PACKAGE)->key(&uir_model_get_source(model)->compile, &cached->config));
    uir_status status = uir_identity_stamp(identity, NULL, &cached->stamp);
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    if (!anew && find_by_stamps(call, model, identity) == UIR_STATUS_OK && open_package(call, model) == UIR_STATUS_OK)
        return UIR_STATUS_OK;
    cached->known = false;
    UIR_TRY(find_by_content(call, model, identity, files));
    status = anew ? UIR_STATUS_NOT_FOUND : open_package(call, model);
    cached->known = false;
    if (status == UIR_STATUS_OK) note_stamps(model, identity, files, &call->diagnostics);
    return status;
}

/* What decides the package, for as long as the model lives. */
static uir_status copy_names(uir_model *model, const char *const *given, size_t count, const char *const **out_names) {
    const char **names;
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&model->arena, count + 1, sizeof *names));
    for (size_t i = 0; i < count; i++)
        UIR_TRY_ALLOCATE(names[i], uir_arena_copy_string(&model->arena, given[i], strlen(given[i])));
    *out_names = names;
    return UIR_STATUS_OK;
}

static uir_status copy_names_of_options(uir_model *model, const uir_model_options *options, uir_model_cached *cached) {
    cached->keep = (uir_onnx_keep){options->keep_all, NULL, options->keep_count};
    UIR_TRY(copy_names(model, options->keep, options->keep_count, &cached->keep.names));
    cached->overrides.count = options->override_count;
    UIR_TRY(copy_names(model, options->overrides, options->override_count, &cached->overrides.names));
    cached->no_map = options->no_map;
    return UIR_STATUS_OK;
}

uir_status uir_model_open_cached(uir_call *call, uir_model *model, const char *path, const uir_model_options *options) {
    uir_model_code *code = uir_model_get_source(model)->code;
    double start = uir_api_now_ms();
    uir_identity identity;
    uir_text files;
    bool looks_inside = options->debug->dump || options->debug->round_trip || options->debug->records ||
                        uir_model_wants_source(options);
    if (!code->cache || looks_inside) return UIR_STATUS_NOT_FOUND;
    UIR_TRY_ALLOCATE(code->cached.path, uir_arena_copy_string(&model->arena, path, strlen(path)));
    if (options->external_data)
        UIR_TRY_ALLOCATE(code->cached.external_data,
                         uir_arena_copy_string(&model->arena, options->external_data, strlen(options->external_data)));
    if (options) UIR_TRY(copy_names_of_options(model, options, &code->cached));
    uir_text_init(&files, &model->allocator);
    uir_status status = uir_identity_init(&identity, &model->allocator, code->cached.path, code->cached.external_data);
    code->cached.began_s = identity.began_s;
    identity.cancel = options->cancel;
    if (status == UIR_STATUS_OK) status = look_up(call, model, &identity, options->debug->anew, &files);
    if (status == UIR_STATUS_NOT_FOUND && options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED))
        status = UIR_STATUS_CANCELLED;
    uir_identity_deinit(&identity);
    uir_text_deinit(&files);
    if (status == UIR_STATUS_OK) model->info.load_ms = uir_api_now_ms() - start;
    /* Whatever was in the way, the model's own loading says it. */
    if (status != UIR_STATUS_OK && !ends_load(status)) {
        if (!code->cached.content.length) code->cached.path = NULL;
        return UIR_STATUS_NOT_FOUND;
    }
    return status;
}

/* ---- storing ---- */

/* Lines of the files that the constants lie in; `again` says whether the model's own is still what it was. */
static uir_status describe_files(uir_model *model, uir_identity *identity, uir_text *files, bool *again) {
    const uir_model_source *from = uir_model_get_source(model);
    const uir_model_cached *cached = &from->code->cached;
    uir_onnx_file file;
    uir_text now;
    for (uint32_t i = 0; uir_onnx_get_file(from->compile.primitives, i, &file); i++) {
        UIR_TRY(uir_identity_content_of(identity, file.name, file.data, file.size, files));
        UIR_TRY(uir_identity_note_read(identity, file.name, file.device, file.inode));
    }
    uir_text_init(&now, &identity->allocator);
    const uir_text *then = cached->stamp.length ? &cached->stamp : &cached->content;
    uir_status status =
        cached->stamp.length ? uir_identity_stamp(identity, NULL, &now) : uir_identity_content(identity, NULL, &now);
    *again = status == UIR_STATUS_OK && now.length == then->length && !memcmp(now.data, then->data, now.length);
    uir_text_deinit(&now);
    return ends_load(status) ? status : UIR_STATUS_OK;
}

uir_status uir_model_cached_identify(uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_identity identity;
    uir_text files;
    bool again = false;
    uir_text_init(&files, &model->allocator);
    uir_status status = uir_identity_init(&identity, &model->allocator, code->cached.path, code->cached.external_data);
    identity.began_s = code->cached.began_s; /* what changed since then has changed too lately */
    identity.cancel = uir_model_get_source(model)->cancel;
    if (status == UIR_STATUS_OK) status = describe_files(model, &identity, &files, &again);
    if (status == UIR_STATUS_OK && again) {
        code->cached.key =
            make_key(&code->cached, uir_stage_get(UIR_STAGE_PACKAGE)->name, &code->cached.content, &files, &status);
        code->cached.known = status == UIR_STATUS_OK;
    }
    if (code->cached.known && files.length) store_record(code, "files", &code->cached.content, &files, &code->said);
    if (code->cached.known) note_stamps(model, &identity, &files, &code->said);
    uir_identity_deinit(&identity);
    uir_text_deinit(&files);
    return ends_load(status) ? status : UIR_STATUS_OK;
}

typedef struct entry_target {
    uir_cache_writer *writer;
    uir_progress progress;
} entry_target;

static uir_status append_to_entry(void *user, const void *data, size_t size) {
    const entry_target *t = user;
    UIR_TRY(uir_progress_tell(t->progress, "writing", 0));
    return uir_cache_writer_append(t->writer, data, size);
}
static uir_status patch_entry(void *user, const void *data, size_t size) {
    return uir_cache_writer_patch(((const entry_target *)user)->writer, data, size);
}
static bool entry_equals(void *user, uint64_t offset, const void *data, size_t size) {
    return uir_cache_writer_equals(((const entry_target *)user)->writer, offset, data, size);
}

uir_status uir_model_cached_store(uir_model *model, const uir_compile_contents *contents, uir_progress progress,
                                  uir_diagnostics *diagnostics) {
    uir_model_code *code = uir_model_get_source(model)->code;
    entry_target t = {.progress = progress};
    UIR_TRY(uir_cache_writer_create(code->cache, code->cached.key, diagnostics, &t.writer));
    const uir_package_sink sink = {append_to_entry, patch_entry, entry_equals, &t};
    uir_compile_contents whole = *contents;
    whole.sink = &sink;
    const uir_compile_call write = {.diagnostics = diagnostics, .contents = &whole};
    uir_status status = uir_compile_run(&uir_model_get_source(model)->compile, UIR_STAGE_PACKAGE, &write);
    if (status == UIR_STATUS_OK) return uir_cache_writer_finish(t.writer, &code->cached.package);
    uir_cache_writer_abandon(t.writer);
    return status;
}

/* ---- code that a driver compiles ---- */
static bool name_built(const uir_model_code *code, const char *format, const void *program, size_t size,
                       uir_cache_key *out_key) {
    uir_text text;
    if (!code->cache) return false;
    uir_text_init(&text, &code->cached.config.allocator);
    uir_text_append_format(&text, "built\n%s\n", format);
    append_key(&text, uir_cache_make_key(program, size));
    bool is_named = uir_text_status(&text) == UIR_STATUS_OK;
    if (is_named) *out_key = uir_cache_make_key(text.data, text.length);
    uir_text_deinit(&text);
    return is_named;
}

static bool find_built(void *user, const char *format, const void *program, size_t program_size, const void **out_bytes,
                       size_t *out_size) {
    uir_model_code *code = uir_model_get_source(user)->code;
    uir_cache_entry *entry = &code->cached.built;
    uir_cache_key key;
    uir_cache_entry_release(entry);
    *entry = (uir_cache_entry){.size = 0};
    if (!name_built(code, format, program, program_size, &key) ||
        uir_cache_load(code->cache, key, NULL, entry) != UIR_STATUS_OK)
        return false;
    *out_bytes = entry->bytes;
    *out_size = entry->size;
    return true;
}

static void keep_built(void *user, const char *format, const void *program, size_t program_size, const void *bytes,
                       size_t size) {
    uir_model_code *code = uir_model_get_source(user)->code;
    uir_cache_key key;
    if (name_built(code, format, program, program_size, &key))
        (void)!uir_cache_store(code->cache, key, bytes, size, NULL);
}

uir_package_keeper uir_model_cached_keeper(uir_model *model) {
    return uir_model_get_source(model)->code->cache ? (uir_package_keeper){find_built, keep_built, model}
                                                    : (uir_package_keeper){.user = NULL};
}

void uir_model_cached_link(uir_model *model, uir_cache_key native, uir_diagnostics *diagnostics) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_text from, to;
    if (!code->cached.package.size) return;
    uir_text_init(&from, &model->allocator);
    uir_text_init(&to, &model->allocator);
    append_key(&from, code->cached.key);
    append_key(&to, native);
    append_mark(&to, &code->cached.package);
    if (uir_text_status(&from) == UIR_STATUS_OK)
        store_record(code, uir_stage_get(UIR_STAGE_NATIVE)->name, &from, &to, diagnostics);
    uir_text_deinit(&from);
    uir_text_deinit(&to);
}

void uir_model_cached_keep_sources(uir_model *model, uir_cache_key native, const void *sources, size_t size) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_status status = UIR_STATUS_OK;
    uir_text head;
    uir_cache_writer *writer;
    uir_cache_entry entry = {0};
    if (!code->cached.package.size) return;
    uir_cache_key key = key_beside(&code->cached, SOURCES, &status);
    uir_text_init(&head, &model->allocator);
    append_key(&head, native);
    append_mark(&head, &code->cached.package);
    if (status == UIR_STATUS_OK) status = uir_text_status(&head);
    if (status == UIR_STATUS_OK && uir_cache_writer_create(code->cache, key, NULL, &writer) == UIR_STATUS_OK) {
        status = uir_cache_writer_append(writer, head.data, head.length);
        if (status == UIR_STATUS_OK) status = uir_cache_writer_append(writer, sources, size);
        if (status == UIR_STATUS_OK)
            (void)!uir_cache_writer_finish(writer, &entry);
        else
            uir_cache_writer_abandon(writer);
        uir_cache_entry_release(&entry);
    }
    uir_text_deinit(&head);
}

void uir_model_cached_remove_sources(uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_status status = UIR_STATUS_OK;
    if (!code->cached.package.size) return;
    uir_cache_key key = key_beside(&code->cached, SOURCES, &status);
    if (status == UIR_STATUS_OK) (void)!uir_cache_remove(code->cache, key, NULL);
}

bool uir_model_cached_get_sources(const uir_model *model, const void **out_sources, size_t *out_size,
                                  uir_cache_key *out_native) {
    const uir_cache_entry *entry = &uir_model_get_source(model)->code->cached.sources;
    if (!entry->size || !key_from_text(entry->bytes, entry->size, out_native)) return false;
    *out_sources = (const char *)entry->bytes + 2 * KEY_LINE;
    *out_size = entry->size - 2 * KEY_LINE;
    return true;
}

void uir_model_cached_deinit(uir_model_code *code) {
    if (code->cached.package.size) uir_cache_settle(code->cache, &code->cached.package);
    uir_cache_entry_release(&code->cached.package);
    uir_cache_entry_release(&code->cached.native);
    uir_cache_entry_release(&code->cached.sources);
    uir_cache_entry_release(&code->cached.built);
    uir_text_deinit(&code->cached.config);
    uir_text_deinit(&code->cached.stamp);
    uir_text_deinit(&code->cached.content);
}
