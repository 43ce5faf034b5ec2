/* steady_settings -- attention groups in one replica, drawn from a number or given, for the steady state and for the
 * simulator. */
#ifndef RIDGE_TESTS_STEADY_SETTINGS_H
#define RIDGE_TESTS_STEADY_SETTINGS_H

#include "tests/steady_config.h"

struct setting {
    const char *model, *gpu, *prompt, *output;
    int64_t groups, ep, seqs, tokens;
    enum simulate_policy policy;
    double overhead_s;
};

/* setting_open -- requests at one a second. setting_draw -- the i-th; text: room for its lengths.
 * setting_most_per_s -- answers a second of the simulator where requests come four times as fast as that. */
void setting_open(struct config *c, const struct setting *x, int64_t requests);
void setting_draw(int i, struct setting *x, char text[2][64]);
double setting_most_per_s(const struct setting *x, double about_per_s);

#endif
