/* routing -- rules for how many distinct experts a pass touches, the default and those of other tools.
 *
 * With n tokens of k experts each out of E, expected distinct experts of a layer:
 *   uniform      E*(1 - (1-k/E)^n)      draws without replacement within a token; exactly k at n = 1 (default)
 *   zipf:S       sum of 1 - (1-p_e)^n   the same where expert e is drawn with p_e = min(1, c/e^S), sum of p_e = k;
 *                                       exactly k at n = 1, uniform at S = 0, fewer above
 *   loads:A      the same, p_e = min(1, c*x_e)  x: E even quantiles of density x^-A from 1 to 200
 *   replacement  E*(1 - (1-1/E)^(n*k))  draws with replacement: below k at n = 1
 *   upper        min(E, n*k)            no two draws meet: an upper bound
 *   active       k                      as if all tokens drew the same: a lower bound
 *   all          E                      every expert in every pass
 * loads:A is what ai-dynamo/aiconfigurator draws experts' loads from; it found A = 1.01 to fit DeepSeek-V3 as served,
 * 1.2 Qwen3-235B. Derivation, and which tool has which: MODEL.md "Experts". */
#ifndef RIDGE_COST_ROUTING_H
#define RIDGE_COST_ROUTING_H

#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"

enum routing_rule {
    ROUTING_UNIFORM,
    ROUTING_ZIPF,
    ROUTING_LOADS,
    ROUTING_REPLACEMENT,
    ROUTING_UPPER,
    ROUTING_ACTIVE,
    ROUTING_ALL
};

struct routing {
    enum routing_rule rule;
    double exponent; /* of zipf and loads, >= 0 */
};

/* routing_parse -- a rule by name; "zipf:1.2". Errors: ERR_USAGE. */
enum err_code routing_parse(const char *text, struct routing *out, struct err *e);

/* routing_name -- back, into text[len] where it has a number. */
const char *routing_name(const struct routing *r, char *text, size_t len);

/* routing_popularity -- p[e], e = 0 .. experts-1, of zipf or loads, falling: the probability that a token draws expert
 * e. Sums to k; 1 <= k <= experts. Cost: O(experts). */
void routing_popularity(const struct routing *r, int64_t experts, int64_t k, double *p);

/* routing_part_load -- what the busiest of `parts` is drawn for over the mean part, where experts are dealt to parts at
 * random: 1 + s*sqrt(parts/experts)*m, s the standard deviation (of a sample) of zipf's or loads' popularity over its
 * mean, m the mean of the largest of so many standard normals. 1 of other rules and of one part; parts divide experts.
 * p[experts]: room.
 * Within 3 % of a count at random (tests/test_switches.c). Cost: O(experts). Derivation: MODEL.md "Layouts". */
double routing_part_load(const struct routing *r, int64_t experts, int64_t k, int64_t parts, double *p);

#endif
