/* The operators of calc/cost against an independent count (tests/naive.h): for one small model of every family's form,
 * read from its config.json, each operator's flops and bytes must be what loops over elements count, exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"
#include "calc/model/model.h"
#include "calc/model/stored.h"
#include "tests/naive_pair_models.h"

static const struct subject *const SUBJECTS[] = {&LLAMA,
                                                 &LLAMA_BIASED,
                                                 &GPT2,
                                                 &QWEN2,
                                                 &QWEN3,
                                                 &GEMMA2,
                                                 &GEMMA3,
                                                 &MISTRAL,
                                                 &MIXTRAL,
                                                 &QWEN2_MOE,
                                                 &QWEN3_MOE,
                                                 &DEEPSEEK_V2,
                                                 &DEEPSEEK_V3,
                                                 &GPT_OSS,
                                                 &FALCON,
                                                 &FALCON_NEW,
                                                 &PHI,
                                                 &COHERE,
                                                 &BLOOM,
                                                 &MPT,
                                                 &OPT,
                                                 &GPTJ,
                                                 &OLMO2,
                                                 &QWEN1,
                                                 &COHERE2,
                                                 &EXAONE4,
                                                 &SMOLLM3,
                                                 &LLAMA4,
                                                 &MIMO_V2,
                                                 &ERNIE,
                                                 &HUNYUAN,
                                                 &DBRX,
                                                 &MINICPM3,
                                                 &DSA,
                                                 &MINIMAX_M3,
                                                 &GEMMA3N,
                                                 &GEMMA4,
                                                 &GEMMA4_SMALL,
                                                 &NAS,
                                                 &CLA,
                                                 &MAMBA,
                                                 &FALCON_MAMBA,
                                                 &MAMBA2,
                                                 &PLAMO2,
                                                 &XLSTM,
                                                 &JAMBA,
                                                 &ZAMBA2,
                                                 &NEMOTRON_H,
                                                 &GRANITE_HYBRID,
                                                 &QWEN3_NEXT,
                                                 &QWEN3_5,
                                                 &KIMI_LINEAR,
                                                 &KIMI_K3,
                                                 &MINIMAX,
                                                 &LFM2,
                                                 &LFM2_MOE,
                                                 &BAMBA,
                                                 &RECURRENT_GEMMA,
                                                 &GATED_DELTANET,
                                                 &GLA,
                                                 &RETNET,
                                                 &RWKV5,
                                                 &DELTA_NET,
                                                 &RWKV6,
                                                 &RWKV7,
                                                 &SAMBA,
                                                 &GLA_MIXED,
                                                 &BASED,
                                                 &H3,
                                                 &S4D,
                                                 &MAMBA_SSM,
                                                 &MAMBA2_ATTN,
                                                 &STRIPED_HYENA,
                                                 &HYENA_DNA,
                                                 &ZAMBA2_ADAPTED,
                                                 &EAGLE1,
                                                 &EAGLE3,
                                                 &DFLASH,
                                                 &MEDUSA,
                                                 &MLLAMA,
                                                 &LLADA,
                                                 &DREAM,
                                                 &SDAR,
                                                 &OLMO1,
                                                 &NANOCHAT,
                                                 &APERTUS,
                                                 &BITNET,
                                                 &LONGCAT,
                                                 &STEP3,
                                                 &STEP3P5,
                                                 &FALCON_H1,
                                                 &ZAMBA1,
                                                 &OLMO_HYBRID,
                                                 &RWKV4,
                                                 &AXK1,
                                                 &AXK2,
                                                 &LING_LINEAR,
                                                 &DIFFLLAMA,
                                                 &PHI4FLASH,
                                                 &DOGE,
                                                 &GROVE,
                                                 &MODERNBERT,
                                                 &NEOX_JAPANESE,
                                                 &CHAMELEON,
                                                 &VOXTRAL};

enum { SUBJECTS_N = sizeof SUBJECTS / sizeof SUBJECTS[0] };

/* ---- both sides ---- */

static void set_format(struct naive_format *f)
{
    if (f->element_bytes == 0) f->element_bytes = 2;
}

static struct naive_model architecture(const struct subject *s)
{
    struct naive_model m = s->base;
    struct naive_format *const formats[] = {&m.embed,  &m.head,   &m.mixer, &m.ffn,
                                            &m.expert, &m.router, &m.other, &m.cache};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) set_format(formats[i]);
    if (m.activation_bytes == 0) m.activation_bytes = 2;
    if (m.state_bytes == 0) m.state_bytes = 4;
    for (const char *p = s->pattern; *p; p++) {
        m.layer[m.layers] = s->form[*p - '0'];
        m.layer[m.layers++].type = *p - '0';
    }
    return m;
}

static struct model read_model(struct arena *a, const char *text)
{
    struct json j;
    struct model m = {0};
    struct err e = {0};
    if (json_parse(a, "config.json", text, strlen(text), &j, &e) != ERR_OK || model_parse(a, &j, &m, &e) != ERR_OK)
        fail_msg("%s", e.text);
    m.name = "test";
    return m;
}

