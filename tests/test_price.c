/* Money and energy by hand; price files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calc/serve/price.h"
#include "tests/scratch.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* DeepSeek's open-infra-index: 226.75 nodes of 8 GPUs at 2 dollars are 87,072 dollars a day. */
static void test_day(void **state)
{
    const struct price_use u = {.gpus = 226.75 * 8, .usd_per_h = 2, .power_w = 700, .out_tok_per_s = 168e9 / 86400};
    const struct price_cost c = price_cost(&u);
    assert_true(near(c.usd_per_h * 24, 87072));
    /* all of it over 168e9 tokens out: 0.518 dollars a million */
    assert_true(near(c.usd_per_mtok, 87072 / 168e3));
    (void)state;
}

/* 12 GPUs at 4.5: 54 dollars an hour; a third of the busy time is prefill, so 18 of them are of 14,400 tokens a second
 * in, 36 of 3,600 out. */
static void test_split(void **state)
{
    const struct price_use u = {.gpus = 12,
                                .usd_per_h = 4.5,
                                .power_w = 700,
                                .prefill_frac = .3,
                                .decode_frac = .6,
                                .in_tok_per_s = 14400,
                                .out_tok_per_s = 3600};
    const struct price_cost c = price_cost(&u);
    assert_true(near(c.usd_per_h, 54));
    assert_true(near(c.usd_per_mtok_in, 18 / (14400 * 3600 / 1e6)));
    assert_true(near(c.usd_per_mtok_out, 36 / (3600 * 3600 / 1e6)));
    assert_true(near(c.usd_per_mtok, 54 / (3600 * 3600 / 1e6)));
    /* 0.3 at full power, 0.6 at 0.6 of it, 0.1 at 0.15 */
    assert_true(near(c.watts, 12 * 700 * (.3 + .36 + .015)));
    assert_true(near(c.joule_per_tok, c.watts / 3600));
    /* both sides together are all the money */
    assert_true(near(c.usd_per_mtok_in * 14400 + c.usd_per_mtok_out * 3600, c.usd_per_mtok * 3600));
    (void)state;
}

static void test_unknown(void **state)
{
    const struct price_use u = {.gpus = 3, .usd_per_h = (double)NAN, .power_w = (double)NAN, .decode_frac = 1};
    const struct price_cost c = price_cost(&u);
    assert_true(isnan(c.usd_per_h) && isnan(c.usd_per_mtok_in) && isnan(c.usd_per_mtok_out) && isnan(c.watts));
    (void)state;
}

static enum err_code read_text(struct arena *a, const char *text, struct price_list **out, struct err *e)
{
    char path[SCRATCH_MAX];
    return price_read(a, scratch_text(path, text), out, e);
}

static void test_file(void **state)
{
    struct arena *a = arena_open();
    struct err e = {0};
    struct price_list *l = NULL;
    struct hw h100, h200, t4;
    assert_int_equal(hw_load(a, "h100-sxm", &h100, &e), ERR_OK);
    assert_int_equal(hw_load(a, "h200-sxm", &h200, &e), ERR_OK);
    assert_int_equal(hw_load(a, "t4", &t4, &e), ERR_OK);
    /* aliases are names too */
    assert_int_equal(read_text(a,
                               "{\"H100-SXM5\": 2.17, \"t4\": {\"usd_per_h\": 0.37, \"source\": \"an invoice\", "
                               "\"date\": \"2026-11\"}}",
                               &l, &e),
                     ERR_OK);
    const struct price own = price_of(l, &h100), listed = price_of(l, &h200), ours = price_of(l, &t4);
    assert_true(own.own && own.usd_per_h == 2.17);
    assert_true(ours.own && ours.usd_per_h == .37);
    assert_string_equal(ours.source, "an invoice");
    assert_string_equal(ours.date, "2026-11");
    assert_true(!listed.own && listed.usd_per_h == h200.price_list_usd_per_h && listed.usd_per_h > 0);
    assert_non_null(listed.source);
    assert_non_null(listed.date);
    /* unknown stays unknown */
    assert_true(isnan(price_of(NULL, &t4).usd_per_h));
    static const struct {
        const char *text, *says;
    } BAD[] = {{"[1]", "object"},
               {"{\"h100-sxm\": 0}", "above zero"},
               {"{\"h100-sxm\": -3}", "above zero"},
               {"{\"h100-sxm\": Infinity}", "million"},
               {"{\"h100-sxm\": 1e308}", "million"},
               {"{\"h100-sxm\": {\"price\": 3}}", "usd_per_h"},
               {"{\"h100-sxm\": \"3\"}", "h100-sxm"},
               {"{\"h100\": 3}", "h100"},
               {"{\"h100-sxm\": 3, \"h100-sxm5\": 4}", "second price"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        e = (struct err){0};
        assert_int_equal(read_text(a, BAD[i].text, &l, &e), ERR_INPUT);
        if (!strstr(e.text, BAD[i].says)) fail_msg("%s: %s", BAD[i].text, e.text);
    }
    assert_int_equal(price_read(a, "/nowhere/prices.json", &l, &e), ERR_IO);
    arena_close(a);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_day), cmocka_unit_test(test_split),
                                       cmocka_unit_test(test_unknown), cmocka_unit_test(test_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
