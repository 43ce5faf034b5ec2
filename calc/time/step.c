#include "calc/time/step.h"

#include <math.h>

#include "calc/time/step_place.h"

struct phase {
    struct cost_ops ops;
    struct timed *timed; /* one an operator */
    struct timed_total total;
};

struct step {
    struct step_setup setup;
    struct sym_ctx *c;
    struct cost_symbols y;
    struct rates rates;
    struct phase phase[STEP_PHASES];
    struct sym_tape *tape;
    double weight_bytes, beside_bytes, adapter_bytes, offloaded_bytes, offloaded_frac;
    bool untimed; /* no peak rate is known */
    struct cost_cache cache;
    struct cost_layout layout;
    bool staged;               /* the tape is of one stage */
    const struct sym *held;    /* sequences in the cache */
    const struct sym **inputs; /* [inputs_n] */
    size_t inputs_n;
    struct cost_stage stage;
    struct cost_stage_cache kept;
    struct placed placed;
    struct step *shared; /* of layouts whose ranks share a context; NULL: none */
};

const char *step_phase_name(enum step_phase p) { return p == STEP_PREFILL ? "prefill" : "decode"; }
const char *step_fidelity_name(enum step_fidelity f) { return f == STEP_BOUND ? "bound" : "roofline"; }

enum err_code step_peak(const struct hw *hw, const struct dtype *d, double *out_flops_per_s, const char **out_name,
                        struct err *e)
{
    enum hw_dtype unit;
    TRY(timed_unit(hw, d, &unit, e));
    *out_flops_per_s = hw->peak_flops_per_s[unit];
    *out_name = hw_dtype_name(unit);
    return ERR_OK;
}

static const char *phase_name(const struct step *s, enum step_phase p)
{
    return p == STEP_DECODE && s->setup.verify ? "verify" : step_phase_name(p);
}

/* Tokens that an encoder reads. */
static const struct sym *source_of(const struct step *s)
{
    return s->setup.served ? sym_int(s->c, s->setup.model->encoder.source_tokens) : s->y.X;
}

/* Tokens of S that are the decoder's own, and those that it begins with. */
static const struct sym *own_context(const struct step *s)
{
    return s->setup.served ? sym_sub(s->c, s->y.S, source_of(s)) : s->y.S;
}

static const struct sym *begun(const struct step *s)
{
    if (!s->setup.served) return sym_int(s->c, s->setup.model->encoder.start_tokens);
    return sym_max(s->c, sym_int(s->c, 1), sym_sub(s->c, s->y.T, source_of(s)));
}

/* Tokens that the last query of the decode step attends to. */
static const struct sym *last_context(const struct step *s)
{
    return s->setup.verify ? SYM_SUM(s->c, s->y.S, s->y.T, sym_int(s->c, -1)) : own_context(s);
}

