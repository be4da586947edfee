"""The Python blocks of the documents pass mypy's strict mode, in one run of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from mypy import api

from tests.support.documents import ROOT, blocks

PAGES = [
    path
    for path in (
        str(each.relative_to(ROOT)) for each in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    )
    if blocks((ROOT / path).read_text("utf-8"), "python")
]
# What a block may use without saying where it is from.
GIVEN = {
    "DynamoDBSaver": "from langgraph.checkpoint.dynamodb import DynamoDBSaver",
    "DynamoDBStore": "from langgraph.store.dynamodb import DynamoDBStore",
    "Event": "from langgraph.checkpoint.dynamodb.observe import Event",
    "Any": "from typing import Any",
    "saver": "from langgraph.checkpoint.dynamodb import DynamoDBSaver\nsaver: DynamoDBSaver",
    "graph": "from langgraph.pregel import Pregel\ngraph: Pregel[typing.Any, typing.Any]",
    "other": "from langgraph.store.dynamodb import DynamoDBStore\nother: DynamoDBStore",
    "builder": "from langgraph.graph import StateGraph\nbuilder: StateGraph[typing.Any, typing.Any]",
    "store": "from langgraph.store.dynamodb import DynamoDBStore\nstore: DynamoDBStore",
    "agent": "from langgraph.pregel import Pregel\nagent: Pregel[typing.Any, typing.Any]",
    "inputs": "inputs: dict[str, typing.Any]",
    "namespace": "namespace: tuple[str, ...]",
    "key": "key: str",
    "target": "from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint\ntarget: SaverEndpoint",
    "slow": "def slow(state: typing.Any) -> typing.Any: ...",
    "on_event": "def on_event(event: object) -> None: ...",
    # The CDK is not installed here. `test_snippets` compares its block with the template.
    **{name: f"{name}: typing.Any" for name in ("CfnInclude", "iam", "role", "self")},
}


def _module(block: str) -> str:
    """Return a block as a module, with what it uses and does not define in front of it."""
    tree = ast.parse(block)
    bound = {
        alias.asname or alias.name
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    bound |= {
        each.name
        for each in ast.walk(tree)
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    names = {each.id: each.ctx for each in ast.walk(tree) if isinstance(each, ast.Name)}
    stored = {
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    given = [line for name, line in GIVEN.items() if name in names and name not in bound | stored]
    return "\n".join(["import typing", *given, block])


def _checked(folder: Path) -> str:
    out, problems, _ = api.run(
        [
            "--strict",
            "--namespace-packages",
            "--explicit-package-bases",
            "--config-file=",
            f"--python-executable={sys.executable}",
            f"--cache-dir={ROOT / '.mypy_cache' / 'documents'}",
            *map(str, sorted(folder.glob("*.py"))),
        ]
    )
    return out + problems


def test_every_block_passes_mypy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    count = 0
    for page in PAGES:
        for number, block in enumerate(blocks((ROOT / page).read_text("utf-8"), "python")):
            name = f"{Path(page).stem.replace('-', '_')}_{number}.py"
            (tmp_path / name).write_text(_module(block))
            count += 1
    assert "docs/memory.md" in PAGES
    assert f"no issues found in {count} source files" in _checked(tmp_path), _checked(tmp_path)
