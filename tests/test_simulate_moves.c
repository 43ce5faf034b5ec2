/* Caches that leave a replica: from a pool that prefills to one that decodes, and to the host and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "calc/serve/simulate.h"
#include "calc/serve/steady.h"

struct bench {
    struct arena *arena;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
    struct mix x;
};

static void open_bench(struct bench *b, const char *model, const char *hw)
{
    struct err e = {0};
    b->arena = arena_open();
    if (model_load(b->arena, model, NULL, 0, &b->model, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(b->arena, hw, &b->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = &b->model, .hw = &b->hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    if (mix_compile(b->arena, &setup, &b->plan, &e) != ERR_OK) fail_msg("%s", e.text);
    if (mix_open(b->arena, b->plan, &b->x, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct simulate_setup setup_of(const struct bench *b, const struct workload *w)
{
    return (struct simulate_setup){.work = w,
                                   .plan = b->plan,
                                   .policy = SIMULATE_CHUNKED,
                                   .budget_tokens = 2048,
                                   .max_seqs = 256,
                                   .blocks = 30011,
                                   .block_tokens = 16,
                                   .max_len_tokens = 131072,
                                   .replicas = 1};
}

static struct simulate_result run(const struct bench *b, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    if (simulate_run(b->arena, s, &r, &e) != ERR_OK) fail_msg("%s", e.text);
    return r;
}

static struct workload make(const struct bench *b, double rate, int64_t clients, int64_t n, const char *prompt,
                            const char *output, int64_t samples)
{
    struct workload w = {.n = 0};
    struct err e = {0};
    struct workload_spec s = {
        .rate_per_s = rate, .concurrency = clients, .requests = n, .turns = 1, .samples = samples, .seed = 29};
    if (workload_length_parse(b->arena, prompt, &s.prompt, &e) != ERR_OK ||
        workload_length_parse(b->arena, output, &s.output, &e) != ERR_OK ||
        workload_make(b->arena, &s, &w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return w;
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.12g, wanted %.12g", what, found, wanted);
}

static double price_s(struct mix *x)
{
    double v[MIX_VALUES_N];
    mix_eval(x, v);
    return v[MIX_step_s];
}

static double decode_s(struct bench *b, double context)
{
    mix_clear(&b->x);
    mix_decode(&b->x, 1, context);
    return price_s(&b->x);
}

/* Llama 3.1 8B in bf16: keys and values of 8 heads of 128 in 32 layers. */
static const double TOKEN_BYTES = 2. * 2 * 8 * 128 * 32;

/* ---- two pools ---- */

/* One at a time: the prompt, the transfer, a step for each of the other tokens. */
static void test_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61 };
    static const double RATE[] = {25e9, 7e9, .9e9};
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 1, 5, "1013", "61", 1);
    struct simulate_setup s = setup_of(&b, &w);
    mix_clear(&b.x);
    mix_prefill(&b.x, 1, PROMPT, 0);
    const double prefill_s = price_s(&b.x);
    double later_s = 0;
    for (int i = 1; i < OUTPUT; i++) later_s += decode_s(&b, PROMPT + i);
    s.replicas = 5;
    for (size_t k = 0; k < sizeof RATE / sizeof RATE[0]; k++)
        for (int layers = 0; layers < 2; layers++) {
            s.pools = (struct simulate_pools){
                .prefill = 2, .link_bytes_per_s = RATE[k], .link_latency_s = 31e-6, .layers = layers ? 32 : 0};
            const struct simulate_result r = run(&b, &s);
            const double sent_s = PROMPT * TOKEN_BYTES / RATE[k];
            /* layer by layer: 31 of 32 parts beside the prefill, no more than it has room for */
            const double own_s = 31e-6 + (layers ? fmax(sent_s / 32, sent_s - prefill_s + prefill_s / 32) : sent_s);
            assert_int_equal(r.finished, 5);
            for (size_t i = 0; i < 5; i++) {
                near_to(simulate_ttft_s(&r.record[i]), prefill_s, 1e-9, "TTFT");
                near_to(simulate_move_s(&r.record[i]), own_s, 1e-9, "moved");
                near_to(simulate_latency_s(&r.record[i]), prefill_s + own_s + later_s, 1e-9, "latency");
                assert_int_equal(r.record[i].replica, i % 2);
                assert_int_equal(r.record[i].decoder, 2 + i % 3);
            }
            near_to(r.transfer_bytes, 5 * PROMPT * TOKEN_BYTES, 1e-9, "bytes");
            near_to(r.link_busy_s, 5 * (sent_s + 31e-6), 1e-9, "link");
            near_to(r.pool[0].busy_s, 5 * prefill_s, 1e-9, "prefill busy");
            near_to(r.pool[1].busy_s, 5 * later_s, 1e-9, "decode busy");
            assert_int_equal(r.pool[0].replicas, 2);
            assert_int_equal(r.pool[1].replicas, 3);
        }
    arena_close(b.arena);
}

