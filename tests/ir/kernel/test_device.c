/* What descriptions answer: how elements come from one space to another, and what is multiplied where. */
#include "tests/ir/kernel/support.h"

typedef struct path_case {
    const char *device; /* of the zoo; its first chip */
    uir_dtype dtype;
    const char *from, *to, *spaces; /* those that moves end in; "-": none lead there */
} path_case;

#define CPU    "cpu"
#define ASCEND "ascend"
#define CUDA   "cuda"

static const uir_machine *find_device(const zoo *z, const char *name) {
    for (uint32_t i = 0; i < z->list.count; i++)
        if (!strcmp(z->list.devices[i]->name, name)) return z->list.devices[i];
    fail_msg("there is no device %s", name);
    return NULL;
}

static const path_case paths[] = {
    {CPU, UIR_DTYPE_F32, "dram", "sram", "sram"},        {CPU, UIR_DTYPE_F32, "sram", "sram", ""},
    {CPU, UIR_DTYPE_F32, "reg", "dram", "dram"},         {CPU, UIR_DTYPE_STRING, "dram", "sram", "-"},
    {ASCEND, UIR_DTYPE_F16, "dram", "ub", "ub"},         {ASCEND, UIR_DTYPE_F16, "dram", "l0a", "l1 l0a"},
    {ASCEND, UIR_DTYPE_F32, "l0c", "ub", "dram ub"},     {ASCEND, UIR_DTYPE_F32, "dram", "l0c", "-"},
    {ASCEND, UIR_DTYPE_F32, "ub", "l0b", "dram l1 l0b"}, {CUDA, UIR_DTYPE_F16, "dram", "reg", "reg"},
};

static void paths_are_the_shortest(void **state) {
    (void)state;
    zoo z;
    zoo_open(&z);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const uir_machine *d = find_device(&z, paths[i].device);
        int spaces[UIR_MACHINE_MAX_SPACES], from = uir_machine_find_space(d, paths[i].from, strlen(paths[i].from)),
                                            to = uir_machine_find_space(d, paths[i].to, strlen(paths[i].to));
        char text[64] = "";
        int length = uir_machine_find_path(d, paths[i].dtype, from, to, spaces);
        for (int k = 0; k < length; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? " " : "", d->spaces[spaces[k]].name);
        assert_string_equal(length < 0 ? "-" : text, paths[i].spaces);
    }
    zoo_close(&z);
}

static void products_are_where_mma_wants_them(void **state) {
    (void)state;
    static const struct {
        const char *device;
        uir_dtype sums, factor;
        bool multiplies, as_right;
    } cases[] = {
        {CPU, UIR_DTYPE_F32, UIR_DTYPE_F32, true, true},   {CPU, UIR_DTYPE_F32, UIR_DTYPE_F16, false, true},
        {CPU, UIR_DTYPE_I32, UIR_DTYPE_U8, true, true},    {ASCEND, UIR_DTYPE_F32, UIR_DTYPE_F16, true, true},
        {ASCEND, UIR_DTYPE_I32, UIR_DTYPE_I8, true, true}, {ASCEND, UIR_DTYPE_F64, UIR_DTYPE_F64, false, false},
        {CUDA, UIR_DTYPE_F32, UIR_DTYPE_BF16, true, true}, {CPU, UIR_DTYPE_F64, UIR_DTYPE_F16, false, false},
    };
    zoo z;
    zoo_open(&z);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int right = 0; right < 2; right++)
            assert_int_equal(
                uir_machine_multiplies(find_device(&z, cases[i].device), cases[i].sums, cases[i].factor, right),
                right ? cases[i].as_right : cases[i].multiplies);
    zoo_close(&z);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths_are_the_shortest),
                                       cmocka_unit_test(products_are_where_mma_wants_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
