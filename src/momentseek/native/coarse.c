/* The coarse list of a plan: vectors in 4 bits per two columns (product quantisation, Jégou et al. 2011), scanned from
 * tables in registers (André et al. 2017).
 *
 * A query has a table of sixteen numbers for each two columns: what each of their centres adds to its product. Thirty-
 * two vectors lie side by side in a block, two codes in a byte; one shuffle looks up 32 numbers of 7 bits, two of them
 * are added in a byte, and these are summed in 16 bits. Which vectors come first is what is wanted, so the sums are
 * never turned back into products. The blocks are cut into groups of like vectors, and a query reads some of these. */
#include "kernels.h"

enum { CENTRES = 16, VECTORS_PER_BLOCK = 32, BLOCKS_PER_TILE = 32, BLOCKS_AHEAD = 2, QUERIES_AT_ONCE = 4 };

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

/* Sums of the 32 vectors of a block; `tables` are (2 * bytes, 16). */
INLINE void sum_block_plain(const uint8_t *block, const uint8_t *tables, int64_t bytes, uint16_t *sums) {
    memset(sums, 0, sizeof(uint16_t) * VECTORS_PER_BLOCK);
    for (int64_t j = 0; j < bytes; j++, block += VECTORS_PER_BLOCK, tables += 2 * CENTRES)
        for (int v = 0; v < VECTORS_PER_BLOCK; v++)
            sums[v] = (uint16_t)(sums[v] + tables[block[v] & 15] + tables[CENTRES + (block[v] >> 4)]);
}

#if HAS_WIDE
/* The same for `queries` at once, each with tables of its own, in registers: `even` holds the sums of the vectors 0, 2, 4
 * and so on, `odd` those of the others. */
WIDE INLINE void sum_block_wide(const uint8_t *block, const uint8_t *const *tables, int64_t bytes, int queries,
                                __m256i *even, __m256i *odd) {
    const __m256i nibble = _mm256_set1_epi8(15);
    for (int q = 0; q < queries; q++) even[q] = odd[q] = _mm256_setzero_si256();
    UNROLL
    for (int64_t j = 0; j < bytes; j++, block += VECTORS_PER_BLOCK) {
        __m256i codes = _mm256_loadu_si256((const __m256i *)block);
        __m256i low = _mm256_and_si256(codes, nibble), high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble);
        for (int q = 0; q < queries; q++) {
            const __m128i *mine = (const __m128i *)(tables[q] + j * 2 * CENTRES);
            __m256i one = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(mine)), low);
            __m256i two = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(mine + 1)), high);
            __m256i sum = _mm256_add_epi8(one, two);
            even[q] = _mm256_add_epi16(even[q], sum); /* and 256 times the odd ones, which are taken off at the end */
            odd[q] = _mm256_add_epi16(odd[q], _mm256_srli_epi16(sum, 8));
        }
    }
    for (int q = 0; q < queries; q++) even[q] = _mm256_sub_epi16(even[q], _mm256_slli_epi16(odd[q], 8));
}

WIDE static void sums_of_block_wide(const uint8_t *block, const uint8_t *tables, int64_t bytes, uint16_t *sums) {
    __m256i even, odd;
    sum_block_wide(block, &tables, bytes, 1, &even, &odd);
    __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
    _mm256_storeu_si256((__m256i *)sums, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)sums + 1, _mm256_permute2x128_si256(low, high, 0x31));
}
#endif

INLINE void sums_of_block(const uint8_t *block, const uint8_t *tables, int64_t bytes, uint16_t *sums) {
#if HAS_WIDE
    if (uses_wide()) {
        sums_of_block_wide(block, tables, bytes, sums);
        return;
    }
#endif
    sum_block_plain(block, tables, bytes, sums);
}

/* Sums of the vectors of some blocks, `which` of `held`, in their order. */
EXPORT int64_t sums_of_blocks(const uint8_t *blocks, int64_t held, int64_t bytes, const int64_t *which, int64_t count,
                              const uint8_t *tables, uint16_t *sums) {
    for (int64_t n = 0; n < count; n++, sums += VECTORS_PER_BLOCK) {
        if (which[n] < 0 || which[n] >= held) return OUTSIDE;
        if (n + 1 < count && which[n + 1] >= 0 && which[n + 1] < held)
            for (int64_t j = 0; j < bytes * VECTORS_PER_BLOCK; j += 64)
                __builtin_prefetch(blocks + which[n + 1] * bytes * VECTORS_PER_BLOCK + j);
        sums_of_block(blocks + which[n] * bytes * VECTORS_PER_BLOCK, tables, bytes, sums);
    }
    return DONE;
}

/* Queries that read a list: each has its tables, and room for the places of `room` vectors. */
typedef struct {
    const uint8_t *blocks, *tables;
    int64_t bytes;
    int32_t *out;
    int64_t room, *found;
} wanted_t;

INLINE const uint8_t *tables_of(const wanted_t *w, int64_t query) { return w->tables + query * w->bytes * 2 * CENTRES; }

/* Note the vectors of a block, one bit each, for a query. */
INLINE void note(const wanted_t *w, int64_t query, int64_t block, uint32_t bits) {
    for (; bits; bits &= bits - 1) {
        if (w->found[query] < w->room)
            w->out[query * w->room + w->found[query]] = (int32_t)(block * VECTORS_PER_BLOCK + __builtin_ctz(bits));
        w->found[query]++;
    }
}

