/* steady_parts -- what the files of steady.h share. */
#ifndef RIDGE_SERVE_STEADY_PARTS_H
#define RIDGE_SERVE_STEADY_PARTS_H

#include <string.h>

#include "calc/serve/steady.h"

/* The exponent of frexp, and the power of two at or below a value: of what is positive and normal. Their bits, as
 * millions of values are asked for. */
static inline uint64_t steady_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline int steady_exponent(double value) { return (int)(steady_bits(value) >> 52) - 1022; }

static inline double steady_power_below(double value)
{
    const uint64_t bits = steady_bits(value) >> 52 << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* ---- step times ---- */

enum {
    STEADY_GROUPS_MAX = 64, /* different prompts; not a unit */
    STEADY_N_KNOTS = 78,    /* 0, 1 .. 8, and by fourth roots of two up to 2^20 */
    STEADY_X_KNOTS = 52,    /* 0, and by roots of two up to 2^25 */
    STEADY_ROW_PLACES = 32, /* between two of those; not a unit */
};

/* Prompts of one length. */
struct steady_group {
    double tokens, weight, cached;
};

/* ---- attention groups ---- */

/* Prompt tokens that a group has in a step: by the parts of steps, fewest first, the first of them none. */
enum { STEADY_LAWS = 64 }; /* not a unit */
struct steady_law {
    int n;
    double tokens[STEADY_LAWS], part[STEADY_LAWS];
};

/* What the other groups of a copy have in a step, as one of them finds it, by the parts of steps: the prompt tokens of
 * the one that has most, and of all. */
enum { STEADY_OTHERS = 10 }; /* not a unit */
struct steady_others {
    int n;
    double most[STEADY_OTHERS], sum[STEADY_OTHERS], part[STEADY_OTHERS];
};

/* steady_others_of -- of `groups` with queues of their own that are alike: the most of groups - 1 has F(x)^(groups - 1)
 * below it. MODEL.md "Steady state", Attention groups. steady_others_none -- they have no prompts. */
void steady_others_of(const struct steady_law *law, double groups, struct steady_others *out);
void steady_others_none(struct steady_others *out);

/* steady_largest_of -- of `number` independent normal variates the mean of the largest; 0 of one. */
double steady_largest_of(double number);

/* Steps with prompts by halves of octaves of their tokens. steady_steps_law -- so much of all steps. */
struct steady_steps {
    double weight[STEADY_LAWS - 1], tokens[STEADY_LAWS - 1]; /* the sum */
};
void steady_steps_add(struct steady_steps *x, double tokens, double weight);
void steady_steps_law(const struct steady_steps *x, double frac, struct steady_law *out);

enum { STEADY_SHARES = 3 }; /* of what others have to what the largest has: the first nothing, the last as much */
extern const double STEADY_SHARE[STEADY_SHARES];

enum { STEADY_WHOLES = 8 }; /* prompts of a step, beside one alone */

/* Steps of prompts alone from one knot of their tokens to the next, as far as they were asked for: places that were
 * looked at (NAN: not), and lines between places, those of known cells. */
struct steady_rows {
    double place_s[STEADY_ROW_PLACES], line_s[STEADY_ROW_PLACES + 1];
    uint32_t known; /* bit i: from place i to i + 1 */
};

struct steady_chain;

/* Step times on a grid of sequences that decode and prompt tokens beside them, each with the mean sums of the lengths;
 * filled as they are asked for. Of groups with queues of their own budget, sequences and prompt tokens are those of one
 * of them (1/parts of a sequence: one of the copy), beside as many that decode in each of the others. */
struct steady_times {
    const struct mix_plan *plan;
    struct calibrated *calibrated;
    struct engine_case *server;
    bool overlapped;
    double overhead_s;
    bool pieces; /* prompts are computed in pieces of the budget */
    bool beside; /* in steps that decode too */
    double budget_tokens;
    struct steady_group group[STEADY_GROUPS_MAX];
    size_t groups;
    const struct simulate_draft *draft; /* of NULL: none */
    double rows;                        /* tokens of a sequence in a step; 1 without a draft */
    double shared;                      /* spread over groups that step together, with one queue; 1 */
    double parts;                       /* groups with queues of their own that step together; 1 */
    const struct steady_others *others; /* what the others have; NULL: as much as the group itself, all alike */
    double largest;                     /* steady_largest_of the groups */
    double deeper[STEADY_SHARES][STEADY_X_KNOTS];     /* steady_deeper of x where others have a share; NAN: not asked */
    double (*whole_s)[STEADY_SHARES][STEADY_X_KNOTS]; /* [2] of one whole prompt and of STEADY_WHOLES alike, where they
                                                         are computed before others decode; NULL: not asked */
    double long_tokens;                 /* a prompt as one of its tokens has it: the square over the mean */
    bool slowest;                       /* stage alone */
    double *stage_s;                    /* [mix_stages] */
    double piece_tokens;                /* of a prompt in a step (steady_times_piece) */
    double context_tokens;              /* of a sequence that decodes, on average over its steps */
    double context_square;              /* E of its square; where there are several groups */
    struct mix decode, prompt, scratch; /* a sequence's sums; a prompt token's */
    double *decode_s;                   /* [STEADY_N_KNOTS] */
    double (*prompt_s[STEADY_SHARES])[STEADY_X_KNOTS]; /* [STEADY_N_KNOTS], beyond the former; the last alone where
                                                          there are no groups */
    struct steady_rows *rows_s; /* [STEADY_X_KNOTS], steady_times_rows_s between them; NULL: no kernels, whose
                                   times have jumps; prompt_s is beyond these then */
    double n_knot[STEADY_N_KNOTS], x_knot[STEADY_X_KNOTS];
    struct arena *arena;
    struct steady_chain *chain; /* [2]: when somebody decodes, and when nobody does */
    int phases;                 /* that there is room for */
    struct {                    /* where it saturates, of limits that were asked before; rate_per_s 0: none */
        int64_t max_seqs, blocks, block_tokens;
        double watermark_frac, rate_per_s, most, places, again_frac;
        double about_per_s; /* where rate_per_s is of steady_parted_saturate, without it; 0: it is not */
        bool together;      /* all at once */
        enum steady_limit by;
    } saturation;
};

/* steady_draft_s -- what drafts take of a step of n that decode and x prompt tokens; 0 without. */
double steady_draft_s(const struct steady_times *t, double n, double x);

/* steady_answer_tokens -- of a request on average, however many steps they take. */
static inline double steady_answer_tokens(const struct steady_lengths *l)
{
    return l->drafted.answer_tokens > 0 ? l->drafted.answer_tokens : l->output_tokens;
}

/* steady_times_step_s -- of n sequences that decode (0, or 1 and more) and x prompt tokens, from the grid. Linear
 * between its points. Of several groups the mean over what the others have; steady_times_square_s2 -- of its square;
 * steady_times_decode_s -- where no group has a prompt. */
double steady_times_step_s(struct steady_times *t, double n, double x);
double steady_times_square_s2(struct steady_times *t, double n, double x);
double steady_times_decode_s(struct steady_times *t, double n);

/* steady_times_rows_s -- of so many prompt tokens alone, with the jumps that kernels and graphs have, where rows_s is.
 * steady_times_beyond_s -- what a step of n that decode and x prompt tokens takes beyond as many prompt tokens alone,
 * which has none: at octaves of x, kept in at_s. MODEL.md "Steady state", Jumps. steady_times_alone_s -- a step asked
 * for anew. */
double steady_times_rows_s(struct steady_times *t, double rows);
double steady_times_beyond_s(struct steady_times *t, double at_s[STEADY_X_KNOTS], double n, double x);
double steady_times_alone_s(struct steady_times *t, double n, double x);

/* steady_times_near_s -- of about n, Poisson's sd, and of between `below` and `above` tokens, fewer away from x;
 * without jumps that of n and x. below = above = x: of x alone. */
double steady_times_near_s(struct steady_times *t, double n, double x, double below, double above);

/* steady_times_shares_s -- of several groups, x in the largest: where the others have each share of as much.
 * steady_times_share_s -- between them. */
void steady_times_shares_s(struct steady_times *t, double n, double x, double out[STEADY_SHARES]);
double steady_times_share_s(const double at_s[STEADY_SHARES], double share);

/* steady_times_knot -- the last of the grid's prompt tokens that is not above x, but for the very last. */
size_t steady_times_knot(const struct steady_times *t, double x);

/* steady_times_whole_s -- x tokens of whole prompts in the largest group, the squares of whose lengths are `square` in
 * all, and where the others have `share` of as many: attention goes with the squares, the rest with tokens. Of
 * groups that compute prompts first. steady_times_whole -- the room for it, or where others have the same; ERR_NOMEM.
 */
enum err_code steady_times_whole(struct steady_times *t, const struct steady_times *like, struct err *e);
double steady_times_whole_s(struct steady_times *t, double x, double square, double share);

/* steady_parts_of -- attention groups of a setup that have queues of their own, as the simulator's have
 * (simulate_parted); 1. */
static inline int64_t steady_parts_of(const struct steady_setup *s)
{
    return s->groups > 1 && s->policy != SIMULATE_STATIC && !s->decode ? s->groups : 1;
}

/* steady_part_of -- one of those groups: its part of the budget, of the places, the cache and what comes. */
struct steady_setup steady_part_of(const struct steady_setup *s);

/* steady_in_turn -- whether requests are dealt to attention groups in turn: by the router, or as answers of one length
 * end in the order in which they began, so that the group of the fewest is the next in turn. MODEL.md "Steady state".
 */
bool steady_in_turn(const struct steady_setup *s);

/* steady_deeper -- tokens in front of a piece of x tokens in the group of `number` that has most, above the mean. */
double steady_deeper(const struct steady_times *t, double x, double number);

/* steady_group_at -- the prompt at a place in (0, 1) of a group: they lie between those of its neighbours. */
double steady_group_at(const struct steady_times *t, size_t i, double place);

/* ---- prefill between decode ---- */

/* What a replica does at a rate of prompts and a number of sequences that decode. A batch of prompts is what is
 * computed between two steps that leave no prompt token waiting: full steps, and a last one. */
struct steady_flow {
    double rate_per_s, n;
    double room_tokens;           /* prompt tokens of a full step */
    double decode_s;              /* a step that only decodes; 0 for n = 0 */
    double full_s, last_s;        /* a full step that computes prompts; a batch's last one, on average */
    double own_s;                 /* a last step as the prompts in it have it: long ones have more */
    double batches_per_s;         /* of prompts */
    double requests;              /* of a batch */
    double steps;                 /* of a batch, the last one included */
    double busy_frac;             /* of time in steps that compute prompts */
    double token_s;               /* of time for each token of a sequence that decodes; infinite: there is none */
    double extra_s;               /* and once for each that decodes: prompts that came while its own was computed */
    double each_s;                /* that a prompt adds to its steps */
    double left_frac, left_steps; /* of time a full step leaves prompt tokens over; how many, in steps, on average */
    double between_s2;            /* variance of the seconds of prompts between two decode steps; 0: not known */
    double period_s;              /* prompts of a busy period between decode steps, on average; 0: not known */
    double mates;                 /* others that begin to decode together with one */
    double seen_s;                /* a step as who arrives finds it: the mean of squares over the mean */
    double last_cv2;              /* of a batch's last steps: variance over square of the mean */
    bool stable;                  /* prompts are computed as fast as they come */
    struct steady_others others;  /* of several attention groups */
    double varies_s2;             /* decode_s then: its variance */
    bool chained;                 /* by steady_chain_between */
};

void steady_flow_solve(struct steady_times *t, double rate_per_s, double arrival_cv2, double n,
                       struct steady_flow *out);

/* steady_flow_fit -- whole prompts of a step where more always wait, on average. */
double steady_flow_fit(const struct steady_times *t);

/* steady_flow_replaced_s -- a step of n that decode, of whom `ends` have their last token on average, and the steps
 * between of as many prompts that take their places, and of those that follow on answers of a single token: where
 * others always wait. `bunch` times as many prompts come at a time as answers end, as often less. */
double steady_flow_replaced_s(struct steady_times *t, double n, double ends, double bunch, double single_frac);

/* ---- distributions ---- */

/* Weights of times in bins; of each bin the sum of weight and time, and the least and the largest time. In a bin of
 * mean m the quantile of part u is low + (high - low) u^k, k = (high - m)/(m - low): percentiles are of a distribution
 * whose mean is sum/total, and one time alone is all of its percentiles. */
enum { STEADY_BINS = 1024 }; /* not a unit */
struct steady_histogram {
    double weight[STEADY_BINS], sums[STEADY_BINS], low_s[STEADY_BINS], high_s[STEADY_BINS], sum, total;
};

void steady_histogram_clear(struct steady_histogram *h);
void steady_histogram_add(struct steady_histogram *h, double value_s, double weight);
struct steady_spread steady_histogram_spread(const struct steady_histogram *h);
double steady_histogram_below(const struct steady_histogram *h, double value_s); /* part of the weight */

/* ---- one replica ---- */

/* Parts of the distribution of how many decode. */
enum { STEADY_NUMBERS = 9 };
extern const double STEADY_NUMBER_PART[STEADY_NUMBERS];

/* What is asked of a replica, and its answer. */
struct steady_replica {
    const struct steady_setup *s;
    struct steady_times *times;
    double rate_per_s, arrival_cv2;
    double others_frac;                       /* closed: of the rate, what comes of other clients; 1 */
    double prompts_frac;                      /* of the rate, whose prompts are computed here; 1, or 0 */
    bool at_ends;                             /* requests come when a step ends, as they follow an answer at once */
    bool cycle;                               /* closed: of one cycle, who ask again at once */
    bool met;                                 /* distributions are of requests that were met (steady_parted_solve) */
    double later_s;                           /* disaggregated: between the first token and decoding */
    double most_per_s;                        /* the rate at which it saturates */
    double most;                              /* sequences that may decode at a time */
    double places;                            /* of them and of those with a prompt to compute */
    enum steady_limit by;                     /* what makes it so */
    double again_frac;                        /* prompts computed anew, of those computed, where it saturates */
    double decoding, square;                  /* mean and mean square of those that decode */
    double token_s;                           /* of a step to one that decodes */
    double slope_s;                           /* by which it grows with one more */
    double number_s[STEADY_NUMBERS];          /* what it takes beside so many, above the mean: parts of them */
    double fewer_s, fewer_each_s;             /* of several copies: prompts that an answer, a token, sees less of */
    double idle_frac;                         /* of time in which nobody decodes */
    double wait_frac, wait_s;                 /* requests that wait for a place; on average of all */
    struct steady_chain *chain, *alone_chain; /* pieces at a rate: prompts that wait, at these; NULL: not */
    double scale;                             /* of their sums of steps */
    struct steady_histogram *answers;         /* seconds behind first tokens, which steady_tpot sets; NULL: not asked */
    const struct steady_histogram *latency;   /* of requests that were met; NULL: of first tokens and answers */
    struct steady_flow flow, alone; /* at the mean of those that decode when somebody does; when nobody does */
};

/* steady_saturation_of -- the rate at which a replica saturates; sets most and by. */
double steady_saturation_of(struct steady_replica *r);

/* steady_again_frac -- prompt tokens that preempted sequences compute anew where requests always wait, of those of the
 * requests: 0 where places for `seqs` bind, not the cache for `cache` sequences. MODEL.md "Steady state". */
double steady_again_frac(const struct steady_replica *r, double seqs, double cache);

/* steady_token_s -- a token's time with what prompts that came before it add, over all of a request's; infinite: they
 * wait ever longer. */
double steady_token_s(const struct steady_replica *r, const struct steady_flow *f);

/* steady_routed -- copies among which arrivals at a rate are shared in turn or evened out; 1: by chance. */
static inline int64_t steady_routed(const struct steady_setup *s)
{
    return s->load == STEADY_OPEN && s->route != SIMULATE_PREFIX ? s->replicas : 1;
}

/* steady_turn_none -- nobody comes to a copy behind a request, where `count` do on average: of every so many of a
 * stream; and of one copy, exp(-count). steady_turn_fewer -- how many fewer come than on average; 0 of one copy. */
double steady_turn_none(const struct steady_setup *s, double count);
double steady_turn_fewer(const struct steady_setup *s, double count);

/* steady_open_solve -- at its rate, below saturation: sets the members from decoding on. steady_closed_solve -- with so
 * many clients, fewer than have a place, and their time to think; sets the rate. */
void steady_open_solve(struct steady_replica *r);
void steady_closed_solve(struct steady_replica *r, double clients, double think_s);

/* Answers of about as many steps, from the first to the last of the quantiles of outputs: what a token takes of their
 * time is put to tpot and, times the steps of each, to answers (NULL: not). Of several lengths in three points with the
 * mean and the variance that tokens have: the lengths themselves are most of what such answers differ by. */
struct steady_tokens {
    struct steady_histogram *tpot, *answers;
    const struct steady_lengths *lengths;
    double stride; /* tokens of a step */
    size_t first, last;
    bool one; /* length */
    double weight, sum, square;
};
void steady_tokens_begin(struct steady_tokens *x, size_t first, size_t last);
void steady_tokens_add(struct steady_tokens *x, double token_s, double weight);
void steady_tokens_end(struct steady_tokens *x);

/* steady_ttft, steady_tpot -- the distributions of what is solved. */
void steady_ttft(struct steady_replica *r, struct steady_histogram *h);
void steady_tpot(struct steady_replica *r, struct steady_histogram *h);

/* ---- other loads ---- */

/* steady_clients_solve -- so many clients of a replica who ask again at once; the whole answer. Where answers are of
 * one length it is a cycle, whose seconds steady_cohort_s says for n that begin together; 0: there is none. */
void steady_clients_solve(struct steady_replica *r, double clients, struct steady_result *o);
double steady_cohort_s(struct steady_replica *r, double n);
bool steady_one_length(const struct steady_lengths *l);

/* steady_ring_solve -- answers of one length, prompts of any, in pieces, n of the clients with a place: sets the
 * rate, the time of a token, the wait and the flow. False: not so many are looked at, or rounds too few. MODEL.md
 * "Steady state". Cost: 50 ns a request of the run. */
bool steady_ring_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft,
                       struct steady_histogram *tpot);

