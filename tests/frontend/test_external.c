/* External data: mapped where it lies, and never from outside the model's folder. */
#include "frontend/storage.h"
#include "tests/frontend/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder for the test with files in it: inside/weights.bin (64 bytes), inside/sub/more.bin, links, a pipe,
 * outside.bin. */
typedef struct place {
    char root[64], inside[80];
} place;

static void write_file(const char *folder, const char *name, size_t size) {
    char path[256];
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static const char *join(const char *folder, const char *name, char *buffer, size_t capacity) {
    snprintf(buffer, capacity, "%s/%s", folder, name);
    return buffer;
}

static int make_place(void **state) {
    static place p;
    char a[256], b[256];
    snprintf(p.root, sizeof p.root, "/tmp/uir_external_XXXXXX");
    if (!mkdtemp(p.root)) return -1;
    snprintf(p.inside, sizeof p.inside, "%s/$(in) side", p.root);
    mkdir(p.inside, 0700);
    mkdir(join(p.inside, "sub", a, sizeof a), 0700);
    write_file(p.inside, "weights.bin", 64);
    write_file(a, "more.bin", 64);
    write_file(p.root, "outside.bin", 64);
    write_file(p.inside, "empty.bin", 0);
    int failed = symlink("weights.bin", join(p.inside, "link.bin", a, sizeof a)) |
                 symlink(p.root, join(p.inside, "way_out", b, sizeof b)) |
                 symlink("sub", join(p.inside, "sub_link", a, sizeof a)) |
                 symlink("../outside.bin", join(p.inside, "out.bin", a, sizeof a)) |
                 symlink("/etc/passwd", join(p.inside, "far.bin", a, sizeof a)) |
                 symlink("nothing", join(p.inside, "nowhere.bin", a, sizeof a)) |
                 symlink("circle.bin", join(p.inside, "circle.bin", a, sizeof a)) |
                 link(join(p.inside, "weights.bin", a, sizeof a), join(p.inside, "hard.bin", b, sizeof b)) |
                 mkfifo(join(p.inside, "pipe", b, sizeof b), 0600);
    *state = &p;
    return failed;
}

static int remove_place(void **state) {
    place *p = *state;
    static const char *const names[] = {"sub/more.bin", "weights.bin", "empty.bin", "link.bin",
                                        "way_out",      "sub_link",    "pipe",      "out.bin",
                                        "far.bin",      "nowhere.bin", "hard.bin",  "circle.bin"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(join(p->inside, names[i], path, sizeof path));
    rmdir(join(p->inside, "sub", path, sizeof path));
    rmdir(p->inside);
    unlink(join(p->root, "outside.bin", path, sizeof path));
    return rmdir(p->root);
}

/* x + w, with w's `count` floats external. NULL leaves a key out. */
static blob external_model(int64_t count, const char *location, const char *offset, const char *length) {
    blob tensor = make_tensor("w", UIR_DTYPE_F32, 1, &count);
    put_int(&tensor, TENSOR_LOCATION, 1);
    if (location) put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", location));
    if (offset) put_message(&tensor, TENSOR_EXTERNAL, make_pair("offset", offset));
    if (length) put_message(&tensor, TENSOR_EXTERNAL, make_pair("length", length));
    blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    return make_model(graph);
}

static void data_is_mapped_and_shared(void **state) {
    const place *p = *state;
    blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    static const char *const names[] = {"w", "v", "misaligned"};
    static const char *const offsets[] = {"16", "32", "33"};
    int64_t count = 4;
    for (int i = 0; i < 3; i++) {
        blob tensor = make_tensor(names[i], UIR_DTYPE_F32, 1, &count);
        put_int(&tensor, TENSOR_LOCATION, 1);
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "weights.bin"));
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("offset", offsets[i]));
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("length", "16"));
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("checksum", "anything"));
        put_message(&graph, GRAPH_INITIALIZER, tensor);
    }
    loaded l;
    load_model(&l, make_model(graph), p->inside);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_tensor *tensors[3] = {0};
    for (uint32_t i = 1; i < l.module->values.count; i++) {
        const uir_value_info *value = uir_value_info_get(l.module, (uir_value_id){i});
        for (int n = 0; n < 3; n++) {
            if (!strcmp(uir_string_text(&l.module->strings, value->name), names[n])) tensors[n] = value->constant;
        }
    }
    assert_false(tensors[0]->owned);
    assert_ptr_equal((const char *)tensors[1]->data, (const char *)tensors[0]->data + 16);
    assert_true(tensors[2]->owned); /* cannot be read in place */
    assert_memory_equal(tensors[0]->data, "\x10\x11\x12\x13", 4);
    assert_memory_equal(tensors[2]->data, "\x21\x22\x23\x24", 4);
    unload(&l);
}

