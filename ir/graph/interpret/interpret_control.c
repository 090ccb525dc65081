/* Control flow: a body is run as often as the data says. */
#include "ir/graph/interpret/interpret.h"
#include <string.h>

static uir_graph_id body_of(const uir_call *call, const char *name) {
    return uir_node_find_attribute(call->module, call->node, name)->value.graph;
}

static bool is_true(const uir_tensor *condition) {
    return condition->element_count && *(const uint8_t *)condition->data;
}

/* ---- if ---- */

uir_status uir_interpret_if(uir_call *call) {
    uir_graph_id body = body_of(call, is_true(uir_call_tensor(call, 0)) ? "then" : "else");
    return uir_interpreter_run_body(call, body, NULL, call->outputs);
}

/* ---- loop ---- */

typedef struct loop_state {
    uir_graph_id body;
    const uir_graph_info *info;
    uint32_t carried, scanned;
    uir_datum **inputs;  /* of the body: iteration, condition, carried */
    uir_datum **outputs; /* of the body: condition, carried, scanned */
    uir_datum **rows;    /* a sequence for each scanned output: what every iteration gave */
    size_t block_size;
} loop_state;

static uir_status make_scalar(uir_call *call, uir_dtype dtype, int64_t value, uir_datum **out_datum) {
    uir_tensor *tensor;
    UIR_TRY(uir_tensor_create(call->allocator, dtype, 0, NULL, &tensor));
    uir_dtype_store_integer(dtype, tensor->data, 0, value, false, UIR_ROUND_NEAREST_EVEN);
    uir_status status = uir_datum_create_tensor(call->allocator, tensor, out_datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

static uir_status open_loop(uir_call *call, loop_state *loop) {
    *loop = (loop_state){.body = body_of(call, "body")};
    loop->info = uir_graph_get(call->module, loop->body);
    loop->carried = call->node->input_count - 2;
    loop->scanned = call->node->output_count - loop->carried;
    size_t slots = (size_t)loop->info->inputs.count + loop->info->outputs.count + loop->scanned;
    loop->block_size = (slots + 1) * sizeof(uir_datum *);
    UIR_TRY_ALLOCATE(loop->inputs, uir_allocate_zeroed(call->allocator, loop->block_size));
    loop->outputs = loop->inputs + loop->info->inputs.count;
    loop->rows = loop->outputs + loop->info->outputs.count;
    for (uint32_t i = 0; i < loop->carried; i++) {
        loop->inputs[i + 2] = call->inputs[i + 2];
        uir_datum_retain(loop->inputs[i + 2]);
    }
    for (uint32_t i = 0; i < loop->scanned; i++)
        UIR_TRY(uir_datum_create_list(call->allocator, UIR_VALUE_SEQUENCE, UIR_DTYPE_NONE, &loop->rows[i]));
    return UIR_STATUS_OK;
}

static void close_loop(uir_call *call, loop_state *loop) {
    if (!loop->inputs) return;
    for (uint32_t i = 0; i < loop->info->inputs.count; i++) uir_datum_release(loop->inputs[i]);
    for (uint32_t i = 0; i < loop->info->outputs.count; i++) uir_datum_release(loop->outputs[i]);
    for (uint32_t i = 0; i < loop->scanned; i++) uir_datum_release(loop->rows[i]);
    uir_release(call->allocator, loop->inputs, loop->block_size);
}

/* One iteration: what is carried moves in, what the body gives moves back. */
static uir_status iterate(uir_call *call, loop_state *loop, int64_t iteration, bool *condition) {
    UIR_TRY(make_scalar(call, UIR_DTYPE_I64, iteration, &loop->inputs[0]));
    UIR_TRY(make_scalar(call, UIR_DTYPE_BOOL, *condition, &loop->inputs[1]));
    /* The body owns its inputs from here on, whatever happens. */
    uir_status status = uir_interpreter_run_body(call, loop->body, loop->inputs, loop->outputs);
    memset(loop->inputs, 0, loop->info->inputs.count * sizeof *loop->inputs);
    UIR_TRY(status);
    *condition = is_true(loop->outputs[0]->tensor);
    uir_datum_release(loop->outputs[0]);
    loop->outputs[0] = NULL;
    for (uint32_t i = 0; i < loop->carried; i++) {
        loop->inputs[i + 2] = loop->outputs[i + 1];
        loop->outputs[i + 1] = NULL;
    }
    for (uint32_t i = 0; i < loop->scanned; i++) {
        uir_datum **row = &loop->outputs[1 + loop->carried + i];
        UIR_TRY(uir_datum_append(loop->rows[i], *row));
        *row = NULL;
    }
    return UIR_STATUS_OK;
}

/* Stacks the rows along a new first axis. */
static uir_status stack_rows(uir_call *call, loop_state *loop, uint32_t index) {
    const uir_datum *rows = loop->rows[index];
    const uir_type *type = uir_value_type(call->module, loop->info->outputs.data[1 + loop->carried + index]);
    int64_t shape[UIR_MAX_RANK + 1] = {rows->count};
    uir_dtype dtype = type->dtype;
    uint32_t rank = type->rank_known ? type->rank : 0;
    if (rows->count) {
        dtype = rows->elements[0]->tensor->dtype;
        rank = rows->elements[0]->tensor->rank;
        memcpy(shape + 1, rows->elements[0]->tensor->shape, rank * sizeof *shape);
    } else {
        uir_interpreter_guess_shape(call, type, shape + 1);
    }
    uir_tensor *result;
    uir_elements part, whole;
    UIR_TRY(uir_call_create(call, loop->carried + index, dtype, rank + 1, shape, &result));
    UIR_TRY(uir_elements_open_result(call, result, false, &whole));
    uir_status status = UIR_STATUS_OK;
    uint8_t *target = whole.data;
    for (uint32_t i = 0; i < rows->count && status == UIR_STATUS_OK; i++) {
        const uir_tensor *row = rows->elements[i]->tensor;
        if (row->dtype != dtype || row->rank != rank || memcmp(row->shape, shape + 1, rank * sizeof *shape)) {
            char text[200];
            uir_tensor_describe(row, text, sizeof text);
            status =
                uir_call_fail(call, UIR_STATUS_BAD_DATA, "iteration %u produces %s, which cannot be stacked", i, text);
            break;
        }
        status = uir_elements_open(call, row, &part);
        if (status != UIR_STATUS_OK) break;
        size_t bytes = row->element_count * whole.size;
        if (bytes) memcpy(target, part.data, bytes);
        target += bytes;
        uir_elements_close(call, &part);
    }
    uir_status closed = uir_elements_close_result(call, result, &whole);
    return status == UIR_STATUS_OK ? closed : status;
}

uir_status uir_interpret_loop(uir_call *call) {
    loop_state loop;
    int64_t trips = uir_call_scalar(call, 0, INT64_MAX);
    bool condition = uir_call_scalar(call, 1, 1) != 0;
    uir_status status = open_loop(call, &loop);
    for (int64_t i = 0; i < trips && condition && status == UIR_STATUS_OK; i++) {
        if (uir_call_cancelled(call))
            status = UIR_STATUS_CANCELLED;
        else
            status = iterate(call, &loop, i, &condition);
    }
    for (uint32_t i = 0; i < loop.carried && status == UIR_STATUS_OK; i++) {
        status = uir_call_set(call, i, loop.inputs[i + 2]);
        loop.inputs[i + 2] = NULL;
    }
    for (uint32_t i = 0; i < loop.scanned && status == UIR_STATUS_OK; i++) {
        status = stack_rows(call, &loop, i);
        uir_datum_release(loop.rows[i]); /* before the next is stacked: less is alive */
        loop.rows[i] = NULL;
    }
    close_loop(call, &loop);
    return status;
}

/* ---- fused groups ---- */

uir_status uir_interpret_group(uir_call *call) {
    size_t size = ((size_t)call->node->input_count + 1) * sizeof(uir_datum *);
    uir_datum **inputs;
    UIR_TRY_ALLOCATE(inputs, uir_allocate_zeroed(call->allocator, size));
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        inputs[i] = call->inputs[i];
        uir_datum_retain(inputs[i]);
    }
    uir_status status = uir_interpreter_run_body(call, body_of(call, "body"), inputs, call->outputs);
    uir_release(call->allocator, inputs, size);
    return status;
}
