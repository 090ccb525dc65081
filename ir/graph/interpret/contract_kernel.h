/* The inner loops of contractions, included once per element type with
 *   T         the element type (unsigned integers: products and sums modulo 2^bits)
 *   TYPED(x)  the name x for this type
 *   WIDTH     columns of a panel, two vectors of 16 bytes: a register block is ROWS x WIDTH
 * A panel is a packed block of WIDTH columns of operand B, row after row, so that a register block's loads are
 * consecutive. */

/* A row of a panel is two vectors: with four rows the accumulators fill half of the 16 registers that every machine
 * has. The block is written in vectors because the compiler does not vectorise it so; they are aligned as T. */
typedef T TYPED(vector) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));

/* sums[ROWS][WIDTH] = a[ROWS][k] * panel[k][WIDTH], summed over k in order. */
static void TYPED(block)(const T *a, int64_t a_stride, const T *panel, int64_t k, T *sums) {
    typedef TYPED(vector) vector;
    const T *a0 = a, *a1 = a + a_stride, *a2 = a1 + a_stride, *a3 = a2 + a_stride;
    vector s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0}, s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0};
    for (int64_t p = 0; p < k; p++) {
        const vector *row = (const vector *)(panel + p * WIDTH);
        vector left = row[0], right = row[1];
        s00 += a0[p] * left;
        s01 += a0[p] * right;
        s10 += a1[p] * left;
        s11 += a1[p] * right;
        s20 += a2[p] * left;
        s21 += a2[p] * right;
        s30 += a3[p] * left;
        s31 += a3[p] * right;
    }
    vector *target = (vector *)sums;
    target[0] = s00;
    target[1] = s01;
    target[2] = s10;
    target[3] = s11;
    target[4] = s20;
    target[5] = s21;
    target[6] = s30;
    target[7] = s31;
}

/* The same for a tail of 1 to 3 rows. */
static void TYPED(rest)(const T *restrict a, int64_t a_stride, int rows, const T *restrict panel, int64_t k,
                        T *restrict sums) {
    for (int i = 0; i < rows; i++) {
        T s[WIDTH] = {0};
        for (int64_t p = 0; p < k; p++) {
            T x = a[i * a_stride + p];
            for (int j = 0; j < WIDTH; j++) s[j] += x * panel[p * WIDTH + j];
        }
        for (int j = 0; j < WIDTH; j++) sums[i * WIDTH + j] = s[j];
    }
}

/* c = a * b for rows m0..m1-1 and `columns` columns, with b as packed panels of k rows. */
static void TYPED(multiply)(const T *a, int64_t m0, int64_t m1, int64_t k, const T *panels, int64_t columns, T *c,
                            int64_t c_stride) {
    for (int64_t k0 = 0; k0 < k || k0 == 0; k0 += DEPTH) {
        int64_t depth = k - k0 < DEPTH ? k - k0 : DEPTH;
        for (int64_t j0 = 0; j0 < columns; j0 += WIDTH) {
            const T *panel = panels + j0 * k + k0 * WIDTH;
            int64_t width = columns - j0 < WIDTH ? columns - j0 : WIDTH;
            for (int64_t i = m0; i < m1; i += ROWS) {
                T sums[ROWS * WIDTH];
                int rows = m1 - i < ROWS ? (int)(m1 - i) : ROWS;
                if (rows == ROWS)
                    TYPED(block)(a + i * k + k0, k, panel, depth, sums);
                else
                    TYPED(rest)(a + i * k + k0, k, rows, panel, depth, sums);
                for (int r = 0; r < rows; r++) {
                    T *target = c + (i + r) * c_stride + j0;
                    for (int64_t j = 0; j < width; j++)
                        target[j] = k0 ? (T)(target[j] + sums[r * WIDTH + j]) : sums[r * WIDTH + j];
                }
            }
        }
    }
}

/* Packs columns j0..j0+columns-1 of b [k][n] into panels; columns past the end are 0. */
static void TYPED(pack_matrix)(const contraction *t, int64_t batch, int64_t j0, int64_t columns, void *out_panels) {
    const T *b = (const T *)t->b + batch * t->b_stride;
    T *panels = out_panels;
    for (int64_t j = 0; j < columns; j += WIDTH) {
        int64_t width = columns - j < WIDTH ? columns - j : WIDTH;
        for (int64_t p = 0; p < t->k; p++) {
            const T *row = b + p * t->n + j0 + j;
            T *target = panels + j * t->k + p * WIDTH;
            for (int64_t l = 0; l < width; l++) target[l] = row[l];
            for (int64_t l = width; l < WIDTH; l++) target[l] = 0;
        }
    }
}