static void what_leaves_the_folder_is_refused(void **state) {
    const place *p = *state;
    char absolute[256];
    join(p->inside, "weights.bin", absolute, sizeof absolute);
    const struct {
        const char *location;
        uir_status status;
        const char *text;
    } cases[] = {
        {"../outside.bin", UIR_STATUS_BAD_FILE, "leads out"},
        {"sub/../../outside.bin", UIR_STATUS_BAD_FILE, "leads out"},
        {"sub//..//weights.bin", UIR_STATUS_BAD_FILE, "leads out"},
        {"..", UIR_STATUS_BAD_FILE, "leads out"},
        {absolute, UIR_STATUS_BAD_FILE, "absolute"},
        {"/etc/passwd", UIR_STATUS_BAD_FILE, "absolute"},
        {"out.bin", UIR_STATUS_BAD_FILE, "symbolic link that leads out"},
        {"far.bin", UIR_STATUS_BAD_FILE, "symbolic link that leads out"},
        {"way_out/outside.bin", UIR_STATUS_BAD_FILE, "symbolic link that leads out"},
        {"way_out", UIR_STATUS_BAD_FILE, "symbolic link that leads out"},
        {"nowhere.bin", UIR_STATUS_NOT_FOUND, "symbolic link to a missing file"},
        {"circle.bin", UIR_STATUS_BAD_FILE, "loop"},
        {"sub_link", UIR_STATUS_BAD_FILE, "not a regular file"},
        {"sub_link/../../outside.bin", UIR_STATUS_BAD_FILE, "leads out"},
        {"sub_link/missing.bin", UIR_STATUS_NOT_FOUND, "symbolic link to a missing file"},
        {"pipe", UIR_STATUS_BAD_FILE, "not a regular file"},
        {"sub", UIR_STATUS_BAD_FILE, "not a regular file"},
        {"missing.bin", UIR_STATUS_NOT_FOUND, "no such file"},
        {"weights.bin/x", UIR_STATUS_NOT_FOUND, "not a folder"},
        {"", UIR_STATUS_BAD_FILE, "empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loaded l;
        load_model(&l, external_model(4, cases[i].location, NULL, NULL), p->inside);
        if (l.status != cases[i].status || !said(&l, cases[i].text)) {
            fail_msg("'%s': %s: %s", cases[i].location, uir_status_text(l.status),
                     l.diagnostics.first ? l.diagnostics.first->message : "");
        }
        unload(&l);
    }
    expect_failure(external_model(4, "weights.bin", NULL, NULL), UIR_STATUS_NOT_FOUND, "no folder is given");
}

/* ---- models of files ---- */

static void write_model(const char *path, const char *location, int tensors) {
    blob graph = make_graph_of(make_node("Add", "n", "x,w0", "y"));
    int64_t count = 4;
    for (int i = 0; i < tensors; i++) {
        char name[16], offset[16];
        snprintf(name, sizeof name, "w%d", i), snprintf(offset, sizeof offset, "%d", 16 * i);
        blob tensor = make_tensor(name, UIR_DTYPE_F32, 1, &count);
        put_int(&tensor, TENSOR_LOCATION, 1);
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", location));
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("offset", offset));
        put_message(&graph, GRAPH_INITIALIZER, tensor);
    }
    blob model = make_model(graph);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model.data, 1, model.length, file), model.length);
    fclose(file);
    blob_free(&model);
}

/* The status of a load, its messages printed and counted. */
static uir_status load_path(const char *path, const char *external_data, char *out_text, size_t capacity,
                            uint32_t *out_errors) {
    uir_allocator system = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena_init(&arena, &system);
    uir_onnx_source source = {.path = path, .external_data = external_data};
    uir_status status = uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &module);
    uir_module_destroy(module);
    snprintf(out_text, capacity, "%s", diagnostics.first ? diagnostics.first->message : "");
    *out_errors = diagnostics.error_count;
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    return status;
}

/* A cache that keeps files by their hashes and links to them from folders of versions; what a link to elsewhere finds,
 * and what is named besides. */
