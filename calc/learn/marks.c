#include "calc/learn/marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

/* Which seed an answer has. */
struct seeds {
    int64_t seed;
    bool by_student;
};

/* A student at a row, or (NO_ROW) at an object of answers. */
static const size_t NO_ROW = SIZE_MAX;
struct place {
    const char *student;
    size_t order, row;
};

struct grading {
    struct arena *a;
    int64_t class_seed;
    struct seeds seeds; /* of the file */
    bool *asked;        /* of each exercise; NULL: the file does not say */
    size_t asked_n;
    struct marks marks;
    size_t *which; /* of each row: the exercise that was graded, exercise_count() none */
    struct place *places;
    size_t places_n;
};

static enum err_code read_seed(const struct json *j, int64_t class_seed, struct seeds *out, struct err *e)
{
    const char *word;
    if (json_is_string(j)) {
        TRY(json_str(j, &word, e));
        if (strcmp(word, "by-student") != 0) return json_want(j, "a whole number from 0, or \"by-student\"", e);
        *out = (struct seeds){class_seed, true};
        return ERR_OK;
    }
    int64_t seed;
    if (json_int(j, 0, INT64_MAX, &seed, NULL) != ERR_OK)
        return json_want(j, "a whole number from 0, or \"by-student\"", e);
    *out = (struct seeds){seed, false};
    return ERR_OK;
}

/* A text, or a number as text. */
static enum err_code read_text(struct arena *a, const struct json *j, const char **out, struct err *e)
{
    double x;
    char text[TEXT_NUMBER_MAX];
    if (json_is_string(j)) return json_str(j, out, e);
    if (!json_is_number(j) || json_num(j, &x, NULL) != ERR_OK || !isfinite(x))
        return json_want(j, "a text or a number", e);
    const size_t n = text_real(text, x);
    *out = arena_strndup(a, text, n);
    return *out ? ERR_OK : err_nomem(e);
}

/* The sentence of an error as a row's hint. */
static enum err_code refuse(struct grading *g, struct mark *row, const struct err *why, struct err *e)
{
    row->hint = arena_strndup(g->a, why->text, strlen(why->text));
    return row->hint ? ERR_OK : err_nomem(e);
}

static enum err_code grade_in(struct arena *scratch, struct grading *g, const struct exercise *x, struct mark *row,
                              struct err *e)
{
    struct exercise_question q;
    struct exercise_verdict v;
    struct sym_ctx *c = sym_open(scratch);
    if (!c) return err_nomem(e);
    TRY(exercise_ask(scratch, c, x, (uint64_t)row->seed, &q, e));
    TRY(exercise_grade(scratch, c, &q, row->answer, &v, e));
    row->right = v.right;
    if (v.right) return ERR_OK;
    const char *hint = v.hint ? v.hint : "not right";
    row->hint = arena_strndup(g->a, hint, strlen(hint));
    return row->hint ? ERR_OK : err_nomem(e);
}

/* Grade a row whose texts and seed are read. */
static enum err_code grade_row(struct grading *g, struct mark *row, struct err *e)
{
    const struct exercise *x;
    struct err why;
    size_t at;
    if (exercise_find(row->exercise, &at, &x, &why) != ERR_OK) return refuse(g, row, &why, e);
    row->exercise = x->name;
    if (g->asked && !g->asked[at]) {
        row->hint = "not among the exercises that were asked";
        return ERR_OK;
    }
    g->which[row - g->marks.rows] = at;
    struct arena *scratch = arena_open();
    if (!scratch) return err_nomem(e);
    const enum err_code code = grade_in(scratch, g, x, row, e);
    arena_close(scratch);
    return code;
}

static int64_t seed_of(struct seeds s, const char *student)
{
    return s.by_student ? exercise_student_seed(s.seed, student) : s.seed;
}

/* Members of j that are none of the n known ones. */
static enum err_code check_members(const struct json *j, size_t n, const char *const *known, struct err *e)
{
    struct json item;
    const char *name;
    char near[200], clean[64];
    for (size_t i = 0; json_at(j, i, &name, &item); i++) {
        size_t k = 0;
        while (k < n && strcmp(known[k], name) != 0) k++;
        if (k < n) continue;
        return err_set(e, ERR_INPUT, "%s: %s%sunknown member \"%s\"%s", j->file, j->path, *j->path ? ": " : "",
                       text_clean(clean, sizeof clean, name, strlen(name)),
                       text_suggest(near, sizeof near, name, known, sizeof *known, n));
    }
    return ERR_OK;
}

static const char *const ENTRY_MEMBERS[] = {"student", "exercise", "answer", "seed"};
static const char *const FILE_MEMBERS[] = {"answers", "seed", "exercises"};
enum { ENTRY_MEMBERS_N = 4, FILE_MEMBERS_N = 3 };

