#include "calc/serve/engine.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"
#include "calc/base/units.h"

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
    char host[UNITS_TEXT_MAX], each[UNITS_TEXT_MAX], kernel[UNITS_TEXT_MAX], times[32] = "", more[64] = "";
    const struct engine_terms *t = &g->terms;
    const bool of_step = t->host_s > 0, of_sequence = t->sequence_s > 0;
    if (fabs(t->factor - 1) > 1e-9) (void)snprintf(times, sizeof times, "%.4g times ", t->factor);
    if (t->kernel_s > 0)
        (void)snprintf(more, sizeof more, " and %s for each of them", units_format_time(kernel, t->kernel_s));
    (void)snprintf(out, ENGINE_TEXT, "%s%s%s%s%s%sits kernels as measured%s",
                   of_step ? units_format_time(host, t->host_s) : "", of_step && of_sequence ? " and " : "",
                   of_sequence ? units_format_time(each, t->sequence_s) : "", of_sequence ? " a sequence" : "",
                   !of_step && !of_sequence ? ""
                   : overlapped             ? " of its host beside "
                                            : " of its host, then ",
                   times, more);
    return out;
}

const char *engine_device_note(struct arena *a, const struct engine *g, const struct hw *hw)
{
    char all[128] = "", clean[64];
    size_t n = 0;
    if (engine_measured_on(g, hw)) return NULL;
    while (n < ENGINE_DEVICES_MAX && g->device[n]) n++;
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(all);
        (void)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", g->device[i]);
    }
    return arena_printf(a, "the host's part was fitted to servers on %s, none on %s: taken over as it is", all,
                        text_clean(clean, sizeof clean, hw->key, strlen(hw->key)));
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

/* ---- a model under an engine ---- */

static enum err_code open_calibrated(struct arena *a, const struct step *step, const struct mix_plan *plan,
                                     const struct source *source, bool eager, struct calibrated **out, struct err *e)
{
    const struct calibrated_setup setup = {.step = step, .source = source, .eager = eager, .mix = plan, .memos = 64};
    return calibrated_open(a, &setup, out, e);
}

enum err_code engine_source_open(struct arena *a, const struct engine *engine, const struct hw *hw, struct source *out,
                                 struct err *e)
{
    TRY(source_open(a, hw, NULL, engine->name, out, e));
    out->framework = "none"; /* kernels alone: what the engine adds is its terms */
    for (size_t i = 0; i < 2; i++) out->sorts_few[i] = engine->sorts_few[i];
    return ERR_OK;
}

/* Unless it is said how uneven the parts of the experts are, as uneven as the choices make them. */
static void set_part_load(struct step_setup *u)
{
    const struct ffn *f = layout_routed(u->model);
    if (!f || u->layout.skew > 1 || u->layout.ep <= 1) return;
    const double load = routing_part_load(&u->conventions.routing, f->experts, f->experts_per_token, u->layout.ep);
    u->layout.skew = fmin(load, layout_skew_most(u->model, &u->layout));
}

enum err_code engine_case_open(struct arena *a, const struct engine *engine, const struct step_setup *setup,
                               struct engine_case *out, struct err *e)
{
    struct source *source = arena_alloc(a, sizeof *source);
    if (!source) return err_nomem(e);
    TRY(engine_source_open(a, engine, setup->hw, source, e));
    return engine_case_open_from(a, engine, source, setup, out, e);
}

enum err_code engine_case_open_from(struct arena *a, const struct engine *engine, const struct source *source,
                                    const struct step_setup *setup, struct engine_case *out, struct err *e)
{
    struct step_setup u = *setup;
    struct step *step;
    const struct layout w = layout_whole(&u.layout);
    if (w.pp > 1 || w.sp || layout_nodes(&w, layout_group(&w)) > 1)
        return err_set(e, ERR_USAGE,
                       "steps of a server are known of one stage in one node, norms not split over ranks");
    *out = (struct engine_case){.engine = engine, .groups = (double)w.dp, .source = source};
    out->measured = engine_measured_on(engine, u.hw);
    u.fidelity = STEP_BOUND;
    if (u.conventions.routing.rule == ROUTING_UNIFORM)
        u.conventions.routing = (struct routing){.rule = ROUTING_LOADS, .exponent = ENGINE_LOADS};
    set_part_load(&u);
    TRY(step_compile(a, &u, &step, e));
    TRY(mix_compile(a, &u, &out->bound, e));
    TRY(open_calibrated(a, step, out->bound, source, false, &out->graph, e));
    TRY(open_calibrated(a, step, out->bound, source, true, &out->eager, e));
    u.fidelity = STEP_ROOFLINE;
    u.conventions.routing = setup->conventions.routing; /* the textbook's */
    u.layout = setup->layout;
    TRY(mix_compile(a, &u, &out->roofline, e));
    TRY(mix_open(a, out->bound, &out->x, e));
    TRY(mix_open(a, out->roofline, &out->y, e));
    struct calibrated_work alone;
    mix_clear(&out->x);
    mix_prefill(&out->x, 1, 1, 0);
    calibrated_mix_work(out->eager, &out->x, 0, &alone);
    out->launches = alone.launches;
    return ERR_OK;
}

