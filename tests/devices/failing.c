/* A driver that fails: `uir-failing [--dim N] [--every N] PACKAGE...`.
 *
 * In: packages for the null device. A driver in front of it counts the calls of a load and of two runs, and refuses
 * each in turn (with --every, each N-th); once more with the device lost at that moment. Out: `N passed, M failed, S
 * skipped`: the refusal's status comes out with a message (of staging memory: the runs do without), nothing of the
 * device is kept, and a new session then gives the right bits; in a lost session each later run says so. */
#include "tests/devices/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 2 };

static const uir_driver *real;
static uint64_t calls, refused; /* the call that is refused, from 1; 0: none */
static bool loses, is_lost;
static int64_t buffers, codes, queues, launches; /* there now */
static uir_status refusal;

/* Whether this call fails; once the device is lost, all do. */
static bool fails(uir_status status, uir_diagnostics *diagnostics, const char *what) {
    calls++;
    if (calls == refused && loses) is_lost = true;
    if (calls != refused && !is_lost) return false;
    if (calls == refused) refusal = status;
    if (status != UIR_STATUS_OUT_OF_MEMORY) uir_error(diagnostics, status, NULL, "refused: %s", what);
    return true;
}

static uir_status allocate(uir_driver_device *d, uir_memory_kind kind, uint64_t size, uir_diagnostics *diagnostics,
                           uir_driver_buffer **out_buffer, char **out_host) {
    *out_buffer = NULL;
    *out_host = NULL;
    if (fails(UIR_STATUS_OUT_OF_MEMORY, diagnostics, "allocate")) {
        /* Ordinary memory takes the place of staging memory: nothing fails, unless the device was lost. */
        if (kind == UIR_MEMORY_STAGING && calls == refused) refusal = loses ? UIR_STATUS_DEVICE_FAILED : UIR_STATUS_OK;
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_status status = real->allocate(d, kind, size, diagnostics, out_buffer, out_host);
    buffers += status == UIR_STATUS_OK;
    return status;
}
static void release(uir_driver_device *d, uir_driver_buffer *buffer) {
    buffers--;
    real->release(d, buffer);
}
static uir_status load(uir_driver_device *d, const uir_driver_image *image, uir_diagnostics *diagnostics,
                       uir_driver_code **out_code) {
    *out_code = NULL;
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "load")) return UIR_STATUS_DEVICE_FAILED;
    uir_status status = real->load(d, image, diagnostics, out_code);
    codes += status == UIR_STATUS_OK;
    return status;
}
static void unload(uir_driver_device *d, uir_driver_code *code) {
    codes--;
    real->unload(d, code);
}
static uir_status find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                       const uir_driver_kernel **out_kernel) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "find")) return UIR_STATUS_DEVICE_FAILED;
    return real->find(code, entry, diagnostics, out_kernel);
}
static uir_status prepare(uir_driver_device *d, uir_driver_launch *launch, uir_diagnostics *diagnostics) {
    launch->is_prepared = false;
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "prepare")) return UIR_STATUS_DEVICE_FAILED;
    uir_status status = real->prepare(d, launch, diagnostics);
    launches += status == UIR_STATUS_OK;
    return status;
}
static void retire(uir_driver_device *d, uir_driver_launch *launch) {
    launches--;
    real->retire(d, launch);
}
static uir_status create_queue(uir_driver_device *d, uint32_t points, void *native, uir_diagnostics *diagnostics,
                               uir_driver_queue **out_queue) {
    *out_queue = NULL;
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "create_queue")) return UIR_STATUS_DEVICE_FAILED;
    uir_status status = real->create_queue(d, points, native, diagnostics, out_queue);
    queues += status == UIR_STATUS_OK;
    return status;
}
static void destroy_queue(uir_driver_queue *queue) {
    queues--;
    real->destroy_queue(queue);
}
static uir_status launch(uir_driver_queue *queue, const uir_driver_launch *l, uint32_t phase, uint32_t phase_count,
                         uir_diagnostics *diagnostics) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "launch")) return UIR_STATUS_DEVICE_FAILED;
    return real->launch(queue, l, phase, phase_count, diagnostics);
}
static uir_status copy(uir_driver_queue *queue, const uir_driver_copy *c, uir_diagnostics *diagnostics) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "copy")) return UIR_STATUS_DEVICE_FAILED;
    return real->copy(queue, c, diagnostics);
}
static uir_status fill(uir_driver_queue *queue, const uir_region *region, unsigned char value,
                       uir_diagnostics *diagnostics) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "fill")) return UIR_STATUS_DEVICE_FAILED;
    return real->fill(queue, region, value, diagnostics);
}
static uir_status mark(uir_driver_queue *queue, uir_diagnostics *diagnostics, uint64_t *out_point) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "mark")) return UIR_STATUS_DEVICE_FAILED;
    return real->mark(queue, diagnostics, out_point);
}
static uir_status follow(uir_driver_queue *queue, uir_driver_queue *other, uint64_t point,
                         uir_diagnostics *diagnostics) {
    if (fails(UIR_STATUS_DEVICE_FAILED, diagnostics, "follow")) return UIR_STATUS_DEVICE_FAILED;
    return real->follow(queue, other, point, diagnostics);
}
static uir_status wait(uir_driver_queue *queue, uint64_t point, const volatile bool *cancel,
                       uir_driver_failure *out_failure) {
    if (fails(UIR_STATUS_DEVICE_FAILED, NULL, "wait")) {
        *out_failure = (uir_driver_failure){.step = UINT32_MAX, .is_lost = is_lost};
        snprintf(out_failure->text, sizeof out_failure->text, "refused: wait");
        return UIR_STATUS_DEVICE_FAILED;
    }
    return real->wait(queue, point, cancel, out_failure);
}

