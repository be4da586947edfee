"""The messages of errors begin and end alike: in lower case but for names, and without a full stop."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "langgraph"
# Words that are written so wherever they stand.
NAMES = ("Accept", "Content-", "DynamoDB", "JSON", "LangGraph", "SQLite")


def _text(node: ast.expr) -> str:
    """Return what an expression says, as far as it is written down; `{}` stands for a value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    return "{}"


def _messages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield where each error is raised, and its message."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        said: dict[str, ast.expr] = {}
        for node in sorted(
            (each for each in ast.walk(function) if isinstance(each, ast.stmt)), key=lambda each: each.lineno
        ):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                said[node.targets[0].id] = node.value
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                last = node.exc.args[-1]
                message = said.get(last.id, last) if isinstance(last, ast.Name) else last
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", _text(message)


def test_messages_begin_and_end_alike() -> None:
    messages = [each for path in sorted(PACKAGE.rglob("*.py")) for each in _messages(path)]
    assert len([text for _, text in messages if text != "{}"]) > 300
    odd = [
        f"{where} {text}"
        for where, text in messages
        if (text[:1].isupper() and not text.startswith(NAMES)) or text.endswith((".", "!"))
    ]
    assert odd == []
