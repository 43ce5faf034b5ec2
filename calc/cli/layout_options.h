/* layout_options -- the options of several commands that say how ranks share a model, and what they open. */
#ifndef RIDGE_CLI_LAYOUT_OPTIONS_H
#define RIDGE_CLI_LAYOUT_OPTIONS_H

#include "calc/cli/option.h"
#include "calc/cost/layout.h"
#include "calc/time/hw.h"
#include "calc/time/offload.h"

#define LAYOUT_TEXT(name_, value_, fallback_, help_)                                                                   \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_                      \
    }
#define LAYOUT_FLAG(name_, help_)                                                                                      \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_FLAG, .help = help_                                                              \
    }

/* Rows of an option table, after that of tp. */
#define LAYOUT_OPTIONS                                                                                                 \
    LAYOUT_TEXT("pp", "N", NULL, "stages of whole layers, one after the other"),                                       \
        LAYOUT_TEXT("ep", "N", NULL,                                                                                   \
                    "parts in which experts are dealt to the ranks of a stage (1: every rank has columns of all)"),    \
        LAYOUT_TEXT("attention-dp", "N", NULL,                                                                         \
                    "attention groups of --tp ranks, each with sequences of its own, over experts in common"),         \
        LAYOUT_TEXT("dp-attention", "N", NULL, "the same"),                                                            \
        LAYOUT_TEXT("dcp", "N", NULL,                                                                                  \
                    "of --tp ranks that share the cache of a sequence by tokens (decode context parallelism); any: "   \
                    "plan tries all that can be"),                                                                     \
        LAYOUT_TEXT("decode-context-parallel-size", "N", NULL, "the same, as vLLM calls it"),                          \
        LAYOUT_TEXT("dcp-comm-backend", "ag_rs|a2a", "ag_rs",                                                          \
                    "how those ranks join outputs: log-sum-exps gathered and outputs scattered, or both in one "       \
                    "all-to-all"),                                                                                     \
        LAYOUT_TEXT("replicas", "N", NULL, "copies of the model, which share nothing"),                                \
        LAYOUT_TEXT("nodes", "N", NULL, "nodes that the GPUs stand in (default: as many as the device's link needs)"), \
        LAYOUT_FLAG("sp", "sequence parallelism: norms and residual sums on 1/tp of the tokens"),                      \
        LAYOUT_TEXT("microbatches", "N", NULL, "parts of a batch in the stages at once (default: as many as stages)"), \
        LAYOUT_TEXT("skew", "X", "1",                                                                                  \
                    "routed tokens of the busiest of --ep parts over the mean: who waits (--routing: which experts "   \
                    "are read; steps of a server: what its experts' loads make of 1)"),                                \
        LAYOUT_TEXT("dispatch", "copies|once|gather", "copies",                                                        \
                    "a token is sent for each of its experts, once to a node and a rank that has one, or to all"),     \
        LAYOUT_TEXT("fabric", "RATE", NULL,                                                                            \
                    "between nodes, one direction of one GPU: 50GB/s, 400Gb/s (default: the device's)"),               \
        LAYOUT_TEXT("latency", "TIME", NULL,                                                                           \
                    "of a message within a node: 5us (default: none, a floor; plan: 0.6us, over PCIe 1us, of NCCL)"),  \
        LAYOUT_TEXT("fabric-latency", "TIME", NULL,                                                                    \
                    "of a message between nodes: 20us (default: none; plan: 8.4us, of NCCL)")

/* Weights at the host. */
#define OFFLOAD_OPTIONS                                                                                                \
    LAYOUT_TEXT("cpu-offload-gb", "N", NULL,                                                                           \
                "GiB of each GPU's weights that stay at the host and are read in every step (vLLM's name)"),           \
        LAYOUT_TEXT("host-link", "RATE", NULL,                                                                         \
                    "between a GPU and its host, one direction: 50GB/s (default: the device's PCIe or host_link)")

/* Encoders of images and of sound; the model's towerless is whether it is given. */
#define TOWERS_OPTION LAYOUT_FLAG("no-towers", "serve text alone: image and audio towers are not loaded")

