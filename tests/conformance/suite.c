/* The onnx backend suite over the public API.
 *
 *   conformance_suite [--data DIR] [--device NAME] [--interpret] [--compiled] [--by-kernels N] [--every N [--from K]]
 *                     [--jobs N] [--timeout SECONDS] [--filter TEXT] [--verbose] [--at-least N] [--seed N]
 *
 * The device is the interpreter of primitives unless one is given. `--compiled` waits for compiled kernels,
 * `--by-kernels N`: at least N tests must run without a node that has no kernel; `--every N` takes each N-th test
 * alone, from the K-th on, counted from 0; `--seed N` gives each test a device of its own seed, drawn from N and the
 * test's name. In: the folder `onnx/backend/test/data` of the onnx package. Each test is a folder with a model and a
 * data set; it runs in a process of its own, so that a crash or a hang is one failure. Out: a line per failure, a table
 * of what is missing by op, and `N passed, M failed, S skipped`. A test passes when every output agrees (rtol 1e-3,
 * atol 1e-7; dtype, shape, integers and strings exactly; the real models carry their own tolerance). One that uses
 * something unsupported, said so when the model is loaded, is skipped and listed with its reason. Random numbers are
 * numpy's in what is expected and ours in what comes out: of those the distribution must agree. Skipped too is one
 * whose expected zeros are the rounding noise of another algorithm (it agrees within half a unit in the last place of
 * the greatest element). Everything else has failed. */
#include "uir/uir.h"
#include "tools/run/query.h"

#include <dirent.h>
#include <glob.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 1024, TEXT_SIZE = 600, MOST_VALUES = 64, MOST_JOBS = 64 };

typedef enum outcome { PASSED, FAILED, UNSUPPORTED, NOISE, OUTCOMES } outcome;

typedef struct test {
    char folder[PATH_SIZE], name[256];
    outcome result;
    char text[TEXT_SIZE]; /* what went wrong */
    char ops[TEXT_SIZE];  /* missing ops, each once, separated by blanks */
    bool by_kernels;      /* no node was left to the interpreter */
} test;

typedef struct settings {
    const char *filter, *device;
    int jobs, timeout, at_least, by_kernels, every, from, seed;
    bool verbose, compiled, interpret;
} settings;

/* ---- in the child: one test ---- */

typedef struct run {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    uir_value *inputs[MOST_VALUES], *expected[MOST_VALUES];
    uir_tolerance tolerance;
    outcome result;
    bool by_kernels;
    char text[TEXT_SIZE], ops[TEXT_SIZE];
} run;

static void explain(run *r, const char *what) {
    size_t count = uir_context_message_count(r->context);
    const char *text = what;
    for (size_t i = 0; i < count; i++) {
        uir_message message = query_message(r->context, i);
        if (message.severity != UIR_SEVERITY_ERROR) continue;
        text = message.text;
        break;
    }
    snprintf(r->text, sizeof r->text, "%s", text);
    for (char *c = r->text; *c; c++)
        if (*c == '\n' || *c == '\t') *c = ' ';
}

static void add_op(run *r, const char *op) {
    char padded[TEXT_SIZE + 2], word[130];
    snprintf(padded, sizeof padded, " %s ", r->ops);
    snprintf(word, sizeof word, " %.120s ", op);
    if (strstr(padded, word)) return;
    size_t used = strlen(r->ops);
    snprintf(r->ops + used, sizeof r->ops - used, "%s%.120s", used ? " " : "", op);
}

static void gather_ops(run *r) {
    for (size_t i = 0; i < uir_context_message_count(r->context); i++) {
        uir_message message = query_message(r->context, i);
        const char *op = message.op ? message.op : "(other)";
        if (message.severity != UIR_SEVERITY_ERROR || message.status != UIR_STATUS_UNSUPPORTED) continue;
        add_op(r, op);
    }
}

static bool exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

static bool fail(run *r, const char *what) {
    r->result = FAILED;
    explain(r, what);
    return false;
}

