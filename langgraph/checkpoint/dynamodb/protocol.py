"""The protocol of a thread: the states of what is stored, the requests that change them, and what is committed.

This module is pure: it makes no request, and reads no clock or random source. Operations send its changes, and ask its
questions about the items that they have read. No other code compares epochs.

What is stored. A thread has one *thread item*, and for each namespace a partition of *heads* (one for a checkpoint),
*writes* (one for a task) and *segments*. Heads and writes name segments, which never change. A subgraph's namespace
also has a *marker* beside the thread item, by which a deletion finds it.

The problem. A put reuses segments that its parent names. A deletion removes segments that nothing names any more. A put
must never name a segment that a deletion removes. Locks would block; a transaction doubles the price
(docs/decisions/0006).

The rule. The thread item has an *epoch*: random bytes that name the thread's life, and a counter. A head carries the
epoch under which its segments were known to be safe: its parent's. A deletion ends the epoch before it removes any
segment. After a put has stored its head it reads the thread item: if its epoch is still the thread's, no deletion can
have removed what it reused, and it is acknowledged. Otherwise it stores everything again under the thread's epoch.

    put        parent (epoch 1) ── segments ── head (epoch 1) ── confirm: not epoch 1! ── again, under epoch 2
    deletion       heads deleted ── epoch 1 ends ── read again ── settle ── finalize ── segments deleted

A deletion reads again once the epoch has ended. A head that is there now is *settled*: it carries the bytes of the life
alone, without a counter. That is done once; later deletions do not write it again, so a deletion costs what it deletes
and what was stored since the last one. A head of the old epoch that comes later was not in that second read, so the
deletion may remove what it names; its put finds that out when it confirms. When every head is settled the deletion
*finalizes*, and only then removes segments. The newest head of the root gets the new epoch instead, each time, since
the next put builds on it.

So a head is **committed** if no deletion can still remove a segment of it:

1. It carries the thread's epoch. Then every deletion before has seen it.
2. It carries an epoch that ended, and the deletion that ended it has not finalized. Such epochs are in `previous`. That
   deletion has removed no segment yet; if it has died, it never will, since the next one takes its claim away.
3. A deletion of this life has settled it.
4. It depends on nothing: it names no segment, and is not rebuilt from ancestors. A deletion leaves it as it is.

Anything else was never acknowledged to a caller. Readers pass it over if a segment of it is missing.

A deletion does not look again at heads of the last two kinds, so no put may replace one while a deletion relies on it.
A put *marks* it first, and then reads the thread. The next deletion finds the mark, and restamps the head.

A settled head does not tell under which epoch its segments are safe. They are under that with which the thread was read
before the head was.

A new epoch is *pending* until somebody builds on it, and *active* from then on. A deletion that leaves nothing removes
the thread item only while its epoch is pending: a put that has begun the epoch relies on the item. `TRANSITIONS` says
who changes the state of a thread item, and on which condition.

One thread has one life, which its thread item tells. Readers see the thread until `alive_until`, and everything that is
stored in it is kept until `kept_until`, both of which only rise. From `alive_until` on the thread is *dead*. A run that
goes on with it makes it live again, as a whole. Any other call that stores begins the thread *anew*, with an epoch that
nothing from before carries. A copy that is being made has no life yet: its `alive_until` is 0. `_operations/renew.py`
says what a use does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ._format import items, limits
from ._format.items import Item, Life
from ._format.schema import ACTIVE_DAY, ALIVE_UNTIL, LAST_ACTIVE, OWNER, PARTITION_KEY, TTL_ATTRIBUTE
from .errors import BrokenRuleError, CheckpointCorruptionError

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
        item by it, and no thread begins anew by it.

        Raises:
            CheckpointCorruptionError: The epoch or the claim is damaged.
        """
        unneeded = {items.TTL_SECONDS, LAST_ACTIVE, items.KEPT_UNTIL, items.KEPT_BEFORE}
        unneeded |= {name for name in (TTL_ATTRIBUTE, ALIVE_UNTIL) if not _is_readable(item, name)}
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
    def can_die(self) -> bool:
        """Whether the thread may begin anew without a deletion, now or later; or the copy of another one may."""
        return self.life.alive_until is not None

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

    def commits(self, epoch: bytes) -> bool:
        """Tell whether a part that carries an epoch is committed: no deletion can still remove its segments."""
        is_under_way = epoch == self.epoch or epoch in self.previous
        return is_under_way or (is_settled(epoch) and is_of_one_life(epoch, self.epoch))

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


