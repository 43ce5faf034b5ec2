/* planner_queue -- the steady state of layouts that no mixed step is solved for (planner_mixes, planner_groups_step,
 * planner_stages_fly), and of stages whose engine computes prompts before it decodes. */
#include <math.h>

#include "calc/serve/planner_parts.h"

/* Of one attention group: every group has a queue of its own, and all step together. */
struct group {
    struct planner *p;
    struct planner_unit *u;
    const struct planner_plan *plan;
    double parts;   /* prompts that the passes of a copy take at once: its groups */
    double piece_s; /* floor of a piece of a prompt of step_tokens */
    double ratio;   /* of times to floors */
    bool filled;    /* as many batches under way as stages; else one */
};

static double under_way(const struct group *g) { return g->filled ? (double)g->u->layout.pp : 1; }

struct times {
    double decode_s, mixed_s; /* a step; one that computes a full piece of prompts as well */
};

/* The clock of the plain layout nearest to one that was measured nowhere; NULL: none is legal. */
static enum err_code nearest_clock(struct group *g, struct planner_clock **out, struct err *e)
{
    const int64_t node = g->p->q->device[g->u->device].per_node, ranks = g->u->layout.tp;
    *out = NULL;
    for (int64_t tp = ranks < node ? ranks : node; tp >= 1; tp--) {
        struct err why = {0};
        const enum err_code code = planner_clock_of(g->p, g->u->device, g->u->format,
                                                    &(struct layout){.tp = tp, .per_node = tp}, 0, out, &why);
        if (code == ERR_OK) return ERR_OK;
        if (code != ERR_USAGE && code != ERR_INPUT) return err_set(e, code, "%s", why.text);
    }
    return ERR_OK;
}

/* Its times are its floors, times what that plain layout takes over its own floor, at the power of two that holds the
 * batch. */
static enum err_code ratio_of(struct group *g, double batch, struct err *e)
{
    const struct planner_request *q = g->p->q;
    struct planner_clock *c;
    g->ratio = 1;
    if (q->fidelity != PLANNER_CALIBRATED) return ERR_OK;
    TRY(nearest_clock(g, &c, e));
    if (!c) return ERR_OK;
    const size_t most = sizeof c->ratio / sizeof *c->ratio - 1;
    const double power = ceil(log2(fmax(1, batch)));
    const size_t i = power < (double)most ? (size_t)power : most;
    if (!(c->ratio[i] > 0)) {
        const struct layout plain = c->layout;
        const double B = ldexp(1, (int)i), S = ceil(q->traffic.context_tokens);
        double v[STEP_VALUES_N];
        TRY(step_eval_layout(planner_pair_of(g->p, g->u->device, g->u->format)->floor, &plain, B, S, S, 1, v, e));
        const double floor_s = v[STEP_decode_step_s];
        const double took_s = planner_decode_s(c, B, S, floor_s);
        /* nobody measured the layout: its band is that of a transfer */
        const double wider = q->p90 ? PLANNER_UNMEASURED_P90 : 1;
        c->ratio[i] = fmax(1, took_s / floor_s) * planner_band(g->p, c, B) * wider;
    }
    g->ratio = c->ratio[i];
    return ERR_OK;
}

enum err_code planner_ratio(struct planner *p, struct planner_unit *u, const struct planner_plan *plan, double *out,
                            struct err *e)
{
    struct group g = {.p = p, .u = u, .plan = plan, .parts = (double)u->layout.dp};
    TRY(ratio_of(&g, fmax(1, floor(plan->batch_most / g.parts)), e));
    *out = g.ratio;
    return ERR_OK;
}

static enum err_code eval(struct group *g, int64_t batches, double B, double tokens, double v[STEP_VALUES_N],
                          struct err *e)
{
    struct step *s = planner_pair_of(g->p, g->u->device, g->u->format)->floor;
    struct layout l = g->u->layout;
    l.microbatches = batches;
    return step_eval_layout(s, &l, B, fmax(1, ceil(tokens)), ceil(g->p->q->traffic.context_tokens), 1, v, e);
}

