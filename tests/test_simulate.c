/* The simulator against an independent count, every step by itself and every sequence looked at in every step: one
 * queue, attention groups, static batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server.h"

enum { NAIVE_MAX = 512 };

struct naive {
    int left, context, done, waits; /* answer tokens to come; cached tokens; of the prompt computed */
    double first_s, finish_s;
};

static double naive_price(const struct simulate_setup *s, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    mix_eval(x, v);
    if (!s->calibrated) return v[MIX_step_s] + s->overhead_s;
    calibrated_mix_eval(s->calibrated, x, v[MIX_step_s], &t);
    return t.s + s->overhead_s;
}

/* Without limits of memory. Chunked: decoding ones take a token each, prompts in order what is left. Prompts first:
 * whole ones within the budget, or one; where there is none all decode. */
static void naive_run(const struct server *b, const struct simulate_setup *s, struct naive *q)
{
    const struct workload *w = s->work;
    const bool together = s->policy == SIMULATE_CHUNKED;
    struct mix x;
    struct err e = {0};
    double now = 0;
    size_t in = 0, out = 0; /* requests in .. entered so far are in the batch, or answered */
    assert_int_equal(mix_open(b->arena, b->plan, &x, &e), ERR_OK);
    for (size_t i = 0; i < w->n; i++)
        q[i] = (struct naive){.left = w->request[i].output_tokens, .first_s = (double)NAN, .finish_s = (double)NAN};
    while (out < w->n) {
        int piece[NAIVE_MAX] = {0};
        int64_t left = s->budget_tokens, prompts = 0;
        if (in == out && w->request[in].arrival_s > now) now = w->request[in].arrival_s;
        mix_clear(&x);
        for (size_t i = 0; i < in && together; i++)
            if (q[i].left > 0 && q[i].done == w->request[i].prompt_tokens) {
                mix_decode(&x, 1, q[i].context + 1);
                piece[i] = -1;
                left--;
            }
        for (size_t i = 0; i < w->n && left > 0; i++) {
            const int64_t more = w->request[i].prompt_tokens - q[i].done;
            if (i >= in) {
                if (w->request[i].arrival_s > now || (int64_t)(in - out) >= s->max_seqs) break;
                if (!together && more > left && prompts > 0) break;
                in++;
            }
            if (more == 0) continue;
            piece[i] = (int)(more < left || !together ? more : left);
            mix_prefill(&x, 1, piece[i], q[i].done);
            left -= piece[i];
            prompts++;
        }
        for (size_t i = 0; i < in && !together && prompts == 0; i++)
            if (q[i].left > 0) {
                mix_decode(&x, 1, q[i].context + 1);
                piece[i] = -1;
            }
        now += naive_price(s, &x);
        for (size_t i = 0; i < in; i++) {
            if (piece[i] > 0) q[i].done += piece[i];
            q[i].context += abs(piece[i]);
            if (piece[i] == 0 || q[i].done < w->request[i].prompt_tokens) continue;
            if (piece[i] > 0) q[i].first_s = now;
            if (--q[i].left > 0) continue;
            q[i].finish_s = now;
            out++;
        }
    }
}

/* The simulator's runs of steps are those steps, one by one. */
static void test_against_steps(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double rate;
        int64_t budget, seqs;
        enum step_fidelity fidelity;
    } CASES[] = {{"llama-3.1-8b", 11, 512, 256, STEP_ROOFLINE},
                 {"llama-3.1-8b", 41, 307, 17, STEP_BOUND},
                 {"gemma-3-27b", 3, 700, 31, STEP_ROOFLINE},
                 {"qwen3-30b-a3b", 17, 2048, 64, STEP_ROOFLINE},
                 {"rwkv6-finch-7b", 13, 401, 43, STEP_ROOFLINE}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct server b;
        struct naive q[NAIVE_MAX];
        server_open(&b, CASES[c].model, "h200-sxm", CASES[c].fidelity);
        const struct workload w =
            server_make(b.arena, CASES[c].rate, 0, 101, "lognormal:709,1.3,max=9001", "lognormal:97,0.9", 17);
        for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++) {
            struct simulate_setup s = server_setup(&b, &w, (enum simulate_policy)p);
            s.budget_tokens = CASES[c].budget;
            s.max_seqs = CASES[c].seqs;
            s.overhead_s = .00031;
            const struct simulate_result r = server_run(b.arena, &s);
            naive_run(&b, &s, q);
            assert_int_equal(r.finished, w.n);
            for (size_t i = 0; i < w.n; i++) {
                near_to(r.record[i].first_s, q[i].first_s, 1e-7, CASES[c].model);
                near_to(r.record[i].finish_s, q[i].finish_s, 1e-7, CASES[c].model);
            }
        }
        arena_close(b.arena);
    }
}

