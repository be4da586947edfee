"""Savers that reach a table through the gateway, beside those that reach it themselves."""

import contextlib
import ssl
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import Closed
from tests.support.gateway_service import gateway_service

MakeRemote = Callable[..., HttpCheckpointSaver]
Serve = Callable[..., str]
# Certificates are all that takes long to load, and none is needed here.
NO_CERTIFICATES = ssl.create_default_context()


@pytest.fixture
def serve_saver() -> Iterator[Serve]:
    """Give a function that runs a gateway on a saver, with options of the gateway, and returns its address."""
    with contextlib.ExitStack() as stack:
        yield lambda saver, **options: stack.enter_context(gateway_service(saver, **options))


@pytest.fixture
def serve(reach: dict[str, Any], table_name: str, serve_saver: Serve) -> Serve:
    """Give a function that runs a gateway for the table, with a saver of its own, and returns its address."""
    return lambda **options: serve_saver(DynamoDBSaver(**{"table_name": table_name, **reach, **options}))


@pytest.fixture
def make_remote(serve: Serve, closed: Closed) -> MakeRemote:
    """Give a factory of savers that reach the table through a gateway; they are closed after the test."""
    address = cache(serve)

    def make(url: str | None = None, **options: Any) -> Any:
        given = {"client_options": {"verify": NO_CERTIFICATES}, **options}
        return closed(HttpCheckpointSaver(url or address(), **given))

    return make
