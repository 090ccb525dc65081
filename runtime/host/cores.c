/* How many cores this process may use. */
#include "runtime/runtime.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static uint32_t affinity_cores(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than a cpu_set_t holds */
    return online > 0 ? (uint32_t)online : 1;
}

/* Reads a small file; the text is zero terminated. False when there is none. */
static bool read_small(const char *path, char *buffer, size_t capacity) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    ssize_t length = read(descriptor, buffer, capacity - 1);
    close(descriptor);
    if (length < 0) return false;
    buffer[length] = 0;
    return true;
}

static const char *read_number(const char *at, uint64_t *out_value) {
    uint64_t value = 0;
    const char *start = at;
    while (*at >= '0' && *at <= '9' && value < UINT64_MAX / 100) value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == start) return NULL;
    *out_value = value;
    return at;
}

/* "QUOTA PERIOD" of a cgroup v2, rounded up to cores; 0 when there is no limit. */
static uint32_t quota_cores(const char *folder) {
    static const char file[] = "/cpu.max";
    char path[1200], text[64];
    uint64_t quota, period;
    size_t length = strlen(folder);
    if (length + sizeof file > sizeof path) return 0;
    memcpy(path, folder, length);
    memcpy(path + length, file, sizeof file);
    if (!read_small(path, text, sizeof text)) return 0;
    const char *at = read_number(text, &quota);
    if (!at || *at != ' ' || !read_number(at + 1, &period) || period == 0) return 0;
    uint64_t cores = (quota + period - 1) / period;
    return cores > UINT32_MAX ? 0 : (uint32_t)(cores ? cores : 1);
}

/* The tightest quota of this process's cgroup and those above it. */
static uint32_t cgroup_cores(uint32_t most) {
    static const char root[] = "/sys/fs/cgroup";
    char list[2048], folder[1024];
    if (!read_small("/proc/self/cgroup", list, sizeof list)) return most;
    const char *line = strncmp(list, "0::", 3) == 0 ? list : strstr(list, "\n0::");
    if (!line) return most;
    const char *path = strstr(line, "0::") + 3;
    size_t length = strcspn(path, "\n");
    if (length + sizeof root > sizeof folder) return most;
    memcpy(folder, root, sizeof root - 1);
    memcpy(folder + sizeof root - 1, path, length);
    folder[sizeof root - 1 + length] = 0;
    for (;;) {
        uint32_t cores = quota_cores(folder);
        if (cores && cores < most) most = cores;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < sizeof root - 1) return most;
        *slash = 0;
    }
}

uint32_t uir_core_count(void) {
    return cgroup_cores(affinity_cores());
}
