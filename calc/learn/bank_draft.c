#include "calc/learn/bank_scale.h"

#include <math.h>

#include "calc/time/speculate.h"

#define INT(n) sym_int(m->c, (n))

static struct speculate_accept constant(double a) { return (struct speculate_accept){.at = {a}, .n = 1}; }

/* Times of passes in whole tenths of a millisecond, so that the text has them in full. */
struct pace {
    int64_t draft, decode, gamma; /* tenths of a millisecond */
    double drafted;               /* time of all drafts over that of a decode step */
};

static struct pace draw_pace(struct exercise_maker *m)
{
    struct pace r = {.decode = bank_draw(m, 97, 421), .gamma = bank_draw(m, 2, 7)};
    r.draft = bank_draw(m, r.decode / 40 + 1, r.decode / 6);
    r.drafted = (double)(r.gamma * r.draft) / (double)r.decode;
    return r;
}

static const char *pace_text(struct exercise_maker *m, const struct pace *r)
{
    return bank_printf(m,
                       "A decode step of the target takes %.1f ms, one of the draft %.1f ms. The draft proposes %lld "
                       "tokens one after the other, then the target judges them in one pass, which takes as long as a "
                       "decode step; when all are kept, it yields one more token.",
                       (double)r->decode / 10, (double)r->draft / 10, (long long)r->gamma);
}

enum err_code bank_draft_speedup(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct pace r = draw_pace(m);
    const int64_t hundredths = bank_draw(m, 45, 92);
    const double a = (double)hundredths / 100, n = (double)r.gamma; /* not a unit */
    const struct speculate_accept accept = constant(a);
    const double tokens = speculate_tokens(&accept, r.gamma, true), gain = speculate_speedup(tokens, 1, r.drafted, 1);
    (void)e;
    bank_ask(q, UNITS_RATIO, gain, 0.01, "a ratio");
    q->text = bank_printf(m,
                          "%s A drafted token is kept with probability %lld %% when all before it were. How many times "
                          "as many tokens per second are decoded with the draft as without it?",
                          pace_text(m, &r), (long long)hundredths);
    bank_slip(q, tokens, "These are tokens of a step: it takes longer than a decode step, as drafts take time.");
    bank_slip(q, tokens / r.drafted, "This leaves out the pass that judges the drafts.");
    bank_slip(q, speculate_speedup(tokens, 1, r.drafted / n, 1), "This is the time of one draft: each takes a pass.");
    bank_slip(q, speculate_speedup(speculate_tokens(&accept, r.gamma, false), 1, r.drafted, 1),
              "This leaves out the further token when all are kept.");
    bank_slip(q, speculate_speedup(1 + n * a, 1, r.drafted, 1),
              "This keeps each draft by itself: after a refused one the rest is thrown away.");
    bank_slip(q, speculate_speedup(n + 1, 1, r.drafted, 1), "This keeps all drafts: it is what no draft exceeds.");
    bank_slip(q, 1 / gain, "This is the part of the time that is left, not the factor.");
    bank_step(q, "gain = tokens * decode / (n*draft + decode), tokens = (1 - a^(n+1))/(1 - a)");
    bank_step(q, bank_printf(m, "tokens: (1 - %g^%lld) / (1 - %g) = %.4g", a, (long long)r.gamma + 1, a, tokens));
    bank_step(q, bank_printf(m, "time: %lld * %.1f + %.1f = %.1f ms", (long long)r.gamma, (double)r.draft / 10,
                             (double)r.decode / 10, (double)(r.gamma * r.draft + r.decode) / 10));
    bank_step(q, bank_printf(m, "%.4g * %.1f / %.1f = %.4g", tokens, (double)r.decode / 10,
                             (double)(r.gamma * r.draft + r.decode) / 10, gain));
    return ERR_OK;
}

/* The acceptance at which a chain yields so many tokens; NAN when it never does. The yield rises with it. */
static double accept_of(double tokens, int64_t gamma, bool bonus)
{
    const struct speculate_accept all = constant(1);
    double lo = 0, hi = 1;
    if (!(tokens >= 1 && tokens <= speculate_tokens(&all, gamma, bonus))) return (double)NAN;
    for (int i = 0; i < 60; i++) { /* halvings: below a unit in the last place */
        const struct speculate_accept a = constant((lo + hi) / 2);
        *(speculate_tokens(&a, gamma, bonus) < tokens ? &lo : &hi) = (lo + hi) / 2;
    }
    return (lo + hi) / 2;
}

