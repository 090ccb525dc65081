/* Random kernels that read and write one pointer: running values along each axis in turn, statements whose result and
 * operands lie on either side of a cut, and slices drawn at random, of which the verifier accepts those that do not
 * overlap. On chip, in an output and in scratch of the device; short axes, and some that fill vectors. */
#include "generate_internal.h"
#include "ir/kernel/igraph.h"

typedef struct place {
    generator *g;
    const char *dtype, *role; /* of %t: where it lies, as declared */
    bool real, outer;         /* outer: %t has the parallel axis as its first dim */
    char extents[3][12];
    uint32_t sizes[3]; /* of the extents that are numbers */
    uint32_t names;
    uir_text body;
} place;

static const char *const dtypes[] = {"f32", "f32", "f32", "f64", "i32", "i64", "u8", "i16"};

static void begin(place *t, generator *g) {
    *t = (place){.g = g, .dtype = pick(g, dtypes, sizeof dtypes / sizeof *dtypes)};
    t->real = t->dtype[0] == 'f';
    t->role = PICK(g, "sram", "out", "out", "work");
    t->outer = t->role[0] != 's';
    uir_text_init(&t->body, &g->text->allocator);
}

#define LINE(t, ...) uir_text_append_format(&(t)->body, __VA_ARGS__)

/* The whole kernel: %t begins with what %x holds and ends in %y. */
static void end(place *t) {
    generator *g = t->g;
    char dims[60], all[60];
    snprintf(dims, sizeof dims, "%s, %s, %s", t->extents[0], t->extents[1], t->extents[2]);
    snprintf(all, sizeof all, "0:%s, 0:%s, 0:%s", t->extents[0], t->extents[1], t->extents[2]);
    PUT(g, "  ptr %%x : dram %s [M, %s] in 0\n", t->dtype, dims);
    if (t->role[0] == 's')
        PUT(g, "  ptr %%t : sram %s [1, %s]\n", t->dtype, dims);
    else if (t->role[0] == 'w')
        PUT(g, "  ptr %%t : dram %s [M, %s] work\n", t->dtype, dims);
    else
        PUT(g, "  ptr %%t : dram %s [M, %s] out 0\n", t->dtype, dims);
    if (t->role[0] != 'o') PUT(g, "  ptr %%y : dram %s [M, %s] out 0\n", t->dtype, dims);
    PUT(g, "  phase {\n    parallel p : M group\n    move %%t[%s:1, %s], %%x[p:1, %s]\n", t->outer ? "p" : "0", all,
        all);
    PUT(g, "%s", t->body.data ? t->body.data : "");
    if (t->role[0] != 'o') PUT(g, "    move %%y[p:1, %s], %%t[%s:1, %s]\n", all, t->outer ? "p" : "0", all);
    PUT(g, "  }\n");
    uir_text_deinit(&t->body);
}

static const char *binary(place *t) {
    return t->real ? PICK(t->g, "add", "sub", "max", "min") : PICK(t->g, "add", "sub", "max", "mul");
}

/* ---- running values: one position of an axis is made of the ones before or after it ---- */
typedef enum form { FORM_BOX, FORM_WINDOW, FORM_TURNED, FORM_JOINED, FORM_COUNT } form;

/* The slice of %NAME at a position along an axis: the other two whole, in a box, a window, one with the two exchanged,
 * or with both as one dim. */
static void put_at(place *t, const char *name, const char *first, uint32_t axis, const char *position, form form,
                   const char *fill) {
    uint32_t others[2], n = 0, u = t->names;
    t->names += 4;
    for (uint32_t d = 0; d < 3; d++)
        if (d != axis) others[n++] = d;
    LINE(t, "%%%s[%s%s", name, first, form == FORM_BOX ? ":1" : "");
    for (uint32_t d = 0; d < 3; d++) {
        if (form == FORM_BOX)
            LINE(t, d == axis ? ", %s:1" : ", 0:%s", d == axis ? position : t->extents[d]);
        else if (d == axis)
            LINE(t, ", %s", position);
        else
            LINE(t, ", u%u", u + d);
    }
    const char *a = t->extents[others[0]], *b = t->extents[others[1]];
    if (form == FORM_WINDOW) {
        LINE(t, " ; u%u<1", u + 3);
        for (uint32_t d = 0; d < 3; d++) LINE(t, ", u%u<%s", u + d, d == axis ? "1" : t->extents[d]);
    } else if (form == FORM_TURNED) {
        LINE(t, " ; u%u<%s, u%u<%s", u + others[1], b, u + others[0], a);
    } else if (form == FORM_JOINED) {
        LINE(t, " ; u%u<1, (u%u<%s, u%u<%s)", u + 3, u + others[0], a, u + others[1], b);
    }
    LINE(t, "]%s", fill);
}

