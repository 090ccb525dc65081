#include "tests/runtime/support.h"

#include "backends/vm/encode/encode.h"

#include <stdio.h>
#include <string.h>

static void *counted_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    counting *c = user;
    if (new_size) {
        uint64_t call = __atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
        if (c->fail_at && call >= c->fail_at) return NULL;
    }
    void *result = c->under.resize(c->under.user, pointer, old_size, new_size);
    if (result || !new_size)
        __atomic_add_fetch(&c->bytes, (int64_t)new_size - (pointer ? (int64_t)old_size : 0), __ATOMIC_RELAXED);
    return result;
}

void counting_init(counting *c) {
    *c = (counting){.under = uir_allocator_system()};
    c->allocator = (uir_allocator){counted_resize, c};
}

void fixture_init(fixture *f) {
    memset(f, 0, sizeof *f);
    f->allocator = uir_allocator_system();
    uir_diagnostics_init(&f->diagnostics, &f->allocator);
    uir_text_init(&f->package, &f->allocator);
    uir_text_init(&f->forged, &f->allocator);
    check_ok(f, uir_compile_machines_create(&f->allocator, NULL, &f->diagnostics, &f->devices));
}

void fixture_deinit(fixture *f) {
    uir_text_deinit(&f->forged);
    uir_text_deinit(&f->package);
    if (f->kernels.allocator.resize) uir_igraph_list_deinit(&f->kernels);
    uir_module_destroy(f->module);
    uir_compile_machines_destroy(f->devices);
    uir_diagnostics_deinit(&f->diagnostics);
}

void check_ok(fixture *f, uir_status status) {
    if (status == UIR_STATUS_OK) return;
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) {
        char text[1000];
        uir_diagnostic_format(d, text, sizeof text);
        print_error("%s\n", text);
    }
    fail_msg("status %s", uir_status_text(status));
}

void check_message(fixture *f, const char *text) {
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) {
        char all[1000];
        uir_diagnostic_format(d, all, sizeof all);
        if (strstr(all, text)) return;
    }
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) print_error("there is: %s\n", d->message);
    fail_msg("no message says: %s", text);
}

/* Groups name their kernels; the planner wants the numbers. */
static void number_kernels(const uir_module *module, const uir_plan_source *sources, uint32_t count) {
    for (uint32_t n = 1; n < module->nodes.count; n++) {
        uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        const char *name = uir_node_string(module, node, "kernel", NULL);
        if (!name) continue;
        node->kernel = count + 1; /* missing */
        for (uint32_t i = 0; i < count; i++)
            if (!strcmp(sources[i].name, name)) node->kernel = i + 1;
    }
}

uir_status fixture_plan(fixture *f, const uir_plan_options *options, const uir_allocator *allocator,
                        uir_text *package) {
    uir_plan_source sources[64];
    uir_igraph_list lists[64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->kernels.count; i++) {
        const char *name = f->kernels.igraphs[i]->name;
        if (count && !strcmp(sources[count - 1].name, name)) {
            lists[count - 1].count++;
            continue;
        }
        lists[count] = (uir_igraph_list){.igraphs = f->kernels.igraphs + i, .count = 1};
        sources[count] = (uir_plan_source){
            .name = name, .variants = &lists[count], .domains = 1u << UIR_PLAN_ON_HOST | 1u << UIR_PLAN_ON_DEVICE};
        count++;
    }
    number_kernels(f->module, sources, count);
    uir_package_sink sink = uir_package_sink_to_text(package);
    uir_plan_options own = {0};
    if (options) own = *options;
    if (!own.encode) own.encode = uir_vm_encode;
    return uir_plan_build(f->module, sources, count, &own, allocator, &f->diagnostics, &sink);
}

uir_status fixture_build(fixture *f, const char *module_text, const char *kernel_text) {
    UIR_TRY(uir_igraph_parse_list(&f->allocator, uir_compile_machines_get(f->devices), kernel_text, strlen(kernel_text),
                                  "kernels", &f->diagnostics, &f->kernels));
    for (uint32_t i = 0; i < f->kernels.count; i++) UIR_TRY(uir_igraph_verify(f->kernels.igraphs[i], &f->diagnostics));
    UIR_TRY(
        uir_module_parse(&f->allocator, &f->diagnostics, module_text, strlen(module_text), "module", NULL, &f->module));
    UIR_TRY(uir_module_verify(f->module, &f->diagnostics));
    return fixture_plan(f, NULL, &f->allocator, &f->package);
}

static const uir_kernel_format *const vm_alone[] = {&uir_vm_format};
const uir_package_options open_by_vm = {.formats = vm_alone, .format_count = 1};

uir_status fixture_open(fixture *f, const uir_allocator *allocator, uir_package **out_package) {
    return uir_package_open(f->package.data, f->package.length, &open_by_vm, allocator, &f->diagnostics, out_package);
}

void find_sections(const uir_text *package, sections *out) {
    *out = (sections){.plan = NULL};
    assert_int_equal(uir_package_read(package->data, package->length, NULL, out->list, &out->count), UIR_STATUS_OK);
    for (uint32_t i = 0; i < out->count; i++) {
        uir_package_section *s = &out->list[i];
        if (s->kind == UIR_PACKAGE_PLAN) out->plan = s;
        if (s->kind == UIR_PACKAGE_CODE) out->code = s->size;
        if (s->kind == UIR_PACKAGE_WEIGHTS) out->weights = s->size;
        out->natives += s->kind == UIR_PACKAGE_NATIVE;
    }
    assert_non_null(out->plan);
}

