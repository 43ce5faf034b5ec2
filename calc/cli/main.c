#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"

static enum err_code unknown(const char *name, struct err *e)
{
    size_t n;
    const struct command *const *all = commands_table(&n);
    const char *names[16];
    for (size_t i = 0; i < n; i++) names[i] = all[i]->name;
    char near[200], clean[64];
    text_suggest(near, sizeof near, name, names, sizeof names[0], n);
    return err_set(e, ERR_USAGE, "unknown command '%s'%s (ridge help)",
                   text_clean(clean, sizeof clean, name, strlen(name)), near);
}

static enum err_code dispatch(struct arena *a, int argc, char **argv, struct err *e)
{
    if (argc < 2) {
        (void)command_help.run(a, &command_help, argc, argv, e);
        return err_set(e, ERR_USAGE, "which command?");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return command_help.run(a, &command_help, 1, argv, e);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        if (printf("%s\n", commands_tool()) < 0 || fflush(stdout) != 0)
            return err_set(e, ERR_IO, "cannot write to standard output");
        return ERR_OK;
    }
    const struct command *c = commands_find(argv[1]);
    if (!c) return unknown(argv[1], e);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return command_help.run(a, &command_help, 2, argv, e);
    const enum err_code code = c->run(a, c, argc - 1, argv + 1, e);
    return code == ERR_OK ? ERR_OK : option_blame(a, c, argc - 1, argv + 1, e);
}

int main(int argc, char **argv)
{
    struct err e = {.code = ERR_OK};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is a write that fails, which is said */
    struct arena *a = arena_open();
    const enum err_code code = a ? dispatch(a, argc, argv, &e) : err_nomem(&e);
    char clean[sizeof e.text + 4];
    if (code != ERR_OK && e.text[0]) /* it may quote a file or an argument */
        (void)fprintf(stderr, "ridge: %s\n", text_clean(clean, sizeof clean, e.text, strlen(e.text)));
    for (const char *line = e.below; code != ERR_OK && *line;) {
        const size_t n = strcspn(line, "\n");
        (void)fprintf(stderr, "  %s\n", text_clean(clean, sizeof clean, line, n));
        line += n + (line[n] == '\n');
    }
    arena_close(a);
    return (int)code;
}
