/* Descriptions of devices: those of the build read back as they are, faulty ones are refused at their place, and any
 * damage to a text gives a device that is whole or a message.
 *
 * usage: test_device_text [COUNT]   damaged texts (default 3000) */
#include "tests/ir/kernel/support.h"

#include <time.h>

static uint32_t damages = 3000;

static uir_status parse(zoo *z, uir_arena *arena, const char *text, size_t length, uir_machine_vector *devices) {
    uir_diagnostics_clear(&z->diagnostics);
    *devices = (uir_machine_vector){0};
    return uir_machine_parse(text, length, "d.device", arena, &z->diagnostics, devices);
}

static void print(const zoo *z, const uir_machine *machine, uir_text *text) {
    uir_text_init(text, &z->allocator);
    uir_machine_print(machine, text);
    assert_int_equal(uir_text_status(text), UIR_STATUS_OK);
}

/* Its text gives a device with the same text. */
static void reads_back(zoo *z, const uir_machine *machine) {
    uir_arena arena;
    uir_text once, twice;
    uir_machine_vector again;
    uir_arena_init(&arena, &z->allocator);
    print(z, machine, &once);
    if (parse(z, &arena, once.data, once.length, &again) != UIR_STATUS_OK) {
        zoo_print_messages(z);
        fail_msg("what is printed of %s %s is no description:\n%s", machine->name, machine->chip, once.data);
    }
    assert_int_equal(again.count, 1);
    print(z, again.data[0], &twice);
    assert_string_equal(once.data, twice.data);
    uir_text_deinit(&once);
    uir_text_deinit(&twice);
    uir_arena_deinit(&arena);
}

static void builds_own(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    assert_true(z.list.count >= 10);
    for (uint32_t i = 0; i < z.list.count; i++) reads_back(&z, z.list.devices[i]);
    zoo_close(&z);
}

/* A chip has what all have, with its own numbers; its instructions come first; what it is without is gone. */
static void chips(void **state) {
    (void)state;
    static const char text[] =
        "device d { source s \"here\" kinds k, l pipes P, Q dtypes f = f32, f16 groups 2 @s\n"
        "space m { roles memory of device reached_by k, l } space c { roles scratch reached_by k capacity 64 @s }\n"
        "form v = into c from c on k by P legal binary.add, binary.mul of f as v with same_space\n"
        "legal cast of f32 to f16 as v legal move of f into c from m on k by Q\n"
        "chip \"a\" {} chip \"b\" like \"a\" { groups 3 @s threads 32 @s residents 4 @s space c { capacity 128 @s } "
        "legal binary.add of f32 into m "
        "from m on l by Q\n"
        "without binary.mul without dtypes f16 } }";
    zoo z;
    uir_arena arena;
    uir_machine_vector devices;
    zoo_open(&z);
    uir_arena_init(&arena, &z.allocator);
    assert_int_equal(parse(&z, &arena, text, strlen(text), &devices), UIR_STATUS_OK);
    assert_int_equal(devices.count, 2);
    const uir_machine *a = devices.data[0], *b = devices.data[1];
    assert_true(a->is_first_chip && !b->is_first_chip);
    assert_int_equal(a->group_count, 2);
    assert_int_equal(b->group_count, 3);
    assert_int_equal(a->units_per_group, 1);
    assert_int_equal(a->thread_count, 1);
    assert_int_equal(a->resident_count, 1);
    assert_int_equal(b->thread_count, 32);
    assert_int_equal(uir_machine_count_units(a, 0), 2);
    assert_int_equal(uir_machine_count_units(b, 0), 3 * 4);
    assert_int_equal(uir_machine_working_set(a, 1), 64);
    assert_int_equal(uir_machine_working_set(b, 1), 128 / 4);
    assert_int_equal(a->spaces[1].capacity, 64);
    assert_int_equal(b->spaces[1].capacity, 128);
    assert_int_equal(b->spaces[1].roles, UIR_SPACE_SCRATCH);
    assert_int_equal(a->legal_count, 4);
    assert_int_equal(a->legal[0].constraints, UIR_LEGAL_SAME_SPACE);
    assert_int_equal(a->legal[0].pipe, 0);
    assert_int_equal(a->legal[3].pipe, 1);
    assert_int_equal(b->legal_count, 3); /* a cast to what is gone goes with it */
    assert_int_equal(b->legal[0].unit_kinds, 2);
    assert_int_equal(b->legal[0].pipe, 1);
    assert_string_equal(b->legal[1].iop, "binary.add");
    assert_int_equal(b->legal[1].dtypes, 1u << UIR_DTYPE_F32);
    assert_string_equal(b->legal[2].iop, "move");
    uir_arena_deinit(&arena);
    zoo_close(&z);
}

