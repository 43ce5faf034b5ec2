/* plan_output -- the answer of `ridge plan`: the winner, the best of each device and precision, why others fail. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plan.h"

struct plan_row {
    const char *model, *hardware, *verdict, *on_paper, *layout, *weights, *kv, *estimated, *why, *price_source,
        *price_date, *draft;
    bool simulated;
    double simulated_ttft_s, simulated_tpot_s, simulated_ttft_within_frac, simulated_tpot_within_frac;
    double breaks_per_s, breaks_within_frac;
    const char *breaks;
    double simulated_periods;
    int64_t simulated_requests;
    int64_t draft_tokens, prefill_replicas;
    double move_s_mean;
    double tokens_per_step;
    int64_t candidates, gpus, tp, pp, attention_dp, ep, dcp, replicas, max_num_seqs, max_num_batched_tokens;
    double usd_per_gpu_h, usd_per_h, usd_per_mtok_in, usd_per_mtok_out, usd_per_mtok;
    double slower, ttft_s, tpot_s, ttft_mean_s, tpot_mean_s, batch, rate_per_s, saturation_per_s, load_frac, busy_frac;
    double weight_bytes, tower_bytes, reserve_bytes, pool_bytes, sequence_bytes, watts, joule_per_tok, makespan_s,
        tail_s, usd;
};

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct plan_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(model, STRING, NONE, 0, "model", "the model"),
    ROW(hardware, STRING, NONE, COLUMN_SHOWN, "device", "the device"),
    ROW(verdict, STRING, NONE, 0, "verdict",
        "meets, or what is broken: late (in service), slow (a floor), saturated, short of memory, illegal"),
    ROW(on_paper, STRING, NONE, 0, "on paper",
        "verdict there: not of what meets when it is simulated alone; percentiles on paper are off, mostly too long"),
    ROW(candidates, INT, COUNT, 0, "n", "candidates of the device that end so; the row is the nearest"),
    ROW(gpus, INT, COUNT, COLUMN_SHOWN, "GPUs", "devices in all"),
    ROW(layout, STRING, NONE, COLUMN_SHOWN, "layout", "TP, PP, attention-DP and EP of a copy, and copies"),
    ROW(tp, INT, COUNT, 0, "TP", "ranks that split attention and dense blocks"),
    ROW(pp, INT, COUNT, 0, "PP", "stages of layers"),
    ROW(attention_dp, INT, COUNT, 0, "DP", "attention groups with sequences of their own"),
    ROW(ep, INT, COUNT, 0, "EP", "parts in which experts are dealt"),
    ROW(dcp, INT, COUNT, 0, "DCP", "ranks that share the cache of a sequence by tokens"),
    ROW(replicas, INT, COUNT, 0, "x", "copies of the model"),
    ROW(prefill_replicas, INT, COUNT, 0, "prefill", "of the copies, those that only prefill; 0: all do both"),
    ROW(move_s_mean, REAL, SECONDS, 0, "moved",
        "two pools: from the first token until the cache is where it decodes, mean"),
    ROW(weights, STRING, NONE, COLUMN_SHOWN, "weights", "format of the linear layers; stored: as the model has them"),
    ROW(kv, STRING, NONE, COLUMN_SHOWN, "KV", "format of the cache"),
    ROW(draft, STRING, NONE, 0, "draft", "what drafts tokens ahead"),
    ROW(draft_tokens, INT, COUNT, 0, "drafted", "tokens drafted in a row; of a tree its nodes"),
    ROW(tokens_per_step, REAL, NONE, 0, "tokens", "of a sequence that decodes, expected of a step"),
    ROW(max_num_seqs, INT, COUNT, 0, "seqs", "most sequences of an attention group; of a copy where there is one"),
    ROW(max_num_batched_tokens, INT, COUNT, 0, "tokens", "most tokens of a step"),
    ROW(usd_per_gpu_h, REAL, USD, 0, "$/GPU h", "dollars an hour of one device"),
    ROW(usd_per_h, REAL, USD, COLUMN_SHOWN, "$/h", "dollars an hour of all"),
    ROW(usd_per_mtok_in, REAL, USD_PER_MTOK, COLUMN_SHOWN, "in", "dollars a million tokens of prompts, by time"),
    ROW(usd_per_mtok_out, REAL, USD_PER_MTOK, COLUMN_SHOWN, "out", "dollars a million tokens of answers, by time"),
    ROW(usd_per_mtok, REAL, USD_PER_MTOK, 0, "$/M", "all dollars over tokens of answers"),
    ROW(ttft_s, REAL, SECONDS, COLUMN_SHOWN, "TTFT", "time to first token at the part promised (else P95)"),
    ROW(tpot_s, REAL, SECONDS, COLUMN_SHOWN, "TPOT", "time per output token, likewise"),
    ROW(ttft_mean_s, REAL, SECONDS, 0, "TTFT mean", "its mean"),
    ROW(tpot_mean_s, REAL, SECONDS, 0, "TPOT mean", "its mean"),
    ROW(slower, REAL, RATIO, 0, "slower",
        "times what is predicted every step takes, as the band has it; estimated layouts: times its floors"),
    ROW(batch, REAL, COUNT, 0, "batch", "sequences of a copy in flight, mean over all time"),
    ROW(rate_per_s, REAL, NONE, 0, "rate", "requests a second, all copies"),
    ROW(saturation_per_s, REAL, NONE, 0, "saturation", "requests a second at which queues grow, all copies"),
    ROW(load_frac, REAL, FRAC, COLUMN_SHOWN, "load", "rate over saturation"),
    ROW(busy_frac, REAL, FRAC, 0, "busy", "part of the time in steps"),
    ROW(weight_bytes, COUNT, BYTES, 0, "weights", "on the fullest GPU"),
    ROW(tower_bytes, COUNT, BYTES, 0, "towers", "of images and of sound on it; 0 with --no-towers"),
    ROW(reserve_bytes, REAL, BYTES, 0, "reserve", "what the engine leaves or works in, of it"),
    ROW(pool_bytes, REAL, BYTES, 0, "pool", "cache of it"),
    ROW(sequence_bytes, REAL, BYTES, 0, "seq", "of a sequence of mean context in it"),
    ROW(watts, REAL, WATTS, 0, "power", "assumed: full in prefill, 0.6 of it in decode, 0.15 idle; GPUs alone"),
    ROW(joule_per_tok, REAL, NONE, 0, "J/token", "of that, a token of answers"),
    ROW(makespan_s, REAL, SECONDS, 0, "makespan", "of a job"),
    ROW(usd, REAL, USD, 0, "$", "dollars of a job, all of it"),
    ROW(tail_s, REAL, SECONDS, 0, "tail", "of it, beyond requests over saturation: the last long answers"),
    ROW(estimated, STRING, NONE, 0, "estimated", "calibrated: a layout that was not measured"),
    ROW(simulated, BOOL, NONE, 0, "simulated",
        "true: its promises were looked at in a simulation; false: percentiles are on paper (--verify simulates)"),
    ROW(simulated_ttft_s, REAL, SECONDS, 0, "sim. TTFT", "ttft_s of the simulated requests; ttft_s is on paper"),
    ROW(simulated_tpot_s, REAL, SECONDS, 0, "sim. TPOT", "tpot_s of the simulated requests; tpot_s is on paper"),
    ROW(simulated_ttft_within_frac, REAL, NONE, 0, "+-",
        "by so much of it another run of as many may be off, 95 in 100"),
    ROW(simulated_tpot_within_frac, REAL, NONE, 0, "+-", "likewise, of simulated_tpot_s"),
    ROW(breaks, STRING, NONE, 0, "breaks", "of the winner, what breaks first as requests come faster"),
    ROW(breaks_per_s, REAL, NONE, 0, "from /s", "from so many requests a second on"),
    ROW(breaks_within_frac, REAL, NONE, 0, "+-",
        "by so much of it that is not known: of the bisection, and of a simulation's own error"),
    ROW(simulated_requests, INT, COUNT, 0, "sim. requests", "that were answered in the simulation"),
    ROW(simulated_periods, REAL, NONE, 0, "sim. periods",
        "of arrivals whose rate changes in time (--arrivals diurnal, bursty), that were simulated"),
    ROW(price_source, STRING, NONE, 0, "price", "whose price"),
    ROW(price_date, STRING, NONE, 0, "date", "of it"),
    ROW(why, STRING, NONE, 0, "why not", "what is missing, too slow or does not divide"),
};

const struct column *plan_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

const char *plan_layout_words(struct arena *a, const struct layout *l)
{
    char pp[32] = "", dp[32] = "", ep[32] = "", x[32] = "", dcp[32] = "";
    if (l->dcp > 1) (void)snprintf(dcp, sizeof dcp, " DCP%lld", (long long)l->dcp);
    if (l->pp > 1) (void)snprintf(pp, sizeof pp, " PP%lld", (long long)l->pp);
    if (l->dp > 1) (void)snprintf(dp, sizeof dp, " DP%lld", (long long)l->dp);
    if (l->ep > 1) (void)snprintf(ep, sizeof ep, " EP%lld", (long long)l->ep);
    if (l->replicas > 1) (void)snprintf(x, sizeof x, " x%lld", (long long)l->replicas);
    return arena_printf(a, "TP%lld%s%s%s%s%s", (long long)l->tp, dcp, pp, dp, ep, x);
}

#define LEGEND(contexts, experts)                                                                                      \
    "layouts: TP ranks split every layer" contexts ", PP stages hold whole layers" experts ", x copies"
#define LEGEND_CONTEXTS ", DCP of them share a sequence's cache"
#define LEGEND_EXPERTS ", DP attention groups have sequences of their own, experts are dealt in EP parts"

const char *plan_layout_legend(bool experts, bool contexts)
{
    static const char *const TEXT[2][2] = {{LEGEND("", ""), LEGEND("", LEGEND_EXPERTS)},
                                           {LEGEND(LEGEND_CONTEXTS, ""), LEGEND(LEGEND_CONTEXTS, LEGEND_EXPERTS)}};
    return TEXT[contexts][experts];
}

const char *plan_part(const struct planner_promise *p)
{
    return p->frac >= .99 ? "p99" : p->frac >= .95 ? "p95" : p->frac >= .9 ? "p90" : "p50";
}

void plan_times_apart(double is_s, double may_s, char is[UNITS_TEXT_MAX], char may[UNITS_TEXT_MAX])
{
    (void)units_format_time(is, is_s);
    (void)units_format_time(may, may_s);
    const bool ms = may_s < 1;
    for (int digits = 5; digits <= 17 && is_s != may_s && strcmp(is, may) == 0; digits++) {
        (void)snprintf(is, UNITS_TEXT_MAX, "%.*g %s", digits, ms ? is_s * 1000 : is_s,
                       ms ? "ms" : "s"); /* not a unit */
        (void)snprintf(may, UNITS_TEXT_MAX, "%.*g %s", digits, ms ? may_s * 1000 : may_s,
                       ms ? "ms" : "s"); /* not a unit */
    }
}

