#include "calc/learn/bank_serving.h"

#define SET "6 serving"
#define SEE_BLOCKS "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 100 --memory contiguous"
#define SEE_SAMPLES "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 100 --samples 4"
#define SEE_PREFIX "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 100 --shared-prefix 500 --prefix-cache"
#define SEE_STATIC                                                                                                     \
    "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 200 --generate exponential:200 --policy static"
#define SEE_OPEN "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 200 --rate 4 --rows steady"
#define SEE_CLOSED "ridge simulate -m llama-3.1-8b -g h100-sxm --requests 200 --concurrency 16 --think 2s --rows steady"
#define SEE_PACE "ridge estimate -m llama-3.1-8b -g h100-sxm --mix decode=32@1500,prefill=512@1024"
#define SEE_LAYOUTS "ridge plan --layouts -m llama-3.1-8b -g h100-sxm:8 -b 64"
#define SEE_PLAN "ridge plan -m llama-3.1-8b --rate 4 --ttft 1s --tpot 40ms -g h100-sxm --max-gpus 4"

static const struct exercise ROWS[] = {
    {"paging-waste", SET, "cache in blocks that holds no token", SEE_BLOCKS, bank_paged_waste},
    {"copy-on-write", SET, "blocks of several answers to one prompt", SEE_SAMPLES, bank_paged_copies},
    {"prefix-blocks", SET, "what a cached prefix leaves to compute", SEE_PREFIX, bank_paged_prefix},
    {"static-batch", SET, "what batches by iteration gain over static ones", SEE_STATIC, bank_queue_static},
    {"littles-law", SET, "requests that are in a service", SEE_OPEN, bank_queue_little},
    {"cache-in-flight", SET, "cache that a rate of requests takes", SEE_OPEN, bank_queue_cache},
    {"closed-loop", SET, "the rate of clients that wait for their answers", SEE_CLOSED, bank_queue_closed},
    {"chunk-pace", SET, "time per token beside pieces of prompts", SEE_PACE, bank_queue_pace},
    {"queue-wait", SET, "how long prompts queue at a utilisation", SEE_OPEN, bank_queue_wait},
    {"shards-cache", SET, "sequences that shards hold, and replicas", SEE_LAYOUTS, bank_fleet_cache},
    {"shards-step", SET, "how much faster shards decode than a replica", SEE_LAYOUTS, bank_fleet_step},
    {"token-cost", SET, "what a million tokens of answers cost", SEE_PLAN, bank_fleet_price},
};

const struct exercise *bank_serving(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
