/* kernel_check -- run the code of a kernel that this machine can run, and hold it against the reference. */
#ifndef RIDGE_TESTS_KERNEL_CHECK_H
#define RIDGE_TESTS_KERNEL_CHECK_H

#include "kernels/kernel.h"

/* kernel_check -- one shape (v[args_n]) in all formats and variants, the test fails with the first that is wrong;
 * returns how many ran. */
size_t kernel_check(const struct kern *k, const struct kern_machine *m, const int64_t *v);

/* kernel_check_all -- n shapes of a kernel by name, args_n numbers each one after the other. */
void kernel_check_all(const char *name, const int64_t *shapes, size_t n);

#endif
