#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/serve/workload.h"
#include "tests/csv.h"
#include "tests/scratch.h"

static struct workload_length length(struct arena *a, const char *text)
{
    struct workload_length l;
    struct err e = {0};
    if (workload_length_parse(a, text, &l, &e) != ERR_OK) fail_msg("%s", e.text);
    return l;
}

static struct workload made(struct arena *a, const struct workload_spec *s)
{
    struct workload w;
    struct err e = {0};
    if (workload_make(a, s, &w, &e) != ERR_OK) fail_msg("%s", e.text);
    return w;
}

static struct workload_spec spec(struct arena *a, const char *arrival, const char *prompt, const char *output)
{
    struct workload_spec s = {.rate_per_s = 7.3, .requests = 60013, .turns = 1, .samples = 1, .seed = 5};
    struct err e = {0};
    if (workload_arrival_parse(arrival, &s, &e) != ERR_OK) fail_msg("%s", e.text);
    s.prompt = length(a, prompt);
    s.output = length(a, output);
    return s;
}

/* Mean and coefficient of variation of the gaps. */
static void gaps(const struct workload *w, double *mean, double *cv)
{
    double sum = 0, squares = 0, last = 0;
    for (size_t i = 0; i < w->n; i++) {
        const double gap = w->request[i].arrival_s - last;
        assert_true(gap >= 0);
        last = w->request[i].arrival_s;
        sum += gap;
        squares += gap * gap;
    }
    *mean = sum / (double)w->n;
    *cv = sqrt(squares / (double)w->n - *mean * *mean) / *mean;
}

/* Gaps of a Poisson process have a CV of 1, gamma ones what was asked; bursts of ratio r in times much longer than a
 * gap mix two exponentials: of n gaps r/(1+r) are busy ones, E[g^2] = 2 (p/b^2 + (1-p)/q^2). */
static void test_arrivals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double cv, mean_within, cv_within;
    } CASES[] = {{"poisson", 1, .013, .02},
                 {"gamma:2.7", 2.7, .035, .1},
                 {"gamma:0.31", .31, .005, .01},
                 {"diurnal:0.83,311", (double)NAN, .02, 1}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct workload_spec s = spec(a, CASES[i].text, "101", "37");
        const struct workload w = made(a, &s);
        double mean, cv;
        gaps(&w, &mean, &cv);
        if (fabs(mean * 7.3 - 1) > CASES[i].mean_within) fail_msg("%s: gaps of %g", CASES[i].text, mean);
        if (fabs(cv - CASES[i].cv) > CASES[i].cv_within) fail_msg("%s: CV %g", CASES[i].text, cv);
        assert_true(w.request[w.n - 1].arrival_s == w.span_s && w.open && w.timed);
    }
    struct workload_spec s = spec(a, "bursty:9,900", "101", "37");
    s.requests = 400009;
    const struct workload w = made(a, &s);
    double mean, cv;
    gaps(&w, &mean, &cv);
    const double q = 2 * 7.3 / 10, b = 9 * q, p = .9;
    const double m = p / b + (1 - p) / q, square = 2 * (p / b / b + (1 - p) / q / q);
    if (fabs(mean / m - 1) > .2) fail_msg("bursts: gaps of %g, wanted %g", mean, m);
    if (fabs(cv / sqrt(square / m / m - 1) - 1) > .1) fail_msg("bursts: CV %g", cv);
    arena_close(a);
}

/* A day's sine: arrivals of the first half of a period over those of the second, (pi + 2 s) / (pi - 2 s). */
static void test_diurnal(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct workload_spec s = spec(a, "diurnal:0.83,311", "101", "37");
    const struct workload w = made(a, &s);
    double half[2] = {0, 0};
    for (size_t i = 0; i < w.n; i++) {
        const double phase = w.request[i].arrival_s / 311;
        if (floor(phase) < floor(w.span_s / 311)) half[phase - floor(phase) >= .5]++;
    }
    const double pi = acos(-1), wanted = (pi + 2 * .83) / (pi - 2 * .83);
    if (fabs(half[0] / half[1] / wanted - 1) > .04) fail_msg("%g, wanted %g", half[0] / half[1], wanted);
    arena_close(a);
}

static void moments(const struct workload *w, double *mean, double *cv)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < w->n; i++) {
        const double v = w->request[i].output_tokens;
        sum += v;
        squares += v * v;
    }
    *mean = sum / (double)w->n;
    *cv = sqrt(squares / (double)w->n - *mean * *mean) / *mean;
}