/* layout_options_towers -- whether m's towers are loaded. Errors: ERR_USAGE the option, of a model that has none. */
enum err_code layout_options_towers(const struct option_values *v, struct model *m, struct err *e);

/* rate NAN: the device's. */
struct offload_request {
    double bytes, host_bytes_per_s;
};

/* offload_options_parse -- from the options above. offload_options_open -- on a device; *kind (may be NULL): what the
 * link is. Errors: ERR_USAGE no rate is known. */
enum err_code offload_options_parse(const struct option_values *v, struct offload_request *out, struct err *e);
enum err_code offload_options_open(const struct offload_request *q, const struct hw *hw, struct offload *out,
                                   const char **kind, struct err *e);

/* What was asked; numbers that were not given are 0. */
struct layout_request {
    struct layout layout; /* per_node 0 */
    int64_t nodes;
    bool any_context;          /* --dcp any: every number of ranks that can share a context */
    double fabric_bytes_per_s; /* 0: the device's */
    struct timed_latency latency;
    bool latency_given, fabric_latency_given;
};

/* layout_options_parse -- from the options above and tp. Errors: ERR_USAGE. */
enum err_code layout_options_parse(const struct option_values *v, struct layout_request *out, struct err *e);

/* layout_options_context -- of the options above --dcp alone, by either name: of plan "any", which looks for a number.
 * Errors: ERR_USAGE. */
enum err_code layout_options_context(const struct option_values *v, struct layout_request *q, struct err *e);

/* layout_options_latency -- what a message costs where layouts are ranked and none was given, by NCCL's tuning model
 * (src/graph/tuning.cc, protocol LL): in a node a hop, 0.6 us over NVLink, 1 us over PCIe; between nodes 8.4 us, half
 * of a short sum over two of them, 6.8 us to start and two hops of 5 us up and down a tree. Derivation: MODEL.md
 * "Layouts". */
void layout_options_latency(struct layout_request *q, const struct hw *hw);

/* layout_options_used -- that what was asked can matter on so many GPUs, `per_node` to a node, in layouts like *l (0:
 * any number). Errors: ERR_USAGE sequence parallelism without tensor parallelism, microbatches without stages, a fabric
 * in one node, skew or dispatch without experts in parts or groups. */
enum err_code layout_options_used(const struct layout_request *q, const struct model *m, int64_t gpus, int64_t per_node,
                                  const struct layout *l, struct err *e);

/* layout_options_nodes -- GPUs of a node, and the fabric in *hw: as --nodes says, else those that the link joins, where
 * there are more; copies of `copy` GPUs that would not fill such nodes have one each. Errors: ERR_USAGE GPUs that do
 * not fill nodes, or more in one than the link joins. */
enum err_code layout_options_nodes(const struct layout_request *q, int64_t gpus, int64_t copy, struct hw *hw,
                                   int64_t *per_node, struct err *e);

/* layout_options_open -- the layout on so many GPUs: what was not given follows, all ranks of a copy being tensor
 * parallel and all GPUs copies. Errors: as layout_options_nodes; ERR_USAGE GPUs that are not a multiple of a copy. */
enum err_code layout_options_open(const struct layout_request *q, int64_t gpus, struct hw *hw, struct layout *out,
                                  struct err *e);

/* layout_nodes_text -- "2 nodes of 8 GPUs, 50 GB/s between them for each GPU", or where GPUs of one node talk over
 * PCIe; empty where there is one node with a link, or one GPU. */
const char *layout_nodes_text(int64_t gpus, int64_t per_node, const struct hw *hw, char *out, size_t cap);

/* layout_text -- "TP 4, PP 2, EP 8, attention-DP 2, 2 copies": what is more than one, TP always. stages: "16+16+15+14",
 * empty with one. */
const char *layout_text(const struct layout *l, char *out, size_t cap);
const char *layout_stages_text(const struct model *m, const struct layout *l, char *out, size_t cap);

#endif
