/* Machines of the null device: the host's, with the instructions that each chip has. */
#include "backends/null/target/target.h"

#include "backends/null/chips.h"
#include "backends/source/legal_rows.h"

enum { SMALL_BYTES = 32 << 10 };
#define NUMBERS (D(F32) | INTEGERS)
#define STORED  (NUMBERS | D(BOOL) | D(F16) | D(BF16))
#define HALVES  (D(F16) | D(BF16))

/* Of the chip "f32": no f64, no floats of 8 bits, no remainder, no scan. */
static const uir_legal_row f32_rows[] = {
    ROW("move", STORED),
    ROW("fill", STORED),
    ROW_OTHER("cast", STORED, STORED),
    ROW_OTHER("bits", NUMBERS | HALVES, NUMBERS | HALVES),
    ROW("broadcast", STORED),
    ROW("iota", NUMBERS),
    ROW("unary.*", D(F32) | INTEGERS | D(BOOL)),
    ROW("binary.add", NUMBERS),
    ROW("binary.sub", NUMBERS),
    ROW("binary.mul", NUMBERS),
    ROW("binary.div", NUMBERS),
    ROW("binary.min", NUMBERS),
    ROW("binary.max", NUMBERS),
    ROW("binary.maxnum", D(F32)),
    ROW("binary.pow", D(F32)),
    ROW("binary.and", INTEGERS | D(BOOL)),
    ROW("binary.or", INTEGERS | D(BOOL)),
    ROW("binary.xor", INTEGERS | D(BOOL)),
    ROW("binary.shift_left", INTEGERS),
    ROW("binary.shift_right", INTEGERS),
    ROW("compare.*", NUMBERS | D(BOOL)),
    ROW("ternary.fma", D(F32)),
    ROW("ternary.select", NUMBERS | D(BOOL)),
    ROW("reduce.*", NUMBERS),
    ROW_RIGHT("mma", D(F32), D(F32), D(F32) | HALVES),
    ROW_OTHER("mma", D(I32), D(I8) | D(U8)),
};

/* What a chip lacks of the host's machine. */
static const struct {
    const uir_legal_row *legal; /* NULL: all instructions */
    uint32_t count;
    uint64_t capacity; /* bytes of a space on the chip; 0: as many */
} chips[UIR_NULL_CHIP_COUNT] = {
    [UIR_NULL_F32] = {f32_rows, sizeof f32_rows / sizeof *f32_rows, 0}, [UIR_NULL_SMALL] = {NULL, 0, SMALL_BYTES}};

static void narrow(const char *variant, uir_machine *machine) {
    const char *seed;
    uir_null_chip chip = uir_null_find_chip(variant, &seed);
    machine->chip = uir_null_chip_name(chip);
    if (chips[chip].legal) {
        machine->legal = chips[chip].legal;
        machine->legal_count = chips[chip].count;
    }
    for (uint32_t i = 0; i < machine->space_count && chips[chip].capacity; i++) {
        uir_space *space = &machine->spaces[i];
        if (space->capacity > chips[chip].capacity) space->capacity = chips[chip].capacity;
        if (space->working_set > chips[chip].capacity) space->working_set = chips[chip].capacity;
    }
}

static const char *get_chip(size_t index) {
    return index < UIR_NULL_CHIP_COUNT ? uir_null_chip_name((uir_null_chip)index) : NULL;
}

const uir_target uir_null_target = {.name = "null", .narrow = narrow, .get_chip = get_chip};
