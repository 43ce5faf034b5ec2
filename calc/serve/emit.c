#include "calc/serve/emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cost/lora.h"
#include "calc/serve/emit_said.h"

static const char *const NAMES[EMIT_ENGINES] = {"vllm", "sglang", "trtllm"};

const char *emit_name(enum emit_engine engine) { return NAMES[engine]; }

enum err_code emit_find(const char *name, enum emit_engine *out, struct err *e)
{
    char clean[64];
    for (int i = 0; i < EMIT_ENGINES; i++)
        if (strcmp(name, NAMES[i]) == 0) {
            *out = (enum emit_engine)i;
            return ERR_OK;
        }
    return err_set(e, ERR_USAGE, "--emit is vllm, sglang or trtllm, not '%s'",
                   text_clean(clean, sizeof clean, name, strlen(name)));
}

const char *emit_source(struct arena *a, const char *name, const char *unknown)
{
    static const char CONFIG[] = "config.json", JSON[] = ".json";
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const size_t n = strlen(base), ext = sizeof JSON - 1;
    if (strcmp(base, CONFIG) == 0)
        return !slash ? "." : slash == name ? "/" : arena_printf(a, "%.*s", (int)(slash - name), name);
    return n > ext && strcmp(base + n - ext, JSON) == 0 ? unknown : name;
}

enum { VLLM_RANK_MAX = 512 };

/* Models with an encoder and a decoder. Sources: vLLM PR 24907 (what left with V0) and v1/core/sched/scheduler.py (its
 * bart-plugin); SGLang PR 16983; TensorRT-LLM, models/encoder-decoder. */
static const char *encoder_refusal(enum emit_engine engine, const char *family)
{
    switch (engine) {
    case EMIT_VLLM:
        return strcmp(family, "whisper") == 0
                   ? NULL
                   : "of encoder-decoders vLLM has Whisper: T5, BART and their like left it with V0 (PR 24907)";
    case EMIT_SGLANG:
        return strcmp(family, "whisper") == 0 ? "SGLang runs Whisper beside its own path for encoder-decoders (PR "
                                                "16983), and what its cache holds "
                                                "of a source is not known here"
                                              : "of encoder-decoders of text SGLang has none";
    case EMIT_TRTLLM:
        return "TensorRT-LLM runs T5, BART and Whisper by its LLM API; that trtllm-serve does is not known here";
    case EMIT_ENGINES: break;
    }
    return NULL;
}

/* A cache of latents in eight bits as vLLM and SGLang lay it out. */
static const char LATENTS[] = "fp8-ds-mla";

