#include "calc/model/dtype.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MX "OCP Microscaling Formats v1.0"
#define QLORA "bitsandbytes; arXiv 2305.14314"
#define GGML "llama.cpp ggml-common.h"
#define PACKED "GPTQ arXiv 2210.17323, AWQ arXiv 2306.00978"
#define CACHED "LMDeploy, vLLM KV caches"

#define PLAIN(n, b, unit, text)                                                                                        \
    {                                                                                                                  \
        .name = n, .bits = b, .block_out = 1, .compute = unit, .note = text                                            \
    }
#define GROUPED(n, b, group, scale, unit, text, from)                                                                  \
    {                                                                                                                  \
        .name = n, .bits = b, .group_in = group, .block_out = 1, .scale_bits = scale, .compute = unit, .note = text,   \
        .source = from                                                                                                 \
    }
/* A block of GGUF: what is no weight of it counts as scales. */
#define BLOCK(n, b, elems, bytes)                                                                                      \
    GROUPED(n, b, elems, 8.0 * (bytes) - (b) * (elems), "bf16", #bytes " bytes a block of " #elems ", weight-only",    \
            GGML)

/* The same of 256 elements, more than a head has: never of a cache. */
#define SUPER_BLOCK(n, b, bytes)                                                                                       \
    {                                                                                                                  \
        .name = n, .bits = b, .group_in = 256, .block_out = 1, .scale_bits = 8.0 * (bytes) - (b)*256,                  \
        .weights_only = true, .compute = "bf16", .note = #bytes " bytes a block of 256, weight-only", .source = GGML   \
    }

