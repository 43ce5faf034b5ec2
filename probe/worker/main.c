/* ridge-worker-cpu, ridge-worker-cuda -- measure kernels on this processor, on a card for `ridge probe`: requests on
 * standard input, replies on standard output, a line each (probe/METHOD.md). It runs in a process of its own, so that
 * what a kernel does to it costs one measurement. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "calc/base/text.h"
#include "probe/wire.h"
#include "probe/worker/device.h"
#include "probe/worker/flush.h"
#include "probe/worker/work.h"

enum { KEPT_MAX = 16 };

/* Work that may be measured again. */
struct checked {
    struct work work; /* without calls: none */
    double error_frac;
    size_t checked;
};

struct worker {
    struct device device;
    struct checked kept[KEPT_MAX];
    struct checked recent; /* the last one that was not kept */
    size_t turn;           /* whose place the next takes */
    struct spare spare;
    struct work_times times;
};

static void close_all(struct worker *w)
{
    work_close(&w->recent.work);
    for (size_t i = 0; i < KEPT_MAX; i++) work_close(&w->kept[i].work);
    spare_close(&w->spare);
}

static bool reply(struct arena *a, const struct wire_reply *r)
{
    struct out *o;
    size_t n;
    if (out_memory(a, &o, NULL) != ERR_OK) return false;
    wire_write_reply(o, r);
    const char *text = out_text(o, &n);
    return text && fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0;
}

static bool progress(struct arena *a, int64_t id, const char *phase)
{
    return reply(a, &(struct wire_reply){.id = id, .is = WIRE_IS_PROGRESS, .phase = phase});
}

static bool same(const struct work_spec *x, const struct work_spec *y)
{
    if (x->kernel != y->kernel || x->variant != y->variant || x->cold != y->cold || x->seed != y->seed) return false;
    if (x->team != y->team) return false;
    if (x->shape.dtype != y->shape.dtype) return false;
    return memcmp(x->shape.v, y->shape.v, sizeof x->shape.v) == 0;
}

/* Whether work on buffers that x filled can go on with y's code: nothing of them is that code's own. */
static bool alike(const struct work *x, const struct work_spec *y)
{
    const struct kern_variant *u = x->spec.variant, *v = y->variant;
    struct work_spec same_code = *y;
    if (!x->calls || u->pack_bytes || v->pack_bytes || u->scratch_bytes || v->scratch_bytes) return false;
    if (!(v->dtypes & KERN_HAS(y->shape.dtype))) return false;
    same_code.variant = u;
    return u->packed_inputs == v->packed_inputs && same(&x->spec, &same_code);
}

/* Buffers for a job in the place of others: those that are there, with other code, or fresh ones. */
static const char *open_in(struct worker *w, const struct work_spec *spec, struct work *out, char *text, size_t cap)
{
    const struct kern_machine *m = &w->device.machine;
    const bool one = spec->team && (spec->variant->library || !kern_split_find(spec->kernel));
    if (!one && alike(out, spec) && !(spec->variant->lacks && spec->variant->lacks(m, &spec->shape))) {
        out->spec.variant = spec->variant;
        out->call_s = 0;
        work_renew(out);
        return NULL;
    }
    work_close(out);
    const double spare_bytes = w->spare.at ? (double)w->spare.bytes : 0;
    return work_open(spec, m, device_memory_bytes(&w->device) + spare_bytes, out, text, cap);
}

/* What was measured before and may be so again, its buffers as they are; NULL: none. */
static struct checked *find_again(struct worker *w, const struct wire_job *j, const struct work_spec *spec)
{
    if (j->dram_bytes) return NULL;
    if (j->again && w->recent.work.calls && same(&w->recent.work.spec, spec)) return &w->recent;
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (w->kept[i].work.calls && same(&w->kept[i].work.spec, spec)) return &w->kept[i];
    return NULL;
}

