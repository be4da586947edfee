"""Verify a thread while agents use it, and repair it: remove items that nothing can reach.

Verification checks everything that readers rely on: keys, formats, types and checksums of all items, the segments of
all checkpoints, the ancestors of delta channels, and that each namespace can be found. Missing segments are damage
under the same rule that readers apply.

Leftovers of a put or a deletion that died are not damage. As in deletions, their age distinguishes them from the items
of a put under way. A deletion that deletes no checkpoint removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from .._format import attributes, items, pricing, schema, segments
from .._format.codec import Codec, UnreadableError
from .._format.content import read_body, read_metadata, read_writes
from .._format.items import Item, Partition, later
from .._runtime.requests import Pages, Query
from .._runtime.steps import Emit, Op, Stream, work
from .._runtime.storage import Storage
from ..errors import CheckpointCorruptionError, CheckpointFormatError
from ..protocol import Thread, is_orphan
from . import arguments, collect, overview, thread_item
from .reads import ChangedMeanwhileError, LoadedSegments, StoredCheckpoint, find, load, open_segment

# How many flaws of a thread have a message; all are counted.
_FLAWS_SHOWN = 20


@dataclass
class Verification:
    """The contents of a thread, counted, and its flaws and leftovers."""

    thread_id: str
    namespaces: int = 0
    checkpoints: int = 0
    tasks: int = 0
    """Tasks with pending writes."""
    segments: int = 0
    items: int = 0
    bytes: int = 0
    flaws: int = 0
    """How many items and checkpoints are damaged or lack something."""
    messages: list[str] = field(default_factory=list)
    """Messages about the first of them."""
    unreadable: int = 0
    """Segments and checkpoints with correct checksums that the saver's key or serializer cannot open."""
    why_unreadable: str | None = None
    """The error of the first of them."""
    unknown_namespaces: list[str] = field(default_factory=list)
    """Namespaces without a marker, which no deletion would find."""
    orphans: int = 0
    """Segments that nothing has named for over an hour."""
    orphan_bytes: int = 0
    abandoned: int = 0
    """Tasks whose writes have had no checkpoint for over an hour."""
    empty_namespaces: int = 0
    """Namespaces with a marker but without content."""
    recent: int = 0
    """Unnamed segments and tasks without a checkpoint that are younger than an hour: a put may be under way."""
    passed_over: int = 0
    """Checkpoints that were never acknowledged and lack segments. No reader returns them."""
    uncommitted: int = 0
    """Checkpoints that are whole but not known to be acknowledged. Readers return them."""
    cut: int = 0
    """Older checkpoints whose delta channels cannot be rebuilt, since a deletion of runs deleted their ancestors."""
    expired: int = 0
    """Checkpoints that have expired but that DynamoDB has not removed yet."""
    claimed: bool = False
    """Whether a deletion of the thread is under way, or died within the last two minutes."""

    @property
    def is_stored(self) -> bool:
        """Whether the table has more of the thread than its epoch and its lock, which outlive a deletion."""
        return bool(self.namespaces or self.empty_namespaces or self.flaws)

    @property
    def is_sound(self) -> bool:
        """Whether everything that can be opened is intact, and every namespace can be found."""
        return not self.flaws and not self.unknown_namespaces

    @property
    def has_leftovers(self) -> bool:
        """Whether there are items that nothing can reach."""
        return bool(self.orphans or self.abandoned or self.empty_namespaces or self.unknown_namespaces)

    def flaw(self, message: str) -> None:
        """Count a flaw. A message that several checkpoints share is kept once."""
        self.flaws += 1
        if message not in self.messages and len(self.messages) < _FLAWS_SHOWN:
            self.messages.append(message)

    def unread(self, error: UnreadableError) -> None:
        """Count an item that the saver cannot open. With the wrong key that is every item, so keep one message."""
        self.unreadable += 1
        self.why_unreadable = self.why_unreadable or str(error)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Count the flaw of one item or checkpoint instead of raising it, so that the others are checked too."""
        try:
            yield
        except UnreadableError as error:
            self.unread(error)
        except (CheckpointCorruptionError, CheckpointFormatError) as error:
            self.flaw(str(error))


def scan_partitions(storage: Storage) -> Stream[tuple[Sequence[str], int]]:
    """Find every partition by a parallel scan.

    Each round emits the partition keys that it found, some of them again, and how many items it read.
    """
    parts = [
        Pages({
            "ProjectionExpression": "#pk",
            "ExpressionAttributeNames": {"#pk": schema.PARTITION_KEY},
            "Segment": part,
            "TotalSegments": overview.SCAN_SEGMENTS,
        })
        for part in range(overview.SCAN_SEGMENTS)
    ]  # fmt: skip
    while parts:
        responses = yield from storage.table.scan_pages(parts)
        parts = [each for each in parts if not each.done]
        found = [items.partition_key(item) for each in responses for item in each["Items"]]
        yield Emit((list(dict.fromkeys(found)), len(found)))


def verify_thread(storage: Storage, thread_id: str, scanned: Collection[str] = ()) -> Op[Verification]:
    """Read everything of a thread and check it.

    Args:
        storage: The storage.
        thread_id: The thread.
        scanned: The keys of its partitions that a scan has found. The thread may lack markers for some of them.

    Returns:
        Its contents and flaws. Damage is not raised.
    """
    root, found = items.partition_of(arguments.checked_id(thread_id, "thread_id")), Verification(thread_id)
    thread: Thread | None = None
    with found.noting():
        thread = yield from thread_item.read_thread(storage, root)
    known = {root.pk: root}
    for marker in (yield from thread_item.namespace_markers(storage, root)):
        with found.noting():
            partition = thread_item.marked_namespace(root, marker)
            known[partition.pk] = partition
    unknown = [items.parse_partition(pk) for pk in sorted(set(scanned) - known.keys())]
    found.claimed = thread is not None and (thread.claimed_until or 0) > storage.clock()
    for partition in (*known.values(), *unknown):
        inventory = yield from _verify_namespace(storage, partition, thread, found)
        if inventory.checkpoint_ids or inventory.segments:
            found.namespaces += 1
            found.unknown_namespaces += [partition.namespace] if partition in unknown else []
        elif partition.namespace and partition not in unknown:
            found.empty_namespaces += 1
    return found


def repair_thread(storage: Storage, verified: Verification) -> Op[None]:
    """Remove items that nothing can reach, by a deletion that deletes no checkpoint.

    Registers namespaces without a marker first. Their content stays, since it may be read, and a deletion of the thread
    will find it.

    Raises:
        CheckpointCorruptionError: A head of the thread is damaged, so the segments that it names are not known.
        ThreadBusyError: Another deletion of the thread did not end in time.
    """

    def nothing(before: Sequence[collect.Inventory]) -> collect.Choice:
        return {each.partition.pk: set() for each in before}

    for namespace in verified.unknown_namespaces:
        yield from _register(storage, items.partition_of(verified.thread_id, namespace))
    yield from collect.collect(storage, verified.thread_id, nothing)


def _register(storage: Storage, partition: Partition) -> Op[None]:
    """Register a namespace until the last of its items expires; do nothing if it is empty."""
    stored = yield from storage.table.query_all(Query(partition.pk, attributes=(schema.TTL_ATTRIBUTE,)))
    last: int | None = 0
    for item in stored:
        last = later(last, items.expires_at(item))
    if stored:
        yield from thread_item.register_namespace(storage, partition, last, None)


# One namespace


def _verify_namespace(
    storage: Storage, partition: Partition, thread: Thread | None, found: Verification
) -> Op[collect.Inventory]:
    inventory = collect.Inventory(partition)
    query = Query(partition.pk, consistent=False)
    while not query.done:
        page = yield from storage.table.query_page(query)
        yield from work(partial(_take_in, storage.codec, inventory, page, found), 8192 * len(page))
    found.segments += len(inventory.segments)
    passed_over, decoded = set[str](), dict[str, _Decoded | None]()
    now = storage.clock()
    for checkpoint_id, head in sorted(inventory.heads.items()):
        is_readable = _lives(head, now)
        found.checkpoints += is_readable
        found.expired += not is_readable
        if not _lives(head, now, as_ancestor=True):
            continue
        checkpoint = StoredCheckpoint(head, inventory.writes.get(checkpoint_id, ()))
        loaded = LoadedSegments(partition.pk, indexes=inventory.indexes.contents)
        # A checkpoint that was deleted or replaced in the meantime is not checked.
        with found.noting(), suppress(ChangedMeanwhileError):
            whole = yield from _whole(storage, checkpoint, inventory, loaded)
            if whole is None:
                passed_over.add(checkpoint_id)
            else:
                decoded[checkpoint_id] = yield from _decode(storage, whole, loaded, found)
    found.passed_over += len(passed_over)
    live = {name: head for name, head in inventory.heads.items() if _lives(head, now, as_ancestor=True)}
    with found.noting():
        inventory.mark_committed(thread)
        found.uncommitted += len(live.keys() - inventory.committed - passed_over)
    with found.noting():
        firsts = {name for name, each in decoded.items() if each is None or each.is_first}
        _check_ways_back(live, firsts, found)
    with found.noting():
        yield from _check_writes(storage, inventory, decoded, found)
    with found.noting():
        _count_leftovers(storage, inventory, found)
    return inventory


def _take_in(codec: Codec, inventory: collect.Inventory, page: Iterable[Item], found: Verification) -> None:
    """Check the items of a page one by one and add them to the inventory. Keep content of index segments only."""
    for item in page:
        size = pricing.item_bytes(item)
        found.items += 1
        found.bytes += size
        with found.noting():
            if items.sort_key(item).startswith(items.SEGMENTS):
                segment_id = items.segment_id_of(item)
                try:
                    content = open_segment(codec, item)
                except UnreadableError as error:
                    # The segment exists and is whole. It is no index segment: those are never encrypted.
                    found.unread(error)
                else:
                    if segments.is_index(segment_id):
                        inventory.indexes.contents[segment_id] = content
                inventory.sizes[items.sort_key(item)] = size
            inventory.add(item)
            attributes.check_attributes(item)
            if items.sort_key(item).startswith(items.SEGMENTS):
                del item[items.DATA]


def _lives(head: Item, now: float, *, as_ancestor: bool = False) -> bool:
    """Tell whether a head has not expired. A damaged expiry is a flaw already, and hides nothing else."""
    try:
        return not items.is_expired(head, now, as_ancestor=as_ancestor)
    except CheckpointCorruptionError:
        return True


def _whole(
    storage: Storage, checkpoint: StoredCheckpoint, inventory: collect.Inventory, loaded: LoadedSegments
) -> Op[StoredCheckpoint | None]:
    """Return the acknowledged items of a checkpoint, or `None` if it was never acknowledged and lacks segments."""
    items.check_format(checkpoint.head)
    missing = segments.reach(checkpoint.ids(), loaded.contents) - inventory.segments.keys()
    # Read them strongly consistent now: they may have been stored since the scan.
    if missing and (yield from loaded.read(storage, missing)):
        return (yield from load(storage, checkpoint, loaded))
    return checkpoint


@dataclass(frozen=True)
class _Decoded:
    """A checkpoint's claims about others."""

    is_first: bool
    """Whether it may belong to a run that found nothing stored."""
    versions: Mapping[str, Any]
    """The versions of its channels."""
    rebuilt: Collection[str]
    """Its delta channels that are rebuilt from the writes of ancestors."""
    written: Collection[str]
    """The channels of its pending writes."""

    def lacking(self, parent: _Decoded) -> set[str]:
        """Return the channels whose new versions come from writes that the parent does not have."""
        changed = {each for each in self.rebuilt if self.versions.get(each) != parent.versions.get(each)}
        return changed.difference(parent.written)


