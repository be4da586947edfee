"""The attributes of each kind of item, each with its type and with what it holds.

`verify` checks a thread's items by it. docs/design.md lists by it what items have, and docs/encrypt.md what shows
without the key. `tests/format/test_stored_attributes.py` compares it with what operations store, and looks for secrets
in what is not sealed.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from . import items
from .items import Item
from .schema import ACTIVE_DAY, ALIVE_UNTIL, LAST_ACTIVE, OWNER, RUN_ID, TTL_ATTRIBUTE


class Holds(Enum):
    """The kinds of content of attributes, as docs/encrypt.md says it."""

    ID = "an id, or random bytes"
    TIME = "a time"
    SIZE = "a size, a count or a state"
    SEALED = "content, which is encrypted"
    READABLE = "content, only without encryption"


HEAD = "head"
WRITES = "writes of a task"
_KINDS = {
    items.SEGMENTS: "segment",
    items.NAMESPACES: "namespace marker",
    items.THREAD: "thread item",
    items.LOCK: "lock",
}
_ID, _TIME, _COUNT = ("S", Holds.ID), ("N", Holds.TIME), ("N", Holds.SIZE)
_TOKEN, _SEALED = ("B", Holds.ID), ("B", Holds.SEALED)
_SEGMENT = {items.DATA: _SEALED, items.CREATED_AT: _TIME, TTL_ATTRIBUTE: _TIME}
_TOMBSTONE = {
    **dict.fromkeys(("revision", "replaced"), _ID),
    **dict.fromkeys(("updated_us", "buried_us", TTL_ATTRIBUTE, items.SHOWN_UNTIL), _TIME),
}
# By the kind of item and the attribute's name: the type as DynamoDB's low-level interface names it, and what it holds.
ATTRIBUTES: Mapping[str, Mapping[str, tuple[str, Holds]]] = {
    HEAD: {
        items.FORMAT: _COUNT,
        **dict.fromkeys((items.PARENT, items.REBUILT_FROM, RUN_ID), _ID),
        items.METADATA: ("S", Holds.READABLE),
        **dict.fromkeys((items.SEALED_METADATA, items.BODY), _SEALED),
        items.EPOCH: _TOKEN,
        **dict.fromkeys((items.TTL_SECONDS, TTL_ATTRIBUTE, ALIVE_UNTIL, items.SHOWN_UNTIL), _TIME),
    },
    WRITES: {
        **dict.fromkeys((items.WRITES, *items.SPECIAL_WRITES.values()), _SEALED),
        **{items.EPOCH_NAMES[each]: _TOKEN for each in (items.WRITES, *items.SPECIAL_WRITES.values())},
        **dict.fromkeys((items.ORDER, items.CREATED_AT, TTL_ATTRIBUTE), _TIME),
    },
    "segment": _SEGMENT,
    "namespace marker": {items.REGISTERED: _TOKEN, items.STARTED_FROM: _ID, TTL_ATTRIBUTE: _TIME},
    "thread item": {
        items.EPOCH: _TOKEN,
        items.PENDING: ("BOOL", Holds.SIZE),
        items.PREVIOUS: ("BS", Holds.ID),
        items.CLAIM: _TOKEN,
        **dict.fromkeys((items.CLAIMED_UNTIL, items.TTL_SECONDS, TTL_ATTRIBUTE, ALIVE_UNTIL), _TIME),
        **dict.fromkeys((items.KEPT_UNTIL, items.KEPT_BEFORE, LAST_ACTIVE, items.CREATED_AT), _TIME),
        ACTIVE_DAY: ("S", Holds.TIME),
        OWNER: _ID,
        items.ABOUT: _SEALED,
    },
    "lock": {items.HOLDER: _TOKEN, **dict.fromkeys((items.HELD_UNTIL, TTL_ATTRIBUTE), _TIME)},
    # Those of memories and cached nodes.
    "memory": {
        **{name: each for name, each in _TOMBSTONE.items() if name != items.SHOWN_UNTIL},
        **dict.fromkeys((items.FORMAT, "vectors"), _COUNT),
        "value": _SEALED,
        **dict.fromkeys(("created_us", items.TTL_SECONDS, "parts_until"), _TIME),
    },
    "tombstone": _TOMBSTONE,
    "vector": _SEGMENT,
    "segment of a memory": {**_SEGMENT, "part_of": _ID},
    "partition entry": {"registered_at": _TIME, RUN_ID: _ID, "leaving": _TOKEN},
    "cache entry": {items.DATA: _SEALED, TTL_ATTRIBUTE: _TIME},
    "cache marker": {RUN_ID: _ID},
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
    for name, (type_name, _) in ATTRIBUTES.get(kind, {}).items():
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
