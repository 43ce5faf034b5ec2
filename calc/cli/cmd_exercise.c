/* cmd_exercise -- questions with fresh numbers, answers graded with a hint, a whole class at once. */
#include <string.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/exercise_marks.h"
#include "calc/learn/exercise.h"

enum { NAME_SHOWN_MAX = 256 };

static const struct option OPTIONS[] = {
    {.name = "seed",
     .letter = 's',
     .kind = OPTION_TEXT,
     .value = "NUMBER",
     .fallback = "1",
     .group = "Which question",
     .help = "the same seed gives the same numbers everywhere"},
    {.name = "student",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .help = "the numbers of one student: a seed from the name and --seed"},
    {.name = "solution", .kind = OPTION_FLAG, .help = "show the steps and the answer too"},
    {.name = "format",
     .letter = 'f',
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "text",
     .group = "Output",
     .help = "text, md, csv, json or jsonl; of grade also tap (version 13)"},
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_TEXT,
     .value = "FILE",
     .typed_only = true,
     .help = "write to a file"},
};

/* What the command line says, and where the answer goes. */
struct asked {
    struct arena *arena;
    struct option_values v;
    int64_t class_seed, seed; /* seed: the student's own when one is named */
    const char *student;      /* NULL none */
    struct out *o;
};

/* ---- list ---- */

struct list_row {
    int64_t number;
    const char *name, *set, *title, *see;
};

#define COL(row, field, kind, flags, heading, help)                                                                    \
    COLUMN_AT(struct row, field, COLUMN_##kind, UNITS_NONE, flags, heading, help)

static const struct column LIST_COLUMNS[] = {
    COL(list_row, number, INT, COLUMN_SHOWN, "no.", "for show and answer"),
    COL(list_row, name, STRING, COLUMN_SHOWN, "name", "the same as a word"),
    COL(list_row, set, STRING, COLUMN_SHOWN, "set", "exercises that belong together"),
    COL(list_row, title, STRING, COLUMN_SHOWN, "title", "what it is about"),
    COL(list_row, see, STRING, 0, "see", "what to read before"),
};

static void list_text(struct out *o, const struct list_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(rows[i].set, rows[i - 1].set) != 0) out_printf(o, "%s%s\n", i ? "\n" : "", rows[i].set);
        out_printf(o, "  %2lld  %-22s ", (long long)rows[i].number, rows[i].name);
        option_wrap(o, rows[i].title, 29, 29);
    }
}

static enum err_code list(const struct asked *k, struct err *e)
{
    const size_t n = exercise_count();
    enum table_format format;
    TRY(table_format_parse(option_get(&k->v, "format"), &format, e));
    if (k->v.operands_n != 1) return err_set(e, ERR_USAGE, "exercise: list takes no name; ridge exercise show NAME");
    struct list_row *rows = arena_array(k->arena, n, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const struct exercise *x = exercise_at(i);
        rows[i] = (struct list_row){(int64_t)i + 1, x->name, x->set, x->title, x->see};
    }
    const struct table t = {.columns = LIST_COLUMNS,
                            .n_columns = sizeof LIST_COLUMNS / sizeof LIST_COLUMNS[0],
                            .rows = rows,
                            .n_rows = n,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.exercise.list.1",
                            .tool = commands_tool()};
    if (format != TABLE_TEXT) return table_write(&t, format, k->o, e);
    list_text(k->o, rows, n);
    return ERR_OK;
}

/* ---- show ---- */

struct show_row {
    int64_t number, seed;
    const char *name, *set, *title, *question, *form, *see, *solution, *answer;
};

static const struct column SHOW_COLUMNS[] = {
    COL(show_row, number, INT, COLUMN_SHOWN, "no.", "for show and answer"),
    COL(show_row, name, STRING, COLUMN_SHOWN, "name", "the same as a word"),
    COL(show_row, set, STRING, 0, "set", "exercises that belong together"),
    COL(show_row, title, STRING, 0, "title", "what it is about"),
    COL(show_row, seed, INT, COLUMN_SHOWN, "seed", "of the numbers"),
    COL(show_row, question, STRING, COLUMN_SHOWN, "question", "the question"),
    COL(show_row, form, STRING, COLUMN_SHOWN, "form", "how to answer"),
    COL(show_row, see, STRING, 0, "see", "what to read before"),
    COL(show_row, solution, STRING, 0, "solution", "the steps, with --solution"),
    COL(show_row, answer, STRING, 0, "answer", "with --solution"),
};

