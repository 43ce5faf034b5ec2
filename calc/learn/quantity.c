#include "calc/learn/quantity.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/learn/tidy.h"

/* A topic: the operators of these names, from the first layer kind that has them; or all of a layer; or of a pass. */
enum topic_extent { OPERATORS, LAYER, DECODE_STEP, PREFILL };

struct topic {
    const char *name, *meaning;
    const char *ops[4];
    bool latent; /* needs the template with latent attention and experts */
    bool fused;  /* with the MLP as one kernel */
    enum topic_extent extent;
};

static const struct topic TOPICS[] = {
    {"embed", "a row of the embedding table for every token", {"embed"}, false, false, OPERATORS},
    {"norm", "RMS norm over the model width", {"mixer_norm"}, false, false, OPERATORS},
    {"qkv_proj", "queries, keys and values from the residual stream", {"qkv_proj"}, false, false, OPERATORS},
    {"rope", "rotary position embedding", {"rope"}, false, false, OPERATORS},
    {"kv_write", "new keys and values into the cache", {"kv_write"}, false, false, OPERATORS},
    {"attention", "scores, softmax and weighted sum in one kernel", {"attention"}, false, false, OPERATORS},
    {"o_proj", "heads back to the model width", {"o_proj"}, false, false, OPERATORS},
    {"mlp", "the gated MLP as one kernel", {"mlp"}, false, true, OPERATORS},
    {"up_proj", "gate and up products", {"up_proj"}, false, false, OPERATORS},
    {"mlp_act", "nonlinearity times the other branch", {"mlp_act"}, false, false, OPERATORS},
    {"down_proj", "back to the model width", {"down_proj"}, false, false, OPERATORS},
    {"residual", "sum with the residual stream", {"mixer_residual"}, false, false, OPERATORS},
    {"lm_head", "logits over the vocabulary", {"lm_head"}, false, false, OPERATORS},
    {"sample", "softmax over the vocabulary and a draw", {"sample"}, false, false, OPERATORS},
    {"router", "scores of the experts", {"router"}, true, false, OPERATORS},
    {"experts", "the routed experts' products", {"experts_up", "experts_down"}, true, false, OPERATORS},
    {"shared_expert", "the expert that every token passes", {"shared_up", "shared_down"}, true, false, OPERATORS},
    {"latent_attention", "attention in the cached latent space (MLA)", {"attention"}, true, false, OPERATORS},
    {"q_absorb", "queries into the latent space, head by head", {"q_absorb"}, true, false, OPERATORS},
    {"v_absorb", "latent sums out of it", {"v_absorb"}, true, false, OPERATORS},
    {"kv_a_proj", "the latent that is cached", {"kv_a_proj"}, true, false, OPERATORS},
    {"layer", "all operators of one layer", {NULL}, false, false, LAYER},
    {"prefill", "a prompt's pass through the whole model, T = S", {NULL}, false, false, PREFILL},
    {"decode_step", "one token for every sequence, through the whole model", {NULL}, false, false, DECODE_STEP},
};

static const char TOGETHER[] = "the pass of B prompts through the whole model, T = S";

enum { TOPICS_N = sizeof TOPICS / sizeof TOPICS[0], TOPIC_OPS = sizeof TOPICS[0].ops / sizeof TOPICS[0].ops[0] };

static const char *const NAMES[] = {"embed",    "norm",     "qkv_proj",  "rope",    "kv_write",      "attention",
                                    "o_proj",   "mlp",      "up_proj",   "mlp_act", "down_proj",     "residual",
                                    "lm_head",  "sample",   "router",    "experts", "shared_expert", "latent_attention",
                                    "q_absorb", "v_absorb", "kv_a_proj", "layer",   "prefill",       "decode_step",
                                    NULL};
_Static_assert(sizeof NAMES / sizeof NAMES[0] == TOPICS_N + 1, "one name a topic");

const char *const *quantity_names(void) { return NAMES; }

const char *quantity_meaning(const char *topic)
{
    for (size_t i = 0; i < TOPICS_N; i++)
        if (strcmp(TOPICS[i].name, topic) == 0) return TOPICS[i].meaning;
    return NULL;
}

