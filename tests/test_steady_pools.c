/* The steady state of two pools: which of them saturates, the link between, and both against the simulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/steady_config.h"

/* Prefill replicas, a link, decode replicas: each saturates in turn; the transfer is between first and second token. */
static void test_pools(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_FCFS, "1511", "307");
    struct steady_decode d = {.plan = c.plan,
                              .max_seqs = 256,
                              .blocks = 20011,
                              .block_tokens = 16,
                              .replicas = 2,
                              .kv_bytes_per_token = 131072,
                              .link_bytes_per_s = 25e9};
    c.steady.decode = &d;
    c.steady.replicas = 3;
    const struct steady_result most = config_solve(c.arena, &c.steady);
    const double prefill_s = config_step_s(c.arena, c.plan, 0, 0, 1511), transfer_s = 1511 * 131072. / 25e9;
    c.steady.rate_per_s = .4 * most.saturation_rate_per_s;
    const struct steady_result r = config_solve(c.arena, &c.steady);
    assert_true(r.ttft_s.mean >= prefill_s * .98 && r.ttft_s.mean <= prefill_s * 1.4); /* idle between, not steps */
    const double rest_s = .5 * r.decode_utilisation * r.step_s; /* of the step that runs when it is asked for */
    near_to(r.move_s - rest_s, transfer_s, .2, "transfer");
    assert_true(r.move_s >= transfer_s + rest_s - 1e-9);
    near_to(r.tpot_s.mean, r.step_s + r.move_s / 306, .01, "TPOT");
    d.link_bytes_per_s = 1e8;
    assert_int_equal(config_solve(c.arena, &c.steady).by, STEADY_TRANSFER);
    near_to(config_solve(c.arena, &c.steady).saturation_rate_per_s, 3 * 1e8 / (1511 * 131072.), 1e-6, "link");
    d.link_bytes_per_s = (double)INFINITY;
    d.replicas = 64;
    c.steady.rate_per_s = 1e9;
    assert_int_equal(config_solve(c.arena, &c.steady).by, STEADY_COMPUTE);
    c.steady.load = STEADY_CLOSED;
    c.steady.concurrency = 5;
    struct steady_result none;
    struct err e = {0};
    assert_int_equal(steady_solve(c.arena, &c.steady, &none, &e), ERR_RANGE);
    arena_close(c.arena);
}

/* Pools that are overloaded: as many answers a second as the slower pool makes, whichever it is. A budget that a step's
 * sequences and a prompt fill does not slow replicas that only decode. Caches that bind lose some: 8 %. */
static void test_pools_overloaded(void **state)
{
    (void)state;
    static const struct {
        const char *prompt, *output;
        int64_t first, second, blocks, budget;
        double within;
        enum steady_limit by;
    } CASES[] = {
        {"211", "199", 1, 1, 20011, 1031, .05, STEADY_SEQS},
        {"1201", "97", 2, 1, 20011, 1031, .05, STEADY_COMPUTE},
        {"1201", "307", 1, 3, 20011, 4099, .05, STEADY_COMPUTE},
        {"4001", "53", 1, 1, 20011, 4099, .05, STEADY_COMPUTE},
        {"101", "uniform:203..803", 2, 1, 20011, 1031, .05, STEADY_SEQS},
        {"211", "499", 1, 1, 6007, 4099, .08, STEADY_BLOCKS},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct config c;
        config_open_fixed(&c, SIMULATE_CHUNKED, CASES[i].prompt, CASES[i].output);
        struct workload_spec spec = {.rate_per_s = 1, .requests = 4000, .turns = 1, .samples = 1, .seed = 23 + i};
        struct err e = {0};
        must(workload_length_parse(c.arena, CASES[i].prompt, &spec.prompt, &e), &e);
        must(workload_length_parse(c.arena, CASES[i].output, &spec.output, &e), &e);
        must(workload_make(c.arena, &spec, &c.work, &e), &e);
        for (size_t k = 0; k < c.work.n; k++) c.work.request[k].arrival_s = 0;
        c.work.open = c.work.timed = false;
        const struct steady_decode d = {.plan = c.plan,
                                        .max_seqs = c.steady.max_seqs,
                                        .blocks = CASES[i].blocks,
                                        .block_tokens = 16,
                                        .replicas = CASES[i].second,
                                        .link_bytes_per_s = (double)INFINITY};
        c.steady.decode = &d;
        c.steady.replicas = CASES[i].first;
        c.steady.blocks = c.simulated.blocks = CASES[i].blocks;
        c.steady.budget_tokens = c.simulated.budget_tokens = CASES[i].budget;
        c.simulated.overhead_s = 0;
        c.simulated.max_seqs = c.steady.max_seqs;
        c.simulated.replicas = CASES[i].first + CASES[i].second;
        c.simulated.pools.prefill = CASES[i].first;
        c.simulated.pools.link_bytes_per_s = (double)INFINITY;
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const struct simulate_result q = config_simulate(c.arena, &c.simulated);
        const double found = config_answers_per_s(c.arena, &q, .25, .85);
        if (!(fabs(r.saturation_rate_per_s / found - 1) <= CASES[i].within))
            print_message("case %zu: saturates at %.6g, simulated %.6g\n", i, r.saturation_rate_per_s, found);
        if (r.by != CASES[i].by) print_message("case %zu by %d\n", i, (int)r.by);
        near_to(r.saturation_rate_per_s, found, CASES[i].within, CASES[i].prompt);
        arena_close(c.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_pools_overloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
