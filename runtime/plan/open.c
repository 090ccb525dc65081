/* Opening a package: sections, plan, kernels of every format, ports. */
#include "runtime/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A module that a format gave, kept until the package is closed. */
struct uir_rt_loaded {
    struct uir_rt_loaded *next;
    const uir_kernel_format *format;
    uir_loaded_module *module;
    void *copy; /* of an attached object */
    size_t copy_size;
    uir_rt_kernels kernels; /* with its array after it */
    size_t size;
};

const uir_package_section *uir_rt_find_section(const uir_package *p, uir_package_section_kind kind, uint32_t index) {
    for (uint32_t i = 0; i < p->section_count; i++) {
        if (p->sections[i].kind == (uint32_t)kind && p->sections[i].index == index) return &p->sections[i];
    }
    return NULL;
}

/* ---- kernels ---- */
/* What the variant's launches give; `writable` has room for the most pointers. */
static uir_kernel_entry describe_variant(const uir_plan *plan, const uir_plan_variant *v, bool *writable) {
    uir_kernel_entry e = {.offset = (size_t)v->code_offset,
                          .size = (size_t)v->code_size,
                          .pointer_count = v->pointer_count,
                          .phase_count = v->phase_count,
                          .writable = writable};
    for (uint32_t s = 0; s < v->symbol_count; s++) {
        e.dim_count += plan->kernel_symbols[v->first_symbol + s].kind == UIR_PLAN_DIM;
        e.tile_count += plan->kernel_symbols[v->first_symbol + s].kind == UIR_PLAN_TILE;
    }
    for (uint32_t n = 0; n < v->pointer_count; n++) {
        uint32_t role = plan->pointers[v->first_pointer + n].role;
        writable[n] = role == UIR_PLAN_OUT || role == UIR_PLAN_WORK;
    }
    return e;
}

/* What is looked for in an image. */
typedef struct kernel_search {
    const uir_package *p;
    const uir_rt_search *what;
    uir_diagnostics *diagnostics;
    uint64_t left;   /* bytes of code that no variant has had */
    uint32_t *first; /* by offset of the code, hashed: the variant that was the first to have it, + 1 */
    uint32_t mask;
} kernel_search;

static uir_status find_native(kernel_search *s, uint32_t id, const uir_plan_variant *v) {
    const uir_plan *plan = &s->p->plan;
    bool writable[UIR_PLAN_MAX_POINTERS];
    uint32_t name = uir_plan_get_word(plan, v->native_names, s->what->native);
    uir_kernel_entry e = describe_variant(plan, v, writable);
    e.symbol = s->what->symbols ? s->what->symbols[id] : name == UIR_PLAN_NONE ? NULL : uir_plan_get_text(plan, name);
    if (!e.symbol || v->scratch == UIR_PLAN_NONE) return UIR_STATUS_OK;
    return s->what->find(s->what->user, id, UIR_PLAN_NONE, &e, s->diagnostics);
}

