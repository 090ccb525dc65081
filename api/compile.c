/* Models on a device: the package that its sessions open, and the compiler at work beside them. */
#include "api/facts_onnx.h"
#include "api/compile_kept.h"
#include "api/records.h"

#include <string.h>
#include <time.h>

uir_status uir_context_clear_cache(uir_context *context, const char *folder, uint64_t *out_bytes) {
    uir_call call;
    uir_cache *cache;
    uir_call_begin(&call, context);
    uir_cache_options options = {.folder = folder};
    uir_status status = uir_cache_open(&context->allocator, &options, &call.diagnostics, &cache);
    if (status == UIR_STATUS_OK) {
        status = uir_cache_clear(cache, &call.diagnostics, out_bytes);
        uir_cache_close(cache);
    }
    return uir_call_end(&call, status, "emptying the cache");
}

/* ---- native code ---- */
static const uir_target *get_target(const uir_model *model) {
    const uir_compile_options *options = &uir_model_get_source(model)->compile.options;
    return uir_target_of(uir_device_find(options->device, NULL));
}

static bool is_done(uir_model_code *code, double *out_fraction) {
    pthread_mutex_lock(&code->mutex);
    bool done = code->done;
    *out_fraction = code->fraction;
    pthread_mutex_unlock(&code->mutex);
    return done;
}

static bool note_progress(void *user, uint32_t done, uint32_t total) {
    uir_model_code *code = user;
    pthread_mutex_lock(&code->mutex);
    code->fraction = total ? (double)done / total : 0;
    pthread_mutex_unlock(&code->mutex);
    return false;
}

static uir_status attach(uir_model *model, const void *object, size_t size) {
    uir_model_code *code = uir_model_get_source(model)->code;
    return uir_package_attach_native(model->package, code->variant, object, size, NULL, &code->said);
}

/* By the kernels and the build that emits them: another may make something else of the same iGraphs. */
static uir_status make_key(const uir_model *model, uir_cache_key *out_key) {
    const void *sources;
    size_t size;
    if (uir_model_cached_get_sources(model, &sources, &size, out_key)) return UIR_STATUS_OK;
    uir_text text;
    uir_text_init(&text, &model->allocator);
    uir_status status = uir_stage_get(UIR_STAGE_NATIVE)->key(&uir_model_get_source(model)->compile, &text);
    if (status == UIR_STATUS_OK) *out_key = uir_cache_make_key(text.data, text.length);
    uir_text_deinit(&text);
    return status;
}

/* `folder` of sources, or NULL. Of the kernels, or of the sources that an earlier start has made of them. */
static uir_status build_native(uir_model *model, const uir_target_build_options *options, const char *folder,
                               uir_target_object *out_object) {
    uir_model_source *source = uir_model_get_source(model);
    const void *sources;
    size_t size;
    uir_cache_key native;
    if (uir_model_cached_get_sources(model, &sources, &size, &native)) {
        const uir_target_build_input input = {
            .variant = source->code->variant, .sources = sources, .sources_size = size};
        uir_status status =
            get_target(model)->build(&model->allocator, options, &input, &source->code->said, out_object);
        if (status == UIR_STATUS_BAD_FILE) uir_model_cached_remove_sources(model);
        return status;
    }
    const uir_compile_build build = {.options = options, .folder = folder, .object = out_object};
    const uir_compile_call call = {.diagnostics = &source->code->said, .build = &build};
    return uir_compile_run(&source->compile, UIR_STAGE_NATIVE, &call);
}

/* Compiled now, written to a folder or read from one; what may be edited is in no cache. */
static uir_status get_from_source(uir_model *model, uir_target_build_options *options, bool *out_compiled) {
    const uir_model_code *code = uir_model_get_source(model)->code;
    uir_target_object object;
    options->source_folder = code->dump_source;
    options->overwrite = code->overwrite_source;
    options->warnings = code->source != NULL; /* a person wrote it */
    UIR_TRY(build_native(model, options, code->source, &object));
    *out_compiled = true;
    uir_status status = attach(model, object.bytes, object.size);
    uir_target_object_deinit(&object);
    return status;
}

