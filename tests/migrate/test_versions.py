"""Versions of another kind: equal where they were equal, larger where they were larger."""

from typing import Annotated, Any

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, endpoint_of, migrate
from langgraph.checkpoint.dynamodb.migrate.record import Record, kind_of_versions, translated
from tests.support.checkpoints import checkpoint_of, thread_config
from tests.support.graphs import Graph, Saver
from tests.support.moving_clock import Engine


class Journal(TypedDict, total=False):
    """A state with a log of which each step stores what it adds."""

    log: Annotated[list[str], DeltaChannel(lambda log, more: sum(more, log), list)]


def journal(saver: Saver) -> Graph:
    """Build a graph that writes to its log once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Journal)
    graph.add_node("write", lambda _: {"log": ["written"]}).add_edge(START, "write")
    return graph.compile(checkpointer=saver)


def record(versions: dict[str, Any], seen: dict[str, Any], values: dict[str, Any] | None = None) -> Record:
    """A record with these versions."""
    checkpoint: Any = checkpoint_of("1", values or {})
    return Record("", checkpoint | {"channel_versions": versions, "versions_seen": seen}, {}, None, ())


def in_text(record: Record) -> Any:
    """The checkpoint of a record with padded versions."""
    return translated(record, str, JsonPlusSerializer().dumps_typed).checkpoint


def padded(version: Any) -> str:
    """A version of LangGraph's savers."""
    return InMemorySaver().get_next_version(version, None)


def test_versions_that_a_saver_gives_are_left_alone() -> None:
    ours, memory = DynamoDBSaver("table"), InMemorySaver()
    counts: list[Any] = [
        lambda each: ours.get_next_version(each, None),
        # It can count whole numbers only, as langgraph-checkpoint-aws's.
        lambda each: 1 if each is None else each + 1,
        lambda each: memory.get_next_version(each, None),
    ]
    for versions, kinds in (
        ({}, [None, None, None]),
        ({"a": 3}, [None, None, str]),
        ({"a": padded(2)}, [int, int, None]),
    ):
        checkpoint = record(versions, {}).checkpoint
        assert [kind_of_versions(each, checkpoint) for each in counts] == kinds


def test_a_moved_thread_goes_on_from_before_its_delta_channel_was_written() -> None:
    memory, ours, at = InMemorySaver(), Engine().saver(), thread_config("talk")
    journal(memory).invoke({}, at)
    list(migrate(SaverEndpoint(memory), endpoint_of(ours), ["talk"]))
    graph = journal(ours)
    _, before, _ = graph.get_state_history(at)
    assert graph.invoke(None, before.config) == {"log": ["written"]}


def test_padded_versions_become_their_numbers() -> None:
    versions = {"a": padded(padded(None)), "b": padded(None)}
    given = record(versions, {"node": dict(versions)})
    new = translated(given, int, JsonPlusSerializer().dumps_typed).checkpoint
    assert new["channel_versions"] == {"a": 2, "b": 1}
    assert new["versions_seen"] == {"node": {"a": 2, "b": 1}}


def test_numbers_become_versions_that_differ_where_the_values_do() -> None:
    root, left, right = (
        in_text(record({"a": number, "b": 1}, {"node": {"a": 1, "b": 1}}, {"a": said, "b": [1]}))
        for number, said in ((1, "root"), (2, "left"), (2, "right"))
    )
    versions = [each["channel_versions"] for each in (root, left, right)]
    assert len({each["b"] for each in versions}) == 1
    assert len({each["a"] for each in versions}) == 3
    assert max(versions[0]["a"], left["versions_seen"]["node"]["a"]) < min(versions[1]["a"], versions[2]["a"])
    # A node that has seen the newest version is not started again.
    assert root["versions_seen"] == {"node": versions[0]}


def test_they_are_of_the_form_of_the_others() -> None:
    moved = in_text(record({"a": 7}, {}, {"a": "x"}))["channel_versions"]["a"]
    following = padded(moved)
    assert len(str(moved)) == len(f"{7:032}.{0.5:016}")
    assert following.startswith(f"{8:032}.")
    assert following > str(moved)


def test_what_a_node_saw_in_a_checkpoint_that_has_gone_starts_nothing_again() -> None:
    found = in_text(record({"a": 3}, {"one": {"a": 3}, "other": {"a": 2}, "far": {"b": 3}}))
    version, seen = found["channel_versions"]["a"], found["versions_seen"]
    assert seen["one"]["a"] == version
    assert seen["other"]["a"] < version <= seen["far"]["b"]
