/* Structures that grow, by the rule of the public header: each that the library fills and each that it takes, from
 * callers that know fewer members and from callers that know more. What may be NULL is. */
#include "tests/api/small.h"
#include "tests/backends/cpu/here.h"
#include "uir/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct world {
    char folder[64], onnx[96], package[96], written[96];
    uir_context *context;
    uir_value *input;
    uir_model *model, *packaged; /* on the VM; a package with native code and a tolerance */
    uir_session *session;        /* has run */
    uir_session *plan;           /* has not */
    uir_model *described;        /* of kernels for a machine that is not there */
    uir_session *machine;        /* of these; has run, and was estimated */
    uir_extractor *extractor;
    uir_device_list *devices;
} world;

/* ---- structures that are filled ---- */
#define FILLS(type, call)                                                                                              \
    static uir_status fill_##type(world *w, void *out) {                                                               \
        (void)w;                                                                                                       \
        return call;                                                                                                   \
    }
FILLS(uir_message, uir_context_get_message(w->context, 0, out))
FILLS(uir_tolerance, uir_dtype_get_tolerance(UIR_DTYPE_F16, out))
FILLS(uir_comparison, uir_value_compare(w->input, w->input, NULL, out))
FILLS(uir_package_info, uir_package_write_file(w->context, w->onnx, w->written,
                                               &(uir_package_write_options){
                                                   .struct_size = sizeof(uir_package_write_options), .no_native = true},
                                               out))
FILLS(uir_native_code, uir_model_get_native_code(w->packaged, 0, out))
FILLS(uir_port, uir_model_get_input(w->model, 0, out))
FILLS(uir_model_contents, uir_model_get_contents(w->model, out))
FILLS(uir_opset, uir_model_get_opset(w->model, 0, out))
FILLS(uir_op_count, uir_model_get_op_count(w->model, 0, out))
FILLS(uir_metadata, uir_model_get_metadata_at(w->model, 0, out))
FILLS(uir_default, uir_model_get_default(w->model, 0, out))
FILLS(uir_output_maker, uir_model_get_output_maker(w->model, 0, out))
FILLS(uir_model_info, uir_model_get_info(w->model, out))
FILLS(uir_run_statistics, uir_session_get_statistics(w->session, out))
FILLS(uir_op_info, uir_op_get_info(0, out))
FILLS(uir_extractor_node, uir_extractor_get_node(w->extractor, 0, out))
FILLS(uir_node_statistics, uir_session_get_node_statistics(w->session, 0, out))
FILLS(uir_trace_slice, uir_session_get_trace_slice(w->session, 0, out))
FILLS(uir_cost, uir_session_get_cost(w->plan, NULL, 0, out))
FILLS(uir_launch_cost, uir_session_get_launch_cost(w->plan, 0, out))
FILLS(uir_bus_cost, uir_session_get_bus_cost(w->plan, false, out))
FILLS(uir_device_report, uir_device_list_get(w->devices, 0, out))
FILLS(uir_machine_estimate, uir_session_get_estimate(w->machine, 0, out))
FILLS(uir_space_estimate, uir_session_get_space_estimate(w->machine, 0, 0, out))
FILLS(uir_roofline, uir_session_measure_roofline(w->plan, out))

static uir_status fill_output(world *w, void *out) {
    return uir_model_get_output(w->model, 1, out);
}
static uir_status fill_tolerance_of_package(world *w, void *out) {
    return uir_model_get_tolerance(w->packaged, out);
}

typedef struct filled_row {
    const char *type;
    size_t size;
    uir_status (*fill)(world *w, void *out);
    size_t measured; /* where what is measured begins, which is never the same again; 0: nothing is */
} filled_row;
#define FILLED(type) #type, sizeof(type), fill_##type
static const filled_row filled[] = {
    {FILLED(uir_message), 0},
    {FILLED(uir_tolerance), 0},
    {FILLED(uir_comparison), 0},
    {FILLED(uir_package_info), offsetof(uir_package_info, compile_ms)},
    {FILLED(uir_native_code), 0},
    {FILLED(uir_port), 0},
    {"uir_port", sizeof(uir_port), fill_output, 0},
    {FILLED(uir_model_contents), 0},
    {FILLED(uir_opset), 0},
    {FILLED(uir_op_count), 0},
    {FILLED(uir_metadata), 0},
    {FILLED(uir_default), 0},
    {FILLED(uir_output_maker), 0},
    {"uir_tolerance", sizeof(uir_tolerance), fill_tolerance_of_package, 0},
    {FILLED(uir_model_info), 0},
    {FILLED(uir_run_statistics), 0},
    {FILLED(uir_op_info), 0},
    {FILLED(uir_extractor_node), 0},
    {FILLED(uir_node_statistics), 0},
    {FILLED(uir_trace_slice), 0},
    {FILLED(uir_cost), 0},
    {FILLED(uir_launch_cost), 0},
    {FILLED(uir_bus_cost), 0},
    {FILLED(uir_device_report), 0},
    {FILLED(uir_machine_estimate), 0},
    {FILLED(uir_space_estimate), 0},
    {FILLED(uir_roofline), offsetof(uir_roofline, flops_per_second)},
};

