/* Host ops: top-k, non-zero, non-maximum suppression, random numbers, numbers as strings. unique is in
 * interpret_unique.c. */
#include "base/box.h"
#include "base/number.h"
#include "ir/graph/interpret/interpret.h"
#include "ir/graph/interpret/sort.h"
#include <math.h>
#include <string.h>

/* ---- top-k ---- */

typedef struct top_order {
    uir_dtype compute;
    const void *line;
    bool largest;
} top_order;

#define COMPARE(type)                                                                                                  \
    ((((const type *)o->line)[a] > ((const type *)o->line)[b]) -                                                       \
     (((const type *)o->line)[a] < ((const type *)o->line)[b]))

/* Which of two elements comes first; NaN counts as the greatest; ties go to the lower index. */
static int compare_top(const void *user, int64_t a, int64_t b) {
    const top_order *o = user;
    int order;
    if (o->compute == UIR_DTYPE_F32 || o->compute == UIR_DTYPE_F64) {
        double x = o->compute == UIR_DTYPE_F32 ? ((const float *)o->line)[a] : ((const double *)o->line)[a];
        double y = o->compute == UIR_DTYPE_F32 ? ((const float *)o->line)[b] : ((const double *)o->line)[b];
        order = (x != x) || (y != y) ? (x != x) - (y != y) : (x > y) - (x < y);
    } else {
        order = o->compute == UIR_DTYPE_I64 ? COMPARE(int64_t) : COMPARE(uint64_t);
    }
    if (order) return o->largest ? -order : order;
    return (a > b) - (a < b);
}

static int compare_index(const void *user, int64_t a, int64_t b) {
    (void)user;
    return (a > b) - (a < b);
}

/* Lines along the axis: gathered, ordered, the first k written to both results. */
static uir_status run_top_k(uir_call *call, uir_tensor *values, uir_tensor *indices, const void *data,
                            uir_dtype compute, int64_t k, int64_t *order, uint8_t *line) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0);
    bool sorted = uir_call_int(call, "sorted", 1) != 0;
    int64_t strides[UIR_MAX_RANK], length = a->shape[axis];
    uir_shape_strides(a->shape, a->rank, strides);
    int64_t stride = strides[axis], lines = length ? (int64_t)a->element_count / length : 0;
    size_t size = uir_dtype_bits(compute) / 8;
    top_order by = {compute, line, uir_call_int(call, "largest", 1) != 0};
    for (int64_t l = 0; l < lines; l++) {
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
        int64_t outer = l / stride, inner = l % stride, from = outer * stride * length + inner;
        for (int64_t i = 0; i < length; i++) {
            order[i] = i;
            memcpy(line + (size_t)i * size, (const uint8_t *)data + (size_t)(from + i * stride) * size, size);
        }
        UIR_TRY(uir_sort(order, order + length, length, compare_top, &by, uir_call_budget(call)));
        if (!sorted) UIR_TRY(uir_sort(order, order + length, k, compare_index, NULL, uir_call_budget(call)));
        for (int64_t i = 0; i < k; i++) {
            uint64_t to = (uint64_t)(outer * stride * k + inner + i * stride),
                     at = (uint64_t)(from + order[i] * stride);
            if (indices) ((int64_t *)indices->data)[to] = order[i];
            if (!values) continue;
            if (uir_dtype_is_float(a->dtype))
                uir_dtype_store_double(a->dtype, values->data, to, uir_dtype_load_double(a->dtype, a->data, at),
                                       UIR_ROUND_NEAREST_EVEN);
            else
                uir_dtype_store_integer(a->dtype, values->data, to, uir_dtype_load_integer(a->dtype, a->data, at),
                                        uir_dtype_get_class(a->dtype) == UIR_DTYPE_CLASS_UNSIGNED,
                                        UIR_ROUND_NEAREST_EVEN);
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_top_k(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0), count;
    int64_t ks[UIR_MAX_RANK], shape[UIR_MAX_RANK], length = a->shape[axis];
    UIR_TRY(uir_call_dims(call, "k", ks, &count));
    if (ks[0] < 0 || ks[0] > length)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "k is %lld, axis %u has %lld elements", (long long)ks[0], axis,
                             (long long)length);
    memcpy(shape, a->shape, sizeof shape);
    shape[axis] = ks[0];
    uir_tensor *values = NULL, *indices = NULL;
    UIR_TRY(uir_call_create(call, 0, a->dtype, a->rank, shape, &values));
    if (call->node->output_count > 1) UIR_TRY(uir_call_create(call, 1, UIR_DTYPE_I64, a->rank, shape, &indices));
    if (!values->element_count) return UIR_STATUS_OK;
    uir_dtype compute = uir_compute_dtype(a->dtype);
    const void *data;
    void *temporary;
    size_t size, bytes = (size_t)length * 3 * sizeof(int64_t);
    UIR_TRY(uir_call_convert(call, a, compute, &data, &temporary, &size));
    int64_t *order = uir_allocate(call->allocator, bytes); /* twice the line's length to sort in, and the line */
    uir_status status = UIR_STATUS_OUT_OF_MEMORY;
    if (order) {
        status = run_top_k(call, values, indices, data, compute, ks[0], order, (uint8_t *)(order + 2 * length));
        uir_release(call->allocator, order, bytes);
    }
    uir_call_release(call, temporary, size);
    return status;
}

