#include "calc/cli/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/commands.h"

static size_t find_exactly(const struct command *c, const char *name, size_t len)
{
    size_t i = 0;
    while (i < c->options_n && !(strlen(c->options[i].name) == len && strncmp(c->options[i].name, name, len) == 0)) i++;
    return i;
}

/* By its name, or by the one that the same thing has in other commands. */
static size_t find_name(const struct command *c, const char *name, size_t len)
{
    static const char *const SAME[][2] = {{"gpu", "device"}, {"device", "gpu"}};
    size_t at = find_exactly(c, name, len);
    for (size_t i = 0; i < sizeof SAME / sizeof SAME[0] && at == c->options_n; i++)
        if (strlen(SAME[i][0]) == len && strncmp(SAME[i][0], name, len) == 0)
            at = find_exactly(c, SAME[i][1], strlen(SAME[i][1]));
    return at;
}

static enum err_code unknown(const struct command *c, const char *name, struct err *e)
{
    static const char *const DRAFTS[][2] = {{"medusa", "medusa=4"}, {"eagle", "eagle"}};
    char near[200], clean[64];
    for (size_t i = 0; i < sizeof DRAFTS / sizeof DRAFTS[0]; i++)
        if (strcmp(name, DRAFTS[i][0]) == 0 && find_name(c, "draft", strlen("draft")) < c->options_n)
            return err_set(e, ERR_USAGE, "%s: unknown option '%s' (did you mean --draft %s?)", c->name, name,
                           DRAFTS[i][1]);
    if (strcmp(c->name, "plan") == 0 && strcmp(name, "turns") == 0)
        return err_set(e, ERR_USAGE, "plan: unknown option 'turns': conversations are what ridge simulate --turns has");
    text_suggest(near, sizeof near, name, &c->options[0].name, sizeof c->options[0], c->options_n);
    return err_set(e, ERR_USAGE, "%s: unknown option '%s'%s (ridge help %s)", c->name,
                   text_clean(clean, sizeof clean, name, strlen(name)), near, c->name);
}

static enum err_code store(struct arena *a, struct option_values *v, size_t at, const char *text, struct err *e)
{
    if (v->command->options[at].kind == OPTION_MANY && v->given[at]) {
        v->text[at] = arena_printf(a, "%s,%s", v->text[at], text);
        if (!v->text[at]) return err_nomem(e);
        return ERR_OK;
    }
    v->text[at] = text;
    v->given[at] = true;
    return ERR_OK;
}

/* One member of a scenario as option text: strings and numbers as they stand, true for flags, lists joined by commas.
 */
static enum err_code scenario_text(struct arena *a, const struct json *j, const char **out, struct err *e)
{
    int64_t n;
    double x;
    bool b;
    if (json_is_string(j)) return json_str(j, out, e);
    if (json_is_bool(j)) {
        TRY(json_bool(j, &b, e));
        *out = b ? "" : NULL;
        return ERR_OK;
    }
    if (json_is_array(j)) {
        const char *all = NULL, *one;
        struct json item;
        for (size_t i = 0; json_at(j, i, NULL, &item); i++) {
            TRY(scenario_text(a, &item, &one, e));
            if (one) all = all ? arena_printf(a, "%s,%s", all, one) : one;
        }
        *out = all;
        return ERR_OK;
    }
    if (!json_is_number(j)) return json_want(j, "a string, a number, true, or a list of them", e);
    if (json_int(j, INT64_MIN, INT64_MAX, &n, NULL) == ERR_OK) {
        *out = arena_printf(a, "%lld", (long long)n);
    } else {
        TRY(json_num(j, &x, e));
        *out = arena_printf(a, "%.17g", x);
    }
    return *out ? ERR_OK : err_nomem(e);
}

/* Whether it is an option of the other command whose scenarios are taken. */
static bool of_other(const struct command *c, const char *key)
{
    const struct command *other = c->reads ? commands_find(c->reads) : NULL;
    return other && find_name(other, key, strlen(key)) < other->options_n;
}

