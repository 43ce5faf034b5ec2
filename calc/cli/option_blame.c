/* option_blame -- which member of a scenario an error is about. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/option.h"

/* Whether a message has "--name" or "-x value", and nothing longer. */
static bool names(const char *text, const struct option *o)
{
    const size_t n = strlen(o->name);
    for (const char *p = text; (p = strstr(p, "--")) != NULL; p += 2)
        if (strncmp(p + 2, o->name, n) == 0 && !isalnum((unsigned char)p[2 + n]) &&
            !(p[2 + n] == '-' && isalnum((unsigned char)p[3 + n])))
            return true;
    return o->letter && text[0] == '-' && text[1] == o->letter && text[2] == ' ';
}

/* Whether it has these bytes of a value in quotes, or begins with them and a colon. */
static bool quotes(const char *text, const char *value, size_t len)
{
    char clean[160];
    (void)text_clean(clean, sizeof clean, value, len);
    const size_t n = strlen(clean);
    if (n < 2) return false; /* a digit may be of anything */
    if (strncmp(text, clean, n) == 0 && text[n] == ':') return true;
    for (const char *p = text; (p = strstr(p, clean)) != NULL; p++)
        if (p > text && (p[-1] == '\'' || p[-1] == '"') && p[n] == p[-1]) return true;
    return false;
}

/* The same of a value, one of its list, or what is before the number of such ("h100-sxm:4", "rate=7"). */
static bool quotes_any(const char *text, const char *value)
{
    if (quotes(text, value, strlen(value))) return true;
    for (const char *p = value; *p;) {
        const size_t n = strcspn(p, ","), name = strcspn(p, ",:=");
        if (quotes(text, p, n) || quotes(text, p, name)) return true;
        p += n + (p[n] == ',');
    }
    return false;
}

static void drop_front(struct err *e, const char *name)
{
    char front[80];
    (void)snprintf(front, sizeof front, "--%s: ", name);
    const size_t n = strlen(front);
    if (strncmp(e->text, front, n) == 0) memmove(e->text, e->text + n, strlen(e->text + n) + 1);
}

enum err_code option_blame(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct err other = {0};
    char clean[160], keys[200] = "";
    const char *last = NULL;
    bool typed = false, any = false;
    if (e->code != ERR_USAGE && e->code != ERR_RANGE && e->code != ERR_INPUT && e->code != ERR_IO) return e->code;
    if (option_parse(a, c, argc, argv, &v, &other) != ERR_OK) return e->code; /* which says where it is from */
    const char *path = option_get(&v, "scenario");
    if (!path) return e->code;
    for (size_t i = 0; i < c->options_n; i++) typed = typed || (v.typed[i] && names(e->text, &c->options[i]));
    for (int by_value = 0; by_value < 2 && !any && !(by_value && typed); by_value++)
        for (size_t i = 0; i < c->options_n; i++) {
            const char *name = c->options[i].name;
            if (!v.given[i] || v.typed[i] ||
                !(by_value ? quotes_any(e->text, v.text[i]) : names(e->text, &c->options[i])))
                continue;
            const size_t n = strlen(keys);
            (void)snprintf(keys + n, sizeof keys - n, "%s%s", any ? ", " : "", name);
            last = any ? NULL : name;
            any = true;
        }
    if (!any) return e->code;
    if (last) drop_front(e, last);
    if (e->code == ERR_USAGE && !typed) e->code = ERR_INPUT; /* else the two together are wrong */
    return err_prepend(e, "%s: %s: ", text_clean(clean, sizeof clean, path, strlen(path)), keys);
}
