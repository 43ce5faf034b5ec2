/* workload -- requests that arrive at a service: made from a few numbers and a seed, or read from a trace.
 *
 * Arrivals are open (times of their own: Poisson; gamma gaps of a coefficient of variation; bursts, a process that
 * switches between a busy and a quiet rate; a sine of a day), closed (so many clients, each asking again when it has
 * its answer) or all at once. Lengths are fixed or drawn. A conversation of several turns asks again with all that was
 * said before in front; a shared prefix (a system prompt) is the same tokens for all. The same seed gives the same
 * requests, and arrivals, prompts and outputs have generators of their own: changing one leaves the others as they are.
 * Derivations: MODEL.md "Workloads". */
#ifndef RIDGE_SERVE_WORKLOAD_H
#define RIDGE_SERVE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum { WORKLOAD_TOKENS_MAX = 1 << 24, WORKLOAD_REQUESTS_MAX = 20000000 };

struct workload_request {
    double arrival_s;            /* of a turn after the first, or of a client's next: ignored, its `after` tells when */
    int32_t prompt_tokens;       /* >= 1, all of it, what was said before included */
    int32_t output_tokens;       /* >= 1, of each sample */
    int32_t shared_tokens;       /* the first so many are the prefix that all have */
    int32_t cached_tokens;       /* a trace says that so many were seen before; 0 unknown */
    uint32_t stream;             /* what is behind the shared prefix: equal streams say the same at equal positions */
    uint32_t next;               /* the request that follows when this one is answered; WORKLOAD_NO_NEXT */
    uint32_t hash_first, hash_n; /* hashes of blocks of workload.hash_tokens tokens that a trace gives */
};

#define WORKLOAD_NO_NEXT UINT32_MAX

struct workload {
    struct workload_request *request; /* by arrival; requests that follow others stand behind the first ones */
    size_t n, first_n;                /* all; those that arrive by themselves */
    double think_s;                   /* from an answer to the next request of the same client or conversation */
    int64_t samples;                  /* of each prompt */
    bool open;                        /* arrivals do not wait for answers */
    bool timed;                       /* they have times of their own, not all at once */
    double span_s;                    /* the last arrival of the first_n */
    const uint32_t *hash;             /* of Mooncake traces; NULL */
    int64_t hash_tokens;
    double rate_per_s; /* made, with a rate that changes in time: its mean, whatever part of the pattern came; else 0 */
    const char *note;  /* what the reader did: sorted, left out failures; NULL */
};

/* ---- lengths ---- */

enum workload_length_kind {
    WORKLOAD_FIXED,
    WORKLOAD_UNIFORM,
    WORKLOAD_EXPONENTIAL,
    WORKLOAD_LOGNORMAL,
    WORKLOAD_PARETO,
    WORKLOAD_GAMMA_LENGTH,
    WORKLOAD_EMPIRICAL,
};

/* Tokens, rounded up, within [1, most]. */
struct workload_length {
    enum workload_length_kind kind;
    double mean;        /* fixed: the value; uniform: of low and high */
    double cv;          /* lognormal, gamma: standard deviation over mean */
    double low, high;   /* uniform */
    double alpha;       /* Pareto: exponent of the tail, above 1 so that there is a mean */
    const double *list; /* empirical: drawn from these with equal chances */
    size_t list_n;
    int64_t most; /* WORKLOAD_TOKENS_MAX unless "max=" */
};

/* workload_length_parse -- "300", "uniform:10..500", "exponential:300", "lognormal:300,0.8" (mean, cv),
 * "gamma:300,0.8" (mean, cv), "pareto:300,2.5" (mean, alpha), "empirical:FILE" (a number a line), each with ",max=N"
 * behind it. Errors: ERR_USAGE; those of reading a file. */
enum err_code workload_length_parse(struct arena *a, const char *text, struct workload_length *out, struct err *e);

/* workload_length_mean -- of the distribution, before rounding and the cut at `most`. */
double workload_length_mean(const struct workload_length *l);

/* ---- made ---- */

enum workload_arrival { WORKLOAD_POISSON, WORKLOAD_GAMMA, WORKLOAD_BURSTY, WORKLOAD_DIURNAL };

struct workload_spec {
    enum workload_arrival arrival;
    double rate_per_s;     /* open: first requests a second, on average; 0 not open */
    double cv;             /* gamma: of the gaps */
    double burst_ratio;    /* bursty: busy over quiet rate, >= 1 */
    double burst_s;        /* bursty: mean length of a busy time, and of a quiet one */
    double swing_frac;     /* diurnal: rate * (1 + swing * sin), in [0, 1] */
    double period_s;       /* diurnal */
    int64_t concurrency;   /* closed: clients; 0: open or all at once */
    int64_t requests;      /* >= 1, turns counted one by one */
    int64_t turns;         /* of a conversation, >= 1 */
    int64_t shared_tokens; /* of a prefix in front of every first prompt */
    double think_s;
    int64_t samples;
    struct workload_length prompt, output; /* prompt: what a turn adds */
    uint64_t seed;
    bool (*go_on)(void *closure, size_t done, size_t all); /* asked now and then while requests are drawn; NULL */
    void *closure;
};

