/* Packages that nobody trusts: opened, and run three times at different sizes by the VM.
 *
 * The mutator changes sections and the plan's records and puts the package together anew, so that hashes are right and
 * what is behind them is reached; an input is a package file as any other. */
#include "backends/vm/vm.h"
#include "package/package.h"
#include "package/plan.h"
#include "runtime/runtime.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 3, MOST_INPUTS = 64 };

/* ---- running ---- */
static void cancel_run(void *user) {
    uir_runtime_cancel(user);
}

static uint64_t sum; /* of what outputs hold: a sanitizer sees that it is read, and that it was written */

static uir_status run(fuzz_case *c, uir_package *package, uir_runtime *r, int64_t size, uir_tensor **inputs) {
    uint32_t count = uir_package_input_count(package);
    if (count > MOST_INPUTS) return UIR_STATUS_LIMIT;
    for (uint32_t i = 0; i < count; i++) {
        uir_package_port port = uir_package_get_input(package, i);
        int64_t shape[UIR_PLAN_MAX_RANK];
        for (uint32_t d = 0; d < port.rank; d++) shape[d] = port.dims[d] >= 0 ? port.dims[d] : size;
        uir_tensor_release(inputs[i]);
        inputs[i] = fuzz_make_tensor(c, port.dtype, port.rank, shape, (uint64_t)size + i);
        if (!inputs[i]) return UIR_STATUS_LIMIT;
        UIR_TRY(uir_runtime_set_input(r, i, port.dtype, port.rank, shape, inputs[i]->data));
    }
    fuzz_watch_begin(cancel_run, r);
    uir_status status = uir_runtime_run(r);
    fuzz_watch_end();
    uir_runtime_forget_cancel(r);
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < uir_package_output_count(package); i++) {
        uir_runtime_output output;
        status = uir_runtime_get_output(r, i, &output);
        for (size_t b = 0; status == UIR_STATUS_OK && output.dtype != UIR_DTYPE_STRING && b < output.size; b++)
            if (((const unsigned char *)output.data)[b]) sum++;
    }
    return status;
}

/* A package that is in order is just what is written of its sections. */
static void require_same_package(fuzz_case *c, const uint8_t *bytes, size_t size) {
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t count;
    uir_text written;
    uir_text_init(&written, &c->allocator);
    if (uir_package_read(bytes, size, NULL, sections, &count) == UIR_STATUS_OK &&
        uir_package_write(sections, count, &written) == UIR_STATUS_OK)
        fuzz_require(written.length == size && memcmp(written.data, bytes, size) == 0,
                     "a package is written otherwise");
    uir_text_deinit(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int64_t sizes[RUNS] = {4, 9, 1};
    fuzz_case c;
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    uir_tensor *inputs[MOST_INPUTS] = {0};
    const uir_kernel_format *formats[] = {&uir_vm_format};
    uir_package_options options = {.formats = formats, .format_count = 1};
    uir_runtime_options threads = {.threads = 1};
    fuzz_begin(&c);
    uint8_t *bytes = uir_allocate(&c.allocator, size); /* aligned as a package is to be */
    if (bytes) {
        if (size) memcpy(bytes, data, size);
        require_same_package(&c, bytes, size);
        uir_status status = uir_package_open(bytes, size, &options, &c.allocator, &c.diagnostics, &package);
        fuzz_require_told(&c, status);
        if (status == UIR_STATUS_OK) status = uir_runtime_create(package, &threads, &c.allocator, &c.diagnostics, &r);
        for (int i = 0; r && i < RUNS; i++) (void)!run(&c, package, r, sizes[i], inputs);
        fuzz_count(package != NULL);
        uir_runtime_destroy(r);
        uir_package_close(package);
        for (uint32_t i = 0; i < MOST_INPUTS; i++) uir_tensor_release(inputs[i]);
        uir_release(&c.allocator, bytes, size);
    }
    fuzz_end(&c);
    return 0;
}

/* ---- mutating ---- */

static uint64_t random_state;
static uint64_t below(uint64_t n) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n ? (random_state >> 33) % n : 0;
}

/* A table of the plan, whatever its records are: they are made of words. */
typedef struct table {
    void **records;
    uint32_t *count;
    size_t size;
} table;

static void change_word(const table *t) {
    uint32_t word, words = (uint32_t)(t->size / 4);
    char *record = (char *)*t->records + t->size * below(*t->count), *at = record + 4 * below(words);
    const char *other = (char *)*t->records + t->size * below(*t->count) + (at - record);
    memcpy(&word, at, 4);
    switch (below(8)) {
    case 0:
    case 1:
    case 2:
        memcpy(&word, other, 4); /* of another record */
        break;
    case 3:
        word++;
        break;
    case 4:
        word--;
        break;
    case 5:
        word = (uint32_t)below(16);
        break;
    case 6:
        word = UINT32_MAX >> below(2);
        break;
    default:
        word ^= UINT32_C(1) << below(32);
    }
    memcpy(at, &word, 4);
}

