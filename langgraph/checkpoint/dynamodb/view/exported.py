"""The file of an export, whose documents stand in for a server."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class Mask(TypedDict):
    """A rule of an export, and how many times it was applied."""

    rule: str
    """A path, or the name of a pattern, as it was given."""
    action: Literal["masked", "left out"]
    times: int


class Export(TypedDict):
    """All documents of a page without a server.

    `documents` maps requests to answers. A request is the address with its parameters in the order of the list in
    `documents.py`, joined by `&` and encoded as `encodeURIComponent` does, such as
    `api/state?thread=lisbon&ns=&checkpoint=1f0...`. There are `api/start`, `api/thread`, `api/tree` and `api/cost` of
    each namespace, the tree as one page (without `before` and `limit`), and `api/state`, `api/changes` (against the
    parent) and `api/pending` of each checkpoint. An object `{"$": 7}` anywhere in them stands for `shared[7]`, which
    may hold such objects itself. The page itself finds blame and search in the changes: the first checkpoint on the way
    back whose changes have the path, or the text.
    """

    made_at: str
    masks: list[Mask]
    """Empty if nothing was to be masked."""
    cut_bytes: int
    """Longer texts and bytes than this were cut."""
    shared: list[Any]
    documents: dict[str, Any]
