/* The host operator of detectors: non_max_suppression. */
#include "runtime/internal.h"

#include "base/box.h"

#include <string.h>

/* One class of one picture. */
typedef struct suppression {
    const uir_runtime *r;
    const float *boxes, *scores; /* [boxes, 4] and [boxes] */
    int64_t box_count, most;
    float threshold, least;
    bool has_least, center;
    int64_t *work; /* box_count: the heap of candidates from the start on, those that are kept from the end on */
} suppression;

/* The greater score first, of equal ones the lower index. */
static bool comes_before(const suppression *s, int64_t a, int64_t b) {
    if (s->scores[a] != s->scores[b]) return s->scores[a] > s->scores[b];
    return a < b;
}

/* Puts `value` into the heap of `count`, its first at the root, from the place `at` on downwards. */
static void sift_down(const suppression *s, int64_t value, int64_t at, int64_t count) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(s, s->work[child + 1], s->work[child])) child++;
        if (!comes_before(s, s->work[child], value)) break;
        s->work[at] = s->work[child];
    }
    s->work[at] = value;
}

/* The boxes that stay, in order, into `kept`; how many they are. */
static uir_status suppress(const suppression *s, int64_t *kept, int64_t *out_found) {
    int64_t count = 0, found = 0;
    for (int64_t i = 0; i < s->box_count; i++) {
        if (i % RT_POLL == 0 && uir_rt_cancelled(s->r)) return UIR_STATUS_CANCELLED;
        if (s->scores[i] == s->scores[i] && (!s->has_least || s->scores[i] > s->least)) s->work[count++] = i;
    }
    for (int64_t i = count / 2; i-- > 0;) {
        if (i % RT_POLL == 0 && uir_rt_cancelled(s->r)) return UIR_STATUS_CANCELLED;
        sift_down(s, s->work[i], i, count);
    }
    while (count > 0 && found < s->most) {
        if (uir_rt_cancelled(s->r)) return UIR_STATUS_CANCELLED;
        int64_t first = s->work[0], other = 0;
        uir_box candidate = uir_box_load(s->boxes + first * 4, s->center);
        if (--count > 0) sift_down(s, s->work[count], 0, count);
        while (other < found &&
               !uir_box_overlap(candidate, uir_box_load(s->boxes + kept[other] * 4, s->center), s->threshold))
            other++;
        if (other == found) kept[found++] = first;
    }
    *out_found = found;
    return UIR_STATUS_OK;
}

/* An operand of one element, which may be absent; `*out_data` NULL: it is. */
static uir_status scalar(uir_runtime *r, uint32_t step, uint32_t k, const char **out_data) {
    const uir_plan_step *s = &r->plan->steps[step];
    uint32_t tensor = k < s->inputs.count ? uir_plan_get_word(r->plan, s->inputs, k) : UIR_PLAN_NONE;
    char *data = NULL;
    *out_data = NULL;
    if (tensor == UIR_PLAN_NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_rt_locate_host(r, tensor, &data));
    if (!r->tensors[tensor].bytes)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "operand %u has no element", k);
    *out_data = data;
    return UIR_STATUS_OK;
}

static uir_status read_settings(uir_runtime *r, uint32_t step, suppression *out) {
    const char *most, *threshold, *least;
    UIR_TRY(scalar(r, step, 2, &most));
    UIR_TRY(scalar(r, step, 3, &threshold));
    UIR_TRY(scalar(r, step, 4, &least));
    if (most) memcpy(&out->most, most, sizeof out->most);
    if (threshold) memcpy(&out->threshold, threshold, sizeof out->threshold);
    if (least) memcpy(&out->least, least, sizeof out->least);
    out->has_least = least != NULL;
    out->center = uir_rt_attribute_int(r, step, "center", 0) != 0;
    if (out->most > out->box_count) out->most = out->box_count;
    if (out->most < 0) out->most = 0;
    return UIR_STATUS_OK;
}

uir_status uir_rt_non_max_suppression(uir_runtime *r, uint32_t step) {
    uint32_t boxes, scores;
    char *box_data, *score_data, *result;
    UIR_TRY(uir_rt_host_operand(r, step, 0, &boxes, &box_data));
    UIR_TRY(uir_rt_host_operand(r, step, 1, &scores, &score_data));
    const int64_t *shape = uir_rt_shape(r, scores), *of_boxes = uir_rt_shape(r, boxes);
    int64_t lines, n = shape[2], found = 0, room, nothing[2] = {0, 3};
    suppression s = {.r = r, .box_count = n};
    if (of_boxes[0] != shape[0] || of_boxes[1] != n || of_boxes[2] != 4)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA,
                                "boxes are not [batch, n, 4] for scores [batch, classes, n]");
    UIR_TRY(read_settings(r, step, &s));
    if (!r->tensors[scores].bytes) return uir_rt_give_host_output(r, step, 0, nothing, &result);
    /* The kept of every class, how many they are, and a class's work. */
    if (__builtin_mul_overflow(shape[0], shape[1], &lines) || __builtin_mul_overflow(lines, s.most + 1, &room) ||
        __builtin_add_overflow(room, n, &room) || room > INT64_MAX / (int64_t)sizeof(int64_t))
        return uir_rt_fail_step(r, step, UIR_STATUS_LIMIT, "too many boxes");
    UIR_TRY(uir_rt_buffer_grow_scratch(r, &r->host, (uint64_t)room * sizeof(int64_t)));
    int64_t *counts = (int64_t *)(void *)r->host.data, *kept = counts + lines;
    s.work = kept + lines * s.most;
    for (int64_t i = 0; i < lines; i++) {
        if (uir_rt_cancelled(r)) return UIR_STATUS_CANCELLED;
        s.boxes = (const float *)(const void *)box_data + i / shape[1] * n * 4;
        s.scores = (const float *)(const void *)score_data + i * n;
        UIR_TRY(suppress(&s, kept + i * s.most, &counts[i]));
        found += counts[i];
    }
    int64_t result_shape[2] = {found, 3}, classes = shape[1];
    UIR_TRY(uir_rt_give_host_output(r, step, 0, result_shape, &result));
    int64_t *out = (int64_t *)(void *)result;
    for (int64_t i = 0; i < lines; i++) {
        for (int64_t k = 0; k < counts[i]; k++, out += 3) {
            out[0] = i / classes;
            out[1] = i % classes;
            out[2] = kept[i * s.most + k];
        }
    }
    return UIR_STATUS_OK;
}
