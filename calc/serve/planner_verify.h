/* planner_verify -- a plan through the scheduler, request by request. */
#ifndef RIDGE_SERVE_PLANNER_VERIFY_H
#define RIDGE_SERVE_PLANNER_VERIFY_H

#include "calc/serve/planner.h"

struct planner_verified {
    size_t n, finished;     /* requests */
    bool growing;           /* arrivals outran the service */
    double ttft_s, tpot_s;  /* at the parts promised (0.95 without), of planner_request.judged */
    double ttft_error_frac; /* by so much of it another run may be off, 95 in 100 (planner_run_judge); NAN */
    double tpot_error_frac;
    bool keeps;                        /* every promise */
    enum planner_verdict breaks;       /* MEETS, or what it does not keep */
    bool stopped;                      /* before its end: so many requests were late that no other could help */
    double cached_frac, loaded_frac;   /* of the prompts' tokens: found in a cache; of those, at the host */
    size_t waiting_half, waiting_last; /* in queues when half of the requests, and all of them, had come */
    int64_t blocks;                    /* of a copy's cache */
    double band;                       /* planner_run.band */
    double makespan_s;                 /* a job: from its first step to its last answer; else NAN */
};

/* planner_verify -- calc/serve/simulate.h with the plan's limits, cache and copies (least loaded first), at the same
 * part of the band as the plan. Errors: ERR_USAGE a layout that is not simulated (planner_verifies), or more copies
 * than are; ERR_NOMEM. Cost: that of simulate_run. */
enum err_code planner_verify(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                             const struct workload *w, struct planner_verified *out, struct err *e);

/* planner_tells -- whether a run of the requests that are judged says no to what serves one in a hundred less than
 * come: behind `n` requests in `n/rate` seconds the last waits for an excess `x` of them for `x*n/rate`, more than the
 * promise of TTFT at its part. False without such a promise, and where no window is judged. */
bool planner_tells(const struct planner_request *q);

/* Who watches the simulations of a search. */
struct planner_watch {
    bool (*show)(void *closure, size_t finished, size_t all); /* requests of the one that runs; false: stop; NULL */
    void *closure;
    size_t most; /* simulations in full breadth */
};

enum { PLANNER_REFUTED_MAX = 8 };

/* A plan that a simulation said no to. */
struct planner_refuted {
    struct planner_plan plan;
    struct planner_verified verified; /* stopped: of the requests until then */
    double over;                      /* the value that is farthest beyond its promise, as times of it */
};

/* Why a plan is not simulated. */
enum planner_skip {
    PLANNER_SIMULATED,
    PLANNER_SKIP_NODES,    /* ranks of an attention group or stage over several nodes */
    PLANNER_SKIP_GROUPS,   /* attention groups in stages */
    PLANNER_SKIP_CONTEXTS, /* ranks that share contexts, in attention groups or stages */
    PLANNER_SKIP_SEQUENCE, /* norms split over the ranks of one stage, its own collectives */
    PLANNER_SKIP_COPIES,   /* more than SIMULATE_REPLICAS_MAX */
    PLANNER_SKIP_SHARE,    /* a job: more requests a copy than PLANNER_SHARE_MAX */
    PLANNER_SKIPS
};

/* Of those that keep every promise on paper and cost no more than the plan that is found: the fewest copies of each
 * device, precision, layout and limits. */
struct planner_skipped {
    size_t n;
    struct planner_plan best; /* the first in planner_order */
};

struct planner_confirmed {
    struct planner_refuted near[PLANNER_REFUTED_MAX]; /* the nearest, where none is found: all requests of the first
                                                         ones simulated */
    size_t near_n;
    bool found;
    struct planner_verified verified; /* of the first of result->best */
    size_t refuted;                   /* plans that kept every promise on paper and not when simulated */
    size_t near_refuted;              /* that missed on paper by no more than their margin, and when simulated */
    size_t flooded;                   /* that keep them at the mean rate alone (planner_floods) */
    bool cut;                         /* `most` was reached: behind that one plan at each cost was simulated */
    bool near_cut;    /* of those within a margin, a third of it: behind that the nearest at each cost */
    bool interrupted; /* `show` said so */
    struct planner_skipped skipped[PLANNER_SKIPS];
};

/* planner_confirm -- the cheapest plan that keeps every promise when it is simulated, put before r->best; what was
 * refuted leaves it. All candidates of every device and precision are taken in the order of their cost, those of one
 * cost that keep the promises on paper in the order of planner_order, behind them those that miss, or saturate, by no
 * more than paper is off (planner_margin_of), the nearest first; whatever costs less than the one that is found is
 * refuted by closed forms, by the steady state beyond its margin or by its simulation, or is of a kind that is not
 * simulated, and told of in `skipped` (of jobs the best of each device and precision alone). A plan that is found so
 * has the verdict MEETS, and in `paper` what it misses there. Of two pools every split is one, from the fewest copies
 * of either that keep the promises on paper on. So a looser promise or one more device never makes the answer dearer,
 * unless it was cut. Runs that could not differ (a batch and a cache that never fill) are simulated once. found: false,
 * and r->best has what is not simulated and nothing else, where no plan is confirmed; on paper none need keep them.
 * Errors: as planner_verify. Cost: that of simulate_run each, those that fail until they must. */
