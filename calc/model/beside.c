/* beside -- what lies in memory beside a language model: its encoders of images and of sound. MODEL.md "Towers". */
#include <math.h>

#include "calc/model/model.h"

struct model_beside model_beside_of(const struct model *m, const struct model_tower *t)
{
    const double element_bytes = m->weights[WEIGHT_OTHER].bits / 8;
    return (struct model_beside){(t->params - t->whole_params) * element_bytes, t->whole_params * element_bytes};
}

static void add_known(struct model_beside *to, const struct model_beside *b)
{
    if (isnan(b->split_bytes) || isnan(b->whole_bytes)) return;
    to->split_bytes += b->split_bytes;
    to->whole_bytes += b->whole_bytes;
}

struct model_beside model_beside(const struct model *m)
{
    struct model_beside all = {0, 0};
    const struct model_beside sees = model_beside_of(m, &m->tower), hears = model_beside_of(m, &m->audio);
    if (m->towerless) return all;
    add_known(&all, &sees);
    add_known(&all, &hears);
    return all;
}

double model_beside_bytes(const struct model_beside *b, double tp) { return b->split_bytes / tp + b->whole_bytes; }
