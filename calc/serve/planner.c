#include "calc/serve/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner_parts.h"

/* -- one device and precision -- */

/* A unit under limits, from as many copies as the bound asks for. */
struct entry {
    size_t unit;
    struct planner_plan plan; /* memory known; of one copy */
    int64_t copies_least, copies_most;
    double cost_least; /* GPUs; of a job GPU seconds: no number of copies needs less */
};

struct search {
    struct planner *p;
    struct planner_result *out;
    struct planner_unit *unit;
    size_t units_n, units_room;
    struct entry *entry;
    size_t entries_n, entries_room;
    struct entry *beyond; /* the bound says more comes in than they serve; plan: with the most copies of those */
    size_t beyond_n, beyond_room;
    struct planner_plan best; /* of the pair */
    size_t best_unit;
    bool found;
    size_t part, parts; /* of the search: kinds of candidates of a device and precision */
};

/* How far it is: parts, and entries of the one at hand. */
static enum err_code tell(const struct search *s, size_t i, size_t n, struct err *e)
{
    enum { EACH = 1000 }; /* not a unit */
    const struct planner_request *q = s->p->q;
    if (!q->progress || q->progress(q->watching, s->part * EACH + (n ? i * EACH / n : 0), s->parts * EACH))
        return ERR_OK;
    return err_set(e, ERR_STOPPED, "interrupted: not all candidates were looked at, so nothing is known of the best");
}

static void count(struct search *s, size_t device, enum planner_verdict v, int64_t n)
{
    s->out->tally[device][v].n += (size_t)n;
    s->out->candidates += (size_t)n;
}

static void offer(struct search *s, size_t device, const struct planner_plan *plan, enum planner_verdict v)
{
    struct planner_tally *t = &s->out->tally[device][v];
    if (t->known && !(plan->miss < t->nearest.miss) && !isnan(t->nearest.miss)) return;
    t->known = true;
    t->nearest = *plan;
    t->nearest.verdict = v;
}

static void tally(struct search *s, size_t device, const struct planner_plan *plan, enum planner_verdict v, int64_t n)
{
    if (n <= 0) return;
    count(s, device, v, n);
    offer(s, device, plan, v);
}

static enum err_code grow(struct arena *a, void **at, size_t n, size_t *room, size_t size, struct err *e)
{
    if (n < *room) return ERR_OK;
    const size_t more = *room ? 2 * *room : 256; /* not a unit */
    void *next = arena_array(a, more, size);
    if (!next) return err_nomem(e);
    if (n) memcpy(next, *at, n * size);
    *at = next;
    *room = more;
    return ERR_OK;
}

/* Copies that there are GPUs for, or as many as are kept; 0 none. */
static void copies_of(const struct planner_request *q, size_t device, int64_t gpus, int64_t *least, int64_t *most)
{
    *least = 1;
    *most = q->device[device].most / gpus;
    if (q->like.replicas <= 0) return;
    *least = q->like.replicas;
    *most = q->like.replicas <= *most ? q->like.replicas : 0;
}

/* Copies that the bound asks for. */
static int64_t copies_for(const struct planner_request *q, double rate_most, int64_t most)
{
    if (q->aim == PLANNER_JOB) {
        const double need = q->requests / (rate_most * q->deadline_s);
        return need <= 1 ? 1 : need > (double)most ? most + 1 : (int64_t)ceil(need);
    }
    const double need = q->traffic.rate_per_s / rate_most;
    return !(need > 1) ? 1 : need > (double)most ? most + 1 : (int64_t)ceil(need);
}

static enum planner_verdict beyond_verdict(const struct planner_request *q)
{
    return q->aim == PLANNER_JOB ? PLANNER_LATE_JOB : PLANNER_SATURATED;
}

/* What the bound says of a batch, that of the one before kept. */
struct bounded {
    double batch, rate_most;
};

