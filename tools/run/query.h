/* Queries of the public API that return structures of this build's size. In: a handle and an index. Out: the answer; an
 * empty one or false past the end. */
#ifndef UIR_TOOLS_RUN_QUERY_H
#define UIR_TOOLS_RUN_QUERY_H

#include "uir/tools.h"

static inline uir_message query_message(const uir_context *context, size_t index) {
    uir_message message = {.struct_size = sizeof message};
    (void)!uir_context_get_message(context, index, &message);
    return message;
}

static inline uir_model_info query_info(const uir_model *model) {
    uir_model_info info = {.struct_size = sizeof info};
    (void)!uir_model_get_info(model, &info);
    return info;
}

static inline uir_port query_input(const uir_model *model, size_t index) {
    uir_port port = {.struct_size = sizeof port, .name = ""};
    (void)!uir_model_get_input(model, index, &port);
    return port;
}

static inline uir_port query_output(const uir_model *model, size_t index) {
    uir_port port = {.struct_size = sizeof port, .name = ""};
    (void)!uir_model_get_output(model, index, &port);
    return port;
}

static inline bool query_default(const uir_model *model, size_t index, uir_default *out_default) {
    *out_default = (uir_default){.struct_size = sizeof *out_default, .name = ""};
    return uir_model_get_default(model, index, out_default) == UIR_STATUS_OK;
}

static inline uir_run_statistics query_statistics(const uir_session *session) {
    uir_run_statistics statistics = {.struct_size = sizeof statistics};
    (void)!uir_session_get_statistics(session, &statistics);
    return statistics;
}

static inline uir_comparison query_comparison(const uir_value *actual, const uir_value *expected,
                                              uir_tolerance tolerance) {
    uir_comparison comparison = {.struct_size = sizeof comparison};
    tolerance.struct_size = sizeof tolerance;
    (void)!uir_value_compare(actual, expected, &tolerance, &comparison);
    return comparison;
}

static inline bool query_node(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    UIR_INIT(out_node);
    return uir_session_get_node_statistics(session, index, out_node) == UIR_STATUS_OK;
}

static inline bool query_model_node(const uir_model *model, size_t index, uir_model_node *out_node) {
    UIR_INIT(out_node);
    return uir_model_get_node(model, index, out_node) == UIR_STATUS_OK;
}

static inline bool query_row_node(const uir_session *session, size_t row, size_t index, uir_row_node *out_node) {
    UIR_INIT(out_node);
    return uir_session_get_row_node(session, row, index, out_node) == UIR_STATUS_OK;
}

static inline bool query_slice_node(const uir_session *session, size_t slice, size_t index, uir_row_node *out_node) {
    UIR_INIT(out_node);
    return uir_session_get_slice_node(session, slice, index, out_node) == UIR_STATUS_OK;
}

static inline bool query_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice) {
    UIR_INIT(out_slice);
    return uir_session_get_trace_slice(session, index, out_slice) == UIR_STATUS_OK;
}

static inline bool query_launch(const uir_session *session, size_t index, uir_launch_cost *out_cost) {
    UIR_INIT(out_cost);
    return uir_session_get_launch_cost(session, index, out_cost) == UIR_STATUS_OK;
}

static inline bool query_loop(const uir_session *session, size_t index, uir_loop_cost *out_cost) {
    UIR_INIT(out_cost);
    return uir_session_get_loop_cost(session, index, out_cost) == UIR_STATUS_OK;
}

static inline bool query_estimate(const uir_session *session, size_t index, uir_machine_estimate *out_estimate) {
    UIR_INIT(out_estimate);
    return uir_session_get_estimate(session, index, out_estimate) == UIR_STATUS_OK;
}

static inline bool query_space(const uir_session *session, size_t index, size_t space, uir_space_estimate *out_space) {
    UIR_INIT(out_space);
    return uir_session_get_space_estimate(session, index, space, out_space) == UIR_STATUS_OK;
}

static inline bool query_op(size_t index, uir_op_info *out_op) {
    UIR_INIT(out_op);
    return uir_op_get_info(index, out_op) == UIR_STATUS_OK;
}

static inline bool query_device(const uir_device_list *list, size_t index, uir_device_report *out_report) {
    UIR_INIT(out_report);
    return uir_device_list_get(list, index, out_report) == UIR_STATUS_OK;
}

static inline uir_extractor_node query_part(const uir_extractor *extractor, size_t index) {
    uir_extractor_node node = {.struct_size = sizeof node, .name = "", .op = ""};
    (void)!uir_extractor_get_node(extractor, index, &node);
    return node;
}

#endif
