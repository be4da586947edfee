"""Threads are moved whole, from every saver and back, and their conversations go on."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.migrate import (
    FileEndpoint,
    SaverEndpoint,
    Status,
    TableEndpoint,
    endpoint_of,
    export_thread,
    migrate,
)
from langgraph.checkpoint.dynamodb.migrate.endpoints import AmazonEndpoint, SqliteEndpoint
from tests.migrate.conftest import OTHERS
from tests.migrate.threads import EVERY, WAITING, answer, begin, statuses
from tests.support.checkpoints import store, thread_config
from tests.support.graphs import Saver

pytestmark = pytest.mark.engines("dynamodb-local")
_IDS = ("checkpoint_ns", "checkpoint_id")
# Each kind of thread is moved from one saver at least, and from Postgres all.
THREADS = {
    AmazonEndpoint: ["delta"],
    SqliteEndpoint: ["approvals", "fork"],
    SaverEndpoint: ["fan out", "persistent subgraphs"],
}
with_each = pytest.mark.parametrize("other", OTHERS, indirect=True)


def seen(saver: Saver, thread_id: str) -> list[CheckpointTuple]:
    """Return what a saver gives of a thread, but for the versions, in an order that does not depend on it."""
    found = list[CheckpointTuple]()
    for each in saver.list(thread_config(thread_id)):
        checkpoint: Any = {**each.checkpoint, "channel_versions": None, "versions_seen": None}
        writes = sorted(each.pending_writes or [], key=lambda write: write[:2])
        found.append(each._replace(checkpoint=checkpoint, pending_writes=writes))
    return sorted(found, key=lambda each: [each.config["configurable"][name] for name in _IDS])


@with_each
def test_all_that_a_saver_has_is_moved_and_goes_on(other: SaverEndpoint, table: TableEndpoint) -> None:
    source, target = other.saver, table.saver
    threads = begin(source, THREADS.get(type(other), EVERY))
    assert sorted(other.thread_ids()) == threads
    reports = list(migrate(other, table, threads, parallel=2))
    assert statuses(reports) == dict.fromkeys(threads, Status.MOVED)
    for thread_id in threads:
        assert seen(target, thread_id) == seen(source, thread_id)
    for thread_id in WAITING.keys() & threads:
        assert answer(target, thread_id) == answer(source, thread_id)


@with_each
def test_and_back(other: SaverEndpoint, table: TableEndpoint) -> None:
    source, target = table.saver, other.saver
    threads = begin(source, THREADS.get(type(other), ["delta", "fork", "subgraphs"]))
    assert sorted(table.thread_ids()) == threads
    reports = migrate(table, other, threads, parallel=2)
    assert statuses(reports) == dict.fromkeys(threads, Status.MOVED)
    for thread_id in WAITING.keys() & threads:
        assert answer(target, thread_id) == answer(source, thread_id)


# Whose threads they are

MakeSaver = Callable[..., DynamoDBSaver]


def a_talk(saver: Saver, *owners: Any) -> None:
    """Store a checkpoint for each owner, whose metadata name it, or none."""
    for number, owner in enumerate(owners):
        named = {} if owner is None else {"user_id": owner}
        store(saver, thread_config("talk"), f"{number}", {"a": number}, **named)


def in_file(make_saver: MakeSaver, source: SaverEndpoint) -> FileEndpoint:
    """Export a talk."""
    file = io.BytesIO()
    export_thread(source, "talk", file)
    return FileEndpoint(file, endpoint_of(make_saver()))


@pytest.mark.parametrize("through", [lambda _, source: source, in_file])
@pytest.mark.parametrize(
    ("owners", "owner"),
    [(("ada", "bob"), "ada"), ((None, 42, "bob"), "42"), ((None,), None)],
    ids=["first", "later", "none"],
)
def test_a_moved_thread_has_the_owner_that_its_checkpoints_name(
    make_saver: MakeSaver, through: Any, owners: Any, owner: str | None
) -> None:
    made = SaverEndpoint(InMemorySaver())
    a_talk(made.saver, *owners)
    target = make_saver(owner_from="user_id")
    [dry] = migrate(through(make_saver, made), endpoint_of(target), ["talk"], dry_run=True)
    [report] = migrate(through(make_saver, made), endpoint_of(target), ["talk"])
    assert (dry.owner, report.owner, report.status) == (owner, owner, Status.MOVED)
    [found] = target.threads().threads
    assert (found.thread_id, found.owner) == ("talk", owner)


def test_a_thread_that_was_moved_before_gets_its_owner_by_another_move(make_saver: MakeSaver) -> None:
    source, target = SaverEndpoint(InMemorySaver()), make_saver(owner_from="user_id")
    a_talk(source.saver, "ada")
    [report] = migrate(source, endpoint_of(make_saver()), ["talk"])
    assert (report.owner, target.threads().threads) == (None, [])
    [report] = migrate(source, endpoint_of(target), ["talk"])
    assert (report.status, report.owner) == (Status.COMPLETE, "ada")
    target.set_thread("talk", owner="bob")
    [report] = migrate(source, endpoint_of(target), ["talk"])
    assert (report.owner, len(target.threads(owner="bob").threads)) == ("bob", 1)


class Refusing(SaverEndpoint):
    """A source whose checkpoints cannot be read to the end."""

    def records(self, thread_id: str, refs: Any) -> Any:
        """Yield a checkpoint, and no other."""
        yield next(super().records(thread_id, refs))
        raise ConnectionError


@pytest.mark.parametrize("owners", [("ada", None), (None, "ada")])
def test_the_owner_is_there_before_any_checkpoint(make_saver: MakeSaver, owners: Any) -> None:
    source, target = InMemorySaver(), make_saver(owner_from="user_id")
    a_talk(source, *owners)
    [report] = migrate(Refusing(source), endpoint_of(target), ["talk"])
    assert report.status is Status.FAILED
    assert len(target.threads(owner="ada").threads) == len(list(target.list(thread_config("talk"))))


@pytest.mark.parametrize("new_id", ["acme/copy", "other/copy"])
def test_a_file_has_what_the_directory_says_of_a_thread(make_saver: MakeSaver, new_id: str) -> None:
    saver = make_saver(owner_from="user_id")
    store(saver, thread_config("acme/talk"), "1", {"a": 1})
    saver.set_thread("acme/talk", owner="acme/ada", title="Trains", metadata={"pinned": True})
    file = io.BytesIO()
    export_thread(endpoint_of(saver), "acme/talk", file)
    # A saver that looks for no owner enters it too, as a copy does.
    target = endpoint_of(make_saver())
    [report] = migrate(FileEndpoint(file, target, new_id), target, [new_id])
    found = {each.thread_id: each for each in saver.threads().threads}
    if new_id == "acme/copy":
        assert (report.owner, found[new_id].title, found[new_id].metadata) == (
            "acme/ada",
            "Trains",
            {"pinned": True},
        )
    else:
        assert (report.owner, list(found)) == (None, ["acme/talk"])


def test_an_owner_that_cannot_be_used_fails_the_thread(make_saver: MakeSaver) -> None:
    source, target = SaverEndpoint(InMemorySaver()), make_saver(owner_from="user_id")
    a_talk(source.saver, ["ada"])
    [report] = migrate(source, endpoint_of(target), ["talk"])
    assert report.status is Status.FAILED
    assert "owner is ['ada']" in report.problems[0]
    assert list(target.list(thread_config("talk"))) == []


def test_an_endpoint_says_where_its_saver_looks_for_owners() -> None:
    saver = HttpCheckpointSaver("http://127.0.0.1:1", owner_from="user_id")
    assert [SaverEndpoint(each).owner_from for each in (saver, InMemorySaver())] == ["user_id", None]
