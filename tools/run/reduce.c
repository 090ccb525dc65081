#define _POSIX_C_SOURCE 200809L
#include "reduce.h"
#include "clock.h"
#include "json.h"
#include "printable.h"
#include "progress.h"
#include "report.h"
#include "trial.h"
#include "query.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 4096, DEFAULT_SECONDS = 300, SHOWN_NODES = 20 };
/* Of a part: as long as a few runs of the whole took, and some for the start. */
enum { LIMIT_FACTOR = 4, LIMIT_SECONDS = 10 };

typedef struct search {
    uir_context *context;
    const run_options *options;
    const volatile bool *cancel;
    uir_extractor *parts;
    trial trial;
    trial_result wanted;
    size_t node_count, tries;
    bool fixed;         /* dims are numbers */
    bool out_of_time;   /* fewer nodes might do */
    const char *output; /* the only one; NULL: all */
    bool *kept;         /* by node */
    double began_ms;
    char scratch[PATH - 64], model[PATH], data[PATH];
} search;

static double seconds_of(const search *s) {
    return (now_ms() - s->began_ms) * 1e-3;
}

static uir_status out_of_memory(void) {
    complain(NULL, "out of memory");
    return UIR_STATUS_OUT_OF_MEMORY;
}

static double budget_s(const search *s) {
    return s->options->has_seconds ? s->options->seconds : DEFAULT_SECONDS;
}

/* ---- one try ---- */

static void empty_folder(const char *folder) {
    static const char *const kinds[] = {"input", "output"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char path[PATH];
        for (size_t i = 0; snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, kinds[k], i) < (int)sizeof path; i++)
            if (unlink(path) != 0) break;
    }
}

static uir_status write_parts(search *s, const bool *kept, const char *model, const char *data) {
    uir_subgraph cut = {.struct_size = sizeof cut, .nodes = kept, .output = s->output, .static_shapes = s->fixed};
    empty_folder(data);
    return uir_extractor_write(s->parts, &cut, model, data);
}

static void show(const search *s, size_t nodes) {
    char what[64];
    snprintf(what, sizeof what, "reducing: %zu of %zu nodes, try %zu", nodes, s->node_count, s->tries);
    progress_set(what);
}

static size_t count(const search *s, const bool *kept) {
    size_t n = 0;
    for (size_t i = 0; i < s->node_count; i++) n += kept[i];
    return n;
}

/* What cannot be written as a model does not show the fault. */
static trial_result try_parts(search *s, const bool *kept) {
    trial_result result = {.end = TRIAL_NOT_RUN};
    s->tries++;
    show(s, count(s, kept));
    uir_status status = write_parts(s, kept, s->model, s->data);
    if (status == UIR_STATUS_OK) return trial_run(&s->trial, s->model, s->data);
    uir_context_clear_messages(s->context);
    return result;
}

static bool fails_still(search *s, const bool *kept) {
    if (*s->cancel) return false;
    if (seconds_of(s) > budget_s(s)) s->out_of_time = true;
    if (s->out_of_time) return false;
    trial_result result = try_parts(s, kept);
    return trial_same(&result, &s->wanted);
}

/* ---- the search ---- */

typedef struct node_list {
    size_t *items, count;
} node_list;

/* Of the list, chunk `at` of `chunks`, or all but it. */
static void choose(const search *s, const node_list *list, size_t at, size_t chunks, bool complement, bool *kept) {
    size_t from = list->count * at / chunks, to = list->count * (at + 1) / chunks;
    memset(kept, 0, s->node_count);
    for (size_t i = 0; i < list->count; i++)
        if ((i >= from && i < to) != complement) kept[list->items[i]] = true;
}

static void take(search *s, const bool *kept, node_list *list) {
    memcpy(s->kept, kept, s->node_count);
    list->count = 0;
    for (size_t i = 0; i < s->node_count; i++)
        if (kept[i]) list->items[list->count++] = i;
}

/* One round with so many chunks; whether the list became shorter. `*chunks` for the next one. */
static bool cut_chunks(search *s, node_list *list, size_t *chunks, bool *kept) {
    for (int complement = 0; complement < 2; complement++) {
        if (complement && *chunks == 2) break; /* the same two */
        for (size_t at = 0; at < *chunks; at++) {
            choose(s, list, at, *chunks, complement, kept);
            if (!fails_still(s, kept)) continue;
            take(s, kept, list);
            *chunks = complement && *chunks > 3 ? *chunks - 1 : 2;
            return true;
        }
    }
    return false;
}

