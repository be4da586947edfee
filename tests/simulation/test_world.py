"""The simulator's small sizes reach all of the code that they are for."""

import ast
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb import _format, _operations
from tests.simulation.world import SMALL_LIMITS


@pytest.mark.parametrize("package", [_format, _operations], ids=lambda package: package.__name__)
def test_no_default_argument_keeps_a_real_size(package: object) -> None:
    """A default is evaluated when its module is imported, so `use_small_limits` does not change it."""
    [folder] = package.__path__  # type: ignore[attr-defined]
    kept = [
        f"{path.name}:{default.lineno}: {default.id}"
        for path in Path(folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.arguments)
        for default in (*node.defaults, *node.kw_defaults)
        if isinstance(default, ast.Name) and default.id in SMALL_LIMITS
    ]
    assert kept == []
