#include "calc/fit/calibrated.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/fit/calls.h"
#include "calc/fit/steps.h"

/* Calls whose work one tape gives, a number each: rows of a product, bytes of what is moved, roofline seconds of what
 * nobody measured. */
struct part {
    struct call *call;
    double *value, *touched, *pairs; /* of each call: rows or bytes; of experts (call_value), else 0 */
    double *stream_s; /* of reading from the host what the operators of each call have there; NULL: nothing is there */
    double **column;
    size_t n;
    struct sym_tape *tape;
};

/* Sums over calls. wide_*: of the seconds times what transfers make of a band; p10, p90: of kernels' bands; wait_s:
 * what reading weights from the host takes beyond the calls that do; collectives_s: of s, that of collectives. */
struct sums {
    double s, p10_s, p90_s, wide_low_s, wide_high_s, kernels, launches, wait_s, collectives_s;
};

/* What was summed for one key, so that a sweep sums each number of rows once. */
struct memo {
    double batch, tokens, others; /* batch NAN: free */
    struct sums sums;
};

enum {
    MEMOS = 1 << 14,
    MEMOS_MAX = 1 << 24,
    PROBES = 8,
    NOTES_MAX = 16,
    NOTE_BYTES = 320,
    MIXED = STEP_PHASES,
    PASSES
};

struct phase_calls {
    struct step_pass pass;
    struct part fixed, moving; /* moving: with the context, at the same number of rows; of a mixed pass its parts */
    struct memo *memo;         /* [memos] of fixed; of a mixed pass by sequences and tokens in all */
    const struct steps *steps;
};

struct calibrated {
    struct calibrated_setup setup;
    const struct hw *hw;
    struct phase_calls phase[PASSES]; /* the last of them mixed */
    struct steps_table steps;
    double launch_s;                /* of a kernel launched by itself */
    double widest_low, widest_high; /* of all whole steps measured */
    double *room;                   /* [KERNEL_FEATURES_MAX] */
    const char *note[NOTES_MAX];
    size_t notes_n;
    size_t memos;
};

/* -- opening -- */

/* Of tokens to their experts: what a rank sends, and where that is over nodes no less than as many bytes of the link as
 * the fabric takes the time of. */
static const struct sym *spread_bytes(const struct step_pass *pass, const struct cost_op *op)
{
    const struct step_setup *u = pass->setup;
    struct timed_links k;
    if (op->fabric_bytes == sym_int(pass->c, 0)) return op->wire_bytes;
    const struct sym *all = sym_add(pass->c, op->wire_bytes, op->fabric_bytes);
    if (timed_links(u->hw, &u->layout, &u->latency, &k, NULL) != ERR_OK || isnan(k.fabric_bytes_per_s)) return all;
    /* ranks that are each in a node of their own have no link between them: that of the device */
    const double rate = isnan(k.spread_bytes_per_s) ? hw_link_rate(u->hw, 2) : k.spread_bytes_per_s;
    if (isnan(rate)) return all;
    const struct sym *slower = sym_num(pass->c, rate / k.fabric_bytes_per_s);
    return sym_max(pass->c, all, sym_mul(pass->c, op->fabric_bytes, slower));
}

static const struct sym *value_of(const struct step_pass *pass, const struct call *c)
{
    const struct cost_op *op = &pass->op[c->op];
    const struct timed *t = &pass->timed[c->op];
    if (c->how == CALL_ROOFLINE) return t->resident_s ? t->resident_s : t->time_s;
    if (c->how == CALL_FUSED) return t->bytes;
    if (c->how != CALL_MEASURED) return sym_int(pass->c, 0);
    switch (c->kernel.kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM:
    case KERNEL_MOE:
    case KERNEL_MLP: return op->rows;
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
        return op->kind == OP_ALL_TO_ALL ? (op->context ? op->wire_bytes : spread_bytes(pass, op)) : t->bytes;
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
    case KERNEL_MLA_PREFILL:
    case KERNEL_MLA_DECODE:
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_KINDS_N: break;
    }
    return sym_int(pass->c, 0);
}

