#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "probe/worker/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 256, GUARD = 64, LINE = 64, GUARD_BYTE = 0x5c, BLOCKS_LEAST = 64, POISON = 0xaa };

static const double CHECK_COST = 2e7; /* multiply-adds of the reference, about a tenth of a second */
static const double DEAR_COST = 6e7;  /* those of the blocks that are compared at least, where three are not more */
enum { DEAR_LEAST = 3 };              /* the first, the last, and one between them: of an MLP each is a whole token */

/* -- memory -- */

static size_t room_of(size_t bytes) { return (bytes + GUARD + ALIGN - 1) / ALIGN * ALIGN; }
static size_t bytes_of(const struct kern_buffer *b) { return b->elements * kern_type_bytes(b->type); }

/* Memory of the place. What fails is found by place_wait. */
static void set(const struct work *w, void *at, int byte, size_t n)
{
    if (w->spec.place)
        w->spec.place->code->set(w->spec.place, at, byte, n);
    else
        memset(at, byte, n);
}

static void copy(const struct work *w, void *to, const void *from, size_t n)
{
    if (w->spec.place)
        w->spec.place->code->copy(w->spec.place, to, from, n);
    else
        memcpy(to, from, n);
}

static const char *wait_for(const struct work *w, char *text, size_t cap)
{
    const char *why = w->spec.place ? w->spec.place->code->wait(w->spec.place) : NULL;
    if (!why) return NULL;
    (void)snprintf(text, cap, "%s", why);
    return text;
}

bool work_rotates(const struct work *w, size_t b)
{
    return w->buffer[b].role != KERN_SCRATCH && !(w->spec.variant->packed_inputs >> b & 1u);
}

/* The scratch of a kernel is for its code on a CPU. */
static bool is_here(const struct work *w, size_t b) { return !(w->spec.place && w->buffer[b].role == KERN_SCRATCH); }

static unsigned threads_of(const struct work *w) { return w->spec.team ? team_size(w->spec.team) : 1; }

/* How many of a buffer a copy has: scratch as many as there are threads, but what they have together. */
static unsigned pieces_of(const struct work *w, size_t b)
{
    return w->split && w->buffer[b].role == KERN_SCRATCH && !(w->split->shared >> b & 1u) ? threads_of(w) : 1;
}

static double cache_of(const struct work *w, const struct kern_machine *m)
{
    return w->spec.cache_bytes > 0 ? w->spec.cache_bytes : m->cache_bytes[2];
}

/* What the first copy takes on each device, and each further one. */
struct rooms {
    double first[KERN_DEVICES_MAX], further[KERN_DEVICES_MAX];
};

static unsigned device_of(const struct work *w, size_t b)
{
    return w->spec.kernel->device ? w->spec.kernel->device(b) : 0;
}

static bool can_flush(const struct work *w)
{
    struct kern_counts c;
    if (!w->spec.cold || !w->spec.flush || w->spec.place) return false;
    w->spec.kernel->counts(&w->spec.shape, &c);
    return threads_of(w) == 1 || c.written_bytes * WORK_WRITTEN_PART <= c.read_bytes;
}

static double lines_of(size_t bytes) { return (double)((bytes + LINE - 1) / LINE * LINE); }

static void size_up(struct work *w, const struct kern_machine *m, struct rooms *r)
{
    *r = (struct rooms){.first = {(double)room_of(w->packed_bytes) + (double)room_of(w->scratch_bytes)}};
    r->further[0] = w->packed_bytes ? r->first[0] : 0;
    if (w->room_bytes) r->first[0] += (double)room_of(w->room_bytes);
    double lines_bytes = lines_of(w->packed_bytes); /* that a call brings into a cache, whole ones */
    w->footprint_bytes = (double)w->packed_bytes;
    w->devices = 1;
    for (size_t b = 0; b < w->buffers_n; b++) {
        const double room = (double)room_of(bytes_of(&w->buffer[b]));
        const unsigned device = device_of(w, b);
        if (!is_here(w, b)) continue;
        if (device >= w->devices) w->devices = device + 1;
        r->first[device] += room * pieces_of(w, b);
        if (!work_rotates(w, b)) continue;
        r->further[device] += room;
        w->footprint_bytes += (double)bytes_of(&w->buffer[b]);
        lines_bytes += lines_of(bytes_of(&w->buffer[b]));
    }
    const double cache = cache_of(w, m) > 0 ? cache_of(w, m) : 0x1p26;
    w->footprint_bytes /= (double)w->devices; /* each has its own cache */
    w->flushes = can_flush(w);
    const double rotated_bytes =
        w->flushes ? WORK_FLUSHED_BYTES * (double)threads_of(w) : WORK_COLD_CACHES * cache * (double)w->devices;
    w->copies = w->spec.cold ? (size_t)ceil(rotated_bytes / lines_bytes) : 1;
    if (w->copies < 1) w->copies = 1;
}

