/* Members of a .npz file, which is a zip archive: stored or deflated, 32 or 64-bit sizes.
 *
 * Layout and names: PKWARE's APPNOTE.TXT 6.3. Sizes are taken from the central directory (numpy's local headers leave
 * them to a 64-bit extra field), and every offset is checked against the file. */
#include "io/full/formats.h"
#include "base/sanitize.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
    ENTRY_SIGNATURE = 0x02014b50,
    LOCAL_SIGNATURE = 0x04034b50,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR64_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    EXTRA_ZIP64 = 1,
    MAX_COMMENT = 65535,
    MAX_LISTED = 32,
    STORED = 0,
    DEFLATED = 8,
    HEADER = 64,    /* before a block of zlib's */
    STEP = 1 << 30, /* bytes that zlib is given at once */
};

typedef struct archive {
    const uint8_t *data;
    size_t size;
    const char *file;
    uir_diagnostics *diagnostics;
} archive;

typedef struct entry {
    const uint8_t *name;
    uint32_t name_length;
    uint32_t method, checksum, flags;
    uint64_t packed, unpacked, offset;
} entry;

static uint32_t read16(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static uint32_t read32(const uint8_t *at) {
    return read16(at) | read16(at + 2) << 16;
}
static uint64_t read64(const uint8_t *at) {
    return read32(at) | (uint64_t)read32(at + 4) << 32;
}

static uir_status bad(const archive *archive, const char *what) {
    return uir_error(archive->diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = archive->file},
                     "not a valid .npz file: %s", what);
}

/* Whether `size` bytes at `offset` lie in the file. */
static bool has(const archive *archive, uint64_t offset, uint64_t size) {
    return offset <= archive->size && size <= archive->size - offset;
}

/* Offset and number of entries of the central directory. */
static uir_status find_directory(const archive *archive, uint64_t *out_offset, uint64_t *out_count) {
    if (archive->size < END_SIZE) return bad(archive, "it is too short");
    size_t at = archive->size - END_SIZE;
    size_t lowest = at > MAX_COMMENT ? at - MAX_COMMENT : 0;
    while (read32(archive->data + at) != END_SIGNATURE) {
        if (at-- == lowest) return bad(archive, "the directory's end is missing");
    }
    *out_count = read16(archive->data + at + 10);
    *out_offset = read32(archive->data + at + 16);
    if (at >= LOCATOR64_SIZE && read32(archive->data + at - LOCATOR64_SIZE) == LOCATOR64_SIGNATURE) {
        uint64_t end64 = read64(archive->data + at - LOCATOR64_SIZE + 8);
        if (!has(archive, end64, END64_SIZE) || read32(archive->data + end64) != END64_SIGNATURE) {
            return bad(archive, "the 64-bit directory end is missing");
        }
        *out_count = read64(archive->data + end64 + 32);
        *out_offset = read64(archive->data + end64 + 48);
    }
    return UIR_STATUS_OK;
}

/* Replaces sizes that did not fit 32 bits by those of the 64-bit extra field. */
static bool read_extra(const uint8_t *at, const uint8_t *end, entry *entry) {
    uint64_t *fields[] = {&entry->unpacked, &entry->packed, &entry->offset};
    while (end - at >= 4) {
        uint32_t id = read16(at), length = read16(at + 2);
        at += 4;
        if (length > (uint64_t)(end - at)) return false;
        const uint8_t *value = at, *value_end = at + length;
        for (size_t i = 0; id == EXTRA_ZIP64 && i < sizeof fields / sizeof *fields; i++) {
            if (*fields[i] != UINT32_MAX) continue;
            if (value_end - value < 8) return false;
            *fields[i] = read64(value);
            value += 8;
        }
        at += length;
    }
    return true;
}

