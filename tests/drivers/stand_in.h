/* A stand-in for the OpenCL library: forwards each call to the system's, counts it, and refuses the one that is asked.
 *
 * In: a function's name and which of its calls. Out: that call fails. The objects that are alive are counted, so that a
 * caller that has released all of them is known. These functions are found by dlsym in the stand-in. */
#ifndef UIR_TESTS_DRIVERS_STAND_IN_H
#define UIR_TESTS_DRIVERS_STAND_IN_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef void stand_in_refuse(const char *function, uint64_t call); /* from 1; 0: none; forgets what was counted */
typedef uint64_t stand_in_count(const char *function);             /* calls since then */
typedef int64_t stand_in_alive(void);                              /* objects made and retained, less those released */

/* False, with the loader's message on stderr, if the stand-in cannot be loaded. */
static inline bool stand_in_open(const char *path, stand_in_refuse **refuse, stand_in_count **count,
                                 stand_in_alive **alive) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    *(void **)refuse = dlsym(handle, "stand_in_set");
    *(void **)count = dlsym(handle, "stand_in_get_count");
    *(void **)alive = dlsym(handle, "stand_in_get_alive");
    return true;
}

#endif
