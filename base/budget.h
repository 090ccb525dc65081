/* A budget: the limits of one operation (a load, a run, the writing of a package), and whether it has to stop.
 *
 * In: the caller's limits, their cancel flag and their allocator. Out: an allocator that counts and refuses, and one
 * status at the operation's end. A budget is passed along as its allocator: arenas and other users of the allocator
 * find it there and count their work, so no function needs a parameter for it. Long loops that allocate nothing call
 * uir_arena_spend.
 *
 * The operation ends with the first of: a broken limit, a failure of the caller's allocator, a request to stop. From
 * then on the allocator returns NULL, so every stage fails with OUT_OF_MEMORY or CANCELLED; uir_budget_end replaces
 * that by the cause. */
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
    const volatile bool *cancel; /* the caller's request to stop; NULL: none */
    volatile bool *also;         /* set at the time limit; NULL: none */
    uir_watch watch;
    /* The current stage and node; written by the operation's own thread. */
    const char *stage;
    char node[96], op[48];
    /* Counted by any thread. */
    uint64_t used, peak; /* bytes, allocated or mapped */
    uint64_t work, fold_work, fold_bytes, files;
    bool runs; /* between begin and end: a broken limit stays broken, and file sizes add up */
    bool cancelled;
    bool starved;      /* the caller's allocator had no memory */
    uint32_t pollers;  /* threads that read *cancel: uir_budget_end waits for them */
    uint32_t broken;   /* the limit + 1; 0: all hold */
    uint64_t asked;    /* amount requested when it broke; 0: unknown */
    char purpose[160]; /* of that amount, by the operation's own thread; "": unknown */
} uir_budget;

/* `limits` NULL: defaults. Nothing is allocated. */
void uir_budget_init(uir_budget *budget, const uir_allocator *under, const uir_limits *limits);
void uir_budget_deinit(uir_budget *budget);
/* The budget must outlive all allocations. */
uir_allocator uir_budget_allocator(uir_budget *budget);
/* The budget behind an allocator; NULL: none. */
uir_budget *uir_budget_of(const uir_allocator *allocator);

/* Begins an operation called `what`. The time limit also sets `also`, for code that does not poll the budget.
 * OUT_OF_MEMORY if the thread that watches the time cannot be started. */
uir_status uir_budget_begin(uir_budget *budget, const char *what, const volatile bool *cancel, volatile bool *also);
/* For a budget that several operations share, without begin and end: the status that one of them ends with. If it is
 * LIMIT or OUT_OF_MEMORY, and a limit broke since the last call, this is LIMIT, with its message in place of all
 * others. Any thread. */
uir_status uir_budget_tell(uir_budget *budget, const char *what, uir_status status, struct uir_diagnostics *diagnostics,
                           const struct uir_location *location);
/* Ends the operation; the memory limit stays in force. LIMIT where a limit broke, with one message in place of all
 * others: which limit, what asked for more, how to raise it. CANCELLED where a request to stop was seen. OUT_OF_MEMORY
 * where the caller's allocator failed, with a message of its own unless one of that status is there already. Else
 * `status`. */
uir_status uir_budget_end(uir_budget *budget, uir_status status, struct uir_diagnostics *diagnostics);

/* `budget` may be NULL in all of these. */
/* Whether the operation has to stop, or a limit broke; any thread. */
bool uir_budget_is_over(uir_budget *budget);
/* Counts steps of work; CANCELLED once the operation has to stop. Any thread. */
uir_status uir_budget_spend(uir_budget *budget, uint64_t steps);
/* Counts a file to be read: limits that are proportional to file bytes grow. False: more bytes than allowed. */
bool uir_budget_add_file(uir_budget *budget, uint64_t bytes);
/* Grows the same limits, for files of the process's own (the compile cache). Any thread. */
void uir_budget_grow(uir_budget *budget, uint64_t bytes);
/* Counts bytes to be mapped as memory, until uir_budget_unmap. False, without counting them: more than allowed. */
bool uir_budget_map(uir_budget *budget, uint64_t bytes);
void uir_budget_unmap(uir_budget *budget, uint64_t bytes);
/* Memory left under the caller's limit; UIR_NO_LIMIT where the limit is the default. */
uint64_t uir_budget_get_left(const uir_budget *budget);
/* The limit of the operation, or its default. */
uint64_t uir_budget_get_limit(const uir_budget *budget, uir_limit limit);
/* Breaks a limit that the caller of this function counts; LIMIT. The message is reported now, or at uir_budget_end. */
uir_status uir_budget_refuse(uir_budget *budget, uir_limit limit, uint64_t asked, struct uir_diagnostics *diagnostics,
                             const struct uir_location *location);
/* The same, with the purpose of the amount for the message, as "output 'y' of 12 bytes"; copied. By the operation's own
 * thread. */
uir_status uir_budget_refuse_for(uir_budget *budget, uir_limit limit, uint64_t asked, const char *purpose,
                                 struct uir_diagnostics *diagnostics);
/* Whether a value may have that many elements; if not, as uir_budget_refuse. */
uir_status uir_budget_check_elements(uir_budget *budget, uint64_t count, struct uir_diagnostics *diagnostics);
/* Sets the current stage, and the node in it. The texts of a node are copied; that of a stage must outlive the
 * budget. */
void uir_budget_enter(uir_budget *budget, const char *stage);
void uir_budget_at(uir_budget *budget, const char *node, const char *op);
/* Counts constant folding; false, counting nothing, beyond the limits. */
bool uir_budget_take_fold(uir_budget *budget, uint64_t work, uint64_t bytes);

typedef struct uir_limit_row {
    const char *field, *option, *what;
    uint64_t scale, base, per_byte;
} uir_limit_row;
const uir_limit_row *uir_limit_get_row(uir_limit limit);

#endif
