/* plan_rows -- the columns of `ridge plan`, and its plans and failures as rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/plan_parts.h"

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

enum err_code plan_rows(struct arena *a, const struct plan_case *c, bool text, struct table *out, struct err *e)
{
    const struct planner_request *q = &c->request;
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
            c->headroom.simulations > 0 && !isinf(c->headroom.within_frac) ? plan_known_within(c) : (double)NAN;
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
    *out = t;
    return ERR_OK;
}

enum err_code plan_write(struct arena *a, const struct plan_case *c, enum table_format format, struct out *o,
                         struct err *e)
{
    struct table t;
    TRY(plan_rows(a, c, format == TABLE_TEXT || format == TABLE_MD, &t, e));
    return format == TABLE_TEXT ? plan_text(a, o, c, &t, e) : table_write(&t, format, o, e);
}
