/* Formats numbers for people: three digits and a unit. In: a number. Out: text in the caller's buffer, which is
 * returned. */
#ifndef UIR_TOOLS_RUN_UNITS_H
#define UIR_TOOLS_RUN_UNITS_H

#include <stddef.h>

enum { UNITS_ROOM = 24 };

/* "4.10 us", "21.9 ms", "3.00 s", from milliseconds. */
const char *units_time(double ms, char *buffer, size_t capacity);
/* "10.7 k", "3.20 M", "12.0 ", before a unit: "10.7 k/s". */
const char *units_scaled(double number, char *buffer, size_t capacity);
/* The ending of a noun behind a number: "" behind 1, else "s". */
const char *units_ending(unsigned long long count);

#endif
