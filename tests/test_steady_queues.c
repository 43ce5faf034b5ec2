/* Queues inside the steady state: the chain of what waits, every n-th of a stream, static batches, each counted step by
 * step or by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "calc/serve/steady_batches.h"
#include "calc/serve/steady_chain.h"
#include "tests/steady_config.h"

/* A chain against a queue of whole prompts, step by step: time of a step, seconds of the first seven of an answer, what
 * waits behind nothing, others that begin with one, and the first tokens of those who come in a step. */
static void test_chain(void **state)
{
    (void)state;
    enum { STEPS = 200000, AFTER = 7, QUEUE = 256 };
    static const struct {
        const char *prompt, *output;
        int64_t budget;
        double load;
        int phases;
    } CASES[] = {{"1709", "53", 1103, .6, 1}, {"307", "41", 2003, .7, 1}, {"exponential:907", "67", 811, .5, 1},
                 {"1709", "53", 1103, .7, 2}, {"307", "41", 2003, .7, 3}, {"exponential:907", "67", 811, .6, 3}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct steady_chain c;
        static struct steady_histogram h;
        static double step_s[STEPS + AFTER];
        static unsigned char begun[STEPS + AFTER];
        struct config k;
        struct err e = {0};
        config_open_fixed(&k, SIMULATE_CHUNKED, CASES[i].prompt, CASES[i].output);
        k.steady.budget_tokens = CASES[i].budget;
        k.steady.replicas = CASES[i].phases;
        must(steady_times_open(k.arena, &k.steady, &k.steady.times, &e), &e);
        struct steady_times *t = k.steady.times;
        assert_int_equal(steady_chain_phases(&k.steady), CASES[i].phases);
        must(steady_chain_room(t, CASES[i].phases, &e), &e);
        c = t->chain[0];
        struct steady_replica r = {.s = &k.steady, .times = t, .arrival_cv2 = 1, .prompts_frac = 1};
        const double n = 11, room = (double)CASES[i].budget - n, full_s = steady_times_step_s(t, n, room);
        const double rate = CASES[i].load * room / (full_s * k.lengths.prompt_tokens);
        const bool fixed = CASES[i].prompt[0] != 'e';
        steady_chain_open(&r, rate, n, n, false, &c);
        steady_histogram_clear(&h);
        steady_chain_first(&c, &k.lengths, 0, 1, &h);
        double queue[QUEUE], came_s[QUEUE], sum_s = 0, first_s = 0, firsts = 0, clear = 0;
        int waiting = 0, phase = 0;
        uint64_t seed = 77 + i;
        for (int q = 0; q < 10; q++) (void)config_uniform(&seed);
        for (size_t step = 0; step < STEPS + AFTER; step++) {
            double left = room, tokens = 0;
            int done = 0;
            for (int q = 0; q < waiting && left > 0; q++) {
                const double piece = fmin(queue[q], left);
                left -= piece;
                tokens += piece;
                queue[q] -= piece;
                done += !(queue[q] > 0);
            }
            step_s[step] = steady_times_step_s(t, n, tokens);
            for (int q = 0; q < done; q++) first_s += sum_s + step_s[step] - came_s[q];
            firsts += done;
            waiting -= done;
            for (int q = 0; q < waiting; q++) {
                queue[q] = queue[q + done];
                came_s[q] = came_s[q + done];
            }
            /* every phases-th of a stream */
            const double ticks = CASES[i].phases * rate * step_s[step];
            for (double at = -log1p(-config_uniform(&seed)); at < ticks; at -= log1p(-config_uniform(&seed))) {
                if (++phase % CASES[i].phases != 0) continue;
                assert_true(waiting < QUEUE);
                queue[waiting] =
                    fixed ? k.lengths.prompt_tokens : -k.lengths.prompt_tokens * log1p(-config_uniform(&seed));
                came_s[waiting++] = sum_s + step_s[step] * at / ticks;
            }
            sum_s += step_s[step];
            begun[step] = (unsigned char)done;
            clear += waiting == 0 ? done : 0;
        }
        double seven_s = 0, others = 0, beside = 0, all = 0;
        for (size_t step = 0; step < STEPS; step++) {
            all += begun[step];
            beside += begun[step] * (begun[step] - 1);
            for (size_t a = 1; a <= AFTER && begun[step]; a++) {
                seven_s += begun[step] * step_s[step + a];
                others += begun[step] * begun[step + a];
            }
        }
        double later = AFTER * c.begin;
        for (int a = 1; a <= AFTER && a <= c.known; a++) later += c.more[a];
        near_to(c.mean_s, sum_s / (STEPS + AFTER), .02, "a step");
        near_to(c.begin, all / STEPS, .02, "begin in a step");
        near_to(steady_chain_sum_s(&c, AFTER), seven_s / all, .04, "seven steps");
        double none = 0;
        for (int j = 0; j < c.phases; j++) none += c.entry[j];
        near_to(none, clear / firsts, .1, "nothing behind it");
        near_to(1 + c.with, 1 + beside / all, .1, "begin with it");
        near_to(1 + later, 1 + others / all, .12, "begin later");
        near_to(h.sum / h.total, first_s / firsts, .04, "first token");
        arena_close(k.arena);
    }
}