enum { MANY = 151 };

/* Every prompt's step and every token's by itself: one replica of each kind, caches in order of their prompts' ends. */
static void count_pools(struct bench *b, const struct simulate_setup *s, double first_s[MANY], double moved_s[MANY],
                        double finish_s[MANY])
{
    const struct workload_request *q = s->work->request;
    int done[MANY] = {0}, left[MANY], state[MANY] = {0}; /* computed, handed, sent, decoding, gone */
    double now = 0, link_s = 0;
    for (size_t n = 0; n < MANY;) { /* prompts */
        int piece[MANY] = {0};
        int64_t room = s->budget_tokens;
        if (q[n].arrival_s > now) now = q[n].arrival_s;
        mix_clear(&b->x);
        for (size_t i = n; i < MANY && room > 0 && q[i].arrival_s <= now; i++) {
            piece[i] = (int)fmin((double)room, q[i].prompt_tokens - done[i]);
            mix_prefill(&b->x, 1, piece[i], done[i]);
            room -= piece[i];
        }
        now += price_s(&b->x);
        for (size_t i = n; i < MANY; i++) {
            done[i] += piece[i];
            if (piece[i] == 0 || done[i] < q[i].prompt_tokens) continue;
            first_s[i] = now;
            n = i + 1;
        }
    }
    now = 0;
    for (size_t i = 0; i < MANY; i++) {
        left[i] = q[i].output_tokens - 1;
        finish_s[i] = first_s[i];
        moved_s[i] = (double)NAN;
        state[i] = left[i] > 0 ? 0 : 3;
    }
    for (bool more = true; more;) { /* tokens */
        double next_s = (double)INFINITY;
        bool any = false;
        more = false;
        for (size_t i = 0; i < MANY; i++) {
            if (state[i] == 0 && first_s[i] <= now) {
                link_s = moved_s[i] = fmax(now, link_s) + q[i].prompt_tokens * TOKEN_BYTES / s->pools.link_bytes_per_s;
                state[i] = 1;
            }
            if (state[i] == 1 && moved_s[i] <= now) state[i] = 2;
            any |= state[i] == 2;
            more |= state[i] != 3;
            if (state[i] == 0) next_s = fmin(next_s, first_s[i]);
            if (state[i] == 1) next_s = fmin(next_s, moved_s[i]);
        }
        if (!any) {
            now = next_s;
            continue;
        }
        mix_clear(&b->x);
        for (size_t i = 0; i < MANY; i++)
            if (state[i] == 2) mix_decode(&b->x, 1, q[i].prompt_tokens + q[i].output_tokens - left[i]);
        now += price_s(&b->x);
        for (size_t i = 0; i < MANY; i++) {
            if (state[i] != 2 || --left[i] > 0) continue;
            finish_s[i] = now;
            state[i] = 3;
        }
    }
}

static void test_against_count(void **state)
{
    (void)state;
    static const struct {
        double rate, link;
        int64_t budget;
    } CASES[] = {{11, 3e9, 512}, {29, .8e9, 2048}};
    struct bench b;
    double first_s[MANY], moved_s[MANY], finish_s[MANY];
    open_bench(&b, "llama-3.1-8b", "h200-sxm");
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const struct workload w = make(&b, CASES[c].rate, 0, MANY, "lognormal:709,1.3,max=9001", "exponential:37", 1);
        struct simulate_setup s = setup_of(&b, &w);
        s.budget_tokens = CASES[c].budget;
        s.replicas = 2;
        s.pools = (struct simulate_pools){.prefill = 1, .link_bytes_per_s = CASES[c].link};
        const struct simulate_result r = run(&b, &s);
        count_pools(&b, &s, first_s, moved_s, finish_s);
        assert_int_equal(r.finished, MANY);
        for (size_t i = 0; i < MANY; i++) {
            near_to(r.record[i].first_s, first_s[i], 1e-9, "first");
            near_to(r.record[i].finish_s, finish_s[i], 1e-7, "finish");
            if (w.request[i].output_tokens > 1)
                near_to(r.record[i].moved_s, moved_s[i], 1e-7, "moved");
            else
                assert_true(isnan(r.record[i].moved_s));
        }
    }
    arena_close(b.arena);
}

