/* Bytes to a kernel. Everything an index or a count could do wrong is checked here once, so that run.c checks only
 * values. */
#include "backends/vm/bytecode.h"
#include "base/reader.h"

#include <string.h>

#define W(field) (field) = (uint32_t)uir_reader_take(in, 4);
#define Q(field) (field) = (__typeof__(field))uir_reader_take(in, 8);

static uir_status read_tables(uir_reader *in, uir_vm_kernel *k) {
#define VM_TABLE(type, field)                                                                                          \
    k->field##_count = (uint32_t)uir_reader_take(in, 4);                                                               \
    if (in->short_of || k->field##_count > VM_MAX_RECORDS || k->field##_count > (size_t)(in->end - in->at) / 4)        \
        return UIR_STATUS_BAD_FILE;                                                                                    \
    UIR_TRY_ALLOCATE(k->field, uir_arena_allocate_array(&k->arena, (size_t)k->field##_count + 1, sizeof *k->field));   \
    for (uint32_t i = 0; i < k->field##_count; i++) {                                                                  \
        type *r = &k->field[i];                                                                                        \
        type##_fields(W, Q, r)                                                                                         \
    }
    VM_TABLES(VM_TABLE)
#undef VM_TABLE
    return in->short_of || in->at != in->end ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK;
}

/* ---- validation: each function answers whether a record is in order ---- */
static bool is_expression(const uir_vm_kernel *k, uint32_t e) {
    return e < k->expressions_count;
}
static bool is_symbol(const uir_vm_kernel *k, uint32_t s, uir_isymbol_kind kind) {
    return s < k->symbols_count && k->symbols[s].kind == (uint32_t)kind;
}

static bool check_expression(const uir_vm_kernel *k, const vm_expression *e) {
    uint32_t depth = 0;
    if (e->count == 0 || e->first > k->steps_count || e->count > k->steps_count - e->first) return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const vm_step *s = &k->steps[e->first + i];
        if (s->kind > UIR_DIM_MAX) return false;
        if (s->kind == UIR_DIM_CONST || s->kind == UIR_DIM_SYMBOL) {
            if (s->kind == UIR_DIM_SYMBOL && (s->value < 0 || s->value >= k->symbols_count)) return false;
            if (++depth > VM_MAX_STACK) return false;
        } else {
            if (depth < 2) return false;
            depth--;
        }
    }
    return depth == 1;
}

static bool check_symbol(const uir_vm_kernel *k, const vm_symbol *s) {
    if (s->kind > UIR_ISYMBOL_AXIS || s->multiple_of < 1) return false;
    bool defined = s->kind == UIR_ISYMBOL_LET || s->kind == UIR_ISYMBOL_CONSTANT || s->kind == UIR_ISYMBOL_DEVICE;
    return !defined || is_expression(k, s->definition);
}

static bool check_condition(const uir_vm_kernel *k, const vm_condition *c) {
    return c->relation <= UIR_RELATION_GE && is_expression(k, c->left) && is_expression(k, c->right);
}

static bool check_pointer(const uir_vm_kernel *k, const vm_pointer *p) {
    if (p->role > UIR_IPOINTER_LOCAL || !uir_dtype_is_valid((int)p->dtype) || p->rank > VM_MAX_RANK ||
        !is_expression(k, p->span))
        return false;
    uir_dtype_class class = uir_dtype_get_class((uir_dtype)p->dtype);
    if (class == UIR_DTYPE_CLASS_STRING || class == UIR_DTYPE_CLASS_COMPLEX || uir_dtype_bits((uir_dtype)p->dtype) < 8)
        return false;
    if (p->instances < 1 || p->instances > 64 || (p->by_loop != VM_NONE && !is_symbol(k, p->by_loop, UIR_ISYMBOL_LOOP)))
        return false;
    if (p->instances > 1 && (p->by_loop == VM_NONE || p->role != UIR_IPOINTER_LOCAL)) return false;
    if (p->over != VM_NONE && (p->role != UIR_IPOINTER_LOCAL || p->over >= k->pointers_count ||
                               k->pointers[p->over].role != UIR_IPOINTER_LOCAL || k->pointers[p->over].over != VM_NONE))
        return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (!is_expression(k, p->extents[d]) || p->mode_counts[d] < 1 || p->mode_counts[d] > VM_MAX_MODES) return false;
        for (uint32_t m = 0; m < p->mode_counts[d]; m++) {
            if (!is_expression(k, p->modes[d][m].size) || !is_expression(k, p->modes[d][m].stride)) return false;
        }
    }
    return true;
}

static bool check_slice(const uir_vm_kernel *k, const vm_slice *s) {
    if (s->pointer >= k->pointers_count || s->window > 1 || s->rank > VM_MAX_RANK || s->axis_count > VM_MAX_RANK)
        return false;
    const vm_pointer *p = &k->pointers[s->pointer];
    if (!s->window && (s->rank != p->rank || s->axis_count)) return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (!is_expression(k, s->starts[d])) return false;
    }
    for (uint32_t d = 0; d < s->rank; d++) {
        if (!is_expression(k, s->counts[d])) return false;
    }
    for (uint32_t a = 0; a < s->axis_count; a++) {
        if (!is_symbol(k, s->axis_symbols[a], UIR_ISYMBOL_AXIS) || !is_expression(k, s->axis_extents[a])) return false;
    }
    return true;
}