/* A unit under one pair of limits. */
static enum err_code add_entry(struct search *s, const struct planner_unit *u, int64_t step_tokens, int64_t seqs,
                               struct bounded *b, struct err *e)
{
    const struct planner_request *q = s->p->q;
    int64_t least, most;
    struct planner_plan plan = planner_blank(u);
    copies_of(q, u->device, u->gpus, &least, &most);
    plan.seqs = seqs;
    plan.step_tokens = step_tokens;
    TRY(planner_memory(s->p, u, step_tokens, seqs, &plan, e));
    if (plan.verdict == PLANNER_SHORT) {
        tally(s, u->device, &plan, PLANNER_SHORT, most - least + 1);
        return ERR_OK;
    }
    if (plan.batch_most != b->batch)
        *b = (struct bounded){plan.batch_most, planner_rate_most(s->p, u, plan.batch_most)};
    int64_t from = q->exhaustive ? 1 : copies_for(q, b->rate_most, most);
    if (from < least) from = least;
    if (from > least) {
        struct planner_plan low = plan;
        planner_copies(q, &low, u, from - 1);
        low.miss = q->aim == PLANNER_JOB ? q->requests / (b->rate_most * q->deadline_s) / (double)(from - 1)
                                         : low.rate_per_s / b->rate_most;
        count(s, u->device, beyond_verdict(q), from - least);
        TRY(grow(s->p->arena, (void **)&s->beyond, s->beyond_n, &s->beyond_room, sizeof *s->beyond, e));
        s->beyond[s->beyond_n++] =
            (struct entry){.unit = (size_t)(u - s->unit), .plan = low, .copies_most = from - 1, .cost_least = low.miss};
    }
    if (from > most) return ERR_OK;
    TRY(grow(s->p->arena, (void **)&s->entry, s->entries_n, &s->entries_room, sizeof *s->entry, e));
    s->entry[s->entries_n++] = (struct entry){
        .unit = (size_t)(u - s->unit),
        .plan = plan,
        .copies_least = from,
        .copies_most = most,
        .cost_least = q->aim == PLANNER_JOB ? (double)u->gpus * q->requests / b->rate_most : (double)(u->gpus * from)};
    return ERR_OK;
}

/* The limits of one unit that has memory for them. */
static enum err_code add_entries(struct search *s, const struct planner_unit *u, struct err *e)
{
    const struct planner_request *q = s->p->q;
    struct bounded b = {.batch = -1};
    struct planner_held held;
    for (size_t i = 0; i < q->seqs_n; i++)
        for (size_t k = 0; k < q->step_tokens_n; k++)
            if (q->seqs[i] <= q->step_tokens[k] / planner_judged(q, u->gamma))
                TRY(add_entry(s, u, q->step_tokens[k], q->seqs[i], &b, e));
    for (size_t k = 0; k < q->step_tokens_n; k++) {
        TRY(planner_held(s->p, u, q->step_tokens[k], &held, e));
        for (size_t i = 0; i < held.n; i++) TRY(add_entry(s, u, q->step_tokens[k], held.seqs[i], &b, e));
    }
    return ERR_OK;
}

/* Pairs of limits of a unit, those of its cache among them. */
static enum err_code settings_of(const struct search *s, const struct planner_unit *u, int64_t *n, struct err *e)
{
    const struct planner_request *q = s->p->q;
    struct planner_held held;
    *n = planner_settings(q, u->gamma);
    for (size_t k = 0; k < q->step_tokens_n; k++) {
        TRY(planner_held(s->p, u, q->step_tokens[k], &held, e));
        *n += (int64_t)held.n;
    }
    return ERR_OK;
}

/* Of a unit, what closed forms say of it whatever the limits. */
static enum err_code screen(struct search *s, const struct planner_unit *u, struct err *e)
{
    const struct planner_request *q = s->p->q;
    int64_t least, most, settings = planner_settings(q, u->gamma);
    struct planner_plan plan = planner_blank(u);
    copies_of(q, u->device, u->gpus, &least, &most);
    if (most < least) return ERR_OK;
    const int64_t all = settings * (most - least + 1);
    if (u->why) {
        tally(s, u->device, &plan, PLANNER_ILLEGAL, all);
        return ERR_OK;
    }
    /* what the least limits do not fit fits under none */
    int64_t step = q->step_tokens[0], seqs = q->seqs[0];
    for (size_t i = 1; i < q->step_tokens_n; i++) step = q->step_tokens[i] < step ? q->step_tokens[i] : step;
    for (size_t i = 1; i < q->seqs_n; i++) seqs = q->seqs[i] < seqs ? q->seqs[i] : seqs;
    TRY(planner_memory(s->p, u, step, seqs, &plan, e));
    if (plan.verdict == PLANNER_SHORT) {
        plan.step_tokens = step;
        plan.seqs = seqs;
        tally(s, u->device, &plan, PLANNER_SHORT, all);
        return ERR_OK;
    }
    plan = planner_blank(u);
    const bool serves = q->aim == PLANNER_SERVE && !q->exhaustive, token = u->floor_tpot_s > q->tpot.s;
    if (!serves || !(token || u->floor_ttft_s > q->ttft.s)) return add_entries(s, u, e);
    plan.value_s = token ? u->floor_tpot_s : u->floor_ttft_s;
    plan.miss = plan.value_s / (token ? q->tpot.s : q->ttft.s);
    TRY(settings_of(s, u, &settings, e));
    tally(s, u->device, &plan, token ? PLANNER_SLOW_TPOT : PLANNER_SLOW_TTFT, settings * (most - least + 1));
    return ERR_OK;
}

