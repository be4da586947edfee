"""The operations that delete: `delete_thread`, `delete_for_runs` and `prune`, as one collection.

A collection takes some of a thread's checkpoints out while puts and reads go on. Its order makes that
safe, and every step may be repeated:

1. Claim the thread item, which keeps other collections of the thread out.
2. Read what the thread has, and choose.
3. Cut kept checkpoints off parents that go.
4. Delete the chosen heads, of each namespace the newest last; then their writes.
5. Give the thread a new epoch. A put that relied on the old one finds out when it looks, and starts again.
6. Read again what is left, strongly, and give the newest head of each namespace the new epoch.
7. Delete the segments that the deleted heads named and that nothing left names.
8. Delete the entries of namespaces that are empty now, and release the claim; with nothing left, delete
   the thread item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb import _items as items
from langgraph.checkpoint.dynamodb._codec import Codec
from langgraph.checkpoint.dynamodb._content import read_body, read_metadata
from langgraph.checkpoint.dynamodb._delta import DELTA_COUNTERS, Ancestors
from langgraph.checkpoint.dynamodb._items import Partition
from langgraph.checkpoint.dynamodb._limits import BACKOFF_SECONDS_TOTAL, CLAIM_SECONDS, ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._reads import Segments, namespaces, read_segments
from langgraph.checkpoint.dynamodb._requests import Query, Table, unless_condition_failed
from langgraph.checkpoint.dynamodb._schema import (
    PARTITION_KEY,
    RUN_ID,
    RUN_INDEX,
    SORT_KEY,
    TTL_ATTRIBUTE,
)
from langgraph.checkpoint.dynamodb._segments import is_index
from langgraph.checkpoint.dynamodb._steps import Item, Op, gather
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

# Everything but a segment's data, which is most of what a thread has.
_ATTRIBUTES = (
    PARTITION_KEY,
    SORT_KEY,
    RUN_ID,
    TTL_ATTRIBUTE,
    items.FORMAT,
    items.PARENT,
    items.EPOCH,
    items.CREATED_AT,
    items.METADATA,
    *items.PARTS,
)


@dataclass
class Inventory:
    """What one namespace has in the table."""

    at: Partition
    heads: dict[str, Item] = field(default_factory=dict)
    writes: dict[str, list[Item]] = field(default_factory=dict)
    segments: dict[bytes, Item] = field(default_factory=dict)
    indexes: Segments = field(default_factory=Segments)

    def named(self, checkpoint_ids: Iterable[str]) -> set[bytes]:
        """Every segment that these checkpoints' items need."""
        return self._ids(
            item
            for each in checkpoint_ids
            for item in (*([self.heads[each]] if each in self.heads else []), *self.writes.get(each, ()))
        )

    def _ids(self, some: Iterable[Item]) -> set[bytes]:
        ids = {each for item in some for _, part in items.parts_of(item) for each in part.ids}
        return ids | _reach(ids, self.indexes.contents)

    @property
    def checkpoint_ids(self) -> set[str]:
        """Every checkpoint that has a head or writes."""
        return self.heads.keys() | self.writes.keys()


def _reach(ids: Iterable[bytes], contents: dict[bytes, bytes]) -> set[bytes]:
    """The ids that index segments lead to, those of inner index segments included."""
    reached: set[bytes] = set()
    inner = set(ids)
    while inner:
        inner = {each for index in inner if index in contents for each in items.unpack_ids(contents[index])}
        inner -= reached
        reached |= inner
    return reached


def take_inventory(table: Table, codec: Codec, at: Partition) -> Op[Inventory]:
    """Read what a namespace has, with the index segments that its items name."""
    inventory = Inventory(at)
    query = Query(at.pk, attributes=_ATTRIBUTES)
    while not query.done:
        for item in (yield from table.query_page(query)):
            _sort_in(inventory, item)
    ids = {
        each
        for some in (inventory.heads.values(), *inventory.writes.values())
        for item in some
        for _, part in items.parts_of(item)
        for each in part.ids
        if is_index(each)
    }
    yield from read_segments(table, codec, at.pk, ids, inventory.indexes)
    return inventory


