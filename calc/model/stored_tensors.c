#include "calc/model/stored_tensors.h"
#include "calc/model/family.h"

#include <stdio.h>
#include <string.h>

#include "calc/model/tensors_read.h"

enum { FORMATS_MAX = 16 };

/* A checkpoint while it is gone through. */
struct scan {
    struct arena *arena;
    const struct tensor_set *set;
    const struct model *m;
    struct tensor_names *names;
    struct dtype *format[FORMATS_MAX]; /* distinct ones, and the elements that they hold as stored */
    double bytes[FORMATS_MAX];
    size_t formats_n;
    int64_t packed_bits; /* of integers packed without a word of their number; 0 not known */
    bool unread;         /* a matrix is packed in a way that is not known */
    struct err *e;
};

/* A matrix of a module: its main tensor, the module's name without what the tensor is called. */
struct found {
    const struct tensor *main;
    size_t stem;                /* characters of the module's name */
    const struct dtype *format; /* NULL floats */
};

static bool ends(const char *s, size_t len, const char *tail)
{
    const size_t n = strlen(tail);
    return len > n && memcmp(s + len - n, tail, n) == 0;
}

static bool is_type(const struct tensor *t, const char *name)
{
    return t && t->type && strcmp(t->type->name, name) == 0;
}

static bool is_fp8(const struct tensor *t) { return is_type(t, "F8_E4M3") || is_type(t, "F8_E5M2"); }

static bool is_plain(const struct tensor *t) { return is_type(t, "BF16") || is_type(t, "F16") || is_type(t, "F32"); }

static double type_bits(const struct tensor *t)
{
    return t && t->type ? 8.0 * (double)t->type->block_bytes / (double)t->type->block_elems : 0;
}

/* The tensor called stem + tail; NULL none. */
static const struct tensor *beside(const struct scan *s, const struct found *f, const char *tail)
{
    char name[512];
    const int n = snprintf(name, sizeof name, "%.*s%s", (int)f->stem, f->main->name, tail);
    if (n < 0 || (size_t)n >= sizeof name) return NULL;
    const int32_t at = tensor_names_find(s->names, name, (size_t)n);
    return at < 0 ? NULL : &s->set->tensors[at];
}

/* ---- formats ---- */

/* A format of the table, to be changed. */
static enum err_code make(const struct scan *s, const char *name, struct dtype **out)
{
    *out = arena_alloc(s->arena, sizeof **out);
    if (!*out || !name) return err_nomem(s->e);
    return dtype_find(name, *out, s->e);
}

static int64_t ceil_div(int64_t a, int64_t b) { return b > 0 ? a / b + (a % b != 0) : 0; }

/* FP8: one scale of the matrix, of each row, or of each tile. */
static enum err_code of_fp8(const struct scan *s, const struct found *f, struct dtype **out)
{
    const struct tensor *t = f->main, *scale = beside(s, f, ".weight_scale_inv"), *input = beside(s, f, ".input_scale");
    if (!scale) scale = beside(s, f, ".weight_scale");
    const int64_t rows = t->shape[t->dims - 2], columns = t->shape[t->dims - 1];
    if (!scale || scale->elems <= 1) {
        TRY(make(s, "fp8", out));
        (*out)->matrix_bits = type_bits(scale) + type_bits(input);
        return ERR_OK;
    }
    const int64_t across = scale->dims >= 2 ? scale->shape[scale->dims - 1] : 1;
    const int64_t down = scale->dims >= 2 ? scale->shape[scale->dims - 2] : scale->shape[0];
    if (across == 1 && down == rows) {
        TRY(make(s, "fp8-row", out));
        (*out)->scale_bits = type_bits(scale);
        return ERR_OK;
    }
    TRY(make(s, "fp8-block128", out));
    (*out)->block_out = ceil_div(rows, down);
    (*out)->group_in = ceil_div(columns, across);
    (*out)->scale_bits = type_bits(scale);
    return ERR_OK;
}

static enum err_code of_int8(const struct scan *s, const struct found *f, struct dtype **out)
{
    const struct tensor *scale = beside(s, f, ".weight_scale");
    if (beside(s, f, ".SCB")) return make(s, "llm-int8", out);
    if (!scale) return ERR_OK;
    TRY(make(s, "int8", out));
    (*out)->scale_bits = type_bits(scale);
    if (scale->elems > 1) return ERR_OK;
    (*out)->matrix_bits = (*out)->scale_bits + type_bits(beside(s, f, ".input_scale"));
    (*out)->group_in = 0;
    (*out)->scale_bits = 0;
    return ERR_OK;
}

