/* same -- whether two descriptions cost the same. */
#include <string.h>

#include "calc/model/model.h"

static bool same_formats(const struct layer_kind *a, const struct layer_kind *b)
{
    if (!a->formats || !b->formats) return a->formats == b->formats;
    for (int i = 0; i < MODULES; i++) {
        const struct dtype *x = a->formats[i], *y = b->formats[i];
        if (x && y ? !dtype_same(x, y) : x != y) return false;
    }
    return true;
}

bool model_same_layer(const struct layer_kind *a, const struct layer_kind *b)
{
    return memcmp(&a->mixer, &b->mixer, sizeof a->mixer) == 0 && memcmp(&a->ffn, &b->ffn, sizeof a->ffn) == 0 &&
           a->norms == b->norms && a->encodes == b->encodes && a->borrowed == b->borrowed &&
           a->mixer_gate_rank == b->mixer_gate_rank && a->ffn_gate_rank == b->ffn_gate_rank &&
           a->ffn_condition_rank == b->ffn_condition_rank && a->engram_rows == b->engram_rows &&
           a->residual_weights == b->residual_weights && a->residual_gates == b->residual_gates &&
           a->plain_norm == b->plain_norm && a->one_residual == b->one_residual && a->parallel == b->parallel;
}

static bool same_kinds(const struct layer_kind *a, const struct layer_kind *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].count != b[i].count || !model_same_layer(&a[i], &b[i]) || !same_formats(&a[i], &b[i])) return false;
    return true;
}

static bool same_modules(const struct model_mtp *a, const struct model_mtp *b)
{
    return a->modules == b->modules && a->layers == b->layers && a->kinds_n == b->kinds_n &&
           same_kinds(a->kinds, b->kinds, a->kinds_n);
}

static bool same_order(const struct model *a, const struct model *b)
{
    if (!a->order || !b->order) return true;
    if (a->order_n != b->order_n) return false;
    for (size_t i = 0; i < a->order_n; i++)
        if (a->order[i].kind != b->order[i].kind || a->order[i].layer != b->order[i].layer) return false;
    return true;
}

static bool has(const struct model *m, bool recurrent)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if ((!recurrent && model_keeps_inputs(&m->kinds[i].mixer)) ||
            (m->kinds[i].mixer.kind != MIXER_NONE && (m->kinds[i].mixer.kind == MIXER_RECURRENT) == recurrent))
            return true;
    return false;
}

static bool same_number(double x, double y) { return x == y || (x != x && y != y); }

/* Formats of what the model has: a cache where layers attend, states where some are recurrent. */
static bool same_dtypes(const struct model *a, const struct model *b)
{
    for (int c = 0; c < WEIGHT_CLASSES; c++)
        if (!dtype_same(&a->weights[c], &b->weights[c])) return false;
    return (a->weights_unknown == NULL) == (b->weights_unknown == NULL) &&
           dtype_same(&a->activations, &b->activations) && (!has(a, false) || dtype_same(&a->kv, &b->kv)) &&
           (!has(a, true) || dtype_same(&a->state, &b->state));
}

static bool same_ends(const struct model *a, const struct model *b)
{
    const struct model_draft *x = &a->draft, *y = &b->draft;
    return a->tied == b->tied && a->head_bias == b->head_bias && a->head_dense == b->head_dense &&
           a->head_dense_bias == b->head_dense_bias && a->embed_norm == b->embed_norm &&
           a->embed_norm_plain == b->embed_norm_plain && a->rope_scales == b->rope_scales &&
           a->embed_extra_rows == b->embed_extra_rows && a->position_rows == b->position_rows &&
           a->position_offset == b->position_offset && x->joined == y->joined && x->head_rows == y->head_rows &&
           x->heads == y->heads && x->no_head == y->no_head && x->joined_bias == y->joined_bias &&
           x->norms_before == y->norms_before && x->norms_after == y->norms_after && same_modules(&a->mtp, &b->mtp) &&
           a->towerless == b->towerless && same_number(a->tower.params, b->tower.params) &&
           same_number(a->tower.whole_params, b->tower.whole_params) && same_number(a->audio.params, b->audio.params) &&
           same_number(a->audio.whole_params, b->audio.whole_params);
}

static bool same_stem(const struct model_encoder *a, const struct model_encoder *b)
{
    if (a->stem_n != b->stem_n) return false;
    for (size_t i = 0; i < a->stem_n; i++) {
        const struct model_conv *x = &a->stem[i], *y = &b->stem[i];
        if (x->in != y->in || x->out != y->out || x->taps != y->taps || x->stride != y->stride || x->bias != y->bias ||
            x->norm != y->norm)
            return false;
    }
    return true;
}

static bool same_encoder(const struct model_encoder *a, const struct model_encoder *b)
{
    return a->layers == b->layers && a->source_tokens == b->source_tokens && a->position_rows == b->position_rows &&
           a->position_offset == b->position_offset && same_stem(a, b) && a->own_embedding == b->own_embedding &&
           a->embed_norm == b->embed_norm && a->final_norm == b->final_norm && a->start_tokens == b->start_tokens;
}

bool model_same(const struct model *a, const struct model *b)
{
    return same_encoder(&a->encoder, &b->encoder) && strcmp(a->family, b->family) == 0 && a->hidden == b->hidden &&
           a->vocab == b->vocab && a->layers == b->layers && a->loops == b->loops && a->loops_bare == b->loops_bare &&
           a->exit_gate == b->exit_gate && a->max_context_tokens == b->max_context_tokens && a->norm == b->norm &&
           a->per_layer_dim == b->per_layer_dim && a->per_layer_vocab == b->per_layer_vocab &&
           a->streams == b->streams && a->hyper_streams == b->hyper_streams && a->hyper_rounds == b->hyper_rounds &&
           a->residual_group == b->residual_group && a->hyper_identity == b->hyper_identity &&
           a->hyper_mean == b->hyper_mean && a->hyper_handed == b->hyper_handed &&
           a->engram_columns == b->engram_columns && a->engram_width == b->engram_width &&
           a->engram_taps == b->engram_taps && a->engram_spacing == b->engram_spacing &&
           a->hyper_rank == b->hyper_rank && a->laurel_rank == b->laurel_rank && a->layer_scale == b->layer_scale &&
           a->bidirectional == b->bidirectional && a->block_causal == b->block_causal && a->diffusion == b->diffusion &&
           a->block_tokens == b->block_tokens && a->block_steps == b->block_steps && same_ends(a, b) &&
           same_dtypes(a, b) && a->kinds_n == b->kinds_n && same_kinds(a->kinds, b->kinds, a->kinds_n) &&
           same_order(a, b);
}
