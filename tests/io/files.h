/* What the tests of value files share: the file under test, .npy files made by hand, memory with fences around it. */
#ifndef UIR_TESTS_IO_FILES_H
#define UIR_TESTS_IO_FILES_H

#include "tests/base/support.h"
#include "uir/uir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A test names the ending of its file, which decides how the file is read. */
#ifndef UIR_TEST_ENDING
#error "UIR_TEST_ENDING is not set"
#endif

static char path[64]; /* of the file under test */

static inline int begin(void **state) {
    uir_context *context;
    uir_status status = uir_context_create(NULL, &context);
    snprintf(path, sizeof path, "/tmp/uir_files_%ld.%s", (long)getpid(), UIR_TEST_ENDING);
    *state = context;
    return status;
}

static inline int end(void **state) {
    unlink(path);
    uir_context_destroy(*state);
    return 0;
}

static inline void write_file(const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* An .npy file whose header is of format `version`: a length of two bytes in the first, of four after it. */
static inline size_t make_npy(uint8_t *out, int version, const char *dict, const void *data, size_t size) {
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < start; i++) out[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(out + start, dict, length);
    memcpy(out + start + length, data, size);
    return start + length + size;
}

static inline uir_value *load(uir_context *context, const char *member) {
    uir_value *value;
    assert_int_equal(uir_value_load_file(context, path, member, UIR_VALUE_TENSOR, &value), UIR_STATUS_OK);
    return value;
}

#define DICT(descr, fortran, shape) "{'descr': '" descr "', 'fortran_order': " fortran ", 'shape': " shape "}"

/* Blocks with something behind them that must stay; fails one allocation. */
typedef struct guard {
    unsigned long asked, fail_at;
    long long live;
} guard;
enum { FENCE = 32 };

static inline void *resize_fenced(void *user, void *pointer, size_t old_size, size_t new_size) {
    guard *g = user;
    uint8_t *block = NULL;
    for (size_t i = 0; pointer && i < FENCE; i++) assert_int_equal(((uint8_t *)pointer)[old_size + i], 0xfe);
    if (new_size) {
        if (++g->asked == g->fail_at || posix_memalign((void **)&block, 64, new_size + FENCE) != 0) return NULL;
        if (pointer) memcpy(block, pointer, old_size < new_size ? old_size : new_size);
        memset(block + new_size, 0xfe, FENCE);
    }
    free(pointer);
    g->live += (long long)new_size - (long long)(pointer ? old_size : 0);
    return block;
}

/* Memory up to the end of a page; the next one cannot be read. */
typedef struct edge {
    uint8_t *pages;
    size_t size; /* of what can be read */
} edge;

static inline edge edge_new(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    edge e = {mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), whole};
    assert_true(e.pages != MAP_FAILED);
    assert_int_equal(mprotect(e.pages + whole, page, PROT_NONE), 0);
    return e;
}
static inline void edge_free(edge e) {
    munmap(e.pages, e.size + (size_t)sysconf(_SC_PAGESIZE));
}
static inline const uint8_t *edge_put(edge e, const uint8_t *bytes, size_t size) {
    memcpy(e.pages + e.size - size, bytes, size);
    return e.pages + e.size - size;
}

#endif
