/* Which model a file is: what is told by its stamp and by its bytes, and what cannot be told. */
#include "compile/identity.h"
#include "tests/base/support.h"
#include "uir/uir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct world {
    char folder[64], model[96];
    uir_allocator allocator;
    uir_identity identity;
} world;

static const char *const files[] = {"m.onnx", "a", "b c  d", "empty"};
enum { FILES = sizeof files / sizeof *files };

static void write_beside(const world *w, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state) {
    static world w;
    char path[160];
    memset(&w, 0, sizeof w);
    w.allocator = uir_allocator_system();
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-identity-XXXXXX");
    if (!mkdtemp(w.folder)) return 1;
    snprintf(w.model, sizeof w.model, "%s/m.onnx", w.folder);
    for (int i = 0; i < FILES; i++) write_beside(&w, files[i], i == 3 ? "" : files[i]);
    snprintf(path, sizeof path, "%s/link", w.folder);
    if (symlink("a", path) != 0) return 1;
    snprintf(path, sizeof path, "%s/out", w.folder);
    if (symlink("/etc/passwd", path) != 0) return 1;
    snprintf(path, sizeof path, "%s/nowhere", w.folder);
    if (symlink("nothing", path) != 0) return 1;
    snprintf(path, sizeof path, "%s/inside", w.folder);
    if (mkdir(path, 0700) != 0) return 1;
    snprintf(path, sizeof path, "%s/pipe", w.folder);
    if (mkfifo(path, 0600) != 0) return 1;
    uir_status status = uir_identity_init(&w.identity, &w.allocator, w.model, NULL);
    *state = &w;
    return status;
}

static int end(void **state) {
    world *w = *state;
    char path[160];
    uir_identity_deinit(&w->identity);
    for (int i = 0; i < FILES; i++) snprintf(path, sizeof path, "%s/%s", w->folder, files[i]), unlink(path);
    snprintf(path, sizeof path, "%s/link", w->folder), unlink(path);
    snprintf(path, sizeof path, "%s/out", w->folder), unlink(path);
    snprintf(path, sizeof path, "%s/nowhere", w->folder), unlink(path);
    snprintf(path, sizeof path, "%s/pipe", w->folder), unlink(path);
    snprintf(path, sizeof path, "%s/inside", w->folder), rmdir(path);
    return rmdir(w->folder);
}

/* When the file `name` was last changed: its contents, and whatever else is noted of it. */
static void times_of(const world *w, const char *name, int64_t *out_contents, int64_t *out_all) {
    char path[160];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    assert_int_equal(stat(path, &about), 0);
    *out_contents = about.st_mtim.tv_sec;
    *out_all = about.st_ctim.tv_sec;
}

