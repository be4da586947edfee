"""What was asked of the saver and acknowledged, and what that allows a reader to see.

The rules are those of issue 4. They are stated per read: a read began at some move of the simulator and saw the table
at any moment up to now, while puts and deletions may have been under way or may have died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory, writes_sort_key

from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError

DELTA = "delta"
# How far the clocks of processes may be apart, each from the time.
SKEW_SECONDS_MAX = 15.0
RESUME = "__resume__"

_EVER = 1e12

WritesKey = tuple[str, str, str, str]


class Violation(AssertionError):
    """A reader saw what it must not see, or missed what it must see."""


class Moment(NamedTuple):
    """A point of a run: the number of moves before it, and the time in seconds."""

    move: int
    seconds: float


START = Moment(0, 0.0)


@dataclass
class Record:
    """One call: when it began, when it ended in whatever way, and whether it was acknowledged."""

    began: Moment | None = None
    ended: Moment | None = None
    acknowledged: bool = False
    clean: bool = True
    """No attempt of it failed, so that nothing of it can still be under way after it has ended."""
    goes_on: bool = False
    """Whether a service may go on with a request of it that its client gave up and made again."""

    def over_before(self, moment: Moment) -> bool:
        """Tell whether nothing of it could take effect from that moment on."""
        return self.ended is not None and self.ended < moment

    def acknowledged_before(self, moment: Moment) -> bool:
        """Tell whether its caller knew by then."""
        return self.acknowledged and self.over_before(moment)


@dataclass
class Put(Record):
    """A checkpoint that was put."""

    thread: str = ""
    namespace: str = ""
    checkpoint_id: str = ""
    parent_id: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    """For each channel the length of the log when it was set."""
    run_id: str = ""
    cloned: bool = False
    """Whether it has another one's values and versions, none of them new, as LangGraph's `__copy__` makes it."""
    delta: bool = False
    """Whether it has a delta channel, so that older ones are needed to rebuild it."""
    copy: Copy | None = None
    """The copy that may have brought it, if it was not put."""

    @property
    def place(self) -> tuple[str, str]:
        """The conversation it belongs to."""
        return self.thread, self.namespace


@dataclass
class Writes(Record):
    """A task's writes that were put."""

    thread: str = ""
    namespace: str = ""
    checkpoint_id: str = ""
    task_id: str = ""
    task_path: str = ""
    writes: Sequence[tuple[str, Any]] = ()


@dataclass
class Answer(Record):
    """A special write of a task, which takes the place of the one before."""

    value: Any = None


@dataclass
class Deletion(Record):
    """A call that deletes. A prune keeps what is newest, so it never changes what the latest state is."""

    kind: str = "delete_thread"
    threads: Sequence[str] = ()
    run_ids: Sequence[str] = ()
    kept: int = 0


@dataclass
class Copy(Record):
    """A call that copies a thread; what is put into the source meanwhile may be copied as well."""

    source: str = ""
    target: str = ""


