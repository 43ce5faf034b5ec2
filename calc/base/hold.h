/* hold -- signals that end a program (SIGINT, SIGTERM, SIGHUP, SIGQUIT) held back while there is something to finish or
 * to clear away; they take effect when released. */
#ifndef RIDGE_BASE_HOLD_H
#define RIDGE_BASE_HOLD_H

#include <signal.h>
#include <stdbool.h>

/* hold_is_ignored -- whether the caller ignores it, as under nohup: one that is held would be found pending all the
 * same.
 */
bool hold_is_ignored(int signal);

/* hold_begin -- hold those that are not ignored; *before is the mask of the caller, for the others. Not to be nested
 * with another mask. */
void hold_begin(sigset_t *before);

/* hold_pending -- whether one has arrived that the caller had not blocked itself. */
bool hold_pending(const sigset_t *before);

/* hold_end -- back to the caller's mask: one that arrived ends the program here. */
void hold_end(const sigset_t *before);

#endif