/* Calibrated times of runs are those of single steps within what the runs are cut to. */
static void test_calibrated(void **state)
{
    (void)state;
    struct server b;
    struct naive q[NAIVE_MAX];
    struct step *step;
    struct source source;
    struct err e = {0};
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_BOUND);
    const struct step_setup setup = {
        .model = &b.model, .hw = &b.hw, .layout = {.tp = 1}, .fidelity = STEP_BOUND, .block_tokens = 16};
    const struct workload w = server_make(b.arena, 11, 0, 101, "lognormal:709,1.3,max=9001", "lognormal:97,0.9", 17);
    struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
    assert_int_equal(step_compile(b.arena, &setup, &step, &e), ERR_OK);
    assert_int_equal(source_open(b.arena, &b.hw, NULL, NULL, &source, &e), ERR_OK);
    const struct calibrated_setup of = {.step = step, .source = &source, .mix = b.plan};
    const struct simulate_result floors = server_run(b.arena, &s);
    assert_int_equal(calibrated_open(b.arena, &of, &s.calibrated, &e), ERR_OK);
    const struct simulate_result r = server_run(b.arena, &s);
    size_t far = 0;
    naive_run(&b, &s, q);
    for (size_t i = 0; i < w.n; i++) {
        const double tpot_s = (q[i].finish_s - q[i].first_s) / (r.record[i].output_tokens - 1);
        far += r.record[i].output_tokens > 1 && fabs(simulate_tpot_s(&r.record[i]) / tpot_s - 1) > 5e-4;
        near_to(r.record[i].finish_s, q[i].finish_s, 1e-3, "finish");
    }
    if (far > w.n / 20) fail_msg("%zu far", far); /* an arrival may fall into the step before or behind */
    assert_true(r.busy_s > floors.busy_s);
    arena_close(b.arena);
}

/* A static batch by hand: prompts padded to the longest, all decode until the longest answer is done, and the one that
 * came meanwhile waits for all of that. */
static void test_static_batch(void **state)
{
    (void)state;
    static const char TRACE[] = "arrival_s,prompt_tokens,output_tokens\n0,53,31\n0,101,7\n0.001,17,2\n";
    struct server b;
    struct workload w;
    struct mix x;
    struct err e = {0};
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    assert_int_equal(workload_read_text(b.arena, "t", TRACE, sizeof TRACE - 1, &w, &e), ERR_OK);
    const struct simulate_setup s = server_setup(&b, &w, SIMULATE_STATIC);
    const struct simulate_result r = server_run(b.arena, &s);
    assert_int_equal(mix_open(b.arena, b.plan, &x, &e), ERR_OK);
    mix_prefill(&x, 2, 101, 0);
    const double first_s = naive_price(&s, &x);
    double end_s = first_s;
    for (int i = 1; i < 31; i++) {
        mix_clear(&x);
        mix_decode(&x, 2, 101 + i);
        end_s += naive_price(&s, &x);
    }
    for (int i = 0; i < 2; i++) {
        near_to(r.record[i].first_s, first_s, 1e-9, "first");
        near_to(r.record[i].finish_s, end_s, 1e-9, "finish");
    }
    near_to(r.record[2].start_s, end_s, 1e-9, "start");
    arena_close(b.arena);
}

