/* planner_parts -- what the files of the planner share. */
#ifndef RIDGE_SERVE_PLANNER_PARTS_H
#define RIDGE_SERVE_PLANNER_PARTS_H

#include "calc/serve/layouts.h"
#include "calc/serve/paged.h"
#include "calc/serve/planner.h"
#include "calc/serve/pool.h"

/* A draft beside a layout: its passes, in calibrated times or as a server's kernels where those are asked for. */
struct planner_draft {
    struct speculate_setup of;
    struct calibrated *calibrated, *calibrated_wide; /* wide: of several nodes of a tree */
    struct engine_case *server;
    struct mix mix;
    struct engine hostless;
    struct steady_lengths lengths; /* of the request's, drafted */
};

/* What calibrated times of a clock keep: what a grid or a simulation asks for again soon. There are a hundred clocks,
 * and all of it is touched when one is opened. */
enum { PLANNER_MEMOS = 1024 }; /* not a unit */

/* The times of a layout of one copy that mixed steps know: of several stages (planner_stages_fly) floors. */
struct planner_clock {
    struct planner_clock *next;
    struct layout layout, whole;
    int64_t gamma;               /* 0: no draft */
    struct planner_draft *draft; /* NULL: none */
    struct step *step;           /* NULL: of several stages */
    struct mix_plan *plan;
    struct mix mix;
    struct calibrated *calibrated; /* NULL: floors, or a server's */
    struct engine_case *server;    /* NULL: none */
    bool overlapped;
    struct planner_kept {
        int64_t step_tokens, seqs; /* seqs: of two pools; 0 of one */
        double piece_tokens;       /* of a prompt in a step */
        bool slowest;
        struct steady_times *times, *decode;
    } kept[64];
    size_t kept_n;
    struct planner_saturated { /* of several stages, limits that were asked for before */
        int64_t step_tokens, seqs;
        double cache_tokens, slower, rate_per_s;
        bool cache; /* binds */
    } saturated[32];
    size_t saturated_n;
    double ratio[24]; /* of calibrated to floor at batch 2^i; 0 not asked for */
};

/* Of a device and a precision. */
struct planner_pair {
    struct step *draft;         /* of any layout; NULL: none */
    struct step *bound, *floor; /* any layout; floor: of the request's fidelity, roofline where it is calibrated */
    struct planner_clock *clocks;
};

struct planner {
    struct arena *arena;
    const struct planner_request *q;
    struct planner_pair *pair; /* [devices_n][formats_n] */
    struct source *source;     /* [devices_n], n 0: not opened */
    const struct pool_engine *engine;
    const char *note;
};

enum err_code planner_open(struct arena *a, const struct planner_request *q, struct planner *out, struct err *e);
struct planner_pair *planner_pair_of(struct planner *p, size_t device, size_t format);

/* planner_mixes -- whether mixed steps and calibrated ones know the layout: the ranks of one stage in one node, one
 * attention group. */
bool planner_mixes(const struct layout *l);

/* planner_groups_step -- whether mixed steps know the layout but for its attention groups: ranks of each in one node,
 * one stage. */
bool planner_groups_step(const struct layout *l);

/* planner_stages_fly -- whether batches under way in stages are known of the layout: ranks of a stage in one node, one
 * attention group, several stages. */
bool planner_stages_fly(const struct layout *l);

/* planner_block_tokens -- of a sequence in a block of the cache: the engine's, times the ranks that share a context. */
int64_t planner_block_tokens(const struct planner *p, const struct layout *l);

/* planner_clock_of -- of tp, ep, dcp, attention groups, stages (their floors) and per_node of a layout, and tokens
 * drafted in a row (0: no draft); opened when first asked for. */
enum err_code planner_clock_of(struct planner *p, size_t device, size_t format, const struct layout *l, int64_t gamma,
                               struct planner_clock **out, struct err *e);

/* planner_draft_open -- the draft of a clock whose layout and gamma are known; setup: that of the model. Errors: those
 * of step_compile; ERR_NOMEM. */
enum err_code planner_draft_open(struct planner *p, size_t device, const struct step_setup *setup,
                                 struct planner_clock *c, struct err *e);

/* Floors of a layout that are asked for again and again. */
struct planner_floors {
    /* of a step with 2^i sequences in each attention group, at the mean context; of one batch under way, and of as many
     * as there are stages */
    double decode_s[2][24];
    size_t decode_n;
    double prompt_s; /* of the mean prompt alone, in every group */
    struct {
        int64_t tokens;
        double s;
    } piece[16]; /* of so many tokens of a prompt */
    size_t pieces_n;
};

/* A layout of one copy, whatever is in its steps. */
struct planner_unit {
    size_t device, format;
    struct layout layout; /* whole, one copy */
    int64_t gpus;
    int64_t gamma;                        /* 0: no draft */
    const char *why;                      /* illegal */
    double weight_bytes, tower_bytes;     /* of the fullest GPU */
    double sequence_bytes, longest_bytes; /* on the fullest GPU: at the mean context, and of the longest request */
    double ended_bytes; /* likewise, at the context where the answer of a random step ends, on average */
    double floor_tpot_s, floor_ttft_s;
    const char *floor_tpot_by, *floor_ttft_by;
    struct planner_floors *floors; /* NULL: not asked for */
};