static bool load_values(run *r, const char *folder, const char *prefix, size_t count, bool inputs, uir_value **out) {
    char path[PATH_SIZE + 64];
    for (size_t i = 0; i < count && i < MOST_VALUES; i++) {
        uir_port port = inputs ? query_input(r->model, i) : query_output(r->model, i);
        snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, prefix, i);
        if (!exists(path)) return inputs ? fail(r, "an input file is missing") : true;
        if (uir_value_load_file(r->context, path, NULL, port.kind, &out[i]) != UIR_STATUS_OK)
            return fail(r, "a data file cannot be read");
    }
    return true;
}

/* The real models' input: 0, 1/n, 2/n, .. as the suite's own runner makes it. */
static bool make_ramp(run *r) {
    for (size_t i = 0; i < uir_model_input_count(r->model) && i < MOST_VALUES; i++) {
        uir_port port = query_input(r->model, i);
        int64_t shape[16];
        for (uint32_t d = 0; d < port.rank && d < 16; d++) shape[d] = port.dims[d] < 0 ? 1 : port.dims[d];
        if (uir_value_create_tensor(r->context, port.dtype, port.rank, shape, &r->inputs[i]) != UIR_STATUS_OK)
            return fail(r, "no input");
        uint64_t count = uir_value_get_element_count(r->inputs[i]);
        float *data = uir_value_get_data(r->inputs[i]);
        for (uint64_t k = 0; k < count; k++) data[k] = (float)((double)k / (double)count);
    }
    return true;
}

/* Which ops were left to the interpreter, or that all of them were and why. */
static void note_fallback(run *r) {
    uir_run_statistics statistics = query_statistics(r->session);
    uir_node_statistics node;
    r->by_kernels = !statistics.host_calls && !statistics.interpreter_calls;
    if (*query_info(r->model).why) snprintf(r->text, sizeof r->text, "%s", query_info(r->model).why);
    for (size_t i = 0; query_node(r->session, i, &node); i++)
        if (strcmp(node.by, "vm") && strcmp(node.by, "cpu")) add_op(r, node.op);
}

static bool run_once(run *r) {
    for (size_t i = 0; i < uir_model_input_count(r->model) && i < MOST_VALUES; i++)
        if (uir_session_set_input(r->session, i, r->inputs[i]) != UIR_STATUS_OK)
            return fail(r, "an input is not accepted");
    uir_status status = uir_session_run(r->session);
    if (status != UIR_STATUS_OK) {
        fail(r, "the run failed");
        if (status == UIR_STATUS_UNSUPPORTED) { /* data of a sort that is not supported */
            r->result = UNSUPPORTED;
            gather_ops(r);
        }
        return false;
    }
    note_fallback(r);
    return true;
}

/* Whether the run drew random numbers: expected values then come from another generator than ours, and only what is not
 * the values themselves can be compared. */
static bool drew_random_numbers(const run *r) {
    uir_node_statistics node;
    for (size_t i = 0; query_node(r->session, i, &node); i++)
        if (strncmp(node.kernel, "random_", 7) == 0 || strncmp(node.op, "Random", 6) == 0 ||
            !strcmp(node.op, "Bernoulli") || !strcmp(node.op, "Dropout"))
            return true;
    return false;
}

static bool same_form(const uir_value *a, const uir_value *b) {
    uint32_t rank = uir_value_get_rank(a);
    return uir_value_get_kind(a) == uir_value_get_kind(b) && uir_value_get_dtype(a) == uir_value_get_dtype(b) &&
           rank == uir_value_get_rank(b) &&
           (!rank || memcmp(uir_value_get_shape(a), uir_value_get_shape(b), rank * sizeof(int64_t)) == 0);
}

static double element(const uir_value *value, uint64_t i) {
    const void *data = uir_value_get_data((uir_value *)(uintptr_t)value);
    switch (uir_value_get_dtype(value)) {
    case UIR_DTYPE_F32:
        return ((const float *)data)[i];
    case UIR_DTYPE_F64:
        return ((const double *)data)[i];
    case UIR_DTYPE_BOOL:
        return ((const uint8_t *)data)[i];
    default:
        return NAN;
    }
}