/* The same service at equilibrium: Little's law for each pool, and a queue for the link. */
static void test_steady(void **state)
{
    (void)state;
    static const double PART[] = {.3, .6, .8};
    struct bench b;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    for (size_t k = 0; k < sizeof PART / sizeof PART[0]; k++) {
        struct steady_lengths l;
        struct steady_result y;
        struct workload w = make(&b, 1, 0, 24000, "lognormal:1511,0.7,max=9001", "lognormal:307,0.8,max=4001", 1);
        if (steady_lengths_of_work(b.arena, &w, 0, &l, &e) != ERR_OK) fail_msg("%s", e.text);
        struct simulate_setup s = setup_of(&b, &w);
        s.budget_tokens = 8192;
        s.replicas = 5;
        s.pools = (struct simulate_pools){.prefill = 3, .link_bytes_per_s = 25e9};
        const struct steady_decode d = {.plan = b.plan,
                                        .max_seqs = s.max_seqs,
                                        .blocks = s.blocks,
                                        .block_tokens = 16,
                                        .replicas = 2,
                                        .kv_bytes_per_token = TOKEN_BYTES,
                                        .link_bytes_per_s = 25e9};
        struct steady_setup q = {.plan = b.plan,
                                 .policy = SIMULATE_CHUNKED,
                                 .budget_tokens = s.budget_tokens,
                                 .max_seqs = s.max_seqs,
                                 .blocks = s.blocks,
                                 .block_tokens = 16,
                                 .replicas = 3,
                                 .lengths = &l,
                                 .rate_per_s = 1,
                                 .arrival_cv2 = 1,
                                 .ttft_limit_s = (double)NAN,
                                 .tpot_limit_s = (double)NAN,
                                 .decode = &d};
        if (steady_solve(b.arena, &q, &y, &e) != ERR_OK) fail_msg("%s", e.text);
        q.rate_per_s = PART[k] * y.saturation_rate_per_s;
        for (size_t i = 0; i < w.n; i++) w.request[i].arrival_s /= q.rate_per_s;
        w.span_s /= q.rate_per_s;
        if (steady_solve(b.arena, &q, &y, &e) != ERR_OK) fail_msg("%s", e.text);
        const struct simulate_result r = run(&b, &s);
        struct simulate_spread ttft, tpot, latency, move;
        if (simulate_spread_of(&r, simulate_ttft_s, &ttft, &e) != ERR_OK ||
            simulate_spread_of(&r, simulate_tpot_s, &tpot, &e) != ERR_OK ||
            simulate_spread_of(&r, simulate_move_s, &move, &e) != ERR_OK ||
            simulate_spread_of(&r, simulate_latency_s, &latency, &e) != ERR_OK)
            fail_msg("%s", e.text);
        if (getenv("RIDGE_STEADY"))
            print_message(
                "%.1f: TTFT %.4g %.4g, TPOT %.4g %.4g, latency %.4g %.4g, move %.3g %.3g, busy %.3f %.3f, %.3f %.3f\n",
                PART[k], ttft.p50, y.ttft_s.p50, tpot.mean, y.tpot_s.mean, latency.mean, y.latency_s.mean, move.mean,
                y.move_s, r.pool[0].busy_s / 3 / r.span_s, y.utilisation, r.pool[1].busy_s / 2 / r.span_s,
                y.decode_utilisation);
        near_to(y.tpot_s.mean, tpot.mean, .05, "TPOT");
        near_to(y.move_s, move.mean, .15, "a step's end, and the transfer");
        near_to(y.latency_s.mean, latency.mean, .05, "latency");
        near_to(y.ttft_s.p50, ttft.p50, .2, "TTFT");
        near_to(y.utilisation, r.pool[0].busy_s / 3 / r.span_s, .08, "prefill");
        near_to(y.decode_batch, r.pool[1].mean_running, .1, "decode batch");
    }
    arena_close(b.arena);
}

