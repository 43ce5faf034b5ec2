#include "tests/simt_check.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A small card, so that walks over a grid go round more than once. */
static const struct kern_machine MACHINE = {.processors = 3, .capability = 90, .shared_bytes = 227 * 1024};

/* -- every kernel, every variant -- */

static void *make_buffer(const struct kern *k, const struct kern_call *c, size_t b, const struct kern_buffer *d)
{
    const size_t bytes = d->elements * kern_type_bytes(d->type);
    void *data = NULL;
    assert_int_equal(posix_memalign(&data, 64, bytes ? bytes : 1), 0); /* exact: AddressSanitizer sees one beyond */
    memset(data, d->type == KERN_TYPE_I32 || d->type == KERN_TYPE_U8 || d->type == KERN_TYPE_I8 ? 0xaa : 0xff, bytes);
    if (d->role == KERN_INPUT || d->role == KERN_STATE) {
        if (d->sd > 0)
            kern_fill_normal(data, d->type, d->elements, d->sd, 1009 + b);
        else
            k->fill(c, b, 1009 + b, data);
    }
    return data;
}

/* Runs and compares, ||result - reference|| / ||reference|| over each output; "" or what is wrong. States start from a
 * copy, since the reference reads them. */
static void try_shape(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                      const struct simt_config *config, char *wrong, size_t cap)
{
    const struct kern *k = cuda->kern;
    struct kern_buffer d[KERN_BUFFERS_MAX];
    struct kern_call before = {.shape = s, .machine = &MACHINE}, after = before;
    if (kern_shape_check(k, s, wrong, cap)) return;
    wrong[0] = 0;
    const size_t n = k->buffers(s, d);
    for (size_t b = 0; b < n; b++) {
        const size_t bytes = d[b].elements * kern_type_bytes(d[b].type);
        if (d[b].role == KERN_SCRATCH) continue; /* of the CPU's code */
        before.buffer[b] = make_buffer(k, &before, b, d + b);
        after.buffer[b] = before.buffer[b];
        if (d[b].role == KERN_INPUT) continue;
        assert_int_equal(posix_memalign(&after.buffer[b], 64, bytes ? bytes : 1), 0);
        memcpy(after.buffer[b], before.buffer[b], bytes);
    }
    const size_t scratch = v->scratch_bytes ? v->scratch_bytes(s, &MACHINE) : 0;
    if (scratch) assert_int_equal(posix_memalign(&after.scratch, 64, scratch), 0);
    if (scratch) memset(after.scratch, 0xff, scratch);
    simt_start(config);
    v->run(&after);
    free(after.scratch);
    if (simt_failure()) snprintf(wrong, cap, "%s", simt_failure());
    for (size_t b = 0; b < n && !wrong[0]; b++) {
        if (d[b].role != KERN_OUTPUT && d[b].role != KERN_STATE) continue;
        double apart = 0, all = 0;
        double *want = malloc(d[b].granule * sizeof *want);
        assert_non_null(want);
        for (size_t block = 0; block < d[b].elements / d[b].granule; block++) {
            k->reference(&before, b, block, want);
            for (size_t i = 0; i < d[b].granule; i++) {
                const double have = kern_read(after.buffer[b], d[b].type, block * d[b].granule + i);
                apart += (have - want[i]) * (have - want[i]);
                all += want[i] * want[i];
            }
        }
        free(want);
        if (!(sqrt(apart) <= k->tolerance(s) * sqrt(all)))
            snprintf(wrong, cap, "%s: %g of %g off", d[b].name, sqrt(apart), sqrt(all));
    }
    for (size_t b = 0; b < n; b++) {
        if (after.buffer[b] != before.buffer[b]) free(after.buffer[b]);
        free(before.buffer[b]);
    }
}

static void check_shape(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                        const struct simt_config *config)
{
    char wrong[512];
    try_shape(cuda, v, s, config, wrong, sizeof wrong);
    if (wrong[0])
        fail_msg("%s %s, %s at %lld %lld %lld: %s (order %d, seed %llu)", cuda->kern->name, v->name,
                 kern_dtype_name(s->dtype), (long long)s->v[0], (long long)s->v[1], (long long)s->v[2], wrong,
                 (int)config->order, (unsigned long long)config->seed);
}

/* The kernel that a shape is of. */
static const struct kern_cuda *kernel_of(const struct simt_check_shape *shape)
{
    size_t n;
    const struct kern_cuda *const *table = kern_cuda_table(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(shape->kern, table[i]->kern->name) == 0) return table[i];
    fail_msg("no CUDA code of %s", shape->kern);
    return NULL;
}

/* Whether variant v of a kernel runs the shape in the format; *out is the shape. */
static bool runs(const struct kern_variant *v, const struct simt_check_shape *shape, int dtype, struct kern_shape *out)
{
    *out = (struct kern_shape){.dtype = (enum kern_dtype)dtype};
    memcpy(out->v, shape->v, sizeof out->v);
    return (v->dtypes & KERN_HAS(dtype)) && !(v->lacks && v->lacks(&MACHINE, out));
}

void simt_check_order(const struct simt_check_shape *shapes, size_t n, enum simt_order order, uint64_t seed)
{
    const struct simt_config config = {.order = order, .seed = seed, .strict = true};
    size_t checked = 0;
    for (size_t j = 0; j < n; j++) {
        const struct kern_cuda *k = kernel_of(shapes + j);
        const size_t before = checked;
        struct kern_shape s;
        for (size_t v = 0; v < k->variants_n; v++)
            for (int dtype = 0; dtype < KERN_DTYPES_N; dtype++) {
                if (!runs(k->variants + v, shapes + j, dtype, &s)) continue;
                check_shape(k, k->variants + v, &s, &config);
                checked++;
            }
        if (checked == before) fail_msg("nothing runs shape %zu, of %s", j, shapes[j].kern);
    }
    print_message("%zu shapes, %zu checks\n", n, checked);
}

