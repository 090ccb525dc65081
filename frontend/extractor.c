#include "frontend/extractor.h"

#include "frontend/frontend.h"
#include "frontend/wire.h"

#include <string.h>

/* Fields by their numbers in onnx.proto. */
enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7 };
enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE_INITIALIZER = 15
};
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11 };
enum { TENSOR_NAME = 8, TENSOR_LOCATION = 14, SPARSE_VALUES = 1 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_OPTIONAL = 9, TYPE_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };

enum {
    MAX_DEPTH = 100,     /* of subgraphs; the frontend allows fewer */
    MAX_CONSTANT = 64,   /* elements of a value that becomes one */
    FIRST_IR_VERSION = 4 /* from which initializers need not be inputs */
};

typedef struct reader {
    uir_onnx_extractor *parts;
    const uint8_t *base;
    const char *file;
    uir_diagnostics *diagnostics;
} reader;

static uir_status wrong(const reader *r, const uint8_t *at, const char *what) {
    uir_location place = {.file = r->file, .offset = (uint64_t)(at - r->base), .has_offset = true};
    return uir_error_hint(r->diagnostics, UIR_STATUS_BAD_FILE, &place,
                          "the file is damaged or not an ONNX file; fetch or export it again", "%s", what);
}

/* The next field of a message; *out_more false at its end. */
static uir_status next_field(const reader *r, uir_wire_reader *wire, uir_wire_field *out_field, bool *out_more) {
    *out_more = wire->at != wire->end;
    if (!*out_more) return UIR_STATUS_OK;
    const char *problem = uir_wire_next(wire, out_field);
    return problem ? wrong(r, out_field->start, problem) : UIR_STATUS_OK;
}

static uir_onnx_bytes whole_field(const uir_wire_field *field) {
    return (uir_onnx_bytes){field->start, (uint64_t)(field->data - field->start) + field->length};
}

static uir_wire_reader inside(const uir_wire_field *field) {
    return (uir_wire_reader){field->data, field->data + field->length};
}

/* The value of that name, made at its first use; 0 for the empty name. */
static uir_status find_value(const reader *r, const uir_wire_field *field, uint32_t *out_value) {
    uir_onnx_extractor *p = r->parts;
    uir_string name;
    UIR_TRY(uir_strings_intern(&p->names, (const char *)field->data, (size_t)field->length, &name));
    while (p->values.count <= name.id) UIR_TRY(uir_vector_push(&p->arena, &p->values, ((uir_onnx_part_value){0})));
    *out_value = name.id;
    return UIR_STATUS_OK;
}

/* The value that a message's field `number` names. */
static uir_status find_named(const reader *r, uir_wire_reader wire, uint32_t number, uint32_t *out_value) {
    uir_wire_field field;
    bool more;
    *out_value = 0;
    for (;;) {
        UIR_TRY(next_field(r, &wire, &field, &more));
        if (!more) return UIR_STATUS_OK;
        if (field.number == number && field.type == UIR_WIRE_BYTES) UIR_TRY(find_value(r, &field, out_value));
    }
}

/* ---- nodes ---- */

static uir_status add_read(const reader *r, uir_onnx_part *part, uint32_t value) {
    return value ? uir_vector_push(&r->parts->arena, &part->reads, value) : UIR_STATUS_OK;
}

/* All names that the nodes of a subgraph read and that it gives: those that it makes itself are none of the main
 * graph's. */
static uir_status read_captures(const reader *r, uir_wire_reader graph, int depth, uir_onnx_part *part);

static uir_status read_attribute(const reader *r, uir_wire_reader attribute, int depth, uir_onnx_part *part) {
    uir_wire_field field;
    bool more;
    for (;;) {
        UIR_TRY(next_field(r, &attribute, &field, &more));
        if (!more) return UIR_STATUS_OK;
        if (field.type == UIR_WIRE_BYTES && (field.number == ATTRIBUTE_GRAPH || field.number == ATTRIBUTE_GRAPHS))
            UIR_TRY(read_captures(r, inside(&field), depth + 1, part));
    }
}

