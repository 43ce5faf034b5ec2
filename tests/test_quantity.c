/* Named quantities against the functions that `ridge estimate` calls: cache, weights and parameters of every built-in
 * model, steps of both fidelities, and the three ways of putting a model in. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/sym/normal.h"
#include "calc/time/step.h"
#include "tests/learn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    int64_t B, S;
} POINTS[] = {{1, 1}, {7, 1531}, {61, 4099}, {3, 40009}};

static const struct cost_conventions COURSE = {.causal_full = true,
                                               .embed_full_table = true,
                                               .mlp_fused = true,
                                               .norms_uncounted = true,
                                               .activations_uncounted = true};

static void open_or_fail(struct learn *f, const char *model, const char *gpu, int64_t tp, bool course)
{
    struct err e = {0};
    if (learn_open(f, model, gpu, tp, course, &e) != ERR_OK) fail_msg("%s on %s: %s", model, gpu, e.text);
}

static double named_at(const struct quantity_scope *s, const char *name, int64_t B, int64_t S)
{
    struct err e = {0};
    const struct sym *v = learn_named(s, name, &e);
    if (!v) fail_msg("%s: %s", name, e.text);
    return learn_at(s, v, B, S);
}

static void assert_close(double got, double want, const char *model, const char *what)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("%s %s: %.17g, want %.17g", model, what, got, want);
}

static void assert_same(double got, double want, const char *model, const char *what)
{
    if (got < want || got > want || isnan(got)) fail_msg("%s %s: %.17g, want %.17g", model, what, got, want);
}

/* ---- what is stored ---- */

static void check_cache(const struct learn *f, const char *name)
{
    struct cost_cache cache;
    struct err e = {0};
    const struct quantity_scope *s = &f->scope;
    assert_int_equal(cost_cache(s->c, &s->y, s->model, s->tp, &cache, &e), ERR_OK);
    const struct sym *kv = learn_named(s, "kv_bytes", &e);
    assert_non_null(kv);
    const bool whole = model_passes_whole(s->model); /* keeps none */
    for (size_t k = 0; k < COUNT(POINTS); k++)
        assert_same(learn_at(s, kv, POINTS[k].B, POINTS[k].S),
                    whole ? 0 : (double)POINTS[k].B * learn_at(s, cache.bytes_per_sequence, 1, POINTS[k].S), name,
                    "kv_bytes");
}

/* kv_bytes is the sum of what operators hold: B times the cache of one sequence; as expressions where algebra may. */
static void test_cache_is_what_operators_hold(void **state)
{
    (void)state;
    struct arena *names = arena_open();
    const char *const *all;
    const size_t n = model_builtins(names, &all);
    assert_true(n > 50);
    for (size_t i = 0; i < n; i++) {
        struct learn f;
        open_or_fail(&f, all[i], NULL, 1, i % 2);
        check_cache(&f, all[i]);
        arena_close(f.a);
    }
    arena_close(names);
}

static void test_cache_of_one_rank(void **state)
{
    static const struct {
        const char *model;
        int64_t tp;
    } ROWS[] = {
        {"llama-3.1-70b", 2}, {"llama-3.1-70b", 16}, {"deepseek-v3", 8}, {"gemma-3-27b", 4}, {"gpt-oss-120b", 8}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        open_or_fail(&f, ROWS[i].model, NULL, ROWS[i].tp, false);
        check_cache(&f, ROWS[i].model);
        arena_close(f.a);
    }
}

static void test_parameters_and_weights(void **state)
{
    (void)state;
    struct arena *names = arena_open();
    const char *const *all;
    const size_t n = model_builtins(names, &all);
    for (size_t i = 0; i < n; i++) {
        struct learn f;
        struct cost_parameters want;
        struct step *step;
        struct err e = {0};
        open_or_fail(&f, all[i], "h200-sxm", 1, i % 2);
        assert_int_equal(cost_parameters(f.a, &f.model, i % 2 ? &COURSE : &(struct cost_conventions){0}, &want, &e),
                         ERR_OK);
        assert_same(named_at(&f.scope, "params", 1, 1), want.total, all[i], "params");
        assert_same(named_at(&f.scope, "active_params", 1, 1), want.active, all[i], "active_params");
        const struct step_setup setup = {.model = &f.model,
                                         .hw = &f.hw,
                                         .layout = {.tp = 1},
                                         .fidelity = STEP_BOUND,
                                         .conventions = f.scope.conventions,
                                         .block_tokens = 16};
        assert_int_equal(step_compile(f.a, &setup, &step, &e), ERR_OK);
        assert_same(named_at(&f.scope, "weight_bytes", 1, 1), step_weight_bytes(step), all[i], "weight_bytes");
        assert_same(named_at(&f.scope, "resident_bytes", 3, 1021),
                    step_weight_bytes(step) + named_at(&f.scope, "kv_bytes", 3, 1021) +
                        3 * step_state_bytes_per_sequence(step) + step_beside_bytes(step),
                    all[i], "resident_bytes");
        arena_close(f.a);
    }
    arena_close(names);
}

