"""What belongs to a thread as a whole: its epoch, the claim of a deletion, and its namespaces.

A head carries the epoch under which what it reuses was known to be safe; a deletion gives the thread a
new one. The thread item also keeps deletions of one thread apart, by a claim that runs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BACKOFF_SECONDS_TOTAL,
    CLAIM_SECONDS,
    ORPHAN_SECONDS,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table, in_the_way, unless_condition_failed
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError

# Expiry


def lives_shorter(expires_at: int | None, than: int | None) -> bool:
    """Whether something expires before something else does; None never expires. Serves ttls as well."""
    return expires_at is not None and (than is None or expires_at < than)


def lasting(table: Table, thread: ThreadEntry | None) -> Table:
    """The table with the longest ttl that any saver has used in a thread, as all that is stored in it must have.

    Otherwise a checkpoint would go before an older one, which would then pass for the newest.
    """
    if thread is None or not lives_shorter(table.ttl_seconds, thread.ttl_seconds):
        return table
    return replace(table, ttl_seconds=thread.ttl_seconds)


def outliving(table: Table, ends_at: int | None) -> Table:
    """The table with a ttl that lasts at least as long as something that is there."""
    ttl_seconds = None if ends_at is None else ends_at - int(table.clock())
    return replace(table, ttl_seconds=ttl_seconds) if lives_shorter(table.ttl_seconds, ttl_seconds) else table


def renew(table: Table, at: Item, expires_at: int | None) -> Op[bool]:
    """Let an item live until then, or longer; False where it does not exist any more. Never makes an item."""
    expression = "REMOVE #expiry" if expires_at is None else "SET #expiry = :expiry"
    return (yield from _renew(table, at, expression, expires_at, {}, {}))


def renew_segments(
    table: Table, at: Partition, ids: Iterable[bytes], expires_at: int | None
) -> Op[set[bytes]]:
    """Let segments live until then; return those that have gone."""
    wanted = sorted(ids)
    keys = [items.key(at.pk, items.segment_sk(each)) for each in wanted]
    renewed = yield from gather([renew(table, key, expires_at) for key in keys])
    return {each for each, is_there in zip(wanted, renewed, strict=True) if not is_there}


def renew_ancestor(table: Table, head: Item, expires_at: int | None) -> Op[None]:
    """Keep a head that a checkpoint is rebuilt from in the table until then, but readable no longer."""
    expression = "SET #until = if_not_exists(#until, #expiry)" + (
        " REMOVE #expiry" if expires_at is None else ", #expiry = :expiry"
    )
    at = items.key(items.partition_key(head), items.sort_key(head))
    yield from _renew(table, at, expression, expires_at, {"#until": items.READABLE_UNTIL}, {})


def _renew(
    table: Table, at: Item, expression: str, expires_at: int | None, names: Mapping[str, str], values: Item
) -> Op[bool]:
    # What has no expiry lives for ever; a longer one is that of another saver, or of a later call.
    condition = "attribute_exists(#expiry)"
    if expires_at is not None:
        condition = "#expiry < :expiry"
        values = {":expiry": {"N": str(expires_at)}, **values}
    other = yield from in_the_way(
        table.update(
            at,
            expression,
            condition=condition,
            names={"#expiry": TTL_ATTRIBUTE, **names},
            values=values,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    )
    return other is None or bool(other)


# The epoch


def take_epoch(table: Table, at: Partition) -> Op[ThreadEntry]:
    """The thread with its epoch, which is made if the thread has none; an idle one begins."""
    made = items.thread_item(at, table.rng.randbytes(8), table.ttl_seconds, table.expires_at(2))
    for _ in range(ATTEMPTS_MAX):
        other = yield from table.set_attributes(
            made, "attribute_not_exists(#epoch)", {"#epoch": items.EPOCH}, {}
        )
        thread = made if other is None else other
        if items.IDLE not in thread or (yield from _begin(table, at, items.binary(thread, items.EPOCH))):
            return _remembered(table, at, thread)
    msg = f"thread {at.thread_id!r} was deleted {ATTEMPTS_MAX} times while something was stored in it; try again"
    raise ThreadBusyError(msg)


def _begin(table: Table, at: Partition, epoch: bytes) -> Op[bool]:
    """Begin an epoch that was idle when it was read; False where it has ended since."""
    response = yield from unless_condition_failed(
        table.update(
            items.key(at.root, items.THREAD),
            "REMOVE #idle",
            condition="#epoch = :epoch",
            names={"#epoch": items.EPOCH, "#idle": items.IDLE},
            values={":epoch": {"B": epoch}},
        )
    )
    return response is not None


def look_at_thread(table: Table, at: Partition, epoch: bytes | None) -> Op[ThreadEntry | None]:
    """The thread now, None where it has no epoch that has begun; its item is kept alive if that is the one given."""
    item = yield from table.get(at.root, items.THREAD)
    if item is None or items.IDLE in item:
        return None
    thread = _remembered(table, at, item)
    if thread.epoch == epoch:
        yield from _keep_alive(lasting(table, thread), at, item)
    return thread


def _remembered(table: Table, at: Partition, item: Item) -> ThreadEntry:
    """A thread item as this process remembers it from now on."""
    ttl_seconds = items.number(item, items.TTL_SECONDS)
    if ttl_seconds is None and TTL_ATTRIBUTE in item:
        # It was made before threads kept their ttl.
        ttl_seconds = table.ttl_seconds
    return table.memory.remember_thread(at.root, items.binary(item, items.EPOCH), ttl_seconds)


def _keep_alive(table: Table, at: Partition, thread: Item) -> Op[None]:
    """Let the thread item live longer than what was just stored, and say how long that lives."""
    expires_at, ttl = items.number(thread, TTL_ATTRIBUTE), items.number(thread, items.TTL_SECONDS)
    if not lives_shorter(expires_at, table.expires_at()) and not lives_shorter(ttl, table.ttl_seconds):
        return
    key, names = items.key(at.root, items.THREAD), {"#ttl": items.TTL_SECONDS}
    if table.ttl_seconds is None:
        yield from _renew(table, key, "REMOVE #expiry, #ttl", None, names, {})
    else:
        expression, value = "SET #expiry = :expiry, #ttl = :ttl", {"N": str(table.ttl_seconds)}
        yield from _renew(table, key, expression, table.expires_at(2), names, {":ttl": value})


# The claim


@dataclass(frozen=True)
class Claim:
    """A deletion's claim on a thread, and the epochs whose heads it knows to count."""

    root: Partition
    token: bytes
    epoch: bytes
    epochs: frozenset[bytes]
    # In epoch seconds.
    taken_at: float


