/* The search that simulates: what is refuted, not simulated, near, and jobs, by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/serve/planner_verify.h"
#include "tests/planned.h"

/* The cheapest of all plans that keep every promise when simulated, and on paper or miss by no more than the margin,
 * found by trying each one by itself. */
static double cheapest_by_hand(struct asked *k, int64_t most)
{
    double best = (double)INFINITY;
    struct err e = {0};
    for (size_t d = 0; d < k->q.devices_n; d++)
        for (size_t i = 0; i < 2 * COUNT(STEPS) * COUNT(SEQS); i++)
            for (int64_t tp = 1; tp <= most; tp *= 2)
                for (int64_t n = 1; n * tp <= most; n++) {
                    struct planner_plan x = {.device = d, .format = i % 2}, y;
                    struct planner_verified v;
                    const double usd = k->device[d].price.usd_per_h * (double)(n * tp);
                    const int64_t node = k->device[d].per_node;
                    x.step_tokens = STEPS[i / 2 % COUNT(STEPS)];
                    x.seqs = SEQS[i / 2 / COUNT(STEPS)];
                    x.layout = layout_whole(&(struct layout){.tp = tp, .replicas = n, .per_node = node, .skew = 1});
                    if (usd >= best) continue;
                    struct arena *own = arena_open();
                    must(planner_at(own, &k->q, &x, &y, &e), &e);
                    if (y.verdict == PLANNER_MEETS || planner_near_part(&k->q, &y) <= 1) {
                        must(planner_verify(own, &k->q, &y, &k->work, &v, &e), &e);
                        if (v.keeps) best = usd;
                    }
                    arena_close(own);
                }
    return best;
}

/* A crowd that the steady state does not see: what it finds cheap is refuted, and the search goes on over all
 * candidates, so that a looser promise or one more device is never dearer. */
static void test_confirm(void **state)
{
    static const char *const GPUS[] = {"l40s", "h100-sxm"};
    static const double TTFT[] = {.11, .23, .47, 1.9};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPUS, 2, 4, 61, "900", "150");
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 700, .rate_per_s = 61, .seed = 11};
    size_t refuted = 0;
    (void)state;
    must(workload_length_parse(a, "lognormal:900,0.7,max=5000", &s.prompt, &e), &e);
    must(workload_length_parse(a, "uniform:50..250", &s.output, &e), &e);
    must(workload_arrival_parse("diurnal:0.97,9", &s, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    must(planner_traffic_of(a, &k->work, (double)NAN, &k->q.traffic, &e), &e);
    /* a crowd at the start, which moments do not have */
    for (size_t i = 0; i < 103; i++) k->work.request[i].arrival_s = 0;
    for (size_t n = 1; n <= 2; n++) {
        double last = (double)INFINITY;
        k->q.devices_n = n;
        for (size_t i = 0; i < COUNT(TTFT); i++) {
            const struct planner_watch watch = {.most = 400};
            struct planner_result r;
            struct planner_confirmed c;
            k->q.ttft.s = TTFT[i];
            must(planner_search(a, &k->q, &r, &e), &e);
            must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
            const double usd = c.found ? r.best[0].cost.usd_per_h : (double)INFINITY, want = cheapest_by_hand(k, 4);
            if (!(usd <= want && want <= usd))
                fail_msg("TTFT %g, %zu devices: $%g, by hand $%g", TTFT[i], n, usd, want);
            assert_true(usd <= last);
            assert_false(c.cut || c.interrupted);
            assert_true(!c.found || c.verified.keeps);
            last = usd;
            refuted += c.refuted;
        }
    }
    assert_true(refuted > 0);
    /* no simulation in full breadth: said so */
    struct planner_result r;
    struct planner_confirmed c;
    must(planner_search(a, &k->q, &r, &e), &e);
    k->q.ttft.s = TTFT[1];
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm(a, &k->q, &k->work, &(struct planner_watch){.most = 0}, &r, &c, &e), &e);
    assert_true(c.cut);
    arena_close(a);
}

/* Plans that are not simulated are told of beside one that is, each kind with its best and how many there are, by hand:
 * every limit of tensor parallelism over two nodes of one GPU. */
