/* Depthwise convolutions and pools as a person would write them, over vectors of channels: what the kernels made from
 * ONNX are held against. The image has its channels innermost and its padding around it; four pixels of a line share the
 * weights of a tap and each other's elements. Compiled for the machine at hand by convolutions.py.
 *
 *   forms KIND KERNEL STRIDE CHANNELS LINES PIXELS MILLISECONDS      KIND: depthwise, max, average; sizes of the result
 * Prints the median milliseconds of a call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { PIXELS = 4, MOST_CALLS = 100000 };
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float))));

typedef struct form {
    int64_t channels, lines, pixels, width; /* width: of the padded image's line */
    const float *image, *weights;
    float *result;
} form;

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

INLINE vector load(const float *p) {
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vector greater(vector a, vector b) {
    mask m = a > b;
    return (vector)((m & (mask)a) | (~m & (mask)b));
}

INLINE void run(const form *f, const int kind, const int kernel, const int stride) {
    for (int64_t line = 0; line < f->lines; line++) {
        for (int64_t pixel = 0; pixel < f->pixels; pixel += PIXELS) {
            for (int64_t c = 0; c < f->channels; c += LANES) {
                vector sums[PIXELS];
                UNROLL for (int p = 0; p < PIXELS; p++) sums[p] = (vector){0} - (kind == 1 ? 1e30f : 0);
                UNROLL for (int i = 0; i < kernel; i++) {
                    const float *row = f->image + ((line * stride + i) * f->width + pixel * stride) * f->channels + c;
                    UNROLL for (int j = 0; j < kernel; j++) {
                        vector w = kind == 0 ? load(f->weights + (i * kernel + j) * f->channels + c) : (vector){0};
                        UNROLL for (int p = 0; p < PIXELS; p++) {
                            vector x = load(row + (p * stride + j) * f->channels);
                            sums[p] = kind == 0 ? sums[p] + x * w : kind == 1 ? greater(sums[p], x) : sums[p] + x;
                        }
                    }
                }
                UNROLL for (int p = 0; p < PIXELS; p++) {
                    vector y = kind == 2 ? sums[p] * (1.0f / (float)(kernel * kernel)) : sums[p];
                    memcpy(f->result + (line * f->pixels + pixel + p) * f->channels + c, &y, sizeof y);
                }
            }
        }
    }
}

#define FORM(kind, kernel, stride)                                                                                     \
    static __attribute__((noinline)) void run_##kind##_##kernel##_##stride(const form *f) {                            \
        run(f, kind, kernel, stride);                                                                                  \
    }
#define FORMS(kind) FORM(kind, 2, 2) FORM(kind, 3, 1) FORM(kind, 3, 2) FORM(kind, 5, 1) FORM(kind, 5, 2) FORM(kind, 7, 1)
FORMS(0)
FORMS(1)
FORMS(2)
#define ROW(kind, kernel, stride) {kind, kernel, stride, run_##kind##_##kernel##_##stride}
#define ROWS(kind) ROW(kind, 2, 2), ROW(kind, 3, 1), ROW(kind, 3, 2), ROW(kind, 5, 1), ROW(kind, 5, 2), ROW(kind, 7, 1)
static const struct {
    int kind, kernel, stride;
    void (*run)(const form *f);
} rows[] = {ROWS(0), ROWS(1), ROWS(2)};

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static float *make(int64_t count) {
    float *data = aligned_alloc(64, (size_t)(count * 4 + 4096) / 64 * 64);
    for (int64_t i = 0; data && i < count; i++) data[i] = (float)(i % 17) / 16.0f - 0.5f;
    return data;
}

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int main(int count, char **words) {
    static const char *const kinds[] = {"depthwise", "max", "average"};
    static int64_t times[MOST_CALLS];
    if (count != 8) return 2;
    int kind = -1, kernel = atoi(words[2]), stride = atoi(words[3]), calls = 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(words[1], kinds[i]) == 0) kind = i;
    form f = {.channels = atoll(words[4]), .lines = atoll(words[5]), .pixels = atoll(words[6])};
    if (f.channels % LANES || f.pixels % PIXELS || f.channels < 1 || f.lines < 1 || f.pixels < 1) return 2;
    f.width = (f.pixels - 1) * stride + kernel;
    f.image = make(((f.lines - 1) * stride + kernel) * f.width * f.channels);
    f.weights = make(kernel * kernel * f.channels);
    f.result = make(f.lines * f.pixels * f.channels);
    if (!f.image || !f.weights || !f.result) return 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].kind != kind || rows[i].kernel != kernel || rows[i].stride != stride) continue;
        int64_t end = now() + atoll(words[7]) * 1000000;
        while (calls < MOST_CALLS && (calls < 3 || now() < end)) {
            int64_t start = now();
            rows[i].run(&f);
            times[calls++] = now() - start;
        }
    }
    if (!calls) return 2;
    qsort(times, (size_t)calls, sizeof *times, by_time);
    printf("%.6f\n", (double)times[calls / 2] / 1e6);
    return 0;
}
