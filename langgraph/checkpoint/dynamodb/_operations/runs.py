"""`runs`: list the runs of a thread. It reads heads and opens nothing, so it needs neither a serializer nor a key."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._format import items
from .._format.schema import RUN_ID
from .._runtime.steps import Op
from .._runtime.storage import Storage
from .arguments import checked_id
from .overview import status_of
from .reads import NamespaceReader


@dataclass(frozen=True)
class RunSummary:
    """A run of a thread."""

    run_id: str
    first_checkpoint_id: str
    last_checkpoint_id: str
    checkpoints: int
    """How many checkpoints of the run there are, in the root namespace."""
    status: str
    """`idle`, `waiting` for a human or `failed`, as of its last checkpoint."""


def list_runs(storage: Storage, thread_id: str) -> Op[list[RunSummary]]:
    """List the runs of a thread, the one with the newest checkpoint first."""
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    runs: dict[str, RunSummary] = {}
    history = NamespaceReader(storage, root, first_page=None, consistent=False)
    while not history.done:
        for checkpoint in (yield from history.page()):
            run_id = items.text(checkpoint.head, RUN_ID)
            if run_id is None:
                continue
            here = checkpoint.checkpoint_id
            run = runs.get(run_id) or RunSummary(run_id, here, here, 0, status_of(checkpoint.writes))
            runs[run_id] = replace(run, first_checkpoint_id=here, checkpoints=run.checkpoints + 1)
    return list(runs.values())
