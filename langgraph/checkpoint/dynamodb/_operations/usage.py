"""The size and cost of a thread, computed from its items: stored bytes, cost of each step, what a prune would free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.pricing import read_units, stored_dollars, write_units
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID
from langgraph.checkpoint.dynamodb._operations.delete import Age, choose_old
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory

# An index entry consists of keys only, so writing it takes one unit.
_INDEX_UNITS = 1


@dataclass
class Sum:
    """A number of items and their total bytes."""

    items: int = 0
    bytes: int = 0

    def add(self, size_bytes: int) -> None:
        """Count one more item."""
        self.items += 1
        self.bytes += size_bytes

    def include(self, other: Sum) -> None:
        """Count all of another sum."""
        self.items += other.items
        self.bytes += other.bytes

    @property
    def month_dollars(self) -> float:
        """The cost of storing it for a month, in US dollars."""
        return stored_dollars(self.bytes, self.items)


@dataclass(frozen=True)
class StepCost:
    """The cost of storing a checkpoint with its pending writes, and of reading it."""

    checkpoint_id: str
    write_units: int
    read_units: float
    stored: Sum
    """Its head and pending writes."""
    new: Sum
    """The segments that no earlier checkpoint names."""


def steps_of(inventory: Inventory) -> Iterator[StepCost]:
    """Yield the cost of each checkpoint of a namespace, oldest first.

    A checkpoint costs its own items and the segments that no earlier one names.
    """
    sizes, seen = inventory.sizes, set[bytes]()
    for name in sorted(inventory.heads):
        own = [sizes[items.sort_key(each)] for each in inventory.items_of([name])]
        named = inventory.named([name]) & inventory.segments.keys()
        new = [sizes[items.segment_sk(each)] for each in named - seen]
        seen |= named
        written = sum(map(write_units, (*own, *new)))
        read = read_units(sum(own), consistent=True) + sum(
            read_units(sizes[items.segment_sk(each)]) for each in named
        )
        indexed = _INDEX_UNITS if RUN_ID in inventory.heads[name] else 0
        yield StepCost(name, written + indexed, read, Sum(len(own), sum(own)), Sum(len(new), sum(new)))


@dataclass
class Pruned:
    """The checkpoints and items that a prune deletes."""

    checkpoints: int = 0
    freed: Sum = field(default_factory=Sum)
    write_units: int = 0
    """The write units of deleting them, which are as many as those of writing them."""

    @classmethod
    def sum_of(cls, some: Iterable[Pruned]) -> Pruned:
        """Add up several prunes."""
        total = cls()
        for each in some:
            total.checkpoints += each.checkpoints
            total.freed.include(each.freed)
            total.write_units += each.write_units
        return total

    def totals(self) -> dict[str, int]:
        """Return the totals by name."""
        return {
            "checkpoints": self.checkpoints,
            "items": self.freed.items,
            "bytes": self.freed.bytes,
            "write_units": self.write_units,
        }


def pruned(inventories: Sequence[Inventory], count: int, is_old: Age) -> Pruned:
    """Return what a prune would delete that keeps the newest `count` checkpoints and those that are not old."""
    found = Pruned()
    choice = choose_old(inventories, count, is_old)
    for inventory in inventories:
        gone = choice[inventory.partition.pk]
        found.checkpoints += len(gone & inventory.heads.keys())
        freed = inventory.named(gone) - inventory.named(inventory.checkpoint_ids - gone)
        keys = [items.sort_key(each) for each in inventory.items_of(sorted(gone))]
        keys += [items.segment_sk(each) for each in freed & inventory.segments.keys()]
        for each in keys:
            found.freed.add(inventory.sizes[each])
            found.write_units += write_units(inventory.sizes[each])
    return found
