/* simulate_output -- what `ridge simulate` writes: rows and pictures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plot.h"
#include "calc/cli/simulate.h"
#include "calc/cli/simulate_charts.h"
#include "calc/cli/simulate_summary.h"

struct request_row {
    int64_t request, replica, decoder, prompt_tokens, output_tokens, cached_tokens, preemptions;
    double move_s, arrival_s, wait_s, ttft_s, tpot_s, latency_s, finish_s;
    const char *marked;
};

#define REQ(field, kind, unit, heading, help)                                                                          \
    COLUMN_AT(struct request_row, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, heading, help)

static const struct column REQUESTS[] = {
    REQ(request, INT, COUNT, "request", "in the order of the workload"),
    REQ(replica, INT, COUNT, "replica", "that served it"),
    REQ(arrival_s, REAL, SECONDS, "arrival", "from the first"),
    REQ(prompt_tokens, INT, COUNT, "in", "tokens of the prompt"),
    REQ(output_tokens, INT, COUNT, "out", "tokens of the answer"),
    REQ(cached_tokens, INT, COUNT, "cached", "of the prompt, found in the prefix cache"),
    REQ(preemptions, INT, COUNT, "lost", "times that it lost its cache"),
    REQ(wait_s, REAL, SECONDS, "wait", "from arrival to the first step"),
    REQ(ttft_s, REAL, SECONDS, "TTFT", "to the first token"),
    REQ(tpot_s, REAL, SECONDS, "TPOT", "per token after the first"),
    REQ(latency_s, REAL, SECONDS, "latency", "to the last token"),
    COLUMN_AT(struct request_row, decoder, COLUMN_INT, UNITS_COUNT, 0, "decoder",
              "two pools: the replica that decoded it"),
    COLUMN_AT(struct request_row, move_s, COLUMN_REAL, UNITS_SECONDS, 0, "moved",
              "two pools: from the first token until its cache was there"),
    COLUMN_AT(struct request_row, finish_s, COLUMN_REAL, UNITS_SECONDS, 0, "finish", "time of the last token"),
    COLUMN_AT(struct request_row, marked, COLUMN_STRING, UNITS_NONE, 0, "marked", "partial, refused, or growing queue"),
};

#define STEP(field, kind, unit, heading, help)                                                                         \
    COLUMN_AT(struct simulate_step, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, heading, help)

static const struct column STEPS[] = {
    STEP(replica, INT, COUNT, "replica", "where"),
    STEP(start_s, REAL, SECONDS, "start", "from the first arrival"),
    STEP(end_s, REAL, SECONDS, "end", "of the last of them"),
    STEP(steps, INT, COUNT, "steps", "in which nothing but lengths changed"),
    STEP(decoding, INT, COUNT, "decoding", "sequences that make a token in each"),
    STEP(prefilling, INT, COUNT, "prefilling", "pieces of prompts"),
    STEP(prefill_tokens, INT, COUNT, "prompt", "tokens of those"),
    STEP(running, INT, COUNT, "batch", "sequences in the batch"),
    STEP(waiting, INT, COUNT, "queue", "requests that wait"),
    STEP(blocks, INT, COUNT, "blocks", "in use at the end"),
    STEP(stored_tokens, INT, COUNT, "stored", "tokens in the cache at the end, those that several share once"),
};

const struct column *simulate_columns(enum simulate_rows which, size_t *n)
{
    if (which == SIMULATE_STEADY) return simulate_steady_columns(n);
    if (which == SIMULATE_SUMMARY) return simulate_summary_columns(n);
    *n = which == SIMULATE_REQUESTS ? sizeof REQUESTS / sizeof *REQUESTS : sizeof STEPS / sizeof *STEPS;
    return which == SIMULATE_REQUESTS ? REQUESTS : STEPS;
}

/* ---- the answer ---- */

