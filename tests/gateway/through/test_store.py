"""The store through the gateway: every test of the contract, and what is the gateway's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointerInputError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb.http import HttpStore
from tests.gateway.through.conftest import NO_CERTIFICATES
from tests.store import test_contract
from tests.store.conftest import embeddings
from tests.support.observed import Collected
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

# The same tests, with the fixtures of this module.
globals().update({name: each for name, each in vars(test_contract).items() if name.startswith("test_")})
__all__ = ["embeddings"]


@pytest.fixture
async def make_store(serve: Callable[..., str], table_name: str) -> AsyncIterator[Callable[..., HttpStore]]:
    """Give a factory of stores through a gateway; it takes the store's keywords, and they are closed after the test."""
    stores: list[HttpStore] = []

    def make(**options: Any) -> HttpStore:
        if "serde" in options:
            options["bound_to"] = table_name
        stores.append(HttpStore(serve(), client_options={"verify": NO_CERTIFICATES}, **options))
        return stores[-1]

    yield make
    for store in stores:
        await store.aclose()


@pytest.fixture
def store(make_store: Callable[..., HttpStore]) -> HttpStore:
    """Give a store without vectors."""
    return make_store()


@pytest.fixture
def watched(serve_saver: Callable[[DynamoDBSaver], str], saver: DynamoDBSaver, traffic: Traffic) -> HttpStore:
    """Give a store through a gateway whose every request to the table is in `traffic`."""
    del traffic
    return HttpStore(serve_saver(saver), client_options={"verify": NO_CERTIFICATES})


def test_a_cipher_needs_the_table_s_name() -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    with pytest.raises(CheckpointerInputError, match="bound_to is missing"):
        HttpStore("https://gateway.example", serde=serde)


def test_each_call_has_an_event_with_its_units(make_store: Callable[..., HttpStore]) -> None:
    events = Collected()
    store = make_store(on_event=events)
    store.put(("acme", "u1"), "k", {"n": 1})
    assert store.get(("acme", "u1"), "k") is not None
    assert [(each.operation, each.outcome, each.tenant) for each in events.events] == [
        ("store.put", "ok", "acme"), ("store.get", "ok", "acme"),
    ]  # fmt: skip
    put, get = events.events
    assert (put.read_units, get.write_units) == (None, None)
    assert put.write_units
    assert get.read_units
