"""The protocol of a thread: the states of what is stored, the requests that change them, and what is committed.

This module is pure: it makes no request, and reads no clock or random source. Operations send its changes, and ask its
questions about the items that they have read. No other code compares epochs.

What is stored. A thread has one *thread item*, and for each namespace a partition of *heads* (one for a checkpoint),
*writes* (one for a task) and *segments*. Heads and writes name segments, which never change. A subgraph's namespace
also has a *marker* beside the thread item, by which a deletion finds it.

The problem. A put reuses segments that its parent names. A deletion removes segments that nothing names any more. A put
must never name a segment that a deletion removes. Locks would block; a transaction doubles the price
(docs/decisions/0006).

The rule. The thread item has a random *epoch*. A head carries the epoch under which its segments were known to be safe:
its parent's. A deletion ends the epoch before it removes any segment. After a put has stored its head it reads the
thread item: if its epoch is still the thread's, no deletion can have removed what it reused, and it is acknowledged.
Otherwise it stores everything again under the thread's epoch.

    put        parent (epoch 1) ── segments ── head (epoch 1) ── confirm: not epoch 1! ── again, under epoch 2
    deletion       heads deleted ── epoch 1 ends ── read again ── restamp with 2 ── finalize ── segments deleted

A deletion reads again once the epoch has ended. A head that is there now is *restamped*: it gets the new epoch. A head
of the old epoch that comes later was not in that second read, so the deletion may remove what it names; its put finds
that out when it confirms. When every head is restamped the deletion *finalizes*, and only then removes segments.

So a head is **committed** if no deletion can still remove a segment of it:

1. It carries the thread's epoch. Then every deletion before has seen it.
2. It carries an epoch that ended, and the deletion that ended it has not finalized. Such epochs are in `previous`. That
   deletion has removed no segment yet; if it has died, it never will, since the next one takes its claim away.

Anything else was never acknowledged to a caller. Readers pass it over if a segment of it is missing.

A new epoch is *pending* until somebody builds on it, and *active* from then on. A deletion that leaves nothing removes
the thread item only while its epoch is pending: a put that has begun the epoch relies on the item. The docstrings of
the changes name these states in capital letters.

One thread has one life, which its thread item tells. Readers see the thread until `alive_until`, and everything that is
stored in it is kept until `kept_until`, both of which only rise. From `alive_until` on the thread is *dead*. A run that
goes on with it makes it live again, as a whole. Any other call that stores begins the thread *anew*, with an epoch that
nothing from before carries. A copy that is being made has no life yet: its `alive_until` is 0. `_operations/renew.py`
says what a use does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ._format import items
from ._format.items import Item, Life
from ._format.limits import CLAIM_SECONDS, ORPHAN_SECONDS, OWNER_KEPT_SECONDS, UPLOAD_SECONDS_MAX
from ._format.schema import ACTIVE_DAY, ALIVE_UNTIL, LAST_ACTIVE, OWNER, PARTITION_KEY, TTL_ATTRIBUTE
from .errors import CheckpointCorruptionError

# The thread item


@dataclass(frozen=True)
class Thread:
    """A thread item as it was read."""

    epoch: bytes
    is_pending: bool
    previous: frozenset[bytes]
    """Epochs that ended by deletions that have not finalized."""
    claim: bytes | None
    claimed_until: int | None
    expires_at: int | None
    life: Life
    has_ttl: bool
    """Whether a put has decided on the ttl, if only that there is none. A deletion may have created the item."""
    last_active: int | None = None
    """When the directory last noted activity, in epoch seconds; `None` if the thread is not in it."""
    kept_before: int | None = None
    """Until when the state is kept for sure while a renewal is under way, or has died; `None` if none is."""

    @classmethod
    def parse(cls, item: Item) -> Thread:
        """Read a thread item.

        Raises:
            CheckpointCorruptionError: The item is damaged.
        """
        previous = item.get(items.PREVIOUS, {}).get("BS", ())
        return cls(
            items.binary(item, items.EPOCH),
            items.PENDING in item,
            frozenset(map(bytes, previous)),
            items.binary(item, items.CLAIM) if items.CLAIM in item else None,
            items.number(item, items.CLAIMED_UNTIL),
            items.number(item, TTL_ATTRIBUTE),
            Life(items.ttl_of(item), items.number(item, ALIVE_UNTIL), items.number(item, items.KEPT_UNTIL)),
            items.TTL_SECONDS in item,
            items.number(item, LAST_ACTIVE),
            items.number(item, items.KEPT_BEFORE),
        )

    @classmethod
    def parse_for_deletion(cls, item: Item) -> Thread:
        """Read a thread item for a deletion, which needs neither the ttl nor when it was used.

        So a thread can be deleted although they are damaged. An expiry that cannot be read is none: DynamoDB removes no
        item by it.

        Raises:
            CheckpointCorruptionError: The epoch or the claim is damaged.
        """
        unneeded = {items.TTL_SECONDS, LAST_ACTIVE, ALIVE_UNTIL, items.KEPT_UNTIL, items.KEPT_BEFORE}
        try:
            items.number(item, TTL_ATTRIBUTE)
        except CheckpointCorruptionError:
            unneeded.add(TTL_ATTRIBUTE)
        thread = cls.parse({name: value for name, value in item.items() if name not in unneeded})
        return replace(thread, has_ttl=items.TTL_SECONDS in item)

    @property
    def is_being_copied(self) -> bool:
        """Whether the thread is a copy that is not complete: one is being made, or has died."""
        return self.life.alive_until == 0

    def is_alive(self, now: float) -> bool:
        """Tell whether readers see the thread."""
        return self.life.alive_until is None or self.life.alive_until > now

    @property
    def sure_until(self) -> int:
        """Until when the whole state of the thread is kept for sure."""
        return (self.life.kept_until or 0) if self.kept_before is None else self.kept_before

    def may_live_on(self, now: float) -> bool:
        """Tell whether a run can go on with a dead thread: all of its state is still there."""
        return not self.is_being_copied and self.sure_until > now

    def needs_renewal(self, now: float) -> bool:
        """Tell whether a use has to renew the state before it is noted."""
        return self.kept_before is not None or self.sure_until < int(now) + sure_seconds(
            self.life.ttl_seconds or 0
        )

    def commits(self, epoch: bytes | None) -> bool:
        """Tell whether a part that carries an epoch is committed: no deletion can still remove its segments."""
        return epoch == self.epoch or epoch in self.previous

    def confirms(self, epoch: bytes | None) -> bool:
        """Tell whether a head or writes stored under an epoch, before this was read, may be acknowledged.

        They may not while the epoch is pending: the deletion that created it may remove the thread item.
        """
        return epoch == self.epoch and not self.is_pending

    def was_ended(self, token: bytes, epoch: bytes) -> bool:
        """Tell whether the deletion with a claim has ended an epoch, and still holds the claim."""
        return self.claim == token and epoch in self.previous

    def ended(self, new: bytes) -> Thread:
        """Return the thread as it is after `end_epoch`."""
        return replace(self, epoch=new, is_pending=True, previous=self.previous | {self.epoch})


def is_committed(item: Item, name: str, thread: Thread | None) -> bool:
    """Tell whether a part of a head or a writes item is committed.

    A part without an epoch names no segment, so no deletion can take anything from it.
    """
    epoch = epoch_of(item, name)
    return epoch is None or (thread is not None and thread.commits(epoch))


def is_reusable(confirmed: bytes | None, epoch: bytes | None) -> bool:
    """Tell whether segments that were confirmed under one epoch may be named by an item stored under another one."""
    return epoch is not None and confirmed == epoch


def epoch_of(item: Item, name: str) -> bytes | None:
    """Return the epoch that a part of a head or a writes item carries."""
    attribute = item.get(items.EPOCH_NAMES[name])
    return None if attribute is None else bytes(attribute.get("B", b""))


class Change(NamedTuple):
    """A conditional request: an update; or, if the expression is empty, a deletion or a put."""

    expression: str
    condition: str
    names: Mapping[str, str]
    values: Mapping[str, Any]


_NAMES = {
    "#about": items.ABOUT,
    "#active": LAST_ACTIVE,
    "#claim": items.CLAIM,
    "#claimed_until": items.CLAIMED_UNTIL,
    "#created": items.CREATED_AT,
    "#day": ACTIVE_DAY,
    "#epoch": items.EPOCH,
    "#expiry": TTL_ATTRIBUTE,
    "#alive": ALIVE_UNTIL,
    "#kept": items.KEPT_UNTIL,
    "#before": items.KEPT_BEFORE,
    "#shown": items.SHOWN_UNTIL,
    "#order": items.ORDER,
    "#owner": OWNER,
    "#parent": items.PARENT,
    "#pending": items.PENDING,
    "#pk": PARTITION_KEY,
    "#previous": items.PREVIOUS,
    "#registered": items.REGISTERED,
    "#ttl": items.TTL_SECONDS,
    "#writes": items.WRITES,
}
_PLACEHOLDER = re.compile(r"#\w+")
# What a deletion has to read in a thread item.
_HELD = ("epoch", "claim", "claimed_until")


def _change(expression: str, condition: str, **values: Any) -> Change:
    names = {each: _NAMES[each] for each in _PLACEHOLDER.findall(f"{expression} {condition}")}
    return Change(expression, condition, names, {f":{name}": value for name, value in values.items()})


def _seconds(value: float) -> dict[str, str]:
    return {"N": str(int(value))}


def new_life(ttl_seconds: int | None, now: float) -> Life:
    """Return the life of a thread that begins now."""
    if ttl_seconds is None:
        return Life()
    return Life(ttl_seconds, int(now) + ttl_seconds, kept_from(ttl_seconds, now))


def kept_from(ttl_seconds: int, now: float) -> int:
    """Return until when everything is kept that is stored after a renewal, or a thread's begin, at some time."""
    return int(now) + ttl_seconds * KEPT_PERCENT // 100


