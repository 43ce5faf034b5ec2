#include "calc/cli/plot_names.h"

#include <stdbool.h>
#include <string.h>

#include "calc/base/text.h"

/* A name cut in three: "moe." "q" "_proj"; or several names with two parts alike, the third joined by '/'. */
struct parts {
    const char *path, *stem, *tail;
    size_t names; /* how many it stands for, 0: gone into another */
};

static bool cut_name(struct arena *a, const char *name, struct parts *p)
{
    const char *dot = strrchr(name, '.');
    const char *leaf = dot ? dot + 1 : name;
    const char *bar = strrchr(leaf, '_');
    if (bar == leaf) bar = NULL;
    const size_t stem = bar ? (size_t)(bar - leaf) : strlen(leaf);
    *p = (struct parts){.path = arena_strndup(a, name, (size_t)(leaf - name)),
                        .stem = arena_strndup(a, leaf, stem),
                        .tail = bar ? bar : "",
                        .names = 1};
    return p->path && p->stem;
}

/* Names with the same path and ending, the ending not empty or the path not: their stems become one. */
static bool join_stems(struct arena *a, struct parts *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; p[i].names && j < n; j++) {
            if (!p[j].names || strcmp(p[i].path, p[j].path) != 0 || strcmp(p[i].tail, p[j].tail) != 0) continue;
            if (!*p[i].tail && !*p[i].path) continue;
            p[i].stem = arena_printf(a, "%s/%s", p[i].stem, p[j].stem);
            if (!p[i].stem) return false;
            p[i].names += p[j].names;
            p[j].names = 0;
        }
    return true;
}

/* What is left below one path, ending or not: mlp.gate_up and mlp.down. */
static bool join_leaves(struct arena *a, struct parts *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; p[i].names && j < n; j++) {
            if (p[i].names > 1 && *p[i].tail) break; /* "a/b_proj/c" would hide whose ending it is */
            if (p[j].names != 1 || !*p[i].path || strcmp(p[i].path, p[j].path) != 0) continue;
            p[i].stem = arena_printf(a, "%s%s/%s%s", p[i].stem, p[i].tail, p[j].stem, p[j].tail);
            if (!p[i].stem) return false;
            p[i].tail = "";
            p[i].names++;
            p[j].names = 0;
        }
    return true;
}

/* "dense.attn." and "moe.attn." as "dense/moe.attn.": the folders they end in alike are said once. */
static char *join_two_paths(struct arena *a, const char *one, const char *two)
{
    size_t alike = 0, n1 = strlen(one), n2 = strlen(two), at = 1;
    while (at < n1 && at < n2 && one[n1 - 1 - at] == two[n2 - 1 - at]) {
        if (one[n1 - 1 - at] == '.') alike = at;
        at++;
    }
    return arena_printf(a, "%.*s/%s", (int)(n1 - 1 - alike), one, two);
}

/* The same leaf below several paths. */
static bool join_paths(struct arena *a, struct parts *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; p[i].names && j < n; j++) {
            if (!p[j].names || !*p[i].path || !*p[j].path) continue;
            if (strcmp(p[i].stem, p[j].stem) != 0 || strcmp(p[i].tail, p[j].tail) != 0) continue;
            p[i].path = join_two_paths(a, p[i].path, p[j].path);
            if (!p[i].path) return false;
            p[i].names += p[j].names;
            p[j].names = 0;
        }
    return true;
}

char *plot_names_join(struct arena *a, const char *const *names, size_t n, size_t max_wide)
{
    struct parts *p = arena_array(a, n + 1, sizeof *p);
    if (!p) return NULL;
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) seen = strcmp(names[i], names[j]) == 0;
        if (!seen && !cut_name(a, names[i], &p[distinct++])) return NULL;
    }
    if (!join_stems(a, p, distinct) || !join_paths(a, p, distinct) || !join_leaves(a, p, distinct)) return NULL;
    char *text = arena_strndup(a, "", 0);
    size_t left = distinct;
    for (size_t i = 0; text && i < distinct; i++) {
        if (!p[i].names) continue;
        char *longer = arena_printf(a, "%s%s%s%s%s", text, *text ? ", " : "", p[i].path, p[i].stem, p[i].tail);
        if (!longer) return NULL;
        if (*text && text_width(longer, strlen(longer)) > max_wide) break;
        text = longer;
        left -= p[i].names;
    }
    return text && left ? arena_printf(a, "%s +%zu", text, left) : text;
}
