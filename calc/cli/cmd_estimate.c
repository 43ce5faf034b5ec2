/* cmd_estimate -- memory, prefill and decode time of models on devices, for lists of batches and contexts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/estimate.h"
#include "calc/cli/plot.h"
#include "calc/cli/progress.h"
#include "calc/base/text.h"

#define TEXT(name_, letter_, value_, fallback_, help_)                                                                 \
    {.name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_}
#define FLAG(name_, help_) {.name = name_, .kind = OPTION_FLAG, .help = help_}

static const struct option OPTIONS[] = {
    {.name = "model", .letter = 'm', .kind = OPTION_MANY, .value = "NAME,...", .group = "What",
     .help = "a built-in (ridge list models), a config.json, a checkpoint directory, or a Hugging Face id"},
    {.name = "gpu", .letter = 'g', .kind = OPTION_MANY, .value = "NAME[:N],...",
     .help = "a built-in device (ridge list hardware) or a file of your own, and how many of it"},
    TEXT("tp", 0, "N", NULL, "GPUs that share one copy of the model (default: all; the others hold further copies)"),
    {.name = "set", .kind = OPTION_MANY, .value = "KEY=VALUE,...",
     .help = "change a key of the config before reading it; K=8 and other letters of the course work too"},
    {.name = "batch", .letter = 'b', .kind = OPTION_TEXT, .value = "LIST", .fallback = "1", .group = "Workload",
     .help = "sequences decoded together, per copy: 1,16,64 or 1..512*2 or 1..64+8"},
    TEXT("context", 'c', "LIST", "1024", "tokens of context at the decode step, and of the prompt: 1Ki..128Ki*2"),
    TEXT("prompt", 0, "LIST", NULL, "tokens in; with --generate the decode step is the mean over the generation"),
    TEXT("generate", 0, "LIST", NULL, "tokens out"),
    TEXT("workload", 0, "NAME", NULL, "tokens in and out of a built-in workload (chat, code, long-context, reasoning) or a file"),
    {.name = "weights", .kind = OPTION_TEXT, .value = "FORMAT", .group = "Precision (ridge list dtypes)",
     .help = "format of the linear layers (default: as the checkpoint stores them)"},
    TEXT("kv", 0, "FORMAT", NULL, "format of the KV cache; none: decoding without a cache"),
    TEXT("activations", 0, "FORMAT", NULL, "format of activations"),
    {.name = "fidelity", .kind = OPTION_TEXT, .value = "NAME", .fallback = "roofline", .group = "How it is counted",
     .help = "roofline: every operator at its own limit, in sequence; bound: all work pooled"},
    FLAG("course", "the conventions and constants of CS336 lecture 10 (ridge list conventions)"),
    TEXT("causal", 0, "half|full", "half", "attention products: pairs that the mask keeps, or all"),
    TEXT("prefill", 0, "one|together", "one", "prefill one prompt alone, or B together"),
    TEXT("lm-head", 0, "last|all", "last", "logits for the last position, or for all"),
    TEXT("embedding", 0, "gathered|full", "gathered", "input embedding: rows of the tokens, or the whole table"),
    TEXT("mlp", 0, "separate|fused", "separate", "MLP products as kernels of their own, or one kernel"),
    FLAG("ignore-memory", "show times of points that do not fit, marked"),
    {.name = "gpu-memory-utilization", .kind = OPTION_TEXT, .value = "FRAC", .group = "An engine's cache pool (vLLM's names; any of them shows the pool)",
     .help = "part of the GPU that the engine takes (default: the engine's)"},
    TEXT("max-model-len", 0, "N", NULL, "longest sequence (default: the model's)"),
    TEXT("max-num-seqs", 0, "N", NULL, "most sequences in a step"),
    TEXT("max-num-batched-tokens", 0, "N", NULL, "most tokens in a step"),
    TEXT("block-size", 0, "N", "16", "tokens in a cache block"),
    TEXT("engine", 0, "NAME", "vllm-v1", "vllm-v0, vllm-v1, vllm-0.21 or vllm-runner-v2"),
    FLAG("offline", "defaults of the library instead of the server"),
    TEXT("kv-cache-memory", 0, "SIZE", NULL, "the pool itself, when known: 16GiB"),
    TEXT("activation-memory", 0, "SIZE", NULL, "what the engine reserves for activations (default: predicted)"),
    TEXT("non-torch-memory", 0, "SIZE", NULL, "memory outside the tensor allocator (default: the engine's)"),
    {.name = "by-op", .kind = OPTION_FLAG, .group = "Output", .help = "one row per operator, for a single point"},
    TEXT("only", 0, "PART", "all", "memory, prefill or decode"),
    TEXT("format", 'f', "NAME", "text", "text, md, csv, json or jsonl"),
    TEXT("output", 'o', "FILE", NULL, "write to a file, complete or not at all"),
    TEXT("columns", 0, "KEY,...", NULL, "these columns, in this order (ridge list columns)"),
    TEXT("plot", 0, "FILE", NULL, "a picture: .png .svg .pdf, or - for the terminal; with --by-op a roofline"),
    TEXT("plot-kind", 0, "NAME", NULL, "roofline, batch or memory (default: roofline with --by-op, else batch; memory with --only memory)"),
    TEXT("scenario", 0, "FILE", NULL, "options from a JSON object, or from a result that ridge wrote as JSON"),
};

/* Where rows go: streamed as they come, or kept until the table is whole. */
struct sink {
    struct arena *arena;
    struct table table;
    enum table_format format;
    struct out *out;
    bool streamed, first;
    struct estimate_row *rows;
    size_t rows_n, fits_n, points_n, all_points;
    struct progress progress;
    double least_short_bytes; /* of points that do not fit */
    double need_bytes, capacity_bytes;
    const char *notes[64];
};

