#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "probe/wire_field.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const OUTCOMES[WIRE_OUTCOMES_N] = {
    [WIRE_MEASURED] = "measured", [WIRE_WRONG] = "wrong", [WIRE_REFUSED] = "refused", [WIRE_COUNTED] = "counted"};

const char *wire_outcome_name(enum wire_outcome outcome) { return OUTCOMES[outcome]; }

bool wire_shape_get(const struct wire_shape *s, const char *name, int64_t *out)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->arg[i].name, name) == 0) {
            *out = s->arg[i].value;
            return true;
        }
    return false;
}

bool wire_list_has(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, ",");
        if (n == len && strncmp(p, word, n) == 0) return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* -- the frame -- */

/* The text of a value as it stands, checked. */
static enum err_code get_raw(struct json_scan *s, void *at)
{
    if (json_scan_peek(s) != '{') return json_scan_want(s, "an object");
    const size_t from = s->at;
    TRY(json_scan_skip(s));
    const char *copy = arena_strndup(s->arena, s->text + from, s->at - from);
    if (!copy) return err_nomem(s->err);
    *(const char **)at = copy;
    return ERR_OK;
}

/* An object of texts, written anew from clean ones. */
static enum err_code get_texts(struct json_scan *s, void *at)
{
    struct json_text key;
    struct out *o;
    bool more, any = false;
    TRY(json_scan_object(s));
    TRY(out_memory(s->arena, &o, s->err));
    out_char(o, '{');
    for (;; any = true) {
        const char *text;
        TRY(json_scan_member(s, &key, &more));
        if (!more) break;
        for (size_t i = 0; i < key.len; i++)
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", key.s[i]) || !key.s[i])
                return json_scan_want(s, "a name of small letters, before this");
        TRY(wire_get_text(s, &text));
        out_printf(o, "%s\"%.*s\":", any ? "," : "", (int)key.len, key.s);
        wire_write_text(o, text);
    }
    out_char(o, '}');
    *(const char **)at = out_text(o, NULL);
    return *(const char **)at ? ERR_OK : err_nomem(s->err);
}

/* The whole line once for its grammar and doubled members, then twice by key: what it is, and what that has. */
static enum err_code open_line(struct arena *a, const char *line, size_t len, struct json_scan *out, struct err *e)
{
    if (len > WIRE_LINE_MAX) return err_set(e, ERR_INPUT, "a line of more than %d bytes", WIRE_LINE_MAX);
    *out = json_scan_open(a, "line", line, len, e);
    struct json_scan whole = *out;
    return json_scan_all(&whole);
}

static enum err_code check_version(int64_t version, struct err *e)
{
    if (version == WIRE_VERSION) return ERR_OK;
    return err_set(e, ERR_INPUT, "version %lld of the protocol, wanted %d", (long long)version, WIRE_VERSION);
}

/* What is to be counted: a call without how it is measured. */
static enum err_code read_call(struct json_scan s, struct wire_job *j)
{
    struct wire_field fields[] = {{"kernel", wire_get_text, &j->kernel, true, 0},
                                  {"variant", wire_get_text, &j->variant, true, 0},
                                  {"dtype", wire_get_text, &j->dtype, true, 0},
                                  {"shape", wire_get_shape, &j->shape, true, 0}};
    return wire_fields(&s, fields, COUNT(fields));
}

static enum err_code read_job(struct json_scan s, struct wire_job *j)
{
    struct wire_field fields[] = {
        {"cold", wire_get_bool, &j->cold, true, 0},
        {"keep", wire_get_bool, &j->keep, false, 0},
        {"again", wire_get_bool, &j->again, false, 0},
        {"dram_bytes", wire_get_bool, &j->dram_bytes, false, 0},
        {"seed", wire_get_count, &j->seed, true, 0},
        {"least", wire_get_count, &j->least, true, 0},
        {"noise_frac", wire_get_number, &j->noise_frac, true, 0},
        {"deadline_s", wire_get_number, &j->deadline_s, true, 0},
    };
    TRY(read_call(s, j));
    TRY(wire_fields(&s, fields, COUNT(fields)));
    if (j->least < 2 || j->least > SAMPLE_MAX / 4 || !(j->noise_frac <= 1) || !(j->deadline_s <= 1e5))
        return err_set(s.err, ERR_INPUT, "line: least, noise_frac or deadline_s is out of range");
    return ERR_OK;
}

