"""Change what a saver works with: its storage, or what makes its requests."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.drivers import Runner, TransportOwner
from langgraph.checkpoint.dynamodb._runtime.steps import Call


def change_storage(saver: DynamoDBSaver, **changes: Any) -> None:
    """Give a saver a storage with other fields, such as another clock."""
    saver._storage = replace(saver.storage, **changes)  # noqa: SLF001


class _Changed:
    """A transport with other methods."""

    def __init__(self, transport: Any, changes: dict[str, Any]) -> None:
        self._transport = transport
        self.__dict__ |= changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def change_requests(
    saver: TransportOwner,
    *,
    send: Callable[[Call], Any] | None = None,
    asend: Callable[[Call], Awaitable[Any]] | None = None,
) -> Runner:
    """Let other functions make a saver's requests; return the runner that it had."""
    changes = {"send": send, "asend": asend}
    before = saver.runner
    changed: Any = _Changed(
        saver.transport, {name: each for name, each in changes.items() if each is not None}
    )
    saver.runner = Runner(changed)
    return before