def sure_seconds(ttl_seconds: int) -> int:
    """Return for how long the state has to be kept for sure when a use is noted; see `KEPT_PERCENT`."""
    return ttl_seconds * SURE_PERCENT // 100


def _times(life: Life) -> dict[str, Any]:
    """Return the attributes of a thread item that tell its life, by the names of their placeholders."""
    values = {"ttl": _seconds(life.ttl_seconds or 0)}
    if life.alive_until is not None:
        values["alive"] = _seconds(life.alive_until)
    if life.kept_until is not None:
        # The owner stays for longer than anything of the thread: DynamoDB removes expired items days later.
        values |= {
            "kept": _seconds(life.kept_until),
            "expiry": _seconds(life.kept_until + OWNER_KEPT_SECONDS),
        }
    return values


_LIFE = ("alive", "kept", "before", "expiry")
_ENTRY = ("active", "day", "created", "owner", "about")
# Whether a thread is dead, and no copy.
_IS_DEAD = "#alive BETWEEN :one AND :now"


def create_thread(epoch: bytes, life: Life, now: float, entry: Item | None = None) -> Change:
    """Create the thread item, by the first call that stores: ABSENT, or dead without an owner → ACTIVE.

    With an `entry`, which may be empty, the thread is in the directory from the start. A claim is left as it is, since
    the policy of agents that may not delete refuses requests that name it. With another epoch it can end nothing.
    """
    values = {"epoch": {"B": epoch}, **_times(life), **_begun(entry, now)}
    absent = f"(attribute_not_exists(#epoch) OR ({_IS_DEAD} AND attribute_not_exists(#owner)))"
    update = _replace(values, ("pending", "previous", *_LIFE, *_ENTRY))
    return _change(update, absent, now=_seconds(now), one=_seconds(1), **values)