/* Every n-th of a stream, counted one by one: how many come from each phase, and the phase that follows. */
static void test_ticks(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    static const double TICKS[] = {.37, 2.9, 13.1};
    uint64_t seed = 4711;
    for (int n = 2; n <= STEADY_CHAIN_PHASES; n++)
        for (size_t t = 0; t < sizeof TICKS / sizeof *TICKS; t++)
            for (int from = 0; from < n; from++) {
                const struct steady_chain_ticks x = steady_chain_tick(n, TICKS[t]);
                double of[3][STEADY_CHAIN_PHASES] = {{0}}, several = 0, mean = 0, square = 0, all = 0;
                for (int i = 0; i < DRAWS; i++) {
                    int phase = from, came = 0;
                    for (double at = -log1p(-config_uniform(&seed)); at < TICKS[t]; at -= log1p(-config_uniform(&seed)))
                        if (++phase == n) {
                            phase = 0;
                            came++;
                        }
                    of[came < 2 ? came : 2][phase] += 1. / DRAWS;
                    several += came > 1;
                    mean += came > 1 ? came : 0;
                    square += came > 1 ? came * came : 0;
                }
                for (int some = 0; some < 3; some++)
                    for (int q = 0; q < n; q++) {
                        assert_true(fabs(x.of[some][from][q] - of[some][q]) < 5e-3);
                        all += x.of[some][from][q];
                    }
                near_to(all, 1, 1e-12, "all");
                if (several > 1000) near_to(x.mean[from], mean / several, .02, "several");
                if (several > 1000) near_to(x.square[from], square / several, .04, "several, squared");
            }
}

/* Twenty-five clients of static batches of ten: half wait for one batch and half for two. */
static void test_turns(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_STATIC, "1013", "61");
    config_close_loop(&c, 25);
    c.steady.max_seqs = 10;
    const struct steady_result r = config_solve(c.arena, &c.steady);
    struct mix x;
    struct err e = {0};
    double v[MIX_VALUES_N];
    must(mix_open(c.arena, c.plan, &x, &e), &e);
    mix_prefill(&x, 10, 1013, 0);
    mix_eval(&x, v);
    const double first_s = v[MIX_step_s], all_s = first_s + 60 * config_step_s(c.arena, c.plan, 1, 1013.5 + 30, 0);
    mix_clear(&x);
    mix_decode(&x, 10, 1013.5 + 30);
    mix_eval(&x, v);
    const double batch_s = first_s + 60 * v[MIX_step_s];
    assert_true(batch_s > all_s); /* of ten, not of one */
    near_to(r.rate_per_s, 10 / batch_s, .01, "ten a batch");
    near_to(r.ttft_s.mean, first_s + 1.5 * batch_s, .02, "a batch and a half");
    near_to(r.ttft_s.p90, first_s + 2 * batch_s, .02, "two");
    near_to(r.ttft_s.p50, first_s + batch_s, .02, "one");
    near_to(r.tpot_s.mean, v[MIX_step_s], .01, "one length");
    arena_close(c.arena);
}

/* Static batches of answers of 17 or 61 tokens, either as likely, prompts of 47: of 8 blocks of 16 tokens a sequence
 * has 4 or 7, so that three short ones fit into 15 blocks and two of whatever length. A batch begins with a long one
 * with the chance q. Of short ones it has three with the chance 1/4, and ends with the same for a long one, which
 * begins the next: q = (1 - x)/2 + x, x = (1 - q)/4, that is q = 5/9, and E[N] = 2 + (1 - q)/4 = 19/9. */
static void test_turns_of(void **state)
{
    (void)state;
    struct config c;
    struct err e = {0};
    struct workload w;
    struct workload_spec spec = {.rate_per_s = 1, .requests = 4000, .turns = 1, .samples = 1, .seed = 3};
    config_open_fixed(&c, SIMULATE_STATIC, "47", "17");
    must(workload_length_parse(c.arena, "47", &spec.prompt, &e), &e);
    must(workload_length_parse(c.arena, "17", &spec.output, &e), &e);
    must(workload_make(c.arena, &spec, &w, &e), &e);
    for (size_t i = 1; i < w.n; i += 2) w.request[i].output_tokens = 61;
    must(steady_lengths_of_work(c.arena, &w, 0, &c.lengths, &e), &e);
    c.steady.blocks = 15;
    struct steady_batches b = {.s = &c.steady};
    struct steady_turns x;
    double below = 0;
    must(mix_open(c.arena, c.plan, &b.x, &e), &e);
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        below += part;
        b.log_below[q] = log(fmin(below, 1));
    }
    steady_turns_of(&b, 2, 256, &x);
    near_to(x.number, 19. / 9, .02, "two, or three short ones");
    arena_close(c.arena);
}

/* Of every other one, by hand: behind one nobody comes in a time of x with the chance e^-2x (1 + 2x), and fewer than x
 * come on average, by (1 - e^-4x)/4 (Cox, Renewal Theory, 1962). */
static void test_turns_by_hand(void **state)
{
    (void)state;
    struct steady_setup s = {.replicas = 2, .route = SIMULATE_ROUND_ROBIN, .load = STEADY_OPEN};
    for (double x = .07; x < 9; x *= 1.9) {
        near_to(steady_turn_none(&s, x), exp(-2 * x) * (1 + 2 * x), 1e-12, "none");
        near_to(steady_turn_fewer(&s, x), -expm1(-4 * x) / 4, 1e-12, "fewer");
    }
    s.replicas = 1;
    near_to(steady_turn_none(&s, .7), exp(-.7), 1e-12, "one copy");
    assert_true(!(steady_turn_fewer(&s, .7) > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),    cmocka_unit_test(test_ticks),         cmocka_unit_test(test_turns),
        cmocka_unit_test(test_turns_of), cmocka_unit_test(test_turns_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