/* A slow link is what limits; the prompts' caches that wait for it fill the pool that prefills, and that stops. */
static void test_link(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 0, 300, "1511", "17", 1);
    struct simulate_setup s = setup_of(&b, &w);
    s.replicas = 3;
    s.blocks = 997; /* ten prompts */
    s.pools = (struct simulate_pools){.prefill = 2, .link_bytes_per_s = 1e9};
    const struct simulate_result r = run(&b, &s);
    const double each_s = 1511 * TOKEN_BYTES / 1e9;
    assert_int_equal(r.finished, 300);
    assert_true(r.span_s >= 150 * each_s && r.span_s < 151 * each_s + 1);
    near_to(r.link_busy_s, 300 * each_s, 1e-9, "link");
    assert_int_equal(r.pool[0].preemptions, 0);
    arena_close(b.arena);
}

/* Few blocks where it decodes: what is lost is computed anew there, and all is answered; samples share the prompt. */
static void test_crowded(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    for (int64_t samples = 1; samples < 4; samples += 2) {
        const struct workload w =
            make(&b, 23, 0, 211, "lognormal:709,1.1,max=3001", "lognormal:411,0.9,max=2003", samples);
        struct simulate_setup s = setup_of(&b, &w);
        s.replicas = 3;
        s.blocks = 613;
        s.pools = (struct simulate_pools){.prefill = 1, .link_bytes_per_s = 9e9, .layers = 32};
        const struct simulate_result r = run(&b, &s);
        double prompts = 0;
        assert_int_equal(r.finished + r.refused, 211);
        assert_true(r.pool[1].preemptions > 10);
        for (size_t i = 0; i < w.n; i++) {
            const struct simulate_record *x = &r.record[i];
            if (!(x->finish_s >= 0)) continue;
            prompts += x->prompt_tokens;
            assert_true(x->start_s >= x->arrival_s && x->first_s > x->start_s && x->finish_s >= x->first_s);
            assert_true(x->output_tokens == 1 || (x->moved_s > x->first_s && x->finish_s > x->moved_s));
        }
        assert_true(r.computed_tokens > prompts);
        s.preemption = SIMULATE_SWAP;
        s.swap = (struct simulate_swap){.bytes_per_s = 25e9, .host_bytes = 1e12, .block_bytes = 16 * TOKEN_BYTES};
        s.prefix_cache = true;
        const struct simulate_result swapped = run(&b, &s);
        assert_true(swapped.finished == r.finished && swapped.swaps > 10 && swapped.swapped_back == swapped.swaps);
        assert_true(swapped.computed_tokens < r.computed_tokens);
        if (samples > 1) assert_true(r.copies > 0);
    }
    arena_close(b.arena);
}

/* ---- the host ---- */

enum { TOGETHER = 7 };

struct counted {
    double finish_s[TOGETHER], bytes, copied_s;
    int64_t swaps;
};

/* All at once, their prompts in one step; who entered last loses its blocks first and comes back last. */
static struct counted count_swaps(struct bench *b, const struct simulate_setup *s)
{
    struct counted c = {.swaps = 0};
    const struct workload_request *q = s->work->request;
    int stored[TOGETHER], line[TOGETHER], gone[TOGETHER], line_n = TOGETHER, gone_n = 0, generated[TOGETHER];
    double now = 0;
    mix_clear(&b->x);
    for (int i = 0; i < TOGETHER; i++) {
        line[i] = i;
        stored[i] = q[i].prompt_tokens;
        generated[i] = 1;
        mix_prefill(&b->x, 1, q[i].prompt_tokens, 0);
    }
    now = price_s(&b->x);
    while (line_n + gone_n > 0) {
        int64_t moved = 0;
        bool lost = false;
        for (;;) {
            int64_t blocks = 0;
            for (int i = 0; i < line_n; i++) blocks += (stored[line[i]] + 1 + 15) / 16;
            if (blocks > s->blocks) {
                gone[gone_n++] = line[--line_n];
                moved += (stored[gone[gone_n - 1]] + 15) / 16;
                c.swaps++;
                lost = true;
                continue;
            }
            if (lost || gone_n == 0 || blocks + (stored[gone[gone_n - 1]] + 1 + 15) / 16 > s->blocks) break;
            line[line_n++] = gone[--gone_n];
            moved += (stored[line[line_n - 1]] + 15) / 16;
        }
        mix_clear(&b->x);
        for (int i = 0; i < line_n; i++) mix_decode(&b->x, 1, ++stored[line[i]]);
        c.bytes += (double)moved * s->swap.block_bytes;
        now += (double)moved * s->swap.block_bytes / s->swap.bytes_per_s + price_s(&b->x);
        int kept = 0;
        for (int i = 0; i < line_n; i++) {
            if (++generated[line[i]] < q[line[i]].output_tokens)
                line[kept++] = line[i];
            else
                c.finish_s[line[i]] = now;
        }
        line_n = kept;
    }
    return c;
}

