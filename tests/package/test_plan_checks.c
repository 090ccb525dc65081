/* Plans with records more, and with one of them changed: what is still in order is read, what is not is refused. Each
 * row is about one question that reading asks, where no other would refuse the plan as well. */
#include "tests/runtime/support.h"

#include "package/plan.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const kernels = "igraph @twice on cpu {\n"
                                   "  dim N in 0..1000\n" TILES VECTORS PHASE_TWICE PHASE_TWICE /**/
                                   "}\n" KERNEL_SCALE;

/* Every kind of step. */
static const char *const module_text = /**/
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "size K\n"
    "constant %n: i64[] = [3]\n"
    "constant %c: f32[1] = [3]\n"
    "graph \"main\" (%x: f32[N], %q: bool[], %m: i64[], %e: f32[N]) {\n"
    "    bind_dims(%m) {dims = [K]}\n"
    "    check_indices(%m) {low = [-1], high = [K + 1], of = \"m\"}\n"
    "    %d: f32[N] = group(%x, %c) {body = graph \"g\" (%a: f32[N], %k: f32[1]) {\n"
    "        %kb: f32[N] = broadcast(%k) {dims = [N]}\n"
    "        %b: f32[N] = mul(%a, %kb)\n"
    "        return %b\n"
    "    }, sizes = [N], kernel = \"scale\"}\n"
    "    %l: f32[N], %rows: f32[T, N] = loop(%n, none, %d) {body = graph \"b\" (%i: "
    "i64[], %go: bool[], %v: f32[N]) {\n" /**/
    GROUP_TWICE("w", "v", "2")            /**/
    "        return %go, %w, %v\n"
    "    }}\n"
    "    %y: f32[N] = if(%q) {then = graph \"t\" () {\n" /**/
    GROUP_TWICE("u", "l", "3")                           /**/
    "        return %u\n"
    "    }, else = graph \"f\" () {\n"
    "        return %x\n"
    "    }}\n"
    "    %tv: f32[2], %j: i64[2] = top_k(%e) {axis = 0, k = [2], largest = 1, sorted = 1}\n"
    "    %s: i64[2] = dim_values() {dims = [K, N*T], scalar = 0, dtype = i64}\n"
    "    return %y, %rows, %tv, %s, %x\n"
    "}\n";

/* ---- records more ---- */
enum { FAR = 1 << 28 };

/* `count` words of one value. */
static uir_plan_list many(uir_plan *p, uint32_t count, uint32_t value) {
    uir_plan_list list = {p->words_count, count};
    add_words(p, (uir_plan_word){value}, count);
    return list;
}
static uir_plan_list two(uir_plan *p, uint32_t first, uint32_t second) {
    uir_plan_list list = many(p, 1, first);
    many(p, 1, second);
    return (uir_plan_list){list.first, 2};
}
/* By a letter each: a constant, a symbol of that digit, `+`, the last operation, one behind it. */
static uint32_t expression(uir_plan *p, const char *text) {
    uir_plan_expression e = {p->operations_count, (uint32_t)strlen(text)};
    for (; *text; text++)
        add_operations(p,
                       *text == 'c'                   ? (uir_plan_operation){UIR_DIM_CONST, 1}
                       : *text >= '0' && *text <= '9' ? (uir_plan_operation){UIR_DIM_SYMBOL, *text - '0'}
                       : *text == '+'                 ? (uir_plan_operation){UIR_DIM_ADD, 0}
                       : *text == 'M'                 ? (uir_plan_operation){UIR_DIM_MAX, 0}
                                                      : (uir_plan_operation){UIR_DIM_MAX + 1, 0},
                       1);
    return add_expressions(p, e, 1);
}
/* `depth` constants, and their sum. */
static void deep(uir_plan *p, uint32_t depth) {
    uir_plan_expression e = {p->operations_count, 2 * depth - 1};
    add_operations(p, (uir_plan_operation){UIR_DIM_CONST, 1}, depth);
    add_operations(p, (uir_plan_operation){UIR_DIM_ADD, 0}, depth - 1);
    add_expressions(p, e, 1);
}
static void symbol(uir_plan *p, int64_t number) {
    uint32_t first = add_operations(p, (uir_plan_operation){UIR_DIM_SYMBOL, number}, 1);
    add_expressions(p, (uir_plan_expression){first, 1}, 1);
}
static uint32_t tensor(uir_plan *p, uir_dtype dtype, uir_plan_storage storage, uint32_t index, uint32_t rank) {
    uir_plan_tensor t = {(uint32_t)dtype, (uint32_t)storage, index, many(p, rank, expression(p, "c"))};
    return add_tensors(p, t, 1);
}
#define OWN(dtype, rank) tensor(p, UIR_DTYPE_##dtype, UIR_PLAN_STORAGE_OWN, 0, rank)

