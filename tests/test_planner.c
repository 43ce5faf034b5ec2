/* The search for a plan: pruned against every candidate solved, its properties, drafts, two pools. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/serve/planner_verify.h"
#include "tests/planned.h"

/* What pruning leaves out cannot win: the best of every device and precision is that of all candidates solved. */
static void test_prune(void **state)
{
    static const struct {
        const char *model, *gpu[2];
        int64_t most;
        double rate;
        const char *prompt, *output;
        enum planner_aim aim;
        enum planner_fidelity fidelity;
        double ttft_s, tpot_s;
    } CASES[] = {
        {"llama-3.1-8b", {"h100-sxm", "l40s"}, 5, 31, "900", "150", PLANNER_SERVE, PLANNER_ROOFLINE, .6, .013},
        {"llama-3.1-8b",
         {"a100-80g", "l4"},
         4,
         3,
         "lognormal:700,1,max=9000",
         "uniform:20..400",
         PLANNER_SERVE,
         PLANNER_BOUND,
         1.1,
         .05},
        {"llama-3.1-8b", {"h100-sxm", "h200-sxm"}, 3, 7, "1100", "230", PLANNER_SERVE, PLANNER_CALIBRATED, .9, .021},
        {"mixtral-8x7b", {"h100-sxm", "h200-sxm"}, 4, 11, "600", "170", PLANNER_SERVE, PLANNER_ROOFLINE, .9, .03},
        {"llama-3.1-8b", {"h100-sxm", "l40s"}, 6, 140, "500", "exponential:90", PLANNER_DAILY, PLANNER_ROOFLINE, 0, 0},
        {"llama-3.1-8b", {"h100-sxm", "l40s"}, 4, 40, "500", "exponential:190", PLANNER_JOB, PLANNER_ROOFLINE, 0, 0},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct planner_result pruned, all;
        struct asked *k =
            ask(a, CASES[i].model, CASES[i].gpu, 2, CASES[i].most, CASES[i].rate, CASES[i].prompt, CASES[i].output);
        k->q.aim = CASES[i].aim;
        k->q.fidelity = CASES[i].fidelity;
        k->q.p90 = CASES[i].fidelity == PLANNER_CALIBRATED;
        k->q.ttft.s = CASES[i].ttft_s > 0 ? CASES[i].ttft_s : (double)NAN;
        k->q.tpot.s = CASES[i].tpot_s > 0 ? CASES[i].tpot_s : (double)NAN;
        k->q.deadline_s = 3700;
        k->q.requests = CASES[i].rate * k->q.deadline_s;
        k->q.held_seqs = true;
        must(planner_search(a, &k->q, &pruned, &e), &e);
        k->q.exhaustive = true;
        must(planner_search(a, &k->q, &all, &e), &e);
        assert_true(pruned.best_n > 0);
        assert_int_equal(pruned.best_n, all.best_n);
        assert_int_equal(pruned.candidates, all.candidates);
        assert_true(pruned.solved < all.solved);
        for (size_t b = 0; b < all.best_n; b++) same_plan(&pruned.best[b], &all.best[b], CASES[i].model);
        for (size_t b = 1; b < all.best_n; b++) assert_true(planner_order(&k->q, &all.best[b - 1], &all.best[b]) < 0);
        arena_close(a);
    }
    (void)state;
}

static double cheapest(struct asked *k)
{
    struct err e = {0};
    struct planner_result r;
    must(planner_search(k->a, &k->q, &r, &e), &e);
    return r.best_n > 0 ? r.best[0].cost.usd_per_h : (double)INFINITY;
}

/* More requests never cost less; looser promises and more GPUs to choose from never more; a plan stays the plan when
 * every price doubles, at twice the cost. */
