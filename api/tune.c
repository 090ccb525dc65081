/* Tuning: records of parameters of the heaviest kernels, measured in runs of the whole model.
 *
 * A compile in which these kernels have all legal tiles serves to measure them all, since tiles are chosen when sizes
 * are known: in each run every kernel has another tile. Only a depth takes another compile. What promises most is
 * measured again, and at the end beside what was there before, in turn; what is no faster then is not kept. */
#include "api/compiled.h"
#include "api/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 24, DEPTHS = 6, LOOKS = 3, AGAIN = 6, TOP = 5, LEAST_TURNS = 7, MOST_TURNS = 41, KEPT_TILES = 16 };
static const double worth = 0.98;   /* of the time before: what is slower is not kept */
static const double heavy = 0.002;  /* of all kernels' time: what takes less is left alone */
static const double kept_until = 2; /* times the best tile's time: what is slower is no use at other sizes either */
static const int64_t depths[DEPTHS] = {0, 256, 512, 128, 1024, 64}; /* 0: the tactic's */

/* What one tile took, of all of a kernel's launches in one run. */
typedef struct sample {
    double ms;      /* the least */
    uint64_t turns; /* of work that its threads took, one after the other */
} sample;

/* What is compared at the end: what was there before, the best that was found, what the tactics choose by themselves
 * (where that is not what was there). */
typedef enum side { BEFORE, FOUND, PLAIN, SIDES } side;

/* A kernel whose tiles are measured. */
typedef struct tuned {
    const char *name;
    uir_digest identity;
    uir_parameters before, best; /* the best one's tiles with what they cost; none: none was measured */
    double best_ms;
    sample samples[UIR_PARAMETERS_MAX_TILES]; /* of the trial at hand, by tile */
    uint32_t order[UIR_PARAMETERS_MAX_TILES];
    double turns[SIDES][MOST_TURNS];
    uint64_t tried;
    double before_ms, after_ms; /* at the end */
    bool kept;
} tuned;

typedef struct trial {
    uir_model *model;
    uir_session *session;
    const char *records; /* NULL: the cache's */
} trial;

typedef struct tuning {
    uir_call *call;
    uir_context *context;
    const char *path;
    const uir_model_tune_options *options;
    uir_operation operation;
    uir_arena arena;
    double start_ms, end_ms, load_ms; /* of the last compile */
    tuned *kernels;
    uint32_t kernel_count;
    trial sides[SIDES];
    uint32_t side_count;
    double whole[SIDES][MOST_TURNS];
    uint32_t turn_count;
    uir_text records; /* of a trial */
} tuning;

static uir_status say(tuning *t, const char *stage) {
    double whole = t->end_ms - t->start_ms, done = uir_api_now_ms() - t->start_ms;
    return uir_progress_tell(uir_operation_whole(&t->operation), stage, done < whole ? 0.99 * done / whole : 0.99);
}

/* ---- runs ---- */
static void end_trial(trial *trial) {
    uir_session_destroy(trial->session);
    uir_model_destroy(trial->model);
    trial->session = NULL;
    trial->model = NULL;
}

/* A compile of its own, and a session that ran once. */
static uir_status begin_trial(tuning *t, trial *trial) {
    const uir_model_tune_options *o = t->options;
    const uir_debug_options debug = {.struct_size = sizeof debug, .records = trial->records, .anew = !trial->records};
    const uir_model_options options = {.struct_size = sizeof options,
                                       .device = o->device,
                                       .wait = true,
                                       .cache = o->cache,
                                       .no_cache = o->no_cache,
                                       .cache_limit = o->cache_limit,
                                       .debug = &debug,
                                       .external_data = o->external_data,
                                       .cancel = o->cancel,
                                       .no_map = o->no_map,
                                       .limits = o->limits,
                                       .exact = o->exact,
                                       .precision = o->precision,
                                       .overrides = o->overrides,
                                       .override_count = o->override_count};
    const uir_session_options session = {.struct_size = sizeof session, .threads = o->threads, .limits = o->limits};
    double start = uir_api_now_ms();
    UIR_TRY(uir_model_load_file(t->context, t->path, &options, &trial->model));
    t->load_ms = uir_api_now_ms() - start;
    UIR_TRY(uir_session_create(trial->model, &session, &trial->session));
    UIR_TRY(o->bind(o->user, trial->model, trial->session));
    return uir_session_run(trial->session);
}

static const uir_lowering_kernel *find_kernel(const trial *trial, const char *name) {
    return uir_lowering_find_kernel(&uir_model_get_source(trial->model)->compile.lowering, name);
}

