/* Runs an iGraph on a device of this build: binds sizes, makes or reads data, packs it into the pointers' layouts,
 * runs, checks against the interpreter bit for bit, times. */
#define _POSIX_C_SOURCE 200809L
#include "opt.h"
#include "tools/run/printable.h"
#include "compile/kernel.h"
#include "ir/kernel/igraph_estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct buffer {
    uint32_t pointer;
    int64_t shape[UIR_IGRAPH_MAX_RANK];
    int64_t elements; /* of the row-major tensor */
    size_t row_bytes; /* of the row-major tensor */
    size_t bytes;     /* in the pointer's layout */
    void *row_major, *packed;
} buffer;

typedef struct run_state {
    const opt_options *options;
    const uir_igraph *igraph;
    const uir_loop_function *loops; /* that --check holds it to as well; NULL: none */
    uir_diagnostics *diagnostics;
    uir_allocator allocator;
    int64_t *dims, *tiles, *values;
    bool *bound;
    buffer *buffers;
    uint32_t buffer_count;
    void **pointers;
    size_t *sizes;
    bool quiet; /* only looks whether it would run */
} run_state;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uir_status usage(const char *format, const char *a, const char *b) {
    fputs("uir-opt: error: ", stderr);
    print_safely(stderr, format, a, b);
    fputc('\n', stderr);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static const char *device_of(const opt_options *options) {
    return options->device ? options->device : "interpreter";
}

/* ---- sizes ---- */
static uir_status no_symbol(const run_state *s, uir_isymbol_kind kind, const char *option, const char *text) {
    print_safely(stderr, "uir-opt: error: --%s %s: @%s has no %s of that name; known:", option, text, s->igraph->name,
                 option);
    for (uint32_t k = 0; k < s->igraph->symbols.count; k++)
        if (s->igraph->symbols.data[k].kind == kind) print_safely(stderr, " %s", s->igraph->symbols.data[k].name);
    fputc('\n', stderr);
    return UIR_STATUS_INVALID_ARGUMENT;
}

/* Sets the symbols of one kind from "NAME=N" words; `given[i]` says which. */
static uir_status take_sizes(run_state *s, const opt_list *list, uir_isymbol_kind kind, const char *option,
                             int64_t *values, bool *given) {
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i];
        opt_size size;
        bool reads = opt_read_size(text, &size);
        if (!reads && s->quiet) return UIR_STATUS_INVALID_ARGUMENT;
        if (!reads) return usage("--%s %s: write NAME=NUMBER", option, text);
        uint32_t at = 0;
        bool found = false;
        for (uint32_t k = 0; k < s->igraph->symbols.count; k++) {
            const uir_isymbol *symbol = &s->igraph->symbols.data[k];
            if (symbol->kind != kind) continue;
            if (opt_size_is_of(&size, symbol->name)) {
                values[at] = size.value;
                given[at] = found = true;
            }
            at++;
        }
        if (!found && s->quiet) return UIR_STATUS_INVALID_ARGUMENT;
        if (!found) return no_symbol(s, kind, option, text);
    }
    return UIR_STATUS_OK;
}

/* What a kernel's tied result begins with lies in its operand. */
static void begin_tied(const run_state *s, void *const *pointers) {
    for (uint32_t i = 0; i < s->buffer_count; i++) {
        uint32_t tied = s->igraph->pointers.data[s->buffers[i].pointer].tied;
        for (uint32_t k = 0; tied != UINT32_MAX && k < s->buffer_count; k++)
            if (s->buffers[k].pointer == tied && s->sizes[i] && s->sizes[i] == s->sizes[k])
                memcpy(pointers[i], pointers[k], s->sizes[i]);
    }
}

