/* Every page of `ridge explain`: topics and plain names, in all phases, of the textbook, the lecture and models of
 * every structure. Formulas are read back from what is printed, lines of numbers are the formulas with numbers bound,
 * sums are those of the cost model, and no line is too long for a terminal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/text.h"
#include "calc/cli/explain_page.h"
#include "calc/learn/derive.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"
#include "calc/sym/print.h"
#include "tests/draws.h"
#include "tests/learn.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { COLUMNS = 80, TEXT_MAX_BYTES = 1 << 16 };

static const struct scope_case {
    const char *model, *gpu;
    int64_t tp, tokens;
    bool course;
    enum step_fidelity fidelity;
} SCOPES[] = {
    {NULL, NULL, 1, 0, false, STEP_ROOFLINE},
    {NULL, NULL, 1, 0, true, STEP_BOUND},
    {NULL, NULL, 2, 0, false, STEP_ROOFLINE},
    {NULL, "h100-sxm", 1, 0, false, STEP_BOUND},
    {"llama-2-13b", "h100-sxm", 1, 0, true, STEP_BOUND},
    {"llama-2-13b", "h100-sxm", 1, 5, false, STEP_ROOFLINE},
    {"llama-3.1-70b", "h100-sxm", 2, 0, false, STEP_ROOFLINE},
    {"deepseek-v3", "h200-sxm", 8, 0, false, STEP_ROOFLINE},
    {"gemma-3-27b", "mi300x", 1, 0, false, STEP_ROOFLINE},
    {"mixtral-8x7b", "a100-80g", 2, 0, false, STEP_BOUND},
    {"gpt2-xl", NULL, 1, 0, false, STEP_ROOFLINE},
};

static const char *const PLAIN[] = {"params",     "active_params", "weight_bytes", "kv_bytes",      "resident_bytes",
                                    "throughput", "ridge",         "peak",         "capacity_bytes"};

struct page {
    struct learn f;
    struct quantity_scope symbols;
    const struct scope_case *of;
    const char *topic;
    enum quantity_phase phase;
    struct derivation d;
    struct parse_symbol names[80];
    struct parse_names parse;
    struct err err;
};

static void open_page(struct page *p, const struct scope_case *of)
{
    *p = (struct page){.of = of};
    if (learn_open(&p->f, of->model, of->gpu, of->tp, of->course, &p->err) != ERR_OK) fail_msg("%s", p->err.text);
    struct quantity_scope *s = &p->f.scope;
    s->fidelity = of->fidelity;
    if (of->tokens) s->tokens = sym_int(s->c, of->tokens);
    p->symbols = *s;
    p->symbols.sizes = QUANTITY_SYMBOLS;
    p->symbols.rates = rates_make(s->c);
    const struct parse_symbol all[] = {
#define X(field, text, meaning) {text, s->y.field},
        COST_SYMBOLS(X)
#undef X
            {"decode_step", sym_var(s->c, "decode_step")},
    };
    size_t n = COUNT(all);
    _Static_assert(COUNT(all) + RATES_N <= COUNT(p->names), "room for the rates");
    memcpy(p->names, all, sizeof all);
    for (size_t i = 0; i < RATES_N; i++) {
        const char *meaning;
        const struct sym *rate = rates_list(&p->symbols.rates, i, &meaning);
        p->names[n++] = (struct parse_symbol){sym_name(rate), rate};
    }
    p->parse = (struct parse_names){.symbols = p->names, .n_symbols = n};
}

/* false: the model has no such topic */
static bool derive(struct page *p, const char *topic, enum quantity_phase phase)
{
    const struct derive_request q = {.symbols = &p->symbols,
                                     .numbers = p->of->model || p->of->gpu ? &p->f.scope : NULL,
                                     .phase = phase,
                                     .batch = 3,
                                     .context = 1021};
    p->topic = topic;
    p->phase = phase;
    const enum err_code code = derive_topic(&q, topic, &p->d, &p->err);
    if (code == ERR_OK) return true;
    const bool absent = strstr(p->err.text, "has no ") || strstr(p->err.text, "kinds of layer") ||
                        (!p->of->gpu && strcmp(topic, "capacity_bytes") == 0);
    if (code != ERR_USAGE || !absent) fail_msg("%s of %s: %s", topic, p->of->model, p->err.text);
    return false;
}