struct units {
    struct search *s;
    size_t device, format;
    int64_t gamma;
    enum err_code code;
    struct err *e;
};

static void keep_unit(void *closure, const struct layout *l)
{
    struct units *k = closure;
    struct search *s = k->s;
    if (k->code != ERR_OK) return;
    k->code = grow(s->p->arena, (void **)&s->unit, s->units_n, &s->units_room, sizeof *s->unit, k->e);
    if (k->code != ERR_OK) return;
    struct planner_unit *u = &s->unit[s->units_n++];
    struct err why = {0};
    const struct layout one = layout_whole(l);
    const struct planner_request *q = s->p->q;
    const char *refused = q->refuse ? q->refuse(q->closure, &one) : NULL;
    if (refused) (void)err_set(&why, ERR_USAGE, "%s", refused);
    if (refused || layout_check(q->format[k->format].model, &one, &why) != ERR_OK) {
        *u = (struct planner_unit){.device = k->device, .format = k->format, .layout = one};
        u->gpus = layout_group(&one) * one.pp;
        u->gamma = k->gamma;
        u->why = arena_strndup(s->p->arena, why.text, sizeof why.text);
        k->code = u->why ? screen(s, u, k->e) : err_nomem(k->e);
        return;
    }
    k->code = planner_unit_make(s->p, k->device, k->format, l, u, k->e);
    if (k->code == ERR_OK && k->gamma > 0) k->code = planner_unit_draft(s->p, u, k->gamma, k->e);
    if (k->code == ERR_OK) k->code = screen(s, u, k->e); /* while the step is placed so */
}

/* GPUs of a copy fill a part of a node, or whole nodes. */
static enum err_code make_units(struct search *s, size_t device, size_t format, bool drafted, struct err *e)
{
    const struct planner_request *q = s->p->q;
    const struct planner_device *d = &q->device[device];
    struct units k = {.s = s, .device = device, .format = format, .e = e};
    for (int64_t g = 1; g <= d->most; g++) {
        if (g > d->per_node && g % d->per_node != 0) continue;
        struct layouts_request each = {.model = q->format[format].model,
                                       .hw = d->hw,
                                       .gpus = g,
                                       .per_node = g < d->per_node && d->per_node % g != 0 ? g : d->per_node,
                                       .like = q->like,
                                       .any_context = q->any_context};
        each.like.replicas = 1;
        for (size_t i = 0; i < (drafted ? q->drafting->gamma_n : 1); i++) {
            k.gamma = drafted ? q->drafting->gamma[i] : 0;
            (void)layouts_each(&each, keep_unit, &k);
            TRY(k.code);
        }
    }
    return ERR_OK;
}

/* -- solving -- */

static int by_cost(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->cost_least != y->cost_least) return x->cost_least < y->cost_least ? -1 : 1;
    if (x->plan.batch_most != y->plan.batch_most) return x->plan.batch_most > y->plan.batch_most ? -1 : 1;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    if (x->plan.seqs != y->plan.seqs) return x->plan.seqs < y->plan.seqs ? -1 : 1;
    return x->plan.step_tokens < y->plan.step_tokens ? -1 : 1;
}

static enum err_code solve(struct search *s, const struct entry *x, int64_t copies, struct planner_plan *out,
                           struct err *e)
{
    struct planner_unit *u = &s->unit[x->unit];
    *out = x->plan;
    planner_copies(s->p->q, out, u, copies);
    s->out->solved++;
    return planner_solve(s->p, u, out, e);
}

/* By how much the nearest that fails so does. */
static double told(const struct search *s, size_t device, enum planner_verdict v)
{
    const struct planner_tally *t = &s->out->tally[device][v];
    return t->known && !isnan(t->nearest.miss) ? t->nearest.miss : (double)INFINITY;
}

/* The same where of one that fails by more nobody asks by how much. */
static enum err_code solve_nearer(struct search *s, const struct entry *x, int64_t copies, struct planner_plan *out,
                                  struct err *e)
{
    struct planner_unit *u = &s->unit[x->unit];
    const struct planner_told is = {.saturated = told(s, u->device, PLANNER_SATURATED),
                                    .late_tpot = told(s, u->device, PLANNER_LATE_TPOT),
                                    .late_ttft = told(s, u->device, PLANNER_LATE_TTFT)};
    *out = x->plan;
    planner_copies(s->p->q, out, u, copies);
    TRY(planner_solve_told(s->p, u, &is, out, e));
    s->out->solved += !isinf(out->miss);
    return ERR_OK;
}