def begin_anew(old: bytes, epoch: bytes, life: Life, now: float, *, is_listed: bool) -> Change:
    """Begin a dead thread that has an owner anew: ACTIVE or PENDING → ACTIVE. It stays that owner's."""
    values = {"epoch": {"B": epoch}, **_times(life)}
    if is_listed:
        values |= _active(now)
    condition = f"#epoch = :old AND {_IS_DEAD}"
    update = _replace(values, ("pending", "previous", *_LIFE))
    return _change(update, condition, old={"B": old}, now=_seconds(now), one=_seconds(1), **values)


def begin_copy(
    old: bytes | None, epoch: bytes, life: Life, listed: tuple[Item, float, float] | None
) -> Change:
    """Begin a thread that a copy fills, or hide one that is empty: ABSENT, ACTIVE or PENDING → ACTIVE.

    Readers do not see it before `end_copy`.

    Args:
        old: The epoch of the thread that is there; `None` if none is.
        epoch: The epoch of the copy.
        life: Its life, which begins when it is complete.
        listed: The entry, last activity and creation, in epoch seconds, with which it enters the directory; `None` if
            it is there, or is not to be.
    """
    values = {"epoch": {"B": epoch}, **_times(replace(life, alive_until=0))}
    if listed is not None:
        values |= _listed(*listed)
    update = _replace(values, ("pending", "previous", *_LIFE, *(() if listed is None else _ENTRY)))
    if old is None:
        return _change(update, "attribute_not_exists(#epoch)", **values)
    return _change(update, "#epoch = :old", old={"B": old}, **values)