/* A record doubled, dropped, or changed for another. */
static bool change_order(uir_arena *arena, const table *t) {
    char *records = *t->records, *a = records + t->size * below(*t->count), *b = records + t->size * below(*t->count);
    switch (below(3)) {
    case 0: {
        char *more = uir_arena_allocate(arena, t->size * ((size_t)*t->count + 1));
        if (!more) return false;
        size_t before = (size_t)(b - records);
        memcpy(more, records, before);
        memcpy(more + before, a, t->size);
        memcpy(more + before + t->size, b, t->size * *t->count - before);
        *t->records = more;
        ++*t->count;
        return true;
    }
    case 1:
        memmove(a, a + t->size, (size_t)(records + t->size * *t->count - a) - t->size);
        --*t->count;
        return true;
    default:
        for (size_t i = 0; i < t->size; i++) {
            char byte = a[i];
            a[i] = b[i], b[i] = byte;
        }
        return true;
    }
}

enum {
#define UIR_PLAN_TABLE(type, field) TABLE_##field,
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
        TABLES
};

static bool change_plan(uir_arena *arena, uir_plan *plan) {
    void *records[TABLES];
    table tables[TABLES];
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    records[TABLE_##field] = plan->field;                                                                              \
    tables[TABLE_##field] = (table){&records[TABLE_##field], &plan->field##_count, sizeof *plan->field};
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
    for (uint64_t n = 1 + below(3); n > 0;) {
        const table *t = &tables[below(TABLES)];
        if (!*t->count) continue; /* some table has a record: a plan has a block at the least */
        if (below(6))
            change_word(t);
        else if (!change_order(arena, t))
            return false;
        n--;
    }
#define UIR_PLAN_TABLE(type, field) plan->field = records[TABLE_##field];
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
    return true;
}

/* Constants that are whole again, of a plan that is in order. */
static void rehash_constants(uir_plan *plan, const uir_package_section *weights) {
    for (uint32_t i = 0; weights && i < plan->constants_count; i++) {
        uir_plan_constant *k = &plan->constants[i];
        if (k->offset <= weights->size && k->size <= weights->size - k->offset)
            k->hash = uir_package_hash(weights->data + k->offset, (size_t)k->size);
    }
}

typedef struct mutation {
    uir_allocator allocator;
    uir_arena arena;
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t count;
    uir_text plan, package;
} mutation;

static uir_package_section *find(mutation *m, uint32_t kind) {
    for (uint32_t i = 0; i < m->count; i++)
        if (m->sections[i].kind == kind) return &m->sections[i];
    return NULL;
}

static bool mutate_plan(mutation *m) {
    uir_package_section *plan_section = find(m, UIR_PACKAGE_PLAN), *code = find(m, UIR_PACKAGE_CODE),
                        *weights = find(m, UIR_PACKAGE_WEIGHTS);
    uir_plan plan;
    uint32_t natives = 0;
    for (uint32_t i = 0; i < m->count; i++) natives += m->sections[i].kind == UIR_PACKAGE_NATIVE;
    if (!plan_section ||
        uir_plan_read(&m->arena, plan_section->data, plan_section->size, code ? code->size : 0,
                      weights ? weights->size : 0, natives, NULL, &plan) != UIR_STATUS_OK ||
        !change_plan(&m->arena, &plan))
        return false;
    rehash_constants(&plan, weights);
    uir_plan_write(&plan, &m->plan);
    plan_section->data = (const unsigned char *)m->plan.data;
    plan_section->size = m->plan.length;
    return uir_text_status(&m->plan) == UIR_STATUS_OK;
}

static bool mutate_section(mutation *m, size_t room) {
    uir_package_section *s = &m->sections[below(m->count)];
    size_t capacity = (size_t)s->size + room;
    uint8_t *copy = uir_arena_allocate(&m->arena, capacity ? capacity : 1);
    if (!copy || !capacity) return false;
    if (s->size) memcpy(copy, s->data, (size_t)s->size);
    s->size = LLVMFuzzerMutate(copy, (size_t)s->size, capacity);
    s->data = copy;
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    mutation m = {.allocator = uir_allocator_system()};
    size_t made = 0;
    random_state = seed;
    uir_arena_init(&m.arena, &m.allocator);
    uir_text_init(&m.plan, &m.allocator);
    uir_text_init(&m.package, &m.allocator);
    uint8_t *copy = uir_allocate(&m.allocator, size);
    if (copy && size) memcpy(copy, data, size);
    if (copy && below(40) && uir_package_read(copy, size, NULL, m.sections, &m.count) == UIR_STATUS_OK && m.count) {
        bool changed = below(5) ? mutate_plan(&m) : mutate_section(&m, max_size > size ? (max_size - size) / 2 : 0);
        if (changed && uir_package_write(m.sections, m.count, &m.package) == UIR_STATUS_OK &&
            m.package.length <= max_size) {
            made = m.package.length;
            memcpy(data, m.package.data, made);
        }
    }
    if (copy) uir_release(&m.allocator, copy, size);
    uir_text_deinit(&m.package);
    uir_text_deinit(&m.plan);
    uir_arena_deinit(&m.arena);
    return made ? made : LLVMFuzzerMutate(data, size, max_size);
}
