"""Check the style of docstrings and messages by proselint, as it checks the documents: python docs/docstring_prose.py

Messages are the sentences that exceptions and `say` are called with. Each finding is a line; the exit status is 1 where there is one.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__
from proselint.config import load_from
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
SAYING = "harness launch models results tasks".split()  # folders whose messages people read
FOLDERS = [*SAYING, *"benchmarks docs examples tests".split()]
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CODE = re.compile(r"`[^`]*`|^ {4}.*$", re.MULTILINE)


def texts(source: str, messages: bool) -> Iterator[tuple[int, str]]:
    """(line, text) of every docstring, and of every message where they are asked for."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, _DOCUMENTED):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text
        elif messages and isinstance(node, ast.Call) and _called(node.func).endswith(("Error", "say")):
            for each in node.args:
                text = _literal(each)
                if " " in text:
                    yield each.lineno, text
        todo += ast.iter_child_nodes(node) if messages else getattr(node, "body", ())


def _called(function: ast.AST) -> str:
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def _literal(node: ast.AST) -> str:
    """A string's text; values in it are an X."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_literal(each) or "X" for each in node.values) if isinstance(node, ast.JoinedStr) else ""


def main() -> int:
    CheckRegistry().register_many(__register__)
    config = load_from(ROOT / "docs" / "prose.json")
    parts, starts, at = [], [], 1
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        messages = path.relative_to(ROOT).parts[0] in SAYING
        for line, text in texts(path.read_text(encoding="utf-8"), messages):
            starts.append((at, f"{path.relative_to(ROOT)}:{line}"))
            parts.append(CODE.sub("code", text))
            at += parts[-1].count("\n") + 2
    found = LintFile("docstrings", "\n\n".join(parts)).lint(config)
    for each in found:
        row = each.pos[0]
        print(
            f"{max(start for start in starts if start[0] <= row)[1]}: {each.check_result.check_path}: {each.check_result.message}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
