/* estimate_draft -- speculative decoding in `ridge estimate`: its options, its draft, its columns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/estimate.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"

enum err_code estimate_drafting_parse(const struct option_values *v, struct estimate_request *q, struct err *e)
{
    static const char *const OWN[] = {"accept", "gamma", "tree", "no-bonus", "draft-passes", "draft-tp"};
    struct estimate_drafting d = {.draft = option_get(v, "draft"), .bonus = !q->course};
    const char *gamma = option_get(v, "gamma");
    if (!d.draft) {
        for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++)
            if (option_given(v, OWN[i]))
                return err_set(e, ERR_USAGE, "--%s is about drafted tokens: which model drafts? --draft NAME", OWN[i]);
        q->drafting = d;
        return ERR_OK;
    }
    if (q->uncached)
        return err_set(e, ERR_USAGE, "--draft: decoding without a cache (--kv none) is not verified ahead");
    if (q->only == ONLY_PREFILL) return err_set(e, ERR_USAGE, "--draft changes decoding; --only prefill has none");
    d.accept_text = option_get(v, "accept");
    if (!d.accept_text)
        return err_set(e, ERR_USAGE,
                       "--draft: which part of its tokens is kept? --accept 0.8, or by depth 0.9,0.8,0.7");
    if (speculate_accept_parse(d.accept_text, &d.accept, e) != ERR_OK) return err_prepend(e, "--accept: ");
    if (option_get(v, "no-bonus")) d.bonus = false;
    d.passes = option_get(v, "draft-passes");
    if (d.passes && strcmp(d.passes, "one") != 0 && strcmp(d.passes, "depth") != 0)
        return err_set(e, ERR_USAGE, "--draft-passes is depth or one, not '%.40s'", d.passes);
    if (option_get(v, "draft-tp") && units_parse_count(option_get(v, "draft-tp"), 1, 4096, &d.tp, e) != ERR_OK)
        return err_prepend(e, "--draft-tp: ");
    if (option_get(v, "tree")) {
        if (option_given(v, "gamma"))
            return err_set(e, ERR_USAGE, "--gamma drafts a row and --tree a tree: one of them");
        if (speculate_tree_parse(option_get(v, "tree"), &d.tree, e) != ERR_OK) return err_prepend(e, "--tree: ");
        d.has_tree = true;
    } else if (strcmp(gamma, "best") != 0) {
        if (units_parse_count(gamma, 1, SPECULATE_DEPTH_MAX, &d.gamma, e) != ERR_OK)
            return err_prepend(e, "--gamma (a number or best): ");
        if (d.gamma > speculate_depth_max(&d.accept))
            return err_set(e, ERR_USAGE, "--gamma %lld: --accept says nothing beyond depth %lld", (long long)d.gamma,
                           (long long)speculate_depth_max(&d.accept));
    }
    q->drafting = d;
    return ERR_OK;
}

/* The draft's ordinary step on as many ranks as asked, or on those of the target, or on one. */
static enum err_code open_draft(struct arena *a, const struct estimate_request *q, struct step_setup *setup,
                                struct estimate_case *c, struct err *e)
{
    char gpus[TEXT_COUNT_MAX];
    setup->layout = layout_draft(setup->model, &c->layout, q->drafting.tp ? q->drafting.tp : c->tp);
    if (setup->layout.tp > c->tp || c->tp % setup->layout.tp != 0)
        return err_set(e, ERR_USAGE, "--draft-tp %lld: the draft runs on the %s of one copy, or a part of them",
                       (long long)setup->layout.tp, text_count(gpus, c->tp, "GPU"));
    enum err_code code = step_compile(a, setup, &c->speculation.draft, e);
    if (code == ERR_USAGE && !q->drafting.tp && setup->layout.tp > 1 && setup->layout.dcp == 1) {
        setup->layout.tp = 1;
        code = step_compile(a, setup, &c->speculation.draft, e);
    }
    c->draft_tp = setup->layout.tp;
    return code == ERR_OK ? ERR_OK : err_prepend(e, "--draft: ");
}

/* Calibrated times of the steps of a speculation. A draft's passes are within a step of the target, whose host they
 * share. */
enum { TARGET, JUDGE, DRAFT, DRAFT_WIDE, CLOCKS };
struct estimate_clock {
    const struct step *step[CLOCKS];
    struct calibrated *of[CLOCKS];
    int part; /* which number of calibrated_time: 0 the median, 1 P10, 2 P90 */
};

