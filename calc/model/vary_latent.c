/* vary_latent -- families with latent attention to chosen keys that have more beside it: GLM-5.3-Flash, Hy4, A.X K2,
 * Mistral Large 4, dots3-note. * Source: transformers, modular_glm5_next.py, modular_hy_v4.py, modular_axk2.py,
 * modular_mistral_large4.py, modular_dots3_note.py and their configuration classes. */
#include <stdlib.h>
#include <string.h>

#include "calc/model/vary.h"

/* The indexer, by the sizes of the class where the file has none. */
static enum err_code read_indexer(struct reader *r, struct mixer *x, int64_t heads)
{
    TRY(reader_int(r, "index_n_heads", 1, 1 << 16, heads, &x->index_heads));
    TRY(reader_int(r, "index_head_dim", 1, 1 << 16, 128, &x->index_dim)); /* class default; not a unit */
    TRY(reader_int(r, "index_topk", 1, 1 << 20, 2048, &x->top_keys));     /* class default; not a unit */
    if (x->q_rank > 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: q_lora_rank is missing: the indexer's queries come from it", r->text.file);
}

enum err_code vary_glm5_next(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    if (x->kind != MIXER_LATENT) return ERR_OK;
    TRY(vary_indexer_types(r, 1));
    TRY(read_indexer(r, x, 32));                                              /* class default; not a unit */
    TRY(reader_int(r, "index_kpool", 1, 1 << 16, 16, &x->index_pool_tokens)); /* class default; not a unit */
    if (x->top_keys % x->index_pool_tokens != 0)
        return err_set(r->e, ERR_INPUT, "%s: index_topk is %lld, no multiple of index_kpool, %lld", r->text.file,
                       (long long)x->top_keys, (long long)x->index_pool_tokens);
    if (x->index_pool_tokens == 1) x->index_pool_tokens = 0;
    TRY(vary_indexer_shared(r, layer, 1, x));
    if (x->index_heads == 0) x->index_pool_tokens = 0;
    return ERR_OK;
}

enum err_code extend_glm5_next(struct reader *r)
{
    r->m->hyper_mean = true;
    return extend_deepseek_v4(r); /* streams: the same keys and class defaults */
}

enum err_code vary_hy_v4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    enum { GROUP = 4 }; /* class default: layers of an indexer */
    bool images;
    k->mixer.output_gate = true;
    TRY(reader_is_type(r, "hy_v4_vl_text", &images));
    TRY(vary_indexer_types(r, GROUP));
    TRY(read_indexer(r, &k->mixer, images ? 32 : 16)); /* class defaults; not units */
    return vary_indexer_shared(r, layer, GROUP, &k->mixer);
}

enum err_code extend_hy_v4(struct reader *r)
{
    r->m->hyper_identity = true;
    return reader_int(r, "hc_mult", 1, 64, 4, &r->m->hyper_streams); /* class default; not a unit */
}

/* The norm before attention has a gate, and that before experts. */
enum err_code vary_axk2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    int64_t rank;
    (void)layer;
    k->mixer.output_gate = k->mixer.gate_of_latent = true;
    TRY(vary_indexer_types(r, 1));
    TRY(read_indexer(r, &k->mixer, 16));                          /* class default; not a unit */
    TRY(reader_int(r, "gated_norm_rank", 1, 1 << 20, 16, &rank)); /* class default; not a unit */
    k->mixer_gate_rank = rank;
    if (k->ffn.kind == FFN_MOE) k->ffn_gate_rank = rank;
    return ERR_OK;
}