/* Of the experts' first product: E/ep times the part of its weights that is read; its flops over those of a pair. */
static void experts_of(const struct step_pass *pass, const struct call *c, const struct sym **touched,
                       const struct sym **pairs)
{
    const struct cost_op *op = &pass->op[c->op];
    const struct sym *stored = sym_int(pass->c, 0);
    *touched = *pairs = stored;
    if (c->how != CALL_MEASURED || c->kernel.kind != KERNEL_MOE) return;
    for (size_t i = 0; i < op->tensors_n; i++) stored = sym_add(pass->c, stored, op->tensor[i].bytes);
    const double held = (c->kernel.experts - c->shared) / c->kernel.ep;
    *touched = sym_mul(pass->c, sym_num(pass->c, held), sym_div(pass->c, op->weight_bytes, stored));
    *pairs = sym_div(pass->c, op->flops, sym_mul(pass->c, sym_int(pass->c, 2), sym_mul(pass->c, op->in, op->out)));
}

/* The call whose time a call's weights are read in: its own, or of a part of another call that one, the nearest of its
 * layers that reads weights. */
static size_t reader_of(const struct step_pass *pass, const struct part *p, size_t i)
{
    if (p->call[i].how != CALL_INSIDE) return i;
    for (size_t away = 1; away < p->n; away++) {
        const size_t near[] = {i - away, i + away}; /* the first wraps around where there is none */
        for (size_t k = 0; k < 2; k++) {
            if (near[k] >= p->n) continue;
            const struct call *other = &p->call[near[k]];
            if (other->how == CALL_INSIDE || !pass->timed[other->op].host_bytes) continue;
            if (pass->op[other->op].kind_index == pass->op[p->call[i].op].kind_index) return near[k];
        }
    }
    return i;
}

static enum err_code open_part(struct arena *a, const struct step_pass *pass, struct part *p, struct err *e)
{
    enum { COLUMNS = 4 };
    const bool away = pass->setup->offload.bytes > 0;
    const size_t n = (away ? COLUMNS : COLUMNS - 1) * p->n;
    const struct sym **expr = arena_array(a, COLUMNS * p->n, sizeof *expr);
    p->value = arena_array(a, COLUMNS * p->n, sizeof *p->value);
    p->column = arena_array(a, COLUMNS * p->n, sizeof *p->column);
    if (p->n && (!expr || !p->value || !p->column)) return err_nomem(e);
    if (!p->n) return ERR_OK;
    p->touched = p->value + p->n;
    p->pairs = p->touched + p->n;
    p->stream_s = away ? p->pairs + p->n : NULL;
    const struct sym **stream = expr + 3 * p->n;
    for (size_t i = 0; i < p->n; i++) {
        expr[i] = value_of(pass, &p->call[i]);
        experts_of(pass, &p->call[i], &expr[p->n + i], &expr[2 * p->n + i]);
        stream[i] = sym_int(pass->c, 0);
    }
    for (size_t i = 0; i < p->n && away; i++) {
        const struct cost_op *op = &pass->op[p->call[i].op];
        const struct sym *bytes = pass->timed[p->call[i].op].host_bytes, **of = &stream[reader_of(pass, p, i)];
        const struct sym *rate = sym_num(pass->c, pass->setup->offload.host_bytes_per_s);
        if (bytes)
            *of = sym_add(pass->c, *of, sym_div(pass->c, sym_mul(pass->c, cost_times(pass->c, op, NULL), bytes), rate));
    }
    for (size_t i = 0; i < n; i++) p->column[i] = &p->value[i];
    return sym_tape_compile(a, n, expr, pass->in_n, pass->in, &p->tape, e);
}

