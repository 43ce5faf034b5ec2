#include "calc/cli/lora_options.h"

#include "calc/base/units.h"

enum { SLOTS_MAX = 1 << 20, RANK_MAX = 1 << 16, RANK_LISTED = 512, DEFAULT_RANK = 16 };

enum err_code lora_options_parse(const struct option_values *v, int64_t rank, struct lora_request *out, struct err *e)
{
    static const char *const OTHERS[] = {"max-lora-rank", "lora-target-modules", "loras", "max-cpu-loras",
                                         "fully-sharded-loras"};
    struct lora_request q = {.host = 0};
    const char *modules = option_get(v, "lora-target-modules");
    *out = q;
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0] && !option_get(v, "max-loras"); i++)
        if (option_get(v, OTHERS[i]))
            return err_set(e, ERR_USAGE, "--%s is of adapters that are served: --max-loras N", OTHERS[i]);
    if (!option_get(v, "max-loras")) return ERR_OK;
    TRY(option_count(v, "max-loras", 1, SLOTS_MAX, &q.served.slots, e));
    q.served.rank = rank > 0 ? lora_slot_rank(rank) : DEFAULT_RANK;
    q.served.among = q.host = q.served.slots;
    TRY(option_count(v, "max-lora-rank", 1, RANK_MAX, &q.served.rank, e));
    if (lora_slot_rank(q.served.rank) != q.served.rank || q.served.rank > RANK_LISTED)
        return err_set(
            e, ERR_USAGE,
            "--max-lora-rank %lld: engines take 1, 8, 16, 32, 64, 128, 256, 320 or 512, and an adapter of less "
            "in the next",
            (long long)q.served.rank);
    if (q.served.rank < rank)
        return err_set(e, ERR_USAGE, "--max-lora-rank %lld holds no adapter of rank %lld", (long long)q.served.rank,
                       (long long)rank);
    TRY(option_count(v, "loras", 1, SLOTS_MAX, &q.served.among, e));
    TRY(option_count(v, "max-cpu-loras", 1, SLOTS_MAX, &q.host, e));
    if (q.host < q.served.slots)
        return err_set(e, ERR_USAGE,
                       "--max-cpu-loras %lld: an adapter in one of --max-loras %lld slots is at the host "
                       "too",
                       (long long)q.host, (long long)q.served.slots);
    if (modules && lora_parse_modules(modules, &q.served.modules, e) != ERR_OK)
        return err_prepend(e, "--lora-target-modules: ");
    q.served.sharded = option_get(v, "fully-sharded-loras") != NULL;
    *out = q;
    return ERR_OK;
}

enum err_code lora_options_apply(const struct lora_request *q, struct model *m, struct err *e)
{
    if (q->served.slots == 0) return ERR_OK;
    return lora_serve(m, &q->served, e) == ERR_OK ? ERR_OK : err_prepend(e, "--max-loras: ");
}

const char *lora_options_note(struct arena *a, const struct lora_request *q, const struct model *m, double slot_bytes)
{
    char bytes[UNITS_TEXT_MAX], host[UNITS_TEXT_MAX];
    const struct lora whole = {.rank = q->served.rank, .modules = q->served.modules ? q->served.modules : LORA_ALL};
    const bool moved = q->served.among > q->served.slots;
    struct lora_cost one;
    if (lora_cost(m, &whole, &one, NULL) != ERR_OK) return NULL;
    return arena_printf(
        a,
        "of each GPU's weights %s are %lld slots for adapters of rank %lld, read by as many as a batch of %lld alike "
        "makes distinct; their kernels are not measured; %lld at the host take up to %s for each GPU%s",
        units_format_bytes(bytes, slot_bytes), (long long)q->served.slots, (long long)q->served.rank,
        (long long)q->served.among, (long long)q->host,
        units_format_bytes(host, (double)q->host * one.params * m->activations.bits / 8),
        moved ? "; what loading those without a slot costs is not counted" : "");
}
