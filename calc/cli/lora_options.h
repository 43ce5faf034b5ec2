/* lora_options -- the options of several commands that say which adapters are served beside the model. */
#ifndef RIDGE_CLI_LORA_OPTIONS_H
#define RIDGE_CLI_LORA_OPTIONS_H

#include "calc/base/arena.h"
#include "calc/cli/option.h"
#include "calc/cost/lora.h"

#define LORA_OPTION(name_, value_, help_)                                                                              \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_TEXT, .value = value_, .help = help_                                             \
    }

/* Rows of an option table, by vLLM's names. */
#define LORA_OPTIONS                                                                                                   \
    LORA_OPTION("max-loras", "N",                                                                                      \
                "serve low-rank adapters: N slots of memory for them beside each product, as vLLM and SGLang allot"),  \
        LORA_OPTION("max-lora-rank", "R",                                                                              \
                    "rank of the slots (default: that of --lora, rounded up to one that vLLM takes; else 16)"),        \
        LORA_OPTION("lora-target-modules", "MODULE,...",                                                               \
                    "products that have slots: q, k, v, o, gate, up, down, ... as in --lora (default: all of them)"),  \
        LORA_OPTION("loras", "A", "adapters that requests choose among, all alike (default: as many as slots)"),       \
        LORA_OPTION("max-cpu-loras", "M", "adapters kept at the host (default: as many as slots)"),                    \
    {                                                                                                                  \
        .name = "fully-sharded-loras", .kind = OPTION_FLAG,                                                            \
        .help = "slots: both factors are split over --tp ranks, not one of them"                                       \
    }

/* What was asked. */
struct lora_request {
    struct model_adapters served; /* slots 0: none */
    int64_t host;                 /* adapters at the host */
};

/* lora_options_parse -- from the options above; rank: of an adapter that is priced (0: none). Errors: ERR_USAGE; one of
 * the others without --max-loras. */
enum err_code lora_options_parse(const struct option_values *v, int64_t rank, struct lora_request *out, struct err *e);

/* lora_options_apply -- have the model served so; nothing where nothing was asked. Errors: as lora_serve. */
enum err_code lora_options_apply(const struct lora_request *q, struct model *m, struct err *e);

/* lora_options_note -- a sentence on what slots of so many bytes on a GPU are, and what is not known of them. NULL: no
 * memory. */
const char *lora_options_note(struct arena *a, const struct lora_request *q, const struct model *m, double slot_bytes);

#endif