/* What the operators of a pass are called for, unless they are of a part of a mixed one. */
static enum call_pass pass_kind(const struct step_pass *pass, int which)
{
    if (which == STEP_PREFILL || which == MIXED) return CALL_PREFILL;
    return pass->setup->verify ? CALL_VERIFY : CALL_DECODE;
}

static enum err_code open_phase(struct arena *a, struct calibrated *c, int which, struct err *e)
{
    struct phase_calls *p = &c->phase[which];
    if (which == MIXED) {
        if (!c->setup.mix) return ERR_OK;
        p->pass = mix_pass_of(c->setup.mix);
    } else {
        p->pass = step_pass_of(c->setup.step, (enum step_phase)which);
        p->steps = steps_find(&c->steps, c->setup.source->framework, (enum step_phase)which);
    }
    p->fixed.call = arena_array(a, p->pass.n, sizeof *p->fixed.call);
    p->moving.call = arena_array(a, p->pass.n, sizeof *p->moving.call);
    p->memo = arena_array(a, c->memos, sizeof *p->memo);
    if (!p->fixed.call || !p->moving.call || !p->memo) return err_nomem(e);
    for (size_t i = 0; i < c->memos; i++) p->memo[i].batch = (double)NAN;
    for (size_t i = 0; i < p->pass.n; i++) {
        struct call call = call_make(&p->pass, pass_kind(&p->pass, which), i, c->setup.source, c->setup.eager);
        struct kernel_features f;
        const struct call_point one = {1, 1, 1};
        const struct call_value each = {1, 1, 1, 1};
        const struct kernel k = call_at(&call, &one, &each);
        if (call.how == CALL_MEASURED && kernel_prepare(&k, c->hw, c->room, &f, NULL) != ERR_OK)
            call.how = CALL_ROOFLINE; /* the device's file lacks a number that the form needs */
        const bool moves = which == MIXED ? call.part >= 0 : which == STEP_DECODE && call.by_context;
        struct part *part = moves ? &p->moving : &p->fixed;
        part->call[part->n++] = call;
    }
    TRY(open_part(a, &p->pass, &p->fixed, e));
    return open_part(a, &p->pass, &p->moving, e);
}

/* -- what is said of it -- */

static bool is_estimated(const struct call *c) { return c->how == CALL_ROOFLINE; }
static bool is_measured(const struct call *c) { return c->how == CALL_MEASURED; }
static bool is_foreign(const struct call *c) { return c->how == CALL_MEASURED && c->of.other_framework; }
static bool is_moved_here(const struct call *c) { return c->how == CALL_MEASURED && c->of.transfer != SOURCE_OWN; }
static bool is_packed(const struct call *c) { return c->how == CALL_MEASURED && c->packed; }
static bool is_both_ways(const struct call *c) { return c->how == CALL_MEASURED && c->both_ways; }
static bool is_shared(const struct call *c) { return c->context_ranks > 1; }
static bool is_narrow(const struct call *c)
{
    return c->how == CALL_MEASURED && (c->kernel.kind == KERNEL_GEMM || c->kernel.kind == KERNEL_MOE) &&
           c->kernel.quant == KERNEL_QUANT_NONE && c->kernel.unit != HW_FP8 && c->kernel.element_bytes < 2;
}

/* One note: the names of operators of which `is` holds, and whose class is of a file (NULL: any), behind a sentence. */
static enum err_code add_note_of(struct arena *a, struct calibrated *c, const char *file, const char *before,
                                 bool (*is)(const struct call *), struct err *e)
{
    char names[NOTE_BYTES] = "";
    for (int p = 0; p < PASSES; p++)
        for (int k = 0; k < 2; k++) {
            const struct part *part = k ? &c->phase[p].moving : &c->phase[p].fixed;
            for (size_t i = 0; i < part->n; i++) {
                const char *name = c->phase[p].pass.op[part->call[i].op].name;
                const size_t used = strlen(names);
                if (file && part->call[i].of.file != file) continue;
                if (!is(&part->call[i]) || used + strlen(name) + 3 > sizeof names) continue;
                const char *have = strstr(names, name);
                const char end = have ? have[strlen(name)] : ' ';
                if (have && (have == names || have[-1] == ' ') && (end == ',' || !end)) continue;
                (void)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
            }
        }
    if (!*names || c->notes_n == NOTES_MAX) return ERR_OK;
    const char *text = arena_printf(a, "%s: %s", before, names);
    if (!text) return err_nomem(e);
    c->note[c->notes_n++] = text;
    return ERR_OK;
}