enum err_code quantity_open(struct arena *a, struct sym_ctx *c, bool course, struct quantity_scope *out, struct err *e)
{
    struct quantity_scope s = {
        .arena = a, .c = c ? c : sym_open(a), .course = course, .tp = 1, .copies = 1, .layer = -1};
    if (!s.c) return err_nomem(e);
    s.y = cost_symbols_make(s.c);
    s.rates = rates_make(s.c);
    s.fidelity = course ? STEP_BOUND : STEP_ROOFLINE;
    s.conventions = cost_conventions_of(course);
    *out = s;
    return sym_check(s.c, e);
}

static const struct sym **rate_at(struct rates *r, size_t i)
{
    return i < HW_DTYPES_N ? &r->peak[i] : i == HW_DTYPES_N ? &r->bandwidth : &r->link;
}

enum err_code quantity_device(struct quantity_scope *s, const struct hw *hw, struct err *e)
{
    double link;
    TRY(timed_link_rate(hw, s->tp, &link, e));
    s->hw = hw;
    s->rates = rates_of(s->c, hw, link);
    const struct rates names = rates_make(s->c);
    const char *meaning;
    for (size_t i = 0; s->free && i < RATES_N; i++)
        if (rates_list(&names, i, &meaning) == s->free) *rate_at(&s->rates, i) = s->free;
    return sym_check(s->c, e);
}

/* ---- the operators of a pass ---- */

/* Decoders whose sizes are all symbols: the builders look only at structure and formats. */
static enum err_code template_model(struct arena *a, bool latent, struct model *m, struct err *e)
{
    struct layer_kind *k = arena_array(a, 1, sizeof *k);
    if (!k) return err_nomem(e);
    *k = (struct layer_kind){.count = 1, .norms = 2, .label = "layer"};
    k->mixer = (struct mixer){.kind = latent ? MIXER_LATENT : MIXER_ATTENTION, .q_rank = latent};
    k->ffn = (struct ffn){.kind = latent ? FFN_MOE : FFN_DENSE, .gated = true, .shared_width = latent};
    *m = (struct model){.name = "textbook", .kinds = k, .kinds_n = 1, .layers = 1};
    for (size_t i = 0; i < WEIGHT_CLASSES; i++) TRY(dtype_find("bf16", &m->weights[i], e));
    TRY(dtype_find("bf16", &m->kv, e));
    return dtype_find("bf16", &m->activations, e);
}

/* Bytes per element as numbers, where a format has no scales of its own beside. */
static size_t bind_widths(const struct quantity_scope *s, const struct model *m, struct sym_binding *env)
{
    const struct cost_symbols *y = &s->y;
    const struct sym *const var[] = {y->b_embed, y->b_head, y->b_mixer, y->b_ffn, y->b_expert, y->b_router, y->b_other};
    size_t n = 0;
    for (size_t i = 0; i < WEIGHT_CLASSES; i++)
        env[n++] = (struct sym_binding){var[i], sym_num(s->c, m->weights[i].bits / 8)};
    env[n++] = (struct sym_binding){y->b_act, sym_num(s->c, m->activations.bits / 8)};
    env[n++] = (struct sym_binding){y->b_state, sym_num(s->c, m->state.bits / 8)};
    if (m->kv.scale_bits > 0) return n;
    env[n++] = (struct sym_binding){y->b_kv, sym_num(s->c, m->kv.bits / 8)};
    for (size_t i = 0; i < m->kinds_n; i++)
        if (cost_index_is_fp8(&m->kinds[i].mixer)) return n;
    env[n++] = (struct sym_binding){y->b_index, sym_num(s->c, m->kv.bits / 8)};
    return n;
}

/* Sizes as the symbols they are; of a textbook v heads as wide as k heads, and the lecture's heads. */
static enum err_code bind_symbols(const struct quantity_scope *s, const struct topic *t, const struct model *m,
                                  struct cost_op *op, struct err *e)
{
    struct sym_ctx *c = s->c;
    const struct cost_symbols *y = &s->y;
    struct sym_binding env[WEIGHT_CLASSES + 8];
    size_t n = bind_widths(s, m, env);
    if (s->tp == 1) env[n++] = (struct sym_binding){y->t, sym_int(c, 1)};
    const bool same = s->model && op->kind_index >= 0 && m->kinds[op->kind_index].mixer.kind == MIXER_ATTENTION &&
                      m->kinds[op->kind_index].mixer.head_dim == m->kinds[op->kind_index].mixer.v_head_dim;
    if (same || (!s->model && !t->latent)) env[n++] = (struct sym_binding){y->Hv, y->H};
    const bool lecture = !s->model && s->course && !t->latent && t->extent == OPERATORS;
    if (lecture) {
        const struct sym *heads = sym_div(c, y->D, y->H);
        env[n++] = (struct sym_binding){y->N, heads};
        env[n++] = (struct sym_binding){y->K, heads};
    }
    const struct sym **at[] = {
        &op->flops,       &op->half_flops,         &op->vector_flops,     &op->weight_bytes, &op->kv_bytes,
        &op->held_bytes,  &op->kv_needed_bytes,    &op->activation_bytes, &op->wire_bytes,   &op->weight_needed_bytes,
        &op->state_bytes, &op->state_needed_bytes, &op->fabric_bytes};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        *at[i] = sym_bind(c, *at[i], env, n);
        if (lecture) TRY(tidy(c, *at[i], at[i], e)); /* D/H heads of width H are D */
    }
    for (size_t i = 0; i < op->tensors_n; i++) {
        op->tensor[i].elems = sym_bind(c, op->tensor[i].elems, env, n);
        op->tensor[i].bytes = sym_bind(c, op->tensor[i].bytes, env, n);
    }
    return sym_check(c, e);
}

