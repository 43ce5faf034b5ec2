/* family_modules -- what families call their matrices, where they do not say self_attn.q_proj, mlp.gate_proj and the
 * like. Source: the modules of modeling_*.py of Hugging Face transformers, and of the repositories of models with code
 * of their own (Qwen, InternLM2, ChatGLM, Baichuan, Bailing, EXAONE, MPT, DBRX). */
#include "calc/model/family.h"

#define QKV(name)                                                                                                      \
    {MODULE_Q, (name)}, {MODULE_K, (name)}, { MODULE_V, (name) }

const struct family_module MODULES_GPT2[] = {
    QKV("attn.c_attn"), {MODULE_O, "attn.c_proj"}, {MODULE_UP, "mlp.c_fc"}, {MODULE_DOWN, "mlp.c_proj"}, {0}};

const struct family_module MODULES_QWEN[] = {QKV("attn.c_attn"),          {MODULE_O, "attn.c_proj"},
                                             {MODULE_UP, "mlp.w1"},       {MODULE_GATE, "mlp.w2"},
                                             {MODULE_DOWN, "mlp.c_proj"}, {0}};

const struct family_module MODULES_OPT[] = {
    {MODULE_O, "self_attn.out_proj"}, {MODULE_UP, "fc1"}, {MODULE_DOWN, "fc2"}, {0}};

const struct family_module MODULES_PHI[] = {
    {MODULE_O, "self_attn.dense"}, {MODULE_UP, "mlp.fc1"}, {MODULE_DOWN, "mlp.fc2"}, {0}};

const struct family_module MODULES_BLOOM[] = {QKV("self_attention.query_key_value"),
                                              {MODULE_O, "self_attention.dense"},
                                              {MODULE_UP, "mlp.dense_h_to_4h"},
                                              {MODULE_DOWN, "mlp.dense_4h_to_h"},
                                              {0}};

const struct family_module MODULES_CHATGLM[] = {
    QKV("self_attention.query_key_value"), {MODULE_O, "self_attention.dense"}, {MODULE_GATE, "mlp.dense_h_to_4h"},
    {MODULE_UP, "mlp.dense_h_to_4h"},      {MODULE_DOWN, "mlp.dense_4h_to_h"}, {0}};

const struct family_module MODULES_NEOX[] = {QKV("attention.query_key_value"),
                                             {MODULE_O, "attention.dense"},
                                             {MODULE_UP, "mlp.dense_h_to_4h"},
                                             {MODULE_DOWN, "mlp.dense_4h_to_h"},
                                             {0}};

const struct family_module MODULES_BAILING[] = {QKV("attention.query_key_value"), {MODULE_O, "attention.dense"}, {0}};

const struct family_module MODULES_GPTJ[] = {{MODULE_Q, "attn.q_proj"},   {MODULE_K, "attn.k_proj"},
                                             {MODULE_V, "attn.v_proj"},   QKV("attn.qkv_proj"), /* CodeGen */
                                             {MODULE_O, "attn.out_proj"}, {MODULE_UP, "mlp.fc_in"},
                                             {MODULE_DOWN, "mlp.fc_out"}, {0}};

const struct family_module MODULES_MPT[] = {
    QKV("attn.Wqkv"), {MODULE_O, "attn.out_proj"}, {MODULE_UP, "ffn.up_proj"}, {MODULE_DOWN, "ffn.down_proj"}, {0}};

const struct family_module MODULES_DBRX[] = {QKV("norm_attn_norm.attn.Wqkv"),
                                             {MODULE_O, "norm_attn_norm.attn.out_proj"},
                                             {MODULE_EXPERT_GATE, "ffn.experts.mlp.w1"},
                                             {MODULE_EXPERT_UP, "ffn.experts.mlp.v1"},
                                             {MODULE_EXPERT_DOWN, "ffn.experts.mlp.w2"},
                                             {MODULE_ROUTER, "ffn.router.layer"},
                                             {0}};

const struct family_module MODULES_INTERNLM2[] = {
    QKV("attention.wqkv"),          {MODULE_O, "attention.wo"},       {MODULE_GATE, "feed_forward.w1"},
    {MODULE_UP, "feed_forward.w3"}, {MODULE_DOWN, "feed_forward.w2"}, {0}};