/* ---- where things are ---- */
static uint32_t find_pointer(uir_plan *p, const uir_plan_variant *v, uint32_t role) {
    for (uint32_t i = 0; i < v->pointer_count; i++)
        if (p->pointers[v->first_pointer + i].role == role) return i;
    fail_msg("the variant has no pointer of role %u", role);
    return 0;
}
/* The kernel that has constants, or the one that has none. */
static uir_plan_kernel *kernel_of(uir_plan *p, bool constants) {
    for (uint32_t k = 0; k < p->kernels_count; k++) {
        const uir_plan_variant *v = &p->variants[p->kernels[k].first_variant];
        bool has = false;
        for (uint32_t i = 0; i < v->pointer_count; i++) has |= p->pointers[v->first_pointer + i].role == UIR_PLAN_CONST;
        if (has == constants) return &p->kernels[k];
    }
    fail_msg("the plan has no such kernel");
    return NULL;
}
static uir_plan_step *launch_of(uir_plan *p, bool constants) {
    for (uint32_t i = 0; i < p->steps_count; i++)
        if (p->steps[i].kind == UIR_PLAN_STEP_LAUNCH && &p->kernels[p->steps[i].target] == kernel_of(p, constants))
            return &p->steps[i];
    fail_msg("the plan has no such launch");
    return NULL;
}
#define SCALE                kernel_of(p, true)
#define SCALED               (&p->variants[SCALE->first_variant])
#define TWICE                (&p->variants[kernel_of(p, false)->first_variant])
#define POINTER(variant, of) (p->pointers[(variant)->first_pointer + find_pointer(p, variant, of)])
#define LAUNCH               launch_of(p, true)
#define LOOP                 step_of(p, UIR_PLAN_STEP_LOOP)
#define COPY                 step_of(p, UIR_PLAN_STEP_COPY)
#define BRANCH               step_of(p, UIR_PLAN_STEP_IF)
#define HOST                 step_of(p, UIR_PLAN_STEP_HOST)
#define BIND                 step_of(p, UIR_PLAN_STEP_BIND)
#define DIMS                 step_of(p, UIR_PLAN_STEP_DIMS)
#define CHECK                step_of(p, UIR_PLAN_STEP_CHECK)
#define BODY                 p->blocks[LOOP->target]
#define THEN                 p->blocks[BRANCH->target]
#define ELSE                 p->blocks[BRANCH->other]
#define INPUT                p->tensors[p->inputs[0].tensor]
#define FLOATS               p->inputs[0].tensor

/* ---- longer edits ---- */
static void end_text_late(uir_plan *p) {
    for (uint32_t i = 0; i < p->texts_count; i++) {
        if (!p->texts[i].count) continue;
        p->texts[i].count--;
        return;
    }
}
/* Begins far behind the characters and ends, around the end of the numbers, in them. */
static void go_around(uir_plan *p) {
    uint32_t at = 0;
    while (p->characters[at]) at++;
    p->texts[0] = (uir_plan_text){UINT32_MAX, at + 1};
}
/* The first half of every kernel's phase copies from the operand to the result `times` times. */
static void copy_all(uir_plan *p, uint32_t times) {
    for (uint32_t i = 0; i < p->variants_count; i++) {
        const uir_plan_variant *v = &p->variants[i];
        uir_plan_list copies = {p->words_count, 2 * times};
        for (uint32_t k = 0; k < times; k++) two(p, find_pointer(p, v, UIR_PLAN_IN), find_pointer(p, v, UIR_PLAN_OUT));
        p->phases[v->first_phase].copies = copies;
    }
}
/* To a result that is another variant's. */
static void copy_to_another(uir_plan *p) {
    uir_plan_variant *v = &p->variants[0];
    for (uint32_t i = v->pointer_count; v->first_pointer + i < p->pointers_count; i++)
        if (p->pointers[v->first_pointer + i].role == UIR_PLAN_OUT)
            p->phases[v->first_phase].copies = two(p, find_pointer(p, v, UIR_PLAN_IN), i);
}
static void all_native(uir_plan *p, uint32_t name, bool scratch) {
    add_natives(p, (uir_plan_native){0, UIR_PLAN_NONE}, 1);
    for (uint32_t i = 0; i < p->variants_count; i++) {
        p->variants[i].native_names = many(p, 1, i ? UIR_PLAN_NONE : name);
        p->variants[i].scratch = scratch ? expression(p, "c") : UIR_PLAN_NONE;
    }
}
static void many_pointers(uir_plan *p, uint32_t count) {
    uint32_t span = expression(p, "c");
    TWICE->first_pointer = p->pointers_count;
    TWICE->pointer_count = count;
    add_pointers(p, (uir_plan_pointer){UIR_PLAN_OUT, 0, UIR_DTYPE_F32, span, UIR_PLAN_NONE}, 1);
    add_pointers(p, (uir_plan_pointer){UIR_PLAN_WORK, 9, UIR_DTYPE_F32, span, UIR_PLAN_NONE}, count - 1);
}
static void many_phases(uir_plan *p, uint32_t count) {
    TWICE->first_phase = p->phases_count;
    TWICE->phase_count = count;
    add_phases(p, (uir_plan_phase){{0, 0}, {0, 0}, 0, 0}, count);
}
static void more_symbols(uir_plan *p, uint32_t count, uir_plan_kernel_symbol last) {
    uir_plan_variant *v = SCALED;
    uint32_t first = v->first_symbol;
    v->first_symbol = p->kernel_symbols_count;
    for (uint32_t i = 0; i + 1 < count; i++)
        add_kernel_symbols(p,
                           i < v->symbol_count ? p->kernel_symbols[first + i]
                                               : (uir_plan_kernel_symbol){UIR_PLAN_VALUE, 0, 1, 1, last.definition},
                           1);
    add_kernel_symbols(p, last, 1);
    v->symbol_count = count;
}
#define VALUE(of) ((uir_plan_kernel_symbol){UIR_PLAN_VALUE, 0, 1, 1, of})
static void many_variants(uir_plan *p, uint32_t count) {
    uir_plan_kernel *k = kernel_of(p, false);
    uir_plan_variant one = p->variants[k->first_variant];
    k->first_variant = add_variants(p, one, count);
    k->variant_count = count;
}
static void add_requirements(uir_plan *p, uint32_t second) {
    uint32_t good = expression(p, "c");
    SCALED->first_require = add_conditions(p, (uir_plan_condition){UIR_RELATION_GE, good, good}, 1);
    SCALED->require_count = 2;
    add_conditions(p, (uir_plan_condition){UIR_RELATION_GE, second ? second : good, good}, 1);
}
/* A value before the kernel's own symbols, of the symbol that it is. */
static void value_first(uir_plan *p) {
    uir_plan_variant *v = SCALED;
    uint32_t first = v->first_symbol, definition = expression(p, "0");
    v->first_symbol = add_kernel_symbols(p, VALUE(definition), 1);
    for (uint32_t i = 0; i < v->symbol_count; i++) add_kernel_symbols(p, p->kernel_symbols[first + i], 1);
    v->symbol_count++;
}
/* The step, and the first one of that block, are each in the other's place. */
static void go_inside(uir_plan *p, uir_plan_step *step, uint32_t block) {
    uir_plan_step *inside = &p->steps[p->blocks[block].first_step], kept = *inside;
    *inside = *step;
    *step = kept;
}
static void turn_branch(uir_plan *p) {
    uir_plan_step *s = BRANCH;
    uint32_t target = s->target;
    s->target = s->other;
    s->other = target;
}
static sections parts; /* of the package */

