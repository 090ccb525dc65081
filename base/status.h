/* Statuses and diagnostics inside the libraries.
 *
 * A function that can fail returns uir_status (public, in uir.h). Where a person should know more, it adds a message to
 * a uir_diagnostics sink first. The sink keeps messages in order, for the owner of the context. */
#ifndef UIR_BASE_STATUS_H
#define UIR_BASE_STATUS_H

#include "base/arena.h"
#include <stdarg.h>

#define UIR_TRY(expression)                                                                                            \
    do {                                                                                                               \
        uir_status uir_try_status_ = (expression);                                                                     \
        if (uir_try_status_ != UIR_STATUS_OK) return uir_try_status_;                                                  \
    } while (0)

/* Assigns an allocation; returns OUT_OF_MEMORY if it failed. */
#define UIR_TRY_ALLOCATE(variable, expression)                                                                         \
    do {                                                                                                               \
        (variable) = (expression);                                                                                     \
        if (!(variable)) return UIR_STATUS_OUT_OF_MEMORY;                                                              \
    } while (0)

#if defined(__GNUC__)
#define UIR_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define UIR_PRINTF(format_index, first_argument)
#endif

/* The place in the input that a message is about; unused fields are zero or NULL. The sink copies the strings. */
typedef struct uir_location {
    const char *file; /* path or pseudo name ("<memory>") */
    uint32_t line;    /* 1-based, text formats */
    uint32_t column;  /* 1-based, text formats */
    uint64_t offset;  /* byte offset, binary formats */
    bool has_offset;
    const char *node;           /* ONNX node name, as written in the model */
    const char *op;             /* "Conv", "com.microsoft::MatMulNBits", "binary.add.f32" */
    const char *line_text;      /* the offending source line for a caret, without newline; may be NULL */
    uint32_t line_text_skipped; /* bytes of the line before line_text, when it is a part of a long one */
    const char *quote;          /* output of another program, as a compiler, printed after the message; may be NULL */
} uir_location;

typedef struct uir_diagnostic {
    uir_severity severity;
    uir_status status; /* the status this message explains */
    uir_location location;
    const char *message; /* one sentence: what is wrong */
    const char *hint;    /* what to do, or NULL */
    uint32_t caret;      /* 0-based column in location.line_text as kept, which is printable and may be cut */
    struct uir_diagnostic *next;
} uir_diagnostic;

typedef struct uir_diagnostics {
    uir_arena arena; /* owns every text below */
    uir_diagnostic *first, *last;
    uint32_t count;       /* messages in the list */
    uint32_t dropped;     /* messages beyond the limit, or lost for lack of memory */
    uint32_t error_count; /* errors reported, dropped ones too */
    uint32_t limit;       /* messages kept; further ones are only counted (hostile files must not fill memory) */
} uir_diagnostics;

void uir_diagnostics_init(uir_diagnostics *diagnostics, const uir_allocator *allocator);
void uir_diagnostics_deinit(uir_diagnostics *diagnostics);
void uir_diagnostics_clear(uir_diagnostics *diagnostics);

/* Adds an error and returns `status`, so that `return uir_error(...)` reads well. `diagnostics` and `location` may be
 * NULL. Text that came from a file is made printable (control characters and invalid UTF-8 as \xNN). */
uir_status uir_error(uir_diagnostics *diagnostics, uir_status status, const uir_location *location, const char *format,
                     ...) UIR_PRINTF(4, 5);
/* The same with a hint; `hint` is a plain sentence or NULL. */
uir_status uir_error_hint(uir_diagnostics *diagnostics, uir_status status, const uir_location *location,
                          const char *hint, const char *format, ...) UIR_PRINTF(5, 6);
void uir_warning(uir_diagnostics *diagnostics, const uir_location *location, const char *format, ...) UIR_PRINTF(3, 4);

/* Renders one message: "file:line:column: error: node 'x' (Conv): message\n    line\n    ^\n    quote\n  hint: ...".
 * Writes at most `capacity` bytes with a terminating zero; returns the length needed (as snprintf). */
size_t uir_diagnostic_format(const uir_diagnostic *diagnostic, char *buffer, size_t capacity);

/* Damerau-Levenshtein distance for "did you mean"; large for strings longer than 64 bytes. */
uint32_t uir_edit_distance(const char *a, const char *b);
/* The candidate with the least distance from the word, if that is at most a third of its letters and one more: near
 * enough to be meant. NULL: none. candidate(user, index) is NULL past the last. */
const char *uir_find_nearest(const char *word, const char *(*candidate)(void *user, size_t index), void *user);

#endif