static enum err_code add_note(struct arena *a, struct calibrated *c, const char *before,
                              bool (*is)(const struct call *), struct err *e)
{
    return add_note_of(a, c, NULL, before, is, e);
}

/* A file that was asked for need not have all kernels: who has the others. */
static enum err_code add_elsewhere(struct arena *a, struct calibrated *c, struct err *e)
{
    const struct source *s = c->setup.source;
    for (size_t i = 1; i < s->n; i++) {
        const char *file = s->file[i].file, *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
        const size_t stem = strlen(name) - strlen(".json"); /* built in, as all but the first are */
        const char *before = arena_printf(a, "not in %s, so as %.*s has it", s->name, (int)stem, name);
        if (!before) return err_nomem(e);
        TRY(add_note_of(a, c, file, before, is_measured, e));
    }
    return ERR_OK;
}

static enum err_code add_launches(struct arena *a, struct calibrated *c, struct err *e)
{
    char launch[UNITS_TEXT_MAX];
    const char *text = arena_printf(a,
                                    "launched one by one: a step takes %s for each of its kernels at least "
                                    "(configs/efficiency/steps.json); collectives as measured so, all other kernels as "
                                    "in graphs",
                                    units_format_time(launch, c->launch_s));
    if (!text) return err_nomem(e);
    c->note[c->notes_n++] = text;
    return ERR_OK;
}

static enum err_code add_notes(struct arena *a, struct calibrated *c, struct err *e)
{
    char start[UNITS_TEXT_MAX];
    const struct source *s = c->setup.source;
    const char *foreign = arena_printf(a, "not measured with %s, so by kernels of others", s->kernels);
    if (!foreign) return err_nomem(e);
    const bool host = rows_of_host(c->hw);
    const char *estimated =
        arena_printf(a, "no measured kernel, so roofline / %g%s%s", CALL_DEFAULT_FRAC,
                     host ? "" : " and a start-up of ", host ? "" : units_format_time(start, CALL_START_S));
    if (!estimated) return err_nomem(e);
    if (c->setup.eager) TRY(add_launches(a, c, e));
    TRY(add_note(a, c, estimated, is_estimated, e));
    TRY(add_note_of(a, c, s->named ? s->file[0].file : NULL, foreign, is_foreign, e));
    if (s->named) TRY(add_elsewhere(a, c, e));
    TRY(add_note(a, c, "stored narrower than computed, by kernels of 16-bit weights", is_narrow, e));
    TRY(add_note(a, c, "several tokens of a sequence by kernels of one with as many times the heads", is_packed, e));
    TRY(add_note(a, c, "tokens that see each other by causal kernels of as many pairs", is_both_ways, e));
    TRY(add_note(a, c, "ranks share a context, which no measured step has: each by its own kernel", is_shared, e));
    if (s->transfer[0] == SOURCE_OWN)
        TRY(add_note(a, c, "not measured here, transferred from the nearest device", is_moved_here, e));
    for (enum step_phase p = 0; p < STEP_PHASES; p++) {
        if (c->phase[p].steps || c->notes_n == NOTES_MAX) continue;
        const char *text = arena_printf(a,
                                        "no whole %s steps%s%s were measured: the band is that of kernels wrong all "
                                        "at once, at least the widest of steps that were",
                                        step_phase_name(p), s->framework == s->kernels ? " of " : " alone",
                                        s->framework == s->kernels ? s->framework : "");
        if (!text) return err_nomem(e);
        c->note[c->notes_n++] = text;
    }
    return ERR_OK;
}