/* planner_unit_draft -- a draft of gamma tokens in a row beside a unit: its weights and cache on every GPU, and floors:
 * no step yields more than it judges, none is shorter than the model's own and the draft's. Errors: ERR_NOMEM. */
enum err_code planner_unit_draft(struct planner *p, struct planner_unit *u, int64_t gamma, struct err *e);

/* planner_unit_make -- memory and floors of a layout. Errors: ERR_NOMEM. */
enum err_code planner_unit_make(struct planner *p, size_t device, size_t format, const struct layout *l,
                                struct planner_unit *out, struct err *e);

/* A unit under limits that no closed form forbids, with a number of copies in [least, most]; memory known. */
struct planner_option {
    struct planner_unit *unit;
    struct planner_plan plan; /* of one copy */
    int64_t least, most;
};

/* planner_options -- those of every device and precision. Errors: as planner_search. */
enum err_code planner_options(struct planner *p, struct planner_option **out, size_t *n, struct err *e);

/* planner_check -- that there is something to choose from. planner_settings -- pairs of limits. planner_blank -- a plan
 * of the unit with nothing known. planner_copies -- so many copies of it share the traffic. */
enum err_code planner_check(const struct planner_request *q, struct err *e);
int64_t planner_settings(const struct planner_request *q, int64_t gamma);
struct planner_plan planner_blank(const struct planner_unit *u);
void planner_copies(const struct planner_request *q, struct planner_plan *plan, const struct planner_unit *u,
                    int64_t copies);

/* planner_open_one -- one plan at the request's traffic, not solved: its unit, limits and memory; ILLEGAL or SHORT
 * where that is known. Errors: as planner_search. */
enum err_code planner_open_one(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner *p, struct planner_unit *u, struct planner_plan *out, struct err *e);

/* planner_memory -- what an engine with these limits of an attention group has for the cache, and the sequences of a
 * copy that fit: fields of *out; SHORT with what is missing. Errors: ERR_RANGE. */
enum err_code planner_memory(struct planner *p, const struct planner_unit *u, int64_t step_tokens, int64_t seqs,
                             struct planner_plan *out, struct err *e);

/* Most sequences that the cache of a unit holds, rising: however their answers lie in time (ended_bytes of each), and
 * on average (sequence_bytes). */
enum { PLANNER_HELD_MAX = 2 };
struct planner_held {
    int64_t seqs[PLANNER_HELD_MAX];
    size_t n;
};

/* planner_held -- those between the least and the most of the request's seqs, beside steps of so many tokens, that are
 * none of them; none where the request does not ask (held_seqs). Errors: ERR_RANGE. Cost: six times planner_memory.
 * MODEL.md "Planner", *Limits*. */
enum err_code planner_held(struct planner *p, const struct planner_unit *u, int64_t step_tokens,
                           struct planner_held *out, struct err *e);

/* planner_rate_most -- no engine serves more requests a second with one copy that holds `batch` sequences: their flops
 * at the peak, and the bytes of steps as full as they can be. */
double planner_rate_most(struct planner *p, const struct planner_unit *u, double batch);

/* planner_solve -- point and verdict of a plan whose memory is known, at plan->rate_per_s of a copy, but not what
 * planner_finish adds. Errors: as planner_search. */
enum err_code planner_solve(struct planner *p, struct planner_unit *u, struct planner_plan *plan, struct err *e);

/* Misses of plans that fail so and are known: of one that fails by more nobody asks by how much. Infinite: of all. */
struct planner_told {
    double saturated, late_tpot, late_ttft;
};

/* planner_solve_told -- planner_solve of a plan of which `told` says what is asked: where a bound shows its verdict,
 * and that it misses by more, it has that verdict and no point, and an infinite miss. The bounds are true
 * (planner_bounds.c), so that whatever is told is what planner_solve would have; but what is late with its first token
 * at any rate is that, whatever else it misses. Not of a job. Errors: as planner_search. */
enum err_code planner_solve_told(struct planner *p, struct planner_unit *u, const struct planner_told *told,
                                 struct planner_plan *plan, struct err *e);

/* Highest values that do not answer a question about a plan: a saturation rate of a copy up to which it is saturated,
 * and a TPOT and a TTFT beyond which it is late, all by more than is told. 0, infinite: nothing is. ttft_s is that of
 * its steps: what a first token takes beside them is taken off. */
struct planner_beyond {
    double saturation_per_s, tpot_s, ttft_s;
};
struct planner_beyond planner_beyond_of(const struct planner_request *q, const struct planner_plan *plan,
                                        const struct planner_told *told);

/* planner_first_s -- TTFT of steps is at the promise's quantile no less, at any rate: the prompt that counts, by pieces
 * of full steps, where nobody decodes; the slowest stage takes one piece after another. through, slowest: times of a
 * step in all stages and in that one, the same of one stage. MODEL.md "Planner", *What is not solved*. */
