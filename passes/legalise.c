/* Products that the machine does not multiply as they are, in terms of those that it does. So far of bytes: where mma
 * takes signed ones alone, 128 less than an unsigned byte is a signed one, and what is missing is a sum over the other
 * factor, of which a constant's is a constant:
 *
 *   matmul(a u8, b)  ->  matmul(a - 128, b) + 128 * sum over rows of b
 *   matmul(a, b u8)  ->  matmul(a, b - 128) + 128 * sum over columns of a
 *
 * Sums of 32 bits wrap around in both alike: not a bit is another one. */
#include "passes/legalise.h"
#include "passes/tools.h"

#include "ir/machine/device.h"

enum { HALF = 128 };

typedef struct legaliser {
    uir_module *module;
    uir_pass_context *context;
    uir_dtype middle; /* in which 128 is taken from a byte */
} legaliser;

static uir_dtype dtype_of(const uir_module *module, uir_value_id value) {
    return uir_value_type(module, value)->dtype;
}

/* ---- the difference of bytes ---- */
/* Cycles of a vector of it; a great number where no unit does it, or one that takes elements one at a time. */
static uint64_t cost_of(const uir_machine *machine, const char *iop, uir_dtype dtype, uir_dtype other) {
    int scratch = uir_machine_find_role(machine, UIR_SPACE_SCRATCH);
    uint64_t least = 1u << 24;
    for (uint32_t kind = 0; scratch >= 0 && kind < machine->unit_kind_count; kind++) {
        int found = uir_machine_find_legal(machine, iop, dtype, other, (uint32_t)scratch, 1u << scratch, kind, 0);
        if (found < 0) continue;
        const uir_legal_row *row = &machine->legal[found];
        uint64_t cycles = row->cycles_per_element ? row->cycles_per_element * (uint64_t)machine->vector_bytes
                          : row->cycles           ? row->cycles
                                                  : 1;
        if (cycles < least) least = cycles;
    }
    return least;
}

/* The dtype in which the machine takes 128 from a byte in the fewest cycles: each holds all that comes up. */
static uir_dtype find_middle(const uir_machine *machine) {
    static const uir_dtype dtypes[] = {UIR_DTYPE_I32, UIR_DTYPE_I16, UIR_DTYPE_F16, UIR_DTYPE_F32};
    uir_dtype best = dtypes[0];
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        uint64_t cost = cost_of(machine, "cast", UIR_DTYPE_U8, dtypes[i]) +
                        cost_of(machine, "binary.sub", dtypes[i], UIR_DTYPE_NONE) +
                        cost_of(machine, "cast", dtypes[i], UIR_DTYPE_I8);
        if (cost >= least) continue;
        least = cost;
        best = dtypes[i];
    }
    return best;
}

/* `number` in a value of the other's shape. */
static uir_value_id fill_like(uir_builder *b, uir_value_id shape, uir_dtype dtype, double number) {
    uir_dim dims[UIR_MAX_RANK];
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    const uir_type *type = uir_value_type(b->module, shape);
    uint32_t rank = type->rank;
    for (uint32_t d = 0; d < rank; d++) dims[d] = type->dims[d];
    return uir_build_broadcast(b, uir_build_scalar(b, dtype, number), dims, rank);
}

static uir_value_id make_signed(const legaliser *l, uir_builder *b, uir_value_id bytes) {
    uir_value_id half = fill_like(b, bytes, l->middle, HALF), wide = uir_build_cast(b, bytes, l->middle);
    return uir_build_cast(b, uir_build_binary(b, UIR_OP_SUB, wide, half), UIR_DTYPE_I8);
}

/* 128 times the sums of a factor along an axis, which stays, as one of the result's type. */
static uir_value_id make_missing(uir_builder *b, uir_value_id factor, int64_t axis, const uir_type *result) {
    uir_value_id wide = uir_build_cast(b, factor, UIR_DTYPE_I32);
    uir_value_id sums = uir_build_reduce(b, UIR_OP_REDUCE_SUM, wide, &axis, 1, true);
    uir_value_id times = uir_build_binary(b, UIR_OP_MUL, sums, fill_like(b, sums, UIR_DTYPE_I32, HALF));
    return uir_build_broadcast(b, times, result->dims, result->rank);
}

static bool multiplies(const legaliser *l, uir_dtype a, uir_dtype b) {
    return uir_machine_multiplies_pair(l->context->machine, UIR_DTYPE_I32, a, b);
}

static uir_value_id legalise(void *user, uir_builder *b, const uir_node_info *node) {
    legaliser *l = user;
    uir_value_id none = {0};
    if (node->op != UIR_OP_MATMUL || dtype_of(l->module, node->outputs[0]) != UIR_DTYPE_I32) return none;
    uir_value_id factors[2] = {node->inputs[0], node->inputs[1]};
    const uir_type result = *uir_value_type(l->module, node->outputs[0]);
    uir_dtype is[2] = {dtype_of(l->module, factors[0]), dtype_of(l->module, factors[1])};
    if (multiplies(l, is[0], is[1]) || !multiplies(l, UIR_DTYPE_I8, UIR_DTYPE_I8)) return none;
    for (uint32_t k = 0; k < 2; k++)
        if (is[k] != UIR_DTYPE_U8 && is[k] != UIR_DTYPE_I8) return none;
    uir_value_id missing[2] = {{0}, {0}};
    for (uint32_t k = 0; k < 2; k++) {
        if (is[k] != UIR_DTYPE_U8) continue;
        /* The other factor as it is multiplied beside this one: the first as signed bytes, the second as it came. */
        missing[k] = make_missing(b, factors[!k], k ? result.rank - 1 : result.rank - 2, &result);
        factors[k] = make_signed(l, b, factors[k]);
    }
    uir_value_id sum = uir_build_matmul(b, factors[0], factors[1], UIR_DTYPE_I32);
    for (uint32_t k = 0; k < 2; k++)
        if (missing[k].id) sum = uir_build_binary(b, UIR_OP_ADD, sum, missing[k]);
    return sum;
}

uir_status uir_legalise(uir_module *module, uir_pass_context *context) {
    legaliser l = {.module = module, .context = context};
    uint32_t before = context->changes;
    if (!context->machine) return UIR_STATUS_OK;
    l.middle = find_middle(context->machine);
    UIR_TRY(uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = legalise, .user = &l}));
    if (context->changes == before) return UIR_STATUS_OK;
    UIR_TRY(uir_cleanup_fold_constants(module, context));
    UIR_TRY(uir_cleanup_merge_equal(module, context)); /* several products of one factor have its bytes made once */
    return uir_cleanup_drop_dead(module, context);
}
