#include "calc/learn/bank_arch.h"

#include <math.h>

#define INT(n) sym_int(m->c, (n))

/* A diffusion model writes blocks of `block` tokens, `each` of them in a pass. */
struct diffusion {
    int64_t P, G, block, each;
    double passes, per_block, blocks;
};

static struct diffusion draw_diffusion(struct exercise_maker *m)
{
    static const int64_t BLOCKS[] = {16, 32, 48, 64};
    struct diffusion r = {.P = bank_draw(m, 30, 900), .block = bank_pick(m, 4, BLOCKS), .each = bank_draw(m, 2, 6)};
    r.blocks = (double)bank_draw(m, 3, 24);
    r.G = r.block * (int64_t)r.blocks;
    r.per_block = ceil((double)r.block / (double)r.each);
    r.passes = r.blocks * r.per_block;
    return r;
}

enum err_code bank_passes_weights(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct bank_counts n;
    const struct diffusion r = draw_diffusion(m);
    TRY(bank_decoder(m, &d, e));
    TRY(bank_count(m, &d, &n, e));
    const double w = n.weight_bytes, G = (double)r.G;
    bank_ask(q, UNITS_BYTES, r.passes * w, 0.01, "bytes with their unit");
    q->text = bank_printf(m,
                          "A diffusion language model of %s parameters (norms not counted) in bf16 writes G = %lld "
                          "tokens in blocks of b = %lld, one block after the other. A pass settles u = %lld tokens of "
                          "its block, the last pass of a block what is left, and reads all weights once. How many "
                          "bytes of weights are read until the text is there?",
                          bank_digits(m, n.params), (long long)r.G, (long long)r.block, (long long)r.each);
    bank_slip(q, G * w, "This is one token in a pass, as an autoregressive model does it.");
    bank_slip(q, w, "This is one pass.");
    bank_slip(q, r.per_block * w, "This is one block.");
    bank_slip(q, r.blocks * w, "This writes a block in one pass: a pass settles u tokens of it.");
    bank_slip(q, ceil(G / (double)r.each) * w,
              "This lets a pass settle tokens of two blocks: each ends with a pass of its own.");
    bank_slip(q, r.passes * n.params, "This takes a parameter for a byte: bf16 has two.");
    bank_slip(q, floor((double)r.block / (double)r.each) * r.blocks * w,
              "This drops the last pass of a block, for what is left: round up.");
    bank_step(q, bank_printf(m, "passes: G/b * ceil(b/u) = %lld/%lld * ceil(%lld/%lld) = %.0f", (long long)r.G,
                             (long long)r.block, (long long)r.block, (long long)r.each, r.passes));
    bank_step(q, bank_printf(m, "%.0f * %s * 2 bytes = %s", r.passes, bank_digits(m, n.params),
                             bank_shown(m, UNITS_BYTES, q->value)));
    bank_step(q, bank_printf(m, "one token in a pass would read %s", bank_shown(m, UNITS_BYTES, G * w)));
    return ERR_OK;
}

/* Tokens that pass the MLP, by its flops: of `passes` passes over `tokens` tokens. */
static enum err_code mlp_flops(struct exercise_maker *m, double passes, int64_t tokens, double *out, struct err *e)
{
    const struct sym *flops;
    double one;
    TRY(quantity_resolve(&m->textbook, QUANTITY_PREFILL, "flops", "mlp", &flops, e));
    const struct sym_binding at[] = {{m->y.B, INT(1)}, {m->y.D, INT(1)}, {m->y.F, INT(1)}, {m->y.S, INT(tokens)}};
    if (!sym_constant(sym_bind(m->c, flops, at, 4), &one)) return sym_check(m->c, e);
    *out = passes * one;
    return ERR_OK;
}

enum err_code bank_passes_flops(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct diffusion r = draw_diffusion(m);
    const double P = (double)r.P, G = (double)r.G;
    double diffused = 0, cached;
    TRY(mlp_flops(m, r.passes, r.P + r.G, &diffused, e));
    TRY(mlp_flops(m, 1, r.P + r.G - 1, &cached, e));
    bank_ask(q, UNITS_RATIO, diffused / cached, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "A diffusion language model writes G = %lld tokens behind a prompt of P = %lld in blocks of b = %lld. A pass "
        "settles u = %lld tokens of its block, the last pass of a block what is left, and takes prompt and all G "
        "places through the model, as nothing is cached. An autoregressive model of the same size keeps a KV cache: "
        "it takes the prompt through in one pass, which yields the first token, and then one token in a pass. How many "
        "times as many flops are the diffusion model's products with weights?",
        (long long)r.G, (long long)r.P, (long long)r.block, (long long)r.each);
    bank_slip(q, r.passes, "This is the number of passes: tokens of the two models' passes are not as many.");
    bank_slip(q, r.passes / G, "This compares passes: a pass of the diffusion model takes P + G tokens through.");
    bank_slip(q, r.passes * G / (P + G - 1), "This leaves out the prompt, which every pass takes through again.");
    bank_slip(q, r.passes * (double)(r.P + r.block) / (P + G - 1),
              "This takes one block through in a pass: all G places are.");
    bank_slip(q, G * (P + G) / (P + G - 1), "This settles one token in a pass.");
    bank_slip(q, (P + G - 1) / (r.passes * (P + G)), "Upside down: the diffusion model's flops are what is divided.");
    bank_slip(q, r.passes * (P + G) / (G * P + G * (G - 1) / 2),
              "This is against an autoregressive model without a cache.");
    bank_step(q, bank_printf(m, "diffusion: %.0f * %.0f passes of P + G = %.0f tokens: %s", r.blocks, r.per_block,
                             P + G, bank_digits(m, r.passes * (P + G))));
    bank_step(q, bank_printf(m, "with a cache: P + G - 1 = %s tokens", bank_digits(m, P + G - 1)));
    bank_step(q, bank_printf(m, "%s / %s = %.4g, and %.3g times fewer passes", bank_digits(m, r.passes * (P + G)),
                             bank_digits(m, P + G - 1), q->value, G / r.passes));
    return ERR_OK;
}