def end_copy(epoch: bytes, life: Life) -> Change:
    """Let a complete copy live, with all that was stored in it."""
    condition = "#epoch = :epoch AND #alive = :zero AND attribute_not_exists(#pending)"
    values = {} if life.alive_until is None else {"alive": _seconds(life.alive_until)}
    return _change(_replace(values, ("alive",)), condition, epoch={"B": epoch}, zero=_seconds(0), **values)


def create_pending_thread(epoch: bytes, now: float) -> Change:
    """Create the thread item, by a deletion: ABSENT → PENDING. The put that begins the epoch gives it a life."""
    return _change(
        "SET #epoch = :epoch, #pending = :true, #expiry = :expiry",
        "attribute_not_exists(#epoch)",
        epoch={"B": epoch},
        true={"BOOL": True},
        expiry=_seconds(now + ORPHAN_SECONDS),
    )


def begin_epoch(thread: Thread, life: Life, now: float, entry: Item | None) -> Change:
    """Begin a pending epoch, by a call that is about to build on it: PENDING → ACTIVE.

    If a deletion has created the item, this is the first call, which gives the thread its life and its entry.
    """
    if thread.has_ttl:
        return _change("REMOVE #pending", "#epoch = :epoch", epoch={"B": thread.epoch})
    values = {**_times(life), **({} if thread.last_active is not None else _begun(entry, now))}
    condition = "#epoch = :epoch AND attribute_not_exists(#ttl)"
    update = _replace(values, ("pending", *_LIFE))
    return _change(update, condition, epoch={"B": thread.epoch}, **values)


# A thread's life


KEPT_PERCENT = 310
"""For how many percent of the ttl everything is kept when a renewal begins.

Writes that need no confirmation carry a `kept_until` that their process has read up to a tenth of the ttl ago. They
must outlive the next renewal. It comes with the first use once the state is kept for less than SURE_PERCENT: at the
latest KEPT_PERCENT - SURE_PERCENT + 100 = 195 percent after them. They are kept for SURE_PERCENT - 10 = 205.
"""
SURE_PERCENT = 215


def _active(now: float) -> dict[str, Any]:
    return {"active": _seconds(now), "day": {"S": day_of(now)}}


def note_use(thread: Thread, now: float) -> Change:
    """Note that a thread with a ttl is used, before anything is stored in it. Fails while a renewal is under way."""
    values = _used(thread, now)
    condition = "#epoch = :epoch AND #alive BETWEEN :one AND :below AND attribute_not_exists(#before)"
    below = _seconds(int(values["alive"]["N"]) - 1)
    return _change(_set(values), condition, epoch={"B": thread.epoch}, one=_seconds(1), below=below, **values)


def _used(thread: Thread, now: float) -> dict[str, Any]:
    alive = int(now) + (thread.life.ttl_seconds or 0)
    values = {"alive": _seconds(max(alive, thread.life.alive_until or 0))}
    return values if thread.last_active is None else {**values, **_active(max(now, thread.last_active))}


def begin_renewal(thread: Thread, kept_until: int) -> Change:
    """Announce until when the state is about to be kept. What is stored from now on is kept as long."""
    old = thread.life.kept_until or 0
    values = {
        "kept": _seconds(kept_until),
        "before": _seconds(old),
        "expiry": _seconds(kept_until + OWNER_KEPT_SECONDS),
    }
    condition = "#epoch = :epoch AND attribute_not_exists(#before) AND #kept = :old"
    return _change(_set(values), condition, epoch={"B": thread.epoch}, old=_seconds(old), **values)


def end_renewal(thread: Thread, kept_until: int, now: float) -> Change:
    """End a renewal: all of the state is kept until then. Note the use, if that is long enough for it."""
    condition = "#epoch = :epoch AND #kept = :kept AND attribute_exists(#before)"
    told = {"epoch": {"B": thread.epoch}, "kept": _seconds(kept_until)}
    if kept_until < int(now) + sure_seconds(thread.life.ttl_seconds or 0):
        return _change("REMOVE #before", condition, **told)
    values = _used(thread, now)
    condition += " AND #alive BETWEEN :one AND :alive"
    return _change(_replace(values, ("before",)), condition, one=_seconds(1), **told, **values)


