#include "calc/cost/build.h"
#include "calc/cost/fusion.h"

#include <string.h>

#define Y (b->y)
#define INT(n) sym_int(b->c, (n))
#define PROD(...) SYM_PROD(b->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(b->c, __VA_ARGS__)

struct cost_symbols cost_symbols_make(struct sym_ctx *c)
{
    struct cost_symbols y;
#define X(field, text, meaning) y.field = sym_var(c, text);
    COST_SYMBOLS(X)
#undef X
    return y;
}

static const struct {
    const char *name, *meaning;
} KINDS[OP_KINDS] = {
#define X(id, name_, meaning_) [OP_##id] = {name_, meaning_},
    COST_OPS(X)
#undef X
};

const char *cost_op_name(enum cost_op_kind kind) { return KINDS[kind].name; }
const char *cost_op_meaning(enum cost_op_kind kind) { return KINDS[kind].meaning; }

bool cost_op_adapts(const struct cost_op *op) { return op->kind == OP_LORA_SHRINK || op->kind == OP_LORA_EXPAND; }

const char *cost_op_says(const struct cost_op *op) { return op->says ? op->says : cost_op_meaning(op->kind); }

struct cost_conventions cost_conventions_of(bool course)
{
    return (struct cost_conventions){.causal_full = course,
                                     .embed_full_table = course,
                                     .mlp_fused = course,
                                     .norms_uncounted = course,
                                     .activations_uncounted = course};
}

const struct sym *build_width(const struct build *b, enum weight_class class)
{
    const struct cost_symbols *y = b->y;
    const struct sym *const width[WEIGHT_CLASSES] = {
        [WEIGHT_EMBED] = y->b_embed, [WEIGHT_HEAD] = y->b_head,     [WEIGHT_MIXER] = y->b_mixer,
        [WEIGHT_FFN] = y->b_ffn,     [WEIGHT_EXPERT] = y->b_expert, [WEIGHT_ROUTER] = y->b_router,
        [WEIGHT_OTHER] = y->b_other};
    return width[class];
}

struct cost_op *build_op(struct build *b, enum cost_op_kind kind, const char *name, const char *shape)
{
    struct cost_op *op = &b->ops->op[b->ops->n < b->ops_cap - 1 ? b->ops->n++ : b->ops->n];
    const struct sym *zero = INT(0);
    *op = (struct cost_op){.kind = kind,
                           .name = name,
                           .shape = shape,
                           .kind_index = b->kind_index,
                           .count = b->count,
                           .part = -1,
                           .compute_class = -1,
                           .flops = zero,
                           .half_flops = zero,
                           .vector_flops = zero,
                           .weight_bytes = zero,
                           .weight_needed_bytes = zero,
                           .kv_bytes = zero,
                           .kv_needed_bytes = zero,
                           .held_bytes = zero,
                           .state_bytes = zero,
                           .state_needed_bytes = zero,
                           .activation_bytes = zero,
                           .wire_bytes = zero,
                           .fabric_bytes = zero,
                           .rows = zero,
                           .in = zero,
                           .out = zero};
    return op;
}

const struct sym *build_each(struct build *b, const struct sym *each)
{
    struct cost_sums *s = b->pass->sums;
    if (!s) return each;
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].each == each && s->at[i].kind_index == b->kind_index) return s->at[i].var;
    const char *name = arena_printf(b->arena, "%s_%zu", s->name, s->n);
    const struct sym *var = name && s->n < s->cap ? sym_var(b->c, name) : NULL;
    if (var) s->at[s->n++] = (struct cost_sum){.var = var, .each = each, .kind_index = b->kind_index};
    return var;
}

void build_apart(struct build *b) { b->ops->op[b->ops->n - 1].apart = true; }

void build_vector(struct build *b, struct cost_op *op, const struct sym *n, bool norm)
{
    op->tensor[op->tensors_n++] = (struct cost_tensor){
        .class = WEIGHT_OTHER, .elems = n, .bytes = PROD(n, Y->b_other), .norm = norm, .shared = b->borrowed};
}

