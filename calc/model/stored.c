#include "calc/model/stored.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

static bool is_float(const struct dtype *d) { return d->bits >= 16; }

static void set_linear(struct model *m, const struct dtype *d)
{
    m->weights[WEIGHT_MIXER] = m->weights[WEIGHT_FFN] = m->weights[WEIGHT_EXPERT] = *d;
}

enum err_code stored_set_all(struct model *m, const char *name, struct err *e)
{
    struct dtype d, rest;
    TRY(dtype_find(name, &d, e));
    if (is_float(&d)) {
        for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = d;
    } else {
        const bool known = !m->weights_unknown && m->weights[WEIGHT_EMBED].name &&
                           is_float(&m->weights[WEIGHT_EMBED]) &&
                           dtype_find(m->weights[WEIGHT_EMBED].name, &rest, NULL) == ERR_OK;
        TRY(dtype_find(known ? m->weights[WEIGHT_EMBED].name : "bf16", &rest, e));
        for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = rest;
        set_linear(m, &d);
    }
    m->weights_unknown = NULL;
    return ERR_OK;
}

/* The first of `keys` in text, then in root. */
static bool first_of(const struct json *text, const struct json *root, const char *const *keys, struct json *out)
{
    for (size_t i = 0; keys[i]; i++)
        if (json_get(text, keys[i], out) || json_get(root, keys[i], out)) return true;
    return false;
}

/* What a module name of a keep-list stands for. */
enum kept { KEPT_PLAIN, KEPT_MIXER, KEPT_FFN, KEPT_EXPERTS, KEPT_ODD, KEPT_N };

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0 && (n == t || s[n - t - 1] == '.');
}

/* Modules that no format here converts are plain; whole blocks are named; single matrices, patterns and others are odd.
 */
static enum kept kept_of(const char *name)
{
    static const char *const PLAIN[] = {"lm_head", "embed",  "norm",      "router",
                                        "visual",  "vision", "projector", "correction"};
    static const char *const GATES[] = {"gate", "gate.weight", "shared_expert_gate"};
    for (size_t i = 0; i < sizeof PLAIN / sizeof PLAIN[0]; i++)
        if (strstr(name, PLAIN[i])) return KEPT_PLAIN;
    for (size_t i = 0; i < sizeof GATES / sizeof GATES[0]; i++)
        if (ends_with(name, GATES[i])) return KEPT_PLAIN;
    if (ends_with(name, "self_attn") || ends_with(name, "self_attn.*")) return KEPT_MIXER;
    if (ends_with(name, "experts") || ends_with(name, "experts.*")) return KEPT_EXPERTS;
    if (ends_with(name, "mlp") || ends_with(name, "mlp.*")) return KEPT_FFN;
    return KEPT_ODD;
}

/* "model.layers.7.mlp": one layer; "mlp" or "model.layers.*.mlp": all of them. */
static bool of_one_layer(const char *name)
{
    const char *at = strstr(name, "layers.");
    return at && at[7] >= '0' && at[7] <= '9';
}

/* Lists of module names kept in full precision. Blocks must be kept in all layers or in none; else no price. */
static enum err_code keep_listed(const struct json *q, struct model *m, struct err *e)
{
    static const char *const LISTS[] = {"modules_to_not_convert", "ignored_layers",        "ignore",
                                        "exclude_modules",        "llm_int8_skip_modules", NULL};
    struct json list, item;
    int64_t some[KEPT_N] = {0};
    bool all[KEPT_N] = {false};
    for (size_t l = 0; LISTS[l]; l++) {
        if (!json_get(q, LISTS[l], &list)) continue;
        if (!json_is_array(&list)) return json_want(&list, "a list of module names", e);
        for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
            const char *name;
            TRY(json_str(&item, &name, e));
            const enum kept k = kept_of(name);
            if (of_one_layer(name))
                some[k]++;
            else
                all[k] = true;
        }
    }
    for (enum kept k = KEPT_MIXER; k <= KEPT_EXPERTS; k++) {
        if (some[k] >= m->layers) all[k] = true;
        if (some[k] > 0 && !all[k]) all[KEPT_ODD] = true;
    }
    if (all[KEPT_MIXER]) m->weights[WEIGHT_MIXER] = m->weights[WEIGHT_OTHER];
    if (all[KEPT_FFN]) m->weights[WEIGHT_FFN] = m->weights[WEIGHT_EXPERT] = m->weights[WEIGHT_OTHER];
    if (all[KEPT_EXPERTS]) m->weights[WEIGHT_EXPERT] = m->weights[WEIGHT_OTHER];
    if (all[KEPT_ODD] || some[KEPT_ODD] > 0)
        m->weights_unknown = "stored in a mixture of formats by single modules, which config.json alone does not price";
    return ERR_OK;
}

