/* See engines.h. The emulated engine keeps one process for all calls of a batch and talks to it over two pipes, in the
 * records of backends/cpu/target/program.c. */
#define _POSIX_C_SOURCE 200809L
#include "engines.h"
#include "generate.h"
#include "tests/backends/cpu/native.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_TIMEOUT_MS = 120000 };

static const char cross_compiler[] = "aarch64-linux-gnu-gcc";

static bool is_installed(const char *program) {
    const char *path = getenv("PATH");
    char candidate[1024];
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    while (path && *path) {
        size_t length = strcspn(path, ":");
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, program);
        if (length && access(candidate, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static engine *add(engines *e) {
    return e->count < sizeof e->list / sizeof *e->list ? &e->list[e->count++] : NULL;
}

static const char *find_emulator(void) {
    static const char *const names[] = {"qemu-aarch64", "qemu-aarch64-static"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_installed(names[i])) return names[i];
    }
    return NULL;
}

static void add_emulated(engines *e, bool say) {
    if (uir_cpu_variant_runs_here(UIR_CPU_AARCH64)) return;
    e->emulator = is_installed(cross_compiler) ? find_emulator() : NULL;
    if (!e->emulator) {
        if (say)
            printf("skip: kernels for aarch64: %s is not installed\n",
                   is_installed(cross_compiler) ? "qemu-aarch64" : cross_compiler);
        return;
    }
    snprintf(e->folder, sizeof e->folder, "/tmp/uir-kernels-XXXXXX");
    engine *x = mkdtemp(e->folder) ? add(e) : NULL;
    if (!x) {
        e->folder[0] = 0;
        return;
    }
    x->compiler = cross_compiler;
    x->variant = UIR_CPU_AARCH64;
    x->emulated = true;
    snprintf(x->name, sizeof x->name, "%s:%s", x->compiler, uir_cpu_variant_name(x->variant));
}

void engines_open(engines *e, bool say) {
    const char *isa, *compilers = getenv("UIR_CAMPAIGN_COMPILERS");
    char *rest = NULL;
    memset(e, 0, sizeof *e);
    signal(SIGPIPE, SIG_IGN); /* a process that died shows as a failed write */
    for (size_t i = 0; uir_vm_isa(i, &isa); i++) {
        engine *x = add(e);
        if (!x) break;
        x->isa = isa;
        snprintf(x->name, sizeof x->name, "vm:%s", isa);
    }
    snprintf(e->compilers, sizeof e->compilers, "%s", compilers ? compilers : "gcc clang");
    for (char *name = strtok_r(e->compilers, " ,", &rest); name; name = strtok_r(NULL, " ,", &rest)) {
        if (!is_installed(name)) {
            if (say) printf("skip: kernels compiled by %s: it is not installed\n", name);
            continue;
        }
        for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
            engine *x = uir_cpu_variant_runs_here((uir_cpu_variant)v) ? add(e) : NULL;
            if (!x) continue;
            x->compiler = name;
            x->variant = (uir_cpu_variant)v;
            snprintf(x->name, sizeof x->name, "%s:%s", name, uir_cpu_variant_name((uir_cpu_variant)v));
        }
    }
    add_emulated(e, say);
}

bool engines_open_program(engines *e) {
    memset(e, 0, sizeof *e);
    signal(SIGPIPE, SIG_IGN);
    snprintf(e->folder, sizeof e->folder, "/tmp/uir-kernels-XXXXXX");
    if (!mkdtemp(e->folder)) {
        e->folder[0] = 0;
        return false;
    }
    engine *x = add(e);
    x->compiler = "gcc";
    x->variant = UIR_CPU_GENERIC;
    x->emulated = true;
    snprintf(x->name, sizeof x->name, "program:%s", x->compiler);
    return true;
}

void engines_take_turns(engines *e, uint64_t turn) {
    uint32_t compiled = 0, kept = 0, at = 0;
    if (!getenv("UIR_CAMPAIGN_TURNS")) return;
    for (uint32_t i = 0; i < e->count; i++) compiled += !e->list[i].isa;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->list[i].isa || at++ == turn % compiled) e->list[kept++] = e->list[i];
    }
    e->count = kept;
}

uint32_t engines_missing(const engines *e) {
    uint32_t missing = !e->emulator && !uir_cpu_variant_runs_here(UIR_CPU_AARCH64);
    const char *compilers = getenv("UIR_CAMPAIGN_COMPILERS");
    if (!compilers) missing += (uint32_t)!is_installed("gcc") + (uint32_t)!is_installed("clang");
    return missing;
}

static void stop_child(engine *x) {
    int status;
    if (!x->child) return;
    close(x->to_child); /* the end of its input ends it */
    close(x->from_child);
    kill(x->child, SIGKILL);
    while (waitpid(x->child, &status, 0) < 0 && errno == EINTR) {
    }
    x->child = 0;
}

void engines_drop(engines *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        native_unload(e->list[i].module);
        e->list[i].module = NULL;
        stop_child(&e->list[i]);
        if (e->list[i].program[0]) unlink(e->list[i].program);
        e->list[i].program[0] = 0;
    }
}

void engines_close(engines *e) {
    engines_drop(e);
    if (e->folder[0]) rmdir(e->folder);
    e->folder[0] = 0;
}

