/* Classifies pictures of digits: an application of the C API, and what `script/run` shows.
 *
 *   uir-digits MODEL.onnx PICTURE.png...
 *
 * In: a model that takes one u8 picture [batch, height, width, channels] and gives the probabilities of its classes
 * [batch, classes]; pictures of that size. Out: each picture as text, the most probable class, the probabilities, and
 * how long each step took. Exit codes are those of uir-run. */
#define _POSIX_C_SOURCE 200809L
#include <uir/tools.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void print_messages(const uir_context *context) {
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        fprintf(stderr, "uir-digits: %s\n", uir_context_get_message_text(context, i));
    }
}

/* One text line of a picture [height, width, channels]: two characters a pixel, darker ink for brighter values. */
static void print_picture_row(const uir_value *picture, int64_t row) {
    static const char ink[] = " .:-=+*#%@";
    const int64_t *shape = uir_value_get_shape(picture);
    for (int64_t x = 0; x < shape[1]; x++) {
        double value = uir_value_get_double(picture, (uint64_t)((row * shape[1] + x) * shape[2]));
        char c = ink[(size_t)(value * (double)(sizeof ink - 2) / 255 + 0.5)];
        putchar(c);
        putchar(c);
    }
}

/* The picture on the left; on the right the answer and the three greatest probabilities. */
static void print_answer(const char *path, const uir_value *picture, const uir_value *probabilities) {
    enum { SHOWN = 3, BAR = 30 };
    uint64_t classes = uir_value_get_element_count(probabilities);
    uint64_t best[SHOWN];
    int shown = 0;
    for (uint64_t i = 0; i < classes; i++) {
        double p = uir_value_get_double(probabilities, i);
        int at = shown;
        while (at > 0 && uir_value_get_double(probabilities, best[at - 1]) < p) {
            at--;
        }
        if (at == SHOWN) {
            continue;
        }
        shown += shown < SHOWN;
        memmove(&best[at + 1], &best[at], (size_t)(shown - 1 - at) * sizeof best[0]);
        best[at] = i;
    }
    printf("%s\n", path);
    for (int64_t row = 0; row < uir_value_get_shape(picture)[0]; row++) {
        fputs("  |", stdout);
        print_picture_row(picture, row);
        fputs("|", stdout);
        int64_t line = row - 3;
        if (row == 1 && shown > 0) {
            printf("   answer: %d", (int)best[0]);
        }
        if (line >= 0 && line < shown) {
            double p = uir_value_get_double(probabilities, best[line]);
            printf("   %d  %6.2f %%  ", (int)best[line], 100 * p);
            for (int i = 0; i < (int)(p * BAR + 0.5); i++) {
                putchar('#');
            }
        }
        putchar('\n');
    }
    putchar('\n');
}

/* Loads one picture and runs the model on it alone; the time it took goes to the sums. */
static uir_status classify(uir_context *context, uir_session *session, const char *path, double *read_ms,
                           double *run_ms) {
    uir_value *picture = NULL;
    uir_value *input = NULL;
    double start = now_ms();
    uir_status status = uir_value_load_file(context, path, NULL, UIR_VALUE_TENSOR, &picture);
    if (status == UIR_STATUS_OK && (uir_value_get_dtype(picture) != UIR_DTYPE_U8 || uir_value_get_rank(picture) != 3)) {
        fprintf(stderr, "uir-digits: '%s' is not a picture of 8 bits a channel\n", path);
        status = UIR_STATUS_BAD_DATA;
    }
    if (status == UIR_STATUS_OK) {
        const int64_t *shape = uir_value_get_shape(picture);
        const int64_t batch_of_one[4] = {1, shape[0], shape[1], shape[2]};
        status = uir_value_create_tensor_borrowed(context, UIR_DTYPE_U8, 4, batch_of_one, uir_value_get_data(picture),
                                                  uir_value_get_byte_size(picture), &input);
    }
    double loaded = now_ms();
    *read_ms += loaded - start;
    if (status == UIR_STATUS_OK) {
        status = uir_session_set_input(session, 0, input);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_run(session);
    }
    *run_ms += now_ms() - loaded;
    uir_value *probabilities = NULL;
    if (status == UIR_STATUS_OK) {
        status = uir_session_get_output(session, 0, &probabilities);
    }
    if (status == UIR_STATUS_OK) {
        print_answer(path, picture, probabilities);
    }
    uir_value_destroy(input);
    uir_value_destroy(picture);
    return status;
}

static void print_times(uir_model *model, const uir_session *session, int pictures, double load_ms, double read_ms,
                        double run_ms) {
    uir_model_info info;
    uir_run_statistics run;
    uir_node_statistics node;
    UIR_INIT(&info);
    UIR_INIT(&run);
    UIR_INIT(&node);
    if (uir_model_get_info(model, &info) != UIR_STATUS_OK ||
        uir_session_get_statistics(session, &run) != UIR_STATUS_OK) {
        return;
    }
    printf("%-28s %8.3f ms  %u ONNX nodes, opset %d\n", "read the model", info.load_ms, info.onnx_node_count,
           (int)info.opset);
    printf("%-28s %8.3f ms  %u primitives\n", "decompose, fuse and lower", info.compile_ms, info.primitive_count);
    printf("%-28s %8.3f ms\n", "load in all", load_ms);
    printf("%-28s %8.3f ms  each of %d\n", "read a picture", read_ms / pictures, pictures);
    printf("%-28s %8.3f ms  each, on the %s\n", "classify it", run_ms / pictures, run.ran_on);
    printf("\nThe last run, node by node:\n");
    bool more = uir_session_get_node_statistics(session, 0, &node) == UIR_STATUS_OK;
    for (size_t i = 0; more;) { /* an ONNX node runs as several primitives, one after the other */
        uir_node_statistics first = node;
        char primitives[96] = "";
        double ms = 0;
        for (size_t used = 0; more && strcmp(node.name, first.name) == 0;) {
            if (used < sizeof primitives) {
                used += (size_t)snprintf(primitives + used, sizeof primitives - used, " %s", node.kernel);
            }
            ms += node.ms;
            more = uir_session_get_node_statistics(session, ++i, &node) == UIR_STATUS_OK;
        }
        printf("%-28s %8.3f ms  %s:%s\n", first.name, ms, first.op, primitives);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: uir-digits MODEL.onnx PICTURE.png...\n");
        return uir_status_exit_code(UIR_STATUS_INVALID_ARGUMENT);
    }
    uir_context *context = NULL;
    uir_model *model = NULL;
    uir_session *session = NULL;
    double read_ms = 0, run_ms = 0;
    double start = now_ms();
    uir_status status = uir_context_create(NULL, &context);
    if (status == UIR_STATUS_OK) {
        status = uir_model_load_file(context, argv[1], NULL, &model);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_session_create(model, NULL, &session);
    }
    double load_ms = now_ms() - start;
    for (int i = 2; i < argc && status == UIR_STATUS_OK; i++) {
        status = classify(context, session, argv[i], &read_ms, &run_ms);
    }
    if (status == UIR_STATUS_OK) {
        print_times(model, session, argc - 2, load_ms, read_ms, run_ms);
    }
    if (context != NULL) {
        print_messages(context);
    }
    uir_session_destroy(session);
    uir_model_destroy(model);
    uir_context_destroy(context);
    return uir_status_exit_code(status);
}