static uir_status bind_sizes(run_state *s) {
    uint32_t dim_count = uir_igraph_count_symbols(s->igraph, UIR_ISYMBOL_DIM),
             tile_count = uir_igraph_count_symbols(s->igraph, UIR_ISYMBOL_TILE);
    uint32_t symbols = uir_dims_symbol_count(s->igraph->dims);
    bool *given = calloc((size_t)dim_count + tile_count + 2, sizeof *given);
    s->dims = calloc((size_t)dim_count + 1, sizeof *s->dims);
    s->tiles = calloc((size_t)tile_count + 1, sizeof *s->tiles);
    s->values = calloc((size_t)symbols + 1, sizeof *s->values);
    s->bound = calloc((size_t)symbols + 1, sizeof *s->bound);
    if (!given || !s->dims || !s->tiles || !s->values || !s->bound) {
        free(given);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    uint32_t at = 0;
    for (uint32_t k = 0; k < s->igraph->symbols.count; k++) {
        if (s->igraph->symbols.data[k].kind == UIR_ISYMBOL_DIM)
            s->dims[at++] = opt_free_size(s->igraph->dims, s->igraph->symbols.data[k].symbol);
    }
    bool *given_tiles = given + dim_count + 1;
    uir_status status = take_sizes(s, &s->options->dims, UIR_ISYMBOL_DIM, "dim", s->dims, given);
    if (status == UIR_STATUS_OK)
        status = uir_igraph_choose_tiles(s->igraph, s->dims, s->options->threads, s->tiles,
                                         s->options->tiles.count ? NULL : s->diagnostics);
    if (status == UIR_STATUS_NOT_FOUND && s->options->tiles.count == tile_count)
        status = UIR_STATUS_OK; /* all are given below */
    if (status == UIR_STATUS_OK)
        status = take_sizes(s, &s->options->tiles, UIR_ISYMBOL_TILE, "tile", s->tiles, given_tiles);
    if (status == UIR_STATUS_OK)
        status = uir_igraph_bind(s->igraph, s->dims, s->tiles, s->values, s->bound, s->diagnostics);
    free(given);
    return status;
}

static bool evaluate(const run_state *s, uir_dim dim, int64_t *out) {
    return uir_dim_evaluate(s->igraph->dims, dim, s->values, s->bound, uir_dims_symbol_count(s->igraph->dims), out) ==
           UIR_DIM_EVALUATED;
}

/* ---- data ---- */
static bool is_argument(const uir_ipointer *p) {
    return p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST;
}

static uir_status misfit(const uir_ipointer *p, const buffer *b, const char *file, const uir_value *value) {
    print_safely(stderr, "uir-opt: error: '%s' has %s[", file, uir_dtype_name(uir_value_get_dtype(value)));
    for (uint32_t d = 0; d < uir_value_get_rank(value); d++)
        print_safely(stderr, "%s%lld", d ? "," : "", (long long)uir_value_get_shape(value)[d]);
    print_safely(stderr, "], but %%%s is %s[", p->name, uir_dtype_name(p->dtype));
    for (uint32_t d = 0; d < p->rank; d++) print_safely(stderr, "%s%lld", d ? "," : "", (long long)b->shape[d]);
    fputs("]\n", stderr);
    return UIR_STATUS_BAD_DATA;
}

/* Every --input names a pointer that takes data. */
static uir_status check_inputs(const run_state *s) {
    for (size_t i = 0; i < s->options->inputs.count; i++) {
        const char *text = s->options->inputs.items[i], *equals = strchr(text, '=');
        if (!equals) return usage("--input %s: write NAME=%s", text, "FILE.npy");
        bool found = false;
        for (uint32_t k = 0; k < s->igraph->pointers.count && !found; k++) {
            const uir_ipointer *p = &s->igraph->pointers.data[k];
            found = is_argument(p) && strlen(p->name) == (size_t)(equals - text) &&
                    !memcmp(p->name, text, (size_t)(equals - text));
        }
        if (!found) return usage("--input %s: @%s has no input or constant of that name", text, s->igraph->name);
    }
    return UIR_STATUS_OK;
}

static uir_status fill_buffer(run_state *s, uir_context *context, buffer *b, uint32_t number) {
    const uir_ipointer *p = &s->igraph->pointers.data[b->pointer];
    const char *file = opt_given_file(s->options, p->name);
    uir_value *value = NULL;
    uir_status status;
    if (file) {
        status = uir_value_load_file(context, file, NULL, UIR_VALUE_TENSOR, &value);
        bool fits =
            status == UIR_STATUS_OK && uir_value_get_dtype(value) == p->dtype && uir_value_get_rank(value) == p->rank;
        for (uint32_t d = 0; fits && d < p->rank; d++) fits = uir_value_get_shape(value)[d] == b->shape[d];
        if (status == UIR_STATUS_OK && !fits) status = misfit(p, b, file, value);
    } else {
        bool real = uir_dtype_is_float(p->dtype);
        status = uir_value_create_tensor(context, p->dtype, p->rank, b->shape, &value);
        if (status == UIR_STATUS_OK)
            status =
                uir_value_fill_random(value, (uint64_t)s->options->random * 1000 + number, real ? -1 : 0, real ? 1 : 7);
    }
    if (status == UIR_STATUS_OK && b->row_bytes) memcpy(b->row_major, uir_value_get_data(value), b->row_bytes);
    if (status == UIR_STATUS_OK) status = uir_igraph_pack(s->igraph, b->pointer, s->values, b->row_major, b->packed);
    opt_report_context(context);
    uir_value_destroy(value);
    return status;
}

static uir_status make_buffers(run_state *s, uir_context *context) {
    uint32_t count = s->igraph->pointers.count;
    s->buffers = calloc((size_t)count + 1, sizeof *s->buffers);
    s->pointers = calloc((size_t)count + 1, sizeof *s->pointers);
    s->sizes = calloc((size_t)count + 1, sizeof *s->sizes);
    if (!s->buffers || !s->pointers || !s->sizes) return UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const uir_ipointer *p = &s->igraph->pointers.data[i];
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        buffer *b = &s->buffers[s->buffer_count];
        int64_t span = 0;
        uint64_t elements = 1;
        b->pointer = i;
        bool fine = evaluate(s, p->element_span, &span);
        for (uint32_t d = 0; fine && d < p->rank; d++) fine = evaluate(s, p->extents[d], &b->shape[d]);
        fine = fine && uir_shape_element_count(b->shape, p->rank, &elements) &&
               uir_dtype_storage_size(p->dtype, elements, &b->row_bytes) &&
               uir_dtype_storage_size(p->dtype, span > 0 ? (uint64_t)span : 0, &b->bytes);
        if (!fine) return usage("the size of %%%s%s cannot be computed", p->name, "");
        b->elements = (int64_t)elements;
        b->row_major = uir_allocate_zeroed(&s->allocator, b->row_bytes);
        b->packed = uir_allocate_zeroed(&s->allocator, b->bytes);
        if (!b->row_major || !b->packed) return UIR_STATUS_OUT_OF_MEMORY;
        s->pointers[s->buffer_count] = b->packed;
        s->sizes[s->buffer_count++] = b->bytes;
        if (is_argument(p)) {
            uir_status status = fill_buffer(s, context, b, i);
            if (status != UIR_STATUS_OK) return status;
        }
    }
    return UIR_STATUS_OK;
}