static bool check_atom(const uir_vm_kernel *k, const vm_atom *a) {
    if (a->kind > UIR_IATOM_LAST) return false;
    if (a->kind != UIR_IATOM_RELATION) return is_symbol(k, a->loop, UIR_ISYMBOL_LOOP);
    vm_condition c = {a->relation, a->left, a->right};
    return check_condition(k, &c);
}

static uir_dtype slice_dtype(const uir_vm_kernel *k, uint32_t slice) {
    return (uir_dtype)k->pointers[k->slices[slice].pointer].dtype;
}

/* Whether each slice has the dtype that the instruction's family asks of it. */
static bool check_dtypes(const uir_vm_kernel *k, const vm_instruction *in, const uir_iop_row *row) {
    uir_dtype dtype = (uir_dtype)in->dtype;
    bool product = row->family == UIR_IOP_FAMILY_MMA;
    uir_dtype result = row->family == UIR_IOP_FAMILY_COMPARE ? UIR_DTYPE_BOOL
                       : row->family == UIR_IOP_FAMILY_CAST  ? (uir_dtype)in->dtype_b
                                                             : dtype;
    uint32_t slice = 1;
    if (slice_dtype(k, in->slices[0]) != result) return false;
    for (uint32_t i = 0; i < row->operands; i++) {
        if (in->immediate_mask >> i & 1) continue;
        uir_dtype want = product ? (uir_dtype)(i == 0 ? in->dtype_b : in->dtype_c)
                                 : uir_iop_operand_dtype((uir_iop_code)in->code, dtype, i);
        if (slice_dtype(k, in->slices[slice++]) != want) return false;
    }
    return true;
}

static bool check_instruction(const uir_vm_kernel *k, const vm_instruction *in) {
    if (in->code >= UIR_IOP_COUNT || in->axis > UIR_IAXIS_COL || in->immediate_mask > 7) return false;
    const uir_iop_row *row = uir_iop_get_row((uir_iop_code)in->code);
    uint32_t immediates = 0;
    if (row->family == UIR_IOP_FAMILY_SYNC) return in->slice_count == 0; /* of no dtype; it does nothing here */
    if (!uir_dtype_is_valid((int)in->dtype)) return false;
    for (uint32_t i = 0; i < 3; i++) immediates += in->immediate_mask >> i & 1;
    if (in->immediate_mask >> row->operands || in->slice_count != row->results + row->operands - immediates ||
        in->slice_count > UIR_IOP_MAX_SLICES)
        return false;
    for (uint32_t i = 0; i < in->slice_count; i++) {
        if (in->slices[i] >= k->slices_count) return false;
    }
    bool lines =
        row->family == UIR_IOP_FAMILY_REDUCE || row->family == UIR_IOP_FAMILY_SCAN || row->family == UIR_IOP_FAMILY_MMA;
    if (lines && immediates) return false;
    if (row->family == UIR_IOP_FAMILY_CAST && !uir_dtype_is_valid((int)in->dtype_b)) return false;
    if (in->code == UIR_IOP_BITS && uir_dtype_bits((uir_dtype)in->dtype) != uir_dtype_bits((uir_dtype)in->dtype_b))
        return false;
    if (in->code == UIR_IOP_IOTA && !is_expression(k, in->start)) return false;
    uint32_t role = k->pointers[k->slices[in->slices[0]].pointer].role;
    if (role == UIR_IPOINTER_IN || role == UIR_IPOINTER_CONST) return false;
    if (row->family == UIR_IOP_FAMILY_SCAN) {
        role = k->pointers[k->slices[in->slices[2]].pointer].role;
        if (role == UIR_IPOINTER_IN || role == UIR_IPOINTER_CONST) return false;
    }
    return check_dtypes(k, in, row);
}

