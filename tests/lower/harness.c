#include "tests/lower/harness.h"

#include "backends/cpu/target/cpu.h"
#include "backends/vm/encode/encode.h"
#include "backends/vm/vm.h"
#include "lower/select/kernel.h"
#include "lower/schedule/schedule.h"
#include "tests/backends/cpu/native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_names[] = {
    "build",     "verify naive",  "schedule",     "verify scheduled", "replay", "kernel",     "run graph",
    "run naive", "run scheduled", "choose tiles", "run igraph",       "run vm", "run native", "fine"};

const char *lower_stage_name(lower_stage stage) {
    return stage_names[stage];
}

static void note(lower_check *c, lower_stage stage, const char *text, const uir_diagnostics *diagnostics) {
    c->stage = stage;
    snprintf(c->message, sizeof c->message, "%s%s%s", text ? text : "",
             text && diagnostics && diagnostics->first ? ": " : "",
             diagnostics && diagnostics->first ? diagnostics->first->message : "");
}

static void show_function(const uir_loop_function *f, const uir_allocator *allocator) {
    uir_text text;
    uir_text_init(&text, allocator);
    uir_loop_print(f, &text);
    fprintf(stderr, "%s\n", text.data ? text.data : "");
    uir_text_deinit(&text);
}

uir_status lower_replay(const uir_loop_function *naive, const uir_machine *machine, const char *trace,
                        uir_diagnostics *diagnostics, uir_loop_function **out_function) {
    uir_schedule *s = NULL;
    *out_function = NULL;
    uir_status status = uir_loop_clone(naive, out_function);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(*out_function, machine, diagnostics, &s);
    if (status == UIR_STATUS_OK) status = uir_schedule_replay(s, trace, strlen(trace));
    uir_schedule_destroy(s);
    if (status == UIR_STATUS_OK) return UIR_STATUS_OK;
    if (*out_function) uir_loop_function_destroy(*out_function);
    *out_function = NULL;
    return status;
}

/* The variant is what its trace makes of the naive function. */
static bool replays(lower_check *c, uint32_t at) {
    const uir_loop_variant *variant = &c->lowered.scheduled.variants[at];
    uir_loop_function *again;
    uir_diagnostics d;
    uir_text was, is;
    if (!variant->trace.length) return true;
    uir_diagnostics_init(&d, c->allocator);
    uir_text_init(&was, c->allocator);
    uir_text_init(&is, c->allocator);
    uir_loop_print(variant->function, &was);
    if (lower_replay(c->lowered.naive, c->machine, variant->trace.data, &d, &again) == UIR_STATUS_OK) {
        uir_loop_print(again, &is);
        uir_loop_function_destroy(again);
    }
    bool same = is.data && !strcmp(was.data, is.data);
    if (!same) note(c, LOWER_REPLAY, "its trace makes something else", &d);
    if (!same && c->show) fprintf(stderr, "%s\n%s\n", variant->trace.data, is.data ? is.data : "");
    uir_text_deinit(&was);
    uir_text_deinit(&is);
    uir_diagnostics_deinit(&d);
    return same;
}

