/* The nodes of the model's file in reports: which of them a row stands for, and what became of those that no row has.
 *
 * In: a session that has run. Out: text for people, members of JSON. */
#ifndef UIR_TOOLS_RUN_NODES_H
#define UIR_TOOLS_RUN_NODES_H

#include "uir/tools.h"

struct cJSON;

/* "Conv conv.0.0 + Clip conv.0.2", the node that most of the row's work is for first, made printable, with no length
 * cut; of a row that came from no node "(no node of the model)". To be freed; NULL: no memory. */
char *nodes_of_row(const uir_session *session, size_t row);
/* The nodes that no row of the run has, by what became of them. */
bool nodes_report_elsewhere(const uir_model *model, const uir_session *session, int width);
/* As the members `nodes` of a row's object, or of a trace slice's, and `elsewhere` of the whole. */
void nodes_add_row(struct cJSON *object, const uir_session *session, size_t row);
void nodes_add_slice(struct cJSON *object, const uir_session *session, size_t slice);
bool nodes_add_elsewhere(struct cJSON *object, const uir_model *model, const uir_session *session);

#endif
