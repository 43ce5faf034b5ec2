#include "calc/learn/derive_story.h"

#include <math.h>
#include <string.h>

#include "calc/cost/layout.h"
#include "calc/learn/derive_page.h"
#include "calc/time/speculate.h"
#include "calc/time/train.h"

static const char *const NAMES[] = {"speculation", "training", "layouts", NULL};
static const char *const MEANINGS[] = {
    "drafted tokens: how many a step yields, what judging them costs, when it pays",
    "a run: flops, days, memory by what it holds, a step",
    "a model on several GPUs: what a rank holds, what ranks send, stages, experts in parts",
};

const char *const *derive_story_names(void) { return NAMES; }

const char *derive_story_meaning(const char *topic)
{
    for (size_t i = 0; NAMES[i]; i++)
        if (strcmp(NAMES[i], topic) == 0) return MEANINGS[i];
    return NULL;
}

static void say(struct derive_page *p, const char *label, const char *text)
{
    derive_page_put(p, (struct derive_line){.label = label, .text = text});
}

/* ---- speculation ---- */

/* A decode step of so many query tokens a sequence, the first of them at context S. */
static enum err_code judging(struct derive_page *p, const struct quantity_scope *of, const struct sym *tokens,
                             struct quantity_topic *out)
{
    struct quantity_scope s = *of;
    s.tokens = tokens;
    return quantity_topic(&s, "decode_step", QUANTITY_DECODE, out, p->e);
}

/* With S the first query token's context, as drafts are counted, where the pass says the last one's. */
static const struct sym *from_first(struct derive_page *p, const struct sym *e, const struct sym *more)
{
    const struct sym *S = p->q->symbols->y.S;
    const struct sym_binding one = {S, sym_add(p->c, S, more)};
    return sym_bind(p->c, e, &one, 1);
}

static enum err_code judging_s(struct derive_page *p, int64_t gamma, double *out)
{
    struct quantity_topic t;
    TRY(judging(p, p->q->numbers, sym_int(p->c, gamma + 1), &t));
    return derive_page_value(p, from_first(p, t.total.time_s, sym_int(p->c, gamma)), out);
}

