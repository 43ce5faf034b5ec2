#include "probe/worker/flush.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum { LINE = 64 }; /* bytes of it, on every x86 that has clflushopt */

bool flush_can(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1u);
}

__attribute__((target("clflushopt"))) void flush_lines(const void *at, size_t n)
{
    const char *const end = (const char *)at + n;
    if (n == 0 || !flush_can()) return;
    for (const char *line = (const char *)((uintptr_t)at / LINE * LINE); line < end; line += LINE)
        _mm_clflushopt((void *)(uintptr_t)line);
    _mm_mfence();
}

#else

bool flush_can(void) { return false; }

void flush_lines(const void *at, size_t n)
{
    (void)at;
    (void)n;
}

#endif
