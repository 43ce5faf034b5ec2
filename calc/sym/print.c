#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/node.h"

/* An expression is a few pieces, each literal text or an operand; the pieces give both the length (memoised over the
 * shared graph, so a text too long to write is still measured) and the text, without recursion. */
struct piece {
    const struct sym *e; /* NULL: text */
    bool bare;           /* without the leading minus */
    char text[32];
};

struct pieces {
    size_t n;
    struct piece at[5 * SYM_BLOCK]; /* of each factor: ( factor ) ^n * */
};

enum rank { RANK_SUM, RANK_PRODUCT, RANK_POWER, RANK_ATOM };

static void add_text(struct pieces *p, const char *text)
{
    struct piece *x = &p->at[p->n++];
    x->e = NULL;
    (void)snprintf(x->text, sizeof x->text, "%s", text);
}

static void add_expr(struct pieces *p, const struct sym *e, bool bare)
{
    p->at[p->n++] = (struct piece){.e = e, .bare = bare};
}

/* x in as few digits as read back the same */
static void decimal(double x, char *out, size_t cap)
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, cap, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break;
    }
}

/* 0.85 rather than 7656119366529843/9007199254740992: a double whose decimal is the same number to a reader */
static bool is_decimal(const struct sym *e)
{
    return e->opaque || (e->den > 64 && (e->den & (e->den - 1)) == 0 && rat_magnitude(e->num) <= UINT64_C(1) << 53);
}

/* |numerator| of a constant, or its decimal */
static void add_magnitude(struct pieces *p, const struct sym *e)
{
    char text[32];
    if (is_decimal(e))
        decimal(fabs(e->value), text, sizeof text);
    else
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)rat_magnitude(e->num));
    add_text(p, text);
}

static bool has_denominator(const struct sym *e) { return !is_decimal(e) && e->den != 1; }

static void add_denominator(struct pieces *p, const char *before, const struct sym *e, const char *after)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%s%lld%s", before, (long long)e->den, after);
    add_text(p, text);
}

static enum rank rank_of(const struct sym *e)
{
    switch (sym_op(e)) {
    case SYM_ADD: return RANK_SUM;
    case SYM_MUL:
    case SYM_DIV: return RANK_PRODUCT;
    case SYM_CONST: return e->minus ? RANK_SUM : has_denominator(e) ? RANK_PRODUCT : RANK_ATOM;
    case SYM_POW: return RANK_POWER;
    case SYM_VAR:
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR: break;
    }
    return RANK_ATOM;
}

/* an operand, in parentheses when it binds less tightly than wanted */
static void add_operand(struct pieces *p, const struct sym *e, bool parenthesised)
{
    if (parenthesised) add_text(p, "(");
    add_expr(p, e, false);
    if (parenthesised) add_text(p, ")");
}

static void add_constant(struct pieces *p, const struct sym *e)
{
    add_magnitude(p, e);
    if (has_denominator(e)) add_denominator(p, "/", e, "");
}

static void add_scaled(struct pieces *p, const struct sym *k, const struct sym *m)
{
    const bool unit = !is_decimal(k) && rat_magnitude(k->num) == 1;
    if (!unit) {
        add_magnitude(p, k);
        add_text(p, "*");
    }
    if (has_denominator(k) && m->op == SYM_DIV) {
        add_operand(p, m->a, rank_of(m->a) < RANK_PRODUCT || m->a->minus);
        add_denominator(p, "/(", k, "*");
        add_operand(p, m->b, rank_of(m->b) < RANK_PRODUCT || m->b->minus);
        add_text(p, ")");
        return;
    }
    add_operand(p, m, rank_of(m) < RANK_PRODUCT || m->minus);
    if (has_denominator(k)) add_denominator(p, "/", k, "");
}

/* equal factors are neighbours: S*S is S^2 */
static void add_product(struct pieces *p, const struct sym *e)
{
    const struct sym *f[SYM_BLOCK] = {e->a, e->b};
    const size_t n =
        sym_n_factors(e) > 1 ? sym_factors(e, f) : 2; /* 2: a product too long to be flat, or of closed parts */
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && f[j] == f[i];) j++;
        const bool power = j - i > 1;
        if (i) add_text(p, "*");
        add_operand(p, f[i],
                    rank_of(f[i]) < (power ? RANK_ATOM : RANK_PRODUCT) || f[i]->minus ||
                        (f[i]->op == SYM_DIV && j < n));
        if (!power) continue;
        char text[32];
        (void)snprintf(text, sizeof text, "^%zu", j - i);
        add_text(p, text);
    }
}

