/* planner_unit -- what a layout needs, and what no engine can beat in it. */
#include <math.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

struct planner_pair *planner_pair_of(struct planner *p, size_t device, size_t format)
{
    return &p->pair[device * p->q->formats_n + format];
}

static enum err_code compile(struct planner *p, size_t device, size_t format, enum step_fidelity fidelity,
                             struct step **out, struct err *e)
{
    const struct planner_device *d = &p->q->device[device];
    const struct step_setup setup = {.model = p->q->format[format].model,
                                     .hw = d->hw,
                                     .layout = {.sp = p->q->like.sp, .context_direct = p->q->like.context_direct},
                                     .any_layout = true,
                                     .served = true,
                                     .any_context = p->q->any_context || p->q->like.dcp > 1,
                                     .latency = d->latency,
                                     .offload = d->offload,
                                     .fidelity = fidelity,
                                     .block_tokens = p->engine->block_tokens};
    return step_compile(p->arena, &setup, out, e);
}

static enum err_code compile_draft(struct planner *p, size_t device, struct step **out, struct err *e)
{
    const struct planner_device *d = &p->q->device[device];
    const struct step_setup setup = {.model = p->q->drafting->model,
                                     .hw = d->hw,
                                     .layout = {.context_direct = p->q->like.context_direct},
                                     .any_layout = true,
                                     .any_context = p->q->any_context || p->q->like.dcp > 1,
                                     .latency = d->latency,
                                     .fidelity = STEP_BOUND,
                                     .block_tokens = p->engine->block_tokens};
    return step_compile(p->arena, &setup, out, e);
}

enum err_code planner_open(struct arena *a, const struct planner_request *q, struct planner *out, struct err *e)
{
    size_t engines_n;
    *out = (struct planner){.arena = a,
                            .q = q,
                            .pair = arena_array(a, q->devices_n * q->formats_n, sizeof *out->pair),
                            .source = arena_array(a, q->devices_n, sizeof *out->source)};
    if (!out->pair || !out->source) return err_nomem(e);
    memset(out->pair, 0, q->devices_n * q->formats_n * sizeof *out->pair);
    memset(out->source, 0, q->devices_n * sizeof *out->source);
    (void)pool_engine_table(&engines_n);
    TRY(pool_engine_find("vllm-v1", &out->engine, e));
    for (size_t d = 0; d < q->devices_n; d++) {
        for (size_t f = 0; f < q->formats_n; f++) {
            struct planner_pair *x = planner_pair_of(out, d, f);
            TRY(compile(out, d, f, STEP_BOUND, &x->bound, e));
            if (!step_timed(x->bound))
                return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no latency can be planned",
                               q->device[d].hw->name);
            x->floor = x->bound;
            if (q->fidelity != PLANNER_BOUND) TRY(compile(out, d, f, STEP_ROOFLINE, &x->floor, e));
            if (q->drafting) TRY(compile_draft(out, d, &x->draft, e));
        }
        if (q->server)
            TRY(engine_source_open(a, q->server, q->device[d].hw, &out->source[d], e));
        else if (q->fidelity == PLANNER_CALIBRATED)
            TRY(source_open(a, q->device[d].hw, q->device[d].efficiency, q->framework, &out->source[d], e));
    }
    return ERR_OK;
}

int64_t planner_block_tokens(const struct planner *p, const struct layout *l)
{
    return p->engine->block_tokens * layout_whole(l).dcp;
}

bool planner_mixes(const struct layout *l)
{
    const struct layout w = layout_whole(l);
    return w.pp == 1 && w.dp == 1 && !w.sp && layout_nodes(&w, layout_group(&w)) == 1;
}

bool planner_groups_step(const struct layout *l)
{
    const struct layout w = layout_whole(l);
    return w.pp == 1 && w.dp > 1 && w.dcp == 1 && !w.sp && layout_nodes(&w, w.tp) == 1;
}

bool planner_stages_fly(const struct layout *l)
{
    const struct layout w = layout_whole(l);
    return w.pp > 1 && w.dp == 1 && w.dcp == 1 && layout_nodes(&w, w.tp) == 1;
}

static bool same_ranks(const struct layout *a, const struct layout *b)
{
    return a->tp == b->tp && a->ep == b->ep && a->pp == b->pp && a->dp == b->dp && a->dcp == b->dcp &&
           a->per_node == b->per_node;
}

