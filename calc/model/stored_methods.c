#include "calc/model/stored_methods.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/base/text.h"

enum { GROUP_MAX = 1 << 20 };

/* ---- shared ---- */

enum err_code stored_unknown(struct stored *s, const char *format, const char *text)
{
    char clean[64];
    const char *at = strstr(format, "%s");
    text_clean(clean, sizeof clean, text, strlen(text));
    s->m->weights_unknown = at ? arena_printf(s->arena, "%.*s%s%s", (int)(at - format), format, clean, at + 2)
                               : arena_printf(s->arena, "%s", format);
    return s->m->weights_unknown ? ERR_OK : err_nomem(s->e);
}

enum err_code stored_keep(struct stored *s, const struct json *q)
{
    static const char *const LISTS[] = {"modules_to_not_convert", "ignored_layers", "ignore",  "exclude_modules",
                                        "llm_int8_skip_modules",  "skip_modules",   "exclude", NULL};
    struct json list, item;
    for (size_t l = 0; LISTS[l]; l++) {
        if (!json_get(q, LISTS[l], &list)) continue;
        if (!json_is_array(&list)) return json_want(&list, "a list of module names", s->e);
        for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
            const char *name;
            TRY(json_str(&item, &name, s->e));
            TRY(format_plan_add(s->arena, &s->plan, name, false, NULL, s->e));
        }
    }
    return ERR_OK;
}

enum err_code stored_named(struct stored *s, const char *name, struct dtype **out)
{
    *out = arena_alloc(s->arena, sizeof **out);
    if (!*out) return err_nomem(s->e);
    return dtype_find(name, *out, s->e);
}

/* "int4-g64" and its like in the arena, out NULL when no such format is known; group -1: rows. */
static enum err_code grouped(struct stored *s, const char *prefix, int64_t bits, int64_t group, struct dtype **out)
{
    const char *name =
        arena_printf(s->arena, "%s%lld-g%lld", prefix, (long long)bits, (long long)(group == GROUP_ROW ? 128 : group));
    *out = arena_alloc(s->arena, sizeof **out);
    if (!*out || !name) return err_nomem(s->e);
    if (dtype_find(name, *out, NULL) != ERR_OK) {
        *out = NULL;
        s->m->weights_unknown =
            arena_printf(s->arena, "stored as %lld bits in groups of %lld, which is not in ridge list dtypes",
                         (long long)bits, (long long)group);
        return s->m->weights_unknown ? ERR_OK : err_nomem(s->e);
    }
    if (group != GROUP_ROW) return ERR_OK;
    (*out)->group_in = GROUP_ROW;
    (*out)->name = arena_printf(s->arena, "%s%lld-row", prefix, (long long)bits);
    return (*out)->name ? ERR_OK : err_nomem(s->e);
}

static enum err_code read_bits(struct stored *s, const struct json *q, int64_t *bits, int64_t *group)
{
    struct json j;
    if (json_get(q, "bits", &j) || json_get(q, "w_bit", &j)) TRY(json_int(&j, 1, 16, bits, s->e));
    if (json_get(q, "group_size", &j) || json_get(q, "q_group_size", &j)) TRY(json_int(&j, -1, GROUP_MAX, group, s->e));
    return ERR_OK;
}

static bool has_experts(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE) return true;
    return false;
}

/* ---- fp8 ---- */

enum err_code stored_fp8(struct stored *s, const struct json *q)
{
    struct json j, item;
    struct dtype *d;
    int64_t side[2] = {128, 128};
    const char *scheme = "";
    const bool tiles = json_get(q, "weight_block_size", &j);
    if (tiles && (!json_is_array(&j) || json_len(&j) != 2)) return json_want(&j, "a list of two block sides", s->e);
    for (size_t i = 0; tiles && i < 2 && json_at(&j, i, NULL, &item); i++)
        TRY(json_int(&item, 1, GROUP_MAX, &side[i], s->e));
    TRY(stored_named(s, tiles ? "fp8-block128" : "fp8", &d));
    d->block_out = tiles ? side[0] : 1;
    d->group_in = tiles ? side[1] : 0;
    if (tiles && (side[0] != 128 || side[1] != 128)) d->name = "fp8-block";
    if (json_get(q, "activation_scheme", &j)) TRY(json_str(&j, &scheme, s->e));
    /* a scale in fp32 of the matrix, and one of its input where that is fixed */
    if (!tiles) d->matrix_bits = strcmp(scheme, "static") == 0 ? 64 : 32;
    s->plan.linear = d;
    return stored_keep(s, q);
}

