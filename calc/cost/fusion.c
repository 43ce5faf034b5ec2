#include "calc/cost/fusion.h"

#include <string.h>

#include "calc/base/text.h"

static const char *const NAMES[FUSIONS_N] = {"activation", "residual", "norm", "rope", "head-norm", "kv-write"};
static const char EACH[] = "activation, residual, norm, rope, head-norm, kv-write";

const char *fusion_name(size_t i) { return NAMES[i]; }

enum err_code fusion_parse(const char *text, unsigned *out, struct err *e)
{
    char clean[64];
    unsigned fused = 0;
    *out = strcmp(text, "all") == 0 ? FUSION_ALL : 0;
    if (*out || strcmp(text, "none") == 0) return ERR_OK;
    for (const char *at = text;;) {
        const size_t len = strcspn(at, ",");
        size_t i = 0;
        while (i < FUSIONS_N && (strlen(NAMES[i]) != len || strncmp(at, NAMES[i], len) != 0)) i++;
        const bool alone = (len == 3 && strncmp(at, "all", len) == 0) || (len == 4 && strncmp(at, "none", len) == 0);
        if (alone)
            return err_set(e, ERR_USAGE, "'%s' stands alone: all, none, or some of %s",
                           text_clean(clean, sizeof clean, at, len), EACH);
        if (i == FUSIONS_N)
            return err_set(e, ERR_USAGE, "'%s' is no fusion: all, none, or some of %s",
                           text_clean(clean, sizeof clean, at, len), EACH);
        fused |= 1U << i;
        if (at[len] == '\0') break;
        at += len + 1;
    }
    *out = fused;
    return ERR_OK;
}

static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), m = strlen(with);
    return n >= m && strcmp(name + n - m, with) == 0;
}

void fusion_apply(struct sym_ctx *c, unsigned fused, struct cost_ops *ops)
{
    const struct sym *zero = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) {
        struct cost_op *op = &ops->op[i];
        const struct sym *own = op->activation_bytes;
        const bool gated = strncmp(op->shape, "[rows, 2F]", strlen("[rows, 2F]")) == 0;
        if (op->kind == OP_ACTIVATION && (fused & FUSION_ACTIVATION) && ends(op->name, "_act") && i > 0) {
            struct cost_op *before = &ops->op[i - 1];
            if (gated) /* two arrays read and one written: a third of them are not made */
                before->activation_bytes = sym_sub(c, before->activation_bytes, sym_div(c, own, sym_int(c, 3)));
            op->activation_bytes = zero;
        }
        if (op->kind == OP_RESIDUAL && (fused & FUSION_RESIDUAL) && ends(op->name, "_residual"))
            op->activation_bytes = sym_div(c, own, sym_int(c, 3)); /* of two arrays read and one written */
        if (op->kind == OP_NORM && (fused & FUSION_NORM)) op->activation_bytes = sym_div(c, own, sym_int(c, 2));
        if (op->kind == OP_ROPE && (fused & FUSION_ROPE)) op->activation_bytes = zero;
        if (op->kind == OP_HEAD_NORM && (fused & FUSION_HEAD_NORM)) op->activation_bytes = zero;
        if (op->kind == OP_KV_WRITE && (fused & FUSION_KV_WRITE)) op->activation_bytes = zero;
    }
}
