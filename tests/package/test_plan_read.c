/* A plan with one thing out of order is refused: each edit breaks one check. So are the bytes around it. */
#include "tests/runtime/support.h"

#include "package/plan.h"

#include <string.h>

static const char *const kernels = KERNEL_TWICE("twice", "0..1000") /**/
    "igraph @which on cpu {\n"
    "  dim N in 0..1000\n" TILES TELL_TILE /**/
    "}\n";

/* Launches, with tiles as well, a loop, a host operator, a constant, an alias, a copy. */
static const char *const module_text = /**/
    "module opset 17\n"
    "size N min 1\n"
    "constant %n: i64[] = [3]\n"
    "graph \"main\" (%x: f32[N], %y: f32[N]) {\n" /**/
    GROUP_TWICE("d", "x", "1")                    /**/
    "    %r: f32[1, N] = reshape(%d) {dims = [1, N]}\n"
    "    %l: f32[N] = loop(%n, none, %d) {body = graph \"b\" (%i: i64[], %c: bool[], %v: f32[N]) {\n" /**/
    GROUP_TWICE("w", "v", "2")                                                                        /**/
    "        return %c, %w\n"
    "    }}\n"
    "    %t: i32[1, 1] = group(%x) {body = graph \"g3\" (%a3: f32[N]) {\n"
    "        %b3: i32[1, 1] = iota() {axis = 1, dims = [1, 1], dtype = i32}\n"
    "        return %b3\n"
    "    }, sizes = [N], kernel = \"which\"}\n"
    "    %k: f32[1], %i2: i64[1] = top_k(%x) {axis = 0, k = [1], largest = 1, sorted = 1} name \"best\" from \"TopK\"\n"
    "    return %d, %l, %y, %r, %t, %k, %i2\n"
    "}\n";

/* ---- where things are in the plan ---- */
static uir_plan_tensor *tensor_of(uir_plan *p, uint32_t storage) {
    for (uint32_t i = 0; i < p->tensors_count; i++)
        if (p->tensors[i].storage == storage) return &p->tensors[i];
    fail_msg("the plan has no tensor of storage %u", storage);
    return NULL;
}
static uir_plan_operation *symbol_operation(uir_plan *p) {
    for (uint32_t i = 0; i < p->operations_count; i++)
        if (p->operations[i].kind == UIR_DIM_SYMBOL) return &p->operations[i];
    fail_msg("the plan has no symbol");
    return NULL;
}
static uir_plan_pointer *pointer_of(uir_plan *p, uint32_t role) {
    for (uint32_t i = 0; i < p->pointers_count; i++)
        if (p->pointers[i].role == role) return &p->pointers[i];
    fail_msg("the plan has no pointer of role %u", role);
    return NULL;
}
#define LAUNCH step_of(p, UIR_PLAN_STEP_LAUNCH)
#define LOOP   step_of(p, UIR_PLAN_STEP_LOOP)
#define HOST   step_of(p, UIR_PLAN_STEP_HOST)
#define COPY   step_of(p, UIR_PLAN_STEP_COPY)
#define BODY   p->blocks[LOOP->target]