def claim_thread(token: bytes, now: float) -> Change:
    """Claim the thread, by a deletion, if it is free or another claim has run out: FREE → CLAIMED.

    The last alternative is true if the request took effect, its response was lost and it is sent again.
    """
    return _change(
        "SET #claim = :claim, #claimed_until = :until",
        "attribute_exists(#epoch)"
        " AND (attribute_not_exists(#claim) OR #claimed_until < :now OR #claim = :claim)",
        claim={"B": token},
        until=_seconds(now + CLAIM_SECONDS),
        now=_seconds(now),
    )


def extend_claimed_thread(token: bytes, expires_at: float) -> Change:
    """Extend a CLAIMED item that expires while the deletion runs: the claim would be removed with it."""
    return _change(
        "SET #expiry = :expiry",
        "#claim = :claim AND #expiry < :expiry",
        claim={"B": token},
        expiry=_seconds(expires_at),
    )


def reset_thread(item: Item, epoch: bytes) -> Change:
    """Replace a damaged epoch and claim, by the deletion of the whole thread: ACTIVE or PENDING → PENDING.

    Whoever relied on them fails at its next condition, as if the item had been removed. The thread stays in the
    directory, and does not expire, so somebody finds it if this deletion dies.
    """
    read = {f"old_{name}": item[_NAMES[f"#{name}"]] for name in _HELD if _NAMES[f"#{name}"] in item}
    same = (
        f"#{name} = :old_{name}" if f"old_{name}" in read else f"attribute_not_exists(#{name})"
        for name in _HELD
    )
    return _change(
        "SET #epoch = :epoch, #pending = :true"
        " REMOVE #claim, #claimed_until, #previous, #expiry, #ttl, #alive, #kept, #before",
        " AND ".join(same),
        epoch={"B": epoch},
        true={"BOOL": True},
        **read,
    )


def end_epoch(token: bytes, epoch: bytes, new: bytes, now: float) -> Change:
    """End the epoch: CLAIMED, ACTIVE or PENDING → PENDING. It moves to `previous`, and a new one replaces it.

    The same request sets the new one. Otherwise a `create_thread` that is sent again after its response was lost would
    bring the old one back.
    """
    return _change(
        "SET #epoch = :new, #pending = :true, #claimed_until = :until ADD #previous :ended",
        "#claim = :claim AND #epoch = :epoch",
        claim={"B": token},
        epoch={"B": epoch},
        new={"B": new},
        true={"BOOL": True},
        until=_seconds(now + CLAIM_SECONDS),
        ended={"BS": [epoch]},
    )


def finalize(token: bytes, epoch: bytes, *, stays_pending: bool) -> Change:
    """Finalize a CLAIMED thread: from here on only the new epoch says what is committed, so segments may be removed.

    The epoch becomes active if something is left, which builds on it. It stays pending if no put has decided on the
    thread's ttl: the put that begins it does.
    """
    removed = "#previous" if stays_pending else "#previous, #pending"
    held = "#claim = :claim AND #epoch = :epoch"
    return _change(f"REMOVE {removed}", held, claim={"B": token}, epoch={"B": epoch})


def release_thread(token: bytes) -> Change:
    """Release the claim: CLAIMED → FREE."""
    return _change("REMOVE #claim, #claimed_until", "#claim = :claim", claim={"B": token})


def remove_thread(token: bytes) -> Change:
    """Remove the item, by a deletion that left nothing: CLAIMED, PENDING → ABSENT. Fails if a put began the epoch."""
    return _change("", "#claim = :claim AND attribute_exists(#pending)", claim={"B": token})


# The directory: attributes of the thread item, by which two sparse indexes list threads


def day_of(seconds: float) -> str:
    """Return the day of a time in epoch seconds, in UTC: the key under which operators find the threads of a day."""
    return datetime.fromtimestamp(seconds, timezone.utc).date().isoformat()


def _listed(entry: Item, last_active: float, created_at: float) -> dict[str, Any]:
    """Return the attributes of a thread in the directory, by the names of their placeholders."""
    return {**_active(last_active), "created": _seconds(created_at), **_entered(entry)}