static void data_lies_beside_the_model_or_its_real_path(void **state) {
    const place *p = *state;
    static const char *const folders[] = {"blobs", "snapshots", "snapshots/1", "snapshots/1/onnx", "elsewhere"};
    static const char *const links[][2] = {{"../../../blobs/0a", "snapshots/1/onnx/model.onnx"},
                                           {"../../../blobs/0b", "snapshots/1/onnx/model.data"},
                                           {"../elsewhere/1a", "blobs/stray"},
                                           {"../elsewhere/1a", "elsewhere/self"},
                                           {"../../../blobs/stray", "snapshots/1/onnx/stray"},
                                           {"../../../elsewhere/1a", "snapshots/1/onnx/away"}};
    const struct {
        const char *location, *path, *external_data; /* below the root; NULL: none */
        const char *text;                            /* of the refusal */
    } cases[] = {
        {"model.data", "snapshots/1/onnx/model.onnx", NULL, NULL},
        {"model.data", "blobs/0a", NULL, "no such file"},
        {"0b", "snapshots/1/onnx/model.onnx", NULL, NULL}, /* beside its real path */
        {"1a", "snapshots/1/onnx/model.onnx", NULL, "no such file"},
        {"1a", "snapshots/1/onnx/model.onnx", "elsewhere", NULL},
        {"1a", "blobs/0a", "elsewhere", NULL},
        {"stray", "snapshots/1/onnx/model.onnx", NULL, "leads out"},
        {"stray", "snapshots/1/onnx/model.onnx", "elsewhere", NULL},
        {"away", "snapshots/1/onnx/model.onnx", NULL, "leads out"},
        {"away", "snapshots/1/onnx/model.onnx", "elsewhere", NULL},
        {"../elsewhere/1a", "blobs/0a", "elsewhere", "leads out"},
        {"0a", "snapshots/1/onnx/model.onnx", "nowhere", "folder for external data cannot be opened"},
        {"0a", "snapshots/1/onnx/model.onnx", "blobs/0b", "folder for external data cannot be opened"},
    };
    char a[256], b[256], text[512];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdir(join(p->root, folders[i], a, sizeof a), 0700), 0);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_int_equal(symlink(links[i][0], join(p->root, links[i][1], a, sizeof a)), 0);
    write_file(join(p->root, "blobs", a, sizeof a), "0b", 64);
    write_file(join(p->root, "elsewhere", a, sizeof a), "1a", 64);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t errors;
        write_model(join(p->root, "blobs/0a", a, sizeof a), cases[i].location, 4);
        uir_status status =
            load_path(join(p->root, cases[i].path, a, sizeof a),
                      cases[i].external_data ? join(p->root, cases[i].external_data, b, sizeof b) : NULL, text,
                      sizeof text, &errors);
        if ((status == UIR_STATUS_OK) != !cases[i].text || errors != (cases[i].text != NULL) ||
            (cases[i].text && !strstr(text, cases[i].text)))
            fail_msg("%d, '%s': %s: %u errors: %s", (int)i, cases[i].location, uir_status_text(status), errors, text);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) unlink(join(p->root, links[i][1], a, sizeof a));
    static const char *const files[] = {"blobs/0a", "blobs/0b", "elsewhere/1a"};
    for (size_t i = 0; i < 3; i++) unlink(join(p->root, files[i], a, sizeof a));
    for (size_t i = sizeof folders / sizeof *folders; i-- > 0;) rmdir(join(p->root, folders[i], a, sizeof a));
}

/* What is wrong with a file is said once, however many tensors lie in it. */
static void a_file_has_one_error(void **state) {
    const place *p = *state;
    static const struct {
        const char *location, *text;
    } cases[] = {{"missing.bin", "no such file"}, {"/etc/passwd", "absolute"},
                 {"../outside.bin", "leads out"}, {"out.bin", "leads out"},
                 {"pipe", "not a regular"},       {"weights.bin", "bytes 64 to 80"},
                 {"empty.bin", "bytes 0 to 16"},  {"", "empty"}};
    char path[256], text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t errors;
        write_model(join(p->inside, "model.onnx", path, sizeof path), cases[i].location, 7);
        assert_int_not_equal(load_path(path, NULL, text, sizeof text, &errors), UIR_STATUS_OK);
        if (errors != 1 || !strstr(text, cases[i].text))
            fail_msg("'%s': %u errors: %s", cases[i].location, errors, text);
    }
    unlink(path);
}

