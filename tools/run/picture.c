/* A picture becomes a tensor: channels chosen, bilinear resize, (x * scale - mean) / std, layout. */
#include "picture.h"
#include "printable.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 4 };

typedef struct preprocessing {
    bool grey, channels_last, has_layout;
    double width, height; /* 0: the picture's or the input's */
    double scale;
    double mean[MAX_CHANNELS], deviation[MAX_CHANNELS];
} preprocessing;

bool picture_is_path(const char *path) {
    static const char *const endings[] = {".png", ".jpg",  ".jpeg", ".ppm", ".pgm", ".bmp",
                                          ".tif", ".tiff", ".webp", ".jp2", ".j2k"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t m = strlen(endings[i]);
        if (n >= m && !strcmp(path + n - m, endings[i])) return true;
    }
    return false;
}

/* "A/B/C" into up to MAX_CHANNELS numbers; one number serves all channels. */
static bool parse_numbers(const char *text, size_t length, char separator, double *out_values, int *out_count) {
    char copy[128];
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *out_count = 0;
    for (char *at = copy;;) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || *out_count == MAX_CHANNELS) return false;
        out_values[(*out_count)++] = value;
        if (!*end) break;
        if (*end != separator) return false;
        at = end + 1;
    }
    for (int i = *out_count; i < MAX_CHANNELS; i++) out_values[i] = out_values[0];
    return true;
}

static bool parse_item(const char *item, size_t length, preprocessing *p) {
    const char *equals = memchr(item, '=', length);
    size_t name = equals ? (size_t)(equals - item) : length;
    const char *value = equals ? equals + 1 : item + length;
    size_t value_length = length - (size_t)(value - item);
    double numbers[MAX_CHANNELS];
    int count;
#define IS(word) (name == strlen(word) && !memcmp(item, word, name))
    if (IS("grey") && !equals) return p->grey = true;
    if (IS("layout") && value_length == 4) {
        p->has_layout = true;
        p->channels_last = !memcmp(value, "nhwc", 4);
        return p->channels_last || !memcmp(value, "nchw", 4);
    }
    if (IS("mean")) return parse_numbers(value, value_length, '/', p->mean, &count);
    if (IS("std")) return parse_numbers(value, value_length, '/', p->deviation, &count);
    if (IS("scale") && parse_numbers(value, value_length, '/', numbers, &count) && count <= 2) {
        p->scale = count == 1 ? numbers[0] : numbers[0] / numbers[1];
        return p->scale - p->scale == 0; /* finite */
    }
    if (IS("size") && parse_numbers(value, value_length, 'x', numbers, &count) && count == 2) {
        p->width = numbers[0];
        p->height = numbers[1];
        return p->width >= 1 && p->height >= 1 && p->width <= 32768 && p->height <= 32768;
    }
#undef IS
    return false;
}

static uir_status parse_spec(const char *spec, preprocessing *p) {
    *p = (preprocessing){.scale = 1};
    for (int i = 0; i < MAX_CHANNELS; i++) p->deviation[i] = 1;
    while (spec && *spec) {
        size_t n = strcspn(spec, ",");
        if (!parse_item(spec, n, p)) {
            complain(
                "give grey, size=WxH, scale=X, mean=A/B/C, std=A/B/C, layout=nchw or layout=nhwc, separated by commas",
                "--preprocess: cannot read '%.*s'", (int)n, spec);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        spec += n + (spec[n] == ',');
    }
    return UIR_STATUS_OK;
}

typedef struct source_picture {
    const uint8_t *pixels;
    int64_t height, width, channels;
    bool grey;
} source_picture;

static double pixel(const source_picture *s, int64_t y, int64_t x, int64_t channel) {
    const uint8_t *p = s->pixels + (y * s->width + x) * s->channels;
    if (s->grey && s->channels >= 3) return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]; /* ITU-R BT.601 luma */
    return p[channel < s->channels ? channel : s->channels - 1];
}

