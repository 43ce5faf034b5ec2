/* card_time -- time on a card; METHOD.md says why so. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "probe/worker/cuda/card.h"
#include "probe/worker/cuda/group.h"
#include "probe/worker/work.h"

/* A sample is of so many seconds; calls shorter than GRAPH_S are in a graph; calls behind one gate, since the queue of
 * a stream holds about a thousand launches and must not fill up; nodes of a graph. */
static const double SAMPLE_S = 200e-6, GRAPH_S = 20e-6, WARM_S = 50e-3;
enum { CALLS_MAX = 64, NODES_MAX = 2048, WARM_CALLS = 3 };

struct timing {
    struct card *card;
    struct group *group; /* NULL: one card */
    struct work *work;
    size_t next, calls;
    cudaGraphExec_t graph; /* NULL: call by call */
    double enqueue_s;      /* host's time of the last sample, for one call, or for the graph */
    bool late, failed;
};

static double clock_s(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return (double)NAN;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void enqueue(struct timing *t, size_t calls)
{
    struct work *const w = t->work;
    for (size_t i = 0; i < calls; i++) {
        w->last = t->next;
        w->spec.variant->run(&w->calls[t->next]);
        t->next = t->next + 1 == w->copies ? 0 : t->next + 1;
    }
}

/* Seconds of one sample between two events on the card, behind a gate that opens when all is enqueued. */
static double timed(struct timing *t)
{
    struct card *const c = t->card;
    float ms = 0;
    c->turn++;
    bool good = card_gate(c->device_flags, c->turn, c->stream) == cudaSuccess;
    good = cudaEventRecord(c->start, c->stream) == cudaSuccess && good;
    const double before = clock_s();
    if (t->graph)
        good = cudaGraphLaunch(t->graph, c->stream) == cudaSuccess && good;
    else
        enqueue(t, t->calls);
    t->enqueue_s = (clock_s() - before) / (t->graph ? 1 : (double)t->calls);
    good = cudaEventRecord(c->end, c->stream) == cudaSuccess && good;
    *(volatile unsigned *)&c->flags[CARD_OPENED] = c->turn;
    good = cudaEventSynchronize(c->end) == cudaSuccess && good;
    good = good && cudaEventElapsedTime(&ms, c->start, c->end) == cudaSuccess && cudaPeekAtLastError() == cudaSuccess;
    t->late = *(volatile unsigned *)&c->flags[CARD_LATE] == c->turn;
    t->failed = t->failed || !good;
    return (double)ms * 1e-3;
}

/* The same of several cards: each waits at a gate of its own, all open at once, and the one that takes longest counts.
 */
static double timed_together(struct timing *t)
{
    struct card *const c = t->card;
    struct group *const g = t->group;
    const int n = (int)t->work->devices;
    double most = 0;
    bool good = true;
    c->turn++;
    for (int i = 0; i < n; i++) {
        good = cudaSetDevice(i) == cudaSuccess && good;
        good = card_gate(c->device_flags, c->turn, g->stream[i]) == cudaSuccess && good;
        good = cudaEventRecord(g->start[i], g->stream[i]) == cudaSuccess && good;
    }
    const double before = clock_s();
    enqueue(t, t->calls);
    t->enqueue_s = (clock_s() - before) / (double)t->calls;
    for (int i = 0; i < n; i++) {
        good = cudaSetDevice(i) == cudaSuccess && good;
        good = cudaEventRecord(g->end[i], g->stream[i]) == cudaSuccess && good;
    }
    *(volatile unsigned *)&c->flags[CARD_OPENED] = c->turn;
    for (int i = 0; i < n; i++) {
        float ms = 0;
        good = cudaSetDevice(i) == cudaSuccess && good;
        good = cudaEventSynchronize(g->end[i]) == cudaSuccess && good;
        good = good && cudaEventElapsedTime(&ms, g->start[i], g->end[i]) == cudaSuccess;
        most = fmax(most, (double)ms * 1e-3);
    }
    good = cudaSetDevice(0) == cudaSuccess && cudaPeekAtLastError() == cudaSuccess && good;
    t->late = *(volatile unsigned *)&c->flags[CARD_LATE] == c->turn;
    t->failed = t->failed || !good || *g->nccl.failed;
    return most;
}

static double sample(struct timing *t) { return t->group ? timed_together(t) : timed(t); }

/* The calls as one graph; call by call where they cannot be captured. */
static void make_graph(struct timing *t)
{
    cudaGraph_t graph = NULL;
    if (cudaStreamBeginCapture(t->card->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return;
    enqueue(t, t->calls);
    if (cudaStreamEndCapture(t->card->stream, &graph) != cudaSuccess ||
        cudaGraphInstantiate(&t->graph, graph, 0) != cudaSuccess)
        t->graph = NULL;
    if (graph) (void)cudaGraphDestroy(graph);
    if (t->graph) return;
    (void)cudaGetLastError();
    t->calls = t->calls < CALLS_MAX ? t->calls : CALLS_MAX;
}

/* Until the clocks are up; sets how calls are made. *call_s is the time of one. */
static void warm_up(struct timing *t, double most_s, double *call_s)
{
    const double start = clock_s();
    double fastest = (double)INFINITY;
    t->calls = WARM_CALLS;
    for (size_t i = 0; !t->failed && (i < 2 || clock_s() - start < fmin(WARM_S, most_s)); i++) {
        const double s = sample(t) / (double)t->calls;
        if (!t->late) fastest = fmin(fastest, s);
        if (clock_s() - start > most_s) break;
    }
    *call_s = isinf(fastest) ? most_s : fmax(fastest, 1e-7);
    const double fill = ceil(SAMPLE_S / *call_s);
    t->calls = (size_t)fmin(fmax(fill, 1), CALLS_MAX);
    if (t->failed || t->group || *call_s >= GRAPH_S) return;
    /* all copies, so that cold calls go round as far as they would one by one */
    t->calls = (size_t)fmin(fmax(fill, (double)t->work->copies), NODES_MAX);
    make_graph(t);
    if (t->graph) (void)timed(t);
}

/* -- conditions -- */

static size_t put(char *text, size_t n, size_t cap, const char *key, const char *value)
{
    if (n + strlen(key) + strlen(value) + 8 > cap) return n;
    return n + (size_t)snprintf(text + n, cap - n, "%s\"%s\":\"%s\"", n > 1 ? "," : "", key, value);
}

static size_t put_number(char *text, size_t n, size_t cap, const char *key, double value)
{
    char number[32];
    if (isnan(value)) return n;
    (void)snprintf(number, sizeof number, "%.4g", value);
    return put(text, n, cap, key, number);
}

static void describe(const struct timing *t, const struct nvml_state *before, const struct nvml_state *after,
                     char *text, size_t cap)
{
    char reasons[128];
    size_t n = (size_t)snprintf(text, cap, "{");
    n = put(text, n, cap - 2, "started_by", t->graph ? "graph" : "stream");
    n = put_number(text, n, cap - 2, "launch_s", t->enqueue_s);
    n = put_number(text, n, cap - 2, "clock_before_hz", before->processor_hz);
    n = put_number(text, n, cap - 2, "clock_after_hz", after->processor_hz);
    n = put_number(text, n, cap - 2, "memory_clock_hz", after->memory_hz);
    n = put_number(text, n, cap - 2, "power_w", after->power_w);
    n = put_number(text, n, cap - 2, "temperature_c", after->temperature_c);
    if (before->throttle_known && after->throttle_known) {
        (void)nvml_throttle_text(before->throttle | after->throttle, reasons, sizeof reasons);
        n = put(text, n, cap - 2, "throttled_by", *reasons ? reasons : "nothing");
    }
    (void)snprintf(text + n, cap - n, "}");
}

static void sample_all(struct timing t, const struct sample_rule *given, struct work_times *out)
{
    static const size_t EVERY = 16;
    const double start = clock_s();
    struct sample_rule rule = *given;
    struct nvml_state before, after;
    double room[SAMPLE_MAX], call_s;
    size_t decide = rule.least;
    warm_up(&t, rule.deadline_s / 4, &call_s);
    out->calls = t.calls;
    rule.deadline_s = fmin(2.5 * rule.deadline_s, fmax(rule.deadline_s, 2 * (double)rule.least * call_s));
    nvml_read(&t.card->nvml, &before);
    while (out->stop == SAMPLE_GOING && !t.failed) {
        const double each = sample(&t) / (double)t.calls;
        if (t.failed) break;
        if (!t.late)
            out->time_s[out->n++] = each;
        else if (out->discards_n < SAMPLE_MAX)
            out->discard_s[out->discards_n++] = each;
        const double elapsed = clock_s() - start;
        if (out->n < decide && out->n < SAMPLE_MAX && elapsed < rule.deadline_s) continue;
        out->stop = sample_decide(&rule, out->time_s, out->n, elapsed, room);
        decide = out->n + out->n / EVERY + 1;
    }
    nvml_read(&t.card->nvml, &after);
    describe(&t, &before, &after, out->conditions, sizeof out->conditions);
    if (t.graph) (void)cudaGraphExecDestroy(t.graph);
}

void card_time(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out)
{
    sample_all((struct timing){.card = (struct card *)p, .work = w}, rule, out);
}

void group_time(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out)
{
    struct group *const g = (struct group *)p;
    sample_all((struct timing){.card = g->first, .group = g, .work = w}, rule, out);
}
