#include "calc/cost/train.h"

#include <string.h>

#include "calc/model/stored.h"

static const struct train_recipe RECIPES[] = {
    {.name = "adamw",
     .meaning = "bf16 parameters and gradients; fp32 master copy and two moments: 16 bytes a parameter",
     .source = "ZeRO, arXiv 1910.02054, section 3.1",
     .param_bytes = 2,
     .grad_bytes = 2,
     .state_bytes = 12},
    {.name = "adamw-fp32-grad",
     .meaning = "the same with gradients added up in fp32: 18 bytes",
     .source = "Megatron-LM, docs: distributed optimizer",
     .param_bytes = 2,
     .grad_bytes = 4,
     .state_bytes = 12},
    {.name = "adamw-fp32",
     .meaning = "parameters, gradients and moments in fp32, no second copy: 16 bytes a parameter",
     .source = "Adam, arXiv 1412.6980",
     .param_bytes = 4,
     .grad_bytes = 4,
     .state_bytes = 8},
    {.name = "adamw-bf16",
     .meaning = "parameters, gradients and moments in bf16, no second copy: 8 bytes a parameter",
     .source = "Adam, arXiv 1412.6980",
     .param_bytes = 2,
     .grad_bytes = 2,
     .state_bytes = 4},
    {.name = "adamw-8bit",
     .meaning = "bf16 parameters and gradients; fp32 copy, moments in 8 bits with an fp32 scale for 2048: 10 bytes",
     .source = "8-bit optimizers, arXiv 2110.02861, section 2.1",
     .param_bytes = 2,
     .grad_bytes = 2,
     .state_bytes = 6 + 2 * COST_FP32_BYTES / 2048.0 /* not a unit */},
    {.name = "momentum",
     .meaning = "bf16 parameters and gradients; fp32 copy and one moment (SGD with momentum): 12 bytes",
     .source = "ZeRO, arXiv 1910.02054, section 3.1",
     .param_bytes = 2,
     .grad_bytes = 2,
     .state_bytes = 8},
    {.name = "sgd",
     .meaning = "bf16 parameters and gradients; fp32 copy: 8 bytes",
     .source = "ZeRO, arXiv 1910.02054, section 3.1",
     .param_bytes = 2,
     .grad_bytes = 2,
     .state_bytes = 4},
};

const struct train_recipe *train_recipes(size_t *n)
{
    *n = sizeof RECIPES / sizeof RECIPES[0];
    return RECIPES;
}

const struct train_recipe *train_recipe_find(const char *name)
{
    for (size_t i = 0; i < sizeof RECIPES / sizeof RECIPES[0]; i++)
        if (strcmp(RECIPES[i].name, name) == 0) return &RECIPES[i];
    return NULL;
}

enum err_code train_model(const struct train_recipe *r, struct model *m, struct err *e)
{
    struct dtype d;
    if (m->activations.bits < 16)
        return err_set(e, ERR_USAGE, "training with activations in %s is not described: bf16, fp16 or fp32",
                       m->activations.name);
    TRY(dtype_find(r->param_bytes > 2 ? "fp32" : m->activations.bits > 16 ? "bf16" : m->activations.name, &d, e));
    TRY(stored_set_all(m, d.name, e));
    d.compute = m->activations.compute;
    for (size_t i = 0; i < WEIGHT_CLASSES; i++) m->weights[i] = d;
    return ERR_OK;
}

struct train_memory train_memory(const struct train_recipe *r, double params, int64_t copies, int zero)
{
    const double part = params / (double)copies;
    return (struct train_memory){.param_bytes = r->param_bytes * (zero >= 3 ? part : params),
                                 .grad_bytes = r->grad_bytes * (zero >= 2 ? part : params),
                                 .state_bytes = r->state_bytes * (zero >= 1 ? part : params)};
}

struct saved {
    struct sym_ctx *c;
    const struct model *m;
    const struct cost_pass *pass;
    const struct sym *act, *rows;
    int64_t tp;
    bool scores;
};

/* Output of a mixer's core, which the product after it keeps as its input. */
static const struct sym *mixed_output(const struct saved *s, const struct cost_op *op)
{
    const struct mixer *x = &s->m->kinds[op->kind_index].mixer;
    return SYM_PROD(s->c, s->rows, sym_rat(s->c, x->heads * x->v_head_dim, s->tp), s->act);
}

