/* Records of parameters by kernel: their text, whom they are for, and what becomes of a record in the cache. */
#include "api/records.h"
#include "tests/base/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
    uir_allocator allocator;
    uir_arena arena;
    uir_diagnostics d;
    uir_machine machine;
} world;

static void begin(world *w) {
    *w = (world){.allocator = uir_allocator_system(), .machine = {.name = "made", .chip = "up", .mma_m = 6}};
    uir_arena_init(&w->arena, &w->allocator);
    uir_diagnostics_init(&w->d, &w->allocator);
}

static void end(world *w) {
    uir_diagnostics_deinit(&w->d);
    uir_arena_deinit(&w->arena);
}

static uir_digest identify(world *w, const char *kernel) {
    uir_digest digest;
    assert_int_equal(uir_record_identify(&w->machine, kernel, strlen(kernel), &w->allocator, &digest), UIR_STATUS_OK);
    return digest;
}

static uir_record record_of(world *w, const char *kernel, int64_t rows) {
    return (uir_record){.kernel = identify(w, kernel),
                        .name = kernel,
                        .parameters = {.tile_count = 1, .tiles = {{.rows = rows, .columns = 32, .cost = 7}}}};
}

static void text_is_read_back(void **state) {
    world w;
    uir_records records = {.items = {0}}, again;
    uir_text text, other;
    (void)state;
    begin(&w);
    uir_text_init(&text, &w.allocator);
    uir_text_init(&other, &w.allocator);
    for (int64_t i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", NULL};
        uir_record record = record_of(&w, i == 2 ? "c" : names[i], 6 * i + 1);
        record.name = names[i];
        assert_int_equal(uir_vector_push(&w.arena, &records.items, record), UIR_STATUS_OK);
    }
    uir_records_print(&records, &text);
    assert_int_equal(uir_records_parse(text.data, text.length, "t", &w.arena, &w.d, &again), UIR_STATUS_OK);
    assert_int_equal(again.items.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const uir_parameters *found = uir_records_find(&again, &records.items.data[i].kernel);
        assert_non_null(found);
        assert_memory_equal(found, &records.items.data[i].parameters, sizeof *found);
        again.items.data[i].name = records.items.data[i].name; /* a comment */
    }
    uir_records_print(&again, &other);
    assert_string_equal(other.data, text.data);
    uir_digest nobody = identify(&w, "d");
    assert_null(uir_records_find(&again, &nobody));
    uir_text_deinit(&text);
    uir_text_deinit(&other);
    end(&w);
}

/* Each of these is another record's. */
static void a_record_is_for_a_kernel_on_a_device(void **state) {
    world w;
    (void)state;
    begin(&w);
    uir_digest first = identify(&w, "a"), same = identify(&w, "a"), other = identify(&w, "b");
    assert_memory_equal(&first, &same, sizeof first);
    assert_memory_not_equal(&first, &other, sizeof first);
#define CHANGE(field, value)                                                                                           \
    do {                                                                                                               \
        uir_machine before = w.machine;                                                                                \
        w.machine.field = value;                                                                                       \
        other = identify(&w, "a");                                                                                     \
        assert_memory_not_equal(&first, &other, sizeof first);                                                         \
        w.machine = before;                                                                                            \
    } while (0)
    CHANGE(name, "other");
    CHANGE(chip, "other");
    CHANGE(mma_m, 14);
    CHANGE(vector_bytes, 64);
    CHANGE(group_count, 2);
    CHANGE(registers, 7);
    CHANGE(loads_per_cycle, 7);
    CHANGE(multiply_adds_per_cycle, 7);
    CHANGE(multiply_add_latency, 7);
    CHANGE(unit_cycles, 7);
    CHANGE(cache_bytes[1], 1 << 20);
    CHANGE(space_count, 1);
    w.machine.space_count = 1;
    first = identify(&w, "a");
    CHANGE(spaces[0].capacity, 1 << 20);
    CHANGE(spaces[0].working_set, 1 << 20);
    CHANGE(spaces[0].bytes_per_cycle, 3);
    CHANGE(spaces[0].roles, UIR_SPACE_SCRATCH);
    end(&w);
}