enum err_code planner_confirm(struct arena *a, const struct planner_request *q, const struct workload *w,
                              const struct planner_watch *watch, struct planner_result *r,
                              struct planner_confirmed *out, struct err *e);

/* planner_headroom_simulated -- of a plan that keeps every promise when it is simulated, so far as it does: the same
 * requests come closer together, bursts with them; bisection between the rate asked and one that fails, from that of
 * planner_headroom on, to one in a hundred, of long runs in fifty, in 12 simulations at most; not above the saturation
 * on paper unless what is judged fills the copies 20 times. A watch that stops it: what planner_headroom
 * says. Errors: as planner_verify. Cost: those simulations, the failing ones until they must fail. */
enum err_code planner_headroom_simulated(struct arena *a, const struct planner_request *q,
                                         const struct planner_plan *plan, const struct workload *w,
                                         const struct planner_watch *watch, struct planner_headroom *out,
                                         struct err *e);

enum { PLANNER_SHARE_MAX = 1 << 20 }; /* requests of a copy that are simulated */

/* planner_confirm_bulk -- the same of a job, or of tokens a day, whatever the latency. Copies are alike and share the
 * requests evenly, so one of them is simulated with its part: of a job all of it at once, its lengths those of w over
 * and over; of tokens a day requests at the copy's rate, of which the queue must not grow. The best plan on paper is
 * simulated until the best is one that was: its time becomes the simulated one, and one that fails gets a copy more, or
 * leaves where there are no GPUs for it. The best of each device and precision alone are looked at. Errors: as
 * planner_verify. */
enum err_code planner_confirm_bulk(struct arena *a, const struct planner_request *q, const struct workload *w,
                                   const struct planner_watch *watch, struct planner_result *r,
                                   struct planner_confirmed *out, struct err *e);

/* A plan's run through the scheduler: times of records and steps are those of the band. */
struct planner_run {
    struct simulate_result result;
    double band;                /* P90 over the median; 1 */
    bool of_floors;             /* stages: band is that of times over floors, its own band in it */
    struct simulate_step *step; /* runs of equal steps of all copies, as they came */
    size_t steps_n;
    int64_t blocks;            /* of a copy */
    bool hopeless;             /* stopped, so many requests were late: */
    enum planner_verdict late; /* LATE_TTFT or LATE_TPOT */
};

/* The times of a plan's steps as its simulation has them: of several stages floors, times `slower`. */
struct planner_times {
    struct mix_plan *plan;
    struct calibrated *calibrated; /* NULL: floors, or a server's */
    struct engine_case *server;    /* NULL: none, or of several stages */
    bool overlapped;
    double slower;                       /* the band, in stages times over floors with it */
    const struct speculate_setup *draft; /* NULL: none */
    double draft_kv_bytes_per_token;
};

/* planner_times_of -- of device, format, layout, gamma and batch_most of a plan alone. Errors: as planner_search. Cost:
 * some milliseconds, to compile steps. */
enum err_code planner_times_of(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                               struct planner_times *out, struct err *e);

/* planner_run -- what planner_verify looks at, step by step. Errors: as planner_verify. Cost: likewise, and a struct
 * for each run of steps. planner_run_judge -- its quantiles at the parts promised, against the promises; and
 * their own sampling error, 2.262 standard errors (Student's t of nine degrees) of the same quantile of ten parts of
 * the run, one after another, each of several fillings of the copies and so nearly independent (batch means; Law,
 * Simulation Modeling and Analysis, 9.5.3); NAN below 1000 requests, and
 * where no window is judged. Errors: ERR_NOMEM. */
enum err_code planner_run(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                          const struct workload *w, struct planner_run *out, struct err *e);
enum err_code planner_run_judge(struct arena *a, const struct planner_request *q, const struct planner_run *run,
                                struct planner_verified *out, struct err *e);

/* planner_run_until -- planner_run without steps, stopped where watch says so, and where more requests are late than
 * the promises allow of all. */
enum err_code planner_run_until(struct arena *a, const struct planner_request *q, const struct planner_plan *plan,
                                const struct workload *w, const struct planner_watch *watch, struct planner_run *out,
                                struct err *e);

/* planner_skip_of -- whether a plan is simulated, and why not. planner_verifies -- the same, what it has in words;
 * NULL: it is. planner_skip_name -- the words of a reason; PLANNER_SIMULATED: NULL. */
enum planner_skip planner_skip_of(const struct planner_plan *plan);
/* planner_skip -- one more that is told of. */
void planner_skip(const struct planner_request *q, const struct planner_plan *plan, enum planner_skip why,
                  struct planner_confirmed *out);
const char *planner_verifies(const struct planner_plan *plan);
const char *planner_skip_name(enum planner_skip why);

#endif
