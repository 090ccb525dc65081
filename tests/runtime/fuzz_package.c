/* Damaged packages: `fuzz_package COUNT [SEED [FILE]]`, of a package made here or of a file's; `null` for FILE: of one
 * made here for the null device, whose plan has domains, queues and waits, by devices of drawn seeds. A fourth of the
 * cases changes a byte anywhere: the package must be refused, at the latest by its first run. The others change the
 * plan or the code and make the hashes right again: words of the sections, or the plan's records, whose fields, lists
 * and order are changed to what others have. Then whatever happens stays within the runtime's memory, which the
 * sanitizers of such a build watch: a package that opens runs three times, with other sizes and data each time. */
#include "tests/runtime/support.h"

#include "package/plan.h"
#include "runtime/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kernels = /**/
    "igraph @twice on cpu {\n"
    "  dim N in 0..1000\n"
    "  tile t in 1..64\n"
    "  candidate t = 4 when N < 100 cost N\n"
    "  candidate t = 16 cost 50\n"
    "  ptr %x : dram f32 [N] in 0\n"
    "  ptr %w : dram f32 [N] work\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  ptr %s : sram f32 [t]\n"
    "  phase {\n"
    "    parallel p : ceildiv(N, t) group\n"
    "    move.dram.sram.f32 %s, %x[p*t:t]\n"
    "    binary.add.f32 %w[p*t:t], %s, %s\n"
    "  }\n"
    "  phase {\n"
    "    parallel p : ceildiv(N, t) group\n"
    "    move.dram.dram.f32 %y[p*t:t], %w[p*t:t]\n"
    "  }\n"
    "}\n" /**/
    KERNEL_SCALE;

static const char *const module_text =
    "module opset 17\nsize N\nsize T\nsize F\nsize K\nsize U\n"
    "constant %n: i64[] = [3]\n"
    "constant %c: f32[1] = [3]\n"
    "graph \"main\" (%x: f32[N], %q: bool[], %m: i64[], %boxes: f32[1, N, 4], %scores: f32[1, 1, N]) {\n"
    "    bind_dims(%m) {dims = [K]}\n"
    "    check_indices(%m) {low = [-1], high = [K + 1], of = \"m\"}\n"
    "    %d: f32[N] = group(%x, %c) {body = graph \"g\" (%a: f32[N], %k: f32[1]) {\n"
    "        %kb: f32[N] = broadcast(%k) {dims = [N]}\n"
    "        %b: f32[N] = mul(%a, %kb)\n"
    "        return %b\n"
    "    }, sizes = [N], kernel = \"scale\"}\n" /**/
    GROUP_TWICE("d2", "d", "1")                 /**/
    "    %r: f32[1, N] = reshape(%d2) {dims = [1, N]}\n"
    "    %l: f32[N], %o: f32[N], %rows: f32[T, N] = loop(%n, none, %d, %x) {body = graph \"b\" (%i: i64[], %go: "
    "bool[], "
    "%v: f32[N], %u: f32[N]) {\n"                                                                              /**/
    GROUP_TWICE("w", "v", "2")                                                                                 /**/
    "        %in: f32[N] = loop(%n, none, %w) {body = graph \"c\" (%i2: i64[], %go2: bool[], %v2: f32[N]) {\n" /**/
    GROUP_TWICE("w3", "v2", "3")                                                                               /**/
    "            return %go2, %w3\n        }}\n"
    "        return %go, %in, %v, %w\n    }}\n"
    "    %y: f32[N] = if(%q) {then = graph \"t\" () {\n" /**/
    GROUP_TWICE("p", "l", "4")                           /**/
    "        return %p\n    }, else = graph \"e\" () {\n"
    "        return %x\n    }}\n"
    "    %z: i64[1, F] = non_zero(%y)\n"
    "    %flat: i64[F] = reshape(%z) {dims = [F]}\n"
    "    %tv: f32[2], %j: i64[2] = top_k(%y) {axis = 0, k = [2], largest = 1, sorted = 1}\n"
    "    %nms: i64[U, 3] = non_max_suppression(%boxes, %scores, none, none, none) {center = 0}\n"
    "    %s: i64[2] = dim_values() {dims = [F, N*T + K], scalar = 0, dtype = i64}\n"
    "    return %y, %rows, %flat, %tv, %s, %r, %o, %nms\n"
    "}\n";

static uint64_t state;
static uint64_t below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

/* ---- an allocator that keeps to a limit: forged sizes ask for anything ---- */
typedef struct limited {
    uir_allocator under;
    size_t used;
} limited;

