"""The words that better ones have replaced are gone, from names and from documents."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "decisions"

# Names of modules, classes, functions and variables.
GONE = (
    "Access", "DirectAccess", "Desk", "Draft", "GatewayAccess", "Journal", "Kept", "Lineage", "Memory", "Needs",
    "Places", "Reach", "SealedCodec", "Shelf", "ThreadEntry", "Unserved", "adopt", "desk", "enter_namespace",
    "in_the_way", "lasting", "left_in", "let_go", "look_at_thread", "looking", "onlooker", "outliving",
    "roster", "settle_epoch", "siege", "take_inventory", "unless_condition_failed", "vouched", "weather",
)  # fmt: skip
GONE_MODULES = (
    "access.py", "accounts.py", "desk.py", "draft.py", "extents.py", "journal.py", "kept.py", "lane.py",
    "ledger.py", "lineage.py", "looking.py", "memory_cache.py", "notes.py", "places.py", "reach.py",
    "sealed.py", "siege.py", "survey.py", "unserved.py", "verdict.py", "weather.py",
)  # fmt: skip
# Variables and fields, in the packages whose word they were.
GONE_THERE = (
    ("view", "lane"), ("view", "record"), ("view", "group"), ("view", "groups"), ("config", "place"),
    ("config", "places"), ("migrate", "place"), ("migrate", "places"), ("migrate", "open_place"),
    ("migrate", "knows_places"), ("cli", "desk"), ("_operations", "draft"), ("_operations", "lane"),
)  # fmt: skip
# In documents; what was decided then keeps the words of then.
GONE_WORDS = ("hurt engine", "onlooker", "roster", "rooms", "siege", "weather", "vouch")


@cache
def _sources() -> tuple[Path, ...]:
    # Other tests have names of CloudFormation's and of LangGraph's, too.
    tests = [ROOT / "tests" / each for each in ("chaos", "model", "operations", "simulation", "support")]
    return tuple(path for folder in (ROOT / "langgraph", *tests) for path in folder.rglob("*.py"))


@cache
def _names(path: Path) -> frozenset[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return frozenset(token.string for token in tokens if token.type == tokenize.NAME)


@pytest.mark.parametrize("name", GONE)
def test_a_name_that_was_replaced_is_gone(name: str) -> None:
    found = [str(path.relative_to(ROOT)) for path in _sources() if name in _names(path)]
    assert not found


@pytest.mark.parametrize(("package", "name"), GONE_THERE)
def test_a_name_that_was_replaced_in_a_package_is_gone_there(package: str, name: str) -> None:
    folder = ROOT / "langgraph" / "checkpoint" / "dynamodb" / package
    assert folder.is_dir()
    assert [path.name for path in folder.rglob("*.py") if name in _names(path)] == []


def test_a_module_that_was_renamed_is_gone() -> None:
    package = ROOT / "langgraph"
    assert not [str(path) for path in package.rglob("*.py") if path.name in GONE_MODULES]


@pytest.mark.parametrize("word", GONE_WORDS)
def test_documents_do_without_a_word_that_was_replaced(word: str) -> None:
    documents = [path for path in (ROOT / "docs").rglob("*.md") if DECISIONS not in path.parents]
    found = [
        f"{path.name}: {line.strip()[:80]}"
        for path in (*documents, ROOT / "README.md", ROOT / "CONTRIBUTING.md")
        for line in path.read_text().splitlines()
        if re.search(rf"\b{word}", line)
    ]
    assert not found


def test_docstrings_do_not_begin_with_what() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "langgraph").rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if '"""What ' in line
    ]
    assert not found
