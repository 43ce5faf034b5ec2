/* Attention groups that compute prompts before they decode: against the simulator, and against groups that are taken as
 * independent of each other; what whole prompts take. RIDGE_STEADY=N looks at N settings and shows them. */
#include <stdio.h>
#include <stdlib.h>

#include "calc/serve/steady_parted.h"
#include "tests/steady_settings.h"

enum { WHATS = 4 };
static const char *const WHAT[WHATS] = {"TPOT p50", "TPOT p95", "TTFT p50", "TTFT p95"};

static void values(const struct steady_spread *tpot, const struct steady_spread *ttft, double out[WHATS])
{
    out[0] = tpot->p50;
    out[1] = tpot->p95;
    out[2] = ttft->p50;
    out[3] = ttft->p95;
}

/* Long and short prompts in two to sixteen groups, prompts first. */
static void draw_first(int i, struct setting *x, char text[2][64])
{
    static const char *const KIND[] = {"exponential:", "lognormal:", "uniform:", ""}, *const REST[] = {"",
                                                                                                       ",0.7,max=20000",
                                                                                                       "..9000", ""};
    uint64_t s = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) + 90001;
    setting_draw(i, x, text);
    for (int k = 0; k < 10; k++) (void)config_uniform(&s);
    if (i % 2)
        (void)snprintf(text[0], 64, "%s%.0f%s", KIND[i / 2 % 4], floor(config_between(&s, 1000, 6000)),
                       REST[i / 2 % 4]);
    x->policy = SIMULATE_FCFS;
}

