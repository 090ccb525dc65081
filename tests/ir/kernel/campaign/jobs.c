/* See jobs.h. */
#define _DEFAULT_SOURCE
#include "jobs.h"
#include "generate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* On a terminal one line says how far it is. */
#define ERASE_LINE "\033[K"

enum { MAX_JOBS = 8, MOST_MESSAGES = 20, ENOUGH_FAILURES = 100 };

typedef struct board {
    uint64_t next;
    job_totals totals[MAX_JOBS];
} board;

void job_fail(job_totals *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (t->failed < MOST_MESSAGES) {
        fputs("FAILED: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    va_end(arguments);
    t->failed++;
}

static void work(uint64_t seed, uint64_t chunks, job_function function, void *user, board *b, job_totals *t) {
    harness h;
    harness_init(&h, seed);
    while (t->failed < ENOUGH_FAILURES) {
        uint64_t chunk = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        if (chunk >= chunks) break;
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%llu of %llu ...%s", (unsigned long long)chunk, (unsigned long long)chunks, ERASE_LINE);
        h.random = seed * 0x100000001B3u + chunk * 0x9E3779B97F4A7C15u;
        (void)random_next(&h.random);
        function(&h, chunk, user, t);
    }
    t->failed += h.failures;
    harness_deinit(&h);
}

static uint32_t count_jobs(uint64_t chunks) {
    const char *asked = getenv("UIR_CAMPAIGN_JOBS");
    long jobs = asked ? atol(asked) : sysconf(_SC_NPROCESSORS_ONLN);
    if (jobs < 1) jobs = 1;
    if (jobs > MAX_JOBS) jobs = MAX_JOBS;
    return (uint64_t)jobs > chunks ? (uint32_t)(chunks ? chunks : 1) : (uint32_t)jobs;
}

static void merge(job_totals *to, const job_totals *from) {
    to->passed += from->passed;
    to->failed += from->failed;
    to->skipped += from->skipped;
    for (int i = 0; i < 4; i++) to->counts[i] += from->counts[i];
    coverage_merge(&to->coverage, &from->coverage);
}

void jobs_run(uint64_t seed, uint64_t chunks, job_function function, void *user, job_totals *totals) {
    uint32_t jobs = count_jobs(chunks);
    pid_t children[MAX_JOBS] = {0};
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED) {
        job_fail(totals, "no memory to share: %s", strerror(errno));
        return;
    }
    fflush(NULL);
    if (jobs == 1) work(seed, chunks, function, user, b, &b->totals[0]);
    for (uint32_t i = 0; i < jobs && jobs > 1; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            work(seed, chunks, function, user, b, &b->totals[i]);
            exit(0); /* not _exit: leaks are looked for */
        }
        if (children[i] < 0) job_fail(totals, "no process: %s", strerror(errno));
    }
    for (uint32_t i = 0; i < jobs; i++) {
        int status = 0;
        while (children[i] > 0 && waitpid(children[i], &status, 0) < 0 && errno == EINTR) {
        }
        merge(totals, &b->totals[i]);
        if (status)
            job_fail(totals, "a process ended with %s %d in: %s", WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), b->totals[i].where);
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%s", ERASE_LINE);
    munmap(b, sizeof *b);
}