static void set_time(const world *w, const char *name, int64_t seconds) {
    char path[160];
    struct timespec times[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static uir_status stamp(world *w, int64_t began, const char *name, uir_text *text) {
    w->identity.began_s = began;
    uir_text_init(text, &w->allocator);
    return uir_identity_stamp(&w->identity, name, text);
}

/* Two seconds after the later of its changes a file has a stamp. */
static void stamps_are_of_what_has_settled(void **state) {
    world *w = *state;
    static const int ahead[] = {-1000, 0, 1000}; /* of the contents' time, against the other */
    uir_text text;
    int64_t contents, all;
    for (int i = 0; i < 3; i++) {
        times_of(w, "a", &contents, &all);
        set_time(w, "a", all + ahead[i]);
        times_of(w, "a", &contents, &all);
        int64_t last = contents > all ? contents : all;
        for (int64_t began = last - 2; began < last + 5; began++) {
            assert_int_equal(stamp(w, began, "a", &text), began < last + 2 ? UIR_STATUS_NOT_FOUND : UIR_STATUS_OK);
            assert_true(began < last + 2 ? text.length == 0 : text.data[text.length - 1] == '\n');
            uir_text_deinit(&text);
        }
    }
    /* Looking begins now. */
    assert_true(w->identity.began_s != 0);
    uir_identity other;
    int64_t now = time(NULL);
    assert_int_equal(uir_identity_init(&other, &w->allocator, w->model, NULL), UIR_STATUS_OK);
    assert_in_range(other.began_s, now, now + 60);
    uir_identity_deinit(&other);
}

/* What changes a stamp: the contents' time, their size, another file under the name. */
static void stamps_tell_changes(void **state) {
    world *w = *state;
    char text[4][200];
    int64_t contents, all, later = time(NULL) + 1000;
    for (int i = 0; i < 4; i++) {
        uir_text line;
        if (i == 1) set_time(w, "a", 1000);
        if (i == 2) write_beside(w, "a", "longer than it was"), set_time(w, "a", 1000);
        if (i == 3) {
            char from[160], to[160];
            snprintf(from, sizeof from, "%s/b c  d", w->folder), snprintf(to, sizeof to, "%s/a", w->folder);
            write_beside(w, "b c  d", "LONGER THAN IT WAS"), set_time(w, "b c  d", 1000);
            assert_int_equal(rename(from, to), 0);
        }
        times_of(w, "a", &contents, &all);
        assert_int_equal(stamp(w, later, "a", &line), UIR_STATUS_OK);
        assert_true(line.length < sizeof text[i]);
        memcpy(text[i], line.data, line.length + 1);
        uir_text_deinit(&line);
        for (int j = 0; j < i; j++) assert_string_not_equal(text[i], text[j]);
    }
}

/* Files, and nothing that is like them; the model itself may be a link to its file. */
static void what_is_no_file_has_no_description(void **state) {
    world *w = *state;
    static const char *const names[] = {"out", "inside", "pipe", "nothing", "nowhere", "a\n", ""};
    int64_t later = time(NULL) + 1000;
    uir_text text;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(stamp(w, later, names[i], &text), UIR_STATUS_NOT_FOUND);
        assert_int_equal(uir_identity_content(&w->identity, names[i], &text), UIR_STATUS_NOT_FOUND);
        assert_int_equal(text.length, 0);
        uir_text_deinit(&text);
    }
    write_beside(w, "new\nline", "x");
    assert_int_equal(stamp(w, later, "new\nline", &text), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_identity_content(&w->identity, "new\nline", &text), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_identity_content_of(&w->identity, "new\nline", "x", 1, &text), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_identity_content(&w->identity, "empty", &text), UIR_STATUS_NOT_FOUND);
    assert_int_equal(text.length, 0);
    char path[160];
    snprintf(path, sizeof path, "%s/new\nline", w->folder), unlink(path);
    const char *kept = w->identity.path;
    snprintf(path, sizeof path, "%s/link", w->folder);
    w->identity.path = path;
    assert_int_equal(uir_identity_stamp(&w->identity, NULL, &text), UIR_STATUS_OK);
    assert_int_equal(uir_identity_content(&w->identity, NULL, &text), UIR_STATUS_OK);
    w->identity.path = kept;
    uir_text_deinit(&text);
}

static bool equal_but_name(const uir_text *a, size_t a_name, const uir_text *b, size_t b_name) {
    size_t length = a->length - a_name - 1;
    return length == b->length - b_name - 1 && !memcmp(a->data, b->data, length);
}

/* A link is what it leads to; once it is turned, the stamp is another, and none where the bytes were those of before.
 */
static void links_are_followed(void **state) {
    world *w = *state;
    uir_text link, target, turned;
    char path[160];
    int64_t later = time(NULL) + 1000;
    assert_int_equal(stamp(w, later, "link", &link), UIR_STATUS_OK);
    assert_int_equal(stamp(w, later, "a", &target), UIR_STATUS_OK);
    assert_true(equal_but_name(&link, 4, &target, 1));
    target.length = 0;
    assert_int_equal(uir_identity_content(&w->identity, "a", &target), UIR_STATUS_OK);
    assert_true(uir_identity_holds(&w->identity, uir_identity_stamp, link.data, link.length));
    snprintf(path, sizeof path, "%s/link", w->folder);
    assert_true(unlink(path) == 0 && symlink("b c  d", path) == 0);
    assert_false(uir_identity_holds(&w->identity, uir_identity_stamp, link.data, link.length));
    assert_int_equal(stamp(w, later, "link", &turned), UIR_STATUS_OK);
    uir_text_deinit(&turned);
    target.length = 0;
    assert_int_equal(uir_identity_content(&w->identity, "link", &target), UIR_STATUS_OK);
    assert_int_equal(stamp(w, later, "link", &turned), UIR_STATUS_OK);
    uir_text_deinit(&turned);
    assert_true(unlink(path) == 0 && symlink("a", path) == 0);
    assert_int_equal(stamp(w, later, "link", &turned), UIR_STATUS_NOT_FOUND);
    assert_int_equal(stamp(w, later, "a", &turned), UIR_STATUS_OK);
    uir_text_deinit(&turned), uir_text_deinit(&target), uir_text_deinit(&link);
}

/* The same bytes have the same line, wherever they lie; others, or another name, another. */
static void contents_are_told_by_their_bytes(void **state) {
    world *w = *state;
    uir_text one, other;
    uir_text_init(&one, &w->allocator), uir_text_init(&other, &w->allocator);
    assert_int_equal(uir_identity_content(&w->identity, "a", &one), UIR_STATUS_OK);
    assert_int_equal(uir_identity_content_of(&w->identity, "a", "a", 1, &other), UIR_STATUS_OK);
    assert_string_equal(one.data, other.data);
    assert_string_equal(one.data + one.length - 3, " a\n");
    one.length = other.length = 0;
    assert_int_equal(uir_identity_content(&w->identity, NULL, &one), UIR_STATUS_OK);
    assert_int_equal(uir_identity_content_of(&w->identity, NULL, "m.onnx", 6, &other), UIR_STATUS_OK);
    assert_string_equal(one.data, other.data);
    static const struct {
        const char *name, *bytes;
        uint64_t size;
    } different[] = {{NULL, "m.onnx", 5}, {NULL, "m.onny", 6}, {NULL, "m.onnx", 7},
                     {"", "M.onnx", 6},   {"a", "m.onnx", 6},  {NULL, NULL, 0}};
    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        other.length = 0;
        assert_int_equal(
            uir_identity_content_of(&w->identity, different[i].name, different[i].bytes, different[i].size, &other),
            UIR_STATUS_OK);
        assert_string_not_equal(one.data, other.data);
    }
    uir_text_deinit(&one), uir_text_deinit(&other);
}