/* Name, what is done to the plan. */
#define EDITS(EDIT)                                                                                                    \
    EDIT("a text past the characters", p->texts[0].first = p->characters_count)                                        \
    EDIT("a text of several", p->texts[0].count = p->characters_count - p->texts[0].first - 1)                         \
    EDIT("an expression of nothing", p->expressions[0].count = 0)                                                      \
    EDIT("an expression past the operations", p->expressions[0].first = p->operations_count)                           \
    EDIT("an unknown operation", p->operations[0].kind = UIR_DIM_MAX + 1)                                              \
    EDIT("an operation without operands", p->operations[0].kind = UIR_DIM_ADD)                                         \
    EDIT("a symbol that there is not", symbol_operation(p)->value = p->symbols_count)                                  \
    EDIT("a symbol of negative number", symbol_operation(p)->value = -1)                                               \
    EDIT("a symbol of multiples of 0", p->symbols[0].multiple_of = 0)                                                  \
    EDIT("a symbol without a name", p->symbols[0].name = p->texts_count)                                               \
    EDIT("a constant that is not aligned", p->constants[0].offset = 1; p->constants[0].size = 1)                       \
    EDIT("a constant past the weights", p->constants[0].offset = 1 << 20; p->constants[0].size = 0)                    \
    EDIT("a constant longer than the weights", p->constants[0].size = 1 << 20)                                         \
    EDIT("a tensor of strings", p->tensors[0].dtype = UIR_DTYPE_STRING)                                                \
    EDIT("a tensor of nothing", p->tensors[0].dtype = UIR_DTYPE_NONE)                                                  \
    EDIT("a tensor of an unknown dtype", p->tensors[0].dtype = 1000)                                                   \
    EDIT("a tensor of great rank", p->tensors[0].extents.count = UIR_PLAN_MAX_RANK + 1)                                \
    EDIT("a tensor somewhere else", p->tensors[0].storage = UIR_PLAN_STORAGE_COUNT)                                    \
    EDIT("a tensor of an input there is not", tensor_of(p, UIR_PLAN_STORAGE_INPUT)->index = p->inputs_count)           \
    EDIT("a tensor of a constant there is not", tensor_of(p, UIR_PLAN_STORAGE_CONSTANT)->index = p->constants_count)   \
    EDIT("an alias of a later tensor", uir_plan_tensor *t = tensor_of(p, UIR_PLAN_STORAGE_ALIAS);                      \
         t->index = (uint32_t)(t - p->tensors))                                                                        \
    EDIT("a carried tensor with a number", tensor_of(p, UIR_PLAN_STORAGE_OWN)->index = 1)                              \
    EDIT("an input's tensor past the tensors", p->inputs[0].tensor = p->tensors_count)                                 \
    EDIT("an input that is another's", p->inputs[0].tensor = p->inputs[1].tensor)                                      \
    EDIT("an input that is an output", p->inputs[0].tensor = p->outputs[0].tensor)                                     \
    EDIT("an input of other rank", p->inputs[0].dim_names.count = 0)                                                   \
    EDIT("an input whose dim has no name", *word_of(p, p->inputs[0].dim_names, 0) = p->texts_count)                    \
    EDIT("a slack that is no symbol", p->inputs[0].slack = p->symbols_count)                                           \
    EDIT("a slack along no axis", p->inputs[0].slack = 0; p->inputs[0].slack_axis = 1)                                 \
    EDIT("a kernel without variants", p->kernels[0].variant_count = 0)                                                 \
    EDIT("a kernel past the variants", p->kernels[0].first_variant = p->variants_count)                                \
    EDIT("a kernel of other dims", p->kernels[0].dim_count++)                                                          \
    EDIT("a kernel of no inputs", p->kernels[0].input_count = 0)                                                       \
    EDIT("a kernel of no outputs", p->kernels[0].output_count = 0)                                                     \
    EDIT("code past the code", p->variants[0].code_offset = 1 << 20; p->variants[0].code_size = 0)                     \
    EDIT("more code than there is", p->variants[0].code_size = 1 << 20)                                                \
    EDIT("a variant's symbols past the symbols", p->variants[0].symbol_count = p->kernel_symbols_count + 1)            \
    EDIT("a variant's pointers past the pointers", p->variants[0].pointer_count = p->pointers_count + 1)               \
    EDIT("a variant's phases past the phases", p->variants[0].phase_count = p->phases_count + 1)                       \
    EDIT("a variant's conditions past the conditions", p->variants[0].require_count = p->conditions_count + 1)         \
    EDIT("a variant's candidates past the candidates", p->variants[0].candidate_count = p->candidates_count + 1)       \
    EDIT("a kernel's symbol of multiples of 0", p->kernel_symbols[0].multiple_of = 0)                                  \
    EDIT("a kernel's symbol of an unknown kind", p->kernel_symbols[0].kind = UIR_PLAN_VALUE + 1)                       \
    EDIT("a pointer of an unknown role", p->pointers[0].role = UIR_PLAN_ROLE_COUNT)                                    \
    EDIT("a pointer to strings", p->pointers[0].dtype = UIR_DTYPE_STRING)                                              \
    EDIT("a pointer without a span", p->pointers[0].span = p->expressions_count)                                       \
    EDIT("a pointer to an operand there is not", pointer_of(p, UIR_PLAN_IN)->index = p->kernels[0].input_count)        \
    EDIT("a pointer to a result there is not", pointer_of(p, UIR_PLAN_OUT)->index = p->kernels[0].output_count)        \
    EDIT("an operand that goes on from one", pointer_of(p, UIR_PLAN_IN)->tied = 0)                                     \
    EDIT("a result that goes on from none", pointer_of(p, UIR_PLAN_OUT)->tied = p->kernels[0].input_count)             \
    EDIT("half a copy", p->phases[0].copies = (uir_plan_list){0, 1})                                                   \
    EDIT("a phase of five axes", p->phases[0].extents = (uir_plan_list){0, 5})                                         \
    EDIT("a condition of an unknown relation", p->conditions[0].relation = UIR_RELATION_GE + 1)                        \
    EDIT("a condition of nothing", p->conditions[0].left = p->expressions_count)                                       \
    EDIT("a condition against nothing", p->conditions[0].right = p->expressions_count)                                 \
    EDIT("a candidate's conditions past the conditions", p->candidates[0].first_condition = p->conditions_count + 1)   \
    EDIT("a candidate without tiles", p->candidates[0].tiles.count = 0)                                                \
    EDIT("a candidate of no known cost", p->candidates[0].cost = p->expressions_count)                                 \
    EDIT("a candidate of no known units", p->candidates[0].units = p->expressions_count)                               \
    EDIT("a tile for nothing", p->candidates[1].tiles.count = 2)                                                       \
    EDIT("an attribute without a name", p->attributes[0].name = p->texts_count)                                        \
    EDIT("an attribute of an unknown kind", p->attributes[0].kind = UIR_PLAN_ATTRIBUTE_KIND_COUNT)                     \
    EDIT("an attribute past the numbers", p->attributes[0].first = p->integers_count + 1)                              \
    EDIT("an attribute of several texts", p->attributes[0].kind = UIR_PLAN_TEXT; p->attributes[0].count = 2;           \
         p->attributes[0].first = 0)                                                                                   \
    EDIT("an attribute of no text", p->attributes[0].kind = UIR_PLAN_TEXT; p->attributes[0].count = 1;                 \
         p->attributes[0].first = p->texts_count)                                                                      \
    EDIT("a step of an unknown kind", p->steps[0].kind = UIR_PLAN_STEP_KIND_COUNT)                                     \
    EDIT("a step without a name", p->steps[0].node = p->texts_count)                                                   \
    EDIT("a node without a name", p->nodes[0].name = p->texts_count)                                                   \
    EDIT("a node without an op", p->nodes[0].op = p->texts_count)                                                      \
    EDIT("a node of an unknown fate", p->nodes[0].became = UIR_FATE_COUNT)                                             \
    EDIT("a node that went into none", p->nodes[0].became = (p->nodes_count + 1) * UIR_PLAN_FATES)                     \
    EDIT("a node without a place", p->nodes[0].place = p->texts_count)                                                 \
    EDIT("a step of a node that there is not", *word_of(p, HOST->nodes, 0) = 2 * p->nodes_count)                       \
    EDIT("a step's nodes past the words", HOST->nodes.first = p->words_count)                                          \
    EDIT("a step without a note", p->steps[0].remark = p->texts_count)                                                 \
    EDIT("a step's inputs past the words", p->steps[0].inputs.first = p->words_count)                                  \
    EDIT("a step's attributes past the attributes", p->steps[0].first_attribute = p->attributes_count + 1)             \
    EDIT("a launch of no kernel", LAUNCH->target = p->kernels_count)                                                   \
    EDIT("a launch without an operand", *word_of(p, LAUNCH->inputs, 0) = UIR_PLAN_NONE)                                \
    EDIT("a launch without inputs", LAUNCH->inputs.count = 0)                                                          \
    EDIT("a launch without results", LAUNCH->outputs.count = 0)                                                        \
    EDIT("a launch without sizes", LAUNCH->values.count = 0)                                                           \
    EDIT("a launch that writes an input", *word_of(p, LAUNCH->outputs, 0) = p->inputs[0].tensor)                       \
    EDIT("a launch with a constant for nothing", LAUNCH->constants = (uir_plan_list){0, 1})                            \
    EDIT("a loop of the plan itself", LOOP->target = 0)                                                                \
    EDIT("a loop of no block", LOOP->target = p->blocks_count)                                                         \
    EDIT("a loop without a condition", LOOP->inputs.count = 1)                                                         \
    EDIT("a loop that carries nothing in", *word_of(p, LOOP->inputs, 2) = UIR_PLAN_NONE)                               \
    EDIT("a loop counted by floats", *word_of(p, LOOP->inputs, 0) = p->inputs[0].tensor)                               \
    EDIT("a loop that floats end", *word_of(p, LOOP->inputs, 1) = p->inputs[0].tensor)                                 \
    EDIT("a loop that gives more than its body", LOOP->outputs.count++)                                                \
    EDIT("a body whose inputs are elsewhere", *word_of(p, BODY.inputs, 2) = p->inputs[0].tensor)                       \
    EDIT("a body with a step less", BODY.step_count--)                                                                 \
    EDIT("a body that begins later", BODY.first_step++)                                                                \
    EDIT("a plan with inputs of a body", p->blocks[0].inputs = BODY.inputs)                                            \
    EDIT("a copy of two", COPY->inputs.count = 2)                                                                      \
    EDIT("a copy from other elements", *word_of(p, COPY->inputs, 0) = *word_of(p, LOOP->inputs, 0))                    \
    EDIT("a copy to an input", *word_of(p, COPY->outputs, 0) = p->inputs[0].tensor)

