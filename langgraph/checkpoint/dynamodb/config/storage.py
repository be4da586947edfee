"""The options that this package's classes share: how values are serialized, encrypted, bounded and cached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

from pydantic import Field

from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES
from langgraph.checkpoint.dynamodb.config.fields import NotNegative, Positive, Reference
from langgraph.checkpoint.dynamodb.config.keys import EncryptionKey
from langgraph.checkpoint.dynamodb.config.serde import Serde
from langgraph.checkpoint.dynamodb.config.types import Options


class EventOptions(Options):
    """The option that every constructor has."""

    on_event: Reference | None = Field(
        default=None,
        description="A function that receives an event for each operation, or a class whose objects do, as"
        " module:name.",
    )


class SerializerOptions(EventOptions):
    """The serializer, and `encryption_key`, which no constructor has."""

    serde: Serde | None = Field(
        default=None,
        description="Options of LangGraph's JsonPlusSerializer; or a serializer, or a function that returns one, as"
        " module:name.",
    )
    encryption_key: EncryptionKey | None = Field(
        default=None,
        description="Where the AES key is. With it, this process encrypts everything except ids, sizes and times.",
    )


class ValueOptions(SerializerOptions):
    """The options of the constructors of classes that open what they read, whatever has stored it."""

    allow_unencrypted: bool = Field(
        default=False,
        description="Whether to read unencrypted data too, although there is a key; only during a migration.",
    )


class CodecOptions(ValueOptions):
    """The options of constructors of classes that reach the table themselves."""

    bound_to: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the table that encrypted data is bound to, if it is another one: the table from which"
        " this one was restored or copied.",
    )


class SaverOptions(ValueOptions):
    """The options of both savers' constructors."""

    encrypt_metadata: bool | None = Field(
        default=None,
        description="Whether to pass metadata through the serializer too; by default if the serializer encrypts.",
    )
    cache_bytes: NotNegative = Field(
        default=CACHE_BYTES,
        description="The most bytes of memory for the cache of recent checkpoints.",
    )
    owner_from: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The key of a config that names a thread's owner, such as user_id; without it, puts"
            " enter no thread in the directory."
        ),
    )


class StorageOptions(SaverOptions, CodecOptions):
    """The options of a saver about what is stored in its table."""

    share_equal_pieces: bool = Field(
        default=True,
        description="Whether to reuse a stored piece that is equal to a new one, instead of storing it again.",
    )
    checkpoint_bytes_max: Positive = Field(
        default=CHECKPOINT_BYTES_MAX,
        description="The most bytes that a checkpoint's values, or its pending writes, may have.",
    )
    owner_key: EncryptionKey | None = Field(
        default=None,
        description="Where the key of the digests of owners' names is, if the saver encrypts.",
    )


def openers(
    make: Callable[[Any], Any],
) -> tuple[Callable[[Any], AbstractContextManager[Any]], Callable[[Any], AbstractAsyncContextManager[Any]]]:
    """Return `open` and `aopen` of a type whose objects are made from options, and serve sync and async code.

    Only a type on a table has the option `setup`.
    """

    @contextmanager
    def opened(options: ValueOptions) -> Iterator[Any]:
        with make(options) as made:
            if getattr(options, "setup", False):
                made.setup()
            yield made

    @asynccontextmanager
    async def aopened(options: ValueOptions) -> AsyncIterator[Any]:
        # In a thread, since a key may be in a file, or behind a request.
        async with await asyncio.to_thread(make, options) as made:
            if getattr(options, "setup", False):
                await made.asetup()
            yield made

    return opened, aopened
