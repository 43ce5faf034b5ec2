/* reader -- what the steps of reading one config.json share; private to calc/model. */
#ifndef RIDGE_MODEL_READER_H
#define RIDGE_MODEL_READER_H

#include "calc/model/family.h"
#include "calc/model/model.h"

enum { LAYERS_MAX = 4096, EXPERTS_MAX = 1 << 16 };

/* A setting of model_type keeps here what the file said, when that was another family. */
#define READ_AS_KEY "ridge_read_as"

/* Everything the rules look at while one file is read. */
struct reader {
    struct arena *arena;
    const struct json *root;
    struct json text; /* the language model's part: root, or text_config and its like */
    const struct family *family;
    int64_t layer;              /* that is being read */
    bool sizes_of_class;        /* some were not in the text part */
    const struct family *alias; /* row that stood for the family, by its version; NULL none */
    const char *read_as;        /* the family that the file says, where a setting says another; NULL that is its own */
    bool unknown;               /* the family that the file says is neither in the table nor known otherwise */
    struct model *m;
    struct err *e;
};

/* reader_text_part -- the language model's part of a file: text_config or its like when there is one, else root.
 * Errors: ERR_INPUT such a member that is no object. */
enum err_code reader_text_part(const struct json *root, struct json *out, struct err *e);

/* reader_parse_as -- model_parse of a file as one of another family, as a setting of model_type would. Class defaults
 * are not taken. reader_family_unknown -- whether a file says a family of which it is not even known what it is in
 * place of a decoder (outside.h). */
enum err_code reader_parse_as(struct arena *a, const struct json *j, const struct family *as, struct model *out,
                              struct err *e);
bool reader_family_unknown(struct arena *a, const struct json *j);

/* reader_dim -- a quantity of the file, else the family's class default, else fallback; -1 as fallback makes it
 * required. */
enum err_code reader_dim(struct reader *r, enum dim d, int64_t lo, int64_t fallback, int64_t *out);

/* reader_int -- a whole number of the text part within lo .. hi, else fallback: a class default of the family alone. */
enum err_code reader_int(struct reader *r, const char *key, int64_t lo, int64_t hi, int64_t fallback, int64_t *out);

/* reader_is_type -- whether the text part, or the file where that says nothing, has this model_type: of families whose
 * row several share. Errors: ERR_INPUT one that is no string. */
enum err_code reader_is_type(struct reader *r, const char *type, bool *out);

/* reader_flag -- a boolean of an object, else fallback. */
enum err_code reader_flag(struct reader *r, const struct json *where, const char *key, bool fallback, bool *out);

/* reader_tied -- m->tied, by tie_word_embeddings: of a file with a text part within by the statement that its outer
 * class reads (MODEL.md "Which matrices are one"), with a note where the two contradict each other. Errors: ERR_INPUT a
 * value that is no boolean. */
enum err_code reader_tied(struct reader *r);

/* reader_refuse_foreign -- keys that change the structure in ways the family's row does not describe: the file is not
 * what its model_type says. Values that say of every layer what the family is anyway pass. Errors: ERR_INPUT. */
enum err_code reader_refuse_foreign(struct reader *r);

/* reader_note -- join a sentence to m->notes; text is kept. Errors: ERR_NOMEM. */
enum err_code reader_note(struct reader *r, const char *text);

/* reader_attention, reader_dense, reader_experts, reader_biases -- blocks as the family's row and the file say. */
enum err_code reader_attention(struct reader *r, struct mixer *x);
enum err_code reader_dense(struct reader *r, struct ffn *f);
enum err_code reader_experts(struct reader *r, struct ffn *f);
enum err_code reader_biases(struct reader *r, struct mixer *x, struct ffn *f);

/* reader_count_kind -- one more layer like k, after those counted so far: kinds (model_same_layer, and
 * formats) and order of m. Errors: ERR_INPUT too many kinds or layers; ERR_NOMEM. */
enum err_code reader_count_kind(struct arena *a, struct model *m, int64_t layer, const struct layer_kind *k,
                                struct err *e);

/* reader_attention_text -- the form of attention for people, from the kinds of m; NULL when memory is exhausted. */
const char *reader_attention_text(struct arena *a, const struct model *m);

/* reader_hybrid -- the same as reader_layers for a family with recurrent mixers. */
enum err_code reader_hybrid(struct reader *r);

/* recurrent_* -- recurrent mixers, by the keys of the families that have them. */
enum err_code recurrent_mamba(struct reader *r, struct mixer *x);            /* expand, state_size, time_step_rank */
enum err_code recurrent_mamba_weightless(struct reader *r, struct mixer *x); /* with inner norms that store nothing */
enum err_code recurrent_mamba_normed(struct reader *r, struct mixer *x);     /* with inner norms */
enum err_code recurrent_mamba2(struct reader *r, struct mixer *x);
enum err_code recurrent_mamba2_sized(struct reader *r, struct mixer *x);  /* mamba_d_ssm wide, mamba_rms_norm */
enum err_code recurrent_mamba_heads(struct reader *r, struct mixer *x);   /* n_mamba_heads, a B and C each */
enum err_code recurrent_mamba2_ranked(struct reader *r, struct mixer *x); /* PLaMo-2: hidden_size_per_head */
enum err_code recurrent_mlstm(struct reader *r, struct mixer *x);         /* xLSTM: qk_dim_factor, v_dim_factor */
enum err_code recurrent_gated_delta(struct reader *r, struct mixer *x);   /* linear_* keys */
enum err_code recurrent_head_delta(struct reader *r, struct mixer *x);    /* the same, sized by the attention's heads */
enum err_code recurrent_kimi_delta(struct reader *r, struct mixer *x);    /* linear_attn_config */
enum err_code recurrent_ling_delta(struct reader *r, struct mixer *x);    /* Ling 3.0 */
enum err_code recurrent_lightning(struct reader *r, struct mixer *x);     /* the attention's own heads, none shared */
enum err_code recurrent_grouped(struct reader *r, struct mixer *x);       /* the same with norms and rope of q and k */
enum err_code recurrent_fla_gated_delta(struct reader *r, struct mixer *x);
enum err_code recurrent_fla_delta(struct reader *r, struct mixer *x);
enum err_code recurrent_fla_gated_linear(struct reader *r, struct mixer *x);
enum err_code recurrent_fla_retention(struct reader *r, struct mixer *x);
enum err_code recurrent_lru(struct reader *r, struct mixer *x);
enum err_code recurrent_short_conv(struct reader *r, struct mixer *x); /* conv_L_cache taps */
enum err_code recurrent_wkv(struct reader *r, struct mixer *x);        /* RWKV-4: attention_hidden_size channels */
enum err_code recurrent_time_mix(struct reader *r, struct mixer *x);   /* head_size, attention_hidden_size */
enum err_code recurrent_finch(struct reader *r, struct mixer *x);      /* RWKV-6 */
enum err_code recurrent_goose(struct reader *r, struct mixer *x);      /* RWKV-7 */
/* recurrent_name -- for people: "mamba-2", "delta rule", ... */
const char *recurrent_name(const struct mixer *x);

/* reader_layers -- fill r->m->kinds: blocks as the family builds them, and which layer has which. */
enum err_code reader_layers(struct reader *r);

#endif
