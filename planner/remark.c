/* Why a step is as it is, in words: which rewrites made its group, or why no kernel computes it. */
#include "planner/internal.h"

#include <string.h>

enum { REMARK_MAX = 300 }; /* a line that a person reads; uir-opt prints the whole trace */

typedef struct phrase {
    const char *text;
    size_t length;
} phrase;

static bool is_same(phrase a, phrase b) {
    return a.length == b.length && !memcmp(a.text, b.text, a.length);
}

/* "sink: mul (name) into add (name)": the rule and the op that it joined. */
static void split_line(const char *line, phrase *rule, phrase *op) {
    const char *colon = strstr(line, ": ");
    *rule = (phrase){line, colon ? (size_t)(colon - line) : strlen(line)};
    *op = (phrase){colon ? colon + 2 : "", colon ? strcspn(colon + 2, " ") : 0};
}

/* "sink: mul, add x2; recompute: broadcast": neighbours of one rule and one op are said once. */
static uir_status describe_trace(const planner *p, const uir_attribute *trace, uir_text *remark) {
    phrase last_rule = {"", 0};
    for (uint32_t i = 0; i < trace->count;) {
        phrase rule, op, next_rule, next_op;
        uint32_t same = 0;
        split_line(uir_string_text(&p->module->strings, trace->value.strings[i]), &rule, &op);
        do {
            same++;
            next_rule = next_op = (phrase){"", 0};
            if (i + same < trace->count)
                split_line(uir_string_text(&p->module->strings, trace->value.strings[i + same]), &next_rule, &next_op);
        } while (i + same < trace->count && is_same(rule, next_rule) && is_same(op, next_op));
        if (remark->length > REMARK_MAX) {
            uir_text_append_format(remark, "; and %u more", trace->count - i);
            break;
        }
        if (is_same(rule, last_rule) && i)
            uir_text_append_string(remark, ", ");
        else
            uir_text_append_format(remark, "%s%.*s: ", i ? "; " : "", (int)rule.length, rule.text);
        uir_text_append(remark, op.text, op.length);
        if (same > 1) uir_text_append_format(remark, " x%u", same);
        last_rule = rule;
        i += same;
    }
    return uir_text_status(remark);
}

static uir_status describe_node(const planner *p, const uir_node_info *node, uir_text *remark) {
    const uir_plan_options *options = p->options;
    uint32_t id = (uint32_t)(node - p->module->nodes.data);
    const uir_op_row *row = uir_op_get_row(node->op);
    if (node->kernel) {
        const uir_attribute *trace = uir_node_find_attribute(p->module, node, "trace");
        if (trace && trace->kind == UIR_ATTRIBUTE_STRINGS && trace->count) return describe_trace(p, trace, remark);
        uir_text_append_string(remark, "unfused: no neighbour joined it");
        return uir_text_status(remark);
    }
    if (id < options->reason_count && options->reasons[id])
        uir_text_append_format(remark, "no kernel computes it: %s", options->reasons[id]);
    else if (node->op == UIR_OP_GROUP)
        uir_text_append_string(remark, "no kernel computes it");
    else if (row->traits & UIR_TRAIT_HOST)
        uir_text_append_format(remark, "'%s' is a host operator", row->name);
    return uir_text_status(remark);
}

uir_status uir_pl_add_remark(planner *p, const uir_node_info *node, uint32_t *out_text) {
    uir_text remark;
    uir_text_init(&remark, &p->allocator);
    uir_status status = describe_node(p, node, &remark);
    if (status == UIR_STATUS_OK) status = uir_pl_add_text(p, remark.data ? remark.data : "", remark.length, out_text);
    uir_text_deinit(&remark);
    return status;
}
