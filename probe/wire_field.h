/* wire_field -- members of an object into a struct, by a table of keys; for wire_read.c. */
#ifndef RIDGE_PROBE_WIRE_FIELD_H
#define RIDGE_PROBE_WIRE_FIELD_H

#include "calc/base/json_scan.h"
#include "probe/wire.h"

/* One member. read puts its value at `at`; seen counts how often it came. */
struct wire_field {
    const char *key;
    enum err_code (*read)(struct json_scan *s, void *at);
    void *at;
    bool must;
    int seen;
};

/* wire_fields -- an object: fields that are listed are read, others passed over. Errors: ERR_INPUT one twice, or one
 * missing that must be there, and those of the values. */
enum err_code wire_fields(struct json_scan *s, struct wire_field *fields, size_t n);

/* Readers: const char * (clean, at most WIRE_TEXT_MAX bytes), int64_t >= 0, double (finite, >= 0; null is NAN), bool,
 * a struct wire_shape. */
enum err_code wire_get_text(struct json_scan *s, void *at);
enum err_code wire_get_count(struct json_scan *s, void *at);
enum err_code wire_get_number(struct json_scan *s, void *at);
enum err_code wire_get_bool(struct json_scan *s, void *at);
enum err_code wire_get_shape(struct json_scan *s, void *at);

#endif
