#define _GNU_SOURCE /* CPU_SET, pthread_setaffinity_np */
#include "probe/worker/team.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

enum { LINE = 64, TURNS_MANY = 1 << 20, TURNS_FEW = 64 };

struct team;

/* What a thread says of a run, in a cache line of its own. */
struct stamp {
    _Alignas(LINE) double start_s, end_s, lost_s;
};

struct member {
    struct team *team;
    unsigned part;
    int processor;
    pthread_t thread;
};

struct team {
    _Alignas(LINE) atomic_uint here; /* that have come to the meeting */
    _Alignas(LINE) atomic_uint met;  /* meetings that are over */
    _Alignas(LINE) unsigned n;
    size_t turns;     /* before a waiting thread sleeps */
    cpu_set_t before; /* where the opener could run */
    struct member *member;
    struct stamp *stamp;
    pthread_mutex_t lock;
    pthread_cond_t go;
    uint64_t run; /* how many were begun; the rest is of the one that goes on */
    bool quit;
    void (*body)(void *closure, unsigned part);
    void *closure;
};

static double clock_s(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0) return (double)NAN;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One that waits long has its processor taken by nobody but where threads share one: then it sleeps. */
static void turn(const struct team *t, size_t *turns)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (++*turns < t->turns) return;
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

void team_meet(struct team *t, void (*last)(void *closure), void *closure)
{
    const unsigned met = atomic_load_explicit(&t->met, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->here, 1, memory_order_acq_rel) + 1 == t->n) {
        if (last) last(closure);
        atomic_store_explicit(&t->here, 0, memory_order_relaxed);
        atomic_store_explicit(&t->met, met + 1, memory_order_release);
        return;
    }
    for (size_t turns = 0; atomic_load_explicit(&t->met, memory_order_acquire) == met;) turn(t, &turns);
}

/* -- processors -- */

/* The first number in a file of /sys, -1 none. */
static int first_number(const char *path)
{
    int v = -1;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%d", &v) != 1) v = -1;
    if (f) (void)fclose(f);
    return v;
}

/* The first processor of those that share a core, or a cache, with one; itself where that is not known. */
static int first_of(int processor, const char *what)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", processor, what);
    const int v = first_number(path);
    return v < 0 ? processor : v;
}

unsigned team_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return (unsigned)CPU_COUNT(&set);
}

/* Of each core one, then the others. */
static void choose(struct team *t)
{
    unsigned n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int p = 0; p < CPU_SETSIZE && n < t->n; p++) {
            if (!CPU_ISSET((size_t)p, &t->before)) continue;
            const int first = first_of(p, "topology/thread_siblings_list");
            const bool other = first != p && first < CPU_SETSIZE && CPU_ISSET((size_t)first, &t->before);
            if (other == (pass == 1)) t->member[n++].processor = p;
        }
    for (unsigned i = n; n && i < t->n; i++) t->member[i].processor = t->member[i % n].processor;
}

/* Which of its caches is of a level and holds data; -1 unknown. */
static int cache_index(int processor, int level)
{
    for (int i = 0; i < 8; i++) {
        char path[128], kind[32] = "";
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", processor, i);
        if (first_number(path) != level) continue;
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", processor, i);
        FILE *f = fopen(path, "r");
        const bool read = f && fscanf(f, "%31s", kind) == 1;
        if (f) (void)fclose(f);
        if (read && strcmp(kind, "Instruction") != 0) return i;
    }
    return -1;
}

unsigned team_caches(const struct team *t, int level)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->n; i++) {
        const int index = cache_index(t->member[i].processor, level);
        char what[64];
        if (index < 0) return 0;
        (void)snprintf(what, sizeof what, "cache/index%d/shared_cpu_list", index);
        const int first = first_of(t->member[i].processor, what);
        bool new = true;
        for (unsigned j = 0; j < i && new; j++) new = first_of(t->member[j].processor, what) != first;
        n += new;
    }
    return n;
}

