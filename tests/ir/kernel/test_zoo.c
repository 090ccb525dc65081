/* Every kernel of the zoo is accepted, and its text reads back to the same text. */
#include "tests/ir/kernel/support.h"

static void check_text(zoo *z, const uir_igraph *igraph) {
    uir_text first, second;
    uir_igraph *again = NULL;
    uir_text_init(&first, &z->allocator);
    uir_text_init(&second, &z->allocator);
    uir_igraph_print(igraph, &first);
    assert_int_equal(uir_text_status(&first), UIR_STATUS_OK);
    if (uir_igraph_parse(&z->allocator, &z->list, first.data, first.length, "printed", &z->diagnostics, &again) !=
        UIR_STATUS_OK) {
        zoo_print_messages(z);
        fail_msg("@%s does not read back:\n%s", igraph->name, first.data);
    }
    uir_igraph_print(again, &second);
    assert_string_equal(first.data, second.data);
    /* What was printed is accepted too. */
    assert_int_equal(uir_igraph_verify(again, &z->diagnostics), UIR_STATUS_OK);
    uir_igraph_destroy(again);
    uir_text_deinit(&first);
    uir_text_deinit(&second);
}

static void check_file(zoo *z, const char *path) {
    size_t length;
    char *text = read_whole(path, &length);
    uir_igraph_list list;
    uir_status status = uir_igraph_parse_list(&z->allocator, &z->list, text, length, path, &z->diagnostics, &list);
    if (status != UIR_STATUS_OK) zoo_print_messages(z);
    assert_int_equal(status, UIR_STATUS_OK);
    for (uint32_t i = 0; i < list.count; i++) {
        status = uir_igraph_verify(list.igraphs[i], &z->diagnostics);
        if (status != UIR_STATUS_OK) {
            zoo_print_messages(z);
            fail_msg("%s: @%s is rejected", path, list.igraphs[i]->name);
        }
        check_text(z, list.igraphs[i]);
    }
    uir_igraph_list_deinit(&list);
    free(text);
}

static void zoo_is_accepted(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    assert_true(for_each_kernel_file("tests/ir/kernel", check_file, &z) >= 20);
    zoo_close(&z);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(zoo_is_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
