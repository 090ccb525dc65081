/* Text: joined, split, without stop words and in another case, matched against a pattern. */
#include "base/regex.h"
#include "base/utf8.h"
#include "ir/graph/interpret/interpret.h"

#include <string.h>

static const uir_string_view *views(const uir_tensor *tensor) {
    return tensor ? tensor->data : NULL;
}

uir_status uir_interpret_string_concat(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0), *b = uir_call_tensor(call, 1);
    uir_tensor *result;
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape))
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the operands have different shapes");
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_STRING, a->rank, a->shape, &result));
    for (uint64_t i = 0; i < a->element_count; i++) {
        const uir_string_view *x = views(a) + i, *y = views(b) + i;
        size_t length = x->length + y->length;
        char *joined;
        UIR_TRY_ALLOCATE(joined, uir_allocate(call->allocator, length + 1));
        if (x->length) memcpy(joined, x->text, x->length);
        if (y->length) memcpy(joined + x->length, y->text, y->length);
        uir_status status = uir_tensor_set_string(result, i, joined, length);
        uir_release(call->allocator, joined, length + 1);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

/* ---- split ---- */

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What is left of a text, and how often it may still be split. */
typedef struct splitter {
    uir_string_view rest, delimiter; /* an empty delimiter: white space */
    int64_t most;
    bool done;
} splitter;

static splitter begin_split(uir_string_view text, uir_string_view delimiter, int64_t most) {
    splitter s = {text, delimiter, most, false};
    while (!delimiter.length && s.rest.length && is_blank(s.rest.text[0])) {
        s.rest.text++;
        s.rest.length--;
    }
    s.done = !s.rest.length && !delimiter.length;
    return s;
}

static size_t find_delimiter(const splitter *s) {
    size_t i = 0, width = s->delimiter.length;
    if (!width) {
        while (i < s->rest.length && !is_blank(s->rest.text[i])) i++;
        return i;
    }
    while (i + width <= s->rest.length && memcmp(s->rest.text + i, s->delimiter.text, width)) i++;
    return i + width <= s->rest.length ? i : s->rest.length;
}

/* The next piece; false at the end. */
static bool next_piece(splitter *s, uir_string_view *out_piece) {
    if (s->done) return false;
    size_t at = s->most == 0 ? s->rest.length : find_delimiter(s), skip = at + s->delimiter.length;
    *out_piece = (uir_string_view){s->rest.text, at};
    s->done = at == s->rest.length;
    if (s->most > 0) s->most--;
    if (s->done) {
        while (!s->delimiter.length && out_piece->length && is_blank(out_piece->text[out_piece->length - 1]))
            out_piece->length--;
        return true;
    }
    while (!s->delimiter.length && skip < s->rest.length && is_blank(s->rest.text[skip])) skip++;
    s->rest.text += skip;
    s->rest.length -= skip;
    if (!s->delimiter.length) s->done = !s->rest.length;
    return true;
}

uir_status uir_interpret_string_split(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0), *by = uir_call_tensor(call, 1);
    uir_string_view delimiter = by ? views(by)[0] : (uir_string_view){0}, piece;
    int64_t most = uir_call_int(call, "most", -1), shape[UIR_MAX_RANK] = {0};
    uir_tensor *counts, *pieces;
    UIR_TRY(uir_call_create(call, 1, UIR_DTYPE_I64, a->rank, a->shape, &counts));
    memcpy(shape, a->shape, a->rank * sizeof *shape);
    for (uint64_t i = 0; i < a->element_count; i++) {
        int64_t *count = (int64_t *)counts->data + i;
        for (splitter s = begin_split(views(a)[i], delimiter, most); next_piece(&s, &piece);) (*count)++;
        if (*count > shape[a->rank]) shape[a->rank] = *count;
    }
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_STRING, a->rank + 1, shape, &pieces));
    for (uint64_t i = 0; i < a->element_count; i++) {
        uint64_t at = i * (uint64_t)shape[a->rank];
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
        for (splitter s = begin_split(views(a)[i], delimiter, most); next_piece(&s, &piece);)
            UIR_TRY(uir_tensor_set_string(pieces, at++, piece.text, piece.length));
    }
    return UIR_STATUS_OK;
}

/* ---- case and stop words ---- */

