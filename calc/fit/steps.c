#include "calc/fit/steps.h"

#include <math.h>
#include <string.h>

#include "calc/base/embed.h"

enum { ROWS_MAX = 1000000 };

static const char PATH[] = "configs/efficiency/steps.json";

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

static enum err_code number_of(const struct json *j, const char *key, double *out, struct err *e)
{
    struct json v;
    TRY(member(j, key, &v, e));
    TRY(json_num(&v, out, e));
    return isfinite(*out) && *out >= 0 ? ERR_OK : json_want(&v, "a number of 0 or more", e);
}

static enum err_code parse_one(const struct json *j, struct steps *s, struct err *e)
{
    const char *phase;
    int64_t rows;
    struct json v;
    TRY(text_of(j, "framework", &s->framework, e));
    TRY(text_of(j, "phase", &phase, e));
    TRY(text_of(j, "source", &s->source, e));
    TRY(text_of(j, "date", &s->date, e));
    s->phase = STEP_DECODE;
    if (strcmp(phase, step_phase_name(STEP_DECODE)) != 0) {
        s->phase = STEP_PREFILL;
        TRY(member(j, "phase", &v, e));
        if (strcmp(phase, step_phase_name(STEP_PREFILL)) != 0) return json_want(&v, "decode or prefill", e);
    }
    TRY(number_of(j, "host_s", &s->host_s, e));
    TRY(member(j, "rows", &v, e));
    TRY(json_int(&v, 1, ROWS_MAX, &rows, e));
    s->band.n = (size_t)rows;
    TRY(number_of(j, "p10", &s->band.p10, e));
    TRY(number_of(j, "p50", &s->band.p50, e));
    TRY(number_of(j, "p90", &s->band.p90, e));
    const bool ascends = s->band.p10 > 0 && s->band.p10 <= s->band.p50 && s->band.p50 <= s->band.p90;
    return ascends ? ERR_OK : json_want(j, "0 < p10 <= p50 <= p90", e);
}

static enum err_code parse_launches(const struct json *j, struct steps_table *out, struct err *e)
{
    struct json list, item;
    out->launch = NULL;
    out->launches_n = 0;
    if (!json_get(j, "launches", &list)) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "an array", e);
    const size_t n = json_len(&list);
    struct steps_launch *v = arena_array(j->arena, n ? n : 1, sizeof *v);
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < n && json_at(&list, i, NULL, &item); i++) {
        TRY(text_of(&item, "framework", &v[i].framework, e));
        TRY(number_of(&item, "value_s", &v[i].value_s, e));
    }
    out->launch = v;
    out->launches_n = n;
    return ERR_OK;
}

enum err_code steps_parse(const struct json *j, struct steps_table *out, struct err *e)
{
    struct json list, item;
    const char *schema;
    TRY(text_of(j, "schema", &schema, e));
    if (strcmp(schema, "ridge.steps.1") != 0)
        return err_set(e, ERR_INPUT, "%s: schema: wanted \"ridge.steps.1\"", j->file);
    TRY(number_of(j, "launch.value_s", &out->launch_s, e));
    TRY(parse_launches(j, out, e));
    TRY(member(j, "steps", &list, e));
    if (!json_is_array(&list)) return json_want(&list, "an array", e);
    const size_t n = json_len(&list);
    struct steps *v = arena_array(j->arena, n ? n : 1, sizeof *v);
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < n && json_at(&list, i, NULL, &item); i++) TRY(parse_one(&item, &v[i], e));
    out->v = v;
    out->n = n;
    return ERR_OK;
}

enum err_code steps_load(struct arena *a, struct steps_table *out, struct err *e)
{
    struct json j;
    const struct embed_file *f = embed_find(PATH);
    if (!f) return err_set(e, ERR_INPUT, "%s: not built in", PATH);
    TRY(json_parse(a, PATH, (const char *)f->bytes, f->size, &j, e));
    return steps_parse(&j, out, e);
}

const struct steps *steps_find(const struct steps_table *t, const char *framework, enum step_phase phase)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].phase == phase && strcmp(t->v[i].framework, framework) == 0) return &t->v[i];
    return NULL;
}

double steps_launch_s(const struct steps_table *t, const char *framework)
{
    for (size_t i = 0; i < t->launches_n; i++)
        if (strcmp(t->launch[i].framework, framework) == 0) return t->launch[i].value_s;
    return t->launch_s;
}

void steps_widest(const struct steps_table *t, double *low, double *high)
{
    *low = *high = 1;
    for (size_t i = 0; i < t->n; i++) {
        *low = fmin(*low, t->v[i].band.p10);
        *high = fmax(*high, t->v[i].band.p90);
    }
}
