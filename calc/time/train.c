#include "calc/time/train.h"

#include <math.h>

enum { FORWARD_PARTS = 1, BACKWARD_PARTS = 2 }; /* products for each of the forward pass */

struct train_plan {
    struct train_setup setup;
    struct model model; /* as it is trained */
    struct step *step;
    struct sym_tape *saved; /* activations kept, in B and S */
    double rank_params, peak_flops_per_s;
    double gather_s_per_byte; /* to gather a byte that is split over the copies, or to sum it up to there */
};

double train_flops(double params, double tokens) { return 2 * (FORWARD_PARTS + BACKWARD_PARTS) * params * tokens; }

double train_run_s(double flops, double n, double peak_flops_per_s, double mfu)
{
    return flops / (n * peak_flops_per_s * mfu);
}

double train_peak(const struct train_plan *p) { return p->peak_flops_per_s; }

/* The pass over whole sequences that the backward pass follows: no cache, logits of all. */
static enum err_code open_saved(struct arena *a, struct train_plan *p, struct err *e)
{
    const struct train_setup *u = &p->setup;
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    const struct sym *saved;
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {
        .name = "training", .B = y.B, .T = y.S, .S = y.S, .uncached = true, .all_logits = true};
    TRY(cost_build(a, c, &y, u->model, &u->conventions, &pass, u->tp, &ops, e));
    TRY(cost_bind(c, &y, u->model, u->tp, &ops, e));
    TRY(train_saved_bytes(a, c, u->model, &ops, &pass, u->tp, u->recompute, &saved, e));
    const struct sym *const in[] = {y.B, y.S};
    return sym_tape_compile(a, 1, &saved, 2, in, &p->saved, e);
}

/* Parameters that one of tp ranks holds, whatever format the file stores them in. */
static enum err_code rank_params(struct arena *a, struct train_plan *p, struct err *e)
{
    const struct train_setup *u = &p->setup;
    struct sym_ctx *c = sym_open(a);
    struct cost_ops ops;
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    TRY(cost_build(a, c, &y, u->model, &u->conventions, &pass, u->tp, &ops, e));
    TRY(cost_bind(c, &y, u->model, u->tp, &ops, e));
    p->rank_params = 0;
    for (size_t i = 0; i < ops.n; i++)
        for (size_t j = 0; j < ops.op[i].tensors_n; j++) {
            double elems;
            if (ops.op[i].tensor[j].shared) continue;
            if (!sym_constant(ops.op[i].tensor[j].elems, &elems))
                return err_set(e, ERR_RANGE, "%s: parameters have no number", u->model->name);
            p->rank_params += (double)ops.op[i].count * elems;
        }
    return ERR_OK;
}

/* Seconds a byte of an all-gather, or a reduce-scatter, over the copies: within a node every rank gets the parts of the
 * other copies there, between nodes a node's ranks share what comes in; both at once. */
static double gather_s_per_byte(const struct train_setup *u)
{
    const int64_t all = u->tp * u->copies;
    int64_t node = u->per_node ? u->per_node : isnan(u->hw->link_domain) ? all : (int64_t)u->hw->link_domain;
    if (node > all) node = all;
    const int64_t here = node / u->tp > 1 ? node / u->tp : 1, nodes = (u->copies + here - 1) / here;
    const double c = (double)here, k = (double)nodes;
    double near = 0, far = 0;
    if (here > 1) {
        double rate = hw_link_rate(u->hw, (size_t)here);
        if (isnan(rate)) rate = u->hw->pcie_bytes_per_s;
        near = (c - 1) / c / rate;
    }
    if (nodes > 1) far = (k - 1) / (k * c) / u->hw->fabric_bytes_per_s;
    return isnan(near) || isnan(far) ? (double)NAN : fmax(near, far);
}

/* What copies send each other in a step: sums of gradients; parameters after the update, or (split) before both passes.
 */
static double reduce_s(const struct train_plan *p)
{
    const struct train_recipe *r = p->setup.recipe;
    static const int GATHERS[] = {0, 1, 1, 2};      /* of parameters, by stage */
    const double sums = p->setup.zero == 0 ? 2 : 1; /* an all-reduce is a reduce-scatter and an all-gather */
    if (p->setup.copies == 1) return 0;
    return p->rank_params * p->gather_s_per_byte * (sums * r->grad_bytes + GATHERS[p->setup.zero] * r->param_bytes);
}

enum err_code train_compile(struct arena *a, const struct train_setup *setup, struct train_plan **out, struct err *e)
{
    const char *unit;
    TRY(model_refuse_encoder(setup->model, "training one is not described", e));
    if (setup->zero < 0 || setup->zero > 3) return err_set(e, ERR_USAGE, "ZeRO has stages 0 to 3");
    struct train_plan *p = arena_alloc(a, sizeof *p);
    if (!p) return err_nomem(e);
    *p = (struct train_plan){.setup = *setup, .model = *setup->model};
    setup = &p->setup;
    p->setup.model = &p->model;
    TRY(train_model(setup->recipe, &p->model, e));
    struct step_setup u = {.model = setup->model,
                           .hw = setup->hw,
                           .layout = {.tp = setup->tp},
                           .fidelity = STEP_ROOFLINE,
                           .conventions = setup->conventions,
                           .prefill_together = true,
                           .uncached = true,
                           .block_tokens = 1};
    u.conventions.head_all = true;
    TRY(step_compile(a, &u, &p->step, e));
    TRY(step_peak(setup->hw, &setup->model->activations, &p->peak_flops_per_s, &unit, e));
    TRY(rank_params(a, p, e));
    p->gather_s_per_byte = gather_s_per_byte(setup);
    *out = p;
    return open_saved(a, p, e);
}

void train_eval(struct train_plan *p, double B, double S, struct train_step *out)
{
    const struct train_setup *u = &p->setup;
    const double n = (double)u->copies, devices = n * (double)u->tp;
    double forward_s, forward_flops, *column[STEP_VALUES_N] = {0}, saved, *const saved_column[] = {&saved};
    const double M = 1, *const in[] = {&B, &S};
    column[STEP_prefill_s] = &forward_s;
    column[STEP_prefill_flops] = &forward_flops;
    step_eval(p->step, 1, &B, &S, &S, &M, column);
    sym_tape_eval(p->saved, 1, in, saved_column);
    struct train_step t = {.tokens = n * B * S, .forward_s = forward_s, .activation_bytes = saved};
    t.flops = devices * forward_flops * (FORWARD_PARTS + BACKWARD_PARTS);
    t.backward_s = forward_s * (BACKWARD_PARTS + (u->recompute == TRAIN_RECOMPUTE_LAYERS ? FORWARD_PARTS : 0));
    t.memory = train_memory(u->recipe, p->rank_params, u->copies, u->zero);
    /* gradients read, state read and written, parameters written, of the part that a rank updates */
    const double part = u->zero > 0 ? p->rank_params / n : p->rank_params;
    t.update_s = part * (u->recipe->grad_bytes + 2 * u->recipe->state_bytes + u->recipe->param_bytes) /
                 u->hw->bandwidth_bytes_per_s;
    t.reduce_s = reduce_s(p);
    t.step_s = t.forward_s + t.backward_s + t.update_s + t.reduce_s;
    t.mfu = t.flops / (devices * p->peak_flops_per_s * t.step_s);
    t.memory_bytes = t.memory.param_bytes + t.memory.grad_bytes + t.memory.state_bytes + t.activation_bytes;
    *out = t;
}