/* What the lecture quotes of Chinchilla: 4 drafts at 1.8 ms beside 14.1 ms. Source: Chen et al., arXiv 2302.01318,
 * section 4 (times) and table 1 (gains). */
static const char *lecture_text(struct exercise_maker *m)
{
    const double drafted = 4 * 1.8 / 14.1, low = 1.92, high = 2.46;
    const struct speculate_accept all = constant(1);
    return bank_printf(m,
                       "the lecture's Chinchilla, 4 drafts of 1.8 ms beside 14.1 ms: %.2f times is an acceptance of "
                       "%.2f, %.2f times one of %.2f, and no acceptance gives more than %.2f times",
                       low, accept_of(low * (drafted + 1), 4, true), high, accept_of(high * (drafted + 1), 4, true),
                       speculate_speedup(speculate_tokens(&all, 4, true), 1, drafted, 1));
}

enum err_code bank_draft_worth(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct pace r;
    double gain, tokens;
    (void)e;
    do { /* a gain that is one, in hundredths */
        r = draw_pace(m);
        const struct speculate_accept accept = constant((double)bank_draw(m, 50, 93) / 100); /* not a unit */
        gain = speculate_speedup(speculate_tokens(&accept, r.gamma, true), 1, r.drafted, 1);
        gain = round(100 * gain) / 100; /* not a unit */
        tokens = gain * (r.drafted + 1);
    } while (gain < 1.1 || isnan(accept_of(tokens, r.gamma, true)));
    const double a = accept_of(tokens, r.gamma, true), n = (double)r.gamma;
    bank_ask(q, UNITS_FRAC, a, 0.01, "a probability");
    q->text = bank_printf(m,
                          "%s With the draft %.2f times as many tokens per second are decoded as without it. With "
                          "which probability is a drafted token kept when all before it were, if that is the same at "
                          "all places?",
                          pace_text(m, &r), gain);
    bank_slip(q, (tokens - 1) / n,
              "This is the part of all drafts that is kept: after a refused one the rest is "
              "thrown away.");
    bank_slip(q, accept_of(gain, r.gamma, true), "This takes drafts to cost no time.");
    bank_slip(q, accept_of(tokens, r.gamma, false), "This leaves out the further token when all are kept.");
    bank_slip(q, 1 - 1 / tokens, "This is for an endless draft: it ends after so many tokens.");
    bank_slip(q, accept_of(gain * (r.drafted / n + 1), r.gamma, true),
              "This is the time of one draft: each takes a "
              "pass.");
    bank_step(q, "gain = tokens / (n*draft/decode + 1), so tokens = gain * (n*draft/decode + 1)");
    bank_step(q, bank_printf(m, "%.2f * (%lld * %.1f / %.1f + 1) = %.4g tokens a step, of at most %lld", gain,
                             (long long)r.gamma, (double)r.draft / 10, (double)r.decode / 10, tokens,
                             (long long)r.gamma + 1));
    bank_step(q, bank_printf(m, "1 + a + ... + a^%lld = %.4g at a = %.4g", (long long)r.gamma, tokens, a));
    bank_step(q, lecture_text(m));
    return ERR_OK;
}

enum err_code bank_draft_ridge(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const struct {
        const char *text;
        double bytes;
    } HELD[] = {{"bf16", 2}, {"bf16", 2}, {"8 bits", 1}, {"4 bits", 0.5}};
    struct hw hw;
    double peak;
    TRY(bank_device_16bit(m, &hw, &peak, e));
    const size_t held = (size_t)bank_draw(m, 0, 3);
    const bool tree = bank_draw(m, 0, 2) == 0;
    const int64_t drafted = tree ? bank_draw(m, 16, 64) : bank_draw(m, 1, 7);
    const double rows = (double)drafted + 1, all = hw_ridge(&hw, HW_BF16) * HELD[held].bytes / 2;
    bank_ask(q, UNITS_COUNT, all / rows, 0.01, "a number of sequences (need not be whole)");
    q->things = "sequence,seq";
    q->text = bank_printf(
        m,
        "A dense target with weights in %s is multiplied in bf16 on one %s with a bandwidth of %s and a dense peak of "
        "%s. %s of %lld tokens for each sequence %s judged in one pass, in which the last token of the sequence stands "
        "too. Count products with weights alone, and of their bytes the weights. At how many sequences does arithmetic "
        "take as long as reading, so that further drafts are no longer free?",
        HELD[held].text, hw.name, bank_shown(m, UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s), bank_peak_text(m, peak),
        tree ? "A tree" : "A draft", (long long)drafted, "is");
    bank_slip(q, all, "This is the batch of a decode step: each sequence brings several tokens here.");
    bank_slip(q, all / (double)drafted, "This leaves out the last token, which the pass takes along.");
    bank_slip(q, all / rows * 2, "This counts a multiply-add as one flop: it is two.");
    bank_slip(q, all * rows, "Upside down: tokens of a pass are what reaches the ridge, and there are more of them.");
    bank_slip(q, hw_ridge(&hw, HW_BF16) / rows, "This takes two bytes a weight: read again how they are stored.");
    bank_step(q, "flops 2*P*B*(n+1), bytes b*P for P weights: equal times at B*(n+1) = peak*b/(2*bandwidth)");
    bank_step(q, bank_printf(m, "%s * %g / (2 * %s) = %.4g tokens", bank_peak_text(m, peak), HELD[held].bytes,
                             bank_shown(m, UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s), all));
    bank_step(q, bank_printf(m, "%.4g / %.0f = %.4g sequences", all, rows, all / rows));
    return ERR_OK;
}