static double clock_seconds(void *self, struct step *of, double B, double T, double S, double M)
{
    const struct estimate_clock *k = self;
    for (size_t i = 0; i < CLOCKS; i++) {
        if (k->step[i] != of) continue;
        double bound_s, *column[STEP_VALUES_N] = {0};
        struct calibrated_time t;
        column[STEP_decode_step_s] = &bound_s;
        step_eval(of, 1, &B, &T, &S, &M, column);
        calibrated_eval(k->of[i], STEP_DECODE, 1, &B, &T, &S, &M, &bound_s, &t);
        return k->part == 0 ? t.s : k->part == 1 ? t.p10_s : t.p90_s;
    }
    return (double)NAN;
}

static enum err_code open_clock(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                struct err *e)
{
    struct speculate_setup *s = &c->speculation;
    struct estimate_clock *k = arena_alloc(a, sizeof *k);
    if (!k) return err_nomem(e);
    *k = (struct estimate_clock){.step = {s->target, s->verify, s->draft, s->draft_wide}, .of = {c->calibrated}};
    for (size_t i = JUDGE; i < CLOCKS; i++) {
        const struct calibrated_setup of = {
            .step = k->step[i], .source = &c->source, .eager = q->eager, .hostless = i != JUDGE};
        if (k->step[i]) TRY(calibrated_open(a, &of, &k->of[i], e));
    }
    s->clock = (struct speculate_clock){.seconds = clock_seconds, .self = k};
    c->clock = k;
    return ERR_OK;
}

/* A model of its own, or one made from the target. */
static enum err_code load_named(struct arena *a, const char *name, const struct model *target, struct model *out,
                                struct err *e)
{
    static const char MEDUSA[] = "medusa=";
    if (strcmp(name, "eagle") == 0) return model_eagle(a, target, out, e);
    if (strncmp(name, MEDUSA, sizeof MEDUSA - 1) == 0) {
        int64_t heads;
        TRY(units_parse_count(name + sizeof MEDUSA - 1, 1, SPECULATE_DEPTH_MAX, &heads, e));
        return model_medusa(a, target, heads, out, e);
    }
    if (strcmp(name, "mtp") != 0) return model_load(a, name, NULL, 0, out, e);
    if (!model_mtp(target, out))
        return err_set(e, ERR_USAGE, "%s has no multi-token prediction module of its own", target->name);
    out->name = arena_printf(a, "MTP module of %s", target->name);
    return out->name ? ERR_OK : err_nomem(e);
}

/* "NAME+CHANGE+CHANGE": the draft with changes of --what-if; a file's own name may have a '+' in it. */
enum err_code estimate_draft_load(struct arena *a, const char *name, const struct model *target, struct model *out,
                                  struct err *e)
{
    const char *plus = strchr(name, '+');
    struct err unknown;
    if (plus && plus != name && model_load(a, name, NULL, 0, out, &unknown) != ERR_OK) {
        char *base = arena_strndup(a, name, (size_t)(plus - name)),
             *changes = arena_strndup(a, plus + 1, strlen(plus + 1));
        if (!base || !changes) return err_nomem(e);
        for (char *p = changes; *p; p++)
            if (*p == '+' && p > changes && strchr("abcdefghijklmnopqrstuvwxyz", p[1])) *p = ',';
        TRY(load_named(a, base, target, out, e));
        TRY(whatif_apply_all(a, out, changes, e));
        out->towerless = true;
        return ERR_OK;
    }
    if (strcmp(name, "medusa") == 0) return err_set(e, ERR_USAGE, "medusa has a number of heads: medusa=4");
    if (strncmp(name, "eagle=", strlen("eagle=")) == 0)
        return err_set(e, ERR_USAGE,
                       "eagle is one head that runs once for each depth (--gamma); heads side by side "
                       "are medusa=4");
    TRY(load_named(a, name, target, out, e));
    out->towerless = true; /* images are the target's to see */
    return ERR_OK;
}

enum err_code estimate_drafting_judged(struct arena *a, const struct estimate_drafting *d, int64_t *out, struct err *e)
{
    struct speculate_shape shape;
    *out = d->draft ? d->gamma + d->bonus : 1;
    if (!d->has_tree) return ERR_OK;
    if (speculate_tree_shape(a, &d->tree, &d->accept, d->bonus, &shape, e) != ERR_OK) return err_prepend(e, "--tree: ");
    *out = shape.query_tokens;
    return ERR_OK;
}

