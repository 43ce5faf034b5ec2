/* checkpoint -- files of checkpoints for tests: headers as given, data as holes. */
#ifndef RIDGE_TESTS_CHECKPOINT_H
#define RIDGE_TESTS_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

/* checkpoint_file -- dir/name of n bytes, longer by a hole up to file_bytes. */
void checkpoint_file(const char *dir, const char *name, const void *bytes, size_t n, int64_t file_bytes);

/* checkpoint_safetensors -- a length, the header as it is, data_bytes of data. */
void checkpoint_safetensors(const char *dir, const char *name, const char *header, int64_t data_bytes);

/* A GGUF file in memory, written piece by piece. */
struct checkpoint_gguf {
    unsigned char bytes[1 << 16];
    size_t n;
};

void checkpoint_put(struct checkpoint_gguf *g, size_t bytes, uint64_t value); /* little-endian */
void checkpoint_put_text(struct checkpoint_gguf *g, const char *s);           /* length in 8 bytes, then s */

/* checkpoint_gguf_begin -- magic, version and the two counts. */
void checkpoint_gguf_begin(struct checkpoint_gguf *g, uint32_t version, uint64_t tensors, uint64_t pairs);

/* A pair of one kind. */
void checkpoint_pair_u32(struct checkpoint_gguf *g, const char *key, uint32_t v);
void checkpoint_pair_text(struct checkpoint_gguf *g, const char *key, const char *v);

/* checkpoint_tensor -- a row of the tensor table; sides fastest first, dims of them, the rest ignored. */
void checkpoint_tensor(struct checkpoint_gguf *g, const char *name, uint32_t type, uint32_t dims, uint64_t side0,
                       uint64_t side1, uint64_t side2, uint64_t offset);

/* checkpoint_gguf_write -- padded to 32, then data_bytes of data. */
void checkpoint_gguf_write(const struct checkpoint_gguf *g, const char *dir, const char *name, int64_t data_bytes);

#endif