static uir_status cut_nodes(search *s) {
    node_list list = {calloc(s->node_count + 1, sizeof *list.items), 0};
    bool *kept = calloc(s->node_count + 1, sizeof *kept);
    if (list.items && kept) take(s, s->kept, &list);
    for (size_t chunks = 2; list.items && kept && list.count > 1;) {
        if (cut_chunks(s, &list, &chunks, kept)) continue;
        if (chunks >= list.count || *s->cancel || s->out_of_time) break;
        chunks = 2 * chunks < list.count ? 2 * chunks : list.count;
    }
    bool good = list.items && kept;
    free(list.items);
    free(kept);
    return good ? UIR_STATUS_OK : out_of_memory();
}

/* Only one of several outputs, and the nodes that it needs. */
static uir_status cut_outputs(search *s) {
    uir_status status = write_parts(s, s->kept, s->model, s->data);
    size_t outputs = 0;
    bool *kept = calloc(s->node_count + 1, sizeof *kept);
    while (status == UIR_STATUS_OK && uir_extractor_get_output_name(s->parts, outputs)) outputs++;
    for (size_t i = 0; kept && outputs > 1 && i < outputs && status == UIR_STATUS_OK; i++) {
        /* The names are those of the last that was written. */
        s->output = NULL;
        status = write_parts(s, s->kept, s->model, s->data);
        if (status == UIR_STATUS_OK) s->output = uir_extractor_get_output_name(s->parts, i);
        memcpy(kept, s->kept, s->node_count);
        if (status == UIR_STATUS_OK) status = uir_extractor_prune(s->parts, s->output, kept);
        if (status == UIR_STATUS_OK && fails_still(s, kept)) {
            memcpy(s->kept, kept, s->node_count);
            break;
        }
        s->output = NULL;
    }
    if (!kept) status = out_of_memory();
    free(kept);
    return status;
}

/* ---- the whole model ---- */

/* What is the dtype's own, a negative number, stays so. */
static void widen(uir_tolerance *tolerance, const uir_tolerance *by) {
    if (tolerance->rtol >= 0 && by->rtol > tolerance->rtol) tolerance->rtol = by->rtol;
    if (by->atol > tolerance->atol) tolerance->atol = by->atol;
    if (tolerance->atol_relative_to_max >= 0 && by->atol_relative_to_max > tolerance->atol_relative_to_max)
        tolerance->atol_relative_to_max = by->atol_relative_to_max;
    if (by->integers > tolerance->integers) tolerance->integers = by->integers;
}

/* Whether all of it goes wrong, by the model's tolerance or the caller's. What lies between nodes cancels and is
 * rounded in other ways than the outputs: unless the caller gave a tolerance, parts are held to no less than --check's,
 * and integers may be one apart, where the whole shows the same then. So it is with dims as numbers, which make a
 * simpler model. */
static uir_status find_fault(search *s, const run_case *c, uir_tolerance *tolerance) {
    static const uir_tolerance between_stages = {.rtol = 1e-3, .atol_relative_to_max = 1e-4, .integers = 1};
    const run_options *o = s->options;
    *tolerance = c->tolerance;
    uir_status status = write_parts(s, s->kept, s->model, s->data); /* whose messages say why the whole cannot be */
    if (status != UIR_STATUS_OK) return status;
    s->wanted = try_parts(s, s->kept);
    if (*s->cancel) return UIR_STATUS_CANCELLED;
    if (s->wanted.end == TRIAL_NOT_RUN) {
        complain("check that this user may start more processes, and that memory is free",
                 "--reduce: the model could not be run in a separate process");
        return UIR_STATUS_DEVICE_FAILED;
    }
    if (s->wanted.end == TRIAL_FINE) return UIR_STATUS_OK;
    s->trial.limit_s = LIMIT_SECONDS + LIMIT_FACTOR * s->wanted.seconds;
    if (s->wanted.end == TRIAL_DIFFERS && !o->has_rtol && !o->has_atol && !o->has_atol_relative &&
        !o->has_integer_atol) {
        widen(tolerance, &between_stages);
        if (!fails_still(s, s->kept)) *tolerance = c->tolerance;
    }
    s->fixed = true;
    if (!fails_still(s, s->kept)) s->fixed = false;
    return UIR_STATUS_OK;
}

/* ---- results that the interpreter has as well ---- */

