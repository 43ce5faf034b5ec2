#include "calc/fit/steps.h"

#include <stddef.h>
#include <string.h>

static const struct steps STEPS[] = {{.framework = NULL}};

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