enum err_code wire_read_request(struct arena *a, const char *line, size_t len, struct wire_request *out, struct err *e)
{
    struct json_scan s;
    struct wire_request r = {.threads = 1};
    const char *what = "";
    int64_t version = 0;
    struct wire_field fields[] = {{"ridge-probe", wire_get_count, &version, true, 0},
                                  {"id", wire_get_count, &r.id, true, 0},
                                  {"do", wire_get_text, &what, true, 0},
                                  {"threads", wire_get_count, &r.threads, false, 0}};
    TRY(open_line(a, line, len, &s, e));
    struct json_scan again = s;
    TRY(wire_fields(&s, fields, COUNT(fields)));
    TRY(check_version(version, e));
    if (r.threads < 1 || r.threads > WIRE_ALL_THREADS) return err_set(e, ERR_INPUT, "line: threads is out of range");
    if (strcmp(what, "measure") == 0) {
        r.ask = WIRE_MEASURE;
        TRY(read_job(again, &r.job));
    } else if (strcmp(what, "count") == 0) {
        r.ask = WIRE_COUNT;
        TRY(read_call(again, &r.job));
    } else if (strcmp(what, "describe") == 0 || strcmp(what, "quit") == 0) {
        r.ask = *what == 'd' ? WIRE_DESCRIBE : WIRE_QUIT;
    } else {
        return err_set(e, ERR_INPUT, "line: do: found \"%.40s\", wanted describe, measure, count or quit", what);
    }
    *out = r;
    return ERR_OK;
}

/* -- lists -- */

struct list {
    void *v;
    size_t n, room, size;
};

static enum err_code grow(struct json_scan *s, struct list *l, size_t most, void **slot)
{
    if (l->n == most) return json_scan_want(s, "a shorter list, before this");
    if (l->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 16;
        void *v = arena_array(s->arena, room, l->size);
        if (!v) return err_nomem(s->err);
        if (l->n) memcpy(v, l->v, l->n * l->size);
        l->v = v;
        l->room = room;
    }
    *slot = (char *)l->v + l->size * l->n++;
    return ERR_OK;
}

static enum err_code read_list(struct json_scan *s, struct list *l, size_t most,
                               enum err_code (*read)(struct json_scan *s, void *at))
{
    void *slot = NULL;
    bool more;
    TRY(json_scan_array(s));
    for (;;) {
        TRY(json_scan_element(s, &more));
        if (!more) return ERR_OK;
        TRY(grow(s, l, most, &slot));
        TRY(read(s, slot));
    }
}

static enum err_code get_time(struct json_scan *s, void *at)
{
    double v;
    TRY(json_scan_number(s, &v));
    if (!(v > 0 && v <= 1e6)) return json_scan_want(s, "seconds, more than none and at most 1e6, before this");
    *(double *)at = v;
    return ERR_OK;
}

static enum err_code get_times(struct json_scan *s, void *at)
{
    struct list *l = at;
    l->size = sizeof(double);
    return read_list(s, l, SAMPLE_MAX, get_time);
}

/* -- results -- */

