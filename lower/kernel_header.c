/* What an iGraph says before its phases: sizes, tiles, the tiling function, requires, pointers. */
#include "lower/kernel.h"

#include <string.h>

void uir_kernel_describe_pointer(uir_kernel *k, uint32_t tensor) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    uir_kernel_pointer *p = &k->pointers[tensor];
    int space = t->role == UIR_LOOP_ROLE_TEMP ? uir_device_find_space(k->device, t->space, strlen(t->space)) : 0;
    p->name = uir_kernel_copy(k, t->name);
    p->on_chip = t->role == UIR_LOOP_ROLE_TEMP && space >= 0 && k->device->spaces[space].scope != UIR_SCOPE_DEVICE;
    for (uint32_t d = 0; d < t->rank; d++)
        if (!p->on_chip || !uir_kernel_is_one(k, t->extents[d])) p->dims[p->rank++] = (int32_t)d;
    while (p->rank < 2) { /* rows of one line: what reduces a row keeps its dims */
        for (uint32_t d = p->rank; d > 0; d--) p->dims[d] = p->dims[d - 1];
        p->dims[0] = -1;
        p->rank++;
    }
}

static void write_pointer(uir_kernel *k, uint32_t tensor, uir_text *text) {
    const uir_loop_tensor *t = &k->f->tensors.data[tensor];
    const uir_kernel_pointer *p = &k->pointers[tensor];
    uir_text_append_format(text, "  ptr %%%s : %s %s [", p->name, p->on_chip ? t->space : "dram",
                           uir_dtype_name(t->dtype));
    for (uint32_t d = 0; d < p->rank; d++)
        uir_text_append_format(text, "%s%s", d ? ", " : "",
                               p->dims[d] < 0 ? "1" : uir_kernel_print_dim(k, t->extents[p->dims[d]]));
    uir_text_append_format(text, "]%s", p->layout ? p->layout : "");
    if (t->role != UIR_LOOP_ROLE_TEMP)
        uir_text_append_format(text, " %s %u",
                               p->constant                   ? "const"
                               : t->role == UIR_LOOP_ROLE_IN ? "in"
                                                             : "out",
                               t->index);
    else if (!p->on_chip)
        uir_text_append_string(text, " work");
    uir_text_append_string(text, "\n");
}

static void write_size(uir_kernel *k, const uir_loop_size *size, const char *word, uir_text *text) {
    uir_symbol_facts facts = uir_dims_symbol_facts(k->dims, size->symbol);
    uir_text_append_format(text, "  %s %s", word, size->name);
    if (facts.max != UIR_DIM_UNBOUNDED)
        uir_text_append_format(text, " in %lld..%lld", (long long)facts.min, (long long)facts.max);
    else if (facts.min > 0 || word[0] == 't')
        uir_text_append_format(text, " in %lld..%lld", (long long)facts.min, (long long)1 << 40);
    if (facts.multiple_of > 1) uir_text_append_format(text, " mult %lld", (long long)facts.multiple_of);
    uir_text_append_string(text, "\n");
}

/* Bytes of on-chip memory in the space by name: a sum over what was declared, each rounded up. */
static uir_dim add_bytes(uir_kernel *k, uir_dim sum, uir_dtype dtype, const uir_dim *extents, uint32_t rank) {
    uir_dim bytes = uir_dim_const(k->dims, uir_dtype_bits(dtype) / 8 ? uir_dtype_bits(dtype) / 8 : 1);
    for (uint32_t d = 0; d < rank; d++) bytes = uir_dim_mul(k->dims, bytes, extents[d]);
    return uir_dim_add(k->dims, sum, uir_dim_add(k->dims, bytes, uir_dim_const(k->dims, 64)));
}

static bool memory_is_register(const uir_kernel *k, const uir_kernel_memory *m) {
    for (uint32_t d = 0; d < m->rank; d++) {
        int64_t value;
        if (!uir_dim_is_const(k->dims, m->extents[d], &value) || value != 1) return false;
    }
    return uir_device_find_space(k->device, "reg", 3) >= 0;
}

static void write_memory(uir_kernel *k, const uir_kernel_memory *m, uir_text *text) {
    uir_text_append_format(text, "  ptr %%%s : %s %s [", m->name, memory_is_register(k, m) ? "reg" : "sram",
                           uir_dtype_name(m->dtype));
    for (uint32_t d = m->rank; d < 2; d++) uir_text_append_format(text, "%s1", d > m->rank ? ", " : "");
    for (uint32_t d = 0; d < m->rank; d++)
        uir_text_append_format(text, "%s%s", d || m->rank < 2 ? ", " : "", uir_kernel_print_dim(k, m->extents[d]));
    uir_text_append_string(text, "]\n");
}

