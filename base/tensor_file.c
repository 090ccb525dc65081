/* Large tensors whose elements lie in a file without a name, so that what is not read need not stay in memory. */
#define _GNU_SOURCE
#include "base/budget.h"
#include "base/file.h"
#include "base/tensor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* In TMPDIR; nobody else has it, and it is gone with its map. */
static int open_nameless(void) {
    char path[512];
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    if ((size_t)snprintf(path, sizeof path, "%s/uir-tensor-XXXXXX", folder) >= sizeof path) return -1;
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) unlink(path);
    return file;
}

/* The file as memory that counts, and closed; NULL where it cannot be mapped. */
static void *map_and_close(int file, size_t size, uir_budget *budget) {
    void *map = MAP_FAILED;
    if (uir_budget_map(budget, size)) {
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) uir_budget_unmap(budget, size);
    }
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

bool uir_tensor_move_to_file(uir_tensor *tensor) {
    uir_budget *budget = uir_budget_of(&tensor->allocator);
    uint64_t left = uir_budget_get_left(budget);
    size_t size = tensor->byte_size;
    if (!tensor->owned || tensor->mapped || tensor->dtype == UIR_DTYPE_STRING || !size) return false;
    if (tensor->references != 1 || left / 2 < size) return false; /* for a moment it counts twice */
    int file = open_nameless();
    if (file < 0) return false;
    /* Written, so that a full disk is told here; a page of a map would only fail when it is touched. */
    if (!uir_file_write_all(file, tensor->data, size)) {
        close(file);
        return false;
    }
    void *map = map_and_close(file, size, budget);
    if (!map) return false;
    uir_release(&tensor->allocator, tensor->data, size);
    tensor->data = map;
    tensor->mapped = true;
    return true;
}

uir_status uir_tensor_create_in_file(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                                     const int64_t *shape, uir_tensor **out_tensor) {
    uir_budget *budget = uir_budget_of(allocator);
    uir_tensor *tensor;
    *out_tensor = NULL;
    UIR_TRY(uir_tensor_create_borrowed(allocator, dtype, rank, shape, NULL, &tensor));
    size_t size = tensor->byte_size;
    int file = size && size <= uir_budget_get_left(budget) ? open_nameless() : -1;
    /* Room on the disk is taken here; else a page would fail when it is touched. */
    if (file >= 0 && posix_fallocate(file, 0, (off_t)size)) {
        close(file);
        file = -1;
    }
    void *map = file < 0 ? NULL : map_and_close(file, size, budget);
    if (!map) {
        uir_tensor_release(tensor);
        return UIR_STATUS_OK;
    }
    tensor->data = map;
    tensor->owned = tensor->mapped = true;
    *out_tensor = tensor;
    return UIR_STATUS_OK;
}

void uir_tensor_rest(const uir_tensor *tensor) {
    if (tensor && tensor->mapped) (void)madvise(tensor->data, tensor->byte_size, MADV_DONTNEED);
}

void uir_tensor_unmap(uir_tensor *tensor) {
    munmap(tensor->data, tensor->byte_size);
    uir_budget_unmap(uir_budget_of(&tensor->allocator), tensor->byte_size);
}