/* Bytecode is decoded once, whichever variants share it, and no byte of it twice. */
static uir_status find_code(kernel_search *s, uint32_t id, const uir_plan_variant *v) {
    const uir_plan *plan = &s->p->plan;
    const char *fault = "the code of two kernels overlaps";
    bool writable[UIR_PLAN_MAX_POINTERS], others[UIR_PLAN_MAX_POINTERS];
    uir_kernel_entry e = describe_variant(plan, v, writable);
    uint32_t at = (uint32_t)uir_package_hash(&v->code_offset, sizeof v->code_offset) & s->mask;
    if (!v->code_size) return UIR_STATUS_OK;
    while (s->first[at] && plan->variants[s->first[at] - 1].code_offset != v->code_offset) at = (at + 1) & s->mask;
    if (s->first[at]) {
        uir_kernel_entry other = describe_variant(plan, &plan->variants[s->first[at] - 1], others);
        if (other.size == e.size && other.dim_count == e.dim_count && other.tile_count == e.tile_count &&
            other.pointer_count == e.pointer_count && other.phase_count == e.phase_count &&
            !memcmp(others, writable, e.pointer_count * sizeof *writable))
            return s->what->find(s->what->user, id, s->first[at] - 1, &e, s->diagnostics);
        fault = "two kernels use the same code in different ways";
    } else if (e.size <= s->left) {
        s->left -= e.size;
        s->first[at] = id + 1;
        return s->what->find(s->what->user, id, UIR_PLAN_NONE, &e, s->diagnostics);
    }
    return uir_error(s->diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package's plan: %s", fault);
}

uir_status uir_rt_find_kernels(const uir_package *p, const uir_rt_search *what, uir_diagnostics *diagnostics) {
    const uir_plan *plan = &p->plan;
    uir_status status = UIR_STATUS_OK;
    size_t capacity = 4;
    while (capacity < 2 * (size_t)plan->variants_count) capacity *= 2;
    kernel_search s = {p, what, diagnostics, what->code_size, NULL, (uint32_t)(capacity - 1)};
    UIR_TRY_ALLOCATE(s.first, uir_allocate_zeroed(&p->allocator, capacity * sizeof *s.first));
    for (uint32_t k = 0; k < plan->kernels_count; k++) {
        for (uint32_t i = 0; i < plan->kernels[k].variant_count && status == UIR_STATUS_OK; i++) {
            uint32_t id = plan->kernels[k].first_variant + i;
            if (!uir_plan_variant_runs(plan, id, what->domain)) continue; /* code of another machine */
            if (what->has(what->user, id)) continue;                      /* shared by two kernels */
            status = what->native != UIR_PLAN_NONE ? find_native(&s, id, &plan->variants[id])
                                                   : find_code(&s, id, &plan->variants[id]);
        }
    }
    uir_release(&p->allocator, s.first, capacity * sizeof *s.first);
    return status;
}

static bool has_kernel(void *user, uint32_t variant) {
    return ((struct uir_rt_loaded *)user)->kernels.variants[variant] != NULL;
}

static uir_status find_kernel(void *user, uint32_t variant, uint32_t same, const uir_kernel_entry *entry,
                              uir_diagnostics *diagnostics) {
    struct uir_rt_loaded *l = user;
    const uir_loaded_kernel **variants = l->kernels.variants;
    if (same == UIR_PLAN_NONE) return l->format->find(l->module, entry, diagnostics, &variants[variant]);
    variants[variant] = variants[same];
    return UIR_STATUS_OK;
}

static void unload(const uir_allocator *allocator, struct uir_rt_loaded *l) {
    if (l->module) l->format->unload(l->module);
    if (l->copy) uir_release(allocator, l->copy, l->copy_size);
    uir_release(allocator, l, l->size);
}

/* Loads an image with format `index` and publishes its kernels. `copy`: the image is kept by the package. */
static uir_status load_image(uir_package *p, uint32_t index, const uir_kernel_image *image, uint32_t native,
                             const char *const *symbols, bool copy, uir_diagnostics *diagnostics) {
    const uir_kernel_format *format = p->formats[index];
    size_t size = sizeof(struct uir_rt_loaded) + ((size_t)p->plan.variants_count + 1) * sizeof(void *);
    struct uir_rt_loaded *l;
    uir_kernel_image kept = *image;
    UIR_TRY_ALLOCATE(l, uir_allocate_zeroed(&p->allocator, size));
    l->size = size;
    l->format = l->kernels.format = format;
    l->kernels.variants = (const uir_loaded_kernel **)(void *)(l + 1);
    l->kernels.rank = format->rank && image->isa ? format->rank(image->isa) : 0;
    uir_status status = UIR_STATUS_OK;
    if (copy) {
        l->copy_size = image->size;
        l->copy = uir_allocate(&p->allocator, image->size);
        if (!l->copy) status = UIR_STATUS_OUT_OF_MEMORY;
        if (l->copy) memcpy(l->copy, image->bytes, image->size);
        kept.bytes = l->copy;
    }
    if (status == UIR_STATUS_OK) status = format->load(&p->allocator, &kept, diagnostics, &l->module);
    const uir_rt_search what = {find_kernel, has_kernel, l, UIR_PLAN_ON_HOST, image->isa ? native : UIR_PLAN_NONE,
                                symbols,     image->size};
    if (status == UIR_STATUS_OK) status = uir_rt_find_kernels(p, &what, diagnostics);
    if (status != UIR_STATUS_OK) {
        unload(&p->allocator, l);
        return status;
    }
    l->next = p->loaded;
    p->loaded = l;
    atomic_store_explicit(&p->kernels[index], &l->kernels, memory_order_release);
    return UIR_STATUS_OK;
}

/* ---- native code ---- */
/* Kept for those who ask, and said. */
static uir_status explain_not_native(uir_package *p, uir_diagnostics *diagnostics, const char *format, ...)
    UIR_PRINTF(3, 4);
static uir_status explain_not_native(uir_package *p, uir_diagnostics *diagnostics, const char *format, ...) {
    char text[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    UIR_TRY_ALLOCATE(p->not_native, uir_arena_copy_string(&p->arena, text, strlen(text)));
    uir_warning(diagnostics, NULL, "%s; the VM runs the kernels instead, many times slower", text);
    return UIR_STATUS_OK;
}

bool uir_package_get_native(const uir_package *p, uint32_t index, uir_package_native *out_native) {
    for (uint32_t i = 0; i < p->plan.natives_count; i++) {
        const uir_plan_native *n = &p->plan.natives[i];
        const uir_package_section *s =
            n->section == UIR_PLAN_NONE ? NULL : uir_rt_find_section(p, UIR_PACKAGE_NATIVE, n->section);
        if (!s || index-- > 0) continue;
        *out_native = (uir_package_native){.isa = uir_plan_get_text(&p->plan, n->isa), .size = (size_t)s->size};
        for (uint32_t d = 0; d < p->format_count; d++)
            out_native->runs_here |= p->formats[d]->native && p->formats[d]->rank(out_native->isa);
        if (p->device.code) out_native->runs_here |= p->device.driver->rank(p->device.device, out_native->isa) > 0;
        return true;
    }
    return false;
}

const char *uir_package_explain_not_native(const uir_package *p) {
    return p->not_native ? p->not_native : "";
}

/* None of its objects is for this machine; nothing to say where it has none. */
static uir_status explain_custom(uir_package *p, uir_diagnostics *diagnostics) {
    uir_package_native native;
    char isas[200] = "";
    size_t used = 0;
    for (uint32_t i = 0; uir_package_get_native(p, i, &native) && used < sizeof isas; i++)
        used += (size_t)snprintf(isas + used, sizeof isas - used, "%s%s", i ? ", " : "", native.isa);
    if (!used) return UIR_STATUS_OK;
    return explain_not_native(p, diagnostics,
                              "the package has native code for %s only, which this machine does not run", isas);
}

/* The package's object that this machine runs best; what cannot be loaded leaves the kernels to the next format. */
static uir_status load_native(uir_package *p, uint32_t index, uir_diagnostics *diagnostics) {
    uint32_t best = 0, best_rank = 0;
    for (uint32_t i = 0; i < p->plan.natives_count; i++) {
        const uir_plan_native *n = &p->plan.natives[i];
        uint32_t rank = n->section == UIR_PLAN_NONE ? 0 : p->formats[index]->rank(uir_plan_get_text(&p->plan, n->isa));
        if (rank > best_rank) best = i, best_rank = rank;
    }
    if (!best_rank && p->plan.devices_count) return UIR_STATUS_OK; /* its objects are the device's */
    if (!best_rank) return explain_custom(p, diagnostics);
    const uir_plan_native *n = &p->plan.natives[best];
    const uir_package_section *s = uir_rt_find_section(p, UIR_PACKAGE_NATIVE, n->section);
    if (!s) return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package lacks a native object");
    uir_kernel_image image = {uir_plan_get_text(&p->plan, n->isa), s->data, (size_t)s->size};
    uir_diagnostics said;
    uir_diagnostics_init(&said, &p->allocator);
    uir_status status = load_image(p, index, &image, best, NULL, false, &said);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_OUT_OF_MEMORY) {
        const char *why = said.first ? said.first->message : uir_status_text(status);
        const char *hint = said.first && said.first->hint ? said.first->hint : "";
        status = explain_not_native(p, diagnostics, "the package's kernels for %s: %s%s%s%s", image.isa, why,
                                    *hint ? " (" : "", hint, *hint ? ")" : "");
    }
    uir_diagnostics_deinit(&said);
    return status;
}

static uir_status load_kernels(uir_package *p, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < p->format_count; i++) {
        if (p->formats[i]->native) {
            if (p->trusted) UIR_TRY(load_native(p, i, diagnostics));
            continue;
        }
        const uir_package_section *code = uir_rt_find_section(p, UIR_PACKAGE_CODE, 0);
        if (!code) continue;
        uir_kernel_image image = {NULL, code->data, (size_t)code->size};
        UIR_TRY(load_image(p, i, &image, 0, NULL, false, diagnostics));
    }
    for (uint32_t k = 0; k < p->plan.kernels_count; k++) {
        for (uint32_t v = 0; v < p->plan.kernels[k].variant_count; v++) {
            uint32_t id = p->plan.kernels[k].first_variant + v;
            bool found = p->analysis.kernels[k].on_host ? !uir_plan_variant_runs(&p->plan, id, UIR_PLAN_ON_HOST)
                                                        : uir_plan_variant_runs(&p->plan, id, UIR_PLAN_ON_DEVICE);
            for (uint32_t i = 0; i < p->format_count; i++) {
                const uir_rt_kernels *kernels = atomic_load(&p->kernels[i]);
                found |= kernels && kernels->variants[id];
            }
            if (!found)
                return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                                 "no kernel format can run kernel @%s of the package",
                                 uir_plan_get_text(&p->plan, p->plan.kernels[k].name));
        }
    }
    return uir_rt_device_load(p, diagnostics);
}