/* visit every page */
static void each_page(void (*check)(struct page *p), bool whole)
{
    const size_t each = draws(4) < 4 ? 4 : 1;
    size_t pages = 0, turn = 0;
    for (size_t i = 0; i < COUNT(SCOPES); i++) {
        struct page p;
        open_page(&p, &SCOPES[i]);
        for (enum quantity_phase phase = QUANTITY_ANY; phase <= QUANTITY_DECODE; phase++)
            for (const char *const *name = quantity_names(); *name; name++) {
                const bool pass = strcmp(*name, "decode_step") == 0 || strcmp(*name, "prefill") == 0;
                if (pass && (!whole || phase == QUANTITY_ANY)) continue; /* their phase is given */
                if (turn++ % each || !derive(&p, *name, phase)) continue;
                check(&p);
                pages++;
            }
        for (size_t k = 0; k < COUNT(PLAIN); k++)
            if (derive(&p, PLAIN[k], QUANTITY_DECODE)) {
                check(&p);
                pages++;
            }
        arena_close(p.f.a);
    }
    assert_true(pages > 400 / each);
}

/* ---- columns ---- */

static void check_columns(struct page *p)
{
    struct out *o;
    size_t n;
    assert_int_equal(out_memory(p->f.a, &o, &p->err), ERR_OK);
    assert_int_equal(explain_page_text(p->f.a, o, &p->d, &p->err), ERR_OK);
    const char *text = out_text(o, &n);
    assert_int_equal(strlen(text), n);
    for (const char *line = text; *line;) {
        const size_t len = strcspn(line, "\n");
        if (text_width(line, len) > COLUMNS) fail_msg("%s of %s: %.*s", p->topic, p->of->model, (int)len, line);
        assert_true(len == 0 || line[len - 1] != ' ');
        line += len + (line[len] == '\n');
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "(null)"));
    assert_null(strstr(text, "unknown"));
    if (strstr(text, " 0\n")) fail_msg("%s of %s: a line that says nothing: %s", p->topic, p->of->model, text);
}

static void test_pages_fit_a_terminal(void **state)
{
    (void)state;
    each_page(check_columns, true);
}

/* ---- formulas ---- */

static const struct sym *read_back(struct page *p, const char *text)
{
    const struct sym *e = NULL;
    if (sym_parse(p->f.scope.c, text, strlen(text), &p->parse, &e, NULL, &p->err) != ERR_OK)
        fail_msg("%s of %s: %s: %s", p->topic, p->of->model, text, p->err.text);
    return e;
}

static void check_read_back(struct page *p, const struct sym *e)
{
    static const enum sym_style STYLES[] = {SYM_TEXT, SYM_LATEX};
    char *text = arena_alloc(p->f.a, TEXT_MAX_BYTES);
    bool equal;
    for (size_t i = 0; i < COUNT(STYLES); i++) {
        assert_true(sym_print_as(e, STYLES[i], text, TEXT_MAX_BYTES) < TEXT_MAX_BYTES);
        const struct sym *back = read_back(p, text);
        if (back == e) continue;
        if (sym_equal(p->f.scope.c, back, e, &equal, &p->err) != ERR_OK) fail_msg("%s: %s", text, p->err.text);
        if (!equal) fail_msg("%s of %s: read back differs: %s", p->topic, p->of->model, text);
    }
}

static void check_formulas(struct page *p)
{
    for (size_t i = 0; i < p->d.n; i++)
        for (size_t k = 0; k < p->d.section[i].n; k++) {
            const struct derive_line *l = &p->d.section[i].line[k];
            assert_true(l->formula || l->text);
            if (l->formula) check_read_back(p, l->formula);
            if (l->numbers) check_read_back(p, l->numbers);
        }
}

