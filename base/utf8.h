/* UTF-8 decoding and encoding, and simple case mappings of code points. */
#ifndef UIR_BASE_UTF8_H
#define UIR_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UIR_UTF8_INVALID 0xfffdu

/* Decodes the code point at `text`, of *out_length bytes (1 to `length`). A byte that begins none decodes as U+FFFD. */
uint32_t uir_utf8_decode(const char *text, size_t length, size_t *out_length);
/* Writes up to 4 bytes, and returns their number. */
size_t uir_utf8_encode(uint32_t code_point, char *out_text);
/* Simple mappings; code points without case stay as they are. */
uint32_t uir_code_point_to_lower(uint32_t code_point);
uint32_t uir_code_point_to_upper(uint32_t code_point);

#endif
