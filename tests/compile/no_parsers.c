/* Stands in for the readers of the IRs' texts in a program that compiles models: nothing inside a compile prints an IR
 * and reads it again. */
#include <stdio.h>
#include <stdlib.h>

#define READER(name)                                                                                                   \
    void __wrap_##name(void);                                                                                          \
    void __wrap_##name(void) {                                                                                         \
        fputs(#name " was called\n", stderr);                                                                          \
        abort();                                                                                                       \
    }
READER(uir_module_parse)
READER(uir_loop_parse)
READER(uir_loop_parse_part)
READER(uir_igraph_parse)
READER(uir_igraph_parse_list)
READER(uir_igraph_parse_part)
