/* planner_confirm -- candidates through the scheduler, in the order of their cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner_parts.h"
#include "calc/serve/planner_verify.h"

void planner_skip(const struct planner_request *q, const struct planner_plan *plan, enum planner_skip why,
                  struct planner_confirmed *out)
{
    struct planner_skipped *s = &out->skipped[why];
    if (s->n++ == 0 || planner_order(q, plan, &s->best) < 0) s->best = *plan;
}

/* What plans of one cost share: dollars an hour, behind them GPUs where no price is known. */
struct cost {
    bool unknown;
    double of;
};

/* A run that others may equal. */
struct seen {
    const struct planner_plan *plan;
    int64_t most_running, most_blocks;
};

/* Two pools of an option: the fewest copies of either on paper, and how many in all are looked at next. */
struct paired {
    bool possible, solved;
    int64_t prefill, decode, next; /* next beyond the option's most: none */
};

struct walk {
    struct planner p;
    const struct planner_request *q;
    const struct workload *work;
    const struct planner_watch *watch;
    struct planner_confirmed *out;
    struct planner_option *option;
    size_t options_n;
    int64_t *next;              /* [options_n] copies that are not looked at yet; beyond its most: none */
    struct paired *pair;        /* [options_n] */
    struct planner_plan *meets; /* of one cost, on paper */
    struct planner_unit **unit; /* [meets] */
    struct seen *seen;          /* refuted ones of it */
    size_t meets_n, meets_room, seen_n;
    size_t simulated, near_simulated;
    struct planner_plan found;
};

enum { NEAR_PART = 3 }; /* of the simulations in full breadth, those of plans that miss on paper: one in so many */

static struct cost cost_of(const struct planner_request *q, size_t device, int64_t gpus)
{
    const double usd = q->device[device].price.usd_per_h;
    return isnan(usd) ? (struct cost){true, (double)gpus} : (struct cost){false, usd * (double)gpus};
}

static int dearer(struct cost a, struct cost b)
{
    if (a.unknown != b.unknown) return a.unknown ? 1 : -1;
    return (a.of > b.of) - (a.of < b.of);
}

static enum err_code open_walk(struct arena *a, struct walk *k, struct err *e)
{
    TRY(planner_open(a, k->q, &k->p, e));
    TRY(planner_options(&k->p, &k->option, &k->options_n, e));
    const size_t n = k->options_n + 1;
    k->next = arena_array(a, n, sizeof *k->next);
    k->pair = arena_array(a, n, sizeof *k->pair);
    if (!k->next || !k->pair) return err_nomem(e);
    for (size_t i = 0; i < k->options_n; i++) {
        const struct planner_option *x = &k->option[i];
        const bool possible =
            k->q->pools && k->q->aim == PLANNER_SERVE && planner_mixes(&x->unit->layout) && x->most > 1;
        k->pair[i] = (struct paired){.possible = possible, .next = x->least > 2 ? x->least : 2};
    }
    return ERR_OK;
}

/* Room for one more of a cost. */
static enum err_code make_place(struct walk *k, struct err *e)
{
    if (k->meets_n < k->meets_room) return ERR_OK;
    const size_t room = k->meets_room ? 2 * k->meets_room : 256; /* not a unit */
    struct planner_plan *meets = arena_array(k->p.arena, room, sizeof *meets);
    struct planner_unit **unit = arena_array(k->p.arena, room, sizeof *unit);
    struct seen *seen = arena_array(k->p.arena, room, sizeof *seen);
    if (!meets || !unit || !seen) return err_nomem(e);
    if (k->meets_n > 0) {
        memcpy(meets, k->meets, k->meets_n * sizeof *meets);
        memcpy(unit, k->unit, k->meets_n * sizeof *unit);
    }
    k->meets = meets;
    k->unit = unit;
    k->seen = seen;
    k->meets_room = room;
    return ERR_OK;
}

/* The least cost above `last` (NULL: any) that is left; false: none. */
static bool next_cost(const struct walk *k, const struct cost *last, struct cost *least)
{
    bool any = false;
    for (size_t i = 0; i < k->options_n; i++) {
        const struct planner_option *x = &k->option[i];
        const struct cost c = cost_of(k->q, x->unit->device, x->unit->gpus * k->pair[i].next);
        if (!k->pair[i].possible || k->pair[i].next > x->most || (last && dearer(c, *last) <= 0)) continue;
        if (!any || dearer(c, *least) < 0) *least = c;
        any = true;
    }
    for (size_t i = 0; i < k->options_n; i++) {
        const struct planner_option *x = &k->option[i];
        if (k->next[i] > x->most) continue;
        const struct cost c = cost_of(k->q, x->unit->device, x->unit->gpus * k->next[i]);
        if (!any || dearer(c, *least) < 0) *least = c;
        any = true;
    }
    return any;
}