static uir_status read_operands(const reader *r, uir_wire_reader node, int depth, uir_onnx_part *part) {
    uir_wire_field field;
    uint32_t value;
    bool more;
    for (;;) {
        UIR_TRY(next_field(r, &node, &field, &more));
        if (!more) return UIR_STATUS_OK;
        if (field.type != UIR_WIRE_BYTES) continue;
        if (field.number == NODE_INPUT) {
            UIR_TRY(find_value(r, &field, &value));
            UIR_TRY(add_read(r, part, value));
        }
        if (field.number == NODE_ATTRIBUTE) UIR_TRY(read_attribute(r, inside(&field), depth, part));
    }
}

static uir_status read_captures(const reader *r, uir_wire_reader graph, int depth, uir_onnx_part *part) {
    uir_wire_field field;
    uint32_t value;
    bool more;
    if (depth > MAX_DEPTH) return wrong(r, graph.at, "subgraphs are nested too deep");
    for (;;) {
        UIR_TRY(next_field(r, &graph, &field, &more));
        if (!more) return UIR_STATUS_OK;
        if (field.type != UIR_WIRE_BYTES) continue;
        if (field.number == GRAPH_NODE) UIR_TRY(read_operands(r, inside(&field), depth, part));
        if (field.number != GRAPH_OUTPUT) continue;
        UIR_TRY(find_named(r, inside(&field), VALUE_NAME, &value));
        UIR_TRY(add_read(r, part, value));
    }
}

static uir_status copy_text(uir_arena *arena, const uir_wire_field *field, const char **out_text) {
    UIR_TRY_ALLOCATE(*out_text, uir_arena_copy_string(arena, (const char *)field->data, (size_t)field->length));
    return UIR_STATUS_OK;
}

static uir_status read_node(const reader *r, const uir_wire_field *whole) {
    uir_onnx_extractor *p = r->parts;
    uir_onnx_part part = {.field = whole_field(whole), .name = "", .op = ""};
    uir_wire_reader wire = inside(whole);
    uir_wire_field field;
    bool more;
    for (;;) {
        UIR_TRY(next_field(r, &wire, &field, &more));
        if (!more) break;
        if (field.type != UIR_WIRE_BYTES) continue;
        if (field.number == NODE_NAME) UIR_TRY(copy_text(&p->arena, &field, &part.name));
        if (field.number == NODE_OP) UIR_TRY(copy_text(&p->arena, &field, &part.op));
        if (field.number != NODE_OUTPUT || !field.length) continue;
        uint32_t value;
        UIR_TRY(find_value(r, &field, &value));
        p->values.data[value].maker = p->parts.count + 1;
        p->values.data[value].known = true;
        UIR_TRY(uir_vector_push(&p->arena, &part.makes, value));
        UIR_TRY(uir_vector_push(&p->arena, &p->recorded, value));
    }
    UIR_TRY(read_operands(r, inside(whole), 0, &part));
    if (!*part.name && part.makes.count) part.name = uir_onnx_extractor_name(p, part.makes.data[0]);
    return uir_vector_push(&p->arena, &p->parts, part);
}

/* ---- the graph and the model ---- */

static uir_status read_initializer(const reader *r, const uir_wire_field *whole, bool sparse) {
    uir_onnx_extractor *p = r->parts;
    uir_wire_reader wire = inside(whole), tensor = wire;
    uir_wire_field field;
    uint32_t value;
    bool more, external = false;
    for (;;) {
        UIR_TRY(next_field(r, &wire, &field, &more));
        if (!more) break;
        if (sparse && field.number == SPARSE_VALUES && field.type == UIR_WIRE_BYTES) tensor = inside(&field);
        if (!sparse && field.number == TENSOR_LOCATION) external = field.value != 0;
    }
    UIR_TRY(find_named(r, tensor, TENSOR_NAME, &value));
    if (!value) return UIR_STATUS_OK;
    p->values.data[value].initializer = whole_field(whole);
    p->values.data[value].external = external;
    p->values.data[value].known = true;
    return external ? uir_vector_push(&p->arena, &p->recorded, value) : UIR_STATUS_OK;
}