static void links_that_stay_are_followed(void **state) {
    const place *p = *state;
    static const char *const names[] = {"link.bin", "sub_link/more.bin", "hard.bin", "./sub_link//more.bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        loaded l;
        load_model(&l, external_model(4, names[i], NULL, NULL), p->inside);
        if (l.status != UIR_STATUS_OK) fail_msg("'%s': %s", names[i], l.diagnostics.first->message);
        unload(&l);
    }
}

/* Of two names one of which begins with the other, and one that ends before its bytes do. */
static void names_are_whole(void **state) {
    const place *p = *state;
    static const struct {
        const char *name;
        size_t length;
        uir_status status;
        const char *text;
    } cases[] = {
        {"weights.bin", 11, UIR_STATUS_OK, NULL},
        {"weights.bi", 10, UIR_STATUS_NOT_FOUND, "no such file"},
        {"weights.binx", 12, UIR_STATUS_NOT_FOUND, "no such file"},
        {"weights.bin\0x", 13, UIR_STATUS_BAD_FILE, "holds a zero byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loaded l;
        int64_t count = 4;
        blob graph = make_graph_of(make_node("Add", "n", "v,w", "y"));
        for (int k = 0; k < 2; k++) {
            blob tensor = make_tensor(k ? "w" : "v", UIR_DTYPE_F32, 1, &count), pair = blob_new();
            put_int(&tensor, TENSOR_LOCATION, 1);
            put_text(&pair, 1, "location");
            put_bytes(&pair, 2, k ? cases[i].name : "weights.bin", k ? cases[i].length : 11);
            put_message(&tensor, TENSOR_EXTERNAL, pair);
            put_message(&tensor, TENSOR_EXTERNAL, make_pair("length", "16"));
            put_message(&graph, GRAPH_INITIALIZER, tensor);
        }
        load_model(&l, make_model(graph), p->inside);
        if (l.status != cases[i].status || (cases[i].text && !said(&l, cases[i].text)))
            fail_msg("'%s': %s", cases[i].name, uir_status_text(l.status));
        unload(&l);
    }
}

static void sizes_are_checked_against_the_file(void **state) {
    const place *p = *state;
    const struct {
        int64_t count;
        const char *offset, *length;
        const char *text; /* of the refusal */
    } cases[] = {
        {16, NULL, NULL, NULL},
        {17, NULL, NULL, "bytes 0 to 68 of external data 'weights.bin', which has 64 bytes"},
        {16, "0", "64", NULL},
        {16, "1", "64", "bytes 1 to 65"},
        {4, "48", "16", NULL},
        {4, "49", "16", "bytes 49 to 65"},
        {4, "65", "16", "bytes 65 to 81"},
        {4, "0", "15", "15 bytes of external data where type and dims need 16"},
        {4, "0", "17", "17 bytes"},
        {4, "-4", "16", "whole numbers"},
        {4, "0x10", "16", "whole numbers"},
        {4, "1/", "16", "whole numbers"},
        {4, "1:", "16", "whole numbers"},
        {4, "", "16", "whole numbers"},
        {4, "18446744073709551615", "16", "whole numbers"},
        {4, "18446744073709551616", "16", "whole numbers"}, /* 2^64 + 0: it must not wrap */
        {4, "9223372036854775807", "16", "which has 64 bytes"},
        {4, "1e1", "16", "whole numbers"},
        {0, "64", "0", NULL},
        {0, "65", "0", "bytes 65 to 65"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        loaded l;
        load_model(&l, external_model(cases[i].count, "weights.bin", cases[i].offset, cases[i].length), p->inside);
        if (l.status != (cases[i].text ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK))
            fail_msg("case %d: %s", (int)i, uir_status_text(l.status));
        if (cases[i].text && !said(&l, cases[i].text)) fail_msg("case %d: %s", (int)i, l.diagnostics.first->message);
        unload(&l);
    }
    loaded l;
    load_model(&l, external_model(4, "empty.bin", NULL, NULL), p->inside);
    assert_int_equal(l.status, UIR_STATUS_BAD_FILE);
    unload(&l);
}

static void keys_are_known_and_given_once(void **state) {
    const place *p = *state;
    for (int twice = 0; twice < 2; twice++) {
        int64_t count = 4;
        blob tensor = make_tensor("w", UIR_DTYPE_F32, 1, &count);
        put_int(&tensor, TENSOR_LOCATION, 1);
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "weights.bin"));
        put_message(&tensor, TENSOR_EXTERNAL,
                    twice ? make_pair("location", "sub/more.bin") : make_pair("basepath", "/"));
        blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
        put_message(&graph, GRAPH_INITIALIZER, tensor);
        loaded l;
        load_model(&l, make_model(graph), p->inside);
        assert_int_equal(l.status, UIR_STATUS_BAD_FILE);
        assert_true(said(&l, twice ? "occurs twice" : "unknown key 'basepath'"));
        unload(&l);
    }
    expect_failure(external_model(4, NULL, NULL, NULL), UIR_STATUS_BAD_FILE, "has no location");
}

