#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "probe/wire.h"

void wire_write_text(struct out *o, const char *s)
{
    size_t used;
    out_char(o, '"');
    for (size_t n = strlen(s); n; n -= used, s += used) {
        char *room = out_room(o, TEXT_JSON_MAX);
        out_used(o, text_json_char(room, s, n, &used));
    }
    out_char(o, '"');
}

static void member(struct out *o, const char *key)
{
    out_char(o, ',');
    wire_write_text(o, key);
    out_char(o, ':');
}

static void text(struct out *o, const char *key, const char *value)
{
    member(o, key);
    wire_write_text(o, value);
}

static void number(struct out *o, double v)
{
    if (isfinite(v))
        out_used(o, text_real(out_room(o, TEXT_NUMBER_MAX), v));
    else
        out_str(o, "null");
}

static void real(struct out *o, const char *key, double v)
{
    member(o, key);
    number(o, v);
}

static void count(struct out *o, const char *key, int64_t v)
{
    member(o, key);
    out_used(o, text_int(out_room(o, TEXT_NUMBER_MAX), v));
}

static void flag(struct out *o, const char *key, bool v)
{
    member(o, key);
    out_str(o, v ? "true" : "false");
}

static void list(struct out *o, const char *key, const double *v, size_t n)
{
    member(o, key);
    out_char(o, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) out_char(o, ',');
        number(o, v[i]);
    }
    out_char(o, ']');
}

void wire_write_shape(struct out *o, const struct wire_shape *s)
{
    out_char(o, '{');
    for (size_t i = 0; i < s->n; i++) {
        if (i) out_char(o, ',');
        wire_write_text(o, s->arg[i].name);
        out_char(o, ':');
        out_used(o, text_int(out_room(o, TEXT_NUMBER_MAX), s->arg[i].value));
    }
    out_char(o, '}');
}

/* Every line begins {"ridge-probe":1,"id":N. */
static void begin(struct out *o, int64_t id)
{
    out_printf(o, "{\"ridge-probe\":%d", WIRE_VERSION);
    count(o, "id", id);
}

static void end(struct out *o) { out_str(o, "}\n"); }

void wire_write_request(struct out *o, const struct wire_request *r)
{
    static const char *const ASKS[] = {
        [WIRE_DESCRIBE] = "describe", [WIRE_MEASURE] = "measure", [WIRE_COUNT] = "count", [WIRE_QUIT] = "quit"};
    begin(o, r->id);
    text(o, "do", ASKS[r->ask]);
    if (r->threads > 1) count(o, "threads", r->threads);
    const struct wire_job *j = &r->job;
    if (r->ask == WIRE_MEASURE || r->ask == WIRE_COUNT) {
        text(o, "kernel", j->kernel);
        text(o, "variant", j->variant);
        text(o, "dtype", j->dtype);
        member(o, "shape");
        wire_write_shape(o, &j->shape);
    }
    if (r->ask == WIRE_MEASURE) {
        flag(o, "cold", j->cold);
        flag(o, "keep", j->keep);
        if (j->again) flag(o, "again", true);
        if (j->dram_bytes) flag(o, "dram_bytes", true);
        count(o, "seed", j->seed);
        count(o, "least", j->least);
        real(o, "noise_frac", j->noise_frac);
        real(o, "deadline_s", j->deadline_s);
    }
    end(o);
}

/* The separator and the opening brace of element i of a list of objects, then its first member. */
static void element(struct out *o, size_t i, const char *key, const char *value)
{
    out_str(o, i ? ",{" : "{");
    wire_write_text(o, key);
    out_char(o, ':');
    wire_write_text(o, value);
}

