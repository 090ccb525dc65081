/* What one operation (a load, a run, the writing of a package) may take, and whether it is to stop.
 *
 * In: the caller's limits, his flag, and his allocator. Out: an allocator that counts and refuses, and one answer at
 * the operation's end. A budget goes where its allocator goes: all that allocates, arenas first, can ask it and spend
 * its work, so that no function has a parameter for it. What runs long between two allocations calls uir_arena_spend.
 *
 * The first limit that breaks, memory that the caller's allocator does not have, or a wish to stop, is what the
 * operation ends with, whatever a stage makes of it: from then on the allocator gives nothing, so that every stage comes
 * back with OUT_OF_MEMORY or CANCELLED, and uir_budget_end says what it was. */
#ifndef UIR_BASE_BUDGET_H
#define UIR_BASE_BUDGET_H

#include "base/allocator.h"
#include "base/watch.h"

struct uir_diagnostics;
struct uir_location;

typedef enum uir_limit {
#define LIMIT_ENUM(constant, field, option, scale, base, per_byte, what, help) UIR_LIMIT_##constant,
    UIR_LIMIT_TABLE(LIMIT_ENUM)
#undef LIMIT_ENUM
        UIR_LIMIT_COUNT
} uir_limit;

typedef struct uir_budget {
    uir_allocator under;              /* the caller's */
    uint64_t limits[UIR_LIMIT_COUNT]; /* UIR_NO_LIMIT: none */
    bool is_default[UIR_LIMIT_COUNT];
    const char *what;            /* "loading a model" */
    const volatile bool *cancel; /* the caller's; NULL: none */
    volatile bool *also;         /* set when the time is up; NULL: none */
    uir_watch watch;
    /* Where the operation is, by its own thread. */
    const char *stage;
    char node[96], op[48];
    /* Counted by any thread. */
    uint64_t used, peak; /* bytes, allocated or mapped */
    uint64_t work, fold_work, fold_bytes, files;
    bool runs; /* between begin and end: what breaks stays broken, and files count together */
    bool cancelled;
    bool starved; /* the caller's allocator had no memory */
    uint32_t pollers; /* threads that look at *cancel: the end waits for them */
    uint32_t broken;  /* the limit + 1; 0: all hold */
    uint64_t asked;   /* for, when it broke; 0: unknown */
} uir_budget;

/* `limits` NULL: defaults. Nothing is allocated. */
void uir_budget_init(uir_budget *budget, const uir_allocator *under, const uir_limits *limits);
void uir_budget_deinit(uir_budget *budget);
/* The budget lives as long as what was allocated. */
uir_allocator uir_budget_allocator(uir_budget *budget);
/* The budget behind an allocator; NULL: none. */
uir_budget *uir_budget_of(const uir_allocator *allocator);

/* Begins an operation called `what`. `also` is set, besides what polls the budget, when the time is up. OUT_OF_MEMORY
 * when there is no thread to watch the time. */
uir_status uir_budget_begin(uir_budget *budget, const char *what, const volatile bool *cancel, volatile bool *also);
/* Of a budget that no operations begin and end in, as several go on in it at once: what one of them ends with, LIMIT
 * with its message in place of all others where something was refused since the last time. Any thread. */
uir_status uir_budget_tell(uir_budget *budget, const char *what, uir_status status, struct uir_diagnostics *diagnostics,
                           const struct uir_location *location);
/* Its end; the limit on memory holds on. CANCELLED where it was to stop, LIMIT where one broke, with one message in
 * place of all others: which limit, what asked for more, and how it is raised; likewise OUT_OF_MEMORY where there was
 * none, unless a message says already what it was for. Else `status`. */
uir_status uir_budget_end(uir_budget *budget, uir_status status, struct uir_diagnostics *diagnostics);

/* `budget` may be NULL in all of these. */
/* Whether it is to stop, or a limit broke; any thread. */
bool uir_budget_is_over(uir_budget *budget);
/* Counts steps of work; CANCELLED once it is over. Any thread. */
uir_status uir_budget_spend(uir_budget *budget, uint64_t steps);
/* A file of so many bytes is read: the limits that are proportional to them grow. False: they are too many. */
bool uir_budget_add_file(uir_budget *budget, uint64_t bytes);
/* The same limits grow for what the process keeps of its own on disk. Any thread. */
void uir_budget_grow(uir_budget *budget, uint64_t bytes);
/* Bytes that are to be mapped count as memory until they are unmapped. False, and they do not: they are too many. */
bool uir_budget_map(uir_budget *budget, uint64_t bytes);
void uir_budget_unmap(uir_budget *budget, uint64_t bytes);
/* What is left of the memory that the caller allows; UIR_NO_LIMIT where he leaves it to the default. */
uint64_t uir_budget_get_left(const uir_budget *budget);
/* The limit of the operation, or its default. */
uint64_t uir_budget_get_limit(const uir_budget *budget, uir_limit limit);
/* Breaks a limit that the caller counts himself, and says so: LIMIT. */
uir_status uir_budget_refuse(uir_budget *budget, uir_limit limit, uint64_t asked, struct uir_diagnostics *diagnostics,
                             const struct uir_location *location);
/* Whether a value may have so many elements; else as uir_budget_refuse. */
uir_status uir_budget_check_elements(uir_budget *budget, uint64_t count, struct uir_diagnostics *diagnostics);
/* The stage, and the node in it, that it is at; texts are copied but the stage's, which stays. */
void uir_budget_enter(uir_budget *budget, const char *stage);
void uir_budget_at(uir_budget *budget, const char *node, const char *op);
/* Takes of what may be folded; false, and nothing is taken, when that is too much. */
bool uir_budget_take_fold(uir_budget *budget, uint64_t work, uint64_t bytes);

typedef struct uir_limit_row {
    const char *field, *option, *what;
    uint64_t scale, base, per_byte;
} uir_limit_row;
const uir_limit_row *uir_limit_get_row(uir_limit limit);

#endif
