/* The list of a query: the vectors of a coarse list that may belong to its best.
 *
 * A query has a table of sixteen numbers for each two columns: what each of their centres adds to its product. A sum of
 * these and what a vector's group adds is an estimate of the product, in steps of the table. Groups are read in order of
 * what they promise, and none is read that promises less than the estimates found by then ask for. */
#include "blocks.h"
#include "heaps.h"

enum { MAX_ENTRY = 127, MAX_SUM = 65535, BLOCKS_AHEAD = 2 };
static const float USUAL_HOPE = 2; /* by which groups are ordered that are read whatever they promise */

typedef struct {
    float total; /* an estimate in steps */
    int32_t number;
} entry_t;

typedef struct {
    float promise, added; /* the largest estimate to hope for, and what the group's mean adds to a sum; in steps */
    int64_t group;
} promise_t;

/* What has been found: the entries with estimates from `least` on, which follows from the estimate of a certain rank. */
typedef struct {
    entry_t *entries;
    float *totals; /* room to select in */
    int64_t count, room, rank, most, full;
    float margin, best, least; /* `best` is the estimate of that rank */
} found_t;

/* The table of a query for each two columns, from 0 on; the size of a step, and what all sums lack. */
static void fill_tables(const float *centres, int64_t pairs, const float *query, int64_t dim, uint8_t *tables,
                        float *step, double *base) {
    float span = 1e-30f;
    double lacks = 0;
    int64_t most = smaller(MAX_ENTRY, MAX_SUM / larger(1, pairs));
    for (int round = 0; round < 2; round++)
        for (int64_t pair = 0; pair < pairs; pair++) {
            float x = 2 * pair < dim ? query[2 * pair] : 0, y = 2 * pair + 1 < dim ? query[2 * pair + 1] : 0;
            float product[CENTRES], low = INFINITY, high = -INFINITY;
            for (int c = 0; c < CENTRES; c++) {
                product[c] = x * centres[(pair * CENTRES + c) * 2] + y * centres[(pair * CENTRES + c) * 2 + 1];
                if (product[c] < low) low = product[c];
                if (product[c] > high) high = product[c];
            }
            if (round == 0) {
                lacks += low;
                if (high - low > span) span = high - low;
            } else
                for (int c = 0; c < CENTRES; c++)
                    tables[pair * CENTRES + c] = (uint8_t)((product[c] - low) * ((float)most / span) + 0.5f);
        }
    *step = span / (float)most;
    *base = lacks;
}

#define DEFINE_DOT(NAME)                                                                  \
    static float NAME(const float *row, const float *query, int64_t dim) {                \
        eight total[2] = {{0}, {0}};                                                      \
        int64_t j = 0;                                                                    \
        for (; j + 16 <= dim; j += 16)                                                    \
            for (int n = 0; n < 2; n++)                                                   \
                total[n] += *(const eight *)(row + j + 8 * n) * *(const eight *)(query + j + 8 * n); \
        total[0] += total[1];                                                             \
        float sum = sum_of(&total[0]);                                                    \
        for (; j < dim; j++) sum += row[j] * query[j];                                    \
        return sum;                                                                       \
    }

DEFINE_DOT(dot_plain)
#if HAS_WIDE
WIDE DEFINE_DOT(dot_wide)
#endif

/* Whether one group is read before another. */
INLINE int comes_first(const promise_t *one, const promise_t *two) {
    return one->promise > two->promise || (one->promise == two->promise && one->group < two->group);
}

DEFINE_SINK(sift_down, promise_t, comes_first)

/* Take the first of a heap off it; `count` becomes one less. */
INLINE promise_t take_first(promise_t *heap, int64_t *count) {
    promise_t first = heap[0];
    heap[0] = heap[--*count];
    if (*count > 0) sift_down(heap, *count, 0);
    return first;
}

/* The n-th largest number (the largest for n = 1); they change places. */
static float nth_largest(float *x, int64_t count, int64_t n) {
    int64_t low = 0, high = count - 1, at = n - 1;
    while (low < high) {
        float a = x[low], b = x[low + (high - low) / 2], c = x[high];
        float pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot) i++;
            while (pivot > x[j]) j--;
            if (i <= j) {
                float kept = x[i];
                x[i++] = x[j];
                x[j--] = kept;
            }
        }
        if (at <= j) high = j;
        else if (at >= i) low = i;
        else break;
    }
    return x[at];
}

