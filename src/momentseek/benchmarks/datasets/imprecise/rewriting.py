"""Make queries imprecise: replace character names by general words, check, retry, then queue failures for a person.

TVR-Ranking, section 3.1 and appendix A. A rewriter (rules or a language model) makes a first attempt. Queries that fail
the checks of ``verification`` get a second one (a stricter reading of names; temperature 0.2). Those that fail again
go to the review queue, with the attempt that removed most names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from momentseek.benchmarks.datasets.common import (
    BuiltDataset,
    Decision,
    ShowProgress,
    as_json_lines,
    no_progress,
    tally,
)
from momentseek.benchmarks.datasets.imprecise.names import (
    LIKELY_NAME_SCORE,
    Gazetteer,
    build_gazetteer,
    read_names,
    write_names,
)
from momentseek.benchmarks.datasets.imprecise.query_files import (
    NamedQuery,
    QueryFile,
    ReviewedQuery,
    ReviewRequest,
    WorkFile,
    read_query_file,
    read_queue,
    write_queue,
)
from momentseek.benchmarks.datasets.imprecise.substitution import count_replacements, substitute
from momentseek.benchmarks.datasets.imprecise.verification import (
    CERTAIN_NAME_SCORE,
    MIN_SIMILARITY,
    MissingVectors,
    RewriteVerdict,
    RewriteVerifier,
    load_similarity,
    spacy_recogniser,
)
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import parameter
from momentseek.core.progress import ShowCount
from momentseek.core.reports import count, text_table
from momentseek.recognition.chat import ChatCompletions, checked_address

NUMBERED_LINE = re.compile(r"^\s*\(?(\d+)\s*[.:)]\s*(.*\S)\s*$")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
CHAT_INSTRUCTIONS = """\
You make search queries less precise. Each numbered line describes a moment of a TV show and may name characters.
Write every line again without any character's name:
- put general words in their place: a man, a woman, a person, another woman, two people, some people, a doctor;
- choose man or woman by what the name or the line's pronouns tell, and person where they tell nothing;
- keep everything else as it is: the same actions, objects, order and meaning; add nothing and leave nothing out;
- copy a line that names nobody unchanged.
Answer with the same number of lines, each with the number it was given, and nothing else."""


def number_lines(queries: Sequence[str]) -> str:
    """Write one line per query, with its number.

    >>> number_lines(["a dog", " two\\nlines "])
    '1. a dog\\n2. two lines'
    """
    return "\n".join(f"{i}. {' '.join(q.split())}" for i, q in enumerate(queries, 1))


def parse_answer(answer: str, count: int) -> list[str | None]:
    """Read the lines of an answer by their numbers; None for a number that is missing or occurs twice.

    A line with half a character (a lone surrogate), which no file can hold, counts as missing.

    >>> parse_answer("Sure!\\n2. a man sits\\n1) a dog\\n4. what?\\n3: x\\n3: y", 3)
    ['a dog', 'a man sits', None]
    """
    lines: dict[int, str | None] = {}
    for line in answer.splitlines():
        if match := NUMBERED_LINE.match(line):
            number = int(match[1]) if len(match[1]) < 9 else 0
            lines[number] = None if number in lines or LONE_SURROGATE.search(line) else match[2]
    return [lines.get(i) for i in range(1, count + 1)]


CHAT_BATCH_QUERIES = 20
MAX_ATTEMPTS = 2
SECOND_ATTEMPT_NAME_SCORE = 0.3
"""Minimum name score of a word that the rules replace on their second attempt."""


class Rewriter(Protocol):
    """Makes queries imprecise; ``attempt`` is 0 at first, then 1 for those that failed."""

    @property
    def batch(self) -> int:
        """Number of queries to rewrite at once."""

    def rewrite(self, queries: Sequence[NamedQuery], attempt: int) -> Sequence[str | None]:
        """Rewrite queries: return one text each, None if there is no answer."""


@dataclass(frozen=True)
class RuleRewriter:
    """Rewrites queries by the rules of ``substitution``, more eagerly on the second attempt."""

    gazetteer: Gazetteer
    batch: int = 1 << 30

    def rewrite(self, queries: Sequence[NamedQuery], attempt: int) -> list[str | None]:
        """Replace the names in queries by rule."""
        min_score, strict = (SECOND_ATTEMPT_NAME_SCORE, True) if attempt else (LIKELY_NAME_SCORE, False)
        return [
            substitute(q.text, self.gazetteer, show=q.show, min_score=min_score, strict=strict).text for q in queries
        ]


@dataclass(frozen=True)
class ChatRewriter(ChatCompletions):
    """Rewrites queries with a language model, at temperature 0, then 0.2 (appendix A)."""

    batch: int = CHAT_BATCH_QUERIES

    def rewrite(self, queries: Sequence[NamedQuery], attempt: int) -> list[str | None]:
        """Ask the model for the queries without names; None if it gives no usable line even for the single query."""
        texts = [query.text for query in queries]
        answers = self._ask(texts, attempt)
        for i in [i for i, answer in enumerate(answers) if answer is None] if len(texts) > 1 else []:
            answers[i] = self._ask([texts[i]], attempt)[0]
        return answers

    def _ask(self, texts: Sequence[str], attempt: int) -> list[str | None]:
        system = {"role": "system", "content": CHAT_INSTRUCTIONS}
        lines = {"role": "user", "content": number_lines(texts)}
        return parse_answer(self.complete([system, lines], temperature=0.2 if attempt else 0.0), len(texts))


def open_rewriter(
    base_url: str | None, model: str | None, timeout: float = 60.0, batch: int = CHAT_BATCH_QUERIES
) -> ChatRewriter:
    """Check an address and build its rewriter; a user and password in it are sent, but not kept in the address."""
    address, name, key, login = checked_address(base_url, model)
    return ChatRewriter(address, name, timeout, key=key, login=login, batch=batch)


@dataclass(frozen=True)
class ImpreciseQueries:
    """The rewritten queries in order, every decision, and the queries for a person to correct."""

    texts: tuple[str, ...]
    decisions: tuple[Decision, ...]
    queue: tuple[ReviewRequest, ...]
    asked_again: int = 0
    """Number of answers of an earlier run that failed the checks of this one."""
    review: ReviewOutcome = field(default_factory=lambda: ReviewOutcome())


@dataclass(frozen=True)
class ReviewOutcome:
    """The outcome of a corrected queue: the ids that were used, and those to check again."""

    taken: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Used, although a name is left."""
    untouched: tuple[str, ...] = ()
    """Used, although unchanged from the failed attempt."""
    unmatched: tuple[str, ...] = ()
    """Not used: there is no such query, or its original differs."""