uir_status uir_package_attach_native(uir_package *p, const char *isa, const void *object, size_t size,
                                     const char *const *symbols, uir_diagnostics *diagnostics) {
    uir_status status = UIR_STATUS_NOT_FOUND;
    uir_kernel_image image = {isa, object, size};
    while (atomic_flag_test_and_set_explicit(&p->lock, memory_order_acquire)) {
    }
    for (uint32_t n = 0; n < p->plan.natives_count && status == UIR_STATUS_NOT_FOUND; n++) {
        if (strcmp(uir_plan_get_text(&p->plan, p->plan.natives[n].isa), isa)) continue;
        for (uint32_t i = 0; i < p->format_count; i++) {
            if (!p->formats[i]->native || !p->formats[i]->rank(isa)) continue;
            status = load_image(p, i, &image, n, symbols, true, diagnostics);
            break;
        }
    }
    atomic_flag_clear_explicit(&p->lock, memory_order_release);
    if (status == UIR_STATUS_NOT_FOUND)
        return uir_error(diagnostics, status, NULL,
                         "the package has no kernels for '%s', or this machine cannot run them", isa);
    return status;
}

bool uir_package_is_native(const uir_package *p) {
    for (uint32_t k = 0; k < p->plan.kernels_count; k++) {
        for (uint32_t v = 0; v < p->plan.kernels[k].variant_count; v++) {
            bool found = false;
            for (uint32_t i = 0; i < p->format_count; i++) {
                const uir_rt_kernels *kernels = atomic_load_explicit(&p->kernels[i], memory_order_acquire);
                found |= p->formats[i]->native && kernels && kernels->variants[p->plan.kernels[k].first_variant + v];
            }
            if (!found) return false;
        }
    }
    return true;
}

