"""The operations of both savers: directly on the table, and through the gateway."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb._operations.operations import LocalOperations, Operations
from langgraph.checkpoint.dynamodb.http.operations import RemoteOperations
from tests.operations.test_backend import parameters_of
from tests.support.harness import Harness


@pytest.mark.parametrize("name", [name for name in vars(Operations) if not name.startswith("_")])
def test_the_operations_of_both_sides_take_the_same(name: str) -> None:
    local = getattr(LocalOperations(Harness().process().storage), name)
    assert len(parameters_of(local)) == len(parameters_of(getattr(RemoteOperations, name)))
    assert len(parameters_of(local)) == len(parameters_of(getattr(Operations, name)))
