/* fake -- a worker that misbehaves as it is told, for the tests of what watches one. It speaks the protocol of
 * probe/METHOD.md; the kernel that it is asked for says what to do:
 *   good     answer at once         slow     answer after 20 ms      crash    end by SIGSEGV
 *   quit     end with status 3      hang     never answer            garbage  a line that is no JSON
 *   other    answer another id      lie      a result whose error is above its tolerance
 *   long     a line without end     noisy    samples that cannot be trusted     wrong    say that the result is wrong
 *   endless  progress for ever      above    faster than the ceilings
 *   claim    more work than any machine does    lax    a result that may be wrong by half    mute    wrong, and not why
 *   edge     1.5 % faster than the ceilings                  over     5 % faster
 *   gemm     a product that takes 2 us + flops/(0.8 of the peak) + bytes/(0.9 of the bandwidth)
 * Asked to count, good and noisy do, slow says that it may not, above ends, and all others time as if they knew
 * nothing. With RIDGE_FAKE_NOISY=peak=3 the first three measurements of that kernel are noisy; with RIDGE_FAKE_DRIFT
 * every second time that a ceiling is measured again it is 6 % lower; with RIDGE_FAKE_CRASH=peak=1 that kernel ends by
 * SIGSEGV; with
 * RIDGE_FAKE_SLOW=walk=400 that kernel answers after so many ms; with RIDGE_FAKE_TIMES=gemm=130 its times are 1.3 times
 * as long; with RIDGE_FAKE_CODES=walk=5 there are five codes of it. With RIDGE_FAKE_THREADS=n=5 five threads can make a
 * call together, but for slow and quit. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "probe/wire.h"

enum { SAMPLES = 12 };

static const char *const KERNELS[] = {"good", "slow",  "crash", "quit",    "hang",  "garbage", "other",
                                      "lie",  "long",  "noisy", "endless", "wrong", "above",   "peak",
                                      "walk", "claim", "lax",   "mute",    "edge",  "over",    "gemm"};
enum { KERNELS_N = sizeof KERNELS / sizeof KERNELS[0] };

static void send_reply(struct arena *a, const struct wire_reply *r)
{
    struct out *o;
    size_t n;
    if (out_memory(a, &o, NULL) != ERR_OK) return;
    wire_write_reply(o, r);
    const char *text = out_text(o, &n);
    if (text && (fwrite(text, 1, n, stdout) != n || fflush(stdout) != 0)) _exit(1);
}

/* N of an environment variable that says "kernel=N" of this one; 0. */
static long told(const char *variable, const char *kernel)
{
    const char *asked = getenv(variable);
    const size_t len = strlen(kernel);
    if (!asked || strncmp(asked, kernel, len) != 0 || asked[len] != '=') return 0;
    return strtol(asked + len + 1, NULL, 10);
}

static void describe(struct arena *a, int64_t id, int64_t asked)
{
    static const struct wire_arg ARG = {"n", "elements", 1, 1 << 30};
    static const struct wire_point POINT = {{1, {{"n", 4099}}}, "fp32", true};
    static const struct wire_arg SIZES[] = {
        {"m", "rows", 1, 1 << 20}, {"n", "columns", 1, 1 << 20}, {"k", "depth", 1, 1 << 20}};
    static const struct wire_point PRODUCT = {{3, {{"m", 3}, {"n", 257}, {"k", 131}}}, "fp32", true};
    static const struct wire_variant BOTH = {"fake", "fp32", "", "fp32,bf16", false, true};
    static const struct wire_variant VARIANT = {"fake", "fp32", "", "fp32", false, true};
    static const struct wire_variant ALONE = {"fake", "fp32", "", "fp32", false, false};
    static const struct wire_variant LACKS = {"fake", "fp32", "it runs on one thread alone", "fp32", false, false};
    const long most = told("RIDGE_FAKE_THREADS", "n");
    const int64_t threads = asked < most ? asked : most > 1 ? most : 1;
    const char *identity = arena_printf(a,
                                        "{\"name\":\"Fake 7\",\"cores\":2,\"threads_used\":%lld,\"memory_bytes\":5e10,"
                                        "\"cache_bytes\":[32768,1000000,30000000]}",
                                        (long long)threads);
    struct wire_kernel kernels[KERNELS_N];
    for (size_t i = 0; i < KERNELS_N; i++)
        kernels[i] = (struct wire_kernel){.name = KERNELS[i],
                                          .summary = "of the tests",
                                          .row_kind = "",
                                          .ceiling = strcmp(KERNELS[i], "peak") == 0   ? "compute"
                                                     : strcmp(KERNELS[i], "walk") == 0 ? "read"
                                                                                       : "",
                                          .args = &ARG,
                                          .args_n = 1,
                                          .points = &POINT,
                                          .points_n = 1,
                                          .variants = &VARIANT,
                                          .variants_n = 1};
    for (size_t i = 0; i < KERNELS_N; i++)
        if (strcmp(KERNELS[i], "slow") == 0 || strcmp(KERNELS[i], "quit") == 0)
            kernels[i].variants = threads > 1 ? &LACKS : &ALONE;
    struct wire_kernel *gemm = &kernels[KERNELS_N - 1];
    static const char *const CODES[] = {"fake", "fake-2", "fake-3", "fake-4", "fake-5"};
    struct wire_variant codes[sizeof CODES / sizeof CODES[0]];
    for (size_t i = 0; i < KERNELS_N; i++) {
        const long n = told("RIDGE_FAKE_CODES", KERNELS[i]);
        if (n < 1 || (size_t)n > sizeof CODES / sizeof CODES[0]) continue;
        for (size_t j = 0; j < (size_t)n; j++) {
            codes[j] = VARIANT;
            codes[j].name = CODES[j];
        }
        kernels[i].variants = codes;
        kernels[i].variants_n = (size_t)n;
    }
    gemm->row_kind = "gemm";
    gemm->args = SIZES;
    gemm->args_n = 3;
    gemm->points = &PRODUCT;
    gemm->variants = &BOTH;
    send_reply(a, &(struct wire_reply){.id = id,
                                       .is = WIRE_IS_DEVICE,
                                       .device = {.name = "Fake 7",
                                                  .identity = identity,
                                                  .memory_bytes = 1e9, /* not a unit */
                                                  .cache_bytes = {32768, 1e6, 3e7},
                                                  .kernels = kernels,
                                                  .kernels_n = KERNELS_N,
                                                  .threads = threads,
                                                  .left_out = ""}});
}

