/* Parts of a model as models of their own: what is written is what was kept, with the values of the run at its edges;
 * damaged files and failing memory end in a status and leave nothing. */
#include "tests/frontend/make.h"
#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fails one allocation. */
typedef struct memory {
    unsigned long asked, fail_at;
    long long live;
} memory;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    memory *m = user;
    if (!new_size) {
        m->live -= (long long)old_size;
        free(pointer);
        return NULL;
    }
    if (++m->asked == m->fail_at) return NULL;
    void *block = NULL;
    if (posix_memalign(&block, 64, new_size) != 0) return NULL;
    if (pointer) memcpy(block, pointer, old_size < new_size ? old_size : new_size);
    free(pointer);
    m->live += (long long)new_size - (long long)(pointer ? old_size : 0);
    return block;
}

typedef struct world {
    char folder[64], model[96], part[96], data[96];
    memory memory;
    uir_allocator allocator;
    uir_context *context;
    uir_value *x;
    uir_extractor *parts;
} world;

/* a = -x; b = relu(a); c = exp(b); y = b + c. */
static blob make_bytes(void) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "small");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "first", "x", "a"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "second", "a", "b"));
    put_message(&graph, GRAPH_NODE, make_node("Exp", "third", "b", "c"));
    put_message(&graph, GRAPH_NODE, make_node("Add", "fourth", "b,c", "y"));
    return make_model(graph);
}

/* a = -x; b = relu(a); c = exp(b); y = b + c; d = -a; z = exp(d); f = exp(-a) goes nowhere. Its results are y, d and z,
 * and no node stands where it could be run. */
static blob make_tangled_bytes(void) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "tangled");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_OUTPUT, make_value("d", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_OUTPUT, make_value("z", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Exp", "0", "b", "c"));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "1", "x", "a"));
    put_message(&graph, GRAPH_NODE, make_node("Add", "2", "b,c", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "3", "a", "b"));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "4", "a", "d"));
    put_message(&graph, GRAPH_NODE, make_node("Exp", "5", "d", "z"));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "6", "a", "e"));
    put_message(&graph, GRAPH_NODE, make_node("Exp", "7", "e", "f"));
    return make_model(graph);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void open_world(world *w) {
    memset(w, 0, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "/tmp/uir-parts-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->model, sizeof w->model, "%s/m.onnx", w->folder);
    snprintf(w->part, sizeof w->part, "%s/part.onnx", w->folder);
    snprintf(w->data, sizeof w->data, "%s/data", w->folder);
    assert_int_equal(mkdir(w->data, 0700), 0);
    blob bytes = make_bytes();
    write_file(w->model, bytes.data, bytes.length);
    blob_free(&bytes);
    w->allocator = (uir_allocator){resize, &w->memory};
    assert_int_equal(uir_context_create(&w->allocator, &w->context), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &w->x), UIR_STATUS_OK);
    for (int i = 0; i < 6; i++) ((float *)uir_value_get_data(w->x))[i] = (float)(2 - i);
}

static void close_world(world *w) {
    char path[160];
    uir_extractor_destroy(w->parts);
    uir_value_destroy(w->x);
    uir_context_destroy(w->context);
    assert_int_equal(w->memory.live, 0);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/%s_%d.pb", w->data, i % 2 ? "input" : "output", i / 2);
        unlink(path);
    }
    rmdir(w->data);
    unlink(w->part);
    unlink(w->model);
    assert_int_equal(rmdir(w->folder), 0);
}

static uir_status write_kept(world *w, const bool *kept, const char *output, bool fixed) {
    uir_subgraph cut = {.struct_size = sizeof cut, .nodes = kept, .output = output, .static_shapes = fixed};
    return uir_extractor_write(w->parts, &cut, w->part, w->data);
}

