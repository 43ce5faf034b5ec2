#include "calc/cli/exercise_show.h"

#include <math.h>
#include <string.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/learn/exercise.h"

enum { NAME_SHOWN_MAX = 256 };

struct show_row {
    int64_t number, seed;
    const char *name, *set, *title, *question, *form, *see, *solution, *answer;
    const struct exercise_question *q;
};

#define COL(field, kind, flags, heading, help)                                                                         \
    COLUMN_AT(struct show_row, field, COLUMN_##kind, UNITS_NONE, flags, heading, help)

static const struct column COLUMNS[] = {
    COL(number, INT, COLUMN_SHOWN, "no.", "for show and answer"),
    COL(name, STRING, COLUMN_SHOWN, "name", "the same as a word"),
    COL(set, STRING, 0, "set", "exercises that belong together"),
    COL(title, STRING, 0, "title", "what it is about"),
    COL(seed, INT, COLUMN_SHOWN, "seed", "of the numbers"),
    COL(question, STRING, COLUMN_SHOWN, "question", "the question"),
    COL(form, STRING, COLUMN_SHOWN, "form", "how to answer"),
    COL(see, STRING, 0, "see", "what to read before"),
    COL(solution, STRING, 0, "solution", "the steps, with --solution"),
    COL(answer, STRING, 0, "answer", "with --solution"),
};

/* ---- what is shown ---- */

/* A number in the unit that the question has for one without; of a count all digits, or four of one that is no whole
 * number. */
static const char *number_text(struct arena *a, const struct exercise_question *q)
{
    char text[UNITS_TEXT_MAX];
    enum units_kind kind;
    double unit = 1;
    const double large = 1000;
    if (q->bare && units_read_word(q->bare, strlen(q->bare), q->unit, q->things, &kind, &unit))
        return arena_printf(a, "%s %s", units_format_plain(text, q->value / unit), q->bare);
    if (q->unit == UNITS_COUNT)
        units_format_digits(text, q->value >= large ? round(q->value) : q->value);
    else
        units_format(text, q->unit, q->value);
    return arena_strndup(a, text, strlen(text));
}

/* The right answer, for --solution. NULL when memory is exhausted. */
static const char *answer_text(struct arena *a, const struct exercise_question *q)
{
    if (q->kind == EXERCISE_CHOICE) return q->choices[q->right];
    if (q->kind == EXERCISE_NUMBER) return number_text(a, q);
    const size_t n = sym_print(q->answer, NULL, 0);
    char *formula = arena_alloc(a, n + 1);
    if (formula) (void)sym_print(q->answer, formula, n + 1);
    return formula;
}

static const char *joined_steps(struct arena *a, const struct exercise_question *q)
{
    const char *all = "";
    for (size_t i = 0; i < q->steps_n && all; i++) all = arena_printf(a, "%s%s%s", all, i ? "\n" : "", q->steps[i]);
    return all;
}

static enum err_code make_row(const struct exercise_shown *k, size_t at, struct show_row *out, struct err *e)
{
    const struct exercise *x = exercise_at(at);
    struct sym_ctx *c = sym_open(k->arena);
    struct exercise_question *q = arena_alloc(k->arena, sizeof *q);
    if (!c || !q) return err_nomem(e);
    TRY(exercise_ask(k->arena, c, x, (uint64_t)k->seed, q, e));
    *out = (struct show_row){.number = (int64_t)at + 1,
                             .seed = k->seed,
                             .name = x->name,
                             .set = x->set,
                             .title = x->title,
                             .question = q->text,
                             .form = q->form,
                             .see = x->see,
                             .q = q};
    if (!k->solution) return ERR_OK;
    out->solution = joined_steps(k->arena, q);
    out->answer = answer_text(k->arena, q);
    return out->solution && out->answer ? ERR_OK : err_nomem(e);
}

/* ---- pages ---- */

/* A word that a shell leaves as it is, and a terminal too. */
static void write_quoted(struct out *o, const char *word)
{
    char clean[NAME_SHOWN_MAX];
    const char *s = text_clean(clean, sizeof clean, word, strlen(word));
    out_char(o, '\'');
    for (; *s; s++) {
        if (*s == '\'')
            out_str(o, "'\\''");
        else
            out_char(o, *s);
    }
    out_char(o, '\'');
}

static void write_command(const struct exercise_shown *k, const struct show_row *r, struct out *o)
{
    out_printf(o, "ridge exercise answer %s '...'", r->name);
    if (k->seed_typed || !k->student) out_printf(o, " --seed %lld", (long long)k->class_seed);
    if (k->student) {
        out_str(o, " --student ");
        write_quoted(o, k->student);
    }
    out_char(o, '\n');
}

static void write_text(const struct exercise_shown *k, const struct show_row *r, struct out *o)
{
    out_printf(o, "%lld. %s: %s\n\n", (long long)r->number, r->name, r->title);
    option_wrap(o, r->question, 0, 0);
    out_str(o, "\nAnswer with ");
    option_wrap(o, r->form, 12, 4);
    out_str(o, "  ");
    write_command(k, r, o);
    if (r->see) out_printf(o, "To read\n  %s\n", r->see);
    if (!r->answer) return;
    out_str(o, "\nSolution\n");
    for (size_t i = 0; i < r->q->steps_n; i++) {
        out_printf(o, "  %zu. ", i + 1);
        option_wrap(o, r->q->steps[i], 5, 5);
    }
    out_str(o, "  Answer: ");
    option_wrap(o, r->answer, 10, 10);
}

/* Text of a Markdown page: what would be markup is escaped. */
static void write_md_text(struct out *o, const char *s)
{
    for (; *s; s++) {
        if (strchr("\\`*_{}[]<>#|~$", *s)) out_char(o, '\\');
        out_char(o, *s);
    }
}

static void write_md(const struct exercise_shown *k, const struct show_row *r, struct out *o)
{
    out_printf(o, "### %lld. ", (long long)r->number);
    write_md_text(o, r->name);
    out_str(o, ": ");
    write_md_text(o, r->title);
    out_str(o, "\n\n");
    write_md_text(o, r->question);
    out_str(o, "\n\nAnswer with ");
    write_md_text(o, r->form);
    out_str(o, ".\n\n    ");
    write_command(k, r, o);
    if (r->see) out_printf(o, "\nTo read:\n\n    %s\n", r->see);
    if (!r->answer) return;
    out_str(o, "\n**Solution**\n\n");
    for (size_t i = 0; i < r->q->steps_n; i++) {
        out_printf(o, "%zu. ", i + 1);
        write_md_text(o, r->q->steps[i]);
        out_char(o, '\n');
    }
    out_str(o, "\nAnswer: ");
    write_md_text(o, r->answer);
    out_char(o, '\n');
}

static void write_page(const struct exercise_shown *k, size_t n, const struct show_row *rows, bool md, struct out *o)
{
    for (size_t i = 0; i < n; i++) {
        if (i) out_str(o, md ? "\n" : "\n\n");
        if (n > 1 && (i == 0 || strcmp(rows[i].set, rows[i - 1].set) != 0))
            out_printf(o, md ? "## %s\n\n" : "== %s ==\n\n", rows[i].set);
        if (md)
            write_md(k, &rows[i], o);
        else
            write_text(k, &rows[i], o);
    }
}

enum err_code exercise_show(const struct exercise_shown *k, size_t n, const char *const *names, struct out *o,
                            struct err *e)
{
    const size_t count = exercise_count();
    enum table_format format;
    size_t rows_n = 0, room;
    TRY(table_format_parse(k->format, &format, e));
    if (__builtin_mul_overflow(n, count, &room)) return err_nomem(e);
    struct show_row *rows = arena_array(k->arena, room, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        size_t from = 0, to = count;
        const struct exercise *x;
        if (strcmp(names[i], "all") != 0) {
            TRY(exercise_find(names[i], &from, &x, e));
            to = from + 1;
        }
        for (; from < to; from++) TRY(make_row(k, from, &rows[rows_n++], e));
    }
    if (format == TABLE_TEXT || format == TABLE_MD) {
        write_page(k, rows_n, rows, format == TABLE_MD, o);
        return ERR_OK;
    }
    const struct table t = {.columns = COLUMNS,
                            .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                            .rows = rows,
                            .n_rows = rows_n,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.exercise.show.1",
                            .tool = commands_tool()};
    return table_write(&t, format, o, e);
}
