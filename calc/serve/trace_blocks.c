/* trace_blocks -- Mooncake's traces: JSON lines whose blocks of tokens have names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/serve/trace_parts.h"

enum { HASHES_MAX = 1 << 28 };

static enum err_code add_hash(struct reader *r, int64_t v)
{
    if (r->hash_n == r->hash_room) {
        const size_t room = r->hash_room ? r->hash_room * 2 : 256; /* not a unit */
        uint32_t *more = room > HASHES_MAX ? NULL : realloc(r->hash, room * sizeof *more);
        if (!more) return err_nomem(r->err);
        r->hash = more;
        r->hash_room = room;
    }
    r->hash[r->hash_n++] = (uint32_t)v;
    return ERR_OK;
}

/* The text of a value that begins at a byte, for a message. */
static struct piece value_at(const struct json_scan *s, size_t at)
{
    struct piece p = {s->text + at, 0};
    while (at + p.n < s->len && !strchr(",]}", p.s[p.n])) p.n++;
    while (p.n > 0 && (p.s[p.n - 1] == ' ' || p.s[p.n - 1] == '\t')) p.n--;
    return p;
}

/* A number of a member, which messages name. */
static enum err_code read_number(struct reader *r, struct json_scan *s, const char *wanted, double least, double most,
                                 bool whole, double *out)
{
    (void)json_scan_peek(s);
    const struct piece p = value_at(s, s->at);
    if (json_scan_number(s, out) == ERR_OK && *out >= least && *out <= most && !(whole && floor(*out) < *out))
        return ERR_OK;
    return trace_refuse(r, wanted, &p);
}

static enum err_code read_tokens(struct reader *r, struct json_scan *s, const char *name, int32_t *out)
{
    char wanted[160];
    double v;
    (void)snprintf(wanted, sizeof wanted, "%s: wanted a whole number of tokens from 1 to %d", name,
                   WORKLOAD_TOKENS_MAX);
    TRY(read_number(r, s, wanted, 1, WORKLOAD_TOKENS_MAX, true, &v));
    *out = (int32_t)v;
    return ERR_OK;
}

static enum err_code read_hashes(struct reader *r, struct json_scan *s, struct workload_request *q)
{
    bool more;
    double v;
    q->hash_first = (uint32_t)r->hash_n;
    if (json_scan_peek(s) != '[') return trace_refuse(r, "hash_ids: wanted a list", NULL);
    TRY(json_scan_array(s));
    for (;;) {
        TRY(json_scan_element(s, &more));
        if (!more) break;
        TRY(read_number(r, s, "hash_ids: wanted whole numbers from 0 to 4294967294", 0, UINT32_MAX - 1, true, &v));
        TRY(add_hash(r, (int64_t)v));
    }
    q->hash_n = (uint32_t)(r->hash_n - q->hash_first);
    return ERR_OK;
}

/* Members of a line that count. */
enum member { TIMESTAMP, INPUT_LENGTH, OUTPUT_LENGTH, HASH_IDS, MEMBERS };

static enum err_code read_member(struct reader *r, struct json_scan *s, struct workload_request *q, unsigned *seen,
                                 bool *more)
{
    static const char *const NAME[MEMBERS] = {"timestamp", "input_length", "output_length", "hash_ids"};
    struct json_text key;
    unsigned m = 0;
    double ms;
    TRY(json_scan_member(s, &key, more));
    if (!*more) return ERR_OK;
    while (m < MEMBERS && !json_text_is(key, NAME[m])) m++;
    if (m == MEMBERS) return json_scan_skip(s);
    if (*seen & 1u << m) return err_set(r->err, ERR_INPUT, "%s:%zu: %s twice", r->name, r->line, NAME[m]);
    *seen |= 1u << m;
    switch ((enum member)m) {
    case TIMESTAMP:
        TRY(read_number(r, s, "timestamp: wanted milliseconds from 0 on", 0, 1e15, false, &ms));
        q->arrival_s = ms / 1e3; /* not a unit: Mooncake counts milliseconds */
        return ERR_OK;
    case INPUT_LENGTH: return read_tokens(r, s, NAME[m], &q->prompt_tokens);
    case OUTPUT_LENGTH: return read_tokens(r, s, NAME[m], &q->output_tokens);
    case HASH_IDS:
    case MEMBERS: break;
    }
    return read_hashes(r, s, q);
}