enum { NEWER = 40 }; /* bytes that a newer caller knows beyond */

/* What the caller of `size` bytes gets, in a block of exactly so many. */
static uint8_t *get_filled(world *w, const filled_row *row, size_t size) {
    uint8_t *block = malloc(size);
    assert_non_null(block);
    memset(block, 0xa5, size);
    memcpy(block, &size, sizeof size);
    uir_status status = row->fill(w, block);
    if (status != UIR_STATUS_OK) fail_msg("%s of %zu bytes: %s", row->type, size, uir_status_text(status));
    assert_memory_equal(block, &size, sizeof size);
    return block;
}

/* Each member is the one that a caller of today's size gets, as far as the caller's structure goes. */
static void structures_are_filled_as_far_as_the_caller_knows_them(void **state) {
    world *w = *state;
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++) {
        const filled_row *row = &filled[i];
        uint8_t *whole = get_filled(w, row, row->size);
        bool all_poison = true;
        for (size_t at = sizeof(size_t); at < row->size; at++) all_poison &= whole[at] == 0xa5;
        assert_false(all_poison);
        size_t same = row->measured ? row->measured : row->size;
        for (size_t size = sizeof(size_t); size <= row->size + NEWER;
             size += size < row->size ? sizeof(size_t) : NEWER) {
            uint8_t *some = get_filled(w, row, size);
            for (size_t at = sizeof size; at < size; at++) {
                bool good = at >= row->size ? some[at] == 0 : at >= same || some[at] == whole[at];
                if (!good) fail_msg("%s of %zu bytes: byte %zu is %d", row->type, size, at, some[at]);
            }
            free(some);
        }
        free(whole);
    }
}

static void structures_without_a_size_are_not_filled(void **state) {
    world *w = *state;
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++) {
        size_t size = filled[i].size;
        uint8_t *block = calloc(1, size);
        for (size_t wrong = 0; wrong < sizeof wrong; wrong += 3) {
            memcpy(block, &wrong, sizeof wrong);
            if (filled[i].fill(w, block) != UIR_STATUS_INVALID_ARGUMENT) fail_msg("%s", filled[i].type);
            for (size_t at = sizeof size; at < size; at++) assert_int_equal(block[at], 0);
        }
        free(block);
        if (filled[i].fill != fill_uir_package_info) /* where it may be left out */
            assert_int_equal(filled[i].fill(w, NULL), UIR_STATUS_INVALID_ARGUMENT);
    }
}

/* ---- structures that are given ---- */
static uir_status load(world *w, const uir_model_options *options) {
    uir_model *model;
    uir_status status = uir_model_load_file(w->context, w->onnx, options, &model);
    uir_model_destroy(model);
    return status;
}
static uir_status take_model_options(world *w, const void *given) {
    return load(w, given);
}
static uir_status take_debug_options(world *w, const void *given) {
    return load(
        w, &(uir_model_options){.struct_size = sizeof(uir_model_options), .device = "interpreter", .debug = given});
}
static uir_status take_package_open_options(world *w, const void *given) {
    uir_model *model;
    uir_status status = uir_model_open_package_file(w->context, w->package, given, &model);
    uir_model_destroy(model);
    return status;
}
static uir_status take_package_write_options(world *w, const void *given) {
    return uir_package_write_file(w->context, w->onnx, w->written, given, NULL);
}
static uir_status take_tolerance_to_write(world *w, const void *given) {
    uir_package_write_options options = {.struct_size = sizeof options, .no_native = true, .tolerance = given};
    return uir_package_write_file(w->context, w->onnx, w->written, &options, NULL);
}
static uir_status take_tolerance(world *w, const void *given) {
    uir_comparison comparison = {.struct_size = sizeof comparison};
    return uir_value_compare(w->input, w->input, given, &comparison);
}
static uir_status take_session_options(world *w, const void *given) {
    uir_session *session;
    uir_status status = uir_session_create(w->model, given, &session);
    uir_session_destroy(session);
    return status;
}
static uir_status take_check_options(world *w, const void *given) {
    return uir_model_check_file(w->context, w->onnx, &w->input, 1, given);
}
static uir_status take_subgraph(world *w, const void *given) {
    return uir_extractor_write(w->extractor, given, w->written, w->folder);
}
/* It has no status: 0 is what it says of what it cannot take. */
static uir_status take_roofline(world *w, const void *given) {
    (void)w;
    return uir_roofline_get_ms(given, 8, 8) > 0 ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT;
}

