#include "calc/fit/shapes.h"

#include <math.h>
#include <string.h>

#include "calc/fit/calls.h"
#include "calc/fit/rows_formats.h"

/* -- sizes -- */

/* Whether what a call is measured in is the format of its cache. */
static bool is_cached(enum kernel_kind kind) { return kind == KERNEL_DECODE || kind == KERNEL_MLA_DECODE; }

const char *shape_dtype(const struct row *r)
{
    return is_cached(r->kernel.kind) && r->kv_dtype && *r->kv_dtype ? r->kv_dtype : r->dtype;
}

bool shape_number(const struct kernel *k, size_t i, const char **name, double *value)
{
    const struct rows_format *f = rows_format_of(k);
    if (!f || i >= f->numbers_n) return false;
    /* the width of a convolution is in rows of scans for the convolutions among them */
    if (k->kind == KERNEL_SCAN && f->numbers[i].offset == offsetof(struct kernel, taps)) return false;
    *name = f->numbers[i].own ? f->numbers[i].own : f->numbers[i].column;
    *value = *(const double *)(const void *)((const char *)k + f->numbers[i].offset);
    /* a row of absorbed latent attention gives the rope part alone */
    if (k->kind == KERNEL_MLA_DECODE && f->numbers[i].offset == offsetof(struct kernel, head_dim))
        *value -= k->value_dim;
    return true;
}

const char *shape_ones(struct arena *a, const struct kernel *k)
{
    const struct rows_format *f = rows_format_of(k);
    const char *text = "";
    for (size_t i = 0; f && text && i < f->numbers_n; i++)
        if (f->numbers[i].absent == ROWS_ONE)
            text = arena_printf(a, "%s%s%s", text, *text ? "," : "", f->numbers[i].column);
    return text;
}

/* Whether a size of a row is that of a call: an expected one within a twentieth, or 1; what a row need not tell any. */
static bool is_size(const struct rows_number *n, double want, double have)
{
    if (isnan(want) || ((n->mean || n->optional) && isnan(have))) return true;
    return n->mean ? fabs(want - have) <= fmax(1, want / 20) : want == have;
}

bool shape_is(const struct shape *s, const struct row *r)
{
    const struct rows_format *f = rows_format_of(&s->kernel);
    const char *name;
    double want, have;
    if (r->kernel.kind != s->kernel.kind || strcmp(shape_dtype(r), s->dtype) != 0) return false;
    if (!f || rows_format_of(&r->kernel) != f) return false;
    for (size_t i = 0; shape_number(&s->kernel, i, &name, &want); i++) {
        if (shape_number(&r->kernel, i, &name, &have) && !is_size(&f->numbers[i], want, have)) return false;
    }
    return true;
}

/* -- calls -- */

static bool is_near(double bytes, double of) { return fabs(bytes - of) <= 0.01 * of; }

/* As the table of formats in rows_formats.c calls what a call reads: one that it has to within a hundredth (scales of
 * whole channels, zero points); any other by its own name, which no kernel has. */
static const char *dtype_of(const struct kernel *k, const struct dtype *stored)
{
    const double bytes = is_cached(k->kind) ? k->kv_element_bytes : k->element_bytes;
    if (k->kind == KERNEL_SCAN) return "bf16";
    if (is_near(bytes, 4)) return "fp32";
    if (is_near(bytes, 2)) return k->unit == HW_FP16 ? "fp16" : "bf16";
    if (is_near(bytes, 1)) return k->unit == HW_INT8 ? "int8" : "fp8";
    if (is_near(bytes, 0.5 + 2.0 / 128) && !is_cached(k->kind)) return "int4-g128";
    return stored && stored->name ? stored->name : "other";
}

/* The format in which an operator's matrices, or the cache, are stored. */
static const struct dtype *stored_of(const struct model *m, const struct cost_op *op, const struct kernel *k)
{
    if (is_cached(k->kind)) return &m->kv;
    if (op->format) return op->format;
    return op->compute_class >= 0 ? &m->weights[op->compute_class] : NULL;
}

