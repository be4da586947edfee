"""The cost of a namespace's checkpoints."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb._operations.usage import Account, StepCost, account_of
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.view.documents import Cost, Price, Totals
from langgraph.checkpoint.dynamodb.view.namespace_view import NamespaceView


def cost(namespace: NamespaceView) -> Op[Cost]:
    """Return the cost of each checkpoint, oldest first, and of all. Reads every segment that is not cached."""
    yield from namespace.read_to_end()
    yield from namespace.measure_segments()
    account = account_of([namespace.inventory])
    return Cost(prices=[_price(namespace, each) for each in account.steps], totals=_totals(account))


def _price(namespace: NamespaceView, step: StepCost) -> Price:
    inventory = namespace.inventory
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


def _totals(account: Account) -> Totals:
    units = sum(each.write_units for each in account.steps)
    return Totals(
        items=account.total.items,
        bytes=account.total.bytes,
        segments=account.segments.items,
        segment_bytes=account.segments.bytes,
        write_units=units,
        write_dollars=units * WRITE_UNIT_DOLLARS,
        month_dollars=account.total.month_dollars,
        missing_segments=account.missing,
    )
