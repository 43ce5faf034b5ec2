/* stored_groups -- compressed-tensors and NVIDIA ModelOpt: formats for groups of modules, and lists of those left out.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/base/text.h"
#include "calc/model/stored_methods.h"

enum { SIDE_MAX = 1 << 20 };

/* ---- compressed-tensors ---- */

/* weights or input_activations of a group. */
struct scheme {
    bool present;
    int64_t bits, group, side[2];
    const char *type, *strategy, *order;
    bool symmetric, dynamic;
};

static enum err_code read_word(struct stored *s, const struct json *q, const char *key, const char **out)
{
    struct json j;
    return json_get(q, key, &j) ? json_str(&j, out, s->e) : ERR_OK;
}

static enum err_code read_scheme(struct stored *s, const struct json *group, const char *key, struct scheme *out)
{
    struct json q, j, item;
    struct scheme x = {
        .bits = 8, .type = "int", .strategy = "tensor", .order = "", .symmetric = true, .side = {128, 128}};
    *out = x;
    if (!json_get(group, key, &q)) return ERR_OK;
    if (!json_is_object(&q)) return json_want(&q, "an object", s->e);
    x.present = true;
    if (json_get(&q, "num_bits", &j)) TRY(json_int(&j, 1, 16, &x.bits, s->e));
    if (json_get(&q, "group_size", &j)) TRY(json_int(&j, -1, SIDE_MAX, &x.group, s->e));
    if (json_get(&q, "symmetric", &j)) TRY(json_bool(&j, &x.symmetric, s->e));
    if (json_get(&q, "dynamic", &j)) {
        if (json_is_string(&j))
            x.dynamic = true; /* "local" */
        else
            TRY(json_bool(&j, &x.dynamic, s->e));
    }
    TRY(read_word(s, &q, "type", &x.type));
    TRY(read_word(s, &q, "strategy", &x.strategy));
    if (json_get(&q, "actorder", &j) && json_is_string(&j)) TRY(json_str(&j, &x.order, s->e));
    if (json_get(&q, "block_structure", &j) && json_is_array(&j)) {
        if (json_len(&j) != 2) return json_want(&j, "a list of two block sides", s->e);
        for (size_t i = 0; i < 2 && json_at(&j, i, NULL, &item); i++)
            TRY(json_int(&item, 1, SIDE_MAX, &x.side[i], s->e));
    } else if (json_has(&q, "block_structure") && strcmp(x.strategy, "block") == 0) {
        return json_want(&q, "a block_structure that is a list of two block sides", s->e);
    }
    *out = x;
    return ERR_OK;
}

enum { BLOCK, GROUP, ROW, MATRIX, FINE, STRATEGIES };

static int strategy_of(const struct scheme *w)
{
    static const char *const NAMES[STRATEGIES] = {
        [BLOCK] = "block", [GROUP] = "group", [ROW] = "channel", [MATRIX] = "tensor", [FINE] = "tensor_group"};
    int i = 0;
    while (i < STRATEGIES && strcmp(NAMES[i], w->strategy) != 0) i++;
    return i;
}

/* How weights of a scheme are stored: scales have the file's float format, packed weights carry their shape as two
 * 64-bit numbers. NULL: not known. */
static enum err_code scheme_format(struct stored *s, const struct scheme *w, const struct scheme *x, struct dtype **out)
{
    const bool real = strcmp(w->type, "float") == 0, packed = w->bits < 8 || !x->present;
    const double scale = s->m->weights[WEIGHT_OTHER].bits;
    const int strategy = strategy_of(w);
    struct dtype *d = arena_alloc(s->arena, sizeof *d);
    char group[32] = "";
    *out = NULL;
    if (!d) return err_nomem(s->e);
    if (strategy == STRATEGIES || (!real && strcmp(w->type, "int") != 0)) return ERR_OK;
    if ((strategy == GROUP || strategy == FINE) && w->group < 1) return ERR_OK;
    *d = (struct dtype){.bits = (double)w->bits, .block_out = 1, .scale_bits = scale, .source = "compressed-tensors"};
    if (real && w->bits == 4) {
        if (!(strategy == FINE && w->group == 16) && !(strategy == GROUP && w->group == 32)) return ERR_OK;
        TRY(stored_named(s, strategy == FINE ? "nvfp4" : "mxfp4", out));
        if (strategy == FINE && x->present) (*out)->matrix_bits = 64; /* and one of its input */
        if (!x->present) (*out)->compute = "bf16";
        return ERR_OK;
    }
    if (strategy == FINE || (real && w->bits != 8) || w->bits < 2 || w->bits > 8) return ERR_OK;
    if (!real && !w->symmetric) d->scale_bits += (double)w->bits;
    d->group_in = strategy == GROUP ? w->group : strategy == ROW ? GROUP_ROW : strategy == BLOCK ? w->side[1] : 0;
    if (strategy == BLOCK) d->block_out = w->side[0];
    if (strategy == MATRIX) d->matrix_bits = d->scale_bits;
    if (strategy == MATRIX && x->present && !x->dynamic) d->matrix_bits += scale;
    if (!real && packed) d->matrix_bits += 2 * 64;
    if (strcmp(w->order, "group") == 0) d->column_bits = 32;
    d->compute = !x->present ? "bf16" : strcmp(x->type, "float") == 0 ? "fp8" : "int8";
    if (strategy == GROUP) (void)snprintf(group, sizeof group, "-g%lld", (long long)w->group);
    d->name = arena_printf(s->arena, "%s%lld%s", real ? "fp" : "int", (long long)w->bits,
                           strategy == ROW && real ? "-row"
                           : strategy == BLOCK     ? "-block"
                                                   : group);
    *out = d;
    return d->name ? ERR_OK : err_nomem(s->e);
}

