#include "calc/learn/bank_scale.h"

#include <math.h>

#include "calc/time/speculate.h"

/* Target and draft over a vocabulary of four tokens, in whole hundredths. */
enum { WORDS = 4 };
struct two {
    int64_t p[WORDS], q[WORDS];
    double kept;  /* sum of min(p, q), hundredths */
    int above[4]; /* tokens that the target likes more */
    int above_n;
};

static void draw_hundred(struct exercise_maker *m, int64_t *p)
{
    int64_t left = 100 - 3 * WORDS; /* not a unit */
    for (int i = 0; i < WORDS; i++) {
        const int64_t more = i == WORDS - 1 ? left : bank_draw(m, 0, left * 2 / 3);
        p[i] = 3 + more;
        left -= more;
    }
}

/* Drawn so that two tokens or more take the place of refused ones. */
static struct two draw_two(struct exercise_maker *m)
{
    struct two t;
    do {
        draw_hundred(m, t.p);
        draw_hundred(m, t.q);
        t.kept = 0;
        t.above_n = 0;
        for (int i = 0; i < WORDS; i++) {
            t.kept += (double)(t.p[i] < t.q[i] ? t.p[i] : t.q[i]);
            if (t.p[i] > t.q[i]) t.above[t.above_n++] = i;
        }
    } while (t.above_n < 2 || t.kept < 30 || t.kept > 92);
    return t;
}

static const char *two_text(struct exercise_maker *m, const struct two *t)
{
    return bank_printf(m,
                       "A vocabulary has four tokens. The target gives them p(a) = %lld %%, p(b) = %lld %%, "
                       "p(c) = %lld %%, p(d) = %lld %%, and the draft q(a) = %lld %%, q(b) = %lld %%, q(c) = %lld %%, "
                       "q(d) = %lld %%. A token x that the draft draws is kept with probability min(1, p(x)/q(x)).",
                       (long long)t->p[0], (long long)t->p[1], (long long)t->p[2], (long long)t->p[3],
                       (long long)t->q[0], (long long)t->q[1], (long long)t->q[2], (long long)t->q[3]);
}

enum err_code bank_draft_acceptance(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct two t = draw_two(m);
    const double kept = t.kept / 100; /* not a unit */
    double meet = 0, largest = 0;
    (void)e;
    for (int i = 0; i < WORDS; i++) {
        meet += (double)(t.p[i] * t.q[i]) / 1e4;       /* not a unit */
        largest = fmax(largest, (double)t.p[i] / 100); /* not a unit */
    }
    bank_ask(q, UNITS_FRAC, kept, 0.01, "a part");
    q->text = bank_printf(m, "%s Which part of drafted tokens is kept?", two_text(m, &t));
    bank_slip(q, meet, "This is how often two independent draws meet: a drafted token need not be drawn again.");
    bank_slip(q, 1 - kept, "This is the part that is refused.");
    bank_slip(q, largest, "This is the likeliest token: a draft may propose any.");
    if (kept > 0.5)
        bank_slip(q, 2 * kept - 1,
                  "This takes off every difference: what one token has too much another has too "
                  "little, and only the former is refused.");
    bank_step(q, "x is drafted with q(x) and kept with min(1, p(x)/q(x)), together min(p(x), q(x))");
    bank_step(q, bank_printf(m, "sum: %lld + %lld + %lld + %lld = %.0f hundredths",
                             (long long)(t.p[0] < t.q[0] ? t.p[0] : t.q[0]),
                             (long long)(t.p[1] < t.q[1] ? t.p[1] : t.q[1]),
                             (long long)(t.p[2] < t.q[2] ? t.p[2] : t.q[2]),
                             (long long)(t.p[3] < t.q[3] ? t.p[3] : t.q[3]), t.kept));
    bank_step(q, "where p = q all is kept: acceptance is 1 less half the sum of |p - q|");
    return ERR_OK;
}

enum err_code bank_draft_residual(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct two t = draw_two(m);
    const int x = t.above[bank_draw(m, 0, t.above_n - 1)];
    const double refused = 100 - t.kept, more = (double)(t.p[x] - t.q[x]), p = (double)t.p[x]; /* not a unit */
    double liked = 0;
    (void)e;
    for (int i = 0; i < t.above_n; i++) liked += (double)t.p[t.above[i]];
    bank_ask(q, UNITS_FRAC, more / refused, 0.01, "a probability");
    q->text = bank_printf(m,
                          "%s A drafted token has just been refused, and another is drawn in its place, so that what "
                          "comes out is a sample of the target. With which probability is it %c?",
                          two_text(m, &t), 'a' + x);
    bank_slip(q, p / 100, /* not a unit */
              "This draws from the target again: tokens that the draft proposes often would come out too often.");
    bank_slip(q, more / 100,
              "This is how often it happens in all drafts: here one was refused already."); /* not a unit */
    bank_slip(q, p / liked,
              "This takes p of the tokens that the target likes more: take off q, which is kept already.");
    bank_slip(q, 1.0 / t.above_n, "The tokens that the target likes more are not equally likely.");
    bank_step(q, "x comes out kept with min(p, q); it must come out with p, so refused drafts owe it max(p - q, 0)");
    bank_step(q, bank_printf(m, "%c is owed %lld - %lld = %.0f hundredths", 'a' + x, (long long)t.p[x],
                             (long long)t.q[x], more));
    bank_step(q,
              bank_printf(m, "refused: 100 - %.0f = %.0f hundredths, the sum of what all are owed", t.kept, refused));
    bank_step(q, bank_printf(m, "%.0f / %.0f = %.4g", more, refused, more / refused));
    return ERR_OK;
}

