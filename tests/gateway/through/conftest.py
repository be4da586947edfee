"""Savers that reach a table through the gateway, beside those that reach it themselves."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.gateway_service import gateway_service

if TYPE_CHECKING:
    from tools.engine import Engine

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
def serve(engine: Engine, table_name: str, sessions: dict[str, Any], serve_saver: Serve) -> Serve:
    """Give a function that runs a gateway for the table, with a saver of its own, and returns its address."""

    def serve(**options: Any) -> str:
        connection = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name, **sessions}
        return serve_saver(DynamoDBSaver(**{"table_name": table_name, **connection, **options}))

    return serve


@pytest.fixture
async def make_remote(serve: Serve) -> AsyncIterator[MakeRemote]:
    """Give a factory of savers that reach the table through a gateway; they are closed after the test."""
    savers: list[HttpCheckpointSaver] = []
    urls: list[str] = []

    def make(url: str | None = None, **options: Any) -> HttpCheckpointSaver:
        if url is None:
            if not urls:
                urls.append(serve())
            url = urls[0]
        savers.append(HttpCheckpointSaver(url, client_options={"verify": NO_CERTIFICATES}, **options))
        return savers[-1]

    yield make
    for saver in savers:
        await saver.aclose()
        saver.close()
