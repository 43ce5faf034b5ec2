/* engine_file -- what is known of an engine: its file, its versions, what is said of it; of engine.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/serve/engine.h"

enum { TOKENS_MAX = 1 << 24 };

static const char FOLDER[] = "configs/engines/";

static enum err_code member(const struct json *j, const char *key, struct json *out, struct err *e)
{
    if (json_get(j, key, out)) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: %s: missing", j->file, key);
}

static enum err_code text_of(const struct json *j, const char *key, const char **out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    return json_str(&v, out, e);
}

static enum err_code flag_of(const struct json *j, const char *key, bool *out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    return json_bool(&v, out, e);
}

static enum err_code count_of(const struct json *j, const char *key, int64_t low, int64_t *out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    return json_int(&v, low, TOKENS_MAX, out, e);
}

static enum err_code number_of(const struct json *j, const char *key, double most, double *out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    TRY(json_num(&v, out, e));
    return *out >= 0 && *out <= most ? ERR_OK : json_want(&v, "a number of 0 or more, and no more than is possible", e);
}

/* "slow_p90" of the errors, where it is. */
static enum err_code slow_of(const struct json *j, double out[2], struct err *e)
{
    struct json all, one, v;
    out[0] = out[1] = (double)NAN;
    if (!json_get(j, "errors", &all)) return ERR_OK;
    for (size_t i = 0; json_at(&all, i, NULL, &one); i++) {
        const char *kind;
        if (!json_has(&one, "slow_p90")) continue;
        TRY(text_of(&one, "kind", &kind, e));
        TRY(member(&one, "slow_p90", &v, e));
        TRY(json_num(&v, &out[strcmp(kind, "experts") == 0], e));
        if (!(out[strcmp(kind, "experts") == 0] > 0)) return json_want(&v, "a ratio above 0", e);
    }
    return ERR_OK;
}

/* Where it is said; else as it was. */
static enum err_code number_if(const struct json *j, const char *key, double most, double *out, struct err *e)
{
    return json_has(j, key) ? number_of(j, key, most, out, e) : ERR_OK;
}

static enum err_code versions_of(const struct json *j, const char *out[2], struct err *e)
{
    struct json all, one;
    if (!json_get(j, "versions", &all)) return ERR_OK;
    for (size_t i = 0; i < 2; i++) {
        if (!json_at(&all, i, NULL, &one)) return json_want(&all, "the first and the last version", e);
        TRY(json_str(&one, &out[i], e));
    }
    return ERR_OK;
}

/* Two versions, or "" or "always". */
static enum err_code sorted_of(const struct json *j, const char *out[2], struct err *e)
{
    struct json all, one;
    out[0] = out[1] = "";
    if (!json_get(j, "sorted_before", &all)) return ERR_OK;
    for (size_t i = 0; i < 2; i++) {
        if (!json_at(&all, i, NULL, &one)) return json_want(&all, "a version of experts in 16 bits and in fp8", e);
        TRY(json_str(&one, &out[i], e));
        if (*out[i] && !isdigit((unsigned char)*out[i]) && strcmp(out[i], "always") != 0)
            return json_want(&one, "a version, \"always\" or nothing", e);
    }
    return ERR_OK;
}

static enum err_code devices_of(const struct json *j, const char *out[ENGINE_DEVICES_MAX], struct err *e)
{
    struct json all, one;
    if (!json_get(j, "devices", &all)) return ERR_OK;
    for (size_t i = 0; json_at(&all, i, NULL, &one); i++) {
        if (i + 1 >= ENGINE_DEVICES_MAX) return json_want(&all, "a few devices", e);
        TRY(json_str(&one, &out[i], e));
    }
    return ERR_OK;
}

