#include "calc/time/mix.h"

#include <math.h>
#include <string.h>

struct part {
    size_t n;              /* sums */
    struct sym_tape *tape; /* what one sequence adds, from its T and S */
    double *each, **column;
    double *growth; /* of a settled decoding sequence, by a token of context */
};

struct mix_plan {
    struct step_setup setup;
    struct sym_ctx *c;
    struct cost_mixed mixed;
    struct timed *timed;
    struct part part[MIXED_PARTS];
    const struct sym **in; /* all sums, those of one part after the other's */
    const double **at;
    size_t in_n;
    struct sym_tape *tape;
    struct stages {            /* where there are several */
        size_t n, inputs_n;    /* different ones; what the tape takes beside the sums */
        const struct sym **in; /* [inputs_n]: first, last, near, far, layers of each kind */
        double *number;        /* [n][inputs_n] */
        int64_t *like;         /* [pp]: which of the different ones each stage is */
        double *out;           /* [n][MIX_VALUES_N] */
        struct cost_stage stage;
    } stages;
    double settled_tokens;
    double pass_tokens; /* of a sequence that decodes */
    bool untimed;
};

/* What each sequence of a part adds, at T and S. */
static void add(struct mix *x, enum mixed_part which, double n, double T, double S)
{
    struct part *p = &x->plan->part[which];
    const double *const in[] = {&T, &S};
    sym_tape_eval(p->tape, 1, in, p->column);
    for (size_t i = 0; i < p->n; i++) x->sum[which][i] += n * p->each[i];
}

static enum err_code open_part(struct arena *a, struct mix_plan *p, const struct cost_symbols *y, enum mixed_part which,
                               struct err *e)
{
    const struct cost_sums *s = &p->mixed.part[which];
    struct part *t = &p->part[which];
    const struct sym **each = arena_array(a, s->n, sizeof *each), *const in[] = {y->T, y->S};
    *t = (struct part){.n = s->n,
                       .each = arena_array(a, s->n, sizeof *t->each),
                       .column = arena_array(a, s->n, sizeof *t->column),
                       .growth = arena_array(a, s->n, sizeof *t->growth)};
    if (!each || !t->each || !t->column || !t->growth) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++) {
        each[i] = s->at[i].each;
        t->column[i] = &t->each[i];
        p->in[p->in_n++] = s->at[i].var;
    }
    return sym_tape_compile(a, s->n, each, 2, in, &t->tape, e);
}

/* The context from which on sums grow evenly: the largest window or choice of keys. */
static double settled(const struct model *m)
{
    double most = 2; /* tokens of the first context that a state was found at */
    const double source = m->encoder.layers > 0 ? (double)m->encoder.source_tokens : 0; /* in front of each */
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (x->kind != MIXER_ATTENTION && x->kind != MIXER_LATENT) continue;
        if (m->kinds[i].encodes) continue;
        if (x->chunked) return (double)INFINITY;
        most = fmax(most, (double)(x->window_tokens > x->top_keys ? x->window_tokens : x->top_keys));
    }
    return source + most;
}

static void find_growth(struct mix_plan *p)
{
    struct part *t = &p->part[MIXED_DECODE];
    const double period = (double)mix_period(p), S = p->settled_tokens, next = S + period;
    const double *const from[] = {&p->pass_tokens, &S}, *const to[] = {&p->pass_tokens, &next};
    for (size_t i = 0; i < t->n; i++) t->growth[i] = 0;
    if (!(p->settled_tokens < (double)INFINITY)) return;
    sym_tape_eval(t->tape, 1, from, t->column);
    for (size_t i = 0; i < t->n; i++) t->growth[i] = -t->each[i];
    sym_tape_eval(t->tape, 1, to, t->column);
    for (size_t i = 0; i < t->n; i++) t->growth[i] = (t->growth[i] + t->each[i]) / period;
}

/* Bytes that the cache holds for the sequences of the step, and that state takes. */
static void add_held(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_stage *stage,
                     const struct sym **kv, const struct sym **state)
{
    *kv = *state = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        const struct sym *held = sym_mul(c, cost_times(c, op, stage), op->held_bytes);
        const struct sym **to = op->kind == OP_KV_WRITE ? kv : state;
        *to = sym_add(c, *to, held);
    }
}