static double touched(double E, double k, double n) { return E * (1 - pow(1 - k / E, n)); }
static double fewer(double a, double b) { return a < b ? a : b; }

/* Bytes of routed experts of one layer that a pass of T tokens of each of B sequences reads. */
static enum err_code read_experts(struct exercise_maker *m, const struct model *d, int64_t B, int64_t T, double *out,
                                  struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {
        .name = "verify", .B = INT(B), .T = INT(T), .S = INT(1024), .all_logits = true}; /* not a unit */
    struct cost_ops ops;
    double x;
    TRY(bank_arch_pass(m, d, &v, &pass, true, &ops, e));
    *out = 0;
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind == OP_EXPERTS && sym_constant(ops.op[i].weight_bytes, &x)) *out += x;
    return sym_check(m->c, e);
}

enum err_code bank_draft_experts(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t EXPERTS[] = {8, 16, 32, 64, 128, 160, 256};
    struct model d;
    double decode, verify;
    TRY(bank_decoder(m, &d, e));
    const int64_t experts = bank_pick(m, 7, EXPERTS), taken = bank_draw(m, 1, experts < 32 ? 2 : 8);
    const int64_t gamma = bank_draw(m, 2, 6), B = bank_draw(m, 1, experts / taken / 2 + 1);
    d.kinds[0].ffn =
        (struct ffn){.kind = FFN_MOE, .gated = true, .width = 1408, .experts = experts, .experts_per_token = taken};
    d.kinds[0].label = "attention + experts";
    TRY(read_experts(m, &d, B, 1, &decode, e));
    TRY(read_experts(m, &d, B, gamma + 1, &verify, e));
    const double E = (double)experts, k = (double)taken, n = (double)B, T = (double)gamma + 1;
    bank_ask(q, UNITS_RATIO, verify / decode, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "A layer has E = %lld routed experts, and the router sends each token to k = %lld different ones, all equally "
        "likely. B = %lld sequences are decoded. Instead of their last tokens alone, a pass takes through the model "
        "the last token and %lld drafted ones of each. How many times as many bytes of experts does it read as a "
        "decode step, on average, when each expert that some token needs is read once?",
        (long long)experts, (long long)taken, (long long)B, (long long)gamma);
    bank_slip(q, 1, "Dense weights are read once whatever the tokens, but drafted tokens choose experts of their own.");
    bank_slip(q, T, "This takes all choices for different experts: tokens meet at experts.");
    bank_slip(q, touched(E, k, n * (T - 1)) / touched(E, k, n),
              "This leaves out the last token, which the pass takes "
              "along.");
    bank_slip(q, touched(E, 1, n * T * k) / touched(E, 1, n * k),
              "This lets a token choose one expert twice: its k are different.");
    bank_slip(q, touched(E, k, T) / touched(E, k, 1), "This is one sequence.");
    bank_slip(q, fewer(E, n * T * k) / fewer(E, n * k),
              "This takes all choices for different ones, up to all experts.");
    bank_slip(q, decode / verify, "Upside down: the pass of drafts is what is divided.");
    bank_step(q, "n tokens need E*(1 - (1 - k/E)^n) experts");
    bank_step(q, bank_printf(m, "decode: n = %lld, %.5g experts", (long long)B, touched(E, k, n)));
    bank_step(q, bank_printf(m, "with drafts: n = %lld * %lld, %.5g experts", (long long)B, (long long)gamma + 1,
                             touched(E, k, n * T)));
    bank_step(q, bank_printf(m, "ratio %.4g: judging drafts is not free with experts, least of all in small batches",
                             verify / decode));
    return ERR_OK;
}