static uir_status compile_program(engines *e, engine *x, harness *h, const uir_igraph *const *kernels, uint32_t count,
                                  const uir_text *source, const uir_cpu_compile_options *options) {
    uir_text whole;
    char path[64];
    uir_text_init(&whole, &h->allocator);
    uir_text_append(&whole, source->data, source->length);
    uir_status status = uir_cpu_emit_main(kernels, count, &whole);
    snprintf(path, sizeof path, "%s/program", e->folder);
    if (status == UIR_STATUS_OK)
        status = uir_cpu_compile_program(&h->allocator, options, whole.data, whole.length, path, &h->diagnostics);
    uir_text_deinit(&whole);
    if (status == UIR_STATUS_OK) snprintf(x->program, sizeof x->program, "%s", path);
    return status;
}

bool engines_compile(engines *e, harness *h, const uir_igraph *const *kernels, uint32_t count, const char *flags,
                     char *failed, size_t size) {
    uir_text source;
    size_t used = 0;
    failed[0] = 0;
    uir_text_init(&source, &h->allocator);
    bool fine = uir_cpu_emit(kernels, count, &source, &h->diagnostics) == UIR_STATUS_OK;
    if (!fine) snprintf(failed, size, "the emitter");
    for (uint32_t i = 0; i < e->count && source.length && fine; i++) {
        engine *x = &e->list[i];
        uir_cpu_compile_options options = {
            .variant = x->variant, .compiler = x->compiler, .extra_flags = flags, .timeout_ms = 600000};
        uir_status status = UIR_STATUS_OK;
        const uir_diagnostic *last = h->diagnostics.last;
        if (x->emulated)
            status = compile_program(e, x, h, kernels, count, &source, &options);
        else if (x->compiler)
            status = native_compile(&h->allocator, &options, &source, &h->diagnostics, &x->module);
        /* Sanitizers bring warnings of their own. */
        bool warned = status == UIR_STATUS_OK && !flags && h->diagnostics.last != last;
        if ((warned || status != UIR_STATUS_OK) && used < size)
            used += (size_t)snprintf(failed + used, size - used, "%s%s%s", used ? ", " : "", x->name,
                                     warned ? ", with a warning" : "");
    }
    uir_text_deinit(&source);
    return failed[0] == 0;
}

bool engine_is_ready(const engine *e) {
    return e->isa || e->module || e->program[0];
}

/* ---- the emulated process ---- */
static bool start_child(const char *emulator, engine *x) {
    int in[2], out[2];
    if (pipe(in) != 0) return false;
    if (pipe(out) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        if (emulator) execlp(emulator, emulator, x->program, (char *)NULL);
        if (!emulator) execl(x->program, x->program, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    if (child < 0) {
        close(in[1]);
        close(out[0]);
        return false;
    }
    x->child = child;
    x->to_child = in[1];
    x->from_child = out[0];
    (void)fcntl(x->to_child, F_SETFD, FD_CLOEXEC); /* compilers started later must not hold them open */
    (void)fcntl(x->from_child, F_SETFD, FD_CLOEXEC);
    return true;
}

static bool write_all(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t wrote = write(fd, data, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static bool read_all(int fd, char *data, size_t size) {
    while (size) {
        struct pollfd p = {fd, POLLIN, 0};
        int ready = poll(&p, 1, ANSWER_TIMEOUT_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        ssize_t got = read(fd, data, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        data += got;
        size -= (size_t)got;
    }
    return true;
}

/* The program reads a whole call before it answers, so writing all and then reading all cannot lock up. */
static uir_status run_emulated(engines *e, engine *x, harness *h, uint32_t index, harness_case *c) {
    uir_kernel_arguments arguments = harness_arguments(c);
    uir_text call;
    size_t answer = 0, expected = 0;
    uir_text_init(&call, &h->allocator);
    uir_status status = uir_cpu_write_call(c->igraph, index, &arguments, &h->diagnostics, &call, &answer);
    for (uint32_t i = 0; i < c->count; i++) expected += c->size[i];
    if (status == UIR_STATUS_OK && answer != expected)
        status = uir_error(&h->diagnostics, UIR_STATUS_INTERNAL, NULL, "the answer has %zu bytes, the buffers %zu",
                           answer, expected);
    if (status == UIR_STATUS_OK) {
        bool fine = (x->child || start_child(e->emulator, x)) && write_all(x->to_child, call.data, call.length);
        for (uint32_t i = 0; i < c->count && fine; i++) fine = read_all(x->from_child, c->buffer[i], c->size[i]);
        if (!fine) {
            stop_child(x);
            status = uir_error(&h->diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "the program ended or hangs");
        }
    }
    uir_text_deinit(&call);
    return status;
}

uir_status engine_run(engines *e, engine *x, harness *h, uint32_t index, harness_case *c, const uir_vm_kernel *vm) {
    uir_kernel_arguments arguments = harness_arguments(c);
    uir_vm_options options = {.isa = x->isa};
    harness_reset(c);
    if (x->isa) return uir_vm_run(vm, &arguments, c->size, &options, &h->diagnostics);
    if (x->emulated) return run_emulated(e, x, h, index, c);
    return native_run(x->module, c->igraph, index, &arguments, c->size, 1 + random_below(&h->random, 2),
                      &h->diagnostics);
}
