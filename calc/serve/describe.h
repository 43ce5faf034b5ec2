/* describe -- distributions that stand for a trace: of its prompts, its answers and the gaps between its requests, by
 * maximum likelihood, with how far each is from what the trace has.
 *
 * A length of n tokens is a value in (n-1, n], as workload.h draws them, so its likelihood is F(n) - F(n-1):
 *   lognormal    mu, sigma^2 = mean and variance of ln(n - 1/2); mean e^(mu + sigma^2/2), cv^2 = e^(sigma^2) - 1
 *   gamma        ln k - digamma(k) = ln(mean) - mean of ln, of n - 1/2
 *   exponential  mean of n - 1/2
 *   pareto       from the least on, alpha = n / sum of ln(x/least); none where alpha <= 1, which has no mean
 * chosen by Schwarz's parameters*ln(requests) - 2*ln likelihood. Gaps are gamma ones, whose CV is that of `--arrivals
 * gamma:CV`; where several requests have one time the CV is that of the moments, as no likelihood is finite. Distance:
 * Kolmogorov and Smirnov's, the largest difference of the two distribution functions, at whole tokens. Derivation:
 * MODEL.md "Workloads". Source: Minka, Estimating a Gamma distribution, 2002; Schwarz, Estimating the dimension of a
 * model, 1978. */
#ifndef RIDGE_SERVE_DESCRIBE_H
#define RIDGE_SERVE_DESCRIBE_H

#include "calc/serve/workload.h"

enum { DESCRIBE_FITS = 4, DESCRIBE_WINDOWS = 4 };

/* A fitted distribution; NAN, "": it is none. */
struct describe_fit {
    const char *name;      /* "lognormal" */
    double mean, cv;       /* of the distribution; infinite CV of a Pareto tail */
    double alpha;          /* Pareto */
    double log_likelihood; /* of a value, on average */
    double distance;       /* Kolmogorov-Smirnov */
    bool chosen;
    char text[96]; /* as --prompt takes it, cut at the longest of the trace */
};

/* Tokens of prompts, or of answers. */
struct describe_lengths {
    double mean, cv, p50, p95, p99;
    int64_t least, most;
    struct describe_fit fit[DESCRIBE_FITS];
};

struct describe_arrivals {
    double rate_per_s, span_s;
    double cv;       /* of gaps, as they are */
    double gamma_cv; /* of the fitted gamma distribution */
    bool ties;       /* some have one time: by moments */
    double distance, poisson_distance;
    double window_s[DESCRIBE_WINDOWS], dispersion[DESCRIBE_WINDOWS]; /* variance over mean of requests in a window; NAN:
                                                                        the trace has less than twenty of them */
    double swing_frac; /* of the rate over a day, rate*(1 + swing*sin); NAN below two days */
    char text[64];     /* as --arrivals takes it */
};

struct describe {
    size_t n;
    struct describe_lengths prompt, output;
    struct describe_arrivals arrivals; /* rate NAN: no times of their own */
};

/* describe_work -- of a workload's requests. Errors: ERR_RANGE fewer than 2; ERR_NOMEM. Cost: O(n log n). */
enum err_code describe_work(struct arena *a, const struct workload *w, struct describe *out, struct err *e);

#endif
