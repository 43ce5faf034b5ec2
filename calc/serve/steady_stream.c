#include "calc/serve/steady_stream.h"

#include <math.h>

/* splitmix64, as a number in (0, 1). */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + .5) * 0x1p-53;
}

void steady_stream_strata(uint64_t *state, double *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) { /* Fisher and Yates, from the inside */
        const int64_t j = (int64_t)(draw(state) * (double)(i + 1));
        u[i] = u[j];
        u[j] = (double)i;
    }
    for (int64_t i = 0; i < n; i++) u[i] = (u[i] + draw(state)) / (double)n;
}

void steady_stream_gaps(uint64_t *state, double cv2, double *gap, double *scratch, int64_t n)
{
    const double spread = sqrt(fmin(fmax(cv2, 0), 1));
    double sum = 0;
    steady_stream_strata(state, gap, n);
    for (int64_t i = 0; i < n; i++) gap[i] = 1 + spread * (-log(gap[i]) - 1);
    if (cv2 > 1) {
        const double p = .5 * (1 + sqrt((cv2 - 1) / (cv2 + 1)));
        steady_stream_strata(state, scratch, n);
        for (int64_t i = 0; i < n; i++) gap[i] /= 2 * (scratch[i] < p ? p : 1 - p);
    }
    for (int64_t i = 0; i < n; i++) sum += gap[i];
    for (int64_t i = 0; i < n; i++) gap[i] *= (double)n / sum;
}
