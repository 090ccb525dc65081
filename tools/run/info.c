#define _POSIX_C_SOURCE 200809L
#include "info.h"
#include "json.h"
#include "query.h"
#include "options.h"
#include "printable.h"
#include "progress.h"
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 200 };

typedef uir_port port_function(const uir_model *model, size_t index);

static uint64_t file_size(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static const char *kind_name(uir_value_kind kind) {
    return kind == UIR_VALUE_TENSOR ? "tensor" : kind == UIR_VALUE_SEQUENCE ? "sequence" : "optional";
}

static const char *domain_name(const char *domain) {
    return *domain ? domain : "ai.onnx";
}

/* Not supported, so that nothing but the file's declarations is known. */
static bool is_description(const uir_model *model) {
    return !*query_info(model).device;
}

/* ---- dims ---- */

/* Whether a value can be given to the dim: it is a name, and no expression over others. */
static bool is_name(uir_context *context, const uir_model *model, const char *dim) {
    int64_t *dims = calloc((size_t)query_input(model, 0).rank + 1, sizeof *dims);
    uir_dim_binding binding = {dim, 1};
    if (!dims) return false;
    uir_status status = uir_model_get_input_shape(model, 0, &binding, 1, dims);
    free(dims);
    uir_context_clear_messages(context);
    return status != UIR_STATUS_NOT_FOUND;
}

/* The named dims of the inputs, each once. *out_names is to be freed. */
static bool list_dims(const uir_model *model, const char ***out_names, size_t *out_count) {
    size_t most = 1, count = 0;
    for (size_t i = 0; i < uir_model_input_count(model); i++) most += query_input(model, i).rank;
    const char **names = calloc(most, sizeof *names);
    for (size_t i = 0; names && i < uir_model_input_count(model); i++) {
        uir_port port = query_input(model, i);
        for (uint32_t d = 0; d < port.rank; d++) {
            bool known = port.dims[d] >= 0 || !*port.dim_names[d];
            for (size_t n = 0; n < count && !known; n++) known = !strcmp(names[n], port.dim_names[d]);
            if (!known) names[count++] = port.dim_names[d];
        }
    }
    *out_names = names;
    *out_count = count;
    return names != NULL;
}

static void keep_names(uir_context *context, const uir_model *model, const char **names, size_t *count) {
    size_t kept = 0;
    bool described = is_description(model); /* whose dims are the file's words */
    for (size_t i = 0; i < *count; i++)
        if (described ? !strpbrk(names[i], " +-*/()") : is_name(context, model, names[i])) names[kept++] = names[i];
    *count = kept;
}

/* ---- text ---- */

static void print_line(const char *label, const char *text) {
    char safe[1000];
    int width = terminal_width(STDOUT_FILENO);
    if (!*text) return;
    printf("%-12s", label);
    print_wrapped(stdout, printable(text, safe, sizeof safe), 12, 12, width);
}

static void print_ports(const char *label, const uir_model *model, size_t count, port_function *get) {
    for (size_t i = 0; i < count; i++) {
        uir_port port = get(model, i);
        char name[SHOWN], dim[SHOWN];
        printf("%-12s%s  ", i ? "" : label, printable(port.name, name, sizeof name));
        if (port.kind != UIR_VALUE_TENSOR) printf("%s of ", kind_name(port.kind));
        fputs(port.dtype == UIR_DTYPE_NONE ? "?" : uir_dtype_get_name(port.dtype), stdout);
        if (!port.rank_known) {
            puts(" of any shape");
            continue;
        }
        putchar('[');
        for (uint32_t d = 0; d < port.rank; d++) {
            if (d) fputs(", ", stdout);
            if (port.dims[d] >= 0)
                printf("%lld", (long long)port.dims[d]);
            else
                fputs(*port.dim_names[d] ? printable(port.dim_names[d], dim, sizeof dim) : "?", stdout);
        }
        puts("]");
    }
}

/* A list in words, grown as it is written. */
typedef struct words {
    char *text;
    size_t length;
} words;

static void add_words(words *w, const char *format, ...) PRINTF_LIKE(2, 3);
static void add_words(words *w, const char *format, ...) {
    char item[600];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(item, sizeof item, format, arguments);
    va_end(arguments);
    if (n < 0) return;
    if ((size_t)n >= sizeof item) n = sizeof item - 1;
    char *grown = realloc(w->text, w->length + (size_t)n + 1);
    if (!grown) return;
    memcpy(grown + w->length, item, (size_t)n + 1);
    w->text = grown;
    w->length += (size_t)n;
}

static void print_words(const char *label, words *w) {
    int width = terminal_width(STDOUT_FILENO);
    if (w->length) {
        printf("%-12s", label);
        print_wrapped(stdout, w->text, 12, 12, width);
    }
    free(w->text);
    *w = (words){NULL, 0};
}

static const char *separator(const words *w) {
    return w->length ? ", " : "";
}

/* Of a package. */
static void print_makers(const uir_model *model, const uir_model_contents *c) {
    words w = {NULL, 0};
    char safe[SHOWN];
    if (!c->package_version) return;
    add_words(&w, "%s", printable(c->made_by, safe, sizeof safe));
    print_words("made by", &w);
    if (*c->signed_by)
        add_words(&w, "by key %s, %s", printable(c->signed_by, safe, sizeof safe),
                  c->signature_is_checked ? "trusted" : "not checked: give --trust KEY.pub to check it");
    else
        add_words(&w, "no");
    print_words("signed", &w);
    add_words(&w, "%s", printable(query_info(model).precision, safe, sizeof safe));
    print_words("precision", &w);
}

static void print_origin(const uir_model *model, const uir_model_contents *c, const char *path) {
    uir_model_info info = query_info(model);
    uir_opset opset = {.struct_size = sizeof opset};
    words w = {NULL, 0};
    char a[SHOWN], b[SHOWN];
    if (c->package_version)
        add_words(&w, "package, version %u, %.3f MB", c->package_version, (double)file_size(path) / 1e6);
    else
        add_words(&w, "ONNX model, %.3f MB", (double)file_size(path) / 1e6);
    if (c->external_bytes && !c->package_version)
        add_words(&w, ", and %.3f MB of weights in other files", (double)c->external_bytes / 1e6);
    print_words("file", &w);
    print_makers(model, c);
    if (*info.producer)
        add_words(&w, "%s %s", printable(info.producer, a, sizeof a), printable(c->producer_version, b, sizeof b));
    print_words("producer", &w);
    print_line("graph", c->graph);
    print_line("domain", c->domain);
    if (info.ir_version) add_words(&w, "%lld", (long long)info.ir_version);
    print_words("IR version", &w);
    for (size_t i = 0; uir_model_get_opset(model, i, &opset) == UIR_STATUS_OK; i++)
        add_words(&w, "%s%s %lld", separator(&w), printable(domain_name(opset.domain), a, sizeof a),
                  (long long)opset.version);
    print_words("opsets", &w);
}

static uint64_t count_nodes(const uir_model *model) {
    uir_op_count op = {.struct_size = sizeof op};
    uint64_t count = 0;
    for (size_t i = 0; uir_model_get_op_count(model, i, &op) == UIR_STATUS_OK; i++) count += op.count;
    return count;
}

static void print_ops(const uir_model *model, const uir_model_contents *c) {
    uir_op_count op = {.struct_size = sizeof op};
    words w = {NULL, 0};
    char name[SHOWN], domain[SHOWN];
    uint64_t nodes = count_nodes(model);
    if (nodes) add_words(&w, "%llu", (unsigned long long)nodes);
    if (c->function_count) add_words(&w, ", local functions %u", c->function_count);
    print_words("nodes", &w);
    for (size_t i = 0; uir_model_get_op_count(model, i, &op) == UIR_STATUS_OK; i++)
        add_words(&w, "%s%s%s%s %llu", separator(&w), printable(op.domain, domain, sizeof domain),
                  *op.domain ? "::" : "", printable(op.op, name, sizeof name), (unsigned long long)op.count);
    print_words("ops", &w);
}

/* What the columns of lists of maps are. */
static void print_keys(const uir_model *model) {
    words w = {NULL, 0};
    char safe[SHOWN];
    for (size_t i = 0; i < uir_model_output_count(model); i++) {
        uir_port port = query_output(model, i);
        if (!port.key_count) continue;
        add_words(&w, "columns of %s:", printable(port.name, safe, sizeof safe));
        for (size_t k = 0; k < port.key_count; k++)
            add_words(&w, "%s%s", k ? ", " : " ", printable(port.keys[k], safe, sizeof safe));
        print_words("keys", &w);
    }
}

/* Inputs that may be overridden: an old file lists all of its weights. */
static void print_defaults(const uir_model *model) {
    enum { SHOWN_DEFAULTS = 8 };
    words w = {NULL, 0};
    char safe[SHOWN];
    uir_default d;
    size_t count = 0;
    for (; query_default(model, count, &d); count++)
        if (count < SHOWN_DEFAULTS)
            add_words(&w, "%s%s%s", separator(&w), printable(d.name, safe, sizeof safe),
                      d.is_overridden ? " (overridden: an input)" : "");
    if (count > SHOWN_DEFAULTS) add_words(&w, " and %zu more (--json)", count - SHOWN_DEFAULTS);
    if (count) print_words("defaults", &w);
}

static void print_package(const uir_model *model, const uir_model_contents *c) {
    uir_native_code code = {.struct_size = sizeof code};
    uir_tolerance t = {.struct_size = sizeof t};
    words w = {NULL, 0};
    char isa[SHOWN];
    if (!c->package_version) return;
    add_words(&w, "%u, for the VM", query_info(model).kernel_count);
    print_words("kernels", &w);
    for (size_t i = 0; uir_model_get_native_code(model, i, &code) == UIR_STATUS_OK; i++)
        add_words(&w, "%s%s (%.3f MB, %s)", separator(&w), printable(code.isa, isa, sizeof isa),
                  (double)code.size / 1e6, code.runs_here ? "runs here" : "not for this machine");
    if (!w.length) add_words(&w, "none");
    print_words("native code", &w);
    if (uir_model_get_tolerance(model, &t) == UIR_STATUS_OK)
        add_words(&w, "rtol %g, atol %g + %g of the greatest expected magnitude, %g for integers", t.rtol, t.atol,
                  t.atol_relative_to_max, t.integers);
    print_words("tolerance", &w);
}

static void print_info(uir_context *context, const uir_model *model, const uir_model_contents *c, const char *path,
                       const char *const *dims, size_t dim_count) {
    uir_metadata pair = {.struct_size = sizeof pair};
    words w = {NULL, 0};
    char safe[SHOWN], value[SHOWN];
    print_origin(model, c, path);
    print_ports("inputs", model, uir_model_input_count(model), query_input);
    print_ports("outputs", model, uir_model_output_count(model), query_output);
    print_defaults(model);
    print_keys(model);
    for (size_t i = 0; i < dim_count; i++) add_words(&w, "%s%s", separator(&w), printable(dims[i], safe, sizeof safe));
    print_words("dims", &w);
    add_words(&w, "%llu parameters, %.3f MB", (unsigned long long)c->parameter_count, (double)c->weight_bytes / 1e6);
    if (c->package_version) add_words(&w, "; in the package %.3f MB", (double)c->package_weight_bytes / 1e6);
    print_words("weights", &w);
    print_ops(model, c);
    print_package(model, c);
    for (size_t i = 0; uir_model_get_metadata_at(model, i, &pair) == UIR_STATUS_OK; i++)
        printf("%-12s%s = %s\n", i ? "" : "metadata", printable(pair.key, safe, sizeof safe),
               printable(pair.value, value, sizeof value));
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (m.severity == UIR_SEVERITY_ERROR) printf("%-12s%s\n", "unsupported", m.text);
    }
}