def _is_readable(item: Item, name: str) -> bool:
    try:
        items.number(item, name)
    except CheckpointCorruptionError:
        return False
    return True


def first_epoch(life: bytes) -> bytes:
    """Return the first epoch of a thread that begins, or begins anew, given random bytes that name its life."""
    return life + bytes(_COUNTER_BYTES)


def next_epoch(epoch: bytes) -> bytes:
    """Return the epoch that replaces one that ends."""
    ended = int.from_bytes(epoch[LIFE_BYTES:], "big") + 1
    return epoch[:LIFE_BYTES] + ended.to_bytes(_COUNTER_BYTES, "big")


def is_of_one_life(epoch: bytes, other: bytes) -> bool:
    """Tell whether two epochs are of one life of a thread."""
    return epoch[:LIFE_BYTES] == other[:LIFE_BYTES]


def is_settled(epoch: bytes) -> bool:
    """Tell whether a deletion has settled what carries this in place of an epoch."""
    return len(epoch) != LIFE_BYTES + _COUNTER_BYTES


def is_committed(item: Item, name: str, thread: Thread | None) -> bool:
    """Tell whether a part of a head or a writes item is committed.

    One that depends on nothing is, in this life of its thread. Parts of writes without an epoch are in any.
    """
    epoch = epoch_of(item, name)
    if epoch is None:
        return True
    if thread is None:
        return False
    return thread.commits(epoch) or (is_of_one_life(epoch, thread.epoch) and not _depends(item, name))


def _depends(item: Item, name: str) -> bool:
    """Tell whether a part needs other items: segments, or ancestors from which the checkpoint is rebuilt."""
    epoch = items.EPOCH_NAMES[name]
    shares = [each for each, other in items.EPOCH_NAMES.items() if other == epoch]
    return items.REBUILT_FROM in item or any(items.names_segments(item, each) for each in shares)


def is_reusable(confirmed: bytes | None, epoch: bytes | None) -> bool:
    """Tell whether segments that were confirmed under one epoch may be named by an item stored under another one."""
    return epoch is not None and confirmed == epoch


def check_rule(rule: str, exceptions: Collection[object]) -> None:
    """Check a rule of this package before something is written that relies on it.

    Raises:
        BrokenRuleError: There are exceptions to it.
    """
    if exceptions:
        raise BrokenRuleError(
            f"{rule}, but not {next(iter(exceptions))!r} and {len(exceptions) - 1} others, so it was not written. This"
            " is a fault of langgraph-dynamodb: report this message"
        )


def epoch_of(item: Item, name: str) -> bytes | None:
    """Return the epoch that a part of a head or a writes item carries."""
    attribute = item.get(items.EPOCH_NAMES[name])
    return None if attribute is None else bytes(attribute.get("B", b""))


LIFE_BYTES = 5
_COUNTER_BYTES = 3
_TOKEN_BYTES = 8


class Change(NamedTuple):
    """A conditional request: an update; or, if the expression is empty, a deletion or a put."""

    expression: str
    condition: str
    names: Mapping[str, str]
    values: Mapping[str, Any]


NAMES = {f"#{each}": each for each in (*items.EPOCHS, *items.PARTS)} | {
    "#about": items.ABOUT,
    "#active": LAST_ACTIVE,
    "#alive": ALIVE_UNTIL,
    "#before": items.KEPT_BEFORE,
    "#claim": items.CLAIM,
    "#claimed_until": items.CLAIMED_UNTIL,
    "#created": items.CREATED_AT,
    "#day": ACTIVE_DAY,
    "#expiry": TTL_ATTRIBUTE,
    "#kept": items.KEPT_UNTIL,
    "#order": items.ORDER,
    "#owner": OWNER,
    "#parent": items.PARENT,
    "#pending": items.PENDING,
    "#pk": PARTITION_KEY,
    "#previous": items.PREVIOUS,
    "#registered": items.REGISTERED,
    "#shown": items.SHOWN_UNTIL,
    "#ttl": items.TTL_SECONDS,
}
_PLACEHOLDER = re.compile(r"#\w+")
_AS_READ = re.compile(r"(#\w+) = (:read_\w+)")


