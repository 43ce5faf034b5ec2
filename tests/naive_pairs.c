/* naive_pairs -- parts that tests/naive.c has no room for: pairs of heads, masks made of values, experts of groups, an
 * output head behind a product. */
#include "tests/naive_walk.h"

void naive_key_mask(struct walk *w, const struct naive_layer *l)
{
    const struct naive_pass *p = w->p;
    const int from = l->window ? p->S - p->T - l->window + 1 : 0, keys = p->S - (from > 0 ? from : 0);
    const int values = w->groups * l->value_dim;
    struct naive_op *op = op_open(w, "key_mask");
    const double before = op->stored_bytes;
    store(op, w->groups, values, &w->m->mixer);
    op->weight_bytes += op->stored_bytes - before;
    vector(w, op, w->groups, true);
    if (l->qkv_bias) vector(w, op, w->groups, true);
    for (int key = 0; key < p->B * keys; key++) {
        for (int v = 0; v < values; v++)
            *(p->uncached ? &op->activation_bytes : &op->kv_bytes) +=
                p->uncached ? w->m->activation_bytes : w->m->cache.element_bytes;
        for (int g = 0; g < w->groups; g++) {
            for (int v = 0; v < values; v++) op->flops += 2;
            op->vector_flops += 5; /* softplus of three, times the rate, exp */
            if (l->qkv_bias) op->vector_flops++;
            op->activation_bytes += w->m->activation_bytes;
        }
    }
}

void naive_difference(struct walk *w, const struct naive_layer *l)
{
    struct naive_op *op = op_open(w, "difference");
    const int norm = l->pair_weight ? 4 : 3;
    for (int pair = 0; pair < w->heads / 2; pair++) /* times the share, minus; the norm; times what is left of one */
        elementwise(w, op, w->tokens * 2 * l->value_dim, 2, 1, 2 + norm + 1);
    for (int i = 0; i < 4; i++) vector(w, op, l->key_dim, true);
    if (l->pair_weight) vector(w, op, 2 * l->value_dim, !w->p->norms_uncounted);
}

/* Groups that a choice of experts meets: the mean over all choices of so many. */
static double met(int experts, int chosen, int group)
{
    double choices = 0, groups = 0;
    for (unsigned long set = 0; set < 1UL << experts; set++) {
        int n = 0, hit = 0;
        for (int e = 0; e < experts; e++) n += (int)(set >> e & 1);
        if (n != chosen) continue;
        for (int g = 0; g < experts / group; g++) hit += (set >> (g * group) & ((1UL << group) - 1)) != 0;
        choices++;
        groups += hit;
    }
    return groups / choices;
}

static void group_product(struct walk *w, const char *name, const struct naive_layer *l, double mean, int in, int n,
                          int out)
{
    struct naive_op *op = op_open(w, name);
    const int groups = l->experts / l->group;
    double missed = 1;
    for (int t = 0; t < w->tokens; t++) missed *= 1 - mean / groups;
    for (int g = 0; g < groups * n; g++) store(op, out, in, &w->m->expert);
    op->weight_bytes += (1 - missed) * op->stored_bytes;
    for (int t = 0; t < w->tokens; t++) {
        op->flops += mean * 2 * in * n * out;
        op->activation_bytes += mean * (in + n * out) * w->m->activation_bytes;
    }
}

void naive_groups(struct walk *w, const struct naive_layer *l)
{
    const int width = l->group_width / w->p->ranks, stream = w->m->hidden;
    const double mean = met(l->experts, l->chosen, l->group), bytes = w->m->activation_bytes;
    group_product(w, "groups_up", l, mean, stream, 2, width);
    struct naive_op *op = op_open(w, "groups_act");
    for (int t = 0; t < w->tokens; t++) {
        op->vector_flops += mean * width * 5;
        op->activation_bytes += mean * width * 3 * bytes;
    }
    group_product(w, "groups_down", l, mean, width, 1, stream);
    op = op_open(w, "groups_combine");
    for (int t = 0; t < w->tokens; t++) {
        op->vector_flops += mean * stream * 2;
        op->activation_bytes += (mean * stream + stream) * bytes;
    }
    elementwise(w, op_open(w, "groups_add"), w->tokens * stream, 2, 1, 1);
}

void naive_head_dense(struct walk *w, int rows)
{
    const struct naive_model *m = w->m;
    linear(w, "head_dense", rows, m->hidden, m->hidden, &m->head, m->head_dense_bias);
    naive_activation(w, "head_act", rows * m->hidden, false);
    struct naive_op *op = op_open(w, "head_norm");
    elementwise(w, op, rows * m->hidden, 1, 1, m->norm_flops);
    for (int v = 0; v < m->norm_vectors; v++) vector(w, op, m->hidden, !w->p->norms_uncounted);
}

void naive_memory(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    linear(w, "in_proj", w->tokens, m->hidden, w->heads, &m->mixer, l->state.proj_bias);
    elementwise(w, op_open(w, "memory_gate"), w->tokens * w->heads, 2, 1, 5);
    linear(w, "out_proj", w->tokens, w->heads, m->hidden, &m->mixer, l->state.proj_bias);
}