/* All tensors of the operator are read whole in a pass. */
static void read_all(struct build *b, struct cost_op *op)
{
    for (size_t i = 0; i < op->tensors_n; i++)
        if (!(op->tensor[i].norm && b->v->norms_uncounted))
            op->weight_bytes = SUM(op->weight_bytes, op->tensor[i].bytes);
}

void build_stacked(struct build *b, const char *name, const char *shape, enum weight_class class,
                   const struct sym *rows, const struct sym *in, size_t n, const struct sym *const *out, bool bias)
{
    const struct build_stack stack = {.all = n, .n = n, .copies = INT(1), .out = out, .in = in};
    const struct sym *width = sym_sum(b->c, n, out);
    struct cost_op *op = build_op(b, OP_LINEAR, name, shape);
    op->compute_class = (int)class;
    op->rows = rows;
    op->in = in;
    op->out = width;
    op->flops = PROD(INT(2), rows, in, width);
    op->activation_bytes = PROD(rows, SUM(in, width), Y->b_act);
    build_matrices(b, op, class, &stack);
    if (bias) {
        build_vector(b, op, width, false);
        op->vector_flops = PROD(rows, width);
    }
    read_all(b, op);
    build_outliers(b, op, class, &stack, rows, INT(1));
    build_adapted(b, name, rows, in, n, out);
}

void build_bias(struct build *b, const struct sym *n)
{
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    build_vector(b, op, n, false);
    op->vector_flops = SUM(op->vector_flops, PROD(op->rows, n));
    op->weight_bytes = SUM(op->weight_bytes, op->tensor[op->tensors_n - 1].bytes);
}

void build_linear(struct build *b, const char *name, const char *shape, enum weight_class class, const struct sym *rows,
                  const struct sym *in, const struct sym *out, bool bias)
{
    build_stacked(b, name, shape, class, rows, in, 1, &out, bias);
}

int64_t build_norm_flops(enum norm_kind kind)
{
    switch (kind) {
    case NORM_RMS: return 4;
    case NORM_LAYER: return 6;
    case NORM_LAYER_BIAS: return 7;
    case NORM_RMS_PLAIN: return 3;
    case NORM_LAYER_PLAIN: break;
    }
    return 5;
}

int64_t build_norm_vectors(enum norm_kind kind)
{
    return kind == NORM_LAYER_BIAS ? 2 : kind == NORM_RMS_PLAIN || kind == NORM_LAYER_PLAIN ? 0 : 1;
}

void build_norms(struct build *b, const char *name, int64_t n)
{
    if (n == 0) return;
    struct cost_op *op = build_op(b, OP_NORM, name, "[B*T, D]");
    const struct sym *elems = PROD(INT(n), b->norm_rows, Y->D);
    op->vector_flops = PROD(INT(build_norm_flops(b->m->norm)), elems);
    op->activation_bytes = PROD(INT(2), elems, Y->b_act);
    if (build_norm_vectors(b->m->norm) == 0) return;
    build_vector(b, op, PROD(INT(build_norm_vectors(b->m->norm) * n), Y->D), true);
    read_all(b, op);
}

/* One by its statistics alone, in a model whose others have weights. */
static void build_plain_norm(struct build *b, const char *name)
{
    struct cost_op *op = build_op(b, OP_NORM, name, "[B*T, D]");
    const struct sym *elems = PROD(b->norm_rows, Y->D);
    op->vector_flops = PROD(INT(build_norm_flops(NORM_RMS_PLAIN)), elems);
    op->activation_bytes = PROD(INT(2), elems, Y->b_act);
}

/* Bytes that a sum over ranks sends for a byte of it, over the fabric; none while all ranks are in a node. */
static const struct sym *reduced(const struct build *b)
{
    const struct layout w = layout_whole(&b->layout->layout);
    return b->layout->free || layout_nodes(&w, w.tp) > 1 ? b->ly.reduced : INT(0);
}

void build_sum_over_ranks(struct build *b, const char *name, const char *shape, const struct sym *width)
{
    build_sum_of_bytes(b, name, shape, PROD(b->rows, width, Y->b_act));
}