def _change(expression: str, condition: str, read: Item | None = None, **values: Any) -> Change:
    """Build a change. `#x = :read_x` in its condition: the attribute is as it was `read`, or still absent."""
    told = {f":{name}": value for name, value in values.items()}

    def as_read(match: re.Match[str]) -> str:
        value = (read or {}).get(NAMES[match[1]])
        if value is None:
            return f"attribute_not_exists({match[1]})"
        told[match[2]] = value
        return match[0]

    condition = _AS_READ.sub(as_read, condition)
    names = {each: NAMES[each] for each in _PLACEHOLDER.findall(f"{expression} {condition}")}
    return Change(expression, condition, names, told)


def _set(names: Iterable[str]) -> str:
    return "SET " + ", ".join(f"#{each} = :{each}" for each in names)


def _replace(values: Mapping[str, Any], others: Iterable[str]) -> str:
    """Set the attributes that have a value, and remove the others."""
    removed = [f"#{each}" for each in others if each not in values]
    parts = [_set(values)] if values else []
    return " ".join(parts + ([f"REMOVE {', '.join(removed)}"] if removed else []))


# The states of a thread item, and what changes them

# One that is there is pending if its epoch is, and otherwise copied if it is a copy that is not complete.
ABSENT, PENDING, ACTIVE, COPIED = "absent", "pending", "active", "copied"


class Transition(NamedTuple):
    """A change of a thread item: who sends it, from which states to which it leads, and its condition."""

    change: str
    by: str
    before: Sequence[str]
    after: str | None
    """`None`: as before."""
    condition: str


_PRESENT, _LIVING = (PENDING, ACTIVE, COPIED), (PENDING, ACTIVE)
_PUTS, _USES, _DELETION = "put, put_writes, copy", "put, put_writes", "deletion"
_SOMETHING, _NOTHING = "deletion that leaves something", "deletion that leaves nothing"
_IS_DEAD = "#alive BETWEEN :one AND :now"

# fmt: off
TRANSITIONS: Sequence[Transition] = (
    Transition("create_thread", _PUTS, (ABSENT, *_LIVING), ACTIVE,
        f"attribute_not_exists(#epoch) OR ({_IS_DEAD} AND attribute_not_exists(#owner))"),
    Transition("begin_anew", _PUTS, _LIVING, ACTIVE,
        f"#epoch = :old AND {_IS_DEAD}"),
    Transition("create_pending_thread", _DELETION, (ABSENT,), PENDING,
        "attribute_not_exists(#epoch)"),
    Transition("begin_epoch", _PUTS, (PENDING,), ACTIVE,
        "#epoch = :epoch AND attribute_exists(#pending)"),
    Transition("suspend_epoch", "copy", (ACTIVE,), PENDING,
        "#epoch = :read_epoch AND #alive = :read_alive AND attribute_not_exists(#pending)"),
    Transition("begin_copy", "copy", (ABSENT, *_PRESENT), COPIED,
        "#epoch = :read_epoch AND #alive = :read_alive AND #pending = :read_pending"),
    Transition("end_copy", "copy", (COPIED,), ACTIVE,
        "#epoch = :epoch AND #alive = :zero AND #kept = :read_kept AND attribute_not_exists(#pending)"),
    Transition("note_use", _USES, _LIVING, None,
        "#epoch = :epoch AND #alive BETWEEN :one AND :below AND attribute_not_exists(#before)"),
    Transition("begin_renewal", _USES, _PRESENT, None,
        "#epoch = :epoch AND #kept = :old AND attribute_not_exists(#before)"),
    Transition("end_renewal", _USES, _LIVING, None,
        "#epoch = :epoch AND #kept = :kept AND attribute_exists(#before) AND #alive BETWEEN :one AND :alive"),
    Transition("list_thread", f"{_PUTS}, set_thread", _PRESENT, None,
        "#epoch = :epoch AND attribute_not_exists(#active)"),
    Transition("touch_thread", _USES, _PRESENT, None,
        "#epoch = :epoch AND #active <= :due"),
    Transition("describe_thread", "set_thread", _PRESENT, None,
        "#epoch = :epoch AND attribute_exists(#active) AND #about = :read_about"),
    # The claim is there already if the request took effect, its response was lost and it is sent again.
    Transition("claim_thread", _DELETION, _PRESENT, None,
        "attribute_exists(#epoch)"
        " AND (attribute_not_exists(#claim) OR #claimed_until < :now OR #claim = :claim)"),
    Transition("extend_claimed_thread", _DELETION, _PRESENT, None,
        "#claim = :claim AND #expiry < :expiry"),
    Transition("reset_thread", "deletion of a thread whose item is damaged", _PRESENT, PENDING,
        "attribute_exists(#pk) AND #epoch = :read_epoch AND #claim = :read_claim"
        " AND #claimed_until = :read_claimed_until"),
    Transition("end_epoch", _DELETION, _PRESENT, PENDING,
        "#claim = :claim AND #epoch = :old"),
    Transition("finalize", _SOMETHING, _PRESENT, ACTIVE,
        "#claim = :claim AND #epoch = :epoch"),
    Transition("finalize_pending", f"{_NOTHING}, or before any put", _PRESENT, None,
        "#claim = :claim AND #epoch = :epoch"),
    Transition("release_thread", _DELETION, _PRESENT, None,
        "#claim = :claim"),
    Transition("remove_thread", _NOTHING, (PENDING,), ABSENT,
        "#claim = :claim AND attribute_exists(#pending)"),
)
# fmt: on
_ROWS = {each.change: each for each in TRANSITIONS}


