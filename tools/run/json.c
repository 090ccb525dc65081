/* A tree of values with their names, made by hand or by descent; printed with as few digits as read back the same. */
#define _POSIX_C_SOURCE 200809L
#include "json.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

struct json {
    json_kind kind;
    char *name, *text;
    double number;
    json *first, *last, *next;
};

/* ---- making ---- */
static json *make(json_kind kind) {
    json *value = calloc(1, sizeof *value);
    if (value) value->kind = kind;
    return value;
}

json *json_object(void) {
    return make(JSON_OBJECT);
}

json *json_array(void) {
    return make(JSON_ARRAY);
}

json *json_null(void) {
    return make(JSON_NULL);
}

json *json_number(double number) {
    json *value = make(isfinite(number) ? JSON_NUMBER : JSON_NULL);
    if (value) value->number = number;
    return value;
}

json *json_string(const char *text) {
    json *value = make(text ? JSON_STRING : JSON_NULL);
    if (!value || !text) return value;
    value->text = strdup(text);
    if (value->text) return value;
    json_destroy(value);
    return NULL;
}

void json_destroy(json *value) {
    if (!value) return;
    for (json *item = value->first, *next; item; item = next) {
        next = item->next;
        json_destroy(item);
    }
    free(value->name);
    free(value->text);
    free(value);
}

void json_append(json *array, json *item) {
    if (!array || !item) {
        json_destroy(item);
        return;
    }
    if (array->last)
        array->last->next = item;
    else
        array->first = item;
    array->last = item;
}

void json_put(json *object, const char *name, json *item) {
    if (item) item->name = strdup(name);
    if (item && !item->name) {
        json_destroy(item);
        return;
    }
    json_append(object, item);
}

/* The item where it was kept. */
static json *put(json *object, const char *name, json *item) {
    json *last = object ? object->last : NULL;
    json_put(object, name, item);
    return object && object->last != last ? object->last : NULL;
}

json *json_put_object(json *object, const char *name) {
    return put(object, name, json_object());
}

json *json_put_array(json *object, const char *name) {
    return put(object, name, json_array());
}

void json_put_number(json *object, const char *name, double number) {
    json_put(object, name, json_number(number));
}

void json_put_string(json *object, const char *name, const char *text) {
    json_put(object, name, json_string(text));
}

void json_put_bool(json *object, const char *name, bool value) {
    json_put(object, name, make(value ? JSON_TRUE : JSON_FALSE));
}

void json_put_null(json *object, const char *name) {
    json_put(object, name, json_null());
}

/* ---- printing ---- */
typedef struct printer {
    char *data;
    size_t length, capacity;
    bool failed;
} printer;

static void append(printer *p, const char *text, size_t length) {
    if (p->failed) return;
    if (p->capacity - p->length <= length) {
        size_t capacity = 2 * p->capacity + length + 256;
        char *grown = realloc(p->data, capacity);
        p->failed = !grown;
        if (!grown) return;
        p->data = grown;
        p->capacity = capacity;
    }
    memcpy(p->data + p->length, text, length);
    p->length += length;
    p->data[p->length] = 0;
}

static void append_string(printer *p, const char *text) {
    append(p, "\"", 1);
    for (const char *c = text; *c; c++) {
        static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *at = strchr(special, *c);
        char escape[8] = {'\\', at ? letters[at - special] : 'u', 0};
        if (at)
            append(p, escape, 2);
        else if ((unsigned char)*c < 0x20)
            append(p, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*c));
        else
            append(p, c, 1);
    }
    append(p, "\"", 1);
}

/* As few digits as read back the same. */
static void append_number(printer *p, double number) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    append(p, text, strlen(text));
}

static void append_line(printer *p, uint32_t depth) {
    append(p, "\n", 1);
    for (uint32_t i = 0; i < depth; i++) append(p, "  ", 2);
}

static void append_value(printer *p, const json *value, uint32_t depth) {
    static const char *const words[] = {"null", "false", "true"};
    bool object = value->kind == JSON_OBJECT, lines = object;
    if (value->kind <= JSON_TRUE) append(p, words[value->kind], strlen(words[value->kind]));
    if (value->kind == JSON_NUMBER) append_number(p, value->number);
    if (value->kind == JSON_STRING) append_string(p, value->text);
    if (value->kind < JSON_ARRAY) return;
    for (const json *item = value->first; item; item = item->next) lines = lines || item->kind >= JSON_ARRAY;
    append(p, object ? "{" : "[", 1);
    for (const json *item = value->first; item; item = item->next) {
        if (item != value->first) append(p, lines ? "," : ", ", lines ? 1 : 2);
        if (lines) append_line(p, depth + 1);
        if (object) {
            append_string(p, item->name);
            append(p, ": ", 2);
        }
        append_value(p, item, depth + 1);
    }
    if (lines && value->first) append_line(p, depth);
    append(p, object ? "}" : "]", 1);
}

char *json_print(const json *value) {
    printer p = {0};
    if (!value) return NULL;
    append_value(&p, value, 0);
    if (!p.failed) return p.data;
    free(p.data);
    return NULL;
}

/* ---- parsing ---- */
typedef struct parser {
    const char *at, *end;
} parser;

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t')) p->at++;
}

