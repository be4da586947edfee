"""The needs of a run from a checkpoint. Renewals, prunes and copies ask, and know nothing else of LangGraph's runs.

A run goes on with the newest checkpoint of each namespace. One that travels back to a root checkpoint takes, in the
namespaces of subgraphs, the newest checkpoint before it; or the newest one before its parent, if the root checkpoint is
an update or a fork (LangGraph's `pregel/_loop.py`, where it makes a `ReplayState`). The namespace of one call of a
subgraph is needed by the root checkpoint from which the call started.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from .._format import items

# The sources of checkpoints whose runs begin where their parents did.
REPLAYS_PARENT = frozenset({"update", "fork"})
# Separates the names of nodes in a namespace (LangGraph's `NS_SEP`).
_SEPARATOR = "|"


def namespaces_around(namespace: str) -> list[str]:
    """Return the namespaces around that of a subgraph, the root's first; none for the root's."""
    parts = namespace.split(_SEPARATOR)
    return [_SEPARATOR.join(parts[:end]) for end in range(len(parts))] if namespace else []


def may_replay_parent(root: items.Item) -> bool:
    """Tell whether a run from a root checkpoint may begin where its parent did: sealed metadata do not tell."""
    readable = items.text(root, items.METADATA)
    try:
        return readable is None or json.loads(readable).get("source") in REPLAYS_PARENT
    except (ValueError, AttributeError):
        return True


class Needs:
    """The needs of runs from some root checkpoints in the other namespaces."""

    def __init__(self, roots: Iterable[items.Item], coming_root_id: str | None = None) -> None:
        """Take the heads of the root checkpoints, and the id of one that may be stored yet."""
        heads = list(roots)
        self._roots = {items.checkpoint_id_of(each) for each in heads}
        parents = {items.text(each, items.PARENT) for each in heads if may_replay_parent(each)}
        self._bounds = self._roots | set(filter(None, (*parents, coming_root_id)))

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
