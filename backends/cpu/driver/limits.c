/* The limits, by intrinsics for every instruction set that this machine may have. */
#include "backends/cpu/driver/limits.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* So that no result is unused. */
static void use(float result) {
    volatile float sink = result;
    (void)sink;
}

double uir_cpu_limit_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#if defined(__x86_64__)
/* Twelve chains hide the latency of two units. */
#define CHAINS(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)

__attribute__((target("avx512f"))) static void multiply_add_512(int64_t rounds) {
    __m512 m = _mm512_set1_ps(0.999f), a = _mm512_set1_ps(0.001f);
#define DECLARE(i) __m512 x##i = _mm512_set1_ps(1.0f + i);
#define STEP(i)    x##i = _mm512_fmadd_ps(x##i, m, a);
#define TOTAL(i)   m = _mm512_add_ps(m, x##i);
    CHAINS(DECLARE)
    for (int64_t r = 0; r < rounds; r++) {
        CHAINS(STEP)
    }
    CHAINS(TOTAL)
    use(_mm512_cvtss_f32(m));
#undef DECLARE
#undef STEP
#undef TOTAL
}

__attribute__((target("avx2,fma"))) static void multiply_add_256(int64_t rounds) {
    __m256 m = _mm256_set1_ps(0.999f), a = _mm256_set1_ps(0.001f);
#define DECLARE(i) __m256 x##i = _mm256_set1_ps(1.0f + i);
#define STEP(i)    x##i = _mm256_fmadd_ps(x##i, m, a);
#define TOTAL(i)   m = _mm256_add_ps(m, x##i);
    CHAINS(DECLARE)
    for (int64_t r = 0; r < rounds; r++) {
        CHAINS(STEP)
    }
    CHAINS(TOTAL)
    use(_mm256_cvtss_f32(m));
#undef DECLARE
#undef STEP
#undef TOTAL
}

static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static void multiply_add_plain(int64_t rounds) {
    float x[48];
    for (int i = 0; i < 48; i++) x[i] = 1.0f + (float)i;
    for (int64_t r = 0; r < rounds; r++) {
        for (int i = 0; i < 48; i++) x[i] = x[i] * 0.999f + 0.001f;
    }
    for (int i = 1; i < 48; i++) x[0] += x[i];
    use(x[0]);
}

typedef struct multiply_way {
    void (*run)(int64_t rounds);
    double flops_per_round;
} multiply_way;

static size_t multiply_functions(multiply_way out[2]) {
    size_t count = 0;
#if defined(__x86_64__)
    if (has_avx512()) out[count++] = (multiply_way){multiply_add_512, 2 * 12 * 16};
    if (has_avx2()) out[count++] = (multiply_way){multiply_add_256, 2 * 12 * 8};
#endif
    if (!count) out[count++] = (multiply_way){multiply_add_plain, 2 * 48};
    return count;
}

size_t uir_cpu_limit_multiply_add_ways(void) {
    multiply_way ways[2];
    return multiply_functions(ways);
}

double uir_cpu_limit_multiply_add(size_t way, double flops) {
    multiply_way ways[2];
    (void)multiply_functions(ways);
    double per_round = ways[way].flops_per_round, start = uir_cpu_limit_now();
    int64_t rounds = (int64_t)(flops / per_round) + 1;
    ways[way].run(rounds);
    return (uir_cpu_limit_now() - start) * flops / ((double)rounds * per_round);
}

/* ---- reading: the sum of everything, so that nothing is skipped ---- */
static void read_words(const void *data, size_t bytes) {
    const uint64_t *p = data;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= bytes / 8; i += 4) a += p[i], b += p[i + 1], c += p[i + 2], d += p[i + 3];
    use((float)(a + b + c + d));
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void read_256(const void *data, size_t bytes) {
    const __m256i *p = data;
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i + 4 <= bytes / 32; i += 4) {
        a = _mm256_add_epi64(a, _mm256_loadu_si256(p + i));
        b = _mm256_add_epi64(b, _mm256_loadu_si256(p + i + 1));
        c = _mm256_add_epi64(c, _mm256_loadu_si256(p + i + 2));
        d = _mm256_add_epi64(d, _mm256_loadu_si256(p + i + 3));
    }
    a = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    use((float)_mm256_extract_epi32(a, 0));
}

