/* cmd_exercise -- questions with fresh numbers, answers graded with a hint, a whole class at once. */
#include <string.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/exercise_marks.h"
#include "calc/cli/exercise_show.h"
#include "calc/learn/exercise.h"

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
    {.name = "totals", .kind = OPTION_FLAG, .help = "of grade: a row a student instead of a row an answer"},
    OPTION_FORMAT("text, md, csv, json or jsonl; of grade also tap (version 13)"),
    OPTION_FILE("output", 'o', "write to a file"),
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

static enum err_code show(const struct asked *k, struct err *e)
{
    const struct exercise_shown shown = {.arena = k->arena,
                                         .class_seed = k->class_seed,
                                         .seed = k->seed,
                                         .student = k->student,
                                         .seed_typed = option_given(&k->v, "seed"),
                                         .solution = option_get(&k->v, "solution") != NULL,
                                         .format = option_get(&k->v, "format")};
    if (k->v.operands_n < 2)
        return err_set(e, ERR_USAGE,
                       "exercise: show which one? ridge exercise show NAME, or all (ridge exercise list)");
    return exercise_show(&shown, k->v.operands_n - 1, k->v.operands + 1, k->o, e);
}

/* ---- answer ---- */

static enum err_code answer(const struct asked *k, struct err *e)
{
    struct exercise_question q;
    struct exercise_verdict v;
    const struct exercise *x;
    if (k->v.operands_n < 3)
        return err_set(
            e, ERR_USAGE,
            "exercise: answer which one with what? ridge exercise answer NAME 'ANSWER' (ridge exercise list)");
    const char *text = k->v.operands[2];
    for (size_t i = 3; i < k->v.operands_n && text; i++) text = arena_printf(k->arena, "%s %s", text, k->v.operands[i]);
    if (!text) return err_nomem(e);
    TRY(exercise_find(k->v.operands[1], NULL, &x, e));
    struct sym_ctx *c = sym_open(k->arena);
    if (!c) return err_nomem(e);
    TRY(exercise_ask(k->arena, c, x, (uint64_t)k->seed, &q, e));
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
    if (k->v.operands_n != 2)
        return err_set(e, ERR_USAGE, "exercise: grade which file? ridge exercise grade FILE, - for standard input");
    const struct exercise_marking how = {.class_seed = k->class_seed,
                                         .seed_typed = option_given(&k->v, "seed"),
                                         .totals = option_get(&k->v, "totals") != NULL,
                                         .format = option_get(&k->v, "format")};
    return exercise_marks(k->arena, k->v.operands[1], &how, k->o, e);
}

static const struct verb {
    const char *name;
    enum err_code (*run)(const struct asked *k, struct err *e);
    const char *options; /* besides --output and --scenario */
} VERBS[] = {
    {"list", list, "format"},
    {"show", show, "seed student solution format"},
    {"answer", answer, "seed student"},
    {"grade", grade, "seed format totals"},
};
enum { VERBS_N = sizeof VERBS / sizeof VERBS[0] };

static bool takes(const struct verb *v, const char *option)
{
    const size_t n = strlen(option);
    for (const char *p = v->options; (p = strstr(p, option)) != NULL; p++)
        if ((p == v->options || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

/* An option that would be passed over is refused. */
static enum err_code check_options(const struct asked *k, const struct verb *verb, struct err *e)
{
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
        const char *name = OPTIONS[i].name, *others = "";
        if (!k->v.given[i] || takes(verb, name) || strcmp(name, "output") == 0) continue;
        for (size_t j = 0; j < VERBS_N && others; j++)
            if (takes(&VERBS[j], name))
                others = arena_printf(k->arena, "%s%s%s", others, *others ? ", " : "", VERBS[j].name);
        return err_set(
            e, ERR_USAGE, "exercise: %s takes no --%s, which is for %s%s", verb->name, name, others ? others : "others",
            verb->run == grade && strcmp(name, "student") == 0 ? "; a file has \"seed\": \"by-student\"" : "");
    }
    return ERR_OK;
}

static enum err_code read_seed(struct asked *k, struct err *e)
{
    const char *text = option_get(&k->v, "seed");
    char clean[48];
    const enum err_code code = units_parse_count(text, 0, INT64_MAX, &k->class_seed, e);
    if (code == ERR_RANGE)
        return err_set(e, ERR_USAGE, "--seed \"%s\": wanted at most 9223372036854775807",
                       text_clean(clean, sizeof clean, text, strlen(text)));
    if (code != ERR_OK) return err_prepend(e, "--seed ");
    k->student = option_get(&k->v, "student");
    k->seed = k->student ? exercise_student_seed(k->class_seed, k->student) : k->class_seed;
    return ERR_OK;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct asked k = {.arena = a};
    TRY(option_parse(a, c, argc, argv, &k.v, e));
    const char *word = k.v.operands_n ? k.v.operands[0] : "";
    char near[200], clean[64];
    size_t at = 0;
    if (!*word) return err_set(e, ERR_USAGE, "exercise: wanted list, show, answer or grade: ridge help exercise");
    while (at < VERBS_N && strcmp(VERBS[at].name, word) != 0) at++;
    if (at == VERBS_N)
        return err_set(e, ERR_USAGE, "exercise: wanted list, show, answer or grade, not '%s'%s",
                       text_clean(clean, sizeof clean, word, strlen(word)),
                       text_suggest(near, sizeof near, word, &VERBS[0].name, sizeof VERBS[0], VERBS_N));
    TRY(check_options(&k, &VERBS[at], e));
    TRY(read_seed(&k, e));
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
    .usage = "list | show NAME ...|all | answer NAME 'ANSWER' | grade FILE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge exercise list\n"
                "  ridge exercise show mlp-intensity --seed 7\n"
                "  ridge exercise answer mlp-flops '6*B*S*L*D*F' --seed 1\n"
                "  ridge exercise show all --student ada -f md -o ada.md\n"
                "  ridge exercise show batch-ridge --student ada --solution\n"
                "  ridge exercise grade answers.json --format tap\n"
                "\nAnswers\n"
                "  a formula  '6BSDFL', 'S*T/(S+T)', '$\\frac{S T}{S+T}$', 'I = S/2':\n"
                "             any equal form\n"
                "  a number   '7.9 ms', '0.0079 s', '7900 us'; '12.5 GiB'; '13,015,449,600';\n"
                "             '13.02B' of a count; '43%'; '989e12/3.35e12': within the tolerance\n"
                "  a choice   one of the words\n"
                "\nA file for grade\n"
                "  {\"seed\": 7, \"exercises\": [\"mlp-flops\", \"ridge-cpu\"], \"answers\": [\n"
                "    {\"student\": \"ada\", \"exercise\": \"mlp-flops\", \"answer\": \"6BSDFL\"},\n"
                "    {\"student\": \"bob\", \"exercise\": 9, \"answer\": \"4BSDFL\", \"seed\": 1}]}\n"
                "  or {\"seed\": 7, \"answers\": {\"ada\": {\"mlp-flops\": \"6BSDFL\"}}}, or those students\n"
                "  alone, with the --seed of the command line, which also wins over the file's.\n"
                "  \"seed\": \"by-student\" gives every student numbers of their own, those of\n"
                "  show --student NAME. \"exercises\" are what was asked: sums are out of these,\n"
                "  and what is missing is not right; without it they are out of what was handed\n"
                "  in.\n"
                "  Exit code 0 all right, 1 an answer is not, 3 the file is malformed.\n",
    .run = run,
};