const struct family_module MODULES_BAICHUAN[] = {QKV("self_attn.W_pack"), {0}};

const struct family_module MODULES_EXAONE[] = {
    {MODULE_Q, "attn.attention.q_proj"}, {MODULE_K, "attn.attention.k_proj"},
    {MODULE_V, "attn.attention.v_proj"}, {MODULE_O, "attn.attention.out_proj"},
    {MODULE_GATE, "mlp.c_fc_0"},         {MODULE_UP, "mlp.c_fc_1"},
    {MODULE_DOWN, "mlp.c_proj"},         {0}};

const struct family_module MODULES_LLADA[] = {
    {MODULE_Q, "q_proj"},     {MODULE_K, "k_proj"},   {MODULE_V, "v_proj"},    {MODULE_O, "attn_out"},
    {MODULE_GATE, "ff_proj"}, {MODULE_UP, "up_proj"}, {MODULE_DOWN, "ff_out"}, {0}};

const struct family_module MODULES_JETMOE[] = {{MODULE_K, "self_attention.kv_proj"},
                                               {MODULE_V, "self_attention.kv_proj"},
                                               {MODULE_EXPERT_GATE, "mlp.input_linear"},
                                               {MODULE_EXPERT_UP, "mlp.input_linear"},
                                               {MODULE_EXPERT_DOWN, "mlp.output_linear"},
                                               {MODULE_ROUTER, "mlp.router.layer"},
                                               {0}};

const struct family_module MODULES_GRANITE_MOE[] = {{MODULE_EXPERT_GATE, "block_sparse_moe.input_linear"},
                                                    {MODULE_EXPERT_UP, "block_sparse_moe.input_linear"},
                                                    {MODULE_EXPERT_DOWN, "block_sparse_moe.output_linear"},
                                                    {MODULE_ROUTER, "block_sparse_moe.router.layer"},
                                                    {0}};

#define BESIDE_ATTENTION                                                                                               \
    {MODULE_STATE_IN, "mamba.in_proj"}, {MODULE_STATE_STEP_DOWN, "mamba.x_proj"},                                      \
        {MODULE_STATE_STEP_UP, "mamba.dt_proj"},                                                                       \
    {                                                                                                                  \
        MODULE_STATE_OUT, "mamba.out_proj"                                                                             \
    }

const struct family_module MODULES_MAMBA_BESIDE[] = {BESIDE_ATTENTION, {0}};

const struct family_module MODULES_GRANITE_HYBRID[] = {BESIDE_ATTENTION,
                                                       {MODULE_GATE, "shared_mlp.input_linear"},
                                                       {MODULE_UP, "shared_mlp.input_linear"},
                                                       {MODULE_DOWN, "shared_mlp.output_linear"},
                                                       {MODULE_SHARED_GATE, "shared_mlp.input_linear"},
                                                       {MODULE_SHARED_UP, "shared_mlp.input_linear"},
                                                       {MODULE_SHARED_DOWN, "shared_mlp.output_linear"},
                                                       {MODULE_EXPERT_GATE, "block_sparse_moe.input_linear"},
                                                       {MODULE_EXPERT_UP, "block_sparse_moe.input_linear"},
                                                       {MODULE_EXPERT_DOWN, "block_sparse_moe.output_linear"},
                                                       {MODULE_ROUTER, "block_sparse_moe.router.layer"},
                                                       {0}};

const struct family_module MODULES_QWEN_DELTA[] = {{MODULE_STATE_IN, "linear_attn.in_proj_qkv"},
                                                   {MODULE_STATE_IN, "linear_attn.in_proj_qkvz"},
                                                   {MODULE_STATE_GATE, "linear_attn.in_proj_z"},
                                                   {MODULE_STATE_GATE, "linear_attn.in_proj_qkvz"},
                                                   {MODULE_STATE_RATES, "linear_attn.in_proj_a"},
                                                   {MODULE_STATE_RATES, "linear_attn.in_proj_b"},
                                                   {MODULE_STATE_RATES, "linear_attn.in_proj_ba"},
                                                   {MODULE_STATE_OUT, "linear_attn.out_proj"},
                                                   {0}};

