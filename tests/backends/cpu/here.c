/* What UIR_CPU is to be for native code to run on this machine: on standard output, for tests that are scripts.
 *
 *   uir-cpu-here          exit status 1: UIR_CPU names a variant that this machine does not run; it is left out */
#include "tests/backends/cpu/here.h"

#include <stdio.h>

int main(void) {
    bool runs = here_keep_what_runs();
    const char *text = getenv("UIR_CPU");
    printf("%s\n", text ? text : "");
    return !runs;
}
