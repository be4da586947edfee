"""What belongs to a thread as a whole: its epoch, the claim of a deletion, and its namespaces.

A head carries the epoch under which what it reuses was known to be safe; a deletion gives the thread a
new one. The thread item also keeps deletions of one thread apart, by a claim that runs out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import BACKOFF_SECONDS_TOTAL, CLAIM_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table, in_the_way, unless_condition_failed
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError

# Expiry


def lives_shorter(expires_at: int | None, than: int | None) -> bool:
    """Whether something expires before something else does; None never expires."""
    return expires_at is not None and (than is None or expires_at < than)


def renew(table: Table, at: Item, expires_at: int | None) -> Op[bool]:
    """Let an item live until then; False where it does not exist any more. Never makes an item."""
    expression = "REMOVE #expiry" if expires_at is None else "SET #expiry = :expiry"
    return (yield from _renew(table, at, expression, {"#expiry": TTL_ATTRIBUTE}, expires_at))


def renew_segments(table: Table, at: Partition, ids: Iterable[bytes], expires_at: int | None) -> Op[bool]:
    """Let segments live until then; False where one of them has gone."""
    keys = [items.key(at.pk, items.segment_sk(each)) for each in sorted(ids)]
    return all((yield from gather([renew(table, key, expires_at) for key in keys])))


def renew_ancestor(table: Table, head: Item, expires_at: int | None) -> Op[None]:
    """Keep a head that a checkpoint is rebuilt from in the table until then, but readable no longer."""
    expression = (
        "REMOVE #expiry, #until"
        if expires_at is None
        else "SET #until = if_not_exists(#until, #expiry), #expiry = :expiry"
    )
    at = items.key(items.partition_key(head), items.sort_key(head))
    names = {"#expiry": TTL_ATTRIBUTE, "#until": items.READABLE_UNTIL}
    yield from _renew(table, at, expression, names, expires_at)


def _renew(
    table: Table, at: Item, expression: str, names: dict[str, str], expires_at: int | None
) -> Op[bool]:
    response = yield from unless_condition_failed(
        table.update(
            at,
            expression,
            condition="attribute_exists(#pk)",
            names={**names, "#pk": PARTITION_KEY},
            values={} if expires_at is None else {":expiry": {"N": str(expires_at)}},
        )
    )
    return response is not None


# The epoch


def take_epoch(table: Table, at: Partition) -> Op[bytes]:
    """The thread's epoch, made if the thread has none; an idle one begins."""
    expires_at = table.expires_at(2)
    response = yield from table.update(
        items.key(at.root, items.THREAD),
        "SET #epoch = if_not_exists(#epoch, :epoch)"
        + (" REMOVE #expiry, #idle" if expires_at is None else ", #expiry = :expiry REMOVE #idle"),
        names={"#epoch": items.EPOCH, "#idle": items.IDLE, "#expiry": TTL_ATTRIBUTE},
        values={
            ":epoch": {"B": table.rng.randbytes(8)},
            **({} if expires_at is None else {":expiry": {"N": str(expires_at)}}),
        },
        ReturnValues="ALL_NEW",
    )
    return items.binary(response["Attributes"], items.EPOCH)


def look_at_thread(table: Table, at: Partition, epoch: bytes | None) -> Op[bytes | None]:
    """The thread's epoch now, None where the thread has none that has begun; keeps the thread item alive."""
    thread = yield from table.get(at.root, items.THREAD)
    if thread is None or items.IDLE in thread:
        return None
    seen = items.binary(thread, items.EPOCH)
    if seen == epoch and lives_shorter(items.number(thread, TTL_ATTRIBUTE), table.expires_at()):
        yield from renew(table, items.key(at.root, items.THREAD), table.expires_at(2))
    return seen


# The claim


def take_claim(table: Table, root: Partition, claim: bytes) -> Op[bytes]:
    """Keep other collections of the thread out, waiting for one that is under way; return the thread's epoch."""
    waited, attempt = 0.0, 0
    expires_at = table.expires_at(2)
    while waited <= BACKOFF_SECONDS_TOTAL:
        delay = table.backoff(attempt)
        waited += delay
        attempt += 1
        response = yield from unless_condition_failed(
            table.update(
                items.key(root.pk, items.THREAD),
                "SET #claim = :claim, #until = :until, #epoch = if_not_exists(#epoch, :epoch)"
                # The thread may have expired; its item is not to go while it keeps the claim.
                + ("" if expires_at is None else ", #expiry = :expiry"),
                # The last part holds when a request took effect but its answer was lost and it is sent again.
                condition="attribute_not_exists(#claim) OR #until < :now OR #claim = :claim",
                names={
                    "#claim": items.CLAIM,
                    "#until": items.CLAIMED_UNTIL,
                    "#epoch": items.EPOCH,
                    **({} if expires_at is None else {"#expiry": TTL_ATTRIBUTE}),
                },
                values={
                    ":claim": {"B": claim},
                    ":until": {"N": str(int(table.clock()) + CLAIM_SECONDS)},
                    ":now": {"N": str(int(table.clock()))},
                    ":epoch": {"B": table.rng.randbytes(8)},
                    **({} if expires_at is None else {":expiry": {"N": str(expires_at)}}),
                },
                ReturnValues="ALL_NEW",
                delay_seconds=delay,
            )
        )
        if response is not None:
            return items.binary(response["Attributes"], items.EPOCH)
    msg = (
        f"thread {root.thread_id!r} is being deleted or pruned by another call, for over"
        f" {BACKOFF_SECONDS_TOTAL:.0f} s; try again later (a call that died lets go after {CLAIM_SECONDS} s)"
    )
    raise ThreadBusyError(msg)


