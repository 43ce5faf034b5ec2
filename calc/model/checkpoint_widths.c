/* checkpoint_widths -- sides of a checkpoint's matrices against those of the model that its config describes. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/checkpoint.h"

enum matrix {
    SIDE_Q,
    SIDE_K,
    SIDE_V,
    SIDE_O,
    SIDE_Q_A,
    SIDE_Q_B,
    SIDE_KV_A,
    SIDE_KV_B,
    SIDE_STATE_IN,
    SIDE_STEP_DOWN,
    SIDE_STEP_UP,
    SIDE_STATES,
    SIDE_STATE_OUT,
    SIDE_UP, /* from here on of the feed-forward block */
    SIDE_GATE,
    SIDE_DOWN,
    SIDE_EXPERT_UP,
    SIDE_EXPERT_DOWN
};

/* A matrix of a layer by its name behind "blk.N." and behind "layers.N.". */
struct side {
    const char *gguf, *hf;
    enum matrix what;
};

static const struct side SIDES[] = {
    {"attn_q.weight", "self_attn.q_proj.weight", SIDE_Q},
    {"attn_k.weight", "self_attn.k_proj.weight", SIDE_K},
    {"attn_v.weight", "self_attn.v_proj.weight", SIDE_V},
    {"attn_output.weight", "self_attn.o_proj.weight", SIDE_O},
    {"attn_q_a.weight", "self_attn.q_a_proj.weight", SIDE_Q_A},
    {"attn_q_b.weight", "self_attn.q_b_proj.weight", SIDE_Q_B},
    {"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", SIDE_KV_A},
    {"attn_kv_b.weight", "self_attn.kv_b_proj.weight", SIDE_KV_B},
    {"ssm_in.weight", "mixer.in_proj.weight", SIDE_STATE_IN},
    {"ssm_x.weight", "mixer.x_proj.weight", SIDE_STEP_DOWN},
    {"ssm_dt.weight", "mixer.dt_proj.weight", SIDE_STEP_UP},
    {"ssm_a", "mixer.A_log", SIDE_STATES},
    {"ssm_out.weight", "mixer.out_proj.weight", SIDE_STATE_OUT},
    {"shortconv.in_proj.weight", "conv.in_proj.weight", SIDE_STATE_IN},
    {"shortconv.out_proj.weight", "conv.out_proj.weight", SIDE_STATE_OUT},
    {"", "mamba.in_proj.weight", SIDE_STATE_IN},
    {"", "mamba.x_proj.weight", SIDE_STEP_DOWN},
    {"", "mamba.dt_proj.weight", SIDE_STEP_UP},
    {"", "mamba.A_log", SIDE_STATES},
    {"", "mamba.out_proj.weight", SIDE_STATE_OUT},
    {"", "linear_attn.in_proj_qkvz.weight", SIDE_STATE_IN},
    {"", "linear_attn.out_proj.weight", SIDE_STATE_OUT},
    {"ffn_gate.weight", "mlp.gate_proj.weight", SIDE_GATE},
    {"ffn_up.weight", "mlp.up_proj.weight", SIDE_UP},
    {"ffn_down.weight", "mlp.down_proj.weight", SIDE_DOWN},
    {"ffn_gate_exps.weight", "mlp.experts.0.gate_proj.weight", SIDE_EXPERT_UP},
    {"ffn_up_exps.weight", "mlp.experts.0.up_proj.weight", SIDE_EXPERT_UP},
    {"ffn_down_exps.weight", "mlp.experts.0.down_proj.weight", SIDE_EXPERT_DOWN},
    {"", "block_sparse_moe.experts.0.w1.weight", SIDE_EXPERT_UP},
    {"", "block_sparse_moe.experts.0.w3.weight", SIDE_EXPERT_UP},
    {"", "block_sparse_moe.experts.0.w2.weight", SIDE_EXPERT_DOWN},
};

struct sides {
    int64_t out, in, experts; /* 0 not told */
};

static struct sides of_attention(const struct mixer *x, enum matrix what, int64_t hidden)
{
    const int64_t in = hidden * (x->doubled_input ? 2 : 1);
    const int64_t q = x->heads * x->head_dim * (x->output_gate && !x->gate_apart ? 2 : 1);
    if (what == SIDE_Q) return (struct sides){x->q_rank ? 0 : q, in, 0};
    if (what == SIDE_Q_A) return (struct sides){x->q_rank, in, 0};
    if (what == SIDE_Q_B) return (struct sides){q, x->q_rank, 0};
    if (what == SIDE_K) return (struct sides){x->kv_heads * x->head_dim, in, 0};
    if (what == SIDE_V) return (struct sides){x->kv_heads * x->v_head_dim, in, 0};
    if (what == SIDE_O) return (struct sides){hidden, x->heads * x->v_head_dim, 0};
    return (struct sides){0, 0, 0};
}