static enum err_code read_targets(struct stored *s, const struct json *group, const struct dtype *d)
{
    struct json list, item;
    const char *name;
    if (!json_get(group, "targets", &list)) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of targets", s->e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        TRY(json_str(&item, &name, s->e));
        if (strcmp(name, "Linear") == 0)
            s->plan.linear = s->plan.head = d;
        else
            TRY(format_plan_add(s->arena, &s->plan, name, false, d, s->e));
    }
    return ERR_OK;
}

enum err_code stored_cache_scheme(struct stored *s, const struct json *q)
{
    struct scheme x;
    struct json j;
    if (!json_get(q, "kv_cache_scheme", &j)) return ERR_OK;
    TRY(read_scheme(s, q, "kv_cache_scheme", &x));
    if (x.bits != 8) {
        char clean[16];
        (void)snprintf(clean, sizeof clean, "%lld", (long long)x.bits);
        return stored_unknown(s, "quantised with a cache of %s bits, whose scales are not known", clean);
    }
    return dtype_find(strcmp(x.type, "float") == 0 ? "fp8" : "int8", &s->m->kv, s->e);
}

/* Groups of modules, each with a scheme; ignored modules come before all of them. */
static enum err_code read_groups(struct stored *s, const struct json *q, bool *any)
{
    struct json groups, group;
    const char *key;
    *any = false;
    if (!json_get(q, "config_groups", &groups)) return ERR_OK;
    if (!json_is_object(&groups)) return json_want(&groups, "an object of groups", s->e);
    for (size_t i = 0; json_at(&groups, i, &key, &group); i++) {
        struct scheme w, x;
        struct dtype *d;
        if (!json_is_object(&group)) return json_want(&group, "an object", s->e);
        TRY(read_scheme(s, &group, "weights", &w));
        TRY(read_scheme(s, &group, "input_activations", &x));
        if (!w.present) continue;
        TRY(scheme_format(s, &w, &x, &d));
        if (!d) return stored_unknown(s, "stored in a scheme of \"%s\" that is not read", group.path);
        TRY(read_targets(s, &group, d));
        *any = true;
    }
    return ERR_OK;
}

enum err_code stored_compressed(struct stored *s, const struct json *q)
{
    bool any;
    const char *format = "";
    TRY(read_word(s, q, "format", &format));
    if (strstr(format, "24") || strstr(format, "sparse"))
        return stored_unknown(s, "stored as \"%s\", with zeros left out, which ridge cannot price", format);
    TRY(stored_keep(s, q));
    TRY(stored_cache_scheme(s, q));
    TRY(read_groups(s, q, &any));
    return any || s->m->weights_unknown
               ? ERR_OK
               : stored_unknown(s, "quantised (its %s has no config_groups with weights)", q->path);
}

/* ---- ModelOpt ---- */

