/* measured_notes -- what `ridge fit` and `validate` say of the rows that they were given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/cli/store_rows.h"

/* -- what is said of it -- */

/* What a fit for a quiet core should reach, of rows that it has not seen. */
#define MEDIAN_FRAC 0.06
#define MOST_FRAC 0.2

static const char *say_class(struct arena *a, const struct fit_class *c)
{
    if (isnan(c->held_out_median_frac))
        return arena_printf(a, "%s: fitted to %zu rows of %zu shape families, too few to leave any out.", c->name,
                            c->rows_n, c->families_n);
    const bool good = c->held_out_median_frac <= MEDIAN_FRAC && c->held_out_most_frac <= MOST_FRAC;
    return arena_printf(a, "%s: rows left out are foretold within %.1f %% in the median, %.1f %% at most%s.", c->name,
                        100 * c->held_out_median_frac, 100 * c->held_out_most_frac,
                        good ? "" : " (wanted 6 % and 20 %: too few rows, or the machine was too noisy)");
}

static int by_class(const void *x, const void *y)
{
    const struct row *const *a = x, *const *b = y;
    return strcmp((*a)->class_name, (*b)->class_name);
}

static bool is_fitted(const struct fit_class *classes, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(classes[i].name, name) != 0) i++;
    return i < n;
}

/* "12 rows of 2 shapes". */
static const char *say_rows(struct arena *a, const char *class_name, size_t rows, size_t shapes, size_t wanted)
{
    const char *of = shapes == rows ? "" : shapes == 1 ? " of one shape" : arena_printf(a, " of %zu shapes", shapes);
    return of ? arena_printf(a, "%s: %zu row%s%s, a fit wants %zu shapes.", class_name, rows, rows == 1 ? "" : "s", of,
                             wanted)
              : NULL;
}

/* Classes with rows but without parameters, each once. */
static enum err_code say_missing(struct arena *a, const struct measured *m, const struct fit_class *classes, size_t n,
                                 const char **notes, size_t *notes_n, size_t most, struct err *e)
{
    const struct row **sorted = arena_array(a, m->rows.n + 1, sizeof *sorted);
    if (!sorted) return err_nomem(e);
    for (size_t i = 0; i < m->rows.n; i++) sorted[i] = &m->rows.v[i];
    qsort(sorted, m->rows.n, sizeof *sorted, by_class);
    for (size_t from = 0, to; from < m->rows.n && *notes_n < most; from = to) {
        const char *name = sorted[from]->class_name;
        const size_t wanted = fit_shapes_min(&sorted[from]->kernel);
        size_t calm = from, shapes;
        for (to = from; to < m->rows.n && strcmp(sorted[to]->class_name, name) == 0; to++)
            if (!sorted[to]->uncalibrated) sorted[calm++] = sorted[to];
        if (is_fitted(classes, n, name)) continue;
        TRY(fit_count_shapes(a, sorted + from, calm - from, &shapes, e));
        if (!(notes[(*notes_n)++] = say_rows(a, name, calm - from, shapes, wanted))) return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code measured_notes(struct arena *a, const struct measured *m, const struct fit_class *classes, size_t n,
                             const char ***out, size_t *out_n, struct err *e)
{
    enum { MISSING_MAX = 16 };
    const char **notes = arena_array(a, n + MISSING_MAX + 16, sizeof *notes);
    size_t k = 0;
    if (!notes) return err_nomem(e);
    if (m->said && !(notes[k++] = arena_printf(a, "%s.", m->said))) return err_nomem(e);
    const struct store_left_out *left = &m->left_out;
    TRY(rows_others(a, &m->rows, &notes[k], e)); /* of the store alone none is */
    k += notes[k] != NULL;
    if (left->of_no_kind &&
        !(notes[k++] = arena_printf(a, "%zu result%s of the store %s columns of no kind of rows.", left->of_no_kind,
                                    left->of_no_kind == 1 ? "" : "s", left->of_no_kind == 1 ? "has" : "have")))
        return err_nomem(e);
    if (left->impossible &&
        !(notes[k++] = arena_printf(a, "%zu imported row%s less than half of what bounds %s, and %s left out.",
                                    left->impossible, left->impossible == 1 ? " takes" : "s take",
                                    left->impossible == 1 ? "it" : "them", left->impossible == 1 ? "is" : "are")))
        return err_nomem(e);
    if (left->samples &&
        !(notes[k++] = arena_printf(a, "%zu samples; %zu more were disturbed by other programs and are discarded.",
                                    left->samples, left->discards)))
        return err_nomem(e);
    size_t uncalibrated = 0;
    for (size_t i = 0; i < m->rows.n; i++) uncalibrated += m->rows.v[i].uncalibrated;
    if (uncalibrated &&
        !(notes[k++] = arena_printf(
              a,
              "%zu result%s of a machine too noisy: its ceilings around %s could not be measured, "
              "memory, or the peak, was 15 %% slower than it often is, or the same call was faster at another "
              "time. "
              "No fit has %s, and errors of classes do not count %s.",
              uncalibrated, uncalibrated == 1 ? " is" : "s are", uncalibrated == 1 ? "it" : "them",
              uncalibrated == 1 ? "it" : "them", uncalibrated == 1 ? "it" : "them")))
        return err_nomem(e);
    if (left->second && !left->own &&
        !(notes[k++] = arena_printf(a,
                                    "%zu imported row%s of calls that others are too which came first where %s from, "
                                    "and %s not count%s.",
                                    left->second, left->second == 1 ? " is" : "s are",
                                    left->second == 1 ? "it comes" : "they come", left->second == 1 ? "does" : "do",
                                    m->imported ? "" : " (--imported: before those)")))
        return err_nomem(e);
    if (left->second && left->own &&
        !(notes[k++] =
              arena_printf(a, "%zu %s of calls that %s too, and %s not count%s.", left->second,
                           m->imported         ? left->second == 1 ? "own result is" : "own results are"
                           : left->second == 1 ? "imported row is"
                                               : "imported rows are",
                           m->imported ? "were imported" : "were measured here", left->second == 1 ? "does" : "do",
                           m->imported ? "" : " (--imported: before those)")))
        return err_nomem(e);
    for (size_t i = 0; i < n && classes[i].like.host; i++)
        if (!(notes[k++] = say_class(a, &classes[i]))) return err_nomem(e);
    const size_t before = k;
    if (m->from || m->probed) TRY(say_missing(a, m, classes, n, notes, &k, k + MISSING_MAX, e));
    if (k > before + 1 && n && !m->picked) { /* what a store holds from other runs, and nobody asked for */
        const size_t others = k - before;
        notes[before] =
            arena_printf(a, "%zu other classes have fewer shapes than a fit wants: --kind KIND names them.", others);
        k = before + 1;
        if (!notes[before]) return err_nomem(e);
    }
    *out = notes;
    *out_n = k;
    return ERR_OK;
}