def _sort_in(inventory: Inventory, item: Item) -> None:
    sk = items.sort_key(item)
    if sk.startswith(items.SEGMENTS):
        inventory.segments[items.segment_id_of(item)] = item
    elif sk.startswith(items.CHECKPOINTS):
        checkpoint_id = items.checkpoint_id_of(item)
        if items.is_head(item):
            inventory.heads[checkpoint_id] = item
        else:
            inventory.writes.setdefault(checkpoint_id, []).append(item)


Chooser = Callable[[Sequence[Inventory]], Op["Choice"]]
"""Decides which checkpoints of a thread go, given what it has in each namespace."""


@dataclass(frozen=True)
class Choice:
    """The checkpoints that go, by partition key; and whether what nothing names goes whatever its age."""

    checkpoint_ids: dict[str, set[str]]
    whole_thread: bool = False


def collect(table: Table, codec: Codec, thread_id: str, choose: Chooser) -> Op[None]:
    """Take checkpoints out of a thread, with everything that only they need."""
    root = items.partition(thread_id)
    claim = yield from _claim(table, root)
    within = yield from namespaces(table, root)
    before = yield from gather([take_inventory(table, codec, at) for at in within])
    choice = yield from choose(before)
    gone = {each.at.pk: choice.checkpoint_ids.get(each.at.pk, set()) for each in before}
    if not choice.whole_thread:
        for each in before:
            gone[each.at.pk] = gone[each.at.pk] | _abandoned(table, each)
    yield from gather([_orphan(table, each, gone[each.at.pk]) for each in before])
    yield from _delete_heads(table, before, gone)
    yield from table.batch_write(
        deletes=[item for each in before for name in gone[each.at.pk] for item in each.writes.get(name, ())]
    )
    epoch = yield from _new_epoch(table, root, claim)
    after = yield from gather([take_inventory(table, codec, at) for at in within])
    yield from gather([_stamp(table, each, claim.epoch, epoch) for each in after])
    yield from table.batch_write(
        deletes=[
            item
            for old, new in zip(before, after, strict=True)
            for item in _unneeded(table, old, new, gone[old.at.pk], whole=choice.whole_thread)
        ]
    )
    empty = [each.at for each in after if not each.heads and not each.writes]
    yield from gather([_leave_namespace(table, at, epoch) for at in empty if at.namespace])
    yield from _release(table, root, claim, epoch, nothing_left=len(empty) == len(within))


# The claim and the epoch


@dataclass(frozen=True)
class _Claim:
    """A collection's hold on its thread: a token, and the epoch it found."""

    token: bytes
    epoch: bytes


def _claim(table: Table, root: Partition) -> Op[_Claim]:
    """Keep other collections of the thread out, waiting for one that is under way."""
    token, waited, attempt = table.rng.randbytes(8), 0.0, 0
    while waited <= BACKOFF_SECONDS_TOTAL:
        delay = table.backoff(attempt)
        waited += delay
        attempt += 1
        response = yield from unless_condition_failed(
            table.update(
                items.key(root.pk, items.THREAD),
                "SET #claim = :claim, #until = :until, #epoch = if_not_exists(#epoch, :epoch)",
                condition="attribute_not_exists(#claim) OR #until < :now",
                names={"#claim": items.CLAIM, "#until": items.CLAIMED_UNTIL, "#epoch": items.EPOCH},
                values={
                    ":claim": {"B": token},
                    ":until": {"N": str(int(table.clock()) + CLAIM_SECONDS)},
                    ":now": {"N": str(int(table.clock()))},
                    ":epoch": {"B": table.rng.randbytes(8)},
                },
                ReturnValues="ALL_NEW",
                delay_seconds=delay,
            )
        )
        if response is not None:
            return _Claim(token, bytes(response["Attributes"][items.EPOCH]["B"]))
    msg = (
        f"thread {root.thread_id!r} is being deleted or pruned by another call, for over"
        f" {BACKOFF_SECONDS_TOTAL:.0f} s; try again later (a call that died lets go after {CLAIM_SECONDS} s)"
    )
    raise ThreadBusyError(msg)


