/* Parsing a module. Builds what is written; whether that makes sense is the verifier's to say. */
#include "ir/graph/origins.h"
#include "ir/graph/graph_text.h"
#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 101 }; /* of graphs in graphs: as deep as the verifier lets them be */

typedef struct parser {
    uir_module *module;
    uir_tokenizer t;
    uir_arena arena;
    const uir_module *constants;
    bool listed; /* the constants are below */
    uir_vector(struct hashed {
        uint64_t hash;
        uir_tensor *tensor;
    }) hashed;
    uir_strings values;                /* names of values */
    uir_vector(uir_value_id) value_of; /* by name */
    uir_strings sizes;
    uir_vector(uir_dim) size_of; /* by name */
    uint32_t depth;
    uir_vector(uint32_t) origin_of; /* by name of a node: its origin; 0: none yet */
} parser;

static bool at_kind(const parser *p, uir_token_kind kind) {
    return p->t.current.kind == kind;
}

static uir_status unexpected(parser *p, const char *what) {
    return uir_tokenizer_error(&p->t, "expected %s", what);
}

/* ---- words and names ---- */

static uir_status parse_string(parser *p, uir_string *out_string) {
    if (!at_kind(p, UIR_TOKEN_STRING)) return unexpected(p, "a string");
    UIR_TRY(uir_strings_intern(&p->module->strings, p->t.current.text, p->t.current.length, out_string));
    uir_tokenizer_advance(&p->t);
    return UIR_STATUS_OK;
}

/* A name or a quoted one; borrowed until the next but one token. */
static uir_status parse_word(parser *p, const char *what, uir_token *out_token) {
    if (!at_kind(p, UIR_TOKEN_NAME) && !at_kind(p, UIR_TOKEN_STRING)) return unexpected(p, what);
    *out_token = p->t.current;
    uir_tokenizer_advance(&p->t);
    return UIR_STATUS_OK;
}

/* Interns into a table whose ids index a list. */
static uir_status find_or_add(parser *p, uir_strings *names, const uir_token *token, uir_string *out_name) {
    (void)p;
    return uir_strings_intern(names, token->text, token->length, out_name);
}

/* ---- sizes and dims ---- */

static uir_dim resolve_size(void *user, const char *name, size_t length) {
    const parser *p = user;
    uir_string found;
    if (!uir_strings_find(&p->sizes, name, length, &found) || found.id >= p->size_of.count) return UIR_DIM_NONE;
    return p->size_of.data[found.id];
}

static uir_status parse_dim(parser *p, uir_dim *out_dim) {
    return uir_dim_parse(p->module->dims, &p->t, resolve_size, p, out_dim);
}

typedef uir_vector(uir_dim) dim_list;

/* Dims up to the closing punctuation. */
static uir_status parse_dims(parser *p, const char *close, dim_list *list) {
    *list = (dim_list){0};
    if (uir_tokenizer_accept(&p->t, close)) return UIR_STATUS_OK;
    do {
        uir_dim dim;
        UIR_TRY(parse_dim(p, &dim));
        UIR_TRY(uir_vector_push(&p->arena, list, dim));
    } while (uir_tokenizer_accept(&p->t, ","));
    return uir_tokenizer_expect(&p->t, close);
}