/* Does edit `which`, and says what it is; NULL: there are no more. */
static const char *apply(uir_plan *p, uint32_t which) {
    uint32_t at = 0;
#define EDIT(text, ...)                                                                                                \
    if (at++ == which) {                                                                                               \
        __VA_ARGS__;                                                                                                   \
        return text;                                                                                                   \
    }
    EDITS(EDIT)
#undef EDIT
    return NULL;
}

/* The status of the plan with edit `which`, NONE: as it is. */
static uir_status read_edited(const sections *s, uint32_t which, const char **out_name) {
    uir_allocator allocator = uir_allocator_system();
    uir_arena arena;
    uir_plan plan, again;
    uir_text bytes;
    uir_arena_init(&arena, &allocator);
    uir_text_init(&bytes, &allocator);
    assert_int_equal(read_plan(s, s->plan->data, (size_t)s->plan->size, &arena, &plan), UIR_STATUS_OK);
    *out_name = which == UIR_PLAN_NONE ? "as it is" : apply(&plan, which);
    uir_plan_write(&plan, &bytes);
    uir_status status = read_plan(s, bytes.data, bytes.length, &arena, &again);
    uir_text_deinit(&bytes);
    uir_arena_deinit(&arena);
    return status;
}

static void test_edits(void **state) {
    (void)state;
    fixture f;
    sections s;
    const char *name;
    uint32_t wrong = 0;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    find_sections(&f.package, &s);
    assert_int_equal(read_edited(&s, UIR_PLAN_NONE, &name), UIR_STATUS_OK);
    for (uint32_t i = 0;; i++) {
        uir_status status = read_edited(&s, i, &name);
        if (!name) break;
        if (status != UIR_STATUS_BAD_FILE) print_error("%s: %s\n", name, uir_status_text(status));
        wrong += status != UIR_STATUS_BAD_FILE;
    }
    assert_int_equal(wrong, 0);
    fixture_deinit(&f);
}

