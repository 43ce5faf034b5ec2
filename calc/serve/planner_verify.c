#include "calc/serve/planner_verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

enum planner_skip planner_skip_of(const struct planner_plan *plan)
{
    const struct layout l = layout_whole(&plan->layout);
    if (l.replicas > SIMULATE_REPLICAS_MAX) return PLANNER_SKIP_COPIES;
    if (planner_mixes(&l) || planner_groups_step(&l) || planner_stages_fly(&l)) return PLANNER_SIMULATED;
    if (layout_nodes(&l, l.tp) > 1) return PLANNER_SKIP_NODES;
    if (l.dcp > 1) return PLANNER_SKIP_CONTEXTS;
    return l.pp > 1 && l.dp > 1 ? PLANNER_SKIP_GROUPS : PLANNER_SKIP_SEQUENCE;
}

const char *planner_skip_name(enum planner_skip why)
{
    static const char *const NAME[PLANNER_SKIPS] = {
        [PLANNER_SKIP_NODES] = "ranks of an attention group or stage over several nodes",
        [PLANNER_SKIP_GROUPS] = "attention groups in stages",
        [PLANNER_SKIP_CONTEXTS] = "shared contexts in attention groups or stages",
        [PLANNER_SKIP_SEQUENCE] = "norms split over ranks (--sp)",
        [PLANNER_SKIP_COPIES] = "more than 1024 copies",
        [PLANNER_SKIP_SHARE] = "more than a million requests a copy"};
    _Static_assert(SIMULATE_REPLICAS_MAX == 1024 && PLANNER_SHARE_MAX == 1 << 20, "words above"); /* not a unit */
    return NAME[why];
}

const char *planner_verifies(const struct planner_plan *plan) { return planner_skip_name(planner_skip_of(plan)); }

bool planner_tells(const struct planner_request *q)
{
    const double excess = .01;
    if (q->aim != PLANNER_SERVE || isnan(q->ttft.s) || q->judged.end <= q->judged.first || q->flow.n > 0) return false;
    const double span_s = (double)(q->judged.end - q->judged.first) / q->traffic.rate_per_s;
    return excess * q->ttft.frac * span_s > q->ttft.s;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static enum err_code quantile_of(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                                 double frac, struct arena *a, double *out, struct err *e)
{
    double *v = arena_array(a, r->n + 1, sizeof *v);
    size_t n = 0;
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < r->n; i++) {
        v[n] = value(&r->record[i]);
        if (!isnan(v[n])) n++;
    }
    qsort(v, n, sizeof *v, by_value);
    *out = n ? planner_quantile(v, n, frac) : (double)NAN;
    return ERR_OK;
}

/* Those of a run that are judged. */
static struct simulate_result judged_of(const struct planner_request *q, const struct simulate_result *r)
{
    struct simulate_result x = *r;
    if (q->judged.end == 0 || q->judged.end > r->n || q->judged.first >= q->judged.end) return x;
    x.record = r->record + q->judged.first;
    x.n = q->judged.end - q->judged.first;
    return x;
}

static enum err_code error_of(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                              double frac, double whole_s, struct arena *a, double *out, struct err *e)
{
    enum { PARTS = 10, LEAST = 100 };
    const double student = 2.262;
    double sum = 0, squares = 0;
    *out = (double)NAN;
    if (r->n < (size_t)PARTS * LEAST || r->partial) return ERR_OK;
    for (size_t k = 0; k < PARTS; k++) {
        struct simulate_result part = *r;
        double s;
        part.record = r->record + k * (r->n / PARTS);
        part.n = r->n / PARTS;
        TRY(quantile_of(&part, value, frac, a, &s, e));
        sum += s / whole_s;
        squares += s / whole_s * (s / whole_s);
    }
    *out = student * sqrt(fmax(squares - sum * sum / PARTS, 0) / (PARTS - 1) / PARTS);
    return ERR_OK;
}

struct keeper {
    struct arena *arena;
    struct planner_run *run;
    size_t room;
    bool lost; /* memory was exhausted */
};

static void keep_step(void *closure, const struct simulate_step *x)
{
    struct keeper *k = closure;
    struct planner_run *r = k->run;
    if (r->steps_n == k->room && !k->lost) {
        const size_t room = k->room ? 2 * k->room : 1 << 12;
        struct simulate_step *more = arena_array(k->arena, room, sizeof *more);
        k->lost = !more;
        if (more && r->steps_n) memcpy(more, r->step, r->steps_n * sizeof *more);
        if (more) {
            r->step = more;
            k->room = room;
        }
    }
    if (!k->lost) r->step[r->steps_n++] = *x;
}

/* Of a run that goes on: requests whose promise is broken already. */
struct lookout {
    const struct planner_request *q;
    const struct planner_watch *watch;
    const struct simulate_record *record;
    size_t next; /* requests that end before records are gone through again */
    bool hopeless;
    enum planner_verdict late;
};

static bool broken(const struct planner_promise *p, size_t late, size_t all)
{
    return !isnan(p->s) && (double)late > (1 - p->frac) * (double)all;
}

