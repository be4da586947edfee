"""What a run from a checkpoint needs of its thread. Renewals and prunes ask, and know nothing else of LangGraph's runs.

A run goes on with the newest checkpoint of each namespace. One that travels back to a root checkpoint takes, in the
namespaces of subgraphs, the newest checkpoint before it. If the root checkpoint is an update or a fork, it takes the
newest one before its parent (LangGraph's `pregel/_loop.py`, where it makes a `ReplayState`). So whatever the source,
both are needed. The namespace of one call of a subgraph is needed by the root checkpoint from which the call started.
"""

from __future__ import annotations

from collections.abc import Iterable

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item


class Needs:
    """What runs from some root checkpoints need in the other namespaces."""

    def __init__(self, roots: Iterable[Item]) -> None:
        """Take the heads of the root checkpoints."""
        heads = {items.checkpoint_id_of(each): items.text(each, items.PARENT) for each in roots}
        self._roots = heads.keys()
        self._bounds = heads.keys() | set(filter(None, heads.values()))

    def has_call(self, started_from: str | None) -> bool:
        """Tell whether a namespace is needed, given the root checkpoint from which its call started, if it is a call's.

        The put of a later root checkpoint may be under way.
        """
        return (
            started_from is None
            or not self._roots
            or started_from in self._roots
            or started_from > max(self._roots)
        )

    def before(self) -> Before:
        """Return what picks the checkpoints of a namespace that runs from the root checkpoints may begin with."""
        return Before(self._bounds)


class Before:
    """Picks the newest checkpoint before each of some others, given a namespace's checkpoints, the newest first."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        """Take the ids of the others."""
        self._left = sorted(others)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to pick."""
        return not self._left

    def picks(self, checkpoint_id: str) -> bool:
        """Tell whether the next checkpoint is one of them."""
        left = len(self._left)
        while self._left and self._left[-1] > checkpoint_id:
            self._left.pop()
        return len(self._left) < left
