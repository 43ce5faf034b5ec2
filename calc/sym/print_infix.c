/* Text, C and gnuplot: one grammar of operators, three ways to write a power, a number and a function. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/sym/print_piece.h"

enum rank { RANK_SUM, RANK_PRODUCT, RANK_POWER, RANK_ATOM };

enum { LIMB_DIGITS = 18, LONG_DEPTH = 6 };
static const uint64_t LIMB = UINT64_C(1000000000000000000); /* not a unit */

/* A positive whole number below 10^36: high*10^18 + low. */
struct long_whole {
    uint64_t high, low;
};

/* x*n by doubling: no type is longer than 64 bits. false: too large */
static bool long_times(struct long_whole x, uint64_t n, struct long_whole *out)
{
    struct long_whole r = {0, 0};
    for (int bit = 63; bit >= 0; bit--) {
        r.low *= 2;
        r.high = 2 * r.high + (r.low >= LIMB);
        r.low -= r.low >= LIMB ? LIMB : 0;
        if (n >> bit & 1) {
            r.low += x.low;
            r.high += x.high + (r.low >= LIMB);
            r.low -= r.low >= LIMB ? LIMB : 0;
        }
        if (r.high >= LIMB) return false;
    }
    *out = r;
    return true;
}

/* e as such a number: what the parser and exact algebra build of numbers beyond 64 bits */
static bool read_long(const struct sym *e, int depth, struct long_whole *out)
{
    struct long_whole x, y;
    if (!e->closed || !e->above || depth > LONG_DEPTH) return false;
    if (e->op == SYM_CONST) {
        if (e->opaque || e->den != 1) return false;
        *out = (struct long_whole){(uint64_t)e->num / LIMB, (uint64_t)e->num % LIMB};
        return true;
    }
    if (e->op != SYM_ADD && e->op != SYM_MUL) return false;
    if (!read_long(e->a, depth + 1, &x) || !read_long(e->b, depth + 1, &y)) return false;
    if (e->op == SYM_MUL) {
        if (x.high > 9 && y.high > 9) return false;
        const struct long_whole n = x.high > 9 ? y : x;
        return long_times(x.high > 9 ? x : y, n.high * LIMB + n.low, out);
    }
    x.low += y.low;
    x.high += y.high + (x.low >= LIMB);
    x.low -= x.low >= LIMB ? LIMB : 0;
    *out = x;
    return x.high < LIMB;
}

static bool is_long(const struct sym *e, enum sym_style style, struct long_whole *out)
{
    return style == SYM_TEXT && e->closed && e->whole && (e->op == SYM_ADD || e->op == SYM_MUL) && read_long(e, 0, out);
}

static enum rank rank_of(const struct sym *e, enum sym_style style)
{
    struct long_whole n;
    if (is_long(e, style, &n)) return RANK_ATOM;
    switch (sym_op(e)) {
    case SYM_ADD: return RANK_SUM;
    case SYM_MUL:
    case SYM_DIV: return RANK_PRODUCT;
    case SYM_CONST: return e->minus ? RANK_SUM : print_has_denominator(e) ? RANK_PRODUCT : RANK_ATOM;
    case SYM_POW: return style == SYM_C ? RANK_ATOM : RANK_POWER;
    case SYM_VAR:
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_LOG:
    case SYM_EXP: break;
    }
    return RANK_ATOM;
}

/* an operand, in parentheses when it binds less tightly than wanted */
static void add_operand(struct pieces *p, const struct sym *e, bool parenthesised)
{
    if (parenthesised) print_text(p, "(");
    print_expr(p, e, false);
    if (parenthesised) print_text(p, ")");
}

static void add_integer(struct pieces *p, const char *before, uint64_t n, const char *after, enum sym_style style)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%s%llu%s%s", before, (unsigned long long)n, style == SYM_TEXT ? "" : ".0",
                   after);
    print_text(p, text);
}

/* |numerator| of a constant, or its decimal */
static void add_magnitude(struct pieces *p, const struct sym *e, enum sym_style style)
{
    char text[32];
    if (!print_is_decimal(e)) {
        add_integer(p, "", rat_magnitude(e->num), "", style);
        return;
    }
    print_decimal(e, text, sizeof text);
    if (style == SYM_TEXT || isfinite(e->value)) {
        print_text(p, text);
        if (style != SYM_TEXT && !strpbrk(text, ".en")) print_text(p, ".0");
    } else if (style == SYM_C) {
        print_text(p, isnan(e->value) ? "NAN" : "INFINITY");
    } else {
        print_text(p, isnan(e->value) ? "NaN" : "1e999");
    }
}

static void add_constant(struct pieces *p, const struct sym *e, enum sym_style style)
{
    add_magnitude(p, e, style);
    if (print_has_denominator(e)) add_integer(p, "/", (uint64_t)e->den, "", style);
}

static void add_scaled(struct pieces *p, const struct sym *k, const struct sym *m, enum sym_style style)
{
    const bool unit = !print_is_decimal(k) && rat_magnitude(k->num) == 1;
    if (!unit) {
        add_magnitude(p, k, style);
        print_text(p, "*");
    }
    if (print_has_denominator(k) && m->op == SYM_DIV) {
        add_operand(p, m->a, rank_of(m->a, style) < RANK_PRODUCT || m->a->minus);
        add_integer(p, "/(", (uint64_t)k->den, "*", style);
        add_operand(p, m->b, rank_of(m->b, style) < RANK_PRODUCT || m->b->minus);
        print_text(p, ")");
        return;
    }
    add_operand(p, m, rank_of(m, style) < RANK_PRODUCT || m->minus);
    if (print_has_denominator(k)) add_integer(p, "/", (uint64_t)k->den, "", style);
}

