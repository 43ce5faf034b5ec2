#include "calc/fit/efficiency.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/hash.h"
#include "calc/base/text.h"

/* -- writing -- */

static void put_text(struct out *o, const char *s)
{
    if (!s) {
        out_str(o, "null");
        return;
    }
    out_char(o, '"');
    for (size_t n = strlen(s), used; n; s += used, n -= used) {
        char piece[TEXT_JSON_MAX];
        out_write(o, piece, text_json_char(piece, s, n, &used));
    }
    out_char(o, '"');
}

/* Six digits: what is beyond them depends on the order of sums. */
static void put_number(struct out *o, double v)
{
    if (isfinite(v))
        out_printf(o, "%.6g", v);
    else
        out_str(o, "null");
}

static void put_member(struct out *o, const char *key, double v)
{
    out_printf(o, "\"%s\": ", key);
    put_number(o, v);
}

static void put_mean(struct out *o, const char *key, const struct fit_mean *m)
{
    out_str(o, ", ");
    out_printf(o, "\"%s_frac\": ", key);
    put_number(o, m->mean);
    out_printf(o, ", \"%s_sd\": ", key);
    put_number(o, m->sd);
}

static void put_params(struct out *o, const struct fit_class *c)
{
    for (size_t i = 0; i < c->n_params; i++) {
        const struct kernel_param *p = kernel_param(&c->like, i);
        const double edge = 0.01 * log(p->hi / p->lo);
        const bool limit = log(c->p[i] / p->lo) < edge || log(p->hi / c->p[i]) < edge;
        out_printf(o, "%s\n      {\"name\": \"%s\", \"unit\": \"%s\", ", i ? "," : "", p->name, p->unit);
        put_member(o, "value", c->p[i]);
        out_str(o, ", ");
        put_member(o, "low", c->lo[i]);
        out_str(o, ", ");
        put_member(o, "high", c->hi[i]);
        out_printf(o, ", \"at_limit\": %s}", limit ? "true" : "false");
    }
}

static void put_class(struct out *o, const struct fit_class *c)
{
    out_str(o, "    {\"name\": ");
    put_text(o, c->name);
    out_str(o, ", \"form\": ");
    put_text(o, kernel_form_of(&c->like)->name);
    out_printf(o, ", \"quantises\": %s", c->like.quant != KERNEL_QUANT_NONE ? "true" : "false");
    out_printf(o, ", \"rows\": %zu, \"families\": %zu, \"rows_over_20us\": %zu,\n     \"params\": [", c->rows_n,
               c->families_n, c->large_n);
    put_params(o, c);
    out_str(o, "],\n     \"baseline\": [");
    for (size_t i = 0; i < KERNEL_BASELINE_PARAMS_N; i++) {
        if (i) out_str(o, ", ");
        put_number(o, c->baseline[i]);
    }
    out_str(o, "],\n     \"error\": {");
    put_member(o, "fitted_frac", c->mape_frac);
    out_str(o, ", ");
    put_member(o, "fitted_baseline_frac", c->baseline_mape_frac);
    put_mean(o, "held_out", &c->held_out);
    put_mean(o, "held_out_baseline", &c->held_out_baseline);
    put_mean(o, "over_20us", &c->large);
    put_mean(o, "over_20us_baseline", &c->large_baseline);
    put_mean(o, "coverage", &c->coverage_frac);
    out_str(o, "},\n     \"bands\": [");
    bool first = true;
    for (int r = 0; r < FIT_REGIMES_N; r++) {
        if (!c->band[r].n) continue;
        out_printf(o, "%s{\"regime\": \"%s\", \"rows\": %zu, ", first ? "" : ", ", fit_regime_name((enum fit_regime)r),
                   c->band[r].n);
        first = false;
        put_member(o, "p10", c->band[r].p10);
        out_str(o, ", ");
        put_member(o, "p50", c->band[r].p50);
        out_str(o, ", ");
        put_member(o, "p90", c->band[r].p90);
        out_char(o, '}');
    }
    out_str(o, "]}");
}

