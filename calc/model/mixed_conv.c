/* mixed_conv -- config files of Based, StripedHyena and HyenaDNA. Defaults follow the classes: based/models/gpt.py and
 * mixers/; stripedhyena/model.py and the configuration_hyena.py of its checkpoints; hyena-dna's HyenaConfig. */
#include <string.h>

#include "calc/model/mixed.h"

enum { WIDEST = 1 << 22, TAYLOR_CHUNK = 64 }; /* of the published kernels: MODEL.md "Scans"; not a unit */

/* ---- Based ---- */

/* The class that an object of hydra's names: the last word of its _target_. */
static enum err_code read_target(struct reader *r, const struct json *obj, const char **out)
{
    struct json j;
    if (!json_get(obj, "_target_", &j))
        return err_set(r->e, ERR_INPUT, "%s: %s._target_ is missing, so what its layers are is not known", r->text.file,
                       obj->path);
    TRY(json_str(&j, out, r->e));
    const char *dot = strrchr(*out, '.');
    if (dot) *out = dot + 1;
    return ERR_OK;
}

static enum err_code read_base_conv(struct reader *r, const struct json *obj, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    int64_t expand;
    bool cuda;
    TRY(mixed_size(r, obj, "expand_proj", 1, 64, 2, &expand)); /* not a unit */
    if (expand % 2 != 0) return err_set(r->e, ERR_INPUT, "%s: %s.expand_proj is odd", r->text.file, obj->path);
    TRY(reader_flag(r, obj, "use_cuda", false, &cuda));
    if (cuda)
        return err_set(r->e, ERR_INPUT,
                       "%s: %s.use_cuda is true: whether its convolution then has a bias depends on what "
                       "is installed",
                       r->text.file, obj->path);
    x->kind = MIXER_RECURRENT;
    p->block = RECURRENT_CONV;
    p->activated = true;
    x->heads = x->kv_heads = expand / 2 * r->m->hidden;
    x->head_dim = x->v_head_dim = 1;
    TRY(mixed_size(r, obj, "kernel_size", 1, 1 << 10, 3, &p->conv_taps));
    return reader_flag(r, obj, "use_bias", true, &p->proj_bias);
}

static enum err_code read_taylor(struct reader *r, const struct json *obj, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    struct json map;
    const char *name;
    if (!json_get(obj, "feature_map", &map))
        return err_set(r->e, ERR_INPUT, "%s: %s.feature_map is missing, so the size of its state is not known",
                       r->text.file, obj->path);
    TRY(read_target(r, &map, &name));
    if (strcmp(name, "TaylorExp") != 0) return json_want(&map, "the feature map TaylorExp", r->e);
    x->kind = MIXER_RECURRENT;
    p->block = RECURRENT_LINEAR;
    p->decay = DECAY_NONE;
    p->chunk_tokens = TAYLOR_CHUNK;
    TRY(mixed_size(r, obj, "num_heads", 1, 1 << 16, 16, &x->heads));
    x->kv_heads = x->heads;
    TRY(mixed_size(r, obj, "feature_dim", 1, 1 << 8, 16, &p->feature_dim));
    x->head_dim = 1 + p->feature_dim + p->feature_dim * p->feature_dim;
    TRY(mixed_size(r, obj, "head_dim", 1, 1 << 16, r->m->hidden / x->heads, &x->v_head_dim));
    if (x->v_head_dim == 0 || (!json_has(obj, "head_dim") && r->m->hidden % x->heads != 0))
        return err_set(r->e, ERR_INPUT, "%s: n_embd %lld is no multiple of the heads of %s", r->text.file,
                       (long long)r->m->hidden, obj->path);
    return ERR_OK;
}

/* flash-attn's attention, in a window of half of window_size and the token itself where one is stated. */
static enum err_code read_flash(struct reader *r, const struct json *window, struct mixer *x)
{
    struct json j;
    double rotary = 0;
    int64_t tokens;
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    if (r->m->hidden % x->heads != 0 || x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: n_embd %lld is no multiple of %lld heads, or these of %lld KV heads",
                       r->text.file, (long long)r->m->hidden, (long long)x->heads, (long long)x->kv_heads);
    x->head_dim = x->v_head_dim = r->m->hidden / x->heads;
    TRY(reader_flag(r, &r->text, "qkv_proj_bias", true, &x->qkv_bias));
    TRY(reader_flag(r, &r->text, "out_proj_bias", true, &x->o_bias));
    if (json_get(&r->text, "rotary_emb_fraction", &j)) TRY(json_num(&j, &rotary, r->e));
    x->position = rotary > 0 ? POSITION_ROPE : POSITION_NONE;
    if (!window) return ERR_OK;
    TRY(mixed_size(r, window, "window_size", 1, 1 << 24, 128, &tokens));
    x->window_tokens = tokens / 2 + 1;
    return ERR_OK;
}

