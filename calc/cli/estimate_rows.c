#include <math.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/cli/estimate.h"
#include "calc/cli/scope.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"
#include "calc/serve/price.h"

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct estimate_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(model, STRING, NONE, 0, "model", "the model"),
    ROW(hardware, STRING, NONE, 0, "device", "the device"),
    ROW(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    ROW(tp, INT, COUNT, 0, "TP", "tensor-parallel ranks that share one copy of the model"),
    ROW(pp, INT, COUNT, 0, "PP", "stages of layers of one copy"),
    ROW(dcp, INT, COUNT, 0, "DCP", "ranks that share the cache of a sequence by tokens"),
    ROW(ep, INT, COUNT, 0, "EP", "parts in which experts are dealt to the ranks of a stage"),
    ROW(attention_dp, INT, COUNT, 0, "DP", "attention groups of a stage, each with sequences of its own"),
    ROW(replicas, INT, COUNT, 0, "copies", "copies of the model, each with its own batch"),
    ROW(nodes, INT, COUNT, 0, "nodes", "that the GPUs stand in"),
    ROW(stages, STRING, NONE, 0, "stages", "layers of each stage"),
    ROW(microbatches, INT, COUNT, 0, "parts", "of a batch that are in the stages at once"),
    ROW(bubble_frac, REAL, FRAC, 0, "bubble", "part of the time that stages idle while those pass once"),
    ROW(batch, INT, COUNT, COLUMN_SHOWN, "batch", "sequences decoded together by one copy"),
    ROW(context, INT, COUNT, COLUMN_SHOWN, "context", "tokens of a sequence that the cache holds at its longest"),
    ROW(prompt_tokens, INT, COUNT, 0, "prompt", "tokens prefilled"),
    ROW(generate_tokens, INT, COUNT, 0, "output", "tokens generated"),
    ROW(phase, STRING, NONE, 0, "phase", "what the row is about"),
    ROW(fidelity, STRING, NONE, 0, "fidelity",
        "bound or roofline: floors, servers are 2-4 times slower; calibrated: medians of measured kernels"),
    ROW(conventions, STRING, NONE, 0, "conventions", "those that differ from the defaults"),
    ROW(weights, STRING, NONE, 0, "weights as", "format of the linear layers"),
    ROW(kv, STRING, NONE, 0, "KV as", "format of the cache"),
    ROW(attention, STRING, NONE, 0, "attention", "form of attention"),
    ROW(layers, INT, COUNT, 0, "layers", "decoder layers"),
    ROW(max_context_tokens, INT, COUNT, 0, "longest", "context that the model's file allows"),
    ROW(total_params, COUNT, COUNT, 0, "parameters", "stored parameters, a tied head once"),
    ROW(active_params, COUNT, COUNT, 0, "active",
        "parameters that one token uses, an embedding table of its own whole (some publish it left out)"),
    ROW(stored_bytes, COUNT, BYTES, 0, "stored", "bytes of all tensors of the checkpoint, by its own headers"),
    ROW(stored_elements, COUNT, COUNT, 0, "elements", "elements of those tensors, packed ones as stored"),
    ROW(tower_params, COUNT, COUNT, 0, "tower params",
        "of an image tower and what joins it to the model, beside those"),
    ROW(image_tokens, COUNT, COUNT, 0, "image tokens", "that an image, or each tile of it, becomes"),
    ROW(image_token_pixels, COUNT, COUNT, 0, "token pixels",
        "where images keep their size: side of the square of pixels that becomes one token"),
    ROW(active_params_min, COUNT, COUNT, 0, "active from",
        "fewest that a token may use, where some of its choices may compute nothing or share a group"),
    ROW(active_params_max, COUNT, COUNT, 0, "active to", "most that a token may use, there"),
    ROW(audio_params, COUNT, COUNT, 0, "audio params", "of an audio tower and what joins it to the model"),
    ROW(audio_tokens, COUNT, COUNT, 0, "audio tokens", "that 30 seconds of sound become"),
    ROW(mtp_params, COUNT, COUNT, 0, "MTP params", "of multi-token prediction modules, beside those"),
    ROW(mtp_weight_bytes, COUNT, BYTES, 0, "MTP", "stored bytes of such modules, the whole model's; not in memory"),
    ROW(lora_params, COUNT, COUNT, 0, "LoRA params", "of one adapter, with --lora"),
    ROW(lora_bytes, COUNT, BYTES, 0, "LoRA", "of one adapter in the format of activations; not in memory"),
    ROW(lora_flops_per_token, COUNT, FLOPS, 0, "LoRA flops", "matrix flops that an adapter adds to a token"),
    ROW(kv_bytes_per_token, COUNT, BYTES, 0, "KV/token",
        "whole model, all layers and indexers: of a sequence within its windows"),
    ROW(kv_bytes_per_token_full, COUNT, BYTES, 0, "KV/token full", "of those, layers without a window"),
    ROW(kv_bytes_per_token_windowed, COUNT, BYTES, 0, "KV/token win", "of those, layers with a window"),
    ROW(kv_bytes_per_token_index, COUNT, BYTES, 0, "KV/token idx", "of those, keys of indexers (sparse attention)"),
    ROW(source_tokens, INT, COUNT, 0, "source", "tokens that the encoder of an encoder-decoder reads, once a request"),
    ROW(source_bytes, COUNT, BYTES, 0, "KV source",
        "of KV, keys and values of the encoder's output on one GPU: whatever the context"),
    ROW(kv_bytes_per_token_gpu, COUNT, BYTES, 0, "KV/token GPU",
        "one GPU, all layers and indexers, replicated heads included"),
    ROW(state_bytes_per_sequence, COUNT, BYTES, 0, "state/seq", "constant recurrent state of a sequence"),
    ROW(weight_bytes, COUNT, BYTES, COLUMN_SHOWN, "weights", "stored weights on one GPU"),
    ROW(lora_slot_bytes, COUNT, BYTES, 0, "slots", "of those, slots of adapters that are served (--max-loras)"),
    ROW(offloaded_bytes, COUNT, BYTES, 0, "at the host", "weights of one GPU that are there and not on it"),
    ROW(tower_bytes, COUNT, BYTES, 0, "tower", "of an image tower on one GPU, in memory; 0 with --no-towers"),
    ROW(audio_bytes, COUNT, BYTES, 0, "audio tower", "of an audio tower on one GPU, in memory; 0 with --no-towers"),
    ROW(kv_bytes, COUNT, BYTES, COLUMN_SHOWN, "KV", "cache on one GPU at the full context, windows cut"),
    ROW(kv_allocated_bytes, COUNT, BYTES, 0, "KV alloc.", "the same as an engine allots it: whole blocks, no windows"),
    ROW(state_bytes, COUNT, BYTES, 0, "state", "recurrent state on one GPU"),
    ROW(activation_bytes, COUNT, BYTES, COLUMN_SHOWN, "act.", "largest operator's inputs and outputs"),
    ROW(memory_bytes, COUNT, BYTES, COLUMN_SHOWN, "total",
        "weights + towers + KV + state + activations on one GPU, and the draft's"),
    ROW(capacity_bytes, COUNT, BYTES, 0, "capacity", "usable memory of one GPU"),
    ROW(left_bytes, COUNT, BYTES, COLUMN_SHOWN, "left", "capacity - total; negative: so much is missing"),
    ROW(fits, BOOL, NONE, COLUMN_SHOWN, "fits",
        "total within capacity; with engine flags also within its pool and limits"),
    ROW(unfit_because, STRING, NONE, 0, "because", "why a point does not fit: memory, or a limit of the engine"),
    ROW(prefill_s, REAL, SECONDS, COLUMN_SHOWN, "TTFT", "time to first token: the prefill alone; a floor, or a median"),
    ROW(prefill_s_p10, REAL, SECONDS, COLUMN_ALIKE, "P10", "a tenth of prefills is faster (calibrated)"),
    ROW(prefill_s_p90, REAL, SECONDS, COLUMN_ALIKE, "P90", "a tenth of prefills is slower (calibrated)"),
    ROW(prefill_bound_by, STRING, NONE, 0, "TTFT by", "resource with the largest demand in prefill"),
    ROW(decode_step_s, REAL, SECONDS, COLUMN_SHOWN, "step", "one decode step; a floor, or a median"),
    ROW(decode_step_s_p10, REAL, SECONDS, COLUMN_ALIKE, "P10", "a tenth of decode steps is faster (calibrated)"),
    ROW(decode_step_s_p90, REAL, SECONDS, COLUMN_ALIKE, "P90", "a tenth of decode steps is slower (calibrated)"),
    ROW(decode_bound_by, STRING, NONE, 0, "step by", "resource with the largest demand in a decode step"),
    ROW(passes, COUNT, COUNT, 0, "passes", "of a diffusion model, to settle the tokens generated"),
    ROW(tokens_per_pass, REAL, RATIO, 0, "tokens/pass", "of a diffusion model, that a pass settles"),
    ROW(user_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "user",
        "1/step (times tokens_per_pass); a ceiling, or a median"),
    ROW(user_tok_per_s_p10, REAL, TOK_PER_S, COLUMN_ALIKE, "P10", "by step_p90: a tenth is slower (calibrated)"),
    ROW(user_tok_per_s_p90, REAL, TOK_PER_S, COLUMN_ALIKE, "P90", "by step_p10: a tenth is faster (calibrated)"),
    ROW(throughput_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "all",
        "batch*copies times that, decode only; a ceiling, or a median"),
    ROW(throughput_tok_per_s_p10, REAL, TOK_PER_S, COLUMN_ALIKE, "P10", "batch*copies times user_p10 (calibrated)"),
    ROW(throughput_tok_per_s_p90, REAL, TOK_PER_S, COLUMN_ALIKE, "P90", "batch*copies times user_p90 (calibrated)"),
    ROW(bound_by, STRING, NONE, 0, "bound by", "as decode_bound_by"),
    ROW(bounds, STRING, NONE, COLUMN_SHOWN, "bound by", "prefill/step: comp(ute), mem(ory) or link"),
    ROW(flops, COUNT, FLOPS, 0, "flops", "of a decode step on one GPU"),
    ROW(bytes, COUNT, BYTES, 0, "bytes", "of a decode step on one GPU"),
    ROW(intensity_flops_per_byte, REAL, FLOPS_PER_BYTE, 0, "intensity", "of a decode step"),
    ROW(prefill_flops, COUNT, FLOPS, 0, "prefill flops", "on one GPU"),
    ROW(prefill_bytes, COUNT, BYTES, 0, "prefill bytes", "on one GPU"),
    ROW(prefill_compute_s, REAL, SECONDS, 0, "prefill compute", "matrix flops at peak"),
    ROW(prefill_memory_s, REAL, SECONDS, 0, "prefill memory", "bytes at full bandwidth"),
    ROW(prefill_link_s, REAL, SECONDS, 0, "prefill link", "bytes sent at full link rate"),
    ROW(decode_compute_s, REAL, SECONDS, 0, "step compute", "matrix flops at peak"),
    ROW(decode_memory_s, REAL, SECONDS, 0, "step memory", "bytes at full bandwidth"),
    ROW(decode_link_s, REAL, SECONDS, 0, "step link", "bytes sent at full link rate"),
    ROW(prefill_host_s, REAL, SECONDS, 0, "prefill host", "weights read from the host at full rate of its link"),
    ROW(decode_host_s, REAL, SECONDS, 0, "step host", "weights read from the host at full rate of its link"),
    ROW(prefill_sent_bytes, COUNT, BYTES, 0, "prefill sent", "by one GPU, within its node"),
    ROW(prefill_fabric_bytes, COUNT, BYTES, 0, "prefill fabric", "by one GPU, to other nodes"),
    ROW(decode_sent_bytes, COUNT, BYTES, 0, "step sent", "by one GPU, within its node"),
    ROW(decode_fabric_bytes, COUNT, BYTES, 0, "step fabric", "by one GPU, to other nodes"),
    ROW(engine_starts, MAYBE, NONE, 0, "engine starts", "with engine flags: whether the engine starts"),
    ROW(pool_bytes, COUNT, BYTES, 0, "pool", "the engine's cache pool on one GPU"),
    ROW(pool_blocks, COUNT, COUNT, 0, "blocks", "blocks in the pool"),
    ROW(pool_tokens, COUNT, COUNT, 0, "pool tokens", "tokens in the pool"),
    ROW(max_concurrency, REAL, RATIO, 0, "concurrency", "sequences of max-model-len in the pool"),
    ROW(draft, STRING, NONE, 0, "draft", "speculation: the model that drafts"),
    ROW(draft_tp, INT, COUNT, 0, "draft TP", "ranks that share the draft"),
    ROW(accept, STRING, NONE, 0, "accept", "part of the drafted tokens that is kept, when those before were; by depth"),
    ROW(bonus_token, MAYBE, NONE, 0, "bonus", "whether a step in which nothing is refused yields one token more"),
    ROW(gamma, INT, COUNT, 0, "gamma", "tokens drafted one after the other; of a tree its depth"),
    ROW(best_gamma, INT, COUNT, 0, "best", "gamma of the fastest chain, up to 32 or as far as acceptance is given"),
    ROW(verify_tokens, INT, COUNT, 0, "verified", "query tokens of a sequence in the verify pass"),
    ROW(tokens_per_step, REAL, COUNT, 0, "tokens", "expected tokens that a step yields a sequence"),
    ROW(draft_s, REAL, SECONDS, 0, "draft", "all passes of the draft in a step; a floor, or a median"),
    ROW(verify_s, REAL, SECONDS, 0, "verify", "the target's pass over the drafted tokens; a floor, or a median"),
    ROW(spec_step_s, REAL, SECONDS, 0, "spec. step", "draft + verify; a floor, or a median"),
    ROW(spec_step_s_p10, REAL, SECONDS, COLUMN_ALIKE, "P10", "a tenth of such steps is faster (calibrated)"),
    ROW(spec_step_s_p90, REAL, SECONDS, COLUMN_ALIKE, "P90", "a tenth of such steps is slower (calibrated)"),
    ROW(spec_user_tok_per_s, REAL, TOK_PER_S, 0, "spec. user", "tokens/step of one sequence"),
    ROW(spec_throughput_tok_per_s, REAL, TOK_PER_S, 0, "spec. all", "batch*copies*tokens/step"),
    ROW(spec_throughput_tok_per_s_p10, REAL, TOK_PER_S, COLUMN_ALIKE, "P10",
        "by spec_step_p90: a tenth is slower (calibrated)"),
    ROW(spec_throughput_tok_per_s_p90, REAL, TOK_PER_S, COLUMN_ALIKE, "P90",
        "by spec_step_p10: a tenth is faster (calibrated)"),
    ROW(spec_speedup, REAL, RATIO, 0, "speedup", "over decoding one token a step; below 1 it does not pay"),
    ROW(spec_pays_until_batch, INT, COUNT, 0, "pays until",
        "largest batch at which it pays at this context, whatever the memory; 0 none, 65536 that or more"),
    ROW(draft_weight_bytes, COUNT, BYTES, 0, "draft weights", "on the GPU that holds most of the draft"),
    ROW(draft_kv_bytes, COUNT, BYTES, 0, "draft KV", "cache and state of the draft on that GPU"),
    ROW(usd_per_h, REAL, USD, 0, "$/h", "all GPUs at the device's list price (ridge list hardware)"),
    ROW(usd_per_mtok, REAL, USD_PER_MTOK, 0, "$/M", "that over the tokens out of an hour: decode only, nobody waits"),
    ROW(marked, STRING, NONE, 0, "marked", "\"does not fit\" where times are shown all the same"),
    ROW(efficiency, STRING, NONE, 0, "efficiency", "parameters of calibrated times: the first file"),
    ROW(framework, STRING, NONE, 0, "framework", "whose kernels calibrated times are of"),
    ROW(transferred, STRING, NONE, 0, "transferred", "the measured device that parameters of this one come from"),
    ROW(notes, STRING, NONE, 0, "notes", "what of the model's files is not counted, assumed or contradicted"),
    ROW(model_hash, STRING, NONE, 0, "model hash", "FNV-1a of the model's file with its settings"),
    ROW(hardware_hash, STRING, NONE, 0, "device hash", "FNV-1a of the device's numbers"),
};

