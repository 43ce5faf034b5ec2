/* rwkv -- time mixing of RWKV-4, -5, -6 and -7. Derivations: MODEL.md "Time mixing". */
#include "calc/cost/build.h"

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

/* Elementwise flops: of SiLU, a sigmoid or a tanh; of a layer norm with bias. */
enum { ACT_FLOPS = 4, BIASED_NORM_FLOPS = 7 };

/* k*v, times the bonus plus the state, times r summed; state times decay plus k*v. Token by token in any pass. */
enum { BONUS_FLOPS = 1 + 2 + 2 + 2 };
/* A decay of RWKV-6 is exp(-exp(w)). */
enum { FINCH_DECAY_FLOPS = 3 };
/* RWKV-7: what the state answers to the removed key, times its rate and subtracted; decay, k*v added, output. */
enum { GOOSE_FLOPS = 2 + 2 + 1 + 2 + 2 };
/* Its decay is exp(c * sigmoid(w)); a removed key times its rate. */
enum { GOOSE_DECAY_FLOPS = ACT_FLOPS + 2 + 1 };
/* Keys of RWKV-7: the removed one is k times a weight as a unit vector (square, sum, times root), the added one
 * k + k*(a-1)*weight, where the rate a is a sigmoid. */
enum { GOOSE_KEY_FLOPS = 1 + 3 + 4 + ACT_FLOPS };
/* Values move towards those of the first layer by a sigmoid: v + (first - v)*s. */
enum { GOOSE_VALUE_FLOPS = ACT_FLOPS + 3 };

/* RWKV-4, a channel and token, with exponents relative to the largest so far. Output: k plus the bonus, the larger of
 * it and the state's, two exponentials of differences, two sums weighted by them, their quotient. State: the old
 * exponent plus the decay, the larger of it and k, two exponentials, two sums. */
enum { WKV_OUTPUT_FLOPS = 1 + 1 + 4 + 3 + 2 + 1, WKV_STATE_FLOPS = 1 + 1 + 4 + 3 + 2 };

void build_wkv_scan(struct build *b)
{
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N] with three states [B, N]");
    op->vector_flops = PROD(INT(WKV_OUTPUT_FLOPS + WKV_STATE_FLOPS), b->part_rows, Y->N);
    op->activation_bytes = PROD(INT(3), b->part_rows, Y->N, Y->b_act);
    build_vector(b, op, PROD(INT(2), Y->N), false); /* decay, bonus */
    build_read(b, op);
    build_state(b, op, PROD(INT(3), Y->N), Y->b_state);
}

void build_wkv(struct build *b)
{
    const struct sym *const in[] = {Y->N, Y->N, Y->N};
    build_token_shift(b, "time_shift", 3);
    for (size_t i = 0; i < 3; i++) { /* each of its own mixture */
        static const char *const NAMES[] = {"r_proj", "k_proj", "v_proj"};
        build_linear(b, NAMES[i], "[B*T, D] x [D, N]", WEIGHT_MIXER, b->rows, Y->D, in[i], false);
    }
    build_scan(b, &b->m->kinds[b->kind_index].mixer);
    build_elementwise(b, OP_ACTIVATION, "receptance_gate", "[B*T, N]", PROD(b->rows, Y->N), ACT_FLOPS + 1, 3);
    build_linear(b, "out_proj", "[B*T, N] x [N, D]", WEIGHT_MIXER, b->rows, Y->N, Y->D, false);
}

void build_time_mix_scan(struct build *b, const struct recurrence *p)
{
    const bool finch = p->block == RECURRENT_FINCH, goose = p->block == RECURRENT_GOOSE;
    const struct sym *state = PROD(Y->N, Y->H, Y->Hv), *keys = PROD(Y->N, Y->H), *two = INT(2);
    struct cost_op *op = build_op(b, OP_SCAN, "scan", "[B, T, N, Hv] with states [B, N, H, Hv]");
    const struct sym *flops = PROD(INT(goose ? GOOSE_FLOPS : BONUS_FLOPS), state);
    if (finch) flops = SUM(flops, PROD(INT(FINCH_DECAY_FLOPS), keys));
    if (goose) flops = SUM(flops, PROD(INT(GOOSE_DECAY_FLOPS), keys));
    op->vector_flops = PROD(b->part_rows, flops);
    /* r and k; RWKV-6 a decay, RWKV-7 a decay, a removed key and its rate */
    const struct sym *read = PROD(INT(goose ? 5 : finch ? 3 : 2), keys);
    op->activation_bytes = PROD(b->part_rows, SUM(read, PROD(two, Y->N, Y->Hv)), Y->b_act);
    if (!goose) build_vector(b, op, PROD(INT(finch ? 1 : 2), keys), false); /* a bonus, and RWKV-5's decay */
    build_read(b, op);
    build_state(b, op, state, Y->b_state);
}

/* Norm of each head with weight and bias, and the gate. RWKV-7 adds the value times the weighted product of receptance
 * and key before the gate, and its gate has no nonlinearity left. */
