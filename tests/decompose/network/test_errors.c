/* Malformed nodes: each is refused with its status and a message that names what is wrong. */
#include "rig.h"

typedef struct broken {
    const char *op, *inputs[4];
    const char *attribute, *text; /* a string attribute, or none when text is NULL */
    int64_t count, values[4];     /* an integer list; count -1: one integer */
    uir_status status;
    const char *message;
} broken;

static const broken cases[] = {
    {"Conv", {"1,2,5"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input W"},
    {"Conv", {"1,2", "3,2"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "rank"},
    {"Conv", {"1,2,5", "3,2,3,3"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "rank"},
    {"Conv", {"1,2,5", "3,2,3"}, "strides", NULL, 2, {1, 1}, UIR_STATUS_BAD_FILE, "attribute strides"},
    {"Conv", {"1,2,5", "3,2,3"}, "strides", NULL, 1, {0}, UIR_STATUS_BAD_FILE, "attribute strides"},
    {"Conv", {"1,2,5", "3,2,3"}, "dilations", NULL, 1, {INT64_MAX}, UIR_STATUS_BAD_FILE, "attribute dilations"},
    {"Conv", {"1,2,5", "3,2,3"}, "pads", NULL, 1, {1}, UIR_STATUS_BAD_FILE, "attribute pads"},
    {"Conv", {"1,2,5", "3,2,3"}, "group", NULL, -1, {0}, UIR_STATUS_BAD_FILE, "attribute group"},
    {"Conv", {"1,2,5", "3,2,3"}, "kernel_shape", NULL, 1, {4}, UIR_STATUS_BAD_FILE, "kernel_shape"},
    {"Conv", {"1,2,5", "3,2,3"}, "auto_pad", "SAME", 0, {0}, UIR_STATUS_BAD_FILE, "auto_pad is 'SAME'"},
    {"ConvTranspose", {"1,2,5", "2,1,3"}, "output_shape", NULL, 2, {4, 4}, UIR_STATUS_BAD_FILE, "output_shape"},
    {"MaxPool", {"1,2,5"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "kernel_shape is missing"},
    {"MaxPool", {"1,2,5"}, "kernel_shape", NULL, 1, {0}, UIR_STATUS_BAD_FILE, "kernel_shape"},
    {"LpPool", {"1,2,5"}, "p", NULL, -1, {0}, UIR_STATUS_BAD_FILE, "attribute p"},
    {"MatMul", {"2,3", ""}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input B"},
    {"Gemm", {"2,3,4", "3,4"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input A"},
    {"Softmax", {"2,3"}, "axis", NULL, -1, {2}, UIR_STATUS_BAD_FILE, "axis"},
    {"LayerNormalization", {"2,3", "3"}, "axis", NULL, -1, {5}, UIR_STATUS_BAD_FILE, "axis"},
    {"GroupNormalization", {"1,4,2", "4", "4"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "num_groups"},
    {"BatchNormalization", {"1,4,2", "4,1", "4", "4"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input scale"},
    {"LSTM", {"5,2,3", "1,8,3", "1,8"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input R"},
    {"GRU", {"5,2,3", "1,6,3", "1,6,2"}, "direction", "both", 0, {0}, UIR_STATUS_BAD_FILE, "direction is 'both'"},
    {"RNN", {"5,2,3", "1,2,3", "1,2,2"}, "activations", "Swish", 0, {0}, UIR_STATUS_BAD_FILE, "'Swish'"},
    {"Attention", {"1,2,8", "1,2,8", "1,2,8"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "q_num_heads"},
    {"Attention", {"1,3,2,8", "1,2,2,8", "1,2,2,8"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "share 2 key heads"},
    {"RotaryEmbedding", {"1,2,8", "1,2,2", "1,2,2"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "num_heads"},
    {"RotaryEmbedding",
     {"1,1,2,8", "1,2,2", "1,2,2"},
     "rotary_embedding_dim",
     NULL,
     -1,
     {3},
     UIR_STATUS_BAD_FILE,
     "even"},
    {"Resize", {"1,1,4"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "exactly one of the inputs scales and sizes"},
    {"Resize", {"1,1,4"}, "mode", "bilinear", 0, {0}, UIR_STATUS_BAD_FILE, "mode is 'bilinear'"},
    {"QuantizeLinear", {"2,3", "2,3"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "block_size"},
    {"QuantizeLinear", {"2,3", ""}, "output_dtype", NULL, -1, {99}, UIR_STATUS_BAD_FILE, "output_dtype"},
    {"DequantizeLinear", {"2,3", "3"}, "axis", NULL, -1, {7}, UIR_STATUS_BAD_FILE, "axis"},
    {"DFT", {"4"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input"},
    {"DFT", {"1,4,3"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "1 (real) or 2 (complex)"},
    {"GridSample", {"1,1,4,4", "1,2,2"}, NULL, NULL, 0, {0}, UIR_STATUS_BAD_FILE, "input grid"},
    {"SoftmaxCrossEntropyLoss", {"2,3", "2"}, "reduction", "max", 0, {0}, UIR_STATUS_BAD_FILE, "reduction is 'max'"},
};

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const broken *c = &cases[i];
        rig r;
        rig_init(&r, 24);
        for (int j = 0; j < 4 && c->inputs[j]; j++) rig_input(&r, UIR_DTYPE_F32, c->inputs[j]);
        if (strcmp(c->op, "BatchNormalization") == 0) rig_input(&r, UIR_DTYPE_F32, "4");
        if (c->attribute && strcmp(c->attribute, "activations") == 0)
            rig_texts(&r, c->attribute, 1, &c->text);
        else if (c->text)
            rig_text(&r, c->attribute, c->text);
        else if (c->attribute && c->count < 0)
            rig_int(&r, c->attribute, c->values[0]);
        else if (c->attribute)
            rig_ints(&r, c->attribute, (uint32_t)c->count, c->values);
        uir_status status = rig_try(&r, "", c->op, 1);
        const char *messages = rig_messages(&r);
        if (status != c->status || !strstr(messages, c->message) || !strstr(messages, "'tested'"))
            fail_msg("case %zu, %s: status %s, messages: %s", i, c->op, uir_status_text(status), messages);
        rig_deinit(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
