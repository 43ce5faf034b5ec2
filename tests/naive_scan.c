/* naive_scan -- recurrent mixers, counted by walking tokens, heads and state elements. */
#include <stdlib.h>

#include "tests/naive_walk.h"

/* A sequence's state is found when the pass does not begin it, and left when there is a cache. */
static bool found(const struct walk *w) { return !w->p->uncached && (w->p->S > w->p->T || w->p->continued); }

static bool stepwise(const struct walk *w) { return w->p->T == 1 && found(w); }

void naive_state(const struct walk *w, struct naive_op *op, double element_bytes)
{
    if (found(w)) {
        op->state_bytes += element_bytes;
        op->state_needed_bytes += element_bytes;
    }
    if (w->p->uncached) return;
    op->state_bytes += element_bytes;
    op->state_needed_bytes += element_bytes;
}

/* Columns of old inputs are read and, shifted, written; a ring would write only the new ones. */
static void conv_columns(struct walk *w, struct naive_op *op, const struct naive_layer *l)
{
    const int old = l->state.taps - 1;
    for (int column = 0; column < old && !w->p->uncached; column++) {
        if (found(w)) {
            op->state_bytes += w->m->activation_bytes;
            op->state_needed_bytes += w->m->activation_bytes;
        }
        op->state_bytes += w->m->activation_bytes;
        if (column < w->p->T) op->state_needed_bytes += w->m->activation_bytes;
    }
}

void naive_conv(struct walk *w, const struct naive_layer *l, int channels, int flops, int inputs)
{
    struct naive_op *op = op_open(w, "conv");
    for (int b = 0; b < w->p->B; b++)
        for (int c = 0; c < channels; c++) {
            conv_columns(w, op, l);
            for (int t = 0; t < w->p->T; t++) {
                for (int tap = 0; tap < l->state.taps; tap++) op->vector_flops += 2;
                if (l->state.conv_bias) op->vector_flops++;
                op->vector_flops += flops;
                for (int k = 0; k < inputs + 1; k++) op->activation_bytes += w->m->activation_bytes;
            }
        }
    for (int tap = 0; tap < l->state.taps; tap++) vector(w, op, channels, true);
    if (l->state.conv_bias) vector(w, op, channels, true);
}

/* ---- chunks ---- */

/* One chunk of tokens of one sequence. */
struct chunk {
    int from, to;
};

static bool paired(const struct walk *w, int query, int key) { return w->p->causal_full || key <= query; }
static bool before(const struct walk *w, int query, int key) { return w->p->causal_full || key < query; }

static int decays(const struct walk *w, const struct naive_layer *l)
{
    return l->state.decay == NAIVE_DECAY_HEAD      ? w->heads
           : l->state.decay == NAIVE_DECAY_CHANNEL ? w->heads * l->key_dim
                                                   : 0;
}

/* (I + A) has a unit triangle; its inverse by substitution, row by row. */
static void invert(struct naive_op *op, struct chunk c)
{
    for (int row = c.from; row < c.to; row++)
        for (int col = c.from; col < row; col++)
            for (int k = col + 1; k < row; k++) op->flops += 2;
}

/* What the delta rule adds: v - (what the chunk before each token answers to its key), for all tokens at once. */
static void correct(struct walk *w, struct naive_op *op, const struct naive_layer *l, struct chunk c)
{
    const bool head = l->state.decay == NAIVE_DECAY_HEAD, any = head || l->state.decay == NAIVE_DECAY_CHANNEL;
    for (int q = c.from; q < c.to; q++) {
        for (int k = c.from; k < c.to; k++) {
            if (before(w, q, k)) {
                for (int d = 0; d < l->key_dim; d++) op->flops += 2; /* k.k */
                op->vector_flops++;                                  /* times the rate */
                if (head) op->vector_flops += 3;                     /* difference, exponential, product */
            }
            if (!paired(w, q, k)) continue;
            for (int d = 0; d < l->key_dim; d++) op->flops += 2;   /* inverse times keys */
            for (int d = 0; d < l->value_dim; d++) op->flops += 2; /* and values */
        }
        for (int d = 0; d < l->key_dim; d++) op->vector_flops += any ? 2 : 1; /* keys times rate, and decay */
        for (int e = 0; e < l->value_dim; e++) {
            op->vector_flops++;                                  /* value times rate */
            for (int d = 0; d < l->key_dim; d++) op->flops += 2; /* what the state answers */
            op->vector_flops++;                                  /* is subtracted */
        }
        op->vector_flops += 4; /* the rate is a sigmoid */
    }
    invert(op, c);
}