enum { STAGE_FIRST, STAGE_LAST, STAGE_NEAR, STAGE_FAR, STAGE_LAYERS };

/* Numbers of each stage; those that are alike are one. */
static enum err_code place_stages(struct arena *a, struct mix_plan *p, const struct layout *w, struct err *e)
{
    const struct model *m = p->setup.model;
    struct stages *s = &p->stages;
    int64_t *layers = arena_array(a, m->kinds_n, sizeof *layers);
    s->number = arena_array(a, (size_t)w->pp * s->inputs_n, sizeof *s->number);
    s->out = arena_array(a, (size_t)w->pp * MIX_VALUES_N, sizeof *s->out);
    s->like = arena_array(a, (size_t)w->pp, sizeof *s->like);
    if (!layers || !s->number || !s->out || !s->like) return err_nomem(e);
    for (int64_t at = 0; at < w->pp; at++) {
        double *x = s->number + s->n * s->inputs_n;
        size_t same = 0;
        x[STAGE_FIRST] = at == 0 ? 1 : 0;
        x[STAGE_LAST] = at == w->pp - 1 ? 1 : 0;
        layout_hops(w, layout_crosses(w, at), &x[STAGE_NEAR], &x[STAGE_FAR]);
        (void)layout_stage(m, w->pp, at, layers);
        for (size_t k = 0; k < m->kinds_n; k++) x[STAGE_LAYERS + k] = (double)layers[k];
        while (same < s->n && memcmp(s->number + same * s->inputs_n, x, s->inputs_n * sizeof *x) != 0) same++;
        s->like[at] = (int64_t)same;
        if (same == s->n) s->n++;
    }
    return ERR_OK;
}

static enum err_code open_stages(struct arena *a, struct mix_plan *p, struct err *e)
{
    const struct layout w = layout_whole(&p->setup.layout);
    const struct model *m = p->setup.model;
    struct stages *s = &p->stages;
    const struct layout_symbols y = layout_symbols_make(p->c);
    if (w.pp == 1) return ERR_OK;
    s->inputs_n = STAGE_LAYERS + m->kinds_n;
    s->in = arena_array(a, s->inputs_n, sizeof *s->in);
    if (!s->in) return err_nomem(e);
    s->in[STAGE_FIRST] = s->stage.first = sym_var(p->c, "stage_first");
    s->in[STAGE_LAST] = s->stage.last = sym_var(p->c, "stage_last");
    s->in[STAGE_NEAR] = y.hop_near;
    s->in[STAGE_FAR] = y.hop_far;
    s->stage.layers = s->in + STAGE_LAYERS;
    for (size_t k = 0; k < m->kinds_n; k++) {
        const char *name = arena_printf(a, "stage_layers_%zu", k);
        if (!name) return err_nomem(e);
        s->in[STAGE_LAYERS + k] = sym_var(p->c, name);
    }
    return place_stages(a, p, &w, e);
}

/* What a tape of one stage takes, or of the whole. */
static enum err_code compile_tape(struct arena *a, struct mix_plan *p, const struct sym *const value[MIX_VALUES_N],
                                  struct err *e)
{
    const struct sym **in = p->in;
    const size_t n = p->in_n + p->stages.inputs_n;
    if (p->stages.inputs_n > 0) {
        in = arena_array(a, n, sizeof *in);
        if (!in) return err_nomem(e);
        memcpy(in, p->in, p->in_n * sizeof *in);
        memcpy(in + p->in_n, p->stages.in, p->stages.inputs_n * sizeof *in);
    }
    TRY(sym_check(p->c, e));
    return sym_tape_compile(a, MIX_VALUES_N, value, n, in, &p->tape, e);
}

