/* tied -- whether the output head is the embedding, of files that may say it in two places. */
#include <string.h>

#include "calc/model/reader.h"

/* Which statement of a file with a text part within counts. */
enum tie_rule {
    TIE_FIRST,  /* the outer one, else that of the text part: where the class is not known to do otherwise */
    TIE_OUTER,  /* the outer one alone, or its class's default: the head is the outer model's own */
    TIE_INNER,  /* the text part's alone: the head is that of the language model within */
    TIE_NEVER,  /* the class ties nothing, whatever the file says */
    TIE_EITHER, /* tied where either says so: files saved before said it in the text part */
};

/* By the outer model_type, or that of a file of one part. Source: transformers 5.24, the outer class of each (configuration_*.py), and whose
 * _tied_weights_keys name the head (modeling_*.py). */
static const struct {
    const char *type;
    enum tie_rule rule;
    bool outer; /* class default of the outer one, of TIE_OUTER */
} RULES[] = {
    {"qwen3_vl", TIE_OUTER, false},
    {"qwen3_vl_moe", TIE_OUTER, false},
    {"qwen2_5_omni_thinker", TIE_OUTER, false},
    {"muse_glimmer", TIE_OUTER, false},
    {"muse_spark", TIE_NEVER, false},
    {"mistral_large4", TIE_OUTER, false},
    {"cosmos3_edge", TIE_NEVER, false},
    {"molmo2", TIE_NEVER, false},
    {"audioflamingo3", TIE_NEVER, false},
    {"musicflamingo", TIE_NEVER, false},
    {"mllama", TIE_NEVER, false},
    {"omniasr", TIE_NEVER, false},
    {"qwen2_audio", TIE_NEVER, false},
    {"vibevoice_asr", TIE_NEVER, false},
    {"voxtral", TIE_NEVER, false},
    {"kimi_linear", TIE_NEVER, false},
    {"nemotron_h", TIE_NEVER, false},
    {"xlstm", TIE_NEVER, false},
    {"qwen3_5", TIE_OUTER, false},
    {"qwen3_5_moe", TIE_OUTER, false},
    {"voxtral_realtime", TIE_OUTER, true},
    {"gemma3", TIE_OUTER, true},
    {"ernie4_5_vl_moe", TIE_OUTER, true},
    {"llama4", TIE_INNER, false},
    {"vibevoice", TIE_INNER, false},
    {"blip-2", TIE_INNER, false},
    {"instructblip", TIE_INNER, false},
    {"instructblipvideo", TIE_INNER, false},
    {"qwen2_vl", TIE_EITHER, false},
    {"qwen2_5_vl", TIE_EITHER, false},
    {"glm_ocr", TIE_EITHER, false},
    {"glm4v", TIE_EITHER, false},
    {"glm4v_moe", TIE_EITHER, false},
    {"llava", TIE_EITHER, false},
    {"llava_onevision", TIE_EITHER, false},
    {"llava_next_video", TIE_EITHER, false},
    {"minimax_m3_vl", TIE_EITHER, false},
    {"hunyuan_vl", TIE_EITHER, false},
    {"paddleocr_vl", TIE_EITHER, false},
    {"fast_vlm", TIE_EITHER, false},
    {"video_llama_3", TIE_EITHER, false},
};

static const char *word(bool tied) { return tied ? "true" : "false"; }

/* Two statements of one thing, of which only one counts. */
static enum err_code note_tied(struct reader *r, const char *outer, const char *inner)
{
    const char *text =
        arena_printf(r->arena,
                     "tie_word_embeddings is %s outside and %s in %s: the output head is counted %s, as "
                     "the class reads it",
                     outer, inner, r->text.path, r->m->tied ? "as the embedding" : "as a matrix of its own");
    return text ? reader_note(r, text) : err_nomem(r->e);
}

/* A file of one part, whose class ties nothing. A GGUF file, which names no class, says whether it has a head. */
static enum err_code read_never(struct reader *r)
{
    struct json j;
    if (!r->m->tied || !json_get(r->root, "architectures", &j)) return ERR_OK;
    r->m->tied = false;
    const char *text = arena_printf(r->arena,
                                    "tie_word_embeddings is true, and the class of the %s family ties nothing: the "
                                    "output head is counted as a matrix of its own",
                                    r->family->name);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

enum err_code reader_tied(struct reader *r)
{
    static const char KEY[] = "tie_word_embeddings";
    const bool within = r->text.obj != r->root->obj;
    enum tie_rule rule = TIE_FIRST;
    bool fallback = r->family->tied, outer, inner;
    struct json j;
    const char *type = "";
    if (!r->read_as && json_get(r->root, "model_type", &j)) TRY(json_str(&j, &type, r->e));
    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        if (strcmp(RULES[i].type, type) != 0) continue;
        rule = RULES[i].rule;
        if (rule == TIE_OUTER && within) fallback = RULES[i].outer;
    }
    const bool outside = json_get(r->root, KEY, &j);
    TRY(reader_flag(r, r->root, KEY, fallback, &outer));
    r->m->tied = outer;
    if (!within) return rule == TIE_NEVER ? read_never(r) : ERR_OK;
    TRY(reader_flag(r, &r->text, KEY, r->family->tied, &inner));
    switch (rule) {
    case TIE_FIRST: r->m->tied = outside ? outer : inner; break;
    case TIE_OUTER: break;
    case TIE_NEVER: r->m->tied = false; break;
    case TIE_INNER: r->m->tied = inner; break;
    case TIE_EITHER: r->m->tied = outer || inner; break;
    }
    const bool inside = json_get(&r->text, KEY, &j);
    const bool unlike =
        outside && inside ? outer != inner : (outside && outer != r->m->tied) || (inside && inner != r->m->tied);
    return unlike ? note_tied(r, outside ? word(outer) : "missing", inside ? word(inner) : "missing") : ERR_OK;
}
