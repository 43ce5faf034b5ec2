/* whatif_change -- a model taken apart into its layers while a what-if changes it; private to calc/model. */
#ifndef RIDGE_MODEL_WHATIF_CHANGE_H
#define RIDGE_MODEL_WHATIF_CHANGE_H

#include "calc/model/whatif.h"

struct change {
    struct arena *arena;
    struct model *m;
    struct layer_kind *layer; /* every one on its own, in the order they run */
    size_t layers_n;
    const char *text;  /* "gqa=8" */
    const char *value; /* "8"; NULL none */
    struct err *e;
};

/* A part of the layers: of every `of` successive ones the first `some`. */
struct part {
    int64_t some, of;
};

/* change_refuse -- ERR_USAGE "what-if gqa=7: ...". */
enum err_code change_refuse(const struct change *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* change_whole -- the value as a whole number from 1 to hi. change_part -- text as "5/6", 1 <= some <= of, of at most
 * the layers that attend, none of which runs another's weights. Errors: ERR_USAGE. */
enum err_code change_whole(const struct change *c, int64_t hi, int64_t *out);
enum err_code change_part(const struct change *c, const char *text, struct part *out);

/* change_attending -- layers with attention of heads; ERR_USAGE when there is none, or some with a latent where
 * `everywhere`. */
enum err_code change_attending(const struct change *c, bool everywhere, int64_t *out);

/* change_owned -- ERR_USAGE where layers run the weights of others, so that they cannot differ. */
enum err_code change_owned(const struct change *c);

/* change_unshared -- ERR_USAGE where layers attend to the cache of an earlier one: `what` would part the two. */
enum err_code change_unshared(const struct change *c, const char *what);

/* change_read_part -- text as "5/6" alone. What a value says by itself, whatever the model: change_check_*. Errors:
 * ERR_USAGE. */
enum err_code change_read_part(const struct change *c, const char *text, struct part *out);
enum err_code change_check_ranks(struct change *c);
enum err_code change_check_window(struct change *c);

/* What the rows of the table do. */
enum err_code change_kv_heads(struct change *c);
enum err_code change_multi_query(struct change *c);
enum err_code change_multi_head(struct change *c);
enum err_code change_latent(struct change *c);
enum err_code change_across_layers(struct change *c);
enum err_code change_window(struct change *c);
enum err_code change_state_space(struct change *c);
enum err_code change_linear(struct change *c);
enum err_code change_poles(struct change *c);

#endif
