/* load -- from what a person types after -m to a struct model. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"
#include "calc/model/alike.h"
#include "calc/model/checkpoint.h"
#include "calc/model/reader.h"

#define BUILTIN "configs/models/"

/* "configs/models/llama-3.1-8b.json" -> "llama-3.1-8b". */
static const char *builtin_name(struct arena *a, const struct embed_file *f)
{
    const char *base = f->path + strlen(BUILTIN);
    const size_t len = strlen(base);
    return arena_strndup(a, base, len > 5 ? len - 5 : len);
}

size_t model_builtins(struct arena *a, const char *const **names)
{
    size_t n;
    const struct embed_file *f = embed_under(BUILTIN, &n);
    const char **list = arena_array(a, n ? n : 1, sizeof *list);
    if (!list) return 0;
    for (size_t i = 0; i < n; i++) list[i] = builtin_name(a, &f[i]);
    *names = list;
    return n;
}

/* Whether `word`, in quotes, stands in the file's text: a look before parsing, since only one of many files is parsed.
 */
static bool mentions(const struct embed_file *f, const char *word)
{
    const size_t len = strlen(word);
    const char *text = (const char *)f->bytes;
    for (const char *at = text; (at = strchr(at, '"')) != NULL; at++)
        if (strncasecmp(at + 1, word, len) == 0 && at[1 + len] == '"') return true;
    return false;
}

static enum err_code parse_builtin(struct arena *a, const struct embed_file *f, struct json *out, struct err *e)
{
    return json_parse(a, f->path, (const char *)f->bytes, f->size, out, e);
}

/* A built-in by name or by an alias in its "ridge.aliases". */
static enum err_code find_builtin(struct arena *a, const char *name, struct json *out, const char **proper,
                                  struct err *e)
{
    size_t n;
    const struct embed_file *f = embed_under(BUILTIN, &n);
    *proper = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *base = f[i].path + strlen(BUILTIN);
        const size_t len = strlen(name);
        if (strncasecmp(base, name, len) != 0 || strcmp(base + len, ".json") != 0) continue;
        *proper = builtin_name(a, &f[i]);
        return parse_builtin(a, &f[i], out, e);
    }
    for (size_t i = 0; i < n; i++) {
        if (!mentions(&f[i], name)) continue;
        struct json j, aliases, item;
        TRY(parse_builtin(a, &f[i], &j, e));
        if (!json_get(&j, "ridge.aliases", &aliases)) continue;
        for (size_t k = 0; json_at(&aliases, k, NULL, &item); k++) {
            const char *alias;
            TRY(json_str(&item, &alias, e));
            if (strcasecmp(alias, name) != 0) continue;
            *out = j;
            *proper = builtin_name(a, &f[i]);
            return ERR_OK;
        }
    }
    return ERR_OK;
}

/* Whether a checkpoint is named as one that answers in chats: "-Instruct", "-Chat", "-it", "-zephyr" or "-RL", in any
 * case, as a word of its own. */
