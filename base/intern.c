#include "base/intern.h"

#include <stdio.h>
#include <string.h>

#include <xxhash.h>

enum { TABLE_MIN = 64 };

uint64_t uir_hash(const void *data, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(data, size, seed);
}

/* The slot that holds the string, or the free one where it would go. */
static uint32_t find_slot(const uir_strings *strings, const char *text, size_t length, uint64_t hash) {
    uint32_t mask = strings->table_size - 1;
    for (uint32_t slot = (uint32_t)hash & mask;; slot = (slot + 1) & mask) {
        uint32_t at = strings->table[slot];
        if (at == 0) return slot;
        const struct uir_string_entry *entry = &strings->entries.data[at - 1];
        if (entry->hash == hash && entry->length == length && (length == 0 || memcmp(entry->text, text, length) == 0))
            return slot;
    }
}

static uir_status grow_table(uir_strings *strings) {
    if (strings->table_size > UINT32_MAX / 2) return UIR_STATUS_OUT_OF_MEMORY;
    uint32_t size = strings->table_size ? strings->table_size * 2 : TABLE_MIN;
    uint32_t *table;
    UIR_TRY_ALLOCATE(table, uir_arena_allocate_array(strings->arena, size, sizeof *table));
    for (uint32_t i = 0; i < strings->entries.count; i++) {
        uint32_t slot = (uint32_t)strings->entries.data[i].hash & (size - 1);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = i + 1;
    }
    strings->table = table;
    strings->table_size = size;
    return UIR_STATUS_OK;
}

uir_status uir_strings_init(uir_strings *strings, uir_arena *arena) {
    *strings = (uir_strings){.arena = arena};
    uir_string empty;
    return uir_strings_intern(strings, "", 0, &empty);
}

uir_status uir_strings_clone(const uir_strings *strings, uir_arena *arena, uir_strings *out_clone) {
    uir_string same;
    *out_clone = (uir_strings){.arena = arena};
    for (uint32_t i = 0; i < strings->entries.count; i++)
        UIR_TRY(uir_strings_intern(out_clone, strings->entries.data[i].text, strings->entries.data[i].length, &same));
    return UIR_STATUS_OK;
}

uir_status uir_strings_intern(uir_strings *strings, const char *text, size_t length, uir_string *out_string) {
    if (length >= UINT32_MAX) return UIR_STATUS_LIMIT;
    uint64_t hash = uir_hash(text, length, 0);
    /* At most two thirds full. */
    if ((uint64_t)(strings->entries.count + 1) * 3 > (uint64_t)strings->table_size * 2) UIR_TRY(grow_table(strings));
    uint32_t slot = find_slot(strings, text, length, hash);
    if (strings->table[slot] == 0) {
        char *copy;
        UIR_TRY_ALLOCATE(copy, uir_arena_copy_string(strings->arena, text, length));
        UIR_TRY(uir_vector_push(strings->arena, &strings->entries,
                                ((struct uir_string_entry){copy, (uint32_t)length, hash})));
        strings->table[slot] = strings->entries.count;
    }
    out_string->id = strings->table[slot] - 1;
    return UIR_STATUS_OK;
}

uir_status uir_strings_intern_format(uir_strings *strings, uir_string *out_string, const char *format, ...) {
    char small[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    uir_status status = UIR_STATUS_INVALID_ARGUMENT;
    if (length >= 0 && (size_t)length < sizeof small) {
        status = uir_strings_intern(strings, small, (size_t)length, out_string);
    } else if (length >= 0) {
        size_t size = (size_t)length + 1;
        char *large = uir_allocate(&strings->arena->allocator, size);
        status = UIR_STATUS_OUT_OF_MEMORY;
        if (large) {
            vsnprintf(large, size, format, again);
            status = uir_strings_intern(strings, large, (size_t)length, out_string);
            uir_release(&strings->arena->allocator, large, size);
        }
    }
    va_end(again);
    return status;
}

bool uir_strings_find(const uir_strings *strings, const char *text, size_t length, uir_string *out_string) {
    if (length >= UINT32_MAX) return false;
    uint32_t at = strings->table[find_slot(strings, text, length, uir_hash(text, length, 0))];
    if (at == 0) return false;
    out_string->id = at - 1;
    return true;
}

const char *uir_string_text(const uir_strings *strings, uir_string string) {
    return strings->entries.data[string.id].text;
}

uint32_t uir_string_length(const uir_strings *strings, uir_string string) {
    return strings->entries.data[string.id].length;
}

uir_status uir_names_put(uir_names *names, uir_arena *arena, const char *text, size_t length, uint32_t number) {
    uir_string id;
    if (!names->strings.arena) UIR_TRY(uir_strings_init(&names->strings, arena));
    UIR_TRY(uir_strings_intern(&names->strings, text, length, &id));
    while (names->numbers.count <= id.id) UIR_TRY(uir_vector_push(arena, &names->numbers, UIR_NAMES_NONE));
    names->numbers.data[id.id] = number;
    return UIR_STATUS_OK;
}

uint32_t uir_names_get(const uir_names *names, const char *text, size_t length) {
    uir_string id;
    if (!names->strings.arena || !uir_strings_find(&names->strings, text, length, &id)) return UIR_NAMES_NONE;
    return id.id < names->numbers.count ? names->numbers.data[id.id] : UIR_NAMES_NONE;
}
