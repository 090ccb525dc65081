/* Generates tokens with a decoder whose caches of keys and values grow in place: an application of the C API.
 *
 *   uir-generate MODEL.onnx|PACKAGE.uir COUNT TOKEN...
 *
 * In: a model with one output of logits [batch, sequence, words], inputs `past...` of rank 4 and as many outputs
 * `present...` in the same order, which are those with rows appended along one axis; token ids; how many tokens to
 * generate. Other inputs: integers of rank 2, of which one called after a mask is all ones for past and new tokens, one
 * called after positions counts on, and the rest are the tokens. Out: the tokens, the likeliest at each step, and the
 * time of a step. Exit codes are those of uir-run.
 *
 * Each cache is one buffer with room for all rows that there will be. A step binds it twice: as `past`, with the rows
 * that are there, and as `present`, which has the new ones too. The strides say that behind the rows of one head there
 * is room before those of the next. Then a step writes its new rows, moves nothing and allocates nothing but what a new
 * length takes. */
#define _POSIX_C_SOURCE 200809L
#include <uir/uir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CACHES = 256, RANK = 4 };

typedef struct cache {
    size_t input, output; /* ports of the model */
    uint32_t axis;        /* that grows */
    int64_t shape[RANK], strides[RANK];
    char *data;
    size_t size;
} cache;

typedef struct decoder {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    cache caches[MOST_CACHES];
    size_t cache_count, logits;
    int64_t room;                       /* tokens that a cache can take */
    int64_t *tokens, *ones, *positions; /* of that many */
} decoder;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uir_status refuse(const char *what, const char *name) {
    fprintf(stderr, "uir-generate: %s '%s'\n", what, name);
    return UIR_STATUS_UNSUPPORTED;
}

static bool begins_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

/* A package begins with its own magic. */
static uir_status open_model(uir_context *context, const char *path, uir_model **out_model) {
    char start[sizeof UIR_PACKAGE_MAGIC] = "";
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(start, 1, sizeof start - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    if (length == sizeof start - 1 && memcmp(start, UIR_PACKAGE_MAGIC, length) == 0) {
        return uir_model_open_package_file(context, path, NULL, out_model);
    }
    return uir_model_load_file(context, path, NULL, out_model);
}

/* ---- caches ---- */

/* The axis that grows is the only free one besides the batch. From one head to the next are `room` rows. */
static uir_status make_cache(decoder *d, size_t input, size_t output) {
    uir_port port;
    cache *c = &d->caches[d->cache_count];
    uint32_t free_axes = 0;
    uir_value *element = NULL;
    int64_t count = 1;
    UIR_INIT(&port);
    uir_status status = uir_model_get_input(d->model, input, &port);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    if (port.kind != UIR_VALUE_TENSOR || !port.rank_known || port.rank != RANK || d->cache_count == MOST_CACHES) {
        return refuse("not a cache of rank 4:", port.name);
    }
    c->input = input;
    c->output = output;
    for (uint32_t a = 0; a < RANK; a++) {
        c->shape[a] = port.dims[a] < 0 ? 1 : port.dims[a];
        if (port.dims[a] < 0 && a > 0) {
            c->axis = a;
            free_axes++;
        }
    }
    if (free_axes != 1) {
        return refuse("no axis, or several, along which it could grow:", port.name);
    }
    for (uint32_t a = RANK; a-- > 0;) {
        c->strides[a] = count;
        count *= a == c->axis ? d->room : c->shape[a];
    }
    status = uir_value_create_tensor(d->context, port.dtype, 0, NULL, &element);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    c->size = (size_t)count * uir_value_get_byte_size(element);
    uir_value_destroy(element);
    c->data = (char *)calloc(c->size + 1, 1);
    if (c->data == NULL) {
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    d->cache_count++;
    return UIR_STATUS_OK;
}

static uir_status make_caches(decoder *d) {
    size_t output = 0, outputs = uir_model_output_count(d->model);
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < uir_model_input_count(d->model) && status == UIR_STATUS_OK; i++) {
        if (!begins_with(uir_model_get_input_name(d->model, i), "past")) {
            continue;
        }
        while (output < outputs && !begins_with(uir_model_get_output_name(d->model, output), "present")) {
            output++;
        }
        if (output == outputs) {
            return refuse("no output `present...` is left for", uir_model_get_input_name(d->model, i));
        }
        status = make_cache(d, i, output++);
    }
    while (d->logits < outputs && begins_with(uir_model_get_output_name(d->model, d->logits), "present")) {
        d->logits++;
    }
    return d->logits < outputs ? status : refuse("no output besides the caches:", "logits");
}

/* ---- a step ---- */

/* `past` tokens are in the caches and `count` more follow. */
static uir_status bind_caches(decoder *d, int64_t past) {
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < d->cache_count && status == UIR_STATUS_OK; i++) {
        cache *c = &d->caches[i];
        c->shape[c->axis] = past;
        status = uir_session_bind_input(d->session, c->input, RANK, c->shape, c->strides, c->data, c->size);
        if (status == UIR_STATUS_OK) {
            status = uir_session_bind_output_strided(d->session, c->output, RANK, c->strides, c->data, c->size);
        }
    }
    return status;
}