/* Floors up to `most` sequences of a group. */
static enum err_code open_floors(struct group *g, double most, struct err *e)
{
    double v[STEP_VALUES_N];
    const double prompt = g->p->q->traffic.prompt_tokens;
    struct planner_floors *f = g->u->floors;
    if (!f) {
        f = g->u->floors = arena_alloc(g->p->arena, sizeof *f);
        if (!f) return err_nomem(e);
        *f = (struct planner_floors){0};
    }
    while (f->decode_n < 2 || (ldexp(1, (int)f->decode_n - 1) < most && f->decode_n < 24)) {
        for (int filled = 0; filled < 2; filled++) {
            if (filled && g->u->layout.pp == 1) {
                f->decode_s[1][f->decode_n] = f->decode_s[0][f->decode_n];
                continue;
            }
            TRY(eval(g, filled ? g->u->layout.pp : 1, ldexp(g->parts, (int)f->decode_n), prompt, v, e));
            f->decode_s[filled][f->decode_n] = v[STEP_decode_step_s];
        }
        f->decode_n++;
        f->prompt_s = v[STEP_prefill_s];
    }
    for (size_t i = 0; i < f->pieces_n; i++)
        if (f->piece[i].tokens == g->plan->step_tokens) {
            g->piece_s = f->piece[i].s;
            return ERR_OK;
        }
    TRY(eval(g, g->u->layout.pp, 1, fmin((double)g->plan->step_tokens, prompt), v, e));
    g->piece_s = v[STEP_prefill_s];
    if (f->pieces_n == sizeof f->piece / sizeof *f->piece) return ERR_OK;
    f->piece[f->pieces_n].tokens = g->plan->step_tokens;
    f->piece[f->pieces_n++].s = g->piece_s;
    return ERR_OK;
}

/* At n sequences of a group; between powers of two a straight line. */
static struct times times_at(const struct group *g, double n)
{
    const struct planner_floors *f = g->u->floors;
    const double prompt = g->p->q->traffic.prompt_tokens,
                 piece = fmax(1, (double)g->plan->step_tokens - n / under_way(g));
    const double at = fmin(log2(fmax(1, n)), (double)(f->decode_n - 1));
    const size_t i = at >= (double)(f->decode_n - 1) ? f->decode_n - 2 : (size_t)at;
    const double low = ldexp(1, (int)i), part = fmin(1, (fmax(1, n) - low) / low);
    const double *of = f->decode_s[g->filled], decode_s = of[i] + part * (of[i + 1] - of[i]);
    /* a piece costs its part of the prompt, and no less than its own weights */
    const double whole_s = fmax(f->prompt_s * fmin(1, piece / prompt), g->piece_s);
    const double fill = fmax(1, piece / prompt); /* prompts that one step takes */
    struct times t = {.decode_s = g->ratio * decode_s};
    t.mixed_s = t.decode_s + g->ratio * whole_s * fill / under_way(g);
    return t;
}

/* Steps a second that add pieces of prompts, at requests a second of a group. */
static double pieces(const struct group *g, double rate, double n)
{
    return rate * g->p->q->traffic.prompt_tokens / fmax(1, (double)g->plan->step_tokens - n / under_way(g));
}

/* Seconds between two tokens of a sequence, where n decode: mixed steps take their time, the others the rest. */
static double tpot_of(const struct group *g, const struct times *t, double rate, double n)
{
    const double mixed = pieces(g, rate, n), rest = 1 - mixed * t->mixed_s;
    return rest > 0 ? 1 / (mixed + rest / t->decode_s) : (double)INFINITY;
}

/* Of so many sequences those that decode where always others wait: no more than full steps have room for beside their
 * prompts. */
static double decoding_of(const struct group *g, double most)
{
    const struct planner_traffic *w = &g->p->q->traffic;
    const double steps = fmax(1, w->output_tokens - 1);
    return fmax(1, fmin(most, under_way(g) * (double)g->plan->step_tokens * steps / (w->prompt_tokens + steps)));
}

/* The requests a second at which n sequences are always there: 1 / (steps * decode / n + pieces of a prompt). */
static double saturation(const struct group *g, const struct times *t, double n)
{
    const double steps = fmax(0, g->p->q->traffic.output_tokens - 1), piece = pieces(g, 1, n);
    const double again = g->plan->memory_binds ? steady_again_of(&g->p->q->traffic.lengths, n / fmax(steps, 1)) : 0;
    const double busy = steps * t->decode_s / n + piece * (1 + again) * (t->mixed_s - t->decode_s);
    /* no more is computed anew than full steps have room for */
    return fmin(fmax(1 / busy, n / (fmax(steps, 1) * t->mixed_s)), 1 / (piece * t->mixed_s));
}

static double normal_above(double frac) { return frac >= .99 ? 2.326 : frac >= .95 ? 1.645 : frac >= .9 ? 1.282 : 0; }

/* Wait of a prompt for those before it (Pollaczek-Khinchine, exponential tail), and its own steps. */
static void first_token(const struct group *g, const struct times *t, double rate, double n, double frac,
                        struct planner_point *out)
{
    const struct planner_traffic *w = &g->p->q->traffic;
    const double piece = fmax(1, (double)g->plan->step_tokens - n), busy = pieces(g, rate, n) * t->mixed_s;
    const double mean = w->prompt_tokens / piece * t->mixed_s;
    const double scale = mean * (w->arrival_cv2 + w->prompt_cv2) / 2 / (1 - busy);
    const double first = w->prompts[0] > piece ? 1 : fmin(1, w->prompt_tokens / piece);
    const double extra = t->mixed_s - t->decode_s;
    const double long_prompt = planner_quantile(w->prompts, w->n, frac);
    const double late = busy > 1 - frac ? log(busy / (1 - frac)) * scale : 0;
    const double rest = 1 - 1 / (double)g->u->layout.pp; /* of a prompt, in the other stages */
    const double alone = t->decode_s + first * extra;
    const double through = extra * (double)g->u->layout.pp * rest;
    out->ttft_mean_s = busy * scale + alone / 2 + fmax(1, w->prompt_tokens / piece) * alone + through;
    out->ttft_s = late + alone * (frac > .5 ? 1 : .5) + fmax(1, ceil(long_prompt / piece)) * alone + through;
}