void build_sum_of_bytes(struct build *b, const char *name, const char *shape, const struct sym *bytes)
{
    if (!b->split) return;
    struct cost_op *op = build_op(b, OP_ALL_REDUCE, name, shape);
    op->wire_bytes = PROD(Y->r, bytes);
    op->fabric_bytes = PROD(reduced(b), bytes);
    op->activation_bytes = PROD(INT(2), b->is_split, bytes);
}

void build_gather_of_bytes(struct build *b, const char *name, const char *shape, const struct sym *part)
{
    if (!b->split) return;
    struct cost_op *op = build_op(b, OP_ALL_GATHER, name, shape);
    const struct sym *others = SUM(Y->t, INT(-1));
    if (reduced(b) != INT(0)) {
        others = sym_sub(b->c, others, b->ly.gathered);
        op->fabric_bytes = PROD(b->ly.gathered, part);
    }
    op->wire_bytes = PROD(others, part);
    op->activation_bytes = PROD(b->is_split, SUM(Y->t, INT(1)), part);
}

/* Half of a sum over ranks: every rank has its own part of the tokens after it, or before it. */
static void build_half_sum(struct build *b, enum cost_op_kind kind, const char *name, const char *shape)
{
    struct cost_op *op = build_op(b, kind, name, shape);
    const struct sym *half = sym_div(b->c, PROD(b->rows, Y->D, Y->b_act), INT(2));
    op->wire_bytes = PROD(Y->r, half);
    op->fabric_bytes = PROD(reduced(b), half);
    op->activation_bytes = PROD(b->is_split, SUM(b->rows, b->norm_rows), Y->D, Y->b_act);
}

void build_all_reduce(struct build *b, const char *name)
{
    if (!b->split) return;
    if (!b->layout->layout.sp) {
        build_sum_over_ranks(b, name, "[B*T, D] over t ranks", Y->D);
        return;
    }
    const size_t stem = strlen(name) - strlen("all_reduce");
    const char *scatter = arena_printf(b->arena, "%.*sreduce_scatter", (int)stem, name);
    const char *gather = arena_printf(b->arena, "%.*sall_gather", (int)stem, name);
    build_half_sum(b, OP_ALL_REDUCE, scatter ? scatter : name, "[B*T, D] -> [B*T/t, D]");
    build_half_sum(b, OP_ALL_GATHER, gather ? gather : name, "[B*T/t, D] -> [B*T, D]");
}

void build_residual(struct build *b, const char *name)
{
    struct cost_op *op = build_op(b, OP_RESIDUAL, name, "[B*T, D]");
    op->vector_flops = PROD(b->norm_rows, Y->D);
    op->activation_bytes = PROD(INT(3), b->norm_rows, Y->D, Y->b_act);
}

void build_positions(struct build *b, const char *name, const char *shape, const struct sym *rows)
{
    struct cost_op *op = build_op(b, OP_POSITIONS, name, shape);
    op->tensor[op->tensors_n++] =
        (struct cost_tensor){.class = WEIGHT_EMBED, .elems = PROD(rows, Y->D), .bytes = PROD(rows, Y->D, Y->b_embed)};
    op->weight_bytes = PROD(b->rows, Y->D, Y->b_embed);
    op->vector_flops = PROD(b->rows, Y->D);
    op->activation_bytes = PROD(INT(2), b->rows, Y->D, Y->b_act);
}

/* Frequencies of the rotation times the exponentials of stored numbers, once a pass for all layers. */
static void build_rope_scales(struct build *b)
{
    if (b->m->rope_scales == 0) return;
    const struct sym *n = INT(b->m->rope_scales);
    struct cost_op *op = build_op(b, OP_SCALE, "rope_scales", "[R/2]");
    op->says = "frequencies of the rotation times the exponentials of stored numbers";
    op->vector_flops = PROD(INT(2), n);
    build_vector(b, op, n, false);
    op->weight_bytes = op->tensor[0].bytes;
}

