/* Operators as kernels. Which of them engines run as one kernel is the list of fusions in MODEL.md "Calibrated steps".
 */
#include "calc/fit/calls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cost/mixed.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double constant(const struct sym *x)
{
    double v;
    return sym_constant(x, &v) ? v : (double)NAN;
}

struct maker {
    const struct step_pass *pass;
    const struct cost_op *op;
    const struct timed *timed;
    const struct source *source;
    const struct mixer *mixer; /* NULL outside the layers */
    const struct ffn *ffn;
    double tp, group, ep; /* ranks of an attention group, of all of them; parts of the experts */
    double dcp;           /* ranks that share a context */
    bool decode;          /* one new token a sequence */
    bool verify;          /* several, which the pass judges */
    bool absorbed;        /* latent attention in the latent space */
    bool eager;
};

static bool is_trtllm(const struct maker *m) { return strcmp(m->source->kernels, "trtllm") == 0; }

static void take(struct call *c, const struct maker *m, const struct source_want *want, size_t n)
{
    c->of = source_find(m->source, want, n);
    if (c->of.class && c->of.class->like.host != c->kernel.host) c->of.class = NULL; /* of another form */
    c->how = c->of.class ? CALL_MEASURED : CALL_ROOFLINE;
    if (!c->of.class) return;
    memcpy(c->p, c->of.class->p, sizeof c->p);
    const bool block = strstr(c->of.class->name, "block") != NULL || c->of.class->like.kind == KERNEL_MLA_BMM;
    c->kernel.quant = c->of.class->like.quant == KERNEL_QUANT_NONE ? KERNEL_QUANT_NONE
                      : block                                      ? KERNEL_QUANT_BLOCK
                                                                   : KERNEL_QUANT_DYNAMIC;
}

/* Bytes of a stored element of the operator's matrices, scales included; the activations' without one. */
static double element_bytes(const struct maker *m)
{
    for (size_t i = 0; i < m->op->tensors_n; i++) {
        const struct cost_tensor *t = &m->op->tensor[i];
        if (t->norm || (t->class == WEIGHT_OTHER && m->op->tensors_n > 1)) continue;
        const double elems = constant(t->elems), bytes = constant(t->bytes);
        if (elems > 0) return bytes / elems;
    }
    return m->pass->setup->model->activations.bits / 8;
}

/* Of the operator's matrices, or of what it works on. */
static const struct dtype *dtype_of(const struct maker *m)
{
    const struct model *model = m->pass->setup->model;
    return m->op->format              ? m->op->format
           : m->op->compute_class < 0 ? &model->activations
                                      : &model->weights[m->op->compute_class];
}

/* "bf16", "fp8_block128" or "fp8_dynquant": what the operator's products are called in the measurements. */
static const char *format_of(const struct maker *m)
{
    const struct dtype *d = dtype_of(m);
    if (strcmp(m->timed->unit, "fp8") != 0)
        return strcmp(m->timed->unit, "bf16") == 0 || strcmp(m->timed->unit, "fp16") == 0 ? "bf16" : m->timed->unit;
    return d->block_out > 1 || d->group_in > 0 ? "fp8_block128" : "fp8_dynquant";
}

/* One scale for a tensor, or one a token: the norm or activation before the product applies it. (Scales of blocks are a
 * kernel of their own.) The class was measured with that kernel, whose start-up its fit cannot tell from the product's:
 * 16-bit products have none. */
static void fuse_quant(struct call *c, const struct maker *m)
{
    const struct source_want want[] = {{"gemm/bf16/", NULL, NULL}};
    const struct source_class plain = source_find(m->source, want, 1);
    c->kernel.quant = KERNEL_QUANT_NONE;
    if (plain.class && plain.class->p[0] < c->p[0]) c->p[0] = plain.class->p[0]; /* start_s leads the form */
}

/* An operator of a name in the same layer; NULL: it has none. */
static const struct cost_op *beside(const struct maker *m, const char *name)
{
    for (size_t i = 0; i < m->pass->n; i++) {
        const struct cost_op *op = &m->pass->op[i];
        if (op->kind_index == m->op->kind_index && strcmp(op->name, name) == 0) return op;
    }
    return NULL;
}