static uir_status parse_size(parser *p) {
    uir_token name;
    uir_string id;
    uir_symbol symbol;
    uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
    UIR_TRY(parse_word(p, "a size's name", &name));
    UIR_TRY(find_or_add(p, &p->sizes, &name, &id));
    while (p->size_of.count <= id.id) UIR_TRY(uir_vector_push(&p->arena, &p->size_of, UIR_DIM_NONE));
    if (p->size_of.data[id.id].id) return uir_tokenizer_error_at(&p->t, &name, "the size is declared twice");
    for (;;) {
        if (uir_tokenizer_accept(&p->t, "min"))
            UIR_TRY(uir_tokenizer_expect_integer(&p->t, &facts.min));
        else if (uir_tokenizer_accept(&p->t, "max"))
            UIR_TRY(uir_tokenizer_expect_integer(&p->t, &facts.max));
        else if (uir_tokenizer_accept(&p->t, "multiple"))
            UIR_TRY(uir_tokenizer_expect_integer(&p->t, &facts.multiple_of));
        else
            break;
    }
    if (facts.max < facts.min || facts.multiple_of < 1)
        return uir_tokenizer_error_at(&p->t, &name, "min exceeds max, or multiple is below 1");
    UIR_TRY(uir_dims_add_symbol(p->module->dims, name.text, name.length, facts, &symbol));
    p->size_of.data[id.id] = uir_dim_symbol(p->module->dims, symbol);
    return p->size_of.data[id.id].id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static uir_status parse_below(parser *p) {
    uir_token name;
    uir_symbol symbol;
    UIR_TRY(parse_word(p, "a size's name", &name));
    uir_dim dim = resolve_size(p, name.text, name.length), bound;
    if (!uir_dim_is_symbol(p->module->dims, dim, &symbol)) return uir_tokenizer_error_at(&p->t, &name, "unknown size");
    UIR_TRY(parse_dim(p, &bound));
    uir_symbol_facts facts = uir_dims_symbol_facts(p->module->dims, symbol);
    facts.bound = bound;
    uir_dims_set_symbol_facts(p->module->dims, symbol, facts);
    return UIR_STATUS_OK;
}

/* ---- types ---- */

static uir_status parse_dtype(parser *p, uir_dtype *out_dtype) {
    *out_dtype = UIR_DTYPE_NONE;
    if (uir_tokenizer_accept(&p->t, "?")) return UIR_STATUS_OK;
    if (!at_kind(p, UIR_TOKEN_NAME) || !uir_dtype_from_name(p->t.current.text, p->t.current.length, out_dtype))
        return unexpected(p, "an element type");
    uir_tokenizer_advance(&p->t);
    return UIR_STATUS_OK;
}

static uir_status parse_type(parser *p, uir_type *out_type) {
    *out_type = (uir_type){.kind = UIR_VALUE_TENSOR};
    bool list = true;
    if (uir_tokenizer_accept(&p->t, "seq"))
        out_type->kind = UIR_VALUE_SEQUENCE;
    else if (uir_tokenizer_accept(&p->t, "opt"))
        out_type->kind = UIR_VALUE_OPTIONAL;
    else
        list = false;
    if (list) UIR_TRY(uir_tokenizer_expect(&p->t, "("));
    UIR_TRY(parse_dtype(p, &out_type->dtype));
    UIR_TRY(uir_tokenizer_expect(&p->t, "["));
    if (uir_tokenizer_accept(&p->t, "*")) {
        UIR_TRY(uir_tokenizer_expect(&p->t, "]"));
    } else {
        dim_list dims;
        uir_token start = p->t.current;
        UIR_TRY(parse_dims(p, "]", &dims));
        if (dims.count > UIR_MAX_RANK)
            return uir_tokenizer_error_at(&p->t, &start, "rank %u exceeds the maximum of %d", dims.count, UIR_MAX_RANK);
        out_type->rank_known = true;
        out_type->rank = dims.count;
        out_type->dims = dims.data;
    }
    return list ? uir_tokenizer_expect(&p->t, ")") : UIR_STATUS_OK;
}

/* ---- tensors ---- */

/* "nan" or "nan(bits)", the word already read. */
static uir_status parse_nan(parser *p, uir_tensor *tensor, uint64_t index) {
    if (!uir_tokenizer_accept(&p->t, "(")) {
        uir_dtype_store_double(tensor->dtype, tensor->data, index, NAN, UIR_ROUND_NEAREST_EVEN);
        return UIR_STATUS_OK;
    }
    int64_t bits;
    UIR_TRY(uir_tokenizer_expect_integer(&p->t, &bits));
    uir_set_element_bits(tensor, index, (uint64_t)bits);
    return uir_tokenizer_expect(&p->t, ")");
}

static uir_status parse_element(parser *p, uir_tensor *tensor, uint64_t index) {
    uir_dtype_class class = uir_dtype_get_class(tensor->dtype);
    if (class == UIR_DTYPE_CLASS_STRING) {
        if (!at_kind(p, UIR_TOKEN_STRING)) return unexpected(p, "a string");
        UIR_TRY(uir_tensor_set_string(tensor, index, p->t.current.text, p->t.current.length));
        uir_tokenizer_advance(&p->t);
        return UIR_STATUS_OK;
    }
    if (class == UIR_DTYPE_CLASS_FLOAT) {
        double value;
        if (uir_tokenizer_accept(&p->t, "nan")) return parse_nan(p, tensor, index);
        UIR_TRY(uir_tokenizer_expect_double(&p->t, &value));
        uir_dtype_store_double(tensor->dtype, tensor->data, index, value, UIR_ROUND_NEAREST_EVEN);
        return UIR_STATUS_OK;
    }
    int64_t value;
    UIR_TRY(uir_tokenizer_expect_integer(&p->t, &value));
    uir_dtype_store_integer(tensor->dtype, tensor->data, index, value, false, UIR_ROUND_NEAREST_EVEN);
    return UIR_STATUS_OK;
}

/* The number of elements of the list that begins here, by its commas, so that a short text never takes much memory. */
static uint64_t count_listed(const parser *p) {
    uir_tokenizer ahead = p->t;
    ahead.diagnostics = NULL;
    uir_arena scratch;
    uir_arena_init(&scratch, &p->arena.allocator);
    ahead.arena = &scratch;
    uint64_t count = uir_tokenizer_is(&ahead, "]") ? 0 : 1;
    while (ahead.current.kind != UIR_TOKEN_END && !uir_tokenizer_is(&ahead, "]")) {
        if (uir_tokenizer_is(&ahead, ",")) count++;
        uir_tokenizer_advance(&ahead);
    }
    uir_arena_deinit(&scratch);
    return count;
}

/* The same storage seen as elements that are written. */
static uir_status fill_elements(parser *p, uir_tensor *tensor, bool splat) {
    uir_tensor view = uir_tensor_as_written(tensor);
    uir_tensor *target = view.dtype == tensor->dtype ? tensor : &view;
    if (splat) {
        UIR_TRY(parse_element(p, target, 0));
        for (uint64_t i = 1; i < target->element_count; i++)
            uir_set_element_bits(target, i, uir_element_bits(target, 0));
        return UIR_STATUS_OK;
    }
    for (uint64_t i = 0; i < target->element_count; i++) {
        if (i) UIR_TRY(uir_tokenizer_expect(&p->t, ","));
        UIR_TRY(parse_element(p, target, i));
    }
    return uir_tokenizer_expect(&p->t, "]");
}

static uir_status list_constant(parser *p, uir_tensor *tensor) {
    return uir_vector_push(&p->arena, &p->hashed, ((struct hashed){uir_tensor_hash(tensor), tensor}));
}

static uir_status list_constants(parser *p) {
    const uir_module *m = p->constants;
    p->listed = true;
    for (uint32_t v = 1; m && v < m->values.count; v++)
        if (m->values.data[v].constant) UIR_TRY(list_constant(p, m->values.data[v].constant));
    for (uint32_t n = 1; m && n < m->nodes.count; n++)
        for (uint32_t a = 0; a < m->nodes.data[n].attribute_count; a++)
            if (m->nodes.data[n].attributes[a].kind == UIR_ATTRIBUTE_TENSOR)
                UIR_TRY(list_constant(p, m->nodes.data[n].attributes[a].value.tensor));
    return UIR_STATUS_OK;
}

static uir_status find_hashed(parser *p, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                              uir_tensor **out_tensor) {
    if (!at_kind(p, UIR_TOKEN_STRING)) return unexpected(p, "a hash in quotes");
    uint64_t hash = 0;
    for (size_t i = 0; i < p->t.current.length; i++) {
        char c = p->t.current.text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0 || p->t.current.length != 16) return unexpected(p, "16 hexadecimal digits");
        hash = hash << 4 | (uint64_t)digit;
    }
    if (!p->listed) UIR_TRY(list_constants(p));
    for (uint32_t i = 0; i < p->hashed.count; i++) {
        uir_tensor *tensor = p->hashed.data[i].tensor;
        if (p->hashed.data[i].hash != hash || tensor->dtype != dtype || tensor->rank != rank ||
            memcmp(tensor->shape, shape, rank * sizeof *shape) != 0)
            continue;
        uir_tensor_retain(tensor);
        *out_tensor = tensor;
        uir_tokenizer_advance(&p->t);
        return UIR_STATUS_OK;
    }
    return uir_tokenizer_error(&p->t, "the elements of this constant are elided, and no given model holds them: name "
                                      "the model with --constants, or print all elements with --constants inline");
}