/* ---- weights ---- */
uir_status uir_rt_verify_constant(uir_package *p, uint32_t i, uir_diagnostics *diagnostics) {
    const uir_plan_constant *c = &p->plan.constants[i];
    if (atomic_load_explicit(&p->verified[i], memory_order_acquire)) return UIR_STATUS_OK;
    if (uir_package_hash(p->weights + c->offset, (size_t)c->size) != c->hash)
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "compile the model again",
                              "the package is damaged: the hash of constant %u does not match", i);
    atomic_store_explicit(&p->verified[i], true, memory_order_release);
    return UIR_STATUS_OK;
}

/* Constants follow one another in the weights with zeros between, so that every byte of them is in a hash or known. */
static uir_status check_weights(const uir_package *p, const uir_package_section *s, uir_diagnostics *diagnostics) {
    uint64_t at = 0, end = s ? s->size : 0;
    for (uint32_t i = 0; i <= p->plan.constants_count; i++) {
        uint64_t next = i < p->plan.constants_count ? p->plan.constants[i].offset : end;
        if (next < at || next - at >= RT_ALIGN) /* offsets are aligned: the next one that can be */
            return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL,
                             "the package's constants overlap or are not contiguous");
        for (; at < next; at++) {
            if (s->data[at])
                return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL,
                                 "the package is damaged between its constants");
        }
        if (i < p->plan.constants_count) at += p->plan.constants[i].size;
    }
    return UIR_STATUS_OK;
}

