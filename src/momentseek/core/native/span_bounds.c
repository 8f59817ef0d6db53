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
    float *shares;        /* 1 / size of each size */
} spans_t;

/* Spans are scored eight at a time, so this many numbers after a video's last must be there; of `fall` -INFINITY. */
enum { BEYOND = 8 };

/* The largest score of `clips` clips: the mean inside, the rise at the first clip, the fall after the last, and the
 * length's score. */
#define DEFINE_LARGEST_SPAN(NAME, LARGER)                                                                         \
    INLINE float NAME(const spans_t *s, const float *inside, const float *rise, const float *fall, int64_t clips) {\
        float best = -INFINITY;                                                                                   \
        eight most = (eight){0} - INFINITY;                                                                       \
        for (int64_t t = 0; t < clips; t += 8) {                                                                  \
            eight total = {0}, first = *(const eight *)(rise + t);                                                \
            int64_t longest = smaller(s->shortest + s->count - 1, clips - t), size = 1;                           \
            for (; size < s->shortest && size <= longest; size++) total += *(const eight *)(inside + t + size - 1);\
            for (; size <= longest; size++) {                                                                     \
                total += *(const eight *)(inside + t + size - 1);                                                 \
                most = LARGER(most, total * s->shares[size] + first + *(const eight *)(fall + t + size - 1) +     \
                                        s->lengths[size - s->shortest]);                                          \
            }                                                                                                     \
        }                                                                                                         \
        for (int n = 0; n < 8; n++)                                                                               \
            if (most[n] > best) best = most[n];                                                                   \
        return best < INFINITY ? best : -INFINITY;                                                                \
    }

DEFINE_LARGEST_SPAN(largest_span_plain, larger_of)
#if HAS_WIDE
/* As larger_of, in one instruction. */
WIDE INLINE eight larger_wide(eight one, eight two) { return (eight)_mm256_max_ps((__m256)two, (__m256)one); }
WIDE DEFINE_LARGEST_SPAN(largest_span_wide, larger_wide)
#endif

/* Rise and fall from curves (CURVES, clips + BEYOND): what, and each edge at its highest and at its lowest. */
INLINE void set_edges(float *const *curves, int64_t clips, float *rise, float *fall) {
    for (int64_t t = 0; t < clips; t++) {
        rise[t] = curves[START][t] - (t ? curves[LOW_START][t - 1] : 0);
        fall[t] = curves[END][t] - (t + 1 < clips ? curves[LOW_END][t + 1] : 0);
    }
    for (int64_t t = clips; t < clips + BEYOND; t++) {
        curves[INSIDE][t] = rise[t] = 0;
        fall[t] = -INFINITY;
    }
}

/* What one curve needs of its query: codes or floats. */
typedef struct {
    const int16_t *codes;  /* (3, dim) */
    const float *steps, *slacks, *vectors; /* (3), (3) and (3, dim) */
} asked_t;