/* Which outputs of the interpreter's own run are not what the data say: no kernel has a part in that. Keeps what the
 * first such output needs; `*out_found`: there is one. */
static uir_status blame_interpreter(search *s, uir_model *model, const run_case *c, bool *out_found) {
    uir_session *session = NULL;
    const uir_session_options options = {.struct_size = sizeof options, .limits = &s->options->limits};
    uir_status status = uir_session_create(model, &options, &session);
    for (size_t i = 0; i < c->input_count && status == UIR_STATUS_OK; i++)
        status = uir_session_set_input(session, i, c->inputs[i]);
    if (status == UIR_STATUS_OK) status = uir_session_run(session);
    for (size_t i = 0; i < c->output_count && status == UIR_STATUS_OK && !*out_found; i++) {
        uir_value *value = NULL;
        if (!c->expected[i]) continue;
        status = uir_session_get_output(session, i, &value);
        if (status != UIR_STATUS_OK) break;
        uir_comparison comparison = query_comparison(value, c->expected[i], c->tolerance);
        if (comparison.agree) continue;
        *out_found = true;
        s->output = uir_model_get_output_name(model, i);
        snprintf(s->wanted.text, sizeof s->wanted.text, "output '%s': %s", s->output, comparison.text);
        status = uir_extractor_set_expected(s->parts, i, c->expected[i]);
        if (status == UIR_STATUS_OK) status = uir_extractor_prune(s->parts, s->output, s->kept);
    }
    uir_session_destroy(session);
    return status;
}

/* Whether the device's results are beyond the data's tolerance though each of the two is near enough to the
 * interpreter's. */
static uir_status add_up(search *s, const run_case *c, bool *out_differs) {
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < c->output_count && status == UIR_STATUS_OK; i++)
        if (c->expected[i]) status = uir_extractor_set_expected(s->parts, i, c->expected[i]);
    if (status != UIR_STATUS_OK || !c->has_expected) return status;
    trial_result result = try_parts(s, s->kept);
    *out_differs = result.end == TRIAL_DIFFERS;
    if (*out_differs) s->wanted = result;
    return *s->cancel ? UIR_STATUS_CANCELLED : UIR_STATUS_OK;
}

/* ---- what was found ---- */

static const char *describe_end(const trial_result *r, char *buffer, size_t capacity) {
    static const char *const words[] = {
        [TRIAL_FINE] = "agrees",        [TRIAL_DIFFERS] = "differs", [TRIAL_FAILS] = "fails",
        [TRIAL_CRASHES] = "crashes",    [TRIAL_HANGS] = "hangs",     [TRIAL_STOPPED] = "was stopped",
        [TRIAL_NOT_RUN] = "was not run"};
    snprintf(buffer, capacity, "%s%s%s", words[r->end], *r->text ? ": " : "", r->text);
    return buffer;
}

static uir_status status_of(const trial_result *r) {
    if (r->end == TRIAL_DIFFERS) return UIR_STATUS_DIFFERENT;
    for (int i = 0; r->end == TRIAL_FAILS && i < UIR_STATUS_COUNT; i++)
        if (uir_status_exit_code((uir_status)i) == r->code) return (uir_status)i;
    return UIR_STATUS_DEVICE_FAILED;
}

/* For a shell. */
static void print_word(const char *word) {
    putchar('\'');
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    }
    putchar('\'');
}

static bool is_printable(const char *text) {
    char shown[2 * PATH];
    return !strcmp(printable(text, shown, sizeof shown), text);
}

typedef struct finding {
    const char *out, *data;
    const trial_result *result, *check; /* of the reduced model; check.end NOT_RUN: none */
    bool by_interpreter;
} finding;