/* ---- steps ---- */

static void check_step(struct learn *f, enum step_fidelity fidelity, bool course, bool together)
{
    const char *name = f->model.name;
    struct err e = {0};
    struct step *step;
    struct quantity_topic decode, prefill;
    struct quantity_scope *s = &f->scope;
    s->fidelity = fidelity;
    s->prefill_together = together;
    const struct step_setup setup = {.model = &f->model,
                                     .hw = &f->hw,
                                     .layout = {.tp = s->tp},
                                     .fidelity = fidelity,
                                     .conventions = course ? COURSE : (struct cost_conventions){0},
                                     .prefill_together = together,
                                     .uncached = model_passes_whole(&f->model),
                                     .pass_tokens = f->model.block_tokens,
                                     .block_tokens = 16};
    if (step_compile(f->a, &setup, &step, &e) != ERR_OK) fail_msg("%s: %s", name, e.text);
    assert_int_equal(quantity_topic(s, "decode_step", QUANTITY_ANY, &decode, &e), ERR_OK);
    const bool whole = model_passes_whole(&f->model); /* has no prefill: every pass takes all */
    assert_int_equal(quantity_topic(s, "prefill", QUANTITY_DECODE, &prefill, &e), whole ? ERR_USAGE : ERR_OK);
    for (size_t k = 0; k < COUNT(POINTS); k++) {
        const double B = (double)POINTS[k].B, S = (double)POINTS[k].S;
        const double T = f->model.encoder.layers > 0 ? (double)f->model.encoder.source_tokens : S; /* what comes in */
        double v[STEP_VALUES_N], *out[STEP_VALUES_N];
        for (size_t i = 0; i < STEP_VALUES_N; i++) out[i] = &v[i];
        step_eval(step, 1, &B, &T, &S, NULL, out);
        const struct {
            const struct quantity_topic *topic;
            size_t at;
            const char *what;
        } pass[] = {{&prefill, STEP_prefill_s, "prefill"}, {&decode, STEP_decode_step_s, "decode_step"}};
        for (size_t p = whole; p < 2; p++) {
            const struct timed_total *t = &pass[p].topic->total;
            const struct sym *const want[] = {t->time_s, t->flops, t->bytes, t->compute_s, t->memory_s, t->link_s};
            for (size_t i = 0; i < COUNT(want); i++)
                assert_close(learn_at(s, want[i], POINTS[k].B, POINTS[k].S), v[pass[p].at + i], name, pass[p].what);
            assert_true(pass[p].topic->bytes == t->bytes);
        }
        assert_close(named_at(s, "throughput", POINTS[k].B, POINTS[k].S), B / v[STEP_decode_step_s], name,
                     "throughput");
    }
}

static bool divides(const struct model *m, int64_t tp)
{
    struct arena *a = arena_open();
    struct quantity_scope s;
    struct quantity_topic t;
    struct err e = {0};
    assert_int_equal(quantity_open(a, NULL, false, &s, &e), ERR_OK);
    s.model = m;
    s.tp = tp;
    const enum err_code code = quantity_topic(&s, "decode_step", QUANTITY_DECODE, &t, &e);
    arena_close(a);
    return code == ERR_OK;
}

/* Every model on one device and on eight, where its heads divide; devices and conventions take turns. */
static void test_steps_are_those_of_estimate(void **state)
{
    static const char *const GPUS[] = {"h100-sxm", "h200-sxm", "a100-80g", "mi300x", "b200-sxm"};
    (void)state;
    struct arena *names = arena_open();
    const char *const *all;
    const size_t n = model_builtins(names, &all);
    size_t split = 0;
    for (size_t i = 0; i < n; i++)
        for (int64_t tp = 1; tp <= 8; tp += 7) {
            struct learn f;
            open_or_fail(&f, all[i], GPUS[(i + (size_t)tp) % COUNT(GPUS)], tp, i % 3 == 0);
            if (divides(&f.model, tp)) {
                check_step(&f, STEP_BOUND, i % 3 == 0, i % 2 == 0);
                check_step(&f, STEP_ROOFLINE, i % 3 == 0, i % 2 == 1);
                split += tp == 8;
            }
            arena_close(f.a);
        }
    arena_close(names);
    assert_true(split > 30);
}