void lower_prepare(lower_check *c, uir_module *module, uir_node_id group) {
    uir_diagnostics d;
    uir_diagnostics_init(&d, c->allocator);
    uir_lowered *l = &c->lowered;
    *l = (uir_lowered){.scheduled = {.allocator = *c->allocator}, .igraphs = {.allocator = *c->allocator}};
    l->choice.given = c->given;
    uir_text_init(&l->steps, c->allocator);
    uir_text_init(&c->kernel_text, c->allocator);
    c->stage = LOWER_FINE;
    c->ran = 0;
    if (uir_lower_build(module, group, "k", c->allocator, &d, &l->naive) != UIR_STATUS_OK) {
        note(c, LOWER_BUILD, NULL, &d);
    } else if (uir_loop_verify(l->naive, &d) != UIR_STATUS_OK) {
        note(c, LOWER_VERIFY_NAIVE, NULL, &d);
    } else {
        if (uir_lower_schedule(l->naive, c->machine, &l->choice, &l->steps, &d, &l->scheduled) != UIR_STATUS_OK)
            note(c, LOWER_SCHEDULE, NULL, &d);
        for (uint32_t i = 0; i < l->scheduled.count && c->stage == LOWER_FINE; i++) {
            if (uir_loop_verify(l->scheduled.variants[i].function, &d) != UIR_STATUS_OK) {
                note(c, LOWER_VERIFY_SCHEDULED, NULL, &d);
            } else if (!replays(c, i)) {
                break;
            } else if (uir_lower_kernel(l->scheduled.variants[i].function, c->machine, c->allocator, &d, &l->igraphs) !=
                       UIR_STATUS_OK) {
                note(c, LOWER_KERNEL, NULL, &d);
                uir_igraph *refused = NULL;
                uir_diagnostics_clear(&d);
                if (c->show && uir_lower_kernel_build(l->scheduled.variants[i].function, c->machine, UIR_DOUBLE_NONE,
                                                      c->allocator, &d, &refused) == UIR_STATUS_OK)
                    uir_igraph_print(refused, &c->kernel_text);
                uir_igraph_destroy(refused);
            }
        }
    }
    if ((c->show && c->stage != LOWER_FINE) || c->show_all) {
        if (l->naive && (l->scheduled.count == 0 || c->show_all)) show_function(l->naive, c->allocator);
        if (l->steps.data) fprintf(stderr, "%s\n", l->steps.data);
        for (uint32_t i = 0; i < l->scheduled.count; i++)
            show_function(l->scheduled.variants[i].function, c->allocator);
        if (c->kernel_text.data) fprintf(stderr, "%s\n", c->kernel_text.data);
        for (uint32_t i = 0; i < l->igraphs.count && c->show_all; i++) {
            uir_text text;
            uir_text_init(&text, c->allocator);
            uir_igraph_print(l->igraphs.igraphs[i], &text);
            fprintf(stderr, "%s\n", text.data ? text.data : "");
            uir_text_deinit(&text);
        }
    }
    uir_diagnostics_deinit(&d);
}

void lower_finish(lower_check *c) {
    uir_lowered_deinit(&c->lowered);
    uir_text_deinit(&c->kernel_text);
}

/* ---- running ---- */
typedef struct runner {
    lower_check *c;
    uir_module *module;
    const uir_node_info *node;
    const uir_graph_info *body;
    const int64_t *symbols;
    uint64_t state;
    uir_datum *inputs[64 + 64];
    uir_datum *outputs[64];
    uint32_t input_count, dummy_count, output_count;
    bool *used;
} runner;

static uint64_t draw(runner *r) {
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1du;
}

static bool evaluate(const runner *r, uir_dim dim, int64_t *out) {
    return uir_dim_evaluate(r->module->dims, dim, r->symbols, NULL, uir_dims_symbol_count(r->module->dims), out) ==
           UIR_DIM_EVALUATED;
}

static bool shape_of(const runner *r, const uir_type *type, int64_t *shape) {
    for (uint32_t d = 0; d < type->rank; d++)
        if (!evaluate(r, type->dims[d], &shape[d]) || shape[d] < 0) return false;
    return true;
}

/* Integers that may become indices stay below the extents that they index. */
static int64_t integer_limit(const runner *r) {
    int64_t limit = 8;
    for (uint32_t n = 0; n < r->body->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(r->module, r->body->nodes.data[n]);
        if (node->op != UIR_OP_GATHER && node->op != UIR_OP_GATHER_ELEMENTS && node->op != UIR_OP_GATHER_ND &&
            node->op != UIR_OP_SCATTER_ELEMENTS && node->op != UIR_OP_SCATTER_ND)
            continue;
        const uir_type *type = uir_value_type(r->module, node->inputs[0]);
        for (uint32_t d = 0; d < type->rank; d++) {
            int64_t extent;
            bool indexed = node->op == UIR_OP_GATHER_ND || node->op == UIR_OP_SCATTER_ND ||
                           d == (uint32_t)uir_node_int(r->module, node, "axis", 0);
            if (indexed && evaluate(r, type->dims[d], &extent) && extent < limit) limit = extent;
        }
    }
    return limit;
}