def _decode(
    storage: Storage, checkpoint: StoredCheckpoint, loaded: LoadedSegments, found: Verification
) -> Op[_Decoded | None]:
    """Decode a checkpoint's items; note if they cannot be opened, and return `None`."""
    try:
        if (yield from loaded.read(storage, checkpoint.own_ids())):
            raise ChangedMeanwhileError
        return (
            yield from work(partial(_decoded, storage.codec, checkpoint, loaded), checkpoint.sealed_bytes())
        )
    except UnreadableError as error:
        found.unread(error)
        return None


def _decoded(codec: Codec, checkpoint: StoredCheckpoint, loaded: LoadedSegments) -> _Decoded:
    body = read_body(codec, checkpoint.head, loaded.contents)
    step = read_metadata(codec, checkpoint.head, loaded.contents).get("step")
    return _Decoded(
        isinstance(step, int) and step < 0,
        body.checkpoint.get("channel_versions", {}),
        body.sources.keys() - body.values.keys(),
        _written(codec, checkpoint.writes, loaded),
    )


def _written(codec: Codec, writes: Iterable[Item], loaded: LoadedSegments) -> set[str]:
    return {
        write.channel
        for item, name in product(writes, (items.WRITES, *items.SPECIAL_WRITES.values()))
        for write in read_writes(codec, item, name, loaded.contents)
    }