/* The fields of an operator, in one order for both sides. */
enum {
    FIELDS = 12,
    PER_PASS = 10,
    VECTOR = 1,
    WEIGHTS = 2,
    WIRE = 6,
    NEEDED_WEIGHTS = 9
}; /* the last ones are of the model, not of a pass */
static const char *const FIELD[FIELDS] = {"flops",
                                          "vector_flops",
                                          "weight_bytes",
                                          "kv_bytes",
                                          "kv_needed_bytes",
                                          "activation_bytes",
                                          "wire_bytes",
                                          "state_bytes",
                                          "state_needed_bytes",
                                          "weight_needed_bytes",
                                          "stored elements",
                                          "stored bytes"};

static void naive_fields(const struct naive_op *op, double *v)
{
    const double of[FIELDS] = {op->flops,
                               op->vector_flops,
                               op->weight_bytes,
                               op->kv_bytes,
                               op->kv_needed_bytes,
                               op->activation_bytes,
                               op->wire_bytes,
                               op->state_bytes,
                               op->state_needed_bytes,
                               op->reread ? 0 : op->weight_bytes,
                               op->stored_elems,
                               op->stored_bytes};
    memcpy(v, of, sizeof of);
}

/* Values of all operators at a point; v holds FIELDS of each. M 0: one pass. */
static void evaluate(struct arena *a, const struct model *m, const struct naive_pass *p, int M, struct cost_ops *ops,
                     double *v)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions conv = {.causal_full = p->causal_full,
                                          .embed_full_table = p->embed_full_table,
                                          .mlp_fused = p->mlp_fused,
                                          .head_all = p->head_all,
                                          .norms_uncounted = p->norms_uncounted};
    const struct cost_pass pass = {.name = "test",
                                   .B = y.B,
                                   .S = y.S,
                                   .absorbed = p->absorbed,
                                   .uncached = p->uncached,
                                   .all_logits = p->all_logits,
                                   .T = p->T == p->S ? y.S
                                        : p->T == 1  ? sym_int(c, 1)
                                                     : y.T,
                                   .M = M ? y.M : NULL};
    if (cost_build(a, c, &y, m, &conv, &pass, p->ranks, ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(c, &y, m, p->ranks, ops, &e) != ERR_OK) fail_msg("%s", e.text);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        const struct sym *elems = sym_int(c, 0), *bytes = elems;
        for (size_t j = 0; j < op->tensors_n; j++) {
            if (op->tensor[j].shared) continue;
            elems = sym_add(c, elems, op->tensor[j].elems);
            bytes = sym_add(c, bytes, op->tensor[j].bytes);
        }
        const struct sym *const field[FIELDS] = {op->flops,
                                                 op->vector_flops,
                                                 op->weight_bytes,
                                                 op->kv_bytes,
                                                 op->kv_needed_bytes,
                                                 op->activation_bytes,
                                                 op->wire_bytes,
                                                 op->state_bytes,
                                                 op->state_needed_bytes,
                                                 op->weight_needed_bytes,
                                                 elems,
                                                 bytes};
        const struct sym *const in[] = {y.B, y.S, y.T, y.M, y.r};
        const double at[] = {p->B, p->S, p->T, M, 2.0 * (p->ranks - 1) / p->ranks};
        const double *const column[] = {&at[0], &at[1], &at[2], &at[3], &at[4]};
        double *out[FIELDS];
        struct sym_tape *tape;
        for (size_t f = 0; f < FIELDS; f++) out[f] = &v[i * FIELDS + f];
        if (sym_tape_compile(a, FIELDS, field, 5, in, &tape, &e) != ERR_OK) fail_msg("%s: %s", op->name, e.text);
        sym_tape_eval(tape, 1, column, out);
    }
}

/* Weight bytes of experts are expectations; a mean over M steps, and a ring's chunk, may have a fraction without a
 * finite binary form. All else is exact. */
static bool equal(double got, double want, bool inexact)
{
    return inexact ? fabs(got - want) <= 1e-14 * fabs(want) : got == want;
}

/* Whether a field may have such a fraction; so may the logarithm of a transform. */
static bool fraction(size_t field, int M, bool experts, bool transformed)
{
    return M || field == WIRE || (transformed && field == VECTOR) ||
           (experts && (field == WEIGHTS || field == NEEDED_WEIGHTS));
}

/* The operator of layer type `type` (-1: outside) after `skip` others of its type. */
static size_t find(const struct cost_ops *ops, int type, size_t skip)
{
    for (size_t i = 0; i < ops->n; i++)
        if (ops->op[i].kind_index == type && skip-- == 0) return i;
    fail_msg("no operator %zu more of layer type %d", skip, type);
    return 0;
}

