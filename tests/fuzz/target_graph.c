/* Texts of graphs: parsed, verified, printed, read again, and interpreted on small data. */
#include "ir/graph/graph.h"
#include "tests/fuzz/target.h"

static uir_status reread(void *user, fuzz_case *c, const char *text, size_t length, uir_text *out) {
    uir_module *module = NULL;
    (void)user;
    UIR_TRY(uir_module_parse(&c->allocator, &c->diagnostics, text, length, "printed", NULL, &module));
    uir_status status = uir_module_print(module, SIZE_MAX, out);
    uir_module_destroy(module);
    return status;
}

enum { MOST_VALUES = 32, SIZE = 3, MOST_SYMBOLS = 64 };

static bool make_input(const fuzz_case *c, const uir_module *module, const uir_type *type, uint64_t seed,
                       uir_datum **out_datum) {
    int64_t shape[UIR_MAX_RANK] = {0}, values[MOST_SYMBOLS];
    for (int i = 0; i < MOST_SYMBOLS; i++) values[i] = SIZE;
    if (type->kind != UIR_VALUE_TENSOR || !type->dtype) return false;
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++) {
        if (uir_dim_evaluate(module->dims, type->dims[d], values, NULL, MOST_SYMBOLS, &shape[d]) != UIR_DIM_EVALUATED)
            return false;
    }
    uir_tensor *tensor = fuzz_make_tensor(c, type->dtype, type->rank_known ? type->rank : 0, shape, seed);
    if (!tensor) return false;
    if (uir_datum_create_tensor(&c->allocator, tensor, out_datum) == UIR_STATUS_OK) return true;
    uir_tensor_release(tensor);
    return false;
}

/* Whether it is made of primitives: ONNX ops are for decomposition. */
static bool can_interpret(const uir_module *module) {
    for (uint32_t i = 1; i < module->nodes.count; i++)
        if (uir_op_get_row(module->nodes.data[i].op)->section != UIR_SECTION_PRIMITIVE) return false;
    return true;
}

static void interpret(fuzz_case *c, const uir_module *module) {
    uir_datum *inputs[MOST_VALUES] = {0}, *outputs[MOST_VALUES] = {0};
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    uint32_t input_count = graph->inputs.count, output_count = graph->outputs.count, made = 0;
    if (input_count > MOST_VALUES || output_count > MOST_VALUES) return;
    while (made < input_count &&
           make_input(c, module, uir_value_type(module, graph->inputs.data[made]), made, &inputs[made]))
        made++;
    if (made == input_count) {
        uir_interpreter_options options = {.cancel = &c->cancel, .byte_limit = 1 << 22};
        uir_status status = uir_module_interpret(module, &c->allocator, &c->diagnostics, &options, inputs, input_count,
                                                 outputs, output_count, NULL);
        fuzz_require_told(c, status);
        fuzz_require(status != UIR_STATUS_INTERNAL, "the interpreter met what the verifier should refuse");
        for (uint32_t i = 0; status == UIR_STATUS_OK && i < output_count; i++) uir_datum_release(outputs[i]);
    }
    for (uint32_t i = 0; i < made; i++) uir_datum_release(inputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_module *module = NULL;
    fuzz_begin(&c);
    uir_status status = uir_module_parse(&c.allocator, &c.diagnostics, (const char *)data, size, "fuzz", NULL, &module);
    fuzz_require_told(&c, status);
    if (status == UIR_STATUS_OK) {
        uir_text printed;
        uir_text_init(&printed, &c.allocator);
        status = uir_module_verify(module, &c.diagnostics);
        fuzz_require_told(&c, status);
        if (status == UIR_STATUS_OK && uir_module_print(module, SIZE_MAX, &printed) == UIR_STATUS_OK)
            fuzz_require_same_text(&c, &printed, reread, NULL);
        uir_text_deinit(&printed);
        if (status == UIR_STATUS_OK && can_interpret(module)) interpret(&c, module);
        uir_module_destroy(module);
    }
    fuzz_count(status == UIR_STATUS_OK);
    fuzz_end(&c);
    return 0;
}
