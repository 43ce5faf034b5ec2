/* speculate loop: what comes out is the target's distribution, and a wrong verifier is seen; greedy; lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/speculate.h"

enum { VOCAB = 7, SEQUENCES = 20000, LENGTH = 2, CELLS = VOCAB * VOCAB, NODES = 511 };

struct pair {
    double p[VOCAB * VOCAB], q[VOCAB * VOCAB];
};

/* Rows of softmaxes of normals; the draft's logits are the target's and noise of a standard deviation. */
static void make(struct pair *m, double noise, uint64_t seed)
{
    for (size_t row = 0; row < VOCAB; row++) {
        double sums[2] = {0, 0};
        for (size_t i = 0; i < VOCAB; i++) {
            const size_t at = row * VOCAB + i;
            const double logit = kern_normal(seed, at);
            m->q[at] = exp(logit);
            m->p[at] = exp(logit + noise * kern_normal(seed + 1, at));
            sums[0] += m->p[at];
            sums[1] += m->q[at];
        }
        for (size_t i = 0; i < VOCAB; i++) {
            m->p[row * VOCAB + i] /= sums[0];
            m->q[row * VOCAB + i] /= sums[1];
        }
    }
}

/* Accepts as it should, but draws the token instead from the target. */
static bool verify_uncorrected(const double *p, double *q, size_t n, size_t token, struct speculate_random *r)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += q[i];
    return speculate_uniform(r) * p[token] * sum < q[token];
}

/* Accepts with min(1, p/q), and draws from max(0, p - q). */
static bool verify_swapped(const double *p, double *q, size_t n, size_t token, struct speculate_random *r)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += q[i];
    if (speculate_uniform(r) * q[token] < p[token] * sum) return true;
    for (size_t i = 0; i < n; i++) q[i] = fmax(0, p[i] - q[i] / sum);
    return false;
}

/* P value of the first LENGTH tokens of many sequences, drawn by the loop, against the target's own law. */
static double p_value(const struct pair *m, size_t gamma, size_t branches, speculate_verify *verify, uint64_t seed)
{
    double room[VOCAB], counted[CELLS] = {0}, chi = 0;
    size_t drafts[NODES];
    assert_true(speculate_nodes(gamma, branches) <= NODES);
    const struct speculate s = {.draft = {VOCAB, m->p},
                                .target = {VOCAB, m->q},
                                .gamma = gamma,
                                .branches = branches,
                                .verify = verify,
                                .room = room,
                                .drafts = drafts};
    struct speculate_random r = {seed, 0};
    for (size_t i = 0; i < SEQUENCES; i++) {
        size_t out[LENGTH], rounds, carry[9];
        speculate_generate(&s, 3, &r, out, LENGTH, &rounds, carry);
        counted[out[0] * VOCAB + out[1]]++;
    }
    for (size_t i = 0; i < CELLS; i++) {
        const double expected = SEQUENCES * m->q[3 * VOCAB + i / VOCAB] * m->q[i];
        assert_true(expected > 5);
        chi += (counted[i] - expected) * (counted[i] - expected) / expected;
    }
    return gsl_cdf_chisq_Q(chi, CELLS - 1);
}

/* 32 tests: the least of their P values is below 1e-4 once in three hundred seeds; this one is fixed. */
static void output_is_the_targets(void **state)
{
    static const double NOISE[] = {0.1, 2};
    struct pair m;
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        make(&m, NOISE[n], 11);
        for (size_t gamma = 1; gamma <= 8; gamma++)
            for (size_t branches = 1; branches <= 2; branches++)
                assert_true(p_value(&m, gamma, branches, speculate_verify_exact, 100 * gamma + branches) > 1e-4);
    }
}

static void wrong_verifiers_are_seen(void **state)
{
    struct pair m;
    (void)state;
    make(&m, 2, 11);
    for (size_t gamma = 1; gamma <= 8; gamma++)
        for (size_t branches = 1; branches <= 2; branches++) {
            assert_true(p_value(&m, gamma, branches, verify_uncorrected, gamma) < 1e-9);
            assert_true(p_value(&m, gamma, branches, verify_swapped, gamma) < 1e-9);
        }
}

