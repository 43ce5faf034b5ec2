#include "calc/learn/bank_serving.h"
#include "calc/serve/paged.h"

enum { POOL = 1 << 13, ANSWERS = 9 };

/* Blocks of a sequence of its own. */
static int64_t blocks_of(const struct paged *p, int64_t tokens)
{
    const struct paged_list none = {0};
    return paged_need(p, &none, tokens);
}

enum err_code bank_paged_waste(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BLOCKS[] = {8, 16, 32, 64}, TOKEN[] = {24, 36, 128, 160, 320};
    enum { SEQUENCES = 5 };
    struct paged p;
    const int64_t b = bank_pick(m, 4, BLOCKS), most = 512 * bank_draw(m, 2, 8), kib = bank_pick(m, 5, TOKEN);
    int64_t tokens, blocks, whole;
    const char *lengths;
    TRY(paged_open(m->arena, POOL, b, false, &p, e));
    do {
        lengths = "";
        tokens = blocks = whole = 0;
        for (int i = 0; i < SEQUENCES; i++) {
            const int64_t len = bank_draw(m, 17, most * 3 / 4);
            tokens += len;
            blocks += blocks_of(&p, len);
            whole += len / b;
            lengths = bank_printf(m, "%s%s%lld", lengths,
                                  i == 0               ? ""
                                  : i + 1 == SEQUENCES ? " and "
                                                       : ", ",
                                  (long long)len);
        }
    } while (blocks * b == tokens);
    const double token = (double)(kib * 1024), empty = (double)(blocks * b - tokens); /* not a unit */
    bank_ask(q, UNITS_BYTES, empty * token, 0.01, "bytes with their unit");
    q->text =
        bank_printf(m,
                    "A server keeps its cache in blocks of b = %lld tokens; a sequence has whole blocks. A token "
                    "takes %s bytes. Five sequences hold %s tokens. How many bytes of their blocks hold no "
                    "token? (Before paging, each would have reserved room for the longest possible, %lld tokens.)",
                    (long long)b, bank_digits(m, token), lengths, (long long)most);
    bank_slip(q, (double)(SEQUENCES * most - tokens) * token, "This is what reserving the longest possible wastes.");
    bank_slip(q, (double)(tokens - whole * b) * token, "These are the tokens in the last blocks, not what is empty.");
    bank_slip(q, (double)(SEQUENCES * b) * token, "This is a whole block each: the last one is only partly empty.");
    bank_slip(q, (double)(SEQUENCES * (b - 1)) / 2 * token, "This is the average over all lengths, not of these.");
    bank_slip(q, empty, "These are tokens: each takes bytes.");
    bank_step(q, bank_printf(m, "blocks: the sum of ceil(n/b) = %lld, room for %lld tokens", (long long)blocks,
                             (long long)(blocks * b)));
    bank_step(q, bank_printf(m, "of that %lld are there: %.0f tokens are missing", (long long)tokens, empty));
    bank_step(q,
              bank_printf(m, "%.0f * %s = %s, %.2g %% of what is allotted; reserved rooms would waste %.3g %%", empty,
                          bank_digits(m, token), bank_shown(m, UNITS_BYTES, empty * token),
                          100 * empty / (double)(blocks * b), 100 * (1 - (double)tokens / (double)(SEQUENCES * most))));
    return ERR_OK;
}

/* What so many answers to a prompt hold in the end, and how many blocks were copied on a write. */
static enum err_code answers_hold(struct exercise_maker *m, int64_t b, int64_t P, int64_t O, int64_t k, int64_t *held,
                                  int64_t *copies, struct err *e)
{
    struct paged p;
    struct paged_list list[ANSWERS] = {{0}};
    enum err_code code = paged_open(m->arena, POOL, b, false, &p, e);
    if (code != ERR_OK) return code;
    code = paged_grow(&p, &list[0], P);
    for (int64_t i = 1; i < k && code == ERR_OK; i++) code = paged_fork(&p, &list[0], &list[i]);
    for (int64_t i = 0; i < k && code == ERR_OK; i++) code = paged_grow(&p, &list[i], O);
    *held = p.blocks - p.idle;
    *copies = p.copies;
    for (int64_t i = 0; i < k; i++) paged_release(&p, &list[i]);
    return code == ERR_OK ? ERR_OK : err_nomem(e);
}

