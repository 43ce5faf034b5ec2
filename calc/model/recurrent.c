/* recurrent -- recurrent mixers as config.json files spell them. Class defaults follow Hugging Face transformers,
 * configuration_*.py of each family. */
#include <string.h>

#include "calc/model/reader.h"

/* The first of two keys that is a boolean, else fallback. */
static enum err_code flag_of(struct reader *r, const char *key, const char *other, bool fallback, bool *out)
{
    TRY(reader_flag(r, &r->text, other, fallback, out));
    return reader_flag(r, &r->text, key, *out, out);
}

static enum err_code refuse(struct reader *r, const char *what)
{
    return err_set(r->e, ERR_INPUT, "%s: %s, which the %s family does not describe: refused, not guessed", r->text.file,
                   what, r->family->name);
}

/* A quantity that may say "auto": 0 then, and where it is absent. */
static enum err_code dim_or_auto(struct reader *r, enum dim d, int64_t *out)
{
    struct json j;
    const char *word;
    for (const char *const *key = dim_spellings(d); *key; key++)
        if (json_get(&r->text, *key, &j) && json_str(&j, &word, NULL) == ERR_OK && strcmp(word, "auto") == 0) {
            *out = 0;
            return ERR_OK;
        }
    return reader_dim(r, d, 1, 0, out);
}

static struct recurrence *begin(struct mixer *x, enum recurrent_block block)
{
    x->kind = MIXER_RECURRENT;
    x->recurrence.block = block;
    return &x->recurrence;
}

static enum err_code mamba_biases(struct reader *r, struct recurrence *p)
{
    TRY(flag_of(r, "use_conv_bias", "mamba_conv_bias", true, &p->conv_bias));
    return flag_of(r, "use_bias", "mamba_proj_bias", false, &p->proj_bias);
}

/* Inner width: expand times the model's, unless a file without MLPs states it as intermediate_size: one such file says
 * expand 16 of a width that is twice the model's. */
static enum err_code inner_width(struct reader *r, int64_t *out)
{
    int64_t expand;
    struct json j;
    if (r->family->recurrent == recurrent_mamba2_sized && json_get(&r->text, "mamba_d_ssm", &j))
        return json_int(&j, 1, 1 << 22, out, r->e);
    TRY(reader_dim(r, DIM_EXPAND, 1, 2, &expand));
    *out = expand * r->m->hidden;
    return r->family->hybrid == HYBRID_NEVER ? reader_dim(r, DIM_FFN, 1, *out, out) : ERR_OK;
}

enum err_code recurrent_mamba(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_SELECTIVE);
    TRY(inner_width(r, &x->heads));
    x->kv_heads = x->v_head_dim = 1;
    TRY(reader_dim(r, DIM_STATE, 1, 16, &x->head_dim));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    TRY(dim_or_auto(r, DIM_STEP_RANK, &p->rank));
    if (p->rank == 0) p->rank = (r->m->hidden + 15) / 16;
    return mamba_biases(r, p);
}

enum err_code recurrent_mamba_weightless(struct reader *r, struct mixer *x)
{
    x->recurrence.inner_norms = true;
    return recurrent_mamba(r, x);
}

enum err_code recurrent_mamba_normed(struct reader *r, struct mixer *x)
{
    x->recurrence.inner_norm_weights = true;
    return recurrent_mamba_weightless(r, x);
}

enum err_code recurrent_mamba_heads(struct reader *r, struct mixer *x)
{
    TRY(recurrent_mamba(r, x));
    TRY(reader_dim(r, DIM_SCAN_HEADS, 1, 2, &x->kv_heads)); /* class default */
    if (x->heads % x->kv_heads == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: an inner width of %lld is no multiple of %lld heads", r->text.file,
                   (long long)x->heads, (long long)x->kv_heads);
}