/* What follows a constant's type: a list, a splat or a hash. */
static uir_status parse_elements(parser *p, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 uir_tensor **out_tensor) {
    uint64_t count;
    uir_token start = p->t.current;
    if (dtype == UIR_DTYPE_NONE || !uir_shape_element_count(shape, rank, &count))
        return uir_tokenizer_error(&p->t, "a tensor cannot have this type");
    if (uir_tokenizer_accept(&p->t, "hash")) return find_hashed(p, dtype, rank, shape, out_tensor);
    bool splat = uir_tokenizer_accept(&p->t, "splat");
    if (splat && (count > UIR_MAX_SPLAT || !count || dtype == UIR_DTYPE_STRING ||
                  uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_COMPLEX))
        return uir_tokenizer_error_at(&p->t, &start, "this type cannot be a splat");
    if (!splat) {
        UIR_TRY(uir_tokenizer_expect(&p->t, "["));
        uint64_t listed = count_listed(p), wanted = count;
        if (uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_COMPLEX) wanted *= 2;
        if (listed != wanted)
            return uir_tokenizer_error_at(&p->t, &start, "%llu elements are listed, the type has %llu",
                                          (unsigned long long)listed, (unsigned long long)wanted);
    }
    UIR_TRY(uir_tensor_create(p->module->allocator, dtype, rank, shape, out_tensor));
    uir_status status = fill_elements(p, *out_tensor, splat);
    if (status != UIR_STATUS_OK) uir_tensor_release(*out_tensor);
    return status;
}

