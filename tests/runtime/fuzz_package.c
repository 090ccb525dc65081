/* Damaged packages: `fuzz_package COUNT [SEED [FILE]]`, of a package made here or of a file's. Half of the cases change
 * a byte anywhere: the package must be refused, at the latest by its first run. The others change words of the plan or
 * the code and make the hashes right again: then whatever happens stays within the runtime's memory, which the
 * sanitizers of such a build watch. */
#include "tests/runtime/support.h"

#include "runtime/plan.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const kernels = "igraph @twice on cpu {\n"
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
                                   "}\n"
                                   "igraph @scale on cpu {\n"
                                   "  dim N in 0..1000\n"
                                   "  ptr %x : dram f32 [N] in 0\n"
                                   "  ptr %c : dram f32 [1] const 1\n"
                                   "  ptr %y : dram f32 [N] out 0\n"
                                   "  phase {\n"
                                   "    binary.mul.f32 %y[0:N], %x[0:N], %c\n"
                                   "  }\n"
                                   "}\n";

static const char *const module_text =
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "size F\n"
    "constant %n: i64[] = [3]\n"
    "constant %c: f32[1] = [3]\n"
    "graph \"main\" (%x: f32[N], %q: bool[]) {\n"
    "    %d: f32[N] = group(%x, %c) {body = graph \"g\" (%a: f32[N], %k: f32[1]) {\n"
    "        %kb: f32[N] = broadcast(%k) {dims = [N]}\n"
    "        %b: f32[N] = mul(%a, %kb)\n"
    "        return %b\n"
    "    }, sizes = [N], kernel = \"scale\"}\n"
    "    %l: f32[N], %rows: f32[T, N] = loop(%n, none, %d) {body = graph \"b\" (%i: i64[], %go: bool[], %v: f32[N]) {\n"
    "        %w: f32[N] = group(%v) {body = graph \"g2\" (%a2: f32[N]) {\n"
    "            %b2: f32[N] = add(%a2, %a2)\n"
    "            return %b2\n"
    "        }, sizes = [N], kernel = \"twice\"}\n"
    "        return %go, %w, %v\n"
    "    }}\n"
    "    %y: f32[N] = if(%q) {then = graph \"t\" () {\n"
    "        %u: f32[N] = group(%l) {body = graph \"g3\" (%a3: f32[N]) {\n"
    "            %b3: f32[N] = add(%a3, %a3)\n"
    "            return %b3\n"
    "        }, sizes = [N], kernel = \"twice\"}\n"
    "        return %u\n"
    "    }, else = graph \"e\" () {\n"
    "        return %x\n"
    "    }}\n"
    "    %z: i64[1, F] = non_zero(%y)\n"
    "    %flat: i64[F] = reshape(%z) {dims = [F]}\n"
    "    %tv: f32[2], %j: i64[2] = top_k(%y) {axis = 0, k = [2], largest = 1, sorted = 1}\n"
    "    %s: i64[2] = dim_values() {dims = [F, N*T], scalar = 0, dtype = i64}\n"
    "    return %y, %rows, %flat, %tv, %s\n"
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
    end.tv_nsec += 200000000;
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
static float numbers[1 << 16];

static uir_status open_and_run(const char *bytes, size_t size) {
    limited l = {uir_allocator_system(), 0};
    uir_allocator allocator = {limited_resize, &l};
    uir_diagnostics diagnostics;
    uir_package *package = NULL;
    uir_runtime *r = NULL;
    const uir_driver *drivers[] = {&uir_vm_driver};
    uir_package_options options = {.drivers = drivers, .driver_count = 1};
    uir_runtime_options threads = {.threads = 1 + (uint32_t)below(2)};
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_status status = uir_package_open(bytes, size, &options, &allocator, &diagnostics, &package);
    if (status == UIR_STATUS_OK) status = uir_runtime_create(package, &threads, &allocator, &diagnostics, &r);
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < uir_package_input_count(package); i++) {
        uir_package_port port = uir_package_get_input(package, i);
        int64_t shape[UIR_PLAN_MAX_RANK];
        size_t needed;
        uint64_t count = 1;
        for (uint32_t d = 0; d < port.rank; d++) count *= (uint64_t)(shape[d] = port.dims[d] >= 0 ? port.dims[d] : 5);
        if (!uir_dtype_storage_size(port.dtype, count, &needed) || needed > sizeof numbers)
            status = UIR_STATUS_BAD_DATA;
        else
            status = uir_runtime_set_input(r, i, port.dtype, port.rank, shape, numbers);
    }
    if (status == UIR_STATUS_OK) status = run_watched(r);
    uir_runtime_output output;
    for (uint32_t i = 0; status == UIR_STATUS_OK && i < uir_package_output_count(package); i++) {
        status = uir_runtime_get_output(r, i, &output);
        for (size_t b = 0; status == UIR_STATUS_OK && b < output.size; b++)
            state += ((const unsigned char *)output.data)[b];
    }
    uir_runtime_destroy(r);
    uir_package_close(package);
    uir_diagnostics_deinit(&diagnostics);
    if (l.used) {
        printf("%zu bytes were not given back\n", l.used);
        exit(1);
    }
    return status;
}

/* Words of the plan or the code are changed, then the package is put together anew. */
static void forge(const uir_text *good, uir_text *out) {
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t count;
    uir_allocator allocator = uir_allocator_system();
    if (uir_package_read(good->data, good->length, NULL, sections, &count) != UIR_STATUS_OK) exit(1);
    uint32_t which = 0, wanted = below(4) ? UIR_PACKAGE_PLAN : UIR_PACKAGE_CODE; /* the plan, mostly */
    while (sections[which].kind != wanted) which++;
    size_t size = (size_t)sections[which].size;
    unsigned char *copy = uir_allocate(&allocator, size);
    memcpy(copy, sections[which].data, size);
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
    sections[which].data = copy;
    out->length = 0;
    if (uir_package_write(sections, count, out) != UIR_STATUS_OK) exit(1);
    uir_release(&allocator, copy, size);
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
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) numbers[i] = (float)(i % 5);
    if (count > 3)
        read_package(arguments[3], &f.package);
    else
        check_ok(&f, fixture_build(&f, module_text, kernels));
    uir_text_init(&bytes, &f.allocator);
    check_ok(&f, open_and_run(f.package.data, f.package.length));
    for (uint64_t i = 0; i < cases; i++) {
        uir_status status;
        if (i % 2) {
            forge(&f.package, &bytes);
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
           "%llu ran\n",
           (unsigned long long)cases, (unsigned long long)refused, (unsigned long long)failed, (unsigned long long)ran);
    uir_text_deinit(&bytes);
    fixture_deinit(&f);
    return 0;
}