static bool misses(const struct planner_plan *x) { return x->paper != PLANNER_MEETS; }

/* Where it belongs among those of its cost. */
static enum err_code add(struct walk *k, const struct planner_plan *plan, struct planner_unit *u, struct err *e)
{
    TRY(make_place(k, e));
    size_t to = k->meets_n++;
    for (; to > 0 && planner_order(k->q, plan, &k->meets[to - 1]) < 0; to--) {
        k->meets[to] = k->meets[to - 1];
        k->unit[to] = k->unit[to - 1];
    }
    k->meets[to] = *plan;
    k->unit[to] = u;
    return ERR_OK;
}

/* Whoever watches says so between simulations too: steady states of a cost take seconds. */
static bool stopped(struct walk *k)
{
    const struct planner_watch *w = k->watch;
    if (w->show && !w->show(w->closure, 0, k->work->n)) k->out->interrupted = true;
    return k->out->interrupted;
}

/* Two pools of one option with as many copies as cost so much: every split that leaves neither fewer than it needs on
 * paper. */
static enum err_code solve_pairs(struct walk *k, size_t i, struct cost at, struct err *e)
{
    const struct planner_option *x = &k->option[i];
    struct paired *y = &k->pair[i];
    struct planner_plan plan;
    if (!y->possible || dearer(cost_of(k->q, x->unit->device, x->unit->gpus * y->next), at) > 0) return ERR_OK;
    if (!y->solved) {
        size_t solved = 0;
        TRY(planner_pool_counts(&k->p, x->unit, &x->plan, x->most, &solved, &plan, e));
        y->solved = true;
        y->possible = plan.verdict == PLANNER_MEETS;
        if (!y->possible) return ERR_OK;
        y->prefill = plan.prefill;
        y->decode = k->q->like.replicas > 0 ? 1 : plan.layout.replicas - plan.prefill;
        y->next = plan.layout.replicas;
    }
    if (y->next > x->most || dearer(cost_of(k->q, x->unit->device, x->unit->gpus * y->next), at) != 0) return ERR_OK;
    const int64_t copies = y->next++;
    for (int64_t prefill = y->prefill; prefill <= copies - y->decode; prefill++) {
        plan = x->plan;
        planner_copies(k->q, &plan, x->unit, copies);
        plan.prefill = prefill;
        if (planner_verifies(&plan)) continue;
        TRY(planner_solve(&k->p, x->unit, &plan, e));
        if (plan.verdict == PLANNER_MEETS) TRY(add(k, &plan, x->unit, e));
    }
    return ERR_OK;
}

/* One that is not simulated, which more copies keep as well. */
static void skip(struct walk *k, size_t i, struct planner_plan *plan)
{
    planner_finish(&k->p, k->option[i].unit, plan);
    planner_skip(k->q, plan, planner_skip_of(plan), k->out);
    k->next[i] = k->option[i].most + 1;
}

/* All candidates of that cost through the steady state; the best first. */
static enum err_code solve_cost(struct walk *k, struct cost at, struct err *e)
{
    k->meets_n = k->seen_n = 0;
    for (size_t i = 0; i < k->options_n; i++) {
        const struct planner_option *x = &k->option[i];
        if (k->next[i] > x->most || dearer(cost_of(k->q, x->unit->device, x->unit->gpus * k->next[i]), at) != 0)
            continue;
        if (stopped(k)) return ERR_OK;
        struct planner_plan plan = x->plan;
        planner_copies(k->q, &plan, x->unit, k->next[i]++);
        TRY(planner_solve(&k->p, x->unit, &plan, e));
        if (plan.verdict != PLANNER_MEETS) continue;
        if (planner_floods(k->q, &plan))
            k->out->flooded++;
        else if (planner_verifies(&plan))
            skip(k, i, &plan);
        else
            TRY(add(k, &plan, x->unit, e));
    }
    for (size_t i = 0; i < k->options_n; i++) TRY(solve_pairs(k, i, at, e));
    return ERR_OK;
}

/* Whether batch and cache leave a run as it was: there is always a place in the batch, and always room for the longest
 * request. */