def make_imprecise(
    queries: Sequence[NamedQuery],
    rewriter: Rewriter,
    verifier: RewriteVerifier,
    *,
    work: WorkFile | None = None,
    reviewed: Mapping[str, ReviewedQuery] | None = None,
    progress: ShowCount = lambda done, total: None,
) -> ImpreciseQueries:
    """Rewrite and check all queries; ``progress`` is called with the numbers of finished queries and of all.

    Answers in ``work`` are checked like new ones, and requested again if they fail. If vectors are missing, answers are
    kept there unchecked, and the error at the end names all missing texts.

    >>> from momentseek.benchmarks.datasets.imprecise.verification import lexical_similarity
    >>> cast = Gazetteer({}).with_names([("Ross", "male")])
    >>> queries = [NamedQuery("1", "Ross opens the door."), NamedQuery("2", "A dog barks.")]
    >>> result = make_imprecise(queries, RuleRewriter(cast), RewriteVerifier(cast, lexical_similarity))
    >>> result.texts, [d.outcome for d in result.decisions]
    (('A man opens the door.', 'A dog barks.'), ['replaced', 'unchanged'])
    """
    results, review = _apply_review(queries, reviewed or {}, verifier)
    missing: dict[str, str] = {}
    """Text without a vector → the file that lacks it."""
    left = [q for q in queries if q.id not in results]
    kept, asked, again = _resume_work(left, work, verifier, missing)
    results |= kept
    queue: list[ReviewRequest] = []
    for at in range(0, len(asked), rewriter.batch):
        progress(len(kept) + len(review.taken) + at, len(queries))
        batch = asked[at : at + rewriter.batch]
        try:
            best, passed = _attempt_batch(batch, rewriter, verifier, work)
        except MissingVectors as e:
            missing |= dict.fromkeys(e.texts, e.source)
            continue
        if work:
            work.keep((q.text, best[q.id][0]) for q in batch if q.id in passed)
        for query in batch:
            text, verdict = best[query.id]
            if query.id in passed:
                results[query.id] = (text, _decision(query, text, "passed the checks", verdict))
            else:
                results[query.id] = (text, _queue_decision(query, text, verdict))
                queue.append(ReviewRequest(query.id, query.text, text, verdict.reasons))
    progress(len(queries), len(queries))
    if missing:
        raise MissingVectors(next(iter(missing.values())), list(missing))
    pairs = [results[q.id] for q in queries]
    return ImpreciseQueries(tuple(t for t, _ in pairs), tuple(d for _, d in pairs), tuple(queue), again, review)


