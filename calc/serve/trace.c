/* trace -- requests read from traces, as several publishers write them; of workload.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"
#include "calc/serve/trace_parts.h"

enum { CELLS_MAX = 32, CELL_BYTES_MAX = 64 };

#define FILE_BYTES_MAX (INT64_C(1) << 30)

static const struct form FORMS[] = {
    {{"arrival_s", "prompt_tokens", "output_tokens", "cached_prefix_tokens_infinite_cache", NULL}, false, false},
    {{"TIMESTAMP", "ContextTokens", "GeneratedTokens", NULL, NULL}, true, false},
    {{"Timestamp", "Request tokens", "Response tokens", NULL, "Total tokens"}, false, true},
};

/* The next line, without its end. */
bool trace_line(struct reader *r, struct piece *out)
{
    if (r->at >= r->end) return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *stop = nl ? nl : r->end;
    *out = (struct piece){r->at, (size_t)(stop - r->at)};
    if (out->n > 0 && out->s[out->n - 1] == '\r') out->n--;
    r->at = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

enum err_code trace_tell(const struct reader *r)
{
    enum { OFTEN = 4096 }; /* lines; not a unit */
    const struct watch *w = r->watch;
    if (!w->go_on || r->line % OFTEN != 0) return ERR_OK;
    if (w->go_on(w->closure, (size_t)(r->at - r->text), (size_t)(r->end - r->text))) return ERR_OK;
    return err_set(r->err, ERR_STOPPED, "%s: interrupted while it was read, at line %zu", r->name, r->line);
}

static bool blank(const struct piece *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->s[i] != ' ' && p->s[i] != '\t') return false;
    return true;
}

/* Behind a quoted cell that begins here, its closing quote too; where it does not close before a comma or the end,
 * here: it is taken as it stands. RFC 4180, section 2, but for line breaks within quotes. */
static size_t quoted_end(const struct piece *line, size_t from)
{
    size_t i = from + 1;
    if (from >= line->n || line->s[from] != '"') return from;
    for (; i < line->n; i++) {
        if (line->s[i] != '"') continue;
        if (i + 1 == line->n || line->s[i + 1] == ',') return i + 1;
        if (line->s[i + 1] != '"') return from;
        i++; /* a quote of the text, doubled */
    }
    return from;
}

static size_t split(const struct piece *line, struct piece cell[CELLS_MAX])
{
    size_t n = 0, from = 0;
    while (n < CELLS_MAX) {
        size_t to = quoted_end(line, from);
        if (to > from) {
            cell[n++] = (struct piece){line->s + from + 1, to - from - 2};
        } else {
            while (to < line->n && line->s[to] != ',') to++;
            cell[n++] = (struct piece){line->s + from, to - from};
        }
        if (to >= line->n) break;
        from = to + 1;
    }
    return n;
}

enum err_code trace_refuse(struct reader *r, const char *what, const struct piece *p)
{
    char clean[80];
    return err_set(r->err, ERR_INPUT, "%s:%zu: %s%s%s%s", r->name, r->line, what, p ? ", not '" : "",
                   p ? text_clean(clean, sizeof clean, p->s, p->n) : "", p ? "'" : "");
}

/* A whole cell as a finite number. */
static bool number(const struct piece *p, double *out)
{
    char text[CELL_BYTES_MAX], *end;
    if (p->n == 0 || p->n >= sizeof text || memchr(p->s, '\0', p->n)) return false;
    memcpy(text, p->s, p->n);
    text[p->n] = '\0';
    if (text[strspn(text, "+-.0123456789eE")] != '\0') return false; /* no hexadecimal, no words */
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool digits(const char *s, int n, int64_t *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *out = *out * 10 + (s[i] - '0');
    }
    return true;
}

/* Days from 0000-03-01, by the Gregorian calendar. */
static int64_t days(int64_t y, int64_t m, int64_t d)
{
    if (m <= 2) {
        y--;
        m += 12;
    }
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * (m - 3) + 2) / 5 + d - 1;
}