/* Rounding up adds half a token to the mean. A Pareto of exponent a has a CV of 1/sqrt(a (a - 2)). */
static void test_lengths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double mean, cv;
    } CASES[] = {{"709", 709, 0},
                 {"uniform:11..307", 159, .5382},
                 {"exponential:353", 353.5, 1},
                 {"lognormal:409,0.77", 409.5, .77},
                 {"gamma:409,0.61", 409.5, .61},
                 {"pareto:211,7.3", 211.5, .1608}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct workload_spec s = spec(a, "poisson", "101", CASES[i].text);
        const struct workload w = made(a, &s);
        double mean, cv;
        moments(&w, &mean, &cv);
        if (fabs(mean / CASES[i].mean - 1) > .013) fail_msg("%s: mean %g", CASES[i].text, mean);
        if (fabs(cv - CASES[i].cv) > .02) fail_msg("%s: CV %g", CASES[i].text, cv);
    }
    const struct workload_spec s = spec(a, "poisson", "101", "lognormal:409,2.1,max=1009");
    const struct workload w = made(a, &s);
    int32_t most = 0;
    for (size_t i = 0; i < w.n; i++)
        if (w.request[i].output_tokens > most) most = w.request[i].output_tokens;
    assert_int_equal(most, 1009);
    arena_close(a);
}

static void test_empirical(void **state)
{
    (void)state;
    char path[SCRATCH_MAX], spec_text[SCRATCH_FILE_MAX];
    struct arena *a = arena_open();
    (void)snprintf(spec_text, sizeof spec_text, "empirical:%s", scratch_text(path, "17\r\n1013\n\n17\n"));
    const struct workload_spec s = spec(a, "poisson", "101", spec_text);
    const struct workload w = made(a, &s);
    size_t few = 0;
    for (size_t i = 0; i < w.n; i++) {
        assert_true(w.request[i].output_tokens == 17 || w.request[i].output_tokens == 1013);
        few += w.request[i].output_tokens == 17;
    }
    assert_true(fabs((double)few / (double)w.n - 2. / 3) < .01);
    arena_close(a);
}

/* The same seed, the same requests; another length of outputs leaves arrivals and prompts alone. */
static void test_seed(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct workload_spec s = spec(a, "gamma:2.1", "lognormal:701,1.3", "lognormal:97,0.7");
    s.requests = 1009;
    const struct workload x = made(a, &s), y = made(a, &s);
    assert_memory_equal(x.request, y.request, x.n * sizeof *x.request);
    s.output = length(a, "exponential:31");
    const struct workload z = made(a, &s);
    size_t other = 0;
    for (size_t i = 0; i < x.n; i++) {
        assert_true(x.request[i].arrival_s == z.request[i].arrival_s);
        assert_int_equal(x.request[i].prompt_tokens, z.request[i].prompt_tokens);
        other += x.request[i].output_tokens != z.request[i].output_tokens;
    }
    assert_true(other > 900);
    s.seed++;
    const struct workload v = made(a, &s);
    assert_true(v.request[0].arrival_s != x.request[0].arrival_s);
    arena_close(a);
}

/* Turns say again what was said; clients take conversations one after the other; every request is reached once. */
static void test_turns(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct workload_spec s = spec(a, "poisson", "uniform:11..53", "uniform:3..29");
    s.requests = 701;
    s.turns = 5;
    s.shared_tokens = 96;
    s.rate_per_s = 0;
    s.concurrency = 13;
    const struct workload w = made(a, &s);
    assert_int_equal(w.first_n, 13);
    bool seen[701] = {false};
    for (size_t c = 0; c < w.first_n; c++)
        for (uint32_t i = (uint32_t)c, last = WORKLOAD_NO_NEXT; i != WORKLOAD_NO_NEXT;
             last = i, i = w.request[i].next) {
            const struct workload_request *r = &w.request[i], *p = last == WORKLOAD_NO_NEXT ? NULL : &w.request[last];
            assert_false(seen[i]);
            seen[i] = true;
            assert_int_equal(r->shared_tokens, 96);
            if (p && p->stream == r->stream) {
                const int32_t more = r->prompt_tokens - p->prompt_tokens - p->output_tokens;
                assert_true(more >= 11 && more <= 53);
                assert_true(workload_block_hash(&w, r, 16, 7) == workload_block_hash(&w, p, 16, 7));
            } else {
                assert_true(r->prompt_tokens >= 96 + 11 && r->prompt_tokens <= 96 + 53);
                if (p) assert_true(workload_block_hash(&w, r, 16, 6) != workload_block_hash(&w, p, 16, 6));
                if (p) assert_true(workload_block_hash(&w, r, 16, 5) == workload_block_hash(&w, p, 16, 5));
            }
        }
    for (size_t i = 0; i < w.n; i++) assert_true(seen[i]);
    arena_close(a);
}

