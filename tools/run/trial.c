#define _POSIX_C_SOURCE 200809L
#include "trial.h"
#include "clock.h"
#include "printable.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MAX_WORDS = 64, WORD = 48, GRACE_MS = 2000, POLL_MS = 5 };

typedef struct words {
    const char *items[MAX_WORDS];
    char numbers[20][WORD];
    size_t count, number_count;
} words;

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* ---- the command ---- */

static void add(words *w, const char *word) {
    if (w->count + 1 < MAX_WORDS) w->items[w->count++] = word;
}

static void add_number(words *w, const char *option, const char *format, double value) {
    char *text = w->numbers[w->number_count++];
    snprintf(text, WORD, format, value);
    add(w, option);
    add(w, text);
}

static void add_limits(words *w, const uir_limits *limits) {
#define ADD_LIMIT(constant, field, option, scale, base, per_byte, what, help)                                          \
    if (limits->field == UIR_NO_LIMIT)                                                                                 \
        add(w, "--limit-" option), add(w, "none");                                                                     \
    else if (limits->field)                                                                                            \
        add_number(w, "--limit-" option, scale == 1 ? "%.0f" : "%.3f", (double)limits->field / (scale));
    UIR_LIMIT_TABLE(ADD_LIMIT)
#undef ADD_LIMIT
}

/* Whether `device` is NULL or names the first device, with or without a variant. */
static bool is_default_device(const char *device) {
    const char *name = uir_device_name(0);
    size_t length = strlen(name);
    return !device || (!strncmp(device, name, length) && (!device[length] || device[length] == ':'));
}

/* Kernels are made anew and waited for: what a cache held or when a compiler ended does not decide. */
static void add_options(words *w, const trial *t) {
    const run_options *o = t->options;
    const char *check = t->check ? t->check : o->check;
    if (o->device) add(w, "--device"), add(w, o->device);
    if (is_default_device(o->device)) add(w, "--no-vm");
    add(w, "--no-cache");
    if (o->no_map) add(w, "--no-map");
    add_limits(w, &o->limits);
    if (o->no_fallback) add(w, "--no-fallback");
    if (o->strict) add(w, "--strict");
    if (o->exact) add(w, "--exact");
    if (o->precision) add(w, "--precision"), add(w, o->precision);
    if (o->no_vendor) add(w, "--no-vendor");
    if (check) add(w, !strcmp(check, "all") ? "--check=all" : "--check");
    if (t->tolerance->rtol >= 0) add_number(w, "--rtol", "%.9g", t->tolerance->rtol);
    if (t->tolerance->atol_relative_to_max >= 0) {
        add_number(w, "--atol", "%.9g", t->tolerance->atol);
        add_number(w, "--atol-relative", "%.9g", t->tolerance->atol_relative_to_max);
    }
    if (t->tolerance->integers > 0) add_number(w, "--integer-atol", "%.9g", t->tolerance->integers);
    if (o->threads) add_number(w, "--threads", "%.0f", (double)o->threads);
}

void trial_print_options(const trial *t, FILE *stream) {
    words w = {0};
    add_options(&w, t);
    for (size_t i = 0; i < w.count; i++) fprintf(stream, " %s", w.items[i]);
}

/* ---- the process ---- */

static pid_t start(const words *w, const char *said) {
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, back;
    pid_t pid = -1;
    if (length <= 0) return -1;
    self[length] = 0;
    if (posix_spawn_file_actions_init(&files) != 0) return -1;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return -1;
    }
    sigemptyset(&none);
    sigemptyset(&back);
    sigaddset(&back, SIGINT);
    sigaddset(&back, SIGTERM);
    /* A group of its own: what a terminal sends comes to this process, which then ends that one. */
    bool good =
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, said, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 0 &&
        posix_spawnattr_setpgroup(&attributes, 0) == 0 && posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
        posix_spawnattr_setsigdefault(&attributes, &back) == 0 &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) ==
            0 &&
        posix_spawn(&pid, self, &files, &attributes, (char *const *)(uintptr_t)w->items, environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return good ? pid : -1;
}

/* Asked first, so that it takes its temporary files with it. */
static void end(pid_t pid, int *state) {
    double until = now_ms() + GRACE_MS;
    kill(-pid, SIGTERM);
    while (waitpid(pid, state, WNOHANG) == 0) {
        if (now_ms() > until) {
            kill(-pid, SIGKILL);
            waitpid(pid, state, 0);
            return;
        }
        pause_ms(POLL_MS);
    }
}

