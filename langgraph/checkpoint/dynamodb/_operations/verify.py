"""Reading everything of a thread and checking it, while agents go on; and removing what nothing can reach.

What is checked is what readers rely on: keys, formats and checksums of all items, segments of all checkpoints, the way
back of delta channels, and that a namespace can be found. Whether missing segments are damage is judged as readers do.

What a put or a deletion that died has left is no damage. It is told apart from what a put under way has written by its
age, as deletions do, and it is a deletion that removes it: one that takes no checkpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._format.content import read_body, read_metadata, read_writes
from langgraph.checkpoint.dynamodb._format.expiry import later
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import is_index, reach
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.collect import Choice, abandoned_writes, collect
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    Segments,
    load,
    open_segment,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.survey import SCAN_SEGMENTS
from langgraph.checkpoint.dynamodb._operations.threads import (
    marked_namespace,
    namespace_markers,
    read_thread,
    register_namespace,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Pages, Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Op, Stream, work
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointCorruptionError,
    CheckpointFormatError,
)
from langgraph.checkpoint.dynamodb.protocol import Thread, is_orphan

# How many flaws of a thread are said in words; all are counted.
_FLAWS_SHOWN = 20


@dataclass
class Verification:
    """What a thread has, and what is wrong with it."""

    thread_id: str
    namespaces: int = 0
    checkpoints: int = 0
    tasks: int = 0
    """Tasks with pending writes."""
    segments: int = 0
    items: int = 0
    bytes: int = 0
    flaws: int = 0
    """How many things cannot be read, or not be found."""
    messages: list[str] = field(default_factory=list)
    """The first of them, in words."""
    unreadable: int = 0
    """Segments and checkpoints whose checksums are right, but which the saver's key or serializer does not open."""
    why_unreadable: str | None = None
    """What the first of them says."""
    unknown_namespaces: list[str] = field(default_factory=list)
    """Namespaces that the thread does not know of, so that no deletion would find them."""
    orphans: int = 0
    """Segments that nothing names, for over an hour."""
    orphan_bytes: int = 0
    abandoned: int = 0
    """Tasks whose writes have no checkpoint, for over an hour."""
    empty_namespaces: int = 0
    """Namespaces that the thread knows of, and in which there is nothing."""
    recent: int = 0
    """Segments that nothing names, and tasks without a checkpoint, since less than an hour: a put may be under way."""
    passed_over: int = 0
    """Checkpoints that were never acknowledged, lack segments, and that no reader returns."""
    uncounted: int = 0
    """Checkpoints that are whole and of which nobody knows that they were acknowledged; readers return them."""
    cut: int = 0
    """Older checkpoints whose delta channels cannot be rebuilt, since a deletion of runs has taken what they need."""
    expired: int = 0
    """Checkpoints that have expired and that DynamoDB has not removed yet."""
    claimed: bool = False
    """Whether a deletion of the thread is under way, or has died within two minutes."""

    @property
    def is_stored(self) -> bool:
        """Whether the table has anything of the thread but its epoch and its lock, which outlive a deletion."""
        return bool(self.namespaces or self.empty_namespaces or self.flaws)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with what can be opened."""
        return not self.flaws and not self.unknown_namespaces

    @property
    def has_leftovers(self) -> bool:
        """Whether there is something that nothing can reach."""
        return bool(self.orphans or self.abandoned or self.empty_namespaces or self.unknown_namespaces)

    def flaw(self, message: str) -> None:
        """Count something that is wrong; what several checkpoints need is said once."""
        self.flaws += 1
        if message not in self.messages and len(self.messages) < _FLAWS_SHOWN:
            self.messages.append(message)

    def unread(self, error: UnreadableError) -> None:
        """Count what the saver does not open; with the wrong key that is everything, so it is said once."""
        self.unreadable += 1
        self.why_unreadable = self.why_unreadable or str(error)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Count what is wrong with one item or checkpoint; the others are to be checked as well."""
        try:
            yield
        except UnreadableError as error:
            self.unread(error)
        except (CheckpointCorruptionError, CheckpointFormatError) as error:
            self.flaw(str(error))