static void test_skipped(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-70b", GPU, 1, 2, 1.3, "900", "150");
    const struct planner_watch watch = {.most = 60};
    struct planner_result r;
    struct planner_confirmed c;
    struct planner_plan best = {.gpus = 0};
    size_t n = 0;
    (void)state;
    k->device[0].per_node = 1;
    k->q.formats_n = 1;
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(c.found && c.verified.keeps && r.best[0].gpus == 2 && r.best[0].layout.pp == 2);
    assert_null(planner_verifies(&r.best[0]));
    for (size_t i = 0; i < COUNT(STEPS) * COUNT(SEQS); i++) {
        struct planner_plan x = {.step_tokens = STEPS[i % 2], .seqs = SEQS[i / 2]}, y;
        x.layout = layout_whole(&(struct layout){.tp = 2, .replicas = 1, .per_node = 1, .skew = 1});
        assert_int_equal(planner_skip_of(&x), PLANNER_SKIP_NODES);
        must(planner_at(a, &k->q, &x, &y, &e), &e);
        if (y.verdict != PLANNER_MEETS) continue;
        if (n++ == 0 || planner_order(&k->q, &y, &best) < 0) best = y;
    }
    assert_true(n > 0);
    for (enum planner_skip s = 0; s < PLANNER_SKIPS; s++)
        assert_int_equal(c.skipped[s].n, s == PLANNER_SKIP_NODES ? n : 0);
    same_plan(&c.skipped[PLANNER_SKIP_NODES].best, &best, "skipped");
    /* nothing else keeps the promises: they stay, unsimulated, and are told of as well */
    k->q.like.tp = 2;
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(!c.found && r.best_n > 0 && c.skipped[PLANNER_SKIP_NODES].n == n);
    /* each reason by its layout, and each in words */
    static const struct {
        struct layout l;
        enum planner_skip why;
    } CASES[] = {
        {{.tp = 8, .replicas = 3, .per_node = 8}, PLANNER_SIMULATED},
        {{.tp = 4, .pp = 2, .per_node = 4}, PLANNER_SIMULATED},
        {{.tp = 1, .dp = 8, .ep = 8, .per_node = 4}, PLANNER_SIMULATED},
        {{.tp = 8, .dcp = 8, .replicas = 2, .per_node = 8}, PLANNER_SIMULATED},
        {{.tp = 16, .per_node = 8}, PLANNER_SKIP_NODES},
        {{.tp = 8, .pp = 2, .per_node = 4}, PLANNER_SKIP_NODES},
        {{.tp = 8, .dp = 2, .per_node = 4}, PLANNER_SKIP_NODES},
        {{.tp = 2, .dp = 4, .pp = 2, .per_node = 8}, PLANNER_SKIP_GROUPS},
        {{.tp = 4, .dp = 2, .dcp = 2, .per_node = 8}, PLANNER_SKIP_CONTEXTS},
        {{.tp = 4, .pp = 2, .dcp = 2, .per_node = 8}, PLANNER_SKIP_CONTEXTS},
        {{.tp = 1, .replicas = SIMULATE_REPLICAS_MAX + 1, .per_node = 8}, PLANNER_SKIP_COPIES},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct planner_plan x = {.layout = layout_whole(&CASES[i].l)};
        if (planner_skip_of(&x) != CASES[i].why) fail_msg("case %zu: %d", i, planner_skip_of(&x));
        assert_true((planner_verifies(&x) == NULL) == (CASES[i].why == PLANNER_SIMULATED));
    }
    arena_close(a);
}

/* The same with two pools to choose from: the best pair on paper is refuted, and the cheapest that is not is found
 * among all limits, numbers of copies and splits. */