static void test_formulas_read_back(void **state)
{
    (void)state;
    each_page(check_formulas, false);
}

/* the penalties of line breaking out of a formula of a LaTeX page, in place */
static void strip_breaks(char *text)
{
    static const char *const BREAKS[] = {"\\displaystyle ", "\\,\\penalty700", "\\penalty500 ", "\\penalty0 ", "= "};
    for (size_t i = 0; i < COUNT(BREAKS); i++)
        for (char *at; (at = strstr(text, BREAKS[i]));)
            memmove(at, at + strlen(BREAKS[i]), strlen(at + strlen(BREAKS[i])) + 1);
}

/* The formulas between dollars, in order, are those of the page. */
static void check_latex(struct page *p)
{
    struct out *o;
    char *text = arena_alloc(p->f.a, TEXT_MAX_BYTES);
    bool equal;
    assert_int_equal(out_memory(p->f.a, &o, &p->err), ERR_OK);
    assert_int_equal(explain_page_latex(p->f.a, o, &p->d, &p->err), ERR_OK);
    const char *at = strchr(out_text(o, NULL), '$');
    for (size_t i = 0; i < p->d.n; i++)
        for (size_t k = 0; k < 2 * p->d.section[i].n; k++) {
            const struct derive_line *l = &p->d.section[i].line[k / 2];
            const struct sym *want = k % 2 ? l->numbers : l->formula;
            if (!want) continue;
            assert_non_null(at);
            const size_t n = strcspn(at + 1, "$");
            assert_true(n < TEXT_MAX_BYTES);
            memcpy(text, at + 1, n);
            text[n] = '\0';
            strip_breaks(text);
            const struct sym *back = read_back(p, text);
            at = strchr(at + n + 2, '$');
            if (back == want) continue;
            assert_int_equal(sym_equal(p->f.scope.c, back, want, &equal, &p->err), ERR_OK);
            if (!equal) fail_msg("%s of %s: read back differs: %s", p->topic, p->of->model, text);
        }
    assert_null(at);
}

static void test_latex_formulas_read_back(void **state)
{
    (void)state;
    each_page(check_latex, true);
}

/* The numbers of one rank of a model with one kind of layer, and of its device. */
static size_t numbers_of(const struct page *p, struct sym_binding *env)
{
    const struct quantity_scope *s = &p->f.scope;
    const struct model *m = s->model;
    const struct layer_kind *k = &m->kinds[0];
    const struct cost_symbols *y = &s->y;
    const bool whole = strstr(p->topic, "params") != NULL; /* of the model, not of a rank */
    const int64_t t = whole ? 1 : s->tp;
    const struct {
        const struct sym *var;
        int64_t value;
    } sizes[] = {{y->D, m->hidden},
                 {y->F, k->ffn.width / t},
                 {y->N, k->mixer.heads / t},
                 {y->K, k->mixer.kv_heads > t ? k->mixer.kv_heads / t : 1},
                 {y->H, k->mixer.head_dim},
                 {y->Hv, k->mixer.v_head_dim},
                 {y->V, (m->vocab + t - 1) / t},
                 {y->E, k->ffn.experts},
                 {y->k, k->ffn.experts_per_token},
                 {y->W, k->mixer.window_tokens},
                 {y->P, m->position_rows},
                 {y->t, t}};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(sizes); i++)
        env[n++] = (struct sym_binding){sizes[i].var, sym_int(s->c, sizes[i].value)};
    for (size_t i = 0; i < RATES_N; i++) {
        const char *meaning;
        const struct sym *rate = rates_list(&p->symbols.rates, i, &meaning);
        env[n++] = (struct sym_binding){rate, rates_list(&s->rates, i, &meaning)};
    }
    return n;
}