/* Compiled files are kept one by one until the whole is. */
static uir_status compile_cached(uir_model *model, uir_target_build_options *options, uir_cache *cache,
                                 uir_cache_key key) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_target_object object;
    uir_kept_files files;
    bool keeps = cache && uir_kept_files_init(&files, model, key) == UIR_STATUS_OK;
    if (keeps) options->keeper = &files.keeper;
    uir_status status = build_native(model, options, NULL, &object);
    if (status == UIR_STATUS_OK) {
        status = attach(model, object.bytes, object.size);
        if (status == UIR_STATUS_OK && cache &&
            uir_cache_store(cache, key, object.bytes, object.size, &code->said) == UIR_STATUS_OK)
            uir_model_cached_link(model, key, &code->said);
        /* Whoever finds them no more finds the whole. */
        if (keeps && status == UIR_STATUS_OK) uir_kept_files_remove(&files);
        uir_target_object_deinit(&object);
    }
    if (keeps) uir_kept_files_deinit(&files);
    return status;
}

/* Out of the cache when it is there. `out_compiled`: by this process. */
static uir_status get_native(uir_model *model, bool *out_compiled) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_cache_key key;
    uir_cache_entry entry;
    uir_target_build_options options = {
        .jobs = uir_core_count(), .cancel = &code->cancel, .progress = note_progress, .progress_user = code};
    *out_compiled = false;
    if (code->dump_source || code->source) return get_from_source(model, &options, out_compiled);
    uir_status known = make_key(model, &key);
    if (known == UIR_STATUS_OUT_OF_MEMORY) return known;
    uir_cache *cache = known == UIR_STATUS_OK ? code->cache : NULL;
    if (cache && uir_cache_load(cache, key, &code->said, &entry) == UIR_STATUS_OK) {
        uir_status status = attach(model, entry.bytes, entry.size);
        uir_cache_entry_release(&entry);
        if (status == UIR_STATUS_OK) {
            uir_model_cached_link(model, key, &code->said);
            uir_model_cached_remove_sources(model);
            return status;
        }
        if (status == UIR_STATUS_DEVICE_FAILED) return status; /* another object would fare no better */
    }
    if (!cache) { /* nobody could go on from the sources */
        UIR_TRY(get_target(model)->check_compiler(code->variant, &code->said));
    }
    *out_compiled = true;
    return compile_cached(model, &options, cache, key);
}

static void *run_compiler(void *user) {
    uir_model *model = user;
    uir_model_code *code = uir_model_get_source(model)->code;
    double start = uir_api_now_ms();
    bool compiled;
    uir_status status = get_native(model, &compiled);
    uir_watch_stop(&code->beside.watch);
    pthread_mutex_lock(&code->mutex);
    code->done = true;
    code->status = status;
    code->compile_ms = uir_api_now_ms() - start;
    if (status == UIR_STATUS_OK && compiled) code->compiled = model->info.kernel_count;
    pthread_mutex_unlock(&code->mutex);
    return NULL;
}