static void build_time_mix_output(struct build *b, bool goose)
{
    const struct sym *keys = PROD(Y->N, Y->H), *values = PROD(Y->N, Y->Hv);
    struct cost_op *op = build_op(b, OP_GATED_NORM, "output_norm", "[B*T, N*Hv]");
    const struct sym *flops = PROD(INT(BIASED_NORM_FLOPS + (goose ? 2 + 1 : ACT_FLOPS + 1)), values);
    const struct sym *arrays = PROD(INT(goose ? 4 : 3), values);
    if (goose) {
        flops = SUM(flops, PROD(INT(3), keys));
        arrays = SUM(arrays, PROD(INT(2), keys));
    }
    op->vector_flops = PROD(b->rows, flops);
    op->activation_bytes = PROD(b->rows, arrays, Y->b_act);
    build_vector(b, op, PROD(INT(2), values), true);
    if (!b->v->norms_uncounted) op->weight_bytes = op->tensor[0].bytes;
    if (goose) {
        build_vector(b, op, keys, false);
        op->weight_bytes = SUM(op->weight_bytes, op->tensor[1].bytes);
    }
    build_linear(b, "out_proj", "[B*T, N*Hv] x [N*Hv, D]", WEIGHT_MIXER, b->rows, values, Y->D, false);
}

/* Two products through a low rank, with a nonlinearity between them and a bias when asked. */
static void build_low_rank(struct build *b, const char *const names[3], const struct sym *rank, const struct sym *out,
                           bool activated, bool bias)
{
    build_linear(b, names[0], "[B*T, D] x [D, rank]", WEIGHT_MIXER, b->rows, Y->D, rank, false);
    if (activated) build_elementwise(b, OP_ACTIVATION, names[1], "[B*T, rank]", PROD(b->rows, rank), ACT_FLOPS, 2);
    build_linear(b, names[2], "[B*T, rank] x [rank, heads]", WEIGHT_MIXER, b->rows, rank, out, bias);
}

static const char *const DECAY[] = {"decay_down", "decay_act", "decay_up"};

/* RWKV-6: one mixture with the token before makes, through a low rank, the five that the products read. */
static void build_mixtures(struct build *b)
{
    enum { MIXTURES = 5 };
    const struct sym *five = INT(MIXTURES), *elems = PROD(b->rows, Y->D), *narrow = PROD(five, Y->Rm);
    build_token_shift(b, "time_shift", 1);
    build_linear(b, "mix_down", "[B*T, D] x [D, 5*Rm]", WEIGHT_MIXER, b->rows, Y->D, narrow, false);
    build_elementwise(b, OP_ACTIVATION, "mix_act", "[B*T, 5*Rm]", PROD(b->rows, narrow), ACT_FLOPS, 2);
    struct cost_op *op = build_op(b, OP_LINEAR, "mix_up", "five of [B*T, Rm] x [Rm, D]");
    op->compute_class = WEIGHT_MIXER;
    op->flops = PROD(INT(2 * MIXTURES), elems, Y->Rm);
    op->activation_bytes = PROD(b->rows, SUM(narrow, PROD(five, Y->D)), Y->b_act);
    build_tensor(b, op, WEIGHT_MIXER, five, Y->D, Y->Rm);
    build_read(b, op);
    /* before - x; plus a stored part, times it, plus x, for each */
    build_elementwise(b, OP_CONV, "time_mixtures", "[B*T, 5, D]", elems, 1 + 3 * MIXTURES, 1 + 2 * MIXTURES);
    op = &b->ops->op[b->ops->n - 1];
    build_vector(b, op, PROD(five, Y->D), false);
    build_read(b, op);
}

static void build_heads(struct build *b, const char *name, const struct sym *out)
{
    build_linear(b, name, "[B*T, D] x [D, N*H]", WEIGHT_MIXER, b->rows, Y->D, out, false);
}

/* Low-rank parts of RWKV-7: decay, rate, share of the first layer's values, gate. */
static void build_goose_parts(struct build *b, const struct recurrence *p)
{
    static const char *const RATE[] = {"rate_down", "", "rate_up"}, *const VALUE[] = {"value_down", "", "value_up"},
                             *const GATE[] = {"gate_down", "gate_act", "gate_up"};
    const struct sym *keys = PROD(Y->N, Y->H), *values = PROD(Y->N, Y->Hv);
    build_low_rank(b, DECAY, Y->Ra, keys, true, true);
    build_low_rank(b, RATE, Y->Ri, keys, false, true);
    if (p->value_rank > 0) {
        build_low_rank(b, VALUE, Y->Rv, values, false, true);
        build_elementwise(b, OP_ACTIVATION, "value_mix", "[B*T, N*Hv]", PROD(b->rows, values), GOOSE_VALUE_FLOPS, 4);
    }
    build_low_rank(b, GATE, Y->Rg, values, true, false);
    build_elementwise(b, OP_ACTIVATION, "key_mix", "[B*T, N*H]", PROD(b->rows, keys), GOOSE_KEY_FLOPS, 5);
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    build_vector(b, op, PROD(INT(2), keys), false);
    build_read(b, op);
}

void build_time_mix(struct build *b, const struct mixer *x)
{
    const struct recurrence *p = &x->recurrence;
    const bool finch = p->block == RECURRENT_FINCH, goose = p->block == RECURRENT_GOOSE;
    const struct sym *keys = PROD(Y->N, Y->H), *values = PROD(Y->N, Y->Hv);
    if (finch)
        build_mixtures(b);
    else
        build_token_shift(b, "time_shift", goose ? 6 : 4);
    build_heads(b, "r_proj", keys);
    build_heads(b, "k_proj", keys);
    build_heads(b, "v_proj", values);
    if (goose)
        build_goose_parts(b, p);
    else
        build_heads(b, "g_proj", values);
    if (finch) build_low_rank(b, DECAY, Y->Ra, keys, true, true);
    build_scan(b, x);
    build_time_mix_output(b, goose);
}