static void check_numbers(struct page *p)
{
    struct sym_ctx *c = p->f.scope.c;
    struct sym_binding env[40];
    if (!p->of->model || p->f.model.kinds_n != 1) return;
    const size_t n = numbers_of(p, env);
    for (size_t i = 0; i < p->d.n; i++)
        for (size_t k = 0; k < p->d.section[i].n; k++) {
            const struct derive_line *l = &p->d.section[i].line[k];
            bool equal;
            if (!l->numbers) continue;
            const struct sym *bound = sym_bind(c, l->formula, env, n);
            if (sym_equal(c, bound, l->numbers, &equal, &p->err) != ERR_OK) fail_msg("%s", p->err.text);
            if (!equal) fail_msg("%s of %s: numbers of %s", p->topic, p->of->model, l->label);
        }
}

static void test_numbers_are_the_formulas_with_numbers(void **state)
{
    (void)state;
    each_page(check_numbers, true);
}

/* ---- where they come from ---- */

static const struct derive_line *find_line(const struct derivation *d, const char *section, const char *label)
{
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->section[i].n; k++)
            if (strncmp(d->section[i].title, section, strlen(section)) == 0 &&
                strcmp(d->section[i].line[k].label, label) == 0)
                return &d->section[i].line[k];
    fail_msg("no %s in %s", label, section);
    return NULL;
}

/* Sums over the operators of cost_build, made here: times their count in a whole pass. */
static void test_sums_are_those_of_the_cost_model(void **state)
{
    static const struct {
        const char *topic, *op[2];
        bool fused, whole;
        enum quantity_phase phase;
    } ROWS[] = {{"mlp", {"mlp", NULL}, true, false, QUANTITY_ANY},
                {"qkv_proj", {"qkv_proj", NULL}, false, false, QUANTITY_ANY},
                {"attention", {"attention", NULL}, false, false, QUANTITY_PREFILL},
                {"attention", {"attention", NULL}, false, false, QUANTITY_DECODE},
                {"lm_head", {"lm_head", NULL}, false, false, QUANTITY_DECODE},
                {"decode_step", {NULL, NULL}, false, true, QUANTITY_DECODE},
                {"prefill", {NULL, NULL}, false, true, QUANTITY_PREFILL}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        static const struct scope_case OF = {"llama-3.1-8b", "h100-sxm", 1, 0, false, STEP_ROOFLINE};
        struct page p;
        struct cost_ops ops;
        bool equal;
        open_page(&p, &OF);
        struct quantity_scope *s = &p.f.scope;
        struct sym_ctx *c = s->c;
        assert_true(derive(&p, ROWS[i].topic, ROWS[i].phase));
        const bool decode = ROWS[i].phase == QUANTITY_DECODE;
        const struct cost_conventions v = {.mlp_fused = ROWS[i].fused};
        const struct cost_pass pass = {.name = "pass",
                                       .B = strcmp(ROWS[i].topic, "prefill") == 0 ? sym_int(c, 1) : s->y.B,
                                       .S = s->y.S,
                                       .T = decode                              ? sym_int(c, 1)
                                            : ROWS[i].phase == QUANTITY_PREFILL ? s->y.S
                                                                                : s->y.T,
                                       .absorbed = decode};
        assert_int_equal(cost_build(p.f.a, c, &s->y, &p.f.model, &v, &pass, 1, &ops, &p.err), ERR_OK);
        assert_int_equal(cost_bind(c, &s->y, &p.f.model, 1, &ops, &p.err), ERR_OK);
        const struct sym *flops = sym_int(c, 0), *bytes = sym_int(c, 0), *weights = sym_int(c, 0);
        for (size_t k = 0; k < ops.n; k++) {
            const struct cost_op *op = &ops.op[k];
            if (!ROWS[i].whole && strcmp(op->name, ROWS[i].op[0]) != 0) continue;
            const struct sym *n = sym_int(c, ROWS[i].whole ? op->count : 1);
            flops = sym_add(c, flops, sym_mul(c, n, op->flops));
            weights = sym_add(c, weights, sym_mul(c, n, op->weight_bytes));
            bytes = sym_add(c, bytes, sym_mul(c, n, SYM_SUM(c, op->weight_bytes, op->kv_bytes, op->activation_bytes)));
        }
        const struct {
            const char *label;
            const struct sym *want;
        } sums[] = {{"FLOPs", flops}, {ROWS[i].whole ? "weights" : "bytes", ROWS[i].whole ? weights : bytes}};
        for (size_t k = 0; k < COUNT(sums); k++) {
            const struct derive_line *l = find_line(&p.d, "in all", sums[k].label);
            const struct sym *got = l->numbers ? l->numbers : l->formula;
            assert_int_equal(sym_equal(c, got, sums[k].want, &equal, &p.err), ERR_OK);
            if (!equal) fail_msg("%s: %s", ROWS[i].topic, sums[k].label);
        }
        arena_close(p.f.a);
    }
}

