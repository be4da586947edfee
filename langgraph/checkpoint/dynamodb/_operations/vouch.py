"""What a deletion says of the checkpoints that it leaves: which of them count."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import seal_plain
from langgraph.checkpoint.dynamodb._format.content import pack_roster
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import ROSTER_HEADS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, as_read, epoch_in
from langgraph.checkpoint.dynamodb._operations.threads import Claim
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather


def vouch(table: Table, inventory: Inventory, claim: Claim, epoch: bytes) -> Op[None]:
    """List the heads that count in the namespace's roster; the newest gets the new epoch instead, with its writes.

    So the next put of the conversation can go on from it, and readers tell damage of it from what never counted.
    """
    counted = sorted(inventory.counted, reverse=True)
    listed = [name for name in counted[1:] if not epoch_in(inventory.heads[name], items.BODY, {epoch})]
    yield from _store_roster(table, inventory, [inventory.heads[name] for name in listed[:ROSTER_HEADS_MAX]])
    newest = inventory.items_of(counted[:1])
    yield from gather([_stamp(table, item, claim.epochs, epoch) for item in newest])


def _store_roster(table: Table, inventory: Inventory, heads: Sequence[Item]) -> Op[None]:
    """Write the roster, unless somebody else has since it was read: then the claim was lost, as is found out next."""
    old, new = inventory.roster, None
    if heads:
        raw = pack_roster({items.checkpoint_id_of(head): items.head_digest(head) for head in heads})
        expiries = [items.number(head, TTL_ATTRIBUTE) for head in heads]
        expires_at = None if None in expiries else max(each for each in expiries if each is not None)
        new = items.roster_item(inventory.at, seal_plain(raw, items.ROSTER), expires_at)
    if new == old:
        return
    condition, names, values = "attribute_not_exists(#heads)", {"#heads": items.HEADS}, Item()
    if old is not None:
        condition, values = "#heads = :old", {":old": old[items.HEADS]}
    if new is None:
        yield from table.delete_if(items.key(inventory.at.pk, items.ROSTER), condition, names, values)
    else:
        removed = [TTL_ATTRIBUTE] if TTL_ATTRIBUTE not in new else []
        yield from table.set_attributes(new, condition, names, values, removed=removed)


def _stamp(table: Table, item: Item, epochs: AbstractSet[bytes], new: bytes) -> Op[None]:
    """Give an item the new epoch, but only as it was read: what has taken its place may name what is about to go.

    Writes keep epochs of which nobody knows that they count.
    """
    is_head = items.is_head(item)
    stamped = [
        name
        for name in items.EPOCHS
        if name in item
        and (is_head or bytes(item[name].get("B", b"")) in epochs)
        and item[name] != {"B": new}
    ]
    if not stamped:
        return
    condition, names, values = as_read(item, (*stamped, *items.PARTS))
    expression = "SET " + ", ".join(f"#a{position} = :new" for position in range(len(stamped)))
    yield from table.update_if(item, expression, condition, names, {**values, ":new": {"B": new}})
