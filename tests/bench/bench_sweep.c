/* bench_sweep -- how many points a second one core answers: step_eval alone, then with rows and CSV.
 *
 * A point is a batch and a context of a whole model: every operator of every layer kind, both phases, memory and time.
 * Every figure stands beside the least that its work costs, measured in the same run:
 *   instruction  d[i] = a[i]*k over blocks that stay in the first-level cache: 8 bytes read and 8 written a point
 *   column       its doubles copied once through memory
 *   number       snprintf("%.17g"), the C library's one way that always reads back exactly
 * Times are processor time, which others on the machine disturb less than the clock on the wall. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calc/base/arena.h"
#include "calc/base/table.h"
#include "calc/cli/commands.h"
#include "calc/cli/estimate.h"
#include "calc/time/step.h"

/* CHUNK is that of ridge estimate, BLOCK that of a tape; BATCHES divides neither. */
enum { CHUNK = 4096, COLUMN = 1000000, BLOCK = 128, BATCHES = 509, SAMPLE = 997, INPUTS = 4 };

/* The least of ROUNDS counts, of more when one has fewer than POINTS points: noise only ever adds. */
enum { ROUNDS = 3, POINTS = 1000000 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void keep_least(double *least_s, double start_s)
{
    const double s = now_s() - start_s;
    if (!(s >= *least_s)) *least_s = s;
}

/* -- what the work costs at least -- */

struct floors {
    double instruction_ns; /* per point */
    double copy_ns;        /* per double */
    double printf_ns;      /* per number */
};

/* noinline: a loop as the tape's own, whose blocks the compiler knows nothing of */
static __attribute__((noinline)) void scale_block(double *restrict d, const double *restrict a, double k)
{
    for (int i = 0; i < BLOCK; i++) d[i] = a[i] * k;
}

/* memory holds 16 blocks: 16 KiB, half of a small first-level cache */
static double instruction_floor(double *memory)
{
    enum { BLOCKS = 16, TIMES = 200000 };
    double least_s = (double)NAN;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_s();
        for (int i = 0; i < TIMES; i++)
            scale_block(memory + i % BLOCKS * BLOCK, memory + (i + 7) % BLOCKS * BLOCK, 0.97);
        keep_least(&least_s, start);
    }
    return least_s / TIMES / BLOCK * 1e9;
}

static double copy_floor(const double *from, double *to, size_t n)
{
    double least_s = (double)NAN;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_s();
        memcpy(to, from, n * sizeof *to);
        keep_least(&least_s, start);
    }
    return least_s / (double)n * 1e9;
}

static double printf_floor(const double *value, size_t n)
{
    char text[64];
    double least_s = (double)NAN;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_s();
        for (size_t i = 0; i < n; i++) (void)snprintf(text, sizeof text, "%.17g", value[i]);
        keep_least(&least_s, start);
    }
    return least_s / (double)n * 1e9;
}

/* -- step_eval alone -- */

struct columns {
    double *in[INPUTS]; /* B, T, S, M: COLUMN points each */
    double *out[STEP_VALUES_N];
};

static enum err_code open_columns(struct arena *a, struct columns *x, struct err *e)
{
    for (size_t i = 0; i < INPUTS; i++)
        if (!(x->in[i] = arena_array(a, COLUMN, sizeof(double)))) return err_nomem(e);
    for (size_t v = 0; v < STEP_VALUES_N; v++)
        if (!(x->out[v] = arena_array(a, COLUMN, sizeof(double)))) return err_nomem(e);
    return ERR_OK;
}

/* Batches first .. first+width-1 fastest, as a sweep runs; contexts of an odd stride beneath. */
static void fill_columns(struct columns *x, size_t first, size_t width)
{
    for (size_t i = 0; i < COLUMN; i++) {
        x->in[0][i] = (double)(first + i % width);
        x->in[1][i] = x->in[2][i] = (double)(1024 + 17 * (i / width % 7001));
        x->in[3][i] = (double)(100 + i % 89);
    }
}

/* n points in calls of chunk points; apart: every chunk has its own place in the columns, else all use the first.
 * Returns ns per point. */