static void test_monotone(void **state)
{
    static const char *const GPU[] = {"h100-sxm", "l40s"};
    static const double RATES[] = {2, 13, 37, 90}, TPOTS[] = {.009, .013, .02, .05}, TTFTS[] = {.08, .2, .7, 3};
    static const int64_t MOST[] = {1, 2, 4, 8};
    double last;
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 2, 8, 11, "lognormal:800,.6,max=4000", "uniform:60..310");
    last = 0;
    for (size_t i = 0; i < COUNT(RATES); i++) {
        must(planner_traffic_of(a, &k->work, RATES[i], &k->q.traffic, &e), &e);
        const double cost = cheapest(k);
        assert_true(cost >= last);
        last = cost;
    }
    assert_true(last < (double)INFINITY);
    must(planner_traffic_of(a, &k->work, 21, &k->q.traffic, &e), &e);
    last = (double)INFINITY;
    for (size_t i = 0; i < COUNT(TPOTS); i++) {
        k->q.tpot.s = TPOTS[i];
        const double cost = cheapest(k);
        assert_true(cost <= last);
        last = cost;
    }
    last = (double)INFINITY;
    for (size_t i = 0; i < COUNT(TTFTS); i++) {
        k->q.ttft.s = TTFTS[i];
        const double cost = cheapest(k);
        assert_true(cost <= last);
        last = cost;
    }
    last = (double)INFINITY;
    for (size_t i = 0; i < COUNT(MOST); i++) {
        for (size_t d = 0; d < 2; d++) k->device[d].most = MOST[i];
        for (size_t d = 0; d < 2; d++) k->device[d].per_node = MOST[i];
        const double cost = cheapest(k);
        assert_true(cost <= last);
        last = cost;
    }
    struct planner_result once, twice;
    must(planner_search(a, &k->q, &once, &e), &e);
    for (size_t d = 0; d < 2; d++) k->device[d].price.usd_per_h *= 2;
    must(planner_search(a, &k->q, &twice, &e), &e);
    assert_true(once.best_n > 1 && once.best_n == twice.best_n);
    for (size_t i = 0; i < once.best_n; i++) {
        same_plan(&once.best[i], &twice.best[i], "twice the price");
        assert_true(fabs(twice.best[i].cost.usd_per_h / once.best[i].cost.usd_per_h / 2 - 1) < 1e-12);
        assert_true(fabs(twice.best[i].cost.usd_per_mtok_in / once.best[i].cost.usd_per_mtok_in / 2 - 1) < 1e-12);
        assert_true(fabs(twice.best[i].cost.joule_per_tok / once.best[i].cost.joule_per_tok - 1) < 1e-12);
    }
    arena_close(a);
    (void)state;
}

/* Attention groups that are moved to several nodes are served by no faster wires: nothing is sooner, nor is there more
 * room, of servers' steps, kernels alone and floors; and they are simulated by the same clock. */
static void test_groups_nodes(void **state)
{
    static const struct {
        const char *model, *gpu, *server, *prompt, *output;
        struct layout l;
        int64_t seqs, tokens, node[2]; /* GPUs of one, fewer each time */
        double rate;
    } CASES[] = {
        {"deepseek-v3", "h200-sxm", "vllm", "1200", "300", {.tp = 1, .dp = 8, .ep = 8}, 256, 2048, {4, 2}, 3.7},
        {"deepseek-v3", "h200-sxm", NULL, "900", "150", {.tp = 1, .dp = 8, .ep = 8}, 64, 1024, {4, 1}, 4.3},
        {"qwen3-235b-a22b",
         "h200-sxm",
         "sglang",
         "uniform:90..1500",
         "211",
         {.tp = 2, .dp = 4, .ep = 8},
         96,
         4096,
         {4, 2},
         2.9},
        {"qwen3-30b-a3b",
         "h100-sxm",
         "vllm",
         "700",
         "exponential:190",
         {.tp = 1, .dp = 4, .ep = 4},
         48,
         2048,
         {2, 1},
         5.9},
        {"gpt-oss-120b", "h100-sxm", "vllm", "1100", "170", {.tp = 1, .dp = 8, .ep = 8}, 128, 2048, {4, 2}, 4.7},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct asked *k = ask(a, CASES[i].model, &CASES[i].gpu, 1, 8, CASES[i].rate, CASES[i].prompt, CASES[i].output);
        struct engine server;
        struct planner_point before = {0};
        if (CASES[i].server) must(engine_load_version(a, CASES[i].server, &server, &k->q.overlapped, &e), &e);
        k->q.server = CASES[i].server ? &server : NULL;
        k->q.fidelity = PLANNER_CALIBRATED;
        for (int nodes = 0; nodes < 3; nodes++) {
            struct planner_plan plan = {.layout = CASES[i].l, .seqs = CASES[i].seqs, .step_tokens = CASES[i].tokens}, x;
            plan.layout.replicas = 1;
            plan.layout.per_node = nodes ? CASES[i].node[nodes - 1] : 8;
            plan.layout = layout_whole(&plan.layout);
            plan.gpus = layout_gpus(&plan.layout);
            must(planner_at(a, &k->q, &plan, &x, &e), &e);
            const struct planner_point *o = &x.point;
            assert_null(planner_verifies(&x));
            assert_true(x.estimated == (nodes > 0));
            assert_true(isfinite(o->tpot_s) && isfinite(o->ttft_s));
            if (!(o->tpot_s >= before.tpot_s && o->ttft_s >= before.ttft_s && o->tpot_mean_s >= before.tpot_mean_s &&
                  (nodes == 0 || o->saturation_per_s <= before.saturation_per_s)))
                fail_msg("%s, %lld GPUs a node: TPOT %.4g after %.4g, TTFT %.4g after %.4g, saturation %.4g after %.4g",
                         CASES[i].model, (long long)plan.layout.per_node, o->tpot_s, before.tpot_s, o->ttft_s,
                         before.ttft_s, o->saturation_per_s, before.saturation_per_s);
            before = *o;
        }
        arena_close(a);
    }
    (void)state;
}