static enum err_code bind_pass(const struct quantity_scope *s, const struct topic *t, struct quantity_pass *p,
                               struct err *e)
{
    const struct cost_binding how = {.free = s->free, .free_kind = s->layer, .relative = s->sizes == QUANTITY_RELATIVE};
    p->layers = !s->model || s->sizes == QUANTITY_RELATIVE ? s->y.L : NULL;
    if (s->model && s->sizes == QUANTITY_NUMBERS && s->free == s->y.L) /* times the count that each operator has */
        p->layers = sym_div(s->c, s->y.L, sym_int(s->c, s->model->layers));
    if (s->model && s->sizes != QUANTITY_SYMBOLS) return cost_bind_as(s->c, &s->y, s->model, s->tp, &how, &p->ops, e);
    for (size_t i = 0; i < p->ops.n; i++) TRY(bind_symbols(s, t, p->model, &p->ops.op[i], e));
    return ERR_OK;
}

static bool passes_whole(const struct quantity_scope *s) { return s->model && model_passes_whole(s->model); }

const struct sym *quantity_tokens(const struct quantity_scope *s)
{
    if (passes_whole(s)) return s->y.S;
    if (s->tokens) return s->tokens;
    return sym_int(s->c, s->model && s->model->diffusion ? s->model->block_tokens : 1);
}

static enum err_code build_pass(const struct quantity_scope *s, const struct topic *t, enum quantity_phase phase,
                                struct quantity_pass *p, struct err *e)
{
    struct model *textbook = arena_array(s->arena, 1, sizeof *textbook);
    if (!textbook) return err_nomem(e);
    p->model = s->model;
    if (!s->model) {
        TRY(template_model(s->arena, t->latent, textbook, e));
        p->model = textbook;
    }
    struct cost_conventions v = s->conventions;
    if (t->extent == OPERATORS) v.mlp_fused = t->fused;
    const bool whole = passes_whole(s), denoises = s->model && s->model->diffusion;
    const struct sym *const tokens[] = {
        [QUANTITY_ANY] = whole ? s->y.S : s->y.T, [QUANTITY_PREFILL] = s->y.S, [QUANTITY_DECODE] = quantity_tokens(s)};
    const struct sym *starts = NULL; /* an encoder-decoder's prompt is its source, and the decoder begins so */
    if (phase == QUANTITY_PREFILL && s->model && s->model->encoder.layers > 0)
        starts = sym_int(s->c, s->model->encoder.start_tokens);
    const struct cost_pass pass = {.name = t->name,
                                   .B = t->extent == PREFILL && !s->prefill_together ? sym_int(s->c, 1) : s->y.B,
                                   .S = starts ? starts : s->y.S,
                                   .encodes = phase != QUANTITY_DECODE,
                                   .absorbed =
                                       !whole && (phase == QUANTITY_DECODE || (t->extent == OPERATORS && t->latent)),
                                   .uncached = whole,
                                   .all_logits = whole || (phase == QUANTITY_DECODE && (s->tokens || denoises)),
                                   .T = starts ? starts : tokens[phase]};
    TRY(cost_build(s->arena, s->c, &s->y, p->model, &v, &pass, s->tp, &p->ops, e));
    return bind_pass(s, t, p, e);
}

/* ---- topics ---- */

