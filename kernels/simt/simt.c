#include "kernels/simt/simt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "kernels/simt/context.h"

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#ifndef SIMT_ASAN
#define SIMT_ASAN 0
#endif

#if SIMT_ASAN
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 1 << 18, GUARD_BYTES = 0 };
#else
enum { STACK_BYTES = 1 << 16, GUARD_BYTES = 256 };
#endif
enum { WORD = 64, THREADS_MAX = 1024, COPIES_MAX = 256, PLACES_MAX = 64, GUARD = 0xa5 }; /* not a unit */
enum { SHARED_MAX = 227 * 1024 }; /* not a unit; of a block, H100 */

enum state { READY, AT_BARRIER, AT_WARP, ENDED };

struct copy {
    void *to;
    const void *from;
    int valid;
    unsigned group;
};

struct fiber {
    struct context context;
    void *fake_stack; /* AddressSanitizer's */
    char *stack;
    struct simt_place place;
    enum state state;
    const char *site;
    enum simt_op op;
    unsigned mask;
    unsigned char in[SIMT_IN];
    void *out;
    struct copy copies[COPIES_MAX];
    unsigned copies_n, group;
};

/* One block that runs. */
struct run {
    const char *name;
    void (*kernel)(const void *);
    const void *arg;
    struct fiber *fibers;
    unsigned threads, ended, arrived, first;
    uint64_t ready[THREADS_MAX / WORD]; /* a bit a thread: its state is READY */
    struct fiber *now, *came_first;     /* at the barrier */
    unsigned char *shared;
    size_t shared_bytes;
    struct context scheduler;
    void *fake_stack;
    const void *scheduler_stack;
    size_t scheduler_stack_bytes;
    bool failed;
};

/* CUDA's names take no context, so what they act on is found here: one emulator per thread of the host. */
static _Thread_local struct {
    struct simt_config config;
    struct run *run;
    uint64_t drawn, switches, mistaken;
    const char *places[SIMT_MISTAKES_N][PLACES_MAX];
    unsigned places_n[SIMT_MISTAKES_N];
    bool failed;
    char failure[256];
} here;

void simt_start(const struct simt_config *config)
{
    here.config = *config;
    here.drawn = here.switches = here.mistaken = 0;
    memset(here.places_n, 0, sizeof here.places_n);
    here.failed = false;
    here.failure[0] = 0;
}

const char *simt_failure(void) { return here.failed ? here.failure : NULL; }
uint64_t simt_switches(void) { return here.switches; }
const struct simt_place *simt_here(void) { return &here.run->now->place; }
void *simt_shared(void) { return here.run->shared; }

unsigned simt_places(enum simt_mistake mistake) { return here.places_n[mistake]; }
const char *simt_place_name(enum simt_mistake mistake, unsigned at) { return here.places[mistake][at]; }
uint64_t simt_mistaken(void) { return here.mistaken; }

