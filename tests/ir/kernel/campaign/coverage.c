/* See coverage.h. */
#include "coverage.h"
#include "single.h"

#include <stdio.h>
#include <stdlib.h>

static void note(coverage *c, int feature, bool present) {
    c->features[feature] += present;
}

static void add_slice(coverage *c, const uir_igraph *igraph, const uir_islice *s) {
    note(c, COVERAGE_WINDOW, s->window);
    note(c, COVERAGE_BOX_FILL, s->has_fill && !s->window);
    note(c, COVERAGE_WINDOW_FILL, s->has_fill && s->window);
    note(c, COVERAGE_BLOCK, s->block);
    for (uint32_t d = 0; d < igraph->pointers.data[s->pointer].rank && s->window; d++) {
        int64_t least, most;
        uir_dim_bounds(igraph->dims, s->starts[d], &least, &most);
        note(c, COVERAGE_NEGATIVE, least < 0);
    }
}

static void add_instruction(coverage *c, const uir_igraph *igraph, const uir_iinstruction *in) {
    uir_iop_family family = uir_iop_get_row(in->code)->family;
    c->iops[in->code][in->axis][in->dtype % COVERAGE_DTYPES]++;
    if (family == UIR_IOP_FAMILY_CAST)
        c->casts[in->code == UIR_IOP_BITS ? 2 : in->saturate][in->dtype % COVERAGE_DTYPES]
                [in->dtype_b % COVERAGE_DTYPES]++;
    if (family == UIR_IOP_FAMILY_MMA) c->mma[in->dtype_b % COVERAGE_DTYPES][in->dtype_c % COVERAGE_DTYPES]++;
    note(c, COVERAGE_STREAM, in->stream);
    note(c, COVERAGE_IMMEDIATE, in->immediate_mask != 0);
    note(c, COVERAGE_ACCUMULATE, in->accumulate);
    note(c, COVERAGE_EXCLUSIVE, in->exclusive);
    note(c, COVERAGE_SATURATE, in->saturate);
    for (uint32_t i = 0; i < in->slice_count; i++) add_slice(c, igraph, &in->slices[i]);
}

static void add_guard(coverage *c, const uir_iguard *guard) {
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *a = &guard->atoms[i];
        if (a->kind == UIR_IATOM_RELATION) continue;
        note(c, a->negated ? COVERAGE_NOT_FIRST : a->kind == UIR_IATOM_FIRST ? COVERAGE_FIRST : COVERAGE_LAST, true);
    }
}

static void add_items(coverage *c, const uir_igraph *igraph, uint32_t id, uint32_t loops) {
    for (; id != UINT32_MAX; id = igraph->items.data[id].next) {
        const uir_iitem *item = &igraph->items.data[id];
        bool loop = item->kind == UIR_IITEM_LOOP;
        add_guard(c, &item->guard);
        note(c, COVERAGE_NESTED, loop && loops > 0);
        note(c, COVERAGE_LOOP_WHEN, loop && item->guard.count);
        note(c, COVERAGE_IF, item->kind == UIR_IITEM_IF);
        note(c, COVERAGE_LET, item->kind == UIR_IITEM_LET);
        note(c, COVERAGE_WHEN, item->kind == UIR_IITEM_INSTRUCTION && item->guard.count);
        if (item->kind == UIR_IITEM_INDEX)
            note(c,
                 item->index.mode == UIR_INDEX_CLAMP  ? COVERAGE_INDEX_CLAMP
                 : item->index.mode == UIR_INDEX_WRAP ? COVERAGE_INDEX_WRAP
                                                      : COVERAGE_INDEX_SKIP,
                 true);
        if (item->kind == UIR_IITEM_RUN) {
            uint32_t child = item->first_child;
            note(c, COVERAGE_RUN, child != UINT32_MAX && igraph->items.data[child].next != UINT32_MAX);
            note(c, COVERAGE_DEAD, item->dead_count > 0);
        }
        if (item->kind == UIR_IITEM_INSTRUCTION)
            add_instruction(c, igraph, &igraph->instructions.data[item->instruction]);
        add_items(c, igraph, item->first_child, loops + loop);
    }
}