enum err_code efficiency_write(struct out *o, const struct efficiency_origin *origin, const struct rows *rows,
                               const struct fit_class *classes, size_t n, struct err *e)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"device", origin->device},
                 {"framework", origin->framework},
                 {"source", origin->source},
                 {"date", origin->date}};
    out_str(o, "{\n  \"schema\": \"ridge.efficiency.1\"");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        out_printf(o, ",\n  \"%s\": ", texts[i].key);
        put_text(o, texts[i].text);
    }
    out_str(o, ",\n  \"files\": [");
    bool first = true;
    for (size_t i = 0; i < rows->files_n; i++) {
        char hash[HASH_TEXT_MAX];
        const char *path = rows->files[i].path, *slash = strrchr(path, '/');
        if (!rows->files[i].n) continue;
        if (rows->files[i].hash)
            (void)snprintf(hash, sizeof hash, "%s", rows->files[i].hash);
        else
            TRY(hash_file(path, hash, e));
        out_printf(o, "%s\n    {\"name\": ", first ? "" : ",");
        first = false;
        put_text(o, slash ? slash + 1 : path);
        out_printf(o, ", \"rows\": %zu, \"hash\": \"%s\"}", rows->files[i].n, hash);
    }
    out_str(o, "],\n  \"classes\": [");
    for (size_t i = 0; i < n; i++) {
        out_str(o, i ? ",\n" : "\n");
        put_class(o, &classes[i]);
    }
    out_str(o, "]\n}\n");
    return out_check(o, e);
}

/* -- reading -- */

static enum err_code member(const struct json *j, const char *key, struct json *out, struct err *e)
{
    if (json_get(j, key, out)) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: %s%s%s: missing", j->file, j->path, *j->path ? "." : "", key);
}

static enum err_code text_of(const struct json *j, const char *key, const char **out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    return json_str(&v, out, e);
}

static enum err_code number_of(const struct json *j, const char *key, double lo, double hi, double *out, struct err *e)
{
    struct json v;
    double x;
    TRY(member(j, key, &v, e));
    TRY(json_num(&v, &x, e));
    if (!(x >= lo && x <= hi))
        return err_set(e, ERR_INPUT, "%s: %s: found %g, wanted a number from %g to %g", v.file, v.path, x, lo, hi);
    *out = x;
    return ERR_OK;
}

static enum err_code read_params(const struct json *j, struct fit_class *c, struct err *e)
{
    struct json list, item;
    TRY(member(j, "params", &list, e));
    c->n_params = kernel_params_n(&c->like);
    if (!json_is_array(&list) || json_len(&list) != c->n_params)
        return err_set(e, ERR_INPUT, "%s: %s: wanted an array of %zu parameters", list.file, list.path, c->n_params);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        const struct kernel_param *p = kernel_param(&c->like, i);
        const char *name;
        TRY(text_of(&item, "name", &name, e));
        if (strcmp(name, p->name) != 0)
            return err_set(e, ERR_INPUT, "%s: %s.name: wanted \"%s\"", item.file, item.path, p->name);
        /* six digits may lie just outside */
        TRY(number_of(&item, "value", p->lo * (1 - 1e-5), p->hi * (1 + 1e-5), &c->p[i], e));
    }
    TRY(member(j, "baseline", &list, e));
    for (size_t i = 0; i < KERNEL_BASELINE_PARAMS_N; i++) {
        if (!json_at(&list, i, NULL, &item)) return json_want(&list, "an array of 3 numbers", e);
        TRY(json_num(&item, &c->baseline[i], e));
        if (!(c->baseline[i] > 0 && c->baseline[i] <= 1)) return json_want(&item, "a number above 0, at most 1", e);
    }
    return ERR_OK;
}

static enum err_code read_bands(const struct json *j, struct fit_class *c, struct err *e)
{
    struct json list, item;
    TRY(member(j, "bands", &list, e));
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        const char *name;
        TRY(text_of(&item, "regime", &name, e));
        int r = 0;
        while (r < FIT_REGIMES_N && strcmp(fit_regime_name((enum fit_regime)r), name) != 0) r++;
        if (r == FIT_REGIMES_N) return json_want(&item, "a regime: tiny, memory or compute", e);
        struct fit_band b = {.n = 1};
        TRY(number_of(&item, "p10", 1e-6, 1e6, &b.p10, e));
        TRY(number_of(&item, "p50", b.p10, 1e6, &b.p50, e));
        TRY(number_of(&item, "p90", b.p50, 1e6, &b.p90, e));
        c->band[r] = b;
    }
    return ERR_OK;
}

static enum err_code read_class(const struct json *j, struct fit_class *c, struct err *e)
{
    char kind[32];
    const char *form;
    struct json v;
    bool quantises;
    TRY(text_of(j, "name", &c->name, e));
    TRY(text_of(j, "form", &form, e));
    const size_t len = strcspn(c->name, "/");
    memcpy(kind, c->name, len < sizeof kind ? len : 0);
    kind[len < sizeof kind ? len : 0] = '\0';
    c->like.host = strcmp(form, kernel_host_form.name) == 0;
    if (!kernel_kind_find(kind, &c->like.kind) || strcmp(kernel_form_of(&c->like)->name, form) != 0)
        return err_set(e, ERR_INPUT, "%s: %s: its form is not one of this program: fit again", j->file, j->path);
    TRY(member(j, "quantises", &v, e));
    TRY(json_bool(&v, &quantises, e));
    c->like.quant = quantises ? KERNEL_QUANT_DYNAMIC : KERNEL_QUANT_NONE;
    TRY(read_params(j, c, e));
    return read_bands(j, c, e);
}