const char *plan_saturates(struct arena *a, const struct planner_plan *x)
{
    const double below = 1 - x->point.saturation_per_s / x->rate_per_s;
    const char *text = arena_printf(a, "saturates at %.4g requests/s, %.3g %% below those that come",
                                    x->point.saturation_per_s * (double)x->layout.replicas, 100 * below);
    if (!(below > 0)) text = "has no steady state at the rate that comes";
    return text ? text : "";
}

/* Under which limits: what else is said of a candidate depends on them. */
static const char *limits_text(struct arena *a, const struct planner_plan *x)
{
    char seqs[TEXT_COUNT_MAX], tokens[TEXT_COUNT_MAX];
    if (x->seqs < 1 || x->step_tokens < 1) return "";
    const char *text = arena_printf(a, ", at %s, %s a step", text_count(seqs, x->seqs, "sequence"),
                                    text_count(tokens, x->step_tokens, "token"));
    return text ? text : "";
}

/* Why a candidate fails, with its number. */
const char *plan_reason(struct arena *a, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_request *q = &c->request;
    char is[UNITS_TEXT_MAX], may[UNITS_TEXT_MAX];
    const char *limits = limits_text(a, x);
    switch (x->verdict) {
    case PLANNER_ILLEGAL: return x->why;
    case PLANNER_SHORT: return arena_printf(a, "needs %s more on every GPU%s", units_format_bytes(is, x->miss), limits);
    case PLANNER_SLOW_TPOT:
        plan_times_apart(x->value_s, q->tpot.s, is, may);
        return arena_printf(a, "a step takes %s > %s at batch 1, whatever the engine", is, may);
    case PLANNER_SLOW_TTFT:
        plan_times_apart(x->value_s, q->ttft.s, is, may);
        return arena_printf(a, "a prompt alone takes %s > %s, whatever the engine", is, may);
    case PLANNER_LATE_TPOT:
        plan_times_apart(x->value_s, q->tpot.s, is, may);
        return arena_printf(a, "TPOT %s %s > %s at batch %.0f%s", plan_part(&q->tpot), is, may, ceil(x->point.batch),
                            limits);
    case PLANNER_LATE_TTFT:
        plan_times_apart(x->value_s, q->ttft.s, is, may);
        return arena_printf(a, "TTFT %s %s > %s at batch %.0f%s", plan_part(&q->ttft), is, may, ceil(x->point.batch),
                            limits);
    case PLANNER_LATE_JOB:
        return arena_printf(a, "takes %s, %.4g %% longer than the deadline%s", units_format_time(is, x->value_s),
                            100 * (x->miss - 1), limits);
    case PLANNER_SATURATED: return arena_printf(a, "%s%s", plan_saturates(a, x), limits);
    case PLANNER_DEARER:
        return c->result.best_n > 0 ? "costs more than a plan that keeps every promise"
                                    : "costs more than a plan that keeps every promise on paper";
    case PLANNER_MEETS: return plan_paper_miss(a, c, x);
    case PLANNER_VERDICTS: break;
    }
    return NULL;
}