static bool look(void *closure, size_t finished, size_t requests)
{
    struct lookout *l = closure;
    const struct simulate_result whole = {.n = requests}, judged = judged_of(l->q, &whole);
    const size_t from = judged.n < requests ? l->q->judged.first : 0, all = judged.n;
    size_t first = 0, each = 0;
    const bool now = finished >= l->next;
    if (now) l->next = finished + requests / 256; /* not a unit: in parts, as all are gone through */
    for (size_t i = 0; now && i < all; i++) {
        const struct simulate_record *x = &l->record[from + i];
        first += simulate_ttft_s(x) + (l->q->server ? simulate_front_s(x) : 0) > l->q->ttft.s;
        each += simulate_tpot_s(x) > l->q->tpot.s;
    }
    if (now) l->late = broken(&l->q->tpot, each, all) ? PLANNER_LATE_TPOT : PLANNER_LATE_TTFT;
    if (now) l->hopeless = broken(&l->q->ttft, first, all) || broken(&l->q->tpot, each, all);
    if (l->hopeless) return false;
    return !l->watch->show || l->watch->show(l->watch->closure, finished, requests);
}

/* Steps of a copy by its clock: of several stages floors, times what the plan has for such a layout. */
static enum err_code times_of(struct planner *p, struct planner_unit *u, const struct planner_plan *plan,
                              struct planner_times *out, struct err *e)
{
    struct planner_clock *c;
    TRY(planner_clock_of(p, plan->device, plan->format, &u->layout, plan->gamma, &c, e));
    *out = (struct planner_times){
        .plan = c->plan, .calibrated = c->calibrated, .server = c->server, .overlapped = c->overlapped};
    if (c->draft) {
        out->draft = &c->draft->of;
        out->draft_kv_bytes_per_token = step_kv_bytes_per_token(c->draft->of.draft);
    }
    if (planner_stages_fly(&u->layout)) return planner_ratio(p, u, plan, &out->slower, e);
    out->slower = planner_band(p, c, plan->batch_most);
    return ERR_OK;
}

enum err_code planner_times_of(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner_times *out, struct err *e)
{
    struct planner *p = arena_alloc(a, sizeof *p);
    struct planner_unit u;
    struct layout one = plan->layout;
    const char *why = planner_verifies(plan);
    if (!p) return err_nomem(e);
    if (why) return err_set(e, ERR_USAGE, "%s: no such plan is simulated", why);
    one.replicas = 1;
    TRY(planner_open(a, q, p, e));
    TRY(planner_unit_make(p, plan->device, plan->format, &one, &u, e));
    if (u.why) return err_set(e, ERR_USAGE, "%s", u.why);
    if (plan->gamma > 0) TRY(planner_unit_draft(p, &u, plan->gamma, e));
    if (u.why) return err_set(e, ERR_USAGE, "%s", u.why);
    return times_of(p, &u, plan, out, e);
}

static enum err_code simulate(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                              const struct workload *w, bool keep, const struct planner_watch *watch,
                              struct planner_run *out, struct err *e)
{
    struct planner p;
    struct planner_unit u;
    struct planner_times c;
    struct keeper k = {.arena = a, .run = out};
    struct workload closer = *w;
    struct layout one = plan->layout;
    const char *why = planner_verifies(plan);
    if (why) return err_set(e, ERR_USAGE, "%s: no such plan is simulated", why);
    one.replicas = 1;
    TRY(planner_open(a, q, &p, e));
    TRY(planner_unit_make(&p, plan->device, plan->format, &one, &u, e));
    if (plan->gamma > 0) TRY(planner_unit_draft(&p, &u, plan->gamma, e));
    const double own = w->rate_per_s > 0 ? w->rate_per_s
                       : w->span_s > 0   ? workload_came_per_s(w)
                                         : q->traffic.rate_per_s;
    const double faster = q->traffic.rate_per_s / own; /* the plan's rate, where it is not that of the requests */
    closer.request = arena_array(a, w->n, sizeof *closer.request);
    if (!closer.request) return err_nomem(e);
    memcpy(closer.request, w->request, w->n * sizeof *closer.request);
    for (size_t i = 0; i < w->n; i++) closer.request[i].arrival_s /= faster;
    closer.span_s /= faster;
    const int64_t groups = u.layout.dp, most = plan->step_tokens / planner_judged(q, plan->gamma);
    struct simulate_setup s = {.work = &closer,
                               .policy = planner_policy(q),
                               .watermark_frac = planner_watermark(q),
                               .groups = groups > 1 ? groups : 0,
                               .budget_tokens = groups * plan->step_tokens,
                               .max_seqs = groups * (plan->seqs < most ? plan->seqs : most),
                               .memory = SIMULATE_PAGED,
                               .blocks = groups * planner_blocks(&p, &u, plan),
                               .block_tokens = planner_block_tokens(&p, &u.layout),
                               .max_len_tokens = q->traffic.longest_tokens,
                               .replicas = plan->layout.replicas,
                               .route = SIMULATE_LEAST_LOADED};
    s.prefix_cache = q->prefix_cache;
    s.fronted = q->server != NULL;
    if (q->tier_bytes > 0) {
        const double token = u.sequence_bytes / (ceil(q->traffic.context_tokens) + (double)s.block_tokens / 2);
        s.tier = (struct simulate_tier){.bytes_per_s = q->device[plan->device].host_bytes_per_s,
                                        .block_bytes = token * (double)s.block_tokens};
        s.tier.blocks = (int64_t)fmin(q->tier_bytes / (double)u.gpus / s.tier.block_bytes, PAGED_BLOCKS_MAX);
        s.tier.blocks *= groups;
    }
    TRY(times_of(&p, &u, plan, &c, e));
    s.plan = c.plan;
    s.calibrated = c.calibrated;
    s.server = c.server;
    s.overlapped = c.overlapped;
    s.slower = c.slower;
    if (plan->prefill > 0) {
        const struct planner_link link = planner_link_of(q, plan->device, plan->gpus);
        s.pools = (struct simulate_pools){
            .prefill = plan->prefill, .link_bytes_per_s = link.bytes_per_s, .link_latency_s = link.latency_s};
    }
    if (c.draft)
        s.draft = (struct simulate_draft){.of = c.draft,
                                          .gamma = plan->gamma,
                                          .prompts = q->drafting->prompts,
                                          .kv_bytes_per_token = c.draft_kv_bytes_per_token,
                                          .seed = 1};
    *out = (struct planner_run){.band = s.slower, .of_floors = planner_stages_fly(&u.layout), .blocks = s.blocks};
    if (keep) {
        s.step = keep_step;
        s.closure = &k;
    }
    struct lookout l = {.q = q, .watch = watch};
    if (watch) {
        s.progress = look;
        s.closure = &l;
        s.look = &l.record;
    }
    TRY(simulate_run(a, &s, &out->result, e));
    if (q->server) simulate_front(&out->result);
    out->hopeless = l.hopeless;
    out->late = l.late;
    return k.lost ? err_nomem(e) : ERR_OK;
}

