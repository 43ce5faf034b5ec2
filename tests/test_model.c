/* Models against published counts: the built-in files against their own "ridge.total_params" (each with its source),
 * and the real config.json files of ../shared against models/truth.csv. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/embed.h"
#include "calc/cost/cost.h"
#include "calc/model/family.h"
#include "calc/model/model.h"
#include "tests/csv.h"

static const struct cost_conventions PLAIN = {0};

static struct cost_parameters count(struct arena *a, const struct model *m)
{
    struct cost_parameters p = {0};
    struct err e = {0};
    if (cost_parameters(a, m, &PLAIN, &p, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return p;
}

/* Cached bytes per token in bf16, whole model. */
static void cache_of(struct arena *a, struct model m, double *full, double *windowed)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache cache;
    assert_int_equal(dtype_find("bf16", &m.kv, &e), ERR_OK);
    if (cost_cache(c, &y, &m, 1, &cache, &e) != ERR_OK) fail_msg("%s: %s", m.name, e.text);
    *full = cache.bytes_per_token_full;
    *windowed = cache.bytes_per_token_windowed;
}

static void test_builtin_totals_equal_their_published_count(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *const *names;
    const size_t n = model_builtins(a, &names);
    assert_true(n >= 25);
    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        struct model m;
        struct json j, stated;
        double want;
        char path[160];
        if (model_load(a, names[i], NULL, 0, &m, &e) != ERR_OK) fail_msg("%s: %s", names[i], e.text);
        (void)snprintf(path, sizeof path, "configs/models/%s.json", names[i]);
        const struct embed_file *f = embed_find(path);
        assert_non_null(f);
        assert_int_equal(json_parse(a, path, (const char *)f->bytes, f->size, &j, &e), ERR_OK);
        assert_true(json_get(&j, "ridge.total_params", &stated));
        assert_int_equal(json_num(&stated, &want, &e), ERR_OK);
        assert_true(json_get(&j, "ridge.source", &stated));
        const double got = count(a, &m).total;
        if (got != want) fail_msg("%s: %.0f parameters, published %.0f", names[i], got, want);
    }
    arena_close(a);
}

/* Rows of the families ridge knows whose note says that the file alone does not determine the count. */
static bool undetermined(const char *note) { return strstr(note, "NOT reproducible from this config alone") != NULL; }

static void test_truth_table(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static struct csv t;
    if (!csv_open(&t, csv_shared(a, "models/truth.csv"))) {
        arena_close(a);
        skip();
    }
    size_t checked = 0, refused = 0, wrong = 0;
    while (csv_next(&t)) {
        struct err e = {0};
        struct model m;
        char file[256];
        (void)snprintf(file, sizeof file, "models/configs/%s", csv_get(&t, "source_file"));
        const enum err_code code = model_load(a, csv_shared(a, file), NULL, 0, &m, &e);
        if (code != ERR_OK) {
            assert_int_equal(code, ERR_INPUT); /* other families: refused, never guessed */
            refused++;
            continue;
        }
        const double total = csv_num(&t, "total_params"), active = csv_num(&t, "active_params");
        if (isnan(total) || undetermined(csv_get(&t, "notes"))) continue;
        const struct cost_parameters p = count(a, &m);
        double full, windowed;
        cache_of(a, m, &full, &windowed);
        const bool ok = p.total == total && p.active == active && full == csv_num(&t, "kv_bytes_per_token_full_bf16") &&
                        windowed == csv_num(&t, "kv_bytes_per_token_windowed_bf16");
        checked++;
        if (ok) continue;
        wrong++;
        print_message("%s: total %.0f (%.0f) active %.0f (%.0f) kv %.0f+%.0f (%s+%s)\n", m.name, p.total, total,
                      p.active, active, full, windowed, csv_get(&t, "kv_bytes_per_token_full_bf16"),
                      csv_get(&t, "kv_bytes_per_token_windowed_bf16"));
    }
    csv_close(&t);
    print_message("truth.csv: %zu rows equal, %zu of other families refused, %zu wrong\n", checked - wrong, refused,
                  wrong);
    assert_int_equal(wrong, 0);
    assert_true(checked >= 40);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_totals_equal_their_published_count),
        cmocka_unit_test(test_truth_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