/* ---- non-zero ---- */

static bool is_non_zero(const uir_tensor *a, uint64_t i) {
    if (a->dtype == UIR_DTYPE_STRING) return ((const uir_string_view *)a->data)[i].length != 0;
    return uir_dtype_is_float(a->dtype) ? uir_dtype_load_double(a->dtype, a->data, i) != 0
                                        : uir_dtype_load_integer(a->dtype, a->data, i) != 0;
}

uir_status uir_interpret_non_zero(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t rank = a->rank ? a->rank : 1, shape[2] = {rank, 0}, at = 0;
    for (uint64_t i = 0; i < a->element_count; i++) shape[1] += is_non_zero(a, i);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_I64, 2, shape, &result));
    int64_t *positions = result->data, strides[UIR_MAX_RANK] = {1}, extents[UIR_MAX_RANK] = {1};
    if (a->rank) {
        uir_shape_strides(a->shape, a->rank, strides);
        memcpy(extents, a->shape, a->rank * sizeof *extents);
    }
    for (uint64_t i = 0; i < a->element_count; i++) {
        if (!is_non_zero(a, i)) continue;
        for (int64_t d = 0; d < rank; d++) positions[d * shape[1] + at] = (int64_t)i / strides[d] % extents[d];
        at++;
    }
    return UIR_STATUS_OK;
}

/* ---- non-maximum suppression ---- */

typedef struct suppression {
    int64_t batches, classes, boxes, most;
    float iou, score;
    bool has_score, center;
    const uir_call *call;
    int64_t *order, *chosen; /* of one class: 2 * boxes to sort in, boxes */
    uir_vector(int64_t) found;
} suppression;

static int compare_scores(const void *user, int64_t a, int64_t b) {
    const float *scores = user;
    if (scores[a] != scores[b]) return scores[a] > scores[b] ? -1 : 1;
    return (a > b) - (a < b);
}