static void test_confirm_pools(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    enum { MOST = 8 };
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, MOST, 61, "1400", "60");
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 500, .rate_per_s = 61, .seed = 11};
    const struct planner_watch watch = {.most = 400};
    struct planner_result r;
    struct planner_confirmed c;
    (void)state;
    must(workload_length_parse(a, "lognormal:1400,.5,max=5000", &s.prompt, &e), &e);
    must(workload_length_parse(a, "uniform:60..310", &s.output, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    must(planner_traffic_of(a, &k->work, (double)NAN, &k->q.traffic, &e), &e);
    for (size_t i = 0; i < 37; i++) k->work.request[i].arrival_s = 0;
    k->q.like.pp = k->q.like.tp = k->q.like.ep = k->q.like.dp = 1;
    k->q.formats_n = 1;
    k->q.tpot.s = .006;
    k->q.ttft.s = .18;
    k->q.pools = true;
    must(planner_search(a, &k->q, &r, &e), &e);
    assert_true(r.best_n > 0 && r.best[0].prefill > 0);
    const struct planner_plan paper = r.best[0];
    must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    int64_t best = MOST + 1;
    for (size_t i = 0; i < COUNT(STEPS) * COUNT(SEQS); i++)
        for (int64_t n = 1; n < best; n++)
            for (int64_t prefill = 0; prefill < n && n < best; prefill++) {
                struct planner_plan x = {.step_tokens = STEPS[i % COUNT(STEPS)], .seqs = SEQS[i / COUNT(STEPS)]}, y;
                struct planner_verified v;
                x.layout = layout_whole(&(struct layout){.tp = 1, .replicas = n, .per_node = 8, .skew = 1});
                x.prefill = prefill;
                struct arena *own = arena_open();
                must(planner_at(own, &k->q, &x, &y, &e), &e);
                if (y.verdict == PLANNER_MEETS || planner_near_part(&k->q, &y) <= 1) {
                    must(planner_verify(own, &k->q, &y, &k->work, &v, &e), &e);
                    if (v.keeps) best = n;
                }
                arena_close(own);
            }
    assert_true(c.found && c.verified.keeps && c.refuted > 0 && !c.cut);
    if (r.best[0].gpus != best) fail_msg("%d GPUs, by hand %d", (int)r.best[0].gpus, (int)best);
    if (!(r.best[0].prefill > 0 && r.best[0].gpus >= paper.gpus &&
          (r.best[0].gpus > paper.gpus || r.best[0].prefill != paper.prefill || r.best[0].seqs != paper.seqs ||
           r.best[0].step_tokens != paper.step_tokens)))
        fail_msg("%d + %d, %d sequences, %d tokens", (int)r.best[0].prefill, (int)(r.best[0].gpus - r.best[0].prefill),
                 (int)r.best[0].seqs, (int)r.best[0].step_tokens);
    arena_close(a);
}

/* Copies behind a router are better than on paper: a promise between the two is late there and kept when it is
 * simulated, whether something dearer keeps it on paper or nothing does; a floor forbids, and so does saturation. */
static void test_near(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 3, 67, "uniform:300..2100", "uniform:50..350");
    const struct planner_watch watch = {.most = 60};
    struct planner_plan x = {.step_tokens = STEPS[0], .seqs = SEQS[1]}, y;
    struct planner_verified v;
    struct planner_result r;
    struct planner_confirmed c;
    (void)state;
    k->q.formats_n = 1;
    k->q.ttft.s = (double)NAN;
    k->q.like.tp = k->q.like.pp = k->q.like.ep = k->q.like.dp = 1;
    k->q.step_tokens_n = 1;
    k->q.seqs = &SEQS[1];
    k->q.seqs_n = 1;
    x.layout = layout_whole(&(struct layout){.tp = 1, .replicas = 3, .per_node = 3, .skew = 1});
    must(planner_at(a, &k->q, &x, &y, &e), &e);
    must(planner_verify(a, &k->q, &y, &k->work, &v, &e), &e);
    if (!(y.point.tpot_s > 1.01 * v.tpot_s)) fail_msg("%g on paper, %g simulated", y.point.tpot_s, v.tpot_s);
    k->q.tpot.s = sqrt(y.point.tpot_s * v.tpot_s);
    for (int64_t most = 3; most <= 6; most += 3) { /* nothing on paper; something dearer */
        k->device[0].most = most;
        must(planner_search(a, &k->q, &r, &e), &e);
        assert_int_equal(r.best_n, most > 3);
        struct planner_plan near;
        bool found;
        must(planner_near_cheapest(a, &k->q, 1, r.best_n ? r.best[0].cost.usd_per_h : (double)NAN, &near, &found, &e),
             &e);
        assert_true(found && near.gpus <= 3 && near.paper == PLANNER_LATE_TPOT);
        assert_true(near.point.tpot_s > k->q.tpot.s);
        const double part = planner_near_part(&k->q, &near), m = planner_margin_of(&k->q, &near).tpot;
        assert_true(part > 0 && part <= 1);
        assert_true(fabs(k->q.tpot.s * (1 + part * (m - 1)) / near.point.tpot_s - 1) < 1e-12);
        must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
        assert_true(c.found && c.verified.keeps && c.refuted == 0);
        assert_int_equal(r.best_n, 1); /* the dearer one of its kind has left */
        assert_int_equal(r.best[0].gpus, 3);
        assert_int_equal(r.best[0].verdict, PLANNER_MEETS);
        assert_int_equal(r.best[0].paper, PLANNER_LATE_TPOT);
        assert_true(r.best[0].point.tpot_s > k->q.tpot.s && c.verified.tpot_s <= k->q.tpot.s);
    }
    /* without simulations in full breadth the nearest of each cost still is */
    k->device[0].most = 3;
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm(a, &k->q, &k->work, &(struct planner_watch){.most = 0}, &r, &c, &e), &e);
    assert_true(c.near_cut && c.found && !c.cut);
    /* beyond the margin, saturated, below the floor */
    k->q.tpot.s = y.point.tpot_s / planner_margin_of(&k->q, &y).tpot * .999;
    y.paper = PLANNER_LATE_TPOT;
    assert_true(planner_near_part(&k->q, &y) > 1);
    y.paper = PLANNER_SATURATED;
    assert_true(isinf(planner_near_part(&k->q, &y)));
    k->q.tpot.s = y.floor_tpot_s * .999;
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(r.best_n == 0 && !c.found && c.near_refuted == 0);
    /* none of two pools, of what is not simulated, of a job; less of one copy; first tokens more */
    struct planner_plan z = y;
    const struct planner_margin many = planner_margin_of(&k->q, &z);
    z.layout.replicas = 1;
    const struct planner_margin one = planner_margin_of(&k->q, &z);
    assert_true(one.tpot > 1 && one.tpot < many.tpot && one.ttft > 1 && one.ttft < many.ttft);
    z = y;
    z.prefill = 1;
    assert_true(planner_margin_of(&k->q, &z).tpot <= 1);
    z = y;
    z.layout.dp = z.layout.pp = 2;
    assert_true(planner_margin_of(&k->q, &z).ttft <= 1);
    k->q.aim = PLANNER_JOB;
    assert_true(planner_margin_of(&k->q, &y).tpot <= 1);
    arena_close(a);
}