const char *calibrated_note(const struct calibrated *c, size_t i) { return i < c->notes_n ? c->note[i] : NULL; }

enum err_code calibrated_open(struct arena *a, const struct calibrated_setup *setup, struct calibrated **out,
                              struct err *e)
{
    struct calibrated *c = arena_alloc(a, sizeof *c);
    if (!c) return err_nomem(e);
    *c = (struct calibrated){.setup = *setup,
                             .room = arena_array(a, KERNEL_FEATURES_MAX, sizeof *c->room),
                             .memos = setup->memos > 0 && setup->memos < MEMOS_MAX ? setup->memos : MEMOS};
    if (!c->room) return err_nomem(e);
    c->hw = step_pass_of(setup->step, STEP_DECODE).setup->hw;
    TRY(steps_load(a, &c->steps, e));
    c->launch_s = steps_launch_s(&c->steps, c->setup.source->kernels);
    steps_widest(&c->steps, &c->widest_low, &c->widest_high);
    for (int p = 0; p < PASSES; p++) TRY(open_phase(a, c, p, e));
    TRY(add_notes(a, c, e));
    *out = c;
    return ERR_OK;
}

/* -- evaluation -- */

/* What a transfer makes of a band: P10 times low, P90 times high. */
struct widening {
    double low, high;
};

static struct widening widening_of(const struct fit_class *of, enum fit_regime regime)
{
    const struct fit_band *own = &of->band[regime], *now = fit_band_of(of, regime);
    if (own == now || !own->n) return (struct widening){1, 1};
    return (struct widening){now->p10 / fmin(own->p10, 1), now->p90 / fmax(own->p90, 1)};
}

/* A core starts a kernel by calling it. */
static double start_s(const struct calibrated *c) { return rows_of_host(c->hw) ? 0 : CALL_START_S; }

/* Seconds of one call, and its band; not times its count. */
static struct calibrated_time call_time(struct calibrated *c, const struct call *call, const struct call_point *at,
                                        const struct call_value *v, struct widening *widening)
{
    const double value = v->rows;
    struct calibrated_time t = {0, 0, 0};
    *widening = (struct widening){1, 1};
    switch (call->how) {
    case CALL_INSIDE:
    case CALL_NOTHING: return t;
    case CALL_FUSED: t.s = t.p10_s = t.p90_s = value / c->hw->bandwidth_bytes_per_s; return t;
    case CALL_ROOFLINE:
        t.s = value / CALL_DEFAULT_FRAC + start_s(c);
        t.p10_s = t.s * CALL_DEFAULT_P10;
        t.p90_s = t.s * CALL_DEFAULT_P90;
        return t;
    case CALL_MEASURED: break;
    }
    const struct kernel k = call_at(call, at, v);
    const struct fit_class *of = call->of.class;
    struct kernel_work w;
    if (kernel_work(&k, c->hw, &w, NULL) != ERR_OK ||
        kernel_once_s(&k, c->hw, &w, call->p, c->room, &t.s, NULL) != ERR_OK) {
        t.s = t.p10_s = t.p90_s = (double)NAN;
        return t;
    }
    const struct fit_band *band = fit_band_of(of, fit_regime_of(&w));
    const bool known = band->n > 0;
    *widening = widening_of(of, fit_regime_of(&w));
    t.p10_s = t.s * (known ? fmin(band->p10, 1) : CALL_DEFAULT_P10);
    t.p90_s = t.s * (known ? fmax(band->p90, 1) : CALL_DEFAULT_P90);
    return t;
}

static struct call_value value_at(const struct part *p, size_t i)
{
    return (struct call_value){p->value[i], p->value[i], p->touched[i], p->pairs[i]};
}

