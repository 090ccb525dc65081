/* What code writes that was not built with the memory sanitizer, as the system's libraries are not, the sanitizer does not
 * see: it is told here. In other builds this is nothing. */
#ifndef UIR_BASE_SANITIZE_H
#define UIR_BASE_SANITIZE_H

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define UIR_WRITTEN_ELSEWHERE(pointer, size) __msan_unpoison(pointer, size)
#endif
#endif
#ifndef UIR_WRITTEN_ELSEWHERE
#define UIR_WRITTEN_ELSEWHERE(pointer, size) ((void)0)
#endif

#endif
