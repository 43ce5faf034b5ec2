/* The exercises on drafts, passes of many tokens, ranks and training at scale. */
#include "tests/bank.h"

enum { WORDS = 4 };

static void hundredths(const char *t, char name, double *p)
{
    for (int i = 0; i < WORDS; i++) {
        const char word[] = {name, '(', (char)('a' + i), ')', ' ', '=', ' ', '\0'};
        p[i] = behind(t, word);
    }
    assert_true(p[0] + p[1] + p[2] + p[3] == 100);
}

/* All equally likely ways in which a token of 100*100 is drafted and judged: q(x) of a hundred lots draw x, and it is
 * kept by p(x)/q(x) of them. What then comes out in the place of a refused one makes each p(x) of a hundred. */
static void check_draft_acceptance(struct checked *k)
{
    double p[WORDS], q[WORDS], kept = 0, meet = 0, differ = 0, most = 0;
    hundredths(k->q->text, 'p', p);
    hundredths(k->q->text, 'q', q);
    for (int i = 0; i < WORDS; i++) {
        for (double lot = 1; lot <= q[i]; lot++) kept += lot <= p[i];
        for (double a = 0; a < p[i]; a++)
            for (double b = 0; b < q[i]; b++) meet++;
        differ += fabs(p[i] - q[i]);
        most = fmax(most, p[i]);
    }
    assert_true(kept == 100 - differ / 2);
    answer(k, kept / 100);
    slip(k, "two independent draws", meet / 1e4);
    slip(k, "that is refused", 1 - kept / 100);
    slip(k, "likeliest", most / 100);
    slip(k, "every difference", 1 - differ / 100);
}

static void check_draft_residual(struct checked *k)
{
    double p[WORDS], q[WORDS], owed[WORDS], refused = 0, liked = 0, n = 0;
    const char *t = k->q->text, *last = strstr(t, "With which probability is it ");
    assert_non_null(last);
    const int x = last[strlen("With which probability is it ")] - 'a';
    hundredths(t, 'p', p);
    hundredths(t, 'q', q);
    for (int i = 0; i < WORDS; i++) {
        double kept = 0;
        for (double lot = 1; lot <= q[i]; lot++) kept += lot <= p[i];
        refused += q[i] - kept;
        owed[i] = p[i] - kept;
        liked += p[i] > q[i] ? p[i] : 0;
        n += p[i] > q[i];
    }
    assert_true(owed[0] + owed[1] + owed[2] + owed[3] == refused);
    answer(k, owed[x] / refused);
    slip(k, "from the target again", p[x] / 100);
    slip(k, "in all drafts", owed[x] / 100);
    slip(k, "take off q", p[x] / liked);
    slip(k, "not equally likely", 1 / n);
}

/* Mean tokens of a chain, over the place of the first refusal. */
static double chain(double a, double n, bool bonus)
{
    double sum = 0, reached = 1;
    for (double i = 1; i <= n; i++) {
        sum += reached * (1 - a) * i; /* i-1 kept, the i-th replaced */
        reached *= a;
    }
    return sum + reached * (n + (bonus ? 1 : 0));
}

static double kept_of(double a, double n)
{
    double sum = 0, reached = 1;
    for (double i = 1; i <= n; i++) sum += reached *= a;
    return sum;
}

static void check_draft_tokens(struct checked *k)
{
    const char *t = k->q->text;
    const double n = behind(t, "proposes "), a = behind(t, "probability ") / 100;
    const bool bonus = says(t, "yields one more");
    assert_true(bonus != says(t, "no further token"));
    answer(k, chain(a, n, bonus));
    slip(k, "leaves out the further", chain(a, n, false));
    slip(k, "draws a further", chain(a, n, true));
    slip(k, "by itself", 1 + n * a);
    slip(k, "keeps all of them", n + 1);
    slip(k, "drafts alone", kept_of(a, n));
    slip(k, "endless", chain(a, 5000, true));
    slip(k, "only when all are kept", 1 + n * exp(n * log(a)));
}