#define DEFINE_SPANS(NAME, TYPE, FILL, SPAN)                                                                      \
    static int NAME(const TYPE *rows, const float *scales, const spans_t *s, const asked_t *q,                    \
                    const videos_t *of, float *room, int64_t most, float *out, int64_t low, int64_t high) {       \
        int state = DONE;                                                                                         \
        runner_t ahead = start_runner(of, low, high);                                                             \
        float *curves[CURVES], *work = room + CURVES * (most + BEYOND);                                           \
        for (int n = 0; n < CURVES; n++) curves[n] = room + n * (most + BEYOND);                                  \
        for (int n = 0; n < ROWS_AHEAD; n++) fetch_row(&ahead, (const char *)rows, sizeof(TYPE) * s->dim);        \
        for (int64_t video = low; video < high; video++) {                                                        \
            int64_t begin, end;                                                                                   \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                               \
            for (int64_t row = begin; row < end; row++) {                                                         \
                fetch_row(&ahead, (const char *)rows, sizeof(TYPE) * s->dim);                                     \
                FILL                                                                                              \
            }                                                                                                     \
            set_edges(curves, end - begin, work, work + end - begin + BEYOND);                                    \
            out[video] = SPAN(s, curves[INSIDE], work, work + end - begin + BEYOND, end - begin);                 \
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

DEFINE_SPANS(bounds_plain, int8_t, FILL_BOUNDS(code_dot_plain), largest_span_plain)
DEFINE_SPANS(scores_plain, uint16_t, FILL_SCORES(half_dot_plain), largest_span_plain)
#if HAS_WIDE
WIDE DEFINE_SPANS(bounds_wide, int8_t, FILL_BOUNDS(code_dot_wide), largest_span_wide)
WIDE DEFINE_SPANS(scores_wide, uint16_t, FILL_SCORES(half_dot_wide), largest_span_wide)
#endif

/* Room for `numbers` and, after them, the shares of all sizes. */
static float *make_room(spans_t *s, int64_t numbers) {
    int64_t longest = s->shortest + s->count - 1;
    float *room = calloc(numbers + longest + 1, sizeof(float));
    s->shares = room + numbers;
    for (int64_t size = 1; room && size <= longest; size++) s->shares[size] = 1.0f / (float)size;
    return room;
}

/* Room for the curves of the longest of some videos, of which `most` gets the clips. */
static float *make_curves(spans_t *s, const videos_t *of, int64_t low, int64_t high, int64_t *most) {
    int64_t begin, end;
    *most = 1;
    for (int64_t video = low; video < high; video++)
        if (rows_of(of, video, &begin, &end)) *most = larger(*most, end - begin);
    return make_room(s, (CURVES + 2) * (*most + BEYOND));
}

/* out[n] of the n-th video meant, for low <= n < high: no span of it scores more. Minus infinity without a span whose
 * bound is a number. `codes` (3, dim), `steps` and `slacks` are those of what, start and end. */
EXPORT int64_t span_bounds_of_one(const int8_t *rows, const float *scales, int64_t dim, const int64_t *offsets,
                                  int64_t videos, int64_t count, const int64_t *places, const int16_t *codes,
                                  const float *steps, const float *slacks, const float *lengths, int64_t shortest,
                                  int64_t kinds, float *out, int64_t low, int64_t high) {
    spans_t s = {dim, shortest, kinds, lengths, NULL};
    asked_t q = {codes, steps, slacks, NULL};
    videos_t of = {offsets, videos, count, places};
    int64_t most, state = NO_MEMORY;
    float *room = make_curves(&s, &of, low, high, &most);
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
    spans_t s = {dim, shortest, kinds, lengths, NULL};
    asked_t q = {NULL, NULL, NULL, vectors};
    videos_t of = {offsets, videos, count, places};
    int64_t most, state = NO_MEMORY;
    float *room = make_curves(&s, &of, low, high, &most);
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

/* The leading columns of clips, turned so that they hold most of the vectors: bytes of 16 clips at a time, two columns
 * side by side (rows / 16, columns / 2, 16, 2). `rest` is the length of a clip's other columns, `change` that of their
 * difference from the clip before (of the first: their own), in steps that never lie below. */
typedef struct {
    const int8_t *blocks;
    const uint8_t *rest, *change;
    int64_t columns;
    const int16_t *codes;                  /* (3, columns): what, start and end */
    const float *steps, *slacks, *lengths; /* (3): of a product; of its error; of the query's other columns */
} leads_t;

enum { CLIPS_PER_BLOCK = 16, LEAD_CLIPS = 1024, AHEAD = 4096 };
static const float REST_STEP = 1.01f / 255, CHANGE_STEP = 2.02f / 255;

INLINE void block_plain(const int8_t *block, const int16_t *codes, int64_t columns, int32_t *out) {
    for (int clip = 0; clip < CLIPS_PER_BLOCK; clip++) {
        out[clip] = 0;
        for (int64_t j = 0; j < columns; j++)
            out[clip] += block[(j / 2 * CLIPS_PER_BLOCK + clip) * 2 + j % 2] * codes[j];
    }
}

INLINE void products_plain(const leads_t *q, const int8_t *block, float *const *curves, int64_t at) {
    int32_t sums[CLIPS_PER_BLOCK];
    for (int n = 0; n < 3; n++) {
        block_plain(block, q->codes + n * q->columns, q->columns, sums);
        for (int clip = 0; clip < CLIPS_PER_BLOCK; clip++) curves[n][at + clip] = (float)sums[clip] * q->steps[n];
    }
}

#if HAS_WIDE
WIDE INLINE void products_wide(const leads_t *q, const int8_t *block, float *const *curves, int64_t at) {
    __m256i sums[3][2];
    for (int n = 0; n < 3; n++) sums[n][0] = sums[n][1] = _mm256_setzero_si256();
    for (int64_t j = 0; j < q->columns; j += 2, block += 2 * CLIPS_PER_BLOCK) {
        __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)block));
        __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(block + CLIPS_PER_BLOCK)));
        for (int n = 0; n < 3; n++) {
            int32_t pair;
            memcpy(&pair, q->codes + n * q->columns + j, sizeof pair);
            __m256i asked = _mm256_set1_epi32(pair);
            sums[n][0] = _mm256_add_epi32(sums[n][0], _mm256_madd_epi16(low, asked));
            sums[n][1] = _mm256_add_epi32(sums[n][1], _mm256_madd_epi16(high, asked));
        }
    }
    for (int n = 0; n < 3; n++)
        for (int half = 0; half < 2; half++)
            _mm256_storeu_ps(curves[n] + at + 8 * half,
                             _mm256_mul_ps(_mm256_cvtepi32_ps(sums[n][half]), _mm256_set1_ps(q->steps[n])));
}
#endif

