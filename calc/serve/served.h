/* served -- published times of servers in closed loop, and how well an engine's terms predict models left out of them.
 *
 * A row is an engine, a model on so many GPUs in a layout, fixed prompts and answers, clients in closed loop, and the
 * measured mean times: to the first token (TTFT) and of each token after it (TPOT, with other requests' prompts,
 * collectives and the host's work in it). Its prediction is engine.h's closed loop. Per engine the terms are fitted to
 * the TPOT of all families of models but one, and that one is predicted; beside it, fitted alike, the textbook
 *   c0 + c1*roofline of a step that decodes + c2*roofline of others' prompts per token      (three constants an engine)
 * The sum of 2 d^2 (sqrt(1 + (x/d)^2) - 1), x = ln(predicted/measured), d = 0.05, is least (fit.h), by Nelder and
 * Mead's simplex from several starts, as a step that overlaps has a kink. Runs of such tables start cold, with all
 * clients at once: what that makes of the mean TTFT of few clients is one number of all engines, start_s for each
 * kernel that a prompt's step launches, fitted and left out alike (least sum of |ln|); no server has it later.
 * Derivation: MODEL.md "Servers". */
#ifndef RIDGE_SERVE_SERVED_H
#define RIDGE_SERVE_SERVED_H

#include "calc/serve/engine.h"

enum { SERVED_ROWS_MAX = 100000, SERVED_BASELINE_N = 3 };

struct served_row {
    const char *file;
    int64_t line;
    const char *engine, *version, *model, *device, *weights; /* as published, unless corrected */
    const char *measured;                                    /* the day; "" not said */
    bool corrected;  /* version and layout are as the script of its runs has them; served_correct */
    const char *why; /* it is not scored; NULL: it is */
    int64_t tp, attention_dp, ep;
    double prompt_tokens, output_tokens, clients;
    double ttft_s, tpot_s;
    const char *kind;            /* "dense", "experts" (these, or latent attention); NULL unknown */
    size_t family;               /* models of one size, whatever their formats */
    bool overlapped, per_kernel; /* of the engine's version; which terms are fitted (engine.h) */
    struct engine_closed closed;
    double predicted_s, first_s, baseline_s; /* TPOT, TTFT, TPOT of the textbook; its family left out; NAN: none */
    double fitted_s;                         /* TPOT with all families in the fit */
    double steps_first_s;                    /* steps until the first token, of the last fit */
};

struct served {
    struct served_row *row;
    size_t n, families_n;
    double start_s; /* below, all families in the fit; set by served_leave_out */
};

/* served_is -- whether a file is such a table, by its header: engine,model,system,tp,attention_dp,ep,weights,
 * prompt_tokens,output_tokens,concurrency,ttft_ms,tpot_ms; also engine_version, measured and note (any: not scored).
 * false too where it cannot be read. */
bool served_is(struct arena *a, const char *path);

/* served_lacks -- of a file that is no such table, but has most of its columns, a column that is missing; NULL: it is
 * something else. */
const char *served_lacks(struct arena *a, const char *path);

/* served_read -- rows of a file. Errors: ERR_IO; ERR_INPUT naming file and line; ERR_NOMEM. */
enum err_code served_read(struct arena *a, const char *path, struct served *out, struct err *e);

/* served_correct -- rows that a publication labels otherwise than the script of its runs has it (configs/runs/, each
 * with its source): version, experts dealt to all ranks, attention groups. A row is one of these by engine, version,
 * model, device and day; others stay as they are. served_read has done it. Errors: ERR_NOMEM. */
enum err_code served_correct(struct arena *a, struct served *s, struct err *e);

/* served_predict -- the closed loop of every row; why is set where an engine or a model is not known, a layout not
 * described, or the measured cycle is shorter than the bound of what it computes. Cost: some ten milliseconds for each
 * different deployment. Errors: ERR_NOMEM. */
enum err_code served_predict(struct arena *a, struct served *s, struct err *e);

/* What one engine's rows are fitted to. */
struct served_fit {
    struct engine_terms terms;
    double baseline[SERVED_BASELINE_N];
    size_t rows, families;
};