/* Four places at once, with the lines ahead asked for early. */
__attribute__((target("avx2"))) static void read_256_ahead(const void *data, size_t bytes) {
    const char *p = data;
    size_t quarter = bytes / 4 / 128 * 128;
    __m256i a = _mm256_setzero_si256(), b = a;
    for (size_t i = 0; i < quarter; i += 128) {
        for (size_t q = 0; q < 4; q++) {
            const char *at = p + q * quarter + i;
            _mm_prefetch(at + 1024, _MM_HINT_T0);
            _mm_prefetch(at + 1088, _MM_HINT_T0);
            a = _mm256_add_epi64(a, _mm256_loadu_si256((const __m256i *)at));
            b = _mm256_add_epi64(b, _mm256_loadu_si256((const __m256i *)(at + 32)));
            a = _mm256_add_epi64(a, _mm256_loadu_si256((const __m256i *)(at + 64)));
            b = _mm256_add_epi64(b, _mm256_loadu_si256((const __m256i *)(at + 96)));
        }
    }
    use((float)_mm256_extract_epi32(_mm256_add_epi64(a, b), 0));
}

__attribute__((target("avx512f"))) static void read_512(const void *data, size_t bytes) {
    const char *p = data;
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (size_t i = 0; i + 256 <= bytes; i += 256) {
        a = _mm512_add_epi64(a, _mm512_loadu_si512(p + i));
        b = _mm512_add_epi64(b, _mm512_loadu_si512(p + i + 64));
        c = _mm512_add_epi64(c, _mm512_loadu_si512(p + i + 128));
        d = _mm512_add_epi64(d, _mm512_loadu_si512(p + i + 192));
    }
    use((float)_mm512_reduce_or_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d))));
}

__attribute__((target("avx512f"))) static void read_512_ahead(const void *data, size_t bytes) {
    const char *p = data;
    __m512i a = _mm512_setzero_si512(), b = a;
    for (size_t i = 0; i + 128 <= bytes; i += 128) {
        _mm_prefetch(p + i + 4096, _MM_HINT_T0);
        _mm_prefetch(p + i + 4160, _MM_HINT_T0);
        a = _mm512_add_epi64(a, _mm512_loadu_si512(p + i));
        b = _mm512_add_epi64(b, _mm512_loadu_si512(p + i + 64));
    }
    use((float)_mm512_reduce_or_epi64(_mm512_add_epi64(a, b)));
}
#endif

typedef void read_function(const void *, size_t);

static size_t read_functions(read_function *out[5]) {
    size_t count = 0;
    out[count++] = read_words;
#if defined(__x86_64__)
    if (has_avx2()) {
        out[count++] = read_256;
        out[count++] = read_256_ahead;
    }
    if (has_avx512()) {
        out[count++] = read_512;
        out[count++] = read_512_ahead;
    }
#endif
    return count;
}

size_t uir_cpu_limit_read_ways(void) {
    read_function *functions[5];
    return read_functions(functions);
}

double uir_cpu_limit_read(size_t way, const void *data, size_t bytes) {
    read_function *functions[5];
    (void)read_functions(functions);
    double start = uir_cpu_limit_now();
    functions[way](data, bytes);
    return uir_cpu_limit_now() - start;
}