/* Every operator at one point, and the sums over all layers; M > 0: against the mean of M walks. */
static void compare(struct arena *a, const struct model *m, const struct naive_model *n, const struct naive_pass *p,
                    int M)
{
    struct naive_ops *walk = arena_alloc(a, sizeof *walk), *step = arena_alloc(a, sizeof *step);
    double *v = arena_array(a, (size_t)FIELDS * 256, sizeof *v);
    double total[FIELDS] = {0}, want_total[FIELDS] = {0};
    struct cost_ops ops;
    if (!walk || !step || !v) fail_msg("out of memory");
    naive_count(n, p, walk);
    for (int i = 1; i < M; i++) {
        struct naive_pass earlier = *p;
        earlier.S -= i;
        earlier.continued = true;
        naive_count(n, &earlier, step);
        for (size_t k = 0; k < step->n; k++) {
            walk->op[k].flops += step->op[k].flops;
            walk->op[k].vector_flops += step->op[k].vector_flops;
            walk->op[k].weight_bytes += step->op[k].weight_bytes;
            walk->op[k].kv_bytes += step->op[k].kv_bytes;
            walk->op[k].kv_needed_bytes += step->op[k].kv_needed_bytes;
            walk->op[k].activation_bytes += step->op[k].activation_bytes;
            walk->op[k].wire_bytes += step->op[k].wire_bytes;
            walk->op[k].state_bytes += step->op[k].state_bytes;
            walk->op[k].state_needed_bytes += step->op[k].state_needed_bytes;
        }
    }
    evaluate(a, m, p, M, &ops, v);
    size_t used[6] = {0}; /* operators met: of types 0.., and outside at 5 */
    for (size_t i = 0; i < walk->n; i++) {
        const struct naive_op *w = &walk->op[i];
        const int type = w->layer < 0 ? -1 : n->layer[w->layer].type;
        const bool first = w->layer >= 0 && (i == 0 || walk->op[i - 1].layer != w->layer);
        if (first) used[type] = 0;
        const size_t k = find(&ops, type, used[type < 0 ? 5 : type]++);
        double want[FIELDS];
        naive_fields(w, want);
        assert_string_equal(ops.op[k].name, w->name);
        for (size_t f = 0; f < FIELDS; f++) {
            const double got = v[k * FIELDS + f] * (M && f < PER_PASS ? M : 1);
            want_total[f] += want[f];
            if (!equal(got, want[f], fraction(f, M, ops.op[k].kind == OP_EXPERTS, ops.op[k].kind == OP_LONG_CONV)))
                fail_msg("%s %s B=%d T=%d S=%d M=%d ranks=%d: %s of %s is %.17g, counted %.17g", m->family,
                         m->kinds[type < 0 ? 0 : type].label, p->B, p->T, p->S, M, p->ranks, FIELD[f], w->name, got,
                         want[f]);
        }
    }
    for (size_t i = 0; i < ops.n; i++)
        for (size_t f = 0; f < FIELDS; f++)
            total[f] += (double)ops.op[i].count * v[i * FIELDS + f] * (M && f < PER_PASS ? M : 1);
    bool experts = false, transformed = false;
    for (size_t i = 0; i < m->kinds_n; i++) experts = experts || m->kinds[i].ffn.kind == FFN_MOE;
    for (size_t i = 0; i < ops.n; i++) transformed = transformed || ops.op[i].kind == OP_LONG_CONV;
    for (size_t f = 0; f < FIELDS; f++)
        if (!equal(total[f], want_total[f], fraction(f, M, experts, transformed)))
            fail_msg("%s: sum of %s is %.17g, counted %.17g", m->family, FIELD[f], total[f], want_total[f]);
}

static void compare_subject(const struct subject *s, const struct naive_pass *passes, size_t passes_n, int M)
{
    struct arena *a = arena_open();
    const struct model m = read_model(a, s->json);
    const struct naive_model n = architecture(s);
    for (size_t i = 0; i < passes_n; i++) {
        struct naive_pass p = passes[i];
        if (p.ranks == 0) p.ranks = 1;
        compare(a, &m, &n, &p, M);
    }
    arena_close(a);
}

static void compare_all(const struct naive_pass *passes, size_t passes_n)
{
    for (size_t i = 0; i < SUBJECTS_N; i++) compare_subject(SUBJECTS[i], passes, passes_n, 0);
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void test_prefill(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {
        {.B = 2, .T = 7, .S = 7}, {.B = 1, .T = 13, .S = 13}, {.B = 3, .T = 2, .S = 2}, {.B = 5, .T = 1, .S = 1}};
    compare_all(PASSES, COUNT(PASSES));
}

static void test_chunk(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 4, .S = 11},
                                               {.B = 1, .T = 6, .S = 7},
                                               {.B = 3, .T = 2, .S = 13},
                                               {.B = 2, .T = 3, .S = 5, .absorbed = true}};
    compare_all(PASSES, COUNT(PASSES));
}

static void test_decode(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 3, .T = 1, .S = 11, .absorbed = true},
                                               {.B = 1, .T = 1, .S = 5, .absorbed = true},
                                               {.B = 2, .T = 1, .S = 4, .absorbed = true},
                                               {.B = 7, .T = 1, .S = 17},
                                               {.B = 2, .T = 1, .S = 2, .absorbed = true}};
    compare_all(PASSES, COUNT(PASSES));
}