static void build_embedding(struct build *b)
{
    if (b->m->draft.no_embedding) return;
    struct cost_op *op = build_op(b, OP_EMBED, "embed", "[B*T] rows of [V, D]");
    const int64_t further = b->m->embed_extra_rows;
    build_tensor(b, op, WEIGHT_EMBED, INT(1), further ? SUM(Y->V, INT(further)) : Y->V, Y->D);
    op->tensor[0].shared = b->m->draft.embed_borrowed;
    op->weight_bytes = b->v->embed_full_table ? op->tensor[0].bytes : PROD(b->rows, Y->D, Y->b_embed);
    op->activation_bytes = PROD(b->rows, Y->D, Y->b_act);
    if (b->m->position_rows > 0) build_positions(b, "positions", "[B*T] rows of [P, D]", Y->P);
    build_all_reduce(b, "embed_all_reduce");
    build_adapted_embedding(b);
    if (b->m->embed_norm) build_norms(b, "embed_norm", 1);
    if (b->m->embed_norm_plain) build_plain_norm(b, "embed_norm");
    build_rope_scales(b);
}

/* A draft head makes one vector of several: the target's features, or one of them beside the embedding. */
static void build_join(struct build *b)
{
    const struct model_draft *d = &b->m->draft;
    if (d->joined == 0) return;
    if (build_hyper_join(b)) return;
    build_norms(b, "join_norm", d->norms_before);
    build_linear(b, "join_proj", "[B*T, Nj*D] x [Nj*D, D]", WEIGHT_HEAD, b->rows, PROD(Y->Nj, Y->D), Y->D,
                 d->joined_bias);
    build_norms(b, "feature_norm", d->norms_after);
}

/* What ModernBERT has before its output head; every rank has all of it. */
static void build_head_dense(struct build *b, const struct sym *rows)
{
    if (!b->m->head_dense) return;
    build_linear(b, "head_dense", "[rows, D] x [D, D]", WEIGHT_HEAD, rows, Y->D, Y->D, b->m->head_dense_bias);
    build_activation(b, "head_act", rows, Y->D, false);
    struct cost_op *op = build_op(b, OP_NORM, "head_norm", "[rows, D]");
    op->vector_flops = PROD(INT(build_norm_flops(b->m->norm)), rows, Y->D);
    op->activation_bytes = PROD(INT(2), rows, Y->D, Y->b_act);
    if (build_norm_vectors(b->m->norm) == 0) return;
    build_vector(b, op, PROD(INT(build_norm_vectors(b->m->norm)), Y->D), true);
    read_all(b, op);
}

static void build_head(struct build *b)
{
    const struct model_draft *d = &b->m->draft;
    const bool all = b->v->head_all || b->pass->all_logits;
    const struct sym *sequences = b->pass->sums ? b->pass->step_sequences : b->pass->B;
    const struct sym *rows = all ? b->rows : sequences, *drawn = b->pass->all_logits ? b->rows : sequences;
    const struct sym *heads = INT(d->heads ? d->heads : 1), *tokens = d->head_rows ? Y->Vd : Y->V;
    const struct sym *wide = PROD(heads, tokens);
    build_head_dense(b, rows);
    struct cost_op *op = build_op(b, OP_LM_HEAD, "lm_head", all ? "[B*T, D] x [D, V]" : "[B, D] x [D, V]");
    op->compute_class = WEIGHT_HEAD;
    op->rows = rows;
    op->in = Y->D;
    op->out = wide;
    op->flops = PROD(INT(2), rows, Y->D, wide);
    op->activation_bytes = PROD(rows, SUM(PROD(heads, Y->D), wide), Y->b_act);
    build_tensor(b, op, b->m->tied ? WEIGHT_EMBED : WEIGHT_HEAD, heads, tokens, Y->D);
    op->tensor[0].shared = b->m->tied || d->head_borrowed;
    if (b->m->tied) op->compute_class = WEIGHT_EMBED;
    if (b->m->head_bias) {
        build_vector(b, op, tokens, false);
        op->vector_flops = PROD(rows, tokens);
    }
    read_all(b, op);
    build_gather_of_bytes(b, "logits_all_gather", "[rows, V] of each of t ranks", PROD(rows, wide, Y->b_act));
    build_adapted_head(b, rows);
    /* Each rank draws from the whole distribution: t*V logits. max, -, exp, +, / per logit. */
    op = build_op(b, OP_SAMPLE, "sample", b->pass->all_logits ? "[B*T, V]" : "[B, V]");
    op->vector_flops = PROD(INT(5), drawn, Y->t, wide);
    op->activation_bytes = PROD(drawn, Y->t, wide, Y->b_act);
}

