"""The caption measures as their definitions say, in loops over words."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations


def grams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu(captions, references, n):
    length = closest = 0
    matches, possible = [0] * n, [0] * n
    for caption, group in zip(captions, references, strict=True):
        length += len(caption)
        closest += min((abs(len(r) - len(caption)), len(r)) for r in group)[1]
        for k in range(1, n + 1):
            most = Counter()
            for reference in group:
                most |= grams(reference, k)
            matches[k - 1] += sum((grams(caption, k) & most).values())
            possible[k - 1] += max(len(caption) - k + 1, 0)
    product = math.prod((m + 1e-15) / (p + 1e-9) for m, p in zip(matches, possible, strict=True))
    ratio = (length + 1e-15) / (closest + 1e-9)
    return product ** (1 / n) * (math.exp(max(1 - 1 / ratio, -700)) if ratio < 1 else 1)


def common_length(one, two):
    table = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def rouge_l(caption, group):
    caption, group = caption or [""], [r or [""] for r in group]
    precision = max(common_length(caption, r) / len(caption) for r in group)
    recall = max(common_length(caption, r) / len(r) for r in group)
    if not precision * recall:
        return 0.0
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)


def cider(captions, references, plain=False):
    total = math.log(len(captions))
    scores = []
    for caption, group in zip(captions, references, strict=True):
        score = 0.0
        for n in range(1, 5):
            frequency = Counter(g for others in references for g in set().union(*(grams(r, n) for r in others)))

            def weights(words, n=n, frequency=frequency):
                return {g: c * (total - math.log(max(1, frequency[g]))) for g, c in grams(words, n).items()}

            mine = weights(caption)
            for reference in group:
                theirs = weights(reference)
                shared = sum((v if plain else min(v, theirs[g])) * theirs[g] for g, v in mine.items() if g in theirs)
                size = math.hypot(*mine.values()) * math.hypot(*theirs.values())
                apart = max(len(caption) - 1, 0) - max(len(reference) - 1, 0)
                damping = 1 if plain else math.exp(-(apart**2) / 72)
                score += shared / size * damping if size else 0.0
        scores.append(score / 4 / len(group) * 10)
    return scores


def fewest_chunks(caption, reference):
    """Of all alignments with the most matches, the fewest chunks: by trying all of them."""
    places = [[j for j, w in enumerate(reference) if w == word] for word in caption]
    most = sum((Counter(caption) & Counter(reference)).values())
    best = None
    for chosen in combinations([i for i, p in enumerate(places) if p], most):
        for targets in permutations(range(len(reference)), most):
            if all(j in places[i] for i, j in zip(chosen, targets, strict=True)):
                pairs = list(zip(chosen, targets, strict=True))
                chunks = sum(
                    k == 0 or pairs[k] != (pairs[k - 1][0] + 1, pairs[k - 1][1] + 1) for k in range(len(pairs))
                )
                best = chunks if best is None else min(best, chunks)
    return most, best or 0