/* ---- ways of putting a model in ---- */

/* x = 1 is the model, of every kind of layer; L = 1 too. */
static void test_relative_sizes_at_one_are_the_model(void **state)
{
    (void)state;
    struct arena *names = arena_open();
    const char *const *all;
    const size_t n = model_builtins(names, &all);
    for (size_t i = 0; i < n; i++) {
        struct learn f;
        struct err e = {0};
        struct quantity_named want[QUANTITY_NAMED_MAX], got[QUANTITY_NAMED_MAX];
        size_t want_n, got_n;
        open_or_fail(&f, all[i], "h200-sxm", 1, i % 5 == 0);
        struct quantity_scope s = f.scope;
        const struct cost_symbols y = s.y;
        assert_int_equal(quantity_named_all(&s, want, &want_n, &e), ERR_OK);
        s.sizes = QUANTITY_RELATIVE;
        assert_int_equal(quantity_named_all(&s, got, &got_n, &e), ERR_OK);
        assert_int_equal(got_n, want_n);
        struct sym_binding one[64];
        size_t k = 0;
#define X(field, text, meaning)                                                                                        \
    if (y.field != y.B && y.field != y.S) one[k++] = (struct sym_binding){y.field, sym_int(s.c, 1)};
        COST_SYMBOLS(X)
#undef X
        for (size_t j = 0; j < want_n; j++)
            assert_close(learn_at(&s, sym_bind(s.c, got[j].value, one, k), 11, 1777),
                         learn_at(&s, want[j].value, 11, 1777), all[i], want[j].name);
        arena_close(f.a);
    }
    arena_close(names);
}

/* The numbers of a model with one kind of layer, as the test reads them from its description. */
static size_t numbers_of(const struct quantity_scope *s, struct sym_binding *env)
{
    const struct model *m = s->model;
    const struct layer_kind *k = &m->kinds[0];
    const struct cost_symbols *y = &s->y;
    const struct {
        const struct sym *var;
        int64_t value;
    } sizes[] = {{y->L, m->layers},
                 {y->D, m->hidden},
                 {y->F, k->ffn.width},
                 {y->N, k->mixer.heads},
                 {y->K, k->mixer.kv_heads},
                 {y->H, k->mixer.head_dim},
                 {y->Hv, k->mixer.v_head_dim},
                 {y->V, m->vocab},
                 {y->E, k->ffn.experts},
                 {y->k, k->ffn.experts_per_token},
                 {y->Fs, k->ffn.shared_width},
                 {y->C, k->mixer.kv_rank},
                 {y->R, k->mixer.rope_dim},
                 {y->Q, k->mixer.q_rank},
                 {y->W, k->mixer.window_tokens},
                 {y->U, k->mixer.top_keys},
                 {y->Ni, k->mixer.index_heads},
                 {y->Hi, k->mixer.index_dim},
                 {y->Dl, m->per_layer_dim},
                 {y->Vl, m->per_layer_vocab},
                 {y->A, m->streams},
                 {y->La, m->laurel_rank},
                 {y->P, m->position_rows},
                 {y->J, k->mixer.recurrence.conv_taps},
                 {y->Tc, k->mixer.recurrence.chunk_tokens},
                 {y->Ra, k->mixer.recurrence.rank},
                 {y->Rm, k->mixer.recurrence.mix_rank},
                 {y->Ri, k->mixer.recurrence.rate_rank},
                 {y->Rv, k->mixer.recurrence.value_rank},
                 {y->Rg, k->mixer.recurrence.gate_rank},
                 {y->Hf, k->mixer.recurrence.feature_dim},
                 {y->Fw, k->mixer.recurrence.filter_width},
                 {y->Fe, k->mixer.recurrence.filter_inputs},
                 {y->Ft, k->mixer.recurrence.filter_tokens},
                 {y->t, 1}};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(sizes); i++)
        env[n++] = (struct sym_binding){sizes[i].var, sym_int(s->c, sizes[i].value)};
    env[n++] = (struct sym_binding){y->b_kv, sym_num(s->c, m->kv.bits / 8)};
    return n;
}

