/* Printing a module. Names are chosen on first walks, so that every value and size has one that is unique. */
#include "ir/graph/graph_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct printer {
    const uir_module *module;
    uir_text *text;
    const uir_print_options *options;
    uir_arena arena;
    uir_strings names;      /* taken by values */
    uir_string *value_name; /* by value; id 0: none chosen yet */
    uir_strings size_names; /* taken by sizes */
    uir_dims *sizes;        /* the module's dims again, with unique names */
    uir_dim *size_of;       /* by symbol of the module: none when unused */
    bool *size_used;        /* by symbol */
    uir_vector(uir_dim) memo;
    bool names_unnamed; /* the walk's turn */
    uint32_t unnamed;
} printer;

/* ---- tensors as text ---- */

uint64_t uir_element_bits(const uir_tensor *tensor, uint64_t index) {
    uint32_t bits = uir_dtype_bits(tensor->dtype);
    const uint8_t *data = tensor->data;
    uint64_t value = 0;
    if (bits < 8) return (uint64_t)data[index * bits / 8] >> (index * bits % 8) & ((1u << bits) - 1);
    memcpy(&value, data + index * (bits / 8), bits / 8);
    return value;
}

void uir_set_element_bits(uir_tensor *tensor, uint64_t index, uint64_t value) {
    uint32_t bits = uir_dtype_bits(tensor->dtype);
    uint8_t *data = tensor->data;
    if (bits < 8) {
        uint32_t shift = (uint32_t)(index * bits % 8), mask = ((1u << bits) - 1) << shift;
        uint8_t *at = &data[index * bits / 8];
        *at = (uint8_t)((*at & ~mask) | ((uint32_t)value << shift & mask));
        return;
    }
    memcpy(data + index * (bits / 8), &value, bits / 8);
}

uir_tensor uir_tensor_as_written(const uir_tensor *tensor) {
    uir_tensor view = *tensor;
    if (uir_dtype_get_class(tensor->dtype) != UIR_DTYPE_CLASS_COMPLEX) return view;
    view.dtype = tensor->dtype == UIR_DTYPE_C64 ? UIR_DTYPE_F32 : UIR_DTYPE_F64;
    view.element_count *= 2;
    return view;
}

uint64_t uir_tensor_hash(const uir_tensor *tensor) {
    uint64_t hash = uir_hash(tensor->shape, tensor->rank * sizeof *tensor->shape, (uint64_t)tensor->dtype);
    if (tensor->dtype != UIR_DTYPE_STRING) return uir_hash(tensor->data, tensor->byte_size, hash);
    const uir_string_view *views = tensor->data;
    for (uint64_t i = 0; i < tensor->element_count; i++) hash = uir_hash(views[i].text, views[i].length, hash + 1);
    return hash;
}

static void print_element(uir_text *text, const uir_tensor *tensor, uint64_t index) {
    uir_dtype_class class = uir_dtype_get_class(tensor->dtype);
    if (class == UIR_DTYPE_CLASS_STRING) {
        const uir_string_view *view = (const uir_string_view *)tensor->data + index;
        uir_text_append_quoted(text, view->text, view->length);
        return;
    }
    if (class != UIR_DTYPE_CLASS_FLOAT) {
        uir_text_append_format(text, "%lld", (long long)uir_dtype_load_integer(tensor->dtype, tensor->data, index));
        return;
    }
    double value = uir_dtype_load_double(tensor->dtype, tensor->data, index);
    if (isnan(value)) {
        uint64_t usual = 0, bits = uir_element_bits(tensor, index);
        uir_dtype_store_double(tensor->dtype, &usual, 0, NAN, UIR_ROUND_NEAREST_EVEN);
        uir_text_append_string(text, "nan");
        if (bits != usual) uir_text_append_format(text, "(%lld)", (long long)bits);
    } else if (tensor->dtype == UIR_DTYPE_F32) {
        uir_text_append_float(text, (float)value);
    } else { /* exact: not every type rounds what it reads to nearest */
        uir_text_append_double(text, value);
    }
}

