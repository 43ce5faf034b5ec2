#include "calc/serve/engine.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"

enum { TOKENS_MAX = 1 << 24 };

static const char FOLDER[] = "configs/engines/";

/* ---- what is known of an engine ---- */

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

enum err_code engine_load_version(struct arena *a, const char *text, struct engine *out, bool *overlapped,
                                  struct err *e)
{
    const char *colon = strrchr(text, ':');
    if (colon && strchr(colon, '/')) colon = NULL; /* of a path */
    const char *name = colon ? arena_strndup(a, text, (size_t)(colon - text)) : text;
    if (!name) return err_nomem(e);
    TRY(engine_load(a, name, out, e));
    *overlapped = engine_overlaps(out, colon ? colon + 1 : out->overlapped_from);
    return ERR_OK;
}

bool engine_has_experts(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE || m->kinds[i].mixer.kind == MIXER_LATENT) return true;
    return false;
}

bool engine_overlaps(const struct engine *g, const char *version)
{
    const char *x = version ? version : "", *y = g->overlapped_from;
    if (!isdigit((unsigned char)*x) || !isdigit((unsigned char)*y)) return false;
    for (;;) {
        char *x_end = NULL, *y_end = NULL;
        const long p = isdigit((unsigned char)*x) ? strtol(x, &x_end, 10) : 0;
        const long q = isdigit((unsigned char)*y) ? strtol(y, &y_end, 10) : 0;
        if (p != q) return p > q;
        if (!y_end || *y_end != '.') return true;
        y = y_end + 1;
        x = x_end && *x_end == '.' ? x_end + 1 : "";
    }
}

/* ---- a model under an engine ---- */

static enum err_code open_calibrated(struct arena *a, const struct step *step, const struct mix_plan *plan,
                                     const struct source *source, bool eager, struct calibrated **out, struct err *e)
{
    const struct calibrated_setup setup = {.step = step, .source = source, .eager = eager, .mix = plan, .memos = 64};
    return calibrated_open(a, &setup, out, e);
}

enum err_code engine_case_open(struct arena *a, const struct engine *engine, const struct step_setup *setup,
                               struct engine_case *out, struct err *e)
{
    struct step_setup u = *setup;
    struct step *step;
    struct source *source = arena_alloc(a, sizeof *source);
    const struct layout w = layout_whole(&u.layout);
    if (!source) return err_nomem(e);
    if (w.pp > 1 || w.sp || layout_nodes(&w, layout_group(&w)) > 1)
        return err_set(e, ERR_USAGE,
                       "steps of a server are known of one stage in one node, norms not split over ranks");
    *out = (struct engine_case){.engine = engine, .groups = (double)w.dp};
    u.fidelity = STEP_BOUND;
    TRY(step_compile(a, &u, &step, e));
    TRY(mix_compile(a, &u, &out->bound, e));
    TRY(source_open(a, u.hw, NULL, engine->name, source, e));
    source->framework = "none"; /* kernels alone: what the engine adds is its terms */
    TRY(open_calibrated(a, step, out->bound, source, false, &out->graph, e));
    TRY(open_calibrated(a, step, out->bound, source, true, &out->eager, e));
    u.fidelity = STEP_ROOFLINE;
    TRY(mix_compile(a, &u, &out->roofline, e));
    TRY(mix_open(a, out->bound, &out->x, e));
    return mix_open(a, out->roofline, &out->y, e);
}

/* ---- steps ---- */

/* Of one attention group: sequences that decode, and tokens of prompts as so many whole ones. */
struct made {
    double decoding, context, prompts, prompt_tokens;
};

static void fill(struct mix *x, const struct made *s, double groups)
{
    mix_clear(x);
    if (s->decoding > 0) mix_decode(x, s->decoding, s->context);
    if (s->prompts > 0) mix_prefill(x, s->prompts, s->prompt_tokens, 0);
    mix_others(x, (groups - 1) * mix_tokens(x));
}

static double mix_kernels_s(struct engine_case *c, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    const bool small = mix_tokens(x) <= (double)c->engine->graph_tokens;
    const bool prompts = mix_mean(x, MIXED_PREFILL).sequences > 0;
    mix_eval(x, v);
    calibrated_mix_eval(small && (!prompts || c->engine->graph_mixed) ? c->graph : c->eager, x, v[MIX_step_s], &t);
    return t.s;
}

