/* The best spans of many pairs of a query and a video, from vectors to spans without a stop between.
 *
 * For each pair: the curve of the query's products with the video's clips, what two filters answer to it, logarithms of
 * the probabilities that a clip is the first and the last, and a heap of the best sums of a first and a last clip. */
#include "kernels.h"
#include "products.h"

/* Add `share` of the products of each pair's query and clips to its curve (pairs, width); `lengths` multiply the
 * products of a row, if there are any. */
EXPORT int64_t add_curves(const float *rows, const float *lengths, int64_t dim, const int64_t *offsets, int64_t videos,
                          int64_t count, const float *queries, int64_t asked, const int64_t *query,
                          const int64_t *video, int64_t pairs, float share, float *curves, int64_t width) {
    videos_t of = {offsets, videos, count, video};
    int64_t begin, end, some;
    for (int64_t pair = 0; pair < pairs; pair += some) {
        const float *those[ASKED_AT_ONCE];
        float products[ASKED_AT_ONCE][PRODUCTS_AT_ONCE];
        if (!rows_of(&of, pair, &begin, &end) || end - begin > width) return OUTSIDE;
        some = same_video(video, pair, pairs);
        for (int64_t q = 0; q < some; q++) {
            if (query[pair + q] < 0 || query[pair + q] >= asked) return OUTSIDE;
            those[q] = queries + query[pair + q] * dim;
        }
        for (int64_t row = begin; row < end; row += PRODUCTS_AT_ONCE) {
            int64_t part = smaller(PRODUCTS_AT_ONCE, end - row);
            multiply_rows(rows + row * dim, dim, part, those, some, products);
            for (int64_t q = 0; q < some; q++) {
                float *curve = curves + (pair + q) * width + row - begin;
                for (int64_t n = 0; n < part; n++)
                    curve[n] += share * (lengths ? products[q][n] * lengths[row + n] : products[q][n]);
            }
        }
    }
    return DONE;
}

/* Logarithms of the softmax, over the clips there are, of what a filter answers to a curve that is 0 outside. */
static void log_probabilities(const float *curve, int64_t clips, const float *taps, int64_t count, float *out) {
    int64_t half = count / 2;
    float most = -INFINITY, total = 0;
    for (int64_t clip = 0; clip < clips; clip++) {
        float answer = 0;
        for (int64_t tap = larger(0, half - clip); tap < smaller(count, clips - clip + half); tap++)
            answer += taps[tap] * curve[clip + tap - half];
        out[clip] = answer;
        most = answer > most ? answer : most;
    }
    for (int64_t clip = 0; clip < clips; clip++) total += expf(out[clip] - most);
    float shift = most + logf(total);
    for (int64_t clip = 0; clip < clips; clip++) out[clip] -= shift;
}

typedef struct {
    float score;
    int32_t place;
} span_t;

/* Whether the first of two spans comes after the other: ties go to the earlier place. */
INLINE int is_worse(span_t one, span_t two) {
    return one.score < two.score || (one.score == two.score && one.place > two.place);
}

