#include "calc/serve/emit_said.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* -- text -- */

enum { LINE_MOST = 78 };

void emit_put(struct emit_lines *o, const char *text)
{
    const size_t n = strlen(text);
    if (o->used + n + 1 > sizeof o->text) {
        o->cut = true;
        return;
    }
    memcpy(o->text + o->used, text, n + 1);
    o->used += n;
    o->column += n;
    const char *last = strrchr(text, '\n');
    if (last) o->column = strlen(last + 1);
}

/* A word of the command; the line goes on below when it is full. */
void emit_word(struct emit_lines *o, const char *fmt, ...)
{
    char text[1024]; /* not a unit */
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    o->cut = o->cut || n < 0 || (size_t)n >= sizeof text;
    if (o->column > 0) emit_put(o, o->column + strlen(text) + 3 > LINE_MOST ? " \\\n  " : " ");
    emit_put(o, text);
}

void emit_comment(struct emit_lines *o, const char *text)
{
    const bool lines = strchr(text, '\n') != NULL; /* broken already */
    size_t at = 1;
    emit_put(o, "#");
    while (*text && !lines) {
        char word[128];
        const size_t n = strcspn(text, " ");
        if (at + 1 + n > LINE_MOST) {
            emit_put(o, "\n#  ");
            at = 3;
        }
        (void)snprintf(word, sizeof word, " %.*s", (int)n, text);
        emit_put(o, n + 2 > sizeof word ? " " : word);
        if (n + 2 > sizeof word) { /* a word that is longer than a line: as it is */
            emit_put(o, text);
            break;
        }
        at += 1 + n;
        text += n + strspn(text + n, " ");
    }
    if (lines) {
        emit_put(o, " ");
        emit_put(o, text);
    }
    emit_put(o, "\n");
}

static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";

bool emit_is_plain(const char *s) { return s[strspn(s, PLAIN)] == '\0'; }

const char *emit_quoted(struct arena *a, const char *s)
{
    if (*s && *s != '-' && emit_is_plain(s)) return s;
    size_t n = 2;
    for (const char *c = s; *c; c++) n += *c == '\'' ? 4 : 1;
    char *out = arena_array(a, n + 1, 1);
    if (!out) return NULL;
    char *to = out;
    *to++ = '\'';
    for (const char *c = s; *c; c++) {
        const char *piece = *c == '\'' ? "'\\''" : NULL;
        if (piece)
            for (; *piece; piece++) *to++ = *piece;
        else
            *to++ = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c; /* no line ends, no terminal codes */
    }
    *to++ = '\'';
    *to = '\0';
    return out;
}

/* -- what is said above each -- */

void emit_say_copies(struct emit_lines *o, const struct emit_plan *p, const char *router)
{
    const struct layout *l = &p->layout;
    char text[384];
    const long long copy = (long long)(layout_group(l) * l->pp), decode = (long long)(l->replicas - p->prefill);
    if (p->prefill > 0) {
        (void)snprintf(
            text, sizeof text,
            "%lld %s of %lld GPU%s prefill%s and %lld decode%s: run this once for each, on GPUs and a port of "
            "its own (CUDA_VISIBLE_DEVICES, --port), behind a router that sends each prompt to the one kind "
            "and then to the other:",
            (long long)p->prefill, p->prefill == 1 ? "copy" : "copies", copy, copy == 1 ? "" : "s",
            p->prefill == 1 ? "s" : "", decode, decode == 1 ? "s" : "");
        emit_comment(o, text);
        emit_comment(o, router);
        emit_comment(o,
                     "one line serves both kinds: its limits are the plan's, which has the same in both, and sequences "
                     "of those that decode and tokens of a step of those that prefill may be sized apart");
    } else if (l->replicas > 1) {
        (void)snprintf(text, sizeof text,
                       "%lld copies of %lld GPU%s: run this once for each, on GPUs and a port of its own "
                       "(CUDA_VISIBLE_DEVICES, --port), behind a router to the least loaded:",
                       (long long)l->replicas, copy, copy == 1 ? "" : "s");
        emit_comment(o, text);
        emit_comment(o, router);
    }
}

