/* Tells the memory sanitizer of memory written by code built without it, such as system libraries. Nothing in other
 * builds. */
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