enum { CHUNK = 4096, KEEP_MAX = 1 << 20, TEXT_MAX_ROWS = 100000 };

static void count_fit(struct sink *s, const struct estimate_row *r)
{
    s->points_n++;
    if (r->fits) s->fits_n++;
    if (!r->fits && !(-r->left_bytes >= s->least_short_bytes)) {
        s->least_short_bytes = -r->left_bytes;
        s->need_bytes = r->memory_bytes;
        s->capacity_bytes = r->capacity_bytes;
    }
}

static enum err_code run_case(struct sink *s, const struct estimate_request *q, const struct estimate_case *c,
                              struct err *e)
{
    const size_t points = estimate_points(q);
    for (size_t at = 0; at < points; at += CHUNK) {
        const size_t n = points - at < CHUNK ? points - at : CHUNK;
        struct arena *scratch = s->streamed ? arena_open() : NULL;
        if (s->streamed && !scratch) return err_nomem(e);
        struct estimate_row *rows = s->streamed ? arena_array(scratch, n, sizeof *rows) : s->rows + s->rows_n;
        enum err_code code = rows ? estimate_eval(scratch ? scratch : s->arena, q, c, at, n, rows, e) : err_nomem(e);
        for (size_t i = 0; i < n && code == ERR_OK; i++) {
            count_fit(s, &rows[i]);
            if (!s->streamed) continue;
            code = table_row(&s->table, s->format, &rows[i], s->first, s->out, e);
            s->first = false;
        }
        arena_close(scratch);
        TRY(code);
        if (!s->streamed) s->rows_n += n;
        progress_show(&s->progress, s->points_n, s->all_points);
    }
    return ERR_OK;
}

/* ---- text ---- */