/* sent: the number of r; NULL: it stays free. */
static enum err_code build_phase(struct arena *a, struct step *s, enum step_phase which, const struct sym *sent,
                                 struct err *e)
{
    struct sym_ctx *c = s->c;
    const struct step_setup *u = &s->setup;
    const struct sym *one = sym_int(c, 1);
    struct cost_pass pass = {.name = phase_name(s, which), .B = s->y.B, .T = s->y.T, .S = s->y.T};
    if (which == STEP_PREFILL) {
        if (!u->prefill_together) pass.B = one;
        pass.uncached = u->uncached;
        if (u->model->encoder.layers > 0) pass.T = pass.S = begun(s);
        pass.encodes = true;
    } else if (u->uncached) {
        pass.T = pass.S = s->y.S;
        pass.uncached = true;
    } else if (u->verify) {
        pass.T = s->y.T;
        pass.S = last_context(s);
        pass.absorbed = true;
    } else {
        pass.T = sym_int(c, u->pass_tokens > 0 ? u->pass_tokens : 1);
        pass.S = own_context(s);
        pass.M = u->averaged ? s->y.M : NULL;
        pass.absorbed = true;
    }
    pass.all_logits = which == STEP_DECODE && (u->model->diffusion || u->verify);
    struct phase *p = &s->phase[which];
    TRY(cost_build_layout(a, c, &s->y, u->model, &u->conventions, &pass, &s->layout, &p->ops, e));
    TRY(cost_bind_layout(c, &s->y, u->model, &s->layout, &p->ops, e));
    TRY(timed_ops(a, c, &s->rates, u->hw, u->model, sent, &p->ops, &p->timed, &s->untimed, e));
    const struct cost_stage *stage = s->staged ? &s->stage : NULL;
    if (u->offload.bytes > 0)
        TRY(offload_ops(c, &s->rates, offload_part(c, &u->offload, &p->ops, &u->conventions, stage), &p->ops, p->timed,
                        e));
    if (stage)
        TRY(timed_sum_stage(a, c, &s->rates, u->fidelity, &p->ops, p->timed, stage, &p->total, e));
    else
        TRY(timed_sum(a, c, &s->rates, u->fidelity, &p->ops, p->timed, NULL, &p->total, e));
    if (u->overlapped && u->fidelity == STEP_ROOFLINE) p->total.time_s = step_overlapped(c, &p->ops, p->timed, stage);
    return sym_check(c, e);
}

const struct sym *step_overlapped(struct sym_ctx *c, const struct cost_ops *ops, const struct timed *timed,
                                  const struct cost_stage *stage)
{
    const struct sym *zero = sym_int(c, 0), *computes = zero, *sends = zero;
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        const struct sym **to = op->wire_bytes == zero && op->fabric_bytes == zero ? &computes : &sends;
        *to = sym_add(c, *to, sym_mul(c, cost_times(c, op, stage), timed[i].time_s));
    }
    return sym_max(c, computes, sends);
}

static void total_phase(const struct phase *p, const struct sym **out, const struct sym **sent)
{
    sent[0] = p->total.wire_bytes;
    sent[1] = p->total.fabric_bytes;
    sent[2] = p->total.host_bytes;
    out[0] = p->total.time_s;
    out[1] = p->total.flops;
    out[2] = p->total.bytes;
    out[3] = p->total.compute_s;
    out[4] = p->total.memory_s;
    out[5] = p->total.link_s;
}

const struct sym *step_activation(struct sym_ctx *c, const struct model *m, const struct cost_ops *ops,
                                  const struct sym *rows, const struct cost_stage *stage)
{
    const struct sym *most = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        const struct sym *bytes = op->activation_bytes;
        if (cost_op_adapts(op)) continue; /* works on the arrays of the product beside it, in place */
        if (stage) bytes = sym_mul(c, sym_min(c, sym_int(c, 1), cost_times(c, op, stage)), bytes);
        most = sym_max(c, most, bytes);
    }
    return sym_add(c, most,
                   SYM_PROD(c, rows,
                            sym_int(c, m->hidden * (m->streams         ? m->streams
                                                    : m->hyper_streams ? m->hyper_streams
                                                    : m->residual_group
                                                        ? (m->layers + m->residual_group - 1) / m->residual_group + 1
                                                        : 1)),
                            sym_num(c, m->activations.bits / 8)));
}

static const struct sym *narrow_of(const struct step *s)
{
    return s->layout.free ? layout_symbols_make(s->c).narrow : sym_int(s->c, layout_whole(&s->layout.layout).tp);
}

static const struct sym *peak_activation(struct step *s, const struct phase *p, const struct sym *rows)
{
    if (s->setup.layout.sp) rows = sym_ceil(s->c, sym_div(s->c, rows, narrow_of(s)));
    return step_activation(s->c, s->setup.model, &p->ops, rows, s->staged ? &s->stage : NULL);
}

