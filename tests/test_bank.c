/* The exercises on memory and on time. */
#include "tests/bank.h"

/* Sizes of a decoder and the counts of it, matrix by matrix. */
struct sizes {
    double L, D, F, N, K, H, V;
};

static struct sizes sizes_in(const char *t)
{
    return (struct sizes){.L = behind(t, "L = "),
                          .D = behind(t, "D = "),
                          .F = behind(t, "F = "),
                          .N = behind(t, "N = "),
                          .K = behind(t, "K = "),
                          .H = behind(t, "H = "),
                          .V = behind(t, "V = ")};
}

static double count(struct sizes s, int ends, int mlp_matrices, bool o_proj)
{
    double n = 0;
    for (int i = 0; i < ends; i++) n += s.V * s.D;
    for (double l = 0; l < s.L; l++) {
        n += s.D * (s.N * s.H) + s.D * (s.K * s.H) + s.D * (s.K * s.H);
        if (o_proj) n += s.N * s.H * s.D;
        for (int i = 0; i < mlp_matrices; i++) n += s.D * s.F;
    }
    return n;
}

static void check_parameters(struct checked *k)
{
    const char *t = k->q->text;
    const struct sizes s = sizes_in(t);
    struct sizes wide = s;
    wide.K = s.N;
    const int ends = says(t, "(tied)") ? 1 : 2;
    assert_true(says(t, "(tied)") != says(t, "(not tied)"));
    answer(k, count(s, ends, 3, true));
    slip(k, "leaves out embedding and", count(s, 0, 3, true));
    slip(k, "leaves out the embedding", count(s, ends - 1, 3, true));
    slip(k, "D x D", count(s, ends, 3, false) + s.L * s.D * s.D + s.L * (s.D * s.D - s.D * s.N * s.H));
    slip(k, "leaves out the output head", count(s, 1, 3, true));
    slip(k, "head of its own", count(s, 2, 3, true));
    slip(k, "two matrices", count(s, ends, 2, true));
    slip(k, "W_K and W_V", count(wide, ends, 3, true));
    slip(k, "leaves out W_O", count(s, ends, 3, false));
}

static void check_parameters_formula(struct checked *k)
{
    const char *t = k->q->text;
    const bool tied = says(t, "tied to the embedding"), gated = says(t, "is gated"), mha = says(t, "as many KV heads");
    const struct sizes s = {at("L"), at("D"), at("F"), at("N"), mha ? at("N") : at("K"), at("H"), at("V")};
    struct sizes wide = s, one = s;
    wide.K = s.N;
    one.L = 1;
    formula(k, count(s, tied ? 1 : 2, gated ? 3 : 2, true));
    const double projections = mha ? 4 : 2, all = count(s, tied ? 1 : 2, gated ? 3 : 2, true);
    slip_formula(k, "leaves out embedding and", count(s, 0, gated ? 3 : 2, true));
    slip_formula(k, "leaves out the embedding", count(s, tied ? 0 : 1, gated ? 3 : 2, true));
    slip_formula(k, "D x D", all + projections * s.L * s.D * (s.D - s.N * s.H));
    slip_formula(k, "leaves out the output head", count(s, 1, gated ? 3 : 2, true));
    slip_formula(k, "head of its own", count(s, 2, gated ? 3 : 2, true));
    slip_formula(k, "in the MLP", count(s, tied ? 1 : 2, 2, true));
    slip_formula(k, "counts a gate", count(s, tied ? 1 : 2, 3, true));
    slip_formula(k, "W_K and W_V", count(wide, tied ? 1 : 2, gated ? 3 : 2, true));
    slip_formula(k, "one projection", count(s, tied ? 1 : 2, gated ? 3 : 2, false));
    slip_formula(k, "one layer", count(one, tied ? 1 : 2, gated ? 3 : 2, true));
}

static void check_weight_bytes(struct checked *k)
{
    const double n = before(k->q->text, " parameters");
    const double bytes = says(k->q->text, "fp32") ? 4 : says(k->q->text, "bf16") ? 2 : says(k->q->text, "fp8") ? 1 : 0;
    answer(k, n * bytes);
    slip(k, "bits", 8 * n * bytes);
    slip(k, "a parameter for a byte", n);
    slip(k, "2 bytes", 2 * n);
    slip(k, "4 bytes", 4 * n);
}

