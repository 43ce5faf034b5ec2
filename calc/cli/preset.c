#include "calc/cli/preset.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/model/whatif.h"

#define FOLDER "configs/presets/"

static enum err_code text_of(const struct json *j, const char *key, const char **out, struct err *e)
{
    struct json item;
    *out = NULL;
    return json_get(j, key, &item) ? json_str(&item, out, e) : ERR_OK;
}

/* What nothing reads would be passed over. */
static enum err_code only(const struct json *j, const char *const *known, struct err *e)
{
    const char *key;
    struct json item;
    char clean[60];
    for (size_t i = 0; json_at(j, i, &key, &item); i++) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], key) != 0) k++;
        if (!known[k])
            return err_set(e, ERR_INPUT, "%s: %s%s\"%s\" is no key of a preset", j->file, j->path, *j->path ? ": " : "",
                           text_clean(clean, sizeof clean, key, strlen(key)));
    }
    return ERR_OK;
}

static enum err_code read_preset(struct arena *a, const struct json *j, struct preset *out, struct err *e)
{
    static const char *const KEYS[] = {"about", "model", "variants", NULL};
    static const char *const VARIANT_KEYS[] = {"name", "model", "what_if", "says", "source", NULL};
    struct json list, item;
    if (!json_is_object(j)) return json_want(j, "an object with variants", e);
    TRY(only(j, KEYS, e));
    TRY(text_of(j, "about", &out->about, e));
    TRY(text_of(j, "model", &out->model, e));
    if (!json_get(j, "variants", &list)) return err_set(e, ERR_INPUT, "%s: variants is missing", j->file);
    if (!json_is_array(&list) || json_len(&list) == 0) return json_want(&list, "a list of variants", e);
    out->variants_n = json_len(&list);
    out->variant = arena_array(a, out->variants_n, sizeof *out->variant);
    if (!out->variant) return err_nomem(e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        struct preset_variant *v = &out->variant[i];
        if (!json_is_object(&item)) return json_want(&item, "an object with what_if or model", e);
        TRY(text_of(&item, "name", &v->name, e));
        TRY(text_of(&item, "model", &v->model, e));
        TRY(text_of(&item, "what_if", &v->what_if, e));
        TRY(text_of(&item, "says", &v->says, e));
        TRY(text_of(&item, "source", &v->source, e));
        TRY(only(&item, VARIANT_KEYS, e));
        if (v->what_if && whatif_check(a, v->what_if, e) != ERR_OK) {
            char why[sizeof e->text];
            (void)snprintf(why, sizeof why, "%s", e->text);
            return err_set(e, ERR_INPUT, "%s: %s: %s", j->file, item.path, why);
        }
        if (!v->model && !v->what_if) return json_want(&item, "an object with what_if or model", e);
    }
    return ERR_OK;
}

static enum err_code open_builtin(struct arena *a, const struct embed_file *f, struct preset *out, struct err *e)
{
    struct json j;
    const char *base = f->path + strlen(FOLDER);
    *out = (struct preset){.name = arena_strndup(a, base, strlen(base) - strlen(".json"))};
    if (!out->name) return err_nomem(e);
    TRY(json_parse(a, f->path, (const char *)f->bytes, f->size, &j, e));
    return read_preset(a, &j, out, e);
}

enum err_code preset_builtins(struct arena *a, struct preset **out, size_t *n, struct err *e)
{
    const struct embed_file *f = embed_under(FOLDER, n);
    struct preset *all = arena_array(a, *n ? *n : 1, sizeof *all);
    if (!all) return err_nomem(e);
    for (size_t i = 0; i < *n; i++) TRY(open_builtin(a, &f[i], &all[i], e));
    *out = all;
    return ERR_OK;
}

enum err_code preset_load(struct arena *a, const char *name, struct preset *out, struct err *e)
{
    const size_t len = strlen(name);
    struct preset *all;
    struct json j;
    size_t n;
    char near[200], clean[64];
    if (strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".json") == 0)) {
        *out = (struct preset){.name = name};
        TRY(json_load(a, name, &j, e));
        return read_preset(a, &j, out, e);
    }
    TRY(preset_builtins(a, &all, &n, e));
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i];
            return ERR_OK;
        }
    text_suggest(near, sizeof near, name, &all->name, sizeof *all, n);
    return err_set(e, ERR_USAGE, "--preset: no preset '%s' (ridge list presets), and no file of that name%s",
                   text_clean(clean, sizeof clean, name, len), near);
}