/* In the order of planner_judge. */
static enum planner_verdict broken_by(const struct planner_request *q, const struct planner_run *run,
                                      const struct planner_verified *v)
{
    if (run->hopeless) return run->late;
    if (v->growing) return PLANNER_SATURATED;
    if (!isnan(q->tpot.s) && !isnan(v->tpot_s) && !(v->tpot_s <= q->tpot.s)) return PLANNER_LATE_TPOT;
    if (!isnan(q->ttft.s) && !(v->ttft_s <= q->ttft.s)) return PLANNER_LATE_TTFT;
    if (q->aim == PLANNER_JOB && !(v->makespan_s <= q->deadline_s)) return PLANNER_LATE_JOB;
    return PLANNER_MEETS;
}

enum err_code planner_run_judge(struct arena *a, const struct planner_request *q, const struct planner_run *run,
                                struct planner_verified *out, struct err *e)
{
    const struct simulate_result *r = &run->result;
    *out = (struct planner_verified){.n = r->n,
                                     .finished = r->finished,
                                     .growing = r->growing,
                                     .stopped = r->partial,
                                     .blocks = run->blocks,
                                     .band = run->band,
                                     .makespan_s = q->aim == PLANNER_JOB ? r->span_s : (double)NAN,
                                     .cached_frac = r->cached_tokens / r->prompt_tokens,
                                     .loaded_frac = r->loaded_tokens / r->prompt_tokens,
                                     .waiting_half = r->waiting_half,
                                     .waiting_last = r->waiting_last};
    const struct simulate_result judged = judged_of(q, r);
    const double ttft = planner_promised_frac(&q->ttft), tpot = planner_promised_frac(&q->tpot);
    TRY(quantile_of(&judged, simulate_ttft_s, ttft, a, &out->ttft_s, e));
    TRY(quantile_of(&judged, simulate_tpot_s, tpot, a, &out->tpot_s, e));
    out->ttft_error_frac = out->tpot_error_frac = (double)NAN;
    if (q->judged.end > 0) { /* of requests at one rate alone: parts of a day differ */
        TRY(error_of(&judged, simulate_ttft_s, ttft, out->ttft_s, a, &out->ttft_error_frac, e));
        TRY(error_of(&judged, simulate_tpot_s, tpot, out->tpot_s, a, &out->tpot_error_frac, e));
    }
    out->breaks = broken_by(q, run, out);
    out->keeps = !r->partial && out->breaks == PLANNER_MEETS;
    return ERR_OK;
}

enum err_code planner_run(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                          const struct workload *w, struct planner_run *out, struct err *e)
{
    return simulate(a, q, plan, w, true, NULL, out, e);
}

enum err_code planner_run_until(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                                const struct workload *w, const struct planner_watch *watch, struct planner_run *out,
                                struct err *e)
{
    return simulate(a, q, plan, w, false, watch, out, e);
}

enum err_code planner_verify(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                             const struct workload *w, struct planner_verified *out, struct err *e)
{
    struct planner_run run;
    TRY(simulate(a, q, plan, w, false, NULL, &run, e));
    return planner_run_judge(a, q, &run, out, e);
}
