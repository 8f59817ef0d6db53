"""What a release consists of: one version, a changelog, a wheel that works in an empty environment, workflows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import momentseek
from momentseek.core.native.kernels import kernels

ROOT = Path(__file__).parent.parent
PACKED = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md", "src")


def load(path: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text())


def test_one_version_everywhere() -> None:
    versions = re.findall(r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = load("CITATION.cff")
    assert versions[0] == (momentseek.__version__, str(cited["date-released"]))
    assert cited["version"] == momentseek.__version__
    assert cited["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]


def test_a_version_of_the_changelog_is_a_page() -> None:
    versions = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert all(version.count("\n") < 60 for version in versions)
    titles = {title for version in versions for title in re.findall(r"^### (.*)$", version, re.MULTILINE)}
    assert titles <= {"Added", "Changed", "Fixed", "Removed", "Security"}


def test_classifiers_workflows_and_the_support_table_name_the_same_pythons() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = {text.rpartition(" ")[2] for text in project["classifiers"] if "Python :: 3." in text}
    table = re.findall(r"^\| (3\.\d+) \|", (ROOT / "docs/installing.md").read_text(), re.MULTILINE)
    assert classified == set(table)
    assert classified == set(load(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"])
    assert classified == set(load(".github/workflows/release.yml")["jobs"]["try"]["strategy"]["matrix"]["python"])
    assert project["requires-python"] == f">={min(classified)}"


def test_the_release_workflow_publishes_without_a_password() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = load(".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert set(jobs["publish"]["needs"]) == {"sdist", "wheels", "try", "image"}
    assert "secrets." not in text
    assert "mike deploy" in text
    systems = {name.partition("-")[0] for name in jobs["wheels"]["strategy"]["matrix"]["os"]}
    assert systems == {"ubuntu", "macos", "windows"}


def run(*command: object, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more
    )


@pytest.fixture(scope="module")
def wheel(once: Callable[..., Path]) -> Path:
    """The wheel, built from a copy of what an sdist holds."""

    def make(folder: Path) -> None:
        for name in PACKED:
            source = ROOT / name
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / name, ignore=without) if source.is_dir() else shutil.copy(source, folder)
        pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", ".")
        built = run(*pip, cwd=folder)
        assert built.returncode == 0, built.stderr

    (path,) = (once("wheel", make) / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment in which the wheel was installed.

    Where no package index answers, what the wheel depends on is taken from the environment of the tests.
    """
    folder = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder).check_returncode()
    python = folder / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check")
    done = run(*pip, "-c", ROOT / "constraints.txt", "--retries", 1, "--timeout", 20, wheel, cwd=folder)
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        run(*pip, "--no-deps", wheel, cwd=folder).check_returncode()
        share_packages(folder)
    else:
        assert done.returncode == 0, done.stderr
    return folder / "bin"


def share_packages(environment: Path) -> None:
    """Let an environment import, after its own packages, those that the tests run with."""
    paths = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (place,) = environment.glob("lib/python*/site-packages")
    (place / "shared.pth").write_text("\n".join(sorted(paths)))


def test_the_wheel_has_everything(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "src/momentseek"
    kept = {
        str(path.relative_to(package.parent))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("kernels-")
    }
    assert kept - names == set()
    compiled = [name for name in names if re.search(r"native/kernels-[0-9a-f]+\.(so|dylib|dll)$", name)]
    assert len(compiled) == (kernels() is not None)
    assert not any(name.startswith(("tests", "tools", "docs")) for name in names)
    assert wheel.name.startswith(f"momentseek-{momentseek.__version__}-py3-none-")


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "momentseek", "--version", cwd=tmp_path).stdout == f"momentseek {momentseek.__version__}\n"
    example = ROOT / "examples/figure-2"
    evaluated = run(
        installed / "momentseek", "evaluate", example / "predictions.json", "--truth", example / "truth.json",
        "-m", "NDCG@3[IoU>=0.3]", cwd=tmp_path,
    )  # fmt: skip
    assert "NDCG@3[IoU>=0.3]  0.8821\n" in evaluated.stdout, evaluated.stderr
    asked = "import momentseek.core.native.kernels as k; print(k.__file__, k.kernels() is not None)"
    where, compiled = run(installed / "python", "-c", asked, cwd=tmp_path).stdout.split()
    assert Path(where).is_relative_to(installed.parent)
    assert compiled == str(kernels() is not None)
    refused = run(installed / "momentseek", "add", tmp_path, cwd=tmp_path)
    if not (next(installed.parent.glob("lib/python*/site-packages")) / "shared.pth").exists():
        assert (refused.returncode, "pip install 'momentseek[search]'" in refused.stderr) == (2, True), refused.stderr


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(installed: Path, sample: Path, tmp_path: Path) -> None:
    """With the packages of the extras from the environment of the tests, and films that were added before."""
    share_packages(installed.parent)
    shutil.copytree(sample / "library", tmp_path / "demo/library")
    (tmp_path / "demo/films").symlink_to(sample / "films")
    shown = run(installed / "momentseek", "demo", "--no-words", "--into", "demo", cwd=tmp_path)
    assert "The right scene is first for" in shown.stdout, shown.stderr