def _transition(
    change: str,
    values: Mapping[str, Any],
    removed: Sequence[str] = (),
    also: str = "",
    read: Item | None = None,
    **told: Any,
) -> Change:
    """Build a change of a thread item: set and remove attributes, and what makes its state the next one.

    Args:
        change: Its name in the table.
        values: The attributes to set, by the names of their placeholders.
        removed: Those to remove, unless they are set.
        also: What else to do.
        read: The item, if the condition asks for attributes as they were read.
        told: Further values of the condition.
    """
    row = _ROWS[change]
    if row.after == ABSENT:
        return _change("", row.condition, **told)
    if row.after == PENDING:
        values = {**values, "pending": {"BOOL": True}}
    elif row.after is not None:
        removed = (*removed, "pending")
    if row.after == COPIED:
        values = {**values, "alive": _seconds(0)}
    update = f"{_replace(values, removed)} {also}".strip()
    return _change(update, row.condition, read, **values, **told)


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


def may_be_used(life: Life, now: float) -> bool:
    """Tell whether what is stored in a life is kept for long enough to note a use."""
    return life.ttl_seconds is None or (life.kept_until or 0) >= int(now) + sure_seconds(life.ttl_seconds)


def _times(life: Life) -> dict[str, Any]:
    """Return the attributes of a thread item that tell its life, by the names of their placeholders."""
    values = {"ttl": _seconds(life.ttl_seconds or 0)}
    if life.alive_until is not None:
        values["alive"] = _seconds(life.alive_until)
    return {**values, **_kept(life.kept_until)}


def _kept(kept_until: int | None) -> dict[str, Any]:
    found_until = findable_until(kept_until)
    if kept_until is None or found_until is None:
        return {}
    return {"kept": _seconds(kept_until), "expiry": _seconds(found_until)}


def findable_until(kept_until: int | None) -> int | None:
    """Return until when a thread's item and its markers are kept, given until when all else of it is.

    An erasure finds by them what is stored, and DynamoDB removes expired items days later, in any order.
    """
    return None if kept_until is None else kept_until + limits.FINDABLE_SECONDS


_LIFE = ("alive", "kept", "before", "expiry")
_ENTRY = ("active", "day", "created", "owner", "about")


