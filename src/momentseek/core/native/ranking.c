/* The best videos of a list: by their listed means first, then exactly.
 *
 * The first few are scored in float16, and what they reach decides which of the rest are looked at: those whose means
 * come within a margin of it. Of these an upper bound from bytes says which must be scored. */
#include "dots.h"
#include "heaps.h"

enum { MEANS_AHEAD = 16, HALVES_AHEAD = 8, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* A query in 16 bits, and the slack of its bounds. */
typedef struct {
    const int16_t *codes;
    float step, slack, floor;
    const float *vector;
    int64_t dim;
} asked_t;

#define DEFINE_MEANS(NAME, DOT)                                                                                      \
    static int64_t NAME(const int8_t *codes, const float *scales, int64_t rows, const int32_t *which, int64_t count, \
                        const asked_t *q, float *out) {                                                              \
        int64_t state = DONE, dim = q->dim;                                                                          \
        for (int64_t n = 0; n < count; n++) {                                                                        \
            int64_t row = which[n], next = n + MEANS_AHEAD < count ? which[n + MEANS_AHEAD] : -1;                    \
            out[n] = -INFINITY;                                                                                      \
            if (next >= 0 && next < rows)                                                                            \
                for (int64_t j = 0; j < dim; j += 64) __builtin_prefetch(codes + next * dim + j);                    \
            if (row < 0 || row >= rows) {                                                                            \
                state = OUTSIDE;                                                                                     \
                continue;                                                                                            \
            }                                                                                                        \
            float bound = scales[row] * ((float)DOT(codes + row * dim, q->codes, dim) * q->step + q->slack);         \
            if (bound > out[n]) out[n] = bound;                                                                      \
        }                                                                                                            \
        return state;                                                                                                \
    }

DEFINE_MEANS(means_plain, code_dot_plain)
#if HAS_WIDE
WIDE DEFINE_MEANS(means_wide, code_dot_wide)
#endif

/* The videos of some means and the largest bound of each, in the order in which they occur; returns how many. A slot of
 * the hash table holds the place of a video among them, or -1. */
static int64_t join_videos(const int32_t *owner, const int32_t *which, const float *bounds, int64_t count,
                           int32_t *slots, int64_t mask, int32_t *video, float *best) {
    int64_t found = 0;
    memset(slots, -1, sizeof(int32_t) * (mask + 1));
    for (int64_t n = 0; n < count; n++) {
        if (!(bounds[n] > -INFINITY)) continue;
        int32_t mine = owner[which[n]];
        int64_t slot = (int64_t)((uint32_t)mine * 2654435761u >> 7) & mask;
        while (slots[slot] >= 0 && video[slots[slot]] != mine) slot = (slot + 1) & mask;
        if (slots[slot] < 0) {
            slots[slot] = (int32_t)found;
            video[found] = mine;
            best[found++] = bounds[n];
        } else if (bounds[n] > best[slots[slot]])
            best[slots[slot]] = bounds[n];
    }
    return found;
}

/* A number that falls as a float32 rises. */
INLINE uint32_t falling(float value) {
    uint32_t bits;
    value += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &value, 4);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* Sort by falling values, equal ones as they were; the result is in `video` and `value`. */
static void sort_falling(int32_t *video, float *value, int32_t *other_video, float *other_value, int64_t count) {
    int64_t starts[3][DIGITS] = {{0}};
    for (int64_t n = 0; n < count; n++)
        for (int pass = 0; pass < 3; pass++) starts[pass][falling(value[n]) >> pass * DIGIT_BITS & (DIGITS - 1)]++;
    for (int pass = 0; pass < 3; pass++) {
        int64_t before = 0;
        for (int64_t d = 0; d < DIGITS; d++) {
            int64_t size = starts[pass][d];
            starts[pass][d] = before;
            before += size;
        }
        for (int64_t n = 0; n < count; n++) {
            int64_t at = starts[pass][falling(value[n]) >> pass * DIGIT_BITS & (DIGITS - 1)]++;
            other_video[at] = video[n];
            other_value[at] = value[n];
        }
        int32_t *kept_video = video;
        float *kept_value = value;
        video = other_video, value = other_value;
        other_video = kept_video, other_value = kept_value;
    }
    /* After three passes it lies in what was the other room. */
    memcpy(other_video, video, sizeof(int32_t) * count);
    memcpy(other_value, value, sizeof(float) * count);
}

/* The videos of the means `which` and the largest upper bound of each one's products with a query, largest first; of
 * equal ones the first in the list. Means whose bounds are no numbers have none. `done` gets how many there are. */
EXPORT int64_t videos_of_means(const int8_t *codes, const float *scales, const int32_t *owner, int64_t rows, int64_t dim,
                               const int32_t *which, int64_t count, const int16_t *asked, const float *step,
                               const float *slack, int32_t *video, float *best, int64_t *done) {
    asked_t q = {asked, *step, *slack, 0, NULL, dim};
    int64_t size = 16, state = NO_MEMORY;
    while (size < 2 * count) size *= 2;
    float *bounds = malloc(sizeof(float) * larger(1, 2 * count));
    int32_t *slots = malloc(sizeof(int32_t) * size), *spare = malloc(sizeof(int32_t) * larger(1, count));
    if (bounds && slots && spare) {
#if HAS_WIDE
        if (uses_wide()) state = means_wide(codes, scales, rows, which, count, &q, bounds);
        else
#endif
            state = means_plain(codes, scales, rows, which, count, &q, bounds);
    }
    if (state == DONE) {
        *done = join_videos(owner, which, bounds, count, slots, size - 1, video, best);
        sort_falling(video, best, spare, bounds + count, *done);
    }
    free(bounds);
    free(slots);
    free(spare);
    return state;
}

/* A segment whose videos are ranked; in the order of a row of int64s. */
typedef struct {
    const int8_t *codes;
    const float *scales;
    const uint16_t *half;
    const int64_t *offsets, *ids;
    int64_t videos, rows;
} part_t;

typedef struct {
    float score;
    int64_t id, part, at;
} ranked_t;

/* The rows of one video. */
typedef struct {
    const part_t *part;
    int64_t index, at, begin, end;
} video_t;

INLINE int find_video(const part_t *parts, const int64_t *starts, int64_t count, int64_t number, video_t *v) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (starts[middle] <= number) low = middle;
        else high = middle;
    }
    *v = (video_t){parts + low, low, number - starts[low], 0, 0};
    videos_t of = {v->part->offsets, v->part->videos, v->part->rows, NULL};
    return number >= starts[0] && number < starts[count] && rows_of(&of, v->at, &v->begin, &v->end);
}