/* Gates of a token and head: two soft caps, a log-sigmoid, the exponent kept, two factors by it, the least divisor. */
static int memory_gates(void)
{
    const int cap = 3, log_sigmoid = 3, kept = 2, factors = 2 * 2, divisor = 4;
    return 2 * cap + log_sigmoid + kept + factors + divisor;
}

/* Decays of one token and head, from the raw input to the factors that meet queries, keys and values. */
static void decay_token(struct naive_op *op, const struct naive_layer *l)
{
    switch (l->state.decay) {
    case NAIVE_NO_DECAY: break;
    case NAIVE_DECAY_FIXED:
        for (int e = 0; e < l->value_dim; e++) op->vector_flops += 2; /* output and value times a power */
        break;
    case NAIVE_DECAY_HEAD:
        op->vector_flops += l->state.memory ? memory_gates() : 5; /* bias, softplus, rate */
        op->vector_flops += 1;                                    /* running sum */
        op->vector_flops += 1;                                    /* from the chunk's start: exponential */
        op->vector_flops += 2;                                    /* to its end: difference, exponential */
        for (int e = 0; e < l->value_dim; e++) op->vector_flops += 2;
        break;
    case NAIVE_DECAY_CHANNEL:
        for (int d = 0; d < l->key_dim; d++) {
            op->vector_flops += 5 + 1;
            op->vector_flops += 2; /* query: exponential, product */
            op->vector_flops += 3; /* key: minus, exponential, product */
            op->vector_flops += 3; /* key to the end: difference, exponential, product */
        }
        break;
    }
}

/* Keys and queries of one token and group become 1, themselves and their products. */
static void taylor(struct naive_op *op, const struct naive_layer *l)
{
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < l->state.feature_dim; i++) {
            op->vector_flops += 1; /* scaled */
            for (int k = 0; k < l->state.feature_dim; k++) op->vector_flops += 2;
        }
}

static void scan_chunk(struct walk *w, struct naive_op *op, const struct naive_layer *l, int h, struct chunk c)
{
    const bool first = h == 0 || w->group_of[h] != w->group_of[h - 1];
    for (int q = c.from; q < c.to; q++) {
        for (int k = c.from; k < c.to; k++) {
            if (!paired(w, q, k)) continue;
            const int wide = l->state.feature_dim ? l->state.feature_dim : l->key_dim;
            for (int d = 0; d < wide && (first || l->state.delta); d++) op->flops += 2;
            if (l->state.feature_dim) op->vector_flops += 4 + 1; /* its polynomial; the sum of weights */
            for (int e = 0; e < l->value_dim; e++) op->flops += 2;
            if (l->state.decay == NAIVE_DECAY_FIXED) op->vector_flops++;
            if (l->state.decay == NAIVE_DECAY_HEAD) op->vector_flops += 3;
            if (l->state.memory) op->vector_flops += 1 + 1 + 1; /* maximum, difference to it; the sum of weights */
        }
        for (int e = 0; e < l->value_dim; e++) {
            for (int d = 0; d < l->key_dim; d++) op->flops += 2; /* query on the state before the chunk */
            for (int d = 0; d < l->key_dim; d++) op->flops += 2; /* key and value into the state after it */
            op->vector_flops++;                                  /* both parts of the output */
        }
        decay_token(op, l);
        if (!l->state.feature_dim && !l->state.memory) continue;
        if (first && l->state.feature_dim) taylor(op, l);
        for (int d = 0; d < l->key_dim; d++) op->vector_flops += 2 + 1; /* query on the sum of keys; key into it */
        op->vector_flops += 2;                                          /* both sums of weights; one over it */
        for (int e = 0; e < l->value_dim; e++) op->vector_flops += 1;
    }
    for (int d = 0; d < l->key_dim && l->state.feature_dim; d++) op->vector_flops += 1; /* the chunk's keys */
    for (int d = 0; d < l->key_dim && l->state.memory; d++) op->vector_flops += 2;      /* and a decay */
    if (l->state.delta) correct(w, op, l, c);
    for (int i = 0; i < l->key_dim * l->value_dim; i++)
        op->vector_flops += l->state.decay == NAIVE_NO_DECAY ? 1 : 2; /* state: times decay, plus the chunk's */
}

