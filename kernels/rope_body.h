/* rope_body -- angles of a token and a row turned by them; compiled per instruction set, see kernels/lanes.h. */

#if !LANES_PAIRS /* which has nothing that this needs */
/* Neighbours in each other's place. */
LANES_OP V LANES(swap)(V a)
{
#if LANES_SET == LANES_AVX512
    return (V){_mm512_permute_ps(a.v, 0xb1)};
#elif LANES_SET == LANES_AVX2
    return (V){_mm256_permute_ps(a.a, 0xb1), _mm256_permute_ps(a.b, 0xb1)};
#elif LANES_SET == LANES_NEON
    return (V){vrev64q_f32(a.a), vrev64q_f32(a.b), vrev64q_f32(a.c), vrev64q_f32(a.d)};
#else
    V r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a.v[i ^ 1];
    return r;
#endif
}

/* cos(2 pi t) of |t| <= 1/2: the sine of 2 pi y, y = 1/4 - |t|, by its Taylor series to y^11, whose next term is 6e-8.
 */
LANES_OP V LANES(cosine)(V t)
{
    const V y = LANES(sub)(LANES(set)(0.25F), LANES(max)(t, LANES(sub)(LANES(set)(0), t))), z = LANES(mul)(y, y);
    V p = LANES(set)(SINE[5]);
    KERN_UNROLL
    for (int i = 4; i >= 0; i--) p = LANES(fma)(p, z, LANES(set)(SINE[i]));
    return LANES(mul)(p, y);
}

/* All heads of a token: rows of `dim` elements at x, of which the first 2 * pairs turn. */
LANES_OP void LANES(heads)(void *x, bool bf16, const struct turn *turn, size_t first, size_t heads, size_t dim,
                           size_t pairs)
{
    for (size_t h = 0; h < heads; h++) {
        const size_t at = first + h * dim;
        for (size_t i = 0; turn->interleaved && i < 2 * pairs; i += 16) {
            const size_t n = 2 * pairs - i < 16 ? 2 * pairs - i : 16;
            const V v = LANES(get)(x, bf16, at + i, n), w = LANES(swap)(v);
            const V a = LANES(mul)(w, LANES(load)(turn->sine + i));
            LANES(put)(x, bf16, at + i, LANES(fma)(v, LANES(load)(turn->cosine + i), a), n);
        }
        for (size_t i = 0; !turn->interleaved && i < pairs; i += 16) {
            const size_t n = pairs - i < 16 ? pairs - i : 16;
            const V v = LANES(get)(x, bf16, at + i, n), w = LANES(get)(x, bf16, at + pairs + i, n);
            const V c = LANES(load)(turn->cosine + i), s = LANES(load)(turn->sine + i);
            LANES(put)(x, bf16, at + i, LANES(sub)(LANES(mul)(v, c), LANES(mul)(w, s)), n);
            LANES(put)(x, bf16, at + pairs + i, LANES(fma)(w, c, LANES(mul)(v, s)), n);
        }
    }
}

LANES_TARGET static void LANES(rotate)(void *x, bool bf16, const struct turn *turn, size_t first, size_t heads,
                                       size_t dim, size_t pairs)
{
    if (bf16)
        LANES(heads)(x, true, turn, first, heads, dim, pairs);
    else
        LANES(heads)(x, false, turn, first, heads, dim, pairs);
}

/* Cosines and sines of a token; of neighbours each stands twice, the first sine negative. */
LANES_TARGET static void LANES(angles)(struct turn *turn, const uint64_t *per_token, uint64_t position, size_t pairs)
{
    float at[2][PAIRS_MAX], of[2][PAIRS_MAX];
    for (size_t i = 0; i < pairs; i++) {
        const uint32_t turns = (uint32_t)(position * per_token[i] >> 32); /* whole turns fall out */
        at[0][i] = (float)(int32_t)turns * 0x1p-32F;
        at[1][i] = (float)(int32_t)(turns - (1u << 30)) * 0x1p-32F; /* the sine is the cosine a quarter before */
    }
    for (size_t i = pairs; i % 16; i++) at[0][i] = at[1][i] = 0;
    for (size_t i = 0; i < pairs; i += 16)
        for (size_t j = 0; j < 2; j++) LANES(store)(of[j] + i, LANES(cosine)(LANES(load)(at[j] + i)));
    for (size_t i = 0; i < pairs; i++) {
        const size_t to = turn->interleaved ? 2 * i : i;
        turn->cosine[to] = of[0][i];
        turn->sine[to] = turn->interleaved ? -of[1][i] : of[1][i];
        if (turn->interleaved) turn->cosine[to + 1] = of[0][i], turn->sine[to + 1] = of[1][i];
    }
}

LANES_TARGET static void LANES(run)(const struct kern_call *c)
{
    const struct kern_shape *s = c->shape;
    const size_t dim = at(s, DIM), pairs = at(s, ROTARY) / 2;
    struct turn turn = {.interleaved = s->v[INTERLEAVED] != 0};
    for (size_t t = 0; t < at(s, TOKENS); t++) {
        LANES(angles)(&turn, c->buffer[TURNS], (uint64_t)((const int32_t *)c->buffer[POSITIONS])[t], pairs);
        for (size_t b = Q; b <= K; b++) {
            const size_t heads = at(s, b == Q ? HEADS : KV_HEADS);
            LANES(rotate)(c->buffer[b], in_bf16(s), &turn, t * heads * dim, heads, dim, pairs);
        }
    }
}
#endif
