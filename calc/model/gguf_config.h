/* gguf_config -- what the steps of reading a GGUF file's metadata share; private to calc/model. */
#ifndef RIDGE_MODEL_GGUF_CONFIG_H
#define RIDGE_MODEL_GGUF_CONFIG_H

#include "calc/base/out.h"
#include "calc/model/reader.h"
#include "calc/model/tensors.h"

struct gguf_reading;

/* A general.architecture, and the family that its tensors are those of. */
struct gguf_architecture {
    const char *name, *model_type;
    const char *with_experts;                           /* when expert_count is above 0; NULL the same */
    const char *with_correction;                        /* when a routing correction is stored; NULL the same */
    const char *with_window;                            /* when attention.sliding_window is above 0; NULL the same */
    const char *stated;                                 /* members of a config that all of its files leave unsaid */
    const char *tensor, *flag;                          /* a flag that is true where layers have the tensor */
    enum err_code (*put)(const struct gguf_reading *t); /* further members of the config; NULL none */
    bool modules_left_out;      /* of multi-token prediction, in files whose metadata may count them all the same */
    bool own_heads, own_widths; /* put writes heads, those of recurrent layers too, and widths of MLPs, in place of what
                                 * is common */
};

const struct gguf_architecture *gguf_architecture(const char *name); /* NULL unknown */

struct gguf_reading {
    struct arena *arena;
    const struct tensor_set *set;
    const char *name, *architecture;
    const struct gguf_architecture *row;
    const struct family *family;
    int64_t layers;  /* of the decoder */
    struct out *out; /* the config.json that is written */
    struct err *err;
};

/* gguf_number -- a whole number of the architecture's, "<architecture>.<key>"; a list must say the same for all layers,
 * those apart that a model with recurrent mixers says 0 of. Errors: ERR_INPUT, ERR_NOMEM. */
enum err_code gguf_number(const struct gguf_reading *t, const char *key, int64_t *out, bool *found);

/* gguf_put -- a key of the config. gguf_copy -- the same with a number of the metadata, where it is there. */
void gguf_put(const struct gguf_reading *t, const char *key, int64_t v);
enum err_code gguf_copy(const struct gguf_reading *t, const char *gguf, const char *config, bool *found);

/* gguf_in_layers -- whether a tensor of any layer has this name behind "blk.N.". */
bool gguf_in_layers(const struct tensor_set *s, const char *tail);

/* gguf_normed -- Mamba-1: whether time step, B and C are normed (Falcon Mamba). */
bool gguf_normed(const struct gguf_reading *t);

/* gguf_put_recurrent -- sizes of the recurrent mixers, and what each layer is by the tensors that it has. Errors:
 * ERR_INPUT a key that is missing, widths that do not divide, layers with experts that follow no period; ERR_NOMEM.
 * Source of keys and names: https://github.com/ggml-org/llama.cpp gguf-py/gguf/constants.py. */
enum err_code gguf_put_recurrent(const struct gguf_reading *t);

/* gguf_put_* -- gguf_architecture.put of architectures whose layers differ (gguf_shapes.c). */
enum err_code gguf_put_gemma3n(const struct gguf_reading *t);
enum err_code gguf_put_gemma4(const struct gguf_reading *t);
enum err_code gguf_put_deepseek4(const struct gguf_reading *t);
enum err_code gguf_put_deci(const struct gguf_reading *t);
enum err_code gguf_put_kimi(const struct gguf_reading *t);
enum err_code gguf_put_grok(const struct gguf_reading *t);
enum err_code gguf_put_cohere2_moe(const struct gguf_reading *t);
enum err_code gguf_put_plamo2(const struct gguf_reading *t); /* gguf_recurrent.c, and these two */
enum err_code gguf_put_finch(const struct gguf_reading *t);
enum err_code gguf_put_goose(const struct gguf_reading *t);

/* gguf_family -- the family that general.architecture stands for; NULL: its metadata are not read. */
const struct family *gguf_family(struct arena *a, const struct tensor_set *s);

#endif