/* The written model run on its data, by the interpreter; its dims as text. */
static void check_part(world *w, size_t nodes, const char *dim) {
    uir_model_options options = {.struct_size = sizeof options, .device = "interpreter"};
    uir_tolerance exactly = {.struct_size = sizeof exactly};
    uir_model *model;
    uir_session *session;
    uir_value *inputs[2] = {NULL};
    assert_int_equal(uir_model_load_file(w->context, w->part, &options, &model), UIR_STATUS_OK);
    assert_int_equal(query_info(model).onnx_node_count, nodes);
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    for (size_t i = 0; i < uir_model_input_count(model); i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/input_%zu.pb", w->data, i);
        assert_string_equal(query_input(model, i).dim_names[0], dim);
        assert_int_equal(uir_value_load_file(w->context, path, NULL, UIR_VALUE_TENSOR, &inputs[i]), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(session, i, inputs[i]), UIR_STATUS_OK);
    }
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    for (size_t i = 0; i < uir_model_output_count(model); i++) {
        char path[160];
        uir_value *got, *wanted;
        snprintf(path, sizeof path, "%s/output_%zu.pb", w->data, i);
        assert_int_equal(uir_value_load_file(w->context, path, NULL, UIR_VALUE_TENSOR, &wanted), UIR_STATUS_OK);
        assert_int_equal(uir_session_get_output(session, i, &got), UIR_STATUS_OK);
        assert_true(query_comparison(got, wanted, exactly).agree);
        uir_value_destroy(wanted);
    }
    uir_session_destroy(session);
    uir_model_destroy(model);
    for (int i = 0; i < 2; i++) uir_value_destroy(inputs[i]);
}

