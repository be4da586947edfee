"""The attributes of each kind of item of a thread, with their types, and those it must have, which `verify` checks.

docs/design.md lists them.

A new attribute needs a row here and in that table of items; `tests/format/test_stored_attributes.py` compares both with
what operations store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from . import items
from .items import Item
from .schema import ACTIVE_DAY, ALIVE_UNTIL, LAST_ACTIVE, OWNER, RUN_ID, TTL_ATTRIBUTE

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


# The attributes that each item of a kind has.
_ALWAYS: Mapping[str, Sequence[str]] = {
    HEAD: (items.FORMAT, items.BODY, items.EPOCH),
    WRITES: (items.CREATED_AT,),
    "segment": (items.DATA, items.CREATED_AT),
    "namespace marker": (items.REGISTERED,),
    "thread item": (items.EPOCH,),
}
_SPECIAL = tuple(items.SPECIAL_WRITES.values())
# Attributes that need others: if an item has the first, it has one of the others.
_WITH: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    HEAD: (
        (items.BODY, (items.METADATA, items.SEALED_METADATA)),
        (items.TTL_SECONDS, (TTL_ATTRIBUTE,)),
        (TTL_ATTRIBUTE, (items.TTL_SECONDS,)),
        (TTL_ATTRIBUTE, (ALIVE_UNTIL,)),
    ),
    WRITES: (
        (items.CREATED_AT, (items.WRITES, *_SPECIAL)),
        (items.ORDER, _SPECIAL),
        *((each, (items.ORDER,)) for each in _SPECIAL),
        *((items.EPOCH_NAMES[each], (each,)) for each in (items.WRITES, *_SPECIAL)),
    ),
    "thread item": (
        (LAST_ACTIVE, (ACTIVE_DAY,)),
        (ACTIVE_DAY, (LAST_ACTIVE,)),
        (LAST_ACTIVE, (items.CREATED_AT,)),
        (OWNER, (items.ABOUT,)),
        (items.KEPT_UNTIL, (ALIVE_UNTIL,)),
        (items.KEPT_UNTIL, (TTL_ATTRIBUTE,)),
        (items.KEPT_BEFORE, (items.KEPT_UNTIL,)),
    ),
}


def check_attributes(item: Item) -> None:
    """Check that an item has the attributes that this package writes, of the types that it writes.

    Raises:
        CheckpointCorruptionError: One of them is missing, has another type, or is a number out of range.
    """
    kind = kind_of(item) or ""
    for name, type_name in TYPES.get(kind, {}).items():
        if name not in item:
            continue
        if type_name not in item[name]:
            raise items.damaged(item, f"its attribute {name} is not of type {type_name}")
        if type_name == "N":
            items.number(item, name)
    for missing in _missing(item, kind):
        raise items.damaged(item, f"its attribute {missing} is missing")


def _missing(item: Item, kind: str) -> Iterator[str]:
    """Yield the attributes, or the alternatives, that an item of a kind lacks."""
    yield from (name for name in _ALWAYS.get(kind, ()) if name not in item)
    for name, others in _WITH.get(kind, ()):
        if name in item and not any(each in item for each in others):
            yield " or ".join(others)
    if kind in (HEAD, WRITES):
        yield from (
            items.EPOCH_NAMES[name]
            for name, part in items.parts_of(item)
            if part.ids and items.EPOCH_NAMES[name] not in item
        )