static void put_position(char out[60], const char *at, bool back, const char *extent, int offset) {
    char moved[24] = "";
    if (offset) snprintf(moved, sizeof moved, offset < 0 ? "-%d" : "+%d", offset < 0 ? -offset : offset);
    if (back)
        snprintf(out, 60, "%s-1-%s%s", extent, at, moved);
    else
        snprintf(out, 60, "%s%s", at, moved);
}

static void add_running(place *t, uint32_t number) {
    generator *g = t->g;
    uint32_t axis = below(g, 3);
    bool back = chance(g, 40);
    int distance = 1 + (int)below(g, 2);
    /* A box on chip cannot leave it: the first positions are left out. */
    form how = (form)below(g, FORM_COUNT);
    form mixed = how <= FORM_WINDOW ? (form)below(g, 2) : how;
    char here[60], before[60], loop[16], fill[16], when[40] = "";
    snprintf(loop, sizeof loop, "l%u", number);
    put_position(here, loop, back, t->extents[axis], 0);
    put_position(before, loop, back, t->extents[axis], back ? distance : -distance);
    snprintf(fill, sizeof fill, " fill %u", below(g, 3));
    bool leaves = t->role[0] != 's' || mixed != FORM_BOX;
    if (!leaves || chance(g, 20)) snprintf(when, sizeof when, " when %s >= %d", loop, distance);
    const char *first = t->outer ? "p" : "0";
    LINE(t, "    loop %s : %s {\n      ", loop, t->extents[axis]);
    uint32_t kind = below(g, 4);
    if (kind == 0)
        LINE(t, "move ");
    else if (kind == 1)
        LINE(t, "unary.neg.%s ", t->dtype);
    else
        LINE(t, "binary.%s.%s ", binary(t), t->dtype);
    put_at(t, "t", first, axis, here, how, "");
    LINE(t, ", ");
    put_at(t, "t", first, axis, before, mixed, leaves ? fill : "");
    if (kind == 2) {
        LINE(t, ", ");
        put_at(t, "x", "p", axis, chance(g, 50) ? here : before, mixed, " fill 0");
    } else if (kind == 3) { /* the result's own slice */
        LINE(t, ", ");
        put_at(t, "t", first, axis, how == FORM_BOX ? here : before, how, how == FORM_BOX ? "" : fill);
    }
    LINE(t, "%s\n    }\n", when);
}

void generate_running(generator *g) {
    place t;
    begin(&t, g);
    for (uint32_t d = 0; d < 3; d++) snprintf(t.extents[d], sizeof t.extents[d], "%u", 1 + below(g, 5));
    if (chance(g, 30)) snprintf(t.extents[below(g, 3)], sizeof t.extents[0], "%u", 6 + below(g, 60));
    bool named = chance(g, 50);
    if (named) snprintf(t.extents[below(g, 3)], sizeof t.extents[0], "N");
    PUT(g, "  dim M in 0..7%s\n", named ? ", N in 0..40" : "");
    uint32_t loops = 1 + below(g, 3);
    for (uint32_t i = 0; i < loops; i++) add_running(&t, i);
    end(&t);
}

/* ---- both sides of a cut, and anything ---- */
typedef struct drawn {
    uint32_t start[3], count[3], step[3];
    bool box;
} drawn;

/* A slice of so many elements along each dim within low..high of it; a step where there is room. */
static bool draw(place *t, const uint32_t *count, const uint32_t *low, const uint32_t *high, drawn *out) {
    generator *g = t->g;
    out->box = chance(g, 50);
    for (uint32_t d = 0; d < 3; d++) {
        uint32_t room = high[d] - low[d];
        out->count[d] = count[d];
        out->step[d] = !out->box && chance(g, 30) ? 2 : 1;
        if (count[d] == 0 || (count[d] - 1) * out->step[d] + 1 > room) out->step[d] = 1;
        if (count[d] > room) return false;
        uint32_t span = count[d] ? (count[d] - 1) * out->step[d] + 1 : 0;
        out->start[d] = low[d] + below(g, room - span + 1);
    }
    return true;
}

static void put_drawn(place *t, const drawn *s) {
    uint32_t u = t->names;
    const char *first = t->outer ? "p" : "0";
    t->names += 4;
    if (s->box) {
        LINE(t, "%%t[%s:1, %u:%u, %u:%u, %u:%u]", first, s->start[0], s->count[0], s->start[1], s->count[1],
             s->start[2], s->count[2]);
        return;
    }
    LINE(t, "%%t[%s", first);
    for (uint32_t d = 0; d < 3; d++) LINE(t, ", %u+u%u*%u", s->start[d], u + d, s->step[d]);
    LINE(t, " ; u%u<1, u%u<%u, u%u<%u, u%u<%u]", u + 3, u, s->count[0], u + 1, s->count[1], u + 2, s->count[2]);
}