/* Any other operator of a model, by its own name: what families have beyond the textbook (scan, conv, index, ...). */
static bool own_operator(const struct quantity_scope *s, const char *name, struct topic *made)
{
    struct quantity_pass p;
    struct err ignored;
    *made = (struct topic){.name = name, .ops = {name}, .extent = OPERATORS};
    if (!s->model || build_pass(s, made, QUANTITY_DECODE, &p, &ignored) != ERR_OK) return false;
    for (size_t i = 0; i < p.ops.n; i++) {
        if (strcmp(p.ops.op[i].name, name) != 0) continue;
        made->name = made->ops[0] = p.ops.op[i].name;
        made->meaning = cost_op_says(&p.ops.op[i]);
        return true;
    }
    return false;
}

bool quantity_of_layer(const struct quantity_scope *s, const char *name)
{
    struct topic own;
    for (size_t i = 0; i < TOPICS_N; i++)
        if (strcmp(TOPICS[i].name, name) == 0) return TOPICS[i].extent == OPERATORS || TOPICS[i].extent == LAYER;
    return own_operator(s, name, &own);
}

/* made: where a topic that only the model has is kept */
static enum err_code find_topic(const struct quantity_scope *s, const char *name, struct topic *made,
                                const struct topic **out, struct err *e)
{
    char near[200], clean[64];
    for (size_t i = 0; i < TOPICS_N; i++)
        if (strcmp(TOPICS[i].name, name) == 0) {
            *out = &TOPICS[i];
            return ERR_OK;
        }
    if (own_operator(s, name, made)) {
        *out = made;
        return ERR_OK;
    }
    text_suggest(near, sizeof near, name, &TOPICS[0].name, sizeof TOPICS[0], TOPICS_N);
    return err_set(e, ERR_USAGE, "no topic '%s'%s (ridge explain)", text_clean(clean, sizeof clean, name, strlen(name)),
                   near);
}

/* The kind of layer that a topic is of: the one asked for, else the first that has all its operators. */
static enum err_code find_kind(const struct quantity_scope *s, const struct topic *t, const struct cost_ops *ops,
                               int *out, struct err *e)
{
    const struct model *m = s->model;
    *out = s->layer;
    if (t->extent == LAYER && s->layer < 0 && m && m->kinds_n > 1)
        return err_set(e, ERR_USAGE, "%s has %zu kinds of layer, \"%.60s\" first: choose one with --layer 1..%zu",
                       m->name, m->kinds_n, m->kinds[0].label, m->kinds_n);
    if (t->extent == LAYER && s->layer < 0) *out = 0;
    if (t->extent != OPERATORS || s->layer >= 0) return ERR_OK;
    for (size_t i = 0; i < ops->n; i++)
        if (strcmp(ops->op[i].name, t->ops[0]) == 0) {
            *out = ops->op[i].kind_index;
            return ERR_OK;
        }
    return ERR_OK;
}

static bool belongs(const struct topic *t, const struct cost_op *op, int kind)
{
    if (t->extent == DECODE_STEP || t->extent == PREFILL) return true;
    if (t->extent == LAYER) return op->kind_index == kind;
    for (size_t k = 0; k < TOPIC_OPS && t->ops[k]; k++)
        if (strcmp(op->name, t->ops[k]) == 0) return op->kind_index < 0 || op->kind_index == kind;
    return false;
}

/* "2" or "1, 3 and 4": the kinds of layer that have a topic */
static const char *kinds_text(const struct quantity_scope *s, const struct topic *t, const struct cost_ops *ops)
{
    const char *text = NULL;
    for (size_t k = 0; k < s->model->kinds_n; k++) {
        bool has = false;
        for (size_t i = 0; i < ops->n && !has; i++)
            has = ops->op[i].kind_index == (int)k && belongs(t, &ops->op[i], (int)k);
        if (has) text = text ? arena_printf(s->arena, "%s, %zu", text, k + 1) : arena_printf(s->arena, "%zu", k + 1);
    }
    return text;
}

