#include "calc/learn/bank_decoder.h"

#include <string.h>

#include "calc/time/step.h"

#define INT(n) sym_int(m->c, (n))
#define PROD(...) SYM_PROD(m->c, __VA_ARGS__)

struct cost_conventions bank_course(const struct exercise_maker *m)
{
    struct cost_conventions v = m->textbook.conventions;
    v.causal_full = v.embed_full_table = v.mlp_fused = v.norms_uncounted = v.activations_uncounted = true;
    return v;
}

/* Structure alone, sizes all 0: what cost_build reads. */
static enum err_code textbook(struct exercise_maker *m, struct model *out, struct err *e)
{
    struct layer_kind *k = arena_array(m->arena, 1, sizeof *k);
    if (!k) return err_nomem(e);
    *k = (struct layer_kind){.count = 1, .norms = 2, .label = "attention + mlp"};
    k->mixer.kind = MIXER_ATTENTION;
    k->ffn = (struct ffn){.kind = FFN_DENSE, .gated = true};
    *out = (struct model){.name = "A decoder", .source = "decoder", .kinds = k, .kinds_n = 1, .layers = 1};
    for (size_t i = 0; i < WEIGHT_CLASSES; i++) TRY(dtype_find("bf16", &out->weights[i], e));
    TRY(dtype_find("bf16", &out->kv, e));
    return dtype_find("bf16", &out->activations, e);
}

enum err_code bank_decoder(struct exercise_maker *m, struct model *out, struct err *e)
{
    static const int64_t HEADS[] = {16, 20, 24, 28, 32, 40, 48, 56, 64}, WIDTHS[] = {64, 96, 128};
    static const int64_t GROUPS[] = {2, 4, 8}, VOCABS[] = {32000, 32768, 50304, 64000, 100352, 128256, 151936};
    TRY(textbook(m, out, e));
    struct mixer *x = &out->kinds[0].mixer;
    x->heads = bank_pick(m, sizeof HEADS / sizeof HEADS[0], HEADS);
    x->head_dim = x->v_head_dim = bank_pick(m, sizeof WIDTHS / sizeof WIDTHS[0], WIDTHS);
    const int64_t group = bank_pick(m, x->heads % 8 == 0 ? 3 : 2, GROUPS);
    x->kv_heads = x->heads / group;
    out->hidden = x->heads * x->head_dim;
    if (bank_draw(m, 0, 1)) out->hidden += 128 * bank_draw(m, 1, 6);
    out->kinds[0].ffn.width = 128 * (out->hidden * bank_draw(m, 20, 40) / 1280);
    out->vocab = bank_pick(m, sizeof VOCABS / sizeof VOCABS[0], VOCABS);
    out->layers = out->kinds[0].count = bank_draw(m, 16, 80);
    return ERR_OK;
}

enum err_code bank_decoder_with(struct exercise_maker *m, const struct model *of, int64_t kv_heads, struct model *out,
                                struct err *e)
{
    struct layer_kind *k = arena_array(m->arena, of->kinds_n, sizeof *k);
    if (!k) return err_nomem(e);
    *out = *of;
    memcpy(k, of->kinds, of->kinds_n * sizeof *k);
    for (size_t i = 0; i < of->kinds_n; i++) k[i].mixer.kv_heads = kv_heads;
    out->kinds = k;
    return ERR_OK;
}

const char *bank_decoder_sizes(struct exercise_maker *m, const struct model *d)
{
    const struct mixer *x = &d->kinds[0].mixer;
    return bank_printf(
        m,
        "L = %lld layers, model width D = %lld, MLP width F = %lld, N = %lld query heads and K = %lld KV "
        "heads of width H = %lld, and a vocabulary of V = %lld",
        (long long)d->layers, (long long)d->hidden, (long long)d->kinds[0].ffn.width, (long long)x->heads,
        (long long)x->kv_heads, (long long)x->head_dim, (long long)d->vocab);
}

enum err_code bank_count(struct exercise_maker *m, const struct model *d, struct bank_counts *out, struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "decode", .B = m->y.B, .T = INT(1), .S = m->y.S, .absorbed = true};
    struct cost_ops ops;
    struct cost_parameters p;
    struct cost_cache cache;
    struct bank_counts r;
    TRY(cost_parameters(m->arena, d, &v, &p, e));
    TRY(cost_build(m->arena, m->c, &m->y, d, &v, &pass, 1, &ops, e));
    TRY(cost_bind(m->c, &m->y, d, 1, &ops, e));
    TRY(cost_cache(m->c, &m->y, d, 1, &cache, e));
    if (!sym_constant(cost_weight_bytes(m->c, &ops, &v), &r.weight_bytes))
        return err_set(e, ERR_RANGE, "%s: weights have no size", d->name);
    r.params = p.total;
    r.kv_bytes_per_token = cache.bytes_per_token_full + cache.bytes_per_token_windowed;
    *out = r;
    return sym_check(m->c, e);
}

enum err_code bank_cache_bytes(struct exercise_maker *m, const struct model *d, int64_t S, double *out, struct err *e)
{
    struct cost_cache cache;
    TRY(cost_cache(m->c, &m->y, d, 1, &cache, e));
    const struct sym_binding at = {m->y.S, INT(S)};
    if (!sym_constant(sym_bind(m->c, cache.bytes_per_sequence, &at, 1), out))
        return err_set(e, ERR_RANGE, "%s: the cache has no size", d->name);
    return sym_check(m->c, e);
}

