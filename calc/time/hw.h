/* hw -- what a device can do: memory, bandwidth, peak rates, links, power, price, each with where it comes from.
 *
 * A device is one unit that a process sees (one GPU of a superchip, one die of a package). Rates are dense (no
 * structured sparsity), with FP32 accumulation where the vendor distinguishes it; links count one direction. Devices
 * are data: configs/hardware/<key>.json, carried in the program (calc/base/embed.h), or a file of the user's own.
 *
 * Form of a file. Members marked * are required, and one of the three memories. A quantity is a text with its unit, or
 * {"value": text, "source": text, "date": "YYYY-MM", "status": "read"|"unverified"|"conflict", "note": text}; a plain
 * text counts as unverified. Members that are not listed are refused, so that a misspelt one is not lost.
 *   name*, aliases [..], vendor, kind (gpu cpu tpu npu asic soc), released, notes [..]
 *   memory_label "80 GB"    what the vendor says         memory_visible "79.65 GiB"  what the driver reports
 *   memory_usable "79.19 GiB"  what is left to a process after its context
 *   bandwidth* "3.35 TB/s", bandwidth_measured           peak {fp32_vector tf32 bf16 fp16 fp8 int8 fp4 int4}
 *   clock_mhz 1830 (cycles of an SM at its peak), sm_version 90 (of CUDA code, sm_90: whose kernels run)
 *   sm_count 132 (SMs, compute units or cores), l2 "50 MiB" (last-level cache), pcie "64 GB/s", power "700 W"
 *   link {"kind", "per_direction": "450 GB/s", "pair", "domain": 8, "nvls": true, source, date, status, note}
 *   fabric {"kind", "per_direction": "50 GB/s", source, date, status, note}   between nodes, of one device
 *   host_link {"kind", "per_direction": "450 GB/s", source, date, status, note}   to the host, where that is not PCIe
 *   price {"low_usd_per_h": 1.99, "high_usd_per_h": 10.8, source, date, status, note}   what is asked for it
 *   list_price_usd_per_h 4.5   what plans reckon with: of one seller on demand, for all devices the same where it can
 * be
 */
#ifndef RIDGE_TIME_HW_H
#define RIDGE_TIME_HW_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/json.h"
#include "calc/base/units.h"

enum { HW_CACHES = 3 };

/* What a peak rate is for. */
enum hw_dtype { HW_FP32_VECTOR, HW_TF32, HW_BF16, HW_FP16, HW_FP8, HW_INT8, HW_FP4, HW_INT4, HW_DTYPES_N };

/* The quantities of a device. HW_PEAK + d is the peak of dtype d. */
enum hw_field {
    HW_MEMORY_LABEL,
    HW_MEMORY_VISIBLE,
    HW_MEMORY_USABLE,
    HW_BANDWIDTH,
    HW_BANDWIDTH_MEASURED,
    HW_PEAK,
    HW_SM_COUNT = HW_PEAK + HW_DTYPES_N,
    HW_CLOCK,
    HW_SM_VERSION,
    HW_L2,
    HW_LINK,
    HW_LINK_PAIR,
    HW_LINK_DOMAIN,
    HW_FABRIC,
    HW_PCIE,
    HW_HOST_LINK,
    HW_POWER,
    HW_PRICE_LOW,
    HW_PRICE_HIGH,
    HW_PRICE_LIST,
    HW_FIELDS_N
};

enum hw_status {
    HW_ABSENT,     /* the value is unknown, NAN */
    HW_READ,       /* read in the named source */
    HW_UNVERIFIED, /* general knowledge, or no source given */
    HW_CONFLICT,   /* sources disagree; the note names the values */
};

struct hw_origin {
    enum hw_status status;
    const char *source, *date, *note; /* NULL when not given */
};