/* What the last run's launches of a kernel took; false: no launch of it had tiles to choose from. */
static bool take_sample(const trial *trial, const char *kernel, sample *out, uint32_t *out_row) {
    uir_node_statistics node = {.struct_size = sizeof node};
    const uint64_t threads = trial->session->threads;
    *out = (sample){0};
    *out_row = 0;
    for (size_t i = 0; uir_session_get_node_statistics(trial->session, i, &node) == UIR_STATUS_OK; i++) {
        if (!node.candidate || strcmp(node.by, "native") != 0 || strcmp(node.kernel, kernel) != 0) continue;
        out->ms += node.ms;
        out->turns += node.calls * ((node.units + threads - 1) / threads);
        *out_row = node.candidate;
    }
    return *out_row > 0;
}

/* ---- which kernels ---- */
static int compare_weights(const void *a, const void *b) {
    double x = ((const tuned *)a)->best_ms, y = ((const tuned *)b)->best_ms;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* One more run: what all nodes took, and the least that each kernel did. */
static uir_status weigh(tuning *t, double *all) {
    const trial *before = &t->sides[BEFORE];
    uir_node_statistics node = {.struct_size = sizeof node};
    double sum = 0;
    uint32_t row;
    UIR_TRY(uir_session_run(before->session));
    for (size_t i = 0; uir_session_get_node_statistics(before->session, i, &node) == UIR_STATUS_OK; i++) sum += node.ms;
    if (*all < 0 || sum < *all) *all = sum;
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        sample s;
        if (!take_sample(before, t->kernels[i].name, &s, &row)) s.ms = 0;
        if (t->kernels[i].best_ms < 0 || s.ms < t->kernels[i].best_ms) t->kernels[i].best_ms = s.ms;
    }
    return UIR_STATUS_OK;
}

/* Those with something to choose that take most of a run; best_ms is their time meanwhile. */
static uir_status choose_kernels(tuning *t) {
    const uir_lowering *lowering = &uir_model_get_source(t->sides[BEFORE].model)->compile.lowering;
    uint32_t count = lowering->kernels.count;
    double all = -1;
    UIR_TRY_ALLOCATE(t->kernels, uir_arena_allocate_array(&t->arena, count + 1u, sizeof *t->kernels));
    for (uint32_t i = 0; i < count; i++) {
        const uir_lowering_kernel *kernel = &lowering->kernels.data[i];
        if (kernel->lowered.choice.chosen.tile_count)
            t->kernels[t->kernel_count++] = (tuned){.name = kernel->name,
                                                    .identity = kernel->identity,
                                                    .before = kernel->lowered.choice.chosen,
                                                    .best_ms = -1};
    }
    for (uint32_t again = 0; again < LOOKS; again++) UIR_TRY(weigh(t, &all));
    qsort(t->kernels, t->kernel_count, sizeof *t->kernels, compare_weights);
    while (t->kernel_count && (t->kernel_count > KERNELS || t->kernels[t->kernel_count - 1].best_ms <= heavy * all))
        t->kernel_count--;
    return UIR_STATUS_OK;
}

/* ---- trials ---- */
/* The text of a trial's records, which it keeps: all tiles, at this depth where the kernel has one; or the best. */
static uir_status write_records(tuning *t, bool best, int64_t depth) {
    uir_records records = {.items = {0}};
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const tuned *k = &t->kernels[i];
        uir_record record = {.kernel = k->identity, .name = k->name, .parameters = {.every = true}};
        record.parameters.depth = k->before.depth ? depth : 0;
        if (best) record.parameters = k->best.tile_count ? k->best : k->before;
        UIR_TRY(uir_vector_push(&t->arena, &records.items, record));
    }
    t->records.length = 0;
    uir_records_print(&records, &t->records);
    return uir_text_status(&t->records);
}

/* One run in which every kernel has the tile of the same rank in its order; false in `*out_any`: none has so many. */
static uir_status look(tuning *t, trial *trial, uint32_t rank, const uint32_t *counts, bool *out_any) {
    *out_any = false;
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        if (rank >= counts[i]) continue;
        *out_any = true;
        UIR_TRY(uir_runtime_want_candidate(trial->session->runtime, t->kernels[i].name, t->kernels[i].order[rank]));
    }
    if (!*out_any) return UIR_STATUS_OK;
    for (uint32_t again = 0; again < LOOKS; again++) {
        UIR_TRY(say(t, "measuring tiles"));
        UIR_TRY(uir_session_run(trial->session));
        for (uint32_t i = 0; i < t->kernel_count; i++) {
            sample s, *kept;
            uint32_t row;
            if (rank >= counts[i] || !take_sample(trial, t->kernels[i].name, &s, &row)) continue;
            if (row != t->kernels[i].order[rank] + 1) continue; /* not valid for these sizes */
            kept = &t->kernels[i].samples[row - 1];
            if (!kept->turns || s.ms < kept->ms) *kept = s;
        }
    }
    return UIR_STATUS_OK;
}