/* ---- JSON ---- */

static cJSON *make_ports(const uir_model *model, size_t count, port_function *get) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        uir_port port = get(model, i);
        cJSON *object = cJSON_CreateObject(), *shape;
        report_add_text(object, "name", port.name);
        cJSON_AddStringToObject(object, "kind", kind_name(port.kind));
        if (port.dtype == UIR_DTYPE_NONE)
            cJSON_AddNullToObject(object, "dtype");
        else
            cJSON_AddStringToObject(object, "dtype", uir_dtype_get_name(port.dtype));
        shape = port.rank_known ? cJSON_AddArrayToObject(object, "shape") : cJSON_AddNullToObject(object, "shape");
        for (uint32_t d = 0; port.rank_known && d < port.rank; d++) {
            char name[1024];
            cJSON_AddItemToArray(shape, port.dims[d] >= 0 ? cJSON_CreateNumber((double)port.dims[d])
                                        : *port.dim_names[d]
                                            ? cJSON_CreateString(printable(port.dim_names[d], name, sizeof name))
                                            : cJSON_CreateNull());
        }
        if (port.key_count) {
            cJSON *keys = cJSON_AddArrayToObject(object, "keys");
            for (size_t k = 0; k < port.key_count; k++) {
                char key[1024];
                cJSON_AddItemToArray(keys, cJSON_CreateString(printable(port.keys[k], key, sizeof key)));
            }
        }
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