void emit_say_checkpoint(struct emit_lines *o, const struct emit_plan *p)
{
    if (strcmp(p->model, EMIT_CHECKPOINT) == 0)
        emit_comment(
            o, EMIT_CHECKPOINT
            " is the directory of the checkpoint, or its id: the model was described by one file, which no engine "
            "loads");
    if (p->draft_tokens > 0 && p->draft && strcmp(p->draft, EMIT_DRAFT_CHECKPOINT) == 0)
        emit_comment(o, EMIT_DRAFT_CHECKPOINT " is that of the draft, likewise");
}

/* Whether the engine needs a checkpoint whose weights are stored as planned: vLLM and SGLang make fp8 of 16 bits as
 * they load (--quantization fp8), TensorRT-LLM converts nothing. */
bool emit_stored_otherwise(const struct emit_plan *p, enum emit_engine engine)
{
    return p->weights && !(engine != EMIT_TRTLLM && p->fp8_on_load);
}

void emit_say_weights(struct emit_lines *o, const struct emit_plan *p, enum emit_engine engine, const char *model)
{
    char text[512];
    if (!emit_stored_otherwise(p, engine)) return;
    (void)snprintf(text, sizeof text,
                   "weights in %s: a checkpoint stored so is needed, and %s is not. Set CHECKPOINT to its directory or "
                   "id first:",
                   p->weights, model);
    emit_comment(o, text);
    if (strcmp(p->weights, "fp8") == 0 && p->fp8_on_load) { /* features/quantization of TensorRT-LLM's documentation */
        emit_comment(
            o, "  one that is published (nvidia/...-FP8), or made by examples/llm_ptq of NVIDIA's Model Optimizer:");
        (void)snprintf(text, sizeof text,
                       "  scripts/huggingface_example.sh --model %s \\\n#     --quant fp8 --export_fmt hf", model);
        emit_comment(o, text);
    }
    emit_comment(o, "  CHECKPOINT=directory or id of the model in that format");
}

/* A request that is longer than planned is refused from this length on. */
void emit_say_length(struct emit_lines *o, const struct emit_plan *p)
{
    char text[256];
    if (p->longest_tokens < 1) return;
    const double more = 100 * ((double)p->max_model_len / (double)p->longest_tokens - 1);
    (void)snprintf(text, sizeof text,
                   "the longest request planned has %lld tokens, prompt and answer; %lld are taken, ",
                   (long long)p->longest_tokens, (long long)p->max_model_len);
    const size_t n = strlen(text);
    const bool whole = p->max_model_len % EMIT_LENGTH_PAGE == 0; /* else what the model or the cache has room for */
    if (more >= 1)
        (void)snprintf(text + n, sizeof text - n, "%.0f %% more%s, and longer ones refused", more,
                       whole && more >= 25 ? " (a quarter, up to a whole 256)" : "");
    else
        (void)snprintf(text + n, sizeof text - n, "and not one longer: neither the model nor the cache has more room");
    emit_comment(o, text);
}

void emit_say_draft(struct emit_lines *o, const struct emit_plan *p)
{
    if (p->draft_tokens > 0 && p->drafting == EMIT_EAGLE)
        emit_comment(o, "HEAD is the checkpoint of an EAGLE head that was trained for the model");
    if (p->draft_tokens > 0 && p->drafting == EMIT_MEDUSA)
        emit_comment(o, "HEAD is the checkpoint of Medusa's heads that were trained for the model");
    if (p->draft_nodes > 0)
        emit_comment(o, "the engine hangs its likeliest drafts itself, as many as the plan's tree has");
}

int64_t emit_nodes(const struct layout *l)
{
    const int64_t copy = layout_group(l) * l->pp;
    return l->per_node > 0 && copy > l->per_node ? (copy + l->per_node - 1) / l->per_node : 1;
}

/* What the shell has to know on every node; it says so itself where it does not (${X:?}). */
void emit_say_nodes(struct emit_lines *o, const struct layout *l, const char *ranked)
{
    char text[256];
    (void)snprintf(text, sizeof text, "on each of the copy's %lld nodes, first of all:", (long long)emit_nodes(l));
    emit_comment(o, text);
    emit_comment(o, "  HEAD_IP=address of the first node");
    if (ranked) emit_comment(o, ranked);
}