static void free_state(run_state *s) {
    for (uint32_t i = 0; i < s->buffer_count; i++) {
        uir_release(&s->allocator, s->buffers[i].row_major, s->buffers[i].row_bytes);
        uir_release(&s->allocator, s->buffers[i].packed, s->buffers[i].bytes);
    }
    free(s->buffers);
    free(s->pointers);
    free(s->sizes);
    free(s->dims);
    free(s->tiles);
    free(s->values);
    free(s->bound);
}

/* ---- results ---- */
static void print_sizes(const run_state *s) {
    uint32_t dim = 0, tile = 0;
    print_safely(stdout, "@%s on %s:", s->igraph->name, device_of(s->options));
    for (uint32_t k = 0; k < s->igraph->symbols.count; k++) {
        const uir_isymbol *symbol = &s->igraph->symbols.data[k];
        if (symbol->kind == UIR_ISYMBOL_DIM) print_safely(stdout, " %s=%lld", symbol->name, (long long)s->dims[dim++]);
        if (symbol->kind == UIR_ISYMBOL_TILE)
            print_safely(stdout, " %s=%lld", symbol->name, (long long)s->tiles[tile++]);
    }
    putchar('\n');
}

static double element(const buffer *b, uir_dtype dtype, int64_t i) {
    if (uir_dtype_is_float(dtype)) return uir_dtype_load_double(dtype, b->row_major, (uint64_t)i);
    return (double)uir_dtype_load_integer(dtype, b->row_major, (uint64_t)i);
}