static enum err_code fill(struct arena *a, const struct plan_case *c, const struct planner_plan *x, size_t candidates,
                          struct plan_row *r, struct err *e)
{
    const struct planner_request *q = &c->request;
    const struct planner_device *d = &c->device[x->device];
    const struct planner_format *f = &c->format[x->format];
    const double unknown = (double)NAN, copies = (double)x->layout.replicas;
    const bool solved = x->point.saturation_per_s > 0;
    const bool steady = solved && x->verdict != PLANNER_SATURATED;
    *r = (struct plan_row){.model = c->model,
                           .hardware = d->hw->key,
                           .verdict = planner_verdict_name(x->verdict),
                           .on_paper = planner_verdict_name(x->verdict == PLANNER_MEETS ? x->paper : x->verdict),
                           .layout = plan_layout_words(a, &x->layout),
                           .weights = f->weights ? f->weights : "stored",
                           .kv = f->kv ? f->kv : "stored",
                           .estimated = x->estimated ? "yes" : "no",
                           .why = plan_reason(a, c, x),
                           .price_source = d->price.source,
                           .price_date = d->price.date,
                           .draft = x->gamma > 0 ? c->draft : NULL,
                           .draft_tokens = x->gamma > 0 ? plan_drafted(c, x)
                                           : c->draft   ? 0
                                                        : TABLE_INT_UNKNOWN,
                           .tokens_per_step = planner_made(&c->request, x->gamma),
                           .prefill_replicas = x->prefill,
                           .move_s_mean = x->prefill > 0 && steady ? x->point.move_s : unknown,
                           .candidates = candidates ? (int64_t)candidates : TABLE_INT_UNKNOWN,
                           .gpus = x->gpus,
                           .tp = x->layout.tp,
                           .pp = x->layout.pp,
                           .attention_dp = x->layout.dp,
                           .ep = x->layout.ep,
                           .dcp = x->layout.dcp,
                           .replicas = x->layout.replicas,
                           .max_num_seqs = x->seqs ? x->seqs : TABLE_INT_UNKNOWN,
                           .max_num_batched_tokens = x->step_tokens ? x->step_tokens : TABLE_INT_UNKNOWN,
                           .usd_per_gpu_h = d->price.usd_per_h,
                           .usd_per_h = d->price.usd_per_h * (double)x->gpus,
                           .rate_per_s = q->traffic.rate_per_s,
                           .saturation_per_s = solved ? x->point.saturation_per_s * copies : unknown,
                           .simulated_ttft_s = unknown,
                           .simulated_tpot_s = unknown,
                           .simulated_ttft_within_frac = unknown,
                           .simulated_tpot_within_frac = unknown,
                           .breaks_per_s = unknown,
                           .breaks_within_frac = unknown,
                           .simulated_periods = unknown,
                           .simulated_requests = TABLE_INT_UNKNOWN};
    const bool follows = q->traffic.outputs[q->traffic.n - 1] > 1; /* tokens behind a first one */
    r->usd_per_mtok_in = steady ? x->cost.usd_per_mtok_in : unknown;
    r->usd_per_mtok_out = steady && follows ? x->cost.usd_per_mtok_out : unknown;
    r->usd_per_mtok = steady ? x->cost.usd_per_mtok : unknown;
    r->ttft_s = steady && q->aim == PLANNER_SERVE ? x->point.ttft_s : unknown;
    r->tpot_s = steady && follows && q->aim == PLANNER_SERVE ? x->point.tpot_s : unknown;
    r->ttft_mean_s = steady && q->aim == PLANNER_SERVE ? x->point.ttft_mean_s : unknown;
    r->tpot_mean_s = steady && follows ? x->point.tpot_mean_s : unknown;
    r->batch = steady ? x->point.batch : unknown;
    r->load_frac = solved ? q->traffic.rate_per_s / r->saturation_per_s : unknown;
    r->slower = x->slower > 0 && q->fidelity == PLANNER_CALIBRATED ? x->slower : unknown;
    r->busy_frac = steady ? x->point.busy_frac : unknown;
    r->weight_bytes = x->weight_bytes > 0 ? x->weight_bytes : unknown;
    r->tower_bytes = x->weight_bytes > 0 ? x->tower_bytes : unknown;
    r->reserve_bytes = x->reserve_bytes > 0 ? x->reserve_bytes : unknown;
    r->pool_bytes = x->reserve_bytes > 0 ? x->pool_bytes : unknown;
    r->sequence_bytes = x->sequence_bytes > 0 ? x->sequence_bytes : unknown;
    r->watts = steady ? x->cost.watts : unknown;
    r->joule_per_tok = steady ? x->cost.joule_per_tok : unknown;
    r->makespan_s = q->aim == PLANNER_JOB && solved ? x->point.makespan_s : unknown;
    r->usd = q->aim == PLANNER_JOB && solved ? r->usd_per_h * x->point.makespan_s / 3600 : unknown; /* not a unit */
    r->tail_s = q->aim == PLANNER_JOB && solved ? x->point.tail_s : unknown;
    return r->layout ? ERR_OK : err_nomem(e);
}