def _held(table: Table, root: Partition, claim: _Claim, expression: str, names: Any, values: Any) -> Op[None]:
    """Change the thread item if the claim still holds."""
    response = yield from unless_condition_failed(
        table.update(
            items.key(root.pk, items.THREAD),
            expression,
            condition="#claim = :claim",
            names={"#claim": items.CLAIM, **names},
            values={":claim": {"B": claim.token}, **values},
        )
    )
    if response is None:
        msg = (
            f"deleting from thread {root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s and another"
            " deletion took over; call it again, which completes it"
        )
        raise ThreadBusyError(msg)


def _new_epoch(table: Table, root: Partition, claim: _Claim) -> Op[bytes]:
    epoch = table.rng.randbytes(8)
    yield from _held(
        table,
        root,
        claim,
        "SET #epoch = :epoch, #until = :until",
        {"#epoch": items.EPOCH, "#until": items.CLAIMED_UNTIL},
        {":epoch": {"B": epoch}, ":until": {"N": str(int(table.clock()) + CLAIM_SECONDS)}},
    )
    return epoch


def _release(table: Table, root: Partition, claim: _Claim, epoch: bytes, *, nothing_left: bool) -> Op[None]:
    """Let go of the thread, and remove its item with the last of its checkpoints."""
    if not nothing_left:
        yield from _held(table, root, claim, "REMOVE #claim, #until", {"#until": items.CLAIMED_UNTIL}, {})
        return
    yield from _delete_if(
        table,
        items.key(root.pk, items.THREAD),
        "#claim = :claim AND #epoch = :epoch",
        {"#claim": items.CLAIM, "#epoch": items.EPOCH},
        {":claim": {"B": claim.token}, ":epoch": {"B": epoch}},
    )


def _leave_namespace(table: Table, at: Partition, epoch: bytes) -> Op[None]:
    """Delete a namespace's entry, unless a put under the new epoch has entered it again."""
    entry = items.key(at.root, items.namespace_sk(at.namespace))
    yield from _delete_if(table, entry, "#epoch <> :epoch", {"#epoch": items.EPOCH}, {":epoch": {"B": epoch}})


# The steps


def _abandoned(table: Table, inventory: Inventory) -> set[str]:
    """Checkpoints that have writes but no head, and will have none: nothing was written for long."""
    oldest = table.clock() - ORPHAN_SECONDS
    return {
        each
        for each, writes in inventory.writes.items()
        if each not in inventory.heads
        and all((items.number(item, items.CREATED_AT) or 0) < oldest for item in writes)
    }


def _orphan(table: Table, inventory: Inventory, gone: set[str]) -> Op[None]:
    """Take their parent from kept checkpoints whose parent goes."""
    kept = [
        head
        for checkpoint_id, head in inventory.heads.items()
        if checkpoint_id not in gone and items.text(head, items.PARENT) in gone
    ]
    yield from gather([
        _update_head(table, head, "REMOVE #parent", "attribute_exists(#pk)", {"#parent": items.PARENT, "#pk": PARTITION_KEY}, {})
        for head in kept
    ])  # fmt: skip


