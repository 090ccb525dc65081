/* Progress of what takes more than a second, on a terminal only. In: what is being done. Out: one line on standard
 * error, no wider than the terminal, gone when it is done. */
#ifndef UIR_TOOLS_RUN_PROGRESS_H
#define UIR_TOOLS_RUN_PROGRESS_H

#include <stdbool.h>

/* Does nothing unless standard error is a terminal. */
void progress_start(void);
/* What is done now; printable text, which is copied. */
void progress_set(const char *what);
void progress_set_part(const char *what, double fraction); /* 0..1 of the whole */
/* Removes the line. Between hide and the next set nothing is shown. */
void progress_hide(void);
void progress_stop(void);

/* Columns of the terminal that `descriptor` is, else $COLUMNS, else 80. */
int terminal_width(int descriptor);

#endif
