/* scope -- options that several commands share, and what they open: a model with changes, a device and how many of it,
 * conventions; and the names that a person's expression may use. */
#ifndef RIDGE_CLI_SCOPE_H
#define RIDGE_CLI_SCOPE_H

#include "calc/base/hash.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/lora_options.h"
#include "calc/cli/this_cpu.h"
#include "calc/learn/quantity.h"
#include "calc/sym/parse.h"

/* Rows of an option table. */
#define SCOPE_TEXT(name_, letter_, value_, fallback_, help_)                                                           \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_   \
    }
#define SCOPE_MODEL                                                                                                    \
    {.name = "model",                                                                                                  \
     .letter = 'm',                                                                                                    \
     .kind = OPTION_TEXT,                                                                                              \
     .value = "NAME",                                                                                                  \
     .group = "Where",                                                                                                 \
     .help = "put in the sizes of a model; without it every size is a symbol"},                                        \
        {.name = "set",                                                                                                \
         .kind = OPTION_MANY,                                                                                          \
         .value = "KEY=VALUE,...",                                                                                     \
         .help = "change a key of the config before reading it; K=8 and other letters of the course work too"},        \
        {.name = "what-if",                                                                                            \
         .kind = OPTION_MANY,                                                                                          \
         .value = "CHANGE,...",                                                                                        \
         .help = "change the model that was read: gqa=8, mla=512+64, ... (ridge list what-ifs)"},                      \
        SCOPE_TEXT("weights", 0, "FORMAT", NULL, "number format of the weights (default: as stored)"),                 \
        SCOPE_TEXT("kv", 0, "FORMAT", NULL, "number format of the cache"),                                             \
        SCOPE_TEXT("activations", 0, "FORMAT", NULL, "number format of activations"), LORA_OPTIONS,                    \
        SCOPE_TEXT("block", 0, "N", NULL, "diffusion models: tokens of a block, those before it cached"),              \
        SCOPE_TEXT("steps", 0, "N", NULL, "diffusion models: passes that settle a block (default: one a token)"),      \
        SCOPE_TEXT("source", 0, "N", NULL,                                                                             \
                   "encoder-decoders: tokens that the encoder has read (default: the file's)"),                        \
        TOWERS_OPTION,                                                                                                 \
        SCOPE_TEXT("gpu", 'g', "NAME[:N]", NULL, "put in the rates of a device; without it they are symbols"),         \
        THIS_CPU_STORE, SCOPE_TEXT("tp", 0, "N", NULL, "GPUs that share the model (default: all of -g)"),              \
        SCOPE_TEXT("layer", 0, "N", NULL, "which kind of layer, from 1, where a model has several")
#define SCOPE_CONVENTIONS(phase_)                                                                                      \
    SCOPE_TEXT("phase", 0, "any|prefill|decode", phase_, "T free, T = S, or T = 1 in quantities of a layer"),          \
        SCOPE_TEXT("tokens", 0, "N", NULL, "query tokens of a decode step (a verify step has several)"),               \
        SCOPE_TEXT("prefill", 0, "one|together", "one", "prefill one prompt alone, or B together"),                    \
        SCOPE_TEXT("fidelity", 0, "bound|roofline", "roofline", "seconds: pooled, or operator by operator"),           \
    {                                                                                                                  \
        .name = "course", .kind = OPTION_FLAG,                                                                         \
        .help = "as CS336 lecture 10 counts: all S*T pairs, K = N, N*H = D, bound, its constants on h100-sxm"          \
    }

/* scope_list -- "a,b,c" as a list. Errors: ERR_USAGE an empty piece, naming the option `what`. */
enum err_code scope_list(struct arena *a, const char *text, const char *what, const char ***out, size_t *n,
                         struct err *e);

/* scope_settings -- --set "KEY=VALUE,..." (NULL: none). Errors: ERR_USAGE. */
enum err_code scope_settings(struct arena *a, const char *text, const struct model_setting **out, size_t *n,
                             struct err *e);

/* scope_formats -- whether an option and a what-if give the same numbers two formats. Errors: ERR_USAGE. */
enum err_code scope_formats(struct arena *a, const struct option_values *v, struct err *e);

/* scope_gpu -- "NAME[:N]" as a device and how many; this-cpu of the store that --store names. Errors: as hw_load,
 * units_parse_count, this_cpu_load. */
enum err_code scope_gpu(struct arena *a, const struct option_values *v, const char *text, struct hw *hw, int64_t *n,
                        struct err *e);

/* scope_gpu_hash -- of the device's numbers. Returns out. */
const char *scope_gpu_hash(const struct hw *hw, char out[HASH_TEXT_MAX]);