/* Keep the entries with estimates above the least, and so many with just that. */
INLINE void keep(found_t *f, int64_t equal) {
    int64_t kept = 0;
    for (int64_t n = 0; n < f->count; n++)
        if (f->entries[n].total > f->least || (f->entries[n].total == f->least && equal-- > 0))
            f->entries[kept++] = f->entries[n];
    f->count = kept;
}

/* Find out anew which estimates are wanted, and forget the others. */
static void settle(found_t *f) {
    if (f->count >= f->rank) {
        for (int64_t n = 0; n < f->count; n++) f->totals[n] = f->entries[n].total;
        f->best = nth_largest(f->totals, f->count, f->rank);
        if (f->best - f->margin > f->least) f->least = f->best - f->margin;
    }
    keep(f, f->count);
    if (f->count > f->most) {
        int64_t more = 0;
        for (int64_t n = 0; n < f->count; n++) f->totals[n] = f->entries[n].total;
        f->least = nth_largest(f->totals, f->count, f->most);
        for (int64_t n = 0; n < f->count; n++) more += f->entries[n].total > f->least;
        keep(f, f->most - more);
    }
    f->full = smaller(f->room, f->count + larger(f->rank, f->count / 2) + VECTORS_PER_BLOCK);
}

typedef struct {
    const uint8_t *blocks, *tables;
    int64_t bytes;
    const int32_t *numbers; /* of the vectors, by their places; -1 is none */
    int64_t vectors;
    const int32_t *owner; /* the video of each vector */
    const uint8_t *open;  /* whether a video may be found; NULL if all may */
    int64_t videos;
} list_t;

INLINE int64_t note(const list_t *l, found_t *f, int64_t block, uint32_t bits, const uint16_t *sums, float added) {
    for (; bits; bits &= bits - 1) {
        int at = __builtin_ctz(bits);
        int32_t number = l->numbers[block * VECTORS_PER_BLOCK + at];
        if (number < 0) continue;
        if (number >= l->vectors) return OUTSIDE;
        if (l->open) {
            if (l->owner[number] < 0 || l->owner[number] >= l->videos) return OUTSIDE;
            if (!l->open[l->owner[number]]) continue;
        }
        f->entries[f->count++] = (entry_t){(float)sums[at] + added, number};
    }
    return DONE;
}

/* The least sum that is wanted of a group; more than there can be if none is. */
INLINE int64_t least_sum(const found_t *f, float added) {
    float least = ceilf(f->least - added);
    return least > MAX_SUM ? MAX_SUM + 1 : least > 0 ? (int64_t)least : 0;
}

#define DEFINE_READ(NAME, SUM)                                                                                  \
    static int64_t NAME(const list_t *l, found_t *f, int64_t low, int64_t high, int64_t next, int64_t beyond,   \
                        float added) {                                                                          \
        int64_t size = l->bytes * VECTORS_PER_BLOCK, state = DONE, least = least_sum(f, added);                 \
        for (int64_t block = low; block < high && least <= MAX_SUM && state == DONE; block++) {                 \
            int64_t later = block + BLOCKS_AHEAD, last = high;                                                  \
            uint16_t sums[VECTORS_PER_BLOCK];                                                                   \
            if (later >= high) later += next - high, last = beyond;                                             \
            if (later < last) /* a processor's own prefetching stops at every page */                           \
                for (int64_t n = 0; n < size; n += 64) __builtin_prefetch(l->blocks + later * size + n);        \
            uint32_t bits = SUM(l->blocks + block * size, l->tables, l->bytes, (uint16_t)least, sums);          \
            if (bits) state = note(l, f, block, bits, sums, added);                                             \
            if (f->count + VECTORS_PER_BLOCK > f->full) {                                                       \
                settle(f);                                                                                      \
                least = least_sum(f, added);                                                                    \
            }                                                                                                   \
        }                                                                                                       \
        return state;                                                                                           \
    }

DEFINE_READ(read_plain, sum_block_plain)
#if HAS_WIDE
WIDE DEFINE_READ(read_wide, sum_block_wide)
#endif