static void parts_are_models(void **state) {
    world w;
    (void)state;
    open_world(&w);
    assert_int_equal(uir_extractor_create(w.context, w.model, &w.x, 1, NULL, NULL, &w.parts), UIR_STATUS_OK);
    assert_int_equal(uir_extractor_node_count(w.parts), 4);
    assert_string_equal(query_part(w.parts, 2).name, "third");
    assert_string_equal(query_part(w.parts, 2).op, "Exp");
    assert_string_equal(query_part(w.parts, 4).op, "");
    bool all[] = {true, true, true, true}, middle[] = {false, true, true, false}, ends[] = {true, false, false, true},
         none[4] = {false};
    for (int fixed = 0; fixed < 2; fixed++) {
        assert_int_equal(write_kept(&w, all, NULL, fixed), UIR_STATUS_OK);
        assert_null(uir_extractor_get_output_name(w.parts, 1));
        check_part(&w, 4, fixed ? "" : "batch");
        assert_int_equal(write_kept(&w, middle, NULL, fixed), UIR_STATUS_OK);
        assert_string_equal(uir_extractor_get_output_name(w.parts, 0), "b");
        assert_string_equal(uir_extractor_get_output_name(w.parts, 1), "c");
        assert_int_equal(uir_extractor_input_count(w.parts), 1);
        check_part(&w, 2, fixed ? "" : "batch");
        assert_int_equal(write_kept(&w, ends, NULL, fixed), UIR_STATUS_OK);
        assert_int_equal(uir_extractor_input_count(w.parts), 3);
    }
    assert_int_equal(write_kept(&w, middle, "b", true), UIR_STATUS_OK);
    check_part(&w, 2, "");
    assert_int_equal(uir_extractor_prune(w.parts, "b", middle), UIR_STATUS_OK);
    assert_true(middle[1] && !middle[2]);
    assert_int_equal(uir_extractor_prune(w.parts, NULL, ends), UIR_STATUS_OK);
    assert_true(ends[0] && ends[3]);
    assert_int_equal(write_kept(&w, none, NULL, true), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(write_kept(&w, all, "nowhere", true), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_extractor_prune(w.parts, "nowhere", all), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_extractor_set_expected(w.parts, 1, w.x), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_extractor_set_expected(w.parts, 0, w.x), UIR_STATUS_OK);
    close_world(&w);
}

enum { TANGLED = 8 };

static void open_tangled(world *w) {
    open_world(w);
    blob bytes = make_tangled_bytes();
    write_file(w->model, bytes.data, bytes.length);
    blob_free(&bytes);
    uir_value *inputs[] = {w->x, NULL};
    assert_int_equal(uir_extractor_create(w->context, w->model, inputs, 1, NULL, NULL, &w->parts), UIR_STATUS_OK);
    assert_int_equal(uir_extractor_node_count(w->parts), TANGLED);
}

/* A digit per part. */
static void read_mask(const char *text, bool *out_mask) {
    for (int i = 0; i < TANGLED; i++) out_mask[i] = strchr(text, '0' + i) != NULL;
}

/* Kept is what an output needs: the one that is named, or all that the graph or a part left out wants. */
static void what_is_unused_is_dropped(void **state) {
    static const struct {
        const char *kept, *output, *left; /* left NULL: there is no such output */
    } cases[] = {
        {"01234567", NULL, "012345"},
        {"01234567", "y", "0123"},
        {"01234567", "z", "145"},
        {"01234567", "d", "14"},
        {"01234567", "c", "013"},
        {"01234567", "f", "167"},
        {"01234567", "b", "13"},
        {"01234567", "a", "1"},
        {"0134567", NULL, "01345"},
        {"0134567", "a", "1"},
        {"1", NULL, "1"},
        {"0", NULL, "0"},
        {"6", NULL, "6"},
        {"7", NULL, ""},
        {"67", NULL, ""},
        {"17", NULL, "1"},
        {"12", "y", "2"},
        {"12", NULL, "12"},
        {"5", NULL, "5"},
        {"45", "z", "45"},
        {"15", "z", "5"},
        {"0", "c", "0"},
        {"", NULL, ""},
        {"012", "b", NULL},
        {"01234567", "x", NULL},
        {"01234567", "w", NULL},
        {"1234567", "c", NULL},
        {"01234567", "", NULL},
        {"0123456", "f", NULL},
    };
    world w;
    (void)state;
    open_tangled(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool kept[TANGLED + 1], left[TANGLED];
        read_mask(cases[i].kept, kept);
        read_mask(cases[i].left ? cases[i].left : cases[i].kept, left);
        kept[TANGLED] = true; /* not a part's */
        assert_int_equal(uir_extractor_prune(w.parts, cases[i].output, kept),
                         cases[i].left ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT);
        for (int p = 0; p < TANGLED; p++)
            if (kept[p] != left[p]) fail_msg("case %zu: part %d", i, p);
        assert_true(kept[TANGLED]);
    }
    close_world(&w);
}

static float first_of(world *w, const char *name) {
    char path[160];
    uir_value *value;
    snprintf(path, sizeof path, "%s/%s.pb", w->data, name);
    assert_int_equal(uir_value_load_file(w->context, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_OK);
    float number = *(float *)uir_value_get_data(value);
    uir_value_destroy(value);
    return number;
}

/* What is expected stands in the run's place where it goes out, and nowhere else; an output that is named is the only
 * one. */
static void expected_values_are_outputs(void **state) {
    world w;
    uir_value *expected;
    bool kept[TANGLED];
    (void)state;
    open_tangled(&w);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &expected), UIR_STATUS_OK);
    *(float *)uir_value_get_data(expected) = 77;
    assert_int_equal(uir_extractor_set_expected(w.parts, 1, expected), UIR_STATUS_OK);
    assert_int_equal(uir_extractor_set_expected(w.parts, 3, expected), UIR_STATUS_INVALID_ARGUMENT);
    read_mask("4", kept);
    assert_int_equal(write_kept(&w, kept, NULL, false), UIR_STATUS_OK);
    assert_string_equal(uir_extractor_get_output_name(w.parts, 0), "d");
    assert_true(first_of(&w, "output_0") == 77 && first_of(&w, "input_0") == -2);
    read_mask("5", kept);
    assert_int_equal(write_kept(&w, kept, NULL, false), UIR_STATUS_OK);
    assert_string_equal(uir_extractor_get_output_name(w.parts, 0), "z");
    assert_true(first_of(&w, "input_0") == 2 && first_of(&w, "output_0") > 7 && first_of(&w, "output_0") < 8);
    read_mask("134", kept);
    static const char *const outputs[] = {"a", "b", "d"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write_kept(&w, kept, outputs[i], false), UIR_STATUS_OK);
        assert_string_equal(uir_extractor_get_output_name(w.parts, 0), outputs[i]);
        assert_null(uir_extractor_get_output_name(w.parts, 1));
        assert_int_equal(uir_extractor_input_count(w.parts), 1);
    }
    assert_int_equal(write_kept(&w, kept, "c", false), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(expected);
    close_world(&w);
}