/* What chance leaves out is zero, what it leaves in is the same whoever draws: where both are not zero they agree, and
 * the share of zeros is one that draws of the same probability give (five standard errors of the difference). */
static bool same_distribution(const uir_value *a, const uir_value *b, uir_tolerance tolerance) {
    uint64_t count = uir_value_get_element_count(a);
    double zeros[2] = {0, 0};
    for (uint64_t i = 0; i < count; i++) {
        double x = element(a, i), y = element(b, i);
        zeros[0] += x == 0;
        zeros[1] += y == 0;
        if (x != 0 && y != 0 && !(fabs(x - y) <= tolerance.atol + tolerance.rtol * fabs(y))) return false;
    }
    double share = (zeros[0] + zeros[1]) / (2 * (double)count);
    return fabs(zeros[0] - zeros[1]) <= 5 * sqrt(2 * (double)count * share * (1 - share));
}

static void compare(run *r) {
    r->result = PASSED;
    for (size_t i = 0; i < uir_model_output_count(r->model) && i < MOST_VALUES; i++) {
        uir_value *actual;
        if (!r->expected[i]) continue;
        if (uir_session_get_output(r->session, i, &actual) != UIR_STATUS_OK) {
            fail(r, "an output is missing");
            return;
        }
        uir_comparison comparison = query_comparison(actual, r->expected[i], r->tolerance);
        if (comparison.agree) continue;
        uir_tolerance noise = {.rtol = r->tolerance.rtol, .atol = r->tolerance.atol, .atol_relative_to_max = 0x1p-25};
        bool is_float = uir_value_get_dtype(actual) == UIR_DTYPE_F32;
        if (same_form(actual, r->expected[i]) && drew_random_numbers(r) &&
            same_distribution(actual, r->expected[i], r->tolerance))
            continue;
        r->result = FAILED;
        if (is_float && query_comparison(actual, r->expected[i], noise).agree) r->result = NOISE;
        snprintf(r->text, sizeof r->text, "output %zu: %s", i, comparison.text);
        return;
    }
}

/* The number after "key": in a small JSON text. */
static double read_number(const char *json, const char *key, double fallback) {
    const char *at = strstr(json, key);
    if (!at || !(at = strchr(at, ':'))) return fallback;
    return strtod(at + 1, NULL);
}

/* A folder of the real models holds data.json alone, which names the model and the tolerance. */
static bool read_description(const char *folder, char *model, size_t size, uir_tolerance *tolerance) {
    char path[PATH_SIZE + 16], json[2048] = "";
    snprintf(path, sizeof path, "%s/data.json", folder);
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t length = fread(json, 1, sizeof json - 1, file);
    fclose(file);
    json[length] = 0;
    tolerance->rtol = read_number(json, "\"rtol\"", tolerance->rtol);
    tolerance->atol = read_number(json, "\"atol\"", tolerance->atol);
    char *url = strstr(json, "/light/"), *end = url ? strchr(url, '"') : NULL;
    if (!url || !end) return false;
    snprintf(model, size, "%s/../..%.*s", folder, (int)(end - url), url);
    return true;
}

/* The device of a test: "null:SEED". */
static const char *name_device(const char *folder, const settings *s, char *buffer, size_t capacity) {
    uint32_t seed = (uint32_t)s->seed * 2654435761u;
    if (!s->seed) return s->device;
    for (const char *c = strrchr(folder, '/'); c && *c; c++) seed = seed * 31 + (unsigned char)*c;
    snprintf(buffer, capacity, "%s:%u", s->device, seed);
    return buffer;
}

