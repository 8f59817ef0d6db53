/* The making of a plan's coarse list: vectors in 4 bits per two columns (product quantisation, Jégou et al. 2011). */
#include "blocks.h"

/* The centre nearest to a point: the largest x . c - |c|^2 / 2. `centres` has all x, then all y, then all |c|^2 / 2. */
INLINE int nearest(const float *centres, float x, float y) {
    eight low = x * *(const eight *)centres + y * *(const eight *)(centres + 16) - *(const eight *)(centres + 32);
    eight high = x * *(const eight *)(centres + 8) + y * *(const eight *)(centres + 24) - *(const eight *)(centres + 40);
    int best = 0;
    float most = low[0];
    for (int c = 1; c < 8; c++)
        if (low[c] > most) most = low[c], best = c;
    for (int c = 0; c < 8; c++)
        if (high[c] > most) most = high[c], best = 8 + c;
    return best;
}

INLINE void spread_centres(const float *centres, float *spread) {
    for (int c = 0; c < CENTRES; c++) {
        float x = centres[2 * c], y = centres[2 * c + 1];
        spread[c] = x;
        spread[16 + c] = y;
        spread[32 + c] = (x * x + y * y) / 2;
    }
}

/* Move each of the centres (pairs of columns, 16, 2) to the mean of the vectors nearest to it, `rounds` times. */
EXPORT int64_t train_pairs(const float *vectors, int64_t count, int64_t dim, float *centres, int64_t rounds,
                           int64_t low, int64_t high) {
    for (int64_t pair = low; pair < high; pair++) {
        float *mine = centres + pair * 2 * CENTRES;
        for (int64_t round = 0; round < rounds; round++) {
            float spread[3 * CENTRES];
            double sums[CENTRES][2] = {{0}};
            int64_t members[CENTRES] = {0};
            spread_centres(mine, spread);
            for (int64_t i = 0; i < count; i++) {
                float x = vectors[i * dim + 2 * pair], y = vectors[i * dim + 2 * pair + 1];
                int c = nearest(spread, x, y);
                sums[c][0] += x;
                sums[c][1] += y;
                members[c]++;
            }
            for (int c = 0; c < CENTRES; c++)
                if (members[c]) {
                    mine[2 * c] = (float)(sums[c][0] / (double)members[c]);
                    mine[2 * c + 1] = (float)(sums[c][1] / (double)members[c]);
                }
        }
    }
    return DONE;
}

/* Codes of vectors (count, dim), dim a multiple of four, as blocks (count / 32, dim / 4, 32) that hold zeros. */
EXPORT int64_t encode_pairs(const float *vectors, int64_t count, int64_t dim, const float *centres, uint8_t *blocks) {
    float *spread = malloc(sizeof(float) * larger(1, dim / 2 * 3 * CENTRES));
    if (!spread) return NO_MEMORY;
    for (int64_t pair = 0; pair < dim / 2; pair++)
        spread_centres(centres + pair * 2 * CENTRES, spread + pair * 3 * CENTRES);
    for (int64_t i = 0; i < count; i++) {
        const float *row = vectors + i * dim;
        uint8_t *block = blocks + i / VECTORS_PER_BLOCK * (dim / 4 * VECTORS_PER_BLOCK) + i % VECTORS_PER_BLOCK;
        for (int64_t pair = 0; pair < dim / 2; pair++) {
            int code = nearest(spread + pair * 3 * CENTRES, row[2 * pair], row[2 * pair + 1]);
            block[pair / 2 * VECTORS_PER_BLOCK] |= (uint8_t)(code << 4 * (pair % 2));
        }
    }
    free(spread);
    return DONE;
}
