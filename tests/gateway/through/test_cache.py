"""The node cache through the gateway: every test of the cache, and what is the gateway's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCache
from tests.cache import test_cache
from tests.gateway.through.conftest import NO_CERTIFICATES

pytestmark = pytest.mark.engines("dynamodb-local")

# The same tests, with the fixture of this module.
globals().update({name: each for name, each in vars(test_cache).items() if name.startswith("test_")})


@pytest.fixture
async def make_cache(
    serve: Callable[..., str], serve_saver: Callable[[DynamoDBSaver], str], table_name: str
) -> AsyncIterator[Callable[..., HttpCache[Any]]]:
    """Give a factory of caches through a gateway; it takes the cache's keywords, and they are closed after the test."""
    caches: list[HttpCache[Any]] = []

    def make(**options: Any) -> HttpCache[Any]:
        if "client" in options:
            url = serve_saver(DynamoDBSaver(table_name, client=options.pop("client")))
        else:
            url = options.pop("endpoint_url", None) or serve(table_name=options.pop("table_name", table_name))
        if "serde" in options:
            options["bound_to"] = table_name
        caches.append(HttpCache(url, client_options={"verify": NO_CERTIFICATES}, **options))
        return caches[-1]

    yield make
    for cache in caches:
        await cache.aclose()
