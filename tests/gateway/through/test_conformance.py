"""LangGraph's public conformance suite, in full, through client and service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from tests.gateway.through.conftest import MakeRemote, Serve
from tests.saver.test_conformance import check_conformance
from tests.support.sync_adapter import SyncAsAsync

pytestmark = pytest.mark.engines("dynamodb-local")
# Those of the service.
SERIALIZERS = {
    "plain": None,
    "encrypted": EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef"),
}


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