/* Reads the directory's entry at *offset and moves on. */
static uir_status next_entry(const archive *archive, uint64_t *offset, entry *out_entry) {
    if (!has(archive, *offset, ENTRY_SIZE)) return bad(archive, "the directory is cut off");
    const uint8_t *at = archive->data + *offset;
    if (read32(at) != ENTRY_SIGNATURE) return bad(archive, "a directory entry is damaged");
    uint32_t name_length = read16(at + 28), extra = read16(at + 30), comment = read16(at + 32);
    if (!has(archive, *offset, (uint64_t)ENTRY_SIZE + name_length + extra + comment)) {
        return bad(archive, "the directory is cut off");
    }
    *out_entry = (entry){.name = at + ENTRY_SIZE,
                         .name_length = name_length,
                         .flags = read16(at + 8),
                         .method = read16(at + 10),
                         .checksum = read32(at + 16),
                         .packed = read32(at + 20),
                         .unpacked = read32(at + 24),
                         .offset = read32(at + 42)};
    const uint8_t *extras = at + ENTRY_SIZE + name_length;
    if (!read_extra(extras, extras + extra, out_entry)) return bad(archive, "an extra field is damaged");
    *offset += (uint64_t)ENTRY_SIZE + name_length + extra + comment;
    return UIR_STATUS_OK;
}

/* "x" and "x.npy" both name the member x.npy. */
static bool is_called(const entry *entry, const char *member) {
    static const char ending[] = ".npy";
    size_t length = strlen(member);
    if (entry->name_length < length || memcmp(entry->name, member, length) != 0) return false;
    size_t rest = entry->name_length - length;
    return rest == 0 || (rest == sizeof ending - 1 && memcmp(entry->name + length, ending, rest) == 0);
}

/* The arrays' names, the first of them, as a hint. */
static void list_entries(const archive *archive, char *buffer, size_t capacity) {
    uint64_t offset = 0, count = 0;
    size_t used = (size_t)snprintf(buffer, capacity, "its arrays:");
    if (find_directory(archive, &offset, &count) != UIR_STATUS_OK) return;
    for (uint64_t i = 0; i < count; i++) {
        entry entry;
        if (next_entry(archive, &offset, &entry) != UIR_STATUS_OK) return;
        uint32_t length = entry.name_length;
        if (length > 4 && !memcmp(entry.name + length - 4, ".npy", 4)) length -= 4;
        if (i == MAX_LISTED || used + length + 8 > capacity) {
            snprintf(buffer + used, capacity - used, " ...");
            return;
        }
        used += (size_t)snprintf(buffer + used, capacity - used, "%s '%.*s'", i ? "," : "", (int)length,
                                 (const char *)entry.name);
    }
}

static uir_status find_entry(const archive *archive, const char *member, entry *out_entry) {
    uint64_t offset = 0, count = 0, found = 0;
    char names[1024];
    UIR_TRY(find_directory(archive, &offset, &count));
    for (uint64_t i = 0; i < count; i++) {
        entry entry;
        UIR_TRY(next_entry(archive, &offset, &entry));
        if (member && !is_called(&entry, member)) continue;
        if (found++ == 0) *out_entry = entry;
    }
    uir_location place = {.file = archive->file};
    if (found == 1 || (found && member)) return UIR_STATUS_OK;
    list_entries(archive, names, sizeof names);
    if (!count) return uir_error(archive->diagnostics, UIR_STATUS_NOT_FOUND, &place, "the file holds no array");
    if (!found)
        return uir_error_hint(archive->diagnostics, UIR_STATUS_NOT_FOUND, &place, names, "the file has no array '%s'",
                              member);
    return uir_error_hint(archive->diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place, names,
                          "the file holds %llu arrays: name one of them", (unsigned long long)found);
}

/* ---- what zlib does ---- */
static void *take(void *user, unsigned count, unsigned size) {
    /* zlib does not say how large a block is that it gives back. */
    size_t *block = uir_allocate(user, HEADER + (size_t)count * size);
    if (!block) return NULL;
    *block = HEADER + (size_t)count * size;
    return (char *)block + HEADER;
}

