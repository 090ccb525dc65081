/* Seeks a combination of facts that refutes the goal by the simplex method, and checks it exactly in integers. */
#include "ir/kernel/verify/igraph_prove.h"

#include <math.h>
#include <string.h>

#define MAX_PIVOTS 260
#define MAX_SCALE  (1 << 24)
#define TOLERANCE  1e-9
#define ROUNDING   2e-10 /* of a weight, which many roundings made; what it is taken for is checked exactly */

__extension__ typedef __int128 wide;

/* to += factor * from, of two rows: where most of a verification's time goes. */
static void add_row(double *restrict to, const double *restrict from, double factor, uint32_t count) {
    for (uint32_t c = 0; c < count; c++) to[c] += factor * from[c];
}

static void pivot(uir_terms *t, uir_prover *p, uint32_t row, uint32_t column) {
    uint32_t width = p->column_count;
    double *line = p->table[row], scale = 1 / line[column];
    for (uint32_t c = 0; c <= width; c++) line[c] *= scale;
    line[column] = 1;
    for (uint32_t r = 0; r <= p->row_count; r++) {
        double *other = p->table[r], factor = other[column];
        if (r == row || factor == 0) continue;
        add_row(other, line, -factor, width + 1);
        other[column] = 0;
    }
    p->basis[row] = column;
    t->effort += (uint64_t)p->row_count * width;
}

/* Scales rows and columns so that their entries come near 1. A row's scale changes nothing, a column's is undone later.
 */
static void balance(uir_prover *p) {
    uint32_t width = p->column_count;
    for (uint32_t c = 0; c < width; c++) p->scale[c] = 1;
    for (int round = 0; round < 4; round++) {
        bool rows = round % 2 == 0;
        for (uint32_t i = 0; i < (rows ? p->row_count : width); i++) {
            double least = 0, most = 0;
            for (uint32_t k = 0; k < (rows ? width : p->row_count); k++) {
                double x = fabs(rows ? p->table[i][k] : p->table[k][i]);
                if (x == 0) continue;
                most = x > most ? x : most;
                least = least == 0 || x < least ? x : least;
            }
            if (most == 0) continue;
            double scale = 1 / sqrt(least * most);
            if (scale > 0.5 && scale < 2) continue;
            for (uint32_t k = 0; k < (rows ? width : p->row_count); k++) {
                if (rows)
                    p->table[i][k] *= scale;
                else
                    p->table[k][i] *= scale;
            }
            if (!rows) p->scale[i] *= scale;
        }
    }
}

static void fill_table(uir_prover *p) {
    uint32_t width = p->column_count;
    for (uint32_t r = 0; r <= p->row_count; r++) memset(p->table[r], 0, (width + 1) * sizeof(double));
    for (uint32_t c = 0; c < width; c++)
        for (uint32_t i = p->column_start[c]; i < p->column_start[c + 1]; i++)
            p->table[p->entries[i].row][c] =
                (double)(p->entries[i].row == 0 ? -p->entries[i].coefficient : p->entries[i].coefficient);
    p->table[0][width] = 1;
    balance(p);
    /* What remains to be brought to 0: the constant row alone has a right side. */
    for (uint32_t r = 0; r < p->row_count; r++) p->basis[r] = UINT32_MAX;
}

