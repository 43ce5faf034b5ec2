#include "calc/learn/bank_scale.h"

#include <math.h>

#include "calc/time/kernel.h"

#define INT(n) sym_int(m->c, (n))

enum err_code bank_batch_waves(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t ROWS[] = {64, 128, 128, 256}, COLUMNS[] = {64, 128, 256};
    static const char *const DEVICES[] = {"h100-sxm", "h100-sxm", "a100-80g", "h200-sxm", "b200-sxm"};
    struct hw hw;
    TRY(bank_device(m, sizeof DEVICES / sizeof DEVICES[0], DEVICES, &hw, e));
    const double tm = (double)bank_pick(m, 4, ROWS), tn = (double)bank_pick(m, 3, COLUMNS), sm = hw.sm_count;
    double rows, columns, tiles, waves;
    do { /* some SMs idle in the last wave, and a tile hangs over an edge */
        rows = (double)(16 * bank_draw(m, 5, 160)), columns = (double)(32 * bank_draw(m, 32, 448));
        tiles = kernel_tiles(rows, columns, tm, tn), waves = kernel_waves(tiles, sm);
    } while (waves * sm - tiles < 0.1 * sm || waves > 6 || fmod(rows, tm) == 0); /* NOLINT(cert-flp30-c) */
    const double part = rows * columns / (waves * sm * tm * tn);
    bank_ask(q, UNITS_FRAC, part, 0.01, "a part");
    q->text =
        bank_printf(m,
                    "A matrix product has a result of m = %.0f rows and n = %.0f columns. It is computed in tiles "
                    "of %.0f x %.0f, a whole tile also at the edges; each SM works on one tile at a time, all "
                    "tiles take equally long, and the device is an %s with %.0f SMs. Which part of the peak is "
                    "the most that the product can reach?",
                    rows, columns, tm, tn, hw.name, sm);
    bank_slip(q, tiles / (waves * sm), "This counts tiles at the edges as full: they compute what no one needs.");
    bank_slip(q, rows * columns / (tiles * tm * tn), "This leaves out the SMs that idle in the last wave.");
    bank_slip(q, rows * columns / (sm * tm * tn), "This takes all tiles in one wave.");
    if (tiles < waves * sm - sm / 2 && waves > 1)
        bank_slip(q, rows * columns / ((waves - 1) * sm * tm * tn), "This drops the last wave: round up.");
    bank_slip(q, rows * columns / (floor(rows / tm) * floor(columns / tn) * tm * tn),
              "This drops the tiles at the edges: round up.");
    bank_slip(q, 1 / waves, "This is one wave of them.");
    bank_step(q, bank_printf(m, "tiles: ceil(%.0f/%.0f) * ceil(%.0f/%.0f) = %.0f", rows, tm, columns, tn, tiles));
    bank_step(q, bank_printf(m, "waves: ceil(%.0f/%.0f) = %.0f, the last with %.0f SMs at work", tiles, sm, waves,
                             tiles - (waves - 1) * sm));
    bank_step(
        q, bank_printf(m, "%.0f * %.0f of %.0f * %.0f * %.0f * %.0f = %.4g", rows, columns, waves, sm, tm, tn, part));
    return ERR_OK;
}

/* What a piece of T tokens behind `before` cached ones reads of their keys and values, in all layers. */
static enum err_code piece_reads(struct exercise_maker *m, const struct model *d, int64_t T, int64_t before,
                                 double *out, struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "prefill", .B = INT(1), .T = INT(T), .S = INT(before + T)};
    struct cost_ops ops;
    double x;
    TRY(bank_arch_pass(m, d, &v, &pass, true, &ops, e));
    *out = 0;
    for (size_t i = 0; i < ops.n; i++) { /* what is needed: old tokens read, the piece's own written */
        const struct cost_op *o = &ops.op[i];
        if (sym_constant(o->kv_needed_bytes, &x)) *out += (double)o->count * x;
        if (o->kind == OP_KV_WRITE && sym_constant(o->kv_bytes, &x)) *out -= (double)o->count * x;
    }
    return sym_check(m->c, e);
}