static enum err_code read_scenario(struct arena *a, struct option_values *v, const char *path, struct err *e)
{
    struct json root, inner, item;
    const struct command *c = v->command;
    TRY(json_load(a, path, &root, e));
    if (json_get(&root, "scenario", &inner)) root = inner;
    if (!json_is_object(&root)) return json_want(&root, "an object of option names", e);
    const char *key;
    for (size_t i = 0; json_at(&root, i, &key, &item); i++) {
        if (strcmp(key, "command") == 0) {
            const char *name = NULL;
            TRY(json_str(&item, &name, e));
            const bool other = c->reads && strcmp(name, c->reads) == 0;
            if (!other && strcmp(name, c->name) != 0) return json_want(&item, c->name, e);
            continue;
        }
        const size_t at = find_name(c, key, strlen(key));
        if (at == c->options_n && of_other(c, key)) continue;
        if (at == c->options_n) {
            (void)unknown(c, key, e);
            e->code = ERR_INPUT;
            return err_prepend(e, "%s: ", path);
        }
        if (c->options[at].typed_only)
            return err_set(e, ERR_INPUT, "%s: --%s names a file to write, which only the command line can", path, key);
        const char *text;
        const bool flag = c->options[at].kind == OPTION_FLAG;
        if (flag && !json_is_bool(&item)) return json_want(&item, "true or false", e);
        if (!flag && json_is_bool(&item)) return json_want(&item, c->options[at].value, e);
        TRY(scenario_text(a, &item, &text, e));
        if (!flag && (!text || !*text)) return json_want(&item, c->options[at].value, e);
        if (text) TRY(store(a, v, at, text, e));
    }
    return ERR_OK;
}

/* Which option argv[*i] is, and its value (NULL for flags); *i moves past what was used. */
static enum err_code take(const struct command *c, int argc, char **argv, int *i, size_t *at, const char **value,
                          struct err *e)
{
    const char *arg = argv[*i], *inline_value = NULL;
    if (arg[1] == '-') {
        const char *equals = strchr(arg, '=');
        const size_t len = equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
        *at = find_name(c, arg + 2, len);
        if (*at == c->options_n) return unknown(c, arg + 2, e);
        inline_value = equals ? equals + 1 : NULL;
    } else {
        *at = 0;
        while (*at < c->options_n && c->options[*at].letter != arg[1]) (*at)++;
        if (*at == c->options_n) return unknown(c, arg, e);
        inline_value = arg[2] ? arg + 2 : NULL;
    }
    const struct option *o = &c->options[*at];
    if (o->kind == OPTION_FLAG) {
        if (inline_value) return err_set(e, ERR_USAGE, "%s: --%s takes no value", c->name, o->name);
        *value = "";
        return ERR_OK;
    }
    if (!inline_value) {
        if (*i + 1 >= argc) return err_set(e, ERR_USAGE, "%s: --%s wants a value: %s", c->name, o->name, o->value);
        inline_value = argv[++*i];
    }
    if (!*inline_value) return err_set(e, ERR_USAGE, "%s: --%s was given an empty value", c->name, o->name);
    *value = inline_value;
    return ERR_OK;
}

/* "-B": a minus sign and what no short option begins with */
static bool is_formula(const struct command *c, const char *arg)
{
    if (!c->formulas || arg[1] == '-') return false;
    for (size_t i = 0; i < c->options_n; i++)
        if (c->options[i].letter == arg[1]) return false;
    return true;
}