/* An entry of the list: its texts, then its mark. */
static enum err_code read_entry(struct grading *g, const struct json *j, struct mark *row, struct err *why)
{
    struct json item;
    struct seeds seeds = g->seeds;
    if (!json_is_object(j)) return json_want(j, "an object of student, exercise and answer", why);
    if (!json_get(j, "student", &item)) return err_set(why, ERR_INPUT, "%s: %s: student is missing", j->file, j->path);
    TRY(read_text(g->a, &item, &row->student, why));
    if (!json_get(j, "exercise", &item))
        return err_set(why, ERR_INPUT, "%s: %s: exercise is missing", j->file, j->path);
    TRY(read_text(g->a, &item, &row->exercise, why));
    if (!json_get(j, "answer", &item)) return err_set(why, ERR_INPUT, "%s: %s: answer is missing", j->file, j->path);
    TRY(read_text(g->a, &item, &row->answer, why));
    if (json_get(j, "seed", &item)) TRY(read_seed(&item, g->class_seed, &seeds, why));
    row->seed = seed_of(seeds, row->student);
    return check_members(j, ENTRY_MEMBERS_N, ENTRY_MEMBERS, why);
}

/* Room for rows, and for those that are missing. */
static enum err_code reserve(struct grading *g, size_t rows, size_t students, struct err *e)
{
    const size_t places = rows + students + 1, missing = g->asked_n * places;
    size_t all;
    if (__builtin_add_overflow(places, missing, &all)) return err_nomem(e);
    g->marks.rows = arena_array(g->a, all, sizeof *g->marks.rows);
    g->which = arena_array(g->a, all, sizeof *g->which);
    g->places = arena_array(g->a, places, sizeof *g->places);
    if (!g->marks.rows || !g->which || !g->places) return err_nomem(e);
    for (size_t i = 0; i < all; i++) g->which[i] = exercise_count();
    return ERR_OK;
}

static void place(struct grading *g, const char *student, size_t row)
{
    if (student) g->places[g->places_n] = (struct place){student, g->places_n, row};
    g->places_n += student != NULL;
}

static enum err_code grade_list(struct grading *g, const struct json *list, struct err *e)
{
    struct json item;
    struct err why;
    if (json_len(list) == 0) return json_want(list, "at least one answer", e);
    TRY(reserve(g, json_len(list), 0, e));
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        struct mark *row = &g->marks.rows[g->marks.rows_n++];
        row->seed = -1;
        const enum err_code code = read_entry(g, &item, row, &why);
        if (code == ERR_NOMEM) return err_nomem(e);
        place(g, row->student, i);
        if (code == ERR_OK)
            TRY(grade_row(g, row, e));
        else
            TRY(refuse(g, row, &why, e));
    }
    return ERR_OK;
}

static enum err_code grade_student(struct grading *g, const char *student, const struct json *answers, struct err *e)
{
    struct json item;
    struct err why;
    const char *exercise;
    place(g, student, NO_ROW);
    if (!json_is_object(answers)) {
        place(g, student, g->marks.rows_n);
        struct mark *row = &g->marks.rows[g->marks.rows_n++];
        *row = (struct mark){.student = student, .seed = -1};
        (void)json_want(answers, "an object, exercise to answer", &why);
        return refuse(g, row, &why, e);
    }
    for (size_t i = 0; json_at(answers, i, &exercise, &item); i++) {
        place(g, student, g->marks.rows_n);
        struct mark *row = &g->marks.rows[g->marks.rows_n++];
        *row = (struct mark){.student = student, .exercise = exercise, .seed = seed_of(g->seeds, student)};
        const enum err_code code = read_text(g->a, &item, &row->answer, &why);
        if (code == ERR_NOMEM) return err_nomem(e);
        if (code == ERR_OK)
            TRY(grade_row(g, row, e));
        else
            TRY(refuse(g, row, &why, e));
    }
    return ERR_OK;
}

static enum err_code grade_tree(struct grading *g, const struct json *tree, struct err *e)
{
    struct json item;
    const char *student;
    size_t n = 0, objects = 0;
    for (size_t i = 0; json_at(tree, i, NULL, &item); i++) {
        n += json_is_object(&item) ? json_len(&item) : 1;
        objects += json_is_object(&item);
    }
    if (!objects) return json_want(tree, "students with their answers", e);
    TRY(reserve(g, n, json_len(tree), e));
    for (size_t i = 0; json_at(tree, i, &student, &item); i++) TRY(grade_student(g, student, &item, e));
    return ERR_OK;
}

/* ---- sums ---- */

