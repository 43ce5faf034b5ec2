/* efficiency -- fitted parameters as a file: configs/efficiency/<device>[.<framework>].json, or one of the user's.
 *
 * {"schema": "ridge.efficiency.1", "device", "framework", "source", "date", "files": [{"name", "rows", "hash"}],
 *  "classes": [{"name", "form", "rows", "families", "params": [{"name", "unit", "value", "low", "high", "at_limit"}],
 *    "baseline": [3 numbers], "error": {...}, "bands": [{"regime", "rows", "p10", "p50", "p90"}]}]}
 * Fractions are of one, times seconds, factors of a band measured over calibrated. */
#ifndef RIDGE_FIT_EFFICIENCY_H
#define RIDGE_FIT_EFFICIENCY_H

#include "calc/base/json.h"
#include "calc/base/out.h"
#include "calc/fit/fit.h"

struct efficiency_origin {
    const char *device, *framework, *source, *date; /* framework, source, date may be NULL */
};

/* efficiency_write -- classes with where they come from. Same input, same bytes. Errors: as hash_file (the rows' files
 * are named with their hashes), as out_check. */
enum err_code efficiency_write(struct out *o, const struct efficiency_origin *origin, const struct rows *rows,
                               const struct fit_class *classes, size_t n, struct err *e);

/* A file of parameters, read. */
struct efficiency {
    const char *file, *device, *source;
    const char *framework;           /* NULL: of several */
    const struct fit_class *classes; /* name, n_params, p, baseline and band; the rest is 0 */
    size_t n;
};

/* efficiency_load -- by path (has '/' or ends in ".json"), else a built-in by name: "h100-sxm.vllm". Errors: ERR_INPUT
 * naming file and key: unknown name, a form or parameter that is not this program's, a value outside its bounds, a band
 * that is not ascending; ERR_IO; ERR_NOMEM. */
enum err_code efficiency_load(struct arena *a, const char *name, struct efficiency *out, struct err *e);

/* efficiency_transfer -- the parameters of f, fitted on `from`, for `to`: each by what it is (kernel_scale), as it was
 * where a datasheet does not say. moved: their bands, at least efficiency_factor wide. Errors: ERR_NOMEM. */
enum err_code efficiency_transfer(struct arena *a, const struct efficiency *f, const struct hw *from,
                                  const struct hw *to, struct efficiency *out, struct err *e);

/* efficiency_same_generation -- the same vendor, the 16-bit peak of one SM within a quarter, bf16 and fp8 each on both
 * or on neither. */
bool efficiency_same_generation(const struct hw *x, const struct hw *y);

/* efficiency_factor -- within what factor either way four of five calls of a kind take what parameters of another
 * device say: geometric mean over transfers that were measured, none of them to `to` (key), within a generation or
 * between two; of a kind without any the largest of all kinds. Source: MODEL.md "Transfers". */
double efficiency_factor(enum kernel_kind kind, bool same_generation, const char *to);

/* efficiency_load_device -- all built-in files of a device ("h100-sxm" and "h100-sxm.vllm", ...) as one, framework and
 * source NULL. Errors: ERR_USAGE there is none; as efficiency_load. */
enum err_code efficiency_load_device(struct arena *a, const char *device, struct efficiency *out, struct err *e);

/* efficiency_find -- the class of a name, NULL when the file has none. */
const struct fit_class *efficiency_find(const struct efficiency *f, const char *class_name);

#endif
