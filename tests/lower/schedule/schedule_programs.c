/* Random loop functions: a list of nests, each computing a new tensor from earlier ones. */
#include "schedule_programs.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TENSORS = 24, MOST_RANK = 3 };

typedef struct value {
    char name[16];
    int rank, axes[MOST_RANK]; /* 0..2: M, N, K */
    bool read, input;
} value;

typedef struct maker {
    random_state *random;
    uir_text *body, *tensors;
    value values[MOST_TENSORS];
    int count, blocks;
} maker;

static const char *const axis_names[] = {"M", "N", "K"};

uint32_t random_below(random_state *random, uint32_t limit) {
    random->bits = random->bits * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = random->bits;
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    return limit ? (uint32_t)(x % limit) : 0;
}

static int below(maker *m, int limit) {
    return (int)random_below(m->random, (uint32_t)limit);
}

static void shape_text(const value *v, char *text) {
    char *at = text;
    *at++ = '[';
    for (int d = 0; d < v->rank; d++) at += sprintf(at, "%s%s", d ? ", " : "", axis_names[v->axes[d]]);
    strcpy(at, "]");
}

static value *add_value(maker *m, int rank, const int *axes) {
    value *v = &m->values[m->count];
    char shape[64];
    *v = (value){.rank = rank};
    snprintf(v->name, sizeof v->name, "T%d", m->count++);
    memcpy(v->axes, axes, (size_t)rank * sizeof *axes);
    shape_text(v, shape);
    uir_text_append_format(m->tensors, "  tensor %s : i64 %s temp sram\n", v->name, shape);
    return v;
}

/* A nest over axes in random order: opens the loops, the block and its axis.bind. */
static int open_nest(maker *m, const char *block, const int *axes, int count, int reduced) {
    int order[MOST_RANK + 1] = {0};
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count; i > 1; i--) {
        int k = below(m, i), t = order[i - 1];
        order[i - 1] = order[k];
        order[k] = t;
    }
    if (reduced >
        1) { /* reduce loops in their own order, so that monoids that are not commutative mean what they say */
        int at[2] = {0}, n = 0;
        for (int i = 0; i < count; i++)
            if (order[i] >= count - reduced) at[n++] = i;
        if (order[at[0]] > order[at[1]]) {
            order[at[0]] = count - 2;
            order[at[1]] = count - 1;
        }
    }
    for (int i = 0; i < count; i++)
        uir_text_append_format(m->body, "  serial for (%c%d, 0, %s) {\n", "xyzw"[order[i]], below(m, 2) ? 0 : m->blocks,
                               axis_names[axes[order[i]]]);
    uir_text_append_format(m->body, "  ScheduleBlock(%s) {\n", block);
    return count;
}

static void close_nest(maker *m, int count) {
    uir_text_append_string(m->body, "  }\n");
    for (int i = 0; i < count; i++) uir_text_append_string(m->body, "  }\n");
}

/* The loops of open_nest are named by letter and a number that may be the same in several nests: read back. */
static void bind_axes(maker *m, const char *nest_text, const int *axes, int count, int reduced) {
    if (!count) return;
    uir_text_append_string(m->body, "    ");
    for (int i = 0; i < count; i++) uir_text_append_format(m->body, "%sv%d", i ? ", " : "", i);
    uir_text_append_string(m->body, " = axis.bind(");
    for (int i = 0; i < count; i++) {
        char key[8], name[16] = "";
        snprintf(key, sizeof key, "(%c", "xyzw"[i]);
        const char *at = strstr(nest_text, key);
        if (at) sscanf(at + 1, "%15[a-z0-9]", name);
        uir_text_append_format(m->body, "%s%s", i ? ", " : "", name);
    }
    uir_text_append_string(m->body, ") : ");
    for (int i = 0; i < count; i++)
        uir_text_append_format(m->body, "%s%s%s", i ? ", " : "", i >= count - reduced ? "reduce " : "",
                               axis_names[axes[i]]);
    uir_text_append_string(m->body, "\n");
}

static int begin_block(maker *m, const char *block, const int *axes, int count, int reduced) {
    size_t from = m->body->length;
    open_nest(m, block, axes, count, reduced);
    char copy[600];
    snprintf(copy, sizeof copy, "%s", m->body->data + from);
    bind_axes(m, copy, axes, count, reduced);
    return count;
}

static int find_axis(const int *axes, int count, int axis, int not_before) {
    for (int i = not_before; i < count; i++)
        if (axes[i] == axis) return i;
    for (int i = 0; i < count; i++)
        if (axes[i] == axis) return i;
    return -1;
}

