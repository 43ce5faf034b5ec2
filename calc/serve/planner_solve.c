/* planner_solve -- a plan in the steady state, and what that is worth. */
#include <math.h>

#include "calc/serve/planner_parts.h"

double planner_spread_at(const struct steady_spread *s, double frac)
{
    return frac >= .99 ? s->p99 : frac >= .95 ? s->p95 : frac >= .9 ? s->p90 : s->p50;
}

/* Attention groups over several nodes: no wires between nodes were measured. */
static bool wires_unmeasured(const struct layout *whole)
{
    return whole->dp > 1 && layout_nodes(whole, layout_group(whole)) > 1;
}

double planner_band(const struct planner *p, const struct planner_clock *c, double batch)
{
    const double context = p->q->traffic.context_tokens, prompt = p->q->traffic.prompt_tokens;
    const double wider = wires_unmeasured(&c->whole) ? PLANNER_UNMEASURED_P90 : 1;
    if (!p->q->p90) return 1;
    if (c->server) return wider * engine_band(c->server, batch, context, prompt);
    return c->calibrated ? wider * calibrated_band(c->calibrated, batch, context, prompt) : 1;
}

double planner_decode_s(struct planner_clock *c, double B, double S, double floor_s)
{
    struct calibrated_time t;
    if (!c->server) {
        calibrated_eval(c->calibrated, STEP_DECODE, 1, &B, &S, &S, NULL, &floor_s, &t);
        return t.s;
    }
    mix_clear(&c->mix);
    mix_decode(&c->mix, B, S);
    return engine_mix_s(c->server, &c->mix, c->overlapped);
}

enum simulate_policy planner_policy(const struct planner_request *q)
{
    return q->server && !q->server->mixed ? SIMULATE_FCFS : SIMULATE_CHUNKED;
}

double planner_watermark(const struct planner_request *q) { return planner_policy(q) == SIMULATE_FCFS ? .01 : 0; }

/* decode NULL: one pool. */
enum err_code planner_steady_times(struct planner *p, struct planner_clock *c, int64_t step_tokens,
                                   struct steady_setup *s, struct steady_decode *decode, struct err *e)
{
    const int64_t seqs = decode ? decode->max_seqs : 0;
    struct planner_kept *k = c->kept;
    while (k < c->kept + c->kept_n && (k->step_tokens != step_tokens || k->seqs != seqs || k->slowest != s->slowest))
        k++;
    if (k == c->kept + c->kept_n) {
        if (c->kept_n == sizeof c->kept / sizeof *c->kept) return ERR_OK;
        *k = (struct planner_kept){.step_tokens = step_tokens, .seqs = seqs, .slowest = s->slowest};
        /* what has prompts in the same pieces has most in common, else the latest: budgets rise, and only small ones
         * have prompts in pieces */
        k->piece_tokens = steady_times_piece(s);
        bool alike = false;
        for (size_t i = 0; i < c->kept_n && !alike; i++) {
            if ((c->kept[i].seqs > 0) != (seqs > 0) || c->kept[i].slowest != s->slowest) continue;
            alike = !(c->kept[i].piece_tokens < k->piece_tokens) && !(c->kept[i].piece_tokens > k->piece_tokens);
            s->times = c->kept[i].times;
            if (decode) decode->times = c->kept[i].decode;
        }
        TRY(decode ? steady_pools_times_open(p->arena, s, &k->times, &k->decode, e)
                   : steady_times_open(p->arena, s, &k->times, e));
        c->kept_n++;
    }
    s->times = k->times;
    if (decode) decode->times = k->decode;
    return ERR_OK;
}

int64_t planner_blocks(const struct planner *p, const struct planner_unit *u, const struct planner_plan *plan)
{
    const struct planner_traffic *t = &p->q->traffic;
    const double block = (double)planner_block_tokens(p, &u->layout);
    const double room = u->sequence_bytes > 0 ? plan->pool_bytes / u->sequence_bytes : (double)plan->seqs;
    const double blocks = floor(room * (ceil(t->context_tokens) + block / 2) / block);
    return (int64_t)fmin(fmax(blocks, ceil((double)t->longest_tokens / block) + 1), PAGED_BLOCKS_MAX);
}

/* Demands of a decode step, for what binds; and how busy time is shared, by the time of a prompt alone and of a
 * request's part of decode steps. */