double planner_first_s(const struct planner_request *q, struct steady_times *through, struct steady_times *slowest,
                       double slower);

/* planner_steps_beyond -- SATURATED, LATE_TPOT or LATE_TTFT where a copy as a fluid shows that its steady state, of
 * which s->times are known, is beyond that at so many requests a second of a copy; MEETS: nothing is shown. Cost: some
 * 10 step times. MODEL.md "Planner", *What is not solved*. */
enum planner_verdict planner_steps_beyond(const struct planner_request *q, const struct steady_setup *s,
                                          double rate_per_s, const struct planner_beyond *b);

/* planner_settle -- a plan's verdict without its point. */
void planner_settle(struct planner_plan *plan, enum planner_verdict v);

struct steady_flights;

/* planner_flights_below -- whether a run of flights where others always wait (steady_flights_run) says no more than so
 * many requests a second. planner_flights_token_s -- TPOT is at no quantile less, at the rate of f. MODEL.md "Planner",
 * *What is not solved*. */
bool planner_flights_below(const struct steady_flights *f, const struct planner_traffic *t, double rate_per_s);
double planner_flights_token_s(const struct steady_flights *f, const struct planner_traffic *t);

/* planner_pool_counts -- fewest copies that prefill and decode within the promises, `most` in all, each count by
 * bisection: a request's first token knows the copies that prefill alone. Sets what is best or nearest. Errors: as
 * planner_solve. */
enum err_code planner_pool_counts(struct planner *p, struct planner_unit *u, const struct planner_plan *limits,
                                  int64_t most, size_t *solved, struct planner_plan *out, struct err *e);

/* planner_finish -- what a solved plan costs, and the demands of its steps: for plans that are shown. */
void planner_finish(struct planner *p, const struct planner_unit *u, struct planner_plan *plan);

/* planner_judge -- the verdict of a solved point. */
void planner_judge(const struct planner_request *q, struct planner_plan *plan);

/* planner_blocks -- of the cache of one copy: its pool, at the bytes that a token of a sequence of mean context has;
 * the longest sequence at least. */
int64_t planner_blocks(const struct planner *p, const struct planner_unit *u, const struct planner_plan *plan);

/* planner_decode_s -- a decode step of B sequences at contexts S, where times are no floors; floor_s: its floor. */
double planner_decode_s(struct planner_clock *c, double B, double S, double floor_s);

/* planner_policy -- what a step holds: an engine's own; pieces of prompts beside those that decode. planner_watermark
 * -- part of the blocks that it keeps idle when a request enters. */
enum simulate_policy planner_policy(const struct planner_request *q);
double planner_watermark(const struct planner_request *q);

/* What the P90 of a transfer between generations is of that of measured kernels, the widest seen (A100's rows by H100's
 * parameters, `ridge validate`): for layouts that nobody measured. */
#define PLANNER_UNMEASURED_P90 1.23

/* planner_band -- P90 over the median of a whole step, of decode at `batch` and of a prompt, whichever is wider; of a
 * server's steps that of what was measured over what was predicted for models that its terms were not fitted to
 * (engine_band); 1 where times are floors or medians are asked for. All times of a service that is slower by b are
 * those at a rate that is b times higher, times b. */
double planner_band(const struct planner *p, const struct planner_clock *c, double batch);

/* planner_drain -- makespan of `requests` on what holds `held` of them: those that are served at the saturation rate
 * before the queue is empty, and the answers that are then begun, the longest of which runs to its end beside ever
 * fewer others, at steps from full_s down to alone_s. */
void planner_drain(const struct planner_traffic *t, double requests, double held, double rate_most, double full_s,
                   double alone_s, struct planner_point *out);

/* planner_queue -- planner_solve for layouts that the others leave (planner_queue.c): steps of prompts and of sequences
 * that decode as if apart. planner_stages -- for those whose stages it does know (planner_stages_fly). planner_steady
 * -- the question of a plan's copy to the steady state, times and lengths with drafts included. planner_steady_times --
 * what the clock keeps of it. */
enum err_code planner_queue(struct planner *p, struct planner_unit *u, struct planner_plan *plan, struct err *e);

enum err_code planner_stages(struct planner *p, struct planner_unit *u, const struct planner_told *told,
                             struct planner_plan *plan, struct err *e);
void planner_steady(struct planner *p, const struct planner_unit *u, const struct planner_plan *plan,
                    struct planner_clock *c, struct steady_setup *out);
enum err_code planner_steady_times(struct planner *p, struct planner_clock *c, int64_t step_tokens,
                                   struct steady_setup *s, struct steady_decode *decode, struct err *e);
double planner_spread_at(const struct steady_spread *s, double frac);

/* planner_promised_frac -- the part of requests that times of a point are of: the promised one, .95 where nothing is.
 * planner_point_unknown -- before it is solved: no time is known. */
double planner_promised_frac(const struct planner_promise *p);
struct planner_point planner_point_unknown(void);

/* planner_ratio -- of the times of a layout that nobody measured to its floors, what its band adds included. */
enum err_code planner_ratio(struct planner *p, struct planner_unit *u, const struct planner_plan *plan, double *out,
                            struct err *e);

#endif