def create_thread(epoch: bytes, life: Life, now: float, entry: Item | None = None) -> Change:
    """Create the thread item, by the first call that stores, or begin a dead thread without an owner anew.

    With an `entry`, which may be empty, the thread is in the directory from the start. A claim is left as it is, since
    the policy of agents that may not delete refuses requests that name it. With another epoch it can end nothing.
    """
    values = {"epoch": {"B": epoch}, **_times(life), **_begun(entry, now)}
    removed = ("previous", *_LIFE, *_ENTRY)
    return _transition("create_thread", values, removed, now=_seconds(now), one=_seconds(1))


def begin_anew(old: bytes, epoch: bytes, life: Life, now: float, *, is_listed: bool) -> Change:
    """Begin a dead thread that has an owner anew. It stays that owner's."""
    values = {"epoch": {"B": epoch}, **_times(life), **(_active(now) if is_listed else {})}
    removed = ("previous", *_LIFE)
    return _transition("begin_anew", values, removed, old={"B": old}, now=_seconds(now), one=_seconds(1))


def suspend_epoch(item: Item) -> Change:
    """End the epoch of a thread that seems to be empty, before a copy fills it.

    Nothing is confirmed before a put begins the new one. So what was confirmed is found by now, or keeps the copy from
    beginning.
    """
    ended = items.binary(item, items.EPOCH)
    values = {"epoch": {"B": next_epoch(ended)}}
    return _transition("suspend_epoch", values, also="ADD #previous :ended", read=item, ended={"BS": [ended]})


def begin_copy(
    old: Item | None, epoch: bytes, life: Life, listed: tuple[Item, float, float] | None
) -> Change:
    """Begin a thread that a copy fills, or hide one that is empty. Readers do not see it before `end_copy`.

    Fails if the thread has changed since it was read: a dead one lives again, or another copy has ended.

    Args:
        old: The thread item that is there; `None` if none is.
        epoch: The epoch of the copy.
        life: Its life, which begins when it is complete.
        listed: The entry, last activity and creation, in epoch seconds, with which it enters the directory; `None` if
            it is there, or is not to be.
    """
    values = {"epoch": {"B": epoch}, **_times(life), **({} if listed is None else _listed(*listed))}
    removed = ("previous", *_LIFE, *(() if listed is None else _ENTRY))
    return _transition("begin_copy", values, removed, read=old)


def end_copy(epoch: bytes, begun: Life, alive_until: int | None) -> Change:
    """Let a complete copy live, with all that was stored in it, unless a copy with another ttl has begun it again."""
    values = {} if alive_until is None else {"alive": _seconds(alive_until)}
    read = {} if begun.kept_until is None else {items.KEPT_UNTIL: _seconds(begun.kept_until)}
    return _transition("end_copy", values, ("alive",), read=read, epoch={"B": epoch}, zero=_seconds(0))


def create_pending_thread(epoch: bytes, now: float) -> Change:
    """Create the thread item, by a deletion. The put that begins the epoch gives it a life."""
    values = {"epoch": {"B": epoch}, "expiry": _seconds(now + limits.ORPHAN_SECONDS)}
    return _transition("create_pending_thread", values)


def begin_epoch(thread: Thread, life: Life, now: float, entry: Item | None) -> Change:
    """Begin a pending epoch, by a call that is about to build on it.

    If a deletion has created the item, this is the first call, which gives the thread its life and its entry.
    """
    if thread.has_ttl:
        return _transition("begin_epoch", {}, epoch={"B": thread.epoch})
    values = {**_times(life), **({} if thread.last_active is not None else _begun(entry, now))}
    return _transition("begin_epoch", values, _LIFE, epoch={"B": thread.epoch})


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
    below = _seconds(int(values["alive"]["N"]) - 1)
    return _transition("note_use", values, epoch={"B": thread.epoch}, one=_seconds(1), below=below)


def _used(thread: Thread, now: float) -> dict[str, Any]:
    alive = int(now) + (thread.life.ttl_seconds or 0)
    values = {"alive": _seconds(max(alive, thread.life.alive_until or 0))}
    return values if thread.last_active is None else {**values, **_active(max(now, thread.last_active))}


def begin_renewal(thread: Thread, kept_until: int) -> Change:
    """Announce until when the state is about to be kept. What is stored from now on is kept as long."""
    old = _seconds(thread.life.kept_until or 0)
    values = {**_kept(kept_until), "before": old}
    return _transition("begin_renewal", values, epoch={"B": thread.epoch}, old=old)