static void write_kernel(struct out *o, size_t i, const struct wire_kernel *k)
{
    element(o, i, "name", k->name);
    text(o, "summary", k->summary);
    text(o, "row_kind", k->row_kind);
    text(o, "ceiling", k->ceiling);
    if (k->card) flag(o, "card", true);
    member(o, "args");
    out_char(o, '[');
    for (size_t j = 0; j < k->args_n; j++) {
        element(o, j, "name", k->args[j].name);
        text(o, "help", k->args[j].help);
        count(o, "lo", k->args[j].lo);
        count(o, "hi", k->args[j].hi);
        out_char(o, '}');
    }
    out_char(o, ']');
    member(o, "points");
    out_char(o, '[');
    for (size_t j = 0; j < k->points_n; j++) {
        element(o, j, "dtype", k->points[j].dtype);
        member(o, "shape");
        wire_write_shape(o, &k->points[j].shape);
        flag(o, "quick", k->points[j].quick);
        out_char(o, '}');
    }
    out_char(o, ']');
    member(o, "variants");
    out_char(o, '[');
    for (size_t j = 0; j < k->variants_n; j++) {
        const struct wire_variant *v = &k->variants[j];
        element(o, j, "name", v->name);
        text(o, "unit", v->unit);
        text(o, "dtypes", v->dtypes);
        text(o, "lacks", v->lacks);
        flag(o, "library", v->library);
        if (v->splits) flag(o, "splits", true);
        out_char(o, '}');
    }
    out_str(o, "]}");
}

static void write_device(struct out *o, const struct wire_device *d)
{
    text(o, "name", d->name);
    member(o, "identity");
    out_str(o, d->identity);
    real(o, "memory_bytes", d->memory_bytes);
    list(o, "cache_bytes", d->cache_bytes, 3);
    text(o, "left_out", d->left_out);
    if (d->threads > 1) count(o, "threads", d->threads);
    member(o, "kernels");
    out_char(o, '[');
    for (size_t i = 0; i < d->kernels_n; i++) write_kernel(o, i, &d->kernels[i]);
    out_char(o, ']');
}

static void write_result(struct out *o, const struct wire_result *r)
{
    text(o, "outcome", wire_outcome_name(r->outcome));
    text(o, "reason", r->reason);
    if (r->outcome == WIRE_REFUSED) return;
    text(o, "unit", r->unit);
    text(o, "stop", sample_stop_name(r->stop));
    count(o, "calls", r->calls);
    count(o, "copies", r->copies);
    count(o, "checked", r->checked);
    real(o, "error_frac", r->error_frac);
    real(o, "tolerance_frac", r->tolerance_frac);
    real(o, "flops", r->flops);
    real(o, "vector_flops", r->vector_flops);
    real(o, "read_bytes", r->read_bytes);
    real(o, "written_bytes", r->written_bytes);
    real(o, "footprint_bytes", r->footprint_bytes);
    if (r->piece_bytes > 0) real(o, "piece_bytes", r->piece_bytes);
    if (r->outcome == WIRE_COUNTED) {
        real(o, "dram_read_bytes", r->dram_read_bytes);
        real(o, "dram_write_bytes", r->dram_write_bytes);
    }
    if (r->conditions && *r->conditions) {
        member(o, "conditions");
        out_str(o, r->conditions);
    }
    list(o, "times_s", r->times_s, r->times_n);
    list(o, "discards_s", r->discards_s, r->discards_n);
}

static void write_work(struct out *o, const struct wire_work *w)
{
    text(o, "refused", w->refused);
    if (*w->refused) return;
    text(o, "row_kind", w->row_kind);
    text(o, "ceiling", w->ceiling);
    text(o, "unit", w->unit);
    real(o, "flops", w->flops);
    real(o, "vector_flops", w->vector_flops);
    real(o, "read_bytes", w->read_bytes);
    real(o, "written_bytes", w->written_bytes);
    real(o, "piece_bytes", w->piece_bytes);
}

void wire_write_reply(struct out *o, const struct wire_reply *r)
{
    static const char *const KINDS[] = {[WIRE_IS_DEVICE] = "device",
                                        [WIRE_IS_PROGRESS] = "progress",
                                        [WIRE_IS_RESULT] = "result",
                                        [WIRE_IS_WORK] = "work"};
    begin(o, r->id);
    text(o, "is", KINDS[r->is]);
    if (r->is == WIRE_IS_PROGRESS) text(o, "phase", r->phase);
    if (r->is == WIRE_IS_DEVICE) write_device(o, &r->device);
    if (r->is == WIRE_IS_RESULT) write_result(o, &r->result);
    if (r->is == WIRE_IS_WORK) write_work(o, &r->work);
    end(o);
}