static void check_draft_tree(struct checked *k)
{
    const char *t = k->q->text, *c = strstr(t, " hang ") + 6, *p = strstr(t, "with probability ") + 17, *end;
    const double depth = behind(t, "a tree ");
    double reached = 1, tokens = 0, line = 1, path = 1, several = 1, nodes = 1, all = 1, leaf = 1;
    for (double d = 0; d < depth; d++) {
        const double width = read_number(c, &end), a = read_number(p, &p) / 100;
        c = end + strlen(" and then ");
        p += strlen(" % and then ");
        double one = 0;
        for (double r = 0; r < width; r++) { /* the r-th sibling, those before refused */
            double before = 1;
            for (double s = 0; s < r; s++) before *= 1 - a;
            one += before * a;
        }
        tokens += reached * (1 - one) * (d + 1);
        reached *= one;
        path *= a;
        line += path;
        nodes *= width;
        all += nodes;
        several += nodes * path;
        leaf = reached;
    }
    tokens += reached * (depth + 1);
    answer(k, tokens);
    slip(k, "This is a chain", line);
    slip(k, "several siblings", several);
    slip(k, "target's own token at the end", tokens - 1);
    slip(k, "all nodes", all);
    slip(k, "only when a leaf", 1 + leaf * depth);
}

struct paced {
    double n, decode, draft;
};

static struct paced paced_in(const char *t)
{
    return (struct paced){
        .n = behind(t, "proposes "), .decode = behind(t, "target takes "), .draft = behind(t, "draft ")};
}

static void check_draft_speedup(struct checked *k)
{
    const struct paced r = paced_in(k->q->text);
    const double a = behind(k->q->text, "probability ") / 100, time = r.n * r.draft + r.decode;
    const double tokens = chain(a, r.n, true), rate = 1 / r.decode;
    answer(k, tokens / time / rate);
    slip(k, "tokens of a step", tokens);
    slip(k, "leaves out the pass", tokens / (r.n * r.draft) / rate);
    slip(k, "time of one draft", tokens / (r.draft + r.decode) / rate);
    slip(k, "further token", chain(a, r.n, false) / time / rate);
    slip(k, "by itself", (1 + r.n * a) / time / rate);
    slip(k, "no draft exceeds", (r.n + 1) / time / rate);
    slip(k, "part of the time", time / tokens * rate);
}

/* The acceptance at which a chain yields so many tokens, by the secant from both ends. */
static double accepted(double tokens, double n, bool bonus)
{
    double lo = 0, hi = 1;
    if (tokens > n + (bonus ? 1 : 0)) return (double)NAN;
    for (int i = 0; i < 200; i++) {
        const double mid = lo + (hi - lo) / 2;
        *(chain(mid, n, bonus) > tokens ? &hi : &lo) = mid;
    }
    return lo;
}

static void check_draft_worth(struct checked *k)
{
    const struct paced r = paced_in(k->q->text);
    const double gain = behind(k->q->text, "With the draft "), tokens = gain * (r.n * r.draft + r.decode) / r.decode;
    answer(k, accepted(tokens, r.n, true));
    assert_true(near_to(chain(k->q->value, r.n, true), tokens));
    slip(k, "part of all drafts", (tokens - 1) / r.n);
    slip(k, "no time", accepted(gain, r.n, true));
    slip(k, "further token", accepted(tokens, r.n, false));
    slip(k, "endless", (tokens - 1) / tokens);
    slip(k, "time of one draft", accepted(gain * (r.draft + r.decode) / r.decode, r.n, true));
}

static void check_verify_ridge(struct checked *k)
{
    const char *t = k->q->text;
    const double n = says(t, "A tree of") ? behind(t, "tree of ") : behind(t, "draft of ");
    const double bytes = says(t, "in 4 bits") ? .5 : says(t, "in 8 bits") ? 1 : 2;
    const double peak = behind(t, "peak of "), bandwidth = behind(t, "bandwidth of "), W = 7e9;
    const double B = k->q->value, read_s = W * bytes / bandwidth, one_s = 2 * W / peak; /* a token's */
    assert_true(near_to(B * (n + 1) * one_s, read_s));
    answer(k, read_s / one_s / (n + 1));
    slip(k, "decode step", read_s / one_s);
    slip(k, "leaves out the last", read_s / one_s / n);
    slip(k, "multiply-add", 2 * read_s / one_s / (n + 1));
    slip(k, "Upside down", read_s / one_s * (n + 1));
    slip(k, "two bytes", W * 2 / bandwidth / one_s / (n + 1));
}

/* Experts that tokens need: each draw is passed by with 1 - k/E. */
static double needed(double E, double k, double n)
{
    double passed = 1;
    for (double i = 0; i < n; i++) passed *= (E - k) / E;
    return E * (1 - passed);
}

