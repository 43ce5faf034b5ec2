/* Trees of drafts: what they keep by hand and as drawn, and their steps in a simulation and a steady state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/steady.h"

static void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.12g, wanted %.12g", what, found, wanted);
}

static void open_tree(struct arena *a, const char *text, const char *accept, bool bonus, struct speculate_setup *of,
                      struct speculate_shape *shape)
{
    struct err e = {0};
    struct speculate_tree t;
    *of = (struct speculate_setup){.bonus = bonus, .shape = shape};
    must(speculate_tree_parse(text, &t, &e), &e);
    must(speculate_accept_parse(accept, &of->accept, &e), &e);
    must(speculate_tree_shape(a, &t, &of->accept, bonus, shape, &e), &e);
}

/* Three children of the last token, a .6, b .2, c .1. Three nodes below: the likeliest are a's first .6*.5 = .3, b's
 * first .1, a's second .06; c has none. One token or more are kept with .9, two with .46. */
static void test_by_hand(void **state)
{
    (void)state;
    static const struct {
        double u[2];
        int64_t kept, made[2]; /* without the bonus, with it */
    } WALK[] = {
        {{.59, .49}, 2, {2, 3}}, /* a, its first */
        {{.59, .51}, 2, {2, 3}}, /* a, its second */
        {{.59, .61}, 1, {2, 2}}, /* a, none of its two */
        {{.61, .49}, 2, {2, 3}}, /* b, its first */
        {{.61, .51}, 1, {2, 2}}, /* b has no second */
        {{.81, .01}, 1, {1, 2}}, /* c has no children: nothing was refused */
        {{.91, .01}, 0, {1, 1}}, /* none */
    };
    struct arena *a = arena_open();
    for (int bonus = 0; bonus < 2; bonus++) {
        struct speculate_setup of;
        struct speculate_shape x;
        open_tree(a, "3,3", ".6/.2/.1,.5/.1", bonus, &of, &x);
        assert_int_equal(x.drafted, 6);
        assert_int_equal(speculate_judged(&of, 2), bonus ? 7 : 3); /* without, a and b alone need a row */
        near_to(x.kept_tokens, .9 + .46, 1e-12, "kept");
        near_to(speculate_mean(&of, 2), bonus ? 2.36 : 1 + .8, 1e-12, "tokens");
        near_to(speculate_square(&of, 2), bonus ? 1 + 3 * .9 + 5 * .46 : 1 + 3 * .8, 1e-12, "square");
        for (size_t i = 0; i < sizeof WALK / sizeof *WALK; i++) {
            double u[SPECULATE_DEPTH_MAX] = {WALK[i].u[0], WALK[i].u[1]};
            int64_t made;
            assert_int_equal(speculate_keep(&of, 2, u, &made), WALK[i].kept);
            assert_int_equal(made, WALK[i].made[bonus]);
        }
        double sum = 0, square = 0; /* the parts are multiples of .01: cells are of one kind */
        for (int i = 0; i < 100; i++)
            for (int k = 0; k < 100; k++) {
                double u[SPECULATE_DEPTH_MAX] = {(i + .5) / 100, (k + .5) / 100};
                int64_t made;
                (void)speculate_keep(&of, 2, u, &made);
                sum += (double)made / 1e4;
                square += (double)(made * made) / 1e4;
            }
        near_to(sum, x.tokens, 1e-9, "walks");
        near_to(square, x.tokens_square, 1e-9, "walks squared");
        open_tree(a, "2x2x1", ".6/.3,.5/.1,.7", bonus, &of, &x);
        assert_int_equal(x.drafted, 2 + 4 + 4);
        near_to(speculate_mean(&of, 3), 1 + .9 + .9 * .6 + (bonus ? .9 * .6 * .7 : 0), 1e-12, "tokens");
    }
    arena_close(a);
}

/* ---- simulated ---- */

struct bench {
    struct arena *a;
    struct model target, small;
    struct hw hw;
    struct speculate_setup of;
    struct speculate_shape shape;
    struct mix_plan *plan;
};