/* The blocks low to high for some queries, each of which wants sums from its `least` on. */
static void list_plain(const wanted_t *w, const int64_t *query, const uint16_t *least, int64_t queries, int64_t low,
                       int64_t high) {
    for (int64_t block = low; block < high; block++)
        for (int64_t n = 0; n < queries; n++) {
            uint16_t sums[VECTORS_PER_BLOCK];
            uint32_t bits = 0;
            sum_block_plain(w->blocks + block * w->bytes * VECTORS_PER_BLOCK, tables_of(w, query[n]), w->bytes, sums);
            for (int v = 0; v < VECTORS_PER_BLOCK; v++) bits |= (uint32_t)(sums[v] >= least[n]) << v;
            note(w, query[n], block, bits);
        }
}

#if HAS_WIDE
WIDE INLINE void list_wide(const wanted_t *w, const int64_t *query, const uint16_t *least, int queries, int64_t low,
                           int64_t high, int64_t next) {
    const __m256i upper = _mm256_set1_epi16((short)0xff00);
    const uint8_t *tables[QUERIES_AT_ONCE];
    __m256i wanted[QUERIES_AT_ONCE];
    for (int q = 0; q < queries; q++) {
        wanted[q] = _mm256_set1_epi16((short)least[q]);
        tables[q] = tables_of(w, query[q]);
    }
    for (int64_t block = low; block < high; block++) {
        const uint8_t *codes = w->blocks + block * w->bytes * VECTORS_PER_BLOCK;
        __m256i even[QUERIES_AT_ONCE], odd[QUERIES_AT_ONCE];
        if (queries == 1) { /* then memory decides, and a processor's own prefetching stops at every page */
            int64_t later = block + BLOCKS_AHEAD < high ? block + BLOCKS_AHEAD : next + block + BLOCKS_AHEAD - high;
            for (int64_t n = 0; n < w->bytes * VECTORS_PER_BLOCK; n += 64)
                __builtin_prefetch(w->blocks + later * w->bytes * VECTORS_PER_BLOCK + n);
        }
        sum_block_wide(codes, tables, w->bytes, queries, even, odd);
        for (int q = 0; q < queries; q++) {
            even[q] = _mm256_cmpeq_epi16(_mm256_max_epu16(even[q], wanted[q]), even[q]);
            odd[q] = _mm256_cmpeq_epi16(_mm256_max_epu16(odd[q], wanted[q]), odd[q]);
            note(w, query[q], block, (uint32_t)_mm256_movemask_epi8(_mm256_blendv_epi8(even[q], odd[q], upper)));
        }
    }
}

WIDE static void list_one_wide(const wanted_t *w, const int64_t *query, const uint16_t *least, int64_t low,
                               int64_t high, int64_t next) {
    list_wide(w, query, least, 1, low, high, next);
}

WIDE static void list_some_wide(const wanted_t *w, const int64_t *query, const uint16_t *least, int64_t low,
                                int64_t high) {
    list_wide(w, query, least, QUERIES_AT_ONCE, low, high, high);
}
#endif

/* The blocks of one group for the queries that read it, while they are in the caches; `next` is what is read then. */
static void list_group(const wanted_t *w, const int64_t *query, const uint16_t *least, int64_t queries, int64_t low,
                       int64_t high, int64_t next) {
    int64_t tile = queries > QUERIES_AT_ONCE ? BLOCKS_PER_TILE : larger(1, high - low);
    for (int64_t first = low; first < high; first += tile) {
        int64_t beyond = smaller(high, first + tile), n = 0;
#if HAS_WIDE
        if (uses_wide()) {
            for (; n + QUERIES_AT_ONCE <= queries; n += QUERIES_AT_ONCE)
                list_some_wide(w, query + n, least + n, first, beyond);
            for (; n < queries; n++) list_one_wide(w, query + n, least + n, first, beyond, beyond < high ? beyond : next);
        }
#else
        (void)next;
#endif
        if (n < queries) list_plain(w, query, least, queries, first, beyond);
    }
}

/* For each query, the places of the vectors whose sums reach what it wants, among the groups low to high. The group g is
 * blocks edges[g] up to edges[g + 1] of `held`, and the queries that read it, with the least sums they want there, are
 * entries[g] up to entries[g + 1] of `query` and `least`. `out` is (queries, room), and `found` counts what was found,
 * even what found no room. */
EXPORT int64_t list_above(const uint8_t *blocks, int64_t held, int64_t bytes, const uint8_t *tables, int64_t queries,
                          const int64_t *edges, const int64_t *entries, const int64_t *query, const uint16_t *least,
                          int64_t count, int32_t *out, int64_t room, int64_t *found, int64_t low, int64_t high) {
    wanted_t w = {blocks, tables, bytes, out, room, found};
    for (int64_t q = 0; q < queries; q++) found[q] = 0;
    for (int64_t g = low; g < high; g++) {
        int64_t first = entries[g], beyond = entries[g + 1];
        if (edges[g] < 0 || edges[g + 1] < edges[g] || edges[g + 1] > held) return OUTSIDE;
        if (first < 0 || beyond < first || beyond > count) return OUTSIDE;
        for (int64_t n = first; n < beyond; n++)
            if (query[n] < 0 || query[n] >= queries) return OUTSIDE;
        if (first == beyond) continue;
        int64_t next = g + 1;
        while (next < high && entries[next] == entries[next + 1]) next++;
        list_group(&w, query + first, least + first, beyond - first, edges[g], edges[g + 1], edges[next]);
    }
    return DONE;
}
