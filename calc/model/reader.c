/* reader -- a Hugging Face config.json becomes a struct model, by the rules of its family's row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/reader.h"
#include "calc/model/stored.h"

static void note(struct reader *r, const char *text)
{
    r->m->notes = r->m->notes ? arena_printf(r->arena, "%s; %s", r->m->notes, text) : text;
}

/* ---- which part of the file, which family ---- */

static enum err_code unknown_family(struct reader *r, const struct json *where, const char *key, const char *value)
{
    size_t n;
    const struct family *f = family_table(&n);
    char clean[64], near[200];
    text_clean(clean, sizeof clean, value, strlen(value));
    text_suggest(near, sizeof near, value, &f->name, sizeof *f, n);
    return err_set(r->e, ERR_INPUT,
                   "%s: %s \"%s\" is a family that ridge does not know, so its parameters and cache would be guesses%s "
                   "(ridge list families)",
                   where->file, key, clean, near);
}

enum err_code reader_text_part(const struct json *root, struct json *out, struct err *e)
{
    static const char *const NESTED[] = {"text_config", "llm_config", "language_config"};
    struct json j;
    *out = *root;
    for (size_t i = 0; i < sizeof NESTED / sizeof NESTED[0]; i++) {
        if (!json_get(root, NESTED[i], &j)) continue;
        if (!json_is_object(&j)) return json_want(&j, "an object", e);
        *out = j;
        break;
    }
    return ERR_OK;
}

static enum err_code find_family(struct reader *r)
{
    TRY(reader_text_part(r->root, &r->text, r->e));
    struct json j;
    const char *type = NULL;
    const struct json *where = &r->text;
    if (!json_get(&r->text, "model_type", &j)) {
        where = r->root;
        if (!json_get(r->root, "model_type", &j)) {
            struct json list, first;
            if (!json_get(r->root, "architectures", &list) || !json_at(&list, 0, NULL, &first))
                return err_set(r->e, ERR_INPUT,
                               "%s: neither model_type nor architectures is there: not a Hugging Face config.json of a "
                               "language model",
                               r->root->file);
            TRY(json_str(&first, &type, r->e));
            r->family = family_find_architecture(type);
            return r->family ? ERR_OK : unknown_family(r, where, "architectures[0]", type);
        }
    }
    TRY(json_str(&j, &type, r->e));
    r->family = family_find(type);
    return r->family ? ERR_OK : unknown_family(r, where, j.path, type);
}

/* Zero, false and an empty list say that a structure is not used. */
static bool is_off(const struct json *j)
{
    int64_t n;
    bool on;
    if (json_is_bool(j)) return json_bool(j, &on, NULL) == ERR_OK && !on;
    if (json_is_number(j)) return json_int(j, INT64_MIN, INT64_MAX, &n, NULL) == ERR_OK && n == 0;
    return json_is_array(j) && json_len(j) == 0;
}

static bool described(const struct family *f, const char *key)
{
    for (size_t i = 0; i < sizeof f->describes / sizeof f->describes[0] && f->describes[i]; i++)
        if (strcmp(f->describes[i], key) == 0) return true;
    return false;
}

/* Keys that change the structure in ways the family's row does not describe: the file is not what its model_type says.
 */
static enum err_code refuse_foreign(struct reader *r)
{
    static const struct {
        const char *key, *meaning;
    } FOREIGN[] = {
        {"draft_vocab_size", "a speculative draft head"},
        {"dflash_config", "a block-diffusion draft"},
        {"block_configs", "per-layer shapes"},
        {"cross_attention_layers", "cross attention"},
        {"layers_block_type", "a hybrid of layer types"},
        {"hybrid_override_pattern", "a hybrid of layer types"},
        {"hybrid_layer_pattern", "layers of two attention shapes"},
        {"linear_attn_config", "linear attention"},
        {"num_kv_shared_layers", "caches shared across layers"},
        {"use_cla", "caches shared across layers"},
        {"use_mla", "latent attention"},
        {"index_topk", "sparse indexed attention"},
        {"sparse_config", "sparse attention"},
        {"attn_type_list", "a hybrid of layer types"},
        {"attention_chunk_size", "chunked attention"},
        {"compress_ratios", "compressed attention"},
        {"hidden_size_per_layer_input", "per-layer embeddings"},
        {"global_head_dim", "layers of two attention shapes"},
        {"attention_k_eq_v", "values that are the keys"},
        {"moe_latent_size", "experts in a latent space"},
        {"shared_intermediate_size", "a shared expert"},
    };
    struct json j;
    for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++)
        if (json_get(&r->text, FOREIGN[i].key, &j) && !is_off(&j) && !described(r->family, FOREIGN[i].key))
            return err_set(r->e, ERR_INPUT,
                           "%s: %s means %s, which the %s family does not describe: refused, not guessed", j.file,
                           j.path, FOREIGN[i].meaning, r->family->name);
    if (!r->family->latent && json_get(&r->text, "kv_lora_rank", &j))
        return err_set(r->e, ERR_INPUT, "%s: %s means latent attention, but the %s family has none", j.file, j.path,
                       r->family->name);
    int64_t experts = 0;
    if (r->family->moe == MOE_NONE) {
        TRY(reader_dim(r, DIM_EXPERTS, 0, 0, &experts));
        if (experts > 1)
            return err_set(r->e, ERR_INPUT, "%s: %lld experts, but the %s family is dense", r->text.file,
                           (long long)experts, r->family->name);
    }
    return ERR_OK;
}

