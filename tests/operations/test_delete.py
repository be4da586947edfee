"""A deletion that is interrupted at any request lets go of its thread: it can be repeated at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations import threads
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.change import change_requests
from tests.support.checkpoints import Conversation, all_items, noise
from tests.support.operations import Side, both_sides

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]
Deletion = tuple[str, tuple[Any, ...]]

pytestmark = pytest.mark.engines("dynamodb-local")

DELETIONS: list[Deletion] = [("delete_thread", ("thread",)), ("prune", (["thread"],))]


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a deletion that finds the thread claimed fail after one more try."""
    monkeypatch.setattr(threads, "BACKOFF_SECONDS_TOTAL", 0.0)


def _fill(saver: DynamoDBSaver) -> None:
    for namespace in ("", "sub"):
        conversation = Conversation(saver, "thread", namespace)
        config = conversation.put(big=noise(20_000))
    saver.put_writes(config, [("channel", 1)], "task")
    conversation.put(big=noise(20_000, 1))


def _interrupt(saver: DynamoDBSaver, number: int, deletion: Deletion) -> bool:
    """Interrupt a blocking deletion before one of its requests; say whether it had so many."""
    numbers = count()

    def send(call: Call) -> Any:
        if next(numbers) == number:
            raise KeyboardInterrupt
        return saver.transport.send(call)

    method, arguments = deletion
    before = change_requests(saver, send=send)
    try:
        getattr(saver, method)(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        saver.runner = before
    return False


async def _cancel(saver: DynamoDBSaver, number: int, deletion: Deletion) -> bool:
    """Cancel an async deletion, twice, during one of its requests; say whether it had so many."""
    numbers = count()

    async def send(call: Call) -> Any:
        if next(numbers) == number:
            task.cancel()
            asyncio.get_running_loop().call_soon(task.cancel)
        return await saver.transport.asend(call)

    method, arguments = deletion
    change_requests(saver, asend=send)
    task = asyncio.create_task(getattr(saver, f"a{method}")(*arguments))
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


@both_sides
@pytest.mark.parametrize(
    "deletion",
    [DELETIONS[0], pytest.param(DELETIONS[1], marks=pytest.mark.search)],
    ids=[method for method, _ in DELETIONS],
)
async def test_an_interrupted_deletion_lets_go_of_its_thread_at_any_request(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, side: Side, deletion: Deletion
) -> None:
    saver, other = make_saver(), make_saver()
    interrupted, number = True, 0
    while interrupted:
        _fill(saver)
        if side == "sync":
            interrupted = _interrupt(saver, number, deletion)
        else:
            interrupted = await _cancel(saver, number, deletion)
        (thread,) = all_items(client, table_name, begins=items.THREAD) or [{}]
        assert items.CLAIM not in thread, f"the claim was kept when request {number} was interrupted"
        other.delete_thread("thread")
        assert all_items(client, table_name) == [], f"after request {number}"
        number += 1
    assert number > 10


async def test_a_deletion_that_takes_too_long_for_its_caller_can_be_repeated_at_once(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    """What `asyncio.wait_for` gives up is cancelled, however often."""
    saver = make_saver()
    _fill(saver)
    requests = count()

    async def send(call: Call) -> Any:
        if next(requests) == 5:
            await asyncio.sleep(0.2)
        return await saver.transport.asend(call)

    change_requests(saver, asend=send)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(saver.adelete_thread("thread"), 0.1)
    await make_saver().adelete_thread("thread")
    assert all_items(client, table_name) == []
