/* hybrid_blocks -- what the blocks of a model with recurrent mixers are, where that follows from rules of its own. */
#include "calc/model/hybrid.h"

/* ---- dense widths ---- */

static enum err_code round_width(struct reader *r, int64_t *width)
{
    bool adjust;
    double factor = 1;
    int64_t multiple = 256; /* class default; not a unit */
    struct json j;
    TRY(reader_flag(r, &r->text, "block_auto_adjust_ff_dim", true, &adjust));
    if (!adjust) return ERR_OK;
    if (json_get(&r->text, "block_ffn_dim_multiplier", &j)) TRY(json_num(&j, &factor, r->e));
    if (json_get(&r->text, "block_multiple_of", &j)) TRY(json_int(&j, 1, 1 << 20, &multiple, r->e));
    const double scaled = factor * (double)(2 * *width / 3);
    if (!(scaled >= 1 && scaled <= 1 << 24)) return json_want(&j, "a factor that leaves a width", r->e);
    *width = ((int64_t)scaled + multiple - 1) / multiple * multiple;
    return ERR_OK;
}

/* RWKV-6: 7/2 of hidden_size, rounded up to 32 by flash-linear-attention and down by RWKV's own code. RWKV-7: 4 times,
 * rounded up, without a gate. */
static enum err_code read_channel_by_ratio(struct reader *r, struct ffn *f, bool bare)
{
    double ratio = bare ? 4 : 3.5;
    struct json j;
    const bool stated = json_get(&r->text, "hidden_ratio", &j);
    if (stated) TRY(json_num(&j, &ratio, r->e));
    const double width = ratio * (double)r->m->hidden;
    if (!(width >= 1 && width <= 1 << 24)) return json_want(&j, "a ratio that leaves a width", r->e);
    const bool theirs = !stated && !bare && !json_has(&r->text, "proj_low_rank_dim");
    const int64_t whole = (int64_t)width, up = theirs ? 0 : 31;
    f->kind = FFN_DENSE;
    f->channel_mix = true;
    f->channel_bare = bare;
    return reader_dim(r, DIM_FFN, 1, (whole + up) / 32 * 32, &f->width); /* not a unit */
}

static enum err_code read_ratio(struct reader *r, struct ffn *f)
{
    const bool always = r->family->ffn == FFN_RATIO_ALWAYS;
    int64_t ratio = always ? 4 : 0;
    struct json j;
    if (json_get(&r->text, "hidden_ratio", &j)) TRY(json_int(&j, 1, 64, &ratio, r->e));
    const int64_t width = 2 * ratio * r->m->hidden / 3;
    f->kind = FFN_DENSE;
    f->gated = true;
    if (always) {                             /* intermediate_size is that of the mixers */
        f->width = (width + 255) / 256 * 256; /* not a unit */
        return ERR_OK;
    }
    return reader_dim(r, DIM_FFN, 1, ratio ? (width + 255) / 256 * 256 : -1, &f->width); /* not a unit */
}

/* xLSTM. */
static enum err_code read_factor(struct reader *r, struct ffn *f)
{
    double factor = 2.667; /* class default */
    int64_t multiple;
    struct json j;
    if (json_get(&r->text, "ffn_proj_factor", &j)) TRY(json_num(&j, &factor, r->e));
    TRY(reader_int(r, "ffn_round_up_to_multiple_of", 1, 1 << 20, 64, &multiple)); /* class default */
    const double width = factor * (double)r->m->hidden;
    if (!(width >= 1 && width <= 1 << 24)) return json_want(&j, "a factor that leaves a width", r->e);
    f->kind = FFN_DENSE;
    f->gated = true;
    f->width = (int64_t)(width + (double)(multiple - 1)) / multiple * multiple;
    return ERR_OK;
}

static enum err_code read_channel(struct reader *r, struct ffn *f, bool four)
{
    f->kind = FFN_DENSE;
    f->channel_mix = true;
    return reader_dim(r, DIM_FFN, 1, four ? 4 * r->m->hidden : 7 * r->m->hidden / 2 / 32 * 32,
                      &f->width); /* not a unit */
}