static const char *find_spec(struct worker *w, const struct wire_job *j, struct work_spec *out, char *text, size_t cap)
{
    const struct device *d = &w->device;
    *out = (struct work_spec){.cold = j->cold,
                              .seed = (uint64_t)j->seed,
                              .place = d->place,
                              .team = d->team,
                              .cache_bytes = d->team ? d->cache_bytes[2] : 0,
                              .flush = flush_can(),
                              .spare = &w->spare};
    const char *missing = device_missing(d);
    if (missing) return missing;
    for (size_t i = 0; i < d->kernels_n; i++)
        if (strcmp(d->kernels[i]->name, j->kernel) == 0) out->kernel = d->kernels[i];
    if (out->kernel && out->kernel->device) out->place = d->group;
    if (!out->kernel) {
        (void)snprintf(text, cap, "no kernel %.40s", j->kernel);
        return text;
    }
    for (size_t i = 0; i < out->kernel->variants_n; i++)
        if (strcmp(out->kernel->variants[i].name, j->variant) == 0) out->variant = &out->kernel->variants[i];
    if (!out->variant) {
        (void)snprintf(text, cap, "%s has no variant %.40s", j->kernel, j->variant);
        return text;
    }
    return device_shape(out->kernel, &j->shape, j->dtype, &out->shape, text, cap);
}

/* So many threads make the calls from now on; work of others is given up. */
static const char *use_threads(struct worker *w, int64_t threads, char *text, size_t cap)
{
    const struct team *before = w->device.team;
    const int64_t all = w->device.processors, wanted = threads < all ? threads : all;
    if (wanted == w->device.threads) return NULL;
    if (before) close_all(w); /* it calls a team that ends */
    return device_use_threads(&w->device, wanted, text, cap);
}

/* Times work that was checked. */
static void measure(struct worker *w, struct work *work, const struct wire_job *j, struct wire_result *r, char *text,
                    size_t cap)
{
    const struct sample_rule rule = {(size_t)j->least, j->noise_frac, j->deadline_s};
    work_time(work, &rule, &w->times);
    r->stop = w->times.stop;
    r->times_s = w->times.time_s;
    r->times_n = w->times.n;
    r->discards_s = w->times.discard_s;
    r->discards_n = w->times.discards_n;
    r->calls = (int64_t)w->times.calls;
    r->conditions = w->times.conditions;
    const char *wrong = work_check_again(work, text, cap);
    if (!wrong) return;
    r->outcome = WIRE_WRONG;
    r->reason = wrong;
}

/* Counts bytes of work that was checked. */
static void count(struct work *work, struct wire_result *r, char *text, size_t cap)
{
    double bytes[2];
    const char *why = work_count(work, bytes, text, cap);
    r->outcome = why ? WIRE_REFUSED : WIRE_COUNTED;
    r->reason = why ? why : "";
    r->dram_read_bytes = bytes[0];
    r->dram_write_bytes = bytes[1];
    const char *wrong = work_check_again(work, text, cap);
    if (why || !wrong) return;
    r->outcome = WIRE_WRONG;
    r->reason = wrong;
}

static void fill_result(const struct work *work, double error_frac, size_t checked, struct wire_result *r)
{
    struct kern_counts c;
    const struct work_spec *s = &work->spec;
    s->kernel->counts(&s->shape, &c);
    *r = (struct wire_result){.outcome = WIRE_MEASURED,
                              .reason = "",
                              .unit = kern_unit_name(s->variant->unit),
                              .copies = (int64_t)work->copies,
                              .calls = 1,
                              .checked = (int64_t)checked,
                              .error_frac = error_frac,
                              .tolerance_frac = s->kernel->tolerance(&s->shape),
                              .flops = c.flops,
                              .vector_flops = c.vector_flops,
                              .read_bytes = c.read_bytes,
                              .written_bytes = c.written_bytes,
                              .footprint_bytes = work->footprint_bytes,
                              .piece_bytes = s->kernel->piece_bytes ? s->kernel->piece_bytes(&s->shape) : 0,
                              .dram_read_bytes = (double)NAN,
                              .dram_write_bytes = (double)NAN};
}