static void print_finding(const search *s, const finding *f) {
    char text[2 * TRIAL_TEXT], shown[2 * TRIAL_TEXT], name[100];
    size_t nodes = count(s, s->kept), told = 0;
    printf("reduce: the model %s\n", printable(describe_end(&s->wanted, text, sizeof text), shown, sizeof shown));
    if (f->by_interpreter)
        printf("reduce: the interpreter's results differ as well: the cause is the meaning of an op, or the data;\n"
               "        %zu of %zu nodes lead to this output\n",
               nodes, s->node_count);
    else
        printf("reduce: %zu of %zu nodes show the fault, %s, after %zu tries in %.0f s%s\n", nodes, s->node_count,
               s->fixed ? "at the data's sizes" : "with symbolic dims", s->tries, seconds_of(s),
               s->out_of_time ? "; out of time, fewer may show it (--seconds S)" : "");
    for (size_t i = 0; i < s->node_count; i++) {
        uir_extractor_node part = query_part(s->parts, i);
        if (!s->kept[i] || told++ >= SHOWN_NODES) continue;
        printf("  %s", printable(part.op, name, sizeof name));
        printf(" '%s'\n", printable(part.name, name, sizeof name));
    }
    if (told > SHOWN_NODES) printf("  ... and %zu more\n", told - SHOWN_NODES);
    if (!f->by_interpreter)
        printf("reduce: the reduced model %s\n",
               printable(describe_end(f->result, text, sizeof text), shown, sizeof shown));
    if (f->check->end == TRIAL_DIFFERS)
        printf("reduce: by --check=all: %s\n", printable(f->check->text, shown, sizeof shown));
    printf("reduce: wrote %s", printable(f->out, shown, sizeof shown));
    printf(" and %s\n", printable(f->data, shown, sizeof shown));
    if (!is_printable(f->out)) return;
    fputs("again:  " PROGRAM " ", stdout);
    print_word(f->out);
    fputs(" --data ", stdout);
    print_word(f->data);
    trial_print_options(&s->trial, stdout);
    putchar('\n');
}

static bool print_json(const search *s, const finding *f) {
    char text[2 * TRIAL_TEXT];
    cJSON *root = cJSON_CreateObject(), *nodes = cJSON_CreateArray();
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON_AddBoolToObject(root, "reproduced", f && (f->by_interpreter || trial_same(f->result, &s->wanted)));
    report_add_text(root, "fault", describe_end(&s->wanted, text, sizeof text));
    cJSON_AddNumberToObject(root, "all_nodes", (double)s->node_count);
    cJSON_AddNumberToObject(root, "tries", (double)s->tries);
    cJSON_AddBoolToObject(root, "finished", !s->out_of_time);
    cJSON_AddBoolToObject(root, "fixed_dims", s->fixed);
    cJSON_AddBoolToObject(root, "interpreter_differs", f && f->by_interpreter);
    report_add_text(root, "model", f ? f->out : "");
    report_add_text(root, "data", f ? f->data : "");
    report_add_text(root, "check", f && f->check->end == TRIAL_DIFFERS ? f->check->text : "");
    cJSON_AddItemToObject(root, "nodes", nodes);
    for (size_t i = 0; f && i < s->node_count; i++) {
        if (!s->kept[i]) continue;
        cJSON *node = cJSON_CreateObject();
        report_add_text(node, "name", query_part(s->parts, i).name);
        report_add_text(node, "op", query_part(s->parts, i).op);
        cJSON_AddItemToArray(nodes, node);
    }
    return report_write_json(stdout, root);
}

static uir_status tell(const search *s, const finding *f) {
    progress_hide();
    if (s->options->json) return print_json(s, f) ? UIR_STATUS_OK : out_of_memory();
    char text[2 * TRIAL_TEXT];
    bool differs = s->wanted.end != TRIAL_FINE;
    describe_end(&s->wanted, text, sizeof text);
    if (s->options->quiet && differs) complain(NULL, "the model %s", text);
    if (s->options->quiet) return UIR_STATUS_OK;
    if (f)
        print_finding(s, f);
    else if (differs)
        printf(
            "reduce: the model %s\nreduce: nothing to reduce: device and interpreter agree, and interpreter and data; "
            "only the two differences together exceed the tolerance\n",
            text);
    else
        puts("reduce: nothing to reduce: the model runs, and agrees with the interpreter");
    return UIR_STATUS_OK;
}

/* ---- the result ---- */