static void open_bench(struct bench *b, const char *tree, int64_t gamma, const char *accept, bool bonus)
{
    struct err e = {0};
    memset(b, 0, sizeof *b);
    b->a = arena_open();
    must(model_load(b->a, "llama-3.1-8b", NULL, 0, &b->target, &e), &e);
    must(model_load(b->a, "llama-3.2-1b", NULL, 0, &b->small, &e), &e);
    must(hw_load(b->a, "h100-sxm", &b->hw, &e), &e);
    if (tree)
        open_tree(b->a, tree, accept, bonus, &b->of, &b->shape);
    else {
        b->of = (struct speculate_setup){.bonus = bonus};
        must(speculate_accept_parse(accept, &b->of.accept, &e), &e);
    }
    struct step_setup u = {.model = &b->target,
                           .hw = &b->hw,
                           .layout = {.tp = 1},
                           .fidelity = STEP_ROOFLINE,
                           .block_tokens = 16,
                           .prefill_together = true};
    must(step_compile(b->a, &u, &b->of.target, &e), &e);
    u.pass_tokens = speculate_judged(&b->of, gamma);
    must(mix_compile(b->a, &u, &b->plan, &e), &e);
    u.pass_tokens = 0;
    u.verify = true;
    must(step_compile(b->a, &u, &b->of.verify, &e), &e);
    u.model = &b->small;
    must(step_compile(b->a, &u, &b->of.draft_wide, &e), &e);
    u.verify = false;
    must(step_compile(b->a, &u, &b->of.draft, &e), &e);
}

static struct workload make(struct bench *b, double rate, int64_t clients, int64_t n, const char *prompt,
                            const char *output)
{
    struct workload w;
    struct err e = {0};
    struct workload_spec s = {
        .rate_per_s = rate, .concurrency = clients, .requests = n, .turns = 1, .samples = 1, .seed = 29};
    must(workload_length_parse(b->a, prompt, &s.prompt, &e), &e);
    must(workload_length_parse(b->a, output, &s.output, &e), &e);
    must(workload_make(b->a, &s, &w, &e), &e);
    return w;
}

static struct simulate_setup setup_of(const struct bench *b, const struct workload *w, int64_t gamma)
{
    return (struct simulate_setup){.work = w,
                                   .plan = b->plan,
                                   .policy = SIMULATE_CHUNKED,
                                   .budget_tokens = 2048,
                                   .max_seqs = 101,
                                   .blocks = 30011,
                                   .block_tokens = 16,
                                   .max_len_tokens = 131072,
                                   .replicas = 1,
                                   .draft = {.of = &b->of, .gamma = gamma, .prompts = true, .seed = 11}};
}

static struct simulate_result run(struct bench *b, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    must(simulate_run(b->a, s, &r, &e), &e);
    return r;
}

static double step_value(struct step *s, double T, double S, enum step_value which)
{
    double x = 0, one = 1, *column[STEP_VALUES_N] = {0};
    column[which] = &x;
    step_eval(s, 1, &one, &T, &S, &one, column);
    return x;
}

/* One request: a tree of two children each, the first of which is always kept. Every step judges 2 + 4 + 1 tokens and
 * makes 3; the draft has a pass over the last token and one over the two nodes below it. Blocks are taken of all. */
static void test_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61 };
    struct bench b;
    open_bench(&b, "2x2", 2, "1/0,1/0", true);
    const struct workload w = make(&b, 0, 1, 2, "1013", "61");
    const struct simulate_setup s = setup_of(&b, &w, 2);
    const struct simulate_result r = run(&b, &s);
    double later_s = 0;
    int64_t steps = 1, blocks = 0;
    for (int left = OUTPUT - 1, stored = PROMPT; left > 0; left -= 3, stored += 3, steps++) {
        later_s += step_value(b.of.verify, 7, stored + 1, STEP_decode_step_s) +
                   step_value(b.of.draft, 1, stored + 1, STEP_decode_step_s) +
                   step_value(b.of.draft_wide, 2, stored + 2, STEP_decode_step_s);
        blocks = (stored + 7 + 15) / 16;
    }
    const double first_s = step_value(b.of.target, PROMPT, PROMPT, STEP_prefill_s) +
                           step_value(b.of.draft, PROMPT, PROMPT, STEP_prefill_s);
    assert_int_equal(r.steps, 2 * steps);
    assert_int_equal(r.most_blocks, blocks);
    for (size_t i = 0; i < 2; i++) near_to(simulate_latency_s(&r.record[i]), first_s + later_s, 1e-9, "latency");
    near_to(r.kept_tokens / r.judged, 2, 1e-12, "kept");
    arena_close(b.a);
}

/* A tree of width one is a chain, to the last request, with a bonus and without. */
static void test_chain(void **state)
{
    (void)state;
    for (int bonus = 0; bonus < 2; bonus++) {
        struct bench tree, chain;
        open_bench(&tree, bonus ? "1,1,1" : "1x1x1", 3, ".8,.6,.5", bonus);
        open_bench(&chain, NULL, 3, ".8,.6,.5", bonus);
        const struct workload w = make(&tree, 9, 0, 157, "lognormal:709,1.1,max=3001", "exponential:97");
        struct simulate_setup s = setup_of(&tree, &w, 3), t = setup_of(&chain, &w, 3);
        const struct simulate_result x = run(&tree, &s), y = run(&chain, &t);
        assert_int_equal(x.steps, y.steps);
        for (size_t i = 0; i < x.n; i++) {
            near_to(x.record[i].first_s, y.record[i].first_s, 1e-12, "first");
            near_to(x.record[i].finish_s, y.record[i].finish_s, 1e-12, "last");
        }
        arena_close(tree.a);
        arena_close(chain.a);
    }
}