/* The topic is not in this model, or not in the kind of layer that was chosen. */
static enum err_code refuse_topic(const struct quantity_scope *s, const struct topic *t, const struct cost_ops *ops,
                                  struct err *e)
{
    const struct model *m = s->model;
    const bool dense = strcmp(t->name, "mlp") == 0 || strcmp(t->name, "up_proj") == 0 ||
                       strcmp(t->name, "mlp_act") == 0 || strcmp(t->name, "down_proj") == 0;
    for (size_t i = 0; m && dense && m->kinds_n == 1 && i < ops->n; i++)
        if (ops->op[i].kind == OP_EXPERTS)
            return err_set(e, ERR_USAGE, "%s has no %s: its layers have experts (ridge explain experts)", m->name,
                           t->name);
    if (!m || s->layer < 0 || m->kinds_n == 1)
        return err_set(e, ERR_USAGE, "%s has no %s", m ? m->name : "the textbook decoder", t->name);
    const char *label = m->kinds[s->layer].label, *kinds = kinds_text(s, t, ops);
    if (!kinds) return err_set(e, ERR_USAGE, "%s has no %s in any kind of layer", m->name, t->name);
    return err_set(e, ERR_USAGE, "layer kind %d of %s, \"%.60s\", has no %s; --layer %s has", s->layer + 1, m->name,
                   label, t->name, kinds);
}

static enum err_code select_ops(const struct quantity_scope *s, const struct topic *t, struct cost_ops *ops,
                                struct err *e)
{
    int kind = -1;
    size_t n = 0;
    struct cost_ops all = {arena_array(s->arena, ops->n, sizeof *all.op), ops->n};
    if (!all.op) return err_nomem(e);
    memcpy(all.op, ops->op, ops->n * sizeof *all.op);
    TRY(find_kind(s, t, ops, &kind, e));
    for (size_t i = 0; i < ops->n; i++) {
        if (!belongs(t, &ops->op[i], kind)) continue;
        ops->op[n] = ops->op[i];
        if (t->extent == OPERATORS || t->extent == LAYER) ops->op[n].count = 1;
        n++;
    }
    ops->n = n;
    return n ? ERR_OK : refuse_topic(s, t, &all, e);
}

const struct sym *quantity_params(const struct quantity_scope *s, const struct quantity_topic *q)
{
    const struct sym *sum = sym_int(s->c, 0);
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        const struct cost_op *op = &q->pass.ops.op[i];
        const struct sym *n = sym_int(s->c, op->count);
        if (q->whole && q->pass.layers && op->kind_index >= 0) n = sym_mul(s->c, n, q->pass.layers);
        for (size_t j = 0; j < op->tensors_n; j++) {
            const struct cost_tensor *x = &op->tensor[j];
            if (q->whole && (x->shared || (x->norm && s->conventions.norms_uncounted))) continue;
            sum = sym_add(s->c, sum, sym_mul(s->c, n, x->elems));
        }
    }
    return sum;
}

static bool has_latent(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].mixer.kind == MIXER_LATENT) return true;
    return false;
}

/* What topics of the MLP are where it has no gate. */
static const char *ungated_meaning(const struct quantity_scope *s, const char *name)
{
    static const char *const OF[][2] = {{"mlp", "the two-matrix MLP as one kernel"},
                                        {"up_proj", "into the width of the MLP"},
                                        {"mlp_act", "nonlinearity of the MLP"}};
    bool dense = false, gated = false;
    for (size_t i = 0; s->model && i < s->model->kinds_n; i++) {
        const struct ffn *f = &s->model->kinds[i].ffn;
        dense = dense || f->kind == FFN_DENSE;
        gated = gated || (f->kind == FFN_DENSE && f->gated);
    }
    for (size_t i = 0; i < sizeof OF / sizeof OF[0] && dense && !gated; i++)
        if (strcmp(OF[i][0], name) == 0) return OF[i][1];
    return NULL;
}

/* What a topic is of this model. */
static enum err_code find_meaning(const struct quantity_scope *s, const struct topic *t, const char **out,
                                  struct err *e)
{
    const char *ungated = ungated_meaning(s, t->name);
    *out = ungated ? ungated : t->extent == PREFILL && s->prefill_together ? TOGETHER : t->meaning;
    if (t->extent == PREFILL && s->model && s->model->encoder.layers > 0) {
        *out = arena_printf(s->arena,
                            "%s: the encoder over its source, X, and the decoder over the %lld it starts with, T = S",
                            s->prefill_together ? "the pass of B requests" : "a request's pass",
                            (long long)s->model->encoder.start_tokens);
        return *out ? ERR_OK : err_nomem(e);
    }
    if (!s->model || !s->model->diffusion) return ERR_OK;
    if (t->extent == PREFILL && passes_whole(s))
        return err_set(e, ERR_USAGE, "%s has no prefill: every pass takes the whole sequence (decode_step)",
                       s->model->name);
    if (t->extent != DECODE_STEP) return ERR_OK;
    *out = passes_whole(s) ? "a pass over the whole of every sequence, through the whole model, T = S"
                           : arena_printf(s->arena,
                                          "a pass over a block of %lld tokens of every sequence, through the "
                                          "whole model",
                                          (long long)s->model->block_tokens);
    return *out ? ERR_OK : err_nomem(e);
}