/* Each with where inputs have it. */
static cJSON *make_dims(const uir_model *model, const char *const *dims, size_t count) {
    cJSON *list = cJSON_CreateArray();
    for (size_t n = 0; n < count; n++) {
        cJSON *object = cJSON_CreateObject(), *places;
        report_add_text(object, "name", dims[n]);
        places = cJSON_AddArrayToObject(object, "inputs");
        for (size_t i = 0; i < uir_model_input_count(model); i++) {
            uir_port port = query_input(model, i);
            for (uint32_t d = 0; d < port.rank; d++) {
                if (port.dims[d] >= 0 || strcmp(port.dim_names[d], dims[n]) != 0) continue;
                cJSON *place = cJSON_CreateObject();
                report_add_text(place, "name", port.name);
                cJSON_AddNumberToObject(place, "axis", d);
                cJSON_AddItemToArray(places, place);
            }
        }
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static void add_package(cJSON *root, const uir_model *model, const uir_model_contents *c) {
    uir_native_code code = {.struct_size = sizeof code};
    uir_tolerance t = {.struct_size = sizeof t};
    if (!c->package_version) {
        cJSON_AddNullToObject(root, "package");
        return;
    }
    cJSON *package = cJSON_AddObjectToObject(root, "package"), *list, *tolerance;
    cJSON_AddNumberToObject(package, "version", c->package_version);
    report_add_text(package, "made_by", c->made_by);
    if (*c->signed_by)
        report_add_text(package, "signed_by", c->signed_by);
    else
        cJSON_AddNullToObject(package, "signed_by");
    cJSON_AddBoolToObject(package, "signature_checked", c->signature_is_checked);
    report_add_text(package, "precision", query_info(model).precision);
    cJSON_AddNumberToObject(package, "kernels", query_info(model).kernel_count);
    cJSON_AddNumberToObject(package, "weight_bytes", (double)c->package_weight_bytes);
    list = cJSON_AddArrayToObject(package, "native");
    for (size_t i = 0; uir_model_get_native_code(model, i, &code) == UIR_STATUS_OK; i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "isa", code.isa);
        cJSON_AddNumberToObject(object, "bytes", (double)code.size);
        cJSON_AddBoolToObject(object, "runs_here", code.runs_here);
        cJSON_AddItemToArray(list, object);
    }
    if (uir_model_get_tolerance(model, &t) != UIR_STATUS_OK) {
        cJSON_AddNullToObject(package, "tolerance");
        return;
    }
    tolerance = cJSON_AddObjectToObject(package, "tolerance");
    report_add_number(tolerance, "rtol", t.rtol);
    report_add_number(tolerance, "atol", t.atol);
    report_add_number(tolerance, "atol_relative_to_max", t.atol_relative_to_max);
    report_add_number(tolerance, "integers", t.integers);
}

static void add_ops(cJSON *root, const uir_model *model) {
    uir_op_count op = {.struct_size = sizeof op};
    uir_opset opset = {.struct_size = sizeof opset};
    uir_metadata pair = {.struct_size = sizeof pair};
    cJSON *list = cJSON_AddArrayToObject(root, "opsets");
    for (size_t i = 0; uir_model_get_opset(model, i, &opset) == UIR_STATUS_OK; i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "domain", domain_name(opset.domain));
        cJSON_AddNumberToObject(object, "version", (double)opset.version);
        cJSON_AddItemToArray(list, object);
    }
    cJSON_AddNumberToObject(root, "nodes", (double)count_nodes(model));
    list = cJSON_AddArrayToObject(root, "ops");
    for (size_t i = 0; uir_model_get_op_count(model, i, &op) == UIR_STATUS_OK; i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "domain", domain_name(op.domain));
        report_add_text(object, "op", op.op);
        cJSON_AddNumberToObject(object, "count", (double)op.count);
        cJSON_AddItemToArray(list, object);
    }
    list = cJSON_AddArrayToObject(root, "metadata");
    for (size_t i = 0; uir_model_get_metadata_at(model, i, &pair) == UIR_STATUS_OK; i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "key", pair.key);
        report_add_text(object, "value", pair.value);
        cJSON_AddItemToArray(list, object);
    }
}