const char *emit_refusal(enum emit_engine engine, const struct emit_plan *p)
{
    const struct layout *l = &p->layout;
    const int64_t group = layout_group(l);
    if (p->kv && strcmp(p->kv, LATENTS) == 0 && engine == EMIT_TRTLLM)
        return "TensorRT-LLM keeps latents of which keys are chosen in fp8 with one scale (--kv fp8)";
    if (p->kv && strcmp(p->kv, "fp8") != 0 && strcmp(p->kv, LATENTS) != 0)
        return "of narrower formats the three engines keep their cache in fp8 alone";
    if (p->encoder && encoder_refusal(engine, p->encoder)) return encoder_refusal(engine, p->encoder);
    if (p->short_source && engine == EMIT_VLLM) /* WhisperProcessor pads to chunk_length, whisper.py of vLLM */
        return "vLLM pads every sound to all that the encoder has positions for (30 s): plan it without --source";
    if (p->towerless && engine != EMIT_VLLM)
        return "of the three vLLM alone is known to leave towers out (--language-model-only)";
    switch (engine) {
    case EMIT_VLLM:
        if (p->experts && l->ep > 1 && l->ep != group)
            return "vLLM deals experts over all ranks of a copy or over none (--enable-expert-parallel)";
        if (l->dp > 1 && l->pp > 1) return "vLLM has no attention groups beside stages";
        if (p->adapters.slots > 0 &&
            (p->adapters.rank > VLLM_RANK_MAX || lora_slot_rank(p->adapters.rank) != p->adapters.rank))
            return "vLLM takes 1, 8, 16, 32, 64, 128, 256, 320 or 512 as --max-lora-rank";
        if (p->draft_tokens > 0 && l->pp > 1) return "vLLM (0.29.0) stops where tokens are drafted beside stages";
        if (p->draft_nodes > 0) return "vLLM drafts rows of tokens, no trees (vllm/config/speculative.py)";
        return NULL;
    case EMIT_SGLANG:
        if (l->dp > 1 && l->pp > 1) return "SGLang has no attention groups beside stages";
        if (l->dcp > 1 && (l->dp > 1 || l->pp > 1))
            return "SGLang is not known to share a context beside attention groups or stages";
        if (p->draft_tokens > 0 && l->pp > 1)
            return "SGLang drafts tokens beside stages as an experiment alone (SGLANG_ENABLE_PP_SPEC)";
        if (p->draft_tokens > 0 && p->drafting == EMIT_MEDUSA) return "SGLang has no heads of Medusa";
        if (p->adapters.sharded) return "SGLang splits one factor of adapters alone (no --fully-sharded-loras)";
        return NULL;
    case EMIT_TRTLLM:
        if (p->offload_bytes > 0)
            return "TensorRT-LLM keeps no weights at the host (trtllm-serve has no such argument)";
        if (p->adapters.slots > 0)
            return "TensorRT-LLM keeps adapters in a cache of its own (lora_config), which is not described";
        if (l->dcp > 1) return "TensorRT-LLM shares a context (Helix) in servers that decode alone";
        if (l->dp > 1 && l->tp > 1)
            return "TensorRT-LLM gives every rank an attention group of its own or none (enable_attention_dp)";
        if (p->draft_tokens > 0 && p->drafting == EMIT_EAGLE)
            return "of EAGLE heads TensorRT-LLM runs those of EAGLE 3 alone, which are other models";
        if (p->tier_bytes > 0) return "of TensorRT-LLM's cache at the host no argument of trtllm-serve is known here";
        if (p->draft_tokens > 0 && p->drafting == EMIT_MEDUSA)
            return "trtllm-serve takes no heads of Medusa (they are built into an engine of their own)";
        if (p->draft_nodes > 0) return "of a draft model and of MTP TensorRT-LLM judges rows, no trees";
        if (p->draft_tokens > 0 && l->pp > 1)
            return "TensorRT-LLM has no drafts beside stages (its matrix of features)";
        return NULL;
    case EMIT_ENGINES: break;
    }
    return "no such engine";
}

/* -- the engines -- */

/* What routes requests to copies. */
static const char BALANCER[] = "nginx with least_conn, say";

static const char RANKED[] = "  RANK=0 on the first node, 1 on the next, ...";

/* Attention groups of a copy over several nodes: each node serves its own, the first one answers. */
static void put_vllm_ranks(struct emit_lines *o, const struct layout *l)
{
    const long long local = (long long)((l->dp + emit_nodes(l) - 1) / emit_nodes(l));
    emit_word(o, "--data-parallel-size-local %lld", local);
    emit_word(o, "--data-parallel-address ${HEAD_IP:?}");
    emit_word(o, "--data-parallel-rpc-port 13345");
    emit_word(o, "--data-parallel-start-rank $((${RANK:?} * %lld))", local);
    emit_word(o, "$([ $RANK = 0 ] || echo --headless)");
}

/* vLLM and SGLang call it alike, and count GiB. */
static void put_offload(struct emit_lines *o, const struct emit_plan *p)
{
    if (p->offload_bytes > 0) emit_word(o, "--cpu-offload-gb %.6g", p->offload_bytes / UNITS_GIB);
}

/* Names of products as checkpoints have them, each after a blank. */
static const char *adapted_names(const struct emit_plan *p, char *out, size_t cap)
{
    size_t n = 0;
    unsigned bit;
    const char *name;
    out[0] = 0;
    for (size_t i = 0; (name = lora_module_name(i, &bit)) != NULL && n < cap; i++)
        if (p->adapters.modules & bit) n += (size_t)snprintf(out + n, cap - n, " %s", name);
    return out;
}

enum { NAMES_MAX = 256 };