/* What a simulation said no to: as on paper, the verdict and the reason as simulated. */
static enum err_code fill_refuted(struct arena *a, const struct plan_case *c, const struct planner_refuted *x,
                                  struct plan_row *r, struct err *e)
{
    TRY(fill(a, c, &x->plan, 0, r, e));
    r->verdict = planner_verdict_name(x->verified.breaks);
    r->simulated = true;
    r->simulated_requests = (int64_t)x->verified.finished;
    r->simulated_ttft_s = x->verified.ttft_s;
    r->simulated_tpot_s = x->verified.tpot_s;
    r->simulated_periods = c->periods > 0 && !x->verified.stopped ? c->periods : (double)NAN;
    r->why = plan_refuted_text(a, c, x);
    return r->why ? ERR_OK : err_nomem(e);
}

/* -- text -- */

__attribute__((format(printf, 2, 3))) static void put_line(struct out *o, const char *fmt, ...)
{
    char line[1024]; /* not a unit */
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    out_str(o, "  ");
    option_wrap(o, line, 2, 4);
}

const char *plan_money(char out[UNITS_TEXT_MAX], double usd)
{
    (void)snprintf(out, UNITS_TEXT_MAX,
                   isnan(usd)             ? "no known price"
                   : usd > 0 && usd < .01 ? "$%.2g"
                   : usd < 100            ? "$%.2f"
                                          : "$%.0f",
                   usd);
    return out;
}

const char *plan_promises_text(struct arena *a, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX];
    if (q->aim == PLANNER_JOB)
        return arena_printf(a, "done within %s, whatever the latency of each", units_format_time(s, q->deadline_s));
    if (q->aim == PLANNER_DAILY)
        return arena_printf(a, "%s token%s out a day, whatever the latency: %.4g requests/s",
                            units_format_count(s, c->tokens_per_day),
                            c->tokens_per_day > 1 || c->tokens_per_day < 1 ? "s" : "", q->traffic.rate_per_s);
    const char *ttft = "", *tpot = "";
    if (!isnan(q->ttft.s))
        ttft = arena_printf(a, "TTFT %s within %s%s", plan_part(&q->ttft), units_format_time(s, q->ttft.s),
                            isnan(q->tpot.s) ? "" : ", ");
    if (!isnan(q->tpot.s))
        tpot = arena_printf(a, "TPOT %s within %s", plan_part(&q->tpot), units_format_time(t, q->tpot.s));
    return ttft && tpot ? arena_printf(a, "promised: %s%s", ttft, tpot) : NULL;
}

/* How much slower than predicted the promise allows a server to be. */
static const char *server_band(const struct plan_case *c, char *out, size_t cap)
{
    const struct planner_request *q = &c->request;
    const double slow = q->server->slow_p90[engine_has_experts(q->format[0].model)];
    if (!q->p90) return "as predicted, half of its services take longer";
    (void)snprintf(out, cap, "times %.3g, within which nine in ten of its published TPOT are", fmax(1, slow));
    return out;
}

/* What the band of a device's steps was, of its best plan, else of a nearest one; 0: none was solved in one node. */
static double slower_on(const struct plan_case *c, size_t device)
{
    for (size_t i = 0; i < c->result.best_n; i++) {
        const struct planner_plan *x = &c->result.best[i];
        if (x->device == device && x->slower > 0 && !x->estimated) return x->slower;
    }
    for (size_t k = 0; k < PLANNER_VERDICTS; k++) {
        const struct planner_tally *t = &c->result.tally[device][k];
        if (t->known && t->nearest.slower > 0 && !t->nearest.estimated) return t->nearest.slower;
    }
    return 0;
}