static void draft_of(struct asked *k, struct planner_drafting *d, struct model *small, const char *accept)
{
    static const int64_t GAMMAS[] = {2, 5};
    struct err e = {0};
    must(model_load(k->a, "llama-3.2-1b", NULL, 0, small, &e), &e);
    *d = (struct planner_drafting){.model = small, .bonus = true, .prompts = true, .gamma = GAMMAS, .gamma_n = 2};
    must(speculate_accept_parse(accept, &d->accept, &e), &e);
    k->q.drafting = d;
}

/* With drafts to choose from pruning loses nothing either; they never make the winner dearer; what none of them keeps
 * pays at no load, and is no winner. */
static void test_draft(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-70b", GPU, 1, 4, 1.3, "900", "150");
    struct planner_drafting d;
    struct model small;
    struct planner_result pruned, all;
    struct planner_paying pays;
    k->q.tpot.s = .0093;
    const double without = cheapest(k);
    draft_of(k, &d, &small, "0.8");
    must(planner_search(a, &k->q, &pruned, &e), &e);
    k->q.exhaustive = true;
    must(planner_search(a, &k->q, &all, &e), &e);
    k->q.exhaustive = false;
    assert_int_equal(pruned.best_n, all.best_n);
    assert_int_equal(pruned.candidates, all.candidates);
    assert_true(pruned.best_n > 0 && pruned.solved < all.solved);
    for (size_t i = 0; i < all.best_n; i++) {
        same_plan(&pruned.best[i], &all.best[i], "drafts");
        assert_int_equal(pruned.best[i].gamma, all.best[i].gamma);
    }
    const struct planner_plan *x = &pruned.best[0];
    assert_true(x->gamma > 0 && x->cost.usd_per_h < without); /* the promise takes two more GPUs else */
    assert_true(x->point.tpot_s >= x->floor_tpot_s && x->point.saturation_per_s > x->rate_per_s);
    must(planner_pays(a, &k->q, x, &pays, &e), &e);
    assert_int_equal(pays.gamma, x->gamma);
    assert_true(pays.with_s < .7 * pays.without_s && pays.until_per_s > 1.3);
    struct planner_verified v;
    must(planner_verify(a, &k->q, x, &k->work, &v, &e), &e);
    assert_int_equal(v.finished, 700);
    assert_true(!v.growing && fabs(v.tpot_s / x->point.tpot_s - 1) < .2);
    draft_of(k, &d, &small, "0");
    must(planner_pays(a, &k->q, x, &pays, &e), &e);
    if (pays.with_s < pays.without_s || pays.until_per_s > 0)
        fail_msg("accepted none: %g, %g without, until %g", pays.with_s, pays.without_s, pays.until_per_s);
    assert_true(!(cheapest(k) < without));
    arena_close(a);
    (void)state;
}

/* Memory by hand: the draft's weights over the ranks, and its cache: 16 layers, 8 KV heads of 64. Floors: no step of
 * gamma drafts yields more than gamma + 1 tokens. Stages have no drafts. */
