/* What the VM refuses: bytes that are out of order, each with its message, and runs beyond their limits. A fault is
 * made in the decoded tables of a good kernel, which are then written again by the list of fields that load reads by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/vm/machine.h"
#include "tests/ir/kernel/campaign/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of everything one: a requirement, a let, instances, a window, an index, an if, first and last, mma, scan, cast, iota.
 */
static const char *const kernel_text = "igraph @all on cpu {\n"
                                       "  dim M in 1..64, N in 1..64\n"
                                       "  tile t in 2..16 mult 2\n"
                                       "  candidate t = 4\n"
                                       "  require t*N*4 <= sram\n"
                                       "  ptr %x : dram f32 [M, N] in 0\n"
                                       "  ptr %i : dram i32 [M] in 1\n"
                                       "  ptr %y : dram f32 [M, N] out 0\n"
                                       "  ptr %z : dram i32 [M, N] out 1\n"
                                       "  ptr %a : sram f32 [1, N] x2 by r\n"
                                       "  ptr %c : sram f32 [1, 1]\n"
                                       "  ptr %k : sram i32 [1, N]\n"
                                       "  ptr %b : sram bool [1, N]\n"
                                       "  phase {\n"
                                       "    parallel p : ceildiv(M, t) group\n"
                                       "    loop r : t when p*t+r < M {\n"
                                       "      index j = %i[p*t+r] in 0..M-1 clamp\n"
                                       "      let row = p*t+r\n"
                                       "      fill.f32 %c, 0\n"
                                       "      scan.add.row.unit.f32 %a, %x[j:1, 0:N], %c\n"
                                       "      binary.add.f32 %a, %a, %x[row, n-1 ; (o<1), n<N] fill 0\n"
                                       "      compare.lt.f32 %b, %a, 1\n"
                                       "      ternary.select.f32 %a, %b, %a, %x[row:1, 0:N]\n"
                                       "      mma.f32.f32.f32 %a, %x[row:1, 0:1], %x[0:1, 0:N]\n"
                                       "      if row >= 2 {\n"
                                       "        unary.neg.f32 %a, %a\n"
                                       "      }\n"
                                       "      iota.row.i32 %k, row\n"
                                       "      move %y[row:1, 0:N], %a\n"
                                       "      move %z[row:1, 0:N], %k\n"
                                       "    }\n"
                                       "  }\n"
                                       "}\n";

typedef struct fixture {
    harness h;
    uir_igraph *igraph;
    uir_text bytes;
} fixture;

static void begin(fixture *f) {
    harness_init(&f->h, 3);
    f->igraph = harness_read(&f->h, kernel_text, strlen(kernel_text), "all");
    if (!f->igraph) harness_say(&f->h, "all");
    assert_non_null(f->igraph);
    uir_text_init(&f->bytes, &f->h.allocator);
    assert_int_equal(uir_vm_encode(f->igraph, &f->h.diagnostics, &f->bytes), UIR_STATUS_OK);
}

static void end(fixture *f) {
    uir_text_deinit(&f->bytes);
    uir_igraph_destroy(f->igraph);
    harness_deinit(&f->h);
}

static uir_vm_kernel *load(fixture *f) {
    uir_vm_kernel *k = NULL;
    assert_int_equal(uir_vm_load(&f->h.allocator, f->bytes.data, f->bytes.length, &f->h.diagnostics, &k),
                     UIR_STATUS_OK);
    return k;
}

/* Loads and expects BAD_FILE and the words. */
static void expect_fault(fixture *f, const void *bytes, size_t size, const char *name, const char *words) {
    uir_vm_kernel *k = NULL;
    char message[600] = "";
    uir_status status = uir_vm_load(&f->h.allocator, bytes, size, &f->h.diagnostics, &k);
    if (f->h.diagnostics.first) uir_diagnostic_format(f->h.diagnostics.first, message, sizeof message);
    if (status != UIR_STATUS_BAD_FILE || k || !strstr(message, words))
        fail_msg("%s: status %d, '%s' instead of '%s'", name, (int)status, message, words);
    uir_diagnostics_clear(&f->h.diagnostics);
}