/* Ling 3.0: shared experts as in Ling 2.5; a gate of its latent attention, of one number a head or one an element. */
enum err_code vary_ling3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    const char *gate;
    const bool saved = json_has(&r->text, "linear_head_dim"); /* by transformers, whose class knows one form of each */
    TRY(vary_ling(r, layer, k));
    if (saved && k->ffn.kind == FFN_MOE)
        TRY(reader_flag(r, &r->text, "moe_router_enable_expert_bias", true, &k->ffn.router_correction));
    if (k->mixer.kind != MIXER_LATENT) return ERR_OK;
    if (saved && !json_has(&r->text, "gated_attention_proj_granularity_type")) {
        k->mixer.head_gate = true;
        return ERR_OK;
    }
    if (!json_has(&r->text, "gated_attention_proj_granularity_type"))
        return err_set(r->e, ERR_INPUT, "%s: gated_attention_proj_granularity_type is missing: the gate of attention",
                       r->text.file);
    if (!json_get(&r->text, "gated_attention_proj_granularity_type", &j)) return ERR_OK; /* null: none */
    TRY(json_str(&j, &gate, r->e));
    k->mixer.head_gate = strcmp(gate, "head_wise") == 0;
    k->mixer.output_gate = strcmp(gate, "element_wise") == 0;
    return k->mixer.head_gate || k->mixer.output_gate ? ERR_OK
                                                      : json_want(&j, "\"head_wise\" or \"element_wise\"", r->e);
}

/* Mistral Large 4: keys that the first 64 elements of turn, or none in layers without positions, which have as many
 * elements all the same; layers may attend to the latents of an earlier one, which no published file asks for. */
enum err_code vary_mistral_large4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json list, item;
    int64_t source;
    if (x->q_rank > 0)
        return err_set(r->e, ERR_INPUT, "%s: q_lora_rank is stated, and queries of the %s family have no latent",
                       r->text.file, r->family->name);
    TRY(reader_int(r, "index_n_heads", 1, 1 << 16, 32, &x->index_heads)); /* class defaults; not units */
    TRY(reader_int(r, "index_head_dim", 1, 1 << 16, 128, &x->index_dim));
    TRY(reader_int(r, "index_topk", 1, 1 << 20, 2048, &x->top_keys));
    TRY(vary_indexer_types(r, 1));
    TRY(vary_indexer_shared(r, layer, 1, x));
    x->query_scales = true;
    x->index_stream = x->index_heads > 0;
    if (x->position == POSITION_NONE) {
        x->head_dim += x->rope_dim;
        x->rope_dim = 0;
    }
    if (!json_get(&r->text, "kv_source_layers", &list)) return ERR_OK;
    if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers || !json_at(&list, (size_t)layer, NULL, &item))
        return json_want(&list, "a list of one number per layer", r->e);
    TRY(json_int(&item, 0, layer, &source, r->e));
    return source == layer ? ERR_OK : json_want(&item, "the layer itself (shared latents are not described)", r->e);
}

enum err_code extend_mistral_large4(struct reader *r)
{
    int64_t rope;
    TRY(reader_dim(r, DIM_ROPE_DIM, 2, -1, &rope));
    r->m->rope_scales = rope / 2;
    return ERR_OK;
}

/* The object that per_layer_config has for a layer, by its number ("05"); *found: whether it has one. */
static enum err_code entry_of(struct reader *r, const struct json *all, int64_t layer, struct json *out, bool *found)
{
    struct json entry;
    const char *name;
    *found = false;
    if (!json_is_object(all)) return json_want(all, "an object of one object a layer", r->e);
    for (size_t i = 0; json_at(all, i, &name, &entry); i++) {
        const size_t digits = strspn(name, "0123456789");
        if (digits == 0 || digits > 6 || name[digits] != '\0' || strtol(name, NULL, 10) != layer) continue;
        if (!json_is_object(&entry)) return json_want(&entry, "an object", r->e);
        if (*found)
            return err_set(r->e, ERR_INPUT, "%s: %.60s says layer %lld twice", entry.file, entry.path,
                           (long long)layer);
        *out = entry;
        *found = true;
    }
    return ERR_OK;
}

/* dots3-note: whether a layer slides, and whether it chooses its keys. use_dsa, true where neither it nor
 * per_layer_config is stated, makes full and chosen layers one or the other, whatever layer_types calls them. */
