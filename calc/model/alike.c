#include "calc/model/alike.h"

#include <stdlib.h>
#include <string.h>

#include "calc/model/checkpoint.h"

static bool has_any(const struct json *text, const char *const *keys)
{
    struct json j;
    for (size_t i = 0; keys[i]; i++)
        if (json_get(text, keys[i], &j)) return true;
    return false;
}

/* Whether a row is of files with these parts. Rows of plain attention with shared experts are for files that name such:
 * others spell experts as theirs do. */
static bool fits(const struct family *f, bool latent, bool experts, bool shared)
{
    if (f->plain == 0 || f->latent != latent) return false;
    return latent || ((f->moe != MOE_NONE) == experts && (shared || f->moe != MOE_DEEPSEEK));
}

/* Whether one of the words stands in a name, or one of the short ones where a part of it begins: "t5" in "t5gemma" and
 * "flan-t5", not in "gpt5". */
static bool says(const char *name, const char *const *words, const char *const *openings)
{
    for (size_t k = 0; words[k]; k++)
        if (strstr(name, words[k])) return true;
    for (const char *at = name; *at; at += strcspn(at, "-_."), at += strspn(at, "-_."))
        for (size_t k = 0; openings[k]; k++)
            if (strncmp(at, openings[k], strlen(openings[k])) == 0) return true;
    return false;
}

/* Encoders, alone or before a decoder, and towers of images: words in their model_type, keys and classes of theirs. No
 * decoder is like them, whatever sizes they state. */
static bool encodes(const struct json *root, const struct json *text)
{
    static const char *const WORDS[] = {"bert", "electra", "bart", "whisper", "wav2vec", "clip", NULL};
    static const char *const OPENINGS[] = {"t5", "mt5", "umt5", "byt5", "longt5", "vit", "owlvit", "mobilevit", NULL};
    static const char *const KEYS[] = {"type_vocab_size",
                                       "classifier_pooling",
                                       "projection_dim",
                                       "num_mel_bins",
                                       "d_kv",
                                       "encoder_layers",
                                       "decoder_layers",
                                       NULL};
    const struct json *const parts[] = {root, text};
    struct json j, first;
    const char *word;
    bool on = false;
    for (size_t i = 0; i < 2; i++) {
        if (has_any(parts[i], KEYS)) return true;
        if (json_get(parts[i], "is_encoder_decoder", &j) && json_bool(&j, &on, NULL) == ERR_OK && on) return true;
        if (json_get(parts[i], "architectures", &j) && json_at(&j, 0, NULL, &first) &&
            json_str(&first, &word, NULL) == ERR_OK && strstr(word, "MaskedLM"))
            return true;
        if (!json_get(parts[i], "model_type", &j) || json_str(&j, &word, NULL) != ERR_OK) continue;
        if (says(word, WORDS, OPENINGS)) return true;
    }
    return false;
}

const struct family *alike_by_keys(struct arena *a, const struct json *root)
{
    static const char *const STATES[] = {
        "ssm_cfg",   "state_size",           "mamba_d_state", "mamba_state_dim", "conv_kernel",
        "head_size", "linear_num_key_heads", "xlstm_round",   "qk_dim_factor",   "d_inner",
        "lru_width", "layers_block_type",    "block_types",   "mlstm_blocks",    NULL};
    static const char *const ROUTED[] = {"n_routed_experts", NULL};
    struct err ignored = {.code = ERR_OK};
    struct json text, j;
    struct model m;
    const struct family *f, *best = NULL;
    if (reader_text_part(root, &text, &ignored) != ERR_OK || has_any(&text, STATES)) return NULL;
    if (encodes(root, &text)) return NULL;
    const bool latent = json_get(&text, "kv_lora_rank", &j), experts = has_any(&text, dim_spellings(DIM_EXPERTS));
    const bool shared = has_any(&text, ROUTED) || has_any(&text, dim_spellings(DIM_SHARED_EXPERTS));
    for (size_t i = 0; (f = family_at(i)); i++)
        if (fits(f, latent, experts, shared) && (!best || f->plain < best->plain) &&
            reader_parse_as(a, root, f, &m, &ignored) == ERR_OK)
            best = f;
    return best;
}

