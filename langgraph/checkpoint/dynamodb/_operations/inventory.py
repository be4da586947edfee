"""What a namespace has in the table, as a deletion reads it: everything but the data of its segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, SORT_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.reads import Segments, read_segments
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.protocol import Thread, is_committed

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
    items.REGISTERED,
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
    markers: list[Item] = field(default_factory=list)
    lock: Item | None = None
    committed: AbstractSet[str] = frozenset()
    """The checkpoints whose heads are committed."""
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
            self.markers.append(item)
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

    def mark_committed(self, thread: Thread | None) -> None:
        """Note which heads are committed in a thread."""
        self.committed = {name for name, head in self.heads.items() if is_committed(head, items.BODY, thread)}

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
