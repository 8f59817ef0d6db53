#ifndef MOMENTSEEK_PRODUCTS_H
#define MOMENTSEEK_PRODUCTS_H

enum { ASKED_AT_ONCE = 3, PRODUCTS_AT_ONCE = 64 };

/* Products of up to 64 float32 rows with up to three queries, given by their addresses: out[q][n] is that of the n-th
 * row with the q-th query. Each is added up in the same order, wherever the row stands and whatever else is asked. */
void multiply_rows(const float *rows, int64_t dim, int64_t count, const float *const *asked, int64_t queries,
                   float out[ASKED_AT_ONCE][PRODUCTS_AT_ONCE]);

/* How many of the pairs from `pair` on, at most three, ask the same video. */
INLINE int64_t same_video(const int64_t *video, int64_t pair, int64_t pairs) {
    int64_t n = 1;
    while (n < ASKED_AT_ONCE && pair + n < pairs && video[pair + n] == video[pair]) n++;
    return n;
}

#endif