/* Bilinear with half-pixel centres. */
static double sample(const source_picture *s, double y, double x, int64_t channel) {
    double fy = y < 0 ? 0 : y > (double)(s->height - 1) ? (double)(s->height - 1) : y;
    double fx = x < 0 ? 0 : x > (double)(s->width - 1) ? (double)(s->width - 1) : x;
    int64_t y0 = (int64_t)fy, x0 = (int64_t)fx;
    int64_t y1 = y0 + 1 < s->height ? y0 + 1 : y0, x1 = x0 + 1 < s->width ? x0 + 1 : x0;
    double wy = fy - (double)y0, wx = fx - (double)x0;
    double top = pixel(s, y0, x0, channel) * (1 - wx) + pixel(s, y0, x1, channel) * wx;
    double bottom = pixel(s, y1, x0, channel) * (1 - wx) + pixel(s, y1, x1, channel) * wx;
    return top * (1 - wy) + bottom * wy;
}

static bool store(uir_value *value, uint64_t index, double v) {
    void *data = uir_value_get_data(value);
    switch (uir_value_get_dtype(value)) {
    case UIR_DTYPE_F32:
        ((float *)data)[index] = (float)v;
        return true;
    case UIR_DTYPE_F64:
        ((double *)data)[index] = v;
        return true;
    case UIR_DTYPE_U8:
        ((uint8_t *)data)[index] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
        return true;
    default:
        return false;
    }
}

/* The port's axes as the last of four: batch, then channels, height, width or height, width, channels. */
typedef struct picture_axes {
    const uir_port *port;
    const int64_t *dims; /* four */
    int first;           /* the port's first axis */
} picture_axes;

static bool is_free(const picture_axes *a, int axis) {
    return axis >= a->first && a->port->dims[axis - a->first] < 0;
}

static bool is_channels(const picture_axes *a, int axis) {
    return !is_free(a, axis) && (a->dims[axis] == 1 || a->dims[axis] == 3 || a->dims[axis] == 4);
}