void coverage_add(coverage *c, const uir_igraph *igraph) {
    uint32_t outputs = 0;
    c->kernels++;
    for (uint32_t i = 0; i < igraph->pointers.count; i++) {
        const uir_ipointer *p = &igraph->pointers.data[i];
        bool split = false;
        for (uint32_t d = 0; d < p->rank; d++) split |= p->layout.mode_count[d] > 1;
        outputs += p->role == UIR_IPOINTER_OUT;
        note(c, COVERAGE_INSTANCES, p->instances > 1);
        note(c, COVERAGE_SPLIT_MODES, split);
        note(c, COVERAGE_STRIDES, p->layout.given && !split);
        note(c, COVERAGE_PLACES, p->over != UINT32_MAX);
        note(c, COVERAGE_TIED, p->tied != UINT32_MAX);
        note(c, COVERAGE_WORK, p->role == UIR_IPOINTER_WORK);
        note(c, COVERAGE_RANK_0, p->rank == 0);
        note(c, COVERAGE_RANK_1, p->rank == 1);
        note(c, COVERAGE_RANK_3, p->rank == 3);
        note(c, COVERAGE_RANK_4, p->rank >= 4);
    }
    note(c, COVERAGE_OUTPUTS, outputs > 1);
    note(c, COVERAGE_PHASES, igraph->phases.count > 1);
    for (uint32_t i = 0; i < igraph->phases.count; i++) {
        const uir_iphase *phase = &igraph->phases.data[i];
        note(c, COVERAGE_AXES, phase->parallel_count > 1);
        note(c, COVERAGE_NO_AXES, phase->parallel_count == 0);
        for (uint32_t b = 0; b < phase->body_count; b++) add_items(c, igraph, phase->bodies[b].first_item, 0);
    }
}

void coverage_merge(coverage *c, const coverage *other) {
    uint32_t *to = (uint32_t *)(void *)c;
    const uint32_t *from = (const uint32_t *)(const void *)other;
    for (size_t i = 0; i < sizeof *c / sizeof *to; i++) to[i] += from[i];
}

static uint32_t count_single(const coverage *c, const single *s) {
    uir_iop_family family = uir_iop_get_row(s->code)->family;
    if (family == UIR_IOP_FAMILY_CAST) return c->casts[s->code == UIR_IOP_BITS ? 2 : s->saturate][s->dtype][s->dtype_b];
    if (family == UIR_IOP_FAMILY_MMA) return c->mma[s->dtype_b][s->dtype_c];
    return c->iops[s->code][s->axis][s->dtype];
}

/* A row for an instruction along an axis, a column for each of the dtypes that moves have on the device. */
static void print_rows(const coverage *c, const int *columns, uint32_t count) {
    printf("%-24s", "instructions");
    for (uint32_t i = 0; i < count; i++) printf("%7s", uir_dtype_name((uir_dtype)columns[i]));
    putchar('\n');
    for (uint32_t code = 0; code < UIR_IOP_COUNT; code++) {
        static const char *const axes[] = {"", ".row", ".col"};
        for (int axis = 0; axis < 3; axis++) {
            uint32_t total = 0;
            char name[40];
            for (uint32_t i = 0; i < count; i++) total += c->iops[code][axis][columns[i]];
            if (!total) continue;
            snprintf(name, sizeof name, "%s%s", uir_iop_get_row((uir_iop_code)code)->name, axes[axis]);
            printf("%-24s", name);
            for (uint32_t i = 0; i < count; i++) {
                if (c->iops[code][axis][columns[i]])
                    printf("%7u", c->iops[code][axis][columns[i]]);
                else
                    printf("%7s", "-");
            }
            putchar('\n');
        }
    }
    for (uint32_t from = 0; from < count; from++) {
        char name[40];
        snprintf(name, sizeof name, "cast from %s to", uir_dtype_name((uir_dtype)columns[from]));
        printf("%-24s", name);
        for (uint32_t to = 0; to < count; to++)
            printf("%7u", c->casts[0][columns[from]][columns[to]] + c->casts[1][columns[from]][columns[to]]);
        putchar('\n');
    }
}

uint32_t coverage_print(const coverage *c, const uir_machine *machine) {
    static const char *const words[] = {
#define F(constant, words) words,
        COVERAGE_FEATURES(F)
#undef F
    };
    int columns[COVERAGE_DTYPES];
    uint32_t count = 0, missing = 0, total = single_list(machine, NULL, 0);
    for (int d = 1; d < COVERAGE_DTYPES; d++) {
        bool here = uir_dtype_is_valid(d) &&
                    uir_machine_find_legal(machine, "move", (uir_dtype)d, UIR_DTYPE_NONE, 0, 1, 0, 0) >= 0;
        if (here) columns[count++] = d;
    }
    print_rows(c, columns, count);
    for (uint32_t i = 0; i < COVERAGE_FEATURE_COUNT; i++) {
        printf("%-40s%7u\n", words[i], c->features[i]);
        missing += !c->features[i];
    }
    single *all = calloc(total + 1, sizeof *all);
    (void)single_list(machine, all, total);
    for (uint32_t i = 0; i < total && all; i++) {
        char name[100];
        if (count_single(c, &all[i])) continue;
        single_describe(&all[i], name, sizeof name);
        printf("never exercised: %s\n", name);
        missing++;
    }
    free(all);
    printf("%u kernels; of %u instructions with their dtypes and %d features, %u never exercised\n", c->kernels, total,
           (int)COVERAGE_FEATURE_COUNT, missing);
    return missing;
}
