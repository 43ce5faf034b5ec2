#include "calc/fit/steps.h"

#include <stddef.h>
#include <string.h>

#define SERVED                                                                                                         \
    "github ai-dynamo/aiconfigurator commit 095f58a5, systems/silicon_sample.csv (Apache-2.0): time per output token " \
    "in closed loop, rows whose prefills take less than 15 % of it"

/* host_s: least mean of |ln(measured/predicted)|, models weighted alike, on a grid of 50 us. Bands: every model left
 * out of that once, its residuals then, models weighted alike. tests/test_steps.c does it again. */
static const struct steps STEPS[] = {
    {"vllm", STEP_DECODE, 850e-6, {134, 0.76, 1.04, 1.60}, SERVED},
    {"trtllm", STEP_DECODE, 350e-6, {107, 0.79, 0.90, 1.21}, SERVED},
    {"sglang", STEP_DECODE, 0, {22, 0.67, 0.96, 1.16}, SERVED},
    {"trtllm",
     STEP_PREFILL,
     0,
     {7, 1.07, 1.19, 1.28},
     "TensorRT-LLM 0.5.0, performance.md: first tokens without a queue"},
    {NULL, STEP_DECODE, 0, {0, 0, 0, 0}, NULL},
};

const struct steps *steps_find(const char *framework, enum step_phase phase)
{
    for (const struct steps *s = STEPS; s->framework; s++)
        if (s->phase == phase && strcmp(s->framework, framework) == 0) return s;
    return NULL;
}

void steps_widest(double *low, double *high)
{
    *low = *high = 1;
    for (const struct steps *s = STEPS; s->framework; s++) {
        *low = s->band.p10 < *low ? s->band.p10 : *low;
        *high = s->band.p90 > *high ? s->band.p90 : *high;
    }
}
