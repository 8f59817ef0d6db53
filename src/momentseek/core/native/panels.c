/* Upper bounds of videos' scores for many queries at once, to the bit the same as for one.
 *
 * A single query is bound by memory, a hundred by arithmetic. Two columns of a row are spread over a register and meet
 * the same columns of sixteen queries, which lie side by side in a *panel*; so nothing is added up across a register,
 * and four rows share what is loaded. This makes 32 products per cycle where a product of float32 matrices makes 16. */
#include "kernels.h"

enum { QUERIES_PER_PANEL = 16, ROWS_AT_ONCE = 4, ROWS_PER_TILE = 32 };

typedef int32_t sums_t[ROWS_AT_ONCE][QUERIES_PER_PANEL];

/* Sums of four rows, `width` apart, with the queries of a panel. */
INLINE void multiply_plain(const int16_t *rows, int64_t width, const int16_t *panel, sums_t sums) {
    memset(sums, 0, sizeof(sums_t));
    for (int64_t j = 0; j < width; j += 2, panel += 2 * QUERIES_PER_PANEL)
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            int32_t one = rows[r * width + j], two = rows[r * width + j + 1];
            for (int q = 0; q < QUERIES_PER_PANEL; q++) sums[r][q] += one * panel[2 * q] + two * panel[2 * q + 1];
        }
}

#if HAS_WIDE
WIDE INLINE void multiply_wide(const int16_t *rows, int64_t width, const int16_t *panel, sums_t sums) {
    __m256i total[ROWS_AT_ONCE][2];
    for (int r = 0; r < ROWS_AT_ONCE; r++) total[r][0] = total[r][1] = _mm256_setzero_si256();
    UNROLL
    for (int64_t j = 0; j < width; j += 2, panel += 2 * QUERIES_PER_PANEL) {
        __m256i one = _mm256_loadu_si256((const __m256i *)panel), two = _mm256_loadu_si256((const __m256i *)panel + 1);
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            int32_t pair;
            memcpy(&pair, rows + r * width + j, 4);
            __m256i both = _mm256_set1_epi32(pair);
            total[r][0] = _mm256_add_epi32(total[r][0], _mm256_madd_epi16(both, one));
            total[r][1] = _mm256_add_epi32(total[r][1], _mm256_madd_epi16(both, two));
        }
    }
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
        _mm256_storeu_si256((__m256i *)sums[r], total[r][0]);
        _mm256_storeu_si256((__m256i *)sums[r] + 1, total[r][1]);
    }
}
#endif

typedef struct {
    const int8_t *codes;
    const float *scales;
    int64_t dim;
    const int16_t *panels;
    int64_t queries;
    const float *steps, *slacks; /* as many as the panels have places */
    float *out; /* (queries, stride) */
    int64_t stride;
} batch_t;

/* Rows that are multiplied together, of one or more videos. */
typedef struct {
    int16_t *rows;
    float *best; /* (ROWS_PER_TILE + 1, places in the panels): of each video in the tile */
    int64_t width, places;
    int filled, slots;
    float scale[ROWS_PER_TILE];
    int slot[ROWS_PER_TILE];
    int64_t video[ROWS_PER_TILE + 1];
} tile_t;

/* Bounds of one row, kept where they are larger than those of the video's other rows. */
INLINE void keep_larger(float *best, const int32_t *sums, float scale, const float *steps, const float *slacks) {
    for (int q = 0; q < QUERIES_PER_PANEL; q += 8) {
        eight total = __builtin_convertvector(*(const eight_whole *)(sums + q), eight);
        eight bound = scale * (total * *(const eight *)(steps + q) + *(const eight *)(slacks + q));
        *(eight *)(best + q) = larger_of(*(const eight *)(best + q), bound);
    }
}

