/* naive -- an independent count of one forward pass, by walking it: plain loops over sequences, queries, heads, key
 * positions and matrix elements that count one multiply-add at a time (2 flops) and mark the bytes they touch. Each
 * operator is one kernel that finds nothing on chip and reads each operand once.
 *
 * It knows no formula and nothing of calc/: the architecture is written down by the test, layer by layer. */
#ifndef RIDGE_TESTS_NAIVE_H
#define RIDGE_TESTS_NAIVE_H

#include <stdbool.h>
#include <stddef.h>

/* How a matrix is stored: bytes an element, and one scale per tile of rows x cols. cols 0: no scales, -1: a whole row.
 * Beside them bytes for each matrix and each of its columns, and for each `tiles` scales of a matrix or fewer. */
struct naive_format {
    double element_bytes;
    int rows, cols;
    double scale_bytes, matrix_bytes, column_bytes;
    int tiles;
    double tiles_bytes;
    bool flat; /* tiles run through the rows */
};

#define NAIVE_TILED(element, rows, cols, scale)                                                                        \
    {                                                                                                                  \
        element, rows, cols, scale, 0, 0, 0, 0, false                                                                  \
    }

/* What a recurrent mixer consists of; its heads, widths and groups are the layer's. */
enum naive_block {
    NAIVE_NO_STATE,
    NAIVE_SELECTIVE,
    NAIVE_SSD,
    NAIVE_LINEAR,
    NAIVE_LRU,
    NAIVE_CONV,
    NAIVE_MEMORY, /* gates what an earlier layer's scan gave */
    NAIVE_WKV,
    NAIVE_TIME_MIX,
    NAIVE_FINCH,
    NAIVE_GOOSE,
    NAIVE_DIAGONAL,
    NAIVE_FILTER
};
enum naive_decay { NAIVE_NO_DECAY, NAIVE_DECAY_FIXED, NAIVE_DECAY_HEAD, NAIVE_DECAY_CHANNEL };

struct naive_recurrence {
    enum naive_block block;
    int taps, chunk, rank;
    int mix_rank, rate_rank, value_rank, gate_rank; /* RWKV-6 and -7 */
    int feature_dim;                                /* of a Taylor map; 0: none */
    int filter_width, filter_inputs, filter_layers, filter_tokens;
    bool filter_sines;
    bool conv_bias, proj_bias, inner_norms, inner_weights;
    enum naive_decay decay;
    bool delta, decay_weights, decay_bias;
    bool memory, each_norm; /* mLSTM: a gate a key, a sum of keys, the largest exponent; layer norms of heads */
    int idle_rates;         /* stored beyond those of the heads */
    bool gate, gate_low_rank, gate_bias;
    bool head_norm, wide_norm; /* of the output */
    bool key_norms, rope, activated;
};