const struct column *estimate_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

#define OPC(field, kind_, unit_, flags_, heading_, help_)                                                              \
    {                                                                                                                  \
        .key = #field, .heading = (heading_), .help = (help_), .kind = COLUMN_##kind_, .unit = UNITS_##unit_,          \
        .offset = offsetof(struct estimate_op_row, op) + offsetof(struct step_op, field), .flags = (flags_)            \
    }
#define OPR(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct estimate_op_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column OP_COLUMNS[] = {
    OPR(model, STRING, NONE, 0, "model", "the model"),
    OPR(hardware, STRING, NONE, 0, "device", "the device"),
    OPR(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    OPR(tp, INT, COUNT, 0, "TP", "ranks that share one copy; figures are of one rank"),
    OPR(weights, STRING, NONE, 0, "weights as", "format of the linear layers"),
    OPR(kv, STRING, NONE, 0, "KV as", "format of the cache"),
    OPR(fidelity, STRING, NONE, 0, "fidelity", "roofline: an operator's own floor; calibrated: as measured"),
    OPR(batch, INT, COUNT, 0, "batch", "sequences"),
    OPR(context, INT, COUNT, 0, "context", "tokens attended to"),
    OPR(gamma, INT, COUNT, 0, "gamma", "of draft and verify: tokens drafted one after the other, of a tree its depth"),
    OPC(phase, STRING, NONE, 0, "phase", "prefill or decode; draft: all its passes in a step, and verify"),
    OPC(layer, STRING, NONE, 0, "layer", "layer kind, or model"),
    {.key = "op",
     .heading = "op",
     .help = "the operator",
     .kind = COLUMN_STRING,
     .unit = UNITS_NONE,
     .offset = offsetof(struct estimate_op_row, op) + offsetof(struct step_op, name),
     .flags = COLUMN_SHOWN},
    OPC(kind, STRING, NONE, 0, "kind", "operator kind"),
    OPC(count, INT, COUNT, COLUMN_SHOWN, "x",
        "layers that have it, for each pass of a draft; all figures are for all of them"),
    OPC(shape, STRING, NONE, 0, "shape", "in the symbols of calc/MODEL.md"),
    OPC(compute, STRING, NONE, 0, "unit", "matrix unit"),
    OPC(flops, COUNT, FLOPS, COLUMN_SHOWN, "flops", "on the matrix unit"),
    OPC(vector_flops, COUNT, FLOPS, 0, "vector flops", "elementwise"),
    OPC(weight_bytes, COUNT, BYTES, COLUMN_SHOWN, "weights", "bytes of weights read"),
    OPC(kv_bytes, COUNT, BYTES, COLUMN_SHOWN, "KV", "cache bytes read and written"),
    OPC(state_bytes, COUNT, BYTES, 0, "state", "recurrent state read and written"),
    OPC(activation_bytes, COUNT, BYTES, COLUMN_SHOWN, "act.", "bytes of inputs and outputs"),
    OPC(wire_bytes, COUNT, BYTES, 0, "sent", "bytes sent to other ranks of the node"),
    OPC(fabric_bytes, COUNT, BYTES, 0, "fabric", "bytes sent to other nodes"),
    OPC(bytes, COUNT, BYTES, 0, "bytes", "weights + KV + state + activations"),
    OPC(intensity_flops_per_byte, REAL, FLOPS_PER_BYTE, COLUMN_SHOWN | COLUMN_SPARE, "intensity",
        "matrix flops per byte (elementwise ones where there are no others)"),
    OPC(time_s, REAL, SECONDS, COLUMN_SHOWN, "time", "max over resources"),
    OPC(bound_by, STRING, NONE, COLUMN_SHOWN, "by",
        "the resource that binds; calibrated: measured, fused or inside (another kernel), estimated"),
    OPC(share_frac, REAL, FRAC, COLUMN_SHOWN | COLUMN_SPARE, "share", "of the phase"),
};