/* The lecture's by-hand results. */
static void test_the_lecture(void **state)
{
    static const struct {
        const char *topic, *section, *label, *want;
    } ROWS[] = {{"mlp", "in all", "FLOPs", "6*B*T*D*F"},
                {"mlp", "in all", "bytes", "4*B*T*D + 4*B*T*F + 6*D*F"},
                {"mlp", "in all", "widths -> inf", "B*T"},
                {"mlp", "decode", "widths -> inf", "B"},
                {"attention", "in all", "intensity", "S*T/(S + T)"},
                {"attention", "prefill", "intensity", "S/2"},
                {"attention", "decode", "intensity", "S/(S + 1)"},
                {"attention", "decode", "S -> inf", "1"},
                {"shared_expert", "in all", "widths -> inf", "B*T"},
                {"o_proj", "in all", "widths -> inf", "B*T"},
                {"q_absorb", "in all", "widths -> inf", "B*T"},
                {"kv_a_proj", "in all", "widths -> inf", "B*T"},
                {"experts", "in all", "widths -> inf", "B*T*k/(E*(1 - (1 - k/E)^(B*T)))"},
                {"kv_bytes", "formula", "kv_bytes", "4*B*S*L*K*H"},
                {"params", "formula", "params", "2*V*D + L*(3*D*F + 2*D*N*H + 2*D*K*H)"}};
    (void)state;
    struct page p;
    bool equal;
    open_page(&p, &SCOPES[1]);
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        assert_true(derive(&p, ROWS[i].topic, QUANTITY_ANY));
        const struct derive_line *l = find_line(&p.d, ROWS[i].section, ROWS[i].label);
        assert_int_equal(sym_equal(p.f.scope.c, l->formula, read_back(&p, ROWS[i].want), &equal, &p.err), ERR_OK);
        if (!equal) fail_msg("%s %s", ROWS[i].topic, ROWS[i].label);
    }
    arena_close(p.f.a);
}

/* Each operator's share is that of the step; they and the others make 100 %. */
static void test_shares(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(SCOPES); i++) {
        struct page p;
        if (!SCOPES[i].model || !SCOPES[i].gpu || SCOPES[i].fidelity == STEP_BOUND) continue;
        open_page(&p, &SCOPES[i]);
        assert_true(derive(&p, "decode_step", QUANTITY_DECODE));
        double sum = 0, before = 100;
        size_t n = 0;
        for (size_t k = 0; k < p.d.section[0].n; k++) {
            const struct derive_line *l = &p.d.section[0].line[k];
            double share;
            if (sscanf(l->label, "%lf %%", &share) != 1) continue;
            sum += share;
            n++;
            if (strstr(l->text, "others together")) continue;
            assert_true(share <= before && share >= 0.45);
            before = share;
        }
        assert_true(n > 3 && fabs(sum - 100) < 0.06 * (double)n);
        arena_close(p.f.a);
    }
}