struct naive_layer {
    int type; /* layers of one type are equal; types are numbered in order of appearance */
    int heads, kv_heads, key_dim, value_dim, window; /* key_dim of a latent mixer: without the rope part */
    int q_rank, kv_rank, rope_dim;                   /* kv_rank > 0: latent attention; else q_rank: narrow queries */
    bool chunked;                                    /* window is a block of keys, not the last ones */
    bool unrotated;                                  /* no rope */
    bool alibi;
    bool no_mixer, no_mlp;
    bool shares_kv, idle_kv;    /* attends to what an earlier layer holds; its own weights for it stored all the same */
    bool v_is_k, v_norm;        /* no matrix of values; a norm of them without weights */
    int top_keys;               /* keys that a query selects; 0: all it sees */
    int index_heads, index_dim; /* of the layer's own indexer; 0: it uses the choice of an earlier layer */
    bool index_blocks;          /* of heads that read the stream and take a block by its largest score */
    bool qkv_bias, o_bias, sinks;
    bool output_gate, head_gate, doubled_input;
    bool pairs, pair_weight;  /* of heads, of which the second's answer is taken from the first's; the norm's weight */
    bool value_mask;          /* a number of each key is made of its values and added to its scores */
    bool residual_weights;    /* the stream has a factor for each element in both sums */
    bool gate_of_latent;      /* made with the queries, of the query latent before its norm beside what that makes */
    int condition;            /* rank of a factor of the MLP's input that all tokens share; 0: none */
    int mixer_gate, mlp_gate; /* ranks of gates behind the norms before both blocks; 0: none */
    struct naive_recurrence state;
    bool borrowed, one_residual; /* big matrices stored by an earlier layer; one sum with the stream */
    bool qk_norm;                /* of each query and key head */
    bool qk_each, qk_bare;       /* a weight for every head; none at all; else one for the queries, one for the keys */
    bool qk_wide;                /* one norm over all heads of a side */
    int qk_flops, qk_vectors;    /* an element, 4 when 0; vectors of such a weight, 1 when 0 */
    bool parallel;               /* mixer and MLP read the same input */
    int norms;                   /* over the model width */
    int width;                   /* dense MLP; 0 with experts */
    bool ungated, mlp_bias, channel_mix, channel_bare;
    bool residual_unit; /* one product of the model width, with bias by mlp_bias, and a nonlinearity */
    bool both_ways;     /* queries see later tokens too, */
    int block;          /* within blocks of so many and all before them; 0: all */
    bool features_kv;   /* as many features of another model become keys and values by the same weights, and are kept */
    bool images;        /* held for an image that is not there; two gates */
    int adapter_rank;   /* of a low-rank product beside gate and up */
    int qkv_rank;       /* of such products beside q, k and v */
    bool out_proj;      /* a product of model width after the block */
    int experts, chosen, expert_width, shared_width, latent;
    bool expert_bias, router_bias, correction, shared_gate, router_norm, expert_scale;
    bool latent_norm;       /* over the latent, of the experts' sum */
    int idle;               /* experts that give their input back */
    int group, group_width; /* experts of a group, and the width of its further one; 0: none */
    int act_stored;         /* numbers of the nonlinearity */
    bool inner_norm;        /* over the dense width, before the last product */
    int branch_norms;       /* over the model width, around experts */
};

struct naive_model {
    int vocab, hidden, positions, layers;
    bool tied, head_bias, embed_norm;
    bool head_dense, head_dense_bias; /* a product, a nonlinearity and a norm before the output head */
    int layer_dim, layer_vocab;       /* a layer's own input by token; rows of the table of all of them */
    int streams, laurel;              /* residual streams, 0 one; rank of the learned residual beside attention */
    bool layer_scale;
    int embed_extra; /* rows of the embedding beyond the vocabulary */
    int joined;      /* vectors of the model width that one product makes one of, before the layers */
    bool joined_bias, no_embedding, no_final_norm;
    int norms_before, norms_after;      /* that product */
    bool embed_borrowed, head_borrowed; /* stored by another model */
    int heads, head_rows;               /* of output, 0 one; tokens of each, 0 the vocabulary */
    int norm_flops;                     /* an element: RMS 4, layer norm 6, with bias 7 */
    int norm_vectors;                   /* 1, with bias 2; bare_norms: none */
    bool bare_norms;
    struct naive_format embed, head, mixer, ffn, expert, router, other, cache;
    double activation_bytes; /* an element */
    double state_bytes;      /* an element of a recurrent state */
    struct naive_layer layer[12];
};

struct naive_pass {
    int B, T, S; /* T queries at positions S-T .. S-1 of each sequence */
    int ranks;   /* tensor parallel; rank 0 is counted */
    bool absorbed, uncached;
    bool all_logits; /* a token for every position */
    bool continued;  /* a decode step, though it is the first token */
    bool causal_full, embed_full_table, mlp_fused, head_all, norms_uncounted;
};

struct naive_op {
    const char *name;
    int layer; /* -1 outside the layers */
    double flops, vector_flops, weight_bytes, kv_bytes, kv_needed_bytes, activation_bytes, wire_bytes;
    double state_bytes, state_needed_bytes;
    double stored_elems, stored_bytes;
    bool reread; /* an earlier layer's weights */
};

enum { NAIVE_OPS = 400 };

struct naive_ops {
    struct naive_op op[NAIVE_OPS];
    size_t n;
};

/* naive_count -- all operators in order of execution, layer by layer. Aborts when memory is exhausted. */
void naive_count(const struct naive_model *m, const struct naive_pass *p, struct naive_ops *out);

#endif
