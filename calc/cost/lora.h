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
    LORA_Q_A = 1 << 7, /* latent attention: into and out of the latents */
    LORA_Q_B = 1 << 8,
    LORA_KV_A = 1 << 9,
    LORA_KV_B = 1 << 10,
    LORA_ALL = (1 << 11) - 1
};

struct lora {
    int64_t rank;
    unsigned modules; /* of enum lora_module, or-ed */
};

/* lora_parse -- "R" (q and v), "R:all" or "R:q,k,v,o,gate,up,down,q_a,q_b,kv_a,kv_b". lora_parse_modules -- such a list
 * alone. Errors: ERR_USAGE. */
enum err_code lora_parse(const char *text, struct lora *out, struct err *e);
enum err_code lora_parse_modules(const char *text, unsigned *out, struct err *e);

/* lora_module_name -- what checkpoints call the i-th of them ("q_proj"), and its bit; NULL behind the last. */
const char *lora_module_name(size_t i, unsigned *bit);

/* lora_slot_rank -- the least rank of slots that vLLM takes (1, 8, 16, 32, 64, 128, 256, 320, 512) and that holds an
 * adapter; the adapter's beyond. Source: vllm/config/lora.py. */
int64_t lora_slot_rank(int64_t rank);

/* What one adapter adds: parameters, sum over the matrices of `out x in` of rank*(in + out), of every routed expert its
 * own; and matrix flops a token, two products of each that it passes, 2 a parameter. */
struct lora_cost {
    double params, flops_per_token;
};

/* lora_cost -- of attention, dense MLPs and experts, in the layers that have the chosen matrices. Errors: ERR_USAGE a
 * module that no layer has, or that means matrices of which it is not described how adapters stand beside them: of
 * recurrent mixers (all, or a name that they have too) or of layers that share weights. Cost: O(layer kinds). */
enum err_code lora_cost(const struct model *m, const struct lora *x, struct lora_cost *out, struct err *e);

/* lora_serve -- have a model served with adapters (struct model_adapters): slots and `among` of at least 1, a rank.
 * Errors: ERR_USAGE products whose slots are not described (recurrent mixers, indexers, layers that share weights or
 * keys, ...), a module that the model lacks. */
enum err_code lora_serve(struct model *m, const struct model_adapters *x, struct err *e);

#endif
