/* build -- what the operator builders share; private to calc/cost. */
#ifndef RIDGE_COST_BUILD_H
#define RIDGE_COST_BUILD_H

#include "calc/cost/cost.h"

struct build {
    struct arena *arena;
    struct sym_ctx *c;
    const struct cost_symbols *y;
    const struct model *m;
    const struct cost_conventions *v;
    const struct cost_pass *pass;
    const struct sym *rows;   /* B*T */
    const struct sym *routed; /* of all attention groups */
    /* Of the sequences that attend by themselves: how often what one has is taken (B), tokens of one, of all. In a part
     * of a mixed pass one takes the sums over them (build_each), so that they are 1, and its tokens both times. */
    const struct sym *many, *tokens, *part_rows;
    /* Ranks: whether t, and attention groups, may be more than one; their number, parts of the experts, skew (1 where
     * they are), and 1 or 0 for a free layout; rows over which norms and sums run. */
    bool split, spread;
    const struct sym *groups, *parts, *skew, *is_split, *is_spread, *norm_rows;
    const struct sym *context; /* ranks that share the cache of the layer by tokens; NULL: each has all of it */
    struct layout_symbols ly;
    const struct cost_layout *layout;
    int kind_index;
    int64_t count;
    bool both_ways; /* tokens see each other */
    bool borrowed;  /* tensors belong to an earlier layer */
    bool by_group;  /* experts of groups: E and k are theirs */
    bool parallel;  /* in a layer whose blocks are summed before one reduction */
    struct cost_ops *ops;
    size_t ops_cap;
};

/* build_each -- what one sequence has, to be taken `many` times; in a part of a mixed pass the sum over its sequences,
 * a symbol of its own. */
const struct sym *build_each(struct build *b, const struct sym *each);

/* build_apart -- mark the last operator as working on each sequence by itself. */
void build_apart(struct build *b);

/* build_op -- append an operator; the caller fills the expressions it has, the rest become 0. */
struct cost_op *build_op(struct build *b, enum cost_op_kind kind, const char *name, const char *shape);

/* A tensor of n matrices of out[i] rows and `in` columns side by side, `copies` times; they are those from `first` on
 * of the `all` that the operator has. */
struct build_stack {
    size_t first, all, n;
    const struct sym *copies, *const *out, *in;
};

/* build_matrices -- append the tensor; each matrix is stored in the format of its own, or that of the class, with
 * scales of its own. build_width -- bytes per element of a class. */
void build_matrices(struct build *b, struct cost_op *op, enum weight_class class, const struct build_stack *s);
const struct sym *build_width(const struct build *b, enum weight_class class);

/* build_outliers -- what a format with outlier columns adds to a product of `rows` with a share of the copies: those
 * columns of the weight and of the input once more in 16 bits, and their product summed into the output. */
void build_outliers(struct build *b, struct cost_op *op, enum weight_class class, const struct build_stack *s,
                    const struct sym *rows, const struct sym *share);

/* build_tensor -- copies tensors of out x in elements; bytes by the class's stored format. norm: counts as a norm. */
void build_tensor(struct build *b, struct cost_op *op, enum weight_class class, const struct sym *copies,
                  const struct sym *out, const struct sym *in);
/* build_vector -- a vector of n elements in plain storage. */
void build_vector(struct build *b, struct cost_op *op, const struct sym *n, bool norm);

/* build_stacked -- y[rows, out] = x[rows, in] W as one product, where W is n matrices of out[i] rows that are stored
 * side by side (q, k and v; gate and up), each with scales of its own; with bias when asked. build_linear -- of one
 * matrix. */
void build_stacked(struct build *b, const char *name, const char *shape, enum weight_class class,
                   const struct sym *rows, const struct sym *in, size_t n, const struct sym *const *out, bool bias);
void build_linear(struct build *b, const char *name, const char *shape, enum weight_class class, const struct sym *rows,
                  const struct sym *in, const struct sym *out, bool bias);