/* Four bits, two to a byte: floats with scales, or bitsandbytes. Two bits: ternary. */
static enum err_code of_bytes(const struct scan *s, const struct found *f, struct dtype **out)
{
    const struct tensor *scale = beside(s, f, ".weight_scale"), *whole = beside(s, f, ".weight_scale_2");
    const struct tensor *input = beside(s, f, ".input_scale");
    if (beside(s, f, ".weight.absmax"))
        return make(s, beside(s, f, ".weight.nested_absmax") ? "nf4-double" : "nf4", out);
    if (!whole) whole = beside(s, f, ".weight_global_scale");
    if (!input) input = beside(s, f, ".input_global_scale");
    if (is_fp8(scale) && whole) {
        TRY(make(s, "nvfp4", out));
        (*out)->matrix_bits = type_bits(whole) + type_bits(input);
        return ERR_OK;
    }
    if (is_type(scale, "U8") || is_type(scale, "F8_E8M0")) return make(s, "mxfp4", out);
    if (!is_plain(scale) || scale->elems != 1 || whole || input) return ERR_OK;
    TRY(make(s, "ternary", out)); /* four to a byte, one scale of the matrix */
    (*out)->matrix_bits = type_bits(scale);
    return ERR_OK;
}

/* "int4-g128", "gptq4-g64", "int8-row". */
static enum err_code of_groups(const struct scan *s, const char *prefix, int64_t bits, int64_t group,
                               struct dtype **out)
{
    const char *name = arena_printf(s->arena, "%s%lld-g%lld", prefix, (long long)bits, (long long)group);
    if (!name) return err_nomem(s->e);
    struct dtype probe;
    return dtype_find(name, &probe, NULL) == ERR_OK ? make(s, name, out) : ERR_OK;
}

/* Words of 32 bits with zero points: AWQ packs [in, out] along its rows, GPTQ along its columns. */
static enum err_code of_words(const struct scan *s, const struct found *f, struct dtype **out)
{
    const struct tensor *q = f->main, *zeros = beside(s, f, ".qzeros"), *scale = beside(s, f, ".scales");
    if (!zeros || !scale || q->dims != 2 || zeros->dims != 2 || scale->dims != 2) return ERR_OK;
    const int64_t rows = scale->shape[1], groups = scale->shape[0];
    if (rows < 1 || groups < 1 || 32 * zeros->shape[1] % rows != 0) return ERR_OK;
    const int64_t bits = 32 * zeros->shape[1] / rows;
    const bool awq = q->shape[1] != rows;
    if (bits < 1) return ERR_OK;
    TRY(of_groups(s, awq ? "int" : "gptq", bits, (awq ? q->shape[0] : 32 * q->shape[0] / bits) / groups, out));
    if (!*out) return ERR_OK;
    (*out)->scale_bits = type_bits(scale) + (double)bits;
    (*out)->column_bits = type_bits(beside(s, f, ".g_idx"));
    return ERR_OK;
}

/* compressed-tensors' integers: [out, in * bits / 32]. */
static enum err_code of_packed(const struct scan *s, const struct found *f, struct dtype **out)
{
    const struct tensor *q = f->main, *scale = beside(s, f, ".weight_scale");
    if (!scale || scale->dims != 2 || q->dims != 2 || s->packed_bits == 0 || scale->shape[1] < 1) return ERR_OK;
    const int64_t in = 32 * q->shape[1] / s->packed_bits, groups = scale->shape[1];
    TRY(of_groups(s, "int", s->packed_bits, groups == 1 ? 128 : in / groups, out));
    if (!*out) return ERR_OK;
    const char *name = arena_printf(s->arena, "int%lld-row", (long long)s->packed_bits);
    if (!name) return err_nomem(s->e);
    if (groups == 1) {
        (*out)->group_in = GROUP_ROW;
        (*out)->name = name;
    }
    (*out)->scale_bits = type_bits(scale) + (beside(s, f, ".weight_zero_point") ? (double)s->packed_bits : 0);
    (*out)->column_bits = type_bits(beside(s, f, ".weight_g_idx"));
    const struct tensor *shape = beside(s, f, ".weight_shape");
    if (shape) (*out)->matrix_bits = type_bits(shape) * (double)shape->elems;
    return ERR_OK;
}