static void *limited_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    limited *l = user;
    if (new_size > ((size_t)64 << 20) || __atomic_load_n(&l->used, __ATOMIC_RELAXED) + new_size > (size_t)128 << 20)
        return NULL;
    void *result = l->under.resize(l->under.user, pointer, old_size, new_size);
    if (result || !new_size) __atomic_add_fetch(&l->used, new_size - (pointer ? old_size : 0), __ATOMIC_RELAXED);
    return result;
}

/* ---- a watchdog: a forged loop may never end ---- */
typedef struct watch {
    pthread_mutex_t mutex;
    pthread_cond_t over;
    bool done;
    uir_runtime *r;
} watch;

static void *watch_run(void *argument) {
    watch *w = argument;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 50000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    pthread_mutex_lock(&w->mutex);
    while (!w->done && pthread_cond_timedwait(&w->over, &w->mutex, &end) != ETIMEDOUT) {
    }
    if (!w->done) uir_runtime_cancel(w->r);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static uir_status run_watched(uir_runtime *r) {
    watch w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, r};
    pthread_t thread;
    bool watched = pthread_create(&thread, NULL, watch_run, &w) == 0;
    uir_status status = uir_runtime_run(r);
    pthread_mutex_lock(&w.mutex);
    w.done = true;
    pthread_cond_signal(&w.over);
    pthread_mutex_unlock(&w.mutex);
    if (watched) pthread_join(thread, NULL);
    return status;
}

/* ---- one case ---- */
enum { MOST_BYTES = 1 << 16 };
static _Alignas(64) unsigned char given[8][MOST_BYTES], taken[8][MOST_BYTES];

/* Data of the dtype: small numbers, so that indices and counts among them mean something. */
static void fill(uir_dtype dtype, void *data, size_t count) {
    uint64_t few = 1 + below(6);
    for (size_t i = 0; i < count; i++) {
        if (uir_dtype_is_float(dtype))
            uir_dtype_store_double(dtype, data, i, (double)below(few) - 1, UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(dtype, data, i, (int64_t)below(few), false, UIR_ROUND_NEAREST_EVEN);
    }
}

/* Strides of a packed tensor, but for room behind each stretch of some axis; how many elements that takes. */
static size_t spread(uint32_t rank, const int64_t *shape, int64_t *strides) {
    uint32_t axis = (uint32_t)below(rank);
    int64_t room = (int64_t)below(4), stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        stride *= shape[d] + (d == axis ? room : 0);
    }
    return (size_t)stride;
}

static uir_status set_inputs(uir_package *package, uir_runtime *r, int64_t size) {
    for (uint32_t i = 0; i < uir_package_input_count(package); i++) {
        uir_package_port port = uir_package_get_input(package, i);
        int64_t shape[UIR_PLAN_MAX_RANK];
        size_t needed;
        uint64_t count;
        for (uint32_t d = 0; d < port.rank; d++) shape[d] = port.dims[d] >= 0 ? port.dims[d] : size;
        if (!uir_shape_element_count(shape, port.rank, &count) || !uir_dtype_storage_size(port.dtype, count, &needed) ||
            needed > MOST_BYTES || uir_dtype_get_class(port.dtype) == UIR_DTYPE_CLASS_COMPLEX)
            return UIR_STATUS_BAD_DATA;
        int64_t strides[UIR_PLAN_MAX_RANK];
        size_t roomy =
            port.rank && count && count < 1000 ? spread(port.rank, shape, strides) * uir_dtype_bits(port.dtype) / 8 : 0;
        if (roomy && roomy <= MOST_BYTES && uir_dtype_bits(port.dtype) >= 8 && below(3) == 0) {
            void *data = given[i % 8] + MOST_BYTES - (roomy + 63) / 64 * 64;
            fill(port.dtype, data, roomy / (uir_dtype_bits(port.dtype) / 8));
            UIR_TRY(uir_runtime_set_input_strided(r, i, port.dtype, port.rank, shape, strides, data, roomy));
            continue;
        }
        unsigned char *end = given[i % 8] + MOST_BYTES; /* what lies behind is another's */
        void *data = end - (needed + 63) / 64 * 64;
        fill(port.dtype, data, (size_t)count);
        UIR_TRY(uir_runtime_set_input(r, i, port.dtype, port.rank, shape, data));
    }
    return UIR_STATUS_OK;
}

