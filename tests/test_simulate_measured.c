/* The simulator against real servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "tests/csv.h"
#include "tests/server.h"

struct measured {
    double ttft_s[300], tpot_s[300], prompt_tokens[300];
    size_t n;
};

static bool read_measured(struct arena *a, const char *file, struct measured *m)
{
    struct csv *c = arena_alloc(a, sizeof *c);
    m->n = 0;
    assert_non_null(c);
    if (!csv_open(c, csv_shared(a, file))) return false;
    while (m->n < 300 && csv_next(c)) {
        m->ttft_s[m->n] = csv_num(c, "ttft_s");
        m->prompt_tokens[m->n] = csv_num(c, "prompt_tokens");
        m->tpot_s[m->n++] = csv_num(c, "tpot_ms") / 1e3;
    }
    csv_close(c);
    return m->n == 300;
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Median over every fourth request, or over the others. */
static double median(const double *v, size_t n, bool quarter)
{
    double kept[300];
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if ((i % 4 == 0) == quarter) kept[k++] = v[i];
    qsort(kept, k, sizeof *kept, by_value);
    return kept[k / 2];
}

/* Whether the queue grew. */
static bool simulated(const struct simulate_setup *s, double *ttft_s, double *tpot_s)
{
    struct arena *a = arena_open();
    const struct simulate_result r = server_run(a, s);
    for (size_t i = 0; i < r.n; i++) {
        ttft_s[i] = simulate_ttft_s(&r.record[i]);
        tpot_s[i] = simulate_tpot_s(&r.record[i]);
    }
    arena_close(a);
    return r.growing;
}

/* vLLM's own times, request by request: one factor on the seconds of calibrated kernels, fitted to the median TPOT of
 * every fourth request (and to nothing of TTFT), then medians of the others. The first is of a server that is
 * overloaded, and must be. The second ran two attention groups with experts in two parts. What a request waits for
 * beside the steps is that of first tokens, of another server (engine.h). */
static void test_measured(void **state)
{
    (void)state;
    static const struct {
        const char *file, *model;
        int64_t groups, seqs; /* attention groups, and parts of the experts */
        double tpot_within, ttft_within;
    } CASES[] = {{"serving/traces/measured_vllm_rtxpro6000_llama31_8b.csv", "llama-3.1-8b", 1, 128, .1, .2},
                 {"serving/traces/measured_vllm_rtxpro6000_qwen3_30b_a3b_dp2ep2.csv", "qwen3-30b-a3b", 2, 128, .1, .2}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct server b;
        struct measured m;
        struct workload w;
        struct engine vllm;
        struct engine_case server;
        struct err e = {0};
        double ttft_s[300], tpot_s[300], low = 0.25, high = 4;
        bool growing = false;
        server_open(&b, CASES[c].model, "rtx-pro-6000-server", STEP_ROOFLINE);
        if (!read_measured(b.arena, CASES[c].file, &m)) {
            arena_close(b.arena);
            skip();
        }
        const struct layout layout = {.tp = 1, .dp = CASES[c].groups, .ep = CASES[c].groups};
        const struct step_setup setup = {.model = &b.model, .hw = &b.hw, .layout = layout, .block_tokens = 16};
        if (workload_read(b.arena, csv_shared(b.arena, CASES[c].file), &w, &e) != ERR_OK ||
            engine_load(b.arena, "vllm", &vllm, &e) != ERR_OK ||
            engine_case_open(b.arena, &vllm, &setup, &server, &e) != ERR_OK)
            fail_msg("%s", e.text);
        struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
        s.plan = server.bound;
        s.server = &server;
        s.groups = CASES[c].groups;
        s.max_seqs = CASES[c].seqs * s.groups;
        s.budget_tokens *= s.groups;
        s.blocks *= s.groups;
        vllm.terms.host_s = vllm.terms.sequence_s = vllm.terms.kernel_s = 0;
        for (int k = 0; k < 12; k++) {
            vllm.terms.factor = sqrt(low * high);
            growing = simulated(&s, ttft_s, tpot_s);
            if (median(tpot_s, m.n, true) < median(m.tpot_s, m.n, true))
                low = vllm.terms.factor;
            else
                high = vllm.terms.factor;
        }
        const double tpot = median(tpot_s, m.n, false) / median(m.tpot_s, m.n, false) - 1,
                     ttft = (median(ttft_s, m.n, false) + engine_first_s(median(m.prompt_tokens, m.n, false))) /
                                median(m.ttft_s, m.n, false) -
                            1;
        print_message("%s: kernels times %.3f: TPOT %+.1f %%, TTFT %+.1f %%\n", CASES[c].model, vllm.terms.factor,
                      100 * tpot, 100 * ttft);
        assert_true(growing || CASES[c].groups > 1);
        if (fabs(tpot) > CASES[c].tpot_within || fabs(ttft) > CASES[c].ttft_within)
            fail_msg("%s: TPOT %+.3f, TTFT %+.3f", CASES[c].model, tpot, ttft);
        arena_close(b.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
