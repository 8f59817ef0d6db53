/* Means of the scenes of videos: neighbouring clips are merged, cheapest first by Ward's cost (see scenes.py). */
#include "kernels.h"

static const float LOOSE_COST = 1e30f;

/* The clips of a stretch of a video, and then its scenes, linked from one to the next. */
typedef struct {
    int64_t dim;
    float *rows, *sizes, *squares, *costs;
    int64_t *following;
} stretch_t;

typedef struct {
    int64_t clips, scenes;       /* per stretch, at most */
    float max_spread, max_distance;
} rules_t;

INLINE float merging_cost(const stretch_t *s, const rules_t *rules, int64_t one, int64_t two) {
    const float *a = s->rows + one * s->dim, *b = s->rows + two * s->dim;
    float total = s->sizes[one] + s->sizes[two], share = s->sizes[one] / total, other = s->sizes[two] / total;
    eight apart = {0}, length = {0};
    int64_t j = 0;
    for (; j + 8 <= s->dim; j += 8) {
        eight x = *(const eight *)(a + j), y = *(const eight *)(b + j), d = x - y, mean = share * x + other * y;
        apart += d * d;
        length += mean * mean;
    }
    float distance = sum_of(&apart), square = sum_of(&length);
    for (; j < s->dim; j++) {
        float mean = share * a[j] + other * b[j];
        distance += (a[j] - b[j]) * (a[j] - b[j]);
        square += mean * mean;
    }
    float cost = s->sizes[one] * s->sizes[two] / total * distance;
    if (distance > rules->max_distance || (s->squares[one] + s->squares[two]) / total - square > rules->max_spread)
        cost = (cost + 1.0f) * LOOSE_COST;
    return cost;
}

INLINE void read_clips(stretch_t *s, const int8_t *codes, const float *scales, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float scale = isfinite(scales[i]) ? scales[i] : 0.0f, square = 0;
        for (int64_t j = 0; j < s->dim; j++) {
            float value = scale * (float)codes[i * s->dim + j];
            s->rows[i * s->dim + j] = value;
            square += value * value;
        }
        s->sizes[i] = 1;
        s->squares[i] = square;
        s->following[i] = i + 1;
    }
}

/* Merge the scene `one` with the next. */
INLINE void merge(stretch_t *s, int64_t one) {
    int64_t two = s->following[one];
    float total = s->sizes[one] + s->sizes[two], *a = s->rows + one * s->dim, *b = s->rows + two * s->dim;
    for (int64_t j = 0; j < s->dim; j++) a[j] = (s->sizes[one] * a[j] + s->sizes[two] * b[j]) / total;
    s->squares[one] += s->squares[two];
    s->sizes[one] = total;
    s->following[one] = s->following[two];
}

INLINE void merge_stretch(stretch_t *s, const rules_t *rules, int64_t count) {
    for (int64_t i = 0; i + 1 < count; i++) s->costs[i] = merging_cost(s, rules, i, i + 1);
    for (int64_t left = count; left > 1; left--) {
        int64_t best = 0, before = -1, previous = -1;
        float cheapest = INFINITY;
        for (int64_t i = 0; s->following[i] < count; previous = i, i = s->following[i])
            if (s->costs[i] < cheapest) {
                best = i;
                before = previous;
                cheapest = s->costs[i];
            }
        if (cheapest >= LOOSE_COST && left <= rules->scenes) return;
        merge(s, best);
        if (s->following[best] < count) s->costs[best] = merging_cost(s, rules, best, s->following[best]);
        if (before >= 0) s->costs[before] = merging_cost(s, rules, before, best);
    }
}

#define DEFINE_POOL(NAME)                                                                                              \
    static int NAME(const int8_t *codes, const float *scales, const videos_t *of, const rules_t *rules, stretch_t *s, \
                    const int64_t *room, float *means, int64_t *counts, int64_t low, int64_t high) {                  \
        int state = DONE;                                                                                             \
        for (int64_t video = low; video < high; video++) {                                                            \
            int64_t begin, end, written = 0;                                                                          \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                                   \
            for (; begin < end; begin += rules->clips) {                                                              \
                int64_t count = smaller(rules->clips, end - begin);                                                   \
                read_clips(s, codes + begin * s->dim, scales + begin, count);                                         \
                merge_stretch(s, rules, count);                                                                       \
                for (int64_t i = 0; i < count && state == DONE; i = s->following[i], written++) {                     \
                    if (room[video] + written >= room[video + 1]) state = OUTSIDE;                                    \
                    else                                                                                              \
                        memcpy(means + (room[video] + written) * s->dim, s->rows + i * s->dim,                        \
                               sizeof(float) * s->dim);                                                               \
                }                                                                                                     \
            }                                                                                                         \
            counts[video] = written;                                                                                  \
        }                                                                                                             \
        return state;                                                                                                 \
    }

DEFINE_POOL(pool_plain)
#if HAS_WIDE
WIDE DEFINE_POOL(pool_wide)
#endif

/* Write the means of each video's scenes from place room[video] on, and how many there are; `clips` are considered
 * together, and come to at most `scenes` scenes. */
EXPORT int64_t pool_scenes(const int8_t *codes, const float *scales, int64_t dim, const int64_t *offsets,
                           int64_t videos, int64_t rows, const int64_t *room, float *means, int64_t *counts,
                           int64_t clips, int64_t scenes, float max_spread, float max_distance, int64_t low,
                           int64_t high) {
    videos_t of = {offsets, videos, rows, NULL};
    rules_t rules = {clips, scenes, max_spread, max_distance};
    float *numbers = malloc(sizeof(float) * clips * (dim + 3));
    stretch_t s = {dim, numbers, NULL, NULL, NULL, malloc(sizeof(int64_t) * (clips + 1))};
    int64_t state = NO_MEMORY;
    if (numbers && s.following) {
        s.sizes = numbers + clips * dim;
        s.squares = s.sizes + clips;
        s.costs = s.squares + clips;
#if HAS_WIDE
        if (uses_wide()) state = pool_wide(codes, scales, &of, &rules, &s, room, means, counts, low, high);
        else
#endif
            state = pool_plain(codes, scales, &of, &rules, &s, room, means, counts, low, high);
    }
    free(numbers);
    free(s.following);
    return state;
}