static enum err_code read_text(struct arena *a, const char *text, struct workload *w, struct err *e)
{
    *e = (struct err){0};
    return workload_read_text(a, "t.csv", text, strlen(text), w, e);
}

static void test_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        double last_s;
        int prompt, output; /* of the last */
    } CASES[] = {
        {"arrival_s,prompt_tokens,output_tokens\n0.5,17,3\n2.75,1013,29\n", 2, 2.25, 1013, 29},
        {"\xef\xbb\xbf"
         "arrival_s,prompt_tokens,output_tokens,x\r\n0.5,17,3,\r\n2.75,1013,29,y\r\n\r\n",
         2, 2.25, 1013, 29},
        {"output_tokens,prompt_tokens,arrival_s\n3,17,4\n29,1013,9", 2, 5, 1013, 29},
        {"arrival_s,prompt_tokens,output_tokens\n9,1013,29\n4,17,3\n", 2, 5, 1013, 29},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.5000000,374,44\n2023-11-17 "
         "00:00:03.7500000,396,109\n",
         2, 4.25, 396, 109},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-29 23:59:59+00:00,374,44\n2024-03-01 "
         "00:00:00.25+00:00,396,109\n",
         2, 1.25, 396, 109},
        {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation "
         "log\n45,ChatGPT,1087,0,1087,API log\n118,GPT-4,417,276,693,Conversation log\n",
         2, 113, 417, 276},
        {"{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47, 48, 49, "
         "50, 51, 52, 53, 54, 55, 56, 57, 2353]}\n"
         "{\"hash_ids\": [], \"timestamp\": 30535, \"input_length\": 6472, \"output_length\": 26}\n",
         2, 3.053, 6472, 26},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct workload w;
        struct err e;
        if (read_text(a, CASES[i].text, &w, &e) != ERR_OK) fail_msg("%zu: %s", i, e.text);
        assert_int_equal(w.n, CASES[i].n);
        assert_true(w.request[0].arrival_s == 0);
        assert_true(fabs(w.request[w.n - 1].arrival_s - CASES[i].last_s) < 1e-9);
        assert_int_equal(w.request[w.n - 1].prompt_tokens, CASES[i].prompt);
        assert_int_equal(w.request[w.n - 1].output_tokens, CASES[i].output);
        assert_true((w.note != NULL) == (i == 3 || i == 6));
        arena_close(a);
    }
}

/* Blocks of 16 within hashes of 512: equal hashes, equal names; what is behind the last full one has none. */
static void test_hashes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct workload w;
    struct err e;
    assert_int_equal(read_text(a,
                               "{\"timestamp\":0,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[7,8,9]}\n"
                               "{\"timestamp\":1,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[7,8,11]}\n",
                               &w, &e),
                     ERR_OK);
    for (int64_t i = 0; i < 94; i++) {
        const uint64_t x = workload_block_hash(&w, &w.request[0], 16, i),
                       y = workload_block_hash(&w, &w.request[1], 16, i);
        assert_true((x == y) == (i < 64 || i == 93));
        assert_true((x == 0) == (i == 93)); /* 1500 = 93 * 16 + 12 */
    }
    arena_close(a);
}

/* What contradicts itself and can be read is counted and said, with its first line; a last block without a name is
 * none. */
