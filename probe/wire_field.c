#include "probe/wire_field.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"

enum err_code wire_fields(struct json_scan *s, struct wire_field *fields, size_t n)
{
    struct json_text key;
    bool more;
    TRY(json_scan_object(s));
    for (;;) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) break;
        size_t i = 0;
        while (i < n && !json_text_is(key, fields[i].key)) i++;
        if (i == n) {
            TRY(json_scan_skip(s));
            continue;
        }
        if (fields[i].seen++)
            return err_set(s->err, ERR_INPUT, "%s: byte %zu: %s twice", s->name, s->at, fields[i].key);
        TRY(fields[i].read(s, fields[i].at));
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].must && !fields[i].seen)
            return err_set(s->err, ERR_INPUT, "%s: byte %zu: no %s", s->name, s->at, fields[i].key);
    return ERR_OK;
}

enum err_code wire_get_text(struct json_scan *s, void *at)
{
    struct json_text t;
    TRY(json_scan_text(s, &t));
    if (t.len > WIRE_TEXT_MAX)
        return err_set(s->err, ERR_INPUT, "%s: byte %zu: a text of more than %d bytes", s->name, s->at, WIRE_TEXT_MAX);
    char *copy = arena_alloc(s->arena, t.len + 4);
    if (!copy) return err_nomem(s->err);
    *(const char **)at = text_clean(copy, t.len + 4, t.s, t.len);
    return ERR_OK;
}

enum err_code wire_get_count(struct json_scan *s, void *at) { return json_scan_int(s, 0, INT64_MAX, (int64_t *)at); }

enum err_code wire_get_number(struct json_scan *s, void *at)
{
    double v = (double)NAN;
    if (json_scan_peek(s) == 'n') {
        TRY(json_scan_skip(s));
    } else {
        TRY(json_scan_number(s, &v));
        if (!(v >= 0 && v <= 1e300)) return json_scan_want(s, "a number that is not negative, before this");
    }
    *(double *)at = v;
    return ERR_OK;
}

enum err_code wire_get_bool(struct json_scan *s, void *at)
{
    const char c = json_scan_peek(s);
    if (c != 't' && c != 'f') return json_scan_want(s, "true or false");
    TRY(json_scan_skip(s));
    *(bool *)at = c == 't';
    return ERR_OK;
}

enum err_code wire_get_shape(struct json_scan *s, void *at)
{
    struct wire_shape *shape = at;
    struct json_text key;
    bool more;
    TRY(json_scan_object(s));
    for (shape->n = 0;; shape->n++) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) return ERR_OK;
        if (shape->n == WIRE_ARGS_MAX || key.len > 64)
            return json_scan_want(s, "at most 16 parameters with short names, before this");
        char *name = arena_alloc(s->arena, key.len + 4);
        if (!name) return err_nomem(s->err);
        shape->arg[shape->n].name = text_clean(name, key.len + 4, key.s, key.len);
        for (size_t i = 0; i < shape->n; i++)
            if (strcmp(shape->arg[i].name, name) == 0) return json_scan_want(s, "each parameter once, before this");
        TRY(json_scan_int(s, INT64_MIN, INT64_MAX, &shape->arg[shape->n].value));
    }
}