/* What is still a plan. */
#define SOUND(EDIT)                                                                                                    \
    EDIT("the last operation", expression(p, "ccM"))                                                                   \
    EDIT("a stack as deep as may be", deep(p, UIR_PLAN_MAX_STACK))                                                     \
    EDIT("a symbol of the greatest number", symbol(p, UIR_PLAN_MAX_RECORDS - 1))                                       \
    EDIT("a tensor of the greatest rank", OWN(F32, UIR_PLAN_MAX_RANK))                                                 \
    EDIT("a tensor that is another", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_ALIAS, p->tensors_count - 1, 1))        \
    EDIT("a constant of nothing at the end", add_constants(p, (uir_plan_constant){parts.weights / 64 * 64, 0, 0}, 1))  \
    EDIT("room along an axis", p->inputs[0].slack = 0; p->inputs[0].slack_axis = 0)                                    \
    EDIT("room along no axis", p->inputs[0].slack = 0; p->inputs[0].slack_axis = UIR_PLAN_NONE)                        \
    EDIT("room between bytes", p->tensors[p->inputs[3].tensor].dtype = UIR_DTYPE_I8; p->inputs[3].slack = 0;           \
         p->inputs[3].slack_axis = 0)                                                                                  \
    EDIT("elements of four bits", p->tensors[p->inputs[3].tensor].dtype = UIR_DTYPE_I4)                                \
    EDIT("an attribute of a text", add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_TEXT, 0, 1}, 1))                 \
    EDIT("an attribute of sizes", uir_plan_list l = many(p, 1, expression(p, "0"));                                    \
         add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_SIZES, l.first, l.count}, 1))                              \
    EDIT("two requirements", add_requirements(p, 0))                                                                   \
    EDIT("a constant's pointer of any number", POINTER(SCALED, UIR_PLAN_CONST).index = 1000)                           \
    EDIT("a result that goes on from an operand", POINTER(SCALED, UIR_PLAN_OUT).tied = 0)                              \
    EDIT("an operand that no pointer has", LAUNCH->inputs = longer(p, LAUNCH->inputs, UIR_PLAN_NONE))                  \
    EDIT("copies", copy_all(p, 1))                                                                                     \
    EDIT("copies of two", copy_all(p, 2))                                                                              \
    EDIT("code of nothing at the end", TWICE->code_offset = parts.code; TWICE->code_size = 0)                          \
    EDIT("as many pointers as may be", many_pointers(p, UIR_PLAN_MAX_POINTERS))                                        \
    EDIT("as many phases as may be", many_phases(p, 4096))                                                             \
    EDIT("as many symbols as may be", more_symbols(p, 4096, VALUE(expression(p, "c"))))                                \
    EDIT("as many variants as may be", many_variants(p, 4096))                                                         \
    EDIT("a value of the symbol before it", more_symbols(p, SCALED->symbol_count + 1, VALUE(expression(p, "0"))))      \
    EDIT("a phase of four axes", p->phases[0].extents = many(p, 4, expression(p, "c")))                                \
    EDIT("native code for none of them", all_native(p, UIR_PLAN_NONE, false))                                          \
    EDIT("native code", all_native(p, 0, true))                                                                        \
    EDIT("scratch without native code", TWICE->scratch = expression(p, "c"))                                           \
    EDIT("a loop without an end", *word_of(p, LOOP->inputs, 0) = UIR_PLAN_NONE)                                        \
    EDIT("a loop of one number's turns", *word_of(p, LOOP->inputs, 0) = OWN(I64, 1))                                   \
    EDIT("a loop with a condition", *word_of(p, LOOP->inputs, 1) = OWN(BOOL, 0))                                       \
    EDIT("a loop that carries and gives nothing", LOOP->inputs.count = BODY.inputs.count = 2; LOOP->outputs.count = 0; \
         BODY.outputs.count = 1)                                                                                       \
    EDIT("a loop that gives bytes", *word_of(p, BODY.outputs, 2) = OWN(I8, 1);                                         \
         *word_of(p, LOOP->outputs, 1) = OWN(I8, 2))                                                                   \
    EDIT("a branch that gives something else", *word_of(p, BRANCH->outputs, 0) = OWN(F32, 1))                          \
    EDIT("an operator without an operand", *word_of(p, HOST->inputs, 0) = UIR_PLAN_NONE)                               \
    EDIT("an operator without a result", *word_of(p, HOST->outputs, 0) = UIR_PLAN_NONE)                                \
    EDIT("a list bound to a size", *word_of(p, BIND->inputs, 0) = OWN(I64, 1))                                         \
    EDIT("indices with bounds of their own", CHECK->values = many(p, 4, expression(p, "c"));                           \
         *word_of(p, CHECK->inputs, 0) = OWN(I32, 2))                                                                  \
    EDIT("indices as their ends", CHECK->other = 1)                                                                    \
    EDIT("one size as a number", DIMS->values.count = 1; *word_of(p, DIMS->outputs, 0) = OWN(I64, 0))                  \
    EDIT("a launch with a number that it has no use for", LAUNCH->other = 0)                                           \
    EDIT("a branch the other way round", turn_branch(p))                                                               \
    EDIT("metadata", add_metadata(p, (uir_plan_metadata){0, 0}, 1))

