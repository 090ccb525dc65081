/* Golden text tests of decompose and its clean-up passes.
 *
 *   test_decompose_golden [--bless] [FILE...]
 *
 * A file holds cases. Each begins with `# pass: NAME...` (pass names of cleanup.def, `decompose` for the step from ONNX
 * ops, or `all` for every pass), has a module's text, then either `# expect` and the text that must come out, or lines
 * `# fail: TEXT`, one for each message that must be reported, in order. With --bless the expected text is written anew
 * from what comes out. Every result is verified, and running the passes again must change nothing. */
#include "decompose/decompose.h"
#include "passes/passes.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER "tests/decompose/golden"

typedef struct golden_case {
    char *title, *input, *expect; /* expect: NULL for one that fails */
    char *fails[16];
    int fail_count, line;
} golden_case;

typedef struct golden_file {
    char path[512], *text;
    char *comment; /* what stands before the first case */
    golden_case cases[256];
    int count;
} golden_file;

static bool bless;
static const char *only[64];
static int only_count;

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = calloc((size_t)size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

static bool starts(const char *line, const char *prefix) {
    return strncmp(line, prefix, strlen(prefix)) == 0;
}

/* Cuts the text into cases in place: lines that begin a section end what is before them. */
static void parse_file(golden_file *file) {
    char *line = file->text;
    golden_case *c = NULL;
    file->comment = file->text;
    for (int number = 1; *line; number++) {
        char *end = strchr(line, '\n');
        char *next = end ? end + 1 : line + strlen(line);
        if (starts(line, "# pass: ")) {
            assert_true(file->count < 256);
            c = &file->cases[file->count++];
            c->line = number;
            c->title = line + 8;
            c->input = next;
            if (line > file->text) line[-1] = 0;
            if (end) *end = 0;
        } else if (c && starts(line, "# expect")) {
            line[-1] = 0;
            c->expect = next;
        } else if (c && starts(line, "# fail: ")) {
            line[-1] = 0;
            assert_true(c->fail_count < 16);
            c->fails[c->fail_count++] = line + 8;
            if (end) *end = 0;
        }
        line = next;
    }
}

/* ---- running a case ---- */

typedef struct world {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_module *module;
    uir_module *source; /* what was decomposed: its constants are shared */
} world;

static const uir_pass *find_pass(const char *name, size_t length) {
    for (size_t i = 0; i < uir_cleanup_pass_count; i++)
        if (strlen(uir_cleanup_passes[i].name) == length && strncmp(uir_cleanup_passes[i].name, name, length) == 0)
            return &uir_cleanup_passes[i];
    return NULL;
}

static uir_status decompose(world *w) {
    uir_module *primitives;
    uir_status status = uir_decompose(w->module, &w->allocator, &w->diagnostics, &primitives);
    w->source = w->module;
    w->module = status == UIR_STATUS_OK ? primitives : NULL;
    return status;
}

static uir_status run_pass(world *w, const uir_pass *pass, size_t count) {
    uir_pass_options options = {.check_text = true};
    return uir_passes_run(w->module, pass, count, &options);
}

static uir_status run_steps(world *w, const char *title) {
    uir_status status = UIR_STATUS_OK;
    while (*title && status == UIR_STATUS_OK) {
        size_t length = strcspn(title, " ");
        if (length == 9 && strncmp(title, "decompose", 9) == 0) {
            status = decompose(w);
        } else if (length == 3 && strncmp(title, "all", 3) == 0) {
            status = run_pass(w, uir_cleanup_passes, uir_cleanup_pass_count);
        } else {
            const uir_pass *pass = find_pass(title, length);
            if (!pass) fail_msg("there is no pass '%s'", title);
            status = run_pass(w, pass, 1);
        }
        title += length + strspn(title + length, " ");
    }
    return status;
}

static char *print(world *w) {
    uir_text text;
    uir_text_init(&text, &w->allocator);
    assert_int_equal(uir_module_print(w->module, 16, &text), UIR_STATUS_OK);
    char *copy = calloc(text.length + 1, 1);
    assert_non_null(copy);
    memcpy(copy, text.data, text.length);
    uir_text_deinit(&text);
    return copy;
}

/* Each pass alone changes nothing the second time. */
static void check_idempotent(const golden_file *file, const golden_case *c, world *w) {
    const char *title = c->title;
    while (*title) {
        size_t length = strcspn(title, " ");
        const uir_pass *pass = find_pass(title, length);
        if (pass) {
            uir_arena scratch;
            uir_arena_init(&scratch, &w->allocator);
            uir_pass_context context = {&w->diagnostics, &scratch, 0};
            assert_int_equal(pass->run(w->module, &context), UIR_STATUS_OK);
            if (context.changes) fail_msg("%s:%d: pass %s changes its own result", file->path, c->line, pass->name);
            uir_arena_deinit(&scratch);
        }
        title += length + strspn(title + length, " ");
    }
}

static void show_messages(const world *w) {
    char buffer[2048];
    for (const uir_diagnostic *d = w->diagnostics.first; d; d = d->next) {
        uir_diagnostic_format(d, buffer, sizeof buffer);
        print_error("  %s\n", buffer);
    }
}

static void check_failures(const golden_file *file, const golden_case *c, world *w) {
    char buffer[2048];
    int count = 0;
    for (const uir_diagnostic *d = w->diagnostics.first; d; d = d->next) {
        if (d->severity != UIR_SEVERITY_ERROR) continue;
        uir_diagnostic_format(d, buffer, sizeof buffer);
        if (count >= c->fail_count || !strstr(buffer, c->fails[count])) {
            show_messages(w);
            fail_msg("%s:%d: message %d is not the expected one", file->path, c->line, count);
        }
        count++;
    }
    if (count != c->fail_count) fail_msg("%s:%d: %d messages instead of %d", file->path, c->line, count, c->fail_count);
}

/* Leaves the text of what came out in c->expect when blessing. */
static void run_case(const golden_file *file, golden_case *c) {
    world w = {.allocator = uir_allocator_system()};
    uir_diagnostics_init(&w.diagnostics, &w.allocator);
    uir_status status =
        uir_module_parse(&w.allocator, &w.diagnostics, c->input, strlen(c->input), file->path, NULL, &w.module);
    if (status == UIR_STATUS_OK) status = run_steps(&w, c->title);
    if (c->fail_count) {
        assert_int_not_equal(status, UIR_STATUS_OK);
        check_failures(file, c, &w);
    } else {
        if (status == UIR_STATUS_OK) status = uir_module_verify(w.module, &w.diagnostics);
        if (status != UIR_STATUS_OK) {
            show_messages(&w);
            fail_msg("%s:%d: %s", file->path, c->line, uir_status_text(status));
        }
        char *text = print(&w);
        if (bless) {
            c->expect = text;
        } else {
            if (!c->expect) fail_msg("%s:%d: nothing is expected", file->path, c->line);
            assert_string_equal(text, c->expect);
            free(text);
        }
        check_idempotent(file, c, &w);
    }
    uir_module_destroy(w.module);
    uir_module_destroy(w.source);
    uir_diagnostics_deinit(&w.diagnostics);
}

static void write_file(const golden_file *file) {
    FILE *out = fopen(file->path, "wb");
    assert_non_null(out);
    if (file->comment < file->cases[0].title - 8) fprintf(out, "%s\n", file->comment);
    for (int i = 0; i < file->count; i++) {
        const golden_case *c = &file->cases[i];
        fprintf(out, "# pass: %s\n%s\n", c->title, c->input);
        for (int k = 0; k < c->fail_count; k++) fprintf(out, "# fail: %s\n", c->fails[k]);
        if (!c->fail_count) fprintf(out, "# expect\n%s", c->expect);
    }
    fclose(out);
}

static void run_file(const char *path) {
    golden_file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    snprintf(file->path, sizeof file->path, "%s", path);
    file->text = read_file(path);
    parse_file(file);
    for (int i = 0; i < file->count; i++) {
        golden_case *c = &file->cases[i];
        /* An expected text goes to the next case, whose heading ended it; its last newline went with the heading. */
        char *wanted = c->expect;
        if (wanted && !bless) {
            size_t length = strlen(wanted);
            char *whole = calloc(length + 2, 1);
            assert_non_null(whole);
            memcpy(whole, wanted, length);
            if (length && whole[length - 1] != '\n') whole[length] = '\n';
            c->expect = whole;
        }
        run_case(file, c);
        if (wanted && !bless) free(c->expect);
    }
    if (bless && file->count) write_file(file);
    for (int i = 0; i < file->count && bless; i++)
        if (!file->cases[i].fail_count) free(file->cases[i].expect);
    free(file->text);
    free(file);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_all(void **state) {
    (void)state;
    char *names[256];
    int count = 0;
    for (int i = 0; i < only_count; i++) run_file(only[i]);
    if (only_count) return;
    DIR *directory = opendir(FOLDER);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".txt") != 0) continue;
        assert_true(count < 256);
        names[count] = malloc(length + sizeof FOLDER + 1);
        assert_non_null(names[count]);
        sprintf(names[count++], "%s/%s", FOLDER, entry->d_name);
    }
    closedir(directory);
    assert_true(count > 0);
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int i = 0; i < count; i++) {
        run_file(names[i]);
        free(names[i]);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bless") == 0)
            bless = true;
        else if (only_count < 64)
            only[only_count++] = argv[i];
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