static enum err_code read_result(struct json_scan s, struct wire_result *r)
{
    const char *outcome = "", *stop = "";
    struct list times = {.n = 0}, discards = {.n = 0};
    r->reason = r->unit = r->conditions = "";
    r->error_frac = r->tolerance_frac = r->flops = r->vector_flops = (double)NAN;
    r->read_bytes = r->written_bytes = r->footprint_bytes = r->piece_bytes = (double)NAN;
    r->dram_read_bytes = r->dram_write_bytes = (double)NAN;
    struct wire_field fields[] = {
        {"outcome", wire_get_text, &outcome, true, 0},
        {"reason", wire_get_text, &r->reason, false, 0},
        {"unit", wire_get_text, &r->unit, false, 0},
        {"stop", wire_get_text, &stop, false, 0},
        {"calls", wire_get_count, &r->calls, false, 0},
        {"copies", wire_get_count, &r->copies, false, 0},
        {"checked", wire_get_count, &r->checked, false, 0},
        {"error_frac", wire_get_number, &r->error_frac, false, 0},
        {"tolerance_frac", wire_get_number, &r->tolerance_frac, false, 0},
        {"flops", wire_get_number, &r->flops, false, 0},
        {"vector_flops", wire_get_number, &r->vector_flops, false, 0},
        {"read_bytes", wire_get_number, &r->read_bytes, false, 0},
        {"written_bytes", wire_get_number, &r->written_bytes, false, 0},
        {"footprint_bytes", wire_get_number, &r->footprint_bytes, false, 0},
        {"piece_bytes", wire_get_number, &r->piece_bytes, false, 0},
        {"dram_read_bytes", wire_get_number, &r->dram_read_bytes, false, 0},
        {"dram_write_bytes", wire_get_number, &r->dram_write_bytes, false, 0},
        {"conditions", get_texts, &r->conditions, false, 0},
        {"times_s", get_times, &times, false, 0},
        {"discards_s", get_times, &discards, false, 0},
    };
    TRY(wire_fields(&s, fields, COUNT(fields)));
    size_t i = 0;
    while (i < WIRE_OUTCOMES_N && strcmp(OUTCOMES[i], outcome) != 0) i++;
    if (i == WIRE_OUTCOMES_N) return err_set(s.err, ERR_INPUT, "line: outcome: found \"%.40s\"", outcome);
    r->outcome = (enum wire_outcome)i;
    r->times_s = times.v;
    r->times_n = times.n;
    r->discards_s = discards.v;
    r->discards_n = discards.n;
    if (*stop && !sample_stop_find(stop, &r->stop))
        return err_set(s.err, ERR_INPUT, "line: stop: found \"%.40s\"", stop);
    if (r->outcome != WIRE_MEASURED && r->outcome != WIRE_COUNTED) return ERR_OK;
    /* a result without its check is none, and one that may be wrong by half is not checked */
    const bool checked =
        r->checked >= 1 && r->error_frac <= r->tolerance_frac && r->tolerance_frac <= WIRE_TOLERANCE_MAX;
    if (r->outcome == WIRE_COUNTED) {
        if (checked && !isnan(r->dram_read_bytes) && !isnan(r->dram_write_bytes)) return ERR_OK;
        return err_set(s.err, ERR_INPUT, "line: counted, but the bytes or the check are missing or contradict it");
    }
    if (!checked || r->times_n + r->discards_n == 0 || r->calls < 1 || !*r->unit || isnan(r->flops) ||
        isnan(r->read_bytes) || isnan(r->written_bytes))
        return err_set(s.err, ERR_INPUT, "line: measured, but times, counts or the check are missing or contradict it");
    return ERR_OK;
}

static enum err_code read_work(struct json_scan s, struct wire_work *w)
{
    w->refused = w->row_kind = w->ceiling = w->unit = "";
    w->flops = w->vector_flops = w->read_bytes = w->written_bytes = w->piece_bytes = (double)NAN;
    struct wire_field fields[] = {{"refused", wire_get_text, &w->refused, false, 0},
                                  {"row_kind", wire_get_text, &w->row_kind, false, 0},
                                  {"ceiling", wire_get_text, &w->ceiling, false, 0},
                                  {"unit", wire_get_text, &w->unit, false, 0},
                                  {"flops", wire_get_number, &w->flops, false, 0},
                                  {"vector_flops", wire_get_number, &w->vector_flops, false, 0},
                                  {"read_bytes", wire_get_number, &w->read_bytes, false, 0},
                                  {"written_bytes", wire_get_number, &w->written_bytes, false, 0},
                                  {"piece_bytes", wire_get_number, &w->piece_bytes, false, 0}};
    return wire_fields(&s, fields, COUNT(fields));
}

/* -- the device -- */

static enum err_code get_arg(struct json_scan *s, void *at)
{
    struct wire_arg *a = at;
    struct wire_field fields[] = {{"name", wire_get_text, &a->name, true, 0},
                                  {"help", wire_get_text, &a->help, true, 0},
                                  {"lo", wire_get_count, &a->lo, true, 0},
                                  {"hi", wire_get_count, &a->hi, true, 0}};
    return wire_fields(s, fields, COUNT(fields));
}

static enum err_code get_point(struct json_scan *s, void *at)
{
    struct wire_point *p = at;
    struct wire_field fields[] = {{"dtype", wire_get_text, &p->dtype, true, 0},
                                  {"shape", wire_get_shape, &p->shape, true, 0},
                                  {"quick", wire_get_bool, &p->quick, true, 0}};
    return wire_fields(s, fields, COUNT(fields));
}

static enum err_code get_variant(struct json_scan *s, void *at)
{
    struct wire_variant *v = at;
    v->lacks = "";
    struct wire_field fields[] = {
        {"name", wire_get_text, &v->name, true, 0},        {"unit", wire_get_text, &v->unit, true, 0},
        {"dtypes", wire_get_text, &v->dtypes, true, 0},    {"lacks", wire_get_text, &v->lacks, false, 0},
        {"library", wire_get_bool, &v->library, false, 0}, {"splits", wire_get_bool, &v->splits, false, 0}};
    return wire_fields(s, fields, COUNT(fields));
}