static enum err_code read_mamba2(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_SSD);
    const bool pure = r->family->hybrid == HYBRID_NEVER;
    int64_t inner;
    TRY(inner_width(r, &inner));
    TRY(dim_or_auto(r, pure ? DIM_HEADS : DIM_SCAN_HEADS, &x->heads));
    TRY(dim_or_auto(r, pure ? DIM_HEAD_DIM : DIM_SCAN_HEAD_DIM, &x->v_head_dim));
    if (x->v_head_dim == 0) x->v_head_dim = x->heads ? inner / x->heads : 64; /* not a unit */
    if (x->heads == 0) x->heads = inner / x->v_head_dim;
    if (!r->family->scan_heads_decide && x->heads * x->v_head_dim != inner)
        return err_set(
            r->e, ERR_INPUT,
            "%s: %lld recurrent heads of %lld are not the inner width of %lld that expand and hidden_size give",
            r->text.file, (long long)x->heads, (long long)x->v_head_dim, (long long)inner);
    TRY(reader_dim(r, DIM_GROUPS, 1, 1, &x->kv_heads));
    TRY(reader_dim(r, DIM_STATE, 1, 128, &x->head_dim));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    TRY(reader_dim(r, DIM_CHUNK, 1, 256, &p->chunk_tokens));
    if (x->heads == 0 || x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld recurrent heads are not a multiple of %lld groups", r->text.file,
                       (long long)x->heads, (long long)x->kv_heads);
    return mamba_biases(r, p);
}

enum err_code recurrent_mamba2(struct reader *r, struct mixer *x)
{
    bool normed;
    TRY(read_mamba2(r, x));
    TRY(reader_flag(r, &r->text, "rms_norm", true, &normed));
    x->recurrence.norm = OUTPUT_WIDE_NORM;
    return normed ? ERR_OK : refuse(r, "rms_norm is false: a recurrent mixer without its gated norm");
}

enum err_code recurrent_mamba2_sized(struct reader *r, struct mixer *x)
{
    bool normed, out;
    if (!json_has(&r->text, "mamba_d_ssm"))
        return err_set(r->e, ERR_INPUT, "%s: mamba_d_ssm is missing: the width of the recurrent mixer (null: expand)",
                       r->text.file);
    TRY(read_mamba2(r, x));
    TRY(reader_flag(r, &r->text, "mamba_rms_norm", false, &normed));
    x->recurrence.norm = normed ? OUTPUT_WIDE_NORM : OUTPUT_PLAIN;
    TRY(reader_flag(r, &r->text, "projectors_bias", false, &out));
    if (out == x->recurrence.proj_bias) return ERR_OK;
    return refuse(r, "projectors_bias and mamba_proj_bias differ: a bias of one of two products");
}

/* ---- linear attention and the delta rule ---- */

enum { FLA_CHUNK = 64, LIGHTNING_CHUNK = 256 }; /* of the published kernels: MODEL.md "Scans" */

static enum err_code check_groups(struct reader *r, const struct mixer *x)
{
    if (x->heads % x->kv_heads == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld value heads are not a multiple of %lld key heads", r->text.file,
                   (long long)x->heads, (long long)x->kv_heads);
}

enum err_code recurrent_gated_delta(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    TRY(reader_dim(r, DIM_SCAN_HEADS, 1, 32, &x->heads));
    TRY(reader_dim(r, DIM_SCAN_KEY_HEADS, 1, 16, &x->kv_heads));
    TRY(reader_dim(r, DIM_SCAN_KEY_DIM, 1, 128, &x->head_dim));
    TRY(reader_dim(r, DIM_SCAN_HEAD_DIM, 1, 128, &x->v_head_dim));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    p->delta = p->decay_weights = true;
    p->decay = DECAY_HEAD;
    p->gate = GATE_FULL;
    p->norm = OUTPUT_HEAD_NORM;
    p->chunk_tokens = FLA_CHUNK;
    return check_groups(r, x);
}

/* Without sizes of its own: as many heads as attention, 3/4 of the width of keys, twice as wide values (OLMo hybrid).
 */
enum err_code recurrent_head_delta(struct reader *r, struct mixer *x)
{
    int64_t heads;
    TRY(recurrent_gated_delta(r, x));
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &heads));
    TRY(reader_dim(r, DIM_SCAN_KEY_HEADS, 1, heads, &x->kv_heads));
    TRY(reader_dim(r, DIM_SCAN_HEADS, 1, heads, &x->heads));
    TRY(reader_dim(r, DIM_SCAN_KEY_DIM, 1, 3 * r->m->hidden / (4 * x->kv_heads), &x->head_dim));
    TRY(reader_dim(r, DIM_SCAN_HEAD_DIM, 1, 2 * x->head_dim, &x->v_head_dim));
    return check_groups(r, x);
}

/* Kimi Delta Attention: its sizes stand in linear_attn_config; a decay a key element, decay and gate of the rank of a
 * head. */
