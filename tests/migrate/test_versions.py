"""Versions of another kind: equal where they were equal, larger where they were larger."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate.record import Record
from langgraph.checkpoint.dynamodb.migrate.versions import kind_of_versions, translated
from tests.support.checkpoints import checkpoint_of


class Numbers:
    """A saver that can count whole numbers only, as langgraph-checkpoint-aws's."""

    def next_version(self, version: Any) -> Any:
        """Count."""
        return 1 if version is None else version + 1


def record(
    checkpoint_id: str, versions: dict[str, Any], seen: dict[str, Any], parent: str | None = None
) -> Record:
    """A record with these versions."""
    checkpoint: Any = {
        **checkpoint_of(checkpoint_id, {}),
        "channel_versions": versions,
        "versions_seen": seen,
    }
    return Record("", checkpoint, {}, parent, ())


def padded(version: Any) -> str:
    """A version of LangGraph's savers."""
    return InMemorySaver().get_next_version(version, None)


def test_versions_that_a_saver_can_count_on_from_are_left_alone() -> None:
    ours = DynamoDBSaver("table")
    for versions in ({}, {"a": 3}, {"a": padded(2)}):
        checkpoint = record("1", versions, {}).checkpoint
        assert kind_of_versions(lambda version: ours.get_next_version(version, None), checkpoint) is None
    memory = InMemorySaver()
    number, text = (record("1", {"a": version}, {}).checkpoint for version in (3, padded(2)))
    assert kind_of_versions(lambda version: memory.get_next_version(version, None), number) is str
    assert kind_of_versions(lambda version: memory.get_next_version(version, None), text) is None
    assert kind_of_versions(Numbers().next_version, number) is None
    assert kind_of_versions(Numbers().next_version, text) is int


def test_padded_versions_become_their_numbers() -> None:
    versions = {"a": padded(padded(None)), "b": padded(None)}
    new = translated(record("1", versions, {"node": dict(versions)}), int, None).checkpoint
    assert new["channel_versions"] == {"a": 2, "b": 1}
    assert new["versions_seen"] == {"node": {"a": 2, "b": 1}}


def test_numbers_become_versions_that_say_who_brought_them() -> None:
    root = record("1", {"a": 1, "b": 1}, {})
    moved = translated(root, str, None)
    pair = (root.checkpoint, moved.checkpoint)
    left, right = (
        translated(record(name, {"a": 2, "b": 1}, {"node": {"a": 1, "b": 1}}, "1"), str, pair).checkpoint
        for name in ("2", "3")
    )
    before = moved.checkpoint["channel_versions"]
    for fork in (left, right):
        assert fork["channel_versions"]["b"] == before["b"]
        assert fork["versions_seen"] == {"node": before}
        assert str(fork["channel_versions"]["a"]) > str(before["a"])
    assert left["channel_versions"]["a"] != right["channel_versions"]["a"]


def test_they_are_of_the_form_of_the_others() -> None:
    moved = translated(record("1", {"a": 7}, {}), str, None).checkpoint["channel_versions"]["a"]
    following = padded(moved)
    assert len(str(moved)) == len(f"{7:032}.{0.5:016}")
    assert following.startswith(f"{8:032}.")
    assert following > str(moved)


def test_what_a_node_saw_in_a_checkpoint_that_has_gone_starts_nothing_again() -> None:
    found = translated(
        record("5", {"a": 3}, {"one": {"a": 3}, "other": {"a": 2}, "far": {"b": 3}}, "4"), str, None
    )
    version, seen = found.checkpoint["channel_versions"]["a"], found.checkpoint["versions_seen"]
    assert seen["one"]["a"] == version
    assert str(seen["other"]["a"]) < str(version) < str(seen["far"]["b"])