static void test_symbols_with_numbers_bound_are_the_numbers(void **state)
{
    (void)state;
    struct arena *names = arena_open();
    const char *const *all;
    const size_t n = model_builtins(names, &all);
    size_t single = 0;
    for (size_t i = 0; i < n; i++) {
        struct learn f;
        struct err e = {0};
        open_or_fail(&f, all[i], i % 2 ? "h100-sxm" : NULL, 1, i % 4 == 1);
        if (f.model.kinds_n == 1) {
            struct quantity_named want[QUANTITY_NAMED_MAX], got[QUANTITY_NAMED_MAX];
            struct sym_binding env[48];
            size_t want_n, got_n;
            struct quantity_scope s = f.scope;
            single++;
            if (i % 2 == 0) { /* rates as numbers that are no device's */
                s.rates.bandwidth = sym_num(s.c, 1.7e12);
                for (size_t k = 0; k < HW_DTYPES_N; k++) s.rates.peak[k] = sym_num(s.c, 3.1e14 + 1e13 * (double)k);
            }
            assert_int_equal(quantity_named_all(&s, want, &want_n, &e), ERR_OK);
            s.sizes = QUANTITY_SYMBOLS;
            assert_int_equal(quantity_named_all(&s, got, &got_n, &e), ERR_OK);
            assert_int_equal(got_n, want_n);
            const size_t k = numbers_of(&s, env);
            for (size_t j = 0; j < want_n; j++)
                assert_close(learn_at(&s, sym_bind(s.c, got[j].value, env, k), 13, 4567),
                             learn_at(&s, want[j].value, 13, 4567), all[i], want[j].name);
        }
        arena_close(f.a);
    }
    arena_close(names);
    assert_true(single > 30);
}

/* Rates as symbols, then bound, are the same as quantity_device from the start. */
static void test_rates_as_symbols_bound_later(void **state)
{
    static const struct {
        const char *model, *gpu;
        int64_t tp;
    } ROWS[] = {{"llama-2-13b", "h100-sxm", 1}, {"deepseek-v3", "h200-sxm", 8}, {"gemma-3-27b", "a100-80g", 2},
                {"mixtral-8x7b", "mi300x", 4},  {"gpt-oss-20b", "b200-sxm", 1}, {"gpt2-xl", "epyc-9654", 1}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            struct learn f;
            struct err e = {0};
            open_or_fail(&f, ROWS[i].model, ROWS[i].gpu, ROWS[i].tp, false);
            struct quantity_scope with = f.scope, s = f.scope;
            s.fidelity = with.fidelity = (enum step_fidelity)fidelity;
            s.rates = rates_make(s.c);
            struct sym_binding env[RATES_N];
            const char *meaning;
            for (size_t k = 0; k < RATES_N; k++)
                env[k] = (struct sym_binding){rates_list(&s.rates, k, &meaning), rates_list(&with.rates, k, &meaning)};
            struct quantity_named want[QUANTITY_NAMED_MAX], got[QUANTITY_NAMED_MAX];
            size_t n, got_n;
            assert_int_equal(quantity_named_all(&with, want, &n, &e), ERR_OK);
            assert_int_equal(quantity_named_all(&s, got, &got_n, &e), ERR_OK);
            assert_int_equal(n, got_n);
            assert_int_equal(n, 11);
            for (size_t k = 0; k < n; k++)
                assert_close(learn_at(&s, sym_bind(s.c, got[k].value, env, RATES_N), 17, 2311),
                             learn_at(&s, want[k].value, 17, 2311), ROWS[i].model, want[k].name);
            arena_close(f.a);
        }
}

/* ---- topics ---- */

