"""One conversation of a real graph whose turns go through the gateway and through a saver at the table, by turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import all_items
from tests.support.graphs import agent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")

TURNS = 6
# Ids and times are in what is compressed, and differ.
SHARE = 0.03


def _talk(savers: list[BaseCheckpointSaver[Any]], thread_id: str) -> None:
    """Take turns, and see after each that all savers see the same."""
    thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    for turn in range(TURNS):
        question = HumanMessage(f"question {turn}", id=f"question-{turn}")
        agent(savers[turn % len(savers)]).invoke({"messages": [question]}, thread)
        histories = [list(agent(saver).get_state_history(thread)) for saver in savers]
        assert histories[0] == histories[1]
        assert len(histories[0][0].values["messages"]) == 6 * (turn + 1)


def _shapes(client: DynamoDBClient, table_name: str, thread_id: str) -> tuple[Counter[Any], int]:
    """How many items of each kind there are, with which attributes; and how many bytes they have in all."""
    items = [item for item in all_items(client, table_name) if item["PK"]["S"].partition("#")[0] == thread_id]
    kinds = ((item["SK"]["S"].rpartition("#")[0][:2], *sorted(item)) for item in items)
    sizes = (len(value) for item in items for each in item.values() for value in each.values())
    return Counter(kinds), sum(sizes)


@pytest.mark.parametrize(
    "encrypted", [False, pytest.param(True, marks=pytest.mark.search)], ids=["plain", "encrypted"]
)
def test_both_see_everything_and_store_the_same(
    client: DynamoDBClient,
    table_name: str,
    make_saver: Callable[..., DynamoDBSaver],
    make_remote: Callable[..., HttpCheckpointSaver],
    serve: Callable[..., str],
    *,
    encrypted: bool,
) -> None:
    """With the key in the service, the client needs none."""
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef") if encrypted else None
    _talk([make_remote(serve(serde=serde)), make_saver(serde=serde)], "mixed")
    _talk([make_saver(serde=serde), make_saver(serde=serde)], "alone")
    mixed, mixed_bytes = _shapes(client, table_name, "mixed")
    alone, alone_bytes = _shapes(client, table_name, "alone")
    assert mixed == alone
    assert mixed_bytes == pytest.approx(alone_bytes, rel=SHARE)
