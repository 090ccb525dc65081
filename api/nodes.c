/* The nodes of the model's file: what became of each, and which of them a row of a run, or a stretch of its trace,
 * stands for. */
#include "api/internal.h"

const char *uir_api_explain_fate(uir_fate fate, const char **out_why) {
    static const char *const rows[][2] = {
#define UIR_FATE_ROW(constant, word, why) {word, why},
        UIR_FATES(UIR_FATE_ROW)
#undef UIR_FATE_ROW
    };
    *out_why = rows[fate][1];
    return rows[fate][0];
}

static bool find_model_node(const uir_model *model, size_t index, uir_model_node *out_node) {
    uir_package_node node;
    if (!model->package) return model->table->get_node && model->table->get_node(model, index, out_node);
    if (index >= UINT32_MAX || !uir_package_get_node(model->package, (uint32_t)index, &node)) return false;
    *out_node = (uir_model_node){.name = node.name, .op = node.op, .step = node.step, .into = node.into};
    out_node->fate = uir_api_explain_fate(node.fate, &out_node->why);
    return true;
}

uir_status uir_model_get_node(const uir_model *model, size_t index, uir_model_node *out_node) {
    uir_call call;
    uir_model_node node;
    if (!find_model_node(model, index, &node)) return UIR_STATUS_NOT_FOUND;
    uir_call_begin(&call, model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_model_node, &node, out_node), "querying a node");
}

static uir_status give_row_node(const uir_session *session, uint32_t index, bool again, uir_row_node *out_node) {
    uir_call call;
    uir_model_node node;
    if (!find_model_node(session->model, index, &node)) return UIR_STATUS_NOT_FOUND;
    uir_row_node row = {.node = index, .again = again, .name = node.name, .op = node.op};
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_row_node, &row, out_node), "querying a run");
}

/* The plan's step of a row. */
static bool find_row_step(const uir_session *session, size_t row, uint32_t *out_step) {
    uir_runtime_step step;
    for (uint32_t i = 0; uir_runtime_get_step(session->runtime, i, &step); i++) {
        if (!step.calls || !*step.by || row-- > 0) continue;
        *out_step = i;
        return true;
    }
    return false;
}

uir_status uir_session_get_row_node(const uir_session *session, size_t row, size_t index, uir_row_node *out_node) {
    const uir_model_table *table = session->model->table;
    uint32_t step, node;
    bool again, found = false;
    if (!session->runtime)
        found = table->get_row_node && table->get_row_node(session, row, index, &node, &again);
    else if (index < UINT32_MAX && find_row_step(session, row, &step))
        found = uir_runtime_get_step_node(session->runtime, step, (uint32_t)index, &node, &again);
    return found ? give_row_node(session, node, again, out_node) : UIR_STATUS_NOT_FOUND;
}

uir_status uir_session_get_slice_node(const uir_session *session, size_t slice, size_t index, uir_row_node *out_node) {
    const uir_model_table *table = session->model->table;
    uir_runtime_slice known;
    uint32_t node;
    bool again, found = false;
    if (!session->runtime)
        found = table->get_slice_node && table->get_slice_node(session, slice, index, &node, &again);
    else if (index < UINT32_MAX && uir_runtime_get_slice(session->runtime, slice, &known))
        found = uir_runtime_get_step_node(session->runtime, known.step, (uint32_t)index, &node, &again);
    return found ? give_row_node(session, node, again, out_node) : UIR_STATUS_NOT_FOUND;
}
