#include "calc/learn/quantity.h"

#include <string.h>

#include "calc/base/text.h"

/* A topic: the operators of these names, from the first template that has them. */
struct topic {
    const char *name, *meaning;
    const char *ops[4];
    bool latent; /* needs the template with latent attention and experts */
    bool fused;  /* with the MLP as one kernel */
};

static const struct topic TOPICS[] = {
    {"embed", "a row of the embedding table for every token", {"embed"}, false, false},
    {"norm", "RMS norm over the model width", {"mixer_norm"}, false, false},
    {"qkv_proj", "queries, keys and values from the residual stream", {"qkv_proj"}, false, false},
    {"rope", "rotary position embedding", {"rope"}, false, false},
    {"kv_write", "new keys and values into the cache", {"kv_write"}, false, false},
    {"attention", "scores, softmax and weighted sum in one kernel", {"attention"}, false, false},
    {"o_proj", "heads back to the model width", {"o_proj"}, false, false},
    {"mlp", "the gated MLP as one kernel", {"mlp"}, false, true},
    {"up_proj", "gate and up products", {"up_proj"}, false, false},
    {"mlp_act", "nonlinearity times the other branch", {"mlp_act"}, false, false},
    {"down_proj", "back to the model width", {"down_proj"}, false, false},
    {"residual", "sum with the residual stream", {"mixer_residual"}, false, false},
    {"lm_head", "logits over the vocabulary", {"lm_head"}, false, false},
    {"sample", "softmax over the vocabulary and a draw", {"sample"}, false, false},
    {"router", "scores of the experts", {"router"}, true, false},
    {"experts", "the routed experts' products", {"experts_up", "experts_down"}, true, false},
    {"shared_expert", "the expert that every token passes", {"shared_up", "shared_down"}, true, false},
    {"latent_attention", "attention in the cached latent space (MLA)", {"attention"}, true, false},
    {"q_absorb", "queries into the latent space, head by head", {"q_absorb"}, true, false},
    {"v_absorb", "latent sums out of it", {"v_absorb"}, true, false},
    {"kv_a_proj", "the latent that is cached", {"kv_a_proj"}, true, false},
};

enum { TOPICS_N = sizeof TOPICS / sizeof TOPICS[0] };

static const char *const NAMES[] = {"embed",    "norm",     "qkv_proj",  "rope",    "kv_write",      "attention",
                                    "o_proj",   "mlp",      "up_proj",   "mlp_act", "down_proj",     "residual",
                                    "lm_head",  "sample",   "router",    "experts", "shared_expert", "latent_attention",
                                    "q_absorb", "v_absorb", "kv_a_proj", NULL};

const char *const *quantity_names(void) { return NAMES; }

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

static enum err_code find_topic(const char *name, const struct topic **out, struct err *e)
{
    char near[200], clean[64];
    for (size_t i = 0; i < TOPICS_N; i++)
        if (strcmp(TOPICS[i].name, name) == 0) {
            *out = &TOPICS[i];
            return ERR_OK;
        }
    text_suggest(near, sizeof near, name, &TOPICS[0].name, sizeof TOPICS[0], TOPICS_N);
    return err_set(e, ERR_USAGE, "no topic '%s'%s (ridge explain)", text_clean(clean, sizeof clean, name, strlen(name)),
                   near);
}

/* Widths of a textbook decoder as numbers, v heads as wide as k heads, and the lecture's heads. */
static void bind_textbook(const struct quantity_scope *s, bool latent, struct cost_op *op)
{
    struct sym_ctx *c = s->c;
    const struct cost_symbols *y = &s->y;
    const struct sym *two = sym_int(c, 2), *heads = sym_div(c, y->D, y->H);
    const struct sym_binding env[] = {
        {y->b_kv, two},
        {y->b_act, two},
        {y->b_embed, two},
        {y->b_head, two},
        {y->b_mixer, two},
        {y->b_ffn, two},
        {y->b_expert, two},
        {y->b_router, two},
        {y->b_other, two},
        {y->t, sym_int(c, 1)},
        {y->Hv, latent ? y->Hv : y->H},
        {y->N, s->course && !latent ? heads : y->N},
        {y->K, s->course && !latent ? heads : y->K},
    };
    const size_t n = sizeof env / sizeof env[0];
    const struct sym **at[] = {&op->flops, &op->vector_flops, &op->weight_bytes, &op->kv_bytes, &op->activation_bytes};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) *at[i] = sym_bind(c, *at[i], env, n);
    for (size_t i = 0; i < op->tensors_n; i++) op->tensor[i].elems = sym_bind(c, op->tensor[i].elems, env, n);
}