static void test_swap(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 0, TOGETHER, "uniform:101..311", "uniform:53..907", 1);
    struct simulate_setup s = setup_of(&b, &w);
    s.blocks = 103;
    s.preemption = SIMULATE_SWAP;
    s.swap =
        (struct simulate_swap){.bytes_per_s = 23e9, .host_bytes = (double)INFINITY, .block_bytes = 16 * TOKEN_BYTES};
    const struct simulate_result r = run(&b, &s);
    const struct counted c = count_swaps(&b, &s);
    assert_true(c.swaps > 3);
    assert_int_equal(r.swaps, c.swaps);
    assert_int_equal(r.swapped_back, c.swaps);
    assert_int_equal(r.preemptions, c.swaps);
    near_to(r.swapped_bytes, c.bytes, 1e-12, "bytes");
    near_to(r.copied_s, c.bytes / 23e9, 1e-9, "copies");
    near_to(r.swap_would_s, c.bytes / 23e9, 1e-9, "told");
    near_to(r.computed_tokens, r.prompt_tokens, 1e-12, "nothing is computed anew");
    for (size_t i = 0; i < TOGETHER; i++) near_to(r.record[i].finish_s, c.finish_s[i], 1e-8, "finish");
    arena_close(b.arena);
}

/* No room at the host is computing anew; some room is some of both; a rate that nothing takes is the fastest. Prompts
 * in pieces, and prompts first. */
static void test_choice(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 9, 0, 307, "lognormal:709,1.1,max=3001", "lognormal:411,0.9,max=2003", 1);
    for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++) {
        struct simulate_setup s = setup_of(&b, &w);
        s.policy = (enum simulate_policy)p;
        s.blocks = 613;
        s.swap = (struct simulate_swap){.bytes_per_s = 25e9, .host_bytes = 0, .block_bytes = 16 * TOKEN_BYTES};
        const struct simulate_result anew = run(&b, &s);
        s.preemption = SIMULATE_SWAP;
        const struct simulate_result none = run(&b, &s);
        s.swap.host_bytes = 57 * 16 * TOKEN_BYTES;
        const struct simulate_result some = run(&b, &s);
        s.swap.host_bytes = 1e12;
        s.swap.bytes_per_s = 1e18;
        const struct simulate_result free_copies = run(&b, &s);
        assert_true(anew.preemptions > 20 && anew.swaps == 0 && none.swaps == 0);
        assert_true(anew.span_s == none.span_s && anew.computed_tokens == none.computed_tokens);
        assert_true(anew.recompute_would_s > 0 && anew.swap_would_s > 0 && anew.copied_s == 0);
        assert_true(some.swaps > 0 && some.swaps < some.preemptions && some.swapped_back == some.swaps);
        assert_true(free_copies.swaps == free_copies.preemptions && free_copies.finished == anew.finished);
        assert_true(free_copies.busy_s < anew.busy_s);
        assert_true(some.computed_tokens < anew.computed_tokens);
        near_to(free_copies.computed_tokens, free_copies.prompt_tokens, 1e-12, "nothing anew");
    }
    arena_close(b.arena);
}

/* ---- drafts ---- */

/* The target, its verify pass and a draft on one device. */
struct drafting {
    struct model draft;
    struct speculate_setup of;
    struct step *own;
    struct mix_plan *plan;
};

