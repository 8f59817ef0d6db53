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

typedef struct {
    double base, scale, share, most, further, cut_cost, edge_cost;
    int64_t neighbours;
} heights_t;

/* First, peak and last clip (exclusive) of up to `room` moments of one video, the one about the best clip first;
 * returns how many, or -1 if the edges make no sense. `sums` has room for 4 numbers a clip and one more, `free_clips`
 * for 3. */
static int64_t find_stretches(const float *scores, int64_t clips, const int64_t *edges, int64_t cuts,
                              const heights_t *set, int64_t *first, int64_t *peaks, int64_t *last, int64_t room,
                              double *sums, uint8_t *free_clips) {
    double base = set->base, scale = set->scale, share = set->share, most = set->most;
    double *means = sums + clips + 1, *gains = means + clips, *costs = gains + clips;
    uint8_t *came = free_clips + clips, *states = came + clips;
    if (!average_neighbours(scores, clips, edges, cuts, set->neighbours, sums, means)) return -1;
    double best = -INFINITY;
    for (int64_t at = 0; at < clips; at++) {
        free_clips[at] = 1;
        costs[at] = set->edge_cost;
        best = (double)scores[at] > best ? (double)scores[at] : best;
    }
    for (int64_t cut = 0; cut < cuts; cut++) costs[edges[cut]] = set->cut_cost;
    double least = base + set->further * (best - base);
    int64_t count = 0;
    while (count < room) {
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
        peaks[count] = peak;
        last[count++] = high;
    }
    return count;
}

/* The moments of several videos, up to `room` each: `found` gets how many, and `first`, `peaks` and `last` their clips
 * in the video, one video's after another's. `offsets` says where the clips of each video begin, `cuts` where its
 * `edges` do: the boundaries at which shots end, ascending, where a moment's edge costs less. */
EXPORT int64_t stretches_of_height(const float *scores, const int64_t *offsets, const int64_t *edges,
                                   const int64_t *cuts, int64_t videos, double base, double scale, int64_t neighbours,
                                   double share, double most, double further, double cut_cost, double edge_cost,
                                   int64_t *first, int64_t *peaks, int64_t *last, int64_t room, int64_t *found) {
    int64_t longest = 0;
    for (int64_t video = 0; video < videos; video++) {
        if (offsets[video + 1] <= offsets[video] || cuts[video + 1] < cuts[video]) return OUTSIDE;
        longest = larger(longest, offsets[video + 1] - offsets[video]);
    }
    double *sums = malloc((size_t)(4 * longest + 1) * sizeof *sums);
    uint8_t *free_clips = malloc((size_t)(3 * longest + 1));
    heights_t set = {base, scale, share, most, further, cut_cost, edge_cost, neighbours};
    int64_t total = 0, done = sums && free_clips ? DONE : NO_MEMORY;
    for (int64_t video = 0; done == DONE && video < videos; video++) {
        int64_t begin = offsets[video], cut = cuts[video];
        found[video] = find_stretches(scores + begin, offsets[video + 1] - begin, edges + cut, cuts[video + 1] - cut,
                                      &set, first + total, peaks + total, last + total, room, sums, free_clips);
        if (found[video] < 0) done = OUTSIDE;
        total += found[video];
    }
    free(sums);
    free(free_clips);
    return done;
}
