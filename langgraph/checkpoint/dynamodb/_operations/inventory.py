"""The inventory of a namespace, as a deletion reads it: all its items, without the data of segments."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from .._format import items, pricing, schema, segments
from .._format.items import Item, Partition
from .._runtime.requests import Query
from .._runtime.steps import Op
from .._runtime.storage import Storage
from ..protocol import Thread, is_committed
from .reads import LoadedSegments

# Everything but the data of segments, which is most of a thread's bytes.
_ATTRIBUTES = (
    schema.PARTITION_KEY,
    schema.SORT_KEY,
    schema.RUN_ID,
    schema.TTL_ATTRIBUTE,
    items.FORMAT,
    items.PARENT,
    items.STARTED_FROM,
    items.REBUILT_FROM,
    items.CREATED_AT,
    items.REGISTERED,
    schema.ALIVE_UNTIL,
    items.SHOWN_UNTIL,
    items.TTL_SECONDS,
    items.METADATA,
    *items.EPOCHS,
    *items.PARTS,
)


@dataclass
class Inventory:
    """All items of one namespace."""

    partition: Partition
    heads: dict[str, Item] = field(default_factory=dict)
    writes: dict[str, list[Item]] = field(default_factory=dict)
    segments: dict[bytes, Item] = field(default_factory=dict)
    markers: list[Item] = field(default_factory=list)
    lock: Item | None = None
    committed: AbstractSet[str] = frozenset()
    """The checkpoints whose heads are committed."""
    read_at: float = 0.0
    """When the items were read, in epoch seconds."""
    indexes: LoadedSegments = field(init=False)
    sizes: dict[str, int] = field(default_factory=dict)
    """The size of each item in bytes, by its sort key, if it was asked for."""

    def __post_init__(self) -> None:
        """Start without index segments."""
        self.indexes = LoadedSegments(self.partition.pk)

    def add(self, item: Item) -> None:
        """Add an item of the namespace."""
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

    def items_of(self, checkpoint_ids: Iterable[str]) -> list[Item]:
        """Return the heads and writes items of some checkpoints."""
        found: list[Item] = []
        for each in checkpoint_ids:
            if each in self.heads:
                found.append(self.heads[each])
            found += self.writes.get(each, ())
        return found

    def named(self, checkpoint_ids: Iterable[str]) -> set[bytes]:
        """Return the ids of all segments that the items of some checkpoints name, directly or by index segments."""
        return segments.reach(items.named_ids(self.items_of(checkpoint_ids)), self.indexes.contents)

    def mark_committed(self, thread: Thread | None) -> None:
        """Set `committed` to the checkpoints whose heads are committed, going by the thread."""
        self.committed = {name for name, head in self.heads.items() if is_committed(head, items.BODY, thread)}

    @property
    def shown(self) -> set[str]:
        """The committed checkpoints that had not expired for readers."""
        return {each for each in self.committed if items.is_shown(self.heads[each], self.read_at)}

    @property
    def checkpoint_ids(self) -> set[str]:
        """The ids of all checkpoints with a head or writes."""
        return self.heads.keys() | self.writes.keys()


def scan_namespace(storage: Storage, partition: Partition, *, with_sizes: bool = False) -> Op[Inventory]:
    """Read the items of a namespace. For sizes, it transfers all data."""
    inventory = Inventory(partition, read_at=storage.clock())
    query = Query(partition.pk, attributes=() if with_sizes else _ATTRIBUTES)
    while not query.done:
        for item in (yield from storage.table.query_page(query)):
            if with_sizes:
                inventory.sizes[items.sort_key(item)] = pricing.item_bytes(item)
                item.pop(items.DATA, None)
            inventory.add(item)
    return inventory


def read_indexes(storage: Storage, inventory: Inventory) -> Op[None]:
    """Read the index segments that the items of a namespace name; `Inventory.named` needs them."""
    for head in inventory.heads.values():
        items.check_format(head)
    ids = items.named_ids(inventory.items_of(inventory.checkpoint_ids))
    for each in (yield from inventory.indexes.read_indexes(storage, ids)):
        # It has expired since the namespace was read, and DynamoDB has removed it.
        inventory.segments.pop(each, None)