static enum err_code values_at(struct arena *a, const struct step_pass *pass, const double *point, double *rows,
                               double *moved_bytes, struct err *e)
{
    const struct sym **expr = arena_array(a, 2 * pass->n + 1, sizeof *expr);
    const double **in = arena_array(a, pass->in_n + 1, sizeof *in);
    double **out = arena_array(a, 2 * pass->n + 1, sizeof *out);
    struct sym_tape *tape;
    if (!expr || !in || !out) return err_nomem(e);
    for (size_t i = 0; i < pass->n; i++) {
        expr[2 * i] = pass->op[i].rows;
        out[2 * i] = &rows[i];
        expr[2 * i + 1] = pass->op[i].activation_bytes;
        out[2 * i + 1] = &moved_bytes[i];
    }
    for (size_t i = 0; i < pass->in_n; i++) in[i] = &point[i];
    TRY(sym_tape_compile(a, 2 * pass->n, expr, pass->in_n, pass->in, &tape, e));
    sym_tape_eval(tape, 1, in, out);
    return ERR_OK;
}

static bool is_call(const struct call *c)
{
    if (c->how != CALL_ROOFLINE && c->how != CALL_MEASURED) return false;
    switch (c->kernel.kind) {
    case KERNEL_GEMM: return c->kernel.n > 0 && c->kernel.k > 0; /* also what has no kind at all */
    case KERNEL_MLA_BMM: return c->kernel.groups > 0;
    case KERNEL_PREFILL:
    case KERNEL_DECODE:
    case KERNEL_MLA_PREFILL:
    case KERNEL_MLA_DECODE: return c->kernel.heads > 0 && c->kernel.head_dim > 0;
    case KERNEL_MOE:
    case KERNEL_MLP:
    case KERNEL_SCAN: return true;
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return false;
}

/* A device of which nothing is known but that it has a unit for every format: sizes depend on nothing else. */
static struct hw any_device(void)
{
    const double nan = (double)NAN;
    struct hw hw = {.file = "", .key = "", .name = "", .bandwidth_bytes_per_s = 1};
    for (size_t i = 0; i < HW_DTYPES_N; i++) hw.peak_flops_per_s[i] = 1;
    hw.link_bytes_per_s = hw.link_pair_bytes_per_s = hw.link_domain = hw.fabric_bytes_per_s = hw.pcie_bytes_per_s = nan;
    hw.host_link_bytes_per_s = nan;
    hw.sm_count = hw.l2_bytes = hw.clock_mhz = hw.sm_version = nan;
    return hw;
}

/* Where shapes are made. */
struct maker {
    const struct step_pass *pass;
    const struct hw *hw; /* NULL: no bounds */
    const struct call_point *at;
};

static struct shape shape_of(const struct maker *m, size_t op_i, const struct kernel *kernel)
{
    const struct cost_op *op = &m->pass->op[op_i];
    struct kernel_work w;
    struct shape s = {.op = op->name,
                      .kind_index = op->kind_index,
                      .count = op->count,
                      .layers = op->kind_index < 0 ? 0 : m->pass->setup->model->kinds[op->kind_index].count,
                      .kernel = *kernel,
                      .batch = m->at->batch,
                      .tokens = m->at->tokens,
                      .bound_s = (double)NAN};
    s.kernel.host = rows_of_host(m->hw);
    s.dtype = dtype_of(&s.kernel, stored_of(m->pass->setup->model, op, &s.kernel));
    if (m->hw && kernel_work(&s.kernel, m->hw, &w, NULL) == ERR_OK) s.bound_s = w.bound_s;
    return s;
}

static double constant(const struct sym *x)
{
    double v;
    return sym_constant(x, &v) ? v : (double)NAN;
}

/* RMS norms of the model's width, one call each: how many are one operator. 0: it is none, or of another width. */
static int64_t norms_of(const struct model *m, const struct cost_op *op)
{
    if (op->kind != OP_NORM || m->norm != NORM_RMS || op->tensors_n != 1) return 0;
    const double n = constant(op->tensor[0].elems) / (double)m->hidden;
    return n >= 1 && n == floor(n) ? (int64_t)n : 0;
}

/* -- calls of kernels whose rows tell bytes alone; false: the operator is none of theirs -- */

static double act_bytes(const struct maker *m) { return m->pass->setup->model->activations.bits / 8; }

static bool is_norm(const struct maker *m, const struct cost_op *op, double moved_bytes, struct kernel *k)
{
    const int64_t norms = norms_of(m->pass->setup->model, op);
    if (!norms) return false;
    k->element_bytes = act_bytes(m);
    k->width = (double)m->pass->setup->model->hidden;
    k->m = round(moved_bytes / (2 * k->element_bytes * k->width * (double)norms));
    k->moved_bytes = (2 * k->m + 1) * k->width * k->element_bytes;
    k->written_bytes = k->m * k->width * k->element_bytes;
    return true;
}

static bool is_write(const struct maker *m, const struct cost_op *op, const struct mixer *x, struct kernel *k)
{
    const struct model *model = m->pass->setup->model;
    if (op->kind != OP_KV_WRITE || x->kind != MIXER_ATTENTION || x->head_dim != x->v_head_dim || x->v_is_k)
        return false;
    const double scales = model->kv.bits < 16 ? 4 : 0; /* bytes of one, and of the number of a slot */
    (void)hw_dtype_find(model->kv.compute, &k->unit);
    k->m = m->at->batch * m->at->tokens;
    k->kv_heads = (double)x->kv_heads;
    k->head_dim = (double)x->head_dim;
    k->element_bytes = model->kv.bits / 8;
    k->moved_bytes = k->m * (2 * k->kv_heads * (k->head_dim * (act_bytes(m) + k->element_bytes) + scales) + 4);
    k->written_bytes = k->m * 2 * k->kv_heads * (k->head_dim * k->element_bytes + scales);
    return true;
}

/* Of latent attention the parts of queries and key that turn. Models do not say which elements are pairs. */
static bool is_rope(const struct maker *m, const struct cost_op *op, const struct mixer *x, struct kernel *k)
{
    const bool latent = x->kind == MIXER_LATENT;
    if (op->kind != OP_ROPE || strcmp(op->name, "rope") != 0 || x->shares_kv) return false;
    if (!latent && x->kind != MIXER_ATTENTION) return false;
    k->element_bytes = act_bytes(m);
    k->m = m->at->batch * m->at->tokens;
    k->heads = (double)x->heads;
    k->kv_heads = latent ? 1 : (double)x->kv_heads;
    k->head_dim = k->rotary_dim = (double)(latent ? x->rope_dim : x->head_dim);
    k->interleaved = (double)NAN;
    rows_move(k);
    return true;
}

/* Rows of logits that are read once and drawn from, at a temperature of 1 and from all tokens. */
static bool is_sample(const struct maker *m, const struct cost_op *op, double moved_bytes, struct kernel *k)
{
    enum { WHOLE_MILLI = 1000 }; /* not a unit */
    if (op->kind != OP_SAMPLE) return false;
    k->element_bytes = act_bytes(m);
    const struct model *model = m->pass->setup->model;
    k->vocab = (double)(model->draft.head_rows > 0 ? model->draft.head_rows : model->vocab);
    k->batch = round(moved_bytes / (k->element_bytes * k->vocab));
    k->top_p_milli = k->temperature_milli = WHOLE_MILLI;
    rows_move(k);
    return k->batch >= 1;
}

static bool moves(const struct maker *m, size_t i, double moved_bytes, struct shape *out)
{
    static const struct mixer NONE = {.kind = MIXER_NONE};
    const struct model *model = m->pass->setup->model;
    const struct cost_op *op = &m->pass->op[i];
    const struct mixer *x = op->kind_index < 0 ? &NONE : &model->kinds[op->kind_index].mixer;
    struct kernel k = {.kind = KERNEL_ELEMENTWISE, .unit = HW_BF16, .cold = true};
    const bool norm = is_norm(m, op, moved_bytes, &k);
    if (!norm && !is_write(m, op, x, &k) && !is_rope(m, op, x, &k) && !is_sample(m, op, moved_bytes, &k)) return false;
    *out = shape_of(m, i, &k);
    if (norm) out->count *= norms_of(model, op);
    return true;
}

/* The products of a gated dense MLP as one call, `up` the first of them. */
static bool is_mlp(const struct model *m, const struct cost_op *up)
{
    if (up->kind_index < 0 || strcmp(up->name, "up_proj") != 0) return false;
    const struct ffn *f = &m->kinds[up->kind_index].ffn;
    return f->kind == FFN_DENSE && f->gated && !f->channel_mix && !f->adapter_rank;
}

static struct shape mlp_of(const struct maker *m, size_t i, const struct kernel *up)
{
    const struct model *model = m->pass->setup->model;
    struct kernel k = {.kind = KERNEL_MLP, .unit = up->unit, .quant = up->quant, .cold = true};
    k.element_bytes = up->element_bytes;
    k.tokens = k.routed_rows = k.max_rows = up->m;
    k.width = (double)model->hidden;
    k.hidden = up->n / 2;
    k.gated = k.topk = k.experts = k.tp = k.ep = k.active_experts = 1;
    struct shape s = shape_of(m, i, &k);
    s.op = "mlp";
    s.whole = true;
    return s;
}

/* What takes time of its own, and is no call that is measured. */
static void add_other(struct shapes *out, const struct call *c, const char *name)
{
    size_t i = 0;
    if (c->how == CALL_NOTHING || c->how == CALL_INSIDE) return;
    while (i < out->others_n && strcmp(out->others[i], name) != 0) i++;
    if (i == out->others_n && i < SHAPES_OTHERS_MAX) out->others[out->others_n++] = name;
}

static enum err_code add_shapes(struct arena *a, const struct maker *m, bool prefill, const double *rows,
                                const double *moved_bytes, struct shapes *out, struct err *e)
{
    static const struct source NOBODYS = {.framework = "ridge", .kernels = "ridge"};
    const size_t n = m->pass->n;
    if (out->n + 2 * n > out->room) {
        const size_t room = 2 * (out->n + 2 * n);
        struct shape *grown = arena_array(a, room, sizeof *grown);
        if (!grown) return err_nomem(e);
        if (out->n) memcpy(grown, out->v, out->n * sizeof *grown);
        out->v = grown;
        out->room = room;
    }
    struct shape *v = out->v;
    for (int whole = 0; whole < 2; whole++)
        for (size_t i = 0; i < n; i++) {
            const struct cost_op *op = &m->pass->op[i];
            if (!whole && moves(m, i, moved_bytes[i], &v[out->n])) {
                out->n++;
                continue;
            }
            const struct call c = call_make(m->pass, prefill ? CALL_PREFILL : CALL_DECODE, i, &NOBODYS, false);
            if (!whole && !is_call(&c)) add_other(out, &c, op->name);
            if (!is_call(&c) || (whole && !is_mlp(m->pass->setup->model, op))) continue;
            const struct call_value value = {rows[i], 0, (double)NAN, (double)NAN};
            struct kernel k = call_at(&c, m->at, &value);
            if (k.kind == KERNEL_MOE && isnan(k.active_experts))
                k.active_experts = fmax(k.topk, round(kernel_experts(k.tokens, k.topk, k.experts)));
            v[out->n++] = whole ? mlp_of(m, i, &k) : shape_of(m, i, &k);
        }
    return ERR_OK;
}

enum err_code shapes_of_model(struct arena *a, const struct model *m, const struct hw *hw,
                              const struct shapes_point *at, struct shapes *out, struct err *e)
{
    const struct hw any = any_device();
    const struct step_setup setup = {.model = m, .hw = hw ? hw : &any, .fidelity = STEP_ROOFLINE, .block_tokens = 1};
    const bool prefill = at->phase == STEP_PREFILL;
    const double point[] = {at->batch, at->tokens, at->context, 1};
    const struct call_point where = {prefill ? 1 : at->batch, prefill ? at->tokens : 1,
                                     prefill ? at->tokens : at->context};
    struct step *step;
    TRY(model_refuse_encoder(m, "shapes of its kernels are not listed", e));
    TRY(step_compile(a, &setup, &step, e));
    const struct step_pass pass = step_pass_of(step, at->phase);
    const struct maker maker = {&pass, hw, &where};
    double *rows = arena_array(a, pass.n + 1, sizeof *rows), *moved = arena_array(a, pass.n + 1, sizeof *moved);
    const size_t before = out->n;
    if (!rows || !moved) return err_nomem(e);
    TRY(values_at(a, &pass, point, rows, moved, e));
    TRY(add_shapes(a, &maker, prefill, rows, moved, out, e));
    for (size_t i = before; i < out->n; i++) out->v[i].phase = step_phase_name(at->phase);
    return ERR_OK;
}