/* ---- a life ---- */
static uir_driver failing;

typedef struct life {
    uir_status status;     /* of the first step that failed */
    bool has_message, ran; /* a run was reached */
    uir_status later;      /* of one more run of the same session */
    uint64_t hash;
} life;

static life live(const void *bytes, size_t size, int64_t dim) {
    const devices_source source = {.dim = dim};
    const uir_allocator allocator = uir_allocator_system();
    const uir_runtime_options one = {.threads = 1};
    uir_package_options options = devices_open(&allocator, 3);
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    uir_diagnostics said;
    life l = {.later = UIR_STATUS_OK};
    uir_diagnostics_init(&said, &allocator);
    options.driver = &failing;
    l.status = uir_package_open(bytes, size, &options, &allocator, &said, &package);
    if (l.status == UIR_STATUS_OK) l.status = uir_runtime_create(package, &one, &allocator, &said, &r);
    for (int turn = 0; turn < RUNS && l.status == UIR_STATUS_OK; turn++) {
        l.ran = true;
        l.status = devices_run(r, package, &source, 0, &l.hash);
    }
    l.has_message = said.first != NULL;
    if (l.ran && l.status != UIR_STATUS_OK) {
        uint64_t hash = 0;
        uir_diagnostics_clear(&said);
        l.later = devices_run(r, package, &source, 0, &hash);
    }
    uir_runtime_destroy(r);
    uir_package_close(package);
    real->close(options.device);
    uir_diagnostics_deinit(&said);
    return l;
}

/* ---- each call in turn ---- */
static int passed, failed;

static void check(const char *path, int64_t dim, uint64_t every) {
    size_t size;
    void *bytes = devices_read_file(path, &size);
    refused = calls = 0;
    is_lost = loses = false;
    const life whole = live(bytes, size, dim);
    uint64_t all = calls;
    printf("%s: %llu calls\n", path, (unsigned long long)all);
    if (whole.status != UIR_STATUS_OK) failed++, printf("FAILED: %s does not run\n", path);
    for (int way = 0; way < 2; way++) {
        for (uint64_t n = 1; n <= all && whole.status == UIR_STATUS_OK; n += every) {
            refused = n;
            calls = 0;
            loses = way == 1;
            is_lost = false;
            refusal = UIR_STATUS_OK;
            const life l = live(bytes, size, dim);
            bool kept = buffers || codes || queues || launches;
            refused = calls = 0;
            is_lost = loses = false;
            const life next = live(bytes, size, dim);
            /* Of a lost device a later call may be the one that a run ends with. */
            bool good = (l.status == refusal || (way && l.status == UIR_STATUS_OUT_OF_MEMORY)) &&
                        (l.has_message || refusal == UIR_STATUS_OUT_OF_MEMORY || refusal == UIR_STATUS_OK) && !kept &&
                        (l.status != UIR_STATUS_OK || l.hash == whole.hash) && next.status == UIR_STATUS_OK &&
                        next.hash == whole.hash && (!l.ran || (way == 0) == (l.later == UIR_STATUS_OK));
            passed += good;
            failed += !good;
            if (!good)
                printf("FAILED: %s, call %llu, %s: status %d of %d, %s message; %lld buffers, %lld codes, %lld queues, "
                       "%lld "
                       "launches kept; later %d, next %d\n",
                       path, (unsigned long long)n, way ? "lost" : "refused", (int)l.status, (int)refusal,
                       l.has_message ? "a" : "no", (long long)buffers, (long long)codes, (long long)queues,
                       (long long)launches, (int)l.later, (int)next.status);
            buffers = codes = queues = launches = 0;
        }
    }
    free(bytes);
}

int main(int argc, char **argv) {
    const uir_allocator allocator = uir_allocator_system();
    int64_t dim = 3;
    uint64_t every = 1;
    uir_package_options options = devices_open(&allocator, 0);
    real = options.driver;
    real->close(options.device);
    failing = *real;
    failing.allocate = allocate, failing.release = release, failing.load = load, failing.unload = unload;
    failing.find = find, failing.prepare = prepare, failing.retire = retire, failing.create_queue = create_queue;
    failing.destroy_queue = destroy_queue, failing.launch = launch, failing.copy = copy, failing.fill = fill;
    failing.mark = mark, failing.follow = follow, failing.wait = wait;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--dim"))
            dim = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--every"))
            every = (uint64_t)atoi(argv[++i]);
        else
            check(argv[i], dim, every ? every : 1);
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0 || passed == 0;
}
