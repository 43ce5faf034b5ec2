/* Threads that make one call together: every kernel that can be split, by all its code, at odd shapes, is right in any
 * number of parts, more parts than there are pieces included, whatever order they come in; what they wait for is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "kernels/table.h"
#include "probe/worker/work.h"

/* -- the team itself -- */

struct tally {
    struct team *team;
    atomic_int early, done;
    int last;
    int seen[7][64];
};

static void count_last(void *closure) { ((struct tally *)closure)->last++; }

static void take_turns(void *closure, unsigned part)
{
    struct tally *t = closure;
    for (int round = 0; round < 64; round++) {
        t->seen[part][round] = round + 1;
        team_meet(t->team, count_last, t);
        for (unsigned i = 0; i < team_size(t->team); i++)
            if (t->seen[i][round] != round + 1) atomic_fetch_add(&t->early, 1);
        team_meet(t->team, NULL, NULL);
    }
    atomic_fetch_add(&t->done, 1);
}

static void all_meet(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 7; n += 3) {
        struct tally t = {.team = team_open(n)};
        double wall_s = (double)NAN, lost_s = (double)NAN;
        assert_non_null(t.team);
        assert_int_equal(team_size(t.team), n);
        for (int again = 0; again < 3; again++) {
            memset(t.seen, 0, sizeof t.seen);
            team_run(t.team, take_turns, &t, &wall_s, &lost_s);
            assert_true(wall_s > 0 && wall_s < 100 && lost_s < wall_s + 1e-3);
        }
        assert_int_equal(t.early, 0);
        assert_int_equal(t.done, 3 * (int)n);
        assert_int_equal(t.last, 3 * 64);
        team_close(t.team);
    }
    team_close(NULL);
    assert_true(team_processors() >= 1);
}

/* -- pieces -- */

static void pieces_are_shared_out(void **state)
{
    (void)state;
    static const size_t ALL[] = {0, 1, 5, 64, 1031, (size_t)1 << 40};
    for (size_t a = 0; a < sizeof ALL / sizeof ALL[0]; a++)
        for (unsigned n = 1; n < 70; n += 3) {
            assert_int_equal(kern_split_from(ALL[a], 0, n), 0);
            assert_int_equal(kern_split_from(ALL[a], n, n), ALL[a]);
            for (unsigned i = 0; i < n; i++) {
                const size_t has = kern_split_from(ALL[a], i + 1, n) - kern_split_from(ALL[a], i, n);
                assert_true(has == ALL[a] / n || has == ALL[a] / n + 1);
            }
        }
}

/* -- kernels -- */

static const struct {
    const char *kernel;
    struct kern_shape shape;
} SHAPES[] = {
    {"stream-read", {{100003}, KERN_FP32}},
    {"stream-read", {{37}, KERN_FP32}},
    {"stream-copy", {{100003}, KERN_FP32}},
    {"stream-triad", {{100003}, KERN_FP32}},
    {"stream-update", {{100003}, KERN_FP32}},
    {"fma", {{3 * 192, 211}, KERN_FP32}},
    {"fma", {{7 * 192, 211}, KERN_BF16}},
    {"fma", {{2 * 192, 211}, KERN_INT8}},
    {"gemm", {{1, 1031, 67}, KERN_FP32}},
    {"gemm", {{3, 67, 1031}, KERN_BF16}},
    {"gemm", {{37, 211, 129}, KERN_FP32}},
    {"gemm", {{53, 131, 67}, KERN_BF16}},
    {"gemm", {{1, 5, 7}, KERN_BF16}},
    {"mlp", {{1, 67, 211}, KERN_BF16}},
    {"mlp", {{29, 131, 67}, KERN_BF16}},
    {"mlp", {{5, 67, 1031}, KERN_FP32}},
    {"mlp", {{3, 11, 13}, KERN_FP32}},
    {"prefill-attention", {{3, 67, 6, 2, 64, 0}, KERN_BF16}},
    {"prefill-attention", {{1, 131, 3, 3, 40, 29}, KERN_FP32}},
    {"decode-attention", {{5, 131, 6, 2, 64, 0, 0}, KERN_BF16}},
    {"decode-attention", {{3, 211, 6, 3, 128, 0, 16}, KERN_BF16}},
    {"decode-attention", {{1, 1031, 4, 4, 128, 67, 0}, KERN_FP32}},
    {"decode-attention", {{2, 67, 5, 1, 40, 29, 13}, KERN_FP32}},
};

