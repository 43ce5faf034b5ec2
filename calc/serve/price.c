#include "calc/serve/price.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"

struct price_list {
    struct price *price;
    const char **key; /* of the device */
    size_t n;
};

static enum err_code read_one(const struct json *v, struct price *out, struct err *e)
{
    struct json of = *v, member;
    *out = (struct price){.own = true};
    if (json_is_object(v)) {
        if (!json_get(v, "usd_per_h", &of)) return json_want(v, "an object with \"usd_per_h\"", e);
        if (json_get(v, "source", &member)) TRY(json_str(&member, &out->source, e));
        if (json_get(v, "date", &member)) TRY(json_str(&member, &out->date, e));
    }
    TRY(json_num(&of, &out->usd_per_h, e));
    if (!(out->usd_per_h > 0 && out->usd_per_h <= 1e6)) /* not a unit */
        return json_want(&of, out->usd_per_h > 0 ? "at most a million dollars an hour" : "dollars an hour above zero",
                         e);
    return ERR_OK;
}

enum err_code price_read(struct arena *a, const char *path, struct price_list **out, struct err *e)
{
    struct json root, v;
    const char *key;
    size_t all = 0;
    TRY(json_load(a, path, &root, e));
    if (!json_is_object(&root)) return json_want(&root, "an object of devices and their dollars an hour", e);
    while (json_at(&root, all, &key, &v)) all++;
    struct price_list *l = arena_alloc(a, sizeof *l);
    if (!l) return err_nomem(e);
    *l = (struct price_list){.price = arena_array(a, all + 1, sizeof *l->price),
                             .key = arena_array(a, all + 1, sizeof *l->key)};
    if (!l->price || !l->key) return err_nomem(e);
    for (size_t i = 0; i < all && json_at(&root, i, &key, &v); i++) {
        struct hw hw;
        char clean[64];
        const char *name = text_clean(clean, sizeof clean, key, strlen(key));
        struct err why = {0};
        const enum err_code code = hw_load(a, key, &hw, &why);
        if (code != ERR_OK) return err_set(e, code == ERR_NOMEM ? code : ERR_INPUT, "%s: %s", root.file, why.text);
        for (size_t k = 0; k < i; k++)
            if (strcmp(l->key[k], hw.key) == 0)
                return err_set(e, ERR_INPUT, "%s: %s: a second price of %s", root.file, name, hw.key);
        TRY(read_one(&v, &l->price[i], e));
        if (!l->price[i].source) l->price[i].source = root.file;
        l->key[i] = hw.key;
        l->n++;
    }
    *out = l;
    return ERR_OK;
}

struct price price_of(const struct price_list *list, const struct hw *hw)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (strcmp(list->key[i], hw->key) == 0) return list->price[i];
    const struct hw_origin *o = &hw->origin[HW_PRICE_LIST];
    return (struct price){.usd_per_h = hw->price_list_usd_per_h, .source = o->source, .date = o->date};
}

struct price_cost price_cost(const struct price_use *u)
{
    const double unknown = (double)NAN, hour_s = 3600, million = 1e6; /* not a unit */
    const double busy = u->prefill_frac + u->decode_frac, tokens = u->in_tok_per_s + u->out_tok_per_s;
    const double in = busy > 0 ? u->prefill_frac / busy : u->in_tok_per_s / tokens;
    struct price_cost c = {.usd_per_h = u->gpus * u->usd_per_h};
    c.usd_per_mtok_in = u->in_tok_per_s > 0 ? c.usd_per_h * in / (u->in_tok_per_s * hour_s) * million : unknown;
    c.usd_per_mtok_out =
        u->out_tok_per_s > 0 ? c.usd_per_h * (1 - in) / (u->out_tok_per_s * hour_s) * million : unknown;
    c.usd_per_mtok = u->out_tok_per_s > 0 ? c.usd_per_h / (u->out_tok_per_s * hour_s) * million : unknown;
    c.watts = u->gpus * u->power_w *
              (u->prefill_frac + u->decode_frac * PRICE_DECODE_FRAC + fmax(0, 1 - busy) * PRICE_IDLE_FRAC);
    c.joule_per_tok = u->out_tok_per_s > 0 ? c.watts / u->out_tok_per_s : unknown;
    return c;
}