/* The numbers of the vectors whose estimates come within `margin` times the products' spread of the one of a certain
 * `rank`, those of videos that are not open left out; `most` at most; and their estimates. A group is read if its mean's
 * product and `hope` times its spread reach that far (all are for an infinite one), until `share` of all blocks are
 * read. The group g is blocks edges[g] up to edges[g + 1]. `out` and `estimates` have `most` places; `done` gets how
 * many were found and how many blocks were read; `best` gets the estimate of that rank, minus infinity if there are
 * fewer, and the spread (standard deviation) of the query's products with all vectors, as far as groups tell. */
EXPORT int64_t list_near(const float *centres, int64_t pairs, const float *groups, const float *spreads,
                         const int64_t *edges, int64_t count, int64_t dim, const uint8_t *blocks, int64_t held,
                         const int32_t *numbers, const int32_t *owner, int64_t vectors, const uint8_t *open,
                         int64_t videos, const float *query, int64_t rank, double hope, double margin, double share,
                         int64_t most, int32_t *out, float *estimates, int64_t *done, double *best) {
    if (rank < 1 || most < 1 || pairs % 2) return OUTSIDE;
    int64_t state = NO_MEMORY, waiting = 0, blocks_read = 0;
    int64_t width = smaller(held * VECTORS_PER_BLOCK, 2 * larger(most, rank)) + 2 * VECTORS_PER_BLOCK;
    uint8_t *tables = malloc(larger(1, pairs * CENTRES));
    promise_t *heap = malloc(sizeof *heap * larger(1, count));
    found_t f = {malloc(sizeof(entry_t) * width), malloc(sizeof(float) * width), 0, width, rank, most, 0, 0, -INFINITY,
                 -INFINITY};
    list_t l = {blocks, tables, pairs / 2, numbers, vectors, owner, open, videos};
    float step;
    double base, sum = 0, squares = 0, length = 0, spread;
    if (!tables || !heap || !f.entries || !f.totals) goto end;
    state = DONE;
    fill_tables(centres, pairs, query, dim, tables, &step, &base);
    for (int64_t j = 0; j < dim; j++) length += (double)query[j] * query[j];
    f.full = smaller(width, 2 * rank + VECTORS_PER_BLOCK);
    for (int64_t g = 0; g < count; g++) {
        if (edges[g] < 0 || edges[g + 1] < edges[g] || edges[g + 1] > held) state = OUTSIDE;
        if (state != DONE || edges[g] == edges[g + 1]) continue;
#if HAS_WIDE
        float product = (uses_wide() ? dot_wide : dot_plain)(groups + g * dim, query, dim);
#else
        float product = dot_plain(groups + g * dim, query, dim);
#endif
        double share_of_all = (double)(edges[g + 1] - edges[g]) / (double)held;
        sum += share_of_all * product;
        squares += share_of_all * ((double)product * product + (double)spreads[g] * spreads[g] * length);
        float hoped = product + (hope < INFINITY ? (float)hope : USUAL_HOPE) * spreads[g] - (float)base;
        heap[waiting++] = (promise_t){hoped / step, product / step, g};
    }
    if (state != DONE) goto end;
    spread = sqrt(squares > sum * sum ? squares - sum * sum : 0);
    f.margin = margin < INFINITY ? (float)(margin * spread / step) : INFINITY;
    for (int64_t at = waiting / 2; at-- > 0;) sift_down(heap, waiting, at);
    while (waiting > 0) {
        promise_t now = take_first(heap, &waiting);
        int64_t low = edges[now.group], high = edges[now.group + 1], next = 0, beyond = 0;
        if ((hope < INFINITY && now.promise < f.least) || (double)blocks_read >= share * (double)held) break;
        if (waiting > 0) next = edges[heap[0].group], beyond = edges[heap[0].group + 1];
        blocks_read += high - low;
#if HAS_WIDE
        if (uses_wide()) state = read_wide(&l, &f, low, high, next, beyond, now.added);
        else
#endif
            state = read_plain(&l, &f, low, high, next, beyond, now.added);
        if (state != DONE) goto end;
    }
    settle(&f);
    for (int64_t n = 0; n < f.count; n++) {
        out[n] = f.entries[n].number;
        estimates[n] = (float)((double)f.entries[n].total * step + base);
    }
    done[0] = f.count;
    done[1] = blocks_read;
    best[0] = (double)f.best * step + base;
    best[1] = spread;
end:
    free(tables);
    free(heap);
    free(f.entries);
    free(f.totals);
    return state;
}