enum err_code engine_parse(const struct json *j, struct engine *out, struct err *e)
{
    const char *schema;
    TRY(text_of(j, "schema", &schema, e));
    if (strcmp(schema, "ridge.engine.1") != 0)
        return err_set(e, ERR_INPUT, "%s: schema: wanted \"ridge.engine.1\"", j->file);
    *out = (struct engine){.file = j->file};
    TRY(text_of(j, "engine", &out->name, e));
    TRY(flag_of(j, "mixed", &out->mixed, e));
    TRY(count_of(j, "budget_tokens", 1, &out->budget_tokens, e));
    TRY(count_of(j, "graph_tokens", 0, &out->graph_tokens, e));
    TRY(flag_of(j, "graph_mixed", &out->graph_mixed, e));
    TRY(text_of(j, "overlapped_from", &out->overlapped_from, e));
    TRY(number_of(j, "host_s", 1, &out->terms.host_s, e));
    TRY(number_of(j, "factor", 100, &out->terms.factor, e));
    TRY(number_if(j, "sequence_s", 1, &out->terms.sequence_s, e));
    TRY(number_if(j, "kernel_s", 1, &out->terms.kernel_s, e));
    TRY(number_if(j, "collective_frac", 100, &out->terms.collective_frac, e));
    if (json_has(j, "per_kernel")) TRY(flag_of(j, "per_kernel", &out->per_kernel, e));
    TRY(versions_of(j, out->version, e));
    TRY(devices_of(j, out->device, e));
    TRY(sorted_of(j, out->sorted_before, e));
    engine_set_version(out, out->version[1]);
    TRY(slow_of(j, out->slow_p90, e));
    TRY(text_of(j, "source", &out->source, e));
    return text_of(j, "date", &out->date, e);
}

static enum err_code unknown(const char *name, struct err *e)
{
    char all[160] = "", clean[64];
    size_t n;
    const struct embed_file *f = embed_under(FOLDER, &n);
    for (size_t i = 0; i < n; i++) {
        const char *stem = f[i].path + sizeof FOLDER - 1;
        const int len = (int)strcspn(stem, ".");
        const size_t used = strlen(all);
        (void)snprintf(all + used, sizeof all - used, "%s%.*s", i == 0 ? "" : i + 1 == n ? " or " : ", ", len, stem);
    }
    return err_set(e, ERR_USAGE, "'%s' is no engine whose steps were fitted: %s",
                   text_clean(clean, sizeof clean, name, strlen(name)), all);
}

enum err_code engine_load(struct arena *a, const char *name, struct engine *out, struct err *e)
{
    struct json j;
    const size_t len = strlen(name), end = strlen(".json");
    if (strchr(name, '/') || (len > end && strcmp(name + len - end, ".json") == 0)) {
        TRY(json_load(a, name, &j, e));
        return engine_parse(&j, out, e);
    }
    const char *path = arena_printf(a, "%s%s.json", FOLDER, name);
    if (!path) return err_nomem(e);
    const struct embed_file *f = embed_find(path);
    if (!f) return unknown(name, e);
    TRY(json_parse(a, path, (const char *)f->bytes, f->size, &j, e));
    return engine_parse(&j, out, e);
}

/* x - y of two versions, number by number: of the first numbers that differ. */
static long compare_versions(const char *x, const char *y)
{
    for (;;) {
        char *x_end = NULL, *y_end = NULL;
        const long p = isdigit((unsigned char)*x) ? strtol(x, &x_end, 10) : 0;
        const long q = isdigit((unsigned char)*y) ? strtol(y, &y_end, 10) : 0;
        if (p != q) return p - q;
        if (!y_end || *y_end != '.') return 0;
        y = y_end + 1;
        x = x_end && *x_end == '.' ? x_end + 1 : "";
    }
}

/* Of one that nobody measured, before or after, how its host works is not known. */
static enum err_code check_version(const struct engine *g, const char *text, struct err *e)
{
    char clean[64];
    const char *shown = text_clean(clean, sizeof clean, text, strlen(text));
    if (!isdigit((unsigned char)*text))
        return err_set(e, ERR_USAGE, "'%s' is no version of %s: numbers, as in %s:%s", shown, g->name, g->name,
                       g->version[1] ? g->version[1] : "1.0");
    if (!g->version[0] || (compare_versions(text, g->version[0]) >= 0 && compare_versions(text, g->version[1]) <= 0))
        return ERR_OK;
    return err_set(e, ERR_USAGE, "version %s of %s was not measured: %s to %s were", shown, g->name, g->version[0],
                   g->version[1]);
}