def _delete_heads(table: Table, before: Sequence[Inventory], gone: dict[str, set[str]]) -> Op[None]:
    """Delete heads, the newest of each namespace after all others.

    A deletion that dies half-way then leaves the newest state readable, or none; never an older one.
    """
    last: list[Item] = []
    others: list[Item] = []
    for inventory in before:
        chosen = sorted(gone[inventory.at.pk] & inventory.heads.keys())
        others += [inventory.heads[each] for each in chosen[:-1]]
        last += [inventory.heads[each] for each in chosen[-1:]]
    yield from table.batch_write(deletes=others)
    yield from table.batch_write(deletes=last)


def _stamp(table: Table, inventory: Inventory, old: bytes, new: bytes) -> Op[None]:
    """Give the newest head the new epoch, so that the next put of the conversation can go on from it."""
    newest = inventory.heads.get(max(inventory.heads, default=""))
    if newest is None or newest.get(items.EPOCH) != {"B": old}:
        return
    yield from _update_head(
        table,
        newest,
        "SET #epoch = :new",
        "#epoch = :old",
        {"#epoch": items.EPOCH},
        {":new": {"B": new}, ":old": {"B": old}},
    )


def _update_head(
    table: Table, head: Item, expression: str, condition: str, names: dict[str, str], values: Item
) -> Op[None]:
    """Change a head, unless it was replaced or deleted meanwhile."""
    at = items.key(items.partition_key(head), items.sort_key(head))
    yield from unless_condition_failed(
        table.update(at, expression, condition=condition, names=names, values=values)
    )


def _delete_if(table: Table, at: Item, condition: str, names: dict[str, str], values: Item) -> Op[None]:
    """Delete an item if a condition holds."""
    yield from unless_condition_failed(
        table.send(
            "delete_item",
            Key=at,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
    )


def _unneeded(
    table: Table, old: Inventory, new: Inventory, gone: set[str], *, whole: bool
) -> list[Item]:
    """The segments that go: those of deleted checkpoints and orphans, unless something left names them."""
    needed = new.named(new.checkpoint_ids)
    oldest = table.clock() - ORPHAN_SECONDS
    named = old.named(gone)
    all_named = old.named(old.checkpoint_ids)
    return [
        item
        for each, item in old.segments.items()
        if each not in needed
        and (
            whole
            or each in named
            or (each not in all_named and (items.number(item, items.CREATED_AT) or 0) < oldest)
        )
    ]


# The operations


def delete_thread(table: Table, codec: Codec, thread_id: str) -> Op[None]:
    """Delete a thread, with everything it ever stored."""

    def choose(before: Sequence[Inventory]) -> Op[Choice]:
        yield from ()
        return Choice({each.at.pk: each.checkpoint_ids for each in before}, whole_thread=True)

    yield from collect(table, codec, thread_id, choose)


def delete_for_runs(table: Table, codec: Codec, run_ids: Sequence[str]) -> Op[None]:
    """Delete the checkpoints of runs, in every thread."""
    wanted = _checked_ids(run_ids, "run_ids")
    indexed = [each for each in wanted if items.indexable_run_id({RUN_ID: each}) is not None]
    pages = yield from gather([
        table.query_all(
            Query(each, consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY,))
        )
        for each in indexed
    ])  # fmt: skip
    threads = {items.parse_partition(items.partition_key(item)).thread_id for page in pages for item in page}

    def choose(before: Sequence[Inventory]) -> Op[Choice]:
        yield from ()
        return Choice({
            each.at.pk: {name for name, head in each.heads.items() if items.text(head, RUN_ID) in wanted}
            for each in before
        })  # fmt: skip

    for thread_id in sorted(threads):
        yield from collect(table, codec, thread_id, choose)


def prune(
    table: Table, codec: Codec, thread_ids: Sequence[str], strategy: str, keep_last: int | None
) -> Op[None]:
    """Keep only the newest checkpoints of each namespace of some threads, or none."""
    wanted = _checked_ids(thread_ids, "thread_ids")
    count = _checked_count(strategy, keep_last)
    for thread_id in wanted:
        if count == 0:
            yield from delete_thread(table, codec, thread_id)
        else:
            yield from collect(
                table, codec, thread_id, lambda before: _choose_old(table, codec, before, count)
            )