/* One pointer for formats that cost the same. Tiles are as large as the largest: a matrix smaller than a tile shows its
 * own side. */
static struct dtype *known(struct scan *s, struct dtype *d)
{
    for (size_t i = 0; i < s->formats_n; i++) {
        struct dtype *have = s->format[i];
        if (have->block_out > 1 && d->block_out > 1 && have->bits == d->bits && have->scale_bits == d->scale_bits) {
            if (d->block_out > have->block_out) have->block_out = d->block_out;
            if (d->group_in > have->group_in) have->group_in = d->group_in;
            return have;
        }
        if (dtype_same(have, d)) return have;
    }
    if (s->formats_n == FORMATS_MAX) return NULL;
    return s->format[s->formats_n++] = d;
}

/* ---- matrices ---- */

static enum err_code format_of(struct scan *s, struct found *f)
{
    const struct tensor *t = f->main;
    struct dtype *d = NULL;
    if (is_plain(t)) return ERR_OK;
    const char *tail = t->name + f->stem;
    if (strcmp(tail, "_blocks") == 0)
        TRY(make(s, "mxfp4", &d));
    else if (strcmp(tail, ".qweight") == 0)
        TRY(of_words(s, f, &d));
    else if (is_fp8(t))
        TRY(of_fp8(s, f, &d));
    else if (is_type(t, "I8"))
        TRY(of_int8(s, f, &d));
    else if (is_type(t, "U8"))
        TRY(of_bytes(s, f, &d));
    else if (strcmp(tail, ".weight_packed") == 0)
        TRY(of_packed(s, f, &d));
    d = d ? known(s, d) : NULL;
    s->unread = s->unread || !d;
    f->format = d;
    for (size_t i = 0; i < s->formats_n; i++)
        if (s->format[i] == d) s->bytes[i] += (double)t->bytes;
    return ERR_OK;
}

/* A convolution's weight: [channels, 1, taps] in most files. The projections of a short convolution are matrices. */
static bool is_convolution(const struct tensor *t)
{
    return strstr(t->name, "conv1d") || (t->dims > 2 && strstr(t->name, "conv"));
}

/* Whether a tensor is the main one of a matrix. */
static bool is_matrix(const struct tensor *t, struct found *f)
{
    static const char *const TAILS[] = {".weight", ".weight_packed", ".qweight"};
    const size_t len = strlen(t->name);
    *f = (struct found){.main = t};
    if (!t->type || t->dims < 2 || is_convolution(t) || strstr(t->name, "norm")) return false;
    if (ends(t->name, len, "_blocks")) {
        f->stem = len - strlen("_blocks");
        return strstr(t->name, "experts") != NULL;
    }
    for (size_t i = 0; i < sizeof TAILS / sizeof TAILS[0]; i++) {
        if (!ends(t->name, len, TAILS[i])) continue;
        f->stem = len - strlen(TAILS[i]);
        return true;
    }
    f->stem = len; /* experts of a layer in one tensor have no further name */
    return t->dims == 3 && strstr(t->name, "experts.") && ends(t->name, len, "_proj");
}

/* Bits of packed integers: a matrix that reads the stream has rows of its width. */
static int64_t find_packed_bits(const struct tensor_set *s, int64_t hidden)
{
    static const char *const READS[] = {".q_proj", ".k_proj", ".v_proj", ".gate_proj", ".up_proj", ".w1", ".w3"};
    for (size_t i = 0; i < s->n; i++) {
        struct found f;
        const struct tensor *t = &s->tensors[i];
        if (!is_type(t, "I32") || !is_matrix(t, &f) || strcmp(t->name + f.stem, ".weight_packed") != 0) continue;
        for (size_t k = 0; k < sizeof READS / sizeof READS[0]; k++) {
            if (!ends(t->name, f.stem, READS[k]) || t->shape[1] < 1 || t->shape[1] > hidden) continue;
            const int64_t bits = 32 * t->shape[1] / hidden;
            if (32 * t->shape[1] % hidden == 0 && bits >= 2 && bits <= 8) return bits;
        }
    }
    return 0;
}

static bool in_layers(const char *name)
{
    return strstr(name, "layers.") || strstr(name, ".h.") || strstr(name, "blocks.") || strstr(name, ".block.");
}