#define HEAD "device d { source s \"x\" kinds k pipes P space m { roles memory of device reached_by k }\n"
#define TAIL " chip \"a\" {} }"

static const struct {
    const char *text;
    uint32_t line;
    const char *message;
} faults[] = {
    {"", 1, "expected 'device'"},
    {"device f32 {}", 1, "is a reserved word of kernel texts"},
    {"device d { kinds k groups 2" TAIL, 1, "needs its source"},
    {HEAD "groups 2 @t" TAIL, 2, "unknown source 't'"},
    {HEAD "groups -1 @s" TAIL, 2, "groups must be from 0 to 65536"},
    {HEAD "mma_rows 0 @s" TAIL, 2, "mma_rows must be from 1 to 1024"},
    {HEAD "threads 0 @s" TAIL, 2, "threads must be from 1 to 1024"},
    {HEAD "residents 65 @s" TAIL, 2, "residents must be from 1 to 64"},
    {HEAD "bytes_per_second nan @s" TAIL, 2, "bytes_per_second must be from 0"},
    {HEAD "kinds k" TAIL, 2, "named twice"},
    {HEAD "kinds row" TAIL, 2, "is a reserved word"},
    {HEAD "space m {}" TAIL, 2, "described already"},
    {HEAD "space c { roles scratched }" TAIL, 2, "expected a role: memory, scratch"},
    {HEAD "space c { of me }" TAIL, 2, "expected a scope: unit, group, device"},
    {HEAD "space c { reached_by j }" TAIL, 2, "expected a kind of unit: k"},
    {HEAD "space c { capacities 4 @s }" TAIL, 2, "expected a property of a space: roles"},
    {HEAD "\nspace c { roles scratch reached_by k }" TAIL, 3, "has no capacity"},
    {HEAD "\nspace c { roles scratch capacity 64 @s }" TAIL, 3, "no kind of unit reaches c"},
    {HEAD "\nspace c { roles scratch reached_by k capacity 64 @s alignment 12 @s }" TAIL, 3, "not a power of two"},
    {HEAD "\nspace c { roles scratch reached_by k capacity 64 @s working_set 65 @s }" TAIL, 3, "exceeds its capacity"},
    {HEAD "\nspace n { roles memory reached_by k }" TAIL, 3, "not `of device`"},
    {HEAD "space c { blocks rows }" TAIL, 2, "expected an order of blocks: rows_of_rows"},
    {HEAD "\nspace c { roles left reached_by k capacity 64 @s blocks rows_of_rows block_lines 2 @s }" TAIL, 3,
     "one of block_bytes and block_elements"},
    {HEAD "\nspace c { roles left reached_by k capacity 64 @s block_lines 2 @s }" TAIL, 3,
     "blocks need `blocks ORDER`"},
    {HEAD
     "\nspace c { roles left reached_by k capacity 64 @s blocks rows_of_rows block_lines 2 @s block_bytes 12 @s }" TAIL,
     3, "multiple of 8"},
    {"device d { source s \"x\" kinds k\nchip \"a\" {} }", 2, "no space is the device's memory"},
    {"device d { source s \"x\"\nchip \"a\" {} }", 2, "no kind of unit"},
    {HEAD "legal binary.plus of f32 into m on k" TAIL, 2, "unknown instruction"},
    {HEAD "legal binary.add of f33 into m on k" TAIL, 2, "expected a dtype"},
    {HEAD "legal binary.add of f32 - f32 into m on k" TAIL, 2, "no dtype is left"},
    {HEAD "legal binary.add of f32 into m" TAIL, 2, "needs the spaces of its result"},
    {HEAD "\nlegal binary.add of f32 into m on k" TAIL, 3, "needs `by PIPE`"},
    {HEAD "legal binary.add of f32 into n on k" TAIL, 2, "expected a space: m"},
    {HEAD "legal binary.add of f32 into m on k by Q" TAIL, 2, "expected a pipe: P"},
    {HEAD "legal binary.add of f32 into m on k with luck" TAIL, 2, "expected a constraint: last_contiguous"},
    {HEAD "legal binary.add of f32 as v" TAIL, 2, "expected a form: none"},
    {HEAD "without move" TAIL, 2, "expected an item of a device"},
    {HEAD "chip a {} }", 2, "expected the chip's name, in quotes"},
    {HEAD "chip \"a\" {} chip \"a\" {} }", 2, "described already"},
    {HEAD "chip \"a\" like \"b\" {} }", 2, "the name of an earlier chip"},
    {HEAD "chip \"a\" {}", 2, "expected '}'"},
    {HEAD "chip \"a\" {} } device d {}", 2, "is described already"},
};

