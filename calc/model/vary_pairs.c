/* vary_pairs -- decoders whose attention, sums or heads have parts that no other family's have. Sources: Hugging Face
 * transformers, modeling_diffllama, _doge, _gpt_neox_japanese, _modernbert_decoder and _chameleon; modeling_grove_moe
 * of the published model. */
#include <math.h>
#include <string.h>

#include "calc/model/vary.h"

/* DiffLlama: pairs of heads; the norm of their difference has no weight. */
enum err_code vary_diffllama(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    k->mixer.differential = true;
    if (k->mixer.kv_heads % 2 == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld KV heads are no pairs, of which differences are taken", r->text.file,
                   (long long)k->mixer.kv_heads);
}

/* Doge: a number of each key is added to its scores; the stream has factors in both sums. */
enum err_code vary_doge(struct reader *r, int64_t layer, struct layer_kind *k)
{
    bool experts;
    (void)layer;
    TRY(reader_flag(r, &r->text, "is_moe", false, &experts));
    if (experts)
        return err_set(r->e, ERR_INPUT,
                       "%s: is_moe is true: experts found by products of keys, a row of two tables each, are not "
                       "described",
                       r->text.file);
    k->mixer.value_mask = true;
    k->residual_weights = true;
    return ERR_OK;
}

/* GPT-NeoX Japanese: the last layer's attention alone has a bias; the MLP is a multiple of the width. */
enum err_code vary_neox_japanese(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    double ratio = 4; /* class default */
    k->mixer.o_bias = layer == r->m->layers - 1;
    if (!json_get(&r->text, "intermediate_multiple_size", &j)) return ERR_OK;
    TRY(json_num(&j, &ratio, r->e));
    const double width = ratio * (double)r->m->hidden;
    if (!(ratio > 0) || !(ratio <= 64) || floor(width) < 1) return json_want(&j, "a multiple of the width", r->e);
    k->ffn.width = (int64_t)floor(width);
    return ERR_OK;
}

/* ModernBERT decoder: the first layer reads the norm of the embedding; local_attention counts both sides of a token, of
 * which a decoder sees one. */
enum err_code vary_modernbert(struct reader *r, int64_t layer, struct layer_kind *k)
{
    int64_t both;
    if (layer == 0) k->norms = 1;
    TRY(reader_int(r, "local_attention", 2, INT64_C(1) << 40, 0, &both));
    if (k->mixer.window_tokens > 0 && both > 0) k->mixer.window_tokens = both / 2;
    return ERR_OK;
}

enum err_code extend_modernbert(struct reader *r)
{
    struct model *m = r->m;
    bool biased;
    TRY(reader_flag(r, &r->text, "norm_bias", false, &biased));
    if (biased) m->norm = NORM_LAYER_BIAS;
    TRY(reader_flag(r, &r->text, "decoder_bias", true, &m->head_bias));
    TRY(reader_flag(r, &r->text, "classifier_bias", false, &m->head_dense_bias));
    m->head_dense = true;
    return ERR_OK;
}

/* GroveMoE: sizes of the experts that groups share are constants of the class where the file does not say them. */
enum err_code vary_grove(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct ffn *f = &k->ffn;
    (void)layer;
    if (f->kind != FFN_MOE) return ERR_OK;
    TRY(reader_int(r, "num_experts_per_group", 1, EXPERTS_MAX, 2, &f->group_experts));
    TRY(reader_int(r, "parallel_expert_intermediate_size", 1, 1 << 24, 128, &f->group_width)); /* not a unit */
    if (f->experts % f->group_experts == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld experts are no whole number of groups of %lld", r->text.file,
                   (long long)f->experts, (long long)f->group_experts);
}

enum err_code extend_chameleon(struct reader *r)
{
    struct json j;
    if (!json_get(&r->text, "vq_config", &j)) return ERR_OK;
    if (!json_is_object(&j)) return json_want(&j, "an object", r->e);
    return reader_note(r, "the quantiser of images (vq_config) is not counted");
}
