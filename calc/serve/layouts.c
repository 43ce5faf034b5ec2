/* layouts -- enumerate and price. */
#include "calc/serve/layouts.h"

#include <math.h>
#include <stdlib.h>

static bool kept(int64_t asked, int64_t n) { return asked <= 0 || asked == n; }

/* The same with ranks that share a context: one number, or all that can be. */
static size_t each_context(const struct layouts_request *q, struct layout l,
                           void (*each)(void *closure, const struct layout *l), void *closure)
{
    const int64_t most = q->any_context ? layout_context_most(q->model, l.tp) : 1;
    size_t n = 0;
    l.dcp = q->like.dcp;
    if (!q->any_context) {
        if (each) each(closure, &l);
        return 1;
    }
    for (l.dcp = 1; l.dcp <= most; l.dcp++) {
        if (most % l.dcp != 0) continue;
        if (each) each(closure, &l);
        n++;
    }
    return n;
}

/* Layouts of a stage of `group` ranks: attention groups, and parts of the experts. A model without experts has neither:
 * groups would be copies. */
static size_t each_group(const struct layouts_request *q, struct layout l, int64_t group, bool experts,
                         void (*each)(void *closure, const struct layout *l), void *closure)
{
    size_t n = 0;
    for (int64_t dp = 1; dp <= group; dp++) {
        if (group % dp != 0 || !kept(q->like.dp, dp) || !kept(q->like.tp, group / dp)) continue;
        if (!experts && dp > 1) break;
        for (int64_t ep = 1; ep <= group; ep++) {
            if (group % ep != 0 || !kept(q->like.ep, ep)) continue;
            if (!experts && ep > 1) break;
            l.dp = dp;
            l.tp = group / dp;
            l.ep = ep;
            l.skew = fmin(q->like.skew, layout_skew_most(q->model, &l));
            n += each_context(q, l, each, closure);
        }
    }
    return n;
}

size_t layouts_each(const struct layouts_request *q, void (*each)(void *closure, const struct layout *l), void *closure)
{
    const bool experts = layout_routed(q->model) != NULL;
    struct layout l = q->like;
    size_t n = 0;
    l.per_node = q->per_node;
    for (l.replicas = 1; l.replicas <= q->gpus; l.replicas++) {
        if (q->gpus % l.replicas != 0 || !kept(q->like.replicas, l.replicas)) continue;
        const int64_t copy = q->gpus / l.replicas;
        for (l.pp = 1; l.pp <= copy; l.pp++) {
            if (copy % l.pp != 0 || !kept(q->like.pp, l.pp)) continue;
            n += each_group(q, l, copy / l.pp, experts, each, closure);
        }
    }
    return n;
}

enum err_code layouts_price(struct arena *a, const struct layouts_request *q, const struct layout *l,
                            struct layouts_item *out, struct err *e)
{
    struct err why = {0};
    struct layouts_item r = {.layout = layout_whole(l)};
    r.batch = (q->batch + r.layout.replicas - 1) / r.layout.replicas;
    const enum err_code code =
        step_eval_layout(q->step, l, (double)r.batch, q->prompt, q->context, q->average, r.value, &why);
    if (code == ERR_USAGE || code == ERR_INPUT) {
        r.verdict = LAYOUTS_ILLEGAL;
        r.why = arena_strndup(a, why.text, sizeof why.text);
        if (!r.why) return err_nomem(e);
    } else if (code != ERR_OK) {
        return err_set(e, code, "%s", why.text);
    } else {
        r.left_bytes = q->capacity_bytes - r.value[STEP_memory_bytes];
        r.verdict = r.left_bytes < 0 ? LAYOUTS_SHORT : LAYOUTS_FITS;
        r.throughput_tok_per_s = (double)q->batch / r.value[STEP_decode_step_s];
    }
    *out = r;
    return ERR_OK;
}

struct listing {
    struct layout *at;
    size_t n;
};

static void keep(void *closure, const struct layout *l)
{
    struct listing *k = closure;
    k->at[k->n++] = *l;
}

static int order(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

/* Fewer stages, then fewer groups first among equals, so that the order is one. */
static int by_layout(const struct layout *a, const struct layout *b)
{
    const int64_t x[] = {a->pp, a->dp, a->ep, a->replicas, a->dcp}, y[] = {b->pp, b->dp, b->ep, b->replicas, b->dcp};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int by_worth(const void *a, const void *b)
{
    const struct layouts_item *x = a, *y = b;
    if (x->verdict != y->verdict) return x->verdict < y->verdict ? -1 : 1;
    int r = 0;
    if (x->verdict == LAYOUTS_FITS) r = order(y->throughput_tok_per_s, x->throughput_tok_per_s);
    if (x->verdict == LAYOUTS_SHORT) r = order(y->left_bytes, x->left_bytes);
    return r ? r : by_layout(&x->layout, &y->layout);
}

enum err_code layouts_list(struct arena *a, const struct layouts_request *q, struct layouts_item **out, size_t *n,
                           struct err *e)
{
    const size_t all = layouts_each(q, NULL, NULL);
    struct listing k = {.at = arena_array(a, all + 1, sizeof *k.at)};
    struct layouts_item *items = arena_array(a, all + 1, sizeof *items);
    if (!k.at || !items) return err_nomem(e);
    (void)layouts_each(q, keep, &k);
    for (size_t i = 0; i < all; i++) TRY(layouts_price(a, q, &k.at[i], &items[i], e));
    qsort(items, all, sizeof *items, by_worth);
    *out = items;
    *n = all;
    return ERR_OK;
}