enum err_code bank_decode_s(struct exercise_maker *m, const struct model *d, const struct hw *hw, double B, double S,
                            double *out, struct err *e)
{
    const struct step_setup setup = {.model = d,
                                     .hw = hw,
                                     .layout = {.tp = 1},
                                     .fidelity = STEP_BOUND,
                                     .conventions = bank_course(m),
                                     .block_tokens = 1};
    struct step *s;
    double *column[STEP_VALUES_N] = {0};
    TRY(step_compile(m->arena, &setup, &s, e));
    column[STEP_decode_step_s] = out;
    step_eval(s, 1, &B, &S, &S, NULL, column);
    return ERR_OK;
}

/* The textbook's operators, with value heads as wide as key heads. */
static enum err_code symbolic_ops(struct exercise_maker *m, const struct bank_template *t, struct cost_ops *ops,
                                  struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "decode", .B = m->y.B, .T = INT(1), .S = m->y.S};
    struct model d;
    TRY(textbook(m, &d, e));
    d.tied = t->tied;
    d.kinds[0].ffn.gated = t->gated;
    return cost_build(m->arena, m->c, &m->y, &d, &v, &pass, 1, ops, e);
}

enum err_code bank_parameters(struct exercise_maker *m, const struct bank_template *t, const struct sym **out,
                              struct err *e)
{
    const struct sym_binding same[] = {{m->y.Hv, m->y.H}, {m->y.K, t->mha ? m->y.N : m->y.K}};
    const struct sym *sum = INT(0);
    struct cost_ops ops;
    TRY(symbolic_ops(m, t, &ops, e));
    for (size_t i = 0; i < ops.n; i++)
        for (size_t j = 0; j < ops.op[i].tensors_n; j++) {
            const struct cost_tensor *x = &ops.op[i].tensor[j];
            if (x->shared || x->norm) continue;
            sum = sym_add(m->c, sum, PROD(ops.op[i].kind_index < 0 ? INT(1) : m->y.L, x->elems));
        }
    *out = sym_bind(m->c, sum, same, 2);
    return sym_check(m->c, e);
}

enum err_code bank_kv_token(struct exercise_maker *m, const struct sym **out, struct err *e)
{
    const struct sym_binding one[] = {{m->y.Hv, m->y.H}, {m->y.B, INT(1)}};
    struct cost_ops ops;
    TRY(symbolic_ops(m, &(struct bank_template){.gated = true}, &ops, e));
    *out = INT(0);
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind == OP_KV_WRITE)
            *out = sym_add(m->c, *out, PROD(m->y.L, sym_bind(m->c, ops.op[i].kv_bytes, one, 2)));
    return sym_check(m->c, e);
}

enum err_code bank_device_16bit(struct exercise_maker *m, struct hw *out, double *peak_flops_per_s, struct err *e)
{
    static const char *const KEYS[] = {"h100-sxm", "h100-sxm", "a100-80g", "h200-sxm", "b200-sxm", "mi300x"};
    TRY(bank_device(m, sizeof KEYS / sizeof KEYS[0], KEYS, out, e));
    hw_pin_course(out);
    return hw_peak(out, HW_BF16, peak_flops_per_s, e);
}

enum err_code bank_served(struct exercise_maker *m, struct bank_served *out, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-13b", "llama-2-7b", "llama-3-8b", "phi-4"};
    TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, &out->model, e));
    TRY(bank_device_16bit(m, &out->hw, &out->peak_flops_per_s, e));
    TRY(bank_count(m, &out->model, &out->n, e));
    out->S = 128 * bank_draw(m, 4, 32);
    const double room = (out->hw.memory_label_bytes - out->n.weight_bytes) / (double)out->S / out->n.kv_bytes_per_token;
    out->B = bank_draw(m, 4, room < 128 ? (int64_t)room : 128);
    return ERR_OK;
}

void bank_ask(struct exercise_question *q, enum units_kind unit, double value, double tolerance_frac, const char *form)
{
    q->kind = EXERCISE_NUMBER;
    q->unit = unit;
    q->value = value;
    q->tolerance_frac = tolerance_frac;
    q->form = form;
}

const char *bank_shown(struct exercise_maker *m, enum units_kind kind, double v)
{
    char text[UNITS_TEXT_MAX];
    return bank_printf(m, "%s", units_format(text, kind, v));
}

const char *bank_peak_text(struct exercise_maker *m, double flops_per_s)
{
    const double tera = 1e12; /* not a unit */
    return bank_printf(m, "%.8g TFLOP/s", flops_per_s / tera);
}

const char *bank_digits(struct exercise_maker *m, double count)
{
    char text[UNITS_TEXT_MAX];
    return bank_printf(m, "%s", units_format_digits(text, count));
}

const char *bank_served_text(struct exercise_maker *m, const struct bank_served *s)
{
    return bank_printf(m,
                       "%s has %s parameters (norms not counted) of 2 bytes and a KV cache of %s bytes per token. It "
                       "runs on one %s with a "
                       "bandwidth of %s.",
                       s->model.name, bank_digits(m, s->n.params), bank_digits(m, s->n.kv_bytes_per_token), s->hw.name,
                       bank_shown(m, UNITS_BYTES_PER_S, s->hw.bandwidth_bytes_per_s));
}