static void print_elements(printer *p, const uir_tensor *tensor) {
    uir_tensor view = uir_tensor_as_written(tensor);
    const uir_print_options *options = p->options;
    if (view.element_count > options->inline_limit && (!options->elide || options->elide(options->user, tensor))) {
        uir_text_append_format(p->text, "hash \"%016llx\"", (unsigned long long)uir_tensor_hash(tensor));
        return;
    }
    bool same = view.element_count > 4 && view.element_count <= UIR_MAX_SPLAT && view.dtype != UIR_DTYPE_STRING &&
                view.dtype == tensor->dtype;
    for (uint64_t i = 1; same && i < view.element_count; i++)
        same = uir_element_bits(&view, i) == uir_element_bits(&view, 0);
    if (same) {
        uir_text_append_string(p->text, "splat ");
        print_element(p->text, &view, 0);
        return;
    }
    uir_text_append_string(p->text, "[");
    for (uint64_t i = 0; i < view.element_count && !p->text->failed; i++) {
        if (i) uir_text_append_string(p->text, ", ");
        print_element(p->text, &view, i);
    }
    uir_text_append_string(p->text, "]");
}

/* ---- names ---- */

static bool is_plain(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (!i || c < '0' || c > '9')) return false;
    }
    return length > 0;
}

enum { MAX_SHOWN = 60 };

/* A name that nobody has: `wish`, made plain if asked, with a number at its end when it is taken. */
static uir_status choose_name(uir_strings *taken, const char *wish, size_t length, bool plain, uir_string *out_name) {
    char buffer[MAX_SHOWN + 16];
    uir_string found;
    if (!plain && !uir_strings_find(taken, wish, length, &found))
        return uir_strings_intern(taken, wish, length, out_name);
    size_t shown = 0;
    if (plain && length && wish[0] >= '0' && wish[0] <= '9') buffer[shown++] = '_';
    for (size_t i = 0; i < length && shown < MAX_SHOWN; i++) {
        bool fine = is_plain(&wish[i], 1) || (wish[i] >= '0' && wish[i] <= '9');
        buffer[shown++] = fine || (!plain && wish[i]) ? wish[i] : '_';
    }
    if (!shown) buffer[shown++] = 'v';
    size_t whole = shown;
    for (uint32_t k = 2; uir_strings_find(taken, buffer, whole, &found); k++)
        whole = shown + (size_t)snprintf(buffer + shown, 16, "_%u", k);
    return uir_strings_intern(taken, buffer, whole, out_name);
}

bool uir_graph_is_number_name(const char *name, size_t length) {
    if (length < 2 || name[0] != 'v') return false;
    for (size_t i = 1; i < length; i++) {
        if (name[i] < '0' || name[i] > '9') return false;
    }
    return true;
}

/* Those that have a name get theirs first: what is called so for want of one must not stand in their way. */
static uir_status name_value(printer *p, uir_value_id value) {
    if (!value.id || p->value_name[value.id].id) return UIR_STATUS_OK;
    uir_string name = uir_value_info_get(p->module, value)->name;
    const char *wish = uir_string_text(&p->module->strings, name);
    size_t length = uir_string_length(&p->module->strings, name);
    char number[16];
    if (!length && !p->names_unnamed) return UIR_STATUS_OK;
    if (!length) {
        uir_string found;
        do { /* an unnamed one gets a plain name that is free, and is unnamed again when it is read back */
            length = (size_t)snprintf(number, sizeof number, "v%u", p->unnamed++);
        } while (uir_strings_find(&p->names, number, length, &found));
        wish = number;
    }
    return choose_name(&p->names, wish, length, true, &p->value_name[value.id]);
}

/* ---- dims ---- */