/* ---- values ---- */

static uir_status find_value(parser *p, uir_value_id *out_value) {
    uir_string name;
    out_value->id = 0;
    if (uir_tokenizer_accept(&p->t, "none")) return UIR_STATUS_OK;
    if (!at_kind(p, UIR_TOKEN_PERCENT)) return unexpected(p, "a value");
    if (uir_strings_find(&p->values, p->t.current.text, p->t.current.length, &name) && name.id < p->value_of.count)
        *out_value = p->value_of.data[name.id];
    if (!out_value->id) return uir_tokenizer_error(&p->t, "the value is not defined before this use");
    uir_tokenizer_advance(&p->t);
    return UIR_STATUS_OK;
}

/* A value as it is declared: names, type, contents. `is_constant`: the caller makes the value. */
typedef struct declaration {
    uir_token at;
    uir_string key;
    const char *name;
    uir_type type;
    uir_layout layout;
    dim_list elements;
    bool elements_known;
} declaration;

static uir_status parse_layout_dim(void *user, uir_dim *out_dim) {
    return parse_dim(user, out_dim);
}

static uir_status parse_layout(parser *p, declaration *d) {
    if (!uir_tokenizer_is(&p->t, ":")) return UIR_STATUS_OK;
    if (d->type.kind != UIR_VALUE_TENSOR || !d->type.rank_known || d->type.rank > UIR_LAYOUT_MAX_RANK)
        return uir_tokenizer_error(&p->t, "a layout requires a tensor of at most %d dims", UIR_LAYOUT_MAX_RANK);
    return uir_layout_parse(&p->t, parse_layout_dim, p, d->type.dims, d->type.rank, &d->layout);
}

static uir_status set_layout(parser *p, const declaration *d, uir_value_id value) {
    if (!d->layout.given) return UIR_STATUS_OK;
    uir_status status = uir_module_set_layout(p->module, value, &d->layout);
    return status == UIR_STATUS_INVALID_ARGUMENT
               ? uir_tokenizer_error_at(&p->t, &d->at, "the layout's storage overflows 64 bits")
               : status;
}

