/* compare_rows -- the numbers of `ridge compare`. */
#include <math.h>

#include "calc/cli/compare.h"
#include "calc/serve/limit.h"

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct compare_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(variant, STRING, NONE, COLUMN_SHOWN, "variant", "what the row is about"),
    ROW(model, STRING, NONE, 0, "model", "the model, with what was changed of it"),
    ROW(what_if, STRING, NONE, 0, "what-if", "the changes alone"),
    ROW(hardware, STRING, NONE, 0, "device", "the device"),
    ROW(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    ROW(tp, INT, COUNT, 0, "TP", "tensor-parallel ranks that share one copy of the model"),
    ROW(replicas, INT, COUNT, 0, "copies", "copies of the model, each with its own batch"),
    ROW(fidelity, STRING, NONE, 0, "fidelity", "bound or roofline: both are floors, servers are 2-4 times slower"),
    ROW(conventions, STRING, NONE, 0, "conventions", "those that differ from the defaults"),
    ROW(weights, STRING, NONE, 0, "weights as", "format of the linear layers"),
    ROW(kv, STRING, NONE, 0, "KV as", "format of the cache"),
    ROW(attention, STRING, NONE, 0, "attention", "form of attention"),
    ROW(layers, INT, COUNT, 0, "layers", "decoder layers"),
    ROW(total_params, COUNT, COUNT, COLUMN_SHOWN, "params", "stored parameters, a tied head once"),
    ROW(active_params, COUNT, COUNT, COLUMN_SHOWN, "active",
        "parameters that one token uses, an embedding table of its own whole (some publish it left out)"),
    ROW(params_ratio, REAL, RATIO, 0, "params x", "parameters over those of the first row"),
    ROW(weight_bytes, COUNT, BYTES, COLUMN_SHOWN, "weights", "stored weights on one GPU"),
    ROW(weights_ratio, REAL, RATIO, 0, "weights x", "weight bytes over those of the first row"),
    ROW(kv_bytes_per_token, COUNT, BYTES, COLUMN_SHOWN, "KV/token",
        "whole model, all layers and indexers: of a sequence within its windows"),
    ROW(kv_bytes_per_token_full, COUNT, BYTES, 0, "KV/token full", "of those, layers without a window"),
    ROW(kv_bytes_per_token_windowed, COUNT, BYTES, COLUMN_SHOWN, "KV/token win", "of those, layers with a window"),
    ROW(kv_bytes_per_token_index, COUNT, BYTES, 0, "KV/token idx", "of those, keys of indexers (sparse attention)"),
    ROW(state_bytes_per_sequence, COUNT, BYTES, COLUMN_SHOWN, "state/seq", "constant recurrent state of a sequence"),
    ROW(context, INT, COUNT, 0, "context", "tokens of a sequence"),
    ROW(kv_bytes_per_sequence, COUNT, BYTES, COLUMN_SHOWN, "KV/seq",
        "whole model, cache of one sequence at the context, windows cut"),
    ROW(kv_ratio, REAL, RATIO, COLUMN_SHOWN, "KV x", "cache of one sequence over that of the first row"),
    ROW(batch, INT, COUNT, 0, "batch", "sequences that memory_bytes and fits are about"),
    ROW(memory_bytes, COUNT, BYTES, COLUMN_SHOWN, "memory", "weights + towers + KV + state + activations on one GPU"),
    ROW(capacity_bytes, COUNT, BYTES, 0, "capacity", "usable memory of one GPU"),
    ROW(fits, BOOL, NONE, 0, "fits", "memory_bytes within capacity; a row that does not fit has no times"),
    ROW(max_batch, INT, COUNT, COLUMN_SHOWN, "max B", "largest batch of one copy: as ridge solve 'max batch'"),
    ROW(max_batch_by, STRING, NONE, 0, "max B by", "what one more would break: memory, TPOT or TTFT"),
    ROW(max_batch_ratio, REAL, RATIO, COLUMN_SHOWN, "B x", "largest batch over that of the first row"),
    ROW(decode_step_s, REAL, SECONDS, COLUMN_SHOWN, "step", "one decode step of the largest batch, a floor"),
    ROW(user_tok_per_s, REAL, TOK_PER_S, 0, "user", "1/step, a ceiling"),
    ROW(throughput_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "all",
        "largest batch*copies/step, decode only, a ceiling"),
    ROW(throughput_ratio, REAL, RATIO, COLUMN_SHOWN, "all x", "that over the first row's"),
    ROW(bound_by, STRING, NONE, 0, "bound by", "resource with the largest demand in the step of the batch asked for"),
    ROW(batch_step_s, REAL, SECONDS, 0, "step at B", "one decode step of the batch asked for, a floor"),
    ROW(batch_throughput_tok_per_s, REAL, TOK_PER_S, 0, "all at B", "its batch*copies/step, a ceiling"),
    ROW(says, STRING, NONE, 0, "accuracy", "what is reported of it"),
    ROW(source, STRING, NONE, 0, "source", "and where"),
    ROW(notes, STRING, NONE, 0, "notes", "what of the model's files is not counted, assumed or contradicted"),
    ROW(model_hash, STRING, NONE, 0, "model hash", "FNV-1a of the model's file, its settings and what-ifs"),
    ROW(hardware_hash, STRING, NONE, 0, "device hash", "FNV-1a of the device's numbers"),
};

const struct column *compare_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

enum err_code compare_open(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                           struct estimate_case *out, struct err *e)
{
    struct estimate_request one = q->estimate;
    one.what_if = v->what_if;
    return estimate_case_open(a, &one, v->model, q->gpu, out, e);
}

