/* draws -- how many of its random draws a test makes: all; a quarter under the sanitizers, where each takes four times
 * as long and goes through the same code as the one before it. Both are run before a change lands, so every draw is
 * made there. RIDGE_DRAWS=all, =part: whichever it is built with. */
#ifndef RIDGE_TESTS_DRAWS_H
#define RIDGE_TESTS_DRAWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* gcc says so by a macro, clang by a feature. */
#if defined __SANITIZE_ADDRESS__
#define DRAWS_IN_PART true
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define DRAWS_IN_PART true
#endif
#endif
#ifndef DRAWS_IN_PART
#define DRAWS_IN_PART false
#endif

/* draws -- of `all`, those to be made: the first quarter of them, rounded up, or all. */
static inline size_t draws(size_t all)
{
    const char *asked = getenv("RIDGE_DRAWS");
    const bool part = asked ? strcmp(asked, "part") == 0 : DRAWS_IN_PART;
    return part ? (all + 3) / 4 : all;
}

#endif