@dataclass
class History:
    """Everything that was asked of the saver in one run."""

    puts: dict[tuple[str, str, str], Put] = field(default_factory=dict)
    writes: dict[WritesKey, Writes] = field(default_factory=dict)
    answers: dict[WritesKey, list[Answer]] = field(default_factory=dict)
    deletions: list[Deletion] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    shown: dict[str, Moment] = field(default_factory=dict)
    """When all of a hidden copy was shown at once, by thread."""
    index_lags: bool = False
    ttls: dict[str, set[int | None]] = field(default_factory=dict)
    """For each thread the options of the savers that stored something in it. It has that of one of them."""
    now: Callable[[], float] = field(default=lambda: 0.0, repr=False)

    # What was put, and what of it was copied.

    def ways(self, thread: str, namespace: str, checkpoint_id: str, by: Sequence[Copy] = ()) -> list[Put]:
        """Return the ways on which a checkpoint may have come to a thread: by its put, and by copies."""
        put = self.puts.get((thread, namespace, checkpoint_id))
        found = [] if put is None or put.began is None else [put]
        for copy in self.copies:
            if copy.target != thread or copy.began is None or any(copy is each for each in by):
                continue
            if by and not _may_be_before(copy, by[-1]):
                continue
            sources = self.ways(copy.source, namespace, checkpoint_id, [*by, copy])
            found += [self._copied(each, copy) for each in sources if self._may_be_found(each, copy)]
        return found

    def _may_be_found(self, put: Put, copy: Copy) -> bool:
        """Tell whether a copy may have found a checkpoint of its source."""
        began = copy.began or START
        return _may_be_before(put, copy) and not any(
            each.kind != "prune" and each.over_before(began) and self._must_cover(each, put)
            for each in self.deletions
        )

    def _copied(self, put: Put, copy: Copy) -> Put:
        """Return the record of a checkpoint's copy: acknowledged, if nothing can have kept it from being copied."""
        ended, ttls = copy.ended or Moment(0, self.now()), self._ttls(put.thread)
        lives_until = (put.began or START).seconds + 0.9 * min(ttls, default=_EVER) - 2 * SKEW_SECONDS_MAX
        may_be_deleted = any(
            (put.run_id in each.run_ids or put.thread in each.threads)
            and (each.goes_on or not each.over_before(put.began or START))
            and _may_be_before(each, copy)
            for each in self.deletions
        )
        return replace(
            put,
            thread=copy.target,
            began=copy.began,
            ended=copy.ended,
            acknowledged=copy.acknowledged
            and put.acknowledged_before(copy.began or START)
            and ended.seconds < lives_until
            and not may_be_deleted,
            clean=copy.clean,
            goes_on=copy.goes_on,
            copy=copy,
        )

    def sources(self, thread: str) -> list[str]:
        """Return a thread, and those of which it may have checkpoints."""
        found = [thread]
        for each in found:
            found += [copy.source for copy in self.copies if copy.target == each and copy.source not in found]
        return found

    def is_copy(self, thread: str) -> bool:
        """Tell whether something was copied to a thread."""
        return any(each.target == thread for each in self.copies)

    def writes_at(self, thread: str, namespace: str, checkpoint_id: str) -> dict[str, Writes]:
        """Return the records of a checkpoint's writes by task; copied ones with the times of their copy."""
        found: dict[str, Writes] = {}
        for source in reversed(self.sources(thread)):
            for key, writes in self.writes.items():
                if key[:3] == (source, namespace, checkpoint_id):
                    found[key[3]] = writes if source == thread else replace(writes, acknowledged=False)
        for way in self.ways(thread, namespace, checkpoint_id):
            source = "" if way.copy is None else way.copy.source
            put = self.puts.get((source, namespace, checkpoint_id))
            for task_id, writes in found.items():
                if put is None or way.copy is None or writes.thread != source:
                    continue
                copied = self.writes[source, namespace, checkpoint_id, task_id]
                is_whole = way.acknowledged and (copied.began or START) > (put.began or START)
                is_acknowledged = is_whole and copied.acknowledged_before(way.began or START)
                if is_acknowledged:
                    found[task_id] = replace(copied, began=way.began, ended=way.ended)
        return found

    def places(self) -> list[tuple[str, str]]:
        """Return the conversations that there may be."""
        threads = [*(each.thread for each in self.puts.values()), *(each.target for each in self.copies)]
        found = [(thread, put.namespace) for thread in dict.fromkeys(threads) for put in self.puts_in(thread)]
        return list(dict.fromkeys(found))

    def puts_in(self, thread: str) -> list[Put]:
        """Return the records of a thread's checkpoints, and of the copies that may be in it."""
        named = dict.fromkeys(key[1:] for key in self.puts if key[0] in self.sources(thread))
        return [each for name in named for each in self.ways(thread, *name)]

    def puts_at(self, place: tuple[str, str]) -> list[Put]:
        """Return those of a conversation."""
        return [each for each in self.puts_in(place[0]) if each.place == place]

    # What deletions may and must have done.

    def deleters(self, put: Put) -> list[Deletion]:
        """Return the deletions that may have taken a checkpoint, by now."""
        return [
            deletion
            for deletion in self.deletions
            if self._may_cover(deletion, put)
            and (put.began is None or deletion.goes_on or not deletion.over_before(put.began))
        ]

    def _may_cover(self, deletion: Deletion, put: Put) -> bool:
        if deletion.began is None:
            return False
        if deletion.kind == "delete_for_runs":
            return put.run_id in deletion.run_ids
        if put.thread not in deletion.threads:
            return False
        if deletion.kind == "delete_thread":
            return True
        newer = [other for other in self._newer(put) if other.began is not None]
        return len(newer) >= deletion.kept and not self._is_needed(deletion, put)

    def _is_needed(self, deletion: Deletion, put: Put) -> bool:
        """Tell whether a run from a root checkpoint that a prune must keep begins with a subgraph's checkpoint."""
        began = deletion.began or START
        roots = self.puts_at((put.thread, ""))
        return (
            bool(put.namespace)
            and put.acknowledged_before(began)
            and any(
                root.acknowledged_before(began)
                and not self.deleters(root)
                and len([each for each in self._newer(root) if each.began is not None]) < deletion.kept
                and self._is_before(put, root, [each for each in self._newer(put) if each.began is not None])
                for root in roots
            )
        )

    def _is_before(self, put: Put, root: Put, newer: Iterable[Put]) -> bool:
        """Tell whether no newer checkpoint of a subgraph lies between one and a root checkpoint, or its parent."""
        bounds = [each for each in (root.checkpoint_id, root.parent_id) if each and each > put.checkpoint_id]
        return any(all(each.checkpoint_id > bound for each in newer) for bound in bounds)

    def was_deleted(self, put: Put, moment: Moment) -> bool:
        """Tell whether a deletion that had completed by then leaves nothing of a checkpoint."""
        return any(each.over_before(moment) and self._must_cover(each, put) for each in self.deletions)

    def _must_cover(self, deletion: Deletion, put: Put) -> bool:
        """Tell whether a completed deletion leaves nothing of a checkpoint that was there before it began."""
        began = deletion.began or START
        if not (deletion.acknowledged and put.clean and put.acknowledged_before(began)):
            return False
        if deletion.kind == "delete_for_runs":
            return put.run_id in deletion.run_ids and not self.index_lags
        if put.thread not in deletion.threads:
            return False
        if deletion.kind == "delete_thread":
            return True
        newer = [
            other
            for other in self._newer(put)
            if other.acknowledged_before(began)
            and not self.may_have_expired(other)
            and not [each for each in self.deleters(other) if each is not deletion]
        ]
        # A prune keeps what delta channels are rebuilt from, and what a run from any root checkpoint may begin with.
        roots = self.puts_at((put.thread, ""))
        may_be_needed = put.namespace and any(self._is_before(put, root, newer) for root in roots)
        return not put.delta and len(newer) >= deletion.kept and not may_be_needed

    def _newer(self, put: Put) -> Iterable[Put]:
        return (other for other in self.puts_at(put.place) if other.checkpoint_id > put.checkpoint_id)

    def _gave_way(self, put: Put) -> bool:
        """Tell whether a prune may have taken a checkpoint for a newer one that was deleted afterwards, or expired."""
        pruned = any(each.kind == "prune" for each in self.deleters(put))
        return pruned and any(
            self.may_have_expired(newer) or any(each.kind != "prune" for each in self.deleters(newer))
            for newer in self._newer(put)
        )

    def _was_not_newest(self, put: Put, deleters: Sequence[Deletion]) -> bool:
        """Tell whether a deletion may have taken a checkpoint below a newer one, which then went with another one."""
        return any(
            other is not deletion
            for deletion in deleters
            for newer in self._newer(put)
            for other in self.deleters(newer)
        )

    # What expiry may and must have done.

    def may_have_expired(self, put: Put) -> bool:
        """Tell whether a checkpoint may count as gone by now."""
        return self._may_expire_by(put, Moment(0, self.now()))

    def _may_expire_by(self, put: Put, moment: Moment | None) -> bool:
        """Tell whether a checkpoint may count as gone at some moment. Expiries are whole seconds."""
        ends_at = self._kept_until(put)
        return ends_at is not None and (moment is None or moment.seconds >= ends_at)

    def _kept_until(self, put: Put, record: Record | None = None) -> float | None:
        """Tell until when a checkpoint must be there, or writes of it: as long as its thread lives, and it is kept.

        All that is stored is kept for two ttls, and the state of a thread for one more from when it is one no more.
        Readers see a root checkpoint for one ttl less.
        """
        ttls, record = self._ttls(put.thread), record or put
        if record.began is None or not ttls:
            return None
        ttl = min(ttls)
        alive = self._alive_until(put.thread, record.began.seconds)
        replaced_at = min((each.began.seconds for each in self._above(put) if each.began), default=None)
        if replaced_at is None:
            return alive
        hidden = 1 if record is put and not put.namespace else 0
        kept = max(record.began.seconds + (2 - hidden) * ttl, replaced_at + (1.1 - hidden) * ttl)
        kept -= SKEW_SECONDS_MAX
        return max([min(alive, kept), *(self._kept_until(each) or 0 for each in self._begun_from(put))])

    def _alive_until(self, thread: str, since: float) -> float:
        """Tell until when a thread lives at least that was used at some time. A use is noted each tenth of a ttl."""
        noted = 0.9 * min(self._ttls(thread)) - 2 * SKEW_SECONDS_MAX
        alive = since + noted
        uses = [
            (use.began.seconds, use.ended.seconds)
            for _, use in self._uses_in(thread)
            if use.acknowledged and use.began is not None and use.ended is not None
        ]
        for began, ended in sorted(uses):
            if began >= since and ended < alive:
                alive = max(alive, began + noted)
        return alive

    def _above(self, put: Put) -> Iterable[Put]:
        """Return what may have become the newest of its namespace after a checkpoint."""
        return (each for each in self._newer(put) if each.began is not None)

    def _begun_from(self, put: Put) -> list[Put]:
        """Return the root checkpoints from which a run takes a subgraph's checkpoint."""
        if not put.namespace or self.is_copy(put.thread):
            return []
        newer = list(self._above(put))
        roots = [each for each in self.puts_at((put.thread, "")) if each.acknowledged]
        return [
            each
            for each in roots
            if each.checkpoint_id > put.checkpoint_id
            and all(other.checkpoint_id > each.checkpoint_id for other in newer)
            and put.ended is not None
            and put.began is not None
            and each.began is not None
            and each.ended is not None
            and put.ended < each.began
            # One that takes too long begins a thread that has died meanwhile anew.
            and each.ended.seconds < self._alive_until(put.thread, put.began.seconds)
        ]

    def _uses_in(self, thread: str) -> Iterable[tuple[tuple[str, str, str], Record]]:
        """Return what was stored in a thread, each with its thread, namespace and checkpoint."""
        yield from (each for each in self.puts.items() if each[0][0] == thread)
        yield from ((key[:3], each) for key, each in self.writes.items() if key[0] == thread)
        for key, answers in self.answers.items():
            if key[0] == thread:
                yield from ((key[:3], each) for each in answers)
        yield from (((thread, "", ""), each) for each in self.copies if each.target == thread)

    def _ttls(self, thread: str) -> list[int]:
        return [each for each in self.ttls.get(thread, ()) if each is not None]

    def has_expired(self, put: Put, moment: Moment) -> bool:
        """Tell whether a checkpoint has been gone since some moment: no use of its thread has kept it, or has since."""
        ttls = self.ttls.get(put.thread, {None})
        if put.ended is None or None in ttls:
            return False
        uses = [each for _, each in self._uses_in(put.thread) if each.began]
        if any(each.ended is None or each.goes_on for each in (put, *uses)):
            return False
        last = max([put.ended.seconds, *(each.ended.seconds for each in uses if each.ended is not None)])
        return moment.seconds >= last + max(self._ttls(put.thread)) + 2 * SKEW_SECONDS_MAX

    # What a reader may see.

    def check_latest(self, place: tuple[str, str], seen: CheckpointTuple | None, began: Moment) -> None:
        """Check a read of the newest checkpoint of a conversation."""
        known = [put for put in self.puts_at(place) if put.acknowledged_before(began)]
        found = [] if seen is None else self.check_tuple(place, seen, began)
        for put in known:
            if found and found[0].checkpoint_id >= put.checkpoint_id:
                continue
            if self.may_have_expired(put):
                is_older = found and all(each.over_before(put.began or START) for each in found)
                if is_older and not self.deleters(put):
                    raise Violation(
                        f"{_name(found)} is shown in the place of {put.checkpoint_id}, which expired"
                    )
                continue
            if self._gave_way(put):
                continue
            deleters = [each for each in self.deleters(put) if each.kind != "prune"]
            if not deleters:
                raise Violation(f"{put.checkpoint_id} is acknowledged, but the latest is {_name(found)}")
            if (
                found
                and not any(_explains_older(each, way, began) for each in deleters for way in found)
                and not self._was_not_newest(put, deleters)
            ):
                raise Violation(
                    f"an unfinished deletion shows {_name(found)}, which is older than {put.checkpoint_id}"
                )

    def check_one(self, put: Put, seen: CheckpointTuple | None, began: Moment) -> None:
        """Check a read of one checkpoint by its id."""
        if seen is not None:
            self.check_tuple(put.place, seen, began)
            if seen.checkpoint["id"] != put.checkpoint_id:
                raise Violation(f"{put.checkpoint_id} was asked for, and {seen.checkpoint['id']} came")
            return
        if put.acknowledged_before(began) and not self.deleters(put) and not self.may_have_expired(put):
            raise Violation(f"{put.checkpoint_id} is acknowledged and was not deleted, but is not there")

    def check_list(self, thread: str, seen: Sequence[CheckpointTuple], began: Moment) -> None:
        """Check a list of a whole thread."""
        ids = [(each.checkpoint["id"], each.config["configurable"]["checkpoint_ns"]) for each in seen]
        if len(set(ids)) != len(ids):
            raise Violation(f"a list names a checkpoint twice: {ids}")
        if [each for each, _ in ids] != sorted((each for each, _ in ids), reverse=True):
            raise Violation(f"a list is not in order: {ids}")
        for each in seen:
            self.check_tuple((thread, each.config["configurable"]["checkpoint_ns"]), each, began)
        for put in self.puts_in(thread):
            if (put.checkpoint_id, put.namespace) not in ids:
                self.check_one(put, None, began)
        if self.shown.get(thread, began) < began:
            self._check_moment(thread, [self.ways(thread, name, each) for each, name in ids])

    def _check_moment(self, thread: str, seen: Sequence[Sequence[Put]]) -> None:
        """Check that what was shown at once is of one moment of its source.

        Nothing is there that was deleted before other parts were put. And if the newest checkpoint of a namespace is
        there, all is that was acknowledged before: in the root for one of a subgraph, and the other way round.
        """
        shown = self.shown[thread]
        late = [each for each in self.copies if each.target == thread and not each.over_before(shown)]
        if len(late) > 1:
            # Another copy to it goes on, and adds what its source has got since.
            return
        brought = [
            [each for each in ways if each.copy is not None]
            for ways in seen
            if all(each.copy is not None and (each.began or START) < shown for each in ways)
        ]
        sources = {each.copy.source for ways in brought for each in ways if each.copy is not None}
        if len(sources) != 1 or self.is_copy(min(sources)):
            return
        [source] = sources
        puts = [self.puts[source, ways[0].namespace, ways[0].checkpoint_id] for ways in brought]
        names = {(each.namespace, each.checkpoint_id) for ways in seen for each in ways}
        for put in puts:
            for other in puts:
                if self.was_deleted(put, other.began or START):
                    raise Violation(
                        f"{thread} mixes {put.checkpoint_id} of a former life with {other.checkpoint_id}"
                    )
        if any(thread in each.threads and each.began is not None for each in self.deletions):
            return
        for put in puts:
            is_newest = all(
                each.checkpoint_id <= put.checkpoint_id for each in puts if each.place == put.place
            )
            for other in self.puts_in(source):
                if (
                    is_newest
                    and "" in {put.namespace, other.namespace}
                    and put.namespace != other.namespace
                    and (other.namespace, other.checkpoint_id) not in names
                    and other.acknowledged_before(put.began or START)
                    and not self.deleters(other)
                    and not self.may_have_expired(other)
                ):
                    raise Violation(
                        f"{thread} has {put.checkpoint_id} and lacks {other.checkpoint_id}, which its source had before"
                    )

    def check_tuple(self, place: tuple[str, str], seen: CheckpointTuple, began: Moment) -> list[Put]:
        """Check that what is seen is whole, is this conversation's, and is not of something deleted."""
        ways = self.ways(*place, seen.checkpoint["id"])
        if not ways:
            raise Violation(f"{seen.checkpoint['id']} of {place} was never put")
        put = ways[0]
        if seen.checkpoint["channel_values"] != put.values:
            raise Violation(
                f"{put.checkpoint_id} is torn: {seen.checkpoint['channel_values']} is not {put.values}"
            )
        parent_id = (seen.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        if parent_id not in {put.parent_id, None}:
            raise Violation(f"{put.checkpoint_id} has the parent {parent_id}")
        if all(self.has_expired(each, began) for each in ways):
            raise Violation(f"{put.checkpoint_id} has expired and is there")
        if all(self.was_deleted(each, began) for each in ways):
            raise Violation(f"{put.checkpoint_id} of {place} was deleted and is there again")
        self._check_writes(put, seen, began)
        return ways

    def check_history(
        self, put: Put, seen: DeltaChannelHistory | CheckpointNotFoundError, began: Moment
    ) -> None:
        """Check what a delta channel of a checkpoint is rebuilt from: all of it, or a clear error."""
        path = self._ancestors(put)
        gone = not put.acknowledged_before(began) or self.deleters(put) or self.may_have_expired(put)
        if isinstance(seen, CheckpointNotFoundError):
            children = [put, *path]
            if (
                not gone
                and not any(map(self._came_late, children, path))
                and not any(
                    self._may_be_cut(children[: count + 1], began) for count in range(1, len(children))
                )
            ):
                raise Violation(f"{put.checkpoint_id} cannot be rebuilt, though nothing was deleted")
            return
        if gone and not seen["writes"] and "seed" not in seen:
            return
        if seen.get("seed") != (path[-1].values.get(DELTA) if path else None):
            raise Violation(f"{put.checkpoint_id} is rebuilt from {seen.get('seed')}")
        found = [value for _, _, value in seen["writes"]]
        for ancestor in reversed(path):
            for writes in self.writes_at(*ancestor.place, ancestor.checkpoint_id).values():
                values = [value for channel, value in writes.writes if channel == DELTA]
                if found[: len(values)] == values:
                    found = found[len(values) :]
                elif writes.acknowledged_before(began) and not self._may_have_lost(ancestor, writes):
                    raise Violation(
                        f"{put.checkpoint_id} is rebuilt without writes of {ancestor.checkpoint_id}"
                    )
        if found:
            raise Violation(f"{put.checkpoint_id} is rebuilt from writes that nobody put: {found}")

    def _ancestors(self, put: Put) -> list[Put]:
        """Return what a checkpoint's delta channel is rebuilt from, the parent first."""
        path: list[Put] = []
        while put.parent_id is not None:
            name = (put.namespace, put.parent_id)
            lost = [replace(each, acknowledged=False) for key, each in self.puts.items() if key[1:] == name]
            parent, *_ = self.ways(put.thread, *name) or lost
            path.append(parent)
            put = parent
            if DELTA in put.values:
                break
        return path

    def _came_late(self, put: Put, parent: Put) -> bool:
        """Tell whether a checkpoint may have been put when its parent had expired, in the thread it comes from."""
        names = [(each.namespace, each.checkpoint_id) for each in (put, parent)]
        [children, parents] = ([put for key, put in self.puts.items() if key[1:] == name] for name in names)
        return any(self._may_expire_by(each, child.ended) for each in parents for child in children)

    def _may_be_cut(self, path: Sequence[Put], began: Moment) -> bool:
        """Tell whether the last of a path may not be there: not yet, or not any more.

        A prune keeps the ancestors of what it keeps, as far as it finds the way to them.
        """
        put, *between, ancestor = path
        return not ancestor.acknowledged_before(began) or any(
            deletion.kind != "prune"
            or self._may_cover(deletion, put)
            or not all(each.acknowledged_before(deletion.began or START) for each in (put, *between))
            for deletion in self.deleters(ancestor)
        )

    def _may_have_lost(self, put: Put, writes: Record) -> bool:
        """Tell whether acknowledged writes may have gone: with their checkpoint, or being no part of the state."""
        kept_until = self._kept_until(put, writes)
        if kept_until is not None and self.now() >= kept_until:
            return True
        came, there = writes.began or START, put.ended or Moment(0, self.now())
        # Any deletion takes writes that had no checkpoint for an hour.
        were_abandoned = there.seconds - came.seconds > ORPHAN_SECONDS
        deleters = self.deletions if were_abandoned else self.deleters(put)
        return any(each.goes_on or not each.over_before(came) for each in deleters)

    def _check_writes(self, put: Put, seen: CheckpointTuple, began: Moment) -> None:
        found: dict[str, list[tuple[str, Any]]] = {}
        answers: dict[str, Any] = {}
        for task_id, channel, value in seen.pending_writes or ():
            if channel == RESUME:
                answers[task_id] = value
            else:
                found.setdefault(task_id, []).append((channel, value))
        expected = self.writes_at(*put.place, put.checkpoint_id)
        for task_id, pairs in found.items():
            if task_id not in expected or pairs != list(expected[task_id].writes):
                raise Violation(f"{put.checkpoint_id} has writes of {task_id} that nobody put: {pairs}")
        for task_id, writes in expected.items():
            self._check_answer(put, task_id, answers.get(task_id), began)
            if task_id in found or not writes.acknowledged_before(began):
                continue
            if not self._may_have_lost(put, writes):
                raise Violation(f"{put.checkpoint_id} lost the acknowledged writes of {task_id}")
        order = list(found)
        if order != sorted(order, key=lambda task_id: writes_sort_key(expected[task_id].task_path, task_id)):
            raise Violation(f"{put.checkpoint_id} has its writes in the order {order}")

    def _check_answer(self, put: Put, task_id: str, seen: Any, began: Moment) -> None:
        """Check the special write of a task: it was put, and as the last one that was acknowledged, or later."""
        name = (put.namespace, put.checkpoint_id, task_id)
        own, *others = (self.answers.get((each, *name), []) for each in self.sources(put.thread))
        found = next((each for each in own if each.value == seen), None)
        is_copied = any(each.value == seen for some in others for each in some)
        if seen is not None and found is None and not is_copied:
            raise Violation(f"{put.checkpoint_id} has an answer of {task_id} that nobody put: {seen}")
        for answer in own:
            if not answer.acknowledged_before(began) or self._may_have_lost(put, answer):
                continue
            if found is None or found.over_before(answer.began or START):
                raise Violation(f"{put.checkpoint_id} has {seen} of {task_id} in place of {answer.value}")


def _may_be_before(record: Record, other: Record) -> bool:
    """Tell whether a call may have had an effect before another one ended."""
    if record.began is None:
        return False
    return other.goes_on or other.ended is None or record.began < other.ended


def _explains_older(deletion: Deletion, found: Put, began: Moment) -> bool:
    """Tell whether a deletion lets a checkpoint be the latest that is older than one that it took."""
    if deletion.kind == "delete_for_runs" and found.run_id not in deletion.run_ids:
        return True
    if deletion.acknowledged_before(began) or not found.clean:
        # A request that its sender gave up and repeated may arrive after the deletion: nothing can tell it from a put.
        return True
    return found.ended is None or found.ended > (deletion.began or START)


def _name(ways: Sequence[Put]) -> str:
    return ways[0].checkpoint_id if ways else "none"