static bool answers(const char *id)
{
    static const char *const WORDS[] = {"instruct", "chat", "it", "zephyr", "rl"};
    for (const char *p = strchr(id, '/'); p && *p;) {
        const size_t n = strcspn(++p, "-_/");
        for (size_t k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
            if (n == strlen(WORDS[k]) && strncasecmp(p, WORDS[k], n) == 0) return true;
        p += n;
    }
    return false;
}

const char *model_hub_id(struct arena *a, const char *name)
{
    struct json j, aliases, item;
    const char *proper, *alias, *first = NULL, *chat = NULL;
    if (find_builtin(a, name, &j, &proper, NULL) != ERR_OK || !proper) return NULL;
    if (!json_get(&j, "ridge.aliases", &aliases)) return NULL;
    for (size_t k = 0; json_at(&aliases, k, NULL, &item); k++) {
        if (json_str(&item, &alias, NULL) != ERR_OK) continue;
        if (!strchr(alias, '/')) continue;
        if (strcasecmp(alias, name) == 0) return alias;
        if (!first) first = alias;
        if (!chat && answers(alias)) chat = alias;
    }
    return chat ? chat : first;
}

static bool exists(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0;
}

/* The snapshot that refs/main names, NULL when there is none. */
static const char *find_revision(struct arena *a, const char *repo)
{
    char revision[72] = "";
    const char *ref = arena_printf(a, "%s/refs/main", repo);
    FILE *f = ref ? fopen(ref, "r") : NULL;
    if (!f) return NULL;
    if (!fgets(revision, sizeof revision, f)) revision[0] = '\0';
    (void)fclose(f);
    revision[strspn(revision, "0123456789abcdef")] = '\0';
    const char *path = revision[0] ? arena_printf(a, "%s/snapshots/%s/config.json", repo, revision) : NULL;
    return exists(path) ? path : NULL;
}

/* "org/name" in the Hugging Face cache: models--org--name/snapshots/<revision>/config.json. */
static const char *find_cached(struct arena *a, const char *id)
{
    const char *slash = strchr(id, '/');
    if (!slash || slash == id || strchr(slash + 1, '/') || strstr(id, "..")) return NULL;
    const char *hub = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME"), *user = getenv("HOME");
    char *dir = hub    ? arena_printf(a, "%s", hub)
                : home ? arena_printf(a, "%s/hub", home)
                : user ? arena_printf(a, "%s/.cache/huggingface/hub", user)
                       : NULL;
    if (!dir) return NULL;
    const char *repo = arena_printf(a, "%s/models--%.*s--%s", dir, (int)(slash - id), id, slash + 1);
    const char *main_branch = repo ? find_revision(a, repo) : NULL;
    if (main_branch) return main_branch;
    dir = repo ? arena_printf(a, "%s/snapshots", repo) : NULL;
    DIR *d = dir ? opendir(dir) : NULL;
    const char *found = NULL;
    for (struct dirent *entry; d && !found && (entry = readdir(d)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        const char *path = arena_printf(a, "%s/%s/config.json", dir, entry->d_name);
        if (exists(path)) found = path;
    }
    if (d) (void)closedir(d);
    return found;
}

static enum err_code unknown(struct arena *a, const char *name, struct err *e)
{
    const char *const *names = NULL;
    char near[200] = "", clean[96];
    const size_t n = model_builtins(a, &names);
    if (n) text_suggest(near, sizeof near, name, names, sizeof *names, n);
    return err_set(
        e, ERR_USAGE,
        "unknown model '%s': wanted a built-in (ridge list models), a path to a config.json or its directory, "
        "a .gguf, or a Hugging Face id in the local cache%s",
        text_clean(clean, sizeof clean, name, strlen(name)), near);
}

/* A descriptor of the process, as a shell's <(...) writes it. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0 ||
           strcmp(path, "/dev/stdin") == 0;
}

/* The name shown: for a path, its directory or file without ".json" or ".gguf". */
static const char *display_name(struct arena *a, const char *path)
{
    size_t end = strlen(path);
    if (is_descriptor(path)) return "config";
    while (end > 1 && path[end - 1] == '/') end--;
    if (end >= 12 && strncmp(path + end - 12, "/config.json", 12) == 0)
        end -= 12;
    else if (end >= 5 && (strncmp(path + end - 5, ".json", 5) == 0 || strncmp(path + end - 5, ".gguf", 5) == 0))
        end -= 5;
    while (end > 1 && path[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    return start == end ? path : arena_strndup(a, path + start, end - start);
}

/* hf_quant_config.json beside a config.json becomes its member "hf_quant_config". */
static enum err_code attach_quantization(struct arena *a, const char *path, const struct json *j, struct err *e)
{
    static const char FILE_NAME[] = "config.json";
    const size_t len = strlen(path), base = sizeof FILE_NAME - 1;
    struct json q;
    if (len < base || strcmp(path + len - base, FILE_NAME) != 0 || (len > base && path[len - base - 1] != '/'))
        return ERR_OK;
    const char *beside = arena_printf(a, "%.*shf_quant_config.json", (int)(len - base), path);
    if (!beside) return err_nomem(e);
    if (!exists(beside) || !json_is_object(j)) return ERR_OK;
    TRY(json_load(a, beside, &q, e));
    return json_attach(j, "hf_quant_config", &q, e);
}

/* Where a model comes from: a config, and a checkpoint that says more. */
struct source {
    struct json config;
    const char *shown; /* the name for people */
    const char *path;  /* of the config.json; NULL for a built-in and for GGUF */
    bool gguf;         /* the config is that of tensors */
    struct tensor_set tensors;
};

static bool is_gguf(const char *name)
{
    const size_t len = strlen(name);
    return len > 5 && strcmp(name + len - 5, ".gguf") == 0;
}

static enum err_code open_gguf(struct arena *a, const char *path, struct source *s, struct err *e)
{
    s->gguf = true;
    s->shown = display_name(a, path);
    TRY(tensors_open(a, path, &s->tensors, e));
    return gguf_config(a, &s->tensors, path, &s->config, e);
}

static enum err_code open_directory(struct arena *a, const char *name, struct source *s, struct err *e)
{
    enum tensor_format format;
    s->path = arena_printf(a, "%s/config.json", name);
    if (!s->path) return err_nomem(e);
    if (exists(s->path)) return ERR_OK;
    if (tensors_present(name, &format) && format == TENSOR_FORMAT_GGUF) return open_gguf(a, name, s, e);
    return err_set(e, ERR_IO, "%s: no config.json in this directory", name);
}

/* A path by its look: one that begins at a directory, or has more slashes than a Hugging Face id. */
static bool is_path(const char *name)
{
    const char *slash = strchr(name, '/');
    if (!slash) return false;
    return name[0] == '/' || strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0 || name[0] == '~' ||
           strchr(slash + 1, '/') != NULL || slash[1] == '\0';
}

static enum err_code open_source(struct arena *a, const char *name, struct source *s, struct err *e)
{
    const size_t len = strlen(name);
    char clean[96];
    const bool file_like = len > 5 && strcmp(name + len - 5, ".json") == 0;
    if (len == 0) return err_set(e, ERR_USAGE, "the model's name is empty");
    if (!file_like) {
        TRY(find_builtin(a, name, &s->config, &s->shown, e));
        if (s->shown) return ERR_OK;
    }
    struct stat st;
    static const char TENSORS[] = ".safetensors", INDEX[] = ".safetensors.index.json";
    if ((len >= sizeof TENSORS && strcmp(name + len - sizeof TENSORS + 1, TENSORS) == 0) ||
        (len >= sizeof INDEX && strcmp(name + len - sizeof INDEX + 1, INDEX) == 0))
        return err_set(e, ERR_USAGE,
                       "%.200s: tensors alone do not say how they are joined: give their directory, with "
                       "the config.json in it",
                       name);
    if (stat(name, &st) == 0 && S_ISDIR(st.st_mode)) {
        TRY(open_directory(a, name, s, e));
        if (s->gguf) return ERR_OK;
    } else if (is_gguf(name)) {
        return open_gguf(a, name, s, e);
    } else if (!exists(name) && (errno == ENOENT || errno == ENOTDIR) && !file_like) {
        s->path = find_cached(a, name);
        if (!s->path && is_path(name))
            return err_set(e, ERR_IO, "%s: cannot open: %s", text_clean(clean, sizeof clean, name, len),
                           strerror(ENOENT));
        if (!s->path) return unknown(a, name, e);
        s->shown = name;
    } else {
        s->path = name;
    }
    if (!s->shown) s->shown = display_name(a, s->path);
    TRY(json_load(a, s->path, &s->config, e));
    return attach_quantization(a, s->path, &s->config, e);
}

/* A symbol of the course stands for whichever spelling the file uses. */
static const char *setting_key(const struct json *text, const char *key)
{
    for (enum dim d = 0; d < DIM_N; d++) {
        const char *symbol = dim_symbol(d);
        if (!symbol || strcmp(symbol, key) != 0) continue;
        const char *const *spell = dim_spellings(d);
        struct json j;
        for (size_t i = 0; spell[i]; i++)
            if (json_get(text, spell[i], &j)) return spell[i];
        return spell[0];
    }
    return key;
}

/* Keys that the reader looks at beyond the quantities of family.h. */
static const char *const READ_KEYS[] = {"tie_word_embeddings",
                                        "attention_bias",
                                        "mlp_bias",
                                        "use_sliding_window",
                                        "layer_types",
                                        "sliding_window_pattern",
                                        "max_window_layers",
                                        "mlp_only_layers",
                                        "topk_method",
                                        "torch_dtype",
                                        "dtype",
                                        "model_type",
                                        "quantization_config",
                                        "moe_layer_freq",
                                        "mlp_layer_types",
                                        "no_rope_layers",
                                        "no_rope_layer_interval",
                                        "hybrid_layer_pattern",
                                        "use_qk_norm",
                                        "lm_head_bias",
                                        "intermediate_size_mlp",
                                        "num_kv_shared_layers",
                                        "use_cla",
                                        "cla_share_factor",
                                        "index_topk",
                                        "index_n_heads",
                                        "index_head_dim",
                                        "index_kpool",
                                        "indexer_n_heads",
                                        "indexer_head_dim",
                                        "indexer_budget",
                                        "indexer_compress_ratio",
                                        "indexer_kv_heads",
                                        "hc_count",
                                        "hc_lowrank",
                                        "ple_layer_ids",
                                        "ple_embed_dim",
                                        "ngram_vocab_size_base",
                                        "ngram_size",
                                        "heads_per_ngram",
                                        "make_ngram_vocab_size_divisible_by",
                                        "ple_conv_kernel_size",
                                        "kv_source_layer_ids",
                                        "index_source_layer_ids",
                                        "candidate_source_layer_id",
                                        "candidate_topk_blocks",
                                        "candidate_block_size",
                                        "engram_layer_ids",
                                        "engram_num_embeddings",
                                        "engram_head_dim",
                                        "engram_n_heads",
                                        "engram_max_ngram_size",
                                        "latent_moe_use_norm",
                                        "mla_use_output_gate",
                                        "attn_res_block_size",
                                        "dense_ffn_hidden",
                                        "gated_norm_rank",
                                        "gated_attention_proj_granularity_type",
                                        "no_kda_lora",
                                        "hc_sinkhorn_iters",
                                        "version",
                                        "multi_query",
                                        "parallel_attn",
                                        "use_parallel_residual",
                                        "layers_block_type",
                                        "mamba_ssm_dtype",
                                        "inference_state_dtype",
                                        "use_bias",
                                        "use_conv_bias",
                                        "num_nextn_predict_layers",
                                        "mtp_num_hidden_layers",
                                        "draft_vocab_size",
                                        "medusa_num_heads",
                                        "medusa_num_layers",
                                        "num_labels",
                                        "block_size",
                                        "activation_function",
                                        "adapter_rank",
                                        "add_bias_linear",
                                        "attention_k_eq_v",
                                        "attention_out_bias",
                                        "attn",
                                        "attn_cfg",
                                        "attn_layer_idx",
                                        "attn_layer_idxs",
                                        "attn_type_list",
                                        "bias",
                                        "block_auto_adjust_ff_dim",
                                        "block_configs",
                                        "block_ffn_dim_multiplier",
                                        "block_multiple_of",
                                        "block_types",
                                        "conv_bias",
                                        "cross_attention_layers",
                                        "d_inner",
                                        "d_intermediate",
                                        "d_state",
                                        "embedding_size",
                                        "expansion_ratio",
                                        "expert_layer_offset",
                                        "expert_layer_period",
                                        "filter_order",
                                        "full_attn_idxs",
                                        "hidden_ratio",
                                        "hybrid_override_pattern",
                                        "hyena_filter_groups",
                                        "hyena_layer_idxs",
                                        "hyena_order",
                                        "indexer_types",
                                        "inner_mlp_size",
                                        "inner_size_multiple_of",
                                        "linear_attn_config",
                                        "max_seq_len",
                                        "mha_out_proj_bias",
                                        "moe_layer_end_index",
                                        "moe_layers",
                                        "multi_query_attention",
                                        "new_decoder_architecture",
                                        "norm_bias",
                                        "num_mem_blocks",
                                        "out_proj_bias",
                                        "pad_vocab_size_multiple",
                                        "qkv_proj_bias",
                                        "rms_norm",
                                        "short_filter_bias",
                                        "short_filter_length",
                                        "short_filter_order",
                                        "ssm_cfg",
                                        "tie_embeddings",
                                        "use_double_wide_mlp",
                                        "use_mem_rope",
                                        "use_mixed_mlp_moe",
                                        "use_shared_attention_adapter",
                                        "use_short_conv",
                                        "weight_tying",
                                        "word_embed_proj_dim",
                                        "alt_mixer_layers",
                                        "alt_mixer_2_layers",
                                        "attention_types",
                                        "window_size",
                                        "share_q_dim",
                                        "moe_layers_enum",
                                        "use_head_wise_attn_gate",
                                        "use_moe_router_bias",
                                        "global_attn_every_n_layers",
                                        "layer_rope_theta",
                                        "num_attention_heads_per_layer",
                                        "use_residual",
                                        "expert_dtype",
                                        "index_topk_blocks",
                                        "index_block_size",
                                        "dense_intermediate_size",
                                        "sparse_attention_config",
                                        "num_hash_layers",
                                        "hc_mult",
                                        "o_lora_rank",
                                        "o_groups",
                                        "compress_rates",
                                        "compress_ratios",
                                        "prefix_dense_sliding_window_pattern",
                                        "prefix_dense_intermediate_size",
                                        "parallel_attn_mlp_res",
                                        "is_moe_layer",
                                        "hidden_act",
                                        "residual_moe",
                                        "moe_layer_frequency",
                                        "use_post_norm",
                                        "layer_group_size",
                                        "linear_rope",
                                        "linear_silu",
                                        "mamba_d_ssm",
                                        "mamba_rms_norm",
                                        "projectors_bias",
                                        "qkv_bias",
                                        "zero_expert_type",
                                        "attn_layer_period",
                                        "attn_layer_offset",
                                        "attention_hidden_size",
                                        "total_ut_steps",
                                        "num_loops",
                                        "loop_num",
                                        "loop_window_size",
                                        "skip_loop_final_norm",
                                        "dense_attention_every_n_layers",
                                        "blocksparse_block_size",
                                        "blocksparse_num_local_blocks",
                                        "blocksparse_vert_stride",
                                        "n_shared_head",
                                        "embedding_size",
                                        "additional_vocab_size",
                                        "mamba_step",
                                        "ffn_proj_factor",
                                        "ffn_round_up_to_multiple_of",
                                        "qk_dim_factor",
                                        "v_dim_factor",
                                        "share_input_output_layers",
                                        "ffn_dim_divisor",
                                        "encoder_layers",
                                        "decoder_layers",
                                        "encoder_ffn_dim",
                                        "decoder_ffn_dim",
                                        "encoder_attention_heads",
                                        "decoder_attention_heads",
                                        "max_source_positions",
                                        "max_target_positions",
                                        "num_mel_bins",
                                        "num_decoder_layers",
                                        "feed_forward_proj",
                                        "d_kv",
                                        "d_ff",
                                        "relative_attention_num_buckets"};

enum { READ_KEYS_N = sizeof READ_KEYS / sizeof READ_KEYS[0], KEYS_MAX = READ_KEYS_N + 8 * DIM_N };

/* A key that stands in the file or that the reader would look at. */
static bool known_key(const struct json *root, const struct json *text, const char *key)
{
    struct json j;
    if (json_get(text, key, &j) || json_get(root, key, &j)) return true;
    for (size_t i = 0; i < READ_KEYS_N; i++)
        if (strcmp(READ_KEYS[i], key) == 0) return true;
    for (enum dim d = 0; d < DIM_N; d++)
        for (const char *const *spell = dim_spellings(d); *spell; spell++)
            if (strcmp(*spell, key) == 0) return true;
    return false;
}

static enum err_code unknown_key(const struct json *text, const char *key, struct err *e)
{
    const char *all[KEYS_MAX];
    size_t n = 0;
    char near[200], clean[64];
    for (size_t i = 0; i < READ_KEYS_N; i++) all[n++] = READ_KEYS[i];
    for (enum dim d = 0; d < DIM_N; d++)
        for (const char *const *spell = dim_spellings(d); *spell; spell++) all[n++] = *spell;
    text_suggest(near, sizeof near, key, all, sizeof all[0], n);
    return err_set(e, ERR_USAGE, "--set: nothing reads a key '%s' in %s%s",
                   text_clean(clean, sizeof clean, key, strlen(key)), text->file, near);
}

/* Which family the file said, kept beside a setting that makes it another. */
static enum err_code keep_family(const struct json *root, const struct json *where, const char *value, struct err *e)
{
    struct json j;
    const char *was = NULL;
    if (!json_get(root, READ_AS_KEY, &j) && !json_get(where, "model_type", &j)) return ERR_OK;
    if (json_str(&j, &was, NULL) != ERR_OK) return ERR_OK; /* the reader says what is wrong */
    const struct family *is = family_find(value);
    if (strcmp(was, value) != 0 && (!is || family_find(was) != is)) return json_override(root, READ_AS_KEY, was, e);
    (void)json_drop(root, READ_AS_KEY);
    return ERR_OK;
}

static enum err_code override(const struct json *where, const char *key, const char *value, struct err *e)
{
    return json_override(where, key, value, e) == ERR_OK ? ERR_OK : err_prepend(e, "--set ");
}

static enum err_code apply(const struct json *root, const struct model_setting *s, struct err *e)
{
    struct json text, j;
    if (!json_is_object(root)) return ERR_OK; /* the reader says what is wrong */
    TRY(reader_text_part(root, &text, e));
    const char *key = setting_key(&text, s->key), *dot = strrchr(key, '.');
    if (dot) { /* "text_config.num_hidden_layers": a member that is there, of an object that is there */
        char parent[128] = "";
        if ((size_t)(dot - key) < sizeof parent) memcpy(parent, key, (size_t)(dot - key));
        /* a symbol's key stands in the text part, one written out where it says */
        const bool there = json_get(key == s->key ? root : &text, parent, &j) && json_is_object(&j);
        const bool of_text = there && j.obj == text.obj; /* what the text part could have, and has not */
        if (!there || (!json_has(&j, dot + 1) && !(of_text && known_key(root, &text, dot + 1))))
            return unknown_key(&text, s->key, e);
        return override(&j, dot + 1, s->value, e);
    }
    if (!known_key(root, &text, key)) return unknown_key(&text, s->key, e);
    const struct json *where = !json_get(&text, key, &j) && json_get(root, key, &j) ? root : &text;
    if (strcmp(key, "model_type") == 0) TRY(keep_family(root, where, s->value, e));
    return override(where, key, s->value, e);
}

/* Settings of windows on a family that has none would change nothing. */
static enum err_code refuse_unread(const struct model *m, const struct model_setting *set, size_t n_set, struct err *e)
{
    static const char *const WINDOWS[] = {"W", "sliding_window", "use_sliding_window", "max_window_layers",
                                          "sliding_window_pattern"};
    const struct family *f = family_named(m->family);
    if (!f || f->window != WINDOW_NONE) return ERR_OK;
    for (size_t i = 0; i < m->kinds_n; i++) /* windows that the family reads itself */
        if (m->kinds[i].mixer.window_tokens > 0 || m->kinds[i].mixer.pool_window > 0) return ERR_OK;
    for (size_t i = 0; i < n_set; i++)
        for (size_t k = 0; k < sizeof WINDOWS / sizeof WINDOWS[0]; k++)
            if (strcmp(set[i].key, WINDOWS[k]) == 0)
                return err_set(e, ERR_USAGE,
                               "--set %s: the %s family has no attention windows, so nothing would change", set[i].key,
                               m->family);
    return ERR_OK;
}

/* Settings in their order or from the last to the first; marks those after which the model is another, or is none, and
 * those that leave the file as it is. */
static enum err_code apply_all(struct arena *a, const struct json *config, const struct model_setting *set, size_t n,
                               bool backwards, bool *tells, bool *restates, struct err *e)
{
    char before[17], after[17];
    struct model was, is;
    struct err ignored = {.code = ERR_OK};
    for (size_t k = 0; k < n; k++) {
        const size_t i = backwards ? n - 1 - k : k;
        (void)json_hash(config, before);
        const bool known = model_parse(a, config, &was, &ignored) == ERR_OK;
        TRY(apply(config, &set[i], e));
        (void)json_hash(config, after);
        if (!backwards) restates[i] = strcmp(before, after) == 0;
        if (!known || strcmp(before, after) == 0 || model_parse(a, config, &is, &ignored) != ERR_OK ||
            !model_same(&was, &is))
            tells[i] = true;
    }
    return ERR_OK;
}

/* Whether some other value of the key would make another model: then the family reads it, and the one given is what the
 * model has without it. config has all settings, and keeps them. */
static enum err_code find_read(struct arena *a, const struct json *config, const struct model *m,
                               const struct model_setting *set, bool *read, struct err *e)
{
    static const char *const OTHERS[] = {"1", "2", "3", "true", "false"};
    struct err ignored = {.code = ERR_OK};
    struct model is;
    *read = false;
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0] && !*read; i++) {
        const struct model_setting other = {set->key, OTHERS[i]};
        TRY(apply(config, &other, e));
        *read = model_parse(a, config, &is, &ignored) == ERR_OK && !model_same(m, &is);
    }
    return apply(config, set, e);
}

/* A key that the family does not read would be passed over, and so would one of two values of a key. A setting may tell
 * only with another one, whichever comes first: so they are tried in both orders. */
static enum err_code apply_settings(struct arena *a, const struct json *config, const struct model_setting *set,
                                    size_t n, bool *restates, struct err *e)
{
    bool *tells = arena_array(a, n + 1, sizeof *tells), all = true;
    struct json again;
    struct model m;
    if (!tells) return err_nomem(e);
    TRY(json_copy(config, &again, e)); /* a pipe is read once */
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(set[i].key, set[k].key) == 0)
                return err_set(e, ERR_USAGE, "--set: %.60s is given twice", set[i].key);
    TRY(apply_all(a, config, set, n, false, tells, restates, e));
    for (size_t i = 0; i < n; i++) all = all && tells[i];
    if (all) return ERR_OK;
    TRY(model_parse(a, config, &m, e));
    TRY(refuse_unread(&m, set, n, e));
    TRY(apply_all(a, &again, set, n, true, tells, restates, e));
    for (size_t i = 0; i < n; i++) {
        if (tells[i]) continue;
        TRY(find_read(a, &again, &m, &set[i], &restates[i], e));
        if (!restates[i])
            return err_set(e, ERR_USAGE, "--set %.60s: the %s family does not read it here, so nothing would change",
                           set[i].key, m.family);
    }
    return ERR_OK;
}

/* Settings of what the model has already. */
static enum err_code note_restated(struct arena *a, const struct model_setting *set, const bool *restates, size_t n,
                                   struct model *m, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        char key[64], value[64];
        if (!restates[i]) continue;
        m->notes =
            arena_printf(a, "%s%ssetting %s=%s changes nothing: the model has it already", m->notes ? m->notes : "",
                         m->notes ? "; " : "", text_clean(key, sizeof key, set[i].key, strlen(set[i].key)),
                         text_clean(value, sizeof value, set[i].value, strlen(set[i].value)));
        if (!m->notes) return err_nomem(e);
    }
    return ERR_OK;
}

