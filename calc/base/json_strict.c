#include <stdlib.h>
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"

enum { DEPTH_MAX = 64, NAME_SHOWN_MAX = 60 };

/* Names of the members of one object. */
struct names {
    struct json_text *name;
    size_t n, room;
};

static enum err_code add_name(struct json_scan *s, struct names *k, struct json_text name)
{
    if (k->n == k->room) {
        const size_t room = k->room ? 2 * k->room : 8;
        struct json_text *grown = arena_array(s->arena, room, sizeof *grown);
        if (!grown) return err_nomem(s->err);
        if (k->n) memcpy(grown, k->name, k->n * sizeof *grown);
        k->name = grown;
        k->room = room;
    }
    k->name[k->n++] = name;
    return ERR_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct json_text *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int order = n ? memcmp(x->s, y->s, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static enum err_code check_names(struct json_scan *s, const struct names *k)
{
    char clean[NAME_SHOWN_MAX];
    if (k->n) qsort(k->name, k->n, sizeof *k->name, by_name);
    for (size_t i = 1; i < k->n; i++)
        if (by_name(&k->name[i - 1], &k->name[i]) == 0)
            return err_set(s->err, ERR_INPUT, "%s: byte %zu: an object with two members \"%s\"", s->name, s->at,
                           text_clean(clean, sizeof clean, k->name[i].s, k->name[i].len));
    return ERR_OK;
}

static enum err_code scan_value(struct json_scan *s, int depth)
{
    const char c = json_scan_peek(s);
    struct names names = {NULL, 0, 0};
    struct json_text name;
    if (c != '{' && c != '[') return json_scan_skip(s);
    if (depth == DEPTH_MAX) return json_scan_want(s, "at most 64 levels of brackets");
    TRY(c == '{' ? json_scan_object(s) : json_scan_array(s));
    for (bool more = true;;) {
        TRY(c == '{' ? json_scan_member(s, &name, &more) : json_scan_element(s, &more));
        if (!more) break;
        if (c == '{') TRY(add_name(s, &names, name));
        TRY(scan_value(s, depth + 1));
    }
    return check_names(s, &names);
}

enum err_code json_scan_all(struct json_scan *s)
{
    TRY(scan_value(s, 0));
    return json_scan_peek(s) || s->at < s->len ? json_scan_want(s, "the end of the file") : ERR_OK;
}
