/* mixed -- config files of mamba_ssm, H3 and S4D. Defaults follow the classes: mamba_ssm/models/config_mamba.py,
 * modules/mamba_simple.py, mamba2.py, mha.py and mlp.py; H3 src/models/ssm_seq.py and ssm/h3.py; s4 models/s4/s4d.py.
 */
#include "calc/model/mixed.h"

#include <string.h>

enum { WIDEST = 1 << 22, PADDING = 1 << 16 };

enum err_code mixed_size(struct reader *r, const struct json *obj, const char *key, int64_t lo, int64_t hi,
                         int64_t fallback, int64_t *out)
{
    struct json j;
    if (json_get(obj, key, &j)) return json_int(&j, lo, hi, out, r->e);
    if (fallback < 0)
        return err_set(r->e, ERR_INPUT, "%s: %s%s%s is missing, and the %s family has no default for it", r->text.file,
                       obj->path, *obj->path ? "." : "", key, r->family->name);
    *out = fallback;
    return ERR_OK;
}

enum err_code mixed_marks(struct reader *r, const struct json *obj, const char *key, bool *out)
{
    struct json list, item;
    if (!json_get(obj, key, &list)) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of layer numbers", r->e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t at;
        TRY(json_int(&item, 0, r->m->layers - 1, &at, r->e));
        if (out[at]) return json_want(&item, "each layer once", r->e);
        out[at] = true;
    }
    return ERR_OK;
}

enum err_code mixed_sizes(struct reader *r, int64_t pad_default)
{
    struct model *m = r->m;
    int64_t multiple;
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &m->hidden));
    TRY(reader_dim(r, DIM_LAYERS, 1, -1, &m->layers));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &m->vocab));
    TRY(mixed_size(r, &r->text, "pad_vocab_size_multiple", 1, PADDING, pad_default, &multiple));
    m->vocab = (m->vocab + multiple - 1) / multiple * multiple;
    return ERR_OK;
}

/* An object that may be absent. */
static enum err_code read_object(struct reader *r, const char *key, struct json *out, bool *found)
{
    *found = json_get(&r->text, key, out);
    return *found && !json_is_object(out) ? json_want(out, "an object", r->e) : ERR_OK;
}

static enum err_code refuse_key(struct reader *r, const struct json *obj, const char *key, const char *why)
{
    return err_set(r->e, ERR_INPUT, "%s: %s.%s %s, which the %s family does not describe: refused, not guessed",
                   r->text.file, obj->path, key, why, r->family->name);
}

/* ---- attention ---- */

/* The MHA of mamba_ssm and of flash-attn, by the members of attn_cfg. */
static enum err_code read_mha(struct reader *r, struct mixer *x)
{
    struct json cfg;
    bool found;
    int64_t rotary, mlp;
    TRY(read_object(r, "attn_cfg", &cfg, &found));
    if (!found)
        return err_set(r->e, ERR_INPUT, "%s: attn_cfg is missing, so the heads of the layers that attend are not known",
                       r->text.file);
    x->kind = MIXER_ATTENTION;
    TRY(mixed_size(r, &cfg, "num_heads", 1, 1 << 16, -1, &x->heads));
    TRY(mixed_size(r, &cfg, "num_heads_kv", 1, 1 << 16, x->heads, &x->kv_heads));
    TRY(mixed_size(r, &cfg, "head_dim", 1, 1 << 16, r->m->hidden / x->heads, &x->head_dim));
    TRY(mixed_size(r, &cfg, "rotary_emb_dim", 0, 1 << 16, 0, &rotary));
    TRY(mixed_size(r, &cfg, "d_conv", 0, 1 << 10, 0, &x->recurrence.conv_taps));
    TRY(mixed_size(r, &cfg, "mlp_dim", 0, WIDEST, 0, &mlp));
    if (mlp > 0) return refuse_key(r, &cfg, "mlp_dim", "puts an MLP into attention");
    if (x->head_dim == 0 || x->heads % x->kv_heads != 0 ||
        (!json_has(&cfg, "head_dim") && r->m->hidden % x->heads != 0))
        return err_set(r->e, ERR_INPUT, "%s: d_model %lld or %lld KV heads do not fit %lld heads", r->text.file,
                       (long long)r->m->hidden, (long long)x->kv_heads, (long long)x->heads);
    x->v_head_dim = x->head_dim;
    x->position = rotary > 0 ? POSITION_ROPE : POSITION_NONE;
    x->recurrence.conv_bias = x->recurrence.conv_taps > 0;
    TRY(reader_flag(r, &cfg, "qkv_proj_bias", true, &x->qkv_bias));
    return reader_flag(r, &cfg, "out_proj_bias", true, &x->o_bias);
}

/* ---- mamba_ssm ---- */