/* Of call i, s seconds long with its weights on the device: a part of its layers has them at the host, and there takes
 * as long as that or as the link, whichever is longer. */
static double wait_s(const struct calibrated *c, const struct part *p, size_t i, double s)
{
    if (!p->stream_s) return 0;
    return fmax(0, p->stream_s[i] - step_offloaded_frac(c->setup.step) * p->call[i].count * s);
}

/* at: of all sequences, and of each part of a mixed pass. */
static void add_part(struct calibrated *c, const struct part *p, const struct call_point *points,
                     const double *const *in, struct sums *out)
{
    if (p->n) sym_tape_eval(p->tape, 1, in, p->column);
    for (size_t i = 0; i < p->n; i++) {
        const struct call *call = &p->call[i];
        if (call->how == CALL_INSIDE || call->how == CALL_NOTHING) {
            out->wait_s += wait_s(c, p, i, 0);
            continue;
        }
        const struct call_point *at = &points[call->part + 1];
        if (!(at->batch > 0)) continue;
        struct widening w;
        const struct call_value v = value_at(p, i);
        const struct calibrated_time t = call_time(c, call, at, &v, &w);
        out->s += call->count * t.s;
        out->p10_s += call->count * t.p10_s;
        out->p90_s += call->count * t.p90_s;
        out->wide_low_s += call->count * t.s * w.low;
        out->wide_high_s += call->count * t.s * w.high;
        out->kernels += call->launches > 0 ? call->count : 0;
        out->collectives_s += call->kernel.kind == KERNEL_COLLECTIVE ? call->count * t.s : 0;
        out->launches += call->count * call->launches;
        out->wait_s += wait_s(c, p, i, t.s);
    }
}

/* The memo of a key: its own, a free one, or the first of those it may have. The hash mixes the bits of its numbers
 * (multiplier: the golden ratio's, Knuth 6.4). */
static struct memo *memo_of(const struct calibrated *c, struct memo *memos, double batch, double tokens, double others)
{
    const double parts[] = {batch, tokens, others};
    unsigned long long h = 0;
    for (size_t i = 0; i < 3; i++) {
        unsigned long long bits;
        memcpy(&bits, &parts[i], sizeof bits);
        h = (h ^ bits) * 0x9E3779B97F4A7C15ULL;
        h ^= h >> 29;
    }
    for (size_t i = 0; i < PROBES; i++) {
        struct memo *m = &memos[(h + i) % c->memos];
        if (isnan(m->batch) || (m->batch == batch && m->tokens == tokens && m->others == others)) return m;
    }
    return &memos[h % c->memos];
}

static struct call_point point_of(const struct step_setup *u, enum step_phase phase, double B, double T, double S,
                                  double M)
{
    if (phase == STEP_PREFILL) return (struct call_point){u->prefill_together ? B : 1, T, T};
    if (u->verify) return (struct call_point){B, T, S + T - 1};
    const double tokens = u->pass_tokens > 0 ? (double)u->pass_tokens : 1;
    return (struct call_point){B, u->uncached ? S : tokens, u->averaged && !u->uncached ? S - (M - 1) / 2 : S};
}

static struct sums sum_calls(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M)
{
    struct phase_calls *p = &c->phase[phase];
    const double *const in[] = {&B, &T, &S, &M};
    const struct call_point at = point_of(p->pass.setup, phase, B, T, S, M);
    const struct call_point points[] = {at}; /* no parts */
    struct memo *m = memo_of(c, p->memo, at.batch, at.tokens, 0);
    if (!(m->batch == at.batch && m->tokens == at.tokens)) {
        struct sums fixed = {.s = 0};
        add_part(c, &p->fixed, points, in, &fixed);
        *m = (struct memo){.batch = at.batch, .tokens = at.tokens, .sums = fixed};
    }
    struct sums all = m->sums;
    add_part(c, &p->moving, points, in, &all);
    return all;
}