static void add_sum(struct pieces *p, const struct sym *e)
{
    const bool swap = e->a->minus && !e->b->minus;
    const struct sym *x = swap ? e->b : e->a, *y = swap ? e->a : e->b;
    add_expr(p, x, false);
    add_text(p, y->minus ? " - " : " + ");
    add_expr(p, y, y->minus);
}

static void add_call(struct pieces *p, const char *name, const struct sym *e)
{
    add_text(p, name);
    add_expr(p, e->a, false);
    if (e->b) {
        add_text(p, ", ");
        add_expr(p, e->b, false);
    }
    add_text(p, ")");
}

static struct pieces pieces_of(const struct sym *e, bool bare)
{
    struct pieces p;
    p.n = 0;
    const bool own_minus = e->minus && (e->op == SYM_CONST || e->op == SYM_MUL); /* others take it from an operand */
    if (own_minus && !bare) add_text(&p, "-");
    switch (sym_op(e)) {
    case SYM_CONST: add_constant(&p, e); break;
    case SYM_VAR: add_expr(&p, e, false); break;
    case SYM_ADD:
        add_sum(&p, e);
        p.at[0].bare = bare;
        break;
    case SYM_MUL:
        if (e->a->op == SYM_CONST) {
            add_scaled(&p, e->a, e->b);
            break;
        }
        add_product(&p, e);
        break;
    case SYM_DIV:
        add_operand(&p, e->a, e->a->op == SYM_ADD);
        if (e->a->op != SYM_ADD) p.at[0].bare = bare;
        add_text(&p, "/");
        add_operand(&p, e->b, rank_of(e->b) < RANK_POWER);
        break;
    case SYM_POW:
        add_operand(&p, e->a, rank_of(e->a) < RANK_ATOM);
        add_text(&p, "^");
        add_operand(&p, e->b, rank_of(e->b) < RANK_ATOM);
        break;
    case SYM_MIN: add_call(&p, "min(", e); break;
    case SYM_MAX: add_call(&p, "max(", e); break;
    case SYM_CEIL: add_call(&p, "ceil(", e); break;
    case SYM_FLOOR: add_call(&p, "floor(", e); break;
    }
    return p;
}

static size_t saturating(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/* characters of the whole text; the bare one is a character less wherever there is a minus to lose */
static size_t measure(const struct sym_order *o, size_t *length)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->node[i]->op == SYM_VAR) {
            length[i] = strlen(o->node[i]->name);
            continue;
        }
        const struct pieces p = pieces_of(o->node[i], false);
        for (size_t j = 0; j < p.n; j++) {
            const struct piece *x = &p.at[j];
            const size_t n = x->e ? length[o->pos[x->e->index] - 1] - (x->bare ? 1 : 0) : strlen(x->text);
            length[i] = saturating(length[i], n);
        }
    }
    return length[o->n - 1];
}

struct sink {
    char *buf;
    size_t cap, used;
};

static bool put(struct sink *s, const char *text) /* false when full */
{
    for (; *text; text++) {
        if (s->used + 1 >= s->cap) return false;
        s->buf[s->used++] = *text;
    }
    return true;
}

static bool reserve(struct arena *scratch, struct piece **stack, size_t *cap, size_t used)
{
    if (*cap - used >= sizeof(struct pieces) / sizeof(struct piece)) return true;
    const size_t n = *cap ? 2 * *cap : 256;
    struct piece *grown = arena_array(scratch, n, sizeof *grown);
    if (!grown) return false;
    if (used) memcpy(grown, *stack, used * sizeof *grown);
    *stack = grown;
    *cap = n;
    return true;
}

static void emit(struct arena *scratch, const struct sym *e, struct sink *s)
{
    struct piece *stack = NULL;
    size_t cap = 0, n = 0;
    if (!reserve(scratch, &stack, &cap, n)) return;
    stack[n++] = (struct piece){.e = e};
    while (n) {
        const struct piece x = stack[--n];
        const char *text = !x.e ? x.text : sym_name(x.e);
        if (text) {
            if (!put(s, text)) return;
            continue;
        }
        const struct pieces p = pieces_of(x.e, x.bare);
        if (!reserve(scratch, &stack, &cap, n)) return;
        for (size_t i = p.n; i-- > 0;) stack[n++] = p.at[i];
    }
}

size_t sym_print(const struct sym *e, char *buf, size_t cap)
{
    struct sink s = {buf, cap, 0};
    struct sym_order o;
    size_t total = 0, *length;
    struct arena *scratch = arena_open();
    if (scratch && sym_order_make(scratch, 1, &e, &o) && (length = arena_array(scratch, o.n, sizeof *length))) {
        total = measure(&o, length);
        if (cap > 1) emit(scratch, e, &s);
    }
    if (cap) buf[s.used] = '\0';
    arena_close(scratch);
    return total;
}
