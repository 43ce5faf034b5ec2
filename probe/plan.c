#include "probe/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "probe/plan_sweep.h"

const struct wire_kernel *plan_kernel(const struct wire_device *d, const char *name)
{
    for (size_t i = 0; i < d->kernels_n; i++)
        if (strcmp(d->kernels[i].name, name) == 0) return &d->kernels[i];
    return NULL;
}

static bool wanted(const char *list, const char *word) { return !list || wire_list_has(list, word); }

/* -- the words of a request -- */

static enum err_code unknown(const char *what, const char *word, size_t len, const void *first, size_t stride, size_t n,
                             struct err *e)
{
    char near[200], clean[64], whole[64];
    (void)text_clean(clean, sizeof clean, word, len);
    (void)snprintf(whole, sizeof whole, "%.*s", (int)(len < 60 ? len : 60), word);
    return err_set(e, ERR_USAGE, "no %s \"%s\"%s (ridge probe list)", what, clean,
                   text_suggest(near, sizeof near, whole, first, stride, n));
}

enum err_code plan_check_kernels(const struct wire_device *d, const char *list, struct err *e)
{
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, ",");
        bool found = false;
        for (size_t i = 0; i < d->kernels_n; i++)
            found = found || (strlen(d->kernels[i].name) == n && strncmp(d->kernels[i].name, p, n) == 0);
        if (!found) return unknown("kernel", p, n, &d->kernels[0].name, sizeof d->kernels[0], d->kernels_n, e);
        p += n + (p[n] == ',');
    }
    return ERR_OK;
}

/* Every word names a variant, or a format, of a kernel that is wanted. */
static enum err_code check_words(const struct wire_device *d, const struct plan_request *r, const char *what,
                                 const char *list, bool formats, struct err *e)
{
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, ",");
        char word[64];
        bool found = false;
        (void)snprintf(word, sizeof word, "%.*s", (int)(n < 60 ? n : 60), p);
        for (size_t i = 0; i < d->kernels_n; i++)
            for (size_t j = 0; wanted(r->kernels, d->kernels[i].name) && j < d->kernels[i].variants_n; j++) {
                const struct wire_variant *v = &d->kernels[i].variants[j];
                found = found || (formats ? wire_list_has(v->dtypes, word) : strcmp(v->name, word) == 0);
            }
        if (!found && r->kernels) {
            char clean[64], of[100];
            return err_set(e, ERR_USAGE, "no %s \"%s\" of %s (ridge probe list)", what,
                           text_clean(clean, sizeof clean, p, n),
                           text_clean(of, sizeof of, r->kernels, strlen(r->kernels)));
        }
        if (!found) return unknown(what, p, n, NULL, 0, 0, e);
        p += n + (p[n] == ',');
    }
    return ERR_OK;
}

/* -- jobs -- */

struct maker {
    struct arena *a;
    const struct wire_device *device;
    const struct plan_request *r;
    struct plan *plan;
    size_t room;
    bool quick; /* what the next jobs are of */
    double part;
    const char *out_of_bounds; /* of the first point that is, and of what; NULL: none */
    const char *none;          /* kernels without any code that runs, joined by ',', and what they lack */
    const char *none_lacks;
    struct err *e;
};

static enum err_code leave_out_as(struct maker *m, const char *sentence)
{
    if (!sentence) return err_nomem(m->e);
    for (size_t i = 0; i < m->plan->left_out_n; i++)
        if (strcmp(m->plan->left_out[i], sentence) == 0) return ERR_OK;
    if (m->plan->left_out_n == WIRE_LIST_MAX) return ERR_OK;
    if (!m->plan->left_out) m->plan->left_out = arena_array(m->a, WIRE_LIST_MAX, sizeof *m->plan->left_out);
    if (!m->plan->left_out) return err_nomem(m->e);
    m->plan->left_out[m->plan->left_out_n++] = sentence;
    return ERR_OK;
}

