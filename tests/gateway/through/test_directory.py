"""The directory of threads through the gateway: what a saver on the table does, by the same operations."""

from datetime import datetime, timezone
from operator import attrgetter
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb import CheckpointerInputError, CheckpointNotFoundError, ThreadPage
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, HttpStore
from tests.conftest import MakeSaver
from tests.gateway.through.conftest import MakeRemote, Serve
from tests.support.checkpoints import METADATA, checkpoint_of, noise, store, thread_config
from tests.support.operations import Side, ask, both_sides

pytestmark = pytest.mark.engines("dynamodb-local")


def put(side: Side, saver: Any, thread: str, user: Any, step: int = 1, **more: Any) -> Any:
    """Store a checkpoint of a user's thread."""
    config = thread_config(thread)
    if user is not None:
        config["configurable"]["user_id"] = user
    checkpoint = checkpoint_of(str(step), {"x": step})
    return ask(side, saver, "put", config, checkpoint, {**METADATA, "step": step, **more}, {"x": step})


def shown(page: ThreadPage) -> list[tuple[Any, ...]]:
    """What a page shows, without its times."""
    fields = attrgetter("thread_id", "owner", "title", "metadata", "status", "step")
    return [fields(each) for each in page.threads]


@both_sides
@pytest.mark.parametrize("prefix", ["", "acme/"])
def test_a_client_enters_describes_and_lists_as_a_saver_does(
    make_remote: MakeRemote, make_saver: MakeSaver, side: Side, prefix: str
) -> None:
    remote = make_remote(thread_prefix=prefix, owner_from="user_id")
    direct = make_saver(owner_from="user_id")
    put(side, remote, "one", "ada", run_id="run")
    # Metadata that are too large for a head are in segments of their own, and a status has no step of them.
    config = put(side, remote, "two", 42, 7, topic=noise(60_000).hex())
    ask(side, remote, "put_writes", config, [("__interrupt__", "Book it?")], "task")
    ask(side, remote, "set_thread", "one", title="Trains", metadata={"pinned": True})
    ask(side, remote, "set_thread", "one", title="Planes")
    # It is as it says already.
    ask(side, remote, "set_thread", "one", title="Planes")
    expected = [("one", "ada", "Planes", {"pinned": True}, "idle", 1)]
    assert shown(ask(side, remote, "threads", owner="ada", with_status=True)) == expected
    [there] = direct.threads(owner=f"{prefix}ada").threads
    assert (there.thread_id, there.owner, there.title) == (f"{prefix}one", f"{prefix}ada", "Planes")
    assert shown(ask(side, remote, "threads", owner="42", status="waiting")) == [
        ("two", "42", None, {}, "waiting", None)
    ]
    assert ask(side, remote, "threads", owner="42", status="failed").threads == []
    assert [each.run_id for each in ask(side, remote, "runs", "one")] == ["run"]
    ask(side, remote, "set_thread", "new", owner="ada", title="New chat")
    direct.set_thread("elsewhere/1", owner="elsewhere/ada")
    everything = {each.thread_id for each in ask(side, remote, "threads").threads}
    assert everything == {"one", "two", "new"} | (set() if prefix else {"elsewhere/1"})
    pages, cursor = [], None
    while True:
        page = ask(side, remote, "threads", owner="ada", limit=1, before=cursor)
        pages.append([each.thread_id for each in page.threads])
        if (cursor := page.cursor) is None:
            break
    assert sorted(each for ids in pages for each in ids) == ["new", "one"]
    ask(side, remote, "delete_thread", "one")
    assert [each.thread_id for each in ask(side, remote, "threads", owner="ada").threads] == ["new"]


def test_a_thread_that_begins_without_an_owner_is_told_once(
    make_remote: MakeRemote, caplog: pytest.LogCaptureFixture
) -> None:
    known = make_remote(owner_from="user_id")
    config = put("sync", known, "known", "ada")
    known.put(config, checkpoint_of("2", {}), METADATA, {})
    known.put(thread_config("known", "child:1"), checkpoint_of("3", {}), METADATA, {})
    put("sync", make_remote(), "not asked for", None)
    remote = make_remote(owner_from="userid", thread_prefix="acme/")
    for thread in ("one", "two"):
        put("sync", remote, thread, "ada")
    [told] = [each for each in caplog.messages if "without an owner" in each]
    assert told.startswith("Thread 'one' enters the directory without an owner")
    assert "the key 'userid', which owner_from names" in told