/* Bits per weight: arithmetic in calc/MODEL.md "Stored precision". */
static const struct dtype TABLE[] = {
    PLAIN("fp32", 32, "tf32", "IEEE single"),
    PLAIN("bf16", 16, "bf16", "bfloat16"),
    PLAIN("fp16", 16, "fp16", "IEEE half"),
    PLAIN("fp8", 8, "fp8", "e4m3 or e5m2, one scale a tensor (counted where a file has it)"),
    {.name = "fp8-block128",
     .bits = 8,
     .group_in = 128,
     .block_out = 128,
     .scale_bits = 32,
     .weights_only = true,
     .compute = "fp8",
     .note = "one fp32 scale per 128 x 128 tile",
     .source = "DeepSeek-V3, arXiv 2412.19437"},
    GROUPED("fp8-row", 8, GROUP_ROW, 32, "fp8", "one fp32 scale per output channel", "fbgemm"),
    GROUPED("fp8-head", 8, GROUP_HEAD, 32, "fp8", "cache: one fp32 scale per token and head", CACHED),
    GROUPED("fp8-ds-mla", 8, GROUP_LATENT, 32, "fp8",
            "cache of latents of which keys are chosen: scales along the latent, the rope part in 16 bits",
            "vLLM fp8_ds_mla, FlashMLA"),
    GROUPED("int8", 8, GROUP_ROW, 16, "int8", "one 16-bit scale per output channel", "compressed-tensors"),
    {.name = "llm-int8",
     .bits = 8,
     .group_in = GROUP_ROW,
     .block_out = 1,
     .scale_bits = 32,
     .matrix_bits = 8,
     .outlier_frac = 0.001,
     .weights_only = true,
     .compute = "int8",
     .note = "fp32 scale per output channel; a share of columns also in 16 bits: llm-int8:SHARE, default 0.001",
     .source = "bitsandbytes; arXiv 2208.07339"},
    GROUPED("int8-head", 8, GROUP_HEAD, 32, "int8", "cache: 32 bits of scale and zero per token and head", CACHED),
    GROUPED("int4-head", 4, GROUP_HEAD, 32, "bf16", "cache: 32 bits of scale and zero per token and head", CACHED),
    GROUPED("mxfp8", 8, 32, 8, "fp8", "8-bit scale per 32", MX),
    GROUPED("mxfp4", 4, 32, 8, "bf16", "8-bit scale per 32, weight-only", MX),
    {.name = "nvfp4",
     .bits = 4,
     .group_in = 16,
     .block_out = 1,
     .scale_bits = 8,
     .matrix_bits = 32,
     .compute = "fp4",
     .note = "fp8 scale per 16, fp32 per matrix",
     .source = "NVIDIA ModelOpt"},
    {.name = "nf4",
     .bits = 4,
     .group_in = 64,
     .block_out = 1,
     .scale_bits = 32,
     .flat = true,
     .matrix_bits = 16 * 32,
     .weights_only = true,
     .compute = "bf16",
     .note = "fp32 scale per 64, a map of 16 values per matrix, weight-only",
     .source = QLORA},
    {.name = "nf4-double",
     .bits = 4,
     .group_in = 64,
     .block_out = 1,
     .scale_bits = 8,
     .flat = true,
     .super_groups = 256,
     .super_bits = 32,
     .matrix_bits = 16 * 32 + 256 * 32,
     .weights_only = true,
     .compute = "bf16",
     .note = "8-bit scale per 64, fp32 per 256 of those, maps of 16 and 256 values per matrix, weight-only",
     .source = QLORA},
    {.name = "ternary",
     .bits = 2,
     .block_out = 1,
     .matrix_bits = 16,
     .weights_only = true,
     .compute = "bf16",
     .note = "-1, 0 or 1, four to a byte, one 16-bit scale per matrix, weight-only",
     .source = "BitNet b1.58, arXiv 2402.17764; transformers integrations/bitnet.py"},
    GROUPED("int4", 4, 128, 20, "bf16", "groups of 128, fp16 scale and 4-bit zero, weight-only", PACKED),
    GROUPED("int3", 3, 128, 19, "bf16", "groups of 128, fp16 scale and 3-bit zero, weight-only", PACKED),
    {.name = "gptq4",
     .bits = 4,
     .group_in = 128,
     .block_out = 1,
     .scale_bits = 20,
     .column_bits = 32,
     .weights_only = true,
     .compute = "bf16",
     .note = "as int4, and the group of every column as a 32-bit number",
     .source = "GPTQ arXiv 2210.17323, AutoGPTQ files"},
    GROUPED("mlx4", 4, 64, 32, "bf16", "groups of 64, 16-bit scale and 16-bit bias, weight-only", "MLX"),
    BLOCK("q4_0", 4, 32, 18),
    BLOCK("q4_1", 4, 32, 20),
    BLOCK("q5_0", 5, 32, 22),
    BLOCK("q5_1", 5, 32, 24),
    BLOCK("q8_0", 8, 32, 34),
    SUPER_BLOCK("q2_k", 2, 84),
    SUPER_BLOCK("q3_k", 3, 110),
    SUPER_BLOCK("q4_k", 4, 144),
    SUPER_BLOCK("q5_k", 5, 176),
    SUPER_BLOCK("q6_k", 6, 210),
    SUPER_BLOCK("iq2_xxs", 2, 66),
    SUPER_BLOCK("iq3_xxs", 3, 98),
    SUPER_BLOCK("iq4_xs", 4, 136),
    BLOCK("iq4_nl", 4, 32, 18),
};

enum { TABLE_N = sizeof TABLE / sizeof TABLE[0] };

const struct dtype *dtype_table(size_t *n)
{
    *n = TABLE_N;
    return TABLE;
}

/* Names that stand for another row. */
static const char *const SYNONYMS[][2] = {{"float32", "fp32"}, {"float", "fp32"},   {"bfloat16", "bf16"},
                                          {"float16", "fp16"}, {"half", "fp16"},    {"e4m3", "fp8"},
                                          {"float8", "fp8"},   {"fp8_e4m3", "fp8"}, {"fp8_e5m2", "fp8"},
                                          {"awq", "int4"},     {"gptq", "int4"}};

static bool find_row(const char *name, struct dtype *out)
{
    for (size_t i = 0; i < TABLE_N; i++) {
        if (strcasecmp(name, TABLE[i].name) != 0) continue;
        *out = TABLE[i];
        return true;
    }
    return false;
}