static const bool all_nodes[3] = {true, true, true};
static void prepare_subgraph(void *given) {
    ((uir_subgraph *)given)->nodes = all_nodes;
}
static void prepare_roofline(void *given) {
    ((uir_roofline *)given)->bytes_per_second = 1;
}

typedef struct given_row {
    const char *type;
    size_t size;
    uir_status (*take)(world *w, const void *given);
    void (*prepare)(void *given); /* what has no default; NULL: everything has */
    bool is_silent;               /* no message says what is wrong */
} given_row;
static const given_row given[] = {
    {"uir_model_options", sizeof(uir_model_options), take_model_options, NULL, false},
    {"uir_debug_options", sizeof(uir_debug_options), take_debug_options, NULL, false},
    {"uir_package_open_options", sizeof(uir_package_open_options), take_package_open_options, NULL, false},
    {"uir_package_write_options", sizeof(uir_package_write_options), take_package_write_options, NULL, false},
    {"uir_tolerance", sizeof(uir_tolerance), take_tolerance, NULL, false},
    {"uir_tolerance", sizeof(uir_tolerance), take_tolerance_to_write, NULL, false},
    {"uir_session_options", sizeof(uir_session_options), take_session_options, NULL, false},
    {"uir_model_check_options", sizeof(uir_model_check_options), take_check_options, NULL, false},
    {"uir_subgraph", sizeof(uir_subgraph), take_subgraph, prepare_subgraph, false},
    {"uir_roofline", sizeof(uir_roofline), take_roofline, prepare_roofline, true},
};

/* Of exactly `size` bytes, zero but for what must be set. */
static void *make_given(const given_row *row, size_t size) {
    void *block = calloc(1, size);
    assert_non_null(block);
    memcpy(block, &size, sizeof size);
    if (row->prepare) row->prepare(block);
    return block;
}

static void check_given(world *w, const given_row *row, const void *block, uir_status expected) {
    uir_context_clear_messages(w->context);
    uir_status status = row->take(w, block);
    if (status != expected) {
        for (size_t i = 0; i < uir_context_message_count(w->context); i++)
            print_error("%s\n", uir_context_get_message_text(w->context, i));
        fail_msg("%s of %zu bytes: %s", row->type, *(const size_t *)block, uir_status_text(status));
    }
    if (status != UIR_STATUS_OK && !row->is_silent) assert_true(has_message(w->context, row->type));
}

/* Members that an older caller does not know are what zeros are; bytes behind its structure are not looked at. */
static void what_an_older_caller_leaves_out_is_default(void **state) {
    world *w = *state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        size_t size = sizeof size;
        if (given[i].prepare) continue;
        void *bare = make_given(&given[i], size);
        check_given(w, &given[i], bare, UIR_STATUS_OK);
        free(bare);
        uint8_t *poisoned = malloc(given[i].size);
        memset(poisoned, 0xa5, given[i].size);
        memcpy(poisoned, &size, sizeof size);
        check_given(w, &given[i], poisoned, UIR_STATUS_OK);
        free(poisoned);
        if (given[i].take != take_debug_options) assert_int_equal(given[i].take(w, NULL), UIR_STATUS_OK);
    }
    assert_int_equal(take_debug_options(w, NULL), UIR_STATUS_OK);
}

static void what_a_newer_caller_asks_for_is_refused(void **state) {
    world *w = *state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        uint8_t *newer = make_given(&given[i], given[i].size + NEWER);
        check_given(w, &given[i], newer, UIR_STATUS_OK);
        for (size_t at = 0; at < NEWER; at += NEWER - 1) { /* the first byte and the last */
            newer[given[i].size + at] = 1;
            check_given(w, &given[i], newer, UIR_STATUS_INVALID_ARGUMENT);
            newer[given[i].size + at] = 0;
        }
        for (size_t wrong = 0; wrong < sizeof wrong; wrong += 3) {
            memcpy(newer, &wrong, sizeof wrong);
            check_given(w, &given[i], newer, UIR_STATUS_INVALID_ARGUMENT);
        }
        free(newer);
    }
}

/* ---- what is handed to a callback ---- */
static void hear(void *user, const uir_check_line *line) {
    assert_int_equal(line->struct_size, sizeof *line);
    assert_true(line->stage && line->kernel && line->node && line->text);
    ++*(int *)user;
}