/* "2023-11-16 18:17:03.9799600", at most with "+00:00" behind, as seconds from the first day of the file. */
static bool dated(struct reader *r, const struct piece *p, double *out)
{
    static const char FORM[] = "dddd-dd-dd dd:dd:dd";
    int64_t y, m, d, h, min, s;
    struct piece rest = {p->s + 17, p->n < 17 ? 0 : p->n - 17};
    if (p->n < sizeof FORM - 1) return false;
    for (size_t i = 0; i < sizeof FORM - 1; i++) {
        const char c = p->s[i];
        if (FORM[i] == 'd' ? c < '0' || c > '9' : c != FORM[i] && !(FORM[i] == ' ' && c == 'T')) return false;
    }
    if (!digits(p->s, 4, &y) || !digits(p->s + 5, 2, &m) || !digits(p->s + 8, 2, &d) || !digits(p->s + 11, 2, &h) ||
        !digits(p->s + 14, 2, &min) || !digits(p->s + 17, 2, &s))
        return false;
    static const int64_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    if (m < 1 || m > 12 || d < 1 || d > DAYS[m - 1] + (m == 2 && leap) || h > 23 || min > 59 || s > 60) return false;
    if (rest.n > 6 && memcmp(rest.s + rest.n - 6, "+00:00", 6) == 0) rest.n -= 6;
    if (rest.n > 0 && rest.s[rest.n - 1] == 'Z') rest.n--;
    double seconds;
    if (memchr(rest.s, '+', rest.n) || memchr(rest.s, 'e', rest.n) || memchr(rest.s, 'E', rest.n) ||
        !number(&rest, &seconds))
        return false;
    const int64_t day = days(y, m, d);
    if (r->first_day < 0) r->first_day = day;
    *out = (double)((day - r->first_day) * 24 + h) * 3600 + (double)(min * 60) + seconds; /* not a unit */
    return true;
}

enum err_code trace_add(struct reader *r, const struct workload_request *q)
{
    if (r->n == WORKLOAD_REQUESTS_MAX)
        return err_set(r->err, ERR_INPUT, "%s: more than %d requests", r->name, WORKLOAD_REQUESTS_MAX);
    if (r->n == r->room) {
        const size_t room = r->room ? r->room * 2 : 256; /* not a unit */
        struct workload_request *more = realloc(r->row, room * sizeof *more);
        if (!more) return err_nomem(r->err);
        r->row = more;
        r->room = room;
    }
    if (r->n > 0 && q->arrival_s < r->row[r->n - 1].arrival_s) r->late++;
    r->row[r->n++] = *q;
    return ERR_OK;
}

/* A number of tokens from `least` on. */
static enum err_code tokens(struct reader *r, const struct piece *p, const char *name, int least, int32_t *out)
{
    double v;
    char wanted[160];
    if (number(p, &v) && v >= least && v <= WORKLOAD_TOKENS_MAX && floor(v) >= v) {
        *out = (int32_t)v;
        return ERR_OK;
    }
    (void)snprintf(wanted, sizeof wanted, "%s: wanted a whole number of tokens from %d to %d", name, least,
                   WORKLOAD_TOKENS_MAX);
    return trace_refuse(r, wanted, p);
}

static enum err_code read_row(struct reader *r, const struct piece *cell, size_t n)
{
    const struct form *f = r->form;
    struct workload_request q = {.next = WORKLOAD_NO_NEXT};
    if (n > r->cells_n) return trace_refuse(r, "the line has more cells than the header", NULL);
    for (size_t k = 0; k < CELLS_N; k++)
        if (r->column[k] >= 0 && (size_t)r->column[k] >= n) return trace_refuse(r, "the line is short of cells", NULL);
    const struct piece *when = &cell[r->column[ARRIVAL]];
    if (f->dated) {
        if (!dated(r, when, &q.arrival_s)) return trace_refuse(r, "wanted a time such as 2023-11-16 18:17:03.97", when);
    } else if (!number(when, &q.arrival_s) || q.arrival_s < 0 || q.arrival_s > 1e12) { /* not a unit */
        return trace_refuse(r, "wanted a time in seconds from 0 on", when);
    }
    TRY(tokens(r, &cell[r->column[PROMPT]], f->column[PROMPT], f->failures ? 0 : 1, &q.prompt_tokens));
    TRY(tokens(r, &cell[r->column[OUTPUT]], f->column[OUTPUT], f->failures ? 0 : 1, &q.output_tokens));
    if (r->column[CACHED] >= 0) TRY(tokens(r, &cell[r->column[CACHED]], f->column[CACHED], 0, &q.cached_tokens));
    if (r->column[TOTAL] >= 0) {
        int32_t total;
        TRY(tokens(r, &cell[r->column[TOTAL]], f->column[TOTAL], 0, &total));
        const bool odd = total != q.prompt_tokens + q.output_tokens;
        if (odd && r->odd++ == 0) r->odd_line = r->line;
    }
    if (q.prompt_tokens == 0 || q.output_tokens == 0) {
        r->failed++;
        return ERR_OK;
    }
    return trace_add(r, &q);
}

