"""Writes docs/api.md from the docstrings and signatures of what is public.

$ python tools/api_reference.py > docs/api.md
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import momentseek

SECTIONS = {
    "Search": ("Library", "Query", "Results", "Hit"),
    "Measure": ("evaluate", "compare", "diagnose", "Evaluation", "Comparison", "Diagnosis"),
    "Read and write": (
        "read_run",
        "write_run",
        "read_judgements",
        "write_judgements",
        "read_captions",
        "write_captions",
        "read_corpus",
        "convert",
        "Run",
        "Judgements",
        "CaptionTable",
        "Corpus",
        "Moment",
    ),
    "Train and predict": ("train", "predict", "simulate", "baseline"),
    "Errors": ("MomentseekError",),
}
HEAD = """# The Python API

`import momentseek as ms` gives the names below, and nothing else is public. All times are seconds. Results have short
representations, are shown as tables in a notebook, and where they have rows `to_pandas()` and `to_arrow()` give them.
Files may be given wherever runs, judgements or lists of videos are; their formats are recognised
([formats](formats.md)). What is wrong with an input is said by a `MomentseekError`.

```python
import momentseek as ms

truth = ms.read_judgements("examples/kitchen/truth.jsonl")
result = ms.evaluate("examples/kitchen/careful.jsonl", truth, "NDCG@{10,20}[IoU>=0.5]")
print(result.means)
runs = {"ours": "examples/kitchen/careful.jsonl", "theirs": "examples/kitchen/hasty.jsonl"}
print(ms.compare(runs, truth, "NDCG@10[IoU>=0.5]").pairs[0].p)
```

```pycon
>>> with ms.Library.open("films") as library:
...     for hit in library.search("a woman opens the door", k=5):
...         print(hit.name, hit.start, hit.end, hit.level)
```

*This page is written by `python tools/api_reference.py` from the docstrings; a test fails if it is out of date.*
"""


def reference() -> str:
    """The text of docs/api.md."""
    parts = [HEAD]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        parts += [_entry(name, getattr(momentseek, name)) for name in names]
    return "\n".join(parts).rstrip() + "\n"


class _Verbatim(str):
    """An annotation that is printed as it is written in the source."""

    def __repr__(self) -> str:
        return str(self)


def signature_of(thing: Any) -> str:
    """The parameters of a function or class, their types as the source has them.

    >>> signature_of(momentseek.read_corpus)
    '(path: Path) -> Corpus'
    """
    signature = inspect.signature(thing)

    def verbatim(annotation: Any) -> Any:
        return _Verbatim(annotation) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=verbatim(p.annotation)) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=verbatim(signature.return_annotation)))


def members_of(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class and of its bases in this package, in the order of their source."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("momentseek."):
            continue
        for name, member in vars(base).items():
            plain = member.func if hasattr(member, "func") else member
            if name.startswith("_") or name in seen or not (callable(plain) or isinstance(plain, _DESCRIPTORS)):
                continue
            seen.add(name)
            yield name, member


_DESCRIPTORS = (property, classmethod, staticmethod)


def _entry(name: str, thing: Any) -> str:
    lines = [f"### `{name}`\n"]
    if inspect.isclass(thing):
        lines.append(_words(thing))
        if dataclasses.is_dataclass(thing):
            lines.append("Fields: " + ", ".join(f"`{f.name}`" for f in dataclasses.fields(thing)) + ".\n")
        rows = [_member(name, member) for name, member in members_of(thing)]
        lines += ["\n".join(rows) + "\n"] if rows else []
    else:
        lines += [f"```text\nms.{name}{signature_of(thing)}\n```\n", _words(thing)]
    return "\n".join(lines)


def _member(name: str, member: Any) -> str:
    inner = (
        getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", None) or member
    )
    called = "" if inner is not member and not hasattr(member, "__func__") else signature_of(inner)
    called = re.sub(r"^\((self|cls)(, )?", "(", called)
    first = (inspect.getdoc(inner) or "").split("\n\n")[0].replace("\n", " ")
    return f"- `{name}{called}`: {_markdown(first)}"


def _words(thing: Any) -> str:
    """The docstring as Markdown, its examples as code."""
    blocks = []
    for block in (inspect.getdoc(thing) or "").split("\n\n"):
        code = block.lstrip().startswith(">>>")
        blocks.append(f"```pycon\n{block}\n```" if code else _markdown(block))
    return "\n\n".join(blocks) + "\n"


def _markdown(text: str) -> str:
    return text.replace("``", "`")


if __name__ == "__main__":
    print(reference(), end="")
