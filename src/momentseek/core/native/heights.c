/* The stretches of a curve that reach a moment's height (search/localise/height.py has the formulas). */
#include "kernels.h"

/* Means of each clip and its neighbours between the same two edges; `sums` has room for one more than there are. */
static int average_neighbours(const float *scores, int64_t clips, const int64_t *edges, int64_t cuts, int64_t width,
                              double *sums, double *means) {
    sums[0] = 0;
    for (int64_t at = 0; at < clips; at++) sums[at + 1] = sums[at] + (double)scores[at];
    int64_t begin = 0, next = 0;
    for (int64_t cut = 0; cut < cuts; cut++)
        if (edges[cut] <= (cut ? edges[cut - 1] : 0) || edges[cut] >= clips) return 0;
    for (int64_t at = 0; at < clips; at++) {
        for (; next < cuts && edges[next] <= at; next++) begin = edges[next];
        int64_t end = next < cuts ? edges[next] : clips;
        int64_t low = larger(at - width, begin), high = smaller(at + width + 1, end);
        means[at] = (sums[high] - sums[low]) / (double)(high - low);
    }
    return 1;
}

/* The likeliest row of the states "moment" (1) and "background" (0), by gains of clips less costs of changes. */
static void decide_states(const double *gains, const double *costs, int64_t clips, uint8_t *came, uint8_t *states) {
    double outside = 0, inside = gains[0];
    for (int64_t at = 1; at < clips; at++) {
        double cost = costs[at], leaving = inside - cost, entering = outside - cost;
        came[at] = (uint8_t)((leaving > outside) | (entering > inside ? 0 : 2));
        outside = leaving > outside ? leaving : outside;
        inside = (entering > inside ? entering : inside) + gains[at];
    }
    states[clips - 1] = inside > outside;
    for (int64_t at = clips - 1; at > 0; at--) states[at - 1] = came[at] >> states[at] & 1;
}

/* First and last clips (exclusive) of up to `room` moments, the one about the best clip first; `found` gets how many.
 * `edges` are the boundaries at which shots end, ascending, where a moment's edge costs less. */
EXPORT int64_t stretches_of_height(const float *scores, int64_t clips, const int64_t *edges, int64_t cuts, double base,
                                   double scale, int64_t neighbours, double share, double most, double further,
                                   double cut_cost, double edge_cost, int64_t *first, int64_t *last, int64_t room,
                                   int64_t *found) {
    if (clips < 1) return OUTSIDE;
    double *sums = malloc((size_t)(4 * clips + 1) * sizeof *sums);
    uint8_t *free_clips = malloc((size_t)(3 * clips));
    if (!sums || !free_clips) {
        free(sums);
        free(free_clips);
        return NO_MEMORY;
    }
    double *means = sums + clips + 1, *gains = means + clips, *costs = gains + clips;
    uint8_t *came = free_clips + clips, *states = came + clips;
    int fits = average_neighbours(scores, clips, edges, cuts, neighbours, sums, means);
    double best = -INFINITY;
    for (int64_t at = 0; at < clips; at++) {
        free_clips[at] = 1;
        costs[at] = edge_cost;
        best = (double)scores[at] > best ? (double)scores[at] : best;
    }
    for (int64_t cut = 0; fits && cut < cuts; cut++) costs[edges[cut]] = cut_cost;
    double least = base + further * (best - base);
    int64_t count = 0;
    while (fits && count < room) {
        int64_t peak = -1;
        for (int64_t at = 0; at < clips; at++)
            if (free_clips[at] && (peak < 0 || scores[at] > scores[peak])) peak = at;
        if (peak < 0 || (count && (double)scores[peak] <= least)) break;
        double rise = means[peak] - base;
        rise = rise > 0 ? rise : 0;
        for (int64_t at = 0; at < clips; at++) {
            double gain = rise * (means[at] - base - share * rise) / scale;
            gain = gain < -most ? -most : gain > most ? most : gain;
            gains[at] = free_clips[at] ? gain : -(double)clips * most;
        }
        gains[peak] = (double)clips * most;
        decide_states(gains, costs, clips, came, states);
        int64_t low = peak, high = peak + 1;
        while (low > 0 && states[low - 1]) low--;
        while (high < clips && states[high]) high++;
        memset(free_clips + low, 0, (size_t)(high - low));
        first[count] = low;
        last[count++] = high;
    }
    *found = count;
    free(sums);
    free(free_clips);
    return fits ? DONE : OUTSIDE;
}
