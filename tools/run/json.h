/* JSON: cJSON, or stubs in a program built without it (UIR_NO_JSON: runtime only). Options that need JSON
 * are refused in such a program (options.def). The stubs of cJSON functions behave as out of memory. */
#ifndef UIR_TOOLS_RUN_JSON_H
#define UIR_TOOLS_RUN_JSON_H

#ifndef UIR_NO_JSON
#include <cjson/cJSON.h>
enum { JSON_IS_THERE = 1 };
#else
#include <stdbool.h>
#include <stddef.h>
enum { JSON_IS_THERE = 0 };

typedef struct cJSON {
    struct cJSON *next;
    double valuedouble;
} cJSON;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define WITHOUT_JSON(type, name, ...)                                                                                  \
    static inline type cJSON_##name(__VA_ARGS__) {                                                                     \
        return 0;                                                                                                      \
    }
WITHOUT_JSON(cJSON *, CreateObject, void)
WITHOUT_JSON(cJSON *, CreateArray, void)
WITHOUT_JSON(cJSON *, CreateNumber, double number)
WITHOUT_JSON(cJSON *, CreateString, const char *text)
WITHOUT_JSON(cJSON *, CreateNull, void)
WITHOUT_JSON(cJSON *, AddObjectToObject, cJSON *object, const char *name)
WITHOUT_JSON(cJSON *, AddArrayToObject, cJSON *object, const char *name)
WITHOUT_JSON(cJSON *, AddNumberToObject, cJSON *object, const char *name, double number)
WITHOUT_JSON(cJSON *, AddStringToObject, cJSON *object, const char *name, const char *text)
WITHOUT_JSON(cJSON *, AddBoolToObject, cJSON *object, const char *name, int value)
WITHOUT_JSON(cJSON *, AddNullToObject, cJSON *object, const char *name)
WITHOUT_JSON(int, AddItemToObject, cJSON *object, const char *name, cJSON *item)
WITHOUT_JSON(int, AddItemToArray, cJSON *array, cJSON *item)
WITHOUT_JSON(cJSON *, ParseWithLength, const char *text, size_t length)
WITHOUT_JSON(cJSON *, GetObjectItemCaseSensitive, const cJSON *object, const char *name)
WITHOUT_JSON(const char *, GetStringValue, const cJSON *item)
WITHOUT_JSON(int, IsArray, const cJSON *item)
WITHOUT_JSON(int, IsNumber, const cJSON *item)
WITHOUT_JSON(char *, Print, const cJSON *item)
#undef WITHOUT_JSON
#define cJSON_ArrayForEach(element, array) for (element = (array) ? NULL : NULL; element;)
static inline void cJSON_Delete(cJSON *item) {}
static inline void cJSON_free(void *text) {}
#pragma GCC diagnostic pop
#endif

#endif
