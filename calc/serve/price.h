/* price -- what GPUs cost, in money and in energy, and what a million tokens then cost.
 *
 * A price is dollars an hour of one device: of a price file, else the device's list price (configs/hardware), else
 * unknown; a price that nobody wrote down is never guessed. Input and output tokens share the machine, so its price is
 * split by the time that it spends on each:
 *
 *     $/M tokens in  = $/h * prefill share / (input tokens/s * 3600) * 1e6     and the same of output
 *
 * Energy is reckoned from the device's power and what it does: at full power while it prefills, at PRICE_DECODE_FRAC of
 * it while it decodes, at PRICE_IDLE_FRAC while it waits; the GPUs alone, without hosts and cooling. That is an
 * assumption, not a measurement. MODEL.md "Cost and energy". */
#ifndef RIDGE_SERVE_PRICE_H
#define RIDGE_SERVE_PRICE_H

#include "calc/time/hw.h"

#define PRICE_DECODE_FRAC 0.6 /* of the power: the middle of 50 to 70 % */
#define PRICE_IDLE_FRAC 0.15  /* of the power: a model loaded and nothing to do */

/* Dollars an hour of one device; NAN unknown. */
struct price {
    double usd_per_h;
    const char *source, *date; /* NULL not known */
    bool own;                  /* of a price file */
};

struct price_list; /* lives in the arena */

/* price_read -- a price file: a JSON object of device names, each with dollars an hour or {"usd_per_h": 2.49, "source":
 * text, "date": "YYYY-MM"}. Names are those of hw_load, aliases included. Errors: ERR_INPUT naming file and key: not a
 * device, not a price above zero, a device named twice; ERR_IO; ERR_NOMEM. */
enum err_code price_read(struct arena *a, const char *path, struct price_list **out, struct err *e);

/* price_of -- of the file (NULL: none) where it has the device, else the list price. */
struct price price_of(const struct price_list *list, const struct hw *hw);

/* What GPUs do with their time. */
struct price_use {
    double gpus;                        /* > 0 */
    double usd_per_h;                   /* of one; NAN unknown */
    double power_w;                     /* of one; NAN unknown */
    double prefill_frac;                /* of the time; >= 0 */
    double decode_frac;                 /* of the time; the two at most 1 */
    double in_tok_per_s, out_tok_per_s; /* served by all */
};

/* NAN: not known, or no such tokens. */
struct price_cost {
    double usd_per_h;                         /* of all */
    double usd_per_mtok_in, usd_per_mtok_out; /* split by time */
    double usd_per_mtok;                      /* all money over output tokens alone */
    double watts;                             /* of all */
    double joule_per_tok;                     /* over output tokens */
};

/* price_cost -- the formulas above. A machine that does nothing splits evenly by tokens: both cost the same. */
struct price_cost price_cost(const struct price_use *u);

#endif