/* Rows with right side 0 take any column as basis; of the columns that improve, the first (Bland) or the best. */
bool uir_prover_solve(uir_terms *t, uir_prover *p) {
    uint32_t width = p->column_count, rows = p->row_count;
    fill_table(p);
    double small = TOLERANCE * p->table[0][width];
    for (uint32_t step = 0; step < MAX_PIVOTS; step++) {
        /* The sum of rows that still have an artificial basis says how a column reduces infeasibility. */
        double *sum = p->table[rows];
        memset(sum, 0, (width + 1) * sizeof(double));
        for (uint32_t r = 0; r < rows; r++) {
            if (p->basis[r] != UINT32_MAX) continue;
            add_row(sum, p->table[r], 1, width + 1);
        }
        t->effort += (uint64_t)rows * width / 2;
        if (sum[width] < small) return true;
        uint32_t column = UINT32_MAX;
        for (uint32_t c = 0; c < width; c++)
            if (sum[c] > 1e-7 && (column == UINT32_MAX || (step < 60 && sum[c] > sum[column]))) column = c;
        if (column == UINT32_MAX) return false;
        uint32_t row = UINT32_MAX;
        double best = 0;
        for (uint32_t r = 0; r < rows; r++) {
            double a = p->table[r][column], b = p->table[r][width];
            bool free_row = p->basis[r] == UINT32_MAX && fabs(b) < small && fabs(a) > 1e-7;
            if (!free_row && a <= 1e-7) continue;
            double ratio = free_row ? -1 : b / a;
            if (row == UINT32_MAX || ratio < best - 1e-12 ||
                (ratio < best + 1e-12 && p->basis[r] != UINT32_MAX && p->basis[row] != UINT32_MAX &&
                 p->basis[r] < p->basis[row])) {
                row = r;
                best = ratio;
            }
        }
        if (row == UINT32_MAX) return false;
        pivot(t, p, row, column);
    }
    return false;
}

/* Is the combination, times a whole number, one of whole numbers that gives a negative constant and nothing else? */
static bool certify_scaled(const uir_prover *p, const double *weights, double scale) {
    wide totals[UIR_PROVER_MAX_ROWS] = {0};
    for (uint32_t r = 0; r < p->row_count; r++) {
        if (p->basis[r] == UINT32_MAX || weights[r] == 0) continue;
        double scaled = weights[r] * scale, whole = nearbyint(scaled);
        if (fabs(scaled - whole) > 1e-5 + ROUNDING * scaled || whole < 0 || whole > 1e12) return false;
        for (uint32_t i = p->column_start[p->basis[r]]; i < p->column_start[p->basis[r] + 1]; i++)
            totals[p->entries[i].row] += (wide)p->entries[i].coefficient * (int64_t)whole;
    }
    for (uint32_t r = 1; r < p->row_count; r++)
        if (totals[r] != 0) return false;
    return totals[0] < 0;
}

/* The least whole number that makes x nearly whole: the denominator of the first convergent of x's continued fraction
 * that is near enough. 0 when there is none that is small. */
static int64_t find_denominator(double x) {
    int64_t before = 0, denominator = 1;
    double rest = x;
    while (denominator <= MAX_SCALE) {
        double off = x * (double)denominator;
        if (fabs(off - nearbyint(off)) < 1e-6 + ROUNDING * off) return denominator;
        double fraction = rest - floor(rest);
        if (fraction < 1e-9) return 0;
        rest = 1 / fraction;
        if (rest > (double)MAX_SCALE) return 0;
        int64_t next = (int64_t)floor(rest) * denominator + before;
        before = denominator;
        denominator = next;
    }
    return 0;
}

/* The number by which all weights, which are multiples of `unit` but for a denominator, become whole; 0: none found. */
static double find_scale(const uir_prover *p, const double *weights, double unit) {
    int64_t scale = 1;
    for (uint32_t r = 0; r < p->row_count; r++) {
        if (weights[r] == 0) continue;
        int64_t denominator = find_denominator(weights[r] / unit * (double)scale);
        if (denominator == 0 || denominator > MAX_SCALE / scale) return 0;
        scale *= denominator;
    }
    return (double)scale / unit;
}

bool uir_prover_certify(uir_prover *p) {
    double weights[UIR_PROVER_MAX_ROWS], least = 0;
    double most = 0;
    for (uint32_t r = 0; r < p->row_count; r++)
        if (p->basis[r] != UINT32_MAX && p->table[r][p->column_count] > most) most = p->table[r][p->column_count];
    for (uint32_t r = 0; r < p->row_count; r++) {
        bool used = p->basis[r] != UINT32_MAX && p->table[r][p->column_count] > 1e-8 * most;
        weights[r] = used ? p->table[r][p->column_count] * p->scale[p->basis[r]] : 0;
        if (weights[r] > 0 && (least == 0 || weights[r] < least)) least = weights[r];
    }
    if (least == 0) return false;
    double by_least = find_scale(p, weights, least), by_one = find_scale(p, weights, 1);
    return (by_least > 0 && certify_scaled(p, weights, by_least)) || (by_one > 0 && certify_scaled(p, weights, by_one));
}