static double sweep_ns(struct step *s, const struct columns *x, size_t n, size_t chunk, bool apart)
{
    double least_s = (double)NAN;
    const size_t rounds = n < POINTS ? POINTS / n : ROUNDS;
    for (size_t round = 0; round < rounds; round++) {
        const double start = now_s();
        for (size_t at = 0; at < n; at += chunk) {
            const size_t base = apart ? at : 0;
            double *out[STEP_VALUES_N];
            for (size_t v = 0; v < STEP_VALUES_N; v++) out[v] = x->out[v] + base;
            step_eval(s, n - at < chunk ? n - at : chunk, x->in[0] + base, x->in[1] + base, x->in[2] + base,
                      x->in[3] + base, out);
        }
        keep_least(&least_s, start);
    }
    return least_s / (double)n * 1e9;
}

/* -- models on devices -- */

static const struct subject {
    const char *model, *gpu;
} SUBJECTS[] = {{"llama-3.1-8b", "h100-sxm"}, {"llama-3.1-8b", "h200-sxm"}, {"llama-3.1-70b", "h100-sxm:8"},
                {"gemma-3-27b", "h100-sxm"},  {"gpt-oss-120b", "h200-sxm"}, {"deepseek-v3", "h200-sxm:8"}};
enum { SUBJECTS_N = sizeof SUBJECTS / sizeof SUBJECTS[0] };

struct asking {
    struct option_values v;
    struct estimate_request q;
    struct estimate_case c;
};

/* The command line of ridge estimate, read as the program reads it. */
static enum err_code ask(struct arena *a, const struct subject *s, enum step_fidelity f, const char *batch,
                         const char *context, struct asking *k, struct err *e)
{
    const char *const words[] = {
        "estimate", "-m",  s->model,    "-g",    s->gpu,           "--fidelity", step_fidelity_name(f),
        "--batch",  batch, "--context", context, "--ignore-memory"};
    enum { WORDS = sizeof words / sizeof words[0] };
    char *argv[WORDS + 1] = {0};
    for (size_t i = 0; i < WORDS; i++)
        if (!(argv[i] = arena_strndup(a, words[i], strlen(words[i])))) return err_nomem(e);
    TRY(option_parse(a, &command_estimate, WORDS, argv, &k->v, e));
    TRY(estimate_request_parse(a, &k->v, &k->q, e));
    return estimate_case_open(a, &k->q, s->model, s->gpu, &k->c, e);
}

static void print_sweep_heading(const struct floors *least)
{
    (void)printf(
        "  at least, in this run: an instruction %.3f ns a point (16 bytes of first-level cache), a double copied "
        "%.3f ns, a number by \"%%.17g\" %.0f ns\n\n",
        least->instruction_ns, least->copy_ns, least->printf_ns);
    (void)printf("  step_eval, all %d values (bar: 3 Mpt/s). Columns of %d points used again, as ridge estimate does: "
                 "ns a point for 1e4, 1e5, 1e6 points of B 1..%d;\n"
                 "  hi/lo: B 4093..4099 over B 1..7; an instruction's ns, over the least; bytes of tape traffic at "
                 "least. Columns of 1e6 points, %d bytes a point\n"
                 "  through memory: in such chunks, in one call, over copying as many doubles.\n",
                 STEP_VALUES_N, CHUNK, BATCHES, 8 * (INPUTS + STEP_VALUES_N));
    (void)printf("  %-13s %-10s %-8s %4s %6s %6s %6s %6s %6s %6s %5s %6s %7s %6s %5s\n", "model", "device", "fidelity",
                 "tape", "Mpt/s", "1e4", "1e5", "1e6", "hi/lo", "ns/ins", "x", "bytes", "columns", "one", "x");
}

