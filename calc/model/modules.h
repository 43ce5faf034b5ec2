/* modules -- names of a checkpoint's matrices, and the patterns by which quantisation configs speak of them; private to
 * calc/model. */
#ifndef RIDGE_MODEL_MODULES_H
#define RIDGE_MODEL_MODULES_H

#include "calc/model/model.h"

struct family;

enum { MODULE_PATTERN_MAX = 400 }; /* characters of a pattern */

enum pattern_kind { PATTERN_NAME, PATTERN_PART, PATTERN_GLOB, PATTERN_REGEX };
enum pattern_half { HALF_NONE, HALF_ENCODER, HALF_DECODER };

struct module_pattern {
    const char *given; /* as the file has it */
    enum pattern_kind kind;
    const char *text;       /* without the parts of a name that every module has in front */
    enum pattern_half half; /* of an encoder-decoder, that a name (no regular expression) says */
    int64_t layer;          /* the one that it names, -1: it names none, or several */
    bool of_one_expert;     /* names one expert by its number */
    bool by_layer;          /* a regular expression in which digits count */
    void *compiled;         /* of a regular expression */
};

/* module_pattern_read -- a name ("model.layers.7.mlp", "lm_head"), a name with * for any text ("model.layers.1*"), or
 * with "re:", or with any of []?{}()|\^$+ in it, a regular expression that matches from the front, as
 * compressed-tensors and transformers (re.match) have it. regex: the text is one without saying so. Errors: ERR_INPUT a
 * pattern beyond 400 characters, or in a grammar that is not read (look-ahead, back-references, counted repetition);
 * ERR_NOMEM. */
enum err_code module_pattern_read(struct arena *a, const char *file, const char *given, bool regex,
                                  struct module_pattern *out, struct err *e);

/* module_pattern_as_part -- a name read as AWQ's engines read one: any part of the text of a module's name, so
 * "self_attn." is a block, and "layers.1" the tenth to nineteenth layer too. Experts are one module, "mlp.experts".
 * Source: vLLM, is_layer_skipped with skip_with_substr; SGLang, awq.py. */
void module_pattern_as_part(struct module_pattern *p);

/* module_pattern_matches -- whether the pattern names the module of a layer: it, a block that it stands in, or its last
 * words. Modules are called what family f calls them, else (f NULL, or no names of its own) as most Hugging Face
 * families do (self_attn or attn or mixer; mlp, block_sparse_moe, feed_forward, ffn; gate_proj, w1; experts one by one
 * or together). */
bool module_pattern_matches(const struct module_pattern *p, const struct family *f, int64_t layer,
                            const struct layer_kind *k, enum module module);

/* module_called -- whether the text behind a layer's number, without the name of a tensor, is what family f (NULL: most
 * families) calls that matrix of such a layer. An expert is number 0. */
bool module_called(const struct family *f, const struct layer_kind *k, enum module module, const char *text);

/* module_pattern_matches_head, _embed -- the same of the output head and the embedding. */
bool module_pattern_matches_head(const struct module_pattern *p);
bool module_pattern_matches_embed(const struct module_pattern *p);

/* module_pattern_is_foreign -- whether it names what is no matrix of this model: a vision or audio part, a layer behind
 * the last one (multi-token prediction), norms, convolutions, biases. */
bool module_pattern_is_foreign(const struct module_pattern *p, const struct model *m);

/* module_layers -- layers that names count: of an encoder-decoder those of the deeper half. */
int64_t module_layers(const struct model *m);

/* module_class -- where a module's weights are counted. module_present -- whether a layer has it. */
enum weight_class module_class(enum module module);
bool module_present(const struct layer_kind *k, enum module module);

/* module_covers -- whether all matrices of a layer are among enum module, and family f's names of them known. */
bool module_covers(const struct family *f, const struct layer_kind *k);

#endif
