#include "kernels/speculate.h"

#include <string.h>

#include "kernels/kernel.h"

double speculate_uniform(struct speculate_random *r)
{
    return (double)(kern_hash(r->seed, r->taken++) >> 11) * 0x1p-53;
}

size_t speculate_draw(const double *weight, size_t n, struct speculate_random *r)
{
    double sum = 0;
    size_t i = 0, last = 0;
    for (size_t j = 0; j < n; j++) sum += weight[j];
    double at = speculate_uniform(r) * sum;
    for (; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        last = i;
        at -= weight[i];
        if (at < 0) return i;
    }
    return last; /* rounding left a rest */
}

bool speculate_verify_exact(const double *p, double *q, size_t n, size_t token, struct speculate_random *r)
{
    double sum = 0, rest = 0;
    for (size_t i = 0; i < n; i++) sum += q[i];
    if (speculate_uniform(r) * p[token] * sum < q[token]) return true;
    for (size_t i = 0; i < n; i++) {
        const double left = q[i] / sum - p[i];
        q[i] = left > 0 ? left : 0;
        rest += q[i];
    }
    /* p equals q but for rounding, and a token was refused by it */
    if (!(rest > 0)) memcpy(q, p, n * sizeof *q);
    return false;
}

static size_t best(const double *prob, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (prob[i] > prob[at]) at = i;
    return at;
}

static const double *after(const struct speculate_model *m, size_t last) { return m->prob + last * m->vocab; }

size_t speculate_nodes(size_t gamma, size_t branches)
{
    size_t all = 1;
    for (size_t i = 0; i < gamma; i++) {
        if (branches && all > (SIZE_MAX - 1) / branches) return SIZE_MAX;
        all = all * branches + 1;
    }
    return all;
}

/* The tokens of all nodes; the children of node i are branches * i + 1 and those behind it. */
static void draft(const struct speculate *s, size_t last, struct speculate_random *r)
{
    const size_t nodes = speculate_nodes(s->gamma, s->branches);
    s->drafts[0] = last;
    for (size_t i = 1; i < nodes; i++) {
        const double *p = after(&s->draft, s->drafts[(i - 1) / s->branches]);
        s->drafts[i] = s->greedy ? best(p, s->draft.vocab) : speculate_draw(p, s->draft.vocab, r);
    }
}

/* The accepted child of a node whose token is s->drafts[node], 0 when there is none and out is the token instead. */
static size_t verify(const struct speculate *s, size_t node, bool leaf, struct speculate_random *r, size_t *out)
{
    const size_t vocab = s->target.vocab, first = s->branches * node + 1;
    const double *p = after(&s->draft, s->drafts[node]), *q = after(&s->target, s->drafts[node]);
    if (s->greedy) {
        *out = best(q, vocab);
        return !leaf && s->drafts[first] == *out ? first : 0;
    }
    memcpy(s->room, q, vocab * sizeof *q);
    for (size_t i = first; !leaf && i < first + s->branches; i++) {
        if (!s->verify(p, s->room, vocab, s->drafts[i], r)) continue;
        *out = s->drafts[i];
        return i;
    }
    *out = speculate_draw(s->room, vocab, r);
    return 0;
}

size_t speculate_round(const struct speculate *s, size_t last, struct speculate_random *r, size_t *out)
{
    size_t made = 0, node = 0;
    draft(s, last, r);
    do {
        node = verify(s, node, made == s->gamma, r, &out[made]);
        made++;
    } while (node > 0);
    return made;
}

void speculate_generate(const struct speculate *s, size_t last, struct speculate_random *r, size_t *out, size_t n,
                        size_t *rounds, size_t *carry)
{
    size_t made = 0;
    *rounds = 0;
    while (made < n) {
        size_t got = speculate_round(s, last, r, carry);
        if (got > n - made) got = n - made;
        memcpy(out + made, carry, got * sizeof *out);
        made += got;
        last = out[made - 1];
        ++*rounds;
    }
}