static enum err_code read_grouped(struct arena *a, const struct json *q, struct model *m, struct err *e)
{
    int64_t bits = 4, group = 128;
    struct json j;
    struct dtype d;
    if (json_get(q, "bits", &j) || json_get(q, "w_bit", &j)) TRY(json_int(&j, 1, 16, &bits, e));
    if (json_get(q, "group_size", &j) || json_get(q, "q_group_size", &j)) TRY(json_int(&j, -1, 1 << 20, &group, e));
    const char *name = arena_printf(a, "int%lld-g%lld", (long long)bits, (long long)group);
    if (!name) return err_nomem(e);
    if (dtype_find(name, &d, NULL) != ERR_OK) {
        m->weights_unknown = arena_printf(a, "stored as %lld bits in groups of %lld, which is not in ridge list dtypes",
                                          (long long)bits, (long long)group);
        return ERR_OK;
    }
    set_linear(m, &d);
    bool head = false;
    if (json_get(q, "lm_head", &j)) TRY(json_bool(&j, &head, e));
    if (head) m->weights[WEIGHT_HEAD] = d;
    return ERR_OK;
}

/* MLX: groups with a 16-bit scale and a 16-bit bias on every linear layer and the embedding. */
static enum err_code read_mlx(struct arena *a, const struct json *q, struct model *m, struct err *e)
{
    TRY(read_grouped(a, q, m, e));
    if (m->weights_unknown) return ERR_OK;
    struct dtype d = m->weights[WEIGHT_FFN];
    d.scale_bits = 32;
    set_linear(m, &d);
    m->weights[WEIGHT_EMBED] = m->weights[WEIGHT_HEAD] = m->weights[WEIGHT_ROUTER] = d;
    return ERR_OK;
}

static enum err_code read_bitsandbytes(const struct json *q, struct model *m, struct err *e)
{
    struct json j;
    struct dtype d;
    bool eight = false, twice = false;
    /* bnb_4bit_* keys stand there even when load_in_8bit is true. */
    if (json_get(q, "load_in_8bit", &j)) TRY(json_bool(&j, &eight, e));
    if (json_get(q, "bnb_4bit_use_double_quant", &j)) TRY(json_bool(&j, &twice, e));
    bool four = false;
    if (json_get(q, "load_in_4bit", &j)) TRY(json_bool(&j, &four, e));
    if (eight == four) {
        m->weights_unknown = "stored by bitsandbytes, in 4 or 8 bits its file does not say";
        return ERR_OK;
    }
    TRY(dtype_find(eight ? "int8" : twice ? "nf4-double" : "nf4", &d, e));
    set_linear(m, &d);
    return ERR_OK;
}

/* Members that change formats module by module, in ways that are not read: no price rather than a wrong one. */
static bool has_overrides(const struct json *q)
{
    static const char *const READ[] = {
        "modules_to_not_convert", "ignored_layers",  "ignore", "exclude_modules", "llm_int8_skip_modules",
        "weight_block_size",      "kv_cache_scheme", "meta",   "dataset"};
    const char *key, *mode;
    struct json item;
    for (size_t i = 0; i < json_len(q) && json_at(q, i, &key, &item); i++) {
        bool read = false;
        for (size_t k = 0; k < sizeof READ / sizeof READ[0]; k++) read = read || strcmp(READ[k], key) == 0;
        if (read) continue;
        if (strchr(key, '.')) return true;
        if ((json_is_object(&item) || json_is_array(&item)) && json_len(&item) > 0) return true;
        if (strcmp(key, "mode") == 0 && json_str(&item, &mode, NULL) == ERR_OK && strcmp(mode, "affine") != 0)
            return true;
    }
    return false;
}

static bool has_experts(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE) return true;
    return false;
}

