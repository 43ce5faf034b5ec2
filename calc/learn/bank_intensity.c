#include "calc/learn/bank_intensity.h"

static const char SET[] = "1 intensity";

static const struct bank_precision PRECISIONS[] = {
    {"fp8", "1 byte", 1}, {"bf16", "2 bytes", 2}, {"fp32", "4 bytes", 4}};

const struct bank_precision *bank_precision(size_t i) { return &PRECISIONS[i]; }

const struct bank_precision *bank_draw_precision(struct exercise_maker *m)
{
    return &PRECISIONS[bank_draw(m, 0, BANK_PRECISIONS_N - 1)];
}

const struct sym *bank_at_bytes(struct exercise_maker *m, const struct sym *bytes, int64_t per_element)
{
    return sym_mul(m->c, bytes, sym_rat(m->c, per_element, 2));
}

void bank_use_symbols(struct exercise_maker *m, struct exercise_question *q, size_t n, const struct sym *const *list)
{
    const char *all = "";
    for (size_t i = 0; i < n && q->symbols_n < sizeof q->symbols / sizeof q->symbols[0]; i++)
        q->symbols[q->symbols_n++] = list[i];
    for (size_t i = 0; i < q->symbols_n; i++)
        all = bank_printf(m, "%s%s%s", all, i ? ", " : "", sym_name(q->symbols[i]));
    q->kind = EXERCISE_FORMULA;
    q->unit = UNITS_FLOPS_PER_BYTE;
    q->form = bank_printf(m, "an expression in %s", all);
}

static const struct exercise ROWS[] = {
    {"matmul-intensity", SET, "arithmetic intensity of a matrix product", "ridge explain down_proj",
     bank_product_intensity},
    {"matmul-limit", SET, "what it tends to when two dimensions are large", "ridge explain down_proj",
     bank_product_limit},
    {"matvec-intensity", SET, "a matrix and one vector", "ridge explain down_proj --phase decode", bank_product_matvec},
    {"ridge-h100", SET, "the ridge of an H100, and of what it reaches", "ridge list hardware", bank_ridge_h100},
    {"ridge-device", SET, "the ridge of another device and format", "ridge list hardware", bank_ridge_device},
    {"ridge-cpu", SET, "the ridge of a CPU, from its parts", "ridge list hardware", bank_ridge_cpu},
    {"bound", SET, "memory-bound or compute-bound?", "ridge explain down_proj -g h100-sxm", bank_ridge_bound},
    {"batch-ridge", SET, "the batch at which a matrix product turns compute-bound", "ridge help solve",
     bank_ridge_batch},
    {"mlp-flops", SET, "flops of a gated MLP", "ridge explain mlp", bank_mlp_flops},
    {"mlp-intensity", SET, "arithmetic intensity of a gated MLP", "ridge explain mlp --course", bank_mlp_intensity},
    {"mlp-limit", SET, "what it tends to when the widths are large", "ridge explain mlp --course", bank_mlp_limit},
    {"attention-intensity", SET, "arithmetic intensity of attention", "ridge explain attention --course",
     bank_attention_intensity},
    {"attention-phase", SET, "attention while prefilling and while decoding", "ridge explain attention --course",
     bank_attention_phase},
    {"batching-gain", SET, "what a larger batch does for attention and for the MLP", "ridge explain attention --course",
     bank_attention_batching},
};

const struct exercise *bank_intensity(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
