/* Numbers as text, without the C library's locale.
 *
 * In: a double or float, or the characters of a number. Out: the shortest decimal that reads back to the same value; or
 * the value nearest to the text (ties to even), for any number of digits. */
#ifndef UIR_BASE_NUMBER_H
#define UIR_BASE_NUMBER_H

#include "uir/uir.h"

/* Longest text below, with its terminating zero. */
#define UIR_NUMBER_TEXT_SIZE 40

/* Writes the text and a terminating zero, returns its length. "inf", "-inf" and "nan" for infinities and NaN. */
size_t uir_double_to_text(double value, char text[UIR_NUMBER_TEXT_SIZE]);
/* The shortest decimal whose nearest double, rounded to float, is `value`. */
size_t uir_float_to_text(float value, char text[UIR_NUMBER_TEXT_SIZE]);
/* Reads [+-] (digits [. digits] [e[+-]digits] | 0x hex digits [. hex digits] [p[+-]digits] | inf | nan), letters of any
 * case. The whole text must be the number. Too large: infinity; too small: zero. */
bool uir_double_from_text(const char *text, size_t length, double *out_value);
/* Reads [+-] digits; false for any other text, and for a number beyond 64 bits. */
bool uir_integer_from_text(const char *text, size_t length, int64_t *out_value);

#endif
