"""Translation of channel versions to the kind that the target's saver uses.

This package's saver and langgraph-checkpoint-aws count in whole numbers; LangGraph's own savers use padded strings with
a random end. A saver cannot continue from versions of the other kind, and savers that store values by channel and
version would mix the values of two forks under one number. So each whole number becomes a string that names the
checkpoint that introduced it, and each string becomes its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.base import Checkpoint

from langgraph.checkpoint.dynamodb.migrate.record import Record, Ref

Pair: TypeAlias = tuple[Checkpoint, Checkpoint]
"""A checkpoint as the source has it, and as the target has it."""


def kind_of_versions(next_version: Callable[[Any], Any], checkpoint: Checkpoint) -> type | None:
    """Return the type of versions that a saver needs, or None if it can continue from those of the checkpoint."""
    version = next(iter(checkpoint["channel_versions"].values()), None)
    if version is None:
        return None
    try:
        following = next_version(version)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        following = next_version(None)
    return None if type(following) is type(version) else type(following)


def translated(record: Record, kind: type, parent: Pair | None) -> Record:
    """Return a record with versions of another kind.

    Args:
        record: The record as the source has it.
        kind: The type of the new versions, `str` or `int`.
        parent: Its parent, if there is one: versions that the two share must stay equal.
    """
    own, checkpoint = record.checkpoint["channel_versions"], record.checkpoint
    unique = _digits(record.ref)

    def to(version: Any, *known: tuple[Any, Any]) -> Any:
        """Return the translation of a version, or of an equal one that is known."""
        if kind is int:
            return _number(version)
        # A node saw it in a checkpoint that is gone. It sorts after all others of its number.
        return next((new for old, new in known if old == version), f"{int(version):032}.{0:016}")

    before, after = _of_pair(parent, "channel_versions")
    versions = {
        name: to(version, (before.get(name), after.get(name)), (version, f"{_number(version):032}.{unique}"))
        for name, version in own.items()
    }
    seen_before, seen_after = _of_pair(parent, "versions_seen")
    seen = {
        node: {
            name: to(
                version,
                (seen_before.get(node, {}).get(name), seen_after.get(node, {}).get(name)),
                (before.get(name), after.get(name)),
                (own.get(name), versions.get(name)),
            )
            for name, version in channels.items()
        }
        for node, channels in checkpoint["versions_seen"].items()
    }
    new: Any = {**checkpoint, "channel_versions": versions, "versions_seen": seen}
    return Record(record.namespace, new, record.metadata, record.parent_id, record.writes)


def _number(version: Any) -> int:
    return int(str(version).split(".")[0])


def _of_pair(
    parent: Pair | None, name: Literal["channel_versions", "versions_seen"]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return ({}, {}) if parent is None else (parent[0][name], parent[1][name])


def _digits(ref: Ref) -> str:
    """Return sixteen characters, in the form of a random number, that depend on the checkpoint alone."""
    digest = blake2b("\0".join(ref).encode(errors="surrogatepass"), digest_size=8).digest()
    return f"0.{int.from_bytes(digest, 'big') % 10**14:014}"