static uir_status name_data(const char *out, char *data, size_t capacity) {
    size_t length = strlen(out);
    struct stat facts;
    if (length > 5 && !strcmp(out + length - 5, ".onnx")) length -= 5;
    if ((size_t)snprintf(data, capacity, "%.*s_data", (int)length, out) >= capacity) {
        complain(NULL, "--reduce '%s': the path is too long", out);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    if (mkdir(data, 0777) == 0 || (errno == EEXIST && stat(data, &facts) == 0 && S_ISDIR(facts.st_mode)))
        return UIR_STATUS_OK;
    complain(NULL, "--reduce '%s': cannot make the folder: %s", data, strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

/* Written where the caller wants it, and run from there. */
static uir_status keep_result(search *s, bool by_interpreter) {
    char data[PATH];
    const char *out = s->options->reduce;
    trial_result result = s->wanted, check = {.end = TRIAL_NOT_RUN};
    uir_status status = name_data(out, data, sizeof data);
    if (status == UIR_STATUS_OK) status = write_parts(s, s->kept, out, data);
    if (status != UIR_STATUS_OK) return status;
    if (!by_interpreter) {
        progress_set("running the reduced model");
        result = trial_run(&s->trial, out, data);
        s->trial.check = "all";
        if (result.end == TRIAL_DIFFERS) check = trial_run(&s->trial, out, data);
        s->trial.check = NULL;
        if (*s->cancel) return UIR_STATUS_CANCELLED;
    }
    finding f = {out, data, &result, &check, by_interpreter};
    status = tell(s, &f);
    if (status != UIR_STATUS_OK) return status;
    if (!by_interpreter && !trial_same(&result, &s->wanted))
        complain("run --reduce again: the fault does not occur in every run",
                 "--reduce: the reduced model did not show the fault in another run");
    return by_interpreter ? UIR_STATUS_DIFFERENT : status_of(&s->wanted);
}

static uir_status search_case(search *s, uir_model *model, const run_case *c) {
    uir_tolerance tolerance;
    bool by_interpreter = false;
    s->trial.tolerance = &tolerance;
    progress_set("running the interpreter");
    uir_status status = uir_extractor_create(s->context, s->options->model, c->inputs, c->input_count,
                                             s->options->external_data, s->cancel, &s->parts);
    if (status != UIR_STATUS_OK) return status;
    s->node_count = uir_extractor_node_count(s->parts);
    s->kept = malloc(s->node_count + 1);
    if (!s->kept) return out_of_memory();
    memset(s->kept, true, s->node_count);
    status = uir_extractor_prune(s->parts, NULL, s->kept);
    if (status == UIR_STATUS_OK) status = find_fault(s, c, &tolerance);
    if (status == UIR_STATUS_OK && s->wanted.end == TRIAL_FINE)
        status = blame_interpreter(s, model, c, &by_interpreter);
    if (status != UIR_STATUS_OK) return status;
    if (s->wanted.end == TRIAL_FINE && !by_interpreter) {
        bool differs = false;
        status = add_up(s, c, &differs);
        if (status == UIR_STATUS_OK) status = tell(s, NULL);
        return status == UIR_STATUS_OK && differs ? UIR_STATUS_DIFFERENT : status;
    }
    if (by_interpreter) {
        s->wanted.end = TRIAL_DIFFERS;
        s->fixed = true;
        return keep_result(s, true);
    }
    status = cut_nodes(s);
    if (status == UIR_STATUS_OK && !*s->cancel) status = cut_outputs(s);
    if (status == UIR_STATUS_OK && *s->cancel) status = UIR_STATUS_CANCELLED;
    return status == UIR_STATUS_OK ? keep_result(s, false) : status;
}

static uir_status make_scratch(search *s) {
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    if ((size_t)snprintf(s->scratch, sizeof s->scratch, "%s/uir-reduce-XXXXXX", folder) >= sizeof s->scratch ||
        !mkdtemp(s->scratch)) {
        s->scratch[0] = 0;
        complain("set TMPDIR to another folder", "--reduce: cannot make a folder in '%s': %s", folder, strerror(errno));
        return UIR_STATUS_IO_FAILED;
    }
    snprintf(s->model, sizeof s->model, "%s/part.onnx", s->scratch);
    snprintf(s->data, sizeof s->data, "%s/data", s->scratch);
    return mkdir(s->data, 0700) == 0 ? UIR_STATUS_OK : UIR_STATUS_IO_FAILED;
}

static void drop_scratch(search *s) {
    if (!s->scratch[0]) return;
    empty_folder(s->data);
    rmdir(s->data);
    unlink(s->model);
    rmdir(s->scratch);
}

uir_status reduce_case(uir_context *context, uir_model *model, const run_options *options, const run_case *c,
                       const volatile bool *cancel) {
    search s = {.context = context, .options = options, .cancel = cancel, .began_ms = now_ms()};
    s.trial = (trial){.options = options, .limit_s = budget_s(&s), .cancel = cancel, .scratch = s.scratch};
    uir_status status = make_scratch(&s);
    if (status == UIR_STATUS_OK) status = search_case(&s, model, c);
    drop_scratch(&s);
    uir_extractor_destroy(s.parts);
    free(s.kept);
    return status;
}
