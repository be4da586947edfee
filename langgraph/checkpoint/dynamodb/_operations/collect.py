"""Taking checkpoints out of a thread: the one way in which anything is ever deleted.

A collection takes some of a thread's checkpoints out while puts and reads go on. Its order makes that
safe, and every step may be repeated:

1. Claim the thread item, which keeps other collections of the thread out.
2. Read what the thread has, and choose.
3. Cut kept checkpoints off parents that go.
4. Delete the chosen heads, of each namespace the newest that counts last; then their writes.
5. End the thread's epoch. A put that relied on it finds out when it looks, and starts again under the next one.
6. Read again what is left, strongly, also in namespaces that were entered since, and give the newest head of the
   old epoch in each the new one.
7. Delete writes that nobody will find any more, and the segments that what has gone named and nothing left names.
8. Delete the entries of namespaces that are empty now, and release the claim; with nothing left, delete
   the thread item, unless a put has begun the next epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import read_metadata
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import (
    PARTITION_KEY,
    RUN_ID,
    SORT_KEY,
    TTL_ATTRIBUTE,
)
from langgraph.checkpoint.dynamodb._format.segments import expand, is_index, reach
from langgraph.checkpoint.dynamodb._operations.delta_history import delta_counters
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Segments,
    judge,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    begin_epoch,
    delete_if,
    end_epoch,
    entered,
    leave_namespace,
    namespace_entries,
    release,
    take_claim,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table, unless_condition_failed
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather

K = TypeVar("K")

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
    entries: list[Item] = field(default_factory=list)
    indexes: Segments = field(default_factory=Segments)

    def items_of(self, checkpoint_ids: Iterable[str]) -> Iterator[Item]:
        """The heads and writes of some checkpoints."""
        for each in checkpoint_ids:
            if each in self.heads:
                yield self.heads[each]
            yield from self.writes.get(each, ())

    def named(self, checkpoint_ids: Iterable[str]) -> set[bytes]:
        """Every segment that these checkpoints' items need."""
        return reach(items.named_ids(self.items_of(checkpoint_ids)), self.indexes.contents)

    def is_whole(self, checkpoint_id: str) -> bool:
        """Whether every segment that a head names is there; where one is not, the head never counted."""
        return (
            reach(items.named_ids([self.heads[checkpoint_id]]), self.indexes.contents) <= self.segments.keys()
        )

    def newest(self, epoch: bytes, among: Iterable[str]) -> str:
        """The newest of some heads that is of an epoch, or ""."""
        return max((name for name in among if self.heads[name].get(items.EPOCH) == {"B": epoch}), default="")

    @property
    def checkpoint_ids(self) -> set[str]:
        """Every checkpoint that has a head or writes."""
        return self.heads.keys() | self.writes.keys()


def take_inventory(table: Table, codec: Codec, at: Partition, *, with_indexes: bool = True) -> Op[Inventory]:
    """Read what a namespace has, and the index segments that say what its items name."""
    inventory = Inventory(at)
    query = Query(at.pk, attributes=_ATTRIBUTES)
    while not query.done:
        for item in (yield from table.query_page(query)):
            _sort_in(inventory, item)
    if with_indexes:
        for head in inventory.heads.values():
            items.check_format(head)
        ids = items.named_ids(inventory.items_of(inventory.checkpoint_ids))
        yield from read_segments(table, codec, at.pk, ids, inventory.indexes, indexes_only=True)
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
    elif sk.startswith(items.NAMESPACES):
        inventory.entries.append(item)


def own_segments(table: Table, codec: Codec, inventory: Inventory, head: Item) -> Op[Segments | None]:
    """The segments that hold a head's own content, with the index segments; None where it never counted."""
    known = Segments(contents=dict(inventory.indexes.contents))
    missing = yield from read_segments(table, codec, inventory.at.pk, items.own_ids([head]), known)
    missing |= set(filter(is_index, expand(items.named_ids([head]), known.contents)))
    if not missing:
        return known
    with suppress(ChangedMeanwhileError):
        yield from judge(table, head, sorted(missing))
    return None


Choice = dict[str, set[str]]
"""The checkpoints of a thread that go, by partition key."""

Chooser = Callable[[Sequence[Inventory], bytes], Op[Choice]]
"""Decides which checkpoints of a thread go, given what it has in each namespace, the root's first, and its epoch."""