static bool same(const struct piece *p, const char *name)
{
    return strlen(name) == p->n && memcmp(p->s, name, p->n) == 0;
}

/* Which form has all of its columns in the header. */
static bool find_form(struct reader *r, const struct piece *cell, size_t n)
{
    for (size_t f = 0; f < sizeof FORMS / sizeof FORMS[0]; f++) {
        int found = 0, wanted = 0;
        for (size_t k = 0; k < CELLS_N; k++) {
            r->column[k] = -1;
            for (size_t i = 0; FORMS[f].column[k] && i < n; i++)
                if (same(&cell[i], FORMS[f].column[k])) r->column[k] = (int)i;
            wanted += k <= OUTPUT;
            found += k <= OUTPUT && r->column[k] >= 0;
        }
        r->form = &FORMS[f];
        if (found == wanted) return true;
    }
    return false;
}

static enum err_code read_csv(struct reader *r, const struct piece *header)
{
    struct piece cell[CELLS_MAX], line;
    if (!find_form(r, cell, split(header, cell)))
        return trace_refuse(r,
                            "wanted a header arrival_s,prompt_tokens,output_tokens, one of Azure 2023 or BurstGPT, or "
                            "Mooncake's JSON lines",
                            header);
    for (size_t k = 0; k < CELLS_N; k++)
        for (size_t i = 0; r->column[k] >= 0 && i < (size_t)r->column[k]; i++)
            if (same(&cell[i], r->form->column[k])) return trace_refuse(r, "a column twice", &cell[i]);
    r->cells_n = split(header, cell);
    while (trace_line(r, &line)) {
        if (blank(&line)) {
            while (trace_line(r, &line))
                if (!blank(&line)) return trace_refuse(r, "an empty line before it", &line);
            break;
        }
        TRY(read_row(r, cell, split(&line, cell)));
        TRY(trace_tell(r));
    }
    return ERR_OK;
}

/* A sentence more. */
__attribute__((format(printf, 3, 4))) static enum err_code note(struct reader *r, const char **text, const char *fmt,
                                                                ...)
{
    char more[240];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(more, sizeof more, fmt, ap);
    va_end(ap);
    *text = arena_printf(r->arena, "%s%s%s", *text ? *text : "", *text ? "; " : "", more);
    return *text ? ERR_OK : err_nomem(r->err);
}

/* What the reader did that is not as the file has it; NULL: nothing. */
static enum err_code note_of(struct reader *r, size_t apart, const char **out)
{
    *out = NULL;
    if (r->failed > 0) TRY(note(r, out, "left out %zu request%s without tokens", r->failed, r->failed == 1 ? "" : "s"));
    if (r->odd > 0)
        TRY(note(r, out, "Total tokens of %zu row%s (the first: line %zu) are not request and response: not read",
                 r->odd, r->odd == 1 ? "" : "s", r->odd_line));
    if (r->late > 0) TRY(note(r, out, "%zu row%s stood before earlier ones: sorted", r->late, r->late == 1 ? "" : "s"));
    if (apart > 0)
        TRY(note(r, out,
                 "hash_ids: %zu block%s that the trace names elsewhere too come%s behind another beginning; a prefix "
                 "cache finds a block where all before it is the same, so there it is another one",
                 apart, apart == 1 ? "" : "s", apart == 1 ? "s" : ""));
    return ERR_OK;
}

/* ---- the whole ---- */

static int by_arrival(const void *x, const void *y)
{
    const struct workload_request *p = x, *q = y;
    if (p->arrival_s < q->arrival_s || p->arrival_s > q->arrival_s) return p->arrival_s < q->arrival_s ? -1 : 1;
    return p->stream < q->stream ? -1 : p->stream > q->stream;
}