/* A topic of a layer has the numbers of `estimate --per-op` for that layer: the sum over its operators, once. */
static void test_topics_are_operators_of_the_step(void **state)
{
    static const struct {
        const char *model, *topic, *op[2];
        enum step_phase phase;
        int layer; /* from 0; -1 the first that has it */
    } ROWS[] = {{"llama-2-13b", "attention", {"attention", NULL}, STEP_DECODE, -1},
                {"llama-2-13b", "attention", {"attention", NULL}, STEP_PREFILL, -1},
                {"llama-3.1-8b", "qkv_proj", {"qkv_proj", NULL}, STEP_DECODE, -1},
                {"gemma-3-27b", "attention", {"attention", NULL}, STEP_DECODE, 0},
                {"gemma-3-27b", "attention", {"attention", NULL}, STEP_PREFILL, 1},
                {"deepseek-v3", "attention", {"attention", NULL}, STEP_DECODE, -1},
                {"deepseek-v3", "attention", {"attention", NULL}, STEP_PREFILL, -1},
                {"deepseek-v3", "latent_attention", {"attention", NULL}, STEP_DECODE, -1},
                {"deepseek-v3", "q_absorb", {"q_absorb", NULL}, STEP_DECODE, 1},
                {"deepseek-v3", "experts", {"experts_up", "experts_down"}, STEP_DECODE, -1},
                {"deepseek-v3", "shared_expert", {"shared_up", "shared_down"}, STEP_PREFILL, -1},
                {"mixtral-8x7b", "router", {"router", NULL}, STEP_DECODE, -1},
                {"gpt2-xl", "up_proj", {"up_proj", NULL}, STEP_PREFILL, -1},
                {"gpt2-xl", "lm_head", {"lm_head", NULL}, STEP_DECODE, -1}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        struct err e = {0};
        struct quantity_topic t;
        struct step *step;
        struct step_op *op;
        size_t n;
        open_or_fail(&f, ROWS[i].model, "h100-sxm", 1, false);
        f.scope.layer = ROWS[i].layer;
        const struct step_setup setup = {.model = &f.model,
                                         .hw = &f.hw,
                                         .layout = {.tp = 1},
                                         .fidelity = STEP_ROOFLINE,
                                         .prefill_together = true,
                                         .block_tokens = 16};
        assert_int_equal(step_compile(f.a, &setup, &step, &e), ERR_OK);
        assert_int_equal(step_ops(f.a, step, ROWS[i].phase, 5, 3001, 3001, 1, &op, &n, &e), ERR_OK);
        const enum quantity_phase phase = ROWS[i].phase == STEP_DECODE ? QUANTITY_DECODE : QUANTITY_PREFILL;
        if (quantity_topic(&f.scope, ROWS[i].topic, phase, &t, &e) != ERR_OK) fail_msg("%s", e.text);
        double flops = 0, bytes = 0, time_s = 0;
        const char *kind = ROWS[i].layer < 0 ? NULL : f.model.kinds[ROWS[i].layer].label;
        for (size_t k = 0; k < 2 && ROWS[i].op[k]; k++)
            for (size_t j = 0; j < n; j++) {
                if (strcmp(op[j].name, ROWS[i].op[k]) != 0 || (kind && strcmp(kind, op[j].layer) != 0)) continue;
                flops += op[j].flops / (double)op[j].count;
                bytes += op[j].bytes / (double)op[j].count;
                time_s += op[j].time_s / (double)op[j].count;
                break;
            }
        assert_close(learn_at(&f.scope, t.total.flops, 5, 3001), flops, ROWS[i].model, ROWS[i].topic);
        assert_close(learn_at(&f.scope, t.bytes, 5, 3001), bytes, ROWS[i].model, ROWS[i].topic);
        assert_close(learn_at(&f.scope, t.total.time_s, 5, 3001), time_s, ROWS[i].model, ROWS[i].topic);
        arena_close(f.a);
    }
}

/* calls are the topic's sums; intensity is flops over bytes */
static void test_calls(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    struct quantity_topic t;
    size_t n;
    bool equal;
    const struct sym *got, *flops = NULL, *bytes = NULL, *ratio = NULL;
    open_or_fail(&f, NULL, NULL, 1, false);
    struct sym_ctx *c = f.scope.c;
    const char *const *calls = quantity_calls(&n);
    for (const char *const *name = quantity_names(); *name; name++) {
        assert_non_null(quantity_meaning(*name));
        assert_int_equal(quantity_topic(&f.scope, *name, QUANTITY_ANY, &t, &e), ERR_OK);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, calls[i], *name, &got, &e), ERR_OK);
            if (strcmp(calls[i], "flops") == 0) flops = got;
            if (strcmp(calls[i], "bytes") == 0) bytes = got;
            if (strcmp(calls[i], "intensity") == 0) ratio = got;
        }
        assert_true(flops == t.total.flops && bytes == t.bytes);
        assert_int_equal(sym_equal(c, sym_mul(c, ratio, bytes), flops, &equal, &e), ERR_OK);
        assert_true(equal);
    }
    assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, "flop", "mlp", &got, &e), ERR_USAGE);
    assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, "flops", "mpl", &got, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "did you mean mlp"));
    assert_null(quantity_meaning("mpl"));
    arena_close(f.a);
}