static void check_group_scales(struct checked *k)
{
    const char *t = k->q->text;
    const double layers = before(t, " parameters"), ends = behind(t, "together "), g = behind(t, "g = ");
    const double zero = behind(t, "zero point of "), codes = layers / 2, scales = layers / g * 2;
    const double zeros = layers / g * zero / 8;
    answer(k, codes + scales + zeros + 2 * ends);
    slip(k, "beside its weights", codes + 2 * ends);
    slip(k, "zero points", codes + scales + 2 * ends);
    slip(k, "leaves out embedding", codes + scales + zeros);
    slip(k, "every weight a scale", codes + layers * (16 + zero) / 8 + 2 * ends);
    slip(k, "quantises embedding", (layers + ends) * (4 + (16 + zero) / g) / 8);
}

/* -- cache -- */

static double cache(double tokens, double L, double K, double H, double bytes)
{
    return tokens * 2 * L * K * H * bytes;
}

static void check_cache_formula(struct checked *k)
{
    const char *t = k->q->text;
    const double B = at("B"), S = at("S"), b = at("b_kv"), L = at("L"), K = at("K"), H = at("H");
    const double tokens = says(t, "batch of B") ? B * S : says(t, "one sequence") ? S : 1;
    assert_true(tokens > 1 || says(t, "for one token"));
    formula(k, cache(tokens, L, K, H, b));
    slip_formula(k, "keys or values alone", tokens * L * K * H * b);
    slip_formula(k, "query heads", cache(tokens, L, at("N"), H, b));
    slip_formula(k, "model width", tokens * 2 * L * at("D") * b);
    slip_formula(k, "elements", cache(tokens, L, K, H, 1));
    slip_formula(k, "one layer", cache(tokens, 1, K, H, b));
    slip_formula(k, "one sequence", cache(S, L, K, H, b));
    slip_formula(k, "one token", cache(B, L, K, H, b));
}

static void check_cached(struct checked *k, double tokens, double bytes)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = ");
    answer(k, cache(tokens, L, K, H, bytes));
    slip(k, "one of these is missing", cache(tokens, L, K, H, bytes) / 2);
    slip(k, "keys or values alone", cache(tokens, L, K, H, bytes) / 2);
    slip(k, "query heads", cache(tokens, L, N, H, bytes));
    slip(k, "one layer", cache(tokens, 1, K, H, bytes));
    slip(k, "D/N", cache(tokens, L, K, behind(t, "D = ") / N, bytes));
    slip(k, "model width", cache(tokens, L, 1, behind(t, "D = "), bytes));
}

static void check_cache_token(struct checked *k) { check_cached(k, 1, says(k->q->text, "kept in fp8") ? 1 : 2); }

static void check_cache_batch(struct checked *k)
{
    const char *t = k->q->text;
    const double B = behind(t, "B = "), S = behind(t, "S = "), token = k->q->value / (B * S);
    check_cached(k, B * S, 2);
    slip(k, "one sequence", S * token);
    slip(k, "one token", B * token);
}

static void check_cache_of_total(struct checked *k)
{
    const char *t = k->q->text;
    const double total = behind(t, "takes "), n = before(t, " parameters"), B = behind(t, "B = ");
    answer(k, total - 2 * n);
    slip(k, "figure of the report", total);
    slip(k, "a parameter for a byte", total - n);
    slip(k, "the weights, not", 2 * n);
    slip(k, "one sequence", (total - 2 * n) / B);
}

static void check_without_cache(struct checked *k)
{
    const double P = behind(k->q->text, "P = "), G = behind(k->q->text, "G = ");
    double all = 0, prompt = 0, full = 0, late = 0;
    for (double i = 0; i < G; i++) {
        all += P + i;
        late += P + i + 1;
        prompt += P;
        full += P + G;
    }
    answer(k, all);
    slip(k, "with a cache", P + G - 1);
    slip(k, "prompt alone each", prompt);
    slip(k, "final length", full);
    slip(k, "too many in each", late);
    slip(k, "leaves out a pass", all - P);
    slip(k, "one pass too many", all + P + G);
}

static void check_gqa_saving(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), N = behind(t, "N = "), K = behind(t, "K = ");
    const double H = behind(t, "H = "), B = behind(t, "B = "), S = behind(t, "S = ");
    const double cached = cache(B * S, L, N, H, 2) - cache(B * S, L, K, H, 2);
    const double weights = 2 * L * (2 * D * N * H - 2 * D * K * H);
    answer(k, cached + weights);
    slip(k, "cache alone", cached);
    slip(k, "weights alone", weights);
    slip(k, "one sequence", weights + cached / B);
    slip(k, "what is left", weights + cache(B * S, L, K, H, 2));
    slip(k, "keys or values alone", weights + cached / 2);
}