static uir_status read_port(const reader *r, const uir_wire_field *whole, bool output) {
    uir_onnx_extractor *p = r->parts;
    uint32_t value;
    UIR_TRY(find_named(r, inside(whole), VALUE_NAME, &value));
    if (!value) return UIR_STATUS_OK;
    if (output)
        p->values.data[value].is_output = true;
    else
        p->values.data[value].input = whole_field(whole), p->values.data[value].known = true;
    return output ? uir_vector_push(&p->arena, &p->outputs, value) : uir_vector_push(&p->arena, &p->inputs, value);
}

static uir_status read_graph(const reader *r, uir_wire_reader wire) {
    uir_wire_field field;
    bool more;
    for (;;) {
        UIR_TRY(next_field(r, &wire, &field, &more));
        if (!more) return UIR_STATUS_OK;
        if (field.type != UIR_WIRE_BYTES) continue;
        if (field.number == GRAPH_NODE) UIR_TRY(read_node(r, &field));
        if (field.number == GRAPH_INITIALIZER || field.number == GRAPH_SPARSE_INITIALIZER)
            UIR_TRY(read_initializer(r, &field, field.number == GRAPH_SPARSE_INITIALIZER));
        if (field.number == GRAPH_INPUT || field.number == GRAPH_OUTPUT)
            UIR_TRY(read_port(r, &field, field.number == GRAPH_OUTPUT));
    }
}

/* Inputs that are initializers are constants. */
static void drop_defaults(uir_onnx_extractor *p) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->inputs.count; i++) {
        uint32_t value = p->inputs.data[i];
        if (p->values.data[value].initializer.data)
            p->values.data[value].input = (uir_onnx_bytes){NULL, 0};
        else
            p->inputs.data[kept++] = value;
    }
    p->inputs.count = kept;
}

uir_status uir_onnx_extractor_init(const void *data, uint64_t size, const char *file, const uir_allocator *allocator,
                                   uir_diagnostics *diagnostics, uir_onnx_extractor *out_parts) {
    reader r = {out_parts, data, file, diagnostics};
    uir_wire_reader wire = {data, (const uint8_t *)data + size};
    uir_wire_field field;
    bool more;
    memset(out_parts, 0, sizeof *out_parts);
    uir_arena_init(&out_parts->arena, allocator);
    UIR_TRY(uir_strings_init(&out_parts->names, &out_parts->arena));
    UIR_TRY(uir_vector_push(&out_parts->arena, &out_parts->values, ((uir_onnx_part_value){0})));
    for (;;) {
        UIR_TRY(next_field(&r, &wire, &field, &more));
        if (!more) break;
        if (field.number == MODEL_GRAPH && field.type == UIR_WIRE_BYTES)
            UIR_TRY(read_graph(&r, inside(&field)));
        else if (field.number == MODEL_IR_VERSION && field.type == UIR_WIRE_VARINT)
            out_parts->ir_version = (int64_t)field.value;
        else
            UIR_TRY(uir_vector_push(&out_parts->arena, &out_parts->head, whole_field(&field)));
    }
    drop_defaults(out_parts);
    return UIR_STATUS_OK;
}

void uir_onnx_extractor_deinit(uir_onnx_extractor *parts) {
    uir_arena_deinit(&parts->arena);
    memset(parts, 0, sizeof *parts);
}

const char *uir_onnx_extractor_name(const uir_onnx_extractor *parts, uint32_t value) {
    return uir_string_text(&parts->names, (uir_string){value});
}

/* ---- printing ---- */

static void print_bytes(uir_text *text, uir_onnx_bytes bytes) {
    uir_text_append(text, (const char *)bytes.data, (size_t)bytes.length);
}

static void print_message(uir_text *text, uint32_t number, const uir_text *message) {
    uir_wire_write_bytes(text, number, message->data ? message->data : "", message->length);
}

