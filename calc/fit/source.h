/* source -- which measured classes of kernels stand for a device and a framework, and where they come from.
 *
 * The device's own files come first, those of the nearest measured device behind them: its parameters are parts of
 * datasheet rates and start-up times, so with the other device's rates they are transferred by datasheet ratios. A
 * class is looked for in this order: of the framework and the device; of another framework on the device; of the
 * framework and then another one on the nearest device; nccl's, of the device and then the other. What a transfer costs
 * is measured: efficiency_factor. */
#ifndef RIDGE_FIT_SOURCE_H
#define RIDGE_FIT_SOURCE_H

#include "calc/fit/efficiency.h"

enum { SOURCE_FILES_MAX = 16 };

enum source_transfer { SOURCE_OWN, SOURCE_SAME_GENERATION, SOURCE_OTHER_GENERATION, SOURCE_TRANSFERS_N };

/* "of its generation" and the like; "" of the device's own. */
extern const char *const source_transfers[SOURCE_TRANSFERS_N];

struct source {
    struct efficiency file[SOURCE_FILES_MAX];
    enum source_transfer transfer[SOURCE_FILES_MAX];
    size_t n;
    bool named;            /* the first file was asked for: its classes go before all others */
    const char *framework; /* "vllm" "trtllm" "sglang"; "ridge" the probe's own kernels; "none": kernels alone, as in a
                              compiled loop */
    const char *kernels;   /* whose kernels: those of the framework, of vllm with none */
    const char *name;      /* of the first file: "h100-sxm.vllm" */
    bool sorts_few[2];     /* experts of 16 bits, of fp8: a few tokens are sorted by expert where the measured kernel
                              does not; SGLang's are, by every framework else as measured unless said otherwise */
};

/* source_open -- the files of hw. name NULL: hw->efficiency, else its own for the framework, else its own, else those
 * of the nearest measured device; a name or a path comes first. framework NULL: that of the file named, else vllm.
 * Errors: ERR_USAGE another framework, or a device of a kind that nothing measured is of; as efficiency_load. */
enum err_code source_open(struct arena *a, const struct hw *hw, const char *name, const char *framework,
                          struct source *out, struct err *e);

/* What is wanted of a class: its name begins with `prefix`, holds `with` and lacks `without` (NULL: anything). Classes
 * of caches in pages are none of these: a step's cache is in one piece. */
struct source_want {
    const char *prefix, *with, *without;
};

struct source_class {
    const struct fit_class *class; /* NULL: nobody measured one */
    enum source_transfer transfer;
    const char *file;
    bool other_framework;
};

/* source_find -- the class for any of n wishes, the first wish first within every place. Of several codes
 * of one kernel on a core the one that reaches more of both rates counts. Cost: O(classes). */
struct source_class source_find(const struct source *s, const struct source_want *want, size_t n);

#endif