/* What one by one comes joins the batch that begins next, and stays in it: one batch has nearly all. Further ones begin
 * where a step leaves prompts over, and when all steps do they are full, whichever batch a sequence is in: then a token
 * takes a full step through all stages, and so many places serve at most that. Tokens are those of one batch up to
 * where it saturates, behind that those of full ones. */
struct flock {
    struct group one, all;
    double most, one_per_s, most_per_s; /* sequences of a group; where one batch saturates, and where the stages do */
};

/* A full step of one batch through all stages: weights that its pieces read are those that its tokens need. */
static double full_s(const struct flock *k, double n)
{
    const struct times t = times_at(&k->one, n);
    return fmax(t.decode_s, t.mixed_s - times_at(&k->one, 1).decode_s);
}

static struct flock flock_of(const struct group *g, double most)
{
    const double steps = fmax(1, g->p->q->traffic.output_tokens - 1);
    struct flock k = {.one = *g, .all = *g, .most = most};
    k.one.filled = false;
    k.all.filled = true;
    const double of_one = decoding_of(&k.one, most), of_all = decoding_of(&k.all, most);
    const struct times full = times_at(&k.one, of_one), all = times_at(&k.all, of_all);
    k.one_per_s = saturation(&k.one, &full, of_one);
    k.most_per_s = saturation(&k.all, &all, of_all);
    if (g->u->layout.pp > 1) k.most_per_s = fmax(k.one_per_s, fmin(k.most_per_s, most / (steps * full_s(&k, of_one))));
    return k;
}

/* Seconds of a token where n decode. */
static double token_s(const struct flock *k, double rate, double n)
{
    const struct times t = times_at(&k->one, n);
    const double one_s = tpot_of(&k->one, &t, rate, n);
    if (k->one.u->layout.pp == 1) return one_s;
    return rate < k->one_per_s ? fmin(one_s, full_s(k, n)) : full_s(k, n);
}

enum err_code planner_queue(struct planner *p, struct planner_unit *u, struct planner_plan *plan, struct err *e)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *w = &q->traffic;
    struct planner_point *o = &plan->point;
    struct group g = {.p = p, .u = u, .plan = plan, .parts = (double)u->layout.dp, .filled = true};
    const double most = fmax(1, floor(plan->batch_most / g.parts)), rate = plan->rate_per_s / g.parts;
    *o = planner_point_unknown();
    TRY(open_floors(&g, most, e));
    TRY(ratio_of(&g, most, e));
    plan->slower = g.ratio;
    struct times t = times_at(&g, decoding_of(&g, most));
    const struct flock k = flock_of(&g, most);
    /* all at once, prompts fill the steps and all stages */
    const double full = q->aim == PLANNER_JOB ? saturation(&g, &t, decoding_of(&g, most)) : k.most_per_s;
    o->saturation_per_s = full * g.parts;
    if (q->aim == PLANNER_JOB) {
        const double each = ceil(q->requests / (g.parts * (double)plan->layout.replicas)), held = fmin(most, each);
        planner_drain(w, each, held, full, times_at(&g, held).decode_s, times_at(&g, 1).decode_s, o);
    }
    if (!(rate < full)) return ERR_OK;
    const double steps = fmax(0, w->output_tokens - 1);
    double low = 0, high = most;
    for (int i = 0; i < 40 && high - low > 1e-6 * high; i++) {
        const double n = (low + high) / 2;
        *(rate * steps * token_s(&k, rate, n) > n ? &low : &high) = n;
    }
    t = times_at(&g, high);
    o->step_s = t.decode_s;
    o->tpot_mean_s = token_s(&k, rate, high);
    o->busy_frac = fmin(1, high + pieces(&g, rate, high) * t.mixed_s);
    first_token(&g, &t, rate, high, planner_promised_frac(&q->ttft), o);
    o->batch = (high + rate * o->ttft_mean_s) * g.parts;
    const double frac = planner_promised_frac(&q->tpot);
    const double crowd = fmin(most, high + normal_above(frac) * sqrt(high));
    o->tpot_s = fmax(o->tpot_mean_s, token_s(&k, rate, crowd));
    return ERR_OK;
}