static void print_value_name(const uir_onnx_extractor *p, uint32_t value, uint32_t number, uir_text *text) {
    uir_string name = {value};
    uir_wire_write_bytes(text, number, uir_string_text(&p->names, name), uir_string_length(&p->names, name));
}

/* TypeProto of a tensor in which a dim of -1 is called by its name. */
static uir_status print_tensor_type(uir_dtype dtype, uint32_t rank, bool rank_known, const int64_t *dims,
                                    const uir_text *names, uir_text *text) {
    uir_text shape, tensor, dim;
    uir_text_init(&shape, &text->allocator);
    uir_text_init(&tensor, &text->allocator);
    uir_text_init(&dim, &text->allocator);
    for (uint32_t i = 0; i < rank; i++) {
        dim.length = 0;
        if (dims[i] >= 0)
            uir_wire_write_integer(&dim, DIM_VALUE, dims[i]);
        else
            print_message(&dim, DIM_NAME, &names[i]);
        print_message(&shape, SHAPE_DIM, &dim);
    }
    uir_wire_write_integer(&tensor, TYPE_ELEMENT, (int64_t)dtype);
    if (rank_known) print_message(&tensor, TENSOR_SHAPE, &shape);
    print_message(text, TYPE_TENSOR, &tensor);
    bool good = uir_text_status(&shape) == UIR_STATUS_OK && uir_text_status(&tensor) == UIR_STATUS_OK &&
                uir_text_status(&dim) == UIR_STATUS_OK;
    uir_text_deinit(&dim);
    uir_text_deinit(&tensor);
    uir_text_deinit(&shape);
    return good ? uir_text_status(text) : UIR_STATUS_OUT_OF_MEMORY;
}

/* A list's type around that of its elements. */
static uir_status wrap_type(uir_value_kind kind, const uir_text *element, uir_text *text) {
    uir_text list;
    uir_text_init(&list, &text->allocator);
    print_message(&list, TYPE_ELEMENT, element);
    uir_status status = uir_text_status(&list);
    print_message(text, kind == UIR_VALUE_SEQUENCE ? TYPE_SEQUENCE : TYPE_OPTIONAL, &list);
    uir_text_deinit(&list);
    return status;
}

/* How many symbols before `count` have the name. */
static uint32_t count_named(const uir_dims *dims, const char *name, uint32_t count) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) found += !strcmp(uir_dims_symbol_name(dims, (uir_symbol){i}), name);
    return found;
}

typedef struct naming {
    const uir_dims *dims;
    bool shared; /* a symbol was met whose name an earlier one has */
} naming;

static void meet_symbol(void *user, uir_symbol symbol) {
    naming *n = user;
    n->shared |= count_named(n->dims, uir_dims_symbol_name(n->dims, symbol), symbol.id) > 0;
}

/* A name as it is, without the quotes of an expression. Sizes learned in a run may be called as others are; in the file
 * one name is one dim, so that all but the first get a name that no dim has. */
static void print_dim_name(const uir_dims *dims, uir_dim dim, uir_text *text) {
    uir_symbol symbol;
    naming n = {.dims = dims};
    uir_dim_visit_symbols(dims, dim, meet_symbol, &n);
    if (uir_dim_is_symbol(dims, dim, &symbol))
        uir_text_append_string(text, uir_dims_symbol_name(dims, symbol));
    else
        uir_dim_print(dims, dim, text);
    if (!n.shared) return;
    uir_text_append_format(text, " #%u", (unsigned)dim.id); /* no expression holds such a sign */
    while (!text->failed && count_named(dims, text->data, uir_dims_symbol_count(dims)))
        uir_text_append_string(text, "#");
}

