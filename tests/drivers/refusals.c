/* Each call of the OpenCL library refused in turn, in a device's whole life: a status with a message, nothing kept, and
 * the next device works.
 *
 *   test_drivers_refusals STAND_IN.so */
#include "tests/drivers/stand_in.h"
#include "tests/drivers/suite.h"

#include "backends/opencl/driver/library.h"
#include "backends/opencl/driver/opencl.h"
#include "base/allocator.h"

#include <stdio.h>
#include <string.h>

static const char source[] =
    "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void"
    " half_phase0(__global uchar *p, ulong o, __global const long *s, long begin, long end, __global uchar *scratch,"
    " ulong scratch_size, __local uchar *shared) {"
    " long g = (long)get_group_id(0), n = (long)get_num_groups(0), count = end - begin;"
    " __global float *mine = (__global float *)(scratch + (ulong)g * scratch_size);"
    " for (long i = begin + count * g / n; i < begin + count * (g + 1) / n; i++) {"
    "   mine[0] = 0.5f; ((__global float *)(p + o))[i] *= mine[0]; } }";
enum { N = 16, ROWS = 4, SCRATCH = 4 };
static const char *stand_in_path;
static stand_in_refuse *refuse;
static stand_in_count *count_calls;
static stand_in_alive *get_alive;

/* A life: what is made, in order, until the first failure. */
typedef struct life {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_driver_failure failure;
    uir_driver_device *device;
    uir_driver_code *code, *again;
    uir_driver_queue *queues[2];
    uir_driver_buffer *buffer, *imported, *staging, *workspace;
    uir_driver_launch launch;
    uir_text bytes, format;
    char state[64];
    float x[N], y[N];
    uint64_t points;
} life;

static const uir_driver *const driver = &uir_opencl_driver;

static uir_status begin_life(life *l, const uir_driver_kernel **out_kernel) {
    uir_driver_options options = {.allocator = &l->allocator, .library = stand_in_path};
    uir_driver_image image = {"opencl-c", source, sizeof source - 1};
    static const bool writable[] = {true};
    uir_kernel_entry entry = {.symbol = "half", .pointer_count = 1, .phase_count = 1, .writable = writable};
    char *host;
    uint32_t count;
    UIR_TRY(driver->count(&options, &l->diagnostics, &count));
    UIR_TRY(driver->open(&options, &l->diagnostics, &l->device));
    UIR_TRY(driver->load(l->device, &image, &l->diagnostics, &l->code));
    UIR_TRY(driver->save(l->code, &l->diagnostics, &l->bytes, &l->format));
    uir_driver_image saved = {l->format.data, l->bytes.data, l->bytes.length};
    UIR_TRY(driver->load(l->device, &saved, &l->diagnostics, &l->again));
    UIR_TRY(driver->find(l->again, &entry, &l->diagnostics, out_kernel));
    UIR_TRY(driver->allocate(l->device, UIR_MEMORY_DEVICE, sizeof l->x, &l->diagnostics, &l->buffer, &host));
    UIR_TRY(driver->allocate(l->device, UIR_MEMORY_STAGING, sizeof l->x, &l->diagnostics, &l->staging, &host));
    UIR_TRY(driver->import(l->device, driver->get_native(l->buffer), 4, &l->diagnostics, &l->imported));
    UIR_TRY(driver->create_queue(l->device, 4, NULL, &l->diagnostics, &l->queues[0]));
    return driver->create_queue(l->device, 4, NULL, &l->diagnostics, &l->queues[1]);
}