static void step_head(struct naive_op *op, const struct naive_layer *l)
{
    if (l->state.decay == NAIVE_DECAY_HEAD) op->vector_flops += l->state.memory ? memory_gates() : 6; /* to factor */
    for (int d = 0; d < l->key_dim && l->state.memory; d++) {
        op->vector_flops += 1; /* key times its gate */
        op->vector_flops += 2; /* the sum of keys decays and takes it up */
        op->vector_flops += 2; /* and answers the query, */
    }
    for (int e = 0; e < l->value_dim && l->state.memory; e++) op->vector_flops++; /* which divides */
    for (int d = 0; d < l->key_dim && l->state.decay == NAIVE_DECAY_CHANNEL; d++) op->vector_flops += 6;
    if (l->state.delta) op->vector_flops += 4;
    for (int e = 0; e < l->value_dim; e++) {
        for (int d = 0; d < l->key_dim; d++) {
            if (l->state.decay != NAIVE_NO_DECAY) op->vector_flops++;
            if (l->state.delta) op->vector_flops += 2; /* what the state answers to the key */
            op->vector_flops += 2;                     /* takes up key times value */
            op->vector_flops += 2;                     /* answers the query */
        }
        if (l->state.delta) op->vector_flops += 2; /* value less the answer, times the rate */
    }
}

static void linear_scan(struct walk *w, const struct naive_layer *l)
{
    const struct naive_pass *p = w->p;
    struct naive_op *op = op_open(w, "scan");
    const int wide = l->state.feature_dim ? l->state.feature_dim : l->key_dim;
    const int values = w->heads * l->value_dim, keys = w->groups * wide;
    elementwise(w, op, w->tokens * keys, 2, 0, l->state.delta ? 6 : 0); /* unit vectors: square, sum, times root */
    elementwise(w, op, w->tokens * values, 1, 1, 0);
    elementwise(w, op, w->tokens * decays(w, l), 1, 0, 0);
    if (l->state.delta || l->state.memory) elementwise(w, op, w->tokens * w->heads, 1, 0, 0);
    for (int b = 0; b < p->B; b++)
        for (int h = 0; h < w->heads; h++) {
            for (int i = 0; i < l->key_dim * l->value_dim; i++) naive_state(w, op, w->m->state_bytes);
            for (int i = 0; i < l->key_dim && l->state.feature_dim; i++) naive_state(w, op, w->m->state_bytes);
            for (int i = 0; i < l->key_dim + 1 && l->state.memory; i++) naive_state(w, op, w->m->state_bytes);
            if (stepwise(w)) {
                step_head(op, l);
                if (!l->state.feature_dim) continue;
                if (h == 0 || w->group_of[h] != w->group_of[h - 1]) taylor(op, l);
                for (int d = 0; d < l->key_dim; d++) op->vector_flops += 3;
                op->vector_flops += 1 + l->value_dim; /* one over the sum of weights, times it */
                continue;
            }
            for (int t = 0; t < p->T; t += l->state.chunk)
                scan_chunk(w, op, l, h, (struct chunk){t, t + l->state.chunk < p->T ? t + l->state.chunk : p->T});
        }
    if (l->state.block == NAIVE_SSD) {
        for (int v = 0; v < 3; v++) vector(w, op, w->heads, true); /* rate, bias, skip */
        elementwise(w, op, w->tokens * values, 0, 0, 3);           /* input times step; plus skip times input */
    } else if (l->state.decay_weights) {
        vector(w, op, w->heads + l->state.idle_rates, true);
        vector(w, op, decays(w, l), true);
    }
}

static void selective_scan(struct walk *w, const struct naive_layer *l)
{
    struct naive_op *op = op_open(w, "scan");
    const int n = l->key_dim;
    for (int b = 0; b < w->p->B; b++)
        for (int c = 0; c < w->heads; c++) {
            for (int i = 0; i < n; i++) naive_state(w, op, w->m->state_bytes);
            for (int t = 0; t < w->p->T; t++) {
                op->vector_flops += 3; /* softplus of the step: exponential, sum, logarithm */
                op->vector_flops += 1; /* step times input */
                for (int i = 0; i < n; i++) {
                    op->vector_flops += 2; /* step times rate, exponential */
                    op->vector_flops += 1; /* times B */
                    op->vector_flops += 2; /* state times decay plus it */
                    op->vector_flops += 2; /* times C, summed */
                }
                op->vector_flops += 2; /* plus D times input */
                op->vector_flops += 5; /* times SiLU of the gate */
            }
        }
    elementwise(w, op, w->tokens * w->heads, 3, 1, 0);      /* input, step, gate; output */
    elementwise(w, op, w->tokens * n * w->groups, 2, 0, 0); /* B, C, of each group */
    for (int i = 0; i < n + 1; i++) vector(w, op, w->heads, true);
}

