/* A phase in slices: each thread begins with a share of the indices of its own. */
#include "runtime/phase.h"
#include "runtime/internal.h"

enum { CHUNKS_PER_THREAD = 4, CHUNK_BYTES = 256 << 10 };

/* The next slice: of the thread's own share first, then of those who are behind. The same thread so has the same part
 * of each kernel of a row, and what it wrote is in its core's own caches. */
static bool take_slice(uir_rt_phase *p, uint32_t thread, uint32_t *at, int64_t *out_begin, int64_t *out_end) {
    for (; *at < p->threads; ++*at) {
        uir_rt_share *share = &p->shares[(thread + *at) % p->threads];
        if (atomic_load_explicit(&share->next, memory_order_relaxed) >= share->end) continue;
        int64_t begin = atomic_fetch_add_explicit(&share->next, p->chunk, memory_order_relaxed);
        if (begin >= share->end) continue;
        *out_begin = begin;
        *out_end = share->end - begin < p->chunk ? share->end : begin + p->chunk;
        return true;
    }
    return false;
}

static void share_out(uir_rt_phase *p, int64_t begin, int64_t end) {
    int64_t each = (end - begin) / p->threads, more = (end - begin) % p->threads;
    for (uint32_t t = 0; t < p->threads; t++) {
        uir_rt_share *share = &p->shares[t];
        atomic_store_explicit(&share->next, begin, memory_order_relaxed);
        begin += each + (t < more);
        share->end = begin;
    }
}

static void run_part(void *context, uint32_t thread) {
    uir_rt_phase *p = context;
    uint64_t start = p->done ? uir_rt_now() : 0;
    int64_t done = 0, begin, end;
    uint32_t at = 0;
    while (atomic_load_explicit(&p->status, memory_order_relaxed) == UIR_STATUS_OK &&
           take_slice(p, thread, &at, &begin, &end)) {
        uir_status status = __atomic_load_n(p->launch->cancel, __ATOMIC_RELAXED)
                                ? UIR_STATUS_CANCELLED
                                : p->format->run(p->launch, p->phase, &p->scratch[thread], begin, end);
        if (status != UIR_STATUS_OK) {
            int ok = UIR_STATUS_OK;
            atomic_compare_exchange_strong(&p->status, &ok, (int)status);
        }
        done += end - begin;
    }
    if (done && p->done) p->done(p->user, thread, start, (uint64_t)done);
}

uir_status uir_rt_phase_run(uir_rt_phase *p) {
    int64_t begin = p->launch->begins[p->phase], end = p->launch->indices[p->phase], count = end - begin;
    atomic_init(&p->status, UIR_STATUS_OK);
    if (count <= 0) return UIR_STATUS_OK;
    if (count < (int64_t)p->threads) p->threads = (uint32_t)count;
    share_out(p, begin, end);
    /* Slices so small that a wish to stop is heard soon, and so large that their number costs nothing. */
    uint64_t slices = p->bytes / CHUNK_BYTES, even = p->threads > 1 ? (uint64_t)p->threads * CHUNKS_PER_THREAD : 1;
    if (slices < even) slices = even;
    p->chunk = slices < (uint64_t)count ? count / (int64_t)slices : 1;
    if (p->threads < 2)
        run_part(p, 0);
    else
        p->parallel(p->user, p->threads, run_part, p);
    return (uir_status)atomic_load(&p->status);
}

const char *uir_rt_phase_get_failure(const uir_rt_phase *p) {
    for (uint32_t t = 0; t < p->threads; t++)
        if (p->scratch[t].failure[0]) return p->scratch[t].failure;
    return NULL;
}