static void check_latent_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double N = behind(t, "N = "), H = behind(t, "H = "), C = behind(t, "C = "), R = behind(t, "R = ");
    answer(k, (N * H + N * H) / (C + R));
    slip(k, "leaves out the rope", 2 * N * H / C);
    slip(k, "off by two", N * H / (C + R));
    slip(k, "part that is left", (C + R) / (2 * N * H));
    slip(k, "each head a rope", 2 * N * H / (C + N * R));
    slip(k, "one head", 2 * H / (C + R));
}

static void check_window_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), K = behind(t, "K = "), H = behind(t, "H = "), W = behind(t, "W = ");
    const double S = behind(t, "S = "), every = behind(t, "layer in ");
    double tokens = 0, swapped = 0, global = 0;
    for (double l = 0; l < L; l++) {
        const bool whole = fmod(l, every) == 0;
        tokens += whole ? S : W;
        swapped += whole ? W : S;
        global += whole ? S : 0;
    }
    assert_true(S >= W);
    answer(k, cache(tokens, 1, K, H, 2));
    slip(k, "whole context in every", cache(S, L, K, H, 2));
    slip(k, "every layer to its window", cache(W, L, K, H, 2));
    slip(k, "leaves out the layers", cache(global, 1, K, H, 2));
    slip(k, "swaps", cache(swapped, 1, K, H, 2));
    slip(k, "keys or values alone", cache(tokens, 1, K, H, 2) / 2);
}

static void check_cache_equals_weights(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), B = behind(t, "B = "), L = behind(t, "L = "), N = behind(t, "N = ");
    const double K = behind(t, "K = "), H = behind(t, "H = ");
    answer(k, 2 * n / (B * cache(1, L, K, H, 2)));
    slip(k, "context of one sequence", 2 * n / cache(1, L, K, H, 2));
    slip(k, "a parameter for a byte", n / (B * cache(1, L, K, H, 2)));
    slip(k, "keys or values alone", 2 * n / (B * cache(1, L, K, H, 1)));
    slip(k, "query heads", 2 * n / (B * cache(1, L, N, H, 2)));
    slip(k, "one layer", 2 * n / (B * cache(1, 1, K, H, 2)));
}

/* The most sequences, by trying. */
static double fitting(double room, double one)
{
    double n = 0;
    while ((n + 1) * one <= room) n++;
    return n;
}

static void check_largest_batch(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), memory = behind(t, "share "), S = behind(t, "S = ");
    const double L = behind(t, "L = "), N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = ");
    const double one = cache(S, L, K, H, 2), fits = fitting(memory - 2 * n, one);
    assert_true(fits >= 1);
    answer(k, fits);
    slip(k, "no room for the weights", fitting(memory, one));
    slip(k, "a parameter for a byte", fitting(memory - n, one));
    slip(k, "GB for GiB", fitting(memory / 1e9 * 0x1p30 - 2 * n, one));
    slip(k, "keys or values alone", fitting(memory - 2 * n, one / 2));
    slip(k, "query heads", fitting(memory - 2 * n, cache(S, L, N, H, 2)));
    slip(k, "round down", fits + 1);
}

/* -- decoding -- */

struct workload {
    double n, token, bandwidth, B, S, weights, cached, one, step_s;
};

static struct workload workload_in(const char *t)
{
    struct workload w = {.n = before(t, " parameters"), .token = before(t, " bytes per token")};
    w.bandwidth = behind(t, "bandwidth of ");
    w.S = behind(t, "S = ");
    w.B = says(t, "B = ") ? behind(t, "B = ") : (double)NAN;
    w.weights = w.n + w.n;
    w.one = w.S * w.token;
    w.cached = w.B * w.one;
    w.step_s = (w.weights + w.cached) / w.bandwidth;
    return w;
}

/* A slip that works at the peak of the device, which the text does not state: one of the dense 16-bit peaks. */
static void slip_at_peak(struct checked *k, double flops, bool rate)
{
    static const double PEAKS[] = {989e12, 989.4e12, 312e12, 2250e12, 1307.4e12};
    for (size_t i = 0; i < k->q->slips_n; i++) {
        if (!says(k->q->slips[i].hint, "of the arithmetic")) continue;
        for (size_t j = 0; j < sizeof PEAKS / sizeof PEAKS[0]; j++)
            if (near_to(k->q->slips[i].value, rate ? PEAKS[j] / flops : flops / PEAKS[j])) k->seen[i] = true;
    }
}

