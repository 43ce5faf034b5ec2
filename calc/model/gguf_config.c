/* gguf_config -- a GGUF file as a model: its metadata spelled as a config.json, its tensors as stored formats. */
#include <stdlib.h>
#include <string.h>

#include "calc/base/out.h"
#include "calc/base/text.h"
#include "calc/model/checkpoint.h"
#include "calc/model/gguf_config.h"

/* Keys behind "<architecture>.", and what a config.json calls them. */
static const struct {
    const char *gguf, *config;
} KEYS[] = {
    {"embedding_length", "hidden_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"context_length", "max_position_embeddings"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"moe_latent_size", "moe_latent_size"},
    {"interleave_moe_layer_step", "interleave_moe_layer_step"},
    {"attention.shared_kv_layers", "num_kv_shared_layers"},
    {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
    {"altup.num_inputs", "altup_num_inputs"},
    {"attention.indexer.top_k", "index_topk"},
    {"attention.indexer.head_count", "index_n_heads"},
    {"attention.indexer.key_length", "index_head_dim"},
};

/* ---- metadata ---- */

/* A list must say the same for all layers; in a model with recurrent mixers 0 is of a layer without the part. */
static enum err_code of_list(const struct gguf_reading *t, const char *full, const struct tensor_meta *m, int64_t *out)
{
    const bool some = t->family->hybrid != HYBRID_NONE;
    *out = m->ints[0];
    for (int64_t i = 1; i < m->array_n; i++) {
        if (some && m->ints[i] == 0) continue;
        if (some && *out == 0) *out = m->ints[i];
        if (m->ints[i] != *out)
            return err_set(t->err, ERR_INPUT,
                           "%s: %s is %lld in one layer and %lld in another, which the %s family does not describe",
                           t->name, full, (long long)*out, (long long)m->ints[i], t->family->name);
    }
    return ERR_OK;
}

enum err_code gguf_number(const struct gguf_reading *t, const char *key, int64_t *out, bool *found)
{
    const char *full = arena_printf(t->arena, "%s.%s", t->architecture, key);
    if (!full) return err_nomem(t->err);
    const struct tensor_meta *m = tensors_meta(t->set, full);
    *found = m != NULL;
    if (!m) return ERR_OK;
    *out = m->integer;
    if (m->kind == TENSOR_META_ARRAY && m->ints && m->array_n > 0)
        TRY(of_list(t, full, m, out));
    else if (m->kind != TENSOR_META_INT)
        *out = -1;
    return *out >= 0 ? ERR_OK : err_set(t->err, ERR_INPUT, "%s: %s is no whole number from 0", t->name, full);
}

void gguf_put(const struct gguf_reading *t, const char *key, int64_t v)
{
    out_printf(t->out, ",\"%s\":%lld", key, (long long)v);
}

enum err_code gguf_copy(const struct gguf_reading *t, const char *gguf, const char *config, bool *found)
{
    int64_t v;
    TRY(gguf_number(t, gguf, &v, found));
    if (*found && v == 0 && t->family->hybrid != HYBRID_NONE) *found = false; /* a model that has no such part */
    if (*found) gguf_put(t, config, v);
    return ERR_OK;
}

static bool has_tensor(const struct gguf_reading *t, const char *name) { return tensors_find(t->set, name) != NULL; }

bool gguf_in_layers(const struct tensor_set *s, const char *tail)
{
    const size_t n = strlen(tail);
    for (size_t i = 0; i < s->n; i++) {
        const size_t len = strlen(s->tensors[i].name);
        if (len > n + 1 && s->tensors[i].name[len - n - 1] == '.' && strcmp(s->tensors[i].name + len - n, tail) == 0)
            return true;
    }
    return false;
}

/* Every block of block_count has tensors, and none beyond has. */
static enum err_code check_blocks(const struct gguf_reading *t, int64_t blocks)
{
    bool *seen = arena_array(t->arena, LAYERS_MAX, sizeof *seen);
    int64_t n = 0;
    if (!seen) return err_nomem(t->err);
    for (size_t i = 0; i < t->set->n; i++) {
        const char *name = t->set->tensors[i].name;
        char *end;
        if (strncmp(name, "blk.", 4) != 0) continue;
        const long at = strtol(name + 4, &end, 10);
        if (end == name + 4 || *end != '.' || at < 0 || at >= LAYERS_MAX || seen[at]) continue;
        seen[at] = true;
        n++;
        if (at >= blocks)
            return err_set(t->err, ERR_INPUT, "%s: %s.block_count is %lld, and block %ld has tensors", t->name,
                           t->architecture, (long long)blocks, at);
    }
    if (n == 0 || n == blocks) return ERR_OK;
    return err_set(t->err, ERR_INPUT, "%s: %s.block_count is %lld, and %lld blocks have tensors", t->name,
                   t->architecture, (long long)blocks, (long long)n);
}

static enum err_code put_layers(struct gguf_reading *t)
{
    int64_t layers, extra = 0;
    bool found;
    TRY(gguf_number(t, "nextn_predict_layers", &extra, &found)); /* counted in, but not part of the decoder */
    if (!found || (t->row->modules_left_out && !gguf_in_layers(t->set, "nextn.eh_proj.weight"))) extra = 0;
    TRY(gguf_number(t, "block_count", &layers, &found));
    if (!found) return err_set(t->err, ERR_INPUT, "%s: %s.block_count is missing", t->name, t->architecture);
    t->layers = layers - extra;
    gguf_put(t, "num_hidden_layers", t->layers);
    return check_blocks(t, layers);
}

/* Widths of heads; latent attention splits its keys in a part with rope and one without. */
static enum err_code put_heads(const struct gguf_reading *t)
{
    int64_t key, value, rope;
    bool has_key, has_value, found;
    TRY(gguf_number(t, "attention.key_length", &key, &has_key));
    TRY(gguf_number(t, "attention.value_length", &value, &has_value));
    if (!t->family->latent) {
        if (has_key && key > 0) gguf_put(t, "head_dim", key);
        if (has_key && has_value && key != value)
            return err_set(t->err, ERR_INPUT, "%s: keys of %lld and values of %lld: the %s family has one width",
                           t->name, (long long)key, (long long)value, t->family->name);
        return ERR_OK;
    }
    TRY(gguf_number(t, "attention.key_length_mla", &rope, &found)); /* then the plain ones are of the latents */
    if (found) key = rope;
    TRY(gguf_number(t, "attention.value_length_mla", &rope, &found));
    if (found) value = rope;
    has_value = has_value || found;
    TRY(gguf_number(t, "rope.dimension_count", &rope, &found));
    const bool by_width = !has_value && t->family->v_head_by_width;
    if (!has_key || !(has_value || by_width) || !found || key <= rope)
        return err_set(t->err, ERR_INPUT,
                       "%s: attention.key_length, attention.value_length and rope.dimension_count do not describe "
                       "latent attention",
                       t->name);
    gguf_put(t, "qk_nope_head_dim", key - rope);
    gguf_put(t, "qk_rope_head_dim", rope);
    if (!by_width) gguf_put(t, "v_head_dim", value);
    TRY(gguf_copy(t, "attention.q_lora_rank", "q_lora_rank", &found));
    if (!found) out_str(t->out, ",\"q_lora_rank\":null"); /* absent: one matrix, not the class default */
    return ERR_OK;
}

static enum err_code put_widths(const struct gguf_reading *t)
{
    bool found = false;
    if (t->family->moe == MOE_LLAMA4) { /* the plain width is that of layers without experts */
        TRY(gguf_copy(t, "feed_forward_length", "intermediate_size_mlp", &found));
        return gguf_copy(t, "expert_feed_forward_length", "intermediate_size", &found);
    }
    if (t->family->moe == MOE_EVERY) TRY(gguf_copy(t, "expert_feed_forward_length", "intermediate_size", &found));
    return found ? ERR_OK : gguf_copy(t, "feed_forward_length", "intermediate_size", &found);
}

/* Inputs of each layer that a file neither states nor stores are none, whatever the class takes for a config.json that
 * states none. */
static enum err_code put_no_layer_inputs(const struct gguf_reading *t)
{
    static const char KEY[] = "hidden_size_per_layer_input";
    int64_t width;
    bool found, read = false;
    for (size_t i = 0; i < sizeof t->family->describes / sizeof t->family->describes[0]; i++)
        read = read || (t->family->describes[i] && strcmp(t->family->describes[i], KEY) == 0);
    TRY(gguf_number(t, "embedding_length_per_layer_input", &width, &found));
    if (read && !found && !has_tensor(t, "per_layer_token_embd.weight")) gguf_put(t, KEY, 0);
    return ERR_OK;
}

/* The window, and which layers have it: a period, or a flag for each layer. */
static enum err_code put_windows(const struct gguf_reading *t)
{
    bool found;
    TRY(gguf_copy(t, "attention.sliding_window", "sliding_window", &found));
    const enum window_rule rule = t->family->window;
    if (!found && (rule == WINDOW_EVERY || rule == WINDOW_PERIOD)) out_str(t->out, ",\"sliding_window\":null");
    const char *key = arena_printf(t->arena, "%s.attention.sliding_window_pattern", t->architecture);
    if (!key) return err_nomem(t->err);
    const struct tensor_meta *m = tensors_meta(t->set, key);
    if (!m || t->family->window == WINDOW_NONE) return ERR_OK;
    if (m->kind == TENSOR_META_INT && t->family->window == WINDOW_PERIOD) {
        gguf_put(t, "sliding_window_pattern", m->integer);
    } else if (m->kind == TENSOR_META_ARRAY && m->ints) {
        out_str(t->out, ",\"layer_types\":[");
        for (int64_t i = 0; i < m->array_n; i++)
            out_printf(t->out, "%s\"%s_attention\"", i ? "," : "", m->ints[i] ? "sliding" : "full");
        out_char(t->out, ']');
    }
    return ERR_OK;
}

static void put_flag(const struct gguf_reading *t, const char *key, bool on)
{
    out_printf(t->out, ",\"%s\":%s", key, on ? "true" : "false");
}

/* A flag of the family, said by a tensor; the plain name of a bias was written already. */
static void put_family_flags(const struct gguf_reading *t, bool biased)
{
    const struct family *f = t->family;
    if (f->bias_key && strcmp(f->bias_key, "attention_bias") != 0) put_flag(t, f->bias_key, biased != f->bias_inverted);
    if (f->head_bias_by_key) put_flag(t, "lm_head_bias", has_tensor(t, "output.bias"));
    if (f->correction_key) /* of families whose class has none */
        put_flag(t, f->correction_key, gguf_in_layers(t->set, "exp_probs_b.bias"));
    if (f->qk_norm_key && f->qk_norm != QK_NORM_PLAIN) /* those without weights are in every file */
        put_flag(t, f->qk_norm_key, gguf_in_layers(t->set, "attn_q_norm.weight"));
    if (t->row->tensor) put_flag(t, t->row->flag, gguf_in_layers(t->set, t->row->tensor));
    const char *full = f->parallel_key ? arena_printf(t->arena, "%s.%s", t->architecture, f->parallel_key) : NULL;
    const struct tensor_meta *m = full ? tensors_meta(t->set, full) : NULL;
    if (m && m->kind == TENSOR_META_BOOL) put_flag(t, f->parallel_key, m->integer == 1);
}

static void put_flags(const struct gguf_reading *t)
{
    const bool biased = gguf_in_layers(t->set, "attn_q.bias") || gguf_in_layers(t->set, "attn_qkv.bias");
    put_flag(t, "tie_word_embeddings", !has_tensor(t, "output.weight"));
    put_flag(t, "attention_bias", biased);
    put_flag(t, "mlp_bias", gguf_in_layers(t->set, "ffn_up.bias"));
    if (gguf_in_layers(t->set, "exp_probs_b.bias")) out_str(t->out, ",\"topk_method\":\"noaux_tc\"");
    put_family_flags(t, biased);
    if (t->row->stated) out_str(t->out, t->row->stated);
}

static enum err_code find_family(struct gguf_reading *t, const char **model_type)
{
    char clean[48];
    const struct tensor_meta *m = tensors_meta(t->set, "general.architecture");
    if (!m || m->kind != TENSOR_META_TEXT)
        return err_set(t->err, ERR_INPUT, "%s: general.architecture is missing: not a language model", t->name);
    t->architecture = m->text;
    t->row = gguf_architecture(m->text);
    if (!t->row)
        return err_set(t->err, ERR_INPUT,
                       "%s: general.architecture \"%s\" is one whose metadata ridge does not read, so its parameters "
                       "and cache would be guesses: give the directory, with the model's config.json beside it",
                       t->name, text_clean(clean, sizeof clean, m->text, strlen(m->text)));
    *model_type = t->row->model_type;
    t->family = family_find(*model_type);
    int64_t experts = 0, window = 0;
    bool found;
    TRY(gguf_number(t, "expert_count", &experts, &found));
    if (found && experts > 0 && t->row->with_experts) *model_type = t->row->with_experts;
    if (gguf_in_layers(t->set, "exp_probs_b.bias") && t->row->with_correction) *model_type = t->row->with_correction;
    if (t->row->with_window) TRY(gguf_number(t, "attention.sliding_window", &window, &found));
    if (window > 0) *model_type = t->row->with_window;
    if (strcmp(m->text, "mamba") == 0 && gguf_normed(t)) *model_type = "falcon_mamba";
    t->family = family_find(*model_type);
    return ERR_OK;
}

const struct family *gguf_family(struct arena *a, const struct tensor_set *s)
{
    struct err ignored = {.code = ERR_OK};
    struct gguf_reading t = {.arena = a, .set = s, .name = "", .err = &ignored};
    const char *model_type;
    return find_family(&t, &model_type) == ERR_OK ? t.family : NULL;
}

enum err_code gguf_config(struct arena *a, const struct tensor_set *s, const char *name, struct json *out,
                          struct err *e)
{
    struct gguf_reading t = {.arena = a, .set = s, .err = e};
    const char *model_type = NULL;
    char clean[200];
    bool found;
    size_t len;
    t.name = text_clean(clean, sizeof clean, name, strlen(name));
    TRY(find_family(&t, &model_type));
    const struct tensor *embedding = tensors_find(s, "token_embd.weight");
    if (!embedding || embedding->dims != 2)
        return err_set(e, ERR_INPUT, "%s: no matrix token_embd.weight: not a language model", t.name);
    int64_t width;
    TRY(gguf_number(&t, "embedding_length", &width, &found));
    if (found && width != embedding->shape[1])
        return err_set(e, ERR_INPUT, "%s: %s.embedding_length is %lld, but rows of token_embd.weight have %lld", t.name,
                       t.architecture, (long long)width, (long long)embedding->shape[1]);
    TRY(out_memory(a, &t.out, e));
    out_printf(t.out, "{\"model_type\":\"%s\",\"torch_dtype\":\"float16\"", model_type);
    gguf_put(&t, "vocab_size", embedding->shape[0]);
    gguf_put(&t, "stored_bytes", s->total_bytes); /* so that the hash of a model tells its quantisations apart */
    TRY(put_layers(&t));
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (!t.row->own_heads || strncmp(KEYS[i].gguf, "attention.head_count", strlen("attention.head_count")) != 0)
            TRY(gguf_copy(&t, KEYS[i].gguf, KEYS[i].config, &found));
    TRY(put_no_layer_inputs(&t));
    if (t.family->hybrid != HYBRID_NONE && !t.row->own_heads) TRY(gguf_put_recurrent(&t));
    if ((!t.row->own_heads || t.family->latent) && !t.family->attention) TRY(put_heads(&t));
    if (!t.row->own_widths) TRY(put_widths(&t));
    if (t.row->put) TRY(t.row->put(&t));
    TRY(put_windows(&t));
    put_flags(&t);
    out_char(t.out, '}');
    const char *text = out_text(t.out, &len);
    return text ? json_parse(a, name, text, len, out, e) : err_nomem(e);
}

/* ---- formats ---- */

/* Which class of the model a tensor belongs to; WEIGHT_CLASSES none. Vectors are in the model's own "other". */
static enum weight_class class_of(const char *name)
{
    static const struct {
        const char *part;
        enum weight_class class;
    } PARTS[] = {
        {"rope_", WEIGHT_CLASSES},
        {"tid2eid", WEIGHT_CLASSES}, /* whole numbers: which experts a token has */
        {".bias", WEIGHT_OTHER},
        {"ssm_in", WEIGHT_MIXER},
        {"ssm_x.", WEIGHT_MIXER},
        {"ssm_dt.weight", WEIGHT_MIXER},
        {"ssm_out", WEIGHT_MIXER},
        {"ssm_alpha", WEIGHT_MIXER},
        {"ssm_beta", WEIGHT_MIXER},
        {"ssm_ba.", WEIGHT_MIXER},
        {"ssm_f_", WEIGHT_MIXER},
        {"ssm_g_", WEIGHT_MIXER},
        {"ssm_", WEIGHT_OTHER},
        {"shortconv.conv", WEIGHT_OTHER},
        {"shortconv", WEIGHT_MIXER},
        {"_exps.scale", WEIGHT_OTHER},
        {"_inp.scale", WEIGHT_OTHER},
        {"time_mix_lerp", WEIGHT_OTHER},
        {"time_mix_ln", WEIGHT_OTHER},
        {"time_mix_first", WEIGHT_OTHER},
        {"time_mix_decay.", WEIGHT_OTHER},
        {"time_mix_", WEIGHT_MIXER},
        {"channel_mix_lerp", WEIGHT_OTHER},
        {"channel_mix_", WEIGHT_FFN},
        {"norm", WEIGHT_OTHER},
        {"sinks", WEIGHT_OTHER},
        {"exp_probs_b", WEIGHT_OTHER},
        {"token_embd", WEIGHT_EMBED},
        {"position_embd", WEIGHT_EMBED},
        {"hc_attn_fn", WEIGHT_ROUTER},
        {"hc_ffn_fn", WEIGHT_ROUTER},
        {"hc_fn", WEIGHT_ROUTER},
        {"hc_", WEIGHT_OTHER},
        {"compressor_ape", WEIGHT_OTHER},
        {"compressor_", WEIGHT_ROUTER},
        {"ffn_gate_inp", WEIGHT_ROUTER},
        {"indexer.proj", WEIGHT_ROUTER},
        {"_exps", WEIGHT_EXPERT},
        {"ffn_", WEIGHT_FFN},
        {"attn_", WEIGHT_MIXER},
        {"altup_router", WEIGHT_ROUTER},
        {"_coef.", WEIGHT_ROUTER},
        {"altup_correct", WEIGHT_OTHER},
        {"altup_", WEIGHT_FFN},
        {"laurel_", WEIGHT_FFN},
        {"per_layer_model", WEIGHT_FFN},
        {"inp_gate", WEIGHT_FFN},
        {".proj.", WEIGHT_FFN},
        {"layer_output", WEIGHT_OTHER},
    };
    if (strcmp(name, "output.weight") == 0) return WEIGHT_HEAD;
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++)
        if (strstr(name, PARTS[i].part)) return PARTS[i].class;
    return WEIGHT_CLASSES;
}

/* What the tensors of a class add up to. */
struct class_sum {
    double elems, bytes;
    const struct tensor_type *types[3]; /* the first ones met */
    size_t types_n;                     /* how many there are, at most one more than are kept */
};

static void add_type(struct class_sum *c, const struct tensor_type *type)
{
    enum { KEPT = sizeof c->types / sizeof c->types[0] };
    for (size_t i = 0; i < c->types_n && i < KEPT; i++)
        if (c->types[i] == type) return;
    if (c->types_n < KEPT) c->types[c->types_n] = type;
    if (c->types_n <= KEPT) c->types_n++;
}

static enum err_code make_format(struct arena *a, const struct class_sum *c, struct dtype *out, struct err *e)
{
    if (c->types_n == 1 && dtype_find(c->types[0]->name, out, NULL) == ERR_OK && out->group_in == 0) return ERR_OK;
    if (c->types_n == 1 && strcmp(c->types[0]->name, "F16") == 0) return dtype_find("fp16", out, e);
    if (c->types_n == 1 && strcmp(c->types[0]->name, "F32") == 0) return dtype_find("fp32", out, e);
    const char *name = c->types[0]->name;
    for (size_t i = 1; i < c->types_n && name; i++)
        name = arena_printf(a, "%s+%s", name, i < 3 ? c->types[i]->name : "...");
    if (!name) return err_nomem(e);
    *out = (struct dtype){.name = name,
                          .bits = c->bytes * 8 / c->elems,
                          .block_out = 1,
                          .compute = "bf16",
                          .note = "of GGUF, scales within its blocks, weight-only"};
    return ERR_OK;
}

enum err_code gguf_formats(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    struct class_sum sum[WEIGHT_CLASSES] = {{0}};
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *t = &s->tensors[i];
        const enum weight_class c = class_of(t->name);
        if (c == WEIGHT_CLASSES || t->elems == 0) continue;
        sum[c].elems += (double)t->elems;
        sum[c].bytes += (double)t->bytes;
        add_type(&sum[c], t->type);
    }
    for (enum weight_class c = WEIGHT_EMBED; c < WEIGHT_CLASSES; c++)
        if (sum[c].types_n > 0) TRY(make_format(a, &sum[c], &m->weights[c], e));
    m->weights_unknown = NULL;
    return ERR_OK;
}