/* ---- the envelope ---- */
static void test_envelope(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    size_t length = f.bytes.length;
    char *bytes = malloc(length + 4);
    assert_non_null(bytes);
#define RESTORE() memcpy(bytes, f.bytes.data, length)
    RESTORE();
    expect_fault(&f, bytes, 0, "no bytes", "not VM bytecode");
    expect_fault(&f, bytes, 3, "three bytes", "not VM bytecode");
    bytes[0] = 'u';
    expect_fault(&f, bytes, length, "magic", "not VM bytecode");
    RESTORE();
    bytes[6] = 9;
    expect_fault(&f, bytes, length, "version", "version 9");
    RESTORE();
    bytes[8] = (char)0xff;
    expect_fault(&f, bytes, length, "length of the name", "name is invalid");
    expect_fault(&f, bytes, 9, "cut off in the name's length", "");
    RESTORE();
    memset(bytes + length, 0, 4);
    expect_fault(&f, bytes, length + 4, "bytes after the end", "cut off or too many");
    for (size_t cut = 12; cut < length; cut += 1 + cut / 16) {
        char *part = malloc(cut); /* of just this size: a read beyond the end is seen by the sanitizer */
        memcpy(part, f.bytes.data, cut);
        expect_fault(&f, part, cut, "cut off", "");
        free(part);
    }
    /* The first table's count, behind the name: more records than bytes. */
    RESTORE();
    memset(bytes + 8 + 4 + strlen("all"), 0xff, 4);
    expect_fault(&f, bytes, length, "count", "cut off or too many");
    free(bytes);
    end(&f);
}

/* ---- the tables ---- */
static void put(uir_text *bytes, uint64_t value, int size) {
    char buffer[8];
    for (int i = 0; i < size; i++) buffer[i] = (char)(value >> (8 * i));
    uir_text_append(bytes, buffer, (size_t)size);
}
#define W(field) put(bytes, (uint64_t)(field), 4);
#define Q(field) put(bytes, (uint64_t)(field), 8);

static void write_kernel(const uir_vm_kernel *k, uir_text *bytes) {
    uir_text_append(bytes, VM_MAGIC, sizeof VM_MAGIC);
    put(bytes, VM_VERSION, 2);
    put(bytes, strlen(k->name), 4);
    uir_text_append(bytes, k->name, strlen(k->name));
#define VM_TABLE(type, field)                                                                                          \
    put(bytes, k->field##_count, 4);                                                                                   \
    for (uint32_t i = 0; i < k->field##_count; i++) {                                                                  \
        const type *r = &k->field[i];                                                                                  \
        type##_fields(W, Q, r)                                                                                         \
    }
    VM_TABLES(VM_TABLE)
#undef VM_TABLE
}
#undef W
#undef Q

/* The first record of a kind. */
static vm_item *item_of(uir_vm_kernel *k, uir_iitem_kind kind) {
    for (uint32_t i = 0; i < k->items_count; i++) {
        if (k->items[i].kind == (uint32_t)kind) return &k->items[i];
    }
    fail_msg("no item of kind %d", (int)kind);
    return NULL;
}
static vm_instruction *iop(uir_vm_kernel *k, uir_iop_code code) {
    for (uint32_t i = 0; i < k->instructions_count; i++) {
        if (k->instructions[i].code == (uint32_t)code) return &k->instructions[i];
    }
    fail_msg("no instruction of code %d", (int)code);
    return NULL;
}
static vm_slice *slice_of(uir_vm_kernel *k, uir_iop_code code, uint32_t n) {
    return &k->slices[iop(k, code)->slices[n]];
}
static uint32_t pointer_of(const uir_vm_kernel *k, uir_ipointer_role role) {
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        if (k->pointers[i].role == (uint32_t)role) return i;
    }
    return VM_NONE;
}
static vm_pointer *doubled(uir_vm_kernel *k) {
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        if (k->pointers[i].instances == 2) return &k->pointers[i];
    }
    fail_msg("no pointer has two instances");
    return NULL;
}
static vm_symbol *symbol_of(uir_vm_kernel *k, uir_isymbol_kind kind) {
    for (uint32_t i = 0; i < k->symbols_count; i++) {
        if (k->symbols[i].kind == (uint32_t)kind) return &k->symbols[i];
    }
    fail_msg("no symbol of kind %d", (int)kind);
    return NULL;
}
static vm_slice *window_of(uir_vm_kernel *k) {
    for (uint32_t i = 0; i < k->slices_count; i++) {
        if (k->slices[i].window) return &k->slices[i];
    }
    fail_msg("no window");
    return NULL;
}
static vm_step *step_of(uir_vm_kernel *k, uint32_t kind) {
    for (uint32_t i = 0; i < k->steps_count; i++) {
        if (k->steps[i].kind == kind) return &k->steps[i];
    }
    fail_msg("no step of kind %u", kind);
    return NULL;
}

