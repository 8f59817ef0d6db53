"""Print how large the package is and how it is cut: modules, lines, late imports, long functions, crowded calls.

python tools/census.py [SOURCE] [--json]
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

POSITIONAL = 8
"""A call with more positional arguments than this is counted as crowded."""
BY_HAND = {
    "JavaScript bundler": "joined_modules.py",
    "hub client": "hub/download.py",
    "TOML writer": "toml.py",
    "protobuf writer": "protobuf.py",
    "ONNX writer": "onnx_writer.py",
    "ONNX nodes": "export/nodes.py",
    "WordPiece tokenizer": "word_pieces.py",
    "file lock": "library/lock.py",
    "HTTP ranges": "ranges.py",
    "TensorBoard writer": "training/events.py",
    "lazy FastAPI": "lean_fastapi.py",
    "lazy routes": "late_routes.py",
}
"""Files that did by hand what a library does; 0 lines once they are gone."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def late_imports(tree: ast.Module) -> int:
    """Count the import statements inside functions."""
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    inside = (node for function in functions for node in ast.walk(function))
    return len({id(node) for node in inside if isinstance(node, ast.Import | ast.ImportFrom)})


def functions(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Lines, name and whether it is a command, of every function."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
            assert node.end_lineno is not None
            yield node.end_lineno - node.lineno + 1, node.name, "command(" in decorators


def crowded_calls(tree: ast.Module) -> int:
    """Count the calls with more than POSITIONAL positional arguments."""
    return sum(isinstance(node, ast.Call) and len(node.args) > POSITIONAL for node in ast.walk(tree))


def census(source: Path) -> dict[str, object]:
    """Everything this script prints, by what it is called."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    sizes = {path: len(text.splitlines()) for path, text in texts.items()}
    long = [
        (lines, f"{path.relative_to(source)}:{name}", command)
        for path, tree in trees.items()
        for lines, name, command in functions(tree)
    ]
    by_hand = {
        what: sum(size for path, size in sizes.items() if path.as_posix().endswith(f"/{name}"))
        for what, name in BY_HAND.items()
    }
    top = [p for p in source.iterdir() if p.name not in {"__pycache__", "__init__.py", "__main__.py", "py.typed"}]
    return {
        "modules": len(sizes),
        "lines": sum(sizes.values()),
        "median lines per module": statistics.median(sizes.values()),
        "late imports": sum(map(late_imports, trees.values())),
        "entries at the top": len(top),
        "longest function": max((lines, name) for lines, name, _ in long),
        "functions over 100 lines": sum(lines > 100 for lines, _, _ in long),
        "longest command": max((lines, name) for lines, name, command in long if command),
        "commands over 60 lines": sum(lines > 60 for lines, _, command in long if command),
        f"calls with over {POSITIONAL} positional arguments": sum(map(crowded_calls, trees.values())),
        "written by hand, lines": {what: lines for what, lines in by_hand.items() if lines},
        "lines per folder": {
            folder.name: sum(size for path, size in sizes.items() if folder in path.parents)
            for folder in sorted(source.iterdir())
            if folder.is_dir() and folder.name != "__pycache__"
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=Path, default=Path(__file__).parent.parent / "src" / "momentseek")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = census(options.source)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for what, figure in found.items():
            print(f"{what}: {figure}")


if __name__ == "__main__":
    main()