static void open_drafting(struct bench *b, struct drafting *d, const char *draft, const char *accept, int64_t gamma,
                          bool bonus)
{
    struct err e = {0};
    struct step_setup u = {.model = &b->model,
                           .hw = &b->hw,
                           .layout = {.tp = 1},
                           .fidelity = STEP_ROOFLINE,
                           .block_tokens = 16,
                           .prefill_together = true};
    *d = (struct drafting){.of = {.bonus = bonus}};
    if (model_load(b->arena, draft, NULL, 0, &d->draft, &e) != ERR_OK ||
        speculate_accept_parse(accept, &d->of.accept, &e) != ERR_OK ||
        step_compile(b->arena, &u, &d->of.target, &e) != ERR_OK)
        fail_msg("%s", e.text);
    u.pass_tokens = gamma + bonus;
    if (mix_compile(b->arena, &u, &d->plan, &e) != ERR_OK) fail_msg("%s", e.text);
    u.pass_tokens = 0;
    u.verify = true;
    if (step_compile(b->arena, &u, &d->of.verify, &e) != ERR_OK) fail_msg("%s", e.text);
    u.verify = false;
    u.model = &d->draft;
    if (step_compile(b->arena, &u, &d->of.draft, &e) != ERR_OK) fail_msg("%s", e.text);
}

static double step_value(struct step *s, double B, double T, double S, enum step_value which)
{
    double x = 0, one = 1, *column[STEP_VALUES_N] = {0};
    column[which] = &x;
    step_eval(s, 1, &B, &T, &S, &one, column);
    return x;
}

/* A sequence by itself: every drafted token kept, none, or as it falls; steps by the verify pass and the draft's. */
static void test_draft_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61, GAMMA = 4 };
    static const char *const ACCEPT[] = {"1", "0"};
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 1, 3, "1013", "61", 1);
    for (int k = 0; k < 2; k++)
        for (int bonus = 0; bonus < 2; bonus++) {
            struct drafting d;
            open_drafting(&b, &d, "llama-3.2-1b", ACCEPT[k], GAMMA, bonus == 1);
            struct simulate_setup s = setup_of(&b, &w);
            s.plan = d.plan;
            s.draft = (struct simulate_draft){.of = &d.of, .gamma = GAMMA, .prompts = true, .seed = 3};
            const struct simulate_result r = run(&b, &s);
            const int made = k == 0 ? GAMMA + bonus : 1;
            double later_s = 0;
            int64_t steps = 1;
            for (int left = OUTPUT - 1, stored = PROMPT; left > 0; left -= made, stored += made, steps++) {
                later_s += step_value(d.of.verify, 1, GAMMA + bonus, stored + 1, STEP_decode_step_s);
                for (int i = 0; i < GAMMA; i++)
                    later_s += step_value(d.of.draft, 1, 1, stored + 1 + i, STEP_decode_step_s);
            }
            const double first_s = step_value(d.of.target, 1, PROMPT, PROMPT, STEP_prefill_s) +
                                   step_value(d.of.draft, 1, PROMPT, PROMPT, STEP_prefill_s);
            assert_int_equal(r.steps, 3 * steps);
            for (size_t i = 0; i < 3; i++) {
                near_to(simulate_ttft_s(&r.record[i]), first_s, 1e-9, "TTFT");
                near_to(simulate_latency_s(&r.record[i]), first_s + later_s, 1e-9, "latency");
            }
            near_to(r.judged_tokens / r.judged, made, 1e-12, "tokens");
            assert_true(r.draft_s > 0 && r.draft_s < r.busy_s);
        }
    arena_close(b.arena);
}

/* Tokens a step of a sequence are those of the formula within three standard errors: a chain, and by depth; the same
 * whatever the scheduler and the memory; other seeds, others. */