/* FAULT(what is wrong, the words of the message, the statement that makes it in kernel k). */
#define EXPRESSION  "an expression is invalid"
#define SYMBOL      "a symbol is invalid"
#define REQUIREMENT "a requirement is invalid"
#define POINTER     "a pointer is invalid"
#define SLICE       "a slice is invalid"
#define CONDITION   "a condition is invalid"
#define INSTRUCTION "an instruction is invalid"
#define ITEM        "an item of the tree is invalid"
#define PHASE       "a phase is invalid"
#define FAULTS(F)                                                                                                      \
    F("expression without steps", EXPRESSION, k->expressions[0].count = 0)                                             \
    F("expression beyond the steps", EXPRESSION, k->expressions[0].first = k->steps_count)                             \
    F("expression whose range overflows", EXPRESSION, k->expressions[0].count = UINT32_MAX)                            \
    F("unknown step", EXPRESSION, k->steps[0].kind = 99)                                                               \
    F("symbol of a step below 0", EXPRESSION, step_of(k, UIR_DIM_SYMBOL)->value = -1)                                  \
    F("symbol of a step too large", EXPRESSION, step_of(k, UIR_DIM_SYMBOL)->value = k->symbols_count)                  \
    F("operator without operands", EXPRESSION, step_of(k, UIR_DIM_SYMBOL)->kind = UIR_DIM_ADD)                         \
    F("two values left", EXPRESSION, step_of(k, UIR_DIM_MUL)->kind = UIR_DIM_CONST)                                    \
    F("unknown kind of symbol", SYMBOL, k->symbols[0].kind = 77)                                                       \
    F("multiple of 0", SYMBOL, k->symbols[0].multiple_of = 0)                                                          \
    F("let without a definition", SYMBOL, symbol_of(k, UIR_ISYMBOL_LET)->definition = VM_NONE)                         \
    F("relation of a requirement", REQUIREMENT, k->requires_[0].relation = 50)                                         \
    F("expression of a requirement", REQUIREMENT, k->requires_[0].right = k->expressions_count)                        \
    F("role", POINTER, k->pointers[0].role = 9)                                                                        \
    F("dtype of a pointer", POINTER, k->pointers[0].dtype = 200)                                                       \
    F("strings in a pointer", POINTER, k->pointers[0].dtype = UIR_DTYPE_STRING)                                        \
    F("complex numbers in a pointer", POINTER, k->pointers[0].dtype = UIR_DTYPE_C64)                                   \
    F("half bytes in a pointer", POINTER, k->pointers[0].dtype = UIR_DTYPE_U4)                                         \
    F("rank", POINTER, k->pointers[0].rank = VM_MAX_RANK + 1)                                                          \
    F("span", POINTER, k->pointers[0].span = k->expressions_count)                                                     \
    F("no instances", POINTER, k->pointers[0].instances = 0)                                                           \
    F("too many instances", POINTER, doubled(k)->instances = 65)                                                       \
    F("instances without a loop", POINTER, doubled(k)->by_loop = VM_NONE)                                              \
    F("instances by what is no loop", POINTER, doubled(k)->by_loop = 0)                                                \
    F("instances of an output", POINTER, doubled(k)->role = UIR_IPOINTER_OUT)                                          \
    F("extent", POINTER, k->pointers[0].extents[0] = k->expressions_count)                                             \
    F("no modes", POINTER, k->pointers[0].mode_counts[0] = 0)                                                          \
    F("too many modes", POINTER, k->pointers[0].mode_counts[0] = VM_MAX_MODES + 1)                                     \
    F("stride", POINTER, k->pointers[0].modes[0][0].stride = k->expressions_count)                                     \
    F("size of a mode", POINTER, k->pointers[0].modes[0][0].size = k->expressions_count)                               \
    F("pointer of a slice", SLICE, k->slices[0].pointer = k->pointers_count)                                           \
    F("window that is neither", SLICE, k->slices[0].window = 2)                                                        \
    F("rank of a slice", SLICE, window_of(k)->rank = VM_MAX_RANK + 1)                                                  \
    F("box of another rank", SLICE, slice_of(k, UIR_IOP_MOVE, 0)->rank = 1)                                            \
    F("box with axes", SLICE, slice_of(k, UIR_IOP_MOVE, 0)->axis_count = 1)                                            \
    F("start", SLICE, k->slices[0].starts[0] = k->expressions_count)                                                   \
    F("count", SLICE, k->slices[0].counts[0] = k->expressions_count)                                                   \
    F("too many axes", SLICE, window_of(k)->axis_count = VM_MAX_RANK + 1)                                              \
    F("axis that is none", SLICE, window_of(k)->axis_symbols[0] = 0)                                                   \
    F("axis beyond the symbols", SLICE, window_of(k)->axis_symbols[0] = k->symbols_count)                              \
    F("extent of an axis", SLICE, window_of(k)->axis_extents[0] = k->expressions_count)                                \
    F("kind of a condition", CONDITION, k->atoms[0].kind = 8)                                                          \
    F("relation of a condition", CONDITION, k->atoms[0].relation = 70)                                                 \
    F("first of what is no loop", CONDITION, (k->atoms[0].kind = UIR_IATOM_FIRST, k->atoms[0].loop = 0))               \
    F("expression of a condition", CONDITION, k->atoms[0].left = k->expressions_count)                                 \
    F("unknown instruction", INSTRUCTION, k->instructions[0].code = UIR_IOP_COUNT)                                     \
    F("dtype of an instruction", INSTRUCTION, k->instructions[0].dtype = 99)                                           \
    F("axis of an instruction", INSTRUCTION, k->instructions[0].axis = 3)                                              \
    F("numbers for operands that are not there", INSTRUCTION, iop(k, UIR_IOP_NEG)->immediate_mask = 2)                 \
    F("mask of numbers", INSTRUCTION, iop(k, UIR_IOP_NEG)->immediate_mask = 8)                                         \
    F("too few slices", INSTRUCTION, iop(k, UIR_IOP_ADD)->slice_count = 2)                                             \
    F("too many slices", INSTRUCTION, iop(k, UIR_IOP_NEG)->slice_count = 3)                                            \
    F("slice beyond the table", INSTRUCTION, iop(k, UIR_IOP_NEG)->slices[0] = k->slices_count)                         \
    F("number in an mma", INSTRUCTION,                                                                                 \
      (iop(k, UIR_IOP_MMA)->immediate_mask = 2, iop(k, UIR_IOP_MMA)->slice_count = 2))                                 \
    F("iota without a start", INSTRUCTION, iop(k, UIR_IOP_IOTA)->start = k->expressions_count)                         \
    F("write to an input", INSTRUCTION, slice_of(k, UIR_IOP_NEG, 0)->pointer = pointer_of(k, UIR_IPOINTER_IN))         \
    F("carry in an input", INSTRUCTION, slice_of(k, UIR_IOP_SCAN_ADD, 2)->pointer = pointer_of(k, UIR_IPOINTER_IN))    \
    F("dtype of a result", INSTRUCTION, iop(k, UIR_IOP_NEG)->dtype = UIR_DTYPE_I32)                                    \
    F("result of a comparison", INSTRUCTION,                                                                           \
      slice_of(k, UIR_IOP_LT, 0)->pointer = slice_of(k, UIR_IOP_LT, 1)->pointer)                                       \
    F("condition of a select", INSTRUCTION,                                                                            \
      slice_of(k, UIR_IOP_SELECT, 1)->pointer = slice_of(k, UIR_IOP_SELECT, 2)->pointer)                               \
    F("dtypes of an mma", INSTRUCTION, iop(k, UIR_IOP_MMA)->dtype_b = UIR_DTYPE_I8)                                    \
    F("unknown item", ITEM, k->items[0].kind = 40)                                                                     \
    F("conditions beyond the table", ITEM, k->items[0].first_atom = k->atoms_count + 1)                                \
    F("too many conditions", ITEM, k->items[0].atom_count = UINT32_MAX)                                                \
    F("loop over what is no loop's index", ITEM, item_of(k, UIR_IITEM_LOOP)->symbol = 0)                               \
    F("extent of a loop", ITEM, item_of(k, UIR_IITEM_LOOP)->extent = k->expressions_count)                             \
    F("let of another kind", ITEM, item_of(k, UIR_IITEM_LET)->symbol = 0)                                              \
    F("index of another kind", ITEM, item_of(k, UIR_IITEM_INDEX)->symbol = 0)                                          \
    F("mode of an index", ITEM, item_of(k, UIR_IITEM_INDEX)->mode = 5)                                                 \
    F("limit of an index", ITEM, item_of(k, UIR_IITEM_INDEX)->limit = k->expressions_count)                            \
    F("slice of an index", ITEM, item_of(k, UIR_IITEM_INDEX)->slice = k->slices_count)                                 \
    F("index read from floats", ITEM, item_of(k, UIR_IITEM_INDEX)->slice = iop(k, UIR_IOP_NEG)->slices[0])             \
    F("instruction beyond the table", ITEM, item_of(k, UIR_IITEM_INSTRUCTION)->instruction = k->instructions_count)    \
    F("too many parallel axes", PHASE, k->phases[0].axis_count = 5)                                                    \
    F("parallel axis that is none", PHASE, k->phases[0].symbols[0] = 0)                                                \
    F("extent of a parallel axis", PHASE, k->phases[0].extents[0] = k->expressions_count)                              \
    F("first item beyond the table", PHASE, k->phases[0].first_item = k->items_count)                                  \
    F("item that follows itself", PHASE, k->items[k->phases[0].first_item].next = k->phases[0].first_item)             \
    F("item inside itself", PHASE, item_of(k, UIR_IITEM_LOOP)->first_child = k->phases[0].first_item)                  \
    F("child beyond the table", PHASE, item_of(k, UIR_IITEM_LOOP)->first_child = k->items_count)

