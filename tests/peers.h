/* peers.h -- mistakes that other tools make, each with the test that fails if it were made here.
 *
 * The list of mistakes is refs/peers.md of the test data, section 2: a tool is a heading there, a mistake one of its
 * bullets, counted from 1 through nested ones; and the mistakes that section 6 names, as "named". A bullet may hold
 * several mistakes: a row each. Rows without a test say why there is nothing to test. */
#ifndef RIDGE_TESTS_PEERS_H
#define RIDGE_TESTS_PEERS_H

struct peers_row {
    const char *tool;
    int bullet;
    const char *mistake;     /* of a row without a test: why there is none */
    const char *file, *test; /* "test_cost_rules", "test_one_token_reads_k_experts"; NULL: none */
};

#define RULES "test_cost_rules"
#define HERE "test_peers"

static const struct peers_row PEERS[] = {
    {"LLM-Viewer", 1, "no collectives", "test_layout", "test_sums_over_ranks"},
    {"LLM-Viewer", 2, "keys and values by KV heads", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"LLM-Viewer", 3, "all S*S pairs of a causal prefill", RULES, "test_causal_half_is_the_default"},
    {"LLM-Viewer", 4, "flash attention reads the cache of all query heads, once a block", RULES,
     "test_cache_is_read_once_and_by_kv_heads"},
    {"LLM-Viewer", 4, "an output of S*S", HERE, "test_activations_are_not_square"},
    {"LLM-Viewer", 5, "one flop a weight in the head, and that of one sequence", RULES,
     "test_lm_head_is_two_flops_per_weight"},
    {"LLM-Viewer", 5, "no memory for embedding and head", HERE, "test_memory_has_both_ends"},
    {"LLM-Viewer", 6, "scores of all pairs kept in memory", HERE, "test_activations_are_not_square"},
    {"LLM-Viewer", 7, "heads of width D/N", RULES, "test_head_width_is_not_hidden_over_heads"},
    {"LLM-Viewer", 7, "a bandwidth of 3,072 GB/s", "test_hw", "test_h100_in_base_units"},
    {"LLM-Viewer", 8, "171.8 GB of cache read for 21.47", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"LLM-Viewer", 8, "activations of the MLP as wide as the model", HERE, "test_mlp_activations_have_its_width"},
    {"LLM-Viewer", 8, "26.39 ms for 23.80", "test_step", "test_course_numbers"},
    {"LLM-Viewer", 9, "what its authors say of it", NULL, NULL},
    {"llm-analysis", 1, "every head tied to the embedding", HERE, "test_heads_of_their_own"},
    {"llm-analysis", 2, "the cache is read twice", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"llm-analysis", 3, "all pairs of a prefill", RULES, "test_causal_half_is_the_default"},
    {"llm-analysis", 3, "logits of all positions", RULES, "test_lm_head_is_two_flops_per_weight"},
    {"llm-analysis", 4, "a decode step attends to one token", HERE, "test_decode_attends_to_its_context"},
    {"llm-analysis", 5, "8.02 ms for the cache's 4.01", HERE, "test_time_of_a_cache"},
    {"llm-analysis", 5, "12.852 billion parameters for 13.015", HERE, "test_heads_of_their_own"},
    {"llm-analysis", 5, "one expert of k: 14.2 GFLOP a token for 25.5", HERE, "test_flops_of_k_experts"},
    {"llm-analysis", 5, "all experts at batch 1", RULES, "test_one_token_reads_k_experts"},
    {"llm-analysis", 5, "301,056 bytes a token for 344,064", HERE, "test_cache_of_gemma"},
    {"llm-analysis", 5, "the embedding read whole", HERE, "test_embedding_is_a_gather"},
    {"llm-analysis", 6, "arguments in the wrong place: no formula", NULL, NULL},
    {"GenZ", 1, "its method", NULL, NULL},
    {"GenZ", 2, "all pairs of a prefill", RULES, "test_causal_half_is_the_default"},
    {"GenZ", 2, "one width of elements for weights and cache", HERE, "test_cache_has_a_format_of_its_own"},
    {"GenZ", 2, "the embedding as a product of V*D", HERE, "test_embedding_is_a_gather"},
    {"GenZ", 3, "four beams of each sequence", RULES, "test_course_step_bytes"},
    {"GenZ", 3, "multiply-adds a byte for flops a byte", HERE, "test_intensity_counts_flops"},
    {"GenZ", 4, "GB for GiB: 7.38 ms for 7.92", HERE, "test_a_gigabyte_is_decimal"},
    {"GenZ", 4, "k experts at any batch: 9.5 ms for 27.8", RULES, "test_a_batch_reads_nearly_all_experts"},
    {"GenZ", 4, "experts as wide as the dense MLP: 11,542 GB for 1,340", HERE, "test_width_of_an_expert"},
    {"GenZ", 5, "its tests", NULL, NULL},
    {"LLMCompass", 1, "a simulator of tiles", NULL, NULL},
    {"LLMCompass", 2, "no causal mask", RULES, "test_causal_half_is_the_default"},
    {"LLMCompass", 2, "an MLP of 4*D without a gate", HERE, "test_gated_mlp_has_three_matrices"},
    {"LLMCompass", 3, "elements over bytes a second: 74.07 us for 148.13", HERE, "test_time_of_bytes_not_elements"},
    {"LLMCompass", 3, "no sum over one device", "test_layout", "test_one_rank_sends_nothing"},
    {"vidur", 1, "no memory for embedding, head and norms", HERE, "test_memory_has_both_ends"},
    {"vidur", 1, "a cache in fp16 always", HERE, "test_cache_has_a_format_of_its_own"},
    {"vidur", 2, "chunks of prompts joined as the root of their squares", HERE, "test_pieces_of_prompts_add_up"},
    {"vidur", 3, "2^40 for tera", HERE, "test_a_gigabyte_is_decimal"},
    {"vidur", 3, "heads of width D/N", RULES, "test_head_width_is_not_hidden_over_heads"},
    {"vidur", 3, "a vocabulary of 32,768 for 32,000", HERE, "test_heads_of_their_own"},
    {"vidur", 4, "what it lacks", NULL, NULL},
    {"vidur", 5, "times that users measured", NULL, NULL},
    {"aiconfigurator", 1, "its modes", NULL, NULL},
    {"aiconfigurator", 2, "W keys for each query of a windowed prefill", RULES, "test_windowed_prefill_is_mean_of_min"},
    {"aiconfigurator", 2, "pairs behind a cached prefix", "test_kernel", "test_pairs_are_those_of_a_loop"},
    {"aiconfigurator", 3, "min(E, n*k) experts", RULES, "test_experts_of_few_tokens_by_all_draws"},
    {"aiconfigurator", 4, "stages do not divide the cache", "test_layout", "test_caches_of_ranks"},
    {"aiconfigurator", 5, "80 GiB for what a process can use", "test_hw", "test_capacity_prefers_what_is_usable"},
    {"aiconfigurator", 6, "times that users measured", NULL, NULL},
    {"aiconfigurator", 7, "its packages", NULL, NULL},
    {"BLIS", 1, "its method; its experts are right", RULES, "test_one_token_reads_k_experts"},
    {"BLIS", 2, "its fitted form", NULL, NULL},
    {"BLIS", 3, "two matrices in a gated MLP", HERE, "test_gated_mlp_has_three_matrices"},
    {"BLIS", 3, "no head in a step", RULES, "test_course_step_bytes"},
    {"BLIS", 3, "heads of width D/N", RULES, "test_head_width_is_not_hidden_over_heads"},
    {"BLIS", 3, "a step reads keys and values of all heads of latent attention", HERE, "test_steps_read_latents"},
    {"BLIS", 3, "a KV head cut over ranks", "test_cost", "test_cache_of_a_rank"},
    {"BLIS", 3, "one number for activations", "test_pool", "test_activation"},
    {"LLMServingSim", 1, "no activations in an engine's budget", "test_pool", "test_budget"},
    {"inference-lab", 1, "one maximum over the whole pass", "test_step",
     "test_bound_never_exceeds_roofline_and_more_bandwidth_never_slows"},
    {"inference-lab", 2, "flops of latents, absorbed or not", RULES, "test_latent_attention_flops"},
    {"inference-lab", 3, "draws with replacement", RULES, "test_experts_of_few_tokens_by_all_draws"},
    {"inference-lab", 3, "no activations in an engine's budget", "test_pool", "test_budget"},
    {"inference-lab", 4, "the lecture's numbers", "test_step", "test_course_numbers"},
    {"inference-lab", 5, "names the next bullets", NULL, NULL},
    {"inference-lab", 6, "fewer experts than k for one token", RULES, "test_one_token_reads_k_experts"},
    {"inference-lab", 7, "the window of the mean", RULES, "test_windowed_prefill_is_mean_of_min"},
    {"inference-lab", 8, "keys that are values halve the cache of all layers", HERE, "test_keys_that_are_values"},
    {"inference-lab", 9, "four bits without their scales: 61.58 GB for 65.25", HERE, "test_bytes_of_four_bits"},
    {"inference-lab", 10, "a state is read and never written", "test_step", "test_state_is_read_and_written"},
    {"inference-lab", 10, "no flops in recurrent layers", "test_kernel", "test_recurrent_layers"},
    {"inference-lab", 10, "latents and KV heads cut over ranks", "test_layout", "test_caches_of_ranks"},
    {"Memory", 1, "keys and values of all heads of latent attention", RULES, "test_latent_cache_has_no_heads"},
    {"Memory", 1, "a cache in recurrent layers", HERE, "test_recurrent_layers_have_no_cache"},
    {"Memory", 1, "key lengths and layers of a GGUF", "test_checkpoint", "test_widths_of_a_gguf"},
    {"Memory", 2, "a cache in every layer of a hybrid, or none", HERE, "test_recurrent_layers_have_no_cache"},
    {"Memory", 2, "windows and shared layers", HERE, "test_windows_and_shared_layers"},
    {"Memory", 3, "a cache of query heads", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"Memory", 3, "a step that reads one sequence's cache", HERE, "test_time_of_a_cache"},
    {"Memory", 4, "keys or values alone", RULES, "test_cache_holds_keys_and_values"},
    {"Memory", 4, "all pairs of a prefill", RULES, "test_causal_half_is_the_default"},
    {"Memory", 4, "a whole multiple of D for the MLP", HERE, "test_gated_mlp_has_three_matrices"},
    {"Memory", 5, "12*D*D a layer", HERE, "test_gated_mlp_has_three_matrices"},
    {"Memory", 6, "512 cached elements for 576", RULES, "test_latent_cache_has_no_heads"},
    {"Memory", 6, "a window in every layer", RULES, "test_window_does_not_cut_full_layers"},
    {"Memory", 6, "a cache of the selected keys alone", HERE, "test_sparse_attention_keeps_all_keys"},
    {"Memory", 6, "two flops for each parameter, not for each active one", HERE, "test_flops_of_k_experts"},
    {"Memory", 6, "a decode step without its cache", HERE, "test_time_of_a_cache"},
    {"Memory", 7, "no flops in fused attention", HERE, "test_decode_attends_to_its_context"},
    {"Memory", 8, "64.7 GB for 70 billion parameters in bf16", HERE, "test_bytes_of_seventy_billion"},
    {"Memory", 9, "activations by family", "test_pool", "test_activation"},
    {"Memory", 10, "its sum of maxima, and intensity of attention", RULES, "test_course_attention"},
    {"named", 1, "experts(B=1) = k", RULES, "test_one_token_reads_k_experts"},
    {"named", 2, "window prefill is mean(min)", RULES, "test_windowed_prefill_is_mean_of_min"},
    {"named", 3, "4-bit includes its scales", RULES, "test_four_bits_include_their_scales"},
    {"named", 4, "state is read and written", "test_step", "test_state_is_read_and_written"},
    {"named", 5, "flash must not raise cache traffic", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"named", 6, "a cache read is counted once", RULES, "test_cache_is_read_once_and_by_kv_heads"},
    {"named", 7, "2.0*D*V on the head", RULES, "test_lm_head_is_two_flops_per_weight"},
    {"named", 8, "H from the config", RULES, "test_head_width_is_not_hidden_over_heads"},
    {"named", 9, "K and V both counted", RULES, "test_cache_holds_keys_and_values"},
};

#undef RULES
#undef HERE

enum { PEERS_N = sizeof PEERS / sizeof PEERS[0] };

#endif
