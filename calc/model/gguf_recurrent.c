/* gguf_recurrent -- GGUF files of models with recurrent mixers. */
#include <stdlib.h>
#include <string.h>

#include "calc/model/gguf_config.h"

bool gguf_normed(const struct gguf_reading *t)
{
    const char *key = arena_printf(t->arena, "%s.ssm.dt_b_c_rms", t->architecture);
    const struct tensor_meta *m = key ? tensors_meta(t->set, key) : NULL;
    return m && m->kind == TENSOR_META_BOOL && m->integer == 1;
}

/* ---- what a layer is ---- */

/* One flag a layer: it has a tensor of that name. */
static enum err_code mark(const struct gguf_reading *t, const char *tail, bool **out)
{
    bool *has = arena_array(t->arena, LAYERS_MAX, sizeof *has);
    if (!has) return err_nomem(t->err);
    for (size_t i = 0; i < t->set->n; i++) {
        const char *name = t->set->tensors[i].name;
        char *end;
        if (strncmp(name, "blk.", 4) != 0) continue;
        const long at = strtol(name + 4, &end, 10);
        if (end > name + 4 && at >= 0 && at < LAYERS_MAX && *end == '.' && strcmp(end + 1, tail) == 0) has[at] = true;
    }
    *out = has;
    return ERR_OK;
}

/* A word a layer, by the tensor of its convolution. */
static enum err_code put_words(const struct gguf_reading *t, const char *key, const char *tail, const char *recurrent,
                               const char *attention)
{
    bool *has;
    TRY(mark(t, tail, &has));
    out_printf(t->out, ",\"%s\":[", key);
    for (int64_t i = 0; i < t->layers; i++)
        out_printf(t->out, "%s\"%s\"", i ? "," : "", has[i] ? recurrent : attention);
    out_char(t->out, ']');
    return ERR_OK;
}

/* A letter a layer of one block each. */
static enum err_code put_letters(const struct gguf_reading *t)
{
    static const char LETTERS[] = "M*E-";
    static const char *const TAILS[] = {"ssm_conv1d.weight", "attn_q.weight", "ffn_gate_inp.weight", "ffn_up.weight"};
    bool *has[4];
    for (size_t k = 0; k < 4; k++) TRY(mark(t, TAILS[k], &has[k]));
    out_str(t->out, ",\"hybrid_override_pattern\":\"");
    for (int64_t i = 0; i < t->layers; i++) {
        size_t k = 0;
        while (k < 4 && !has[k][i]) k++;
        if (k == 4)
            return err_set(t->err, ERR_INPUT, "%s: block %lld has no tensor that says what it is", t->name,
                           (long long)i);
        out_char(t->out, LETTERS[k]);
    }
    out_char(t->out, '"');
    return ERR_OK;
}

/* Layers with experts, which must follow a period. */
static enum err_code put_expert_period(const struct gguf_reading *t)
{
    bool *has;
    int64_t first = -1, period = 0;
    TRY(mark(t, "ffn_gate_inp.weight", &has));
    for (int64_t i = 0; i < t->layers && period == 0; i++) {
        if (!has[i]) continue;
        if (first >= 0) period = i - first;
        if (first < 0) first = i;
    }
    if (first < 0) {
        out_str(t->out, ",\"num_experts\":1,\"num_experts_per_tok\":1");
        return ERR_OK;
    }
    if (period == 0) period = t->layers > first + 1 ? t->layers : first + 1;
    for (int64_t i = 0; i < t->layers; i++)
        if (has[i] != (i % period == first))
            return err_set(t->err, ERR_INPUT, "%s: the layers with experts follow no period, at block %lld", t->name,
                           (long long)i);
    gguf_put(t, "expert_layer_period", period);
    gguf_put(t, "expert_layer_offset", first);
    return ERR_OK;
}

/* ---- sizes ---- */

static enum err_code need(const struct gguf_reading *t, const char *key, int64_t *out)
{
    bool found;
    TRY(gguf_number(t, key, out, &found));
    if (found && *out > 0) return ERR_OK;
    return err_set(t->err, ERR_INPUT, "%s: %s.%s is missing, or 0", t->name, t->architecture, key);
}

static enum err_code whole(const struct gguf_reading *t, int64_t a, int64_t b, const char *what, int64_t *out)
{
    *out = a / b;
    if (a % b == 0) return ERR_OK;
    return err_set(t->err, ERR_INPUT, "%s: ssm.inner_size %lld is no whole number of %s (%lld)", t->name, (long long)a,
                   what, (long long)b);
}

