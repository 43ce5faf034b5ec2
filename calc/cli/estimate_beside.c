/* estimate_beside -- what a checkpoint holds beside the language model, and how a diffusion model generates. */
#include <math.h>

#include "calc/cli/estimate.h"

enum err_code estimate_weight_bytes(struct arena *a, const struct model *m, double *out, struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    TRY(cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, e));
    TRY(cost_bind(c, &y, m, 1, &ops, e));
    const struct sym *bytes = sym_sub(c, cost_weight_bytes(c, &ops, &PLAIN), cost_adapter_bytes(c, &ops, &PLAIN, NULL));
    TRY(sym_check(c, e));
    return sym_constant(bytes, out) ? ERR_OK : err_set(e, ERR_RANGE, "the bytes of the weights are no number");
}

enum err_code estimate_beside_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    const struct model *m = &c->model;
    struct estimate_beside *b = &c->beside;
    struct model module;
    *b = (struct estimate_beside){.tower_params = m->tower.params, .audio_params = m->audio.params};
    const struct model_beside sees = model_beside_of(m, &m->tower), hears = model_beside_of(m, &m->audio);
    b->tower_bytes = m->towerless ? 0 : model_beside_bytes(&sees, (double)c->tp);
    b->audio_bytes = m->towerless ? 0 : model_beside_bytes(&hears, (double)c->tp);
    b->lora = (struct lora_cost){.params = (double)NAN, .flops_per_token = (double)NAN};
    if (q->lora.rank > 0) TRY(lora_cost(m, &q->lora, &b->lora, e));
    b->lora_bytes = b->lora.params * m->activations.bits / 8;
    if (!model_mtp(m, &module)) return ERR_OK;
    struct cost_parameters p;
    const double modules = (double)m->mtp.modules;
    TRY(cost_parameters(a, &module, &PLAIN, &p, e));
    b->mtp_params = modules * p.total;
    if (m->weights_unknown) {
        b->mtp_bytes = (double)NAN;
        return ERR_OK;
    }
    TRY(estimate_weight_bytes(a, &module, &b->mtp_bytes, e));
    b->mtp_bytes *= modules;
    return ERR_OK;
}

/* What is not described of a model with an encoder. */
static enum err_code refuse_beside(const struct estimate_request *q, const struct model *m, struct err *e)
{
    const char *what = q->mix_text || q->chunk      ? "steps that mix its halves are not described (--mix, --chunk)"
                       : q->drafting.draft          ? "drafts for one are not described (--draft)"
                       : q->calibrated              ? "no kernels of one are measured (--fidelity calibrated)"
                       : q->engine && !q->simulated ? "an engine's pool for both its caches is not described"
                       : q->training.tokens > 0     ? "training one is not described (--train)"
                       : q->lora.rank > 0 || q->adapters.served.slots > 0 ? "adapters of one are not described"
                                                                          : NULL;
    return what ? model_refuse_encoder(m, what, e) : ERR_OK;
}

enum err_code estimate_source_open(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e)
{
    const struct model_encoder *x = &m->encoder;
    if (x->layers == 0 && q->source_tokens > 0 && (q->models_n > 1 || q->compared))
        return ERR_OK; /* of those that have one */
    if (q->source_tokens > 0) TRY(model_set_source(m, q->source_tokens, e));
    if (x->layers == 0) return ERR_OK;
    TRY(refuse_beside(q, m, e));
    if (q->source_tokens > 0 && q->averaged)
        return err_set(e, ERR_USAGE, "--source goes with --context: of %s --prompt is the source", m->name);
    for (size_t i = 0; i < q->prompt_n; i++) TRY(model_check_source(m, q->prompt[i], e));
    if (!q->averaged && x->source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is: --source N%s", m->name,
                       q->compared || q->simulated ? "" : ", or --prompt N --generate N");
    int64_t least = q->averaged ? 0 : x->source_tokens;
    for (size_t i = 0; i < q->prompt_n && q->averaged; i++)
        least = i == 0 || q->prompt[i] < least ? q->prompt[i] : least;
    const bool padded = x->stem_n > 0 && least < x->position_rows - x->position_offset;
    const char *source = q->averaged ? "a source of --prompt tokens"
                                     : arena_printf(a, "a source of %lld tokens", (long long)x->source_tokens);
    const char *pad = padded ? arena_printf(a, ", where the published class pads sound to all %lld places",
                                            (long long)(x->position_rows - x->position_offset))
                             : "";
    m->notes = source && pad ? arena_printf(a, "%s%sits encoder reads %s once%s; its decoder begins with %lld token%s",
                                            m->notes ? m->notes : "", m->notes ? "; " : "", source, pad,
                                            (long long)x->start_tokens, x->start_tokens == 1 ? "" : "s")
                             : NULL;
    return m->notes ? ERR_OK : err_nomem(e);
}