/* A load of a value whose axes are among the block's, sometimes shifted with a fill; false when there is none. */
static bool put_load(maker *m, const int *axes, int count, bool shifted, char *out) {
    int start = below(m, m->count);
    for (int k = 0; k < m->count; k++) {
        value *v = &m->values[(start + k) % m->count];
        bool fits = true;
        char *at = out + sprintf(out, "%s[", v->name);
        int from = 0, shift = shifted && v->rank ? below(m, v->rank) : -1;
        for (int d = 0; d < v->rank && fits; d++) {
            int i = find_axis(axes, count, v->axes[d], from);
            fits = i >= 0;
            from = i + 1;
            at += sprintf(at, "%sv%d%s", d ? ", " : "", i, d == shift ? (below(m, 2) ? " - 1" : " + 1") : "");
        }
        if (!fits || (v->input && below(m, 3) == 0)) continue;
        strcpy(at, shift < 0 ? "]" : below(m, 4) == 0 ? "] fill 3" : "] fill 0");
        v->read = true;
        return true;
    }
    sprintf(out, "i64(%d)", below(m, 5));
    return false;
}

static void put_target(maker *m, const value *v, const char *after) {
    uir_text_append_format(m->body, "%s[", v->name);
    for (int d = 0; d < v->rank; d++) uir_text_append_format(m->body, "%sv%d", d ? ", " : "", d);
    uir_text_append_format(m->body, "]%s", after);
}

static void choose_axes(maker *m, int rank, int *axes) {
    for (int d = 0; d < rank; d++) axes[d] = below(m, 3);
    if (rank > 1 && below(m, 4)) /* mostly different ones */
        for (int d = 0; d < rank; d++) axes[d] = (axes[0] + d) % 3;
}

static void add_elementwise(maker *m) {
    static const char *const functions[] = {"add", "mul", "max", "min", "sub"};
    int axes[MOST_RANK], rank = below(m, 3) + (below(m, 6) > 0);
    char a[100], b[100];
    if (rank > MOST_RANK) rank = MOST_RANK;
    choose_axes(m, rank, axes);
    put_load(m, axes, rank, below(m, 4) == 0, a);
    put_load(m, axes, rank, below(m, 6) == 0, b);
    value *v = add_value(m, rank, axes);
    m->blocks++;
    int loops = begin_block(m, v->name, axes, rank, 0);
    put_target(m, v, " = ");
    uir_text_append_format(m->body, "%s(%s, %s)\n", functions[below(m, 5)], a, b);
    close_nest(m, loops);
}

static void add_gather(maker *m) {
    static const char *const modes[] = {"clamp", "wrap", "skip"};
    int axes[2] = {0, below(m, 3)}, mode = below(m, 3);
    value *v = add_value(m, 2, axes);
    m->blocks++;
    int loops = begin_block(m, v->name, axes, 2, 0);
    uir_text_append_format(m->body, "    g = axis.read(Ids[v0]) : N %s\n", modes[mode]);
    put_target(m, v, " = ");
    uir_text_append_format(m->body, "add(A[v0, g] fill 7, i64(%d))\n", below(m, 4));
    close_nest(m, loops);
}

static void add_reduction(maker *m) {
    static const char *const monoids[] = {"sum", "most", "maps"};
    int axes[MOST_RANK + 1], rank = below(m, 3), reduced = 1 + (below(m, 3) == 0), monoid = below(m, 3);
    char a[100], b[100], block[32];
    choose_axes(m, rank, axes);
    for (int k = 0; k < reduced; k++) axes[rank + k] = below(m, 3);
    put_load(m, axes, rank + reduced, monoid == 0, a);
    put_load(m, axes, rank + reduced, below(m, 6) == 0, b);
    value *q = add_value(m, rank, axes), *p = NULL;
    if (monoid == 2) {
        p = add_value(m, rank, axes);
        q = &m->values[m->count - 2];
    }
    m->blocks++;
    snprintf(block, sizeof block, "%s_init", q->name);
    int loops = begin_block(m, block, axes, rank, 0);
    for (int update = 0; update < 2; update++) {
        uir_text_append_format(m->body, "    %s %s (", update ? "update" : "init", monoids[monoid]);
        put_target(m, q, p ? ", " : ")");
        if (p) put_target(m, p, ")");
        if (update) uir_text_append_format(m->body, " with (%s(%s, %s))", monoid && below(m, 2) ? "add" : "mul", a, b);
        uir_text_append_string(m->body, "\n");
        close_nest(m, loops);
        if (!update) loops = begin_block(m, q->name, axes, rank + reduced, reduced);
    }
    if (below(m, 2)) return;
    value *f = add_value(m, rank, axes);
    q = &m->values[m->count - (p ? 3 : 2)];
    loops = begin_block(m, f->name, axes, rank, 0);
    uir_text_append_format(m->body, "    finish %s (", monoids[monoid]);
    put_target(m, f, ") with (");
    put_target(m, q, p ? ", " : ")\n");
    if (p) {
        p = &m->values[m->count - 2];
        put_target(m, p, ")\n");
    }
    close_nest(m, loops);
    q->read = true;
}

