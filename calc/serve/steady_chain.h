/* steady_chain -- prompt tokens that wait at the beginning of each step, as a Markov chain:
 *
 *     W' = max(W - room, 0) + what comes in the step            (Lindley 1952)
 *
 * of steps that take as long as what is in them, Poisson many prompts in each. From it come who is found and what is
 * left behind (first tokens), and the steps of an answer that begins behind some of it (tokens). MODEL.md "Steady
 * state". Source: Lindley, Proc. Camb. Phil. Soc. 48, 1952; Grassmann, Taksar, Heyman, Operations Research 33, 1985;
 * Wolff, Operations Research 30, 1982. */
#ifndef RIDGE_SERVE_STEADY_CHAIN_H
#define RIDGE_SERVE_STEADY_CHAIN_H

#include "calc/serve/steady_parts.h"

enum { STEADY_CHAIN_PLACES = 64, STEADY_CHAIN_PHASES = 3, STEADY_CHAIN_ONES = 16, STEADY_CHAIN_STEPS = 65 };
enum { STEADY_CHAIN_STATES = STEADY_CHAIN_PLACES * STEADY_CHAIN_PHASES };
enum { STEADY_CHAIN_LEVELS = 6, STEADY_CHAIN_ROOM = 22 }; /* lengths of steps; places up to a room's tokens */

struct steady_chain {
    struct steady_times *times;
    double rate, arrival_cv2;
    double decoding; /* sequences; 0: nobody, so that without prompts there is no step either */
    double beside;   /* of them beside prompts: all, or none */
    double still;    /* sequences of a step without prompts, which are fewer than those of any */
    double room, gap, prompt_tokens, prompt_square, full_s;
    double even; /* how much of one length prompts are: 1 of one, 0 of exponential ones */
    int phases;  /* every so many of a Poisson stream come here: a state is a place and how many came since the last */
    int n, full; /* places; the one of a room's tokens */
    int states;  /* n * phases, those of a place one after another */
    int fine;    /* by how many places a step goes down at most */
    int ones;    /* prompts, in parts of all */
    double one_tokens[STEADY_CHAIN_ONES], one_part[STEADY_CHAIN_ONES];
    double tokens[STEADY_CHAIN_PLACES];
    double step_s[STEADY_CHAIN_STATES], part[STEADY_CHAIN_STATES]; /* part: of steps */
    double square_s2[STEADY_CHAIN_PLACES]; /* E of the square of a step there: of several groups they vary */
    double plain_s;                        /* a step in which no group has a prompt */
    double idle_frac;                      /* nobody decodes, at places without prompts: of their time, no step is on */
    double others_clear;                   /* no other group has a prompt in the step after one's own */
    struct steady_others others;           /* of several attention groups, each a chain of its own, nobody decoding */
    /* and where somebody does: lengths of steps; of places, the lengths of the steps before and of their own, and a
     * step's time and its square behind each length; the parts of steps that leave nothing over */
    int every; /* of the stream that the router shares every so many come to a group: 1 by chance, 2 where it evens
                  numbers out, groups * copies in turn */
    bool in_turn;
    int copies; /* that turns go over too */
    double level_s[STEADY_CHAIN_LEVELS], clear[STEADY_CHAIN_LEVELS];
    double behind[STEADY_CHAIN_PLACES][STEADY_CHAIN_LEVELS], length[STEADY_CHAIN_PLACES][STEADY_CHAIN_LEVELS];
    double behind_step_s[STEADY_CHAIN_LEVELS][STEADY_CHAIN_ROOM];
    double behind_square_s2[STEADY_CHAIN_LEVELS][STEADY_CHAIN_ROOM];
    double *to, *folded;                                       /* [states][states]; room for as many */
    int least[STEADY_CHAIN_STATES], last[STEADY_CHAIN_STATES]; /* of `to`, above 0 */
    double mean_s;                                             /* of a step */
    double done[STEADY_CHAIN_PLACES];                          /* prompts, in a step of that place */
    double begin;                                              /* the same, of any step */
    double with;                                               /* others, in a step in which one is done */
    double entry[STEADY_CHAIN_STATES]; /* what waits in the first step of an answer, parts of them */
    int known;
    double sum_s[STEADY_CHAIN_STEPS]; /* so many steps from there on, on average */
    double more[STEADY_CHAIN_STEPS];  /* prompts that are done so many steps later, above those of any step */
    double still_frac;                /* sequences of a step without prompts, of those at any time */
    /* means and variances of steps where nothing waits behind it at first, and where something does */
    double clear_s[STEADY_CHAIN_STEPS], clear_s2[STEADY_CHAIN_STEPS];
    double behind_s[STEADY_CHAIN_STEPS], behind_s2[STEADY_CHAIN_STEPS];
};

/* Tokens of the prompts that come in a time in which `count` do on average: none, one, or a lognormal sum of several
 * with the mean and the square that are left. */
enum { STEADY_CHAIN_SUMS = 1 + STEADY_CHAIN_ONES + 5 };
struct steady_chain_sum {
    int n;
    double tokens[STEADY_CHAIN_SUMS], weight[STEADY_CHAIN_SUMS];
};
struct steady_chain_sum steady_chain_come(const struct steady_chain *c, double count);

/* How many come in a time: chances of none and of one, mean and mean square. steady_chain_number_of -- of `count` on
 * average, every so many of a Poisson stream: 2 to one attention group of several, as the router that evens numbers out
 * sends them (Cox 1962: variance count/2 + (1 - exp(-4 count))/8), their number where it takes turns. MODEL.md "Steady
 * state", Attention groups. steady_chain_number_before -- before one of them in so long a time. */