static bool bind_to(pthread_t thread, int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

/* -- a run -- */

static void take_part(struct team *t, unsigned part)
{
    struct stamp *s = &t->stamp[part];
    const double cpu_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
    team_meet(t, NULL, NULL);
    const double cpu_start_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
    (void)cpu_s; /* the first reading costs more than the next */
    s->start_s = clock_s(CLOCK_MONOTONIC);
    t->body(t->closure, part);
    s->end_s = clock_s(CLOCK_MONOTONIC);
    s->lost_s = s->end_s - s->start_s - (clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu_start_s);
    team_meet(t, NULL, NULL);
}

static void *live(void *argument)
{
    const struct member *m = argument;
    struct team *t = m->team;
    for (uint64_t run = 0;; run++) {
        (void)pthread_mutex_lock(&t->lock);
        while (t->run == run && !t->quit) (void)pthread_cond_wait(&t->go, &t->lock);
        const bool quit = t->quit;
        (void)pthread_mutex_unlock(&t->lock);
        if (quit) return NULL;
        take_part(t, m->part);
    }
}

void team_run(struct team *t, void (*body)(void *closure, unsigned part), void *closure, double *wall_s, double *lost_s)
{
    (void)pthread_mutex_lock(&t->lock);
    t->body = body;
    t->closure = closure;
    t->run++;
    (void)pthread_cond_broadcast(&t->go);
    (void)pthread_mutex_unlock(&t->lock);
    take_part(t, 0);
    double start = (double)INFINITY, end = -(double)INFINITY, lost = 0;
    for (unsigned i = 0; i < t->n; i++) {
        start = fmin(start, t->stamp[i].start_s);
        end = fmax(end, t->stamp[i].end_s);
        lost = fmax(lost, t->stamp[i].lost_s);
    }
    if (wall_s) *wall_s = end - start;
    if (lost_s) *lost_s = lost;
}

/* -- opening -- */

unsigned team_size(const struct team *t) { return t->n; }

/* The first `started` of the threads. */
static void end(struct team *t, unsigned started)
{
    (void)pthread_mutex_lock(&t->lock);
    t->quit = true;
    (void)pthread_cond_broadcast(&t->go);
    (void)pthread_mutex_unlock(&t->lock);
    for (unsigned i = 1; i < started; i++) (void)pthread_join(t->member[i].thread, NULL);
    (void)pthread_setaffinity_np(pthread_self(), sizeof t->before, &t->before);
    (void)pthread_cond_destroy(&t->go);
    (void)pthread_mutex_destroy(&t->lock);
    free(t->member);
    free(t->stamp);
    free(t);
}

struct team *team_open(unsigned n)
{
    if (n < 1) return NULL;
    struct team *t = aligned_alloc(LINE, sizeof *t);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    t->n = n;
    t->turns = n <= team_processors() ? TURNS_MANY : TURNS_FEW;
    t->member = calloc(n, sizeof *t->member);
    t->stamp = aligned_alloc(LINE, n * sizeof *t->stamp);
    if (!t->member || !t->stamp || sched_getaffinity(0, sizeof t->before, &t->before) != 0 ||
        pthread_mutex_init(&t->lock, NULL) != 0 || pthread_cond_init(&t->go, NULL) != 0) {
        free(t->member);
        free(t->stamp);
        free(t);
        return NULL;
    }
    choose(t);
    unsigned started = 1;
    bool good = bind_to(pthread_self(), t->member[0].processor);
    for (; good && started < n; started++) {
        struct member *m = &t->member[started];
        m->team = t;
        m->part = started;
        if (pthread_create(&m->thread, NULL, live, m) != 0) break;
        good = bind_to(m->thread, m->processor);
    }
    if (good && started == n) return t;
    end(t, started);
    return NULL;
}

void team_close(struct team *t)
{
    if (t) end(t, t->n);
}
