#include "calc/model/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bits per weight: arithmetic in calc/MODEL.md "Stored precision", with sources. */
static const struct dtype TABLE[] = {
    {.name = "fp32", .bits = 32, .block_out = 1, .compute = "tf32", .note = "IEEE single"},
    {.name = "bf16", .bits = 16, .block_out = 1, .compute = "bf16", .note = "bfloat16"},
    {.name = "fp16", .bits = 16, .block_out = 1, .compute = "fp16", .note = "IEEE half"},
    {.name = "fp8",
     .bits = 8,
     .block_out = 1,
     .compute = "fp8",
     .note = "e4m3 or e5m2, one scale a tensor (not counted)"},
    {.name = "fp8-block128",
     .bits = 8,
     .group_in = 128,
     .block_out = 128,
     .scale_bits = 32,
     .compute = "fp8",
     .note = "DeepSeek-V3: one fp32 scale per 128 x 128 tile"},
    {.name = "fp8-row",
     .bits = 8,
     .group_in = -1,
     .block_out = 1,
     .scale_bits = 32,
     .compute = "fp8",
     .note = "one fp32 scale per output channel"},
    {.name = "int8",
     .bits = 8,
     .group_in = -1,
     .block_out = 1,
     .scale_bits = 16,
     .compute = "int8",
     .note = "one 16-bit scale per output channel"},
    {.name = "mxfp8",
     .bits = 8,
     .group_in = 32,
     .block_out = 1,
     .scale_bits = 8,
     .compute = "fp8",
     .note = "OCP MX: 8-bit scale per 32"},
    {.name = "mxfp4",
     .bits = 4,
     .group_in = 32,
     .block_out = 1,
     .scale_bits = 8,
     .compute = "bf16",
     .note = "OCP MX: 8-bit scale per 32, weight-only"},
    {.name = "nvfp4",
     .bits = 4,
     .group_in = 16,
     .block_out = 1,
     .scale_bits = 8,
     .compute = "fp4",
     .note = "fp8 scale per 16 (fp32 per tensor not counted)"},
    {.name = "nf4",
     .bits = 4,
     .group_in = 64,
     .block_out = 1,
     .scale_bits = 32,
     .compute = "bf16",
     .note = "bitsandbytes, fp32 scale per 64, weight-only"},
    {.name = "nf4-double",
     .bits = 4,
     .group_in = 64,
     .block_out = 1,
     .scale_bits = 8.125,
     .compute = "bf16",
     .note = "bitsandbytes double quantisation: 8-bit scale per 64, fp32 per 256 of those"},
    {.name = "int4",
     .bits = 4,
     .group_in = 128,
     .block_out = 1,
     .scale_bits = 20,
     .compute = "bf16",
     .note = "AWQ/GPTQ, group 128, fp16 scale and 4-bit zero, weight-only"},
    {.name = "int3",
     .bits = 3,
     .group_in = 128,
     .block_out = 1,
     .scale_bits = 20,
     .compute = "bf16",
     .note = "AWQ/GPTQ, group 128, fp16 scale and 4-bit zero, weight-only"},
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

/* "int4-g64": base row with another group; false when it is not of that form. */
static bool compose(const char *name, struct dtype *out)
{
    static const char *const COMPOSED[] = {"int4-g16",  "int4-g32",   "int4-g64",  "int4-g128", "int4-g256",
                                           "int4-g512", "int4-g1024", "int3-g32",  "int3-g64",  "int3-g128",
                                           "int8-g32",  "int8-g64",   "int8-g128", "int8-g256"};
    for (size_t i = 0; i < sizeof COMPOSED / sizeof COMPOSED[0]; i++) {
        if (strcasecmp(name, COMPOSED[i]) != 0) continue;
        const size_t base = COMPOSED[i][3] == '4' ? TABLE_N - 2 : TABLE_N - 1;
        *out = TABLE[base];
        if (COMPOSED[i][3] == '8')
            *out = (struct dtype){.bits = 8, .block_out = 1, .scale_bits = 24, .compute = "bf16"};
        out->name = COMPOSED[i];
        out->group_in = strtol(COMPOSED[i] + 6, NULL, 10);
        out->note = "groups along a row, fp16 scale and zero point, weight-only";
        return true;
    }
    return false;
}

enum err_code dtype_find(const char *name, struct dtype *out, struct err *e)
{
    for (size_t i = 0; i < sizeof SYNONYMS / sizeof SYNONYMS[0]; i++)
        if (strcasecmp(name, SYNONYMS[i][0]) == 0) name = SYNONYMS[i][1];
    for (size_t i = 0; i < TABLE_N; i++) {
        if (strcasecmp(name, TABLE[i].name) != 0) continue;
        *out = TABLE[i];
        return ERR_OK;
    }
    if (compose(name, out)) return ERR_OK;
    return err_set(e, ERR_USAGE,
                   "unknown number format '%.40s': wanted fp32, bf16, fp16, fp8, fp8-block128, int8, int4-g128, mxfp4, "
                   "nvfp4, nf4, ... (ridge list dtypes)",
                   name);
}