uir_status read_plan(const sections *s, const void *bytes, size_t size, uir_arena *arena, uir_plan *out_plan) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics said;
    uir_diagnostics_init(&said, &allocator);
    uir_status status = uir_plan_read(arena, bytes, size, s->code, s->weights, s->natives, &said, out_plan);
    uir_diagnostics_deinit(&said);
    return status;
}

void make_room(uir_plan *plan) {
#define UIR_PLAN_TABLE(type, field)                                                                                    \
    static type all_##field[MOST_RECORDS];                                                                             \
    assert_true(plan->field##_count <= MOST_RECORDS);                                                                  \
    memcpy(all_##field, plan->field, plan->field##_count * sizeof *plan->field);                                       \
    plan->field = all_##field;
    UIR_PLAN_TABLES(UIR_PLAN_TABLE)
#undef UIR_PLAN_TABLE
}

uir_plan_list longer(uir_plan *plan, uir_plan_list list, uint32_t value) {
    uir_plan_list all = {plan->words_count, list.count + 1};
    for (uint32_t i = 0; i < list.count; i++) add_words(plan, plan->words[list.first + i], 1);
    add_words(plan, (uir_plan_word){value}, 1);
    return all;
}

void fixture_forge(fixture *f, plan_edit *edit, void *user) {
    sections s;
    uir_arena arena;
    uir_text bytes;
    uir_plan plan;
    uir_arena_init(&arena, &f->allocator);
    uir_text_init(&bytes, &f->allocator);
    find_sections(&f->package, &s);
    check_ok(f, read_plan(&s, s.plan->data, (size_t)s.plan->size, &arena, &plan));
    make_room(&plan);
    edit(user, &plan);
    uir_plan_write(&plan, &bytes);
    s.plan->data = (const unsigned char *)bytes.data;
    s.plan->size = bytes.length;
    f->forged.length = 0;
    check_ok(f, uir_package_write(s.list, s.count, &f->forged));
    uir_text_deinit(&bytes);
    uir_arena_deinit(&arena);
}

uir_status fixture_open_forged(fixture *f, const uir_package_options *options, plan_edit *edit, void *user,
                               uir_package **out_package) {
    fixture_forge(f, edit, user);
    return uir_package_open(f->forged.data, f->forged.length, options, &f->allocator, &f->diagnostics, out_package);
}

void compare_with_interpreter(fixture *f, uir_runtime *r, const array *inputs, uint32_t count) {
    uir_datum *in[8], *out[8] = {0};
    uint32_t outputs = uir_graph_get(f->module, f->module->main)->outputs.count;
    assert_true(count <= 8 && outputs <= 8);
    for (uint32_t i = 0; i < count; i++) {
        const array *a = &inputs[i];
        uir_tensor *tensor;
        check_ok(f, uir_tensor_create_borrowed(&f->allocator, a->dtype, a->rank, a->shape, a->data, &tensor));
        check_ok(f, uir_datum_create_tensor(&f->allocator, tensor, &in[i]));
        check_ok(f, uir_runtime_set_input(r, i, a->dtype, a->rank, a->shape, a->data));
    }
    check_ok(f, uir_module_interpret(f->module, &f->allocator, &f->diagnostics, NULL, in, count, out, outputs, NULL));
    check_ok(f, uir_runtime_run(r));
    for (uint32_t i = 0; i < outputs; i++) {
        uir_runtime_output got;
        const uir_tensor *wanted = out[i]->tensor;
        check_ok(f, uir_runtime_get_output(r, i, &got));
        assert_int_equal(got.dtype, wanted->dtype);
        assert_int_equal(got.rank, wanted->rank);
        for (uint32_t d = 0; d < got.rank; d++) assert_int_equal(got.shape[d], wanted->shape[d]);
        assert_int_equal(got.size, wanted->byte_size);
        if (got.size) assert_memory_equal(got.data, wanted->data, got.size);
        uir_datum_release(out[i]);
    }
    for (uint32_t i = 0; i < count; i++) uir_datum_release(in[i]);
}

void session_begin_forged(session *s, const char *module_text, const char *kernel_text, plan_edit *edit,
                          const uir_runtime_options *options, const uir_allocator *allocator) {
    fixture_init(&s->f);
    check_ok(&s->f, fixture_build(&s->f, module_text, kernel_text));
    check_ok(&s->f, edit ? fixture_open_forged(&s->f, &open_by_vm, edit, NULL, &s->package)
                         : fixture_open(&s->f, &s->f.allocator, &s->package));
    check_ok(&s->f, uir_runtime_create(s->package, options, allocator ? allocator : &s->f.allocator, &s->f.diagnostics,
                                       &s->r));
}

void session_begin(session *s, const char *module_text, const char *kernel_text, const uir_runtime_options *options) {
    session_begin_forged(s, module_text, kernel_text, NULL, options, NULL);
}

void session_end(session *s) {
    uir_runtime_destroy(s->r);
    uir_package_close(s->package);
    fixture_deinit(&s->f);
}

void session_set(session *s, uint32_t index, int64_t count, const float *data) {
    check_ok(&s->f, uir_runtime_set_input(s->r, index, UIR_DTYPE_F32, 1, &count, data));
}

uir_plan_step *nth_step(uir_plan *plan, uint32_t kind, uint32_t n) {
    for (uint32_t i = 0; i < plan->steps_count; i++)
        if (plan->steps[i].kind == kind && n-- == 0) return &plan->steps[i];
    fail_msg("the plan has no such step of kind %u", kind);
    return NULL;
}

uir_plan_step *step_of(uir_plan *plan, uint32_t kind) {
    return nth_step(plan, kind, 0);
}

uint32_t *word_of(uir_plan *plan, uir_plan_list list, uint32_t i) {
    return &plan->words[list.first + i].value;
}
