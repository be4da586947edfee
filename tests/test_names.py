"""Names say one thing each."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "langgraph"
MODULES_MAX = 153


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def test_no_two_classes_share_a_name_or_differ_by_an_underscore() -> None:
    found: dict[str, list[str]] = {}
    for path in _sources():
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef):
                found.setdefault(each.name.lstrip("_"), []).append(path.name)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_at_most_two_rooms_have_a_module_of_the_same_name() -> None:
    counts = Counter(path.stem for path in _sources())
    assert counts.pop("__init__") > 1
    assert [name for name, count in counts.items() if count > 2] == []


def test_one_person_can_walk_through_the_modules() -> None:
    """A small module that one other imports is part of that one."""
    assert len(_sources()) <= MODULES_MAX


def test_docstrings_do_not_begin_with_what() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if '"""What ' in line
    ]
    assert not found
