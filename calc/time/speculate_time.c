/* speculate_time -- a speculative step from the operators of draft and target. Derivation: MODEL.md "Speculation". */
#include <math.h>

#include "calc/time/speculate.h"

enum { DEPTHS = SPECULATE_DEPTH_MAX };

/* Values of a step at one point. */
static void values_at(struct step *s, double B, double T, double S, double M, double v[STEP_VALUES_N])
{
    double *column[STEP_VALUES_N];
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &v[i];
    step_eval(s, 1, &B, &T, &S, &M, column);
}

/* Seconds of decode steps (or of verify passes of T[i] tokens) at n points of one batch. */
static void seconds_at(const struct speculate_setup *of, struct step *s, size_t n, double batch, const double *T,
                       const double *S, double *out)
{
    const struct speculate_clock *k = &of->clock;
    for (size_t i = 0; k->seconds && i < n; i++) out[i] = k->seconds(k->self, s, batch, T[i], S[i], 1);
    if (k->seconds) return;
    double B[DEPTHS], M[DEPTHS];
    double *column[STEP_VALUES_N] = {0};
    for (size_t i = 0; i < n; i++) {
        B[i] = batch;
        M[i] = 1;
    }
    column[STEP_decode_step_s] = out;
    step_eval(s, n, B, T, S, M, column);
}

size_t speculate_passes(const struct speculate_setup *s, int64_t gamma, double S, struct speculate_pass out[DEPTHS])
{
    const int64_t depth = s->shape ? s->shape->depth : gamma, passes = s->one_pass ? 1 : depth;
    double held = 0; /* drafted tokens that passes before this one put into the draft's cache */
    for (int64_t d = 0; d < passes; d++) {
        const double nodes = d == 0 || !s->shape ? 1 : (double)s->shape->nodes[d - 1];
        out[d] = (struct speculate_pass){nodes > 1 ? s->draft_wide : s->draft, nodes, d == 0 ? S : S + 1 + held};
        if (d > 0) held += nodes;
    }
    return (size_t)passes;
}

/* Chains of 1..n drafts: all passes of the draft so far, and the verify pass. */
static void chain_seconds(const struct speculate_setup *s, double B, double S, int64_t n, double *draft_s,
                          double *verify_s)
{
    struct speculate_setup chain = *s;
    struct speculate_pass pass[DEPTHS];
    double one[DEPTHS], tokens[DEPTHS], at[DEPTHS], first[DEPTHS];
    chain.shape = NULL;
    const size_t passes = speculate_passes(&chain, n, S, pass);
    for (size_t i = 0; i < passes; i++) {
        one[i] = pass[i].tokens;
        at[i] = pass[i].S;
    }
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = (double)(s->bonus ? i + 2 : i + 1);
        first[i] = S;
    }
    seconds_at(s, s->draft, passes, B, one, at, draft_s);
    for (int64_t i = 1; i < n; i++) draft_s[i] = s->one_pass ? draft_s[0] : draft_s[i] + draft_s[i - 1];
    seconds_at(s, s->verify, (size_t)n, B, tokens, first, verify_s);
}

double speculate_draft_s(const struct speculate_setup *s, int64_t gamma, double B, double S)
{
    struct speculate_pass pass[DEPTHS];
    const size_t n = speculate_passes(s, gamma, S, pass);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double t;
        seconds_at(s, pass[i].step, 1, B, &pass[i].tokens, &pass[i].S, &t);
        sum += t;
    }
    return sum;
}

/* Drafted tokens that go into the draft's cache: all but the last of each path. */
static int64_t tokens_reread(const struct speculate_setup *s, int64_t gamma)
{
    if (s->one_pass) return 0;
    return s->shape ? s->shape->drafted - s->shape->nodes[s->shape->depth - 1] : gamma - 1;
}

void speculate_eval(const struct speculate_setup *s, double B, double T, double S, double M,
                    struct speculate_point *out)
{
    double v[STEP_VALUES_N], draft_s[DEPTHS], verify_s[DEPTHS], best;
    const double mean = S - (M - 1) / 2;
    const int64_t known = speculate_depth_max(&s->accept);
    const int64_t deepest = s->depth_max > 0 && s->depth_max < known ? s->depth_max : known;
    struct speculate_point p = {0};
    values_at(s->target, B, T, S, M, v);
    const struct speculate_clock *k = &s->clock;
    p.decode_s = k->seconds ? k->seconds(k->self, s->target, B, T, S, M) : v[STEP_decode_step_s];
    chain_seconds(s, B, mean, deepest, draft_s, verify_s);
    p.best_gamma = speculate_best(&s->accept, s->bonus, deepest, p.decode_s, draft_s, verify_s, &best);
    p.gamma = s->shape ? s->shape->depth : s->gamma ? s->gamma : p.best_gamma;
    p.query_tokens = s->shape ? s->shape->query_tokens : s->bonus ? p.gamma + 1 : p.gamma;
    p.tokens = s->shape ? s->shape->tokens : speculate_tokens(&s->accept, p.gamma, s->bonus);
    p.draft_s = s->shape ? speculate_draft_s(s, 0, B, mean) : draft_s[p.gamma - 1];
    const double judged = (double)p.query_tokens;
    seconds_at(s, s->verify, 1, B, &judged, &mean, &p.verify_s);
    p.step_s = p.draft_s + p.verify_s;
    p.speedup = speculate_speedup(p.tokens, p.decode_s, p.draft_s, p.verify_s);
    /* memory at the longest: all drafted tokens of the last step */
    values_at(s->verify, B, (double)p.query_tokens, S, 1, v);
    p.kv_bytes = v[STEP_kv_bytes];
    p.kv_allocated_bytes = v[STEP_kv_allocated_bytes];
    p.state_bytes = v[STEP_state_bytes];
    p.activation_bytes = v[STEP_activation_bytes];
    values_at(s->draft, B, T, S + (double)tokens_reread(s, p.gamma), 1, v);
    p.draft_kv_bytes = v[STEP_kv_bytes];
    p.draft_state_bytes = v[STEP_state_bytes];
    p.draft_activation_bytes = v[STEP_activation_bytes];
    if (s->draft_wide && s->shape && !s->one_pass) {
        double widest = 1;
        for (int64_t d = 0; d + 1 < s->shape->depth; d++) widest = fmax(widest, (double)s->shape->nodes[d]);
        values_at(s->draft_wide, B, widest, S, 1, v);
        p.draft_activation_bytes = fmax(p.draft_activation_bytes, v[STEP_activation_bytes]);
    }
    *out = p;
}

static bool pays(const struct speculate_setup *s, int64_t B, double T, double S, double M)
{
    struct speculate_point p;
    speculate_eval(s, (double)B, T, S, M, &p);
    return p.speedup > 1;
}

int64_t speculate_pays_until(const struct speculate_setup *s, double T, double S, double M)
{
    int64_t yes = SPECULATE_BATCH_MAX, no;
    if (pays(s, yes, T, S, M)) return yes;
    do {
        no = yes;
        yes /= 2;
    } while (yes > 0 && !pays(s, yes, T, S, M));
    if (yes == 0) return 0;
    while (no - yes > 1) {
        const int64_t mid = yes + (no - yes) / 2;
        *(pays(s, mid, T, S, M) ? &yes : &no) = mid;
    }
    return yes;
}
