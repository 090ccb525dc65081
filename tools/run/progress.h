/* Shows progress of work of more than a second, on a terminal only. In: the current step. Out: one line on standard
 * error, no wider than the terminal, removed at the end. */
#ifndef UIR_TOOLS_RUN_PROGRESS_H
#define UIR_TOOLS_RUN_PROGRESS_H

#include <stdbool.h>

/* Does nothing unless standard error is a terminal. */
void progress_start(void);
/* Sets the current step; printable text, which is copied. */
void progress_set(const char *what);
void progress_set_part(const char *what, double fraction); /* 0..1 of the whole */
/* Removes the line, until the next set. */
void progress_hide(void);
void progress_stop(void);

/* Columns of the terminal that `descriptor` is, else $COLUMNS, else 80. */
int terminal_width(int descriptor);

#endif