/* Mamba: the rank of the time step is a rank in Mamba-1, the number of heads in Mamba-2 and of values in the delta
 * rule.
 */
static enum err_code put_scan(const struct gguf_reading *t)
{
    int64_t inner, state, taps, rank, width, groups = 1, each = 1;
    const bool first = t->family->recurrent == recurrent_mamba || t->family->recurrent == recurrent_mamba_normed ||
                       t->family->recurrent == recurrent_mamba_weightless;
    const bool alone = t->family->hybrid == HYBRID_NEVER;
    TRY(need(t, "ssm.inner_size", &inner));
    TRY(need(t, "ssm.state_size", &state));
    TRY(need(t, "ssm.conv_kernel", &taps));
    TRY(need(t, "ssm.time_step_rank", &rank));
    if (!first) TRY(need(t, "ssm.group_count", &groups));
    if (!first) TRY(whole(t, inner, rank, "heads", &each));
    if (t->family->recurrent == recurrent_gated_delta) {
        gguf_put(t, "linear_num_value_heads", rank);
        gguf_put(t, "linear_num_key_heads", groups);
        gguf_put(t, "linear_key_head_dim", state);
        gguf_put(t, "linear_value_head_dim", each);
        gguf_put(t, "linear_conv_kernel_dim", taps);
        return ERR_OK;
    }
    gguf_put(t, "state_size", state);
    gguf_put(t, "conv_kernel", taps);
    out_printf(t->out, ",\"use_conv_bias\":%s", gguf_in_layers(t->set, "ssm_conv1d.bias") ? "true" : "false");
    out_printf(t->out, ",\"use_bias\":%s", gguf_in_layers(t->set, "ssm_in.bias") ? "true" : "false");
    if (first) gguf_put(t, "time_step_rank", rank);
    if (!first) gguf_put(t, alone ? "num_heads" : "mamba_num_heads", rank);
    if (!first) gguf_put(t, alone ? "head_dim" : "mamba_head_dim", each);
    if (!first) gguf_put(t, "n_groups", groups);
    if (alone) {
        gguf_put(t, "intermediate_size", inner);
    } else if (t->family->hybrid == HYBRID_BESIDE) {
        gguf_put(t, "mamba_d_ssm", inner);
    } else if (!t->family->scan_heads_decide) {
        TRY(need(t, "embedding_length", &width));
        TRY(whole(t, inner, width, "widths of the stream", &each));
        gguf_put(t, "expand", each);
    }
    return ERR_OK;
}

static enum err_code put_short_convolution(const struct gguf_reading *t)
{
    int64_t taps;
    TRY(need(t, "shortconv.l_cache", &taps));
    gguf_put(t, "conv_L_cache", taps);
    out_str(t->out, ",\"block_auto_adjust_ff_dim\":false");
    return put_words(t, "layer_types", "shortconv.conv.weight", "conv", "full_attention");
}

/* A shared expert that a file does not state is none, whatever the class takes for a config.json that states none. */
static enum err_code put_no_shared(const struct gguf_reading *t)
{
    int64_t width;
    bool found;
    TRY(gguf_number(t, "expert_shared_feed_forward_length", &width, &found));
    if (!found) gguf_put(t, "shared_expert_intermediate_size", 0);
    return ERR_OK;
}

enum err_code gguf_put_recurrent(const struct gguf_reading *t)
{
    int64_t experts = 0;
    bool found;
    if (t->family->recurrent == recurrent_short_conv) return put_short_convolution(t);
    TRY(put_scan(t));
    switch (t->family->hybrid) {
    case HYBRID_LETTERS: TRY(put_no_shared(t)); return put_letters(t);
    case HYBRID_PERIOD:
        TRY(put_expert_period(t));
        return put_words(t, "layers_block_type", "ssm_conv1d.weight", "mamba", "attention");
    case HYBRID_TYPES:
        if (t->family->moe == MOE_SHARED) { /* without experts the shared MLP is the MLP */
            TRY(gguf_number(t, "expert_count", &experts, &found));
            if (!found) gguf_put(t, "num_experts", 0);
            if (!found || experts == 0)
                TRY(gguf_copy(t, "feed_forward_length", "shared_intermediate_size", &found));
            else
                TRY(put_no_shared(t));
        }
        return put_words(t, "layer_types", "ssm_conv1d.weight", t->family->output_gate ? "linear_attention" : "mamba",
                         t->family->output_gate ? "full_attention" : "attention");
    case HYBRID_NONE:
    case HYBRID_NEVER:
    case HYBRID_FLAGS:
    case HYBRID_INDEXES:
    case HYBRID_ATTN:
    case HYBRID_LISTS:
    case HYBRID_TILED:
    case HYBRID_FOURS:
    case HYBRID_CYCLE:
    case HYBRID_GROUPS:
    case HYBRID_BESIDE:
    case HYBRID_MIDDLE:
    case HYBRID_SHARED: return ERR_OK;
    }
    return ERR_OK;
}