static void test_tables(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    uir_text bytes;
    uir_vm_kernel *k;
#define F(name, words, statement)                                                                                      \
    k = load(&f);                                                                                                      \
    uir_text_init(&bytes, &f.h.allocator);                                                                             \
    (void)(statement);                                                                                                 \
    write_kernel(k, &bytes);                                                                                           \
    uir_vm_destroy(k);                                                                                                 \
    expect_fault(&f, bytes.data, bytes.length, name, words);                                                           \
    uir_text_deinit(&bytes);
    FAULTS(F)
#undef F
    /* Unchanged tables are the same bytes. */
    k = load(&f);
    uir_text_init(&bytes, &f.h.allocator);
    write_kernel(k, &bytes);
    assert_int_equal(bytes.length, f.bytes.length);
    assert_memory_equal(bytes.data, f.bytes.data, bytes.length);
    uir_text_deinit(&bytes);
    uir_vm_destroy(k);
    end(&f);
}

/* A tree deeper than the walk allows. */
static void test_depth(void **state) {
    fixture f;
    (void)state;
    begin(&f);
    uir_vm_kernel *k = load(&f);
    enum { DEPTH = VM_MAX_DEPTH + 2 };
    vm_item items[DEPTH] = {{0}}, *old = k->items;
    uint32_t old_count = k->items_count;
    for (uint32_t i = 0; i < DEPTH; i++) {
        items[i].kind = UIR_IITEM_IF;
        items[i].first_child = i + 1 < DEPTH ? i + 1 : VM_NONE;
        items[i].next = VM_NONE;
    }
    uir_text bytes;
    uir_text_init(&bytes, &f.h.allocator);
    k->items = items;
    k->items_count = DEPTH;
    k->phases[0].first_item = 0;
    write_kernel(k, &bytes);
    expect_fault(&f, bytes.data, bytes.length, "depth", PHASE);
    k->items = old;
    k->items_count = old_count;
    uir_vm_destroy(k);
    uir_text_deinit(&bytes);
    end(&f);
}

