#include "probe/account.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

static const double PATIENCE_S = 10;

struct account {
    struct arena *arena;
    struct session *session; /* NULL: nothing was asked yet */
    const char *path;
    struct wire_device device;
    sigset_t mask; /* of the caller, who holds no signal: one ends this program and its worker */
};

static enum err_code ask(struct account *x, struct arena *a, const struct wire_request *q, struct wire_reply *reply,
                         struct err *e)
{
    char why[256], clean[200];
    const enum session_end end = session_ask(x->session, a, q, PATIENCE_S, NULL, NULL, reply, why, sizeof why);
    if (end == SESSION_ANSWERED) return ERR_OK;
    return err_set(e, ERR_DEVICE, "%s: it does not say what the work of a call is: %s",
                   text_clean(clean, sizeof clean, x->path, strlen(x->path)), why);
}

enum err_code account_open(struct arena *a, const char *path, struct account **out, struct err *e)
{
    struct account *x = arena_alloc(a, sizeof *x);
    if (!x) return err_nomem(e);
    *x = (struct account){.arena = a, .path = path};
    *out = x;
    return ERR_OK;
}

static enum err_code start(struct account *x, struct err *e)
{
    const struct wire_request q = {.ask = WIRE_DESCRIBE, .threads = 1};
    struct wire_reply reply;
    if (x->session) return ERR_OK;
    (void)sigprocmask(SIG_SETMASK, NULL, &x->mask);
    TRY(session_open(x->arena, x->path, &x->mask, &x->session, e));
    TRY(ask(x, x->arena, &q, &reply, e));
    x->device = reply.device;
    return ERR_OK;
}

/* -- one result -- */

static enum err_code refuse_kernel(const struct account *x, const struct result *r, const char *why, struct err *e)
{
    char near[200] = "";
    const bool known = strncmp(why, "no kernel ", strlen("no kernel ")) != 0;
    if (!known)
        (void)text_suggest(near, sizeof near, r->kernel, &x->device.kernels[0].name, sizeof x->device.kernels[0],
                           x->device.kernels_n);
    return err_set(e, ERR_INPUT, "%s: %s%s%s", known ? "shape" : "probe_kernel", why, near,
                   known ? "" : " (--worker FILE: of another program's kernels)");
}

/* Numbers of the row that are the kernel's count: as doubles of one sum, in whatever order. */
static enum err_code check_counts(const struct result *r, const struct wire_work *w, struct err *e)
{
    static const double SAME = 1e-12;
    const struct {
        const char *column;
        double found, wanted;
    } counts[] = {{"flops", r->flops, w->flops},
                  {"vector_flops", r->vector_flops, w->vector_flops},
                  {"read_bytes", r->read_bytes, w->read_bytes},
                  {"written_bytes", r->written_bytes, w->written_bytes},
                  {"piece_bytes", r->piece_bytes, w->piece_bytes}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char text[TEXT_NUMBER_MAX + 1];
        if (isnan(counts[i].found) || isnan(counts[i].wanted)) continue;
        if (fabs(counts[i].found - counts[i].wanted) <= SAME * counts[i].wanted) continue;
        text[text_real(text, counts[i].wanted)] = '\0';
        return err_set(e, ERR_INPUT, "%s: wanted %s, what %s of this shape has", counts[i].column, text, r->kernel);
    }
    return ERR_OK;
}

static enum err_code check_work(const struct result *r, const struct wire_work *w, struct err *e)
{
    if (strcmp(r->row_kind, w->row_kind) != 0)
        return err_set(e, ERR_INPUT, "row_kind: %s is of %s%s, not of %s", r->kernel,
                       *w->row_kind ? "kind " : "no kind of rows", w->row_kind, *r->row_kind ? r->row_kind : "none");
    if (strcmp(r->ceiling, w->ceiling) != 0)
        return err_set(e, ERR_INPUT, "ceiling: %s measures %s%s", r->kernel, *w->ceiling ? "that of " : "none",
                       w->ceiling);
    const bool card = strncmp(r->unit, "tensor", strlen("tensor")) == 0; /* its code may have a name of the CPU's */
    if (!card && *w->unit && strcmp(r->unit, w->unit) != 0)
        return err_set(e, ERR_INPUT, "unit: %s of %s computes by %s", r->variant, r->kernel, w->unit);
    return check_counts(r, w, e);
}

enum err_code account_check(struct account *x, const struct result *r, struct err *e)
{
    const struct wire_request q = {
        .ask = WIRE_COUNT,
        .threads = 1,
        .job = {.kernel = r->kernel, .variant = r->variant, .dtype = r->dtype, .shape = r->shape}};
    struct wire_reply reply;
    TRY(start(x, e));
    struct arena *own = arena_open(); /* of one answer: there may be many */
    if (!own) return err_nomem(e);
    enum err_code code = ask(x, own, &q, &reply, e);
    if (code == ERR_OK)
        code = *reply.work.refused ? refuse_kernel(x, r, reply.work.refused, e) : check_work(r, &reply.work, e);
    arena_close(own);
    return code;
}
