#include "calc/learn/bank_scale.h"

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
    const double mfu = 6 * params * rate / (gpus * peak);
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
