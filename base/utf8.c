/* UTF-8 and case. */
#include "base/utf8.h"

uint32_t uir_utf8_decode(const char *text, size_t length, size_t *out_length) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    size_t count = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    *out_length = 1;
    if (count == 1) return at[0];
    if (!count || count > length) return UIR_UTF8_INVALID;
    uint32_t value = at[0] & (0x7fu >> count);
    for (size_t i = 1; i < count; i++) {
        if (at[i] >> 6 != 2) return UIR_UTF8_INVALID;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < least[count] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return UIR_UTF8_INVALID;
    *out_length = count;
    return value;
}

size_t uir_utf8_encode(uint32_t code_point, char *out_text) {
    size_t count = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    static const unsigned char first[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1;) {
        out_text[i] = (char)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out_text[0] = (char)(first[count] | code_point);
    return count;
}

/* Upper case letters first..last, each `step` apart, with the lower case `distance` on. */
static const struct {
    uint32_t first, last, step, distance;
} cases[] = {
    {'A', 'Z', 1, 32},         {0xc0, 0xd6, 1, 32},
    {0xd8, 0xde, 1, 32}, /* Latin */
    {0x100, 0x12e, 2, 1},      {0x132, 0x136, 2, 1},
    {0x139, 0x147, 2, 1},      {0x14a, 0x176, 2, 1},
    {0x179, 0x17d, 2, 1},      {0x1cd, 0x1db, 2, 1},
    {0x1de, 0x1ee, 2, 1},      {0x1f8, 0x21e, 2, 1},
    {0x222, 0x232, 2, 1},      {0x386, 0x386, 1, 38},
    {0x388, 0x38a, 1, 37},     {0x38c, 0x38c, 1, 64}, /* Greek */
    {0x38e, 0x38f, 1, 63},     {0x391, 0x3a1, 1, 32},
    {0x3a3, 0x3ab, 1, 32},     {0x400, 0x40f, 1, 80}, /* Cyrillic */
    {0x410, 0x42f, 1, 32},     {0x460, 0x480, 2, 1},
    {0x48a, 0x4be, 2, 1},      {0x4c1, 0x4cd, 2, 1},
    {0x4d0, 0x52e, 2, 1},      {0x531, 0x556, 1, 48},
    {0x1e00, 0x1e94, 2, 1},    {0x1ea0, 0x1efe, 2, 1}, /* Armenian, Latin */
    {0x2160, 0x216f, 1, 16},   {0x24b6, 0x24cf, 1, 26},
    {0x2c00, 0x2c2f, 1, 48},   {0xff21, 0xff3a, 1, 32},
    {0x10400, 0x10427, 1, 40}, {0x178, 0x178, 1, 0xffffff87} /* whose lower case comes before it */
};

uint32_t uir_code_point_to_lower(uint32_t code_point) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t from = code_point - cases[i].first;
        if (code_point >= cases[i].first && code_point <= cases[i].last && from % cases[i].step == 0)
            return code_point + cases[i].distance;
    }
    return code_point;
}

uint32_t uir_code_point_to_upper(uint32_t code_point) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t upper = code_point - cases[i].distance, from = upper - cases[i].first;
        if (upper >= cases[i].first && upper <= cases[i].last && from % cases[i].step == 0) return upper;
    }
    return code_point;
}