/* Both latents are made from one input, by one product that engines stack: the call is the first one's. */
static const struct cost_op *stacked_on(const struct maker *m)
{
    return strcmp(m->op->name, "q_a_proj") == 0 ? beside(m, "kv_a_proj") : NULL;
}

static bool is_stacked(const struct maker *m)
{
    return strcmp(m->op->name, "kv_a_proj") == 0 && beside(m, "q_a_proj") != NULL;
}

static void make_product(struct call *c, const struct maker *m)
{
    char prefix[64];
    const struct cost_op *second = stacked_on(m);
    const double in = constant(m->op->in);
    double out = constant(m->op->out);
    if (second) out += constant(second->out);
    if (!(in > 0 && out > 0)) return;
    (void)snprintf(prefix, sizeof prefix, "gemm/%s/", format_of(m));
    const struct source_want want[] = {
        {m->op->kind == OP_LINEAR && element_bytes(m) < 1 ? "gemm/int4-g128/" : prefix, NULL, NULL},
        {prefix, NULL, NULL}};
    c->kernel.kind = KERNEL_GEMM;
    c->kernel.groups = 1;
    c->kernel.n = out;
    c->kernel.k = in;
    c->kernel.element_bytes = element_bytes(m);
    take(c, m, want, COUNT(want));
    if (c->kernel.quant == KERNEL_QUANT_DYNAMIC) fuse_quant(c, m);
    if (c->kernel.quant != KERNEL_QUANT_NONE) c->launches = 2;
}

/* SGLang computes a shared expert that is as wide as a routed one, and has no gate, as one more routed expert of every
 * token, where experts are not dealt to ranks. */
static bool shares_routed(const struct maker *m)
{
    const struct ffn *f = m->ffn;
    return f && strcmp(m->source->kernels, "sglang") == 0 && f->kind == FFN_MOE && f->shared_width == f->width &&
           !f->shared_gate && m->ep <= 1;
}

static bool in_routed(const struct maker *m)
{
    return strncmp(m->op->name, "shared_", strlen("shared_")) == 0 && shares_routed(m);
}

static void make_absorb(struct call *c, const struct maker *m)
{
    char prefix[64];
    (void)snprintf(prefix, sizeof prefix, "mla_bmm/%s/", strcmp(m->timed->unit, "fp8") == 0 ? "fp8" : "bf16");
    const struct source_want want[] = {{prefix, NULL, NULL}, {"mla_bmm/bf16/", NULL, NULL}};
    c->kernel.kind = KERNEL_MLA_BMM;
    c->kernel.groups = (double)m->mixer->heads / m->tp;
    c->kernel.n = constant(m->op->out);
    c->kernel.k = constant(m->op->in);
    c->kernel.element_bytes = element_bytes(m);
    take(c, m, want, COUNT(want));
}

/* -- attention -- */

static void make_latent(struct call *c, const struct maker *m)
{
    const struct mixer *x = m->mixer;
    struct kernel *k = &c->kernel;
    const bool fp8 = m->pass->setup->model->kv.bits <= 8;
    if (m->decode || m->verify) { /* rows of several tokens fill the blocks that the heads of one do */
        c->packed = m->verify;
        k->kind = KERNEL_MLA_DECODE;
        k->kv_heads = 1;
        k->head_dim = (double)(x->kv_rank + x->rope_dim);
        k->value_dim = (double)x->kv_rank;
        k->window = (double)x->top_keys; /* the chosen keys are as many */
        const struct source_want want[] = {{fp8 ? "mla_decode/bf16/fp8/" : "mla_decode/bf16/bf16/", NULL, NULL},
                                           {"mla_decode/", NULL, NULL}};
        take(c, m, want, COUNT(want));
    } else if (x->top_keys == 0 && !m->absorbed) { /* keys and values of each head are expanded */
        k->kind = KERNEL_MLA_PREFILL;
        k->kv_heads = k->heads;
        k->head_dim = (double)(x->head_dim + x->rope_dim);
        k->value_dim = (double)x->v_head_dim;
        const struct source_want want[] = {{fp8 ? "mla_prefill/bf16/fp8/" : "mla_prefill/bf16/bf16/", NULL, NULL},
                                           {"mla_prefill/", NULL, NULL}};
        take(c, m, want, COUNT(want));
    }
}