static void test_mean_of_decode_steps(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 1, .S = 11, .absorbed = true},
                                               {.B = 3, .T = 1, .S = 9},
                                               {.B = 1, .T = 1, .S = 7, .absorbed = true, .causal_full = true}};
    static const int STEPS[] = {1, 2, 3, 6, 7};
    for (size_t i = 0; i < SUBJECTS_N; i++)
        for (size_t k = 0; k < COUNT(STEPS); k++) compare_subject(SUBJECTS[i], PASSES, COUNT(PASSES), STEPS[k]);
}

static void test_without_cache(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 7, .S = 7, .uncached = true},
                                               {.B = 3, .T = 11, .S = 11, .uncached = true, .causal_full = true},
                                               {.B = 1, .T = 5, .S = 5, .uncached = true, .absorbed = true}};
    compare_all(PASSES, COUNT(PASSES));
}

static void test_conventions(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 7, .S = 7, .causal_full = true},
                                               {.B = 2, .T = 4, .S = 11, .causal_full = true},
                                               {.B = 3, .T = 1, .S = 9, .causal_full = true, .absorbed = true},
                                               {.B = 2, .T = 3, .S = 8, .mlp_fused = true},
                                               {.B = 2, .T = 3, .S = 8, .head_all = true},
                                               {.B = 2, .T = 3, .S = 8, .embed_full_table = true},
                                               {.B = 2, .T = 3, .S = 8, .norms_uncounted = true},
                                               {.B = 3,
                                                .T = 5,
                                                .S = 5,
                                                .causal_full = true,
                                                .mlp_fused = true,
                                                .head_all = true,
                                                .embed_full_table = true,
                                                .norms_uncounted = true}};
    compare_all(PASSES, COUNT(PASSES));
}

/* Several chunks of a scan, the last one cut short or whole: with published lengths these small passes are one chunk.
 */
static void test_chunks_of_a_scan(void **state)
{
    (void)state;
    static const struct subject *const OF[] = {&MAMBA2, &QWEN3_NEXT,     &KIMI_LINEAR, &MINIMAX,
                                               &GLA,    &GATED_DELTANET, &DELTA_NET,   &BASED};
    static const struct naive_pass PASSES[] = {
        {.B = 2, .T = 13, .S = 13}, {.B = 1, .T = 12, .S = 17},
        {.B = 1, .T = 4, .S = 4},   {.B = 2, .T = 9, .S = 9, .uncached = true},
        {.B = 1, .T = 2, .S = 5},   {.B = 1, .T = 11, .S = 11, .causal_full = true}};
    for (size_t i = 0; i < COUNT(OF); i++)
        for (size_t k = 0; k < COUNT(PASSES); k++) {
            struct arena *a = arena_open();
            struct model m = read_model(a, OF[i]->json);
            struct naive_model n = architecture(OF[i]);
            struct naive_pass p = PASSES[k];
            p.ranks = 1;
            for (size_t j = 0; j < m.kinds_n; j++) m.kinds[j].mixer.recurrence.chunk_tokens = 4;
            for (int j = 0; j < n.layers; j++) n.layer[j].state.chunk = 4;
            compare(a, &m, &n, &p, 0);
            arena_close(a);
        }
}

/* Blocks of tokens that are denoised or verified together: logits and a draw for each. */
static void test_passes_of_blocks(void **state)
{
    (void)state;
    static const struct subject *const OF[] = {&LLAMA, &EAGLE3, &DFLASH, &MEDUSA, &LLADA, &DREAM, &SDAR};
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 4, .S = 12, .all_logits = true},
                                               {.B = 3, .T = 3, .S = 7, .all_logits = true, .absorbed = true},
                                               {.B = 1, .T = 11, .S = 11, .all_logits = true, .uncached = true}};
    for (size_t i = 0; i < COUNT(OF); i++) compare_subject(OF[i], PASSES, COUNT(PASSES), 0);
}

/* Blocks of a generation, the last at S: their mean. */
static void test_mean_over_blocks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    for (int blocks = 1; blocks <= 3; blocks++) {
        const struct model m = read_model(a, LLADA.json);
        const struct naive_model n = architecture(&LLADA);
        struct naive_ops *walk = arena_alloc(a, sizeof *walk);
        double v[FIELDS * 64], sum[2] = {0}, want[2] = {0};
        struct cost_ops ops;
        struct naive_pass p = {.B = 2, .T = 5, .S = 17, .ranks = 1, .all_logits = true};
        evaluate(a, &m, &p, 5 * blocks, &ops, v);
        for (size_t i = 0; i < ops.n; i++) {
            sum[0] += (double)ops.op[i].count * v[i * FIELDS] * blocks;
            sum[1] += (double)ops.op[i].count * v[i * FIELDS + 3] * blocks;
        }
        for (int k = 0; k < blocks; k++, p.S -= 5) {
            naive_count(&n, &p, walk);
            for (size_t i = 0; i < walk->n; i++) {
                want[0] += walk->op[i].flops;
                want[1] += walk->op[i].kv_bytes;
            }
        }
        assert_true(sum[0] == want[0] && sum[1] == want[1]);
    }
    arena_close(a);
}

