#include "calc/serve/steady_members.h"

#include <stdlib.h>

enum { ROOM = 2, FEW = 64 }; /* not a unit: places are cleared at twice as many as are there, and a few */

bool steady_members_open(struct steady_members *m, int64_t most)
{
    const size_t room = ROOM * (size_t)most + FEW + 1;
    *m = (struct steady_members){.entered = malloc(room * sizeof *m->entered),
                                 .ending = malloc(room * sizeof *m->ending)};
    return m->entered && m->ending;
}

void steady_members_close(struct steady_members *m)
{
    free(m->entered);
    free(m->ending);
}

void steady_members_clear(struct steady_members *m) { m->n = m->entered_n = m->ending_n = 0; }

static bool left(const int32_t *places, const struct steady_member *x) { return places[x->request] != x->place; }

/* Without those that left. */
static int64_t keep(const int32_t *places, struct steady_member *x, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (!left(places, &x[i])) x[kept++] = x[i];
    return kept;
}

/* x at the place i of a heap, or below it. */
static void sink(struct steady_member *heap, int64_t n, int64_t i, struct steady_member x)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].until < heap[child].until) child++;
        if (x.until <= heap[child].until) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void make_room(struct steady_members *m, const int32_t *places)
{
    const int64_t room = ROOM * m->n + FEW;
    if (m->entered_n >= room) m->entered_n = keep(places, m->entered, m->entered_n);
    if (m->ending_n < room) return;
    m->ending_n = keep(places, m->ending, m->ending_n);
    for (int64_t i = m->ending_n / 2; i-- > 0;) sink(m->ending, m->ending_n, i, m->ending[i]);
}

void steady_members_add(struct steady_members *m, const int32_t *places, int64_t request, int64_t until)
{
    const struct steady_member x = {.until = until, .request = (int32_t)request, .place = places[request]};
    make_room(m, places);
    struct steady_member *heap = m->ending;
    int64_t i = m->ending_n++;
    for (; i > 0 && until < heap[(i - 1) / 2].until; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
    m->entered[m->entered_n++] = x;
    m->n++;
}

int64_t steady_members_end(struct steady_members *m, int32_t *places, int64_t landed)
{
    while (m->ending_n > 0 && m->ending[0].until <= landed) {
        const struct steady_member x = m->ending[0];
        if (--m->ending_n > 0) sink(m->ending, m->ending_n, 0, m->ending[m->ending_n]);
        if (left(places, &x)) continue;
        places[x.request]++;
        if (--m->n == 0) steady_members_clear(m);
        return x.request;
    }
    return -1;
}

int64_t steady_members_next(const struct steady_members *m) { return m->ending_n > 0 ? m->ending[0].until : INT64_MAX; }

struct steady_member steady_members_last(struct steady_members *m, int32_t *places)
{
    while (left(places, &m->entered[m->entered_n - 1])) m->entered_n--;
    const struct steady_member x = m->entered[--m->entered_n];
    places[x.request]++;
    m->n--;
    return x;
}
