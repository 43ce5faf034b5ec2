#include "calc/time/hw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

enum { SM_MAX = 100000000, DOMAIN_MAX = 100000000 };

/* Where a quantity stands in the file and in the struct. */
struct field {
    const char *key;
    size_t offset;
    enum units_kind kind;
};

#define PEAK(name, dtype)                                                                                              \
    [HW_PEAK + (dtype)] = {"peak." name, offsetof(struct hw, peak_flops_per_s) + (dtype) * sizeof(double),             \
                           UNITS_FLOPS_PER_S}

static const struct field fields[HW_FIELDS_N] = {
    [HW_MEMORY_LABEL] = {"memory_label", offsetof(struct hw, memory_label_bytes), UNITS_BYTES},
    [HW_MEMORY_VISIBLE] = {"memory_visible", offsetof(struct hw, memory_visible_bytes), UNITS_BYTES},
    [HW_MEMORY_USABLE] = {"memory_usable", offsetof(struct hw, memory_usable_bytes), UNITS_BYTES},
    [HW_BANDWIDTH] = {"bandwidth", offsetof(struct hw, bandwidth_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_BANDWIDTH_MEASURED] = {"bandwidth_measured", offsetof(struct hw, bandwidth_measured_bytes_per_s),
                               UNITS_BYTES_PER_S},
    PEAK("fp32_vector", HW_FP32_VECTOR),
    PEAK("tf32", HW_TF32),
    PEAK("bf16", HW_BF16),
    PEAK("fp16", HW_FP16),
    PEAK("fp8", HW_FP8),
    PEAK("int8", HW_INT8),
    PEAK("fp4", HW_FP4),
    PEAK("int4", HW_INT4),
    [HW_SM_COUNT] = {"sm_count", offsetof(struct hw, sm_count), UNITS_COUNT},
    [HW_CLOCK] = {"clock_mhz", offsetof(struct hw, clock_mhz), UNITS_COUNT},
    [HW_SM_VERSION] = {"sm_version", offsetof(struct hw, sm_version), UNITS_COUNT},
    [HW_L2] = {"l2", offsetof(struct hw, l2_bytes), UNITS_BYTES},
    [HW_LINK] = {"link.per_direction", offsetof(struct hw, link_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_LINK_PAIR] = {"link.pair", offsetof(struct hw, link_pair_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_LINK_DOMAIN] = {"link.domain", offsetof(struct hw, link_domain), UNITS_COUNT},
    [HW_FABRIC] = {"fabric.per_direction", offsetof(struct hw, fabric_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_PCIE] = {"pcie", offsetof(struct hw, pcie_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_HOST_LINK] = {"host_link.per_direction", offsetof(struct hw, host_link_bytes_per_s), UNITS_BYTES_PER_S},
    [HW_POWER] = {"power", offsetof(struct hw, power_w), UNITS_WATTS},
    [HW_PRICE_LOW] = {"price.low_usd_per_h", offsetof(struct hw, price_low_usd_per_h), UNITS_USD},
    [HW_PRICE_HIGH] = {"price.high_usd_per_h", offsetof(struct hw, price_high_usd_per_h), UNITS_USD},
    [HW_PRICE_LIST] = {"list_price_usd_per_h", offsetof(struct hw, price_list_usd_per_h), UNITS_USD},
};

static const char *const status_names[] = {
    [HW_ABSENT] = "absent", [HW_READ] = "read", [HW_UNVERIFIED] = "unverified", [HW_CONFLICT] = "conflict"};

/* Legal members, by the place of the object. The members of "peak" are the dtypes. */
#define ORIGIN_KEYS "source", "date", "status", "note"
static const char *const root_keys[] = {"name",
                                        "aliases",
                                        "vendor",
                                        "kind",
                                        "released",
                                        "notes",
                                        "memory_label",
                                        "memory_visible",
                                        "memory_usable",
                                        "bandwidth",
                                        "peak",
                                        "sm_count",
                                        "l2",
                                        "link",
                                        "pcie",
                                        "power",
                                        "price",
                                        "bandwidth_measured",
                                        "fabric",
                                        "host_link",
                                        "clock_mhz",
                                        "sm_version",
                                        "list_price_usd_per_h"};
static const char *const peak_keys[] = {"fp32_vector", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"};
static const char *const link_keys[] = {"kind", "per_direction", "pair", "domain", "nvls", ORIGIN_KEYS};
static const char *const fabric_keys[] = {"kind", "per_direction", ORIGIN_KEYS};
static const char *const price_keys[] = {"low_usd_per_h", "high_usd_per_h", ORIGIN_KEYS};
static const char *const value_keys[] = {"value", ORIGIN_KEYS};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double *slot(struct hw *hw, enum hw_field f) { return (double *)(void *)((char *)hw + fields[f].offset); }

/* -- reading -- */

static enum err_code check_keys(const struct json *j, const char *const *keys, size_t n, struct err *e)
{
    if (!json_is_object(j)) return json_want(j, "an object", e);
    const char *key;
    struct json member;
    for (size_t i = 0; json_at(j, i, &key, &member); i++) {
        size_t k = 0;
        while (k < n && strcmp(keys[k], key) != 0) k++;
        if (k < n) continue;
        char shown[64], near[128];
        return err_set(e, ERR_INPUT, "%s: %s%s%s: no such member of a hardware file%s", j->file, j->path,
                       j->path[0] ? "." : "", text_clean(shown, sizeof shown, key, strlen(key)),
                       text_suggest(near, sizeof near, key, keys, sizeof *keys, n));
    }
    return ERR_OK;
}

static enum err_code text_at(const struct json *j, const char *key, const char **out, struct err *e)
{
    struct json v;
    return json_get(j, key, &v) ? json_str(&v, out, e) : ERR_OK;
}

static enum err_code texts_at(const struct json *j, const char *key, const char *const **out, size_t *out_n,
                              struct err *e)
{
    struct json v, item;
    if (!json_get(j, key, &v)) return ERR_OK;
    if (!json_is_array(&v)) return json_want(&v, "an array of texts", e);
    const size_t n = json_len(&v);
    const char **texts = arena_array(j->arena, n, sizeof *texts);
    if (!texts) return err_nomem(e);
    for (size_t i = 0; i < n && json_at(&v, i, NULL, &item); i++) TRY(json_str(&item, &texts[i], e));
    *out = texts;
    *out_n = n;
    return ERR_OK;
}

/* Status, source, date and note of a value object; a bare text has none of them. */
static enum err_code parse_origin(const struct json *j, struct hw_origin *out, struct err *e)
{
    *out = (struct hw_origin){.status = HW_UNVERIFIED};
    if (!json_is_object(j)) return ERR_OK;
    TRY(text_at(j, "source", &out->source, e));
    TRY(text_at(j, "date", &out->date, e));
    TRY(text_at(j, "note", &out->note, e));
    struct json v;
    if (!json_get(j, "status", &v)) return ERR_OK;
    const char *status;
    TRY(json_str(&v, &status, e));
    for (enum hw_status s = HW_READ; s <= HW_CONFLICT; s++) {
        if (strcmp(status, status_names[s]) != 0) continue;
        out->status = s;
        return ERR_OK;
    }
    return json_want(&v, "\"read\", \"unverified\" or \"conflict\"", e);
}

static enum err_code parse_watts(const char *s, double *out, struct err *e)
{
    char *end;
    const double v = strtod(s, &end);
    while (*end == ' ') end++;
    if (end == s || strcmp(end, "W") != 0)
        return err_set(e, ERR_INPUT, "found \"%.40s\", wanted watts such as 700 W", s);
    *out = v;
    return ERR_OK;
}

/* The number of one quantity in base units. */
static enum err_code parse_number(const struct json *j, enum units_kind kind, double *out, struct err *e)
{
    int64_t count;
    const char *s = NULL;
    switch ((int)kind) {
    case UNITS_COUNT:
        TRY(json_int(j, 1, SM_MAX, &count, e));
        *out = (double)count;
        return ERR_OK;
    case UNITS_USD: TRY(json_num(j, out, e)); break;
    default:
        if (!json_is_string(j)) {
            return json_want(j,
                             kind == UNITS_BYTES         ? "a text with its unit, such as \"80 GB\" or \"79.19 GiB\""
                             : kind == UNITS_FLOPS_PER_S ? "a text with its unit, such as \"989.4 TFLOP/s\""
                             : kind == UNITS_WATTS       ? "a text with its unit, such as \"700 W\""
                                                         : "a text with its unit, such as \"3.35 TB/s\"",
                             e);
        }
        TRY(json_str(j, &s, e));
        const enum err_code code = kind == UNITS_BYTES   ? units_parse_bytes(s, out, e)
                                   : kind == UNITS_WATTS ? parse_watts(s, out, e)
                                                         : units_parse_rate(s, kind, out, e);
        if (code != ERR_OK) {
            if (!e) return ERR_INPUT;
            e->code = ERR_INPUT;
            return err_prepend(e, "%s: %s: ", j->file, j->path);
        }
    }
    if (!(*out > 0 && isfinite(*out))) return json_want(j, "more than zero, and finite", e);
    return ERR_OK;
}

static enum err_code parse_field(const struct json *root, enum hw_field f, struct hw *hw, struct err *e)
{
    struct json v, inner, holder;
    double *number = slot(hw, f);
    *number = (double)NAN;
    if (!json_get(root, fields[f].key, &v)) return ERR_OK;
    holder = v;
    if (f == HW_LINK || f == HW_LINK_PAIR || f == HW_LINK_DOMAIN) {
        (void)json_get(root, "link", &holder);
    } else if (f == HW_FABRIC) {
        (void)json_get(root, "fabric", &holder);
    } else if (f == HW_HOST_LINK) {
        (void)json_get(root, "host_link", &holder);
    } else if (f == HW_PRICE_LOW || f == HW_PRICE_HIGH) {
        (void)json_get(root, "price", &holder);
    } else if (json_is_object(&v)) {
        TRY(check_keys(&v, value_keys, COUNT(value_keys), e));
        if (!json_get(&v, "value", &inner)) return json_want(&v, "an object with \"value\"", e);
        v = inner;
    }
    TRY(parse_number(&v, fields[f].kind, number, e));
    return parse_origin(&holder, &hw->origin[f], e);
}

/* -- what must hold of the whole -- */

static enum err_code check_whole(const struct json *j, const struct hw *hw, struct err *e)
{
    static const char *const kinds[] = {"gpu", "cpu", "tpu", "npu", "asic", "soc"};
    if (!hw->name || !hw->name[0]) return err_set(e, ERR_INPUT, "%s: name: missing, wanted a text", j->file);
    if (isnan(hw->bandwidth_bytes_per_s))
        return err_set(e, ERR_INPUT, "%s: bandwidth: missing, wanted a rate such as \"3.35 TB/s\"", j->file);
    if (isnan(hw_capacity_bytes(hw)))
        return err_set(e, ERR_INPUT, "%s: memory_label: missing, wanted a size such as \"80 GB\"", j->file);
    size_t k = 0;
    while (hw->device_kind && k < COUNT(kinds) && strcmp(kinds[k], hw->device_kind) != 0) k++;
    struct json v;
    if (k == COUNT(kinds) && json_get(j, "kind", &v)) return json_want(&v, "gpu, cpu, tpu, npu, asic or soc", e);
    if (hw->memory_usable_bytes > hw->memory_visible_bytes)
        return err_set(e, ERR_INPUT, "%s: memory_usable: larger than memory_visible", j->file);
    /* a label of binary units that is written in decimal ones is 7.4 % below: more is another device's */
    const double label = 1.08 * hw->memory_label_bytes;
    if (hw->memory_usable_bytes > label || hw->memory_visible_bytes > label)
        return err_set(e, ERR_INPUT, "%s: memory_label: smaller than memory_%s", j->file,
                       hw->memory_usable_bytes > label ? "usable" : "visible");
    if (hw->price_low_usd_per_h > hw->price_high_usd_per_h)
        return err_set(e, ERR_INPUT, "%s: price: low_usd_per_h is above high_usd_per_h", j->file);
    return ERR_OK;
}

static const char *key_of(const struct json *j)
{
    const char *slash = strrchr(j->file, '/');
    const char *stem = slash ? slash + 1 : j->file;
    size_t len = strlen(stem);
    if (len > 5 && strcmp(stem + len - 5, ".json") == 0) len -= 5;
    return arena_strndup(j->arena, stem, len);
}

enum err_code hw_parse(const struct json *j, struct hw *out, struct err *e)
{
    struct json part;
    struct hw hw = {.file = j->file};
    TRY(check_keys(j, root_keys, COUNT(root_keys), e));
    if (json_get(j, "peak", &part)) TRY(check_keys(&part, peak_keys, COUNT(peak_keys), e));
    if (json_get(j, "price", &part)) TRY(check_keys(&part, price_keys, COUNT(price_keys), e));
    if (json_get(j, "link", &part)) {
        TRY(check_keys(&part, link_keys, COUNT(link_keys), e));
        TRY(text_at(&part, "kind", &hw.link_kind, e));
        struct json nvls;
        if (json_get(&part, "nvls", &nvls)) TRY(json_bool(&nvls, &hw.nvls, e));
    }
    if (json_get(j, "fabric", &part)) {
        TRY(check_keys(&part, fabric_keys, COUNT(fabric_keys), e));
        TRY(text_at(&part, "kind", &hw.fabric_kind, e));
    }
    if (json_get(j, "host_link", &part)) {
        TRY(check_keys(&part, fabric_keys, COUNT(fabric_keys), e));
        TRY(text_at(&part, "kind", &hw.host_link_kind, e));
    }
    TRY(text_at(j, "name", &hw.name, e));
    TRY(text_at(j, "vendor", &hw.vendor, e));
    TRY(text_at(j, "kind", &hw.device_kind, e));
    TRY(text_at(j, "released", &hw.released, e));
    TRY(texts_at(j, "aliases", &hw.aliases, &hw.aliases_n, e));
    TRY(texts_at(j, "notes", &hw.notes, &hw.notes_n, e));
    for (int f = 0; f < HW_FIELDS_N; f++) TRY(parse_field(j, (enum hw_field)f, &hw, e));
    TRY(check_whole(j, &hw, e));
    hw.key = key_of(j);
    if (!hw.key) return err_nomem(e);
    *out = hw;
    return ERR_OK;
}

/* -- derived -- */

double hw_cache_rate(const struct hw *hw, double bytes)
{
    double below_bytes = 0, below_rate = (double)NAN;
    for (size_t i = 0; i < HW_CACHES; i++) {
        const double size = hw->cache_bytes[i], rate = hw->cache_bytes_per_s[i];
        if (!(size > below_bytes)) continue;
        if (bytes <= 2 * below_bytes && !isnan(below_rate)) return fmax(rate, below_rate);
        if (bytes <= size) return rate > 0 ? rate : (double)NAN;
        below_bytes = size;
        below_rate = rate > 0 ? rate : (double)NAN;
    }
    return bytes <= 2 * below_bytes ? below_rate : (double)NAN;
}

double hw_host_rate(const struct hw *hw, const char **kind)
{
    const bool own = hw->host_link_bytes_per_s > 0;
    if (kind) *kind = own && hw->host_link_kind ? hw->host_link_kind : own ? "the link to the host" : "PCIe";
    return own ? hw->host_link_bytes_per_s : hw->pcie_bytes_per_s;
}

double hw_capacity_bytes(const struct hw *hw)
{
    if (!isnan(hw->memory_usable_bytes)) return hw->memory_usable_bytes;
    return isnan(hw->memory_visible_bytes) ? hw->memory_label_bytes : hw->memory_visible_bytes;
}

enum err_code hw_peak(const struct hw *hw, enum hw_dtype dtype, double *out_flops_per_s, struct err *e)
{
    const double peak = hw->peak_flops_per_s[dtype];
    if (isnan(peak)) {
        return err_set(e, ERR_INPUT, "%s: %s: not known for %s, wanted a rate such as \"989.4 TFLOP/s\"", hw->file,
                       fields[HW_PEAK + (int)dtype].key, hw->name);
    }
    *out_flops_per_s = peak;
    return ERR_OK;
}

double hw_ridge(const struct hw *hw, enum hw_dtype dtype)
{
    return hw->peak_flops_per_s[dtype] / hw->bandwidth_bytes_per_s;
}

double hw_link_rate(const struct hw *hw, size_t n)
{
    if (n < 2 || (double)n > hw->link_domain) return (double)NAN;
    const double pairs = hw->link_pair_bytes_per_s * (double)(n - 1);
    return pairs < hw->link_bytes_per_s ? pairs : hw->link_bytes_per_s;
}

double hw_value(const struct hw *hw, enum hw_field field)
{
    double v;
    memcpy(&v, (const char *)hw + fields[field].offset, sizeof v);
    return v;
}

const char *hw_field_key(enum hw_field field) { return fields[field].key; }

enum units_kind hw_field_kind(enum hw_field field) { return fields[field].kind; }

const char *hw_dtype_name(enum hw_dtype dtype) { return peak_keys[dtype]; }

bool hw_dtype_find(const char *name, enum hw_dtype *out)
{
    for (int d = 0; d < HW_DTYPES_N; d++) {
        if (strcmp(peak_keys[d], name) != 0) continue;
        *out = (enum hw_dtype)d;
        return true;
    }
    return false;
}

void hw_pin_course(struct hw *hw)
{
    if (strcmp(hw->key, "h100-sxm") != 0) return;
    hw->peak_flops_per_s[HW_BF16] = hw->peak_flops_per_s[HW_FP16] = 989e12; /* not a unit */
    hw->bandwidth_bytes_per_s = 3.35e12;                                    /* not a unit */
    hw->memory_usable_bytes = 80e9;                                         /* not a unit */
}