INLINE int is_worse(const ranked_t *one, const ranked_t *two) {
    return one->score < two->score || (one->score == two->score && one->id > two->id);
}

/* The worst of the best is on top of a heap. */
DEFINE_SINK(sink, ranked_t, is_worse)

INLINE void keep_best(ranked_t *heap, int64_t *held, int64_t k, ranked_t new) {
    if (*held == k) {
        if (!is_worse(heap, &new)) return;
        heap[0] = new;
        sink(heap, k, 0);
        return;
    }
    int64_t at = (*held)++;
    for (; at > 0 && is_worse(&new, heap + (at - 1) / 2); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = new;
}

INLINE void ask_for(const void *row, int64_t bytes) {
    for (int64_t j = 0; j < bytes; j += 64) __builtin_prefetch((const char *)row + j);
}

/* Bounds and scores of a video, while the rows of the next one are asked for. */
#define DEFINE_RANK(NAME, CODE_DOT, HALF_DOT)                                                                         \
    static int64_t NAME(const part_t *parts, const int64_t *starts, int64_t count, const int32_t *number,             \
                        const float *bound, int64_t numbers, int64_t first, int64_t k, double margin,                 \
                        const asked_t *q, ranked_t *heap, int64_t *held) {                                            \
        video_t v, next = {0};                                                                                        \
        float cut = -INFINITY;                                                                                        \
        int64_t dim = q->dim;                                                                                         \
        if (numbers && !find_video(parts, starts, count, number[0], &next)) return OUTSIDE;                           \
        for (int64_t n = 0; n < numbers; n++) {                                                                       \
            v = next;                                                                                                 \
            if (n >= first && *held == k) cut = (float)((double)heap[0].score - margin);                              \
            if (n >= first && bound[n] < cut) break;                                                                  \
            next.begin = next.end = 0;                                                                                \
            if (n + 1 < numbers && !find_video(parts, starts, count, number[n + 1], &next)) return OUTSIDE;           \
            int64_t coming = next.begin;                                                                              \
            int bytes_come = n + 1 >= first && *held >= k - 1, is_left_out = 0;                                       \
            if (n >= first && *held == k) {                                                                           \
                float best = -INFINITY;                                                                               \
                for (int64_t row = v.begin; row < v.end; row++) {                                                     \
                    if (coming < next.end) ask_for(next.part->codes + coming++ * dim, dim);                           \
                    int32_t total = CODE_DOT(v.part->codes + row * dim, q->codes, dim);                               \
                    float mine = v.part->scales[row] * ((float)total * q->step + q->slack);                           \
                    if (mine > best) best = mine;                                                                     \
                }                                                                                                     \
                is_left_out = !(best + q->floor >= heap[0].score);                                                    \
            }                                                                                                         \
            if (is_left_out) continue;                                                                                \
            float best = -INFINITY;                                                                                   \
            for (int64_t row = v.begin; row < v.end; row++) {                                                         \
                if (coming < next.end) {                                                                              \
                    if (bytes_come) ask_for(next.part->codes + coming * dim, dim);                                    \
                    else ask_for(next.part->half + coming * dim, 2 * dim);                                            \
                    coming++;                                                                                         \
                }                                                                                                     \
                if (n >= first && row + HALVES_AHEAD < v.end)                                                         \
                    ask_for(v.part->half + (row + HALVES_AHEAD) * dim, 2 * dim);                                      \
                float total = HALF_DOT(v.part->half + row * dim, q->vector, dim);                                     \
                if (total > best && total < INFINITY) best = total;                                                   \
            }                                                                                                         \
            if (best > -INFINITY)                                                                                     \
                keep_best(heap, held, k, (ranked_t){best, v.part->ids[v.at], v.index, v.at});                         \
        }                                                                                                             \
        return DONE;                                                                                                  \
    }

DEFINE_RANK(rank_plain, code_dot_plain, half_dot_plain)
#if HAS_WIDE
WIDE DEFINE_RANK(rank_wide, code_dot_wide, half_dot_wide)
#endif

/* The k best of some videos by their exact scores, best first and equal ones by their ids, at k places of `id`, `score`,
 * `part` and `at`; `done` gets how many there are. The videos have numbers, those of a part from its start on, and come
 * by falling bounds. The first few are scored; of the others those that come within `margin` of the k-th best so far. */
EXPORT int64_t rank_videos(const part_t *parts, const int64_t *starts, int64_t count, int64_t dim, const int32_t *number,
                           const float *bound, int64_t numbers, int64_t first, int64_t k, double margin,
                           const int16_t *asked, const float *step, const float *slack, const float *floor,
                           const float *vector, int64_t *id, float *score, int64_t *part, int64_t *at, int64_t *done) {
    asked_t q = {asked, *step, *slack, *floor, vector, dim};
    int64_t held = 0, state;
    if (count < 1 || k < 1) return OUTSIDE;
    ranked_t *heap = malloc(sizeof(ranked_t) * k);
    if (!heap) return NO_MEMORY;
#if HAS_WIDE
    if (uses_wide()) state = rank_wide(parts, starts, count, number, bound, numbers, first, k, margin, &q, heap, &held);
    else
#endif
        state = rank_plain(parts, starts, count, number, bound, numbers, first, k, margin, &q, heap, &held);
    *done = held;
    for (int64_t left = held; left > 0; left--) {
        ranked_t worst = heap[0];
        heap[0] = heap[left - 1];
        if (left > 1) sink(heap, left - 1, 0);
        id[left - 1] = worst.id, score[left - 1] = worst.score, part[left - 1] = worst.part, at[left - 1] = worst.at;
    }
    free(heap);
    return state;
}