#define DEFINE_BATCH(KIND, TARGET, MULTIPLY)                                                                            \
    TARGET static void multiply_tile_##KIND(const batch_t *b, tile_t *t) {                                            \
        for (int64_t first = 0; first < t->places; first += QUERIES_PER_PANEL) {                                      \
            const float *steps = b->steps + first, *slacks = b->slacks + first;                                       \
            for (int row = 0; row < t->filled; row += ROWS_AT_ONCE) {                                                 \
                sums_t sums;                                                                                          \
                MULTIPLY(t->rows + row * t->width, t->width, b->panels + first * t->width, sums);                     \
                for (int r = 0; r < ROWS_AT_ONCE && row + r < t->filled; r++) {                                       \
                    float *best = t->best + t->slot[row + r] * t->places + first;                                     \
                    keep_larger(best, sums[r], t->scale[row + r], steps, slacks);                                     \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
        t->filled = 0;                                                                                                \
    }                                                                                                                 \
                                                                                                                      \
    TARGET static int run_batch_##KIND(const batch_t *b, const videos_t *of, tile_t *t, int64_t low, int64_t high) {  \
        int state = DONE;                                                                                             \
        runner_t ahead = start_runner(of, low, high);                                                                 \
        for (int n = 0; n < ROWS_PER_TILE; n++) fetch_row(&ahead, (const char *)b->codes, b->dim);                    \
        for (int64_t video = low; video < high; video++) {                                                            \
            int64_t begin, end;                                                                                       \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                                   \
            begin_slot(t, video);                                                                                     \
            for (int64_t row = begin; row < end; row++) {                                                             \
                fetch_row(&ahead, (const char *)b->codes, b->dim);                                                    \
                const int8_t *codes = b->codes + row * b->dim;                                                        \
                int16_t *place = t->rows + t->filled * t->width;                                                      \
                for (int64_t j = 0; j < b->dim; j++) place[j] = codes[j];                                             \
                t->scale[t->filled] = b->scales[row];                                                                 \
                t->slot[t->filled] = t->slots;                                                                        \
                if (++t->filled == ROWS_PER_TILE) {                                                                   \
                    multiply_tile_##KIND(b, t);                                                                       \
                    write_slots(b, t);                                                                                \
                    memcpy(t->best, t->best + t->slots * t->places, sizeof(float) * t->places);                       \
                    t->video[0] = video;                                                                              \
                    t->slots = 0;                                                                                     \
                }                                                                                                     \
            }                                                                                                         \
            if (++t->slots == ROWS_PER_TILE) {                                                                        \
                multiply_tile_##KIND(b, t);                                                                           \
                write_slots(b, t);                                                                                    \
                t->slots = 0;                                                                                         \
            }                                                                                                         \
        }                                                                                                             \
        multiply_tile_##KIND(b, t);                                                                                   \
        write_slots(b, t);                                                                                            \
        return state;                                                                                                 \
    }

static void begin_slot(tile_t *t, int64_t video) {
    t->video[t->slots] = video;
    float *best = t->best + t->slots * t->places;
    for (int64_t q = 0; q < t->places; q++) best[q] = -INFINITY;
}

/* Write what the videos before the present slot came to; the present one may go on. */
static void write_slots(const batch_t *b, tile_t *t) {
    for (int slot = 0; slot < t->slots; slot++) {
        const float *best = t->best + slot * t->places;
        float *out = b->out + t->video[slot];
        for (int64_t q = 0; q < b->queries; q++) out[q * b->stride] = best[q];
    }
}

DEFINE_BATCH(plain, , multiply_plain)
#if HAS_WIDE
DEFINE_BATCH(wide, WIDE, multiply_wide)
#endif

static int64_t run_batch(const batch_t *b, const videos_t *of, int64_t low, int64_t high) {
    int64_t width = b->dim + b->dim % 2;
    int64_t places = (b->queries + QUERIES_PER_PANEL - 1) / QUERIES_PER_PANEL * QUERIES_PER_PANEL;
    tile_t tile = {calloc(larger(1, ROWS_PER_TILE * width), sizeof(int16_t)),
                   malloc(sizeof(float) * (ROWS_PER_TILE + 1) * places), width, places, 0, 0, {0}, {0}, {0}};
    int state = NO_MEMORY;
    if (tile.rows && tile.best) {
#if HAS_WIDE
        if (uses_wide()) state = run_batch_wide(b, of, &tile, low, high);
        else
#endif
            state = run_batch_plain(b, of, &tile, low, high);
    }
    free(tile.rows);
    free(tile.best);
    return state;
}

/* out[q, n] of the n-th video meant, for low <= n < high, as `bounds_of_one` has it for each query. `panels`, `steps`
 * and `slacks` are filled up to a multiple of sixteen queries. */
EXPORT int64_t bounds_of_many(const int8_t *codes, const float *scales, int64_t dim, const int64_t *offsets,
                              int64_t videos, int64_t rows, const int64_t *places, const int16_t *panels,
                              int64_t queries, const float *steps, const float *slacks, float *out, int64_t stride,
                              int64_t low, int64_t high) {
    batch_t b = {codes, scales, dim, panels, queries, steps, slacks, out, stride};
    videos_t of = {offsets, videos, rows, places};
    return run_batch(&b, &of, low, high);
}

/* Which of many points is nearest to a row: the largest x . c - |c|^2 / 2. Each lane keeps the best of its places. */
typedef struct {
    eight best[2];
    eight_whole panel[2];
} lead_t;

INLINE void keep_nearest(lead_t *lead, const int32_t *sums, float scale, const float *steps, const float *halves,
                         int32_t panel) {
    for (int n = 0; n < 2; n++) {
        eight total = __builtin_convertvector(*(const eight_whole *)(sums + 8 * n), eight);
        eight value = scale * *(const eight *)(steps + 8 * n) * total - *(const eight *)(halves + 8 * n);
        eight_whole more = (eight_whole)(value > lead->best[n]);
        lead->best[n] = (eight)(((eight_whole)value & more) | ((eight_whole)lead->best[n] & ~more));
        lead->panel[n] = (panel & more) | (lead->panel[n] & ~more);
    }
}

/* The place of the best of all lanes, the first of equals; 0 if nothing was kept. */
static int32_t place_of_best(const lead_t *lead) {
    float most = -INFINITY;
    int32_t place = 0;
    for (int n = 0; n < QUERIES_PER_PANEL; n++) {
        float value = lead->best[n / 8][n % 8];
        int32_t there = lead->panel[n / 8][n % 8] * QUERIES_PER_PANEL + n;
        if (value > most || (value == most && there < place)) most = value, place = there;
    }
    return place;
}

typedef struct {
    const int8_t *codes;
    const float *scales;
    int64_t dim;
    const int16_t *panels;
    int64_t places;
    const float *steps, *halves; /* as many as places; a half is infinite where a place is left over */
} points_t;

#define DEFINE_NEAREST(KIND, TARGET, MULTIPLY)                                                                       \
    TARGET static void nearest_##KIND(const points_t *p, int16_t *rows, int64_t width, int64_t first, int count,     \
                                      int32_t *out) {                                                                \
        lead_t lead[ROWS_PER_TILE];                                                                                  \
        for (int r = 0; r < count; r++) {                                                                            \
            for (int64_t j = 0; j < p->dim; j++) rows[r * width + j] = p->codes[(first + r) * p->dim + j];           \
            lead[r] = (lead_t){{(eight){0} - INFINITY, (eight){0} - INFINITY}, {{0}}};                               \
        }                                                                                                            \
        for (int64_t place = 0; place < p->places; place += QUERIES_PER_PANEL)                                       \
            for (int row = 0; row < count; row += ROWS_AT_ONCE) {                                                    \
                sums_t sums;                                                                                         \
                MULTIPLY(rows + row * width, width, p->panels + place * width, sums);                                \
                for (int r = row; r < row + ROWS_AT_ONCE && r < count; r++)                                          \
                    keep_nearest(lead + r, sums[r - row], p->scales[first + r], p->steps + place, p->halves + place, \
                                 (int32_t)(place / QUERIES_PER_PANEL));                                              \
            }                                                                                                        \
        for (int r = 0; r < count; r++) out[first + r] = place_of_best(lead + r);                                    \
    }

DEFINE_NEAREST(plain, , multiply_plain)
#if HAS_WIDE
DEFINE_NEAREST(wide, WIDE, multiply_wide)
#endif

/* out[row], for low <= row < high, gets the place of the point nearest to the row. */
EXPORT int64_t nearest_points(const int8_t *codes, const float *scales, int64_t dim, const int16_t *panels,
                              int64_t places, const float *steps, const float *halves, int32_t *out, int64_t low,
                              int64_t high) {
    points_t p = {codes, scales, dim, panels, places, steps, halves};
    int64_t width = dim + dim % 2;
    int16_t *rows = calloc(larger(1, ROWS_PER_TILE * width), sizeof(int16_t));
    if (!rows) return NO_MEMORY;
    for (int64_t first = low; first < high; first += ROWS_PER_TILE) {
        int count = (int)smaller(ROWS_PER_TILE, high - first);
#if HAS_WIDE
        if (uses_wide()) {
            nearest_wide(&p, rows, width, first, count, out);
            continue;
        }
#endif
        nearest_plain(&p, rows, width, first, count, out);
    }
    free(rows);
    return DONE;
}
