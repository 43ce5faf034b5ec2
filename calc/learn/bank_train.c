#include "calc/learn/bank_scale.h"

#include "calc/time/train.h"

enum err_code bank_train_mfu(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BILLIONS[] = {3, 7, 8, 13, 32, 34, 70, 72},
                         DEVICES[] = {64, 128, 256, 512, 1024, 2048}; /* not a unit */
    struct hw hw;
    double peak;
    TRY(bank_device_16bit(m, &hw, &peak, e));
    const double billion = 1e9, million = 1e6; /* not a unit */
    const double params = billion * (double)bank_pick(m, 8, BILLIONS), gpus = (double)bank_pick(m, 6, DEVICES);
    const double part = (double)bank_draw(m, 280, 560) / 1000; /* not a unit */
    const double rate =
        million * (double)(int64_t)(gpus * peak * part / (6 * params) / million * 1000) / 1000; /* not a unit */
    const double mfu = train_flops(params, rate) / (gpus * peak);
    bank_ask(q, UNITS_FRAC, mfu, 0.01, "a part");
    q->text = bank_printf(m,
                          "A dense model of %.0f billion parameters is trained with %.0f %s, of a dense peak of %s "
                          "each. Activations are not kept: the forward pass is computed once more for the backward "
                          "pass. All devices together get through %.3f million tokens a second. What is the model "
                          "flops utilization (MFU)?",
                          params / billion, gpus, hw.name, bank_peak_text(m, peak), rate / million);
    bank_slip(q, mfu / 3,
              "2 flops for each parameter and token are the forward pass: the backward pass is twice that.");
    bank_slip(q, mfu * 4 / 3,
              "This counts the forward pass that is computed once more: MFU counts what the model needs, "
              "whatever is recomputed; with it, it is called HFU.");
    bank_slip(q, mfu * 2 / 3,
              "4 flops for each parameter and token are the backward pass: the forward pass comes on top.");
    bank_slip(q, mfu / 2,
              "This divides by twice the peak: datasheets print a sparse one that dense products never see.");
    bank_slip(q, mfu * gpus, "This divides by the peak of one device.");
    bank_step(q, "MFU = 6 * parameters * tokens/s / (devices * peak), without what is computed once more");
    bank_step(
        q, bank_printf(m, "6 * %.0fe9 * %.3fe6 = %.4g flops/s", params / billion, rate / million, 6 * params * rate));
    bank_step(q, bank_printf(m, "%.0f * %s = %.4g flops/s", gpus, bank_peak_text(m, peak), gpus * peak));
    bank_step(q, bank_printf(m, "%.4g / %.4g = %.4g", 6 * params * rate, gpus * peak, mfu));
    return ERR_OK;
}

enum err_code bank_train_zero(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const struct {
        const char *recipe, *text;
    } RECIPES[] = {
        {"adamw",
         "Parameters and gradients are in bf16; AdamW keeps a copy of the parameters and two moments in fp32."},
        {"adamw-fp32-grad",
         "Parameters are in bf16 and gradients in fp32; AdamW keeps a copy of the parameters and two "
         "moments in fp32."},
        {"adamw-fp32", "Parameters, gradients and the two moments of AdamW are in fp32."},
    };
    static const char *const SPLIT[] = {"the optimizer's state is", "gradients and the optimizer's state are",
                                        "parameters, gradients and the optimizer's state are"};
    static const int64_t DEVICES[] = {8, 16, 32, 64, 128}, BILLIONS[] = {3, 7, 8, 13, 32, 34, 70}; /* not a unit */
    const double billion = 1e9;                                                                    /* not a unit */
    const size_t recipe = (size_t)bank_draw(m, 0, 2);
    const int64_t n = bank_pick(m, 5, DEVICES), stage = bank_draw(m, 1, 3);
    const double params = billion * (double)bank_pick(m, 7, BILLIONS);
    const struct train_recipe *r = train_recipe_find(RECIPES[recipe].recipe);
    if (!r) return err_set(e, ERR_RANGE, "no recipe %s", RECIPES[recipe].recipe);
    double held[4];
    for (int z = 0; z < 4; z++) {
        const struct train_memory x = train_memory(r, params, n, z);
        held[z] = x.param_bytes + x.grad_bytes + x.state_bytes;
    }
    const double gpus = (double)n, of = params / gpus;
    bank_ask(q, UNITS_BYTES, held[stage], 0.01, "bytes with their unit");
    q->text = bank_printf(m,
                          "A model of %.0f billion parameters is trained on %lld devices, each with a part of the "
                          "batch. %s On these devices %s split evenly (ZeRO, stage %lld)%s. "
                          "How many bytes of all of it does one device hold, activations left aside?",
                          params / billion, (long long)n, RECIPES[recipe].text, SPLIT[stage - 1], (long long)stage,
                          stage < 3 ? ", and each keeps the rest whole" : "");
    bank_slip(q, held[0], "This splits nothing.");
    bank_slip(q, held[3], "This splits all of it.");
    bank_slip(q, held[stage] * gpus, "These are the bytes of all devices.");
    bank_slip(q, stage > 1 ? held[stage - 1] : held[2],
              stage > 1 ? "This splits one thing too few: read again what is." : "This splits gradients as well.");
    bank_slip(q, held[stage] - 4 * of,
              recipe == 2 ? "This leaves out one of the two moments."
                          : "This leaves out one of the two moments, or the copy of the parameters.");
    if (recipe != 2)
        bank_slip(q, held[stage] - 8 * of, "This keeps one number of the optimizer: it has three of each parameter.");
    bank_step(q, bank_printf(m, "bytes of each: parameter %g, gradient %g, optimizer's state %g", r->param_bytes,
                             r->grad_bytes, r->state_bytes));
    bank_step(q, bank_printf(m, "whole: %g; split over %lld: %g",
                             (stage < 3 ? r->param_bytes : 0) + (stage < 2 ? r->grad_bytes : 0), (long long)n,
                             (stage < 3 ? 0 : r->param_bytes) + (stage < 2 ? 0 : r->grad_bytes) + r->state_bytes));
    bank_step(q,
              bank_printf(m, "%.0fe9 * (whole + split/%lld) = %s, of %s without splitting", params / billion,
                          (long long)n, bank_shown(m, UNITS_BYTES, held[stage]), bank_shown(m, UNITS_BYTES, held[0])));
    return ERR_OK;
}