def scan_partitions(table: Table) -> Stream[tuple[Sequence[str], int]]:
    """Find every partition by a parallel scan: the keys that a round gave, some again, and how many items it read."""
    parts = [
        Pages({
            "ProjectionExpression": "#pk",
            "ExpressionAttributeNames": {"#pk": PARTITION_KEY},
            "Segment": part,
            "TotalSegments": SCAN_SEGMENTS,
        })
        for part in range(SCAN_SEGMENTS)
    ]  # fmt: skip
    while parts:
        responses = yield from table.scan_pages(parts)
        parts = [each for each in parts if not each.done]
        found = [items.partition_key(item) for each in responses for item in each["Items"]]
        yield Emit((list(dict.fromkeys(found)), len(found)))


def verify_thread(
    table: Table, codec: Codec, thread_id: str, scanned: Collection[str] = ()
) -> Op[Verification]:
    """Read everything of a thread and check it.

    Args:
        table: The table.
        codec: Opens what is encrypted; no value is deserialized.
        thread_id: The thread.
        scanned: The keys of its partitions, where a scan has found them: it may not know all of them itself.

    Returns:
        What there is, and what is wrong with it; damage is not raised.
    """
    root, found = items.partition(checked_id(thread_id, "thread_id")), Verification(thread_id)
    thread: Thread | None = None
    with found.noting():
        thread = yield from read_thread(table, root)
    known = {root.pk: root}
    for marker in (yield from namespace_markers(table, root)):
        with found.noting():
            at = marked_namespace(root, marker)
            known[at.pk] = at
    unknown = [items.parse_partition(pk) for pk in sorted(set(scanned) - known.keys())]
    found.claimed = thread is not None and (thread.claimed_until or 0) > table.clock()
    for at in (*known.values(), *unknown):
        inventory = yield from _verify_namespace(table, codec, at, thread, found)
        if inventory.checkpoint_ids or inventory.segments:
            found.namespaces += 1
            found.unknown_namespaces += [at.namespace] if at in unknown else []
        elif at.namespace and at not in unknown:
            found.empty_namespaces += 1
    return found


def repair_thread(table: Table, verified: Verification) -> Op[None]:
    """Remove what nothing can reach: a deletion that takes no checkpoint, with its claim and its times.

    Namespaces that the thread does not know of are entered first. What is in them stays, for it may be read, and is
    found by whoever deletes the thread.

    Raises:
        CheckpointCorruptionError: A head of the thread is damaged, so that what it needs is not known.
        ThreadBusyError: Another deletion of the thread did not end in time.
    """

    def nothing(before: Sequence[Inventory]) -> Choice:
        return {each.at.pk: set() for each in before}

    for namespace in verified.unknown_namespaces:
        yield from _register(table, items.partition(verified.thread_id, namespace))
    yield from collect(table, verified.thread_id, nothing)


def _register(table: Table, at: Partition) -> Op[None]:
    """Register a namespace for as long as there is something in it."""
    stored = yield from table.query_all(Query(at.pk, attributes=(TTL_ATTRIBUTE,)))
    last: int | None = 0
    for item in stored:
        last = later(last, items.expires_at(item))
    if stored:
        yield from register_namespace(table, at, last)


# One namespace


def _verify_namespace(
    table: Table, codec: Codec, at: Partition, thread: Thread | None, found: Verification
) -> Op[Inventory]:
    inventory = Inventory(at)
    query = Query(at.pk, consistent=False)
    while not query.done:
        page = yield from table.query_page(query)
        yield from work(partial(_take_in, codec, inventory, page, found), 8192 * len(page))
    found.segments += len(inventory.segments)
    passed_over, firsts = set[str](), set[str]()
    for checkpoint_id, head in sorted(inventory.heads.items()):
        if items.is_expired(head, table.clock(), as_ancestor=True):
            found.expired += 1
            continue
        found.checkpoints += 1
        group = Group(head, inventory.writes.get(checkpoint_id, ()))
        known = Segments(dict(inventory.indexes.contents))
        # One that has gone in the meantime, or in whose place there is another one, is not checked.
        with found.noting(), suppress(ChangedMeanwhileError):
            whole = yield from _whole(table, codec, group, inventory, known)
            if whole is None:
                passed_over.add(checkpoint_id)
            elif (yield from _is_first(table, codec, whole, known, found)):
                firsts.add(checkpoint_id)
    found.passed_over += len(passed_over)
    live = {
        name: head
        for name, head in inventory.heads.items()
        if not items.is_expired(head, table.clock(), as_ancestor=True)
    }
    with found.noting():
        inventory.mark_committed(thread)
        found.uncounted += len(live.keys() - inventory.committed - passed_over)
    with found.noting():
        _check_ways_back(live, firsts, found)
    with found.noting():
        _count_leftovers(table, inventory, found)
    return inventory


