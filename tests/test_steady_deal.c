/* What attention groups have in a step against counts: the largest of several, and prompts that are dealt in turn. */
#include <string.h>

#include "calc/serve/steady_chain.h"
#include "tests/steady_config.h"

#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

/* Three others with a law of four numbers of tokens: all 64 cases. */
static void test_largest(void **state)
{
    (void)state;
    static const double TOKENS[] = {0, 100, 350, 2000}, PART[] = {.5, .25, .15, .1};
    struct steady_law law = {.n = COUNT(TOKENS)};
    struct steady_others found;
    double part[COUNT(TOKENS)] = {0}, sum[COUNT(TOKENS)] = {0};
    memcpy(law.tokens, TOKENS, sizeof TOKENS);
    memcpy(law.part, PART, sizeof PART);
    for (size_t i = 0; i < COUNT(TOKENS); i++)
        for (size_t j = 0; j < COUNT(TOKENS); j++)
            for (size_t k = 0; k < COUNT(TOKENS); k++) {
                const size_t most = i > j ? (i > k ? i : k) : (j > k ? j : k);
                const double w = PART[i] * PART[j] * PART[k];
                part[most] += w;
                sum[most] += w * (TOKENS[i] + TOKENS[j] + TOKENS[k]);
            }
    steady_others_of(&law, 4, &found);
    assert_int_equal(found.n, COUNT(TOKENS));
    for (size_t i = 0; i < COUNT(TOKENS); i++) {
        near_to(found.most[i], TOKENS[i], 1e-12, "the largest");
        near_to(found.part[i], part[i], 1e-12, "its part of steps");
        if (i > 0) near_to(found.sum[i], sum[i] / part[i], 1e-12, "all of them");
    }
    /* of normal variates, in closed form */
    near_to(steady_largest_of(2), 1 / sqrt(acos(-1)), 1e-3, "the larger of two");
    near_to(steady_largest_of(3), 1.5 / sqrt(acos(-1)), 1e-3, "the largest of three");
    assert_true(steady_largest_of(1) == 0);
}

/* Every so many of a stream, in a time: from each phase, by its Poisson number of the stream. */
static void test_every(void **state)
{
    (void)state;
    static const double COUNTS[] = {.02, .3, 1, 4};
    static const int EVERY[] = {2, 3, 8, 16};
    for (size_t c = 0; c < COUNT(COUNTS) * COUNT(EVERY); c++) {
        const double count = COUNTS[c % COUNT(COUNTS)];
        const int every = EVERY[c / COUNT(COUNTS)];
        const struct steady_chain_number x = steady_chain_number_of(every, count),
                                         y = steady_chain_number_before(every, count);
        double p = exp(-every * count), none = 0, one = 0, mean = 0, square = 0, before = 0, none_before = 0;
        for (int ticks = 0; ticks < 260; p *= every * count / ++ticks) {
            for (int phase = 0; phase < every; phase++) {
                const int n = (ticks + phase) / every;
                none += n == 0 ? p / every : 0;
                one += n == 1 ? p / every : 0;
                mean += p / every * n;
                square += p / every * n * n;
            }
            none_before += ticks / every == 0 ? p : 0;
            before += p * (ticks / every);
        }
        near_to(x.none, none, 1e-8, "none");
        near_to(x.one, one, 1e-8, "one");
        near_to(x.mean, mean, 1e-8, "mean");
        near_to(x.square, square, 1e-8, "square");
        near_to(y.none, none_before, 1e-8, "none before one");
        if (before > 1e-9) near_to(y.mean, before, 1e-6, "mean before one");
    }
    const struct steady_chain_number far = steady_chain_number_of(16, 40), near = steady_chain_number_of(16, 24);
    near_to(far.square - 1600, 2.5 + 255. / 1536, 1e-9, "variance of many, phases uniform");
    near_to(near.square - 24 * 24, 1.5 + 255. / 1536, 1e-6, "variance, counted");
}

/* Prompts of 1000 dealt in turn to three groups, each of which has 400 left over with the chance .3; a step has room
 * for 1900. Every number, every place in turn, all that is left over: what one has and what the other two have. */
static void test_dealt(void **state)
{
    (void)state;
    enum { GROUPS = 3, PLACES = 7 };
    static const double TOKENS[PLACES] = {0, 400, 1000, 1400, 1900, 2000, 2400}, COUNT_EACH = .7, LEFT = .3;
    static struct steady_chain c;
    static struct steady_deal found;
    struct steady_times t = {.parts = GROUPS};
    double left[STEADY_CHAIN_PLACES] = {1 - LEFT, LEFT}, p = exp(-GROUPS * COUNT_EACH);
    double of[STEADY_DEALS] = {0}, own[STEADY_DEALS][5] = {{0}}, most[STEADY_DEALS][5] = {{0}},
           all[STEADY_DEALS][5] = {{0}};
    c = (struct steady_chain){.times = &t,
                              .arrival_cv2 = 1,
                              .room = 1900,
                              .gap = 100,
                              .prompt_tokens = 1000,
                              .prompt_square = 1e6,
                              .n = PLACES,
                              .full = 4,
                              .copies = 1,
                              .ones = 1,
                              .one_tokens = {1000},
                              .one_part = {1}};
    memcpy(c.tokens, TOKENS, sizeof TOKENS);
    for (int n = 0; n < 30; p *= GROUPS * COUNT_EACH / ++n)
        for (int turn = 0; turn < GROUPS; turn++)
            for (int over = 0; over < 1 << GROUPS; over++) {
                double w = p / GROUPS, sum = 0;
                int place[GROUPS], largest = 0, number = 0;
                for (int g = 0; g < GROUPS; g++) {
                    const int prompts = (n + (g + turn) % GROUPS) / GROUPS, some = over >> g & 1;
                    w *= some ? LEFT : 1 - LEFT;
                    place[g] = prompts > 1 ? 4 : 2 * prompts + some;
                    if (g == 0) number = prompts < 2 ? prompts : 2;
                    if (g > 0 && place[g] > largest) largest = place[g];
                    sum += g > 0 ? TOKENS[place[g]] : 0;
                }
                of[number] += w;
                own[number][place[0]] += w;
                most[number][largest] += w;
                all[number][largest] += w * sum;
            }
    steady_chain_deal(&c, COUNT_EACH, left, &found);
    for (int k = 0; k < STEADY_DEALS; k++) {
        near_to(found.of[k], of[k], 2e-4, "none, one, several");
        for (int i = 0; i <= c.full; i++) {
            if (fabs(found.own[k][i] - own[k][i]) > 1e-4)
                fail_msg("own %d %d: %g, %g", k, i, found.own[k][i], own[k][i]);
            if (fabs(found.most[k][i] - most[k][i] / of[k]) > 1e-3)
                fail_msg("most %d %d: %g, %g", k, i, found.most[k][i], most[k][i] / of[k]);
            if (fabs(found.all[k][i] - all[k][i] / of[k]) > 2)
                fail_msg("all %d %d: %g, %g", k, i, found.all[k][i], all[k][i] / of[k]);
        }
    }
    /* the known mistake, groups with that law each but independent: two of them fill a step far too often */
    const double full = own[0][4] + own[1][4] + own[2][4], both = 1 - pow(1 - full, 2);
    double others = 0;
    for (int k = 0; k < STEADY_DEALS; k++) others += found.of[k] * found.most[k][4];
    if (!(both > 1.05 * others)) fail_msg("independent %g, in turn %g", both, others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_largest), cmocka_unit_test(test_every),
                                       cmocka_unit_test(test_dealt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