static const struct sym *of_attention(const struct saved *s, const struct cost_op *op)
{
    struct sym_ctx *c = s->c;
    const struct sym *heads = sym_rat(c, s->m->kinds[op->kind_index].mixer.heads, s->tp);
    const struct sym *inputs = sym_sub(c, op->activation_bytes, mixed_output(s, op));
    const struct sym *statistic = SYM_PROD(c, sym_int(c, COST_FP32_BYTES), s->rows, heads);
    if (!s->scores) return sym_add(c, inputs, statistic);
    return sym_add(c, inputs, SYM_PROD(c, s->rows, s->pass->S, heads, s->act)); /* the softmax of all pairs */
}

/* What an operator's backward pass needs of its inputs, bytes. */
static const struct sym *saved_by(const struct saved *s, const struct cost_op *op)
{
    struct sym_ctx *c = s->c;
    const struct sym *bytes = op->activation_bytes;
    switch (op->kind) {
    case OP_LINEAR: return SYM_PROD(c, op->rows, op->in, s->act);
    case OP_EXPERTS:
        return SYM_PROD(c, op->rows, sym_int(c, s->m->kinds[op->kind_index].ffn.experts_per_token), op->in, s->act);
    case OP_LM_HEAD: /* logits in fp32, for the loss */
        return sym_add(c, SYM_PROD(c, op->rows, op->in, s->act),
                       SYM_PROD(c, op->rows, op->out, sym_int(c, COST_FP32_BYTES)));
    case OP_ATTENTION: return of_attention(s, op);
    case OP_SCAN: return sym_sub(c, bytes, mixed_output(s, op));
    case OP_ACTIVATION: /* of three arrays two are read, of two one */
        return strncmp(op->shape, "[rows, F]", strlen("[rows, F]")) == 0 ? sym_div(c, bytes, sym_int(c, 2))
                                                                         : SYM_PROD(c, bytes, sym_rat(c, 2, 3));
    case OP_NORM:
    case OP_HEAD_NORM:
    case OP_CONV:
    case OP_LONG_CONV: return sym_div(c, bytes, sym_int(c, 2));
    case OP_MLP:
    case OP_GATED_NORM:
    case OP_ROUTE:
    case OP_COMBINE:
    case OP_INDEX:
    case OP_ABSORB:
    case OP_STREAMS: return bytes; /* in and out: a little too much, and there are few */
    case OP_EMBED:
    case OP_LORA_SHRINK:
    case OP_LORA_EXPAND:
    case OP_POSITIONS:
    case OP_ROPE:
    case OP_KV_WRITE:
    case OP_RESIDUAL:
    case OP_SCALE:
    case OP_SAMPLE:
    case OP_ALL_REDUCE:
    case OP_ALL_GATHER:
    case OP_ALL_TO_ALL:
    case OP_SEND:
    case OP_KINDS: break; /* linear in their inputs, or without any that has a gradient */
    }
    return sym_int(c, 0);
}

enum err_code train_saved_bytes(struct arena *a, struct sym_ctx *c, const struct model *m, const struct cost_ops *ops,
                                const struct cost_pass *pass, int64_t tp, enum train_recompute how,
                                const struct sym **out, struct err *e)
{
    const struct sym *zero = sym_int(c, 0), *total = zero, *most = zero;
    const struct sym **layer = arena_array(a, m->kinds_n, sizeof *layer);
    if (!layer) return err_nomem(e);
    for (size_t i = 0; i < m->kinds_n; i++) layer[i] = zero;
    const struct saved s = {.c = c,
                            .m = m,
                            .pass = pass,
                            .act = sym_num(c, m->activations.bits / 8),
                            .rows = sym_mul(c, pass->B, pass->T),
                            .tp = tp,
                            .scores = how == TRAIN_RECOMPUTE_NONE};
    for (size_t i = 0; i < ops->n; i++) {
        const struct sym **to = ops->op[i].kind_index < 0 ? &total : &layer[ops->op[i].kind_index];
        *to = sym_add(c, *to, saved_by(&s, &ops->op[i]));
    }
    const struct sym *stream = SYM_PROD(c, s.rows, sym_int(c, m->hidden), s.act);
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct sym *n = sym_int(c, m->kinds[i].count);
        total = sym_add(c, total, sym_mul(c, n, how == TRAIN_RECOMPUTE_LAYERS ? stream : layer[i]));
        most = sym_max(c, most, layer[i]);
    }
    *out = how == TRAIN_RECOMPUTE_LAYERS ? sym_add(c, total, most) : total;
    return sym_check(c, e);
}