@both_sides
@pytest.mark.parametrize("prefix", ["", "acme/"])
@pytest.mark.parametrize("named", [{"user_id": "ada"}, {"user_id": "ada", "tags": {"a", "b"}}])
def test_a_copy_of_a_thread_without_an_owner_gets_the_one_that_its_checkpoints_name(
    make_remote: MakeRemote, side: Side, prefix: str, named: dict[str, Any]
) -> None:
    others = make_remote(thread_prefix=prefix)
    metadata: Any = {**METADATA, **named}
    others.put(thread_config("one"), checkpoint_of("1", {"x": 1}), metadata, {"x": 1})
    remote = make_remote(thread_prefix=prefix, owner_from="user_id")
    ask(side, remote, "copy_thread", "one", "two")
    others.copy_thread("one", "of others")
    remote.copy_thread("of others", "three")
    assert {each.thread_id for each in remote.threads(owner="ada").threads} == {"two", "three"}
    with pytest.raises(CheckpointNotFoundError):
        ask(side, remote, "copy_thread", "not there", "four")


@both_sides
def test_writes_that_come_first_begin_a_thread_with_its_owner(make_remote: MakeRemote, side: Side) -> None:
    config = thread_config("one", "", "1")
    config["configurable"]["user_id"] = "ada"
    remote = make_remote(owner_from="user_id")
    ask(side, remote, "put_writes", config, [("x", 1)], "task")
    assert [each.thread_id for each in remote.threads(owner="ada").threads] == ["one"]
    assert remote.delete_owner("ada").deleted == ["one"]


def test_what_is_no_owner_is_refused_before_anything_is_sent(make_remote: MakeRemote) -> None:
    remote = make_remote(owner_from="user_id", thread_prefix="acme/")
    owners: list[Any] = ["", True, 1.5, "x\ud800"]
    for owner in owners:
        with pytest.raises(CheckpointerInputError):
            put("sync", remote, "one", owner)
        with pytest.raises(CheckpointerInputError):
            remote.set_thread("one", owner=owner)
    assert remote.get_tuple(thread_config("one")) is None
    with pytest.raises(CheckpointerInputError, match="begins with"):
        make_remote().set_thread("other/1", owner="acme/ada")


def test_a_list_may_end_at_any_time(make_remote: MakeRemote) -> None:
    remote = make_remote(owner_from="user_id")
    put("sync", remote, "one", "ada")
    for owner in ("ada", None):
        assert not remote.threads(owner=owner, since=datetime.max.replace(tzinfo=timezone.utc)).threads
    early = datetime.min.replace(tzinfo=timezone.utc)
    assert [each.thread_id for each in remote.threads(owner="ada", since=early).threads] == ["one"]


def _threads(saver: BaseCheckpointSaver[Any]) -> list[str]:
    return sorted({each.config["configurable"]["thread_id"] for each in saver.list(None)})


def test_all_threads_and_those_of_a_run_are_those_with_the_prefix(
    serve: Serve, make_saver: MakeSaver
) -> None:
    for thread in ("acme/1", "acme2/1", "1"):
        store(make_saver(), thread_config(thread), "1", {}, run_id="run")
    with HttpCheckpointSaver(serve(), thread_prefix="acme/") as remote:
        assert _threads(remote) == ["1"]
        assert len(list(remote.list(None, limit=1))) == 1
        remote.delete_for_runs(["run"])
        assert _threads(remote) == []
    assert _threads(make_saver()) == ["1", "acme2/1"]


def test_an_owner_is_deleted_within_the_prefix(serve: Serve, make_saver: MakeSaver) -> None:
    saver = make_saver()
    for thread, owner in {"acme/1": "acme/ada", "acme/2": "acme/bob", "1": "ada"}.items():
        store(saver, thread_config(thread), "1", {})
        saver.set_thread(thread, owner=owner)
    url = serve()
    with HttpCheckpointSaver(url, thread_prefix="acme/") as remote:
        with HttpStore(url) as memories:
            memories.put(("users", "ada"), "food", {"likes": "pizza"})
            report = remote.delete_owner("ada", memories=[("users", "{owner}")], store=memories)
            assert memories.search(()) == []
        assert (report.deleted, report.failed, report.memories) == (["1"], {}, 1)
        assert remote.delete_owner("ada").deleted == []
    assert _threads(saver) == ["1", "acme/2"]
    assert saver.delete_owner("ada").deleted == ["1"]


def test_memories_of_another_owner_with_the_end_of_the_name_stay(serve: Serve) -> None:
    url = serve()
    with HttpCheckpointSaver(url, thread_prefix="acme/") as remote, HttpStore(url) as memories:
        for label in ("eu/ada", "ada"):
            memories.put(("users", label), "food", {"likes": "pizza"})
        report = remote.delete_owner("eu/ada", memories=[("users", "{owner}")], store=memories)
        assert report.namespaces == [("users", "eu/ada")]
        assert memories.list_namespaces() == [("users", "ada")]


def test_a_deleted_thread_outside_the_prefix_is_named_by_its_whole_id(
    serve: Serve, make_saver: MakeSaver
) -> None:
    for thread in ("acme-1", "elsewhere"):
        store(make_saver(), thread_config(thread), "1", {})
        make_saver().set_thread(thread, owner="acme-ada")
    with HttpCheckpointSaver(serve(), thread_prefix="acme-") as remote:
        assert sorted(remote.delete_owner("ada").deleted) == ["1", "elsewhere"]