enum err_code option_parse(struct arena *a, const struct command *c, int argc, char **argv, struct option_values *out,
                           struct err *e)
{
    struct option_values v = {.command = c};
    v.text = arena_array(a, c->options_n, sizeof *v.text);
    v.given = arena_array(a, c->options_n, sizeof *v.given);
    v.operands = arena_array(a, (size_t)argc, sizeof *v.operands);
    if (!v.text || !v.given || !v.operands) return err_nomem(e);
    const char *scenario = NULL;
    bool *typed = arena_array(a, c->options_n, sizeof *typed);
    const char **text = arena_array(a, c->options_n, sizeof *text);
    if (!typed || !text) return err_nomem(e);
    struct option_values line = {.command = c, .text = text, .given = typed};
    for (int i = 1; i < argc; i++) {
        size_t at;
        const char *value = NULL;
        if (strcmp(argv[i], "--") == 0) {
            while (++i < argc) v.operands[v.operands_n++] = argv[i];
            break;
        }
        if (argv[i][0] != '-' || argv[i][1] == '\0' || is_formula(c, argv[i])) {
            v.operands[v.operands_n++] = argv[i];
            continue;
        }
        TRY(take(c, argc, argv, &i, &at, &value, e));
        if (c->options[at].single && typed[at] && strcmp(text[at], value) != 0)
            return err_set(e, ERR_USAGE, "%s: --%s %.40s and --%s %.40s: there can be one", c->name,
                           c->options[at].name, text[at], c->options[at].name, value);
        TRY(store(a, &line, at, value, e));
        if (strcmp(c->options[at].name, "scenario") == 0) scenario = value;
    }
    if (scenario) TRY(read_scenario(a, &v, scenario, e));
    for (size_t i = 0; i < c->options_n; i++)
        for (size_t k = 0; k < c->options_n && typed[i]; k++)
            if (c->options[i].alternative && c->options[k].alternative &&
                c->options[i].alternative != c->options[k].alternative)
                v.given[k] = false;
    for (size_t i = 0; i < c->options_n; i++) {
        if (typed[i]) {
            v.text[i] = text[i];
            v.given[i] = true;
        }
        if (!v.given[i]) v.text[i] = c->options[i].kind == OPTION_FLAG ? NULL : c->options[i].fallback;
    }
    for (size_t i = 0; i < c->options_n; i++)
        if (c->options[i].written && v.given[i]) TRY(out_check_path(v.text[i], e));
    v.typed = typed;
    *out = v;
    return ERR_OK;
}

const char *option_get(const struct option_values *v, const char *name)
{
    const size_t at = find_name(v->command, name, strlen(name));
    return at < v->command->options_n ? v->text[at] : NULL;
}

bool option_given(const struct option_values *v, const char *name)
{
    const size_t at = find_name(v->command, name, strlen(name));
    return at < v->command->options_n && v->given[at];
}

static enum err_code named(const char *name, struct err *e) { return e ? err_prepend(e, "--%s: ", name) : ERR_USAGE; }

enum err_code option_count(const struct option_values *v, const char *name, int64_t least, int64_t most, int64_t *out,
                           struct err *e)
{
    const char *text = option_get(v, name);
    return !text || units_parse_count(text, least, most, out, e) == ERR_OK ? ERR_OK : named(name, e);
}

enum err_code option_real(const struct option_values *v, const char *name, double least, double most, double *out,
                          struct err *e)
{
    const char *text = option_get(v, name);
    char *end, clean[64];
    if (!text) return ERR_OK;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x >= least && x <= most))
        return err_set(e, ERR_USAGE, "--%s: wanted a number from %g to %g, not '%s'", name, least, most,
                       text_clean(clean, sizeof clean, text, strlen(text)));
    *out = x;
    return ERR_OK;
}

