import os
import subprocess
import sys
from pathlib import Path

import click

import momentseek as package
from momentseek.cli import ALIASES, SECTIONS, cli
from momentseek.cli.groups import option_names


def test_every_command_is_listed_by_topic_and_has_help(momentseek):
    top = momentseek("--help")
    assert top.returncode == 0
    text = " ".join(top.stdout.split())
    for title, commands in SECTIONS.items():
        assert f"\n{title}:\n" in top.stdout
        for name, (_, about) in commands.items():
            assert f"{name} {about}" in text
            page = momentseek(name, "--help")
            assert page.returncode == 0, page.stderr
            assert page.stdout.startswith(f"Usage: momentseek {name}")


def test_former_names_of_commands_still_work(momentseek):
    assert momentseek("read", "--help").stdout == momentseek("ocr", "run", "--help").stdout
    assert momentseek("text", "--help").stdout == momentseek("ocr", "show", "--help").stdout
    for name in ALIASES:
        assert f"  {name} " not in momentseek("--help").stdout


def test_former_names_of_commands_print_the_current_ones(momentseek):
    for former, present in ALIASES.items():
        shown = momentseek(former, "--help").stderr
        assert shown.startswith(f"momentseek: `{former}` is now `{' '.join(present)}`;")
        assert shown.count("\n") == 1


def test_every_option_of_the_first_command_line_still_works():
    """former_options.txt has the commands and options before they were grouped."""
    context = click.Context(cli)
    for line in (Path(__file__).parent / "former_options.txt").read_text().splitlines():
        name, _, flags = line.partition(":")
        words = name.split()
        command = cli
        for word in (*ALIASES.get(words[0], words[:1]), *words[1:]):
            command = command.get_command(context, word)
        command = command.commands["show"] if name == "transcript" else command
        options = [option for option in command.params if isinstance(option, click.Option)]
        known = {flag for option in options for flag in (*option_names(option), *option.secondary_opts)}
        assert set(flags.split()) - known == set(), name


def test_version(momentseek):
    assert momentseek("--version").stdout == f"momentseek {package.__version__}\n"


def test_mistyped_command_gets_a_suggestion(momentseek):
    result = momentseek("evalute")
    assert result.returncode == 2
    assert "Did you mean 'evaluate'?" in result.stderr


def test_help_and_version_import_no_numpy():
    for flag in ("--help", "--version"):
        loaded = modules_after(f"from momentseek.cli import cli; cli.main([{flag!r}], standalone_mode=False)")
        assert loaded & {"numpy", "orjson"} == set()


def test_search_imports_no_heavy_package():
    heavy = {"torch", "av", "PIL", "matplotlib", "pyarrow", "h5py", "fastapi", "ray", "onnxruntime", "fsspec", "httpx"}
    assert modules_after("import momentseek.cli.search") & heavy == set()


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh process has imported after running some code."""
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


def test_failing_process_exits_with_an_error(root):
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


def test_closed_pipe_is_no_error(root):
    command = f"{sys.executable} -m momentseek measures | head -1"
    result = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=False)
    assert result.stderr == ""


def test_unread_output_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "momentseek", "formats"], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")
