/* A run: elementwise instructions over one shape, computed block by block in registers. One loop per outer dim, then
 * blocks of UIR_LANES elements along the last; a block that lies inside every slice takes whole vectors, the others
 * touch only the lanes that exist. Row reductions at the end keep the 32 lanes of iops.def: a block is then 32
 * elements. Where rows read much in common, some of them are computed abreast (emit_abreast.c): the address of each is
 * chosen once for all blocks, and rows behind the last are read from, and written to, a place of no meaning. */
#include "backends/source/vector/emit_run.h"

#include <string.h>

typedef enum body { BODY_INTERLEAVED, BODY_WHOLE, BODY_PART } body;

static bool is_reduction(const uir_iinstruction *in) {
    return uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE;
}

static bool is_late(const run *r, uint32_t at) {
    return r->overlap && at < r->overlap->late;
}

/* From here on expressions are of this instruction's turn. */
static void take_turn(run *r, uint32_t at) {
    if (r->overlap) r->e->c.symbols[r->overlap->symbol] = is_late(r, at) ? r->overlap->before : r->turn;
}

const char *uir_c_operation(uir_iop_code code) {
    const char *dot = strrchr(uir_iop_get_row(code)->name, '.');
    return dot ? dot + 1 : uir_iop_get_row(code)->name;
}

const char *uir_c_identity(emitter *e, uir_iop_code code, uir_dtype dtype) {
    uir_iop_identity identity = uir_iop_get_monoid(code).identity;
    const char *type = uir_c_type(dtype);
    bool least = identity == UIR_IOP_IDENTITY_LEAST;
    if (identity == UIR_IOP_IDENTITY_ZERO || identity == UIR_IOP_IDENTITY_ONE)
        return uir_c_literal(e, dtype, uir_iop_identity_real(identity));
    if (uir_dtype_is_float(dtype)) return uir_c_format(&e->c, "(%s)%sUIR_INFINITY", type, least ? "-" : "");
    int64_t number = uir_iop_identity_integer(identity, dtype);
    if (least) return uir_c_format(&e->c, "(%s)(%lld - 1)", type, (long long)(number + 1));
    return uir_c_format(&e->c, "(%s)%lluu", type, (unsigned long long)number);
}

static uir_dtype result_dtype(const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    return family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL : family == UIR_IOP_FAMILY_CAST ? in->dtype_b : in->dtype;
}

/* The extremes of f32: a comparison of the machine's own for lanes that are no NaN. Those that a NaN decides keep apart
 * which lanes have met one: that is off the chain of comparisons. */
typedef struct extreme {
    uir_iop_code code;
    const char *compare;
    bool tracks_nan;
} extreme;

static const extreme *find_extreme(const uir_iinstruction *in) {
    static const extreme rows[] = {{UIR_IOP_REDUCE_MAX, "greater", true},
                                   {UIR_IOP_REDUCE_MAXNUM, "greater_number", false},
                                   {UIR_IOP_REDUCE_MIN, "less", true}};
    for (size_t i = 0; in->dtype == UIR_DTYPE_F32 && i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code == in->code) return &rows[i];
    }
    return NULL;
}

static bool tracks_nan(const uir_iinstruction *in) {
    const extreme *extreme = find_extreme(in);
    return extreme && extreme->tracks_nan;
}

/* What combines lanes of a row reduction, none of which is NaN unless it is told apart. */
static const char *combining(const uir_iinstruction *in) {
    const extreme *extreme = find_extreme(in);
    return extreme ? extreme->compare : uir_c_operation(in->code);
}

/* A function that is a long chain of dependent operations: kernel_math.inc has it for vectors in step. */
static bool is_chain(const uir_iinstruction *in) {
    if (in->dtype != UIR_DTYPE_F32) return false;
    switch (in->code) {
#define UIR_KERNEL_MATH(constant, name, ulp) case UIR_IOP_##constant:
#include "ir/kernel/interpret/kernel_math.def"
        return true;
    default:
        return false;
    }
}

static bool is_dead(const run *r, uint32_t pointer) {
    if (r->e->forwarded[pointer]) return true;
    for (uint32_t i = 0; i < r->dead_count; i++) {
        if (r->dead[i] == pointer) return true;
    }
    return false;
}

/* What nobody outside the run reads, or a later one of its instructions writes over, stays in registers. */
static bool is_stored(const run *r, uint32_t at) {
    const uir_islice *to = &r->instructions[at]->slices[0];
    for (uint32_t i = at + 1; i < r->count - r->reductions && is_late(r, i) == is_late(r, at); i++) {
        if (uir_run_same_elements(r->e, &r->instructions[i]->slices[0], to)) return false;
    }
    return !is_dead(r, to->pointer);
}