static void run_test(run *r, const char *folder, const settings *s) {
    char device[64], model[2 * PATH_SIZE], data[PATH_SIZE + 32], expected[2 * PATH_SIZE + 16];
    r->tolerance = (uir_tolerance){.rtol = 1e-3, .atol = 1e-7};
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s/test_data_set_0", folder);
    bool real = !exists(model);
    if (uir_context_create(NULL, &r->context) != UIR_STATUS_OK) return;
    if (real && !read_description(folder, model, sizeof model, &r->tolerance)) {
        fail(r, "there is no model");
        return;
    }
    uir_model_options options = {.struct_size = sizeof options,
                                 .device = name_device(folder, s, device, sizeof device),
                                 .wait = s->compiled,
                                 .no_cache = true,
                                 .interpret = s->interpret};
    uir_status status = uir_model_load_file(r->context, model, &options, &r->model);
    if (status != UIR_STATUS_OK) {
        fail(r, uir_status_text(status));
        if (status == UIR_STATUS_UNSUPPORTED) {
            r->result = UNSUPPORTED;
            gather_ops(r);
        }
        return;
    }
    uir_model_info info = {.struct_size = sizeof info};
    if (uir_model_get_info(r->model, &info) != UIR_STATUS_OK || info.fault_count) {
        fail(r, "a fault of the compiler");
        return;
    }
    if (uir_session_create(r->model, NULL, &r->session) != UIR_STATUS_OK) {
        fail(r, "no session");
        return;
    }
    size_t outputs = uir_model_output_count(r->model);
    if (real ? !make_ramp(r) : !load_values(r, data, "input", uir_model_input_count(r->model), true, r->inputs)) return;
    if (real) snprintf(expected, sizeof expected, "%.*s", (int)(strlen(model) - 5), model);
    if (!(real ? load_values(r, "", expected, 0, false, r->expected) : true)) return;
    if (real) {
        char path[2 * PATH_SIZE + 32];
        snprintf(path, sizeof path, "%s_output_0.pb", expected);
        if (uir_value_load_file(r->context, path, NULL, UIR_VALUE_TENSOR, &r->expected[0]) != UIR_STATUS_OK) {
            fail(r, "the expected output cannot be read");
            return;
        }
    } else if (!load_values(r, data, "output", outputs, false, r->expected)) {
        return;
    }
    if (run_once(r)) compare(r);
}

static void child(const char *folder, const settings *s, int pipe_end) {
    run *r = calloc(1, sizeof *r);
    if (!r) _exit(1);
    r->result = FAILED;
    run_test(r, folder, s);
    char line[2 * TEXT_SIZE + 16];
    int length = snprintf(line, sizeof line, "%d%d\t%s\t%s", (int)r->result, r->by_kernels, r->ops, r->text);
    if (write(pipe_end, line, (size_t)length) != length) _exit(1);
    _exit(0);
}

/* ---- in the parent ---- */

typedef struct job {
    pid_t pid;
    int pipe_end;
    double deadline;
    test *test;
    bool late;
} job;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void start(job *j, test *t, const settings *s) {
    int ends[2];
    j->test = t;
    j->late = false;
    j->pid = -1;
    if (pipe(ends) != 0) return;
    fflush(stdout);
    j->pid = fork();
    if (j->pid == 0) {
        close(ends[0]);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose shadow memory counts */
        struct rlimit memory = {.rlim_cur = 8ul << 30, .rlim_max = 8ul << 30};
        setrlimit(RLIMIT_DATA, &memory);
#endif
        child(t->folder, s, ends[1]);
    }
    close(ends[1]);
    j->pipe_end = ends[0];
    j->deadline = now() + s->timeout;
}

static void finish(job *j, int status) {
    test *t = j->test;
    char line[2 * TEXT_SIZE + 16];
    ssize_t length = read(j->pipe_end, line, sizeof line - 1);
    close(j->pipe_end);
    j->pid = 0;
    t->result = FAILED;
    if (length <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        if (j->late)
            snprintf(t->text, sizeof t->text, "out of time");
        else if (WIFSIGNALED(status))
            snprintf(t->text, sizeof t->text, "crashed: %s", strsignal(WTERMSIG(status)));
        else
            snprintf(t->text, sizeof t->text, "ended with %d", status);
        return;
    }
    line[length] = 0;
    char *ops = strchr(line, '\t'), *text = ops ? strchr(ops + 1, '\t') : NULL;
    if (!text) return;
    *ops++ = *text++ = 0;
    t->result = (outcome)(line[0] - '0');
    t->by_kernels = line[1] == '1';
    snprintf(t->ops, sizeof t->ops, "%.*s", TEXT_SIZE - 1, ops);
    snprintf(t->text, sizeof t->text, "%.*s", TEXT_SIZE - 1, text);
}

