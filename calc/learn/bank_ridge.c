#include "calc/learn/bank_intensity.h"

#include <math.h>

#include "calc/sym/normal.h"

static void ask_intensity(struct exercise_question *q)
{
    q->kind = EXERCISE_NUMBER;
    q->unit = UNITS_FLOPS_PER_BYTE;
    q->tolerance_frac = 0.01;
    q->form = "a number of flops per byte";
}

enum err_code bank_ridge_h100(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct hw hw;
    char peak[UNITS_TEXT_MAX], bandwidth[UNITS_TEXT_MAX];
    TRY(hw_load(m->arena, "h100-sxm", &hw, e));
    hw_pin_course(&hw);
    const double reached = (double)bank_draw(m, 60, 95), streamed = (double)bank_draw(m, 75, 97);
    const double plain = hw_ridge(&hw, HW_BF16);
    units_format(peak, UNITS_FLOPS_PER_S, hw.peak_flops_per_s[HW_BF16]);
    units_format(bandwidth, UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s);
    ask_intensity(q);
    q->value = plain * reached / streamed;
    q->text =
        bank_printf(m,
                    "An H100 SXM has %s of dense bf16 and %s of memory bandwidth. Its best matrix product reaches "
                    "%.0f%% of the first, its best copy %.0f%% of the second. Above which arithmetic intensity is a "
                    "kernel compute-bound, going by what the device reaches?",
                    peak, bandwidth, reached, streamed);
    bank_slip(q, plain, "That is the ridge of the datasheet; both rates here are lower, and by different parts.");
    bank_slip(q, plain * streamed / reached,
              "The two parts are the wrong way round: the peak is divided by the bandwidth.");
    bank_slip(q, plain * reached / 100, "This lowers the peak but not the bandwidth.");
    bank_slip(q, plain * 100 / streamed, "This lowers the bandwidth but not the peak.");
    bank_slip(q, 2 * q->value, "This takes the rate with structured sparsity, which a dense product does not have.");
    bank_slip(q, 1 / q->value, "Upside down: bytes per flop.");
    bank_step(q, bank_printf(m, "ridge = peak / bandwidth = %s / %s = %.4g flops per byte by the datasheet", peak,
                             bandwidth, plain));
    bank_step(q, bank_printf(m, "reached: %.4g * %.2f / %.2f = %.4g flops per byte", plain, reached / 100,
                             streamed / 100, q->value));
    return ERR_OK;
}

/* A device, the format asked, and another that it has. */
static const struct {
    const char *key;
    enum hw_dtype dtype, other;
} RIDGES[] = {
    {"h100-sxm", HW_FP8, HW_BF16},  {"h200-sxm", HW_BF16, HW_FP8},  {"h200-sxm", HW_FP8, HW_BF16},
    {"a100-80g", HW_BF16, HW_INT8}, {"a100-80g", HW_INT8, HW_BF16}, {"b200-sxm", HW_BF16, HW_FP8},
    {"b200-sxm", HW_FP8, HW_BF16},  {"l40s", HW_BF16, HW_FP8},      {"l40s", HW_FP8, HW_BF16},
    {"mi300x", HW_BF16, HW_FP8},    {"mi300x", HW_FP8, HW_BF16},    {"l4", HW_BF16, HW_FP8},
    {"l4", HW_FP8, HW_BF16},        {"rtx-4090", HW_BF16, HW_FP8},
};

enum err_code bank_ridge_device(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const size_t at = (size_t)bank_draw(m, 0, (int64_t)(sizeof RIDGES / sizeof RIDGES[0]) - 1);
    const enum hw_dtype dtype = RIDGES[at].dtype, other = RIDGES[at].other;
    const bool swap = bank_draw(m, 0, 1) == 1;
    struct hw hw;
    double peak, wrong;
    char text[3][UNITS_TEXT_MAX];
    TRY(hw_load(m->arena, RIDGES[at].key, &hw, e));
    TRY(hw_peak(&hw, dtype, &peak, e));
    TRY(hw_peak(&hw, other, &wrong, e));
    units_format(text[swap], UNITS_FLOPS_PER_S, peak);
    units_format(text[!swap], UNITS_FLOPS_PER_S, wrong);
    units_format(text[2], UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s);
    ask_intensity(q);
    q->value = hw_ridge(&hw, dtype);
    q->text = bank_printf(m,
                          "%s: %s of dense %s, %s of dense %s, %s of memory bandwidth. What is its ridge point for "
                          "products in %s?",
                          hw.name, text[0], hw_dtype_name(swap ? other : dtype), text[1],
                          hw_dtype_name(swap ? dtype : other), text[2], hw_dtype_name(dtype));
    bank_slip(q, wrong / hw.bandwidth_bytes_per_s, "That is the ridge of the other format.");
    bank_slip(q, 2 * q->value, "This takes the rate with structured sparsity, which a dense product does not have.");
    bank_slip(q, 1 / q->value, "Upside down: bytes per flop.");
    bank_slip(q, 989.0 / 3.35, "That is the H100 in bf16; this is another device or format.");
    bank_slip(q, q->value / 2, "The flops of a multiply-add are counted in the peak already.");
    bank_step(q, "ridge = peak of the format / memory bandwidth");
    bank_step(q, bank_printf(m, "= %s / %s = %.4g flops per byte", text[swap], text[2], q->value));
    return ERR_OK;
}

