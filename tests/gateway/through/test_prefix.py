"""A program with plain thread ids runs with a tenant's token, once the client knows the prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointerInputError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._operations.overview import scan_threads
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.gateway.conftest import always
from tests.support.checkpoints import METADATA, Conversation, checkpoint_of, store, thread_config
from tests.support.gateway_service import gateway_service
from tests.support.operations import Side, ask, both_sides

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

pytestmark = pytest.mark.engines("dynamodb-local")

KEY = b"0123456789abcdef"


@pytest.fixture
def acme(make_saver: Callable[..., DynamoDBSaver]) -> Iterator[str]:
    """Run a gateway whose callers are all of the tenant acme, and give its address."""
    with gateway_service(make_saver(), authenticate=always(Principal("agents", "acme", RIGHTS))) as url:
        yield url


def _threads(saver: BaseCheckpointSaver[Any]) -> list[str]:
    return sorted({each.config["configurable"]["thread_id"] for each in saver.list(None)})


def _stored(saver: DynamoDBSaver) -> list[str]:
    """The threads in the table, without opening their values."""
    return sorted({
        thread_id for page in saver.runner.stream(scan_threads(saver.storage)) for thread_id in page.thread_ids
    })  # fmt: skip


@both_sides
@pytest.mark.parametrize("encrypts", [False, True])
def test_every_method_is_given_plain_ids_and_gives_them(
    acme: str, make_saver: Callable[..., DynamoDBSaver], side: Side, *, encrypts: bool
) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY) if encrypts else None
    direct = make_saver()
    with HttpCheckpointSaver(acme, serde=serde, thread_prefix="acme/") as remote:
        talk = Conversation(remote, "thread-1")
        first = talk.put(step=0)
        second = talk.put(step=1)
        assert second["configurable"]["thread_id"] == "thread-1"
        ask(side, remote, "put_writes", second, [("step", 2)], "task")
        found = ask(side, remote, "get_tuple", thread_config("thread-1"))
        assert (found.config, found.parent_config) == (second, first)
        assert [each.config for each in ask(side, remote, "list", thread_config("thread-1"))] == [
            second,
            first,
        ]
        if not encrypts:
            there = direct.get_tuple(thread_config("acme/thread-1"))
            assert there is not None
            assert (there.checkpoint, there.pending_writes) == (found.checkpoint, found.pending_writes)
        if not encrypts:
            ask(side, remote, "copy_thread", "thread-1", "copy")
        new = (checkpoint_of("9", {"x": 1}), METADATA, {"x": 1})
        stored = ask(side, remote, "put", thread_config("copy"), *new)
        ask(side, remote, "put_writes", stored, [("x", 1)], "task")
        assert stored == thread_config("copy", "", "9")
        ask(side, remote, "prune", ["copy"])
        [kept] = ask(side, remote, "list", thread_config("copy"))
        assert kept.pending_writes == [("task", "x", 1)]
        history = ask(
            side, remote, "get_delta_channel_history", config=thread_config("thread-1"), channels=["step"]
        )
        assert history.keys() == {"step"}
        assert _stored(direct) == ["acme/copy", "acme/thread-1"]
        for each in ("copy", "thread-1"):
            ask(side, remote, "delete_thread", each)
        assert _stored(direct) == []


def test_a_list_of_all_threads_has_those_with_the_prefix(
    serve: Callable[..., str], make_saver: Callable[..., DynamoDBSaver]
) -> None:
    for thread in ("acme/1", "acme2/1", "1"):
        Conversation(make_saver(), thread).put(step=0)
    with HttpCheckpointSaver(serve(), thread_prefix="acme/") as remote:
        assert _threads(remote) == ["1"]
        assert len(list(remote.list(None, limit=1))) == 1


def test_runs_are_deleted_in_threads_with_the_prefix_only(
    serve: Callable[..., str], make_saver: Callable[..., DynamoDBSaver]
) -> None:
    for thread in ("acme/1", "other/1"):
        store(make_saver(), thread_config(thread), "1", {}, run_id="run")
    with HttpCheckpointSaver(serve(), thread_prefix="acme/") as remote:
        remote.delete_for_runs(["run"])
    assert _stored(make_saver()) == ["other/1"]


def test_it_is_text() -> None:
    options: dict[str, Any] = {"thread_prefix": 7}
    with pytest.raises(CheckpointerInputError, match=r"^thread_prefix is 7; give text such as"):
        HttpCheckpointSaver("https://gateway.example", **options)


@pytest.mark.parametrize(
    "config", [None, {}, {"configurable": None}, {"configurable": {}}, {"configurable": {"thread_id": ""}}]
)
def test_what_names_no_thread_is_refused_as_without_it(acme: str, config: Any) -> None:
    messages = []
    for prefix in ("", "acme/"):
        with (
            HttpCheckpointSaver(acme, thread_prefix=prefix) as remote,
            pytest.raises(CheckpointerInputError) as caught,
        ):
            remote.get_tuple(config)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
