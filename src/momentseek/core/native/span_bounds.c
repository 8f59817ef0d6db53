/* The best span of each video for a query whose score of a span is linear in its clips (Slate, docs/ranker.md):
 *
 *     mean of what's products + start's rise at the first clip + end's fall after the last + a score for the length
 *
 * From bytes an upper bound, from float16s the score itself. A clip's three products are made while its row is at hand. */
#include "dots.h"

enum { ROWS_AHEAD = 16, CURVES = 5, INSIDE = 0, START = 1, END = 2, LOW_START = 3, LOW_END = 4 };

typedef struct {
    int64_t dim, shortest, count;
    const float *lengths; /* (count) */
} spans_t;

/* The largest score of `clips` clips; `curves` (CURVES, clips): what, and each edge at its highest and at its lowest.
 * `work` has room for three curves and as many numbers again as eight. */
INLINE float largest_span(const spans_t *s, const float *const *curves, int64_t clips, float *work) {
    float *sums = work, *rise = work + clips + 8, *fall = rise + clips + 8;
    float best = -INFINITY;
    eight most;
    for (int n = 0; n < 8; n++) most[n] = -INFINITY;
    for (int64_t t = 0; t < clips; t++) {
        sums[t] = 0;
        rise[t] = curves[START][t] - (t ? curves[LOW_START][t - 1] : 0);
        fall[t] = curves[END][t] - (t + 1 < clips ? curves[LOW_END][t + 1] : 0);
    }
    for (int64_t size = 1; size < s->shortest + s->count && size <= clips; size++) {
        int64_t left = clips - size + 1, t = 0, at = size - 1;
        for (; t < left; t++) sums[t] += curves[INSIDE][t + at];
        if (size < s->shortest) continue;
        float share = 1.0f / (float)size, more = s->lengths[size - s->shortest];
        for (t = 0; t + 8 <= left; t += 8)
            most = larger_of(most, *(const eight *)(sums + t) * share + *(const eight *)(rise + t) +
                                       *(const eight *)(fall + t + at) + more);
        for (; t < left; t++) {
            float score = sums[t] * share + rise[t] + fall[t + at] + more;
            if (score > best) best = score;
        }
    }
    for (int n = 0; n < 8; n++)
        if (most[n] > best) best = most[n];
    return best < INFINITY ? best : -INFINITY;
}

/* What one curve needs of its query: codes or floats. */
typedef struct {
    const int16_t *codes;  /* (3, dim) */
    const float *steps, *slacks, *vectors; /* (3), (3) and (3, dim) */
} asked_t;

#define DEFINE_SPANS(NAME, TYPE, FILL)                                                                            \
    static int NAME(const TYPE *rows, const float *scales, const spans_t *s, const asked_t *q,                    \
                    const videos_t *of, float *room, int64_t most, float *out, int64_t low, int64_t high) {       \
        int state = DONE;                                                                                         \
        runner_t ahead = start_runner(of, low, high);                                                             \
        float *curves[CURVES], *work = room + CURVES * most;                                                      \
        for (int n = 0; n < CURVES; n++) curves[n] = room + n * most;                                             \
        for (int n = 0; n < ROWS_AHEAD; n++) fetch_row(&ahead, (const char *)rows, sizeof(TYPE) * s->dim);        \
        for (int64_t video = low; video < high; video++) {                                                        \
            int64_t begin, end;                                                                                   \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                               \
            for (int64_t row = begin; row < end; row++) {                                                         \
                fetch_row(&ahead, (const char *)rows, sizeof(TYPE) * s->dim);                                     \
                FILL                                                                                              \
            }                                                                                                     \
            out[video] = largest_span(s, (const float *const *)curves, end - begin, work);                        \
        }                                                                                                         \
        return state;                                                                                             \
    }

#define FILL_BOUNDS(DOT)                                                                                          \
    for (int n = 0; n < 3; n++) {                                                                                 \
        float total = (float)DOT(rows + row * s->dim, q->codes + n * s->dim, s->dim) * q->steps[n];               \
        curves[n][row - begin] = scales[row] * (total + q->slacks[n]);                                            \
        if (n) curves[n + 2][row - begin] = scales[row] * (total - q->slacks[n]);                                 \
    }
#define FILL_SCORES(DOT)                                                                                          \
    for (int n = 0; n < 3; n++) {                                                                                 \
        float total = DOT(rows + row * s->dim, q->vectors + n * s->dim, s->dim);                                  \
        curves[n][row - begin] = total;                                                                           \
        if (n) curves[n + 2][row - begin] = total;                                                                \
    }

DEFINE_SPANS(bounds_plain, int8_t, FILL_BOUNDS(code_dot_plain))
DEFINE_SPANS(scores_plain, uint16_t, FILL_SCORES(half_dot_plain))
#if HAS_WIDE
WIDE DEFINE_SPANS(bounds_wide, int8_t, FILL_BOUNDS(code_dot_wide))
WIDE DEFINE_SPANS(scores_wide, uint16_t, FILL_SCORES(half_dot_wide))
#endif

/* Room for the curves of the longest of some videos, of which `most` gets the clips. */
static float *make_room(const videos_t *of, int64_t low, int64_t high, int64_t *most) {
    int64_t begin, end;
    *most = 1;
    for (int64_t video = low; video < high; video++)
        if (rows_of(of, video, &begin, &end)) *most = larger(*most, end - begin);
    return malloc(sizeof(float) * (CURVES * *most + 3 * (*most + 8)));
}

/* out[n] of the n-th video meant, for low <= n < high: no span of it scores more. Minus infinity without a span whose
 * bound is a number. `codes` (3, dim), `steps` and `slacks` are those of what, start and end. */
EXPORT int64_t span_bounds_of_one(const int8_t *rows, const float *scales, int64_t dim, const int64_t *offsets,
                                  int64_t videos, int64_t count, const int64_t *places, const int16_t *codes,
                                  const float *steps, const float *slacks, const float *lengths, int64_t shortest,
                                  int64_t kinds, float *out, int64_t low, int64_t high) {
    spans_t s = {dim, shortest, kinds, lengths};
    asked_t q = {codes, steps, slacks, NULL};
    videos_t of = {offsets, videos, count, places};
    int64_t most, state = NO_MEMORY;
    float *room = make_room(&of, low, high, &most);
    if (room) {
#if HAS_WIDE
        if (uses_wide()) state = bounds_wide(rows, scales, &s, &q, &of, room, most, out, low, high);
        else
#endif
            state = bounds_plain(rows, scales, &s, &q, &of, room, most, out, low, high);
    }
    free(room);
    return state;
}

/* The same from float16s: the score of the best span itself. `vectors` (3, dim) are those of what, start and end. */
EXPORT int64_t span_scores_of_one(const uint16_t *half, int64_t dim, const int64_t *offsets, int64_t videos,
                                  int64_t count, const int64_t *places, const float *vectors, const float *lengths,
                                  int64_t shortest, int64_t kinds, float *out, int64_t low, int64_t high) {
    spans_t s = {dim, shortest, kinds, lengths};
    asked_t q = {NULL, NULL, NULL, vectors};
    videos_t of = {offsets, videos, count, places};
    int64_t most, state = NO_MEMORY;
    float *room = make_room(&of, low, high, &most);
    if (room) {
#if HAS_WIDE
        if (uses_wide()) state = scores_wide(half, NULL, &s, &q, &of, room, most, out, low, high);
        else
#endif
            state = scores_plain(half, NULL, &s, &q, &of, room, most, out, low, high);
    }
    free(room);
    return state;
}