static uir_status show_outputs(run_state *s, uir_context *context) {
    for (uint32_t i = 0; i < s->buffer_count; i++) {
        buffer *b = &s->buffers[i];
        const uir_ipointer *p = &s->igraph->pointers.data[b->pointer];
        if (p->role != UIR_IPOINTER_OUT) continue;
        uir_status status = uir_igraph_unpack(s->igraph, b->pointer, s->values, b->packed, b->row_major);
        if (status != UIR_STATUS_OK) return status;
        double least = INFINITY, greatest = -INFINITY, mean = 0;
        for (int64_t e = 0; e < b->elements; e++) {
            double x = element(b, p->dtype, e);
            least = x < least ? x : least;
            greatest = x > greatest ? x : greatest;
            mean += (x - mean) / (double)(e + 1);
        }
        print_safely(stdout, "  %%%s %s[", p->name, uir_dtype_name(p->dtype));
        for (uint32_t d = 0; d < p->rank; d++) print_safely(stdout, "%s%lld", d ? "," : "", (long long)b->shape[d]);
        if (b->elements)
            print_safely(stdout, "]  min %.6g  max %.6g  mean %.6g  [", least, greatest, mean);
        else
            print_safely(stdout, "]  empty  [");
        for (int64_t e = 0; e < b->elements && e < 4; e++)
            print_safely(stdout, "%s%.6g", e ? " " : "", element(b, p->dtype, e));
        puts(b->elements > 4 ? " ...]" : "]");
        if (!s->options->save) continue;
        uir_value *value = NULL;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.npy", s->options->save, p->name);
        status =
            uir_value_create_tensor_borrowed(context, p->dtype, p->rank, b->shape, b->row_major, b->row_bytes, &value);
        if (status == UIR_STATUS_OK) status = uir_value_save_file(context, value, path, p->name);
        uir_value_destroy(value);
        if (status != UIR_STATUS_OK) {
            opt_report_context(context);
            return status;
        }
    }
    return UIR_STATUS_OK;
}

/* Equality of bits, but that any NaN equals any NaN. */
static bool equal_elements(const uir_ipointer *p, const buffer *a, const void *other, int64_t *out_at) {
    for (int64_t e = 0; e < a->elements; e++) {
        if (uir_dtype_is_float(p->dtype)) {
            double x = uir_dtype_load_double(p->dtype, a->row_major, (uint64_t)e),
                   y = uir_dtype_load_double(p->dtype, other, (uint64_t)e);
            if ((x != x && y != y) || (x == y && signbit(x) == signbit(y))) continue;
        } else if (uir_dtype_load_integer(p->dtype, a->row_major, (uint64_t)e) ==
                   uir_dtype_load_integer(p->dtype, other, (uint64_t)e)) {
            continue;
        }
        *out_at = e;
        return false;
    }
    return true;
}