static void mark_size(void *user, uir_symbol symbol) {
    ((printer *)user)->size_used[symbol.id] = true;
}

static void mark_dims(printer *p, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (dims[i].id) uir_dim_visit_symbols(p->module->dims, dims[i], mark_size, p);
}

static uir_status copy_dim(printer *p, uir_dim dim, uir_dim *out_dim);

/* The dim built again, operand by operand, over the renamed sizes. */
static uir_status rebuild_dim(printer *p, uir_dim dim, uir_dim *out_dim) {
    static uir_dim (*const builders[])(uir_dims *, uir_dim, uir_dim) = {
        [UIR_DIM_ADD] = uir_dim_add,         [UIR_DIM_MUL] = uir_dim_mul, [UIR_DIM_FLOORDIV] = uir_dim_floordiv,
        [UIR_DIM_CEILDIV] = uir_dim_ceildiv, [UIR_DIM_MOD] = uir_dim_mod, [UIR_DIM_MIN] = uir_dim_min,
        [UIR_DIM_MAX] = uir_dim_max,
    };
    const uir_dim_node *node = uir_dim_get(p->module->dims, dim);
    if (node->kind == UIR_DIM_CONST) {
        *out_dim = uir_dim_const(p->sizes, node->value);
    } else if (node->kind == UIR_DIM_SYMBOL) {
        *out_dim = p->size_of[node->value];
    } else {
        UIR_TRY(copy_dim(p, node->operands[0], out_dim));
        for (uint32_t i = 1; i < node->count; i++) {
            uir_dim operand;
            UIR_TRY(copy_dim(p, node->operands[i], &operand));
            *out_dim = builders[node->kind](p->sizes, *out_dim, operand);
        }
    }
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static uir_status copy_dim(printer *p, uir_dim dim, uir_dim *out_dim) {
    while (p->memo.count <= dim.id) UIR_TRY(uir_vector_push(&p->arena, &p->memo, UIR_DIM_NONE));
    *out_dim = p->memo.data[dim.id];
    if (out_dim->id) return UIR_STATUS_OK;
    UIR_TRY(rebuild_dim(p, dim, out_dim));
    p->memo.data[dim.id] = *out_dim;
    return UIR_STATUS_OK;
}

static uir_status print_dim(printer *p, uir_dim dim) {
    uir_dim copy;
    UIR_TRY(copy_dim(p, dim, &copy));
    uir_dim_print(p->sizes, copy, p->text);
    return UIR_STATUS_OK;
}

static uir_status print_dims(printer *p, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) uir_text_append_string(p->text, ", ");
        UIR_TRY(print_dim(p, dims[i]));
    }
    return UIR_STATUS_OK;
}

