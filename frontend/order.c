/* Topological order of a graph's nodes.
 *
 * ONNX demands that nodes come sorted; a file whose nodes do not is unambiguous all the same, so it is sorted here:
 * depth first in the file's order, which leaves sorted files as they are. A node depends on the makers of its inputs
 * and of every name used in its subgraphs. */
#include "frontend/import.h"

typedef struct ordering {
    uir_importer *importer;
    uir_vector(uint32_t) edges; /* makers that each node depends on, node by node */
    uint32_t *starts;           /* count + 1 positions in edges */
    uint32_t node;
    bool sorted;
} ordering;

static uir_status add_use(ordering *ordering, ProtobufCBinaryData bytes) {
    uir_name name;
    uir_bytes text = uir_proto_bytes(true, bytes);
    if (!uir_strings_find(&ordering->importer->names, text.data, text.length, &name)) return UIR_STATUS_OK;
    uint32_t maker = name.id < ordering->importer->makers.count ? ordering->importer->makers.data[name.id] : 0;
    if (!maker) return UIR_STATUS_OK;
    if (maker - 1 >= ordering->node) ordering->sorted = false;
    return uir_vector_push(&ordering->importer->scratch, &ordering->edges, maker - 1);
}

/* Nesting is bounded by the scan. */
static uir_status add_uses(ordering *ordering, const UirOnnx__NodeProto *node) {
    for (size_t i = 0; i < node->n_input; i++) UIR_TRY(add_use(ordering, node->input[i]));
    for (size_t a = 0; a < node->n_attribute; a++) {
        const UirOnnx__GraphProto *graph = node->attribute[a]->g;
        if (!graph) continue;
        for (size_t i = 0; i < graph->n_node; i++) UIR_TRY(add_uses(ordering, graph->node[i]));
        for (size_t i = 0; i < graph->n_output; i++) {
            if (graph->output[i]->has_name) UIR_TRY(add_use(ordering, graph->output[i]->name));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status set_makers(uir_importer *importer, UirOnnx__NodeProto *const *nodes, size_t count, bool clear) {
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < nodes[n]->n_output; i++) {
            uir_name name;
            UIR_TRY(uir_import_name(importer, uir_proto_bytes(true, nodes[n]->output[i]), &name));
            if (name.id) importer->makers.data[name.id] = clear ? 0 : (uint32_t)n + 1;
        }
    }
    return UIR_STATUS_OK;
}

enum { UNSEEN, OPEN, DONE };

static uir_status report_cycle(uir_importer *importer, const UirOnnx__NodeProto *node) {
    uir_location place;
    UIR_TRY(uir_import_place(importer, node, &place));
    return uir_import_problem(importer, UIR_STATUS_BAD_FILE, &place, NULL, "the node depends on its own output");
}

static uir_status sort(ordering *ordering, UirOnnx__NodeProto *const *nodes, uint32_t count,
                       const uint32_t **out_order) {
    uir_arena *scratch = &ordering->importer->scratch;
    uint8_t *states;
    uint32_t *order, *stack, *next, done = 0;
    UIR_TRY_ALLOCATE(states, uir_arena_allocate_array(scratch, count, sizeof *states));
    UIR_TRY_ALLOCATE(order, uir_arena_allocate_array(scratch, count, sizeof *order));
    UIR_TRY_ALLOCATE(stack, uir_arena_allocate_array(scratch, count, sizeof *stack));
    UIR_TRY_ALLOCATE(next, uir_arena_allocate_array(scratch, count, sizeof *next));
    for (uint32_t root = 0; root < count; root++) {
        uint32_t depth = 0;
        if (states[root] == UNSEEN) {
            states[root] = OPEN;
            stack[depth++] = root;
        }
        while (depth) {
            uint32_t node = stack[depth - 1];
            if (next[node] == ordering->starts[node + 1] - ordering->starts[node]) {
                states[node] = DONE;
                order[done++] = node;
                depth--;
                continue;
            }
            uint32_t maker = ordering->edges.data[ordering->starts[node] + next[node]++];
            if (states[maker] == OPEN) return report_cycle(ordering->importer, nodes[maker]);
            if (states[maker] == UNSEEN) {
                states[maker] = OPEN;
                stack[depth++] = maker;
            }
        }
    }
    *out_order = order;
    return UIR_STATUS_OK;
}

uir_status uir_import_order(uir_importer *importer, UirOnnx__NodeProto *const *nodes, size_t count,
                            const uint32_t **out_order) {
    ordering ordering = {.importer = importer, .sorted = true};
    *out_order = NULL;
    if (count >= UINT32_MAX) return UIR_STATUS_LIMIT;
    UIR_TRY_ALLOCATE(ordering.starts, uir_arena_allocate_array(&importer->scratch, count + 1, sizeof *ordering.starts));
    UIR_TRY(set_makers(importer, nodes, count, false));
    for (size_t n = 0; n < count; n++) {
        ordering.node = (uint32_t)n;
        ordering.starts[n] = ordering.edges.count;
        UIR_TRY(add_uses(&ordering, nodes[n]));
    }
    ordering.starts[count] = ordering.edges.count;
    UIR_TRY(set_makers(importer, nodes, count, true));
    return ordering.sorted ? UIR_STATUS_OK : sort(&ordering, nodes, (uint32_t)count, out_order);
}