/* NULL steps: none were measured, and host_s is what their engine's host adds. */
static struct calibrated_time finish(const struct calibrated *c, const struct steps *steps, double host_s,
                                     const struct sums *sums, double floor_s)
{
    const double low = sums->wide_low_s / sums->s, high = sums->wide_high_s / sums->s;
    double kernels_s = sums->s;
    if (c->setup.eager) kernels_s = fmax(kernels_s, sums->launches * c->launch_s);
    const double s = (c->setup.hostless ? 0 : host_s) + kernels_s;
    struct calibrated_time t;
    if (steps) {
        t.s = s * steps->band.p50;
        t.p10_s = s * steps->band.p10 * low;
        t.p90_s = s * steps->band.p90 * high;
    } else {
        t.s = s;
        t.p10_s = s * fmin(sums->p10_s / sums->s, c->widest_low * low);
        t.p90_s = s * fmax(sums->p90_s / sums->s, c->widest_high * high);
    }
    t.s += sums->wait_s;
    t.p10_s += sums->wait_s;
    t.p90_s += sums->wait_s;
    t.s = fmax(t.s, floor_s);
    t.p10_s = fmax(t.p10_s, floor_s);
    t.p90_s = fmax(t.p90_s, floor_s);
    return t;
}

/* What a mixed pass asks of its calls: of all tokens, of those that decode, of pieces of prompts. */
static void mixed_points(const struct mix *x, struct call_point points[1 + MIXED_PARTS])
{
    const double all = mix_sequences(x);
    points[0] = (struct call_point){all, mix_tokens(x) / all, 0};
    for (enum mixed_part k = 0; k < MIXED_PARTS; k++) {
        const struct mix_mean m = mix_mean(x, k);
        points[1 + k] = (struct call_point){m.sequences, m.tokens, m.context};
    }
}

void calibrated_mix_work(struct calibrated *c, const struct mix *x, double floor_s, struct calibrated_work *out)
{
    const struct phase_calls *p = &c->phase[MIXED];
    const struct steps *decode = c->phase[STEP_DECODE].steps, *prefill = c->phase[STEP_PREFILL].steps;
    struct call_point points[1 + MIXED_PARTS];
    mixed_points(x, points);
    const double batch = mix_sequences(x), tokens = mix_tokens(x), others = *x->others_tokens;
    struct memo *m = memo_of(c, p->memo, batch, tokens, others); /* all that works on tokens together */
    if (!(m->batch == batch && m->tokens == tokens && m->others == others)) {
        struct sums fixed = {.s = 0};
        add_part(c, &p->fixed, points, mix_sums(x), &fixed);
        *m = (struct memo){.batch = batch, .tokens = tokens, .others = others, .sums = fixed};
    }
    struct sums sums = m->sums;
    add_part(c, &p->moving, points, mix_sums(x), &sums);
    const bool decodes = points[1 + MIXED_DECODE].batch > 0, prefills = points[1 + MIXED_PREFILL].batch > 0;
    const struct steps *of = decodes && prefills ? NULL : decodes ? decode : prefill;
    const struct steps *host = decodes ? decode : prefill;
    *out = (struct calibrated_work){.time = finish(c, of, host ? host->host_s : 0, &sums, floor_s),
                                    .kernels = sums.kernels,
                                    .launches = sums.launches,
                                    .collectives_s = sums.collectives_s,
                                    .idle_s = c->setup.eager ? fmax(0, sums.launches * c->launch_s - sums.s) : 0};
}

void calibrated_mix_eval(struct calibrated *c, const struct mix *x, double floor_s, struct calibrated_time *out)
{
    struct calibrated_work w;
    calibrated_mix_work(c, x, floor_s, &w);
    *out = w.time;
}

