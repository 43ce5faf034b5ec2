/* Encoder-decoders as a server has them: steps of sequences that have a source in front, against a count by hand, the
 * passes of one request alone, and the same in pieces and in layouts. MODEL.md "Encoder-decoders", *Served*. */
#include <math.h>

#include "calc/time/mix.h"
#include "tests/families.h"

struct fixture {
    struct arena *a;
    struct model m;
    struct hw hw;
    struct step *alone, *served, *any;
    struct mix_plan *plan;
    struct mix mix;
    double source, start;
};

#define SMALL_BART                                                                                                     \
    "{\"model_type\":\"bart\",\"vocab_size\":257,\"max_position_embeddings\":512,\"d_model\":64,\"encoder_layers\":3," \
    "\"decoder_layers\":2,\"encoder_attention_heads\":8,\"decoder_attention_heads\":4,\"encoder_ffn_dim\":96,"         \
    "\"decoder_ffn_dim\":80,\"is_encoder_decoder\":true,\"torch_dtype\":\"float16\"}"
#define SMALL_SWITCH                                                                                                   \
    "{\"model_type\":\"switch_transformers\",\"d_model\":64,\"num_layers\":4,\"num_heads\":4,\"d_kv\":16,\"d_ff\":96," \
    "\"vocab_size\":256,\"num_experts\":8,\"n_positions\":512,\"torch_dtype\":\"bfloat16\"}"
#define SMALL_LONG                                                                                                     \
    "{\"model_type\":\"longt5\",\"d_model\":64,\"num_layers\":2,\"num_heads\":4,\"d_kv\":16,\"d_ff\":96,"              \
    "\"vocab_size\":256,\"local_radius\":31,\"n_positions\":512,\"torch_dtype\":\"bfloat16\"}"

static const struct {
    const char *model; /* or JSON */
    int64_t source;    /* 0: as the file has it */
} CASES[] = {{"whisper-large-v3", 0}, {"flan-t5-xl", 333}, {SMALL_BART, 97}, {SMALL_SWITCH, 129}, {SMALL_LONG, 201}};
enum { CASES_N = sizeof CASES / sizeof *CASES };