static enum err_code collect(const struct quantity_scope *s, const struct topic *t, struct cost_ops *ops,
                             struct quantity_topic *out, struct err *e)
{
    const struct cost_op **list = arena_array(s->arena, sizeof t->ops / sizeof t->ops[0], sizeof *list);
    if (!list) return err_nomem(e);
    const struct sym *zero = sym_int(s->c, 0);
    struct quantity_topic q = {.name = t->name,
                               .meaning = t->meaning,
                               .ops = list,
                               .flops = zero,
                               .vector_flops = zero,
                               .weight_bytes = zero,
                               .kv_bytes = zero,
                               .activation_bytes = zero,
                               .params = zero};
    for (size_t k = 0; k < sizeof t->ops / sizeof t->ops[0] && t->ops[k]; k++)
        for (size_t i = 0; i < ops->n; i++) {
            struct cost_op *op = &ops->op[i];
            if (strcmp(op->name, t->ops[k]) != 0) continue;
            if (!s->model) bind_textbook(s, t->latent, op);
            list[q.ops_n++] = op;
            q.flops = sym_add(s->c, q.flops, op->flops);
            q.vector_flops = sym_add(s->c, q.vector_flops, op->vector_flops);
            q.weight_bytes = sym_add(s->c, q.weight_bytes, op->weight_bytes);
            q.kv_bytes = sym_add(s->c, q.kv_bytes, op->kv_bytes);
            q.activation_bytes = sym_add(s->c, q.activation_bytes, op->activation_bytes);
            for (size_t j = 0; j < op->tensors_n; j++) q.params = sym_add(s->c, q.params, op->tensor[j].elems);
            break; /* the first layer kind that has it */
        }
    if (q.ops_n == 0)
        return err_set(e, ERR_USAGE, "%s has no %s", s->model ? s->model->name : "the textbook decoder", t->name);
    q.bytes = SYM_SUM(s->c, q.weight_bytes, q.kv_bytes, q.activation_bytes);
    TRY(sym_check(s->c, e));
    *out = q;
    return ERR_OK;
}

enum err_code quantity_topic(const struct quantity_scope *s, const char *name, enum quantity_phase phase,
                             struct quantity_topic *out, struct err *e)
{
    const struct topic *t = NULL;
    TRY(find_topic(name, &t, e));
    const bool absorbs = strcmp(t->name, "latent_attention") == 0 || strcmp(t->name, "q_absorb") == 0 ||
                         strcmp(t->name, "v_absorb") == 0;
    if (s->model && absorbs && s->model->kinds[0].mixer.kind != MIXER_LATENT)
        return err_set(e, ERR_USAGE, "%s has no latent attention", s->model->name);
    struct model textbook;
    const struct model *m = s->model;
    if (!m) {
        TRY(template_model(s->arena, t->latent, &textbook, e));
        m = &textbook;
    }
    struct cost_conventions v = s->conventions;
    v.mlp_fused = t->fused;
    const struct sym *one = sym_int(s->c, 1);
    const struct cost_pass pass = {.name = t->name,
                                   .B = s->y.B,
                                   .S = s->y.S,
                                   .absorbed = t->latent,
                                   .T = phase == QUANTITY_PREFILL  ? s->y.S
                                        : phase == QUANTITY_DECODE ? one
                                                                   : s->y.T};
    struct cost_ops ops;
    TRY(cost_build(s->arena, s->c, &s->y, m, &v, &pass, 1, &ops, e));
    if (s->model) TRY(cost_bind(s->c, &s->y, m, 1, &ops, e));
    return collect(s, t, &ops, out, e);
}

static const char *const CALLS[] = {"flops",    "vector_flops",     "bytes",  "weight_bytes",
                                    "kv_bytes", "activation_bytes", "params", "intensity"};

const char *const *quantity_calls(size_t *n)
{
    *n = sizeof CALLS / sizeof CALLS[0];
    return CALLS;
}

const char *quantity_meaning(const char *topic)
{
    for (size_t i = 0; i < TOPICS_N; i++)
        if (strcmp(TOPICS[i].name, topic) == 0) return TOPICS[i].meaning;
    return NULL;
}

enum err_code quantity_resolve(const struct quantity_scope *s, enum quantity_phase phase, const char *call,
                               const char *argument, const struct sym **out, struct err *e)
{
    struct quantity_topic q;
    TRY(quantity_topic(s, argument, phase, &q, e));
    const struct sym *const value[] = {q.flops,    q.vector_flops,     q.bytes,  q.weight_bytes,
                                       q.kv_bytes, q.activation_bytes, q.params, sym_div(s->c, q.flops, q.bytes)};
    for (size_t i = 0; i < sizeof CALLS / sizeof CALLS[0]; i++)
        if (strcmp(CALLS[i], call) == 0) {
            *out = value[i];
            return sym_check(s->c, e);
        }
    return err_set(e, ERR_USAGE, "no quantity '%.40s'", call);
}
