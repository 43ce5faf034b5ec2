/* cmd_report -- a plan as one HTML file: the answer, its figures with their formulas, pictures, inputs, conventions.
 * It is a command and not a format of `ridge plan`: beside the plan it solves the lines of its pictures, simulates the
 * winner and derives formulas, and its output is a page and no rows. */
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/report.h"

static const struct option OPTIONS[] = {
    PLAN_OPTIONS("devices to choose from, N: so many of it at most (default: h100-sxm,h200-sxm,l40s)"),
    {.name = "emit",
     .kind = OPTION_TEXT,
     .value = "ENGINE",
     .group = "Output",
     .help = "vllm, sglang or trtllm: the page has its command line alone (--server: whose layouts are planned)"},
    LAYOUT_TEXT("top", "N", NULL, "only the N best runners-up"),
    OPTION_FILE("output", 'o', "the page, complete or not at all (default: standard output)"),
    LAYOUT_TEXT("scenario", "FILE", NULL, "options from a JSON object, or from a result that ridge plan wrote as JSON"),
};

/* The winner request by request; plans that are not simulated say why. */
static enum err_code simulate(struct report *r, struct err *e)
{
    const struct plan_case *c = r->c;
    if (c->request.aim != PLANNER_SERVE) {
        r->unsimulated = "no latency is promised, so arrivals one by one decide nothing";
        return ERR_OK;
    }
    r->unsimulated = planner_verifies(r->best);
    if (r->unsimulated) return ERR_OK;
    TRY(planner_run(r->arena, &c->request, r->best, &c->work, &r->run, e));
    return planner_run_judge(r->arena, &c->request, &r->run, &r->verified, e);
}

static enum err_code write(struct report *r, struct err *e)
{
    const char *title = r->best ? arena_printf(r->arena, "%s on %lld x %s", r->c->model, (long long)r->best->gpus,
                                               r->c->device[r->best->device].hw->key)
                                : arena_printf(r->arena, "%s: no plan", r->c->model);
    if (!title) return err_nomem(e);
    report_begin(r->o, title);
    TRY(report_answer(r, e));
    TRY(report_winner(r, e));
    TRY(report_others(r, e));
    TRY(report_pictures(r, e));
    TRY(report_inputs(r, e));
    TRY(report_conventions(r, e));
    TRY(report_formulas(r, e));
    TRY(report_method(r, e));
    report_end(r->o);
    return out_check(r->o, e);
}

static enum err_code run(struct arena *a, const struct command *command, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct plan_case *c = arena_alloc(a, sizeof *c);
    struct report *r = arena_alloc(a, sizeof *r);
    if (!c || !r) return err_nomem(e);
    TRY(option_parse(a, command, argc, argv, &v, e));
    if (v.operands_n) return err_set(e, ERR_USAGE, "report: '%.60s' belongs to no option", v.operands[0]);
    TRY(plan_case_open(a, &v, c, e));
    *r = (struct report){.arena = a, .c = c, .best = c->result.best_n ? &c->result.best[0] : NULL};
    TRY(plan_curves_of(a, c, &r->curves, e));
    if (r->best) TRY(simulate(r, e));
    TRY(out_open(a, option_get(&v, "output"), &r->o, e));
    TRY(write(r, e));
    TRY(out_commit(r->o, e));
    return r->best ? ERR_OK : plan_none(c, e);
}

const struct command command_report = {
    .name = "report",
    .summary = "A plan as one HTML page: the answer, its figures with formulas, pictures, inputs, conventions.",
    .usage = "-m MODEL --rate R --prompt N --generate N --ttft TIME --tpot TIME -o FILE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .reads = "plan",
    .examples = "  ridge report -m llama-3.1-8b --rate 20 --ttft p95=500ms --tpot p95=30ms -o report.html\n"
                "  ridge report --scenario chat.json -o report.html\n"
                "  ridge report -m qwen3-8b --trace azure.csv --ttft p99=2s --tpot p99=50ms -o report.html\n",
    .run = run,
};