/* One of the three mixers; without an object plain attention. */
static enum err_code read_based_mixer(struct reader *r, const char *key, struct mixer *x)
{
    struct json obj;
    const char *name;
    if (!json_get(&r->text, key, &obj)) return read_flash(r, NULL, x);
    if (!json_is_object(&obj)) return json_want(&obj, "an object with a _target_", r->e);
    TRY(read_target(r, &obj, &name));
    if (strcmp(name, "BaseConv") == 0) return read_base_conv(r, &obj, x);
    if (strcmp(name, "LinearAttention") == 0) return read_taylor(r, &obj, x);
    if (strcmp(name, "SlidingAttention") == 0) return read_flash(r, &obj, x);
    return json_want(&obj, "a BaseConv, LinearAttention or SlidingAttention", r->e);
}

static enum err_code read_based_mlp(struct reader *r, struct ffn *f)
{
    struct json j;
    const char *act = "gelu_new";
    if (json_get(&r->text, "activation_function", &j)) TRY(json_str(&j, &act, r->e));
    f->kind = FFN_DENSE;
    f->gated = strcmp(act, "glu") == 0 || strcmp(act, "swiglu") == 0 || strcmp(act, "geglu") == 0;
    TRY(reader_dim(r, DIM_FFN, 1, f->gated ? -1 : 4 * r->m->hidden, &f->width));
    if (f->gated) f->width = (f->width + 127) / 128 * 128; /* not a unit */
    TRY(reader_flag(r, &r->text, "mlp_fc1_bias", true, &f->up_bias));
    return reader_flag(r, &r->text, "mlp_fc2_bias", true, &f->down_bias);
}