/* Towers, on the first stage. */
static const struct sym *beside_bytes(const struct step *s)
{
    struct sym_ctx *c = s->c;
    const struct model_beside b = model_beside(s->setup.model);
    const struct sym *ranks = s->layout.free ? s->y.t : sym_int(c, layout_whole(&s->layout.layout).tp);
    const struct sym *all = sym_add(c, sym_div(c, sym_num(c, b.split_bytes), ranks), sym_num(c, b.whole_bytes));
    return s->staged ? sym_mul(c, s->stage.first, all) : all;
}

static void total_memory(struct step *s, const struct sym **out)
{
    struct sym_ctx *c = s->c;
    const struct step_setup *u = &s->setup;
    const struct sym *zero = sym_int(c, 0);
    const bool encodes = u->model->encoder.layers > 0;
    const int64_t start = encodes && !u->served ? u->model->encoder.start_tokens : 0;
    const struct sym *one = sym_add(c, s->y.T, sym_int(c, start)); /* beside an encoder's output the decoder's stream */
    const struct sym *prompt = u->prefill_together ? sym_mul(c, s->y.B, one) : one;
    const struct sym *passed = u->verify ? s->y.T : sym_int(c, u->pass_tokens > 0 ? u->pass_tokens : 1);
    const struct sym *decode = sym_mul(c, s->y.B, u->uncached ? s->y.S : passed);
    const struct sym_binding held = {s->y.S, last_context(s)};
    const struct sym *block = sym_int(c, u->block_tokens), *blocks = sym_ceil(c, sym_div(c, held.value, block));
    const struct sym *context =
        s->layout.free ? layout_symbols_make(c).context : sym_int(c, layout_whole(&s->layout.layout).dcp);
    const bool shared = layout_whole(&u->layout).dcp > 1; /* a block of each rank holds every d-th of its tokens */
    const struct sym *longer = sym_mul(c, block, context), *full = s->kept.per_token_full;
    const struct sym *sequence =
        u->verify || u->served ? sym_bind(c, s->kept.per_sequence, &held, 1) : s->kept.per_sequence;
    const struct sym *whole = SYM_SUM(c, shared ? zero : full, s->kept.per_token_windowed, s->kept.per_token_index);
    const struct sym *allotted = SYM_PROD(c, blocks, sym_mul(c, block, whole));
    if (shared) allotted = sym_add(c, allotted, SYM_PROD(c, sym_ceil(c, sym_div(c, held.value, longer)), longer, full));
    if (encodes)
        allotted = sym_add(c, allotted,
                           SYM_PROD(c, sym_ceil(c, sym_div(c, source_of(s), block)), block, s->kept.per_source_token));
    const struct cost_stage *stage = s->staged ? &s->stage : NULL;
    const struct cost_ops *ops = &s->phase[STEP_DECODE].ops;
    const struct sym *away = u->offload.bytes > 0 ? offload_bytes(c, &u->offload, ops, &u->conventions, stage) : zero;
    const struct sym *weights = sym_sub(c, cost_stage_weight_bytes(c, ops, &u->conventions, stage), away);
    const struct sym *beside = beside_bytes(s);
    out[STEP_weight_bytes] = weights;
    out[STEP_beside_bytes] = beside;
    out[STEP_adapter_bytes] = cost_adapter_bytes(c, ops, &u->conventions, stage);
    out[STEP_offloaded_bytes] = away;
    out[STEP_kv_bytes] = u->uncached ? zero : sym_mul(c, s->held, sequence);
    out[STEP_kv_allocated_bytes] = u->uncached ? zero : sym_mul(c, s->held, allotted);
    out[STEP_activation_bytes] = u->conventions.activations_uncounted
                                     ? zero
                                     : sym_max(c, peak_activation(s, &s->phase[STEP_PREFILL], prompt),
                                               peak_activation(s, &s->phase[STEP_DECODE], decode));
    out[STEP_state_bytes] = u->uncached ? zero : sym_mul(c, s->held, s->kept.state_per_sequence);
    out[STEP_memory_bytes] =
        SYM_SUM(c, sym_add(c, weights, beside), out[STEP_kv_bytes], out[STEP_state_bytes], out[STEP_activation_bytes]);
    out[VALUE_FULL] = s->kept.per_token_full;
    out[VALUE_WINDOWED] = s->kept.per_token_windowed;
    out[VALUE_INDEX] = s->kept.per_token_index;
    out[VALUE_STATE] = s->kept.state_per_sequence;
    out[VALUE_HOSTED] = u->offload.bytes > 0 ? offload_part(c, &u->offload, ops, &u->conventions, stage) : zero;
}