const struct column *estimate_op_columns(size_t *n)
{
    *n = sizeof OP_COLUMNS / sizeof OP_COLUMNS[0];
    return OP_COLUMNS;
}

/* ---- a model on a device ---- */

/* "h100-sxm:8" -> device and count. */
static enum err_code open_hw(struct arena *a, const struct estimate_request *q, const char *gpu,
                             struct estimate_case *c, struct err *e)
{
    TRY(scope_gpu(a, q->options, gpu, &c->hw, &c->gpus, e));
    (void)scope_gpu_hash(&c->hw, c->hw_hash);
    return ERR_OK;
}

static enum err_code set_formats(const struct estimate_request *q, struct model *m, struct err *e)
{
    if (q->weights) TRY(stored_set_all(m, q->weights, e));
    if (q->kv && (q->models_n <= 1 || stored_has_cache(m))) /* of several models: of those that have one */
        TRY(stored_set_cache(m, q->kv, e));
    if (q->activations) TRY(dtype_find(q->activations, &m->activations, e));
    return ERR_OK;
}

/* Whole-model bytes per token and of state, before any split. */
static enum err_code whole_cache(struct arena *a, const struct model *m, struct estimate_case *c, struct err *e)
{
    struct sym_ctx *ctx = sym_open(a);
    struct cost_cache cache;
    if (!ctx) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(ctx);
    TRY(cost_cache(ctx, &y, m, 1, &cache, e));
    c->kv_full_bytes = cache.bytes_per_token_full;
    c->kv_windowed_bytes = cache.bytes_per_token_windowed;
    c->kv_index_bytes = cache.bytes_per_token_index;
    c->state_bytes = cache.state_bytes_per_sequence;
    return ERR_OK;
}