/* Devices whose steps are taken otherwise than the heading says. */
static void write_bands(struct out *o, const struct plan_case *c)
{
    enum { SHOWN = 3 }; /* digits */
    const struct planner_request *q = &c->request;
    char said[32], own[32];
    if (q->fidelity != PLANNER_CALIBRATED || !q->p90) return;
    (void)snprintf(said, sizeof said, "%.*g", SHOWN,
                   q->server ? fmax(1, q->server->slow_p90[engine_has_experts(q->format[0].model)]) : 0);
    for (size_t d = 0; d < q->devices_n; d++) {
        const double slower = slower_on(c, d);
        (void)snprintf(own, sizeof own, "%.*g", SHOWN, slower);
        if (!(slower > 0) || strcmp(said, own) == 0) continue;
        put_line(o, "on %s steps take %s times what is predicted%s", c->device[d].hw->key, own,
                 q->server && !engine_measured_on(q->server, c->device[d].hw)
                     ? ": no server was measured there, so the band is that of its kernels"
                     : "");
    }
}

static enum err_code write_times(struct arena *a, struct out *o, const struct plan_case *c, struct err *e)
{
    char band[96], terms[ENGINE_TEXT];
    const struct planner_request *q = &c->request;
    bool listed = false, own = false;
    for (size_t d = 0; d < q->devices_n; d++) {
        if (c->device[d].price.own) own = true;
        if (!c->device[d].price.own && !isnan(c->device[d].price.usd_per_h)) listed = true;
        if (isnan(c->device[d].price.usd_per_h))
            put_line(o, "note: no price of %s is known (--price FILE): its plans are ranked behind, by GPUs",
                     c->device[d].hw->key);
    }
    if (q->server)
        put_line(o, "steps of %s's server: %s; %s; PP and TP over several nodes by the ratio of floors",
                 q->server->name, engine_terms_text(q->server, q->overlapped, terms),
                 server_band(c, band, sizeof band));
    if (q->server)
        put_line(o, "TTFT has the %s that a first token takes beside its steps",
                 units_format_time(band, engine_first_s(q->traffic.asked_tokens)));
    else if (q->fidelity == PLANNER_CALIBRATED)
        put_line(o,
                 "times calibrated, %s of their band, kernels and steps of %s; PP and TP over "
                 "several nodes by the ratio of "
                 "floors",
                 q->p90 ? "at P90" : "the median", plan_kernels(c));
    else
        put_line(o, "times are floors (%s): not a promise, servers are 2-4x slower",
                 q->fidelity == PLANNER_ROOFLINE ? "roofline" : "bound");
    for (size_t d = 0; q->server && d < q->devices_n; d++) {
        const char *note = engine_device_note(a, q->server, c->device[d].hw);
        if (note) put_line(o, "note: %s", note);
    }
    if (q->fidelity == PLANNER_CALIBRATED) TRY(plan_transfers(a, o, "  ", c, -1, e));
    write_bands(o, c);
    if (listed || own)
        put_line(o, "prices: %s%s%s", own ? "your file" : "", own && listed ? ", else " : "",
                 listed ? own ? "list prices of one hour on demand (configs/hardware)"
                              : "list prices of one hour on demand (configs/hardware; --price FILE)"
                        : "");
    return ERR_OK;
}

static enum err_code write_heading(struct arena *arena, struct out *o, const struct plan_case *c, struct err *e)
{
    const struct planner_request *q = &c->request;
    const struct planner_traffic *t = &q->traffic;
    char name[96], a[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX], devices[256] = "";
    out_printf(o, "%s", text_clean(name, sizeof name, c->model, strlen(c->model)));
    if (q->aim == PLANNER_JOB)
        out_printf(o, ": %s requests", units_format_digits(a, q->requests));
    else
        out_printf(o, ": %.4g requests/s", t->rate_per_s);
    out_printf(o, ", %.0f tokens in, %.0f out%s\n", t->asked_tokens, t->output_tokens,
               t->prompts[0] < t->prompts[t->n - 1] || t->outputs[0] < t->outputs[t->n - 1] ? " on average" : "");
    const char *promises = plan_promises_text(arena, c);
    put_line(o, "%s", promises ? promises : "");
    if (c->replaced) put_line(o, "note: %s", c->replaced);
    if (c->work.note) put_line(o, "note: %s", c->work.note);
    TRY(write_times(arena, o, c, e));
    for (size_t d = 0; d < q->devices_n; d++) {
        const size_t at = strlen(devices);
        (void)snprintf(devices + at, sizeof devices - at, "%s%s", d ? ", " : "", c->device[d].hw->key);
    }
    put_line(o, "%s on %s", text_count(n, (int64_t)c->result.candidates, "candidate"), devices);
    put_line(o, "%s", plan_layout_legend(layout_routed(c->format[0].model) != NULL, option_given(c->options, "dcp")));
    return ERR_OK;
}

/* What to do where the first promise breaks. */
const char *plan_advice(const struct planner_headroom *h)
{
    if (strcmp(h->binds, "memory") == 0) return "more memory: more copies, a narrower cache, larger GPUs";
    if (strcmp(h->binds, "batch cap") == 0)
        return h->larger_cap ? "a larger --max-num-seqs, then more copies"
                             : "more copies: no larger --max-num-seqs of the candidates takes more";
    if (strcmp(h->binds, "host link") == 0) return "fewer weights at the host: more GPUs, or larger ones";
    if (strcmp(h->binds, "link") == 0) return "fewer ranks a copy, or faster links";
    if (strcmp(h->binds, "compute") == 0)
        return "more flops: more copies, or narrower weights where the unit is faster";
    return "more bandwidth: more copies, more ranks a copy, narrower weights";
}

/* No nearer than another run may be. */
static double known_within(const struct plan_case *c)
{
    const struct planner_headroom *h = &c->headroom;
    const double error = h->breaks == PLANNER_LATE_TPOT   ? c->verified.tpot_error_frac
                         : h->breaks == PLANNER_LATE_TTFT ? c->verified.ttft_error_frac
                                                          : 0;
    if (!(h->simulations > 0) || isinf(h->within_frac)) return 0;
    return fmax(h->within_frac, error); /* of NAN and a number the number */
}

