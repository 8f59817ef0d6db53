import os
import subprocess
import sys

import momentseek as package
from momentseek.cli import VERBS


def test_help_lists_every_verb_and_every_verb_helps(momentseek):
    top = momentseek("--help")
    assert top.returncode == 0
    for verb, about in VERBS.items():
        assert f"{verb} " in top.stdout
        assert about in top.stdout
        page = momentseek(verb, "--help")
        assert page.returncode == 0, page.stderr
        assert page.stdout.startswith(f"Usage: momentseek {verb}")


def test_version(momentseek):
    assert momentseek("--version").stdout == f"momentseek {package.__version__}\n"


def test_a_mistyped_verb_gets_a_suggestion(momentseek):
    result = momentseek("evalute")
    assert result.returncode == 2
    assert "Did you mean 'evaluate'?" in result.stderr


def test_help_and_version_import_next_to_nothing_of_ours_and_no_numpy():
    for flag in ("--help", "--version"):
        loaded = modules_after(f"from momentseek.cli import cli; cli.main([{flag!r}], standalone_mode=False)")
        assert loaded & {"numpy", "orjson", "difflib", "json", "dataclasses", "subprocess"} == set()
        assert len([name for name in loaded if name.startswith("momentseek")]) <= 8


def test_the_help_of_a_command_does_not_wait_for_numpy():
    assert "numpy" not in modules_after("import momentseek.cli.evaluate, momentseek.cli.search, momentseek.cli.serve")


def test_a_search_waits_for_nothing_that_only_changes_a_library():
    loaded = modules_after("import momentseek.api.library, momentseek.search.engine, momentseek.search.display")
    unused = (
        *("formats", "measures", "media.cut", "media.decode", "media.probe", "media.sandbox", "chat", "trained"),
        *("library.ingest", "library.verify", "library.files", "library.scan.plan", "moments.run"),
        *("transcription", "captioning", "lettering.line", "search.rerank", "search.example", "search.streams.trained"),
        *("cluster", "storage", "search.shards", "library.replicas.", "server"),
    )
    assert {name for name in loaded for room in unused if name.startswith(f"momentseek.{room}")} == set()
    assert (
        loaded
        & {"subprocess", "importlib.metadata", "http.client", "ssl", "logging", "faiss", "ray", "fsspec", "obstore"}
        == set()
    )
    assert len([name for name in loaded if name.startswith("momentseek")]) <= 95  # 275 when each room loaded whole


def modules_after(code: str) -> set[str]:
    """What a fresh process has imported after it has run some code."""
    code = f"import sys\n{code}\nprint('\\0', *sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split("\0")[1].split())


def test_searching_and_evaluating_never_import_torch_scipy_or_pandas(root):
    code = (
        "import sys, momentseek as ms\n"
        "ms.evaluate('examples/kitchen/careful.jsonl', 'examples/kitchen/truth.jsonl')\n"
        "print([m for m in ('torch', 'scipy', 'pandas', 'matplotlib', 'pyarrow') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_process_ends_at_once_but_does_what_others_want_done_at_the_end(root):
    code = (
        "import atexit, threading, time, sys; from momentseek.cli import run\n"
        "atexit.register(print, 'not reached')\n"  # asked for before the command runs, so that it would come after
        "class Late:\n    def __del__(self): print('torn down')\n"
        "late = Late()\n"
        "def main(): atexit.register(print, 'at the end'); threading.Thread(target=wait).start(); print('done')\n"
        "def wait(): time.sleep(0.1); print('waited')\n"
        "import momentseek.cli as cli; cli.cli.main = lambda **_: main()\n"
        "run()"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("done\nwaited\nat the end\n", "", 0)


def test_a_failing_process_says_so(root):
    result = subprocess.run([sys.executable, "-m", "momentseek", "evalute"], cwd=root, capture_output=True, check=False)
    assert result.returncode == 2


def test_completion_scripts_and_completion_itself(momentseek):
    for shell in ("bash", "zsh", "fish"):
        assert "_MOMENTSEEK_COMPLETE" in momentseek("completion", shell).stdout
    words = os.environ | {"_MOMENTSEEK_COMPLETE": "bash_complete", "COMP_WORDS": "momentseek eval", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'momentseek'; from momentseek.cli import main; main()"],
        env=words,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.strip() == "plain,evaluate"


def test_measures_are_listed(momentseek):
    result = momentseek("measures")
    assert "NDCG@K[IoU>=m]" in result.stdout
    assert "gain = linear | exp2" in result.stdout
    assert "tvr-ranking" in result.stdout


def test_a_closed_pipe_is_no_error(root):
    command = f"{sys.executable} -m momentseek measures | head -1"
    result = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=False)
    assert result.stderr == ""