static enum err_code compile(struct arena *a, struct mix_plan *p, const struct cost_symbols *y, struct err *e)
{
    struct sym_ctx *c = p->c;
    const struct step_setup *u = &p->setup;
    const struct sym *value[MIX_VALUES_N];
    struct timed_total total;
    double weight_bytes;
    struct rates rates;
    const struct sym *sent;
    const struct cost_layout l = {.layout = u->layout};
    const struct cost_stage *stage = layout_whole(&u->layout).pp > 1 ? &p->stages.stage : NULL;
    if (u->any_layout) return err_set(e, ERR_USAGE, "mixed steps are described for one layout");
    TRY(layout_check_of(u->model, &u->layout, e));
    TRY(open_stages(a, p, e));
    TRY(step_rates(c, u, &rates, &sent, e));
    TRY(cost_build_mixed(a, c, y, u->model, &u->conventions, &l, u->pass_tokens > 1 ? u->pass_tokens : 1, &p->mixed,
                         e));
    TRY(cost_bind_mixed(a, c, y, u->model, &l, &p->mixed, e));
    TRY(timed_ops(a, c, &rates, u->hw, u->model, sent, &p->mixed.ops, &p->timed, &p->untimed, e));
    if (u->offload.bytes > 0) {
        rates.host = sym_num(c, u->offload.host_bytes_per_s);
        TRY(offload_ops(c, &rates, offload_part(c, &u->offload, &p->mixed.ops, &u->conventions, stage), &p->mixed.ops,
                        p->timed, e));
    }
    if (stage)
        TRY(timed_sum_stage(a, c, &rates, u->fidelity, &p->mixed.ops, p->timed, stage, &total, e));
    else
        TRY(timed_sum(a, c, &rates, u->fidelity, &p->mixed.ops, p->timed, NULL, &total, e));
    if (u->overlapped && u->fidelity == STEP_ROOFLINE)
        total.time_s = step_overlapped(c, &p->mixed.ops, p->timed, stage);
    const struct sym *weights = cost_stage_weight_bytes(c, &p->mixed.ops, &u->conventions, stage);
    if (u->offload.bytes > 0)
        weights = sym_sub(c, weights, offload_bytes(c, &u->offload, &p->mixed.ops, &u->conventions, stage));
    if (!stage && !sym_constant(weights, &weight_bytes))
        return err_set(e, ERR_RANGE, "%s: weights have no size", u->model->name);
    value[MIX_step_s] = total.time_s;
    value[MIX_flops] = total.flops;
    value[MIX_bytes] = total.bytes;
    value[MIX_compute_s] = total.compute_s;
    value[MIX_memory_s] = total.memory_s;
    value[MIX_link_s] = total.link_s;
    value[MIX_host_s] = total.host_s;
    add_held(c, &p->mixed.ops, stage, &value[MIX_kv_bytes], &value[MIX_state_bytes]);
    const struct layout w = layout_whole(&u->layout);
    const struct sym *rows = w.sp ? sym_ceil(c, sym_div(c, p->mixed.rows, sym_int(c, w.tp))) : p->mixed.rows;
    value[MIX_activation_bytes] =
        u->conventions.activations_uncounted ? sym_int(c, 0) : step_activation(c, u->model, &p->mixed.ops, rows, stage);
    const struct model_beside towers = model_beside(u->model);
    const struct sym *beside = sym_num(c, model_beside_bytes(&towers, (double)w.tp));
    if (stage) beside = sym_mul(c, stage->first, beside);
    value[MIX_memory_bytes] = SYM_SUM(c, stage ? weights : sym_num(c, weight_bytes), beside, value[MIX_kv_bytes],
                                      value[MIX_state_bytes], value[MIX_activation_bytes]);
    const size_t sums = p->mixed.part[MIXED_DECODE].n + p->mixed.part[MIXED_PREFILL].n + 1; /* and the other groups */
    p->in = arena_array(a, sums, sizeof *p->in);
    p->at = arena_array(a, sums + p->stages.inputs_n, sizeof *p->at);
    if (!p->in || !p->at) return err_nomem(e);
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++) TRY(open_part(a, p, y, k, e));
    if (p->mixed.others) p->in[p->in_n++] = p->mixed.others;
    return compile_tape(a, p, value, e);
}