enum err_code estimate_drafting_open(struct arena *a, const struct estimate_request *q, const struct step_setup *setup,
                                     struct estimate_case *c, struct err *e)
{
    const struct estimate_drafting *d = &q->drafting;
    struct speculate_setup *s = &c->speculation;
    struct step_setup verify = *setup, draft = *setup;
    if (estimate_draft_load(a, d->draft, &c->model, &c->draft, e) != ERR_OK) return err_prepend(e, "--draft: ");
    TRY(model_refuse_encoder(&c->draft, "one does not draft for another model (--draft)", e));
    if (q->kv && stored_has_cache(&c->draft)) /* an engine keeps both caches in one format */
        TRY(stored_set_cache(&c->draft, q->kv, e));
    if (c->model.diffusion || c->draft.diffusion)
        return err_set(e, ERR_USAGE,
                       "--draft: %s settles blocks of tokens, and how drafts and those mix is not described",
                       c->model.diffusion ? c->model.name : c->draft.name);
    const bool beside = c->draft.draft.heads > 0; /* all depths come out of one pass */
    *s = (struct speculate_setup){.target = c->step,
                                  .accept = d->accept,
                                  .bonus = d->bonus,
                                  .one_pass = d->passes ? strcmp(d->passes, "one") == 0 : beside,
                                  .gamma = d->gamma};
    verify.verify = true;
    verify.averaged = draft.averaged = false;
    TRY(step_compile(a, &verify, &s->verify, e));
    draft.model = &c->draft;
    draft.layout.pp = draft.layout.microbatches = 0; /* whole, on the ranks of the last stage */
    draft.offload = (struct offload){0, 0};          /* the model's weights alone */
    TRY(open_draft(a, q, &draft, c, e));
    s->depth_max = c->draft.draft.heads;
    const int64_t depth = d->has_tree ? d->tree.depth : d->gamma;
    if (s->depth_max > 0 && depth > s->depth_max)
        return err_set(e, ERR_USAGE, "--draft %s makes at most %lld tokens in a row, not %lld", d->draft,
                       (long long)s->depth_max, (long long)depth);
    if (!d->has_tree) return q->calibrated ? open_clock(a, q, c, e) : ERR_OK;
    struct speculate_shape *shape = arena_alloc(a, sizeof *shape);
    if (!shape) return err_nomem(e);
    if (speculate_tree_shape(a, &d->tree, &d->accept, d->bonus, shape, e) != ERR_OK) return err_prepend(e, "--tree: ");
    s->shape = shape;
    draft.verify = true;
    TRY(step_compile(a, &draft, &s->draft_wide, e));
    return q->calibrated ? open_clock(a, q, c, e) : ERR_OK;
}

/* ---- rows ---- */

void estimate_drafting_constant(const struct estimate_request *q, const struct estimate_case *c, struct estimate_row *r)
{
    const bool any = q->drafting.draft != NULL;
    const double unknown = (double)NAN;
    r->draft = any ? c->draft.name : NULL;
    r->accept = q->drafting.accept_text;
    r->draft_tp = any ? c->draft_tp : TABLE_INT_UNKNOWN;
    r->bonus_token = !any ? unknown : q->drafting.bonus ? 1 : 0;
    r->draft_weight_bytes = any ? step_weight_bytes(c->speculation.draft) : unknown;
    r->draft_kv_bytes = r->tokens_per_step = r->draft_s = r->verify_s = r->spec_step_s = unknown;
    r->spec_user_tok_per_s = r->spec_throughput_tok_per_s = r->spec_speedup = unknown;
    r->spec_step_s_p10 = r->spec_step_s_p90 = unknown;
    r->spec_throughput_tok_per_s_p10 = r->spec_throughput_tok_per_s_p90 = unknown;
    r->gamma = r->best_gamma = r->verify_tokens = r->spec_pays_until_batch = TABLE_INT_UNKNOWN;
}

void estimate_drafting_band(const struct estimate_case *c, double B, double T, double S, double M,
                            const struct speculate_point *p, struct estimate_row *r)
{
    if (!c->clock || isnan(r->spec_step_s)) return;
    struct speculate_setup s = c->speculation;
    double step_s[3];
    if (!s.shape) s.gamma = p->gamma;
    for (int part = 1; part <= 2; part++) {
        struct speculate_point at;
        c->clock->part = part;
        speculate_eval(&s, B, T, S, M, &at);
        step_s[part] = at.step_s;
    }
    c->clock->part = 0;
    const double tokens = (double)(r->batch * c->replicas) * p->tokens;
    r->spec_step_s_p10 = step_s[1];
    r->spec_step_s_p90 = step_s[2];
    r->spec_throughput_tok_per_s_p10 = tokens / step_s[2];
    r->spec_throughput_tok_per_s_p90 = tokens / step_s[1];
}