/* build_norm_flops -- elementwise flops per element of a norm: RMS x*x, +, *rstd, *w; layer norm further + for the
 * mean, -mean, and +bias. Statistics alone: without *w. */
int64_t build_norm_flops(enum norm_kind kind);

/* build_norm_vectors -- vectors that a norm stores: weight and bias. */
int64_t build_norm_vectors(enum norm_kind kind);

/* build_norms -- n norms over the model width. */
void build_norms(struct build *b, const char *name, int64_t n);
/* build_all_reduce -- sum of rows x width over the tensor-parallel ranks (a reduce-scatter and an all-gather where
 * norms are split over them); width NULL: of the model. */
void build_all_reduce(struct build *b, const char *name);
void build_sum_over_ranks(struct build *b, const char *name, const char *shape, const struct sym *width);

/* build_sum_of_bytes -- the same of as many bytes on each rank. */
void build_sum_of_bytes(struct build *b, const char *name, const char *shape, const struct sym *bytes);

/* build_gather_of_bytes -- a part of so many bytes of each of the tensor-parallel ranks on all of them. */
void build_gather_of_bytes(struct build *b, const char *name, const char *shape, const struct sym *part);

/* Adapters that are served beside the model (adapters.c); nothing where there are none. build_adapted -- beside a
 * product of `rows` by n matrices of out[i] rows, by its name: those of a name that the table there has. idle: slots of
 * a product that this pass does without. build_adapted_experts -- beside the grouped product of `pairs` rows, where
 * tokens of one sequence touch `touched` of the experts, `held` of which are on the rank. build_adapted_embedding,
 * build_adapted_head -- beside both ends. */
void build_adapted(struct build *b, const char *beside, const struct sym *rows, const struct sym *in, size_t n,
                   const struct sym *const *out);
struct adapted_experts {
    const struct sym *pairs, *touched, *held;
};
void build_adapted_experts(struct build *b, const char *beside, const struct adapted_experts *x, const struct sym *in,
                           size_t n, const struct sym *const *out);
void build_adapted_embedding(struct build *b);
void build_adapted_head(struct build *b, const struct sym *rows);

/* attended: per sequence and pass, (query, key) pairs that are computed, key positions that are read, and those that no
 * fusion avoids. MODEL.md "Pairs and keys". */
struct attended {
    const struct sym *pairs, *keys, *needed;
};

/* Encoder-decoders (source.c); nothing for other models. build_source_open -- what is before the encoder's layers,
 * build_source_close -- what is behind them. build_source_enter -- the layers that follow are the encoder's: of X
 * tokens that see each other, without a cache; build_source_leave puts back what was, and holds them in a pass that
 * does not encode. build_source_attention -- attention to the encoder's output. build_hold -- operators from `from` on
 * are of another pass: their tensors are held, and nothing of them runs. */
struct build_source {
    struct cost_pass pass;
    struct build was;
    size_t from;
};
void build_source_open(struct build *b);
void build_source_close(struct build *b);
void build_source_enter(struct build *b, struct build_source *s);
void build_source_leave(struct build *b, const struct build_source *s);
void build_source_attention(struct build *b, const struct mixer *x);
void build_hold(struct build *b, size_t from);

/* build_positions -- a stored row of positions added to each of the pass's tokens. */
void build_positions(struct build *b, const char *name, const char *shape, const struct sym *rows);

/* build_bias -- a bias of n elements of the last operator's output. */
void build_bias(struct build *b, const struct sym *n);

/* build_attends -- attention of N queries of width qk against keys and values held as `cached` elements a token, `at`
 * of them; from_cache, or made by this pass. */
void build_attends(struct build *b, const struct mixer *x, const char *shape, const struct attended *at,
                   const struct sym *cached, bool from_cache);

/* build_index_parts -- parts in which tp ranks share the heads of an indexer: as many as divide both numbers, in
 * DeepSeek-V4 and MiniMax-M3; 1 where each has all of them (DeepSeek-V3.2), and where there are none. */
