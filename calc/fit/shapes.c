#include "calc/fit/shapes.h"

#include <math.h>
#include <string.h>

#include "calc/fit/calls.h"
#include "calc/fit/rows_formats.h"

/* -- sizes -- */

/* The columns of a call's kind. Scans have two sets: gated ones are told by keys and values, others by groups. */
static const struct rows_format *format_of(const struct kernel *k)
{
    const struct rows_format *f = NULL;
    for (size_t i = 0; i < rows_formats_n; i++) {
        if (rows_formats[i].kind != k->kind) continue;
        if (!f || (k->kind == KERNEL_SCAN && !(k->gated > 0))) f = &rows_formats[i];
    }
    return f;
}

bool shape_number(const struct kernel *k, size_t i, const char **name, double *value)
{
    const struct rows_format *f = format_of(k);
    if (!f || i >= f->numbers_n) return false;
    *name = f->numbers[i].column;
    *value = *(const double *)(const void *)((const char *)k + f->numbers[i].offset);
    /* a row of absorbed latent attention gives the rope part alone */
    if (k->kind == KERNEL_MLA_DECODE && f->numbers[i].offset == offsetof(struct kernel, head_dim))
        *value -= k->value_dim;
    return true;
}

bool shape_is(const struct shape *s, const struct row *r)
{
    const char *name;
    double want, have;
    if (r->kernel.kind != s->kernel.kind || strcmp(r->dtype, s->dtype) != 0) return false;
    for (size_t i = 0; shape_number(&s->kernel, i, &name, &want); i++)
        if (shape_number(&r->kernel, i, &name, &have) && !isnan(want) && want != have) return false;
    return true;
}

/* -- calls -- */

/* As the table of formats in rows_formats.c calls what a call reads. */
static const char *dtype_of(const struct kernel *k)
{
    const bool cached = k->kind == KERNEL_DECODE || k->kind == KERNEL_MLA_DECODE;
    const double bytes = cached ? k->kv_element_bytes : k->element_bytes;
    if (k->kind == KERNEL_SCAN) return "bf16";
    if (bytes >= 4) return "fp32";
    if (bytes >= 2) return k->unit == HW_FP16 ? "fp16" : "bf16";
    if (bytes >= 1) return k->unit == HW_INT8 ? "int8" : "fp8";
    return "int4-g128";
}

static enum err_code values_at(struct arena *a, const struct step_pass *pass, const double *point, double *rows,
                               struct err *e)
{
    const struct sym **expr = arena_array(a, pass->n + 1, sizeof *expr);
    const double **in = arena_array(a, pass->in_n + 1, sizeof *in);
    double **out = arena_array(a, pass->n + 1, sizeof *out);
    struct sym_tape *tape;
    if (!expr || !in || !out) return err_nomem(e);
    for (size_t i = 0; i < pass->n; i++) {
        expr[i] = pass->op[i].rows;
        out[i] = &rows[i];
    }
    for (size_t i = 0; i < pass->in_n; i++) in[i] = &point[i];
    TRY(sym_tape_compile(a, pass->n, expr, pass->in_n, pass->in, &tape, e));
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
    hw.sm_count = hw.l2_bytes = hw.clock_mhz = hw.sm_version = nan;
    return hw;
}

static struct shape shape_of(const struct step_pass *pass, const struct call *c, const struct call_point *at,
                             double rows, const struct hw *hw)
{
    const struct cost_op *op = &pass->op[c->op];
    struct kernel_work w;
    struct shape s = {.op = op->name,
                      .kind_index = op->kind_index,
                      .count = op->count,
                      .layers = op->kind_index < 0 ? 0 : pass->setup->model->kinds[op->kind_index].count,
                      .kernel = call_at(c, at, rows, 0),
                      .batch = at->batch,
                      .tokens = at->tokens,
                      .bound_s = (double)NAN};
    s.kernel.host = rows_of_host(hw);
    s.dtype = dtype_of(&s.kernel);
    if (hw && kernel_work(&s.kernel, hw, &w, NULL) == ERR_OK) s.bound_s = w.bound_s;
    return s;
}

enum err_code shapes_of_model(struct arena *a, const struct model *m, const struct hw *hw,
                              const struct shapes_point *at, struct shapes *out, struct err *e)
{
    static const struct source NOBODYS = {.framework = "ridge", .kernels = "ridge"};
    const struct hw any = any_device();
    const struct step_setup setup = {.model = m, .hw = hw ? hw : &any, .fidelity = STEP_ROOFLINE, .block_tokens = 1};
    const bool prefill = at->phase == STEP_PREFILL;
    const double point[] = {at->batch, at->tokens, at->context, 1};
    const struct call_point where = {prefill ? 1 : at->batch, prefill ? at->tokens : 1,
                                     prefill ? at->tokens : at->context};
    struct step *step;
    TRY(step_compile(a, &setup, &step, e));
    const struct step_pass pass = step_pass_of(step, at->phase);
    struct shape *v = arena_array(a, out->n + pass.n + 1, sizeof *v);
    double *rows = arena_array(a, pass.n + 1, sizeof *rows);
    if (!v || !rows) return err_nomem(e);
    if (out->n) memcpy(v, out->v, out->n * sizeof *v);
    TRY(values_at(a, &pass, point, rows, e));
    for (size_t i = 0; i < pass.n; i++) {
        const struct call c = call_make(&pass, prefill ? CALL_PREFILL : CALL_DECODE, i, &NOBODYS, false);
        if (!is_call(&c)) continue;
        v[out->n] = shape_of(&pass, &c, &where, rows[i], hw);
        v[out->n++].phase = step_phase_name(at->phase);
    }
    out->v = v;
    return ERR_OK;
}