def end_renewal(thread: Thread, kept_until: int, now: float) -> Change:
    """End a renewal: all of the state is kept until then. Note the use, if that is long enough for it."""
    values = _used(thread, now)
    if kept_until < int(now) + sure_seconds(thread.life.ttl_seconds or 0):
        values = {"alive": _seconds(thread.life.alive_until or 0)}
    kept = _seconds(kept_until)
    return _transition(
        "end_renewal", values, ("before",), epoch={"B": thread.epoch}, kept=kept, one=_seconds(1)
    )


# A deletion's claim, and the epochs that it ends


def claim_thread(token: bytes, now: float) -> Change:
    """Claim the thread, by a deletion, if it is free or another claim has run out."""
    values = {"claim": {"B": token}, "claimed_until": _seconds(now + limits.CLAIM_SECONDS)}
    return _transition("claim_thread", values, now=_seconds(now))


def extend_claimed_thread(token: bytes, expires_at: float) -> Change:
    """Extend a claimed item that expires while the deletion runs: the claim would be removed with it."""
    return _transition("extend_claimed_thread", {"expiry": _seconds(expires_at)}, claim={"B": token})


def reset_thread(item: Item, epoch: bytes) -> Change:
    """Replace a damaged epoch and claim, by the deletion of the whole thread.

    Whoever relied on them fails at its next condition, as if the item had been removed. The thread stays in the
    directory, and does not expire, so somebody finds it if this deletion dies.
    """
    removed = ("claim", "claimed_until", "previous", "ttl", *_LIFE)
    return _transition("reset_thread", {"epoch": {"B": epoch}}, removed, read=item)


def end_epoch(token: bytes, epoch: bytes, new: bytes, now: float) -> Change:
    """End the epoch of a claimed thread. It moves to `previous`, and a new one replaces it.

    The same request sets the new one. Otherwise a `create_thread` that is sent again after its response was lost would
    bring the old one back.
    """
    values = {"epoch": {"B": new}, "claimed_until": _seconds(now + limits.CLAIM_SECONDS)}
    ended = {"BS": [epoch]}
    return _transition(
        "end_epoch", values, also="ADD #previous :ended", claim={"B": token}, old={"B": epoch}, ended=ended
    )


def finalize(token: bytes, epoch: bytes, *, stays_pending: bool) -> Change:
    """Finalize a claimed thread: from here on only the new epoch says what is committed, so segments may be removed.

    The epoch becomes active if something is left, which builds on it. It stays pending if no put has decided on the
    thread's ttl: the put that begins it does.
    """
    name = "finalize_pending" if stays_pending else "finalize"
    return _transition(name, {}, ("previous",), claim={"B": token}, epoch={"B": epoch})


def release_thread(token: bytes) -> Change:
    """Release the claim."""
    return _transition("release_thread", {}, ("claim", "claimed_until"), claim={"B": token})


def remove_thread(token: bytes) -> Change:
    """Remove the item, by a deletion that left nothing. Fails if a put began the epoch."""
    return _transition("remove_thread", {}, claim={"B": token})


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


def list_thread(epoch: bytes, entry: Item, last_active: float, created_at: float) -> Change:
    """Enter a thread in the directory, unless it is there. Never changes an owner."""
    return _transition("list_thread", _listed(entry, last_active, created_at), epoch={"B": epoch})


def touch_thread(epoch: bytes, now: float, due: float) -> Change:
    """Note that a thread in the directory is active, if the last note is no later than `due`."""
    return _transition("touch_thread", _active(now), epoch={"B": epoch}, due=_seconds(due))


def describe_thread(epoch: bytes, entry: Item, old: Item) -> Change:
    """Replace the owner, title and metadata of a thread in the directory, if they are as they were read."""
    return _transition("describe_thread", _entered(entry), ("owner", "about"), read=old, epoch={"B": epoch})


# Heads


