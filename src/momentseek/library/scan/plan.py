"""A plan for a large library: scene means of every video in two sizes, as files next to the segments.

The folder holds ``plan.json``, which names the segments covered, the depths to search to, and immutable files named by
the hash of their bytes: the means in int8 (``.codes``), their scales and videos with what belongs to the coarse list
(``.npz``), the coarse list itself (``.list``), and if spans are searched the clips' leading columns (``.lead``).
``plan.json`` is replaced last, in one step, so a reader sees the old plan or the new one. All of it can be built again
from the segments; nothing is lost if it is deleted. Whoever opens it compares the hashes, and a plan with a wrong byte
counts as none.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import tempfile
import time
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.atomic import flush_file, make_folder, write_bytes
from momentseek.core.errors import MomentseekError
from momentseek.core.progress import Advance
from momentseek.library.scan import coarse
from momentseek.library.scan.coarse import CoarseList, SceneMeans
from momentseek.library.scan.kernels import has_kernels
from momentseek.library.scan.pooling import group_count, nearest_groups, pool_scenes, train_groups
from momentseek.library.segments import Segment, checksum, quantise, read_or_map

PLAN_VERSION = 7
CLIPS_PER_POOLING = 1 << 15
"""Clips pooled at a time."""
MEANS_PER_ENCODING = 1 << 16
"""Scene means that are put into the coarse list at a time; a multiple of what a block of it holds."""
LEADING_COLUMNS, LEADING_SHARE = (16, 24, 32, 64), 0.9
"""Clips are turned so that few columns hold most of them: the first of these numbers that holds this share."""
BLOCK_CLIPS, REST_STEP, CHANGE_STEP, MAX_SQUARE = 16, 1.01 / 255, 2.02 / 255, 1.001
"""How leading columns are laid out and what they leave is rounded (as in span_bounds.c), for clips of length 1."""
PLAN_FILE = "plan.json"
CHECKED_SUFFIX = ".checked"
"""Suffix of an empty file whose time says when a large file was last read and found intact."""
CHECK_SECONDS = 24 * 3600
"""Seconds after which a large file is read and compared with its hash again; small ones are each time."""


@dataclass(frozen=True)
class Depths:
    """Limits of a search: the largest number of scene means from the coarse list, and of videos by their int8 means.

    If there are margins, a query stops earlier, as soon as the rest cannot come near what it has found. Margins are in
    spreads of the query's products with all scene means: those of a sentence lie closer together than a picture's.
    """

    coarse: int = 10_000
    fine: int = 3_000
    share: float = 0.6
    """Largest share of the coarse list that is read."""
    recall: float | None = None
    """Recall measured with these depths on the library itself; None if they are the defaults."""
    hope: float | None = None
    """Assumed distance of a group's best scene means from its mean, in spreads; None reads up to ``share``."""
    coarse_margin: float | None = None
    """How far estimates may be below those of the best scene means; None lists up to ``coarse``."""
    fine_margin: float | None = None
    """How far bounds of videos may be below the scores of the best videos; None scores up to ``fine``."""


@dataclass(frozen=True, eq=False)
class LeadingColumns:
    """The columns that hold most of a segment's clips, as bytes, and the lengths of what they leave."""

    basis: NDArray[np.float32]
    """(columns of a clip, leading columns): orthonormal."""
    blocks: NDArray[np.int8]
    """(clips / 16, leading columns / 2, 16, 2): 127 times the clips' leading columns."""
    rest: NDArray[np.uint8]
    change: NDArray[np.uint8]
    """Lengths of each clip's part outside the basis and of its difference from the previous clip's, rounded up."""


@dataclass(frozen=True, eq=False)
class Plan:
    """An opened plan; the videos of the covered segments are numbered in the order of ``covers``."""

    folder: Path
    covers: tuple[str, ...]
    means: SceneMeans
    listed: CoarseList
    depths: Depths
    leading: dict[str, LeadingColumns]
    """By segment; empty for streams whose spans are not scored, or of which no few columns hold most."""
    lead_map: mmap.mmap | None = None

    @property
    def is_led(self) -> bool:
        """Whether there are leading columns, and their file was not cut short since it was mapped."""
        return bool(self.leading) and (self.lead_map is None or self.lead_map.size() >= len(self.lead_map))