static void check_decode_latency(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    answer(k, w.step_s);
    slip(k, "weights alone", w.weights / w.bandwidth);
    slip(k, "cache alone", w.cached / w.bandwidth);
    slip(k, "cache of one sequence", (w.weights + w.one) / w.bandwidth);
    slip(k, "a parameter for a byte", (w.n + w.cached) / w.bandwidth);
    slip(k, "again for each sequence", w.B * w.step_s);
    slip(k, "each token of the batch", w.step_s / w.B);
    slip_at_peak(k, 2 * w.n * w.B, false);
}

static void check_decode_throughput(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    answer(k, w.B / w.step_s);
    slip(k, "one token in a step", 1 / w.step_s);
    slip(k, "weights alone", w.B * w.bandwidth / w.weights);
    slip(k, "cache alone", w.B * w.bandwidth / w.cached);
    slip(k, "cache of one sequence", w.B * w.bandwidth / (w.weights + w.one));
    slip(k, "a parameter for a byte", w.B * w.bandwidth / (w.n + w.cached));
    slip_at_peak(k, 2 * w.n, true);
}

static void check_latency_formula(struct checked *k)
{
    const bool rate = says(k->q->text, "tokens per second");
    const double w = at("w"), bw = at("bw"), B = at("B"), S = at("S"), L = at("L"), K = at("K"), H = at("H");
    const double made = rate ? B : 1, bytes[] = {
                                          w + cache(B * S, L, K, H, 2),       w,
                                          cache(B * S, L, K, H, 2),           w + cache(S, L, K, H, 2),
                                          w + cache(B * S, L, at("N"), H, 2), w + cache(B * S, L, K, H, 1),
                                      };
    const char *const hint[] = {NULL, "weights alone", "cache alone", "one sequence", "N heads", "half"};
    for (size_t i = 0; i < 6; i++) {
        const double v = rate ? made / (bytes[i] / bw) : bytes[i] / bw;
        if (hint[i])
            slip_formula(k, hint[i], v);
        else
            formula(k, v);
    }
    slip_formula(k, "one token in a step", bw / bytes[0]);
    slip_formula(k, "This is the time", bytes[0] / bw);
    slip_formula(k, "These are tokens", B * bw / bytes[0]);
    slip_formula(k, "one layer", rate ? B * bw / (w + cache(B * S, 1, K, H, 2)) : (w + cache(B * S, 1, K, H, 2)) / bw);
}

/* Throughput at a huge batch is within a part in a million of its limit, and below it. */
static void check_throughput_limit(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    const double many = 1e9, there = many * w.bandwidth / (w.weights + many * w.one);
    assert_true(there < k->q->value && k->q->value - there < 1e-6 * there);
    answer(k, w.bandwidth / w.one);
    slip(k, "at B = 1", w.bandwidth / (w.weights + w.one));
    slip(k, "keeps the weights", w.bandwidth / w.weights);
    slip(k, "one token of the cache", w.bandwidth / w.token);
    slip(k, "again", w.bandwidth / w.one / 2);
    slip_at_peak(k, 2 * w.n, true);
}

static void check_cache_takes_over(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    answer(k, w.weights / w.one);
    slip(k, "ridge", behind(k->q->text, "peak is ") / w.bandwidth);
    slip(k, "hold keys and values already", w.n / w.one);
    slip(k, "leaves out the context", w.weights / w.token);
}

static void check_gqa_speed(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), L = behind(t, "L = "), D = behind(t, "D = "), N = behind(t, "N = ");
    const double H = behind(t, "H = "), B = behind(t, "B = "), S = behind(t, "S = "), K = behind(t, "K = ");
    const double fewer = n - L * 2 * D * (N - K) * H;
    const double wide = cache(B * S, L, N, H, 2), small = cache(B * S, L, K, H, 2);
    answer(k, (2 * n + wide) / (2 * fewer + small));
    slip(k, "smaller the cache", N / K);
    slip(k, "keeps the weights", (2 * n + wide) / (2 * n + small));
    slip(k, "keeps the cache", (2 * n + wide) / (2 * fewer + wide));
    slip(k, "one sequence", (2 * n + wide / B) / (2 * fewer + small / B));
    slip(k, "part of the time", (2 * fewer + small) / (2 * n + wide));
    slip(k, "weights alone", n / fewer);
}

