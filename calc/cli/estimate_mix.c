/* estimate_mix -- mixed steps and prompts in pieces in `ridge estimate`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/estimate_output.h"
#include "calc/cli/scope.h"
#include "calc/model/stored.h"

enum { PIECES_MAX = 4096, TOKENS_MAX = 1 << 30, SEQUENCES_MAX = 1 << 24, CHUNKS_MAX = 1 << 20 };

/* ---- options ---- */

static enum err_code parse_number(struct arena *a, const char *text, size_t len, int64_t lo, int64_t hi, int64_t *out,
                                  struct err *e)
{
    const char *number = arena_strndup(a, text, len);
    return number ? units_parse_count(number, lo, hi, out, e) : err_nomem(e);
}

/* "decode=32@1500", "prefill=512", "prefill=2x512@1024". */
static enum err_code parse_piece(struct arena *a, const char *text, struct estimate_piece *out, struct err *e)
{
    static const char DECODE[] = "decode=", PREFILL[] = "prefill=";
    *out = (struct estimate_piece){.n = 1};
    out->decode = strncmp(text, DECODE, sizeof DECODE - 1) == 0;
    if (!out->decode && strncmp(text, PREFILL, sizeof PREFILL - 1) != 0)
        return err_set(e, ERR_USAGE, "'%.40s' is neither decode=N@CONTEXT nor prefill=[Nx]TOKENS[@CACHED]", text);
    const char *size = strchr(text, '=') + 1, *at = strchr(size, '@'), *end = at ? at : size + strlen(size);
    if (out->decode) {
        if (parse_number(a, size, (size_t)(end - size), 1, SEQUENCES_MAX, &out->n, e) != ERR_OK)
            return err_prepend(e, "decode=N@CONTEXT: N sequences: ");
        if (!at)
            return err_set(e, ERR_USAGE, "'%.40s': at which context are they? decode=N@CONTEXT, as in decode=32@1500",
                           text);
        out->tokens = 1;
        return units_parse_count(at + 1, 1, TOKENS_MAX, &out->context, e) == ERR_OK
                   ? ERR_OK
                   : err_prepend(e, "decode=N@CONTEXT: tokens of CONTEXT: ");
    }
    const char *times = memchr(size, 'x', (size_t)(end - size));
    static const char FORM[] = "prefill=[Nx]TOKENS[@CACHED]";
    if (times && parse_number(a, size, (size_t)(times - size), 1, SEQUENCES_MAX, &out->n, e) != ERR_OK)
        return err_prepend(e, "%s: N pieces: ", FORM);
    if (times) size = times + 1;
    if (parse_number(a, size, (size_t)(end - size), 1, TOKENS_MAX, &out->tokens, e) != ERR_OK)
        return err_prepend(e, "%s: TOKENS of a piece: ", FORM);
    if (at && units_parse_count(at + 1, 0, TOKENS_MAX, &out->context, e) != ERR_OK)
        return err_prepend(e, "%s: tokens that are CACHED: ", FORM);
    return ERR_OK;
}