static void what_a_callback_gets_has_the_librarys_size(void **state) {
    world *w = *state;
    int heard = 0;
    uir_model_check_options options = {.struct_size = sizeof options, .device = "vm", .report = hear, .user = &heard};
    assert_int_equal(uir_model_check_file(w->context, w->onnx, &w->input, 1, &options), UIR_STATUS_OK);
    assert_true(heard > 0);
}

static void a_structure_is_begun_by_one_word(void **state) {
    (void)state;
    uir_model_options options, nothing = {.struct_size = sizeof nothing};
    memset(&options, 0xa5, sizeof options);
    UIR_INIT(&options);
    assert_memory_equal(&options, &nothing, sizeof options);
}

static void nothing_may_be_destroyed(void **state) {
    (void)state;
    uir_session_destroy(NULL);
    uir_model_destroy(NULL);
    uir_value_destroy(NULL);
    uir_extractor_destroy(NULL);
    uir_device_list_destroy(NULL);
    uir_context_destroy(NULL);
}

/* ---- the world ---- */
static int begin(void **state) {
    static world w;
    uir_value *y;
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-structs-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    setenv("XDG_CACHE_HOME", w.folder, 1);
    snprintf(w.onnx, sizeof w.onnx, "%s/small.onnx", w.folder);
    snprintf(w.package, sizeof w.package, "%s/small.uir", w.folder);
    snprintf(w.written, sizeof w.written, "%s/written", w.folder);
    write_bytes(w.onnx, small_model());
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &w.input), UIR_STATUS_OK);
    uir_model_options options = {.struct_size = sizeof options, .device = "vm", .no_cache = true};
    assert_int_equal(uir_model_load_file(w.context, w.onnx, &options, &w.model), UIR_STATUS_OK);
    uir_session_options session = {.struct_size = sizeof session, .threads = 1, .trace = true};
    assert_int_equal(uir_session_create(w.model, &session, &w.session), UIR_STATUS_OK);
    assert_int_equal(uir_session_create(w.model, &session, &w.plan), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(w.session, 0, &y), UIR_STATUS_INVALID_ARGUMENT); /* a message */
    assert_int_equal(uir_session_set_input(w.session, 0, w.input), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w.session), UIR_STATUS_OK);
    options.device = "ascend", options.interpret = true;
    session = (uir_session_options){.struct_size = sizeof session, .threads = 1, .estimate = true};
    assert_int_equal(uir_model_load_file(w.context, w.onnx, &options, &w.described), UIR_STATUS_OK);
    assert_int_equal(uir_session_create(w.described, &session, &w.machine), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w.machine, 0, w.input), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w.machine), UIR_STATUS_OK);
    uir_tolerance tolerance = {.struct_size = sizeof tolerance, .rtol = 0.25, .integers = 1};
    uir_package_write_options writing = {.struct_size = sizeof writing, .tolerance = &tolerance};
    uir_package_open_options opening = {.struct_size = sizeof opening};
    assert_int_equal(uir_package_write_file(w.context, w.onnx, w.package, &writing, NULL), UIR_STATUS_OK);
    assert_int_equal(uir_model_open_package_file(w.context, w.package, &opening, &w.packaged), UIR_STATUS_OK);
    assert_int_equal(uir_extractor_create(w.context, w.onnx, &w.input, 1, NULL, NULL, &w.extractor), UIR_STATUS_OK);
    assert_int_equal(uir_device_list_create(w.context, &w.devices), UIR_STATUS_OK);
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    char command[128];
    uir_extractor_destroy(w->extractor);
    uir_device_list_destroy(w->devices);
    uir_session_destroy(w->session);
    uir_session_destroy(w->plan);
    uir_session_destroy(w->machine);
    uir_model_destroy(w->model);
    uir_model_destroy(w->described);
    uir_model_destroy(w->packaged);
    uir_value_destroy(w->input);
    uir_context_destroy(w->context);
    snprintf(command, sizeof command, "rm -r '%s'", w->folder);
    return system(command);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures_are_filled_as_far_as_the_caller_knows_them),
        cmocka_unit_test(structures_without_a_size_are_not_filled),
        cmocka_unit_test(what_an_older_caller_leaves_out_is_default),
        cmocka_unit_test(what_a_newer_caller_asks_for_is_refused),
        cmocka_unit_test(what_a_callback_gets_has_the_librarys_size),
        cmocka_unit_test(a_structure_is_begun_by_one_word),
        cmocka_unit_test(nothing_may_be_destroyed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
