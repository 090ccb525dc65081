#include "base/text.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

void uir_text_init(uir_text *text, const uir_allocator *allocator) {
    *text = (uir_text){.allocator = *allocator};
}

void uir_text_deinit(uir_text *text) {
    uir_release(&text->allocator, text->data, text->capacity);
    *text = (uir_text){.allocator = text->allocator};
}

/* Room for `extra` bytes and the terminating zero; NULL, and the text failed, when there is none. */
static char *reserve(uir_text *text, size_t extra) {
    if (text->failed) return NULL;
    size_t needed;
    if (__builtin_add_overflow(text->length, extra, &needed) || __builtin_add_overflow(needed, (size_t)1, &needed)) {
        text->failed = true;
        return NULL;
    }
    if (needed > text->capacity) {
        size_t capacity = text->capacity * 2; /* no block is larger than half of what a size can say */
        if (capacity < 256) capacity = 256;
        if (capacity < needed) capacity = needed;
        char *data = text->data ? uir_reallocate(&text->allocator, text->data, text->capacity, capacity)
                                : uir_allocate(&text->allocator, capacity);
        if (!data) {
            text->failed = true;
            return NULL;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->length;
}

static void commit(uir_text *text, size_t length) {
    text->length += length;
    text->data[text->length] = 0;
}

void uir_text_append(uir_text *text, const char *data, size_t length) {
    char *at = reserve(text, length);
    if (!at) return;
    if (length) memcpy(at, data, length);
    commit(text, length);
}

void uir_text_append_string(uir_text *text, const char *string) {
    uir_text_append(text, string, strlen(string));
}

void uir_text_append_until(uir_text *text, size_t more, size_t unit, char fill) {
    size_t over = (text->length % unit + more % unit) % unit, missing = over ? unit - over : 0;
    char *at = reserve(text, missing);
    if (!at) return;
    memset(at, fill, missing);
    commit(text, missing);
}

void uir_text_append_format(uir_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    char small[128];
    int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = true;
    } else if ((size_t)length < sizeof small) {
        uir_text_append(text, small, (size_t)length);
    } else {
        char *at = reserve(text, (size_t)length);
        if (at) {
            vsnprintf(at, (size_t)length + 1, format, again);
            commit(text, (size_t)length);
        }
    }
    va_end(again);
}

void uir_text_append_quoted(uir_text *text, const char *data, size_t length) {
    static const char digits[] = "0123456789abcdef";
    if (length > (SIZE_MAX - 2) / 4) {
        text->failed = true;
        return;
    }
    char *begin = reserve(text, length * 4 + 2), *at = begin;
    if (!begin) return;
    *at++ = '"';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)data[i];
        const char *escape = byte == '"'    ? "\\\""
                             : byte == '\\' ? "\\\\"
                             : byte == '\n' ? "\\n"
                             : byte == '\r' ? "\\r"
                             : byte == '\t' ? "\\t"
                                            : NULL;
        if (escape) {
            *at++ = escape[0];
            *at++ = escape[1];
        } else if (byte < 0x20 || byte >= 0x7f) {
            *at++ = '\\';
            *at++ = 'x';
            *at++ = digits[byte >> 4];
            *at++ = digits[byte & 15];
        } else {
            *at++ = (char)byte;
        }
    }
    *at++ = '"';
    commit(text, (size_t)(at - begin));
}

void uir_text_append_double(uir_text *text, double value) {
    char number[UIR_NUMBER_TEXT_SIZE];
    uir_text_append(text, number, uir_double_to_text(value, number));
}

void uir_text_append_float(uir_text *text, float value) {
    char number[UIR_NUMBER_TEXT_SIZE];
    uir_text_append(text, number, uir_float_to_text(value, number));
}

uir_status uir_text_status(const uir_text *text) {
    return text->failed ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_OK;
}