static enum err_code sweep_subject(const struct subject *subject, enum step_fidelity f, struct columns *x,
                                   const struct floors *least, struct err *e)
{
    struct arena *a = arena_open();
    struct asking k;
    const enum err_code code = a ? ask(a, subject, f, "1", "1024", &k, e) : err_nomem(e);
    if (code == ERR_OK) {
        struct step *s = k.c.step;
        const double length = (double)step_length(s);
        fill_columns(x, 1, BATCHES);
        const double small = sweep_ns(s, x, 10000, CHUNK, false), middle = sweep_ns(s, x, 100000, CHUNK, false);
        const double most = sweep_ns(s, x, COLUMN, CHUNK, false);
        const double apart = sweep_ns(s, x, COLUMN, CHUNK, true), one = sweep_ns(s, x, COLUMN, COLUMN, true);
        fill_columns(x, 1, 7);
        const double low = sweep_ns(s, x, 100000, CHUNK, false);
        fill_columns(x, 4093, 7);
        const double high = sweep_ns(s, x, 100000, CHUNK, false);
        (void)printf("  %-13s %-10s %-8s %4.0f %6.2f %6.1f %6.1f %6.1f %6.2f %6.3f %5.2f %6.0f %7.1f %6.1f %5.2f\n",
                     subject->model, subject->gpu, step_fidelity_name(f), length, 1e3 / most, small, middle, most,
                     high / low, most / length, most / length / least->instruction_ns, 16 * length, apart, one,
                     apart / (least->copy_ns * (INPUTS + STEP_VALUES_N)));
        (void)fflush(stdout);
    }
    arena_close(a);
    return code;
}

/* -- with rows and CSV -- */

static enum err_code write_rows(const struct estimate_request *q, const struct estimate_case *c, const struct table *t,
                                struct out *o, double *eval_s, struct err *e)
{
    const size_t points = estimate_points(q);
    TRY(table_begin(t, TABLE_CSV, o, e));
    for (size_t at = 0; at < points; at += CHUNK) {
        const size_t n = points - at < CHUNK ? points - at : CHUNK;
        struct arena *scratch = arena_open();
        const double start = now_s();
        struct estimate_row *rows = scratch ? arena_array(scratch, n, sizeof *rows) : NULL;
        enum err_code code = rows ? estimate_eval(scratch, q, c, at, n, rows, e) : err_nomem(e);
        *eval_s += now_s() - start;
        for (size_t i = 0; i < n && code == ERR_OK; i++) code = table_row(t, TABLE_CSV, &rows[i], at + i == 0, o, e);
        arena_close(scratch);
        TRY(code);
    }
    return table_end(t, TABLE_CSV, o, e);
}

/* Past the field at s and the comma or line end behind it; text gets the field without its quotes. */
static const char *take_field(const char *s, char *text, size_t cap)
{
    size_t n = 0;
    bool quoted = false;
    for (; *s && (quoted || (*s != ',' && *s != '\n')); s++) {
        if (*s == '"')
            quoted = !quoted;
        else if (n + 1 < cap)
            text[n++] = *s;
    }
    text[n] = '\0';
    return *s ? s + 1 : s;
}

/* Whether the text of a number reads back as what the row holds. */
static bool reads_back(const struct column *col, const void *row, const char *text)
{
    const char *at = (const char *)row + col->offset;
    double real;
    int64_t whole;
    char *end;
    if (col->kind == COLUMN_INT) {
        memcpy(&whole, at, sizeof whole);
        if (whole == TABLE_INT_UNKNOWN) return *text == '\0';
        return strtoll(text, &end, 10) == whole && *text && *end == '\0';
    }
    memcpy(&real, at, sizeof real);
    if (!isfinite(real)) return *text == '\0';
    const double back = strtod(text, &end);
    return *text && *end == '\0' && back == real;
}

/* Numbers of rows 0, SAMPLE, 2*SAMPLE, ... read back from the text of all. */
static enum err_code check_rows(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                                const struct table *t, const char *text, size_t *checked, struct err *e)
{
    char field[256];
    struct estimate_row row;
    for (size_t i = 0; i < t->n_columns; i++) text = take_field(text, field, sizeof field);
    for (size_t p = 0; p < estimate_points(q); p++) {
        const bool chosen = p % SAMPLE == 0;
        if (chosen) TRY(estimate_eval(a, q, c, p, 1, &row, e));
        for (size_t i = 0; i < t->n_columns; i++) {
            const struct column *col = &t->columns[i];
            text = take_field(text, field, sizeof field);
            if (!chosen || (col->kind != COLUMN_INT && col->kind != COLUMN_COUNT && col->kind != COLUMN_REAL)) continue;
            if (!reads_back(col, &row, field))
                return err_set(e, ERR_NO, "row %zu: %s does not read back from \"%.40s\"", p, col->key, field);
            (*checked)++;
        }
    }
    return *text == '\0' ? ERR_OK : err_set(e, ERR_NO, "text is left behind the last row");
}