static uir_status parse_declaration(parser *p, declaration *out) {
    *out = (declaration){.at = p->t.current};
    if (!at_kind(p, UIR_TOKEN_PERCENT)) return unexpected(p, "a value");
    UIR_TRY(find_or_add(p, &p->values, &p->t.current, &out->key));
    while (p->value_of.count <= out->key.id) UIR_TRY(uir_vector_push(&p->arena, &p->value_of, (uir_value_id){0}));
    if (p->value_of.data[out->key.id].id) return uir_tokenizer_error(&p->t, "the value is defined twice");
    uir_tokenizer_advance(&p->t);
    const uir_token *name = at_kind(p, UIR_TOKEN_STRING) ? &p->t.current : &out->at;
    if (memchr(name->text, 0, name->length))
        return uir_tokenizer_error_at(&p->t, name, "a name must not contain a zero byte");
    bool unnamed = name == &out->at && uir_graph_is_number_name(name->text, name->length);
    UIR_TRY_ALLOCATE(out->name, uir_arena_copy_string(&p->arena, name->text, unnamed ? 0 : name->length));
    if (name == &p->t.current) uir_tokenizer_advance(&p->t);
    UIR_TRY(uir_tokenizer_expect(&p->t, ":"));
    UIR_TRY(parse_type(p, &out->type));
    UIR_TRY(parse_layout(p, out));
    if (!uir_tokenizer_accept(&p->t, "{")) return UIR_STATUS_OK;
    out->elements_known = true;
    return parse_dims(p, "}", &out->elements);
}

static uir_status parse_new_value(parser *p, uir_value_id *out_value) {
    declaration d;
    UIR_TRY(parse_declaration(p, &d));
    UIR_TRY(uir_module_add_value(p->module, d.name, d.type, out_value));
    p->value_of.data[d.key.id] = *out_value;
    UIR_TRY(set_layout(p, &d, *out_value));
    if (!d.elements_known) return UIR_STATUS_OK;
    uir_value_info *info = uir_value_info_get(p->module, *out_value);
    UIR_TRY_ALLOCATE(info->elements,
                     uir_arena_allocate_array(&p->module->arena, d.elements.count + 1, sizeof(uir_dim)));
    if (d.elements.count) memcpy((uir_dim *)info->elements, d.elements.data, d.elements.count * sizeof(uir_dim));
    info->element_count = d.elements.count;
    info->elements_known = true;
    return UIR_STATUS_OK;
}

static uir_status constant_shape(parser *p, const declaration *d, int64_t *out_shape) {
    bool constant = d->type.kind == UIR_VALUE_TENSOR && d->type.rank_known;
    for (uint32_t i = 0; constant && i < d->type.rank; i++)
        constant = uir_dim_is_const(p->module->dims, d->type.dims[i], &out_shape[i]);
    return constant ? UIR_STATUS_OK : uir_tokenizer_error_at(&p->t, &d->at, "a constant's dims must be numbers");
}

static uir_status parse_constant(parser *p) {
    declaration d;
    int64_t shape[UIR_MAX_RANK];
    uir_tensor *tensor;
    uir_value_id value;
    UIR_TRY(parse_declaration(p, &d));
    UIR_TRY(constant_shape(p, &d, shape));
    UIR_TRY(uir_tokenizer_expect(&p->t, "="));
    UIR_TRY(parse_elements(p, d.type.dtype, d.type.rank, shape, &tensor));
    uir_status status = uir_module_add_constant(p->module, d.name, tensor, &value);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    p->value_of.data[d.key.id] = value;
    return set_layout(p, &d, value);
}

/* ---- attributes ---- */

static uir_status parse_graph(parser *p, uir_graph_id parent, uir_graph_id *out_graph);

static uir_status parse_real(parser *p, double *out_value) {
    return uir_tokenizer_expect_double(&p->t, out_value);
}

/* Lists of one element type; on to the closing bracket. */
#define PARSE_LIST(name, type, parse_one)                                                                              \
    static uir_status name(parser *p, const type **out_values, uint32_t *out_count) {                                  \
        uir_vector(type) list = {0};                                                                                   \
        UIR_TRY(uir_tokenizer_expect(&p->t, "["));                                                                     \
        while (!uir_tokenizer_accept(&p->t, "]")) {                                                                    \
            type value;                                                                                                \
            if (list.count) UIR_TRY(uir_tokenizer_expect(&p->t, ","));                                                 \
            UIR_TRY(parse_one);                                                                                        \
            UIR_TRY(uir_vector_push(&p->arena, &list, value));                                                         \
        }                                                                                                              \
        *out_values = list.data;                                                                                       \
        *out_count = list.count;                                                                                       \
        return UIR_STATUS_OK;                                                                                          \
    }
PARSE_LIST(parse_integers, int64_t, uir_tokenizer_expect_integer(&p->t, &value))
PARSE_LIST(parse_reals, double, parse_real(p, &value))
PARSE_LIST(parse_strings, uir_string, parse_string(p, &value))
PARSE_LIST(parse_dim_list, uir_dim, parse_dim(p, &value))