/* Sizes in the order they were made; each that is used gets a unique name. */
static uir_status print_sizes(printer *p) {
    const uir_dims *dims = p->module->dims;
    uint32_t count = uir_dims_symbol_count(dims);
    for (uint32_t s = 0; s < count; s++) { /* a bound's sizes are used too; they were made earlier or later */
        uir_dim bound = uir_dims_symbol_facts(dims, (uir_symbol){s}).bound;
        if (p->size_used[s] && bound.id) mark_dims(p, &bound, 1);
    }
    for (uint32_t s = 0; s < count; s++) {
        if (!p->size_used[s]) continue;
        const char *wish = uir_dims_symbol_name(dims, (uir_symbol){s});
        uir_symbol_facts facts = uir_dims_symbol_facts(dims, (uir_symbol){s});
        uir_string name;
        uir_symbol symbol;
        UIR_TRY(choose_name(&p->size_names, wish, strlen(wish), false, &name));
        const char *chosen = uir_string_text(&p->size_names, name);
        facts.bound = UIR_DIM_NONE;
        UIR_TRY(uir_dims_add_symbol(p->sizes, chosen, uir_string_length(&p->size_names, name), facts, &symbol));
        p->size_of[s] = uir_dim_symbol(p->sizes, symbol);
        uir_text_append_string(p->text, "size ");
        uir_dim_print(p->sizes, p->size_of[s], p->text);
        if (facts.min != 0) uir_text_append_format(p->text, " min %lld", (long long)facts.min);
        if (facts.max != UIR_DIM_UNBOUNDED) uir_text_append_format(p->text, " max %lld", (long long)facts.max);
        if (facts.multiple_of > 1) uir_text_append_format(p->text, " multiple %lld", (long long)facts.multiple_of);
        uir_text_append_string(p->text, "\n");
    }
    for (uint32_t s = 0; s < count; s++) {
        uir_dim bound = uir_dims_symbol_facts(dims, (uir_symbol){s}).bound;
        if (!p->size_used[s] || !bound.id) continue;
        uir_text_append_string(p->text, "below ");
        uir_dim_print(p->sizes, p->size_of[s], p->text);
        uir_text_append_string(p->text, " ");
        UIR_TRY(print_dim(p, bound));
        uir_text_append_string(p->text, "\n");
        uir_symbol copy;
        uir_dim_is_symbol(p->sizes, p->size_of[s], &copy);
        uir_symbol_facts facts = uir_dims_symbol_facts(p->sizes, copy);
        UIR_TRY(copy_dim(p, bound, &facts.bound));
        uir_dims_set_symbol_facts(p->sizes, copy, facts);
    }
    return UIR_STATUS_OK;
}

/* ---- the first walks ---- */

static uir_status walk_graph(printer *p, uir_graph_id graph);

static uir_status walk_value(printer *p, uir_value_id value) {
    if (!value.id) return UIR_STATUS_OK;
    const uir_value_info *info = uir_value_info_get(p->module, value);
    if (info->type.rank_known) mark_dims(p, info->type.dims, info->type.rank);
    for (uint32_t d = 0; info->layout && d < info->type.rank; d++)
        for (uint32_t m = 0; m < info->layout->mode_count[d]; m++)
            mark_dims(p, &info->layout->modes[d][m].size, 1), mark_dims(p, &info->layout->modes[d][m].stride, 1);
    if (info->elements_known) mark_dims(p, info->elements, info->element_count);
    return info->constant ? UIR_STATUS_OK : name_value(p, value);
}

static uir_status walk_graph(printer *p, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    for (uint32_t i = 0; i < info->inputs.count; i++) UIR_TRY(walk_value(p, info->inputs.data[i]));
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(p->module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->output_count; i++) UIR_TRY(walk_value(p, node->outputs[i]));
        for (uint32_t a = 0; a < node->attribute_count; a++) {
            const uir_attribute *attribute = &node->attributes[a];
            if (attribute->kind == UIR_ATTRIBUTE_DIMS) mark_dims(p, attribute->value.dims, attribute->count);
            if (attribute->kind == UIR_ATTRIBUTE_GRAPH) UIR_TRY(walk_graph(p, attribute->value.graph));
        }
    }
    return UIR_STATUS_OK;
}

/* Marks the constants that a graph uses by naming them later, in the order of their ids. */
static void mark_constants(printer *p, uir_graph_id graph, bool *used) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(p->module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->input_count; i++) used[node->inputs[i].id] = true;
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH)
                mark_constants(p, node->attributes[a].value.graph, used);
    }
    for (uint32_t i = 0; i < info->outputs.count; i++) used[info->outputs.data[i].id] = true;
}

/* ---- the last walk ---- */

static void print_string(printer *p, uir_string string) {
    uir_text_append_quoted(p->text, uir_string_text(&p->module->strings, string),
                           uir_string_length(&p->module->strings, string));
}

static void print_value(printer *p, uir_value_id value) {
    if (!value.id)
        uir_text_append_string(p->text, "none");
    else
        uir_text_append_format(p->text, "%%%s", uir_string_text(&p->names, p->value_name[value.id]));
}