static bool along_one(const operand *o) {
    return o->along == ALONG_UNIT || o->along == ALONG_PANEL || o->along == ALONG_SECOND;
}

int64_t uir_run_longest_row(const run *r) {
    int64_t low, high;
    uir_dim_bounds(r->e->c.igraph->dims, r->shape[r->rank - 1], &low, &high);
    return high;
}

/* NULL: there are too many. */
static const char *name_blank(run *r, const char *type, const char *fill) {
    for (uint32_t i = 0; i < r->blank_count; i++) {
        const blank *b = &r->blanks[i];
        if (strcmp(b->type, type) == 0 && (fill && b->fill ? strcmp(b->fill, fill) == 0 : fill == b->fill))
            return b->name;
    }
    if (r->blank_count == BLANKS) return NULL;
    blank made = {type, fill, uir_c_format(&r->e->c, "blank%u", r->e->next++)};
    r->blanks[r->blank_count++] = made;
    return made.name;
}

/* A row that is read, and lies outside or inside as a whole: its address is chosen once, and no vector of it is masked.
 * The name of the elements in its place; NULL: it is none, or too long. */
static const char *find_blank(run *r, const operand *o, uint32_t k) {
    emitter *e = r->e;
    const uir_islice *slice = o->access.slice;
    if (k == 0 || r->overlap || o->along != ALONG_UNIT || o->access.low[o->dim] || o->access.high[o->dim] ||
        r->rank < 2 || uir_run_longest_row(r) > MOST_BLANK)
        return NULL;
    return name_blank(r, o->access.type, uir_c_literal(e, o->access.pointer->dtype, slice->has_fill ? slice->fill : 0));
}

static void emit_blanks(run *r) {
    int64_t length = r->blank_count ? uir_run_longest_row(r) : 0;
    for (uint32_t i = 0; i < r->blank_count; i++) {
        const blank *b = &r->blanks[i];
        uir_emit_array(r->e, b->type, b->name, length > 0 ? length : 1, i * BLANK_BYTES);
        if (b->fill) uir_c_line(&r->e->c, "for (int64_t i = 0; i < n; i++) %s[i] = %s;", b->name, b->fill);
    }
}

void uir_run_begin_access(run *r, uint32_t at, uint32_t k, access *out) {
    const uir_iinstruction *in = r->originals ? r->originals[at / r->abreast] : r->instructions[at];
    uir_access_init(r->e, &in->slices[k], in->unguarded >> k & 1, out);
    if (r->originals) out->slice = &r->instructions[at]->slices[k];
}

static void prepare(run *r, uint32_t at, uint32_t k) {
    emitter *e = r->e;
    const uir_iinstruction *in = r->instructions[at];
    operand *o = &r->operands[at * UIR_IOP_MAX_SLICES + k];
    uir_run_begin_access(r, at, k, &o->access);
    o->used = true;
    place last = uir_access_last(e, &in->slices[k], r->shape, r->rank);
    o->name = uir_c_format(&e->c, "a%u", e->next++);
    if (last == PLACE_ONE) {
        /* One element along the last dim: read once a row, written as the first lane of a row of one. */
        o->along = k == 0 ? uir_access_along_last(e, &o->access, &o->dim) : ALONG_SPLAT;
        if (k == 0 && (o->along == ALONG_SPLAT || o->along == ALONG_SECOND)) o->along = ALONG_ANY;
    } else if (last == PLACE_OTHER) {
        o->along = ALONG_ANY;
    } else {
        o->along = uir_access_along_last(e, &o->access, &o->dim);
        if (k == 0 && (o->along == ALONG_SPLAT || o->along == ALONG_SECOND)) o->along = ALONG_ANY;
    }
    o->guarded = uir_access_guarded(&o->access) && along_one(o);
    o->moves = r->abreast > 1 && uir_run_moves_with_row(e, &in->slices[k]);
    if (o->moves && k == 0)
        o->blank = o->guarded || o->along != ALONG_UNIT ? NULL : name_blank(r, o->access.type, NULL);
    else
        o->blank = o->guarded || o->moves ? find_blank(r, o, k) : NULL;
    if (o->blank) o->guarded = false;
    r->guarded |= o->guarded;
}

const char **uir_run_index_last(run *r, const operand *o, const char *last, const char **out) {
    const char *loops[INDEX_MAX + 1];
    memcpy(loops, r->loops, sizeof loops);
    if (r->rank) loops[r->rank - 1] = last;
    uir_access_align(r->e, o->access.slice, r->shape, r->rank, loops, out);
    return out;
}

