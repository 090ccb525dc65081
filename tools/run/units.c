#include "units.h"

#include <math.h>
#include <stdio.h>

/* The first scale that the number, rounded to three digits, is less than 1000 of. */
static const char *print(double number, const char *const *units, size_t count, char *buffer, size_t capacity) {
    size_t at = 0;
    double value = number;
    for (; at + 1 < count && fabs(value) >= 999.5; at++) value /= 1000;
    int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
    snprintf(buffer, capacity, "%.*f %s", decimals, value, units[at]);
    return buffer;
}

const char *units_time(double ms, char *buffer, size_t capacity) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (ms == 0) {
        snprintf(buffer, capacity, "0 ms");
        return buffer;
    }
    return print(ms * 1e6, units, sizeof units / sizeof *units, buffer, capacity);
}

const char *units_scaled(double number, char *buffer, size_t capacity) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    return print(number, units, sizeof units / sizeof *units, buffer, capacity);
}

const char *units_ending(unsigned long long count) {
    return count == 1 ? "" : "s";
}
