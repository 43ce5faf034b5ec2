/* rwkv -- time mixing as config.json files of RWKV-4, -5, -6 and -7 spell it: those of RWKV's own remote code and of
 * flash-linear-attention. Ranks follow RWKV-LM, RWKV-v5/src/model.py, and fla/layers/rwkv6.py and rwkv7.py. */
#include "calc/model/vary.h"

static enum err_code read_size(struct reader *r, const char *key, int64_t most, int64_t *out)
{
    struct json j;
    return json_get(&r->text, key, &j) ? json_int(&j, 1, most, out, r->e) : ERR_OK;
}

static enum err_code require_size(struct reader *r, const char *key, int64_t *out)
{
    struct json j;
    if (!json_get(&r->text, key, &j))
        return err_set(r->e, ERR_INPUT, "%s: %s is missing, and the %s family has had more than one default for it",
                       r->text.file, key, r->family->name);
    return json_int(&j, 1, 1 << 20, out, r->e);
}

static struct recurrence *begin(struct mixer *x, enum recurrent_block block)
{
    struct recurrence *p = &x->recurrence;
    x->kind = MIXER_RECURRENT;
    p->block = block;
    p->gate = block == RECURRENT_GOOSE ? GATE_LOW_RANK : GATE_FULL;
    p->norm = OUTPUT_WIDE_NORM;
    return p;
}

/* Heads of one width, as RWKV's own code has them. */
static enum err_code read_heads(struct reader *r, struct mixer *x)
{
    int64_t width = r->m->hidden, head = 64; /* class default; not a unit */
    TRY(read_size(r, "attention_hidden_size", 1 << 22, &width));
    TRY(read_size(r, "head_size", 1 << 16, &head));
    if (width % head != 0)
        return err_set(r->e, ERR_INPUT, "%s: width %lld is not a multiple of head_size %lld", r->text.file,
                       (long long)width, (long long)head);
    x->heads = x->kv_heads = width / head;
    x->head_dim = x->v_head_dim = head;
    return ERR_OK;
}

enum err_code recurrent_wkv(struct reader *r, struct mixer *x)
{
    int64_t width = r->m->hidden;
    x->kind = MIXER_RECURRENT;
    x->recurrence.block = RECURRENT_WKV;
    x->recurrence.gate = GATE_FULL;
    TRY(read_size(r, "attention_hidden_size", 1 << 22, &width));
    x->heads = x->kv_heads = width;
    x->head_dim = x->v_head_dim = 1;
    return ERR_OK;
}

enum err_code recurrent_time_mix(struct reader *r, struct mixer *x)
{
    (void)begin(x, RECURRENT_TIME_MIX);
    return read_heads(r, x);
}

/* A factor of the width, shared out over the heads. */
static enum err_code expanded(struct reader *r, const char *key, double factor, int64_t heads, int64_t *out)
{
    struct json j;
    if (json_get(&r->text, key, &j)) TRY(json_num(&j, &factor, r->e));
    const double width = factor * (double)r->m->hidden;
    if (!(width >= 1 && width <= 1 << 22) || (int64_t)width % heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: %s of %g times %lld gives no whole width for %lld heads", r->text.file,
                       key, factor, (long long)r->m->hidden, (long long)heads);
    *out = (int64_t)width / heads;
    return ERR_OK;
}

/* flash-linear-attention states the ranks; RWKV's own code doubles both at a width of 4096. */
enum { FINCH_MIX = 32, FINCH_DECAY = 64, FINCH_WIDE = 4096 }; /* not a unit */

enum err_code recurrent_finch(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_FINCH);
    if (!json_has(&r->text, "proj_low_rank_dim") && !json_has(&r->text, "expand_k")) {
        const int64_t times = r->m->hidden == FINCH_WIDE ? 2 : 1;
        p->mix_rank = times * FINCH_MIX;
        p->rank = times * FINCH_DECAY;
        return read_heads(r, x);
    }
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    x->kv_heads = x->heads;
    TRY(expanded(r, "expand_k", 0.5, x->heads, &x->head_dim));
    TRY(expanded(r, "expand_v", 1, x->heads, &x->v_head_dim));
    TRY(require_size(r, "proj_low_rank_dim", &p->mix_rank));
    return require_size(r, "gate_low_rank_dim", &p->rank);
}

/* Width of all values: hidden_size, unless value_dim says another one for all layers. */
static enum err_code read_values(struct reader *r, int64_t *out)
{
    struct json j, item;
    *out = r->m->hidden;
    if (!json_get(&r->text, "value_dim", &j)) return ERR_OK;
    if (!json_is_array(&j)) return json_int(&j, 1, 1 << 22, out, r->e);
    for (size_t i = 0; json_at(&j, i, NULL, &item); i++) {
        int64_t width;
        TRY(json_int(&item, 1, 1 << 22, &width, r->e));
        if (i > 0 && width != *out) return json_want(&item, "one width of the values of all layers", r->e);
        *out = width;
    }
    return ERR_OK;
}

enum err_code recurrent_goose(struct reader *r, struct mixer *x)
{
    struct recurrence *p = begin(x, RECURRENT_GOOSE);
    int64_t values, head = 0;
    struct json j;
    if (json_get(&r->text, "head_dim", &j))
        TRY(json_int(&j, 1, 1 << 16, &head, r->e)); /* decides, whatever num_heads says */
    if (head > 0)
        x->heads = r->m->hidden / head;
    else
        TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(read_values(r, &values));
    if (x->heads == 0 || r->m->hidden % x->heads != 0 || values % x->heads != 0 ||
        (head > 0 && x->heads * head != r->m->hidden))
        return err_set(r->e, ERR_INPUT, "%s: hidden_size %lld or value_dim %lld is not a multiple of the heads",
                       r->text.file, (long long)r->m->hidden, (long long)values);
    x->kv_heads = x->heads;
    x->head_dim = r->m->hidden / x->heads;
    x->v_head_dim = values / x->heads;
    TRY(require_size(r, "decay_low_rank_dim", &p->rank));
    TRY(require_size(r, "a_low_rank_dim", &p->rate_rank));
    TRY(require_size(r, "v_low_rank_dim", &p->value_rank));
    return require_size(r, "gate_low_rank_dim", &p->gate_rank);
}

/* The first layer's values are its own. */
enum err_code vary_goose(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    if (layer == 0) k->mixer.recurrence.value_rank = 0;
    return ERR_OK;
}

/* A norm of the embedding, unless norm_first is false; norms without biases when norm_bias is. */
enum err_code extend_rwkv(struct reader *r)
{
    bool biased;
    TRY(reader_flag(r, &r->text, "norm_first", true, &r->m->embed_norm));
    TRY(reader_flag(r, &r->text, "norm_bias", true, &biased));
    r->m->norm = biased ? NORM_LAYER_BIAS : NORM_LAYER;
    return ERR_OK;
}
