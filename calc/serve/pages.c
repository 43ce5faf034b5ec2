#include "calc/serve/pages.h"

#include <inttypes.h>

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* a + b and a * b, at most INT64_MAX; both >= 0. */
static int64_t plus(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return times(a / x, b);
}

static enum err_code check(const char *what, int64_t v, struct err *e)
{
    if (v >= 1 && v < INT64_MAX) return ERR_OK;
    return err_set(e, ERR_RANGE, "%s: found %" PRId64 ", wanted a number from 1 within 64 bits", what, v);
}

static bool windowed(enum pages_keep keep) { return keep == PAGES_WINDOW || keep == PAGES_CHUNKS; }

/* One type of all kinds that keep alike. */
static enum err_code add_kind(const struct pages_kind *k, struct pages *p, struct err *e)
{
    TRY(check("layers", k->layers, e));
    TRY(check(k->keep == PAGES_STATE ? "state bytes" : "bytes per token", k->bytes, e));
    if (windowed(k->keep)) TRY(check("window", k->window_tokens, e));
    for (size_t i = 0; i < p->types_n; i++) {
        struct pages_kind *t = &p->type[i].kind;
        if (t->keep != k->keep || t->bytes != k->bytes) continue;
        if (windowed(k->keep) && t->window_tokens != k->window_tokens) continue;
        t->layers = plus(t->layers, k->layers);
        return check("layers", t->layers, e);
    }
    if (p->types_n == PAGES_TYPES_MAX)
        return err_set(e, ERR_RANGE, "more than %d kinds of layers in one pool", PAGES_TYPES_MAX);
    p->type[p->types_n++] = (struct pages_type){.kind = *k};
    return ERR_OK;
}

/* The type whose tokens a state's page is counted in: of full attention, else of windows; NULL: states alone. */
static const struct pages_kind *token_kind(const struct pages *p)
{
    const struct pages_kind *any = NULL;
    for (size_t i = 0; i < p->types_n; i++) {
        const struct pages_kind *k = &p->type[i].kind;
        if (k->keep == PAGES_TOKENS) return k;
        if (k->keep != PAGES_STATE && !any) any = k;
    }
    return any;
}

/* Tokens of an attention block: as given, or so many that its page holds a state. */
static enum err_code raise_block(const struct pages_rule *rule, const struct pages_kind *tokens, struct pages *p,
                                 int64_t *block, struct err *e)
{
    *block = rule->block_tokens;
    if (p->state_bytes == 0) return ERR_OK;
    int64_t unit = rule->align_tokens;
    if (p->states == PAGES_STATES_ALL) {
        TRY(check("chunk of the scan", rule->chunk_tokens, e));
        unit = common_multiple(unit, rule->chunk_tokens);
    }
    const int64_t needed = times(unit, ceil_div(ceil_div(p->state_bytes, tokens->bytes), unit));
    if (*block < needed) *block = needed;
    return check("block", *block, e);
}

/* Pages of one size: that of the largest; a type with smaller tokens has a block as many times longer. */
static enum err_code unify(int64_t block, struct pages *p, struct err *e)
{
    p->page_bytes = p->block_tokens = 0;
    for (size_t i = 0; i < p->types_n; i++) {
        const struct pages_kind *k = &p->type[i].kind;
        const int64_t page = k->keep == PAGES_STATE ? k->bytes : times(k->bytes, block);
        if (page > p->page_bytes) p->page_bytes = page;
    }
    TRY(check("page", p->page_bytes, e));
    for (size_t i = 0; i < p->types_n; i++) {
        struct pages_type *t = &p->type[i];
        if (t->kind.keep == PAGES_STATE) continue;
        const int64_t page = t->kind.bytes * block;
        if (p->page_bytes % page != 0)
            return err_set(e, ERR_USAGE,
                           "pages of %" PRId64 " and %" PRId64
                           " bytes cannot be made equal by whole blocks: the engine refuses such layers",
                           page, p->page_bytes);
        t->block_tokens = block * (p->page_bytes / page);
        if (p->block_tokens == 0 || t->block_tokens < p->block_tokens) p->block_tokens = t->block_tokens;
    }
    return ERR_OK;
}