/* One format of every linear layer but those that a list leaves out. */
static enum err_code stored_all(struct stored *s, const struct json *q, const char *format)
{
    struct dtype *d;
    TRY(stored_named(s, format, &d));
    s->plan.linear = d;
    return stored_keep(s, q);
}

enum err_code stored_fp8_rows(struct stored *s, const struct json *q) { return stored_all(s, q, "fp8-row"); }

/* Blocks of 1 x 32; others are not MX. */
enum err_code stored_mxfp8(struct stored *s, const struct json *q)
{
    struct json j, item;
    if (json_get(q, "weight_block_size", &j)) {
        int64_t side[2] = {0, 0};
        if (!json_is_array(&j) || json_len(&j) != 2) return json_want(&j, "a list of two block sides", s->e);
        for (size_t i = 0; i < 2 && json_at(&j, i, NULL, &item); i++)
            TRY(json_int(&item, 1, GROUP_MAX, &side[i], s->e));
        if (side[0] != 1 || side[1] != 32) return json_want(&j, "[1, 32], the blocks of MXFP8", s->e);
    }
    return stored_all(s, q, "mxfp8");
}

/* Published files convert experts only. */
enum err_code stored_mxfp4(struct stored *s, const struct json *q)
{
    struct dtype *d;
    if (!has_experts(s->m))
        return stored_unknown(s, "stored as mxfp4 without experts, and which layers it converts is not known", "");
    TRY(stored_named(s, "mxfp4", &d));
    TRY(stored_keep(s, q));
    return format_plan_add(s->arena, &s->plan, "experts", false, d, s->e);
}

enum err_code stored_expert_dtype(struct stored *s, const struct json *j)
{
    static const struct {
        const char *word, *format;
    } WORDS[] = {{"fp4", "mxfp4"},     {"mxfp4", "mxfp4"},       {"nvfp4", "nvfp4"},
                 {"fp8", "fp8"},       {"float8_e4m3fn", "fp8"}, {"bf16", "bf16"},
                 {"bfloat16", "bf16"}, {"fp16", "fp16"},         {"float16", "fp16"}};
    const char *word;
    struct dtype *d;
    TRY(json_str(j, &word, s->e));
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcasecmp(word, WORDS[i].word) != 0) continue;
        if (s->m->weights_unknown) return ERR_OK;
        TRY(stored_named(s, WORDS[i].format, &d));
        /* FP8 with the scales of the other linear layers, where these are FP8 too. */
        if (s->plan.linear && d->bits == 8 && strcmp(s->plan.linear->compute, d->compute) == 0) return ERR_OK;
        return format_plan_add(s->arena, &s->plan, "experts", false, d, s->e);
    }
    return json_want(j, "\"fp4\" (mxfp4), \"nvfp4\", \"fp8\", \"bf16\" or \"fp16\", the format of experts", s->e);
}

/* ---- integers in groups ---- */

enum err_code stored_awq(struct stored *s, const struct json *q)
{
    int64_t bits = 4, group = 128;
    struct json j;
    struct dtype *d;
    bool zero = true;
    TRY(read_bits(s, q, &bits, &group));
    if (json_get(q, "zero_point", &j)) TRY(json_bool(&j, &zero, s->e));
    TRY(grouped(s, "int", bits, group, &d));
    if (!d) return ERR_OK;
    if (!zero) d->scale_bits = 16;
    s->plan.linear = d;
    s->plan.parts = true;
    return stored_keep(s, q);
}

/* GPTQModel: "-:pattern" leaves modules out, "pattern" or "+:pattern" changes their bits and groups. */
static enum err_code read_dynamic(struct stored *s, const struct json *list, int64_t bits, int64_t group)
{
    const char *key;
    struct json item;
    if (!json_is_object(list)) return json_want(list, "an object of patterns", s->e);
    for (size_t i = 0; json_at(list, i, &key, &item); i++) {
        struct dtype *d = NULL;
        const bool named = strncmp(key, "+:", 2) == 0, left = strncmp(key, "-:", 2) == 0;
        int64_t own_bits = bits, own_group = group;
        if (!left) {
            if (!json_is_object(&item)) return json_want(&item, "an object", s->e);
            TRY(read_bits(s, &item, &own_bits, &own_group));
            TRY(grouped(s, "gptq", own_bits, own_group, &d));
            if (!d) return ERR_OK;
        }
        TRY(format_plan_add(s->arena, &s->plan, named || left ? key + 2 : key, true, d, s->e));
    }
    return ERR_OK;
}

