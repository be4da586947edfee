"""What a prune would free, computed from the items of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.pricing import write_units
from langgraph.checkpoint.dynamodb._operations.delete import Age, choose_old
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory


@dataclass
class Pruned:
    """The checkpoints and items that a prune deletes."""

    checkpoints: int = 0
    items: int = 0
    bytes: int = 0
    write_units: int = 0
    """The write units of deleting them, which are as many as those of writing them."""

    def include(self, other: Pruned) -> None:
        """Count all of another prune."""
        self.checkpoints += other.checkpoints
        self.items += other.items
        self.bytes += other.bytes
        self.write_units += other.write_units


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
            found.items += 1
            found.bytes += inventory.sizes[each]
            found.write_units += write_units(inventory.sizes[each])
    return found
