#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/paged.h"

#if defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 1000000 };
#else
enum { OPERATIONS = 10000000 };
#endif

enum { SEQUENCES = 61, NAMES = 977 };

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * UINT64_C(0x2545f4914f6cdd1d);
}

static void check(const struct paged *p, const struct paged_list *lists, size_t n)
{
    struct err e = {0};
    if (paged_check(p, lists, n, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct paged open_pool(struct arena *a, int64_t blocks, int64_t block_tokens, bool named)
{
    struct paged p;
    struct err e = {0};
    if (paged_open(a, blocks, block_tokens, named, &p, &e) != ERR_OK) fail_msg("%s", e.text);
    return p;
}

/* What one random operation did must be what it promised; the caller checks the books. */
static void operate(struct paged *p, struct paged_list *lists, uint64_t *seed)
{
    struct paged_list *l = &lists[rnd(seed) % SEQUENCES], *other = &lists[rnd(seed) % SEQUENCES];
    const int64_t more = (int64_t)(rnd(seed) % 37), idle = p->idle, held = l->n, tokens = l->tokens;
    switch (rnd(seed) % 16) {
    case 0:
    case 1: paged_drop(p, l); break;
    case 2: paged_release(p, l); break;
    case 3:
    case 4:
        if (l->n > 0 || other == l) break;
        assert_int_equal(paged_fork(p, other, l), ERR_OK);
        assert_int_equal(p->idle, idle);
        break;
    case 5:
    case 6:
    case 7: {
        const uint64_t name = rnd(seed) % NAMES + 1;
        if (l->tokens % p->block_tokens != 0) break;
        const bool has = paged_has(p, name);
        assert_int_equal(paged_attach(p, l, name), has ? ERR_OK : ERR_NO);
        assert_int_equal(l->n, held + has);
        assert_true(idle - p->idle <= has);
        break;
    }
    case 8:
    case 9: {
        const int64_t full = l->tokens / p->block_tokens;
        if (full > 0) paged_name(p, l, (int64_t)(rnd(seed) % (uint64_t)full), rnd(seed) % NAMES + 1);
        assert_int_equal(p->idle, idle);
        break;
    }
    default: {
        const int64_t need = paged_need(p, l, more);
        const enum err_code code = paged_grow(p, l, more);
        assert_int_equal(code, need <= idle ? ERR_OK : ERR_NO);
        assert_int_equal(l->tokens, tokens + (code == ERR_OK ? more : 0));
        assert_int_equal(idle - p->idle, code == ERR_OK ? need : 0);
        if (code == ERR_OK && more > 0 && l->tokens % p->block_tokens != 0)
            assert_int_equal(paged_references(p, l, l->n - 1), 1); /* what is written is one's own */
        break;
    }
    }
}

/* No block is lost or given twice, whatever happens in whatever order. */
static void test_random_operations(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct paged p = open_pool(a, 401, 7, true);
    struct paged_list lists[SEQUENCES];
    memset(lists, 0, sizeof lists);
    uint64_t seed = 20260727;
    for (int i = 0; i < OPERATIONS; i++) {
        operate(&p, lists, &seed);
        if (i % 499 == 0) check(&p, lists, SEQUENCES);
    }
    assert_true(p.copies > 1000);
    assert_true(p.evictions > 1000);
    for (size_t i = 0; i < SEQUENCES; i++) paged_release(&p, &lists[i]);
    check(&p, lists, SEQUENCES);
    assert_int_equal(p.idle, 401);
    arena_close(a);
}

/* n samples of one prompt: floor(P/b) + n * ceil((P mod b + O) / b), of which n - 1 are copies where P mod b is not 0.
 */
static void test_copy_on_write(void **state)
{
    (void)state;
    static const int64_t BLOCK[] = {1, 3, 16, 29}, PROMPT[] = {1, 31, 48, 203, 257}, OUTPUT[] = {1, 5, 16, 73};
    for (size_t i = 0; i < 4 * 5 * 4; i++) {
        const int64_t b = BLOCK[i % 4], P = PROMPT[i / 4 % 5], O = OUTPUT[i / 20];
        for (int64_t n = 1; n <= 5; n += 2) {
            struct arena *a = arena_open();
            struct paged p = open_pool(a, 5003, b, false);
            struct paged_list l[5] = {{0}};
            assert_int_equal(paged_grow(&p, &l[0], P), ERR_OK);
            for (int64_t k = 1; k < n; k++) assert_int_equal(paged_fork(&p, &l[0], &l[k]), ERR_OK);
            for (int64_t t = 0; t < O; t++)
                for (int64_t k = 0; k < n; k++) assert_int_equal(paged_grow(&p, &l[k], 1), ERR_OK);
            assert_int_equal(5003 - p.idle, P / b + n * ((P % b + O + b - 1) / b));
            assert_int_equal(p.copies, P % b ? n - 1 : 0);
            check(&p, l, 5);
            for (int64_t k = 0; k < n; k++) paged_release(&p, &l[k]);
            assert_int_equal(p.idle, 5003);
            arena_close(a);
        }
    }
}

static void name_all(struct paged *p, const struct paged_list *l, uint64_t stream)
{
    for (int64_t i = 0; i < l->tokens / p->block_tokens; i++) paged_name(p, l, i, stream * 1009 + (uint64_t)i + 1);
}

/* A prefix that nobody holds is found until its blocks are needed, the end of it going before its beginning; what was
 * used last goes last. */
static void test_prefix_eviction(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct paged p = open_pool(a, 10, 4, true);
    struct paged_list l = {0}, other = {0};
    for (uint64_t s = 1; s <= 2; s++) { /* two prefixes of 4 blocks and one that is not full */
        assert_int_equal(paged_grow(&p, &l, 18), ERR_OK);
        name_all(&p, &l, s);
        paged_drop(&p, &l);
    }
    assert_int_equal(p.idle, 10);
    for (uint64_t i = 0; i < 4; i++) assert_true(paged_has(&p, 1009 + i + 1));
    assert_int_equal(paged_attach(&p, &l, 1009 + 1), ERR_OK); /* used again */
    paged_drop(&p, &l);
    assert_int_equal(paged_grow(&p, &other, 4 * 6), ERR_OK); /* not-full ones, 3 of the first, then of the second */
    assert_true(paged_has(&p, 1009 + 1));
    assert_false(paged_has(&p, 1009 + 4));
    assert_false(paged_has(&p, 1009 + 2));
    assert_false(paged_has(&p, 2 * 1009 + 4));
    assert_true(paged_has(&p, 2 * 1009 + 3));
    assert_int_equal(paged_grow(&p, &other, 4 * 5), ERR_NO);
    check(&p, &other, 1);
    /* a name stays with the block that had it first */
    paged_name(&p, &other, 0, 5);
    paged_name(&p, &other, 1, 5);
    assert_int_equal(paged_attach(&p, &l, 5), ERR_OK);
    assert_int_equal(l.at[0], other.at[0]);
    assert_int_equal(paged_references(&p, &other, 0), 2);
    assert_int_equal(paged_references(&p, &other, 1), 1);
    paged_release(&p, &l);
    paged_release(&p, &other);
    check(&p, &l, 1);
    arena_close(a);
}

static void test_refusals(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct paged p;
    struct err e = {0};
    assert_int_equal(paged_open(a, 0, 16, false, &p, &e), ERR_RANGE);
    assert_int_equal(paged_open(a, INT64_C(1) << 40, 16, false, &p, &e), ERR_RANGE);
    assert_int_equal(paged_open(a, 3, 0, false, &p, &e), ERR_RANGE);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_copy_on_write),
        cmocka_unit_test(test_prefix_eviction),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