def end_epoch(table: Table, root: Partition, claim: bytes, epoch: bytes) -> Op[None]:
    """Give the thread a new epoch that is idle, and prolong the claim, if it still holds.

    The epoch begins when the deletion or a put needs one; `release` tells by it whether a put did. It is there while
    it is idle, or a `take_epoch` that is sent again after its answer was lost would bring back the one that ended.
    """
    other = yield from in_the_way(
        table.update(
            items.key(root.pk, items.THREAD),
            "SET #epoch = :new, #idle = :idle, #until = :until",
            condition="#claim = :claim AND #epoch = :epoch",
            names={
                "#claim": items.CLAIM,
                "#epoch": items.EPOCH,
                "#idle": items.IDLE,
                "#until": items.CLAIMED_UNTIL,
            },
            values={
                ":claim": {"B": claim},
                ":epoch": {"B": epoch},
                ":new": {"B": table.rng.randbytes(8)},
                ":idle": {"BOOL": True},
                ":until": {"N": str(int(table.clock()) + CLAIM_SECONDS)},
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    )
    # This request, too, may have taken effect though its answer was lost.
    if other is not None and other.get(items.CLAIM) != {"B": claim}:
        raise _claim_lost(root)


def begin_epoch(table: Table, root: Partition, claim: bytes) -> Op[bytes]:
    """The thread's epoch, which begins if no put has begun it, and if the claim still holds."""
    response = yield from unless_condition_failed(
        table.update(
            items.key(root.pk, items.THREAD),
            "REMOVE #idle",
            condition="#claim = :claim",
            names={"#claim": items.CLAIM, "#idle": items.IDLE},
            values={":claim": {"B": claim}},
            ReturnValues="ALL_NEW",
        )
    )
    if response is None:
        raise _claim_lost(root)
    return items.binary(response["Attributes"], items.EPOCH)


def _claim_lost(root: Partition) -> ThreadBusyError:
    msg = (
        f"deleting from thread {root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s, and another"
        " deletion took over; the checkpoints are deleted, and what only they needed goes with the next prune or"
        " deletion of the thread"
    )
    return ThreadBusyError(msg)


def release(table: Table, root: Partition, claim: bytes, *, nothing_left: bool) -> Op[None]:
    """Let go of the thread; remove its item with the last of its checkpoints, unless its epoch has begun."""
    item, names, values = items.key(root.pk, items.THREAD), {"#claim": items.CLAIM}, {":claim": {"B": claim}}
    if nothing_left:
        idle = "#claim = :claim AND attribute_exists(#idle)"
        if (yield from delete_if(table, item, idle, {**names, "#idle": items.IDLE}, values)):
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
    until = known.namespaces if known is not None and known.epoch == epoch else {}
    if at.namespace and lives_shorter(until.get(at.namespace, 0), table.expires_at()):
        expires_at = table.expires_at(2)
        yield from table.send("put_item", Item=items.namespace_item(at, table.rng, expires_at))
        table.memory.remember_namespace(at.root, epoch, at.namespace, expires_at)


def leave_namespace(table: Table, entry: Item) -> Op[None]:
    """Delete a namespace's entry, unless somebody has written it again."""
    key = items.key(items.partition_key(entry), items.sort_key(entry))
    yield from delete_if(
        table,
        key,
        "#entered = :entered",
        {"#entered": items.ENTERED},
        {":entered": {"B": items.binary(entry, items.ENTERED)}},
    )


def delete_if(table: Table, at: Item, condition: str, names: dict[str, str], values: Item) -> Op[bool]:
    """Delete an item if a condition holds, and say whether it did."""
    # DynamoDB refuses an empty map of values.
    params: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    response = yield from unless_condition_failed(
        table.send(
            "delete_item", Key=at, ConditionExpression=condition, ExpressionAttributeNames=names, **params
        )
    )
    return response is not None