/* ---- runs ---- */
static void expect_run(fixture *f, const uir_vm_kernel *vm, harness_case *c, const uir_vm_options *options,
                       uir_status wanted, const char *words) {
    char message[600] = "";
    uir_kernel_arguments arguments = harness_arguments(c);
    harness_reset(c);
    uir_status status = uir_vm_run(vm, &arguments, c->size, options, &f->h.diagnostics);
    if (f->h.diagnostics.first) uir_diagnostic_format(f->h.diagnostics.first, message, sizeof message);
    if (status != wanted || !strstr(message, words))
        fail_msg("status %d instead of %d, '%s' instead of '%s'", (int)status, (int)wanted, message, words);
    uir_diagnostics_clear(&f->h.diagnostics);
}

static void test_limits(void **state) {
    fixture f;
    harness_case c;
    const int64_t dims[] = {9, 17}, tiles[] = {4};
    (void)state;
    begin(&f);
    uir_vm_kernel *vm = load(&f);
    assert_true(harness_bind_to(&f.h, f.igraph, dims, tiles, &c));
    expect_run(&f, vm, &c, NULL, UIR_STATUS_OK, "");
    expect_run(&f, vm, &c, &(uir_vm_options){.step_limit = 1000000}, UIR_STATUS_OK, "");
    expect_run(&f, vm, &c, &(uir_vm_options){.step_limit = 5}, UIR_STATUS_LIMIT, "more than 5 steps");
    expect_run(&f, vm, &c, &(uir_vm_options){.scratch_limit = 64}, UIR_STATUS_LIMIT,
               "over 64 bytes of on-chip storage");
    bool cancel = true;
    expect_run(&f, vm, &c, &(uir_vm_options){.cancel = &cancel}, UIR_STATUS_CANCELLED, "");
    cancel = false;
    expect_run(&f, vm, &c, &(uir_vm_options){.cancel = &cancel}, UIR_STATUS_OK, "");
    expect_run(&f, vm, &c, &(uir_vm_options){.isa = "pdp11"}, UIR_STATUS_DEVICE_FAILED, "'pdp11'");
    for (uint32_t i = 0; i < c.count; i++) {
        char words[60];
        snprintf(words, sizeof words, "buffer %u has %zu bytes", i, c.size[i] - 1);
        c.size[i]--;
        uir_kernel_arguments arguments = harness_arguments(&c);
        char message[600] = "";
        assert_int_equal(uir_vm_run(vm, &arguments, c.size, NULL, &f.h.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
        uir_diagnostic_format(f.h.diagnostics.first, message, sizeof message);
        assert_non_null(strstr(message, words));
        uir_diagnostics_clear(&f.h.diagnostics);
        c.size[i]++;
    }
    c.dims[0] = 65;
    expect_run(&f, vm, &c, NULL, UIR_STATUS_INVALID_ARGUMENT, "dim 0 = 65 breaks its declaration");
    c.dims[0] = 9;
    c.tiles[0] = 0;
    expect_run(&f, vm, &c, NULL, UIR_STATUS_INVALID_ARGUMENT, "tile 0 = 0 breaks its declaration");
    c.tiles[0] = 5;
    expect_run(&f, vm, &c, NULL, UIR_STATUS_INVALID_ARGUMENT, "tile 0 = 5 breaks its declaration");
    assert_true(uir_vm_needs(vm, 2, 1, 4));
    assert_false(uir_vm_needs(vm, 1, 1, 4));
    assert_false(uir_vm_needs(vm, 2, 0, 4));
    assert_false(uir_vm_needs(vm, 2, 1, 3));
    harness_free(&f.h, &c);
    uir_vm_destroy(vm);
    end(&f);
}

/* ---- memory ---- */
/* What an instruction allocates lies in the thread's memory, from its free place on, until that has no room; then in
 * blocks of its own. The thread is told how much it would have taken. */
static void test_memory(void **state) {
    (void)state;
    enum { FREE_AT = 128, SIZE = 1024 };
    static const size_t sizes[] = {1, 64, 500, 200, 64, 0, 300}; /* 64, 64, 512, 256 reach the end */
    uir_allocator allocator = uir_allocator_system();
    uir_kernel_scratch scratch = {.size = SIZE, .allocator = &allocator};
    vm_machine machine = {.scratch = &scratch, .free_at = FREE_AT};
    size_t used = 0;
    scratch.data = aligned_alloc(64, SIZE);
    assert_non_null(scratch.data);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *place = uir_vm_allocate(&machine, sizes[i], 1);
        size_t bytes = sizes[i] ? (sizes[i] + 63) / 64 * 64 : 64;
        assert_non_null(place);
        if (FREE_AT + used + bytes <= SIZE)
            assert_ptr_equal(place, scratch.data + FREE_AT + used);
        else
            assert_true(place + bytes <= scratch.data || place >= scratch.data + SIZE);
        memset(place, 1, sizes[i]);
        used += bytes;
        assert_int_equal(scratch.wanted, FREE_AT + used);
    }
    assert_null(uir_vm_allocate(&machine, SIZE_MAX / 2, 4));
    assert_null(uir_vm_allocate(&machine, SIZE_MAX / 2, 1));
    uir_vm_forget(&machine);
    assert_null(machine.overflow);
    assert_ptr_equal(uir_vm_allocate(&machine, 1, 1), scratch.data + FREE_AT);
    free(scratch.data);
}

/* ---- cancelling ---- */
/* Instructions over slices of far more elements than their memory has: what lies outside is read as the fill, and not
 * written. */
static const char *const endless[] = {
    "fill.f32 %y[0:N], 1",
    "fill.f32 %y[0*i+j ; i<N, j<2], 1",
    "iota.row.f32 %y[0:N], 3",
    "unary.neg.f32 %y[0:N], %x[0:N] fill 0",
    "move.f32 %y[0:N], %x[0:N] fill 0",
    "reduce.max.row.unit.f32 %y[0:1], %x[0:N] fill 0",
    "reduce.max.row.unit.f32 %y[0:1], %x[0*i ; i<N]",
    "reduce.max.row.unit.f32 %y[0:N], %x[0*i+0*j ; i<N, j<1]",
    "reduce.max.row.unit.f32 %y[0:N], %x[0*i+0*j ; i<N, j<0]",
    "reduce.max.col.unit.f32 %y[0:1], %x[0*i+j ; i<N, j<1]",
    "reduce.max.col.unit.f32 %y[0:1], %x[0*i+j ; i<N, j<1] fill 0",
    "scan.add.row.unit.f32 %y[0:N], %x[0:N] fill 0, %a",
    "mma.f32.f32.f32 %a, %x[0*i+0*j ; i<1, j<N], %x[0*i+0*j ; i<N, j<1]",
};

static void *cancel_later(void *cancel) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    __atomic_store_n((bool *)cancel, true, __ATOMIC_RELAXED);
    return NULL;
}