static struct sides of_latent(const struct mixer *x, enum matrix what, int64_t hidden)
{
    if (x->one_vector) return (struct sides){0, 0, 0};
    const int64_t q = x->heads * (x->head_dim + x->rope_dim);
    if (what == SIDE_Q) return (struct sides){x->q_rank ? 0 : q, hidden, 0};
    if (what == SIDE_Q_A) return (struct sides){x->q_rank, hidden, 0};
    if (what == SIDE_Q_B) return (struct sides){q, x->q_rank, 0};
    if (what == SIDE_KV_A) return (struct sides){x->kv_rank + x->rope_dim, hidden, 0};
    if (what == SIDE_KV_B) return (struct sides){x->heads * (x->head_dim + x->v_head_dim), x->kv_rank, 0};
    if (what == SIDE_O) return (struct sides){hidden, x->heads * x->v_head_dim, 0};
    return (struct sides){0, 0, 0};
}

/* Mamba-1: a head is a channel. Mamba-2: both streams, keys, queries and a step a head. */
static struct sides of_recurrent(const struct mixer *x, enum matrix what, int64_t hidden)
{
    const struct recurrence *p = &x->recurrence;
    const int64_t inner = x->heads * x->v_head_dim, keys = x->kv_heads * x->head_dim;
    const bool selective = p->block == RECURRENT_SELECTIVE, memory = p->block == RECURRENT_MEMORY;
    if (what == SIDE_STATE_IN && memory) return (struct sides){inner, hidden, 0};
    if (what == SIDE_STATE_OUT && (selective || memory || p->block == RECURRENT_SSD || p->block == RECURRENT_CONV ||
                                   p->block == RECURRENT_LINEAR))
        return (struct sides){hidden, inner, 0};
    if (what == SIDE_STATE_IN && selective) return (struct sides){2 * inner, hidden, 0};
    if (what == SIDE_STATE_IN && p->block == RECURRENT_SSD && p->rank > 0) return (struct sides){2 * inner, hidden, 0};
    if (what == SIDE_STATE_IN && p->block == RECURRENT_SSD)
        return (struct sides){2 * inner + 2 * keys + x->heads, hidden, 0};
    if (what == SIDE_STATE_IN && p->block == RECURRENT_CONV)
        return (struct sides){(p->activated ? 2 : 3) * inner, hidden, 0};
    if (what == SIDE_STATE_IN && p->block == RECURRENT_LINEAR && p->gate == GATE_FULL)
        return (struct sides){2 * keys + 2 * inner, hidden, 0};
    if (!selective) return (struct sides){0, 0, 0};
    if (what == SIDE_STEP_DOWN) return (struct sides){p->rank + 2 * x->head_dim, inner, 0};
    if (what == SIDE_STEP_UP) return (struct sides){inner, p->rank, 0};
    if (what == SIDE_STATES) return (struct sides){inner, x->head_dim, 0};
    return (struct sides){0, 0, 0};
}

static struct sides of_ffn(const struct ffn *f, enum matrix what, int64_t hidden)
{
    const int64_t stream = f->latent_width ? f->latent_width : hidden;
    if (f->kind == FFN_DENSE && !f->residual_unit && !f->channel_mix) {
        if (what == SIDE_UP || (what == SIDE_GATE && f->gated)) return (struct sides){f->width, hidden, 0};
        if (what == SIDE_DOWN) return (struct sides){hidden, f->width, 0};
    }
    if (f->kind == FFN_MOE && what == SIDE_EXPERT_UP) return (struct sides){f->width, stream, f->experts};
    if (f->kind == FFN_MOE && what == SIDE_EXPERT_DOWN) return (struct sides){stream, f->width, f->experts};
    return (struct sides){0, 0, 0};
}

static struct sides wanted(const struct model *m, const struct layer_kind *k, enum matrix what)
{
    if (what >= SIDE_UP) return of_ffn(&k->ffn, what, m->hidden);
    if (k->mixer.kind == MIXER_ATTENTION) return of_attention(&k->mixer, what, m->hidden);
    if (k->mixer.kind == MIXER_LATENT) return of_latent(&k->mixer, what, m->hidden);
    if (k->mixer.kind == MIXER_RECURRENT) return of_recurrent(&k->mixer, what, m->hidden);
    return (struct sides){0, 0, 0};
}

/* The table of words, or the output head, of a model with the usual ends. */
static bool is_end(const struct model *m, const char *name, bool gguf)
{
    static const char *const NAMES[] = {"embed_tokens.weight",    "wte.weight",
                                        "embeddings.weight",      "embed_in.weight",
                                        "word_embeddings.weight", "lm_head.weight"};
    const struct model_draft *d = &m->draft;
    if (d->joined || d->heads || d->head_rows || d->no_embedding || d->no_head || m->embed_extra_rows) return false;
    if (gguf) return strcmp(name, "output.weight") == 0; /* the vocabulary is read from the other */
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const size_t len = strlen(name), n = strlen(NAMES[i]);
        if (len >= n && strcmp(name + len - n, NAMES[i]) == 0 && (len == n || name[len - n - 1] == '.')) return true;
    }
    return false;
}

