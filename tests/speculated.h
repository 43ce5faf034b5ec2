/* speculated -- what tests of speculation compare with. */
#ifndef RIDGE_TESTS_SPECULATED_H
#define RIDGE_TESTS_SPECULATED_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/base/arena.h"
#include "calc/time/speculate.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline void assert_close(double got, double want, double part, const char *what)
{
    if (!(fabs(got - want) <= part * fabs(want))) fail_msg("%s: %.17g, want %.17g", what, got, want);
}

static inline struct speculate_accept constant(double a) { return (struct speculate_accept){.at = {a}, .n = 1}; }

#endif
