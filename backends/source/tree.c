/* The tree of a body as C: loops, conditions, names; and the values of a phase's parallel axes. */
#include "backends/source/source.h"

static void end_if(uir_c_writer *w, const uir_iitem *item, const uir_c_leaves *leaves) {
    if (leaves->end_if) leaves->end_if(leaves->user, item);
    uir_c_close(w);
}

static void emit_loop(uir_c_writer *w, const uir_iitem *item, const uir_c_leaves *leaves) {
    const char *i = w->symbols[item->symbol], *when = uir_c_condition(w, &item->guard);
    const char *extent = uir_c_dim(w, item->extent);
    if (item->named_ends) extent = uir_c_format(w, "uir_max(1, %s)", extent);
    uir_c_open(w, "for (int64_t %s = 0, %s_trips = %s; %s < %s_trips; %s++)", i, i, extent, i, i, i);
    if (when) uir_c_open(w, "if (%s)", when);
    uir_c_items(w, item->first_child, leaves);
    if (when) end_if(w, item, leaves);
    uir_c_close(w);
}

static void emit_item(uir_c_writer *w, const uir_iitem *item, const uir_c_leaves *leaves) {
    const uir_igraph *g = w->igraph;
    const char *when = item->kind == UIR_IITEM_LOOP ? NULL : uir_c_condition(w, &item->guard);
    if (when) uir_c_open(w, "if (%s)", when);
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        emit_loop(w, item, leaves);
        break;
    case UIR_IITEM_LET:
        uir_c_line(w, "UIR_LET %s = %s;", w->symbols[item->symbol],
                   uir_c_dim(w, g->symbols.data[item->symbol].definition));
        break;
    case UIR_IITEM_INDEX:
        leaves->index(leaves->user, item);
        break;
    case UIR_IITEM_INSTRUCTION:
        leaves->instruction(leaves->user, &g->instructions.data[item->instruction]);
        break;
    case UIR_IITEM_RUN:
        if (leaves->run && leaves->run(leaves->user, item)) break;
        /* fall through */
    case UIR_IITEM_IF:
        uir_c_items(w, item->first_child, leaves);
    }
    if (when) end_if(w, item, leaves);
}

void uir_c_items(uir_c_writer *w, uint32_t first, const uir_c_leaves *leaves) {
    for (uint32_t i = first; i != UINT32_MAX; i = w->igraph->items.data[i].next)
        emit_item(w, &w->igraph->items.data[i], leaves);
}

/* Whether an axis counts groups: those that say so, or all where none does. */
static bool counts_groups(const uir_iphase *phase, uint32_t axis) {
    bool any = false;
    for (uint32_t a = 0; a < phase->parallel_count; a++) any |= phase->parallel[a].scope == UIR_SCOPE_GROUP;
    return !any || phase->parallel[axis].scope == UIR_SCOPE_GROUP;
}

const char *uir_c_count(uir_c_writer *w, const uir_iphase *phase, bool groups) {
    const char *count = "1";
    for (uint32_t a = 0; a < phase->parallel_count; a++)
        if (counts_groups(phase, a) == groups)
            count = uir_c_format(w, "%s * uir_max(0, %s)", count, uir_c_dim(w, phase->parallel[a].extent));
    return count;
}

void uir_c_parallel(uir_c_writer *w, const uir_iphase *phase, const char *group, const char *unit) {
    uir_c_line(w, "int64_t of_groups = %s, in_group = %s;", group, unit);
    for (uint32_t a = phase->parallel_count; a-- > 0;) {
        const char *rest = counts_groups(phase, a) ? "of_groups" : "in_group";
        const char *extent = uir_c_dim(w, phase->parallel[a].extent);
        uir_c_line(w, "UIR_LET %s = %s %% (%s);", w->symbols[phase->parallel[a].symbol], rest, extent);
        uir_c_line(w, "%s /= (%s);", rest, extent);
    }
    uir_c_line(w, "(void)of_groups, (void)in_group;");
}
