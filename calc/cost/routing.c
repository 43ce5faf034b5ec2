#include "calc/cost/routing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

static const char *const RULES[] = {[ROUTING_UNIFORM] = "uniform", [ROUTING_ZIPF] = "zipf:",
                                    [ROUTING_LOADS] = "loads:",    [ROUTING_REPLACEMENT] = "replacement",
                                    [ROUTING_UPPER] = "upper",     [ROUTING_ACTIVE] = "active",
                                    [ROUTING_ALL] = "all"};
enum { RULES_N = sizeof RULES / sizeof RULES[0], EXPONENT_MAX = 16 };

static bool has_exponent(enum routing_rule r) { return r == ROUTING_ZIPF || r == ROUTING_LOADS; }

enum err_code routing_parse(const char *text, struct routing *out, struct err *e)
{
    char clean[64];
    for (size_t r = 0; r < RULES_N; r++) {
        const size_t stem = strlen(RULES[r]);
        char *end;
        if (strncmp(text, RULES[r], stem) != 0) continue;
        *out = (struct routing){.rule = (enum routing_rule)r};
        if (!has_exponent(out->rule)) {
            if (text[stem] == '\0') return ERR_OK;
            continue;
        }
        out->exponent = strtod(text + stem, &end);
        if (end != text + stem && *end == '\0' && out->exponent >= 0 && out->exponent <= EXPONENT_MAX) return ERR_OK;
    }
    return err_set(e, ERR_USAGE,
                   "'%s' is no rule of routing: uniform, zipf:S or loads:A (from 0 to %d), replacement, upper, active "
                   "or all",
                   text_clean(clean, sizeof clean, text, strlen(text)), EXPONENT_MAX);
}

const char *routing_name(const struct routing *r, char *text, size_t len)
{
    if (!has_exponent(r->rule)) return RULES[r->rule];
    (void)snprintf(text, len, "%s%g", RULES[r->rule], r->exponent);
    return text;
}

/* Of loads with density x^-a from 1 to most, the one below which are u of them. */
static double load_at(double u, double a, double most)
{
    if (fabs(1 - a) < 1e-9) return pow(most, u);
    return pow(1 + u * (pow(most, 1 - a) - 1), 1 / (1 - a));
}

/* What expert i, the commonest first, is drawn for, in proportion. */
static double weight_of(const struct routing *r, int64_t i, int64_t experts)
{
    enum { MOST = 200 }; /* times the load of the least: 0.01 to 2 in the source */
    if (r->rule == ROUTING_LOADS) return load_at(1 - ((double)i + 0.5) / (double)experts, r->exponent, MOST);
    return pow((double)i + 1, -r->exponent);
}

/* Sums run from the rarest expert up: taken off a sum that the commonest dominates, the rarest would be its rounding.
 */
void routing_popularity(const struct routing *r, int64_t experts, int64_t k, double *p)
{
    double rest = 0; /* weight of expert i and all rarer ones */
    for (int64_t i = experts; i > 0; i--) {
        rest += weight_of(r, i - 1, experts);
        p[i - 1] = rest;
    }
    int64_t certain = k >= experts ? experts : 0;
    while (certain < k && weight_of(r, certain, experts) * (double)(k - certain) >= p[certain]) certain++;
    const double scale = certain < k ? (double)(k - certain) / p[certain] : 0;
    for (int64_t i = 0; i < experts; i++) p[i] = i < certain ? 1 : weight_of(r, i, experts) * scale;
}

/* Mean of the largest of n standard normals: the integral of 1 - F^n above 0 less that of F^n below. */
static double largest_normal(double n)
{
    enum { STEPS = 900 };
    const double width = 9.0 / STEPS;
    double sum = 0;
    for (int i = 0; i < STEPS; i++) {
        const double x = (i + 0.5) * width, below = 0.5 * erfc(x / sqrt(2));
        sum += -expm1(n * log1p(-below)) - pow(below, n);
    }
    return sum * width;
}

double routing_part_load(const struct routing *r, int64_t experts, int64_t k, int64_t parts, double *p)
{
    if (!has_exponent(r->rule) || parts <= 1 || experts < 2) return 1;
    const double mean = (double)k / (double)experts;
    double squares = 0;
    routing_popularity(r, experts, k, p);
    for (int64_t i = 0; i < experts; i++) squares += (p[i] - mean) * (p[i] - mean);
    return 1 + sqrt(squares / (double)(experts - 1) * (double)parts / (double)experts) / mean *
                   largest_normal((double)parts);
}
