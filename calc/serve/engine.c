#include "calc/serve/engine.h"

#include <math.h>

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
static enum err_code set_part_load(struct arena *a, struct step_setup *u, struct err *e)
{
    const struct ffn *f = layout_routed(u->model);
    if (!f || u->layout.skew > 1 || u->layout.ep <= 1) return ERR_OK;
    double *room = arena_array(a, (size_t)f->experts, sizeof *room);
    if (!room) return err_nomem(e);
    const double load =
        routing_part_load(&u->conventions.routing, f->experts, f->experts_per_token, u->layout.ep, room);
    u->layout.skew = fmin(load, layout_skew_most(u->model, &u->layout));
    return ERR_OK;
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
    if (w.pp > 1 || w.sp || layout_nodes(&w, w.tp) > 1)
        return err_set(e, ERR_USAGE,
                       "steps of a server are known of one stage in one node, norms not split over ranks (ridge plan "
                       "--verify takes stages by the ratio of floors)");
    *out = (struct engine_case){.engine = engine, .groups = (double)w.dp, .source = source};
    out->measured = engine_measured_on(engine, u.hw);
    u.fidelity = STEP_BOUND;
    if (u.conventions.routing.rule == ROUTING_UNIFORM)
        u.conventions.routing = (struct routing){.rule = ROUTING_LOADS, .exponent = ENGINE_LOADS};
    TRY(set_part_load(a, &u, e));
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
    return (struct engine_work){w.time.s, w.kernels, decoding + prompts, w.collectives_s, w.idle_s};
}

double engine_mix_s(struct engine_case *c, const struct mix *x, bool overlapped)
{
    const struct engine_work w = mix_work(c, x);
    return engine_step_s(&c->engine->terms, overlapped, &w);
}

double engine_any_s(struct engine_case *server, bool overlapped, struct calibrated *kernels, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    if (server) return engine_mix_s(server, x, overlapped);
    mix_eval(x, v);
    if (!kernels) return v[MIX_step_s];
    calibrated_mix_eval(kernels, x, v[MIX_step_s], &t);
    return t.s;
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
    const double late_s = fmax(0, t->collective_frac * w->collectives_s - w->idle_s);
    const double device_s = t->factor * w->kernels_s + w->kernels * t->kernel_s + late_s,
                 host_s = t->host_s + w->sequences * t->sequence_s;
    return overlapped ? fmax(host_s, device_s) : host_s + device_s;
}

double engine_steps_s(const struct engine_terms *t, bool overlapped, const struct engine_steps *s)
{
    return s->decode * engine_step_s(t, overlapped, &s->of_decode) +
           s->prompt * engine_step_s(t, overlapped, &s->of_prompt);
}

double engine_first_s(double tokens) { return ENGINE_FIRST_S + tokens * ENGINE_TOKEN_S; }