enum err_code mix_compile(struct arena *a, const struct step_setup *setup, struct mix_plan **out, struct err *e)
{
    const struct model *m = setup->model;
    if (m->weights_unknown)
        return err_set(e, ERR_INPUT, "%s: %s; state the format with --weights", m->source, m->weights_unknown);
    if (m->encoder.layers > 0 && m->encoder.source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is", m->name);
    struct mix_plan *p = arena_alloc(a, sizeof *p);
    if (!p) return err_nomem(e);
    *p = (struct mix_plan){.setup = *setup, .c = sym_open(a)};
    if (!p->c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(p->c);
    TRY(compile(a, p, &y, e));
    p->settled_tokens = settled(m);
    p->pass_tokens = setup->pass_tokens > 1 ? (double)setup->pass_tokens : 1;
    find_growth(p);
    *out = p;
    return ERR_OK;
}

bool mix_timed(const struct mix_plan *p) { return !p->untimed; }
double mix_settled_tokens(const struct mix_plan *p) { return p->settled_tokens; }
int64_t mix_period(const struct mix_plan *p) { return layout_whole(&p->setup.layout).dcp; }

enum err_code mix_open(struct arena *a, struct mix_plan *p, struct mix *out, struct err *e)
{
    out->plan = p;
    out->others_tokens = arena_array(a, 1, sizeof *out->others_tokens);
    if (!out->others_tokens) return err_nomem(e);
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++) {
        out->sum[k] = arena_array(a, p->part[k].n, sizeof *out->sum[k]);
        if (!out->sum[k]) return err_nomem(e);
    }
    mix_clear(out);
    return ERR_OK;
}

void mix_clear(struct mix *x)
{
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < x->plan->part[k].n; i++) x->sum[k][i] = 0;
    *x->others_tokens = 0;
}

void mix_copy(struct mix *to, const struct mix *from)
{
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < from->plan->part[k].n; i++) to->sum[k][i] = from->sum[k][i];
    *to->others_tokens = *from->others_tokens;
}

void mix_decode(struct mix *x, double n, double context) { add(x, MIXED_DECODE, n, x->plan->pass_tokens, context); }

void mix_prefill(struct mix *x, double n, double tokens, double prefix)
{
    add(x, MIXED_PREFILL, n, tokens, prefix + tokens);
}

void mix_scale(struct mix *x, enum mixed_part part, double factor)
{
    for (size_t i = 0; i < x->plan->part[part].n; i++) x->sum[part][i] *= factor;
}

void mix_share(struct mix *x, double groups)
{
    const double all = mix_tokens(x);
    if (!(groups > 1)) return;
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++) {
        const double n = x->sum[k][0];
        if (n > 0) mix_scale(x, k, ceil(n / groups) / n);
    }
    mix_others(x, all - mix_tokens(x));
}

void mix_others(struct mix *x, double tokens) { *x->others_tokens = tokens; }

void mix_advance(struct mix *x, double n)
{
    const struct part *t = &x->plan->part[MIXED_DECODE];
    for (size_t i = 0; i < t->n; i++) x->sum[MIXED_DECODE][i] += n * t->growth[i];
}

void mix_add(struct mix *to, const struct mix *from, double times)
{
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < from->plan->part[k].n; i++) to->sum[k][i] += times * from->sum[k][i];
}

bool mix_within(const struct mix *x, const struct mix *y)
{
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < x->plan->part[k].n; i++)
            if (x->sum[k][i] > y->sum[k][i]) return false;
    return true;
}

double mix_sequences(const struct mix *x) { return x->sum[MIXED_DECODE][0] + x->sum[MIXED_PREFILL][0]; }
double mix_tokens(const struct mix *x) { return x->sum[MIXED_DECODE][1] + x->sum[MIXED_PREFILL][1]; }

struct mix_mean mix_mean(const struct mix *x, enum mixed_part part)
{
    const double *s = x->sum[part];
    return (struct mix_mean){s[0], s[1] / s[0], s[2] / s[0]};
}

struct step_pass mix_pass_of(const struct mix_plan *p)
{
    return (struct step_pass){.setup = &p->setup,
                              .c = p->c,
                              .in = p->in,
                              .in_n = p->in_n,
                              .op = p->mixed.ops.op,
                              .timed = p->timed,
                              .n = p->mixed.ops.n};
}