enum err_code bank_ridge_cpu(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t CORES[] = {6, 8, 12, 16, 24, 32, 48, 64, 96}, CHANNELS[] = {2, 4, 8, 12};
    static const int64_t RATES[] = {3200, 4800, 5600, 6000, 6400};
    (void)e;
    const double cores = (double)bank_pick(m, 9, CORES), ghz_tenths = (double)bank_draw(m, 20, 44);
    const double bits = bank_draw(m, 0, 1) ? 512 : 256, lanes = bits / 32;
    const double channels = (double)bank_pick(m, 4, CHANNELS), rate = (double)bank_pick(m, 5, RATES);
    const double peak = cores * ghz_tenths * 1e8 * 2 * lanes * 2; /* two units, a multiply-add of 2 flops a lane */
    const double bandwidth = channels * rate * 1e6 * 8;           /* transfers of 64 bits */
    ask_intensity(q);
    q->value = peak / bandwidth;
    q->text =
        bank_printf(m,
                    "A CPU has %.0f cores at %.1f GHz; each core has two %.0f-bit vector units that do one fused "
                    "multiply-add of fp32 per lane and cycle. Its memory has %.0f channels of %.0f million transfers "
                    "of 64 bits a second. What is its ridge point for fp32, in flops per byte?",
                    cores, ghz_tenths / 10, bits, channels, rate);
    bank_slip(q, q->value / 2,
              "A fused multiply-add is 2 flops, and each core has two units: one of the two is missing.");
    bank_slip(q, q->value / 4, "A fused multiply-add is 2 flops, and each core has two units: both are missing.");
    bank_slip(q, q->value / lanes, "This counts one element at a time; a vector unit does a lane for every 32 bits.");
    bank_slip(q, q->value / cores, "This is the peak of one core; all of them share the memory.");
    bank_slip(q, q->value * channels, "This is the bandwidth of one channel.");
    bank_slip(q, q->value / 8, "The 64 bits of a transfer are 8 bytes.");
    bank_slip(q, q->value * 8, "A transfer moves 64 bits: 8 bytes, not one.");
    bank_step(q, bank_printf(m, "peak = %.0f cores * %.1fe9 cycles/s * 2 units * %.0f lanes * 2 flops = %.5g flops/s",
                             cores, ghz_tenths / 10, lanes, peak));
    bank_step(q, bank_printf(m, "bandwidth = %.0f channels * %.0fe6 transfers/s * 8 bytes = %.5g bytes/s", channels,
                             rate, bandwidth));
    bank_step(q, bank_printf(m, "ridge = peak / bandwidth = %.4g flops per byte", q->value));
    return ERR_OK;
}

/* ---- one product of B rows with a weight of D x F in bf16, on a device ---- */

struct meeting {
    struct hw hw;
    int64_t D, F;
    double ridge, peak;
    const struct sym *intensity; /* in B */
};

static enum err_code draw_meeting(struct exercise_maker *m, struct meeting *p, struct err *e)
{
    static const char *const DEVICES[] = {"h100-sxm", "h200-sxm", "a100-80g", "b200-sxm", "l40s", "mi300x", "l4"};
    static const int64_t SHAPES[][2] = {{2048, 8192},  {3072, 8192},  {3584, 18944}, {4096, 11008},
                                        {4096, 14336}, {5120, 13824}, {5120, 27648}, {8192, 28672}};
    const struct sym *intensity;
    TRY(bank_device(m, sizeof DEVICES / sizeof DEVICES[0], DEVICES, &p->hw, e));
    const int64_t *shape = SHAPES[bank_draw(m, 0, 7)];
    p->D = shape[0];
    p->F = shape[1];
    TRY(hw_peak(&p->hw, HW_BF16, &p->peak, e));
    p->ridge = hw_ridge(&p->hw, HW_BF16);
    TRY(quantity_resolve(&m->textbook, QUANTITY_DECODE, "intensity", "down_proj", &intensity, e));
    const struct sym_binding at[] = {{m->y.D, sym_int(m->c, p->D)}, {m->y.F, sym_int(m->c, p->F)}};
    p->intensity = sym_bind(m->c, intensity, at, 2);
    return sym_check(m->c, e);
}