static enum err_code finish(struct reader *r, struct workload *out)
{
    if (r->n == 0) return err_set(r->err, ERR_INPUT, "%s: no requests in it", r->name);
    struct workload w = {
        .n = r->n, .first_n = r->n, .samples = 1, .open = true, .timed = true, .hash_tokens = TRACE_HASH_TOKENS};
    w.request = arena_array(r->arena, r->n, sizeof *w.request);
    uint32_t *hash = arena_array(r->arena, r->hash_n + 1, sizeof *hash);
    if (!w.request || !hash) return err_nomem(r->err);
    memcpy(w.request, r->row, r->n * sizeof *w.request);
    size_t apart;
    TRY(trace_chain(r, hash, &apart));
    w.hash = hash;
    for (size_t i = 0; i < w.n; i++) w.request[i].stream = (uint32_t)i;
    if (r->late > 0) qsort(w.request, w.n, sizeof *w.request, by_arrival);
    const double first_s = w.request[0].arrival_s;
    for (size_t i = 0; i < w.n; i++) {
        w.request[i].arrival_s -= first_s;
        w.request[i].stream = 0; /* nobody says the same */
    }
    w.span_s = w.request[w.n - 1].arrival_s;
    TRY(note_of(r, apart, &w.note));
    *out = w;
    return ERR_OK;
}

static enum err_code read_text(struct arena *a, const char *name, const char *text, size_t len,
                               const struct watch *watch, struct workload *out, struct err *e)
{
    char clean[200];
    struct err own;
    struct reader r = {.arena = a,
                       .name = text_clean(clean, sizeof clean, name, strlen(name)),
                       .at = text,
                       .end = text + len,
                       .first_day = -1,
                       .watch = watch,
                       .text = text,
                       .err = e ? e : &own};
    struct piece line;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at += 3;
    enum err_code code = ERR_OK;
    if (!trace_line(&r, &line) || (blank(&line) && r.at == r.end))
        code = err_set(r.err, ERR_INPUT, "%s: the file is empty", r.name);
    else
        code = line.n > 0 && line.s[0] == '{' ? trace_json(&r, line) : read_csv(&r, &line);
    if (code == ERR_OK) code = finish(&r, out);
    free(r.row);
    free(r.hash);
    return code;
}

enum err_code workload_read_text(struct arena *a, const char *name, const char *text, size_t len, struct workload *out,
                                 struct err *e)
{
    return read_text(a, name, text, len, &(struct watch){NULL, NULL}, out, e);
}

static enum err_code read_fd(struct arena *a, int fd, const char *path, const struct watch *watch, struct workload *out,
                             struct err *e)
{
    char clean[200];
    struct stat st;
    (void)text_clean(clean, sizeof clean, path, strlen(path));
    if (fstat(fd, &st) != 0) return err_set(e, ERR_IO, "%s: cannot read: %s", clean, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_IO,
                       "%s: no regular file: a trace is read at once, so write it to one first (CMD > trace.csv)",
                       clean);
    if (st.st_size > FILE_BYTES_MAX)
        return err_set(e, ERR_INPUT, "%s: %.1f GiB, and traces of more than 1 GiB are not read: cut it into parts",
                       clean, (double)st.st_size / (double)FILE_BYTES_MAX);
    const size_t size = (size_t)st.st_size;
    char *text = malloc(size + 1);
    if (!text) return err_nomem(e);
    size_t n = 0;
    for (ssize_t k; n < size; n += (size_t)k) {
        k = read(fd, text + n, size - n);
        if (k < 0 && errno == EINTR)
            k = 0;
        else if (k <= 0)
            break;
    }
    const enum err_code code = read_text(a, path, text, n, watch, out, e);
    free(text);
    return code;
}

enum err_code workload_read(struct arena *a, const char *path, struct workload *out, struct err *e)
{
    return workload_read_watched(a, path, NULL, NULL, out, e);
}

enum err_code workload_read_watched(struct arena *a, const char *path,
                                    bool (*go_on)(void *closure, size_t done, size_t all), void *closure,
                                    struct workload *out, struct err *e)
{
    const struct watch watch = {go_on, closure};
    char clean[200];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a fifo must not hang before fstat */
    if (fd < 0 && strcmp(path, "-") == 0)
        return err_set(e, ERR_IO, "-: a trace is a file, read at once: write it to one first (CMD > trace.csv)");
    if (fd < 0)
        return err_set(e, ERR_IO, "%s: cannot read: %s", text_clean(clean, sizeof clean, path, strlen(path)),
                       strerror(errno));
    const enum err_code code = read_fd(a, fd, path, &watch, out, e);
    (void)close(fd);
    return code;
}