static void check_verify_experts(struct checked *k)
{
    const char *t = k->q->text;
    const double E = behind(t, "E = "), taken = behind(t, "k = "), B = behind(t, "B = "), T = before(t, " drafted") + 1;
    const double ratio = needed(E, taken, B * T) / needed(E, taken, B);
    answer(k, ratio);
    slip(k, "Dense weights", 1);
    slip(k, "tokens meet", T);
    slip(k, "leaves out the last", needed(E, taken, B * (T - 1)) / needed(E, taken, B));
    slip(k, "twice", needed(E, 1, B * T * taken) / needed(E, 1, B * taken));
    slip(k, "one sequence", needed(E, taken, T) / taken);
    slip(k, "up to all", fmin(E, B * T * taken) / fmin(E, B * taken));
    slip(k, "Upside down", 1 / ratio);
}

static void check_tile_waves(struct checked *k)
{
    const char *t = k->q->text, *end;
    const double rows = behind(t, "m = "), columns = behind(t, "n = "), tm = behind(t, "tiles of "),
                 sm = before(t, " SMs");
    const char *by = strstr(t, " x ");
    assert_non_null(by);
    const double tn = read_number(by + 3, &end);
    double tiles = 0, inner = 0, waves = 0, left;
    for (double y = 0; y < rows; y += tm)
        for (double x = 0; x < columns; x += tn) {
            tiles++;
            inner += y + tm <= rows && x + tn <= columns;
        }
    for (left = tiles; left > 0; left -= sm) waves++;
    const double of = rows * columns, tile = tm * tn;
    answer(k, of / (waves * sm * tile));
    slip(k, "edges as full", tiles / (waves * sm));
    slip(k, "idle in the last", of / (tiles * tile));
    slip(k, "in one wave", of / (sm * tile));
    slip(k, "drops the last wave", of / ((waves - 1) * sm * tile));
    slip(k, "drops the tiles", of / (inner * tile));
    slip(k, "one wave of them", 1 / waves);
}

static void check_chunk_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = ");
    const double P = behind(t, "P = "), C = behind(t, "C = "), token = L * (K * H * 2 + K * H * 2);
    double reads = 0, whole = 0, own = 0, single = 0, once = 0;
    for (double at = 0; at < P; at += C) {
        reads += at;
        whole += P;
        own += at + C;
        once += at > 0 ? C : 0;
    }
    for (double i = 0; i < P; i++) single += i;
    answer(k, reads * token);
    slip(k, "whole prompt", whole * token);
    slip(k, "own tokens", own * token);
    slip(k, "one token in a piece", single * token);
    slip(k, "each piece once", once * token);
    slip(k, "keys or values alone", reads * token / 2);
    slip(k, "query heads", reads * token / K * N);
    slip(k, "one layer", reads * token / L);
}

struct engine {
    double reading, each, C, n, P;
};

static struct engine engine_in(const char *t)
{
    const double params = before(t, " parameters");
    return (struct engine){.reading = 2 * params / behind(t, "bandwidth of "),
                           .each = 2 * params / behind(t, "peak is ")};
}

static void check_chunk_first_token(struct checked *k)
{
    const char *t = k->q->text;
    const struct engine g = engine_in(t);
    const double C = behind(t, "C = "), n = behind(t, "n = "), P = behind(t, "P = ");
    double steps = 0, whole = 0;
    for (double left = P; left > 0; left -= C - n) steps++;
    for (double left = P; left > 0; left -= C) whole++;
    const double one = fmax(g.reading, C * g.each);
    answer(k, steps * one);
    slip(k, "whole step", whole * one);
    slip(k, "drops the last", (steps - (fmod(P, C - n) > 0 ? 1 : 0)) * one);
    slip(k, "one step", one);
    slip(k, "alone and in one pass", fmax(g.reading, P * g.each));
    slip(k, "reads weights alone", steps * g.reading);
    slip(k, "arithmetic alone", steps * C * g.each);
    slip(k, "adds reading", steps * (g.reading + C * g.each));
}

static void check_diffusion_batch(struct checked *k)
{
    const char *t = k->q->text;
    const struct engine g = engine_in(t);
    const double B = behind(t, "B = "), b = behind(t, "b = "), u = behind(t, "u = ");
    const double step = fmax(g.reading, B * g.each), pass = fmax(g.reading, B * b * g.each);
    answer(k, (B * u / pass) / (B / step));
    slip(k, "last as long", u);
    slip(k, "all tokens of the block", b);
    slip(k, "for arithmetic", u / b);
    slip(k, "one sequence", u * fmax(g.reading, g.each) / fmax(g.reading, b * g.each));
    slip(k, "Upside down", pass / step / u);
    slip(k, "settles one", step / pass);
}