static void write_heading(struct out *o, const struct estimate_request *q, const struct estimate_case *c)
{
    const struct model *m = &c->model;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX], w[UNITS_TEXT_MAX];
    char name[96];
    const struct dtype *lin = &m->weights[m->kinds[m->kinds_n - 1].ffn.kind == FFN_MOE ? WEIGHT_EXPERT : WEIGHT_FFN];
    out_printf(o, "%s on ", text_clean(name, sizeof name, m->name, strlen(m->name)));
    if (c->gpus > 1) out_printf(o, "%lld x ", (long long)c->gpus);
    out_printf(o, "%s", text_clean(name, sizeof name, c->hw.name, strlen(c->hw.name)));
    if (c->gpus > 1) out_printf(o, " (TP %lld", (long long)c->tp);
    if (c->replicas > 1) out_printf(o, ", %lld copies", (long long)c->replicas);
    out_printf(o, "%s\n", c->gpus > 1 ? "; bytes are per GPU)" : "");
    out_printf(o, "  %s parameters", units_format_count(a, c->params.total));
    if (c->params.active < c->params.total) out_printf(o, " (%s active)", units_format_count(b, c->params.active));
    out_printf(o, ", %lld layers, %s; weights %s, KV %s\n", (long long)m->layers, m->attention, lin->name,
               q->uncached ? "none" : m->kv.name);
    const double kv = step_kv_bytes_per_token_full(c->step) + step_kv_bytes_per_token_windowed(c->step);
    out_printf(o, "  weights %s, KV %s bytes per token%s, capacity %s (%s)\n",
               units_format_bytes(w, step_weight_bytes(c->step)), units_format_digits(a, q->uncached ? 0 : kv), c->tp > 1 ? " and GPU" : "",
               units_format_bytes(b, c->capacity_bytes), units_format_bytes_iec(d, c->capacity_bytes));
    double peak;
    const char *unit;
    if (step_peak(&c->hw, lin, &peak, &unit, NULL) == ERR_OK)
        out_printf(o, "  %s peak %s, bandwidth %s, ridge %.1f flops/byte\n", unit,
                   units_format(a, UNITS_FLOPS_PER_S, peak), units_format(b, UNITS_BYTES_PER_S, c->hw.bandwidth_bytes_per_s),
                   peak / c->hw.bandwidth_bytes_per_s);
    out_printf(o, "  fidelity %s (a floor: servers are 2-4x slower), conventions %s\n",
               step_fidelity_name(q->fidelity), q->conventions_text);
    if (m->notes) out_printf(o, "  note: %s\n", m->notes);
}

static enum err_code write_pool(struct out *o, const struct estimate_request *q, const struct estimate_case *c, struct err *e)
{
    struct pool_request r;
    struct pool p;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], line[512];
    TRY(estimate_pool(q, c, &r, &p, e));
    out_printf(o, "  engine %s: utilization %.3g, max_num_seqs %lld, max_num_batched_tokens %lld, block %lld\n",
               r.engine->name, r.utilization_frac, (long long)r.max_num_seqs, (long long)r.max_num_batched_tokens,
               (long long)r.block_tokens);
    if (!isnan(p.budget_bytes)) {
        out_printf(o, "    budget %s", units_format_bytes_iec(a, p.budget_bytes));
        out_printf(o, " - weights %s", units_format_bytes_iec(a, r.weight_bytes_per_gpu));
        out_printf(o, " - activations %s (%s)", units_format_bytes_iec(a, p.activation_bytes), p.activation_by);
        out_printf(o, " - other %s", units_format_bytes_iec(a, p.non_torch_bytes));
        if (p.graph_bytes > 0) out_printf(o, " - graphs %s", units_format_bytes_iec(a, p.graph_bytes));
        out_char(o, '\n');
    }
    out_printf(o, "    KV pool %s, %s tokens in %s blocks", units_format_bytes_iec(a, p.pool_bytes),
               units_format_digits(b, (double)p.tokens), units_format_digits(line, (double)p.blocks));
    if (!isnan(p.max_concurrency))
        out_printf(o, ", %.2fx concurrency at %lld tokens", p.max_concurrency, (long long)r.max_model_len_tokens);
    out_char(o, '\n');
    if (p.verdict != POOL_STARTS) out_printf(o, "    %s\n", pool_explain(&r, &p, line, sizeof line));
    return ERR_OK;
}

/* Columns of a table for people: what varies, and what was asked for. A table without a heading over it says in each row
 * whose it is. */
static enum err_code text_columns(struct arena *a, const struct estimate_request *q, bool headed, struct table *t,
                                  struct err *e)
{
    const char *keys = arena_printf(
        a, "%s%s%s%s%s", headed ? "" : "model,hardware,fidelity,", q->batch_n > 1 || (q->context_n <= 1 && !q->averaged) ? "batch" : "context",
        q->batch_n > 1 && estimate_points(q) > q->batch_n ? ",context" : "",
        q->only == ONLY_MEMORY ? ",weight_bytes,kv_bytes,kv_allocated_bytes,activation_bytes,memory_bytes,left_bytes,fits"
        : q->only == ONLY_ALL  ? ",kv_bytes,activation_bytes,memory_bytes,left_bytes,fits" : ",memory_bytes,left_bytes,fits",
        q->only == ONLY_ALL ? ",prefill_s,decode_step_s,user_tok_per_s,throughput_tok_per_s,bounds"
        : q->only == ONLY_PREFILL ? ",prefill_s,prefill_bound_by"
        : q->only == ONLY_DECODE  ? ",decode_step_s,user_tok_per_s,throughput_tok_per_s,decode_bound_by" : "");
    if (!keys) return err_nomem(e);
    return table_select(a, t, keys, t, e);
}

