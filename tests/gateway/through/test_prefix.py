"""A program with plain thread ids runs with a tenant's token, once the client knows the prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointerInputError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._operations.overview import scan_threads
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.gateway.conftest import always
from tests.support.checkpoints import Conversation, store, thread_config
from tests.support.gateway_service import gateway_service

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