double engine_mix_s(struct engine_case *c, const struct mix *x, bool overlapped)
{
    return engine_step_s(&c->engine->terms, overlapped, mix_kernels_s(c, x));
}

static double kernels_s(struct engine_case *c, const struct made *s)
{
    fill(&c->x, s, c->groups);
    return mix_kernels_s(c, &c->x);
}

static void at_plan(struct mix *x, const struct made *s, double groups, double v[MIX_VALUES_N])
{
    fill(x, s, groups);
    mix_eval(x, v);
}

/* Seconds that the work of a cycle takes at least: C prompts and G-1 steps that decode, whose weights a prompt may have
 * read with them. */
static double bound_s(struct engine_case *c, const struct made *decode, const struct made *alone, double prompts,
                      double tokens)
{
    double d[MIX_VALUES_N], p[MIX_VALUES_N];
    at_plan(&c->x, decode, c->groups, d);
    at_plan(&c->x, alone, c->groups, p);
    const double compute_s = tokens * d[MIX_compute_s] + prompts * p[MIX_compute_s];
    const double link_s = tokens * d[MIX_link_s] + prompts * p[MIX_link_s];
    return fmax(fmax(tokens * d[MIX_memory_s], tokens * d[MIX_host_s]), fmax(compute_s, link_s));
}

static enum err_code check_loop(const struct engine_case *c, const struct engine_loop *l, struct err *e)
{
    const double budget = (double)c->engine->budget_tokens, clients = ceil(l->clients / c->groups);
    if (!(l->clients >= 1 && l->prompt_tokens >= 1 && l->output_tokens >= 2) || !isfinite(l->clients) ||
        !isfinite(l->prompt_tokens) || !isfinite(l->output_tokens))
        return err_set(e, ERR_RANGE, "a closed loop has clients, prompts, and answers of at least 2 tokens");
    if (!(budget > clients))
        return err_set(e, ERR_RANGE, "%g clients are more than the %g tokens of a step", clients, budget);
    return ERR_OK;
}

enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e)
{
    enum { ROUNDS = 8 };
    TRY(check_loop(c, l, e));
    const struct engine *g = c->engine;
    const double C = ceil(l->clients / c->groups), P = l->prompt_tokens, after = l->output_tokens - 1;
    const double budget = (double)g->budget_tokens, context = P + l->output_tokens / 2;
    double own = 1, D = C, q = budget, decode_v[MIX_VALUES_N], alone_v[MIX_VALUES_N];
    for (int i = 0; i < ROUNDS; i++) { /* D and own depend on each other little */
        D = g->mixed ? C * after / (after + own) : C;
        q = fmin(g->mixed ? budget - D : budget, C * P);
        own = fmax(1, P / q);
    }
    const double n = C * P / q, others = fmax(0, n - own);
    const struct made decode = {D, context, 0, 0}, alone = {0, 0, q / P, P};
    const struct made both = {g->mixed && C > 1 ? D : 0, context, q / P, P};
    const double decode_s = kernels_s(c, &decode), both_s = kernels_s(c, &both);
    const double seen = g->mixed ? fmin(others, after) : others / 2;
    at_plan(&c->y, &decode, c->groups, decode_v);
    at_plan(&c->y, &alone, c->groups, alone_v);
    *out = (struct engine_closed){
        .token = {g->mixed ? 1 - seen / after : 1, decode_s, seen / after, both_s},
        .first = {0, decode_s, (n + own) / 2, both_s},
        .roofline_decode_s = decode_v[MIX_step_s],
        .roofline_prefill_s = others * alone_v[MIX_step_s] / after,
        .bound_s = bound_s(c, &decode, &alone, n, after),
        .decoding = D,
        .prompts = q / P,
    };
    return ERR_OK;
}

double engine_step_s(const struct engine_terms *t, bool overlapped, double kernels_s)
{
    const double device_s = t->factor * kernels_s;
    return overlapped ? fmax(t->host_s, device_s) : t->host_s + device_s;
}

double engine_steps_s(const struct engine_terms *t, bool overlapped, const struct engine_steps *s)
{
    return s->decode * engine_step_s(t, overlapped, s->decode_s) +
           s->prompt * engine_step_s(t, overlapped, s->prompt_s);
}