def _apply_review(
    queries: Sequence[NamedQuery], reviewed: Mapping[str, ReviewedQuery], verifier: RewriteVerifier
) -> tuple[dict[str, tuple[str, Decision]], ReviewOutcome]:
    """Return the results of the reviewed queries, and the outcome of the review."""
    taken = [q for q in queries if q.id in reviewed and reviewed[q.id].original == q.text]
    names = verifier.names([reviewed[q.id].query for q in taken], [q.show for q in taken]) if taken else []
    results = {}
    for query, found in zip(taken, names, strict=True):
        row = reviewed[query.id]
        decision = _decision(query, row.query, "reviewed")
        decision.evidence.update({"names": list(found)} if found else {})
        decision.evidence.update({"untouched": True} if row.untouched else {})
        results[query.id] = (row.query, decision)
    return results, ReviewOutcome(
        tuple(results),
        tuple(q.id for q, found in zip(taken, names, strict=True) if found),
        tuple(q.id for q in taken if reviewed[q.id].untouched),
        tuple(key for key in reviewed if key not in results),
    )


def _resume_work(
    queries: Sequence[NamedQuery], work: WorkFile | None, verifier: RewriteVerifier, missing: dict[str, str]
) -> tuple[dict[str, tuple[str, Decision]], list[NamedQuery], int]:
    """Return earlier answers that pass the checks, the queries still to rewrite, and the number of failed answers."""
    done = work.read() if work else {}
    old = [q for q in queries if q.text in done]
    texts = [done[q.text] for q in old]
    try:
        verdicts = verifier.verify([q.text for q in old], texts, [q.show for q in old]) if old else []
    except MissingVectors as e:
        missing |= dict.fromkeys(e.texts, e.source)
        return {}, [q for q in queries if q.text not in done], 0
    results = {
        q.id: (text, _decision(q, text, "passed the checks", verdict))
        for q, text, verdict in zip(old, texts, verdicts, strict=True)
        if verdict.passed
    }
    return results, [q for q in queries if q.id not in results], len(old) - len(results)


