/* simulate_summary -- what `ridge simulate` says of a whole run: one row, and its text. */
#ifndef RIDGE_CLI_SIMULATE_SUMMARY_H
#define RIDGE_CLI_SIMULATE_SUMMARY_H

#include "calc/cli/simulate.h"

/* NAN, NULL, TABLE_INT_UNKNOWN: not known, or not of this run. Spreads are in the order mean, p50, p90, p95, p99, max.
 */
struct simulate_summary {
    const char *model, *hardware, *fidelity, *server, *policy, *route, *memory, *pool, *trace, *arrivals, *marked,
        *notes;
    double bubble_frac;
    int64_t gpus, tp, pp, attention_dp, ep, dcp, replicas, requests, finished, refused, seed, samples;
    int64_t max_num_seqs, max_num_batched_tokens, pool_blocks, pool_tokens, block_tokens;
    double offered_per_s, served_per_s, span_s, overhead_s;
    double output_tok_per_s, prompt_tok_per_s, total_tok_per_s;
    double wait_s_mean, wait_s_p50, wait_s_p90, wait_s_p95, wait_s_p99, wait_s_max;
    double ttft_s_mean, ttft_s_p50, ttft_s_p90, ttft_s_p95, ttft_s_p99, ttft_s_max;
    double tpot_s_mean, tpot_s_p50, tpot_s_p90, tpot_s_p95, tpot_s_p99, tpot_s_max;
    double latency_s_mean, latency_s_p50, latency_s_p90, latency_s_p95, latency_s_p99, latency_s_max;
    double steps, busy_frac, batch_mean, batch_max, blocks_frac, blocks_max_frac, useful_frac;
    double move_s_mean, move_s_p50, move_s_p90, move_s_p95, move_s_p99, move_s_max;
    int64_t prefill_replicas;
    double kv_link_bytes_per_s, moved_bytes, link_busy_frac, prefill_busy_frac, prefill_batch_mean, prefill_blocks_frac;
    double decode_busy_frac, decode_batch_mean, decode_blocks_frac;
    const char *kv_transfer, *preemption, *draft, *accept, *band;
    double band_factor, offloaded_bytes;
    double host_blocks, host_loads, host_loaded_tokens, host_loaded_bytes, host_wait_s, host_stored_bytes,
        host_evicted_blocks;
    int64_t gamma, verify_tokens;
    double tokens_per_step, tokens_per_step_expected, kept_frac, draft_busy_frac;
    double swaps, swapped_bytes, swap_wait_s, preempted_swap_s, preempted_recompute_s;
    double preemptions, computed_tokens, cached_tokens, cached_frac, copied_blocks, evicted_blocks;
    double waiting_half, waiting_last;
    bool growing, partial;
};

/* simulate_summary_of -- of a run. Errors: ERR_NOMEM. simulate_summary_columns -- of a row; n of them.
 * simulate_summary_text -- in words. Errors: ERR_NOMEM. simulate_marked -- what its times must not be taken for; NULL:
 * nothing. */
enum err_code simulate_summary_of(struct arena *a, const struct simulate_case *c, struct simulate_summary *out,
                                  struct err *e);
const struct column *simulate_summary_columns(size_t *n);
enum err_code simulate_summary_text(struct out *o, const struct simulate_case *c, const struct simulate_summary *s,
                                    struct err *e);
const char *simulate_marked(const struct simulate_case *c);

#endif