static bool take(parser *p, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static bool read_unit(parser *p, uint32_t *out_unit) {
    *out_unit = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *digit = p->at < p->end && *p->at ? strchr(digits, *p->at) : NULL;
        if (!digit) return false;
        uint32_t value = (uint32_t)(digit - digits);
        *out_unit = *out_unit * 16 + (value < 16 ? value : value - 6);
    }
    return true;
}

/* After "\u"; no zero, as texts end with one. */
static bool read_code_point(parser *p, char **out) {
    uint32_t code, low;
    if (!read_unit(p, &code) || !code || (code >= 0xDC00 && code < 0xE000)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
        if (!take(p, "\\u") || !read_unit(p, &low) || low < 0xDC00 || low >= 0xE000) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    uint32_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xC0, 0xE0, 0xF0};
    *(*out)++ = (char)(leads[more] | code >> (6 * more));
    while (more-- > 0) *(*out)++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return true;
}

static char *read_string(parser *p) {
    if (!take(p, "\"")) return NULL;
    char *text = malloc((size_t)(p->end - p->at) + 1), *out = text; /* no escape is shorter than what it stands for */
    bool fine = text != NULL;
    while (fine && p->at < p->end && *p->at != '"') {
        static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        char c = *p->at++;
        fine = (unsigned char)c >= 0x20;
        if (c != '\\') {
            *out++ = c;
            continue;
        }
        if (p->at == p->end) break;
        c = *p->at++;
        const char *letter = c ? strchr(letters, c) : NULL;
        if (letter)
            *out++ = meant[letter - letters];
        else
            fine = c == 'u' && read_code_point(p, &out);
    }
    if (fine && take(p, "\"")) {
        *out = 0;
        return text;
    }
    free(text);
    return NULL;
}

static size_t count_digits(const parser *p, const char *at) {
    size_t count = 0;
    while (at + count < p->end && at[count] >= '0' && at[count] <= '9') count++;
    return count;
}

static json *read_number(parser *p) {
    char text[64];
    const char *at = p->at;
    if (at < p->end && *at == '-') at++;
    size_t whole = count_digits(p, at);
    if (!whole || (whole > 1 && *at == '0')) return NULL;
    at += whole;
    if (at < p->end && *at == '.') {
        size_t fraction = count_digits(p, at + 1);
        if (!fraction) return NULL;
        at += 1 + fraction;
    }
    if (at < p->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < p->end && (*at == '+' || *at == '-')) at++;
        size_t exponent = count_digits(p, at);
        if (!exponent) return NULL;
        at += exponent;
    }
    size_t length = (size_t)(at - p->at);
    if (length >= sizeof text) return NULL;
    memcpy(text, p->at, length);
    text[length] = 0;
    p->at = at;
    return json_number(strtod(text, NULL));
}

static json *read_value(parser *p, uint32_t depth);

static json *read_items(parser *p, json_kind kind, const char *end, uint32_t depth) {
    json *list = make(kind);
    bool fine = list != NULL;
    skip_space(p);
    if (fine && take(p, end)) return list;
    while (fine) {
        char *name = NULL;
        skip_space(p);
        if (kind == JSON_OBJECT) {
            name = read_string(p);
            skip_space(p);
            fine = name && take(p, ":");
        }
        json *item = fine ? read_value(p, depth) : NULL;
        fine = item != NULL;
        if (item) item->name = name;
        if (!item) free(name);
        json_append(list, item);
        skip_space(p);
        if (fine && take(p, end)) return list;
        fine = fine && take(p, ",");
    }
    json_destroy(list);
    return NULL;
}

static json *read_value(parser *p, uint32_t depth) {
    skip_space(p);
    if (p->at == p->end || depth == MOST_DEPTH) return NULL;
    if (take(p, "null")) return json_null();
    if (take(p, "true")) return make(JSON_TRUE);
    if (take(p, "false")) return make(JSON_FALSE);
    if (take(p, "{")) return read_items(p, JSON_OBJECT, "}", depth + 1);
    if (take(p, "[")) return read_items(p, JSON_ARRAY, "]", depth + 1);
    if (*p->at != '"') return read_number(p);
    json *value = make(JSON_STRING);
    if (value) value->text = read_string(p);
    if (value && value->text) return value;
    json_destroy(value);
    return NULL;
}

json *json_parse(const char *text, size_t length) {
    parser p = {text, text + length};
    json *value = read_value(&p, 0);
    skip_space(&p);
    if (p.at == p.end) return value;
    json_destroy(value);
    return NULL;
}

/* ---- reading ---- */
const json *json_get(const json *object, const char *name) {
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (const json *item = object->first; item; item = item->next)
        if (!strcmp(item->name, name)) return item;
    return NULL;
}

bool json_is_array(const json *value) {
    return value && value->kind == JSON_ARRAY;
}

const json *json_first(const json *value) {
    return value ? value->first : NULL;
}

const json *json_next(const json *element) {
    return element->next;
}

const char *json_get_text(const json *value) {
    return value && value->kind == JSON_STRING ? value->text : NULL;
}

bool json_get_number(const json *value, double *out_number) {
    if (!value || value->kind != JSON_NUMBER) return false;
    *out_number = value->number;
    return true;
}