static void put_adapters(struct emit_lines *o, const struct emit_plan *p, bool sglang)
{
    const struct model_adapters *x = &p->adapters;
    char names[NAMES_MAX];
    if (x->slots == 0) return;
    emit_word(o, "--enable-lora");
    emit_word(o, sglang ? "--max-loras-per-batch %lld" : "--max-loras %lld", (long long)x->slots);
    emit_word(o, "--max-lora-rank %lld", (long long)x->rank);
    if (p->host_adapters > x->slots)
        emit_word(o, sglang ? "--max-loaded-loras %lld" : "--max-cpu-loras %lld", (long long)p->host_adapters);
    if (x->sharded) emit_word(o, "--fully-sharded-loras");
    if (x->modules || sglang)
        emit_word(o, "--lora-target-modules%s", x->modules ? adapted_names(p, names, sizeof names) : " all");
}

static void put_vllm(struct emit_lines *o, const struct emit_plan *p, const char *model, const char *draft)
{
    const struct layout *l = &p->layout;
    emit_say_copies(o, p, p->prefill > 0 ? "vLLM's examples of disaggregated serving have one" : BALANCER);
    emit_say_checkpoint(o, p);
    emit_say_weights(o, p, EMIT_VLLM, model);
    emit_say_length(o, p);
    emit_say_draft(o, p);
    if (emit_nodes(l) > 1) emit_say_nodes(o, l, l->dp > 1 ? RANKED : NULL);
    if (emit_nodes(l) > 1 && l->dp == 1) {
        emit_comment(o, "then on the first:  ray start --head --port=6379");
        emit_comment(o, "on every other one: ray start --address=${HEAD_IP:?}:6379");
        emit_comment(o, "and at last, on the first alone:");
    }
    emit_word(o, "vllm serve %s", emit_stored_otherwise(p, EMIT_VLLM) ? EMIT_STORED_SO : model);
    emit_word(o, "--tensor-parallel-size %lld", (long long)l->tp);
    if (l->dcp > 1) emit_word(o, "--decode-context-parallel-size %lld", (long long)l->dcp);
    if (l->dcp > 1 && l->context_direct) emit_word(o, "--dcp-comm-backend a2a");
    if (l->pp > 1) emit_word(o, "--pipeline-parallel-size %lld", (long long)l->pp);
    if (l->dp > 1) emit_word(o, "--data-parallel-size %lld", (long long)l->dp);
    if (emit_nodes(l) > 1 && l->dp > 1) put_vllm_ranks(o, l);
    if (p->experts && l->ep > 1) emit_word(o, "--enable-expert-parallel");
    emit_word(o, "--max-model-len %lld", (long long)p->max_model_len);
    /* of each data-parallel rank */
    emit_word(o, "--max-num-seqs %lld", (long long)p->max_num_seqs);
    emit_word(o, "--max-num-batched-tokens %lld", (long long)p->step_tokens);
    emit_word(o, "--gpu-memory-utilization %.3g", p->utilization_frac);
    if (p->towerless) emit_word(o, "--language-model-only");
    put_offload(o, p);
    if (p->tier_bytes > 0)
        emit_word(o, "--kv-offloading-backend native --kv-offloading-size %.6g", p->tier_bytes / UNITS_GIB);
    put_adapters(o, p, false);
    if (p->weights && p->fp8_on_load) emit_word(o, "--quantization fp8");
    if (p->kv) emit_word(o, "--kv-cache-dtype fp8"); /* of latents whose keys are chosen that is fp8_ds_mla */
    if (emit_nodes(l) > 1 && l->dp == 1) emit_word(o, "--distributed-executor-backend ray");
    if (p->prefill > 0) {
        emit_put(o, " \\\n  --kv-transfer-config '{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}'");
    }
    if (p->draft_tokens <= 0) return;
    static const char *const METHOD[] = {"draft_model", "eagle", "mtp", "medusa"};
    emit_put(o, " \\\n  --speculative-config '{\"method\": \"");
    emit_put(o, METHOD[p->drafting]);
    emit_put(o, "\",");
    if (p->drafting != EMIT_MTP) {
        emit_put(o, "\n    \"model\": \"");
        emit_put(o, draft);
        emit_put(o, "\",");
    }
    char n[64];
    (void)snprintf(n, sizeof n, "\n    \"num_speculative_tokens\": %lld}'", (long long)p->draft_tokens);
    emit_put(o, n);
}

