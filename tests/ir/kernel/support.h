/* What the tests of the zoo share: the devices, and the files of a folder. */
#ifndef UIR_TESTS_IGRAPH_SUPPORT_H
#define UIR_TESTS_IGRAPH_SUPPORT_H

#include "tests/base/support.h"

#include "backends/cpu/target/cpu.h"
#include "backends/descriptions/descriptions.h"
#include "ir/kernel/igraph.h"
#include "ir/machine/device_text.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct zoo {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_arena arena;
    uir_cpu_device cpu;
    uir_machine_vector devices;
    uir_machine_list list;
} zoo;

/* The machine of the kernels that are about groups of many units. */
static inline void zoo_add_file(zoo *z, const char *path) {
    static char text[65536];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    assert_int_equal(uir_machine_parse(text, length, path, &z->arena, &z->diagnostics, &z->devices), UIR_STATUS_OK);
}

static inline void zoo_open(zoo *z) {
    z->allocator = uir_allocator_system();
    uir_diagnostics_init(&z->diagnostics, &z->allocator);
    assert_int_equal(uir_cpu_describe("generic", &z->diagnostics, &z->cpu), UIR_STATUS_OK);
    uir_arena_init(&z->arena, &z->allocator);
    z->devices = (uir_machine_vector){0};
    assert_int_equal(uir_vector_push(&z->arena, &z->devices, &z->cpu.machine), UIR_STATUS_OK);
    assert_int_equal(uir_descriptions_read(&z->arena, &z->diagnostics, &z->devices), UIR_STATUS_OK);
    zoo_add_file(z, "tests/ir/kernel/warps.device");
    z->list = (uir_machine_list){z->devices.data, z->devices.count};
}

static inline void zoo_close(zoo *z) {
    uir_arena_deinit(&z->arena);
    uir_diagnostics_deinit(&z->diagnostics);
}

static inline bool zoo_said(const zoo *z, const char *text) {
    for (const uir_diagnostic *d = z->diagnostics.first; d; d = d->next)
        if (strstr(d->message, text) || (d->location.quote && strstr(d->location.quote, text))) return true;
    return false;
}

static inline void zoo_print_messages(const zoo *z) {
    for (const uir_diagnostic *d = z->diagnostics.first; d; d = d->next) print_error("  %s\n", d->message);
}

/* The caller frees. */
static inline char *read_whole(const char *path, size_t *out_length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = malloc(1 << 20);
    assert_non_null(text);
    *out_length = fread(text, 1, (1 << 20) - 1, file);
    text[*out_length] = 0;
    fclose(file);
    return text;
}

/* Calls back for every .igraph file of a folder; gives how many there were. */
static inline uint32_t for_each_kernel_file(const char *folder, void (*visit)(zoo *z, const char *path), zoo *z) {
    uint32_t count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[512];
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".igraph") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        visit(z, path);
        count++;
    }
    closedir(directory);
    return count;
}

#endif
