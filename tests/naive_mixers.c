/* naive_mixers -- RWKV-6 and -7, diagonal state-space models and long convolutions, counted by walking tokens, channels
 * and poles. */
#include <math.h>

#include "tests/naive_walk.h"

/* ---- RWKV ---- */

static void through_rank(struct walk *w, const char *const names[3], int rank, int out, bool act, bool bias)
{
    linear(w, names[0], w->tokens, w->m->hidden, rank, &w->m->mixer, false);
    if (act) elementwise(w, op_open(w, names[1]), w->tokens * rank, 1, 1, 4);
    linear(w, names[2], w->tokens, rank, out, &w->m->mixer, bias);
}

/* Five matrices, each over a part of its own of one input. */
static void five_products(struct walk *w, int rank)
{
    const int D = w->m->hidden;
    struct naive_op *op = op_open(w, "mix_up");
    for (int i = 0; i < 5; i++) {
        const double before = op->stored_bytes;
        store(op, D, rank, &w->m->mixer);
        op->weight_bytes += op->stored_bytes - before;
        for (int t = 0; t < w->tokens; t++) {
            for (int o = 0; o < D; o++) {
                op->activation_bytes += w->m->activation_bytes;
                for (int k = 0; k < rank; k++) op->flops += 2;
            }
            for (int k = 0; k < rank; k++) op->activation_bytes += w->m->activation_bytes;
        }
    }
}

static void mixtures(struct walk *w, const struct naive_layer *l)
{
    const int D = w->m->hidden, rank = l->state.mix_rank;
    naive_token_shift(w, "time_shift", 1);
    linear(w, "mix_down", w->tokens, D, 5 * rank, &w->m->mixer, false);
    elementwise(w, op_open(w, "mix_act"), w->tokens * 5 * rank, 1, 1, 4);
    five_products(w, rank);
    struct naive_op *op = op_open(w, "time_mixtures");
    elementwise(w, op, w->tokens * D, 1, 0, 1); /* the token before less this one */
    for (int i = 0; i < 5; i++) {
        elementwise(w, op, w->tokens * D, 1, 1, 3); /* plus the stored part, times the difference, plus the token */
        vector(w, op, D, true);
    }
}

static void decayed_state(struct walk *w, const struct naive_layer *l, bool goose)
{
    const int keys = w->heads * l->key_dim, values = w->heads * l->value_dim;
    struct naive_op *op = op_open(w, "scan");
    for (int b = 0; b < w->p->B; b++)
        for (int h = 0; h < w->heads; h++)
            for (int i = 0; i < l->key_dim * l->value_dim; i++) {
                naive_state(w, op, w->m->state_bytes);
                for (int t = 0; t < w->p->T; t++) {
                    if (goose) {
                        op->vector_flops += 2; /* times the removed key, summed */
                        op->vector_flops += 1; /* decay */
                        op->vector_flops += 2; /* minus the answer times the removed key's rate */
                        op->vector_flops += 2; /* plus key times value */
                        op->vector_flops += 2; /* times receptance, summed */
                    } else {
                        op->vector_flops += 1; /* key times value */
                        op->vector_flops += 2; /* times bonus, plus state */
                        op->vector_flops += 2; /* times receptance, summed */
                        op->vector_flops += 2; /* state times decay, plus key times value */
                    }
                }
            }
    elementwise(w, op, w->tokens * keys, 3, 0, 0); /* receptance, key, decay */
    if (goose) {
        elementwise(w, op, w->tokens * keys, 2, 0, 0); /* removed key, rate */
        elementwise(w, op, w->tokens * keys, 0, 0, 4); /* sigmoid of the decay */
        elementwise(w, op, w->tokens * keys, 0, 0, 2); /* times a constant, exponential */
        elementwise(w, op, w->tokens * keys, 0, 0, 1); /* removed key times rate */
    } else {
        elementwise(w, op, w->tokens * keys, 0, 0, 3); /* exponential, minus, exponential */
        vector(w, op, keys, true);
    }
    elementwise(w, op, w->tokens * values, 1, 1, 0);
}

static void head_output(struct walk *w, const struct naive_layer *l, bool goose)
{
    const int keys = w->heads * l->key_dim, values = w->heads * l->value_dim;
    struct naive_op *op = op_open(w, "output_norm");
    elementwise(w, op, w->tokens * values, 2, 1, 7); /* output and gate in */
    elementwise(w, op, w->tokens * values, 0, 0, goose ? 1 : 5);
    if (goose) {
        elementwise(w, op, w->tokens * keys, 2, 0, 3);   /* receptance times key times weight, summed */
        elementwise(w, op, w->tokens * values, 1, 0, 2); /* times the value, added */
    }
    for (int v = 0; v < 2; v++) vector(w, op, values, !w->p->norms_uncounted);
    if (goose) vector(w, op, keys, true);
    linear(w, "out_proj", w->tokens, values, w->m->hidden, &w->m->mixer, false);
}