static enum err_code group(struct pages *p, struct err *e)
{
    int64_t few = INT64_MAX, many = 0, layers = 0, padded;
    for (size_t i = 0; i < p->types_n; i++) {
        const int64_t n = p->type[i].kind.layers;
        few = least(few, n);
        if (n > many) many = n;
        layers = plus(layers, n);
    }
    p->group_layers = (double)many < 1.5 * (double)few ? many : few;
    p->groups = 0;
    for (size_t i = 0; i < p->types_n; i++)
        p->groups += p->type[i].groups = ceil_div(p->type[i].kind.layers, p->group_layers);
    padded = times(p->groups, p->group_layers);
    TRY(check("padded layers", padded, e));
    p->padding_layers = padded - layers;
    return check("block", times(p->group_layers, p->page_bytes), e);
}

enum err_code pages_lay(const struct pages_kind *kinds, size_t n, const struct pages_rule *rule, struct pages *out,
                        struct err *e)
{
    struct pages p = {.states = rule->states, .draft_tokens = rule->draft_tokens};
    int64_t block;
    TRY(check("kinds of layers", (int64_t)n, e));
    TRY(check("drafted tokens and one", plus(rule->draft_tokens, 1), e));
    TRY(check("block", rule->block_tokens, e));
    TRY(check("alignment of a block", rule->align_tokens, e));
    for (size_t i = 0; i < n; i++) TRY(add_kind(&kinds[i], &p, e));
    for (size_t i = 0; i < p.types_n; i++)
        if (p.type[i].kind.keep == PAGES_STATE && p.type[i].kind.bytes > p.state_bytes)
            p.state_bytes = p.type[i].kind.bytes;
    const struct pages_kind *tokens = token_kind(&p);
    if (tokens) {
        TRY(raise_block(rule, tokens, &p, &block, e));
    } else {
        if (rule->max_model_len_tokens < 1)
            return err_set(
                e, ERR_USAGE,
                "a block of a model of states alone is max_model_len tokens, which is unknown: state it with "
                "--max-model-len N");
        block = rule->max_model_len_tokens;
    }
    TRY(unify(block, &p, e));
    if (!tokens) p.block_tokens = block;
    TRY(group(&p, e));
    *out = p;
    return ERR_OK;
}

bool pages_states_alone(const struct pages *p)
{
    for (size_t i = 0; i < p->types_n; i++)
        if (p->type[i].kind.keep != PAGES_STATE) return false;
    return true;
}

static int64_t of_type(const struct pages *p, const struct pages_type *t, int64_t tokens, int64_t step)
{
    const int64_t w = t->kind.window_tokens;
    switch (t->kind.keep) {
    case PAGES_TOKENS:
        return ceil_div(tokens, times(t->block_tokens, t->kind.context_ranks > 1 ? t->kind.context_ranks : 1));
    case PAGES_WINDOW: return ceil_div(least(plus(w - 1, step), tokens), t->block_tokens) + 1;
    case PAGES_CHUNKS: return ceil_div(least(plus(w, step), tokens), t->block_tokens);
    case PAGES_STATE: break;
    }
    if (p->states == PAGES_STATES_ALL) return ceil_div(tokens, p->block_tokens);
    return plus(p->states == PAGES_STATES_ALIGN ? 2 : 1, p->draft_tokens);
}

int64_t pages_of_sequence(const struct pages *p, int64_t tokens, int64_t step_tokens)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->types_n; i++)
        sum = plus(sum, times(p->type[i].groups, of_type(p, &p->type[i], tokens, step_tokens)));
    return sum;
}

int64_t pages_longest(const struct pages *p, int64_t blocks, int64_t step_tokens, int64_t limit)
{
    int64_t fits = 0, over = plus(limit, 1);
    while (over - fits > 1) {
        const int64_t mid = fits + (over - fits) / 2;
        if (pages_of_sequence(p, mid, step_tokens) <= blocks)
            fits = mid;
        else
            over = mid;
    }
    return fits;
}