static void test_notes(void **state)
{
    static const char *const CASES[][2] = {
        {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,472,18,490,x\n"
         "4,GPT-4,472,0,471,x\r\n9,GPT-4,472,18,18,x\n3,GPT-4,1,1,2,x\n",
         "left out 1 request without tokens; Total tokens of 2 rows (the first: line 3) are not request and response: "
         "not read; 1 row stood before earlier ones: sorted"},
        {"{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[4]}\n", NULL},
        {"{\"timestamp\":1,\"input_length\":1024,\"output_length\":5,\"hash_ids\":[4,5]}\n"
         "{\"timestamp\":1,\"input_length\":1025,\"output_length\":5,\"hash_ids\":[4,5,6]}\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct workload w;
        struct err e;
        if (read_text(a, CASES[i][0], &w, &e) != ERR_OK) fail_msg("%zu: %s", i, e.text);
        if (CASES[i][1])
            assert_string_equal(w.note, CASES[i][1]);
        else
            assert_null(w.note);
        arena_close(a);
    }
    (void)state;
}

/* Each with one sentence that says where. */
static void test_refusals(void **state)
{
    (void)state;
#define HEAD "arrival_s,prompt_tokens,output_tokens\n"
    static const char *const CASES[][2] = {
        {"", "t.csv: the file is empty"},
        {"\xef\xbb\xbf", "t.csv: the file is empty"},
        {HEAD, "t.csv: no requests in it"},
        {HEAD "-1,5,5\n", "t.csv:2: wanted a time in seconds from 0 on, not '-1'"},
        {HEAD "1,5,5\nnan,5,5\n", "t.csv:3: wanted a time in seconds from 0 on, not 'nan'"},
        {HEAD "inf,5,5\n", "t.csv:2: wanted a time in seconds from 0 on, not 'inf'"},
        {HEAD "0x1p3,5,5\n", "t.csv:2: wanted a time in seconds from 0 on, not '0x1p3'"},
        {HEAD "1,1000000000000,5\n",
         "t.csv:2: prompt_tokens: wanted a whole number of tokens from 1 to 16777216, not '1000000000000'"},
        {HEAD "1,5,0\n", "t.csv:2: output_tokens: wanted a whole number of tokens from 1 to 16777216, not '0'"},
        {HEAD "1,5.5,7\n", "t.csv:2: prompt_tokens: wanted a whole number of tokens from 1 to 16777216, not '5.5'"},
        {HEAD "1,5\n", "t.csv:2: the line is short of cells"},
        {HEAD "1,5,7\n\n2,5,7\n", "t.csv:4: an empty line before it, not '2,5,7'"},
        {"a,b,c\n1,2,3\n",
         "t.csv:1: wanted a header arrival_s,prompt_tokens,output_tokens, one of Azure 2023 or BurstGPT, or Mooncake's "
         "JSON lines, not 'a,b,c'"},
        {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-01 00:00:00,5,5\n",
         "t.csv:2: wanted a time such as 2023-11-16 18:17:03.97, not '2023-13-01 00:00:00'"},
        {"{\"timestamp\":1,\"input_length\":5}\n", "t.csv:1: wanted timestamp, input_length and output_length"},
#define LINE "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5"
        {LINE ",\"hash_ids\":[1,2]}\n" LINE ",\"hash_ids\":[1,2,3]}\n",
         "t.csv:2: hash_ids: 3 names of blocks for input_length 1000, wanted 2, one for 512"},
        {"{\"timestamp\":1,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[1]}\n",
         "t.csv:1: hash_ids: 1 name of blocks for input_length 1500, wanted 3, one for 512"},
        {LINE ",\"hash_ids\":[1,-2]}\n", "t.csv:1: hash_ids: wanted whole numbers from 0 to 4294967294, not '-2'"},
        {LINE ",\"hash_ids\":[1,NaN]}\n", "t.csv:1: hash_ids: wanted whole numbers from 0 to 4294967294, not 'NaN'"},
        {LINE ",\"hash_ids\":7}\n", "t.csv:1: hash_ids: wanted a list"},
        {LINE ",\"timestamp\":1}\n", "t.csv:1: timestamp twice"},
        {LINE "}\n{\"timestamp\": -1}", "t.csv:2: timestamp: wanted milliseconds from 0 on, not '-1'"},
        {"{\"timestamp\": NaN, \"input_length\": 3}", "t.csv:1: timestamp: wanted milliseconds from 0 on, not 'NaN'"},
        {"{\"input_length\": 1e12}",
         "t.csv:1: input_length: wanted a whole number of tokens from 1 to 16777216, not '1e12'"},
        {"{\"input_length\": \"5\"}",
         "t.csv:1: input_length: wanted a whole number of tokens from 1 to 16777216, not '\"5\"'"},
        {"{\"output_length\": 0.5}",
         "t.csv:1: output_length: wanted a whole number of tokens from 1 to 16777216, not '0.5'"},
        {LINE "}\n[1]\n", "t.csv:2: byte 0: found \"[1]\", wanted an object"},
        {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,x,\n",
         "t.csv:2: Total tokens: wanted a whole number of tokens from 0 to 16777216, not 'x'"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct workload w;
        struct err e;
        assert_int_equal(read_text(a, CASES[i][0], &w, &e), ERR_INPUT);
        assert_string_equal(e.text, CASES[i][1]);
        arena_close(a);
    }
    struct arena *a = arena_open();
    static const char *const LENGTHS[] = {"",
                                          "0",
                                          "5.5",
                                          "lognormal:5",
                                          "lognormal:5,-1",
                                          "gamma:5,0",
                                          "pareto:5,1",
                                          "uniform:9..3",
                                          "uniform:0..3",
                                          "1e12",
                                          "nan",
                                          "lognormal:300,0.5,max=0"};
    static const char *const ARRIVALS[] = {"", "gamma:0", "bursty:0.5,3", "diurnal:1.5,3", "poisson:1"};
    struct workload_length l;
    struct workload_spec s;
    struct err e;
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++)
        assert_int_equal(workload_length_parse(a, LENGTHS[i], &l, &e), ERR_USAGE);
    for (size_t i = 0; i < sizeof ARRIVALS / sizeof ARRIVALS[0]; i++)
        assert_int_equal(workload_arrival_parse(ARRIVALS[i], &s, &e), ERR_USAGE);
    arena_close(a);
}

/* Published traces: rows, span and mean lengths as their publisher's readers count them. */
static void test_published(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t n;
        double span_s, prompt, output;
    } CASES[] = {{"serving/traces/azure2023_conv.csv", 19366, 3502, 1154.7, 211.1},
                 {"serving/traces/azure2023_code.csv", 8819, 3436, 2047.8, 27.9},
                 {"serving/traces/mooncake_conversation.csv", 12031, 3537, 12035, 342.6}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct workload w;
        struct err e = {0};
        const enum err_code code = workload_read(a, csv_shared(a, CASES[i].file), &w, &e);
        if (code == ERR_IO) {
            arena_close(a);
            skip();
        }
        if (code != ERR_OK) fail_msg("%s", e.text);
        double prompt = 0, output = 0;
        for (size_t k = 0; k < w.n; k++) {
            prompt += w.request[k].prompt_tokens;
            output += w.request[k].output_tokens;
        }
        assert_int_equal(w.n, CASES[i].n);
        assert_true(fabs(w.span_s - CASES[i].span_s) < 1);
        assert_true(fabs(prompt / (double)w.n / CASES[i].prompt - 1) < 1e-3);
        assert_true(fabs(output / (double)w.n / CASES[i].output - 1) < 2e-3);
    }
    arena_close(a);
}