/* An earlier instruction of the run has this slice's value in a register. */
static bool is_forwarded(const run *r, uint32_t at, uint32_t k) {
    const uir_islice *slice = &r->instructions[at]->slices[k];
    for (uint32_t i = 0; i <= at; i++) {
        const uir_iinstruction *in = r->instructions[i];
        bool reduces = i >= r->count - r->reductions;
        if (is_late(r, i) != is_late(r, at)) continue;
        for (uint32_t s = reduces ? 1 : 0; s < in->slice_count; s++) {
            if (i == at && (s == 0 || s >= k)) continue;
            if (uir_run_same_elements(r->e, &in->slices[s], slice)) return true;
        }
    }
    return false;
}

static void prepare_all(run *r) {
    for (uint32_t i = 0; i < r->count; i++) {
        take_turn(r, i);
        for (uint32_t k = i >= r->count - r->reductions ? 1 : 0; k < r->instructions[i]->slice_count; k++)
            if (k == 0 ? is_stored(r, i) : !is_forwarded(r, i, k)) prepare(r, i, k);
    }
}

/* ---- one row: addresses and ranges ---- */
static void emit_row_operand(run *r, operand *o) {
    emitter *e = r->e;
    const char *index[INDEX_MAX], *coordinates[INDEX_MAX];
    if (o->along == ALONG_ANY) return;
    if (o->along == ALONG_SPLAT) {
        const char *type = o->access.type;
        uir_run_index_last(r, o, "0", index);
        uir_c_line(&e->c, "const v_%s %s = v_set_%s(%s);", type, o->name, type,
                   uir_access_read(e, &o->access, index, uir_c_literal(e, o->access.pointer->dtype, 0)));
        return;
    }
    if (o->moves) return;
    uir_access_coordinates(e, &o->access, uir_run_index_last(r, o, "0", index), coordinates);
    bool second = o->along == ALONG_SECOND;
    if (o->blank) {
        const char *inside = uir_access_inside(e, &o->access, coordinates, UINT32_MAX);
        uir_c_line(&e->c, "%sconst %s *const %s = %s ? %s + (%s) : %s;", e->dialect->memory, o->access.type, o->name,
                   inside ? inside : "1", o->access.base, uir_access_offset(e, &o->access, coordinates), o->blank);
        return;
    }
    if (o->along == ALONG_UNIT || second)
        uir_c_line(&e->c, "const int64_t %s = %s;", o->name, uir_access_offset(e, &o->access, coordinates));
    if (!o->guarded) return;
    const char *inside = uir_access_inside(e, &o->access, coordinates, o->dim), *start = coordinates[o->dim];
    const char *low = o->access.low[o->dim]
                          ? uir_c_format(&e->c, second ? "(uir_max(0, -(%s)) + 1) / 2" : "uir_max(0, -(%s))", start)
                          : "0";
    const char *extent = uir_c_dim(&e->c, o->access.pointer->extents[o->dim]);
    const char *high =
        o->access.high[o->dim]
            ? uir_c_format(&e->c, second ? "uir_min(n, (%s - (%s) + 1) / 2)" : "uir_min(n, %s - (%s))", extent, start)
            : "n";
    uir_c_line(&e->c, "const int64_t %s_first = %s;", o->name, low);
    if (inside) high = uir_c_format(&e->c, "%s ? %s : 0", inside, high);
    uir_c_line(&e->c, "const int64_t %s_last = %s;", o->name, high);
    uir_c_line(&e->c, "first = uir_max(first, %s_first);", o->name);
    uir_c_line(&e->c, "last = uir_min(last, %s_last);", o->name);
}

/* ---- one block ---- */
/* A body's statements, each for all its vectors. */
static void open_each(run *r, body body) {
    if (body == BODY_INTERLEAVED) {
        uir_c_open(&r->e->c, "UIR_EACH");
        uir_c_line(&r->e->c, "const int64_t j = b + (g + u) * UIR_LANES;");
        uir_c_line(&r->e->c, "(void)j;");
    }
}

static void close_each(run *r, body body) {
    if (body == BODY_INTERLEAVED) uir_c_close(&r->e->c);
}

/* A variable of a vector, or of all of them; returns what names it inside a statement. */
static const char *emit_variable(run *r, body body, const char *type, const char *expression) {
    emitter *e = r->e;
    const char *name = uir_c_format(&e->c, "t%u", e->next++);
    if (body != BODY_INTERLEAVED) {
        uir_c_line(&e->c, "const v_%s %s __attribute__((unused)) = %s;", type, name, expression);
        return name;
    }
    uir_c_line(&e->c, "v_%s %s[UIR_INTERLEAVE] __attribute__((unused));", type, name);
    name = uir_c_format(&e->c, "%s[u]", name);
    open_each(r, body);
    uir_c_line(&e->c, "%s = %s;", name, expression);
    close_each(r, body);
    return name;
}