static void check_training_mfu(struct checked *k)
{
    const char *t = k->q->text;
    const double params = before(t, " billion") * 1e9, gpus = behind(t, "trained with "), peak = behind(t, "peak of ");
    const double rate = before(t, " million") * 1e6, all = gpus * peak, forward = 2 * params * rate;
    answer(k, (forward + 2 * forward) / all);
    slip(k, "2 flops", forward / all);
    slip(k, "HFU", (forward + forward + 2 * forward) / all);
    slip(k, "4 flops", 2 * forward / all);
    slip(k, "sparse", 3 * forward / (2 * all));
    slip(k, "one device", 3 * forward / peak);
}

/* Around a ring of t ranks: t-1 turns to sum, t-1 to spread, a t-th of the vector in each. */
static void check_rank_sums(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), D = behind(t, "D = "), n = behind(t, "t = "), T = behind(t, "T = ");
    const double vector = 2 * T * D;
    double one = 0;
    for (double turn = 1; turn < n; turn++) one += vector / n + vector / n;
    const double all = L * (one + one);
    answer(k, all);
    slip(k, "This is half", all / 2);
    slip(k, "vector once", L * 2 * vector);
    slip(k, "own part", L * 4 * vector);
    slip(k, "each of the others", L * 4 * (n - 1) * vector);
    slip(k, "all GPUs", n * all);
    slip(k, "one layer", 2 * one);
    slip(k, "one token", all / T);
    slip(k, "splits the vector", all / n);
}

/* Heads that the first GPU's query heads attend to, one by one. */
static void check_rank_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), K = behind(t, "K = "), H = behind(t, "H = ");
    const double n = behind(t, "t = "), B = behind(t, "B = "), S = behind(t, "S = "), head = B * S * L * 2 * H * 2;
    double heads = 0, last = -1;
    for (double h = 0; h < N / n; h++) {
        const double of = floor(h / (N / K));
        heads += of != last;
        last = of;
    }
    answer(k, heads * head);
    slip(k, "cuts heads", head * K / n);
    slip(k, "of all heads", head * K);
    slip(k, "query heads", head * N / n);
    slip(k, "keys or values alone", heads * head / 2);
    slip(k, "all GPUs", heads * head * n);
    slip(k, "one sequence", heads * head / B);
    slip(k, "one layer", heads * head / L);
}

static void check_rank_latents(struct checked *k)
{
    const char *t = k->q->text;
    const double L = behind(t, "L = "), N = behind(t, "N = "), C = behind(t, "C = "), R = behind(t, "R = ");
    const double n = behind(t, "t = "), B = behind(t, "B = "), S = behind(t, "S = "), one = S * L * (C + R) * 2;
    const bool groups = says(t, "attention data parallelism");
    assert_true(groups != says(t, "splits the heads"));
    const double held = groups ? B / n * one : B * one;
    answer(k, held);
    slip(k, "all sequences on each", B * one);
    slip(k, "splits the latents", B * one / n);
    slip(k, "rope part", held / (C + R) * C);
    slip(k, "keys and values apart", 2 * held);
    slip(k, "one layer", held / L);
    slip(k, "on top", held / n);
    slip(k, "each head a latent", held * N / n);
    slip(k, "one sequence", one);
}

/* Slot by slot: microbatch i is in stage s in slot i + s. */
static void check_stage_bubble(struct checked *k)
{
    const double p = behind(k->q->text, "split into "), n = before(k->q->text, " microbatches");
    double slots = 0, busy = 0;
    for (double slot = 0; slot < n + p + 9; slot++) {
        bool any = false;
        for (double s = 0; s < p; s++) {
            const bool works = slot - s >= 0 && slot - s < n;
            any = any || works;
            busy += works;
        }
        slots += any;
    }
    const double idle = slots * p - busy;
    answer(k, idle / (slots * p));
    slip(k, "over busy", idle / busy);
    slip(k, "in which it works", busy / (slots * p));
    slip(k, "one microbatch", (p - 1) / p);
    slip(k, "slot too many", p / (n + p));
    slip(k, "one idle slot", 1 / slots);
    slip(k, "adds up the time", (p - 1) / (n * p));
}

/* Over all GPUs that an expert can be on. */
static void check_expert_dispatch(struct checked *k)
{
    const char *t = k->q->text;
    const double E = behind(t, "E = "), L = behind(t, "L = "), G = behind(t, "G = "), D = behind(t, "D = ");
    const double taken = behind(t, "k = "), T = behind(t, "T = "), copy = T * D * 2;
    double leave = 0;
    for (double x = 0; x < E; x++) leave += fmod(x, G) != 0; /* the token is on GPU 0 */
    const double all = L * 2 * copy * taken * leave / E;
    answer(k, all);
    slip(k, "one way", all / 2);
    slip(k, "what stays", L * 2 * copy * taken);
    slip(k, "to one expert", all / taken);
    slip(k, "to all GPUs", L * 2 * copy * (G - 1));
    slip(k, "one layer", all / L);
    slip(k, "one token", all / T);
    slip(k, "all GPUs", all * G);
}