const char *plan_headroom_how(struct arena *a, const struct plan_case *c)
{
    const struct planner_headroom *h = &c->headroom;
    char n[TEXT_COUNT_MAX];
    if (h->simulations > 0 && isinf(h->within_frac))
        return arena_printf(a, " (%s of the same requests closer together: none failed)",
                            text_count(n, (int64_t)h->simulations, "simulation"));
    if (h->simulations > 0)
        return arena_printf(a, " (simulated, within %.2g %%: the same requests closer together)",
                            100 * known_within(c));
    return c->uneven       ? " (on paper, for arrivals without bursts; with them, earlier)"
           : c->verified.n ? " (on paper)"
                           : "";
}

const char *plan_breaks(enum planner_verdict v)
{
    return v == PLANNER_LATE_TPOT ? "TPOT" : v == PLANNER_LATE_TTFT ? "TTFT" : "saturation";
}

/* Whether a draft pays, and up to which load. */
static void write_draft(struct out *o, const struct plan_case *c)
{
    const struct planner_paying *p = &c->paying;
    const struct planner_plan *x = &c->result.best[0];
    char with[UNITS_TEXT_MAX], without[UNITS_TEXT_MAX], name[64], n[TEXT_COUNT_MAX];
    if (x->prefill > 0)
        put_line(
            o,
            "%lld of the copies prefill, %lld decode; a cache is where it decodes %s after the first token, on average",
            (long long)x->prefill, (long long)(x->layout.replicas - x->prefill),
            units_format_time(with, x->point.move_s));
    if (!c->draft) return;
    (void)text_clean(name, sizeof name, c->draft, strlen(c->draft));
    if (x->gamma > 0 && c->drafting.shape)
        put_line(o, "draft %s, a tree of %s, %lld deep: %.3g tokens a step expected (accepted: %s)", name,
                 text_count(n, c->shape.drafted, "token"), (long long)x->gamma, planner_made(&c->request, x->gamma),
                 c->accept);
    else if (x->gamma > 0)
        put_line(o, "draft %s, %s in a row: %.3g tokens a step expected (accepted: %s)", name,
                 text_count(n, x->gamma, "token"), planner_made(&c->request, x->gamma), c->accept);
    if (x->prefill > 0) {
        put_line(o,
                 x->gamma > 0 ? "draft %s in two pools: until which load it pays is not computed"
                              : "draft %s: not beside this plan",
                 name);
        return;
    }
    if (c->request.aim == PLANNER_JOB) return;
    if (c->unpaid) {
        put_line(o, "draft %s beside this plan: %s", name, c->unpaid);
        return;
    }
    if (isnan(p->with_s) && isnan(p->most_with_per_s)) {
        put_line(o, "draft %s: not beside this plan", name);
        return;
    }
    put_line(o, "mean TPOT %s with %lld drafted, %s without; saturates at %.4g requests/s with, %.4g without",
             isnan(p->with_s) ? "saturated" : units_format_time(with, p->with_s),
             (long long)(c->drafting.shape ? c->shape.drafted : p->gamma),
             isnan(p->without_s) ? "saturated" : units_format_time(without, p->without_s), p->most_with_per_s,
             p->most_without_per_s);
    if (isinf(p->until_per_s))
        put_line(o, "on these GPUs the draft pays at every load that they serve without it");
    else if (p->until_per_s > 0)
        put_line(o, "on these GPUs the draft stops paying at %.4g requests/s", p->until_per_s);
    else
        put_line(o, "on these GPUs the draft pays at no load");
}

/* What of the price and the energy of a token is known. */
static void write_tokens(struct out *o, const struct planner_plan *x)
{
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], price[160] = "", power[200] = "";
    const bool priced = !isnan(x->cost.usd_per_mtok_in), out = !isnan(x->cost.usd_per_mtok_out);
    const bool powered = !isnan(x->cost.joule_per_tok);
    if (priced)
        (void)snprintf(price, sizeof price, "per million tokens: %s in%s%s%s%s", plan_money(s, x->cost.usd_per_mtok_in),
                       out ? ", " : "", out ? plan_money(t, x->cost.usd_per_mtok_out) : "",
                       out ? " out, split by time" : "", powered ? "; " : "");
    if (powered)
        (void)snprintf(power, sizeof power,
                       "%.3g J a token out (%s; assumed: full power in prefill, 0.6 of it in decode, 0.15 idle; GPUs "
                       "alone)",
                       x->cost.joule_per_tok, units_format(s, UNITS_WATTS, x->cost.watts));
    if (priced || powered) put_line(o, "%s%s", price, power);
}