/* Modules of multi-token prediction, as drafts of their own. */
static void test_multi_token_modules(void **state)
{
    (void)state;
    static const struct subject *const OF[] = {&MTP_COPIED, &MTP_STACKED, &MTP_LETTERED};
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 1, .S = 9, .ranks = 1, .absorbed = true},
                                               {.B = 1, .T = 5, .S = 5, .ranks = 1, .norms_uncounted = true}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(OF); i++)
        for (size_t k = 0; k < COUNT(PASSES); k++) {
            const struct model whole = read_model(a, OF[i]->json);
            const struct naive_model n = architecture(OF[i]);
            struct model m;
            assert_true(model_mtp(&whole, &m));
            assert_int_equal(whole.mtp.modules, 1);
            compare(a, &m, &n, &PASSES[k], 0);
        }
    arena_close(a);
}

/* Parts that no family of the table has together. */
static void test_head_bias_and_embedding_norm(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct naive_pass PASS = {.B = 2, .T = 3, .S = 8, .ranks = 1, .head_all = true};
    static const struct subject *const OF[] = {&GPT2, &LLAMA};
    for (size_t i = 0; i < COUNT(OF); i++) {
        struct model m = read_model(a, OF[i]->json);
        struct naive_model n = architecture(OF[i]);
        m.head_bias = m.embed_norm = n.head_bias = n.embed_norm = true;
        if (i == 1) {
            m.norm = NORM_LAYER;
            n.norm_flops = 6;
        }
        compare(a, &m, &n, &PASS, 0);
    }
    arena_close(a);
}

/* ---- stored formats: scales by counting the groups that the elements meet ---- */

struct stored_case {
    const char *config; /* "quantization_config" of the file, or NULL */
    const char *name;   /* else a format for all linear layers */
    struct naive_format format;
};

static void compare_stored(const struct subject *s, const struct stored_case *x, const char *kv,
                           struct naive_format cache)
{
    struct arena *a = arena_open();
    struct err e = {0};
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 1, .S = 5, .ranks = 1, .absorbed = true},
                                               {.B = 1, .T = 3, .S = 3, .ranks = 1, .mlp_fused = true}};
    const char *text = s->json;
    if (x->config) /* the config's last brace makes room for the key */
        text = arena_printf(a, "%.*s,\"quantization_config\":%s}", (int)strlen(s->json) - 1, s->json, x->config);
    struct model m = read_model(a, text);
    struct naive_model n = architecture(s);
    if (x->name) assert_int_equal(stored_set_all(&m, x->name, &e), ERR_OK);
    if (x->name || x->config) n.mixer = n.ffn = n.expert = x->format;
    if (kv) {
        assert_int_equal(dtype_find(kv, &m.kv, &e), ERR_OK);
        n.cache = cache;
    }
    /* expanded prefill of a latent cache is not compared with a grouped cache: groups straddle its two parts */
    for (size_t i = 0; i < COUNT(PASSES); i++) compare(a, &m, &n, &PASSES[i], 0);
    arena_close(a);
}

static void test_stored_formats_of_small_models(void **state)
{
    (void)state;
    static const struct stored_case CASES[] = {
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[5,3]}", NULL, NAIVE_TILED(1, 5, 3, 4)},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[4,7]}", NULL, NAIVE_TILED(1, 4, 7, 4)},
        {"{\"quant_method\":\"fp8\"}", NULL, {1, 0, 0, 0, 4, 0, 0, 0, false}},
        {"{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}", NULL, {1, 0, 0, 0, 8, 0, 0, 0, false}},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":16}", NULL, {.5, 1, 16, 2.5, 0, 4, 0, 0, false}},
        {"{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1}", NULL, {1, 1, -1, 3, 0, 4, 0, 0, false}},
        {NULL, "fp8-row", NAIVE_TILED(1, 1, -1, 4)},
        {NULL, "int8", NAIVE_TILED(1, 1, -1, 2)},
        {NULL, "nvfp4", {.5, 1, 16, 1, 4, 0, 0, 0, false}},
        {NULL, "int8-g32", NAIVE_TILED(1, 1, 32, 3)},
    };
    static const struct subject *const OF[] = {&LLAMA_BIASED, &GPT2, &GEMMA2, &QWEN2_MOE, &DEEPSEEK_V2, &DEEPSEEK_V3};
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (size_t k = 0; k < COUNT(OF); k++) compare_stored(OF[k], &CASES[i], NULL, (struct naive_format){0});
}

static void test_stored_formats_of_128(void **state)
{
    (void)state;
    static const struct stored_case CASES[] = {
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}", NULL, NAIVE_TILED(1, 128, 128, 4)},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128}", NULL, NAIVE_TILED(.5, 1, 128, 2.5)},
        {NULL, "int3", NAIVE_TILED(.375, 1, 128, 2.375)},
        {NULL, "mxfp4", NAIVE_TILED(.5, 1, 32, 1)},
        {NULL, "mxfp8", NAIVE_TILED(1, 1, 32, 1)},
        {NULL, "nf4", {.5, 1, 64, 4, 64, 0, 0, 0, true}},
        {NULL, "nf4-double", {.5, 1, 64, 1, 1088, 0, 256, 4, true}},
        {NULL, "q4_k", NAIVE_TILED(.5, 1, 256, 16)},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) compare_stored(&WIDE, &CASES[i], NULL, (struct naive_format){0});
}

