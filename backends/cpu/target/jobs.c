/* Compilers side by side: spawned without a shell, each the leader of a group of its own so that what it started ends
 * with it, heard through pipes, waited for in any case. */
#include "backends/cpu/target/jobs.h"

#include "backends/cpu/target/compile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define MAX_MESSAGES 12000 /* bytes of a child's words that are kept */
#define MAX_AT_ONCE  64
#define ENOUGH       (256ull << 20) /* bytes for one compiler, where memory is limited */

typedef struct child {
    pid_t id; /* 0: none */
    int words;
    bool closed;    /* its end of the pipe: it is about to end, or hangs */
    int64_t began;  /* on the monotonic clock, ms */
    uint64_t ticks; /* of processor time, that it and what it started had used when that was looked at last */
    const uir_cpu_job *job;
    size_t used;
    char messages[MAX_MESSAGES + 1];
} child;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The caller's environment, but temporary files go to the build's folder, and messages are in one language. */
static char **make_environment(const uir_allocator *allocator, char *temporary, size_t *out_size) {
    static const char language[] = "LC_ALL=C";
    size_t count = 0, used = 0;
    while (environ[count]) count++;
    size_t table = (count + 3) * sizeof(char *);
    *out_size = table + sizeof language;
    char **made = uir_allocate(allocator, *out_size);
    if (!made) return NULL;
    char *last = (char *)made + table; /* behind the table: its words may be written to */
    memcpy(last, language, sizeof language);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "TMPDIR=", 7) != 0 && strncmp(environ[i], "LC_ALL=", 7) != 0) made[used++] = environ[i];
    }
    made[used++] = temporary;
    made[used++] = last;
    made[used] = NULL;
    return made;
}

/* What it starts has the limit too. Where it cannot be set, the compiler's memory is not bounded. */
static void limit_memory(const uir_cpu_jobs *jobs, pid_t id) {
#if defined(__linux__)
    const struct rlimit limit = {jobs->memory, jobs->memory};
    if (jobs->memory != UIR_NO_LIMIT) prlimit(id, RLIMIT_AS, &limit, NULL);
#else
    (void)jobs, (void)id;
#endif
}

static int spawn(const uir_cpu_jobs *jobs, child *c, char **environment) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        close(ends[0]), close(ends[1]);
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        sigemptyset(&none);
        sigfillset(&defaults);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setpgroup(&attributes, 0);
        error = posix_spawnattr_setflags(&attributes,
                                         POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (!error) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        if (!error) error = posix_spawn_file_actions_addchdir_np(&actions, jobs->folder);
        if (!error) error = posix_spawnp(&c->id, c->job->argv[0], &actions, &attributes, c->job->argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        c->id = 0;
        return error;
    }
    limit_memory(jobs, c->id);
    c->words = ends[0];
    c->used = 0;
    c->closed = false;
    c->began = now_ms();
    c->ticks = 0;
    c->messages[0] = 0;
    return 0;
}

/* True when the child has closed its end. */
static bool hear(child *c) {
    char buffer[4096];
    ssize_t got = read(c->words, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return false;
    if (got <= 0) return true;
    size_t keep = MAX_MESSAGES - c->used < (size_t)got ? MAX_MESSAGES - c->used : (size_t)got;
    memcpy(c->messages + c->used, buffer, keep);
    c->used += keep;
    c->messages[c->used] = 0;
    return false;
}

/* False: it has not ended yet. */
static bool reap(child *c, int flags, int *out_state) {
    pid_t got;
    do got = waitpid(c->id, out_state, flags);
    while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    if (got < 0) *out_state = -1;
    close(c->words);
    c->id = 0;
    return true;
}

static void end_all(child *children, uint32_t count) {
    int state;
    for (uint32_t i = 0; i < count; i++) {
        if (children[i].id) kill(-children[i].id, SIGKILL);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (children[i].id) reap(&children[i], 0, &state);
    }
}

static uir_status judge(const uir_cpu_jobs *jobs, const child *c, int state, uir_diagnostics *diagnostics) {
    uir_location said = {.quote = c->messages};
    char text[120];
    snprintf(text, sizeof text, "raise the limit on memory, which left it %llu bytes",
             (unsigned long long)jobs->memory);
    const char *hint = jobs->memory != UIR_NO_LIMIT ? text : NULL;
    const char *end = c->messages[0] ? "" : "; it printed nothing";
    if (state != -1 && WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        if (c->messages[0])
            uir_warning(diagnostics, &said, "the C compiler '%s' warns about %s", c->job->argv[0], c->job->about);
        return UIR_STATUS_OK;
    }
    if (state != -1 && WIFSIGNALED(state))
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, &said, hint,
                              "the C compiler '%s' was killed by signal %d%s", c->job->argv[0], WTERMSIG(state), end);
    return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, &said, hint, "the C compiler '%s' failed on %s%s",
                          c->job->argv[0], c->job->about, end);
}