enum err_code stored_gptq(struct stored *s, const struct json *q)
{
    int64_t bits = 4, group = 128;
    struct json j;
    struct dtype *d;
    const char *format = "gptq";
    bool head = false, marlin = false;
    TRY(read_bits(s, q, &bits, &group));
    if (json_get(q, "checkpoint_format", &j)) TRY(json_str(&j, &format, s->e));
    if (json_get(q, "is_marlin_format", &j)) TRY(json_bool(&j, &marlin, s->e));
    if (marlin || (strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0))
        return stored_unknown(s, "stored by GPTQ in a layout \"%s\" that is not read", marlin ? "marlin" : format);
    if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
        return stored_unknown(s, "stored by GPTQ in a number of bits that its kernels do not have (2, 3, 4 or 8)", "");
    TRY(grouped(s, "gptq", bits, group, &d));
    if (!d) return ERR_OK;
    s->plan.linear = d;
    if (json_get(q, "lm_head", &j)) TRY(json_bool(&j, &head, s->e));
    if (head) s->plan.head = d;
    TRY(stored_keep(s, q));
    return json_get(q, "dynamic", &j) ? read_dynamic(s, &j, bits, group) : ERR_OK;
}

/* ---- MLX ---- */

/* Groups with a 16-bit scale and a 16-bit bias, or the formats of other libraries by "mode". */
static enum err_code mlx_format(struct stored *s, const struct json *q, struct dtype **out)
{
    int64_t bits = 4, group = 64;
    const char *mode = "affine";
    struct json j;
    *out = NULL;
    TRY(read_bits(s, q, &bits, &group));
    if (json_get(q, "mode", &j)) TRY(json_str(&j, &mode, s->e));
    if (strcmp(mode, "affine") == 0) return grouped(s, "mlx", bits, group, out);
    const bool known = strcmp(mode, "mxfp4") == 0 || strcmp(mode, "mxfp8") == 0 || strcmp(mode, "nvfp4") == 0;
    if (!known) return stored_unknown(s, "stored by MLX in a mode \"%s\" that is not read", mode);
    TRY(stored_named(s, mode, out));
    (*out)->matrix_bits = 0;
    (*out)->compute = "bf16"; /* weight-only */
    return ERR_OK;
}

bool stored_mlx_part(const struct json *member)
{
    return json_is_object(member) && (json_has(member, "bits") || json_has(member, "mode"));
}

/* Every linear layer and the embedding; members that are named as modules say otherwise for single ones. */
enum err_code stored_mlx(struct stored *s, const struct json *q)
{
    struct dtype *d, *own;
    const char *key;
    struct json item;
    bool on = false;
    TRY(mlx_format(s, q, &d));
    if (!d) return ERR_OK;
    s->plan.linear = s->plan.elsewhere = d;
    for (size_t i = 0; json_at(q, i, &key, &item); i++) {
        if (!strchr(key, '.') && !stored_mlx_part(&item)) continue;
        own = d;
        if (json_is_object(&item)) {
            TRY(mlx_format(s, &item, &own));
            if (!own) return ERR_OK;
        } else {
            TRY(json_bool(&item, &on, s->e));
        }
        if (!json_is_object(&item) && !on) own = NULL;
        for (size_t k = 0; own && k < s->plan.rules_n; k++) /* equal formats are one */
            if (s->plan.rule[k].format && dtype_same(s->plan.rule[k].format, own)) {
                TRY(format_plan_add(s->arena, &s->plan, key, false, s->plan.rule[k].format, s->e));
                own = NULL;
                break;
            }
        if (own || (!json_is_object(&item) && !on)) TRY(format_plan_add(s->arena, &s->plan, key, false, own, s->e));
    }
    for (size_t i = 0; i < s->m->kinds_n; i++) /* a router with a bias beside is no linear layer of the library */
        if (s->m->kinds[i].ffn.router_correction)
            return format_plan_add(s->arena, &s->plan, "mlp.gate", false, NULL, s->e);
    return ERR_OK;
}