static enum err_code read_mamba1(struct reader *r, const struct json *cfg, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    int64_t expand;
    struct json j;
    const char *word = "";
    p->block = RECURRENT_SELECTIVE;
    TRY(mixed_size(r, cfg, "expand", 1, 64, 2, &expand));
    x->heads = expand * r->m->hidden;
    x->kv_heads = x->v_head_dim = 1;
    TRY(mixed_size(r, cfg, "d_state", 1, 1 << 16, 16, &x->head_dim));
    TRY(mixed_size(r, cfg, "d_conv", 1, 1 << 10, 4, &p->conv_taps));
    p->rank = (r->m->hidden + 15) / 16;
    if (json_get(cfg, "dt_rank", &j) && !(json_str(&j, &word, NULL) == ERR_OK && strcmp(word, "auto") == 0))
        TRY(json_int(&j, 1, WIDEST, &p->rank, r->e));
    return ERR_OK;
}

static enum err_code read_mamba2(struct reader *r, const struct json *cfg, struct mixer *x)
{
    struct recurrence *p = &x->recurrence;
    int64_t expand, inner;
    bool on;
    p->block = RECURRENT_SSD;
    p->norm = OUTPUT_WIDE_NORM;
    TRY(mixed_size(r, cfg, "expand", 1, 64, 2, &expand));
    TRY(mixed_size(r, cfg, "headdim", 1, 1 << 16, 64, &x->v_head_dim)); /* not a unit */
    TRY(mixed_size(r, cfg, "d_state", 1, 1 << 16, 128, &x->head_dim));
    TRY(mixed_size(r, cfg, "d_conv", 1, 1 << 10, 4, &p->conv_taps));
    TRY(mixed_size(r, cfg, "ngroups", 1, 1 << 16, 1, &x->kv_heads));
    TRY(mixed_size(r, cfg, "chunk_size", 1, 1 << 20, 256, &p->chunk_tokens)); /* not a unit */
    TRY(mixed_size(r, cfg, "d_ssm", 1, WIDEST, expand * r->m->hidden, &inner));
    if (inner != expand * r->m->hidden) return refuse_key(r, cfg, "d_ssm", "leaves a part of the width to an MLP");
    x->heads = inner / x->v_head_dim;
    if (inner % x->v_head_dim != 0 || x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: an inner width of %lld is no multiple of headdim %lld, or its heads of %lld "
                       "groups",
                       r->text.file, (long long)inner, (long long)x->v_head_dim, (long long)x->kv_heads);
    TRY(reader_flag(r, cfg, "rmsnorm", true, &on));
    if (!on) return refuse_key(r, cfg, "rmsnorm", "is false");
    TRY(reader_flag(r, cfg, "D_has_hdim", false, &on));
    return on ? refuse_key(r, cfg, "D_has_hdim", "is true") : ERR_OK;
}

static enum err_code read_mamba(struct reader *r, struct mixer *x)
{
    struct json cfg, j;
    const char *layer = "Mamba1";
    if (!json_get(&r->text, "ssm_cfg", &cfg))
        return err_set(r->e, ERR_INPUT, "%s: ssm_cfg is missing: what its layers are is not known", r->text.file);
    if (!json_is_object(&cfg)) return json_want(&cfg, "an object", r->e);
    if (json_get(&cfg, "layer", &j)) TRY(json_str(&j, &layer, r->e));
    x->kind = MIXER_RECURRENT;
    if (strcmp(layer, "Mamba1") == 0)
        TRY(read_mamba1(r, &cfg, x));
    else if (strcmp(layer, "Mamba2") == 0)
        TRY(read_mamba2(r, &cfg, x));
    else
        return json_want(&j, "Mamba1 or Mamba2", r->e);
    TRY(reader_flag(r, &cfg, "conv_bias", true, &x->recurrence.conv_bias));
    return reader_flag(r, &cfg, "bias", false, &x->recurrence.proj_bias);
}