/* ---- ports ---- */
static uir_status make_port(uir_package *p, const uir_plan_port *port, uint32_t index) {
    uint32_t rank = port->dim_names.count;
    int64_t *dims;
    const char **names;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&p->arena, (size_t)rank + 1, sizeof *dims));
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&p->arena, (size_t)rank + 1, sizeof *names));
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t e = uir_plan_get_word(&p->plan, p->plan.tensors[port->tensor].extents, d);
        const uir_plan_operation *o = &p->plan.operations[p->plan.expressions[e].first];
        dims[d] = p->plan.expressions[e].count == 1 && o->kind == UIR_DIM_CONST ? o->value : -1;
        names[d] = uir_plan_get_text(&p->plan, uir_plan_get_word(&p->plan, port->dim_names, d));
    }
    p->port_dims[index] = dims;
    p->port_names[index] = names;
    return UIR_STATUS_OK;
}

static uir_package_port get_port(const uir_package *p, const uir_plan_port *port, uint32_t index) {
    return (uir_package_port){uir_plan_get_text(&p->plan, port->name), (uir_dtype)p->plan.tensors[port->tensor].dtype,
                              port->dim_names.count, p->port_dims[index], p->port_names[index]};
}

uint32_t uir_package_input_count(const uir_package *p) {
    return p->plan.inputs_count;
}
uint32_t uir_package_output_count(const uir_package *p) {
    return p->plan.outputs_count;
}
uir_package_port uir_package_get_input(const uir_package *p, uint32_t index) {
    return get_port(p, &p->plan.inputs[index], index);
}
uir_package_port uir_package_get_output(const uir_package *p, uint32_t index) {
    return get_port(p, &p->plan.outputs[index], p->plan.inputs_count + index);
}

bool uir_package_get_metadata_at(const uir_package *p, uint32_t index, const char **out_key, const char **out_value) {
    if (index >= p->plan.metadata_count) return false;
    *out_key = uir_plan_get_text(&p->plan, p->plan.metadata[index].key);
    *out_value = uir_plan_get_text(&p->plan, p->plan.metadata[index].value);
    return true;
}