static void test_grouped_cache(void **state)
{
    (void)state;
    static const struct stored_case NONE = {NULL, NULL, {0}};
    static const struct subject *const OF[] = {&WIDE, &LLAMA_BIASED, &GEMMA2, &GPT_OSS};
    for (size_t i = 0; i < COUNT(OF); i++) {
        compare_stored(OF[i], &NONE, "fp8", (struct naive_format)NAIVE_TILED(1, 1, 0, 0));
        compare_stored(OF[i], &NONE, "int4-g16", (struct naive_format)NAIVE_TILED(.5, 1, 16, 2.5));
        compare_stored(OF[i], &NONE, "mxfp8", (struct naive_format)NAIVE_TILED(1, 1, 32, 1));
    }
}

/* ---- memory is the same description ---- */

static double value_at(struct arena *a, const struct sym *x, const struct sym *var, double at)
{
    struct sym_tape *t;
    struct err e = {0};
    const double *const in[] = {&at};
    double v, *const out[] = {&v};
    if (sym_tape_compile(a, 1, &x, 1, &var, &t, &e) != ERR_OK) fail_msg("%s", e.text);
    sym_tape_eval(t, 1, in, out);
    return v;
}

/* What one decode step needs of the cache of one sequence (old read, new written) is the cache that it must keep. */
static void test_memory_equals_what_is_walked(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct cost_conventions PLAIN = {0};
    static const char *const KV[] = {"bf16", "int4-g16"};
    for (size_t i = 0; i < SUBJECTS_N * COUNT(KV); i++) {
        struct err e = {0};
        struct model m = read_model(a, SUBJECTS[i / 2]->json);
        struct naive_model n = architecture(SUBJECTS[i / 2]);
        struct naive_ops *walk = arena_alloc(a, sizeof *walk);
        const struct naive_pass decode = {.B = 1, .T = 1, .S = 9, .ranks = 1, .absorbed = true};
        struct sym_ctx *c = sym_open(a);
        const struct cost_symbols y = cost_symbols_make(c);
        struct cost_cache cache;
        struct cost_parameters count;
        double needed = 0, per_token = 0, index = 0, elems = 0, state_bytes = 0;
        assert_non_null(walk);
        assert_int_equal(dtype_find(KV[i % 2], &m.kv, &e), ERR_OK);
        n.cache =
            i % 2 ? (struct naive_format)NAIVE_TILED(.5, 1, 16, 2.5) : (struct naive_format)NAIVE_TILED(2, 1, 0, 0);
        naive_count(&n, &decode, walk);
        for (size_t k = 0; k < walk->n; k++) {
            needed += walk->op[k].kv_needed_bytes;
            elems += walk->op[k].stored_elems;
            state_bytes += walk->op[k].state_bytes;
            if (strcmp(walk->op[k].name, "index_write") == 0) index += walk->op[k].kv_bytes;
            if (strcmp(walk->op[k].name, "kv_write") != 0 && strcmp(walk->op[k].name, "history_write") != 0) continue;
            per_token += walk->op[k].kv_bytes;
            /* keys that were not chosen are kept for later tokens */
            const int top = n.layer[walk->op[k].layer].top_keys;
            if (top) needed += (9 - top) * walk->op[k].kv_bytes;
        }
        assert_int_equal(cost_cache(c, &y, &m, 1, &cache, &e), ERR_OK);
        assert_true(value_at(a, cache.bytes_per_sequence, y.S, 9) == needed);
        assert_true(cache.bytes_per_token_full + cache.bytes_per_token_windowed == per_token);
        assert_true(cache.bytes_per_token_index == index);
        assert_true(2 * cache.state_bytes_per_sequence == state_bytes); /* read and written */
        assert_int_equal(cost_parameters(a, &m, &PLAIN, &count, &e), ERR_OK);
        assert_true(count.total == elems);
    }
    arena_close(a);
}

/* ---- tensor parallelism ---- */

static const struct subject *const SPLITS[] = {&SPLIT,        &SPLIT_MOE, &SPLIT_OSS,    &DEEPSEEK_V3,
                                               &SPLIT_FALCON, &DSA,       &SPLIT_GEMMA3N};

static const struct subject *const FURTHER[] = {&SPLIT_STEP3, &SPLIT_LAGUNA, &AXK2,  &MINIMAX_M3, &SPLIT_FALCON_H1,
                                                &SPLIT_RWKV4, &SPLIT_OLMO2,  &GROVE, &MODERNBERT, &CHAMELEON};

/* Two pairs of KV heads: two ranks at most. */
static const struct subject *const PAIRED[] = {&PHI4FLASH, &DIFFLLAMA};

static const struct subject *const DRAFTS[] = {&SPLIT_EAGLE3, &MEDUSA, &DFLASH};

