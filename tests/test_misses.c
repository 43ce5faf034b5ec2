/* the bytes that kernels count against the misses of a simulated last-level cache: cachegrind runs this program again,
 * with one call of a kernel's AVX2 code on cold operands and without it, and what that adds is the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/table.h"

enum { LINE = 64, CACHE = 1 << 20, SWEEP = 3 * CACHE, STACK = 1 << 14 };

/* Operands of each together are less than CACHE, so that a line misses once; columns of gemm are whole tiles, since
 * what a layout pads is not counted. */
static const struct subject {
    const char *kernel;
    struct kern_shape shape;
} SUBJECTS[] = {
    {"gemm", {{1, 400, 509}, KERN_BF16}},
    {"gemm", {{24, 272, 250}, KERN_FP32}},
    {"decode-attention", {{1, 499, 8, 2, 128, 0, 0}, KERN_BF16}},
    {"decode-attention", {{3, 101, 3, 3, 96, 0, 16}, KERN_FP32}},
    {"prefill-attention", {{1, 97, 6, 2, 64, 0}, KERN_FP32}},
};

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

static const char *program;

/* -- under cachegrind -- */

static unsigned touch(const volatile char *data, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += LINE) sum += (unsigned char)data[i];
    return sum;
}

/* The stack that the call will use: what lies there is not counted. */
static unsigned touch_stack(void)
{
    volatile char below[STACK];
    for (size_t i = 0; i < sizeof below; i += LINE) below[i] = 0;
    return touch(below, sizeof below);
}

static void *room(size_t bytes)
{
    void *p = aligned_alloc(LINE, (bytes + LINE) / LINE * LINE);
    if (!p) exit(EXIT_FAILURE);
    return memset(p, 0, bytes);
}

/* Everything out of the cache but what is scratch and stack, then the call, or none. */
static int work(const struct subject *s, bool call)
{
    const struct kern *k = kern_find(s->kernel);
    const struct kern_variant *v = kern_variant_find(k, "avx2");
    struct kern_machine m = {.avx2_fma = true};
    struct kern_buffer b[KERN_BUFFERS_MAX];
    struct kern_call c = {.shape = &s->shape, .machine = &m};
    const size_t n = k->buffers(&s->shape, b);
    for (size_t i = 0; i < n; i++) {
        c.buffer[i] = room(b[i].elements * kern_type_bytes(b[i].type));
        if (b[i].role == KERN_INPUT && !(b[i].sd > 0)) k->fill(&c, i, 3, c.buffer[i]);
    }
    if (v->pack_bytes && v->pack_bytes(&s->shape)) {
        c.packed = room(v->pack_bytes(&s->shape));
        v->pack(&c);
    }
    const size_t scratch = v->scratch_bytes ? v->scratch_bytes(&s->shape, &m) : 0;
    if (scratch) c.scratch = room(scratch);
    v->run(&c); /* finds the functions of libraries */
    unsigned sum = touch(room(SWEEP), SWEEP);
    for (size_t i = 0; i < n; i++)
        if (b[i].role == KERN_SCRATCH) sum += touch(c.buffer[i], b[i].elements * kern_type_bytes(b[i].type));
    if (scratch) sum += touch(c.scratch, scratch);
    sum += touch_stack();
    if (call) v->run(&c);
    const volatile unsigned kept = sum; /* what was touched was read */
    (void)kept;
    return 0;
}

/* -- outside -- */

/* Misses of data in the last level of one run; NAN without cachegrind. */
static double misses_of(size_t subject, const char *call)
{
    int ends[2];
    char number[24], text[1 << 14];
    size_t n = 0;
    (void)snprintf(number, sizeof number, "%zu", subject);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execlp("valgrind", "valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
                     "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64", program, number, call, (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    (void)close(ends[1]);
    for (ssize_t got; n + 1 < sizeof text && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    (void)close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    const char *at = strstr(text, "LLd misses:");
    if (status != 0 || !at) return (double)NAN;
    double misses = 0;
    for (at += strlen("LLd misses:"); *at && *at != '('; at++)
        if (*at >= '0' && *at <= '9') misses = misses * 10 + (*at - '0');
    return misses;
}

static void counted_bytes_are_the_misses(void **state)
{
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    const bool able = m.avx2_fma && !SANITIZED;
    kern_machine_close(&m);
    if (!able) skip();
    for (size_t i = 0; i < sizeof SUBJECTS / sizeof SUBJECTS[0]; i++) {
        struct kern_counts counts;
        const double without = misses_of(i, "without");
        if (i == 0 && isnan(without)) skip();
        kern_find(SUBJECTS[i].kernel)->counts(&SUBJECTS[i].shape, &counts);
        const double bytes = (misses_of(i, "with") - without) * LINE;
        const double counted = counts.read_bytes + counts.written_bytes;
        print_message("%s %zu: %.0f bytes counted, %.0f missed (%+.2f %%)\n", SUBJECTS[i].kernel, i, counted, bytes,
                      100 * (bytes / counted - 1));
        assert_true(fabs(bytes / counted - 1) < 0.005);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counted_bytes_are_the_misses)};
    program = argv[0];
    if (argc == 3) return work(&SUBJECTS[strtoul(argv[1], NULL, 10)], strcmp(argv[2], "with") == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