/* Adds the processor time that a process has used, in the system's ticks, to the child whose group it belongs to. What
 * the processes had used that it has waited for is its own. */
static void add_ticks(const char *id, child *children, uint32_t slots) {
    char path[300], line[1024];
    int group;
    unsigned long user, system;
    long ended_user, ended_system;
    snprintf(path, sizeof path, "/proc/%s/stat", id);
    FILE *file = fopen(path, "re");
    if (!file) return;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    /* Behind the name, which may hold anything: state, parent, group, five more, four of faults, the four times. */
    const char *after = strrchr(line, ')');
    if (!after || sscanf(after + 1, " %*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &group, &user,
                         &system, &ended_user, &ended_system) != 5)
        return;
    for (uint32_t i = 0; i < slots; i++)
        if (children[i].id && children[i].id == group)
            children[i].ticks += (uint64_t)user + system + (uint64_t)ended_user + (uint64_t)ended_system;
}

/* What each has used. Where there is no /proc the time that has gone by stands for it. */
static void look_at_times(uir_cpu_jobs *jobs, child *children, uint32_t slots) {
    bool known = false;
    int64_t now = now_ms();
    DIR *processes = opendir("/proc");
    for (uint32_t i = 0; i < slots; i++) children[i].ticks = 0;
    for (const struct dirent *e; processes && (e = readdir(processes));) {
        known |= !strcmp(e->d_name, "self");
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9') add_ticks(e->d_name, children, slots);
    }
    if (processes) closedir(processes);
    uint64_t used = jobs->done, hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    for (uint32_t i = 0; i < slots; i++) {
        if (!known && children[i].id) children[i].ticks = (uint64_t)(now - children[i].began) * hertz / 1000;
        used += children[i].ticks;
    }
    if (used != jobs->used || !known) jobs->busy = now;
    jobs->looked = now;
    jobs->used = used;
}

/* How often, in ms: some times within the shortest time that is waited for, and once a second at least. */
static int64_t often(const uir_cpu_jobs *jobs) {
    uint64_t shortest = jobs->idle_ms < jobs->timeout_ms ? jobs->idle_ms : jobs->timeout_ms;
    return shortest / 10 < 1000 ? (int64_t)(shortest / 10) : 1000;
}

/* A compiler that takes too much of the processor; or all have hung: none has used it for long, nor ended. */
static uir_status check_times(uir_cpu_jobs *jobs, child *children, uint32_t slots, uir_diagnostics *diagnostics) {
    char hint[120];
    const uir_limit_row *row = uir_limit_get_row(UIR_LIMIT_COMPILER);
    const child *any = NULL;
    if (now_ms() - jobs->looked < often(jobs)) return UIR_STATUS_OK;
    look_at_times(jobs, children, slots);
    for (uint32_t i = 0; i < slots; i++) {
        const child *c = &children[i];
        if (!c->id) continue;
        any = c;
        if (jobs->timeout_ms == UIR_NO_LIMIT || c->ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK) <= jobs->timeout_ms)
            continue;
        snprintf(hint, sizeof hint, "raise the limit with --limit-%s or uir_limits.%s", row->option, row->field);
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, hint,
                              "the C compiler '%s' exceeded its limit of %llu ms of processor time for %s",
                              c->job->argv[0], (unsigned long long)jobs->timeout_ms, c->job->about);
    }
    if (!any || jobs->looked - jobs->busy < jobs->idle_ms) return UIR_STATUS_OK;
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                     "the C compiler '%s' hangs: it has not used the processor for %u ms", any->job->argv[0],
                     jobs->idle_ms);
}