static const char *block_address(run *r, const operand *o) {
    emitter *e = r->e;
    if (o->blank) return uir_c_format(&e->c, "%s + j", o->name);
    if (o->along == ALONG_UNIT) return uir_c_format(&e->c, "%s + (%s + j)", o->access.base, o->name);
    if (o->along == ALONG_SECOND) return uir_c_format(&e->c, "%s + (%s + 2 * j)", o->access.base, o->name);
    const char *index[INDEX_MAX], *coordinates[INDEX_MAX];
    uir_access_coordinates(e, &o->access, uir_run_index_last(r, o, "j", index), coordinates);
    return uir_c_format(&e->c, "%s + (%s)", o->access.base, uir_access_offset(e, &o->access, coordinates));
}

static const char *range_of(run *r, const operand *o) {
    if (!o->guarded) return "0, n - j";
    return uir_c_format(&r->e->c, "%s_first - j, %s_last - j", o->name, o->name);
}

/* Rows of one pointer are asked for once, ahead of the last. */
static bool is_last_of_pointer(const run *r, const operand *o) {
    const operand *last = o;
    for (uint32_t i = 0; i < r->count * UIR_IOP_MAX_SLICES; i++) {
        const operand *other = &r->operands[i];
        if (other->used && other->access.pointer == o->access.pointer && other->along == ALONG_UNIT) last = other;
    }
    return last == o;
}

static const char *emit_load(run *r, const operand *o, body body) {
    emitter *e = r->e;
    const char *type = o->access.type;
    bool whole = body != BODY_PART;
    if (o->along == ALONG_SPLAT) return o->name;
    if (o->along == ALONG_ANY) {
        const char *name = uir_c_format(&e->c, "t%u", e->next++);
        /* Lane by lane; what decides for the whole row is asked once. */
        const char *index[INDEX_MAX], *coordinates[INDEX_MAX], *fixed, *moving;
        const uir_islice *slice = o->access.slice;
        const char *zero = uir_c_literal(e, o->access.pointer->dtype, 0);
        const char *outside = slice->has_fill ? uir_c_literal(e, o->access.pointer->dtype, slice->fill) : zero;
        uir_access_coordinates(e, &o->access, uir_run_index_last(r, o, "jl", index), coordinates);
        uir_access_split_inside(e, &o->access, coordinates, "jl", &fixed, &moving);
        const char *element =
            uir_c_format(&e->c, "%s[%s]", o->access.base, uir_access_offset(e, &o->access, coordinates));
        if (moving) element = uir_c_format(&e->c, "(%s ? %s : %s)", moving, element, outside);
        uir_c_line(&e->c, "%s %s_lanes[UIR_LANES];", type, name);
        uir_c_line(&e->c, "const int %s_inside = %s;", name, fixed);
        uir_c_open(&e->c, "if (%s_inside) for (int64_t l = 0; l < UIR_LANES; l++)", name);
        uir_c_line(&e->c, "const int64_t jl = j + l;");
        uir_c_line(&e->c, "(void)jl;");
        if (!whole) element = uir_c_format(&e->c, "jl < n ? %s : %s", element, zero);
        uir_c_line(&e->c, "%s_lanes[l] = %s;", name, element);
        uir_c_close(&e->c);
        if (!whole) outside = uir_c_format(&e->c, "j + l < n ? %s : %s", outside, zero);
        uir_c_line(&e->c, "else for (int64_t l = 0; l < UIR_LANES; l++) %s_lanes[l] = %s;", name, outside);
        uir_c_line(&e->c, "const v_%s %s = v_load_%s%s(%s_lanes);", type, name, e->dialect->lanes, type, name);
        return name;
    }
    const char *address = block_address(r, o);
    /* A pass that computes a row and reduces it leaves the memory idle: it asks for the next row, which no hardware
     * guesses across pages. Other passes over the row then find it near. */
    if (whole && o->along == ALONG_UNIT && o->access.pointer->role != UIR_IPOINTER_LOCAL && r->reductions > 0 &&
        r->count > r->reductions && is_last_of_pointer(r, o)) {
        open_each(r, body);
        uir_c_line(&e->c, "UIR_PREFETCH(%s);", address);
        close_each(r, body);
    }
    const char *which = o->along == ALONG_SECOND ? "second_" : "", *value;
    if (whole) {
        value = uir_c_format(&e->c, "v_load_%s%s(%s)", which, type, address);
    } else {
        uir_dtype dtype = o->access.pointer->dtype;
        value = uir_c_format(&e->c, "v_load_%srange_%s(%s, %s, %s)", which, type, address, range_of(r, o),
                             uir_c_literal(e, dtype, o->access.slice->has_fill ? o->access.slice->fill : 0));
    }
    return emit_variable(r, body, type, value);
}