/* Each name is of 512 tokens; some writers leave out the last, shorter block (Dynamo's hasher). */
static enum err_code check_hashes(struct reader *r, const struct workload_request *q)
{
    const int64_t full = q->prompt_tokens / TRACE_HASH_TOKENS, all = full + (q->prompt_tokens % TRACE_HASH_TOKENS > 0);
    if (q->hash_n == 0 || q->hash_n == full || q->hash_n == all) return ERR_OK;
    return err_set(r->err, ERR_INPUT,
                   "%s:%zu: hash_ids: %u name%s of blocks for input_length %d, wanted %lld, one for %d", r->name,
                   r->line, (unsigned)q->hash_n, q->hash_n == 1 ? "" : "s", (int)q->prompt_tokens, (long long)all,
                   TRACE_HASH_TOKENS);
}

static enum err_code read_json_line(struct reader *r, const struct piece *line)
{
    char name[240];
    struct workload_request q = {.next = WORKLOAD_NO_NEXT};
    const unsigned needed = 1u << TIMESTAMP | 1u << INPUT_LENGTH | 1u << OUTPUT_LENGTH;
    unsigned seen = 0;
    bool more = true;
    (void)snprintf(name, sizeof name, "%s:%zu", r->name, r->line);
    struct json_scan s = json_scan_open(r->arena, name, line->s, line->n, r->err);
    TRY(json_scan_object(&s));
    while (more) TRY(read_member(r, &s, &q, &seen, &more));
    if (json_scan_peek(&s) != 0) return json_scan_want(&s, "nothing behind the object of a line");
    if ((seen & needed) != needed) return trace_refuse(r, "wanted timestamp, input_length and output_length", NULL);
    TRY(check_hashes(r, &q));
    return trace_add(r, &q);
}

enum err_code trace_json(struct reader *r, struct piece line)
{
    do {
        while (line.n > 0 && (line.s[line.n - 1] == ' ' || line.s[line.n - 1] == '\t')) line.n--;
        if (line.n > 0) TRY(read_json_line(r, &line));
        TRY(trace_tell(r));
    } while (trace_line(r, &line));
    return ERR_OK;
}

/* Where a block is found: its name behind all that is before it. */
struct behind {
    uint32_t before, name, chain; /* chain 0: a free place */
};

static struct behind *place_of(struct behind *of, size_t mask, uint32_t before, uint32_t name)
{
    uint64_t x = ((uint64_t)before << 32 | name) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(x ^ x >> 29) & mask;
    while (of[at].chain && (of[at].before != before || of[at].name != name)) at = (at + 1) & mask;
    return &of[at];
}

enum err_code trace_chain(struct reader *r, uint32_t *hash, size_t *apart)
{
    size_t mask = 15;
    uint32_t chains = 0;
    *apart = 0;
    if (r->hash_n == 0) return ERR_OK;
    while (mask < 2 * r->hash_n) mask = 2 * mask + 1;
    struct behind *of = calloc(mask + 1, sizeof *of), *first = calloc(mask + 1, sizeof *first);
    for (size_t i = 0; of && first && i < r->n; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < r->row[i].hash_n; k++) {
            const uint32_t name = r->hash[r->row[i].hash_first + k];
            struct behind *x = place_of(of, mask, before, name), *y = place_of(first, mask, 0, name);
            if (!x->chain) {
                *x = (struct behind){before, name, ++chains};
                if (!y->chain) *y = (struct behind){0, name, x->chain};
            }
            if (y->chain != x->chain && y->chain != UINT32_MAX) {
                y->chain = UINT32_MAX;
                ++*apart;
            }
            hash[r->row[i].hash_first + k] = before = x->chain;
        }
    }
    const bool lost = !of || !first;
    free(of);
    free(first);
    return lost ? err_nomem(r->err) : ERR_OK;
}