/* Texts and arrays live in the arena of the JSON document. Unknown numbers are NAN, unknown texts NULL. */
struct hw {
    const char *file; /* name for messages */
    const char *key;  /* file name without folder and ".json" */
    const char *name, *vendor, *device_kind, *released, *link_kind, *fabric_kind, *host_link_kind;
    const char *const *aliases;
    size_t aliases_n;
    const char
        *measured; /* whose measured ceilings these numbers are, a sentence without a full stop; NULL: a file's */
    const char *efficiency; /* the file of parameters that were fitted to it; NULL: what is built in for its key */
    const char *fitted;     /* that file, and since when, a sentence likewise; NULL: none */
    const char *const *notes;
    size_t notes_n;
    double memory_label_bytes, memory_visible_bytes, memory_usable_bytes;
    double bandwidth_bytes_per_s, bandwidth_measured_bytes_per_s;
    double moved_bytes_per_s; /* of a core: reading and writing, where that was measured to be faster; else 0 or NAN */
    double peak_flops_per_s[HW_DTYPES_N];
    double sm_count;
    double clock_mhz;  /* of an SM, at which the 16-bit peak is reached */
    double sm_version; /* of CUDA code, 80 for sm_80; NAN unknown, or another vendor */
    double l2_bytes;
    double cache_bytes[HW_CACHES];       /* of a core whose caches were measured, nearest first; 0 elsewhere */
    double cache_bytes_per_s[HW_CACHES]; /* at which it reads what stays in each; NAN or 0 not known */
    double processors;       /* of a CPU that was measured: of the machine, whatever threads it is of; 0 not known */
    double link_bytes_per_s; /* one direction, all links of the device together */
    double link_pair_bytes_per_s; /* one direction, to one neighbour, where there is no switch */
    double link_domain;           /* devices that the link joins */
    bool nvls;                    /* the switch reduces and multicasts; false also when not known */
    double fabric_bytes_per_s;    /* one direction, between nodes, of one device; NAN also where it has none */
    double pcie_bytes_per_s;      /* one direction */
    double host_link_bytes_per_s; /* one direction, to the host, where that is not PCIe; NAN: it is */
    double power_w;
    double price_low_usd_per_h, price_high_usd_per_h, price_list_usd_per_h;
    struct hw_origin origin[HW_FIELDS_N];
};

/* hw_parse -- a device from a JSON object of the form above. out is untouched on failure. Errors: ERR_INPUT naming
 * file, key and what was wanted; ERR_NOMEM. */
enum err_code hw_parse(const struct json *j, struct hw *out, struct err *e);

/* hw_load -- the device called name: a file when it contains '/' or ends in ".json", else a built-in by its key, an
 * alias or its full name, whatever the case, with ' ' or '_' for '-'. The beginning of several keys ("a100") is no
 * name: the devices differ. Errors: ERR_INPUT unknown, with the nearest or all such keys, or a bad file; ERR_IO;
 * ERR_NOMEM. Cost: one parse by key, a parse of every built-in by alias. */
enum err_code hw_load(struct arena *a, const char *name, struct hw *out, struct err *e);

/* hw_builtins_n, hw_load_builtin -- the built-in devices in order of key, i < hw_builtins_n(). Errors: as hw_load. */
size_t hw_builtins_n(void);
enum err_code hw_load_builtin(struct arena *a, size_t i, struct hw *out, struct err *e);

/* hw_host_rate -- bytes/s between the device and its host, one direction; NAN not known. *kind (may be NULL): "PCIe" or
 * what the file calls it. */
double hw_host_rate(const struct hw *hw, const char **kind);

/* hw_capacity_bytes -- the memory that "fits" is judged on: usable, else visible, else label. Never NAN after hw_parse.
 */
double hw_capacity_bytes(const struct hw *hw);

/* hw_peak -- dense peak of a dtype, flops/s (operations/s for integers). Errors: ERR_INPUT naming file and key when it
 * is unknown; *out_flops_per_s is then untouched. */
enum err_code hw_peak(const struct hw *hw, enum hw_dtype dtype, double *out_flops_per_s, struct err *e);

/* hw_ridge -- peak / bandwidth, flops per byte; NAN when the peak is unknown. H100 SXM bf16: 989.4e12 / 3.35e12 =
 * 295.3. Source: Williams, Waterman, Patterson, Roofline, CACM 52(4), 2009. */
double hw_ridge(const struct hw *hw, enum hw_dtype dtype);

/* hw_link_rate -- bytes/s that one of n devices sends to the other n-1 together, one direction:
 * min(link, pair * (n-1)), the second only where there is no switch (a pair in a full mesh has one link of many). NAN
 * when no link is known, n < 2 or n exceeds a known domain. */
double hw_link_rate(const struct hw *hw, size_t n);

/* hw_cache_rate -- bytes/s at which a core reads operands that stay in a cache: of the nearest cache that holds them,
 * and up to twice a cache's size still that one's, since part of them stays in it. NAN beyond the caches, or unknown.
 */
double hw_cache_rate(const struct hw *hw, double bytes);

/* hw_value, hw_field_key, hw_field_kind -- a quantity by field: its value in base units (NAN unknown), its place in the
 * file ("peak.bf16"), what it is. */
double hw_value(const struct hw *hw, enum hw_field field);
const char *hw_field_key(enum hw_field field);
enum units_kind hw_field_kind(enum hw_field field);

/* hw_dtype_name, hw_dtype_find -- "bf16" and back; find is exact and returns false for another text. */
const char *hw_dtype_name(enum hw_dtype dtype);
bool hw_dtype_find(const char *name, enum hw_dtype *out);

/* hw_pin_course -- the constants of CS336 Spring 2025, lecture 10, for its own device (h100-sxm): 989e12 flops/s in
 * bf16 and fp16, 3.35e12 bytes/s, 80e9 bytes. Other devices keep theirs. */
void hw_pin_course(struct hw *hw);

#endif
