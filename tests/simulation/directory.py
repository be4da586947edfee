"""The promises of the directory of threads, against which a run compares what lists show."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from langgraph.checkpoint.dynamodb._format.limits import ACTIVITY_SECONDS
from langgraph.checkpoint.dynamodb._operations.overview import RunSummary
from langgraph.checkpoint.dynamodb._operations.thread_item import activity_seconds
from langgraph.checkpoint.dynamodb._operations.threads import ThreadSummary
from tests.simulation.history import SKEW_SECONDS_MAX, Copy, History, Put, Record, Violation

OWNERS = ("ada", "bob")
OWNER_FROM = "user_id"


def owner_of(checkpoint_id: str) -> str | None:
    """Return the owner that the put of a checkpoint names: puts of one thread do not agree, and some name none."""
    return (*OWNERS, None)[int(checkpoint_id) % 3]


class DirectoryHistory:
    """What lists have shown of each thread, and what was set."""

    def __init__(self, history: History) -> None:
        """Begin with the history of the run's other calls."""
        self._history = history
        self._owners: dict[str, set[str | None]] = {}
        self.titles: dict[str, list[str]] = {}
        """The titles that were asked for, by thread."""
        self.told: set[str] = set()
        """The threads of which such a call was acknowledged."""
        self.taken_back: set[str] = set()
        """The threads whose title somebody took back, or tried to."""

    def check_list(self, owner: str | None, shown: Sequence[ThreadSummary]) -> None:
        """Compare a list that may lag with what every list promises."""
        if len({each.thread_id for each in shown}) != len(shown) and not self._history.index_lags:
            raise Violation(f"a thread is listed twice: {shown}")
        times = [each.last_active.timestamp() for each in shown if each.last_active]
        if times != sorted(times, reverse=True):
            raise Violation(f"a list is not in the order of activity: {times}")
        for each in shown:
            if owner is not None and each.owner != owner:
                raise Violation(f"the list of {owner} has a thread of {each.owner}")
            self._check_owner(each)
            if each.title is not None and each.title not in self._titles_of(each.thread_id):
                raise Violation(f"{each.thread_id} has the title {each.title!r}, which nobody gave it")

    def check_runs(self, thread_id: str, runs: Sequence[RunSummary]) -> None:
        """Compare runs with the puts of the thread, whether they were acknowledged or not."""
        ids = {run: set[str]() for run in (each.run_id for each in self._history.puts.values())}
        for put in self._history.puts.values():
            if put.thread in self._history.sources(thread_id):
                ids[put.run_id].add(put.checkpoint_id)
        for each in runs:
            if not {each.first_checkpoint_id, each.last_checkpoint_id} <= ids.get(each.run_id, set()):
                raise Violation(f"{thread_id} has {each}, and its puts made {ids}")

    def check_all(
        self,
        everything: Sequence[ThreadSummary],
        owned: Mapping[str, Sequence[str]],
        readable: Iterable[Put],
        now: float,
    ) -> None:
        """Compare lists that do not lag with what puts were told, and with the checkpoints that are still there."""
        shown = {each.thread_id: each for each in everything}
        for thread_id, summary in shown.items():
            lists = [owner for owner, threads in owned.items() if thread_id in threads]
            if lists != [each for each in (summary.owner,) if each is not None]:
                raise Violation(f"{thread_id} of {summary.owner} is in the lists of {lists}")
        for put in readable:
            if not put.acknowledged or put.began is None:
                continue
            if put.thread not in shown and now >= self._may_leave_at(put.thread, put):
                continue
            if put.thread not in shown:
                raise Violation(f"{put.thread} has checkpoint {put.checkpoint_id} and is in no list")
            active = shown[put.thread].last_active
            oldest = int(put.began.seconds) - ACTIVITY_SECONDS - 2 * SKEW_SECONDS_MAX
            if active is None or active.timestamp() < oldest:
                raise Violation(f"{put.thread} was active at {put.began.seconds}, and its list says {active}")
            titled = put.thread in self.told - self.taken_back and self._is_undisturbed
            if titled and shown[put.thread].title is None:
                raise Violation(f"{put.thread} has lost its title")

    def check_copies(self, everything: Sequence[ThreadSummary], copies: Sequence[str], now: float) -> None:
        """Compare a list that does not lag with the copies that have a checkpoint.

        An old one may be of another copy, which came later and has died before it entered the thread again. And a
        source has no entry to give before its first put has returned, or once it has expired.
        """
        shown = {each.thread_id for each in everything}
        unlisted = [
            each for each in self._history.copies if each.target in copies and each.target not in shown
        ]
        missing = {
            copy.target
            for copy in unlisted
            if now < self._may_leave_at(copy.target, copy)
            and copy.source in shown
            and self._source_was_put(copy)
        }
        if missing and not any(each.began for each in self._history.deletions):
            raise Violation(f"{missing} are copies with checkpoints, and are in no list")

    def _source_was_put(self, copy: Copy) -> bool:
        """Tell whether a put of its source had returned before it began."""
        return any(
            put.ended <= copy.began
            for put in self._history.puts.values()
            if put.thread == copy.source and put.acknowledged and put.ended and copy.began
        )

    def _may_leave_at(self, thread_id: str, record: Record) -> float:
        """Tell when a thread may leave the lists at the soonest for having expired: not much before a checkpoint."""
        ttls = [each for each in self._history.ttls.get(thread_id, ()) if each is not None]
        if record.began is None or not ttls:
            return math.inf
        return int(record.began.seconds) + min(each - activity_seconds(each) for each in ttls)

    def _check_owner(self, summary: ThreadSummary) -> None:
        puts = (
            each
            for each in self._history.puts.values()
            if each.thread in self._history.sources(summary.thread_id)
        )
        named: Collection[str | None] = {owner_of(each.checkpoint_id) for each in puts} | {None}
        if summary.owner not in named:
            raise Violation(f"{summary.thread_id} has the owner {summary.owner}, whom no put named")
        seen = self._owners.setdefault(summary.thread_id, set())
        seen.add(summary.owner)
        # A thread that a description or a deletion created without an owner may get none later, but never another one.
        if len(seen) > 1 and self._is_undisturbed:
            raise Violation(f"{summary.thread_id} had the owners {seen}")

    def _titles_of(self, thread_id: str) -> list[str]:
        return [title for each in self._history.sources(thread_id) for title in self.titles.get(each, ())]

    @property
    def _is_undisturbed(self) -> bool:
        """Whether no thread can have begun anew: none was deleted, and none expires."""
        ttls = {ttl for each in self._history.ttls.values() for ttl in each}
        return not any(each.began for each in self._history.deletions) and ttls <= {None}