/* What is none. */
#define BROKEN(EDIT)                                                                                                   \
    EDIT("an operation of one operand", expression(p, "c+c"))                                                          \
    EDIT("two values", expression(p, "cc"))                                                                            \
    EDIT("an unknown operation of two", expression(p, "cc?"))                                                          \
    EDIT("a stack that is too deep", deep(p, UIR_PLAN_MAX_STACK + 1))                                                  \
    EDIT("a symbol of too great a number", symbol(p, UIR_PLAN_MAX_RECORDS))                                            \
    EDIT("a text that goes on", end_text_late(p))                                                                      \
    EDIT("a text without an end", p->texts[0] = ((uir_plan_text){p->characters_count, 0}))                             \
    EDIT("a text around the end", go_around(p))                                                                        \
    EDIT("a tensor of too great a rank", OWN(F32, UIR_PLAN_MAX_RANK + 1))                                              \
    EDIT("a tensor of no known extent", p->tensors[OWN(F32, 1)].extents = many(p, 1, FAR))                             \
    EDIT("a tensor of a symbol there is not", p->tensors[OWN(F32, 1)].extents = many(p, 1, expression(p, "9")))        \
    EDIT("a tensor of no second extent", p->tensors[OWN(F32, 1)].extents = two(p, expression(p, "c"), FAR))            \
    EDIT("a tensor past the words", p->tensors[OWN(F32, 0)].extents = ((uir_plan_list){FAR, 1}))                       \
    EDIT("a tensor of no input", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_INPUT, p->inputs_count, 0))                 \
    EDIT("a tensor of no output", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_OUTPUT, p->outputs_count, 0))              \
    EDIT("a tensor of no constant", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_CONSTANT, p->constants_count, 0))        \
    EDIT("a tensor that is itself", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_ALIAS, p->tensors_count, 0))             \
    EDIT("a tensor nowhere", tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_COUNT, 0, 0))                                   \
    EDIT("a constant longer than the rest",                                                                            \
         add_constants(p, (uir_plan_constant){parts.weights / 64 * 64, parts.weights % 64 + 1, 0}, 1))                 \
    EDIT("an input without a name", p->inputs[0].name = p->texts_count)                                                \
    EDIT("an input of a tensor far away", p->inputs[0].tensor = FAR)                                                   \
    EDIT("an input whose names are far away", p->inputs[0].dim_names.first = FAR)                                      \
    EDIT("room between half bytes", p->tensors[p->inputs[3].tensor].dtype = UIR_DTYPE_I4; p->inputs[3].slack = 0;      \
         p->inputs[3].slack_axis = 0)                                                                                  \
    EDIT("an attribute of no text", add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_TEXT, 0, 0}, 1))                \
    EDIT("an attribute of two texts", add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_TEXT, 0, 2}, 1))              \
    EDIT("an attribute of no kind",                                                                                    \
         add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_ATTRIBUTE_KIND_COUNT, 0, 0}, 1))                           \
    EDIT("an attribute of no size", uir_plan_list l = many(p, 1, p->expressions_count);                                \
         add_attributes(p, (uir_plan_attribute){0, UIR_PLAN_SIZES, l.first, l.count}, 1))                              \
    EDIT("a second requirement of nothing", add_requirements(p, p->expressions_count + 9))                             \
    EDIT("a pointer to no known elements", POINTER(SCALED, UIR_PLAN_CONST).dtype = 1000)                               \
    EDIT("a result that goes on from what the kernel has not",                                                         \
         POINTER(SCALED, UIR_PLAN_OUT).tied = SCALE->input_count;                                                      \
         while (LAUNCH->inputs.count <= SCALE->input_count) LAUNCH->inputs = longer(p, LAUNCH->inputs, FLOATS))        \
    EDIT("a result that goes on from what the step has not", SCALE->input_count = LAUNCH->inputs.count + 1;            \
         POINTER(SCALED, UIR_PLAN_OUT).tied = LAUNCH->inputs.count)                                                    \
    EDIT("a result that goes on from what is absent", POINTER(SCALED, UIR_PLAN_OUT).tied = LAUNCH->inputs.count;       \
         SCALE->input_count = LAUNCH->inputs.count + 1; LAUNCH->inputs = longer(p, LAUNCH->inputs, UIR_PLAN_NONE))     \
    EDIT("copies past the words", p->phases[0].copies = ((uir_plan_list){FAR, 2}))                                     \
    EDIT("one and a half copies", copy_all(p, 2); p->phases[0].copies.count = 3)                                       \
    EDIT("half of a copy", copy_all(p, 1); p->phases[0].copies.count = 1)                                              \
    EDIT("a copy the other way", copy_all(p, 1); uir_plan_list l = p->phases[0].copies;                                \
         p->phases[0].copies = two(p, *word_of(p, l, 1), *word_of(p, l, 0)))                                           \
    EDIT("a copy from a result", copy_all(p, 1);                                                                       \
         *word_of(p, p->phases[0].copies, 0) = *word_of(p, p->phases[0].copies, 1))                                    \
    EDIT("a copy to an operand", copy_all(p, 1);                                                                       \
         *word_of(p, p->phases[0].copies, 1) = *word_of(p, p->phases[0].copies, 0))                                    \
    EDIT("a copy to another's result", copy_to_another(p))                                                             \
    EDIT("a copy under no condition", copy_all(p, 1); p->phases[0].first_same = FAR; p->phases[0].same_count = 1)      \
    EDIT("code behind the end", TWICE->code_offset = parts.code; TWICE->code_size = 1)                                 \
    EDIT("too many pointers", many_pointers(p, UIR_PLAN_MAX_POINTERS + 1))                                             \
    EDIT("too many phases", many_phases(p, 4097))                                                                      \
    EDIT("too many symbols", more_symbols(p, 4097, VALUE(expression(p, "c"))))                                         \
    EDIT("too many variants", many_variants(p, 4097))                                                                  \
    EDIT("symbols far away", SCALED->first_symbol = FAR)                                                               \
    EDIT("candidates far away", TWICE->first_candidate = FAR)                                                          \
    EDIT("pointers far away", TWICE->first_pointer = FAR)                                                              \
    EDIT("phases far away", TWICE->first_phase = FAR)                                                                  \
    EDIT("variants far away", kernel_of(p, false)->first_variant = FAR)                                                \
    EDIT("a symbol more, of no kind",                                                                                  \
         more_symbols(p, SCALED->symbol_count + 1, (uir_plan_kernel_symbol){UIR_PLAN_VALUE + 1, 0, 1, 1, 0}))          \
    EDIT("a symbol more, of multiples of 0",                                                                           \
         more_symbols(p, SCALED->symbol_count + 1, (uir_plan_kernel_symbol){UIR_PLAN_TILE, 0, 1, 0, 0}))               \
    EDIT("a value of itself", more_symbols(p, SCALED->symbol_count + 1,                                                \
                                           VALUE(expression(p, (char[]){(char)('0' + SCALED->symbol_count), 0}))))     \
    EDIT("a candidate's tile of nothing", *word_of(p, p->candidates[0].tiles, 0) = p->expressions_count)               \
    EDIT("a phase of five axes", p->phases[0].extents = many(p, 5, expression(p, "c")))                                \
    EDIT("a phase of no extent", p->phases[0].extents = many(p, 1, p->expressions_count))                              \
    EDIT("a second phase of no extent", p->phases[TWICE->first_phase + 1].extents = many(p, 1, p->expressions_count))  \
    EDIT("a second phase of half a copy", p->phases[TWICE->first_phase + 1].copies = many(p, 1, 0))                    \
    EDIT("names without native code", TWICE->native_names = many(p, 1, UIR_PLAN_NONE))                                 \
    EDIT("names past the words", TWICE->native_names.first = FAR)                                                      \
    EDIT("native code without names", add_natives(p, (uir_plan_native){0, UIR_PLAN_NONE}, 1))                          \
    EDIT("native code without scratch", all_native(p, 0, false))                                                       \
    EDIT("native code of no name", all_native(p, p->texts_count, true))                                                \
    EDIT("scratch of no size", TWICE->scratch = p->expressions_count)                                                  \
    EDIT("native code for nothing", all_native(p, UIR_PLAN_NONE, false); p->natives[0].isa = p->texts_count)           \
    EDIT("native code in a section there is not", all_native(p, UIR_PLAN_NONE, false); p->natives[0].section = 0)      \
    EDIT("a kernel without a name", p->kernels[0].name = p->texts_count)                                               \
    EDIT("a launch of a kernel far away", LAUNCH->target = FAR)                                                        \
    EDIT("a launch of nothing", uir_plan_step *s = LAUNCH; s->target = p->kernels_count;                               \
         s->values.count = s->constants.count = 0)                                                                     \
    EDIT("a launch without its constant", LAUNCH->constants.count = 0)                                                 \
    EDIT("a launch of constants far away", LAUNCH->constants.first = FAR)                                              \
    EDIT("a launch of no constant", *word_of(p, LAUNCH->constants, 0) = p->constants_count)                            \
    EDIT("a launch of no tensor", LAUNCH->inputs = longer(p, LAUNCH->inputs, p->tensors_count))                        \
    EDIT("a launch that gives nothing more", LAUNCH->outputs = longer(p, LAUNCH->outputs, UIR_PLAN_NONE))              \
    EDIT("a launch that gives no tensor", LAUNCH->outputs = longer(p, LAUNCH->outputs, p->tensors_count))              \
    EDIT("a launch into an input by another name",                                                                     \
         *word_of(p, LAUNCH->outputs, 0) = tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_ALIAS, FLOATS, 1))                \
    EDIT("a launch into a constant",                                                                                   \
         *word_of(p, LAUNCH->outputs, 0) = tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_CONSTANT, 0, 1))                  \
    EDIT("a launch into a port", *word_of(p, LAUNCH->outputs, 0) = *word_of(p, BODY.inputs, 2))                        \
    EDIT("two loops of one body", uir_plan_step s = *LOOP; *COPY = s)                                                  \
    EDIT("a loop far away", LOOP->target = FAR)                                                                        \
    EDIT("a loop of a table's turns", *word_of(p, LOOP->inputs, 0) = OWN(I64, 2))                                      \
    EDIT("a loop of more than its body takes", BODY.inputs.count--)                                                    \
    EDIT("a loop of less than its body gives", BODY.outputs = longer(p, BODY.outputs, *word_of(p, BODY.outputs, 2)))   \
    EDIT("a loop that does not give what it carries", LOOP->outputs.count = 0; BODY.outputs.count = 1)                 \
    EDIT("a loop that carries no tensor", *word_of(p, LOOP->inputs, 2) = p->tensors_count)                             \
    EDIT("a loop that gives no tensor", *word_of(p, LOOP->outputs, 0) = p->tensors_count)                              \
    EDIT("a body that counts otherwise", p->tensors[*word_of(p, BODY.inputs, 0)].dtype = UIR_DTYPE_I32)                \
    EDIT("a body whose condition is a number", p->tensors[*word_of(p, BODY.inputs, 1)].dtype = UIR_DTYPE_I8;           \
         *word_of(p, BODY.outputs, 0) = OWN(BOOL, 0))                                                                  \
    EDIT("a body that goes on by a number", *word_of(p, BODY.outputs, 0) = *word_of(p, BODY.inputs, 0))                \
    EDIT("a body that counts elsewhere", *word_of(p, BODY.inputs, 0) = OWN(I64, 0))                                    \
    EDIT("a loop that carries integers into floats", *word_of(p, LOOP->inputs, 2) = OWN(I32, 1))                       \
    EDIT("a loop that gives other elements", *word_of(p, LOOP->outputs, 0) = OWN(I32, 1))                              \
    EDIT("a loop that gives into the arena",                                                                           \
         *word_of(p, LOOP->outputs, 0) = tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_ARENA, 0, 1))                       \
    EDIT("a loop that gives half bytes", *word_of(p, BODY.outputs, 2) = OWN(I4, 1);                                    \
         *word_of(p, LOOP->outputs, 1) = OWN(I4, 2))                                                                   \
    EDIT("a loop whose rows have no place", *word_of(p, LOOP->outputs, 1) = OWN(F32, 1))                               \
    EDIT("a loop whose rows are tables", *word_of(p, LOOP->outputs, 1) = OWN(F32, 3))                                  \
    EDIT("a loop whose last value has a place", *word_of(p, LOOP->outputs, 0) = OWN(F32, 2))                           \
    EDIT("a body that carries other elements", *word_of(p, BODY.outputs, 1) = OWN(I32, 1);                             \
         *word_of(p, LOOP->outputs, 0) = OWN(I32, 1))                                                                  \
    EDIT("a body that takes a table",                                                                                  \
         *word_of(p, BODY.inputs, 2) = tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_PORT, 0, 2))                          \
    EDIT("a loop that carries a table", *word_of(p, LOOP->inputs, 2) = OWN(F32, 2))                                    \
    EDIT("a branch that takes something", THEN.inputs = many(p, 1, FLOATS))                                            \
    EDIT("a branch that gives more", BRANCH->outputs.count = ELSE.outputs.count = 0)                                   \
    EDIT("a branch that gives less", BRANCH->outputs.count = THEN.outputs.count = 0)                                   \
    EDIT("a branch of integers", *word_of(p, ELSE.outputs, 0) = OWN(I32, 1))                                           \
    EDIT("a branch of tables", *word_of(p, ELSE.outputs, 0) = OWN(F32, 2))                                             \
    EDIT("a branch into the arena",                                                                                    \
         *word_of(p, BRANCH->outputs, 0) = tensor(p, UIR_DTYPE_F32, UIR_PLAN_STORAGE_ARENA, 0, 1))                     \
    EDIT("a branch by nothing", *word_of(p, BRANCH->inputs, 0) = UIR_PLAN_NONE)                                        \
    EDIT("a branch by floats", *word_of(p, BRANCH->inputs, 0) = FLOATS)                                                \
    EDIT("a branch by two", BRANCH->inputs = longer(p, BRANCH->inputs, *word_of(p, BRANCH->inputs, 0)))                \
    EDIT("a branch far away", BRANCH->target = FAR)                                                                    \
    EDIT("another branch far away", BRANCH->other = FAR)                                                               \
    EDIT("a branch of the plan itself", BRANCH->other = 0)                                                             \
    EDIT("a copy to two", COPY->outputs = longer(p, COPY->outputs, *word_of(p, COPY->outputs, 0)))                     \
    EDIT("a copy of two", COPY->inputs = longer(p, COPY->inputs, *word_of(p, COPY->inputs, 0)))                        \
    EDIT("a copy of nothing", *word_of(p, COPY->inputs, 0) = UIR_PLAN_NONE)                                            \
    EDIT("a copy to nothing", *word_of(p, COPY->outputs, 0) = UIR_PLAN_NONE)                                           \
    EDIT("an operator without a name", HOST->target = p->texts_count)                                                  \
    EDIT("an operator of no tensor", *word_of(p, HOST->inputs, 0) = p->tensors_count)                                  \
    EDIT("an operator that gives no tensor", *word_of(p, HOST->outputs, 0) = p->tensors_count)                         \
    EDIT("sizes from two", BIND->inputs = longer(p, BIND->inputs, *word_of(p, BIND->inputs, 0)))                       \
    EDIT("sizes from nothing", *word_of(p, BIND->inputs, 0) = UIR_PLAN_NONE)                                           \
    EDIT("sizes from floats", *word_of(p, BIND->inputs, 0) = FLOATS)                                                   \
    EDIT("sizes from a table", *word_of(p, BIND->inputs, 0) = OWN(I64, 2))                                             \
    EDIT("sizes and a result", BIND->outputs = many(p, 1, OWN(I64, 0)))                                                \
    EDIT("sizes of nothing", BIND->symbols.count = 0)                                                                  \
    EDIT("sizes that there are not", *word_of(p, BIND->symbols, 0) = p->symbols_count)                                 \
    EDIT("indices that are floats", *word_of(p, CHECK->inputs, 0) = FLOATS)                                            \
    EDIT("indices that are nothing", *word_of(p, CHECK->inputs, 0) = UIR_PLAN_NONE)                                    \
    EDIT("indices of two", CHECK->inputs = longer(p, CHECK->inputs, *word_of(p, CHECK->inputs, 0)))                    \
    EDIT("indices and a result", CHECK->outputs = many(p, 1, OWN(I64, 0)))                                             \
    EDIT("indices without bounds", CHECK->values.count = 0)                                                            \
    EDIT("indices with half of a bound", CHECK->values.count = 1)                                                      \
    EDIT("indices with too many bounds", CHECK->values = many(p, 2 * UIR_PLAN_MAX_RANK + 2, expression(p, "c")))       \
    EDIT("indices of no name", CHECK->target = p->texts_count)                                                         \
    EDIT("indices as what there is not", CHECK->other = 2)                                                             \
    EDIT("sizes to two", DIMS->outputs = longer(p, DIMS->outputs, *word_of(p, DIMS->outputs, 0)))                      \
    EDIT("sizes to floats", *word_of(p, DIMS->outputs, 0) = OWN(F32, 1))                                               \
    EDIT("sizes to nothing", *word_of(p, DIMS->outputs, 0) = UIR_PLAN_NONE)                                            \
    EDIT("sizes that read", DIMS->inputs = many(p, 1, FLOATS))                                                         \
    EDIT("two sizes as one number", *word_of(p, DIMS->outputs, 0) = OWN(I64, 0))                                       \
    EDIT("a size of nothing", *word_of(p, DIMS->values, 1) = p->expressions_count)                                     \
    EDIT("a step of no operator", DIMS->op = p->texts_count)                                                           \
    EDIT("a step's symbols far away", DIMS->symbols = ((uir_plan_list){FAR, 1}))                                       \
    EDIT("a step's constants far away", DIMS->constants = ((uir_plan_list){FAR, 1}))                                   \
    EDIT("a step's results far away", HOST->outputs.first = FAR)                                                       \
    EDIT("a step less", p->steps_count--)                                                                              \
    EDIT("no blocks", p->blocks_count = 0)                                                                             \
    EDIT("a plan that gives no tensor", p->blocks[0].outputs = many(p, 1, p->tensors_count))                           \
    EDIT("a loop in its own body", go_inside(p, LOOP, LOOP->target))                                                   \
    EDIT("a branch in itself", go_inside(p, BRANCH, BRANCH->target))                                                   \
    EDIT("a branch in its other half", turn_branch(p); go_inside(p, BRANCH, BRANCH->other))                            \
    EDIT("a body that no loop runs", uir_plan_step s = *COPY; *LOOP = s)                                               \
    EDIT("halves that no branch runs", uir_plan_step s = *COPY; *BRANCH = s)                                           \
    EDIT("a block of steps far away", p->blocks[p->blocks_count - 1].step_count += FAR)                                \
    EDIT("nothing at all", p->blocks_count = p->steps_count = 0)                                                       \
    EDIT("a kernel of a size more", SCALE->dim_count++;                                                                \
         LAUNCH->values = longer(p, LAUNCH->values, *word_of(p, LAUNCH->values, 0)))                                   \
    EDIT("a loop that carries something far away", *word_of(p, LOOP->inputs, 2) = FAR)                                 \
    EDIT("a loop that gives something far away", *word_of(p, LOOP->outputs, 0) = FAR)                                  \
    EDIT("a loop that gives nothing", *word_of(p, LOOP->outputs, 0) = UIR_PLAN_NONE)                                   \
    EDIT("a branch that gives something far away", *word_of(p, BRANCH->outputs, 0) = FAR)                              \
    EDIT("a branch that gives nothing", *word_of(p, BRANCH->outputs, 0) = UIR_PLAN_NONE)                               \
    EDIT("a value that is its own, before all others", value_first(p))                                                 \
    EDIT("metadata without a key", add_metadata(p, (uir_plan_metadata){p->texts_count, 0}, 1))                         \
    EDIT("metadata without a value", add_metadata(p, (uir_plan_metadata){0, p->texts_count}, 1))