static bool run_job(struct worker *w, struct arena *a, const struct wire_request *q)
{
    char text[256];
    struct work_spec spec;
    struct wire_reply r = {.id = q->id, .is = WIRE_IS_RESULT, .phase = ""};
    const bool keep = q->job.keep && !q->job.dram_bytes;
    const char *why = use_threads(w, q->threads, text, sizeof text);
    if (!why && w->device.threads != q->threads) {
        (void)snprintf(text, sizeof text, "%lld threads are asked for, and %lld can make a call together",
                       (long long)q->threads, (long long)w->device.threads);
        why = text;
    }
    if (!why) why = find_spec(w, &q->job, &spec, text, sizeof text);
    struct checked *of = why ? NULL : find_again(w, &q->job, &spec);
    if (of) {
        fill_result(&of->work, of->error_frac, of->checked, &r.result);
        measure(w, &of->work, &q->job, &r.result, text, sizeof text);
        return reply(a, &r);
    }
    if (!why && !progress(a, q->id, "fill")) return false;
    /* work is opened where it stays: its calls point at the shape inside it */
    of = keep ? &w->kept[w->turn++ % KEPT_MAX] : &w->recent;
    struct work *work = &of->work;
    if (!why) why = open_in(w, &spec, work, text, sizeof text);
    if (why) {
        r.result = (struct wire_result){.outcome = WIRE_REFUSED, .reason = why};
        return reply(a, &r);
    }
    of->error_frac = (double)NAN;
    of->checked = 0;
    bool alive = progress(a, q->id, "check");
    const char *wrong = alive ? work_check(work, &of->error_frac, &of->checked, text, sizeof text) : NULL;
    fill_result(work, of->error_frac, of->checked, &r.result);
    if (wrong) {
        r.result.outcome = WIRE_WRONG;
        r.result.reason = wrong;
    } else if (alive && q->job.dram_bytes) {
        alive = progress(a, q->id, "count");
        count(work, &r.result, text, sizeof text);
    } else if (alive) {
        alive = progress(a, q->id, "time");
        measure(w, work, &q->job, &r.result, text, sizeof text);
    }
    if (wrong) work_close(work); /* what was wrong may have written into inputs */
    return alive && reply(a, &r);
}

static bool describe(struct worker *w, struct arena *a, const struct wire_request *q)
{
    struct wire_reply r = {.id = q->id, .is = WIRE_IS_DEVICE, .phase = ""};
    struct err e = {.code = ERR_OK};
    char text[256];
    const char *why = use_threads(w, q->threads, text, sizeof text);
    if (device_describe(a, &w->device, &r.device, &e) != ERR_OK) return false;
    if (why) r.device.left_out = why;
    return reply(a, &r);
}

static bool count_work(const struct worker *w, struct arena *a, const struct wire_request *q)
{
    struct wire_reply r = {.id = q->id, .is = WIRE_IS_WORK, .phase = ""};
    char text[256];
    device_count(&w->device, &q->job, &r.work, text, sizeof text);
    return reply(a, &r);
}

/* One request; false ends the worker. */
static bool serve(struct worker *w, const char *line, size_t len)
{
    struct wire_request q;
    struct err e = {.code = ERR_OK};
    struct arena *a = arena_open();
    if (!a) return false;
    bool more = false;
    if (wire_read_request(a, line, len, &q, &e) != ERR_OK)
        (void)fprintf(stderr, "%s: %s\n", device_program(), e.text);
    else if (q.ask == WIRE_DESCRIBE)
        more = describe(w, a, &q);
    else if (q.ask == WIRE_MEASURE)
        more = run_job(w, a, &q);
    else if (q.ask == WIRE_COUNT)
        more = count_work(w, a, &q);
    arena_close(a);
    return more;
}

/* Die with the parent, whose number the command line gives: it may be gone already. */
static bool tie_to_parent(int argc, char **argv)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    return argc < 2 || strtol(argv[1], NULL, 10) == (long)getppid();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) return printf("%s, protocol 1\n", device_program()) < 0;
    if (!tie_to_parent(argc, argv)) return 1;
    struct worker *w = calloc(1, sizeof *w);
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    if (!w) return 1;
    if (!device_open(&w->device)) return 1;
    bool more = true;
    while (more && (n = getline(&line, &room, stdin)) > 0) {
        more = serve(w, line, (size_t)n - (line[n - 1] == '\n'));
        const bool broken =
            (w->device.place && w->device.place->broken) || (w->device.group && w->device.group->broken);
        if (more && broken) (void)execv("/proc/self/exe", argv);
    }
    close_all(w);
    device_close(&w->device);
    free(line);
    free(w);
    return 0;
}
