/* What compile.c shares with launch.c (a loaded object) and with build.c (the compiler and its words). Private to this
 * folder. */
#ifndef UIR_BACKENDS_CPU_TARGET_COMPILE_H
#define UIR_BACKENDS_CPU_TARGET_COMPILE_H

#include "backends/cpu/target/cpu.h"
#include "backends/cpu/target/mark.h"

typedef void (*uir_cpu_phase_function)(const int64_t *symbols, void *const *pointers, void *scratch, int64_t begin,
                                       int64_t end, const volatile bool *cancel);

struct uir_cpu_module {
    uir_allocator allocator;
    void *handle;
};

/* NULL when the object has no such phase. */
uir_cpu_phase_function uir_cpu_module_find(const uir_cpu_module *module, const char *symbol, uint32_t phase);

/* The words of a command; blanks separate, there is no quoting, and nothing is expanded. */
#define UIR_CPU_WORDS_MAX 192
typedef struct uir_cpu_words {
    char text[8192]; /* the words, each ending in 0 */
    size_t used;
    char *argv[UIR_CPU_WORDS_MAX + 1];
    uint32_t count;
} uir_cpu_words;

bool uir_cpu_words_add(uir_cpu_words *words, const char *word, size_t length); /* one word; false: too many */
bool uir_cpu_words_add_all(uir_cpu_words *words, const char *text);            /* all of a text's; NULL: none */
/* How an object is linked: nothing of it that could be written to is executable, and what the loader fills in is
 * read-only. */
#define UIR_CPU_LINK_SHARED "-shared -Wl,-z,relro,-z,now,-z,noexecstack"
/* The compiler and every flag that decides what the code does. */
bool uir_cpu_words_begin(uir_cpu_words *words, const uir_cpu_compile_options *options);

/* Adds to the link of an object the mark (mark.h) that the material's digest gives it; false: too many words. */
bool uir_cpu_words_mark(uir_cpu_words *link, const uir_text *material, char out_mark[UIR_CPU_MARK_SIZE]);

/* Where a program is that is started by that name. */
bool uir_cpu_find_program(const char *program, char *place, size_t capacity);
/* What to do where there is none. */
const char *uir_cpu_compiler_hint(const uir_cpu_compile_options *options);
uir_status uir_cpu_make_folder(char folder[512], uir_diagnostics *diagnostics); /* private, in TMPDIR */
/* With all that a compiler may have left in it; it makes no folders there. */
void uir_cpu_remove_folder(const char *folder);
uir_status uir_cpu_write_file(const char *path, const char *data, size_t length, uir_diagnostics *diagnostics);
/* `out_size` bytes of the allocator's. */
uir_status uir_cpu_read_file(const uir_allocator *allocator, const char *path, uir_diagnostics *diagnostics,
                             void **out_bytes, size_t *out_size);

#endif