/* ---- layouts ---- */

/* Symbols that the tape takes: of a point, a stage, a free layout, and layers of each kind. */
static enum err_code open_inputs(struct arena *a, struct step *s, struct err *e)
{
    struct sym_ctx *c = s->c;
    const struct layout_symbols y = layout_symbols_make(c);
    const size_t kinds = s->setup.model->kinds_n;
    const struct sym **in = arena_array(a, LAYOUT_INPUTS + kinds, sizeof *in);
    if (!in) return err_nomem(e);
    in[IN_B] = s->y.B;
    in[IN_T] = s->y.T;
    in[IN_S] = s->y.S;
    in[IN_M] = s->y.M;
    s->held = s->y.B;
    s->inputs = in;
    s->inputs_n = POINT_INPUTS;
    if (!s->staged) return ERR_OK;
    in[IN_HELD] = s->held = sym_var(c, "stage_held");
    in[IN_FIRST] = s->stage.first = sym_var(c, "stage_first");
    in[IN_LAST] = s->stage.last = sym_var(c, "stage_last");
    in[IN_HOP_NEAR] = y.hop_near;
    in[IN_HOP_FAR] = y.hop_far;
    s->inputs_n = STAGE_INPUTS;
    if (s->layout.free) {
        const struct sym *const of[LAYOUT_NUMBERS] = {
#define X(field, text, meaning) y.field,
            LAYOUT_SYMBOLS(X)
#undef X
        };
        in[IN_TP] = s->y.t;
        in[IN_R] = s->y.r;
        in[IN_LINK] = s->rates.link;
        in[IN_SPREAD] = s->rates.spread;
        in[IN_FABRIC] = s->rates.fabric;
        in[IN_CONTEXT] = s->rates.context;
        in[IN_CONTEXT_S] = s->rates.context_s;
        in[IN_SUM_S] = s->rates.sum_s;
        in[IN_GATHER_S] = s->rates.gather_s;
        in[IN_SPREAD_S] = s->rates.spread_s;
        in[IN_HOP_S] = s->rates.hop_s;
        for (size_t i = 0; i < LAYOUT_NUMBERS; i++) in[IN_LAYOUT + i] = of[i];
        s->inputs_n = LAYOUT_INPUTS;
    }
    s->stage.layers = in + s->inputs_n;
    for (size_t k = 0; k < kinds; k++) {
        const char *name = arena_printf(a, "stage_layers_%zu", k);
        if (!name) return err_nomem(e);
        in[s->inputs_n + k] = sym_var(c, name);
    }
    s->inputs_n += kinds;
    return ERR_OK;
}

