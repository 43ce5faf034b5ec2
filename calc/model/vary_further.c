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