/* A norm's output times the sigmoid of a low-rank product of it. */
static void build_norm_gate(struct build *b, bool mixer, int64_t rank)
{
    enum { SIGMOID_FLOPS = 5 };
    if (rank == 0) return;
    const struct sym *narrow = INT(rank);
    build_linear(b, mixer ? "mixer_norm_down" : "mlp_norm_down", "[B*T, D] x [D, rank]", WEIGHT_ROUTER, b->rows, Y->D,
                 narrow, false);
    build_activation(b, mixer ? "mixer_norm_act" : "mlp_norm_act", b->rows, narrow, false);
    build_linear(b, mixer ? "mixer_norm_up" : "mlp_norm_up", "[B*T, rank] x [rank, D]", WEIGHT_ROUTER, b->rows, narrow,
                 Y->D, false);
    build_elementwise(b, OP_ACTIVATION, mixer ? "mixer_norm_gate" : "mlp_norm_gate", "[B*T, D]", PROD(b->rows, Y->D),
                      SIGMOID_FLOPS, 3);
}

/* A norm's output times one more than a low-rank product of a vector that is the pass's, not a token's. */
static void build_condition(struct build *b, int64_t rank)
{
    enum { SCALE_FLOPS = 2 }; /* 1 +, times */
    if (rank == 0) return;
    const struct sym *one = INT(1), *narrow = INT(rank);
    build_linear(b, "mlp_condition_down", "[1, D] x [D, rank]", WEIGHT_ROUTER, one, Y->D, narrow, false);
    build_activation(b, "mlp_condition_act", one, narrow, false);
    build_linear(b, "mlp_condition_up", "[1, rank] x [rank, D]", WEIGHT_ROUTER, one, narrow, Y->D, false);
    build_elementwise(b, OP_SCALE, "mlp_condition", "[B*T, D]", PROD(b->rows, Y->D), SCALE_FLOPS, 2);
}

/* The sum of a block with the stream, whose elements have stored factors in some models. */
static void build_block_residual(struct build *b, const char *name, const struct layer_kind *k)
{
    build_residual(b, name);
    if (!k->residual_weights && !k->residual_gates) return;
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    build_vector(b, op, Y->D, false);
    op->vector_flops = PROD(INT(k->residual_gates ? 3 : 2), op->vector_flops);
    op->weight_bytes = op->tensor[0].bytes;
}

static void build_layer(struct build *b, const struct layer_kind *k)
{
    const bool mixes = k->mixer.kind != MIXER_NONE, feeds = k->ffn.kind != FFN_NONE;
    const bool more = k->parallel || k->one_residual || k->mixer.doubled_input;
    const int64_t half = (k->norms + (more ? 1 : 0)) / 2, before = !mixes ? 0 : feeds ? half : k->norms;
    b->parallel = k->parallel;
    b->borrowed = k->borrowed;
    build_predict(b);
    build_engram(b, k->engram_rows);
    build_hyper_read(b, true);
    build_residuals_read(b, true);
    build_norms(b, "mixer_norm", before);
    build_norm_gate(b, true, k->mixer_gate_rank);
    build_laurel(b);
    build_mixer(b, &k->mixer);
    if (k->plain_norm) build_plain_norm(b, "mixer_plain_norm");
    if (b->m->hyper_streams > 0)
        build_hyper_write(b, true);
    else if (mixes && !k->parallel && !k->one_residual)
        build_block_residual(b, "mixer_residual", k);
    if (b->m->laurel_rank > 0) build_residual(b, "laurel_add");
    build_hyper_read(b, false);
    build_residuals_read(b, false);
    build_norms(b, "mlp_norm", k->norms - before);
    build_norm_gate(b, false, k->ffn_gate_rank);
    build_condition(b, k->ffn_condition_rank);
    build_ffn(b, &k->ffn);
    b->parallel = false;
    b->borrowed = false;
    if (k->parallel) {
        build_residual(b, "branch_sum");
        build_all_reduce(b, "layer_all_reduce");
        build_residual(b, "layer_residual");
    } else if (b->m->hyper_streams > 0) {
        build_hyper_write(b, false);
    } else if (feeds) {
        build_block_residual(b, "mlp_residual", k);
    }
    build_correct(b);
}

