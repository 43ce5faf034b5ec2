#include "probe/plan_sweep.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

static enum err_code no_shape(const char *text, struct err *e)
{
    char clean[200];
    return err_set(e, ERR_USAGE, "--shape: found \"%s\", wanted NAME=SIZES,... as in m=1,8,n=4096,k=4096",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

/* The least and the most that the wanted kernels take of a parameter: a size below zero is none of any. */
static enum err_code check_sign(const struct wire_device *d, const struct plan_request *r, const char *name,
                                const char *list, struct err *e)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    if (*list != '-' && !strstr(list, ",-")) return ERR_OK;
    for (size_t i = 0; i < d->kernels_n; i++)
        for (size_t j = 0; (!r->kernels || wire_list_has(r->kernels, d->kernels[i].name)) && j < d->kernels[i].args_n;
             j++) {
            const struct wire_arg *arg = &d->kernels[i].args[j];
            if (strcmp(arg->name, name) != 0) continue;
            lo = arg->lo < lo ? arg->lo : lo;
            hi = arg->hi > hi ? arg->hi : hi;
        }
    char clean[100], of[80];
    (void)text_clean(clean, sizeof clean, list, strlen(list));
    (void)text_clean(of, sizeof of, name, strlen(name));
    if (lo < 0 || lo > hi) return ERR_OK;
    return err_set(e, ERR_RANGE, "--shape: %s: \"%s\": wanted %lld to %lld", of, clean, (long long)lo, (long long)hi);
}

enum err_code sweep_read(struct arena *a, const struct wire_device *d, const struct plan_request *r, struct sweep *out,
                         struct err *e)
{
    const char *text = r->shape;
    *out = (struct sweep){.n = 0};
    for (const char *p = text; *p;) {
        const size_t equal = strcspn(p, "=,");
        if (p[equal] != '=' || equal == 0 || equal >= sizeof out->arg[0].name || out->n == WIRE_ARGS_MAX)
            return no_shape(text, e);
        const char *values = p + equal + 1, *end = values;
        for (;;) { /* to the comma before the next '=' */
            const char *comma = end + strcspn(end, ",");
            end = comma;
            if (!*comma || comma[1 + strcspn(comma + 1, "=,")] == '=') break;
            end = comma + 1;
        }
        const char *list = arena_strndup(a, values, (size_t)(end - values));
        if (!list) return err_nomem(e);
        (void)snprintf(out->arg[out->n].name, sizeof out->arg[0].name, "%.*s", (int)equal, p);
        for (size_t i = 0; i < out->n; i++)
            if (strcmp(out->arg[i].name, out->arg[out->n].name) == 0) {
                char clean[200], of[80];
                return err_set(e, ERR_USAGE,
                               "--shape: found \"%s\": %s is given twice; several sizes of it are a list: %s=1,2",
                               text_clean(clean, sizeof clean, text, strlen(text)),
                               text_clean(of, sizeof of, out->arg[i].name, strlen(out->arg[i].name)), of);
            }
        TRY(check_sign(d, r, out->arg[out->n].name, list, e));
        if (units_parse_range(a, list, 0, INT64_MAX, &out->arg[out->n].values, &out->arg[out->n].values_n, e) != ERR_OK)
            return e ? err_prepend(e, "--shape: %s: ", out->arg[out->n].name) : ERR_USAGE;
        out->n++;
        p = end + (*end == ',');
    }
    return out->n ? ERR_OK : no_shape(text, e);
}

bool sweep_is_of(const struct sweep *s, const struct wire_kernel *k)
{
    size_t found = 0;
    for (size_t i = 0; i < k->args_n; i++)
        for (size_t j = 0; j < s->n; j++) found += strcmp(k->args[i].name, s->arg[j].name) == 0;
    return found == k->args_n && found == s->n;
}

struct wire_shape sweep_combination(const struct sweep *s, const struct wire_kernel *k, size_t i)
{
    struct wire_shape shape = {.n = k->args_n};
    for (size_t j = s->n; j-- > 0; i /= s->arg[j].values_n)
        for (size_t l = 0; l < k->args_n; l++)
            if (strcmp(k->args[l].name, s->arg[j].name) == 0) {
                shape.arg[l].name = k->args[l].name;
                shape.arg[l].value = s->arg[j].values[i % s->arg[j].values_n];
            }
    return shape;
}