/* n bytes of the mapping, a guard behind them. */
static void *take(const struct work *w, char **at, size_t n)
{
    char *p = *at;
    set(w, p + n, GUARD_BYTE, GUARD);
    *at += room_of(n);
    return p;
}

static void meet(void *team) { team_meet(team, NULL, NULL); }

/* The parts of each copy; scratch of their own is that of all copies. */
static void lay_out_parts(struct work *w, char **at)
{
    const unsigned n = threads_of(w);
    w->room = w->room_bytes ? take(w, at, w->room_bytes) : NULL;
    for (unsigned i = 0; i < n; i++)
        for (size_t k = 0; k < w->copies; k++) {
            struct kern_part *p = &w->parts[k * n + i];
            *p = (struct kern_part){.shape = w->spec.shape, .call = w->calls[k]};
            for (size_t b = 0; b < w->buffers_n && i > 0; b++)
                if (pieces_of(w, b) > 1)
                    p->call.buffer[b] = k == 0 ? take(w, at, bytes_of(&w->buffer[b])) : w->parts[i].call.buffer[b];
            p->call.shape = &p->shape;
            p->call.meet = meet;
            p->call.team = w->spec.team;
            w->split->part(i, n, w->room, p);
        }
}

static void lay_out(struct work *w, const struct kern_machine *m)
{
    char *on[KERN_DEVICES_MAX], *at;
    memcpy(on, w->memory, sizeof on);
    void *const scratch = w->scratch_bytes ? take(w, &on[0], w->scratch_bytes) : NULL;
    void *const stream = w->spec.place ? w->spec.place->stream : NULL;
    for (size_t i = 0; i < w->copies; i++) {
        struct kern_call *c = &w->calls[i];
        *c = (struct kern_call){.shape = &w->spec.shape, .machine = m, .scratch = scratch, .stream = stream};
        for (size_t b = 0; b < w->buffers_n; b++)
            c->buffer[b] = !is_here(w, b)                 ? NULL
                           : i == 0 || work_rotates(w, b) ? take(w, &on[device_of(w, b)], bytes_of(&w->buffer[b]))
                                                          : w->calls[0].buffer[b];
        if (w->packed_bytes) c->packed = take(w, &on[0], w->packed_bytes);
    }
    if (w->split) lay_out_parts(w, &on[0]);
    w->here = w->calls[0];
    at = w->mirror;
    for (size_t b = 0; at && b < w->buffers_n; b++) {
        if (!is_here(w, b)) continue;
        w->here.buffer[b] = at;
        at += room_of(bytes_of(&w->buffer[b]));
    }
    if (at && w->packed_bytes) w->here.packed = at;
}

static bool is_filled(const struct kern_buffer *b) { return b->role == KERN_INPUT || b->role == KERN_STATE; }

/* A buffer of the first copy. */
static void fill_first(struct work *w, size_t b)
{
    const struct kern_buffer *f = &w->buffer[b];
    const uint64_t seed = kern_hash(w->spec.seed, b);
    if (f->sd > 0)
        kern_fill_normal(w->here.buffer[b], f->type, f->elements, f->sd, seed);
    else
        w->spec.kernel->fill(&w->here, b, seed, w->here.buffer[b]);
    if (w->mirror) copy(w, w->calls[0].buffer[b], w->here.buffer[b], bytes_of(f));
}

void work_renew(struct work *w)
{
    for (size_t b = 0; b < w->buffers_n; b++)
        if (w->buffer[b].role == KERN_STATE) fill_first(w, b);
}