static void make_attention(struct call *c, const struct maker *m)
{
    const struct mixer *x = m->mixer;
    const struct model *model = m->pass->setup->model;
    struct kernel *k = &c->kernel;
    c->launches = 2;
    if ((m->decode || m->verify) && layout_shares_context(x)) c->context_ranks = m->dcp;
    k->heads = (double)x->heads / m->tp * c->context_ranks;
    k->element_bytes = 2;
    k->kv_element_bytes = m->pass->setup->uncached ? model->activations.bits / 8 : model->kv.bits / 8;
    k->unit = HW_BF16;
    if (x->one_vector) return; /* two caches at once: no kernel of it is measured */
    if (x->kind == MIXER_LATENT) {
        make_latent(c, m);
        return;
    }
    k->kv_heads = fmax(1, (double)x->kv_heads / m->tp);
    k->head_dim = (double)x->head_dim;
    k->value_dim = (double)x->v_head_dim;
    k->window = (double)(x->top_keys > 0 ? x->top_keys : x->window_tokens); /* chosen keys are as many */
    if (x->images || x->kind != MIXER_ATTENTION) return;
    c->both_ways = model->bidirectional;
    const bool fp8 = k->kv_element_bytes <= 1;
    const bool decode = m->decode || m->verify;
    c->packed = m->verify;
    k->kind = decode ? KERNEL_DECODE : KERNEL_PREFILL;
    rows_attention(k, m->source->kernels);
    const bool alone = decode && k->ungrouped > 0;
    const char *with = alone ? "/ungrouped" : NULL, *without = decode && !alone ? "/ungrouped" : NULL;
    const char *kind = decode ? "decode" : "prefill";
    char mixed[32], narrow[32], plain[32];
    (void)snprintf(mixed, sizeof mixed, "%s/bf16/fp8/", kind);
    (void)snprintf(narrow, sizeof narrow, "%s/fp8/fp8/", kind);
    (void)snprintf(plain, sizeof plain, "%s/bf16/bf16/", kind);
    const struct source_want want[] = {{mixed, with, without}, {narrow, with, without}, {plain, with, without}};
    take(c, m, fp8 ? want : want + 2, fp8 ? 3 : 1);
    if (c->of.class && strstr(c->of.class->name, "fp8/fp8/")) k->element_bytes = 1;
}

/* -- experts, scans -- */

/* Whether a few tokens are sorted too: as the engine does it with kernels that are its own, not with those that stand
 * for others (weights stored narrower than computed). */
static void set_sparse(struct call *c, const struct maker *m)
{
    const bool fp8 = c->kernel.unit == HW_FP8, narrow = c->kernel.element_bytes < (fp8 ? 1 : 2);
    if (!c->of.class) return;
    c->kernel.sparse = rows_sparse(c->of.class->name);
    c->kernel.tile_rows = rows_tile_rows(c->of.class->name);
    if (c->kernel.sparse > 0 && !narrow && m->source->sorts_few[fp8]) c->kernel.sparse = HUGE_VAL;
}

enum { EXPERTS_LAUNCHES = 6 }; /* of a kernel that nobody measured: choice, sorting, products, activation, sum */

/* One measurement holds the choice of experts, both products and what is between and after them: the first product
 * stands for all of it. */
