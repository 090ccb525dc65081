/* Golden text tests of the rules that decompose ops and of the clean-up passes after them.
 *
 *   test_passes_golden [--bless] FOLDER|FILE...     (test_decompose_golden is the same program)
 *
 * A case (tests/base/golden.h) begins with `# pass: NAME...`: pass names of cleanup.def, `decompose` for the step from
 * ONNX ops, or `all` for every pass. In goes a module's text; out must come a text, or the messages that must be
 * reported, in order. Every result is verified, and running the passes again must change nothing. */
#include "decompose/decompose.h"
#include "ir/machine/device.h"
#include "passes/layouts.h"
#include "passes/passes.h"
#include "tests/base/golden.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool bless;
static const char *paths[64];
static int path_count;

/* ---- running a case ---- */

typedef struct world {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_module *module;
    uir_module *source; /* what was decomposed: its constants are shared */
} world;

/* What passes over layouts ask of a device: vectors along the columns of a product. */
static const uir_machine columns = {.name = "cpu", .mma_n = 32};
static const uir_pass layouts = {"layouts", uir_lay_out_images, "after the clean-up"};

static const uir_pass *find_pass(const char *name, size_t length) {
    if (length == strlen(layouts.name) && strncmp(layouts.name, name, length) == 0) return &layouts;
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
    uir_pass_options options = {.check_text = true, .machine = &columns};
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

static void print(world *w, golden_case *c) {
    uir_text text;
    uir_text_init(&text, &w->allocator);
    assert_int_equal(uir_module_print(w->module, 16, &text), UIR_STATUS_OK);
    golden_keep(c, text.data);
    uir_text_deinit(&text);
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
            uir_pass_context context = {.diagnostics = &w->diagnostics, .scratch = &scratch, .machine = &columns};
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
        print(&w, c);
        if (!bless && !c->expect) fail_msg("%s:%d: nothing is expected", file->path, c->line);
        if (!bless) assert_string_equal(c->made, c->expect);
        check_idempotent(file, c, &w);
    }
    uir_module_destroy(w.module);
    uir_module_destroy(w.source);
    uir_diagnostics_deinit(&w.diagnostics);
}

static void run_file(const char *path) {
    golden_file file = golden_read(path, "pass");
    for (int i = 0; i < file.count; i++) run_case(&file, &file.cases[i]);
    if (bless) golden_write(&file);
    golden_free(&file);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every text of the folder, in the order of their names. */
static void run_folder(const char *path, DIR *folder) {
    char *names[256];
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name), size = strlen(path) + length + 2;
        if (length < 5 || strcmp(entry->d_name + length - 4, ".txt") != 0) continue;
        assert_true(count < 256);
        names[count] = malloc(size);
        assert_non_null(names[count]);
        snprintf(names[count++], size, "%s/%s", path, entry->d_name);
    }
    assert_true(count > 0);
    qsort(names, (size_t)count, sizeof *names, by_text);
    for (int i = 0; i < count; i++) {
        run_file(names[i]);
        free(names[i]);
    }
}

static void test_all(void **state) {
    (void)state;
    assert_true(path_count > 0);
    for (int i = 0; i < path_count; i++) {
        DIR *folder = opendir(paths[i]);
        if (!folder) {
            run_file(paths[i]);
            continue;
        }
        run_folder(paths[i], folder);
        closedir(folder);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bless") == 0)
            bless = true;
        else if (path_count < 64)
            paths[path_count++] = argv[i];
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
