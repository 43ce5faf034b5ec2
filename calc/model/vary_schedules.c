/* vary_schedules -- families of 2026 whose classes say which layer slides, and which turns, where the file does not:
 * LFM3, Flint, Kolibri, Beam, Muse, Lara Mini; and Molmo 2 and Nemotron-H, by their keys of norms and biases. Source:
 * transformers 5.24, configuration_*.py and modeling_*.py of lfm3, flint, kolibri1, beam, muse_glimmer, muse_spark,
 * lara_mini, molmo2, nemotron_h. */
#include <string.h>

#include "calc/model/vary.h"

/* A layer slides unless it is full, by the class; layer_types decides where the file has it. */
static enum err_code slide(struct reader *r, bool full, struct mixer *x)
{
    struct json j;
    int64_t window;
    if (json_get(&r->text, "layer_types", &j)) return ERR_OK;
    TRY(reader_dim(r, DIM_WINDOW, 0, 0, &window));
    x->window_tokens = full ? 0 : window;
    return ERR_OK;
}

enum err_code vary_lfm3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    bool sandwich;
    (void)layer;
    TRY(reader_flag(r, &r->text, "use_sandwich_norm", true, &sandwich));
    if (!sandwich) k->norms = 2;
    if (k->mixer.kind != MIXER_ATTENTION) return ERR_OK;
    return reader_flag(r, &r->text, "use_attention_gate", true, &k->mixer.head_gate);
}

/* A shared expert of a width of its own, without a gate. */
enum err_code vary_shared_expert(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    if (k->ffn.kind != FFN_MOE) return ERR_OK;
    return reader_dim(r, DIM_SHARED_WIDTH, 1, -1, &k->ffn.shared_width);
}

/* Lara Mini: full layers do not know positions. */
enum err_code vary_lara_mini(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    if (x->kind == MIXER_ATTENTION && x->window_tokens == 0) x->position = POSITION_NONE;
    return vary_shared_expert(r, layer, k);
}

enum err_code vary_flint(struct reader *r, int64_t layer, struct layer_kind *k)
{
    enum { FIRST = 2 }; /* class default: layers without experts, which are full too */
    struct json j;
    TRY(slide(r, layer < FIRST || layer % 4 == 1 || layer == r->m->layers - 1, &k->mixer));
    if (layer < FIRST && !json_get(&r->text, "mlp_only_layers", &j)) {
        memset(&k->ffn, 0, sizeof k->ffn);
        return reader_dense(r, &k->ffn);
    }
    return vary_shared_expert(r, layer, k);
}

enum err_code vary_beam(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    x->gate_apart = x->gate_bias = true;
    TRY(slide(r, (layer + 1) % 6 == 0 || layer == r->m->layers - 1, x));
    const bool listed = json_get(&r->text, "rope_parameters", &j) && json_is_object(&j);
    const bool turns =
        listed ? json_get(&j, x->window_tokens ? "sliding_attention" : "full_attention", &j) : x->window_tokens > 0;
    x->position = turns ? POSITION_ROPE : POSITION_NONE;
    return ERR_OK;
}

/* Layers by their distance from the last, of which every fourth is full; layer_rope_theta has 0 for those that do not
 * turn. */
enum err_code vary_muse(struct reader *r, int64_t layer, struct layer_kind *k)
{
    const bool fourth = (r->m->layers - 1 - layer) % 4 == 0;
    struct json list, item;
    double theta = fourth ? 0 : 1;
    k->mixer.gate_apart = true;
    TRY(slide(r, fourth, &k->mixer));
    if (json_get(&r->text, "layer_rope_theta", &list)) {
        if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers ||
            !json_at(&list, (size_t)layer, NULL, &item))
            return json_want(&list, "a list of one number per layer", r->e);
        TRY(json_num(&item, &theta, r->e));
    }
    k->mixer.position = theta > 0 ? POSITION_ROPE : POSITION_NONE;
    return ERR_OK;
}

/* Muse Spark: experts in a narrower space, with a norm on the way in and one of what each gives; both terms of the sum
 * with the stream by gates of the layer's own. */
enum err_code vary_muse_spark(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct ffn *f = &k->ffn;
    TRY(vary_muse(r, layer, k));
    k->plain_norm = k->residual_gates = true;
    if (f->kind != FFN_MOE) return ERR_OK;
    f->latent_in_norm = f->latent_each_norm = true;
    return reader_int(r, "moe_hidden_size", 1, 1 << 22, 4096, &f->latent_width); /* class default; not a unit */
}

/* Norms of heads, or of all of them; files of before say qkv_bias for attention_bias, and whether there are norms. */
enum err_code vary_molmo2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    const char *kind = "qwen3";
    bool normed;
    (void)layer;
    TRY(reader_flag(r, &r->text, "qkv_bias", x->qkv_bias, &x->qkv_bias));
    TRY(reader_flag(r, &r->text, "use_qk_norm", true, &normed));
    if (json_get(&r->text, "qk_norm_type", &j)) TRY(json_str(&j, &kind, r->e));
    if (strcmp(kind, "qwen3") != 0 && strcmp(kind, "olmo") != 0) return json_want(&j, "\"qwen3\" or \"olmo\"", r->e);
    x->qk_norm = !normed ? QK_NORM_NONE : strcmp(kind, "olmo") == 0 ? QK_NORM_WIDE : QK_NORM_HEAD;
    return ERR_OK;
}

/* The embedding has rows that the head lacks, so neither is the other. */
enum err_code extend_molmo2(struct reader *r)
{
    r->m->tied = false;
    return reader_int(r, "additional_vocab_size", 0, 1 << 20, 128, &r->m->embed_extra_rows); /* class default */
}

/* Nemotron-H: mlp_bias is of the MLP, of shared experts and of the products into and out of the experts' space, and
 * attention_bias of nothing. Source: modeling_nemotron_h.py. */
enum err_code vary_nemotron_h(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct ffn *f = &k->ffn;
    bool biased;
    (void)layer;
    TRY(reader_flag(r, &r->text, "mlp_bias", false, &biased));
    if (f->kind == FFN_DENSE) f->up_bias = f->down_bias = biased;
    if (f->kind == FFN_MOE) {
        f->shared_bias = biased && f->shared_width > 0;
        f->latent_bias = biased && f->latent_width > 0;
    }
    return ERR_OK;
}
