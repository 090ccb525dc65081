/* --list-devices: each device with its chips, and why one is not there. */
#include "json.h"
#include "printable.h"
#include "progress.h"
#include "query.h"
#include "report.h"

#include <unistd.h>

enum { INDENT = 4 };

static void print_chips(FILE *stream, const uir_device_report *device, int indent, int width) {
    char text[2000] = "chips:";
    size_t used = 6;
    for (size_t i = 0; i < device->chip_count && used + 40 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", i ? "," : "", device->chips[i]);
    if (!device->chip_count) return;
    fprintf(stream, "%*s", indent, "");
    print_wrapped(stream, text, indent, indent + INDENT, width);
}

static void print_why(FILE *stream, const uir_device_report *device, int width) {
    char text[1200];
    int used = fprintf(stream, "  %s:", device->name);
    print_wrapped(stream, printable(device->why, text, sizeof text), used, INDENT, width);
}

static bool is_any_missing(const uir_device_list *list) {
    uir_device_report device;
    for (size_t i = 0; query_device(list, i, &device); i++)
        if (!device.is_there) return true;
    return false;
}

static bool print_devices(FILE *stream, const uir_device_list *list) {
    int width = terminal_width(STDOUT_FILENO);
    uir_device_report device;
    for (size_t i = 0; query_device(list, i, &device); i++) {
        if (!device.is_there) continue;
        fprintf(stream, "%s\n", device.name);
        print_chips(stream, &device, 2, width);
    }
    if (is_any_missing(list)) fputs("\nnot there:\n", stream);
    for (size_t i = 0; query_device(list, i, &device); i++) {
        if (device.is_there) continue;
        print_why(stream, &device, width);
        print_chips(stream, &device, INDENT, width);
    }
    return true;
}

static cJSON *add_device(const uir_device_report *device) {
    cJSON *object = cJSON_CreateObject();
    report_add_text(object, "name", device->name);
    cJSON_AddBoolToObject(object, "is_there", device->is_there);
    report_add_text(object, "why", device->why);
    cJSON *chips = cJSON_AddArrayToObject(object, "chips");
    for (size_t i = 0; i < device->chip_count; i++) cJSON_AddItemToArray(chips, cJSON_CreateString(device->chips[i]));
    return object;
}

bool report_devices(FILE *stream, const uir_device_list *list, bool json) {
    uir_device_report device;
    if (!json) return print_devices(stream, list);
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON *names = cJSON_AddArrayToObject(root, "devices"), *all = cJSON_AddArrayToObject(root, "all");
    for (size_t i = 0; query_device(list, i, &device); i++) {
        if (device.is_there) cJSON_AddItemToArray(names, cJSON_CreateString(device.name));
        cJSON_AddItemToArray(all, add_device(&device));
    }
    return report_write_json(stream, root);
}
