/* The exercises on architectures. */
#include "tests/bank.h"

static double bytes_of(const char *t) { return says(t, "kept in fp8") ? 1 : 2; }

static void check_latent_token(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), H = behind(t, "H = "), C = behind(t, "C = ");
    const double R = behind(t, "R = "), b = bytes_of(t);
    double all = 0;
    for (double l = 0; l < L; l++) all += C * b + R * b;
    answer(k, all);
    slip(k, "leaves out the rope", L * C * b);
    slip(k, "each head a rope", L * (C + N * R) * b);
    slip(k, "doubles it", 2 * all);
    slip(k, "each head a latent", N * all);
    slip(k, "keys and values of every head", L * (N * H + N * H) * b);
    slip(k, "one layer", C * b + R * b);
}

static void check_latent_absorbed(struct checked *k)
{
    const bool absorbed = says(k->q->text, "in absorbed form");
    assert_true(absorbed != says(k->q->text, "in expanded form"));
    const double N = at("N"), S = at("S"), R = at("R"), width = at(absorbed ? "C" : "H"),
                 other = at(absorbed ? "H" : "C");
    double flops = 0, rope = 0;
    for (double h = 0; h < N; h++)
        for (double s = 0; s < S; s++) {
            flops += 2 * (width + R) + 2 * width;
            rope += 2 * R;
        }
    formula(k, flops);
    slip_formula(k, "This is the", N * S * (2 * (other + R) + 2 * other));
    slip_formula(k, "leaves out the rope", flops - rope);
    slip_formula(k, "weighted sum is without", flops + rope);
    slip_formula(k, "multiply-add", flops / 2);
    slip_formula(k, "one head", flops / N);
    slip_formula(k, "scores without", N * S * 2 * (width + R));
}

static void check_shared_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = ");
    const double g = behind(t, "g = "), B = behind(t, "B = "), S = behind(t, "S = "), layer = S * 2 * K * H * 2;
    double own = 0, borrowed = 0;
    for (double l = 0; l < L; l++) *(fmod(l, g) == 0 ? &own : &borrowed) += layer;
    answer(k, B * own);
    slip(k, "every layer a cache", B * (own + borrowed));
    slip(k, "layers that borrow", B * borrowed);
    slip(k, "keys or values alone", B * own / 2);
    slip(k, "one sequence", own);
    slip(k, "one group", B * layer);
    slip(k, "query heads", B * own / K * N);
}

static void check_shared_parameters(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), N = behind(t, "N = "), K = behind(t, "K = ");
    const double H = behind(t, "H = "), g = behind(t, "g = "), pair = D * (K * H) + D * (K * H), wide = D * (N * H);
    double lost = 0, kept = 0, query = 0;
    for (double l = 0; l < L; l++) {
        *(fmod(l, g) == 0 ? &kept : &lost) += pair;
        if (fmod(l, g) != 0) query += wide;
    }
    answer(k, lost);
    slip(k, "alone", lost / 2);
    slip(k, "drops W_Q as well", lost + query);
    slip(k, "drops all of attention", lost + 2 * query);
    slip(k, "one layer", pair);
    slip(k, "that stay", kept);
    slip(k, "in every layer", lost + kept);
}

static void check_window_share(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), n = behind(t, "n = "), W = behind(t, "W = "), S = behind(t, "S = ");
    double whole = 0, cut = 0, swapped = 0, rest = 0;
    for (double l = 0; l < L; l++) {
        const bool global = fmod(l, n) == 0;
        *(global ? &whole : &cut) += global ? S : fmin(S, W);
        *(global ? &swapped : &rest) += global ? fmin(S, W) : S;
    }
    answer(k, whole / (whole + cut));
    slip(k, "part of the layers:", ceil(L / n) / L);
    slip(k, "part of the layers with", cut / (whole + cut));
    slip(k, "ratio", whole / cut);
    slip(k, "one layer with one", S / (S + W));
    slip(k, "swaps", swapped / (swapped + rest));
}