static bool write_info(uir_context *context, const uir_model *model, const uir_model_contents *c, const char *path,
                       const char *const *dims, size_t dim_count) {
    uir_model_info info = query_info(model);
    cJSON *root = cJSON_CreateObject(), *problems;
    cJSON_AddNumberToObject(root, "version", 1);
    report_add_text(root, "file", path);
    cJSON_AddNumberToObject(root, "file_bytes", (double)file_size(path));
    report_add_text(root, "producer", info.producer);
    report_add_text(root, "producer_version", c->producer_version);
    report_add_text(root, "domain", c->domain);
    report_add_text(root, "graph", c->graph);
    cJSON_AddNumberToObject(root, "model_version", (double)c->model_version);
    cJSON_AddNumberToObject(root, "ir_version", (double)info.ir_version);
    cJSON_AddNumberToObject(root, "opset", (double)info.opset);
    cJSON_AddItemToObject(root, "inputs", make_ports(model, uir_model_input_count(model), query_input));
    cJSON *defaults = cJSON_AddArrayToObject(root, "defaults");
    uir_default d;
    for (size_t i = 0; query_default(model, i, &d); i++) {
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "name", d.name);
        cJSON_AddNumberToObject(object, "place", d.place);
        cJSON_AddBoolToObject(object, "overridden", d.is_overridden);
        cJSON_AddItemToArray(defaults, object);
    }
    cJSON_AddItemToObject(root, "outputs", make_ports(model, uir_model_output_count(model), query_output));
    cJSON_AddItemToObject(root, "dims", make_dims(model, dims, dim_count));
    cJSON_AddNumberToObject(root, "parameters", (double)c->parameter_count);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)c->weight_bytes);
    cJSON_AddNumberToObject(root, "external_bytes", (double)c->external_bytes);
    cJSON_AddNumberToObject(root, "functions", c->function_count);
    add_ops(root, model);
    add_package(root, model, c);
    problems = cJSON_AddArrayToObject(root, "problems");
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (m.severity == UIR_SEVERITY_ERROR) cJSON_AddItemToArray(problems, cJSON_CreateString(m.text));
    }
    return report_write_json(stdout, root);
}

bool info_report(uir_context *context, uir_model *model, const char *path, bool json) {
    uir_model_contents contents = {.struct_size = sizeof contents};
    const char **dims;
    size_t count;
    (void)!uir_model_get_contents(model, &contents);
    bool good = list_dims(model, &dims, &count);
    if (good && count) keep_names(context, model, dims, &count);
    if (good && json)
        good = write_info(context, model, &contents, path, dims, count);
    else if (good)
        print_info(context, model, &contents, path, dims, count);
    free(dims);
    return good;
}
