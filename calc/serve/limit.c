#include "calc/serve/limit.h"

#include <math.h>

static struct limit_point point_at(const struct limit_request *q, int64_t n)
{
    struct limit_point p = {.batch = q->of == LIMIT_BATCH ? n : q->other,
                            .context = q->of == LIMIT_BATCH ? q->other : n};
    const double B = (double)p.batch, S = (double)p.context;
    double *out[STEP_VALUES_N] = {0};
    out[STEP_memory_bytes] = &p.memory_bytes;
    out[STEP_kv_bytes] = &p.kv_bytes;
    out[STEP_state_bytes] = &p.state_bytes;
    out[STEP_decode_step_s] = &p.decode_step_s;
    out[STEP_prefill_s] = &p.prefill_s;
    const double T = step_prompt(q->step, S);
    step_eval(q->step, 1, &B, &T, &S, NULL, out);
    return p;
}

/* What the point breaks; NULL nothing. */
static const char *broken(const struct limit_request *q, const struct limit_point *p)
{
    if (!(p->memory_bytes <= q->capacity_bytes)) return "memory";
    if (!isnan(q->tpot_s) && !(p->decode_step_s <= q->tpot_s)) return "TPOT";
    if (!isnan(q->ttft_s) && !(p->prefill_s <= q->ttft_s)) return "TTFT";
    return NULL;
}

struct limit limit_find(const struct limit_request *q)
{
    struct limit r = {.value = 0};
    int64_t good = 0, bad = 1;
    for (;;) {
        const struct limit_point p = point_at(q, bad);
        if (broken(q, &p)) break;
        good = bad;
        if (good == q->most) break;
        bad = bad > q->most / 2 ? q->most : 2 * bad;
    }
    while (good < bad - 1) {
        const int64_t middle = good + (bad - good) / 2;
        const struct limit_point p = point_at(q, middle);
        *(broken(q, &p) ? &bad : &good) = middle;
    }
    r.value = good;
    if (good) r.at = point_at(q, good);
    if (good < q->most) {
        r.next = point_at(q, good + 1);
        r.because = broken(q, &r.next);
    }
    return r;
}