int64_t build_index_parts(const struct mixer *x, int64_t tp);

/* build_residual -- y = a + b over the model width. */
void build_residual(struct build *b, const char *name);

/* Gemma 3n and 4 (streams.c): what stands before and after the layers, and within one. Nothing for other models. */
void build_layer_inputs(struct build *b); /* per-layer inputs of all layers, once a pass */
void build_streams_open(struct build *b); /* one stream becomes several, several one */
void build_streams_close(struct build *b);
void build_predict(struct build *b); /* before the blocks of a layer */
void build_laurel(struct build *b);
void build_correct(struct build *b); /* after them, with the layer's own input and scale */

/* build_residuals_* -- attention residuals: the mixture that a block reads, and that of the output; how many vectors
 * of the model width go from one of so many stages to the next, on average. Layers of a kind have the mean of all
 * layers, so that sums over the layers are exact. */
void build_residuals_read(struct build *b, bool mixer);
void build_residuals_close(struct build *b);
const struct sym *build_residuals_sent(struct build *b, int64_t stages);

/* build_activation -- a nonlinearity over rows x width, times another branch when gated. */
void build_activation(struct build *b, const char *name, const struct sym *rows, const struct sym *width, bool gated);

/* build_elementwise -- a kernel over n elements: `arrays` of them read and written, all told. */
void build_elementwise(struct build *b, enum cost_op_kind kind, const char *name, const char *shape,
                       const struct sym *n, int64_t flops, int64_t arrays);

/* build_mixer, build_recurrent, build_ffn -- the blocks of a layer. */
void build_mixer(struct build *b, const struct mixer *x);
void build_recurrent(struct build *b, const struct mixer *x);
void build_ffn(struct build *b, const struct ffn *f);
/* Experts of a mixer: choice, one product each of the chosen, their weighted sum over the model width (ffn.c). */
void build_mixer_route(struct build *b);
void build_mixer_experts(struct build *b, const char *name, const char *shape, const struct sym *in,
                         const struct sym *out);
void build_mixer_combine(struct build *b);

/* build_sum_between -- of s for s = from+1 .. until. */
const struct sym *build_sum_between(struct build *b, const struct sym *from, const struct sym *until);
/* build_attended -- W NULL without a window, a block of it when chunked. */
struct attended build_attended(struct build *b, const struct sym *W, bool chunked);
/* build_selected -- the same of U chosen keys a query; keys are those of choices that differ as much as they can. */
struct attended build_selected(struct build *b, const struct sym *U);

/* build_striped -- the same of blocks of keys that a head sees in stripes (stripes.c); pairs are those of a head, on
 * the mean. */
struct attended build_striped(struct build *b, const struct mixer *x);

/* build_query_scales -- queries of so many heads, each so wide, times a number of the head and the token's place. */
void build_query_scales(struct build *b, const char *name, const struct sym *heads, const struct sym *each);

/* build_index -- the indexer of a sparse layer, up to the choice of keys. build_head_norm -- a norm of n weights (its
 * bias too, counted by the caller) over `width` elements of each of the pass's tokens. build_cache_write -- `width`
 * elements of each new token into a cache of `bytes` an element, where W tokens stay (NULL: all). build_rope --
 * rotation of as many. */
void build_index(struct build *b, const struct mixer *x);
void build_head_norm(struct build *b, const char *name, const char *shape, int64_t flops, const struct sym *width,
                     const struct sym *n);
void build_cache_write(struct build *b, const char *name, const struct sym *width, const struct sym *bytes,
                       const struct sym *W);
void build_rope(struct build *b, const char *name, const char *shape, const struct sym *width);

/* Where ranks share a context (context.c), b->context of them. build_share -- of so many tokens those of the rank that
 * has most, ceil(tokens/d); all of them where none is shared. build_shared -- build_attended of that rank, for a head:
 * of old tokens alone, or with the new ones. build_new_pairs -- of new tokens among themselves. build_context_gather --
 * a part of each rank on all of them. build_context_outputs -- partial outputs of `rows` and all heads of those ranks,
 * v wide, joined, each rank's own heads. build_context_merge -- those over old tokens with those over new ones. */
