#include "tests/drivers/stand_in.h"

#include "backends/opencl/driver/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
enum { REFUSED = -5 }; /* CL_OUT_OF_RESOURCES */

#define CL_FUNCTION_NUMBER(result, name, parameters, arguments) NUMBER_##name,
enum { CL_FUNCTIONS(CL_FUNCTION_NUMBER) NUMBERS };
#define CL_FUNCTION_NAME(result, name, parameters, arguments) #name,
static const char *const names[NUMBERS] = {CL_FUNCTIONS(CL_FUNCTION_NAME)};

static cl_library real;
static uint64_t calls[NUMBERS], refused_call;
static int refused = -1;
static int64_t alive;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_real(void) {
    void *handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#define CL_FUNCTION_OPEN(result, name, parameters, arguments)                                                          \
    *(void **)&real.name = handle ? dlsym(handle, #name) : NULL;                                                       \
    if (!real.name) abort();
    CL_FUNCTIONS(CL_FUNCTION_OPEN)
}

static int number_of(const char *function) {
    for (int i = 0; function && i < NUMBERS; i++)
        if (!strcmp(names[i], function)) return i;
    return -1;
}

EXPORTED stand_in_refuse stand_in_set;
EXPORTED stand_in_count stand_in_get_count;
EXPORTED stand_in_alive stand_in_get_alive;

void stand_in_set(const char *function, uint64_t call) {
    memset(calls, 0, sizeof calls);
    refused = call ? number_of(function) : -1;
    refused_call = call;
    alive = 0;
}
uint64_t stand_in_get_count(const char *function) {
    int number = number_of(function);
    return number < 0 ? 0 : calls[number];
}
int64_t stand_in_get_alive(void) {
    return alive;
}

static int begins_with(int number, const char *word) {
    return !strncmp(names[number], word, strlen(word));
}

/* Whether the call is refused. Whoever releases has no other way: it is done, and the error returned. */
static int begin(int number) {
    pthread_once(&once, open_real);
    return ++calls[number] == refused_call && number == refused;
}
static void end(int number, int is_good) {
    if (is_good && (begins_with(number, "clCreate") || begins_with(number, "clRetain") ||
                    number == NUMBER_clEnqueueMarkerWithWaitList))
        alive++;
    if (begins_with(number, "clRelease")) alive--;
}

#pragma GCC diagnostic ignored "-Wunused-value"
#define IS_GOOD_int32_t(value)   ((value) == 0)
#define IS_GOOD_cl_handle(value) ((value) != NULL)
/* The last argument of a function that makes an object is where its error goes. */
#define REFUSE_int32_t(last)   return REFUSED
#define REFUSE_cl_handle(last) return *(int32_t *)(last) = REFUSED, NULL
#define CL_FUNCTION_STAND_IN(result, name, parameters, arguments)                                                      \
    EXPORTED result name parameters;                                                                                   \
    result name parameters {                                                                                           \
        int is_refused = begin(NUMBER_##name);                                                                         \
        if (is_refused && !begins_with(NUMBER_##name, "clRelease") && !begins_with(NUMBER_##name, "clFinish"))         \
            REFUSE_##result(arguments);                                                                                \
        result value = real.name arguments;                                                                            \
        end(NUMBER_##name, IS_GOOD_##result(value));                                                                   \
        if (is_refused) REFUSE_##result(arguments);                                                                    \
        return value;                                                                                                  \
    }
CL_FUNCTIONS(CL_FUNCTION_STAND_IN)
