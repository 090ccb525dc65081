/* Every element where that is cheap, else a spread of them with all corners. */
#include "references.h"

#include <math.h>

static double worse(double worst, double got, double wanted, double scale) {
    double error = fabs(got - wanted) / scale;
    return error > worst || isnan(error) ? error : worst;
}

double check_product(const bench_case *c, const float *const *inputs, const float *output) {
    int64_t m = c->dims[0], n = c->dims[1], k = c->dims[2], total = m * n, step = total > 5000 ? total / 5000 | 1 : 1;
    double worst = 0;
    for (int64_t e = 0; e < total; e += e + step < total || e == total - 1 ? step : total - 1 - e) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
            double term = (double)inputs[0][e / n * k + p] * (double)inputs[1][p * n + e % n];
            sum += term;
            size += fabs(term);
        }
        worst = worse(worst, (double)output[e], sum, size + 1e-30);
    }
    return worst;
}

double check_convolution(const bench_case *c, const float *const *inputs, const float *output) {
    int64_t h = c->dims[1], w = c->dims[2], channels = c->dims[3], oc = c->dims[4];
    double worst = 0;
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < w; x++) {
            for (int64_t o = (x + y) % 5; o < oc; o += 5) {
                double sum = 0, size = 1e-30;
                for (int64_t tap = 0; tap < 9; tap++) {
                    int64_t i = y - 1 + tap / 3, j = x - 1 + tap % 3;
                    if (i < 0 || i >= h || j < 0 || j >= w) continue;
                    for (int64_t k = 0; k < channels; k++) {
                        double term = (double)inputs[0][(i * w + j) * channels + k] *
                                      (double)inputs[1][(tap * channels + k) * oc + o];
                        sum += term;
                        size += fabs(term);
                    }
                }
                worst = worse(worst, (double)output[(y * w + x) * oc + o], sum, size);
            }
        }
    }
    return worst;
}

double check_softmax(const bench_case *c, const float *const *inputs, const float *output) {
    int64_t m = c->dims[0], n = c->dims[1];
    double worst = 0;
    for (int64_t r = 0; r < m; r++) {
        const float *x = inputs[0] + r * n;
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) most = fmax(most, (double)x[j]);
        for (int64_t j = 0; j < n; j++) sum += exp((double)x[j] - most);
        for (int64_t j = 0; j < n; j++) {
            double wanted = exp((double)x[j] - most) / sum;
            worst = worse(worst, (double)output[r * n + j], wanted, wanted + 1e-30);
        }
    }
    return worst;
}

double check_layer_norm(const bench_case *c, const float *const *inputs, const float *output) {
    int64_t m = c->dims[0], n = c->dims[1];
    double worst = 0;
    for (int64_t r = 0; r < m; r++) {
        const float *x = inputs[0] + r * n;
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; j++) mean += (double)x[j];
        mean /= (double)n;
        for (int64_t j = 0; j < n; j++) variance += ((double)x[j] - mean) * ((double)x[j] - mean);
        double scale = 1 / sqrt(variance / (double)n + 1e-5);
        for (int64_t j = 0; j < n; j++) {
            double wanted = ((double)x[j] - mean) * scale * (double)inputs[1][j] + (double)inputs[2][j];
            worst = worse(worst, (double)output[r * n + j], wanted, 1 + fabs(wanted));
        }
    }
    return worst;
}

double check_chain(const bench_case *c, const float *const *inputs, const float *output) {
    double worst = 0;
    for (int64_t i = 0; i < c->dims[0]; i++) {
        double a = fmin(fabs((double)inputs[0][i] * 1.5 + 0.25), 6);
        double wanted = fmax(a * a - 1 - 2, -1) * 0.125;
        worst = worse(worst, (double)output[i], wanted, 1 + fabs(wanted));
    }
    return worst;
}