static uir_status print_type(printer *p, const uir_type *type) {
    if (type->kind != UIR_VALUE_TENSOR)
        uir_text_append_string(p->text, type->kind == UIR_VALUE_SEQUENCE ? "seq(" : "opt(");
    uir_text_append_string(p->text, type->dtype == UIR_DTYPE_NONE ? "?" : uir_dtype_name(type->dtype));
    uir_text_append_string(p->text, type->rank_known ? "[" : "[*");
    if (type->rank_known) UIR_TRY(print_dims(p, type->dims, type->rank));
    uir_text_append_string(p->text, type->kind != UIR_VALUE_TENSOR ? "])" : "]");
    return UIR_STATUS_OK;
}

static uir_dim copy_layout_dim(void *user, uir_dim dim) {
    uir_dim copy = UIR_DIM_NONE;
    return copy_dim(user, dim, &copy) == UIR_STATUS_OK ? copy : UIR_DIM_NONE;
}

static uir_status print_layout(printer *p, const uir_layout *layout, uint32_t rank) {
    uir_layout copy;
    uir_layout_copy(layout, rank, copy_layout_dim, p, &copy);
    for (uint32_t d = 0; d < rank; d++)
        for (uint32_t m = 0; m < copy.mode_count[d]; m++)
            if (!copy.modes[d][m].size.id || !copy.modes[d][m].stride.id) return UIR_STATUS_OUT_OF_MEMORY;
    uir_layout_print(&copy, rank, p->sizes, p->text);
    return UIR_STATUS_OK;
}

/* "%name "its name": type:layout {elements}". */
static uir_status print_declaration(printer *p, uir_value_id value) {
    if (!value.id) return uir_text_append_string(p->text, "none"), UIR_STATUS_OK;
    const uir_value_info *info = uir_value_info_get(p->module, value);
    const char *shown = uir_string_text(&p->names, p->value_name[value.id]);
    size_t length = uir_string_length(&p->module->strings, info->name);
    print_value(p, value);
    if (length && (uir_graph_is_number_name(shown, strlen(shown)) || length != strlen(shown) ||
                   memcmp(shown, uir_string_text(&p->module->strings, info->name), length))) {
        uir_text_append_string(p->text, " ");
        print_string(p, info->name);
    }
    uir_text_append_string(p->text, ": ");
    UIR_TRY(print_type(p, &info->type));
    if (info->layout) UIR_TRY(print_layout(p, info->layout, info->type.rank));
    if (!info->elements_known || info->constant) return UIR_STATUS_OK; /* a constant's follow from it */
    uir_text_append_string(p->text, " {");
    UIR_TRY(print_dims(p, info->elements, info->element_count));
    uir_text_append_string(p->text, "}");
    return UIR_STATUS_OK;
}

static void indent(printer *p, uint32_t depth) {
    uir_text_append_string(p->text, "\n");
    for (uint32_t i = 0; i < depth; i++) uir_text_append_string(p->text, "    ");
}

static uir_status print_graph(printer *p, uir_graph_id graph, uint32_t depth);