static uir_status parse_tensor(parser *p, uir_tensor **out_tensor) {
    declaration d = {.at = p->t.current};
    int64_t shape[UIR_MAX_RANK];
    UIR_TRY(parse_type(p, &d.type));
    UIR_TRY(constant_shape(p, &d, shape));
    return parse_elements(p, d.type.dtype, d.type.rank, shape, out_tensor);
}

static uir_status parse_attribute_value(parser *p, uir_graph_id graph, uir_attribute *attribute) {
    switch (attribute->kind) {
    case UIR_ATTRIBUTE_INT:
        return uir_tokenizer_expect_integer(&p->t, &attribute->value.integer);
    case UIR_ATTRIBUTE_INTS:
        return parse_integers(p, &attribute->value.integers, &attribute->count);
    case UIR_ATTRIBUTE_FLOAT:
        return parse_real(p, &attribute->value.real);
    case UIR_ATTRIBUTE_FLOATS:
        return parse_reals(p, &attribute->value.reals, &attribute->count);
    case UIR_ATTRIBUTE_STRING:
        return parse_string(p, &attribute->value.string);
    case UIR_ATTRIBUTE_STRINGS:
        return parse_strings(p, &attribute->value.strings, &attribute->count);
    case UIR_ATTRIBUTE_DIMS:
        return parse_dim_list(p, &attribute->value.dims, &attribute->count);
    case UIR_ATTRIBUTE_DTYPE:
        return parse_dtype(p, &attribute->value.dtype);
    case UIR_ATTRIBUTE_GRAPH:
        return parse_graph(p, graph, &attribute->value.graph);
    case UIR_ATTRIBUTE_TENSOR:
        return parse_tensor(p, &attribute->value.tensor);
    default:
        return unexpected(p, "a value");
    }
}

typedef uir_vector(uir_attribute) attribute_list;

static void release_tensors(const attribute_list *list) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->data[i].kind == UIR_ATTRIBUTE_TENSOR) uir_tensor_release(list->data[i].value.tensor);
}

static uir_status parse_attribute(parser *p, uir_op op, uir_graph_id graph, uir_attribute *out_attribute) {
    uir_token name;
    uir_attribute_spec spec;
    *out_attribute = (uir_attribute){0};
    UIR_TRY(parse_word(p, "an attribute's name", &name));
    UIR_TRY(uir_strings_intern(&p->module->strings, name.text, name.length, &out_attribute->name));
    if (uir_tokenizer_accept(&p->t, ":")) {
        if (!at_kind(p, UIR_TOKEN_NAME) ||
            !uir_attribute_kind_from_name(p->t.current.text, p->t.current.length, &out_attribute->kind))
            return unexpected(p, "a kind of attribute");
        uir_tokenizer_advance(&p->t);
    } else if (uir_op_find_attribute_spec(op, name.text, name.length, &spec)) {
        out_attribute->kind = spec.kind;
    } else {
        return uir_tokenizer_error_at(&p->t, &name, "unknown attribute of this op; give its kind after a colon");
    }
    UIR_TRY(uir_tokenizer_expect(&p->t, "="));
    return parse_attribute_value(p, graph, out_attribute);
}

static uir_status parse_attributes(parser *p, uir_op op, uir_graph_id graph, attribute_list *list) {
    if (!uir_tokenizer_accept(&p->t, "{")) return UIR_STATUS_OK;
    while (!uir_tokenizer_accept(&p->t, "}")) {
        uir_attribute attribute;
        if (list->count) UIR_TRY(uir_tokenizer_expect(&p->t, ","));
        UIR_TRY(uir_vector_reserve(&p->arena, list, 1)); /* so that a tensor once made is always in the list */
        UIR_TRY(parse_attribute(p, op, graph, &attribute));
        list->data[list->count++] = attribute;
    }
    return UIR_STATUS_OK;
}

/* ---- nodes ---- */