/* Byte by byte of one parameter, device by device. */
static void check_training_zero(struct checked *k)
{
    const char *t = k->q->text;
    const double params = before(t, " billion") * 1e9, n = behind(t, "trained on "), stage = behind(t, "stage ");
    const bool single = says(t, "Parameters, gradients and the two moments"), copy = says(t, "a copy of the");
    assert_true(single != copy);
    const double param = single ? 4 : 2, grad = says(t, "Parameters and gradients are in bf16") ? 2 : 4;
    const double state = 4 + 4 + (copy ? 4 : 0);
    const double held[] = {param + grad + state, param + grad + state / n, param + (grad + state) / n,
                           (param + grad + state) / n};
    const int z = (int)stage;
    assert_true(says(t, z == 1   ? " On these devices the optimizer's"
                        : z == 2 ? " On these devices gradients"
                                 : " On these devices parameters"));
    answer(k, params * held[z]);
    slip(k, "splits nothing", params * held[0]);
    slip(k, "splits all", params * held[3]);
    slip(k, "all devices", params * held[z] * n);
    slip(k, "too few", params * held[z - 1]);
    slip(k, "gradients as well", params * held[2]);
    slip(k, "one of the two moments", params * (held[z] - 4 / n));
    slip(k, "one number of the optimizer", params * (held[z] - 8 / n));
}

static const struct check CHECKS[] = {
    {"draft-acceptance", check_draft_acceptance},
    {"draft-residual", check_draft_residual},
    {"draft-tokens", check_draft_tokens},
    {"draft-speedup", check_draft_speedup},
    {"draft-worth", check_draft_worth},
    {"draft-tree", check_draft_tree},
    {"verify-ridge", check_verify_ridge},
    {"verify-experts", check_verify_experts},
    {"tile-waves", check_tile_waves},
    {"chunk-cache", check_chunk_cache},
    {"chunk-first-token", check_chunk_first_token},
    {"diffusion-batch", check_diffusion_batch},
    {"rank-sums", check_rank_sums},
    {"rank-cache", check_rank_cache},
    {"rank-latents", check_rank_latents},
    {"stage-bubble", check_stage_bubble},
    {"expert-dispatch", check_expert_dispatch},
    {"training-mfu", check_training_mfu},
    {"training-zero", check_training_zero},
};
enum { CHECKS_N = sizeof CHECKS / sizeof CHECKS[0] };

static void test_every_exercise_is_checked(void **state)
{
    (void)state;
    size_t n;
    const struct exercise *rows = bank_scale(&n);
    assert_int_equal(n, CHECKS_N);
    for (size_t i = 0; i < n; i++) assert_string_equal(rows[i].name, CHECKS[i].name);
}

static void test_answers_and_slips_follow_from_the_text(void **state)
{
    (void)state;
    follow_from_the_text(CHECKS, CHECKS_N);
}

static void test_numbers_are_fresh(void **state)
{
    (void)state;
    numbers_are_fresh(CHECKS, CHECKS_N);
}

static void test_grading_takes_what_people_type(void **state)
{
    (void)state;
    grading_takes_what_people_type(CHECKS, CHECKS_N);
}

/* What the lecture quotes of Chinchilla, two gains of 4 drafts at 1.8 ms beside 14.1 ms: the solution says which
 * acceptances they are, again by the sum over the place of the first refusal. */
static void test_gains_of_the_lecture(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct exercise_question q;
    struct err e = {0};
    char want[300];
    const double drafted = 1 + 4 * 1.8 / 14.1;
    assert_int_equal(exercise_ask(a, c, found("draft-worth"), 3, &q, &e), ERR_OK);
    (void)snprintf(want, sizeof want, "1.92 times is an acceptance of %.2f, 2.46 times one of %.2f",
                   accepted(1.92 * drafted, 4, true), accepted(2.46 * drafted, 4, true));
    assert_true(says(q.steps[q.steps_n - 1], want));
    (void)snprintf(want, sizeof want, "more than %.2f times", 5 / drafted);
    assert_true(says(q.steps[q.steps_n - 1], want));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exercise_is_checked), cmocka_unit_test(test_answers_and_slips_follow_from_the_text),
        cmocka_unit_test(test_numbers_are_fresh),         cmocka_unit_test(test_grading_takes_what_people_type),
        cmocka_unit_test(test_gains_of_the_lecture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
