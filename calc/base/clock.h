/* clock -- how long things take. */
#ifndef RIDGE_BASE_CLOCK_H
#define RIDGE_BASE_CLOCK_H

/* clock_now_s -- seconds since some moment, which no setting of the time of day moves. */
double clock_now_s(void);

#endif