/* Numbers that vectors of the layers store: norms, biases and what goes with them; not those of layers behind the last.
 */
static int64_t stored_in_vectors(const struct tensor_set *s, int64_t layers)
{
    static const char LAYERS[] = "layers.";
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *t = &s->tensors[i];
        const char *at = strstr(t->name, LAYERS);
        char *end;
        if (!at || t->dims != 1 || strstr(at, "scale") || strstr(at, "rotary")) continue;
        const long long layer = strtoll(at + sizeof LAYERS - 1, &end, 10);
        if (*end == '.' && layer >= 0 && layer < layers) n += t->elems;
    }
    return n;
}

static int64_t vectors_of(const struct model *m, const struct layer_kind *k)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    const int64_t each = m->norm == NORM_LAYER_BIAS                                 ? 2
                         : m->norm == NORM_RMS_PLAIN || m->norm == NORM_LAYER_PLAIN ? 0
                                                                                    : 1;
    int64_t n = k->norms * each * m->hidden + (x->o_bias ? m->hidden : 0) + (f->down_bias ? m->hidden : 0);
    if (x->kind == MIXER_LATENT) n += x->q_rank + x->kv_rank;
    if (x->qk_norm == QK_NORM_HEAD) n += 2 * x->head_dim;
    if (x->qk_norm == QK_NORM_WIDE || x->qk_norm == QK_NORM_EACH) n += (x->heads + x->kv_heads) * x->head_dim;
    if (x->qkv_bias) n += x->heads * x->head_dim + x->kv_heads * (x->head_dim + x->v_head_dim);
    if (f->up_bias) n += (f->gated ? 2 : 1) * f->width;
    if (f->inner_norm) n += f->width;
    if (f->router_correction) n += f->experts;
    return n + (x->sinks ? x->heads : 0) + f->act_params;
}

static bool is_like(struct arena *a, const struct json *root, const struct family *f, const struct tensor_set *s)
{
    struct err ignored = {.code = ERR_OK};
    struct model m;
    int64_t vectors = 0, layers = 0;
    if (f->draft || f->versions || f->structure || f->recurrent || f->diffusion) return false;
    if (reader_parse_as(a, root, f, &m, &ignored) != ERR_OK) return false;
    m.notes = NULL;
    if (checkpoint_names(a, s, &m, &ignored) != ERR_OK || checkpoint_widths(a, s, &m, &ignored) != ERR_OK) return false;
    for (size_t i = 0; i < m.kinds_n; i++) {
        vectors += m.kinds[i].count * vectors_of(&m, &m.kinds[i]);
        layers += m.kinds[i].count;
    }
    return !m.notes && vectors == stored_in_vectors(s, layers);
}

const struct family *alike_by_tensors(struct arena *a, const char *config_path, const struct json *root)
{
    struct err ignored = {.code = ERR_OK};
    struct tensor_set s;
    enum tensor_format format;
    const struct family *f;
    const char *slash = strrchr(config_path, '/');
    const char *dir = slash ? arena_strndup(a, config_path, (size_t)(slash - config_path)) : ".";
    if (!dir || !tensors_present(dir, &format) || format != TENSOR_FORMAT_SAFETENSORS) return NULL;
    if (tensors_open(a, dir, &s, &ignored) != ERR_OK || s.headers_missing) return NULL;
    f = alike_by_keys(a, root); /* the best known of several that store the same */
    if (f && is_like(a, root, f, &s)) return f;
    for (size_t i = 0; (f = family_at(i)); i++)
        if (is_like(a, root, f, &s)) return f;
    return NULL;
}
