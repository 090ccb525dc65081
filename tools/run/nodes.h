/* Reports nodes of the model's file: those that a row computes, and the fate of those without a row.
 *
 * In: a session that has run. Out: text for people, members of JSON. */
#ifndef UIR_TOOLS_RUN_NODES_H
#define UIR_TOOLS_RUN_NODES_H

#include "uir/tools.h"

struct cJSON;

/* "Conv conv.0.0 + Clip conv.0.2", the row's main node first, printable, of any length; "(no node of the model)" for a
 * row without one. To be freed; NULL: out of memory. */
char *nodes_of_row(const uir_session *session, size_t row);
/* Prints the nodes without a row, by their fate. */
bool nodes_report_elsewhere(const uir_model *model, const uir_session *session, int width);
/* Add the members `nodes` to the object of a row or of a trace slice, and `elsewhere` to that of the whole. */
void nodes_add_row(struct cJSON *object, const uir_session *session, size_t row);
void nodes_add_slice(struct cJSON *object, const uir_session *session, size_t slice);
bool nodes_add_elsewhere(struct cJSON *object, const uir_model *model, const uir_session *session);

#endif
