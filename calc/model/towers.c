/* towers -- what a file says of its encoders of images (rows of towers_rows): the layers of all are the same sum, what
 * joins them to the language model is a function of its own (towers_join). */
#include "calc/model/towers.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/towers_count.h"

/* Layers: two norms, queries, keys, values and output of the stream's own width, and an MLP. */
static void count_layers(struct count *c)
{
    const struct tower *t = c->row;
    const double D = (double)c->width, F = (double)c->ffn, n = (double)c->layers, ups = t->gated ? 2 : 1;
    c->split += n * (4 * D * D + (t->qkv_bias ? 3 * D : 0) + (ups + 1) * D * F + (t->mlp_bias ? ups * F : 0));
    c->whole +=
        n * ((t->out_bias ? D : 0) + (t->mlp_bias ? D : 0) + (double)(2 * t->norm_vectors + t->layer_vectors) * D);
}

/* A size by the spelling that the file has. */
static struct size_key spelled(const struct count *c, struct size_key k, const char *other)
{
    if (other && json_has(&c->vision, other)) k.key = other;
    return k;
}

/* A width that the file says as a multiple of the stream's. */
static enum err_code ffn_of_ratio(struct count *c)
{
    struct json j;
    double ratio = c->row->ratio_fallback;
    if (json_get(&c->vision, c->row->ratio, &j)) {
        TRY(json_num(&j, &ratio, c->r->e));
        if (!(ratio * (double)c->width >= 1) || !(ratio <= SIDE_MAX))
            return json_want(&j, "a width of the MLP over that of the stream", c->r->e);
    }
    c->ffn = (int64_t)floor(ratio * (double)c->width);
    return ERR_OK;
}

static enum err_code count_tower(struct count *c)
{
    const struct tower *t = c->row;
    if (t->all) return t->all(c);
    const struct size_key layers = spelled(c, t->layers, t->layers_other), width = spelled(c, t->width, t->width_other);
    TRY(towers_size(c, &c->vision, layers, LAYERS_MAX, &c->layers));
    TRY(towers_size(c, &c->vision, width, WIDTH_MAX, &c->width));
    TRY(t->ratio ? ffn_of_ratio(c) : towers_size(c, &c->vision, t->ffn, WIDTH_MAX, &c->ffn));
    c->assumed = !json_has(&c->vision, width.key);
    TRY(towers_size(c, &c->vision, t->channels, SIDE_MAX, &c->channels));
    TRY(towers_side(c, t->patch, &c->patch));
    if (c->missing) return ERR_OK;
    count_layers(c);
    const double pixels = (double)c->channels * (double)t->frames * (double)c->patch * (double)c->patch;
    TRY(t->join(c));
    c->whole += (pixels + (t->patch_bias ? 1 : 0)) * (double)c->width;
    return ERR_OK;
}

/* What the towers are members of: the file, or the part of it that listens and looks. */
static enum err_code tower_root(const struct reader *r, struct json *out)
{
    struct json j;
    *out = *r->root;
    if (!json_get(r->root, "thinker_config", &j)) return ERR_OK;
    if (!json_is_object(&j)) return json_want(&j, "an object", r->e);
    *out = j;
    return ERR_OK;
}

/* Files of one part whose text model is that of a family: keys of what reads images and sound give no sizes. */
static bool read_flat(const struct reader *r, struct model_tower *out)
{
    static const char *const KEYS[] = {"img_processor", "embd_layer", "audio_processor", "mm_vision_tower"};
    bool any = false;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) any = any || json_has(&r->text, KEYS[i]);
    if (any) out->params = out->whole_params = (double)NAN;
    return any;
}

static enum err_code note_flat(struct reader *r)
{
    TRY(reader_note(r, "what reads images or sound is not counted: the file gives no sizes of it"));
    const bool adapted = json_has(&r->text, "vision_lora") || json_has(&r->text, "speech_lora");
    return adapted ? reader_note(r, "adapters of images and sound (vision_lora, speech_lora) are not counted") : ERR_OK;
}

/* Another part beside the language model that is a model of its own, whatever it is called: encoder_config and its
 * like. */
static bool is_part(const struct reader *r, const char *key, const struct json *member)
{
    static const char TAIL[] = "_config";
    const size_t n = strlen(key), tail = sizeof TAIL - 1;
    if (strcmp(key, "audio_config") == 0 || strcmp(key, "vision_config") == 0) return false; /* told of already */
    return n > tail && strcmp(key + n - tail, TAIL) == 0 && json_has(member, "model_type") &&
           member->obj != r->text.obj;
}

/* Parts that no row of towers is about, of a file whose text model is a part too; and Fuyu's patches, which a product
 * of the model itself reads. */
static enum err_code note_parts(struct reader *r, const struct json *root)
{
    struct json member;
    const char *key, *names = NULL;
    char clean[64];
    if (r->text.obj == root->obj) return ERR_OK;
    for (size_t i = 0; json_at(root, i, &key, &member); i++) {
        if (!is_part(r, key, &member)) continue;
        names = arena_printf(r->arena, "%s%s%s", names ? names : "", names ? ", " : "",
                             text_clean(clean, sizeof clean, key, strlen(key)));
        if (!names) return err_nomem(r->e);
    }
    if (!names && json_has(root, "patch_size")) names = "what reads patches of images";
    if (!names) return ERR_OK;
    r->m->tower.params = r->m->tower.whole_params = (double)NAN;
    if (!(fabs(r->m->audio.params) > 0)) r->m->audio.params = r->m->audio.whole_params = (double)NAN;
    const char *text = arena_printf(r->arena, "%s: not counted, no row describes it", names);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

enum err_code towers_read(struct reader *r)
{
    struct model_tower *out = &r->m->tower;
    struct count c = {.r = r};
    *out = (struct model_tower){.params = 0};
    TRY(tower_root(r, &c.root));
    TRY(towers_read_audio(r, &c.root));
    c.row = towers_of_class(&c.root);
    if (c.row) {
        c.vision = c.root;
    } else if (!json_get(&c.root, "vision_config", &c.vision)) {
        if (read_flat(r, out)) return note_flat(r);
        if (!towers_expected(&c.root)) return note_parts(r, &c.root);
        out->params = out->whole_params = (double)NAN;
        return reader_note(r, "vision tower not counted: the class has one, and the file has no vision_config");
    }
    if (!json_is_object(&c.vision)) return json_want(&c.vision, "an object", r->e);
    if (!c.row) c.row = towers_find(&c.root, &c.vision);
    if (c.row) TRY(count_tower(&c));
    if (!c.row || c.missing) {
        out->params = out->whole_params = (double)NAN;
        if (!c.row) return reader_note(r, "vision tower not counted: no row describes it");
        const char *text =
            arena_printf(r->arena, "vision tower not counted: vision_config.%s is missing or unusual", c.missing);
        return text ? reader_note(r, text) : err_nomem(r->e);
    }
    if (c.assumed)
        TRY(reader_note(r, "sizes of the vision tower that vision_config does not state are those of its class"));
    *out = (struct model_tower){.name = c.row->name,
                                .params = c.split + c.whole,
                                .whole_params = c.whole,
                                .tokens = c.tokens,
                                .token_pixels = c.token_pixels};
    return ERR_OK;
}