static void check_window_pairs(struct checked *k)
{
    const double S = behind(k->q->text, "S = "), W = behind(k->q->text, "W = ");
    double pairs = 0, before = 0, causal = 0, late = 0, wider = 0, early = 0;
    for (double i = 1; i <= S; i++) {
        pairs += fmin(i, W);
        before += fmin(i, W) - 1;
        causal += i;
        wider += fmin(i, W + 1);
        late += i > W ? W : 0;
        early += i <= W ? i : 0;
    }
    answer(k, pairs);
    slip(k, "fewer than W", S * W);
    slip(k, "without the window", causal);
    slip(k, "at the beginning: they", late);
    slip(k, "half of W*W", late + W * W / 2);
    slip(k, "with itself", before);
    slip(k, "one more", wider);
    slip(k, "all pairs", S * S);
    assert_true(early == W * (W + 1) / 2);
}

static void check_state_crossing(struct checked *k)
{
    const char *t = k->q->text;
    const double heads = before(t, " heads, each"), n = behind(t, "n = "), P = behind(t, "P = ");
    const double N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = "), state = heads * n * P * 4;
    answer(k, state / (2 * K * H * 2));
    slip(k, "Two bytes", heads * n * P * 2 / (2 * K * H * 2));
    slip(k, "keys or values alone", state / (K * H * 2));
    slip(k, "one head", n * P * 4 / (2 * K * H * 2));
    slip(k, "a vector of P", heads * P * 4 / (2 * K * H * 2));
    slip(k, "query heads", state / (2 * N * H * 2));
    slip(k, "bytes of the state", state);
}

static void check_linear_state(struct checked *k)
{
    const char *t = k->q->text;
    const double N = behind(t, "N = "), H = behind(t, "H = "), P = behind(t, "P = "), L = behind(t, "L = ");
    const double B = behind(t, "B = "), S = behind(t, "S = ");
    double elements = 0;
    for (double i = 0; i < H; i++) elements += P;
    answer(k, B * L * N * elements * 4);
    slip(k, "state for every token", S * B * L * N * elements * 4);
    slip(k, "of all tokens", S * B * L * N * (H + P) * 4);
    slip(k, "a key and a value", B * L * N * (H + P) * 4);
    slip(k, "Two bytes", B * L * N * elements * 2);
    slip(k, "one head", B * L * elements * 4);
    slip(k, "one sequence", L * N * elements * 4);
    slip(k, "one layer", B * N * elements * 4);
}

static void check_hybrid_memory(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), K = behind(t, "K = "), H = behind(t, "H = "), B = behind(t, "B = ");
    const double S = behind(t, "S = "), heads = before(t, " heads, each"), n = behind(t, "a matrix of "),
                 P = behind(t, "P = ");
    const double layer = S * 2 * K * H * 2, state = heads * n * P * 4;
    double cached = 0, kept = 0;
    assert_true(behind(t, "n = ") == 8);
    for (double l = 0; l < L; l++) *(fmod(l, 8) == 0 ? &cached : &kept) += fmod(l, 8) == 0 ? layer : state;
    answer(k, B * (cached + kept));
    slip(k, "cache alone", B * cached);
    slip(k, "states alone", B * kept);
    slip(k, "state for every token", B * (cached + S * kept));
    slip(k, "one sequence", cached + kept);
    slip(k, "swaps", B * (7 * L / 8 * layer + L / 8 * state));
    slip(k, "Two bytes", B * (cached + kept / 2));
    slip(k, "every layer a cache", B * (L * layer));
    slip(k, "beside its state", B * (L * layer + kept));
}

/* Chance that none of n tokens takes an expert, token by token; and those left, over E experts. */
static double different(double E, double k, double n)
{
    double none = 1;
    for (double i = 0; i < n; i++) none *= (E - k) / E;
    return E - E * none;
}

static void check_experts_touched(struct checked *k)
{
    const char *t = k->q->text;
    const double E = behind(t, "E = "), taken = behind(t, "k = "), B = behind(t, "B = ");
    answer(k, different(E, taken, B));
    slip(k, "all choices", fmin(taken * B, E));
    slip(k, "all experts", E);
    slip(k, "one token", taken);
    slip(k, "no token chooses", E - different(E, taken, B));
    slip(k, "to one expert", different(E, 1, B));
    slip(k, "twice", different(E, 1, B * taken));
}

