/* A context whose memory is counted, for each test of a program: nothing is left when the test ends. */
#ifndef UIR_TESTS_API_COUNTED_H
#define UIR_TESTS_API_COUNTED_H

#include "tests/api/small.h"

static _Atomic size_t alive; /* bytes that are not given back */

static int begin(void **state) {
    const uir_allocator counting = counting_allocator(&alive);
    uir_context *context;
    assert_int_equal(uir_context_create(&counting, &context), UIR_STATUS_OK);
    *state = context;
    return 0;
}

static int end(void **state) {
    uir_context_destroy(*state);
    assert_int_equal(atomic_load(&alive), 0);
    return 0;
}

#endif
