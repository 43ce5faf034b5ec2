#include "calc/learn/sizes.h"

enum { KINDS_MAX = 64 };

static enum err_code add(const struct quantity_scope *s, struct sizes *z, int kind, struct err *e)
{
    const struct sym *whole, *rank = NULL;
    TRY(cost_size(s->c, &s->y, s->model, kind, 1, z->var, &whole, e));
    if (!whole) return ERR_OK;
    TRY(cost_size(s->c, &s->y, s->model, kind, s->tp, z->var, &rank, e));
    const uint64_t bit = kind < 0 ? UINT64_MAX : UINT64_C(1) << kind;
    for (size_t i = 0; i < z->n; i++)
        if (z->at[i].whole == whole) {
            z->at[i].kinds |= bit;
            return ERR_OK;
        }
    if (z->n < SIZES_MAX) z->at[z->n++] = (struct size){whole, rank ? rank : whole, bit};
    return ERR_OK;
}

static void set_one(struct sizes *z, const struct sym *value)
{
    z->at[0] = (struct size){value, value, UINT64_MAX};
    z->n = 1;
}

enum err_code sizes_of(const struct quantity_scope *s, const struct sym *var, uint64_t kinds, struct sizes *out,
                       struct err *e)
{
    struct sizes z = {.var = var};
    const struct model *m = s->model;
    if (var == s->y.t) set_one(&z, sym_int(s->c, s->tp));
    if (var == s->y.r && s->tp > 1) set_one(&z, timed_wire_factor(s->c, s->hw, s->tp));
    if (z.n == 0 && m) TRY(add(s, &z, -1, e));
    const size_t n = m && z.n == 0 ? m->kinds_n : 0;
    for (size_t k = 0; k < n && k < KINDS_MAX; k++)
        if (kinds >> k & 1) TRY(add(s, &z, (int)k, e));
    *out = z;
    return sym_check(s->c, e);
}

enum err_code sizes_all(const struct quantity_scope *s, uint64_t kinds, struct sizes out[SIZES_SYMBOLS], size_t *n,
                        struct err *e)
{
    const struct {
        const struct sym *var;
        const char *meaning;
    } all[] = {
#define X(field, text, meaning_) {s->y.field, meaning_},
        COST_SYMBOLS(X)
#undef X
    };
    _Static_assert(sizeof all / sizeof all[0] <= SIZES_SYMBOLS, "room for all symbols");
    *n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct sym *var = all[i].var;
        if (var == s->y.B || var == s->y.S || var == s->y.T || var == s->y.M) continue;
        TRY(sizes_of(s, var, kinds, &out[*n], e));
        out[*n].meaning = all[i].meaning;
        (*n)++;
    }
    return ERR_OK;
}

static const char *number_text(const struct quantity_scope *s, const struct size *x, bool rank)
{
    double whole = 0, part = 0;
    (void)sym_constant(x->whole, &whole);
    (void)sym_constant(x->rank, &part);
    if (!rank || x->whole == x->rank) return arena_printf(s->arena, "%.15g", whole);
    if (part * (double)s->tp > whole || part * (double)s->tp < whole) /* rounded up, or copied */
        return arena_printf(s->arena, "%.15g of %.15g", part, whole);
    return arena_printf(s->arena, "%.15g/%lld = %.15g", whole, (long long)s->tp, part);
}

static const char *kinds_text(const struct quantity_scope *s, uint64_t kinds)
{
    size_t n = 0, last = 0;
    const char *text = NULL;
    for (size_t k = 0; k < KINDS_MAX; k++)
        if (kinds >> k & 1) last = k;
    for (size_t k = 0; k <= last; k++) {
        if (!(kinds >> k & 1)) continue;
        text = n++ == 0 ? arena_printf(s->arena, "%zu", k + 1)
                        : arena_printf(s->arena, "%s%s%zu", text, k == last ? " and " : ", ", k + 1);
        if (!text) return NULL;
    }
    return arena_printf(s->arena, "layer kind%s %s", n > 1 ? "s" : "", text);
}

const char *sizes_text(const struct quantity_scope *s, const struct sizes *z, bool rank)
{
    const char *text = "";
    for (size_t i = 0; text && i < z->n; i++) {
        const char *number = number_text(s, &z->at[i], rank);
        if (z->n == 1 || !number) return number;
        const char *kinds = kinds_text(s, z->at[i].kinds);
        text = kinds ? arena_printf(s->arena, "%s%s%s in %s", text, i ? ", " : "", number, kinds) : NULL;
    }
    return text;
}

uint64_t sizes_kinds(const struct quantity_topic *q)
{
    uint64_t kinds = 0;
    if (q->whole) return UINT64_MAX;
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        const int k = q->pass.ops.op[i].kind_index;
        if (k >= 0 && k < KINDS_MAX) kinds |= UINT64_C(1) << k;
    }
    return kinds;
}
