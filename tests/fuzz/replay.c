/* A guided target without libFuzzer: runs it on files, and on every file of folders. `--mutate SEED FROM TO` writes a
 * file changed as the target changes them. */
#include "tests/fuzz/target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SECONDS = 60, MORE = 1 << 16 }; /* of one file, in a sanitized build as well; bytes that a change may add */

/* In a block of its own size and `more`: a sanitizer then sees a read past the end. */
static uint8_t *read_file(const char *path, size_t more, size_t *out_size) {
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about) != 0) {
        fprintf(stderr, "%s: cannot be opened\n", path);
        exit(2);
    }
    *out_size = (size_t)about.st_size;
    uint8_t *bytes = malloc(*out_size + more ? *out_size + more : 1);
    if (!bytes || fread(bytes, 1, *out_size, file) != *out_size) exit(2);
    fclose(file);
    return bytes;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)max_size;
    for (int n = 1 + rand() % 3; n > 0 && size; n--) data[(size_t)rand() % size] ^= (uint8_t)(1 + rand() % 255);
    return size;
}

/* The file once changed. */
static int mutate(const char *seed, const char *from, const char *to) {
    size_t size;
    uint8_t *bytes = read_file(from, MORE, &size);
    unsigned int number = (unsigned int)strtoul(seed, NULL, 10);
    srand(number);
    size = (LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(bytes, size, size + MORE, number)
                                    : LLVMFuzzerMutate(bytes, size, size + MORE));
    FILE *file = fopen(to, "wb");
    bool good = file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0;
    free(bytes);
    return good ? 0 : 2;
}

static size_t replay(const char *path) {
    size_t done = 0;
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        char inner[4096];
        if (e->d_name[0] == '.' || (size_t)snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= sizeof inner)
            continue;
        done += replay(inner);
    }
    if (folder) {
        closedir(folder);
        return done;
    }
    size_t size;
    uint8_t *bytes = read_file(path, 0, &size);
    alarm(MOST_SECONDS); /* a hang ends the program by a signal */
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(bytes, size);
    alarm(0);
    free(bytes);
    return 1;
}

int main(int count, char **arguments) {
    size_t done = 0;
    if (count == 5 && !strcmp(arguments[1], "--mutate")) return mutate(arguments[2], arguments[3], arguments[4]);
    for (int i = 1; i < count; i++) done += replay(arguments[i]);
    printf("%zu files\n", done);
    return 0;
}