static void write_winner(struct arena *a, struct out *o, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    const struct planner_device *d = &c->device[x->device];
    const struct planner_format *f = &c->format[x->format];
    const struct planner_point *p = &x->point;
    const struct planner_headroom *h = &c->headroom;
    char s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX];
    char count[TEXT_COUNT_MAX], tokens[TEXT_COUNT_MAX];
    const char *layout = plan_layout_words(a, &x->layout);
    out_printf(o, "\n%lld x %s, %s: %s/h\n", (long long)x->gpus, d->hw->key, layout ? layout : "",
               plan_money(s, x->cost.usd_per_h));
    put_line(o, "weights %s, KV %s; %s and %s a step at most%s", f->weights ? f->weights : "as stored",
             f->kv ? f->kv : "as stored", text_count(count, x->seqs, "sequence"),
             text_count(tokens, x->step_tokens, "token"), x->layout.dp > 1 ? ", of each attention group" : "");
    write_draft(o, c);
    char hosted[64] = "";
    if (q->tier_bytes > 0)
        (void)snprintf(hosted, sizeof hosted, ", of these %.1f points at the host", 100 * c->verified.loaded_frac);
    if (q->aim == PLANNER_SERVE && c->verified.n)
        put_line(o, "simulated, %s: TTFT %s, TPOT %s: %s", text_count(count, (int64_t)c->verified.n, "request"),
                 units_format_time(s, c->verified.ttft_s), units_format_time(t, c->verified.tpot_s), plan_kept(a, c));
    if (q->prefix_cache && c->verified.n)
        put_line(o,
                 "%sof the prompts' tokens %.1f %% were found in caches%s; on paper it is %.1f %%, what an endless "
                 "cache finds",
                 option_given(c->options, "prefix-cache") ? "" : "--kv-offloading-size caches prefixes: ",
                 100 * c->verified.cached_frac, hosted, 100 * q->traffic.found_frac);
    if (c->tierless.n)
        put_line(o, "without the cache at the host %.1f %%: TTFT %s, TPOT %s%s", 100 * c->tierless.cached_frac,
                 units_format_time(s, c->tierless.ttft_s), units_format_time(t, c->tierless.tpot_s),
                 c->tierless.keeps ? "" : ", which breaks a promise");
    if (q->aim == PLANNER_SERVE && x->paper != PLANNER_SATURATED)
        put_line(
            o, "%sTTFT %s, TPOT %s; %.3g sequences in flight a copy on average; %.0f %% of the rate that saturates it",
            c->uneven       ? "on paper, for arrivals without bursts: "
            : c->verified.n ? "on paper: "
                            : "",
            units_format_time(s, p->ttft_s), units_format_time(t, p->tpot_s), p->batch,
            100 * x->rate_per_s / p->saturation_per_s);
    const char *near = plan_near_text(a, c, x);
    if (near && *near) put_line(o, "%s", near);
    if (q->aim == PLANNER_JOB)
        put_line(o, "done in %s, of it %s for the last answers; %s for all", units_format_time(s, p->makespan_s),
                 units_format_time(t, p->tail_s), plan_money(u, x->cost.usd_per_h * p->makespan_s / 3600));
    else
        write_tokens(o, x);
    put_line(o, "a GPU: %s weights, %s cache, %s left to the engine; %s a sequence, %.0f of a copy fit, on average",
             units_format_bytes(s, x->weight_bytes), units_format_bytes(t, x->pool_bytes),
             units_format_bytes(u, x->reserve_bytes), units_format_bytes((char[UNITS_TEXT_MAX]){0}, x->sequence_bytes),
             floor(x->pool_bytes / x->sequence_bytes) * (double)x->layout.dp);
    if (q->aim != PLANNER_JOB) {
        const double more = 100 * (h->rate_per_s / q->traffic.rate_per_s - 1), least = fmax(100 * known_within(c), .01);
        const char *how = plan_headroom_how(a, c);
        put_line(o, "breaks first%s: %s, from %.*g requests/s on (%s%.*f %% more than now); %s binds", how ? how : "",
                 plan_breaks(h->breaks), more < 1 ? 6 : 4, h->rate_per_s, more < least ? "less than " : "",
                 more < 1    ? 2
                 : more < 10 ? 1
                             : 0,
                 fmax(more, least), h->binds);
        put_line(o, "to go further: %s", plan_advice(h));
    }
    if (x->tower_bytes > 0)
        put_line(o, "and %s of towers beside the weights (--no-towers serves text alone); no image is encoded here",
                 units_format_bytes(s, x->tower_bytes));
    plan_hosted(o, c, "  ");
    if (c->verified.n && c->request.aim == PLANNER_JOB)
        put_line(o, "simulated, %s of one copy: done in %s, within the deadline",
                 text_count(count, (int64_t)c->verified.n, "request"), units_format_time(s, c->verified.makespan_s));
    else if (c->verified.n && c->request.aim == PLANNER_DAILY)
        put_line(o, "simulated, %s of one copy: served as they come, the queue does not grow",
                 text_count(count, (int64_t)c->verified.n, "request"));
    plan_doubts(a, o, c, "  ");
    if (f->weights || f->kv)
        put_line(o,
                 "note: %s%s%s narrower than stored; what that costs in quality is not planned (ridge compare "
                 "--preset quant)",
                 f->weights ? "weights" : "", f->weights && f->kv ? " and " : "", f->kv ? "cache" : "");
}

/* What kept every promise on paper and not when it was simulated, where nothing did. */
static void write_refuted(struct arena *a, struct out *o, const struct plan_case *c)
{
    const struct planner_confirmed *k = &c->confirmed;
    char s[UNITS_TEXT_MAX];
    if (c->result.best_n > 0 || k->near_n == 0) return;
    out_str(o, "\nrefuted when simulated: the nearest\n");
    for (size_t i = 0; i < k->near_n; i++) {
        const struct planner_plan *x = &k->near[i].plan;
        const struct planner_format *f = &c->format[x->format];
        const char *why = plan_refuted_text(a, c, &k->near[i]), *layout = plan_layout_words(a, &x->layout);
        put_line(o, "%lld x %s, %s%s%s%s%s, %s/h: %s", (long long)x->gpus, c->device[x->device].hw->key,
                 layout ? layout : "", f->weights ? " weights " : "", f->weights ? f->weights : "", f->kv ? " KV " : "",
                 f->kv ? f->kv : "", plan_money(s, x->cost.usd_per_h), why ? why : "");
    }
}