enum err_code bank_batch_chunks(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    double reads = 0, one, token;
    TRY(bank_decoder(m, &d, e));
    const struct mixer x = d.kinds[0].mixer;
    const int64_t C = 128 * bank_draw(m, 2, 12), n = bank_draw(m, 3, 14), P = C * n;
    for (int64_t i = 0; i < n; i++) {
        TRY(piece_reads(m, &d, C, C * i, &one, e));
        reads += one;
    }
    token = (double)(2 * d.layers * x.kv_heads * x.head_dim) * 2;
    const double prompt = (double)P, chunk = (double)C;
    bank_ask(q, UNITS_BYTES, reads, 0.01, "bytes with their unit");
    q->text = bank_printf(m,
                          "A decoder has L = %lld layers with N = %lld query heads and K = %lld KV heads of width H = "
                          "%lld, and keeps keys and values in bf16. A prompt of P = %lld tokens is prefilled in pieces "
                          "of C = %lld, one after the other. Each piece reads once the keys and values of the pieces "
                          "before it, which are in the cache; its own it has at hand. How many bytes of the cache are "
                          "read until the prompt is through?",
                          (long long)d.layers, (long long)x.heads, (long long)x.kv_heads, (long long)x.head_dim,
                          (long long)P, (long long)C);
    bank_slip(q, token * prompt * (double)n,
              "This reads the whole prompt in each piece: a piece reads what is before "
              "it.");
    bank_slip(q, token * prompt * (double)(n + 1) / 2, "This counts a piece's own tokens, which it has at hand.");
    bank_slip(q, token * prompt * (prompt - 1) / 2,
              "This is one token in a piece: tokens of one share what they read.");
    bank_slip(q, token * (prompt - chunk), "This reads each piece once: all pieces behind it read it again.");
    bank_slip(q, reads / 2, "This counts keys or values alone: the cache holds both.");
    bank_slip(q, reads / (double)x.kv_heads * (double)x.heads, "This counts query heads: the cache has KV heads.");
    bank_slip(q, reads / (double)d.layers, "This is one layer.");
    bank_step(q, "piece i (from 0) reads i*C tokens: C*(0 + 1 + ... + (P/C - 1)) = P*(P/C - 1)/2 tokens");
    bank_step(q, bank_printf(m, "%lld * (%lld - 1) / 2 = %s tokens", (long long)P, (long long)n,
                             bank_digits(m, prompt * (double)(n - 1) / 2)));
    bank_step(q, bank_printf(m, "a token: 2*L*K*H * 2 bytes = %s bytes", bank_digits(m, token)));
    bank_step(q, bank_printf(m, "together %s, about the cache of the prompt times P/(2*C)",
                             bank_shown(m, UNITS_BYTES, reads)));
    return ERR_OK;
}

static double step_of(const struct bank_served *s, double tokens)
{
    return fmax(s->n.weight_bytes / s->hw.bandwidth_bytes_per_s, 2 * s->n.params * tokens / s->peak_flops_per_s);
}