def collect(table: Table, codec: Codec, thread_id: str, choose: Chooser) -> Op[None]:
    """Take chosen checkpoints out of a thread, with everything that only they need."""

    def unneeded(before: Inventory, after: Inventory, gone: set[str]) -> set[bytes]:
        freed = before.named(gone) | (_old(table, before.segments) - before.named(before.checkpoint_ids))
        return freed - after.named(after.checkpoint_ids)

    yield from _collect(table, codec, thread_id, choose, unneeded)


def collect_all(table: Table, codec: Codec, thread_id: str) -> Op[None]:
    """Take everything out of a thread. What its items name needs no reading then."""

    def everything(before: Sequence[Inventory], epoch: bytes) -> Op[Choice]:
        del epoch
        yield from ()
        return {each.at.pk: each.checkpoint_ids for each in before}

    def unneeded(before: Inventory, after: Inventory, gone: set[str]) -> set[bytes]:
        del gone
        return before.segments.keys() - after.named(after.checkpoint_ids)

    yield from _collect(table, codec, thread_id, everything, unneeded, with_indexes=False)


def _collect(
    table: Table,
    codec: Codec,
    thread_id: str,
    choose: Chooser,
    unneeded: Callable[[Inventory, Inventory, set[str]], set[bytes]],
    *,
    with_indexes: bool = True,
) -> Op[None]:
    """The eight steps, given what decides over checkpoints and what over segments."""
    root = items.partition(thread_id)
    claim = table.rng.randbytes(8)
    try:
        old_epoch = yield from take_claim(table, root, claim)
        entries = yield from namespace_entries(table, root)
        within = [root, *(entered(root, entry) for entry in entries)]
        before = yield from gather(
            [take_inventory(table, codec, at, with_indexes=with_indexes) for at in within]
        )
        gone = yield from choose(before, old_epoch)
        yield from _delete_checkpoints(table, codec, before, gone, old_epoch)
        yield from end_epoch(table, root, claim, old_epoch)
        after = yield from gather([take_inventory(table, codec, at) for at in within])
        known = [entered(root, entry) for entry in after[0].entries]
        since = yield from gather([take_inventory(table, codec, at) for at in known if at not in within])
        if any(each.heads for each in (*after, *since)):
            epoch = yield from begin_epoch(table, root, claim)
            yield from gather([_stamp(table, each, old_epoch, epoch) for each in (*after, *since)])
        pairs = list(zip(before, after, strict=True))
        abandoned = yield from gather([_delete_abandoned(table, old, new) for old, new in pairs])
        freed = [
            unneeded(old, new, gone[old.at.pk] | also) & old.segments.keys()
            for (old, new), also in zip(pairs, abandoned, strict=True)
        ]
        yield from table.batch_write(
            deletes=[
                old.segments[each] for old, ids in zip(before, freed, strict=True) for each in sorted(ids)
            ]
        )
        # Segments that nothing names yet keep the namespace's entry, or nobody would find them again.
        empty = [
            not (new.checkpoint_ids or new.segments.keys() - ids)
            for new, ids in zip(after, freed, strict=True)
        ]
        left = [entry for entry, is_empty in zip(entries, empty[1:], strict=True) if is_empty]
        yield from gather([leave_namespace(table, entry) for entry in left])
        yield from release(table, root, claim, nothing_left=all(empty) and not since)
    except GeneratorExit:
        # Dropped: there is nobody any more who would make a request.
        raise
    except BaseException:
        # Failed or interrupted: whoever repeats the deletion need not wait for the claim to run out.
        with suppress(Exception):
            yield from release(table, root, claim, nothing_left=False)
        raise
    finally:
        table.memory.forget(root.pk)


# The steps


def _delete_checkpoints(
    table: Table, codec: Codec, before: Sequence[Inventory], gone: Choice, epoch: bytes
) -> Op[None]:
    for pk, checkpoint_ids in gone.items():
        for checkpoint_id in checkpoint_ids:
            table.memory.forget((pk, checkpoint_id))
    yield from gather([_orphan(table, codec, each, gone[each.at.pk]) for each in before])
    yield from _delete_heads(table, before, gone, epoch)
    yield from table.batch_write(
        deletes=[
            item for each in before for name in sorted(gone[each.at.pk]) for item in each.writes.get(name, ())
        ]
    )


def _delete_abandoned(table: Table, before: Inventory, after: Inventory) -> Op[set[str]]:
    """Delete abandoned writes that nobody has written to since they were read; return whose they are."""
    gone: set[str] = set()
    for checkpoint_id in sorted(_abandoned(table, before) & _abandoned(table, after)):
        writes = after.writes.pop(checkpoint_id)
        deleted = yield from gather([_delete_unchanged(table, item) for item in writes])
        left = [item for item, is_gone in zip(writes, deleted, strict=True) if not is_gone]
        if left:
            after.writes[checkpoint_id] = left
        else:
            gone.add(checkpoint_id)
    return gone


