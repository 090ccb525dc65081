/* Files of golden texts: cases that say what goes in and what must come out, the latter written by the program that
 * checks it when it is told to bless (script/bless).
 *
 *     # WORD: title          a case begins with the file's own first word
 *     # other: value         what else it is told, as many lines as it likes
 *     what goes in
 *     # fail: text           in place of an expected text: a message that must be there, a line each
 *     # expect
 *     what must come out
 *
 * What stands before the first case is kept. For test programs: whatever is wrong with a file ends them with a
 * message. */
#ifndef UIR_TESTS_BASE_GOLDEN_H
#define UIR_TESTS_BASE_GOLDEN_H

#include <stdbool.h>

enum { GOLDEN_HEADINGS = 8, GOLDEN_FAILS = 16 };

typedef struct golden_case {
    const char *title;
    const char *words[GOLDEN_HEADINGS], *values[GOLDEN_HEADINGS]; /* other headings */
    char *input, *expect;                                         /* whole lines; `expect` NULL: none */
    const char *fails[GOLDEN_FAILS];
    int heading_count, fail_count, line;
    char *made; /* what came out, for golden_write */
} golden_case;

typedef struct golden_file {
    char *path, *word, *text;
    char *comment; /* before the first case; NULL: nothing */
    golden_case *cases;
    int count;
} golden_file;

/* `word`: which begins a case, as "pass". */
golden_file golden_read(const char *path, const char *word);
void golden_free(golden_file *file);
/* The value of a heading; "" where the case has none. */
const char *golden_get(const golden_case *c, const char *word);
/* Keeps a copy of what came out. */
void golden_keep(golden_case *c, const char *text);
/* The file again, with what came out of each case as what must. */
void golden_write(const golden_file *file);

#endif