/* Tokens of a step by the formula within three standard errors, the same whatever else is in the step. */
static void test_drawn(void **state)
{
    (void)state;
    static const struct {
        const char *tree, *accept;
        int64_t depth;
        bool bonus;
    } CASES[] = {{"4x2x1", ".6/.15/.08/.04,.5/.12,.4", 3, true},
                 {"3,4,2", ".6/.15/.08,.5/.12/.1,.4/.1", 3, false},
                 {"2x3", ".55,.4", 2, true}};
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        struct bench b;
        open_bench(&b, CASES[c].tree, CASES[c].depth, CASES[c].accept, CASES[c].bonus);
        const struct workload w = make(&b, 11, 0, 211, "lognormal:409,1.1,max=3001", "exponential:101");
        struct simulate_setup s = setup_of(&b, &w, CASES[c].depth);
        s.budget_tokens = 8192;
        const struct simulate_result r = run(&b, &s);
        const double mean = b.shape.tokens, variance = b.shape.tokens_square - mean * mean;
        if (fabs(r.judged_tokens / r.judged - mean) > 3 * sqrt(variance / r.judged))
            fail_msg("%s: %.5g tokens a step, wanted %.5g", CASES[c].tree, r.judged_tokens / r.judged, mean);
        assert_true(fabs(r.kept_tokens / r.judged - b.shape.kept_tokens) < 3 * sqrt(variance / r.judged) + .02);
        assert_int_equal(r.finished, 211);
        assert_int_equal(r.held_blocks, 0);
        s.policy = SIMULATE_FCFS;
        s.max_seqs = 7;
        const struct simulate_result other = run(&b, &s);
        assert_true(other.steps != r.steps);
        near_to(other.judged_tokens, r.judged_tokens, 1e-12, "drawn");
        s.draft.gamma = CASES[c].depth - 1; /* not the tree's */
        struct simulate_result none;
        struct err e = {0};
        assert_int_equal(simulate_run(b.a, &s, &none, &e), ERR_RANGE);
        arena_close(b.a);
    }
}

/* The steady state of the same steps: TPOT, throughput and batch at half of saturation. */
static void test_steady(void **state)
{
    (void)state;
    struct bench b;
    struct err e = {0};
    struct steady_lengths l, drafted;
    struct workload_length prompt, output;
    open_bench(&b, "3,4,2", 3, ".6/.15/.08,.5/.12/.1,.4/.1", true);
    must(workload_length_parse(b.a, "701", &prompt, &e), &e);
    must(workload_length_parse(b.a, "uniform:61..341", &output, &e), &e);
    must(steady_lengths_of(b.a, &prompt, &output, 0, &l, &e), &e);
    must(steady_lengths_judged(b.a, &l, speculate_mean(&b.of, 3), speculate_square(&b.of, 3), &drafted, &e), &e);
    struct steady_setup s = {.plan = b.plan,
                             .policy = SIMULATE_CHUNKED,
                             .budget_tokens = 2048,
                             .max_seqs = 101,
                             .blocks = 30011,
                             .block_tokens = 16,
                             .replicas = 1,
                             .lengths = &drafted,
                             .load = STEADY_OPEN,
                             .rate_per_s = 1,
                             .arrival_cv2 = 1,
                             .ttft_limit_s = (double)NAN,
                             .tpot_limit_s = (double)NAN,
                             .draft = {.of = &b.of, .gamma = 3, .prompts = true}};
    struct steady_result r;
    must(steady_solve(b.a, &s, &r, &e), &e);
    s.rate_per_s = r.saturation_rate_per_s / 2;
    must(steady_solve(b.a, &s, &r, &e), &e);
    const struct workload w = make(&b, s.rate_per_s, 0, 1500, "701", "uniform:61..341");
    const struct simulate_setup of = setup_of(&b, &w, 3);
    const struct simulate_result x = run(&b, &of);
    double tpot = 0;
    for (size_t i = 0; i < x.n; i++) tpot += simulate_tpot_s(&x.record[i]) / (double)x.n;
    near_to(r.tpot_s.mean, tpot, .05, "TPOT");
    assert_int_equal(steady_lengths_judged(b.a, &l, 2, 3, &drafted, &e), ERR_RANGE); /* no square of a mean of 2 */
    arena_close(b.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_chain), cmocka_unit_test(test_drawn),
                                       cmocka_unit_test(test_steady)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
