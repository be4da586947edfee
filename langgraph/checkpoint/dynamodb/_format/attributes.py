"""The attributes of each kind of item of a thread, with their types: what `verify` checks and docs/design.md lists.

A new attribute needs a row here and in that table of items; `tests/format/test_stored_attributes.py` compares both with
what operations store.
"""

from __future__ import annotations

from collections.abc import Mapping

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import (
    ACTIVE_DAY,
    ALIVE_UNTIL,
    LAST_ACTIVE,
    OWNER,
    RUN_ID,
    TTL_ATTRIBUTE,
)

HEAD = "head"
WRITES = "writes of a task"
_KINDS = {
    items.SEGMENTS: "segment",
    items.NAMESPACES: "namespace marker",
    items.THREAD: "thread item",
    items.LOCK: "lock",
}
# By the kind of item, and by the attribute's name: the type as DynamoDB's low-level interface names it.
TYPES: Mapping[str, Mapping[str, str]] = {
    HEAD: {
        items.FORMAT: "N",
        items.PARENT: "S",
        items.REBUILT_FROM: "S",
        items.METADATA: "S",
        items.SEALED_METADATA: "B",
        items.BODY: "B",
        items.EPOCH: "B",
        RUN_ID: "S",
        items.TTL_SECONDS: "N",
        TTL_ATTRIBUTE: "N",
        ALIVE_UNTIL: "N",
        items.SHOWN_UNTIL: "N",
    },
    WRITES: {
        items.WRITES: "B",
        items.EPOCH_NAMES[items.WRITES]: "B",
        **dict.fromkeys(items.SPECIAL_WRITES.values(), "B"),
        **{items.EPOCH_NAMES[each]: "B" for each in items.SPECIAL_WRITES.values()},
        items.ORDER: "N",
        items.CREATED_AT: "N",
        TTL_ATTRIBUTE: "N",
    },
    "segment": {items.DATA: "B", items.CREATED_AT: "N", TTL_ATTRIBUTE: "N"},
    "namespace marker": {items.REGISTERED: "B", items.STARTED_FROM: "S", TTL_ATTRIBUTE: "N"},
    "thread item": {
        items.EPOCH: "B",
        items.PENDING: "BOOL",
        items.PREVIOUS: "BS",
        items.CLAIM: "B",
        items.CLAIMED_UNTIL: "N",
        items.TTL_SECONDS: "N",
        TTL_ATTRIBUTE: "N",
        ALIVE_UNTIL: "N",
        items.KEPT_UNTIL: "N",
        items.KEPT_BEFORE: "N",
        LAST_ACTIVE: "N",
        ACTIVE_DAY: "S",
        items.CREATED_AT: "N",
        OWNER: "S",
        items.ABOUT: "B",
    },
    "lock": {items.HOLDER: "B", items.HELD_UNTIL: "N", TTL_ATTRIBUTE: "N"},
}


def kind_of(item: Item) -> str | None:
    """Return the kind of an item of a thread; `None` if its sort key is of no kind.

    Raises:
        CheckpointCorruptionError: It is under the checkpoints' prefix, and neither a head nor a task's writes.
    """
    sk = items.sort_key(item)
    if sk.startswith(items.CHECKPOINTS):
        return HEAD if items.is_head(item) else WRITES
    return next((kind for begins, kind in _KINDS.items() if sk.startswith(begins)), None)


def check_types(item: Item) -> None:
    """Check that an item's attributes have the types that this package writes.

    Raises:
        CheckpointCorruptionError: One of them has another type, or is a number out of range.
    """
    for name, type_name in TYPES.get(kind_of(item) or "", {}).items():
        if name not in item:
            continue
        if type_name not in item[name]:
            raise items.damaged(item, f"its attribute {name} is not of type {type_name}")
        if type_name == "N":
            items.number(item, name)