struct steady_chain_number {
    double none, one, mean, square;
};
struct steady_chain_number steady_chain_number_of(int every, double count);
struct steady_chain_number steady_chain_number_before(int every, double count);
struct steady_chain_sum steady_chain_come_number(const struct steady_chain *c, const struct steady_chain_number *x);

/* Groups to which prompts are dealt in turn, in a step behind a time in which `count` come to each: how many there are
 * is never more than one apart. By whether this one has none, one or more (`of`: their chances): what it has in a step
 * (own: parts of all), and of the others the most (parts by place) and all of them where that is the most.
 * steady_chain_deal -- `left`: of this one, what the step before leaves over, parts by place. MODEL.md "Steady state",
 * Attention groups. */
enum { STEADY_DEALS = 3, STEADY_DEAL_GROUPS = 1024 }; /* not a unit */
struct steady_deal {
    double of[STEADY_DEALS], own[STEADY_DEALS][STEADY_CHAIN_ROOM];
    double most[STEADY_DEALS][STEADY_CHAIN_ROOM], all[STEADY_DEALS][STEADY_CHAIN_ROOM];
};
void steady_chain_deal(const struct steady_chain *c, double count, const double *left, struct steady_deal *out);

/* What comes in a time in which `ticks` of the stream do on average, of which every c->phases-th comes here, from each
 * phase: chances of none, one and more, and of those the phase that follows; and the mean and square of the number of
 * several. steady_chain_several -- tokens of several, as weights of all.
 * steady_chain_sum_of -- a lognormal sum of that mean and square. */
struct steady_chain_ticks {
    double of[3][STEADY_CHAIN_PHASES][STEADY_CHAIN_PHASES]; /* [none, one, several][from][to] */
    double mean[STEADY_CHAIN_PHASES], square[STEADY_CHAIN_PHASES];
};
struct steady_chain_ticks steady_chain_tick(int phases, double ticks);
void steady_chain_sum_of(double mean, double square, struct steady_chain_sum *s);
void steady_chain_several(const struct steady_chain *c, double mean, double square, struct steady_chain_sum *s);

/* steady_chain_phases -- of so many copies behind a router. MODEL.md "Steady state". */
int steady_chain_phases(const struct steady_setup *s);

/* steady_chain_room -- of t->chain, for so many phases. Errors: ERR_NOMEM. */
enum err_code steady_chain_room(struct steady_times *t, int phases, struct err *e);

/* steady_chain_clear -- of answers with nothing behind them, the part in whose first `steps` steps nothing comes. */
double steady_chain_clear(const struct steady_chain *c, double steps);

/* steady_chain_prompts -- in parts of at most so much of all, smaller ones where the longest are; their number. */
int steady_chain_prompts(const struct steady_lengths *l, double most, int room, double *tokens, double *part);

/* steady_chain_open -- at a rate of prompts, of so many that decode; coarse: for numbers that are looked at on the way.
 * Cost: 10 to 30 us. steady_chain_squares -- and variances. */
void steady_chain_open(struct steady_replica *r, double rate_per_s, double decoding, double still, bool coarse,
                       struct steady_chain *c);
void steady_chain_squares(struct steady_chain *c);

/* steady_chain_settle -- the chain of one attention group of several, where somebody decodes, at a setting of
 * steady_chain_open: steps as long as the largest group has them. MODEL.md "Steady state", Attention groups. Of its
 * parts: steady_chain_add to the places around; steady_chain_bounds of rows; stationary parts. */
void steady_chain_settle(struct steady_chain *c, double within);
void steady_chain_add(const struct steady_chain *c, double *row, double tokens, double weight);
void steady_chain_bounds(struct steady_chain *c);
void steady_chain_find_parts(struct steady_chain *c);

/* steady_chain_first -- first tokens, `weight` of all, after a wait for a place. */
void steady_chain_first(const struct steady_chain *c, const struct steady_lengths *l, double wait_s, double weight,
                        struct steady_histogram *h);

/* steady_chain_sum_s -- of m steps of an answer. steady_chain_answer_s -- of all of an answer's, on average.
 * steady_chain_parts -- where nothing waits behind it at first, and where something does. */
struct steady_chain_part {
    double weight, mean_s, variance_s2;
};
double steady_chain_sum_s(const struct steady_chain *c, double m);
double steady_chain_answer_s(const struct steady_chain *c, const struct steady_lengths *l);
void steady_chain_parts(const struct steady_chain *c, double m, struct steady_chain_part part[2]);

/* steady_chain_mates -- others that are there with one in its `steps`, above those of any time. */
double steady_chain_mates(const struct steady_chain *c, double steps);

/* steady_chain_places_per_s -- the rate at which one of several attention groups has as many sequences as places for
 * them, where prompts are dealt in turn. in_prefill: of those, whose prompts are computed. */
double steady_chain_places_per_s(struct steady_replica *r, double places, double again, double *in_prefill);

/* steady_chain_between -- whole prompts between decode steps of n: busy_frac, token_s and extra_s of a flow, where a
 * step has many. */
void steady_chain_between(struct steady_replica *r, double rate_per_s, double n, struct steady_flow *f);

/* steady_chain_tokens -- the distribution of TPOT of r->chain, with squares. */
void steady_chain_tokens(struct steady_replica *r, struct steady_histogram *h);

#endif
