/* rows -- measured calls of kernels, from CSV files: one schema for all kinds.
 *
 * A file's kind follows from its columns (rows.c has the table); in one of several kinds each row says it (row_kind); a
 * column that no table names is passed over, and so is a row whose outcome says that it has no number ("wrong",
 * "noisy", ...: not "measured" or "imported"). Seconds come from time_s or latency_us. A file whose name, or a row
 * whose device or machine, names another device by the first word of its key (h100, a100, ...) is passed over. So is a
 * row whose device is a core's but not the one asked for: of a core the text must be its key, its name or an alias, of
 * the rest of devices that of an export of the probe must name them. */
#ifndef RIDGE_FIT_ROWS_H
#define RIDGE_FIT_ROWS_H

#include "calc/time/kernel.h"

struct rows_format;

/* How many kinds of rows (measured in the store that wrote the file, imported there, ...) count before a row where they
 * are of one call by one code: a column of any row, empty: none. */
#define ROWS_PRECEDENCE "precedence"
enum { ROWS_PRECEDENCE_MAX = 1000000 };

struct row {
    struct kernel kernel;
    const char *class_name; /* calls that one set of parameters describes */
    const char *family;     /* calls of one shape but for tokens */
    /* "" where the file has none; state: "cold" where every call finds its operands in memory */
    const char *op, *dtype, *kv_dtype, *framework, *version, *kernel_name, *device, *state;
    const char *file;
    size_t line;
    const struct rows_format *format; /* whose columns it has, of a file */
    double time_s;
    bool imported;      /* of the store: of a file, not measured there */
    int64_t precedence; /* of one call by one code the least counts: of the store 0 measured there, 1 of a file, more
                           of one that says so; of a file its cell, 0 without one */
    bool probed;        /* by a probe, which measured the ceilings around it */
    bool uncalibrated;  /* of those: of a machine too noisy for its ceilings, so that no fit has it */
    bool unbounded;     /* of those: a ceiling around it is not known, so that no time of it can be foretold */
};

/* A file that was read, or why it was passed over. */
struct rows_file {
    const char *path;
    size_t n;
    const char *why;           /* NULL: read */
    const char *hash;          /* of the rows, where they are no file's; NULL: the file's */
    const char *dtype_assumed; /* the file has no column for it; NULL it has, or nothing depends on it */
    enum kernel_kind kind;     /* where dtype_assumed */
};

struct rows {
    struct row *v;
    size_t n;
    struct rows_file *files;
    size_t files_n;
    size_t lines_n;  /* lines behind headers, kept or not */
    size_t others_n; /* of those, rows of another device */
};

/* What to keep; NULL all. */
struct rows_filter {
    const struct hw *hw;
    const char *framework, *kinds; /* kinds: names joined by ',' */
    bool lenient;                  /* a file with columns of no kind is passed over (set for directories and globs) */
};

/* rows_assumed -- the sentence that says as what rows without a column dtype were taken, each format once; NULL in *out
 * where none was. Errors: ERR_NOMEM. */
enum err_code rows_assumed(struct arena *a, const struct rows *rows, const char **out, struct err *e);

/* rows_others -- the sentence that says how many rows were of another device; NULL in *out where none was. Errors:
 * ERR_NOMEM. */
enum err_code rows_others(struct arena *a, const struct rows *rows, const char **out, struct err *e);

/* rows_is_of -- whether a text is the key, the name or an alias of a device. */
bool rows_is_of(const struct hw *hw, const char *device);

/* rows_read -- the rows of `from`: files, directories (their *.csv) and glob patterns, joined by ','. In order of path
 * and line. Errors: ERR_USAGE nothing matches, or an unknown kind; ERR_IO; ERR_INPUT naming file and line: columns
 * missing or named twice, a cell that is no number, no whole number where it counts, or out of range, a dtype that is
 * not known; ERR_NOMEM. Cost: O(bytes). */
enum err_code rows_read(struct arena *a, const char *from, const struct rows_filter *filter, struct rows *out,
                        struct err *e);

/* rows_read_file -- the same of one file, appended to out. */
enum err_code rows_read_file(struct arena *a, const char *path, const struct rows_filter *filter, struct rows *out,
                             struct err *e);

/* rows_check_kinds -- that each of the names, joined by ',', is a kind of kernel; NULL is legal. Errors: ERR_USAGE with
 * those that there are. */
enum err_code rows_check_kinds(const char *kinds, struct err *e);

/* rows_of_host -- whether rows of a device are calls of one core: kernel.host of them; false without a device. */
bool rows_of_host(const struct hw *hw);

/* rows_attention -- what the attention kernels of an engine ("vllm", "trtllm", ...) are known to make of heads, groups
 * and widths: sets ungrouped, padded_dim and flash2 of a prefill or decode call. */
void rows_attention(struct kernel *k, const char *framework);

/* rows_sparse -- sparse (kernel.h) of experts by a kernel of that name, or of a class that has it in its name: vLLM's
 * in Triton leaves a few tokens unsorted, with four experts or more for each choice (fused_moe.py, SPARSITY_FACTOR);
 * of others nothing is known: 0. */
double rows_sparse(const char *kernel);

/* rows_tile_rows -- tile_rows (kernel.h) likewise: the fp8 kernel in Triton has tiles of 16 rows for a few tokens and
 * swaps its operands, so that the 64 of an instruction are columns (BLOCK_SIZE_M of vLLM's and SGLang's fused_moe.py;
 * vLLM pull 36559, SGLang pull 15712); of others nothing is known: 0. */
double rows_tile_rows(const char *kernel);

/* rows_moe_launches -- kernels that one call of experts of many tokens launches, by a kernel of that name: choice, both
 * products, what is between them, the weighted sum; in Triton sorting is two (align, count and sort; vLLM
 * moe_align_sum_kernels.cu, SGLang's likewise) and in fp8 each product's input has its scales found first; CUTLASS of
 * TensorRT-LLM, FlashInfer's too, makes its maps in three, gathers rows, and sets up the groups' shapes in one, where
 * scales are of blocks in place of that each product's input is quantised (TensorRT-LLM moe_kernels.cu,
 * threeStepBuildExpertMapsSortFirstToken, expandInputRows, BlockScaleFC1 and 2). */
double rows_moe_launches(const char *kernel, bool blocks);

#endif