const struct family_module MODULES_MINIMAX[] = {{MODULE_STATE_IN, "self_attn.qkv_proj"},
                                                {MODULE_STATE_GATE, "self_attn.output_gate"},
                                                {MODULE_STATE_OUT, "self_attn.out_proj"},
                                                {0}};

const struct family_module MODULES_LFM2[] = {{MODULE_STATE_IN, "conv.in_proj"},
                                             {MODULE_STATE_OUT, "conv.out_proj"},
                                             {MODULE_O, "self_attn.out_proj"},
                                             {MODULE_GATE, "feed_forward.w1"},
                                             {MODULE_UP, "feed_forward.w3"},
                                             {MODULE_DOWN, "feed_forward.w2"},
                                             {MODULE_EXPERT_GATE, "feed_forward.experts.0.w1"},
                                             {MODULE_EXPERT_GATE, "feed_forward.experts.gate_up_proj"},
                                             {MODULE_EXPERT_UP, "feed_forward.experts.0.w3"},
                                             {MODULE_EXPERT_UP, "feed_forward.experts.gate_up_proj"},
                                             {MODULE_EXPERT_DOWN, "feed_forward.experts.0.w2"},
                                             {MODULE_EXPERT_DOWN, "feed_forward.experts.down_proj"},
                                             {MODULE_ROUTER, "feed_forward.gate"},
                                             {0}};

const struct family_module MODULES_PERSIMMON[] = {QKV("self_attn.query_key_value"),
                                                  {MODULE_O, "self_attn.dense"},
                                                  {MODULE_UP, "mlp.dense_h_to_4h"},
                                                  {MODULE_DOWN, "mlp.dense_4h_to_h"},
                                                  {0}};

const struct family_module MODULES_GPT_NEO[] = {{MODULE_Q, "attn.attention.q_proj"},
                                                {MODULE_K, "attn.attention.k_proj"},
                                                {MODULE_V, "attn.attention.v_proj"},
                                                {MODULE_O, "attn.attention.out_proj"},
                                                {MODULE_UP, "mlp.c_fc"},
                                                {MODULE_DOWN, "mlp.c_proj"},
                                                {0}};

const struct family_module MODULES_JAIS[] = {QKV("attn.c_attn"),          {MODULE_O, "attn.c_proj"},
                                             {MODULE_UP, "mlp.c_fc"},     {MODULE_GATE, "mlp.c_fc2"},
                                             {MODULE_DOWN, "mlp.c_proj"}, {0}};

const struct family_module MODULES_AFMOE[] = {
    {MODULE_Q, "self_attn.q_proj"}, {MODULE_Q, "self_attn.gate_proj"}, {MODULE_ROUTER, "mlp.router.gate"}, {0}};

const struct family_module MODULES_LAGUNA[] = {{MODULE_Q, "self_attn.q_proj"}, {MODULE_Q, "self_attn.g_proj"}, {0}};

const struct family_module MODULES_COSMOS3_EDGE[] = {{MODULE_UP, "mlp.fc1"}, {MODULE_DOWN, "mlp.fc2"}, {0}};

const struct family_module MODULES_GROK[] = {{MODULE_Q, "attn.q_proj"},
                                             {MODULE_EXPERT_GATE, "moe_block.experts.0.linear"},
                                             {MODULE_EXPERT_UP, "moe_block.experts.0.linear_v"},
                                             {MODULE_EXPERT_DOWN, "moe_block.experts.0.linear_1"},
                                             {MODULE_ROUTER, "moe_block.gate"},
                                             {0}};

#define TWICE(of, list, name)                                                                                          \
    {(of), list ".0." name}, { (of), list ".1." name }

const struct family_module MODULES_LONGCAT[] = {TWICE(MODULE_Q_A, "self_attn", "q_a_proj"),
                                                TWICE(MODULE_Q_B, "self_attn", "q_b_proj"),
                                                TWICE(MODULE_KV_A, "self_attn", "kv_a_proj_with_mqa"),
                                                TWICE(MODULE_KV_B, "self_attn", "kv_b_proj"),
                                                TWICE(MODULE_O, "self_attn", "o_proj"),
                                                TWICE(MODULE_SHARED_GATE, "mlps", "gate_proj"),
                                                TWICE(MODULE_SHARED_UP, "mlps", "up_proj"),
                                                TWICE(MODULE_SHARED_DOWN, "mlps", "down_proj"),
                                                TWICE(MODULE_GATE, "mlps", "gate_proj"),
                                                TWICE(MODULE_UP, "mlps", "up_proj"),
                                                TWICE(MODULE_DOWN, "mlps", "down_proj"),
                                                {MODULE_ROUTER, "mlp.router.classifier"},
                                                {0}};

