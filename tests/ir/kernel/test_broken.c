/* Every broken variant is rejected, and with the message that names its fault.
 *
 *   test_igraph_broken [FOLDER]    (tests/ir/kernel/broken; broken_deep: what the prover searches for long) */
#include "tests/ir/kernel/support.h"

static uint32_t wrong;
static const char *folder = "tests/ir/kernel/broken";

static void check_file(zoo *z, const char *path) {
    static const char mark[] = "# fail: ";
    size_t length;
    char *text = read_whole(path, &length), *end = strchr(text, '\n'), wanted[256];
    assert_true(strncmp(text, mark, strlen(mark)) == 0 && end != NULL);
    snprintf(wanted, sizeof wanted, "%.*s", (int)(end - text - (long)strlen(mark)), text + strlen(mark));
    uir_diagnostics_clear(&z->diagnostics);
    uir_igraph *igraph = NULL;
    uir_status status = uir_igraph_parse(&z->allocator, &z->list, text, length, path, &z->diagnostics, &igraph);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(igraph, &z->diagnostics);
    if (status == UIR_STATUS_OK || !zoo_said(z, wanted)) {
        print_error("%s: %s, without '%s'\n", path, status == UIR_STATUS_OK ? "accepted" : "rejected", wanted);
        zoo_print_messages(z);
        wrong++;
    }
    uir_igraph_destroy(igraph);
    free(text);
}

static void broken_are_rejected(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    assert_true(for_each_kernel_file(folder, check_file, &z) >= 3);
    assert_int_equal(wrong, 0);
    zoo_close(&z);
}

int main(int argc, char **argv) {
    if (argc > 1) folder = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken_are_rejected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
