"""Fit what CLIP's image vectors are asked with where its text tower is missing, and write ``clip_text.npz``.

    python tools/fit_clip_text.py CLIP_TEXT_FOLDER IMAGES.npz... [--wordnet FOLDER] [--check]

CLIP_TEXT_FOLDER has text vectors that others published (``SOURCES``, with their SHA-256); the words of Visual Genome
are those that ``momentseek models get clip-words`` fetches. None of these vectors is in the file that is written, only
two linear maps fitted to them by ridge regression, and means. Each IMAGES.npz has unscaled image vectors of the tower,
an array per video. ``--check`` prints how well the maps do on words that they were not fitted to. FOLDER has
WordNet 3.0's data files, of which ``english.txt.xz`` is made.
"""

from __future__ import annotations

import argparse
import io
import lzma
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from momentseek.core.atomic import write_bytes
from momentseek.recognition.encoders.clip_text import (
    FITTED_FILE,
    TABLE,
    bridge_features,
    centre,
    read_word_vectors,
)
from momentseek.recognition.encoders.english import ENGLISH_FILE, split_words
from momentseek.recognition.encoders.minilm import load_minilm
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.things import unit_vectors
from momentseek.recognition.weights.files import sha256, verify

SOURCES = {
    "ade20k_b16.npz": "a0460a83fb1925500580ca1116e53fbe943fb42734e909c8e26a581b5fb4c7a9",
    "cascade_context59_b16.npz": "b6d959ffd8da5af5252b3a37d19cfcb45b1bfe5d55d95f201bb813249fabbb9c",
    "coco_stuff_b16.npz": "d78a2ee2c4c99b0326231e979d677f57518583a06affef1de73c715d3f049eac",
    "declip_panoptic_b16.npz": "79d2dd9e92bcbe97d4011ce0ff92c5555d4d59c85a276aa3efa2a52c15073476",
    "detic_lvis_b32.npz": "108967c0f7cf72a4addbe1b4014d3483c84364d7d5269464d1dc9424c55940b5",
    "detic_o365_b32.npz": "b5973dd1496a4c7d377a60a5933b933bf9c8d252acdd5a6a4b2400213ea6cd97",
    "detic_oid_b32.npz": "98ebd0026a586f5f9a90e6e64835fd6720155017040e4e099e93b184d3be22fc",
    "ego4d_nouns_b32.npz": "35d3921f48c577f18d474253cb10df025b12f9618550920f6c810099c03ddd4f",
    "ego4d_verbs_b32.npz": "141f82a77027703e826f3a9f467a125827ede7c895a96030f89ec2760a4a6fd3",
    "pomp_lvis_b16.npz": "78e642060915da8c48d17a82b2d249ffde7811856952b9deefbc0b03ec8b7822",
    "pomp_o365_b16.npz": "057119c0c3ca4b80141d08cd8cccb862a85226fe0d276d4f379066fa9a5c6c4b",
    "semivl_cityscapes_b16.npz": "e62a621dc0f63303fbbca70a1187ca72642f249b4ee257893d17a81e6c6cbcde",
    "semivl_voc12_b16.npz": "792a473434a03933d828875be6e308b5e2641ff0717cced7bc58b4b495824a53",
    "youcook2_words_b16.npz": "58400410bd4076cc4b432d9a17465762f193828e01c9fc185dceda41ba558145",
}
"""Files of text vectors (texts, vectors), and the SHA-256 of each; the model is the end of the name."""
MAP_RIDGE, BRIDGE_RIDGE = 1.0, 0.5
"""How much the maps are held back: the smaller, the closer to the words that they are fitted to."""
FLATTENING, MIN_SPREAD = 0.1, 0.01
"""Power by which the spread of a direction of the text space is taken back, and the least spread, in means of all."""
FOLDS = 5

Words = list[tuple[str, Vectors]]


def normalise(name: str) -> str:
    """A name as queries write it.

    >>> normalise("Bow_(weapon)"), normalise("tennis-racket")
    ('bow', 'tennis racket')
    """
    return " ".join(split_words(re.sub(r"\(.*?\)", "", name).replace("_", " ")))


def read_source(folder: Path, name: str) -> Words:
    """The texts of a file with their vectors, less the mean of the file."""
    path = folder / name
    if sha256(path) != SOURCES[name]:
        raise SystemExit(f"{path}: is not the file that was used (its SHA-256 differs)")
    with np.load(path) as stored:
        texts, vectors = [str(text) for text in stored["texts"]], stored["vectors"].astype(np.float32)
    own = [row for row, text in enumerate(texts) if normalise(text) and text[0] != "["]  # [PAD] is a tokenizer's
    return list(zip([normalise(texts[row]) for row in own], centre(vectors[own]), strict=True))


def ridge(given: Vectors, wanted: Vectors, strength: float) -> Vectors:
    """The linear map with the least squared error and small numbers."""
    return np.linalg.solve(given.T @ given + strength * np.eye(given.shape[1]), given.T @ wanted).astype(np.float32)