const struct family_module MODULES_STEP3[] = {{MODULE_Q_A, "self_attn.q_proj"},
                                              {MODULE_Q_B, "self_attn.wq"},
                                              {MODULE_SHARED_GATE, "share_expert.gate_proj"},
                                              {MODULE_SHARED_UP, "share_expert.up_proj"},
                                              {MODULE_SHARED_DOWN, "share_expert.down_proj"},
                                              {MODULE_EXPERT_GATE, "moe.gate_proj"},
                                              {MODULE_EXPERT_UP, "moe.up_proj"},
                                              {MODULE_EXPERT_DOWN, "moe.down_proj"},
                                              {MODULE_ROUTER, "moe.gate"},
                                              {0}};

const struct family_module MODULES_FALCON_H1[] = {BESIDE_ATTENTION,
                                                  {MODULE_GATE, "feed_forward.gate_proj"},
                                                  {MODULE_UP, "feed_forward.up_proj"},
                                                  {MODULE_DOWN, "feed_forward.down_proj"},
                                                  {0}};

const struct family_module MODULES_OLMO_HYBRID[] = {
    {MODULE_STATE_IN, "linear_attn.q_proj"},    {MODULE_STATE_IN, "linear_attn.k_proj"},
    {MODULE_STATE_IN, "linear_attn.v_proj"},    {MODULE_STATE_GATE, "linear_attn.g_proj"},
    {MODULE_STATE_RATES, "linear_attn.a_proj"}, {MODULE_STATE_RATES, "linear_attn.b_proj"},
    {MODULE_STATE_OUT, "linear_attn.o_proj"},   {0}};

const struct family_module MODULES_TELECHAT[] = {{MODULE_Q, "self_attention.query"},
                                                 {MODULE_K, "self_attention.key_value"},
                                                 {MODULE_V, "self_attention.key_value"},
                                                 {MODULE_O, "self_attention.dense"},
                                                 {0}};

const struct family_module MODULES_ARCTIC[] = {{MODULE_SHARED_GATE, "residual_mlp.w1"},
                                               {MODULE_SHARED_UP, "residual_mlp.w3"},
                                               {MODULE_SHARED_DOWN, "residual_mlp.w2"},
                                               {0}};

const struct family_module MODULES_GROK2[] = {{MODULE_EXPERT_GATE, "block_sparse_moe.experts.0.w1"},
                                              {MODULE_EXPERT_UP, "block_sparse_moe.experts.0.w3"},
                                              {MODULE_EXPERT_DOWN, "block_sparse_moe.experts.0.w2"},
                                              {MODULE_SHARED_GATE, "mlp.gate_proj"},
                                              {MODULE_SHARED_UP, "mlp.up_proj"},
                                              {MODULE_SHARED_DOWN, "mlp.down_proj"},
                                              {0}};

const struct family_module MODULES_LING[] = {QKV("attention.query_key_value"),
                                             {MODULE_O, "attention.dense"},
                                             {MODULE_Q_A, "attention.q_a_proj"},
                                             {MODULE_Q_B, "attention.q_b_proj"},
                                             {MODULE_KV_A, "attention.kv_a_proj_with_mqa"},
                                             {MODULE_KV_B, "attention.kv_b_proj"},
                                             {MODULE_STATE_IN, "attention.query_key_value"},
                                             {MODULE_STATE_GATE, "attention.g_proj"},
                                             {MODULE_STATE_OUT, "attention.dense"},
                                             {0}};

const struct family_module MODULES_MINIMAX_M3[] = {{MODULE_INDEX_Q, "self_attn.index_q_proj"},
                                                   {MODULE_INDEX_Q, "self_attn.indexer.q_proj"},
                                                   {MODULE_INDEX_K, "self_attn.index_k_proj"},
                                                   {MODULE_INDEX_K, "self_attn.indexer.k_proj"},
                                                   {0}};

