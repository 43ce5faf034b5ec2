#include <string.h>

#include "calc/base/text.h"
#include "calc/sym/print_piece.h"

/* A place where a line may end: the text up to end stays, the next line begins at next. */
struct gap {
    size_t end, next;
    size_t cost; /* of ending there: parentheses around it, sums before products */
};

/* the gap before or after the character at i, if there is one; at least one character is left of it */
static bool gap_at(const char *s, size_t n, size_t i, size_t depth, struct gap *out)
{
    if (i == 0 || i + 1 >= n) return false;
    if (s[i] == ' ' && s[i - 1] == ',') {
        *out = (struct gap){i, i + 1, 2 * depth};
        return true;
    }
    if (s[i] == ' ' && i + 2 < n && (s[i + 1] == '+' || s[i + 1] == '-') && s[i + 2] == ' ') {
        *out = (struct gap){i, i + 1, 2 * depth};
        return true;
    }
    if (s[i] == '*' || s[i] == '/') {
        *out = (struct gap){i, i, 2 * depth + 1};
        return true;
    }
    return false;
}

/* where the line that begins at from ends, width columns at most unless a token is wider; *depth is that of its begin
 * and becomes that of the next line's */
static struct gap line_end(const char *s, size_t n, size_t from, size_t width, size_t *depth)
{
    struct gap best = {n, n, 0}, last = best, g;
    bool any = false, good = false;
    size_t level = *depth, best_level = level, last_level = level, column = 0;
    for (size_t i = from; i < n;) {
        if (i > from && gap_at(s, n, i, level, &g)) {
            if (column > width && any) break;
            if (!good ? 2 * column >= width : g.cost <= best.cost) {
                good = true;
                best = g;
                best_level = level;
            }
            any = true;
            last = g;
            last_level = level;
            if (column > width) break; /* the first gap after a token wider than the line */
        }
        const size_t k = text_utf8_len(s + i, n - i, NULL);
        column += text_width(s + i, k ? k : 1);
        if (column > width && any) break;
        if (s[i] == '(') level++;
        if (s[i] == ')' && level > 0) level--;
        i += k ? k : 1;
        if (i == n && column <= width) return (struct gap){n, n, 0};
    }
    *depth = good ? best_level : last_level;
    return good ? best : last;
}

size_t sym_print_wrapped(const struct sym *e, size_t width, size_t indent, char *buf, size_t cap)
{
    struct print_sink s = {buf, cap, 0, 0};
    struct arena *scratch = arena_open();
    size_t n = sym_print(e, NULL, 0), depth = 0;
    if (n > SYM_WRAP_MAX) n = SYM_WRAP_MAX;
    char *text = scratch ? arena_alloc(scratch, n + 1) : NULL;
    if (text) (void)sym_print(e, text, n + 1);
    if (width == 0) width = 1;
    if (indent > width / 2) indent = width / 2;
    for (size_t at = 0; text && at < n;) {
        const struct gap g = line_end(text, n, at, at ? width - indent : width, &depth);
        if (at) {
            (void)print_put(&s, "\n", 1);
            for (size_t i = 0; i < indent; i++) (void)print_put(&s, " ", 1);
        }
        (void)print_put(&s, text + at, g.end - at);
        at = g.next;
    }
    if (cap) buf[s.used] = '\0';
    arena_close(scratch);
    return s.total;
}
