"""Random sequences of every operation, through client and service and on InMemorySaver: the results are equal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, operations
from tests.gateway.through.conftest import NO_CERTIFICATES, Serve
from tests.saver.test_differential import VARIANTS, compare

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.mark.engines("dynamodb-local")
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
    options = VARIANTS[variant]
    key = b"0123456789abcdef"
    url = serve(serde=EncryptedSerializer.from_pycryptodome_aes(key=key) if "encrypted" in options else None)

    def make() -> HttpCheckpointSaver:
        # With a prefix, nobody sees a difference.
        return HttpCheckpointSaver(url, thread_prefix="acme/", client_options={"verify": NO_CERTIFICATES})

    compare(make, client, table_name, event_loop_for_machine, options["wrap"], cold="cold" in options)