/* Some results go where the caller says, now and then over an input, or with room between their elements. */
static uir_status bind_outputs(uir_package *package, uir_runtime *r, int64_t size) {
    int64_t shapes[16][UIR_PLAN_MAX_RANK];
    const int64_t *of_inputs[16];
    for (uint32_t i = 0; i < uir_package_input_count(package) && i < 16; i++) {
        uir_package_port port = uir_package_get_input(package, i);
        for (uint32_t d = 0; d < port.rank; d++) shapes[i][d] = port.dims[d] >= 0 ? port.dims[d] : size;
        of_inputs[i] = shapes[i];
    }
    for (uint32_t i = 0; i < uir_package_output_count(package); i++) {
        uint64_t where = below(8);
        void *data = where == 0 ? given[i % 8] : where < 4 ? taken[i % 8] : NULL;
        uir_package_port port = uir_package_get_output(package, i);
        int64_t shape[UIR_PLAN_MAX_RANK], strides[UIR_PLAN_MAX_RANK];
        uint64_t count = 0;
        bool known = data && port.rank && uir_package_input_count(package) <= 16 &&
                     uir_runtime_find_shape(r, of_inputs, i, shape) == UIR_STATUS_OK;
        for (uint32_t d = 0; d < port.rank && known; d++) known = shape[d] >= 0;
        if (known && below(2) && uir_dtype_bits(port.dtype) >= 8 && uir_shape_element_count(shape, port.rank, &count) &&
            count && count < 1000) {
            size_t roomy = spread(port.rank, shape, strides) * uir_dtype_bits(port.dtype) / 8;
            UIR_TRY(uir_runtime_bind_output_strided(r, i, strides, data, roomy < MOST_BYTES ? roomy : MOST_BYTES));
        } else {
            UIR_TRY(uir_runtime_bind_output(r, i, data, data ? MOST_BYTES : 0));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status run_once(uir_package *package, uir_runtime *r, int64_t size) {
    uir_runtime_output output;
    UIR_TRY(set_inputs(package, r, size));
    UIR_TRY(bind_outputs(package, r, size));
    UIR_TRY(run_watched(r));
    for (uint32_t i = 0; i < uir_package_output_count(package); i++) {
        UIR_TRY(uir_runtime_get_output(r, i, &output));
        for (size_t b = 0; b < output.size; b++) state += ((const unsigned char *)output.data)[b];
    }
    return UIR_STATUS_OK;
}

static uint64_t runs; /* of all cases */

extern const uir_driver uir_null_driver;
static bool on_null;

static uir_package_options open_device(const uir_allocator *allocator) {
    uir_package_options options = open_by_vm;
    char seed[8];
    if (!on_null) return options;
    snprintf(seed, sizeof seed, "%u", (unsigned)below(64));
    const uir_driver_options device = {
        .allocator = allocator, .parameter = seed, .formats = options.formats, .format_count = options.format_count};
    options.driver = &uir_null_driver;
    if (uir_null_driver.open(&device, NULL, &options.device) != UIR_STATUS_OK) exit(1);
    return options;
}

static uir_status open_and_run(const char *bytes, size_t size) {
    limited l = {uir_allocator_system(), 0};
    uir_allocator allocator = {limited_resize, &l};
    uir_diagnostics diagnostics;
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    uir_runtime_options threads = {.threads = 1 + (uint32_t)below(2)};
    const int64_t sizes[] = {5, (int64_t)below(3), 3 + (int64_t)below(40)};
    uir_diagnostics_init(&diagnostics, &allocator);
    const uir_allocator system = uir_allocator_system();
    const uir_package_options options = open_device(&system);
    uir_status status = uir_package_open(bytes, size, &options, &allocator, &diagnostics, &package), first;
    first = status;
    if (status == UIR_STATUS_OK) status = uir_runtime_create(package, &threads, &allocator, &diagnostics, &r);
    if (first == UIR_STATUS_OK) first = status;
    for (int i = 0; status == UIR_STATUS_OK && i < 3; i++) { /* one that fails says nothing of the next */
        uir_status ran = run_once(package, r, sizes[i]);
        uir_diagnostics_clear(&diagnostics);
        if (i == 0) first = ran;
        runs++;
    }
    uir_runtime_destroy(r);
    uir_package_close(package);
    if (options.driver) options.driver->close(options.device);
    uir_diagnostics_deinit(&diagnostics);
    if (l.used) {
        printf("%zu bytes were not given back\n", l.used);
        exit(1);
    }
    return first;
}

/* Words of the plan or the code are changed, then the package is put together anew. */
static void forge_words(const uir_text *good, uir_text *out) {
    sections s;
    uir_allocator allocator = uir_allocator_system();
    find_sections(good, &s);
    uint32_t which = 0, wanted = below(4) ? UIR_PACKAGE_PLAN : UIR_PACKAGE_CODE; /* the plan, mostly */
    while (s.list[which].kind != wanted || s.list[which].size < 4)
        which = (which + 1) % s.count, wanted = UIR_PACKAGE_PLAN;
    size_t size = (size_t)s.list[which].size;
    unsigned char *copy = uir_allocate(&allocator, size);
    memcpy(copy, s.list[which].data, size);
    for (uint64_t n = 1 + below(3); n > 0; n--) {
        size_t at = below(size / 4) * 4;
        uint64_t kind = below(5);
        uint32_t word;
        memcpy(&word, copy + at, 4);
        word = kind == 0   ? (uint32_t)below(16)
               : kind == 1 ? word + 1
               : kind == 2 ? word - 1
               : kind == 3 ? UINT32_MAX
                           : word ^ 1u << below(32);
        memcpy(copy + at, &word, 4);
    }
    s.list[which].data = copy;
    out->length = 0;
    if (uir_package_write(s.list, s.count, out) != UIR_STATUS_OK) exit(1);
    uir_release(&allocator, copy, size);
}

/* ---- records of the plan ---- */
/* The fields of a record: 32 bits, or 64. */
typedef struct fields {
    struct {
        void *at;
        bool wide;
    } list[40];
    uint32_t count;
} fields;
static void note_field(fields *f, void *at, size_t size) {
    f->list[f->count].at = at;
    f->list[f->count++].wide = size == 8;
}
#define W(field) note_field(f, &(field), 4);
#define Q(field) note_field(f, &(field), 8);
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    static void list_##field(uir_plan *p, uint32_t i, fields *f) {                                                     \
        type *r = &p->field[i];                                                                                        \
        f->count = 0;                                                                                                  \
        type##_fields(W, Q, r)                                                                                         \
    }
UIR_PLAN_TABLES(UIR_PLAN_TABLE)
UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
#undef Q
#undef W

typedef struct table {
    void (*list)(uir_plan *p, uint32_t i, fields *f);
    uint32_t count, size;
    char *records;
} table;

static table pick_table(uir_plan *p) {
#define UIR_PLAN_TABLE(type, field) {list_##field, p->field##_count, sizeof(type), (char *)p->field},
    const table all[] = {UIR_PLAN_TABLES(UIR_PLAN_TABLE) UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)};
#undef UIR_PLAN_TABLE
    for (;;) {
        table t = all[below(sizeof all / sizeof *all)];
        /* What steps do, and with what, is the matter mostly. */
        if (below(2))
            t = (table){list_steps, p->steps_count, sizeof *p->steps, (char *)p->steps};
        else if (below(2))
            t = (table){list_words, p->words_count, sizeof *p->words, (char *)p->words};
        else if (p->schedules_count && below(2))
            t = (table){list_schedules, p->schedules_count, sizeof *p->schedules, (char *)p->schedules};
        else if (below(2))
            t = (table){list_tensors, p->tensors_count, sizeof *p->tensors, (char *)p->tensors};
        if (t.count) return t;
    }
}

static void change_field(uir_plan *p, const table *t, uint32_t i) {
    fields f, g;
    t->list(p, i, &f);
    t->list(p, (uint32_t)below(t->count), &g); /* of another record */
    uint32_t at = (uint32_t)below(f.count);
    uint64_t value = 0, other = 0, kind = below(8);
    memcpy(&value, f.list[at].at, f.list[at].wide ? 8 : 4);
    memcpy(&other, g.list[at].at, f.list[at].wide ? 8 : 4);
    value = kind < 3    ? other
            : kind == 3 ? value + 1
            : kind == 4 ? value - 1
            : kind == 5 ? UINT64_MAX
            : kind == 6 ? below(16)
                        : value ^ 1u << below(32);
    memcpy(f.list[at].at, &value, f.list[at].wide ? 8 : 4);
}

static void swap_records(const table *t, uint32_t i, uint32_t k) {
    char kept[256];
    memcpy(kept, t->records + (size_t)i * t->size, t->size);
    memcpy(t->records + (size_t)i * t->size, t->records + (size_t)k * t->size, t->size);
    memcpy(t->records + (size_t)k * t->size, kept, t->size);
}

/* An operand, a result or a size of a step becomes another step's. */
static void change_operand(uir_plan *p) {
    const uir_plan_step *s = &p->steps[below(p->steps_count)], *o = &p->steps[below(p->steps_count)];
    const uir_plan_list to[] = {s->inputs, s->outputs, s->values}, from[] = {o->inputs, o->outputs, o->values};
    uint64_t k = below(3), of = k == 2 ? 2 : below(2);
    if (!to[k].count || !from[of].count) return;
    uint64_t there = to[k].first + below(to[k].count), here = from[of].first + below(from[of].count);
    if (there < p->words_count && here < p->words_count) p->words[there] = p->words[here];
}

static void change_plan(uir_plan *p) {
    for (uint64_t n = 1 + below(3); n > 0; n--) {
        uint64_t kind = below(8);
        table t = pick_table(p);
        uint32_t i = (uint32_t)below(t.count);
        if (kind < 4)
            change_field(p, &t, i);
        else if (kind == 4)
            swap_records(&t, i, (uint32_t)below(t.count));
        else if (kind == 5)
            swap_records(&(table){NULL, 0, sizeof *p->steps, (char *)p->steps}, (uint32_t)below(p->steps_count),
                         (uint32_t)below(p->steps_count));
        else
            change_operand(p);
    }
}

static void forge_records(const uir_text *good, uir_text *out) {
    sections s;
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_text bytes;
    uir_plan plan;
    uir_arena_init(&arena, &allocator);
    uir_text_init(&bytes, &allocator);
    find_sections(good, &s);
    if (read_plan(&s, s.plan->data, (size_t)s.plan->size, &arena, &plan) != UIR_STATUS_OK) exit(1);
    change_plan(&plan);
    uir_plan_write(&plan, &bytes);
    s.plan->data = (const unsigned char *)bytes.data;
    s.plan->size = bytes.length;
    out->length = 0;
    if (uir_text_status(&bytes) != UIR_STATUS_OK || uir_package_write(s.list, s.count, out) != UIR_STATUS_OK) exit(1);
    uir_text_deinit(&bytes);
    uir_arena_deinit(&arena);
}

static void read_package(const char *path, uir_text *out) {
    char part[4096];
    size_t length;
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("%s: cannot be opened\n", path);
        exit(1);
    }
    while ((length = fread(part, 1, sizeof part, file)) > 0) uir_text_append(out, part, length);
    fclose(file);
    if (uir_text_status(out) != UIR_STATUS_OK) exit(1);
}

