/* simulate_steady -- the steady state of what `ridge simulate` simulated, beside it. */
#include <math.h>

#include "calc/cli/simulate.h"
#include "calc/serve/steady.h"

struct steady_row {
    const char *metric;
    double simulated, steady, ratio;
    const char *marked;
};

#define ROW(field, kind, heading, help)                                                                                \
    COLUMN_AT(struct steady_row, field, COLUMN_##kind, UNITS_NONE, COLUMN_SHOWN, heading, help)

static const struct column COLUMNS[] = {
    ROW(metric, STRING, "what", "its name ends in its unit"),
    ROW(simulated, REAL, "simulated", "of the requests that were answered"),
    ROW(steady, REAL, "steady state", "of the rate asked, lengths and scheduler, without simulating"),
    ROW(ratio, REAL, "ratio", "steady state over simulated"),
    ROW(marked, STRING, "marked", "no steady state, and what limits the rate; clients, at once: what others wait for"),
};

const struct column *simulate_steady_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

static double steady_prompt_mean(const struct workload *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) sum += (double)w->request[i].prompt_tokens;
    return sum / (double)w->n;
}

static enum err_code solve(struct arena *a, const struct simulate_case *c, struct steady_result *out, struct err *e)
{
    const struct simulate_setup *s = &c->setup;
    const struct simulate_result *r = &c->result;
    const struct workload *w = &c->work;
    struct steady_lengths lengths, drafted;
    if (s->memory != SIMULATE_PAGED)
        return err_set(e, ERR_USAGE, "--rows steady: a steady state is described of paged caches alone");
    if (w->samples > 1)
        return err_set(e, ERR_USAGE, "--rows steady: a steady state is described of one answer to a prompt");
    if (s->draft.of && !(w->open && w->timed && w->span_s > 0))
        return err_set(e, ERR_USAGE, "--rows steady: with drafts a steady state is described of requests at a rate");
    if (s->groups > 1 && !simulate_parted(s))
        return err_set(e, ERR_USAGE,
                       "--rows steady: of several attention groups a steady state is described of one "
                       "pool and no static batches");
    const bool rated = w->open && w->timed && w->span_s > 0, closed = c->spec.concurrency > 0 && !c->trace;
    if (s->groups > 1 && !rated && (!closed || s->policy != SIMULATE_CHUNKED))
        return err_set(e, ERR_USAGE,
                       "--rows steady: of several attention groups a steady state is described of "
                       "requests at a rate, and of clients where prompts are beside those that decode");
    TRY(steady_lengths_of_work(a, w, r->prompt_tokens > 0 ? fmin(r->cached_tokens / r->prompt_tokens, .999) : 0,
                               &lengths, e));
    if (s->draft.of)
        TRY(steady_lengths_judged(a, &lengths, speculate_mean(s->draft.of, s->draft.gamma),
                                  speculate_square(s->draft.of, s->draft.gamma), &drafted, e));
    struct steady_setup q = {.plan = s->plan,
                             .calibrated = s->calibrated,
                             .server = s->server,
                             .overlapped = s->overlapped,
                             .overhead_s = s->overhead_s,
                             .slower = s->slower,
                             .policy = s->policy,
                             .budget_tokens = s->budget_tokens,
                             .max_seqs = s->max_seqs,
                             .blocks = s->blocks,
                             .block_tokens = s->block_tokens,
                             .groups = s->groups,
                             .watermark_frac = s->watermark_frac,
                             .replicas = s->replicas,
                             .route = s->route,
                             .lengths = s->draft.of ? &drafted : &lengths,
                             .draft = s->draft,
                             .load = STEADY_OFFLINE,
                             .requests = (double)w->n,
                             .ttft_limit_s = (double)NAN,
                             .tpot_limit_s = (double)NAN};
    const struct step *step = c->of.step;
    const struct steady_decode decode = {.plan = s->plan,
                                         .calibrated = s->calibrated,
                                         .server = s->server,
                                         .overlapped = s->overlapped,
                                         .overhead_s = s->overhead_s,
                                         .max_seqs = s->max_seqs,
                                         .blocks = s->blocks,
                                         .block_tokens = s->block_tokens,
                                         .replicas = c->decoders,
                                         .kv_bytes_per_token = step_kv_bytes_per_token(step),
                                         .link_bytes_per_s = s->pools.link_bytes_per_s,
                                         .link_latency_s = s->pools.link_latency_s};
    if (s->pools.prefill > 0) {
        if (s->pools.layers > 0)
            return err_set(e, ERR_USAGE, "--rows steady: a steady state is described of caches that cross whole");
        q.decode = &decode;
        q.replicas = s->pools.prefill;
    }
    if (rated) {
        q.load = STEADY_OPEN;
        q.rate_per_s = c->spec.rate_per_s > 0 && !c->trace ? c->spec.rate_per_s : (double)w->n / w->span_s;
        q.arrival_cv2 = workload_arrival_cv2(w);
    } else if (closed) {
        q.load = STEADY_CLOSED;
        q.concurrency = (double)c->spec.concurrency;
        q.think_s = c->spec.think_s;
        q.front_s = s->fronted ? engine_first_s(steady_prompt_mean(w)) : 0;
    }
    TRY(steady_solve(a, &q, out, e));
    if (s->server) steady_front(steady_prompt_mean(w), out);
    return ERR_OK;
}

