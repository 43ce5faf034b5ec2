#include "calc/cost/routing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

static const char *const RULES[] = {
    [ROUTING_UNIFORM] = "uniform", [ROUTING_ZIPF] = "zipf:",    [ROUTING_REPLACEMENT] = "replacement",
    [ROUTING_UPPER] = "upper",     [ROUTING_ACTIVE] = "active", [ROUTING_ALL] = "all"};
enum { RULES_N = sizeof RULES / sizeof RULES[0], EXPONENT_MAX = 16 };

enum err_code routing_parse(const char *text, struct routing *out, struct err *e)
{
    char clean[64];
    const size_t zipf = strlen(RULES[ROUTING_ZIPF]);
    for (size_t r = 0; r < RULES_N; r++) {
        if (r == ROUTING_ZIPF || strcmp(text, RULES[r]) != 0) continue;
        *out = (struct routing){.rule = (enum routing_rule)r};
        return ERR_OK;
    }
    if (strncmp(text, RULES[ROUTING_ZIPF], zipf) == 0) {
        char *end;
        const double s = strtod(text + zipf, &end);
        if (end != text + zipf && *end == '\0' && s >= 0 && s <= EXPONENT_MAX) {
            *out = (struct routing){.rule = ROUTING_ZIPF, .exponent = s};
            return ERR_OK;
        }
    }
    return err_set(e, ERR_USAGE,
                   "'%s' is no rule of routing: uniform, zipf:S (S from 0 to %d), replacement, upper, active or all",
                   text_clean(clean, sizeof clean, text, strlen(text)), EXPONENT_MAX);
}

const char *routing_name(const struct routing *r, char *text, size_t len)
{
    if (r->rule != ROUTING_ZIPF) return RULES[r->rule];
    (void)snprintf(text, len, "%s%g", RULES[ROUTING_ZIPF], r->exponent);
    return text;
}

/* Sums run from the rarest expert up: taken off a sum that the commonest dominates, the rarest would be its rounding.
 */
void routing_popularity(double exponent, int64_t experts, int64_t k, double *p)
{
    double rest = 0; /* weight of expert i and all rarer ones */
    for (int64_t i = experts; i > 0; i--) {
        rest += pow((double)i, -exponent);
        p[i - 1] = rest;
    }
    int64_t certain = k >= experts ? experts : 0;
    while (certain < k && pow((double)certain + 1, -exponent) * (double)(k - certain) >= p[certain]) certain++;
    const double scale = certain < k ? (double)(k - certain) / p[certain] : 0;
    for (int64_t i = 0; i < experts; i++) p[i] = i < certain ? 1 : pow((double)i + 1, -exponent) * scale;
}