static void emit_store(run *r, const operand *o, const char *name, bool whole, bool stream) {
    emitter *e = r->e;
    const char *type = o->access.type;
    if (o->along == ALONG_ANY) {
        const char *index[INDEX_MAX];
        uir_c_open(&e->c, "%s", "");
        uir_c_line(&e->c, "%s lanes[UIR_LANES];", type);
        uir_c_line(&e->c, "v_store_%s%s(lanes, %s);", e->dialect->lanes, type, name);
        uir_c_open(&e->c, "for (int64_t l = 0; l < UIR_LANES%s; l++)", whole ? "" : " && j + l < n");
        uir_c_line(&e->c, "const int64_t jl = j + l;");
        uir_c_line(&e->c, "(void)jl;");
        uir_access_write(e, &o->access, uir_run_index_last(r, o, "jl", index), "lanes[l]");
        uir_c_close(&e->c);
        uir_c_close(&e->c);
        return;
    }
    const char *address = block_address(r, o);
    if (r->single) {
        /* A scalar store: what reads it next finds it in the store buffer. */
        uir_c_line(&e->c, o->guarded ? "if (%s_last > 0) v_store_first_%s(%s, %s);" : "%.0sv_store_first_%s(%s, %s);",
                   o->name, type, address, name);
    } else if (!whole) {
        uir_c_line(&e->c, "v_store_range_%s(%s, %s, %s);", type, address, range_of(r, o), name);
    } else if (stream) {
        uir_c_open(&e->c, "if (%s_stream)", o->name);
        uir_c_line(&e->c, "UIR_TOUCH(%s);", address);
        uir_c_line(&e->c, "v_stream_%s(%s, %s);", type, address, name);
        uir_c_close(&e->c);
        uir_c_line(&e->c, "else v_store_%s(%s, %s);", type, address, name);
    } else {
        uir_c_line(&e->c, "v_store_%s(%s, %s);", type, address, name);
    }
}

static bool streams(const run *r, const uir_iinstruction *in, const operand *o) {
    return r->e->dialect->has_streams && in->stream && !r->single && o->along == ALONG_UNIT &&
           o->access.pointer->role != UIR_IPOINTER_LOCAL && uir_dtype_bits(o->access.pointer->dtype) == 32;
}

/* The vector of operand k (0-based among operands); `slice` counts the slices used. */
static const char *emit_operand(run *r, uint32_t at, uint32_t k, uint32_t *slice, body body) {
    emitter *e = r->e;
    const uir_iinstruction *in = r->instructions[at];
    if (in->immediate_mask >> k & 1) {
        uir_dtype dtype = uir_iop_operand_dtype(in->code, in->dtype, k);
        return uir_c_format(&e->c, "v_set_%s(%s)", uir_c_type(dtype), uir_c_literal(e, dtype, in->immediates[k]));
    }
    uint32_t s = (*slice)++;
    for (uint32_t i = r->value_count; i-- > 0;) {
        const uir_islice *known = r->values[i].slice; /* this very operand, a window too, may have been read early */
        if (r->values[i].block == r->block && r->values[i].late == is_late(r, at) &&
            uir_run_same_elements(e, known, &in->slices[s]))
            return r->values[i].name;
    }
    const char *name = emit_load(r, &r->operands[at * UIR_IOP_MAX_SLICES + s], body);
    r->values[r->value_count++] = (value){&in->slices[s], name, r->block, is_late(r, at)};
    return name;
}

static const char *c_compute(run *r, uint32_t at, body body) {
    const uir_iinstruction *in = r->instructions[at];
    const char *x[3] = {"", "", ""};
    uint32_t slice = 1, operands = uir_iop_get_row(in->code)->operands;
    for (uint32_t k = 0; k < operands && k < 3; k++) x[k] = emit_operand(r, at, k, &slice, body);
    return uir_emit_compute(r->e, in, x, r->rank > 1 ? r->loops[r->rank - 2] : "0", "j");
}

/* A reduction of what only it reads: its operand need not wait in registers for the rest. */
static bool goes_first(const run *r, uint32_t at, body body) {
    return body == BODY_INTERLEAVED && at >= r->count - r->reductions && r->operands[at * UIR_IOP_MAX_SLICES + 1].used;
}