static void test_cancelled_within(void **state) {
    (void)state;
    uint32_t wrong = 0;
    alarm(120); /* instead of for ever */
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        harness h;
        uir_text text, bytes;
        uir_vm_kernel *vm = NULL;
        float x[4] = {1, 2, 3, 4}, y[4];
        void *pointers[] = {x, y};
        const int64_t dims[] = {INT64_C(1) << 40};
        const size_t sizes[] = {sizeof x, sizeof y};
        bool cancel = false;
        pthread_t thread;
        harness_init(&h, 1);
        uir_text_init(&text, &h.allocator);
        uir_text_init(&bytes, &h.allocator);
        uir_text_append_format(&text,
                               "igraph @endless on cpu {\n  dim N in 1..2000000000000\n  ptr %%x : dram f32 [4] in 0\n"
                               "  ptr %%y : dram f32 [4] out 0\n  ptr %%a : sram f32 [1, 1]\n  phase {\n"
                               "    fill.f32 %%a, 0\n    %s\n  }\n}\n",
                               endless[i]);
        uir_igraph *igraph = NULL; /* not verified, as bytecode from anywhere is not */
        uir_status parsed = uir_igraph_parse(&h.allocator, uir_compile_machines_get(h.devices), text.data, text.length,
                                             "endless", &h.diagnostics, &igraph);
        if (parsed != UIR_STATUS_OK) harness_say(&h, endless[i]);
        assert_int_equal(parsed, UIR_STATUS_OK);
        assert_int_equal(uir_vm_encode(igraph, &h.diagnostics, &bytes), UIR_STATUS_OK);
        assert_int_equal(uir_vm_load(&h.allocator, bytes.data, bytes.length, &h.diagnostics, &vm), UIR_STATUS_OK);
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &cancel), 0);
        uir_kernel_arguments arguments = {dims, NULL, pointers};
        uir_status status = uir_vm_run(vm, &arguments, sizes, &(uir_vm_options){.cancel = &cancel}, &h.diagnostics);
        pthread_join(thread, NULL);
        if (status != UIR_STATUS_CANCELLED) print_error("%s: %s\n", endless[i], uir_status_text(status)), wrong++;

        uir_vm_destroy(vm);
        uir_igraph_destroy(igraph);
        uir_text_deinit(&bytes);
        uir_text_deinit(&text);
        harness_deinit(&h);
    }
    alarm(0);
    assert_int_equal(wrong, 0);
}

