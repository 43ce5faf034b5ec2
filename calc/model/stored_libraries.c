/* stored_libraries -- AutoRound, torchao, HQQ, Quark. Source: vLLM auto_round.py; transformers quantization_config.py,
 * quantizer_torchao.py, quantizer_hqq.py; torchao quant_api.py; hqq quantize.py; Quark's QConfig (amd/Quark). */
#include <string.h>

#include "calc/model/stored_methods.h"

enum { GROUP_MAX = 1 << 20 };

/* Integers in groups along rows: bits of an element, of a group's scale and zero point. */
static enum err_code integers(struct stored *s, double bits, int64_t group, double scale_bits, struct dtype **out)
{
    struct dtype *d = arena_alloc(s->arena, sizeof *d);
    if (!d) return err_nomem(s->e);
    *d = (struct dtype){.bits = bits,
                        .group_in = group == GROUP_ROW ? GROUP_ROW : group,
                        .block_out = 1,
                        .scale_bits = scale_bits,
                        .weights_only = true,
                        .compute = "bf16"};
    d->name = group == GROUP_ROW ? arena_printf(s->arena, "int%d-row", (int)bits)
                                 : arena_printf(s->arena, "int%d-g%lld", (int)bits, (long long)group);
    *out = d;
    return d->name ? ERR_OK : err_nomem(s->e);
}

static enum err_code read_word(struct stored *s, const struct json *q, const char *key, const char **out)
{
    struct json j;
    return json_get(q, key, &j) ? json_str(&j, out, s->e) : ERR_OK;
}

/* Equal formats of a plan are one. */
static const struct dtype *one_of_plan(const struct stored *s, const struct dtype *d)
{
    if (d && s->plan.linear && dtype_same(s->plan.linear, d)) return s->plan.linear;
    for (size_t i = 0; d && i < s->plan.rules_n; i++)
        if (s->plan.rule[i].format && dtype_same(s->plan.rule[i].format, d)) return s->plan.rule[i].format;
    return d;
}

/* ---- AutoRound ---- */

/* Packed as by GPTQ or AWQ, without the group of each column: a 16-bit scale and a zero point of as many bits. */
static enum err_code round_format(struct stored *s, int64_t bits, int64_t group, struct dtype **out)
{
    *out = NULL;
    if ((bits != 2 && bits != 3 && bits != 4 && bits != 8) || (group != GROUP_ROW && group < 1))
        return stored_unknown(s, "stored by AutoRound in bits or groups that its kernels do not have", "");
    return integers(s, (double)bits, group, 16 + (double)bits, out);
}

/* Modules that have bits of their own, by name or by a regular expression; 16 are floats. */
static enum err_code round_extra(struct stored *s, const struct json *list, int64_t bits, int64_t group)
{
    const char *name;
    struct json item, j;
    if (!json_is_object(list)) return json_want(list, "an object of modules", s->e);
    for (size_t i = 0; json_at(list, i, &name, &item); i++) {
        struct dtype *d = NULL;
        int64_t own = bits, side = group;
        if (!json_is_object(&item)) return json_want(&item, "an object", s->e);
        if (json_get(&item, "bits", &j)) TRY(json_int(&j, 1, 32, &own, s->e));
        if (json_get(&item, "group_size", &j)) TRY(json_int(&j, -1, GROUP_MAX, &side, s->e));
        if (own < 16) {
            TRY(round_format(s, own, side, &d));
            if (!d) return ERR_OK;
        }
        TRY(format_plan_add(s->arena, &s->plan, name, strchr(name, '*') != NULL, one_of_plan(s, d), s->e));
    }
    return ERR_OK;
}