/* Whoever waits is told how far it is, and asked whether it is to stop. */
static void watch_compiler(uir_model_code *code, uir_progress progress) {
    double fraction;
    if (!progress.operation->tell && !progress.operation->cancel) return;
    while (!is_done(code, &fraction)) {
        if (uir_progress_tell(progress, "compiling kernels", fraction) != UIR_STATUS_OK) {
            __atomic_store_n(&code->cancel, true, __ATOMIC_RELAXED);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

/* The thread is gone; what it said is the call's. */
static uir_status join_compiler(uir_call *call, uir_model_code *code, uir_progress progress) {
    if (code->joined) return code->status;
    if (code->started) {
        watch_compiler(code, progress);
        pthread_join(code->thread, NULL);
    }
    code->joined = true;
    for (const uir_diagnostic *d = code->said.first; d; d = d->next) {
        if (code->status != UIR_STATUS_OK && d->severity == UIR_SEVERITY_ERROR)
            uir_error_hint(&call->diagnostics, d->status, &d->location, d->hint, "%s", d->message);
        else
            uir_warning(&call->diagnostics, &d->location, "%s", d->message);
    }
    if (!code->started) return code->status;
    uir_status status = uir_budget_end(&code->beside, code->status, &call->diagnostics);
    pthread_mutex_lock(&code->mutex);
    code->status = status;
    pthread_mutex_unlock(&code->mutex);
    return status;
}

uir_status uir_model_code_wait(uir_call *call, uir_model *model) {
    const uir_model_source *from = uir_model_get_source(model);
    uir_operation operation = {.tell = from->progress, .user = from->progress_user, .cancel = from->cancel};
    uir_progress progress = uir_operation_whole(&operation);
    /* Who wants it to stop is heard where there is something to stop. */
    (void)uir_progress_tell(progress, "compiling kernels", 0);
    uir_status status = from->code ? join_compiler(call, from->code, progress) : UIR_STATUS_OK;
    return status == UIR_STATUS_OK ? uir_operation_finish(&operation) : status;
}

uint32_t uir_model_code_count(const uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    if (!code) return 0;
    pthread_mutex_lock(&code->mutex);
    uint32_t count = code->compiled;
    pthread_mutex_unlock(&code->mutex);
    return count;
}

/* What the compiler said stays once it is done. */
const char *uir_model_code_explain_vm(const uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    if (!code || strcmp(model->info.device, "vm") == 0) return "the requested device is the VM";
    if (model->info.native_why) return model->info.native_why;
    pthread_mutex_lock(&code->mutex);
    bool done = code->done || !code->started;
    uir_status status = code->status;
    pthread_mutex_unlock(&code->mutex);
    if (!done) return "its kernels are still being compiled";
    if (status == UIR_STATUS_OK) return "its kernels were still being compiled";
    for (const uir_diagnostic *d = code->said.first; d; d = d->next)
        if (d->severity == UIR_SEVERITY_ERROR) return d->message;
    return uir_status_text(status);
}

/* ---- nodes without a kernel ---- */

static uir_status borrow_operand(const uir_custom_call *call, uint32_t index, uir_datum **out_datum) {
    const uir_custom_tensor *t = &call->inputs[index];
    uir_tensor *tensor;
    UIR_TRY(uir_tensor_create_borrowed(call->allocator, t->dtype, t->rank, t->shape, t->data, &tensor));
    uir_status status = uir_datum_create_tensor(call->allocator, tensor, out_datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

static uir_status give_result(const uir_custom_call *call, uint32_t index, const uir_datum *datum) {
    void *data;
    if (datum->kind != UIR_VALUE_TENSOR) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(uir_custom_call_give(call, index, datum->tensor->shape, &data));
    if (datum->tensor->byte_size) memcpy(data, datum->tensor->data, datum->tensor->byte_size);
    return UIR_STATUS_OK;
}

/* The interpreter of primitives runs it. */
static uir_status run_custom(void *user, const uir_custom_call *call) {
    const uir_model *model = user;
    uir_arena scratch;
    uir_arena_init(&scratch, call->allocator);
    uir_interpreter_options options = {.cancel = call->cancel, .turn = call->turn};
    size_t slots = (size_t)call->input_count + call->output_count + 1;
    uir_datum **inputs = uir_arena_allocate_array(&scratch, slots, sizeof *inputs);
    uir_bound_symbol *symbols = uir_arena_allocate_array(&scratch, (size_t)call->symbol_count + 1, sizeof *symbols);
    uir_status status = inputs && symbols ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    uir_datum **outputs = inputs ? inputs + call->input_count : NULL;
    for (uint32_t i = 0; i < call->symbol_count && status == UIR_STATUS_OK; i++)
        symbols[i] = (uir_bound_symbol){{call->symbols[i].symbol}, call->symbols[i].value};
    for (uint32_t i = 0; i < call->input_count && status == UIR_STATUS_OK; i++)
        if (call->inputs[i].data) status = borrow_operand(call, i, &inputs[i]);
    if (status == UIR_STATUS_OK)
        status = uir_node_interpret_bound(uir_model_get_source(model)->compile.primitives, call->allocator,
                                          call->diagnostics, &options, (uir_node_id){call->node}, symbols,
                                          call->symbol_count, inputs, outputs);
    for (uint32_t i = 0; i < call->output_count && status == UIR_STATUS_OK; i++)
        if (outputs[i]) status = give_result(call, i, outputs[i]);
    for (uint32_t i = 0; inputs && i < call->input_count + call->output_count; i++) uir_datum_release(inputs[i]);
    uir_arena_deinit(&scratch);
    return status;
}

/* ---- the package ---- */

/* A program of the device is written to a folder, or read from one, where that is asked for. */
static uir_status write_with(uir_call *call, uir_model *model, const uir_compile_contents *contents) {
    const uir_model_code *code = uir_model_get_source(model)->code;
    const uir_target_build_options options = {.source_folder = code->dump_source, .overwrite = code->overwrite_source};
    const uir_compile_build build = {.options = &options, .folder = code->source};
    const uir_compile_call write = {.diagnostics = &call->diagnostics,
                                    .contents = contents,
                                    .build = code->dump_source || code->source ? &build : NULL};
    return uir_compile_run(&uir_model_get_source(model)->compile, UIR_STAGE_PACKAGE, &write);
}

/* Whether nothing of it needs the graph when it runs. */
static bool is_complete(uir_model *model, const uir_compile_contents *contents) {
    uir_diagnostics unheard;
    uir_diagnostics_init(&unheard, &model->allocator);
    const uir_compile_call look = {.diagnostics = &unheard, .contents = contents};
    uir_status status = uir_compile_run(&uir_model_get_source(model)->compile, UIR_STAGE_PACKAGE, &look);
    uir_diagnostics_deinit(&unheard);
    return status == UIR_STATUS_OK;
}

/* Into the cache, from which it is mapped; into memory where there is none. */
static uir_status write_package(uir_call *call, uir_model *model, uir_progress progress, uir_arena *scratch) {
    uir_model_code *code = uir_model_get_source(model)->code;
    uir_compile_native native = {uir_compile_get_isa(&uir_model_get_source(model)->compile), NULL};
    const uir_compile_contents bare = {.natives = &native, .native_count = native.isa ? 1 : 0};
    uir_compile_contents contents = bare;
    if (code->cache && code->cached.path) UIR_TRY(uir_model_cached_identify(model));
    if (code->cache && code->cached.known && is_complete(model, &bare)) {
        UIR_TRY(uir_facts_print(&model->facts, scratch, &contents.metadata, &contents.metadata_count));
        uir_status status = uir_model_cached_store(model, &contents, progress, &call->diagnostics);
        if (status != UIR_STATUS_IO_FAILED && status != UIR_STATUS_LIMIT) return status;
    }
    contents = bare;
    contents.custom = true;
    uir_package_sink sink = uir_package_sink_to_text(&code->bytes);
    contents.sink = &sink;
    return write_with(call, model, &contents);
}

static uir_status tell_loaded(void *user, double share) {
    return uir_progress_tell(*(const uir_progress *)user, "building kernels", share);
}

static uir_status open_package(uir_call *call, uir_model *model, uir_progress progress) {
    uir_model_code *code = uir_model_get_source(model)->code;
    const uir_compile *compile = &uir_model_get_source(model)->compile;
    uir_package_options options = {.pictures = uir_api_pictures(),
                                   .trusted = true,
                                   .checked = true,
                                   .custom = run_custom,
                                   .custom_user = model,
                                   .keeper = uir_model_cached_keeper(model)};
    UIR_TRY(uir_api_open_device(model, compile->row, compile->options.device, &call->diagnostics, &options));
    uir_arena scratch;
    uir_arena_init(&scratch, &model->allocator);
    bool has_program = uir_compile_has_program(compile);
    double written = has_program ? 0.1 : 1;
    uir_status status = write_package(call, model, uir_progress_part(progress, 0, written), &scratch);
    uir_arena_deinit(&scratch);
    UIR_TRY(status);
    uir_progress rest = uir_progress_part(progress, written, 1);
    if (has_program) {
        UIR_TRY(tell_loaded(&rest, 0));
        options.loaded = tell_loaded;
        options.loaded_user = &rest;
    }
    const uir_cache_entry *entry = &code->cached.package;
    return uir_package_open(entry->size ? entry->bytes : code->bytes.data,
                            entry->size ? entry->size : code->bytes.length, &options, &model->allocator,
                            &call->diagnostics, &model->package);
}

/* The compile beside the runs has as much time as the load. */
static uir_status limit_time(const uir_model *model, uir_model_code *code) {
    uir_budget_init(&code->beside, &model->context->allocator, NULL);
    code->beside.limits[UIR_LIMIT_MILLISECONDS] = model->budget.limits[UIR_LIMIT_MILLISECONDS];
    return uir_budget_begin(&code->beside, "compiling the kernels", NULL, &code->cancel);
}

static bool is_cached(const uir_model *model) {
    const uir_model_code *code = uir_model_get_source(model)->code;
    uir_cache_key key;
    uir_cache_entry entry;
    uir_diagnostics unheard;
    if (!code->cache || make_key(model, &key) != UIR_STATUS_OK) return false;
    uir_diagnostics_init(&unheard, &model->allocator);
    bool found = uir_cache_load(code->cache, key, &unheard, &entry) == UIR_STATUS_OK;
    if (found) uir_cache_entry_release(&entry);
    uir_diagnostics_deinit(&unheard);
    return found;
}

/* Said once, when the model is loaded: nothing will be different later. */
static uir_status warn_without_compiler(uir_call *call, uir_model *model) {
    const uir_model_code *code = uir_model_get_source(model)->code;
    uir_diagnostics said;
    uir_diagnostics_init(&said, &model->allocator);
    uir_status found = get_target(model)->check_compiler(code->variant, &said), status = UIR_STATUS_OK;
    if (found != UIR_STATUS_OK && !is_cached(model)) {
        const uir_diagnostic *d = said.first;
        const char *why = d ? d->message : uir_status_text(found);
        model->info.native_why = uir_arena_copy_string(&model->arena, why, strlen(why));
        if (!model->info.native_why) status = UIR_STATUS_OUT_OF_MEMORY;
        uir_warning(&call->diagnostics, NULL, "the VM runs the model, since its kernels cannot be compiled: %s%s%s%s",
                    why, d && d->hint ? " (" : "", d && d->hint ? d->hint : "", d && d->hint ? ")" : "");
    }
    uir_diagnostics_deinit(&said);
    return status;
}

static uir_status start_thread(uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    UIR_TRY(limit_time(model, code));
    if (pthread_create(&code->thread, NULL, run_compiler, model) != 0) return UIR_STATUS_OUT_OF_MEMORY;
    code->started = true;
    return UIR_STATUS_OK;
}

/* Memory that the compiler does not get is no failure of the load. Without a compiler the sources are kept for a start
 * that has one. */
uir_status uir_model_code_begin(uir_model *model) {
    const uir_model_code *code = uir_model_get_source(model)->code;
    return code && code->wanted ? start_thread(model) : UIR_STATUS_OK;
}

/* Now, or beside the runs, once the load has ended. */
static uir_status compile_kernels(uir_call *call, uir_model *model, bool waits, uir_progress progress) {
    uir_model_code *code = uir_model_get_source(model)->code;
    code->wanted = !waits;
    if (!waits) return warn_without_compiler(call, model);
    UIR_TRY(start_thread(model));
    return join_compiler(call, code, progress);
}

uir_status uir_model_code_resume(uir_call *call, uir_model *model, const uir_model_options *options,
                                 uir_progress progress) {
    double start = uir_api_now_ms();
    UIR_TRY(compile_kernels(call, model, options->wait, progress));
    if (options->wait) model->info.compile_ms += uir_api_now_ms() - start;
    return UIR_STATUS_OK;
}

uir_status uir_model_compile(uir_call *call, uir_model *model, const uir_model_options *options,
                             uir_progress progress) {
    bool waits = options->wait || uir_model_wants_source(options);
    uir_model_code *code = uir_model_get_source(model)->code;
    double start = uir_api_now_ms();
    uir_compile *compile = &uir_model_get_source(model)->compile;
    const uir_device_row *row = uir_device_find(compile->options.device, NULL);
    /* Where these end: the driver of a device builds its program while the package is opened. */
    bool builds = row && uir_device_has_driver(row);
    double lowered = waits || builds ? 0.2 : 0.95, packaged = waits && !builds ? 0.25 : 1;
    uir_api_records records;
    const uir_compile_call lower = {.diagnostics = &call->diagnostics,
                                    .progress = uir_progress_part(progress, 0, lowered),
                                    .records = &records.source};
    uir_status status =
        uir_api_records_init(&records, options->debug->records, code->cache, &model->allocator, &call->diagnostics);
    if (status == UIR_STATUS_OK) status = uir_compile_run(compile, UIR_STAGE_RUNS, &lower);
    uir_api_records_deinit(&records);
    UIR_TRY(status);
    uir_facts_take_kernels(compile, &model->facts);
    uir_facts_tell_kernels(&model->facts, &model->info);
    uir_facts_warn_faults(&model->facts, &call->diagnostics);
    UIR_TRY(open_package(call, model, uir_progress_part(progress, lowered, packaged)));
    bool native = uir_compile_get_isa(compile) != NULL, has_sources = native || uir_compile_has_program(compile);
    model->info.device = compile->row->name;
    model->info.kernel_count = compile->lowering.kernels.count;
    if (uir_model_wants_source(options) && (!has_sources || !model->info.kernel_count))
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "load a model that has kernels, on the device cpu",
                              "no kernel sources: the model has no native code here");
    if (native && model->info.kernel_count) {
        code->variant = compile->machine.variant;
        UIR_TRY(compile_kernels(call, model, waits, uir_progress_part(progress, packaged, 1)));
    }
    model->info.compile_ms += uir_api_now_ms() - start;
    return UIR_STATUS_OK;
}

uir_status uir_model_code_create(uir_call *call, uir_model *model, const uir_model_options *options) {
    const uir_allocator *allocator = &model->allocator;
    uir_cache_options cache = {options->cache, options->cache_limit, options->no_map};
    uir_model_code *code;
    UIR_TRY_ALLOCATE(code, uir_allocate_zeroed(allocator, sizeof *code));
    uir_model_get_source(model)->code = code;
    uir_text_init(&code->bytes, allocator);
    uir_text_init(&code->cached.config, allocator);
    uir_text_init(&code->cached.stamp, allocator);
    uir_text_init(&code->cached.content, allocator);
    uir_diagnostics_init(&code->said, &model->context->allocator);
    pthread_mutex_init(&code->mutex, NULL);
    code->dump_source = options->debug->dump_source;
    code->source = options->debug->source;
    code->overwrite_source = options->debug->overwrite_source;
    if (!options->no_cache) (void)!uir_cache_open(allocator, &cache, &call->diagnostics, &code->cache);
    return UIR_STATUS_OK;
}

void uir_model_code_destroy(uir_model *model) {
    uir_model_code *code = uir_model_get_source(model)->code;
    if (!code) return;
    __atomic_store_n(&code->cancel, true, __ATOMIC_RELAXED);
    if (code->started && !code->joined) pthread_join(code->thread, NULL);
    uir_budget_deinit(&code->beside);
    uir_package_close(model->package);
    model->package = NULL;
    uir_model_cached_deinit(code);
    uir_cache_close(code->cache);
    uir_text_deinit(&code->bytes);
    uir_diagnostics_deinit(&code->said);
    pthread_mutex_destroy(&code->mutex);
    uir_release(&model->allocator, code, sizeof *code);
    uir_model_get_source(model)->code = NULL;
}
