#include "calc/serve/engine.h"

#include <math.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"

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
    if (!source) return err_nomem(e);
    *out = (struct engine_case){.engine = engine, .groups = (double)layout_whole(&u.layout).dp};
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

static double kernels_s(struct engine_case *c, const struct made *s)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    fill(&c->x, s, c->groups);
    const bool small = mix_tokens(&c->x) <= (double)c->engine->graph_tokens;
    const bool graph = small && (s->prompts == 0 || c->engine->graph_mixed);
    mix_eval(&c->x, v);
    calibrated_mix_eval(graph ? c->graph : c->eager, &c->x, v[MIX_step_s], &t);
    return t.s;
}

static double roofline_s(struct engine_case *c, const struct made *s)
{
    double v[MIX_VALUES_N];
    fill(&c->y, s, c->groups);
    mix_eval(&c->y, v);
    return v[MIX_step_s];
}

enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e)
{
    const struct engine *g = c->engine;
    const double C = ceil(l->clients / c->groups), P = l->prompt_tokens, G = l->output_tokens,
                 budget = (double)g->budget_tokens;
    if (!(C >= 1 && P >= 1 && G >= 2))
        return err_set(e, ERR_RANGE, "a closed loop has clients, prompts and answers of at least 2 tokens");
    if (!(budget > C)) return err_set(e, ERR_RANGE, "%g clients are more than a step has tokens", C);
    double own = 1, D = C, q = budget;
    for (int i = 0; i < 4; i++) { /* the two depend on each other little */
        D = g->mixed ? C * (G - 1) / (G - 1 + own) : C;
        q = fmin(g->mixed ? budget - D : budget, C * P);
        own = fmax(1, P / q);
    }
    const double n = C * P / q, others = fmax(0, n - own) * (g->mixed ? 1 : .5), between = fmin(others, G - 1);
    const struct made decode = {D, P + G / 2, 0, 0};
    const struct made both = {g->mixed && C > 1 ? D : 0, P + G / 2, q / P, P};
    const struct made alone = {0, 0, q / P, P};
    const double decode_s = kernels_s(c, &decode), both_s = kernels_s(c, &both);
    struct engine_seen *t = &out->token, *f = &out->first;
    if (g->mixed) {
        t->kernels_s = (between * both_s + (G - 1 - between) * decode_s) / (G - 1);
        t->steps = 1;
    } else {
        t->kernels_s = decode_s + others * both_s / (G - 1);
        t->steps = 1 + others / (G - 1);
    }
    t->sequences = D;
    t->roofline_decode_s = roofline_s(c, &decode);
    t->roofline_prefill_s = (n - own) * roofline_s(c, &alone) / (G - 1);
    f->steps = g->mixed ? own : (n + own) / 2;
    f->kernels_s = f->steps * both_s;
    f->sequences = own * (D + q / P);
    f->roofline_decode_s = 0;
    f->roofline_prefill_s = own * roofline_s(c, &alone);
    return ERR_OK;
}
