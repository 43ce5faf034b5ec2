#include "calc/cli/probe_turns.h"

#include <math.h>

enum err_code turns_open(struct arena *a, size_t n, double cache_bytes, struct turns *out, struct err *e)
{
    static const double USUAL_BYTES = 0x1p25;
    *out = (struct turns){.n = n, .of = arena_array(a, n, sizeof *out->of)};
    if (!out->of) return err_nomem(e);
    out->cache_bytes = cache_bytes > 0 ? cache_bytes : USUAL_BYTES;
    for (size_t i = 0; i < 2; i++) {
        out->seen[i].s_per_byte = arena_array(a, 2 * n, sizeof *out->seen[i].s_per_byte);
        if (!out->seen[i].s_per_byte) return err_nomem(e);
    }
    for (size_t i = 0; i < n; i++) out->of[i] = (struct turn){.bytes = (double)NAN};
    return ERR_OK;
}

static double size_of(const struct turns *t, size_t i)
{
    return t->cache_bytes + (t->of[i].bytes > 0 ? t->of[i].bytes : 0);
}

void turns_learn(struct turns *t, size_t i, bool cold, double aside_s)
{
    struct turns_seen *s = &t->seen[!cold];
    if (!(aside_s >= 0) || s->n == 2 * t->n) return;
    const double new = aside_s / size_of(t, i);
    size_t at = s->n++;
    for (; at > 0 && s->s_per_byte[at - 1] > new; at--) s->s_per_byte[at] = s->s_per_byte[at - 1];
    s->s_per_byte[at] = new;
}

double turns_aside_s(const struct turns *t, size_t i, bool cold)
{
    const struct turns_seen *s = &t->seen[!cold];
    return s->n ? s->s_per_byte[s->n / 2] * size_of(t, i) : 0;
}

size_t turns_due(const struct turns *t, int pass)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += t->of[i].due[pass];
    return n;
}

size_t turns_next(const struct turns *t, int pass, double left_s, double sample_s)
{
    const size_t due = turns_due(t, pass);
    size_t least = t->n;
    double least_s = (double)INFINITY;
    if (!(left_s > 0)) return t->n;
    for (size_t i = 0; i < t->n; i++) {
        if (!t->of[i].due[pass]) continue;
        const bool cold = pass == TURNS_COLD || (pass == TURNS_AGAIN && t->of[i].cold_again);
        const double s = turns_aside_s(t, i, cold) + sample_s;
        if (s <= 2 * left_s / (double)due && s <= left_s) return i;
        if (s < least_s) {
            least_s = s;
            least = i;
        }
    }
    return least_s <= left_s || (due == 1 && pass != TURNS_AGAIN) ? least : t->n;
}

size_t turns_pick(const struct turns *t, double left_s, double total_s, double sample_s, int *pass)
{
    static const double LAST = 0.25;
    static const int USUAL[] = {TURNS_COLD, TURNS_HOT, TURNS_AGAIN}, LATE[] = {TURNS_AGAIN, TURNS_COLD, TURNS_HOT};
    const int *order = left_s < LAST * total_s ? LATE : USUAL;
    for (int i = 0; i < TURNS_N; i++) {
        const size_t at = turns_next(t, order[i], left_s, sample_s);
        *pass = order[i];
        if (at < t->n) return at;
    }
    return t->n;
}