enum err_code engine_load_version(struct arena *a, const char *text, struct engine *out, bool *overlapped,
                                  struct err *e)
{
    const char *colon = strrchr(text, ':');
    if (colon && strchr(colon, '/')) colon = NULL; /* of a path */
    const char *name = colon ? arena_strndup(a, text, (size_t)(colon - text)) : text;
    if (!name) return err_nomem(e);
    TRY(engine_load(a, name, out, e));
    if (colon) TRY(check_version(out, colon + 1, e));
    *overlapped = engine_overlaps(out, colon ? colon + 1 : out->overlapped_from);
    if (colon) engine_set_version(out, colon + 1);
    return ERR_OK;
}

const char *engine_terms_text(const struct engine *g, bool overlapped, char out[ENGINE_TEXT])
{
    char host[UNITS_TEXT_MAX], each[UNITS_TEXT_MAX], kernel[UNITS_TEXT_MAX], times[32] = "", more[ENGINE_TEXT / 2] = "";
    const struct engine_terms *t = &g->terms;
    const bool of_step = t->host_s > 0, of_sequence = t->sequence_s > 0;
    if (fabs(t->factor - 1) > 1e-9) (void)snprintf(times, sizeof times, "%.4g times ", t->factor);
    if (t->kernel_s > 0)
        (void)snprintf(more, sizeof more, " and %s for each of them", units_format_time(kernel, t->kernel_s));
    if (t->collective_frac > 0)
        (void)snprintf(more + strlen(more), sizeof more - strlen(more), ", those among ranks %.3g times that",
                       1 + t->collective_frac);
    (void)snprintf(out, ENGINE_TEXT, "%s%s%s%s%s%sits kernels as measured%s",
                   of_step ? units_format_time(host, t->host_s) : "", of_step && of_sequence ? " and " : "",
                   of_sequence ? units_format_time(each, t->sequence_s) : "", of_sequence ? " a sequence" : "",
                   !of_step && !of_sequence ? ""
                   : overlapped             ? " of its host beside "
                                            : " of its host, then ",
                   times, more);
    return out;
}

const char *engine_devices_note(struct arena *a, const struct engine *g, const char *names)
{
    char all[128] = "";
    size_t n = 0;
    while (n < ENGINE_DEVICES_MAX && g->device[n]) n++;
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(all);
        (void)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", g->device[i]);
    }
    return arena_printf(a, "the host's part was fitted to servers on %s, none on %s: taken over as it is", all, names);
}

const char *engine_device_note(struct arena *a, const struct engine *g, const struct hw *hw)
{
    char clean[64];
    if (engine_measured_on(g, hw)) return NULL;
    return engine_devices_note(a, g, text_clean(clean, sizeof clean, hw->key, strlen(hw->key)));
}

bool engine_measured_on(const struct engine *g, const struct hw *hw)
{
    for (size_t i = 0; i < ENGINE_DEVICES_MAX && g->device[i]; i++)
        if (strcmp(g->device[i], hw->key) == 0) return true;
    return !g->device[0];
}

bool engine_has_experts(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE || m->kinds[i].mixer.kind == MIXER_LATENT) return true;
    return false;
}

/* Whether x is known to be y or later. */
static bool is_from(const char *x, const char *y)
{
    return x && isdigit((unsigned char)*x) && isdigit((unsigned char)*y) && compare_versions(x, y) >= 0;
}

bool engine_overlaps(const struct engine *g, const char *version) { return is_from(version, g->overlapped_from); }

void engine_set_version(struct engine *g, const char *version)
{
    for (size_t i = 0; i < 2; i++) g->sorts_few[i] = *g->sorted_before[i] && !is_from(version, g->sorted_before[i]);
}