/* The nearest of each kind on each device. */
static void write_reasons(struct arena *a, struct out *o, const struct plan_case *c)
{
    static const enum planner_verdict ORDER[] = {PLANNER_SHORT,     PLANNER_SLOW_TPOT, PLANNER_SLOW_TTFT,
                                                 PLANNER_SATURATED, PLANNER_LATE_TPOT, PLANNER_LATE_TTFT,
                                                 PLANNER_LATE_JOB,  PLANNER_ILLEGAL};
    static const char *const WHAT[] = {"memory", "TPOT, a floor", "TTFT, a floor", "rate",
                                       "TPOT",   "TTFT",          "deadline",      "illegal"};
    out_str(o, "\nwhy others fail: how many, and the nearest of each\n");
    for (size_t k = 0; k < sizeof ORDER / sizeof *ORDER; k++)
        for (size_t d = 0; d < c->request.devices_n; d++) {
            const struct planner_tally *t = &c->result.tally[d][ORDER[k]];
            if (t->n == 0) continue;
            const struct planner_plan *x = &t->nearest;
            const struct planner_format *f = &c->format[x->format];
            const char *why = plan_reason(a, c, x), *layout = plan_layout_words(a, &x->layout);
            char clean[320];
            char ahead[48] = "";
            if (x->prefill > 0) (void)snprintf(ahead, sizeof ahead, " in two pools");
            if (x->gamma > 0) (void)snprintf(ahead, sizeof ahead, " %lld drafted", (long long)plan_drafted(c, x));
            put_line(o, "%s, %s: %zu; %s%s%s%s%s%s: %s", WHAT[k], c->device[d].hw->key, t->n, layout ? layout : "",
                     f->weights ? " weights " : "", f->weights ? f->weights : "", f->kv ? " KV " : "",
                     f->kv ? f->kv : "", ahead, why ? text_clean(clean, sizeof clean, why, strlen(why)) : "");
        }
    for (size_t d = 0; d < c->request.devices_n; d++)
        if (c->result.tally[d][PLANNER_DEARER].n)
            put_line(o, "dearer than a plan that keeps every promise%s, %s: %zu",
                     c->result.best_n > 0 ? "" : " on paper, and not looked at", c->device[d].hw->key,
                     c->result.tally[d][PLANNER_DEARER].n);
}

enum err_code plan_write(struct arena *a, const struct plan_case *c, enum table_format format, struct out *o,
                         struct err *e)
{
    const struct planner_request *q = &c->request;
    const bool text = format == TABLE_TEXT || format == TABLE_MD;
    const char *keys = option_get(c->options, "columns");
    size_t n = c->result.best_n, at = 0;
    if (c->top > 0 && (size_t)c->top < n) n = (size_t)c->top;
    struct plan_row *rows = arena_array(a, n + q->devices_n * PLANNER_VERDICTS + PLANNER_REFUTED_MAX + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (; at < n; at++) TRY(fill(a, c, &c->result.best[at], 0, &rows[at], e));
    if (n > 0 && c->verified.n > 0) { /* the others are what they are on paper */
        rows[0].simulated = true;
        rows[0].simulated_requests = (int64_t)c->verified.finished;
        if (q->aim == PLANNER_SERVE) {
            rows[0].simulated_ttft_s = c->verified.ttft_s;
            rows[0].simulated_tpot_s = c->verified.tpot_s;
            rows[0].simulated_ttft_within_frac = c->verified.ttft_error_frac;
            rows[0].simulated_tpot_within_frac = c->verified.tpot_error_frac;
        }
    }
    if (n > 0 && q->aim != PLANNER_JOB) {
        rows[0].breaks = plan_breaks(c->headroom.breaks);
        rows[0].breaks_per_s = c->headroom.rate_per_s;
        rows[0].breaks_within_frac =
            c->headroom.simulations > 0 && !isinf(c->headroom.within_frac) ? known_within(c) : (double)NAN;
    }
    if (n > 0 && c->verified.n > 0 && c->periods > 0) rows[0].simulated_periods = c->periods;
    for (size_t i = 0; !text && n == 0 && i < c->confirmed.near_n; i++) {
        TRY(fill_refuted(a, c, &c->confirmed.near[i], &rows[at], e));
        at++;
    }
    /* without its verdict a row that fails would read as an answer */
    const bool told = !text && (!keys || strstr(keys, "verdict") != NULL);
    for (size_t d = 0; d < q->devices_n && told; d++)
        for (int k = PLANNER_DEARER; k < PLANNER_VERDICTS; k++)
            if (c->result.tally[d][k].n) {
                TRY(fill(a, c, &c->result.tally[d][k].nearest, c->result.tally[d][k].n, &rows[at], e));
                at++;
            }
    struct table t = {.columns = COLUMNS,
                      .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                      .rows = rows,
                      .n_rows = at,
                      .stride_bytes = sizeof *rows,
                      .schema = "ridge.plan.1",
                      .tool = commands_tool(),
                      .scenario_json = option_scenario_json(a, c->options)};
    if (q->pools && !keys && text)
        keys =
            c->draft
                ? "hardware,gpus,layout,prefill_replicas,draft_tokens,weights,kv,usd_per_h,ttft_s,tpot_s,load_frac"
                : "hardware,gpus,layout,prefill_replicas,weights,kv,usd_per_h,usd_per_mtok_in,usd_per_mtok_out,ttft_s,"
                  "tpot_s";
    if (q->aim == PLANNER_SERVE && c->draft && !keys && text)
        keys = "hardware,gpus,layout,weights,kv,draft_tokens,usd_per_h,usd_per_mtok_in,usd_per_mtok_out,ttft_s,tpot_s";
    if (q->aim == PLANNER_JOB && !keys && text)
        keys = "hardware,gpus,layout,weights,kv,usd_per_h,usd,makespan_s,tail_s";
    if (q->aim == PLANNER_DAILY && !keys && text)
        keys = "hardware,gpus,layout,weights,kv,usd_per_h,usd_per_mtok_in,usd_per_mtok_out,batch,load_frac";
    if (keys && table_select(a, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    if (format != TABLE_TEXT) return table_write(&t, format, o, e);
    TRY(write_heading(a, o, c, e));
    if (n > 0) {
        write_winner(a, o, c);
        out_printf(o, "\nthe best of each device and precision%s\n",
                   c->uneven ? ", on paper: arrivals without bursts" : "");
        TRY(table_write(&t, format, o, e));
    }
    write_refuted(a, o, c);
    write_reasons(a, o, c);
    return ERR_OK;
}