static uir_status print_attribute_value(printer *p, const uir_attribute *attribute, uint32_t depth) {
    uir_text *text = p->text;
    bool list = attribute->kind == UIR_ATTRIBUTE_INTS || attribute->kind == UIR_ATTRIBUTE_FLOATS ||
                attribute->kind == UIR_ATTRIBUTE_STRINGS || attribute->kind == UIR_ATTRIBUTE_DIMS;
    uint32_t count = list ? attribute->count : 1;
    if (list) uir_text_append_string(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) uir_text_append_string(text, ", ");
        switch (attribute->kind) {
        case UIR_ATTRIBUTE_INT:
            uir_text_append_format(text, "%lld", (long long)attribute->value.integer);
            break;
        case UIR_ATTRIBUTE_INTS:
            uir_text_append_format(text, "%lld", (long long)attribute->value.integers[i]);
            break;
        case UIR_ATTRIBUTE_FLOAT:
            uir_text_append_double(text, attribute->value.real);
            break;
        case UIR_ATTRIBUTE_FLOATS:
            uir_text_append_double(text, attribute->value.reals[i]);
            break;
        case UIR_ATTRIBUTE_STRING:
            print_string(p, attribute->value.string);
            break;
        case UIR_ATTRIBUTE_STRINGS:
            print_string(p, attribute->value.strings[i]);
            break;
        case UIR_ATTRIBUTE_DTYPE:
            uir_text_append_string(text, uir_dtype_name(attribute->value.dtype));
            break;
        case UIR_ATTRIBUTE_DIMS:
            UIR_TRY(print_dim(p, attribute->value.dims[i]));
            break;
        case UIR_ATTRIBUTE_GRAPH:
            UIR_TRY(print_graph(p, attribute->value.graph, depth + 1));
            break;
        case UIR_ATTRIBUTE_TENSOR: {
            const uir_tensor *tensor = attribute->value.tensor;
            uir_text_append_format(text, "%s[", uir_dtype_name(tensor->dtype));
            for (uint32_t d = 0; d < tensor->rank; d++)
                uir_text_append_format(text, d ? ", %lld" : "%lld", (long long)tensor->shape[d]);
            uir_text_append_string(text, "] ");
            print_elements(p, tensor);
            break;
        }
        default:
            break;
        }
    }
    if (list) uir_text_append_string(text, "]");
    return UIR_STATUS_OK;
}

static uir_status print_attributes(printer *p, const uir_node_info *node, uint32_t depth) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *attribute = &node->attributes[i];
        const char *name = uir_string_text(&p->module->strings, attribute->name);
        size_t length = uir_string_length(&p->module->strings, attribute->name);
        uir_text_append_string(p->text, i ? ", " : " {");
        if (is_plain(name, length))
            uir_text_append(p->text, name, length);
        else
            uir_text_append_quoted(p->text, name, length);
        uir_attribute_spec spec;
        if (!uir_op_find_attribute_spec(node->op, name, length, &spec) || spec.kind != attribute->kind)
            uir_text_append_format(p->text, ": %s", uir_attribute_kind_name(attribute->kind));
        uir_text_append_string(p->text, " = ");
        UIR_TRY(print_attribute_value(p, attribute, depth));
    }
    if (node->attribute_count) uir_text_append_string(p->text, "}");
    return UIR_STATUS_OK;
}

/* An ONNX op's name, after its domain when that is not ai.onnx. */
static void print_onnx_name(printer *p, const uir_op_row *row) {
    if (*row->domain) {
        uir_text_append_quoted(p->text, row->domain, strlen(row->domain));
        uir_text_append_string(p->text, " ");
    }
    uir_text_append_quoted(p->text, row->name, strlen(row->name));
}

static uir_status print_node(printer *p, const uir_node_info *node, uint32_t depth) {
    const uir_op_row *row = uir_op_get_row(node->op);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i) uir_text_append_string(p->text, ", ");
        UIR_TRY(print_declaration(p, node->outputs[i]));
    }
    if (node->output_count) uir_text_append_string(p->text, " = ");
    if (row->section == UIR_SECTION_ONNX) {
        uir_text_append_string(p->text, "onnx ");
        print_onnx_name(p, row);
        uir_text_append_format(p->text, " %d ", node->since_version);
    } else {
        uir_text_append_string(p->text, row->name);
    }
    uir_text_append_string(p->text, "(");
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i) uir_text_append_string(p->text, ", ");
        print_value(p, node->inputs[i]);
    }
    uir_text_append_string(p->text, ")");
    UIR_TRY(print_attributes(p, node, depth));
    if (uir_string_length(&p->module->strings, node->name)) {
        uir_text_append_string(p->text, " name ");
        print_string(p, node->name);
    }
    if (uir_op_get_row(node->origin)->section == UIR_SECTION_ONNX) {
        uir_text_append_string(p->text, " from ");
        print_onnx_name(p, uir_op_get_row(node->origin));
    }
    return UIR_STATUS_OK;
}