/* Steps and seconds of so many prompts that are computed in pieces beside those that decode, on average. */
struct steady_pieces {
    double steps, seconds;
};

struct steady_pieces steady_pieces_of(struct steady_replica *r, double decoding, double prompts);

/* steady_pieces_first -- first tokens of n clients of whom so many begin in one step; after a wait that is longer by
 * more_s for some; returns their mean without it. steady_pieces_solve -- n of the clients in steps, answers of any
 * length: sets the rate, the time of a token, the wait for a place and the flow. MODEL.md "Steady state". */
double steady_pieces_first(struct steady_replica *r, double n, double together, double wait_s, double more_s,
                           double more_frac, struct steady_histogram *h);
/* steady_pieces_rate -- of n that are in steps where another always takes the place of who ends, `again` of its prompts
 * computed anew; and how many of them have prompts to compute. */
double steady_pieces_rate(struct steady_replica *r, double n, double again, double *in_prefill);
void steady_pieces_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft);

/* steady_tell -- the answer of what is solved; steady_tell_of -- with these distributions. */
void steady_tell(struct steady_replica *r, struct steady_result *o);
void steady_tell_of(struct steady_replica *r, const struct steady_histogram *ttft, const struct steady_histogram *tpot,
                    struct steady_result *o);

/* steady_offline_solve -- all at once, `requests` of a replica; most_per_s: its saturation rate. */
void steady_offline_solve(struct steady_replica *r, double requests, double most_per_s, struct steady_result *o);

/* steady_pools_solve -- disaggregated. Errors: ERR_RANGE, ERR_INPUT, ERR_NOMEM. */
enum err_code steady_pools_solve(struct arena *a, const struct steady_setup *s, struct steady_result *o, struct err *e);

/* ---- static batches ---- */

/* steady_static_solve -- batches of whoever waits, padded to the longest: the whole answer of a replica at a rate, or
 * with as many clients. Errors: ERR_NOMEM. */
enum err_code steady_static_solve(struct arena *a, const struct steady_setup *s, struct steady_result *o,
                                  struct err *e);

/* steady_slow -- the answer of steps as predicted, asked at rates and links times slower, and waits and overheads over
 * it, in the clock of a service whose steps take `slower` times as long. */
void steady_slow(struct steady_result *r, double slower);

#endif
