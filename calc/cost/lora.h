/* lora -- what a low-rank adapter adds to a model. Derivation: MODEL.md "Adapters". */
#ifndef RIDGE_COST_LORA_H
#define RIDGE_COST_LORA_H

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/model/model.h"

/* Matrices that an adapter may stand beside, by their names in checkpoints. */
enum lora_module {
    LORA_Q = 1 << 0,
    LORA_K = 1 << 1,
    LORA_V = 1 << 2,
    LORA_O = 1 << 3,
    LORA_GATE = 1 << 4,
    LORA_UP = 1 << 5,
    LORA_DOWN = 1 << 6,
    LORA_ALL = (1 << 7) - 1
};

struct lora {
    int64_t rank;
    unsigned modules; /* of enum lora_module, or-ed */
};

/* lora_parse -- "R" (q and v), "R:all" or "R:q,k,v,o,gate,up,down". Errors: ERR_USAGE. */
enum err_code lora_parse(const char *text, struct lora *out, struct err *e);

/* What one adapter adds: parameters, sum over the matrices of `out x in` of rank*(in + out); and matrix flops a token,
 * two products of it each, 2 a parameter. */
struct lora_cost {
    double params, flops_per_token;
};

/* lora_cost -- of attention and dense MLPs, shared experts among them. Errors: ERR_INPUT a module that the model lacks,
 * routed experts, latent attention or recurrent mixers among the chosen: how adapters of these are laid out is not
 * described. Cost: O(layer kinds). */
enum err_code lora_cost(const struct model *m, const struct lora *x, struct lora_cost *out, struct err *e);

#endif