/* What a block reads is read before it writes anything: a load behind a store whose address agrees in the bits of a
 * page waits for it, and rows of equal length agree often. Only as many as registers hold without effort. */
#define MAX_EARLY             8
#define MAX_EARLY_INTERLEAVED 4
static void emit_early_loads(run *r, body body) {
    uint32_t loads = 0, most = body == BODY_INTERLEAVED ? MAX_EARLY_INTERLEAVED : MAX_EARLY;
    for (int pass = 0; pass < 2 && loads <= most; pass++) {
        for (uint32_t i = 0; i < r->count; i++) {
            const uir_iinstruction *in = r->instructions[i];
            take_turn(r, i);
            for (uint32_t k = 1; k < in->slice_count; k++) {
                const operand *o = &r->operands[i * UIR_IOP_MAX_SLICES + k];
                if (!o->used || !along_one(o) || goes_first(r, i, body)) continue;
                if (pass == 0)
                    loads++;
                else
                    r->values[r->value_count++] =
                        (value){&in->slices[k], emit_load(r, o, body), r->block, is_late(r, i)};
            }
        }
    }
}

/* One instruction's vectors; returns what names them. */
static const char *emit_value(run *r, uint32_t at, body body) {
    emitter *e = r->e;
    const uir_iinstruction *in = r->instructions[at];
    if (body == BODY_INTERLEAVED && is_chain(in) && !(in->immediate_mask & 1)) {
        uint32_t slice = 1;
        const char *x = emit_operand(r, at, 0, &slice, body), *of = strchr(x, '[');
        if (of) {
            const char *name = uir_c_format(&e->c, "t%u", e->next++);
            uir_c_line(&e->c, "v_f32 %s[UIR_INTERLEAVE] __attribute__((unused));", name);
            uir_c_line(&e->c, "UIR_TOGETHER(w_%s_f32, %s, %.*s)", uir_c_operation(in->code), name, (int)(of - x), x);
            return uir_c_format(&e->c, "%s[u]", name);
        }
    }
    return emit_variable(r, body, uir_c_type(result_dtype(in)), c_compute(r, at, body));
}

static void emit_reduction_step(run *r, uint32_t i, const char *x, body body) {
    emitter *e = r->e;
    const uir_iinstruction *in = r->instructions[i];
    const char *type = uir_c_type(in->dtype);
    const char *lane = body == BODY_INTERLEAVED ? "g + u" : "u", *below = "uir_lanes_below(n - j)";
    const char *part = uir_c_format(&e->c, "r%u[%s]", i, lane);
    if (tracks_nan(in)) {
        const char *met = uir_c_format(&e->c, "met%u[%s]", i, lane);
        if (body == BODY_PART)
            x = uir_c_format(&e->c, "v_select_f32(%s, %s, v_set_f32(%s))", below, x,
                             uir_c_identity(e, in->code, in->dtype));
        uir_c_line(&e->c, "%s = uir_met_nan(%s, %s);", met, met, x);
    }
    const char *next = uir_c_format(&e->c, "v_%s_%s(%s, %s)", combining(in), type, part, x);
    if (body == BODY_PART && !tracks_nan(in))
        next = uir_c_format(&e->c, "v_select_%s(%s, %s, %s)", type, below, next, part);
    uir_c_line(&e->c, "%s = %s;", part, next);
}

static void emit_reduction(run *r, uint32_t i, body body) {
    uint32_t slice = 1;
    take_turn(r, i);
    const char *x = emit_operand(r, i, 0, &slice, body);
    open_each(r, body);
    emit_reduction_step(r, i, x, body);
    close_each(r, body);
}

static void emit_body(run *r, body body) {
    uint32_t elementwise = r->count - r->reductions;
    r->block++;
    r->value_count = 0;
    for (uint32_t i = elementwise; i < r->count; i++) {
        if (goes_first(r, i, body)) emit_reduction(r, i, body);
    }
    if (!r->single) emit_early_loads(r, body);
    for (uint32_t i = 0; i < elementwise; i++) {
        const uir_iinstruction *in = r->instructions[i];
        const operand *result = &r->operands[i * UIR_IOP_MAX_SLICES];
        take_turn(r, i);
        const char *name = emit_value(r, i, body);
        r->values[r->value_count++] = (value){&in->slices[0], name, r->block, is_late(r, i)};
        if (!is_stored(r, i)) continue;
        open_each(r, body);
        emit_store(r, result, name, body != BODY_PART, streams(r, in, result));
        close_each(r, body);
    }
    for (uint32_t i = elementwise; i < r->count; i++) {
        if (!goes_first(r, i, body)) emit_reduction(r, i, body);
    }
}

