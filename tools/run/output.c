#define _POSIX_C_SOURCE 200809L
#include "output.h"
#include "printable.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_error; /* why standard output could not be written before the end; 0 */

bool output_flush(void) {
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (fflush(stdout) != 0) write_error = errno;
    if (!ferror(stdout)) return true;
    return write_error == EPIPE || (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR));
}

uir_status output_check_place(const char *option, const char *path) {
    char folder[4096] = ".";
    size_t length = path ? strlen(path) : 0;
    while (length > 1 && path[length - 1] == '/') length--;
    while (length && path[length - 1] != '/') length--;
    if (!path || length >= sizeof folder) return UIR_STATUS_OK; /* too long: whoever makes the file says so */
    if (length) snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    if (access(folder, W_OK | X_OK) == 0) return UIR_STATUS_OK;
    complain(NULL, "%s '%s': cannot write it: %s", option, path, strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

int output_end(uir_status status, int caught_signal) {
    if (!output_flush() && status == UIR_STATUS_OK) {
        complain(NULL, "the output cannot be written%s%s", write_error ? ": " : "",
                 write_error ? strerror(write_error) : "");
        status = UIR_STATUS_IO_FAILED;
    }
    return caught_signal ? 128 + caught_signal : uir_status_exit_code(status);
}
