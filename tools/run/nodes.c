#define _POSIX_C_SOURCE 200809L
#include "nodes.h"
#include "json.h"
#include "options.h"
#include "printable.h"
#include "query.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096 }; /* of a name that is shown */

/* ---- rows ---- */
char *nodes_of_row(const uir_session *session, size_t row) {
    char *text = NULL, name[LONGEST], op[LONGEST];
    size_t size = 0;
    uir_row_node node;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return NULL;
    for (size_t i = 0; query_row_node(session, row, i, &node); i++)
        fprintf(stream, "%s%s %s%s", i ? " + " : "", printable(node.op, op, sizeof op),
                printable(node.name, name, sizeof name), node.again ? " (again)" : "");
    if (!query_row_node(session, row, 0, &node)) fputs("(no node of the model)", stream);
    if (fclose(stream) == 0) return text;
    free(text);
    return NULL;
}

static void add_node(cJSON *nodes, const uir_row_node *node) {
    cJSON *object = cJSON_CreateObject();
    report_add_text(object, "name", node->name);
    report_add_text(object, "op", node->op);
    cJSON_AddBoolToObject(object, "again", node->again);
    cJSON_AddItemToArray(nodes, object);
}

void nodes_add_row(cJSON *object, const uir_session *session, size_t row) {
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    uir_row_node node;
    for (size_t i = 0; query_row_node(session, row, i, &node); i++) add_node(nodes, &node);
}

void nodes_add_slice(cJSON *object, const uir_session *session, size_t slice) {
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    uir_row_node node;
    for (size_t i = 0; query_slice_node(session, slice, i, &node); i++) add_node(nodes, &node);
}

/* ---- those without a row ---- */
/* By node of the file, whether some row has it. NULL: no memory. */
static bool *mark_rows(const uir_model *model, const uir_session *session, size_t *out_count) {
    uir_model_node known;
    uir_node_statistics row;
    uir_row_node node;
    size_t count = 0;
    while (query_model_node(model, count, &known)) count++;
    bool *has_row = calloc(count + 1, sizeof *has_row);
    for (size_t r = 0; has_row && query_node(session, r, &row); r++)
        for (size_t i = 0; query_row_node(session, r, i, &node); i++) has_row[node.node] = true;
    *out_count = count;
    return has_row;
}

/* Of a node without a row: what became of it, or that the run did not come to it. */
static uir_model_node tell_fate(const uir_model *model, size_t index) {
    uir_model_node node;
    (void)query_model_node(model, index, &node);
    if (*node.fate) return node;
    bool works = !strcmp(node.step, "launch") || !strcmp(node.step, "host") || !strcmp(node.step, "interpreter");
    node.fate = works ? "not run" : "plan";
    node.why = works ? "the run did not reach it" : "a step of the run that computes no tensor";
    return node;
}

static void print_fate(const uir_model *model, const uir_model_node *first, const bool *done, size_t begin,
                       size_t count, int width) {
    char *text = NULL, name[LONGEST], op[LONGEST];
    size_t size = 0, many = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return;
    fprintf(stream, "%s (%s):", first->fate, first->why);
    for (size_t i = begin; i < count; i++) {
        uir_model_node into, node;
        if (done[i]) continue;
        node = tell_fate(model, i);
        if (strcmp(node.fate, first->fate) != 0) continue;
        fprintf(stream, "%s %s %s", many++ ? "," : "", printable(node.op, op, sizeof op),
                printable(node.name, name, sizeof name));
        if (node.into != UINT32_MAX && query_model_node(model, node.into, &into))
            fprintf(stream, " into %s", printable(into.name, name, sizeof name));
    }
    if (fclose(stream) == 0) {
        fputs("  ", stdout);
        print_wrapped(stdout, text, 2, 4, width);
    }
    free(text);
}

bool nodes_report_elsewhere(const uir_model *model, const uir_session *session, int width) {
    size_t count;
    bool *done = mark_rows(model, session, &count);
    if (!done) return false;
    for (size_t i = 0; i < count; i++) {
        if (done[i]) continue;
        uir_model_node node = tell_fate(model, i);
        print_fate(model, &node, done, i, count, width);
        for (size_t k = i; k < count; k++) done[k] |= !strcmp(tell_fate(model, k).fate, node.fate);
    }
    free(done);
    return true;
}

bool nodes_add_elsewhere(cJSON *object, const uir_model *model, const uir_session *session) {
    size_t count;
    bool *has_row = mark_rows(model, session, &count);
    cJSON *nodes = cJSON_AddArrayToObject(object, "elsewhere");
    for (size_t i = 0; has_row && i < count; i++) {
        if (has_row[i]) continue;
        uir_model_node into, node = tell_fate(model, i);
        cJSON *o = cJSON_CreateObject();
        report_add_text(o, "name", node.name);
        report_add_text(o, "op", node.op);
        report_add_text(o, "fate", node.fate);
        if (node.into != UINT32_MAX && query_model_node(model, node.into, &into))
            report_add_text(o, "into", into.name);
        else
            cJSON_AddNullToObject(o, "into");
        report_add_text(o, "why", node.why);
        cJSON_AddItemToArray(nodes, o);
    }
    free(has_row);
    return has_row != NULL;
}
