/* uir-pack: compiles an ONNX model to a package file. Uses the public API alone. */
#define _POSIX_C_SOURCE 200809L
#include "tools/run/options.h"
#include "tools/run/output.h"
#include "tools/run/printable.h"
#include "tools/run/progress.h"
#include "tools/run/query.h"
#include "tools/run/tolerance.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEVICES = 16 };

static volatile sig_atomic_t caught_signal;
static volatile bool cancelled;

static void on_signal(int number) {
    if (caught_signal) _exit(128 + number);
    caught_signal = number;
    cancelled = true;
}

static bool show_progress(void *user, const char *stage, double fraction) {
    (void)user;
    progress_set_part(stage, fraction);
    return false;
}

/* ---- devices ---- */
typedef struct device_list {
    char *text; /* of all names, cut at the commas */
    const char *names[MAX_DEVICES];
    size_t count;
} device_list;

static const char *device_name(void *user, size_t index) {
    (void)user;
    const char *name = uir_device_name(index);
    return name && strcmp(name, "interpreter") ? name : NULL;
}

static uir_status add_device(device_list *list, const char *name) {
    char word[64];
    size_t length = strcspn(name, ":");
    bool known = false;
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    for (size_t i = 0; device_name(NULL, i); i++) known |= !strcmp(device_name(NULL, i), word);
    if (!known) {
        const char *meant = nearest(word, device_name, NULL);
        complain("try: " PROGRAM " --help", "--device: packages cannot be made for '%s'%s%s%s", name,
                 meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    if (list->count == MAX_DEVICES) {
        complain(NULL, "--device: at most %d at a time", MAX_DEVICES);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    list->names[list->count++] = name;
    return UIR_STATUS_OK;
}

static uir_status list_devices(const run_options *options, device_list *out_list) {
    size_t size = 1;
    for (size_t i = 0; i < options->devices.count; i++) size += strlen(options->devices.items[i]) + 1;
    memset(out_list, 0, sizeof *out_list);
    char *at = out_list->text = malloc(size);
    if (!at) {
        complain(NULL, "out of memory");
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < options->devices.count; i++) {
        for (const char *from = options->devices.items[i];; from++) {
            size_t length = strcspn(from, ",");
            memcpy(at, from, length);
            at[length] = 0;
            uir_status status = add_device(out_list, at);
            if (status != UIR_STATUS_OK) return status;
            at += length + 1;
            from += length;
            if (!*from) break;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- the file ---- */
/* "model.uir" for "model.onnx"; to be freed. */
static char *default_output(const char *model) {
    size_t length = strlen(model);
    if (length > 5 && !strcmp(model + length - 5, ".onnx")) length -= 5;
    char *path = malloc(length + 5);
    if (path) {
        memcpy(path, model, length);
        strcpy(path + length, ".uir");
    }
    return path;
}

static void show_messages(uir_context *context, bool quiet) {
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (!quiet || m.severity == UIR_SEVERITY_ERROR) fprintf(stderr, PROGRAM ": %s\n", m.text);
    }
}

static const char *describe_code(const uir_package_info *info, char *buffer, size_t capacity) {
    if (info->has_program) return "their program for the device's compiler";
    if (!info->native_count) return "no native code";
    snprintf(buffer, capacity, "native code of %u variant%s", info->native_count, info->native_count > 1 ? "s" : "");
    return buffer;
}

static uir_status write_package(const run_options *options, const device_list *devices, const char *path) {
    uir_context *context = NULL;
    uir_package_info info = {.struct_size = sizeof info};
    uir_tolerance tolerance;
    bool stated = tolerance_find_beside(options->model, &tolerance) != NULL;
    uir_package_write_options write = {.struct_size = sizeof write,
                                       .devices = devices->names,
                                       .device_count = devices->count,
                                       .no_native = options->no_native,
                                       .progress = show_progress,
                                       .cancel = &cancelled,
                                       .tolerance = stated ? &tolerance : NULL,
                                       .external_data = options->external_data,
                                       .no_map = options->no_map,
                                       .limits = &options->limits,
                                       .sign_key = options->sign,
                                       .tuned = options->tune,
                                       .cache = options->cache,
                                       .exact = options->exact,
                                       .precision = options->precision,
                                       .strict = options->strict,
                                       .no_fallback = options->no_fallback,
                                       .overrides = options->overrides.items,
                                       .override_count = options->overrides.count};
    uir_status status = uir_context_create(NULL, &context);
    if (status != UIR_STATUS_OK) {
        complain(NULL, "%s", uir_status_text(status));
        return status;
    }
    if (!options->quiet) progress_start();
    status = uir_package_write_file(context, options->model, path, &write, &info);
    progress_stop();
    if (!caught_signal) show_messages(context, options->quiet); /* who sent it knows */
    if (status == UIR_STATUS_OK && !options->quiet) {
        char shown[300], code[60];
        printf("%s: %.1f MB, %u kernels, %s, in %.1f s\n", printable(path, shown, sizeof shown),
               (double)info.size / 1e6, info.kernel_count, describe_code(&info, code, sizeof code),
               info.compile_ms / 1e3);
    }
    uir_context_destroy(context);
    return status;
}

static uir_status pack(const run_options *options) {
    device_list devices;
    if (!options->model) {
        complain("try: " PROGRAM " --help", "no model given");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    uir_status status = list_devices(options, &devices);
    char *path =
        status == UIR_STATUS_OK ? options->output ? strdup(options->output) : default_output(options->model) : NULL;
    if (status == UIR_STATUS_OK && !path) {
        complain(NULL, "out of memory");
        status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (status == UIR_STATUS_OK) status = write_package(options, &devices, path);
    free(path);
    free(devices.text);
    return status;
}

static uir_status make_key(const run_options *options) {
    uir_context *context = NULL;
    char shown[300];
    if (options->model) {
        complain("make the key first, without a model", "--make-key makes no package");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    uir_status status = uir_context_create(NULL, &context);
    if (status == UIR_STATUS_OK) status = uir_package_make_key(context, options->make_key);
    if (context) show_messages(context, options->quiet);
    if (status == UIR_STATUS_OK && !options->quiet) {
        printable(options->make_key, shown, sizeof shown);
        printf("%s: secret key, for --sign\n%s.pub: public key, for --trust\n", shown, shown);
    }
    uir_context_destroy(context);
    return status;
}

int main(int argc, char **argv) {
    run_options options;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uir_status status = options_parse(argc, argv, &options);
    if (status == UIR_STATUS_OK) {
        if (options.help)
            options_print_help(stdout, terminal_width(STDOUT_FILENO));
        else if (options.version)
            printf("uir %s\n", uir_version());
        else
            status = options.make_key ? make_key(&options) : pack(&options);
    }
    options_free(&options);
    return output_end(status, caught_signal);
}