static void make_experts(struct call *c, const struct maker *m)
{
    const struct ffn *f = m->ffn;
    char prefix[64];
    c->kernel.kind = KERNEL_MOE;
    c->launches = EXPERTS_LAUNCHES;
    if (strcmp(m->op->name, "experts_up") != 0) {
        c->how = CALL_INSIDE;
        return;
    }
    struct kernel *k = &c->kernel;
    k->width = (double)(f->latent_width ? f->latent_width : m->pass->setup->model->hidden);
    k->hidden = (double)f->width;
    k->topk = (double)f->experts_per_token;
    k->experts = (double)f->experts;
    c->shared = shares_routed(m);
    if (c->shared) {
        k->topk++;
        k->experts++;
    }
    k->tp = m->group / m->ep;
    k->ep = m->ep;
    k->gated = f->gated;
    k->active_experts = k->routed_rows = k->max_rows = (double)NAN;
    k->element_bytes = element_bytes(m);
    const char *format = format_of(m);
    (void)snprintf(prefix, sizeof prefix, "moe/%s/", strcmp(format, "fp8_dynquant") == 0 ? "fp8/" : format);
    if (prefix[strlen(prefix) - 2] == '/') prefix[strlen(prefix) - 1] = '\0';
    /* SGLang's kernel is vLLM's in Triton, wherever that was measured; TensorRT-LLM's of mxfp4 with activations of 16
     * bits is in Triton too (its deployment guide of GPT-OSS: default on Hopper). */
    const struct source_want triton = {prefix, "triton", "nongated"};
    if (f->gated && (!is_trtllm(m) || strcmp(dtype_of(m)->name, "mxfp4") == 0)) take(c, m, &triton, 1);
    const struct source_want want[] = {{prefix, f->gated ? NULL : "nongated", f->gated ? "nongated" : NULL},
                                       {prefix, NULL, "nongated"}};
    if (!c->of.class) take(c, m, want, COUNT(want));
    if (c->of.class) c->launches = rows_moe_launches(c->of.class->name, k->quant == KERNEL_QUANT_BLOCK);
    set_sparse(c, m);
}

static void make_scan(struct call *c, const struct maker *m, bool conv)
{
    const struct mixer *x = m->mixer;
    const struct recurrence *r = &x->recurrence;
    struct kernel *k = &c->kernel;
    const bool delta = r->block == RECURRENT_LINEAR && r->delta, ssd = r->block == RECURRENT_SSD;
    k->kind = conv ? KERNEL_CONV : KERNEL_SCAN;
    k->unit = HW_BF16;
    k->heads = (double)x->heads / m->tp;
    k->key_heads = fmax(1, (double)x->kv_heads / m->tp);
    k->state_dim = (double)x->head_dim;
    k->value_dim = (double)x->v_head_dim;
    k->chunk_tokens = m->decode ? 1 : (double)(r->chunk_tokens > 0 ? r->chunk_tokens : 64);
    k->state_bytes = m->pass->setup->model->state.bits / 8;
    k->gated = delta;
    k->state_space = ssd;
    k->taps = (double)r->conv_taps;
    k->channels = k->heads * k->value_dim + 2 * k->key_heads * k->state_dim;
    if (!delta && !ssd) return;
    const char *prefix = conv        ? m->decode ? "conv/causal_conv1d_update/" : "conv/causal_conv1d_fn/"
                         : m->decode ? "scan/fused_recurrent"
                                     : "scan/chunk";
    const struct source_want want[] = {{prefix, delta ? "/delta" : "/mamba2", NULL},
                                       {delta ? "scan/linear-step/" : "scan/mamba2-step/", NULL, NULL}};
    take(c, m, want, m->decode && !conv ? 2 : 1);
}

/* -- the rest -- */

/* Among ranks that share a context: parts to all of them, sums of parts, each rank its own, or parts to each. */
static void make_shared(struct call *c, const struct maker *m)
{
    struct kernel *k = &c->kernel;
    const bool scatter = m->op->kind == OP_ALL_REDUCE, direct = m->op->kind == OP_ALL_TO_ALL;
    k->kind = KERNEL_COLLECTIVE;
    k->collective = direct ? KERNEL_ALL_TO_ALL : scatter ? KERNEL_REDUCE_SCATTER : KERNEL_ALL_GATHER;
    k->ranks = k->per_node = m->dcp;
    const struct source_want want[] = {{direct    ? "collective/alltoall/"
                                        : scatter ? "collective/reduce_scatter/"
                                                  : "collective/all_gather/",
                                        NULL, m->eager ? "_graph" : "_eager"}};
    take(c, m, want, 1);
}