const double *const *mix_sums(const struct mix *x)
{
    struct mix_plan *p = x->plan;
    size_t n = 0;
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < p->part[k].n; i++) p->at[n++] = &x->sum[k][i];
    if (p->mixed.others) p->at[n] = x->others_tokens;
    return p->at;
}

int64_t mix_stages(const struct mix_plan *p) { return layout_whole(&p->setup.layout).pp; }

/* All values of each different stage. */
static void eval_stages(const struct mix *x)
{
    struct mix_plan *p = x->plan;
    struct stages *s = &p->stages;
    double *column[MIX_VALUES_N];
    (void)mix_sums(x);
    for (size_t k = 0; k < s->n; k++) {
        for (size_t i = 0; i < s->inputs_n; i++) p->at[p->in_n + i] = &s->number[k * s->inputs_n + i];
        for (size_t i = 0; i < MIX_VALUES_N; i++) column[i] = &s->out[k * MIX_VALUES_N + i];
        sym_tape_eval(p->tape, 1, p->at, column);
    }
}

void mix_eval_stages(const struct mix *x, double *out)
{
    const struct mix_plan *p = x->plan;
    double v[MIX_VALUES_N];
    if (p->stages.n == 0) {
        mix_eval(x, v);
        out[0] = v[MIX_step_s];
        return;
    }
    eval_stages(x);
    for (int64_t i = 0; i < mix_stages(p); i++) out[i] = p->stages.out[p->stages.like[i] * MIX_VALUES_N + MIX_step_s];
}

static void join_stages(const struct mix *x, double out[MIX_VALUES_N])
{
    const struct mix_plan *p = x->plan;
    const double *fullest = p->stages.out;
    eval_stages(x);
    for (size_t i = 0; i < MIX_VALUES_N; i++) out[i] = 0;
    for (int64_t k = 0; k < mix_stages(p); k++) {
        const double *v = p->stages.out + p->stages.like[k] * MIX_VALUES_N;
        out[MIX_step_s] += v[MIX_step_s];
        for (size_t i = MIX_flops; i < MIX_kv_bytes; i++) out[i] = fmax(out[i], v[i]);
        if (v[MIX_memory_bytes] > fullest[MIX_memory_bytes]) fullest = v;
    }
    for (size_t i = MIX_kv_bytes; i < MIX_VALUES_N; i++) out[i] = fullest[i];
}

void mix_eval(const struct mix *x, double out[MIX_VALUES_N])
{
    double *column[MIX_VALUES_N];
    if (x->plan->stages.n > 0) {
        join_stages(x, out);
        return;
    }
    for (size_t i = 0; i < MIX_VALUES_N; i++) column[i] = &out[i];
    sym_tape_eval(x->plan->tape, 1, mix_sums(x), column);
}

void mix_prompt(struct mix *scratch, double tokens, double chunk, double out[MIX_VALUES_N])
{
    for (size_t i = 0; i < MIX_VALUES_N; i++) out[i] = 0;
    for (double from = 0; from < tokens; from += chunk) {
        double v[MIX_VALUES_N];
        mix_clear(scratch);
        mix_prefill(scratch, 1, fmin(chunk, tokens - from), from);
        mix_eval(scratch, v);
        for (size_t i = 0; i < MIX_VALUES_N; i++) out[i] = i < MIX_kv_bytes ? out[i] + v[i] : fmax(out[i], v[i]);
    }
}

enum err_code mix_ops(struct arena *a, const struct mix *x, struct step_op **out, size_t *out_n, struct err *e)
{
    const struct mix_plan *p = x->plan;
    double *values = arena_array(a, p->in_n, sizeof *values);
    if (!values) return err_nomem(e);
    size_t n = 0;
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++)
        for (size_t i = 0; i < p->part[k].n; i++) values[n++] = x->sum[k][i];
    if (p->mixed.others) values[n] = *x->others_tokens;
    const struct step_list list = {.c = p->c,
                                   .model = p->setup.model,
                                   .phase = "mixed",
                                   .op = p->mixed.ops.op,
                                   .timed = p->timed,
                                   .n = p->mixed.ops.n,
                                   .in = p->in,
                                   .in_n = p->in_n};
    *out_n = list.n;
    return step_ops_of(a, &list, values, out, e);
}
