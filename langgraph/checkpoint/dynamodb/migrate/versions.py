"""Translation of channel versions to the kind that the target's saver uses.

This package's saver and langgraph-checkpoint-aws count in whole numbers; LangGraph's own savers use padded strings with
a random end. A saver cannot continue from versions of the other kind, and savers that store values by channel and
version would mix the values of two forks under one number. So each whole number becomes a string that ends with a
digest of the channel's value, and each string becomes its number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from langgraph.checkpoint.base import Checkpoint

from .record import Dumps, Record

# The end of a version whose value is not in the checkpoint: the channel is empty, or a node has seen an older version.
_NO_VALUE = "0" * 16


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


def translated(record: Record, kind: type, dumps: Dumps) -> Record:
    """Return a record with versions of another kind.

    Args:
        record: The record as the source has it.
        kind: The type of the new versions, `str` or `int`.
        dumps: Serializes the values of channels.
    """
    checkpoint = record.checkpoint
    own, values = checkpoint["channel_versions"], checkpoint["channel_values"]

    def to(name: str, version: Any) -> Any:
        number = int(str(version).split(".")[0])
        if kind is int:
            return number
        is_here = name in values and own.get(name) == version
        return f"{number:032}.{_digits(*dumps(values[name])) if is_here else _NO_VALUE}"

    seen = {
        node: {name: to(name, version) for name, version in channels.items()}
        for node, channels in checkpoint["versions_seen"].items()
    }
    versions = {name: to(name, version) for name, version in own.items()}
    new: Any = {**checkpoint, "channel_versions": versions, "versions_seen": seen}
    return replace(record, checkpoint=new)


def _digits(kind: str, data: bytes) -> str:
    """Return sixteen characters, in the form of a random number, that depend on a serialized value alone."""
    digest = blake2b(kind.encode() + data, digest_size=8).digest()
    return f"0.{int.from_bytes(digest, 'big') % 10**14:014}"