/* Weights and cache of the rank that has most of each. */
static enum err_code measure(struct step *s, struct err *e)
{
    const struct layout w = layout_whole(&s->setup.layout);
    const struct model_beside beside = model_beside(s->setup.model);
    s->beside_bytes = s->layout.free ? (double)NAN : model_beside_bytes(&beside, (double)w.tp);
    if (!s->staged) {
        if (!sym_constant(s->kept.per_token_full, &s->cache.bytes_per_token_full) ||
            !sym_constant(s->kept.per_token_windowed, &s->cache.bytes_per_token_windowed) ||
            !sym_constant(s->kept.per_token_index, &s->cache.bytes_per_token_index) ||
            !sym_constant(s->kept.per_source_token, &s->cache.bytes_per_source_token) ||
            !sym_constant(s->kept.state_per_sequence, &s->cache.state_bytes_per_sequence) ||
            !sym_constant(cost_weight_bytes(s->c, &s->phase[STEP_DECODE].ops, &s->setup.conventions), &s->weight_bytes))
            return err_set(e, ERR_RANGE, "%s: weights have no size", s->setup.model->name);
        (void)sym_constant(cost_adapter_bytes(s->c, &s->phase[STEP_DECODE].ops, &s->setup.conventions, NULL),
                           &s->adapter_bytes);
        const struct offload *o = &s->setup.offload;
        double layers = 0;
        if (o->bytes > 0)
            (void)sym_constant(cost_layer_weight_bytes(s->c, &s->phase[STEP_DECODE].ops, &s->setup.conventions, NULL),
                               &layers);
        s->offloaded_bytes = fmin(o->bytes, layers);
        s->weight_bytes -= s->offloaded_bytes;
        s->offloaded_frac = layers > 0 ? s->offloaded_bytes / layers : 0;
        return ERR_OK;
    }
    if (s->layout.free) return ERR_OK;
    const double point[POINT_INPUTS] = {1, 1, 1, 1};
    double out[STEP_VALUES_N];
    TRY(step_place(&s->placed, &w, e));
    step_place_eval(&s->placed, point, out);
    s->weight_bytes = step_place_most(&s->placed, STEP_weight_bytes);
    s->adapter_bytes = step_place_most(&s->placed, STEP_adapter_bytes);
    s->offloaded_bytes = step_place_most(&s->placed, STEP_offloaded_bytes);
    s->offloaded_frac = step_place_most(&s->placed, VALUE_HOSTED);
    s->cache.bytes_per_token_full = step_place_most(&s->placed, VALUE_FULL);
    s->cache.bytes_per_token_windowed = step_place_most(&s->placed, VALUE_WINDOWED);
    s->cache.bytes_per_token_index = step_place_most(&s->placed, VALUE_INDEX);
    s->cache.state_bytes_per_sequence = step_place_most(&s->placed, VALUE_STATE);
    return ERR_OK;
}

enum err_code step_rates(struct sym_ctx *c, const struct step_setup *u, struct rates *out, const struct sym **sent,
                         struct err *e)
{
    struct timed_links k;
    TRY(timed_links(u->hw, &u->layout, &u->latency, &k, e));
    /* where ranks have none nothing is sent over it, whatever the number */
    *out = rates_of(c, u->hw, isnan(k.link_bytes_per_s) ? 1 : k.link_bytes_per_s);
    out->spread = sym_num(c, isnan(k.spread_bytes_per_s) ? 1 : k.spread_bytes_per_s);
    out->fabric = sym_num(c, isnan(k.fabric_bytes_per_s) ? 1 : k.fabric_bytes_per_s);
    out->context = sym_num(c, isnan(k.context_bytes_per_s) ? 1 : k.context_bytes_per_s);
    if (u->latency.link_s > 0 || u->latency.fabric_s > 0) {
        out->sum_s = sym_num(c, k.sum_s);
        out->gather_s = sym_num(c, k.gather_s);
        out->spread_s = sym_num(c, k.spread_s);
        out->hop_s = sym_num(c, k.hop_s);
        out->context_s = sym_num(c, k.context_s);
    }
    const struct layout w = layout_whole(&u->layout);
    *sent = layout_plain(&w) ? timed_wire_factor(c, u->hw, w.tp) : sym_num(c, k.wire_factor);
    return ERR_OK;
}

/* The rates of links: numbers of the layout, or symbols of a free one. *sent: the number of r. */
static enum err_code open_rates(struct step *s, const struct sym **sent, struct err *e)
{
    const struct step_setup *u = &s->setup;
    *sent = NULL;
    if (s->layout.free) {
        s->rates = rates_of(s->c, u->hw, (double)NAN);
        s->rates.sum_s = sym_var(s->c, "layout_sum_s");
        s->rates.gather_s = sym_var(s->c, "layout_gather_s");
        s->rates.spread_s = sym_var(s->c, "layout_spread_s");
        s->rates.hop_s = sym_var(s->c, "layout_hop_s");
        s->rates.context_s = sym_var(s->c, "layout_context_s");
        return ERR_OK;
    }
    TRY(layout_check_of(u->model, &u->layout, e));
    return step_rates(s->c, u, &s->rates, sent, e);
}