/* ---- the whole ---- */

static enum err_code read_head(struct reader *r)
{
    struct model *m = r->m;
    /* The flag may stand outside the text part (Qwen3-VL) or inside (Ministral-3); the inner one wins. */
    TRY(reader_flag(r, r->root, "tie_word_embeddings", r->family->tied, &m->tied));
    TRY(reader_flag(r, &r->text, "tie_word_embeddings", m->tied, &m->tied));
    m->norm = r->family->norm;
    m->embed_norm = r->family->embed_norm;
    m->head_bias = r->family->head_bias;
    if (r->family->head_bias_by_key) TRY(reader_flag(r, &r->text, "lm_head_bias", false, &m->head_bias));
    if (!r->family->positions) return ERR_OK;
    if (m->max_context_tokens == 0)
        return err_set(r->e, ERR_INPUT, "%s: n_positions is missing: the learned position table has that many rows",
                       r->text.file);
    m->position_rows = m->max_context_tokens + r->family->position_offset;
    return ERR_OK;
}

/* What attends in a model, and what does instead. */
struct attending {
    const struct mixer *first, *recurrent; /* NULL none; first: one with a window where there is any */
    int64_t layers, windowed, sharing;
};

static struct attending look_at(const struct model *m)
{
    struct attending r = {.first = NULL};
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        const struct mixer *x = &k->mixer;
        if (x->kind == MIXER_RECURRENT) r.recurrent = x;
        if (x->kind == MIXER_NONE || x->kind == MIXER_RECURRENT) continue;
        r.layers += k->count;
        if (x->shares_kv) r.sharing += k->count;
        if (x->window_tokens) r.windowed += k->count;
        if (!r.first || x->window_tokens) r.first = x;
    }
    return r;
}

/* "GQA, 20/24 within 1024", "MHA, 20/40 share KV"; "GQA 4/40, mamba-2" beside recurrent mixers. */
const char *reader_attention_text(struct arena *a, const struct model *m)
{
    const struct attending on = look_at(m);
    const struct mixer *x = on.first;
    if (!x) return on.recurrent ? recurrent_name(on.recurrent) : "none";
    const char *text = x->top_keys               ? "MLA, sparse"
                       : x->kind == MIXER_LATENT ? "MLA"
                       : x->kv_heads == x->heads ? "MHA"
                       : x->kv_heads == 1        ? "MQA"
                                                 : "GQA";
    const long long layers = m->layers;
    const bool all = on.recurrent && on.windowed == on.layers;
    if (on.recurrent) text = arena_printf(a, "%s %lld/%lld", text, (long long)on.layers, layers);
    if (all && text) text = arena_printf(a, "%s within %lld", text, (long long)x->window_tokens);
    if (on.windowed && !all && text)
        text = arena_printf(a, "%s, %lld/%lld within %lld", text, (long long)on.windowed, layers,
                            (long long)x->window_tokens);
    if (on.sharing && text) text = arena_printf(a, "%s, %lld/%lld share KV", text, (long long)on.sharing, layers);
    return on.recurrent && text ? arena_printf(a, "%s, %s", text, recurrent_name(on.recurrent)) : text;
}

static void note_uncounted(struct reader *r)
{
    struct json j;
    int64_t mtp = 0;
    if (json_get(r->root, "vision_config", &j)) note(r, "vision tower not counted");
    if (json_get(r->root, "audio_config", &j)) note(r, "audio tower not counted");
    if (json_get(&r->text, "num_nextn_predict_layers", &j) && json_int(&j, 0, LAYERS_MAX, &mtp, NULL) == ERR_OK &&
        mtp > 0)
        note(r, "multi-token prediction layers not counted");
}

/* Layers; of files that list their blocks without a number, the length of the list. */
static enum err_code read_depth(struct reader *r)
{
    struct json j;
    const bool listed = r->family->hybrid != HYBRID_NONE && json_get(&r->text, "layers_block_type", &j);
    const int64_t n = listed ? (int64_t)json_len(&j) : 0;
    return reader_dim(r, DIM_LAYERS, 1, n > 0 && n <= LAYERS_MAX ? n : -1, &r->m->layers);
}

enum err_code model_parse(struct arena *a, const struct json *j, struct model *out, struct err *e)
{
    struct model m = {.source = j->file, .stored_bytes = (double)NAN, .stored_elems = (double)NAN};
    struct reader r = {.arena = a, .root = j, .m = &m, .e = e};
    if (!json_is_object(j)) return json_want(j, "an object (a Hugging Face config.json)", e);
    TRY(find_family(&r));
    m.family = r.family->name;
    TRY(refuse_foreign(&r));
    TRY(reader_dim(&r, DIM_HIDDEN, 1, -1, &m.hidden));
    TRY(read_depth(&r));
    TRY(reader_dim(&r, DIM_VOCAB, 1, -1, &m.vocab));
    TRY(reader_dim(&r, DIM_POSITIONS, 0, 0, &m.max_context_tokens));
    TRY(reader_layers(&r));
    TRY(read_head(&r));
    if (r.family->extend) TRY(r.family->extend(&r));
    TRY(stored_read(a, j, &r.text, r.family->router_fp32, &m, e));
    m.attention = reader_attention_text(a, &m);
    note_uncounted(&r);
    (void)json_hash(j, m.hash);
    if (!m.attention) return err_nomem(e);
    *out = m;
    return ERR_OK;
}