enum err_code stored_auto_round(struct stored *s, const struct json *q)
{
    int64_t bits = 4, group = 128;
    const char *packing = "auto_round:auto_gptq", *type = "int", *blocks = "layers";
    struct json j;
    struct dtype *d;
    if (json_get(q, "bits", &j)) TRY(json_int(&j, 1, 16, &bits, s->e));
    if (json_get(q, "group_size", &j)) TRY(json_int(&j, -1, GROUP_MAX, &group, s->e));
    TRY(read_word(s, q, "packing_format", &packing));
    TRY(read_word(s, q, "data_type", &type));
    if (json_get(q, "block_name_to_quantize", &j) && json_is_string(&j)) TRY(json_str(&j, &blocks, s->e));
    if (strcmp(packing, "auto_round:auto_gptq") != 0 && strcmp(packing, "auto_round:auto_awq") != 0 &&
        strcmp(packing, "auto_round:gptqmodel") != 0)
        return stored_unknown(s, "stored by AutoRound in a layout \"%s\" that is not read", packing);
    if (strcmp(type, "int") != 0) return stored_unknown(s, "stored by AutoRound as \"%s\", which is not read", type);
    if (!strstr(blocks, "layers")) return stored_unknown(s, "stored by AutoRound in blocks \"%s\" alone", blocks);
    TRY(round_format(s, bits, group, &d));
    if (!d) return ERR_OK;
    s->plan.linear = d;
    if (json_get(q, "extra_config", &j)) TRY(round_extra(s, &j, bits, group));
    return s->m->weights_unknown ? ERR_OK : stored_keep(s, q);
}

/* ---- torchao ---- */

/* The first of a configuration's granularities is by rows; a tensor else. */
static bool by_rows(const struct json *data)
{
    struct json g, first, type;
    const char *word = "";
    if (!json_get(data, "granularity", &g)) return false;
    if (json_is_array(&g) && json_at(&g, 0, NULL, &first)) g = first;
    if (json_is_object(&g) && json_get(&g, "_type", &type)) (void)json_str(&type, &word, NULL);
    return strcmp(word, "PerRow") == 0;
}

/* name: of a function or of a configuration's class; data: its arguments. Groups of four bits have a 16-bit scale and a
 * 16-bit zero. out NULL: not read. */
static enum err_code ao_format(struct stored *s, const char *name, const struct json *data, struct dtype **out)
{
    static const struct {
        const char *function, *class;
        int bits;
        const char *compute; /* NULL that of the weights' floats */
    } KINDS[] = {
        {"int4_weight_only", "Int4WeightOnlyConfig", 4, NULL},
        {"int8_weight_only", "Int8WeightOnlyConfig", 8, NULL},
        {"int8_dynamic_activation_int8_weight", "Int8DynamicActivationInt8WeightConfig", 8, "int8"},
        {"float8_weight_only", "Float8WeightOnlyConfig", 0, "bf16"},
        {"float8_dynamic_activation_float8_weight", "Float8DynamicActivationFloat8WeightConfig", 0, NULL},
    };
    int64_t group = 128;
    struct json j;
    *out = NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strcmp(name, KINDS[i].function) != 0 && strcmp(name, KINDS[i].class) != 0) continue;
        if (KINDS[i].bits == 0) {
            const bool rows = by_rows(data);
            TRY(stored_named(s, rows ? "fp8-row" : "fp8", out));
            if (!rows) (*out)->matrix_bits = 32;
        } else if (KINDS[i].bits == 8) {
            TRY(integers(s, 8, GROUP_ROW, 16, out));
        } else {
            if (json_get(data, "group_size", &j)) TRY(json_int(&j, 1, GROUP_MAX, &group, s->e));
            TRY(integers(s, 4, group, 32, out));
        }
        if (KINDS[i].compute) (*out)->compute = KINDS[i].compute;
        return ERR_OK;
    }
    return ERR_OK;
}

enum err_code stored_torchao(struct stored *s, const struct json *q)
{
    struct json type, config, data = {.file = NULL};
    const char *name = "";
    struct dtype *d;
    bool ends = false;
    if (!json_get(q, "quant_type", &type)) return stored_unknown(s, "stored by torchao without a quant_type", "");
    if (json_is_object(&type)) { /* {"default": {"_type": class, "_data": arguments}} */
        if (!json_get(&type, "default", &config) || json_len(&type) != 1)
            return stored_unknown(s, "stored by torchao in ways that differ from module to module", "");
        TRY(read_word(s, &config, "_type", &name));
        if (!json_get(&config, "_data", &data)) data = config;
    } else {
        TRY(json_str(&type, &name, s->e));
        if (!json_get(q, "quant_type_kwargs", &data)) data = *q;
    }
    TRY(ao_format(s, name, &data, &d));
    if (!d) return stored_unknown(s, "stored by torchao as \"%s\", which ridge cannot price", name);
    if (json_get(q, "include_input_output_embeddings", &config)) TRY(json_bool(&config, &ends, s->e));
    if (ends) return stored_unknown(s, "stored by torchao with its embeddings, whose format is not read", "");
    s->plan.linear = d;
    return stored_keep(s, q);
}

/* ---- HQQ ---- */

