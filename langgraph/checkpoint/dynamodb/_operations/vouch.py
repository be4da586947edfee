"""What a deletion says of the checkpoints that it leaves: which of them count, and how long they live."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import seal_plain
from langgraph.checkpoint.dynamodb._format.content import pack_roster
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import ROSTER_HEADS_MAX, SEGMENT_LIFETIMES
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, epoch_in
from langgraph.checkpoint.dynamodb._operations.threads import Claim, lives_shorter
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
    condition, names, values = _as_read(item, (*stamped, *items.PARTS))
    expression = "SET " + ", ".join(f"#a{position} = :new" for position in range(len(stamped)))
    yield from table.update_if(item, expression, condition, names, {**values, ":new": {"B": new}})


def _as_read(item: Item, attributes: Sequence[str]) -> tuple[str, dict[str, str], Item]:
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


def adopt_ttl(table: Table, inventory: Inventory, epoch: bytes) -> Op[None]:
    """Give what is left the saver's ttl where it would live for longer than what is stored from now on.

    Otherwise an older checkpoint would show once the newer ones have expired. What has been stored under the new epoch
    already is left as it is: its put sees to it that the thread lives as long.
    """
    ends_at, kept_until = table.expires_at(), table.expires_at(2)
    adopted = [name for name, head in inventory.heads.items() if not epoch_in(head, items.BODY, {epoch})]
    updates = [
        _limit(table, item, kept_until)
        for item in (
            *inventory.entries,
            *(each for name in adopted for each in inventory.writes.get(name, ())),
        )
    ]
    named = sorted(inventory.named(adopted) & inventory.segments.keys())
    segments = [inventory.segments[each] for each in named]
    updates += [_limit(table, item, table.expires_at(SEGMENT_LIFETIMES)) for item in segments]
    for name in sorted(adopted, reverse=True):
        head = inventory.heads[name]
        if lives_shorter(ends_at, items.ends_at(head)):
            updates.append(_limit_head(table, head, ends_at, kept_until))
            inventory.heads[name] = {**head, TTL_ATTRIBUTE: {"N": str(kept_until)}}
        else:
            # Nor is an older one to live for longer than this one.
            ends_at = items.ends_at(head)
    yield from gather(updates)


def _limit(table: Table, item: Item, expires_at: int | None) -> Op[None]:
    """Let an item expire that would not, unless it has been stored again since it was read."""
    if TTL_ATTRIBUTE not in item:
        condition, names, values = _as_read(item, (TTL_ATTRIBUTE, items.ENTERED, *items.EPOCHS, *items.PARTS))
        values[":expiry"] = {"N": str(expires_at)}
        yield from table.update_if(item, "SET #a0 = :expiry", condition, names, values)


def _limit_head(table: Table, head: Item, ends_at: int | None, kept_until: int | None) -> Op[None]:
    """Let a head count as gone from then on; it stays for as long as what may be rebuilt from it."""
    condition, names, values = _as_read(
        head, (TTL_ATTRIBUTE, items.READABLE_UNTIL, *items.EPOCHS, *items.PARTS)
    )
    values |= {":expiry": {"N": str(kept_until)}, ":until": {"N": str(ends_at)}}
    yield from table.update_if(head, "SET #a0 = :expiry, #a1 = :until", condition, names, values)
