#include "calc/sym/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/print_piece.h"

void print_text(struct pieces *p, const char *text)
{
    struct piece *x = &p->at[p->n++];
    x->e = NULL;
    (void)snprintf(x->text, sizeof x->text, "%s", text);
}

void print_expr(struct pieces *p, const struct sym *e, bool bare)
{
    p->at[p->n++] = (struct piece){.e = e, .bare = bare};
}

void print_sum(struct pieces *p, const struct sym *e, bool bare)
{
    const bool swap = e->a->minus && !e->b->minus;
    const struct sym *x = swap ? e->b : e->a, *y = swap ? e->a : e->b;
    print_expr(p, x, bare);
    print_text(p, y->minus ? " - " : " + ");
    print_expr(p, y, y->minus);
}

bool print_is_decimal(const struct sym *e)
{
    const bool part = !e->opaque && rat_magnitude(e->num) == 1 && e->den <= 512; /* x/128, not 0.0078125*x */
    return !part &&
           (e->opaque || (e->den > 64 && (e->den & (e->den - 1)) == 0 && rat_magnitude(e->num) <= UINT64_C(1) << 53));
}

bool print_has_denominator(const struct sym *e) { return !print_is_decimal(e) && e->den != 1; }

void print_decimal(const struct sym *e, char *out, size_t cap)
{
    const double x = fabs(e->value);
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, cap, "%.*g", digits, x);
        if (strtod(out, NULL) == x) break;
    }
}

bool print_takes_minus(const struct sym *e) { return e->minus && e->op != SYM_ADD; }

/* ---- measuring and writing ---- */

static size_t saturating(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

bool print_put(struct print_sink *s, const char *text, size_t n)
{
    const size_t room = s->cap > s->used + 1 ? s->cap - s->used - 1 : 0, k = n < room ? n : room;
    if (k) memcpy(s->buf + s->used, text, k);
    s->used += k;
    s->total = saturating(s->total, n);
    return k == n || s->cap == 0;
}

static bool plain_name(struct print_sink *s, const char *name) { return print_put(s, name, strlen(name)); }

/* characters of the whole text; the bare one is a character less wherever there is a minus to lose */
static size_t measure(const struct sym_order *o, const struct print_style *with, enum sym_style style, size_t *length)
{
    struct pieces p;
    for (size_t i = 0; i < o->n; i++) {
        if (o->node[i]->op == SYM_VAR) {
            struct print_sink s = {NULL, 0, 0, 0};
            (void)with->name(&s, o->node[i]->name);
            length[i] = s.total;
            continue;
        }
        p.n = 0;
        with->pieces(&p, o->node[i], false, style);
        for (size_t j = 0; j < p.n; j++) {
            const struct piece *x = &p.at[j];
            const size_t n = x->e ? length[o->pos[x->e->index] - 1] - (x->bare ? 1 : 0) : strlen(x->text);
            length[i] = saturating(length[i], n);
        }
    }
    return length[o->n - 1];
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

static void emit(struct arena *scratch, const struct sym *e, const struct print_style *with, enum sym_style style,
                 struct print_sink *s)
{
    struct piece *stack = NULL;
    size_t cap = 0, n = 0;
    struct pieces p;
    if (!reserve(scratch, &stack, &cap, n)) return;
    stack[n++] = (struct piece){.e = e};
    while (n) {
        const struct piece x = stack[--n];
        if (!x.e || x.e->op == SYM_VAR) {
            if (!(x.e ? with->name(s, x.e->name) : print_put(s, x.text, strlen(x.text)))) return;
            continue;
        }
        p.n = 0;
        with->pieces(&p, x.e, x.bare, style);
        if (!reserve(scratch, &stack, &cap, n)) return;
        for (size_t i = p.n; i-- > 0;) stack[n++] = p.at[i];
    }
}

size_t sym_print_as(const struct sym *e, enum sym_style style, char *buf, size_t cap)
{
    static const struct print_style STYLES[] = {
        [SYM_TEXT] = {print_infix_pieces, plain_name},
        [SYM_LATEX] = {print_latex_pieces, print_latex_name},
        [SYM_C] = {print_infix_pieces, print_infix_name},
        [SYM_GNUPLOT] = {print_infix_pieces, print_infix_name},
    };
    const struct print_style *with = &STYLES[style];
    struct print_sink s = {buf, cap, 0, 0};
    struct sym_order o;
    size_t total = 0, *length;
    struct arena *scratch = arena_open();
    if (scratch && sym_order_make(scratch, 1, &e, &o) && (length = arena_array(scratch, o.n, sizeof *length))) {
        total = measure(&o, with, style, length);
        if (cap > 1) emit(scratch, e, with, style, &s);
    }
    if (cap) buf[s.used] = '\0';
    arena_close(scratch);
    return total;
}

size_t sym_print(const struct sym *e, char *buf, size_t cap) { return sym_print_as(e, SYM_TEXT, buf, cap); }