static void greedy_is_the_target_alone(void **state)
{
    enum { N = 61 };
    static const double NOISE[] = {0, 0.3, 3};
    struct pair m;
    (void)state;
    for (size_t n = 0; n < 3; n++)
        for (size_t gamma = 1; gamma <= 8; gamma++) {
            make(&m, NOISE[n], 23 + gamma);
            size_t drafts[9];
            const struct speculate s = {.draft = {VOCAB, m.p},
                                        .target = {VOCAB, m.q},
                                        .gamma = gamma,
                                        .branches = 1,
                                        .greedy = true,
                                        .drafts = drafts};
            struct speculate_random r = {1, 0};
            size_t out[N], rounds, carry[9], last = 2;
            speculate_generate(&s, last, &r, out, N, &rounds, carry);
            for (size_t i = 0; i < N; i++) {
                size_t best = 0;
                for (size_t j = 1; j < VOCAB; j++)
                    if (m.q[last * VOCAB + j] > m.q[last * VOCAB + best]) best = j;
                assert_int_equal(out[i], best);
                last = best;
            }
            assert_int_equal(r.taken, 0);                                    /* nothing is random */
            if (n == 0) assert_int_equal(rounds, (N + gamma) / (gamma + 1)); /* the draft is the target */
        }
}

/* Where the last token does not matter, each draft is accepted with a = sum min(p, q), independently. */
static void lengths_follow_the_formula(void **state)
{
    static const double NOISE[] = {0.2, 1, 2.5};
    struct pair m;
    double room[VOCAB];
    size_t drafts[9];
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        double a = 0;
        make(&m, NOISE[n], 41);
        for (size_t i = VOCAB; i < CELLS; i++) {
            m.p[i] = m.p[i % VOCAB];
            m.q[i] = m.q[i % VOCAB];
        }
        for (size_t i = 0; i < VOCAB; i++) a += fmin(m.p[i], m.q[i]);
        for (size_t gamma = 1; gamma <= 8; gamma++) {
            const struct speculate s = {.draft = {VOCAB, m.p},
                                        .target = {VOCAB, m.q},
                                        .gamma = gamma,
                                        .branches = 1,
                                        .verify = speculate_verify_exact,
                                        .room = room,
                                        .drafts = drafts};
            struct speculate_random r = {7 * gamma + n, 0};
            double sum = 0, square = 0;
            for (size_t i = 0; i < SEQUENCES; i++) {
                size_t out[9];
                const double got = (double)speculate_round(&s, 0, &r, out);
                sum += got / SEQUENCES;
                square += got * got / SEQUENCES;
            }
            const double wanted = (1 - pow(a, (double)gamma + 1)) / (1 - a);
            assert_true(fabs(sum - wanted) < 4.5 * sqrt((square - sum * sum) / SEQUENCES));
        }
    }
}

/* Weights all zero but one, drafts that are the target, numbers at the ends. */
static void edges_hold(void **state)
{
    static const double ONE[] = {0, 0, 5, 0}, SAME[] = {0.25, 0.25, 0.5, 0};
    struct speculate_random r = {5, 0};
    (void)state;
    assert_int_equal(speculate_nodes(3, 4), 1 + 4 + 16 + 64);
    assert_int_equal(speculate_nodes(5, 1), 6);
    assert_true(speculate_nodes(100, 3) == SIZE_MAX);
    for (size_t i = 0; i < 1000; i++) { /* not a unit */
        double q[4];
        const size_t token = speculate_draw(SAME, 4, &r);
        assert_int_equal(speculate_draw(ONE, 4, &r), 2);
        assert_in_range(token, 0, 2);
        memcpy(q, SAME, sizeof q);
        assert_true(speculate_verify_exact(SAME, q, 4, token, &r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_the_targets),
        cmocka_unit_test(wrong_verifiers_are_seen),
        cmocka_unit_test(greedy_is_the_target_alone),
        cmocka_unit_test(lengths_follow_the_formula),
        cmocka_unit_test(edges_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