static void check_experts_active(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), V = behind(t, "V = "), N = behind(t, "N = ");
    const double K = behind(t, "K = "), H = behind(t, "H = "), E = behind(t, "E = "), F = behind(t, "F = ");
    const double taken = behind(t, "k = "), G = behind(t, "G = ");
    const double attention = D * (N * H) + D * (K * H) + D * (K * H) + (N * H) * D;
    const double expert = D * F + D * F + F * D, shared = D * G + D * G + G * D;
    double all = V * D + D * V;
    for (double l = 0; l < L; l++) all += attention + D * E + taken * expert + shared;
    answer(k, all);
    slip(k, "all parameters", all + L * (E - taken) * expert);
    slip(k, "router", all - L * D * E);
    slip(k, "shared expert", all - L * shared);
    slip(k, "one routed expert", all - L * taken * expert + L * expert);
    slip(k, "two matrices", all - L * (taken * D * F + D * G));
    slip(k, "embedding", all - 2 * V * D);
}

static void check_experts_bytes(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), E = behind(t, "E = "), F = behind(t, "F = ");
    const double taken = behind(t, "k = "), B = behind(t, "B = "), one = 2 * (D * F + D * F + F * D);
    const double mean = different(E, taken, B);
    answer(k, L * mean * one);
    slip(k, "reads all experts", L * E * one);
    slip(k, "experts of one token", L * taken * one);
    slip(k, "all choices", L * fmin(taken * B, E) * one);
    slip(k, "again for each", L * taken * B * one);
    slip(k, "one layer", mean * one);
    slip(k, "two matrices", L * mean * 2 * (D * F + F * D));
    slip(k, "a parameter for a byte", L * mean * one / 2);
}

static void check_int4_speed(struct checked *k)
{
    const char *t = k->q->text;
    const double layers = before(t, " parameters"), ends = behind(t, "together "),
                 token = before(t, " bytes per token");
    const double g = behind(t, "g = "), zero = behind(t, "zero point of "), S = behind(t, "S = "), cached = S * token;
    const double wide = 2 * layers + 2 * ends + cached, codes = layers / 2, scales = layers / g * (2 + zero / 8);
    answer(k, wide / (codes + scales + 2 * ends + cached));
    slip(k, "everything were read", 4);
    slip(k, "layers alone", 2 * layers / (codes + scales));
    slip(k, "weights alone", (2 * layers + 2 * ends) / (codes + scales + 2 * ends));
    slip(k, "leaves out scales", wide / (codes + 2 * ends + cached));
    slip(k, "quantises embedding", wide / ((layers + ends) * (4 + (16 + zero) / g) / 8 + cached));
    slip(k, "part of the time", (codes + scales + 2 * ends + cached) / wide);
}

static void check_outlier_columns(struct checked *k)
{
    const char *t = k->q->text;
    const double D = behind(t, "D = "), p = before(t, "% of them all") / 100, eight = behind(t, "to zero, at ");
    const double sixteen = behind(t, "of them all, at "), rows = 997, F = 13; /* which do not matter */
    const double whole = 2 * rows * D * F / sixteen, first = 2 * rows * D * F / eight;
    const double second = 2 * rows * (p * D) * F / sixteen;
    answer(k, whole / (first + second));
    slip(k, "without the second", whole / first);
    slip(k, "part of the time", (first + second) / whole);
    slip(k, "out of the first", whole / (first - p * first + second));
    slip(k, "second product alone", whole / second);
    slip(k, "rate of 8 bits", whole / (first + second / 2));
}

static void check_fp8_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), token = before(t, " bytes per token"), B = behind(t, "B = ");
    const double S = behind(t, "S = "), one = S * token, w = 2 * n;
    answer(k, (w + B * one) / (w + B * one / 2));
    slip(k, "smaller the cache", 2);
    slip(k, "one sequence", (w + one) / (w + one / 2));
    slip(k, "weights in fp8", (w + B * one) / (n + B * one));
    slip(k, "part of the time", (w + B * one / 2) / (w + B * one));
    slip(k, "a parameter for a byte", (n + B * one) / (n + B * one / 2));
    slip(k, "drops the cache", (w + B * one) / w);
}