void calibrated_mix_prompt(struct calibrated *c, struct mix *scratch, double tokens, double chunk,
                           struct calibrated_time *out)
{
    *out = (struct calibrated_time){0, 0, 0};
    for (double from = 0; from < tokens; from += chunk) {
        struct calibrated_time t;
        double v[MIX_VALUES_N];
        mix_clear(scratch);
        mix_prefill(scratch, 1, fmin(chunk, tokens - from), from);
        mix_eval(scratch, v);
        calibrated_mix_eval(c, scratch, v[MIX_step_s], &t);
        out->s += t.s;
        out->p10_s += t.p10_s;
        out->p90_s += t.p90_s;
    }
}

void calibrated_eval(struct calibrated *c, enum step_phase phase, size_t n, const double *B, const double *T,
                     const double *S, const double *M, const double *floor_s, struct calibrated_time *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct sums sums = sum_calls(c, phase, B[i], T[i], S[i], M ? M[i] : 1);
        const struct steps *steps = c->phase[phase].steps;
        out[i] = finish(c, steps, steps ? steps->host_s : 0, &sums, floor_s[i]);
    }
}

double calibrated_band(struct calibrated *c, double batch, double context, double prompt)
{
    const double B = fmax(1, floor(batch)), S = ceil(context), T = fmax(1, ceil(prompt)), one = 1, none = 0;
    struct calibrated_time d, f;
    calibrated_eval(c, STEP_DECODE, 1, &B, &S, &S, NULL, &none, &d);
    calibrated_eval(c, STEP_PREFILL, 1, &one, &T, &T, NULL, &none, &f);
    const double band = fmax(d.p90_s / d.s, f.p90_s / f.s);
    return isfinite(band) ? fmax(1, band) : 1;
}

double calibrated_sum_s(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M)
{
    return sum_calls(c, phase, B, T, S, M).s;
}

double calibrated_kernels(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M)
{
    return sum_calls(c, phase, B, T, S, M).kernels;
}

double calibrated_collectives_s(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M)
{
    return sum_calls(c, phase, B, T, S, M).collectives_s;
}

static void set_ops(struct calibrated *c, const struct phase_calls *p, const struct call_point *points,
                    const double *const *in, struct step_op *ops, size_t n)
{
    static const char *const HOW[] = {[CALL_MEASURED] = "measured",
                                      [CALL_FUSED] = "fused",
                                      [CALL_INSIDE] = "inside",
                                      [CALL_NOTHING] = "nothing",
                                      [CALL_ROOFLINE] = "estimated"};
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        const struct part *part = k ? &p->moving : &p->fixed;
        if (part->n) sym_tape_eval(part->tape, 1, in, part->column);
        for (size_t i = 0; i < part->n; i++) {
            const struct call *call = &part->call[i];
            const struct call_point *at = &points[call->part + 1];
            if (call->op >= n) continue;
            struct widening unused;
            const struct call_value v = value_at(part, i);
            struct step_op *op = &ops[call->op];
            const double s = at->batch > 0 ? call_time(c, call, at, &v, &unused).s : 0;
            const double wait = at->batch > 0 ? wait_s(c, part, i, s) : 0;
            op->time_s = call->count * s + wait;
            op->bound_by = wait > 0 ? "host" : at->batch > 0 ? HOW[call->how] : HOW[CALL_NOTHING];
            sum += op->time_s;
        }
    }
    for (size_t i = 0; i < n; i++) ops[i].share_frac = ops[i].time_s / sum;
}

void calibrated_ops(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M,
                    struct step_op *ops, size_t n)
{
    const struct phase_calls *p = &c->phase[phase];
    const double *const in[] = {&B, &T, &S, &M};
    const struct call_point points[] = {point_of(p->pass.setup, phase, B, T, S, M)};
    set_ops(c, p, points, in, ops, n);
}

void calibrated_mix_ops(struct calibrated *c, const struct mix *x, struct step_op *ops, size_t n)
{
    struct call_point points[1 + MIXED_PARTS];
    mixed_points(x, points);
    set_ops(c, &c->phase[MIXED], points, mix_sums(x), ops, n);
}