def take_claim(table: Table, root: Partition, token: bytes) -> Op[Claim]:
    """Keep other collections of the thread out, waiting for one that is under way."""
    waited, attempt = 0.0, 0
    while waited <= BACKOFF_SECONDS_TOTAL:
        delay = table.backoff(attempt)
        waited += delay
        attempt += 1
        taken_at = table.clock()
        thread = yield from _try_claim(table, root, token, delay)
        if thread is not None:
            return Claim(root, token, items.binary(thread, items.EPOCH), epochs_of(thread), taken_at)
    msg = (
        f"thread {root.thread_id!r} is being deleted or pruned by another call, for over"
        f" {BACKOFF_SECONDS_TOTAL:.0f} s; try again later (a call that died lets go after {CLAIM_SECONDS} s)"
    )
    raise ThreadBusyError(msg)


def epochs_of(thread: Item) -> frozenset[bytes]:
    """The epochs whose heads count: the thread's, and those that deletions ended which then took no segments."""
    previous = thread.get(items.PREVIOUS, {}).get("BS", ())
    epoch = [items.binary(thread, items.EPOCH)] if items.EPOCH in thread else []
    return frozenset(map(bytes, (*previous, *epoch)))


def _try_claim(table: Table, root: Partition, token: bytes, delay_seconds: float) -> Op[Item | None]:
    """Claim the thread item, which is made where there is none; return it, or None where another one holds it."""
    now = int(table.clock())
    response = yield from unless_condition_failed(
        table.update(
            items.key(root.pk, items.THREAD),
            "SET #claim = :claim, #until = :until",
            # The last part holds when a request took effect but its answer was lost and it is sent again.
            condition="attribute_exists(#epoch) AND (attribute_not_exists(#claim) OR #until < :now OR #claim = :claim)",
            names={"#epoch": items.EPOCH, "#claim": items.CLAIM, "#until": items.CLAIMED_UNTIL},
            values={
                ":claim": {"B": token},
                ":until": {"N": str(now + CLAIM_SECONDS)},
                ":now": {"N": str(now)},
            },
            ReturnValues="ALL_NEW",
            delay_seconds=delay_seconds,
        )
    )
    if response is None:
        if (yield from table.get(root.pk, items.THREAD)) is None:
            # Whoever stores something gives it a ttl; the item alone says of none.
            yield from take_epoch(replace(table, ttl_seconds=0), root)
        return None
    thread: Item = response["Attributes"]
    if lives_shorter(items.number(thread, TTL_ATTRIBUTE), now + ORPHAN_SECONDS):
        return thread if (yield from _keep_claim(table, root, token, now + ORPHAN_SECONDS)) else None
    return thread


