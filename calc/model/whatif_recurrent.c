/* whatif_recurrent -- what-ifs that give layers a state of constant size instead of a cache. */
#include <string.h>

#include "calc/model/whatif_change.h"

/* Of the reference Mamba-2 (arXiv 2405.21060): inner width twice the model's, heads of 64, states of 128, one group. */
enum { SSD_EXPAND = 2, SSD_HEAD_DIM = 64, SSD_STATE = 128, SSD_TAPS = 4, SSD_CHUNK = 256 }; /* not a unit */
enum { LINEAR_CHUNK = 256 };                                                                /* of lightning attention */

static enum err_code make_state_space(const struct change *c, const struct mixer *was, struct mixer *x)
{
    const int64_t inner = SSD_EXPAND * c->m->hidden;
    (void)was;
    if (inner % SSD_HEAD_DIM != 0)
        return change_refuse(c, "twice the model's width of %lld is not a multiple of %d, a head's",
                             (long long)c->m->hidden, SSD_HEAD_DIM);
    x->heads = inner / SSD_HEAD_DIM;
    x->kv_heads = 1;
    x->head_dim = SSD_STATE;
    x->v_head_dim = SSD_HEAD_DIM;
    x->recurrence.block = RECURRENT_SSD;
    x->recurrence.conv_taps = SSD_TAPS;
    x->recurrence.conv_bias = true;
    x->recurrence.chunk_tokens = SSD_CHUNK;
    x->recurrence.norm = OUTPUT_WIDE_NORM;
    return ERR_OK;
}

/* As MiniMax-01 has it: the heads of the attention, each with keys and values of its own, a gate as wide as they are
 * and a norm over all of them. */
static enum err_code make_linear(const struct change *c, const struct mixer *was, struct mixer *x)
{
    (void)c;
    x->heads = x->kv_heads = was->heads;
    x->head_dim = was->head_dim;
    x->v_head_dim = was->v_head_dim;
    x->recurrence.block = RECURRENT_LINEAR;
    x->recurrence.decay = DECAY_FIXED;
    x->recurrence.gate = GATE_FULL;
    x->recurrence.norm = OUTPUT_WIDE_NORM;
    x->recurrence.activated = true;
    x->recurrence.chunk_tokens = LINEAR_CHUNK;
    return ERR_OK;
}

/* The first `some` of every `of` layers that attend. */
static enum err_code replace(struct change *c,
                             enum err_code (*make)(const struct change *c, const struct mixer *was, struct mixer *x))
{
    struct part part;
    int64_t at = 0;
    if (c->m->bidirectional)
        return change_refuse(c, "tokens of this model see later ones, and a state is of those before alone");
    TRY(change_part(c, c->value, &part));
    TRY(change_unshared(c, "a state"));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer, was;
        if (x->kind != MIXER_ATTENTION && x->kind != MIXER_LATENT) continue;
        if (x->top_keys > 0) return change_refuse(c, "layers attend to keys that an indexer of another layer chooses");
        if (at++ % part.of >= part.some) continue;
        memcpy(&was, x, sizeof was);
        memset(x, 0, sizeof *x);
        x->kind = MIXER_RECURRENT;
        TRY(make(c, &was, x));
    }
    return ERR_OK;
}

enum err_code change_state_space(struct change *c) { return replace(c, make_state_space); }
enum err_code change_linear(struct change *c) { return replace(c, make_linear); }

/* Filters that an MLP makes are distilled into poles, of which a channel may have another number too. */
enum err_code change_poles(struct change *c)
{
    enum { POLES_MAX = 1 << 12 };
    int64_t n;
    bool any = false;
    TRY(change_whole(c, POLES_MAX, &n));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer;
        struct recurrence *p = &x->recurrence;
        if (x->kind != MIXER_RECURRENT || p->block != RECURRENT_FILTER) continue;
        any = true;
        x->head_dim = n;
        p->filter_width = p->filter_inputs = p->filter_layers = p->filter_tokens = 0;
        p->filter_sines = false;
    }
    if (!any) return change_refuse(c, "no layer has a long convolution, so nothing would change");
    return ERR_OK;
}