static enum err_code leave_out(struct maker *m, const char *what, const char *variant, const char *why)
{
    return leave_out_as(m, arena_printf(m->a, "%s%s%s is left out: %s", what, *variant ? " " : "", variant, why));
}

static enum err_code add(struct maker *m, const struct plan_job *job)
{
    struct plan *p = m->plan;
    if (p->n == PLAN_JOBS_MAX) return err_set(m->e, ERR_RANGE, "more than %d measurements", PLAN_JOBS_MAX);
    if (p->n == m->room) {
        m->room = m->room ? 2 * m->room : 64;
        struct plan_job *grown = arena_array(m->a, m->room, sizeof *grown);
        if (!grown) return err_nomem(m->e);
        if (p->n) memcpy(grown, p->jobs, p->n * sizeof *grown);
        p->jobs = grown;
    }
    p->jobs[p->n] = *job;
    p->jobs[p->n].quick = m->quick;
    p->jobs[p->n].part = m->part + (job->variant->library ? 1 : 0);
    p->jobs[p->n].nth = p->n;
    p->n++;
    return ERR_OK;
}

/* A kernel none of whose code can run is said by name alone, with all others that lack the same. */
static enum err_code leave_out_whole(struct maker *m, const struct wire_kernel *k, const char *lacks)
{
    const bool more = *m->none;
    if (wire_list_has(m->none, k->name)) return ERR_OK;
    if (more && strcmp(lacks, m->none_lacks) != 0) return leave_out(m, k->name, "", lacks);
    m->none = arena_printf(m->a, "%s%s%s", m->none, more ? "," : "", k->name);
    m->none_lacks = lacks;
    return m->none ? ERR_OK : err_nomem(m->e);
}

/* "rope,sample" as "rope, sample". NULL: no memory. */
static const char *spaced(struct arena *a, const char *list)
{
    const char *text = "";
    for (const char *p = list; *p && text; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
        text = arena_printf(a, "%s%s%.*s", text, *text ? ", " : "", (int)strcspn(p, ","), p);
    return text;
}

/* The variants of one point. */
static enum err_code add_point(struct maker *m, const struct wire_kernel *k, const struct wire_shape *shape,
                               const char *dtype)
{
    const struct plan_request *r = m->r;
    bool own = false;
    const size_t before = m->plan->n;
    const char *lacks = NULL;
    if (!wanted(r->dtypes, dtype)) return ERR_OK;
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct wire_variant *v = &k->variants[i];
        if (!wire_list_has(v->dtypes, dtype) || !wanted(r->variants, v->name)) continue;
        const bool named = r->variants != NULL;
        if (*v->lacks) {
            if (!lacks && !v->library) lacks = v->lacks;
            if (named || r->all || v->library) TRY(leave_out(m, k->name, v->name, v->lacks));
            continue;
        }
        if (!named && !r->all && !v->library && own) continue;
        own = own || !v->library;
        TRY(add(m, &(struct plan_job){.kernel = k, .variant = v, .dtype = dtype, .shape = *shape}));
    }
    const bool silent = m->plan->n == before && lacks && !r->variants && !r->all;
    return silent ? leave_out_whole(m, k, lacks) : ERR_OK;
}

/* *fits: every parameter is within its bounds; one that is not is said. */
static enum err_code check_bounds(struct maker *m, const struct wire_kernel *k, const struct wire_shape *shape,
                                  const char *dtype, bool *fits)
{
    *fits = true;
    for (size_t i = 0; i < k->args_n && *fits; i++) {
        const struct wire_arg *arg = &k->args[i];
        const int64_t v = shape->arg[i].value;
        char why[160];
        *fits = v >= arg->lo && v <= arg->hi;
        if (*fits) continue;
        (void)snprintf(why, sizeof why, "%.40s=%lld is not within %lld to %lld", arg->name, (long long)v,
                       (long long)arg->lo, (long long)arg->hi);
        if (!m->out_of_bounds) m->out_of_bounds = arena_printf(m->a, "%s: %s", k->name, why);
        TRY(m->out_of_bounds ? leave_out(m, k->name, dtype, why) : err_nomem(m->e));
    }
    return ERR_OK;
}

