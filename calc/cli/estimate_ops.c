/* estimate_ops -- operators of one point of `ridge estimate`, phase by phase. */
#include "calc/cli/estimate.h"

void estimate_ops_add(struct step_op **sum, struct step_op *op, size_t n)
{
    if (!*sum) {
        for (size_t i = 0; i < n; i++) op[i].share_frac = op[i].time_s;
        *sum = op;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct step_op *to = &(*sum)[i];
        if (op[i].time_s > to->share_frac) { /* the longest so far */
            to->share_frac = op[i].time_s;
            to->bound_by = op[i].bound_by;
        }
        to->flops += op[i].flops;
        to->vector_flops += op[i].vector_flops;
        to->weight_bytes += op[i].weight_bytes;
        to->kv_bytes += op[i].kv_bytes;
        to->state_bytes += op[i].state_bytes;
        to->activation_bytes += op[i].activation_bytes;
        to->wire_bytes += op[i].wire_bytes;
        to->fabric_bytes += op[i].fabric_bytes;
        to->bytes += op[i].bytes;
        to->time_s += op[i].time_s;
    }
}

void estimate_ops_share(struct step_op *op, size_t n, const char *phase)
{
    double all = 0;
    for (size_t i = 0; i < n; i++) all += op[i].time_s;
    for (size_t i = 0; i < n; i++) {
        op[i].phase = phase;
        op[i].share_frac = op[i].time_s / all;
        op[i].intensity_flops_per_byte = (op[i].flops > 0 ? op[i].flops : op[i].vector_flops) / op[i].bytes;
    }
}

enum { DRAFT = STEP_PHASES, VERIFY, PHASES };

struct lists {
    struct step_op *op[PHASES];
    size_t n[PHASES];
};

/* All passes of the draft in a step, and the pass that judges; first: the context of the step. */
static enum err_code drafted_ops(struct arena *a, const struct estimate_case *c, const struct estimate_row *point,
                                 double first, struct lists *l, struct err *e)
{
    const struct speculate_setup *s = &c->speculation;
    const double B = (double)point->batch, T = (double)point->verify_tokens;
    struct speculate_pass pass[SPECULATE_DEPTH_MAX];
    const size_t passes = speculate_passes(s, point->gamma, first, pass);
    for (size_t i = 0; i < passes; i++) {
        struct step_op *op;
        size_t n;
        TRY(step_ops(a, pass[i].step, STEP_DECODE, B, pass[i].tokens, pass[i].S, 1, &op, &n, e));
        estimate_drafting_ops(c, pass[i].step, B, pass[i].tokens, pass[i].S, op, n);
        for (size_t k = 0; k < n; k++) op[k].count *= (int64_t)passes;
        estimate_ops_add(&l->op[DRAFT], op, n);
        l->n[DRAFT] = n;
    }
    estimate_ops_share(l->op[DRAFT], l->n[DRAFT], "draft");
    TRY(step_ops(a, s->verify, STEP_DECODE, B, T, first, 1, &l->op[VERIFY], &l->n[VERIFY], e));
    estimate_drafting_ops(c, s->verify, B, T, first, l->op[VERIFY], l->n[VERIFY]);
    return ERR_OK;
}

static enum err_code phase_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                               const struct estimate_row *point, enum step_phase p, double S, double M, struct lists *l,
                               struct err *e)
{
    const double B = (double)point->batch, T = (double)point->prompt_tokens;
    if (q->only == (p == STEP_PREFILL ? ONLY_DECODE : ONLY_PREFILL)) return ERR_OK;
    if (p == STEP_PREFILL && c->model.diffusion && c->diffusion.block_tokens == 0) return ERR_OK;
    if (p == STEP_PREFILL && q->chunk) return estimate_chunked_ops(a, q, c, T, &l->op[p], &l->n[p], e);
    TRY(step_ops(a, c->step, p, B, T, S, M, &l->op[p], &l->n[p], e));
    if (c->calibrated) calibrated_ops(c->calibrated, p, B, T, S, M, l->op[p], l->n[p]);
    return ERR_OK;
}

/* Of an operator nothing runs in its phase: it is of an encoder at rest, or needs an image. */
static bool rests(const struct step_op *op)
{
    const double bytes = op->bytes + op->wire_bytes + op->fabric_bytes;
    return !(op->flops > 0 || op->vector_flops > 0 || bytes > 0 || op->time_s > 0);
}

enum err_code estimate_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                           const struct estimate_row *point, struct estimate_op_row **out, size_t *out_n, struct err *e)
{
    struct lists l = {.n = {0}};
    size_t total = 0, at = 0;
    const double M = q->averaged ? estimate_generated(c, point->generate_tokens) : 1;
    const double S = q->averaged ? (double)(point->context - point->generate_tokens) + M : (double)point->context;
    for (enum step_phase p = 0; p < STEP_PHASES; p++) TRY(phase_ops(a, q, c, point, p, S, M, &l, e));
    if (q->drafting.draft && point->verify_tokens != TABLE_INT_UNKNOWN)
        TRY(drafted_ops(a, c, point, S - (M - 1) / 2, &l, e));
    for (size_t p = 0; p < PHASES; p++) total += l.n[p];
    struct estimate_op_row *rows = arena_array(a, total, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t p = 0; p < PHASES; p++)
        for (size_t i = 0; i < l.n[p]; i++) {
            if (rests(&l.op[p][i])) continue;
            rows[at++] =
                (struct estimate_op_row){.model = p == DRAFT ? c->draft.name : point->model,
                                         .hardware = point->hardware,
                                         .fidelity = c->calibrated ? "calibrated" : "roofline",
                                         .gpus = c->gpus,
                                         .tp = p == DRAFT ? c->draft_tp : c->tp,
                                         .weights = p == DRAFT ? model_linear_format(&c->draft)->name : point->weights,
                                         .kv = p == DRAFT ? c->draft.kv.name : point->kv,
                                         .batch = point->batch,
                                         .context = point->context,
                                         .gamma = p >= DRAFT ? point->gamma : TABLE_INT_UNKNOWN,
                                         .op = l.op[p][i]};
        }
    *out = rows;
    *out_n = at;
    return ERR_OK;
}
