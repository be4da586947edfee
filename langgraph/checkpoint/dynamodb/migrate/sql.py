"""LangGraph's SQL savers as endpoints: thread ids, checkpoints and positions of writes by SQL on their tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from .record import Ref, WritePosition
from .saver_endpoint import SaverEndpoint

_PAGE_THREADS = 1000
# In pages by primary key, since the ids of millions of threads do not fit into one answer.
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > ? ORDER BY thread_id LIMIT ?"
_CHECKPOINTS = "SELECT checkpoint_id, checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_OF_CHECKPOINT = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"


class SqlEndpoint(SaverEndpoint):
    """The tables of one of LangGraph's SQL savers."""

    knows_positions = True
    writes: str
    """The table of writes."""

    @abstractmethod
    def rows(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a statement with a question mark for each argument."""

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, in order."""
        last = ""
        while page := self.rows(_THREADS, last, _PAGE_THREADS):
            yield from (thread_id for (thread_id,) in page)
            [last] = page[-1]

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        return sorted(Ref(*row) for row in self.rows(_CHECKPOINTS, thread_id))

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in order."""
        statement = f"SELECT task_path, task_id, idx, channel FROM {self.writes} {_OF_CHECKPOINT}"  # noqa: S608
        rows = self.rows(statement, thread_id, ref.namespace, ref.checkpoint_id)
        return sorted((WritePosition(*position), channel) for *position, channel in rows)