static enum err_code write_text_case(struct sink *s, const struct estimate_request *q, const struct estimate_case *c,
                                     const struct estimate_row *rows, size_t n, const char *columns, struct err *e)
{
    struct table t = s->table;
    t.rows = rows;
    t.n_rows = n;
    write_heading(s->out, q, c);
    if (q->engine) TRY(write_pool(s->out, q, c, e));
    out_char(s->out, '\n');
    if (!columns) TRY(text_columns(s->arena, q, true, &t, e));
    return table_write(&t, s->format, s->out, e);
}

/* ---- by operator ---- */

/* Tables of one point, a phase each. */
static enum err_code write_phases(struct sink *s, const struct estimate_request *q, const struct estimate_case *c,
                                  struct table t, const struct estimate_op_row *rows, size_t n, struct err *e)
{
    write_heading(s->out, q, c);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && rows[end].op.phase == rows[i].op.phase) end++;
        const bool one = !q->prefill_together && strcmp(rows[i].op.phase, step_phase_name(STEP_PREFILL)) == 0;
        out_printf(s->out, "\n%s, batch %lld, context %lld (roofline, all layers)\n", rows[i].op.phase,
                   one ? 1LL : (long long)rows[i].batch, (long long)rows[i].context);
        t.rows = rows + i;
        t.n_rows = end - i;
        TRY(table_write(&t, s->format, s->out, e));
        i = end;
    }
    return ERR_OK;
}

static enum err_code write_ops(struct sink *s, const struct estimate_request *q, const struct estimate_case *cases,
                               size_t cases_n, struct err *e)
{
    struct table t = s->table;
    struct estimate_op_row **rows = arena_array(s->arena, cases_n, sizeof *rows);
    size_t *n = arena_array(s->arena, cases_n, sizeof *n), total = 0, at = 0;
    if (!rows || !n) return err_nomem(e);
    t.columns = estimate_op_columns(&t.n_columns);
    t.stride_bytes = sizeof **rows;
    t.schema = "ridge.operators.1";
    const char *keys = option_get(q->options, "columns");
    if (keys && table_select(s->arena, &t, keys, &t, e) != ERR_OK) return err_prepend(e, "--columns: ");
    for (size_t i = 0; i < cases_n; i++) {
        if (s->rows[i].fits || q->ignore_memory)
            TRY(estimate_ops(s->arena, q, &cases[i], &s->rows[i], &rows[i], &n[i], e));
        total += n[i];
    }
    if (s->format == TABLE_TEXT) {
        for (size_t i = 0; i < cases_n; i++) {
            if (i) out_char(s->out, '\n');
            TRY(write_phases(s, q, &cases[i], t, rows[i], n[i], e));
        }
        return ERR_OK;
    }
    struct estimate_op_row *all = arena_array(s->arena, total ? total : 1, sizeof *all);
    if (!all) return err_nomem(e);
    for (size_t i = 0; i < cases_n; i++)
        for (size_t k = 0; k < n[i]; k++) all[at++] = rows[i][k];
    t.rows = all;
    t.n_rows = total;
    return table_write(&t, s->format, s->out, e);
}

/* ---- pictures ---- */

static enum err_code csv_of(struct arena *a, const struct table *t, const char **out, struct err *e)
{
    struct out *o;
    TRY(out_memory(a, &o, e));
    TRY(table_write(t, TABLE_CSV, o, e));
    *out = out_text(o, NULL);
    return *out ? ERR_OK : err_nomem(e);
}

