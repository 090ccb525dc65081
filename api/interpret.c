/* Sessions on the interpreter of primitives. */
#include "api/compiled.h"

#include <string.h>

static void after_node(void *user, const uir_module *module, uir_node_id node, double ms) {
    uir_session *session = user;
    (void)module;
    if (node.id >= session->time_count) return;
    session->times[node.id].ms += ms;
    session->times[node.id].calls++;
    session->statistics.interpreter_calls++;
    if (!session->trace) return;
    uir_session_slice slice = {node.id, uir_api_now_ms() - session->began_ms - ms, ms};
    (void)!uir_vector_push(&session->slice_arena, &session->slices, slice);
}

uir_status uir_session_interpret(uir_call *call, uir_session *session) {
    const uir_model *model = session->model;
    uir_datum **results = session->datums + model->input_count;
    uir_interpreter_options options = {
        .cancel = &session->cancel, .after_node = after_node, .user = session, .threads = session->threads};
    memset(session->times, 0, session->time_count * sizeof *session->times);
    session->statistics = (uir_run_statistics){.ran_on = UIR_INTERPRETER_NAME, .threads = session->threads};
    UIR_TRY(uir_session_take_inputs(call, session));
    uir_arena_reset(&session->slice_arena);
    memset(&session->slices, 0, sizeof session->slices);
    double start = session->began_ms = uir_api_now_ms();
    UIR_TRY(uir_module_interpret(uir_model_get_source(model)->compile.primitives, &session->allocator,
                                 &call->diagnostics, &options, session->datums, model->input_count, results,
                                 model->output_count, &session->statistics.peak_bytes));
    session->statistics.run_ms = uir_api_now_ms() - start;
    return uir_session_take_outputs(call, session);
}

uir_status uir_model_find_interpreted_shape(uir_call *call, const uir_model *model, uir_datum *const *inputs,
                                            uint32_t output, int64_t *out_dims) {
    return uir_module_find_shape(uir_model_get_source(model)->compile.primitives, &model->allocator, &call->diagnostics,
                                 inputs, model->input_count, output, out_dims);
}

bool uir_session_get_interpreted(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    for (uint32_t i = 1; i < session->time_count; i++) {
        if (session->times[i].calls == 0 || index-- > 0) continue;
        const uir_node_info *node = uir_node_get(module, (uir_node_id){i});
        *out_node = (uir_node_statistics){.name = uir_string_text(&module->strings, node->name),
                                          .op = uir_op_get_row(node->origin)->name,
                                          .kernel = uir_op_get_row(node->op)->name,
                                          .by = UIR_INTERPRETER_NAME,
                                          .why = session->model->info.why,
                                          .joined = "",
                                          .ms = session->times[i].ms,
                                          .calls = session->times[i].calls};
        return true;
    }
    return false;
}

bool uir_session_get_interpreted_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    if (index >= session->slices.count) return false;
    const uir_session_slice *slice = &session->slices.data[index];
    const uir_node_info *node = uir_node_get(module, (uir_node_id){slice->node});
    *out_slice = (uir_trace_slice){.name = uir_string_text(&module->strings, node->name),
                                   .op = uir_op_get_row(node->origin)->name,
                                   .kernel = uir_op_get_row(node->op)->name,
                                   .by = UIR_INTERPRETER_NAME,
                                   .begin_ms = slice->begin_ms > 0 ? slice->begin_ms : 0,
                                   .ms = slice->ms};
    return true;
}