/* Both ways of opening agree; the second is for kernels without openat2. */
static void the_walk_agrees_with_the_kernel(void **state) {
    const place *p = *state;
    static const struct {
        const char *path;
        bool good;
    } cases[] = {{"weights.bin", true},
                 {"sub/more.bin", true},
                 {"sub//more.bin", true},
                 {"./weights.bin", true},
                 {"../outside.bin", false},
                 {"link.bin", false},
                 {"way_out/outside.bin", false},
                 {"sub_link/more.bin", false},
                 {"missing", false},
                 {"/etc/passwd", false},
                 {"weights.bin/x", false},
                 {"weights.bin/", false},
                 {"sub/", true}};
    char lengthy[257]; /* a name of as many bytes as the walk's copy has, its zero left out */
    int folder = open(p->inside, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = 0;
    assert_int_equal(uir_confined_open_walk(folder, lengthy), -ENAMETOOLONG);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int walked = uir_confined_open_walk(folder, cases[i].path);
        int kernel = uir_confined_open_kernel(folder, cases[i].path);
        if ((walked >= 0) != cases[i].good) fail_msg("the walk opens '%s': %d", cases[i].path, walked);
        if (kernel != -38 && (kernel >= 0) != cases[i].good) fail_msg("openat2 opens '%s': %d", cases[i].path, kernel);
        if (walked >= 0) close(walked);
        if (kernel >= 0) close(kernel);
    }
    close(folder);
}

static void a_model_file_finds_its_data_beside_it(void **state) {
    const place *p = *state;
    char path[256];
    blob model = external_model(4, "sub/more.bin", "16", NULL);
    FILE *file = fopen(join(p->inside, "model.onnx", path, sizeof path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model.data, 1, model.length, file), model.length);
    fclose(file);
    blob_free(&model);
    uir_allocator system = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_onnx_info info;
    uir_module *module = NULL;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena_init(&arena, &system);
    uir_onnx_source source = {.path = path};
    assert_int_equal(uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &module), UIR_STATUS_OK);
    uir_module_destroy(module);
    unlink(path);
    assert_int_equal(uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &module), UIR_STATUS_NOT_FOUND);
    assert_string_equal(diagnostics.first->location.file, path);
    source.path = p->inside;
    assert_int_equal(uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &module), UIR_STATUS_BAD_FILE);
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
}

/* What a file holds is used where it lies, unless its bytes say more than its elements. */
static void what_is_not_clean_is_copied(void **state) {
    const place *p = *state;
    static const struct {
        uir_dtype dtype;
        uint8_t raw[3], clean[3];
        size_t size;
    } cases[] = {
        {UIR_DTYPE_BOOL, {1, 0, 1}, {1, 0, 1}, 3},     {UIR_DTYPE_BOOL, {1, 0, 9}, {1, 0, 1}, 3},
        {UIR_DTYPE_U4, {0x21, 0x03}, {0x21, 0x03}, 2}, {UIR_DTYPE_U4, {0x21, 0xf3}, {0x21, 0x03}, 2},
        {UIR_DTYPE_U8, {0, 9, 0xf3}, {0, 9, 0xf3}, 3},
    };
    uir_allocator system = uir_allocator_system();
    char path[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob graph = make_graph_of(make_node("Shape", "n", "w", "y"));
        blob tensor = make_tensor("w", cases[i].dtype, 1, (int64_t[]){3});
        put_bytes(&tensor, TENSOR_RAW, cases[i].raw, cases[i].size);
        put_message(&graph, GRAPH_INITIALIZER, tensor);
        blob model = make_model(graph);
        FILE *file = fopen(join(p->inside, "model.onnx", path, sizeof path), "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(model.data, 1, model.length, file), model.length);
        fclose(file);
        blob_free(&model);
        uir_onnx_source source = {.path = path};
        uir_diagnostics diagnostics;
        uir_arena arena;
        uir_onnx_info info;
        loaded l = {.module = NULL};
        uir_diagnostics_init(&diagnostics, &system);
        uir_arena_init(&arena, &system);
        assert_int_equal(uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &l.module), UIR_STATUS_OK);
        const uir_tensor *w = uir_value_info_get(l.module, main_node(&l, 0)->inputs[0])->constant;
        assert_memory_equal(w->data, cases[i].clean, cases[i].size);
        assert_int_equal(w->owned, memcmp(cases[i].raw, cases[i].clean, cases[i].size) != 0);
        uir_module_destroy(l.module);
        uir_arena_deinit(&arena);
        uir_diagnostics_deinit(&diagnostics);
        unlink(path);
    }
}