/* Does a float decide between values that are far apart: as a truth, as an integer, as a whole number? */
static bool jumps(const runner *r, const uir_node_info *node) {
    static const uir_op ops[] = {UIR_OP_SIGN,  UIR_OP_FLOOR, UIR_OP_CEIL,     UIR_OP_ROUND,
                                 UIR_OP_TRUNC, UIR_OP_MOD,   UIR_OP_REMAINDER};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (node->op == ops[i]) return true;
    return !uir_dtype_is_float(uir_value_type(r->module, node->outputs[0])->dtype) && node->input_count &&
           uir_dtype_is_float(uir_value_type(r->module, node->inputs[0])->dtype);
}

static bool is_sum(const uir_node_info *node) {
    return uir_op_get_row(node->op)->traits & (UIR_TRAIT_REDUCTION | UIR_TRAIT_CONTRACTION);
}

/* Whether a sum is multiplied by a sum, as in SwiGLU. Where one of them cancels, the product is small, but has the
 * rounding of the terms times the other one. */
static bool multiplies_sums(const runner *r) {
    bool *from_sum = calloc(r->module->values.count + 1, 1), found = false;
    for (uint32_t n = 0; n < r->body->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(r->module, r->body->nodes.data[n]);
        uint32_t sums = 0;
        for (uint32_t i = 0; i < node->input_count; i++) sums += from_sum[node->inputs[i].id];
        found = found || (node->op == UIR_OP_MUL && sums > 1);
        for (uint32_t i = 0; i < node->output_count; i++)
            if (node->outputs[i].id) from_sum[node->outputs[i].id] = sums > 0 || is_sum(node);
    }
    free(from_sum);
    return found;
}

/* Is there a sum, whose terms no stage must add in the same order as another, and something that makes a difference of
 * one rounding large? Its terms must then be such that none is needed. A sum at the edge of a jump falls to either side
 * of it by one rounding. */
static bool wants_exact_sums(const runner *r) {
    bool sums = false, jump = false;
    for (uint32_t n = 0; n < r->body->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(r->module, r->body->nodes.data[n]);
        sums = sums || is_sum(node);
        jump = jump || jumps(r, node);
    }
    return sums && (jump || multiplies_sums(r));
}

static bool make_input(runner *r, const uir_type *type, uir_datum **out) {
    int64_t shape[UIR_MAX_RANK];
    uir_tensor *tensor = NULL;
    if (!shape_of(r, type, shape)) return false;
    uint64_t count = 1;
    for (uint32_t d = 0; d < type->rank; d++) count *= (uint64_t)shape[d];
    if (count > (r->c->most ? r->c->most : 3000000)) return false;
    if (uir_tensor_create(r->c->allocator, type->dtype, type->rank, shape, &tensor) != UIR_STATUS_OK) return false;
    int64_t limit = integer_limit(r), fine = wants_exact_sums(r) ? 8 : 1000; /* steps from a number to the next */
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        uint64_t bits = draw(r) >> 20;
        if (uir_dtype_is_float(type->dtype))
            uir_dtype_store_double(type->dtype, tensor->data, i,
                                   (double)(bits % (uint64_t)(4 * fine + 1)) / (double)fine - 2.0, 0);
        else
            uir_dtype_store_integer(type->dtype, tensor->data, i,
                                    type->dtype == UIR_DTYPE_BOOL ? (int64_t)(bits & 1)
                                    : limit > 0                   ? (int64_t)(bits % (uint64_t)limit)
                                                                  : 0,
                                    false, 0);
    }
    if (uir_datum_create_tensor(r->c->allocator, tensor, out) == UIR_STATUS_OK) return true;
    uir_tensor_release(tensor);
    return false;
}