static void fill(struct work *w)
{
    struct kern_call *c = &w->calls[0], *here = &w->here;
    for (size_t b = 0; b < w->buffers_n; b++)
        if (is_filled(&w->buffer[b])) fill_first(w, b);
    if (w->split && w->split->prepare) w->split->prepare(here, w->room);
    if (w->packed_bytes) w->spec.variant->pack(here);
    if (w->packed_bytes && w->mirror) copy(w, c->packed, here->packed, w->packed_bytes);
    for (size_t i = 1; i < w->copies; i++) {
        for (size_t b = 0; b < w->buffers_n; b++) {
            if (!work_rotates(w, b)) continue;
            if (w->buffer[b].role == KERN_OUTPUT)
                set(w, w->calls[i].buffer[b], 0, bytes_of(&w->buffer[b])); /* a page that is there */
            else
                copy(w, w->calls[i].buffer[b], c->buffer[b], bytes_of(&w->buffer[b]));
        }
        if (w->packed_bytes) copy(w, w->calls[i].packed, c->packed, w->packed_bytes);
    }
}

/* -- what is compared -- */

static bool is_result(const struct kern_buffer *b) { return b->role == KERN_OUTPUT || b->role == KERN_STATE; }

static size_t blocks_of(const struct work *w, size_t b)
{
    const struct kern_buffer *f = &w->buffer[b];
    const size_t all = f->elements / f->granule;
    const double cost = fmax(w->spec.kernel->reference_cost(&w->spec.shape, b), (double)f->granule * 4);
    const double least = fmax(DEAR_LEAST, fmin(BLOCKS_LEAST, DEAR_COST / cost)), most = fmax(least, CHECK_COST / cost);
    return (double)all <= most ? all : (size_t)most;
}

static bool plan_check(struct work *w)
{
    size_t values = 0;
    w->blocks_n = 0;
    for (size_t b = 0; b < w->buffers_n; b++) {
        if (!is_result(&w->buffer[b])) continue;
        w->changes = w->changes || w->buffer[b].role == KERN_STATE;
        w->blocks_n += blocks_of(w, b);
        values += blocks_of(w, b) * w->buffer[b].granule;
    }
    w->blocks = calloc(w->blocks_n + 1, sizeof *w->blocks);
    w->values = calloc(values + 1, sizeof *w->values);
    if (!w->blocks || !w->values) return false;
    double *value = w->values;
    for (size_t b = 0, at = 0; b < w->buffers_n; b++) {
        if (!is_result(&w->buffer[b])) continue;
        const size_t granule = w->buffer[b].granule, all = w->buffer[b].elements / granule, n = blocks_of(w, b);
        for (size_t i = 0; i < n; i++, at++, value += granule) {
            /* the first, the last, and one at random of each of n - 2 equal parts */
            const size_t part = all / n;
            size_t block = n == all ? i : i * part + kern_hash(w->spec.seed ^ 0xb10c, at) % part;
            if (n < all && i == 0) block = 0;
            if (n < all && i == n - 1) block = all - 1;
            w->spec.kernel->reference(&w->here, b, block, value);
            w->blocks[at] = (struct work_block){b, block, granule, value};
        }
    }
    return true;
}

void spare_close(struct spare *s)
{
    if (s->at) (void)munmap(s->at, s->bytes);
    *s = (struct spare){.at = NULL};
}

/* In the spare memory where that is large enough, unless it is much larger and others need it more. */
static char *map_here(struct spare *s, size_t *bytes)
{
    enum { MUCH = 8 };
    if (s && s->at && *bytes <= s->bytes && s->bytes / MUCH <= *bytes) {
        char *const at = s->at;
        *bytes = s->bytes;
        s->at = NULL;
        return at;
    }
    if (s && s->bytes < *bytes) spare_close(s); /* what is given back will be larger */
    void *map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return NULL;
    (void)madvise(map, *bytes, MADV_HUGEPAGE);
    return map;
}

static void give_back(struct spare *s, char *at, size_t bytes)
{
    if (!s || (s->at && s->bytes >= bytes)) {
        (void)munmap(at, bytes);
        return;
    }
    spare_close(s);
    *s = (struct spare){at, bytes};
}

static bool take_all(struct work *w)
{
    struct place *const p = w->spec.place;
    for (size_t i = 0; i < w->devices; i++) {
        w->memory[i] =
            p ? p->code->take(p, (unsigned)i, w->memory_bytes[i]) : map_here(w->spec.spare, &w->memory_bytes[i]);
        if (!w->memory[i]) return false;
    }
    return true;
}

