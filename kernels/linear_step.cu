/* linear-step on a card: gated linear attention and the gated delta rule, by kernels/state_tile.h. */
#include "kernels/state_tile.h"

enum { BATCH, K_HEADS, K_DIM, V_HEADS, V_DIM, DELTA, STATE_BYTES, CHANNELS };

struct linear_args {
    const void *q, *k, *v;
    const float *decay, *beta;
    void *state, *y;
    int v_heads, group, width, rows, parts, delta, decays, bf16; /* group: value heads of a key head */
};

KERN_FN void linear_block(const struct linear_args *a, float *vectors, int pieces, int narrow)
{
    const int part = (int)blockIdx.x % a->parts;
    const size_t one = blockIdx.x / (unsigned)a->parts, head = one % (size_t)a->v_heads;
    const size_t k_heads = (size_t)(a->v_heads / a->group);
    const size_t key = (one / (size_t)a->v_heads * k_heads + head / (size_t)a->group) * (size_t)a->width;
    const size_t first = one * (size_t)a->rows;
    const int room = pieces * STATE_PIECE;
    struct state_head h;
    for (int i = (int)threadIdx.x; i < room; i += STATE_THREADS) {
        const int there = i < a->width;
        const size_t at = one * (size_t)a->decays + (size_t)(a->decays > 1 ? i : 0);
        vectors[i] = there ? state_number(a->k, a->bf16, key + (size_t)i) : 0;
        vectors[room + i] = there ? state_number(a->q, a->bf16, key + (size_t)i) : 0;
        vectors[2 * room + i] = there ? expf(a->decay[at]) : 0;
    }
    __syncthreads();
    h.state = narrow ? (void *)((uint16_t *)a->state + first * (size_t)a->width)
                     : (void *)((float *)a->state + first * (size_t)a->width);
    h.value = a->bf16 ? (const void *)((const uint16_t *)a->v + first) : (const void *)((const float *)a->v + first);
    h.y = a->bf16 ? (void *)((uint16_t *)a->y + first) : (void *)((float *)a->y + first);
    h.rows = a->rows;
    h.width = a->width;
    h.from = part * STATE_PART;
    h.to = h.from + STATE_PART < a->rows ? h.from + STATE_PART : a->rows;
    h.factor = a->delta ? a->beta[one] : 1;
    h.again = 0;
    h.delta = a->delta;
    state_block(&h, vectors, pieces, narrow, a->bf16);
}

STATE_KERNELS(linear, struct linear_args, linear_block)

static const char *linear_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    return state_lacks(m, (double)s->v[BATCH] * (double)s->v[V_HEADS], (double)s->v[V_DIM], (double)s->v[K_DIM]);
}

static void linear_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    struct linear_args a;
    a.q = c->buffer[0];
    a.k = c->buffer[1];
    a.v = c->buffer[2];
    a.decay = (const float *)c->buffer[3];
    a.beta = (const float *)c->buffer[4];
    a.state = c->buffer[5];
    a.y = c->buffer[6];
    a.v_heads = (int)s->v[V_HEADS];
    a.group = (int)(s->v[V_HEADS] / s->v[K_HEADS]);
    a.width = (int)s->v[K_DIM];
    a.rows = (int)s->v[V_DIM];
    a.parts = state_parts(a.rows);
    a.delta = (int)s->v[DELTA];
    a.decays = s->v[CHANNELS] ? a.width : 1;
    a.bf16 = s->dtype == KERN_BF16;
    const unsigned blocks = (unsigned)s->v[BATCH] * (unsigned)(a.v_heads * a.parts);
    const int narrow = s->v[STATE_BYTES] == 2;
    STATE_LAUNCH(linear, blocks, a.width, narrow, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16), linear_lacks, NULL, NULL, linear_run, 0, false,
     NULL},
};

/* From 134 MB of states on: layers of hybrid models, by the delta rule and by one decay a head; channels decaying. */
static const struct kern_point POINTS[] = {
    {{{64, 16, 128, 32, 128, 1, 4, 0}, KERN_BF16}, true},
    {{{64, 64, 128, 64, 128, 0, 4, 0}, KERN_BF16}, true},
    {{{256, 32, 128, 32, 128, 1, 4, 1}, KERN_BF16}, false},
    {{{64, 16, 128, 32, 128, 1, 2, 0}, KERN_BF16}, false},
    {{{64, 4, 256, 4, 512, 0, 4, 1}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_linear_step = {&kern_linear_step, VARIANTS, 1, POINTS,
                                                sizeof POINTS / sizeof POINTS[0]};