#define LIST_READER(name, type, reader)                                                                                \
    static enum err_code name(struct json_scan *s, void *at)                                                           \
    {                                                                                                                  \
        struct list *l = at;                                                                                           \
        l->size = sizeof(type);                                                                                        \
        return read_list(s, l, WIRE_LIST_MAX, reader);                                                                 \
    }

LIST_READER(get_args, struct wire_arg, get_arg)
LIST_READER(get_points, struct wire_point, get_point)
LIST_READER(get_variants, struct wire_variant, get_variant)

static enum err_code get_kernel(struct json_scan *s, void *at)
{
    struct wire_kernel *k = at;
    struct list args = {.n = 0}, points = {.n = 0}, variants = {.n = 0};
    k->row_kind = k->ceiling = "";
    struct wire_field fields[] = {{"name", wire_get_text, &k->name, true, 0},
                                  {"summary", wire_get_text, &k->summary, true, 0},
                                  {"row_kind", wire_get_text, &k->row_kind, false, 0},
                                  {"ceiling", wire_get_text, &k->ceiling, false, 0},
                                  {"args", get_args, &args, true, 0},
                                  {"points", get_points, &points, true, 0},
                                  {"variants", get_variants, &variants, true, 0},
                                  {"card", wire_get_bool, &k->card, false, 0}};
    TRY(wire_fields(s, fields, COUNT(fields)));
    k->args = args.v;
    k->args_n = args.n;
    k->points = points.v;
    k->points_n = points.n;
    k->variants = variants.v;
    k->variants_n = variants.n;
    return ERR_OK;
}

LIST_READER(get_kernels, struct wire_kernel, get_kernel)

static enum err_code get_caches(struct json_scan *s, void *at)
{
    struct list l = {.size = sizeof(double)};
    TRY(read_list(s, &l, 3, wire_get_number));
    if (l.n != 3) return json_scan_want(s, "three cache sizes, before this");
    memcpy(at, l.v, 3 * sizeof(double));
    return ERR_OK;
}

static enum err_code read_device(struct json_scan s, struct wire_device *d)
{
    struct list kernels = {.n = 0};
    d->left_out = "";
    d->threads = 1;
    struct wire_field fields[] = {{"name", wire_get_text, &d->name, true, 0},
                                  {"identity", get_raw, &d->identity, true, 0},
                                  {"memory_bytes", wire_get_number, &d->memory_bytes, true, 0},
                                  {"cache_bytes", get_caches, d->cache_bytes, true, 0},
                                  {"left_out", wire_get_text, &d->left_out, false, 0},
                                  {"threads", wire_get_count, &d->threads, false, 0},
                                  {"kernels", get_kernels, &kernels, true, 0}};
    TRY(wire_fields(&s, fields, COUNT(fields)));
    d->kernels = kernels.v;
    d->kernels_n = kernels.n;
    return ERR_OK;
}

enum err_code wire_read_reply(struct arena *a, const char *line, size_t len, struct wire_reply *out, struct err *e)
{
    struct json_scan s;
    struct wire_reply r = {.phase = ""};
    const char *is = "";
    int64_t version = 0;
    struct wire_field fields[] = {{"ridge-probe", wire_get_count, &version, true, 0},
                                  {"id", wire_get_count, &r.id, true, 0},
                                  {"is", wire_get_text, &is, true, 0},
                                  {"phase", wire_get_text, &r.phase, false, 0}};
    TRY(open_line(a, line, len, &s, e));
    struct json_scan again = s;
    TRY(wire_fields(&s, fields, COUNT(fields)));
    TRY(check_version(version, e));
    if (strcmp(is, "device") == 0) {
        r.is = WIRE_IS_DEVICE;
        TRY(read_device(again, &r.device));
    } else if (strcmp(is, "result") == 0) {
        r.is = WIRE_IS_RESULT;
        TRY(read_result(again, &r.result));
    } else if (strcmp(is, "work") == 0) {
        r.is = WIRE_IS_WORK;
        TRY(read_work(again, &r.work));
    } else if (strcmp(is, "progress") == 0) {
        r.is = WIRE_IS_PROGRESS;
    } else {
        return err_set(e, ERR_INPUT, "line: is: found \"%.40s\", wanted device, progress, result or work", is);
    }
    *out = r;
    return ERR_OK;
}

enum err_code wire_read_shape(struct arena *a, const char *text, struct wire_shape *out, struct err *e)
{
    struct json_scan s;
    struct wire_shape shape = {.n = 0};
    TRY(open_line(a, text, strlen(text), &s, e));
    TRY(wire_get_shape(&s, &shape));
    *out = shape;
    return ERR_OK;
}