enum err_code option_time(const struct option_values *v, const char *name, double *out, struct err *e)
{
    const char *text = option_get(v, name);
    return !text || units_parse_time(text, out, e) == ERR_OK ? ERR_OK : named(name, e);
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

const char *option_scenario_json(struct arena *a, const struct option_values *v)
{
    struct out *o;
    if (out_memory(a, &o, NULL) != ERR_OK) return NULL;
    out_str(o, "{\"command\": ");
    write_json_string(o, v->command->name);
    for (size_t i = 0; i < v->command->options_n; i++) {
        const struct option *opt = &v->command->options[i];
        if (!v->given[i] || strcmp(opt->name, "scenario") == 0 || opt->typed_only) continue;
        out_str(o, ", ");
        write_json_string(o, opt->name);
        out_str(o, ": ");
        if (opt->kind == OPTION_FLAG)
            out_str(o, "true");
        else
            write_json_string(o, v->text[i]);
    }
    out_char(o, '}');
    return out_text(o, NULL);
}

enum { HELP_WIDTH = 79, HELP_INDENT = 28 };

void option_wrap(struct out *o, const char *text, size_t at, size_t indent)
{
    bool fresh = true; /* nothing on this line yet beyond what stood there */
    while (*text) {
        size_t word = strcspn(text, " ");
        if (at + !fresh + word > HELP_WIDTH && memchr(text, '|', word)) { /* a|b|c goes on behind a bar */
            size_t part = 0;
            for (size_t i = 0; at + !fresh + i + 1 <= HELP_WIDTH && i < word; i++)
                if (text[i] == '|') part = i + 1;
            if (part) word = part;
        }
        if (!fresh && at + 1 + word > HELP_WIDTH) {
            out_printf(o, "\n%*s", (int)indent, "");
            at = indent;
            fresh = true;
        }
        if (!fresh) {
            out_char(o, ' ');
            at++;
        }
        out_write(o, text, word);
        at += word;
        const bool split = word > 0 && text[word - 1] == '|' && text[word] != ' ' && text[word];
        text += word + strspn(text + word, " ");
        fresh = false;
        if (!split) continue;
        out_printf(o, "\n%*s", (int)indent, "");
        at = indent;
        fresh = true;
    }
    out_char(o, '\n');
}

/* Lines as they stand; commands too long for a terminal go on behind a backslash. */
static void put_examples(struct out *o, const char *text)
{
    enum { MORE = 6 };
    while (*text) {
        size_t len = strcspn(text, "\n"), at = 0;
        while (strncmp(text, "  ridge ", strlen("  ridge ")) == 0 || at) {
            if (at + len <= HELP_WIDTH) break;
            size_t cut = HELP_WIDTH - 2 - at;
            while (cut > 0 && !(text[cut] == ' ' && text[cut + 1] == '-')) cut--;
            if (cut == 0) break;
            out_write(o, text, cut);
            out_printf(o, " \\\n%*s", MORE, "");
            text += cut + 1;
            len -= cut + 1;
            at = MORE;
        }
        out_write(o, text, len);
        out_char(o, '\n');
        text += len + (text[len] == '\n');
    }
}

void option_help(struct out *o, const struct command *c)
{
    out_printf(o, "ridge %s ", c->name);
    option_wrap(o, c->usage, 7 + strlen(c->name), 4);
    out_str(o, "    ");
    option_wrap(o, c->summary, 4, 4);
    if (c->examples && *c->examples) {
        out_str(o, "\nExamples\n");
        put_examples(o, c->examples);
    }
    for (size_t i = 0; i < c->options_n; i++) {
        const struct option *p = &c->options[i];
        if (p->group) out_printf(o, "\n%s\n", p->group);
        char left[96];
        const char dash = p->letter ? '-' : ' ', letter = p->letter ? p->letter : ' ', comma = p->letter ? ',' : ' ';
        const int full = snprintf(left, sizeof left, "  %c%c%c --%s%s%s", dash, letter, comma, p->name,
                                  p->value ? " " : "", p->value ? p->value : "");
        const size_t len = full < 0 ? 0 : (size_t)full < sizeof left ? (size_t)full : sizeof left - 1;
        out_write(o, left, len);
        if (len + 2 > HELP_INDENT)
            out_printf(o, "\n%*s", HELP_INDENT, "");
        else
            out_printf(o, "%*s", (int)(HELP_INDENT - len), "");
        option_wrap(o, p->help, HELP_INDENT, HELP_INDENT);
        if (p->fallback) out_printf(o, "%*s[%s]\n", HELP_INDENT, "", p->fallback);
    }
}

/* Text for troff: backslashes and leading dots made harmless. */
static void man_text(struct out *o, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\')
            out_str(o, "\\e");
        else if (*s == '-')
            out_str(o, "\\-");
        else
            out_char(o, *s);
    }
}

void option_man(struct out *o, const struct command *c)
{
    out_printf(o, ".SS \"ridge %s\"\n", c->name);
    man_text(o, c->summary);
    out_str(o, "\n");
    for (size_t i = 0; i < c->options_n; i++) {
        const struct option *p = &c->options[i];
        out_str(o, ".TP\n.B ");
        if (p->letter) out_printf(o, "\\-%c, ", p->letter);
        out_str(o, "\\-\\-");
        man_text(o, p->name);
        if (p->value) {
            out_str(o, " ");
            man_text(o, p->value);
        }
        out_str(o, "\n");
        man_text(o, p->help);
        if (p->fallback) {
            out_str(o, " Default: ");
            man_text(o, p->fallback);
            out_str(o, ".");
        }
        out_str(o, "\n");
    }
}
