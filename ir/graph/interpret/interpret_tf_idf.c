/* Texts looked up among others; counts of n-grams (ONNX TfIdfVectorizer). Words become numbers, the n-grams of each
 * length a sorted list. */
#include "ir/graph/interpret/interpret.h"
#include "ir/graph/interpret/sort.h"

#include <string.h>

/* The n-grams of one length, in the pool's numbers: gram g begins at words[order[g] * length]. */
typedef struct grams {
    const int64_t *words;
    int64_t length, count, first; /* first: the number in the pool of the first */
    int64_t *order;
} grams;

static int compare_words(const int64_t *a, const int64_t *b, int64_t length, int64_t step) {
    for (int64_t i = 0; i < length; i++)
        if (a[i] != b[i * step]) return a[i] < b[i * step] ? -1 : 1;
    return 0;
}

static int compare_grams(const void *user, int64_t a, int64_t b) {
    const grams *g = user;
    int order = compare_words(g->words + a * g->length, g->words + b * g->length, g->length, 1);
    return order ? order : (a > b) - (a < b);
}

/* The last of those in the pool that are the words at `at`, each `step` on; -1 when there is none. */
static int64_t find_gram(const grams *g, const int64_t *at, int64_t step) {
    int64_t low = 0, high = g->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare_words(g->words + g->order[middle] * g->length, at, g->length, step) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || compare_words(g->words + g->order[low - 1] * g->length, at, g->length, step)) return -1;
    return g->first + g->order[low - 1];
}

static int compare_text(const uir_string_view *a, const uir_string_view *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = shorter ? memcmp(a->text, b->text, shorter) : 0;
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_entries(const void *user, int64_t a, int64_t b) {
    const uir_string_view *texts = user;
    int order = compare_text(&texts[a], &texts[b]);
    return order ? order : (a > b) - (a < b);
}

/* Texts as numbers: their place among the pool's in order; -1 for one that the pool has not. */
static uir_status number_texts(uir_arena *arena, const uir_tensor *pool, const uir_tensor *words, int64_t *out_pool,
                               int64_t *out_words) {
    const uir_string_view *texts = pool->data, *found = words->data;
    int64_t count = (int64_t)pool->element_count, *order;
    UIR_TRY_ALLOCATE(order, uir_arena_allocate_array(arena, 2 * (size_t)count + 1, sizeof *order));
    for (int64_t i = 0; i < count; i++) order[i] = i;
    UIR_TRY(uir_sort(order, order + count, count, compare_entries, texts, arena->budget));
    for (int64_t i = 0; i < count; i++) {
        bool same = i && !compare_text(&texts[order[i]], &texts[order[i - 1]]);
        out_pool[order[i]] = same ? out_pool[order[i - 1]] : i;
    }
    for (uint64_t w = 0; w < words->element_count; w++) {
        int64_t low = 0, high = count;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (compare_text(&texts[order[middle]], &found[w]) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        out_words[w] = low < count && !compare_text(&texts[order[low]], &found[w]) ? low : -1;
    }
    return UIR_STATUS_OK;
}

/* The index of the last key that each text is. */
static uir_status find_keys(uir_call *call, uir_arena *arena) {
    const uir_tensor *texts = uir_call_tensor(call, 0), *keys = uir_call_tensor(call, 1);
    int64_t *places, *last;
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_I64, texts->rank, texts->shape, &result));
    UIR_TRY_ALLOCATE(places, uir_arena_allocate_array(arena, keys->element_count + 1, sizeof *places));
    UIR_TRY_ALLOCATE(last, uir_arena_allocate_array(arena, keys->element_count + 1, sizeof *last));
    UIR_TRY(number_texts(arena, keys, texts, places, result->data));
    for (uint64_t k = 0; k < keys->element_count; k++) last[places[k]] = (int64_t)k;
    for (uint64_t i = 0; i < texts->element_count; i++) {
        int64_t *found = (int64_t *)result->data + i;
        if (*found >= 0) *found = last[*found];
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_string_find(uir_call *call) {
    return uir_call_with_arena(call, find_keys);
}

typedef struct tf_idf {
    const grams *lengths; /* by length - 1 */
    int64_t min, max, skip, columns, gram_count;
    const int64_t *column; /* by number in the pool */
    float *weight;         /* by column; NULL: none has one */
} tf_idf;

static void count_row(const tf_idf *t, const int64_t *words, int64_t count, float *counts) {
    for (int64_t length = t->min; length <= t->max; length++) {
        const grams *g = &t->lengths[length - 1];
        /* A single word is the same at every distance. */
        int64_t furthest = length == 1 ? 1 : t->skip + 1;
        for (int64_t step = 1; g->count && step <= furthest && step * (length - 1) < count; step++)
            for (int64_t at = 0; at + step * (length - 1) < count; at++) {
                int64_t gram = find_gram(g, words + at, step);
                if (gram >= 0) counts[t->column[gram]]++;
            }
    }
}

static uir_status prepare(uir_call *call, uir_arena *arena, const int64_t *pool, tf_idf *t) {
    const uir_tensor *begins = uir_call_tensor(call, 2), *columns = uir_call_tensor(call, 3);
    int64_t total = (int64_t)uir_call_tensor(call, 1)->element_count, number = 0;
    grams *lengths;
    t->min = uir_call_int(call, "min", 1);
    t->max = uir_call_int(call, "max", 1);
    t->skip = uir_call_int(call, "skip", 0);
    t->columns = uir_call_int(call, "columns", 0);
    t->column = columns->data;
    if (t->max > (int64_t)begins->element_count) t->max = (int64_t)begins->element_count;
    if (t->min < 1 || t->skip < 0)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "a length or the skip is below its minimum");
    UIR_TRY_ALLOCATE(lengths, uir_arena_allocate_array(arena, begins->element_count + 1, sizeof *lengths));
    for (uint64_t i = 0; i < begins->element_count; i++) {
        const int64_t *begin = (const int64_t *)begins->data + i, length = (int64_t)i + 1;
        int64_t end = i + 1 < begins->element_count ? begin[1] : total;
        if (*begin < 0 || end < *begin || end > total || (end - *begin) % length)
            return uir_call_fail(call, UIR_STATUS_BAD_DATA,
                                 "the n-grams of length %lld have an invalid range: words %lld to %lld of %lld",
                                 (long long)length, (long long)*begin, (long long)end, (long long)total);
        grams *g = &lengths[i];
        *g = (grams){.words = pool + *begin, .length = length, .count = (end - *begin) / length, .first = number};
        number += g->count;
        UIR_TRY_ALLOCATE(g->order, uir_arena_allocate_array(arena, 2 * (size_t)g->count + 1, sizeof *g->order));
        for (int64_t k = 0; k < g->count; k++) g->order[k] = k;
        UIR_TRY(uir_sort(g->order, g->order + g->count, g->count, compare_grams, g, arena->budget));
    }
    if (number > (int64_t)columns->element_count)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%lld n-grams, but columns for %lld", (long long)number,
                             (long long)columns->element_count);
    for (int64_t i = 0; i < number; i++)
        if (t->column[i] < 0 || t->column[i] >= t->columns)
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "n-gram %lld has column %lld of %lld", (long long)i,
                                 (long long)t->column[i], (long long)t->columns);
    t->lengths = lengths;
    t->gram_count = number;
    return UIR_STATUS_OK;
}

