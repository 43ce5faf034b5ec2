/* foreign -- keys that change the structure of a model in ways its family's row does not describe. */
#include <string.h>

#include "calc/model/reader.h"

/* What reads a key, beside the rows that list it in describes. */
enum {
    BY_TYPES = 1 << 0,
    BY_PERIOD = 1 << 1,
    BY_SHARED = 1 << 2,
    BY_TILED = 1 << 3,
    BY_STATES = 1 << 4, /* recurrent mixers of any kind */
    BY_WINDOWS = 1 << 5,
    BY_HEAD_BIAS = 1 << 6,
    BY_LIST = 1 << 7, /* of layers with attention */
    BY_VARY = 1 << 8, /* a reader of its own for each layer, which refuses what it does not know itself */
};

/* none: the value, or that of every element of a list by layer, with which a layer is as all layers of a family are
 * whose row says nothing of the key; NULL only 0, false and empty. Several are divided by "|". */
static const struct {
    const char *key, *meaning, *none;
    unsigned read_by;
} FOREIGN[] = {
    {"block_configs", "per-layer shapes", NULL, 0},
    {"per_layer_config", "per-layer shapes", NULL, 0},
    {"cross_attention_layers", "cross attention", NULL, 0},
    {"encoder_layers", "an encoder", NULL, 0},
    {"layers_block_type", "a hybrid of layer types", "attention|full_attention", 0},
    {"hybrid_override_pattern", "a hybrid of layer types", NULL, 0},
    {"hybrid_layer_pattern", "layers of two attention shapes", "0", 0},
    {"linear_attn_config", "linear attention", NULL, 0},
    {"full_attention_interval", "a hybrid of layer types", "1", BY_TYPES},
    {"attn_layer_period", "a hybrid of layer types", "1", BY_PERIOD | BY_SHARED},
    {"dense_attention_every_n_layers", "sparse attention in some layers", "1", 0},
    {"attention_types", "layers of two attention shapes", "global", BY_VARY},
    {"block_types", "a hybrid of layer types", "attention", BY_TILED},
    {"sliding_window_pattern", "windows of attention in some layers", "1|G", BY_WINDOWS | BY_VARY},
    {"mamba_n_heads", "layers with states", NULL, BY_STATES},
    {"mamba_d_state", "layers with states", NULL, BY_STATES},
    {"altup_num_inputs", "several residual streams", "1", BY_VARY},
    {"num_loops", "layers that run several times", "1", 0},
    {"loop_num", "layers that run several times", "1", 0},
    {"total_ut_steps", "layers that run several times", "1", 0},
    {"num_kv_shared_layers", "caches shared across layers", NULL, 0},
    {"use_cla", "caches shared across layers", NULL, 0},
    {"use_mla", "latent attention", NULL, 0},
    {"index_topk", "sparse indexed attention", NULL, 0},
    {"sparse_config", "sparse attention", NULL, 0},
    {"sparse_attention_config", "sparse attention", NULL, 0},
    {"attn_type_list", "a hybrid of layer types", "1", 0},
    {"attention_chunk_size", "chunked attention", NULL, 0},
    {"compress_ratios", "compressed attention", "0", 0},
    {"hidden_size_per_layer_input", "per-layer embeddings", NULL, 0},
    {"global_head_dim", "layers of two attention shapes", NULL, 0},
    {"attention_k_eq_v", "values that are the keys", NULL, 0},
    {"n_expert", "experts", "1", 0},
    {"moe_latent_size", "experts in a latent space", NULL, 0},
    {"moe_hidden_size", "experts in a latent space", NULL, 0},
    {"kv_source_layers", "latents of earlier layers", NULL, 0},
    {"routed_expert_hidden_size", "experts in a latent space", NULL, 0},
    {"attn_res_block_size", "attention over residuals", NULL, 0},
    {"mla_use_output_gate", "a gate of the latent attention", NULL, 0},
    {"gated_norm_rank", "norms with gates", NULL, 0},
    {"index_kpool", "an indexer of pooled keys", NULL, 0},
    {"hc_mult", "several residual streams", NULL, 0},
    {"hc_count", "several residual streams", NULL, 0},
    {"engram_layer_ids", "embeddings of several tokens by layer", NULL, 0},
    {"engram_layers", "embeddings of several tokens by layer", NULL, 0},
    {"ple_layer_ids", "embeddings of several tokens by layer", NULL, 0},
    {"ngram_vocab_size_ratio", "embeddings of several tokens", NULL, 0},
    {"shared_intermediate_size", "a shared expert", NULL, 0},
    {"use_prompt", "stored prompts", NULL, 0},
    {"lm_head_bias", "a bias of the output head", NULL, BY_HEAD_BIAS},
    {"attn.layers", "attention in some layers", NULL, BY_LIST},
};

/* Zero, false and an empty list or object say that a structure is not used. */
static bool is_off(const struct json *j)
{
    int64_t n;
    bool on;
    if (json_is_bool(j)) return json_bool(j, &on, NULL) == ERR_OK && !on;
    if (json_is_number(j)) return json_int(j, INT64_MIN, INT64_MAX, &n, NULL) == ERR_OK && n == 0;
    return (json_is_array(j) || json_is_object(j)) && json_len(j) == 0;
}