static enum err_code read_quantization(struct arena *a, const struct json *q, struct model *m, struct err *e)
{
    struct json j;
    struct dtype d;
    const char *method = "";
    if (!json_is_object(q)) return json_want(q, "an object", e);
    if (json_get(q, "quant_method", &j)) TRY(json_str(&j, &method, e));
    if (has_overrides(q)) {
        m->weights_unknown = "stored in formats that its quantisation changes module by module";
        return ERR_OK;
    }
    if (strcmp(method, "fp8") == 0) {
        const bool blocks = json_get(q, "weight_block_size", &j);
        if (blocks && json_len(&j) != 2) return json_want(&j, "a list of two block sides", e);
        TRY(dtype_find(blocks ? "fp8-block128" : "fp8", &d, e));
        struct json item;
        int64_t side[2] = {128, 128};
        for (size_t i = 0; blocks && i < 2 && json_at(&j, i, NULL, &item); i++)
            TRY(json_int(&item, 1, 1 << 20, &side[i], e));
        if (blocks) {
            d.block_out = side[0];
            d.group_in = side[1];
            if (side[0] != 128 || side[1] != 128) d.name = "fp8-block";
        }
        set_linear(m, &d);
    } else if (strcmp(method, "mxfp4") == 0) {
        TRY(dtype_find("mxfp4", &m->weights[WEIGHT_EXPERT], e)); /* published files convert experts only */
        if (!has_experts(m))
            m->weights_unknown = "stored as mxfp4 without experts, and which layers it converts is not known";
        return ERR_OK;
    } else if (strcmp(method, "awq") == 0 || strcmp(method, "gptq") == 0) {
        TRY(read_grouped(a, q, m, e));
    } else if (strcmp(method, "bitsandbytes") == 0) {
        TRY(read_bitsandbytes(q, m, e));
    } else if (*method == '\0' && json_has(q, "bits") && json_has(q, "group_size")) {
        TRY(read_mlx(a, q, m, e));
    } else if (*method == '\0') {
        m->weights_unknown = "quantised (its quantization_config names no quant_method)";
    } else {
        char clean[48];
        m->weights_unknown = arena_printf(a, "stored with quantisation method \"%s\", which ridge cannot price",
                                          text_clean(clean, sizeof clean, method, strlen(method)));
        return m->weights_unknown ? ERR_OK : err_nomem(e);
    }
    return keep_listed(q, m, e);
}

/* NVIDIA ModelOpt says it in a file of its own beside config.json. */
static enum err_code read_modelopt(struct arena *a, const struct json *q, struct model *m, struct err *e)
{
    struct json j;
    struct dtype d;
    const char *algo = "", *kv = "";
    if (json_get(q, "kv_cache_quant_algo", &j)) TRY(json_str(&j, &kv, e));
    if (strcmp(kv, "FP8") == 0) TRY(dtype_find("fp8", &m->kv, e));
    if (!json_get(q, "quant_algo", &j)) return ERR_OK;
    TRY(json_str(&j, &algo, e));
    if (strcmp(algo, "FP8") == 0 || strcmp(algo, "FP8_PB_WO") == 0) {
        TRY(dtype_find(strcmp(algo, "FP8") == 0 ? "fp8" : "fp8-block128", &d, e));
        set_linear(m, &d);
        return keep_listed(q, m, e);
    }
    char clean[48];
    m->weights_unknown = arena_printf(a, "hf_quant_config.json says \"%s\", which ridge cannot price",
                                      text_clean(clean, sizeof clean, algo, strlen(algo)));
    return m->weights_unknown ? ERR_OK : err_nomem(e);
}

/* Recurrent states are kept in fp32 unless the file says otherwise. */
static enum err_code read_state(const struct json *text, const struct json *root, struct model *m, struct err *e)
{
    static const char *const KEYS[] = {"mamba_ssm_cache_dtype", "mamba_ssm_dtype", NULL};
    struct json j;
    const char *name = "fp32";
    if (first_of(text, root, KEYS, &j)) TRY(json_str(&j, &name, e));
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    if (strcmp(name, "auto") == 0) name = m->activations.name;
    if (dtype_find(name, &m->state, NULL) != ERR_OK || !is_float(&m->state))
        return json_want(&j, "float32, float16 or bfloat16", e);
    return ERR_OK;
}

enum err_code stored_read(struct arena *a, const struct json *root, const struct json *text, struct model *m,
                          struct err *e)
{
    static const char *const FLOAT_KEYS[] = {"dtype", "torch_dtype", NULL};
    static const char *const QUANT_KEYS[] = {"quantization_config", "quantization", "compression_config", NULL};
    struct json j;
    const char *name = "bf16";
    struct dtype d;
    if (first_of(text, root, FLOAT_KEYS, &j)) {
        TRY(json_str(&j, &name, e));
        if (strncmp(name, "torch.", 6) == 0) name += 6;
        if (strcmp(name, "auto") == 0) name = "bf16";
        if (dtype_find(name, &d, NULL) != ERR_OK || !is_float(&d))
            return json_want(&j, "float32, float16 or bfloat16", e);
    } else {
        TRY(dtype_find(name, &d, e));
    }
    for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = d;
    TRY(dtype_find(is_float(&d) && d.bits < 32 ? d.name : "bf16", &m->activations, e));
    m->kv = m->activations;
    TRY(read_state(text, root, m, e));
    if (json_get(root, "hf_quant_config.quantization", &j)) return read_modelopt(a, &j, m, e);
    return first_of(text, root, QUANT_KEYS, &j) ? read_quantization(a, &j, m, e) : ERR_OK;
}

const struct dtype *model_linear_format(const struct model *m)
{
    return &m->weights[has_experts(m) ? WEIGHT_EXPERT : WEIGHT_FFN];
}
