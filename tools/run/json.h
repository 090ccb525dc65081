/* JSON, as much as the tools write and read: so that a program which is copied to a device needs no library for it.
 *
 * A value owns what was put into it. Out of memory, what makes a value gives NULL, and what takes one leaves it out;
 * NULL may be given wherever a value is taken. */
#ifndef UIR_TOOLS_RUN_JSON_H
#define UIR_TOOLS_RUN_JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef struct json json;

/* ---- making ---- */
json *json_object(void);
json *json_array(void);
json *json_number(double number);    /* one that is not finite is written as null */
json *json_string(const char *text); /* UTF-8; NULL as null */
json *json_null(void);
void json_destroy(json *value);
/* Takes the item, also when it cannot be kept. */
void json_put(json *object, const char *name, json *item);
void json_append(json *array, json *item);
/* The new member. */
json *json_put_object(json *object, const char *name);
json *json_put_array(json *object, const char *name);
void json_put_number(json *object, const char *name, double number);
void json_put_string(json *object, const char *name, const char *text);
void json_put_bool(json *object, const char *name, bool value);
void json_put_null(json *object, const char *name);
/* Lines, indented; ends without a newline. The caller frees. */
char *json_print(const json *value);

/* ---- reading ---- */
/* RFC 8259 and nothing after the value but space; NULL for what is no such text, or nests deeper than 64. */
json *json_parse(const char *text, size_t length);
/* A member; of several of one name the first. NULL: there is none, or this is no object. */
const json *json_get(const json *object, const char *name);
bool json_is_array(const json *value);
const json *json_first(const json *value); /* of an array's elements or an object's members */
const json *json_next(const json *element);
const char *json_get_text(const json *value); /* NULL: it is no string */
bool json_get_number(const json *value, double *out_number);

#endif