static const struct subject *const STATEFUL[] = {&SPLIT_JAMBA, &SPLIT_NEMOTRON_H, &SPLIT_QWEN3_5, &SPLIT_KIMI,
                                                 &KIMI_K3,     &SPLIT_GRIFFIN,    &SPLIT_ZAMBA2,  &SPLIT_RWKV5,
                                                 &LFM2,        &SPLIT_RWKV6,      &SPLIT_RWKV7,   &SPLIT_H3,
                                                 &SPLIT_HYENA, &ZAMBA2_ADAPTED};

static void test_tensor_parallel_rank(void **state)
{
    (void)state;
    static const struct naive_pass PASSES[] = {{.B = 2, .T = 1, .S = 9, .ranks = 2, .absorbed = true},
                                               {.B = 3, .T = 1, .S = 9, .ranks = 4, .absorbed = true},
                                               {.B = 2, .T = 6, .S = 6, .ranks = 2},
                                               {.B = 1, .T = 3, .S = 7, .ranks = 4, .head_all = true},
                                               {.B = 2, .T = 5, .S = 5, .ranks = 4, .mlp_fused = true}};
    for (size_t i = 0; i < COUNT(SPLITS); i++) compare_subject(SPLITS[i], PASSES, COUNT(PASSES), 0);
    for (size_t i = 0; i < COUNT(STATEFUL); i++) compare_subject(STATEFUL[i], PASSES, COUNT(PASSES), 0);
    for (size_t i = 0; i < COUNT(FURTHER); i++) compare_subject(FURTHER[i], PASSES, COUNT(PASSES), 0);
    for (size_t i = 0; i < COUNT(PAIRED); i++)
        for (size_t k = 0; k < COUNT(PASSES); k++)
            if (PASSES[k].ranks == 2) compare_subject(PAIRED[i], &PASSES[k], 1, 0);
    for (size_t i = 0; i < COUNT(DRAFTS); i++)
        for (size_t k = 0; k < COUNT(PASSES); k++)
            if (DRAFTS[i] != &DFLASH || PASSES[k].ranks == 2) compare_subject(DRAFTS[i], &PASSES[k], 1, 0);
}

/* What a rank reads and writes of its state in a step is twice what it keeps; groups are copied, heads are not. */
static void test_state_of_a_rank(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(STATEFUL); i++)
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            struct err e = {0};
            const struct model m = read_model(a, STATEFUL[i]->json);
            const struct naive_model n = architecture(STATEFUL[i]);
            const struct naive_pass decode = {.B = 1, .T = 1, .S = 7, .ranks = ranks, .absorbed = true};
            struct naive_ops *walk = arena_alloc(a, sizeof *walk);
            struct sym_ctx *c = sym_open(a);
            const struct cost_symbols y = cost_symbols_make(c);
            struct cost_cache cache;
            double walked = 0;
            naive_count(&n, &decode, walk);
            for (size_t k = 0; k < walk->n; k++) walked += walk->op[k].state_bytes;
            assert_int_equal(cost_cache(c, &y, &m, ranks, &cache, &e), ERR_OK);
            assert_true(walked > 0 && 2 * cache.state_bytes_per_sequence == walked);
        }
    arena_close(a);
}