/* ---- the bytes around the plan ---- */
/* The header's and the table's hash is made anew, so that what lies behind it is asked. */
static void sign(unsigned char *bytes) {
    unsigned char head[UIR_PACKAGE_HASHED_SIZE + UIR_PACKAGE_MAX_SECTIONS * UIR_PACKAGE_SECTION_SIZE];
    size_t table = (size_t)bytes[12] * UIR_PACKAGE_SECTION_SIZE;
    if (bytes[12] > UIR_PACKAGE_MAX_SECTIONS) return;
    memcpy(head, bytes, UIR_PACKAGE_HASHED_SIZE);
    memcpy(head + UIR_PACKAGE_HASHED_SIZE, bytes + UIR_PACKAGE_HEADER_SIZE, table);
    uint64_t hash = uir_package_hash(head, UIR_PACKAGE_HASHED_SIZE + table);
    for (int i = 0; i < 8; i++) bytes[UIR_PACKAGE_HASHED_SIZE + i] = (unsigned char)(hash >> 8 * i);
}

static void put_size(unsigned char *to, uint64_t size) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(size >> 8 * i);
}

/* Two sections, the second of no bytes, a page behind the first. */
static void test_envelope(void **state) {
    (void)state;
    static _Alignas(64) unsigned char bytes[4 * UIR_PACKAGE_PAGE];
    const uir_package_section parts[] = {{.kind = UIR_PACKAGE_PLAN, .size = 4, .data = (const unsigned char *)"plan"},
                                         {.kind = UIR_PACKAGE_WEIGHTS}};
    const struct {
        const char *message;  /* NULL: it is sound */
        size_t at;            /* what is edited: a byte, or the stated size */
        int byte;             /* -1: none; -2: its lowest bit is flipped */
        int64_t stated, size; /* more than there are */
    } cases[] = {
        {NULL, 0, -1, 0, 0},
        {"these bytes are not a package", 0, 'x', 0, 0},
        {"these bytes are not a package", 0, -1, 0, -(UIR_PACKAGE_PAGE - UIR_PACKAGE_HEADER_SIZE + 1)},
        {"a package of version 0, made by an older uir", 8, 0, 0, 0},
        {"a package of version 250, made by uir 0.1.0; this is uir", 8, 250, 0, 0},
        {"its size is not the one in its header", 0, -1, 0, -1},
        {"its size is not the one in its header", 0, -1, 0, 1},
        {"its size is not the one in its header", 0, -1, 1, 0},
        {"its table of sections is cut off", 12, UIR_PACKAGE_MAX_SECTIONS + 1, 0, 0},
        {"its table of sections is cut off", 12, 2, -(UIR_PACKAGE_PAGE - 88), -(UIR_PACKAGE_PAGE - 88)},
        {"the hash of its table of sections does not match", 36, -2, 0, 0},
        {"a section of an unknown kind", UIR_PACKAGE_HEADER_SIZE, UIR_PACKAGE_SECTION_KIND_COUNT, 0, 0},
        {"a section is at the wrong offset", UIR_PACKAGE_HEADER_SIZE + 8, 0, 0, 0},
        {"a section is at the wrong offset", UIR_PACKAGE_HEADER_SIZE + 8 + 6, 1, 0, 0},
        {"a section is at the wrong offset", UIR_PACKAGE_HEADER_SIZE + 16 + 6, 1, 0, 0},
        {"a section is at the wrong offset", 0, -1, -64, -64},
        {"bytes between sections", UIR_PACKAGE_PAGE - 1, 1, 0, 0},
        {"the hash of its plan section does not match", UIR_PACKAGE_HEADER_SIZE + 24, -2, 0, 0},
        {"bytes after its last section", 0, -1, 1, 1},
    };
    fixture f;
    fixture_init(&f);
    check_ok(&f, uir_package_write(parts, 2, &f.package));
    assert_int_equal(f.package.length, UIR_PACKAGE_PAGE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_package_section read[UIR_PACKAGE_MAX_SECTIONS];
        uint32_t count;
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes, f.package.data, f.package.length);
        if (cases[i].byte >= 0) bytes[cases[i].at] = (unsigned char)cases[i].byte;
        put_size(bytes + 16, (uint64_t)((int64_t)f.package.length + cases[i].stated));
        sign(bytes);
        if (cases[i].byte == -2) bytes[cases[i].at] ^= 1;
        if (cases[i].byte == -2 && cases[i].at != 36) sign(bytes);
        uir_status status =
            uir_package_read(bytes, (size_t)((int64_t)f.package.length + cases[i].size), &f.diagnostics, read, &count);
        assert_int_equal(status, cases[i].message ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK);
        if (cases[i].message) check_message(&f, cases[i].message);
        uir_diagnostics_clear(&f.diagnostics);
    }
    fixture_deinit(&f);
}