static enum err_code open_calibrated(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                     struct err *e)
{
    const struct calibrated_setup setup = {
        .step = c->step, .source = &c->source, .eager = q->eager, .mix = c->mix_plan};
    TRY(source_open(a, &c->hw, q->efficiency, q->framework, &c->source, e));
    return calibrated_open(a, &setup, &c->calibrated, e);
}

const char *estimate_fidelity_name(const struct estimate_request *q)
{
    return q->calibrated ? "calibrated" : step_fidelity_name(q->fidelity);
}

/* What is not known of every layout. */
static enum err_code check_layout(const struct estimate_request *q, const struct estimate_case *c, struct err *e)
{
    static const char HOW[] = "%s knows tensor parallelism in one node and copies, no other layout%s";
    const struct layout w = layout_whole(&c->layout);
    const bool near = w.pp == 1 && !w.sp && layout_nodes(&w, layout_group(&w)) == 1;
    struct layout whole = w; /* each rank with all of its cache */
    whole.dcp = 1;
    if (layout_plain(&c->layout)) return ERR_OK;
    if (w.dcp > 1 && q->uncached)
        return err_set(e, ERR_USAGE, "--dcp shares a cache, and with --kv none there is none");
    if (q->simulated && w.pp > 1 && w.dp == 1 && w.ep == 1 && w.dcp == 1 && !w.sp && layout_nodes(&w, w.tp) == 1)
        return q->calibrated ? err_set(e, ERR_USAGE,
                                       "a calibrated time knows the ranks of one stage in one node and "
                                       "copies, no other layout")
                             : ERR_OK;
    if (q->calibrated && !(near && (w.dp == 1 || q->mix_text || q->simulated)))
        return err_set(e, ERR_USAGE, "a calibrated time knows the ranks of one stage in one node%s",
                       near ? "; of several attention groups a mixed step (--mix)" : " and copies, no other layout");
    if (q->drafting.draft && !layout_plain(&whole)) return err_set(e, ERR_USAGE, HOW, "speculation", "");
    if (q->engine && !layout_plain(&whole))
        return err_set(e, ERR_USAGE, HOW, "an engine's pool",
                       q->simulated ? ": --pool ideal, without limits of an engine such as --kv-cache-memory" : "");
    if (q->simulated && w.pp > 1)
        return err_set(e, ERR_USAGE,
                       "stages are simulated of tensor-parallel ranks in one node, without --ep, --attention-dp and "
                       "--dcp");
    if ((q->mix_text || q->chunk) && w.pp > 1)
        return err_set(e, ERR_USAGE, "%s knows layouts of one stage, no --pp",
                       q->chunk ? "a prompt in pieces" : "a mixed step");
    if (q->training.tokens > 0) return err_set(e, ERR_USAGE, HOW, "training", "");
    return ERR_OK;
}

/* A what-if's window that no asked context exceeds. */
static enum err_code note_window(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e)
{
    const int64_t longest = estimate_longest(q, m);
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (x->kind == MIXER_ATTENTION && x->window_tokens > 0 && x->window_tokens < least) least = x->window_tokens;
    }
    if (!q->what_if || !whatif_given(a, q->what_if, "window") || least == INT64_MAX || longest > least) return ERR_OK;
    m->notes = arena_printf(a, "%s%sa window of %lld tokens cuts nothing of a context of %lld",
                            m->notes ? m->notes : "", m->notes ? "; " : "", (long long)least, (long long)longest);
    return m->notes ? ERR_OK : err_nomem(e);
}

/* The default context, where the model ends before it. */
static enum err_code note_context(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e)
{
    if (!q->context_is_default || estimate_context(q, m, 0) == q->context[0]) return ERR_OK;
    m->notes = arena_printf(a, "%s%scontext %lld in place of the default %lld: the model's file allows no more",
                            m->notes ? m->notes : "", m->notes ? "; " : "", (long long)estimate_context(q, m, 0),
                            (long long)q->context[0]);
    return m->notes ? ERR_OK : err_nomem(e);
}

