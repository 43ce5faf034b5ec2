/* this_cpu -- the device "this-cpu": one core of the machine whose ceilings the probe measured last, and "this-cpu@8":
 * eight threads of it. It is described by
 * what was measured and by nothing else, and is in no file. */
#ifndef RIDGE_CLI_THIS_CPU_H
#define RIDGE_CLI_THIS_CPU_H

#include "calc/time/hw.h"
#include "probe/result.h"

#define THIS_CPU "this-cpu"

/* The option that says which store it is of. */
#define THIS_CPU_STORE                                                                                                 \
    {                                                                                                                  \
        .name = "store", .kind = OPTION_TEXT, .value = "FILE",                                                         \
        .help = "of -g this-cpu: another store of ridge probe than $XDG_DATA_HOME/ridge/measurements.db"               \
    }

/* Where the ceilings of a device come from. */
struct this_cpu {
    struct hw hw;
    const char *said; /* a sentence without a full stop: which machine, when, from which results */
};

/* this_cpu_named -- whether a device is called this-cpu, *threads: 1, or this-cpu@N, *threads: N, from 1 to 65536.
 * Errors: ERR_USAGE what stands behind the @ is no such number. */
enum err_code this_cpu_named(const char *name, bool *named, int64_t *threads, struct err *e);

/* this_cpu_make -- of n results that measure ceilings, in the order they were made. Of a CPU by so many threads the
 * newest identity (machine, threads, software) that has, quietly, a peak and the reading of memory gives all of them:
 * of each ceiling the best over all its runs, since what disturbs one only ever makes it lower and a run that ended
 * early has fewer. said: of how many, and where the newest is more than 10 % below, partial, or codes gave no number.
 * They are peak fp32_vector, tf32, fp16 of the unit "fp32", which those formats are turned into; peak bf16, fp8, int8,
 * fp4, int4 of the units "bf16-dot" and "bf16-tile", int8 also of "int8-dot", where that is faster; bandwidth of
 * reading memory; l2 and the caches: their sizes, and how fast each is read; memory of the machine. A run whose
 * identity cannot be read is passed over. store: the file's name for messages. Errors: ERR_NO there are none, with the
 * command that measures them; ERR_INPUT none but such whose identity is no JSON; ERR_NOMEM. */
enum err_code this_cpu_make(struct arena *a, const char *store, const struct result *r, size_t n, int64_t threads,
                            struct this_cpu *out, struct err *e);

/* this_cpu_load -- of a store, NULL: the usual one; hw.efficiency is the file of parameters that ridge fit wrote last
 * of its results. Errors: as store_open, store_read, this_cpu_make. */
enum err_code this_cpu_load(struct arena *a, const char *path, int64_t threads, struct this_cpu *out, struct err *e);

/* this_cpu_load_device -- the same of the CPU that results in the store call `device`, this one or one whose ceilings
 * were imported; its name is its key. Errors: as this_cpu_load; ERR_NO no ceilings of it. */
enum err_code this_cpu_load_device(struct arena *a, const char *path, const char *device, struct this_cpu *out,
                                   struct err *e);

#endif
