/* mlp_body -- the gate between the products; compiled per instruction set, see kernels/lanes.h. */

/* gate = silu(gate) * up, n elements. */
LANES_TARGET static void LANES(gate)(void *gate, const void *up, bool bf16, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const size_t take = n - i < 16 ? n - i : 16;
        const V g = LANES(get)(gate, bf16, i, take), u = LANES(get)(up, bf16, i, take);
        const V below = LANES(add)(LANES(set)(1), LANES(exp)(LANES(sub)(LANES(set)(0), g)));
        LANES(put)(gate, bf16, i, LANES(mul)(LANES(div)(g, below), u), take);
    }
}
