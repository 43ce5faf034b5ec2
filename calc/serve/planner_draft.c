/* planner_draft -- a draft beside the model: memory, floors, passes, and up to which load it pays. */
#include <math.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

/* Its steps are not known yet. */
static struct speculate_setup setup_of(const struct planner_drafting *d, int64_t gamma)
{
    return (struct speculate_setup){
        .accept = d->accept, .bonus = d->bonus, .one_pass = d->one_pass, .gamma = gamma, .shape = d->shape};
}

int64_t planner_judged(const struct planner_request *q, int64_t gamma)
{
    if (gamma <= 0) return 1;
    const struct speculate_setup s = setup_of(q->drafting, gamma);
    return speculate_judged(&s, gamma);
}

double planner_made(const struct planner_request *q, int64_t gamma)
{
    if (gamma <= 0) return 1;
    const struct speculate_setup s = setup_of(q->drafting, gamma);
    return speculate_mean(&s, gamma);
}

/* On the ranks of the model where its heads divide among them; else whole on each, which none does whose ranks share a
 * context. */
static struct layout ranks_of(const struct model *draft, const struct layout *l)
{
    return layout_draft(
        draft, &(struct layout){.dcp = l->dcp, .per_node = l->per_node, .context_direct = l->context_direct}, l->tp);
}

static enum err_code refuse(struct planner *p, struct planner_unit *u, const char *why, struct err *e)
{
    u->why = arena_strndup(p->arena, why, strlen(why));
    return u->why ? ERR_OK : err_nomem(e);
}

enum err_code planner_unit_draft(struct planner *p, struct planner_unit *u, int64_t gamma, struct err *e)
{
    const struct planner_traffic *t = &p->q->traffic;
    struct step *s = planner_pair_of(p, u->device, u->format)->draft;
    struct layout l = ranks_of(p->q->drafting->model, &u->layout);
    struct err why = {0};
    double one[STEP_VALUES_N], mean[STEP_VALUES_N], ended[STEP_VALUES_N], longest[STEP_VALUES_N];
    const struct planner_drafting *d = p->q->drafting;
    const struct speculate_setup setup = setup_of(d, gamma);
    const int64_t drafted = speculate_drafted(&setup, gamma);
    u->gamma = gamma;
    if (u->why) return ERR_OK;
    /* MODEL.md "Planner", *Drafts beside stages*: which engine stops at what */
    if (u->layout.pp > 1)
        return refuse(p, u, "no engine that is released drafts beside stages, but for an experiment of SGLang's", e);
    if (!planner_mixes(&u->layout))
        return refuse(p, u, "drafts are planned for the ranks of one stage in one node, and copies", e);
    const double first = t->prompts[0] + 1, half_block = (double)p->engine->block_tokens / 2;
    if (step_eval_layout(s, &l, 1, 1, first, 1, one, &why) != ERR_OK) {
        if (l.dcp > 1) return refuse(p, u, why.text, e);
        l.tp = 1;
        if (step_eval_layout(s, &l, 1, 1, first, 1, one, &why) != ERR_OK) return refuse(p, u, why.text, e);
    }
    TRY(step_eval_layout(s, &l, 1, 1, ceil(t->context_tokens) + half_block + (double)drafted, 1, mean, e));
    TRY(step_eval_layout(s, &l, 1, 1, (double)(t->longest_tokens + drafted), 1, longest, e));
    const double ended_tokens = ceil(t->context_tokens + t->residual_tokens) + half_block + (double)drafted;
    TRY(step_eval_layout(s, &l, 1, 1, ended_tokens, 1, ended, e));
    u->weight_bytes += one[STEP_weight_bytes];
    u->sequence_bytes += mean[STEP_kv_bytes] + mean[STEP_state_bytes];
    u->ended_bytes += ended[STEP_kv_bytes] + ended[STEP_state_bytes];
    u->longest_bytes += longest[STEP_kv_bytes] + longest[STEP_state_bytes];
    const double passes = d->one_pass ? 1 : (double)gamma; /* of a token a sequence at least */
    u->floor_tpot_s = (u->floor_tpot_s + passes * one[STEP_decode_step_s]) / (double)(gamma + d->bonus);
    return ERR_OK;
}

/* ---- passes ---- */

/* A head's passes follow its target's, so that no mixed step has them: by its kernels, and what the engine adds to
 * each.
 */