/* Rules for what is not of the plan's format. */
static enum err_code add_rules(struct scan *s, const struct found *f, size_t n, struct format_plan *plan)
{
    for (size_t i = 0; i < n; i++) {
        struct module_pattern p;
        const char *name = arena_strndup(s->arena, f[i].main->name, f[i].stem);
        if (!name) return err_nomem(s->e);
        if (in_layers(name) ? f[i].format == plan->linear : !f[i].format) continue; /* ends are floats unless named */
        TRY(module_pattern_read(s->arena, plan->file, name, false, &p, s->e));
        if (module_pattern_is_foreign(&p, s->m)) continue;
        if (!in_layers(name) && !module_pattern_matches_head(&p) && !module_pattern_matches_embed(&p)) continue;
        TRY(format_plan_add(s->arena, plan, name, false, f[i].format, s->e));
    }
    return ERR_OK;
}

enum err_code stored_tensors_plan(struct arena *a, const struct tensor_set *set, const struct model *m,
                                  struct format_plan *plan, bool *floats, struct err *e)
{
    struct scan s = {.arena = a, .set = set, .m = m, .e = e, .names = tensor_names_open(a)};
    struct found *f = arena_array(a, set->n + 1, sizeof *f);
    size_t n = 0, main = 0;
    *floats = false;
    *plan = (struct format_plan){.file = m->source ? m->source : "the checkpoint", .of_tensors = true};
    if (!s.names || !f) return err_nomem(e);
    for (size_t i = 0; i < set->n; i++) {
        int32_t number;
        bool fresh;
        TRY(tensor_names_add(s.names, set->tensors[i].name, strlen(set->tensors[i].name), &number, &fresh, e));
    }
    s.packed_bits = find_packed_bits(set, m->hidden);
    for (size_t i = 0; i < set->n; i++) {
        if (!is_matrix(&set->tensors[i], &f[n])) continue;
        TRY(format_of(&s, &f[n]));
        n++;
    }
    *floats = !s.unread && s.formats_n == 0 && n > 0;
    if (s.unread || s.formats_n == 0) return ERR_OK;
    for (size_t i = 1; i < s.formats_n; i++)
        if (s.bytes[i] > s.bytes[main]) main = i;
    plan->linear = s.format[main];
    for (size_t i = 0; i < s.formats_n; i++) /* named by the side that it has */
        if (s.format[i]->block_out > 1 && (s.format[i]->block_out != 128 || s.format[i]->group_in != 128))
            s.format[i]->name = "fp8-block";
    return add_rules(&s, f, n, plan);
}

/* ---- against the config ---- */

/* Bits and groups; what tensors do not show, such as the format of activations, is the config's to say. */
static bool same_storage(const struct dtype *a, const struct dtype *b)
{
    return a->bits == b->bits && a->group_in == b->group_in && a->block_out == b->block_out && a->flat == b->flat &&
           a->super_groups == b->super_groups && (a->column_bits > 0) == (b->column_bits > 0);
}

/* The format of a module of the block at place i. */
static const struct dtype *format_at(const struct model *m, size_t i, enum module u)
{
    const struct layer_kind *k = &m->kinds[m->order[i].kind];
    return k->formats && k->formats[u] ? k->formats[u] : &m->weights[module_class(u)];
}

/* What the config calls a format of the tensors; NULL it has none stored so. */
static const struct dtype *said_as(const struct model *m, const struct dtype *d)
{
    for (size_t i = 0; i < m->order_n; i++)
        for (enum module u = MODULE_Q; u < MODULES; u++)
            if (module_present(&m->kinds[m->order[i].kind], u) && same_storage(format_at(m, i, u), d))
                return format_at(m, i, u);
    return NULL;
}

/* The plan in the config's formats, where they are stored alike. */
static enum err_code use_words(struct arena *a, const struct model *m, struct format_plan *plan, struct err *e)
{
    const struct dtype *from[FORMATS_MAX + 1], *to[FORMATS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i <= plan->rules_n; i++) {
        const struct dtype **d = i < plan->rules_n ? &plan->rule[i].format : &plan->linear;
        size_t k = 0;
        if (!*d) continue;
        while (k < n && from[k] != *d) k++;
        if (k == n && n <= FORMATS_MAX) {
            struct dtype *kept = arena_alloc(a, sizeof *kept);
            const struct dtype *said = said_as(m, *d);
            if (!kept) return err_nomem(e);
            *kept = said ? *said : **d;
            from[n] = *d;
            to[n++] = kept;
        }
        if (k < n) *d = to[k];
    }
    return ERR_OK;
}