/* equal factors are neighbours: S*S is S^2 */
static void add_product(struct pieces *p, const struct sym *e, enum sym_style style)
{
    const struct sym *f[SYM_BLOCK] = {e->a, e->b};
    const size_t n =
        sym_n_factors(e) > 1 ? sym_factors(e, f) : 2; /* 2: a product too long to be flat, or of closed parts */
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && f[j] == f[i];) j++;
        const bool power = j - i > 1, call = power && style == SYM_C;
        if (i) print_text(p, "*");
        if (call) print_text(p, "pow(");
        add_operand(p, f[i],
                    !call && (rank_of(f[i], style) < (power ? RANK_ATOM : RANK_PRODUCT) || f[i]->minus ||
                              (f[i]->op == SYM_DIV && j < n)));
        if (power) add_integer(p, call ? ", " : style == SYM_GNUPLOT ? "**" : "^", j - i, call ? ")" : "", style);
    }
}

/* gnuplot divides integers as integers */
static void add_quotient(struct pieces *p, const struct sym *e, bool bare, enum sym_style style)
{
    if (style == SYM_GNUPLOT && e->a->op != SYM_CONST) {
        if (e->minus && !bare) print_text(p, "-");
        print_text(p, "real(");
        print_expr(p, e->a, e->minus);
        print_text(p, ")");
    } else {
        const size_t first = p->n;
        add_operand(p, e->a, e->a->op == SYM_ADD);
        if (e->a->op != SYM_ADD) p->at[first].bare = bare;
    }
    print_text(p, "/");
    add_operand(p, e->b, rank_of(e->b, style) < RANK_POWER);
}

static void add_call(struct pieces *p, const char *name, const struct sym *e)
{
    print_text(p, name);
    print_text(p, "(");
    print_expr(p, e->a, false);
    if (e->b) {
        print_text(p, ", ");
        print_expr(p, e->b, false);
    }
    print_text(p, ")");
}

static void add_power(struct pieces *p, const struct sym *e, enum sym_style style)
{
    if (style == SYM_C) {
        add_call(p, "pow", e);
        return;
    }
    add_operand(p, e->a, rank_of(e->a, style) < RANK_ATOM);
    print_text(p, style == SYM_GNUPLOT ? "**" : "^");
    add_operand(p, e->b, rank_of(e->b, style) < RANK_ATOM);
}

static void add_extreme(struct pieces *p, const struct sym *e, enum sym_style style)
{
    const bool least = e->op == SYM_MIN;
    if (style != SYM_GNUPLOT) {
        add_call(p, style == SYM_TEXT ? (least ? "min" : "max") : (least ? "fmin" : "fmax"), e);
        return;
    }
    print_text(p, "(");
    print_expr(p, e->a, false);
    print_text(p, least ? " < " : " > ");
    print_expr(p, e->b, false);
    print_text(p, " ? ");
    print_expr(p, e->a, false);
    print_text(p, " : ");
    print_expr(p, e->b, false);
    print_text(p, ")");
}

static void add_whole(struct pieces *p, const struct sym *e, enum sym_style style)
{
    if (style == SYM_GNUPLOT) print_text(p, "real("); /* its ceil is an integer */
    add_call(p, e->op == SYM_CEIL ? "ceil" : "floor", e);
    if (style == SYM_GNUPLOT) print_text(p, ")");
}

static void add_long(struct pieces *p, struct long_whole n)
{
    char text[32];
    if (n.high) {
        add_integer(p, "", n.high, "", SYM_TEXT);
        (void)snprintf(text, sizeof text, "%0*llu", LIMB_DIGITS, (unsigned long long)n.low);
        print_text(p, text);
    } else {
        add_integer(p, "", n.low, "", SYM_TEXT);
    }
}

void print_infix_pieces(struct pieces *p, const struct sym *e, bool bare, enum sym_style style)
{
    struct long_whole n;
    if (is_long(e, style, &n)) {
        add_long(p, n);
        return;
    }
    if (e->minus && (e->op == SYM_CONST || e->op == SYM_MUL) && !bare) print_text(p, "-");
    switch (sym_op(e)) {
    case SYM_CONST: add_constant(p, e, style); break;
    case SYM_VAR: print_expr(p, e, false); break;
    case SYM_ADD: print_sum(p, e, bare); break;
    case SYM_MUL:
        if (e->a->op == SYM_CONST)
            add_scaled(p, e->a, e->b, style);
        else
            add_product(p, e, style);
        break;
    case SYM_DIV: add_quotient(p, e, bare, style); break;
    case SYM_POW: add_power(p, e, style); break;
    case SYM_MIN:
    case SYM_MAX: add_extreme(p, e, style); break;
    case SYM_CEIL:
    case SYM_FLOOR: add_whole(p, e, style); break;
    case SYM_LOG: add_call(p, "log", e); break;
    case SYM_EXP: add_call(p, "exp", e); break;
    }
}

bool print_infix_name(struct print_sink *s, const char *name)
{
    if (*name >= '0' && *name <= '9' && !print_put(s, "_", 1)) return false;
    for (; *name; name++) {
        const unsigned char c = (unsigned char)*name;
        char hex[8];
        const bool fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!fine) (void)snprintf(hex, sizeof hex, "_x%02x", c);
        if (!(fine ? print_put(s, name, 1) : print_put(s, hex, strlen(hex)))) return false;
    }
    return true;
}