const char *work_open(const struct work_spec *spec, const struct kern_machine *m, double memory_bytes, struct work *out,
                      char *text, size_t cap)
{
    struct work w = {.spec = *spec};
    struct rooms rooms;
    double first = 0, most = 0;
    const char *why = kern_shape_check(spec->kernel, &spec->shape, text, cap);
    if (why) return why;
    if (!(spec->variant->dtypes & KERN_HAS(spec->shape.dtype))) why = "not in this format";
    if (!why && spec->variant->lacks) why = spec->variant->lacks(m, &spec->shape);
    w.split = spec->team ? kern_split_find(spec->kernel) : NULL;
    if (!why && spec->team && (!w.split || spec->variant->library)) why = WORK_ONE_THREAD;
    if (why) {
        (void)snprintf(text, cap, "%s", why);
        return text;
    }
    w.buffers_n = spec->kernel->buffers(&spec->shape, w.buffer);
    if (spec->variant->pack_bytes) w.packed_bytes = spec->variant->pack_bytes(&spec->shape);
    if (w.split && w.split->room) w.room_bytes = w.split->room(&spec->shape, threads_of(&w));
    if (spec->variant->scratch_bytes) w.scratch_bytes = spec->variant->scratch_bytes(&spec->shape, m);
    size_up(&w, m, &rooms);
    if (spec->cold && spec->kernel->ceiling == KERN_CEILING_LAUNCH) {
        (void)snprintf(text, cap, "it reads no operands: it is never cold");
        return text;
    }
    if (!spec->cold && cache_of(&w, m) > 0 && w.footprint_bytes > cache_of(&w, m)) {
        (void)snprintf(text, cap, "its operands are larger than the last-level cache: it is never hot");
        return text;
    }
    for (size_t i = 0; i < w.devices; i++) {
        const double bytes = rooms.first[i] + (double)(w.copies - 1) * rooms.further[i];
        most = fmax(most, bytes);
        first += rooms.first[i];
        if (!spec->place)
            most += (double)w.copies * (double)(sizeof *w.calls + (w.split ? threads_of(&w) * sizeof *w.parts : 0));
        if (bytes <= memory_bytes) w.memory_bytes[i] = (size_t)bytes + ALIGN;
    }
    if (!(most <= memory_bytes)) {
        (void)snprintf(text, cap, "it takes %.0f MB, of which %.0f are free for it", most / 1e6, memory_bytes / 1e6);
        return text;
    }
    w.calls = calloc(w.copies, sizeof *w.calls);
    if (w.split) w.parts = calloc(w.copies * threads_of(&w), sizeof *w.parts);
    if (spec->place) {
        w.mirror_bytes = (size_t)first + ALIGN;
        w.mirror = map_here(NULL, &w.mirror_bytes);
    }
    *out = w; /* calls point at the shape in it */
    if (out->calls && (out->parts || !out->split) && (out->mirror || !spec->place) && take_all(out)) {
        lay_out(out, m);
        fill(out);
        why = wait_for(out, text, cap);
        if (!why && plan_check(out)) return NULL;
    }
    work_close(out);
    if (!why) (void)snprintf(text, cap, "no memory");
    return text;
}

void work_close(struct work *w)
{
    if (w->mirror) (void)munmap(w->mirror, w->mirror_bytes);
    for (size_t i = 0; i < w->devices; i++) {
        if (w->memory[i] && w->spec.place)
            w->spec.place->code->give(w->spec.place, w->memory[i]);
        else if (w->memory[i])
            give_back(w->spec.spare, w->memory[i], w->memory_bytes[i]);
    }
    free(w->calls);
    free(w->parts);
    free(w->blocks);
    free(w->values);
    *w = (struct work){.calls = NULL};
}

/* -- the check -- */

static bool has_nan(enum kern_type type)
{
    return type == KERN_TYPE_F32 || type == KERN_TYPE_BF16 || type == KERN_TYPE_FP16;
}

