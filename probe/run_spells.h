/* run_spells -- one result from spells of sampling, each between two measurements of its ceilings. Of run.c. */
#ifndef RIDGE_PROBE_RUN_SPELLS_H
#define RIDGE_PROBE_RUN_SPELLS_H

#include "probe/run.h"

/* run_spells -- measure q, a job, in turn with its ceilings: spells of 40 ms, until three or more that lie between
 * steady ceilings of one level make a sure median, ten of them one that may be given, or the time of q is over. Those
 * of the highest level that has three count, and their ceilings are the result's; the samples of the others are
 * discards, whatever they are. A card, which no other program disturbs unseen, has one spell (a hot one two). The
 * result is not judged yet. r->stopped: there is none. Errors: ERR_NOMEM. */
enum err_code run_spells(struct run *r, const struct plan_job *job, const struct wire_job *q, struct result *out,
                         struct err *e);

/* spells_choose -- which of n spells count: between ceilings, those that take PART of the bound or more (one core does
 * one after the other much of what it does), no more than STEADY apart, and within LEVEL of one
 * another, at the highest level that has `least` such; where none has, all. best: the rates of the machine at its best,
 * NAN not known. Returns the level, the lowest of the rates that weigh over the best, of the highest spell that counts;
 * 0 where all do for want of a level. Cost: O(n^2). */
#define SPELLS_PART 0.15
#define SPELLS_STEADY 0.07
#define SPELLS_LEVEL 0.93
double spells_choose(struct result_spell *spells, size_t n, size_t least, const struct result_ceilings *best);

#endif