static int by_student(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int order = strcmp(x->student, y->student);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* A student's sum, where it first stands, and its places. */
struct sum {
    struct marks_student s;
    const struct place *places;
    size_t places_n, first;
};

static int by_first(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Count a student's rows; of two answers to one exercise the first counts. */
static void add_up(struct grading *g, struct sum *s, bool *answered)
{
    for (size_t i = 0; i < s->places_n; i++) {
        if (s->places[i].row == NO_ROW) continue;
        struct mark *row = &g->marks.rows[s->places[i].row];
        const size_t at = g->which[s->places[i].row];
        const bool again = at < exercise_count() && answered[at];
        if (again) {
            row->right = false;
            row->hint = "a second answer to this exercise: the first counts";
        }
        if (at < exercise_count()) answered[at] = true;
        s->s.of += !g->asked && !again;
        s->s.right += row->right;
    }
    if (g->asked) s->s.of = (int64_t)g->asked_n;
}

/* Rows for what was asked and not answered. */
static void add_missing(struct grading *g, const char *student, const bool *answered)
{
    for (size_t i = 0; g->asked && i < exercise_count(); i++)
        if (g->asked[i] && !answered[i])
            g->marks.rows[g->marks.rows_n++] = (struct mark){.student = student,
                                                             .exercise = exercise_at(i)->name,
                                                             .seed = seed_of(g->seeds, student),
                                                             .hint = "no answer"};
}

static enum err_code sum_up(struct grading *g, struct err *e)
{
    struct sum *sums = arena_array(g->a, g->places_n + 1, sizeof *sums);
    bool *answered = arena_array(g->a, exercise_count(), sizeof *answered);
    g->marks.students = arena_array(g->a, g->places_n + 1, sizeof *g->marks.students);
    if (!sums || !answered || !g->marks.students) return err_nomem(e);
    size_t n = 0;
    qsort(g->places, g->places_n, sizeof *g->places, by_student);
    for (size_t i = 0; i < g->places_n; i++) {
        const struct place *p = &g->places[i];
        if (i == 0 || strcmp(p->student, p[-1].student) != 0)
            sums[n++] = (struct sum){.s = {.student = p->student}, .places = p, .first = p->order};
        sums[n - 1].places_n++;
    }
    qsort(sums, n, sizeof *sums, by_first);
    for (size_t i = 0; i < n; i++) {
        memset(answered, 0, exercise_count() * sizeof *answered);
        add_up(g, &sums[i], answered);
        add_missing(g, sums[i].s.student, answered);
        g->marks.students[i] = sums[i].s;
    }
    g->marks.students_n = n;
    return ERR_OK;
}

/* ---- the file ---- */

static enum err_code read_asked(struct grading *g, const struct json *list, struct err *e)
{
    struct json item;
    const char *name;
    const struct exercise *x;
    size_t at;
    if (!json_is_array(list) || json_len(list) == 0)
        return json_want(list, "a list of exercises, by name or number", e);
    g->asked = arena_array(g->a, exercise_count(), sizeof *g->asked);
    if (!g->asked) return err_nomem(e);
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        struct err why;
        TRY(read_text(g->a, &item, &name, e));
        if (exercise_find(name, &at, &x, &why) != ERR_OK)
            return err_set(e, ERR_INPUT, "%s: %s: %s", item.file, item.path, why.text);
        if (g->asked[at]) return err_set(e, ERR_INPUT, "%s: %s: %s is there twice", item.file, item.path, x->name);
        g->asked[at] = true;
        g->asked_n++;
    }
    return ERR_OK;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Students alone: names that are nearly those of other members are no students. */
static enum err_code check_students(const struct json *file, struct err *e)
{
    struct json item;
    const char *name;
    for (size_t i = 0; json_at(file, i, &name, &item); i++)
        for (size_t k = 0; k < FILE_MEMBERS_N; k++) {
            size_t n = 0;
            while (name[n] && lower(name[n]) == FILE_MEMBERS[k][n]) n++;
            if (!name[n] && !FILE_MEMBERS[k][n])
                return err_set(e, ERR_INPUT, "%s: found a member \"%s\" and no \"answers\" beside it", file->file,
                               name);
        }
    return json_len(file) ? ERR_OK : json_want(file, "a member \"answers\", or students with their answers", e);
}

enum err_code marks_grade(struct arena *a, const struct json *file, int64_t class_seed, bool class_wins,
                          struct marks *out, struct err *e)
{
    struct grading g = {.a = a, .class_seed = class_seed, .seeds = {class_seed, false}};
    struct json item, answers = *file;
    if (!json_is_object(file)) return json_want(file, "an object with \"answers\", or of students", e);
    if (json_has(file, "answers")) {
        TRY(check_members(file, FILE_MEMBERS_N, FILE_MEMBERS, e));
        if (json_get(file, "seed", &item)) TRY(read_seed(&item, class_seed, &g.seeds, e));
        if (class_wins) g.seeds.seed = class_seed;
        if (json_has(file, "exercises")) {
            if (!json_get(file, "exercises", &item)) item = (struct json){.file = file->file, .path = "exercises"};
            TRY(read_asked(&g, &item, e));
        }
        if (!json_get(file, "answers", &answers) || (!json_is_object(&answers) && !json_is_array(&answers)))
            return err_set(e, ERR_INPUT, "%s: answers: wanted a list, or an object of students", file->file);
    } else {
        TRY(check_students(file, e));
    }
    TRY(json_is_array(&answers) ? grade_list(&g, &answers, e) : grade_tree(&g, &answers, e));
    TRY(sum_up(&g, e));
    *out = g.marks;
    return ERR_OK;
}
