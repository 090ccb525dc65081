#include "backends/source/target.h"

void uir_target_object_deinit(uir_target_object *object) {
    if (object->bytes) uir_release(&object->allocator, object->bytes, object->size);
    if (object->symbols)
        uir_release(&object->allocator, object->symbols, ((size_t)object->symbol_count + 1) * sizeof *object->symbols);
    *object = (uir_target_object){.allocator = object->allocator};
}