def build_plan(
    segments: Sequence[Segment], folder: Path, progress: Advance | None = None, *, spans: bool = False
) -> Plan:
    """Pool all videos of the segments and write the plan, in memory that does not grow with the library.

    ``progress`` is called with the number of videos done since the last call. ``spans`` adds leading columns.
    """
    covers = [s for s in segments if len(s.ids)]
    if not covers or not any(s.rows for s in covers):
        raise MomentseekError("there are no vectors to plan for; add videos first")
    if not has_kernels():
        raise MomentseekError(
            "a plan needs the compiled kernels; build them by `python -m momentseek.core.native.build`"
        )
    try:
        make_folder(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as work:
            arrays = _list_means(_pool_all(covers, Path(work), progress), Path(work))
            arrays["basis"] = write_leading(covers, Path(work) / "lead") if spans else np.zeros((0, 0), np.float32)
            rest = io.BytesIO()
            np.savez(rest, allow_pickle=False, **arrays)
            names = {
                "means": _move(Path(work) / "means", folder, ".codes"),
                "list": _move(Path(work) / "list", folder, ".list"),
                "rest": _write(folder, rest.getvalue(), ".npz"),
                **({"lead": _move(Path(work) / "lead", folder, ".lead")} if arrays["basis"].size else {}),
            }
    except OSError as e:
        raise MomentseekError(
            f"{folder}: the plan cannot be written ({e.strerror or e}); make room or check the rights"
        ) from e
    _save(folder, {"version": PLAN_VERSION, "covers": [s.name for s in covers], **names}, Depths())
    _sweep(folder, {PLAN_FILE, *names.values()})
    plan = open_plan(folder, segments)
    assert plan is not None
    return plan


def open_plan(folder: Path, segments: Sequence[Segment]) -> Plan | None:
    """Open the plan in a folder; None if there is none for these segments, so that it must be built.

    A plan need not cover all segments, but all segments that it covers must still exist.
    """
    header = _header(folder)
    if header is None or not set(header["covers"]) <= {s.name for s in segments}:
        return None
    try:
        return _read(folder, header, {segment.name: segment.rows for segment in segments})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def plan_fault(folder: Path) -> str | None:
    """The problem of the plan in a folder, after checking every byte; None if it is intact or there is no plan."""
    path = folder / PLAN_FILE
    if not path.exists():
        return None
    header = _header(folder)
    if header is None:
        return None if _is_older(path) else f"{path}: is damaged"
    for name in _files(header):
        try:
            if checksum(folder / name) != Path(name).stem:
                return f"{folder / name}: its bytes are not those that were written"
        except OSError as e:
            return f"{folder / name}: cannot be read ({e.strerror})"
    return None


def plan_files(folder: Path) -> list[Path]:
    """The files of the plan in a folder that are named by the hash of their bytes; empty without a valid header."""
    header = _header(folder)
    return [] if header is None else [folder / name for name in _files(header)]


def drop_plan(folder: Path) -> None:
    """Delete the plan in a folder."""
    if folder.is_dir():
        (folder / PLAN_FILE).unlink(missing_ok=True)
        _sweep(folder, set())


def set_depths(plan: Plan, depths: Depths) -> Plan:
    """Store other depths with a plan; returns the plan with them."""
    header = _header(plan.folder)
    if header is not None and header["means"] == plan.means.name:
        _save(plan.folder, header, depths)
    return replace(plan, depths=depths)


def _header(folder: Path) -> dict[str, Any] | None:
    try:
        header = json.loads((folder / PLAN_FILE).read_bytes())
        if header["version"] != PLAN_VERSION or header.pop("sum") != _sum(header):
            return None
        Depths(**header["depths"])
        return {**header, "covers": list(header["covers"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_older(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_bytes())["version"] < PLAN_VERSION)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _files(header: dict[str, Any]) -> list[str]:
    return [header[key] for key in ("means", "list", "rest", "lead") if key in header]


def _save(folder: Path, header: dict[str, Any], depths: Depths) -> None:
    content = {**header, "depths": asdict(depths)}
    write_bytes(folder / PLAN_FILE, json.dumps({**content, "sum": _sum(content)}, indent=1).encode())


def _sum(header: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16).hexdigest()


def _pool_all(segments: Sequence[Segment], work: Path, progress: Advance | None) -> Segment:
    """Scene means of all videos as a segment whose large array is a file in ``work``."""

    dim = segments[0].dim
    scales: list[NDArray[np.float32]] = []
    counts: list[NDArray[np.int64]] = []
    with (work / "codes").open("wb") as file:
        for segment in segments:
            offsets = np.asarray(segment.offsets)
            first = 0
            while first < len(segment.ids):
                last = max(
                    first + 1, int(np.searchsorted(offsets, offsets[first] + CLIPS_PER_POOLING, side="right")) - 1
                )
                begin, end = offsets[first], offsets[last]
                means, starts = pool_scenes(
                    segment.codes[begin:end], segment.scales[begin:end], offsets[first : last + 1] - begin
                )
                codes, scale = quantise(means)
                codes.tofile(file)
                scales.append(scale)
                counts.append(np.diff(starts))
                if progress is not None:
                    progress(last - first)
                first = last
    scale = np.concatenate(scales)
    return Segment(
        "(means)",
        f"{segments[0].stream}/scenes",
        np.concatenate([np.asarray(s.ids) for s in segments]),
        np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
        np.memmap(work / "codes", np.int8, mode="r", shape=(len(scale), dim)),
        scale,
        np.zeros((0, dim), np.float16),
    )


def _list_means(means: Segment, work: Path) -> dict[str, NDArray[Any]]:
    """Write all means and their coarse list, group after group; returns the other arrays of the plan."""

    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(means.rows, min(means.rows, coarse.MAX_TRAINING_MEANS), replace=False))
    codes, scales = means.codes[chosen], _finite(means.scales[chosen])
    groups = train_groups(codes, scales, group_count(means.rows))
    centres = coarse.train_centres(_floats(means, chosen) - groups[nearest_groups(codes, scales, groups)])
    group = nearest_groups(np.asarray(means.codes), _finite(means.scales), groups)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=len(groups))
    numbers, _ = coarse.lay_out(sizes)
    squares = np.zeros(len(groups))
    with (work / "list").open("wb") as listed, (work / "means").open("wb") as written:
        for start in range(0, len(numbers), MEANS_PER_ENCODING):
            some = numbers[start : start + MEANS_PER_ENCODING]
            there = np.flatnonzero(some >= 0)
            rows = order[some[there]]
            rest = np.zeros((len(some), means.dim), np.float32)
            rest[there] = _floats(means, rows) - groups[group[rows]]
            squares += np.bincount(group[rows], np.square(rest[there]).sum(axis=1), len(groups))
            coarse.encode(rest, centres).tofile(listed)
            means.codes[rows].tofile(written)
    spreads = np.sqrt(squares / np.maximum(1, sizes * means.dim)).astype(np.float32)
    owner = np.repeat(np.arange(len(means.ids), dtype=np.int32), np.diff(means.offsets))
    return {
        "ids": means.ids, "owner": owner[order], "scales": means.scales[order], "dim": np.array(means.dim),
        "centres": centres, "groups": groups, "spreads": spreads, "sizes": sizes,
    }  # fmt: skip


def _floats(means: Segment, rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(means.codes[rows] * _finite(means.scales[rows])[:, None])


def _finite(scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scales, with zero for vectors that are not finite."""
    return np.nan_to_num(scales, nan=0, posinf=0, neginf=0)


def write_leading(segments: Sequence[Segment], path: Path) -> NDArray[np.float32]:
    """Write the clips' leading columns; returns their basis, which is empty if too many would be needed."""
    step = max(1, sum(segment.rows for segment in segments) // (1 << 16))
    sample = np.nan_to_num(np.concatenate([segment.half[::step] for segment in segments]).astype(np.float64))
    values, vectors = np.linalg.eigh(sample.T @ sample)
    shares = np.cumsum(values[::-1]) / max(float(values.sum()), 1e-12)
    columns = next((n for n in LEADING_COLUMNS if n < len(shares) and shares[n - 1] >= LEADING_SHARE), 0)
    basis = np.ascontiguousarray(vectors[:, ::-1][:, :columns], np.float32)
    with path.open("wb") as file:
        for segment in segments if columns else ():
            rests, changes = [], []
            starts = np.zeros(segment.rows + 1, bool)
            starts[segment.offsets] = True
            for first in range(0, segment.rows, CLIPS_PER_POOLING):
                last = min(first + CLIPS_PER_POOLING, segment.rows)
                clips = np.nan_to_num(segment.half[max(0, first - 1) : last].astype(np.float32))
                if np.square(clips).sum(axis=1).max(initial=0) > MAX_SQUARE:
                    return basis[:, :0]
                lead = clips @ basis
                rest = clips - lead @ basis.T
                before = np.where(starts[first:last, None], 0, rest[np.arange(first, last) - max(0, first - 1) - 1])
                here = slice(first - max(0, first - 1), None)
                rests.append(np.ceil(np.linalg.norm(rest[here], axis=1) / REST_STEP).astype(np.uint8))
                changes.append(np.ceil(np.linalg.norm(rest[here] - before, axis=1) / CHANGE_STEP).astype(np.uint8))
                codes = np.rint(lead[here] * 127).clip(-127, 127).astype(np.int8)
                codes = np.pad(codes, ((0, -len(codes) % BLOCK_CLIPS), (0, 0)))
                codes.reshape(-1, BLOCK_CLIPS, columns // 2, 2).transpose(0, 2, 1, 3).tofile(file)
            for array in (*rests, *changes):
                array.tofile(file)
    return basis


def read_leading(
    raw: NDArray[np.uint8], basis: NDArray[np.float32], covers: Sequence[str], rows: dict[str, int]
) -> dict[str, LeadingColumns]:
    """The leading columns of each segment, in the bytes of their file."""
    found, at, columns = {}, 0, basis.shape[1]
    for name in covers:
        blocks, count = -(-rows[name] // BLOCK_CLIPS), rows[name]
        cuts = np.cumsum([at, blocks * BLOCK_CLIPS * columns, count, count]).tolist()
        lead, rest, change = (raw[a:b] for a, b in pairwise(cuts))
        shaped = lead.view(np.int8).reshape(blocks, columns // 2, BLOCK_CLIPS, 2)
        found[name], at = LeadingColumns(basis, shaped, rest, change), cuts[-1]
    return found


def _read(folder: Path, header: dict[str, Any], rows: dict[str, int]) -> Plan:
    opened = [_read_proven(folder / name) for name in _files(header)]
    (raw, means_map), (blocks, list_map), (packed, _), *lead = opened
    with np.load(io.BytesIO(packed.data)) as rest:
        ids, owner, scales, dim = (rest[key] for key in ("ids", "owner", "scales", "dim"))
        centres, groups, spreads, sizes = (rest[key] for key in ("centres", "groups", "spreads", "sizes"))
        basis = rest["basis"]
    codes = raw[: len(scales) * int(dim)].view(np.int8).reshape(len(scales), int(dim))
    means = SceneMeans(header["means"], ids, owner, codes, scales, means_map)
    shaped = blocks.reshape(-1, len(centres) // 2, coarse.VECTORS_PER_BLOCK)
    numbers, edges = coarse.lay_out(sizes)
    listed = CoarseList(centres, groups, spreads, edges, shaped, numbers, len(scales), list_map)
    covers = tuple(header["covers"])
    leading = read_leading(lead[0][0], basis, covers, rows) if lead else {}
    return Plan(folder, covers, means, listed, Depths(**header["depths"]), leading, lead[0][1] if lead else None)


def _read_proven(path: Path) -> tuple[NDArray[np.uint8], mmap.mmap | None]:
    """The bytes of a file, read or mapped, after comparing their hash with its name; ValueError if it differs."""
    raw, mapped = read_or_map(path)
    mark = path.with_name(f".{path.name}{CHECKED_SUFFIX}")
    if mapped is not None and _is_marked(path, mark):
        return raw, mapped
    if hashlib.blake2b(raw.data, digest_size=16).hexdigest() != path.stem:
        raise ValueError
    if mapped is not None:
        with suppress(OSError):  # a folder that cannot be written: read again the next time
            mark.touch()
    return raw, mapped


def _is_marked(path: Path, mark: Path) -> bool:
    """Whether a large file was recently checked, after it was written."""
    try:
        checked = mark.stat().st_mtime
    except OSError:
        return False
    return path.stat().st_ctime <= checked and 0 <= time.time() - checked < CHECK_SECONDS


def _write(folder: Path, data: bytes, suffix: str) -> str:
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + suffix
    write_bytes(folder / name, data)
    return name


def _move(path: Path, folder: Path, suffix: str) -> str:
    with path.open("rb+") as file:
        flush_file(file.fileno())
    name = f"{checksum(path)}{suffix}"
    path.replace(folder / name)
    return name


def _sweep(folder: Path, keep: set[str]) -> None:
    """Delete the files of earlier plans; a process that has them open can still use them."""
    for path in folder.iterdir():
        name = path.name.removesuffix(CHECKED_SUFFIX).removeprefix(".")
        if Path(name).suffix in {".codes", ".list", ".npz", ".lead", ".pq"} and name not in keep:
            try:
                path.unlink()
            except OSError:  # in use, on a system that minds; the next build tries again
                continue
