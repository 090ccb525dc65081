/* docs/igraph.md holds the names that the tables hold, and its example is a kernel. */
#include "tests/ir/kernel/support.h"

static char *page;

static void page_has(const char *line) {
    const char *at = strstr(page, line);
    if (!at || (at > page && at[-1] != '\n')) fail_msg("docs/igraph.md has no line\n%s", line);
}

/* "binary.add" is a row "binary" with "add". */
static void families(void **state) {
    (void)state;
    uint32_t rows = 0;
    for (uint32_t code = 0; code < UIR_IOP_COUNT; code++) {
        const char *name = uir_iop_get_row((uir_iop_code)code)->name, *dot = strchr(name, '.');
        char line[1024];
        if (!dot) continue;
        size_t length = (size_t)(dot - name), used;
        if (code && !strncmp(uir_iop_get_row((uir_iop_code)(code - 1))->name, name, length + 1)) continue;
        used = (size_t)snprintf(line, sizeof line, "| %.*s | ", (int)length, name);
        for (uint32_t k = code; k < UIR_IOP_COUNT; k++) {
            const char *other = uir_iop_get_row((uir_iop_code)k)->name;
            if (strncmp(other, name, length + 1)) continue;
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", k > code ? ", " : "", other + length + 1);
        }
        snprintf(line + used, sizeof line - used, " |\n");
        page_has(line);
        rows++;
    }
    assert_true(rows >= 6);
}

/* Every block of the page that is a kernel is one that the verifier accepts. */
static void examples(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    uint32_t count = 0;
    for (const char *at = strstr(page, "```\nigraph "); at; at = strstr(at + 4, "```\nigraph ")) {
        const char *text = at + 4, *end = strstr(text, "\n```");
        uir_igraph *igraph = NULL;
        assert_non_null(end);
        uir_status status =
            uir_igraph_parse(&z.allocator, &z.list, text, (size_t)(end - text), "page", &z.diagnostics, &igraph);
        if (status == UIR_STATUS_OK) status = uir_igraph_verify(igraph, &z.diagnostics);
        zoo_print_messages(&z);
        assert_int_equal(status, UIR_STATUS_OK);
        uir_igraph_destroy(igraph);
        count++;
    }
    assert_true(count >= 1);
    zoo_close(&z);
}

int main(void) {
    size_t length;
    page = read_whole("docs/igraph.md", &length);
    const struct CMUnitTest tests[] = {cmocka_unit_test(families), cmocka_unit_test(examples)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(page);
    return failed;
}