/* A cache that engines lay out otherwise than its format says. */
static enum err_code note_cache(struct arena *a, struct model *m, struct err *e)
{
    const char *note = stored_cache_note(m);
    if (!note) return ERR_OK;
    m->notes = m->notes ? arena_printf(a, "%s; %s", m->notes, note) : note;
    return m->notes ? ERR_OK : err_nomem(e);
}

/* What the text says as notes, for rows. */
static enum err_code note_rows(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                               struct err *e)
{
    const struct model *m = &c->model;
    const int64_t longest = estimate_longest(q, m);
    const char *note;
    c->notes = m->notes;
    for (size_t i = 0; c->calibrated && (note = calibrated_note(c->calibrated, i)) != NULL; i++) {
        c->notes = arena_printf(a, "%s%s%s", c->notes ? c->notes : "", c->notes ? "; " : "", note);
        if (!c->notes) return err_nomem(e);
    }
    if (m->max_context_tokens <= 0 || longest <= m->max_context_tokens) return ERR_OK;
    c->notes =
        arena_printf(a, "%s%scontext %lld is beyond the %lld that the model's file allows", c->notes ? c->notes : "",
                     c->notes ? "; " : "", (long long)longest, (long long)m->max_context_tokens);
    return c->notes ? ERR_OK : err_nomem(e);
}

/* Slots of adapters. */
static enum err_code note_adapters(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e)
{
    struct model *m = &c->model;
    if (m->adapters.slots == 0) return ERR_OK;
    const char *note = lora_options_note(a, &q->adapters, m, step_adapter_bytes(c->step));
    m->notes = note ? arena_printf(a, "%s%s%s", m->notes ? m->notes : "", m->notes ? "; " : "", note) : NULL;
    return m->notes ? ERR_OK : err_nomem(e);
}

enum err_code estimate_case_open(struct arena *a, const struct estimate_request *q, const char *model, const char *gpu,
                                 struct estimate_case *out, struct err *e)
{
    struct estimate_case *c = out;
    *c = (struct estimate_case){0};
    TRY(model_load(a, model, q->set, q->set_n, &c->model, e));
    c->model.towerless = q->towerless;
    TRY(set_formats(q, &c->model, e));
    if (q->diffusion_block && c->model.diffusion) c->model.block_tokens = q->diffusion_block;
    if (q->what_if) TRY(whatif_apply_all(a, &c->model, q->what_if, e));
    TRY(estimate_source_open(a, q, &c->model, e));
    TRY(note_cache(a, &c->model, e));
    TRY(note_context(a, q, &c->model, e));
    TRY(note_window(a, q, &c->model, e));
    TRY(lora_options_apply(&q->adapters, &c->model, e));
    if (q->training.tokens > 0) TRY(train_model(q->training.recipe, &c->model, e));
    TRY(open_hw(a, q, gpu, c, e));
    if (q->course) hw_pin_course(&c->hw);
    c->capacity_bytes = hw_capacity_bytes(&c->hw);
    TRY(layout_options_open(&q->layout, c->gpus, &c->hw, &c->layout, e));
    if (q->models_n == 1 && q->gpus_n == 1)
        TRY(layout_options_used(&q->layout, &c->model, c->gpus, c->layout.per_node, &c->layout, e));
    TRY(offload_options_open(&q->offload, &c->hw, &c->offload, &c->host_link, e));
    c->tp = c->layout.tp;
    c->replicas = c->layout.replicas;
    (void)layout_stages_text(&c->model, &c->layout, c->stages, sizeof c->stages);
    TRY(check_layout(q, c, e));
    TRY(cost_parameters(a, &c->model, &q->conventions, &c->params, e));
    TRY(whole_cache(a, &c->model, c, e));
    TRY(estimate_switches_check(q, c, e));
    TRY(estimate_beside_open(a, q, c, e));
    TRY(estimate_diffusion_open(a, q, c, e));
    const struct step_setup setup = {.model = &c->model,
                                     .hw = &c->hw,
                                     .layout = c->layout,
                                     .latency = q->layout.latency,
                                     .fidelity = q->fidelity,
                                     .conventions = q->conventions,
                                     .prefill_together = q->prefill_together,
                                     .uncached = c->uncached,
                                     .averaged = q->averaged,
                                     .served = q->simulated,
                                     .overlapped = q->overlapped,
                                     .block_tokens = q->block_tokens,
                                     .pass_tokens = c->diffusion.block_tokens,
                                     .offload = c->offload};
    if (step_compile(a, &setup, &c->step, e) != ERR_OK) {
        struct err why = {.code = ERR_OK};
        c->step = NULL;
        if (layout_check_of(&c->model, &c->layout, &why) == ERR_USAGE) {
            const size_t own = strlen(c->model.name); /* which the row says already */
            const bool named = strncmp(why.text, c->model.name, own) == 0 && strncmp(why.text + own, ": ", 2) == 0;
            const char *text = why.text + (named ? own + 2 : 0);
            c->unsplit = arena_strndup(a, text, strlen(text));
        }
        return e->code;
    }
    TRY(note_adapters(a, q, c, e));
    if (q->chunk || q->mix_text || q->simulated) {
        struct step_setup mixed = setup;
        if (q->simulated && q->drafting.draft) TRY(estimate_drafting_judged(a, &q->drafting, &mixed.pass_tokens, e));
        if (mix_compile(a, &mixed, &c->mix_plan, e) != ERR_OK)
            return q->simulated ? e->code : err_prepend(e, q->chunk ? "--chunk: " : "--mix: ");
        TRY(mix_open(a, c->mix_plan, &c->mix, e));
    }
    if (q->calibrated) TRY(open_calibrated(a, q, c, e));
    if (q->drafting.draft) TRY(estimate_drafting_open(a, q, &setup, c, e));
    TRY(estimate_note_stored(a, q, c, e));
    if (!q->simulated) TRY(model_check_context(&c->model, estimate_longest(q, &c->model), e));
    if (q->drafting.draft && model_check_context(&c->draft, estimate_longest(q, &c->draft), e) != ERR_OK)
        return err_prepend(e, "--draft: ");
    TRY(note_rows(a, q, c, e));
    return q->engine ? estimate_engine_open(a, q, c, e) : ERR_OK;
}

/* ---- points ---- */

static int64_t most(const int64_t *list, size_t n)
{
    int64_t r = 0;
    for (size_t i = 0; i < n; i++) r = list[i] > r ? list[i] : r;
    return r;
}

