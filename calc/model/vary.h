/* vary -- what a family's layers have that no field of its row can say; private to calc/model.
 *
 * Each is a family.vary: it sees one layer as the fields make it and changes it, or refuses the file. */
#ifndef RIDGE_MODEL_VARY_H
#define RIDGE_MODEL_VARY_H

#include "calc/model/reader.h"

enum err_code vary_falcon(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_stablelm(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_mpt(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_opt(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_chatglm(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_baichuan(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_llama4(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_mimo_v2(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_minimax_m2(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_ernie_moe(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_ernie_vl(struct reader *r, int64_t layer, struct layer_kind *k);
/* vary_indexer_types -- refuse a schedule of indexers that is no list; but one in so many layers, as the class has it.
 */
enum err_code vary_indexer_types(struct reader *r, int64_t usual);
/* vary_indexer_shared -- indexer_types: "full" has the indexer of x, "shared" takes the choice of the last of those and
 * none is left of it. Without the key the first layer is full, and the first of every `group` behind it. Errors:
 * ERR_INPUT. */
enum err_code vary_indexer_shared(struct reader *r, int64_t layer, int64_t group, struct mixer *x);
enum err_code vary_indexer(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_hunyuan(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_nas(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_gemma3n(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_gemma4(struct reader *r, int64_t layer, struct layer_kind *k);

enum err_code vary_biases(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_dots(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_bailing(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_mllama(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_goose(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_llada(struct reader *r, int64_t layer, struct layer_kind *k);

enum err_code vary_internlm3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_olmo_hybrid(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_gpt_neo(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_jais(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_step3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_step3p5(struct reader *r, int64_t layer, struct layer_kind *k);

enum err_code vary_ling(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_afmoe(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_hyperclovax(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_jais2(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_telechat2(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_granite_swa(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_arctic(struct reader *r, int64_t layer, struct layer_kind *k);
/* DeepSeek-V4 (vary_pooled.c). */
enum err_code attention_deepseek_v4(struct reader *r, struct mixer *x);
enum err_code vary_deepseek_v4(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code attention_jetmoe(struct reader *r, struct mixer *x);
enum err_code vary_jetmoe(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_qwen4(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_qwen4(struct reader *r);
enum err_code vary_deepseek_v41(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_deepseek_v41(struct reader *r);
enum err_code mtp_deepseek_v4(struct reader *r, int64_t module, struct layer_kind *k);
enum err_code extend_deepseek_v4(struct reader *r);

/* Kimi Linear and Kimi K3 (vary_kimi.c). */
enum err_code vary_kimi(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_kimi(struct reader *r);
/* Latent attention with a gate and chosen keys, of several streams or gated norms (vary_latent.c). */
enum err_code vary_glm5_next(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_glm5_next(struct reader *r);
enum err_code vary_hy_v4(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_hy_v4(struct reader *r);
enum err_code vary_ling3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_mistral_large4(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_mistral_large4(struct reader *r);
enum err_code vary_dots3_note(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_axk2(struct reader *r, int64_t layer, struct layer_kind *k);

enum err_code vary_minimax_m3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_cohere2_moe(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_cohere2_moe(struct reader *r);
enum err_code vary_apertus(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_apertus(struct reader *r);
enum err_code vary_axk1(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_laguna(struct reader *r, int64_t layer, struct layer_kind *k);

/* Nemotron-H (vary_schedules.c). */
enum err_code vary_nemotron_h(struct reader *r, int64_t layer, struct layer_kind *k);

/* Phi-3 small, Molmo, PLaMo (vary_further.c). */
enum err_code vary_phi3small(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_plamo(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_molmo(struct reader *r);
enum err_code extend_post_norm(struct reader *r); /* no norm behind the last layer */
enum err_code attention_openelm(struct reader *r, struct mixer *x);
enum err_code vary_openelm(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_openelm(struct reader *r);
enum err_code vary_sarvam(struct reader *r, int64_t layer, struct layer_kind *k);

/* Voxtral Realtime (vary_further.c). */
enum err_code vary_voxtral_realtime(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_voxtral_realtime(struct reader *r);
enum err_code vary_grok2(struct reader *r, int64_t layer, struct layer_kind *k);

/* further_longcat -- the second half of a layer: attention and an MLP. */
enum err_code further_longcat(struct reader *r, int64_t layer, struct layer_kind *k);

/* extend_mllama -- rows of the embedding beyond the vocabulary. extend_blocks -- tokens of a diffusion block. */
enum err_code extend_mllama(struct reader *r);
enum err_code extend_blocks(struct reader *r);
enum err_code extend_wide_blocks(struct reader *r);
/* extend_rwkv -- whether the embedding has a norm, and norms have biases. */
enum err_code extend_rwkv(struct reader *r);

/* extend_gemma3n, extend_gemma4, extend_gemma4_unified -- family.extend of the three: per-layer inputs, streams,
 * learned residuals, scales. */
enum err_code extend_gemma3n(struct reader *r);
enum err_code extend_gemma4(struct reader *r);
enum err_code extend_gemma4_unified(struct reader *r);

/* structure_* -- sizes and layers of encoder-decoders (encoders.c). */
enum err_code structure_t5(struct reader *r);
enum err_code structure_bart(struct reader *r);
enum err_code structure_whisper(struct reader *r);

/* Encoder-decoders of two nested decoders' sizes, and of samples of sound (encoders_further.c). */
enum err_code structure_t5gemma(struct reader *r);
enum err_code structure_moonshine(struct reader *r);

/* Mamba and windowed attention, then one cache and one state for all layers behind (sambay.c). */
enum err_code structure_sambay(struct reader *r);

/* Differences of attentions, masks of values, an output head behind a product, experts of groups (vary_pairs.c). */
enum err_code vary_diffllama(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_doge(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_neox_japanese(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_modernbert(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_modernbert(struct reader *r);
enum err_code vary_grove(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_chameleon(struct reader *r);

/* Schedules of a class where the file has none, and what else those families have (vary_schedules.c). */
enum err_code vary_lfm3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_lara_mini(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_flint(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_shared_expert(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_beam(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_muse(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_muse_spark(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_molmo2(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_molmo2(struct reader *r);

#endif