enum err_code quantity_topic(const struct quantity_scope *s, const char *name, enum quantity_phase phase,
                             struct quantity_topic *out, struct err *e)
{
    const struct topic *t = NULL;
    struct topic own;
    struct quantity_topic q = {.time_known = true};
    bool untimed = false;
    TRY(find_topic(s, name, &own, &t, e));
    const bool absorbs = strcmp(t->name, "latent_attention") == 0 || strcmp(t->name, "q_absorb") == 0 ||
                         strcmp(t->name, "v_absorb") == 0;
    if (s->model && absorbs && !has_latent(s->model))
        return err_set(e, ERR_USAGE, "%s has no latent attention", s->model->name);
    q.name = t->name;
    TRY(find_meaning(s, t, &q.meaning, e));
    q.layer = t->extent == LAYER;
    q.prompt = t->extent == PREFILL && !s->prefill_together;
    q.whole = t->extent == DECODE_STEP || t->extent == PREFILL;
    if (q.whole) phase = t->extent == PREFILL ? QUANTITY_PREFILL : QUANTITY_DECODE;
    TRY(build_pass(s, t, phase, &q.pass, e));
    TRY(select_ops(s, t, &q.pass.ops, e));
    const struct sym *sent = timed_wire_factor(s->c, s->hw, s->tp);
    TRY(timed_ops(s->arena, s->c, &s->rates, s->hw, q.pass.model, sent, &q.pass.ops, &q.pass.timed, &untimed, e));
    q.time_known = !untimed;
    const enum step_fidelity fidelity = q.whole ? s->fidelity : STEP_ROOFLINE;
    TRY(timed_sum(s->arena, s->c, &s->rates, fidelity, &q.pass.ops, q.pass.timed, q.whole ? q.pass.layers : NULL,
                  &q.total, e));
    q.bytes = q.total.bytes;
    q.params = quantity_params(s, &q);
    TRY(sym_check(s->c, e));
    *out = q;
    return ERR_OK;
}

static const char *const CALLS[] = {"flops",       "vector_flops",     "bytes",  "weight_bytes", "kv_bytes",
                                    "state_bytes", "activation_bytes", "params", "intensity",    "time"};

const char *const *quantity_calls(size_t *n)
{
    *n = sizeof CALLS / sizeof CALLS[0];
    return CALLS;
}

enum err_code quantity_value(const struct quantity_scope *s, const struct quantity_topic *q, const char *call,
                             const struct sym **out, struct err *e)
{
    struct quantity_scope all = *s;
    struct quantity_topic model;
    const struct sym *params = q->params;
    if (s->tp > 1 && strcmp(call, "params") == 0) { /* of the model, not of a rank */
        all.tp = 1;
        TRY(quantity_topic(&all, q->name, QUANTITY_ANY, &model, e));
        params = model.params;
    }
    const struct sym *const value[] = {q->total.flops,
                                       q->total.vector_flops,
                                       q->bytes,
                                       q->total.weight_bytes,
                                       q->total.kv_bytes,
                                       q->total.state_bytes,
                                       q->total.activation_bytes,
                                       params,
                                       sym_div(s->c, q->total.flops, q->bytes),
                                       q->total.time_s};
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++)
        if (strcmp(CALLS[i], call) == 0) {
            if (strcmp(call, "time") == 0 && !q->time_known)
                return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no time can be given", s->hw->file);
            *out = value[i];
            return sym_check(s->c, e);
        }
    return err_set(e, ERR_USAGE, "no quantity '%.40s'", call);
}

enum err_code quantity_resolve(const struct quantity_scope *s, enum quantity_phase phase, const char *call,
                               const char *argument, const struct sym **out, struct err *e)
{
    struct quantity_topic q;
    TRY(quantity_topic(s, argument, phase, &q, e));
    return quantity_value(s, &q, call, out, e);
}

unsigned quantity_units(const struct quantity_topic *q)
{
    unsigned units = 0;
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        enum hw_dtype unit;
        double flops = 1;
        if (sym_constant(q->pass.ops.op[i].flops, &flops) && !(flops > 0)) continue;
        if (hw_dtype_find(q->pass.timed[i].unit, &unit)) units |= 1U << unit;
    }
    return units;
}