enum err_code planner_clock_of(struct planner *p, size_t device, size_t format, const struct layout *l, int64_t gamma,
                               struct planner_clock **out, struct err *e)
{
    struct planner_pair *x = planner_pair_of(p, device, format);
    const struct planner_device *d = &p->q->device[device];
    struct layout one = *l;
    const struct layout whole = layout_whole(l);
    one.replicas = 1;
    for (struct planner_clock *c = x->clocks; c; c = c->next)
        if (c->gamma == gamma && same_ranks(&c->whole, &whole)) {
            *out = c;
            return ERR_OK;
        }
    struct planner_clock *c = arena_alloc(p->arena, sizeof *c);
    if (!c) return err_nomem(e);
    *c = (struct planner_clock){.layout = one, .whole = whole, .gamma = gamma};
    struct step_setup setup = {.model = p->q->format[format].model,
                               .hw = d->hw,
                               .layout = one,
                               .served = true,
                               .latency = d->latency,
                               .offload = d->offload,
                               .fidelity = p->q->fidelity == PLANNER_ROOFLINE ||
                                                   (planner_stages_fly(&one) && p->q->fidelity != PLANNER_BOUND)
                                               ? STEP_ROOFLINE
                                               : STEP_BOUND,
                               .block_tokens = p->engine->block_tokens,
                               .pass_tokens = gamma > 0 ? planner_judged(p->q, gamma) : 0};
    if (!planner_stages_fly(&one)) TRY(step_compile(p->arena, &setup, &c->step, e));
    TRY(mix_compile(p->arena, &setup, &c->plan, e));
    TRY(mix_open(p->arena, c->plan, &c->mix, e));
    if (planner_stages_fly(&one)) { /* floors alone */
    } else if (p->q->server) {
        const struct engine *g = p->q->server;
        c->server = arena_alloc(p->arena, sizeof *c->server);
        if (!c->server) return err_nomem(e);
        TRY(engine_case_open_from(p->arena, g, &p->source[device], &setup, c->server, e));
        c->plan = c->server->bound;
        c->overlapped = p->q->overlapped;
        TRY(mix_open(p->arena, c->plan, &c->mix, e));
    } else if (p->q->fidelity == PLANNER_CALIBRATED) {
        const struct calibrated_setup of = {
            .step = c->step, .source = &p->source[device], .mix = c->plan, .memos = PLANNER_MEMOS};
        TRY(calibrated_open(p->arena, &of, &c->calibrated, e));
    }
    if (gamma > 0) TRY(planner_draft_open(p, device, &setup, c, e));
    c->next = x->clocks;
    x->clocks = c;
    *out = c;
    return ERR_OK;
}

static const char *most(double compute_s, double memory_s, double link_s, double host_s)
{
    if (host_s > compute_s && host_s > memory_s && host_s > link_s) return "host link";
    if (link_s > compute_s && link_s > memory_s) return "link";
    return compute_s >= memory_s ? "compute" : "memory bandwidth";
}

/* A promise on lengths that vary is kept by shorter ones too: only what the shortest of those that count needs. */
static double prompt_that_counts(const struct planner_traffic *t, double frac)
{
    return planner_quantile(t->prompts, t->n, frac);
}

enum err_code planner_unit_make(struct planner *p, size_t device, size_t format, const struct layout *l,
                                struct planner_unit *out, struct err *e)
{
    const struct planner_request *q = p->q;
    const struct planner_traffic *t = &q->traffic;
    const struct planner_device *d = &q->device[device];
    struct step *s = planner_pair_of(p, device, format)->bound;
    struct err why = {0};
    double v[STEP_VALUES_N], w[STEP_VALUES_N];
    *out = (struct planner_unit){.device = device, .format = format, .layout = layout_whole(l)};
    out->gpus = layout_group(&out->layout) * out->layout.pp;
    const double shortest = t->prompts[0], counts = prompt_that_counts(t, isnan(q->ttft.s) ? .5 : q->ttft.frac);
    const double half_block = (double)planner_block_tokens(p, l) / 2;
    enum err_code code = step_eval_layout(s, l, 1, counts, shortest + 1, 1, v, &why);
    const double link = d->offload.bytes > 0 ? d->offload.host_bytes_per_s : 1;
    if (code == ERR_OK) {
        out->weight_bytes = v[STEP_weight_bytes];
        out->tower_bytes = v[STEP_beside_bytes];
        out->floor_tpot_s = v[STEP_decode_step_s];
        /* pieces may follow one another closely, so that all stages compute at the same time */
        const bool pieces = planner_stages_fly(&out->layout) && planner_policy(q) == SIMULATE_CHUNKED;
        out->floor_ttft_s = v[STEP_prefill_s] / (pieces ? (double)out->layout.pp : 1);
        out->floor_tpot_by = most(v[STEP_decode_compute_s], v[STEP_decode_memory_s], v[STEP_decode_link_s],
                                  v[STEP_decode_host_bytes] / link);
        out->floor_ttft_by = most(v[STEP_prefill_compute_s], v[STEP_prefill_memory_s], v[STEP_prefill_link_s],
                                  v[STEP_prefill_host_bytes] / link);
        code = step_eval_layout(s, l, 1, 1, ceil(t->context_tokens) + half_block, 1, w, &why);
        out->sequence_bytes = w[STEP_kv_bytes] + w[STEP_state_bytes];
    }
    if (code == ERR_OK) {
        code = step_eval_layout(s, l, 1, 1, ceil(t->context_tokens + t->residual_tokens) + half_block, 1, w, &why);
        out->ended_bytes = w[STEP_kv_bytes] + w[STEP_state_bytes];
    }
    if (code == ERR_OK) {
        code = step_eval_layout(s, l, 1, 1, (double)t->longest_tokens, 1, w, &why);
        out->longest_bytes = w[STEP_kv_bytes] + w[STEP_state_bytes];
    }
    if (code == ERR_OK) return ERR_OK;
    if (code != ERR_USAGE && code != ERR_INPUT) return err_set(e, code, "%s", why.text);
    out->why = arena_strndup(p->arena, why.text, sizeof why.text);
    return out->why ? ERR_OK : err_nomem(e);
}