static bool is_head(const struct model *m)
{
    return m->draft.joined > 0 || m->draft.no_embedding || m->draft.heads > 0;
}

static double seconds(void *self, struct step *of, double B, double T, double S, double M)
{
    struct planner_draft *d = self;
    struct calibrated_time t;
    double bound_s, *column[STEP_VALUES_N] = {0};
    struct calibrated *c = of == d->of.draft_wide ? d->calibrated_wide : d->calibrated;
    if (d->server) {
        mix_clear(&d->mix);
        if (T > 1)
            mix_prefill(&d->mix, B, T, S - 1); /* the first of them at context S */
        else
            mix_decode(&d->mix, B, S);
        return engine_mix_s(d->server, &d->mix, false);
    }
    column[STEP_decode_step_s] = &bound_s;
    step_eval(of, 1, &B, &T, &S, &M, column);
    if (d->hostless.name) {
        const struct engine_work w = {.kernels_s = calibrated_sum_s(c, STEP_DECODE, B, T, S, M),
                                      .kernels = calibrated_kernels(c, STEP_DECODE, B, T, S, M),
                                      .collectives_s = calibrated_collectives_s(c, STEP_DECODE, B, T, S, M)};
        return fmax(bound_s, engine_step_s(&d->hostless.terms, false, &w));
    }
    calibrated_eval(c, STEP_DECODE, 1, &B, &T, &S, &M, &bound_s, &t);
    return t.s;
}

static enum err_code open_steps(struct planner *p, size_t device, const struct step_setup *setup,
                                struct planner_draft *d, struct err *e)
{
    const struct planner_request *q = p->q;
    TRY(step_compile(p->arena, setup, &d->of.draft, e));
    if (d->of.shape) {
        struct step_setup wide = *setup;
        wide.verify = true;
        TRY(step_compile(p->arena, &wide, &d->of.draft_wide, e));
    }
    if (q->server) {
        d->hostless = *q->server;
        d->hostless.terms.host_s = d->hostless.terms.sequence_s = 0; /* those of the model's step */
    }
    if (q->server && !is_head(q->drafting->model)) {
        d->server = arena_alloc(p->arena, sizeof *d->server);
        if (!d->server) return err_nomem(e);
        TRY(engine_case_open_from(p->arena, &d->hostless, &p->source[device], setup, d->server, e));
        TRY(mix_open(p->arena, d->server->bound, &d->mix, e));
        d->of.clock = (struct speculate_clock){seconds, d};
    } else if (q->server || q->fidelity == PLANNER_CALIBRATED) {
        const struct calibrated_setup of = {
            .step = d->of.draft, .source = &p->source[device], .hostless = true, .memos = PLANNER_MEMOS};
        TRY(calibrated_open(p->arena, &of, &d->calibrated, e));
        d->of.clock = (struct speculate_clock){seconds, d};
    }
    if (d->calibrated && d->of.draft_wide) {
        const struct calibrated_setup of = {
            .step = d->of.draft_wide, .source = &p->source[device], .hostless = true, .memos = PLANNER_MEMOS};
        TRY(calibrated_open(p->arena, &of, &d->calibrated_wide, e));
    }
    return ERR_OK;
}

enum err_code planner_draft_open(struct planner *p, size_t device, const struct step_setup *setup,
                                 struct planner_clock *c, struct err *e)
{
    const struct planner_drafting *x = p->q->drafting;
    struct planner_draft *d = arena_alloc(p->arena, sizeof *d);
    struct step_setup own = *setup;
    struct err why = {0};
    if (!d) return err_nomem(e);
    *d = (struct planner_draft){.of = setup_of(x, c->gamma)};
    own.model = x->model;
    own.layout = ranks_of(x->model, &setup->layout);
    own.layout = layout_whole(&own.layout);
    own.pass_tokens = 0;
    own.offload = (struct offload){0, 0};
    own.prefill_together = true;
    enum err_code code = open_steps(p, device, &own, d, &why);
    if (code == ERR_USAGE && own.layout.tp > 1 && own.layout.dcp == 1) {
        own.layout.tp = 1;
        code = open_steps(p, device, &own, d, &why);
    }
    if (code != ERR_OK) return err_set(e, code, "%s", why.text);
    TRY(steady_lengths_judged(p->arena, &p->q->traffic.lengths, speculate_mean(&d->of, c->gamma),
                              speculate_square(&d->of, c->gamma), &d->lengths, e));
    c->draft = d;
    return ERR_OK;
}

