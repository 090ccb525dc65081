/* Inside the generator of random modules: draws and the pool of operands, for its makers. */
#ifndef UIR_TESTS_RANDOM_GRAPH_POOL_H
#define UIR_TESTS_RANDOM_GRAPH_POOL_H

#include "tests/ir/graph/random_graph.h"

static inline int64_t pick(generator *g, int64_t low, int64_t high) {
    return random_between(&g->random, low, high);
}
static inline bool chance(generator *g, int percent) {
    return pick(g, 1, 100) <= percent;
}

static inline uir_module *module_of(generator *g) {
    return g->f->module;
}
static inline const uir_type *type_of(generator *g, uir_value_id v) {
    return uir_value_type(module_of(g), v);
}
static inline void add(generator *g, uir_value_id value) {
    if (g->f->builder.status != UIR_STATUS_OK || !value.id) return;
    const uir_type *type = type_of(g, value);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return;
    uint32_t bits = uir_dtype_bits(type->dtype);
    if (uir_dtype_is_float(type->dtype) && bits < 32) g->has_half = true;
    if (g->pool_count < MAX_POOL) g->pool[g->pool_count++] = value;
}

static inline uir_value_id any(generator *g) {
    /* Newer values more often, so that graphs are deep. */
    uint32_t back = (uint32_t)pick(g, 0, pick(g, 0, g->pool_count - 1));
    return g->pool[g->pool_count - 1 - back];
}

static inline bool has_class(generator *g, uir_value_id v, uint32_t classes) {
    return classes >> uir_dtype_get_class(type_of(g, v)->dtype) & 1;
}

/* A value of one of the classes; none when a few tries find none. */
static inline uir_value_id any_of(generator *g, uint32_t classes) {
    for (int i = 0; i < 12; i++) {
        uir_value_id v = any(g);
        if (has_class(g, v, classes)) return v;
    }
    return (uir_value_id){0};
}

/* Adds an op by a maker that is drawn. */
void make_one(generator *g);
/* Makers of control flow (random_graph_control.c). */
void make_if(generator *g);
void make_loop(generator *g);

#endif
