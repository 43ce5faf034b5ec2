/* Which spells of sampling make a result: those between steady ceilings of the highest level that has enough of them,
 * whatever their own samples are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "probe/run_spells.h"

#define assert_near(x, y, most) assert_true(fabs((x) - (y)) <= (most))

enum { LEAST = 3, SPELLS = 40 };

static const struct result_ceilings BEST = {1e11, 2e10, (double)NAN, (double)NAN};

static struct result_ceilings at(double peak, double read)
{
    return (struct result_ceilings){peak * 1e11, read * 2e10, (double)NAN, (double)NAN};
}

/* A call that memory binds by far, or arithmetic, between rates that are parts of the best. */
static struct result_spell spell(bool memory, double before, double after)
{
    struct result r = result_unknown();
    r.outcome = RESULT_MEASURED;
    r.flops = memory ? 1e4 : 1e9; /* not a unit */
    r.read_bytes = 1e6;           /* not a unit */
    r.written_bytes = 0;
    r.before = memory ? at(0.5, before) : at(before, 0.5);
    r.after = memory ? at(1, after) : at(after, 1);
    return (struct result_spell){.of = r};
}

static size_t chosen(struct result_spell *s, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++) c += s[i].counts;
    return c;
}

static void highest_level_with_enough(void **state)
{
    (void)state;
    for (int memory = 0; memory < 2; memory++) {
        struct result_spell s[] = {spell(memory, 0.75, 0.76), spell(memory, 1, 0.99),    spell(memory, 0.98, 0.97),
                                   spell(memory, 1, 0.8),     spell(memory, 0.74, 0.77), spell(memory, 0.76, 0.75),
                                   spell(memory, 0.96, 1)};
        assert_near(spells_choose(s, 7, LEAST, &BEST), 0.99, 1e-9);
        assert_true(s[1].counts && s[2].counts && s[6].counts && chosen(s, 7) == 3);
        /* one less of them: the level below has three */
        assert_near(spells_choose(s, 6, LEAST, &BEST), 0.75, 1e-9);
        assert_true(s[0].counts && s[4].counts && s[5].counts && chosen(s, 6) == 3);
        /* no level has three: all, and no level is said */
        assert_true(spells_choose(s, 4, LEAST, &BEST) == 0);
        assert_int_equal(chosen(s, 4), 4);
    }
}

/* What has no part in a result may move as it likes; what nobody knows is no obstacle. */
static void what_does_not_weigh(void **state)
{
    struct result_spell s[LEAST];
    const struct result_ceilings none = result_unknown().before;
    (void)state;
    for (size_t i = 0; i < LEAST; i++) {
        s[i] = spell(true, 1, 1);
        s[i].of.before.peak_flops_per_s = 1e11 * (double)(i + 1) / 4;
    }
    assert_near(spells_choose(s, LEAST, LEAST, &BEST), 1, 1e-9);
    assert_int_equal(chosen(s, LEAST), LEAST);
    for (size_t i = 0; i < LEAST; i++) s[i].of.before = s[i].of.after = none;
    assert_near(spells_choose(s, LEAST, LEAST, &none), 1, 1e-9);
    assert_int_equal(chosen(s, LEAST), LEAST);
    s[0].of.after = at(1, 0.9); /* hot, the first time: what was before is not known */
    assert_near(spells_choose(s, LEAST, LEAST, &none), 1, 1e-9);
}

static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53;
}

/* A machine that is a quarter slower for some spells at a time, its ceilings known to a hundredth: the median over the
 * spells that count is that of the machine at its best within two hundredths, the median of all is not. Times of the
 * spells have no part in the choice. */
static void a_disturbed_machine(void **state)
{
    size_t worse = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct result_spell s[SPELLS];
        double time_s[SPELLS], sum = 0, all = 0;
        bool slow[SPELLS + 1], is = seed % 2;
        uint64_t g = seed;
        size_t fast = 0;
        for (size_t i = 0; i <= SPELLS; i++) {
            if (draw(&g) < 0.2) is = !is;
            slow[i] = is;
        }
        double rate[SPELLS + 1];
        for (size_t i = 0; i <= SPELLS; i++) rate[i] = (slow[i] ? 0.75 : 1) * (0.99 + 0.01 * draw(&g));
        for (size_t i = 0; i < SPELLS; i++) {
            s[i] = spell(true, rate[i], rate[i + 1]);
            time_s[i] = (slow[i] ? 1 / 0.75 : 1) * (1 + 0.01 * draw(&g));
            fast += !slow[i] && !slow[i + 1];
        }
        (void)spells_choose(s, SPELLS, LEAST, &BEST);
        if (fast < LEAST) continue;
        for (size_t i = 0; i < SPELLS; i++) {
            assert_true(s[i].counts == (!slow[i] && !slow[i + 1]));
            if (s[i].counts) sum += time_s[i];
            all += time_s[i];
        }
        assert_true(fabs(sum / (double)chosen(s, SPELLS) - 1) < 0.02);
        worse += fabs(all / SPELLS - 1) > 0.05;
    }
    assert_true(worse > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_level_with_enough),
        cmocka_unit_test(what_does_not_weigh),
        cmocka_unit_test(a_disturbed_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
