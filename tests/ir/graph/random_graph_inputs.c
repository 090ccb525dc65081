/* Random tensors, values of the sizes, and inputs of a module for them. */
#include "tests/ir/graph/random_graph.h"

static double random_real(random_state *r) {
    static const double special[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-40, 3e38, 0.5, 65504, -2.5};
    if (random_between(r, 0, 9) == 0) return special[random_between(r, 0, 11)];
    return (double)random_between(r, -4000, 4000) / 512;
}

uir_tensor *random_tensor(random_state *r, const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                          const int64_t *shape) {
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    uir_dtype_class class = uir_dtype_get_class(dtype);
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        if (class == UIR_DTYPE_CLASS_FLOAT) {
            uir_dtype_store_double(dtype, tensor->data, i, random_real(r), UIR_ROUND_NEAREST_EVEN);
        } else if (class == UIR_DTYPE_CLASS_STRING) {
            static const char *const words[] = {"", "a", "b", "10", "-3", "z\"\n"};
            const char *word = words[random_between(r, 0, 5)];
            assert_int_equal(uir_tensor_set_string(tensor, i, word, strlen(word)), UIR_STATUS_OK);
        } else if (class == UIR_DTYPE_CLASS_COMPLEX) {
            float parts[2] = {(float)random_real(r), (float)random_real(r)};
            memcpy((uint8_t *)tensor->data + i * sizeof parts, parts, sizeof parts);
        } else {
            int64_t value = random_between(r, 0, 5) ? random_between(r, -9, 9) : (int64_t)random_next(r);
            if (class == UIR_DTYPE_CLASS_BOOL) value &= 1;
            uir_dtype_store_integer(dtype, tensor->data, i, value, false, UIR_ROUND_NEAREST_EVEN);
        }
    }
    return tensor;
}

void choose_sizes(uint64_t seed, uint32_t index, int64_t *out_sizes) {
    static const int64_t extents[] = {1, 0, 2, 3, 5, 4};
    random_state r = {seed + 77 + index};
    for (int i = 0; i < 8; i++) random_next(&r);
    for (int i = 0; i < SIZE_COUNT; i++) out_sizes[i] = extents[index < 2 ? index : (uint32_t)random_between(&r, 0, 5)];
    if (random_between(&r, 0, 1))
        out_sizes[SIZE_COUNT - 1] = 1;
    else
        out_sizes[SIZE_COUNT - 1] = out_sizes[0];
}

void random_inputs(const fixture *f, const generator *g, uint64_t seed, const int64_t *sizes, uir_datum **out_inputs) {
    random_state r = {seed * 31 + 5};
    for (int i = 0; i < 8; i++) random_next(&r);
    (void)g;
    const uir_graph_info *graph = uir_graph_get(f->module, f->module->main);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const uir_type *type = uir_value_type(f->module, graph->inputs.data[i]);
        int64_t shape[UIR_MAX_RANK] = {0};
        for (uint32_t d = 0; d < type->rank; d++)
            assert_int_equal(uir_dim_evaluate(f->module->dims, type->dims[d], sizes, NULL, SIZE_COUNT, &shape[d]),
                             UIR_DIM_EVALUATED);
        out_inputs[i] = make_datum(&f->allocator, random_tensor(&r, &f->allocator, type->dtype, type->rank, shape));
    }
}