static uir_status join_names(uir_package *p) {
    const uir_plan *plan = &p->plan;
    UIR_TRY_ALLOCATE(p->node_names,
                     uir_arena_allocate_array(&p->arena, (size_t)plan->nodes_count + 1, sizeof *p->node_names));
    for (uint32_t i = 0; i < plan->nodes_count; i++) {
        const uir_plan_node *n = &plan->nodes[i];
        size_t place = plan->texts[n->place].count, length = plan->texts[n->name].count;
        char *name;
        p->node_names[i] = uir_plan_get_text(plan, n->name);
        if (!place) continue;
        UIR_TRY_ALLOCATE(name, uir_arena_allocate(&p->arena, place + length + 1));
        memcpy(name, uir_plan_get_text(plan, n->place), place);
        memcpy(name + place, p->node_names[i], length + 1);
        p->node_names[i] = name;
    }
    return UIR_STATUS_OK;
}

/* Lists of steps are known to name nodes that there are. */
static uir_status find_node_steps(uir_package *p) {
    const uir_plan *plan = &p->plan;
    UIR_TRY_ALLOCATE(p->node_steps,
                     uir_arena_allocate_array(&p->arena, (size_t)plan->nodes_count + 1, sizeof *p->node_steps));
    for (uint32_t i = plan->steps_count; i-- > 0;)
        for (uint32_t k = 0; k < plan->steps[i].nodes.count; k++)
            p->node_steps[uir_plan_get_word(plan, plan->steps[i].nodes, k) / 2] = i + 1;
    return UIR_STATUS_OK;
}

bool uir_package_get_node(const uir_package *p, uint32_t index, uir_package_node *out) {
    if (index >= p->plan.nodes_count) return false;
    const uir_plan_node *n = &p->plan.nodes[index];
    uint32_t step = p->node_steps[index];
    uint32_t into = n->became / UIR_PLAN_FATES;
    *out = (uir_package_node){.name = p->node_names[index],
                              .op = uir_plan_get_text(&p->plan, n->op),
                              .fate = (uir_fate)(n->became % UIR_PLAN_FATES),
                              .into = into ? into - 1 : UINT32_MAX,
                              .step = step ? uir_plan_get_step_row(p->plan.steps[step - 1].kind)->name : ""};
    return true;
}

uir_package_facts uir_package_get_facts(const uir_package *p) {
    const uir_package_section *weights = uir_rt_find_section(p, UIR_PACKAGE_WEIGHTS, 0);
    uir_package_facts facts = {.version = p->version,
                               .kernels = p->plan.kernels_count,
                               .variants = p->plan.variants_count,
                               .steps = p->plan.steps_count,
                               .launches = p->analysis.launch_count,
                               .constants = p->plan.constants_count,
                               .weight_bytes = weights ? weights->size : 0};
    for (uint32_t i = 0; i < p->section_count; i++) facts.native_objects += p->sections[i].kind == UIR_PACKAGE_NATIVE;
    return facts;
}

/* ---- open and close ---- */
/* That there is every host operator. */
static uir_status check_host(const uir_package *p, uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < p->plan.steps_count; i++) {
        const uir_plan_step *s = &p->plan.steps[i];
        if (s->kind == UIR_PLAN_STEP_HOST && !uir_rt_host_find(uir_plan_get_text(&p->plan, s->target)))
            return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "this runtime has no host operator '%s'",
                             uir_plan_get_text(&p->plan, s->target));
        if (s->kind == UIR_PLAN_STEP_HOST && !p->custom && !strcmp(uir_plan_get_text(&p->plan, s->target), "custom"))
            return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                             "node '%s', which has no kernel, runs only in the compiler that made the package",
                             uir_plan_get_text(&p->plan, s->node));
    }
    return UIR_STATUS_OK;
}

