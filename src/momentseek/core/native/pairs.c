/* Scores of pairs of a query and a video: the largest dot product of the query with one of the video's clips. */
#include "kernels.h"
#include "products.h"

enum { PAIRS_AT_ONCE = 16 * ASKED_AT_ONCE, ROWS_AT_ONCE = 8 };

/* How many of the pairs from `pair` on, at most 48, ask the same video. */
INLINE int64_t same_video_pairs(const int64_t *video, int64_t pair, int64_t pairs) {
    int64_t n = 1;
    while (n < PAIRS_AT_ONCE && pair + n < pairs && video[pair + n] == video[pair]) n++;
    return n;
}

/* Add `share` of the largest dot product of a pair's query and video to the pair's score; quickest where pairs of a
 * video stand together: then eight clips stay in the first cache until all queries have met them. */
EXPORT int64_t add_pair_scores(const float *rows, int64_t dim, const int64_t *offsets, int64_t videos, int64_t count,
                               const float *queries, int64_t asked, const int64_t *query, const int64_t *video,
                               int64_t pairs, float share, float *out) {
    videos_t of = {offsets, videos, count, video};
    int64_t begin, end, some;
    for (int64_t pair = 0; pair < pairs; pair += some) {
        const float *those[PAIRS_AT_ONCE];
        float products[ASKED_AT_ONCE][PRODUCTS_AT_ONCE], best[PAIRS_AT_ONCE];
        if (!rows_of(&of, pair, &begin, &end)) return OUTSIDE;
        some = same_video_pairs(video, pair, pairs);
        for (int64_t q = 0; q < some; q++) {
            if (query[pair + q] < 0 || query[pair + q] >= asked) return OUTSIDE;
            those[q] = queries + query[pair + q] * dim;
            best[q] = -INFINITY;
        }
        for (; begin < end; begin += ROWS_AT_ONCE) {
            int64_t part = smaller(ROWS_AT_ONCE, end - begin);
            for (int64_t first = 0; first < some; first += ASKED_AT_ONCE) {
                int64_t few = smaller(ASKED_AT_ONCE, some - first);
                multiply_rows(rows + begin * dim, dim, part, those + first, few, products);
                for (int64_t q = 0; q < few; q++)
                    for (int64_t n = 0; n < part; n++)
                        if (products[q][n] > best[first + q] || isnan(products[q][n])) best[first + q] = products[q][n];
            }
        }
        for (int64_t q = 0; q < some; q++) out[pair + q] += share * best[q];
    }
    return DONE;
}
