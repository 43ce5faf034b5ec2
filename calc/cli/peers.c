#include "calc/cli/peers.h"

#include <string.h>

/* Read at: LLM-Viewer 472f71f, llm-analysis d841e40, GenZ-LLM-Analyzer 091bdd0, aiconfigurator 095f58a (its mode SOL),
 * inference-sim (BLIS) f90a1e3, inference-lab 24d4011. */
static const struct peer PEERS[] = {
    {.name = "llm-viewer",
     .causal = "full",
     .meaning = "operator by operator, all pairs of prefill; its own head has half the flops, and no experts"},
    {.name = "llm-analysis",
     .causal = "full",
     .embedding = "full",
     .lm_head = "all",
     .routing = "all",
     .meaning = "all pairs, whole embedding, logits of all, all experts; its own cache reads count twice"},
    {.name = "genz",
     .causal = "full",
     .routing = "active",
     .meaning = "all pairs, k experts at any batch; its own bandwidth is in GiB"},
    {.name = "aiconfigurator",
     .routing = "upper",
     .meaning = "operator by operator, pairs of the mask, min(E, tokens*k) experts; its tables are measured"},
    {.name = "blis",
     .fidelity = "bound",
     .meaning = "one maximum, pairs of the mask, expected experts; its own steps leave the head out"},
    {.name = "inference-lab",
     .fidelity = "bound",
     .routing = "replacement",
     .meaning = "one maximum, pairs of the mask, experts drawn with replacement; it has one maximum a precision"},
};

const struct peer *peers_list(size_t *n)
{
    *n = sizeof PEERS / sizeof PEERS[0];
    return PEERS;
}

const struct peer *peers_find(const char *name)
{
    for (size_t i = 0; i < sizeof PEERS / sizeof PEERS[0]; i++)
        if (strcmp(PEERS[i].name, name) == 0) return &PEERS[i];
    return NULL;
}