/* Those that were measured before the others, the fastest first. */
static void sort_tiles(tuned *k, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        uint32_t tile = k->order[i], at = i;
        const sample *s = &k->samples[tile];
        for (; at > 0; at--) {
            const sample *other = &k->samples[k->order[at - 1]];
            if (!s->turns || (other->turns && other->ms <= s->ms)) break;
            k->order[at] = k->order[at - 1];
        }
        k->order[at] = tile;
    }
}

/* The trial's best, if it is better than what was found before: with all tiles that may be of use, and what a unit of
 * work of theirs costs, in picoseconds. */
static void take_best(tuned *k, const uir_parameters *table) {
    const sample *first = &k->samples[k->order[0]];
    if (!first->turns || (k->best.tile_count && first->ms >= k->best_ms)) return;
    k->best = (uir_parameters){.depth = table->depth};
    k->best_ms = first->ms;
    for (uint32_t i = 0; i < table->tile_count && i < KEPT_TILES; i++) {
        const sample *s = &k->samples[k->order[i]];
        if (!s->turns || s->ms > kept_until * first->ms) break;
        uir_parameter_tile tile = table->tiles[k->order[i]];
        double cost = s->ms * 1e9 / (double)s->turns;
        tile.cost = cost < 1 ? 1 : cost > 1e15 ? (int64_t)1e15 : (int64_t)cost;
        k->best.tiles[k->best.tile_count++] = tile;
    }
}

static uir_status measure(tuning *t, trial *trial) {
    uint32_t counts[KERNELS], tops[KERNELS];
    const uir_parameters *tables[KERNELS];
    bool any = true;
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        tuned *k = &t->kernels[i];
        const uir_lowering_kernel *kernel = find_kernel(trial, k->name);
        tables[i] = kernel ? &kernel->lowered.choice.chosen : NULL;
        counts[i] = kernel ? tables[i]->tile_count : 0;
        tops[i] = counts[i] < TOP ? counts[i] : TOP;
        k->tried += counts[i];
        memset(k->samples, 0, sizeof k->samples);
        for (uint32_t c = 0; c < counts[i]; c++) k->order[c] = c;
    }
    for (uint32_t rank = 0; any; rank++) UIR_TRY(look(t, trial, rank, counts, &any));
    for (uint32_t i = 0; i < t->kernel_count; i++) sort_tiles(&t->kernels[i], counts[i]);
    for (uint32_t again = 0; again < AGAIN; again++)
        for (uint32_t rank = 0; rank < TOP; rank++) UIR_TRY(look(t, trial, rank, tops, &any));
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        sort_tiles(&t->kernels[i], counts[i]);
        if (counts[i]) take_best(&t->kernels[i], tables[i]);
    }
    return UIR_STATUS_OK;
}

static bool has_depth(const tuning *t) {
    for (uint32_t i = 0; i < t->kernel_count; i++)
        if (t->kernels[i].before.depth) return true;
    return false;
}

/* As long as there is time for another compile and for the last one, which puts together the best. */
static uir_status try_depths(tuning *t) {
    double trial_ms = 0;
    for (uint32_t d = 0; d < (has_depth(t) ? DEPTHS : 1); d++) {
        double start = uir_api_now_ms();
        trial other = {NULL, NULL, NULL};
        if (d && start + trial_ms + 3 * t->load_ms > t->end_ms) break;
        UIR_TRY(say(t, "compiling kernels with other tiles"));
        UIR_TRY(write_records(t, false, depths[d]));
        other.records = t->records.data;
        uir_status status = begin_trial(t, &other);
        if (status == UIR_STATUS_OK) status = measure(t, &other);
        end_trial(&other);
        UIR_TRY(status);
        trial_ms = uir_api_now_ms() - start;
    }
    return UIR_STATUS_OK;
}

/* ---- the end ---- */
static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of times: what else the machine does only adds to them. */
static double quartile(double *items, uint32_t count) {
    qsort(items, count, sizeof *items, compare_doubles);
    return items[count / 4];
}

static bool is_same(const uir_value *a, const uir_value *b) {
    if (uir_value_get_kind(a) != UIR_VALUE_TENSOR || uir_value_get_kind(b) != UIR_VALUE_TENSOR) return true;
    size_t size = uir_value_get_byte_size(a);
    return size == uir_value_get_byte_size(b) &&
           (!size || !memcmp(uir_value_get_data((uir_value *)(uintptr_t)a),
                             uir_value_get_data((uir_value *)(uintptr_t)b), size));
}