/* Put a span in the place of the worst, which is the first of a heap. */
static void sink(span_t *heap, int64_t size, span_t span) {
    int64_t hole = 0;
    for (int64_t child = 1; child < size; child = 2 * hole + 1) {
        if (child + 1 < size && is_worse(heap[child + 1], heap[child])) child++;
        if (!is_worse(heap[child], span)) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = span;
}

/* Likely starts first, so that the others are soon out of reach; of a long video it takes too long to find out. */
static void order_starts(const float *starts, int64_t limit, int32_t *order) {
    enum { MOST_SORTED = 96 };
    for (int64_t clip = 0; clip < limit; clip++) {
        int64_t at = clip;
        for (; limit <= MOST_SORTED && at > 0 && starts[order[at - 1]] < starts[clip]; at--) order[at] = order[at - 1];
        order[at] = (int32_t)clip;
    }
}

typedef struct {
    int64_t shortest, longest, least, lengths;
} kinds_t;

INLINE int64_t first_length(const kinds_t *k) { return larger(k->shortest, k->least); }
INLINE int64_t last_length(const kinds_t *k, int64_t left) { return smaller(k->longest, left); }

static void find_best(const float *starts, const float *ends, int64_t limit, const kinds_t *k, int32_t *order,
                      span_t *heap, int64_t most) {
    float highest = -INFINITY;
    for (int64_t n = 0; n < most; n++) heap[n] = (span_t){-INFINITY, INT32_MAX};
    for (int64_t clip = 0; clip < limit; clip++) highest = ends[clip] > highest ? ends[clip] : highest;
    order_starts(starts, limit, order);
    for (int64_t n = 0; n < limit; n++) {
        int64_t begin = order[n];
        if (starts[begin] + highest < heap[0].score) continue;
        for (int64_t length = first_length(k); length <= last_length(k, limit - begin); length++) {
            span_t span = {starts[begin] + ends[begin + length - 1],
                           (int32_t)(begin * k->lengths + length - k->shortest)};
            if (span.score >= heap[0].score && is_worse(heap[0], span)) sink(heap, most, span);
        }
    }
}

/* Write the best spans of each curve (pairs, width), best first, into the rows `slots` of `score`, `first` and `last`
 * (rows, most); ties go to the earlier, shorter span. With `first` and `last` NULL, write the scores of all spans, by
 * first clip and length, where minus infinity stands. `filters` (2, taps) are those of the start and of the end. Spans
 * have `shortest` to `longest` clips and at least `least`, and end before clip `usable`. `numbers` tells whether all
 * curves are numbers. */
EXPORT int64_t spans_of_curves(const float *curves, int64_t pairs, int64_t width, const int64_t *clips,
                               const int64_t *usable, const float *filters, int64_t taps, int64_t shortest,
                               int64_t longest, int64_t least, const int64_t *slots, int64_t rows, int64_t most,
                               float *score, int16_t *first, int16_t *last, int64_t *numbers) {
    kinds_t kinds = {shortest, longest, least, longest - shortest + 1};
    float *starts = malloc(sizeof(float) * larger(1, 2 * width)), *ends = starts + width;
    int32_t *order = malloc(sizeof(int32_t) * larger(1, width));
    span_t *heap = malloc(sizeof(span_t) * larger(1, most));
    int64_t state = starts && order && heap ? DONE : NO_MEMORY;
    *numbers = 1;
    for (int64_t pair = 0; pair < pairs && state != NO_MEMORY; pair++) {
        int64_t count = clips[pair], limit = smaller(usable[pair], count), row = slots[pair];
        if (count < 0 || count > width || row < 0 || row >= rows ||
            (!first && limit > 0 && limit * kinds.lengths > most)) {
            state = OUTSIDE;
            continue;
        }
        log_probabilities(curves + pair * width, count, filters, taps, starts);
        log_probabilities(curves + pair * width, count, filters + taps, taps, ends);
        if (count && isnan(starts[0] + ends[0])) *numbers = 0;
        if (!first) {
            for (int64_t begin = 0; begin < limit; begin++)
                for (int64_t length = first_length(&kinds); length <= last_length(&kinds, limit - begin); length++)
                    score[row * most + begin * kinds.lengths + length - shortest] =
                        starts[begin] + ends[begin + length - 1];
            continue;
        }
        find_best(starts, ends, limit, &kinds, order, heap, most);
        for (int64_t size = most - 1; size >= 0; size--) {
            int64_t at = row * most + size, place = heap[0].score > -INFINITY ? heap[0].place : 0;
            score[at] = heap[0].score;
            first[at] = (int16_t)(place / kinds.lengths);
            last[at] = (int16_t)(place / kinds.lengths + shortest - 1 + place % kinds.lengths);
            sink(heap, size, heap[size]);
        }
    }
    free(starts);
    free(order);
    free(heap);
    return state;
}