static void use_symbol(void *user, uir_symbol symbol) {
    ((runner *)user)->used[symbol.id] = true;
}

static void use_type(runner *r, uir_value_id value) {
    const uir_type *type = uir_value_type(r->module, value);
    for (uint32_t d = 0; d < type->rank; d++) uir_dim_visit_symbols(r->module->dims, type->dims[d], use_symbol, r);
}

static void use_node(runner *r, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++) use_type(r, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++) use_type(r, node->outputs[i]);
    for (uint32_t a = 0; a < node->attribute_count; a++)
        for (uint32_t i = 0; node->attributes[a].kind == UIR_ATTRIBUTE_DIMS && i < node->attributes[a].count; i++)
            uir_dim_visit_symbols(r->module->dims, node->attributes[a].value.dims[i], use_symbol, r);
}

/* A graph of the group alone, with an operand more for each symbol that must be bound. */
static bool run_graph(runner *r, uir_node_id group) {
    uir_module *m = r->module;
    uir_graph_id graph, main = m->main;
    uir_node_info copy = *r->node;
    uir_value_id inputs[128], outputs[64];
    uir_diagnostics d;
    uir_diagnostics *before = m->diagnostics;
    char name[40];
    bool good = true;
    uint32_t symbols = uir_dims_symbol_count(m->dims);
    uir_diagnostics_init(&d, r->c->allocator);
    m->diagnostics = &d;
    r->used = calloc(symbols + 1, 1);
    use_node(r, r->node);
    for (uint32_t n = 0; n < r->body->nodes.count; n++) use_node(r, uir_node_get(m, r->body->nodes.data[n]));
    snprintf(name, sizeof name, "alone_%u_%u", group.id, m->graphs.count);
    good = uir_module_add_graph(m, (uir_graph_id){0}, name, &graph) == UIR_STATUS_OK;
    for (uint32_t s = 0; good && s < symbols; s++) { /* first, so that they are bound when the others are checked */
        if (!r->used[s]) continue;
        uir_dim dim = uir_dim_symbol(m->dims, (uir_symbol){s});
        uir_type type = {.kind = UIR_VALUE_TENSOR, .dtype = UIR_DTYPE_U8, .rank_known = true, .rank = 1, .dims = &dim};
        uir_value_id value;
        good = r->dummy_count < 60 && uir_module_add_value(m, "", type, &value) == UIR_STATUS_OK &&
               uir_graph_add_input(m, graph, value) == UIR_STATUS_OK &&
               make_input(r, &type, &r->inputs[r->dummy_count]);
        if (good) r->dummy_count++;
    }
    for (uint32_t i = 0; good && i < copy.input_count; i++) {
        const uir_type type = *uir_value_type(m, copy.inputs[i]);
        good = uir_module_add_value(m, "", type, &inputs[i]) == UIR_STATUS_OK &&
               uir_graph_add_input(m, graph, inputs[i]) == UIR_STATUS_OK;
        if (good) good = make_input(r, &type, &r->inputs[r->dummy_count + i]);
        if (good) r->input_count++;
    }
    for (uint32_t i = 0; good && i < copy.output_count; i++)
        good = uir_module_add_value(m, "", *uir_value_type(m, copy.outputs[i]), &outputs[i]) == UIR_STATUS_OK;
    copy.inputs = inputs;
    copy.outputs = outputs;
    uir_node_id node;
    good = good && uir_graph_add_node(m, graph, &copy, &node) == UIR_STATUS_OK;
    for (uint32_t i = 0; good && i < copy.output_count; i++)
        good = uir_graph_add_output(m, graph, outputs[i]) == UIR_STATUS_OK;
    if (good) {
        m->main = graph;
        good = uir_module_interpret(m, r->c->allocator, &d, NULL, r->inputs, r->dummy_count + r->input_count,
                                    r->outputs, copy.output_count, NULL) == UIR_STATUS_OK;
        m->main = main;
        if (good) r->output_count = copy.output_count;
    }
    if (!good && d.first) snprintf(r->c->message, sizeof r->c->message, "graph: %s", d.first->message);
    m->diagnostics = before;
    free(r->used);
    uir_diagnostics_deinit(&d);
    return good;
}

