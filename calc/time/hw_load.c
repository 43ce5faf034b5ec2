#include "calc/time/hw.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"

static const char folder[] = "configs/hardware/", ending[] = ".json";

enum { FOLDER_LEN = sizeof folder - 1, ENDING_LEN = sizeof ending - 1, NAME_MAX_BYTES = 120 };

/* One spelling for names a person types: lower case, '-' for blanks and '_'. */
static char fold(char c) { return c == ' ' || c == '_' ? '-' : (char)tolower((unsigned char)c); }

static bool same_name(const char *a, const char *b)
{
    while (*a && fold(*a) == fold(*b)) {
        a++;
        b++;
    }
    return fold(*a) == fold(*b);
}

static bool is_path(const char *name)
{
    const size_t len = strlen(name);
    return strchr(name, '/') || (len > ENDING_LEN && strcmp(name + len - ENDING_LEN, ending) == 0);
}

static enum err_code load_embedded(struct arena *a, const struct embed_file *f, struct hw *out, struct err *e)
{
    struct json j;
    TRY(json_parse(a, f->path, (const char *)f->bytes, f->size, &j, e));
    return hw_parse(&j, out, e);
}

static bool answers_to(const struct hw *hw, const char *name)
{
    if (same_name(hw->name, name)) return true;
    for (size_t i = 0; i < hw->aliases_n; i++)
        if (same_name(hw->aliases[i], name)) return true;
    return false;
}

/* The keys of all built-ins. */
static enum err_code list_keys(struct arena *a, const char *const **out, size_t *out_n, struct err *e)
{
    size_t n;
    const struct embed_file *f = embed_under(folder, &n);
    const char **keys = arena_array(a, n, sizeof *keys);
    if (!keys) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        keys[i] = arena_strndup(a, f[i].path + FOLDER_LEN, strlen(f[i].path) - FOLDER_LEN - ENDING_LEN);
        if (!keys[i]) return err_nomem(e);
    }
    *out = keys;
    *out_n = n;
    return ERR_OK;
}

/* "a100" begins the keys of several devices that differ: they are listed and none is taken. */
static size_t list_family(char *out, size_t cap, const char *name, const char *const *keys, size_t n)
{
    const size_t len = strlen(name);
    size_t members = 0, used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < len && keys[i][k] && fold(name[k]) == keys[i][k]) k++;
        if (len == 0 || k < len || keys[i][k] != '-') continue;
        const int put = snprintf(out + used, cap - used, "%s%s", members++ ? ", " : "", keys[i]);
        if (put < 0 || (size_t)put >= cap - used) break;
        used += (size_t)put;
    }
    return members;
}

static enum err_code unknown(struct arena *a, const char *name, struct err *e)
{
    const char *const *keys = NULL;
    size_t n = 0;
    TRY(list_keys(a, &keys, &n, e));
    char shown[NAME_MAX_BYTES], near[256];
    (void)text_clean(shown, sizeof shown, name, strlen(name));
    if (list_family(near, sizeof near, name, keys, n))
        return err_set(e, ERR_USAGE, "%s: names no single device; wanted one of %s", shown, near);
    return err_set(e, ERR_USAGE,
                   "%s: no such hardware; wanted one of `ridge list hardware`, or a file (a path with '/' or .json)%s",
                   shown, text_suggest(near, sizeof near, name, keys, sizeof *keys, n));
}

enum err_code hw_load(struct arena *a, const char *name, struct hw *out, struct err *e)
{
    if (is_path(name)) {
        struct json j;
        TRY(json_load(a, name, &j, e));
        return hw_parse(&j, out, e);
    }
    size_t n;
    const struct embed_file *files = embed_under(folder, &n);
    for (size_t i = 0; i < n; i++) {
        const char *stem = files[i].path + FOLDER_LEN;
        const size_t len = strlen(stem) - ENDING_LEN;
        size_t k = 0;
        while (k < len && name[k] && fold(name[k]) == stem[k]) k++;
        if (k == len && !name[k]) return load_embedded(a, &files[i], out, e);
    }
    for (size_t i = 0; i < n; i++) {
        struct hw hw;
        TRY(load_embedded(a, &files[i], &hw, e));
        if (!answers_to(&hw, name)) continue;
        *out = hw;
        return ERR_OK;
    }
    return unknown(a, name, e);
}

size_t hw_builtins_n(void)
{
    size_t n;
    (void)embed_under(folder, &n);
    return n;
}

enum err_code hw_load_builtin(struct arena *a, size_t i, struct hw *out, struct err *e)
{
    size_t n;
    const struct embed_file *files = embed_under(folder, &n);
    if (i >= n) return err_set(e, ERR_RANGE, "hardware %zu: wanted one below %zu", i, n);
    return load_embedded(a, &files[i], out, e);
}
