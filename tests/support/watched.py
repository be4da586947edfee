"""Sessions that note the clients they make, and a short use of a saver that needs one."""

from typing import Any

import boto3
import pytest
from aiobotocore.httpsession import AIOHTTPSession

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime import native
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

BIG = "x" * 50_000


class WatchedSession(boto3.Session):
    """A boto3 session that notes the blocking clients it makes."""

    def __init__(self) -> None:
        """Take the session of this environment."""
        super().__init__()
        self.clients: list[Any] = []
        make = self.client

        def made(service_name: Any, **options: Any) -> Any:
            self.clients.append(make(service_name, **options))
            return self.clients[-1]

        vars(self)["client"] = made


class WatchedLoops:
    """Notes how many async clients are made, and on how many event loops connections are opened and open."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Watch all that are made from now on."""
        self.clients = self.opened = self.open = 0
        make, enter, leave = native.make_client, AIOHTTPSession.__aenter__, AIOHTTPSession.__aexit__

        def made(*arguments: Any) -> Any:
            self.clients += 1
            return make(*arguments)

        async def entered(session: Any) -> Any:
            self.opened += 1
            self.open += 1
            return await enter(session)

        async def left(session: Any, *exception: Any) -> None:
            self.open -= 1
            await leave(session, *exception)

        patch.setattr(native, "make_client", made)
        patch.setattr(AIOHTTPSession, "__aenter__", entered)
        patch.setattr(AIOHTTPSession, "__aexit__", left)


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