def _attempt_batch(
    batch: Sequence[NamedQuery], rewriter: Rewriter, verifier: RewriteVerifier, work: WorkFile | None = None
) -> tuple[dict[str, tuple[str, RewriteVerdict]], set[str]]:
    """Return the best attempt at every query, and which queries passed."""
    best: dict[str, tuple[str, RewriteVerdict]] = {}
    passed: set[str] = set()
    for attempt in range(MAX_ATTEMPTS):
        left = [q for q in batch if q.id not in passed]
        if not left:
            break
        answers = rewriter.rewrite(left, attempt)
        texts = [q.text if a is None else a for q, a in zip(left, answers, strict=True)]
        try:
            verdicts = verifier.verify([q.text for q in left], texts, [q.show for q in left])
        except MissingVectors:
            if work:  # the next run will check them
                work.keep((q.text, best[q.id][0]) for q in batch if q.id in passed)
                work.keep((q.text, a) for q, a in zip(left, answers, strict=True) if a is not None)
            raise
        for query, text, answer, verdict in zip(left, texts, answers, verdicts, strict=True):
            if answer is None and verdict.passed:
                verdict = RewriteVerdict(verdict.similarity, verdict.names, ("the model gave no usable answer",))
            if verdict.passed:
                passed.add(query.id)
            old = best.get(query.id)
            if old is None or verdict.passed or len(verdict.names) < len(old[1].names):
                best[query.id] = (text, verdict)
    return best, passed


def _decision(query: NamedQuery, text: str, reason: str, verdict: RewriteVerdict | None = None) -> Decision:
    evidence: dict[str, object] = {"original": query.text, "query": text}
    if verdict is not None and text != query.text:
        evidence["similarity"] = round(verdict.similarity, 4)
    if text == query.text:
        return Decision(query.id, "unchanged", "no name in it" if reason != "reviewed" else reason, evidence)
    return Decision(query.id, "replaced", reason, evidence)


def _queue_decision(query: NamedQuery, text: str, verdict: RewriteVerdict) -> Decision:
    evidence = {"original": query.text, "query": text, "similarity": round(verdict.similarity, 4)}
    low = "similarity is too low"
    kinds = [low if reason.startswith("similarity") else reason.split(":")[0] for reason in verdict.reasons]
    return Decision(query.id, "queued", "; ".join(kinds), {**evidence, "reasons": list(verdict.reasons)})


@dataclass(frozen=True, kw_only=True)
class ImpreciseOptions:
    """How the queries of a file are made imprecise, and which other files are written."""

    type: str | None = None
    """Only TVR's descriptions of this type."""
    backend: Literal["rules", "chat"] = "rules"
    base_url: str | None = None
    model: str | None = None
    batch: int = CHAT_BATCH_QUERIES
    timeout: float = 60.0
    names: str | None = None
    """A file of the user's own names."""
    learn_from: Sequence[str] = ()
    """Files of other queries to learn names from."""
    save_names: str | None = None
    encoder: str | None = None
    similar: float = MIN_SIMILARITY
    as_written: bool = False
    named: float = CERTAIN_NAME_SCORE
    ner: bool = False
    queue: str | None = None
    reviewed: str | None = None
    report: str | None = None


