/* Inputs and outputs in memory of the device: `uir-bound [--dim N] PACKAGE...`.
 *
 * In: packages for the null device. Each runs with all of its inputs and outputs bound in the host's memory, then in
 * the device's, by six seeds, and with every other one of them there. Out: `N passed, M failed, S skipped`: the results
 * are the same bits, and only what the host itself reads of what is bound on the device crosses the bus. */
#include "tests/devices/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 6, TURNS = 3 };

typedef struct port {
    unsigned char *host;
    size_t size;
    int64_t shape[DEVICES_RANK];
    uir_driver_buffer *buffer;
} port;

typedef struct bench {
    uir_allocator allocator;
    uir_package_options options;
    uir_package *package;
    uir_runtime *runtime;
    uir_driver_queue *queue;
    uir_diagnostics said;
    port inputs[DEVICES_PORTS], outputs[DEVICES_PORTS];
    uint32_t input_count, output_count;
    uir_runtime_statistics statistics;
} bench;

static void want(const bench *b, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    printf("FAILED: %s: %s\n0 passed, 1 failed, 0 skipped\n", what, b->said.first ? b->said.first->message : "");
    exit(1);
}

/* Copies between a port's host memory and the device's. */
static void move(bench *b, const port *p, bool to_device) {
    const uir_region host = {.size = p->size, .host = (char *)p->host}, device = {.buffer = p->buffer, .size = p->size};
    const uir_driver_copy copy = {
        to_device ? host : device, to_device ? device : host, 1, p->size, p->size, p->size, 0};
    uir_driver_failure failure;
    uint64_t point;
    if (!p->size) return;
    want(b, b->options.driver->copy(b->queue, &copy, &b->said), "copy");
    want(b, b->options.driver->mark(b->queue, &b->said, &point), "mark");
    want(b, b->options.driver->wait(b->queue, point, NULL, &failure), "wait");
}

static void make_buffer(bench *b, port *p) {
    char *host;
    want(b, b->options.driver->allocate(b->options.device, UIR_MEMORY_DEVICE, p->size + 1, &b->said, &p->buffer, &host),
         "allocate");
}

static void open_bench(bench *b, const void *bytes, size_t size, uint32_t seed, int64_t dim) {
    const uir_runtime_options options = {.threads = 1};
    memset(b, 0, sizeof *b);
    b->allocator = uir_allocator_system();
    uir_diagnostics_init(&b->said, &b->allocator);
    b->options = devices_open(&b->allocator, seed);
    want(b, uir_package_open(bytes, size, &b->options, &b->allocator, &b->said, &b->package), "open");
    want(b, uir_runtime_create(b->package, &options, &b->allocator, &b->said, &b->runtime), "create");
    want(b, b->options.driver->create_queue(b->options.device, 4, NULL, &b->said, &b->queue), "queue");
    b->input_count = uir_package_input_count(b->package);
    b->output_count = uir_package_output_count(b->package);
    for (uint32_t i = 0; i < b->input_count && i < DEVICES_PORTS; i++) {
        uir_package_port given = uir_package_get_input(b->package, i);
        b->inputs[i].size = devices_get_shape(&given, dim, b->inputs[i].shape);
        b->inputs[i].host = calloc(1, b->inputs[i].size + 1);
        make_buffer(b, &b->inputs[i]);
    }
}

static void close_bench(bench *b) {
    uir_runtime_destroy(b->runtime);
    uir_package_close(b->package);
    b->options.driver->destroy_queue(b->queue);
    for (uint32_t i = 0; i < DEVICES_PORTS; i++) {
        if (b->inputs[i].buffer) b->options.driver->release(b->options.device, b->inputs[i].buffer);
        if (b->outputs[i].buffer) b->options.driver->release(b->options.device, b->outputs[i].buffer);
        free(b->inputs[i].host);
        free(b->outputs[i].host);
    }
    b->options.driver->close(b->options.device);
    uir_diagnostics_deinit(&b->said);
}

/* Buffers of the sizes that a first run finds. */
static void make_outputs(bench *b) {
    for (uint32_t k = 0; k < b->output_count && k < DEVICES_PORTS; k++) {
        uir_runtime_output out;
        want(b, uir_runtime_get_output(b->runtime, k, &out), "output");
        b->outputs[k].size = out.size;
        b->outputs[k].host = calloc(1, out.size + 1);
        make_buffer(b, &b->outputs[k]);
    }
}

static bool is_on_device(uint32_t index, uint32_t which) {
    return which == 1 || (which == 2 && index % 2);
}

/* `which`: 0 none of them on the device, 1 all, 2 every other one. */
static uint64_t run(bench *b, uint32_t turn, uint32_t which, bool binds_outputs) {
    uint64_t hash = turn;
    for (uint32_t i = 0; i < b->input_count; i++) {
        port *p = &b->inputs[i];
        uir_package_port given = uir_package_get_input(b->package, i);
        bool there = is_on_device(i, which);
        const uir_region at = {
            .buffer = there ? p->buffer : NULL, .size = p->size, .host = there ? NULL : (char *)p->host};
        devices_fill(given.dtype, p->host, p->size, turn);
        if (there) move(b, p, true);
        want(b, uir_runtime_set_input_region(b->runtime, i, given.dtype, given.rank, p->shape, NULL, &at), "input");
    }
    for (uint32_t k = 0; k < b->output_count && binds_outputs; k++) {
        port *p = &b->outputs[k];
        bool there = is_on_device(k, which);
        const uir_region at = {
            .buffer = there ? p->buffer : NULL, .size = p->size, .host = there ? NULL : (char *)p->host};
        want(b, uir_runtime_bind_output_region(b->runtime, k, NULL, &at), "binding an output");
    }
    want(b, uir_runtime_run(b->runtime), "run");
    b->statistics = uir_runtime_get_statistics(b->runtime);
    for (uint32_t k = 0; k < b->output_count && binds_outputs; k++) {
        if (is_on_device(k, which)) move(b, &b->outputs[k], false);
        for (size_t i = 0; i < b->outputs[k].size; i++) hash = hash * 31 + b->outputs[k].host[i];
    }
    return hash;
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    int64_t dim = 3;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--dim")) {
            dim = atoi(argv[++i]);
            continue;
        }
        size_t size;
        void *bytes = devices_read_file(argv[i], &size);
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            bench b;
            open_bench(&b, bytes, size, seed, dim);
            (void)run(&b, 0, 0, false);
            make_outputs(&b);
            for (uint32_t turn = 0; turn < TURNS; turn++) {
                uint64_t expected = run(&b, turn, 0, true),
                         all = b.statistics.bytes_to_device + b.statistics.bytes_from_device;
                for (uint32_t which = 1; which < 3; which++) {
                    uint64_t got = run(&b, turn, which, true),
                             crossed = b.statistics.bytes_to_device + b.statistics.bytes_from_device;
                    bool good = got == expected && (which == 2 ? crossed <= all + 4096 : crossed <= 4096);
                    passed += good;
                    failed += !good;
                    if (!good)
                        printf("FAILED: %s, seed %u, turn %u, way %u: %s, %llu bytes over the bus of %llu\n", argv[i],
                               seed, turn, which, got == expected ? "same bits" : "other bits",
                               (unsigned long long)crossed, (unsigned long long)all);
                }
            }
            close_bench(&b);
        }
        free(bytes);
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0 || passed == 0;
}