def _keep_claim(table: Table, root: Partition, token: bytes, expires_at: int) -> Op[bool]:
    """Let a thread item that expires live until then, for it has the claim; False where it has gone with the claim."""
    other = yield from in_the_way(
        table.update(
            items.key(root.pk, items.THREAD),
            "SET #expiry = :expiry",
            condition="#claim = :claim AND #expiry < :expiry",
            names={"#claim": items.CLAIM, "#expiry": TTL_ATTRIBUTE},
            values={":claim": {"B": token}, ":expiry": {"N": str(expires_at)}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    )
    return other is None or other.get(items.CLAIM) == {"B": token}


def check_claim(table: Table, claim: Claim) -> Op[None]:
    """Make sure that what the claim knows of epochs was true until now.

    Another deletion that has taken over may have ended them; what counts would pass for what does not. While the claim
    cannot have run out by anybody's clock, nothing is asked.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    if table.clock() - claim.taken_at <= CLAIM_SECONDS / 2:
        return
    thread = yield from table.get(claim.root.pk, items.THREAD)
    if thread is None or thread.get(items.CLAIM) != {"B": claim.token}:
        msg = (
            f"deleting from thread {claim.root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s, and"
            " another deletion took over before anything was deleted; repeat it"
        )
        raise ThreadBusyError(msg)


def end_epoch(table: Table, claim: Claim) -> Op[bytes]:
    """Give the thread a new epoch that is idle, and prolong the claim, if it still holds; return the new epoch.

    The epoch begins when the deletion or a put needs one; `release` tells by it whether a put did. It is there while
    it is idle, or a `take_epoch` that is sent again after its answer was lost would bring back the one that ended.
    """
    new = table.rng.randbytes(8)
    other = yield from in_the_way(
        table.update(
            items.key(claim.root.pk, items.THREAD),
            "SET #epoch = :new, #idle = :idle, #until = :until ADD #previous :ended",
            condition="#claim = :claim AND #epoch = :epoch",
            names={
                "#claim": items.CLAIM,
                "#epoch": items.EPOCH,
                "#idle": items.IDLE,
                "#previous": items.PREVIOUS,
                "#until": items.CLAIMED_UNTIL,
            },
            values={
                ":claim": {"B": claim.token},
                ":epoch": {"B": claim.epoch},
                ":ended": {"BS": [claim.epoch]},
                ":new": {"B": new},
                ":idle": {"BOOL": True},
                ":until": {"N": str(int(table.clock()) + CLAIM_SECONDS)},
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    )
    # This request, too, may have taken effect though its answer was lost.
    if other is not None and other.get(items.CLAIM) != {"B": claim.token}:
        raise _claim_lost(claim.root)
    return new if other is None else items.binary(other, items.EPOCH)


def settle(table: Table, claim: Claim, *, begin: bool) -> Op[None]:
    """Say, before any segment goes, that the new epoch and the rosters tell what counts, if the claim still holds.

    Args:
        table: The table.
        claim: The deletion's claim.
        begin: Whether something is left, for which the epoch begins.
    """
    names = {"#claim": items.CLAIM, "#previous": items.PREVIOUS, **({"#idle": items.IDLE} if begin else {})}
    response = yield from unless_condition_failed(
        table.update(
            items.key(claim.root.pk, items.THREAD),
            "REMOVE #previous" + (", #idle" if begin else ""),
            condition="#claim = :claim",
            names=names,
            values={":claim": {"B": claim.token}},
        )
    )
    if response is None:
        raise _claim_lost(claim.root)


def adopt_thread(table: Table, claim: Claim, *, begin: bool) -> Op[None]:
    """Give the thread this saver's ttl, as all that is left has, and let its epoch begin where something is.

    Not where a put has begun the epoch, which may have stored under a longer one, nor where the claim was lost.
    """
    yield from unless_condition_failed(
        table.update(
            items.key(claim.root.pk, items.THREAD),
            "SET #expiry = :expiry, #ttl = :ttl" + (" REMOVE #idle" if begin else ""),
            condition="#claim = :claim AND attribute_exists(#idle)",
            names={
                "#claim": items.CLAIM,
                "#idle": items.IDLE,
                "#expiry": TTL_ATTRIBUTE,
                "#ttl": items.TTL_SECONDS,
            },
            values={
                ":claim": {"B": claim.token},
                ":expiry": {"N": str(table.expires_at(2))},
                ":ttl": {"N": str(table.ttl_seconds)},
            },
        )
    )


def _claim_lost(root: Partition) -> ThreadBusyError:
    msg = (
        f"deleting from thread {root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s, and another"
        " deletion took over; the checkpoints are deleted, and what only they needed goes with the next prune or"
        " deletion of the thread"
    )
    return ThreadBusyError(msg)


def release(table: Table, root: Partition, token: bytes, *, nothing_left: bool) -> Op[None]:
    """Let go of the thread; remove its item with the last of its checkpoints, unless its epoch has begun."""
    item = items.key(root.pk, items.THREAD)
    names, values = {"#claim": items.CLAIM}, {":claim": {"B": token}}
    if nothing_left:
        idle = "#claim = :claim AND attribute_exists(#idle)"
        if (yield from table.delete_if(item, idle, {**names, "#idle": items.IDLE}, values)):
            return
    names["#until"] = items.CLAIMED_UNTIL
    yield from unless_condition_failed(
        table.update(item, "REMOVE #claim, #until", condition="#claim = :claim", names=names, values=values)
    )


# Namespaces


def namespace_entries(table: Table, at: Partition) -> Op[list[Item]]:
    """The entries of a thread's namespaces, that of the root not among them: it needs none."""
    return (yield from table.query_all(Query(at.root, prefix=items.NAMESPACES)))


def namespaces(table: Table, at: Partition) -> Op[list[Partition]]:
    """The namespaces of a thread, the root's first."""
    entries = yield from namespace_entries(table, at)
    return [items.partition(at.thread_id), *(entered(at, entry) for entry in entries)]


def entered(at: Partition, entry: Item) -> Partition:
    """The namespace that an entry names."""
    return items.partition(at.thread_id, items.namespace_of(entry))


def enter_namespace(table: Table, at: Partition, epoch: bytes) -> Op[None]:
    """Make sure that the thread knows the namespace, unless this process has, under the epoch.

    What is in a namespace that nobody knows of would never be found again, so this comes before anything else.
    """
    known = table.memory.thread(at.root)
    if known is None or known.epoch != epoch:
        known = ThreadEntry(epoch, table.ttl_seconds)
    if at.namespace and lives_shorter(known.namespaces.get(at.namespace, 0), table.expires_at()):
        expires_at = yield from write_entry(table, at, table.expires_at(2))
        table.memory.remember_namespace(at.root, known, at.namespace, expires_at)


def write_entry(table: Table, at: Partition, expires_at: int | None) -> Op[int | None]:
    """Write a namespace's entry, which lives until then, or for as long as the one that is there; return until when."""
    for _ in range(ATTEMPTS_MAX):
        conditions: dict[str, Any] = {}
        if expires_at is not None:
            conditions = {
                "ConditionExpression": "attribute_not_exists(#entered) OR #expiry <= :expiry",
                "ExpressionAttributeNames": {"#entered": items.ENTERED, "#expiry": TTL_ATTRIBUTE},
                "ExpressionAttributeValues": {":expiry": {"N": str(expires_at)}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        entry = items.namespace_item(at, table.rng, expires_at)
        other = yield from in_the_way(table.send("put_item", Item=entry, **conditions))
        if other is None:
            return expires_at
        expires_at = items.number(other, TTL_ATTRIBUTE)
    msg = f"{ATTEMPTS_MAX} others entered namespace {at.namespace!r} of thread {at.thread_id!r} meanwhile; try again"
    raise ThreadBusyError(msg)


def leave_namespace(table: Table, entry: Item) -> Op[None]:
    """Delete a namespace's entry, unless somebody has written it again."""
    key = items.key(items.partition_key(entry), items.sort_key(entry))
    yield from table.delete_if(
        key,
        "#entered = :entered",
        {"#entered": items.ENTERED},
        {":entered": {"B": items.binary(entry, items.ENTERED)}},
    )
