/* The exercises on caches in blocks, queues, batches, replicas and cost. */
#include "tests/bank.h"

enum { LIST_MAX = 8 };

/* "17, 230 and 5" behind a word: how many. */
static size_t list_behind(const char *t, const char *word, double *v)
{
    const char *s = strstr(t, word);
    size_t n = 0;
    assert_non_null(s);
    for (s += strlen(word); n < LIST_MAX;) {
        v[n++] = read_number(s, &s);
        if (strncmp(s, ", ", 2) == 0)
            s += 2;
        else if (strncmp(s, " and ", 5) == 0)
            s += 5;
        else
            break;
    }
    return n;
}

/* Blocks by putting token after token. */
static double blocks_of(double tokens, double b)
{
    double blocks = 0, room = 0;
    for (double i = 0; i < tokens; i++, room--)
        if (room == 0) {
            blocks++;
            room = b;
        }
    return blocks;
}

static void check_paging_waste(struct checked *k)
{
    double len[LIST_MAX], tokens = 0, empty = 0, last = 0;
    const char *t = k->q->text;
    const double b = behind(t, "b = "), token = behind(t, "A token takes "), most = behind(t, "the longest possible, ");
    assert_int_equal(list_behind(t, "sequences hold ", len), 5);
    for (int i = 0; i < 5; i++) {
        tokens += len[i];
        empty += blocks_of(len[i], b) * b - len[i];
        last += fmod(len[i], b);
        assert_true(len[i] < most);
    }
    answer(k, empty * token);
    slip(k, "reserving the longest", (5 * most - tokens) * token);
    slip(k, "tokens in the last blocks", last * token);
    slip(k, "a whole block each", 5 * b * token);
    slip(k, "average over all", 5 * (b - 1) / 2 * token);
    slip(k, "These are tokens", empty);
}

/* Answers side by side, a token each in turn: a block that several hold is copied by whoever writes first. */
static void check_copy_on_write(struct checked *k)
{
    const char *t = k->q->text;
    const double P = behind(t, "P = "), n = behind(t, "k = "), O = behind(t, "O = "), b = behind(t, "b = ");
    double in_use = blocks_of(P, b), sharing = n, partial = fmod(P, b);
    assert_true(partial > 0);
    for (double i = 0; i < n; i++) {
        double room = b - partial; /* of the block that it goes on in */
        if (sharing > 1) {
            in_use++;
            sharing--;
        }
        for (double o = 0; o < O; o++, room--)
            if (room == 0) {
                in_use++;
                room = b;
            }
    }
    const double full = (P - partial) / b, each = blocks_of(partial + O, b);
    answer(k, in_use);
    slip(k, "shares nothing", n * blocks_of(P + O, b));
    slip(k, "one answer", full + each);
    slip(k, "in a new block", blocks_of(P, b) + n * blocks_of(O, b));
    slip(k, "packs all", blocks_of(P + n * O, b));
    slip(k, "leaves out the prompt's", n * each);
}

static void check_prefix_blocks(struct checked *k)
{
    const char *t = k->q->text;
    const double S = behind(t, "S = "), U = behind(t, "U = "), b = behind(t, "b = ");
    double found = 0;
    while (found + b <= S) found += b;
    answer(k, (S + U - found) / (S + U));
    slip(k, "finds all of the prefix", U / (S + U));
    slip(k, "part that is found", found / (S + U));
    slip(k, "round down", (S + U - blocks_of(S, b) * b) / (S + U));
    slip(k, "compares the two", U / S);
    slip(k, "computes everything", 1);
}

/* Sixes of answers: steps of a static batch, and of 6 places that are never free. */
static void check_static_batch(struct checked *k)
{
    double len[LIST_MAX], sum = 0, most = 0, least = 1e9;
    assert_int_equal(list_behind(k->q->text, "in sixes of ", len), 6);
    for (int i = 0; i < 6; i++) {
        sum += len[i];
        most = fmax(most, len[i]);
        least = fmin(least, len[i]);
    }
    const double statics = sum / most, continuous = 6;
    answer(k, continuous / statics);
    slip(k, "places that work", statics / 6);
    slip(k, "with the shortest", most / least);
    slip(k, "one answer at a time", 6);
    slip(k, "on average", statics);
    slip(k, "until its shortest", sum / 6 / least);
}

struct flow {
    double first, next, tokens, all;
};

static struct flow flow_in(const char *t)
{
    struct flow f = {.first = behind(t, "comes after ") / 1e3,
                     .next = behind(t, "further one after ") / 1e3,
                     .tokens = behind(t, "an answer has ")};
    f.all = f.first;
    for (double i = 1; i < f.tokens; i++) f.all += f.next;
    return f;
}

static void check_littles_law(struct checked *k)
{
    const struct flow f = flow_in(k->q->text);
    const double rate = before(k->q->text, " requests a second");
    answer(k, rate * f.all);
    slip(k, "those that decode", rate * (f.all - f.first));
    slip(k, "without a first token", rate * f.first);
    slip(k, "the time of one", f.all);
    slip(k, "with every token", rate * (f.first + f.next) * f.tokens);
    slip(k, "multiplies", rate / f.all);
    slip(k, "two tokens", rate * (f.first + f.next));
}

/* Contexts of an answer's steps, one by one. */
static void check_cache_in_flight(struct checked *k)
{
    const char *t = k->q->text;
    const double rate = before(t, " requests a second"), P = behind(t, "A prompt has "), O = behind(t, "an answer "),
                 step = behind(t, "a token every ") / 1e3, token = before(t, " bytes each");
    double held = 0, steps = 0;
    for (double j = 1; j < O; j++) {
        held += P + j;
        steps++;
    }
    answer(k, rate * step * held * token);
    slip(k, "length at the end", rate * step * steps * (P + O) * token);
    slip(k, "answered so far", rate * step * steps * P * token);
    slip(k, "leaves out the prompts", rate * step * (held - steps * P) * token);
    slip(k, "that come in a second", rate * held / steps * token);
    slip(k, "one sequence", held / steps * token);
    slip(k, "took one step", rate * step * held / steps * token);
}

