"""Names that stand together as one: "Raj, Howard and Leonard's", but not "Castle looks at Beckett and Ryan leaves".

Collapsing the second into "two people" would leave its last verb without a subject. So names are grouped only where no
clause can begin between them; otherwise each is replaced alone, which is right in both readings.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from momentseek.construct.imprecise.evidence import looks_like_verb
from momentseek.construct.imprecise.mentions import Mention
from momentseek.construct.imprecise.tokens import WordToken
from momentseek.construct.imprecise.word_lists import ADVERBS, PAST_VERBS, VERBS_BE, word_set

SUBORDINATORS = word_set("while as when after before if once since because although during upon")


def group_mentions(words: Sequence[WordToken], mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Group mentions that stand together as one; a mention alone is a group of one."""
    runs: list[list[Mention]] = []
    for mention in mentions:
        if runs and _is_joined(words, runs[-1][-1], mention):
            runs[-1].append(mention)
        else:
            runs.append([mention])
    return list(itertools.chain.from_iterable(_split_run(words, run) for run in runs))


def _is_joined(words: Sequence[WordToken], left: Mention, right: Mention) -> bool:
    """Whether only a comma, "and" or both stand between two names, the left one without a possessive ending."""
    if words[left.last - 1].own or right.plural_title:
        return False
    between = words[left.last : right.first]
    if not between:
        gap = words[right.first].gap
        return gap.strip() in (",", "&", "/") or gap == "." or (gap == ". " and words[left.first].first)
    joint = between[0].gap.strip() in ("", ",", ".") and not words[right.first].gap.strip()
    return len(between) == 1 and between[0].key in ("and", "und", "n") and joint


def _split_run(words: Sequence[WordToken], run: list[Mention]) -> list[list[Mention]]:
    """A run of names as one group, or in pieces where the sentence may be cut between them."""
    if len(run) == 1:
        return [run]
    joints = [bool(b.first - a.last) or "&" in words[b.first].gap for a, b in itertools.pairwise(run)]
    opens = words[run[0].first].first or words[run[0].first - 1].key in SUBORDINATORS
    following = words[run[-1].last] if run[-1].last < len(words) else None
    listed = following is not None and following.key == "and" and not any(joints)
    fronted = not words[run[0].first].first and _clause_opener(words, run[0].first)
    if fronted and not joints[0]:  # While talking to Castle, Beckett and Ryan leave
        return [run[:1], *_split_run(words, run[1:])]
    if not (joints[-1] or listed):
        return [[m] for m in run]
    if True in joints[:-1]:  # A and B, C and D
        cut = joints.index(True) + 2
        return [*_split_run(words, run[:cut]), *_split_run(words, run[cut:])]
    if not opens and not words[run[-1].last - 1].own and _clause_follows(words, run[-1].last):
        return [*_split_run(words, run[:-1]), run[-1:]] if len(run) > 2 else [[m] for m in run]
    return [run]


def _clause_opener(words: Sequence[WordToken], i: int) -> bool:
    start = next((k for k in range(i, -1, -1) if words[k].first), 0)
    inside = not any("," in w.gap for w in words[start + 1 : i + 1])
    return inside and words[start].key in SUBORDINATORS and i - start > 1


def _clause_follows(words: Sequence[WordToken], i: int) -> bool:
    """Whether the next word, adverbs aside, looks like a verb of which the last name alone is the subject."""
    while i < len(words) and (words[i].key in ADVERBS or words[i].key.endswith("ly")) and not words[i].gap.strip():
        i += 1
    if i >= len(words) or words[i].gap.strip():
        return False
    key = words[i].key
    if key in ("and", "then", "are", "were", "as"):
        return False
    return looks_like_verb(words[i]) or key in VERBS_BE or key in PAST_VERBS or key.endswith("ed")