/* One row per peak rate that the device has, that of the model's weights first. */
static enum err_code ceilings_csv(struct arena *a, const struct estimate_case *c, const char **out, struct err *e)
{
    struct out *o;
    double peak;
    const char *own;
    const struct model *m = &c->model;
    TRY(step_peak(&c->hw, &m->weights[WEIGHT_FFN], &peak, &own, e));
    TRY(out_memory(a, &o, e));
    out_str(o, "dtype,peak_flops_per_s,bandwidth_bytes_per_s\n");
    out_printf(o, "%s,%.17g,%.17g\n", own, peak, c->hw.bandwidth_bytes_per_s);
    for (enum hw_dtype d = HW_FP32_VECTOR; d < HW_DTYPES_N; d++)
        if (!isnan(c->hw.peak_flops_per_s[d]) && strcmp(hw_dtype_name(d), own) != 0)
            out_printf(o, "%s,%.17g,%.17g\n", hw_dtype_name(d), c->hw.peak_flops_per_s[d], c->hw.bandwidth_bytes_per_s);
    *out = out_text(o, NULL);
    return *out ? ERR_OK : err_nomem(e);
}

static const char *plot_kind(const struct estimate_request *q)
{
    const char *kind = option_get(q->options, "plot-kind");
    if (kind) return kind;
    return q->by_op ? "roofline" : q->only == ONLY_MEMORY ? "memory" : "batch";
}

static enum err_code draw(struct sink *s, const struct estimate_request *q, const struct estimate_case *cases, struct err *e)
{
    struct plot_request p = {.kind = plot_kind(q), .output = option_get(q->options, "plot")};
    struct table t = {.rows = s->rows, .n_rows = s->rows_n, .stride_bytes = sizeof *s->rows};
    t.columns = estimate_columns(&t.n_columns);
    if (strcmp(p.kind, "roofline") == 0) {
        struct estimate_op_row *ops;
        if (!s->rows[0].fits && !q->ignore_memory) return ERR_OK; /* no times to show; judge says so */
        TRY(estimate_ops(s->arena, q, &cases[0], &s->rows[0], &ops, &t.n_rows, e));
        t.columns = estimate_op_columns(&t.n_columns);
        t.rows = ops;
        t.stride_bytes = sizeof *ops;
        TRY(ceilings_csv(s->arena, &cases[0], &p.ceilings_csv, e));
    }
    TRY(csv_of(s->arena, &t, &p.csv, e));
    return plot_render(s->arena, &p, e);
}

/* ---- the command ---- */

static enum err_code open_sink(struct arena *a, const struct option_values *v, const struct estimate_request *q,
                               size_t cases_n, struct sink *s, struct err *e)
{
    *s = (struct sink){.arena = a, .first = true, .least_short_bytes = (double)NAN};
    if (table_format_parse(option_get(v, "format"), &s->format, e) != ERR_OK) return err_prepend(e, "--format: ");
    size_t columns_n;
    const struct column *columns = estimate_columns(&columns_n);
    s->table = (struct table){.columns = columns, .n_columns = columns_n, .stride_bytes = sizeof *s->rows,
                              .schema = "ridge.estimate.1", .tool = commands_tool(),
                              .scenario_json = option_scenario_json(a, v)};
    if (option_get(v, "columns") && !q->by_op &&
        table_select(a, &s->table, option_get(v, "columns"), &s->table, e) != ERR_OK)
        return err_prepend(e, "--columns: ");
    if (option_get(v, "plot-kind") && !option_get(v, "plot"))
        return err_set(e, ERR_USAGE, "--plot-kind says what --plot FILE shows; the file is missing");
    if (option_get(v, "plot")) TRY(plot_check(plot_kind(q), option_get(v, "plot"), e));
    const size_t rows = estimate_points(q) * cases_n;
    if (option_get(v, "plot") && strcmp(plot_kind(q), "roofline") == 0 && rows != 1)
        return err_set(e, ERR_USAGE, "a roofline picture shows one point: one model, device, batch and context");
    s->all_points = rows;
    progress_start(&s->progress, "points");
    const bool text = s->format == TABLE_TEXT || s->format == TABLE_MD;
    if (q->by_op && rows / cases_n != 1)
        return err_set(e, ERR_USAGE, "--by-op shows one point: give one batch and one context");
    s->streamed = !text && !q->by_op && !option_get(v, "plot");
    if (text && rows > TEXT_MAX_ROWS)
        return err_set(e, ERR_RANGE, "%zu rows are too many for a text table; use --format csv -o FILE", rows);
    if (!s->streamed) {
        if (rows > KEEP_MAX) return err_set(e, ERR_RANGE, "%zu points are too many for one picture", rows);
        s->rows = arena_array(a, rows, sizeof *s->rows);
        if (!s->rows) return err_nomem(e);
    }
    return out_open(a, option_get(v, "output"), &s->out, e);
}

