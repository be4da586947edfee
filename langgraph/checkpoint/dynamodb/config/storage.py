"""The options that classes of several types have."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from .fields import Reference, split

OnEvent = Annotated[
    Reference | None,
    Field(
        description="A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the"
        " end of the call and must return quickly. Its errors are logged."
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
CachePrefix = Annotated[
    tuple[str, ...],
    BeforeValidator(split),
    Field(
        description="Labels in front of every namespace, such as the tenant. `clear()` deletes only entries under them."
    ),
]