static uir_status suppress_class(suppression *s, uir_arena *arena, const float *boxes, const float *scores,
                                 int64_t batch, int64_t class_index) {
    int64_t candidates = 0, chosen = 0;
    for (int64_t i = 0; i < s->boxes; i++)
        if (scores[i] == scores[i] && (!s->has_score || scores[i] > s->score)) s->order[candidates++] = i;
    UIR_TRY(uir_sort(s->order, s->order + s->boxes, candidates, compare_scores, scores, arena->budget));
    for (int64_t i = 0; i < candidates && chosen < s->most; i++) {
        uir_box candidate = uir_box_load(boxes + s->order[i] * 4, s->center);
        bool kept = true;
        if (uir_call_cancelled(s->call)) return UIR_STATUS_CANCELLED;
        for (int64_t c = 0; c < chosen && kept; c++)
            kept = !uir_box_overlap(candidate, uir_box_load(boxes + s->chosen[c] * 4, s->center), s->iou);
        if (!kept) continue;
        s->chosen[chosen++] = s->order[i];
        UIR_TRY(uir_vector_push(arena, &s->found, batch));
        UIR_TRY(uir_vector_push(arena, &s->found, class_index));
        UIR_TRY(uir_vector_push(arena, &s->found, s->order[i]));
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_non_max_suppression(uir_call *call) {
    const uir_tensor *boxes = uir_call_tensor(call, 0), *scores = uir_call_tensor(call, 1);
    const uir_tensor *iou = uir_call_tensor(call, 3), *score = uir_call_tensor(call, 4);
    suppression s = {.call = call, .batches = scores->shape[0], .classes = scores->shape[1], .boxes = scores->shape[2]};
    if (boxes->shape[2] != 4 || boxes->shape[0] != s.batches || boxes->shape[1] != s.boxes)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "boxes are not [batch, n, 4] for scores [batch, classes, n]");
    if (!s.boxes) s.batches = 0; /* no elements, no work, however many batches and classes of none there are */
    s.most = uir_call_scalar(call, 2, 0);
    s.iou = iou ? *(const float *)iou->data : 0;
    s.has_score = score != NULL;
    s.score = score ? *(const float *)score->data : 0;
    s.center = uir_call_int(call, "center", 0) != 0;
    uir_arena arena;
    uir_arena_init(&arena, call->allocator);
    uir_status status = UIR_STATUS_OK;
    s.order = uir_arena_allocate_array(&arena, (size_t)s.boxes * 3 + 1, sizeof(int64_t));
    if (!s.order) status = UIR_STATUS_OUT_OF_MEMORY;
    s.chosen = s.order ? s.order + 2 * s.boxes : NULL;
    for (int64_t b = 0; b < s.batches && status == UIR_STATUS_OK; b++)
        for (int64_t c = 0; c < s.classes && status == UIR_STATUS_OK; c++) {
            if (uir_call_cancelled(call))
                status = UIR_STATUS_CANCELLED;
            else
                status = suppress_class(&s, &arena, (const float *)boxes->data + b * s.boxes * 4,
                                        (const float *)scores->data + (b * s.classes + c) * s.boxes, b, c);
        }
    uir_tensor *result;
    int64_t shape[2] = {s.found.count / 3, 3};
    if (status == UIR_STATUS_OK) status = uir_call_create(call, 0, UIR_DTYPE_I64, 2, shape, &result);
    if (status == UIR_STATUS_OK && s.found.count) memcpy(result->data, s.found.data, s.found.count * sizeof(int64_t));
    uir_arena_deinit(&arena);
    return status;
}

/* ---- random numbers: splitmix64 (Steele, Lea and Flood 2014), a stream per node and run ---- */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [0, 1), 53 bits. */
static double next_uniform(uint64_t *state) {
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static uir_status open_random(uir_call *call, uir_tensor **out_result, uint64_t *out_state) {
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank;
    UIR_TRY(uir_call_dims(call, "dims", shape, &rank));
    /* The seed alone decides when it is given, else the ONNX node, whatever became of the module since; a node in a
     * loop draws anew each time. */
    uint64_t turn;
    UIR_TRY(uir_interpreter_next_draw(call, &turn));
    bool given = uir_node_find_attribute(call->module, call->node, "seed") != NULL;
    uint64_t own = call->node->source ? call->node->source : call->node_id.id;
    uint64_t seed[3] = {given ? (uint64_t)uir_call_int(call, "seed", 0) : own, turn, given};
    *out_state = uir_hash(seed, sizeof seed, 0);
    return uir_call_create(call, 0, uir_node_dtype(call->module, call->node, "dtype", UIR_DTYPE_F32), rank, shape,
                           out_result);
}

uir_status uir_interpret_random_uniform(uir_call *call) {
    uir_tensor *result;
    uint64_t state;
    UIR_TRY(open_random(call, &result, &state));
    double low = uir_node_float(call->module, call->node, "low", 0),
           high = uir_node_float(call->module, call->node, "high", 1);
    /* Below `high`: what rounding takes there is drawn again, unless the dtype has nothing between the two. */
    enum { MOST_TRIES = 64 };
    for (uint64_t i = 0; i < result->element_count; i++) {
        bool above = true;
        for (int tries = 0; tries < MOST_TRIES && above; tries++) {
            uir_dtype_store_double(result->dtype, result->data, i, low + (high - low) * next_uniform(&state),
                                   UIR_ROUND_NEAREST_EVEN);
            above = high > low && uir_dtype_load_double(result->dtype, result->data, i) >= high;
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_random_normal(uir_call *call) {
    uir_tensor *result;
    uint64_t state;
    UIR_TRY(open_random(call, &result, &state));
    double mean = uir_node_float(call->module, call->node, "mean", 0);
    double scale = uir_node_float(call->module, call->node, "scale", 1);
    for (uint64_t i = 0; i < result->element_count; i++) { /* Box and Muller 1958 */
        double radius = sqrt(-2 * log(1 - next_uniform(&state))), angle = 6.283185307179586 * next_uniform(&state);
        uir_dtype_store_double(result->dtype, result->data, i, mean + scale * radius * cos(angle),
                               UIR_ROUND_NEAREST_EVEN);
    }
    return UIR_STATUS_OK;
}

/* ---- strings and numbers ---- */

static uir_status parse_element(uir_call *call, const uir_string_view *view, uir_tensor *result, uint64_t i) {
    int64_t integer;
    double real;
    if (!uir_dtype_is_float(result->dtype) && uir_integer_from_text(view->text, view->length, &integer)) {
        uir_dtype_store_integer(result->dtype, result->data, i, integer, false, UIR_ROUND_NEAREST_EVEN);
    } else if (uir_double_from_text(view->text, view->length, &real)) {
        uir_dtype_store_double(result->dtype, result->data, i, real, UIR_ROUND_NEAREST_EVEN);
    } else {
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "\"%.*s\" is not a number",
                             view->length > 64 ? 64 : (int)view->length, view->text);
    }
    return UIR_STATUS_OK;
}

static uir_status print_element(const uir_tensor *a, uint64_t i, uir_tensor *result) {
    char text[UIR_NUMBER_TEXT_SIZE];
    size_t length;
    uir_dtype_class class = uir_dtype_get_class(a->dtype);
    if (class == UIR_DTYPE_CLASS_FLOAT) {
        double value = uir_dtype_load_double(a->dtype, a->data, i);
        length = a->dtype == UIR_DTYPE_F64 ? uir_double_to_text(value, text) : uir_float_to_text((float)value, text);
        if (isnan(value)) length = 3, memcpy(text, "NaN", 4); /* as ONNX's Cast writes these */
        if (isinf(value)) length = value < 0 ? 4 : 3, memcpy(text, value < 0 ? "-INF" : "INF", length);
        return uir_tensor_set_string(result, i, text, length);
    }
    int64_t value = uir_dtype_load_integer(a->dtype, a->data, i);
    if (class == UIR_DTYPE_CLASS_BOOL) return uir_tensor_set_string(result, i, value ? "1" : "0", 1);
    bool negative = class == UIR_DTYPE_CLASS_SIGNED && value < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
    char *at = text + sizeof text;
    do {
        *--at = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude);
    if (negative) *--at = '-';
    return uir_tensor_set_string(result, i, at, (size_t)(text + sizeof text - at));
}

uir_status uir_interpret_cast_string(uir_call *call, uir_dtype to) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, to, a->rank, a->shape, &result));
    for (uint64_t i = 0; i < a->element_count; i++)
        UIR_TRY(to == UIR_DTYPE_STRING ? print_element(a, i, result)
                                       : parse_element(call, (const uir_string_view *)a->data + i, result, i));
    return UIR_STATUS_OK;
}