static void consider(struct search *s, const struct entry *x, const struct planner_plan *plan)
{
    if (s->found && planner_order(s->p->q, &s->best, plan) <= 0) return;
    s->best = *plan;
    s->best_unit = x->unit;
    s->found = true;
}

/* The fewest copies that keep every promise: more never break one. Failing counts are the nearest one's verdict. */
static enum err_code solve_entry(struct search *s, const struct entry *x, struct err *e)
{
    const struct planner_unit *u = &s->unit[x->unit];
    struct planner_plan good, bad;
    const int64_t low = x->copies_least;
    int64_t high = x->copies_most;
    const bool job = s->p->q->aim == PLANNER_JOB;
    if (s->found && job && x->cost_least > (double)s->best.gpus * s->best.point.makespan_s) high = 0;
    if (s->found && !job && s->best.gpus / u->gpus < high) high = s->best.gpus / u->gpus;
    if (high < low) {
        tally(s, u->device, &x->plan, PLANNER_DEARER, x->copies_most - low + 1);
        return ERR_OK;
    }
    tally(s, u->device, &x->plan, PLANNER_DEARER, x->copies_most - high);
    TRY(solve_nearer(s, x, high, &good, e));
    if (good.verdict != PLANNER_MEETS) { /* then fewer do not either */
        tally(s, u->device, &good, good.verdict, high - low + 1);
        return ERR_OK;
    }
    int64_t fails = low - 1, meets = high;
    while (meets - fails > 1) {
        struct planner_plan mid;
        const int64_t m = fails + (meets - fails) / 2;
        TRY(solve_nearer(s, x, m, &mid, e));
        if (mid.verdict == PLANNER_MEETS) {
            good = mid;
            meets = m;
        } else {
            bad = mid;
            fails = m;
        }
    }
    if (fails >= low) tally(s, u->device, &bad, bad.verdict, fails - low + 1);
    tally(s, u->device, &good, PLANNER_MEETS, 1);
    tally(s, u->device, &good, PLANNER_DEARER, high - meets);
    consider(s, x, &good);
    return ERR_OK;
}

/* The nearest of those beyond their bound, by what they do: in the order of the bounds, until those that are left
 * cannot be nearer. */
static enum err_code solve_beyond(struct search *s, size_t device, struct err *e)
{
    const enum planner_verdict v = beyond_verdict(s->p->q);
    const struct planner_tally *t = &s->out->tally[device][v];
    if (s->beyond_n > 1) qsort(s->beyond, s->beyond_n, sizeof *s->beyond, by_cost);
    for (size_t i = 0; i < s->beyond_n; i++) {
        const struct entry *x = &s->beyond[i];
        struct planner_plan plan;
        if (t->known && t->nearest.miss <= x->cost_least) break;
        TRY(solve(s, x, x->copies_most, &plan, e));
        plan.miss = fmax(plan.miss, x->cost_least); /* no engine does better */
        if (v == PLANNER_SATURATED)
            plan.point.saturation_per_s = fmin(plan.point.saturation_per_s, plan.rate_per_s / x->cost_least);
        offer(s, device, &plan, v);
    }
    return ERR_OK;
}

/* Every number of copies by itself. */
static enum err_code solve_all(struct search *s, const struct entry *x, struct err *e)
{
    for (int64_t n = x->copies_least; n <= x->copies_most; n++) {
        struct planner_plan plan;
        TRY(solve(s, x, n, &plan, e));
        tally(s, s->unit[x->unit].device, &plan, plan.verdict, 1);
        if (plan.verdict == PLANNER_MEETS) consider(s, x, &plan);
    }
    return ERR_OK;
}

/* Two pools of a unit: under each limits the fewest copies of both. */
static enum err_code solve_pools(struct search *s, const struct entry *x, struct err *e)
{
    struct planner_unit *u = &s->unit[x->unit];
    struct planner_plan plan;
    int64_t most = x->copies_most;
    if (s->found && !s->p->q->exhaustive && s->best.gpus / u->gpus < most) most = s->best.gpus / u->gpus;
    if (most < 2) {
        tally(s, u->device, &x->plan, PLANNER_DEARER, 1);
        return ERR_OK;
    }
    TRY(planner_pool_counts(s->p, u, &x->plan, most, &s->out->solved, &plan, e));
    tally(s, u->device, &plan, plan.verdict, 1);
    if (plan.verdict == PLANNER_MEETS) consider(s, x, &plan);
    return ERR_OK;
}