/* The layer and the rest of "blk.7.attn_q.weight" or "model.layers.7.self_attn.q_proj.weight"; -1: of no layer. */
static int64_t layer_of(const char *name, bool gguf, const char **rest)
{
    const char *word = gguf ? "blk." : "layers.", *at = gguf ? name : strstr(name, word);
    char *end;
    if (!at || strncmp(at, word, strlen(word)) != 0) return -1;
    at += strlen(word);
    if (*at < '0' || *at > '9') return -1;
    const long n = strtol(at, &end, 10);
    *rest = end + 1;
    return *end == '.' && n < LONG_MAX ? n : -1;
}

/* Elements as the model counts them: not packed several to one. */
static bool unpacked(const struct tensor *t, bool gguf)
{
    static const char *const TYPES[] = {"BF16", "F16", "F32", "F8_E4M3", "F8_E5M2", "I8"};
    if (!t->type || t->dims < 2) return false;
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strcmp(TYPES[i], t->type->name) == 0) return true;
    return gguf;
}

/* Whether a layer's kind says other sides of a tensor. Gate and up may be one matrix, under the name of up. */
static bool differs(const struct tensor *t, const struct sides *w, bool fused)
{
    const int64_t out = t->shape[t->dims - 2], in = t->shape[t->dims - 1];
    if (w->out == 0 || w->in == 0) return false;
    if (t->dims == 3 && w->experts > 0 && t->shape[0] != w->experts) return true;
    return (out != w->out && !(fused && out == 2 * w->out)) || in != w->in;
}

static enum err_code say(struct arena *a, struct model *m, const struct tensor *t, const struct sides *w, size_t more,
                         struct err *e)
{
    char clean[96], others[48] = "", shape[96] = "";
    for (int i = 0; i < t->dims; i++) {
        const size_t at = strlen(shape);
        (void)snprintf(shape + at, sizeof shape - at, "%s%lld", i ? " x " : "", (long long)t->shape[i]);
    }
    if (more > 0) (void)snprintf(others, sizeof others, ", and %zu more", more);
    text_clean(clean, sizeof clean, t->name, strlen(t->name));
    const char *of = t->dims == 3 ? arena_printf(a, "%lld x ", (long long)w->experts) : "";
    if (!of) return err_nomem(e);
    m->notes = arena_printf(a, "%s%stensor %s is %s, the config explains %s%lld x %lld%s", m->notes ? m->notes : "",
                            m->notes ? "; " : "", clean, shape, of, (long long)w->out, (long long)w->in, others);
    return m->notes ? ERR_OK : err_nomem(e);
}

/* The kinds that a layer's blocks are of; a hybrid may have two blocks of one number. */
static bool explained(const struct model *m, int64_t layer, const struct tensor *t, enum matrix what, bool fused,
                      struct sides *first)
{
    bool told = false;
    int64_t next = 0;
    const size_t n = m->order_n ? m->order_n : m->kinds_n;
    for (size_t i = 0; i < n; i++) {
        const struct layer_kind *k = &m->kinds[m->order_n ? m->order[i].kind : i];
        const int64_t begin = m->order_n ? m->order[i].layer : next, end = m->order_n ? begin + 1 : begin + k->count;
        next = end;
        if (layer < begin || layer >= end || k->borrowed) continue;
        const struct sides w = wanted(m, k, what);
        if (w.out == 0 || w.in == 0) continue;
        if (!differs(t, &w, fused)) return true;
        if (!told) *first = w;
        told = true;
    }
    return !told;
}

enum err_code checkpoint_widths(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    const bool gguf = s->format == TENSOR_FORMAT_GGUF;
    const struct tensor *odd = NULL;
    struct sides of_odd = {0, 0, 0};
    size_t n = 0;
    bool gates = false;
    for (size_t i = 0; i < s->n && !gates; i++)
        gates = strstr(s->tensors[i].name, "ffn_gate.") || strstr(s->tensors[i].name, "mlp.gate_proj.");
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *t = &s->tensors[i];
        const char *rest = "";
        struct sides w;
        const int64_t layer = layer_of(t->name, gguf, &rest);
        if (layer < 0 && is_end(m, t->name, gguf) && unpacked(t, gguf) && !strstr(t->name, "vis") &&
            !strstr(t->name, "audio") && !strstr(t->name, "mtp")) {
            w = (struct sides){m->vocab, m->hidden, 0};
            if (!differs(t, &w, false)) continue;
            if (!odd) of_odd = w;
            if (!odd) odd = t;
            n++;
            continue;
        }
        if (layer < 0 || !unpacked(t, gguf) || strstr(t->name, "vis") || strstr(t->name, "mtp")) continue;
        size_t k = 0;
        while (k < sizeof SIDES / sizeof SIDES[0] && strcmp(gguf ? SIDES[k].gguf : SIDES[k].hf, rest) != 0) k++;
        if (k == sizeof SIDES / sizeof SIDES[0]) continue;
        if (explained(m, layer, t, SIDES[k].what, SIDES[k].what == SIDE_UP && !gates, &w)) continue;
        if (!odd) of_odd = w;
        if (!odd) odd = t;
        n++;
    }
    return odd ? say(a, m, odd, &of_odd, n - 1, e) : ERR_OK;
}
