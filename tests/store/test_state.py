"""Memories in a graph's state: what a checkpoint keeps of them, and copies."""

import copy
import logging
import pickle
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.store.base import Item, SearchItem

from langgraph.store.dynamodb import DynamoDBStore
from langgraph.store.dynamodb.reads import FoundItem, MemoryItem

NAMESPACE = ("users", "u1")
FIELDS = ("value", "key", "namespace", "created_at", "updated_at")


class State(TypedDict):
    """A state with a memory."""

    memory: Any
    revision: str


@pytest.fixture
def both(store: DynamoDBStore) -> tuple[Any, Any]:
    """Give a memory as `get` and as `search` return it."""
    store.put(NAMESPACE, "food", {"likes": ["pizza"]})
    return store.get(NAMESPACE, "food"), store.search(NAMESPACE)[0]


def test_a_memory_in_the_state_is_an_item_in_strict_mode_and_the_revision_beside_it_is_kept(
    store: DynamoDBStore, caplog: pytest.LogCaptureFixture
) -> None:
    def remember(_: State) -> Any:
        found: Any = store.get(NAMESPACE, "food")
        return {"memory": found, "revision": found.revision}

    store.put(NAMESPACE, "food", {"likes": "pizza"})
    # This is what LANGGRAPH_STRICT_MSGPACK=true makes the default.
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    builder: Any = StateGraph(State)
    graph = builder.add_node("remember", remember).add_edge(START, "remember").compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"memory": None, "revision": ""}, config)
    state = graph.get_state(config).values
    assert type(state["memory"]) is Item
    assert state["memory"] == store.get(NAMESPACE, "food")
    assert store.put_if(NAMESPACE, "food", {"likes": "pasta"}, revision=state["revision"])
    assert caplog.records == []


def test_no_saver_warns_of_a_memory(both: tuple[Any, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    serde = JsonPlusSerializer(allowed_msgpack_modules=True)
    again = serde.loads_typed(serde.dumps_typed(both[0]))
    assert [getattr(again, name) for name in FIELDS] == [getattr(both[0], name) for name in FIELDS]
    assert caplog.records == []
    # LangGraph does not list the results of a search, whichever store they are from.
    found = serde.loads_typed(serde.dumps_typed(both[1]))
    assert type(found) is SearchItem
    assert found == both[1]


def test_copies_keep_the_revision(both: tuple[Any, Any]) -> None:
    pairs: list[tuple[Any, Any]] = [(both[0], MemoryItem), (both[1], FoundItem)]
    for item, kind in pairs:
        assert all(isinstance(item, each) for each in (kind, Item))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(item, protocol))  # noqa: S301 - of the test's own data.
            assert (type(again), again, again.revision) == (kind, item, item.revision)
        assert copy.copy(item).revision == item.revision
        deep = copy.deepcopy(item)
        deep.value["likes"].append("pasta")
        assert (deep.revision, item.value) == (item.revision, {"likes": ["pizza"]})
        assert isinstance(item, SearchItem) == (kind is FoundItem)
