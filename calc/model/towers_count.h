/* towers_count -- a tower while it is counted: what the table of towers and the functions that join them to the
 * language model share; private to calc/model. */
#ifndef RIDGE_MODEL_TOWERS_COUNT_H
#define RIDGE_MODEL_TOWERS_COUNT_H

#include "calc/model/reader.h"

/* A size by its key; fallback is the class default, 0: the key must be there. other: another spelling of it, or NULL.
 */
struct size_key {
    const char *key;
    int64_t fallback;
};

struct tower;

/* A tower while it is counted. whole: elements that every tensor-parallel rank has a copy of. */
struct count {
    struct reader *r;
    const struct tower *row;
    struct json root, vision;                    /* root: what vision is a member of */
    int64_t layers, width, ffn, patch, channels; /* patch: side in pixels */
    double split, whole;
    double tokens;        /* of an image of the file's size, or a tile; 0 not known */
    int64_t token_pixels; /* side of the square that makes a token, where images keep their size; 0 */
    const char *missing;  /* a key without which nothing is known */
    bool assumed;         /* the width is the class's, the file does not say it */
};

struct tower {
    const char *name;
    const char *roots[5]; /* model_type of the whole file */
    const char *encoder;  /* model_type of its vision_config; NULL any */
    bool text_alone;      /* files of that type may be of text alone */
    bool of_class;        /* its sizes are the class's: files have no part that says them */
    struct size_key layers, width, ffn, patch, channels;
    const char *layers_other, *width_other; /* further spellings, or NULL */
    const char *ratio;     /* instead of ffn: the key that says how many times wider than the stream the MLP is, */
    double ratio_fallback; /* rounded down, and its class default; NULL */
    bool gated, qkv_bias, out_bias, mlp_bias, patch_bias;
    bool head;             /* class default of vision_use_head: a pooling head behind the layers, stored and not run */
    int64_t norm_vectors;  /* of width elements in a norm: 1, with bias 2 */
    int64_t layer_vectors; /* further ones in a layer */
    int64_t frames;        /* that a patch spans */
    enum err_code (*join)(struct count *c);
    enum err_code (*all)(struct count *c); /* of another kind: counts everything; NULL */
};

enum { SIDE_MAX = 1 << 16, WIDTH_MAX = 1 << 20 };

/* towers_find -- the row of a file's model_type and that of its vision part; NULL none. towers_of_class -- the same
 * where the sizes are those of the class, whatever the file has. towers_expected -- whether files of this type have a
 * tower even where they do not describe it. */
const struct tower *towers_find(const struct json *root, const struct json *vision);
const struct tower *towers_of_class(const struct json *root);
bool towers_expected(const struct json *root);

/* towers_size -- a whole number of an object from 1 to hi; c->missing is set where there is neither it nor a fallback.
 * towers_vision_size -- the same of the vision part. towers_side -- a side in pixels of it, or a list of equal ones.
 * Errors: ERR_INPUT. */
enum err_code towers_size(struct count *c, const struct json *where, struct size_key k, int64_t hi, int64_t *out);
enum err_code towers_side(struct count *c, struct size_key k, int64_t *out);
enum err_code towers_vision_size(struct count *c, const char *key, int64_t fallback, int64_t *out);

/* towers_linear -- elements of one matrix with its bias. */
double towers_linear(int64_t in, int64_t out, bool bias);

/* towers_join_* -- add to c what is outside the layers of each kind, and how many tokens an image becomes. */
enum err_code towers_join_qwen2_vl(struct count *c);
enum err_code towers_join_qwen2_5_vl(struct count *c);
enum err_code towers_join_qwen3_vl(struct count *c);
enum err_code towers_join_gemma3(struct count *c);
enum err_code towers_join_gemma4(struct count *c);
enum err_code towers_join_llama4(struct count *c);
enum err_code towers_join_internvl(struct count *c);
enum err_code towers_join_mistral3(struct count *c);
enum err_code towers_join_llava(struct count *c);
enum err_code towers_join_mllama(struct count *c);
enum err_code towers_join_moonvit(struct count *c);
enum err_code towers_join_molmo(struct count *c);
enum err_code towers_join_qwen3_5(struct count *c);
enum err_code towers_join_paligemma(struct count *c);
enum err_code towers_join_idefics3(struct count *c);
enum err_code towers_join_internvl_saved(struct count *c);
enum err_code towers_join_glm4v(struct count *c);
enum err_code towers_join_glm_ocr(struct count *c);
enum err_code towers_join_llava_next(struct count *c);
enum err_code towers_join_llava_siglip(struct count *c);
enum err_code towers_join_llava_pixtral(struct count *c);
enum err_code towers_join_onevision(struct count *c);
enum err_code towers_join_cohere2(struct count *c);
enum err_code towers_join_aya(struct count *c);
enum err_code towers_join_lfm2_vl(struct count *c);
enum err_code towers_join_minimax_m3(struct count *c);
enum err_code towers_join_step3p7(struct count *c);

/* Shared by them. towers_positions -- a row for each patch of an image of the file's size, and further ones; such an
 * image becomes as many tokens. towers_head -- SigLIP's head where vision_use_head says so. towers_projector -- two
 * products of in x D and D x D, biased where multimodal_projector_bias says so. */
enum err_code towers_positions(struct count *c, int64_t fallback_side, int64_t further);
enum err_code towers_head(struct count *c);
enum err_code towers_projector(struct count *c, int64_t in, bool fallback);

/* towers_count_mobilenet -- MobileNet-V5 with what joins it to Gemma 3n. */
enum err_code towers_count_mobilenet(struct count *c);

/* towers_read_audio -- fill m->audio from the audio_config of root, as towers_read does m->tower. */
enum err_code towers_read_audio(struct reader *r, const struct json *root);

#endif