/* In arena memory; a code point's other case may take more bytes, at most 4. */
static uir_status change_case(uir_arena *arena, uir_string_view text, uint32_t (*change)(uint32_t),
                              uir_string_view *out_text) {
    char *changed;
    size_t at = 0, length = 0, width;
    *out_text = text;
    if (!change) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(changed, uir_arena_allocate_array(arena, text.length + 1, 4));
    for (; at < text.length; at += width) {
        uint32_t code_point = uir_utf8_decode(text.text + at, text.length - at, &width);
        if (code_point == UIR_UTF8_INVALID) {
            memcpy(changed + length, text.text + at, width);
            length += width;
        } else {
            length += uir_utf8_encode(change(code_point), changed + length);
        }
    }
    *out_text = (uir_string_view){changed, length};
    return UIR_STATUS_OK;
}

typedef struct normalisation {
    uint32_t (*compared)(uint32_t), (*given)(uint32_t); /* NULL: as it is */
    uir_string_view *stops, *kept;
    uint64_t stop_count, kept_count;
} normalisation;

static bool is_stop(const normalisation *n, uir_string_view text) {
    for (uint64_t i = 0; i < n->stop_count; i++)
        if (n->stops[i].length == text.length && !memcmp(n->stops[i].text, text.text, text.length)) return true;
    return false;
}

static uir_status normalise(uir_call *call, normalisation *n, uir_arena *arena) {
    const uir_tensor *a = uir_call_tensor(call, 0), *stops = uir_call_tensor(call, 1);
    n->stop_count = stops ? stops->element_count : 0;
    UIR_TRY_ALLOCATE(n->stops, uir_arena_allocate_array(arena, n->stop_count + 1, sizeof *n->stops));
    UIR_TRY_ALLOCATE(n->kept, uir_arena_allocate_array(arena, a->element_count + 1, sizeof *n->kept));
    for (uint64_t i = 0; i < n->stop_count; i++)
        UIR_TRY(change_case(arena, views(stops)[i], n->compared, &n->stops[i]));
    for (uint64_t i = 0; i < a->element_count; i++) {
        uir_string_view compared;
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
        UIR_TRY(change_case(arena, views(a)[i], n->compared, &compared));
        if (!is_stop(n, compared)) UIR_TRY(change_case(arena, views(a)[i], n->given, &n->kept[n->kept_count++]));
    }
    int64_t shape[2] = {1, (int64_t)n->kept_count + !n->kept_count};
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_STRING, a->rank, shape + (a->rank == 1), &result));
    for (uint64_t i = 0; i < n->kept_count; i++)
        UIR_TRY(uir_tensor_set_string(result, i, n->kept[i].text, n->kept[i].length));
    return UIR_STATUS_OK;
}

uir_status uir_interpret_string_normalize(uir_call *call) {
    const char *wanted = uir_node_string(call->module, call->node, "case", "NONE");
    const uir_tensor *a = uir_call_tensor(call, 0);
    normalisation n = {0};
    if (a->rank == 2 && a->shape[0] != 1)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%lld rows of texts instead of one", (long long)a->shape[0]);
    if (!strcmp(wanted, "LOWER")) n.given = uir_code_point_to_lower;
    if (!strcmp(wanted, "UPPER")) n.given = uir_code_point_to_upper;
    if (!uir_call_int(call, "sensitive", 0)) n.compared = n.given ? n.given : uir_code_point_to_lower;
    uir_arena arena;
    uir_arena_init(&arena, call->allocator);
    uir_status status = normalise(call, &n, &arena);
    uir_arena_deinit(&arena);
    return status;
}

/* ---- patterns ---- */

static uir_status match_all(uir_call *call, uir_arena *arena) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uir_string_view pattern = views(uir_call_tensor(call, 1))[0];
    uir_regex *regex;
    uir_tensor *result;
    const char *problem = NULL;
    size_t place = 0;
    uir_status status = uir_regex_compile(arena, pattern.text, pattern.length, &regex, &problem, &place);
    if (status != UIR_STATUS_OK)
        return uir_call_fail(call, status, "the pattern: %s, at byte %zu", problem ? problem : "", place);
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_BOOL, a->rank, a->shape, &result));
    for (uint64_t i = 0; i < a->element_count; i++) {
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
        uir_arena_mark mark = uir_arena_get_mark(arena);
        UIR_TRY(uir_regex_match(regex, arena, views(a)[i].text, views(a)[i].length, (bool *)result->data + i));
        uir_arena_return_to(arena, mark);
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_regex_match(uir_call *call) {
    return uir_call_with_arena(call, match_all);
}