int64_t estimate_context(const struct estimate_request *q, const struct model *m, size_t i)
{
    const int64_t most_tokens = q->context_is_default ? model_context_limit(m) : 0;
    return most_tokens > 0 && most_tokens < q->context[i] ? most_tokens : q->context[i];
}

int64_t estimate_longest(const struct estimate_request *q, const struct model *m)
{
    const int64_t before = m->encoder.layers > 0 ? m->encoder.start_tokens : most(q->prompt, q->prompt_n);
    if (q->averaged) return before + most(q->generate, q->generate_n);
    return q->context_is_default ? estimate_context(q, m, 0) : most(q->context, q->context_n);
}

size_t estimate_points(const struct estimate_request *q)
{
    return q->batch_n * (q->averaged ? q->prompt_n * q->generate_n : q->context_n);
}

/* "comp/mem": both phases in the width of a table. */
static const char *short_bounds(const char *prefill, const char *decode)
{
    static const char *const BOTH[4][4] = {{"comp/comp", "comp/mem", "comp/link", "comp/host"},
                                           {"mem/comp", "mem/mem", "mem/link", "mem/host"},
                                           {"link/comp", "link/mem", "link/link", "link/host"},
                                           {"host/comp", "host/mem", "host/link", "host/host"}};
    static const char FIRST[] = "cmlh";
    return BOTH[strchr(FIRST, prefill[0]) - FIRST][strchr(FIRST, decode[0]) - FIRST];
}

static const char *binder(double compute, double memory, double link, double host)
{
    if (host > compute && host > memory && host > link) return "host";
    if (link > compute && link > memory) return "link";
    return compute >= memory ? "compute" : "memory";
}

/* What a point of the request asks: sizes of point i. */
struct asked {
    int64_t batch, context, prompt, generate;
};

static struct asked asked_at(const struct estimate_request *q, const struct model *m, size_t i)
{
    const bool encodes = m->encoder.layers > 0; /* the prompt is its source */
    struct asked k = {.batch = q->batch[i % q->batch_n]};
    const size_t at = i / q->batch_n;
    if (q->averaged) {
        k.prompt = q->prompt[at / q->generate_n];
        k.generate = q->generate[at % q->generate_n];
        k.context = (encodes ? m->encoder.start_tokens : k.prompt) + k.generate;
    } else {
        k.prompt = k.context = estimate_context(q, m, at);
        k.generate = TABLE_INT_UNKNOWN;
        if (encodes) k.prompt = m->encoder.source_tokens;
    }
    return k;
}

static void hide_times(struct estimate_row *r)
{
    const double unknown = (double)NAN;
    r->prefill_s = r->decode_step_s = r->user_tok_per_s = r->throughput_tok_per_s = r->usd_per_mtok = unknown;
    r->flops = r->bytes = r->intensity_flops_per_byte = r->prefill_flops = r->prefill_bytes = unknown;
    r->prefill_compute_s = r->prefill_memory_s = r->prefill_link_s = r->prefill_host_s = unknown;
    r->decode_host_s = unknown;
    r->decode_compute_s = r->decode_memory_s = r->decode_link_s = unknown;
    r->prefill_sent_bytes = r->prefill_fabric_bytes = r->decode_sent_bytes = r->decode_fabric_bytes = unknown;
    r->prefill_s_p10 = r->prefill_s_p90 = r->decode_step_s_p10 = r->decode_step_s_p90 = unknown;
    r->user_tok_per_s_p10 = r->user_tok_per_s_p90 = unknown;
    r->throughput_tok_per_s_p10 = r->throughput_tok_per_s_p90 = unknown;
    r->tokens_per_step = r->draft_s = r->verify_s = r->spec_step_s = unknown;
    r->spec_user_tok_per_s = r->spec_throughput_tok_per_s = r->spec_speedup = unknown;
    r->spec_step_s_p10 = r->spec_step_s_p90 = unknown;
    r->spec_throughput_tok_per_s_p10 = r->spec_throughput_tok_per_s_p90 = unknown;
    r->gamma = r->best_gamma = r->verify_tokens = r->spec_pays_until_batch = TABLE_INT_UNKNOWN;
    r->prefill_bound_by = r->decode_bound_by = r->bound_by = r->bounds = NULL;
}

/* Passes over whole sequences have no prefill apart. */
static void hide_prefill(struct estimate_row *r)
{
    const double unknown = (double)NAN;
    r->prefill_s = r->prefill_flops = r->prefill_bytes = unknown;
    r->prefill_s_p10 = r->prefill_s_p90 = unknown;
    r->prefill_compute_s = r->prefill_memory_s = r->prefill_link_s = r->prefill_host_s = unknown;
    r->prefill_bound_by = NULL;
    r->bounds = r->decode_bound_by;
}