static uir_status open_parts(uir_package *p, const void *bytes, size_t size, uir_diagnostics *diagnostics) {
    UIR_TRY(uir_package_read(bytes, size, diagnostics, p->sections, &p->section_count));
    p->version = uir_package_get_version(bytes);
    const uir_package_section *plan = uir_rt_find_section(p, UIR_PACKAGE_PLAN, 0),
                              *code = uir_rt_find_section(p, UIR_PACKAGE_CODE, 0),
                              *weights = uir_rt_find_section(p, UIR_PACKAGE_WEIGHTS, 0);
    uint32_t natives = 0;
    for (uint32_t i = 0; i < p->section_count; i++) natives += p->sections[i].kind == UIR_PACKAGE_NATIVE;
    if (!plan) return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL, "the package has no plan");
    UIR_TRY(uir_plan_read(&p->arena, plan->data, (size_t)plan->size, code ? code->size : 0, weights ? weights->size : 0,
                          natives, diagnostics, &p->plan));
    p->weights = weights ? weights->data : (const unsigned char *)bytes;
    UIR_TRY(check_weights(p, weights, diagnostics));
    UIR_TRY(uir_rt_analyse(&p->arena, &p->plan, diagnostics, &p->analysis));
    UIR_TRY(check_host(p, diagnostics));
    UIR_TRY(uir_rt_verify(&p->arena, &p->plan, diagnostics, &p->analysis));
    UIR_TRY(uir_rt_find_homes(&p->arena, &p->plan, &p->analysis));
    size_t ports = (size_t)p->plan.inputs_count + p->plan.outputs_count;
    UIR_TRY_ALLOCATE(p->verified,
                     uir_arena_allocate_array(&p->arena, (size_t)p->plan.constants_count + 1, sizeof *p->verified));
    UIR_TRY_ALLOCATE(p->port_dims, uir_arena_allocate_array(&p->arena, ports + 1, sizeof *p->port_dims));
    UIR_TRY_ALLOCATE(p->port_names, uir_arena_allocate_array(&p->arena, ports + 1, sizeof *p->port_names));
    for (uint32_t i = 0; i < p->plan.inputs_count; i++) UIR_TRY(make_port(p, &p->plan.inputs[i], i));
    for (uint32_t i = 0; i < p->plan.outputs_count; i++)
        UIR_TRY(make_port(p, &p->plan.outputs[i], p->plan.inputs_count + i));
    UIR_TRY(join_names(p));
    UIR_TRY(find_node_steps(p));
    return load_kernels(p, diagnostics);
}

static void name_makers(uir_package *p, const void *bytes, size_t size, bool is_signed) {
    const unsigned char *key = (const unsigned char *)bytes + size + UIR_SIGNATURE_KEY_AT;
    uir_package_describe_maker(bytes, p->maker, sizeof p->maker);
    for (size_t i = 0; is_signed && i < UIR_SIGNATURE_KEY_SIZE; i++) snprintf(p->signer + 2 * i, 3, "%02x", key[i]);
}

const char *uir_package_get_maker(const uir_package *p) {
    return p->maker;
}

const char *uir_package_get_signer(const uir_package *p) {
    return p->signer;
}

uir_status uir_package_open(const void *bytes, size_t size, const uir_package_options *options,
                            const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_package **out_package) {
    uir_package *p;
    *out_package = NULL;
    if (options->format_count == 0 || options->format_count > RT_MAX_FORMATS || (uintptr_t)bytes % RT_ALIGN)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "a package requires 1 to %d formats and bytes aligned to %d", RT_MAX_FORMATS, RT_ALIGN);
    UIR_TRY_ALLOCATE(p, uir_allocate_zeroed(allocator, sizeof *p));
    p->allocator = *allocator;
    uir_arena_init(&p->arena, &p->allocator);
    p->format_count = options->format_count;
    p->trusted = options->trusted;
    p->custom = options->custom;
    p->no_fallback = options->no_fallback;
    p->custom_user = options->custom_user;
    p->pictures = options->pictures;
    p->device.driver = options->driver;
    p->device.device = options->device;
    p->device.keeper = options->keeper;
    p->device.loaded = options->loaded;
    p->device.loaded_user = options->loaded_user;
    atomic_store(&p->all_verified, options->checked);
    memcpy(p->formats, options->formats, options->format_count * sizeof *p->formats);
    atomic_flag_clear(&p->lock);
    size_t own = uir_package_skip_signature(bytes, size);
    uir_status status = open_parts(p, bytes, own, diagnostics);
    if (status == UIR_STATUS_OK) name_makers(p, bytes, own, own < size);
    if (status != UIR_STATUS_OK) {
        uir_package_close(p);
        return status;
    }
    *out_package = p;
    return UIR_STATUS_OK;
}

