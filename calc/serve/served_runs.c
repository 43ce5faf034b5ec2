/* served_runs -- rows of a table of servers whose labels are known to be others than the runs had; of served.h. */
#include <string.h>

#include "calc/base/embed.h"
#include "calc/serve/served.h"

static const char FOLDER[] = "configs/runs/";

/* Rows of one publication, and what they are. */
struct run {
    const char *engine, *version, *system, *measured;
    struct json models;
    double prompt_tokens, clients_above; /* 0: any */
    const char *is_version;
    bool experts_dealt, groups; /* experts to all ranks; an attention group on each */
};

static enum err_code text_of(const struct json *j, const char *key, const char **out, struct err *e)
{
    struct json v;
    if (!json_get(j, key, &v)) return err_set(e, ERR_INPUT, "%s: %s: missing", j->file, key);
    return json_str(&v, out, e);
}

static enum err_code number_if(const struct json *j, const char *key, double *out, struct err *e)
{
    struct json v;
    return json_get(j, key, &v) ? json_num(&v, out, e) : ERR_OK;
}

/* "ranks", where it is said. */
static enum err_code ranks_if(const struct json *j, const char *key, bool *out, struct err *e)
{
    struct json v;
    const char *text;
    if (!json_get(j, key, &v)) return ERR_OK;
    TRY(json_str(&v, &text, e));
    *out = strcmp(text, "ranks") == 0;
    return *out ? ERR_OK : json_want(&v, "\"ranks\"", e);
}

static enum err_code parse_run(const struct json *j, struct run *out, struct err *e)
{
    struct json is;
    *out = (struct run){.engine = NULL};
    TRY(text_of(j, "engine", &out->engine, e));
    TRY(text_of(j, "version", &out->version, e));
    TRY(text_of(j, "system", &out->system, e));
    TRY(text_of(j, "measured", &out->measured, e));
    if (!json_get(j, "models", &out->models)) return err_set(e, ERR_INPUT, "%s: models: missing", j->file);
    TRY(number_if(j, "prompt_tokens", &out->prompt_tokens, e));
    TRY(number_if(j, "clients_above", &out->clients_above, e));
    if (!json_get(j, "is", &is)) return err_set(e, ERR_INPUT, "%s: is: missing", j->file);
    TRY(text_of(&is, "version", &out->is_version, e));
    TRY(ranks_if(&is, "ep", &out->experts_dealt, e));
    return ranks_if(&is, "attention_dp", &out->groups, e);
}

static bool is_of(const struct run *k, const struct served_row *r)
{
    struct json model;
    struct err none = {0};
    const char *name;
    if (strcmp(k->engine, r->engine) != 0 || strcmp(k->version, r->version) != 0 || strcmp(k->system, r->device) != 0 ||
        strcmp(k->measured, r->measured) != 0 || r->clients <= k->clients_above ||
        (k->prompt_tokens > 0 && (r->prompt_tokens < k->prompt_tokens || r->prompt_tokens > k->prompt_tokens)))
        return false;
    for (size_t i = 0; json_at(&k->models, i, NULL, &model); i++)
        if (json_str(&model, &name, &none) == ERR_OK && strcmp(name, r->model) == 0) return true;
    return false;
}

static void correct(const struct run *k, struct served_row *r)
{
    const int64_t ranks = r->tp * r->attention_dp;
    r->version = k->is_version;
    r->corrected = true;
    if (k->experts_dealt) r->ep = ranks;
    if (!k->groups) return;
    r->attention_dp = ranks;
    r->tp = 1;
}

enum err_code served_correct(struct arena *a, struct served *s, struct err *e)
{
    size_t files_n;
    const struct embed_file *f = embed_under(FOLDER, &files_n);
    for (size_t k = 0; k < files_n; k++) {
        struct json file, all, one;
        TRY(json_parse(a, f[k].path, (const char *)f[k].bytes, f[k].size, &file, e));
        if (!json_get(&file, "runs", &all)) return err_set(e, ERR_INPUT, "%s: runs: missing", file.file);
        for (size_t i = 0; json_at(&all, i, NULL, &one); i++) {
            struct run run;
            TRY(parse_run(&one, &run, e));
            for (size_t n = 0; n < s->n; n++)
                if (!s->row[n].corrected && is_of(&run, &s->row[n])) correct(&run, &s->row[n]);
        }
    }
    return ERR_OK;
}
