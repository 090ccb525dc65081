/* Programs at random over several queues: right with all their waits, and, on a simulated device, wrong without one. */
#include "tests/drivers/suite.h"

#include <stdio.h>
#include <string.h>

enum { QUEUES = 3, BUFFERS = 6, REQUESTS = 30, FOLLOWS = 4 * REQUESTS, N = 100, SEEDS = 20 };

typedef enum request_kind { FILL, COPY, TWICE, ADD, REQUEST_KINDS } request_kind;
static const uint32_t reads_of[REQUEST_KINDS] = {[FILL] = 0, [COPY] = 1, [TWICE] = 1, [ADD] = 2};

typedef struct request {
    request_kind kind;
    uint32_t queue, reads[2], writes; /* buffers */
    unsigned char value;              /* of a fill */
    uint32_t number;                  /* within its queue, from 1 */
    uint32_t known[QUEUES];           /* requests of each queue that are done before it begins */
} request;

/* Before request `at`, its queue follows the queue of the earlier request `of` to where that is done. */
typedef struct follow_row {
    uint32_t at, of;
} follow_row;

typedef struct program {
    request requests[REQUESTS];
    follow_row follows[FOLLOWS];
    uint32_t follow_count;
} program;

static bool conflicts(const request *a, const request *b) {
    bool found = a->writes == b->writes;
    for (uint32_t i = 0; i < reads_of[a->kind]; i++) found = found || a->reads[i] == b->writes;
    for (uint32_t i = 0; i < reads_of[b->kind]; i++) found = found || b->reads[i] == a->writes;
    return found;
}

static bool is_before(const request *a, const request *b) {
    return b->known[a->queue] >= a->number;
}

static void learn(uint32_t *known, const request *done) {
    for (uint32_t q = 0; q < QUEUES; q++)
        if (known[q] < done->known[q]) known[q] = done->known[q];
    if (known[done->queue] < done->number) known[done->queue] = done->number;
}

/* What each request knows to be done, with the follows but the one numbered `without`. Whether every two requests that
 * touch one buffer, one of them writing it, are in order. */
static bool order(program *p, uint32_t without) {
    uint32_t known[QUEUES][QUEUES] = {{0}}, counts[QUEUES] = {0};
    bool ordered = true;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        request *r = &p->requests[i];
        for (uint32_t f = 0; f < p->follow_count; f++)
            if (f != without && p->follows[f].at == i) learn(known[r->queue], &p->requests[p->follows[f].of]);
        r->number = ++counts[r->queue];
        memcpy(r->known, known[r->queue], sizeof r->known);
        known[r->queue][r->queue] = r->number;
        for (uint32_t k = 0; k < i; k++)
            ordered = ordered && (!conflicts(&p->requests[k], r) || is_before(&p->requests[k], r));
    }
    return ordered;
}

/* The latest request that a request conflicts with, and does not know to be done; REQUESTS: none. */
static uint32_t find_unknown(const program *p, uint32_t at, const uint32_t *known) {
    for (uint32_t k = at; k-- > 0;) {
        const request *earlier = &p->requests[k];
        if (conflicts(earlier, &p->requests[at]) && known[earlier->queue] < earlier->number) return k;
    }
    return REQUESTS;
}

static void make_program(bench *b, program *p) {
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        request *r = &p->requests[i];
        r->kind = i < BUFFERS ? FILL : (request_kind)draw(b, REQUEST_KINDS);
        r->queue = (uint32_t)draw(b, QUEUES);
        r->value = (unsigned char)(i + 1);
        r->writes = i < BUFFERS ? i : (uint32_t)draw(b, BUFFERS);
        for (int k = 0; k < 2; k++) do
                r->reads[k] = (uint32_t)draw(b, BUFFERS);
            while (r->reads[k] == r->writes);
        (void)order(p, FOLLOWS); /* numbers, and what each knows so far; those to come do not count */
        uint32_t known[QUEUES], unknown;
        memcpy(known, r->known, sizeof known);
        known[r->queue] = r->number - 1;
        while ((unknown = find_unknown(p, i, known)) < REQUESTS && p->follow_count < FOLLOWS) {
            p->follows[p->follow_count++] = (follow_row){i, unknown};
            learn(known, &p->requests[unknown]);
        }
    }
    assert_true(order(p, FOLLOWS));
}

/* One request after the other. */
static void compute(const program *p, float (*values)[N]) {
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const request *r = &p->requests[i];
        float *y = values[r->writes];
        const float *a = values[r->reads[0]], *c = values[r->reads[1]];
        if (r->kind == FILL) memset(y, r->value, N * sizeof *y);
        for (int k = 0; k < N && r->kind != FILL; k++)
            y[k] = r->kind == COPY ? a[k] : r->kind == TWICE ? 2 * a[k] + 1 : a[k] + c[k];
    }
}

typedef struct execution {
    uir_region buffers[BUFFERS];
    uir_driver_queue *queues[QUEUES];
    call calls[REQUESTS];
    uint64_t points[REQUESTS]; /* of those before it, where another queue follows */
} execution;

static void submit(bench *b, execution *e, const program *p, uint32_t i) {
    const request *r = &p->requests[i];
    const uir_region *to = &e->buffers[r->writes], *from = &e->buffers[r->reads[0]];
    const uir_driver_copy request = {.from = *from, .to = *to, .rows = 1, .row_bytes = to->size};
    if (r->kind == FILL)
        check_ok(b, b->driver->fill(e->queues[r->queue], to, r->value, &b->diagnostics));
    else if (r->kind == COPY)
        check_ok(b, b->driver->copy(e->queues[r->queue], &request, &b->diagnostics));
    else
        check_ok(b, b->driver->launch(e->queues[r->queue], &e->calls[i].launch, 0, 1, &b->diagnostics));
    check_ok(b, b->driver->mark(e->queues[r->queue], &b->diagnostics, &e->points[i]));
}