static void demands(struct planner *p, const struct planner_unit *u, double batch, double busy_frac,
                    struct planner_point *o)
{
    const double made = planner_made(p->q, u->gamma);
    const double rows = (double)planner_judged(p->q, u->gamma);
    const struct planner_traffic *t = &p->q->traffic;
    double v[STEP_VALUES_N];
    o->compute_s = o->memory_s = o->link_s = o->host_s = o->prefill_frac = o->decode_frac = (double)NAN;
    if (step_eval_layout(planner_pair_of(p, u->device, u->format)->floor, &u->layout, fmax(1, ceil(batch)),
                         fmax(1, ceil(t->prompt_tokens)), ceil(t->context_tokens), 1, v, NULL) != ERR_OK)
        return;
    o->compute_s = v[STEP_decode_compute_s];
    o->memory_s = v[STEP_decode_memory_s];
    o->link_s = v[STEP_decode_link_s];
    const struct offload *away = &p->q->device[u->device].offload;
    o->host_s = away->bytes > 0 ? v[STEP_decode_host_bytes] / away->host_bytes_per_s : 0;
    o->compute_s *= rows; /* of all that a step judges; what it reads it reads once */
    o->link_s *= rows;
    const double steps = fmax(0, t->output_tokens - 1) / made, one = (double)u->layout.dp;
    const double step_s = fmax(v[STEP_decode_step_s], fmax(o->compute_s, o->link_s));
    const double prompt_s = v[STEP_prefill_s] / one / (double)u->layout.pp;
    const double answer_s = steps * step_s / fmax(1, ceil(batch));
    o->prefill_frac = busy_frac * prompt_s / (prompt_s + answer_s);
    o->decode_frac = busy_frac - o->prefill_frac;
}

/* Decode steps of B sequences at contexts S. */
static void decode_steps(struct planner_clock *c, size_t n, const double *B, const double *S, double *out)
{
    double *of[STEP_VALUES_N] = {0};
    of[STEP_decode_step_s] = out;
    step_eval(c->step, n, B, S, S, NULL, of);
    for (size_t i = 0; i < n && (c->calibrated || c->server); i++) out[i] = planner_decode_s(c, B[i], S[i], out[i]);
    for (size_t i = 0; i < n && c->draft; i++) /* of a token */
        out[i] =
            (out[i] + speculate_draft_s(&c->draft->of, c->gamma, B[i], S[i])) / speculate_mean(&c->draft->of, c->gamma);
}

void planner_drain(const struct planner_traffic *t, double requests, double held, double rate_most, double full_s,
                   double alone_s, struct planner_point *out)
{
    const double longest = planner_quantile(t->outputs, t->n, 1 - 1 / (held + 1));
    const double begun = held * t->residual_tokens / t->output_tokens;
    out->tail_s = longest * (full_s + alone_s) / 2;
    out->makespan_s = fmax(0, requests - begun) / rate_most + out->tail_s;
}

void planner_steady(struct planner *p, const struct planner_unit *u, const struct planner_plan *plan,
                    struct planner_clock *c, struct steady_setup *out)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *t = &q->traffic;
    const double unknown = (double)NAN;
    const int64_t judged = planner_judged(q, u->gamma), groups = u->layout.dp;
    *out = (struct steady_setup){
        .plan = c->plan,
        .calibrated = c->calibrated,
        .server = c->server,
        .overlapped = c->overlapped,
        .policy = planner_policy(q),
        .watermark_frac = planner_watermark(q),
        .budget_tokens = plan->step_tokens * groups,
        .max_seqs = groups * (plan->seqs < plan->step_tokens / judged ? plan->seqs : plan->step_tokens / judged),
        .groups = groups,
        .blocks = planner_blocks(p, u, plan) * groups,
        .block_tokens = planner_block_tokens(p, &u->layout),
        .replicas = 1,
        .route = SIMULATE_LEAST_LOADED,
        .lengths = &t->lengths,
        .load = STEADY_OPEN,
        .rate_per_s = plan->rate_per_s,
        .slower = planner_band(p, c, plan->batch_most),
        .arrival_cv2 = t->arrival_cv2,
        .ttft_limit_s = unknown,
        .tpot_limit_s = unknown};
    if (c->draft) {
        out->lengths = &c->draft->lengths;
        out->draft = (struct simulate_draft){.of = &c->draft->of, .gamma = u->gamma, .prompts = q->drafting->prompts};
    }
}