/* PLaMo-2: heads of the layers that attend; layers with a convolution have a scan. Which do must follow the step that
 * the class has. Source: llama.cpp, src/models/plamo2.cpp. */
enum err_code gguf_put_plamo2(const struct gguf_reading *t)
{
    static const struct {
        const char *gguf, *config;
    } KEYS[] = {{"attention.head_count", "num_attention_heads"},
                {"attention.head_count_kv", "num_key_value_heads"},
                {"ssm.state_size", "mamba_d_state"},
                {"ssm.conv_kernel", "mamba_d_conv"},
                {"ssm.time_step_rank", "mamba_num_heads"}};
    int64_t inner, heads, width, step = 0, first = -1;
    bool *has;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        TRY(need(t, KEYS[i].gguf, &width));
        gguf_put(t, KEYS[i].config, width);
    }
    TRY(need(t, "ssm.inner_size", &inner));
    TRY(need(t, "ssm.time_step_rank", &heads));
    TRY(whole(t, inner, heads, "heads", &width));
    gguf_put(t, "hidden_size_per_head", width);
    TRY(mark(t, "ssm_conv1d.weight", &has));
    for (int64_t i = 0; i < t->layers && step == 0; i++) {
        if (has[i]) continue;
        if (first >= 0) step = i - first;
        if (first < 0) first = i;
    }
    if (first < 0)
        return err_set(t->err, ERR_INPUT, "%s: every block has a convolution: which attend is not known", t->name);
    if (step == 0) step = 2 * first > t->layers ? 2 * first : t->layers;
    for (int64_t i = 0; i < t->layers; i++)
        if (has[i] != (i % step != step / 2))
            return err_set(t->err, ERR_INPUT, "%s: the layers that attend follow no step of the class, at block %lld",
                           t->name, (long long)i);
    gguf_put(t, "mamba_step", step);
    return ERR_OK;
}

/* Heads of RWKV: the width by that of a head. */
static enum err_code put_time_mix(const struct gguf_reading *t, const char *const (*keys)[2], size_t n)
{
    int64_t width, head, v;
    TRY(need(t, "embedding_length", &width));
    TRY(need(t, "wkv.head_size", &head));
    if (width % head != 0)
        return err_set(t->err, ERR_INPUT, "%s: width %lld is no multiple of wkv.head_size %lld", t->name,
                       (long long)width, (long long)head);
    gguf_put(t, "num_heads", width / head);
    for (size_t i = 0; i < n; i++) {
        TRY(need(t, keys[i][0], &v));
        gguf_put(t, keys[i][1], v);
    }
    return ERR_OK;
}

/* RWKV-6 and -7. Source: llama.cpp, src/models/rwkv6.cpp, rwkv7.cpp and their conversion. */
enum err_code gguf_put_finch(const struct gguf_reading *t)
{
    static const char *const KEYS[][2] = {{"time_mix_extra_dim", "proj_low_rank_dim"},
                                          {"time_decay_extra_dim", "gate_low_rank_dim"}};
    out_str(t->out, ",\"expand_k\":1,\"expand_v\":1");
    return put_time_mix(t, KEYS, sizeof KEYS / sizeof KEYS[0]);
}

enum err_code gguf_put_goose(const struct gguf_reading *t)
{
    static const char *const KEYS[][2] = {{"wkv.head_size", "head_dim"},
                                          {"attention.decay_lora_rank", "decay_low_rank_dim"},
                                          {"attention.iclr_lora_rank", "a_low_rank_dim"},
                                          {"attention.value_residual_mix_lora_rank", "v_low_rank_dim"},
                                          {"attention.gate_lora_rank", "gate_low_rank_dim"}};
    return put_time_mix(t, KEYS, sizeof KEYS / sizeof KEYS[0]);
}