static void put_sglang(struct emit_lines *o, const struct emit_plan *p, const char *model, const char *draft)
{
    const struct layout *l = &p->layout;
    /* within a step beside those that decode; neither stages nor drafts have that (check_server_args) */
    const bool mixed = p->mixed && l->pp == 1 && p->draft_tokens <= 0 && p->prefill == 0;
    emit_say_copies(o, p,
                    p->prefill > 0 ? "python -m sglang_router.launch_router --pd-disaggregation \\\n#   --prefill "
                                     "http://HOST:PORT ... --decode http://HOST:PORT ..."
                                   : "python -m sglang_router.launch_router --worker-urls http://HOST:PORT ...");
    if (p->prefill > 0) emit_comment(o, "those that decode: --disaggregation-mode decode");
    emit_say_checkpoint(o, p);
    emit_say_weights(o, p, EMIT_SGLANG, model);
    emit_say_length(o, p);
    emit_say_draft(o, p);
    if (p->mixed && !mixed && p->prefill == 0)
        emit_comment(o, "prompts are computed in steps of their own, which the plan does not know");
    if (emit_nodes(l) > 1) emit_say_nodes(o, l, RANKED);
    emit_word(o, "python -m sglang.launch_server");
    emit_word(o, "--model-path %s", emit_stored_otherwise(p, EMIT_SGLANG) ? EMIT_STORED_SO : model);
    emit_word(o, "--tp-size %lld", (long long)layout_group(l));
    if (l->dcp > 1) emit_word(o, "--dcp-size %lld", (long long)l->dcp);
    if (l->dcp > 1 && l->context_direct) emit_word(o, "--dcp-comm-backend a2a");
    if (l->pp > 1) emit_word(o, "--pp-size %lld", (long long)l->pp);
    if (l->dp > 1) emit_word(o, "--dp-size %lld --enable-dp-attention", (long long)l->dp);
    if (p->experts && l->ep > 1) emit_word(o, "--ep-size %lld", (long long)l->ep);
    emit_word(o, "--context-length %lld", (long long)p->max_model_len);
    /* of all attention groups: the engine divides both among them */
    emit_word(o, "--max-running-requests %lld", (long long)(p->max_num_seqs * l->dp));
    emit_word(o, "--chunked-prefill-size %lld", (long long)(p->step_tokens * l->dp));
    if (mixed) emit_word(o, "--enable-mixed-chunk");
    if (p->prefill > 0) emit_word(o, "--disaggregation-mode prefill");
    emit_word(o, "--mem-fraction-static %.3g", p->static_frac);
    put_offload(o, p);
    if (p->tier_bytes > 0)
        emit_word(o, "--enable-hierarchical-cache --hicache-size %lld",
                  (long long)ceil(p->tier_bytes / (double)(layout_group(l) * l->pp) / UNITS_GB));
    put_adapters(o, p, true);
    if (p->weights && p->fp8_on_load) emit_word(o, "--quantization fp8");
    if (p->kv) emit_word(o, "--kv-cache-dtype fp8_e4m3");
    if (emit_nodes(l) > 1)
        emit_word(o, "--nnodes %lld --node-rank ${RANK:?} --dist-init-addr ${HEAD_IP:?}:20000",
                  (long long)emit_nodes(l));
    if (p->draft_tokens <= 0) return;
    static const char *const ALGORITHM[] = {"STANDALONE", "EAGLE", "NEXTN", ""};
    emit_word(o, "--speculative-algorithm %s", ALGORITHM[p->drafting]);
    if (p->drafting != EMIT_MTP) emit_word(o, "--speculative-draft-model-path %s", draft);
    emit_word(o, "--speculative-num-steps %lld", (long long)p->draft_tokens);
    emit_word(o, "--speculative-eagle-topk %lld", (long long)(p->draft_nodes > 0 ? p->draft_wide : 1));
    emit_word(o, "--speculative-num-draft-tokens %lld",
              (long long)(p->draft_nodes > 0 ? p->draft_nodes : p->draft_tokens) + 1);
}

