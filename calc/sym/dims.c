#include "calc/sym/dims.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/sym/node.h"

/* A plain number from here on may be a rate or a size. */
static const double PLAIN = 1e5; /* not a unit */

/* Deeper or larger trees are not looked at: closed forms of sums within sums share their parts. */
enum { DEPTH = 2000, NODES = 1 << 18 };

struct walk {
    size_t left; /* nodes */
    int depth;
    struct sym_dims *one, *other; /* what is not the same */
};

/* Names that no text can have. */
static const char BYTES[] = "#bytes", FLOPS[] = "#flops", SECONDS[] = "#seconds", SAID[] = "#said";

const struct sym *sym_dims_leaf(struct sym_ctx *c, const char *name, enum units_kind kind)
{
    const struct sym *x = sym_var(c, name);
    const struct sym *bytes = sym_var(c, BYTES), *flops = sym_var(c, FLOPS), *seconds = sym_var(c, SECONDS);
    switch (kind) {
    case UNITS_BYTES:
    case UNITS_BYTES_PER_TOKEN:
    case UNITS_BYTES_PER_SEQUENCE: return sym_mul(c, x, bytes);
    case UNITS_FLOPS: return sym_mul(c, x, flops);
    case UNITS_SECONDS: return sym_mul(c, x, seconds);
    case UNITS_BYTES_PER_S: return sym_div(c, sym_mul(c, x, bytes), seconds);
    case UNITS_FLOPS_PER_S: return sym_div(c, sym_mul(c, x, flops), seconds);
    case UNITS_FLOPS_PER_BYTE: return sym_div(c, sym_mul(c, x, flops), bytes);
    case UNITS_TOK_PER_S:
    case UNITS_COUNT_PER_S: return sym_div(c, x, seconds);
    case UNITS_COUNT:
    case UNITS_FRAC:
    case UNITS_RATIO: return sym_mul(c, x, sym_var(c, SAID));
    case UNITS_NONE:
    case UNITS_USD:
    case UNITS_USD_PER_MTOK:
    case UNITS_WATTS: break;
    }
    return x;
}

static struct sym_dims of_name(const char *name)
{
    struct sym_dims d = {.said = *name == '#'};
    if (strcmp(name, BYTES) == 0) d.bytes = 1;
    if (strcmp(name, FLOPS) == 0) d.flops = 1;
    if (strcmp(name, SECONDS) == 0) d.seconds = 1;
    return d;
}

static struct sym_dims times(const struct sym_dims *a, const struct sym_dims *b, double power)
{
    return (struct sym_dims){.said = a->said || b->said,
                             .open = a->open || b->open,
                             .bytes = a->bytes + power * b->bytes,
                             .flops = a->flops + power * b->flops,
                             .seconds = a->seconds + power * b->seconds};
}

static bool same(double a, double b) { return fabs(a - b) < 1e-9; }

bool sym_dims_agree(const struct sym_dims *a, const struct sym_dims *b)
{
    if (!a->said || !b->said || a->open || b->open) return true;
    return same(a->bytes, b->bytes) && same(a->flops, b->flops) && same(a->seconds, b->seconds);
}

static bool walk(struct walk *w, const struct sym *e, struct sym_dims *out)
{
    const struct sym_dims nothing = {.said = false}, open = {.open = true};
    struct sym_dims a, b = nothing;
    double power;
    *out = nothing;
    if (w->depth >= DEPTH || w->left == 0) {
        *out = open;
        return true;
    }
    w->left--;
    if (e->op == SYM_CONST || sym_constant(e, &power)) {
        out->open = fabs(sym_value(e)) >= PLAIN || (fabs(sym_value(e)) > 0 && fabs(sym_value(e)) <= 1 / PLAIN);
        return true;
    }
    if (e->op == SYM_VAR) {
        *out = of_name(e->name);
        return true;
    }
    w->depth++;
    const bool read = walk(w, sym_left(e), &a) && (!sym_right(e) || walk(w, sym_right(e), &b));
    w->depth--;
    if (!read) return false;
    switch ((enum sym_op)e->op) {
    case SYM_ADD:
    case SYM_MIN:
    case SYM_MAX:
        if (!sym_dims_agree(&a, &b)) {
            *w->one = a;
            *w->other = b;
            return false;
        }
        *out = a.said && !a.open ? a : b.said && !b.open ? b : a.open ? a : b;
        return true;
    case SYM_MUL: *out = times(&a, &b, 1); return true;
    case SYM_DIV: *out = times(&a, &b, -1); return true;
    case SYM_POW: *out = sym_constant(sym_right(e), &power) ? times(&nothing, &a, power) : open; return true;
    case SYM_CEIL:
    case SYM_FLOOR: *out = a; return true;
    case SYM_LOG:
    case SYM_EXP:
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return true;
}

bool sym_dims_of(const struct sym *e, struct sym_dims *out, struct sym_dims *one, struct sym_dims *other)
{
    struct walk w = {NODES, 0, one, other};
    return walk(&w, e, out);
}

static size_t put(char *out, size_t n, const char *what, double power)
{
    if (!(power > 1e-9)) return n;
    n += (size_t)snprintf(out + n, SYM_DIMS_TEXT - n, "%s%s", n && out[n - 1] != '/' ? "*" : "", what);
    if (!same(power, 1)) n += (size_t)snprintf(out + n, SYM_DIMS_TEXT - n, "^%.3g", power);
    return n;
}

const char *sym_dims_text(const struct sym_dims *d, char out[SYM_DIMS_TEXT])
{
    const bool below = d->bytes < -1e-9 || d->flops < -1e-9 || d->seconds < -1e-9;
    const bool byte = d->bytes > -1.5;
    size_t n = put(out, 0, "flops", d->flops);
    n = put(out, n, "bytes", d->bytes);
    n = put(out, n, n ? "s" : "seconds", d->seconds);
    if (n == 0) n = (size_t)snprintf(out, SYM_DIMS_TEXT, "%s", below ? "1" : "a number");
    if (!below) return out;
    n += (size_t)snprintf(out + n, SYM_DIMS_TEXT - n, "/");
    n = put(out, n, "flops", -d->flops);
    n = put(out, n, byte ? "byte" : "bytes", -d->bytes);
    (void)put(out, n, "s", -d->seconds);
    return out;
}