static double stored_bytes(struct arena *a, const struct model *m, int64_t ranks)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    static const struct cost_conventions PLAIN = {0};
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    struct cost_ops ops;
    double v;
    if (cost_build(a, c, &y, m, &PLAIN, &pass, ranks, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(c, &y, m, ranks, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(sym_constant(cost_weight_bytes(c, &ops, &PLAIN), &v));
    return v;
}

/* Elements that every rank has a copy of, and KV heads beyond the first copy: named here, one by one. */
static void test_ranks_together_hold_the_model_and_named_copies(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(SPLITS); i++)
        for (int ranks = 2; ranks <= 4; ranks += 2) {
            const struct model m = read_model(a, SPLITS[i]->json);
            const struct naive_model n = architecture(SPLITS[i]);
            int vocab = n.vocab;
            while (vocab % ranks) vocab++;
            int table = n.layer_vocab; /* of the layers' own inputs */
            while (table % ranks) table++;
            /* final norm; padded vocabularies */
            double copied = n.norm_vectors * n.hidden, extra = (n.tied ? 1.0 : 2.0) * (vocab - n.vocab) * n.hidden;
            extra += (double)(table - n.layer_vocab) * n.layers * n.layer_dim;
            copied += (n.hidden * n.layers + 1) * n.layer_dim;
            if (n.streams) copied += 2 * (n.streams - 1) * n.hidden * n.hidden;
            for (int k = 0; k < n.layers; k++) {
                const struct naive_layer *l = &n.layer[k];
                copied +=
                    l->norms * n.norm_vectors * n.hidden + (l->o_bias ? n.hidden : 0) + (l->mlp_bias ? n.hidden : 0);
                copied += l->qk_norm && !l->qk_each ? 2 * l->key_dim : 0;
                if (n.streams) /* router with its norm, coefficients, scale */
                    copied += (2 + n.streams) * n.hidden + n.streams * n.streams * (n.streams + 1);
                if (n.laurel) copied += (2 * n.laurel + 1) * n.hidden;
                if (n.layer_dim) copied += (2 * n.layer_dim + 1) * n.hidden;
                copied += l->experts * (n.hidden + (l->router_bias ? 1 : 0) + (l->correction ? 2 : 0)); /* fp32 */
                copied += (l->shared_gate ? n.hidden : 0) + (l->expert_bias ? l->experts * n.hidden : 0);
                if (l->kv_rank) { /* down-projections into the latents, and their norms */
                    copied += n.hidden * (l->q_rank + l->kv_rank + l->rope_dim) + l->q_rank + l->kv_rank;
                    if (l->index_heads) /* the whole indexer */
                        copied +=
                            l->index_heads * (l->q_rank * l->index_dim + n.hidden) + l->index_dim * (n.hidden + 2);
                } else if (l->kv_heads < ranks) { /* key and value heads, with their biases */
                    const int width = l->key_dim + l->value_dim, heads = ranks - l->kv_heads;
                    extra += heads * width * (n.hidden + (l->qkv_bias ? 1 : 0));
                }
                if (l->index_blocks) { /* the keys' side whole; heads in as many parts as divide both numbers */
                    int parts = ranks;
                    while (l->index_heads % parts || ranks % parts) parts--;
                    copied += l->index_dim * (n.hidden + 2);
                    extra += (double)(ranks / parts - 1) * l->index_heads * l->index_dim * n.hidden;
                }
            }
            const double whole = stored_bytes(a, &m, 1), rank = stored_bytes(a, &m, ranks);
            assert_true(ranks * rank == whole + 2 * ((ranks - 1) * copied + extra));
        }
    arena_close(a);
}

static void test_cache_of_a_rank(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const struct subject *of;
        int ranks;
        double bytes; /* a token, all layers, bf16 */
    } CASES[] = {
        {&SPLIT, 1, 2 * 2 * (2 * 10)},    {&SPLIT, 2, 2 * 2 * (1 * 10)},
        {&SPLIT, 4, 2 * 2 * (1 * 10)}, /* two heads on four ranks: each has one */
        {&SPLIT_OSS, 4, 2 * 2 * (1 * 6)}, {&DEEPSEEK_V3, 1, 2 * 3 * 14},
        {&DEEPSEEK_V3, 4, 2 * 3 * 14}, /* the latent is whole on every rank */
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const struct model m = read_model(a, CASES[i].of->json);
        struct sym_ctx *c = sym_open(a);
        const struct cost_symbols y = cost_symbols_make(c);
        struct cost_cache cache;
        assert_int_equal(cost_cache(c, &y, &m, CASES[i].ranks, &cache, &e), ERR_OK);
        assert_true(cache.bytes_per_token_full + cache.bytes_per_token_windowed == CASES[i].bytes);
    }
    arena_close(a);
}

static void test_layouts_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const struct subject *of;
        int ranks;
        const char *why;
    } CASES[] = {{&SPLIT, 5, "heads"},
                 {&SPLIT, 3, "KV heads"},
                 {&GPT2, 2, "heads"},
                 {&QWEN2, 2, "columns of the MLP"},
                 {&LLAMA, 2, "KV heads"},
                 {&SPLIT_MOE, 4, NULL},
                 {&QWEN2_MOE, 2, "columns of the MLP"}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const struct model m = read_model(a, CASES[i].of->json);
        struct sym_ctx *c = sym_open(a);
        const struct cost_symbols y = cost_symbols_make(c);
        static const struct cost_conventions PLAIN = {0};
        const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
        struct cost_ops ops;
        assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, CASES[i].ranks, &ops, &e), ERR_OK);
        const enum err_code code = cost_bind(c, &y, &m, CASES[i].ranks, &ops, &e);
        assert_int_equal(code, CASES[i].why ? ERR_USAGE : ERR_OK);
        if (CASES[i].why) assert_non_null(strstr(e.text, CASES[i].why));
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefill),
        cmocka_unit_test(test_chunk),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_mean_of_decode_steps),
        cmocka_unit_test(test_without_cache),
        cmocka_unit_test(test_conventions),
        cmocka_unit_test(test_chunks_of_a_scan),
        cmocka_unit_test(test_passes_of_blocks),
        cmocka_unit_test(test_mean_over_blocks),
        cmocka_unit_test(test_multi_token_modules),
        cmocka_unit_test(test_head_bias_and_embedding_norm),
        cmocka_unit_test(test_stored_formats_of_small_models),
        cmocka_unit_test(test_stored_formats_of_128),
        cmocka_unit_test(test_grouped_cache),
        cmocka_unit_test(test_memory_equals_what_is_walked),
        cmocka_unit_test(test_tensor_parallel_rank),
        cmocka_unit_test(test_state_of_a_rank),
        cmocka_unit_test(test_ranks_together_hold_the_model_and_named_copies),
        cmocka_unit_test(test_cache_of_a_rank),
        cmocka_unit_test(test_layouts_that_do_not_divide_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
