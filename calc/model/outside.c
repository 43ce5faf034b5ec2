/* outside -- model_types that are known and have no row: no decoder of a language model, or a model around one. */
#include "calc/model/outside.h"

#include <string.h>

#define ENCODER "an encoder, and ridge describes decoders of language models"
#define BOTH "an encoder and decoder of a kind that ridge does not describe (ridge list families has those it does)"

#define AROUND(part)                                                                                                   \
    "a model around a language model, which its " part                                                                 \
    " describes, and that is missing here (--set model_type=NAME reads this file as one of ridge list families)"

#define DECODER(part) "a decoder of " part ", which no row describes: its parameters and cache would be guesses"

/* Whatever the text part within is. */
#define DRAFT(part) "a draft head that " part ", which no row describes: its parameters and cache would be guesses"

#define AGAIN(part) DECODER(part " layers that run again, with caches of their own each time")

#define SINK_KEYS                                                                                                      \
    DECODER("attention to stored keys and values beside its own (param_sink_number), wider keys than values")

static const struct {
    const char *type, *what;
} OUTSIDE[] = {
    {"albert", ENCODER},
    {"bert", ENCODER},
    {"camembert", ENCODER},
    {"clip", ENCODER},
    {"deberta", ENCODER},
    {"deberta-v2", ENCODER},
    {"distilbert", ENCODER},
    {"electra", ENCODER},
    {"eurobert", ENCODER},
    {"funnel", ENCODER},
    {"longformer", ENCODER},
    {"modernbert", ENCODER},
    {"mpnet", ENCODER},
    {"neobert", ENCODER},
    {"nomic_bert", ENCODER},
    {"roberta", ENCODER},
    {"siglip", ENCODER},
    {"siglip_vision_model", ENCODER},
    {"vit", ENCODER},
    {"wav2vec2", ENCODER},
    {"xlm-roberta", ENCODER},
    {"bert-generation", ENCODER},
    {"big_bird", ENCODER},
    {"data2vec-text", ENCODER},
    {"ernie", ENCODER},
    {"megatron-bert", ENCODER},
    {"rembert", ENCODER},
    {"roberta-prelayernorm", ENCODER},
    {"roc_bert", ENCODER},
    {"roformer", ENCODER},
    {"xlm-roberta-xl", ENCODER},
    {"xmod", ENCODER},
    {"canary", BOTH},
    {"cohere_asr", BOTH},
    {"dia", BOTH},
    {"encoder-decoder", BOTH},
    {"moonshine_streaming", BOTH},
    {"pegasus_x", BOTH},
    {"pix2struct_text_model", BOTH},
    {"pop2piano", BOTH},
    {"seamless_m4t_v2", BOTH},
    {"speech-encoder-decoder", BOTH},
    {"speecht5", BOTH},
    {"trocr", BOTH},
    {"udop", BOTH},
    {"vision-encoder-decoder", BOTH},
    {"bigbird_pegasus", BOTH},
    {"fsmt", BOTH},
    {"led", BOTH},
    {"prophetnet", BOTH},
    {"seamless_m4t", BOTH},
    {"speech_to_text", BOTH},
    {"t5gemma2", BOTH},
    {"blt",
     DECODER("patches of bytes, as long as the text makes them, so that the file does not say what a token costs")},
    {"gemma4_assistant", DRAFT("attends to its target's cache and may answer through centroids of the vocabulary")},
    {"gemma4_unified_assistant",
     DRAFT("attends to its target's cache and may answer through centroids of the vocabulary")},
    {"dory", AGAIN("a middle section of")},
    {"hrm_text", AGAIN("two stacks in turns, of")},
    {"moshi", DECODER("streams of codes of sound beside text, and a second decoder of the codes of each moment")},
    {"kyutai_speech_to_text", DECODER("text beside streams of codes of sound, whose embeddings are summed")},
    {"idefics", DECODER("layers that attend to images between its own, behind gates")},
    {"evolla", DECODER("layers that attend to proteins between its own, behind gates")},
    {"cpmant", DECODER("scores with a number for each distance and pair of segments")},
    {"PanguProMoE", SINK_KEYS},
    {"PanguProMoEV2", SINK_KEYS},
    {"zaya", DECODER("attention in a convolved space, routers of several layers and scaled residuals")},
    {"inkling_text",
     DECODER("scores with a product of distance and query, and convolutions of keys, values and both blocks")},
    {"inkling2_text",
     DECODER("layers that read mixtures of earlier ones, and convolutions whose taps the token makes")},
    {"inkling2_loop_text",
     DECODER("layers that run again on mixtures of earlier ones, with gates on what they hand on")},
    {"unlimited_ocr_text", DECODER("attention to the whole prompt and a window of what follows")},
    {"aya_vision", AROUND("text_config")},
    {"cohere2_vision", AROUND("text_config")},
    {"deepseek_vl_v2", AROUND("language_config")},
    {"idefics3", AROUND("text_config")},
    {"internvl", AROUND("text_config")},
    {"internvl_chat", AROUND("llm_config")},
    {"kimi_k25", AROUND("text_config")},
    {"kimi_vl", AROUND("text_config")},
    {"llava", AROUND("text_config")},
    {"llava_next", AROUND("text_config")},
    {"mistral3", AROUND("text_config")},
    {"paligemma", AROUND("text_config")},
    {"pixtral", AROUND("text_config")},
    {"smolvlm", AROUND("text_config")},
};

bool outside_is_around(const char *model_type)
{
    static const char AROUND_WHAT[] = AROUND("");
    const char *what = outside_find(model_type);
    return what && strncmp(what, AROUND_WHAT, strcspn(AROUND_WHAT, ",")) == 0;
}

bool outside_is_draft(const char *model_type)
{
    static const char DRAFT_WHAT[] = "a draft head";
    const char *what = outside_find(model_type);
    return what && strncmp(what, DRAFT_WHAT, sizeof DRAFT_WHAT - 1) == 0;
}

const char *outside_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof OUTSIDE / sizeof OUTSIDE[0]; i++)
        if (strcmp(OUTSIDE[i].type, model_type) == 0) return OUTSIDE[i].what;
    return NULL;
}
