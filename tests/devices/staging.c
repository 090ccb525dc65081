/* The host's memory that the device copies: `uir-staging [--chip CHIP:] [--dim N | --data FOLDER] PACKAGE...`.
 *
 * In: packages for the null device. Each runs with its inputs in page-locked memory, then in any other, by three seeds;
 * then by a driver that has no page-locked memory, or none left. Out: a line per package with its copies, then `N
 * passed, M failed, S skipped`: a steady run copies nothing from or to other memory but what the caller has bound;
 * without page-locked memory the results are the same bits. Page-locked bytes are the host's: its budget counts them,
 * the device's does not. */
#include "tests/devices/support.h"

#include "backends/null/driver/null.h"
#include "base/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 3, TURNS = 4 };

static int passed, failed;
static const char *chip = "";
static uint64_t copies;

static void tell(bool fine, const char *path, uint32_t seed, const char *what) {
    passed += fine;
    failed += !fine;
    if (!fine) printf("FAILED: %s, seed %u: %s\n", path, (unsigned)seed, what);
}

/* ---- a driver without page-locked memory ---- */
static uir_status refusal; /* OK: it has some */

static uir_status allocate(uir_driver_device *d, uir_memory_kind kind, uint64_t size, uir_diagnostics *diagnostics,
                           uir_driver_buffer **out_buffer, char **out_host) {
    if (kind != UIR_MEMORY_STAGING || refusal == UIR_STATUS_OK)
        return uir_null_driver.allocate(d, kind, size, diagnostics, out_buffer, out_host);
    *out_buffer = NULL;
    *out_host = NULL;
    return refusal;
}

/* ---- inputs ---- */
typedef struct input {
    int64_t shape[DEVICES_RANK];
    uir_driver_buffer *buffer; /* NULL: ordinary memory */
    char *data;
} input;

static void drop_input(input *in, uir_driver_device *device) {
    if (in->buffer)
        uir_null_driver.release(device, in->buffer);
    else
        free(in->data);
    *in = (input){.buffer = NULL};
}

static void make_input(input *in, const devices_source *source, const uir_package *package, uint32_t index,
                       uint32_t turn, uir_driver_device *device, bool is_locked) {
    size_t size;
    drop_input(in, device);
    unsigned char *data = devices_make_input(source, package, index, turn, in->shape, &size);
    in->data = (char *)data;
    if (!is_locked) return;
    if (uir_null_driver.allocate(device, UIR_MEMORY_STAGING, size + 1, NULL, &in->buffer, &in->data) != UIR_STATUS_OK)
        exit(2);
    memcpy(in->data, data, size);
    free(data);
}

/* ---- runs ---- */
typedef struct outcome {
    uir_status status;
    uint64_t hash;                 /* of the outputs of all turns */
    uir_null_copies first, steady; /* of the first run with the constants; of the last */
    uint32_t inputs;
    uir_runtime_statistics statistics;
    uint64_t used, peak; /* of the host's budget: while the runtime is there, and at most */
    uint64_t left;       /* afterwards */
} outcome;

static uir_status run_turn(uir_runtime *r, const uir_package *package, const input *inputs, uint64_t *hash) {
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < uir_package_input_count(package) && status == UIR_STATUS_OK; i++) {
        uir_package_port port = uir_package_get_input(package, i);
        status = uir_runtime_set_input(r, i, port.dtype, port.rank, inputs[i].shape, inputs[i].data);
    }
    if (status == UIR_STATUS_OK) status = uir_runtime_run(r);
    for (uint32_t k = 0; k < uir_package_output_count(package) && status == UIR_STATUS_OK; k++) {
        uir_runtime_output out;
        status = uir_runtime_get_output(r, k, &out);
        for (size_t i = 0; status == UIR_STATUS_OK && i < out.size; i++)
            *hash = *hash * 31 + ((const unsigned char *)out.data)[i];
    }
    return status;
}

