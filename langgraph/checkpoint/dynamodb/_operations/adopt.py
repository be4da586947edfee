"""What a `prune` keeps gets the ttl of its saver, where it would live for longer than what is stored from now on.

Otherwise an older checkpoint would show once the newer ones have expired. A prune may die after each request, so the
order is the one in which they may go: older heads, the newest head, writes, and then what they name. What somebody
stores again meanwhile lives as long as that one says.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.limits import SEGMENT_LIFETIMES
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory, as_read, epoch_in, take_inventory
from langgraph.checkpoint.dynamodb._operations.threads import lives_shorter, renew_segments
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather


def adopt_checkpoints(table: Table, inventory: Inventory, epoch: bytes) -> Op[None]:
    """Give a namespace's checkpoints the saver's ttl, but for those that were stored under the new epoch already.

    The put of that sees to it that the thread lives as long.
    """
    kept_until = table.expires_at(2)
    adopted = _adopted(inventory, epoch)
    newest_first = _limited_heads(table, inventory, adopted, kept_until)
    yield from gather(newest_first[1:])
    yield from gather(newest_first[:1])
    writes = [item for name in adopted for item in inventory.writes.get(name, ())]
    yield from gather([_limit(table, item, kept_until) for item in writes])


def adopt_segments(table: Table, inventory: Inventory, epoch: bytes) -> Op[None]:
    """Give what those checkpoints need the saver's ttl, once the deletion has settled.

    Until then a head that is stored late may count though the deletion has not seen it.
    """
    last = table.expires_at(SEGMENT_LIFETIMES)
    named = inventory.named(_adopted(inventory, epoch)) & inventory.segments.keys()
    limited = {each for each in named if TTL_ATTRIBUTE not in inventory.segments[each]}
    yield from gather([_limit(table, inventory.segments[each], last) for each in sorted(limited)])
    if limited:
        yield from _renew_what_is_needed(table, inventory, limited, last)


def adopt_entry(
    table: Table, entry: Item, inventory: Inventory, epoch: bytes, gone: AbstractSet[bytes]
) -> Op[None]:
    """Give a namespace's entry the saver's ttl, unless something stays for ever that no deletion would find then.

    Args:
        table: The table.
        entry: The entry as it was before the old epoch ended. Who has written it since relies on it.
        inventory: What the namespace has.
        epoch: The new epoch.
        gone: Segments of the namespace that the deletion has removed.
    """
    adopted = _adopted(inventory, epoch)
    others = inventory.segments.keys() - inventory.named(adopted) - gone
    staying = [inventory.segments[each] for each in others]
    staying += inventory.items_of(inventory.checkpoint_ids.difference(adopted))
    if all(TTL_ATTRIBUTE in item for item in staying):
        yield from _limit(table, entry, table.expires_at(2))


def _adopted(inventory: Inventory, epoch: bytes) -> list[str]:
    return sorted(name for name, head in inventory.heads.items() if not epoch_in(head, items.BODY, {epoch}))


def _limited_heads(
    table: Table, inventory: Inventory, adopted: Sequence[str], kept_until: int | None
) -> Sequence[Op[None]]:
    """What gives those heads the ttl that would live for longer."""
    ends_at, updates = table.expires_at(), list[Op[None]]()
    for name in reversed(adopted):
        head = inventory.heads[name]
        if lives_shorter(ends_at, items.ends_at(head)):
            updates.append(_limit_head(table, head, ends_at, kept_until))
            inventory.heads[name] = {**head, TTL_ATTRIBUTE: {"N": str(kept_until)}}
        elif not items.is_expired(head, table.clock()):
            # Nor is an older one to live for longer than this one. What outlived one that has gone does so still.
            ends_at = items.ends_at(head)
    return updates


def _limit_head(table: Table, head: Item, ends_at: int | None, kept_until: int | None) -> Op[None]:
    """Let a head count as gone from then on; it stays for as long as what may be rebuilt from it."""
    condition, names, values = as_read(
        head, (TTL_ATTRIBUTE, items.READABLE_UNTIL, *items.EPOCHS, *items.PARTS)
    )
    values |= {":expiry": {"N": str(kept_until)}, ":until": {"N": str(ends_at)}}
    yield from table.update_if(head, "SET #a0 = :expiry, #a1 = :until", condition, names, values)


def _limit(table: Table, item: Item, expires_at: int | None) -> Op[None]:
    """Let an item expire that would not, unless it has been stored again since it was read."""
    if TTL_ATTRIBUTE not in item:
        condition, names, values = as_read(item, (TTL_ATTRIBUTE, items.ENTERED, *items.EPOCHS, *items.PARTS))
        values[":expiry"] = {"N": str(expires_at)}
        yield from table.update_if(item, "SET #a0 = :expiry", condition, names, values)


def _renew_what_is_needed(
    table: Table, inventory: Inventory, limited: AbstractSet[bytes], expires_at: int | None
) -> Op[None]:
    """Let segments that expire now live as long as what names them and was stored again meanwhile."""
    again = yield from take_inventory(table, inventory.at)
    for item in again.items_of(sorted(again.checkpoint_ids)):
        ends_at = items.number(item, TTL_ATTRIBUTE)
        if lives_shorter(expires_at, ends_at):
            named = reach(items.named_ids([item]), again.indexes.contents)
            yield from renew_segments(table, inventory.at, named & limited, ends_at)