static enum err_code parse_mix(struct arena *a, const struct option_values *v, struct estimate_request *q,
                               struct err *e)
{
    static const char *const NOT[] = {"batch", "draft", "chunk", "block", "steps", "prefill", "only", "plot"};
    const char **list;
    for (size_t i = 0; i < sizeof NOT / sizeof NOT[0]; i++)
        if (option_given(v, NOT[i]) || (strcmp(NOT[i], "chunk") == 0 && q->chunk))
            return err_set(e, ERR_USAGE, "--mix is one step and says what is in it; --%s cannot stand beside it",
                           NOT[i]);
    if (q->engine) return err_set(e, ERR_USAGE, "--mix is one step; flags of an engine's pool go with --context");
    if (q->uncached) return err_set(e, ERR_USAGE, "--mix: steps without a cache (--kv none) have nothing to mix");
    TRY(scope_list(a, q->mix_text, "--mix", &list, &q->mix_n, e));
    if (q->mix_n > PIECES_MAX) return err_set(e, ERR_USAGE, "--mix: more than %d items", PIECES_MAX);
    q->mix = arena_array(a, q->mix_n, sizeof *q->mix);
    if (!q->mix) return err_nomem(e);
    for (size_t i = 0; i < q->mix_n; i++)
        if (parse_piece(a, list[i], &q->mix[i], e) != ERR_OK) return err_prepend(e, "--mix: ");
    int64_t *longest = arena_array(a, 1, sizeof *longest);
    if (!longest) return err_nomem(e);
    *longest = 0;
    for (size_t i = 0; i < q->mix_n; i++) {
        const int64_t context = q->mix[i].context + (q->mix[i].decode ? 0 : q->mix[i].tokens);
        if (context > *longest) *longest = context;
    }
    q->context = longest; /* which the model's own limits are held against */
    q->context_n = 1;
    q->context_is_default = false;
    return ERR_OK;
}

enum err_code estimate_mix_parse(struct arena *a, const struct option_values *v, struct estimate_request *q,
                                 struct err *e)
{
    q->mix_text = option_get(v, "mix");
    if (option_get(v, "chunk") && units_parse_count(option_get(v, "chunk"), 1, TOKENS_MAX, &q->chunk, e) != ERR_OK)
        return err_prepend(e, "--chunk: ");
    if (q->mix_text) return parse_mix(a, v, q, e);
    if (!q->chunk) return ERR_OK;
    if (q->uncached) return err_set(e, ERR_USAGE, "--chunk: without a cache (--kv none) a piece has nothing before it");
    if (strcmp(option_get(v, "prefill"), "together") == 0)
        return err_set(e, ERR_USAGE, "--chunk takes one prompt at a time; --mix prefill=NxTOKENS takes several");
    const int64_t *prompt = q->averaged ? q->prompt : q->context;
    for (size_t i = 0; i < (q->averaged ? q->prompt_n : q->context_n); i++)
        if (prompt[i] / q->chunk >= CHUNKS_MAX)
            return err_set(e, ERR_RANGE, "--chunk %lld: a prompt of %lld tokens is more than %d pieces",
                           (long long)q->chunk, (long long)prompt[i], CHUNKS_MAX);
    return ERR_OK;
}

/* ---- prompts in pieces ---- */

void estimate_chunked(const struct estimate_request *q, const struct estimate_case *c, double B, double T, double S,
                      double M, double v[STEP_VALUES_N])
{
    struct mix pieces = c->mix;
    const double first = fmin(T, (double)q->chunk);
    double x[MIX_VALUES_N], activations = 0, *column[STEP_VALUES_N] = {0};
    column[STEP_activation_bytes] = &activations;
    step_eval(c->step, 1, &B, &first, &S, &M, column); /* those of a decode step among them */
    mix_prompt(&pieces, T, (double)q->chunk, x);
    v[STEP_prefill_s] = x[MIX_step_s];
    v[STEP_prefill_flops] = x[MIX_flops];
    v[STEP_prefill_bytes] = x[MIX_bytes];
    v[STEP_prefill_compute_s] = x[MIX_compute_s];
    v[STEP_prefill_memory_s] = x[MIX_memory_s];
    v[STEP_prefill_link_s] = x[MIX_link_s];
    v[STEP_prefill_host_bytes] = c->offload.bytes > 0 ? x[MIX_host_s] * c->offload.host_bytes_per_s : 0;
    activations = fmax(activations, x[MIX_activation_bytes]);
    v[STEP_memory_bytes] += activations - v[STEP_activation_bytes];
    v[STEP_activation_bytes] = activations;
}