static void heads_of(struct walk *w, const char *name, int out)
{
    linear(w, name, w->tokens, w->m->hidden, out, &w->m->mixer, false);
}

void naive_finch(struct walk *w, const struct naive_layer *l)
{
    static const char *const DECAY[] = {"decay_down", "decay_act", "decay_up"};
    const int keys = w->heads * l->key_dim, values = w->heads * l->value_dim;
    mixtures(w, l);
    heads_of(w, "r_proj", keys);
    heads_of(w, "k_proj", keys);
    heads_of(w, "v_proj", values);
    heads_of(w, "g_proj", values);
    through_rank(w, DECAY, l->state.rank, keys, true, true);
    decayed_state(w, l, false);
    head_output(w, l, false);
}

void naive_goose(struct walk *w, const struct naive_layer *l)
{
    static const char *const DECAY[] = {"decay_down", "decay_act", "decay_up"},
                             *const RATE[] = {"rate_down", "", "rate_up"},
                             *const VALUE[] = {"value_down", "", "value_up"},
                             *const GATE[] = {"gate_down", "gate_act", "gate_up"};
    const int keys = w->heads * l->key_dim, values = w->heads * l->value_dim;
    naive_token_shift(w, "time_shift", 6);
    heads_of(w, "r_proj", keys);
    heads_of(w, "k_proj", keys);
    heads_of(w, "v_proj", values);
    through_rank(w, DECAY, l->state.rank, keys, true, true);
    through_rank(w, RATE, l->state.rate_rank, keys, false, true);
    if (l->state.value_rank) {
        through_rank(w, VALUE, l->state.value_rank, values, false, true);
        struct naive_op *op = op_open(w, "value_mix");
        elementwise(w, op, w->tokens * values, 3, 1, 4); /* own and first value, share: a sigmoid */
        elementwise(w, op, w->tokens * values, 0, 0, 3); /* difference, times, plus */
    }
    through_rank(w, GATE, l->state.gate_rank, values, true, false);
    struct naive_op *op = op_open(w, "key_mix");
    elementwise(w, op, w->tokens * keys, 2, 3, 0);     /* key and raw rate; removed key, key, rate */
    elementwise(w, op, w->tokens * keys, 0, 0, 1 + 3); /* times a weight, a unit vector */
    elementwise(w, op, w->tokens * keys, 0, 0, 4);     /* rate: a sigmoid */
    elementwise(w, op, w->tokens * keys, 0, 0, 4);     /* less 1, times key, times a weight, plus key */
    for (int v = 0; v < 2; v++) vector(w, op, keys, true);
    decayed_state(w, l, true);
    head_output(w, l, true);
}

/* ---- poles ---- */

/* One pole and one token: a complex state. */
static void pole(struct naive_op *op, bool weighted)
{
    op->vector_flops += 4 + 2;            /* complex product with the state */
    op->vector_flops += weighted ? 4 : 1; /* real input times a complex number, added; or added to the real part */
    op->vector_flops += 2 + 1 + 1;        /* real part of a complex product, summed */
}

static void poles(struct walk *w, struct naive_op *op, int channels, int n, bool weighted)
{
    for (int b = 0; b < w->p->B; b++)
        for (int c = 0; c < channels; c++)
            for (int i = 0; i < n; i++) {
                for (int part = 0; part < 2; part++) naive_state(w, op, w->m->state_bytes);
                for (int t = 0; t < w->p->T; t++) pole(op, weighted);
            }
}

static void shift(struct walk *w, const struct naive_layer *l, int width)
{
    struct naive_op *op = op_open(w, "shift");
    for (int b = 0; b < w->p->B; b++)
        for (int c = 0; c < width; c++)
            for (int i = 0; i < l->state.taps; i++) {
                naive_state(w, op, w->m->state_bytes);
                for (int t = 0; t < w->p->T; t++) op->vector_flops += 2 + 2; /* input in, output out */
            }
    elementwise(w, op, w->tokens * width, 1, 1, 2); /* skip */
    for (int i = 0; i < 2 * l->state.taps + 1; i++) vector(w, op, width, true);
}

