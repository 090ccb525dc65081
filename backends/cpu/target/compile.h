/* Internal declarations of the CPU target: the compiler and its arguments, for build.c. */
#ifndef UIR_BACKENDS_CPU_TARGET_COMPILE_H
#define UIR_BACKENDS_CPU_TARGET_COMPILE_H

#include "backends/cpu/target/cpu.h"
#include "backends/cpu/target/mark.h"

/* The words of a command, separated by blanks, without quoting or expansion. */
#define UIR_CPU_WORDS_MAX 192
typedef struct uir_cpu_words {
    char text[8192]; /* the words, each ending in 0 */
    size_t used;
    char *argv[UIR_CPU_WORDS_MAX + 1];
    uint32_t count;
} uir_cpu_words;

bool uir_cpu_words_add(uir_cpu_words *words, const char *word, size_t length); /* one word; false: too many */
bool uir_cpu_words_add_all(uir_cpu_words *words, const char *text);            /* all words of a text; NULL: none */
/* Link flags: no writable memory of the object is executable, and relocated data is read-only. */
#define UIR_CPU_LINK_SHARED "-shared -Wl,-z,relro,-z,now,-z,noexecstack"
/* The compiler and all flags that affect the code. */
bool uir_cpu_words_begin(uir_cpu_words *words, const uir_cpu_compile_options *options);

/* Adds to the link of an object its mark (mark.h), from the digest of `material`; false: too many words. */
bool uir_cpu_words_mark(uir_cpu_words *link, const uir_text *material, char out_mark[UIR_CPU_MARK_SIZE]);

/* Finds the path of a program by its name. */
bool uir_cpu_find_program(const char *program, char *place, size_t capacity);
/* The hint for a missing compiler. */
const char *uir_cpu_compiler_hint(const uir_cpu_compile_options *options);
uir_status uir_cpu_make_folder(char folder[512], uir_diagnostics *diagnostics); /* private, in TMPDIR */
/* Removes the folder and its files; compilers make no folders there. */
void uir_cpu_remove_folder(const char *folder);
uir_status uir_cpu_write_file(const char *path, const char *data, size_t length, uir_diagnostics *diagnostics);
/* The allocator's block of `out_size` bytes. */
uir_status uir_cpu_read_file(const uir_allocator *allocator, const char *path, uir_diagnostics *diagnostics,
                             void **out_bytes, size_t *out_size);

#endif
