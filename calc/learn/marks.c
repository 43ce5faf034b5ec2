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

struct grading {
    struct arena *a;
    int64_t class_seed;
    struct seeds seeds; /* of the file */
    struct marks marks;
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
    if (exercise_find(row->exercise, NULL, &x, &why) != ERR_OK) return refuse(g, row, &why, e);
    row->exercise = x->name;
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
    return ERR_OK;
}

static enum err_code grade_list(struct grading *g, const struct json *list, struct err *e)
{
    struct json item;
    struct err why;
    g->marks.rows = arena_array(g->a, json_len(list) + 1, sizeof *g->marks.rows);
    if (!g->marks.rows) return err_nomem(e);
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        struct mark *row = &g->marks.rows[g->marks.rows_n++];
        row->seed = -1;
        const enum err_code code = read_entry(g, &item, row, &why);
        if (code == ERR_NOMEM) return err_nomem(e);
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
    if (!json_is_object(answers)) {
        struct mark *row = &g->marks.rows[g->marks.rows_n++];
        *row = (struct mark){.student = student, .seed = -1};
        (void)json_want(answers, "an object, exercise to answer", &why);
        return refuse(g, row, &why, e);
    }
    for (size_t i = 0; json_at(answers, i, &exercise, &item); i++) {
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
    size_t n = 1, objects = 0;
    for (size_t i = 0; json_at(tree, i, NULL, &item); i++) {
        n += json_is_object(&item) ? json_len(&item) : 1;
        objects += json_is_object(&item);
    }
    if (!objects && json_len(tree)) return json_want(tree, "a member \"answers\", or students with their answers", e);
    g->marks.rows = arena_array(g->a, n, sizeof *g->marks.rows);
    if (!g->marks.rows) return err_nomem(e);
    for (size_t i = 0; json_at(tree, i, &student, &item); i++) TRY(grade_student(g, student, &item, e));
    return ERR_OK;
}

struct place {
    const char *student;
    size_t row;
};

static int by_student(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const int order = strcmp(x->student, y->student);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* A student's sum, and the row where it first stands. */
struct sum {
    struct marks_student s;
    size_t first;
};

static int by_first(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static enum err_code sum_up(struct grading *g, struct err *e)
{
    struct marks *m = &g->marks;
    struct place *places = arena_array(g->a, m->rows_n + 1, sizeof *places);
    struct sum *sums = arena_array(g->a, m->rows_n + 1, sizeof *sums);
    m->students = arena_array(g->a, m->rows_n + 1, sizeof *m->students);
    if (!places || !sums || !m->students) return err_nomem(e);
    size_t named = 0, n = 0;
    for (size_t i = 0; i < m->rows_n; i++)
        if (m->rows[i].student) places[named++] = (struct place){m->rows[i].student, i};
    qsort(places, named, sizeof *places, by_student);
    for (size_t i = 0; i < named; i++) {
        if (i == 0 || strcmp(places[i].student, places[i - 1].student) != 0)
            sums[n++] = (struct sum){.s = {.student = places[i].student}, .first = places[i].row};
        sums[n - 1].s.of++;
        sums[n - 1].s.right += m->rows[places[i].row].right;
    }
    qsort(sums, n, sizeof *sums, by_first);
    for (size_t i = 0; i < n; i++) m->students[i] = sums[i].s;
    m->students_n = n;
    return ERR_OK;
}

enum err_code marks_grade(struct arena *a, const struct json *file, int64_t class_seed, struct marks *out,
                          struct err *e)
{
    struct grading g = {.a = a, .class_seed = class_seed, .seeds = {class_seed, false}};
    struct json item, answers = *file;
    if (!json_is_object(file)) return json_want(file, "an object with \"answers\", or of students", e);
    if (json_has(file, "answers")) {
        if (json_get(file, "seed", &item)) TRY(read_seed(&item, class_seed, &g.seeds, e));
        if (!json_get(file, "answers", &answers) || (!json_is_object(&answers) && !json_is_array(&answers)))
            return err_set(e, ERR_INPUT, "%s: answers: wanted a list, or an object of students", file->file);
    } else if (json_len(file) == 0) {
        return json_want(file, "a member \"answers\", or students with their answers", e);
    }
    TRY(json_is_array(&answers) ? grade_list(&g, &answers, e) : grade_tree(&g, &answers, e));
    TRY(sum_up(&g, e));
    *out = g.marks;
    return ERR_OK;
}