static outcome live(const void *bytes, size_t size, uint32_t seed, const devices_source *source, bool is_locked) {
    static uir_driver driver;
    const uir_allocator system = uir_allocator_system();
    const uir_runtime_options one = {.threads = 1};
    outcome o = {.status = UIR_STATUS_OK};
    uir_budget budget;
    uir_diagnostics said;
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    input inputs[DEVICES_PORTS] = {0};
    uir_diagnostics_init(&said, &system);
    uir_budget_init(&budget, &system, NULL);
    const uir_allocator counted = uir_budget_allocator(&budget);
    uir_package_options options = devices_open_chip(&system, chip, seed);
    driver = uir_null_driver;
    driver.allocate = allocate;
    options.driver = &driver;
    o.status = uir_package_open(bytes, size, &options, &system, &said, &package);
    if (o.status == UIR_STATUS_OK) o.status = uir_runtime_create(package, &one, &counted, &said, &r);
    if (o.status == UIR_STATUS_OK) o.inputs = uir_package_input_count(package);
    for (uint32_t turn = 0; turn < TURNS && o.status == UIR_STATUS_OK; turn++) {
        for (uint32_t i = 0; i < o.inputs && i < DEVICES_PORTS; i++)
            make_input(&inputs[i], source, package, i, turn, options.device, is_locked);
        const uir_null_copies before = uir_null_count_copies(options.device);
        o.status = run_turn(r, package, inputs, &o.hash);
        const uir_null_copies after = uir_null_count_copies(options.device);
        o.steady = (uir_null_copies){after.locked - before.locked, after.pageable - before.pageable};
        if (!turn) o.first = o.steady;
    }
    if (o.status != UIR_STATUS_OK) printf("FAILED: %s\n", said.first ? said.first->message : uir_status_text(o.status));
    if (r) o.statistics = uir_runtime_get_statistics(r);
    o.used = budget.used;
    o.peak = budget.peak;
    uir_runtime_destroy(r);
    o.left = budget.used;
    uir_package_close(package);
    for (uint32_t i = 0; i < DEVICES_PORTS; i++) drop_input(&inputs[i], options.device);
    uir_null_driver.close(options.device);
    uir_budget_deinit(&budget);
    uir_diagnostics_deinit(&said);
    return o;
}

static void check(const char *path, const devices_source *source) {
    size_t size;
    void *bytes = devices_read_file(path, &size);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        refusal = UIR_STATUS_OK;
        const outcome locked = live(bytes, size, seed, source, true), other = live(bytes, size, seed, source, false);
        refusal = seed % 2 ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OUT_OF_MEMORY;
        const outcome without = live(bytes, size, seed, source, false);
        tell(locked.status == UIR_STATUS_OK && other.status == UIR_STATUS_OK && without.status == UIR_STATUS_OK, path,
             seed, "it does not run");
        tell(locked.hash == other.hash && other.hash == without.hash, path, seed, "other bits");
        tell(locked.steady.pageable == 0, path, seed, "a steady run copies memory that is not page-locked");
        tell(locked.first.pageable == 0, path, seed, "the first run copies memory that is not page-locked");
        tell(without.steady.locked == 0, path, seed, "page-locked memory that was refused");
        tell(other.steady.locked + other.steady.pageable == locked.steady.locked &&
                 without.steady.pageable == locked.steady.locked,
             path, seed, "other copies");
        tell(locked.statistics.device_bytes == without.statistics.device_bytes &&
                 locked.statistics.arena_bytes == without.statistics.arena_bytes,
             path, seed, "other bytes of the device, or of the host");
        tell(locked.used == without.used && locked.used >= locked.statistics.arena_bytes && !locked.left, path, seed,
             "the budget counts other bytes");
        tell(locked.peak >= without.peak, path, seed, "the budget does not count what the constants pass through");
        copies += locked.steady.locked;
        if (!seed)
            printf("%s: %llu copies of page-locked memory and %llu of the caller's in a steady run\n", path,
                   (unsigned long long)other.steady.locked, (unsigned long long)other.steady.pageable);
    }
    free(bytes);
}

int main(int argc, char **argv) {
    devices_source source = {.dim = 3};
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--dim"))
            source = (devices_source){.dim = atoi(argv[++i])};
        else if (i + 1 < argc && !strcmp(argv[i], "--data"))
            source.folder = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--chip"))
            chip = argv[++i];
        else
            check(argv[i], &source);
    }
    tell(copies > 0, "all packages", 0, "nothing is copied");
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0 || passed == 0;
}
