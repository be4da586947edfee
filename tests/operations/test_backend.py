"""The two backends offer the same: what composes cannot tell whether it is beside the table."""

from __future__ import annotations

import inspect

import pytest

from langgraph.checkpoint.dynamodb._operations.backend import Backend, LocalBackend
from langgraph.checkpoint.dynamodb._operations.operations import LocalOperations, Operations
from langgraph.checkpoint.dynamodb.http.backend import RemoteBackend
from langgraph.checkpoint.dynamodb.http.operations import RemoteOperations
from tests.support.harness import Harness

BACKEND = [name for name in vars(Backend) if not name.startswith("_") and name != "storage"]
OPERATIONS = [name for name in vars(Operations) if not name.startswith("_")]


def _parameters(function: object) -> list[str]:
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.name != "self" and each.kind is not each.KEYWORD_ONLY]


@pytest.mark.parametrize("name", BACKEND)
@pytest.mark.parametrize("kind", [LocalBackend, RemoteBackend])
def test_a_backend_takes_what_the_interface_says(kind: type, name: str) -> None:
    assert _parameters(getattr(kind, name)) == _parameters(getattr(Backend, name))


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_operations_of_both_sides_take_the_same(name: str) -> None:
    local = getattr(LocalOperations(Harness().process().storage), name)
    assert len(_parameters(local)) == len(_parameters(getattr(RemoteOperations, name)))
    assert len(_parameters(local)) == len(_parameters(getattr(Operations, name)))
