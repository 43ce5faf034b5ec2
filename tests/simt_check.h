/* simt_check -- kernels of kernels/x.cu on the host: against the reference at given shapes, in an order of the fibers,
 * and with mistakes put into them. Shared by the programs tests/test_simt*.c, each with the shapes of its kernels. */
#ifndef RIDGE_TESTS_SIMT_CHECK_H
#define RIDGE_TESTS_SIMT_CHECK_H

#include "kernels/cuda.h"
#include "kernels/simt/simt.h"

struct simt_check_shape {
    const char *kern; /* by name; all variants that the small card of the tests can run, in all their formats */
    int64_t v[KERN_ARGS_MAX];
};

/* simt_check_order -- every kernel of shapes[n] is right, and some variant of it ran; else the test fails. */
void simt_check_order(const struct simt_check_shape *shapes, size_t n, enum simt_order order, uint64_t seed);

/* simt_check_mistakes -- each mistake at each place of the source that these shapes come to is seen at one of them, in
 * one of the orders; else the test fails. */
void simt_check_mistakes(const struct simt_check_shape *shapes, size_t n);

#endif