/* ---- bitsandbytes ---- */

enum err_code stored_bitsandbytes(struct stored *s, const struct json *q)
{
    struct json j;
    struct dtype *d;
    bool eight = false, four = false, twice = false, half = false;
    double threshold = 6;
    const char *type = "nf4";
    /* bnb_4bit_* keys stand there even when load_in_8bit is true. */
    if (json_get(q, "load_in_8bit", &j)) TRY(json_bool(&j, &eight, s->e));
    if (json_get(q, "load_in_4bit", &j)) TRY(json_bool(&j, &four, s->e));
    if (json_get(q, "bnb_4bit_use_double_quant", &j)) TRY(json_bool(&j, &twice, s->e));
    if (json_get(q, "bnb_4bit_quant_type", &j)) TRY(json_str(&j, &type, s->e));
    if (json_get(q, "llm_int8_has_fp16_weight", &j)) TRY(json_bool(&j, &half, s->e));
    if (json_get(q, "llm_int8_threshold", &j)) TRY(json_num(&j, &threshold, s->e));
    if (eight && four)
        return stored_unknown(
            s, "stored by bitsandbytes in 4 and in 8 bits: load_in_4bit and load_in_8bit are both true", "");
    if (!eight && !four) return stored_unknown(s, "stored by bitsandbytes, in 4 or 8 bits its file does not say", "");
    if (eight && half) return stored_unknown(s, "stored in 16 bits and converted by bitsandbytes when loaded", "");
    if (four && strcmp(type, "nf4") != 0 && strcmp(type, "fp4") != 0)
        return stored_unknown(s, "stored by bitsandbytes as \"%s\", which ridge cannot price", type);
    TRY(stored_named(s, eight ? "llm-int8" : twice ? "nf4-double" : "nf4", &d));
    if (eight && !(threshold > 0)) d->outlier_frac = 0;
    s->plan.linear = d;
    return stored_keep(s, q);
}

/* ---- BitNet ---- */

/* One of two words, the first when absent; *at which. Others: ERR_OK and 2. */
static enum err_code one_of(struct stored *s, const struct json *q, const char *key, const char *const words[2],
                            size_t *at, const char **word)
{
    struct json j;
    *word = words[0];
    if (json_get(q, key, &j)) TRY(json_str(&j, word, s->e));
    for (*at = 0; *at < 2; ++*at)
        if (strcmp(*word, words[*at]) == 0) break;
    return ERR_OK;
}

/* Ternary weights, packed four to a byte with a scale of the matrix. Layers that quantise at every step keep floats.
 * Source: transformers, BitNetQuantConfig and integrations/bitnet.py. */
enum err_code stored_bitnet(struct stored *s, const struct json *q)
{
    static const char *const CLASSES[2] = {"bitlinear", "autobitlinear"}, *const MODES[2] = {"offline", "online"};
    static const char UNPACKED[] = "packed weights are those stored: transformers unpacks an autobitlinear when it "
                                   "loads one (--weights states what it keeps)";
    struct json j;
    struct dtype *d;
    size_t class, mode;
    const char *word;
    bool normed = false;
    TRY(one_of(s, q, "linear_class", CLASSES, &class, &word));
    if (class == 2) return stored_unknown(s, "stored by BitNet in layers of a class \"%s\" that is not read", word);
    TRY(one_of(s, q, "quantization_mode", MODES, &mode, &word));
    if (mode == 2) return stored_unknown(s, "stored by BitNet in a mode \"%s\" that is not read", word);
    if (json_get(q, "use_rms_norm", &j)) TRY(json_bool(&j, &normed, s->e));
    if (normed)
        return stored_unknown(s, "stored by BitNet with a norm in front of every linear layer, which no family has",
                              "");
    if (class == 1 && mode == 1) return ERR_OK;
    TRY(stored_named(s, "ternary", &d));
    d->matrix_bits = s->m->weights[WEIGHT_OTHER].bits;
    s->plan.linear = d;
    if (class == 1) s->m->notes = s->m->notes ? arena_printf(s->arena, "%s; %s", s->m->notes, UNPACKED) : UNPACKED;
    if (!s->m->notes && class == 1) return err_nomem(s->e);
    return stored_keep(s, q);
}
