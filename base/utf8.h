/* Text as code points: UTF-8 both ways, and the simple case mappings of the alphabets that have case. */
#ifndef UIR_BASE_UTF8_H
#define UIR_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UIR_UTF8_INVALID 0xfffdu

/* The code point at `text`, of which *out_length bytes (at least 1 of `length`) are it. A byte that begins no code
 * point is U+FFFD. */
uint32_t uir_utf8_decode(const char *text, size_t length, size_t *out_length);
/* Writes up to 4 bytes, and returns how many. */
size_t uir_utf8_encode(uint32_t code_point, char *out_text);
/* One code point to one; those without case stay. */
uint32_t uir_code_point_to_lower(uint32_t code_point);
uint32_t uir_code_point_to_upper(uint32_t code_point);

#endif