static void check_replicas(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    const double M = behind(k->q->text, "M = ");
    double all = 0;
    for (double i = 0; i < M; i++) all += w.B / w.step_s;
    answer(k, all);
    slip(k, "one replica", all / M);
    slip(k, "on one device", M * w.B * w.bandwidth / (w.weights + M * w.cached));
    slip(k, "faster, too", all * M);
    slip(k, "one token in a step", all / w.B);
    slip(k, "weights alone", M * w.B * w.bandwidth / w.weights);
    slip(k, "cache of one sequence", M * w.B * w.bandwidth / (w.weights + w.one));
}

static void check_token_price(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    const double usd_per_h = behind(k->q->text, "costs $"), tokens_per_h = w.B * (3600 / w.step_s);
    const double usd = 1e6 / tokens_per_h * usd_per_h, step_usd = usd / w.step_s;
    answer(k, usd);
    slip(k, "one token in a step", usd * w.B);
    slip(k, "hour for that of a second", usd * 3600);
    slip(k, "a parameter for a byte", step_usd * (w.n + w.cached) / w.bandwidth);
    slip(k, "weights alone", step_usd * w.weights / w.bandwidth);
    slip(k, "cache of one sequence", step_usd * (w.weights + w.one) / w.bandwidth);
    slip(k, "thousand", usd / 1000);
}

/* -- flops -- */

static void check_prefill_time(struct checked *k)
{
    const struct workload w = workload_in(k->q->text);
    const double peak = behind(k->q->text, "peak is "), one = 2 * w.n / peak;
    answer(k, w.S * one);
    slip(k, "training", 3 * w.S * one);
    slip(k, "multiply-add", w.S * w.n / peak);
    slip(k, "one token", one);
    slip(k, "time to read", w.weights / w.bandwidth);
    slip(k, "again for every token", w.S * w.weights / w.bandwidth);
}

static void check_forward_flops(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), routed = before(t, " are in routed"), taken = behind(t, "k = ");
    const double E = behind(t, "E = "), S = behind(t, "S = "), active = n - routed + taken * (routed / E);
    answer(k, S * active * 2);
    slip(k, "all experts", S * n * 2);
    slip(k, "training", S * active * 6);
    slip(k, "multiply-add", S * active);
    slip(k, "one token", active * 2);
    slip(k, "experts alone", S * taken * (routed / E) * 2);
    slip(k, "of all parameters", S * n * taken / E * 2);
}

static void check_attention_share(struct checked *k)
{
    const char *t = k->q->text;
    const double D = behind(t, "D = "), F = behind(t, "F = "), N = behind(t, "N = "), K = behind(t, "K = ");
    const double H = behind(t, "H = "), S = behind(t, "S = ");
    const double pairs = N * (S * S * H * 2 + S * S * H * 2), mlp = 3 * (2 * S * D * F);
    const double proj = 2 * S * D * (N * H) + 2 * (2 * S * D * (K * H)) + 2 * S * (N * H) * D;
    answer(k, pairs / (pairs + proj + mlp));
    slip(k, "half", pairs / 2 / (pairs / 2 + proj + mlp));
    slip(k, "leaves out the projections", pairs / (pairs + mlp));
    slip(k, "leaves out the MLP", pairs / (pairs + proj));
    slip(k, "projections as part", (pairs + proj) / (pairs + proj + mlp));
    slip(k, "two matrices", pairs / (pairs + proj + mlp / 3 * 2));
    slip(k, "ratio to the rest", pairs / (proj + mlp));
    slip(k, "This is the rest", (proj + mlp) / (pairs + proj + mlp));
}

static void check_mlp_bound(struct checked *k)
{
    const char *t = k->q->text;
    const double D = behind(t, "D = "), F = behind(t, "F = "), B = behind(t, "B = ");
    const double flops = 3 * 2 * B * D * F, bytes = 2 * (3 * D * F + B * D + 2 * B * F + B * D);
    const double compute_s = flops / behind(t, "peak of "), memory_s = bytes / behind(t, "bandwidth of ");
    assert_true(fabs(log(compute_s / memory_s)) > .04);
    assert_string_equal(k->q->choices[k->q->right], compute_s > memory_s ? "compute" : "memory");
    for (size_t i = 0; i < k->q->slips_n; i++) k->seen[i] = k->q->slips[i].value != (double)k->q->right;
}