/* Of a run that was stopped, those that had come. */
static enum err_code request_rows(struct arena *a, const struct simulate_case *c, struct request_row **out, size_t *n,
                                  struct err *e)
{
    const struct simulate_result *r = &c->result;
    struct request_row *rows = arena_array(a, r->n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    *n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct simulate_record *x = &r->record[i];
        if (r->partial && isnan(x->arrival_s)) continue;
        const bool refused = x->arrival_s >= 0 && isnan(x->start_s) && !r->partial;
        rows[(*n)++] = (struct request_row){.request = (int64_t)i,
                                            .replica = isnan(x->arrival_s) || refused ? TABLE_INT_UNKNOWN : x->replica,
                                            .decoder = isnan(x->moved_s) ? TABLE_INT_UNKNOWN : x->decoder,
                                            .move_s = simulate_move_s(x),
                                            .prompt_tokens = x->prompt_tokens,
                                            .output_tokens = x->output_tokens,
                                            .cached_tokens = x->cached_tokens,
                                            .preemptions = x->preemptions,
                                            .arrival_s = x->arrival_s,
                                            .wait_s = simulate_wait_s(x),
                                            .ttft_s = simulate_ttft_s(x),
                                            .tpot_s = simulate_tpot_s(x),
                                            .latency_s = simulate_latency_s(x),
                                            .finish_s = x->finish_s,
                                            .marked = refused ? "refused" : simulate_marked(c)};
    }
    *out = rows;
    return ERR_OK;
}

enum err_code simulate_write(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                             enum table_format format, const char *keys, struct out *o, struct err *e)
{
    static const char *const SCHEMA[] = {"ridge.simulation.1", "ridge.simulation.requests.1",
                                         "ridge.simulation.steps.1", "ridge.simulation.steady.1"};
    struct simulate_summary s;
    struct request_row *rows = NULL;
    struct table t = {
        .tool = commands_tool(), .schema = SCHEMA[which], .scenario_json = option_scenario_json(a, c->options)};
    t.columns = simulate_columns(which, &t.n_columns);
    TRY(simulate_summary_of(a, c, &s, e));
    if (which == SIMULATE_SUMMARY && format == TABLE_TEXT && !keys) {
        TRY(simulate_summary_text(o, c, &s, e));
        return out_check(o, e);
    }
    if (which == SIMULATE_REQUESTS) {
        TRY(request_rows(a, c, &rows, &t.n_rows, e));
        t.rows = rows;
        t.stride_bytes = sizeof *rows;
    } else if (which == SIMULATE_STEPS) {
        t.rows = c->steps;
        t.n_rows = c->steps_n;
        t.stride_bytes = sizeof *c->steps;
    } else if (which == SIMULATE_STEADY) {
        TRY(simulate_steady_rows(a, c, &t, e));
    } else {
        t.rows = &s;
        t.n_rows = 1;
        t.stride_bytes = sizeof s;
    }
    if (keys && table_select(a, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    if (which == SIMULATE_SUMMARY && format == TABLE_TEXT) return table_write_sheet(&t, o, e);
    return table_write(&t, format, o, e);
}

/* ---- pictures ---- */

static enum err_code plot_parts(struct arena *a, const struct simulate_case *c, const char *subtitle,
                                const char *output, struct err *e)
{
    const double none[] = {(double)NAN, (double)NAN};
    struct chart chart[2];
    const char *title = arena_printf(a, "%s: times to first and per output token", c->of.model.name);
    TRY(simulate_part_charts(a, &c->result, none, none, chart, e));
    return title ? chart_render(a, chart, 2, title, subtitle, output, e) : err_nomem(e);
}

enum err_code simulate_plot(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                            const char *output, struct err *e)
{
    struct simulate_bins *b = arena_alloc(a, sizeof *b);
    struct out *csv;
    char n[TEXT_COUNT_MAX];
    if (!b) return err_nomem(e);
    const char *subtitle =
        arena_printf(a, "%s, %s, %s%s", c->of.hw.key, text_count(n, (int64_t)c->result.n, "request"), c->policy,
                     c->result.partial   ? ", PARTIAL"
                     : c->result.growing ? ", NO STEADY STATE"
                                         : "");
    if (!subtitle) return err_nomem(e);
    if (which == SIMULATE_REQUESTS) return plot_parts(a, c, subtitle, output, e);
    if (c->steps_n == 0) return err_set(e, ERR_NO, "no step was made: nothing to draw");
    simulate_bins_of(c->steps, c->steps_n, &c->result, (double)c->setup.blocks * (double)c->setup.replicas, b);
    TRY(out_memory(a, &csv, e));
    out_str(csv, "time_s,batch,wait_s,blocks_percent\n");
    for (size_t i = 0; i < SIMULATE_BINS; i++)
        out_printf(csv, "%.9g,%.9g,%.9g,%.9g\n", b->time_s[i], b->batch[i], b->wait_s[i], b->blocks_percent[i]);
    const char *title = arena_printf(a, "%s: batch, wait and cache over time", c->of.model.name);
    const struct plot_request r = {
        .kind = "timeline", .csv = out_text(csv, NULL), .title = title, .subtitle = subtitle, .output = output};
    if (!r.csv || !title) return err_nomem(e);
    return plot_render(a, &r, e);
}