static bool is_word_of(const char *word, size_t len, const char *words)
{
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, "|");
        if (n == len && strncmp(at, word, n) == 0) return true;
        at += n + (at[n] == '|');
    }
    return false;
}

/* A number or a word that is one of `none`; GPT-Neo's [["global"], 12]: a number behind a list of words is how often
 * they come. */
static bool is_none(const struct json *j, const char *none, int depth)
{
    enum { DEEP = 3 };
    struct json item;
    int64_t n;
    const char *word;
    if (json_is_array(j)) {
        for (size_t i = 0; json_at(j, i, NULL, &item); i++) {
            if (i > 0 && depth > 0 && json_is_number(&item)) continue;
            if (depth == DEEP || !is_none(&item, none, depth + 1)) return false;
        }
        return true;
    }
    if (json_is_string(j))
        return json_str(j, &word, NULL) == ERR_OK && is_word_of(word, strlen(word), none) && *word != '\0';
    if (!json_is_number(j) || json_int(j, 0, 9, &n, NULL) != ERR_OK) return false;
    const char digit = (char)('0' + n);
    return is_word_of(&digit, 1, none);
}

static bool reads(const struct family *f, const char *key, unsigned by)
{
    if ((by & BY_TYPES && f->hybrid == HYBRID_TYPES) || (by & BY_PERIOD && f->hybrid == HYBRID_PERIOD) ||
        (by & BY_SHARED && f->hybrid == HYBRID_SHARED) || (by & BY_TILED && f->hybrid == HYBRID_TILED) ||
        (by & BY_LIST && f->hybrid == HYBRID_ATTN) || (by & BY_STATES && (f->recurrent || f->structure)) ||
        (by & BY_WINDOWS && f->window != WINDOW_NONE) || (by & BY_HEAD_BIAS && (f->head_bias || f->head_bias_by_key)) ||
        (by & BY_VARY && f->vary))
        return true;
    for (size_t i = 0; i < sizeof f->describes / sizeof f->describes[0] && f->describes[i]; i++)
        if (strcmp(f->describes[i], key) == 0) return true;
    return false;
}

static enum err_code refuse_keys(struct reader *r)
{
    struct json j;
    for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++) {
        if (!json_get(&r->text, FOREIGN[i].key, &j) || is_off(&j)) continue;
        if (reads(r->family, FOREIGN[i].key, FOREIGN[i].read_by)) continue;
        if (FOREIGN[i].none && is_none(&j, FOREIGN[i].none, 0)) continue;
        return err_set(r->e, ERR_INPUT, "%s: %s means %s, which the %s family does not describe: refused, not guessed",
                       j.file, j.path, FOREIGN[i].meaning, r->family->name);
    }
    return ERR_OK;
}

/* use_sliding_window with a sliding_window, of a family whose class has none. */
static enum err_code refuse_windows(struct reader *r)
{
    bool on;
    struct json j;
    int64_t window = 0, from = 0, layers = 0;
    if (r->family->window != WINDOW_NONE || r->family->vary || r->family->structure) return ERR_OK;
    TRY(reader_flag(r, &r->text, "use_sliding_window", false, &on));
    if (!on || !json_get(&r->text, "sliding_window", &j)) return ERR_OK;
    TRY(json_int(&j, 0, INT64_MAX, &window, r->e));
    if (window == 0) return ERR_OK;
    if (json_get(&r->text, "max_window_layers", &j)) { /* windows from this layer on */
        TRY(json_int(&j, 0, INT64_MAX, &from, r->e));
        TRY(reader_dim(r, DIM_LAYERS, 1, -1, &layers));
        if (from >= layers) return ERR_OK;
    }
    return err_set(r->e, ERR_INPUT,
                   "%s: use_sliding_window means windows of attention, which the %s family does not describe: refused, "
                   "not guessed",
                   r->text.file, r->family->name);
}

enum err_code reader_refuse_foreign(struct reader *r)
{
    static const char *const CROSSED[] = {"is_encoder_decoder", "add_cross_attention"};
    struct json j;
    TRY(refuse_keys(r));
    TRY(refuse_windows(r));
    for (size_t i = 0; i < 4; i++) {
        bool on;
        TRY(reader_flag(r, i < 2 ? &r->text : r->root, CROSSED[i % 2], false, &on));
        if (on && !reads(r->family, CROSSED[i % 2], 0))
            return err_set(r->e, ERR_INPUT,
                           "%s: %s is true, which means cross attention: the %s family does not describe that",
                           r->text.file, CROSSED[i % 2], r->family->name);
    }
    if (!r->family->latent && json_get(&r->text, "kv_lora_rank", &j))
        return err_set(r->e, ERR_INPUT, "%s: %s means latent attention, but the %s family has none", j.file, j.path,
                       r->family->name);
    int64_t experts = 0;
    if (r->family->moe == MOE_NONE) {
        bool said = true;
        TRY(reader_dim(r, DIM_EXPERTS, 0, 0, &experts));
        if (r->family->experts_key) TRY(reader_flag(r, &r->text, r->family->experts_key, false, &said));
        if (experts > 1 && said)
            return err_set(r->e, ERR_INPUT, "%s: %lld experts, but the %s family is dense", r->text.file,
                           (long long)experts, r->family->name);
    }
    return ERR_OK;
}