/* Attention groups, each with a queue of its own to which the least loaded is sent, those behind the last one first;
 * every step by itself, every group priced in every step beside the tokens of the others. Without limits of memory,
 * prompts beside those that decode. The known mistake: one queue for all, spread evenly in every step. */
static void naive_groups(const struct server *b, const struct simulate_setup *s, struct naive *q, int *of)
{
    enum { MOST = 8 };
    const struct workload *w = s->work;
    const int groups = (int)s->groups;
    struct mix x[MOST];
    struct err e = {0};
    double now = 0;
    int turn = 0;
    size_t routed = 0, out = 0;
    for (int g = 0; g < groups; g++) assert_int_equal(mix_open(b->arena, s->plan, &x[g], &e), ERR_OK);
    for (size_t i = 0; i < w->n; i++)
        q[i] = (struct naive){.left = w->request[i].output_tokens, .first_s = (double)NAN, .finish_s = (double)NAN};
    while (out < w->n) {
        int piece[NAIVE_MAX] = {0}, load[MOST];
        double all = 0, took_s = 0;
        if (out == routed && w->request[routed].arrival_s > now) now = w->request[routed].arrival_s;
        for (; routed < w->n && w->request[routed].arrival_s <= now; routed++) {
            int to = turn % groups;
            memset(load, 0, sizeof load);
            for (size_t i = 0; i < routed; i++) load[of[i]] += !(q[i].finish_s <= w->request[routed].arrival_s);
            for (int k = 1; k < groups; k++)
                if (load[(turn + k) % groups] < load[to]) to = (turn + k) % groups;
            of[routed] = to;
            turn = to + 1;
        }
        for (int g = 0; g < groups; g++) {
            int64_t left = s->budget_tokens / groups, there = 0;
            mix_clear(&x[g]);
            for (size_t i = 0; i < routed; i++) {
                if (of[i] != g || q[i].left == 0 || q[i].done < w->request[i].prompt_tokens) continue;
                mix_decode(&x[g], 1, q[i].context + 1);
                piece[i] = -1;
                left--;
            }
            for (size_t i = 0; i < routed; i++) {
                if (of[i] != g || q[i].left == 0) continue;
                const int64_t more = w->request[i].prompt_tokens - q[i].done;
                if (++there > s->max_seqs / groups) break;
                if (more == 0 || left == 0) continue;
                piece[i] = (int)(more < left ? more : left);
                mix_prefill(&x[g], 1, piece[i], q[i].done);
                left -= piece[i];
            }
            all += mix_tokens(&x[g]);
        }
        for (int g = 0; g < groups; g++) {
            if (!(mix_tokens(&x[g]) > 0)) continue;
            mix_others(&x[g], all - mix_tokens(&x[g]));
            took_s = fmax(took_s, naive_price(s, &x[g]));
        }
        now += took_s;
        for (size_t i = 0; i < routed; i++) {
            if (piece[i] == 0) continue;
            if (piece[i] > 0) {
                q[i].done += piece[i];
                q[i].context += piece[i];
                if (q[i].done < w->request[i].prompt_tokens) continue;
                q[i].first_s = now;
            } else {
                q[i].context++;
            }
            if (--q[i].left == 0) {
                q[i].finish_s = now;
                out++;
            }
        }
    }
}