static void check_closed_loop(struct checked *k)
{
    const char *t = k->q->text;
    const struct flow f = flow_in(t);
    const double n = before(t, " clients"), think = behind(t, "thinks for ");
    answer(k, n / (f.all + think));
    slip(k, "the time to think", n / f.all);
    slip(k, "that an answer takes", n / think);
    slip(k, "one client", 1 / (f.all + think));
    slip(k, "at the first token", n / (f.first + think));
    slip(k, "less often", n * (f.all + think));
    slip(k, "These are the clients", n);
}

/* A long time of steps of both kinds, tokens counted. */
static void check_chunk_pace(struct checked *k)
{
    const char *t = k->q->text;
    const double rate = before(t, " requests a second"), P = behind(t, "prompts of "),
                 d = behind(t, "decodes takes ") / 1e3, c = behind(t, "a piece of "),
                 x = before(t, " ms. Pieces") / 1e3, span = 1e6;
    const double mixed = rate * span * P / c, plain = (span - mixed * x) / d;
    answer(k, span / (mixed + plain));
    slip(k, "leaves out the steps", d);
    slip(k, "in every step", x);
    slip(k, "by their time", (mixed * x * x + plain * d * d) / span);
    slip(k, "in a plain step", d + mixed / span * d * (x - d));
    slip(k, "no token in steps", span / plain);
}

/* Prompts at equal service: the mean wait solves W = rho*(s/2) + (waiting)*s with waiting = rate*W. */
static void check_queue_wait(struct checked *k)
{
    const char *t = k->q->text;
    const double s = behind(t, "each takes ") / 1e3, rho = behind(t, "prefills for ") / 100, rate = rho / s;
    const double wait = rho * s / 2 / (1 - rate * s);
    answer(k, wait);
    slip(k, "exponential ones do", rate * 2 * s * s / 2 / (1 - rho));
    slip(k, "until the prompt is through", wait + s);
    slip(k, "in progress", rho * s / 2);
    slip(k, "wait and service", rho * s / (1 - rho) + s);
    slip(k, "always busy", wait / rho);
}

static void check_shards_cache(struct checked *k)
{
    const char *t = k->q->text;
    const double W = behind(t, "weights take "), M = behind(t, "a GPU has "), n = before(t, " replicas, each");
    double replicas = 0, shards = -W;
    for (double i = 0; i < n; i++) {
        replicas += M - W;
        shards += M;
    }
    answer(k, shards / replicas);
    slip(k, "other way round", replicas / shards);
    slip(k, "one replica", shards / (M - W));
    slip(k, "The memory is the same", 1);
    slip(k, "took no room", n);
    slip(k, "has its weights, too", n * M / replicas);
}

static void check_shards_step(struct checked *k)
{
    const char *t = k->q->text;
    const double bytes = behind(t, "all weights, "), rate = behind(t, "at "), n = before(t, " GPUs each reads"),
                 L = before(t, " layers"), one = before(t, " us") / 1e6, whole = bytes / rate;
    double step = bytes / n / rate;
    for (double i = 0; i < L; i++) step += one + one;
    answer(k, whole / step);
    slip(k, "leaves out the sums", n);
    slip(k, "one sum a layer", whole / (step - L * one));
    slip(k, "one sum in all", whole / (whole / n + one));
    slip(k, "splits the time", whole / (whole / n + 2 * L * one / n));
    slip(k, "other way round", step / whole);
    slip(k, "still reads", whole / (2 * L * one));
}

static void check_token_cost(struct checked *k)
{
    const char *t = k->q->text;
    const double n = before(t, " GPUs at"), price = behind(t, "at $"), rate = before(t, " requests a second"),
                 in = before(t, " tokens in"), out = before(t, " out. They"), prefill = behind(t, "prefill for "),
                 decode = behind(t, "decode for ");
    const double second = n * price / 3600, share = decode / (prefill + decode), whole = second / (rate * out) * 1e6;
    answer(k, whole * share);
    slip(k, "for everything", whole);
    slip(k, "a million tokens in", second * (1 - share) / (rate * in) * 1e6);
    slip(k, "idle time", whole * decode / 100);
    slip(k, "by tokens", whole * out / (in + out));
    slip(k, "one GPU", whole * share / n);
    slip(k, "for each second", whole * share * 3600);
}

static const struct check CHECKS[] = {
    {"paging-waste", check_paging_waste},   {"copy-on-write", check_copy_on_write},
    {"prefix-blocks", check_prefix_blocks}, {"static-batch", check_static_batch},
    {"littles-law", check_littles_law},     {"cache-in-flight", check_cache_in_flight},
    {"closed-loop", check_closed_loop},     {"chunk-pace", check_chunk_pace},
    {"queue-wait", check_queue_wait},       {"shards-cache", check_shards_cache},
    {"shards-step", check_shards_step},     {"token-cost", check_token_cost},
};
enum { CHECKS_N = sizeof CHECKS / sizeof CHECKS[0] };

static void test_every_exercise_is_checked(void **state)
{
    (void)state;
    size_t n;
    const struct exercise *rows = bank_serving(&n);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exercise_is_checked),
        cmocka_unit_test(test_answers_and_slips_follow_from_the_text),
        cmocka_unit_test(test_numbers_are_fresh),
        cmocka_unit_test(test_grading_takes_what_people_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
