#include <string.h>

#include "calc/sym/node.h"

struct list {
    const struct sym **at;
    size_t n, cap;
};

static bool push(struct arena *a, struct list *l, const struct sym *e)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 32;
        const struct sym **grown = arena_array(a, cap, sizeof *grown);
        if (!grown) return false;
        if (l->n) memcpy(grown, l->at, l->n * sizeof *grown);
        l->at = grown;
        l->cap = cap;
    }
    l->at[l->n++] = e;
    return true;
}

/* Only pos is as large as the context: the walk of a small expression touches little of it. */
bool sym_order_make(struct arena *scratch, size_t n, const struct sym *const *roots, struct sym_order *o)
{
    struct list path = {0}, done = {0};
    *o = (struct sym_order){.n_index = 1};
    for (size_t i = 0; i < n; i++)
        if (roots[i]->index >= o->n_index) o->n_index = (size_t)roots[i]->index + 1;
    o->pos = arena_array(scratch, o->n_index, sizeof *o->pos);
    if (!o->pos) return false;
    for (size_t i = 0; i < n; i++) {
        if (!push(scratch, &path, roots[i])) return false;
        while (path.n) {
            const struct sym *e = path.at[path.n - 1], *x = sym_left(e), *y = sym_right(e);
            if (x && y && y->need > x->need) {
                x = y;
                y = sym_left(e);
            }
            const struct sym *next = x && !o->pos[x->index] ? x : y && !o->pos[y->index] ? y : NULL;
            if (next) {
                if (!push(scratch, &path, next)) return false;
                continue;
            }
            path.n--;
            if (o->pos[e->index]) continue;
            if (!push(scratch, &done, e)) return false;
            o->pos[e->index] = (uint32_t)done.n;
        }
    }
    o->node = done.at;
    o->n = done.n;
    return true;
}

struct binder {
    struct sym_ctx *c;
    struct sym_order order;
    const struct sym **memo; /* [position] bound value */
    uint8_t *uses;           /* [position] 0, 1, 2 = more */
    bool *inner;             /* [position] a sum whose only user is a sum: flattened there, never bound itself */
    const struct sym **stack;
};

static size_t at(const struct binder *b, const struct sym *e) { return b->order.pos[e->index] - 1; }

static const struct sym *bind_sum(struct binder *b, const struct sym *root)
{
    bool changed = false;
    size_t n = 0;
    b->c->n_terms = 0;
    b->stack[n++] = root;
    while (n) {
        const struct sym *e = b->stack[--n];
        if (e == root || b->inner[at(b, e)]) {
            b->stack[n++] = e->b;
            b->stack[n++] = e->a;
            continue;
        }
        changed = changed || b->memo[at(b, e)] != e;
        sym_push_operand(b->c, b->memo[at(b, e)]);
    }
    if (changed) return sym_collect(b->c);
    b->c->n_terms = 0;
    return root;
}

static const struct sym *bind_node(struct binder *b, const struct sym *e)
{
    if (!sym_left(e) || e->closed) return e;
    if (e->op == SYM_ADD) return bind_sum(b, e);
    const struct sym *x = b->memo[at(b, e->a)], *y = e->b ? b->memo[at(b, e->b)] : NULL;
    if (x == e->a && y == e->b) return e;
    return sym_rebuild(b->c, e, x, y);
}

static bool binder_make(struct binder *b, struct arena *scratch, size_t n, const struct sym *const *roots)
{
    if (!sym_order_make(scratch, n, roots, &b->order)) return false;
    const size_t count = b->order.n;
    b->memo = arena_array(scratch, count, sizeof *b->memo);
    b->uses = arena_array(scratch, count, sizeof *b->uses);
    b->inner = arena_array(scratch, count, sizeof *b->inner);
    b->stack = arena_array(scratch, count + 1, sizeof *b->stack);
    if (!b->memo || !b->uses || !b->inner || !b->stack) return false;
    for (size_t i = 0; i < n; i++) b->uses[at(b, roots[i])] = 2;
    for (size_t i = 0; i < count; i++) {
        const struct sym *e = b->order.node[i], *x = sym_left(e), *y = sym_right(e);
        if (x && b->uses[at(b, x)] < 2) b->uses[at(b, x)]++;
        if (y && b->uses[at(b, y)] < 2) b->uses[at(b, y)]++;
        if (e->op != SYM_ADD || e->closed) continue;
        b->inner[at(b, x)] = x->op == SYM_ADD && !x->closed;
        b->inner[at(b, y)] = y->op == SYM_ADD && !y->closed;
    }
    for (size_t i = 0; i < count; i++) b->inner[i] = b->inner[i] && b->uses[i] == 1;
    return true;
}

void sym_bind_all(struct sym_ctx *c, size_t n_exprs, const struct sym *const *in, const struct sym **out,
                  const struct sym_binding *env, size_t n)
{
    struct binder b = {.c = c};
    struct arena *scratch = arena_open();
    if (!scratch || !binder_make(&b, scratch, n_exprs, in)) (void)sym_fail(c);
    if (!c->failed) {
        size_t p;
        for (size_t i = n; i-- > 0;)
            if (sym_order_find(&b.order, env[i].var, &p)) b.memo[p] = env[i].value;
        for (p = 0; p < b.order.n; p++)
            if (!b.memo[p] && !b.inner[p]) b.memo[p] = bind_node(&b, b.order.node[p]);
    }
    for (size_t i = 0; i < n_exprs; i++) out[i] = c->failed ? &c->failed_node : b.memo[at(&b, in[i])];
    arena_close(scratch);
}

const struct sym *sym_bind(struct sym_ctx *c, const struct sym *e, const struct sym_binding *env, size_t n)
{
    const struct sym *out;
    sym_bind_all(c, 1, &e, &out, env, n);
    return out;
}
