/* Units behind numbers. */
#include <math.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/sym/dims.h"
#include "calc/sym/node.h"
#include "calc/sym/parse_grammar.h"

enum { UNIT_BYTES_MAX = 40 };

static bool is_wanted(enum units_kind kind)
{
    switch (kind) {
    case UNITS_COUNT: /* tokens */
    case UNITS_BYTES:
    case UNITS_FLOPS:
    case UNITS_SECONDS:
    case UNITS_BYTES_PER_S:
    case UNITS_FLOPS_PER_S:
    case UNITS_TOK_PER_S:
    case UNITS_FRAC:
    case UNITS_FLOPS_PER_BYTE:
    case UNITS_BYTES_PER_TOKEN:
    case UNITS_BYTES_PER_SEQUENCE: return true;
    case UNITS_NONE:
    case UNITS_COUNT_PER_S:
    case UNITS_RATIO:
    case UNITS_USD:
    case UNITS_USD_PER_MTOK:
    case UNITS_WATTS: break;
    }
    return false;
}

static bool has_capital(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] >= 'A' && s[i] <= 'Z') return true;
    return false;
}

/* One word as a unit, with its factor. b, and capitals in times, are no units here: they look too much like symbols;
 * nor are thousandths of bytes. */
static bool read_unit(const char *s, size_t n, enum units_kind *kind, double *factor)
{
    if (n == 0 || n > UNIT_BYTES_MAX || (n == 1 && *s == 'b')) return false;
    if (!units_read_word(s, n, UNITS_NONE, NULL, kind, factor) || !is_wanted(*kind)) return false;
    if (*kind == UNITS_SECONDS && has_capital(s, n)) return false;
    return *kind != UNITS_BYTES || *factor >= 0.125;
}

/* kB, MB, ..., TiB: never a product */
static bool is_always(const char *s, size_t n)
{
    if (n == 2) return s[1] == 'B' && strchr("kMGTP", s[0]);
    return n == 3 && s[1] == 'i' && s[2] == 'B' && strchr("KMGTP", s[0]);
}

/* whether the word is a product of names that are known */
static bool is_product(const struct parser *p, const char *s, size_t n)
{
    const struct parse_names *names = p->in->names;
    for (size_t i = 0; i < n;) {
        size_t best = 0;
        for (const struct parse_bound *b = p->bound; b; b = b->outer) {
            const size_t k = strlen(b->text);
            if (k > best && k <= n - i && memcmp(b->text, s + i, k) == 0) best = k;
        }
        for (size_t j = 0; j < names->n_symbols; j++) {
            const char *text = names->symbols[j].text;
            const size_t k = text ? strlen(text) : 0;
            if (k > best && k <= n - i && memcmp(text, s + i, k) == 0) best = k;
        }
        if (best == 0) return false;
        i += best;
    }
    return true;
}

/* min(x, y), or a call of the caller's, that begins at i */
static bool is_call(const struct parser *p, size_t i, size_t n)
{
    size_t n_functions;
    const struct parse_function *f = parse_functions(&n_functions);
    const struct parse_names *names = p->in->names;
    const char *s = p->t.s;
    for (size_t k = 0; k < n_functions; k++)
        if (strlen(f[k].name) == n && memcmp(f[k].name, s + i, n) == 0 && parse_function_begins(p, &f[k], i + n))
            return true;
    size_t after = i + n;
    while (s[after] == ' ') after++;
    for (size_t k = 0; k < names->n_calls && s[after] == '('; k++)
        if (names->calls[k] && strlen(names->calls[k]) == n && memcmp(names->calls[k], s + i, n) == 0) return true;
    return false;
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    if (*s == '%') return 1;
    while (parse_is_name_char(s[n])) n++;
    return n;
}

/* the exact fraction that a factor of a prefix or of minutes is */
static const struct sym *exact(struct sym_ctx *c, double factor)
{
    const double inverse = 1.0 / factor, whole = nearbyint(inverse);
    if (factor < 1.0 && fabs(inverse - whole) < 1e-9 * inverse && whole < 0x1p53) return sym_rat(c, 1, (int64_t)whole);
    return sym_num(c, factor);
}

enum err_code parse_unit(struct parser *p, const struct sym **out)
{
    const char *s = p->t.s;
    enum units_kind kind, below;
    double factor, per;
    size_t i = p->i;
    while (s[i] == ' ') i++;
    const size_t n = word_length(s + i);
    if (!read_unit(s + i, n, &kind, &factor)) return ERR_OK;
    const size_t m = s[i + n] == '/' ? word_length(s + i + n + 1) : 0;
    enum units_kind whole = UNITS_NONE;
    double unused;
    const bool rate = m && n + 1 + m <= UNIT_BYTES_MAX && read_unit(s + i + n + 1, m, &below, &per) &&
                      !has_capital(s + i + n + 1, m) && !is_product(p, s + i + n + 1, m) &&
                      units_read_word(s + i, n + 1 + m, UNITS_NONE, NULL, &whole, &unused) && is_wanted(whole);
    if (!is_always(s + i, n) && ((!rate && is_product(p, s + i, n)) || is_call(p, i, n))) return ERR_OK;
    if (p->in->names->dims) {
        *out = sym_dims_leaf(p->c, "1", rate ? whole : kind);
    } else {
        *out = sym_mul(p->c, *out, exact(p->c, factor));
        if (rate) *out = sym_div(p->c, *out, exact(p->c, per));
    }
    p->i = i + n + (rate ? 1 + m : 0);
    return ERR_OK;
}