/* The weights are the n-grams', in the pool's order. */
static uir_status weigh(uir_call *call, uir_arena *arena, const uir_tensor *weights, tf_idf *t) {
    if ((int64_t)weights->element_count < t->gram_count)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%llu weights for %lld n-grams",
                             (unsigned long long)weights->element_count, (long long)t->gram_count);
    UIR_TRY_ALLOCATE(t->weight, uir_arena_allocate_array(arena, (size_t)t->columns + 1, sizeof *t->weight));
    for (int64_t g = 0; g < t->gram_count; g++) t->weight[t->column[g]] = ((const float *)weights->data)[g];
    return UIR_STATUS_OK;
}

static uir_status run(uir_call *call, uir_arena *arena) {
    const uir_tensor *words = uir_call_tensor(call, 0), *pool = uir_call_tensor(call, 1),
                     *weights = uir_call_tensor(call, 4);
    const char *mode = uir_node_string(call->module, call->node, "mode", "TF");
    const int64_t *numbers = words->data, *pool_numbers = pool->data;
    if (words->dtype == UIR_DTYPE_STRING) {
        int64_t *a, *b;
        UIR_TRY_ALLOCATE(a, uir_arena_allocate_array(arena, pool->element_count + 1, sizeof *a));
        UIR_TRY_ALLOCATE(b, uir_arena_allocate_array(arena, words->element_count + 1, sizeof *b));
        UIR_TRY(number_texts(arena, pool, words, a, b));
        pool_numbers = a;
        numbers = b;
    }
    tf_idf t = {0};
    UIR_TRY(prepare(call, arena, pool_numbers, &t));
    if (weights && strcmp(mode, "TF")) UIR_TRY(weigh(call, arena, weights, &t));
    int64_t rows = words->rank == 2 ? words->shape[0] : 1, length = words->shape[words->rank - 1];
    int64_t shape[2] = {rows, t.columns};
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_F32, words->rank, shape + (words->rank == 1), &result));
    for (int64_t row = 0; row < rows; row++) {
        float *counts = (float *)result->data + row * t.columns;
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
        count_row(&t, numbers + row * length, length, counts);
        for (int64_t c = 0; c < t.columns && mode[0] != 'T'; c++) counts[c] = counts[c] > 0;
        for (int64_t c = 0; c < t.columns && t.weight; c++) counts[c] *= t.weight[c];
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_tf_idf(uir_call *call) {
    return uir_call_with_arena(call, run);
}