/* Runs the interpreter on buffers of its own and compares every output with what show_outputs left in row_major. */
static uir_status check(run_state *s) {
    void **pointers = calloc((size_t)s->buffer_count + 1, sizeof *pointers);
    uir_status status = pointers ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < s->buffer_count && status == UIR_STATUS_OK; i++) {
        bool given = is_argument(&s->igraph->pointers.data[s->buffers[i].pointer]);
        pointers[i] = given ? s->pointers[i] : uir_allocate_zeroed(&s->allocator, s->sizes[i]);
        if (!pointers[i]) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_kernel_arguments arguments = {s->dims, s->tiles, pointers};
    if (status == UIR_STATUS_OK) begin_tied(s, pointers);
    if (status == UIR_STATUS_OK) status = uir_igraph_interpret(s->igraph, &arguments, NULL, s->diagnostics);
    for (uint32_t i = 0; i < s->buffer_count && status == UIR_STATUS_OK; i++) {
        const uir_ipointer *p = &s->igraph->pointers.data[s->buffers[i].pointer];
        if (p->role != UIR_IPOINTER_OUT) continue;
        int64_t at = 0;
        void *row_major = uir_allocate_zeroed(&s->allocator, s->buffers[i].row_bytes);
        status = row_major ? uir_igraph_unpack(s->igraph, s->buffers[i].pointer, s->values, pointers[i], row_major)
                           : UIR_STATUS_OUT_OF_MEMORY;
        if (status == UIR_STATUS_OK && !equal_elements(p, &s->buffers[i], row_major, &at)) {
            complain(NULL, "%%%s differs from the interpreter at element %lld", p->name, (long long)at);
            status = UIR_STATUS_DIFFERENT;
        }
        uir_release(&s->allocator, row_major, s->buffers[i].row_bytes);
    }
    for (uint32_t i = 0; pointers && i < s->buffer_count; i++) {
        if (pointers[i] != s->pointers[i]) uir_release(&s->allocator, pointers[i], s->sizes[i]);
    }
    free(pointers);
    if (status == UIR_STATUS_OK) puts("  agrees with the interpreter in every bit");
    return status;
}

/* ---- against the loops before any step ---- */
static uir_ipointer_role role_of(const uir_loop_tensor *t, bool packed) {
    return t->role == UIR_LOOP_ROLE_OUT ? UIR_IPOINTER_OUT : packed ? UIR_IPOINTER_CONST : UIR_IPOINTER_IN;
}

/* The kernel's data of a loop function's argument: of several pointers for one, that of the same name. */
static const buffer *find_argument(const run_state *s, const uir_loop_tensor *t) {
    const buffer *found = NULL;
    for (uint32_t i = 0; i < s->buffer_count; i++) {
        const uir_ipointer *p = &s->igraph->pointers.data[s->buffers[i].pointer];
        if ((p->role != role_of(t, false) && p->role != role_of(t, true)) || p->role_index != t->index) continue;
        if (!found || !strcmp(p->name, t->name)) found = &s->buffers[i];
    }
    return found;
}

/* `results` in the order of the loop function's arguments, NULL for operands. */
static uir_status compare_with_loops(run_state *s, uir_context *context, void *const *results) {
    bool differs = false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->loops->tensors.count; i++) {
        const uir_loop_tensor *t = &s->loops->tensors.data[i];
        if (t->role == UIR_LOOP_ROLE_TEMP) continue;
        const void *wanted = results[at++];
        if (!wanted) continue;
        const buffer *b = find_argument(s, t);
        const uir_ipointer *p = &s->igraph->pointers.data[b->pointer];
        uir_value *actual = NULL, *expected = NULL;
        uir_comparison c = {.struct_size = sizeof c};
        uir_status status =
            uir_value_create_tensor_borrowed(context, p->dtype, p->rank, b->shape, b->row_major, b->row_bytes, &actual);
        if (status == UIR_STATUS_OK)
            status =
                uir_value_create_tensor_borrowed(context, p->dtype, p->rank, b->shape, wanted, b->row_bytes, &expected);
        if (status == UIR_STATUS_OK) status = uir_value_compare(actual, expected, NULL, &c);
        uir_value_destroy(actual);
        uir_value_destroy(expected);
        opt_report_context(context);
        UIR_TRY(status);
        if (!c.agree) complain(NULL, "%%%s differs from the loops before any step: %s", p->name, c.text);
        differs |= !c.agree;
    }
    if (!differs) puts("  agrees with the loops before any step, within the tolerance of the dtype");
    return differs ? UIR_STATUS_DIFFERENT : UIR_STATUS_OK;
}