/* ---- mixers ---- */

static void output(struct walk *w, const struct naive_layer *l, bool gated)
{
    const bool normed = l->state.head_norm || l->state.wide_norm || l->state.each_norm;
    const int n = w->heads * l->value_dim;
    if (!normed && !gated) return;
    struct naive_op *op = op_open(w, normed ? "output_norm" : "output_gate");
    elementwise(w, op, w->tokens * n, gated ? 2 : 1, 1, (l->state.each_norm ? 6 : normed ? 4 : 0) + (gated ? 5 : 0));
    if (normed) vector(w, op, l->state.head_norm ? l->value_dim : n, !w->p->norms_uncounted);
}

/* A product of its own for each group. */
static struct naive_op *by_group(struct walk *w, const char *name, int in, int out)
{
    struct naive_ops each = {.n = 0};
    struct walk part = *w;
    part.ops = &each;
    struct naive_op *sum = op_open(w, name);
    for (int g = 0; g < w->groups; g++) {
        const struct naive_op *op = linear(&part, name, w->tokens, in, out, &w->m->mixer, false);
        sum->flops += op->flops;
        sum->weight_bytes += op->weight_bytes;
        sum->activation_bytes += op->activation_bytes;
        sum->stored_elems += op->stored_elems;
        sum->stored_bytes += op->stored_bytes;
    }
    return sum;
}

static void selective(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int each = l->state.rank + 2 * l->key_dim, low = each * w->groups;
    linear(w, "in_proj", w->tokens, m->hidden, 2 * w->heads, &m->mixer, l->state.proj_bias);
    naive_conv(w, l, w->heads, 4, 1);
    by_group(w, "x_proj", w->heads / w->groups, each);
    all_reduce_of(w, "x_all_reduce", w->tokens * low);
    if (l->state.inner_norms) {
        struct naive_op *op = op_open(w, "inner_norm");
        elementwise(w, op, w->tokens * low, 1, 1, 4);
        if (l->state.inner_weights) vector(w, op, low, !w->p->norms_uncounted);
    }
    struct naive_op *step = by_group(w, "dt_proj", l->state.rank, w->heads / w->groups);
    vector(w, step, w->heads, true);
    step->vector_flops += w->tokens * w->heads;
    selective_scan(w, l);
    linear(w, "out_proj", w->tokens, w->heads, m->hidden, &m->mixer, l->state.proj_bias);
}

/* Time steps, B and C of a normed latent of the convolution's output. */
static void ranked_dual(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int values = w->heads * l->value_dim, low = l->state.rank + 2 * l->key_dim;
    linear(w, "in_proj", w->tokens, m->hidden, 2 * values, &m->mixer, false);
    naive_conv(w, l, values, 4, 1);
    linear(w, "x_proj", w->tokens, values, low, &m->mixer, false);
    all_reduce_of(w, "x_all_reduce", w->tokens * low);
    struct naive_op *op = op_open(w, "inner_norm");
    elementwise(w, op, w->tokens * low, 1, 1, 4);
    vector(w, op, low, !w->p->norms_uncounted);
    linear(w, "dt_proj", w->tokens, l->state.rank, w->heads, &m->mixer, false);
    linear_scan(w, l);
    output(w, l, true);
    linear(w, "out_proj", w->tokens, values, m->hidden, &m->mixer, false);
}

static void dual(struct walk *w, const struct naive_layer *l)
{
    if (l->state.rank) {
        ranked_dual(w, l);
        return;
    }
    const struct naive_model *m = w->m;
    const int values = w->heads * l->value_dim, keys = w->groups * l->key_dim;
    linear(w, "in_proj", w->tokens, m->hidden, 2 * values + 2 * keys + w->heads, &m->mixer, l->state.proj_bias);
    naive_conv(w, l, values + 2 * keys, 4, 1);
    linear_scan(w, l);
    output(w, l, true);
    linear(w, "out_proj", w->tokens, values, m->hidden, &m->mixer, l->state.proj_bias);
}

static void rates(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int heads[] = {w->heads, w->heads}, out = w->heads * l->key_dim, rank = l->state.rank;
    const int n = (l->state.delta || l->state.memory) + (l->state.decay == NAIVE_DECAY_HEAD);
    if (n) product(w, "rates_proj", w->tokens, m->hidden, n, heads, &m->mixer, l->state.memory);
    if (l->state.decay != NAIVE_DECAY_CHANNEL) return;
    if (rank) linear(w, "decay_down", w->tokens, m->hidden, rank, &m->mixer, false);
    linear(w, "decay_up", w->tokens, rank ? rank : m->hidden, out, &m->mixer, l->state.decay_bias);
}