enum err_code recurrent_kimi_delta(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    struct json j;
    static const struct {
        const char *key, *saved; /* the second as transformers saves it */
        int64_t most;
    } SIZES[] = {{"linear_attn_config.num_heads", "linear_num_heads", 1 << 16},
                 {"linear_attn_config.head_dim", "linear_head_dim", 1 << 16},
                 {"linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim", 1 << 10}};
    int64_t *const out[] = {&x->heads, &x->head_dim, &p->conv_taps};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        if (!json_get(&r->text, SIZES[i].key, &j) && !json_get(&r->text, SIZES[i].saved, &j))
            return err_set(r->e, ERR_INPUT, "%s: %s is missing", r->text.file, SIZES[i].key);
        TRY(json_int(&j, 1, SIZES[i].most, out[i], r->e));
    }
    x->kv_heads = x->heads;
    p->rank = x->v_head_dim = x->head_dim;
    p->delta = p->decay_weights = true;
    p->decay = DECAY_CHANNEL;
    bool full;
    TRY(reader_flag(r, &r->text, "linear_attn_config.use_full_rank_gate", false, &full)); /* Kimi K3 */
    p->gate = full ? GATE_FULL : GATE_LOW_RANK;
    /* Kimi K3 stores as many rates as a head is wide, of which the first are those of the heads. */
    p->idle_rates = full && x->head_dim > x->heads ? x->head_dim - x->heads : 0;
    p->norm = OUTPUT_HEAD_NORM;
    p->chunk_tokens = FLA_CHUNK;
    return ERR_OK;
}

/* Ling 3.0: the same with the attention's heads; decay and gate of one product each, or of the rank of a head. */
enum err_code recurrent_ling_delta(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    bool whole;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, r->m->hidden % x->heads == 0 ? r->m->hidden / x->heads : -1, &x->head_dim));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, -1, &p->conv_taps));
    /* as transformers saves it: heads of their own, and products of decay and gate without a rank */
    const bool saved = json_has(&r->text, "linear_head_dim");
    if (saved) {
        TRY(reader_int(r, "linear_head_dim", 1, 1 << 16, x->head_dim, &x->head_dim));
        TRY(reader_int(r, "linear_num_heads", 1, 1 << 16, x->heads, &x->heads));
    }
    if (!json_has(&r->text, "no_kda_lora") && !saved)
        return err_set(r->e, ERR_INPUT, "%s: no_kda_lora is missing: the products of decay and gate", r->text.file);
    TRY(reader_flag(r, &r->text, "no_kda_lora", true, &whole));
    x->kv_heads = x->heads;
    x->v_head_dim = x->head_dim;
    p->rank = whole ? 0 : x->head_dim;
    p->delta = p->decay_weights = true;
    p->decay = DECAY_CHANNEL;
    p->gate = whole ? GATE_FULL : GATE_LOW_RANK;
    p->norm = OUTPUT_HEAD_NORM;
    p->chunk_tokens = FLA_CHUNK;
    return ERR_OK;
}

/* Lightning attention: all heads have keys and values of their own, whatever the full layers share. */
static void make_lightning(struct mixer *x, int64_t heads, int64_t width)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    x->heads = x->kv_heads = heads;
    x->head_dim = x->v_head_dim = width;
    p->decay = DECAY_FIXED;
    p->gate = GATE_FULL;
    p->norm = OUTPUT_WIDE_NORM;
    p->chunk_tokens = LIGHTNING_CHUNK;
}

enum err_code recurrent_lightning(struct reader *r, struct mixer *x)
{
    int64_t heads, width;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &heads));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, -1, &width));
    make_lightning(x, heads, width);
    x->recurrence.activated = true;
    struct json j;
    return json_get(&r->text, "block_size", &j) ? json_int(&j, 1, 1 << 20, &x->recurrence.chunk_tokens, r->e) : ERR_OK;
}

/* Ling's linear attention: lightning attention whose queries and keys are normed and turn. Files of Ling 3 have the
 * same model_type, and another rule. */