/* Of a product that is measured on the ceilings below, 1e9 flops/s and bytes/s. */
static void multiply(const struct wire_job *job, struct wire_result *r, double *times)
{
    double size[3] = {0, 0, 0}, bytes = strcmp(job->dtype, "fp32") == 0 ? 4 : 2;
    static const char *const NAMES[] = {"m", "n", "k"};
    for (size_t i = 0; i < 3; i++) {
        int64_t v = 0;
        (void)wire_shape_get(&job->shape, NAMES[i], &v);
        size[i] = (double)v;
    }
    r->flops = 2 * size[0] * size[1] * size[2];
    r->read_bytes = (size[0] + size[1]) * size[2] * bytes;
    r->written_bytes = size[0] * size[1] * bytes;
    r->footprint_bytes = r->read_bytes + r->written_bytes;
    const long percent = told("RIDGE_FAKE_TIMES", job->kernel);
    if (percent > 0)
        for (size_t i = 0; i < SAMPLES; i++) times[i] *= 0.01 * (double)percent;
    for (size_t i = 0; i < SAMPLES; i++) times[i] *= 1e3 * (2e-6 + r->flops / 0.8e9 + r->footprint_bytes / 0.9e9);
}

/* Whether RIDGE_FAKE_NOISY says that this measurement of a kernel, one of many, is noisy. */
static bool is_noisy(const char *kernel, int64_t *measured)
{
    const long n = told("RIDGE_FAKE_NOISY", kernel);
    return strcmp(kernel, "noisy") == 0 || (n && (*measured)++ < n);
}

/* What a worker has done so far. */
struct done {
    int64_t noisy;           /* results */
    int64_t measured;        /* of the kernel that RIDGE_FAKE_NOISY names */
    int64_t peaks, readings; /* ceilings, again */
    int64_t tardy;           /* of the kernel that RIDGE_FAKE_TARDY names */
};

/* Of a ceiling that is measured again how much slower it has become, of the first so many results of the kernel that
 * RIDGE_FAKE_TARDY names 2, of anything else 1. */
static double drift(const struct wire_job *job, struct done *done)
{
    const long tardy = told("RIDGE_FAKE_TARDY", job->kernel);
    if (tardy > 0) return done->tardy++ < tardy ? 2 : 1;
    if (!job->keep || !getenv("RIDGE_FAKE_DRIFT")) return 1;
    int64_t *n = strcmp(job->kernel, "peak") == 0 ? &done->peaks : &done->readings;
    return (*n)++ % 2 ? 1.06 : 1;
}

