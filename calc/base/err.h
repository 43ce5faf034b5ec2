/* err -- how every fallible function of ridge reports failure.
 *
 * Functions return an err_code, which is also the exit status of the program; the sentence for the user goes to the
 * caller's struct err. Only main prints it. Results behind out-pointers are untouched on failure. */
#ifndef RIDGE_BASE_ERR_H
#define RIDGE_BASE_ERR_H

enum err_code {
    ERR_OK = 0,        /* answered */
    ERR_NO = 1,        /* the answer is no: nothing fits, not equal, SLO impossible */
    ERR_USAGE = 2,     /* the command line is wrong */
    ERR_INPUT = 3,     /* an input file is wrong */
    ERR_IO = 4,        /* the system refused to read or write */
    ERR_RANGE = 5,     /* a number is outside what can be computed */
    ERR_NOMEM = 6,     /* out of memory */
    ERR_DEVICE = 7,    /* no device, or it failed */
    ERR_SKIP = 77,     /* skipped */
    ERR_HUNG_UP = 129, /* interrupted by the end of its terminal, as shells say of SIGHUP */
    ERR_STOPPED = 130, /* interrupted by a signal, as shells say of one that Ctrl-C ends */
};

struct err {
    enum err_code code;
    char text[768];
    char below[544]; /* two lines to show under it as they stand, or empty: a text and the caret under its fault */
};

/* err_set -- record code and sentence (where, what was found, what was wanted) and return code. e may be NULL. */
enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_prepend -- put context ("file: ") in front of the text once recorded; returns e->code. */
enum err_code err_prepend(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_nomem -- the one sentence for memory exhaustion. */
enum err_code err_nomem(struct err *e);

/* TRY -- relay a failure to the caller. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        enum err_code try_code_ = (call);                                                                              \
        if (try_code_ != ERR_OK) return try_code_;                                                                     \
    } while (0)

#endif