static uir_status print_graph(printer *p, uir_graph_id graph, uint32_t depth) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    uir_text_append_string(p->text, "graph ");
    print_string(p, info->name);
    uir_text_append_string(p->text, " (");
    for (uint32_t i = 0; i < info->inputs.count; i++) {
        if (i) uir_text_append_string(p->text, ", ");
        UIR_TRY(print_declaration(p, info->inputs.data[i]));
    }
    uir_text_append_string(p->text, ") {");
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        indent(p, depth + 1);
        UIR_TRY(print_node(p, uir_node_get(p->module, info->nodes.data[n]), depth));
    }
    indent(p, depth + 1);
    uir_text_append_string(p->text, "return");
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        uir_text_append_string(p->text, i ? ", " : " ");
        print_value(p, info->outputs.data[i]);
    }
    indent(p, depth);
    uir_text_append_string(p->text, "}");
    return UIR_STATUS_OK;
}

static uir_status print_module(printer *p) {
    const uir_module *module = p->module;
    uir_arena *arena = &p->arena;
    uint32_t symbols = uir_dims_symbol_count(module->dims);
    bool *used;
    UIR_TRY(uir_strings_init(&p->names, arena));
    UIR_TRY(uir_strings_init(&p->size_names, arena));
    UIR_TRY_ALLOCATE(p->value_name, uir_arena_allocate_array(arena, module->values.count, sizeof(uir_string)));
    UIR_TRY_ALLOCATE(p->size_of, uir_arena_allocate_array(arena, symbols + 1, sizeof(uir_dim)));
    UIR_TRY_ALLOCATE(p->size_used, uir_arena_allocate_array(arena, symbols + 1, sizeof(bool)));
    UIR_TRY_ALLOCATE(used, uir_arena_allocate_array(arena, module->values.count, sizeof *used));
    UIR_TRY(uir_dims_create(&arena->allocator, &p->sizes));
    mark_constants(p, module->main, used);
    for (int turn = 0; turn < 2; turn++) {
        p->names_unnamed = turn == 1;
        for (uint32_t v = 1; v < module->values.count; v++)
            if (used[v] && module->values.data[v].constant) {
                UIR_TRY(name_value(p, (uir_value_id){v}));
                UIR_TRY(walk_value(p, (uir_value_id){v}));
            }
        UIR_TRY(walk_graph(p, module->main));
    }
    uir_text_append_format(p->text, "module opset %d\n", module->opset);
    UIR_TRY(print_sizes(p));
    for (uint32_t v = 1; v < module->values.count; v++) {
        if (!used[v] || !module->values.data[v].constant) continue;
        uir_text_append_string(p->text, "constant ");
        UIR_TRY(print_declaration(p, (uir_value_id){v}));
        uir_text_append_string(p->text, " = ");
        print_elements(p, module->values.data[v].constant);
        uir_text_append_string(p->text, "\n");
    }
    UIR_TRY(print_graph(p, module->main, 0));
    uir_text_append_string(p->text, "\n");
    return uir_text_status(p->text);
}

uir_status uir_module_print(const uir_module *module, size_t inline_limit, uir_text *text) {
    return uir_module_print_with(module, &(uir_print_options){.inline_limit = inline_limit}, text);
}

uir_status uir_module_print_with(const uir_module *module, const uir_print_options *options, uir_text *text) {
    printer p = {.module = module, .text = text, .options = options};
    uir_arena_init(&p.arena, module->allocator);
    uir_status status = print_module(&p);
    if (p.sizes) uir_dims_destroy(p.sizes);
    uir_arena_deinit(&p.arena);
    return status;
}