enum err_code bank_paged_copies(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BLOCKS[] = {8, 16, 32};
    const int64_t b = bank_pick(m, 3, BLOCKS), k = bank_draw(m, 2, ANSWERS - 1), O = bank_draw(m, 20, 400);
    int64_t P = bank_draw(m, 60, 900), held, copies;
    if (P % b == 0) P++;
    TRY(answers_hold(m, b, P, O, k, &held, &copies, e));
    const int64_t full = P / b, each = (P % b + O + b - 1) / b;
    bank_ask(q, UNITS_COUNT, (double)held, 0, "a whole number of blocks");
    q->things = "block";
    q->text = bank_printf(m,
                          "A prompt of P = %lld tokens is answered k = %lld times at once, each answer O = %lld tokens "
                          "long and all of it in the cache, in blocks of b = %lld tokens. The answers share "
                          "the prompt's blocks; who writes into a block that others refer to gets a copy of it first. "
                          "How many blocks are in use when the last token is written?",
                          (long long)P, (long long)k, (long long)O, (long long)b);
    bank_slip(q, (double)(k * ((P + O + b - 1) / b)), "This shares nothing: the prompt's full blocks are there once.");
    bank_slip(q, (double)(full + each), "This is one answer: each has blocks of its own behind the prompt.");
    bank_slip(q, (double)((P + b - 1) / b + k * ((O + b - 1) / b)),
              "This begins each answer in a new block: it goes on in its copy of the prompt's last one.");
    bank_slip(q, (double)((P + k * O + b - 1) / b), "This packs all answers behind each other: no block holds two.");
    bank_slip(q, (double)(k * each), "This leaves out the prompt's full blocks.");
    bank_step(q, bank_printf(m, "shared for good: floor(P/b) = floor(%lld/%lld) = %lld full blocks", (long long)P,
                             (long long)b, (long long)full));
    bank_step(q, bank_printf(m,
                             "an answer: P mod b = %lld tokens of the prompt's last block, and O: ceil(%lld/%lld) = "
                             "%lld blocks",
                             (long long)(P % b), (long long)(P % b + O), (long long)b, (long long)each));
    bank_step(q,
              bank_printf(m, "%lld + %lld * %lld = %lld; %lld block%s copied, as the last to write keeps the original",
                          (long long)full, (long long)k, (long long)each, (long long)held, (long long)copies,
                          copies == 1 ? " was" : "s were"));
    return ERR_OK;
}

enum err_code bank_paged_prefix(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BLOCKS[] = {16, 32, 64, 128};
    const int64_t b = bank_pick(m, 4, BLOCKS), S = bank_draw(m, 2 * b + 1, 900), U = bank_draw(m, 30, 700);
    const int64_t hit = S / b * b;
    const double all = (double)(S + U), part = 1 - (double)hit / all;
    (void)e;
    bank_ask(q, UNITS_FRAC, part, 0.01, "a part");
    q->text = bank_printf(m,
                          "Every prompt begins with the same system prompt of S = %lld tokens, and U = %lld tokens of "
                          "its own follow. The cache keeps whole blocks of b = %lld tokens, found again by what is in "
                          "them and in front of them. Once it is warm, which part of a prompt's tokens is computed?",
                          (long long)S, (long long)U, (long long)b);
    bank_slip(q, (double)U / all, "This finds all of the prefix: the block that it ends in holds other tokens, too.");
    bank_slip(q, 1 - part, "This is the part that is found.");
    bank_slip(q, 1 - (double)((S + b - 1) / b * b) / all, "This finds the block that the prefix ends in: round down.");
    bank_slip(q, (double)U / (double)S, "This compares the two: the whole is both.");
    bank_slip(q, 1, "This computes everything: the prefix is in the cache.");
    bank_step(q, bank_printf(m, "found: b*floor(S/b) = %lld * %lld = %lld tokens", (long long)b, (long long)(S / b),
                             (long long)hit));
    bank_step(q, bank_printf(m, "computed: (%lld - %lld) / %lld = %.4g", (long long)(S + U), (long long)hit,
                             (long long)(S + U), part));
    return ERR_OK;
}
