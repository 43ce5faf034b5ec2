/* vary_further -- families of one rule each that no field of a row can say. */
#include <string.h>

#include "calc/model/vary.h"

/* Phi-3 small: every dense_attention_every_n_layers-th layer sees all keys, the others the last blocks and stripes of
 * those before, which differ from head to head. Source: vLLM, phi3_small.py; blocksparse_attention/utils.py. */
enum err_code vary_phi3small(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    int64_t every;
    bool alike;
    TRY(reader_int(r, "dense_attention_every_n_layers", 0, LAYERS_MAX, 0, &every));
    if (every > 0 && (layer + 1) % every == 0) return ERR_OK;
    static const char *const KEYS[] = {"blocksparse_block_size", "blocksparse_num_local_blocks",
                                       "blocksparse_vert_stride"};
    int64_t *const into[] = {&x->stripe_tokens, &x->stripe_near, &x->stripe_every};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        if (!json_get(&r->text, KEYS[i], &j))
            return err_set(r->e, ERR_INPUT, "%s: %s is missing: which keys a head sees", r->text.file, KEYS[i]);
        TRY(json_int(&j, 1, 1 << 20, into[i], r->e));
    }
    TRY(reader_flag(r, &r->text, "blocksparse_homo_head_pattern", false, &alike));
    if (alike)
        return err_set(r->e, ERR_INPUT,
                       "%s: blocksparse_homo_head_pattern is true, which means the same stripes of keys in all heads: "
                       "not described",
                       r->text.file);
    if (x->heads % x->stripe_every == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT,
                   "%s: %lld heads are no multiple of %lld stripes of keys, so stripes are not seen by as many each: "
                   "not described",
                   r->text.file, (long long)x->heads, (long long)x->stripe_every);
}

/* PLaMo: so many queries share a key and a value head. Source: modeling_plamo.py of pfnet/plamo-13b. */
enum err_code vary_plamo(struct reader *r, int64_t layer, struct layer_kind *k)
{
    int64_t shared;
    (void)layer;
    TRY(reader_int(r, "n_shared_head", 1, 1 << 16, 8, &shared)); /* class default */
    if (k->mixer.heads % shared != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld query heads are not a multiple of n_shared_head %lld", r->text.file,
                       (long long)k->mixer.heads, (long long)shared);
    k->mixer.kv_heads = k->mixer.heads / shared;
    return ERR_OK;
}

/* Molmo: rows of the embedding for tokens of images, which the output head has not. Source: vLLM, molmo.py. */
enum err_code extend_molmo(struct reader *r)
{
    struct json j;
    const char *norm = "rms";
    if (json_get(&r->text, "layer_norm_type", &j)) TRY(json_str(&j, &norm, r->e));
    if (strcmp(norm, "rms") != 0) return json_want(&j, "\"rms\"", r->e);
    TRY(reader_int(r, "embedding_size", 1, INT64_C(1) << 28, r->m->vocab, &r->m->vocab));
    return reader_int(r, "additional_vocab_size", 0, 1 << 20, 128, &r->m->embed_extra_rows); /* class default */
}

/* A number of a list of one per layer. */
static enum err_code of_layer(struct reader *r, const char *key, int64_t layer, struct json *out)
{
    struct json list;
    if (!json_get(&r->text, key, &list))
        return err_set(r->e, ERR_INPUT, "%s: %s is missing: a list of one number per layer", r->text.file, key);
    if (json_is_array(&list) && json_len(&list) == (size_t)r->m->layers && json_at(&list, (size_t)layer, NULL, out))
        return ERR_OK;
    return json_want(&list, "a list of one number per layer", r->e);
}

/* OpenELM: heads and widths layer by layer. Source: configuration_openelm.py and modeling_openelm.py of
 * apple/OpenELM-270M. */
enum err_code attention_openelm(struct reader *r, struct mixer *x)
{
    bool normed;
    x->kind = MIXER_ATTENTION;
    x->heads = x->kv_heads = 1; /* vary has those of each layer */
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, -1, &x->head_dim));
    x->v_head_dim = x->head_dim;
    TRY(reader_flag(r, &r->text, r->family->qk_norm_key, false, &normed));
    x->qk_norm = normed ? r->family->qk_norm : QK_NORM_NONE;
    return ERR_OK;
}

enum err_code vary_openelm(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    double ratio;
    int64_t step;
    bool gated;
    TRY(of_layer(r, "num_query_heads", layer, &j));
    TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    TRY(of_layer(r, "num_kv_heads", layer, &j));
    TRY(json_int(&j, 1, 1 << 16, &x->kv_heads, r->e));
    if (x->heads % x->kv_heads != 0) return json_want(&j, "a divisor of the layer's query heads", r->e);
    TRY(reader_flag(r, &r->text, "ffn_with_glu", true, &gated));
    if (!gated)
        return err_set(r->e, ERR_INPUT, "%s: ffn_with_glu is false, which the %s family does not describe",
                       r->text.file, r->family->name);
    TRY(of_layer(r, "ffn_multipliers", layer, &j));
    TRY(json_num(&j, &ratio, r->e));
    TRY(reader_int(r, "ffn_dim_divisor", 1, 1 << 16, 256, &step)); /* class default */
    const double width = ratio * (double)r->m->hidden;
    if (!(width >= 1) || !(width <= 1 << 24)) return json_want(&j, "a multiple of the model's width", r->e);
    /* the nearest multiple, but no less than nine tenths of it */
    k->ffn.width = (int64_t)(width + (double)step / 2) / step * step;
    if (k->ffn.width < step) k->ffn.width = step;
    if ((double)k->ffn.width < 0.9 * width) k->ffn.width += step;
    return ERR_OK;
}

enum err_code extend_openelm(struct reader *r)
{
    return reader_flag(r, &r->text, "share_input_output_layers", r->m->tied, &r->m->tied);
}

/* Sarvam: shared experts may have a width of their own. Source: vLLM, sarvam.py. */
enum err_code vary_sarvam(struct reader *r, int64_t layer, struct layer_kind *k)
{
    int64_t shared, width;
    (void)layer;
    if (k->ffn.kind != FFN_MOE) return ERR_OK;
    TRY(reader_dim(r, DIM_SHARED_EXPERTS, 0, 1, &shared));
    TRY(reader_dim(r, DIM_SHARED_WIDTH, 1, k->ffn.width, &width));
    k->ffn.shared_width = shared * width;
    return ERR_OK;
}

/* Voxtral Realtime: the delay of the text behind the sound scales what the MLP reads, through a product whose width is
 * a constant of the class. Its encoder of sound keeps what it heard, as a decoder does. Source: transformers 5.24,
 * modeling_voxtral_realtime.py. */
enum err_code vary_voxtral_realtime(struct reader *r, int64_t layer, struct layer_kind *k)
{
    enum { RANK = 32 };
    (void)r;
    (void)layer;
    k->ffn_condition_rank = RANK;
    return ERR_OK;
}

enum err_code extend_voxtral_realtime(struct reader *r)
{
    return reader_note(r, "the encoder of sound keeps a cache of its own for every stream, which is not counted");
}

enum err_code extend_post_norm(struct reader *r)
{
    r->m->draft.no_final_norm = true;
    return ERR_OK;
}