static void test_groups(void **state)
{
    static const struct {
        int64_t groups, budget, seqs;
        double rate;
    } CASES[] = {{2, 701, 64, 21}, {4, 300, 3, 53}, {8, 2048, 64, 190}};
    (void)state;
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct server b;
        struct err e = {0};
        struct naive q[NAIVE_MAX];
        int of[NAIVE_MAX];
        server_open(&b, "qwen3-30b-a3b", "h100-sxm", STEP_ROOFLINE);
        const int64_t groups = CASES[c].groups;
        const struct step_setup setup = {.model = &b.model,
                                         .hw = &b.hw,
                                         .layout = {.tp = 1, .dp = groups, .ep = groups},
                                         .fidelity = STEP_ROOFLINE,
                                         .block_tokens = 16};
        if (mix_compile(b.arena, &setup, &b.plan, &e) != ERR_OK) fail_msg("%s", e.text);
        struct workload w =
            server_make(b.arena, CASES[c].rate, 0, 151, "lognormal:600,0.9,max=5000", "uniform:2..90", 17);
        struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
        s.groups = groups;
        s.budget_tokens = groups * CASES[c].budget;
        s.max_seqs = groups * CASES[c].seqs;
        s.route = SIMULATE_LEAST_LOADED;
        naive_groups(&b, &s, q, of);
        const struct simulate_result r = server_run(b.arena, &s);
        assert_int_equal(r.finished, w.n);
        double last_s = 0;
        for (size_t i = 0; i < w.n; i++) {
            near_to(r.record[i].first_s, q[i].first_s, 1e-9, "first token of a group");
            near_to(r.record[i].finish_s, q[i].finish_s, 1e-9, "last token of a group");
            assert_int_equal(r.record[i].replica, 0);
            last_s = fmax(last_s, q[i].finish_s);
        }
        near_to(r.span_s, last_s, 1e-9, "span");
        assert_true(r.busy_s <= last_s && r.mean_running > 1 && r.most_running <= s.max_seqs);
        assert_int_equal(r.held_blocks, 0);
        /* copies of groups: all are routed to, each by itself in time */
        s.replicas = 3;
        const struct simulate_result many = server_run(b.arena, &s);
        int64_t of_copy[3] = {0};
        for (size_t i = 0; i < w.n; i++) of_copy[many.record[i].replica]++;
        assert_true(of_copy[0] > 30 && of_copy[1] > 30 && of_copy[2] > 30);
        assert_int_equal(many.pool[0].replicas, 3);
        /* a cache that holds the longest once in all, not once in every group */
        s.replicas = 1;
        s.blocks = groups * 60;
        assert_true(server_run(b.arena, &s).refused > 0);
        s.blocks = groups - 1;
        assert_int_equal(simulate_run(b.arena, &s, &(struct simulate_result){0}, &e), ERR_RANGE);
        s.blocks = groups * 60;
        s.policy = SIMULATE_FCFS;
        s.budget_tokens = groups - 1;
        assert_int_equal(simulate_run(b.arena, &s, &(struct simulate_result){0}, &e), ERR_RANGE);
        arena_close(b.arena);
    }
}

/* A service whose steps take b times as long, requests b times as far apart: every time is b times as long. */
static void test_slower(void **state)
{
    struct server b;
    (void)state;
    server_open(&b, "llama-3.1-8b", "l40s", STEP_ROOFLINE);
    struct workload w = server_make(b.arena, 7.3, 0, 211, "lognormal:700,0.6,max=3000", "uniform:20..130", 5);
    struct workload far = w;
    const double slower = 1.37;
    far.request = arena_array(b.arena, w.n, sizeof *far.request);
    assert_non_null(far.request);
    for (size_t i = 0; i < w.n; i++) {
        far.request[i] = w.request[i];
        far.request[i].arrival_s *= slower;
    }
    far.span_s *= slower;
    struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED), t = server_setup(&b, &far, SIMULATE_CHUNKED);
    t.slower = slower;
    const struct simulate_result x = server_run(b.arena, &s), y = server_run(b.arena, &t);
    for (size_t i = 0; i < w.n; i++) {
        near_to(y.record[i].first_s, slower * x.record[i].first_s, 1e-6, "first token");
        near_to(y.record[i].finish_s, slower * x.record[i].finish_s, 1e-6, "last token");
    }
    near_to(y.busy_s, slower * x.busy_s, 1e-6, "busy");
    arena_close(b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_steps), cmocka_unit_test(test_calibrated), cmocka_unit_test(test_static_batch),
        cmocka_unit_test(test_groups),        cmocka_unit_test(test_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