uir_status uir_onnx_print_type(const uir_module *module, const uir_type *type, uir_text *text) {
    uir_text names[UIR_MAX_RANK], element;
    int64_t dims[UIR_MAX_RANK];
    uint32_t rank = type->rank_known && type->rank <= UIR_MAX_RANK ? type->rank : 0;
    uir_status status = UIR_STATUS_OK;
    uir_text_init(&element, &text->allocator);
    for (uint32_t i = 0; i < rank; i++) {
        uir_text_init(&names[i], &text->allocator);
        if (uir_dim_is_const(module->dims, type->dims[i], &dims[i])) continue;
        dims[i] = -1;
        print_dim_name(module->dims, type->dims[i], &names[i]);
        if (status == UIR_STATUS_OK) status = uir_text_status(&names[i]);
    }
    bool list = type->kind != UIR_VALUE_TENSOR;
    if (status == UIR_STATUS_OK)
        status = print_tensor_type(type->dtype, rank, type->rank_known, dims, names, list ? &element : text);
    if (status == UIR_STATUS_OK && list) status = wrap_type(type->kind, &element, text);
    for (uint32_t i = 0; i < rank; i++) uir_text_deinit(&names[i]);
    uir_text_deinit(&element);
    return status;
}

/* By the value itself: all dims are numbers. Elements of lists may differ in theirs. */
static uir_status print_datum_type(const uir_datum *datum, uir_text *text) {
    uir_text element;
    if (datum->kind == UIR_VALUE_TENSOR)
        return print_tensor_type(datum->tensor->dtype, datum->tensor->rank, true, datum->tensor->shape, NULL, text);
    uir_text_init(&element, &text->allocator);
    uir_status status = datum->count && datum->elements[0]->kind != UIR_VALUE_TENSOR
                            ? print_datum_type(datum->elements[0], &element)
                            : print_tensor_type(datum->dtype, 0, false, NULL, NULL, &element);
    if (status == UIR_STATUS_OK) status = wrap_type(datum->kind, &element, text);
    uir_text_deinit(&element);
    return status;
}

static uir_status print_port(const uir_onnx_extractor *p, uint32_t value, bool fixed, uint32_t number, uir_text *text) {
    const uir_onnx_part_value *v = &p->values.data[value];
    uir_text port, type;
    uir_status status = UIR_STATUS_OK;
    if (!fixed && v->input.data && number == GRAPH_INPUT) {
        print_bytes(text, v->input);
        return uir_text_status(text);
    }
    uir_text_init(&port, &text->allocator);
    uir_text_init(&type, &text->allocator);
    print_value_name(p, value, VALUE_NAME, &port);
    if (v->datum && (fixed || !v->type.data))
        status = print_datum_type(v->datum, &type);
    else if (v->type.data)
        print_bytes(&type, v->type);
    if (type.length) print_message(&port, VALUE_TYPE, &type);
    print_message(text, number, &port);
    if (status == UIR_STATUS_OK) status = uir_text_status(&type);
    if (status == UIR_STATUS_OK) status = uir_text_status(&port);
    uir_text_deinit(&type);
    uir_text_deinit(&port);
    return status;
}

/* The model around a graph. */
static void print_head(const uir_onnx_extractor *p, uir_text *text) {
    uir_wire_write_integer(text, MODEL_IR_VERSION, p->ir_version < FIRST_IR_VERSION ? FIRST_IR_VERSION : p->ir_version);
    for (uint32_t i = 0; i < p->head.count; i++) print_bytes(text, p->head.data[i]);
}

uir_status uir_onnx_extractor_print_all(const uir_onnx_extractor *p, uir_text *text) {
    uir_text graph;
    uir_status status = UIR_STATUS_OK;
    uir_text_init(&graph, &text->allocator);
    uir_wire_write_bytes(&graph, GRAPH_NAME, "all", 3);
    for (uint32_t i = 0; i < p->parts.count; i++) print_bytes(&graph, p->parts.data[i].field);
    for (uint32_t i = 1; i < p->values.count; i++)
        if (p->values.data[i].initializer.data) print_bytes(&graph, p->values.data[i].initializer);
    for (uint32_t i = 0; i < p->inputs.count; i++) print_bytes(&graph, p->values.data[p->inputs.data[i]].input);
    for (uint32_t i = 0; i < p->recorded.count && status == UIR_STATUS_OK; i++)
        status = print_port(p, p->recorded.data[i], false, GRAPH_OUTPUT, &graph);
    if (status == UIR_STATUS_OK) status = uir_text_status(&graph);
    print_head(p, text);
    print_message(text, MODEL_GRAPH, &graph);
    uir_text_deinit(&graph);
    return status == UIR_STATUS_OK ? uir_text_status(text) : status;
}