/* UIR_LANES elements; with reductions their 32 lanes. */
static void emit_block(run *r, body body) {
    emitter *e = r->e;
    if (r->reductions == 0) {
        emit_body(r, body);
        return;
    }
    if (body == BODY_WHOLE && r->interleaved) {
        body = BODY_INTERLEAVED;
        uir_c_open(&e->c, "UIR_UNROLL for (int g = 0; g < UIR_PARTS; g += UIR_INTERLEAVE)");
    } else {
        uir_c_open(&e->c, "UIR_UNROLL for (int u = 0; u < UIR_PARTS; u++)");
        uir_c_line(&e->c, "const int64_t j = b + u * UIR_LANES;");
        uir_c_line(&e->c, "(void)j;");
    }
    emit_body(r, body);
    uir_c_close(&e->c);
}

static void emit_last_dim(run *r) {
    emitter *e = r->e;
    bool blocks = r->reductions > 0;
    const char *step = blocks ? "32" : "UIR_LANES", *j = blocks ? "b" : "j";
    if (r->single) {
        uir_c_line(&e->c, "const int64_t j = 0;");
        uir_c_line(&e->c, "(void)n, (void)j;");
        if (r->guarded) uir_c_line(&e->c, "(void)first, (void)last;");
        emit_body(r, BODY_PART);
        return;
    }
    uir_c_open(&e->c, "for (int64_t %s = 0; %s < n; %s += %s)", j, j, j, step);
    if (r->exact) {
        emit_block(r, BODY_WHOLE);
    } else {
        /* A loop of its own: what it needs is all that its registers hold. The blocks that lie inside every slice are
         * one stretch. */
        const char *last = r->guarded ? "last" : "n";
        if (r->guarded) uir_c_open(&e->c, "if (%s >= first)", j);
        uir_c_open(&e->c, "for (; %s <= %s - %s; %s += %s)", j, last, step, j, step);
        emit_block(r, BODY_WHOLE);
        uir_c_close(&e->c);
        if (r->guarded) uir_c_close(&e->c);
        uir_c_line(&e->c, "if (%s >= n) break;", j);
        emit_block(r, BODY_PART);
    }
    uir_c_close(&e->c);
}

/* Lane totals to the result's element of this row. */
static void emit_finish(run *r, uint32_t i) {
    emitter *e = r->e;
    const uir_iinstruction *in = r->instructions[i];
    const char *type = uir_c_type(in->dtype), *operation = uir_c_operation(in->code), *index[INDEX_MAX];
    access result;
    take_turn(r, i);
    uir_access_init(e, &in->slices[0], in->unguarded & 1, &result);
    uint32_t rank = in->slices[0].rank, operand_rank = in->slices[1].rank;
    for (uint32_t d = 0; d < rank; d++) {
        /* Same rank with a last dim of 1, or a rank less by one. */
        uint32_t from_end = rank - d, shift = rank == operand_rank ? 0 : 1;
        uint32_t wanted = from_end + shift;
        index[d] = wanted == 1 || wanted > r->rank ? "0" : r->loops[r->rank - wanted];
    }
    const char *total = uir_c_format(&e->c, "total%u", i);
    const char *nan = tracks_nan(in) ? uir_c_format(&e->c, "uir_met_any(met%u) ? (f32)UIR_NAN : ", i) : "";
    uir_c_line(&e->c, "%s %s = %sv_finish_%s_%s(r%u);", type, total, nan, combining(in), type, i);
    if (in->accumulate)
        uir_c_line(&e->c, "%s = s_%s_%s(%s, %s);", total, operation, type,
                   uir_access_read(e, &result, index, uir_c_literal(e, in->dtype, 0)), total);
    uir_access_write(e, &result, index, total);
}