enum err_code hybrid_dense(struct reader *r, struct ffn *f)
{
    if (r->family->ffn == FFN_RATIO) return read_ratio(r, f);
    if (r->family->ffn == FFN_FACTOR) return read_factor(r, f);
    if (r->family->ffn == FFN_CHANNEL) return read_channel(r, f, false);
    if (r->family->ffn == FFN_CHANNEL_FOUR) return read_channel(r, f, true);
    if (r->family->ffn == FFN_CHANNEL_RATIO) return read_channel_by_ratio(r, f, false);
    if (r->family->ffn == FFN_CHANNEL_BARE) return read_channel_by_ratio(r, f, true);
    if (r->family->ffn == FFN_RATIO_ALWAYS) return read_ratio(r, f);
    if (r->family->moe == MOE_SHARED) { /* without experts the shared MLP is all there is */
        f->kind = FFN_DENSE;
        f->gated = true;
        return reader_dim(r, DIM_SHARED_WIDTH, 1, -1, &f->width);
    }
    TRY(reader_dense(r, f));
    return r->family->ffn == FFN_ROUNDED ? round_width(r, &f->width) : ERR_OK;
}

/* ---- kinds ---- */

/* A shared block attends to the stream beside the embedding, passes an MLP and a product of the layer's own, and is
 * added to the stream before the recurrent mixer. */
enum err_code hybrid_shared(struct reader *r, struct layer_kind *k)
{
    bool biased, turned, adapted, attention;
    int64_t rank = 128; /* class default; not a unit */
    struct json j;
    TRY(reader_flag(r, &r->text, "add_bias_linear", false, &biased));
    if (biased)
        return err_set(r->e, ERR_INPUT,
                       "%s: add_bias_linear is true, which the %s family does not describe: refused, "
                       "not guessed",
                       r->text.file, r->family->name);
    if (json_get(&r->text, "adapter_rank", &j) || json_get(&r->text, "lora_rank", &j))
        TRY(json_int(&j, 1, 1 << 20, &rank, r->e));
    struct mixer *x = &k->mixer;
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    if (x->heads % x->kv_heads != 0 || 2 * r->m->hidden % x->heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: twice hidden_size is no multiple of %lld heads, or these of %lld KV heads",
                       r->text.file, (long long)x->heads, (long long)x->kv_heads);
    TRY(reader_flag(r, &r->text, "use_mem_rope", !r->family->plain_shared, &turned));
    x->position = turned ? POSITION_ROPE : POSITION_NONE;
    x->doubled_input = true;
    x->head_dim = x->v_head_dim = 2 * r->m->hidden / x->heads; /* whatever kv_channels says */
    TRY(reader_dense(r, &k->ffn));
    TRY(reader_flag(r, &r->text, "use_shared_block_lora", !r->family->plain_shared, &adapted));
    if (adapted) k->ffn.adapter_rank = rank;
    TRY(reader_flag(r, &r->text, "use_shared_attention_lora", false, &attention));
    TRY(reader_flag(r, &r->text, "use_shared_attention_adapter", attention, &attention));
    if (attention) x->adapter_rank = rank;
    k->ffn.out_proj = true;
    k->norms = 3; /* of the doubled input, of the MLP's */
    k->one_residual = true;
    return ERR_OK;
}

/* Attention of flash-linear-attention's mixed models, by the members of attn. */
enum err_code hybrid_attention(struct reader *r, struct mixer *x)
{
    struct json attn, j;
    if (!json_get(&r->text, "attn", &attn) || !json_get(&attn, "num_heads", &j))
        return err_set(r->e, ERR_INPUT, "%s: attn.num_heads is missing, so what its layers cache is not known",
                       r->text.file);
    x->kind = MIXER_ATTENTION;
    TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    x->kv_heads = x->heads;
    if (json_get(&attn, "num_kv_heads", &j)) TRY(json_int(&j, 1, 1 << 16, &x->kv_heads, r->e));
    if (json_get(&attn, "window_size", &j)) TRY(json_int(&j, 1, (int64_t)1 << 40, &x->window_tokens, r->e));
    if (r->m->hidden % x->heads != 0 || x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: hidden_size %lld is no multiple of %lld heads, or these of %lld KV heads",
                       r->text.file, (long long)r->m->hidden, (long long)x->heads, (long long)x->kv_heads);
    x->head_dim = x->v_head_dim = r->m->hidden / x->heads;
    TRY(reader_flag(r, &attn, "qkv_bias", false, &x->qkv_bias));
    bool normed;
    TRY(reader_flag(r, &attn, "qk_norm", false, &normed));
    x->qk_norm = normed ? QK_NORM_HEAD : QK_NORM_NONE;
    return ERR_OK;
}