int main(int count, char **arguments) {
    uint64_t cases = count > 1 ? strtoull(arguments[1], NULL, 10) : 5000, refused = 0, ran = 0, failed = 0;
    state = count > 2 ? strtoull(arguments[2], NULL, 10) * 2654435761u + 88172645463325252u : 88172645463325252u;
    fixture f;
    uir_text bytes;
    fixture_init(&f);
    on_null = count > 3 && !strcmp(arguments[3], "null");
    if (count > 3 && !on_null)
        read_package(arguments[3], &f.package);
    else
        check_ok(&f, fixture_build(&f, module_text, kernels));
    if (on_null) {
        const uir_plan_options for_null = {.device = "null"};
        f.package.length = 0;
        check_ok(&f, fixture_plan(&f, &for_null, &f.allocator, &f.package));
        count = 3;
    }
    uir_text_init(&bytes, &f.allocator);
    uir_status as_it_is = open_and_run(f.package.data, f.package.length); /* what data a file's wants is not known */
    if (count <= 3 || as_it_is == UIR_STATUS_BAD_FILE) check_ok(&f, as_it_is);
    for (uint64_t i = 0; i < cases; i++) {
        uir_status status;
        if (i % 4) {
            (i % 4 == 1 ? forge_words : forge_records)(&f.package, &bytes);
            status = open_and_run(bytes.data, bytes.length);
            if (status == UIR_STATUS_OK)
                ran++;
            else if (status == UIR_STATUS_BAD_FILE)
                refused++;
            else
                failed++;
            continue;
        }
        bytes.length = 0;
        uir_text_append(&bytes, f.package.data, f.package.length);
        size_t at = below(bytes.length);
        bytes.data[at] = (char)(bytes.data[at] ^ (1 + (int)below(255)));
        status = open_and_run(bytes.data, bytes.length);
        if (status != UIR_STATUS_BAD_FILE) {
            printf("case %llu: byte %zu of %zu was changed, and the status is: %s\n", (unsigned long long)i, at,
                   bytes.length, uir_status_text(status));
            return 1;
        }
    }
    printf("%llu damaged packages: all of those with a wrong hash refused; forged ones: %llu refused, %llu failed, "
           "%llu ran; %llu runs in all\n",
           (unsigned long long)cases, (unsigned long long)refused, (unsigned long long)failed, (unsigned long long)ran,
           (unsigned long long)runs);
    uir_text_deinit(&bytes);
    fixture_deinit(&f);
    return 0;
}