/* A name from a file does not steer the terminal. */
/* The cache and the state of every model are those of the columns, at contexts on either side of a window. */
static void test_cache_is_that_of_the_columns(void **state)
{
    static const int64_t CONTEXTS[] = {1, 64, 127, 128, 4096};
    static const char V4[] =
        "{\"model_type\":\"deepseek_v4\",\"hidden_size\":20,\"num_hidden_layers\":3,\"num_attention_heads\":4,"
        "\"head_dim\":12,\"qk_rope_head_dim\":4,\"q_lora_rank\":7,\"o_groups\":2,\"o_lora_rank\":5,\"vocab_size\":19,"
        "\"compress_ratios\":[0,4,128],\"index_n_heads\":6,\"index_head_dim\":8,\"n_routed_experts\":6,"
        "\"num_experts_per_tok\":2,\"moe_intermediate_size\":9,\"n_shared_experts\":1}";
    struct arena *all = arena_open();
    const char *const *names;
    const size_t n = model_builtins(all, &names);
    assert_true(n > 0);
    (void)state;
    for (size_t i = 0; i <= n; i++) {
        struct arena *a = arena_open();
        struct err e = {.code = ERR_OK};
        struct quantity_scope s;
        struct quantity_named q[QUANTITY_NAMED_MAX];
        struct cost_cache cache;
        struct json j;
        struct model m;
        size_t q_n = 0;
        if (i < n) {
            if (model_load(a, names[i], NULL, 0, &m, &e) != ERR_OK) fail_msg("%s: %s", names[i], e.text);
        } else {
            assert_int_equal(json_parse(a, "v4", V4, strlen(V4), &j, &e), ERR_OK);
            if (model_parse(a, &j, &m, &e) != ERR_OK) fail_msg("%s", e.text);
            m.name = "v4";
        }
        if (!model_passes_whole(&m)) {
            assert_int_equal(quantity_open(a, NULL, false, &s, &e), ERR_OK);
            s.model = &m;
            if (quantity_named_all(&s, q, &q_n, &e) != ERR_OK) fail_msg("%s: %s", m.name, e.text);
            assert_int_equal(cost_cache(s.c, &s.y, &m, 1, &cache, &e), ERR_OK);
        }
        for (size_t k = 0; k < q_n; k++)
            for (size_t at = 0; at < COUNT(CONTEXTS); at++) {
                const bool kv = strcmp(q[k].name, "kv_bytes") == 0;
                if (!kv && strcmp(q[k].name, "state_bytes") != 0) continue;
                const struct sym_binding in[] = {{s.y.S, sym_int(s.c, CONTEXTS[at])}, {s.y.B, sym_int(s.c, 3)}};
                double found = -1, column = cache.state_bytes_per_sequence;
                if (!sym_constant(sym_bind(s.c, q[k].value, in, 2), &found)) fail_msg("%s: no number", m.name);
                if (kv) assert_true(sym_constant(sym_bind(s.c, cache.bytes_per_sequence, in, 2), &column));
                if (found > 3 * column * (1 + 1e-12) || found < 3 * column * (1 - 1e-12))
                    fail_msg("%s: %s at %lld is %.1f, the column 3 x %.1f", m.name, q[k].name, (long long)CONTEXTS[at],
                             found, column);
            }
        arena_close(a);
    }
    arena_close(all);
}

static void test_hostile_names(void **state)
{
    (void)state;
    struct page p;
    struct out *o;
    open_page(&p, &SCOPES[4]);
    p.f.model.name = "\x1b[2J\n\"; \xe2\x80\xae\xffx";
    p.f.hw.name = "gpu\x1b]0;\a";
    assert_true(derive(&p, "mlp", QUANTITY_DECODE));
    assert_int_equal(out_memory(p.f.a, &o, &p.err), ERR_OK);
    assert_int_equal(explain_page_text(p.f.a, o, &p.d, &p.err), ERR_OK);
    const char *text = out_text(o, NULL);
    assert_non_null(strstr(text, "?[2J?\"; ??x"));
    assert_non_null(strstr(text, "gpu?]0;?"));
    assert_null(strchr(text, '\x1b'));
    arena_close(p.f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_fit_a_terminal),
        cmocka_unit_test(test_formulas_read_back),
        cmocka_unit_test(test_latex_formulas_read_back),
        cmocka_unit_test(test_numbers_are_the_formulas_with_numbers),
        cmocka_unit_test(test_sums_are_those_of_the_cost_model),
        cmocka_unit_test(test_the_lecture),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_cache_is_that_of_the_columns),
        cmocka_unit_test(test_hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