/* Whoever wants it to stop is heard before the next piece of a file. */
static void hashing_can_be_cancelled(void **state) {
    world *w = *state;
    volatile bool cancel = false;
    uir_text text;
    uir_text_init(&text, &w->allocator);
    w->identity.cancel = &cancel;
    assert_int_equal(uir_identity_content(&w->identity, "a", &text), UIR_STATUS_OK);
    text.length = 0;
    cancel = true;
    assert_int_equal(uir_identity_content(&w->identity, "a", &text), UIR_STATUS_CANCELLED);
    assert_int_equal(uir_identity_content(&w->identity, NULL, &text), UIR_STATUS_CANCELLED);
    assert_int_equal(uir_identity_content_of(&w->identity, "a", "a", 1, &text), UIR_STATUS_CANCELLED);
    assert_int_equal(text.length, 0);
    uir_text_deinit(&text);
}

/* Lines hold while each is what would be written now, and all of it. */
static void lines_hold_until_something_changes(void **state) {
    world *w = *state;
    uir_identity_describe *const ways[] = {uir_identity_stamp, uir_identity_content};
    static const char *const names[] = {"a", "b c  d", "m.onnx"};
    w->identity.began_s = time(NULL) + 1000;
    for (int way = 0; way < 2; way++) {
        uir_text lines;
        uir_text_init(&lines, &w->allocator);
        assert_true(uir_identity_holds(&w->identity, ways[way], "", 0));
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ways[way](&w->identity, names[i], &lines), UIR_STATUS_OK);
            assert_true(uir_identity_holds(&w->identity, ways[way], lines.data, lines.length));
            assert_false(uir_identity_holds(&w->identity, ways[1 - way], lines.data, lines.length));
        }
        for (size_t size = 0; size < lines.length; size++) { /* what is cut off between lines is less, not wrong */
            bool whole = size == 0 || lines.data[size - 1] == '\n';
            assert_int_equal(uir_identity_holds(&w->identity, ways[way], lines.data, size), whole);
        }
        for (size_t at = 0; at < lines.length; at++) {
            lines.data[at] ^= 1;
            assert_false(uir_identity_holds(&w->identity, ways[way], lines.data, lines.length));
            lines.data[at] ^= 1;
        }
        write_beside(w, "m.onnx", way ? "m.ONNX" : "m.onnx longer");
        assert_false(uir_identity_holds(&w->identity, ways[way], lines.data, lines.length));
        lines.length = 0; /* of the model's own file, which has no name there */
        assert_int_equal(ways[way](&w->identity, NULL, &lines), UIR_STATUS_OK);
        assert_false(uir_identity_holds(&w->identity, ways[way], lines.data, lines.length));
        uir_text_deinit(&lines);
    }
}