/* Stores elements of one row of b (one channel and kernel position) for `count` output positions from column j on. */
static void TYPED(put_run)(T *panels, int64_t k, int64_t p, int64_t j, int64_t count, const T *source, int64_t stride) {
    while (count > 0) {
        int64_t lane = j % WIDTH, n = WIDTH - lane < count ? WIDTH - lane : count;
        T *target = panels + (j - lane) * k + p * WIDTH + lane;
        for (int64_t l = 0; l < n; l++) target[l] = source[l * stride];
        source += n * stride;
        j += n;
        count -= n;
    }
}

/* im2col: packs the windows of output positions j0..j0+columns-1 into panels. */
static void TYPED(pack_windows)(const contraction *t, int64_t batch, int64_t j0, int64_t columns, void *out_panels) {
    const window_map *map = t->map;
    T *panels = out_panels;
    int64_t padded = (columns + WIDTH - 1) / WIDTH * WIDTH;
    memset(panels, 0, (size_t)(padded * t->k) * sizeof(T));
    const T *image = (const T *)t->b + batch * t->b_stride;
    for (int64_t j = 0; j < columns;) {
        int64_t row = (j0 + j) / map->row_length, first = (j0 + j) % map->row_length;
        int64_t count = map->row_length - first < columns - j ? map->row_length - first : columns - j;
        for (int64_t w = 0; w < map->window_size; w++) {
            row_view view;
            if (!view_row(map, row, w, first, first + count, &view)) continue;
            const T *source = image + view.source;
            for (int64_t channel = 0; channel < map->channels; channel++, source += map->image_size) TYPED(put_run)
            (panels, t->k, channel * map->window_size + w, j + view.first - first, view.count, source, map->row_stride);
        }
        j += count;
    }
}

/* A small-M matrix product without packing: rows m0..m1-1, columns j0... */
static void TYPED(direct_matrix)(const contraction *t, int64_t batch, int64_t m0, int64_t m1, int64_t j0,
                                 int64_t columns) {
    const T *b = (const T *)t->b + batch * t->b_stride + j0;
    for (int64_t i = m0; i < m1; i++) {
        const T *a = (const T *)t->a + batch % t->a_batches * t->a_stride + i * t->k;
        T *c = (T *)t->c + batch * t->c_stride + i * t->n + j0;
        for (int64_t k0 = 0; k0 < t->k; k0 += DEPTH) {
            T sums[DIRECT_COLUMNS] = {0};
            int64_t end = k0 + DEPTH < t->k ? k0 + DEPTH : t->k;
            for (int64_t p = k0; p < end; p++) {
                T x = a[p];
                const T *row = b + p * t->n;
                for (int64_t j = 0; j < columns; j++) sums[j] += x * row[j];
            }
            for (int64_t j = 0; j < columns; j++) c[j] += sums[j];
        }
    }
}

/* Groups of few filters (depthwise: one), without im2col: rows of output positions, one kernel position at a time. */
static void TYPED(direct_windows)(const contraction *t, int64_t batch, int64_t m0, int64_t m1, int64_t j0,
                                  int64_t columns) {
    const window_map *map = t->map;
    const T *image = (const T *)t->b + batch * t->b_stride;
    for (int64_t i = m0; i < m1; i++) {
        const T *filter = (const T *)t->a + batch % t->a_batches * t->a_stride + i * t->k;
        T *c = (T *)t->c + batch * t->c_stride + i * t->n;
        for (int64_t j = j0; j < j0 + columns;) {
            int64_t row = j / map->row_length, first = j % map->row_length;
            int64_t count = map->row_length - first < j0 + columns - j ? map->row_length - first : j0 + columns - j;
            for (int64_t w = 0; w < map->window_size; w++) {
                row_view view;
                if (!view_row(map, row, w, first, first + count, &view)) continue;
                T *restrict target = c + j + view.first - first;
                for (int64_t channel = 0; channel < map->channels; channel++) {
                    const T *restrict source = image + view.source + channel * map->image_size;
                    T x = filter[channel * map->window_size + w];
                    if (map->row_stride == 1)
                        for (int64_t l = 0; l < view.count; l++) target[l] += x * source[l];
                    else
                        for (int64_t l = 0; l < view.count; l++) target[l] += x * source[l * map->row_stride];
                }
            }
            j += count;
        }
    }
}

static void TYPED(run)(const contraction *t, int64_t batch, int64_t m0, int64_t m1, int64_t j0, int64_t columns,
                       void *scratch) {
    if (t->direct) {
        if (t->map)
            TYPED(direct_windows)(t, batch, m0, m1, j0, columns);
        else
            TYPED(direct_matrix)(t, batch, m0, m1, j0, columns);
        return;
    }
    if (t->map)
        TYPED(pack_windows)(t, batch, j0, columns, scratch);
    else
        TYPED(pack_matrix)(t, batch, j0, columns, scratch);
    TYPED(multiply)
    ((const T *)t->a + batch % t->a_batches * t->a_stride, m0, m1, t->k, scratch, columns,
     (T *)t->c + batch * t->c_stride + j0, t->n);
}

#undef T
#undef TYPED
#undef WIDTH