void naive_diagonal(struct walk *w, const struct naive_layer *l)
{
    const int width = w->heads * l->value_dim, gated = l->state.taps > 0, D = w->m->hidden;
    const int channels = gated ? width * l->value_dim : width, in[] = {width, width, width};
    if (gated) {
        product(w, "in_proj", w->tokens, D, 3, in, &w->m->mixer, true);
        shift(w, l, width);
    }
    struct naive_op *op = op_open(w, "scan");
    poles(w, op, channels, l->key_dim, true);
    elementwise(w, op, w->tokens * channels, 0, 0, 1); /* conjugates: twice */
    elementwise(w, op, w->tokens * channels, 0, 0, 2); /* skip */
    elementwise(w, op, w->tokens * width, gated ? 3 : 1, 1, 0);
    if (gated) {
        elementwise(w, op, w->tokens * channels, 0, 0, 2); /* key times value; times query */
        elementwise(w, op, w->tokens * width, 0, 0, l->value_dim - 1);
        for (int i = 0; i < 6 * l->key_dim + 2; i++) vector(w, op, w->heads, true);
    } else {
        for (int i = 0; i < 4 * l->key_dim + 2; i++) vector(w, op, width, true);
        elementwise(w, op_open(w, "scan_act"), w->tokens * width, 1, 1, 4);
    }
    linear(w, "out_proj", w->tokens, width, gated ? D : 2 * D, &w->m->mixer, true);
    if (!gated) elementwise(w, op_open(w, "gated_unit"), w->tokens * D, 2, 1, 5);
}

/* ---- long convolutions ---- */

/* Of n complex points: butterflies of a product and two sums. */
static double transform(int n)
{
    if (n == 1) return 0;
    if (n % 2) return 5.0 * n * log2(n);
    double own = 0;
    for (int i = 0; i < n / 2; i++) own += 4 + 2 + 2 + 2;
    return own + 2 * transform(n / 2);
}

static void implicit(struct walk *w, const struct naive_layer *l)
{
    const struct naive_pass *p = w->p;
    const int N = w->heads;
    struct naive_op row = {.name = "row"};
    store(&row, 1, N, &w->m->cache); /* what one token's inputs are as held */
    elementwise(w, op_open(w, "input_gate"), w->tokens * N, 2, 1, 1);
    if (!p->uncached) {
        struct naive_op *op = op_open(w, "history_write");
        elementwise(w, op, w->tokens * N, 1, 0, 0);
        for (int t = 0; t < w->tokens; t++) op->kv_bytes += row.stored_bytes;
    }
    struct naive_op *op = op_open(w, "long_conv");
    const bool step = p->T == 1 && (p->S > 1 || p->continued), whole = p->S == p->T && !step;
    double direct = 0, transformed = 0;
    for (int c = 0; c < N; c++) {
        for (int b = 0; b < p->B; b++) {
            for (int k = 0; k < p->S; k++) {
                if (p->uncached) op->activation_bytes += w->m->activation_bytes;
                for (int q = p->S - p->T; q < p->S; q++)
                    if (p->causal_full || k <= q) direct += 2;
            }
            transformed += 2 * transform(p->S + p->T) / 2;              /* there and back, of real numbers */
            for (int f = 0; f < p->S + p->T + 2; f++) transformed += 3; /* complex products of half of them and one */
        }
        transformed += transform(p->S + p->T) / 2;
        for (int k = 0; k < p->S; k++) op->weight_bytes += w->m->other.element_bytes; /* the filter */
    }
    op->vector_flops += step ? direct : whole ? transformed : fmin(direct, transformed);
    for (int i = 0; i < p->B * p->S && !p->uncached; i++) {
        op->kv_bytes += row.stored_bytes;
        op->kv_needed_bytes += row.stored_bytes;
    }
    elementwise(w, op, w->tokens * N, 1, 1, 2 + 1); /* skip, gate */
    vector(w, op, N, true);                         /* its weight */
    /* the MLP that makes the filter: stored, not read in a pass */
    int from = l->state.filter_inputs;
    for (int layer = 0; layer < 1 + l->state.filter_layers; layer++, from = l->state.filter_width) {
        for (int i = 0; i < from; i++) vector(w, op, l->state.filter_width, false);
        vector(w, op, l->state.filter_width, false);
    }
    for (int i = 0; i < l->state.filter_width; i++) vector(w, op, N, false);
    if (l->state.filter_sines) vector(w, op, l->state.filter_width, false);
    for (int t = 0; t < l->state.filter_tokens; t++) vector(w, op, 1 + l->state.filter_inputs, false);
    vector(w, op, N, false);
}

void naive_filter(struct walk *w, const struct naive_layer *l)
{
    const int N = w->heads, in[] = {N, N, N};
    product(w, "in_proj", w->tokens, w->m->hidden, 3, in, &w->m->mixer, true);
    naive_conv(w, l, 3 * N, 0, 1);
    if (l->state.filter_width) {
        implicit(w, l);
    } else {
        struct naive_op *op = op_open(w, "scan");
        elementwise(w, op, w->tokens * N, 3, 1, 1); /* gate */
        poles(w, op, N, l->key_dim, false);
        elementwise(w, op, w->tokens * N, 0, 0, 2 + 1); /* skip, gate */
        for (int i = 0; i < 4 * l->key_dim + 1; i++) vector(w, op, N, true);
    }
    linear(w, "out_proj", w->tokens, N, w->m->hidden, &w->m->mixer, true);
}