static void open_case(struct fixture *f, size_t i, int64_t tp, enum step_fidelity fidelity)
{
    struct err e = {0};
    const char *model = CASES[i].model;
    f->a = arena_open();
    const struct subject read = {.model = model, .json = model};
    if (*model == '{')
        f->m = families_read(f->a, &read);
    else if (model_load(f->a, model, NULL, 0, &f->m, &e) != ERR_OK)
        fail_msg("%s", e.text);
    if (CASES[i].source > 0 && model_set_source(&f->m, CASES[i].source, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(f->a, "h100-sxm", &f->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    struct step_setup u = {
        .model = &f->m, .hw = &f->hw, .layout = {.tp = tp}, .fidelity = fidelity, .block_tokens = 16};
    if (step_compile(f->a, &u, &f->alone, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    u.served = true;
    if (step_compile(f->a, &u, &f->served, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    if (mix_compile(f->a, &u, &f->plan, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    if (mix_open(f->a, f->plan, &f->mix, &e) != ERR_OK) fail_msg("%s", e.text);
    u.layout = (struct layout){0};
    u.any_layout = true;
    if (step_compile(f->a, &u, &f->any, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    f->source = (double)f->m.encoder.source_tokens;
    f->start = (double)f->m.encoder.start_tokens;
}

static void step_at(struct step *s, double B, double T, double S, double v[STEP_VALUES_N])
{
    struct err e = {0};
    if (step_eval_layout(s, NULL, B, T, S, 1, v, &e) != ERR_OK) fail_msg("%s", e.text);
}

static void close_to(double got, double want, size_t at, const char *what)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want)))
        fail_msg("%.24s: %s is %.17g, want %.17g", CASES[at].model, what, got, want);
}

/* A prompt is the encoder's pass and that of the decoder over what it begins with, a decoding sequence the decoder's
 * alone: those of one request, whose source and context are told apart. */
static void test_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES_N; i++)
        for (int64_t tp = 1; tp <= 2; tp++)
            for (enum step_fidelity fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
                struct fixture f;
                double v[STEP_VALUES_N], w[STEP_VALUES_N], x[MIX_VALUES_N];
                open_case(&f, i, tp, fidelity);
                step_at(f.alone, 7, f.source, 41, v);
                step_at(f.served, 7, f.source + f.start, f.source + 41, w);
                for (size_t k = 0; k < STEP_VALUES_N; k++) close_to(w[k], v[k], i, "a value of a step");
                mix_prefill(&f.mix, 1, f.source + f.start, 0);
                mix_eval(&f.mix, x);
                close_to(x[MIX_step_s], v[STEP_prefill_s], i, "prefill_s");
                close_to(x[MIX_flops], v[STEP_prefill_flops], i, "flops of a prompt");
                close_to(x[MIX_bytes], v[STEP_prefill_bytes], i, "bytes of a prompt");
                mix_clear(&f.mix);
                mix_decode(&f.mix, 7, f.source + 41);
                mix_eval(&f.mix, x);
                close_to(x[MIX_step_s], v[STEP_decode_step_s], i, "decode_step_s");
                close_to(x[MIX_flops], v[STEP_decode_flops], i, "flops of a decode step");
                close_to(x[MIX_bytes], v[STEP_decode_bytes], i, "bytes of a decode step");
                close_to(x[MIX_kv_bytes], v[STEP_kv_bytes], i, "cache");
                assert_true(fabs(mix_tokens(&f.mix) - 7) < 1e-9);
                arena_close(f.a);
            }
}

/* Whisper large-v3, by hand: five that decode, at 9, 9, 30, 31 and 200 tokens of their own, and two new ones of 4. */
static void test_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    const double D = 1280, F = 5120, L = 32, X = 1500, V = 51866, bands = 128;
    const double sources = 2, rows = 5 + 2 * 4, pairs = 9 + 9 + 30 + 31 + 200 + 2 * (1 + 2 + 3 + 4);
    double x[MIX_VALUES_N];
    open_case(&f, 0, 1, STEP_BOUND);
    mix_decode(&f.mix, 2, X + 9);
    mix_decode(&f.mix, 1, X + 30);
    mix_decode(&f.mix, 1, X + 31);
    mix_decode(&f.mix, 1, X + 200);
    mix_prefill(&f.mix, 2, X + 4, 0);
    mix_eval(&f.mix, x);
    const double stem = 2 * 2 * X * 3 * bands * D + 2 * X * 3 * D * D;
    const double encoder = L * (2 * X * (4 * D * D + 2 * D * F) + 2 * X * X * 2 * D), keys = L * 2 * X * 2 * D * D;
    const double own = L * (2 * rows * (4 * D * D + 2 * D * D + 2 * D * F) + 2 * 2 * D * pairs);
    const double across = L * 2 * 2 * D * rows * X, head = 2 * 7 * D * V;
    close_to(x[MIX_flops], sources * (stem + encoder + keys) + own + across + head, 0, "flops by hand");
    /* of all sequences the source and their own tokens: 2*D elements of 2 bytes each, in 32 layers */
    close_to(x[MIX_kv_bytes], L * 2 * D * 2 * (7 * X + 9 + 9 + 30 + 31 + 200 + 2 * 4), 0, "cache by hand");
    /* What is easily got wrong. The source as if it grew, or its keys made anew, in each step: */
    mix_clear(&f.mix);
    mix_decode(&f.mix, 1, X + 100);
    mix_eval(&f.mix, x);
    const double one = L * (2 * (4 * D * D + 2 * D * D + 2 * D * F) + 2 * 2 * D * (100 + X)) + 2 * D * V;
    close_to(x[MIX_flops], one, 0, "flops of a token");
    assert_true(x[MIX_flops] < one + keys / 2);
    /* and the encoder's weights, 636.6 million of 16 bits, read where nothing of it runs */
    const double encoder_bytes = 2 * (L * (4 * D * D + 2 * D * F) + 3 * bands * D + 3 * D * D);
    assert_true(x[MIX_bytes] < step_weight_bytes(f.served) + x[MIX_kv_bytes] * 1.01 - encoder_bytes);
    arena_close(f.a);
}

/* Pieces share the work of a source by its tokens; its weights are read by each. */
static void test_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES_N; i++) {
        struct fixture f;
        double whole[MIX_VALUES_N], pieces[MIX_VALUES_N], x[MIX_VALUES_N];
        open_case(&f, i, 1, STEP_ROOFLINE);
        const double all = f.source + f.start, chunk = ceil(all / 3);
        mix_prompt(&f.mix, all, all, whole);
        mix_prompt(&f.mix, all, chunk, pieces);
        const double head =
            2 * 2 * (double)(f.m.hidden * f.m.vocab); /* a row for each sequence of a step, three times */
        close_to(pieces[MIX_flops] - head, whole[MIX_flops], i, "flops of pieces");
        assert_true(pieces[MIX_bytes] > whole[MIX_bytes] && pieces[MIX_step_s] > whole[MIX_step_s]);
        close_to(pieces[MIX_kv_bytes], whole[MIX_kv_bytes], i, "cache of pieces");
        mix_clear(&f.mix);
        mix_prefill(&f.mix, 1, floor(f.source / 2), 0); /* nothing of the decoder yet */
        mix_eval(&f.mix, x);
        const double held = step_kv_bytes_per_source_token(f.served);
        close_to(x[MIX_kv_bytes], held * floor(f.source / 2), i, "cache of half a source");
        arena_close(f.a);
    }
}

/* Decoding sequences grow by what one token more of their own is. */
static void test_growth(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES_N; i++) {
        struct fixture f;
        double grown[MIX_VALUES_N], anew[MIX_VALUES_N];
        open_case(&f, i, 1, STEP_ROOFLINE);
        const double S = f.source + 50;
        assert_true(mix_settled_tokens(f.plan) > f.source && mix_settled_tokens(f.plan) <= S);
        mix_decode(&f.mix, 3, S);
        mix_advance(&f.mix, 3 * 17);
        mix_eval(&f.mix, grown);
        mix_clear(&f.mix);
        mix_decode(&f.mix, 3, S + 17);
        mix_eval(&f.mix, anew);
        for (size_t k = 0; k < MIX_VALUES_N; k++) close_to(grown[k], anew[k], i, "a value of a step that has grown");
        arena_close(f.a);
    }
}

/* One tape for all layouts has what each has by itself. */
static void test_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES_N; i++)
        for (int64_t tp = 1; tp <= 4; tp *= 2) {
            struct fixture f;
            struct err e = {0};
            double one[STEP_VALUES_N], any[STEP_VALUES_N];
            const struct layout l = {.tp = tp};
            open_case(&f, i, tp, STEP_ROOFLINE);
            step_at(f.served, 5, f.source + 3, f.source + 77, one);
            if (step_eval_layout(f.any, &l, 5, f.source + 3, f.source + 77, 1, any, &e) != ERR_OK)
                fail_msg("%s", e.text);
            for (size_t k = 0; k < STEP_VALUES_N; k++) close_to(any[k], one[k], i, "a value of a layout");
            arena_close(f.a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes), cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_pieces), cmocka_unit_test(test_growth),
                                       cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
