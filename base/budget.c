#include "base/budget.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_ROW(constant, field, option, scale, base, per_byte, what, help)                                          \
    [UIR_LIMIT_##constant] = {#field, option, what, scale, base, per_byte},
static const uir_limit_row rows[UIR_LIMIT_COUNT] = {UIR_LIMIT_TABLE(LIMIT_ROW)};
#undef LIMIT_ROW
_Static_assert(sizeof(uir_limits) == sizeof(size_t) + UIR_LIMIT_COUNT * sizeof(uint64_t), "a limit has no row");

const uir_limit_row *uir_limit_get_row(uir_limit limit) {
    return &rows[limit];
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a < UIR_NO_LIMIT - b ? a + b : UIR_NO_LIMIT;
}

static void init_limits(uir_budget *budget, const uir_limits *limits) {
    static const uir_limits none = {.struct_size = sizeof none};
    const uir_limits *l = limits ? limits : &none;
#define LIMIT_GIVEN(constant, field, option, scale, base, per_byte, what, help) [UIR_LIMIT_##constant] = l->field,
    const uint64_t given[UIR_LIMIT_COUNT] = {UIR_LIMIT_TABLE(LIMIT_GIVEN)};
#undef LIMIT_GIVEN
    for (uint32_t i = 0; i < UIR_LIMIT_COUNT; i++) {
        budget->is_default[i] = !given[i];
        budget->limits[i] = given[i] ? given[i] : rows[i].base;
    }
    /* Stages go down by themselves, and have the stack for so many. */
    uint64_t *depth = &budget->limits[UIR_LIMIT_DEPTH];
    if (*depth > rows[UIR_LIMIT_DEPTH].base) *depth = rows[UIR_LIMIT_DEPTH].base;
}

void uir_budget_init(uir_budget *budget, const uir_allocator *under, const uir_limits *limits) {
    *budget = (uir_budget){.under = *under, .what = ""};
    init_limits(budget, limits);
}

void uir_budget_deinit(uir_budget *budget) {
    uir_watch_deinit(&budget->watch);
}

/* Those that are proportional to files grow while other threads allocate. */
static uint64_t get_limit(const uir_budget *budget, uint32_t limit) {
    return __atomic_load_n(&budget->limits[limit], __ATOMIC_RELAXED);
}

/* ---- whether it is over ---- */

/* The first that broke is the one. */
static void note_broken(uir_budget *budget, uir_limit limit, uint64_t asked) {
    uint32_t none = 0;
    if (__atomic_compare_exchange_n(&budget->broken, &none, limit + 1u, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_store_n(&budget->asked, asked, __ATOMIC_RELAXED);
}

static bool is_stopped(uir_budget *budget) {
    return __atomic_load_n(&budget->broken, __ATOMIC_RELAXED) ||
           __atomic_load_n(&budget->cancelled, __ATOMIC_RELAXED) || __atomic_load_n(&budget->starved, __ATOMIC_RELAXED);
}

/* The flag is the caller's, who may release it after the operation: kernels that are compiled beside it do not look
 * at it then. */
static bool poll_cancel(uir_budget *budget) {
    if (!__atomic_load_n(&budget->cancel, __ATOMIC_RELAXED)) return false;
    __atomic_add_fetch(&budget->pollers, 1, __ATOMIC_SEQ_CST);
    const volatile bool *cancel = __atomic_load_n(&budget->cancel, __ATOMIC_SEQ_CST);
    bool wished = cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED);
    if (wished) __atomic_store_n(&budget->cancelled, true, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&budget->pollers, 1, __ATOMIC_RELEASE);
    return wished;
}

static void forget_cancel(uir_budget *budget) {
    __atomic_store_n(&budget->cancel, NULL, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&budget->pollers, __ATOMIC_SEQ_CST)) sched_yield();
}

bool uir_budget_is_over(uir_budget *budget) {
    if (!budget || !__atomic_load_n(&budget->runs, __ATOMIC_RELAXED)) return false;
    return is_stopped(budget) || poll_cancel(budget);
}

uir_status uir_budget_spend(uir_budget *budget, uint64_t steps) {
    if (!budget) return UIR_STATUS_OK;
    uint64_t work = __atomic_add_fetch(&budget->work, steps, __ATOMIC_RELAXED);
    if (work > get_limit(budget, UIR_LIMIT_WORK)) note_broken(budget, UIR_LIMIT_WORK, 0);
    return uir_budget_is_over(budget) ? UIR_STATUS_CANCELLED : UIR_STATUS_OK;
}

/* ---- memory ---- */

static void note_peak(uir_budget *budget, uint64_t used) {
    uint64_t peak = __atomic_load_n(&budget->peak, __ATOMIC_RELAXED);
    while (used > peak &&
           !__atomic_compare_exchange_n(&budget->peak, &peak, used, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* Counts before it is allocated, so that threads do not go over the limit together. */
static bool take(uir_budget *budget, uint64_t bytes) {
    uint64_t used = __atomic_add_fetch(&budget->used, bytes, __ATOMIC_RELAXED);
    if (used <= get_limit(budget, UIR_LIMIT_MEMORY)) {
        note_peak(budget, used);
        return true;
    }
    __atomic_sub_fetch(&budget->used, bytes, __ATOMIC_RELAXED);
    note_broken(budget, UIR_LIMIT_MEMORY, bytes);
    return false;
}

/* What shrinks or is released is never refused. */
static void *budget_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    uir_budget *budget = user;
    const uir_allocator *under = &budget->under;
    if (new_size <= old_size) {
        void *block = under->resize(under->user, pointer, old_size, new_size);
        if (block || !new_size) __atomic_sub_fetch(&budget->used, old_size - new_size, __ATOMIC_RELAXED);
        return block;
    }
    if (uir_budget_is_over(budget) || !take(budget, new_size - old_size)) return NULL;
    void *block = under->resize(under->user, pointer, old_size, new_size);
    if (block) return block;
    __atomic_sub_fetch(&budget->used, new_size - old_size, __ATOMIC_RELAXED);
    if (__atomic_load_n(&budget->runs, __ATOMIC_RELAXED)) __atomic_store_n(&budget->starved, true, __ATOMIC_RELAXED);
    return NULL;
}

uir_allocator uir_budget_allocator(uir_budget *budget) {
    return (uir_allocator){budget_resize, budget};
}

uir_budget *uir_budget_of(const uir_allocator *allocator) {
    return allocator->resize == budget_resize ? allocator->user : NULL;
}

/* ---- the other limits ---- */

uint64_t uir_budget_get_limit(const uir_budget *budget, uir_limit limit) {
    return budget ? get_limit(budget, limit) : rows[limit].base;
}

void uir_budget_grow(uir_budget *budget, uint64_t bytes) {
    for (uint32_t i = 0; budget && i < UIR_LIMIT_COUNT; i++) {
        uint64_t more, limit = get_limit(budget, i);
        if (!budget->is_default[i] || !rows[i].per_byte || limit == UIR_NO_LIMIT) continue;
        if (__builtin_mul_overflow(bytes, rows[i].per_byte, &more)) more = UIR_NO_LIMIT;
        __atomic_store_n(&budget->limits[i], add(limit, more), __ATOMIC_RELAXED);
    }
}

bool uir_budget_add_file(uir_budget *budget, uint64_t bytes) {
    if (!budget) return true;
    uint64_t files = bytes;
    if (__atomic_load_n(&budget->runs, __ATOMIC_RELAXED)) files = budget->files = add(budget->files, bytes);
    uir_budget_grow(budget, bytes);
    if (files <= get_limit(budget, UIR_LIMIT_FILE_BYTES)) return true;
    note_broken(budget, UIR_LIMIT_FILE_BYTES, bytes);
    return false;
}

bool uir_budget_map(uir_budget *budget, uint64_t bytes) {
    return !budget || take(budget, bytes);
}

void uir_budget_unmap(uir_budget *budget, uint64_t bytes) {
    if (budget) __atomic_sub_fetch(&budget->used, bytes, __ATOMIC_RELAXED);
}

uint64_t uir_budget_get_left(const uir_budget *budget) {
    if (!budget || budget->is_default[UIR_LIMIT_MEMORY]) return UIR_NO_LIMIT;
    uint64_t limit = get_limit(budget, UIR_LIMIT_MEMORY), used = __atomic_load_n(&budget->used, __ATOMIC_RELAXED);
    return limit == UIR_NO_LIMIT ? limit : limit > used ? limit - used : 0;
}

bool uir_budget_take_fold(uir_budget *budget, uint64_t work, uint64_t bytes) {
    if (!budget) return true;
    uint64_t all_work = add(budget->fold_work, work), all_bytes = add(budget->fold_bytes, bytes);
    if (all_work > get_limit(budget, UIR_LIMIT_FOLD_WORK) || all_bytes > get_limit(budget, UIR_LIMIT_FOLD_BYTES))
        return false;
    budget->fold_work = all_work;
    budget->fold_bytes = all_bytes;
    return true;
}

/* ---- the operation ---- */

static void ring(void *user) {
    uir_budget *budget = user;
    note_broken(budget, UIR_LIMIT_MILLISECONDS, 0);
    if (budget->also) __atomic_store_n(budget->also, true, __ATOMIC_RELAXED);
}

uir_status uir_budget_begin(uir_budget *budget, const char *what, const volatile bool *cancel, volatile bool *also) {
    budget->what = what;
    budget->also = also;
    budget->stage = NULL;
    budget->node[0] = budget->op[0] = budget->purpose[0] = 0;
    budget->fold_work = budget->fold_bytes = 0;
    __atomic_store_n(&budget->cancel, cancel, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->broken, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->cancelled, false, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->starved, false, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->work, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->runs, true, __ATOMIC_RELAXED);
    if (budget->limits[UIR_LIMIT_MILLISECONDS] == UIR_NO_LIMIT) return UIR_STATUS_OK;
    return uir_watch_start(&budget->watch, budget->limits[UIR_LIMIT_MILLISECONDS], ring, budget);
}

void uir_budget_enter(uir_budget *budget, const char *stage) {
    if (!budget) return;
    budget->stage = stage;
    budget->node[0] = budget->op[0] = 0;
}

void uir_budget_at(uir_budget *budget, const char *node, const char *op) {
    if (!budget) return;
    snprintf(budget->node, sizeof budget->node, "%s", node ? node : "");
    snprintf(budget->op, sizeof budget->op, "%s", op ? op : "");
}

/* "1.5 s", "2147483648". */
static void print_limit(uir_limit limit, uint64_t value, char *text, size_t capacity) {
    if (rows[limit].scale == 1)
        snprintf(text, capacity, "%llu %s", (unsigned long long)value, rows[limit].what);
    else
        snprintf(text, capacity, "%g %s", (double)value / (double)rows[limit].scale, rows[limit].option);
}

/* `budget` NULL: of the defaults. */
static uir_status explain(const uir_budget *budget, const char *what, uir_limit limit, uint64_t asked,
                          uir_diagnostics *diagnostics, const uir_location *location) {
    char hint[160], allowed[80], wanted[60] = "";
    const char *stage = budget && budget->stage ? budget->stage : "", *purpose = budget ? budget->purpose : "";
    print_limit(limit, uir_budget_get_limit(budget, limit), allowed, sizeof allowed);
    if (asked)
        snprintf(wanted, sizeof wanted, ": %llu requested%s", (unsigned long long)asked, *purpose ? " with " : "");
    snprintf(hint, sizeof hint, "raise the limit with --limit-%s or uir_limits.%s", rows[limit].option,
             rows[limit].field);
    return uir_error_hint(diagnostics, UIR_STATUS_LIMIT, location, hint, "%s%s%s%s takes more than %s%s%s", what,
                          *stage ? " (" : "", stage, *stage ? ")" : "", allowed, wanted, asked ? purpose : "");
}

uir_status uir_budget_refuse(uir_budget *budget, uir_limit limit, uint64_t asked, uir_diagnostics *diagnostics,
                             const uir_location *location) {
    if (!budget) return explain(budget, "the model", limit, asked, diagnostics, location);
    note_broken(budget, limit, asked);
    if (!budget->runs && diagnostics) return explain(budget, budget->what, limit, asked, diagnostics, location);
    if (location) uir_budget_at(budget, location->node, location->op);
    return UIR_STATUS_LIMIT; /* it is said at the end */
}

uir_status uir_budget_refuse_for(uir_budget *budget, uir_limit limit, uint64_t asked, const char *purpose,
                                 uir_diagnostics *diagnostics) {
    if (budget) snprintf(budget->purpose, sizeof budget->purpose, "%s", purpose);
    return uir_budget_refuse(budget, limit, asked, diagnostics, NULL);
}

uir_status uir_budget_check_elements(uir_budget *budget, uint64_t count, uir_diagnostics *diagnostics) {
    if (count <= uir_budget_get_limit(budget, UIR_LIMIT_ELEMENTS)) return UIR_STATUS_OK;
    return uir_budget_refuse(budget, UIR_LIMIT_ELEMENTS, count, diagnostics, NULL);
}

uir_status uir_budget_tell(uir_budget *budget, const char *what, uir_status status, uir_diagnostics *diagnostics,
                           const uir_location *location) {
    uint64_t asked = __atomic_load_n(&budget->asked, __ATOMIC_RELAXED);
    uint32_t broken = __atomic_exchange_n(&budget->broken, 0, __ATOMIC_RELAXED);
    if (!broken || (status != UIR_STATUS_LIMIT && status != UIR_STATUS_OUT_OF_MEMORY)) return status;
    uir_diagnostics_clear(diagnostics);
    return explain(budget, what, broken - 1, asked, diagnostics, location);
}

/* Has whoever was refused the memory said what it was for? */
static bool tells_of_memory(const uir_diagnostics *diagnostics) {
    for (const uir_diagnostic *d = diagnostics ? diagnostics->first : NULL; d; d = d->next)
        if (d->severity == UIR_SEVERITY_ERROR && d->status == UIR_STATUS_OUT_OF_MEMORY) return true;
    return false;
}

uir_status uir_budget_end(uir_budget *budget, uir_status status, uir_diagnostics *diagnostics) {
    uir_watch_stop(&budget->watch);
    /* What nobody was refused anything for is whole, whatever was wished meanwhile. */
    bool over = is_stopped(budget);
    __atomic_store_n(&budget->runs, false, __ATOMIC_RELAXED);
    forget_cancel(budget);
    budget->also = NULL;
    if (!over) return status;
    uint32_t broken = __atomic_load_n(&budget->broken, __ATOMIC_RELAXED);
    if (!broken && __atomic_load_n(&budget->cancelled, __ATOMIC_RELAXED)) {
        if (status != UIR_STATUS_CANCELLED) uir_diagnostics_clear(diagnostics);
        return UIR_STATUS_CANCELLED;
    }
    if (!broken && status == UIR_STATUS_OUT_OF_MEMORY && tells_of_memory(diagnostics)) return status;
    const uir_location location = {.node = *budget->node ? budget->node : NULL, .op = *budget->op ? budget->op : NULL};
    const char *stage = budget->stage ? budget->stage : "";
    uir_diagnostics_clear(diagnostics);
    if (!broken)
        return uir_error(diagnostics, UIR_STATUS_OUT_OF_MEMORY, &location, "%s%s%s%s: out of memory", budget->what,
                         *stage ? " (" : "", stage, *stage ? ")" : "");
    return explain(budget, budget->what, broken - 1, __atomic_load_n(&budget->asked, __ATOMIC_RELAXED), diagnostics,
                   &location);
}