static const char *check_guards(const struct work *w, char *text, size_t cap)
{
    char guard[GUARD], found[GUARD];
    memset(guard, GUARD_BYTE, sizeof guard);
    for (size_t i = 0; i < w->copies; i++)
        for (size_t b = 0; b < w->buffers_n; b++) {
            if (!is_here(w, b)) continue;
            copy(w, found, (const char *)w->calls[i].buffer[b] + bytes_of(&w->buffer[b]), GUARD);
            bool whole = memcmp(found, guard, GUARD) == 0;
            for (unsigned p = 1; p < pieces_of(w, b) && whole; p++)
                whole = memcmp((const char *)w->parts[p].call.buffer[b] + bytes_of(&w->buffer[b]), guard, GUARD) == 0;
            if (whole) continue;
            (void)snprintf(text, cap, "it wrote beyond the end of %s", w->buffer[b].name);
            return text;
        }
    return NULL;
}

/* What a copy holds, where it can be read. */
static const struct kern_call *look_at(struct work *w, size_t i)
{
    if (!w->mirror) return &w->calls[i];
    for (size_t b = 0; b < w->buffers_n; b++)
        if (is_result(&w->buffer[b])) copy(w, w->here.buffer[b], w->calls[i].buffer[b], bytes_of(&w->buffer[b]));
    return &w->here;
}

/* Largest distance over the buffers of one copy. */
static double distance(const struct work *w, const struct kern_call *c, size_t *checked)
{
    double worst = 0;
    *checked = 0;
    for (size_t b = 0; b < w->buffers_n; b++) {
        double off = 0, norm = 0;
        for (size_t i = 0; i < w->blocks_n; i++) {
            const struct work_block *k = &w->blocks[i];
            for (size_t j = 0; k->b == b && j < k->granule; j++) {
                const double got = kern_read(c->buffer[b], w->buffer[b].type, k->block * k->granule + j);
                off += (got - k->value[j]) * (got - k->value[j]);
                norm += k->value[j] * k->value[j];
                (*checked)++;
            }
        }
        const double d = norm > 0 ? sqrt(off / norm) : off > 0 ? (double)INFINITY : off; /* NAN stays */
        worst = isnan(d) ? (double)INFINITY : fmax(worst, d);
    }
    return worst;
}

/* Every element of an output was written, compared or not. */
static const char *check_written(const struct work *w, const struct kern_call *c, char *text, size_t cap)
{
    for (size_t b = 0; b < w->buffers_n; b++) {
        const struct kern_buffer *f = &w->buffer[b];
        if (!is_result(f) || !has_nan(f->type)) continue;
        for (size_t i = 0; i < f->elements; i++) {
            if (!isnan(kern_read(c->buffer[b], f->type, i))) continue;
            (void)snprintf(text, cap, "element %zu of %s is no number", i, f->name);
            return text;
        }
    }
    return NULL;
}

const char *work_check(struct work *w, double *error_frac, size_t *checked, char *text, size_t cap)
{
    for (size_t b = 0; b < w->buffers_n; b++)
        if ((w->buffer[b].role == KERN_OUTPUT || w->buffer[b].role == KERN_SCRATCH) && is_here(w, b))
            for (unsigned p = 0; p < pieces_of(w, b); p++)
                set(w, p ? w->parts[p].call.buffer[b] : w->calls[0].buffer[b],
                    has_nan(w->buffer[b].type) ? 0xff : POISON, bytes_of(&w->buffer[b]));
    if (w->scratch_bytes) set(w, w->calls[0].scratch, 0xff, w->scratch_bytes);
    work_call(w, 0);
    const char *why = wait_for(w, text, cap);
    if (why) return why;
    const struct kern_call *c = look_at(w, 0);
    *error_frac = distance(w, c, checked);
    why = check_guards(w, text, cap);
    if (!why) why = check_written(w, c, text, cap);
    if (why || *error_frac <= w->spec.kernel->tolerance(&w->spec.shape)) return why;
    (void)snprintf(text, cap, "off by %.2e of the reference, wanted %.0e", *error_frac,
                   w->spec.kernel->tolerance(&w->spec.shape));
    return text;
}

const char *work_check_again(struct work *w, char *text, size_t cap)
{
    size_t checked;
    const char *why = wait_for(w, text, cap);
    if (!why) why = check_guards(w, text, cap);
    if (why || w->changes) return why;
    const double off = distance(w, look_at(w, w->last), &checked);
    if (off <= w->spec.kernel->tolerance(&w->spec.shape)) return NULL;
    (void)snprintf(text, cap, "after the timing it is off by %.2e of the reference", off);
    return text;
}