const struct family_module MODULES_DEEPSEEK_V4[] = {{MODULE_KV_A, "self_attn.kv_proj"},
                                                    {MODULE_KV_A, "attn.wkv"},
                                                    {MODULE_O, "self_attn.o_a_proj"},
                                                    {MODULE_O, "self_attn.o_b_proj"},
                                                    {MODULE_O, "attn.wo_a"},
                                                    {MODULE_O, "attn.wo_b"},
                                                    {MODULE_INDEX_Q, "self_attn.compressor.indexer.q_b_proj"},
                                                    {MODULE_INDEX_Q, "attn.indexer.wq_b"},
                                                    {MODULE_INDEX_WEIGHTS, "self_attn.compressor.indexer.weights_proj"},
                                                    {MODULE_INDEX_WEIGHTS, "attn.indexer.weights_proj"},
                                                    {0}};

/* Kimi Delta Attention: queries, keys and values are three matrices; the gate is one of full rank or two. */
#define KDA                                                                                                            \
    {MODULE_STATE_IN, "self_attn.q_proj"}, {MODULE_STATE_IN, "self_attn.k_proj"},                                      \
        {MODULE_STATE_IN, "self_attn.v_proj"}, {MODULE_STATE_GATE, "self_attn.g_proj"},                                \
        {MODULE_STATE_RATES, "self_attn.b_proj"}, {MODULE_GATE_DOWN, "self_attn.g_a_proj"},                            \
        {MODULE_GATE_UP, "self_attn.g_b_proj"},                                                                        \
    {                                                                                                                  \
        MODULE_STATE_OUT, "self_attn.o_proj"                                                                           \
    }

const struct family_module MODULES_KIMI[] = {KDA,
                                             {MODULE_DECAY_DOWN, "self_attn.f_a_proj"},
                                             {MODULE_DECAY_UP, "self_attn.f_b_proj"},
                                             {MODULE_OUT_GATE, "self_attn.g_proj"},
                                             {MODULE_LATENT_DOWN, "block_sparse_moe.routed_expert_down_proj"},
                                             {MODULE_LATENT_UP, "block_sparse_moe.routed_expert_up_proj"},
                                             {0}};

const struct family_module MODULES_GLM5_NEXT[] = {KDA,
                                                  {MODULE_DECAY_DOWN, "self_attn.f_a_proj"},
                                                  {MODULE_DECAY_DOWN, "self_attn.forget_gate.f_a_proj"},
                                                  {MODULE_DECAY_UP, "self_attn.f_b_proj"},
                                                  {MODULE_DECAY_UP, "self_attn.forget_gate.f_b_proj"},
                                                  {0}};

const struct family_module MODULES_ZAMBA2[] = {
    {MODULE_STATE_IN, "mamba.in_proj"},
    {MODULE_STATE_IN, "mamba_decoder.mamba.in_proj"},
    {MODULE_STATE_OUT, "mamba.out_proj"},
    {MODULE_STATE_OUT, "mamba_decoder.mamba.out_proj"},
    {MODULE_Q, "shared_transformer.self_attn.q_proj"},
    {MODULE_K, "shared_transformer.self_attn.k_proj"},
    {MODULE_V, "shared_transformer.self_attn.v_proj"},
    {MODULE_O, "shared_transformer.self_attn.o_proj"},
    {MODULE_MIXER_ADAPTER, "shared_transformer.self_attn.linear_q_adapter_list"},
    {MODULE_MIXER_ADAPTER, "shared_transformer.self_attn.linear_k_adapter_list"},
    {MODULE_MIXER_ADAPTER, "shared_transformer.self_attn.linear_v_adapter_list"},
    {MODULE_GATE, "shared_transformer.feed_forward.gate_up_proj"},
    {MODULE_UP, "shared_transformer.feed_forward.gate_up_proj"},
    {MODULE_DOWN, "shared_transformer.feed_forward.down_proj"},
    {MODULE_FFN_ADAPTER, "shared_transformer.feed_forward.gate_up_proj_adapter_list"},
    {MODULE_BLOCK_OUT, "linear"},
    {0}};