/* One statement: the result on one side of a cut across an axis, what it reads on the other, or anywhere. */
static void add_statement(place *t) {
    generator *g = t->g;
    uint32_t axis = below(g, 3), cut = below(g, t->sizes[axis] + 1), count[3], none[3] = {0, 0, 0};
    uint32_t low[2][3], high[2][3];
    bool result_low = chance(g, 50), anywhere = chance(g, 15);
    for (uint32_t side = 0; side < 2; side++) {
        memcpy(low[side], none, sizeof none);
        memcpy(high[side], t->sizes, sizeof none);
    }
    high[result_low ? 0 : 1][axis] = low[result_low ? 1 : 0][axis] = cut;
    if (anywhere) memcpy(low[1], none, sizeof none), memcpy(high[1], t->sizes, sizeof none);
    for (uint32_t d = 0; d < 3; d++) {
        uint32_t a = high[0][d] - low[0][d], b = high[1][d] - low[1][d], most = a < b ? a : b;
        count[d] = most ? 1 + below(g, most) : 0;
        if (most && chance(g, 40)) count[d] = most;
    }
    uint32_t kind = below(g, t->real ? 8 : 6), few[3], row[3];
    drawn to, from, other, carry;
    memcpy(few, count, sizeof few);
    memcpy(row, count, sizeof row);
    for (uint32_t d = 0; d < 3; d++)
        if (chance(g, 25)) few[d] = few[d] ? 1 : 0;
    bool reduces = kind == 4, down = reduces && chance(g, 50);
    if (kind == 4) row[down ? 1 : 2] = 1;
    if (kind == 5) row[2] = 1;
    if (!draw(t, kind == 4 ? row : count, low[0], high[0], &to) ||
        !draw(t, kind >= 4 ? count : few, low[1], high[1], &from) ||
        !draw(t, kind == 5 ? row : few, low[1], high[1], &other))
        return;
    carry = other;
    LINE(t, "    ");
    switch (kind) {
    case 0:
        LINE(t, "move ");
        break;
    case 1:
        LINE(t, "unary.abs.%s ", t->dtype);
        break;
    case 2:
    case 3:
        LINE(t, "binary.%s.%s ", binary(t), t->dtype);
        break;
    case 4:
        LINE(t, "reduce.%s.%s.unit.%s ", PICK(g, "add", "max", "min"), down ? "col" : "row", t->dtype);
        break;
    case 5: /* the operand is the result's own slice or on its side; the carry is on the other */
        if (from.box && chance(g, 50)) to = from;
        if (!draw(t, row, low[0], high[0], &carry) || count[2] == 0) {
            LINE(t, "\n");
            return;
        }
        LINE(t, "scan.add.row.unit.%s ", t->dtype);
        break;
    default:
        LINE(t, kind == 6 ? "ternary.fma.%s " : "unary.%s.%s ", kind == 6 ? t->dtype : PICK(g, "floor", "sqrt", "neg"),
             t->dtype);
        break;
    }
    put_drawn(t, &to);
    LINE(t, ", ");
    put_drawn(t, &from);
    if (kind == 4 && chance(g, 30)) LINE(t, " acc");
    if (kind == 5) {
        LINE(t, ", ");
        put_drawn(t, &carry);
    }
    if (kind == 2 || kind == 3 || kind == 6) {
        LINE(t, ", ");
        if (kind == 3 && to.box)
            put_drawn(t, &to); /* the result's own slice beside one that lies apart */
        else
            put_drawn(t, &other);
    }
    if (kind == 6) LINE(t, ", 0.5");
    LINE(t, "\n");
}

/* A product whose sums and factors lie side by side in one pointer. */
static void add_product(place *t) {
    generator *g = t->g;
    uint32_t n = t->sizes[2] / 2, m = t->sizes[1], z = below(g, t->sizes[0]);
    if (n == 0 || m == 0) return;
    const char *first = t->outer ? "p" : "0";
    LINE(t, "    mma.%s.%s.%s %%t[%s:1, %u:1, 0:%u, 0:%u], %%t[%s:1, %u:1, 0:%u, %u:%u], %%x[p:1, %u:1, 0:%u, 0:%u]\n",
         t->dtype, t->dtype, t->dtype, first, z, m, n, first, z, m, n, n < m ? n : m, z, n < m ? n : m, n);
}

void generate_in_place(generator *g) {
    place t;
    begin(&t, g);
    for (uint32_t d = 0; d < 3; d++) t.sizes[d] = 1 + below(g, 5);
    if (chance(g, 50)) t.sizes[2] = 6 + below(g, 80);
    for (uint32_t d = 0; d < 3; d++) snprintf(t.extents[d], sizeof t.extents[d], "%u", t.sizes[d]);
    PUT(g, "  dim M in 0..7\n");
    uint32_t statements = 1 + below(g, 3);
    for (uint32_t i = 0; i < statements; i++) {
        if ((!strcmp(t.dtype, "f32") || !strcmp(t.dtype, "f64")) && chance(g, 8))
            add_product(&t);
        else
            add_statement(&t);
    }
    end(&t);
}