/* What --preprocess says of layout and size is what the input can have. */
static uir_status check_spec(const picture_axes *a, const preprocessing *p) {
    int c = p->channels_last ? 3 : 1, other = p->channels_last ? 1 : 3, h = p->channels_last ? 1 : 2;
    const double wanted[] = {p->height, p->width};
    bool has_channels = a->first <= 1;
    bool contradicted = has_channels && ((!is_free(a, c) && !is_channels(a, c)) ||
                                         (is_free(a, c) && is_channels(a, other) && a->dims[other] != 1));
    if (contradicted && p->has_layout) {
        complain(p->channels_last ? "give layout=nchw for channels in the first axis after the batch"
                                  : "give layout=nhwc for channels in the last axis",
                 "--preprocess layout=%s: input '%s' does not have its channels in axis %d",
                 p->channels_last ? "nhwc" : "nchw", a->port->name, c - a->first);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    if (contradicted) {
        complain("a picture has 1, 3 or 4 channels: give the input as .npy",
                 "input '%s' cannot be a picture: %lld channels in axis %d", a->port->name, (long long)a->dims[c],
                 c - a->first);
        return UIR_STATUS_BAD_DATA;
    }
    for (int i = 0; i < 2; i++) {
        if (wanted[i] <= 0 || is_free(a, h + i) || a->dims[h + i] == (int64_t)wanted[i]) continue;
        complain("leave out size: the picture is resized to the input",
                 "--preprocess size=%gx%g: input '%s' has a %s of %lld", p->width, p->height, a->port->name,
                 i ? "width" : "height", (long long)a->dims[h + i]);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    return UIR_STATUS_OK;
}

uir_status picture_prepare(uir_context *context, uir_value **value, const uir_port *port, const int64_t *dims,
                           uint32_t rank, const char *spec, char out_made[MADE_ROOM]) {
    preprocessing p;
    uir_status status = parse_spec(spec, &p);
    if (status != UIR_STATUS_OK) return status;
    if (uir_value_get_rank(*value) != 3 || uir_value_get_dtype(*value) != UIR_DTYPE_U8 || (rank != 4 && rank != 3)) {
        complain("a picture has channels, a height and a width, with a batch or without: give the input as .npy",
                 "input '%s' cannot be a picture: its rank is %u", port->name, rank);
        return UIR_STATUS_BAD_DATA;
    }
    const int64_t *shape = uir_value_get_shape(*value);
    source_picture source = {uir_value_get_data(*value), shape[0], shape[1], shape[2], p.grey};
    if (source.height < 1 || source.width < 1) return UIR_STATUS_BAD_DATA;
    int64_t out[4] = {1, 1, 1, 1};
    memcpy(out + (4 - rank), dims, rank * sizeof *dims);
    picture_axes axes = {port, out, 4 - (int)rank};
    /* Without a word about the layout: the axis that is a usual number of channels says it. */
    if (!p.has_layout) p.channels_last = is_channels(&axes, 3) && !is_channels(&axes, 1);
    status = check_spec(&axes, &p);
    if (status != UIR_STATUS_OK) return status;
    int c = p.channels_last ? 3 : 1, h = p.channels_last ? 1 : 2, w = h + 1;
    if (is_free(&axes, h)) out[h] = p.height > 0 ? (int64_t)p.height : source.height;
    if (is_free(&axes, w)) out[w] = p.width > 0 ? (int64_t)p.width : source.width;
    if (is_free(&axes, c)) out[c] = p.grey ? 1 : source.channels;
    if (out[c] == 1 && source.channels > 1) source.grey = true;
    uir_value *result = NULL;
    status = uir_value_create_tensor(context, port->dtype, rank, out + (4 - rank), &result);
    if (status != UIR_STATUS_OK) return status;
    for (int64_t n = 0; n < out[0]; n++) {
        for (int64_t y = 0; y < out[h]; y++) {
            for (int64_t x = 0; x < out[w]; x++) {
                for (int64_t k = 0; k < out[c]; k++) {
                    double sy = ((double)y + 0.5) * (double)source.height / (double)out[h] - 0.5;
                    double sx = ((double)x + 0.5) * (double)source.width / (double)out[w] - 0.5;
                    double v = sample(&source, sy, sx, k);
                    int slot = k < MAX_CHANNELS ? (int)k : MAX_CHANNELS - 1;
                    v = (v * p.scale - p.mean[slot]) / p.deviation[slot];
                    int64_t index = p.channels_last ? ((n * out[1] + y) * out[2] + x) * out[3] + k
                                                    : ((n * out[1] + k) * out[2] + y) * out[3] + x;
                    if (!store(result, (uint64_t)index, v)) {
                        complain(NULL, "input '%s' is %s: pictures are converted to f32, f64 or u8 only", port->name,
                                 uir_dtype_get_name(port->dtype));
                        uir_value_destroy(result);
                        return UIR_STATUS_BAD_DATA;
                    }
                }
            }
        }
    }
    snprintf(out_made, MADE_ROOM, "%lldx%lld", (long long)source.width, (long long)source.height);
    uir_value_destroy(*value);
    *value = result;
    return UIR_STATUS_OK;
}

/* "values 0..255 (no --preprocess)". */
static void describe_values(const uir_value *value, const char *spec, char *text, size_t capacity) {
    double least = INFINITY, greatest = -INFINITY;
    uint64_t count = uir_value_get_element_count(value);
    if (!spec) {
        snprintf(text, capacity, "values 0..255 (no --preprocess)");
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        double v = uir_value_get_double(value, i);
        least = fmin(least, v);
        greatest = fmax(greatest, v);
    }
    snprintf(text, capacity, "values %.3g..%.3g (--preprocess %s)", least, greatest, spec);
}

const char *picture_describe(const char *name, const char *path, const char *picture, const uir_value *value,
                             const char *spec, char *buffer, size_t capacity) {
    char raw[PICTURE_TEXT], shape[200] = "", values[200];
    const char *file = strrchr(path, '/');
    size_t used = 0;
    for (uint32_t d = 0; d < uir_value_get_rank(value) && used < sizeof shape; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? "," : "",
                                 (long long)uir_value_get_shape(value)[d]);
    describe_values(value, spec, values, sizeof values);
    snprintf(raw, sizeof raw, "%.80s: %.100s %s -> %s[%s], %.100s", name, file ? file + 1 : path, picture,
             uir_dtype_get_name(uir_value_get_dtype(value)), shape, values);
    return printable(raw, buffer, capacity);
}