/* The number the next open gives: the same again when everything between was closed. */
static int next_descriptor(void) {
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    close(descriptor);
    return descriptor;
}

/* The files of data, each once and without the model's own, and none is left open; a name may begin with two dots. */
static void files_are_listed_and_closed(void **state) {
    const place *p = *state;
    static const char *const locations[] = {"weights.bin", "sub/more.bin", "..dots", "weights.bin", "...", "sub/..b"};
    enum { COUNT = sizeof locations / sizeof *locations };
    int before = next_descriptor();
    char path[256], other[256];
    write_file(p->inside, "..dots", 64);
    write_file(p->inside, "...", 64);
    write_file(p->inside, "sub/..b", 64);
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        blob tensor = make_tensor(name, UIR_DTYPE_F32, 1, (int64_t[]){4});
        put_int(&tensor, TENSOR_LOCATION, 1);
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", locations[i]));
        put_message(&tensor, TENSOR_EXTERNAL, make_pair("length", "16"));
        put_message(&graph, GRAPH_INITIALIZER, tensor);
    }
    blob model = make_model(graph);
    FILE *file = fopen(join(p->inside, "model.onnx", path, sizeof path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model.data, 1, model.length, file), model.length);
    fclose(file);
    for (int from_memory = 0; from_memory < 2; from_memory++) {
        loaded l = {.allocator = uir_allocator_system()};
        uir_diagnostics_init(&l.diagnostics, &l.allocator);
        uir_arena_init(&l.arena, &l.allocator);
        uir_onnx_source source = {.path = path};
        if (from_memory) source = (uir_onnx_source){.data = model.data, .size = model.length, .folder = p->inside};
        assert_int_equal(uir_onnx_load(&source, &l.allocator, &l.diagnostics, &l.arena, &l.info, &l.module),
                         UIR_STATUS_OK);
        bool seen[COUNT] = {false};
        uir_onnx_file found;
        for (uint32_t i = 0; i < COUNT - 1; i++) {
            assert_true(uir_onnx_get_file(l.module, i, &found));
            assert_int_equal(found.size, 64);
            assert_memory_equal(found.data, "\0\1\2\3", 4);
            int at = 0;
            while (at < COUNT && (seen[at] || strcmp(locations[at], found.name) != 0)) at++;
            assert_true(at < COUNT && at != 3);
            seen[at] = true;
        }
        assert_false(uir_onnx_get_file(l.module, COUNT - 1, &found));
        unload(&l);
    }
    blob_free(&model);
    unlink(path);
    unlink(join(p->inside, "..dots", other, sizeof other));
    unlink(join(p->inside, "...", other, sizeof other));
    unlink(join(p->inside, "sub/..b", other, sizeof other));
    assert_int_equal(next_descriptor(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_clean_is_copied),
        cmocka_unit_test(links_that_stay_are_followed),
        cmocka_unit_test(data_lies_beside_the_model_or_its_real_path),
        cmocka_unit_test(a_file_has_one_error),
        cmocka_unit_test(names_are_whole),
        cmocka_unit_test(data_is_mapped_and_shared),
        cmocka_unit_test(what_leaves_the_folder_is_refused),
        cmocka_unit_test(sizes_are_checked_against_the_file),
        cmocka_unit_test(keys_are_known_and_given_once),
        cmocka_unit_test(files_are_listed_and_closed),
        cmocka_unit_test(the_walk_agrees_with_the_kernel),
        cmocka_unit_test(a_model_file_finds_its_data_beside_it),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