static enum err_code csv_of_subject(struct arena *a, const struct subject *s, enum step_fidelity f,
                                    const struct floors *least, struct err *e)
{
    struct asking k;
    TRY(ask(a, s, f, "1..509", "1024..131072+661", &k, e));
    struct table t = {.stride_bytes = sizeof(struct estimate_row)};
    t.columns = estimate_columns(&t.n_columns);
    const size_t points = estimate_points(&k.q);
    struct out *null, *memory;
    double null_s = (double)NAN, eval_s = (double)NAN, unused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double here_s = 0;
        TRY(out_open(a, "/dev/null", &null, e));
        const double start = now_s();
        TRY(write_rows(&k.q, &k.c, &t, null, &here_s, e));
        TRY(out_commit(null, e));
        keep_least(&null_s, start);
        if (!(here_s >= eval_s)) eval_s = here_s;
    }
    TRY(out_memory(a, &memory, e));
    const double start = now_s();
    TRY(write_rows(&k.q, &k.c, &t, memory, &unused, e));
    const double memory_s = now_s() - start;
    size_t bytes, checked = 0, numbers = 0;
    const char *text = out_text(memory, &bytes);
    if (!text) return err_nomem(e);
    TRY(check_rows(a, &k.q, &k.c, &t, text, &checked, e));
    for (size_t i = 0; i < t.n_columns; i++)
        numbers += t.columns[i].kind == COLUMN_COUNT || t.columns[i].kind == COLUMN_REAL;
    const double row_ns = null_s / (double)points * 1e9, eval_ns = eval_s / (double)points * 1e9;
    (void)printf("  %-13s %-10s %-8s %7zu %3zu %9.0f %9.0f %6.0f %6.0f %6.0f %4zu %6.2f %8zu\n", s->model, s->gpu,
                 step_fidelity_name(f), points, t.n_columns, (double)points / null_s, (double)points / memory_s, row_ns,
                 eval_ns, (double)bytes / (double)points, numbers,
                 (row_ns - eval_ns) / (least->printf_ns * (double)numbers), checked);
    return ERR_OK;
}

static void print_csv_heading(void)
{
    (void)printf(
        "\n  estimate_eval and table_row, every column, to CSV in /dev/null (bar: 100000 rows/s), and to memory: "
        "ns a row, of it evaluation, bytes; reals in it,\n"
        "  the rest of the time over \"%%.17g\" of them alone; numbers of a sample, all of which read back "
        "exactly.\n");
    (void)printf("  %-13s %-10s %-8s %7s %3s %9s %9s %6s %6s %6s %4s %6s %8s\n", "model", "device", "fidelity", "rows",
                 "col", "rows/s", "to memory", "ns/row", "eval", "bytes", "real", "x", "exact");
}

static enum err_code run(struct arena *a, struct err *e)
{
    struct columns x;
    TRY(open_columns(a, &x, e));
    fill_columns(&x, 1, BATCHES);
    for (size_t i = 0; i < COLUMN; i++) x.out[1][i] = x.in[0][i] / 3e3 * sqrt(x.in[1][i]);
    const struct floors least = {.instruction_ns = instruction_floor(x.out[0]),
                                 .copy_ns = copy_floor(x.out[1], x.out[2], COLUMN),
                                 .printf_ns = printf_floor(x.out[1], COLUMN / 10)};
    print_sweep_heading(&least);
    for (size_t i = 0; i < SUBJECTS_N; i++)
        for (enum step_fidelity f = STEP_BOUND; f <= STEP_ROOFLINE; f++)
            TRY(sweep_subject(&SUBJECTS[i], f, &x, &least, e));
    print_csv_heading();
    for (size_t i = 0; i < SUBJECTS_N; i++) {
        struct arena *own = arena_open();
        const enum err_code code = own ? csv_of_subject(own, &SUBJECTS[i], STEP_ROOFLINE, &least, e) : err_nomem(e);
        arena_close(own);
        TRY(code);
    }
    return ERR_OK;
}

int main(void)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    const enum err_code code = a ? run(a, &e) : err_nomem(&e);
    if (code != ERR_OK) (void)fprintf(stderr, "bench_sweep: %s\n", e.text);
    arena_close(a);
    return (int)code;
}
