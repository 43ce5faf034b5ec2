#if !defined(__x86_64__)
#define _XOPEN_SOURCE 700 /* makecontext */
#endif
#include "kernels/simt/context.h"

#if defined(__x86_64__)

#include <stdint.h>
#include <string.h>

/* System V ABI, AMD64, 3.2.1: a call keeps rbx, rbp, r12 to r15 and the stack pointer; rounding modes stay as they are.
 */
void context_swap_stacks(void **from, void *to);
__asm__(".text\n"
        ".globl context_swap_stacks\n"
        ".type context_swap_stacks, @function\n"
        "context_swap_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size context_swap_stacks, . - context_swap_stacks\n");

void context_make(struct context *c, void *stack, size_t bytes, void (*entry)(void))
{
    enum { SAVED = 6 };
    /* six saved registers, entry as the address that is returned to, and 0 as entry's own: 8 off 16 as after a call */
    uintptr_t frame[SAVED + 2] = {0};
    unsigned char *const end = (unsigned char *)stack + bytes / 16 * 16;
    frame[SAVED] = (uintptr_t)entry;
    memcpy(end - sizeof frame, frame, sizeof frame);
    c->top = end - sizeof frame;
}

void context_swap(struct context *from, const struct context *to) { context_swap_stacks(&from->top, to->top); }

#else

void context_make(struct context *c, void *stack, size_t bytes, void (*entry)(void))
{
    getcontext(&c->ucontext);
    c->ucontext.uc_stack.ss_sp = stack;
    c->ucontext.uc_stack.ss_size = bytes;
    c->ucontext.uc_link = NULL;
    makecontext(&c->ucontext, entry, 0);
}

void context_swap(struct context *from, const struct context *to) { swapcontext(&from->ucontext, &to->ucontext); }

#endif