static void check(const struct work_spec *spec, const struct kern_machine *m)
{
    struct work w;
    char text[256];
    double error_frac;
    size_t checked;
    const char *why = work_open(spec, m, 1e9, &w, text, sizeof text); /* not a unit */
    if (why) fail_msg("%s %s: %s", spec->kernel->name, spec->variant->name, why);
    why = work_check(&w, &error_frac, &checked, text, sizeof text);
    if (!why) { /* and again and again, through all copies */
        size_t next = 0;
        double lost_s;
        (void)work_calls(&w, w.copies + 2, &next, &lost_s);
        assert_int_equal(next, 2 % w.copies);
        why = work_check_again(&w, text, sizeof text);
    }
    if (why) fail_msg("%s %s, %u threads: %s", spec->kernel->name, spec->variant->name, team_size(spec->team), why);
    work_close(&w);
}

static void parts_are_the_whole(void **state)
{
    static const unsigned THREADS[] = {3};
    struct kern_machine m;
    size_t checked = 0;
    (void)state;
    kern_machine_open(&m);
    for (size_t t = 0; t < sizeof THREADS / sizeof THREADS[0]; t++) {
        struct team *team = team_open(THREADS[t]);
        assert_non_null(team);
        for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
            const struct kern *k = kern_find(SHAPES[i].kernel);
            assert_non_null(k);
            for (size_t v = 0; v < k->variants_n; v++) {
                struct work_spec spec = {.kernel = k,
                                         .variant = &k->variants[v],
                                         .shape = SHAPES[i].shape,
                                         .seed = 7 + i,
                                         .team = team,
                                         .cache_bytes = 2000}; /* not a unit */
                if (spec.variant->library || !(spec.variant->dtypes & KERN_HAS(spec.shape.dtype))) continue;
                if (spec.variant->lacks && spec.variant->lacks(&m, &spec.shape)) continue;
                spec.cold = true;
                check(&spec, &m);
                checked++;
            }
        }
        team_close(team);
    }
    kern_machine_close(&m);
    assert_true(checked >= sizeof SHAPES / sizeof SHAPES[0] / 2);
}

/* What cannot be split is refused, a library's code too, and nothing of it runs. */
static void what_is_not_split(void **state)
{
    struct kern_machine m;
    struct work w;
    char text[256];
    struct team *team = team_open(2);
    (void)state;
    assert_non_null(team);
    kern_machine_open(&m);
    struct work_spec spec = {.kernel = kern_find("rmsnorm"), .shape = {{3, 64}, KERN_FP32}, .team = team};
    spec.variant = kern_variant_find(spec.kernel, "portable");
    assert_string_equal(work_open(&spec, &m, 1e9, &w, text, sizeof text), WORK_ONE_THREAD); /* not a unit */
    assert_null(kern_split_find(spec.kernel));
    spec = (struct work_spec){.kernel = &kern_gemm, .shape = {{3, 64, 64}, KERN_FP32}, .team = team};
    spec.variant = kern_variant_find(spec.kernel, "blas");
    if (m.sgemm)
        assert_string_equal(work_open(&spec, &m, 1e9, &w, text, sizeof text), WORK_ONE_THREAD); /* not a unit */
    kern_machine_close(&m);
    team_close(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(pieces_are_shared_out),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_is_not_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