static void check_training_days(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " billion") * 1e9, tokens = before(t, " trillion") * 1e12, mfu = before(t, " %") / 100;
    const double gpus = behind(t, "tokens with "), peak = behind(t, "peak of ");
    const double per_day = gpus * (peak * mfu) * 24 * 60 * 60, days = n * tokens * (2 + 4) / per_day;
    const double day_s = 24 * 60 * 60;
    assert_string_equal(k->q->bare, "days");
    answer(k, day_s * days);
    slip(k, "2 flops", day_s * n * tokens * 2 / per_day);
    slip(k, "4 flops", day_s * n * tokens * 4 / per_day);
    slip(k, "full peak", day_s * days * mfu);
    slip(k, "multiplies by the MFU", day_s * days * mfu * mfu);
    slip(k, "sparse", day_s * days / 2);
    slip(k, "one device", day_s * days * gpus);
    slip(k, "hours", day_s * days * 24);
}

static void check_training_memory(struct checked *k)
{
    const char *t = k->q->text;
    const double gpus = before(t, " devices"), memory = gpus * behind(t, "with ");
    const double held = says(t, "gradients are in fp32") ? 4 : 2, moment = says(t, "moments in fp32") ? 4 : 2;
    const double copy = says(t, "master copy") ? 4 : 0, all = held + held + moment + moment + copy;
    answer(k, memory / all);
    slip(k, "parameters alone", memory / held);
    slip(k, "leaves out the gradients", memory / (all - held));
    slip(k, "one number too few", memory / (all - held));
    slip(k, "one moment", memory / (all - moment));
    slip(k, "one of the two moments", memory / (all - moment));
    slip(k, "leaves out the two moments", memory / (all - moment - moment));
    slip(k, "one device", memory / all / gpus);
    slip(k, "GB for GiB", memory / 1e9 * 0x1p30 / all);
    slip(k, "moments in fp32", memory / (held + held + 4 + 4 + copy));
}

/* -- all of them -- */

static const struct check CHECKS[] = {
    {"parameters", check_parameters},
    {"parameters-formula", check_parameters_formula},
    {"weight-bytes", check_weight_bytes},
    {"group-scales", check_group_scales},
    {"cache-formula", check_cache_formula},
    {"cache-token", check_cache_token},
    {"cache-batch", check_cache_batch},
    {"cache-of-total", check_cache_of_total},
    {"without-cache", check_without_cache},
    {"gqa-saving", check_gqa_saving},
    {"latent-cache", check_latent_cache},
    {"window-cache", check_window_cache},
    {"cache-equals-weights", check_cache_equals_weights},
    {"largest-batch", check_largest_batch},
    {"decode-latency", check_decode_latency},
    {"decode-throughput", check_decode_throughput},
    {"latency-formula", check_latency_formula},
    {"throughput-limit", check_throughput_limit},
    {"cache-takes-over", check_cache_takes_over},
    {"mlp-bound", check_mlp_bound},
    {"gqa-speed", check_gqa_speed},
    {"replicas", check_replicas},
    {"token-price", check_token_price},
    {"prefill-time", check_prefill_time},
    {"forward-flops", check_forward_flops},
    {"attention-share", check_attention_share},
    {"training-days", check_training_days},
    {"training-memory", check_training_memory},
};
enum { CHECKS_N = sizeof CHECKS / sizeof CHECKS[0] };

static const struct exercise *row(size_t i)
{
    size_t memory, timed;
    const struct exercise *a = bank_memory(&memory), *b = bank_time(&timed);
    return i < memory ? &a[i] : i < memory + timed ? &b[i - memory] : NULL;
}

static void test_every_exercise_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHECKS_N; i++) assert_string_equal(row(i)->name, CHECKS[i].name);
    assert_null(row(CHECKS_N));
}

static void test_answers_and_slips_follow_from_the_text(void **state)
{
    (void)state;
    follow_from_the_text(CHECKS, CHECKS_N);
}

static void test_formula_slips_differ(void **state)
{
    (void)state;
    formula_slips_differ(CHECKS, CHECKS_N);
}

static void test_numbers_are_fresh(void **state)
{
    (void)state;
    numbers_are_fresh(CHECKS, CHECKS_N);
}

static void test_grading_takes_what_people_type(void **state)
{
    (void)state;
    grading_takes_what_people_type(CHECKS, CHECKS_N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exercise_is_checked),
        cmocka_unit_test(test_answers_and_slips_follow_from_the_text),
        cmocka_unit_test(test_formula_slips_differ),
        cmocka_unit_test(test_numbers_are_fresh),
        cmocka_unit_test(test_grading_takes_what_people_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
