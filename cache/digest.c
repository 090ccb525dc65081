#include "cache/digest.h"
#include "base/sanitize.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 64, READ_SIZE = 1 << 14 };

static const uint8_t piece_name[crypto_generichash_blake2b_PERSONALBYTES] = "uir piece";
static const uint8_t pieces_name[crypto_generichash_blake2b_PERSONALBYTES] = "uir pieces";

/* The functions below fail for sizes that they do not know alone. Without sodium_init, which chooses by the processor,
 * they say the same more slowly. */
static void begin(crypto_generichash_blake2b_state *state, const uint8_t *name) {
    static const uint8_t salt[crypto_generichash_blake2b_SALTBYTES];
    (void)!crypto_generichash_blake2b_init_salt_personal(state, NULL, 0, UIR_DIGEST_SIZE, salt, name);
}

static void add(crypto_generichash_blake2b_state *state, const void *data, size_t size) {
    (void)!crypto_generichash_blake2b_update(state, data, size);
}

static uir_digest end(crypto_generichash_blake2b_state *state) {
    uir_digest digest;
    (void)!crypto_generichash_blake2b_final(state, digest.bytes, sizeof digest.bytes);
    UIR_WRITTEN_ELSEWHERE(&digest, sizeof digest);
    return digest;
}

uir_digest uir_digest_make(const void *data, size_t size) {
    uir_digest digest;
    (void)!crypto_generichash_blake2b(digest.bytes, sizeof digest.bytes, size ? data : (const void *)"", size, NULL, 0);
    UIR_WRITTEN_ELSEWHERE(&digest, sizeof digest);
    return digest;
}

/* ---- trees ---- */
typedef struct tree {
    const uint8_t *data; /* NULL: the descriptor's */
    int descriptor;
    uint64_t size, count;
    const volatile bool *cancel;
    uir_digest *pieces;
    uint64_t next; /* the first that no thread has taken */
    int status;    /* the first that went wrong */
} tree;

static uir_status add_from_file(const tree *t, uint64_t from, uint64_t size, crypto_generichash_blake2b_state *state) {
    uint8_t bytes[READ_SIZE];
    while (size) {
        size_t part = size < sizeof bytes ? (size_t)size : sizeof bytes;
        ssize_t got = pread(t->descriptor, bytes, part, (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return UIR_STATUS_IO_FAILED;
        add(state, bytes, (size_t)got);
        from += (uint64_t)got, size -= (uint64_t)got;
    }
    return UIR_STATUS_OK;
}

static uir_status hash_piece(tree *t, uint64_t index) {
    crypto_generichash_blake2b_state state;
    uint64_t from = index * UIR_DIGEST_PIECE, left = t->size - from;
    uint64_t size = left < UIR_DIGEST_PIECE ? left : UIR_DIGEST_PIECE;
    if (t->cancel && __atomic_load_n(t->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
    begin(&state, piece_name);
    if (t->data)
        add(&state, t->data + from, (size_t)size);
    else
        UIR_TRY(add_from_file(t, from, size, &state));
    t->pieces[index] = end(&state);
    return UIR_STATUS_OK;
}

static void *hash_pieces(void *user) {
    tree *t = user;
    while (__atomic_load_n(&t->status, __ATOMIC_RELAXED) == UIR_STATUS_OK) {
        uint64_t index = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
        if (index >= t->count) break;
        int none = UIR_STATUS_OK, status = (int)hash_piece(t, index);
        if (status != UIR_STATUS_OK)
            __atomic_compare_exchange_n(&t->status, &none, status, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* This thread takes part: what others cannot be started for, it does alone. */
static void hash_on_threads(tree *t, uint32_t threads) {
    pthread_t others[THREADS_MAX];
    uint32_t started = 0;
    while (started < THREADS_MAX && started + 1 < threads && started + 1 < t->count &&
           pthread_create(&others[started], NULL, hash_pieces, t) == 0)
        started++;
    hash_pieces(t);
    while (started) pthread_join(others[--started], NULL);
}

static uir_digest hash_root(const tree *t) {
    crypto_generichash_blake2b_state state;
    uint8_t size[8];
    for (int i = 0; i < 8; i++) size[i] = (uint8_t)(t->size >> 8 * i);
    begin(&state, pieces_name);
    add(&state, size, sizeof size);
    add(&state, t->pieces, (size_t)t->count * sizeof *t->pieces);
    return end(&state);
}

static uir_status hash_tree(tree *t, const uir_digest_options *options, const uir_allocator *allocator,
                            uir_digest *out_digest) {
    (void)!sodium_init();
    t->count = t->size / UIR_DIGEST_PIECE + (t->size % UIR_DIGEST_PIECE != 0);
    t->cancel = options->cancel;
    size_t room = ((size_t)t->count + 1) * sizeof *t->pieces;
    UIR_TRY_ALLOCATE(t->pieces, uir_allocate(allocator, room));
    hash_on_threads(t, options->threads);
    if (t->status == UIR_STATUS_OK) *out_digest = hash_root(t);
    uir_release(allocator, t->pieces, room);
    return (uir_status)t->status;
}

uir_status uir_digest_of_memory(const void *data, uint64_t size, const uir_digest_options *options,
                                const uir_allocator *allocator, uir_digest *out_digest) {
    tree t = {.data = size ? data : "", .size = size};
    return hash_tree(&t, options, allocator, out_digest);
}

uir_status uir_digest_of_file(int descriptor, uint64_t size, const uir_digest_options *options,
                              const uir_allocator *allocator, uir_digest *out_digest) {
    tree t = {.descriptor = descriptor, .size = size};
    return hash_tree(&t, options, allocator, out_digest);
}

/* ---- text ---- */
static const char digits[] = "0123456789abcdef";

void uir_digest_print(const uir_digest *digest, char out[UIR_DIGEST_TEXT_SIZE]) {
    for (int i = 0; i < UIR_DIGEST_SIZE; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[2 * UIR_DIGEST_SIZE] = 0;
}

bool uir_digest_parse(const char *text, size_t length, uir_digest *out) {
    if (length != 2 * UIR_DIGEST_SIZE) return false;
    for (size_t i = 0; i < length; i++) {
        const char *digit = memchr(digits, text[i], sizeof digits - 1);
        if (!digit) return false;
        out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | (digit - digits));
    }
    return true;
}
