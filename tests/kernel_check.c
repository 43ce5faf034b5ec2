#include "tests/kernel_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/worker/work.h"

static const double ROOM_BYTES = 1e9; /* not a unit */

static void complain(const struct kern *k, const struct work_spec *spec, const char *why)
{
    print_error("%s %s %s", k->name, spec->variant->name, kern_dtype_name(spec->shape.dtype));
    for (size_t i = 0; i < k->args_n; i++) print_error(" %s=%lld", k->args[i].name, (long long)spec->shape.v[i]);
    print_error(": %s\n", why);
    fail();
}

size_t kernel_check(const struct kern *k, const struct kern_machine *m, const int64_t *v)
{
    size_t ran = 0;
    for (int d = 0; d < KERN_DTYPES_N; d++)
        for (size_t i = 0; i < k->variants_n; i++) {
            struct work_spec spec = {
                .kernel = k, .variant = &k->variants[i], .shape = {.dtype = (enum kern_dtype)d}, .seed = 31};
            struct work w;
            char text[256];
            double error = (double)NAN;
            size_t checked = 0;
            memcpy(spec.shape.v, v, k->args_n * sizeof *v);
            if (!(k->variants[i].dtypes & KERN_HAS(d))) continue;
            if (k->variants[i].lacks && k->variants[i].lacks(m, &spec.shape)) continue;
            const char *why = work_open(&spec, m, ROOM_BYTES, &w, text, sizeof text);
            if (!why) why = work_check(&w, &error, &checked, text, sizeof text);
            if (why) complain(k, &spec, why);
            assert_true(checked > 0);
            assert_true(error <= k->tolerance(&spec.shape));
            work_close(&w);
            ran++;
        }
    return ran;
}

void kernel_check_all(const char *name, const int64_t *shapes, size_t n)
{
    struct kern_machine m;
    kern_machine_open(&m);
    const struct kern *k = kern_find(name);
    assert_non_null(k);
    for (size_t i = 0; i < n; i++) assert_true(kernel_check(k, &m, shapes + i * k->args_n) > 0);
    kern_machine_close(&m);
}