static enum err_code plain(struct planner *p, const struct planner_unit *u, const struct planner_told *told,
                           struct planner_plan *plan, struct err *e)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *t = &q->traffic;
    struct planner_point *o = &plan->point;
    const double unknown = (double)NAN, copies = (double)plan->layout.replicas;
    struct planner_clock *c;
    struct steady_result r;
    TRY(planner_clock_of(p, u->device, u->format, &u->layout, u->gamma, &c, e));
    struct steady_setup s;
    planner_steady(p, u, plan, c, &s);
    plan->slower = s.slower;
    const struct planner_link link = planner_link_of(q, u->device, plan->gpus);
    struct steady_decode decode = {.plan = c->plan,
                                   .calibrated = c->calibrated,
                                   .server = c->server,
                                   .overlapped = c->overlapped,
                                   .max_seqs = s.max_seqs,
                                   .blocks = s.blocks,
                                   .block_tokens = s.block_tokens,
                                   .replicas = plan->layout.replicas - plan->prefill,
                                   .kv_bytes_per_token = step_kv_bytes_per_token(c->step) +
                                                         (c->draft ? step_kv_bytes_per_token(c->draft->of.draft) : 0),
                                   .link_bytes_per_s = link.bytes_per_s,
                                   .link_latency_s = link.latency_s};
    if (plan->prefill > 0) {
        s.decode = &decode;
        s.replicas = plan->prefill;
    } else {
        s.replicas = plan->layout.replicas;
    }
    s.rate_per_s *= copies;
    TRY(planner_steady_times(p, c, plan->step_tokens, &s, plan->prefill > 0 ? &decode : NULL, e));
    const struct planner_beyond beyond = planner_beyond_of(q, plan, told);
    const enum planner_verdict shown = planner_steps_beyond(q, &s, plan->rate_per_s, &beyond);
    if (shown != PLANNER_MEETS) {
        planner_settle(plan, shown);
        return ERR_OK;
    }
    TRY(steady_solve(p->arena, &s, &r, e));
    *o = (struct planner_point){.saturation_per_s = r.saturation_rate_per_s / copies,
                                .batch =
                                    plan->prefill > 0 ? r.decode_batch * r.decode_utilisation : r.batch * r.utilisation,
                                .move_s = plan->prefill > 0 ? r.move_s : 0,
                                .step_s = r.step_s,
                                .ttft_s = planner_spread_at(&r.ttft_s, planner_promised_frac(&q->ttft)),
                                .tpot_s = planner_spread_at(&r.tpot_s, planner_promised_frac(&q->tpot)),
                                .ttft_mean_s = r.ttft_s.mean,
                                .tpot_mean_s = r.tpot_s.mean,
                                .makespan_s = unknown,
                                .tail_s = unknown};
    plan->memory_binds = r.by == STEADY_BLOCKS;
    o->busy_frac = r.utilisation;
    if (plan->prefill > 0) {
        const double first = (double)plan->prefill / copies;
        o->busy_frac = first * r.utilisation + (1 - first) * r.decode_utilisation;
    }
    if (q->aim == PLANNER_JOB) {
        const double each = ceil(q->requests / copies), held = fmin(plan->batch_most, each);
        const double B[] = {fmax(1, floor(held)), 1}, S[] = {ceil(t->context_tokens), ceil(t->context_tokens)};
        double step_s[2];
        decode_steps(c, 2, B, S, step_s);
        planner_drain(t, each, held, o->saturation_per_s, step_s[0] * s.slower, step_s[1] * s.slower, o);
    }
    return ERR_OK;
}