/* Multiples of the golden section are far from each other, modulo 1, however many there are (Knuth, TAOCP 3, 6.4). */
#define GOLDEN 0.6180339887498949

static enum err_code add_sweep(struct maker *m, const struct wire_kernel *k, const struct sweep *s)
{
    size_t n = 1;
    for (size_t i = 0; i < s->n; i++) {
        if (s->arg[i].values_n > PLAN_JOBS_MAX / n)
            return err_set(m->e, ERR_RANGE, "more than %d measurements", PLAN_JOBS_MAX);
        n *= s->arg[i].values_n;
    }
    const char *dtypes = "";
    for (size_t i = 0; i < k->variants_n; i++) { /* the formats of the kernel, each once */
        dtypes = arena_printf(m->a, "%s%s%s", dtypes, *dtypes ? "," : "", k->variants[i].dtypes);
        if (!dtypes) return err_nomem(m->e);
    }
    for (size_t i = 0; i < n; i++) {
        const struct wire_shape shape = sweep_combination(s, k, i);
        bool fits;
        m->part = fmod((double)i * GOLDEN, 1); /* any first of them are spread over all */
        TRY(check_bounds(m, k, &shape, "", &fits));
        for (const char *p = dtypes; fits && *p;) {
            const size_t len = strcspn(p, ",");
            const char *dtype = arena_strndup(m->a, p, len);
            if (!dtype) return err_nomem(m->e);
            char before[512];
            (void)snprintf(before, sizeof before, "%.*s", (int)(p - dtypes), dtypes);
            if (!wire_list_has(before, dtype)) TRY(add_point(m, k, &shape, dtype));
            p += len + (p[len] == ',');
        }
    }
    return ERR_OK;
}

/* -- points of kinds -- */

static bool same_shape(const struct wire_shape *x, const struct wire_shape *y)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->arg[i].value != y->arg[i].value) return false;
    return x->n == y->n;
}

/* Whether a kernel has the parameters of a point, or does without those that are 1: one that it has no idea of is said,
 * others are another kernel's of the kind. */
static enum err_code has_parameters(struct maker *m, const struct wire_kernel *k, const struct plan_point *p, bool *out)
{
    const char *other = NULL;
    int64_t value = 1;
    *out = true;
    for (size_t i = 0; i < p->shape.n && *out; i++) {
        const char *name = p->shape.arg[i].name;
        size_t j = 0;
        while (j < k->args_n && strcmp(k->args[j].name, name) != 0) j++;
        if (j < k->args_n) continue;
        *out = p->ones && wire_list_has(p->ones, name);
        if (p->shape.arg[i].value == 1 || other) continue;
        other = name;
        value = p->shape.arg[i].value;
    }
    if (!*out || !other) return ERR_OK;
    char why[160];
    (void)snprintf(why, sizeof why, "%.40s=%lld: it knows 1 alone", other, (long long)value);
    *out = false;
    return leave_out(m, k->name, p->dtype, why);
}

/* A point in the parameters of a kernel; false where one is out of its bounds, which is said. */
static enum err_code fit_point(struct maker *m, const struct wire_kernel *k, const struct plan_point *p,
                               struct wire_shape *out, bool *fits)
{
    *out = (struct wire_shape){.n = k->args_n};
    TRY(has_parameters(m, k, p, fits));
    if (!*fits) return ERR_OK;
    for (size_t i = 0; i < k->args_n; i++) {
        const struct wire_arg *arg = &k->args[i];
        int64_t v = arg->lo;
        (void)wire_shape_get(&p->shape, arg->name, &v);
        out->arg[i].name = arg->name;
        out->arg[i].value = v;
    }
    return check_bounds(m, k, out, p->dtype, fits);
}