static void make_collective(struct call *c, const struct maker *m)
{
    if (m->op->context) {
        make_shared(c, m);
        return;
    }
    struct kernel *k = &c->kernel;
    const bool reduce = m->op->kind == OP_ALL_REDUCE;
    k->kind = KERNEL_COLLECTIVE;
    k->collective = reduce ? KERNEL_ALL_REDUCE : KERNEL_ALL_GATHER;
    k->ranks = k->per_node = m->tp;
    const struct source_want want[] = {
        {reduce ? "collective/all_reduce/" : "collective/all_gather/", NULL, m->eager ? "_graph" : "_eager"}};
    take(c, m, want, 1);
}

/* Tokens to the ranks of their experts and back. */
static void make_spread(struct call *c, const struct maker *m)
{
    const struct source_want want[] = {{"collective/alltoall/", NULL, NULL}};
    c->kernel.kind = KERNEL_COLLECTIVE;
    c->kernel.collective = KERNEL_ALL_TO_ALL;
    c->kernel.ranks = c->kernel.per_node = m->group;
    take(c, m, want, 1);
}

static void make_moved(struct call *c, const struct maker *m)
{
    const bool norm = m->op->kind == OP_NORM && m->pass->setup->model->norm == NORM_RMS;
    const char *own = norm                         ? "elementwise/rmsnorm/"
                      : m->op->kind == OP_KV_WRITE ? "elementwise/kv-write/"
                      : m->op->kind == OP_ROPE     ? "elementwise/rope/"
                      : m->op->kind == OP_SAMPLE   ? "elementwise/sample/"
                                                   : NULL;
    const struct source_want want[] = {{own, NULL, NULL}, {"elementwise/scale_matrix/", NULL, NULL}};
    c->kernel.kind = KERNEL_ELEMENTWISE;
    take(c, m, own ? want : want + 1, own ? 2 : 1);
}

static void make_kind(struct call *c, const struct maker *m)
{
    switch (m->op->kind) {
    case OP_LINEAR:
        if (is_stacked(m) || in_routed(m))
            c->how = CALL_INSIDE;
        else
            make_product(c, m);
        break;
    case OP_LM_HEAD: make_product(c, m); break;
    case OP_ATTENTION: make_attention(c, m); break;
    case OP_ABSORB: make_absorb(c, m); break;
    case OP_EXPERTS: make_experts(c, m); break;
    case OP_ROUTE:
    case OP_COMBINE: c->how = CALL_INSIDE; break;
    case OP_SCAN: make_scan(c, m, false); break;
    case OP_CONV: make_scan(c, m, true); break;
    case OP_ALL_REDUCE:
    case OP_ALL_GATHER: make_collective(c, m); break;
    case OP_ALL_TO_ALL:
        if (m->op->context)
            make_shared(c, m);
        else
            make_spread(c, m);
        break;
    case OP_RESIDUAL: c->how = in_routed(m) ? CALL_INSIDE : CALL_FUSED; break;
    case OP_KV_WRITE: /* the attention of vLLM and TensorRT-LLM was measured with it */
        if (strcmp(m->source->kernels, "sglang") == 0 || strcmp(m->source->kernels, "ridge") == 0)
            make_moved(c, m);
        else
            c->how = CALL_INSIDE;
        break;
    case OP_ROPE:
        if (is_trtllm(m))
            c->how = CALL_INSIDE;
        else
            make_moved(c, m);
        break;
    case OP_ACTIVATION:
        if (strncmp(m->op->name, "experts", strlen("experts")) == 0 || in_routed(m))
            c->how = CALL_INSIDE;
        else
            make_moved(c, m);
        break;
    case OP_EMBED:
    case OP_POSITIONS:
    case OP_NORM:
    case OP_HEAD_NORM:
    case OP_GATED_NORM:
    case OP_STREAMS:
    case OP_SCALE:
    case OP_SAMPLE: make_moved(c, m); break;
    case OP_LORA_SHRINK: c->launches = 2; break; /* what it sums into is cleared before */
    case OP_LORA_EXPAND:                         /* no kernel of adapters is measured */
    case OP_INDEX:
    case OP_LONG_CONV:
    case OP_MLP:
    case OP_SEND:
    case OP_KINDS: break;
    }
}