static void linear_attention(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int wide = l->state.feature_dim ? l->state.feature_dim : l->key_dim;
    const int values = w->heads * l->value_dim, keys = w->groups * wide, in[] = {keys, keys, values, values};
    const bool low = l->state.gate_low_rank;
    product(w, "qkv_proj", w->tokens, m->hidden, l->state.gate && !low ? 4 : 3, in, &m->mixer, l->state.proj_bias);
    rates(w, l);
    if (low) {
        linear(w, "gate_down", w->tokens, m->hidden, l->state.rank, &m->mixer, false);
        linear(w, "gate_up", w->tokens, l->state.rank, values, &m->mixer, l->state.gate_bias);
    }
    if (l->state.taps)
        naive_conv(w, l, 2 * keys + values, 4, 1);
    else if (l->state.activated)
        elementwise(w, op_open(w, "qkv_act"), w->tokens * (2 * keys + values), 1, 1, 4);
    if (l->state.key_norms) {
        struct naive_op *op = op_open(w, "qk_norm");
        elementwise(w, op, w->tokens * 2 * keys, 1, 1, 4);
        for (int v = 0; v < 2; v++) vector(w, op, l->key_dim, !w->p->norms_uncounted);
    }
    if (l->state.rope) elementwise(w, op_open(w, "rope"), w->tokens * 2 * keys, 1, 1, 3);
    linear_scan(w, l);
    output(w, l, l->state.gate);
    linear(w, "out_proj", w->tokens, values, m->hidden, &m->mixer, l->state.proj_bias);
}

/* A block of the gates is one head's square; two of them, with biases. */
static void block_gates(struct walk *w, int heads, int width)
{
    struct naive_op *op = op_open(w, "gates");
    struct cells x = activations(w, op, w->tokens * heads * width);
    for (int gate = 0; gate < 2; gate++)
        for (int h = 0; h < heads; h++) {
            const double before = op->stored_bytes;
            store(op, width, width, &w->m->mixer);
            op->weight_bytes += op->stored_bytes - before;
            vector(w, op, width, true);
            for (int t = 0; t < w->tokens; t++)
                for (int o = 0; o < width; o++) {
                    for (int i = 0; i < width; i++) {
                        op->flops += 2;
                        touch(&x, (t * heads + h) * width + i);
                    }
                    op->vector_flops++; /* bias */
                    op->activation_bytes += w->m->activation_bytes;
                }
        }
    free(x.seen);
}

static void lru(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int width = w->heads * l->value_dim, in[] = {width, width};
    product(w, "in_proj", w->tokens, m->hidden, 2, in, &m->mixer, l->state.proj_bias);
    elementwise(w, op_open(w, "branch_act"), w->tokens * width, 1, 1, 4);
    naive_conv(w, l, width, 0, 1);
    block_gates(w, w->heads, l->value_dim);
    struct naive_op *op = op_open(w, "scan");
    for (int b = 0; b < w->p->B; b++)
        for (int i = 0; i < width; i++) naive_state(w, op, m->state_bytes);
    elementwise(w, op, w->tokens * width, 3, 1, 4 + 4); /* two sigmoids */
    elementwise(w, op, w->tokens * width, 0, 0, 1 + 1); /* log decay, decay */
    elementwise(w, op, w->tokens * width, 0, 0, 3);     /* root of 1 - square */
    elementwise(w, op, w->tokens * width, 0, 0, 2);     /* input times gate, times root */
    elementwise(w, op, w->tokens * width, 0, 0, 2);     /* state times decay, plus it */
    vector(w, op, width, true);
    elementwise(w, op_open(w, "branch_gate"), w->tokens * width, 2, 1, 1);
    linear(w, "out_proj", w->tokens, width, m->hidden, &m->mixer, l->state.proj_bias);
}

static void gated_conv(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const bool one = l->state.activated; /* SiLU and a gate after, none before */
    linear(w, "in_proj", w->tokens, m->hidden, (one ? 2 : 3) * w->heads, &m->mixer, l->state.proj_bias);
    naive_conv(w, l, w->heads, one ? 4 + 1 : 2, one ? 2 : 3); /* else gate before, gate after */
    linear(w, "out_proj", w->tokens, w->heads, m->hidden, &m->mixer, l->state.proj_bias);
}