def _take_in(codec: Codec, inventory: Inventory, page: Iterable[Item], found: Verification) -> None:
    """Check the items of a page by themselves; of segments only what says what else is named is kept."""
    for item in page:
        size = item_bytes(item)
        found.items += 1
        found.bytes += size
        with found.noting():
            if items.sort_key(item).startswith(items.SEGMENTS):
                segment_id = items.segment_id_of(item)
                try:
                    content = open_segment(codec, item)
                except UnreadableError as error:
                    # It is there and whole. Index segments are never encrypted.
                    found.unread(error)
                else:
                    if is_index(segment_id):
                        inventory.indexes.contents[segment_id] = content
                inventory.sizes[items.sort_key(item)] = size
                del item[items.DATA]
            inventory.add(item)


def _whole(
    table: Table, codec: Codec, group: Group, inventory: Inventory, known: Segments
) -> Op[Group | None]:
    """A checkpoint as far as it was acknowledged, if every segment that it needs is there; None if it never was."""
    items.check_format(group.head)
    missing = reach(group.ids(), known.contents) - inventory.segments.keys()
    # Read strongly now, for they may have come since.
    if missing and (yield from read_segments(table, codec, inventory.at.pk, missing, known)):
        return (yield from load(table, codec, group, known))
    return group


def _is_first(table: Table, codec: Codec, group: Group, known: Segments, found: Verification) -> Op[bool]:
    """Read what a checkpoint's items hold, and say whether it may be of a run that found nothing stored."""
    pk = items.partition_key(group.head)
    try:
        if (yield from read_segments(table, codec, pk, group.own_ids(), known)):
            raise ChangedMeanwhileError
        return (yield from work(partial(_decoded_is_first, codec, group, known), group.sealed_bytes()))
    except UnreadableError as error:
        found.unread(error)
        return True


def _decoded_is_first(codec: Codec, group: Group, known: Segments) -> bool:
    read_body(codec, group.head, known.contents)
    for item, name in product(group.writes, (items.WRITES, *items.SPECIAL_WRITES.values())):
        read_writes(codec, item, name, known.contents)
    step = read_metadata(codec, group.head, known.contents).get("step")
    return isinstance(step, int) and step < 0


def _check_ways_back(live: Mapping[str, Item], firsts: Collection[str], found: Verification) -> None:
    """Look for what the delta channels of checkpoints are rebuilt from; the newest is what a run goes on from."""
    whole = set[tuple[str, str]]()
    for name in sorted(live):
        missing = _missing_ancestor(live, name, firsts, whole)
        if missing is not None and name != max(live):
            found.cut += 1
        elif missing is not None:
            found.flaw(
                f"{items.name_of(live[name])} has delta channels that are rebuilt from checkpoint {missing!r}, which is"
                " not in the table; resume from a checkpoint that has a snapshot, or restore the thread from a backup"
            )


def _missing_ancestor(
    live: Mapping[str, Item], name: str, firsts: Collection[str], whole: set[tuple[str, str]]
) -> str | None:
    """What is not there of the way back from a checkpoint; `whole` is what was found to be."""
    oldest, on_the_way = items.text(live[name], items.REBUILT_FROM), name
    passed = set[tuple[str, str]]()
    while oldest is not None and on_the_way != oldest and (on_the_way, oldest) not in passed | whole:
        passed.add((on_the_way, oldest))
        parent_id = items.text(live[on_the_way], items.PARENT)
        if parent_id is None or (parent_id not in live and on_the_way in firsts):
            break
        if parent_id not in live:
            return parent_id
        on_the_way = parent_id
    whole |= passed
    return None


def _count_leftovers(table: Table, inventory: Inventory, found: Verification) -> None:
    """Count what nothing names, apart by its age."""
    without_head = inventory.writes.keys() - inventory.heads.keys()
    now = table.clock()
    left = abandoned_writes(inventory, now)
    found.tasks += sum(map(len, inventory.writes.values()))
    found.abandoned += sum(len(inventory.writes[each]) for each in left)
    found.recent += sum(len(inventory.writes[each]) for each in without_head - left)
    unnamed = inventory.segments.keys() - inventory.named(inventory.checkpoint_ids)
    old = {each for each in unnamed if is_orphan(inventory.segments[each], now)}
    found.orphans += len(old)
    found.orphan_bytes += sum(inventory.sizes[items.segment_sk(each)] for each in old)
    found.recent += len(unnamed - old)