def _checked_ids(ids: Sequence[str], name: str) -> list[str]:
    if isinstance(ids, (str, bytes)):
        msg = f"{name} is a single {type(ids).__name__}; give a list of ids, or its characters would count as ids"
        raise CheckpointerInputError(msg)
    return list(dict.fromkeys(map(str, ids)))


def _checked_count(strategy: str, keep_last: int | None) -> int:
    if strategy == "keep_last":
        if type(keep_last) is not int or keep_last < 1:
            msg = f"keep_last is {keep_last!r}; give the number of checkpoints to keep per namespace, 1 or more"
            raise CheckpointerInputError(msg)
        return keep_last
    counts = {"keep_latest": 1, "delete": 0}
    if strategy not in counts:
        msg = f"strategy {strategy!r} is unknown; use 'keep_latest', 'delete', or 'keep_last' with keep_last=N"
        raise CheckpointerInputError(msg)
    if keep_last is not None:
        msg = f"keep_last={keep_last!r} goes with strategy='keep_last', not with {strategy!r}"
        raise CheckpointerInputError(msg)
    return counts[strategy]


def _choose_old(table: Table, codec: Codec, before: Sequence[Inventory], count: int) -> Op[Choice]:
    """All but the newest checkpoints and what their delta channels are rebuilt from."""
    kept = {each.at.pk: set(sorted(each.heads)[-count:]) for each in before}
    root = before[0]
    chosen: dict[str, set[str]] = {}
    for inventory in before:
        keep = kept[inventory.at.pk]
        if inventory is not root and (yield from _ended_with_its_call(table, codec, inventory, root, keep, kept[root.at.pk])):
            keep = set()
        for checkpoint_id in sorted(keep):
            keep = keep | (yield from _rebuilt_from(table, codec, inventory, checkpoint_id))
        chosen[inventory.at.pk] = inventory.heads.keys() - keep
    return Choice(chosen)


def _ended_with_its_call(
    table: Table, codec: Codec, inventory: Inventory, root: Inventory, keep: set[str], kept_roots: set[str]
) -> Op[bool]:
    """Whether a namespace is of a subgraph call whose root checkpoint is stored and goes.

    Such a namespace has a task id behind a colon; the state of other subgraphs outlives their calls. The
    rule is that of LangGraph's own Postgres saver.
    """
    if ":" not in inventory.at.namespace or not keep:
        return False
    head = inventory.heads[max(keep)]
    part = items.parse_part(head, items.SEALED_METADATA)
    known = Segments()
    if part is not None:
        yield from read_segments(table, codec, inventory.at.pk, part.ids, known)
    parents = read_metadata(codec, head, known.contents).get("parents") or {}
    started_from = parents.get("")
    return started_from in root.heads and started_from not in kept_roots


def _rebuilt_from(table: Table, codec: Codec, inventory: Inventory, checkpoint_id: str) -> Op[set[str]]:
    """The ancestors that a checkpoint's delta channels are rebuilt from."""
    head = inventory.heads[checkpoint_id]
    known = Segments()
    own = {each for _, part in items.parts_of(head) for each in (*part.own, *part.refs) if each in part.own or is_index(each)}
    yield from read_segments(table, codec, inventory.at.pk, own, known)
    counters = read_metadata(codec, head, known.contents).get(DELTA_COUNTERS)
    if not counters:
        return set()
    stored = read_body(codec, head, known.contents).values
    ancestors = Ancestors(table, codec, inventory.at, below=checkpoint_id)
    try:
        path = yield from ancestors.back(head, counters.keys() - stored.keys())
    except CheckpointNotFoundError:
        # The way is cut already; nothing that is left is to be cut from it.
        return set(inventory.heads)
    return {each.group.checkpoint_id for each in path}