/* workload_arrival_parse -- "poisson", "gamma:CV", "bursty:RATIO,TIME", "diurnal:SWING,TIME" into a spec; a
 * time without a unit is in seconds. Errors: ERR_USAGE. */
enum err_code workload_arrival_parse(const char *text, struct workload_spec *spec, struct err *e);

/* workload_period_s -- of arrivals whose rate changes in time: the period of a sine, the mean of a busy and a quiet
 * time together; 0: it does not change. */
double workload_period_s(const struct workload_spec *spec);

/* workload_sine_per_s -- requests a second of diurnal arrivals at a time: rate * (1 + swing * sin(2 pi at / period)).
 */
double workload_sine_per_s(const struct workload_spec *spec, double at_s);

/* workload_draw_arrivals -- Poisson arrivals at such a rate, > 0, for requests that have their order and no times. */
enum err_code workload_draw_arrivals(struct workload *w, double rate_per_s, uint64_t seed, struct err *e);

/* workload_make -- Errors: ERR_RANGE a number outside its domain; a conversation beyond WORKLOAD_TOKENS_MAX;
 * ERR_STOPPED go_on said no; ERR_NOMEM. Cost: O(requests). */
enum err_code workload_make(struct arena *a, const struct workload_spec *spec, struct workload *out, struct err *e);

/* workload_truncate -- what is longer than so many tokens, prompt and answer, ends there, with one token of its answer
 * at least; how many requests that were. longest_tokens > 1. */
size_t workload_truncate(struct workload *w, int64_t longest_tokens);

/* workload_put_ahead -- so many tokens more in front of every prompt: the source of an encoder-decoder. Errors:
 * ERR_RANGE a prompt beyond WORKLOAD_TOKENS_MAX. */
enum err_code workload_put_ahead(struct workload *w, int64_t tokens, struct err *e);

/* workload_came_per_s -- requests a second as they came, turns and all: n of them in the first_n gaps of those that
 * come by themselves, of which span_s has all but one. w->span_s above 0. */
double workload_came_per_s(const struct workload *w);

/* workload_arrival_cv2 -- squared coefficient of variation of the gaps between requests that come by themselves; 1, as
 * Poisson's, where there are too few to tell. */
double workload_arrival_cv2(const struct workload *w);

/* ---- traces ---- */

/* workload_read -- a trace as CSV or JSON lines, known by its header or first line:
 *   arrival_s,prompt_tokens,output_tokens[,cached_prefix_tokens_infinite_cache][,...]
 *   TIMESTAMP,ContextTokens,GeneratedTokens              Azure 2023; "2023-11-16 18:17:03.9799600"
 *   Timestamp,Model,Request tokens,Response tokens,...   BurstGPT; no response: a failure, left out and said
 *   {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}   Mooncake; hashes of 512 tokens
 * Times are seconds from the first. Lines may end in CRLF, a byte order mark may stand first, empty lines may end the
 * file; rows out of order are sorted (equal times keep their order) and said. Everything else is refused with file and
 * line: negative or infinite times, NaN, tokens outside 1..WORKLOAD_TOKENS_MAX, missing cells, no row, more than
 * WORKLOAD_REQUESTS_MAX rows or 1 GiB. workload_read_text -- from memory; name is for messages. Errors: ERR_INPUT,
 * ERR_IO, ERR_NOMEM. Cost: O(bytes + n log n). */
enum err_code workload_read(struct arena *a, const char *path, struct workload *out, struct err *e);

/* workload_read_watched -- the same, telling go_on of the bytes that are read, of all, every some thousand lines; it
 * says whether to go on. Errors: ERR_STOPPED go_on said no. */
enum err_code workload_read_watched(struct arena *a, const char *path,
                                    bool (*go_on)(void *closure, size_t done, size_t all), void *closure,
                                    struct workload *out, struct err *e);

enum err_code workload_read_text(struct arena *a, const char *name, const char *text, size_t len, struct workload *out,
                                 struct err *e);

/* workload_block_hash -- what names block i of a request's prompt and answer, of block_tokens each: equal names have
 * equal tokens in and before them. 0: nobody else has it. */
uint64_t workload_block_hash(const struct workload *w, const struct workload_request *r, int64_t block_tokens,
                             int64_t i);

#endif