/* Digits alone, of lo to hi. */
static bool whole(const char *s, int64_t lo, int64_t hi, const char **end, int64_t *out)
{
    size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 6 || s[0] == '0') return false;
    *out = strtol(s, NULL, 10);
    *end = s + n;
    return *out >= lo && *out <= hi;
}

/* "int4-g64": groups along a row, each with a scale and a zero point, as the row "int4" of the table and its like. */
static bool compose_groups(const char *name, struct dtype *out)
{
    static const struct {
        const char *prefix, *row;
        bool wide_zero; /* of 16 bits whatever the width of an element, which it else has */
    } OF[] = {{"int", "int4", false}, {"gptq", "gptq4", false}, {"mlx", "mlx4", true}};
    int64_t bits, group;
    const char *end;
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        const size_t len = strlen(OF[i].prefix);
        if (strncasecmp(name, OF[i].prefix, len) != 0 || !whole(name + len, 2, 8, &end, &bits)) continue;
        const bool row = strcasecmp(end, "-row") == 0;
        if (row)
            group = GROUP_ROW;
        else if (strncasecmp(end, "-g", 2) != 0 || !whole(end + 2, 8, 4096, &end, &group) || *end)
            return false;
        if (!find_row(OF[i].row, out)) return false;
        out->name = name;
        out->bits = (double)bits;
        out->group_in = group;
        out->scale_bits = 16 + (OF[i].wide_zero ? 16 : (double)bits);
        out->note = "groups along a row, 16-bit scale and zero point, weight-only";
        return true;
    }
    return false;
}

/* "llm-int8:0.005". */
static bool compose_outliers(const char *name, struct dtype *out)
{
    static const char BASE[] = "llm-int8:";
    char *end;
    if (strncasecmp(name, BASE, sizeof BASE - 1) != 0) return false;
    const char *share = name + sizeof BASE - 1;
    if (strspn(share, "0123456789.") != strlen(share) || *share == '\0') return false;
    errno = 0;
    const double v = strtod(share, &end);
    if (*end || errno || !(v >= 0 && v < 1)) return false;
    if (!find_row("llm-int8", out)) return false;
    out->name = name;
    out->outlier_frac = v;
    return true;
}

enum err_code dtype_find(const char *name, struct dtype *out, struct err *e)
{
    const char *given = name;
    for (size_t i = 0; i < sizeof SYNONYMS / sizeof SYNONYMS[0]; i++)
        if (strcasecmp(name, SYNONYMS[i][0]) == 0) name = SYNONYMS[i][1];
    if (find_row(name, out) || compose_groups(name, out) || compose_outliers(name, out)) return ERR_OK;
    return err_set(e, ERR_USAGE,
                   "unknown number format '%.40s': wanted fp32, bf16, fp16, fp8, fp8-block128, int8, int4-g128, mxfp4, "
                   "nvfp4, nf4, ... (ridge list dtypes)",
                   given);
}

double dtype_bits_per_weight(const struct dtype *d, int64_t in)
{
    if (d->group_in == 0) return d->bits;
    const double group = d->group_in > 0 ? (double)(d->group_in * d->block_out) : (double)in;
    const double above = d->super_groups > 0 ? d->super_bits / (double)d->super_groups : 0;
    return d->bits + (d->scale_bits + above) / group;
}

static bool equal(double a, double b) { return !(a < b) && !(a > b); }

bool dtype_same(const struct dtype *a, const struct dtype *b)
{
    return equal(a->bits, b->bits) && a->group_in == b->group_in && a->block_out == b->block_out &&
           equal(a->scale_bits, b->scale_bits) && a->flat == b->flat && a->super_groups == b->super_groups &&
           equal(a->super_bits, b->super_bits) && equal(a->column_bits, b->column_bits) &&
           equal(a->matrix_bits, b->matrix_bits) && equal(a->outlier_frac, b->outlier_frac) &&
           strcmp(a->compute, b->compute) == 0;
}
