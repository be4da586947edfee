"""Names say one thing each: the terms of docs/glossary.md are in the code, and no two classes share a name."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "langgraph"
GLOSSARY = ROOT / "docs" / "glossary.md"


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def _names(path: Path) -> frozenset[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return frozenset(token.string for token in tokens if token.type == tokenize.NAME)


def _terms() -> list[str]:
    rows = re.findall(r"^\| (`[^|]*`) \|", GLOSSARY.read_text(), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def _shared_names(sources: Iterable[Path]) -> Mapping[str, list[str]]:
    """Return the class names that several modules define, with the modules. A private class is its module's own."""
    found: dict[str, list[str]] = {}
    for path in sources:
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                found.setdefault(each.name, []).append(path.name)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


@pytest.mark.parametrize("name", _terms())
def test_a_name_of_the_glossary_is_in_the_package(name: str) -> None:
    assert any(name in _names(path) for path in _sources())


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