def _begun(entry: Item | None, now: float) -> dict[str, Any]:
    """Return the attributes that enter a thread that begins now; none if it is not to be in the directory."""
    return {} if entry is None else _listed(entry, now, now)


def _entered(entry: Item) -> dict[str, Any]:
    names = {OWNER: "owner", items.ABOUT: "about"}
    return {names[name]: value for name, value in entry.items()}


def _set(names: Iterable[str]) -> str:
    return "SET " + ", ".join(f"#{each} = :{each}" for each in names)


def _replace(values: Mapping[str, Any], others: Iterable[str]) -> str:
    """Set the attributes that have a value, and remove the others."""
    removed = [f"#{each}" for each in others if each not in values]
    parts = [_set(values)] if values else []
    return " ".join(parts + ([f"REMOVE {', '.join(removed)}"] if removed else []))


def list_thread(epoch: bytes, entry: Item, last_active: float, created_at: float) -> Change:
    """Enter a thread in the directory, unless it is there. Never changes an owner."""
    values = _listed(entry, last_active, created_at)
    condition = "#epoch = :epoch AND attribute_not_exists(#active)"
    return _change(_set(values), condition, epoch={"B": epoch}, **values)


def touch_thread(epoch: bytes, now: float, due: float) -> Change:
    """Note that a thread in the directory is active, if the last note is no later than `due`."""
    values = _active(now)
    condition = "#epoch = :epoch AND #active <= :due"
    return _change(_set(values), condition, epoch={"B": epoch}, due=_seconds(due), **values)


def describe_thread(epoch: bytes, entry: Item, old: Item) -> Change:
    """Replace the owner, title and metadata of a thread in the directory, if they are as they were read."""
    values = _entered(entry)
    known = {"old": old[items.ABOUT]} if items.ABOUT in old else {}
    same = "#about = :old" if known else "attribute_not_exists(#about)"
    condition = f"#epoch = :epoch AND attribute_exists(#active) AND {same}"
    update = _replace(values, ("owner", "about"))
    return _change(update, condition, epoch={"B": epoch}, **values, **known)


# Heads


def put_head(epoch: bytes) -> Change:
    """Store a head, if there is none or the one there carries an epoch.

    A put replaces a head with another epoch only while the put's own epoch is the thread's. Otherwise a deletion may
    have deleted everything before that head, because that head is committed, and this one may never be. If the epoch
    ends in between, the deletion finds out when it restamps.

    Without the condition, a request that its client has given up could arrive late and replace a head that was stored
    since, although its own segments may be gone.
    """
    return _change("", "attribute_not_exists(#epoch) OR #epoch = :epoch", epoch={"B": epoch})


def restamp(item: Item, thread: Thread) -> Change | None:
    """Give the committed parts of an item the thread's epoch, unless the item has changed since it was read.

    An item that has replaced it may name segments that the deletion is about to remove. The deletion then keeps those
    too, and restamps the new item. Returns `None` if nothing has to change.
    """
    stale = [
        name
        for name in items.EPOCHS
        if name in item and _epoch(item, name) != thread.epoch and thread.commits(_epoch(item, name))
    ]
    if not stale:
        return None
    condition, names, values = unchanged(item, (*stale, *items.PARTS))
    sets = ", ".join(f"#a{position} = :new" for position in range(len(stale)))
    return Change(f"SET {sets}", condition, names, {**values, ":new": {"B": thread.epoch}})


def _epoch(item: Item, attribute: str) -> bytes:
    return bytes(item[attribute].get("B", b""))


def cut_parent() -> Change:
    """Remove the link to the parent from a head that is kept while its parent is deleted."""
    return _change("REMOVE #parent", "attribute_exists(#pk)")


def unchanged(item: Item, attributes: Iterable[str]) -> tuple[str, dict[str, str], Item]:
    """Build the condition that attributes, `#a0` and so on, are as they were read, with its names and values."""
    names, values, conditions = {"#pk": PARTITION_KEY}, Item(), ["attribute_exists(#pk)"]
    for position, name in enumerate(attributes):
        names[f"#a{position}"] = name
        if name in item:
            conditions.append(f"#a{position} = :a{position}")
            values[f":a{position}"] = item[name]
        else:
            conditions.append(f"attribute_not_exists(#a{position})")
    return " AND ".join(conditions), names, values