const struct family_module MODULES_GRIFFIN[] = {{MODULE_STATE_IN, "temporal_block.linear_x"},
                                                {MODULE_STATE_IN, "temporal_block.linear_y"},
                                                {MODULE_STATE_OUT, "temporal_block.linear_out"},
                                                {MODULE_Q, "temporal_block.q_proj"},
                                                {MODULE_K, "temporal_block.k_proj"},
                                                {MODULE_V, "temporal_block.v_proj"},
                                                {MODULE_O, "temporal_block.o_proj"},
                                                {MODULE_GATE, "mlp_block.gate_proj"},
                                                {MODULE_UP, "mlp_block.up_proj"},
                                                {MODULE_DOWN, "mlp_block.down_proj"},
                                                {0}};

const struct family_module MODULES_RWKV4[] = {{MODULE_STATE_IN, "attention.receptance"},
                                              {MODULE_STATE_IN, "attention.key"},
                                              {MODULE_STATE_IN, "attention.value"},
                                              {MODULE_STATE_OUT, "attention.output"},
                                              {MODULE_UP, "feed_forward.key"},
                                              {MODULE_DOWN, "feed_forward.value"},
                                              {MODULE_CHANNEL_GATE, "feed_forward.receptance"},
                                              {0}};

const struct family_module MODULES_PHI3_SMALL[] = {QKV("self_attn.query_key_value"), {MODULE_O, "self_attn.dense"},
                                                   {MODULE_GATE, "mlp.up_proj"},     {MODULE_UP, "mlp.up_proj"},
                                                   {MODULE_DOWN, "mlp.down_proj"},   {0}};

const struct family_module MODULES_MOLMO[] = {QKV("att_proj"),        {MODULE_O, "attn_out"},  {MODULE_GATE, "ff_proj"},
                                              {MODULE_UP, "ff_proj"}, {MODULE_DOWN, "ff_out"}, {0}};

const struct family_module MODULES_PLAMO[] = {QKV("mixer.qkv_proj"), {0}};

const struct family_module MODULES_OPENELM[] = {QKV("attn.qkv_proj"),        {MODULE_O, "attn.out_proj"},
                                                {MODULE_GATE, "ffn.proj_1"}, {MODULE_UP, "ffn.proj_1"},
                                                {MODULE_DOWN, "ffn.proj_2"}, {0}};

const struct family_module MODULES_ARIA[] = {{MODULE_EXPERT_GATE, "mlp.experts.fc1"},
                                             {MODULE_EXPERT_UP, "mlp.experts.fc1"},
                                             {MODULE_EXPERT_DOWN, "mlp.experts.fc2"},
                                             {MODULE_ROUTER, "mlp.router"},
                                             {0}};

const struct family_module MODULES_PLAMO2[] = {QKV("mixer.qkv_proj"), {MODULE_STATE_STEP_DOWN, "mixer.bcdt_proj"}, {0}};

const struct family_module MODULES_XLSTM[] = {{MODULE_STATE_IN, "mlstm_layer.q"},
                                              {MODULE_STATE_IN, "mlstm_layer.k"},
                                              {MODULE_STATE_IN, "mlstm_layer.v"},
                                              {MODULE_STATE_GATE, "mlstm_layer.ogate_preact"},
                                              {MODULE_STATE_RATES, "mlstm_layer.igate_preact"},
                                              {MODULE_STATE_RATES, "mlstm_layer.fgate_preact"},
                                              {MODULE_STATE_OUT, "mlstm_layer.out_proj"},
                                              {MODULE_GATE, "ffn.proj_up_gate"},
                                              {MODULE_UP, "ffn.proj_up"},
                                              {MODULE_DOWN, "ffn.proj_down"},
                                              {0}};
/* Of a layer's two attentions the second is to the source. */
const struct family_module MODULES_BART[] = {{MODULE_Q, "self_attn.q_proj"},
                                             {MODULE_K, "self_attn.k_proj"},
                                             {MODULE_V, "self_attn.v_proj"},
                                             {MODULE_O, "self_attn.out_proj"},
                                             {MODULE_Q, "encoder_attn.q_proj"},
                                             {MODULE_K, "encoder_attn.k_proj"},
                                             {MODULE_V, "encoder_attn.v_proj"},
                                             {MODULE_O, "encoder_attn.out_proj"},
                                             {MODULE_UP, "fc1"},
                                             {MODULE_DOWN, "fc2"},
                                             {0}};