void estimate_drafting_ops(const struct estimate_case *c, const struct step *of, double B, double T, double S,
                           struct step_op *ops, size_t n)
{
    for (size_t i = JUDGE; c->clock && i < CLOCKS; i++)
        if (c->clock->step[i] == of) calibrated_ops(c->clock->of[i], STEP_DECODE, B, T, S, 1, ops, n);
}

void estimate_drafting_memory(const struct speculate_point *p, struct estimate_row *r)
{
    const double other = r->memory_bytes - r->kv_bytes - r->state_bytes - r->activation_bytes; /* that is held */
    r->kv_bytes = p->kv_bytes;
    r->kv_allocated_bytes = p->kv_allocated_bytes;
    r->state_bytes = p->state_bytes;
    r->activation_bytes = fmax(r->activation_bytes, fmax(p->activation_bytes, p->draft_activation_bytes));
    r->draft_kv_bytes = p->draft_kv_bytes + p->draft_state_bytes;
    r->memory_bytes =
        other + r->kv_bytes + r->state_bytes + r->activation_bytes + r->draft_weight_bytes + r->draft_kv_bytes;
}

void estimate_drafting_times(const struct estimate_case *c, const struct speculate_point *p, int64_t pays_until,
                             struct estimate_row *r)
{
    if (!step_timed(c->speculation.draft)) return;
    r->gamma = p->gamma;
    r->best_gamma = p->best_gamma;
    r->verify_tokens = p->query_tokens;
    r->tokens_per_step = p->tokens;
    r->draft_s = p->draft_s;
    r->verify_s = p->verify_s;
    r->spec_step_s = p->step_s;
    r->spec_user_tok_per_s = p->tokens / p->step_s;
    r->spec_throughput_tok_per_s = (double)(r->batch * c->replicas) * p->tokens / p->step_s;
    r->spec_speedup = p->speedup;
    r->spec_pays_until_batch = pays_until;
}

/* ---- text ---- */

static void put_wrapped(struct out *o, const char *line)
{
    out_str(o, "  ");
    option_wrap(o, line, 2, 4);
}

void estimate_drafting_write(struct out *o, const struct estimate_request *q, const struct estimate_case *c)
{
    const struct estimate_drafting *d = &q->drafting;
    const struct step *draft = c->speculation.draft;
    const struct speculate_shape *shape = c->speculation.shape;
    char line[512], name[96], accept[96], a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], tree[96] = "";
    const double kv = step_kv_bytes_per_token_full(draft) + step_kv_bytes_per_token_windowed(draft) +
                      step_kv_bytes_per_token_index(draft);
    if (shape)
        (void)snprintf(tree, sizeof tree, "; a tree of %lld tokens, %lld deep", (long long)shape->drafted,
                       (long long)shape->depth);
    (void)snprintf(line, sizeof line, "draft %s (TP %lld): weights %s, KV %s bytes per token, per GPU",
                   text_clean(name, sizeof name, c->draft.name, strlen(c->draft.name)), (long long)c->draft_tp,
                   units_format_bytes(a, step_weight_bytes(draft)), units_format_digits(b, kv));
    put_wrapped(o, line);
    (void)snprintf(line, sizeof line, "accepted %s%s%s; %s%s",
                   text_clean(accept, sizeof accept, d->accept_text, strlen(d->accept_text)),
                   speculate_accept_ranked(&d->accept) ? d->accept.n > 1 ? " by depth and rank" : " by rank"
                   : d->accept.n > 1                   ? " by depth"
                                                       : "",
                   tree, c->speculation.one_pass ? "all drafted in one pass; " : "",
                   d->bonus ? "with the bonus token: one more when none is refused"
                            : "no bonus token: none is added when none is refused");
    put_wrapped(o, line);
    if (shape && speculate_accept_ranked(&d->accept))
        put_wrapped(o, "siblings: at most one of a node is kept, the r-th with the r-th part of its depth "
                       "(ridge list conventions)");
    else if (shape)
        put_wrapped(o, "siblings: independent tries, the r-th of a node kept with p*(1-p)^(r-1), one of k with "
                       "1-(1-p)^k (ridge list conventions)");
    if (c->draft.vocab != c->model.vocab) {
        (void)snprintf(line, sizeof line,
                       "note: the draft has %lld tokens in its vocabulary, the model %lld: it can draft for it only if "
                       "they share a tokenizer",
                       (long long)c->draft.vocab, (long long)c->model.vocab);
        put_wrapped(o, line);
    }
    if (c->clock)
        for (size_t i = 0; i < CLOCKS; i++) {
            const char *note;
            for (size_t n = 0; i != TARGET && c->clock->of[i] && (note = calibrated_note(c->clock->of[i], n)); n++) {
                if (strncmp(note, "several tokens", strlen("several tokens")) != 0) continue;
                (void)snprintf(line, sizeof line, "note: %s: %s", i == JUDGE ? "judging" : "drafting", note);
                put_wrapped(o, line);
            }
        }
    if (c->state_bytes > 0)
        put_wrapped(o, "note: what an engine keeps to take a recurrent state back after a refusal is not counted");
}