double engine_band(const struct engine_case *c, double batch, double context, double prompt)
{
    const struct step_setup *u = mix_pass_of(c->bound).setup;
    const double slow = fmax(1, c->engine->slow_p90[engine_has_experts(u->model)]);
    if (isnan(c->engine->slow_p90[engine_has_experts(u->model)])) return (double)NAN;
    return c->measured ? slow : fmax(slow, calibrated_band(c->graph, batch, context, prompt));
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

static struct engine_work mix_work(struct engine_case *c, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_work w;
    const bool small = mix_tokens(x) <= (double)c->engine->graph_tokens;
    const double decoding = mix_mean(x, MIXED_DECODE).sequences, prompts = mix_mean(x, MIXED_PREFILL).sequences;
    mix_eval(x, v);
    calibrated_mix_work(small && (!(prompts > 0) || c->engine->graph_mixed) ? c->graph : c->eager, x, v[MIX_step_s],
                        &w);
    return (struct engine_work){w.time.s, w.kernels, decoding + prompts};
}

double engine_mix_s(struct engine_case *c, const struct mix *x, bool overlapped)
{
    const struct engine_work w = mix_work(c, x);
    return engine_step_s(&c->engine->terms, overlapped, &w);
}

static struct engine_work work_of(struct engine_case *c, const struct made *s)
{
    fill(&c->x, s, c->groups);
    return mix_work(c, &c->x);
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

/* Of one group. */
struct cycle {
    double clients, prompt, after, budget, context;
};

/* Steps of the textbook and the bound, n steps with prompts as in `alone` beside `after` that decode. */
static void fill_floors(struct engine_case *c, const struct cycle *y, const struct made *decode,
                        const struct made *alone, double n, double others, struct engine_closed *out)
{
    double decode_v[MIX_VALUES_N], alone_v[MIX_VALUES_N];
    at_plan(&c->y, decode, c->groups, decode_v);
    at_plan(&c->y, alone, c->groups, alone_v);
    out->roofline_decode_s = decode_v[MIX_step_s];
    out->roofline_prefill_s = others * alone_v[MIX_step_s] / y->after;
    out->bound_s = bound_s(c, decode, alone, n, y->after);
}

/* Prompts first. */
static void close_waves(struct engine_case *c, const struct cycle *y, struct engine_closed *out)
{
    const double C = y->clients, P = y->prompt, q = fmin(y->budget, C * P), n = C * P / q, own = fmax(1, P / q);
    const double others = fmax(0, n - own);
    const struct made decode = {C, y->context, 0, 0}, alone = {0, 0, q / P, P};
    const struct engine_work decode_w = work_of(c, &decode), alone_w = work_of(c, &alone);
    *out = (struct engine_closed){
        .token = {1, others / 2 / y->after, decode_w, alone_w},
        .first = {0, (n + own) / 2, decode_w, alone_w},
        .decoding = C,
        .prompts = q / P,
    };
    fill_floors(c, y, &decode, &alone, n, others, out);
}

/* Prompts beside sequences that decode. */
static void close_mixed(struct engine_case *c, const struct cycle *y, struct engine_closed *out)
{
    const double C = y->clients, P = y->prompt;
    const double D = C * y->after / (y->after + fmax(1, P / (y->budget - C))), q = y->budget - D, own = fmax(1, P / q);
    const double room = q / P; /* prompts, or the part of one, of a step at most */
    const double others = (C - 1) / (y->after + own), some = room > 1 ? -expm1(-others) : others * own;
    const double held = room > 1 && C > 1 ? fmin(room, others / some) : fmin(1, room);
    const double part = fmin(1, room > 1 ? others / held : some);
    const struct made decode = {D, y->context, 0, 0}, both = {C > 1 ? D : 0, y->context, held, P};
    const struct engine_work decode_w = work_of(c, &decode), both_w = work_of(c, &both);
    const double rest = 1 / (2 * ((1 - part) * decode_w.kernels_s + part * both_w.kernels_s));
    *out = (struct engine_closed){
        .token = {1 - part, part, decode_w, both_w},
        .first = {C > 1 ? rest * (1 - part) * decode_w.kernels_s : 0,
                  own + (C > 1 ? rest * part * both_w.kernels_s : 0), decode_w, both_w},
        .decoding = D,
        .prompts = held,
    };
    const double full = fmin(q, C * P), n = C * P / full; /* the fewest steps that hold all prompts */
    const struct made alone = {0, 0, full / P, P};
    fill_floors(c, y, &decode, &alone, n, fmax(0, n - fmax(1, P / full)), out);
}

enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e)
{
    TRY(check_loop(c, l, e));
    const struct cycle y = {ceil(l->clients / c->groups), l->prompt_tokens, l->output_tokens - 1,
                            (double)c->engine->budget_tokens, l->prompt_tokens + l->output_tokens / 2};
    if (c->engine->mixed)
        close_mixed(c, &y, out);
    else
        close_waves(c, &y, out);
    out->first_launches = c->launches;
    return ERR_OK;
}

double engine_step_s(const struct engine_terms *t, bool overlapped, const struct engine_work *w)
{
    const double device_s = t->factor * w->kernels_s + w->kernels * t->kernel_s,
                 host_s = t->host_s + w->sequences * t->sequence_s;
    return overlapped ? fmax(host_s, device_s) : host_s + device_s;
}

double engine_steps_s(const struct engine_terms *t, bool overlapped, const struct engine_steps *s)
{
    return s->decode * engine_step_s(t, overlapped, &s->of_decode) +
           s->prompt * engine_step_s(t, overlapped, &s->of_prompt);
}

double engine_first_s(double tokens) { return ENGINE_FIRST_S + tokens * ENGINE_TOKEN_S; }