/* A layer that needs an image: without one its weights are held and nothing of it runs. Two gates scale its blocks. */
static void hold_images(struct build *b, size_t from)
{
    build_vector(b, build_op(b, OP_SCALE, "image_gates", "[B*T, D]"), INT(2), false);
    build_hold(b, from);
}

void build_hold(struct build *b, size_t from)
{
    const struct sym *zero = INT(0);
    for (size_t i = from; i < b->ops->n; i++) {
        struct cost_op *op = &b->ops->op[i];
        op->flops = op->half_flops = op->vector_flops = op->weight_bytes = op->kv_bytes = op->kv_needed_bytes =
            op->held_bytes = op->state_bytes = op->state_needed_bytes = op->activation_bytes = op->wire_bytes =
                op->fabric_bytes = zero;
    }
}

/* The layers of kind i. */
static void build_kind(struct build *b, size_t i)
{
    const struct layer_kind *k = &b->m->kinds[i];
    const size_t from = b->ops->n;
    struct build_source s;
    b->kind_index = (int)i;
    b->count = k->count;
    if (k->encodes) build_source_enter(b, &s);
    build_layer(b, k);
    if (k->encodes) build_source_leave(b, &s);
    if (k->mixer.images) hold_images(b, from);
    b->kind_index = -1;
    b->count = 1;
}

/* The stream (or streams) to the next stage: each rank sends its part of the tokens, and they are put together there.
 */
static void build_send(struct build *b)
{
    const struct layout w = layout_whole(&b->layout->layout);
    if (w.pp == 1 && !b->layout->free) return;
    struct cost_op *op = build_op(b, OP_SEND, "stage_send", "[B*T, D]");
    const struct sym *wide = b->m->hyper_streams > 0 ? PROD(Y->A, Y->D) : PROD(build_residuals_sent(b, w.pp), Y->D);
    const struct sym *bytes = PROD(b->rows, wide, Y->b_act);
    op->count = w.pp - 1;
    op->wire_bytes = PROD(b->ly.hop_near, bytes);
    op->fabric_bytes = PROD(b->ly.hop_far, bytes);
    op->activation_bytes = PROD(INT(2), bytes);
}

const struct sym *cost_times(struct sym_ctx *c, const struct cost_op *op, const struct cost_stage *stage)
{
    if (!stage) return sym_int(c, op->count);
    if (op->kind_index >= 0) return stage->layers[op->kind_index];
    if (op->kind == OP_SEND) return sym_sub(c, sym_int(c, 1), stage->last);
    return op->closes ? stage->last : stage->first;
}

/* What a layout is to the builders. */
static void open_ranks(struct build *b, const struct cost_layout *l)
{
    const struct layout w = layout_whole(&l->layout);
    const struct sym *one = INT(1);
    b->layout = l;
    b->ly = layout_symbols_make(b->c);
    b->split = l->free || w.tp > 1;
    b->spread = l->free || w.dp > 1;
    b->groups = b->spread ? b->ly.groups : one;
    b->parts = l->free || w.ep > 1 ? b->ly.parts : one;
    b->skew = l->free || w.skew > 1 ? b->ly.skew : one;
    b->is_split = l->free ? b->ly.split : one;
    b->is_spread = l->free ? b->ly.spread : one;
    b->norm_rows = w.sp ? sym_ceil(b->c, sym_div(b->c, b->rows, b->ly.narrow)) : b->rows;
}

