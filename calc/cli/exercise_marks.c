#include "calc/cli/exercise_marks.h"

#include <string.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/learn/marks.h"

enum { SHOWN_MAX = 200, HINT_MAX = 800 };

#define COL(row, field, kind, flags, heading, help)                                                                    \
    COLUMN_AT(struct row, field, COLUMN_##kind, UNITS_NONE, flags, heading, help)

static const struct column ROWS[] = {
    COL(mark, student, STRING, COLUMN_SHOWN, "student", "as in the file"),
    COL(mark, exercise, STRING, COLUMN_SHOWN, "exercise", "its name"),
    COL(mark, seed, INT, 0, "seed", "of the question"),
    COL(mark, right, BOOL, COLUMN_SHOWN, "right", "whether the answer is"),
    COL(mark, answer, STRING, COLUMN_SHOWN, "answer", "as given"),
    COL(mark, hint, STRING, COLUMN_SHOWN, "hint", "the likely slip"),
};

static const struct column STUDENTS[] = {
    COL(marks_student, student, STRING, COLUMN_SHOWN, "student", "as in the file"),
    COL(marks_student, right, INT, COLUMN_SHOWN, "right", "answers that are"),
    COL(marks_student, of, INT, COLUMN_SHOWN, "of", "answers asked, or given where the file does not say"),
};

static struct table rows_table(const struct marks *m)
{
    return (struct table){.columns = ROWS,
                          .n_columns = sizeof ROWS / sizeof ROWS[0],
                          .rows = m->rows,
                          .n_rows = m->rows_n,
                          .stride_bytes = sizeof *m->rows,
                          .schema = "ridge.exercise.grade.1",
                          .tool = commands_tool()};
}

static struct table students_table(const struct marks *m)
{
    return (struct table){.columns = STUDENTS,
                          .n_columns = sizeof STUDENTS / sizeof STUDENTS[0],
                          .rows = m->students,
                          .n_rows = m->students_n,
                          .stride_bytes = sizeof *m->students,
                          .schema = "ridge.exercise.totals.1",
                          .tool = commands_tool()};
}

static void write_json_string(struct out *o, const char *s)
{
    const size_t len = strlen(s);
    out_char(o, '"');
    for (size_t i = 0, used; i < len; i += used) {
        char piece[TEXT_JSON_MAX];
        out_write(o, piece, text_json_char(piece, s + i, len - i, &used));
    }
    out_char(o, '"');
}

/* The rows of a table as the elements of a list. */
static enum err_code write_elements(const struct table *t, struct out *o, struct err *e)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        if (i) out_char(o, ',');
        TRY(table_row(t, TABLE_JSONL, (const char *)t->rows + i * t->stride_bytes, i == 0, o, e));
    }
    return ERR_OK;
}

static enum err_code write_json(const struct marks *m, struct out *o, struct err *e)
{
    const struct table rows = rows_table(m), students = students_table(m);
    out_str(o, "{\"schema\": ");
    write_json_string(o, rows.schema);
    out_str(o, ", \"tool\": ");
    write_json_string(o, rows.tool);
    out_str(o, ", \"rows\": [\n");
    TRY(write_elements(&rows, o, e));
    out_str(o, "], \"students\": [\n");
    TRY(write_elements(&students, o, e));
    out_str(o, "]}\n");
    return ERR_OK;
}

/* Text of a TAP description: '#' would begin a directive. */
static void write_tap_text(struct out *o, const char *s)
{
    char clean[SHOWN_MAX];
    text_clean(clean, sizeof clean, s, strlen(s));
    for (const char *p = clean; *p; p++) {
        if (*p == '#' || *p == '\\') out_char(o, '\\');
        out_char(o, *p);
    }
}

static void write_tap(const struct marks *m, struct out *o)
{
    out_printf(o, "TAP version 13\n1..%zu\n", m->rows_n);
    for (size_t i = 0; i < m->rows_n; i++) {
        const struct mark *r = &m->rows[i];
        out_printf(o, "%s %zu - ", r->right ? "ok" : "not ok", i + 1);
        write_tap_text(o, r->student ? r->student : "?");
        out_str(o, ": ");
        write_tap_text(o, r->exercise ? r->exercise : "?");
        out_char(o, '\n');
        if (r->right) continue;
        out_str(o, "  ---\n  message: ");
        write_json_string(o, r->hint ? r->hint : "");
        out_str(o, "\n  severity: fail\n");
        if (r->answer) {
            char clean[SHOWN_MAX];
            out_str(o, "  answer: ");
            write_json_string(o, text_clean(clean, sizeof clean, r->answer, strlen(r->answer)));
            out_char(o, '\n');
        }
        if (r->seed >= 0) out_printf(o, "  seed: %lld\n", (long long)r->seed);
        out_str(o, "  ...\n");
    }
}

static void write_clean(struct out *o, const char *s)
{
    char clean[SHOWN_MAX];
    out_str(o, s ? text_clean(clean, sizeof clean, s, strlen(s)) : "?");
}

static void write_text(const struct marks *m, struct out *o)
{
    char clean[HINT_MAX];
    for (size_t i = 0; i < m->rows_n; i++) {
        const struct mark *r = &m->rows[i];
        if (r->right) continue;
        write_clean(o, r->student);
        out_str(o, ", ");
        write_clean(o, r->exercise);
        out_str(o, r->answer ? ": " : "");
        if (r->answer) write_clean(o, r->answer);
        out_str(o, "\n    ");
        const char *hint = r->hint ? r->hint : "";
        option_wrap(o, text_clean(clean, sizeof clean, hint, strlen(hint)), 4, 4);
    }
    for (size_t i = 0; i < m->students_n; i++) {
        write_clean(o, m->students[i].student);
        out_printf(o, "  %lld of %lld\n", (long long)m->students[i].right, (long long)m->students[i].of);
    }
}

static enum err_code write_marks(const struct marks *m, const struct exercise_marking *how, enum table_format as,
                                 struct out *o, struct err *e)
{
    const struct table rows = rows_table(m), students = students_table(m);
    if (how->totals) return table_write(&students, as, o, e);
    if (as == TABLE_JSON) return write_json(m, o, e);
    if (as == TABLE_TEXT) {
        write_text(m, o);
        return ERR_OK;
    }
    TRY(table_write(&rows, as, o, e));
    if (as != TABLE_MD) return ERR_OK;
    out_char(o, '\n');
    return table_write(&students, as, o, e);
}

enum err_code exercise_marks(struct arena *a, const char *path, const struct exercise_marking *how, struct out *o,
                             struct err *e)
{
    struct json file;
    struct marks m;
    enum table_format as = TABLE_TEXT;
    const bool tap = strcmp(how->format, "tap") == 0;
    if (!tap) TRY(table_format_parse(how->format, &as, e));
    if (tap && how->totals) return err_set(e, ERR_USAGE, "exercise: --totals has no form in TAP; wanted csv, json, md");
    TRY(json_load_strict(a, strcmp(path, "-") == 0 ? "/dev/stdin" : path, &file, e));
    TRY(marks_grade(a, &file, how->class_seed, how->seed_typed, &m, e));
    for (size_t i = 0; i < m.rows_n; i++)
        if (m.rows[i].seed < 0) m.rows[i].seed = TABLE_INT_UNKNOWN;
    if (tap)
        write_tap(&m, o);
    else
        TRY(write_marks(&m, how, as, o, e));
    for (size_t i = 0; i < m.rows_n; i++)
        if (!m.rows[i].right) return err_set(e, ERR_NO, "%s", ""); /* said in what was written */
    return ERR_OK;
}