def _delete_unchanged(table: Table, writes: Item) -> Op[bool]:
    names, at = {"#created": items.CREATED_AT}, items.key(items.partition_key(writes), items.sort_key(writes))
    created_at = writes.get(items.CREATED_AT)
    if created_at is None:
        return (yield from delete_if(table, at, "attribute_not_exists(#created)", names, {}))
    return (yield from delete_if(table, at, "#created = :created", names, {":created": created_at}))


def _abandoned(table: Table, inventory: Inventory) -> set[str]:
    """Checkpoints that have writes but no head, and will have none: nothing was written for long."""
    return {
        each
        for each, writes in inventory.writes.items()
        if each not in inventory.heads and len(_old(table, dict(enumerate(writes)))) == len(writes)
    }


def _old(table: Table, some: Mapping[K, Item]) -> set[K]:
    """The items that were written so long ago that nothing can be under way with them."""
    oldest = table.clock() - ORPHAN_SECONDS
    return {each for each, item in some.items() if (items.number(item, items.CREATED_AT) or 0) < oldest}


def _orphan(table: Table, codec: Codec, inventory: Inventory, gone: set[str]) -> Op[None]:
    """Take their parent from kept checkpoints whose parent goes.

    One with delta channels that are rebuilt from its ancestors keeps it: who reads them is to find the way
    cut, and not a shorter one.
    """
    for checkpoint_id, head in inventory.heads.items():
        if checkpoint_id in gone or items.text(head, items.PARENT) not in gone:
            continue
        known = yield from own_segments(table, codec, inventory, head)
        if known is None or not delta_counters(read_metadata(codec, head, known.contents)):
            names = {"#parent": items.PARENT, "#pk": PARTITION_KEY}
            yield from _update_item(table, head, "REMOVE #parent", "attribute_exists(#pk)", names, {})


def _delete_heads(table: Table, before: Sequence[Inventory], gone: Choice, epoch: bytes) -> Op[None]:
    """Delete heads, the newest that counts of each namespace, and then those above it, after all others.

    A deletion that dies half-way then leaves the newest state readable, or none; never an older one. Above the
    newest head of the thread's epoch there are few, and only such as readers may pass over.
    """
    others: list[Item] = []
    last: list[list[Item]] = []
    for inventory in before:
        chosen = sorted(gone[inventory.at.pk] & inventory.heads.keys())
        newest = inventory.newest(epoch, chosen) or max(chosen, default="")
        others += [inventory.heads[each] for each in chosen if each < newest]
        last.append([inventory.heads[each] for each in chosen if each >= newest])
    yield from table.batch_write(deletes=others)
    for one_of_each in zip_longest(*last):
        yield from table.batch_write(deletes=filter(None, one_of_each))


def _stamp(table: Table, inventory: Inventory, old: bytes, new: bytes) -> Op[None]:
    """Give the newest checkpoint the new epoch, so that the next put of the conversation can go on from it.

    Only as it was read: what has taken its place since may name what is about to be deleted.
    """
    newest = inventory.items_of([inventory.newest(old, inventory.heads)])
    yield from gather([
        _stamp_unchanged(table, item, old, new) for item in newest if item.get(items.EPOCH) == {"B": old}
    ])  # fmt: skip


def _stamp_unchanged(table: Table, item: Item, old: bytes, new: bytes) -> Op[None]:
    condition, names, values = (
        "#epoch = :old",
        {"#epoch": items.EPOCH},
        {":old": {"B": old}, ":new": {"B": new}},
    )
    for position, name in enumerate(items.PARTS):
        names[f"#p{position}"] = name
        if name in item:
            condition += f" AND #p{position} = :p{position}"
            values[f":p{position}"] = item[name]
        else:
            condition += f" AND attribute_not_exists(#p{position})"
    yield from _update_item(table, item, "SET #epoch = :new", condition, names, values)


def _update_item(
    table: Table, item: Item, expression: str, condition: str, names: dict[str, str], values: Item
) -> Op[None]:
    """Change an item, unless it was replaced or deleted meanwhile."""
    at = items.key(items.partition_key(item), items.sort_key(item))
    yield from unless_condition_failed(
        table.update(at, expression, condition=condition, names=names, values=values)
    )