def put_head(replaced: Item | None = None) -> Change:
    """Store a head if there is none, or in place of one that has the epoch and the expiry that it was read with.

    A put replaces a head only after it has seen that head, and then the thread with its own epoch. Otherwise a deletion
    may have deleted everything before that head, because that head is committed, and this one may never be. If the
    epoch ends in between, the deletion finds out when it restamps.

    Without the condition, a request that its client has given up could arrive late and replace a head that was stored
    since, although its own segments may be gone. And one that was slow would undo a renewal.
    """
    if replaced is None:
        return _change("", "attribute_not_exists(#epoch)")
    as_read = "#epoch = :read_epoch AND #expiry = :read_expiry"
    return _change("", f"attribute_not_exists(#epoch) OR ({as_read})", replaced)


def is_passed_over(head: Item, epoch: bytes) -> bool:
    """Tell whether deletions in the life of an epoch restamp a head no more: it is settled, or depends on nothing."""
    own = items.binary(head, items.EPOCH)
    return is_of_one_life(own, epoch) and (is_settled(own) or not _depends(head, items.BODY))


def mark_head(head: Item, mark: bytes) -> Change:
    """Mark a head that deletions pass over, before it is replaced: the next deletion restamps it."""
    return _change("SET #epoch = :mark", _unchanged(items.EPOCH, *items.PARTS), head, mark={"B": mark})


def mark_of(epoch: bytes, token: bytes) -> bytes:
    """Return what a marked head carries: it is settled in the life of an epoch, and tells the mark from others."""
    return epoch[:LIFE_BYTES] + token


def restamp(item: Item, thread: Thread, *, is_next_parent: bool) -> Change | None:
    """Settle the committed parts of an item, unless the item has changed since it was read.

    Parts that depend on nothing stay as they are. The head that the next put most likely builds on gets the thread's
    epoch instead.

    An item that has replaced it may name segments that the deletion is about to remove. The deletion then keeps those
    too, and restamps the new item. Returns `None` if nothing has to change.
    """
    settled, new = thread.epoch[:LIFE_BYTES], dict[str, bytes]()
    for name, attribute in items.EPOCH_NAMES.items():
        epoch = epoch_of(item, name)
        if epoch in (None, thread.epoch, settled) or not is_committed(item, name, thread):
            continue
        if is_next_parent and not is_settled(epoch):
            new[attribute] = thread.epoch
        elif is_settled(epoch) or _depends(item, name):
            new[attribute] = settled
    if not new:
        return None
    update = "SET " + ", ".join(f"#{each} = :new_{each}" for each in new)
    values = {f"new_{each}": {"B": epoch} for each, epoch in new.items()}
    return _change(update, _unchanged(*new, *items.PARTS), item, **values)


def cut_parent(head: Item) -> Change:
    """Remove the link to the parent from a head that is kept while its parent is deleted, if it is as it was read.

    A late request might meet a head that was copied back to the same id, with its parent.
    """
    return _change("REMOVE #parent", _unchanged(items.EPOCH), head)


def _unchanged(*names: str) -> str:
    """Return the condition that an item's attributes are as they were read."""
    return " AND ".join(["attribute_exists(#pk)", *(f"#{each} = :read_{each}" for each in names)])


def is_too_late(started_at: float, now: float) -> bool:
    """Tell whether a put has stored its segments so long ago that a deletion may soon take them for orphans."""
    return now - started_at > limits.UPLOAD_SECONDS_MAX


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
        conditions.append("#writes = :read_writes")
    if order is not None:
        conditions.append("(attribute_not_exists(#order) OR #order < :order)")
        values[":order"] = {"N": str(order)}
    update = _change("SET " + ", ".join(sets[len(attributes) :]), " AND ".join(conditions), old)
    return Change(
        "SET " + ", ".join(sets), update.condition, {**names, **update.names}, {**values, **update.values}
    )


def replace_writes(old: Item) -> Change:
    """Put a task's writes, in the place of an item that has expired."""
    return _change("", _unchanged("expiry", "created"), old)


def copied_at(now: float) -> int:
    """Return the time of writes that a copy stores: negative, until their thread itself stores some of that task."""
    return -int(now)


def copy_writes(replaced: Item | None = None) -> Change:
    """Put a task's writes by a copy if there are none, or in place of an item, if it is as it was read.

    As with heads, a copy replaces an item only after it has seen that item, and then the thread with its own epoch. A
    copy may stand still while the target is deleted and another copy fills it again.
    """
    if replaced is None:
        return _change("", "attribute_not_exists(#created)")
    return _change("", _unchanged(*items.EPOCHS, *items.PARTS, "created", "expiry"), replaced)