/* Upper bounds of what a clip adds as the inside, as the first and as the last of a span, with clips on both sides. */
INLINE void bound_clips(const leads_t *q, int64_t from, int64_t clips, float *const *curves, float *restrict inside,
                        float *restrict rise, float *restrict fall) {
    const float *restrict what = curves[0], *restrict start = curves[1], *restrict end = curves[2];
    const uint8_t *restrict rest = q->rest + from, *restrict change = q->change + from;
    float slack = q->slacks[0], more = q->lengths[0] * REST_STEP;
    float rising = 2 * q->slacks[1], falling = 2 * q->slacks[2];
    float up = q->lengths[1] * CHANGE_STEP, down = q->lengths[2] * CHANGE_STEP;
    for (int64_t t = 0; t < clips; t++) inside[t] = what[t] + slack + more * (float)rest[t];
    for (int64_t t = 1; t < clips; t++) rise[t] = start[t] - start[t - 1] + rising + up * (float)change[t];
    for (int64_t t = 0; t + 1 < clips; t++) fall[t] = end[t] - end[t + 1] + falling + down * (float)change[t + 1];
}

INLINE float more_of(float one, float two) { return one > two ? one : two; }

/* The largest of some numbers. */
INLINE float largest(const float *x, int64_t count) {
    float best = -INFINITY;
    if (count < 8) {
        for (int64_t n = 0; n < count; n++) best = more_of(x[n], best);
        return best;
    }
    eight most = *(const eight *)(x + count - 8);
    for (int64_t n = 0; n + 8 < count; n += 8) most = larger_of(most, *(const eight *)(x + n));
    return more_of(more_of(more_of(most[0], most[4]), more_of(most[2], most[6])),
                   more_of(more_of(most[1], most[5]), more_of(most[3], most[7])));
}

/* The sum of the largest numbers of three curves. */
INLINE float sum_largest_plain(const float *one, const float *two, const float *three, int64_t count) {
    return largest(one, count) + largest(two, count) + largest(three, count);
}

#if HAS_WIDE
WIDE INLINE __m128 four_largest(const float *x, int64_t count) {
    eight most = *(const eight *)(x + count - 8);
    for (int64_t n = 0; n + 8 < count; n += 8) most = larger_wide(most, *(const eight *)(x + n));
    return _mm_max_ps(_mm256_castps256_ps128((__m256)most), _mm256_extractf128_ps((__m256)most, 1));
}

WIDE INLINE float sum_largest_wide(const float *one, const float *two, const float *three, int64_t count) {
    if (count < 8) return sum_largest_plain(one, two, three, count);
    __m128 a = four_largest(one, count), b = four_largest(two, count), c = four_largest(three, count);
    a = _mm_max_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b)); /* of one and two in turn */
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    c = _mm_max_ss(c, _mm_shuffle_ps(c, c, 1));
    return _mm_cvtss_f32(a) + _mm_cvtss_f32(_mm_shuffle_ps(a, a, 1)) + _mm_cvtss_f32(c);
}
#endif

/* A video that does not reach `need` even with the best inside, rise and fall of any of its clips keeps their sum;
 * spans are tried in the others. */
