"""The two backends offer the same: what composes cannot tell whether it is beside the table."""

from __future__ import annotations

import inspect

import pytest

from langgraph.checkpoint.dynamodb._operations.backend import Backend, LocalBackend
from langgraph.checkpoint.dynamodb.http.backend import RemoteBackend

BACKEND = [name for name in vars(Backend) if not name.startswith("_") and name != "storage"]


def parameters_of(function: object) -> list[str]:
    """Return the names of a function's parameters that may be given by position."""
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.name != "self" and each.kind is not each.KEYWORD_ONLY]


@pytest.mark.parametrize("name", BACKEND)
@pytest.mark.parametrize("kind", [LocalBackend, RemoteBackend])
def test_a_backend_takes_what_the_interface_says(kind: type, name: str) -> None:
    assert parameters_of(getattr(kind, name)) == parameters_of(getattr(Backend, name))