/* Interprets the loops on the kernel's operands. */
static uir_status check_loops(run_state *s, uir_context *context) {
    const uir_loop_function *f = s->loops;
    void **data = calloc((size_t)f->tensors.count + 1, sizeof *data),
         **results = calloc((size_t)f->tensors.count + 1, sizeof *results);
    uint32_t count = 0;
    uir_status status = data && results ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < f->tensors.count && status == UIR_STATUS_OK; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        const buffer *b = t->role == UIR_LOOP_ROLE_TEMP ? NULL : find_argument(s, t);
        if (t->role == UIR_LOOP_ROLE_TEMP) continue;
        if (!b) {
            status = usage("--check: the kernel has no argument for %s%s of the loops", t->name, "");
            break;
        }
        if (t->role == UIR_LOOP_ROLE_OUT) results[count] = calloc(1, b->row_bytes + 1);
        data[count] = t->role == UIR_LOOP_ROLE_OUT ? results[count] : b->row_major;
        if (!data[count++]) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    opt_stop.polled = true;
    if (status == UIR_STATUS_OK) status = uir_loop_interpret(f, s->dims, data, &opt_stop.cancel, s->diagnostics);
    opt_stop.polled = false;
    if (status == UIR_STATUS_OK) status = compare_with_loops(s, context, results);
    for (uint32_t i = 0; results && i < count; i++) free(results[i]);
    free(data);
    free(results);
    return status;
}

/* ---- time ---- */
static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static uir_status measure(run_state *s, uir_kernel_runner *runner, const uir_kernel_arguments *arguments) {
    enum { MOST = 10000 };
    double *samples = malloc(MOST * sizeof *samples), end = now_ms() + s->options->seconds * 1e3;
    size_t count = 0;
    uir_status status = samples ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    while (status == UIR_STATUS_OK && count < MOST && (count == 0 || now_ms() < end)) {
        double start = now_ms();
        status = uir_kernel_runner_run(runner, arguments, s->sizes, (uint32_t)s->options->threads, s->diagnostics);
        samples[count++] = now_ms() - start;
    }
    if (status == UIR_STATUS_OK) {
        size_t bytes = 0;
        for (uint32_t i = 0; i < s->buffer_count; i++) bytes += s->sizes[i];
        qsort(samples, count, sizeof *samples, compare_doubles);
        print_safely(stdout, "  median %.4f ms, least %.4f ms of %zu runs; %.2f GB/s, each buffer once\n",
                     samples[count / 2], samples[0], count, (double)bytes / samples[count / 2] * 1e-6);
    }
    free(samples);
    return status;
}

/* ---- estimates ---- */
static void print_bytes(const uir_machine *d, const uir_estimate *e) {
    for (uint32_t i = 0; i < d->space_count; i++) {
        if (!e->read[i] && !e->written[i]) continue;
        print_safely(stdout, "  %-8s read %llu bytes, written %llu\n", d->spaces[i].name,
                     (unsigned long long)e->read[i], (unsigned long long)e->written[i]);
    }
    for (uint32_t i = 0; i < d->space_count; i++)
        for (uint32_t k = 0; k < d->space_count; k++)
            if (e->moved[i][k])
                print_safely(stdout, "  %s to %s: moved %llu bytes\n", d->spaces[i].name, d->spaces[k].name,
                             (unsigned long long)e->moved[i][k]);
}

/* What the kernel moves, and how long its machine would take. */
static uir_status estimate(const run_state *s) {
    const uir_machine *d = s->igraph->machine;
    uir_estimate e;
    UIR_TRY(uir_igraph_estimate(s->igraph, s->dims, s->tiles, NULL, s->diagnostics, &e));
    print_bytes(d, &e);
    for (uint32_t i = 0; i < d->pipe_count; i++)
        if (e.pipe_cycles[i] > 0)
            print_safely(stdout, "  pipe %-5s %.0f cycles of all units\n", d->pipes[i], e.pipe_cycles[i]);
    print_safely(stdout, "  modelled, not measured: %.0f cycles", e.cycles);
    if (d->cycles_per_second > 0) print_safely(stdout, ", %.6f ms", 1e3 * e.cycles / d->cycles_per_second);
    print_safely(stdout, "; at most %llu units", (unsigned long long)e.most_units);
    if (uir_machine_threads(d) > 1) print_safely(stdout, " of %u threads", uir_machine_threads(d));
    print_safely(stdout, " have work\n");
    uir_estimate_floor floor = uir_estimate_get_floor(d, &e);
    if (floor.moving > 0) print_safely(stdout, "  at least %.3g ms by memory bandwidth\n", 1e3 * floor.moving);
    if (floor.computing > 0) print_safely(stdout, "  at least %.3g ms by peak arithmetic\n", 1e3 * floor.computing);
    return UIR_STATUS_OK;
}