/* ---- some of the parts ---- */

static bool is_shape_like(const uir_datum *datum) {
    if (datum->kind != UIR_VALUE_TENSOR || datum->tensor->rank > 1) return false;
    return datum->tensor->element_count <= MAX_CONSTANT &&
           (datum->tensor->dtype == UIR_DTYPE_I64 || datum->tensor->dtype == UIR_DTYPE_I32);
}

static uir_status print_constant(const uir_onnx_extractor *p, uint32_t value, uir_text *graph) {
    uir_text tensor;
    uir_text_init(&tensor, &graph->allocator);
    uir_status status = uir_onnx_write_datum(p->values.data[value].datum, NULL, &tensor);
    print_value_name(p, value, TENSOR_NAME, &tensor);
    if (status == UIR_STATUS_OK) status = uir_text_status(&tensor);
    print_message(graph, GRAPH_INITIALIZER, &tensor);
    uir_text_deinit(&tensor);
    return status;
}

/* Where a kept part reads from what is not kept. */
static uir_status print_source(uir_onnx_extractor *p, uir_onnx_cut *cut, uint32_t value, uir_text *graph) {
    const uir_onnx_part_value *v = &p->values.data[value];
    if (v->initializer.data && !v->external) {
        print_bytes(graph, v->initializer);
        return UIR_STATUS_OK;
    }
    if (v->datum && (v->external || (v->maker && is_shape_like(v->datum)))) return print_constant(p, value, graph);
    if (!v->datum) return UIR_STATUS_BAD_DATA;
    UIR_TRY(print_port(p, value, cut->fixed, GRAPH_INPUT, graph));
    return uir_vector_push(&p->arena, &cut->inputs, value);
}

static uir_status print_graph(uir_onnx_extractor *p, uir_onnx_cut *cut, bool *read, bool *wanted, uir_text *graph) {
    for (uint32_t i = 0; i < p->parts.count; i++) {
        const uir_onnx_part *part = &p->parts.data[i];
        for (uint32_t k = 0; k < part->reads.count; k++) (cut->kept[i] ? read : wanted)[part->reads.data[k]] = true;
        if (cut->kept[i]) print_bytes(graph, part->field);
    }
    for (uint32_t value = 1; value < p->values.count; value++) {
        const uir_onnx_part_value *v = &p->values.data[value];
        bool made = v->maker && cut->kept[v->maker - 1];
        if (v->known && read[value] && !made) UIR_TRY(print_source(p, cut, value, graph));
        if (!made || !(wanted[value] || v->is_output) || (cut->left_out && cut->left_out[value])) continue;
        UIR_TRY(print_port(p, value, cut->fixed, GRAPH_OUTPUT, graph));
        UIR_TRY(uir_vector_push(&p->arena, &cut->outputs, value));
    }
    return UIR_STATUS_OK;
}

uir_status uir_onnx_extractor_print(uir_onnx_extractor *p, uir_onnx_cut *cut, uir_text *text) {
    uir_text graph;
    bool *read, *wanted;
    cut->inputs.count = cut->outputs.count = 0;
    UIR_TRY_ALLOCATE(read, uir_arena_allocate_array(&p->arena, p->values.count, sizeof *read));
    UIR_TRY_ALLOCATE(wanted, uir_arena_allocate_array(&p->arena, p->values.count, sizeof *wanted));
    uir_text_init(&graph, &text->allocator);
    uir_wire_write_bytes(&graph, GRAPH_NAME, "cut", 3);
    uir_status status = print_graph(p, cut, read, wanted, &graph);
    if (status == UIR_STATUS_OK) status = uir_text_status(&graph);
    print_head(p, text);
    print_message(text, MODEL_GRAPH, &graph);
    uir_text_deinit(&graph);
    return status == UIR_STATUS_OK ? uir_text_status(text) : status;
}