/* A file of a family that is not known: one that is like it, by the tensors beside it or, where no name is near, by the
 * file's own sizes. */
static enum err_code tell_alike(struct arena *a, const struct source *s, enum err_code code, struct err *e)
{
    if (code != ERR_INPUT || !reader_family_unknown(a, &s->config)) return code;
    const char *text = NULL;
    const struct family *f = s->path ? alike_by_tensors(a, s->path, &s->config) : NULL;
    if (f)
        text = arena_printf(a, "%s; the tensors beside it are those of the %s family: --set model_type=%s", e->text,
                            f->name, f->name);
    else if (!strstr(e->text, "did you mean") && (f = alike_by_keys(a, &s->config)))
        text = arena_printf(a,
                            "%s; its sizes are all that the %s family needs: --set model_type=%s reads them so, which "
                            "is right where its layers have the same tensors",
                            e->text, f->name, f->name);
    return text ? err_set(e, code, "%s", text) : code;
}

/* A built-in is well as it is: what cannot be read of it came with --set, and the file is none that a person has. */
static enum err_code blame_settings(const struct source *s, size_t n_set, enum err_code code, struct err *e)
{
    const char *file = s->config.file;
    const size_t len = file ? strlen(file) : 0;
    if (!e || n_set == 0 || strncmp(file ? file : "", BUILTIN, strlen(BUILTIN)) != 0 ||
        strncmp(e->text, file, len) != 0)
        return code;
    const struct err was = *e;
    return err_set(e, code, "%s with --set%s", s->shown, was.text + len);
}