/* One copy's part of a job, all at once, in the scheduler: seconds to its last answer. */
static double by_hand_s(struct asked *k, const struct planner_plan *plan)
{
    struct err e = {0};
    struct planner_request q = k->q;
    struct planner_plan one = *plan;
    struct planner_verified v;
    struct workload w = k->work;
    const size_t n = (size_t)ceil(q.requests / (double)plan->layout.replicas);
    w.request = arena_array(k->a, n, sizeof *w.request);
    assert_non_null(w.request);
    for (size_t i = 0; i < n; i++) {
        w.request[i] = k->work.request[i % k->work.n];
        w.request[i].arrival_s = 0;
        w.request[i].stream = (uint32_t)(7 * i + 1);
    }
    w.n = w.first_n = n;
    w.span_s = 0;
    w.timed = false;
    one.layout.replicas = 1;
    must(planner_verify(k->a, &q, &one, &w, &v, &e), &e);
    assert_int_equal(v.finished, n);
    return v.makespan_s;
}

/* Jobs through the scheduler: the time is that of one copy's part by hand, and a deadline between what paper and the
 * scheduler say takes a copy more. Tokens a day: at a rate above what is served the plan is refuted. */
static void test_bulk(void **state)
{
    static const char *const GPUS[] = {"l40s"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPUS, 1, 8, 61, "lognormal:900,0.7,max=5000", "uniform:50..250");
    const struct planner_watch watch = {.most = 40};
    struct planner_result paper, r;
    struct planner_confirmed c;
    (void)state;
    k->q.aim = PLANNER_JOB;
    k->q.requests = 3001;
    k->q.deadline_s = 347;
    k->q.ttft.s = k->q.tpot.s = (double)NAN;
    k->q.like = (struct layout){.tp = 1, .pp = 1};
    k->q.formats_n = 1;
    must(planner_traffic_of(a, &k->work, k->q.requests / k->q.deadline_s, &k->q.traffic, &e), &e);
    must(planner_search(a, &k->q, &paper, &e), &e);
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm_bulk(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(c.found && c.verified.keeps && r.best_n == 1);
    const double hand_s = by_hand_s(k, &r.best[0]);
    assert_true(fabs(r.best[0].point.makespan_s / hand_s - 1) < 1e-12);
    assert_true(fabs(hand_s / paper.best[0].point.makespan_s - 1) < .1);
    /* a deadline that the plan keeps on paper or in the scheduler, not both */
    const double low = fmin(hand_s, paper.best[0].point.makespan_s),
                 high = fmax(hand_s, paper.best[0].point.makespan_s);
    if (hand_s > paper.best[0].point.makespan_s) {
        const int64_t copies = paper.best[0].layout.replicas;
        k->q.deadline_s = (low + high) / 2;
        must(planner_search(a, &k->q, &r, &e), &e);
        must(planner_confirm_bulk(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
        assert_true(c.found && c.refuted > 0 && r.best[0].layout.replicas > copies);
    }
    k->q.aim = PLANNER_DAILY;
    must(planner_search(a, &k->q, &r, &e), &e);
    must(planner_confirm_bulk(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(c.found && !c.verified.growing && c.verified.n >= 1 << 14);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confirm), cmocka_unit_test(test_skipped), cmocka_unit_test(test_confirm_pools),
        cmocka_unit_test(test_near),    cmocka_unit_test(test_bulk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