/* Largest relative difference that rounding explains. */
static double tolerance(uir_dtype dtype) {
    return dtype == UIR_DTYPE_F64 ? 1e-9 : dtype == UIR_DTYPE_F32 ? 2e-4 : dtype == UIR_DTYPE_F16 ? 4e-3 : 3e-2;
}

/* Near a pole rounding before a division grows with the square of what comes out. */
static bool divides(const runner *r) {
    for (uint32_t n = 0; n < r->body->nodes.count; n++)
        if (uir_node_get(r->module, r->body->nodes.data[n])->op == UIR_OP_DIV) return true;
    return false;
}

static bool same_element(uir_dtype dtype, const void *a, const void *b, uint64_t i, double scale, bool pole) {
    if (!uir_dtype_is_float(dtype)) return uir_dtype_load_integer(dtype, a, i) == uir_dtype_load_integer(dtype, b, i);
    double x = uir_dtype_load_double(dtype, a, i), y = uir_dtype_load_double(dtype, b, i);
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    if (x == y) return true;
    double large = fabs(x) > scale ? fabs(x) : scale;
    return fabs(x - y) <= tolerance(dtype) * (pole && large > 100 ? large * large / 100 : large);
}

static bool compare(runner *r, lower_stage stage, void *const *got, void *const *expected, const char *what) {
    for (uint32_t k = 0; k < r->output_count; k++) {
        const uir_tensor *t = r->outputs[k]->tensor;
        for (uint64_t i = 0; i < t->element_count; i++) {
            if (same_element(t->dtype, got[k], expected[k], i, 1, divides(r))) continue;
            char text[300];
            bool real = uir_dtype_is_float(t->dtype);
            snprintf(text, sizeof text, "%s: output %u element %llu of %llu is %g, should be %g", what, k,
                     (unsigned long long)i, (unsigned long long)t->element_count,
                     real ? uir_dtype_load_double(t->dtype, got[k], i)
                          : (double)uir_dtype_load_integer(t->dtype, got[k], i),
                     real ? uir_dtype_load_double(t->dtype, expected[k], i)
                          : (double)uir_dtype_load_integer(t->dtype, expected[k], i));
            note(r->c, stage, text, NULL);
            return false;
        }
    }
    return true;
}

/* Equal to the bit, but for NaNs. */
static bool compare_bits(runner *r, lower_stage stage, void *const *got, void *const *expected) {
    for (uint32_t k = 0; k < r->output_count; k++) {
        const uir_tensor *t = r->outputs[k]->tensor;
        size_t size = uir_dtype_bits(t->dtype) / 8;
        for (uint64_t i = 0; i < t->element_count; i++) {
            if (!memcmp((char *)got[k] + i * size, (char *)expected[k] + i * size, size)) continue;
            if (uir_dtype_is_float(t->dtype) && isnan(uir_dtype_load_double(t->dtype, got[k], i)) &&
                isnan(uir_dtype_load_double(t->dtype, expected[k], i)))
                continue;
            char text[120];
            snprintf(text, sizeof text, "output %u element %llu is %.17g, should be %.17g", k, (unsigned long long)i,
                     uir_dtype_load_double(t->dtype, got[k], i), uir_dtype_load_double(t->dtype, expected[k], i));
            note(r->c, stage, text, NULL);
            return false;
        }
    }
    return true;
}

/* Does the arithmetic of every call say its bits? A kernel has spellings of its own for functions and for a row that is
 * divided by its sum: these are held to the tolerance, all else to the order of the loops. */
