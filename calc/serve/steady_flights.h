/* steady_flights -- batches under way in the stages of a replica: which of them a prompt joins, and when it is through.
 *
 * Batch b is begun by whoever landed with the one before it in its place and by prompts, as many tokens as its budget
 * leaves; others' leftovers begin a batch of their own while fewer than p are under way:
 *
 *     begin_(b,i) = max(end_(b,i-1), end_(b-1,i))      end_(b,i) = begin_(b,i) + s_i(n, x)
 *
 * That is a recurrence of a queue in the manner of Lindley, of p places in tandem, whose stationary state has no closed
 * form: a batch that prompts make long is what more prompts come in. It is run on one fixed stream, whose gaps scale
 * with the rate, from an empty replica until what it holds has been replaced. Step times are those of a steady state's
 * grid at mean contexts, the cache is a number of tokens. MODEL.md "Planner", *Stages*. Source: Lindley, Proc. Camb.
 * Phil. Soc. 48, 1952; vLLM v1/engine/core.py, step_with_batch_queue. */
#ifndef RIDGE_SERVE_STEADY_FLIGHTS_H
#define RIDGE_SERVE_STEADY_FLIGHTS_H

#include "calc/serve/steady.h"

struct steady_flights {
    struct steady_times *through, *slowest; /* seconds of a batch in all its stages, and in the slowest (steady.h) */
    double slower;                          /* a step takes so many times those; >= 1 */
    int64_t stages;                         /* >= 2 */
    int64_t budget_tokens, max_seqs;        /* of a batch; of all of them, <= budget_tokens */
    double cache_tokens, block_tokens;      /* of all */
    const double *prompt, *output;          /* [lengths_n] ascending */
    size_t lengths_n;
    double rate_per_s; /* infinite: others always wait */
    double load_frac;  /* of what saturates, for how long to look; 0: not known */
    double arrival_cv2;
};

struct steady_flights_result {
    double rate_per_s; /* requests a second by the tokens that are made */
    double ttft_mean_s, tpot_mean_s;
    double *ttft_s, *tpot_s; /* [n] and [tokens_n], of requests that came behind the first ones */
    size_t n, tokens_n;
    double busy_frac; /* of time, some batch is under way */
    bool growing;     /* arrivals outran the service, which rate_per_s is then: there is no steady state */
    bool cache;       /* requests waited for the cache more often than for a place, or lost theirs */
};

/* steady_flights_run -- out's arrays are in `a`. Errors: ERR_NOMEM. Cost: some 10^4 batches, of 50 to 200 ns each. */
enum err_code steady_flights_run(struct arena *a, const struct steady_flights *s, struct steady_flights_result *out,
                                 struct err *e);

#endif
