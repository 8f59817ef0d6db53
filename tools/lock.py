"""Write requirements.lock: what an installation without torch needs, each file by its SHA-256.

    python tools/lock.py [--index https://pypi.org/simple]

The versions are those of constraints.txt. What is needed is read from the packages installed here (`make test` installs
them) for every platform and Python version that is supported, and the hashes of all wheels from the index. A package
without wheels is locked by its source. Run it after changing constraints.txt; a test compares the two.
"""

from __future__ import annotations

import argparse
import html.parser
import re
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urldefrag

from packaging.requirements import Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, canonicalize_name
from packaging.utils import parse_sdist_filename as parse_sdist
from packaging.utils import parse_wheel_filename as parse_wheel
from packaging.version import Version

ROOT = Path(__file__).parent.parent
EXTRAS = ("parquet", "plots", "offline", "speech", "ocr", "demo", "serve")
"""All that people use but training: torch's builds differ by machine, and its index is another one."""
BUILDING = ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")
"""What building the project itself needs; it is not installed here, so that nobody can ask it."""
PLATFORMS = ({"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
             {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
             {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"})  # fmt: skip
PYTHONS = ("3.11", "3.12", "3.13")
HEADER = """\
# What `momentseek[{extras}]` needs, without torch; written by tools/lock.py.
#   pip install --require-hashes -r requirements.lock
#   pip install --no-deps --no-build-isolation .
"""


def environments(extra: str) -> Iterator[dict[str, str]]:
    for platform in PLATFORMS:
        for python in PYTHONS:
            yield {**platform, "python_version": python, "python_full_version": f"{python}.0", "extra": extra}


def is_needed(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate(e) for extra in ("", *extras) for e in environments(extra))


def closure(wanted: Iterable[Requirement], requires: Mapping[str, list[str]]) -> set[str]:
    """The names of all packages that are needed; the requirements of those that are not installed are taken as none."""
    found: dict[str, set[str]] = {}
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found and requirement.extras <= found[name]:
            continue
        found.setdefault(name, set()).update(requirement.extras)
        for line in requires.get(name, ()):
            below = Requirement(line)
            if is_needed(below, found[name]):
                waiting.append(below)
    return set(found)


def installed() -> dict[str, list[str]]:
    return {canonicalize_name(d.name): d.requires or [] for d in metadata.distributions()}


def pins(path: Path) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def project_requirements(extras: Iterable[str]) -> list[Requirement]:
    """What the project, its extras and its building need; the requirements of its own extras are followed by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *BUILDING]
    waiting, seen = list(extras), set()
    while waiting:
        extra = waiting.pop()
        if extra not in seen:
            seen.add(extra)
            for line in optional[extra]:
                own = Requirement(line)
                waiting += own.extras if own.name == "momentseek" else ()
                lines += [] if own.name == "momentseek" else [line]
    return [Requirement(line) for line in lines]


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def digests(index: str, name: str, version: str) -> list[str]:
    """The SHA-256 of every wheel of a release, or of its source where there is no wheel."""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{name}/", timeout=60) as answer:
        page = _Links()
        page.feed(answer.read().decode())
    wheels, sources = set(), set()
    for link in page.found:
        address, fragment = urldefrag(link)
        file, digest = unquote(address.rsplit("/", 1)[-1]), re.fullmatch("sha256=([0-9a-f]{64})", fragment)
        if digest is None:
            continue
        try:
            if file.endswith(".whl") and parse_wheel(file)[1] == Version(version):
                wheels.add(digest[1])
            elif file.endswith((".tar.gz", ".zip")) and parse_sdist(file)[1] == Version(version):
                sources.add(digest[1])
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
    return sorted(wheels or sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", default="https://pypi.org/simple")
    asked = parser.parse_args()
    versions = pins(ROOT / "constraints.txt")
    names = sorted(closure(project_requirements(EXTRAS), installed()))
    if missing := [name for name in names if name not in versions]:
        raise SystemExit(f"constraints.txt pins no version of {', '.join(missing)}; add one")
    lines = [HEADER.format(extras=",".join(EXTRAS))]
    for name in names:
        found = digests(asked.index, name, versions[name])
        if not found:
            raise SystemExit(f"the index has no file of {name} {versions[name]}")
        hashed = [f"--hash=sha256:{digest}" for digest in found]
        lines.append(" \\\n    ".join([f"{name}=={versions[name]}", *hashed]) + "\n")
    (ROOT / "requirements.lock").write_text("".join(lines))
    print(f"requirements.lock: {len(names)} packages")


if __name__ == "__main__":
    main()