static void add_spread(struct steady_row *row, const char *const names[5], const struct simulate_spread *x,
                       const struct steady_spread *y)
{
    const double simulated[] = {x->mean, x->p50, x->p90, x->p95, x->p99},
                 steady[] = {y->mean, y->p50, y->p90, y->p95, y->p99};
    for (int i = 0; i < 5; i++) row[i] = (struct steady_row){names[i], simulated[i], steady[i], (double)NAN, NULL};
}

enum err_code simulate_steady_rows(struct arena *a, const struct simulate_case *c, struct table *t, struct err *e)
{
    static const char *const TTFT[] = {"ttft_s_mean", "ttft_s_p50", "ttft_s_p90", "ttft_s_p95", "ttft_s_p99"},
                             *const TPOT[] = {"tpot_s_mean", "tpot_s_p50", "tpot_s_p90", "tpot_s_p95", "tpot_s_p99"},
                             *const ALL[] = {"latency_s_mean", "latency_s_p50", "latency_s_p90", "latency_s_p95",
                                             "latency_s_p99"};
    enum { ROWS = 26 };
    const struct simulate_result *r = &c->result, judged = simulate_judged(c);
    const double unknown = (double)NAN;
    struct simulate_spread ttft, tpot, latency;
    struct steady_result y;
    struct steady_row *row = arena_array(a, ROWS, sizeof *row);
    if (!row) return err_nomem(e);
    t->columns = simulate_steady_columns(&t->n_columns);
    t->rows = row;
    t->n_rows = 0;
    t->stride_bytes = sizeof *row;
    if (r->finished == 0) return ERR_OK; /* nothing was served: there is no state to describe */
    TRY(solve(a, c, &y, e));
    TRY(simulate_spread_of(&judged, simulate_ttft_s, &ttft, e));
    TRY(simulate_spread_of(&judged, simulate_tpot_s, &tpot, e));
    TRY(simulate_spread_of(&judged, simulate_latency_s, &latency, e));
    const bool open = c->work.open && c->work.timed && c->work.span_s > 0;
    const char *marked =
        open ? arena_printf(a, "no steady state: %s", steady_limit_name(y.by)) : steady_limit_name(y.by);
    if (!marked) return err_nomem(e);
    size_t n = 0;
    row[n++] = (struct steady_row){"saturation_per_s", unknown, y.saturation_rate_per_s, unknown, NULL};
    row[n++] = (struct steady_row){"served_per_s", (double)r->finished / r->span_s, y.rate_per_s, unknown, NULL};
    row[n++] = (struct steady_row){"output_tok_per_s", r->output_tokens / r->span_s, y.output_tok_per_s, unknown, NULL};
    row[n++] = (struct steady_row){"prompt_tok_per_s", r->prompt_tokens / r->span_s, y.input_tok_per_s, unknown, NULL};
    row[n++] = (struct steady_row){"busy_frac", r->busy_s / (r->span_s * (double)c->setup.replicas), y.utilisation,
                                   unknown, NULL};
    row[n++] = (struct steady_row){"batch_mean", r->mean_running, y.batch, unknown, NULL};
    row[n++] = (struct steady_row){"blocks_frac", r->block_frac, y.blocks_frac, unknown, NULL};
    if (c->setup.pools.prefill > 0) {
        const double span_s = r->span_s;
        struct simulate_spread move;
        TRY(simulate_spread_of(&judged, simulate_move_s, &move, e));
        row[n - 3] = (struct steady_row){"prefill_busy_frac", r->pool[0].busy_s / span_s / (double)r->pool[0].replicas,
                                         y.utilisation, unknown, NULL};
        row[n - 2].simulated = r->pool[0].mean_running;
        row[n - 2].metric = "prefill_batch_mean";
        row[n - 1].simulated = r->pool[0].block_frac;
        row[n - 1].metric = "prefill_blocks_frac";
        row[n++] = (struct steady_row){"decode_busy_frac", r->pool[1].busy_s / span_s / (double)r->pool[1].replicas,
                                       y.decode_utilisation, unknown, NULL};
        row[n++] = (struct steady_row){"decode_batch_mean", r->pool[1].mean_running, y.decode_batch, unknown, NULL};
        row[n++] = (struct steady_row){"move_s_mean", move.mean, y.move_s, unknown, NULL};
    }
    add_spread(row + n, TTFT, &ttft, &y.ttft_s);
    add_spread(row + n + 5, TPOT, &tpot, &y.tpot_s);
    add_spread(row + n + 10, ALL, &latency, &y.latency_s);
    n += 15;
    for (size_t i = 0; i < n; i++) {
        row[i].ratio = row[i].steady / row[i].simulated;
        if (y.saturated)
            row[i].marked = marked;
        else if (r->growing)
            row[i].marked = "no steady state as simulated";
    }
    t->n_rows = n;
    return ERR_OK;
}
