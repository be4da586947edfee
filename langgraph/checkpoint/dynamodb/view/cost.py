"""The cost of a namespace's checkpoints."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, scan_namespace
from langgraph.checkpoint.dynamodb._operations.usage import StepCost, Sum, steps_of
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.view.documents import Cost, Price, Totals


def cost(storage: Storage, partition: Partition) -> Op[Cost]:
    """Return the cost of each checkpoint of a namespace, oldest first, and of all. Reads all of its items."""
    inventory = yield from scan_namespace(storage, partition, measured=True)
    steps = list(steps_of(inventory))
    total = Sum(len(inventory.sizes), sum(inventory.sizes.values()))
    units = sum(each.write_units for each in steps)
    totals = Totals(
        items=total.items,
        bytes=total.bytes,
        segments=len(inventory.segments),
        write_units=units,
        write_dollars=units * WRITE_UNIT_DOLLARS,
        month_dollars=total.month_dollars,
        missing_segments=len(inventory.named(inventory.checkpoint_ids) - inventory.segments.keys()),
    )
    return Cost(prices=[_price(inventory, each) for each in steps], totals=totals)


def _price(inventory: Inventory, step: StepCost) -> Price:
    parent = items.text(inventory.heads[step.checkpoint_id], items.PARENT)
    named = inventory.named([step.checkpoint_id]) & inventory.segments.keys()
    shared = named & (inventory.named([parent]) if parent is not None else set())
    return Price(
        checkpoint=step.checkpoint_id,
        items=step.stored.items,
        bytes=step.stored.bytes,
        new_segments=step.new.items,
        new_bytes=step.new.bytes,
        shared_segments=len(shared),
        shared_bytes=sum(inventory.sizes[items.segment_sk(each)] for each in shared),
        write_units=step.write_units,
        read_units=step.read_units,
        write_dollars=step.write_units * WRITE_UNIT_DOLLARS,
        read_dollars=step.read_units * READ_UNIT_DOLLARS,
    )