static bool says_its_bits(const uir_loop_function *f) {
    static const uir_op ops[] = {UIR_OP_NEG,     UIR_OP_ABS,        UIR_OP_SIGN,        UIR_OP_FLOOR,   UIR_OP_CEIL,
                                 UIR_OP_ROUND,   UIR_OP_TRUNC,      UIR_OP_SQRT,        UIR_OP_NOT,     UIR_OP_BIT_NOT,
                                 UIR_OP_ADD,     UIR_OP_SUB,        UIR_OP_MUL,         UIR_OP_MIN,     UIR_OP_MAX,
                                 UIR_OP_AND,     UIR_OP_OR,         UIR_OP_XOR,         UIR_OP_BIT_AND, UIR_OP_BIT_OR,
                                 UIR_OP_BIT_XOR, UIR_OP_EQ,         UIR_OP_NE,          UIR_OP_LT,      UIR_OP_LE,
                                 UIR_OP_GT,      UIR_OP_GE,         UIR_OP_SELECT,      UIR_OP_CAST,    UIR_OP_IS_NAN,
                                 UIR_OP_DIV,     UIR_OP_SHIFT_LEFT, UIR_OP_SHIFT_RIGHT, UIR_OP_BIT_CAST};
    for (uint32_t i = 0; i < f->expressions.count; i++) {
        const uir_loop_expression *e = &f->expressions.data[i];
        bool known = e->kind != UIR_LOOP_CALL;
        for (size_t k = 0; !known && k < sizeof ops / sizeof *ops; k++) known = ops[k] == e->op;
        if (!known) return false;
        if (e->kind != UIR_LOOP_CALL || e->op != UIR_OP_DIV) continue;
        const uir_loop_expression *divisor = &f->expressions.data[e->arguments[1]];
        if (divisor->kind == UIR_LOOP_LOAD && f->tensors.data[divisor->load.tensor].role == UIR_LOOP_ROLE_TEMP)
            return false;
    }
    return true;
}

static void *input_data(runner *r, uint32_t index) {
    return r->inputs[r->dummy_count + index]->tensor->data;
}

static bool run_loops(runner *r, const uir_loop_function *f, const int64_t *sizes, void **outputs, lower_stage stage) {
    void *tensors[256];
    uint32_t count = 0;
    uir_diagnostics d;
    uir_diagnostics_init(&d, r->c->allocator);
    for (uint32_t i = 0; i < f->tensors.count && count < 256; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        if (t->role == UIR_LOOP_ROLE_IN) tensors[count++] = input_data(r, t->index);
        if (t->role == UIR_LOOP_ROLE_OUT) tensors[count++] = outputs[t->index];
    }
    bool good = uir_loop_interpret(f, sizes, tensors, NULL, &d) == UIR_STATUS_OK;
    if (!good) note(r->c, stage, NULL, &d);
    uir_diagnostics_deinit(&d);
    return good;
}

static bool span_bytes(const uir_igraph *g, uint32_t pointer, const int64_t *values, size_t *out) {
    int64_t span;
    const uir_ipointer *p = &g->pointers.data[pointer];
    if (uir_dim_evaluate(g->dims, p->element_span, values, NULL, uir_dims_symbol_count(g->dims), &span) !=
        UIR_DIM_EVALUATED)
        return false;
    return uir_dtype_storage_size(p->dtype, span < 0 ? 0 : (uint64_t)span, out);
}