static bool computes(const struct wire_kernel *k, const char *dtype)
{
    size_t i = 0;
    while (i < k->variants_n && !wire_list_has(k->variants[i].dtypes, dtype)) i++;
    return i < k->variants_n;
}

bool plan_point_is_of(const struct plan_point *p, const struct wire_kernel *k)
{
    return *k->row_kind && strcmp(p->row_kind, k->row_kind) == 0 && (!p->kernel || strcmp(p->kernel, k->name) == 0);
}

/* Whether some kernel of a point's kind has its format. */
static bool is_computed(const struct wire_device *d, const struct plan_point *p)
{
    size_t i = 0;
    while (i < d->kernels_n && !(plan_point_is_of(p, &d->kernels[i]) && computes(&d->kernels[i], p->dtype))) i++;
    return i < d->kernels_n;
}

static enum err_code add_kind(struct maker *m, const struct wire_kernel *k)
{
    const struct plan_request *r = m->r;
    for (size_t i = 0; i < r->points_n; i++) {
        const struct plan_point *p = &r->points[i];
        struct wire_shape shape;
        bool fits, again = false;
        m->part = (double)i / (double)r->points_n;
        if (!plan_point_is_of(p, k)) continue;
        if (!computes(k, p->dtype)) {
            if (!is_computed(m->device, p)) TRY(leave_out(m, k->name, p->dtype, "no variant has this format"));
            continue;
        }
        TRY(fit_point(m, k, p, &shape, &fits));
        for (size_t j = 0; j < m->plan->n && fits; j++)
            again = again || (m->plan->jobs[j].kernel == k && strcmp(m->plan->jobs[j].dtype, p->dtype) == 0 &&
                              same_shape(&m->plan->jobs[j].shape, &shape));
        if (fits && !again) TRY(add_point(m, k, &shape, p->dtype));
    }
    return ERR_OK;
}

/* A kernel's own points. */
static enum err_code add_own(struct maker *m, const struct wire_kernel *k)
{
    size_t of[2] = {0, 0}, at[2] = {0, 0};
    for (size_t i = 0; i < k->points_n; i++) of[k->points[i].quick]++;
    for (size_t i = 0; i < k->points_n; i++) {
        m->quick = k->points[i].quick;
        if (m->r->quick && !m->quick) continue;
        m->part = (double)at[m->quick]++ / (double)of[m->quick];
        TRY(add_point(m, k, &k->points[i].shape, k->points[i].dtype));
    }
    return ERR_OK;
}

/* The kernels whose calls several threads can make, joined by ','. */
static const char *splitting(struct arena *a, const struct wire_device *d)
{
    const char *list = "";
    for (size_t i = 0; i < d->kernels_n && list; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        size_t j = 0;
        while (j < k->variants_n && !k->variants[j].splits) j++;
        if (j < k->variants_n) list = arena_printf(a, "%s%s%s", list, *list ? "," : "", k->name);
    }
    return list ? list : "";
}

/* "; gemm has m, n, k", of the first kernels that are asked for. NULL: no memory. */
static const char *having(struct arena *a, const struct wire_device *d, const struct plan_request *r)
{
    enum { NAMED_MAX = 4 };
    const char *text = "";
    for (size_t i = 0, n = 0; i < d->kernels_n && n < NAMED_MAX && text; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        if (!wanted(r->kernels, k->name)) continue;
        n++;
        text = arena_printf(a, "%s; %s has ", text, k->name);
        for (size_t j = 0; j < k->args_n && text; j++)
            text = arena_printf(a, "%s%s%s", text, j ? ", " : "", k->args[j].name);
    }
    return text;
}

/* "; gemm also needs k" of the first kernel that is asked for and has all that is given, else what they have. NULL: no
 * memory. */