const char *estimate_drafting_keys(const struct estimate_request *q)
{
    if (!q->drafting.draft) return NULL;
    if (q->only == ONLY_MEMORY) return "draft_weight_bytes,draft_kv_bytes";
    const bool contexts = estimate_points(q) > q->batch_n; /* then it is told per row where it stops paying */
    if (q->calibrated)
        return contexts ? "gamma,tokens_per_step,spec_step_s,spec_step_s_p10,spec_step_s_p90,"
                          "spec_throughput_tok_per_s,spec_speedup,best_gamma,spec_pays_until_batch"
                        : "gamma,tokens_per_step,draft_s,verify_s,spec_step_s,spec_step_s_p10,"
                          "spec_step_s_p90,spec_throughput_tok_per_s,spec_speedup";
    if (q->drafting.has_tree)
        return contexts ? "verify_tokens,tokens_per_step,draft_s,verify_s,spec_throughput_tok_per_s,spec_speedup,"
                          "spec_pays_until_batch"
                        : "verify_tokens,tokens_per_step,draft_s,verify_s,spec_step_s,spec_user_tok_per_s,"
                          "spec_throughput_tok_per_s,spec_speedup";
    return contexts ? "gamma,tokens_per_step,draft_s,verify_s,spec_throughput_tok_per_s,spec_speedup,best_gamma,"
                      "spec_pays_until_batch"
                    : "gamma,tokens_per_step,draft_s,verify_s,spec_step_s,spec_user_tok_per_s,"
                      "spec_throughput_tok_per_s,spec_speedup,best_gamma";
}

/* Where it stops paying, when all rows share it. */
static void put_paying(struct out *o, const struct estimate_request *q, const struct estimate_row *row)
{
    char line[200];
    const long long B = (long long)row->spec_pays_until_batch;
    const char *what = q->drafting.gamma || q->drafting.has_tree ? "" : ", with the best gamma of each";
    if (B == 0)
        (void)snprintf(line, sizeof line, "slower than decoding at every batch%s", what);
    else if (B == SPECULATE_BATCH_MAX)
        (void)snprintf(line, sizeof line, "faster than decoding up to batch %lld and beyond%s", B, what);
    else
        (void)snprintf(line, sizeof line, "stops paying after batch %lld%s (whatever the memory)", B, what);
    put_wrapped(o, line);
}

enum err_code estimate_drafting_table(struct arena *a, const struct estimate_request *q, const struct table *t,
                                      const struct estimate_row *rows, size_t n, struct out *o, struct err *e)
{
    const bool batches = q->batch_n > 1, contexts = estimate_points(q) > q->batch_n;
    struct table of = *t;
    const struct estimate_row *timed = NULL;
    for (size_t i = 0; i < n && !timed; i++)
        if (rows[i].spec_pays_until_batch != TABLE_INT_UNKNOWN) timed = &rows[i];
    const char *keys = arena_printf(a, "%s%s,%s", batches || !contexts ? "batch" : "context",
                                    batches && contexts ? ",context" : "", estimate_drafting_keys(q));
    if (!keys) return err_nomem(e);
    out_str(o, "\nspeculation\n");
    if (!contexts && timed) put_paying(o, q, timed);
    out_char(o, '\n');
    TRY(table_select(a, &of, keys, &of, e));
    of.rows = rows;
    of.n_rows = n;
    return table_write(&of, TABLE_TEXT, o, e);
}