/* Does edit `which` of either list, and says what it is; NULL: there are no more. */
static const char *apply(uir_plan *p, bool sound, uint32_t which) {
    uint32_t at = 0;
#define EDIT(text, ...)                                                                                                \
    if (at++ == which) {                                                                                               \
        __VA_ARGS__;                                                                                                   \
        return text;                                                                                                   \
    }
    if (sound) {
        SOUND(EDIT)
        return NULL;
    }
    BROKEN(EDIT)
#undef EDIT
    return NULL;
}

static void test_records(void **state) {
    (void)state;
    fixture f;
    uint32_t wrong = 0;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    find_sections(&f.package, &parts);
    for (int sound = 0; sound < 2; sound++) {
        for (uint32_t i = 0;; i++) {
            uir_arena arena;
            uir_plan plan, again;
            uir_text bytes;
            uir_arena_init(&arena, &f.allocator);
            uir_text_init(&bytes, &f.allocator);
            assert_int_equal(read_plan(&parts, parts.plan->data, (size_t)parts.plan->size, &arena, &plan),
                             UIR_STATUS_OK);
            make_room(&plan);
            const char *name = apply(&plan, sound, i);
            if (name) {
                uir_plan_write(&plan, &bytes);
                uir_status status = read_plan(&parts, bytes.data, bytes.length, &arena, &again);
                if (status != (sound ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE)) {
                    print_error("%s: %s\n", name, uir_status_text(status));
                    wrong++;
                }
            }
            uir_text_deinit(&bytes);
            uir_arena_deinit(&arena);
            if (!name) break;
        }
    }
    assert_int_equal(wrong, 0);
    fixture_deinit(&f);
}

/* What is cut off, or goes on, is refused; nothing behind the last byte is read. */
static void test_cut_off(void **state) {
    (void)state;
    fixture f;
    uir_plan plan;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    find_sections(&f.package, &parts);
    const size_t whole = (size_t)parts.plan->size;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (whole / page + 2) * page;
    unsigned char *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + room, page, PROT_NONE), 0);
    for (size_t size = 0; size <= whole + 1; size++) {
        uir_arena arena;
        uir_arena_init(&arena, &f.allocator);
        unsigned char *bytes = pages + room - size;
        memcpy(bytes, parts.plan->data, size < whole ? size : whole);
        if (size > whole) bytes[whole] = 0;
        assert_int_equal(read_plan(&parts, bytes, size, &arena, &plan),
                         size == whole ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE);
        uir_arena_deinit(&arena);
    }
    munmap(pages, room + page);
    fixture_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_cut_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