static void what_is_no_model_is_refused(void **state) {
    world w;
    (void)state;
    open_world(&w);
    assert_int_equal(uir_extractor_create(w.context, w.model, NULL, 0, NULL, NULL, &w.parts), UIR_STATUS_INVALID_ARGUMENT);
    assert_null(w.parts);
    blob bytes = make_bytes();
    for (size_t size = 0; size < bytes.length; size += 3) {
        write_file(w.model, bytes.data, size);
        uir_status status = uir_extractor_create(w.context, w.model, &w.x, 1, NULL, NULL, &w.parts);
        assert_true(status != UIR_STATUS_OK && status != UIR_STATUS_INTERNAL);
    }
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
        write_file(w.model, bytes.data, bytes.length);
        if (uir_extractor_create(w.context, w.model, &w.x, 1, NULL, NULL, &w.parts) == UIR_STATUS_OK) {
            bool kept[] = {false, true, true, false};
            if (uir_extractor_node_count(w.parts) == 4) (void)!write_kept(&w, kept, NULL, bit % 2);
        }
        uir_extractor_destroy(w.parts);
        w.parts = NULL;
        uir_context_clear_messages(w.context);
        bytes.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    blob_free(&bytes);
    close_world(&w);
}

typedef struct asking {
    unsigned long asked, stop_at, told;
    bool differs;
} asking;

static bool stop_there(void *user, const char *stage, double fraction) {
    asking *a = user;
    assert_true(*stage && fraction >= 0 && fraction <= 1);
    return ++a->asked == a->stop_at;
}

static void hear(void *user, const uir_check_line *line) {
    asking *a = user;
    a->told++;
    a->differs = a->differs || !line->agrees;
}

/* A check that is stopped at any of its stages says CANCELLED, and no stage differs by that. */
static void a_check_may_be_stopped(void **state) {
    (void)state;
    world w;
    open_world(&w);
    for (unsigned long at = 1;; at++) {
        asking a = {.stop_at = at};
        uir_model_check_options options = {
            .struct_size = sizeof options, .device = "vm", .report = hear, .progress = stop_there, .user = &a};
        uir_status status = uir_model_check_file(w.context, w.model, &w.x, 1, &options);
        assert_false(a.differs);
        uir_context_clear_messages(w.context);
        if (status == UIR_STATUS_OK) { /* that was the last call, which says that all is done */
            assert_true(a.asked == at && at > 8 && a.told > 4);
            break;
        }
        assert_int_equal(status, UIR_STATUS_CANCELLED);
        assert_int_equal(a.asked, at);
    }
    volatile bool cancel = true;
    asking a = {0};
    uir_model_check_options options = {
        .struct_size = sizeof options, .device = "vm", .cancel = &cancel, .report = hear, .user = &a};
    assert_int_equal(uir_model_check_file(w.context, w.model, &w.x, 1, &options), UIR_STATUS_CANCELLED);
    assert_false(a.differs);
    close_world(&w);
}

static void memory_may_run_out(void **state) {
    world w;
    bool kept[] = {false, true, true, true};
    unsigned long failures = 0;
    (void)state;
    open_world(&w);
    for (unsigned long at = 1;; at++) {
        w.memory.asked = 0;
        w.memory.fail_at = at;
        uir_status status = uir_extractor_create(w.context, w.model, &w.x, 1, NULL, NULL, &w.parts);
        if (status == UIR_STATUS_OK) status = write_kept(&w, kept, at % 2 ? "y" : NULL, at % 3 == 0);
        if (status == UIR_STATUS_OK) status = uir_extractor_prune(w.parts, NULL, (bool[]){false, true, true, true});
        bool reached = w.memory.asked >= at;
        w.memory.fail_at = 0;
        uir_extractor_destroy(w.parts);
        w.parts = NULL;
        uir_context_clear_messages(w.context);
        assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY);
        failures += status != UIR_STATUS_OK;
        if (!reached) break;
    }
    assert_true(failures > 30);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_models),
        cmocka_unit_test(what_is_unused_is_dropped),
        cmocka_unit_test(expected_values_are_outputs),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(a_check_may_be_stopped),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
