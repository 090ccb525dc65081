/* A plan to bytes: the tables in their order, by the same lists of fields that plan_read.c reads. */
#include "package/plan.h"

static void put(uir_text *bytes, uint64_t value, int size) {
    char buffer[8];
    for (int i = 0; i < size; i++) buffer[i] = (char)(value >> (8 * i));
    uir_text_append(bytes, buffer, (size_t)size);
}

#define W(field) put(bytes, (uint64_t)(field), 4);
#define Q(field) put(bytes, (uint64_t)(field), 8);

void uir_plan_write(const uir_plan *plan, uir_text *bytes) {
    put(bytes, plan->characters_count, 4);
    uir_text_append(bytes, plan->characters, plan->characters_count);
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    put(bytes, plan->field##_count, 4);                                                                                \
    for (uint32_t i = 0; i < plan->field##_count; i++) {                                                               \
        const type *r = &plan->field[i];                                                                               \
        type##_fields(W, Q, r)                                                                                         \
    }
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
    if (!plan->devices_count) return;
    UIR_PLAN_DEVICE_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
}