static void run_all(test *tests, size_t count, const settings *s) {
    job jobs[MOST_JOBS] = {0};
    size_t next = 0, done = 0;
    while (done < count) {
        for (int i = 0; i < s->jobs && next < count; i++)
            if (!jobs[i].pid) start(&jobs[i], &tests[next++], s);
        for (int i = 0; i < s->jobs; i++) {
            int status = 0;
            if (!jobs[i].pid) continue;
            if (jobs[i].pid < 0 || waitpid(jobs[i].pid, &status, WNOHANG) == jobs[i].pid) {
                finish(&jobs[i], status);
                done++;
            } else if (now() > jobs[i].deadline && !jobs[i].late) {
                jobs[i].late = true;
                kill(jobs[i].pid, SIGKILL);
            }
        }
        poll(NULL, 0, 1);
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const test *)a)->folder, ((const test *)b)->folder);
}

static test *find_tests(const char *data, const settings *s, size_t *out_count) {
    static const char *const kinds[] = {"node", "simple", "pytorch-converted", "pytorch-operator", "real"};
    test *tests = NULL;
    size_t count = 0, capacity = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char folder[PATH_SIZE - 256];
        snprintf(folder, sizeof folder, "%s/%s", data, kinds[k]);
        DIR *directory = opendir(folder);
        struct dirent *entry;
        while (directory && (entry = readdir(directory))) {
            if (entry->d_name[0] == '.' || (s->filter && !strstr(entry->d_name, s->filter))) continue;
            if (count == capacity) {
                capacity = capacity ? 2 * capacity : 2048;
                test *grown = realloc(tests, capacity * sizeof *tests);
                if (!grown) break;
                tests = grown;
            }
            memset(&tests[count], 0, sizeof *tests);
            snprintf(tests[count].folder, sizeof tests[count].folder, "%s/%s", folder, entry->d_name);
            snprintf(tests[count].name, sizeof tests[count].name, "%s", entry->d_name);
            count++;
        }
        if (directory) closedir(directory);
    }
    if (count) qsort(tests, count, sizeof *tests, by_name);
    size_t kept = 0;
    for (size_t i = (size_t)s->from; i < count; i += (size_t)s->every) tests[kept++] = tests[i];
    count = kept;
    *out_count = count;
    return tests;
}

/* How many skipped tests each op keeps from running, most first. */
static void print_missing(const test *tests, size_t count) {
    typedef struct tally {
        char op[124];
        int tests;
    } tally;
    static tally tallies[512];
    int used = 0;
    for (size_t i = 0; i < count; i++) {
        if (tests[i].result != UNSUPPORTED) continue;
        char ops[TEXT_SIZE];
        snprintf(ops, sizeof ops, "%s", tests[i].ops);
        for (char *op = strtok(ops, " "); op; op = strtok(NULL, " ")) {
            int k = 0;
            while (k < used && strcmp(tallies[k].op, op) != 0) k++;
            if (k == 512) continue;
            if (k == used) snprintf(tallies[used++].op, sizeof tallies[k].op, "%.120s", op);
            tallies[k].tests++;
        }
    }
    if (used) printf("unsupported, by op:\n");
    for (int most = 100000; most > 0; most--)
        for (int k = 0; k < used; k++)
            if (tallies[k].tests == most) printf("  %4d  %s\n", most, tallies[k].op);
}