static uir_status compare_outputs(tuning *t, side other) {
    const uir_model *model = t->sides[BEFORE].model;
    for (size_t i = 0; i < model->output_count; i++) {
        uir_value *before, *after;
        UIR_TRY(uir_session_get_output(t->sides[BEFORE].session, i, &before));
        UIR_TRY(uir_session_get_output(t->sides[other].session, i, &after));
        if (!is_same(before, after))
            return uir_error_hint(&t->call->diagnostics, UIR_STATUS_INTERNAL, NULL, "report this fault of the compiler",
                                  "output '%s' changes with the tile size; no tuning result was saved",
                                  model->outputs[i].port.name);
    }
    return UIR_STATUS_OK;
}

static uir_status run_turn(tuning *t, uint32_t which) {
    trial *trial = &t->sides[which];
    double start = uir_api_now_ms();
    uint32_t row;
    UIR_TRY(say(t, "comparing"));
    UIR_TRY(uir_session_run(trial->session));
    t->whole[which][t->turn_count] = uir_api_now_ms() - start;
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        sample s;
        (void)!take_sample(trial, t->kernels[i].name, &s, &row);
        t->kernels[i].turns[which][t->turn_count] = s.ms;
    }
    return UIR_STATUS_OK;
}

/* The fastest of the sides, if it is worth it. */
static void settle(tuning *t, tuned *k) {
    double found, plain;
    k->before_ms = k->after_ms = quartile(k->turns[BEFORE], t->turn_count);
    found = k->best.tile_count ? quartile(k->turns[FOUND], t->turn_count) : k->before_ms;
    plain = t->side_count > PLAIN ? quartile(k->turns[PLAIN], t->turn_count) : k->before_ms;
    if (t->side_count > PLAIN && worth * plain <= found) { /* nothing better is known than what the tactic chooses */
        const uir_lowering_kernel *kernel = find_kernel(&t->sides[PLAIN], k->name);
        if (kernel) k->best = kernel->lowered.choice.chosen;
        found = plain;
    }
    k->kept = k->best.tile_count && found < worth * k->before_ms;
    if (k->kept) k->after_ms = found;
}

/* The sides in turn; what is no faster is not kept. */
static uir_status compare(tuning *t, uir_tune_result *result) {
    while (t->turn_count < LEAST_TURNS || (t->turn_count < MOST_TURNS && uir_api_now_ms() < t->end_ms)) {
        for (uint32_t i = 0; i < t->side_count; i++) UIR_TRY(run_turn(t, (t->turn_count + i) % t->side_count));
        t->turn_count++;
    }
    for (uint32_t i = FOUND; i < t->side_count; i++) UIR_TRY(compare_outputs(t, (side)i));
    result->before_ms = quartile(t->whole[BEFORE], t->turn_count);
    result->after_ms = quartile(t->whole[FOUND], t->turn_count);
    for (uint32_t i = PLAIN; i < t->side_count; i++) {
        double plain = quartile(t->whole[i], t->turn_count);
        if (plain < result->after_ms) result->after_ms = plain;
    }
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        settle(t, &t->kernels[i]);
        result->kept_count += t->kernels[i].kept;
        result->tried += t->kernels[i].tried;
    }
    if (!result->kept_count) result->after_ms = result->before_ms;
    return UIR_STATUS_OK;
}

static uir_status report(tuning *t) {
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < t->kernel_count && t->options->report && status == UIR_STATUS_OK; i++) {
        const tuned *k = &t->kernels[i];
        uir_text text;
        uir_text_init(&text, &t->context->allocator);
        uir_parameters_print(k->kept ? &k->best : &k->before, &text);
        status = uir_text_status(&text);
        uir_tune_line line = {.struct_size = sizeof line,
                              .kernel = k->name,
                              .record = text.data,
                              .before_ms = k->before_ms,
                              .after_ms = k->after_ms,
                              .tried = k->tried,
                              .kept = k->kept};
        if (status == UIR_STATUS_OK) t->options->report(t->options->user, &line);
        uir_text_deinit(&text);
    }
    return status;
}