/* Behind every time that the layers run but the last their norm, behind all of them what says whether to go on. */
static void build_loops_close(struct build *b)
{
    const int64_t loops = b->m->loops > 1 ? b->m->loops : 1;
    if (loops > 1 && !b->m->loops_bare) {
        b->borrowed = true;
        b->count = loops - 1;
        build_norms(b, "loop_norm", 1);
        b->borrowed = false;
        b->count = 1;
    }
    if (!b->m->exit_gate) return;
    build_linear(b, "exit_gate", "[B*T, D] x [D, 1]", WEIGHT_ROUTER, b->rows, b->y->D, INT(1), true);
    struct cost_op *op = &b->ops->op[b->ops->n - 1];
    const struct sym *times = INT(loops);
    op->flops = PROD(times, op->flops);
    op->vector_flops = PROD(times, op->vector_flops);
    op->weight_bytes = PROD(times, op->weight_bytes);
    op->activation_bytes = PROD(times, op->activation_bytes);
}

/* Weights that an earlier layer owns were read by it already. */
static void set_needed_weights(struct cost_ops *ops)
{
    for (size_t i = 0; i < ops->n; i++) {
        struct cost_op *op = &ops->op[i];
        bool own = op->kind_index < 0;
        for (size_t j = 0; j < op->tensors_n; j++) own = own || !op->tensor[j].shared;
        if (own) op->weight_needed_bytes = op->weight_bytes;
    }
}

/* Room for the operators of every kind of layer, and of the model outside them. */
enum { OPS_OF_LAYER = 128, OPS_OUTSIDE = 32 };

enum err_code cost_build(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                         const struct cost_conventions *v, const struct cost_pass *pass, int64_t tp,
                         struct cost_ops *out, struct err *e)
{
    const struct cost_layout *l = &(struct cost_layout){.layout = {.tp = tp}};
    return cost_build_layout(a, c, y, m, v, pass, l, out, e);
}

enum err_code cost_build_layout(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                                const struct cost_conventions *v, const struct cost_pass *pass,
                                const struct cost_layout *l, struct cost_ops *out, struct err *e)
{
    const size_t cap = OPS_OUTSIDE + OPS_OF_LAYER * m->kinds_n;
    struct cost_ops ops = {.op = arena_array(a, cap, sizeof *ops.op)};
    if (!ops.op) return err_nomem(e);
    struct build build = {.arena = a,
                          .c = c,
                          .y = y,
                          .m = m,
                          .v = v,
                          .pass = pass,
                          .kind_index = -1,
                          .count = 1,
                          .both_ways = m->bidirectional,
                          .ops = &ops,
                          .ops_cap = cap,
                          .many = pass->sums ? sym_int(c, 1) : pass->B,
                          .tokens = pass->sums ? pass->rows : pass->T,
                          .part_rows = pass->sums ? pass->rows : sym_mul(c, pass->B, pass->T),
                          .rows = pass->sums ? pass->step_rows : sym_mul(c, pass->B, pass->T)};
    struct build *b = &build;
    open_ranks(b, l);
    b->routed = pass->step_routed ? pass->step_routed : sym_mul(c, b->rows, b->groups);
    build_embedding(b);
    build_join(b);
    build_layer_inputs(b);
    build_streams_open(b);
    build_hyper_open(b);
    build_source_open(b);
    for (size_t i = 0; i < m->kinds_n; i++) {
        build_kind(b, i);
        if (m->kinds[i].encodes && (i + 1 == m->kinds_n || !m->kinds[i + 1].encodes)) build_source_close(b);
    }
    build_send(b);
    const size_t closing = ops.n;
    build_streams_close(b);
    build_hyper_close(b);
    build_residuals_close(b);
    build_loops_close(b);
    if (!m->draft.no_final_norm && m->hyper_rank == 0) build_norms(b, "final_norm", 1);
    if (!m->draft.no_head) build_head(b);
    if (v->fused) fusion_apply(c, v->fused, &ops);
    for (size_t i = closing; i < ops.n; i++) ops.op[i].closes = true;
    set_needed_weights(&ops);
    TRY(sym_check(c, e));
    *out = ops;
    return ERR_OK;
}
