/* What the guided targets share. A target is a file target_NAME.c with the one function that libFuzzer calls, below;
 * the program fuzz_target_NAME is it with libFuzzer in the preset `fuzz`, and with replay.c, which runs it on given
 * files, in all other builds.
 *
 * A case may fail as it likes, with any status and in any of the ways that are written here: within its memory, giving
 * all of it back, before its time is up once it is asked to stop, and with a message. All else ends the process. */
#ifndef UIR_TESTS_FUZZ_TARGET_H
#define UIR_TESTS_FUZZ_TARGET_H

#include "base/status.h"
#include "base/tensor.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Of a target that knows what its inputs are made of; and what it may ask of libFuzzer, or of replay.c. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) __attribute__((weak));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

typedef struct fuzz_case {
    uir_allocator allocator; /* keeps to a limit: what asks for more is given none */
    uir_diagnostics diagnostics;
    size_t used;
    volatile bool cancel; /* set when the time is up */
} fuzz_case;

void fuzz_begin(fuzz_case *c);
/* Releases the messages; everything else must have been released. */
void fuzz_end(fuzz_case *c);
/* Once for each case: whether the input was well formed. How many were is told when the process ends. */
void fuzz_count(bool good);
/* Of a reader: OK, no memory, or some message. */
void fuzz_require_told(const fuzz_case *c, uir_status status);
/* Ends the process, naming what should hold. */
void fuzz_require(bool holds, const char *what);

/* A deadline for what is cancelled by a function; `call` comes once, from another thread, unless it ends before. */
void fuzz_watch_begin(void (*call)(void *user), void *user);
void fuzz_watch_end(void);

/* A tensor of small numbers that depend on `seed`; NULL when there is no memory, or for more than some thousand
 * elements. */
uir_tensor *fuzz_make_tensor(const fuzz_case *c, uir_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t seed);
/* The same into bytes. */
void fuzz_fill(uir_dtype dtype, uint64_t count, uint64_t seed, void *out_data);

/* That a text is printed the same once it was read again. `read` parses `text` and appends what it prints to `out`. */
typedef uir_status fuzz_reread(void *user, fuzz_case *c, const char *text, size_t length, uir_text *out);
void fuzz_require_same_text(fuzz_case *c, const uir_text *printed, fuzz_reread *read, void *user);

#endif
