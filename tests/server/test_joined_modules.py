from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.server.page import STATIC_FOLDER, join_modules


def write(folder: Path, **modules: str) -> Path:
    """Write modules; returns the path of that called ``entry``."""
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "entry.js"


def test_each_module_runs_once_after_what_it_imports(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import * as two from "./two.js";\nimport { a, b } from "./one.js";\nexport { a, two };\n',
        one="export const a = 1;\nconst hidden = 2;\nexport function b() {\n  return hidden;\n}\n",
        two='import { a } from "./one.js";\nexport const c = a + 9;\n',
    )
    assert join_modules(entry) == (
        "const $one_js = (() => {\nconst a = 1;\nconst hidden = 2;\nfunction b() {\n  return hidden;\n}\n\n"
        "return { a, b };\n})();\n\n"
        "const $two_js = (() => {\nconst { a } = $one_js;\nconst c = a + 9;\n\nreturn { c };\n})();\n\n"
        "const two = $two_js;\nconst { a, b } = $one_js;\nexport { a, two };\n"
    )


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    entry = write(tmp_path, entry='import { a } from "./one.js";\n', one='import { b } from "./entry.js";\n')
    with pytest.raises(ValueError, match=r"entry\.js → one\.js → entry\.js"):
        join_modules(entry)


@pytest.mark.parametrize("line", [
    'import one from "./one.js";', 'import "./one.js";', 'export * from "./one.js";', "export let a = 1;",
    "export default 1;", "export { a };", 'import { a as b } from "./one.js";',
])  # fmt: skip
def test_what_is_not_understood_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"two\.js: .* cannot be joined"):
        join_modules(write(tmp_path, entry='import { a } from "./two.js";\n', one="", two=f"{line}\n"))


def test_the_page_needs_no_other_module() -> None:
    script = join_modules(STATIC_FOLDER / "js" / "app.js")
    assert script.count("const $") == len(list((STATIC_FOLDER / "js").glob("*.js"))) - 1