/* The MLP is the second block of an encoder's layer, the third of a decoder's. */
const struct family_module MODULES_T5[] = {{MODULE_Q, "layer.0.SelfAttention.q"},
                                           {MODULE_K, "layer.0.SelfAttention.k"},
                                           {MODULE_V, "layer.0.SelfAttention.v"},
                                           {MODULE_O, "layer.0.SelfAttention.o"},
                                           {MODULE_Q, "layer.1.EncDecAttention.q"},
                                           {MODULE_K, "layer.1.EncDecAttention.k"},
                                           {MODULE_V, "layer.1.EncDecAttention.v"},
                                           {MODULE_O, "layer.1.EncDecAttention.o"},
                                           {MODULE_GATE, "layer.1.DenseReluDense.wi_0"},
                                           {MODULE_GATE, "layer.2.DenseReluDense.wi_0"},
                                           {MODULE_UP, "layer.1.DenseReluDense.wi_1"},
                                           {MODULE_UP, "layer.2.DenseReluDense.wi_1"},
                                           {MODULE_UP, "layer.1.DenseReluDense.wi"},
                                           {MODULE_UP, "layer.2.DenseReluDense.wi"},
                                           {MODULE_DOWN, "layer.1.DenseReluDense.wo"},
                                           {MODULE_DOWN, "layer.2.DenseReluDense.wo"},
                                           {0}};

const struct family_module MODULES_CTRL[] = {{MODULE_Q, "multi_head_attention.Wq"},
                                             {MODULE_K, "multi_head_attention.Wk"},
                                             {MODULE_V, "multi_head_attention.Wv"},
                                             {MODULE_O, "multi_head_attention.dense"},
                                             {MODULE_UP, "ffn.0"},
                                             {MODULE_DOWN, "ffn.2"},
                                             {0}};

const struct family_module MODULES_MODERNBERT[] = {
    {MODULE_Q, "attn.q_proj"}, {MODULE_K, "attn.k_proj"}, {MODULE_V, "attn.v_proj"}, {MODULE_O, "attn.Wo"},
    {MODULE_GATE, "mlp.Wi"},   {MODULE_UP, "mlp.Wi"},     {MODULE_DOWN, "mlp.Wo"},   {0}};

/* Both mixers are called attn. */
const struct family_module MODULES_PHI4FLASH[] = {{MODULE_Q, "attn.Wqkv"},
                                                  {MODULE_K, "attn.Wqkv"},
                                                  {MODULE_V, "attn.Wqkv"},
                                                  {MODULE_O, "attn.out_proj"},
                                                  {MODULE_STATE_IN, "attn.in_proj"},
                                                  {MODULE_STATE_STEP_DOWN, "attn.x_proj"},
                                                  {MODULE_STATE_STEP_UP, "attn.dt_proj"},
                                                  {MODULE_STATE_OUT, "attn.out_proj"},
                                                  {MODULE_GATE, "mlp.fc1"},
                                                  {MODULE_UP, "mlp.fc1"},
                                                  {MODULE_DOWN, "mlp.fc2"},
                                                  {0}};

#define EITHER(own, source)                                                                                            \
    {MODULE_Q, own ".q_proj"}, {MODULE_K, own ".k_proj"}, {MODULE_V, own ".v_proj"}, {MODULE_O, own ".o_proj"},        \
        {MODULE_Q, source ".q_proj"}, {MODULE_K, source ".k_proj"}, {MODULE_V, source ".v_proj"},                      \
    {                                                                                                                  \
        MODULE_O, source ".o_proj"                                                                                     \
    }

const struct family_module MODULES_T5GEMMA[] = {EITHER("self_attn", "cross_attn"),
                                                {MODULE_GATE, "mlp.gate_proj"},
                                                {MODULE_UP, "mlp.up_proj"},
                                                {MODULE_DOWN, "mlp.down_proj"},
                                                {0}};

const struct family_module MODULES_MOONSHINE[] = {EITHER("self_attn", "encoder_attn"),
                                                  {MODULE_GATE, "mlp.fc1"},
                                                  {MODULE_UP, "mlp.fc1"},
                                                  {MODULE_DOWN, "mlp.fc2"},
                                                  {0}};