static enum err_code open_file(struct arena *a, const char *name, struct json *out, struct err *e)
{
    static const char PREFIX[] = "configs/efficiency/";
    const size_t len = strlen(name);
    if (strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".json") == 0)) return json_load(a, name, out, e);
    const char *path = arena_printf(a, "%s%s.json", PREFIX, name);
    if (!path) return err_nomem(e);
    const struct embed_file *f = embed_find(path);
    if (f) return json_parse(a, path, (const char *)f->bytes, f->size, out, e);
    size_t n;
    char shown[80], known[400] = "";
    f = embed_under(PREFIX, &n);
    for (size_t i = 0; i < n; i++) {
        const char *stem = f[i].path + sizeof PREFIX - 1;
        const size_t used = strlen(known), stem_len = strlen(stem) - strlen(".json");
        if (strcmp(stem, "steps.json") == 0) continue; /* of whole steps: steps.h */
        if (used + stem_len + 3 >= sizeof known) break;
        memcpy(known + used, i ? ", " : "", i ? 2 : 0);
        memcpy(known + used + (i ? 2 : 0), stem, stem_len);
    }
    return err_set(e, ERR_INPUT, "no efficiencies \"%s\"; there are %s, or a file",
                   text_clean(shown, sizeof shown, name, len), *known ? known : "none built in");
}

enum err_code efficiency_load(struct arena *a, const char *name, struct efficiency *out, struct err *e)
{
    struct json j, list, item;
    struct efficiency f = {.n = 0};
    const char *schema;
    TRY(open_file(a, name, &j, e));
    TRY(text_of(&j, "schema", &schema, e));
    if (strcmp(schema, "ridge.efficiency.1") != 0)
        return err_set(e, ERR_INPUT, "%s: schema: wanted \"ridge.efficiency.1\"", j.file);
    TRY(text_of(&j, "device", &f.device, e));
    if (json_get(&j, "source", &item)) TRY(json_str(&item, &f.source, e));
    if (json_get(&j, "framework", &item) && json_is_string(&item)) TRY(json_str(&item, &f.framework, e));
    TRY(member(&j, "classes", &list, e));
    f.n = json_len(&list);
    if (!f.n) return err_set(e, ERR_INPUT, "%s: classes: none, so it calibrates nothing", j.file);
    struct fit_class *classes = arena_array(a, f.n ? f.n : 1, sizeof *classes);
    if (!classes) return err_nomem(e);
    for (size_t i = 0; i < f.n && json_at(&list, i, NULL, &item); i++) TRY(read_class(&item, &classes[i], e));
    f.classes = classes;
    f.file = j.file;
    *out = f;
    return ERR_OK;
}

const struct fit_class *efficiency_find(const struct efficiency *f, const char *class_name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->classes[i].name, class_name) == 0) return &f->classes[i];
    return NULL;
}

enum err_code efficiency_load_device(struct arena *a, const char *device, struct efficiency *out, struct err *e)
{
    static const char PREFIX[] = "configs/efficiency/";
    const size_t len = strlen(device);
    struct efficiency all = {.n = 0};
    size_t n;
    const struct embed_file *f = embed_under(PREFIX, &n);
    for (size_t i = 0; i < n; i++) {
        const char *stem = f[i].path + sizeof PREFIX - 1;
        struct efficiency one;
        if (strncmp(stem, device, len) != 0 || stem[len] != '.') continue;
        TRY(efficiency_load(a, arena_strndup(a, stem, strlen(stem) - strlen(".json")), &one, e));
        struct fit_class *joined = arena_array(a, all.n + one.n + 1, sizeof *joined);
        if (!joined) return err_nomem(e);
        if (all.n) memcpy(joined, all.classes, all.n * sizeof *joined);
        if (one.n) memcpy(joined + all.n, one.classes, one.n * sizeof *joined);
        all = (struct efficiency){.file = PREFIX, .device = one.device, .classes = joined, .n = all.n + one.n};
    }
    char shown[80];
    if (!all.n)
        return err_set(e, ERR_USAGE, "nothing was fitted on \"%s\"", text_clean(shown, sizeof shown, device, len));
    *out = all;
    return ERR_OK;
}
