/* adapters -- low-rank adapters served beside the model's products, in slots of one rank, by the layout of vLLM's
 * layers. Derivation and sources: MODEL.md "Adapters". */
#include <string.h>

#include "calc/cost/build.h"
#include "calc/cost/lora.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* How tensor-parallel ranks share the product: by its outputs, by its inputs, or each has all of it. */
enum split { BY_OUTPUT, BY_INPUT, WHOLE };

/* apart: its own product is of the sequences of one part of a mixed pass. */
static const struct beside {
    const char *product;
    enum split split;
    unsigned modules; /* 0: of a name that no list of modules has */
    bool apart;
} BESIDE[] = {
    {"qkv_proj", BY_OUTPUT, LORA_Q | LORA_K | LORA_V, false},
    {"q_proj", BY_OUTPUT, LORA_Q, false},
    {"q_b_proj", BY_OUTPUT, LORA_Q_B, false},
    {"latents", WHOLE, LORA_Q_A | LORA_KV_A, false},
    {"kv_b", BY_OUTPUT, LORA_KV_B, true},
    {"o_proj", BY_INPUT, LORA_O, false},
    {"up_proj", BY_OUTPUT, LORA_GATE | LORA_UP, false},
    {"down_proj", BY_INPUT, LORA_DOWN, false},
    {"shared_up", BY_OUTPUT, LORA_GATE | LORA_UP, false},
    {"shared_down", BY_INPUT, LORA_DOWN, false},
    {"shared_gate", WHOLE, 0, false},
    {"router", WHOLE, 0, false},
    {"experts_up", BY_OUTPUT, LORA_GATE | LORA_UP, false},
    {"experts_down", BY_INPUT, LORA_DOWN, false},
};

static const struct beside *chosen(const struct build *b, const char *product)
{
    const struct model_adapters *x = &b->m->adapters;
    if (x->slots == 0) return NULL;
    for (size_t i = 0; i < sizeof BESIDE / sizeof BESIDE[0]; i++)
        if (strcmp(BESIDE[i].product, product) == 0)
            return x->modules == 0 || (x->modules & BESIDE[i].modules) ? &BESIDE[i] : NULL;
    return NULL;
}

/* Of n sequences that choose among A adapters, all alike, those that are distinct: A*(1 - (1-1/A)^n); `each` the chance
 * that a sequence needs a thing of its adapter at all. */
static const struct sym *distinct(struct build *b, const struct sym *n, const struct sym *each)
{
    const struct sym *one = INT(1), *missed = sym_sub(b->c, one, sym_div(b->c, each, Y->Al));
    if (b->m->adapters.among == 1 && each == one) return one;
    return sym_min(b->c, Y->Sl, PROD(Y->Al, sym_sub(b->c, one, sym_pow(b->c, missed, n))));
}

static const struct sym *sequences(const struct build *b)
{
    return b->pass->sums ? b->pass->step_sequences : b->pass->B;
}

/* A factor of `elems` elements in every slot, `held` times; `read` of all these are read. */
static void factor(struct build *b, struct cost_op *op, const struct sym *held, const struct sym *read,
                   const struct sym *elems)
{
    const struct sym *all = PROD(Y->Sl, held, elems);
    op->tensor[op->tensors_n++] =
        (struct cost_tensor){.class = WEIGHT_OTHER, .elems = all, .bytes = PROD(all, Y->b_act)};
    op->weight_bytes = SUM(op->weight_bytes, PROD(read, elems, Y->b_act));
}

static struct cost_op *named(struct build *b, enum cost_op_kind kind, const char *beside, const char *shape)
{
    const char *step = kind == OP_LORA_SHRINK ? "shrink" : "expand";
    const char *name = arena_printf(b->arena, "%s_%s", beside, step);
    return build_op(b, kind, name ? name : step, shape);
}

/* Both factors of n matrices [in, width of all]: rows of the product; how often a slot holds them (experts), and how
 * many of them all are read. */
struct pair {
    const struct sym *rows, *held, *read;
    int64_t n;
    const struct sym *in, *width;
    bool apart;
};