/* Scales of a matrix and of its input in fp32, beside those of groups. */
static enum err_code algorithm(struct stored *s, const char *name, int64_t group, struct dtype **out)
{
    static const struct {
        const char *name, *format;
        double matrix_bits, column_bits;
        int64_t group;
        const char *compute; /* NULL: the format's own */
    } ALGORITHMS[] = {
        {"FP8", "fp8", 64, 0, 0, NULL},
        {"FP8_PER_CHANNEL_PER_TOKEN", "fp8-row", 0, 0, 0, NULL},
        {"FP8_PB_WO", "fp8-block128", 0, 0, 128, "bf16"},
        {"FP8_PB_REAL", "fp8-block128", 0, 0, 128, NULL},
        {"NVFP4", "nvfp4", 64, 0, 16, NULL},
        {"NVFP4_AWQ", "nvfp4", 64, 16, 16, NULL}, /* and a factor of each input column in 16 bits */
        {"W4A16_NVFP4", "nvfp4", 32, 0, 16, "bf16"},
        {"MXFP8", "mxfp8", 0, 0, 32, NULL},
        {"MXFP4", "mxfp4", 0, 0, 32, "fp4"},
    };
    *out = NULL;
    for (size_t i = 0; i < sizeof ALGORITHMS / sizeof ALGORITHMS[0]; i++) {
        if (strcasecmp(ALGORITHMS[i].name, name) != 0) continue;
        if (group != 0 && ALGORITHMS[i].group != 0 && group != ALGORITHMS[i].group) return ERR_OK;
        TRY(stored_named(s, ALGORITHMS[i].format, out));
        (*out)->matrix_bits = ALGORITHMS[i].matrix_bits;
        (*out)->column_bits = ALGORITHMS[i].column_bits;
        if (ALGORITHMS[i].compute) (*out)->compute = ALGORITHMS[i].compute;
        return ERR_OK;
    }
    return ERR_OK;
}

static enum err_code read_algorithm(struct stored *s, const struct json *q, struct dtype **out)
{
    struct json j;
    int64_t group = 0;
    const char *name = "";
    TRY(read_word(s, q, "quant_algo", &name));
    if (json_get(q, "group_size", &j)) TRY(json_int(&j, 0, SIDE_MAX, &group, s->e));
    TRY(algorithm(s, name, group, out));
    if (*out) return ERR_OK;
    return stored_unknown(s,
                          "stored by ModelOpt as \"%s\", or in groups of another size than that has, which ridge "
                          "cannot price",
                          name);
}

/* quantized_layers: a format for each module by name, and none for others. Equal formats are one. */
static enum err_code read_mixed(struct stored *s, const struct json *list)
{
    const char *name;
    struct json item;
    if (!json_is_object(list)) return json_want(list, "an object of modules", s->e);
    for (size_t i = 0; json_at(list, i, &name, &item); i++) {
        struct dtype *d;
        const struct dtype *same = NULL;
        if (!json_is_object(&item)) return json_want(&item, "an object", s->e);
        TRY(read_algorithm(s, &item, &d));
        if (!d) return ERR_OK;
        for (size_t k = s->plan.rules_n; k > 0 && !same; k--)
            if (s->plan.rule[k - 1].format && dtype_same(s->plan.rule[k - 1].format, d))
                same = s->plan.rule[k - 1].format;
        TRY(format_plan_add(s->arena, &s->plan, name, false, same ? same : d, s->e));
    }
    return ERR_OK;
}

static enum err_code read_cache_algorithm(struct stored *s, const struct json *q)
{
    static const char *const KNOWN[][2] = {{"FP8", "fp8"}, {"INT8", "int8"}, {"NVFP4", "nvfp4"}};
    const char *name = "";
    TRY(read_word(s, q, "kv_cache_quant_algo", &name));
    if (*name == '\0') return stored_cache_scheme(s, q);
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strcmp(KNOWN[i][0], name) == 0) return dtype_find(KNOWN[i][1], &s->m->kv, s->e);
    return stored_unknown(s, "quantised with a cache in \"%s\", whose scales are not known", name);
}

enum err_code stored_modelopt(struct stored *s, const struct json *q)
{
    struct json j;
    struct dtype *d;
    const char *name = "";
    TRY(read_cache_algorithm(s, q));
    TRY(read_word(s, q, "quant_algo", &name));
    if (s->m->weights_unknown) return ERR_OK;
    const bool cache = json_has(q, "kv_cache_quant_algo") || json_has(q, "kv_cache_scheme");
    if (*name == '\0') /* the cache alone */
        return cache ? ERR_OK : stored_unknown(s, "stored by ModelOpt, and the file names no quant_algo", "");
    TRY(stored_keep(s, q));
    if (strcmp(name, "MIXED_PRECISION") == 0) {
        if (!json_get(q, "quantized_layers", &j))
            return stored_unknown(s, "stored by ModelOpt as \"%s\" without quantized_layers", name);
        return read_mixed(s, &j);
    }
    TRY(read_algorithm(s, q, &d));
    if (!d) return ERR_OK;
    s->plan.linear = d;
    for (size_t i = 0; i < s->m->kinds_n && s->plan.rules_n == 0; i++)
        if (s->m->kinds[i].mixer.kind == MIXER_RECURRENT)
            return stored_unknown(s, "stored as \"%s\" without a list of modules that stay, and a hybrid leaves some",
                                  name);
    /* A list of what stays names the head where it does; without a list the library's defaults hold, which leave it. */
    if (s->plan.rules_n > 0) s->plan.head = d;
    return ERR_OK;
}
