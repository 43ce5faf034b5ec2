/* kernel_work -- what tests of kernels have in common: a device, the work of a kernel on it, and one kernel of
 * decoding. */
#ifndef RIDGE_TESTS_KERNEL_WORK_H
#define RIDGE_TESTS_KERNEL_WORK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "calc/time/kernel.h"

static inline int open_arena(void **state)
{
    *state = arena_open();
    return *state == NULL;
}

static inline int close_arena(void **state)
{
    arena_close(*state);
    return 0;
}

static inline void near(double found, double wanted, double relative)
{
    if (!(fabs(found - wanted) <= relative * fabs(wanted))) fail_msg("found %.17g, wanted %.17g", found, wanted);
}

static inline struct hw device(void **state, const char *name)
{
    struct hw hw = {.file = NULL};
    struct err e = {.code = ERR_OK};
    if (hw_load(*state, name, &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    return hw;
}

static inline struct kernel_work work(const struct kernel *k, const struct hw *hw)
{
    struct kernel_work w = {.flops = -1};
    struct err e = {.code = ERR_OK};
    if (kernel_work(k, hw, &w, &e) != ERR_OK) fail_msg("%s", e.text);
    return w;
}

static inline struct kernel decode(double batch, double context)
{
    return (struct kernel){.kind = KERNEL_DECODE,
                           .unit = HW_BF16,
                           .element_bytes = 2,
                           .kv_element_bytes = 2,
                           .batch = batch,
                           .context_tokens = context,
                           .heads = 64,
                           .kv_heads = 8,
                           .head_dim = 128,
                           .value_dim = 128};
}

#endif