/* The cache's folder, whose entries have whole bytes and say anything. */
static void the_cache_is_not_believed(void **state) {
    world w;
    char folder[] = "/tmp/uir-records-XXXXXX", command[64];
    uir_cache *cache;
    uir_api_records records;
    uir_parameters found;
    (void)state;
    begin(&w);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(uir_cache_open(&w.allocator, &(uir_cache_options){.folder = folder}, &w.d, &cache), UIR_STATUS_OK);
    uir_record record = record_of(&w, "a", 6), other = record_of(&w, "b", 12);
    uir_records one = {.items = {.data = &record, .count = 1}};
    assert_int_equal(uir_api_records_init(&records, NULL, cache, &w.allocator, &w.d), UIR_STATUS_OK);
    const uir_record_source *source = &records.source;
    assert_int_equal(source->find(source->user, &record.kernel, "a", &w.d, &found), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_api_records_store(cache, &one, &w.allocator, &w.d), UIR_STATUS_OK);
    assert_int_equal(source->find(source->user, &record.kernel, "a", &w.d, &found), UIR_STATUS_OK);
    assert_memory_equal(&found, &record.parameters, sizeof found);
    assert_int_equal(source->find(source->user, &other.kernel, "b", &w.d, &found), UIR_STATUS_NOT_FOUND);
    assert_int_equal(records.found, 1);
    assert_null(w.d.first);
    /* What somebody else put there under the kernel's key. */
    static const char *const junk[] = {"", "junk", "records 1\n", "records 9\n", "records 1\nrecord \"00\" { }\n"};
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        char digits[UIR_DIGEST_TEXT_SIZE], key[UIR_DIGEST_TEXT_SIZE + 16];
        uir_digest_print(&record.kernel, digits);
        snprintf(key, sizeof key, "tuned %s\n", digits);
        assert_int_equal(uir_cache_store(cache, uir_cache_make_key(key, strlen(key)), junk[i], strlen(junk[i]), &w.d),
                         UIR_STATUS_OK);
        assert_int_equal(source->find(source->user, &record.kernel, "a", &w.d, &found), UIR_STATUS_NOT_FOUND);
        assert_non_null(w.d.first);
        assert_int_equal(w.d.first->severity, UIR_SEVERITY_WARNING);
        assert_non_null(strstr(w.d.first->message, "tuning record for kernel a is ignored"));
        uir_diagnostics_clear(&w.d);
    }
    uir_api_records_deinit(&records);
    uir_cache_close(cache);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    end(&w);
}

/* The caller's are all there are. */
static void given_records_stand_alone(void **state) {
    world w;
    uir_api_records records;
    uir_parameters found;
    uir_text text;
    (void)state;
    begin(&w);
    uir_text_init(&text, &w.allocator);
    uir_record record = record_of(&w, "a", 6), other = record_of(&w, "b", 12);
    uir_records one = {.items = {.data = &record, .count = 1}};
    uir_records_print(&one, &text);
    assert_int_equal(uir_api_records_init(&records, text.data, NULL, &w.allocator, &w.d), UIR_STATUS_OK);
    const uir_record_source *source = &records.source;
    assert_int_equal(source->find(source->user, &record.kernel, "a", &w.d, &found), UIR_STATUS_OK);
    assert_int_equal(source->find(source->user, &other.kernel, "b", &w.d, &found), UIR_STATUS_NOT_FOUND);
    uir_api_records_deinit(&records);
    assert_int_equal(uir_api_records_init(&records, "record", NULL, &w.allocator, &w.d), UIR_STATUS_BAD_FILE);
    uir_api_records_deinit(&records);
    uir_text_deinit(&text);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read_back),
        cmocka_unit_test(a_record_is_for_a_kernel_on_a_device),
        cmocka_unit_test(the_cache_is_not_believed),
        cmocka_unit_test(given_records_stand_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