static uir_status run_in(run_state *s, uir_context *context) {
    uir_kernel_runner *runner = NULL;
    uir_status status = s->options->seconds != 1 && !s->options->time
                            ? usage("--seconds is for --time%s%s: give both", "", "")
                            : bind_sizes(s);
    if (status == UIR_STATUS_OK && s->options->estimate) {
        print_sizes(s);
        return estimate(s);
    }
    if (status == UIR_STATUS_OK) status = check_inputs(s);
    if (status == UIR_STATUS_OK) status = make_buffers(s, context);
    if (status == UIR_STATUS_OK) {
        opt_stop.polled = true;
        status = uir_kernel_runner_create(&s->allocator, device_of(s->options), s->igraph, NULL, &opt_stop.cancel,
                                          s->diagnostics, &runner);
        opt_stop.polled = false;
        if (status == UIR_STATUS_OK && opt_stop.cancel) status = UIR_STATUS_CANCELLED; /* it came too late to be seen */
    }
    uir_kernel_arguments arguments = {s->dims, s->tiles, s->pointers};
    if (status == UIR_STATUS_OK) print_sizes(s);
    if (status == UIR_STATUS_OK) begin_tied(s, s->pointers);
    if (status == UIR_STATUS_OK)
        status = uir_kernel_runner_run(runner, &arguments, s->sizes, (uint32_t)s->options->threads, s->diagnostics);
    if (status == UIR_STATUS_OK && s->options->save) status = opt_make_folder(s->options->save);
    if (status == UIR_STATUS_OK) status = show_outputs(s, context);
    if (status == UIR_STATUS_OK && s->options->check) status = check(s);
    if (status == UIR_STATUS_OK && s->options->check && s->loops) status = check_loops(s, context);
    if (status == UIR_STATUS_OK && s->options->time) status = measure(s, runner, &arguments);
    uir_kernel_runner_destroy(runner);
    return status;
}

static uir_status run_one(const opt_options *options, const uir_igraph *igraph, const uir_loop_function *loops,
                          uir_diagnostics *diagnostics) {
    run_state s = {.options = options,
                   .igraph = igraph,
                   .loops = loops,
                   .diagnostics = diagnostics,
                   .allocator = uir_allocator_system()};
    uir_context *context = NULL;
    uir_status status = opt_create_context(options, &context);
    if (status == UIR_STATUS_OK) status = run_in(&s, context);
    free_state(&s);
    uir_context_destroy(context);
    return status;
}

/* Whether the variant is for the sizes that are given. */
static bool is_for_sizes(const opt_options *options, const uir_igraph *igraph) {
    uir_diagnostics said;
    run_state s = {
        .options = options, .igraph = igraph, .diagnostics = &said, .allocator = uir_allocator_system(), .quiet = true};
    uir_diagnostics_init(&said, &s.allocator);
    bool fits = bind_sizes(&s) == UIR_STATUS_OK;
    uir_diagnostics_deinit(&said);
    free_state(&s);
    return fits;
}

uir_status opt_run_kernel(const opt_options *options, const uir_igraph_list *list, const uir_loop_function *loops,
                          uir_diagnostics *diagnostics) {
    const uir_igraph *chosen = NULL;
    const char *wanted = options->kernel ? options->kernel : list->count ? list->igraphs[0]->name : "";
    uint32_t first = 0, variants = 0;
    for (uint32_t i = list->count; i-- > 0;) {
        if (strcmp(list->igraphs[i]->name, wanted)) continue;
        first = i;
        variants++;
    }
    if (!variants) return usage("unknown kernel '%s'%s", wanted, "");
    for (uint32_t i = first; i < list->count && variants > 1 && !chosen; i++)
        if (!strcmp(list->igraphs[i]->name, wanted) && is_for_sizes(options, list->igraphs[i]))
            chosen = list->igraphs[i];
    return run_one(options, chosen ? chosen : list->igraphs[first], loops, diagnostics);
}