static uir_status bind_tokens(decoder *d, int64_t past, int64_t count) {
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < uir_model_input_count(d->model) && status == UIR_STATUS_OK; i++) {
        const char *name = uir_model_get_input_name(d->model, i);
        bool mask = strstr(name, "mask") != NULL;
        int64_t shape[2] = {1, mask ? past + count : count};
        const int64_t *data = mask ? d->ones : strstr(name, "position") ? d->positions + past : d->tokens + past;
        if (begins_with(name, "past")) {
            continue;
        }
        uir_port port;
        UIR_INIT(&port);
        status = uir_model_get_input(d->model, i, &port);
        if (status != UIR_STATUS_OK) {
            return status;
        }
        if (port.dtype != UIR_DTYPE_I64 || port.rank != 2) {
            return refuse("neither tokens nor a cache: input", port.name);
        }
        status = uir_session_bind_input(d->session, i, 2, shape, NULL, data, (size_t)shape[1] * sizeof *data);
    }
    return status;
}

/* The likeliest word after the last token. */
static uir_status choose(decoder *d, int64_t *out_token) {
    uir_value *logits = NULL;
    uir_status status = uir_session_get_output(d->session, d->logits, &logits);
    if (status != UIR_STATUS_OK) {
        return status;
    }
    uint32_t rank = uir_value_get_rank(logits);
    int64_t words = rank ? uir_value_get_shape(logits)[rank - 1] : 0;
    uint64_t first = uir_value_get_element_count(logits) - (uint64_t)words;
    *out_token = 0;
    for (int64_t w = 1; w < words; w++) {
        double best = uir_value_get_double(logits, first + (uint64_t)*out_token);
        if (uir_value_get_double(logits, first + (uint64_t)w) > best) {
            *out_token = w;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status generate(decoder *d, int64_t given, int64_t wanted) {
    uir_status status = UIR_STATUS_OK;
    int64_t past = 0, count = given;
    double ms = 0;
    for (int64_t n = 0; n < wanted && status == UIR_STATUS_OK; n++) {
        double start = now_ms();
        status = bind_caches(d, past);
        if (status == UIR_STATUS_OK) {
            status = bind_tokens(d, past, count);
        }
        if (status == UIR_STATUS_OK) {
            status = uir_session_run(d->session);
        }
        past += count;
        count = 1;
        if (status == UIR_STATUS_OK) {
            status = choose(d, &d->tokens[past]);
        }
        if (status == UIR_STATUS_OK) {
            printf("%s%lld", n ? " " : "", (long long)d->tokens[past]);
            fflush(stdout);
        }
        if (n > 0) {
            ms += now_ms() - start; /* the first step reads what was given */
        }
    }
    if (status == UIR_STATUS_OK) {
        uir_run_statistics statistics;
        UIR_INIT(&statistics);
        status = uir_session_get_statistics(d->session, &statistics);
        printf("\n%.3f ms a token, by %s\n", wanted > 1 ? ms / (double)(wanted - 1) : 0, statistics.ran_on);
    }
    return status;
}

/* ---- the program ---- */

static uir_status read_tokens(decoder *d, char **words, int64_t given, int64_t wanted) {
    d->room = given + wanted;
    d->tokens = (int64_t *)calloc((size_t)d->room + 1, sizeof *d->tokens);
    d->ones = (int64_t *)calloc((size_t)d->room + 1, sizeof *d->ones);
    d->positions = (int64_t *)calloc((size_t)d->room + 1, sizeof *d->positions);
    if (d->tokens == NULL || d->ones == NULL || d->positions == NULL) {
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    for (int64_t i = 0; i < d->room; i++) {
        d->tokens[i] = i < given ? strtoll(words[i], NULL, 10) : 0;
        d->ones[i] = 1;
        d->positions[i] = i;
    }
    return UIR_STATUS_OK;
}

int main(int argc, char **argv) {
    static decoder d;
    long wanted = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    if (wanted < 1 || wanted > 1 << 20) {
        fprintf(stderr, "usage: uir-generate MODEL.onnx|PACKAGE.uir COUNT TOKEN...\n");
        return uir_status_exit_code(UIR_STATUS_INVALID_ARGUMENT);
    }
    uir_status status = read_tokens(&d, argv + 3, argc - 3, wanted);
    if (status == UIR_STATUS_OK) {
        status = uir_context_create(NULL, &d.context);
    }
    if (status == UIR_STATUS_OK) {
        status = open_model(d.context, argv[1], &d.model);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_create(d.model, NULL, &d.session);
    }
    if (status == UIR_STATUS_OK) {
        status = make_caches(&d);
    }
    if (status == UIR_STATUS_OK) {
        status = generate(&d, argc - 3, wanted);
    }
    for (size_t i = 0; d.context != NULL && i < uir_context_message_count(d.context); i++) {
        fprintf(stderr, "uir-generate: %s\n", uir_context_get_message_text(d.context, i));
    }
    uir_session_destroy(d.session);
    for (size_t i = 0; i < d.cache_count; i++) {
        free(d.caches[i].data);
    }
    free(d.tokens);
    free(d.ones);
    free(d.positions);
    uir_model_destroy(d.model);
    uir_context_destroy(d.context);
    return uir_status_exit_code(status);
}