enum err_code model_load(struct arena *a, const char *name, const struct model_setting *set, size_t n_set,
                         struct model *out, struct err *e)
{
    struct source s = {.shown = NULL};
    struct model m;
    bool *restates = arena_array(a, n_set + 1, sizeof *restates);
    if (!restates) return err_nomem(e);
    TRY(open_source(a, name, &s, e));
    TRY(apply_settings(a, &s.config, set, n_set, restates, e));
    const enum err_code read = model_parse(a, &s.config, &m, e);
    if (read != ERR_OK) return blame_settings(&s, n_set, tell_alike(a, &s, read, e), e);
    TRY(refuse_unread(&m, set, n_set, e));
    if (s.gguf) TRY(gguf_formats(a, &s.tensors, &m, e));
    if (s.gguf) m.formats_assumed = NULL;
    if (s.gguf && n_set == 0) TRY(checkpoint_stored(a, &s.tensors, &m, e));
    if (s.path && n_set == 0) TRY(checkpoint_beside(a, s.path, &m, e));
    TRY(note_restated(a, set, restates, n_set, &m, e));
    m.name = s.shown;
    for (size_t i = 0; i < n_set; i++)
        m.name = m.name ? arena_printf(a, "%s %s=%s", m.name, set[i].key, set[i].value) : NULL;
    if (!m.name) return err_nomem(e);
    *out = m;
    return ERR_OK;
}
