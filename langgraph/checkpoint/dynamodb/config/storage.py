"""The options that classes of several types have, and how objects are opened that serve sync and async code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from langgraph.checkpoint.dynamodb.config.fields import Reference, split
from langgraph.checkpoint.dynamodb.config.keys import EncryptionKey
from langgraph.checkpoint.dynamodb.config.serde import Serde
from langgraph.checkpoint.dynamodb.config.types import Options

OnEvent = Annotated[
    Reference | None,
    Field(
        description="A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the"
        " end of the call and must return quickly. Its errors are logged."
    ),
]
AllowUnencrypted = Annotated[
    bool,
    Field(
        description="Whether to read data that is not encrypted, or not bound to its place, although there is a key."
        " Use it only during a migration: somebody without the key may have written such data."
    ),
]
OwnerFrom = Annotated[
    str | None,
    Field(
        min_length=1,
        description="The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such"
        " as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists; without"
        " the option only `set_thread` does. A later run never changes an owner.",
    ),
]
CacheSerde = Annotated[
    Serde | None,
    Field(
        description="The serializer, by default LangGraph's `JsonPlusSerializer` without pickle. `EncryptedSerializer`"
        " encrypts values, bound to their namespace and key."
    ),
]
CachePrefix = Annotated[
    tuple[str, ...],
    BeforeValidator(split),
    Field(
        description="Labels in front of every namespace, such as the tenant. `clear()` deletes only entries under them."
    ),
]
Key = Annotated[
    EncryptionKey | None,
    Field(description="Where the AES key is. With it, `serde` becomes an `EncryptedSerializer`."),
]


def openers(
    make: Callable[[Any], Any],
) -> tuple[Callable[[Any], AbstractContextManager[Any]], Callable[[Any], AbstractAsyncContextManager[Any]]]:
    """Return `open` and `aopen` of a type whose objects are made from options, and serve sync and async code.

    Only a type on a table has the option `setup`.
    """

    @contextmanager
    def opened(options: Options) -> Iterator[Any]:
        with make(options) as made:
            if getattr(options, "setup", False):
                made.setup()
            yield made

    @asynccontextmanager
    async def aopened(options: Options) -> AsyncIterator[Any]:
        # In a thread, since a key may be in a file, or behind a request.
        async with await asyncio.to_thread(make, options) as made:
            if getattr(options, "setup", False):
                await made.asetup()
            yield made

    return opened, aopened