static void answer(struct arena *a, int64_t id, const struct wire_job *job, struct done *done)
{
    const char *kernel = job->kernel;
    double times[SAMPLES];
    const bool above = strcmp(kernel, "above") == 0, noisy = is_noisy(kernel, &done->measured);
    const double slower = drift(job, done);
    const double faster = strcmp(kernel, "edge") == 0 ? 1.015 : strcmp(kernel, "over") == 0 ? 1.05 : 1;
    const double state = noisy ? 1 + 0.3 * (double)(done->noisy++ * 7 % 5) : 1; /* another one each time */
    for (size_t i = 0; i < SAMPLES; i++)
        times[i] = (above ? 1e-6 : 1e-3 * state * slower / faster) * (1 + (noisy ? 0.3 : 1e-4) * (double)(i * 7 % 5));
    struct wire_result r = {.outcome = WIRE_MEASURED,
                            .reason = "",
                            .unit = "fp32",
                            .stop = SAMPLE_QUIET,
                            .times_s = times,
                            .times_n = SAMPLES,
                            .calls = 1,
                            .copies = 1,
                            .checked = 4099,
                            .error_frac = 1e-7,
                            .tolerance_frac = 1e-5,
                            .flops = 1e6,
                            .vector_flops = 0,
                            .read_bytes = 1e6,
                            .written_bytes = 0,
                            .footprint_bytes = 4e7};
    int64_t n = 0;
    if (strcmp(kernel, "gemm") == 0) multiply(job, &r, times);
    if (strcmp(kernel, "walk") == 0 && wire_shape_get(&job->shape, "n", &n)) r.footprint_bytes = 4 * (double)n;
    if (strcmp(kernel, "lie") == 0) r.error_frac = 1;
    if (strcmp(kernel, "claim") == 0) r.flops = 1e30;
    if (strcmp(kernel, "lax") == 0) {
        r.error_frac = 0.5;
        r.tolerance_frac = 1e300;
    }
    if (strcmp(kernel, "mute") == 0) {
        r.outcome = WIRE_WRONG;
        r.times_n = 0;
    }
    if (job->deadline_s < 2e-3 && strcmp(kernel, "good") == 0) { /* no time for more */
        r.times_n = 3;
        r.stop = SAMPLE_DEADLINE;
    }
    if (strcmp(kernel, "wrong") == 0) {
        r.outcome = WIRE_WRONG;
        r.reason = "off by 1.00 of the reference";
        r.times_n = 0;
    }
    if (strcmp(kernel, "other") == 0) id += 1;
    if (job->dram_bytes && (strcmp(kernel, "good") == 0 || noisy)) {
        r.outcome = WIRE_COUNTED;
        r.times_n = 0;
        r.dram_read_bytes = 1.25e6;
        r.dram_write_bytes = 3e4;
    }
    if (job->dram_bytes && strcmp(kernel, "slow") == 0) {
        r.outcome = WIRE_REFUSED;
        r.reason = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: this user may not";
    }
    if (job->dram_bytes && above) _exit(3);
    send_reply(a, &(struct wire_reply){.id = id, .is = WIRE_IS_RESULT, .result = r});
}

static void misbehave(struct arena *a, int64_t id, const struct wire_job *job, struct done *done)
{
    const char *kernel = job->kernel;
    if (strcmp(kernel, "crash") == 0 || told("RIDGE_FAKE_CRASH", kernel)) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
    if (strcmp(kernel, "quit") == 0) _exit(3);
    if (strcmp(kernel, "hang") == 0)
        for (;;) (void)pause();
    if (strcmp(kernel, "slow") == 0) (void)usleep(20000);
    (void)poll(NULL, 0, (int)told("RIDGE_FAKE_SLOW", kernel));
    if (strcmp(kernel, "garbage") == 0) (void)printf("Segmentation fault (core dumped)\n");
    for (int i = 0; strcmp(kernel, "long") == 0 && i < 3000; i++) (void)printf("%01000d", i);
    while (strcmp(kernel, "endless") == 0) {
        send_reply(a, &(struct wire_reply){.id = id, .is = WIRE_IS_PROGRESS, .phase = "time"});
        (void)usleep(1000);
    }
    (void)fflush(stdout);
    answer(a, id, job, done);
}

/* The work of a call, as answer has it. */
static void count(struct arena *a, int64_t id, const struct wire_job *job)
{
    double times[SAMPLES] = {0};
    size_t i = 0;
    struct wire_result r = {.flops = 1e6, .read_bytes = 1e6};
    const bool gemm = strcmp(job->kernel, "gemm") == 0, peak = strcmp(job->kernel, "peak") == 0;
    while (i < KERNELS_N && strcmp(KERNELS[i], job->kernel) != 0) i++;
    if (gemm) multiply(job, &r, times);
    send_reply(a, &(struct wire_reply){.id = id,
                                       .is = WIRE_IS_WORK,
                                       .work = {.refused = i < KERNELS_N ? "" : "no kernel of the tests",
                                                .row_kind = gemm ? "gemm" : "",
                                                .ceiling = peak                               ? "compute"
                                                           : strcmp(job->kernel, "walk") == 0 ? "read"
                                                                                              : "",
                                                .unit = "fp32",
                                                .flops = r.flops,
                                                .read_bytes = r.read_bytes,
                                                .written_bytes = r.written_bytes}});
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    struct done done = {.measured = 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (argc > 1 && strtol(argv[1], NULL, 10) != (long)getppid())) return 1;
    while ((n = getline(&line, &room, stdin)) > 0) {
        struct wire_request q;
        struct err e = {.code = ERR_OK};
        struct arena *a = arena_open();
        if (!a || wire_read_request(a, line, (size_t)n - 1, &q, &e) != ERR_OK || q.ask == WIRE_QUIT) return 0;
        if (q.ask == WIRE_DESCRIBE) describe(a, q.id, q.threads);
        if (q.ask == WIRE_MEASURE) misbehave(a, q.id, &q.job, &done);
        if (q.ask == WIRE_COUNT) count(a, q.id, &q.job);
        arena_close(a);
    }
    free(line);
    return 0;
}