static const char *meeting_text(struct exercise_maker *m, const struct meeting *p, const char *rows)
{
    char peak[UNITS_TEXT_MAX], bandwidth[UNITS_TEXT_MAX];
    return bank_printf(m,
                       "A matrix of %s x %lld is multiplied with a weight matrix of %lld x %lld, in bf16, on an %s (%s "
                       "of dense bf16, %s).",
                       rows, (long long)p->D, (long long)p->D, (long long)p->F, p->hw.name,
                       units_format(peak, UNITS_FLOPS_PER_S, p->peak),
                       units_format(bandwidth, UNITS_BYTES_PER_S, p->hw.bandwidth_bytes_per_s));
}

enum err_code bank_ridge_bound(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct meeting p;
    double at, off;
    int64_t rows;
    TRY(draw_meeting(m, &p, e));
    do { /* not near the ridge, where the answer hangs on the conventions */
        rows = INT64_C(1) << bank_draw(m, 0, 13);
        const struct sym_binding b = {m->y.B, sym_int(m->c, rows)};
        if (!sym_constant(sym_bind(m->c, p.intensity, &b, 1), &at)) return err_nomem(e);
        off = at / p.ridge;
    } while (off > 0.8 && off < 1.25);
    q->kind = EXERCISE_CHOICE;
    q->also[0] = BANK_ALSO_MEMORY;
    q->also[1] = BANK_ALSO_COMPUTE;
    q->form = "one word: memory or compute";
    q->choices[0] = "memory";
    q->choices[1] = "compute";
    q->choices_n = 2;
    q->right = at > p.ridge;
    q->text = bank_printf(m, "%s Is the product memory-bound or compute-bound?",
                          meeting_text(m, &p, bank_printf(m, "%lld", (long long)rows)));
    bank_slip(q, q->right ? 0 : 1,
              "Compare flops / bytes of the product, its result included, with peak / bandwidth of the device.");
    bank_step(q, bank_printf(m, "intensity = B*D*F/(B*D + B*F + D*F) = %.4g flops per byte", at));
    bank_step(q, bank_printf(m, "ridge = peak / bandwidth = %.4g flops per byte", p.ridge));
    bank_step(q, bank_printf(m, "the intensity is %s, so the product is %s-bound", q->right ? "above" : "below",
                             q->choices[q->right]));
    return ERR_OK;
}

enum err_code bank_ridge_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct meeting p;
    struct sym_solution x;
    double root;
    TRY(draw_meeting(m, &p, e));
    const struct sym *ridge =
        sym_div(m->c, sym_num(m->c, round(p.peak)), sym_num(m->c, round(p.hw.bandwidth_bytes_per_s)));
    TRY(sym_solve(m->c, p.intensity, ridge, m->y.B, &x, e));
    if (x.kind != SYM_SOLVED_ROOTS || !sym_constant(x.root[0], &root))
        return err_set(e, ERR_RANGE, "no batch reaches the ridge of %s", p.hw.key);
    const double D = (double)p.D, F = (double)p.F;
    q->kind = EXERCISE_NUMBER;
    q->unit = UNITS_COUNT;
    q->tolerance_frac = 0.01;
    q->form = "a number of rows";
    q->things = "row,token,sequence,seq";
    q->value = ceil(root);
    q->text = bank_printf(m,
                          "%s Operands are read once, the result is written once. What is the smallest B at which the "
                          "product is compute-bound? (Exactly, not in the limit of large widths.)",
                          meeting_text(m, &p, "B"));
    bank_slip(q, p.ridge,
              "That is where the limit of large widths, B, meets the ridge; X and the result move bytes too.");
    bank_slip(q, 1 / (1 / p.ridge - 1 / F), "This leaves out the bytes of the result."); /* B*F of B*D*F */
    bank_slip(q, 1 / (1 / p.ridge - 1 / D), "This leaves out the bytes of X.");
    const double sparse = 1 / (1 / (2 * p.ridge) - 1 / D - 1 / F), elements = 1 / (2 / p.ridge - 1 / D - 1 / F);
    if (sparse > 0) bank_slip(q, sparse, "This takes the sparse peak, or counts a multiply-add as one flop.");
    if (elements > 0) bank_slip(q, elements, "This divides by elements, not by bytes: an element has 2.");
    bank_step(q, "intensity = 2*B*D*F / (2*(B*D + B*F + D*F)), so 1/intensity = 1/B + 1/D + 1/F");
    bank_step(q, bank_printf(m, "ridge = peak / bandwidth = %.5g flops per byte", p.ridge));
    bank_step(q, bank_printf(m, "1/B = 1/%.5g - 1/%lld - 1/%lld, so B = %.5g", p.ridge, (long long)p.D, (long long)p.F,
                             root));
    bank_step(q, bank_printf(m, "the smallest whole B is %.0f", q->value));
    return ERR_OK;
}