void naive_token_shift(struct walk *w, const char *name, int n)
{
    struct naive_op *op = op_open(w, name);
    elementwise(w, op, w->tokens * w->m->hidden, 1, n, 3 * n);
    for (int i = 0; i < n; i++) vector(w, op, w->m->hidden, true);
    for (int b = 0; b < w->p->B; b++)
        for (int d = 0; d < w->m->hidden; d++) naive_state(w, op, w->m->activation_bytes);
}

static void wkv(struct walk *w, const struct naive_layer *l)
{
    static const char *const NAMES[] = {"r_proj", "k_proj", "v_proj"};
    const struct naive_model *m = w->m;
    (void)l;
    naive_token_shift(w, "time_shift", 3);
    for (int i = 0; i < 3; i++) linear(w, NAMES[i], w->tokens, m->hidden, w->heads, &m->mixer, false);
    struct naive_op *op = op_open(w, "scan");
    for (int b = 0; b < w->p->B; b++)
        for (int c = 0; c < w->heads; c++) {
            for (int i = 0; i < 3; i++) naive_state(w, op, m->state_bytes); /* numerator, denominator, exponent */
            for (int t = 0; t < w->p->T; t++) {
                op->vector_flops += 1 + 1;     /* key plus bonus; the larger exponent */
                op->vector_flops += 2 * 2;     /* exponentials of two differences */
                op->vector_flops += 3 + 2 + 1; /* numerator, denominator, quotient */
                op->vector_flops += 1 + 1;     /* exponent plus decay; the larger */
                op->vector_flops += 2 * 2 + 3 + 2;
            }
        }
    elementwise(w, op, w->tokens * w->heads, 2, 1, 0); /* key, value; output */
    for (int v = 0; v < 2; v++) vector(w, op, w->heads, true);
    elementwise(w, op_open(w, "receptance_gate"), w->tokens * w->heads, 2, 1, 5);
    linear(w, "out_proj", w->tokens, w->heads, m->hidden, &m->mixer, false);
}

static void time_mix(struct walk *w, const struct naive_layer *l)
{
    static const char *const NAMES[] = {"r_proj", "k_proj", "v_proj", "g_proj"};
    const struct naive_model *m = w->m;
    const int width = w->heads * l->key_dim;
    naive_token_shift(w, "time_shift", 4);
    for (int i = 0; i < 4; i++) linear(w, NAMES[i], w->tokens, m->hidden, width, &m->mixer, false);
    struct naive_op *op = op_open(w, "scan");
    for (int b = 0; b < w->p->B; b++)
        for (int h = 0; h < w->heads; h++)
            for (int i = 0; i < l->key_dim * l->value_dim; i++) {
                naive_state(w, op, m->state_bytes);
                for (int t = 0; t < w->p->T; t++) {
                    op->vector_flops += 1; /* key times value */
                    op->vector_flops += 2; /* times bonus, plus state */
                    op->vector_flops += 2; /* times receptance, summed */
                    op->vector_flops += 2; /* state times decay, plus key times value */
                }
            }
    elementwise(w, op, w->tokens * width, 3, 1, 0);
    for (int v = 0; v < 2; v++) vector(w, op, width, true);
    op = op_open(w, "output_norm");
    elementwise(w, op, w->tokens * width, 2, 1, 7 + 5);
    for (int v = 0; v < 2; v++) vector(w, op, width, !w->p->norms_uncounted);
    linear(w, "out_proj", w->tokens, width, m->hidden, &m->mixer, false);
}

void naive_recurrent(struct walk *w, const struct naive_layer *l)
{
    switch (l->state.block) {
    case NAIVE_SELECTIVE: selective(w, l); break;
    case NAIVE_SSD: dual(w, l); break;
    case NAIVE_LINEAR: linear_attention(w, l); break;
    case NAIVE_LRU: lru(w, l); break;
    case NAIVE_CONV: gated_conv(w, l); break;
    case NAIVE_MEMORY: naive_memory(w, l); break;
    case NAIVE_WKV: wkv(w, l); break;
    case NAIVE_TIME_MIX: time_mix(w, l); break;
    case NAIVE_FINCH: naive_finch(w, l); break;
    case NAIVE_GOOSE: naive_goose(w, l); break;
    case NAIVE_DIAGONAL: naive_diagonal(w, l); break;
    case NAIVE_FILTER: naive_filter(w, l); break;
    case NAIVE_NO_STATE: abort();
    }
}