static void build_pair(struct build *b, const char *beside, enum split split, const struct pair *p)
{
    const bool sharded = b->m->adapters.sharded && b->split && split != WHOLE;
    const struct sym *n = INT(p->n), *rank = Y->Rl, *width = p->width;
    if (sharded && split == BY_OUTPUT) rank = sym_div(b->c, rank, Y->t);
    if (sharded && split == BY_INPUT) width = sym_div(b->c, width, Y->t);
    struct cost_op *op = named(b, OP_LORA_SHRINK, beside, "[rows, in] x [in, n*Rl]");
    const struct sym *made = PROD(p->rows, n, rank, INT(COST_FP32_BYTES)), *whole = PROD(p->rows, n, Y->Rl);
    op->apart = p->apart;
    op->flops = PROD(INT(2), p->rows, p->in, n, rank);
    op->activation_bytes = SUM(PROD(p->rows, p->in, Y->b_act), PROD(INT(2), made)); /* cleared before it is summed */
    factor(b, op, p->held, p->read, PROD(n, rank, p->in));
    if (sharded && p->rows != INT(0)) {
        const char *name = arena_printf(b->arena, "%s_%s", beside, split == BY_OUTPUT ? "all_gather" : "all_reduce");
        if (split == BY_OUTPUT)
            build_gather_of_bytes(b, name, "[rows, n*Rl/t] of each of t ranks", made);
        else
            build_sum_of_bytes(b, name, "[rows, Rl] over t ranks", made);
        b->ops->op[b->ops->n - 1].apart = p->apart;
    }
    op = named(b, OP_LORA_EXPAND, beside, "n times [rows, Rl] x [Rl, out]");
    op->apart = p->apart;
    op->flops = PROD(INT(2), p->rows, Y->Rl, width);
    op->activation_bytes = SUM(PROD(whole, INT(COST_FP32_BYTES)), PROD(INT(2), p->rows, width, Y->b_act));
    factor(b, op, p->held, p->read, PROD(Y->Rl, width));
}

void build_adapted(struct build *b, const char *product, const struct sym *rows, const struct sym *in, size_t n,
                   const struct sym *const *out)
{
    const struct beside *at = chosen(b, product);
    if (!at) return;
    const bool idle = rows == INT(0);
    const struct pair p = {.rows = rows,
                           .held = INT(1),
                           .read = idle ? INT(0) : distinct(b, sequences(b), INT(1)),
                           .n = (int64_t)n,
                           .in = in,
                           .width = sym_sum(b->c, n, out),
                           .apart = at->apart};
    build_pair(b, product, at->split, &p);
}

void build_adapted_experts(struct build *b, const char *product, const struct adapted_experts *x, const struct sym *in,
                           size_t n, const struct sym *const *out)
{
    const struct beside *at = chosen(b, product);
    if (!at) return;
    const struct sym *all = b->pass->sums ? b->pass->step_sequences : PROD(b->pass->B, b->groups);
    const struct pair p = {.rows = x->pairs,
                           .held = x->held,
                           .read = PROD(x->held, distinct(b, all, x->touched)),
                           .n = (int64_t)n,
                           .in = in,
                           .width = sym_sum(b->c, n, out)};
    build_pair(b, product, at->split, &p);
}

static bool at_ends(const struct build *b)
{
    return b->m->adapters.slots > 0 && b->m->adapters.modules == 0 && b->m->adapted_vocabulary;
}

void build_adapted_embedding(struct build *b)
{
    if (!at_ends(b)) return;
    struct cost_op *op = named(b, OP_LORA_EXPAND, "embed", "[B*T] rows of [V, Rl], x [Rl, D]");
    const struct sym *row = PROD(b->rows, Y->Rl, Y->b_act);
    factor(b, op, INT(1), INT(0), PROD(INT(b->m->vocab), Y->Rl)); /* rows of it are gathered */
    factor(b, op, INT(1), distinct(b, sequences(b), INT(1)), PROD(Y->Rl, Y->D));
    op->flops = PROD(INT(2), b->rows, Y->Rl, Y->D);
    op->weight_bytes = SUM(op->weight_bytes, row);
    op->activation_bytes = SUM(PROD(INT(2), row), PROD(INT(2), b->rows, Y->D, Y->b_act));
}

/* Beside the logits of all ranks, whole on each. */
void build_adapted_head(struct build *b, const struct sym *rows)
{
    if (!at_ends(b)) return;
    const struct pair p = {.rows = rows,
                           .held = INT(1),
                           .read = distinct(b, sequences(b), INT(1)),
                           .n = 1,
                           .in = Y->D,
                           .width = INT(b->m->vocab)};
    build_pair(b, "head", WHOLE, &p);
}