enum err_code planner_memory(struct planner *p, const struct planner_unit *u, int64_t step_tokens, int64_t seqs,
                             struct planner_plan *out, struct err *e)
{
    const struct hw *hw = p->q->device[u->device].hw;
    const struct model *m = p->q->format[u->format].model;
    const struct layout *l = &u->layout;
    const double visible = hw_capacity_bytes(hw);
    struct pool_request r;
    struct pool_activation work;
    TRY(pool_defaults(p->engine, visible, strncmp(hw->key, "a100", 4) == 0, true, p->q->traffic.longest_tokens, &r, e));
    r.max_num_seqs = seqs;
    r.max_num_batched_tokens = step_tokens;
    r.chunked_prefill = true;
    r.tp = l->tp;
    r.vocab = m->vocab;
    r.hidden = m->hidden;
    r.ffn_width = pool_ffn_width(m);
    if (!isnan(p->q->utilization_frac)) r.utilization_frac = p->q->utilization_frac;
    TRY(pool_activation_predict(&r, &work, e));
    const double other = layout_group(l) > 1 ? p->engine->non_torch_tp_bytes : p->engine->non_torch_bytes;
    out->weight_bytes = u->weight_bytes;
    out->tower_bytes = u->tower_bytes;
    out->reserve_bytes = work.bytes + other + visible * (1 - r.utilization_frac);
    out->pool_bytes = visible - out->reserve_bytes - u->weight_bytes - u->tower_bytes;
    out->sequence_bytes = u->sequence_bytes;
    if (out->pool_bytes < u->longest_bytes) {
        out->verdict = PLANNER_SHORT;
        out->miss = u->longest_bytes - out->pool_bytes;
        out->batch_most = 0;
        return ERR_OK;
    }
    const double fit = u->sequence_bytes > 0 ? fmax(1, floor(out->pool_bytes / u->sequence_bytes)) : (double)seqs;
    out->memory_binds = fit < (double)seqs;
    out->batch_most = fmin(fit, (double)seqs) * (double)l->dp;
    out->verdict = PLANNER_MEETS;
    return ERR_OK;
}

double planner_rate_most(struct planner *p, const struct planner_unit *u, double batch)
{
    const struct planner_traffic *t = &p->q->traffic;
    double v[STEP_VALUES_N];
    const double context = t->prompts[0] + 1;
    if (step_eval_layout(planner_pair_of(p, u->device, u->format)->bound, &u->layout, batch, fmax(1, t->prompt_tokens),
                         context, 1, v, NULL) != ERR_OK)
        return 0;
    /* a step that judges makes so many tokens on average, and computes as many rows as it judges */
    const double made = planner_made(p->q, u->gamma);
    const double rows = (double)planner_judged(p->q, u->gamma);
    const double steps = fmax(0, t->output_tokens - 1) / made;
    const double groups = (double)u->layout.dp; /* seconds are the slowest stage's: stages are in them */
    const double compute = v[STEP_prefill_compute_s] / groups + steps * rows * v[STEP_decode_compute_s] / batch;
    const double memory = steps * v[STEP_decode_memory_s] / batch;
    const double busy = fmax(compute, memory);
    return busy > 0 ? 1 / busy : (double)INFINITY;
}