def average(words: Sequence[Words]) -> dict[str, Vectors]:
    """Each word's mean direction over several files."""
    found: dict[str, list[Vectors]] = defaultdict(list)
    for word, vector in (pair for some in words for pair in some):
        found[word].append(vector)
    return {word: unit_vectors(np.mean(vectors, axis=0)[None])[0] for word, vectors in found.items()}


def near_rotation(given: Vectors, wanted: Vectors, strength: float) -> Vectors:
    """As ``ridge``, but held back towards the best rotation instead of towards 0."""
    left, sizes, right = np.linalg.svd(given.T @ wanted)
    rotation = (left @ right) * (sizes.sum() / (given**2).sum())
    return np.asarray(rotation + ridge(given, wanted - given @ rotation, strength), np.float32)


def flatten(vectors: Vectors) -> Vectors:
    """The map that makes directions in which many vectors differ count a little less."""
    spread = np.cov(vectors.T)
    sizes, axes = np.linalg.eigh(spread + MIN_SPREAD * np.trace(spread) / len(spread) * np.eye(len(spread)))
    return np.asarray((axes * sizes**-FLATTENING) @ axes.T, np.float32)


def held_out(name: str, words: Sequence[str], given: Vectors, wanted: Vectors, solve: Callable[..., Vectors]) -> None:
    """Print how near mapped words come to the true ones, by a map of words that end otherwise."""
    fold = np.array([zlib.crc32(word.split()[-1].encode()) % FOLDS for word in words])
    own = fold == 0
    mapped = unit_vectors(given[own] @ solve(given[~own], wanted[~own]))
    scores = mapped @ wanted.T
    true = scores[np.arange(len(scores)), np.flatnonzero(own)]
    better = (scores > true[:, None] + 1e-6).sum(axis=1)
    print(
        f"{name}: {own.sum():,} held-out words, mean cosine {true.mean():.3f}, nearest to itself among {len(words):,} "
        f"{(better == 0).mean():.3f}, among the first ten {(better < 10).mean():.3f}"
    )


def fit(folder: Path, images: Sequence[Path], *, check: bool = False) -> dict[str, Vectors]:
    """The arrays of the file."""
    b16 = [read_source(folder, name) for name in SOURCES if name.endswith("b16.npz")]
    b32 = [read_source(folder, name) for name in SOURCES if name.endswith("b32.npz")]
    fetched = read_word_vectors(verify(TABLE))
    table = dict(zip(fetched, centre(np.array(list(fetched.values()))), strict=True))
    true = average(b16)
    shared = [word for word in true if word in table]
    given, wanted = (np.array([vectors[word] for word in shared]) for vectors in (table, true))
    solve_map = partial(near_rotation, strength=MAP_RIDGE)
    to_b16 = solve_map(given, wanted)

    known = {word: unit_vectors((vector @ to_b16)[None])[0] for word, vector in (average(b32) | table).items()}
    known |= true
    features, mean = bridge_features(load_minilm(), list(known))
    targets = np.array(list(known.values()))
    solve_bridge = partial(ridge, strength=BRIDGE_RIDGE)
    if check:
        held_out("map", shared, given, wanted, solve_map)
        held_out("bridge", list(known), features, targets, solve_bridge)
    pictures = np.concatenate([vectors for path in images for vectors in np.load(path).values()])
    flat = flatten(unit_vectors(np.array(list(table.values())) @ to_b16))
    return {
        "map": (to_b16 @ flat).astype(np.float16),
        "bridge": (solve_bridge(features, targets) @ flat).astype(np.float16),
        "bridge_mean": mean,
        "image_mean": unit_vectors(pictures.astype(np.float32)).mean(axis=0),
    }


def english_words(wordnet: Path) -> list[str]:
    """The single words of WordNet's files, those that are always written with a capital with one."""
    found: set[str] = set()
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (wordnet / f"data.{kind}").read_text("ascii").splitlines():
            if not line.startswith(" "):
                fields = line.split()
                found |= {re.sub(r"\(.*", "", word) for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]}
        exceptions = (wordnet / f"{kind}.exc").read_text("ascii").split()
        found |= set(exceptions)
    found = {word for word in found if word.isalpha() and len(word) > 1}
    return sorted(word for word in found if word.islower() or word.lower() not in found)


def main() -> None:
    """Fit the maps and write them into the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("images", type=Path, nargs="+")
    parser.add_argument("--wordnet", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.wordnet is not None:
        words = "\n".join(english_words(given.wordnet))
        write_bytes(ENGLISH_FILE, lzma.compress(words.encode("ascii"), preset=9))
    write_npz(FITTED_FILE, fit(given.folder, given.images, check=given.check))
    print(f"{FITTED_FILE.name}: {FITTED_FILE.stat().st_size:,} bytes, SHA-256 {sha256(FITTED_FILE)}")


def write_npz(path: Path, arrays: dict[str, Vectors]) -> None:
    """Write arrays so that the same arrays give the same bytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in sorted(arrays.items()):
            data = io.BytesIO()
            np.save(data, array)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)
    write_bytes(path, held.getvalue())


if __name__ == "__main__":
    main()