/* ["domain"] "Name" */
static uir_status parse_onnx_name(parser *p, uir_op *out_op) {
    const char *words[2] = {"", ""};
    int count = 0;
    uir_token start = p->t.current;
    for (; count < 2 && at_kind(p, UIR_TOKEN_STRING); count++) {
        UIR_TRY_ALLOCATE(words[count], uir_arena_copy_string(&p->arena, p->t.current.text, p->t.current.length));
        uir_tokenizer_advance(&p->t);
    }
    *out_op = count == 2 ? uir_op_find_onnx(words[0], words[1]) : count ? uir_op_find_onnx("", words[0]) : UIR_OP_NONE;
    if (*out_op == UIR_OP_NONE) return uir_tokenizer_error_at(&p->t, &start, "unknown ONNX op");
    return UIR_STATUS_OK;
}

static uir_status parse_op(parser *p, uir_node_info *node) {
    if (uir_tokenizer_accept(&p->t, "onnx")) {
        int64_t version;
        UIR_TRY(parse_onnx_name(p, &node->op));
        UIR_TRY(uir_tokenizer_expect_integer(&p->t, &version));
        if (version < 0 || version > INT32_MAX)
            return uir_tokenizer_error(&p->t, "version %lld is out of range", (long long)version);
        node->since_version = (int)version;
        return UIR_STATUS_OK;
    }
    if (at_kind(p, UIR_TOKEN_NAME)) node->op = uir_op_find_primitive(p->t.current.text, p->t.current.length);
    if (node->op == UIR_OP_NONE) return unexpected(p, "an op");
    uir_tokenizer_advance(&p->t);
    return UIR_STATUS_OK;
}

typedef uir_vector(uir_value_id) value_list;

/* The part before '=': results are made after the node's bodies have been read, as they are not visible there; so their
 * names are kept. */
static uir_status parse_results(parser *p, value_list *results) {
    while (at_kind(p, UIR_TOKEN_PERCENT) || uir_tokenizer_is(&p->t, "none")) {
        uir_value_id value = {0};
        if (!uir_tokenizer_accept(&p->t, "none")) UIR_TRY(parse_new_value(p, &value));
        UIR_TRY(uir_vector_push(&p->arena, results, value));
        if (uir_tokenizer_accept(&p->t, "=")) return UIR_STATUS_OK;
        UIR_TRY(uir_tokenizer_expect(&p->t, ","));
    }
    return results->count ? unexpected(p, "a result") : UIR_STATUS_OK;
}

static uir_status parse_operands(parser *p, value_list *operands) {
    UIR_TRY(uir_tokenizer_expect(&p->t, "("));
    while (!uir_tokenizer_accept(&p->t, ")")) {
        uir_value_id value;
        if (operands->count) UIR_TRY(uir_tokenizer_expect(&p->t, ","));
        UIR_TRY(find_value(p, &value));
        UIR_TRY(uir_vector_push(&p->arena, operands, value));
    }
    return UIR_STATUS_OK;
}

/* A text does not say which primitives came from one node of the file: those of one name and one op. */
static uir_status find_origin(parser *p, uir_node_info *node) {
    const uir_strings *strings = &p->module->strings;
    const char *op = uir_op_name(node->origin);
    if (!uir_string_length(strings, node->name) || node->origin == UIR_OP_NONE) return UIR_STATUS_OK;
    while (p->origin_of.count <= node->name.id) UIR_TRY(uir_vector_push(&p->arena, &p->origin_of, 0));
    uint32_t *at = &p->origin_of.data[node->name.id];
    if (!*at || strcmp(uir_string_text(strings, p->module->origins.data[*at].op), op) != 0)
        UIR_TRY(uir_origins_add(p->module, uir_string_text(strings, node->name), op, UIR_FATE_STANDS, at));
    node->source = *at;
    uir_origins_meet(p->module, *at);
    return UIR_STATUS_OK;
}

static uir_status parse_node(parser *p, uir_graph_id graph) {
    uir_node_info node = {.line = p->t.current.line};
    uir_node_id id;
    value_list results = {0}, operands = {0};
    attribute_list attributes = {0};
    UIR_TRY(parse_results(p, &results));
    UIR_TRY(parse_op(p, &node));
    UIR_TRY(parse_operands(p, &operands));
    uir_status status = parse_attributes(p, node.op, graph, &attributes);
    if (status == UIR_STATUS_OK && uir_tokenizer_accept(&p->t, "name")) status = parse_string(p, &node.name);
    if (status == UIR_STATUS_OK && uir_tokenizer_accept(&p->t, "from")) status = parse_onnx_name(p, &node.origin);
    if (status == UIR_STATUS_OK) status = find_origin(p, &node);
    node.inputs = operands.data;
    node.input_count = operands.count;
    node.outputs = results.data;
    node.output_count = results.count;
    node.attributes = attributes.data;
    node.attribute_count = attributes.count;
    if (status == UIR_STATUS_OK) status = uir_graph_add_node(p->module, graph, &node, &id);
    if (status != UIR_STATUS_OK) release_tensors(&attributes);
    return status;
}