/* Of a device and a precision: copies that do everything, with a draft, in two pools, or both. */
enum mode { TOGETHER, DRAFTED, POOLS, DRAFTED_POOLS, MODES };

static bool asked_for(const struct planner_request *q, enum mode mode)
{
    const bool pools = q->pools && q->aim == PLANNER_SERVE, drafted = q->drafting != NULL;
    return mode == TOGETHER || (mode == DRAFTED ? drafted : pools && (mode == POOLS || drafted));
}

static enum err_code search_pair(struct search *s, size_t device, size_t format, enum mode mode, struct err *e)
{
    s->found = false;
    s->units_n = s->entries_n = s->beyond_n = 0;
    const bool pools = mode >= POOLS;
    TRY(make_units(s, device, format, mode == DRAFTED || mode == DRAFTED_POOLS, e));
    if (s->entries_n > 1) qsort(s->entry, s->entries_n, sizeof *s->entry, by_cost);
    for (size_t i = 0; i < s->entries_n; i++) {
        TRY(tell(s, i, s->entries_n, e));
        if (pools) {
            if (planner_mixes(&s->unit[s->entry[i].unit].layout) && s->entry[i].copies_most > 1)
                TRY(solve_pools(s, &s->entry[i], e));
        } else
            TRY(s->p->q->exhaustive ? solve_all(s, &s->entry[i], e) : solve_entry(s, &s->entry[i], e));
    }
    if (!pools) TRY(solve_beyond(s, device, e));
    if (!s->found) return ERR_OK;
    planner_finish(s->p, &s->unit[s->best_unit], &s->best);
    s->out->best[s->out->best_n++] = s->best;
    return ERR_OK;
}

enum err_code planner_search(struct arena *a, const struct planner_request *q, struct planner_result *out,
                             struct err *e)
{
    struct planner p;
    struct search s = {.p = &p, .out = out};
    TRY(planner_check(q, e));
    *out = (struct planner_result){.best = arena_array(a, MODES * q->devices_n * q->formats_n, sizeof *out->best),
                                   .tally = arena_array(a, q->devices_n, sizeof *out->tally)};
    if (!out->best || !out->tally) return err_nomem(e);
    memset(out->tally, 0, q->devices_n * sizeof *out->tally);
    TRY(planner_open(a, q, &p, e));
    for (enum mode m = TOGETHER; m < MODES; m++) s.parts += asked_for(q, m) ? q->devices_n * q->formats_n : 0;
    for (size_t d = 0; d < q->devices_n; d++)
        for (size_t f = 0; f < q->formats_n; f++)
            for (enum mode m = TOGETHER; m < MODES; m++) {
                if (!asked_for(q, m)) continue;
                TRY(search_pair(&s, d, f, m, e));
                s.part++;
            }
    /* insertion: a dozen at most */
    for (size_t i = 1; i < out->best_n; i++)
        for (size_t k = i; k > 0 && planner_order(q, &out->best[k], &out->best[k - 1]) < 0; k--) {
            const struct planner_plan t = out->best[k];
            out->best[k] = out->best[k - 1];
            out->best[k - 1] = t;
        }
    return ERR_OK;
}

enum err_code planner_options(struct planner *p, struct planner_option **out, size_t *n, struct err *e)
{
    const struct planner_request *q = p->q;
    struct planner_result told = {.tally = arena_array(p->arena, q->devices_n, sizeof *told.tally)};
    struct search s = {.p = p, .out = &told};
    if (!told.tally) return err_nomem(e);
    memset(told.tally, 0, q->devices_n * sizeof *told.tally);
    for (size_t d = 0; d < q->devices_n; d++)
        for (size_t f = 0; f < q->formats_n; f++)
            for (enum mode m = TOGETHER; m <= DRAFTED; m++)
                if (asked_for(q, m)) TRY(make_units(&s, d, f, m == DRAFTED, e));
    *out = arena_array(p->arena, s.entries_n + 1, sizeof **out);
    if (!*out) return err_nomem(e);
    for (size_t i = 0; i < s.entries_n; i++) {
        const struct entry *x = &s.entry[i];
        (*out)[i] = (struct planner_option){&s.unit[x->unit], x->plan, x->copies_least, x->copies_most};
    }
    *n = s.entries_n;
    return ERR_OK;
}