/* One place has one text, but for headers that several files have. */
static bool same_site(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

/* Whether the mistake is to be made here; remembers the place. */
static bool mistake_at(enum simt_mistake mistake, const char *site)
{
    unsigned i = 0;
    while (i < here.places_n[mistake] && !same_site(here.places[mistake][i], site)) i++;
    if (i == PLACES_MAX) return false;
    if (i == here.places_n[mistake]) here.places[mistake][here.places_n[mistake]++] = site;
    return here.config.mistake == mistake && here.config.at == i;
}

static uint64_t draw(uint64_t below) { return kern_hash(here.config.seed, here.drawn++) % below; }

/* -- fibers -- */

static void to_scheduler(bool for_ever)
{
    struct run *r = here.run;
    struct fiber *f = r->now;
    here.switches++;
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(for_ever ? NULL : &f->fake_stack, r->scheduler_stack, r->scheduler_stack_bytes);
#else
    (void)for_ever;
#endif
    context_swap(&f->context, &r->scheduler);
#if SIMT_ASAN
    __sanitizer_finish_switch_fiber(f->fake_stack, &r->scheduler_stack, &r->scheduler_stack_bytes);
#endif
}

static void to_fiber(struct run *r, struct fiber *f)
{
    r->now = f;
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(&r->fake_stack, f->stack, STACK_BYTES);
#endif
    context_swap(&r->scheduler, &f->context);
#if SIMT_ASAN
    __sanitizer_finish_switch_fiber(r->fake_stack, NULL, NULL);
#endif
    r->now = NULL;
}

static void fail_from_scheduler(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
static void fail_from_scheduler(const char *format, va_list args)
{
    if (here.run) here.run->failed = true;
    if (here.failed) return;
    here.failed = true;
    vsnprintf(here.failure, sizeof here.failure, format, args);
}

static void fail_launch(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fail_launch(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_from_scheduler(format, args);
    va_end(args);
}

/* In a fiber: does not return. */
static _Noreturn void fail_here(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail_here(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_from_scheduler(format, args);
    va_end(args);
    for (;;) to_scheduler(true);
}

static unsigned index_of(const struct fiber *f) { return (unsigned)(f - here.run->fibers); }

static void set_state(struct fiber *f, enum state state)
{
    uint64_t *word = &here.run->ready[index_of(f) / WORD];
    const uint64_t bit = UINT64_C(1) << index_of(f) % WORD;
    f->state = state;
    *word = state == READY ? *word | bit : *word & ~bit;
}

static void entry(void)
{
    struct run *r = here.run;
    struct fiber *f = r->now;
#if SIMT_ASAN
    __sanitizer_finish_switch_fiber(NULL, &r->scheduler_stack, &r->scheduler_stack_bytes);
#endif
    r->kernel(r->arg);
    if (here.config.strict && f->copies_n)
        fail_here("%s: thread %u ends with copies that it never waited for", r->name, index_of(f));
    set_state(f, ENDED);
    r->ended++;
    for (;;) to_scheduler(true);
}

/* -- barriers -- */

static void open_barrier(struct run *r)
{
    for (unsigned i = 0; i < r->threads; i++)
        if (r->fibers[i].state == AT_BARRIER) set_state(&r->fibers[i], READY);
    r->arrived = 0;
}

void simt_barrier(const char *site)
{
    struct run *r = here.run;
    struct fiber *f = r->now;
    if (mistake_at(SIMT_SKIP_BARRIER, site)) {
        here.mistaken++;
        return;
    }
    f->site = site;
    set_state(f, AT_BARRIER);
    if (r->arrived++ == 0) r->came_first = f;
    if (here.config.strict && !same_site(r->came_first->site, site))
        fail_here("%s: divergent barrier: thread %u is at another, %s, than thread %u", site, index_of(r->came_first),
                  r->came_first->site, index_of(f));
    if (r->arrived == r->threads)
        open_barrier(r);
    else
        to_scheduler(false);
}

/* -- warps -- */

static struct fiber *lane_of(struct fiber *f, unsigned lane)
{
    const unsigned i = index_of(f) / SIMT_LANES * SIMT_LANES + lane;
    return i < here.run->threads ? here.run->fibers + i : NULL;
}

static uint32_t word_of(const struct fiber *f, size_t i)
{
    uint32_t v;
    memcpy(&v, f->in + i * sizeof v, sizeof v);
    return v;
}

static void put_word(const struct fiber *f, size_t i, uint32_t v)
{
    memcpy((unsigned char *)f->out + i * sizeof v, &v, sizeof v);
}

static float bf16_of(uint32_t pair, unsigned half) { return kern_bf16_to((uint16_t)(pair >> 16 * half)); }

static void multiply(struct fiber *lane[SIMT_LANES])
{
    enum { ROWS = 16, COLUMNS = 8, DEPTH = 16 };
    float a[ROWS][DEPTH], b[DEPTH][COLUMNS];
    for (unsigned l = 0; l < SIMT_LANES; l++) {
        const unsigned g = l / 4, t = l % 4;
        for (unsigned r = 0; r < 4; r++)
            for (unsigned h = 0; h < 2; h++) a[g + r % 2 * 8][2 * t + r / 2 * 8 + h] = bf16_of(word_of(lane[l], r), h);
        for (unsigned r = 0; r < 2; r++)
            for (unsigned h = 0; h < 2; h++) b[2 * t + r * 8 + h][g] = bf16_of(word_of(lane[l], 4 + r), h);
    }
    for (unsigned l = 0; l < SIMT_LANES; l++) {
        const unsigned g = l / 4, t = l % 4;
        for (unsigned r = 0; r < 4; r++) {
            const unsigned i = g + r / 2 * 8, j = 2 * t + r % 2;
            double sum = 0;
            for (unsigned k = 0; k < DEPTH; k++) sum += (double)a[i][k] * (double)b[k][j];
            const float d = (float)((double)__uint_as_float(word_of(lane[l], 6 + r)) + sum);
            put_word(lane[l], r, __float_as_uint(d));
        }
    }
}

static void load_matrices(struct fiber *lane[SIMT_LANES], bool transposed)
{
    enum { SIDE = 8 };
    const struct run *r = here.run;
    uint16_t m[4][SIDE][SIDE];
    for (unsigned l = 0; l < SIMT_LANES; l++) {
        const unsigned char *row;
        memcpy(&row, lane[l]->in, sizeof row);
        if (row < r->shared || row + sizeof m[0][0] > r->shared + r->shared_bytes)
            fail_here("%s: lane %u's row of a matrix is not in shared memory", lane[l]->site, l);
        if ((uintptr_t)row % sizeof m[0][0])
            fail_here("%s: lane %u's row is not aligned to 16 bytes", lane[l]->site, l);
        memcpy(m[l / SIDE][l % SIDE], row, sizeof m[0][0]);
    }
    for (unsigned l = 0; l < SIMT_LANES; l++)
        for (unsigned j = 0; j < 4; j++) {
            const unsigned g = l / 4, t = l % 4 * 2;
            const uint32_t low = transposed ? m[j][t][g] : m[j][g][t];
            const uint32_t high = transposed ? m[j][t + 1][g] : m[j][g][t + 1];
            put_word(lane[l], j, low | high << 16);
        }
}

static void perform(enum simt_op op, unsigned mask, struct fiber *lane[SIMT_LANES])
{
    uint32_t votes = 0;
    switch (op) {
    case SIMT_SYNC: return;
    case SIMT_SHUFFLE:
        for (unsigned l = 0; l < SIMT_LANES; l++)
            if (mask >> l & 1) {
                const unsigned from = word_of(lane[l], 1) % SIMT_LANES;
                put_word(lane[l], 0, mask >> from & 1 ? word_of(lane[from], 0) : 0xffffffffu);
            }
        return;
    case SIMT_BALLOT:
        for (unsigned l = 0; l < SIMT_LANES; l++)
            if ((mask >> l & 1) && word_of(lane[l], 0)) votes |= 1u << l;
        for (unsigned l = 0; l < SIMT_LANES; l++)
            if (mask >> l & 1) put_word(lane[l], 0, votes);
        return;
    case SIMT_MMA: multiply(lane); return;
    case SIMT_LDMATRIX: load_matrices(lane, false); return;
    case SIMT_LDMATRIX_TRANSPOSED: load_matrices(lane, true); return;
    }
}

void simt_warp(enum simt_op op, const char *site, unsigned mask, const void *in, size_t in_bytes, void *out)
{
    struct fiber *f = here.run->now, *lane[SIMT_LANES] = {0};
    const unsigned self = index_of(f) % SIMT_LANES;
    bool all = true;
    if (!(mask >> self & 1)) fail_here("%s: lane %u is not in its own mask %08x", site, self, mask);
    f->site = site, f->op = op, f->mask = mask, f->out = out;
    if (in_bytes) memcpy(f->in, in, in_bytes);
    set_state(f, AT_WARP);
    for (unsigned l = 0; l < SIMT_LANES; l++) {
        if (!(mask >> l & 1)) continue;
        lane[l] = lane_of(f, l);
        if (!lane[l] || lane[l]->state == ENDED)
            fail_here("%s: lane %u of the mask %s", site, l, lane[l] ? "has ended" : "is not in the block");
        all = all && lane[l]->state == AT_WARP && lane[l]->op == op && lane[l]->mask == mask &&
              same_site(lane[l]->site, site);
    }
    if (!all) {
        to_scheduler(false);
        return;
    }
    perform(op, mask, lane);
    for (unsigned l = 0; l < SIMT_LANES; l++)
        if (lane[l]) set_state(lane[l], READY);
}

uint32_t simt_shuffle(const char *site, unsigned mask, uint32_t value, enum simt_pick pick, unsigned by)
{
    const unsigned self = index_of(here.run->now) % SIMT_LANES;
    unsigned from = self;
    switch (pick) {
    case SIMT_PICK_INDEX: from = by % SIMT_LANES; break;
    case SIMT_PICK_XOR: from = self ^ by; break;
    case SIMT_PICK_DOWN: from = self + by < SIMT_LANES ? self + by : self; break;
    case SIMT_PICK_UP: from = self >= by ? self - by : self; break;
    }
    if (mistake_at(SIMT_WRONG_LANE, site)) {
        const unsigned beside = (from + 1) % SIMT_LANES; /* one that is not there would be found by itself */
        if (mask >> beside & 1) from = beside, here.mistaken++;
    }
    const uint32_t in[2] = {value, from};
    uint32_t out = 0xffffffffu;
    simt_warp(SIMT_SHUFFLE, site, mask, in, sizeof in, &out);
    return out;
}

uint32_t simt_ballot(const char *site, unsigned mask, int predicate)
{
    const uint32_t in = predicate != 0;
    uint32_t out = 0;
    simt_warp(SIMT_BALLOT, site, mask, &in, sizeof in, &out);
    return out;
}

void simt_mma(const char *site, float d[4], const uint32_t a[4], const uint32_t b[2])
{
    uint32_t in[10];
    memcpy(in, a, 16);
    memcpy(in + 4, b, 8);
    memcpy(in + 6, d, 16);
    if (mistake_at(SIMT_SWAP_FIRST, site)) in[1] = a[2], in[2] = a[1], here.mistaken += a[1] != a[2];
    if (mistake_at(SIMT_SWAP_SECOND, site)) in[4] = b[1], in[5] = b[0], here.mistaken += b[0] != b[1];
    simt_warp(SIMT_MMA, site, 0xffffffffu, in, sizeof in, d);
}

void simt_ldmatrix(enum simt_op op, const char *site, uint32_t r[4], const void *row)
{
    if (mistake_at(SIMT_SHIFT_ROWS, site)) {
        const uint64_t own = (uintptr_t)row;
        const unsigned next = index_of(here.run->now) + 1;
        const uint64_t low = simt_shuffle(site, 0xffffffffu, (uint32_t)own, SIMT_PICK_INDEX, next);
        row = (const void *)(uintptr_t)(own >> 32 << 32 | low); /* shared memory does not cross 4 GiB */
        here.mistaken++;
    }
    simt_warp(op, site, 0xffffffffu, &row, sizeof row, r);
}

void simt_sync_warp(const char *site)
{
    if (mistake_at(SIMT_SKIP_WARP, site))
        here.mistaken++;
    else
        simt_warp(SIMT_SYNC, site, 0xffffffffu, NULL, 0, NULL);
}

/* -- memory -- */

static void arrive(const struct copy *c)
{
    memset(c->to, 0, 16);
    memcpy(c->to, c->from, (size_t)c->valid);
}

void simt_copy_16(const char *site, void *shared, const void *global, int valid)
{
    struct run *r = here.run;
    struct fiber *f = r->now;
    const unsigned char *to = shared;
    if (valid < 0 || valid > 16) fail_here("%s: a copy of %d bytes of 16", site, valid);
    if (to < r->shared || to + 16 > r->shared + r->shared_bytes) fail_here("%s: a copy beyond shared memory", site);
    if ((uintptr_t)shared % 16) fail_here("%s: the target of a copy is not aligned to 16 bytes", site);
    if (valid && (uintptr_t)global % 16) fail_here("%s: the source of a copy is not aligned to 16 bytes", site);
    if (f->copies_n == COPIES_MAX) fail_here("%s: more than %d copies under way", site, COPIES_MAX);
    if (valid && mistake_at(SIMT_FAR_COPY, site)) {
        global = (const unsigned char *)global + 16;
        here.mistaken++;
    }
    const struct copy c = {shared, global, valid, f->group};
    f->copies[f->copies_n++] = c;
    if (here.config.order == SIMT_FORWARD)
        arrive(&c);
    else
        memset(shared, 0xff, 16);
}

void kern_copy_commit(void) { here.run->now->group++; }

void simt_copy_wait(const char *site, int n)
{
    struct fiber *f = here.run->now;
    unsigned left = 0;
    const unsigned less = mistake_at(SIMT_WAIT_LESS, site);
    for (unsigned i = 0; i < f->copies_n; i++) {
        const struct copy c = f->copies[i];
        const bool stays = c.group + (unsigned)n + less >= f->group;
        if (stays && c.group + (unsigned)n < f->group) here.mistaken++;
        if (stays)
            f->copies[left++] = c;
        else if (here.config.order != SIMT_FORWARD)
            arrive(&c);
    }
    f->copies_n = left;
}

uint4 simt_load_16(const char *site, const void *at)
{
    uint4 v;
    if ((uintptr_t)at % sizeof v) fail_here("%s: a load of 16 bytes that is not aligned to them", site);
    memcpy(&v, at, sizeof v);
    return v;
}

float simt_atomic_add_float(float *at, float v)
{
    const float old = *at;
    *at = old + v;
    return old;
}

unsigned simt_atomic_add_unsigned(unsigned *at, unsigned v)
{
    const unsigned old = *at;
    *at = old + v;
    return old;
}

unsigned atomicXor(unsigned *at, unsigned v)
{
    const unsigned old = *at;
    *at = old ^ v;
    return old;
}

int simt_atomic_add_int(int *at, int v)
{
    const int old = *at;
    *at = old + v;
    return old;
}

uint32_t kern_scale_bf16(uint32_t pair, uint32_t by)
{
    return kern_pair_bf16(bf16_of(pair, 0) * bf16_of(by, 0), bf16_of(pair, 1) * bf16_of(by, 1));
}

uint32_t kern_pair_bf16(float low, float high) { return kern_bf16_from(low) | (uint32_t)kern_bf16_from(high) << 16; }

/* -- blocks -- */

/* The lowest, or highest, thread of [from, to) that is ready; THREADS_MAX: none. */
static unsigned find_ready(const struct run *r, unsigned from, unsigned to, bool highest)
{
    unsigned found = THREADS_MAX;
    for (unsigned w = from / WORD; w * WORD < to && (highest || found == THREADS_MAX); w++) {
        uint64_t bits = r->ready[w];
        if (w == from / WORD) bits &= ~UINT64_C(0) << from % WORD;
        if (to - w * WORD < WORD) bits &= (UINT64_C(1) << (to - w * WORD)) - 1;
        if (bits) found = w * WORD + (unsigned)(highest ? WORD - 1 - __builtin_clzll(bits) : __builtin_ctzll(bits));
    }
    return found;
}

/* The fiber that runs next, NULL: none can. One end always first, so that a warp gets as far ahead of the others as its
 * barriers let it. */
static struct fiber *choose(struct run *r)
{
    const bool down = here.config.order == SIMT_BACKWARD;
    if (here.config.order == SIMT_SHUFFLED && draw(SIMT_LANES) == 0) r->first = (unsigned)draw(r->threads);
    unsigned at = down ? find_ready(r, 0, r->first, true) : find_ready(r, r->first, r->threads, false);
    if (at == THREADS_MAX) at = down ? find_ready(r, r->first, r->threads, true) : find_ready(r, 0, r->first, false);
    return at == THREADS_MAX ? NULL : r->fibers + at;
}

static void say_stuck(const struct run *r)
{
    for (unsigned i = 0; i < r->threads; i++)
        if (r->fibers[i].state == AT_BARRIER || r->fibers[i].state == AT_WARP) {
            fail_launch("%s: thread %u waits for ever%s", r->fibers[i].site, i,
                        r->fibers[i].state == AT_WARP ? " for lanes of its warp"
                        : r->ended                    ? " for threads that have ended"
                                                      : " for threads that wait elsewhere");
            return;
        }
}

static void check_guard(const struct run *r)
{
    const size_t end = r->shared_bytes + GUARD_BYTES;
    for (size_t i = r->shared_bytes; i < end; i++)
        if (r->shared[i] != GUARD) {
            fail_launch("%s: shared memory written %zu bytes beyond its end", r->name, i - r->shared_bytes);
            return;
        }
}

static void run_block(struct run *r, struct simt_dim block, struct simt_dim grid, unsigned threads)
{
    memset(r->shared, 0xff, r->shared_bytes);
    if (GUARD_BYTES) memset(r->shared + r->shared_bytes, GUARD, GUARD_BYTES);
    r->ended = r->arrived = r->first = 0;
    for (unsigned i = 0; i < threads; i++) {
        struct fiber *f = r->fibers + i;
        f->place = (struct simt_place){{i, 0, 0}, block, {threads, 1, 1}, grid};
        set_state(f, READY);
        f->copies_n = f->group = 0;
        context_make(&f->context, f->stack, STACK_BYTES, entry);
    }
    while (!r->failed && r->ended < threads) {
        if (!here.config.strict && r->arrived && r->arrived + r->ended == threads) open_barrier(r);
        struct fiber *f = choose(r);
        if (!f) {
            say_stuck(r);
            break;
        }
        to_fiber(r, f);
    }
    if (!r->failed) check_guard(r);
}

/* Where a block is in the order: a permutation of n that needs no memory, stepping by a number prime to it. */
static uint64_t block_at(uint64_t i, uint64_t n, uint64_t start, uint64_t step)
{
    return here.config.order == SIMT_FORWARD    ? i
           : here.config.order == SIMT_BACKWARD ? n - 1 - i
                                                : (start + i * step) % n;
}

static uint64_t common(uint64_t a, uint64_t b) { return b ? common(b, a % b) : a; }

static void run_grid(struct run *r, struct simt_dim grid, unsigned threads)
{
    const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
    uint64_t step = 1, start = 0;
    if (here.config.order == SIMT_SHUFFLED) {
        start = draw(n);
        do step = 1 + draw(n);
        while (common(step, n) != 1);
    }
    for (uint64_t i = 0; i < n && !r->failed; i++) {
        const uint64_t at = block_at(i, n, start, step);
        const struct simt_dim block = {(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                                       (unsigned)(at / grid.x / grid.y)};
        run_block(r, block, grid, threads);
    }
}

void simt_launch(const char *name, void (*kernel)(const void *), const void *arg, unsigned grid_x, unsigned grid_y,
                 unsigned grid_z, unsigned threads, unsigned threads_max, size_t shared_bytes)
{
    struct run r = {.name = name, .kernel = kernel, .arg = arg, .threads = threads, .shared_bytes = shared_bytes};
    void *stacks = NULL, *shared = NULL;
    if (here.failed) return;
    if (!grid_x || !grid_y || !grid_z || grid_x > 0x7fffffffu || grid_y > 65535 || grid_z > 65535) {
        fail_launch("%s: a grid of %u x %u x %u blocks", name, grid_x, grid_y, grid_z);
        return;
    }
    if (!threads || threads > threads_max || threads > THREADS_MAX) {
        fail_launch("%s: blocks of %u threads, %u at most", name, threads, threads_max);
        return;
    }
    if (shared_bytes > SHARED_MAX) {
        fail_launch("%s: %zu bytes of shared memory, %d at most", name, shared_bytes, SHARED_MAX);
        return;
    }
    if (shared_bytes >= 4 && mistake_at(SIMT_LESS_SHARED, name)) {
        r.shared_bytes = shared_bytes -= 4;
        here.mistaken++;
    }
    r.fibers = calloc(threads, sizeof *r.fibers);
    if (!r.fibers || posix_memalign(&stacks, 64, (size_t)threads * STACK_BYTES) ||
        posix_memalign(&shared, 128, shared_bytes + GUARD_BYTES ? shared_bytes + GUARD_BYTES : 1)) {
        fail_launch("%s: no memory for %u threads", name, threads);
    } else {
        for (unsigned i = 0; i < threads; i++) r.fibers[i].stack = (char *)stacks + (size_t)i * STACK_BYTES;
        r.shared = shared;
        here.run = &r;
        run_grid(&r, (struct simt_dim){grid_x, grid_y, grid_z}, threads);
        here.run = NULL;
    }
    free(shared);
    free(stacks);
    free(r.fibers);
}