/* Whether every matrix is stored the same in both. */
static bool same_weights(const struct model *a, const struct model *b)
{
    if (!same_storage(&a->weights[WEIGHT_EMBED], &b->weights[WEIGHT_EMBED])) return false;
    if (!a->tied && !same_storage(&a->weights[WEIGHT_HEAD], &b->weights[WEIGHT_HEAD])) return false;
    for (size_t i = 0; i < a->order_n; i++)
        for (enum module u = MODULE_Q; u < MODULES; u++)
            if (module_present(&a->kinds[a->order[i].kind], u) && !same_storage(format_at(a, i, u), format_at(b, i, u)))
                return false;
    return true;
}

/* Whether some matrix is no float. */
static bool quantised(const struct model *m)
{
    for (size_t i = 0; i < m->order_n; i++)
        for (enum module u = MODULE_Q; u < MODULES; u++)
            if (module_present(&m->kinds[m->order[i].kind], u) && format_at(m, i, u)->bits < 16) return true;
    return m->weights[WEIGHT_EMBED].bits < 16 || m->weights[WEIGHT_HEAD].bits < 16;
}

/* Every class in the file's float format again, layers of one kind together. */
static void make_plain(struct model *m)
{
    if (m->whole_kinds_n > 0) {
        m->kinds = m->whole_kinds;
        m->kinds_n = m->whole_kinds_n;
        m->order = m->whole_order;
        m->whole_kinds_n = 0;
    }
    for (enum weight_class c = WEIGHT_EMBED; c < WEIGHT_CLASSES; c++)
        if (c != WEIGHT_ROUTER || m->weights[c].bits < 16) m->weights[c] = m->weights[WEIGHT_OTHER];
    m->weights_unknown = NULL;
}

/* The quantised format of the MLP or experts, else of any matrix. */
static const char *main_name(const struct model *m)
{
    const struct dtype *d = model_linear_format(m);
    for (size_t i = 0; i < m->order_n && d->bits >= 16; i++)
        for (enum module u = MODULE_Q; u < MODULES && d->bits >= 16; u++)
            if (module_present(&m->kinds[m->order[i].kind], u)) d = format_at(m, i, u);
    return d->name;
}

/* A model of kinds whose matrices have no names here, or some that its names are not. */
static enum err_code leave(struct arena *a, struct model *m, const char *why, struct err *e)
{
    if (m->weights_unknown || quantised(m)) return ERR_OK; /* what the config says stands */
    m->weights_unknown = why ? why
                             : arena_printf(a,
                                            "quantised by its tensors, and what a layer of the %s family calls them "
                                            "is not known",
                                            m->family);
    return m->weights_unknown ? ERR_OK : err_nomem(e);
}

enum err_code stored_tensors_apply(struct arena *a, const struct tensor_set *s, struct model *m, const char **was,
                                   const char **is, struct err *e)
{
    struct format_plan plan;
    bool floats;
    *was = *is = NULL;
    if (m->weights[WEIGHT_OTHER].bits < 16 || !m->order) return ERR_OK;
    TRY(stored_tensors_plan(a, s, m, &plan, &floats, e));
    if (!plan.linear && !floats) return ERR_OK;
    for (size_t i = 0; i < m->kinds_n && plan.linear; i++)
        if (!module_covers(family_named(m->family), &m->kinds[i])) return leave(a, m, NULL, e);
    struct model copy = *m;
    make_plain(&copy);
    if (plan.linear && !m->weights_unknown) TRY(use_words(a, m, &plan, e));
    if (plan.linear) TRY(format_plan_apply(a, &plan, &copy, e));
    if (copy.weights_unknown) return leave(a, m, copy.weights_unknown, e);
    if (!m->weights_unknown && same_weights(m, &copy)) return ERR_OK;
    *was = m->weights_unknown ? m->weights_unknown : quantised(m) ? main_name(m) : m->weights[WEIGHT_OTHER].name;
    *is = plan.linear ? plan.linear->name : copy.weights[WEIGHT_OTHER].name;
    *m = copy;
    return ERR_OK;
}