static uir_status watch(uir_cpu_jobs *jobs, child *children, uint32_t slots, uir_diagnostics *diagnostics) {
    struct pollfd heard[MAX_AT_ONCE];
    const uir_cpu_build_options *o = jobs->options;
    bool closing = false;
    for (uint32_t i = 0; i < slots; i++) {
        bool open = children[i].id && !children[i].closed;
        heard[i] = (struct pollfd){open ? children[i].words : -1, POLLIN, 0};
        closing |= children[i].id && children[i].closed;
    }
    if (o->build.cancel && __atomic_load_n(o->build.cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
    UIR_TRY(check_times(jobs, children, slots, diagnostics));
    if (poll(heard, slots, closing ? 1 : 20) < 0 && errno != EINTR)
        return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "cannot read the compilers' output: %s",
                         strerror(errno));
    for (uint32_t i = 0; i < slots; i++) {
        int state;
        if (!children[i].id) continue;
        if (heard[i].fd >= 0 && heard[i].revents) children[i].closed = hear(&children[i]);
        if (!children[i].closed || !reap(&children[i], WNOHANG, &state)) continue;
        UIR_TRY(judge(jobs, &children[i], state, diagnostics));
        if (jobs->finished) jobs->finished(jobs->finished_user, children[i].job);
        jobs->done++;
        if (o->build.progress && o->build.progress(o->build.progress_user, jobs->done, jobs->total))
            return UIR_STATUS_CANCELLED;
    }
    return UIR_STATUS_OK;
}

static uir_status run_all(uir_cpu_jobs *jobs, const uir_cpu_job *commands, uint32_t count, child *children,
                          uint32_t slots, char **environment, uir_diagnostics *diagnostics) {
    uint32_t started = 0, running;
    do {
        running = 0;
        for (uint32_t i = 0; i < slots; i++) {
            if (!children[i].id && started < count) {
                children[i].job = &commands[started++];
                int error = spawn(jobs, &children[i], environment);
                if (error)
                    return uir_error_hint(
                        diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, uir_cpu_compiler_hint(&jobs->options->compile),
                        "the C compiler '%s' cannot be started: %s", children[i].job->argv[0], strerror(error));
            }
            running += children[i].id != 0;
        }
        if (running) UIR_TRY(watch(jobs, children, slots, diagnostics));
    } while (running);
    return UIR_STATUS_OK;
}

uir_cpu_jobs uir_cpu_jobs_begin(const uir_allocator *allocator, const char *folder,
                                const uir_cpu_build_options *options, uint32_t at_once, uint32_t total) {
    const uir_cpu_compile_options *compile = &options->compile;
    uir_cpu_jobs jobs = {.allocator = allocator,
                         .folder = folder,
                         .options = options,
                         .at_once = at_once,
                         .timeout_ms = compile->timeout_ms
                                           ? compile->timeout_ms
                                           : uir_budget_get_limit(uir_budget_of(allocator), UIR_LIMIT_COMPILER),
                         .idle_ms = compile->idle_ms ? compile->idle_ms : 20000,
                         .total = total};
    return jobs;
}

uir_status uir_cpu_jobs_run(uir_cpu_jobs *jobs, const uir_cpu_job *commands, uint32_t count,
                            uir_diagnostics *diagnostics) {
    uint32_t slots = jobs->at_once;
    size_t environment_size;
    char temporary[600];
    child *children;
    if (slots > MAX_AT_ONCE) slots = MAX_AT_ONCE;
    if (slots > count) slots = count;
    if (!slots) return UIR_STATUS_OK;
    uint64_t left = uir_budget_get_left(uir_budget_of(jobs->allocator));
    while (left != UIR_NO_LIMIT && slots > 1 && left / slots < ENOUGH) slots--;
    jobs->memory = left == UIR_NO_LIMIT ? left : left / slots;
    jobs->looked = jobs->busy = now_ms();
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", jobs->folder);
    UIR_TRY_ALLOCATE(children, uir_allocate_zeroed(jobs->allocator, slots * sizeof *children));
    char **environment = make_environment(jobs->allocator, temporary, &environment_size);
    uir_status status = UIR_STATUS_OUT_OF_MEMORY;
    if (environment) {
        status = run_all(jobs, commands, count, children, slots, environment, diagnostics);
        end_all(children, slots);
        uir_release(jobs->allocator, environment, environment_size);
    }
    uir_release(jobs->allocator, children, slots * sizeof *children);
    return status;
}