/* Cache of one sequence of the whole model: no heads or latents copied for ranks. */
static enum err_code sequence_cache(struct arena *a, const struct model *m, int64_t context, double *out, struct err *e)
{
    struct sym_ctx *c = sym_open(a);
    struct cost_cache cache;
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct sym_binding at = {y.S, sym_int(c, context)};
    TRY(cost_cache(c, &y, m, 1, &cache, e));
    if (sym_constant(sym_bind(c, cache.bytes_per_sequence, &at, 1), out)) return ERR_OK;
    return sym_check(c, e);
}

/* What the estimate of the batch asked for says. */
static void take_point(const struct estimate_row *p, struct compare_row *r)
{
    r->model = p->model;
    r->hardware = p->hardware;
    r->fidelity = p->fidelity;
    r->conventions = p->conventions;
    r->weights = p->weights;
    r->kv = p->kv;
    r->attention = p->attention;
    r->notes = p->notes;
    r->model_hash = p->model_hash;
    r->hardware_hash = p->hardware_hash;
    r->gpus = p->gpus;
    r->tp = p->tp;
    r->replicas = p->replicas;
    r->layers = p->layers;
    r->context = p->context;
    r->batch = p->batch;
    r->total_params = p->total_params;
    r->active_params = p->active_params;
    r->kv_bytes_per_token = p->kv_bytes_per_token;
    r->kv_bytes_per_token_full = p->kv_bytes_per_token_full;
    r->kv_bytes_per_token_windowed = p->kv_bytes_per_token_windowed;
    r->kv_bytes_per_token_index = p->kv_bytes_per_token_index;
    r->state_bytes_per_sequence = p->state_bytes_per_sequence;
    r->weight_bytes = p->weight_bytes;
    r->memory_bytes = p->memory_bytes;
    r->capacity_bytes = p->capacity_bytes;
    r->fits = p->fits;
    r->batch_step_s = p->decode_step_s;
    r->batch_throughput_tok_per_s = p->throughput_tok_per_s;
    r->bound_by = p->bound_by;
}

enum err_code compare_fill(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                           const struct estimate_case *c, struct compare_row *out, struct err *e)
{
    struct estimate_row point;
    struct compare_row r = {
        .variant = v->label, .under = v->under, .what_if = v->what_if, .says = v->says, .source = v->source};
    const struct limit_request find = {.step = c->step,
                                       .of = LIMIT_BATCH,
                                       .other = q->estimate.context[0],
                                       .most = LIMIT_MOST,
                                       .capacity_bytes = c->capacity_bytes,
                                       .tpot_s = q->tpot_s,
                                       .ttft_s = q->ttft_s};
    if (!step_timed(c->step) && (!isnan(q->tpot_s) || !isnan(q->ttft_s)))
        return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no latency can be promised", c->hw.file);
    if (!isnan(q->ttft_s) && model_passes_whole(&c->model))
        return err_set(e, ERR_USAGE, "--ttft: %s has no prefill, every pass takes the whole sequence: --tpot is of one",
                       c->model.name);
    TRY(estimate_eval(a, &q->estimate, c, 0, 1, &point, e));
    take_point(&point, &r);
    if (!c->uncached) TRY(sequence_cache(a, &c->model, r.context, &r.kv_bytes_per_sequence, e));
    const struct limit largest = limit_find(&find);
    r.max_batch = largest.value;
    r.max_batch_by = largest.because;
    const bool timed = r.fits && r.max_batch > 0 && step_timed(c->step);
    r.decode_step_s = timed ? largest.at.decode_step_s : (double)NAN;
    const double settled = estimate_tokens_per_pass(c, TABLE_INT_UNKNOWN);
    r.user_tok_per_s = settled / r.decode_step_s;
    r.throughput_tok_per_s = settled * (double)(r.max_batch * r.replicas) / r.decode_step_s;
    *out = r;
    return ERR_OK;
}

enum err_code compare_unsplit(struct arena *a, const struct compare_request *q, const struct compare_variant *v,
                              const struct estimate_case *c, struct compare_row *out, struct err *e)
{
    struct estimate_row point;
    struct compare_row r = {
        .variant = v->label, .under = v->under, .what_if = v->what_if, .says = v->says, .source = v->source};
    const double unknown = (double)NAN;
    TRY(estimate_eval(a, &q->estimate, c, 0, 1, &point, e));
    take_point(&point, &r);
    if (!c->uncached) TRY(sequence_cache(a, &c->model, r.context, &r.kv_bytes_per_sequence, e));
    r.max_batch = TABLE_INT_UNKNOWN;
    r.decode_step_s = r.user_tok_per_s = r.throughput_tok_per_s = unknown;
    *out = r;
    return ERR_OK;
}

static double batch_of(const struct compare_row *r)
{
    return r->max_batch == TABLE_INT_UNKNOWN ? (double)NAN : (double)r->max_batch;
}

static double ratio(double x, double first) { return first > 0 ? x / first : (double)NAN; }

void compare_ratios(struct compare_row *rows, size_t n)
{
    const struct compare_row *f = &rows[0];
    for (size_t i = n; i-- > 0;) {
        struct compare_row *r = &rows[i];
        r->params_ratio = ratio(r->total_params, f->total_params);
        r->weights_ratio = ratio(r->weight_bytes, f->weight_bytes);
        r->kv_ratio = ratio(r->kv_bytes_per_sequence, f->kv_bytes_per_sequence);
        r->max_batch_ratio = ratio(batch_of(r), batch_of(f));
        r->throughput_ratio = ratio(r->throughput_tok_per_s, f->throughput_tok_per_s);
    }
}
