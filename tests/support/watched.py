"""Sessions that note the clients they make, and a short use of a saver that needs one."""

from __future__ import annotations

import importlib
from typing import Any

import boto3

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

BIG = "x" * 50_000


class WatchedSession:
    """A boto3 session that notes the clients it makes, with their options."""

    def __init__(self) -> None:
        """Take the session of this environment."""
        self.options: list[dict[str, Any]] = []
        self.clients: list[Any] = []
        self._session: Any = boto3.Session()

    def client(self, service_name: str, **options: Any) -> Any:
        """Make a client, as `boto3.Session.client` does."""
        self.options.append(options)
        self.clients.append(self._session.client(service_name, **options))
        return self.clients[-1]


class WatchedAsyncSession:
    """aiobotocore's session, which notes its clients' options and how many of them are open."""

    def __init__(self) -> None:
        """Take the session of this environment."""
        self.options: list[dict[str, Any]] = []
        self.open = 0
        self._session: Any = importlib.import_module("aiobotocore.session").get_session()

    def create_client(self, service_name: str, **options: Any) -> WatchedAsyncClient:
        """Make a client that is open within a context, as aiobotocore's session does."""
        self.options.append(options)
        return WatchedAsyncClient(self, self._session.create_client(service_name, **options))


class WatchedAsyncClient:
    """The context of one client; no generator, as aiobotocore's is none."""

    def __init__(self, session: WatchedAsyncSession, context: Any) -> None:
        """Watch the context of a client."""
        self._session = session
        self._context = context

    async def __aenter__(self) -> Any:
        """Open the client."""
        client = await self._context.__aenter__()
        self._session.open += 1
        return client

    async def __aexit__(self, *exception: Any) -> None:
        """Close the client."""
        await self._context.__aexit__(*exception)
        self._session.open -= 1


async def use(saver: DynamoDBSaver, thread_id: str, steps: int = 2) -> list[str]:
    """Store some checkpoints with writes, and list them."""
    config = thread_config(thread_id)
    for number in range(steps):
        checkpoint = checkpoint_of(f"{number:02}", {"big": BIG + str(number)})
        config = await saver.aput(config, checkpoint, METADATA, checkpoint["channel_versions"])
        await saver.aput_writes(config, [("channel", number)], "task")
    found = await saver.aget_tuple(thread_config(thread_id))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"big": BIG + str(steps - 1)}
    assert found.pending_writes == [("task", "channel", steps - 1)]
    return [
        each.config["configurable"]["checkpoint_id"] async for each in saver.alist(thread_config(thread_id))
    ]