/* What a draft may take at most, and what none would gain. */
static enum err_code put_paying(struct derive_page *p)
{
    static const int64_t GAMMA[] = {1, 2, 3, 4, 6, 8};
    const struct speculate_accept likely = {.at = {0.8}, .n = 1};
    double decode_s;
    TRY(judging_s(p, 0, &decode_s));
    if (isnan(decode_s)) return ERR_OK; /* symbols are left */
    derive_page_begin(p,
                      derive_page_text(p, "at B = %lld, S = %lld, acceptance %g", (long long)p->q->batch,
                                       (long long)p->q->context, likely.at[0]),
                      "tokens with the bonus; how much faster a draft that takes no time would make it, and what one "
                      "of its passes may take");
    for (size_t i = 0; i < sizeof GAMMA / sizeof GAMMA[0]; i++) {
        char step[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
        double verify_s;
        TRY(judging_s(p, GAMMA[i], &verify_s));
        const double tokens = speculate_tokens(&likely, GAMMA[i], true);
        const double left_s = (tokens * decode_s - verify_s) / (double)GAMMA[i];
        const char *draft =
            left_s > 0 ? derive_page_text(p, "a pass below %s", units_format_time(most, left_s)) : "it cannot pay";
        say(p, derive_page_text(p, "g = %lld", (long long)GAMMA[i]),
            derive_page_text(p, "%.3f tokens, verify %s: %.3f x; %s", tokens, units_format_time(step, verify_s),
                             speculate_speedup(tokens, decode_s, 0, verify_s), draft));
    }
    return ERR_OK;
}

static enum err_code derive_speculation(struct derive_page *p)
{
    const struct quantity_scope *s = p->q->symbols;
    struct sym_ctx *c = p->c;
    const struct sym *a = sym_var(c, "a"), *g = sym_var(c, "g"), *one = sym_int(c, 1);
    if (s->model && s->model->diffusion)
        return err_set(p->e, ERR_USAGE, "%s settles blocks of tokens; how drafts and those mix is not described",
                       s->model->name);
    derive_page_begin(p, "tokens of a step", "g drafted in a row, each kept with a when those before it were");
    say(p, "kept", "a + a^2 + .. + a^g: up to the first that is refused; there the model's own token stands");
    derive_page_formula(p, "with bonus", speculate_tokens_formula(c, a, g, true), NULL);
    say(p, "", "one more is drawn when none is refused: 1 to g+1 tokens, T = g+1 (engines)");
    derive_page_formula(p, "no bonus", speculate_tokens_formula(c, a, g, false), NULL);
    say(p, "", "1 to g tokens, T = g (the lecture's loop)");
    say(p, "by depth", "1 + a_1 + a_1*a_2 + ..: products of the list that --accept gives");
    say(p, "a tree",
        "1 + sum over nodes of (product over its path of a_(d,r)), r the rank of a child among its siblings: "
        "a_(d,r) = a_d*(1-a_d)^(r-1) of independent tries, or as measured (--accept 0.6/0.2,0.5/0.1)");
    struct quantity_topic t;
    TRY(judging(p, s, sym_add(c, g, one), &t));
    derive_page_begin(p, "the pass that judges",
                      "a decode step of T = g+1 query tokens, the first at context S: weights once, old cache once");
    TRY(derive_page_normal(p, "FLOPs", from_first(p, t.total.flops, g), NULL));
    TRY(derive_page_normal(p, "weights", t.total.weight_bytes, NULL));
    TRY(derive_page_normal(p, "cache", from_first(p, t.total.kv_bytes, g), NULL));
    say(p, "so",
        "FLOPs grow by g+1, bytes hardly: it is nearly free while B*(g+1) rows stay below the ridge, and g+1 "
        "steps beyond; of experts each token may touch others, so it is dear at once");
    derive_page_begin(p, "when it pays", NULL);
    const struct sym *gain = sym_div(c, sym_mul(c, sym_var(c, "tokens"), sym_var(c, "step")),
                                     sym_add(c, sym_mul(c, g, sym_var(c, "draft")), sym_var(c, "verify")));
    derive_page_formula(p, "speedup", gain, NULL);
    say(p, "", "draft: one pass of it (heads side by side: one for all g); step, verify: of T = 1 and of T = g+1");
    say(p, "best g", "the first of the fastest; it falls as the batch fills the matrix units (ridge estimate --draft)");
    return p->q->numbers && p->q->numbers->hw && p->q->numbers->model ? put_paying(p) : ERR_OK;
}

/* ---- training ---- */

/* P*(2 + 2/n + 12/n): the coefficients of train_memory, and whether copies split each. */
static const struct sym *memory_of(struct derive_page *p, const struct train_recipe *r, int zero)
{
    const struct train_memory one = train_memory(r, 1, 1, zero), two = train_memory(r, 1, 2, zero);
    const double whole[] = {one.param_bytes, one.grad_bytes, one.state_bytes};
    const double half[] = {two.param_bytes, two.grad_bytes, two.state_bytes};
    double own = 0, shared = 0;
    for (size_t i = 0; i < 3; i++) *(half[i] < whole[i] ? &shared : &own) += whole[i];
    const struct sym *part = sym_div(p->c, sym_num(p->c, shared), sym_var(p->c, "n"));
    return sym_mul(p->c, sym_var(p->c, "P"), sym_add(p->c, sym_num(p->c, own), part));
}

/* Activations that are kept, in B and S: of the expressions that the estimate evaluates. */
static enum err_code put_kept(struct derive_page *p, const struct model *m)
{
    static const char *const LABELS[] = {"attention", "none", "layers"};
    const struct quantity_scope *s = p->q->symbols;
    const struct cost_pass pass = {
        .name = "training", .B = s->y.B, .T = s->y.S, .S = s->y.S, .uncached = true, .all_logits = true};
    struct cost_ops ops;
    TRY(cost_build(p->a, p->c, &s->y, m, &s->conventions, &pass, s->tp, &ops, p->e));
    TRY(cost_bind(p->c, &s->y, m, s->tp, &ops, p->e));
    derive_page_begin(p, "activations kept", "what each operator reads, once; --recompute says what is computed anew");
    for (int how = 0; how < 3; how++) {
        const struct sym *kept;
        TRY(train_saved_bytes(p->a, p->c, m, &ops, &pass, s->tp, (enum train_recompute)how, &kept, p->e));
        TRY(derive_page_normal(p, LABELS[how], kept, NULL));
    }
    return ERR_OK;
}

static enum err_code put_step(struct derive_page *p, const struct model *m)
{
    const struct quantity_scope *s = p->q->numbers;
    const struct train_setup u = {.model = m,
                                  .hw = s->hw,
                                  .tp = s->tp,
                                  .copies = s->copies > 0 ? s->copies : 1,
                                  .conventions = s->conventions,
                                  .recipe = train_recipe_find("adamw"),
                                  .zero = 3};
    struct train_plan *plan;
    struct train_step t;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    TRY(train_compile(p->a, &u, &plan, p->e));
    train_eval(plan, (double)p->q->batch, (double)p->q->context, &t);
    derive_page_begin(p,
                      derive_page_text(p, "a step at B = %lld, S = %lld of each of %lld copies, adamw, ZeRO 3",
                                       (long long)p->q->batch, (long long)p->q->context, (long long)u.copies),
                      NULL);
    say(p, "FLOPs", derive_page_text(p, "%s for %.0f tokens", units_format_flops(a, t.flops), t.tokens));
    if (!(t.step_s > 0)) return ERR_OK;
    say(p, "time",
        derive_page_text(p, "forward %s, backward %s, the rest of %s: the optimizer, and what copies send",
                         units_format_time(a, t.forward_s), units_format_time(b, t.backward_s),
                         units_format_time(c, t.step_s)));
    say(p, "MFU", derive_page_text(p, "%.1f %% at most", 100 * t.mfu));
    say(p, "memory",
        derive_page_text(p, "%s, of it activations %s", units_format_bytes(a, t.memory_bytes),
                         units_format_bytes(b, t.activation_bytes)));
    return ERR_OK;
}

static enum err_code derive_training(struct derive_page *p)
{
    struct sym_ctx *c = p->c;
    const struct quantity_scope *s = p->q->symbols;
    const struct sym *P = sym_var(c, "P"), *tokens = sym_var(c, "tokens");
    const struct sym *flops = SYM_PROD(c, sym_num(c, train_flops(1, 1)), P, tokens);
    derive_page_begin(p, "a run", "P active parameters; a multiply-add forward, two backward, of 2 flops each");
    derive_page_formula(p, "FLOPs", flops, NULL);
    derive_page_formula(p, "seconds",
                        sym_div(c, flops, SYM_PROD(c, sym_var(c, "devices"), sym_var(c, "peak"), sym_var(c, "MFU"))),
                        NULL);
    say(p, "", "attention's pairs are left out, the embedding is in: a rule (exact_flops counts both as they are)");
    derive_page_begin(p, "memory of P parameters",
                      "on each of n copies; --optimizer names the recipe, --zero the stage");
    const struct train_recipe *adamw = train_recipe_find("adamw");
    for (int zero = 0; zero <= 3; zero++)
        derive_page_formula(p, derive_page_text(p, "ZeRO %d", zero), memory_of(p, adamw, zero), NULL);
    say(p, "", "adamw: parameters, gradients, and the optimizer's state: a master copy and two moments");
    size_t n;
    const struct train_recipe *r = train_recipes(&n);
    for (size_t i = 0; i < n; i++)
        if (&r[i] != adamw)
            say(p, r[i].name,
                derive_page_text(p, "%g + %g + %g bytes a parameter", r[i].param_bytes, r[i].grad_bytes,
                                 r[i].state_bytes));
    if (s->model) {
        struct model m = *s->model;
        TRY(train_model(adamw, &m, p->e));
        TRY(put_kept(p, &m));
    }
    derive_page_begin(p, "a step", "nothing overlapped");
    say(p, "time", "3 forward passes (4 where layers are computed anew) + update + what copies send each other");
    say(p, "update", "P*(gradients + 2*state + parameters)/bandwidth, of the part that a rank updates");
    say(p, "sent",
        "P*gather*(2*gradients); ZeRO 1 and 2: (gradients + parameters); 3: (gradients + 2*parameters); gather "
        "= max((c-1)/c/link, (k-1)/(k*c)/fabric), k nodes of c copies");
    return s->model && p->q->numbers && p->q->numbers->hw ? put_step(p, s->model) : ERR_OK;
}

/* ---- layouts ---- */

/* What one operator of each kind sends, as a rank of so many does. */
static enum err_code put_sent(struct derive_page *p, int64_t ranks)
{
    struct quantity_scope s = *p->q->symbols;
    struct quantity_topic t;
    s.tp = ranks;
    TRY(quantity_topic(&s, "decode_step", QUANTITY_DECODE, &t, p->e));
    for (size_t i = 0; i < t.pass.ops.n; i++) {
        const struct cost_op *op = &t.pass.ops.op[i];
        bool said = derive_page_is_zero(op->wire_bytes);
        for (size_t k = 0; k < i && !said; k++) said = strcmp(t.pass.ops.op[k].name, op->name) == 0;
        if (said) continue;
        TRY(derive_page_normal(p, op->name, op->wire_bytes, NULL));
    }
    return ERR_OK;
}

/* Weights and cache of a rank by how many there are: of those counts that the model divides by. */
static enum err_code put_ranks(struct derive_page *p)
{
    const struct quantity_scope *s = p->q->numbers;
    derive_page_begin(
        p, derive_page_text(p, "a rank of t, at B = %lld, S = %lld", (long long)p->q->batch, (long long)p->q->context),
        NULL);
    for (int64_t t = 1; t <= 8; t *= 2) {
        struct quantity_scope of = *s;
        struct quantity_named named[QUANTITY_NAMED_MAX];
        const struct layout l = {.tp = t};
        struct err why;
        size_t n;
        char w[UNITS_TEXT_MAX] = "", kv[UNITS_TEXT_MAX] = "", step[UNITS_TEXT_MAX] = "-";
        if (layout_check(s->model, &l, &why) != ERR_OK) {
            say(p, derive_page_text(p, "t = %lld", (long long)t), derive_page_text(p, "%s", why.text));
            continue;
        }
        of.tp = t;
        TRY(quantity_named_all(&of, named, &n, p->e));
        for (size_t i = 0; i < n; i++) {
            double v;
            TRY(derive_page_value(p, named[i].value, &v));
            if (strcmp(named[i].name, "weight_bytes") == 0) units_format_bytes(w, v);
            if (strcmp(named[i].name, "kv_bytes") == 0) units_format_bytes(kv, v);
            if (strcmp(named[i].name, "decode_step") == 0 && !isnan(v)) units_format_time(step, v);
        }
        say(p, derive_page_text(p, "t = %lld", (long long)t),
            derive_page_text(p, "weights %s, cache %s, decode step %s", w, kv, step));
    }
    return ERR_OK;
}

static void put_experts(struct derive_page *p, const struct ffn *f)
{
    derive_page_begin(p, "experts in e parts",
                      derive_page_text(p, "%lld of %lld for a token; of s experts that a step touches, evenly routed",
                                       (long long)f->experts_per_token, (long long)f->experts));
    for (int64_t e = 2; e <= 64 && f->experts % e == 0; e *= 2)
        say(p, derive_page_text(p, "e = %lld", (long long)e),
            derive_page_text(
                p,
                "of one token the busiest part has %.3f, of %lld experts %.2f (mean %.2f); a token is sent "
                "to %.2f of %lld parts",
                layout_busiest(f->experts, e, f->experts_per_token), (long long)(f->experts / 2),
                layout_busiest(f->experts, e, f->experts / 2), (double)(f->experts / 2) / (double)e,
                (double)e * layout_touched(f->experts, f->experts_per_token, e), (long long)e));
}

/* The most ranks of at most 16 that can share a context, in *of. */
static int64_t sharing(const struct model *m, int64_t *of)
{
    for (*of = 2; *of <= 16; *of *= 2) {
        const int64_t most = layout_context_most(m, *of);
        struct err why;
        if (most > 1 && layout_check(m, &(struct layout){.tp = *of, .dcp = most}, &why) == ERR_OK && *of >= 8)
            return most;
    }
    return 1;
}

/* A cache that ranks with the same heads split by tokens; of a model what each of them keeps. */
static enum err_code put_context(struct derive_page *p)
{
    const struct quantity_scope *s = p->q->symbols;
    int64_t t = 8;
    const int64_t most = s->model ? sharing(s->model, &t) : 1;
    derive_page_begin(p, "a context over n of the t ranks", "decode context parallelism, --dcp n");
    say(p, "a rank has",
        "ceil(S/n) of S tokens of a sequence, every n-th; windows and recurrent states whole. Without, KV heads fewer "
        "than ranks, and a latent, are whole on each: not a t-th");
    say(p, "who shares", "ranks with the same KV head: n divides t/K and N/K; of a latent any n that divides t");
    say(p, "attention",
        "n*N/t heads over ceil(S/n) tokens: as many flops as N/t heads over S, an n-th of the cache's bytes");
    say(p, "a layer sends",
        "of each token n-1 times: queries of N/t heads (N/t*H, latent N/t*(C+R)), log-sum-exps of n*N/t heads in fp32, "
        "outputs of N/t heads (N/t*Hv, latent N/t*C)");
    for (int64_t n = 1; most > 1 && n <= most; n++) {
        struct cost_stage_cache kept;
        double bytes;
        char text[UNITS_TEXT_MAX];
        const struct cost_layout l = {.layout = {.tp = t, .dcp = n}};
        const struct sym_binding at = {s->y.S, sym_int(p->c, p->q->context)};
        if (most % n != 0) continue;
        TRY(cost_stage_cache(p->c, &s->y, s->model, &l, NULL, &kept, p->e));
        if (!sym_constant(sym_bind(p->c, kept.per_sequence, &at, 1), &bytes)) continue;
        units_format_bytes(text, (double)p->q->batch * bytes);
        say(p, derive_page_text(p, "t = %lld, n = %lld", (long long)t, (long long)n),
            derive_page_text(p, "cache %s on each rank at B = %lld, S = %lld", text, (long long)p->q->batch,
                             (long long)p->q->context));
    }
    return ERR_OK;
}

static enum err_code derive_layouts(struct derive_page *p)
{
    struct sym_ctx *c = p->c;
    const struct quantity_scope *s = p->q->symbols;
    const struct sym *stages = sym_var(c, "p"), *m = sym_var(c, "m"), *one = sym_int(c, 1);
    derive_page_begin(p, "a copy",
                      "t ranks split every layer, d groups of them take sequences, e parts hold experts, p "
                      "stages hold layers");
    say(p, "GPUs", "t*d*p of a copy; copies share nothing (--tp, --attention-dp, --ep, --pp, -g NAME:N)");
    say(p, "a rank has",
        "heads N/t, KV heads max(K/t, 1), columns F/t of a dense block, E/e experts of F*e/(t*d) columns, "
        "V/t of the vocabulary, L/p layers; norms, routers and latents whole");
    derive_page_begin(p, "what t ranks send", "bytes in a decode step, here t = 2; V is a rank's share");
    TRY(put_sent(p, 2));
    say(p, "in general",
        "2*(t-1)/t of an array for its sum over t ranks, (t-1)/t to gather it; over links within a node, "
        "the fabric between nodes, both at once");
    TRY(put_context(p));
    derive_page_begin(p, "stages", "p of them, m microbatches under way");
    derive_page_formula(p, "idle", sym_div(c, sym_sub(c, stages, one), sym_sub(c, sym_add(c, m, stages), one)), NULL);
    say(p, "decode", "max(sum of stages, m*slowest stage): the time between two tokens of a sequence");
    const struct ffn *f = s->model ? layout_routed(s->model) : NULL;
    if (f) put_experts(p, f);
    return s->model && p->q->numbers && p->q->numbers->hw ? put_ranks(p) : ERR_OK;
}

enum err_code derive_story(struct derive_page *p, const char *topic)
{
    static enum err_code (*const PAGES[])(struct derive_page *) = {derive_speculation, derive_training, derive_layouts};
    const struct model *m = p->q->symbols->model;
    p->d->title = derive_page_text(p, "%s: %s", topic, derive_story_meaning(topic));
    p->d->about =
        derive_page_text(p, "%s", m ? derive_page_clean(p, m->name) : "the textbook's decoder, 2 bytes per element");
    for (size_t i = 0; NAMES[i]; i++)
        if (strcmp(NAMES[i], topic) == 0) return PAGES[i](p);
    return ERR_OK;
}