static void test_draft_unit(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 8, 5, "777", "131");
    struct planner_drafting d;
    struct model small;
    struct planner p;
    struct planner_unit u, plain;
    draft_of(k, &d, &small, "0.6");
    must(planner_open(a, &k->q, &p, &e), &e);
    struct layout l = {.tp = 2, .per_node = 8};
    must(planner_unit_make(&p, 0, 0, &l, &plain, &e), &e);
    must(planner_unit_make(&p, 0, 0, &l, &u, &e), &e);
    must(planner_unit_draft(&p, &u, 5, &e), &e);
    assert_null(u.why);
    const double token = 16 * 2 * (8.0 / 2) * 64 * 2;
    assert_true(fabs(u.sequence_bytes - plain.sequence_bytes - token * (777 + 66 + 8 + 5)) < 1);
    assert_true(fabs(u.longest_bytes - plain.longest_bytes - token * (777 + 131 + 5)) < 1);
    const double weights = u.weight_bytes - plain.weight_bytes; /* 1.2358e9 parameters of two bytes */
    assert_true(weights > 1.2358e9 && weights < 1.02 * 1.2358e9 * 1.3);
    assert_true(u.floor_tpot_s > plain.floor_tpot_s / 6 && u.floor_tpot_s < plain.floor_tpot_s);
    assert_int_equal(planner_judged(&k->q, 5), 6);
    assert_int_equal(planner_judged(&k->q, 0), 1);
    /* a tree of 2 + 4 tokens: all are in the cache and judged, 3 at most come out */
    static const int64_t DEEP[] = {2};
    struct speculate_tree t;
    struct speculate_shape shape;
    const double chain_s = u.floor_tpot_s * 6;
    must(speculate_tree_parse("2x2", &t, &e), &e);
    must(speculate_tree_shape(a, &t, &d.accept, true, &shape, &e), &e);
    d.shape = &shape;
    d.gamma = DEEP;
    d.gamma_n = 1;
    must(planner_unit_make(&p, 0, 0, &l, &u, &e), &e);
    must(planner_unit_draft(&p, &u, 2, &e), &e);
    assert_true(fabs(u.sequence_bytes - plain.sequence_bytes - token * (777 + 66 + 8 + 6)) < 1);
    assert_int_equal(planner_judged(&k->q, 2), 7);
    assert_true(fabs(planner_made(&k->q, 2) - (1 + .84 + .84 * .84)) < 1e-12);
    const double pass_s = (chain_s - plain.floor_tpot_s) / 5; /* of the draft; five in the chain, two here */
    assert_true(fabs(u.floor_tpot_s * 3 / (plain.floor_tpot_s + 2 * pass_s) - 1) < 1e-9);
    d.shape = NULL;
    l.pp = 2;
    must(planner_unit_make(&p, 0, 0, &l, &u, &e), &e);
    must(planner_unit_draft(&p, &u, 5, &e), &e);
    assert_non_null(u.why);
    arena_close(a);
    (void)state;
}

/* Against every pair of counts of the winner's layout and limits: none with fewer copies keeps the promises. The plan
 * holds when simulated; caches take their bytes over the link, and wait. */
static void test_pools(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    enum { MOST = 8 };
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, MOST, 47, "lognormal:1400,.5,max=5000", "uniform:60..310");
    struct planner_result r;
    const struct planner_plan *x = NULL;
    struct planner_plan other;
    struct planner_verified v;
    k->q.like.pp = k->q.like.tp = k->q.like.ep = k->q.like.dp = 1;
    k->q.tpot.s = .0125;
    k->q.ttft.s = .3;
    k->q.pools = true;
    must(planner_search(a, &k->q, &r, &e), &e);
    for (size_t i = 0; i < r.best_n && !x; i++)
        if (r.best[i].prefill > 0) x = &r.best[i];
    assert_non_null(x);
    assert_true(x->layout.replicas <= MOST && x->prefill < x->layout.replicas);
    for (int64_t n = 2; n <= x->layout.replicas; n++)
        for (int64_t prefill = 1; prefill < n; prefill++) {
            struct planner_plan y = *x;
            y.layout.replicas = n;
            y.prefill = prefill;
            must(planner_at(a, &k->q, &y, &other, &e), &e);
            if (n < x->layout.replicas && other.verdict == PLANNER_MEETS)
                fail_msg("%d + %d keep the promises, found %d + %d", (int)prefill, (int)(n - prefill), (int)x->prefill,
                         (int)(x->layout.replicas - x->prefill));
        }
    /* a token: 32 layers, 8 KV heads of 128, K and V, 2 bytes; the mean of a queue is not shorter than the transfer,
     * and the step that runs ends first, half of it on average */
    const double sent_s = 32 * 2 * 8.0 * 128 * 2 * k->q.traffic.prompt_tokens / k->hw[0].link_bytes_per_s;
    assert_true(x->point.move_s > sent_s && x->point.move_s < 2 * sent_s + .5 * x->point.step_s);
    must(planner_verify(a, &k->q, x, &k->work, &v, &e), &e);
    assert_true(!v.growing && fabs(v.tpot_s / x->point.tpot_s - 1) < .15 && fabs(v.ttft_s / x->point.ttft_s - 1) < .3);
    /* nothing joins GPUs of another kind */
    k->hw[0].link_bytes_per_s = k->hw[0].fabric_bytes_per_s = (double)NAN;
    must(planner_search(a, &k->q, &r, &e), &e);
    for (size_t i = 0; i < r.best_n; i++) assert_true(r.best[i].prefill == 0);
    assert_true(r.tally[0][PLANNER_ILLEGAL].n > 0);
    arena_close(a);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prune), cmocka_unit_test(test_monotone),   cmocka_unit_test(test_groups_nodes),
        cmocka_unit_test(test_draft), cmocka_unit_test(test_draft_unit), cmocka_unit_test(test_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