/* The file overrides the command line, a group at a time: what it has of the cache it has whole. */
static void put_yaml(struct emit_lines *o, const struct emit_plan *p, const char *draft)
{
    static const char *const TYPE[] = {"Draft_Target", "Eagle", "MTP", ""};
    char text[96];
    emit_put(o, "cat > trtllm.yaml <<'END'\n");
    if (p->layout.dp > 1) emit_put(o, "enable_attention_dp: true\n");
    if (p->prefill > 0) emit_put(o, "cache_transceiver_config:\n  backend: DEFAULT\n");
    if (p->kv) {
        emit_put(o, "kv_cache_config:\n  dtype: ");
        emit_put(o, p->kv);
        (void)snprintf(text, sizeof text, "\n  free_gpu_memory_fraction: %.3g\n", p->free_frac);
        emit_put(o, text);
    }
    if (p->draft_tokens > 0) {
        (void)snprintf(text, sizeof text, "speculative_config:\n  decoding_type: %s\n  %s: %lld\n", TYPE[p->drafting],
                       p->drafting == EMIT_MTP ? "num_nextn_predict_layers" : "max_draft_len",
                       (long long)p->draft_tokens);
        emit_put(o, text);
    }
    if (p->draft_tokens > 0 && p->drafting != EMIT_MTP) {
        emit_put(o, "  speculative_model: ");
        emit_put(o, draft);
        emit_put(o, "\n");
    }
    emit_put(o, "END\n");
}

static void put_trtllm(struct emit_lines *o, const struct emit_plan *p, const char *model, const char *draft)
{
    const struct layout *l = &p->layout;
    const bool file = l->dp > 1 || p->kv || p->draft_tokens > 0 || p->prefill > 0;
    emit_say_copies(o, p,
                    p->prefill > 0
                        ? "trtllm-serve disaggregated -c FILE, which names context_servers and generation_servers"
                        : BALANCER);
    if (p->prefill > 0) emit_comment(o, "those that prefill also with disable_overlap_scheduler: true in their file");
    emit_say_checkpoint(o, p);
    emit_say_weights(o, p, EMIT_TRTLLM, model);
    emit_say_length(o, p);
    if (emit_nodes(l) > 1) {
        emit_comment(o, "one task for each GPU of all nodes of a copy, by Slurm (or mpirun -n likewise), once:");
        if (file) emit_comment(o, "the file has to be seen by every node");
    }
    if (file) put_yaml(o, p, draft);
    if (emit_nodes(l) > 1)
        emit_word(o, "srun --nodes %lld --ntasks-per-node %lld --mpi=pmix trtllm-llmapi-launch",
                  (long long)emit_nodes(l), (long long)((layout_group(l) * l->pp + emit_nodes(l) - 1) / emit_nodes(l)));
    emit_word(o, "trtllm-serve %s", emit_stored_otherwise(p, EMIT_TRTLLM) ? EMIT_STORED_SO : model);
    emit_word(o, "--tp_size %lld", (long long)layout_group(l));
    if (l->pp > 1) emit_word(o, "--pp_size %lld", (long long)l->pp);
    if (p->experts && l->ep > 1) emit_word(o, "--ep_size %lld", (long long)l->ep);
    emit_word(o, "--max_seq_len %lld", (long long)p->max_model_len);
    emit_word(o, "--max_batch_size %lld", (long long)p->max_num_seqs);
    emit_word(o, "--max_num_tokens %lld", (long long)p->step_tokens);
    emit_word(o, "--kv_cache_free_gpu_memory_fraction %.3g", p->free_frac);
    emit_word(o, "--enable_chunked_prefill");
    if (file) emit_word(o, "--config trtllm.yaml");
}

enum err_code emit_command(struct arena *a, enum emit_engine engine, const struct emit_plan *p, const char **out,
                           struct err *e)
{
    const char *why = emit_refusal(engine, p);
    if (why) return err_set(e, ERR_NO, "%s", why);
    const char *model = emit_quoted(a, p->model),
               *draft = p->drafting == EMIT_EAGLE || p->drafting == EMIT_MEDUSA ? EMIT_HEAD : p->draft;
    struct emit_lines *o = arena_alloc(a, sizeof *o);
    if (p->draft_tokens > 0 && p->drafting == EMIT_MODEL && (!draft || !emit_is_plain(draft)))
        return err_set(e, ERR_USAGE, "--emit: the draft's name or path has characters that need quoting");
    if (!model || !o) return err_nomem(e);
    *o = (struct emit_lines){0};
    switch (engine) {
    case EMIT_VLLM: put_vllm(o, p, model, draft); break;
    case EMIT_SGLANG: put_sglang(o, p, model, draft); break;
    case EMIT_TRTLLM:
    case EMIT_ENGINES: put_trtllm(o, p, model, draft); break;
    }
    emit_put(o, "\n");
    if (o->cut) return err_set(e, ERR_RANGE, "the command line is too long for a line of a shell");
    *out = o->text;
    return ERR_OK;
}