static bool never_full(const struct walk *k, size_t i, const struct seen *s)
{
    const struct planner_plan *x = &k->meets[i];
    if (x->layout.dp > 1) return false; /* most are of all groups */
    const int64_t block = planner_block_tokens(&k->p, &x->layout),
                  longest = (k->q->traffic.longest_tokens + block - 1) / block + 1;
    const double blocks = (double)planner_blocks(&k->p, k->unit[i], x) * (1 - planner_watermark(k->q));
    return s->most_running < x->seqs && (double)(s->most_blocks + longest) <= blocks;
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->dp == b->dp && a->ep == b->ep && a->dcp == b->dcp &&
           a->replicas == b->replicas && a->per_node == b->per_node;
}

static bool equals_refuted(const struct walk *k, size_t i)
{
    const struct planner_plan *x = &k->meets[i];
    for (size_t s = 0; s < k->seen_n; s++) {
        const struct planner_plan *y = k->seen[s].plan;
        if (k->unit[i] == k->unit[y - k->meets] && x->step_tokens == y->step_tokens && x->prefill == y->prefill &&
            same_layout(&x->layout, &y->layout) && never_full(k, i, &k->seen[s]))
            return true;
    }
    return false;
}

/* Whether simulations in full breadth are used up, of plans like the i-th of a cost: then the first of them alone. */
static bool cut(struct walk *k, size_t i)
{
    const bool near = misses(&k->meets[i]);
    if (near ? k->near_simulated < k->watch->most / NEAR_PART : k->simulated < k->watch->most) return false;
    *(near ? &k->out->near_cut : &k->out->cut) = true;
    return i > 0 && misses(&k->meets[i - 1]) == near;
}

static void refute(struct walk *k, size_t i) { ++*(misses(&k->meets[i]) ? &k->out->near_refuted : &k->out->refuted); }

/* Times of its promise; infinite where the queue grows. */
static double over_of(const struct planner_request *q, const struct planner_verified *v)
{
    double over = 0;
    if (v->breaks == PLANNER_SATURATED) return (double)INFINITY;
    if (!isnan(q->ttft.s) && !isnan(v->ttft_s)) over = v->ttft_s / q->ttft.s;
    if (!isnan(q->tpot.s) && !isnan(v->tpot_s)) over = fmax(over, v->tpot_s / q->tpot.s);
    return over;
}

/* Among the nearest, one of each layout and precision. */
static void remember(struct planner_confirmed *o, const struct planner_refuted *x)
{
    size_t to = 0;
    for (size_t i = 0; i < o->near_n; i++) {
        const struct planner_plan *p = &o->near[i].plan;
        if (p->device != x->plan.device || p->format != x->plan.format || p->gamma != x->plan.gamma ||
            p->prefill != x->plan.prefill || !same_layout(&p->layout, &x->plan.layout))
            continue;
        if (o->near[i].over <= x->over) return;
        o->near_n--;
        memmove(&o->near[i], &o->near[i + 1], (o->near_n - i) * sizeof *o->near);
        break;
    }
    while (to < o->near_n && o->near[to].over <= x->over) to++;
    if (to == PLANNER_REFUTED_MAX) return;
    if (o->near_n < PLANNER_REFUTED_MAX) o->near_n++;
    memmove(&o->near[to + 1], &o->near[to], (o->near_n - to - 1) * sizeof *o->near);
    o->near[to] = *x;
}

/* Of the nearest that were stopped, all requests, so that their figures are whole; in order again. */
static enum err_code complete(struct walk *k, struct err *e)
{
    enum { WHOLE = 3, SHORT = 1 << 16 };
    struct planner_confirmed *o = k->out, sorted = {.near_n = 0};
    for (size_t i = 0; i < o->near_n && i < WHOLE && k->work->n <= SHORT; i++) {
        struct arena *own = arena_open();
        if (!own) return err_nomem(e);
        const enum err_code code = planner_verify(own, k->q, &o->near[i].plan, k->work, &o->near[i].verified, e);
        arena_close(own);
        TRY(code);
        o->near[i].over = over_of(k->q, &o->near[i].verified);
    }
    for (size_t i = 0; i < o->near_n; i++) remember(&sorted, &o->near[i]);
    memcpy(o->near, sorted.near, sizeof o->near);
    return ERR_OK;
}