/* On a device: how many tests ran by kernels alone, and which ops did not. */
static int count_by_kernels(const test *tests, size_t count, const settings *s) {
    int by_kernels = 0;
    for (size_t i = 0; i < count; i++) {
        if (tests[i].result == UNSUPPORTED) continue;
        by_kernels += tests[i].result == PASSED && tests[i].by_kernels;
        if (s->verbose && !tests[i].by_kernels)
            printf("interpreted %s: [%s] %s\n", tests[i].name, tests[i].ops, tests[i].text);
    }
    return by_kernels;
}

static int report(const test *tests, size_t count, const settings *s, double seconds) {
    int totals[OUTCOMES] = {0};
    for (size_t i = 0; i < count; i++) {
        totals[tests[i].result]++;
        if (tests[i].result == FAILED) printf("FAILED %s: %s\n", tests[i].name, tests[i].text);
        if (tests[i].result == NOISE) printf("skip: %s: expects rounding noise: %s\n", tests[i].name, tests[i].text);
        if (tests[i].result == UNSUPPORTED && s->verbose)
            printf("unsupported %s: %s [%s]\n", tests[i].name, tests[i].text, tests[i].ops);
    }
    print_missing(tests, count);
    for (size_t i = 0; i < count && !s->verbose; i++)
        if (tests[i].result == UNSUPPORTED)
            printf("skip: %s: unsupported: %s: %s\n", tests[i].name, tests[i].ops, tests[i].text);
    bool few = totals[PASSED] < s->at_least;
    if (few) printf("FAILED: %d tests pass; at least %d must\n", totals[PASSED], s->at_least);
    int by_kernels = count_by_kernels(tests, count, s);
    bool little = by_kernels < s->by_kernels;
    if (little) printf("FAILED: %d tests run by kernels alone; at least %d must\n", by_kernels, s->by_kernels);
    printf("on %s: %d tests pass by kernels alone\n", s->device, by_kernels);
    printf("%zu tests in %.1f s: %d unsupported, %d noise\n", count, seconds, totals[UNSUPPORTED], totals[NOISE]);
    printf("%d passed, %d failed, %d skipped\n", totals[PASSED], totals[FAILED] + few + little,
           totals[UNSUPPORTED] + totals[NOISE]);
    return totals[FAILED] || few || little;
}

static const char *find_data(glob_t *found) {
    if (glob("build/venv/lib/python3*/site-packages/onnx/backend/test/data", 0, NULL, found) != 0) return NULL;
    return found->gl_pathv[0];
}

int main(int argc, char **argv) {
    settings s = {.jobs = 2, .timeout = 60, .device = "interpreter", .every = 1};
    glob_t found = {0};
    const char *data = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0)
            s.verbose = true;
        else if (strcmp(argv[i], "--compiled") == 0)
            s.compiled = true;
        else if (strcmp(argv[i], "--interpret") == 0)
            s.interpret = true;
        else if (value && strcmp(argv[i], "--device") == 0)
            s.device = argv[++i];
        else if (value && strcmp(argv[i], "--by-kernels") == 0)
            s.by_kernels = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--every") == 0)
            s.every = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--from") == 0)
            s.from = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--seed") == 0)
            s.seed = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--data") == 0)
            data = argv[++i];
        else if (value && strcmp(argv[i], "--filter") == 0)
            s.filter = argv[++i];
        else if (value && strcmp(argv[i], "--jobs") == 0)
            s.jobs = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--timeout") == 0)
            s.timeout = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--at-least") == 0)
            s.at_least = atoi(argv[++i]);
        else {
            fprintf(stderr, "conformance_suite: what is '%s'?\n", argv[i]);
            return 2;
        }
    }
    if (s.every < 1) s.every = 1;
    if (s.from < 0) s.from = 0;
    if (s.jobs < 1 || s.jobs > MOST_JOBS) s.jobs = 2;
    if (!data) data = find_data(&found);
    if (!data) {
        printf("skip: needs onnx: the test data of the onnx package is missing (script/setup installs it)\n");
        printf("0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    size_t count;
    double begin = now();
    test *tests = find_tests(data, &s, &count);
    run_all(tests, count, &s);
    int status = report(tests, count, &s, now() - begin);
    free(tests);
    globfree(&found);
    return status;
}