/* The right answer, for --solution. NULL when memory is exhausted. */
static const char *answer_text(struct arena *a, const struct exercise_question *q)
{
    char text[UNITS_TEXT_MAX];
    if (q->kind == EXERCISE_CHOICE) return q->choices[q->right];
    if (q->kind == EXERCISE_FORMULA) {
        const size_t n = sym_print(q->answer, NULL, 0);
        char *formula = arena_alloc(a, n + 1);
        if (formula) (void)sym_print(q->answer, formula, n + 1);
        return formula;
    }
    if (q->unit == UNITS_COUNT)
        units_format_digits(text, q->value);
    else
        units_format(text, q->unit, q->value);
    return arena_strndup(a, text, strlen(text));
}

static const char *joined_steps(struct arena *a, const struct exercise_question *q)
{
    const char *all = "";
    for (size_t i = 0; i < q->steps_n && all; i++) all = arena_printf(a, "%s%s%s", all, i ? "\n" : "", q->steps[i]);
    return all;
}

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

static enum err_code show_text(const struct asked *k, const struct show_row *r, const struct exercise_question *q)
{
    struct out *o = k->o;
    out_printf(o, "%lld. %s: %s\n\n", (long long)r->number, r->name, r->title);
    option_wrap(o, r->question, 0, 0);
    out_str(o, "\nAnswer with ");
    option_wrap(o, r->form, 12, 4);
    out_printf(o, "  ridge exercise answer %s '...'", r->name);
    if (option_given(&k->v, "seed") || !k->student) out_printf(o, " --seed %lld", (long long)k->class_seed);
    if (k->student) {
        out_str(o, " --student ");
        write_quoted(o, k->student);
    }
    out_char(o, '\n');
    if (r->see) out_printf(o, "To read\n  %s\n", r->see);
    if (!r->answer) return ERR_OK;
    out_str(o, "\nSolution\n");
    for (size_t i = 0; i < q->steps_n; i++) {
        out_printf(o, "  %zu. ", i + 1);
        option_wrap(o, q->steps[i], 5, 5);
    }
    out_str(o, "  Answer: ");
    option_wrap(o, r->answer, 10, 10);
    return ERR_OK;
}

static enum err_code ask(const struct asked *k, const char *name, struct sym_ctx **c, size_t *at,
                         const struct exercise **x, struct exercise_question *q, struct err *e)
{
    TRY(exercise_find(name, at, x, e));
    *c = sym_open(k->arena);
    if (!*c) return err_nomem(e);
    return exercise_ask(k->arena, *c, *x, (uint64_t)k->seed, q, e);
}

static enum err_code show(const struct asked *k, struct err *e)
{
    struct exercise_question q;
    const struct exercise *x;
    struct sym_ctx *c;
    size_t at;
    enum table_format format;
    TRY(table_format_parse(option_get(&k->v, "format"), &format, e));
    if (k->v.operands_n != 2) return err_set(e, ERR_USAGE, "exercise: ridge exercise show NAME (ridge exercise list)");
    TRY(ask(k, k->v.operands[1], &c, &at, &x, &q, e));
    struct show_row row = {.number = (int64_t)at + 1,
                           .seed = k->seed,
                           .name = x->name,
                           .set = x->set,
                           .title = x->title,
                           .question = q.text,
                           .form = q.form,
                           .see = x->see};
    if (option_get(&k->v, "solution")) {
        row.solution = joined_steps(k->arena, &q);
        row.answer = answer_text(k->arena, &q);
        if (!row.solution || !row.answer) return err_nomem(e);
    }
    if (format == TABLE_TEXT) return show_text(k, &row, &q);
    const struct table t = {.columns = SHOW_COLUMNS,
                            .n_columns = sizeof SHOW_COLUMNS / sizeof SHOW_COLUMNS[0],
                            .rows = &row,
                            .n_rows = 1,
                            .stride_bytes = sizeof row,
                            .schema = "ridge.exercise.show.1",
                            .tool = commands_tool()};
    return table_write(&t, format, k->o, e);
}

/* ---- answer ---- */