/* ---- what opening asks besides ---- */
static void no_code(void *user, uir_plan *p) {
    (void)user;
    for (uint32_t i = 0; i < p->variants_count; i++) p->variants[i].code_size = 0;
}
static void room_before(void *user, uir_plan *p) {
    (void)user;
    p->constants[1].offset += 64;
    p->constants[1].size -= 64;
}
static void room_behind(void *user, uir_plan *p) {
    (void)user;
    p->constants[1].size -= 64;
}
static void one_over_another(void *user, uir_plan *p) {
    (void)user;
    p->constants[1].offset = 0;
}

/* Constants of zeros, so that what is between them is not the matter. */
static void test_opened(void **state) {
    (void)state;
    static const char *const text =
        "module opset 17\nsize N\nconstant %a: f32[2] = [0, 0]\n"
        "constant %b: f32[2, 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
        "0, 0, 0, 0, 0]\ngraph \"main\" (%x: f32[N]) {\n" GROUP_TWICE("d", "x", "1") "    return %d, %a, %b\n}\n";
    static const struct {
        plan_edit *edit;
        uir_status status;
        const char *message;
    } cases[] = {
        {no_code, UIR_STATUS_DEVICE_FAILED, "no kernel format can run kernel @twice"},
        {room_before, UIR_STATUS_BAD_FILE, "the package's constants overlap or are not contiguous"},
        {room_behind, UIR_STATUS_BAD_FILE, "the package's constants overlap or are not contiguous"},
        {one_over_another, UIR_STATUS_BAD_FILE, "the package's constants overlap or are not contiguous"},
    };
    fixture f;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, text, kernels));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_package *package;
        assert_int_equal(fixture_open_forged(&f, &open_by_vm, cases[i].edit, NULL, &package), cases[i].status);
        check_message(&f, cases[i].message);
        uir_diagnostics_clear(&f.diagnostics);
    }
    fixture_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edits), cmocka_unit_test(test_envelope),
                                       cmocka_unit_test(test_opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