def is_too_late(started_at: float, now: float) -> bool:
    """Tell whether a put has stored its segments so long ago that a deletion may soon take them for orphans."""
    return now - started_at > UPLOAD_SECONDS_MAX


# Writes


def set_writes(attributes: Item, old: Item, *, kept_until: int | None, order: int | None) -> Change:
    """Set parts of a task's writes, beside its other parts.

    Args:
        attributes: The attributes to set.
        old: The task's item as it was last read: regular writes are replaced only if they are those.
        kept_until: The expiry of a new item, in epoch seconds. An existing one must have the same: its parts may name
            segments that expire with it.
        order: Orders calls with special writes: a later call has a higher one. A request of an earlier call may arrive
            last, and must not win.
    """
    names = {f"#a{position}": name for position, name in enumerate(attributes)}
    values = {f":a{position}": value for position, value in enumerate(attributes.values())}
    sets = [f"#a{position} = :a{position}" for position in range(len(attributes))]
    conditions = ["attribute_not_exists(#expiry)"]
    if kept_until is not None:
        sets.append("#expiry = :expiry")
        conditions = ["(attribute_not_exists(#pk) OR #expiry = :expiry)"]
        values[":expiry"] = _seconds(kept_until)
    if items.WRITES in attributes:
        is_there = items.WRITES in old
        conditions.append("#writes = :old" if is_there else "attribute_not_exists(#writes)")
        values |= {":old": old[items.WRITES]} if is_there else {}
    if order is not None:
        conditions.append("(attribute_not_exists(#order) OR #order < :order)")
        values[":order"] = {"N": str(order)}
    update = _change("SET " + ", ".join(sets[len(attributes) :]), " AND ".join(conditions))
    return Change("SET " + ", ".join(sets), update.condition, {**names, **update.names}, values)


def touch_writes(now: float) -> Change:
    """Keep stored writes from being taken for abandoned."""
    return _change("SET #created = :created", "attribute_exists(#pk)", created=_seconds(now))


def delete_untouched(writes: Item) -> Change:
    """Delete writes without a head, unless they have been changed since they were read."""
    created_at = writes.get(items.CREATED_AT)
    if created_at is None:
        return _change("", "attribute_not_exists(#created)")
    return _change("", "#created = :created", created=created_at)


def is_orphan(item: Item, now: float) -> bool:
    """Tell whether an item was written so long ago that no put can be about to name it."""
    return (items.number(item, items.CREATED_AT) or 0) < now - ORPHAN_SECONDS


# Namespace markers


def register(expires_at: int | None) -> Change:
    """Put a namespace marker. Never shortens an expiry: a deletion finds a namespace only through its marker."""
    if expires_at is None:
        return _change("", "")
    return _change("", "attribute_not_exists(#registered) OR #expiry <= :expiry", expiry=_seconds(expires_at))


def unregister(marker: Item) -> Change:
    """Delete a marker, unless the namespace has been registered again since it was read."""
    registered = {"B": items.binary(marker, items.REGISTERED)}
    return _change("", "#registered = :registered", registered=registered)


# Expiry


def extend(expires_at: int | None) -> Change:
    """Extend an item's expiry, and never shorten it. Never creates the item: it may have been deleted."""
    if expires_at is None:
        return _change("REMOVE #expiry", "attribute_exists(#expiry)")
    return _change("SET #expiry = :expiry", "#expiry < :expiry", expiry=_seconds(expires_at))


def extend_ancestor(head: Item, expires_at: int) -> Change:
    """Keep a head for longer, but not for readers: what goes with it may expire as it was stored."""
    return _change(
        "SET #expiry = :expiry, #shown = if_not_exists(#shown, :shown)",
        "#expiry < :expiry",
        expiry=_seconds(expires_at),
        shown=head[TTL_ATTRIBUTE],
    )


def renew(item: Item, kept_until: int) -> Change:
    """Keep a head or writes for longer, unless they have changed since they were read.

    What has replaced them may name segments that expire earlier, and may belong to a thread that began anew.
    """
    condition, names, values = unchanged(item, (*items.EPOCHS, *items.PARTS))
    update = _change(
        "SET #expiry = :expiry REMOVE #shown",
        "(#expiry < :expiry OR attribute_exists(#shown))",
        expiry=_seconds(kept_until),
    )
    condition = f"{condition} AND {update.condition}"
    return Change(update.expression, condition, {**names, **update.names}, {**values, **update.values})