enum err_code bank_batch_first_token(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    TRY(bank_served(m, &s, e));
    const int64_t C = 128 * bank_draw(m, 2, 16), n = bank_draw(m, 24, 120),
                  P = 100 * bank_draw(m, 12, 90) + 7; /* not a unit */
    const double budget = (double)C, prompt = (double)P, beside = (double)n;
    const double steps = ceil(prompt / (budget - beside)), one = step_of(&s, budget);
    bank_ask(q, UNITS_SECONDS, steps * one, 0.01, "a time with its unit");
    q->text = bank_printf(
        m,
        "%s Its dense peak is %s in 16 bits. An engine fills each step with C = %lld tokens: one of each of n = %lld "
        "sequences that decode, the rest from one prompt of P = %lld tokens, which starts at once. A step takes as "
        "long "
        "as the slower of reading all weights once and of the products of C tokens with them, the embedding counted "
        "too; cache and attention are left aside, and the last step is as long as the others. How long is it until the "
        "prompt's first token?",
        bank_served_text(m, &s), bank_peak_text(m, s.peak_flops_per_s), (long long)C, (long long)n, (long long)P);
    bank_slip(q, ceil(prompt / budget) * one,
              "This gives the prompt the whole step: sequences that decode take n of "
              "its tokens.");
    bank_slip(q, floor(prompt / (budget - beside)) * one, "This drops the last step: round up.");
    bank_slip(q, one, "This is one step: the prompt needs several.");
    bank_slip(q, step_of(&s, prompt), "This takes the prompt through alone and in one pass.");
    bank_slip(q, steps * s.n.weight_bytes / s.hw.bandwidth_bytes_per_s,
              "This reads weights alone: products of many tokens take longer.");
    bank_slip(q, steps * 2 * s.n.params * budget / s.peak_flops_per_s,
              "This is arithmetic alone: reading the weights takes longer.");
    bank_slip(q, steps * (s.n.weight_bytes / s.hw.bandwidth_bytes_per_s + 2 * s.n.params * budget / s.peak_flops_per_s),
              "This adds reading and arithmetic: the slower of the two counts.");
    bank_step(
        q, bank_printf(m, "steps: ceil(P/(C - n)) = ceil(%lld/%lld) = %.0f", (long long)P, (long long)(C - n), steps));
    bank_step(q, bank_printf(m, "reading: %s; arithmetic: %s",
                             bank_shown(m, UNITS_SECONDS, s.n.weight_bytes / s.hw.bandwidth_bytes_per_s),
                             bank_shown(m, UNITS_SECONDS, 2 * s.n.params * budget / s.peak_flops_per_s)));
    bank_step(q, bank_printf(m, "%.0f * %s = %s, in which each of the %lld sequences gets %.0f tokens", steps,
                             bank_shown(m, UNITS_SECONDS, one), bank_shown(m, UNITS_SECONDS, q->value), (long long)n,
                             steps));
    return ERR_OK;
}

enum err_code bank_batch_diffusion(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BLOCKS[] = {16, 32, 48, 64};
    struct bank_served s;
    TRY(bank_served(m, &s, e));
    const double ridge = s.peak_flops_per_s / s.hw.bandwidth_bytes_per_s;
    const int64_t block = bank_pick(m, 4, BLOCKS), each = bank_draw(m, 2, 7);
    const int64_t B = bank_draw(m, 2, 2 + (int64_t)(3 * ridge / (double)block));
    const double n = (double)B, b = (double)block, u = (double)each, one = step_of(&s, n), many = step_of(&s, n * b);
    bank_ask(q, UNITS_RATIO, u * one / many, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "%s Its dense peak is %s in 16 bits. B = %lld sequences are decoded, one token of each in a step. A diffusion "
        "model of the same size takes a block of b = %lld tokens of each through in a pass and settles u = %lld of "
        "them. "
        "A pass takes as long as the slower of reading all weights once and of the products of its tokens with them, "
        "the embedding counted too; cache and attention are left aside. How many times as many tokens per second does "
        "the diffusion model write?",
        bank_served_text(m, &s), bank_peak_text(m, s.peak_flops_per_s), (long long)B, (long long)block,
        (long long)each);
    bank_slip(q, u, "This takes both passes to last as long: beyond the ridge a pass of B*b tokens takes longer.");
    bank_slip(q, b, "These are all tokens of the block: a pass settles u.");
    bank_slip(q, u / b, "This is for arithmetic alone: while weights are read it is free.");
    bank_slip(q, u * step_of(&s, 1) / step_of(&s, b), "This is one sequence.");
    bank_slip(q, many / one / u, "Upside down: the diffusion model's rate is what is divided.");
    bank_slip(q, one / many, "This settles one token in a pass.");
    bank_step(q, "gain = u * max(W/bandwidth, 2*N*B/peak) / max(W/bandwidth, 2*N*B*b/peak)");
    bank_step(q, bank_printf(m, "ridge: %.4g tokens; a step has %lld, a pass %lld", ridge, (long long)B,
                             (long long)(B * block)));
    bank_step(
        q, bank_printf(m, "step %s, pass %s", bank_shown(m, UNITS_SECONDS, one), bank_shown(m, UNITS_SECONDS, many)));
    bank_step(q, bank_printf(m, "%lld * %s / %s = %.4g", (long long)each, bank_shown(m, UNITS_SECONDS, one),
                             bank_shown(m, UNITS_SECONDS, many), q->value));
    return ERR_OK;
}