enum err_code recurrent_grouped(struct reader *r, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    int64_t width = r->m->hidden;
    struct json j;
    static const char *const OTHERS[] = {"short_conv_kernel_size", "kda_lower_bound"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        if (json_get(&r->text, OTHERS[i], &j))
            return err_set(r->e, ERR_INPUT, "%s: %s means a delta rule, which the %s family does not describe", j.file,
                           j.path, r->family->name);
    int64_t heads;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &heads));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, width % heads == 0 ? width / heads : -1, &width));
    make_lightning(x, heads, width);
    TRY(reader_flag(r, &r->text, "use_qk_norm", false, &p->key_norms));
    TRY(reader_flag(r, &r->text, "linear_rope", true, &p->rope));
    return reader_flag(r, &r->text, "linear_silu", false, &p->activated);
}

/* A factor of the model's width that must give whole heads. */
static enum err_code expanded(struct reader *r, const char *key, double fallback, int64_t base, int64_t heads,
                              int64_t *out)
{
    struct json j;
    double factor = fallback;
    if (json_get(&r->text, key, &j)) TRY(json_num(&j, &factor, r->e));
    const double width = factor * (double)base / (double)heads;
    if (!(width >= 1 && width <= 1 << 16) || width != (double)(int64_t)width)
        return err_set(r->e, ERR_INPUT, "%s: %s of %g times %lld gives no whole width for %lld heads", r->text.file,
                       key, factor, (long long)base, (long long)heads);
    *out = (int64_t)width;
    return ERR_OK;
}

/* Keys that flash-linear-attention's configurations share: heads, factors of the width, convolution, gate. */
static enum err_code fla_common(struct reader *r, struct mixer *x, const char *gate_key, bool gate_default,
                                bool conv_default)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    bool conv, gate;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    if (x->kv_heads != x->heads) return refuse(r, "num_kv_heads shares states");
    TRY(reader_flag(r, &r->text, "use_short_conv", conv_default, &conv));
    if (conv) TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    TRY(reader_flag(r, &r->text, gate_key, gate_default, &gate));
    p->gate = gate ? GATE_FULL : GATE_NONE;
    p->norm = OUTPUT_HEAD_NORM;
    p->chunk_tokens = FLA_CHUNK;
    return ERR_OK;
}

enum err_code recurrent_fla_gated_delta(struct reader *r, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    struct json j;
    TRY(fla_common(r, x, "use_gate", true, true));
    if (json_get(&r->text, "num_v_heads", &j)) TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    TRY(check_groups(r, x));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, 256, &x->head_dim));
    TRY(expanded(r, "expand_v", 2, x->head_dim, 1, &x->v_head_dim));
    p->delta = p->decay_weights = true;
    p->decay = DECAY_HEAD;
    return ERR_OK;
}

enum err_code recurrent_fla_delta(struct reader *r, struct mixer *x)
{
    bool rated;
    TRY(fla_common(r, x, "use_gate", false, true));
    TRY(expanded(r, "expand_k", 1, r->m->hidden, x->heads, &x->head_dim));
    TRY(expanded(r, "expand_v", 1, r->m->hidden, x->heads, &x->v_head_dim));
    TRY(reader_flag(r, &r->text, "use_beta", true, &rated));
    if (!rated) return refuse(r, "use_beta is false: a delta rule without its rate");
    x->recurrence.delta = true;
    return ERR_OK;
}

enum { GLA_RANK = 16 }; /* class default of gate_low_rank_dim, which no file of the configuration states */

enum err_code recurrent_fla_gated_linear(struct reader *r, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    bool by_key, by_value;
    TRY(fla_common(r, x, "use_output_gate", true, false));
    TRY(expanded(r, "expand_k", 0.5, r->m->hidden, x->heads, &x->head_dim));
    TRY(expanded(r, "expand_v", 1, r->m->hidden, x->heads, &x->v_head_dim));
    TRY(reader_flag(r, &r->text, "use_gk", true, &by_key));
    TRY(reader_flag(r, &r->text, "use_gv", false, &by_value));
    if (by_value) return refuse(r, "use_gv is true: a decay of the values");
    p->decay = by_key ? DECAY_CHANNEL : DECAY_NONE;
    p->decay_bias = by_key;
    p->rank = by_key ? GLA_RANK : 0;
    return ERR_OK;
}

enum err_code recurrent_fla_retention(struct reader *r, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    TRY(fla_common(r, x, "use_output_gate", true, false));
    TRY(expanded(r, "expand_k", 1, r->m->hidden, x->heads, &x->head_dim));
    TRY(expanded(r, "expand_v", 2, r->m->hidden, x->heads, &x->v_head_dim));
    p->decay = DECAY_FIXED;
    p->rope = true;
    return ERR_OK;
}