def build_imprecise(
    source: str,
    out: str,
    options: ImpreciseOptions,
    *,
    progress: ShowProgress = no_progress,
    announce: Callable[[str], None] = lambda _: None,
) -> BuiltDataset:
    """Make the queries of a file imprecise; ``announce`` is called with messages during the work.

    Answers of a language model are kept in ``OUT.partial.jsonl`` until all queries are done. Texts that are missing
    from a file of vectors are written to ``OUT.texts.txt``.
    """
    chat = None
    if options.backend == "chat":
        chat = open_rewriter(options.base_url, options.model, options.timeout, options.batch)
    corrections = read_queue(options.reviewed) if options.reviewed else {}
    read = read_query_file(source, options.type)
    cast = _learn_names(read, options)
    work = WorkFile(f"{out}.partial.jsonl", f"{options.model} at {chat.base_url}") if chat else None
    with progress("rewriting" if chat else f"encoding with {options.encoder or 'minilm'}") as show:
        similarity, measure, note = load_similarity(options.encoder, None if chat else show)
        if note:
            announce(f"note: {note}")
        verifier = RewriteVerifier(
            cast,
            similarity,
            options.similar,
            options.named,
            spacy_recogniser() if options.ner else None,
            options.as_written or measure == "lexical",
        )
        if work and (kept := len(work.read())):
            announce(f"resuming: {count(kept, 'query', 'queries')} rewritten before ({work.path})")
        try:
            result = make_imprecise(
                read.queries,
                chat or RuleRewriter(cast),
                verifier,
                work=work,
                reviewed=corrections,
                progress=show if chat and show else lambda done, total: None,
            )
        except KeyboardInterrupt:
            if work:
                announce(f"\nfinished queries are kept in {work.path}; run the same command to continue")
            raise
        except MissingVectors as e:
            if not (options.encoder or "").startswith("file:"):
                raise
            missing = f"{out}.texts.txt"
            write_bytes(missing, "".join(f"{text}\n" for text in e.texts).encode())
            raise MissingVectors(e.source, e.texts, missing) from None
    files: dict[str | os.PathLike[str], bytes] = {out: read.with_queries(result.texts)}
    files |= {options.queue: write_queue(result.queue)} if options.queue else {}
    files |= {options.report: as_json_lines(result.decisions)} if options.report else {}
    files |= {options.save_names: write_names(cast)} if options.save_names else {}
    facts = {"out": out, "backend": options.backend, "similarity": measure, "names": len(cast)}
    built = _summarise(result, files, facts, options.queue)
    return replace(built, work_file=work.path) if work and not result.queue else built


def _learn_names(read: QueryFile, options: ImpreciseOptions) -> Gazetteer:
    own = read_names(options.names) if options.names else []
    further = [pair for path in options.learn_from for pair in read_query_file(path).everything]
    return build_gazetteer([*read.everything, *further]).with_names(own)


def _summarise(
    result: ImpreciseQueries, files: Mapping[str | os.PathLike[str], bytes], facts: dict[str, Any], queue: str | None
) -> BuiltDataset:
    words = count_replacements(
        (d.evidence["original"], text)
        for d, text in zip(result.decisions, result.texts, strict=True)
        if d.outcome == "replaced"
    )
    outcomes = tally(result.decisions)
    counts = ", ".join(f"{sum(reasons.values()):,} {outcome}" for outcome, reasons in outcomes.items())
    text = f"{count(len(result.texts), 'query', 'queries')}: {counts}; {count(facts['names'], 'name')} known"
    if words:
        rows = [[word, f"{n:,}", gender] for word, n, gender in words]
        text += "\n\n" + text_table(["word", "times", "gender"], rows, align="lrl")
    return BuiltDataset(
        files=files,
        summary={
            **facts,
            "queries": len(result.texts),
            "decisions": outcomes,
            "words": [{"word": word, "count": n, "gender": gender} for word, n, gender in words],
            "asked_again": result.asked_again,
            "reviewed": {key: len(ids) for key, ids in vars(result.review).items()},
        },
        text=text,
        notes=_review_notes(result, queue),
    )


def _review_notes(result: ImpreciseQueries, queue: str | None) -> list[str]:
    """Return notes on a corrected queue, on an earlier run's answers, and on the queries that a person should see."""
    review, notes = result.review, []
    for ids, what in (
        (review.named, "the check still finds a name in it"),
        (review.untouched, "it is unchanged from the failed attempt"),
        (review.unmatched, "no query has this id and original, so it is not used"),
    ):
        if ids:
            some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
            notes.append(f"{count(len(ids), 'reviewed row')} ({some}): {what}")
    if result.asked_again:
        answers = count(result.asked_again, "earlier answer")
        notes.append(f"{answers} failed the checks now and had to be requested again")
    if result.queue:
        where = f"see {queue}" if queue else f"{parameter('queue', ...)} lists them"
        notes.append(
            f"{count(len(result.queue), 'query', 'queries')} failed the checks; the output has the best attempt "
            f"at each; {where}"
        )
    return notes
