/* experts -- routed and shared experts as config.json files spell them. */
#include <string.h>

#include "calc/model/reader.h"

/* Shared experts together, as each rule spells them. */
static enum err_code read_shared(struct reader *r, struct ffn *f)
{
    const struct family *fam = r->family;
    int64_t shared = 0, width = f->width;
    bool mixed = true;
    switch (fam->moe) {
    case MOE_NONE:
    case MOE_EVERY:
    case MOE_PERIOD:
    case MOE_OPTIONAL: return ERR_OK;
    case MOE_QWEN:
        f->shared_gate = fam->shared_gate;
        return fam->shared_gate ? reader_dim(r, DIM_SHARED_WIDTH, 1, -1, &f->shared_width) : ERR_OK;
    case MOE_SHARED:
        TRY(reader_dim(r, DIM_SHARED_WIDTH, 0, 0, &f->shared_width));
        f->shared_gate = fam->shared_gate && f->shared_width > 0;
        return ERR_OK;
    case MOE_NAMED: return reader_dim(r, DIM_SHARED_WIDTH, 0, -1, &f->shared_width);
    case MOE_LETTERS:
        TRY(reader_dim(r, DIM_LATENT_WIDTH, 0, 0, &f->latent_width));
        return reader_dim(r, DIM_SHARED_WIDTH, 0, 0, &f->shared_width);
    case MOE_LLAMA4: shared = 1; break;
    case MOE_BESIDE: return reader_dim(r, DIM_FFN, 1, -1, &f->shared_width);
    case MOE_HUNYUAN:
        TRY(reader_flag(r, &r->text, "use_mixed_mlp_moe", false, &mixed));
        TRY(reader_dim(r, DIM_FFN, 1, -1, &width));
        if (mixed) TRY(reader_dim(r, DIM_SHARED_EXPERTS, 1, 1, &shared));
        break;
    case MOE_DEEPSEEK:
    case MOE_COHERE:
    case MOE_ERNIE: TRY(reader_dim(r, DIM_SHARED_EXPERTS, 0, 0, &shared)); break;
    }
    f->shared_width = shared * width;
    return ERR_OK;
}

static enum err_code read_expert_width(struct reader *r, struct ffn *f)
{
    const enum moe_rule rule = r->family->moe;
    int64_t dense = -1;
    if (rule == MOE_EVERY || rule == MOE_OPTIONAL || rule == MOE_LLAMA4 || rule == MOE_SHARED || rule == MOE_PERIOD ||
        rule == MOE_COHERE)
        return reader_dim(r, DIM_FFN, 1, -1, &f->width);
    if (rule == MOE_HUNYUAN) TRY(reader_dim(r, DIM_FFN, 1, -1, &dense));
    return reader_dim(r, DIM_EXPERT_WIDTH, 1, dense, &f->width);
}

/* Experts of no computation: of k choices k*E/(E + those) are of others, on average and when loads are balanced. */
static enum err_code read_idle(struct reader *r, struct ffn *f)
{
    struct json j;
    const char *type = "identity";
    TRY(reader_dim(r, DIM_IDLE_EXPERTS, 0, 0, &f->idle_experts));
    if (f->idle_experts == 0) return ERR_OK;
    if (json_get(&r->text, "zero_expert_type", &j)) TRY(json_str(&j, &type, r->e));
    if (strcmp(type, "identity") != 0) return json_want(&j, "\"identity\"", r->e);
    const int64_t all = f->experts + f->idle_experts, chosen = f->experts_per_token * f->experts;
    if (chosen % all != 0)
        return err_set(
            r->e, ERR_INPUT,
            "%s: of %lld choices among %lld experts, %lld of which compute nothing, no whole number is of the "
            "others on average: not described",
            r->text.file, (long long)f->experts_per_token, (long long)all, (long long)f->idle_experts);
    f->experts_per_token = chosen / all;
    return ERR_OK;
}

enum err_code reader_experts(struct reader *r, struct ffn *f)
{
    const struct family *fam = r->family;
    f->kind = FFN_MOE;
    f->gated = !fam->ungated;
    TRY(reader_dim(r, DIM_EXPERTS, 1, -1, &f->experts));
    TRY(reader_dim(r, DIM_EXPERTS_PER_TOKEN, 1, -1, &f->experts_per_token));
    if (f->experts_per_token > f->experts)
        return err_set(r->e, ERR_INPUT, "%s: %lld experts per token, but only %lld experts", r->text.file,
                       (long long)f->experts_per_token, (long long)f->experts);
    TRY(read_idle(r, f));
    TRY(read_expert_width(r, f));
    TRY(read_shared(r, f));
    f->up_bias = f->down_bias = fam->expert_bias;
    f->router_bias = fam->router_bias;
    struct json j;
    const char *method = "";
    bool corrected = fam->router_correction;
    if (fam->moe == MOE_DEEPSEEK && json_get(&r->text, "topk_method", &j)) {
        TRY(json_str(&j, &method, r->e));
        corrected = strcmp(method, "noaux_tc") == 0;
    }
    if (fam->correction_key) TRY(reader_flag(r, &r->text, fam->correction_key, fam->router_correction, &corrected));
    f->router_correction = corrected;
    return ERR_OK;
}