void planner_judge(const struct planner_request *q, struct planner_plan *plan)
{
    struct planner_point *o = &plan->point;
    const bool serves = q->aim == PLANNER_SERVE;
    plan->verdict = PLANNER_MEETS;
    plan->miss = 0;
    if (q->aim == PLANNER_JOB) {
        if (!(o->makespan_s <= q->deadline_s)) {
            plan->verdict = PLANNER_LATE_JOB;
            plan->miss = o->makespan_s / q->deadline_s;
            plan->value_s = o->makespan_s;
        }
    } else if (!(plan->rate_per_s < o->saturation_per_s) || isnan(o->batch)) {
        plan->verdict = PLANNER_SATURATED;
        o->saturation_per_s =
            fmin(o->saturation_per_s, plan->rate_per_s); /* no steady state: whatever others would be */
        plan->miss = plan->rate_per_s / o->saturation_per_s;
    } else if (serves && !isnan(q->tpot.s) && !(o->tpot_s <= q->tpot.s)) {
        plan->verdict = PLANNER_LATE_TPOT;
        plan->miss = o->tpot_s / q->tpot.s;
        plan->value_s = o->tpot_s;
    } else if (serves && !isnan(q->ttft.s) && !(o->ttft_s <= q->ttft.s)) {
        plan->verdict = PLANNER_LATE_TTFT;
        plan->miss = o->ttft_s / q->ttft.s;
        plan->value_s = o->ttft_s;
    }
    plan->paper = plan->verdict;
    if (q->near > 0 && planner_near_part(q, plan) <= q->near) plan->verdict = PLANNER_MEETS;
}

static enum err_code solve(struct planner *p, struct planner_unit *u, const struct planner_told *told,
                           struct planner_plan *plan, struct err *e)
{
    const struct planner_request *q = p->q;
    const double unknown = (double)NAN;
    struct planner_point *o = &plan->point;
    const bool steps = planner_mixes(&u->layout) || planner_groups_step(&u->layout);
    plan->verdict = PLANNER_MEETS;
    plan->estimated = q->fidelity == PLANNER_CALIBRATED && (!steps || wires_unmeasured(&u->layout));
    if (steps)
        TRY(plain(p, u, told, plan, e));
    else if (planner_stages_fly(&u->layout) && planner_policy(q) == SIMULATE_CHUNKED)
        TRY(planner_stages(p, u, told, plan, e));
    else
        TRY(planner_queue(p, u, plan, e));
    if (plan->verdict != PLANNER_MEETS) return ERR_OK; /* settled without a point */
    if (q->server) {                                   /* as steady_front */
        o->ttft_s += engine_first_s(q->traffic.asked_tokens);
        o->ttft_mean_s += engine_first_s(q->traffic.asked_tokens);
    }
    o->compute_s = o->memory_s = o->link_s = o->host_s = o->prefill_frac = o->decode_frac = unknown;
    plan->cost = (struct price_cost){
        (double)plan->gpus * q->device[u->device].price.usd_per_h, unknown, unknown, unknown, unknown, unknown};
    planner_judge(q, plan);
    return ERR_OK;
}

/* What saturates within its margin has no times on paper: near is what keeps its promises there where as much less
 * comes, as nothing is faster with more. */
enum err_code planner_solve_told(struct planner *p, struct planner_unit *u, const struct planner_told *told,
                                 struct planner_plan *plan, struct err *e)
{
    TRY(solve(p, u, told, plan, e));
    if (plan->verdict != PLANNER_MEETS || plan->paper != PLANNER_SATURATED) return ERR_OK;
    struct planner_plan less = *plan;
    less.rate_per_s /= planner_margin_of(p->q, plan).rate;
    TRY(solve(p, u, NULL, &less, e));
    if (less.paper != PLANNER_MEETS) plan->verdict = PLANNER_SATURATED;
    return ERR_OK;
}

enum err_code planner_solve(struct planner *p, struct planner_unit *u, struct planner_plan *plan, struct err *e)
{
    return planner_solve_told(p, u, NULL, plan, e);
}

void planner_finish(struct planner *p, const struct planner_unit *u, struct planner_plan *plan)
{
    const struct planner_request *q = p->q;
    const struct planner_device *d = &q->device[u->device];
    struct planner_point *o = &plan->point;
    const double served = plan->rate_per_s * (double)plan->layout.replicas;
    demands(p, u, isnan(o->batch) ? plan->batch_most : o->batch, isnan(o->busy_frac) ? 1 : o->busy_frac, o);
    const struct price_use use = {.gpus = (double)plan->gpus,
                                  .usd_per_h = d->price.usd_per_h,
                                  .power_w = d->hw->power_w,
                                  .prefill_frac = o->prefill_frac,
                                  .decode_frac = o->decode_frac,
                                  .in_tok_per_s = served * q->traffic.asked_tokens,
                                  .out_tok_per_s = served * q->traffic.output_tokens};
    plan->cost = price_cost(&use);
}
