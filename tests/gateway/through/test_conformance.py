"""Through client and service: LangGraph's public conformance suite, in full, and random calls as on InMemorySaver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, operations
from tests.gateway.through.conftest import NO_CERTIFICATES, MakeRemote, Serve
from tests.saver.test_conformance import check_conformance
from tests.saver.test_differential import compare
from tests.support.examples import percent
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")
# Those of the service.
SERIALIZERS = {"plain": None, "encrypted": EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")}


@pytest.mark.repeated
@pytest.mark.parametrize(
    ("side", "serializer"),
    [
        ("async", "plain"),
        pytest.param("async", "encrypted", marks=pytest.mark.search),
        pytest.param("sync", "plain", marks=pytest.mark.search),
    ],
)
async def test_conformance_is_full(make_remote: MakeRemote, serve: Serve, side: str, serializer: str) -> None:
    url = serve(serde=SERIALIZERS[serializer])

    @checkpointer_test(name="HttpCheckpointSaver")
    async def saver_under_test() -> AsyncIterator[BaseCheckpointSaver[Any]]:
        saver = make_remote(url)
        yield saver if side == "async" else SyncAsAsync(saver)

    await check_conformance(saver_under_test)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "variant", ["sync", "async", "encrypted", pytest.param("cold", marks=pytest.mark.search)]
)
def test_random_operations_equal_in_memory(
    client: DynamoDBClient,
    table_name: str,
    serve: Serve,
    event_loop_for_machine: asyncio.AbstractEventLoop,
    variant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Lists have several pages.
    monkeypatch.setattr(operations, "_PAGE_FIRST", 2)
    monkeypatch.setattr(operations, "_PAGE_MAX", 2)
    url = serve(serde=SERIALIZERS["encrypted" if variant == "encrypted" else "plain"])

    def make() -> HttpCheckpointSaver:
        # With a prefix, nobody sees a difference.
        return HttpCheckpointSaver(url, thread_prefix="acme/", client_options={"verify": NO_CERTIFICATES})

    compare(make, client, table_name, event_loop_for_machine, variant, percent(4))
