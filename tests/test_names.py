"""Names say one thing each."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "langgraph"


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def _shared_names(sources: Iterable[Path]) -> Mapping[str, list[str]]:
    """Return the class names that several modules define, with the modules. A private class is its module's own."""
    found: dict[str, list[str]] = {}
    for path in sources:
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                found.setdefault(each.name, []).append(path.name)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_no_two_classes_share_a_name() -> None:
    assert _shared_names(_sources()) == {}


def test_a_shared_name_is_noticed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Budget: ...\nclass _Run: ...\n")
    assert _shared_names(sorted(tmp_path.iterdir())) == {"Budget": ["a.py", "b.py"]}


def test_docstrings_do_not_begin_with_what() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if '"""What ' in line
    ]
    assert not found