/* Passes that settle no token, and tokens of a block that nobody asked for. */
static enum err_code check_generated(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                     struct err *e)
{
    const struct estimate_diffusion *d = &c->diffusion;
    struct model *m = &c->model;
    for (size_t i = 0; i < q->generate_n; i++) {
        const long long asked = (long long)q->generate[i];
        if (d->block_tokens == 0 && d->steps > q->generate[i])
            return err_set(e, ERR_USAGE, "--steps %lld are more than the %lld tokens that they settle",
                           (long long)d->steps, asked);
        if (d->block_tokens <= q->generate[i]) continue;
        m->notes = arena_printf(a, "%s%sa block of %lld tokens is more than the %lld asked for: all of it is made",
                                m->notes ? m->notes : "", m->notes ? "; " : "", (long long)d->block_tokens, asked);
        return m->notes ? ERR_OK : err_nomem(e);
    }
    return ERR_OK;
}

enum err_code estimate_diffusion_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                      struct err *e)
{
    const struct model *m = &c->model;
    struct estimate_diffusion *d = &c->diffusion;
    c->uncached = q->uncached;
    if (!m->diffusion) {
        if ((q->steps || q->diffusion_block) && !q->compared)
            return err_set(e, ERR_USAGE, "%s makes one token a pass: --steps and --block are for diffusion models",
                           m->name);
        return ERR_OK;
    }
    d->block_tokens = q->diffusion_block ? q->diffusion_block : m->block_tokens;
    d->steps = q->steps ? q->steps : m->block_steps;
    if (d->block_tokens == 0) c->uncached = true;
    if (d->block_tokens == 0 && d->steps > 0 && !q->averaged)
        return err_set(e, ERR_USAGE,
                       "%s settles the whole sequence in --steps passes: state how many tokens with --prompt and "
                       "--generate, or their --block",
                       m->name);
    if (d->block_tokens > 0 && d->steps > d->block_tokens)
        return err_set(e, ERR_USAGE, "--steps %lld are more than the %lld tokens of a block", (long long)d->steps,
                       (long long)d->block_tokens);
    return q->averaged ? check_generated(a, q, c, e) : ERR_OK;
}

/* Blocks of a generation, and passes of each. */
static double passes_of(const struct estimate_diffusion *d, double tokens)
{
    const double block = d->block_tokens > 0 ? (double)d->block_tokens : tokens;
    return ceil(tokens / block) * (d->steps > 0 ? (double)d->steps : block);
}

double estimate_generated(const struct estimate_case *c, int64_t generate)
{
    const double block = (double)c->diffusion.block_tokens;
    return block > 0 ? ceil((double)generate / block) * block : (double)generate;
}

double estimate_passes(const struct estimate_case *c, int64_t generate)
{
    if (!c->model.diffusion || generate <= 0) return (double)NAN;
    return passes_of(&c->diffusion, (double)generate);
}

double estimate_tokens_per_pass(const struct estimate_case *c, int64_t generate)
{
    const struct estimate_diffusion *d = &c->diffusion;
    if (!c->model.diffusion) return 1;
    if (generate > 0) return (double)generate / passes_of(d, (double)generate);
    return d->steps > 0 ? (double)d->block_tokens / (double)d->steps : 1;
}