static void faults_are_told(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        uir_arena arena;
        uir_machine_vector devices;
        uir_arena_init(&arena, &z.allocator);
        uir_status status = parse(&z, &arena, faults[i].text, strlen(faults[i].text), &devices);
        const uir_diagnostic *said = z.diagnostics.first;
        if (status != UIR_STATUS_BAD_FILE || !said || !zoo_said(&z, faults[i].message) ||
            said->location.line != faults[i].line) {
            zoo_print_messages(&z);
            fail_msg("no message with '%s' at line %u for\n%s", faults[i].message, faults[i].line, faults[i].text);
        }
        uir_arena_deinit(&arena);
    }
    zoo_close(&z);
}

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Bytes changed, and parts taken out, doubled or taken from another text. */
static size_t damage(char *text, size_t length, size_t capacity, uint64_t *seed) {
    uint32_t other = (uint32_t)(next(seed) % uir_description_count);
    for (uint64_t times = 1 + next(seed) % 4; times && length; times--) {
        size_t at = next(seed) % length, count = next(seed) % 40;
        if (count > length - at) count = length - at;
        switch (next(seed) % 4) {
        case 0:
            text[at] = (char)next(seed);
            break;
        case 1:
            memmove(text + at, text + at + count, length - at - count);
            length -= count;
            break;
        case 2:
            if (length + count > capacity) break;
            memmove(text + at + count, text + at, length - at);
            length += count;
            break;
        default: {
            size_t from = next(seed) % uir_description_sizes[other];
            if (count > uir_description_sizes[other] - from) count = uir_description_sizes[other] - from;
            memcpy(text + at, uir_description_parts[other] + from, count);
        }
        }
    }
    return length;
}

static void damage_is_survived(void **state) {
    (void)state;
    zoo z;
    uint64_t seed = 1;
    uint32_t whole = 0;
    zoo_open(&z);
    for (uint32_t i = 0; i < damages; i++) {
        uint32_t which = (uint32_t)(next(&seed) % uir_description_count);
        size_t capacity = uir_description_sizes[which] + 256;
        char *text = malloc(capacity);
        uir_arena arena;
        uir_machine_vector devices;
        assert_non_null(text);
        memcpy(text, uir_description_parts[which], uir_description_sizes[which]);
        size_t length = damage(text, uir_description_sizes[which], capacity, &seed);
        uir_arena_init(&arena, &z.allocator);
        if (parse(&z, &arena, text, length, &devices) == UIR_STATUS_OK) {
            whole++;
            for (uint32_t k = 0; k < devices.count; k++) reads_back(&z, devices.data[k]);
        } else {
            assert_non_null(z.diagnostics.first);
            assert_true(z.diagnostics.first->location.line > 0);
        }
        uir_arena_deinit(&arena);
        free(text);
    }
    assert_true(whole > damages / 50 && whole < damages);
    zoo_close(&z);
}

/* Processor time, in ms, of a description of so many sources, of which numbers name the last; the least of some. */
static double read_sources(zoo *z, uint32_t count) {
    uir_text text;
    double least = 1e9;
    uir_text_init(&text, &z->allocator);
    uir_text_append_string(&text, "device toy {\n");
    for (uint32_t i = 0; i < count; i++) uir_text_append_format(&text, "source s%u \"x\"\n", i);
    for (uint32_t i = 0; i < count; i++) uir_text_append_format(&text, "groups 1 @s%u\n", count - 1);
    for (int turn = 0; turn < 5; turn++) {
        uir_arena arena;
        uir_machine_vector devices;
        uir_arena_init(&arena, &z->allocator);
        clock_t begin = clock();
        (void)!parse(z, &arena, text.data, text.length, &devices);
        double ms = 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (ms < least) least = ms;
        uir_arena_deinit(&arena);
    }
    uir_text_deinit(&text);
    return least;
}

/* Eight times the text takes some eight times the work, not sixty-four. */
static void names_are_found_at_once(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    double few = read_sources(&z, 2500), many = read_sources(&z, 20000);
    if (many > 24 * (few > 0.5 ? few : 0.5)) fail_msg("%g ms for 2500 sources, %g for 20000", few, many);
    zoo_close(&z);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(builds_own), cmocka_unit_test(chips),
                                       cmocka_unit_test(faults_are_told), cmocka_unit_test(damage_is_survived),
                                       cmocka_unit_test(names_are_found_at_once)};
    if (argc > 1) damages = (uint32_t)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