static void write_conditions(uir_kernel *k, const uir_condition *conditions, uint32_t count, const char *joint,
                             uir_text *text) {
    for (uint32_t i = 0; i < count; i++)
        uir_text_append_format(text, "%s%s %s %s", i ? joint : "", uir_kernel_print_dim(k, conditions[i].left),
                               uir_relation_text(conditions[i].relation), uir_kernel_print_dim(k, conditions[i].right));
}

static void write_candidates(uir_kernel *k, uir_text *text) {
    const uir_loop_function *f = k->f;
    for (uint32_t c = 0; c < f->candidates.count; c++) {
        const uir_icandidate *candidate = &f->candidates.data[c];
        uir_text_append_string(text, "  candidate ");
        for (uint32_t t = 0; t < f->tiles.count; t++)
            uir_text_append_format(text, "%s%s = %s", t ? ", " : "", f->tiles.data[t].name,
                                   uir_kernel_print_dim(k, candidate->tiles[t]));
        for (uint32_t a = 0; a < candidate->guard.count; a++) {
            uir_text_append_string(text, a ? " and " : " when ");
            write_conditions(k, &candidate->guard.atoms[a].condition, 1, "", text);
        }
        if (candidate->cost.id) uir_text_append_format(text, " cost %s", uir_kernel_print_dim(k, candidate->cost));
        if (candidate->units.id) uir_text_append_format(text, " units %s", uir_kernel_print_dim(k, candidate->units));
        uir_text_append_string(text, "\n");
    }
}

void uir_kernel_write_header(uir_kernel *k, uir_text *text) {
    const uir_loop_function *f = k->f;
    uir_dim bytes = uir_dim_const(k->dims, 0);
    int64_t least, most;
    uir_text_append_format(text, "igraph @%s on %s {\n", f->name, k->device->name);
    for (uint32_t i = 0; i < f->sizes.count; i++) write_size(k, &f->sizes.data[i], "dim", text);
    for (uint32_t i = 0; i < f->tiles.count; i++) write_size(k, &f->tiles.data[i], "tile", text);
    write_candidates(k, text);
    for (uint32_t i = 0; i < f->requires_.count; i++) {
        uir_text_append_string(text, "  require ");
        write_conditions(k, &f->requires_.data[i], 1, "", text);
        uir_text_append_string(text, "\n");
    }
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        const uir_dim *span = k->pointers[i].span.id ? &k->pointers[i].span : NULL;
        if (k->pointers[i].used && k->pointers[i].on_chip && strcmp(t->space, "reg"))
            bytes = add_bytes(k, bytes, t->dtype, span ? span : t->extents, span ? 1 : t->rank);
    }
    for (uint32_t i = 0; i < k->memories.count; i++) {
        const uir_kernel_memory *m = &k->memories.data[i];
        if (!memory_is_register(k, m)) bytes = add_bytes(k, bytes, m->dtype, m->extents, m->rank);
    }
    uir_dim_bounds(k->dims, bytes, &least, &most);
    int sram = uir_device_find_space(k->device, "sram", 4);
    if (sram >= 0 && least > 0 && (uint64_t)least > k->device->spaces[sram].capacity)
        uir_kernel_refuse(k, "what it keeps on the chip takes at least %lld bytes, there are %llu", (long long)least,
                          (unsigned long long)k->device->spaces[sram].capacity);
    if (sram >= 0 && (uint64_t)most > k->device->spaces[sram].capacity)
        uir_text_append_format(text, "  require %s <= sram\n", uir_kernel_print_dim(k, bytes));
    for (uint32_t i = 0; i < f->tensors.count; i++)
        if (k->pointers[i].used || f->tensors.data[i].role != UIR_LOOP_ROLE_TEMP) write_pointer(k, i, text);
    for (uint32_t i = 0; i < k->memories.count; i++) write_memory(k, &k->memories.data[i], text);
}

/* Tensors and memories with a dtype of less than a byte have no address. */
void uir_kernel_check_dtypes(uir_kernel *k) {
    for (uint32_t i = 0; i < k->f->tensors.count; i++)
        if (uir_dtype_bits(k->f->tensors.data[i].dtype) < 8)
            uir_kernel_refuse(k, "%s has no kernels", uir_dtype_name(k->f->tensors.data[i].dtype));
}