static void fill_constant(const struct estimate_request *q, const struct estimate_case *c, struct estimate_row *r)
{
    const struct model *m = &c->model;
    const double unknown = (double)NAN;
    const bool split = c->step != NULL;
    const double replicated = split ? step_kv_bytes_per_token(c->step) : unknown;
    *r = (struct estimate_row){
        .engine_starts = unknown,
        .source_tokens = TABLE_INT_UNKNOWN,
        .source_bytes = unknown,
        .prefill_host_s = unknown,
        .decode_host_s = unknown,
        .lora_slot_bytes = split ? step_adapter_bytes(c->step) : unknown,
        .offloaded_bytes = split ? step_offloaded_bytes(c->step) : unknown,
        .prefill_s_p10 = unknown,
        .prefill_s_p90 = unknown,
        .decode_step_s_p10 = unknown,
        .decode_step_s_p90 = unknown,
        .user_tok_per_s_p10 = unknown,
        .user_tok_per_s_p90 = unknown,
        .throughput_tok_per_s_p10 = unknown,
        .throughput_tok_per_s_p90 = unknown,
        .usd_per_h = c->hw.price_list_usd_per_h * (double)c->gpus,
        .usd_per_mtok = unknown,
        .efficiency = c->calibrated ? c->source.name : NULL,
        .framework = c->calibrated ? c->source.framework : NULL,
        .transferred = c->calibrated && c->source.transfer[0] != SOURCE_OWN ? c->source.file[0].device : NULL,
        .pool_bytes = unknown,
        .pool_blocks = unknown,
        .pool_tokens = unknown,
        .max_concurrency = unknown,

        .model = m->name,
        .hardware = c->hw.key,
        .phase = "serve",
        .fidelity = estimate_fidelity_name(q),
        .conventions = q->conventions_text,
        .weights = model_linear_format(m)->name,
        .kv = c->uncached ? "none" : m->kv.name,
        .attention = m->attention,
        .notes = c->notes,
        .model_hash = m->hash,
        .hardware_hash = c->hw_hash,
        .gpus = c->gpus,
        .tp = c->tp,
        .replicas = c->replicas,
        .pp = c->layout.pp,
        .dcp = c->layout.dcp,
        .ep = c->layout.ep,
        .attention_dp = c->layout.dp,
        .nodes = layout_nodes(&c->layout, c->gpus),
        .stages = c->layout.pp > 1 ? c->stages : NULL,
        .microbatches = c->layout.microbatches,
        .bubble_frac = layout_bubble(c->layout.pp, c->layout.microbatches),
        .kv_bytes_per_token = c->kv_full_bytes + c->kv_windowed_bytes + c->kv_index_bytes,
        .kv_bytes_per_token_full = c->kv_full_bytes,
        .kv_bytes_per_token_windowed = c->kv_windowed_bytes,
        .kv_bytes_per_token_index = c->kv_index_bytes,
        .layers = m->layers,
        .max_context_tokens = m->max_context_tokens ? m->max_context_tokens : TABLE_INT_UNKNOWN,
        .total_params = c->params.total,
        .active_params = c->params.active,
        .active_params_min = estimate_active_varies(c) ? c->params.active_min : (double)NAN,
        .active_params_max = estimate_active_varies(c) ? c->params.active_max : (double)NAN,
        .stored_bytes = m->stored_bytes,
        .stored_elements = m->stored_elems,
        .weight_bytes = split ? step_weight_bytes(c->step) : unknown,
        .kv_bytes_per_token_gpu = replicated,
        .state_bytes_per_sequence = c->uncached ? 0 : c->state_bytes,
        .tower_params = c->beside.tower_params,
        .tower_bytes = c->beside.tower_bytes,
        .audio_params = c->beside.audio_params,
        .audio_bytes = c->beside.audio_bytes,
        .image_tokens = c->model.tower.tokens > 0 ? c->model.tower.tokens : unknown,
        .image_token_pixels = c->model.tower.token_pixels > 0 ? (double)c->model.tower.token_pixels : unknown,
        .audio_tokens = c->model.audio.tokens > 0 ? c->model.audio.tokens : unknown,
        .mtp_params = c->beside.mtp_params,
        .mtp_weight_bytes = c->beside.mtp_bytes,
        .lora_params = c->beside.lora.params,
        .lora_bytes = c->beside.lora_bytes,
        .lora_flops_per_token = c->beside.lora.flops_per_token,
        .capacity_bytes = c->capacity_bytes};
}

static void fill_engine(const struct estimate_engine *g, struct estimate_row *r)
{
    r->engine_starts = g->refusal[0] ? 0 : 1;
    r->pool_bytes = floor(g->pool.pool_bytes);
    r->pool_blocks = (double)g->pool.blocks;
    r->pool_tokens = (double)g->pool.tokens;
    r->max_concurrency = g->pool.max_concurrency;
}

/* Calibrated times of a point in place of floors; floors alone have no band. */
static void fill_calibrated(const struct estimate_request *q, const struct estimate_case *c, const struct asked *k,
                            struct estimate_row *r)
{
    const double B = (double)k->batch, T = (double)k->prompt;
    const double M = q->averaged ? estimate_generated(c, k->generate) : 1, S = q->averaged ? T + M : (double)k->context;
    struct calibrated_time t;
    if (q->only != ONLY_DECODE) {
        struct mix pieces = c->mix;
        if (q->chunk)
            calibrated_mix_prompt(c->calibrated, &pieces, T, (double)q->chunk, &t);
        else
            calibrated_eval(c->calibrated, STEP_PREFILL, 1, &B, &T, &S, &M, &r->prefill_s, &t);
        r->prefill_s = t.s;
        r->prefill_s_p10 = t.p10_s;
        r->prefill_s_p90 = t.p90_s;
    }
    if (q->only == ONLY_PREFILL) return;
    calibrated_eval(c->calibrated, STEP_DECODE, 1, &B, &T, &S, &M, &r->decode_step_s, &t);
    r->decode_step_s = t.s;
    r->decode_step_s_p10 = t.p10_s;
    r->decode_step_s_p90 = t.p90_s;
}

/* Speculation at a point; batches of one context share what it says about them. */
struct drafted {
    struct speculate_point point;
    struct asked of;
    int64_t pays_until;
};

static void speculate(const struct estimate_request *q, const struct estimate_case *c, const struct asked *k,
                      struct drafted *d)
{
    const struct speculate_setup *s = &c->speculation;
    const double T = (double)k->prompt, S = (double)k->context, M = q->averaged ? (double)k->generate : 1;
    speculate_eval(s, (double)k->batch, T, S, M, &d->point);
    if (k->context != d->of.context || k->prompt != d->of.prompt) d->pays_until = speculate_pays_until(s, T, S, M);
    d->of = *k;
}