static enum err_code dots3_type(struct reader *r, int64_t layer, bool *slides, bool *chosen)
{
    struct json list, item, j;
    bool use;
    const char *word;
    const bool told = json_get(&r->text, "use_dsa", &j) || !json_get(&r->text, "per_layer_config", &j);
    TRY(reader_flag(r, &r->text, "use_sliding_window", true, &use));
    TRY(reader_flag(r, &r->text, "use_dsa", true, chosen));
    *slides = use && layer >= 2 && layer % 4 != 1; /* class default */
    if (!json_get(&r->text, "layer_types", &list)) return ERR_OK;
    if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers || !json_at(&list, (size_t)layer, NULL, &item))
        return json_want(&list, "a list of one string per layer", r->e);
    TRY(json_str(&item, &word, r->e));
    *slides = strcmp(word, "sliding_attention") == 0;
    const bool indexed = strcmp(word, "indexed_attention") == 0;
    if (!told) *chosen = indexed;
    return *slides || indexed || strcmp(word, "full_attention") == 0
               ? ERR_OK
               : json_want(&item, "\"full_attention\", \"indexed_attention\" or \"sliding_attention\"", r->e);
}

/* Sizes of a layer that slides: per_layer_config of it, where the file has that; else keys swa_*, with defaults of the
 * class. */
static enum err_code dots3_sliding(struct reader *r, int64_t layer, struct mixer *x)
{
    const struct {
        const char *key; /* swa_ and the key of per_layer_config */
        int64_t fallback, *into;
    } SIZES[] = {
        {"swa_num_attention_heads", 64, &x->heads}, {"swa_q_lora_rank", 1024, &x->q_rank},       /* not a unit */
        {"swa_kv_lora_rank", 1024, &x->kv_rank},    {"swa_qk_nope_head_dim", 192, &x->head_dim}, /* not a unit */
        {"swa_v_head_dim", 128, &x->v_head_dim},    {"swa_qk_rope_head_dim", 0, &x->rope_dim},
    };
    struct json all, entry, j;
    int64_t wide;
    bool own = false;
    const bool listed = json_get(&r->text, "per_layer_config", &all);
    TRY(reader_dim(r, DIM_WINDOW, 1, 512, &x->window_tokens));
    if (listed) TRY(entry_of(r, &all, layer, &entry, &own));
    TRY(reader_int(r, "swa_head_dim", 1, 1 << 16, 256, &wide)); /* class defaults; not units */
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        const bool rope = SIZES[i].fallback == 0;
        if (own && json_get(&entry, SIZES[i].key + strlen("swa_"), &j))
            TRY(json_int(&j, 1, 1 << 22, SIZES[i].into, r->e));
        else if (!listed)
            TRY(reader_int(r, SIZES[i].key, 1, 1 << 22, rope ? wide - x->head_dim : SIZES[i].fallback, SIZES[i].into));
    }
    if (x->rope_dim < 1)
        return err_set(r->e, ERR_INPUT, "%s: swa_head_dim is %lld, and %lld of it do not turn: none is left that does",
                       r->text.file, (long long)wide, (long long)x->head_dim);
    x->kv_heads = x->heads;
    return ERR_OK;
}

enum err_code vary_dots3_note(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct ffn *f = &k->ffn;
    int64_t shared, width;
    bool slides, chosen, biased;
    x->head_gate = x->rope_norm = true;
    TRY(dots3_type(r, layer, &slides, &chosen));
    if (slides)
        TRY(dots3_sliding(r, layer, x));
    else if (chosen)
        TRY(read_indexer(r, x, 64)); /* class default; not a unit */
    if (x->q_rank == 0) return err_set(r->e, ERR_INPUT, "%s: q_lora_rank is missing, and null is none", r->text.file);
    TRY(reader_flag(r, &r->text, "mlp_bias", false, &biased));
    if (f->kind == FFN_DENSE) f->up_bias = f->down_bias = biased;
    if (f->kind != FFN_MOE) return ERR_OK;
    TRY(reader_dim(r, DIM_SHARED_EXPERTS, 1, 1, &shared));
    TRY(reader_dim(r, DIM_SHARED_WIDTH, 1, 1536, &width)); /* class default; not a unit */
    TRY(reader_int(r, "shared_experts_intermediate_size", 1, 1 << 24, width, &width));
    f->shared_width = shared * width;
    f->shared_bias = biased;
    return ERR_OK;
}
