"""How often an operation goes from one of our modules to another: what a reader who follows it has to do as well.

A call, a return and the resumption of a generator count, where they lead to another module than the one before. Before
the core was simplified (commit 22af894) a warm put had 14 modules and 122 changes, a warm read 10 and 87, and the prune
of four checkpoints 15 and 314, counted in the same way.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import langgraph.checkpoint.dynamodb
from tests.support.harness import Harness

PACKAGE = str(Path(langgraph.checkpoint.dynamodb.__file__).parent)

# Fewer changes than before, and a little above what there is, so that a change of a few lines need not touch this.
MODULES_AND_CHANGES_MAX = {"put": (14, 112), "read": (12, 78), "prune": (18, 280)}


def _modules(operation: Callable[[], Any]) -> list[str]:
    """Run an operation and return our modules in the order in which it went through them."""
    visited: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        name = frame.f_code.co_filename
        if event in ("call", "return") and name.startswith(PACKAGE) and visited[-1:] != [name]:
            visited.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        operation()
    finally:
        sys.setprofile(before)
    return visited


@pytest.mark.parametrize("name", MODULES_AND_CHANGES_MAX)
def test_an_operation_goes_through_few_modules(name: str, tell: Callable[[str], None]) -> None:
    harness = Harness()
    process = harness.process()
    for step in range(1, 5):
        values = {"messages": ["x" * 200] * step, "idle": 1}
        harness.run(process.put(str(step), values, str(step - 1) if step > 1 else None))
    operator = harness.process()
    operations: dict[str, Callable[[], Any]] = {
        "put": lambda: harness.run(
            process.put("5", {"messages": ["x" * 200] * 5, "idle": 1}, "4", ["messages"])
        ),
        "read": lambda: process.get("4"),
        "prune": lambda: harness.run(operator.prune()),
    }
    visited = _modules(operations[name])
    tell(f"{name}: {len(set(visited))} modules, {len(visited)} changes of module")
    modules_max, changes_max = MODULES_AND_CHANGES_MAX[name]
    assert 5 < len(set(visited)) <= modules_max
    assert len(visited) <= changes_max
