/* dims -- quantities of a config.json under their many spellings. */
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/reader.h"

struct spelling {
    const char *symbol;
    const char *keys[12]; /* NULL ends */
};

static const struct spelling SPELLINGS[DIM_N] = {
    [DIM_LAYERS] = {"L",
                    {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers", "num_blocks"}},
    [DIM_HIDDEN] = {"D", {"hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "embedding_dim"}},
    [DIM_FFN] = {"F",
                 {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "block_ff_dim",
                  "ffn_config.ffn_hidden_size", "mlp_hidden_size", "ff_intermediate_size", "dff"}},
    [DIM_HEADS] = {"N", {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"}},
    [DIM_KV_HEADS] = {"K",
                      {"num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num",
                       "num_attention_groups", "attn_config.kv_n_heads"}},
    [DIM_HEAD_DIM] = {"H", {"head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head"}},
    [DIM_VOCAB] = {"V", {"vocab_size", "padded_vocab_size"}},
    [DIM_POSITIONS] = {NULL,
                       {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len",
                        "max_sequence_length", "model_max_length", "max_seqlen", "max_position_embedding",
                        "max_context_length"}},
    [DIM_WINDOW] = {"W",
                    {"sliding_window", "sliding_window_size", "attention_chunk_size", "attention_window_size",
                     "window_size"}},
    [DIM_EXPERTS] = {"E",
                     {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
                      "ffn_config.moe_num_experts"}},
    [DIM_EXPERTS_PER_TOKEN] = {"k",
                               {"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk",
                                "moe_k", "top_k_experts", "moe_top_k", "ffn_config.moe_top_k"}},
    [DIM_EXPERT_WIDTH] = {NULL, {"moe_intermediate_size", "expert_hidden_size", "expert_ffn_hidden_size"}},
    [DIM_SHARED_EXPERTS] = {NULL,
                            {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"}},
    [DIM_SHARED_WIDTH] = {NULL,
                          {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                           "shared_intermediate_size", "share_expert_dim", "share_expert_dims"}},
    [DIM_DENSE_PREFIX] = {NULL,
                          {"first_k_dense_replace", "moe_layer_num_skipped", "moe_layer_start_index",
                           "num_dense_layers"}},
    [DIM_SPARSE_STEP] = {NULL,
                         {"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step", "moe_layer_interval"}},
    [DIM_Q_RANK] = {NULL, {"q_lora_rank"}},
    [DIM_KV_RANK] = {"C", {"kv_lora_rank"}},
    [DIM_NOPE_DIM] = {NULL, {"qk_nope_head_dim"}},
    [DIM_ROPE_DIM] = {"R", {"qk_rope_head_dim"}},
    [DIM_V_HEAD_DIM] = {NULL, {"v_head_dim"}},
    [DIM_STATE] = {NULL, {"state_size", "ssm_state_size", "mamba_d_state", "mamba_state_dim"}},
    [DIM_CONV_TAPS] = {NULL,
                       {"conv_kernel", "mamba_d_conv", "conv_dimension", "linear_conv_kernel_dim", "conv1d_width",
                        "conv_L_cache", "conv_size", "short_conv_kernel_size"}},
    [DIM_SCAN_HEADS] = {NULL, {"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "linear_num_value_heads"}},
    [DIM_SCAN_HEAD_DIM] = {NULL, {"mamba_head_dim", "mamba_d_head", "mamba_headdim", "linear_value_head_dim"}},
    [DIM_SCAN_KEY_HEADS] = {NULL, {"linear_num_key_heads"}},
    [DIM_SCAN_KEY_DIM] = {NULL, {"linear_key_head_dim"}},
    [DIM_GROUPS] = {NULL, {"n_groups", "mamba_n_groups", "mamba_ngroups", "mamba_num_groups"}},
    [DIM_EXPAND] = {NULL, {"expand", "mamba_expand", "expansion_factor"}},
    [DIM_CHUNK] = {NULL, {"chunk_size", "mamba_chunk_size"}},
    [DIM_STEP_RANK] = {NULL, {"time_step_rank", "mamba_dt_rank"}},
    [DIM_LRU_WIDTH] = {NULL, {"lru_width"}},
    [DIM_LATENT_WIDTH] = {NULL, {"moe_latent_size", "routed_expert_hidden_size"}},
    [DIM_IDLE_EXPERTS] = {NULL, {"zero_expert_num"}},
};

const char *const *dim_spellings(enum dim d) { return SPELLINGS[d].keys; }
const char *dim_symbol(enum dim d) { return SPELLINGS[d].symbol; }

const char *dim_name(const struct family *f, enum dim d)
{
    for (const char *const *key = f->spelled; *key; key++)
        for (const char *const *spell = dim_spellings(d); *spell; spell++)
            if (strcmp(*key, *spell) == 0) return *spell;
    return dim_spellings(d)[0];
}

static const int64_t DIM_MAX[DIM_N] = {[DIM_LAYERS] = LAYERS_MAX,
                                       [DIM_HIDDEN] = 1 << 22,
                                       [DIM_FFN] = 1 << 24,
                                       [DIM_HEADS] = 1 << 16,
                                       [DIM_KV_HEADS] = 1 << 16,
                                       [DIM_HEAD_DIM] = 1 << 16,
                                       [DIM_VOCAB] = 1 << 28,
                                       [DIM_POSITIONS] = (int64_t)1 << 40,
                                       [DIM_WINDOW] = (int64_t)1 << 40,
                                       [DIM_EXPERTS] = EXPERTS_MAX,
                                       [DIM_EXPERTS_PER_TOKEN] = EXPERTS_MAX,
                                       [DIM_EXPERT_WIDTH] = 1 << 24,
                                       [DIM_SHARED_EXPERTS] = EXPERTS_MAX,
                                       [DIM_SHARED_WIDTH] = 1 << 24,
                                       [DIM_DENSE_PREFIX] = LAYERS_MAX,
                                       [DIM_SPARSE_STEP] = LAYERS_MAX,
                                       [DIM_Q_RANK] = 1 << 22,
                                       [DIM_KV_RANK] = 1 << 22,
                                       [DIM_NOPE_DIM] = 1 << 16,
                                       [DIM_ROPE_DIM] = 1 << 16,
                                       [DIM_V_HEAD_DIM] = 1 << 16,
                                       [DIM_STATE] = 1 << 16,
                                       [DIM_CONV_TAPS] = 1 << 10,
                                       [DIM_SCAN_HEADS] = 1 << 16,
                                       [DIM_SCAN_HEAD_DIM] = 1 << 16,
                                       [DIM_SCAN_KEY_HEADS] = 1 << 16,
                                       [DIM_SCAN_KEY_DIM] = 1 << 16,
                                       [DIM_GROUPS] = 1 << 16,
                                       [DIM_EXPAND] = 1 << 10,
                                       [DIM_CHUNK] = 1 << 20,
                                       [DIM_STEP_RANK] = 1 << 22,
                                       [DIM_LRU_WIDTH] = 1 << 22,
                                       [DIM_LATENT_WIDTH] = 1 << 22,
                                       [DIM_IDLE_EXPERTS] = EXPERTS_MAX};

/* A list of one number per layer, of a quantity that layers have, is that number when all are equal. */
static enum err_code same_in_all_layers(struct reader *r, enum dim d, struct json *j)
{
    const bool of_layer = (d == DIM_FFN || d == DIM_HEADS || d == DIM_KV_HEADS || d == DIM_EXPERTS_PER_TOKEN ||
                           d == DIM_EXPERT_WIDTH || d == DIM_SHARED_EXPERTS);
    struct json first, item;
    int64_t one, other;
    if (!of_layer || !json_is_array(j) || !json_at(j, 0, NULL, &first) || !json_is_number(&first)) return ERR_OK;
    if (json_len(j) != (size_t)r->m->layers)
        return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", j->file, j->path, json_len(j),
                       (long long)r->m->layers);
    TRY(json_int(&first, INT64_MIN, INT64_MAX, &one, r->e));
    for (size_t i = 1; json_at(j, i, NULL, &item); i++) {
        TRY(json_int(&item, INT64_MIN, INT64_MAX, &other, r->e));
        if (other != one)
            return err_set(r->e, ERR_INPUT, "%s: %s differs from %s, and the %s family has one for all layers", j->file,
                           item.path, first.path, r->family->name);
    }
    *j = first;
    return ERR_OK;
}

/* The first spelling that the file has; synonyms that contradict each other are refused. */
static enum err_code find_dim(struct reader *r, enum dim d, struct json *out, bool *found)
{
    const char *const *keys = dim_spellings(d);
    int64_t first = 0;
    *found = false;
    for (size_t i = 0; keys[i]; i++) {
        struct json j;
        if (!json_get(&r->text, keys[i], &j)) continue;
        if (r->family->pairs && json_is_array(&j) && json_len(&j) == 2) (void)json_at(&j, 0, NULL, &j);
        TRY(same_in_all_layers(r, d, &j));
        if (!json_is_number(&j)) {
            if (!*found) { /* present with a wrong type: report that */
                *out = j;
                *found = true;
                return ERR_OK;
            }
            continue;
        }
        int64_t v;
        TRY(json_int(&j, INT64_MIN, INT64_MAX, &v, r->e));
        if (*found && v != first && d != DIM_POSITIONS && d != DIM_SPARSE_STEP)
            return err_set(r->e, ERR_INPUT, "%s: %s and %s say different numbers (%lld and %lld) for one quantity",
                           out->file, out->path, j.path, (long long)first, (long long)v);
        if (!*found) {
            *out = j;
            first = v;
            *found = true;
        }
    }
    return ERR_OK;
}

/* The quantity under its first name, and under the others that files give it. */
static enum err_code missing(const struct reader *r, enum dim d)
{
    const char *const *spell = dim_spellings(d);
    const char *own = dim_name(r->family, d);
    char others[300] = "";
    for (size_t i = 0; spell[i]; i++) {
        const size_t at = strlen(others);
        if (spell[i] != own) (void)snprintf(others + at, sizeof others - at, "%s%s", at ? ", " : " (or ", spell[i]);
    }
    return err_set(r->e, ERR_INPUT, "%s: %s%s%s is missing, and the %s family has no default for it%s%s", r->text.file,
                   r->text.path, *r->text.path ? "." : "", own, r->family->name, others, *others ? ")" : "");
}

/* A quantity of the file, else the family's class default, in a text part a size of its class, else fallback; -1 as
 * fallback makes the key required. */
/* A class has defaults for files of its own, not for those of another family that are read as one. */
static enum err_code no_default(struct reader *r, enum dim d, int64_t value)
{
    char clean[64];
    return err_set(r->e, ERR_INPUT,
                   "%s: %s is missing: the %s family's default of %lld is not that of a %s file; state it with --set "
                   "%s=...",
                   r->text.file, dim_name(r->family, d), r->family->name, (long long)value,
                   text_clean(clean, sizeof clean, r->read_as, strlen(r->read_as)), dim_name(r->family, d));
}

/* That of the file's own model_type, which shares its row with others; 0 none. */
static enum err_code default_of_type(struct reader *r, enum dim d, int64_t *out)
{
    enum { TYPED_MAX = sizeof r->family->typed / sizeof r->family->typed[0] };
    const struct family_typed *const typed = r->family->typed;
    bool same = false;
    if (r->read_as) return ERR_OK;
    for (size_t i = 0; i < TYPED_MAX && typed[i].type; i++) {
        if (typed[i].dim != d) continue;
        TRY(reader_is_type(r, typed[i].type, &same));
        if (same) *out = typed[i].value;
    }
    return ERR_OK;
}

enum err_code reader_is_type(struct reader *r, const char *type, bool *out)
{
    struct json j;
    const char *said = "";
    if (json_get(&r->text, "model_type", &j) || json_get(r->root, "model_type", &j)) TRY(json_str(&j, &said, r->e));
    *out = strcmp(said, type) == 0;
    return ERR_OK;
}

enum err_code reader_dim(struct reader *r, enum dim d, int64_t lo, int64_t fallback, int64_t *out)
{
    struct json j;
    bool found;
    TRY(find_dim(r, d, &j, &found));
    if (found) return json_int(&j, lo, DIM_MAX[d], out, r->e);
    /* null is not absent: classes take it as "derive it", and only an absent key as their default. */
    bool null = false;
    for (const char *const *key = dim_spellings(d); *key; key++) null = null || json_has(&r->text, *key);
    int64_t typed = 0;
    if (!null) TRY(default_of_type(r, d, &typed));
    if (typed) {
        *out = typed;
        return ERR_OK;
    }
    for (const struct family_default *p = r->family->defaults; p->value && !null; p++) {
        if (p->dim != d) continue;
        if (r->read_as) return no_default(r, d, p->value);
        *out = p->value;
        return ERR_OK;
    }
    for (const struct family_default *p = r->family->nested; p->value && !null && r->text.obj != r->root->obj; p++) {
        if (p->dim != d) continue;
        r->sizes_of_class = true;
        *out = p->value;
        return ERR_OK;
    }
    if (fallback < 0) return missing(r, d);
    *out = fallback;
    return ERR_OK;
}

enum err_code reader_int(struct reader *r, const char *key, int64_t lo, int64_t hi, int64_t fallback, int64_t *out)
{
    struct json j;
    *out = fallback;
    return json_get(&r->text, key, &j) ? json_int(&j, lo, hi, out, r->e) : ERR_OK;
}

enum err_code reader_flag(struct reader *r, const struct json *where, const char *key, bool fallback, bool *out)
{
    struct json j;
    *out = fallback;
    return json_get(where, key, &j) ? json_bool(&j, out, r->e) : ERR_OK;
}