/* ---- copying ---- */
static void copy_library(void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void copy_256(void *to, const void *from, size_t bytes) {
    __m256i *q = to;
    const __m256i *p = from;
    for (size_t i = 0; i < bytes / 32; i++) _mm256_storeu_si256(q + i, _mm256_loadu_si256(p + i));
}

__attribute__((target("avx2"))) static void copy_256_around(void *to, const void *from, size_t bytes) {
    __m256i *q = to;
    const __m256i *p = from;
    for (size_t i = 0; i + 4 <= bytes / 32; i += 4) {
        _mm_prefetch((const char *)(p + i) + 1024, _MM_HINT_T0);
        _mm_prefetch((const char *)(p + i) + 1088, _MM_HINT_T0);
        for (size_t k = 0; k < 4; k++) _mm256_stream_si256(q + i + k, _mm256_loadu_si256(p + i + k));
    }
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_512_around(void *to, const void *from, size_t bytes) {
    char *q = to;
    const char *p = from;
    for (size_t i = 0; i + 64 <= bytes; i += 64) _mm512_stream_si512((void *)(q + i), _mm512_loadu_si512(p + i));
    _mm_sfence();
}
#endif

typedef struct copy_way {
    const char *name;
    void (*copy)(void *, const void *, size_t);
} copy_way;

static size_t copy_functions(copy_way out[4]) {
    size_t count = 0;
    out[count++] = (copy_way){"memcpy", copy_library};
#if defined(__x86_64__)
    if (has_avx2()) {
        out[count++] = (copy_way){"256-bit", copy_256};
        out[count++] = (copy_way){"256-bit non-temporal", copy_256_around};
    }
    if (has_avx512()) out[count++] = (copy_way){"512-bit non-temporal", copy_512_around};
#endif
    return count;
}

size_t uir_cpu_limit_copy_ways(void) {
    copy_way ways[4];
    return copy_functions(ways);
}

double uir_cpu_limit_copy(size_t way, void *to, const void *from, size_t bytes) {
    copy_way ways[4];
    (void)copy_functions(ways);
    double start = uir_cpu_limit_now();
    ways[way].copy(to, from, bytes);
    return uir_cpu_limit_now() - start;
}

/* ---- all threads at once ---- */
enum { LEAST_BYTES = 64 << 20, MOST_BYTES = 512 << 20, ROUNDS = 3, MOST_THREADS = 1024 };
static const double flops_of_a_go = 2e7;

typedef struct measuring {
    pthread_mutex_t gate;      /* held until all threads are there, for they wait for each other */
    pthread_barrier_t barrier; /* before each go */
    uint32_t threads;
    bool short_of_threads;
    size_t bytes; /* of a thread */
} measuring;

typedef struct measured {
    measuring *all;
    char *data;
    pthread_t thread;
    double flops_per_second, bytes_per_second; /* the best */
} measured;

static void *measure(void *user) {
    measured *m = user;
    pthread_mutex_lock(&m->all->gate);
    bool alone = m->all->short_of_threads;
    pthread_mutex_unlock(&m->all->gate);
    if (alone) return NULL;
    memset(m->data, 1, m->all->bytes);
    for (int round = 0; round < ROUNDS; round++) {
        double rate;
        for (size_t way = 0; way < uir_cpu_limit_multiply_add_ways(); way++) {
            pthread_barrier_wait(&m->all->barrier);
            rate = flops_of_a_go / uir_cpu_limit_multiply_add(way, flops_of_a_go);
            if (rate > m->flops_per_second) m->flops_per_second = rate;
        }
        for (size_t way = 0; way < uir_cpu_limit_read_ways(); way++) {
            pthread_barrier_wait(&m->all->barrier);
            rate = (double)m->all->bytes / uir_cpu_limit_read(way, m->data, m->all->bytes);
            if (rate > m->bytes_per_second) m->bytes_per_second = rate;
        }
    }
    return NULL;
}

/* Twice what the last cache holds, where the system tells, cut over the threads. */
static size_t choose_bytes(uint32_t threads) {
    long cache = -1;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    size_t bytes = cache > LEAST_BYTES / 2 ? 2 * (size_t)cache : LEAST_BYTES;
    if (bytes > MOST_BYTES) bytes = MOST_BYTES;
    return bytes / threads / 4096 * 4096 + 4096;
}

static uir_status measure_all(measured *threads, measuring *all) {
    uint32_t started = 0;
    pthread_mutex_lock(&all->gate);
    for (; started < all->threads; started++)
        if (pthread_create(&threads[started].thread, NULL, measure, &threads[started]) != 0) break;
    all->short_of_threads = started < all->threads;
    pthread_mutex_unlock(&all->gate);
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i].thread, NULL);
    return all->short_of_threads ? UIR_STATUS_LIMIT : UIR_STATUS_OK;
}

uir_status uir_cpu_measure_limits(const uir_allocator *allocator, uint32_t count, double *out_flops_per_second,
                                  double *out_bytes_per_second) {
    measuring all = {.threads = count < 1 ? 1 : count < MOST_THREADS ? count : MOST_THREADS};
    all.bytes = choose_bytes(all.threads);
    size_t size = all.threads * sizeof(measured), bytes = all.threads * all.bytes;
    measured *threads = uir_allocate_zeroed(allocator, size);
    char *data = uir_allocate(allocator, bytes);
    uir_status status = threads && data ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    *out_flops_per_second = *out_bytes_per_second = 0;
    if (status == UIR_STATUS_OK && pthread_barrier_init(&all.barrier, NULL, all.threads) != 0)
        status = UIR_STATUS_OUT_OF_MEMORY;
    else if (status == UIR_STATUS_OK) {
        pthread_mutex_init(&all.gate, NULL);
        for (uint32_t i = 0; i < all.threads; i++) threads[i].all = &all, threads[i].data = data + i * all.bytes;
        status = measure_all(threads, &all);
        pthread_mutex_destroy(&all.gate);
        pthread_barrier_destroy(&all.barrier);
        for (uint32_t i = 0; i < all.threads; i++) {
            *out_flops_per_second += threads[i].flops_per_second;
            *out_bytes_per_second += threads[i].bytes_per_second;
        }
    }
    if (data) uir_release(allocator, data, bytes);
    if (threads) uir_release(allocator, threads, size);
    return status;
}
