/* mamba2-step on a card, by kernels/state_tile.h: b is the key, c the query, dt x what is added. */
#include "kernels/state_tile.h"

enum { BATCH, HEADS, DIM, STATE_DIM, GROUPS, STATE_BYTES };

struct mamba_args {
    const void *x, *b, *c;
    const float *dt, *a, *bias, *d;
    void *state, *y;
    int heads, group, width, rows, parts, bf16; /* group: heads that share b and c */
};

KERN_FN void mamba_block(const struct mamba_args *a, float *vectors, int pieces, int narrow)
{
    const int part = (int)blockIdx.x % a->parts;
    const size_t one = blockIdx.x / (unsigned)a->parts, head = one % (size_t)a->heads;
    const size_t groups = (size_t)(a->heads / a->group);
    const size_t key = (one / (size_t)a->heads * groups + head / (size_t)a->group) * (size_t)a->width;
    const size_t first = one * (size_t)a->rows;
    const int room = pieces * STATE_PIECE;
    const float v = a->dt[one] + a->bias[head], dt = v > 20 ? v : log1pf(expf(v)); /* equal in fp32 */
    const float decay = expf(dt * a->a[head]);
    struct state_head h;
    for (int i = (int)threadIdx.x; i < room; i += STATE_THREADS) {
        const int there = i < a->width;
        vectors[i] = there ? state_number(a->b, a->bf16, key + (size_t)i) : 0;
        vectors[room + i] = there ? state_number(a->c, a->bf16, key + (size_t)i) : 0;
        vectors[2 * room + i] = there ? decay : 0;
    }
    __syncthreads();
    h.state = narrow ? (void *)((uint16_t *)a->state + first * (size_t)a->width)
                     : (void *)((float *)a->state + first * (size_t)a->width);
    h.value = a->bf16 ? (const void *)((const uint16_t *)a->x + first) : (const void *)((const float *)a->x + first);
    h.y = a->bf16 ? (void *)((uint16_t *)a->y + first) : (void *)((float *)a->y + first);
    h.rows = a->rows;
    h.width = a->width;
    h.from = part * STATE_PART;
    h.to = h.from + STATE_PART < a->rows ? h.from + STATE_PART : a->rows;
    h.factor = dt;
    h.again = a->d[head];
    h.delta = 0;
    state_block(&h, vectors, pieces, narrow, a->bf16);
}

STATE_KERNELS(mamba, struct mamba_args, mamba_block)

static const char *mamba_lacks(const struct kern_machine *m, const struct kern_shape *s)
{
    return state_lacks(m, (double)s->v[BATCH] * (double)s->v[HEADS], (double)s->v[DIM], (double)s->v[STATE_DIM]);
}

static void mamba_run(const struct kern_call *c)
{
    const struct kern_shape *const s = c->shape;
    struct mamba_args a;
    a.x = c->buffer[0];
    a.dt = (const float *)c->buffer[1];
    a.b = c->buffer[2];
    a.c = c->buffer[3];
    a.a = (const float *)c->buffer[4];
    a.bias = (const float *)c->buffer[5];
    a.d = (const float *)c->buffer[6];
    a.state = c->buffer[7];
    a.y = c->buffer[8];
    a.heads = (int)s->v[HEADS];
    a.group = (int)(s->v[HEADS] / s->v[GROUPS]);
    a.width = (int)s->v[STATE_DIM];
    a.rows = (int)s->v[DIM];
    a.parts = state_parts(a.rows);
    a.bf16 = s->dtype == KERN_BF16;
    const unsigned blocks = (unsigned)s->v[BATCH] * (unsigned)(a.heads * a.parts);
    const int narrow = s->v[STATE_BYTES] == 2;
    STATE_LAUNCH(mamba, blocks, a.width, narrow, c->stream, a);
}

static const struct kern_variant VARIANTS[] = {
    {"cuda", KERN_UNIT_FP32, KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16), mamba_lacks, NULL, NULL, mamba_run, 0, false,
     NULL},
};

/* From 168 MB of states on: layers of models of 2.7, 8 and 32 billion parameters. */
static const struct kern_point POINTS[] = {
    {{{64, 80, 64, 128, 1, 4}, KERN_BF16}, true},
    {{{64, 128, 64, 128, 8, 4}, KERN_BF16}, true},
    {{{256, 128, 64, 128, 1, 4}, KERN_BF16}, false},
    {{{64, 128, 64, 128, 8, 2}, KERN_BF16}, false},
};

const struct kern_cuda kern_cuda_mamba2_step = {&kern_mamba2_step, VARIANTS, 1, POINTS,
                                                sizeof POINTS / sizeof POINTS[0]};