enum err_code estimate_chunked_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                                   double T, struct step_op **out, size_t *out_n, struct err *e)
{
    struct mix piece = c->mix;
    struct step_op *sum = NULL;
    size_t n = 0;
    for (double from = 0; from < T; from += (double)q->chunk) {
        struct step_op *op;
        mix_clear(&piece);
        mix_prefill(&piece, 1, fmin((double)q->chunk, T - from), from);
        TRY(mix_ops(a, &piece, &op, &n, e));
        if (c->calibrated) calibrated_mix_ops(c->calibrated, &piece, op, n);
        estimate_ops_add(&sum, op, n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (strncmp(sum[i].name, "decode_", strlen("decode_")) != 0) sum[kept++] = sum[i]; /* of no sequence */
    estimate_ops_share(sum, kept, step_phase_name(STEP_PREFILL));
    *out = sum;
    *out_n = kept;
    return ERR_OK;
}

/* ---- mixed steps ---- */

struct mix_row {
    const char *model, *hardware, *fidelity, *conventions, *weights, *kv, *mix, *bound_by, *marked, *notes;
    int64_t gpus, tp, replicas;
    double decode_sequences, prefill_sequences, prefill_tokens, step_tokens;
    double weight_bytes, kv_bytes, state_bytes, activation_bytes, memory_bytes, capacity_bytes, left_bytes;
    bool fits;
    double step_s, step_s_p10, step_s_p90, decode_alone_s, prefill_alone_s, decode_slowdown, together_gain;
    double decode_tok_per_s, prefill_tok_per_s;
    double flops, bytes, intensity_flops_per_byte, step_compute_s, step_memory_s, step_link_s, step_host_s;
};

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct mix_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(model, STRING, NONE, 0, "model", "the model"),
    ROW(hardware, STRING, NONE, 0, "device", "the device"),
    ROW(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    ROW(tp, INT, COUNT, 0, "TP", "tensor-parallel ranks that share one copy of the model"),
    ROW(replicas, INT, COUNT, 0, "copies", "copies of the model, each with such a step"),
    ROW(fidelity, STRING, NONE, 0, "fidelity", "bound or roofline: floors; calibrated: medians of measured kernels"),
    ROW(conventions, STRING, NONE, 0, "conventions", "those that differ from the defaults"),
    ROW(weights, STRING, NONE, 0, "weights as", "format of the linear layers"),
    ROW(kv, STRING, NONE, 0, "KV as", "format of the cache"),
    ROW(mix, STRING, NONE, 0, "mix", "what the step is of"),
    ROW(decode_sequences, COUNT, COUNT, 0, "decoding", "sequences that decode a token"),
    ROW(prefill_sequences, COUNT, COUNT, 0, "pieces", "pieces of prompts"),
    ROW(prefill_tokens, COUNT, COUNT, 0, "prompt", "tokens of those pieces"),
    ROW(step_tokens, COUNT, COUNT, COLUMN_SHOWN, "tokens", "of the step: a token of each that decodes, and of prompts"),
    ROW(weight_bytes, COUNT, BYTES, 0, "weights", "stored weights on one GPU"),
    ROW(kv_bytes, COUNT, BYTES, 0, "KV", "cache of the step's sequences after it, on one GPU, windows cut"),
    ROW(state_bytes, COUNT, BYTES, 0, "state", "recurrent state on one GPU"),
    ROW(activation_bytes, COUNT, BYTES, 0, "act.", "largest operator's inputs and outputs"),
    ROW(memory_bytes, COUNT, BYTES, COLUMN_SHOWN, "total", "weights + image tower + KV + state + activations"),
    ROW(capacity_bytes, COUNT, BYTES, 0, "capacity", "usable memory of one GPU"),
    ROW(left_bytes, COUNT, BYTES, 0, "left", "capacity - total; negative: so much is missing"),
    ROW(fits, BOOL, NONE, COLUMN_SHOWN, "fits", "total within capacity"),
    ROW(step_s, REAL, SECONDS, COLUMN_SHOWN, "step", "the step; a floor, or a median"),
    ROW(step_s_p10, REAL, SECONDS, COLUMN_ALIKE, "P10", "a tenth of steps is faster (calibrated)"),
    ROW(step_s_p90, REAL, SECONDS, COLUMN_ALIKE, "P90", "a tenth of steps is slower (calibrated)"),
    ROW(decode_alone_s, REAL, SECONDS, COLUMN_SHOWN, "decode", "a step of those that decode, without the prompts"),
    ROW(prefill_alone_s, REAL, SECONDS, COLUMN_SHOWN, "prefill", "a step of the pieces of prompts alone"),
    ROW(decode_slowdown, REAL, RATIO, COLUMN_SHOWN, "slower", "step over decode: what prompts cost those that decode"),
    ROW(together_gain, REAL, RATIO, COLUMN_SHOWN, "gain", "decode + prefill over step: what one step for both saves"),
    ROW(decode_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "out", "tokens decoded a second by all copies"),
    ROW(prefill_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "in", "tokens of prompts a second by all copies"),
    ROW(bound_by, STRING, NONE, COLUMN_SHOWN, "bound by", "resource with the largest demand in the step"),
    ROW(flops, COUNT, FLOPS, 0, "flops", "of the step on one GPU"),
    ROW(bytes, COUNT, BYTES, 0, "bytes", "of the step on one GPU"),
    ROW(intensity_flops_per_byte, REAL, FLOPS_PER_BYTE, 0, "intensity", "of the step"),
    ROW(step_compute_s, REAL, SECONDS, 0, "compute", "matrix flops at peak"),
    ROW(step_memory_s, REAL, SECONDS, 0, "memory", "bytes at full bandwidth"),
    ROW(step_link_s, REAL, SECONDS, 0, "link", "bytes sent at full link rate"),
    ROW(step_host_s, REAL, SECONDS, 0, "host", "weights read from the host at full rate of its link"),
    ROW(marked, STRING, NONE, 0, "marked", "\"does not fit\" where times are shown all the same"),
    ROW(notes, STRING, NONE, 0, "notes", "what of the model's files is not counted, assumed or contradicted"),
};

const struct column *estimate_mix_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

enum which { ALL, DECODES, PREFILLS };

/* Of the busiest attention group, over which what was asked is spread. */
static void fill(const struct estimate_request *q, const struct estimate_case *c, struct mix *x, enum which which)
{
    mix_clear(x);
    for (size_t i = 0; i < q->mix_n; i++) {
        const struct estimate_piece *p = &q->mix[i];
        if (p->decode && which != PREFILLS) mix_decode(x, (double)p->n, (double)p->context);
        if (!p->decode && which != DECODES) mix_prefill(x, (double)p->n, (double)p->tokens, (double)p->context);
    }
    mix_share(x, (double)layout_whole(&c->layout).dp);
}

static struct calibrated_time time_of(const struct estimate_case *c, const struct mix *x, double v[MIX_VALUES_N])
{
    struct calibrated_time t = {(double)NAN, (double)NAN, (double)NAN};
    if (mix_sequences(x) == 0) return t;
    mix_eval(x, v);
    t.s = v[MIX_step_s];
    if (c->calibrated) calibrated_mix_eval(c->calibrated, x, v[MIX_step_s], &t);
    return t;
}

static void fill_times(const struct estimate_request *q, const struct estimate_case *c, struct mix_row *r)
{
    struct mix x = c->mix;
    double v[MIX_VALUES_N], part[MIX_VALUES_N];
    fill(q, c, &x, DECODES);
    r->decode_alone_s = time_of(c, &x, part).s;
    fill(q, c, &x, PREFILLS);
    r->prefill_alone_s = time_of(c, &x, part).s;
    fill(q, c, &x, ALL);
    const struct calibrated_time t = time_of(c, &x, v);
    r->step_s = t.s;
    r->step_s_p10 = t.p10_s;
    r->step_s_p90 = t.p90_s;
    r->decode_slowdown = t.s / r->decode_alone_s;
    r->together_gain = (r->decode_alone_s + r->prefill_alone_s) / t.s;
    const double copies = (double)c->replicas;
    r->decode_tok_per_s = r->decode_sequences > 0 ? copies * r->decode_sequences / t.s : (double)NAN;
    r->prefill_tok_per_s = r->prefill_tokens > 0 ? copies * r->prefill_tokens / t.s : (double)NAN;
    r->flops = v[MIX_flops];
    r->bytes = v[MIX_bytes];
    r->intensity_flops_per_byte = r->flops / r->bytes;
    r->step_compute_s = v[MIX_compute_s];
    r->step_memory_s = v[MIX_memory_s];
    r->step_link_s = v[MIX_link_s];
    if (c->offload.bytes > 0) r->step_host_s = v[MIX_host_s];
    const double most_s = fmax(fmax(r->step_compute_s, r->step_memory_s), r->step_link_s);
    r->bound_by = r->step_host_s > most_s                                                   ? "host"
                  : r->step_link_s > r->step_compute_s && r->step_link_s > r->step_memory_s ? "link"
                  : r->step_compute_s >= r->step_memory_s                                   ? "compute"
                                                                                            : "memory";
}

static void fill_row(const struct estimate_request *q, const struct estimate_case *c, struct mix_row *r)
{
    const double no = (double)NAN;
    struct mix x = c->mix;
    double v[MIX_VALUES_N];
    *r = (struct mix_row){.model = c->model.name,
                          .hardware = c->hw.key,
                          .fidelity = estimate_fidelity_name(q),
                          .conventions = q->conventions_text,
                          .weights = model_linear_format(&c->model)->name,
                          .kv = c->model.kv.name,
                          .mix = q->mix_text,
                          .notes = c->notes,
                          .gpus = c->gpus,
                          .tp = c->tp,
                          .replicas = c->replicas,
                          .step_s = no,
                          .step_s_p10 = no,
                          .step_s_p90 = no,
                          .decode_alone_s = no,
                          .prefill_alone_s = no,
                          .decode_slowdown = no,
                          .together_gain = no,
                          .decode_tok_per_s = no,
                          .prefill_tok_per_s = no,
                          .flops = no,
                          .bytes = no,
                          .intensity_flops_per_byte = no,
                          .step_compute_s = no,
                          .step_memory_s = no,
                          .step_link_s = no,
                          .step_host_s = no};
    fill(q, c, &x, ALL);
    mix_eval(&x, v);
    for (size_t i = 0; i < q->mix_n; i++) {
        const double n = (double)q->mix[i].n;
        if (q->mix[i].decode) r->decode_sequences += n;
        if (!q->mix[i].decode) r->prefill_sequences += n;
        if (!q->mix[i].decode) r->prefill_tokens += n * (double)q->mix[i].tokens;
    }
    r->step_tokens = r->decode_sequences + r->prefill_tokens;
    r->weight_bytes = step_weight_bytes(c->step);
    r->kv_bytes = v[MIX_kv_bytes];
    r->state_bytes = v[MIX_state_bytes];
    r->activation_bytes = v[MIX_activation_bytes];
    r->memory_bytes = v[MIX_memory_bytes];
    r->capacity_bytes = c->capacity_bytes;
    r->left_bytes = r->capacity_bytes - r->memory_bytes;
    r->fits = r->left_bytes >= 0;
    if (!r->fits && !q->ignore_memory) return;
    r->marked = r->fits ? NULL : "does not fit";
    if (mix_timed(c->mix_plan)) fill_times(q, c, r);
}

static enum err_code write_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                               const struct mix_row *row, const struct table *like, enum table_format format,
                               struct out *o, struct err *e)
{
    struct mix x = c->mix;
    struct step_op *op;
    struct table t = *like;
    fill(q, c, &x, ALL);
    TRY(mix_ops(a, &x, &op, &t.n_rows, e));
    if (c->calibrated) calibrated_mix_ops(c->calibrated, &x, op, t.n_rows);
    struct estimate_op_row *rows = arena_array(a, t.n_rows, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < t.n_rows; i++)
        rows[i] = (struct estimate_op_row){.model = row->model,
                                           .hardware = row->hardware,
                                           .fidelity = row->fidelity,
                                           .gpus = c->gpus,
                                           .tp = c->tp,
                                           .weights = row->weights,
                                           .kv = row->kv,
                                           .batch = (int64_t)mix_sequences(&x),
                                           .context = TABLE_INT_UNKNOWN,
                                           .op = op[i]};
    t.columns = estimate_op_columns(&t.n_columns);
    t.schema = "ridge.operators.1";
    t.stride_bytes = sizeof *rows;
    t.rows = rows;
    if (option_get(q->options, "columns") && table_select(a, &t, option_get(q->options, "columns"), &t, e) != ERR_OK)
        return commands_no_column(e);
    return table_write(&t, format, o, e);
}

/* Columns that people see: a band where there is one. */
static const char CALIBRATED[] = "step_tokens,left_bytes,step_s,step_s_p10,step_s_p90,decode_alone_s,prefill_alone_s,"
                                 "decode_slowdown,decode_tok_per_s,prefill_tok_per_s";

static enum err_code write_rows(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                                const struct mix_row *rows, size_t n, const struct table *like,
                                enum table_format format, struct out *o, struct err *e)
{
    const char *keys = option_get(q->options, "columns");
    struct table t = *like;
    if (!keys && q->calibrated && (format == TABLE_TEXT || format == TABLE_MD)) keys = CALIBRATED;
    if (keys && table_select(a, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    t.rows = rows;
    t.n_rows = n;
    if (format != TABLE_TEXT) return table_write(&t, format, o, e);
    for (size_t i = 0; i < n; i++) {
        if (i) out_char(o, '\n');
        estimate_write_heading(o, q, &cases[i]);
        out_char(o, '\n');
        t.rows = rows + i;
        t.n_rows = 1;
        TRY(table_write(&t, format, o, e));
    }
    return ERR_OK;
}

enum err_code estimate_mix_run(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                               size_t cases_n, struct err *e)
{
    enum table_format format;
    struct out *o;
    const struct option_values *v = q->options;
    struct mix_row *rows = arena_array(a, cases_n, sizeof *rows);
    const struct table t = {.columns = COLUMNS,
                            .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.mix.1",
                            .tool = commands_tool(),
                            .scenario_json = option_scenario_json(a, v)};
    if (!rows) return err_nomem(e);
    if (table_format_parse(option_get(v, "format"), &format, e) != ERR_OK) return err_prepend(e, "--format: ");
    if (q->by_op && cases_n > 1) return err_set(e, ERR_USAGE, "--by-op with --mix: give one model and one device");
    size_t fits = 0;
    for (size_t i = 0; i < cases_n; i++) {
        fill_row(q, &cases[i], &rows[i]);
        fits += rows[i].fits;
    }
    TRY(out_open(a, option_get(v, "output"), &o, e));
    if (q->by_op) {
        if (format == TABLE_TEXT) {
            estimate_write_heading(o, q, &cases[0]);
            out_char(o, '\n');
        }
        if (!isnan(rows[0].step_s)) TRY(write_ops(a, q, &cases[0], &rows[0], &t, format, o, e));
    } else {
        TRY(write_rows(a, q, cases, rows, cases_n, &t, format, o, e));
    }
    TRY(out_commit(o, e));
    if (fits > 0 || q->ignore_memory) return ERR_OK;
    char need[UNITS_TEXT_MAX], more[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
    return err_set(e, ERR_NO, "does not fit: needs %s, %s more than the %s of one GPU",
                   units_format_bytes(need, rows[0].memory_bytes), units_format_bytes(more, -rows[0].left_bytes),
                   units_format_bytes(have, rows[0].capacity_bytes));
}