static const char *lacking(struct arena *a, const struct wire_device *d, const struct plan_request *r,
                           const struct sweep *s)
{
    for (size_t i = 0; i < d->kernels_n; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        const char *list = "";
        size_t has = 0;
        if (!wanted(r->kernels, k->name)) continue;
        for (size_t j = 0; j < k->args_n && list; j++) {
            size_t at = 0;
            while (at < s->n && strcmp(s->arg[at].name, k->args[j].name) != 0) at++;
            has += at < s->n;
            if (at == s->n) list = arena_printf(a, "%s%s%s", list, *list ? ", " : "", k->args[j].name);
        }
        if (!list) return NULL;
        if (has == s->n && *list) return arena_printf(a, "; %s also needs %s", k->name, list);
    }
    return having(a, d, r);
}

enum err_code plan_make(struct arena *a, const struct wire_device *d, const struct plan_request *r, struct plan *out,
                        struct err *e)
{
    struct plan plan = {.n = 0};
    struct maker m = {.a = a, .device = d, .r = r, .plan = &plan, .e = e, .none = "", .none_lacks = ""};
    struct sweep sweep = {.n = 0};
    bool any = false;
    TRY(plan_check_kernels(d, r->kernels, e));
    TRY(check_words(d, r, "variant", r->variants, false, e));
    TRY(check_words(d, r, "format", r->dtypes, true, e));
    if (r->shape) TRY(sweep_read(a, d, r, &sweep, e));
    for (size_t i = 0; i < d->kernels_n; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        if (!wanted(r->kernels, k->name)) continue;
        if (r->points_n) {
            any = true;
            TRY(add_kind(&m, k));
            continue;
        }
        if (r->shape) {
            if (!sweep_is_of(&sweep, k)) continue;
            any = true;
            TRY(add_sweep(&m, k, &sweep));
            continue;
        }
        if (!r->kernels && !r->measures && *k->ceiling) continue;
        any = true;
        TRY(add_own(&m, k));
    }
    if (*m.none) {
        const char *names = spaced(a, m.none);
        if (!names) return err_nomem(e);
        const bool many = strchr(m.none, ',') != NULL;
        TRY(leave_out_as(&m, arena_printf(a, "%s %s left out%s: %s", names, many ? "are" : "is",
                                          many ? ", each of them" : "", m.none_lacks)));
    }
    const char *lacks = any || !r->kernels || !r->shape ? "" : lacking(a, d, r, &sweep);
    if (!lacks) return err_nomem(e);
    if (!any)
        return err_set(e, ERR_USAGE, "--shape: no kernel that is asked for has these parameters%s%s (ridge probe list)",
                       strstr(lacks, " also needs ") ? " and no others" : "", lacks);
    if (!plan.n && !plan.left_out_n && r->points_n)
        return err_set(e, ERR_NO, "the kernels that are asked for are of no kind of its operators");
    if (!plan.n && r->shape && m.out_of_bounds) return err_set(e, ERR_RANGE, "--shape: %s", m.out_of_bounds);
    if (!plan.n) {
        const char *several = d->threads > 1 ? spaced(a, splitting(a, d)) : "";
        if (!several) return err_nomem(e);
        return err_set(e, ERR_DEVICE, "nothing of this can run here%s%s%s%s", plan.left_out_n ? ": " : "",
                       plan.left_out_n ? plan.left_out[0] : "", *several ? "; several threads make calls of " : "",
                       several);
    }
    *out = plan;
    return ERR_OK;
}

static int by_telling(const void *x, const void *y)
{
    const struct plan_job *a = x, *b = y;
    if (a->quick != b->quick) return a->quick ? -1 : 1;
    if (a->part < b->part || a->part > b->part) return a->part < b->part ? -1 : 1;
    return (a->nth > b->nth) - (a->nth < b->nth);
}

void plan_spread(struct plan *p)
{
    if (p->n) qsort(p->jobs, p->n, sizeof *p->jobs, by_telling);
}
