#include "calc/learn/bank_serving.h"

#include <math.h>

#include "calc/serve/price.h"

enum err_code bank_fleet_cache(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t GPUS[] = {2, 4, 8}, MEMORY[] = {24, 40, 48, 80, 141, 180};
    const int64_t n = bank_pick(m, 3, GPUS);
    int64_t M, W;
    (void)e;
    do {
        M = bank_pick(m, 6, MEMORY);
        W = bank_draw(m, 6, 150);
    } while (W > M - 4 || W * 8 < M);
    const double gpus = (double)n, memory = (double)M, weights = (double)W;
    const double one = gpus * memory - weights, many = gpus * (memory - weights);
    bank_ask(q, UNITS_RATIO, one / many, 0.01, "a ratio");
    q->text =
        bank_printf(m,
                    "A model's weights take %lld GB, and a GPU has %lld GB for weights and cache. On %lld GPUs it "
                    "can run as %lld replicas, each with all weights, or as one copy sharded over all of them, "
                    "weights and cache split evenly. How many times as many sequences fit in the cache of the "
                    "sharded copy as in those of all replicas together?",
                    (long long)W, (long long)M, (long long)n, (long long)n);
    bank_slip(q, many / one, "This is the other way round.");
    bank_slip(q, one / (memory - weights), "This compares with one replica: there are several.");
    bank_slip(q, 1, "The memory is the same, but replicas hold the weights several times.");
    bank_slip(q, gpus, "This is as if the sharded copy's weights took no room.");
    bank_slip(q, memory / (memory - weights), "The sharded copy has its weights, too, once.");
    bank_step(q, bank_printf(m, "sharded: n*M - W = %lld * %lld - %lld = %.0f GB of cache", (long long)n, (long long)M,
                             (long long)W, one));
    bank_step(q, bank_printf(m, "replicas: n*(M - W) = %lld * %lld = %.0f GB", (long long)n, (long long)(M - W), many));
    bank_step(q, bank_printf(m, "%.0f / %.0f = %.4g, whatever a sequence takes", one, many, one / many));
    return ERR_OK;
}

enum err_code bank_fleet_step(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t GPUS[] = {2, 4, 8};
    const int64_t n = bank_pick(m, 3, GPUS), L = bank_draw(m, 24, 90), W = bank_draw(m, 14, 150),
                  us = bank_draw(m, 4, 40);
    const double t = (double)n, layers = (double)L, rate = (double)bank_draw(m, 9, 80) / 10; /* not a unit */
    const double one = (double)us / 1e6, sums = 2 * layers * one;                            /* not a unit */
    const double read = (double)W / (rate * 1e3);                                            /* not a unit */
    const double gain = read / (read / t + sums);
    (void)e;
    bank_ask(q, UNITS_RATIO, gain, 0.01, "a ratio");
    q->text =
        bank_printf(m,
                    "One sequence decodes; a step reads all weights, %lld GB, at %g TB/s, and nothing else "
                    "counts. Sharded over %lld GPUs each reads its part, but in each of the %lld layers attention "
                    "and MLP end in a sum over all GPUs that takes %lld us. How many times faster is a step of "
                    "the sharded copy than that of a replica on one GPU?",
                    (long long)W, rate, (long long)n, (long long)L, (long long)us);
    bank_slip(q, t, "This leaves out the sums: their time does not shrink with more GPUs.");
    bank_slip(q, read / (read / t + sums / 2), "This has one sum a layer: attention and MLP end in one each.");
    bank_slip(q, read / (read / t + one), "This is one sum in all: there are two in every layer.");
    bank_slip(q, read / (read / t + sums / t), "This splits the time of a sum over the GPUs: all take part in it.");
    bank_slip(q, 1 / gain, "This is the other way round.");
    bank_slip(q, read / sums, "This leaves out what each GPU still reads.");
    bank_step(
        q, bank_printf(m, "replica: %lld GB / %g TB/s = %s", (long long)W, rate, bank_shown(m, UNITS_SECONDS, read)));
    bank_step(q, bank_printf(m, "sharded: that over %lld, and 2*L sums: %s + %s", (long long)n,
                             bank_shown(m, UNITS_SECONDS, read / t), bank_shown(m, UNITS_SECONDS, sums)));
    bank_step(q, bank_printf(m,
                             "%.4g times as fast on %lld times the GPUs; as replicas they answer %lld such requests "
                             "at a time, each at the old pace",
                             gain, (long long)n, (long long)n));
    return ERR_OK;
}

enum err_code bank_fleet_price(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const double gpus = (double)bank_draw(m, 2, 24), price = (double)bank_draw(m, 79, 690) / 100; /* not a unit */
    const double rate = (double)bank_draw(m, 4, 300) / 10;                                        /* not a unit */
    const int64_t prefill = bank_draw(m, 6, 45), decode = bank_draw(m, 20, 95 - prefill);
    const double in = (double)bank_draw(m, 150, 4000), out = (double)bank_draw(m, 60, 900);
    const struct price_use use = {.gpus = gpus,
                                  .usd_per_h = price,
                                  .power_w = (double)NAN,
                                  .prefill_frac = (double)prefill / 100, /* not a unit */
                                  .decode_frac = (double)decode / 100,   /* not a unit */
                                  .in_tok_per_s = rate * in,
                                  .out_tok_per_s = rate * out};
    const struct price_cost c = price_cost(&use);
    const double share = (double)decode / (double)(prefill + decode);
    (void)e;
    bank_ask(q, UNITS_USD_PER_MTOK, c.usd_per_mtok_out, 0.01, "dollars per million tokens with their unit");
    q->text =
        bank_printf(m,
                    "%.0f GPUs at $%g an hour each answer %g requests a second, with %.0f tokens in and %.0f out. "
                    "They prefill for %lld %% of the time, decode for %lld %% and idle for the rest. All of their "
                    "price is split between tokens in and tokens out by the time that each takes. What does a "
                    "million tokens out cost?",
                    gpus, price, rate, in, out, (long long)prefill, (long long)decode);
    bank_slip(q, c.usd_per_mtok, "This charges the answers for everything: prompts take a share.");
    bank_slip(q, c.usd_per_mtok_in, "This is a million tokens in.");
    bank_slip(q, c.usd_per_mtok * (double)decode / 100, /* not a unit */
              "This charges nobody for idle time: all of the price is split.");
    bank_slip(q, c.usd_per_mtok * out / (in + out), "This splits by tokens, not by time.");
    bank_slip(q, c.usd_per_mtok_out / gpus, "This is one GPU.");
    bank_slip(q, c.usd_per_mtok_out * 3600,
              "This takes the hourly price for each second: an hour has 3600."); /* not a unit */
    bank_step(q, bank_printf(m, "price: %.0f * $%g = $%.4g an hour", gpus, price, c.usd_per_h));
    bank_step(q, bank_printf(m, "share of answers: %lld / (%lld + %lld) = %.4g", (long long)decode, (long long)prefill,
                             (long long)decode, share));
    bank_step(q, bank_printf(m, "tokens out: %g * %.0f * 3600 = %s an hour", rate, out,
                             bank_digits(m, floor(rate * out * 3600)))); /* not a unit */
    bank_step(q,
              bank_printf(m, "$%.4g * %.4g over that, for a million: $%.4g", c.usd_per_h, share, c.usd_per_mtok_out));
    return ERR_OK;
}