/* What the options opened. */
struct scope {
    struct quantity_scope quantity;
    enum quantity_phase phase;
    struct model model; /* filled when --model is given */
    struct hw hw;       /* filled when --gpu is given */
    int64_t gpus;       /* 0 without --gpu */
    int64_t tokens;     /* --tokens; 0 without */
};

/* scope_open -- read the options above; out is borrowed from for as long as its quantity scope is used. The sizes of a
 * model and the rates of a device are numbers, except `free`, a symbol by name (NULL: none). Errors: those of the
 * options; as model_load, hw_load; ERR_USAGE no such symbol, or one that nothing is free in (t, r, M; T in a phase; L
 * of layers of several kinds; a size that the model has not). */
enum err_code scope_open(struct arena *a, const struct option_values *v, const char *free, struct scope *out,
                         struct err *e);

/* scope_free -- leave a symbol free by name, where that can be (scope_open does); before a device is put in. */
enum err_code scope_free(struct scope *s, const char *name, struct err *e);

/* scope_numbers -- a point given on the command line: --batch and --context as bindings of B and S (where given or
 * where they have defaults), at most 2. Errors: ERR_USAGE, also for a context beyond a learned position table. */
enum err_code scope_numbers(const struct scope *s, const struct option_values *v, struct sym_binding out[2], size_t *n,
                            struct err *e);

/* scope_context -- whether a pass at a context can be: not beyond the model's learned position table, nor shorter than
 * the query tokens of a step. Errors: ERR_USAGE. */
enum err_code scope_context(const struct scope *s, int64_t context, struct err *e);

enum { SCOPE_SYMBOLS = 128 };

/* What a person's expression may name: symbols, the device's rates, plain names and quantities of a phase. With a model
 * every symbol is the number of the whole model, but for the free one; T is what the phase makes it. Plain names are
 * read as symbols, so that what an expression uses is known, and get their values from scope_settle. It must outlive
 * the parse. Each quantity is derived once, however often an expression names it: a text of calls stays as cheap as one
 * of symbols. scope_asker_make -- Errors: as quantity_named_all. scope_names_of -- as sym_parse takes it. */
struct scope_asker {
    const struct scope *scope;
    struct parse_symbol symbols[SCOPE_SYMBOLS];
    size_t n_symbols;
    struct quantity_named named[QUANTITY_NAMED_MAX];
    size_t n_named;
    struct scope_answer {
        const char *call; /* "flops(mlp" */
        const struct sym *value;
    } known[256];
    size_t n_known;
    uint64_t kinds; /* of layer that the quantities so far are of */
    unsigned units; /* matrix units that they run on, bits of enum hw_dtype */
    bool decodes;   /* a decode step is among them */
    bool resides;   /* resident_bytes is */
};
enum err_code scope_asker_make(const struct scope *s, struct scope_asker *out, struct err *e);
struct parse_names scope_names_of(struct scope_asker *k);

/* scope_dims -- whether two texts, or the sides of an equation (right NULL), that were read before are measured in the
 * same, and the terms of each sum too: bytes are not seconds. Sizes without units, and plain numbers, may be anything
 * (calc/sym/dims.h). Errors: ERR_USAGE, naming both. */
enum err_code scope_dims(const struct scope_asker *k, const char *left, const char *right, struct err *e);

/* scope_settle -- put the values of plain names into n expressions that were parsed with k. ridge and peak are those of
 * the unit that all topics named beside them run on, where that is one, else of the linear layers' format. *note: a
 * sentence on which unit that is, where it is open; NULL: nothing to say. Errors: ERR_USAGE a symbol that the model has
 * several numbers for, or none; the free one does not occur; --tokens without a decode step; --no-towers without
 * resident_bytes; ERR_INPUT no rate known.
 */
enum err_code scope_settle(struct scope_asker *k, size_t n, const struct sym **e, const char **note, struct err *err);

/* scope_limits -- between what numbers the free symbol makes sense: k up to E, K up to N, T up to the context (0:
 * none is given), S up to the rows of a learned position table and from the query tokens on. *low, *high NAN: no limit;
 * *text names it ("up to E = 8"). Errors: as sizes_of. */
struct scope_limits {
    double low, high;
    const char *text;
};
enum err_code scope_limits(const struct scope_asker *k, int64_t context, struct scope_limits *out, struct err *e);

/* scope_missing -- what would give the symbols of n expressions, but for var, their values: "--context for S; -g for
 * peak_bf16, bandwidth". NULL: nothing is missing. */
const char *scope_missing(const struct scope_asker *k, size_t n, const struct sym *const *e, const struct sym *var);

/* scope_parse_failed -- the sentence of a parse that failed, with the text and a caret below it; returns e->code. what:
 * put in front ("--against "). */
enum err_code scope_parse_failed(const char *what, const char *text, const struct parse_error *where, struct err *e);

#endif