def may_copy_over(writes: Item, kept_until: int | None, *, is_hidden: bool) -> bool:
    """Tell whether a copy replaces a task's writes: not what their thread has stored itself, or keeps for longer.

    A copy may stand still while another one ends and the thread is used, or copy to a thread in use. In a hidden thread
    what expires earlier is of a life that has ended.
    """
    expires_at = items.expires_at(writes)
    is_copied = (items.number(writes, items.CREATED_AT) or 0) < 0
    if is_copied and not items.expires_before(kept_until, expires_at):
        return True
    return is_hidden and items.expires_before(expires_at, kept_until)


def delete_as_read(item: Item) -> Change:
    """Delete a head or writes, unless they have been changed since they were read."""
    return _change("", _unchanged(*items.EPOCHS, "created"), item)


def touch_writes(now: float) -> Change:
    """Keep stored writes from being taken for abandoned."""
    return _change("SET #created = :created", "attribute_exists(#pk)", created=_seconds(now))


def delete_untouched(writes: Item) -> Change:
    """Delete writes without a head, unless they have been changed since they were read."""
    return _change("", "#created = :read_created", writes)


def is_of_former_life(writes: Item, life: Life) -> bool:
    """Tell whether writes, whose head is not of this life of a thread, are of a former one.

    Those of this life expire if it does, and no later; and nothing was stored in the half ttl before it. Parts without
    an epoch do not name their life.
    """
    expires_at = items.expires_at(writes)
    if life.kept_until is None:
        return expires_at is not None
    since = life.kept_until - (life.ttl_seconds or 0) * (KEPT_PERCENT + 50) / 100
    return items.expires_before(life.kept_until, expires_at) or _created_at(writes) < since


def is_orphan(item: Item, now: float) -> bool:
    """Tell whether an item was written so long ago that no put can be about to name it."""
    return _created_at(item) < now - limits.ORPHAN_SECONDS


def _created_at(item: Item) -> int:
    return abs(items.number(item, items.CREATED_AT) or 0)


# Namespace markers


def registration(now: float, random_bytes: bytes, after: bytes = b"") -> bytes:
    """Return the token of a registration: higher than that of the one before, as far as it is known.

    Tokens of a marker only rise. Otherwise a request that arrives twice could bring back the token that a deletion has
    read, which would then delete the marker of what was stored since.
    """
    token = int(now * 1000).to_bytes(_TOKEN_BYTES - len(random_bytes), "big") + random_bytes
    if after < token:
        return token
    before = int.from_bytes(after[:_TOKEN_BYTES].ljust(_TOKEN_BYTES, b"\0"), "big")
    return (before + 1).to_bytes(_TOKEN_BYTES, "big")


def register(token: bytes, expires_at: int | None) -> Change:
    """Put a namespace marker. Never shortens an expiry: a deletion finds a namespace only through its marker."""
    told: dict[str, Any] = {"token": {"B": token}}
    condition = "#registered < :token"
    if expires_at is not None:
        condition, told["expiry"] = f"({condition} AND #expiry <= :expiry)", _seconds(expires_at)
    return _change("", f"attribute_not_exists(#registered) OR {condition}", **told)


def register_again(expires_at: int | None, token: bytes) -> Change:
    """Extend a marker. A deletion that has read it does not delete it any more."""
    registered = {"B": token}
    return _change(
        "SET #expiry = :expiry, #registered = :registered",
        "#expiry < :expiry",
        expiry=_seconds(expires_at or 0),
        registered=registered,
    )


def unregister(marker: Item) -> Change:
    """Delete a marker, unless the namespace has been registered again since it was read."""
    registered = items.binary(marker, items.REGISTERED)
    return _change("", "#registered = :registered", registered={"B": registered})


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
    return _change(
        "SET #expiry = :expiry REMOVE #shown",
        f"{_unchanged(*items.EPOCHS, *items.PARTS)} AND (#expiry < :expiry OR attribute_exists(#shown))",
        item,
        expiry=_seconds(kept_until),
    )