static uir_status store(tuning *t, const uir_records *records) {
    const uir_model_tune_options *o = t->options;
    const uir_cache_options options = {.folder = o->cache, .limit = o->cache_limit, .copy = o->no_map};
    trial last = {NULL, NULL, NULL};
    uir_cache *cache;
    if (o->no_cache) return UIR_STATUS_OK;
    UIR_TRY(uir_cache_open(&t->context->allocator, &options, &t->call->diagnostics, &cache));
    uir_status status = uir_api_records_store(cache, records, &t->context->allocator, &t->call->diagnostics);
    uir_cache_close(cache);
    /* The model's package is made of them from now on. */
    if (status == UIR_STATUS_OK) status = begin_trial(t, &last);
    end_trial(&last);
    return status;
}

/* Of all kernels to whoever asks for the text, of those that gained into the cache. */
static uir_status keep(tuning *t) {
    uir_records all = {.items = {0}}, gained = {.items = {0}};
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const tuned *k = &t->kernels[i];
        uir_record record = {.kernel = k->identity, .name = k->name, .parameters = k->kept ? k->best : k->before};
        UIR_TRY(uir_vector_push(&t->arena, &all.items, record));
        if (k->kept) UIR_TRY(uir_vector_push(&t->arena, &gained.items, record));
    }
    t->records.length = 0;
    uir_records_print(&all, &t->records);
    UIR_TRY(uir_text_status(&t->records));
    if (t->options->keep) t->options->keep(t->options->user, t->records.data, t->records.length);
    return gained.items.count ? store(t, &gained) : UIR_STATUS_OK;
}

static uir_status check_native(tuning *t) {
    if (t->sides[BEFORE].session->runtime && !strcmp(t->sides[BEFORE].model->info.device, "cpu")) return UIR_STATUS_OK;
    return uir_error_hint(&t->call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                          "run uir-run MODEL --explain for the reason",
                          "no native code runs the model, so there is nothing to tune");
}

static bool has_records(const tuning *t) {
    for (uint32_t i = 0; i < t->kernel_count; i++) {
        const uir_lowering_kernel *kernel = find_kernel(&t->sides[BEFORE], t->kernels[i].name);
        if (kernel && kernel->lowered.choice.given.tile_count + kernel->lowered.choice.given.depth) return true;
    }
    return false;
}

static uir_status tune(tuning *t, uir_tune_result *result) {
    UIR_TRY(say(t, "compiling"));
    t->sides[BEFORE].records = t->options->records;
    UIR_TRY(begin_trial(t, &t->sides[BEFORE]));
    UIR_TRY(check_native(t));
    UIR_TRY(choose_kernels(t));
    result->kernel_count = t->kernel_count;
    if (!t->kernel_count) return UIR_STATUS_OK;
    if (has_records(t)) {
        t->sides[PLAIN].records = "records 1";
        t->side_count = SIDES;
        UIR_TRY(begin_trial(t, &t->sides[PLAIN]));
    }
    UIR_TRY(try_depths(t));
    UIR_TRY(say(t, "compiling the best"));
    UIR_TRY(write_records(t, true, 0));
    t->sides[FOUND].records = t->records.data;
    UIR_TRY(begin_trial(t, &t->sides[FOUND]));
    UIR_TRY(compare(t, result));
    UIR_TRY(report(t));
    return keep(t);
}

static uir_status tune_with(uir_call *call, uir_context *context, const char *path,
                            const uir_model_tune_options *options, uir_tune_result *result) {
    tuning t = {.call = call,
                .context = context,
                .path = path,
                .options = options,
                .operation = {.tell = options->progress, .user = options->user, .cancel = options->cancel},
                .side_count = PLAIN,
                .start_ms = uir_api_now_ms()};
    if (!options->bind)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the inputs are not set: uir_model_tune_options.bind is NULL");
    t.end_ms = t.start_ms + 1e3 * (options->seconds > 0 ? options->seconds : 60);
    uir_arena_init(&t.arena, &context->allocator);
    uir_text_init(&t.records, &context->allocator);
    uir_status status = tune(&t, result);
    for (uint32_t i = 0; i < SIDES; i++) end_trial(&t.sides[i]);
    uir_text_deinit(&t.records);
    uir_arena_deinit(&t.arena);
    return status == UIR_STATUS_OK ? uir_operation_finish(&t.operation) : status;
}

uir_status uir_model_tune_file(uir_context *context, const char *path, const uir_model_tune_options *options,
                               uir_tune_result *out_result) {
    uir_call call;
    uir_model_tune_options taken;
    uir_tune_result result = {0};
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_model_tune_options, options, &taken);
    if (status == UIR_STATUS_OK) status = tune_with(&call, context, path, &taken, &result);
    if (status == UIR_STATUS_OK) status = UIR_STRUCT_GIVE(&call.diagnostics, uir_tune_result, &result, out_result);
    return uir_call_end(&call, status, "tuning a model");
}