/* The folder is held while it is needed, by this process alone. */
static void folders_are_opened_and_closed(void **state) {
    world *w = *state;
    uir_identity identity;
    char path[200];
    for (int i = 0; i < 2; i++) { /* no folder there; a file in its place */
        snprintf(path, sizeof path, "%s/%s/m.onnx", w->folder, i ? "a" : "nothing");
        assert_int_equal(uir_identity_init(&identity, &w->allocator, path, NULL), UIR_STATUS_NOT_FOUND);
        uir_identity_deinit(&identity);
    }
    assert_int_equal(uir_identity_init(&identity, &w->allocator, w->model, NULL), UIR_STATUS_OK);
    int folder = identity.folders.rows[0].descriptor;
    assert_true(folder >= 0);
    assert_int_equal(fcntl(folder, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    uir_identity_deinit(&identity);
    assert_int_equal(fcntl(folder, F_GETFD), -1);
    assert_int_equal(identity.folders.count, 0);
    int again = open(w->model, O_RDONLY);
    assert_int_equal(again, folder); /* that descriptor is another's now */
    uir_identity_deinit(&identity);
    assert_true(fcntl(again, F_GETFD) >= 0);
    close(again);
    /* The lowest descriptor is one as well. */
    int kept = dup(0);
    close(0);
    assert_int_equal(uir_identity_init(&identity, &w->allocator, w->model, NULL), UIR_STATUS_OK);
    int lowest = identity.folders.rows[0].descriptor;
    uir_identity_deinit(&identity);
    bool closed = fcntl(0, F_GETFD) == -1;
    if (kept >= 0) dup2(kept, 0), close(kept);
    assert_int_equal(lowest, 0);
    assert_true(closed);
}

static void a_build_is_one_line(void **state) {
    world *w = *state;
    uir_text text;
    char start[64];
    uir_text_init(&text, &w->allocator);
    assert_int_equal(uir_identity_build(&text), UIR_STATUS_OK);
    snprintf(start, sizeof start, "uir %s ", uir_version());
    assert_memory_equal(text.data, start, strlen(start));
    assert_true(text.length > strlen(start) + 10);
    assert_ptr_equal(strchr(text.data, '\n'), text.data + text.length - 1);
    /* The code lies in this program. */
    struct stat about;
    char inode[32];
    assert_int_equal(stat("/proc/self/exe", &about), 0);
    snprintf(inode, sizeof inode, " %llx %llx ", (unsigned long long)about.st_ino, (unsigned long long)about.st_size);
    assert_non_null(strstr(text.data, inode));
    uir_text_deinit(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stamps_are_of_what_has_settled, begin, end),
        cmocka_unit_test_setup_teardown(stamps_tell_changes, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_file_has_no_description, begin, end),
        cmocka_unit_test_setup_teardown(links_are_followed, begin, end),
        cmocka_unit_test_setup_teardown(contents_are_told_by_their_bytes, begin, end),
        cmocka_unit_test_setup_teardown(hashing_can_be_cancelled, begin, end),
        cmocka_unit_test_setup_teardown(lines_hold_until_something_changes, begin, end),
        cmocka_unit_test_setup_teardown(folders_are_opened_and_closed, begin, end),
        cmocka_unit_test_setup_teardown(a_build_is_one_line, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
