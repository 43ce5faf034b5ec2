/* pages -- how an engine lays layers of several kinds out in one pool of equal blocks, by vLLM's rule for hybrids.
 *
 * A layer keeps every token, those of a window, or one state a sequence. Kinds that keep alike are one type. All types
 * get pages of the same bytes:
 *
 *     block = align * ceil(state / (align * token))       tokens, when a layer keeps a state of that many bytes
 *     page  = block * token                               and a state is padded to it
 *
 * (tokens that are smaller in one type than in another: the smaller gets a longer block, a whole multiple). Layers of
 * a type are split into groups of g layers, g the smallest type's count, or the largest's when that is under 1.5 times
 * the smallest; the last group of a type is padded. A block is a page of each layer of one group, g * page bytes, and a
 * sequence holds, of every group, blocks of its own:
 *
 *     every token      ceil(len / block), or ceil(len / (block * d)) where d ranks share them
 *     window w         ceil(min(w - 1 + step, len) / block) + 1       step: tokens scheduled at once
 *     chunks of w      ceil(min(w + step, len) / block)
 *     state            1; kept at a boundary for prefix caching ("align"): 2; and one more for each drafted token,
 * after any of which it may go on; kept at every block ("all"): ceil(len / block)
 *
 * Source: vLLM, v1/core/kv_cache_utils.py (unify_kv_cache_spec_page_size, _get_kv_cache_groups_uniform_page_size,
 * get_max_concurrency_for_kv_cache_config), v1/kv_cache_interface.py (max_memory_usage_bytes),
 * model_executor/models/config.py HybridAttentionMambaModelConfig, from 0.20 platforms/interface.py; PRs 20016, 25752.
 */
#ifndef RIDGE_SERVE_PAGES_H
#define RIDGE_SERVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"

enum pages_keep { PAGES_TOKENS, PAGES_WINDOW, PAGES_CHUNKS, PAGES_STATE };

/* States kept of a sequence: the last; that and the one before, for prefix caching; one at the end of every block. */
enum pages_states { PAGES_STATES_NONE, PAGES_STATES_ALIGN, PAGES_STATES_ALL };

/* Layers that keep alike. */
struct pages_kind {
    enum pages_keep keep;
    int64_t layers;        /* >= 1 */
    int64_t bytes;         /* >= 1, of one layer on one GPU: of a token, or of a sequence's state */
    int64_t window_tokens; /* >= 1 of windows and chunks */
    int64_t context_ranks; /* every token: ranks that share them, each every so many-th; 0: 1 */
};

struct pages_rule {
    int64_t block_tokens; /* >= 1, the engine's before states are looked at */
    int64_t align_tokens; /* >= 1, a raised block is a multiple of it */
    enum pages_states states;
    int64_t chunk_tokens;         /* of the scan; PAGES_STATES_ALL: a block is a multiple of it as well */
    int64_t draft_tokens;         /* >= 0, speculated per step */
    int64_t max_model_len_tokens; /* 0 unknown; a model of states alone has blocks of that many tokens */
};

enum { PAGES_TYPES_MAX = 16 };

struct pages_type {
    struct pages_kind kind; /* all layers of the type */
    int64_t groups;
    int64_t block_tokens; /* of PAGES_STATE unread */
};

struct pages {
    size_t types_n;
    struct pages_type type[PAGES_TYPES_MAX];
    enum pages_states states;
    int64_t draft_tokens;
    int64_t block_tokens;   /* the shortest block of all types */
    int64_t page_bytes;     /* of a layer */
    int64_t group_layers;   /* g */
    int64_t groups;         /* of all types */
    int64_t padding_layers; /* groups * g - layers */
    int64_t state_bytes;    /* the largest state before padding; 0 none */
};

/* pages_lay -- the layout of n >= 1 kinds, of at most PAGES_TYPES_MAX types. Errors: ERR_RANGE a number outside its
 * domain or beyond 64 bits; ERR_USAGE pages that cannot be made equal, or states alone without a max_model_len. Cost:
 * O(n * n). */
enum err_code pages_lay(const struct pages_kind *kinds, size_t n, const struct pages_rule *rule, struct pages *out,
                        struct err *e);

/* pages_states_alone -- whether nothing in it grows: a block is then whatever max_model_len is. */
bool pages_states_alone(const struct pages *p);

/* pages_of_sequence -- blocks of a sequence of `tokens` >= 1 tokens, of which up to `step_tokens` >= 1 are scheduled at
 * once; saturates at INT64_MAX. */
int64_t pages_of_sequence(const struct pages *p, int64_t tokens, int64_t step_tokens);

/* pages_longest -- tokens of the longest sequence that fits into `blocks`, at most `limit`; 0: not one. */
int64_t pages_longest(const struct pages *p, int64_t blocks, int64_t step_tokens, int64_t limit);

#endif