enum err_code step_compile(struct arena *a, const struct step_setup *setup, struct step **out, struct err *e)
{
    const struct model *m = setup->model;
    if (m->weights_unknown)
        return err_set(e, ERR_INPUT, "%s: %s; state the format with --weights", m->source, m->weights_unknown);
    if (setup->verify || setup->uncached || (setup->any_layout && !setup->served))
        TRY(model_refuse_encoder(m,
                                 setup->verify     ? "passes that judge drafted tokens are not described"
                                 : setup->uncached ? "decoding without a cache is not described"
                                                   : "its layouts are not searched",
                                 e));
    struct step *s = arena_alloc(a, sizeof *s);
    if (!s) return err_nomem(e);
    *s = (struct step){.setup = *setup, .layout = {.layout = setup->layout, .free = setup->any_layout}};
    const struct layout w = layout_whole(&setup->layout);
    s->staged = setup->any_layout || w.pp > 1 || w.dp > 1;
    s->c = sym_open(a);
    if (!s->c) return err_nomem(e);
    s->y = cost_symbols_make(s->c);
    s->setup.served = setup->served && m->encoder.layers > 0;
    if (s->setup.served && m->encoder.source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is", m->name);
    if (m->encoder.layers > 0 && !s->setup.served) s->y.X = s->y.T; /* of a point */
    const struct sym *sent;
    TRY(open_rates(s, &sent, e));
    if (setup->offload.bytes > 0) s->rates.host = sym_num(s->c, setup->offload.host_bytes_per_s);
    TRY(open_inputs(a, s, e));
    for (enum step_phase p = 0; p < STEP_PHASES; p++) TRY(build_phase(a, s, p, sent, e));
    TRY(cost_stage_cache(s->c, &s->y, m, &s->layout, s->staged ? &s->stage : NULL, &s->kept, e));
    const struct sym *exprs[VALUES];
    total_memory(s, exprs);
    total_phase(&s->phase[STEP_PREFILL], exprs + STEP_prefill_s, exprs + STEP_prefill_wire_bytes);
    total_phase(&s->phase[STEP_DECODE], exprs + STEP_decode_step_s, exprs + STEP_decode_wire_bytes);
    TRY(sym_check(s->c, e));
    TRY(sym_tape_compile(a, s->staged ? VALUES : STEP_VALUES_N, exprs, s->inputs_n, s->inputs, &s->tape, e));
    if (s->staged) {
        s->placed =
            (struct placed){.setup = &s->setup, .tape = s->tape, .inputs_n = s->inputs_n, .free = s->layout.free};
        TRY(step_place_open(a, &s->placed, e));
    }
    TRY(measure(s, e));
    if (setup->any_layout && setup->any_context) {
        struct step_setup more = *setup;
        more.any_context = false;
        more.layout.dcp = 2; /* that there are several; how many is a number of each layout */
        TRY(step_compile(a, &more, &s->shared, e));
    }
    *out = s;
    return ERR_OK;
}

enum err_code step_eval_layout(struct step *s, const struct layout *l, double B, double T, double S, double M,
                               double out[STEP_VALUES_N], struct err *e)
{
    const double point[POINT_INPUTS] = {B, T, S, M};
    double *column[STEP_VALUES_N];
    if (s->staged) {
        const struct layout w = layout_whole(l ? l : &s->setup.layout);
        if (s->shared && w.dcp > 1) s = s->shared;
        TRY(step_place(&s->placed, &w, e));
        step_place_eval(&s->placed, point, out);
        return ERR_OK;
    }
    for (size_t v = 0; v < STEP_VALUES_N; v++) column[v] = &out[v];
    step_eval(s, 1, &B, &T, &S, &M, column);
    return ERR_OK;
}

void step_eval(struct step *s, size_t n, const double *B, const double *T, const double *S, const double *M,
               double *const out[STEP_VALUES_N])
{
    const double *const in[] = {B, T, S, M};
    double value[STEP_VALUES_N];
    if (!s->staged) {
        sym_tape_eval(s->tape, n, in, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double point[POINT_INPUTS] = {B[i], T[i], S[i], M ? M[i] : 1};
        step_place_eval(&s->placed, point, value);
        for (size_t v = 0; v < STEP_VALUES_N; v++)
            if (out[v]) out[v][i] = value[v];
    }
}

bool step_timed(const struct step *s) { return !s->untimed; }
double step_weight_bytes(const struct step *s) { return s->weight_bytes; }
double step_beside_bytes(const struct step *s) { return s->beside_bytes; }
double step_adapter_bytes(const struct step *s) { return s->adapter_bytes; }
double step_offloaded_bytes(const struct step *s) { return s->offloaded_bytes; }
double step_offloaded_frac(const struct step *s) { return s->offloaded_frac; }
double step_kv_bytes_per_token_full(const struct step *s) { return s->cache.bytes_per_token_full; }
double step_kv_bytes_per_token_windowed(const struct step *s) { return s->cache.bytes_per_token_windowed; }
double step_kv_bytes_per_token_index(const struct step *s) { return s->cache.bytes_per_token_index; }

double step_kv_bytes_per_token(const struct step *s)
{
    return s->cache.bytes_per_token_full + s->cache.bytes_per_token_windowed + s->cache.bytes_per_token_index;
}
double step_kv_bytes_per_source_token(const struct step *s)
{
    return s->setup.uncached ? 0 : s->cache.bytes_per_source_token;
}

double step_prompt(const struct step *s, double S)
{
    return s->setup.model->encoder.layers > 0 ? (double)s->setup.model->encoder.source_tokens : S;
}

double step_state_bytes_per_sequence(const struct step *s)
{
    return s->setup.uncached ? 0 : s->cache.state_bytes_per_sequence;
}
size_t step_stages(const struct step *s) { return s->staged ? s->placed.n : 1; }

struct step_stage step_stage_of(const struct step *s, size_t i)
{
    if (!s->staged)
        return (struct step_stage){
            s->weight_bytes, s->beside_bytes, step_kv_bytes_per_token(s), step_state_bytes_per_sequence(s), true, true};
    const struct placed *p = &s->placed;
    const double kv = p->out[VALUE_FULL][i] + p->out[VALUE_WINDOWED][i] + p->out[VALUE_INDEX][i];
    return (struct step_stage){
        p->out[STEP_weight_bytes][i], p->out[STEP_beside_bytes][i], kv, s->setup.uncached ? 0 : p->out[VALUE_STATE][i],
        p->in[IN_FIRST][i] > 0,       p->in[IN_LAST][i] > 0};
}

size_t step_length(const struct step *s) { return sym_tape_length(s->tape); }

struct step_pass step_pass_of(const struct step *s, enum step_phase phase)
{
    const struct phase *p = &s->phase[phase];
    return (struct step_pass){
        .setup = &s->setup, .c = s->c, .in = s->inputs, .in_n = 4, .op = p->ops.op, .timed = p->timed, .n = p->ops.n};
}

enum { OP_VALUES = 14 };

static void fill_op(const struct model *m, const struct cost_op *op, const struct timed *t, const double *v,
                    struct step_op *row)
{
    const double n = (double)op->count;
    row->layer = op->kind_index < 0 ? "model" : m->kinds[op->kind_index].label;
    row->name = op->name;
    row->kind = cost_op_name(op->kind);
    row->shape = op->shape;
    row->count = op->count;
    row->compute = t->unit;
    row->flops = n * v[0];
    row->vector_flops = n * v[1];
    row->weight_bytes = n * v[2];
    row->kv_bytes = n * v[3];
    row->activation_bytes = n * v[4];
    row->wire_bytes = n * v[5];
    row->state_bytes = n * v[11];
    row->fabric_bytes = n * v[12];
    row->bytes = row->weight_bytes + row->kv_bytes + row->state_bytes + row->activation_bytes;
    row->intensity_flops_per_byte = (row->flops > 0 ? row->flops : row->vector_flops) / row->bytes;
    row->time_s = n * v[6];
    if (v[13] > fmax(fmax(v[7], v[8]), fmax(v[9], v[10]))) {
        row->bound_by = "host";
        return;
    }
    static const char *const BINDS[] = {"compute", "vector", "memory", "link"};
    size_t most = 0;
    for (size_t k = 1; k < 4; k++)
        if (v[7 + k] > v[7 + most]) most = k;
    row->bound_by = BINDS[most];
}

enum err_code step_ops_of(struct arena *a, const struct step_list *l, const double *values, struct step_op **out,
                          struct err *e)
{
    const size_t n = l->n;
    struct sym_ctx *c = l->c;
    const struct sym **exprs = arena_array(a, n * OP_VALUES, sizeof *exprs);
    double *value = arena_array(a, n * OP_VALUES, sizeof *value);
    double **column = arena_array(a, n * OP_VALUES, sizeof *column);
    const double **at = arena_array(a, l->in_n, sizeof *at);
    struct step_op *rows = arena_array(a, n, sizeof *rows);
    if (!exprs || !value || !column || !rows || !at) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const struct cost_op *op = &l->op[i];
        const struct timed *t = &l->timed[i];
        const struct sym *const v[OP_VALUES] = {op->flops,
                                                op->vector_flops,
                                                op->weight_bytes,
                                                op->kv_bytes,
                                                op->activation_bytes,
                                                op->wire_bytes,
                                                t->time_s,
                                                t->compute_s,
                                                t->vector_s,
                                                t->memory_s,
                                                t->link_s,
                                                op->state_bytes,
                                                op->fabric_bytes,
                                                t->host_s ? t->host_s : sym_int(c, 0)};
        for (size_t k = 0; k < OP_VALUES; k++) exprs[i * OP_VALUES + k] = v[k];
    }
    for (size_t i = 0; i < n * OP_VALUES; i++) column[i] = &value[i];
    for (size_t i = 0; i < l->in_n; i++) at[i] = &values[i];
    struct sym_tape *tape;
    TRY(sym_tape_compile(a, n * OP_VALUES, exprs, l->in_n, l->in, &tape, e));
    sym_tape_eval(tape, 1, at, column);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i].phase = l->phase;
        fill_op(l->model, &l->op[i], &l->timed[i], value + i * OP_VALUES, &rows[i]);
        sum += rows[i].time_s;
    }
    for (size_t i = 0; i < n; i++) rows[i].share_frac = rows[i].time_s / sum;
    *out = rows;
    return ERR_OK;
}

enum err_code step_ops(struct arena *a, const struct step *s, enum step_phase phase, double B, double T, double S,
                       double M, struct step_op **out, size_t *out_n, struct err *e)
{
    const struct phase *p = &s->phase[phase];
    const struct layout w = layout_whole(&s->setup.layout);
    const struct layout_symbols y = layout_symbols_make(s->c);
    double near, far;
    layout_hops(&w, layout_crosses(&w, 0), &near, &far);
    const double held = ceil(B / (double)w.dp), group = ceil(held / fmin((double)w.microbatches, held));
    const struct sym *const in[] = {s->y.B, s->y.T, s->y.S, s->y.M, y.hop_near, y.hop_far};
    const double values[] = {s->staged ? group : B, T, S, M, near, far};
    const struct step_list list = {.c = s->c,
                                   .model = s->setup.model,
                                   .phase = phase_name(s, phase),
                                   .op = p->ops.op,
                                   .timed = p->timed,
                                   .n = p->ops.n,
                                   .in = in,
                                   .in_n = 6};
    *out_n = p->ops.n;
    return step_ops_of(a, &list, values, out, e);
}