static void give_back(void *user, void *pointer) {
    size_t *block = (size_t *)((char *)pointer - HEADER);
    uir_release(user, block, *block);
}

/* What is left of a size, as far as a step of zlib's goes. */
static unsigned step_of(size_t left) {
    return left < STEP ? (unsigned)left : STEP;
}

/* Raw deflate data into exactly `target_size` bytes. BAD_FILE when it is not that. */
static uir_status inflate_member(const uir_allocator *allocator, const uint8_t *data, size_t size, uint8_t *target,
                                 size_t target_size) {
    z_stream stream = {.zalloc = take, .zfree = give_back, .opaque = (void *)(uintptr_t)allocator};
    size_t read = 0, written = 0;
    int result = inflateInit2(&stream, -MAX_WBITS);
    if (result != Z_OK) return UIR_STATUS_OUT_OF_MEMORY;
    while (result == Z_OK) {
        unsigned in = step_of(size - read), out = step_of(target_size - written);
        stream.next_in = (uint8_t *)(uintptr_t)(data + read);
        stream.avail_in = in;
        stream.next_out = target + written;
        stream.avail_out = out;
        result = inflate(&stream, Z_NO_FLUSH);
        UIR_WRITTEN_ELSEWHERE(target + written, out - stream.avail_out);
        read += in - stream.avail_in;
        written += out - stream.avail_out;
    }
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR) return UIR_STATUS_OUT_OF_MEMORY;
    return result == Z_STREAM_END && written == target_size ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE;
}

static uint32_t checksum(const uint8_t *data, size_t size) {
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < size; at += step_of(size - at)) crc = crc32(crc, data + at, step_of(size - at));
    return (uint32_t)crc;
}

uir_status uir_zip_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, const char *member, uint8_t **out_data, size_t *out_size) {
    archive archive = {data, size, file, diagnostics};
    entry entry = {0};
    UIR_TRY(find_entry(&archive, member, &entry));
    if (!has(&archive, entry.offset, LOCAL_SIZE) || read32(data + entry.offset) != LOCAL_SIGNATURE) {
        return bad(&archive, "a member's header is missing");
    }
    uint64_t start = entry.offset + LOCAL_SIZE + read16(data + entry.offset + 26) + read16(data + entry.offset + 28);
    if (!has(&archive, start, entry.packed)) return bad(&archive, "a member is cut off");
    if (entry.flags & 1) return bad(&archive, "a member is encrypted");
    if (entry.method != STORED && entry.method != DEFLATED) return bad(&archive, "a member's compression is unknown");
    /* Deflate packs at most 1032 to 1: a larger claim is a lie that would only cost memory. */
    bool plausible =
        entry.method == STORED ? entry.unpacked == entry.packed : entry.unpacked / 1032 <= entry.packed + 1;
    if (!plausible || entry.unpacked > SIZE_MAX) return bad(&archive, "a member's size is wrong");
    uint8_t *unpacked;
    size_t unpacked_size = (size_t)entry.unpacked;
    UIR_TRY_ALLOCATE(unpacked, uir_allocate(allocator, unpacked_size));
    uir_status status = UIR_STATUS_OK;
    if (entry.method == DEFLATED)
        status = inflate_member(allocator, data + start, (size_t)entry.packed, unpacked, unpacked_size);
    else if (unpacked_size)
        memcpy(unpacked, data + start, unpacked_size);
    if (status == UIR_STATUS_OK && checksum(unpacked, unpacked_size) != entry.checksum) status = UIR_STATUS_BAD_FILE;
    if (status != UIR_STATUS_OK) {
        uir_release(allocator, unpacked, unpacked_size);
        return status == UIR_STATUS_BAD_FILE ? bad(&archive, "a member's contents are damaged") : status;
    }
    *out_data = unpacked;
    *out_size = unpacked_size;
    return UIR_STATUS_OK;
}