static void test_refused_topics(void **state)
{
    static const struct {
        const char *model, *topic, *says;
    } ROWS[] = {{"llama-2-13b", "latent_attention", "llama-2-13b has no latent attention"},
                {"llama-2-13b", "experts", "llama-2-13b has no experts"},
                {"llama-2-13b", "router", "has no router"},
                {"mixtral-8x7b", "mlp", "has no mlp"},
                {"gpt2", "rope", "has no rope"},
                {"gemma-3-27b", "layer", "2 kinds of layer"},
                {"deepseek-v3", "layer", "--layer 1..2"},
                {"deepseek-v3", "nonsense", "no topic"}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct learn f;
        struct err e = {0};
        struct quantity_topic t;
        open_or_fail(&f, ROWS[i].model, NULL, 1, false);
        assert_int_equal(quantity_topic(&f.scope, ROWS[i].topic, QUANTITY_ANY, &t, &e), ERR_USAGE);
        if (!strstr(e.text, ROWS[i].says)) fail_msg("%s: %s", ROWS[i].topic, e.text);
        arena_close(f.a);
    }
}

/* Speculation: several query tokens in a decode step charge their FLOPs, and hold no more cache. */
static void test_query_tokens_of_a_decode_step(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    struct quantity_topic one, five;
    open_or_fail(&f, "llama-3.1-8b", "h100-sxm", 1, false);
    assert_int_equal(quantity_topic(&f.scope, "qkv_proj", QUANTITY_DECODE, &one, &e), ERR_OK);
    const double kv = named_at(&f.scope, "kv_bytes", 3, 911), step = named_at(&f.scope, "decode_step", 3, 911);
    f.scope.tokens = sym_int(f.scope.c, 5);
    assert_int_equal(quantity_topic(&f.scope, "qkv_proj", QUANTITY_DECODE, &five, &e), ERR_OK);
    assert_same(learn_at(&f.scope, five.total.flops, 3, 911), 5 * learn_at(&f.scope, one.total.flops, 3, 911), "8b",
                "flops of five");
    assert_same(named_at(&f.scope, "kv_bytes", 3, 911), kv, "8b", "kv_bytes");
    assert_true(named_at(&f.scope, "decode_step", 3, 911) > step);
    arena_close(f.a);
}

/* A device without a known peak has no seconds, and says so. */
static void test_no_peak_no_seconds(void **state)
{
    (void)state;
    struct learn f;
    struct err e = {0};
    struct quantity_named list[QUANTITY_NAMED_MAX];
    size_t n;
    const struct sym *got;
    open_or_fail(&f, "llama-3.1-8b", "h100-sxm", 1, false);
    for (size_t i = 0; i < HW_DTYPES_N; i++) f.hw.peak_flops_per_s[i] = (double)NAN;
    assert_int_equal(quantity_device(&f.scope, &f.hw, &e), ERR_OK);
    assert_int_equal(quantity_named_all(&f.scope, list, &n, &e), ERR_OK);
    assert_int_equal(n, 6); /* params, active, weights, kv, memory; capacity */
    assert_string_equal(list[5].name, "capacity_bytes");
    assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, "time", "mlp", &got, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "no peak rate"));
    assert_int_equal(quantity_resolve(&f.scope, QUANTITY_ANY, "flops", "mlp", &got, &e), ERR_OK);
    arena_close(f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_is_what_operators_hold),
        cmocka_unit_test(test_cache_of_one_rank),
        cmocka_unit_test(test_parameters_and_weights),
        cmocka_unit_test(test_steps_are_those_of_estimate),
        cmocka_unit_test(test_relative_sizes_at_one_are_the_model),
        cmocka_unit_test(test_symbols_with_numbers_bound_are_the_numbers),
        cmocka_unit_test(test_rates_as_symbols_bound_later),
        cmocka_unit_test(test_topics_are_operators_of_the_step),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_refused_topics),
        cmocka_unit_test(test_query_tokens_of_a_decode_step),
        cmocka_unit_test(test_no_peak_no_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