const struct sym *build_share(struct build *b, const struct sym *tokens);
struct attended build_shared(struct build *b, bool with_new);
const struct sym *build_new_pairs(struct build *b);
struct cost_op *build_context_gather(struct build *b, const char *name, const char *shape, const struct sym *part);
void build_context_outputs(struct build *b, const struct sym *rows, const struct sym *v, bool apart);
void build_context_merge(struct build *b);

/* build_pooled -- attention to a window and to entries of several tokens (pooled.c). build_index_op -- scores of the
 * indexer over `pairs` of a sequence and the keys that are read and needed. */
void build_pooled(struct build *b, const struct mixer *x);
enum index_scores {
    INDEX_WEIGHED, /* a sum over heads, by weights of the token */
    INDEX_SUMMED,  /* a plain one */
    INDEX_BLOCKS   /* the largest of a block, head by head */
};
void build_index_op(struct build *b, const struct attended *at, enum index_scores how);

/* Hyper-connections (hyper.c), for models that have them: before a block, behind it in place of the residual sum, and
 * around the layers. */
void build_hyper_open(struct build *b);
/* A multi-token module joins the embedding to each stream; false: nothing to join. */
bool build_hyper_join(struct build *b);
/* Rows of a table of n-grams, added to the streams by gates; none. (engram.c) */
void build_engram(struct build *b, int64_t rows);
void build_hyper_read(struct build *b, bool mixer);
void build_hyper_write(struct build *b, bool mixer);
void build_hyper_close(struct build *b);

/* scan_state -- elements that a recurrent layer keeps of one sequence: columns of short convolutions and shifted tokens
 * (stored as activations), and the recurrence's own. */
struct scan_state {
    const struct sym *conv, *recurrent;
};
struct scan_state scan_state(struct sym_ctx *c, const struct cost_symbols *y, const struct layer_kind *k);

/* build_conv -- the short convolution over `channels`, with flops elementwise flops an element after it (nonlinearity,
 * gates) and reading `inputs` elements a channel. build_scan -- the recurrence itself. MODEL.md "Scans". */
void build_conv(struct build *b, const struct mixer *x, const struct sym *channels, int64_t flops, int64_t inputs);
/* build_token_shift -- n mixtures of each token with the one before it, over the model width. */
void build_token_shift(struct build *b, const char *name, int64_t n);
void build_scan(struct build *b, const struct mixer *x);

/* build_conv_channels -- channels that pass the short convolution of a mixer. build_state -- elements that an operator
 * finds, when the pass continues a sequence, and leaves, when there is a cache. build_read -- all its tensors whole. */
const struct sym *build_conv_channels(struct build *b, const struct mixer *x);
void build_state(struct build *b, struct cost_op *op, const struct sym *elems, const struct sym *element_bytes);
void build_read(struct build *b, struct cost_op *op);

/* RWKV (rwkv.c), by the version of its mixer. */
void build_time_mix(struct build *b, const struct mixer *x);
void build_wkv(struct build *b);
void build_wkv_scan(struct build *b);
void build_time_mix_scan(struct build *b, const struct recurrence *p);

/* Diagonal state-space models and long convolutions (filter.c). MODEL.md "Poles and filters". */
void build_diagonal(struct build *b, const struct mixer *x);
void build_diagonal_scan(struct build *b, const struct recurrence *p);
void build_filter(struct build *b, const struct mixer *x);
void build_filter_scan(struct build *b, const struct recurrence *p);

/* build_value_mask, build_difference -- before and behind the attention of mixers that have one or the other (heads.c).
 */
void build_value_mask(struct build *b, const struct mixer *x);
void build_difference(struct build *b, const struct mixer *x);

#endif