static void emit_rows(run *r) {
    emitter *e = r->e;
    for (uint32_t d = 0; d + 1 < r->rank; d++)
        uir_c_open(&e->c, "for (int64_t %s = 0; %s < %s; %s += %u)", r->loops[d], r->loops[d],
                   uir_c_dim(&e->c, r->shape[d]), r->loops[d], d + 2 == r->rank ? r->abreast : 1u);
    if (r->abreast > 1) uir_run_emit_addresses(r);
    if (r->guarded) uir_c_line(&e->c, "int64_t first = 0, last = n;");
    for (uint32_t i = 0; i < r->count; i++) {
        const uir_iinstruction *in = r->instructions[i];
        bool reduces = i >= r->count - r->reductions;
        take_turn(r, i);
        for (uint32_t k = reduces ? 1 : 0; k < in->slice_count; k++) {
            operand *o = &r->operands[i * UIR_IOP_MAX_SLICES + k];
            if (!o->used) continue;
            emit_row_operand(r, o);
            if (k == 0 && streams(r, in, o)) {
                uir_c_line(&e->c,
                           "const int %s_stream = %s >= UIR_STREAM_BYTES / 4 && "
                           "(uintptr_t)(%s%s%s) %% (UIR_LANES * 4) == 0;",
                           o->name, uir_c_dim(&e->c, o->access.pointer->element_span), o->moves ? "" : o->access.base,
                           o->moves ? "" : " + ", o->name);
                e->streams = true;
            }
        }
        if (reduces) {
            const char *type = uir_c_type(in->dtype);
            uir_c_line(&e->c, "v_%s r%u[UIR_PARTS];", type, i);
            uir_c_line(&e->c, "UIR_UNROLL for (int u = 0; u < UIR_PARTS; u++) r%u[u] = v_set_%s(%s);", i, type,
                       uir_c_identity(e, in->code, in->dtype));
            if (tracks_nan(in)) {
                uir_c_line(&e->c, "uir_met met%u[UIR_PARTS];", i);
                uir_c_line(&e->c, "UIR_UNROLL for (int u = 0; u < UIR_PARTS; u++) met%u[u] = UIR_NOT_MET;", i);
            }
        }
    }
    emit_last_dim(r);
    for (uint32_t i = r->count - r->reductions; i < r->count; i++) emit_finish(r, i);
    for (uint32_t d = 0; d + 1 < r->rank; d++) uir_c_close(&e->c);
}

/* A row that is reduced of what a function gives: its chains leave the machine idle, and what else the run does for the
 * row keeps it from looking far enough ahead to find the next one. */
static bool is_worth_steps(const run *r) {
    bool chains = false;
    for (uint32_t i = 0; i < r->count; i++) {
        chains |= is_chain(r->instructions[i]);
        for (uint32_t k = 0; k < r->instructions[i]->slice_count; k++) {
            const operand *o = &r->operands[i * UIR_IOP_MAX_SLICES + k];
            if (o->used && o->along == ALONG_ANY) return false;
        }
    }
    return chains && r->reductions > 0;
}

bool uir_run_begin(run *r) {
    emitter *e = r->e;
    r->operands = uir_arena_allocate_array(&e->c.arena, (size_t)r->count * UIR_IOP_MAX_SLICES, sizeof *r->operands);
    r->values = uir_arena_allocate_array(&e->c.arena, (size_t)r->count * UIR_IOP_MAX_SLICES, sizeof *r->values);
    if (!r->operands || !r->values) {
        e->c.failed = true;
        return false;
    }
    prepare_all(r);
    uir_dim last = r->rank ? r->shape[r->rank - 1] : UIR_DIM_NONE;
    r->single = r->rank && r->reductions == 0 && uir_c_dim_is(&e->c, last, 1);
    r->exact = !r->guarded && r->rank && uir_c_dim_multiple_of(&e->c, last, 32);
    r->interleaved = is_worth_steps(r);
    return true;
}

void uir_emit_run(emitter *e, const uir_iinstruction *const *instructions, uint32_t count, const uint32_t *dead,
                  uint32_t dead_count, const overlap *overlap) {
    run plain = {.e = e,
                 .instructions = instructions,
                 .count = count,
                 .dead = dead,
                 .dead_count = dead_count,
                 .abreast = 1,
                 .overlap = overlap,
                 .turn = overlap ? e->c.symbols[overlap->symbol] : NULL},
        abreast;
    for (uint32_t i = 0; i < count; i++) plain.reductions += is_reduction(instructions[i]);
    const uir_islice *shape = &instructions[0]->slices[is_reduction(instructions[0]) ? 1 : 0];
    plain.shape = shape->counts;
    plain.rank = shape->rank;
    for (uint32_t d = 0; d + 1 < plain.rank; d++) plain.loops[d] = uir_c_format(&e->c, "k%u", d);
    if (plain.rank) plain.loops[plain.rank - 1] = "j";
    if (!uir_run_begin(&plain)) return;
    run *r = uir_run_set_abreast(&plain, &abreast) ? &abreast : &plain;
    uir_c_open(&e->c, "%s", "");
    uir_c_line(&e->c, "const int64_t n = %s;", r->rank ? uir_c_dim(&e->c, r->shape[r->rank - 1]) : "1");
    emit_blanks(r);
    emit_rows(r);
    uir_c_close(&e->c);
}
