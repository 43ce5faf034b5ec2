#include "calc/cli/probe_known.h"

#include <stdlib.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/base/json_scan.h"
#include "calc/cli/probe_cells.h"

/* What is known of a row, each once: what it says; that and when it was made; that and its cells as they stand. */
enum key { SAYS, DATED, EXACT, KEYS_N };

struct slot {
    uint64_t hash;
    uint32_t more; /* of the hash */
    uint32_t file; /* that it was first met in, from 1, the store being 1; 0: a free place */
};

/* Open addressing; at most three quarters of the places are taken. */
struct probe_known {
    struct slot *slots;
    size_t room, n; /* room: a power of two */
    uint32_t file;
};

enum { FIRST_ROOM = 1 << 10 };

static void release(void *what) { free(((struct probe_known *)what)->slots); }

/* -- hashes -- */

/* A second hash that agrees with FNV-1a on no more texts than any other does: the finaliser of MurmurHash3 (fmix64,
 * Appleby, public domain) over the running value and a word. */
static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

static void add(uint64_t h[2], const void *data, size_t n)
{
    const unsigned char *at = data;
    h[0] = hash_more(h[0], data, n);
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at + i, n - i < sizeof word ? n - i : sizeof word);
        h[1] = mix(h[1], word + n);
    }
}

static void add_text(uint64_t h[2], const char *text) { add(h, text, strlen(text) + 1); }

/* Cells in whatever order: the sum of what each is, but of what counts before the row. */
static enum err_code add_cells(struct arena *a, const char *cells, uint64_t h[2], struct err *e)
{
    struct json_text key, value;
    bool more = *cells != '\0';
    uint64_t sum[2] = {0, 0};
    struct json_scan s = json_scan_open(a, "cells", cells, strlen(cells), e);
    if (more) TRY(json_scan_object(&s));
    while (more) {
        uint64_t one[2] = {hash_start(), 0};
        TRY(json_scan_member(&s, &key, &more));
        if (!more) break;
        const bool counts =
            !(key.len == strlen(PROBE_CELLS_PRECEDENCE) && memcmp(key.s, PROBE_CELLS_PRECEDENCE, key.len) == 0);
        add(one, key.s, key.len);
        TRY(json_scan_text(&s, &value));
        add(one, value.s, value.len);
        sum[0] += counts ? one[0] : 0;
        sum[1] += counts ? one[1] : 0;
    }
    add(h, sum, sizeof sum);
    return ERR_OK;
}

static struct slot key_of(const uint64_t h[2]) { return (struct slot){.hash = h[0], .more = (uint32_t)(h[1] >> 32)}; }

static enum err_code keys_of(struct arena *a, const struct result *r, struct slot out[KEYS_N], struct err *e)
{
    const char *cells = r->cells ? r->cells : "";
    uint64_t h[2] = {hash_start(), 0};
    const char *const texts[] = {r->row_kind, r->dtype, r->origin.device};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) add_text(h, texts[i]);
    add(h, &r->summary.median_s, sizeof r->summary.median_s);
    for (size_t i = 0; i < r->shape.n; i++) {
        add_text(h, r->shape.arg[i].name);
        add(h, &r->shape.arg[i].value, sizeof r->shape.arg[i].value);
    }
    TRY(add_cells(a, cells, h, e));
    out[SAYS] = key_of(h);
    add_text(h, r->made);
    out[DATED] = key_of(h);
    add_text(h, cells);
    out[EXACT] = key_of(h);
    return ERR_OK;
}

/* -- places -- */

/* Where a key stands, or would. */
static struct slot *place_of(const struct probe_known *k, const struct slot *key)
{
    for (size_t i = key->more;; i++) {
        struct slot *at = &k->slots[(key->hash + i) & (k->room - 1)];
        if (!at->file || (at->hash == key->hash && at->more == key->more)) return at;
    }
}

static uint32_t file_of(const struct probe_known *k, const struct slot *key)
{
    return k->room ? place_of(k, key)->file : 0;
}

static enum err_code insert(struct probe_known *k, const struct slot *key, struct err *e)
{
    if (4 * (k->n + 1) > 3 * k->room) {
        struct probe_known grown = {.room = k->room ? 2 * k->room : FIRST_ROOM, .n = k->n, .file = k->file};
        grown.slots = calloc(grown.room, sizeof *grown.slots);
        if (!grown.slots) return err_nomem(e);
        for (size_t i = 0; i < k->room; i++)
            if (k->slots[i].file) *place_of(&grown, &k->slots[i]) = k->slots[i];
        free(k->slots);
        *k = grown;
    }
    struct slot *at = place_of(k, key);
    if (at->file) return ERR_OK;
    *at = *key;
    at->file = k->file;
    k->n++;
    return ERR_OK;
}

/* -- what others call -- */

enum err_code probe_known_open(struct arena *a, struct store *s, struct probe_known **out, struct err *e)
{
    const struct store_filter f = {.outcome = result_outcome_name(RESULT_IMPORTED)};
    struct probe_known *k = arena_alloc(a, sizeof *k);
    struct store_reading *c;
    enum err_code code = ERR_OK;
    if (!k) return err_nomem(e);
    k->file = 1;
    TRY(arena_defer(a, release, k, e));
    TRY(store_each(a, s, &f, &c, e));
    for (bool more = true; more && code == ERR_OK;) {
        struct arena *own = arena_open(); /* of one result */
        struct result r;
        struct slot keys[KEYS_N];
        if (!own) return err_nomem(e);
        code = store_next(c, own, &r, &more, e);
        if (code == ERR_OK && more) code = keys_of(own, &r, keys, e);
        for (int i = SAYS; i <= DATED && code == ERR_OK && more; i++) code = insert(k, &keys[i], e);
        arena_close(own);
    }
    store_end(c);
    *out = k;
    return code;
}

void probe_known_next_file(struct probe_known *k) { k->file++; }

enum err_code probe_known_meet(struct probe_known *k, struct arena *a, const struct result *r, bool dated,
                               enum probe_known_as *out, struct err *e)
{
    struct slot keys[KEYS_N];
    TRY(keys_of(a, r, keys, e));
    const uint32_t before = file_of(k, &keys[dated ? DATED : SAYS]);
    *out = before && before < k->file            ? PROBE_KNOWN_BEFORE
           : file_of(k, &keys[EXACT]) == k->file ? PROBE_KNOWN_REPEATED
                                                 : PROBE_KNOWN_NEW;
    for (int i = 0; i < KEYS_N && *out == PROBE_KNOWN_NEW; i++) TRY(insert(k, &keys[i], e));
    return ERR_OK;
}