/* -- mistakes put into every kernel: each barrier, wait, fragment and row of each source is needed, and missed -- */

enum { SPOTS_MAX = 256, PLACE_MAX = 64, CHILD_MOST_S = 60 };
enum { LIKE_RIGHT, LIKE_WRONG, NOT_MADE };

/* A place of the source and what is wrong there. */
struct spot {
    char place[PLACE_MAX];
    enum simt_mistake mistake;
    bool found, made;
};

/* One mistake in a process of its own: it may read anywhere, or go on for ever. */
static int try_mistake(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                       const struct simt_config *config)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    int status = 0;
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char how[512];
        for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) (void)signal(SIGNALS[i], SIG_DFL);
        (void)close(STDERR_FILENO); /* what a sanitizer has to say */
        (void)alarm(CHILD_MOST_S);
        try_shape(cuda, v, s, config, how, sizeof how);
        _exit(how[0] ? LIKE_WRONG : simt_mistaken() ? LIKE_RIGHT : NOT_MADE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : LIKE_WRONG;
    return code == LIKE_RIGHT || code == NOT_MADE ? code : LIKE_WRONG;
}

/* The places of the last run that are new. */
static void add_spots(struct spot *spots, size_t *n)
{
    for (int mistake = SIMT_SKIP_BARRIER; mistake < SIMT_MISTAKES_N; mistake++)
        for (unsigned p = 0; p < simt_places((enum simt_mistake)mistake); p++) {
            const char *place = simt_place_name((enum simt_mistake)mistake, p);
            size_t i = 0;
            while (i < *n && !((int)spots[i].mistake == mistake && strcmp(spots[i].place, place) == 0)) i++;
            if (i < *n) continue;
            assert_true(*n < SPOTS_MAX && strlen(place) < PLACE_MAX);
            spots[*n] = (struct spot){.mistake = (enum simt_mistake)mistake};
            (void)snprintf(spots[(*n)++].place, PLACE_MAX, "%s", place);
        }
}

/* Every mistake of one shape, variant and order that is not found yet. */
static void try_spots(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                      enum simt_order order, struct spot *spots, size_t *n)
{
    struct simt_config config = {order, 29, true, SIMT_RIGHT, 0};
    char how[512], names[SIMT_MISTAKES_N][SPOTS_MAX / 4][PLACE_MAX];
    unsigned names_n[SIMT_MISTAKES_N];
    try_shape(cuda, v, s, &config, how, sizeof how);
    add_spots(spots, n);
    for (int mistake = SIMT_SKIP_BARRIER; mistake < SIMT_MISTAKES_N; mistake++) {
        names_n[mistake] = simt_places((enum simt_mistake)mistake);
        for (unsigned p = 0; p < names_n[mistake]; p++)
            (void)snprintf(names[mistake][p], PLACE_MAX, "%s", simt_place_name((enum simt_mistake)mistake, p));
    }
    for (size_t i = 0; i < *n; i++) {
        if (spots[i].found) continue;
        config.mistake = spots[i].mistake;
        for (config.at = 0; config.at < names_n[config.mistake]; config.at++)
            if (strcmp(names[config.mistake][config.at], spots[i].place) == 0) break;
        if (config.at == names_n[config.mistake]) continue;
        const int code = try_mistake(cuda, v, s, &config);
        spots[i].made = spots[i].made || code != NOT_MADE;
        spots[i].found = code == LIKE_WRONG;
    }
}

void simt_check_mistakes(const struct simt_check_shape *shapes, size_t n)
{
    static const char *const NAMES[] = {[SIMT_SKIP_BARRIER] = "barrier left out",
                                        [SIMT_SKIP_WARP] = "warp barrier left out",
                                        [SIMT_WAIT_LESS] = "wait for too little",
                                        [SIMT_SWAP_FIRST] = "first factor swapped",
                                        [SIMT_SWAP_SECOND] = "second factor swapped",
                                        [SIMT_SHIFT_ROWS] = "rows shifted",
                                        [SIMT_WRONG_LANE] = "wrong lane",
                                        [SIMT_LESS_SHARED] = "shared memory too small",
                                        [SIMT_FAR_COPY] = "copy from beyond"};
    struct spot spots[SPOTS_MAX];
    struct kern_shape s;
    size_t spots_n = 0, missed = 0;
    for (size_t j = 0; j < n; j++) {
        const struct kern_cuda *k = kernel_of(shapes + j);
        for (size_t v = 0; v < k->variants_n; v++)
            for (int dtype = 0; dtype < KERN_DTYPES_N; dtype++)
                for (int order = 0; order < SIMT_ORDERS_N; order++)
                    if (runs(k->variants + v, shapes + j, dtype, &s))
                        try_spots(k, k->variants + v, &s, (enum simt_order)order, spots, &spots_n);
    }
    for (size_t i = 0; i < spots_n; i++) {
        if (spots[i].found || !spots[i].made) continue; /* a mistake that changes nothing is none */
        print_message("%s at %s is not seen\n", NAMES[spots[i].mistake], spots[i].place);
        missed++;
    }
    print_message("%zu mistakes, %zu not seen\n", spots_n, missed);
    assert_int_equal(missed, 0);
}