/* ---- others ---- */

/* PLaMo-2: heads of the attention's width. Source: vLLM, plamo2.py. */
enum err_code recurrent_mamba2_ranked(struct reader *r, struct mixer *x)
{
    enum { PARTS = 16, LEAST = 64 }; /* of the class: the rank is a part of the width, and no less */
    struct recurrence *p = begin(x, RECURRENT_SSD);
    const int64_t part = r->m->hidden / PARTS;
    TRY(reader_dim(r, DIM_SCAN_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, -1, &x->v_head_dim));
    TRY(reader_dim(r, DIM_STATE, 1, -1, &x->head_dim));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    TRY(reader_dim(r, DIM_CHUNK, 1, 256, &p->chunk_tokens));
    x->kv_heads = 1;
    p->rank = part > LEAST ? part : LEAST;
    p->inner_norms = p->inner_norm_weights = true;
    return ERR_OK;
}

/* xLSTM. Source: transformers, modeling_xlstm.py. */
enum err_code recurrent_mlstm(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_LINEAR);
    bool on;
    TRY(reader_flag(r, &r->text, "use_bias", false, &on));
    if (on) return refuse(r, "use_bias is true: biases of all products and norms");
    TRY(reader_flag(r, &r->text, "add_out_norm", true, &on));
    if (!on) return refuse(r, "add_out_norm is false: no norm before the output head");
    TRY(reader_dim(r, DIM_HEADS, 1, 8, &x->heads));
    x->kv_heads = x->heads;
    TRY(expanded(r, "qk_dim_factor", 0.5, r->m->hidden, x->heads, &x->head_dim));
    TRY(expanded(r, "v_dim_factor", 1, r->m->hidden, x->heads, &x->v_head_dim));
    TRY(reader_dim(r, DIM_CHUNK, 1, FLA_CHUNK, &p->chunk_tokens));
    p->memory = true;
    p->decay = DECAY_HEAD;
    p->gate = GATE_FULL;
    p->norm = OUTPUT_EACH_NORM;
    return ERR_OK;
}

enum err_code recurrent_lru(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_LRU);
    int64_t width;
    TRY(reader_dim(r, DIM_LRU_WIDTH, 1, r->m->hidden, &width));
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 4, &p->conv_taps));
    if (width % x->heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: lru_width %lld is not a multiple of %lld blocks", r->text.file,
                       (long long)width, (long long)x->heads);
    x->head_dim = 1; /* a state is a vector */
    x->v_head_dim = width / x->heads;
    x->kv_heads = x->heads;
    p->conv_bias = p->proj_bias = true;
    return ERR_OK;
}

enum err_code recurrent_short_conv(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_CONV);
    x->heads = x->kv_heads = r->m->hidden;
    x->head_dim = x->v_head_dim = 1;
    TRY(reader_dim(r, DIM_CONV_TAPS, 1, 3, &p->conv_taps));
    TRY(reader_flag(r, &r->text, "conv_bias", false, &p->conv_bias));
    p->proj_bias = p->conv_bias;
    return ERR_OK;
}

bool model_keeps_inputs(const struct mixer *x)
{
    return x->kind == MIXER_RECURRENT && x->recurrence.block == RECURRENT_FILTER && x->recurrence.filter_width > 0;
}

const char *recurrent_name(const struct mixer *x)
{
    switch (x->recurrence.block) {
    case RECURRENT_SELECTIVE: return "mamba";
    case RECURRENT_SSD: return "mamba-2";
    case RECURRENT_LINEAR:
        return x->recurrence.memory            ? "mLSTM"
               : x->recurrence.delta           ? "delta rule"
               : x->recurrence.feature_dim > 0 ? "Taylor linear attention"
                                               : "linear attention";
    case RECURRENT_LRU: return "RG-LRU";
    case RECURRENT_CONV: return "short conv";
    case RECURRENT_MEMORY: return "memory unit";
    case RECURRENT_WKV:
    case RECURRENT_TIME_MIX:
    case RECURRENT_FINCH:
    case RECURRENT_GOOSE: return "time mix";
    case RECURRENT_DIAGONAL: return x->recurrence.conv_taps > 0 ? "H3" : "S4D";
    case RECURRENT_FILTER: return x->recurrence.filter_width > 0 ? "long convolution" : "modal long convolution";
    }
    return "recurrence";
}