static uir_status take_file(const char *path, const uir_package_options *options, const uir_allocator *allocator,
                            uir_diagnostics *diagnostics, uir_file *out_file, int *out_descriptor) {
    const char *why;
    /* Not blocking: opening a pipe would otherwise wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return uir_error(diagnostics, UIR_STATUS_NOT_FOUND, NULL, "%s: the file cannot be opened: %s", path,
                         uir_file_explain(errno));
    uir_status status = uir_file_take(descriptor, options->copy || options->vouch, allocator, out_file, &why);
    if (status == UIR_STATUS_OK && !out_file->size) status = UIR_STATUS_BAD_FILE, why = "it is empty";
    *out_descriptor = out_file->mapped ? descriptor : -1;
    if (!out_file->mapped) close(descriptor);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY) return status;
    return uir_error(diagnostics, status, NULL, "%s: the file cannot be read: %s", path, why);
}

static void release_file(uir_file *file, int descriptor, const uir_allocator *allocator) {
    if (file->mapped) close(descriptor);
    uir_file_release(file, allocator);
}

uir_status uir_package_open_file(const char *path, const uir_package_options *options, const uir_allocator *allocator,
                                 uir_diagnostics *diagnostics, uir_package **out_package) {
    uir_file file;
    int descriptor = -1;
    uir_package_options o = *options;
    *out_package = NULL;
    UIR_TRY(take_file(path, options, allocator, diagnostics, &file, &descriptor));
    uir_status status = o.vouch ? o.vouch(o.vouch_user, file.data, (size_t)file.size, diagnostics) : UIR_STATUS_OK;
    o.trusted |= o.vouch != NULL;
    if (status == UIR_STATUS_OK)
        status = uir_package_open(file.data, (size_t)file.size, &o, allocator, diagnostics, out_package);
    if (status != UIR_STATUS_OK) {
        release_file(&file, descriptor, allocator);
        return status;
    }
    uir_package *p = *out_package;
    p->file = file;
    p->descriptor = descriptor;
    p->path = uir_arena_copy_string(&p->arena, path, strlen(path));
    if (p->path) return UIR_STATUS_OK;
    uir_package_close(p);
    *out_package = NULL;
    return UIR_STATUS_OUT_OF_MEMORY;
}

uir_status uir_package_check_file(const uir_package *p, uir_diagnostics *diagnostics) {
    if (!p->file.mapped || uir_file_is_unchanged(&p->file, p->descriptor)) return UIR_STATUS_OK;
    return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, &(uir_location){.file = p->path},
                          "open the package again; use --no-map if the file may change",
                          "the package has changed since it was opened");
}

void uir_package_close(uir_package *p) {
    if (!p) return;
    uir_allocator allocator = p->allocator;
    uir_rt_device_unload(p);
    while (p->loaded) {
        struct uir_rt_loaded *next = p->loaded->next;
        unload(&allocator, p->loaded);
        p->loaded = next;
    }
    release_file(&p->file, p->descriptor, &allocator);
    uir_arena_deinit(&p->arena);
    uir_release(&allocator, p, sizeof *p);
}