struct seen {
    size_t calls, done, all, most; /* most: calls until it says no */
};

static bool look(void *closure, size_t done, size_t all)
{
    struct seen *s = closure;
    assert_true(done > s->done && done <= all);
    s->done = done;
    s->all = all;
    return ++s->calls < s->most;
}

/* Who looks on sees bytes of all, rising, and can end it. */
static void test_watched(void **state)
{
    enum { LINES = 20011 };
    (void)state;
    char path[SCRATCH_MAX];
    FILE *f = fdopen(scratch_file(path), "w");
    assert_non_null(f);
    (void)fputs("arrival_s,prompt_tokens,output_tokens\n", f);
    for (int i = 0; i < LINES; i++) (void)fprintf(f, "%d.25,%d,%d\n", i, 100 + i % 37, 10 + i % 11);
    const long size = ftell(f);
    assert_int_equal(fclose(f), 0);
    struct arena *a = arena_open();
    struct workload w;
    struct err e = {0};
    struct seen all = {.most = SIZE_MAX}, few = {.most = 2};
    assert_int_equal(workload_read_watched(a, path, look, &all, &w, &e), ERR_OK);
    assert_int_equal(w.n, LINES);
    assert_true(all.calls == LINES / 4096 && all.all == (size_t)size);
    assert_int_equal(workload_read_watched(a, path, look, &few, &w, &e), ERR_STOPPED);
    assert_int_equal(few.calls, 2);
    assert_non_null(strstr(e.text, "interrupted while it was read, at line 8192"));
    arena_close(a);
}