static void test_draft_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        int64_t gamma;
        bool bonus;
    } CASES[] = {{"0.8", 4, true}, {"0.61", 7, false}, {"0.9,0.7,0.4", 3, true}};
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 23, 0, 401, "lognormal:709,1.1,max=3001", "exponential:211", 1);
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct drafting d;
        open_drafting(&b, &d, "llama-3.2-1b", CASES[c].accept, CASES[c].gamma, CASES[c].bonus);
        struct simulate_setup s = setup_of(&b, &w);
        s.plan = d.plan;
        s.draft = (struct simulate_draft){.of = &d.of, .gamma = CASES[c].gamma, .prompts = true, .seed = 11};
        const struct simulate_result r = run(&b, &s);
        const double expected = speculate_tokens(&d.of.accept, CASES[c].gamma, CASES[c].bonus);
        double square = 0, chance = 1; /* of at least i kept */
        for (int64_t i = 0; i <= CASES[c].gamma; i++) {
            const double next = i < CASES[c].gamma ? chance * speculate_accept_at(&d.of.accept, i + 1) : 0;
            const double made = fmin((double)i + 1, (double)(CASES[c].gamma + CASES[c].bonus));
            square += (chance - next) * (made - expected) * (made - expected);
            chance = next;
        }
        if (fabs(r.judged_tokens / r.judged - expected) > 3 * sqrt(square / r.judged))
            fail_msg("%s: %.5g tokens a step, wanted %.5g", CASES[c].accept, r.judged_tokens / r.judged, expected);
        assert_int_equal(r.finished, 401);
        assert_true(r.judged > 5000);
        s.policy = SIMULATE_FCFS;
        const struct simulate_result other = run(&b, &s);
        assert_true(other.judged >= r.judged && other.judged <= r.judged && other.steps != r.steps);
        near_to(other.judged_tokens, r.judged_tokens, 1e-12, "drawn");
        s.blocks = 401; /* what is computed anew gets a token from its prefill */
        const struct simulate_result crowded = run(&b, &s);
        assert_true(crowded.preemptions > 0 && crowded.finished == 401);
        s.policy = SIMULATE_CHUNKED;
        s.prefix_cache = true;
        s.preemption = SIMULATE_SWAP;
        s.swap = (struct simulate_swap){.bytes_per_s = 25e9, .host_bytes = 1e12, .block_bytes = 16 * TOKEN_BYTES};
        const struct simulate_result swapped = run(&b, &s);
        assert_true(swapped.swaps > 0 && swapped.swaps == swapped.swapped_back && swapped.finished == 401);
        near_to(swapped.judged_tokens, r.judged_tokens, 1e-12, "drawn");
        s.prefix_cache = false;
        s.preemption = SIMULATE_RECOMPUTE;
        s.policy = SIMULATE_FCFS;
        s.blocks = 30011;
        s.draft.seed = 12;
        assert_true(run(&b, &s).kept_tokens < other.kept_tokens || run(&b, &s).kept_tokens > other.kept_tokens);
    }
    arena_close(b.arena);
}

/* What is never kept is the simulation without a draft, in longer steps. */
static void test_draft_nothing(void **state)
{
    (void)state;
    struct bench b;
    struct drafting d;
    struct simulate_result r;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 0, 97, "uniform:101..907", "uniform:17..211", 3);
    struct simulate_setup s = setup_of(&b, &w);
    s.budget_tokens = 1 << 20; /* all prompts in the first step */
    s.max_seqs = 1000;
    const struct simulate_result plain = run(&b, &s);
    open_drafting(&b, &d, "llama-3.2-1b", "0", 5, true);
    s.plan = d.plan;
    s.draft = (struct simulate_draft){.of = &d.of, .gamma = 5, .prompts = true};
    const struct simulate_result none = run(&b, &s);
    assert_int_equal(none.steps, plain.steps);
    assert_true(none.output_tokens >= plain.output_tokens && none.output_tokens <= plain.output_tokens);
    assert_true(none.busy_s - none.draft_s > plain.busy_s && none.draft_s > 0);
    s.draft.gamma = 4; /* not the plan's */
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s.draft.gamma = 5;
    s.budget_tokens = 4000;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    arena_close(b.arena);
}

static void test_refusals(void **state)
{
    (void)state;
    struct bench b;
    struct simulate_result r;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm");
    const struct workload w = make(&b, 0, 0, 3, "100", "20", 1);
    struct simulate_setup s = setup_of(&b, &w);
    s.replicas = 3;
    s.pools = (struct simulate_pools){.prefill = 3, .link_bytes_per_s = 1e9};
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s.pools.prefill = 2;
    s.pools.link_bytes_per_s = (double)NAN;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s.pools.link_bytes_per_s = (double)INFINITY;
    assert_int_equal(run(&b, &s).finished, 3);
    s.policy = SIMULATE_FCFS;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s = setup_of(&b, &w);
    s.preemption = SIMULATE_SWAP;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    arena_close(b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),         cmocka_unit_test(test_against_count), cmocka_unit_test(test_steady),
        cmocka_unit_test(test_link),          cmocka_unit_test(test_crowded),       cmocka_unit_test(test_swap),
        cmocka_unit_test(test_choice),        cmocka_unit_test(test_draft_alone),   cmocka_unit_test(test_draft_tokens),
        cmocka_unit_test(test_draft_nothing), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