/* Each group a queue of its own, whose steps are as long as those of groups that are independent of it. */
static struct steady_result independent(struct arena *a, const struct steady_setup *all)
{
    struct steady_setup one = *all;
    struct steady_replica r = {.s = &one, .arrival_cv2 = 1, .others_frac = 1, .prompts_frac = 1};
    struct steady_result o = {0};
    struct err e = {0};
    one.budget_tokens /= all->groups;
    one.max_seqs /= all->groups;
    one.blocks /= all->groups;
    one.rate_per_s /= (double)all->groups;
    one.times = NULL;
    struct steady_setup whole = *all;
    whole.times = NULL;
    must(steady_times_open(a, &whole, &r.times, &e), &e);
    r.rate_per_s = one.rate_per_s;
    (void)steady_saturation_of(&r);
    if (!(r.rate_per_s < r.most_per_s)) return o;
    steady_open_solve(&r);
    steady_tell(&r, &o);
    return o;
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static double tenth_worst(double *off, int n)
{
    qsort(off, (size_t)n, sizeof *off, by_value);
    return off[(int)ceil(.9 * n) - 1];
}

/* At a third, six tenths and 85 % of what the simulator serves: nine in ten within the bars. The known mistake: groups
 * independent of each other. */
static void test_prompts_first(void **state)
{
    (void)state;
    enum { MOST = 400, LOADS = 3 };
    static const double LOAD[LOADS] = {.3, .6, .85}, BAR[WHATS] = {.15, .2, .1, .25};
    static double off[2][WHATS][MOST * LOADS], full[MOST];
    const char *const asked = getenv("RIDGE_STEADY");
    const long wanted = asked ? strtol(asked, NULL, 10) : 0;
    const int n = wanted > 0 && wanted <= MOST ? (int)wanted : 16;
    int points = 0, apart = 0;
    for (int i = 0; i < n; i++) {
        struct setting x;
        struct config c;
        struct err e = {0};
        char text[2][64];
        draw_first(700 + i, &x, text);
        setting_open(&c, &x, 3000);
        must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
        const double paper = config_solve(c.arena, &c.steady).saturation_rate_per_s,
                     most = setting_most_per_s(&x, paper);
        full[i] = fabs(log(paper / most));
        for (int k = 0; k < LOADS; k++) {
            struct config d;
            struct simulate_spread tpot, ttft;
            double simulated[WHATS], found[WHATS];
            setting_open(&d, &x, 3000);
            config_hasten(&d, LOAD[k] * most);
            c.steady.rate_per_s = LOAD[k] * most;
            const struct steady_result r = config_solve(c.arena, &c.steady), by = independent(c.arena, &c.steady);
            const struct simulate_result q = config_simulate(d.arena, &d.simulated);
            must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
            must(simulate_spread_of(&q, simulate_ttft_s, &ttft, &e), &e);
            arena_close(d.arena);
            if (r.saturated) continue;
            near_to(r.output_tok_per_s, c.steady.rate_per_s * c.lengths.output_tokens, 1e-9, "throughput");
            simulated[0] = tpot.p50, simulated[1] = tpot.p95, simulated[2] = ttft.p50, simulated[3] = ttft.p95;
            values(&r.tpot_s, &r.ttft_s, found);
            for (int w = 0; w < WHATS; w++) off[0][w][points] = fabs(log(found[w] / simulated[w]));
            if (asked)
                print_message("%s at %.2f: %.3f %.3f %.3f %.3f of simulated\n", c.name, LOAD[k],
                              found[0] / simulated[0], found[1] / simulated[1], found[2] / simulated[2],
                              found[3] / simulated[3]);
            points++;
            if (!(by.tpot_s.p50 > 0)) continue;
            values(&by.tpot_s, &by.ttft_s, found);
            for (int w = 0; w < WHATS; w++) off[1][w][apart] = fabs(log(found[w] / simulated[w]));
            apart++;
        }
        arena_close(c.arena);
    }
    assert_true(points >= LOADS * n - 1);
    for (int w = 0; w < WHATS; w++) {
        const double within = tenth_worst(off[0][w], points), before = tenth_worst(off[1][w], apart);
        if (asked)
            print_message("%s: median %.3f, nine in ten within %.3f; independent groups %.3f, %.3f\n", WHAT[w],
                          off[0][w][points / 2], within, off[1][w][apart / 2], before);
        if (!(within < BAR[w])) fail_msg("%s: nine in ten within %.3f", WHAT[w], within);
        if (!(before > 1.5 * within)) fail_msg("%s: %.3f, of independent groups %.3f", WHAT[w], within, before);
    }
    const double within = tenth_worst(full, n);
    if (asked) print_message("saturation: median %.3f, nine in ten within %.3f\n", full[n / 2], within);
    assert_true(within < .15);
}

/* More places, a larger step serve no less, but for what a run may be off by. */
static void test_limits(void **state)
{
    (void)state;
    const double WITHIN = .03;
    for (int i = 0; i < 12; i++) {
        struct setting x;
        char text[2][64];
        double before_per_s = 0;
        draw_first(900 + i, &x, text);
        for (x.seqs = 8; x.seqs <= 256; x.seqs *= 2) {
            struct config c;
            setting_open(&c, &x, 1000);
            const double per_s = config_solve(c.arena, &c.steady).saturation_rate_per_s;
            if (!(per_s > (1 - WITHIN) * before_per_s))
                fail_msg("%s: saturates at %g, with half the places at %g", c.name, per_s, before_per_s);
            before_per_s = fmax(per_s, before_per_s);
            arena_close(c.arena);
        }
    }
}

/* Whole prompts of a group: one and eight alike as a step of theirs has them, three others between. The known mistake:
 * by their tokens alone. */
static void test_whole(void **state)
{
    (void)state;
    static const double THREE[] = {8000, 5000, 3384};
    const struct setting x = {"qwen3-30b-a3b", "h200-sxm", "exponential:2000", "100", 8, 8, 64, 16384,
                              SIMULATE_FCFS,   .002};
    struct config c;
    struct err e = {0};
    struct mix m;
    double v[MIX_VALUES_N], tokens = 0, square = 0;
    setting_open(&c, &x, 100);
    must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
    struct steady_times *t = c.steady.times;
    must(mix_open(c.arena, c.plan, &m, &e), &e);
    for (int several = 0; several < 2; several++) {
        const double n = several ? STEADY_WHOLES : 1, all = 16384;
        mix_clear(&m);
        mix_prefill(&m, n, all / n, 0);
        mix_others(&m, 7 * all / 4);
        mix_eval(&m, v);
        near_to(steady_times_whole_s(t, all, all * all / n, .25), v[MIX_step_s] + .002, 1e-9, "whole prompts");
    }
    mix_clear(&m);
    for (int i = 0; i < 3; i++) {
        mix_prefill(&m, 1, THREE[i], 0);
        tokens += THREE[i];
        square += THREE[i] * THREE[i];
    }
    mix_eval(&m, v);
    near_to(steady_times_whole_s(t, tokens, square, 0), v[MIX_step_s] + .002, .02, "three prompts");
    double shares_s[STEADY_SHARES];
    mix_clear(&m);
    mix_prefill(&m, 1, 16384, 0);
    mix_eval(&m, v);
    steady_times_shares_s(t, 0, 16384, shares_s);
    assert_true(shares_s[0] < .85 * (v[MIX_step_s] + .002));
    arena_close(c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prompts_first), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