struct call call_make(const struct step_pass *pass, enum call_pass which, size_t i, const struct source *s, bool eager)
{
    const struct cost_op *op = &pass->op[i];
    const bool cached = !pass->setup->uncached;
    const struct layout w = layout_whole(&pass->setup->layout);
    if (op->part >= 0) which = op->part == MIXED_DECODE ? CALL_DECODE : CALL_PREFILL;
    const struct layer_kind *kind = op->kind_index < 0 ? NULL : &pass->setup->model->kinds[op->kind_index];
    const struct maker m = {.pass = pass,
                            .op = op,
                            .timed = &pass->timed[i],
                            .source = s,
                            .mixer = kind ? &kind->mixer : NULL,
                            .ffn = kind ? &kind->ffn : NULL,
                            .tp = (double)w.tp,
                            .group = (double)layout_group(&w),
                            .ep = (double)w.ep,
                            .dcp = (double)w.dcp,
                            .decode = which == CALL_DECODE && cached && pass->setup->pass_tokens <= 1,
                            .verify = which == CALL_VERIFY,
                            .absorbed = which != CALL_PREFILL && cached,
                            .eager = eager};
    struct call c = {
        .how = CALL_ROOFLINE, .count = (double)op->count, .launches = 1, .context_ranks = 1, .op = i, .part = op->part};
    const struct sym *const work[] = {op->flops,       op->vector_flops, op->weight_bytes,    op->kv_bytes,
                                      op->state_bytes, op->wire_bytes,   op->activation_bytes};
    bool idle = true;
    for (size_t k = 0; k < COUNT(work); k++) idle = idle && constant(work[k]) == 0; /* NAN is no zero */
    c.by_context =
        op->kind == OP_ATTENTION || op->kind == OP_INDEX || op->kind == OP_LONG_CONV || pass->setup->uncached;
    if (idle) {
        c.how = CALL_NOTHING;
        return c;
    }
    c.kernel.cold = true;
    c.kernel.host = rows_of_host(pass->setup->hw);
    c.kernel.unit = HW_BF16;
    (void)hw_dtype_find(m.timed->unit, &c.kernel.unit);
    make_kind(&c, &m);
    if (c.how == CALL_INSIDE || c.how == CALL_FUSED) c.launches = 0;
    return c;
}

struct kernel call_at(const struct call *c, const struct call_point *at, const struct call_value *v)
{
    const double rows = v->rows, bytes = v->bytes;
    struct kernel k = c->kernel;
    switch (k.kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: k.m = rows; break;
    case KERNEL_MOE:
        k.tokens = rows;
        k.active_experts = v->touched + c->shared;
        k.routed_rows = v->pairs + (c->shared ? rows : 0);
        break;
    case KERNEL_MLP: k.tokens = rows; break;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL:
    case KERNEL_SCAN:
    case KERNEL_CONV:
        k.batch = at->batch;
        k.query_tokens = round(at->tokens);
        k.prefix_tokens = round(at->context) - k.query_tokens;
        /* a causal call of as many pairs, T*P + T*(T+1)/2 = T*S */
        if (c->both_ways) k.prefix_tokens = round(at->context - (k.query_tokens + 1) / 2);
        break;
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE:
        k.batch = at->batch;
        k.context_tokens = c->context_ranks > 1 ? ceil(at->context / c->context_ranks) : at->context;
        if (c->packed) k.heads *= at->tokens;
        break;
    case KERNEL_ELEMENTWISE:
        k.m = at->batch * at->tokens;
        k.moved_bytes = bytes;
        break;
    case KERNEL_COLLECTIVE: /* read and written: the sum twice; the parts of all and the own one; what is sent */
        k.payload_bytes = k.collective == KERNEL_ALL_REDUCE   ? bytes / 2
                          : k.collective == KERNEL_ALL_TO_ALL ? bytes * k.ranks / (k.ranks - 1)
                                                              : bytes * k.ranks / (k.ranks + 1);
        break;
    case KERNEL_KINDS_N: break;
    }
    return k;
}
