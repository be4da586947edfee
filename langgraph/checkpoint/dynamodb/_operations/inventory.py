"""What a namespace has in the table, as a deletion reads it: everything but the data of its segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from langgraph.checkpoint.base import CheckpointMetadata

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import parse_metadata
from langgraph.checkpoint.dynamodb._format.content import delta_counters, read_roster
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, SORT_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.reads import Segments, read_segments
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op

# Everything but a segment's data, which is most of what a thread has.
_ATTRIBUTES = (
    PARTITION_KEY,
    SORT_KEY,
    RUN_ID,
    TTL_ATTRIBUTE,
    items.FORMAT,
    items.PARENT,
    items.STARTED_FROM,
    items.REBUILT_FROM,
    items.CREATED_AT,
    items.ENTERED,
    items.HEADS,
    items.METADATA,
    items.READABLE_UNTIL,
    *items.EPOCHS,
    *items.PARTS,
)


@dataclass
class Inventory:
    """What one namespace has in the table."""

    at: Partition
    heads: dict[str, Item] = field(default_factory=dict)
    writes: dict[str, list[Item]] = field(default_factory=dict)
    segments: dict[bytes, Item] = field(default_factory=dict)
    entries: list[Item] = field(default_factory=list)
    roster: Item | None = None
    lock: Item | None = None
    counted: AbstractSet[str] = frozenset()
    """The checkpoints that count."""
    indexes: Segments = field(default_factory=Segments)
    sizes: dict[str, int] = field(default_factory=dict)
    """What each item takes up, by its sort key, where the inventory was taken to measure."""

    def add(self, item: Item) -> None:
        """Take an item of the namespace in."""
        sk = items.sort_key(item)
        if sk.startswith(items.SEGMENTS):
            self.segments[items.segment_id_of(item)] = item
        elif sk.startswith(items.CHECKPOINTS):
            checkpoint_id = items.checkpoint_id_of(item)
            if items.is_head(item):
                self.heads[checkpoint_id] = item
            else:
                self.writes.setdefault(checkpoint_id, []).append(item)
        elif sk.startswith(items.NAMESPACES):
            self.entries.append(item)
        elif sk == items.ROSTER:
            self.roster = item
        elif sk == items.LOCK:
            self.lock = item

    def items_of(self, checkpoint_ids: Iterable[str]) -> Iterator[Item]:
        """The heads and writes of some checkpoints."""
        for each in checkpoint_ids:
            if each in self.heads:
                yield self.heads[each]
            yield from self.writes.get(each, ())

    def named(self, checkpoint_ids: Iterable[str]) -> set[bytes]:
        """Every segment that these checkpoints' items need."""
        return reach(items.named_ids(self.items_of(checkpoint_ids)), self.indexes.contents)

    def is_whole(self, checkpoint_id: str) -> bool:
        """Whether every segment that a head names is there; where one is not, the head never counted."""
        return (
            reach(items.named_ids([self.heads[checkpoint_id]]), self.indexes.contents) <= self.segments.keys()
        )

    def count(self, epochs: AbstractSet[bytes]) -> None:
        """Find out which heads count, given the epochs whose heads do."""
        roster = {} if self.roster is None else read_roster(self.roster)
        self.counted = {
            name
            for name, head in self.heads.items()
            if epoch_in(head, items.BODY, epochs) or roster.get(name) == items.head_digest(head)
        }

    @property
    def checkpoint_ids(self) -> set[str]:
        """Every checkpoint that has a head or writes."""
        return self.heads.keys() | self.writes.keys()


def take_inventory(
    table: Table, at: Partition, *, with_indexes: bool = True, measured: bool = False
) -> Op[Inventory]:
    """Read what a namespace has, and the index segments that say what its items name.

    To measure is to look only: everything is read, at half the price, and nothing may be deleted by it.
    """
    inventory = Inventory(at)
    query = Query(at.pk, consistent=False) if measured else Query(at.pk, attributes=_ATTRIBUTES)
    while not query.done:
        for item in (yield from table.query_page(query)):
            if measured:
                inventory.sizes[items.sort_key(item)] = item_bytes(item)
                item.pop(items.DATA, None)
            inventory.add(item)
    if with_indexes:
        for head in inventory.heads.values():
            items.check_format(head)
        ids = items.named_ids(inventory.items_of(inventory.checkpoint_ids))
        yield from read_segments(table, None, at.pk, ids, inventory.indexes)
    return inventory


def epoch_in(item: Item, name: str, epochs: AbstractSet[bytes]) -> bool:
    """Whether a part of an item was stored under one of some epochs."""
    epoch = items.epoch_of(item, name)
    return epoch is not None and bytes(epoch.get("B", b"")) in epochs


def rebuilt_from(head: Item) -> str | None:
    """The oldest checkpoint that a head's delta channels are rebuilt from; "" is the very first, None is none.

    A head of the first format does not say it: one that counts updates, or may do so, needs all.
    """
    if items.number(head, items.FORMAT) != 1:
        return items.text(head, items.REBUILT_FROM)
    metadata = first_metadata(head)
    return "" if metadata is None or delta_counters(metadata) else None


def first_metadata(head: Item) -> CheckpointMetadata | None:
    """The metadata of a head of the first format, if they are readable."""
    text = items.text(head, items.METADATA)
    metadata: CheckpointMetadata | None = None if text is None else parse_metadata(head, text)
    return metadata


def as_read(item: Item, attributes: Sequence[str]) -> tuple[str, dict[str, str], Item]:
    """The condition that attributes of an item, `#a0` and so on, are as they were read, and its names and values."""
    names, values, conditions = {"#pk": PARTITION_KEY}, Item(), ["attribute_exists(#pk)"]
    for position, name in enumerate(attributes):
        names[f"#a{position}"] = name
        if name in item:
            conditions.append(f"#a{position} = :a{position}")
            values[f":a{position}"] = item[name]
        else:
            conditions.append(f"attribute_not_exists(#a{position})")
    return " AND ".join(conditions), names, values
