/* Loads a model or package as the options ask, and compares the stages of its compile. */
#define _DEFAULT_SOURCE
#include "load.h"
#include "accuracy.h"
#include "printable.h"
#include "progress.h"
#include "query.h"
#include "signals.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool load_is_package(const char *path) {
    static const char magic[] = UIR_PACKAGE_MAGIC;
    char start[sizeof magic - 1] = {0};
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    bool same = file && fread(start, 1, sizeof start, file) == sizeof start && !memcmp(start, magic, sizeof start);
    if (file) fclose(file);
    return same;
}

uir_status load_take_keep(const run_options *options, uir_model_options *model_options) {
    for (size_t i = 0; i < options->keep.count; i++) {
        if (!*options->keep.items[i]) {
            complain(NULL, "--keep needs the name of a node or value, or all");
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        if (!strcmp(options->keep.items[i], "all"))
            model_options->keep_all = true;
        else
            options->keep.items[model_options->keep_count++] = options->keep.items[i];
    }
    model_options->keep = options->keep.items;
    return UIR_STATUS_OK;
}

enum { MOST_OVERRIDES = 1024 };
/* Names of inputs with a default that this run has as inputs; they are the options' and `storage`'s. */
static struct {
    const char *names[MOST_OVERRIDES];
    size_t count;
    char *storage[MOST_OVERRIDES];
} overridden;

void load_forget_overridden(void) {
    for (size_t i = 0; i < overridden.count; i++) free(overridden.storage[i]);
    overridden.count = 0;
}

/* The model once more, when the data turn out to be for more than its inputs. */
static uir_status load_overridden(uir_context *context, const run_options *options, uir_model_options *model_options,
                                  uir_model **out_model) {
    const char *found[MOST_OVERRIDES];
    for (size_t i = 0; i < options->overrides.count && i < MOST_OVERRIDES; i++)
        overridden.names[overridden.count++] = options->overrides.items[i];
    model_options->overrides = overridden.names;
    model_options->override_count = overridden.count;
    uir_status status = uir_model_load_file(context, options->model, model_options, out_model);
    if (status != UIR_STATUS_OK || options->info) return status;
    size_t count = case_find_overrides(*out_model, options, found, MOST_OVERRIDES - overridden.count);
    if (!count) return status;
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(found[i]);
        if (!copy) return UIR_STATUS_OUT_OF_MEMORY;
        overridden.storage[overridden.count] = copy;
        overridden.names[overridden.count++] = copy;
    }
    uir_model_destroy(*out_model);
    *out_model = NULL;
    model_options->override_count = overridden.count;
    return uir_model_load_file(context, options->model, model_options, out_model);
}

uir_status load_model(uir_context *context, const run_options *options, bool package, uir_model_options *model_options,
                      uir_model **out_model) {
    uir_package_open_options open_options = {.struct_size = sizeof open_options,
                                             .trusted = options->trusted,
                                             .device = options->device,
                                             .no_map = options->no_map,
                                             .limits = &options->limits,
                                             .cancel = &signals_cancelled,
                                             .trust = options->trust.items,
                                             .trust_count = options->trust.count,
                                             .no_fallback = options->no_fallback};
    if (package && options->reduce) {
        complain("reduce the model it was made from", "--reduce: a package has no nodes to leave out");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->interpret) {
        complain("give the model it was made from", "--interpret: a package has no kernels for other devices");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->check) {
        complain("check the model it was made from", "--check: a package has no stages to compare");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && (options->keep.count || options->no_fusion || options->exact || options->precision ||
                    options->overrides.count)) {
        complain("give the model it was made from", "%s: the kernels of a package are fixed when it is made",
                 options->exact             ? "--exact"
                 : options->overrides.count ? "--override"
                 : options->precision       ? "--precision"
                 : options->no_fusion       ? "--no-fusion"
                                            : "--keep");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && (options->dump_source || options->source)) {
        complain("give the model it was made from", "%s: a package has no sources to compile",
                 options->source ? "--source" : "--dump-source");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && model_options->debug->dump) {
        complain("give the model it was made from", "UIR_DUMP, UIR_DEBUG: a package has no stages to print");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->external_data) {
        complain("leave it out", "--external-data: a package holds all of its model's data");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    if (!package && options->trust.count) {
        complain("give a signed package, or leave out --trust",
                 "--trust requires a signed package; the file is not a package");
        return UIR_STATUS_BAD_FILE;
    }
    if (package) return uir_model_open_package_file(context, options->model, &open_options, out_model);
    return load_overridden(context, options, model_options, out_model);
}

uir_status load_exact(uir_context *context, const run_options *options, const uir_model *model,
                      const uir_model_options *model_options, uir_model **out_exact) {
    uir_model_options exact = *model_options;
    uir_debug_options debug = *model_options->debug;
    uir_model_info info = query_info(model);
    if (!options->accuracy || !accuracy_is_lowered(&info)) return UIR_STATUS_OK;
    progress_set("loading the model in f32");
    exact.precision = NULL;
    debug.dump_source = debug.source = NULL;
    exact.debug = &debug;
    return uir_model_load_file(context, options->model, &exact, out_exact);
}

/* ---- stages compared ---- */
static void show_check(void *user, const uir_check_line *line) {
    const run_options *options = user;
    progress_hide();
    if (!line->agrees) {
        complain(NULL, "stage %s differs%s%s%s%s%s: %s", line->stage, *line->kernel ? ", kernel " : "", line->kernel,
                 *line->node ? ", node '" : "", line->node, *line->node ? "'" : "", line->text);
    } else if (!options->quiet && !options->json) {
        printf("check %-9s %6llu agree", line->stage, (unsigned long long)line->checked);
        if (line->skipped) printf(", %llu too large (--check=all)", (unsigned long long)line->skipped);
        putchar('\n');
    }
}

static bool show_check_progress(void *user, const char *stage, double fraction) {
    char what[64];
    (void)user;
    snprintf(what, sizeof what, "checking: %s", stage);
    progress_set_part(what, fraction);
    return false;
}

uir_status load_check_case(uir_context *context, const run_options *options, const run_case *c) {
    uir_model_check_options check = {.struct_size = sizeof check,
                                     .device = options->device,
                                     .all = !strcmp(options->check, "all"),
                                     .rtol = options->has_rtol ? options->rtol : 0,
                                     .atol_relative = options->has_atol_relative ? options->atol_relative : 0,
                                     .cancel = &signals_cancelled,
                                     .report = show_check,
                                     .progress = show_check_progress,
                                     .user = (void *)(uintptr_t)options,
                                     .external_data = options->external_data,
                                     .no_map = options->no_map,
                                     .limits = &options->limits,
                                     .exact = options->exact,
                                     .precision = options->precision,
                                     .strict = options->strict,
                                     .overrides = overridden.names,
                                     .override_count = overridden.count,
                                     .source = options->source};
    progress_set("checking");
    return uir_model_check_file(context, options->model, c->inputs, c->input_count, &check);
}