/* A slice that overlaps what is written is copied first: its thousand rows are steps as those of the sum are. */
static void test_copies_are_steps(void **state) {
    static const char text[] = "igraph @copies on cpu {\n  ptr %y : dram f32 [1] out 0\n  ptr %a : sram f32 [1025, 2]\n"
                               "  phase {\n    fill.f32 %a, 0\n"
                               "    binary.add.f32 %a[0:1024, 0:1], %a[0:1024, 0:1], %a[1:1024, 0:1]\n  }\n}\n";
    static const struct {
        uint64_t limit;
        uir_status status;
    } cases[] = {{4000, UIR_STATUS_OK}, {2800, UIR_STATUS_LIMIT}};
    harness h;
    uir_text bytes;
    uir_igraph *igraph = NULL;
    uir_vm_kernel *vm = NULL;
    float y[1] = {0};
    void *pointers[] = {y};
    const size_t sizes[] = {sizeof y};
    (void)state;
    harness_init(&h, 1);
    uir_text_init(&bytes, &h.allocator);
    uir_status parsed = uir_igraph_parse(&h.allocator, uir_compile_machines_get(h.devices), text, strlen(text),
                                         "copies", &h.diagnostics, &igraph);
    if (parsed != UIR_STATUS_OK) harness_say(&h, "copies");
    assert_int_equal(parsed, UIR_STATUS_OK);
    assert_int_equal(uir_vm_encode(igraph, &h.diagnostics, &bytes), UIR_STATUS_OK);
    assert_int_equal(uir_vm_load(&h.allocator, bytes.data, bytes.length, &h.diagnostics, &vm), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_kernel_arguments arguments = {NULL, NULL, pointers};
        uir_vm_options options = {.step_limit = cases[i].limit};
        assert_int_equal(uir_vm_run(vm, &arguments, sizes, &options, &h.diagnostics), cases[i].status);
        uir_diagnostics_clear(&h.diagnostics);
    }
    uir_vm_destroy(vm);
    uir_igraph_destroy(igraph);
    uir_text_deinit(&bytes);
    harness_deinit(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope),         cmocka_unit_test(test_tables), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_limits),           cmocka_unit_test(test_memory), cmocka_unit_test(test_cancelled_within),
        cmocka_unit_test(test_copies_are_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