enum err_code structure_based(struct reader *r)
{
    static const char *const KEYS[] = {"mixer", "alt_mixer", "alt_mixer_2"}, *const LISTS[] = {NULL, "alt_mixer_layers",
                                                                                               "alt_mixer_2_layers"};
    enum { MIXERS = sizeof KEYS / sizeof KEYS[0] };
    struct model *m = r->m;
    struct mixer *x[MIXERS];
    struct ffn *f = arena_alloc(r->arena, sizeof *f);
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    TRY(mixed_sizes(r, 1));
    bool *second = arena_array(r->arena, (size_t)m->layers, sizeof *second);
    bool *third = arena_array(r->arena, (size_t)m->layers, sizeof *third);
    if (!f || !k || !second || !third) return err_nomem(r->e);
    for (size_t i = 0; i < MIXERS; i++) {
        x[i] = arena_alloc(r->arena, sizeof *x[i]);
        if (!x[i]) return err_nomem(r->e);
        TRY(read_based_mixer(r, KEYS[i], x[i]));
    }
    TRY(mixed_marks(r, &r->text, LISTS[1], second));
    TRY(mixed_marks(r, &r->text, LISTS[2], third));
    TRY(read_based_mlp(r, f));
    TRY(mixed_size(r, &r->text, "max_position_embeddings", 0, 1 << 30, m->max_context_tokens, &m->position_rows));
    k->norms = 2;
    memcpy(&k->ffn, f, sizeof k->ffn);
    for (int64_t i = 0; i < m->layers; i++) {
        if (second[i] && third[i])
            return err_set(r->e, ERR_INPUT, "%s: layer %lld stands in both %s and %s", r->text.file, (long long)i,
                           LISTS[1], LISTS[2]);
        memcpy(&k->mixer, x[third[i] ? 2 : second[i] ? 1 : 0], sizeof k->mixer);
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    return ERR_OK;
}

enum err_code extend_based(struct reader *r)
{
    bool rms;
    TRY(reader_flag(r, &r->text, "rms_norm", false, &rms));
    r->m->norm = rms ? NORM_RMS : NORM_LAYER_BIAS;
    return ERR_OK;
}

/* ---- StripedHyena ---- */

static enum err_code read_modal(struct reader *r, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    int64_t groups;
    TRY(mixed_size(r, &r->text, "hyena_filter_groups", 1, WIDEST, -1, &groups));
    if (groups != 1)
        return err_set(r->e, ERR_INPUT,
                       "%s: hyena_filter_groups is %lld: a step of filters that channels share is not "
                       "described",
                       r->text.file, (long long)groups);
    x->kind = MIXER_RECURRENT;
    p->block = RECURRENT_FILTER;
    x->heads = x->kv_heads = r->m->hidden;
    x->v_head_dim = 1;
    TRY(mixed_size(r, &r->text, "state_size", 1, 1 << 12, -1, &x->head_dim));
    TRY(mixed_size(r, &r->text, "short_filter_length", 1, 1 << 10, -1, &p->conv_taps));
    TRY(reader_flag(r, &r->text, "short_filter_bias", true, &p->conv_bias));
    p->proj_bias = true;
    return ERR_OK;
}

static enum err_code read_striped_attention(struct reader *r, struct mixer *x)
{
    int64_t groups;
    bool smeared;
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(mixed_size(r, &r->text, "proj_groups", 1, 1 << 16, 1, &groups));
    TRY(reader_flag(r, &r->text, "smeared_gqa", false, &smeared));
    if (smeared)
        return err_set(r->e, ERR_INPUT,
                       "%s: smeared_gqa is true, which the %s family does not describe: refused, not "
                       "guessed",
                       r->text.file, r->family->name);
    if (r->m->hidden % x->heads != 0 || x->heads % groups != 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: hidden_size %lld is no multiple of %lld heads, or these of %lld proj_groups", r->text.file,
                       (long long)r->m->hidden, (long long)x->heads, (long long)groups);
    x->kv_heads = x->heads / groups;
    x->head_dim = x->v_head_dim = r->m->hidden / x->heads;
    TRY(reader_flag(r, &r->text, "qkv_proj_bias", true, &x->qkv_bias));
    return reader_flag(r, &r->text, "mha_out_proj_bias", true, &x->o_bias);
}

enum err_code structure_stripedhyena(struct reader *r)
{
    struct model *m = r->m;
    struct mixer *x[2];
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    int64_t multiple;
    bool final;
    TRY(mixed_sizes(r, 1));
    bool *attends = arena_array(r->arena, (size_t)m->layers, sizeof *attends);
    bool *convolves = arena_array(r->arena, (size_t)m->layers, sizeof *convolves);
    for (size_t i = 0; i < 2; i++) x[i] = arena_alloc(r->arena, sizeof *x[i]);
    if (!k || !attends || !convolves || !x[0] || !x[1]) return err_nomem(r->e);
    TRY(mixed_marks(r, &r->text, "attn_layer_idxs", attends));
    TRY(mixed_marks(r, &r->text, "hyena_layer_idxs", convolves));
    TRY(read_modal(r, x[0]));
    TRY(read_striped_attention(r, x[1]));
    TRY(reader_flag(r, &r->text, "final_norm", true, &final));
    m->draft.no_final_norm = !final;
    const int64_t wide = 2 * m->hidden * 4 / 3;
    TRY(mixed_size(r, &r->text, "inner_size_multiple_of", 1, WIDEST, 64, &multiple)); /* not a unit */
    TRY(mixed_size(r, &r->text, "inner_mlp_size", 1, 1 << 24, (wide + multiple - 1) / multiple * multiple,
                   &k->ffn.width));
    k->ffn.kind = FFN_DENSE;
    k->ffn.gated = true;
    k->norms = 2;
    for (int64_t i = 0; i < m->layers; i++) {
        if (attends[i] == convolves[i])
            return err_set(r->e, ERR_INPUT, "%s: layer %lld stands in %s of attn_layer_idxs and hyena_layer_idxs",
                           r->text.file, (long long)i, attends[i] ? "both" : "neither");
        memcpy(&k->mixer, x[attends[i]], sizeof k->mixer);
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    return ERR_OK;
}

enum err_code extend_stripedhyena(struct reader *r)
{
    return reader_flag(r, &r->text, "tie_embeddings", r->m->tied, &r->m->tied);
}

/* ---- HyenaDNA ---- */

enum err_code structure_hyenadna(struct reader *r)
{
    struct model *m = r->m;
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    int64_t order;
    if (!k) return err_nomem(r->e);
    TRY(mixed_sizes(r, 8));
    TRY(mixed_size(r, &r->text, "hyena_order", 2, 64, 2, &order)); /* not a unit */
    if (order != 2)
        return err_set(r->e, ERR_INPUT,
                       "%s: hyena_order is %lld, and more than one long convolution a layer is not "
                       "described",
                       r->text.file, (long long)order);
    struct mixer *x = &k->mixer;
    struct recurrence *p = &x->recurrence;
    x->kind = MIXER_RECURRENT;
    p->block = RECURRENT_FILTER;
    x->heads = x->kv_heads = m->hidden;
    x->head_dim = x->v_head_dim = 1;
    p->proj_bias = p->conv_bias = true;
    TRY(mixed_size(r, &r->text, "short_filter_order", 1, 1 << 10, 3, &p->conv_taps));
    TRY(mixed_size(r, &r->text, "filter_order", 1, 1 << 16, 64, &p->filter_width)); /* not a unit */
    TRY(mixed_size(r, &r->text, "emb_dim", 3, 1 << 12, 5, &p->filter_inputs));
    TRY(mixed_size(r, &r->text, "num_inner_mlps", 0, 64, 2, &p->filter_layers)); /* not a unit */
    TRY(mixed_size(r, &r->text, "max_seq_len", 1, 1 << 30, -1, &p->filter_tokens));
    TRY(reader_flag(r, &r->text, "train_freq", true, &p->filter_sines));
    k->ffn.kind = FFN_DENSE;
    k->ffn.up_bias = k->ffn.down_bias = true;
    TRY(mixed_size(r, &r->text, "d_inner", 1, 1 << 24, 4 * m->hidden, &k->ffn.width));
    k->norms = 2;
    for (int64_t i = 0; i < m->layers; i++) TRY(reader_count_kind(r->arena, m, i, k, r->e));
    return ERR_OK;
}