static void check_pruned_width(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), F = behind(t, "F = "), N = behind(t, "N = ");
    const double K = behind(t, "K = "), H = behind(t, "H = "), V = behind(t, "V = "), B = behind(t, "B = ");
    const double S = behind(t, "S = "), Dp = behind(t, "D' = "), Fp = behind(t, "F' = ");
    const double cached = B * S * L * (K * H + K * H) * 2;
    double full = 2 * V * D, n = 2 * V * Dp;
    for (double l = 0; l < L; l++) {
        full += 3 * D * F + 2 * D * N * H + 2 * D * K * H;
        n += 3 * Dp * Fp + 2 * Dp * N * H + 2 * Dp * K * H;
    }
    answer(k, 2 * n + cached);
    slip(k, "smaller with the width", 2 * n + cached / D * Dp);
    slip(k, "before pruning", 2 * full + cached);
    slip(k, "weights alone", 2 * n);
    slip(k, "cache alone", cached);
    slip(k, "one sequence", 2 * n + cached / B);
    slip(k, "all weights smaller", 2 * full / D * Dp + cached);
    slip(k, "a parameter for a byte", n + cached);
}

/* Passes over G tokens, block by block, u at a time. */
static double passes_of(double G, double b, double u)
{
    double passes = 0;
    for (double begin = 0; begin < G; begin += b)
        for (double done = 0; done < b; done += u) passes++;
    return passes;
}

static void check_diffusion_weights(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " parameters"), G = behind(t, "G = "), b = behind(t, "b = "), u = behind(t, "u = ");
    const double w = n + n;
    answer(k, passes_of(G, b, u) * w);
    slip(k, "one token in a pass", G * w);
    slip(k, "one pass.", w);
    slip(k, "one block", passes_of(b, b, u) * w);
    slip(k, "a block in one pass", G / b * w);
    slip(k, "tokens of two blocks", passes_of(G, G, u) * w);
    slip(k, "a parameter for a byte", passes_of(G, b, u) * n);
    slip(k, "drops the last", G / b * floor(b / u) * w);
}

static void check_diffusion_flops(struct checked *k)
{
    const char *t = k->q->text;
    const double P = behind(t, "P = "), G = behind(t, "G = "), b = behind(t, "b = "), u = behind(t, "u = ");
    const double passes = passes_of(G, b, u);
    double cached = P, without = 0;
    for (double i = 1; i < G; i++) cached += 1;
    for (double i = 0; i < G; i++) without += P + i;
    answer(k, passes * (P + G) / cached);
    slip(k, "number of passes", passes);
    slip(k, "compares passes", passes / G);
    slip(k, "leaves out the prompt", passes * G / cached);
    slip(k, "one block through", passes * (P + b) / cached);
    slip(k, "one token in a pass", G * (P + G) / cached);
    slip(k, "Upside down", cached / (passes * (P + G)));
    slip(k, "without a cache", passes * (P + G) / without);
}

static const struct check CHECKS[] = {
    {"latent-token", check_latent_token},
    {"latent-absorbed", check_latent_absorbed},
    {"shared-cache", check_shared_cache},
    {"shared-parameters", check_shared_parameters},
    {"window-share", check_window_share},
    {"window-pairs", check_window_pairs},
    {"state-crossing", check_state_crossing},
    {"linear-state", check_linear_state},
    {"hybrid-memory", check_hybrid_memory},
    {"experts-touched", check_experts_touched},
    {"experts-active", check_experts_active},
    {"experts-bytes", check_experts_bytes},
    {"int4-speed", check_int4_speed},
    {"outlier-columns", check_outlier_columns},
    {"fp8-cache", check_fp8_cache},
    {"pruned-width", check_pruned_width},
    {"diffusion-weights", check_diffusion_weights},
    {"diffusion-flops", check_diffusion_flops},
};
enum { CHECKS_N = sizeof CHECKS / sizeof CHECKS[0] };

static void test_every_exercise_is_checked(void **state)
{
    (void)state;
    size_t n;
    const struct exercise *rows = bank_architectures(&n);
    assert_int_equal(n, CHECKS_N);
    for (size_t i = 0; i < n; i++) assert_string_equal(rows[i].name, CHECKS[i].name);
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
