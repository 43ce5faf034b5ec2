#include "calc/cli/commands.h"

#include <string.h>

#ifndef RIDGE_VERSION
#define RIDGE_VERSION "unknown"
#endif

static const struct command *const COMMANDS[] = {
    &command_estimate, &command_compare, &command_plan,     &command_simulate, &command_explain,
    &command_check,    &command_solve,   &command_exercise, &command_probe,    &command_fit,
    &command_validate, &command_report,  &command_list,     &command_help};

const struct command *const *commands_table(size_t *n)
{
    *n = sizeof COMMANDS / sizeof COMMANDS[0];
    return COMMANDS;
}

const struct command *commands_find(const char *name)
{
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++)
        if (strcmp(COMMANDS[i]->name, name) == 0) return COMMANDS[i];
    return NULL;
}

const char *commands_tool(void) { return "ridge " RIDGE_VERSION; }