/* served_fit_engine -- to its scored rows, without those of one family (SIZE_MAX: all). Errors: ERR_NO no row;
 * ERR_NOMEM. */
enum err_code served_fit_engine(const struct served *s, const char *engine, size_t without, struct served_fit *out,
                                struct err *e);

/* served_leave_out -- predictions of every scored row, its family left out, and with all in. A family alone in its
 * engine has none of the first. Errors: ERR_NOMEM. */
enum err_code served_leave_out(struct served *s, struct err *e);

/* Of ln(predicted/measured) per doubling of clients, or of ranks, among rows that are alike in all else. Families of
 * models are what is drawn; MODEL.md "Servers", *Drift*. NAN of none. */
struct served_drift {
    double mean; /* of families' slopes, each weighted by what is known of it; NAN of kind "all" */
    double half; /* of its 95 % interval, by Student's t; NAN where no group has two families */
    double p;    /* that there is none: Holm's over all groups and both ways of doubling */
    double median,
        se;         /* of the slopes of sets, whoever's; se: standard error of that median, sets drawn independently */
    int64_t sets;   /* slopes */
    int64_t models; /* families with such sets */
};

/* Rows of an engine and kind. Errors are |predicted/measured - 1|, families left out. */
struct served_group {
    const char *engine, *kind;   /* kind "all" of both */
    const char *clients, *ranks; /* so many: "to 16", "8"; NULL any */
    int64_t rows, families, unscored;
    double host_s, kernel_s, sequence_s; /* of all families of the engine */
    double collective_frac;
    double median_frac, p90_frac, within_frac; /* within: of 25 % */
    double bias_frac;                          /* median of predicted/measured - 1 */
    double slow_p90;                           /* nine in ten take at most so many times what is predicted */
    double fitted_median_frac;                 /* all families in the fit */
    double baseline_median_frac, ratio;        /* ratio: of the medians, ours over the textbook's */
    struct served_drift drift_clients, drift_tp;
    double slope_clients, slope_tp; /* least squares over all rows: which models were run at which load is in it too */
    int64_t first_rows;             /* of at most SERVED_FIRST_CLIENTS clients */
    double first_median_frac;       /* TTFT of these */
};
enum { SERVED_FIRST_CLIENTS = 4 };
enum { SERVED_BY_CLIENTS = 1, SERVED_BY_RANKS = 2 };

/* served_groups -- in order of engine, kind, clients, ranks; "all" last of each engine. by: clients and ranks told
 * apart, then without "all". Errors: ERR_NOMEM. */
enum err_code served_groups(struct arena *a, const struct served *s, unsigned by, struct served_group **out,
                            size_t *out_n, struct err *e);

/* What a family's rows say of a slope: in which group, the slope, and its variance (rows drawn). */
struct served_slope {
    size_t group;
    double slope, variance;
};

/* served_pool -- the slope of each group from those of its families: random effects with one spread of families for
 * all groups, by moments, intervals by Knapp and Hartung (Statistics in Medicine 22, 2693, 2003), their factor not
 * below 1. slope [n], group < groups; mean, se [groups]: NAN of a group without families, se NAN where no group has
 * two. degrees: of freedom of Student's t, 0 where no group has two. */
void served_pool(const struct served_slope *slope, size_t n, size_t groups, double *mean, double *se, double *degrees);

/* served_holm -- p values so that any of them is below x, of slopes that are all none, with chance x at most (Holm,
 * Scandinavian Journal of Statistics 6, 65, 1979). NAN are none of them. p, out [n]; n^3 steps. */
void served_holm(const double *p, size_t n, double *out);

/* served_drifts -- drift_clients and drift_tp of groups of all loads and ranks. Errors: ERR_NOMEM. */
enum err_code served_drifts(struct arena *a, const struct served *s, struct served_group *g, size_t n, struct err *e);

/* served_ranks -- of a copy: tensor-parallel ranks of all attention groups. */
double served_ranks(const struct served_row *r);

/* served_is_first -- whether row i is the first of its engine. */
bool served_is_first(const struct served *s, size_t i);

#endif