enum err_code bank_draft_tokens(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const int64_t hundredths = bank_draw(m, 42, 93), gamma = bank_draw(m, 2, 9);
    const bool bonus = bank_draw(m, 0, 2) != 0;
    const double a = (double)hundredths / 100, n = (double)gamma; /* not a unit */
    const struct speculate_accept accept = {.at = {a}, .n = 1};
    const double tokens = speculate_tokens(&accept, gamma, bonus), kept = speculate_kept(&accept, gamma);
    (void)e;
    bank_ask(q, UNITS_COUNT, tokens, 0.01, "a number of tokens (need not be whole)");
    q->things = "token,tok";
    q->text = bank_printf(
        m,
        "A draft proposes %lld tokens in a row, and the target judges them in one pass. Each is kept with probability "
        "%lld %% when all before it were; the first refused one is replaced by the target's own token and what "
        "follows is thrown away. %s How many tokens does such a step yield on average?",
        (long long)gamma, (long long)hundredths,
        bonus ? "When all are kept, the pass yields one more token of the target."
              : "When all are kept, the step ends with them: no further token is drawn.");
    bank_slip(q, speculate_tokens(&accept, gamma, !bonus),
              bonus ? "This leaves out the further token when all are kept."
                    : "This draws a further token when all are "
                      "kept: here the step ends.");
    bank_slip(q, 1 + a * n, "This keeps each draft by itself: after a refused one the rest is thrown away.");
    bank_slip(q, n + 1, "This keeps all of them.");
    bank_slip(q, kept, "This counts drafts alone: the target's own token comes on top.");
    bank_slip(q, 1 / (1 - a), "This is an endless draft: it ends after so many tokens.");
    bank_slip(q, 1 + n * pow(a, n), "This yields drafts only when all are kept: those before a refused one stay.");
    bank_step(q, "the i-th draft is kept when it and all before it are: a^i");
    bank_step(q, bonus ? "1 + a + a^2 + ... + a^n = (1 - a^(n+1))/(1 - a), the 1 being the target's own token"
                       : "the step yields its i-th token unless i-1 drafts fail: 1 + a + ... + a^(n-1) = "
                         "(1 - a^n)/(1 - a)");
    bank_step(q, bank_printf(m, "(1 - %g^%lld) / (1 - %g) = %.4g", a, (long long)gamma + (bonus ? 1 : 0), a, tokens));
    return ERR_OK;
}

enum err_code bank_draft_tree(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct speculate_tree t = {.depth = bank_draw(m, 2, 3), .children = true};
    struct speculate_accept p = {.n = (size_t)t.depth};
    struct speculate_shape shape;
    const char *children = "", *kept = "", *steps = "";
    double chain = 1, path = 1, many = 1, nodes = 1, reached = 1, best = 1;
    for (int64_t d = 0; d < t.depth; d++) {
        const int64_t hundredths = bank_draw(m, 31, 79) - 7 * d;
        const char *comma = d ? ", " : "", *then = d ? " and then " : "";
        t.width[d] = bank_draw(m, 2, d ? 3 : 5);
        p.at[d] = (double)hundredths / 100; /* not a unit */
        children = bank_printf(m, "%s%s%lld", children, then, (long long)t.width[d]);
        kept = bank_printf(m, "%s%s%lld %%", kept, then, (long long)hundredths);
        nodes *= (double)t.width[d];
        path *= p.at[d];
        chain += path;
        many += nodes * path;
        reached *= 1 - pow(1 - p.at[d], (double)t.width[d]);
        best += reached;
        steps = bank_printf(m, "%s%s1 - %g^%lld", steps, comma, 1 - p.at[d], (long long)t.width[d]);
    }
    TRY(speculate_tree_shape(m->arena, &t, &p, true, &shape, e));
    bank_ask(q, UNITS_COUNT, shape.tokens, 0.01, "a number of tokens (need not be whole)");
    q->things = "token,tok";
    q->text = bank_printf(m,
                          "Drafts form a tree %lld deep: below the last token and below each node of a depth hang %s "
                          "children. The target judges all nodes in one pass. At a node its children are "
                          "tried in turn until one is kept; each is kept with probability %s, once those "
                          "before it were refused. Where none is kept, or after a leaf, the target's own token ends "
                          "the step. How many tokens does a step yield on average?",
                          (long long)t.depth, children, kept);
    bank_slip(q, chain, "This is a chain: siblings are further tries.");
    bank_slip(q, many, "This keeps several siblings: one child of a node is kept at most.");
    bank_slip(q, shape.kept_tokens, "This leaves out the target's own token at the end.");
    bank_slip(q, (double)shape.drafted + 1, "These are all nodes: one path through the tree is kept at most.");
    bank_slip(q, 1 + reached * (double)t.depth, "This yields drafts only when a leaf is reached: those above stay.");
    bank_step(q, "one of k children is kept with 1 - (1 - p)^k: only when all are refused the walk ends");
    bank_step(q, bank_printf(m, "by depth: %s", steps));
    bank_step(q, "tokens: 1 + the first + the first two multiplied, and so on");
    bank_step(q, bank_printf(m, "= %.4g, where a chain of the same depth yields %.4g", best, chain));
    return ERR_OK;
}