/* Copies of every kind: to and from the host, within the device, rows, staging. */
static uir_status copy_all(life *l, uir_region device) {
    const uir_region host = host_region(l->x, sizeof l->x), back = host_region(l->y, sizeof l->y);
    const uir_region staging = {.buffer = l->staging, .size = sizeof l->x};
    const uint64_t size = sizeof l->x, row = size / ROWS;
    const uir_driver_copy copies[] = {
        {.from = host, .to = device, .rows = 1, .row_bytes = size},
        {.from = host, .to = device, .rows = ROWS, .row_bytes = row, .from_pitch = row, .to_pitch = row},
        {.from = device, .to = staging, .rows = 1, .row_bytes = size},
        {.from = staging, .to = back, .rows = 1, .row_bytes = size},
        {.from = part_of(device, 0, row), .to = part_of(device, row, row), .rows = 1, .row_bytes = row},
        {.from = part_of(device, 0, 16),
         .to = part_of(device, 32, 16),
         .rows = 2,
         .row_bytes = 4,
         .from_pitch = 8,
         .to_pitch = 8},
        {.from = host, .to = device, .rows = 1, .row_bytes = size},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        UIR_TRY(driver->copy(l->queues[0], &copies[i], &l->diagnostics));
    return UIR_STATUS_OK;
}

static uir_status run_life(life *l) {
    static const int64_t indices[] = {N}, begins[] = {0}, no_symbols[] = {0};
    static const uint64_t needed[] = {sizeof l->x};
    volatile bool never = false;
    const uir_driver_kernel *kernel = NULL;
    uint64_t point;
    char *host;
    UIR_TRY(begin_life(l, &kernel));
    const uir_region device = {.buffer = l->buffer, .size = sizeof l->x}, back = host_region(l->y, sizeof l->y);
    l->launch = (uir_driver_launch){.kernel = kernel,
                                    .symbols = no_symbols,
                                    .pointer_count = 1,
                                    .phase_count = 1,
                                    .needed = needed,
                                    .pointers = &device,
                                    .indices = indices,
                                    .begins = begins,
                                    .scratch_size = SCRATCH,
                                    .state = l->state};
    UIR_TRY(driver->prepare(l->device, &l->launch, &l->diagnostics));
    UIR_TRY(driver->allocate(l->device, UIR_MEMORY_DEVICE, l->launch.workspace_size, &l->diagnostics, &l->workspace,
                             &host));
    l->launch.workspace = (uir_region){.buffer = l->workspace, .size = l->launch.workspace_size};
    UIR_TRY(copy_all(l, device));
    for (int round = 0; round < 2; round++) UIR_TRY(driver->launch(l->queues[0], &l->launch, 0, 1, &l->diagnostics));
    UIR_TRY(driver->mark(l->queues[0], &l->diagnostics, &point));
    UIR_TRY(driver->follow(l->queues[1], l->queues[0], point, &l->diagnostics));
    const uir_driver_copy out = {
        .from = device, .to = back, .rows = ROWS, .row_bytes = 16, .from_pitch = 16, .to_pitch = 16};
    UIR_TRY(driver->copy(l->queues[1], &out, &l->diagnostics));
    UIR_TRY(driver->mark(l->queues[1], &l->diagnostics, &point));
    UIR_TRY(driver->wait(l->queues[1], point, NULL, &l->failure));
    UIR_TRY(driver->fill(l->queues[1], &device, 0, &l->diagnostics));
    UIR_TRY(driver->mark(l->queues[1], &l->diagnostics, &point));
    return driver->wait(l->queues[1], point, &never, &l->failure);
}

static void end_life(life *l) {
    if (l->launch.is_prepared) driver->retire(l->device, &l->launch);
    driver->destroy_queue(l->queues[0]);
    driver->destroy_queue(l->queues[1]);
    driver->release(l->device, l->imported);
    driver->release(l->device, l->buffer);
    driver->release(l->device, l->staging);
    driver->release(l->device, l->workspace);
    driver->unload(l->device, l->again);
    driver->unload(l->device, l->code);
    driver->close(l->device);
    uir_text_deinit(&l->bytes);
    uir_text_deinit(&l->format);
}

/* A life in which one call is refused; whether it came to its end. */
static bool live(const char *function, uint64_t call) {
    static life l;
    static counted memory;
    uir_allocator system = uir_allocator_system();
    l = (life){.allocator = count_memory(&memory)};
    uir_diagnostics_init(&l.diagnostics, &system);
    uir_text_init(&l.bytes, &l.allocator);
    uir_text_init(&l.format, &l.allocator);
    for (int i = 0; i < N; i++) l.x[i] = (float)i;
    refuse(function, call);
    uir_status status = run_life(&l);
    bool said = l.diagnostics.first || *l.failure.text;
    if (status == UIR_STATUS_OK)
        for (int i = 0; i < N; i++) assert_true(l.y[i] == (float)i / 4);
    if (status != UIR_STATUS_OK && !said) fail_msg("%s refused at call %d: no message", function, (int)call);
    end_life(&l);
    if (get_alive() || memory.bytes)
        fail_msg("%s refused at call %d: %d objects and %d bytes are left", function, (int)call, (int)get_alive(),
                 (int)memory.bytes);
    uir_diagnostics_deinit(&l.diagnostics);
    return status == UIR_STATUS_OK;
}

/* Facts that a device may lack, and releases, whose failure changes nothing. */
static bool is_optional(const char *function) {
    return !strncmp(function, "clRelease", 9) || !strcmp(function, "clGetDeviceInfo") ||
           !strcmp(function, "clGetPlatformInfo") || !strcmp(function, "clGetDeviceIDs");
}

static void test_each_call(void **state) {
#define CL_FUNCTION_NAME(result, name, parameters, arguments) #name,
    static const char *const names[] = {CL_FUNCTIONS(CL_FUNCTION_NAME)};
    enum { COUNT = sizeof names / sizeof *names };
    uint64_t counts[COUNT], refusals = 0, unused = 0;
    (void)state;
    assert_true(live(NULL, 0));
    for (int i = 0; i < COUNT; i++) counts[i] = count_calls(names[i]);
    for (int i = 0; i < COUNT; i++) {
        unused += !counts[i];
        if (!counts[i]) print_message("%s: not called in this life\n", names[i]);
        for (uint64_t call = 1; call <= counts[i]; call++, refusals++)
            /* How often an event is asked is a matter of time: a call that this life did not make was not refused. */
            if (live(names[i], call) && count_calls(names[i]) >= call && !is_optional(names[i]) &&
                strcmp(names[i], "clFinish"))
                fail_msg("%s refused at call %d: nobody noticed", names[i], (int)call);
    }
    assert_true(live(NULL, 0));
    print_message("%d calls of %d functions refused\n", (int)refusals, (int)(COUNT - unused));
    assert_true(refusals > 50 && unused < 8);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_call)};
    uir_allocator allocator = uir_allocator_system();
    uir_driver_options options = {.allocator = &allocator};
    uint32_t count = 0;
    stand_in_path = argc == 2 ? argv[1] : "";
    if (uir_opencl_driver.count(&options, NULL, &count) != UIR_STATUS_OK || !count) {
        printf("skip: needs opencl: a device that the OpenCL library finds\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    if (!stand_in_open(stand_in_path, &refuse, &count_calls, &get_alive)) return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