/* In place, or from the element before: what must not be moved past its readers. */
static void add_overwrite(maker *m) {
    char a[100], block[48];
    value *v = NULL;
    for (int k = 0; k < 8 && (!v || v->input); k++) v = &m->values[below(m, m->count)];
    if (v->input) return;
    m->blocks++;
    snprintf(block, sizeof block, "%s_again%d", v->name, m->blocks);
    put_load(m, v->axes, v->rank, false, a);
    int loops = begin_block(m, block, v->axes, v->rank, 0);
    bool scan = v->rank && below(m, 2);
    put_target(m, v, " = add(");
    if (scan) {
        int along = below(m, v->rank), other = v->rank > 1 && below(m, 2) ? (along + 1) % v->rank : -1; /* diagonal */
        uir_text_append_format(m->body, "%s[", v->name);
        for (int d = 0; d < v->rank; d++)
            uir_text_append_format(m->body, "%sv%d%s", d ? ", " : "", d,
                                   d == along || d == other ? (below(m, 2) ? " - 1" : " + 1") : "");
        uir_text_append_format(m->body, "] fill 1, %s)\n", a);
    } else {
        put_target(m, v, "");
        uir_text_append_format(m->body, ", %s)\n", a);
    }
    close_nest(m, loops);
}

static void add_output(maker *m, const value *from, int number) {
    char shape[64];
    shape_text(from, shape);
    uir_text_append_format(m->tensors, "  tensor Y%d : i64 %s out %d\n", number, shape, number);
    m->blocks++;
    char block[16];
    snprintf(block, sizeof block, "Y%d", number);
    int loops = begin_block(m, block, from->axes, from->rank, 0);
    uir_text_append_format(m->body, "    %s", block);
    uir_text_append_string(m->body, "[");
    for (int d = 0; d < from->rank; d++) uir_text_append_format(m->body, "%sv%d", d ? ", " : "", d);
    uir_text_append_string(m->body, "] = add(");
    put_target(m, from, ", i64(1))\n");
    close_nest(m, loops);
}

void make_program(random_state *random, uir_text *text, int64_t *sizes) {
    static const int64_t extents[] = {0, 1, 2, 3, 3, 4, 5, 5, 7};
    uir_text body, tensors;
    uir_text_init(&body, &text->allocator);
    uir_text_init(&tensors, &text->allocator);
    maker m = {.random = random, .body = &body, .tensors = &tensors};
    static const int shapes[3][2] = {{0, 1}, {1, 2}, {2, 0}};
    for (int i = 0; i < 3; i++) {
        value *v = &m.values[m.count++];
        *v = (value){.rank = i < 2 ? 2 : 1, .input = true, .axes = {shapes[i][0], shapes[i][1]}};
        snprintf(v->name, sizeof v->name, "%c", "ABC"[i]);
        sizes[i] = extents[below(&m, 9)];
    }
    int steps = 2 + below(&m, 4);
    for (int i = 0; i < steps; i++) {
        static void (*const makers[])(maker *) = {add_elementwise, add_elementwise, add_elementwise, add_reduction,
                                                  add_reduction,   add_gather,      add_overwrite};
        makers[below(&m, 7)](&m);
    }
    int outputs = 0;
    for (int i = 3; i < m.count; i++)
        if (!m.values[i].read || below(&m, 4) == 0) add_output(&m, &m.values[i], outputs++);
    if (!outputs) add_output(&m, &m.values[m.count - 1], outputs++);
    int least = below(&m, 2) && sizes[0] && sizes[1] && sizes[2];
    uir_text_append_string(text, "func @random {\n");
    for (int i = 0; i < 3; i++) uir_text_append_format(text, "  dim %s in %d..%d\n", axis_names[i], least, 16);
    uir_text_append_string(text,
                           "  tile t in 1..8\n  candidate t = 3 when M >= 3\n  candidate t = 2\n"
                           "  tensor A : i64 [M, N] in 0\n  tensor B : i64 [N, K] in 1\n  tensor C : i64 [K] in 2\n"
                           "  tensor Ids : i64 [M] in 3\n");
    uir_text_append(text, tensors.data ? tensors.data : "", tensors.length);
    uir_text_append_string(
        text, "  monoid sum (a : i64) commutative {\n    identity i64(0)\n    update (x : i64) add(a, x)\n"
              "    combine (b : i64) add(a, b)\n    finish a\n  }\n"
              "  monoid most (a : i64) commutative {\n    identity i64(-1000000)\n    update (x : i64) max(a, x)\n"
              "    combine (b : i64) max(a, b)\n    finish a\n  }\n"
              "  monoid maps (q : i64, p : i64) {\n    identity i64(0), i64(1)\n"
              "    update (x : i64) add(mul(q, i64(3)), x), mul(p, i64(3))\n"
              "    combine (q2 : i64, p2 : i64) add(mul(q, p2), q2), mul(p, p2)\n    finish q\n  }\n");
    uir_text_append(text, body.data ? body.data : "", body.length);
    uir_text_append_string(text, "}\n");
    uir_text_deinit(&body);
    uir_text_deinit(&tensors);
}