static enum err_code simulate_cost(struct walk *k, struct err *e)
{
    for (size_t i = 0; i < k->meets_n && !k->out->found && !k->out->interrupted; i++) {
        struct planner_run run;
        struct arena *own;
        if (equals_refuted(k, i)) {
            refute(k, i);
            continue;
        }
        if (cut(k, i)) continue;
        own = arena_open();
        if (!own) return err_nomem(e);
        enum err_code code = planner_run_until(own, k->q, &k->meets[i], k->work, k->watch, &run, e);
        if (code == ERR_OK) code = planner_run_judge(own, k->q, &run, &k->out->verified, e);
        arena_close(own);
        TRY(code);
        ++*(misses(&k->meets[i]) ? &k->near_simulated : &k->simulated);
        k->out->found = k->out->verified.keeps;
        k->out->interrupted = run.result.partial && !run.hopeless;
        if (k->out->found) {
            k->found = k->meets[i];
            planner_finish(&k->p, k->unit[i], &k->found);
        } else if (!k->out->interrupted) {
            refute(k, i);
            remember(k->out,
                     &(struct planner_refuted){k->meets[i], k->out->verified, over_of(k->q, &k->out->verified)});
            if (never_full(k, i, &(struct seen){&k->meets[i], run.result.most_running, run.result.most_blocks}))
                k->seen[k->seen_n++] = (struct seen){&k->meets[i], run.result.most_running, run.result.most_blocks};
        }
    }
    return ERR_OK;
}

static bool same_kind(const struct planner_plan *x, const struct planner_plan *y)
{
    return x->device == y->device && x->format == y->format && (x->gamma > 0) == (y->gamma > 0) &&
           (x->prefill > 0) == (y->prefill > 0);
}

/* The found one first; of the others what was not refuted and does not cost less. */
static void settle(const struct walk *k, struct planner_result *r)
{
    struct planner_confirmed *o = k->out;
    const struct planner_plan *w = &k->found;
    size_t n = 0;
    for (size_t i = 0; i < r->best_n; i++) {
        const struct planner_plan x = r->best[i];
        const bool less = o->found && planner_order(k->q, &x, w) < 0;
        if (o->found ? less || same_kind(&x, w) : !planner_verifies(&x)) continue;
        r->best[n++] = x;
    }
    if (o->found) { /* its pair has left a place */
        memmove(r->best + 1, r->best, n * sizeof *r->best);
        r->best[0] = *w;
        n++;
    }
    r->best_n = n;
}

static enum err_code meets_with(struct walk *k, const struct planner_option *x, int64_t copies, bool *meets,
                                struct err *e)
{
    struct planner_plan plan = x->plan;
    planner_copies(k->q, &plan, x->unit, copies);
    *meets = false;
    if (planner_verifies(&plan)) return ERR_OK;
    TRY(planner_solve(&k->p, x->unit, &plan, e));
    *meets = plan.verdict == PLANNER_MEETS;
    return ERR_OK;
}

/* The copies of an option to begin with: below the best on paper (first NULL: there is none) nothing keeps its promises
 * on paper; more copies are nearer, so the fewest within the margin are found by bisection. */
static enum err_code begin(struct walk *k, size_t i, const struct cost *first, struct err *e)
{
    const struct planner_option *x = &k->option[i];
    int64_t n = x->least, low = x->least - 1;
    bool meets;
    while (n <= x->most && (!first || dearer(cost_of(k->q, x->unit->device, x->unit->gpus * n), *first) < 0)) n++;
    k->next[i] = n;
    if (n == x->least) return ERR_OK;
    int64_t high = n - 1;
    TRY(meets_with(k, x, high, &meets, e));
    if (!meets) return ERR_OK;
    while (high - low > 1) {
        const int64_t m = low + (high - low) / 2;
        TRY(meets_with(k, x, m, &meets, e));
        *(meets ? &high : &low) = m;
    }
    k->next[i] = high;
    return ERR_OK;
}

enum err_code planner_confirm(struct arena *a, const struct planner_request *q, const struct workload *w,
                              const struct planner_watch *watch, struct planner_result *r,
                              struct planner_confirmed *out, struct err *e)
{
    struct planner_request near = *q;
    struct walk k = {.q = &near, .work = w, .watch = watch, .out = out};
    struct cost at = {.of = 0};
    near.near = 1;
    *out = (struct planner_confirmed){.found = false};
    TRY(open_walk(a, &k, e));
    const struct cost first = r->best_n > 0 ? cost_of(q, r->best[0].device, r->best[0].gpus) : at;
    for (size_t i = 0; i < k.options_n && !stopped(&k); i++) TRY(begin(&k, i, r->best_n > 0 ? &first : NULL, e));
    for (bool begun = false; !out->found && !out->interrupted; begun = true) {
        const struct cost last = at;
        if (!next_cost(&k, begun ? &last : NULL, &at)) break;
        TRY(solve_cost(&k, at, e));
        TRY(simulate_cost(&k, e));
    }
    if (!out->found && !out->interrupted) TRY(complete(&k, e));
    if (!out->found) out->verified = (struct planner_verified){.n = 0};
    if (!out->interrupted) settle(&k, r);
    return ERR_OK;
}
