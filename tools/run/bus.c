/* What a run asks of the bus of a device with memory of its own: --plan and --json. */
#include "json.h"
#include "printable.h"
#include "query.h"
#include "report.h"
#include "units.h"

static void print_bytes(const char *format, uint64_t bytes) {
    char text[UNITS_ROOM];
    printf(format, units_scaled((double)bytes, text, sizeof text));
}

static void print_unknown(const char *of, const char *what, uint64_t count) {
    if (count) printf("%-24s %llu %s%s %s\n", "", (unsigned long long)count, of, units_ending(count), what);
}

void report_bus_cost(const uir_session *session, const uir_bus_cost *cost) {
    uir_loop_cost loop;
    if (!cost->waits && !cost->bytes_to_device && !cost->bytes_from_device) return;
    printf("%-24s %llu wait%s, ", "bus", (unsigned long long)cost->waits, units_ending(cost->waits));
    print_bytes("%sB over the bus: ", cost->bytes_to_device + cost->bytes_from_device);
    print_bytes("%sB to the device, ", cost->bytes_to_device);
    print_bytes("%sB from it\n", cost->bytes_from_device);
    for (size_t i = 0; query_loop(session, i, &loop); i++) {
        char name[80];
        printf("%-24s loop '%s': data decide its iterations; each after the first adds %llu wait%s, ", "",
               printable(loop.name, name, sizeof name), (unsigned long long)loop.waits, units_ending(loop.waits));
        print_bytes("%sB to the device, ", loop.bytes_to_device);
        print_bytes("%sB from it\n", loop.bytes_from_device);
    }
    print_unknown("size", "decided by data: what is copied by it is not counted", cost->unknown_sizes);
    print_unknown("condition", "decided by data: the first branch is counted", cost->unknown_branches);
}

static void add_counts(cJSON *object, uint64_t waits, uint64_t to_device, uint64_t from_device) {
    cJSON_AddNumberToObject(object, "waits", (double)waits);
    cJSON_AddNumberToObject(object, "bytes_to_device", (double)to_device);
    cJSON_AddNumberToObject(object, "bytes_from_device", (double)from_device);
}

static cJSON *add_cost(cJSON *root, const char *key, const uir_bus_cost *cost) {
    cJSON *object = cJSON_AddObjectToObject(root, key);
    add_counts(object, cost->waits, cost->bytes_to_device, cost->bytes_from_device);
    cJSON_AddNumberToObject(object, "unknown_sizes", (double)cost->unknown_sizes);
    cJSON_AddNumberToObject(object, "unknown_turns", (double)cost->unknown_turns);
    cJSON_AddNumberToObject(object, "unknown_branches", (double)cost->unknown_branches);
    return object;
}

void report_add_bus_cost(cJSON *root, const uir_session *session, const uir_bus_cost *cost) {
    uir_loop_cost loop;
    cJSON *loops = cJSON_AddArrayToObject(add_cost(root, "bus", cost), "loops");
    for (size_t i = 0; query_loop(session, i, &loop); i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "name", loop.name);
        report_add_text(object, "op", loop.op);
        add_counts(object, loop.waits, loop.bytes_to_device, loop.bytes_from_device);
        cJSON_AddItemToArray(loops, object);
    }
}

void report_add_bus(cJSON *root, uir_session *session, const uir_run_statistics *statistics) {
    uir_bus_cost planned = {.struct_size = sizeof planned};
    cJSON *bus = cJSON_AddObjectToObject(root, "bus");
    cJSON_AddNumberToObject(bus, "waits", (double)statistics->waits);
    cJSON_AddNumberToObject(bus, "copies", (double)statistics->copies);
    cJSON_AddNumberToObject(bus, "bytes_to_device", (double)statistics->bytes_to_device);
    cJSON_AddNumberToObject(bus, "bytes_from_device", (double)statistics->bytes_from_device);
    cJSON_AddNumberToObject(bus, "device_bytes", (double)statistics->device_bytes);
    if (statistics->device_bytes && uir_session_get_bus_cost(session, true, &planned) == UIR_STATUS_OK)
        (void)add_cost(bus, "planned", &planned);
    else
        cJSON_AddNullToObject(bus, "planned");
}