/* ---- whether it pays ---- */

struct side {
    struct planner_unit unit;
    struct planner_plan plan;
};

static enum err_code open_side(struct planner *p, const struct planner_plan *plan, int64_t gamma, struct side *x,
                               struct err *e)
{
    struct layout one = plan->layout;
    one.replicas = 1;
    TRY(planner_unit_make(p, plan->device, plan->format, &one, &x->unit, e));
    if (gamma > 0) TRY(planner_unit_draft(p, &x->unit, gamma, e));
    x->plan = planner_blank(&x->unit);
    x->plan.seqs = plan->seqs;
    x->plan.step_tokens = plan->step_tokens;
    if (x->unit.why) return err_set(e, ERR_NO, "%s", x->unit.why);
    TRY(planner_memory(p, &x->unit, plan->step_tokens, plan->seqs, &x->plan, e));
    if (x->plan.verdict == PLANNER_SHORT) return err_set(e, ERR_NO, "no memory for a draft");
    planner_copies(p->q, &x->plan, &x->unit, plan->layout.replicas);
    return ERR_OK;
}

/* Mean TPOT at a rate of one copy; NAN where it is saturated. */
static enum err_code tpot_at(struct planner *p, struct side *x, double rate_per_s, double *out, struct err *e)
{
    x->plan.rate_per_s = rate_per_s;
    TRY(planner_solve(p, &x->unit, &x->plan, e));
    *out = rate_per_s < x->plan.point.saturation_per_s ? x->plan.point.tpot_mean_s : (double)NAN;
    return ERR_OK;
}

/* Up to which rate of a copy the first is the shorter. */
static enum err_code find_until(struct planner *p, struct side *with, struct side *without, double *out, struct err *e)
{
    const double most = without->plan.point.saturation_per_s;
    double low = 0, high = most, w, o;
    *out = 0;
    TRY(tpot_at(p, with, 1e-4 * most, &w, e));
    TRY(tpot_at(p, without, 1e-4 * most, &o, e));
    if (!(w < o)) return ERR_OK;
    TRY(tpot_at(p, with, (1 - 1e-3) * most, &w, e));
    TRY(tpot_at(p, without, (1 - 1e-3) * most, &o, e));
    *out = (double)INFINITY;
    if (w < o) return ERR_OK;
    while (high - low > 5e-3 * most) {
        const double mid = (low + high) / 2;
        TRY(tpot_at(p, with, mid, &w, e));
        TRY(tpot_at(p, without, mid, &o, e));
        *(w < o ? &low : &high) = mid;
    }
    *out = low;
    return ERR_OK;
}

enum err_code planner_pays(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                           struct planner_paying *out, struct err *e)
{
    struct planner p;
    struct side without, with = {0};
    const double copies = (double)plan->layout.replicas, unknown = (double)NAN;
    bool found = false;
    *out = (struct planner_paying){plan->gamma, unknown, unknown, unknown, unknown, 0};
    if (!q->drafting) return err_set(e, ERR_RANGE, "no draft was named");
    TRY(planner_check(q, e));
    TRY(planner_open(a, q, &p, e));
    TRY(open_side(&p, plan, 0, &without, e));
    TRY(tpot_at(&p, &without, plan->rate_per_s, &out->without_s, e));
    out->most_without_per_s = without.plan.point.saturation_per_s * copies;
    for (size_t i = 0; i < q->drafting->gamma_n; i++) {
        struct side x;
        double tpot_s;
        const int64_t gamma = q->drafting->gamma[i];
        struct err why = {0};
        if ((plan->gamma > 0 && gamma != plan->gamma) || plan->seqs > plan->step_tokens / planner_judged(q, gamma))
            continue;
        const enum err_code code = open_side(&p, plan, gamma, &x, &why);
        if (code == ERR_NO) continue;
        if (code != ERR_OK) return err_set(e, code, "%s", why.text);
        TRY(tpot_at(&p, &x, plan->rate_per_s, &tpot_s, e));
        if (found && !(tpot_s < out->with_s)) continue;
        with = x;
        out->gamma = gamma;
        out->with_s = tpot_s;
        out->most_with_per_s = x.plan.point.saturation_per_s * copies;
        found = true;
    }
    if (!found) return ERR_OK;
    TRY(find_until(&p, &with, &without, &out->until_per_s, e));
    out->until_per_s *= copies;
    return ERR_OK;
}