static void fill_point(const struct estimate_request *q, const struct estimate_case *c, const struct asked *k,
                       const double *v, const struct drafted *drafted, struct estimate_row *r)
{
    r->batch = k->batch;
    r->context = k->context;
    r->prompt_tokens = k->prompt;
    r->generate_tokens = k->generate;
    r->passes = estimate_passes(c, k->generate);
    r->tokens_per_pass = c->model.diffusion ? estimate_tokens_per_pass(c, k->generate) : (double)NAN;
    r->kv_bytes = v[STEP_kv_bytes];
    r->kv_allocated_bytes = v[STEP_kv_allocated_bytes];
    if (c->model.encoder.layers > 0) {
        r->source_tokens = k->prompt;
        r->source_bytes = (double)(k->batch * k->prompt) * step_kv_bytes_per_source_token(c->step);
    }
    r->state_bytes = v[STEP_state_bytes];
    r->activation_bytes = v[STEP_activation_bytes];
    r->memory_bytes = v[STEP_memory_bytes];
    r->weight_bytes = v[STEP_weight_bytes];
    r->lora_slot_bytes = v[STEP_adapter_bytes];
    r->offloaded_bytes = v[STEP_offloaded_bytes];
    if (q->drafting.draft) estimate_drafting_memory(&drafted->point, r);
    r->left_bytes = r->capacity_bytes - r->memory_bytes;
    r->unfit_because = r->left_bytes < 0 ? "memory" : NULL;
    if (q->engine && !r->unfit_because) r->unfit_because = estimate_engine_limit(&c->engine, k->batch, k->context);
    r->fits = r->unfit_because == NULL;
    if ((!r->fits && !q->ignore_memory) || q->only == ONLY_MEMORY) {
        hide_times(r);
        return;
    }
    r->marked = r->fits ? NULL : "does not fit";
    if (!step_timed(c->step)) {
        hide_times(r);
        return;
    }
    r->prefill_s = v[STEP_prefill_s];
    r->prefill_flops = v[STEP_prefill_flops];
    r->prefill_bytes = v[STEP_prefill_bytes];
    r->prefill_compute_s = v[STEP_prefill_compute_s];
    r->prefill_memory_s = v[STEP_prefill_memory_s];
    r->prefill_link_s = v[STEP_prefill_link_s];
    r->decode_step_s = v[STEP_decode_step_s];
    r->flops = v[STEP_decode_flops];
    r->bytes = v[STEP_decode_bytes];
    r->decode_compute_s = v[STEP_decode_compute_s];
    r->decode_memory_s = v[STEP_decode_memory_s];
    r->decode_link_s = v[STEP_decode_link_s];
    if (c->offload.bytes > 0) {
        r->prefill_host_s = v[STEP_prefill_host_bytes] / c->offload.host_bytes_per_s;
        r->decode_host_s = v[STEP_decode_host_bytes] / c->offload.host_bytes_per_s;
    }
    r->prefill_sent_bytes = v[STEP_prefill_wire_bytes];
    r->prefill_fabric_bytes = v[STEP_prefill_fabric_bytes];
    r->decode_sent_bytes = v[STEP_decode_wire_bytes];
    r->decode_fabric_bytes = v[STEP_decode_fabric_bytes];
    r->intensity_flops_per_byte = r->flops / r->bytes;
    const double settled = estimate_tokens_per_pass(c, k->generate), all = (double)(k->batch * c->replicas);
    if (c->calibrated) fill_calibrated(q, c, k, r);
    r->user_tok_per_s = settled / r->decode_step_s;
    r->user_tok_per_s_p10 = settled / r->decode_step_s_p90;
    r->user_tok_per_s_p90 = settled / r->decode_step_s_p10;
    r->throughput_tok_per_s = settled * all / r->decode_step_s;
    const struct price_use use = {.gpus = (double)c->gpus,
                                  .usd_per_h = c->hw.price_list_usd_per_h,
                                  .power_w = (double)NAN,
                                  .decode_frac = 1,
                                  .out_tok_per_s = r->throughput_tok_per_s};
    r->usd_per_mtok = price_cost(&use).usd_per_mtok;
    r->throughput_tok_per_s_p10 = all * r->user_tok_per_s_p10;
    r->throughput_tok_per_s_p90 = all * r->user_tok_per_s_p90;
    r->prefill_bound_by = binder(r->prefill_compute_s, r->prefill_memory_s, r->prefill_link_s, r->prefill_host_s);
    r->bound_by = r->decode_bound_by =
        binder(r->decode_compute_s, r->decode_memory_s, r->decode_link_s, r->decode_host_s);
    r->bounds = short_bounds(r->prefill_bound_by, r->decode_bound_by);
    if (c->model.diffusion && c->diffusion.block_tokens == 0) hide_prefill(r);
    if (!q->drafting.draft) return;
    estimate_drafting_times(c, &drafted->point, drafted->pays_until, r);
    estimate_drafting_band(c, (double)k->batch, (double)k->prompt, (double)k->context,
                           q->averaged ? (double)k->generate : 1, &drafted->point, r);
}

/* Points of a model that cannot be split so: what it is, and no more. */
static void fill_unsplit(const struct estimate_request *q, const struct estimate_case *c, size_t first, size_t n,
                         struct estimate_row *rows)
{
    const double unknown = (double)NAN;
    for (size_t i = 0; i < n; i++) {
        const struct asked k = asked_at(q, &c->model, first + i);
        struct estimate_row *r = &rows[i];
        fill_constant(q, c, r);
        r->batch = k.batch;
        r->context = k.context;
        r->prompt_tokens = k.prompt;
        r->generate_tokens = k.generate;
        r->passes = r->tokens_per_pass = unknown;
        r->kv_bytes = r->kv_allocated_bytes = r->state_bytes = r->activation_bytes = unknown;
        r->memory_bytes = r->left_bytes = unknown;
        r->draft_weight_bytes = r->draft_kv_bytes = unknown;
        r->unfit_because = r->notes = c->unsplit;
        r->fits = false;
        hide_times(r);
    }
}

enum err_code estimate_eval(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                            size_t first, size_t n, struct estimate_row *rows, struct err *e)
{
    if (c->unsplit) {
        fill_unsplit(q, c, first, n, rows);
        return ERR_OK;
    }
    double *block = arena_array(a, n * (4 + STEP_VALUES_N), sizeof *block);
    double *column[STEP_VALUES_N];
    struct estimate_row constant;
    if (!block) return err_nomem(e);
    double *B = block, *T = block + n, *S = block + 2 * n, *M = block + 3 * n;
    for (size_t v = 0; v < STEP_VALUES_N; v++) column[v] = block + (4 + v) * n;
    for (size_t i = 0; i < n; i++) {
        const struct asked k = asked_at(q, &c->model, first + i);
        B[i] = (double)k.batch;
        T[i] = (double)k.prompt;
        M[i] = q->averaged ? estimate_generated(c, k.generate) : 1;
        S[i] = q->averaged ? (double)(k.context - k.generate) + M[i] : (double)k.context;
    }
    step_eval(c->step, n, B, T, S, M, column);
    fill_constant(q, c, &constant);
    if (q->engine) fill_engine(&c->engine, &constant);
    estimate_drafting_constant(q, c, &constant);
    if (c->uncached)
        constant.kv_bytes_per_token = constant.kv_bytes_per_token_full = constant.kv_bytes_per_token_windowed =
            constant.kv_bytes_per_token_index = constant.kv_bytes_per_token_gpu = 0;
    struct drafted drafted = {.of = {.context = 0}};
    for (size_t i = 0; i < n; i++) {
        const struct asked k = asked_at(q, &c->model, first + i);
        double v[STEP_VALUES_N];
        for (size_t j = 0; j < STEP_VALUES_N; j++) v[j] = column[j][i];
        if (q->chunk) estimate_chunked(q, c, B[i], T[i], S[i], M[i], v);
        rows[i] = constant;
        if (q->drafting.draft) speculate(q, c, &k, &drafted);
        fill_point(q, c, &k, v, &drafted, &rows[i]);
    }
    return ERR_OK;
}