/* `variant`: of the check's kernels; `stage`: who runs it. */
static bool run_igraph(runner *r, uint32_t variant, const int64_t *sizes, void **outputs, lower_stage stage) {
    const uir_igraph *g = r->c->lowered.igraphs.igraphs[variant];
    int64_t tiles[64] = {0};
    uint32_t symbols = uir_dims_symbol_count(g->dims), count = 0;
    int64_t *values = calloc(symbols + 1, sizeof *values);
    bool *bound = calloc(symbols + 1, sizeof *bound);
    void *pointers[256] = {0}, *owned[256] = {0};
    size_t bytes[256];
    uir_diagnostics d;
    uir_diagnostics_init(&d, r->c->allocator);
    bool good = uir_igraph_choose_tiles(g, sizes, 1, tiles, &d) == UIR_STATUS_OK &&
                uir_igraph_bind(g, sizes, tiles, values, bound, &d) == UIR_STATUS_OK;
    for (uint32_t i = 0; good && i < g->pointers.count && count < 256; i++) {
        const uir_ipointer *p = &g->pointers.data[i];
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        good = span_bytes(g, i, values, &bytes[count]);
        if (p->role == UIR_IPOINTER_IN) pointers[count] = input_data(r, p->role_index);
        if (p->role == UIR_IPOINTER_OUT) pointers[count] = outputs[p->role_index];
        if (p->role == UIR_IPOINTER_WORK || p->role == UIR_IPOINTER_CONST)
            pointers[count] = owned[count] = calloc(1, bytes[count] + 64);
        if (p->role == UIR_IPOINTER_CONST)
            good = uir_igraph_pack(g, i, values, input_data(r, p->role_index), owned[count]) == UIR_STATUS_OK;
        count++;
    }
    uir_kernel_arguments arguments = {sizes, tiles, pointers};
    if (good && stage == LOWER_RUN_IGRAPH) good = uir_igraph_interpret(g, &arguments, NULL, &d) == UIR_STATUS_OK;
    if (good && stage == LOWER_RUN_NATIVE)
        good = native_run(r->c->native, g, r->c->native_first + variant, &arguments, bytes, 1, &d) == UIR_STATUS_OK;
    if (good && stage == LOWER_RUN_VM) {
        uir_text code;
        uir_vm_kernel *kernel = NULL;
        uir_text_init(&code, r->c->allocator);
        good = uir_vm_encode(g, &d, &code) == UIR_STATUS_OK &&
               uir_vm_load(r->c->allocator, code.data, code.length, &d, &kernel) == UIR_STATUS_OK &&
               uir_vm_run(kernel, &arguments, bytes, NULL, &d) == UIR_STATUS_OK;
        if (kernel) uir_vm_destroy(kernel);
        uir_text_deinit(&code);
    }
    if (!good) note(r->c, stage, NULL, &d);
    for (uint32_t i = 0; i < count; i++) free(owned[i]);
    free(values);
    free(bound);
    uir_diagnostics_deinit(&d);
    return good;
}

/* Room for the outputs, filled with what no kernel would write. */
static void make_room(runner *r, void **room) {
    for (uint32_t k = 0; k < r->output_count; k++) {
        size_t size = r->outputs[k]->tensor->byte_size;
        if (!room[k]) room[k] = aligned_alloc(64, (size + 127) & ~(size_t)63);
        memset(room[k], 0x5a, size);
    }
}