static bool check_item(const uir_vm_kernel *k, uint32_t id) {
    const vm_item *item = &k->items[id];
    if (item->kind > UIR_IITEM_RUN || item->first_atom > k->atoms_count ||
        item->atom_count > k->atoms_count - item->first_atom)
        return false;
    switch ((uir_iitem_kind)item->kind) {
    case UIR_IITEM_LOOP:
        return is_symbol(k, item->symbol, UIR_ISYMBOL_LOOP) && is_expression(k, item->extent);
    case UIR_IITEM_LET:
        return is_symbol(k, item->symbol, UIR_ISYMBOL_LET);
    case UIR_IITEM_INDEX:
        return is_symbol(k, item->symbol, UIR_ISYMBOL_INDEX) && item->mode <= UIR_INDEX_SKIP &&
               is_expression(k, item->limit) && item->slice < k->slices_count &&
               !uir_dtype_is_float(slice_dtype(k, item->slice));
    case UIR_IITEM_INSTRUCTION:
        return item->instruction < k->instructions_count;
    case UIR_IITEM_IF:
    case UIR_IITEM_RUN:
        return true;
    }
    return false;
}

/* Every item is in one place of one tree: walking never comes back to an item, so it ends. */
static bool check_tree(const uir_vm_kernel *k, uint32_t first, uint32_t depth, bool *seen) {
    if (depth > VM_MAX_DEPTH) return false;
    for (uint32_t id = first; id != VM_NONE; id = k->items[id].next) {
        if (id >= k->items_count || seen[id]) return false;
        seen[id] = true;
        if (k->items[id].first_child != VM_NONE && !check_tree(k, k->items[id].first_child, depth + 1, seen))
            return false;
    }
    return true;
}

static bool check_phase(const uir_vm_kernel *k, const vm_phase *p, bool *seen) {
    if (p->axis_count > 4) return false;
    for (uint32_t a = 0; a < p->axis_count; a++) {
        if (!is_symbol(k, p->symbols[a], UIR_ISYMBOL_PARALLEL) || !is_expression(k, p->extents[a])) return false;
    }
    return check_tree(k, p->first_item, 0, seen);
}

/* The first table that is out of order, or NULL. */
static const char *find_fault(uir_vm_kernel *k, bool *seen) {
#define CHECK(field, what, call)                                                                                       \
    for (uint32_t i = 0; i < k->field##_count; i++) {                                                                  \
        if (!(call)) return what;                                                                                      \
    }
    CHECK(expressions, "an expression", check_expression(k, &k->expressions[i]))
    CHECK(symbols, "a symbol", check_symbol(k, &k->symbols[i]))
    CHECK(requires_, "a requirement", check_condition(k, &k->requires_[i]))
    CHECK(pointers, "a pointer", check_pointer(k, &k->pointers[i]))
    CHECK(slices, "a slice", check_slice(k, &k->slices[i]))
    CHECK(atoms, "a condition", check_atom(k, &k->atoms[i]))
    CHECK(instructions, "an instruction", check_instruction(k, &k->instructions[i]))
    CHECK(items, "an item of the tree", check_item(k, i))
    CHECK(phases, "a phase", check_phase(k, &k->phases[i], seen))
#undef CHECK
    return NULL;
}

/* ---- what a run may rely on ---- */
static bool changes(const vm_symbol *s) {
    return s->kind != UIR_ISYMBOL_DIM && s->kind != UIR_ISYMBOL_TILE;
}

static vm_traits find_traits(const uir_vm_kernel *k, const vm_expression *e) {
    vm_traits stack[VM_MAX_STACK];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const vm_step *s = &k->steps[e->first + i];
        vm_traits t = {0, true, false};
        if (s->kind == UIR_DIM_SYMBOL && changes(&k->symbols[s->value])) {
            t.depends = vm_symbol_bit((uint32_t)s->value);
            t.uses_index = k->symbols[s->value].kind == UIR_ISYMBOL_INDEX;
        } else if (s->kind != UIR_DIM_CONST && s->kind != UIR_DIM_SYMBOL) {
            vm_traits a = stack[depth - 2], b = stack[depth - 1];
            depth -= 2;
            bool still = !a.depends && !b.depends, linear = s->kind == UIR_DIM_MUL ? !a.depends || !b.depends : false;
            t.affine = a.affine && b.affine && (still || s->kind == UIR_DIM_ADD || linear);
            t.depends = a.depends | b.depends;
            t.uses_index = a.uses_index || b.uses_index;
        }
        stack[depth++] = t;
    }
    return stack[0];
}

static void add_traits(const uir_vm_kernel *k, uint32_t expression, vm_traits *to) {
    const vm_traits *t = &k->traits[expression];
    to->depends |= t->depends;
    to->uses_index |= t->uses_index;
    to->affine &= t->affine;
}