/* Groups of a matrix without regard to its rows, each with a 16-bit scale and a 16-bit zero; ten elements of three bits
 * are 32. */
enum err_code stored_hqq(struct stored *s, const struct json *q)
{
    struct json config, params, j;
    struct dtype *d;
    int64_t bits = 4, group = 64;
    if (!json_get(q, "quant_config", &config)) config = *q;
    const bool whole = json_get(&config, "weight_quant_params", &params);
    if (!whole && json_get(q, "quant_config", &j))
        return stored_unknown(s, "stored by HQQ in ways that differ from module to module", "");
    if (!whole) params = config;
    if (json_get(&params, "nbits", &j) || json_get(&params, "bits", &j)) TRY(json_int(&j, 1, 8, &bits, s->e));
    if (json_get(&params, "group_size", &j)) TRY(json_int(&j, 1, GROUP_MAX, &group, s->e));
    if (json_get(&config, "scale_quant_params", &j) || json_get(&config, "zero_quant_params", &j))
        return stored_unknown(s, "stored by HQQ with scales that are quantised, which ridge cannot price", "");
    if (bits > 4 && bits != 8) return stored_unknown(s, "stored by HQQ in a number of bits that it cannot pack", "");
    TRY(integers(s, (double)bits, group, 32, &d));
    d->flat = true;
    if (bits == 3) d->bits = 3.2;
    s->plan.linear = d;
    return stored_keep(s, q);
}

/* ---- Quark ---- */

/* A configuration of weights and inputs; out NULL: not read. */
static enum err_code quark_format(struct stored *s, const struct json *group, struct dtype **out)
{
    struct json w, x, j;
    const char *type = "", *scheme = "", *scale = "e8m0";
    int64_t side = 0;
    bool dynamic = true;
    *out = NULL;
    if (!json_get(group, "weight", &w) || !json_is_object(&w)) return ERR_OK;
    TRY(read_word(s, &w, "dtype", &type));
    TRY(read_word(s, &w, "qscheme", &scheme));
    TRY(read_word(s, &w, "scale_format", &scale));
    if (json_get(&w, "group_size", &j)) TRY(json_int(&j, -1, GROUP_MAX, &side, s->e));
    const bool inputs = json_get(group, "input_tensors", &x) && json_is_object(&x);
    if (inputs && json_get(&x, "is_dynamic", &j)) TRY(json_bool(&j, &dynamic, s->e));
    if (strncmp(type, "fp4", 3) == 0 && strcmp(scheme, "per_group") == 0 && side == 32 && strcmp(scale, "e8m0") == 0) {
        TRY(stored_named(s, "mxfp4", out));
        if (inputs) (*out)->compute = "fp4";
    } else if (strcmp(type, "fp8_e4m3") == 0 && strcmp(scheme, "per_tensor") == 0) {
        TRY(stored_named(s, "fp8", out));
        (*out)->matrix_bits = inputs && !dynamic ? 64 : 32;
    } else if (strcmp(type, "fp8_e4m3") == 0 && strcmp(scheme, "per_channel") == 0) {
        TRY(stored_named(s, "fp8-row", out));
    }
    if (*out && !inputs) (*out)->compute = "bf16";
    return ERR_OK;
}

enum err_code stored_quark(struct stored *s, const struct json *q)
{
    struct json global, list, item, cache;
    struct dtype *d;
    const char *name;
    if (json_get(q, "kv_cache_quant_config", &cache) && json_len(&cache) > 0)
        return stored_unknown(s, "quantised by Quark with its cache, in a format that is not read", "");
    TRY(stored_keep(s, q)); /* before all other rules */
    if (json_get(q, "global_quant_config", &global) && json_len(&global) > 0) {
        TRY(quark_format(s, &global, &d));
        if (!d) return stored_unknown(s, "stored by Quark in a scheme of \"%s\" that is not read", global.path);
        s->plan.linear = s->plan.head = d;
    }
    if (!json_get(q, "layer_quant_config", &list)) return ERR_OK;
    if (!json_is_object(&list)) return json_want(&list, "an object of patterns", s->e);
    for (size_t i = 0; json_at(&list, i, &name, &item); i++) {
        TRY(quark_format(s, &item, &d));
        if (!d) return stored_unknown(s, "stored by Quark in a scheme of \"%s\" that is not read", item.path);
        TRY(format_plan_add(s->arena, &s->plan, name, false, one_of_plan(s, d), s->e));
    }
    return ERR_OK;
}
