"""Channel versions of another kind than the target's saver counts in.

This package's saver and langgraph-checkpoint-aws count in whole numbers, LangGraph's own savers in padded strings that
end in something random. A saver cannot count on from versions of the other kind, and those that keep values by channel
and version would mix two forks' values of one number. So each whole number becomes a string that says which checkpoint
brought it, and each string its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias

from langgraph.checkpoint.base import Checkpoint

from langgraph.checkpoint.dynamodb.migrate.record import Record, Ref

Pair: TypeAlias = tuple[Checkpoint, Checkpoint]
"""A checkpoint as the source has it, and as the target does."""


def kind_of_versions(next_version: Callable[[Any], Any], checkpoint: Checkpoint) -> type | None:
    """What a saver needs a checkpoint's versions to be; None where it can count on from them as they are."""
    version = next(iter(checkpoint["channel_versions"].values()), None)
    if version is None:
        return None
    try:
        following = next_version(version)
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        following = next_version(None)
    return None if type(following) is type(version) else type(following)


def translated(record: Record, kind: type, parent: Pair | None) -> Record:
    """A record with versions of another kind.

    Args:
        record: The record as the source has it.
        kind: What the versions are to be, `str` or `int`.
        parent: Its parent, where there is one: what the two share has to stay equal.
    """
    own, checkpoint = record.checkpoint["channel_versions"], record.checkpoint
    unique = _digits(record.ref)

    def to(version: Any, *known: tuple[Any, Any]) -> Any:
        """The version itself, or what an equal one has become."""
        if kind is int:
            return int(str(version).split(".")[0])
        # Seen by a node in a checkpoint that is not there any more: of its number, it sorts behind all others.
        return next((new for old, new in known if old == version), f"{int(version):032}.{0:016}")

    before, after = _versions(parent)
    versions = {
        name: to(version, (before.get(name), after.get(name)), (version, f"{_number(version):032}.{unique}"))
        for name, version in own.items()
    }
    seen_before, seen_after = _seen(parent)
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


def _versions(parent: Pair | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return ({}, {}) if parent is None else (parent[0]["channel_versions"], parent[1]["channel_versions"])


def _seen(parent: Pair | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return ({}, {}) if parent is None else (parent[0]["versions_seen"], parent[1]["versions_seen"])


def _digits(ref: Ref) -> str:
    """Sixteen characters, of the form of a random number, that are the same whenever the checkpoint is moved."""
    digest = blake2b("\0".join(ref).encode(errors="surrogatepass"), digest_size=8).digest()
    return f"0.{int.from_bytes(digest, 'big') % 10**14:014}"
