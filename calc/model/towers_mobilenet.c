/* towers_mobilenet -- MobileNet-V5, the encoder of images of Gemma 3n: its blocks are those of one published network,
 * not sizes of the file. Source: timm, mobilenetv5.py (mobilenetv5_300m_enc). */
#include <string.h>

#include "calc/model/towers_count.h"

/* `times` blocks of inverted residuals: a convolution a channel of `before` x before (0: none), a product `wider` times
 * wider, a convolution a channel of `within` x within (0: none), a product to `out` channels. `attends`: before each
 * such block one of attention with one key and value head of `dim` and `heads` query heads; `pooled`: keys and values
 * of half the resolution, by convolutions of 3 x 3. */
struct block {
    int times, before, within, wider, out;
    int heads, dim;
    bool pooled;
};

static const struct block BLOCKS[] = {
    {1, 3, 5, 6, 256, 0, 0, false},  {1, 5, 0, 4, 256, 0, 0, false},     {1, 3, 0, 4, 256, 0, 0, false},
    {1, 5, 0, 4, 256, 0, 0, false},  {1, 3, 0, 4, 256, 0, 0, false},     {1, 5, 5, 6, 640, 0, 0, false},
    {7, 5, 0, 4, 640, 0, 0, false},  {1, 0, 0, 1, 640, 0, 0, false},     {14, 0, 0, 2, 640, 12, 64, true},
    {1, 5, 5, 6, 1280, 0, 0, false}, {19, 0, 0, 2, 1280, 16, 96, false},
};

enum { STEM = 64, EDGES = 3, EDGE_CHANNELS = 128, FUSED = 640 + 1280, OUT = 2048 };

/* A convolution with its norm. */
static double normed(double per_output, int out) { return per_output * out + out; }

static double inverted(const struct block *b, int in)
{
    const int middle = in * b->wider;
    double n = normed(in, middle) + normed(middle, b->out);
    if (b->before) n += normed(b->before * b->before, in);
    if (b->within) n += normed(b->within * b->within, middle);
    return n + b->out; /* a scale of each channel */
}

static double attention(const struct block *b)
{
    const double c = b->out, q = (double)b->heads * b->dim;
    return 2 * c + 2 * c * q + 2 * c * b->dim + (b->pooled ? 2 * normed(9, b->out) : 0);
}

static double count_encoder(void)
{
    double n = normed(27, STEM) + STEM; /* 3 x 3 of three colours, with bias */
    int in = STEM;
    for (int i = 0; i < EDGES; i++) { /* convolutions of 3 x 3, four times wider, and back */
        n += normed(9 * in, 4 * in) + normed(4 * in, EDGE_CHANNELS);
        in = EDGE_CHANNELS;
    }
    for (size_t i = 0; i < sizeof BLOCKS / sizeof BLOCKS[0]; i++)
        for (int k = 0; k < BLOCKS[i].times; k++) {
            if (BLOCKS[i].heads) n += attention(&BLOCKS[i]);
            n += inverted(&BLOCKS[i], in);
            in = BLOCKS[i].out;
        }
    return n + normed(FUSED, 2 * FUSED) + normed(2 * FUSED, OUT) + OUT; /* the last two resolutions together */
}

enum err_code towers_count_mobilenet(struct count *c)
{
    struct json j;
    int64_t rows, tokens;
    const char *name = "mobilenetv5_300m_enc"; /* class default */
    if (json_get(&c->vision, "architecture", &j)) TRY(json_str(&j, &name, c->r->e));
    TRY(towers_vision_size(c, "hidden_size", OUT, &c->width));
    if (strcmp(name, "mobilenetv5_300m_enc") != 0 || c->width != OUT) c->missing = "architecture";
    TRY(towers_vision_size(c, "vocab_size", 128, &rows)); /* not a unit */
    TRY(towers_size(c, &c->root, (struct size_key){"vision_soft_tokens_per_image", 256}, SIDE_MAX, &tokens));
    c->tokens = (double)tokens;
    c->whole += count_encoder() + (double)rows * OUT + 2 * OUT + towers_linear(OUT, c->r->m->hidden, false);
    return ERR_OK;
}