static vm_traits find_placement(const uir_vm_kernel *k, const vm_slice *s) {
    const vm_pointer *p = &k->pointers[s->pointer];
    vm_traits out = {0, true, false}, shape = {0, true, false};
    for (uint32_t d = 0; d < p->rank; d++) {
        add_traits(k, s->starts[d], &out);
        add_traits(k, p->extents[d], &shape);
        for (uint32_t m = 0; m < p->mode_counts[d]; m++) {
            add_traits(k, p->modes[d][m].size, &shape);
            add_traits(k, p->modes[d][m].stride, &shape);
        }
    }
    for (uint32_t d = 0; d < s->rank; d++) add_traits(k, s->counts[d], &shape);
    for (uint32_t a = 0; a < s->axis_count; a++) add_traits(k, s->axis_extents[a], &shape);
    out.depends |= shape.depends;
    if (p->by_loop != VM_NONE) out.depends |= vm_symbol_bit(p->by_loop);
    return out;
}

static uir_status find_all_traits(uir_vm_kernel *k) {
    UIR_TRY_ALLOCATE(k->traits,
                     uir_arena_allocate_array(&k->arena, (size_t)k->expressions_count + 1, sizeof *k->traits));
    UIR_TRY_ALLOCATE(k->placement,
                     uir_arena_allocate_array(&k->arena, (size_t)k->slices_count + 1, sizeof *k->placement));
    for (uint32_t i = 0; i < k->expressions_count; i++) k->traits[i] = find_traits(k, &k->expressions[i]);
    for (uint32_t i = 0; i < k->slices_count; i++) k->placement[i] = find_placement(k, &k->slices[i]);
    return UIR_STATUS_OK;
}

static uir_status load(uir_reader *in, uir_vm_kernel *k, uir_diagnostics *diagnostics) {
    bool *seen;
    if (in->end - in->at < (ptrdiff_t)sizeof VM_MAGIC || memcmp(in->at, VM_MAGIC, sizeof VM_MAGIC)) {
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "pack the model again",
                              "the bytes of a kernel are not VM bytecode");
    }
    in->at += sizeof VM_MAGIC;
    uint64_t version = uir_reader_take(in, 2), length = uir_reader_take(in, 4);
    if (version != VM_VERSION)
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "VM kernel of version %u: this build reads version %d",
                         (unsigned)version, VM_VERSION);
    if (length > 200 || length > (size_t)(in->end - in->at))
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the VM kernel's name is invalid");
    UIR_TRY_ALLOCATE(k->name, uir_arena_copy_string(&k->arena, (const char *)in->at, (size_t)length));
    in->at += length;
    uir_status status = read_tables(in, k);
    if (status == UIR_STATUS_BAD_FILE)
        return uir_error(diagnostics, status, NULL, "VM kernel @%s: the bytes are cut off or too many", k->name);
    UIR_TRY(status);
    UIR_TRY_ALLOCATE(seen, uir_arena_allocate_array(&k->arena, (size_t)k->items_count + 1, sizeof *seen));
    const char *fault = find_fault(k, seen);
    if (fault)
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "pack the model again",
                              "VM kernel @%s: %s is invalid", k->name, fault);
    UIR_TRY(find_all_traits(k));
    k->valid = true;
    return UIR_STATUS_OK;
}

uir_status uir_vm_load(const uir_allocator *allocator, const void *bytes, size_t size, uir_diagnostics *diagnostics,
                       uir_vm_kernel **out_kernel) {
    uir_vm_kernel *k;
    uir_reader in = {bytes, (const unsigned char *)bytes + size, false};
    *out_kernel = NULL;
    UIR_TRY_ALLOCATE(k, uir_allocate_zeroed(allocator, sizeof *k));
    k->allocator = *allocator;
    uir_arena_init(&k->arena, &k->allocator);
    uir_status status = load(&in, k, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_vm_destroy(k);
        return status;
    }
    *out_kernel = k;
    return UIR_STATUS_OK;
}

void uir_vm_destroy(uir_vm_kernel *k) {
    if (!k) return;
    uir_allocator allocator = k->allocator;
    uir_arena_deinit(&k->arena);
    uir_release(&allocator, k, sizeof *k);
}

bool uir_vm_needs(const uir_vm_kernel *k, uint32_t dims, uint32_t tiles, uint32_t pointers) {
    uint32_t dim = 0, tile = 0, pointer = 0;
    for (uint32_t i = 0; i < k->symbols_count; i++) {
        dim += k->symbols[i].kind == UIR_ISYMBOL_DIM;
        tile += k->symbols[i].kind == UIR_ISYMBOL_TILE;
    }
    for (uint32_t i = 0; i < k->pointers_count; i++) pointer += k->pointers[i].role != UIR_IPOINTER_LOCAL;
    return dim <= dims && tile <= tiles && pointer <= pointers;
}
