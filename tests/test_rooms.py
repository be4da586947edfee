"""The rooms of the package: what may import what, and that none of it is loaded by who does not use it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import langgraph.checkpoint.dynamodb as package

PACKAGE = "langgraph.checkpoint.dynamodb"
FOLDER = Path(package.__file__).parent
# From the top down: each may import from those after it, and from itself.
FLOORS = ("__main__", "__init__", "saver", "_operations", "_runtime", "_format", "errors")
MODULES = sorted(FOLDER.rglob("*.py"))


def _floor(parts: tuple[str, ...]) -> int:
    return FLOORS.index(parts[0].removesuffix(".py") if parts else "__init__")


def _imports(path: Path) -> set[tuple[str, ...]]:
    """Return the parts of every module of the package that a file imports, or imports from."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{name}" for name in names]
        found |= {tuple(name.split(".")[3:]) for name in names if name.startswith(f"{PACKAGE}.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_imports_go_downwards_only(path: Path) -> None:
    own = _floor(path.relative_to(FOLDER).parts)
    upwards = {".".join(parts) for parts in _imports(path) if _floor(parts) < own}
    assert not upwards