static bool run_stages(runner *r, const int64_t *sizes) {
    lower_check *c = r->c;
    void *graph[64] = {0}, *naive[64] = {0}, *loops[64] = {0}, *kernel[64] = {0}, *vm[64] = {0};
    for (uint32_t k = 0; k < r->output_count; k++) graph[k] = r->outputs[k]->tensor->data;
    make_room(r, naive);
    bool good = run_loops(r, c->lowered.naive, sizes, naive, LOWER_RUN_NAIVE) &&
                compare(r, LOWER_RUN_NAIVE, naive, graph, "naive");
    if (good && c->steps) {
        make_room(r, loops);
        good = run_loops(r, c->steps, sizes, loops, LOWER_RUN_SCHEDULED) &&
               compare(r, LOWER_RUN_SCHEDULED, loops, naive, "after steps at random");
    }
    uint32_t ran = 0;
    for (uint32_t v = 0; good && v < c->lowered.igraphs.count; v++) {
        uir_diagnostics d;
        int64_t tiles[64];
        uir_diagnostics_init(&d, c->allocator);
        bool holds = uir_igraph_choose_tiles(c->lowered.igraphs.igraphs[v], sizes, 1, tiles, &d) == UIR_STATUS_OK;
        if (!holds && v + 1 == c->lowered.igraphs.count && !ran) {
            note(c, LOWER_CHOOSE, "no variant holds", &d);
            good = false;
        }
        uir_diagnostics_deinit(&d);
        if (!holds) continue;
        ran++;
        make_room(r, loops);
        make_room(r, kernel);
        make_room(r, vm);
        const uir_loop_function *scheduled = c->lowered.scheduled.variants[v].function;
        good = good && run_loops(r, scheduled, sizes, loops, LOWER_RUN_SCHEDULED) &&
               compare(r, LOWER_RUN_SCHEDULED, loops, naive, "scheduled") &&
               run_igraph(r, v, sizes, kernel, LOWER_RUN_IGRAPH) &&
               (says_its_bits(scheduled) ? compare_bits(r, LOWER_RUN_IGRAPH, kernel, loops)
                                         : compare(r, LOWER_RUN_IGRAPH, kernel, loops, "igraph")) &&
               run_igraph(r, v, sizes, vm, LOWER_RUN_VM) && compare_bits(r, LOWER_RUN_VM, vm, kernel);
        if (!good || !c->native) continue;
        make_room(r, vm);
        good = run_igraph(r, v, sizes, vm, LOWER_RUN_NATIVE) && compare_bits(r, LOWER_RUN_NATIVE, vm, kernel);
    }
    c->ran += ran;
    for (uint32_t k = 0; k < r->output_count; k++) {
        free(naive[k]);
        free(loops[k]);
        free(kernel[k]);
        free(vm[k]);
    }
    return good;
}

/* Rounds of the blocks in a list, at sizes of the function. */
static double work_of(const uir_loop_function *f, uint32_t id, const int64_t *values, double around) {
    double sum = 0;
    for (; id != UIR_LOOP_NONE; id = f->statements.data[id].next) {
        const uir_loop_statement *s = &f->statements.data[id];
        int64_t extent = 1;
        if (s->kind == UIR_LOOP_STATEMENT_FOR)
            (void)uir_dim_evaluate(f->dims, s->extent, values, NULL, uir_dims_symbol_count(f->dims), &extent);
        sum +=
            s->kind == UIR_LOOP_STATEMENT_BLOCK ? around : work_of(f, s->first_child, values, around * (double)extent);
    }
    return sum;
}

double lower_work(const uir_loop_function *f, const int64_t *sizes) {
    int64_t *values = calloc(uir_dims_symbol_count(f->dims) + 1, sizeof *values);
    for (uint32_t i = 0; i < f->sizes.count; i++) values[f->sizes.data[i].symbol.id] = sizes[i];
    double work = work_of(f, f->first, values, 1);
    free(values);
    return work;
}

bool lower_run(lower_check *c, uir_module *module, uir_node_id group, const int64_t *symbols, uint64_t seed) {
    static runner r; /* large */
    memset(&r, 0, sizeof r);
    r.c = c;
    r.module = module;
    r.symbols = symbols;
    r.state = seed * 2654435761u + 88172645463325252u;
    uir_node_info node = *uir_node_get(module, group);
    const uir_attribute *body = uir_node_find_attribute(module, &node, "body");
    uir_graph_info graph = *uir_graph_get(module, body->value.graph);
    r.node = &node;
    r.body = &graph;
    bool sensible = node.input_count <= 64 && node.output_count <= 64;
    uint32_t count;
    const uir_dim *dims = uir_node_dims(module, &node, "sizes", &count);
    int64_t sizes[64];
    for (uint32_t i = 0; sensible && i < count && i < 64; i++) sensible = evaluate(&r, dims[i], &sizes[i]);
    sensible =
        sensible && (!c->most_work || lower_work(c->lowered.naive, sizes) <= c->most_work) && run_graph(&r, group);
    if (sensible) run_stages(&r, sizes);
    for (uint32_t i = 0; i < r.dummy_count + r.input_count; i++) uir_datum_release(r.inputs[i]);
    for (uint32_t i = 0; i < r.output_count; i++) uir_datum_release(r.outputs[i]);
    return sensible;
}