/* Runs the program without the follow numbered `without` (FOLLOWS: with all). Whether every buffer ends as it should.
 */
static bool execute(bench *b, const program *p, uint32_t without, float (*expected)[N]) {
    static execution e;
    static const int64_t sizes[] = {N};
    float got[N];
    bool right = true;
    memset(&e, 0, sizeof e);
    for (int i = 0; i < BUFFERS; i++) e.buffers[i] = allocate(b, sizeof got);
    for (int q = 0; q < QUEUES; q++)
        check_ok(b, b->driver->create_queue(b->device, REQUESTS, NULL, &b->diagnostics, &e.queues[q]));
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const request *r = &p->requests[i];
        uir_region pointers[3] = {e.buffers[r->reads[0]]};
        pointers[r->kind == ADD ? 2 : 1] = e.buffers[r->writes];
        if (r->kind == ADD) pointers[1] = e.buffers[r->reads[1]];
        if (r->kind == ADD || r->kind == TWICE)
            call_begin(b, &e.calls[i], r->kind == ADD ? KERNEL_add : KERNEL_twice_and_one, sizes, pointers);
    }
    for (uint32_t i = 0; i < REQUESTS; i++) {
        for (uint32_t f = 0; f < p->follow_count; f++) {
            uint32_t of = p->follows[f].of;
            if (f == without || p->follows[f].at != i) continue;
            check_ok(b, b->driver->follow(e.queues[p->requests[i].queue], e.queues[p->requests[of].queue], e.points[of],
                                          &b->diagnostics));
        }
        submit(b, &e, p, i);
    }
    for (int q = 0; q < QUEUES; q++) b->driver->destroy_queue(e.queues[q]); /* all is done */
    for (int i = 0; i < BUFFERS; i++) {
        get(b, 0, e.buffers[i], got);
        right = right && !memcmp(got, expected[i], sizeof got);
    }
    for (uint32_t i = 0; i < REQUESTS; i++)
        if (e.calls[i].launch.is_prepared) call_end(b, &e.calls[i]);
    return right;
}

static void test_programs(void **state) {
    static float expected[BUFFERS][N];
    bench b;
    bench_begin(&b, state);
    for (int i = 0; i < 15; i++) {
        program p;
        make_program(&b, &p);
        compute(&p, expected);
        assert_true(execute(&b, &p, FOLLOWS, expected));
    }
    bench_end(&b);
}

/* Whether some order that the follows allow ends otherwise: one of a number drawn. */
static bool is_visible(bench *b, const program *p, uint32_t without, float (*expected)[N]) {
    for (int tries = 0; tries < 400; tries++) {
        static float values[BUFFERS][N];
        program turned = {.requests = {{0}}};
        bool done[REQUESTS] = {false};
        for (uint32_t count = 0; count < REQUESTS; count++) {
            uint32_t chosen = REQUESTS, ready = 0;
            for (uint32_t i = 0; i < REQUESTS; i++) {
                bool may = !done[i];
                for (uint32_t k = 0; k < i && may; k++) may = done[k] || p->requests[k].queue != p->requests[i].queue;
                for (uint32_t f = 0; f < p->follow_count && may; f++)
                    may = f == without || p->follows[f].at != i || done[p->follows[f].of];
                if (may && draw(b, ++ready) == 0) chosen = i;
            }
            done[chosen] = true;
            turned.requests[count] = p->requests[chosen];
        }
        compute(&turned, values);
        if (memcmp(values, expected, sizeof values)) return true;
    }
    return false;
}

/* Whether some seed shows that the program without a follow is wrong. */
static bool is_seen(const driver_subject *subject, const program *p, uint32_t without, float (*expected)[N]) {
    bool seen = false;
    for (int seed = 0; seed < SEEDS && !seen; seed++) {
        char parameter[16];
        driver_subject other = *subject;
        void *state = &other;
        bench b;
        snprintf(parameter, sizeof parameter, "%d", 100 + seed);
        other.parameter = parameter;
        bench_begin(&b, &state);
        seen = !execute(&b, p, without, expected);
        bench_end(&b);
    }
    return seen;
}

/* Of the waits that no other wait implies, and without which a result can change, each is taken away in turn: at least
 * nine tenths are seen to be missing. */
static void test_missing_waits(void **state) {
    static float expected[BUFFERS][N];
    bench b;
    uint32_t needed = 0, seen = 0;
    bench_begin(&b, state);
    for (int i = 0; i < 3 && b.facts->is_simulated; i++) {
        program p, changed;
        make_program(&b, &p);
        compute(&p, expected);
        for (uint32_t f = 0; f < p.follow_count; f++) {
            changed = p;
            if (order(&changed, f) || !is_visible(&b, &p, f, expected)) continue;
            needed++;
            seen += is_seen(b.subject, &p, f, expected);
        }
    }
    assert_true(!b.facts->is_simulated || needed > 10);
    print_message("%u of %u missing waits seen\n", seen, needed);
    assert_true(10 * seen >= 9 * needed);
    bench_end(&b);
}

AREA(random, cmocka_unit_test(test_programs), cmocka_unit_test(test_missing_waits));