static enum err_code answer(const struct asked *k, struct err *e)
{
    struct exercise_question q;
    struct exercise_verdict v;
    const struct exercise *x;
    struct sym_ctx *c;
    size_t at;
    if (option_given(&k->v, "format"))
        return err_set(e, ERR_USAGE, "exercise: answer says right or not right; --format is for list, show and grade");
    if (k->v.operands_n < 3)
        return err_set(e, ERR_USAGE, "exercise: ridge exercise answer NAME 'ANSWER' (ridge exercise list)");
    const char *text = k->v.operands[2];
    for (size_t i = 3; i < k->v.operands_n && text; i++) text = arena_printf(k->arena, "%s %s", text, k->v.operands[i]);
    if (!text) return err_nomem(e);
    TRY(ask(k, k->v.operands[1], &c, &at, &x, &q, e));
    TRY(exercise_grade(k->arena, c, &q, text, &v, e));
    if (v.right) {
        out_str(k->o, "right\n");
        return ERR_OK;
    }
    out_str(k->o, "not right: ");
    option_wrap(k->o, v.hint ? v.hint : "", 11, 4);
    return err_set(e, ERR_NO, "%s", ""); /* said on standard output */
}

/* ---- the command ---- */

static enum err_code grade(const struct asked *k, struct err *e)
{
    if (k->v.operands_n != 2) return err_set(e, ERR_USAGE, "exercise: ridge exercise grade FILE, - standard input");
    if (k->student)
        return err_set(e, ERR_USAGE, "exercise: grade takes students from the file; there \"seed\": \"by-student\"");
    return exercise_marks(k->arena, k->v.operands[1], k->class_seed, option_get(&k->v, "format"), k->o, e);
}

static const struct verb {
    const char *name;
    enum err_code (*run)(const struct asked *k, struct err *e);
} VERBS[] = {{"list", list}, {"show", show}, {"answer", answer}, {"grade", grade}};

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct asked k = {.arena = a};
    TRY(option_parse(a, c, argc, argv, &k.v, e));
    const size_t n = sizeof VERBS / sizeof VERBS[0];
    const char *word = k.v.operands_n ? k.v.operands[0] : "";
    char near[200], clean[64];
    size_t at = 0;
    while (at < n && strcmp(VERBS[at].name, word) != 0) at++;
    if (at == n)
        return err_set(e, ERR_USAGE, "exercise: wanted list, show, answer or grade, not '%s'%s",
                       text_clean(clean, sizeof clean, word, strlen(word)),
                       text_suggest(near, sizeof near, word, &VERBS[0].name, sizeof VERBS[0], n));
    if (units_parse_count(option_get(&k.v, "seed"), 0, INT64_MAX, &k.class_seed, e) != ERR_OK)
        return err_prepend(e, "--seed ");
    k.student = option_get(&k.v, "student");
    k.seed = k.student ? exercise_student_seed(k.class_seed, k.student) : k.class_seed;
    TRY(out_open(a, option_get(&k.v, "output"), &k.o, e));
    const enum err_code code = VERBS[at].run(&k, e);
    if (code != ERR_OK && code != ERR_NO) {
        out_abandon(k.o);
        return code;
    }
    const enum err_code written = out_commit(k.o, e);
    return written != ERR_OK ? written : code;
}

const struct command command_exercise = {
    .name = "exercise",
    .summary = "Questions with fresh numbers from a seed; answers graded by algebra, or with units, with a hint.",
    .usage = "list | show NAME | answer NAME 'ANSWER' | grade FILE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge exercise list\n"
                "  ridge exercise show mlp-intensity --seed 7\n"
                "  ridge exercise answer mlp-flops '6*B*S*D*F'\n"
                "  ridge exercise show batch-ridge --student ada --solution\n"
                "  ridge exercise grade answers.json --format tap\n"
                "\nAnswers\n"
                "  a formula  '6BTDF', 'S*T/(S+T)', '\\frac{S T}{S+T}', 'I = S/2': any equal form\n"
                "  a number   '7.9 ms', '0.0079 s', '7900 us'; '12.5 GiB'; '13,015,449,600';\n"
                "             '13.02B' of a count; '43%'; '989e12/3.35e12': within the tolerance\n"
                "  a choice   one of the words\n"
                "\nA file for grade\n"
                "  {\"seed\": 7, \"answers\": [\n"
                "    {\"student\": \"ada\", \"exercise\": \"mlp-flops\", \"answer\": \"6BTDF\"},\n"
                "    {\"student\": \"bob\", \"exercise\": 1, \"answer\": \"B/2\", \"seed\": 3}]}\n"
                "  or {\"seed\": 7, \"answers\": {\"ada\": {\"mlp-flops\": \"6BTDF\"}}}, or those students\n"
                "  alone, with the --seed of the command line. \"seed\": \"by-student\" gives every\n"
                "  student numbers of their own, those of show --student NAME.\n"
                "  Exit code 0 all right, 1 an answer is not, 3 the file is malformed.\n",
    .run = run,
};