/* Layers that attend and those that do not, with one kind of MLP or none. */
static enum err_code lay(struct reader *r, const char *key, const struct mixer *other, const struct ffn *f)
{
    struct model *m = r->m;
    struct mixer *attention = arena_alloc(r->arena, sizeof *attention);
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    bool *attends = arena_array(r->arena, (size_t)m->layers, sizeof *attends), any = false;
    if (!attention || !k || !attends) return err_nomem(r->e);
    TRY(mixed_marks(r, &r->text, key, attends));
    for (int64_t i = 0; i < m->layers; i++) any = any || attends[i];
    if (any) TRY(read_mha(r, attention));
    k->norms = f->kind == FFN_NONE ? 1 : 2;
    memcpy(&k->ffn, f, sizeof k->ffn);
    for (int64_t i = 0; i < m->layers; i++) {
        memcpy(&k->mixer, attends[i] ? attention : other, sizeof k->mixer);
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    return ERR_OK;
}

/* What else may stand in a file of mamba_ssm's kind. */
static enum err_code refuse_experts(struct reader *r)
{
    struct json list;
    if (json_get(&r->text, "moe_layer_idx", &list) && json_is_array(&list) && json_len(&list) > 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: moe_layer_idx means experts, which the %s family does not describe: "
                       "refused, not guessed",
                       r->text.file, r->family->name);
    return ERR_OK;
}

enum err_code structure_mamba_ssm(struct reader *r)
{
    struct mixer *x = arena_alloc(r->arena, sizeof *x);
    struct ffn *f = arena_alloc(r->arena, sizeof *f);
    int64_t width;
    if (!x || !f) return err_nomem(r->e);
    TRY(mixed_sizes(r, 8));
    TRY(refuse_experts(r));
    TRY(read_mamba(r, x));
    TRY(mixed_size(r, &r->text, "d_intermediate", 0, 1 << 24, 0, &width));
    if (width > 0) {
        f->kind = FFN_DENSE;
        f->gated = true;
        f->width = (width + 127) / 128 * 128; /* not a unit */
    }
    TRY(lay(r, "attn_layer_idx", x, f));
    r->m->foreign_states = width > 0 || r->m->kinds_n > 1; /* converted, mamba alone is a model of another family */
    return ERR_OK;
}

enum err_code extend_mamba_ssm(struct reader *r)
{
    bool rms;
    TRY(reader_flag(r, &r->text, "rms_norm", true, &rms));
    r->m->norm = rms ? NORM_RMS : NORM_LAYER_BIAS;
    return reader_flag(r, &r->text, "tie_embeddings", true, &r->m->tied);
}

/* ---- H3, S4D ---- */

enum err_code structure_h3(struct reader *r)
{
    struct mixer *x = arena_alloc(r->arena, sizeof *x);
    struct ffn *f = arena_alloc(r->arena, sizeof *f);
    struct json cfg;
    bool found;
    int64_t state, copies;
    if (!x || !f) return err_nomem(r->e);
    TRY(mixed_sizes(r, 1));
    TRY(read_object(r, "ssm_cfg", &cfg, &found));
    if (!found) cfg = (struct json){.file = r->text.file, .path = "ssm_cfg"};
    struct json j;
    const char *mode = "diag";
    if (json_get(&cfg, "mode", &j)) TRY(json_str(&j, &mode, r->e));
    if (strcmp(mode, "diag") != 0) return json_want(&j, "diag: a diagonal SSM", r->e);
    TRY(mixed_size(r, &cfg, "d_state", 2, 1 << 16, 64, &state)); /* not a unit */
    TRY(mixed_size(r, &cfg, "head_dim", 1, 1 << 16, 1, &x->v_head_dim));
    if (state % 2 != 0 || r->m->hidden % x->v_head_dim != 0)
        return err_set(r->e, ERR_INPUT, "%s: ssm_cfg.d_state %lld is odd, or d_model no multiple of head_dim",
                       r->text.file, (long long)state);
    x->heads = x->kv_heads = r->m->hidden / x->v_head_dim;
    TRY(mixed_size(r, &cfg, "n_ssm", 1, WIDEST, x->heads, &copies));
    if (copies != x->heads) return refuse_key(r, &cfg, "n_ssm", "shares poles among channels");
    x->kind = MIXER_RECURRENT;
    x->recurrence.block = RECURRENT_DIAGONAL;
    x->recurrence.proj_bias = true;
    x->head_dim = state / 2;
    x->recurrence.conv_taps = state;
    f->kind = FFN_DENSE;
    f->up_bias = f->down_bias = true;
    TRY(mixed_size(r, &r->text, "d_inner", 1, 1 << 24, 4 * r->m->hidden, &f->width));
    return lay(r, "attn_layer_idx", x, f);
}

enum err_code structure_s4d(struct reader *r)
{
    struct mixer *x = arena_alloc(r->arena, sizeof *x);
    struct ffn *f = arena_alloc(r->arena, sizeof *f);
    int64_t state;
    if (!x || !f) return err_nomem(r->e);
    TRY(mixed_sizes(r, 1));
    TRY(mixed_size(r, &r->text, "d_state", 2, 1 << 16, 64, &state)); /* not a unit */
    if (state % 2 != 0) return err_set(r->e, ERR_INPUT, "%s: d_state %lld is odd", r->text.file, (long long)state);
    x->kind = MIXER_RECURRENT;
    x->recurrence.block = RECURRENT_DIAGONAL;
    x->recurrence.proj_bias = x->recurrence.gated_unit = true;
    x->heads = x->kv_heads = r->m->hidden;
    x->v_head_dim = 1;
    x->head_dim = state / 2;
    return lay(r, "attn_layer_idx", x, f);
}