static trial_end wait_for(const trial *t, pid_t pid, double began, int *state) {
    for (;;) {
        pid_t got = waitpid(pid, state, WNOHANG);
        if (got == pid) return TRIAL_FINE;
        if (got < 0 && errno != EINTR) return TRIAL_NOT_RUN;
        bool stop = *t->cancel, late = now_ms() - began > t->limit_s * 1e3;
        if (stop || late) {
            end(pid, state);
            return stop ? TRIAL_STOPPED : TRIAL_HANGS;
        }
        pause_ms(POLL_MS);
    }
}

/* The data's folder, which is soon gone, and line ends as messages show them are of no use to a reader. */
static void clean_text(char *text, const char *data) {
    static const char *const ends[] = {"\\x0a", " "};
    char *at = strstr(text, data), *from = at;
    if (at && at - text > 4 && !memcmp(at - 4, " of ", 4)) from = at - 4;
    if (at) memmove(from, at + strlen(data), strlen(at + strlen(data)) + 1);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(text), cut = strlen(ends[i]);
        if (length >= cut && !strcmp(text + length - cut, ends[i])) text[length - cut] = 0;
    }
}

/* "uir-run: error: ..." becomes "...", with the lines that it quotes below it: another program's words. */
static void read_text(const char *path, char *text) {
    static const char mark[] = "error: ", quote[] = "    ";
    FILE *file = fopen(path, "r");
    char line[TRIAL_TEXT], first[TRIAL_TEXT] = "";
    size_t used = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, mark), *end = "";
        line[strcspn(line, "\n")] = 0;
        if (!*first) memcpy(first, line, sizeof first);
        if (used && strncmp(line, quote, strlen(quote)) != 0) break;
        if (used)
            at = line + strspn(line, " "), end = " ";
        else if (at)
            at += strlen(mark);
        if (at) used += (size_t)snprintf(text + used, TRIAL_TEXT - used, "%s%s", end, at);
        if (used >= TRIAL_TEXT) break;
    }
    if (file) fclose(file);
    if (!used) memcpy(text, first, sizeof first);
}

trial_result trial_run(const trial *t, const char *model, const char *data) {
    trial_result result = {.end = TRIAL_NOT_RUN};
    char said[4096];
    words w = {0};
    int state = 0;
    add(&w, PROGRAM);
    add(&w, "--data");
    add(&w, data);
    add(&w, "--quiet");
    add_options(&w, t);
    add(&w, "--"); /* a model's name may begin with a '-' */
    add(&w, model);
    if ((size_t)snprintf(said, sizeof said, "%s/said", t->scratch) >= sizeof said) return result;
    double began = now_ms();
    pid_t pid = start(&w, said);
    if (pid < 0) return result;
    result.end = wait_for(t, pid, began, &state);
    result.seconds = (now_ms() - began) * 1e-3;
    read_text(said, result.text);
    clean_text(result.text, data);
    unlink(said);
    if (result.end != TRIAL_FINE) return result;
    if (WIFSIGNALED(state)) {
        result.end = TRIAL_CRASHES;
        result.code = WTERMSIG(state);
        snprintf(result.text, sizeof result.text, "ended by signal %d (%s)", result.code, strsignal(result.code));
    } else if (WEXITSTATUS(state) != 0) {
        result.code = WEXITSTATUS(state);
        result.end = result.code == uir_status_exit_code(UIR_STATUS_DIFFERENT) ? TRIAL_DIFFERS : TRIAL_FAILS;
    }
    return result;
}

/* ---- the same fault ---- */

/* The next character of what a message says, names in quotes, numbers and what holds a slash left out; 0 at the end. */
static char next_character(const char **at) {
    const char *s = *at;
    for (;;) {
        const char *close = *s == '\'' ? strchr(s + 1, '\'') : NULL;
        size_t word = strcspn(s, " ");
        if (close)
            s = close + 1;
        else if (*s >= '0' && *s <= '9')
            s++;
        else if (word && memchr(s, '/', word))
            s += word;
        else
            break;
    }
    *at = *s ? s + 1 : s;
    return *s;
}

bool trial_same(const trial_result *a, const trial_result *b) {
    if (a->end != b->end || a->code != b->code) return false;
    if (a->end != TRIAL_FAILS) return true;
    const char *x = a->text, *y = b->text;
    for (;;) {
        char c = next_character(&x);
        if (c != next_character(&y)) return false;
        if (!c) return true;
    }
}