#define DEFINE_LEADS(NAME, PRODUCTS, SUM, SPAN)                                                                   \
    static int NAME(const leads_t *q, const spans_t *s, const videos_t *of, float need, float *room, int64_t most, \
                    float *out, int64_t low, int64_t high) {                                                      \
        float *curves[3], *inside = room + 3 * most, *rise = inside + most, *fall = rise + most;                  \
        const eight none = (eight){0} - INFINITY;                                                                 \
        float longer = largest(s->lengths, s->count);                                                             \
        for (int n = 0; n < 3; n++) curves[n] = room + n * most;                                                  \
        for (int64_t first = low, beyond; first < high; first = beyond) {                                         \
            int64_t from = of->offsets[first] / CLIPS_PER_BLOCK * CLIPS_PER_BLOCK, clips;                         \
            for (beyond = first + 1; beyond < high && of->offsets[beyond + 1] - from <= LEAD_CLIPS;) beyond++;    \
            clips = of->offsets[beyond] - from;                                                                   \
            for (int64_t at = 0; at < clips; at += CLIPS_PER_BLOCK) {                                             \
                const int8_t *block = q->blocks + (from + at) * q->columns;                                       \
                for (int64_t j = 0; j < CLIPS_PER_BLOCK * q->columns; j += 64) __builtin_prefetch(block + AHEAD + j); \
                PRODUCTS(q, block, curves, at);                                                                   \
            }                                                                                                     \
            const uint8_t *rest = q->rest + from;                                                                 \
            bound_clips(q, from, clips, curves, inside, rise, fall);                                              \
            for (int64_t video = first; video < beyond; video++) {                                                \
                int64_t begin = of->offsets[video] - from, end = of->offsets[video + 1] - from, size = end - begin; \
                out[video] = -INFINITY;                                                                           \
                if (!size) continue;                                                                              \
                rise[begin] = curves[1][begin] + q->slacks[1] + q->lengths[1] * REST_STEP * (float)rest[begin];   \
                fall[end - 1] = curves[2][end - 1] + q->slacks[2] + q->lengths[2] * REST_STEP * (float)rest[end - 1]; \
                out[video] = SUM(inside + begin, rise + begin, fall + begin, size) + longer;                      \
                if (out[video] < need) continue;                                                                  \
                eight next = *(const eight *)(fall + end); /* no span goes on in the next video */                \
                *(eight *)(fall + end) = none;                                                                    \
                out[video] = SPAN(s, inside + begin, rise + begin, fall + begin, size);                           \
                *(eight *)(fall + end) = next;                                                                    \
            }                                                                                                     \
        }                                                                                                         \
        return DONE;                                                                                              \
    }

DEFINE_LEADS(leads_plain, products_plain, sum_largest_plain, largest_span_plain)
#if HAS_WIDE
WIDE DEFINE_LEADS(leads_wide, products_wide, sum_largest_wide, largest_span_wide)
#endif

/* out[n] of the n-th video, for low <= n < high: no span of it scores more; exact where that is at least `need`, as
 * far as leading columns tell. */
EXPORT int64_t span_leads_of_one(const int8_t *blocks, const uint8_t *rest, const uint8_t *change, int64_t columns,
                                 const int64_t *offsets, int64_t videos, int64_t count, const int16_t *codes,
                                 const float *steps, const float *slacks, const float *others, const float *lengths,
                                 int64_t shortest, int64_t kinds, float need, float *out, int64_t low, int64_t high) {
    spans_t s = {columns, shortest, kinds, lengths, NULL};
    leads_t q = {blocks, rest, change, columns, codes, steps, slacks, others};
    videos_t of = {offsets, videos, count, NULL};
    int64_t most = LEAD_CLIPS, state = NO_MEMORY, begin, end;
    for (int64_t video = low; video < high; video++) {
        if (!rows_of(&of, video, &begin, &end)) return OUTSIDE;
        most = larger(most, end - begin + CLIPS_PER_BLOCK);
    }
    most += CLIPS_PER_BLOCK;
    float *room = make_room(&s, 6 * most);
    if (room) {
#if HAS_WIDE
        if (uses_wide()) state = leads_wide(&q, &s, &of, need, room, most, out, low, high);
        else
#endif
            state = leads_plain(&q, &s, &of, need, room, most, out, low, high);
    }
    free(room);
    return state;
}