/* ---- graphs ---- */

static uir_status parse_graph_body(parser *p, uir_graph_id graph) {
    uir_value_id value;
    UIR_TRY(uir_tokenizer_expect(&p->t, "("));
    for (bool first = true; !uir_tokenizer_accept(&p->t, ")"); first = false) {
        if (!first) UIR_TRY(uir_tokenizer_expect(&p->t, ","));
        UIR_TRY(parse_new_value(p, &value));
        UIR_TRY(uir_graph_add_input(p->module, graph, value));
    }
    UIR_TRY(uir_tokenizer_expect(&p->t, "{"));
    while (!uir_tokenizer_accept(&p->t, "return")) UIR_TRY(parse_node(p, graph));
    for (bool first = true; !uir_tokenizer_accept(&p->t, "}"); first = false) {
        if (!first) UIR_TRY(uir_tokenizer_expect(&p->t, ","));
        UIR_TRY(find_value(p, &value));
        UIR_TRY(uir_graph_add_output(p->module, graph, value));
    }
    return UIR_STATUS_OK;
}

static uir_status parse_graph(parser *p, uir_graph_id parent, uir_graph_id *out_graph) {
    uir_string name;
    UIR_TRY(uir_tokenizer_expect(&p->t, "graph"));
    UIR_TRY(parse_string(p, &name));
    if (p->depth == MAX_DEPTH) return uir_tokenizer_error(&p->t, "graphs are nested too deeply");
    UIR_TRY(uir_module_add_graph(p->module, parent, "", out_graph));
    uir_graph_get(p->module, *out_graph)->name = name;
    p->depth++;
    uir_status status = parse_graph_body(p, *out_graph);
    p->depth--;
    return status;
}

static uir_status parse_module(parser *p) {
    int64_t opset;
    if (p->t.file)
        UIR_TRY_ALLOCATE(p->module->file, uir_arena_copy_string(&p->module->arena, p->t.file, strlen(p->t.file)));
    UIR_TRY(uir_strings_init(&p->values, &p->arena));
    UIR_TRY(uir_strings_init(&p->sizes, &p->arena));
    UIR_TRY(uir_tokenizer_expect(&p->t, "module"));
    UIR_TRY(uir_tokenizer_expect(&p->t, "opset"));
    UIR_TRY(uir_tokenizer_expect_integer(&p->t, &opset));
    if (opset < 0 || opset > INT32_MAX)
        return uir_tokenizer_error(&p->t, "opset %lld is out of range", (long long)opset);
    p->module->opset = (int)opset;
    while (uir_tokenizer_accept(&p->t, "size")) UIR_TRY(parse_size(p));
    while (uir_tokenizer_accept(&p->t, "below")) UIR_TRY(parse_below(p));
    while (uir_tokenizer_accept(&p->t, "constant")) UIR_TRY(parse_constant(p));
    UIR_TRY(parse_graph(p, (uir_graph_id){0}, &p->module->main));
    return at_kind(p, UIR_TOKEN_END) ? UIR_STATUS_OK : unexpected(p, "the end");
}

uir_status uir_module_parse(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *text,
                            size_t length, const char *file, const uir_module *constants, uir_module **out_module) {
    parser p = {.constants = constants};
    *out_module = NULL;
    UIR_TRY(uir_module_create(allocator, diagnostics, &p.module));
    uir_arena_init(&p.arena, allocator);
    uir_tokenizer_init(&p.t, text, length, file, &p.arena, diagnostics);
    uir_status status = parse_module(&p);
    uir_arena_deinit(&p.arena);
    if (status != UIR_STATUS_OK) {
        uir_module_destroy(p.module);
        return status;
    }
    *out_module = p.module;
    return UIR_STATUS_OK;
}
