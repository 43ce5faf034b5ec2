/* context -- giving way from one stack to another. On x86-64 a few moves; elsewhere POSIX's swapcontext, which asks the
 * system each time for the signal mask that no fiber changes. */
#ifndef RIDGE_KERNELS_SIMT_CONTEXT_H
#define RIDGE_KERNELS_SIMT_CONTEXT_H

#include <stddef.h>

#if defined(__x86_64__)
struct context {
    void *top;
};
#else
#include <ucontext.h>
struct context {
    ucontext_t ucontext;
};
#endif

/* context_make -- when first swapped to, calls entry on its stack of `bytes`; entry must not return. */
void context_make(struct context *c, void *stack, size_t bytes, void (*entry)(void));

/* context_swap -- keeps where the caller is in `from` and goes to where `to` was kept; returns when swapped back. */
void context_swap(struct context *from, const struct context *to);

#endif
