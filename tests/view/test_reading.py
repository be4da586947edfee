"""The viewer reads each item once, by the reader's rights alone."""

import pytest
from langchain_core.messages import AIMessage

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, read_units
from langgraph.checkpoint.dynamodb.view import namespace_view
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.infra.authorization import Gate
from tests.infra.conftest import for_table
from tests.infra.test_policies import POLICIES
from tests.support import graphs
from tests.support.checkpoints import Conversation, noise, thread_config
from tests.view.conftest import Asked, Metered, Raw
from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


def talk_at_length(saver: DynamoDBSaver, thread: str, turns: int) -> None:
    """Store a conversation whose messages take many segments, and whose tasks write."""
    talk, said = Conversation(saver, thread), list[AIMessage]()
    for turn in range(turns):
        said.append(AIMessage(noise(2_000, turn).hex(), id=str(turn)))
        config = talk.put(messages=list(said))
        saver.put_writes(config, [("messages", said[-1])], f"task-{turn}", "~__pregel_pull, model")


def look_at_everything(asked: Asked, thread: str) -> None:
    """Ask for every document there is of a thread."""
    for lane in asked.get("thread", thread=thread)["lanes"]:
        for row in asked.rows(thread, lane["ns"]):
            at = {"thread": thread, "ns": lane["ns"], "checkpoint": row["checkpoint"]}
            for name in ("state", "changes", "pending"):
                asked.get(name, **at)
    asked.get("search", thread=thread, text="nowhere")


def test_everything_takes_no_more_than_reading_each_item_once(
    metered: Metered, saver: DynamoDBSaver, thread: str, raw: Raw
) -> None:
    talk_at_length(saver, thread, 40)
    look_at_everything(metered.asked, thread)
    items = raw.items(thread)
    floor = sum(read_units(item_bytes(each)) for each in items)
    assert floor > 20
    assert metered.meter.total.read_units <= floor
    requests = metered.meter.total.requests
    metered.asked.get("state", **metered.asked.newest(thread))
    assert metered.meter.total.requests == requests


def test_the_first_page_reads_no_segments(metered: Metered, saver: DynamoDBSaver, thread: str) -> None:
    talk_at_length(saver, thread, 5)
    metered.asked.get("thread", thread=thread)
    metered.asked.get("tree", thread=thread, ns="")
    assert metered.meter.total.calls == {"GetItem": 1, "Query": 2}


def test_few_segments_are_read_by_their_keys(metered: Metered, saver: DynamoDBSaver, thread: str) -> None:
    talk = Conversation(saver, thread)
    talk.put(log=noise(20_000, 1), other=noise(2_000_000, 2))
    talk.put(log=noise(20_000, 3), other=1)
    with metered.meter.operation() as read:
        assert metered.asked.values(thread)["log"]["node"]["length"] == 20_000
    # The other channel's segments are indexed, and their index is read; they are not.
    assert read.calls == {"Query": 2, "BatchGetItem": 2}
    assert read.read_units < 30


def test_what_there_is_no_room_for_is_read_again(
    metered: Metered, saver: DynamoDBSaver, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace_view, "_SEGMENT_BYTES_MAX", 1000)
    monkeypatch.setattr(namespace_view, "_VALUE_BYTES_MAX", 1000)
    small = namespace_view.Caches()
    record = metered.asked.responses._session  # noqa: SLF001
    monkeypatch.setattr(record, "_caches", small)
    talk = Conversation(saver, thread)
    talk.put(log=noise(50_000, 1), other=noise(50_000, 2))
    first = metered.asked.values(thread)
    requests = metered.meter.total.requests
    assert metered.asked.values(thread) == first
    assert metered.meter.total.requests > requests


def test_the_reader_s_policy_is_enough(engine: Engine, table: str, saver: DynamoDBSaver, thread: str) -> None:
    graphs.subgraphs(None)(saver).invoke({"log": ["begun"]}, thread_config(thread))
    gate = Gate([for_table(POLICIES["Reader"], table)])
    with DynamoDBSaver(table, session=gate.session(), endpoint_url=engine.endpoint_url) as reader:
        asked = Asked(Responses(Session(reader)))
        look_at_everything(asked, thread)
        asked.get("threads", run="1f0c6f64-5bd2-6d3b-8000-0242ac120002")
        asked.get("directory")
        asked.get("directory", owner="ada", title="x")
        assert not gate.refused
        assert gate.allowed_actions() <= {"dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:GetItem"}