def _decode_again(
    storage: Storage, partition: Partition, checkpoint_id: str, found: Verification
) -> Op[_Decoded | None]:
    """Find a checkpoint and decode it; return `None` if it has been deleted, or cannot be opened."""
    checkpoint = yield from find(storage, partition, checkpoint_id, as_ancestor=True)
    if checkpoint is None:
        return None
    loaded = LoadedSegments(partition.pk)
    yield from loaded.read_indexes(storage, checkpoint.ids())
    return (yield from _decode(storage, checkpoint, loaded, found))


def _check_writes(
    storage: Storage,
    inventory: collect.Inventory,
    decoded: Mapping[str, _Decoded | None],
    found: Verification,
) -> Op[None]:
    """Check that the writes exist that delta channels are rebuilt from.

    LangGraph stores them before the checkpoint that counts on them. Nothing tells of other writes that are gone.
    """
    for name, child in decoded.items():
        parent_id = items.text(inventory.heads[name], items.PARENT) or ""
        known = decoded.get(parent_id)
        if child is None or known is None or not child.lacking(known):
            continue
        # The page with the writes may be older than the one with the checkpoint.
        with suppress(ChangedMeanwhileError):
            again = yield from _decode_again(storage, inventory.partition, parent_id, found)
            lacking = sorted(child.lacking(again)) if again else []
            if lacking:
                where = items.name_of(inventory.heads[parent_id])
                found.flaw(
                    f"{where} has lost writes to {', '.join(lacking)}, delta channels"
                    f" that checkpoint {name!r} rebuilds from them; restore the thread from a backup or point-in-time"
                    " recovery, or resume from an older checkpoint"
                )


def _check_ways_back(live: Mapping[str, Item], firsts: Collection[str], found: Verification) -> None:
    """Check that the ancestors of delta channels exist.

    A gap is a flaw for the newest checkpoint only, since a run continues from that one.
    """
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
    """Return the ancestor of a checkpoint that is missing, if any. Adds paths without a gap to `whole`."""
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


def _count_leftovers(storage: Storage, inventory: collect.Inventory, found: Verification) -> None:
    """Count segments that nothing names and writes without a head, the old ones apart from the recent."""
    without_head = inventory.writes.keys() - inventory.heads.keys()
    now = storage.clock()
    left = collect.abandoned_writes(inventory, now)
    found.tasks += sum(map(len, inventory.writes.values()))
    found.abandoned += sum(len(inventory.writes[each]) for each in left)
    found.recent += sum(len(inventory.writes[each]) for each in without_head - left)
    unnamed = inventory.segments.keys() - inventory.named(inventory.checkpoint_ids)
    old = {each for each in unnamed if is_orphan(inventory.segments[each], now)}
    found.orphans += len(old)
    found.orphan_bytes += sum(inventory.sizes[items.segment_sk(each)] for each in old)
    found.recent += len(unnamed - old)