static enum err_code write_kept(struct sink *s, const struct estimate_request *q, const struct estimate_case *cases,
                                size_t cases_n, struct err *e)
{
    const size_t each = estimate_points(q);
    const char *columns = option_get(q->options, "columns");
    if (q->by_op) return write_ops(s, q, cases, cases_n, e);
    if (s->format != TABLE_TEXT) {
        if (s->format == TABLE_MD && !columns) TRY(text_columns(s->arena, q, false, &s->table, e));
        s->table.rows = s->rows;
        s->table.n_rows = s->rows_n;
        return table_write(&s->table, s->format, s->out, e);
    }
    for (size_t i = 0; i < cases_n; i++) {
        if (i) out_char(s->out, '\n');
        TRY(write_text_case(s, q, &cases[i], s->rows + i * each, each, columns, e));
    }
    return ERR_OK;
}

/* The engine's own answer when its flags were given: no cache pool is a no. */
static enum err_code judge(const struct sink *s, const struct estimate_request *q, const struct estimate_case *cases,
                           size_t cases_n, struct err *e)
{
    char need[UNITS_TEXT_MAX], more[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
    if (q->engine) {
        bool starts = false;
        struct pool_request r;
        struct pool p;
        char line[512] = "";
        for (size_t i = 0; i < cases_n; i++) {
            TRY(estimate_pool(q, &cases[i], &r, &p, e));
            starts = starts || p.verdict == POOL_STARTS;
            if (!starts) (void)pool_explain(&r, &p, line, sizeof line);
        }
        if (!starts) return err_set(e, ERR_NO, "the engine %s", line);
    }
    if (s->fits_n > 0 || q->ignore_memory) return ERR_OK;
    return err_set(e, ERR_NO, "%s: needs %s, %s more than the %s of one GPU",
                   s->points_n == 1 ? "does not fit" : "no point fits; the smallest shortfall",
                   units_format_bytes(need, s->need_bytes), units_format_bytes(more, s->least_short_bytes),
                   units_format_bytes(have, s->capacity_bytes));
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct estimate_request q;
    struct sink s;
    TRY(option_parse(a, c, argc, argv, &v, e));
    TRY(estimate_request_parse(a, &v, &q, e));
    const size_t cases_n = q.models_n * q.gpus_n;
    struct estimate_case *cases = arena_array(a, cases_n, sizeof *cases);
    if (!cases) return err_nomem(e);
    for (size_t m = 0; m < q.models_n; m++)
        for (size_t g = 0; g < q.gpus_n; g++)
            TRY(estimate_case_open(a, &q, q.models[m], q.gpus[g], &cases[m * q.gpus_n + g], e));
    for (size_t i = 0; i < cases_n && q.engine; i++) { /* a bad flag is told before anything is written */
        struct pool_request r;
        struct pool p;
        TRY(estimate_pool(&q, &cases[i], &r, &p, e));
    }
    TRY(open_sink(a, &v, &q, cases_n, &s, e));
    if (s.streamed) TRY(table_begin(&s.table, s.format, s.out, e));
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < cases_n && code == ERR_OK; i++) code = run_case(&s, &q, &cases[i], e);
    progress_end(&s.progress);
    TRY(code);
    if (s.streamed)
        TRY(table_end(&s.table, s.format, s.out, e));
    else
        TRY(write_kept(&s, &q, cases, cases_n, e));
    TRY(out_commit(s.out, e));
    if (option_get(&v, "plot")) TRY(draw(&s, &q, cases, e));
    return judge(&s, &q, cases, cases_n, e);
}

const struct command command_estimate = {
    .name = "estimate",
    .summary = "Memory, time to first token and decode step of a model on a device.",
    .usage = "-m MODEL -g DEVICE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge estimate -m llama-2-13b -g h100-sxm --batch 1,16,64,256\n"
                "  ridge estimate -m path/to/config.json -g h100-sxm:8 --tp 8 --kv fp8 --weights int4-g128\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm,l40s --batch 1..512*2 --context 1Ki..128Ki*2 -f csv -o sweep.csv\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm --batch 64 --by-op --plot roofline.svg\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm --max-model-len 32768      # an engine's cache pool\n",
    .run = run,
};
