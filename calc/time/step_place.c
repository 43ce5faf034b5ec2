/* step_place -- layouts of stages. */
#include "calc/time/step_place.h"

#include <math.h>

/* A link that is not there carries nothing. */
static double known(double rate) { return isnan(rate) ? 1 : rate; }

/* Room for as many columns as there can be stages. */
enum err_code step_place_open(struct arena *a, struct placed *p, struct err *e)
{
    const struct model *m = p->setup->model;
    const size_t cap = (size_t)m->layers + 1;
    double *room = arena_array(a, cap * (p->inputs_n + VALUES), sizeof *room);
    p->in = arena_array(a, p->inputs_n, sizeof *p->in);
    p->out = arena_array(a, VALUES, sizeof *p->out);
    p->stages = arena_array(a, cap, sizeof *p->stages);
    p->layers = arena_array(a, m->kinds_n + 1, sizeof *p->layers);
    if (!room || !p->in || !p->out || !p->stages || !p->layers) return err_nomem(e);
    for (size_t i = 0; i < p->inputs_n; i++) p->in[i] = room + i * cap;
    for (size_t i = 0; i < VALUES; i++) p->out[i] = room + (p->inputs_n + i) * cap;
    return ERR_OK;
}

/* The numbers of a layout in column i of a free step. */
static void place_numbers(struct placed *p, const struct layout *w, const struct timed_links *k, const double *number,
                          size_t i)
{
    for (size_t n = 0; n < LAYOUT_NUMBERS; n++) p->in[IN_LAYOUT + n][i] = number[n];
    p->in[IN_TP][i] = (double)w->tp;
    p->in[IN_R][i] = k->wire_factor;
    p->in[IN_LINK][i] = known(k->link_bytes_per_s);
    p->in[IN_SPREAD][i] = known(k->spread_bytes_per_s);
    p->in[IN_FABRIC][i] = known(k->fabric_bytes_per_s);
    p->in[IN_CONTEXT][i] = known(k->context_bytes_per_s);
    p->in[IN_CONTEXT_S][i] = k->context_s;
    p->in[IN_SUM_S][i] = k->sum_s;
    p->in[IN_GATHER_S][i] = k->gather_s;
    p->in[IN_SPREAD_S][i] = k->spread_s;
    p->in[IN_HOP_S][i] = k->hop_s;
}

/* Stage `at` as a column: one that is there already, or a new one. */
static void place_stage(struct placed *p, const struct layout *w, const struct timed_links *k, double *number,
                        int64_t at)
{
    const size_t kinds = p->setup->model->kinds_n, layers = p->inputs_n - kinds;
    (void)layout_stage(p->setup->model, w->pp, at, p->layers);
    layout_hops(w, layout_crosses(w, at), &number[LAYOUT_hop_near], &number[LAYOUT_hop_far]);
    const size_t i = p->n;
    p->in[IN_FIRST][i] = at == 0 ? 1 : 0;
    p->in[IN_LAST][i] = at == w->pp - 1 ? 1 : 0;
    p->in[IN_HOP_NEAR][i] = number[LAYOUT_hop_near];
    p->in[IN_HOP_FAR][i] = number[LAYOUT_hop_far];
    if (p->free) place_numbers(p, w, k, number, i);
    for (size_t n = 0; n < kinds; n++) p->in[layers + n][i] = (double)p->layers[n];
    for (size_t j = 0; j < p->n; j++) {
        bool same = true;
        for (size_t n = IN_FIRST; n < p->inputs_n && same; n++) {
            const double x = p->in[n][j], y = p->in[n][i];
            same = !(x < y) && !(x > y);
        }
        if (!same) continue;
        p->stages[j]++;
        return;
    }
    p->stages[p->n++] = 1;
}

/* But for microbatches, which are of a point. */
static bool same_layout(const struct layout *a, const struct layout *b)
{
    return a->tp == b->tp && a->dp == b->dp && a->dcp == b->dcp && a->ep == b->ep && a->pp == b->pp &&
           a->replicas == b->replicas && a->per_node == b->per_node && a->sp == b->sp &&
           a->context_direct == b->context_direct && a->dispatch == b->dispatch && !(a->skew < b->skew) &&
           !(a->skew > b->skew);
}

enum err_code step_place(struct placed *p, const struct layout *w, struct err *e)
{
    struct timed_links links;
    double number[LAYOUT_NUMBERS];
    if (p->valid && same_layout(w, &p->of)) {
        p->of.microbatches = w->microbatches;
        return ERR_OK;
    }
    if ((w->dcp > 1) != (layout_whole(&p->setup->layout).dcp > 1))
        return err_set(e, ERR_USAGE, "a step where ranks %s a context serves no other layout",
                       w->dcp > 1 ? "do not share" : "share");
    TRY(layout_check(p->setup->model, w, e));
    TRY(timed_links(p->setup->hw, w, &p->setup->latency, &links, e));
    p->n = 0;
    layout_numbers(w, p->setup->model, false, number);
    for (int64_t at = 0; at < w->pp; at++) place_stage(p, w, &links, number, at);
    p->of = *w;
    p->valid = true;
    return ERR_OK;
}

/* Where the values of a phase lie, and how many follow its time. */
enum { PHASE_VALUES = 6 };

double step_place_most(const struct placed *p, size_t value)
{
    double most = 0;
    for (size_t i = 0; i < p->n; i++) most = fmax(most, p->out[value][i]);
    return most;
}

/* Stages one after the other: `round` microbatches each, all of which have passed when `drained`. */
static void join_phase(const struct placed *p, size_t time, size_t sent, double round, bool drained, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) sum += (double)p->stages[i] * p->out[time][i];
    const double most = step_place_most(p, time);
    for (size_t v = time + 1; v < time + PHASE_VALUES; v++) out[v] = round * step_place_most(p, v);
    for (size_t v = sent; v < sent + 3; v++) out[v] = round * step_place_most(p, v);
    out[time] = drained ? sum + (round - 1) * most : fmax(sum, round * most);
}

void step_place_eval(struct placed *p, const double point[POINT_INPUTS], double *out)
{
    static const size_t MEMORY[] = {STEP_kv_bytes,         STEP_kv_allocated_bytes, STEP_state_bytes,
                                    STEP_activation_bytes, STEP_memory_bytes,       STEP_weight_bytes,
                                    STEP_adapter_bytes,    STEP_offloaded_bytes,    STEP_beside_bytes};
    const double held = ceil(point[IN_B] / (double)p->of.dp), m = fmin((double)p->of.microbatches, held);
    for (size_t i = 0; i < p->n; i++) {
        p->in[IN_B][i] = ceil(held / m);
        for (size_t v = IN_T; v < POINT_INPUTS; v++) p->in[v][i] = point[v];
        p->in[IN_HELD][i] = held;
    }
    sym_tape_eval(p->tape, p->n, (const double *const *)p->in, p->out);
    size_t fullest = 0;
    for (size_t i = 1; i < p->n; i++)
        if (p->out[STEP_memory_bytes][i] > p->out[STEP_memory_bytes][fullest]) fullest = i;
    for (size_t v = 0; v < sizeof MEMORY / sizeof *MEMORY; v++) out[MEMORY[v]] = p->out[MEMORY[v]][fullest];
    join_phase(p, STEP_prefill_s, STEP_prefill_wire_bytes, p->setup->prefill_together ? m : 1, true, out);
    join_phase(p, STEP_decode_step_s, STEP_decode_wire_bytes, m, false, out);
}