/* A file of 2 GiB (a sparse one) is refused before it is read. */
static void test_large_file(void **state)
{
    (void)state;
    char path[SCRATCH_MAX];
    const int fd = scratch_file(path);
    assert_int_equal(ftruncate(fd, (off_t)1 << 31), 0);
    struct arena *a = arena_open();
    struct workload w;
    struct err e = {0};
    assert_int_equal(workload_read(a, path, &w, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "2.0 GiB, and traces of more than 1 GiB are not read"));
    assert_int_equal(workload_read(a, "/", &w, &e), ERR_IO);
    assert_int_equal(workload_read(a, "-", &w, &e), ERR_IO);
    assert_non_null(strstr(e.text, "write it to one first"));
    (void)close(fd);
    arena_close(a);
}

/* A block that stands behind other ones is another block. */
static void test_chains(void **state)
{
    static const char TEXT[] = "{\"timestamp\":0,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[0,1,2]}\n"
                               "{\"timestamp\":1,\"input_length\":1000,\"output_length\":5,\"hash_ids\":[0,9]}\n"
                               "{\"timestamp\":2,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[0,9,2]}\n"
                               "{\"timestamp\":3,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[0,1,2]}\n";
    struct arena *a = arena_open();
    struct workload w;
    struct err e = {0};
    uint64_t name[4][3] = {{0}};
    (void)state;
    assert_int_equal(workload_read_text(a, "t", TEXT, sizeof TEXT - 1, &w, &e), ERR_OK);
    for (size_t i = 0; i < 4; i++)
        for (int64_t k = 0; k < 3; k++) name[i][k] = workload_block_hash(&w, &w.request[i], 400, k);
    assert_true(name[0][0] == name[1][0] && name[0][0] == name[2][0] && name[0][0] != 0);
    for (int64_t k = 0; k < 3; k++) assert_true(name[0][k] == name[3][k]);
    const uint64_t two = workload_block_hash(&w, &w.request[0], 500, 2),
                   far = workload_block_hash(&w, &w.request[2], 500, 2);
    assert_true(two != 0 && far != 0 && two != far);
    assert_non_null(
        strstr(w.note, "hash_ids: 1 block that the trace names elsewhere too comes behind another beginning"));
    arena_close(a);
}

static void test_dates(void **state)
{
    static const char TITLE[] = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    static const struct {
        const char *day;
        bool is;
    } DAYS[] = {{"2023-02-30", false}, {"2023-02-29", false}, {"2024-02-29", true}, {"1900-02-29", false},
                {"2000-02-29", true},  {"2023-04-31", false}, {"2023-12-31", true}};
    struct arena *a = arena_open();
    (void)state;
    for (size_t i = 0; i < sizeof DAYS / sizeof *DAYS; i++) {
        char text[160];
        struct workload w;
        struct err e = {0};
        (void)snprintf(text, sizeof text, "%s%s 18:17:03.97,37,11\n", TITLE, DAYS[i].day);
        const enum err_code code = workload_read_text(a, "t", text, strlen(text), &w, &e);
        assert_int_equal(code, DAYS[i].is ? ERR_OK : ERR_INPUT);
    }
    arena_close(a);
}

/* Requests without times: a rate that is asked, their order kept. */
static void test_drawn_arrivals(void **state)
{
    enum { N = 20011 };
    struct arena *a = arena_open();
    struct err e = {0};
    struct workload w = {.n = N, .first_n = N, .request = arena_array(a, N, sizeof *w.request)};
    (void)state;
    for (size_t i = 0; i < N; i++) w.request[i].prompt_tokens = (int32_t)i + 1;
    assert_int_equal(workload_draw_arrivals(&w, 37, 1, &e), ERR_OK);
    assert_true(fabs(N / w.span_s / 37 - 1) < .03 && w.timed);
    for (size_t i = 1; i < N; i++)
        assert_true(w.request[i].arrival_s >= w.request[i - 1].arrival_s &&
                    w.request[i].prompt_tokens == (int32_t)i + 1);
    assert_true(fabs(workload_arrival_cv2(&w) - 1) < .05);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrivals),       cmocka_unit_test(test_chains),    cmocka_unit_test(test_dates),
        cmocka_unit_test(test_drawn_arrivals), cmocka_unit_test(test_diurnal),   cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_empirical),      cmocka_unit_test(test_seed),      cmocka_unit_test(test_turns),
        cmocka_unit_test(test_forms),          cmocka_unit_test(test_hashes),    cmocka_unit_test(test_notes),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_published), cmocka_unit_test(test_watched),
        cmocka_unit_test(test_large_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
